//! # Pure differential privacy
//! **Definition.** `M` is `ε`-DP if `Pr[M(x) ∈ S] <= exp(ε) Pr[M(x') ∈ S]` for all neighbours `x, x'` and all `S`.
//! [DMNS06, Def. 1]
//!
//! **Discrete Laplace** of scale `b`, on integer vectors at most `Δ` apart in L1: `ε = Δ/b`. [GRS09, one coordinate]
//! *Proof.* The normalizer is the same for every input. The ratio of the probabilities of an output `y` is therefore
//! `exp(Σ_j (|y_j - x'_j| - |y_j - x_j|)/b) <= exp(‖x - x'‖₁/b)` by the triangle inequality, however many coordinates.
//!
//! **Randomized response** over `k >= 2` values, the true one kept with probability `p`: `ε = |ln(p (k-1)/(1-p))|`.
//! [KOV16, where `p = e^ε/(e^ε+k-1)`]
//! *Proof.* Let `q = (1-p)/(k-1)` be the probability of each other value. Two rows `x ≠ x'` of the channel hold, at an
//! output `y`, the pair `(p, q)` if `y = x`, `(q, p)` if `y = x'`, and `(q, q)` otherwise. The largest ratio is thus
//! `max(p/q, q/p)`, and it is attained, so `ε = |ln(p/q)|` is tight. For `p < 1/k` it is `q/p` that is above one. For
//! `p = 0` and `p = 1` one of the two is zero and the other is not: no finite `ε` holds.
//!
//! **Composition** of mechanisms with independent noise: probabilities multiply, so the epsilons add. [DR14, Thm 3.14]
//!
//! **Bounded range `ε`** is `ε`-DP: the proof stands in `bounded_range.rs`. What is only known as pure costs what it
//! says, and so does what has an epsilon and a delta of exactly zero. A concentrated loss of exactly zero is no loss: no
//! divergence means equal distributions.
//!
//! **The best of a random number of pure runs** is pure: the proof stands in `best_of.rs`.
//!
//! Gaussian noise, discrete, sampled or neither, has unbounded loss as soon as one output can move, and a mechanism that is only close to
//! another inherits its guarantee up to a slack; these, and whatever has a delta or a concentrated loss, are refused here.

use whit_core::{Epsilon, Mechanism, Probability, Ratio, round};

use crate::best_of::Search;
use crate::logarithm::log1p_ratio_up;
use crate::{Error, Result, event_sampled};

/// An upper bound of the pure epsilon of `mechanism`.
pub fn epsilon(mechanism: &Mechanism) -> Result<Epsilon> {
    match mechanism {
        Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            ..
        } => {
            let loss = sensitivity_l1
                .checked_div(scale.ratio())
                .expect("a scale is positive");
            bounded(loss.to_f64_up())
        }
        Mechanism::RandomizedResponse { keep, categories } => {
            randomized_response(keep, *categories)
        }
        Mechanism::BoundedRange { epsilon } | Mechanism::Pure { epsilon } => {
            bounded(epsilon.to_f64_up())
        }
        Mechanism::Approximate { epsilon, delta }
        | Mechanism::PartitionSelection { epsilon, delta }
            if delta.ratio().is_zero() =>
        {
            bounded(epsilon.to_f64_up())
        }
        Mechanism::Concentrated { rho } if rho.is_zero() => Ok(Epsilon::ZERO),
        Mechanism::Composition(parts) => parts.iter().try_fold(Epsilon::ZERO, |sum, part| {
            bounded(round::add_up(sum.value(), epsilon(part)?.value()))
        }),
        Mechanism::DiscreteGaussian {
            sensitivity_l2_square,
            ..
        }
        | Mechanism::Gaussian {
            sensitivity_l2_square,
            ..
        } if sensitivity_l2_square.is_zero() => Ok(Epsilon::ZERO),
        Mechanism::Sampled { .. } if event_sampled::Run::read(mechanism)?.is_nothing() => {
            Ok(Epsilon::ZERO)
        }
        Mechanism::BestOf { .. } => Search::of(mechanism)
            .unwrap_or(Err(Error::Empty))
            .and_then(|search| search.pure()),
        Mechanism::DiscreteGaussian { .. }
        | Mechanism::Gaussian { .. }
        | Mechanism::Sampled { .. }
        | Mechanism::Approximate { .. }
        | Mechanism::PartitionSelection { .. }
        | Mechanism::Concentrated { .. }
        | Mechanism::Close { .. } => Err(Error::NoGuarantee {
            mechanism: name(mechanism),
            notion: "pure epsilon",
        }),
        unknown => Err(Error::UnknownMechanism {
            mechanism: name(unknown),
        }),
    }
}

/// The name of the variant, known or not.
pub(crate) fn name(mechanism: &Mechanism) -> String {
    let text = format!("{mechanism:?}");
    text.chars()
        .take_while(|letter| letter.is_alphanumeric())
        .collect()
}

fn bounded(epsilon: f64) -> Result<Epsilon> {
    Epsilon::new(epsilon).map_err(|_| Error::Unbounded {
        what: "finite epsilon",
    })
}

/// `|ln(p/q)|` as `ln(1 + excess)`, where `excess` is exact: `p/q - 1 = (pk - 1)/(1 - p)` if `pk >= 1`, and otherwise
/// `q/p - 1 = (1 - pk)/(p (k - 1))`.
fn randomized_response(keep: &Probability, categories: u64) -> Result<Epsilon> {
    if categories < 2 {
        return Err(Error::TooFewCategories { categories });
    }
    let (keep, one) = (keep.ratio(), Ratio::one());
    let expected = keep * &Ratio::from(categories);
    let (surplus, rest) = match minus(&expected, &one) {
        Some(surplus) => (Some(surplus), minus(&one, keep)),
        None => (
            minus(&one, &expected),
            Some(keep * &Ratio::from(categories - 1)),
        ),
    };
    let (surplus, rest) = surplus.zip(rest).expect("a probability is at most one");
    match surplus.checked_div(&rest) {
        Some(excess) => bounded(log1p_ratio_up(&excess)),
        None => Err(Error::Unbounded {
            what: "finite epsilon",
        }),
    }
}

/// `left - right`, unless that is negative.
fn minus(left: &Ratio, right: &Ratio) -> Option<Ratio> {
    Ratio::from_rbig(left.as_rbig() - right.as_rbig())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Scale;

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("the denominator is positive")
    }

    fn laplace(scale: Ratio, sensitivity_l1: Ratio) -> Mechanism {
        let scale = Scale::new(scale).expect("in range");
        Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            coordinates: 1,
        }
    }

    fn response(keep: Ratio, categories: u64) -> Mechanism {
        let keep = Probability::new(keep).expect("at most one");
        Mechanism::RandomizedResponse { keep, categories }
    }

    fn check(mechanism: &Mechanism, expected: f64) {
        let found = epsilon(mechanism).expect("has a pure epsilon").value();
        let close = found >= expected && found <= expected * (1.0 + 2e-15);
        assert!(close, "{mechanism:?}: {found}, expected {expected}");
    }

    #[test]
    fn laplace_is_sensitivity_over_scale() {
        check(&laplace(ratio(2, 1), ratio(1, 1)), 0.5);
        check(&laplace(ratio(10, 3), ratio(1, 1)), 0.3);
        check(&laplace(ratio(1, 7), ratio(5, 1)), 35.0);
        check(&laplace(ratio(1, 1), ratio(0, 1)), 0.0);
    }

    #[test]
    fn laplace_is_rounded_up_once() {
        let third = epsilon(&laplace(ratio(3, 1), ratio(1, 1)))
            .expect("pure")
            .value();
        assert_eq!(third, ratio(1, 3).to_f64_up());
        assert!(Ratio::from_f64(third).expect("finite") > ratio(1, 3));
    }

    /// ln 3, ln 2, ln 3 and ln(9 · 999999) from mpmath 1.4.1 with 60 digits.
    #[test]
    fn response_is_the_logarithm_of_the_largest_ratio() {
        check(&response(ratio(3, 4), 2), 1.098_612_288_668_109_7);
        check(&response(ratio(1, 2), 3), std::f64::consts::LN_2);
        check(&response(ratio(1, 10), 4), 1.098_612_288_668_109_7);
        check(
            &response(ratio(999_999, 1_000_000), 10),
            16.012_734_135_299_993,
        );
    }

    /// The definition itself: every entry of every pair of rows.
    #[test]
    fn response_matches_its_channel() {
        for (categories, percent) in [(2_u64, 30_u32), (2, 75), (3, 20), (5, 60), (9, 5)] {
            let keep = f64::from(percent) / 100.0;
            let size = usize::try_from(categories).expect("small");
            let other = (1.0 - keep) / (categories - 1) as f64;
            let row = |truth: usize| (0..size).map(move |y| if y == truth { keep } else { other });
            let largest = (0..size)
                .flat_map(|x| (0..size).map(move |z| (x, z)))
                .flat_map(|(x, z)| {
                    row(x)
                        .zip(row(z))
                        .map(|(a, b)| (a / b).ln())
                        .collect::<Vec<_>>()
                })
                .fold(0.0, f64::max);
            let found = epsilon(&response(ratio(u128::from(percent), 100), categories));
            let found = found.expect("pure").value();
            assert!(
                (found - largest).abs() < 1e-12,
                "{categories} {keep}: {found} {largest}"
            );
        }
    }

    #[test]
    fn response_that_is_uniform_costs_nothing() {
        for categories in [2, 3, 7, u64::MAX] {
            let uniform = response(ratio(1, u128::from(categories)), categories);
            assert_eq!(epsilon(&uniform), Ok(Epsilon::ZERO));
        }
    }

    #[test]
    fn response_next_to_uniform_costs_next_to_nothing() {
        let keep = &ratio(1, 2) + &Ratio::power_of_two(-100);
        check(&response(keep, 2), Ratio::power_of_two(-98).to_f64_up());
    }

    #[test]
    fn response_that_lies_always_or_never_is_refused() {
        for keep in [ratio(0, 1), ratio(1, 1)] {
            let refused = epsilon(&response(keep, 3));
            assert_eq!(
                refused,
                Err(Error::Unbounded {
                    what: "finite epsilon"
                })
            );
        }
        for categories in [0, 1] {
            let refused = epsilon(&response(ratio(1, 2), categories));
            assert_eq!(refused, Err(Error::TooFewCategories { categories }));
        }
    }

    #[test]
    fn response_beyond_the_floats_is_still_priced() {
        let rare = Ratio::power_of_two(-2000);
        let truth = 2000.0 * std::f64::consts::LN_2;
        check(&response(rare.clone(), 2), truth);
        let often = minus(&Ratio::one(), &rare).expect("below one");
        check(&response(often, 2), truth);
    }

    #[test]
    fn composition_adds_up() {
        let half = laplace(ratio(2, 1), ratio(1, 1));
        let nested = Mechanism::Composition(vec![
            half.clone(),
            Mechanism::Composition(vec![half.clone(), half]),
        ]);
        check(&nested, 1.5);
        assert_eq!(epsilon(&Mechanism::Composition(vec![])), Ok(Epsilon::ZERO));
        let tenths = Mechanism::Composition(vec![laplace(ratio(10, 1), ratio(1, 1)); 10]);
        assert!(
            epsilon(&tenths).expect("pure").value() > 1.0,
            "0.1 ten times, each rounded up"
        );
    }

    #[test]
    fn losses_beyond_the_floats_are_refused_not_saturated() {
        let huge = Ratio::from_f64(1.7e308).expect("finite");
        let large = laplace(ratio(1, 1), huge.clone());
        let both = Mechanism::Composition(vec![large.clone(), large]);
        assert_eq!(
            epsilon(&both),
            Err(Error::Unbounded {
                what: "finite epsilon"
            })
        );
        let larger = laplace(ratio(1, 2), huge);
        assert_eq!(
            epsilon(&larger),
            Err(Error::Unbounded {
                what: "finite epsilon"
            })
        );
    }

    #[test]
    fn what_needs_a_delta_is_refused() {
        let scale = Scale::new(ratio(1, 1)).expect("in range");
        let gaussian = |square| Mechanism::DiscreteGaussian {
            scale: scale.clone(),
            sensitivity_l2_square: square,
            coordinates: 1,
        };
        let refused = epsilon(&gaussian(ratio(1, 1))).expect_err("unbounded loss");
        assert_eq!(
            refused.to_string(),
            "DiscreteGaussian has no finite pure epsilon by itself"
        );
        assert_eq!(epsilon(&gaussian(Ratio::zero())), Ok(Epsilon::ZERO));
        let close = Mechanism::Close {
            inner: Box::new(laplace(ratio(1, 1), ratio(1, 1))),
            total_variation: Probability::new(ratio(1, 1000)).expect("at most one"),
        };
        assert!(matches!(epsilon(&close), Err(Error::NoGuarantee { .. })));
    }
}
