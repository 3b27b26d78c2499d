//! # From events to steps
//! An [`Event`](whit_core::Event) names exact parameters; the accountant's [`Step`](crate::Step)s have floats. Each part of an event becomes a step that is at
//! least as bad on the upper side of a bound, and one that it can be as bad as on the lower side.
//!
//! | part | upper side | lower side |
//! | --- | --- | --- |
//! | discrete Laplace, one coordinate | its rate rounded up, the largest whole shift | the rate rounded down |
//! | the same with a long lattice | a rounded Laplace, and a distance | likewise |
//! | discrete Laplace, several | `ε`-DP with `ε = Δ/b` | all of the shift in one coordinate |
//! | discrete Gaussian, one coordinate, a short lattice | itself, if `σ` is a float | itself |
//! | discrete Gaussian otherwise | a rounded Gaussian, and a distance | the largest whole shift in one coordinate |
//! | randomized response | the log-ratio rounded up | rounded down |
//! | what is known by epsilon or delta | rounded up | rounded down |
//! | what is known by rho | rounded up | the Gaussian with `1/(2σ²) = ρ`, which is one such mechanism |
//!
//! **Rates.** More discrete Laplace noise is less of it plus independent noise: with `r = e^(-rate)` its characteristic function is
//! `(1-r)²/(1-2r cos t+r²)`, and for `r' > r` the quotient of two such is `αφ_(r') + β` up to a positive factor, with
//! `β = r/r'` and `α = (1-r/r')(1-rr')`, both positive: a mixture of nothing and of noise. Adding noise is post-processing. Randomized response with a
//! smaller log-ratio is one with a larger one, repeated.
//!
//! **Shifts.** Integers differ by whole numbers, so `Δ` may be rounded down; and the largest shift is the worst. For noise that is log-concave the best tests are thresholds,
//! and at the same rate of false positives `Pr[Z >= τ]` the power `Pr[Z >= τ - s]` grows with the shift `s`.
//!
//! **The rounded Gaussian.** Let `f(x) = e^(-x²/(2σ²))`, `p(z) = f(z)/Σf` the discrete Gaussian and `r(z)` the mass that `N(0, σ²)` has within a half of `z`.
//! Their distance is at most `0.1211/σ²`. *Proof.* `∫ f - f(z)` over the cell of `z` is `∫ K(x-z) f''(x) dx` with `K(u) = (½-|u|)²/2`, between 0 and 1/8 (Taylor's
//! formula; the odd term cancels). So `Σ_z |∫ f - f(z)| <= ∫|f''|/8 = 4 max|f'|/8 = e^(-1/2)/(2σ) < 0.30327/σ =: B`, and as much for `|Σf - σ√(2π)|`. Hence
//! `½Σ|p - r| <= ½(|1 - Σf/(σ√(2π))| + B/(σ√(2π))) <= B/(σ√(2π)) < 0.1211/σ²`. So a discrete Gaussian in `d` coordinates is within `d` times this of a Gaussian whose sum
//! with integers was rounded, which is post-processing of Gaussian noise at the same L2 sensitivity. [`close.rs`](crate) prices the distance.
//!
//! **The rounded Laplace** likewise: `f(x) = e^(-|x|/b)` has `∫|f''| = 4/b`, the bend at zero included, and mass `2b`: at most `1/(4b²)`.
//!
//! **From below** rounding counts, too: it hides where between two integers an output was. For shifts by `s` the best test of noise that is not
//! rounded is a threshold `τ` with `g(τ) = Pr[s + X >= τ] - e^ε Pr[X >= τ]`; rounded outputs have those half-way between integers, and one of them is within a
//! half of `τ`. At `τ + h` the two densities in `g'` have a quotient of `e^(sh/σ²)` and a geometric mean of at most
//! `m = e^(ε/2) e^(-s²/(8σ²))/(σ√(2π))`, so they differ by at most `2m sinh(s|h|/(2σ²))`, and `g` falls by at most `m(cosh w - 1)/w <= (m w/2) e^(w²/12)` with
//! `w = s/(4σ²)`. With `u = s/σ` that is `e^(ε/2) u e^(-cu²)/(8σ²√(2π))`, `c = 1/8 - 1/(192σ²)`; for `σ² >= 0.24` it is at most `0.0666 e^(ε/2)/σ²`, since
//! `u e^(-cu²) <= 1/√(2ce)`. Beside other parts with the loss `L`, `ε` is `ε - L`, and the mean of `e^(-L/2)` is the sum of `√(pq)`, at most one: so each part adds no more
//! than it does alone, one after the other. As `e^(ε/2) <= (1 + e^ε)/2`, this is a distance of `0.0333/σ²` more, `0.155/σ²` in all. Where `σ² < 0.24`, so much of it is
//! above one half, and nothing is claimed. For Laplace noise the quotient is at most `e^(2|h|/b)` and `m = e^(ε/2)/(2b)`: `g` falls by at most
//! `e^(ε/2)(cosh(1/(2b)) - 1) < 0.1251 e^(ε/2)/b²` where `b >= 100`, and it is `0.313/b²` in all. Coordinates that do not differ need no distance.

use whit_core::{Mechanism, Ratio, round};

use crate::discrete_pair::MASSES_MAX;
use crate::lower::Side;
use crate::{Bracket, Step, pure};

/// The distance of a discrete Gaussian from a rounded one, times `σ²`, in ten-thousandths.
const ROUNDED_GAUSSIAN: u128 = 1211;
/// That of a discrete Laplace, times `b²`.
const ROUNDED_LAPLACE: u128 = 2500;
/// The same with what rounding hides.
const HIDDEN_GAUSSIAN: u128 = 1550;
/// Likewise.
const HIDDEN_LAPLACE: u128 = 3130;
/// Discrete Gaussians with more noise than this are priced as rounded ones: their lattices are long.
const LATTICE_SIGMA: f64 = 256.0;
/// Discrete Laplace noise of smaller rates is nearly continuous: a distance below `1e-12`.
const RATE_LONG: f64 = 1e-6;
/// Likewise for shifts from here on.
const SHIFT_MAX: f64 = 4_294_967_296.0;
/// Whole numbers below this are floats, and so are their successors.
const WHOLE_MAX: f64 = 4_503_599_627_370_496.0;
/// A composition of more different steps than this takes long.
const STEPS_MAX: usize = 64;

/// Of these, so many may be something else than Gaussian: the losses of different discrete mechanisms multiply.
const OTHERS_MAX: usize = 3;

/// An ideal mechanism as steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<(Step, u64)>,
    /// How far the event is from these, in total variation; rounded up.
    pub(crate) distance: f64,
}

/// The steps of a mechanism without inexact samplers; `None` if a part has none, or there are too many for an exact answer.
pub(crate) fn steps(ideal: &Mechanism, side: Side) -> Option<Steps> {
    let mut found = Steps {
        steps: Vec::new(),
        distance: 0.0,
    };
    // Equal parts are common, and are counted before they are read. Equal is what is equal, not what looks the same: text of long numbers is
    // abbreviated. There are at most STEPS_MAX different ones to compare with.
    let mut parts: Vec<(&Mechanism, u64)> = Vec::new();
    for part in flat(ideal) {
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, count)) => *count += 1,
            None => parts.push((part, 1)),
        }
        if parts.len() > STEPS_MAX {
            return None;
        }
    }
    for (part, count) in parts {
        found.add(part, count, side)?;
    }
    let others = found
        .steps
        .iter()
        .filter(|(step, _)| !matches!(step, Step::Gaussian { .. }));
    (others.count() <= OTHERS_MAX).then_some(found)
}

fn flat(mechanism: &Mechanism) -> Vec<&Mechanism> {
    match mechanism {
        Mechanism::Composition(parts) => parts.iter().flat_map(flat).collect(),
        single => vec![single],
    }
}

/// The largest whole number whose square is at most this, if floats can tell.
fn whole_root(square: &Ratio) -> Option<f64> {
    let guess = bracket(square).sqrt().lower().floor();
    let fits = |root: f64| {
        let root = Ratio::from_f64(root)?;
        Some(&root * &root <= *square)
    };
    let mut root = guess.max(0.0);
    if root < WHOLE_MAX && fits(root + 1.0)? {
        root += 1.0;
    }
    (root < WHOLE_MAX && fits(root)? && !fits(root + 1.0)?).then_some(root)
}

/// The float on the side that is asked for.
fn towards(value: &Ratio, side: Side) -> f64 {
    match side {
        Side::Upper => value.to_f64_up(),
        Side::Lower => value.to_f64_down(),
    }
}

/// The other one: less noise is the worse case.
fn noise(scale: &Ratio, side: Side) -> f64 {
    match side {
        Side::Upper => scale.to_f64_down(),
        Side::Lower => scale.to_f64_up(),
    }
}

impl Steps {
    fn add(&mut self, part: &Mechanism, count: u64, side: Side) -> Option<()> {
        let step = match part {
            Mechanism::DiscreteLaplace {
                scale,
                sensitivity_l1,
                coordinates,
            } => {
                let shift = u64::try_from(sensitivity_l1.floor()).ok()?;
                let rate = towards(&Ratio::one().checked_div(scale.ratio())?, side);
                let long = shift >= MASSES_MAX && shift < WHOLE_MAX as u64 && rate <= RATE_LONG;
                match (shift, *coordinates) {
                    (0, _) => return Some(()),
                    (_, 0 | 1) if long => {
                        let constant = match side {
                            Side::Upper => ROUNDED_LAPLACE,
                            Side::Lower => HIDDEN_LAPLACE,
                        };
                        self.is_apart(constant, scale.ratio(), 1, count)?;
                        Step::Laplace {
                            scale: noise(scale.ratio(), side),
                            sensitivity: shift as f64,
                        }
                    }
                    (_, 2..) if side == Side::Upper => pure_step(part)?,
                    _ => Step::DiscreteLaplace {
                        rate,
                        sensitivity: shift,
                    },
                }
            }
            Mechanism::DiscreteGaussian {
                scale,
                sensitivity_l2_square,
                coordinates,
            } => {
                let (sigma, coordinates) = (scale.ratio(), (*coordinates).max(1));
                let shift = match (coordinates, whole_root(sensitivity_l2_square)) {
                    (1, Some(whole)) => whole,
                    (_, Some(whole)) if side == Side::Lower => whole,
                    (_, None) if side == Side::Lower => 0.0,
                    _ => bracket(sensitivity_l2_square).sqrt().upper(),
                };
                let exact = sigma.to_f64_down() == sigma.to_f64_up();
                let short = sigma.to_f64_up() <= LATTICE_SIGMA && shift < SHIFT_MAX;
                if shift == 0.0 {
                    return Some(());
                } else if coordinates == 1 && exact && short {
                    Step::DiscreteGaussian {
                        sigma: sigma.to_f64_up(),
                        sensitivity: shift as u64,
                    }
                } else {
                    match side {
                        Side::Upper => {
                            self.is_apart(ROUNDED_GAUSSIAN, sigma, coordinates, count)?
                        }
                        Side::Lower => self.is_apart(HIDDEN_GAUSSIAN, sigma, 1, count)?,
                    }
                    Step::Gaussian {
                        sigma: noise(sigma, side),
                        sensitivity: shift,
                    }
                }
            }
            Mechanism::RandomizedResponse { keep, categories } => {
                let uniform = Ratio::new(1, u128::from(*categories)).ok()?;
                let epsilon = match (side, *keep.ratio() >= uniform) {
                    (Side::Upper, true) => pure::epsilon(part).ok()?.value(),
                    (Side::Upper, false) => {
                        self.steps.push((pure_step(part)?, count));
                        return Some(());
                    }
                    (Side::Lower, true) => response_epsilon_lower(keep.ratio(), *categories)?,
                    (Side::Lower, false) => return Some(()),
                };
                Step::RandomizedResponse {
                    epsilon,
                    categories: *categories,
                }
            }
            Mechanism::BoundedRange { epsilon } => Step::Exponential {
                epsilon: towards(epsilon, side),
            },
            Mechanism::Pure { epsilon } => Step::Approximate {
                epsilon: towards(epsilon, side),
                delta: 0.0,
            },
            // An event has as many selections as keys that neighbours differ at, whatever the relation.
            Mechanism::PartitionSelection { .. } if side == Side::Lower => return Some(()),
            Mechanism::Approximate { epsilon, delta }
            | Mechanism::PartitionSelection { epsilon, delta } => Step::Approximate {
                epsilon: towards(epsilon, side),
                delta: towards(delta.ratio(), side),
            },
            Mechanism::Concentrated { rho } if rho.is_zero() => return Some(()),
            Mechanism::Concentrated { rho } => match side {
                Side::Upper => Step::Concentrated {
                    rho: rho.to_f64_up(),
                },
                Side::Lower => Step::Gaussian {
                    sigma: 1.0,
                    sensitivity: (Bracket::exact(2.0) * bracket(rho)).sqrt().lower().max(0.0),
                },
            },
            _ => return None,
        };
        self.steps.push((step, count));
        Some(())
    }

    /// Adds `constant/(10⁴ scale²)` to the distance, for each coordinate of each part.
    fn is_apart(
        &mut self,
        constant: u128,
        scale: &Ratio,
        coordinates: u64,
        count: u64,
    ) -> Option<()> {
        let each = Ratio::new(constant, 10_000)
            .ok()?
            .checked_div(&(scale * scale))?;
        let all = &(&each * &Ratio::from(coordinates)) * &Ratio::from(count);
        self.distance = round::add_up(self.distance, all.to_f64_up());
        Some(())
    }
}

fn pure_step(part: &Mechanism) -> Option<Step> {
    Some(Step::Approximate {
        epsilon: pure::epsilon(part).ok()?.value(),
        delta: 0.0,
    })
}

/// `ln(keep (m-1)/(1-keep))` from below.
fn response_epsilon_lower(keep: &Ratio, categories: u64) -> Option<f64> {
    let lie = Ratio::from_rbig(Ratio::one().as_rbig() - keep.as_rbig())?;
    let odds = (keep * &Ratio::from(categories - 1)).checked_div(&lie)?;
    Some(Bracket::exact(odds.to_f64_down()).ln().lower().max(0.0))
}

fn bracket(ratio: &Ratio) -> Bracket {
    Bracket::new(ratio.to_f64_down(), ratio.to_f64_up())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{delta, price};
    use whit_core::{Delta, Epsilon, Event, Neighbours, Probability, Scale};

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("not zero")
    }

    fn gaussian(sigma: Ratio, square: Ratio, coordinates: u64) -> Mechanism {
        Mechanism::DiscreteGaussian {
            scale: Scale::new(sigma).expect("in range"),
            sensitivity_l2_square: square,
            coordinates,
        }
    }

    fn laplace(scale: Ratio, sensitivity_l1: Ratio, coordinates: u64) -> Mechanism {
        Mechanism::DiscreteLaplace {
            scale: Scale::new(scale).expect("in range"),
            sensitivity_l1,
            coordinates,
        }
    }

    fn one(mechanism: &Mechanism, side: Side) -> (Option<Step>, f64) {
        let found = steps(mechanism, side).expect("known");
        assert!(found.steps.len() <= 1);
        let step = found.steps.into_iter().next().map(|(step, count)| {
            assert_eq!(count, 1);
            step
        });
        (step, found.distance)
    }

    #[test]
    fn whole_roots() {
        for (square, root) in [
            (ratio(0, 1), 0.0),
            (ratio(99, 100), 0.0),
            (ratio(1, 1), 1.0),
            (ratio(2, 1), 1.0),
            (ratio(4, 1), 2.0),
            (ratio(399, 100), 1.0),
        ] {
            assert_eq!(whole_root(&square), Some(root), "{square:?}");
        }
        // Right below and at a square that no float holds.
        let large = (1_u128 << 51) + 3;
        assert_eq!(whole_root(&ratio(large * large, 1)), Some(large as f64));
        let below = whole_root(&ratio(large * large - 1, 1));
        assert_eq!(below, Some((large - 1) as f64));
        assert_eq!(whole_root(&Ratio::power_of_two(120)), None);
    }

    /// The table of the module.
    #[test]
    fn each_part_has_its_step() {
        let third = laplace(ratio(3, 1), ratio(5, 2), 1);
        let (Some(Step::DiscreteLaplace { rate, sensitivity }), 0.0) = one(&third, Side::Upper)
        else {
            panic!("a lattice");
        };
        let third = 1.0 / 3.0..0.333_333_333_333_34;
        assert!(sensitivity == 2 && third.contains(&rate));
        let several = laplace(ratio(4, 1), ratio(3, 1), 7);
        let pure = Step::Approximate {
            epsilon: 0.75,
            delta: 0.0,
        };
        assert_eq!(one(&several, Side::Upper), (Some(pure), 0.0));
        let single = Step::DiscreteLaplace {
            rate: 0.25,
            sensitivity: 3,
        };
        assert_eq!(one(&several, Side::Lower), (Some(single), 0.0));
        // Integers that differ by less than one are equal.
        let nothing = laplace(ratio(4, 1), ratio(1, 2), 1);
        assert_eq!(one(&nothing, Side::Upper), (None, 0.0));

        let short = gaussian(ratio(7, 2), ratio(5, 1), 1);
        let lattice = Step::DiscreteGaussian {
            sigma: 3.5,
            sensitivity: 2,
        };
        assert_eq!(one(&short, Side::Upper), (Some(lattice), 0.0));
        let vector = gaussian(ratio(7, 2), ratio(4, 1), 3);
        let (Some(Step::Gaussian { sigma, sensitivity }), distance) = one(&vector, Side::Upper)
        else {
            panic!("rounded");
        };
        assert!(sigma == 3.5 && (2.0..2.000_000_001).contains(&sensitivity));
        assert!((distance - 3.0 * 0.1211 / 12.25).abs() < 1e-15);
        // No float is a third.
        assert!(one(&gaussian(ratio(1, 3), ratio(1, 1), 1), Side::Upper).1 > 1.0);
        let keep = Probability::new(ratio(3, 4)).expect("a share");
        let response = Mechanism::RandomizedResponse {
            keep: keep.clone(),
            categories: 2,
        };
        for side in [Side::Upper, Side::Lower] {
            let (Some(Step::RandomizedResponse { epsilon, .. }), 0.0) = one(&response, side) else {
                panic!("itself");
            };
            assert!((epsilon - 3_f64.ln()).abs() < 1e-15);
        }
        // Who mostly lies among three tells less than who mostly does not.
        let liar = Mechanism::RandomizedResponse {
            keep: Probability::new(ratio(1, 10)).expect("a share"),
            categories: 3,
        };
        assert!(matches!(
            one(&liar, Side::Upper).0,
            Some(Step::Approximate { .. })
        ));
        let certain = Mechanism::RandomizedResponse {
            keep: Probability::new(Ratio::one()).expect("a share"),
            categories: 3,
        };
        assert_eq!(steps(&certain, Side::Upper), None);
    }

    #[test]
    fn equal_parts_are_counted_and_many_are_left_alone() {
        let part = laplace(ratio(3, 1), ratio(1, 1), 1);
        let nested = Mechanism::Composition(vec![
            part.clone(),
            Mechanism::Composition(vec![part.clone(), part]),
        ]);
        let found = steps(&nested, Side::Upper).expect("known");
        assert!(matches!(&found.steps[..], [(_, 3)]));
        let different = |count| {
            let parts = (1..=count).map(|b| laplace(ratio(b, 1), ratio(1, 1), 1));
            steps(&Mechanism::Composition(parts.collect()), Side::Upper)
        };
        assert!(different(3).is_some() && different(4).is_none() && different(100).is_none());
    }

    /// Numbers beyond 128 bits are abbreviated where they are shown: `1234567890123456789..9876543210987654321` is both of these, a
    /// hundred apart. A small loss first must not stand for the large ones after it.
    #[test]
    fn parts_that_look_alike_are_told_apart() {
        let part = |numerator: &str| Mechanism::Pure {
            epsilon: format!("{numerator}/1000000000000000000000000000000000000000003")
                .parse()
                .expect("a ratio"),
        };
        let small = part("1234567890123456789009876543210987654321");
        let large = part("123456789012345678900009876543210987654321");
        assert_eq!(format!("{small:?}"), format!("{large:?}"));
        let mut parts = vec![small];
        parts.extend(vec![large; 20]);
        let whole = Mechanism::Composition(parts);
        let counts: Vec<_> = steps(&whole, Side::Upper)
            .expect("known")
            .steps
            .into_iter()
            .map(|(_, count)| count)
            .collect();
        assert_eq!(counts, [1, 20]);
        let slack = Delta::new(1e-6).expect("below one");
        let paid = price(&event(whole), slack).expect("priced");
        assert!(paid.epsilon.value() > 2.0, "{paid:?}");
    }

    /// The distance from the rounded Gaussian, added up.
    #[test]
    fn distance_of_the_rounded_gaussian() {
        for sigma in [0.7_f64, 1.0, 2.0, 5.0, 20.0] {
            let reach = (40.0 * sigma) as i32;
            let f = |z: i32| (-0.5 * (f64::from(z) / sigma).powi(2)).exp();
            let total: f64 = (-reach..=reach).map(f).sum();
            let upto = |x: f64| 0.5 * libm::erfc(-x / sigma / 2_f64.sqrt());
            let apart = |z: i32| {
                let z = f64::from(z);
                // From the nearer end, so that small masses keep their digits.
                let (low, high) = if z > 0.0 {
                    (-z - 0.5, 0.5 - z)
                } else {
                    (z - 0.5, z + 0.5)
                };
                (f(z as i32) / total - (upto(high) - upto(low))).abs()
            };
            let distance = 0.5 * (-reach..=reach).map(apart).sum::<f64>();
            let bound = ROUNDED_GAUSSIAN as f64 / 1e4 / (sigma * sigma);
            assert!(distance <= bound, "{sigma}: {distance} {bound}");
            assert!(
                sigma < 2.0 || distance > 0.15 * bound,
                "{sigma}: {distance} {bound}"
            );
        }
    }

    /// What rounding hides of shifted noise is within what is charged for it, and nearly all of that where the best threshold is an integer.
    #[test]
    fn rounding_hides_no_more_than_is_charged() {
        // The largest part of the charge that was found to be needed.
        let most = |sigma: f64,
                    charged: u128,
                    survival: &dyn Fn(f64) -> f64,
                    best: &dyn Fn(f64, f64) -> f64| {
            let mut found = 0.0_f64;
            for shift in (1..9).chain([2 * sigma.ceil() as i32]) {
                for tenths in -30..=30 {
                    let (shift, epsilon) = (f64::from(shift), f64::from(tenths) / 10.0);
                    let gain = |threshold: f64| {
                        survival(threshold - shift) - epsilon.exp() * survival(threshold)
                    };
                    let reach = (10.0 * sigma + shift) as i32 + 10;
                    let rounded = (-reach..=reach)
                        .map(|whole| gain(f64::from(whole) + 0.5))
                        .fold(0.0_f64.max(1.0 - epsilon.exp()), f64::max);
                    let allowed = charged as f64 / 1e4 * (1.0 + epsilon.exp()) / (sigma * sigma);
                    found = found.max((gain(best(shift, epsilon)) - rounded) / allowed);
                }
            }
            found
        };
        for sigma in [0.5, 0.8, 1.0, 2.5, 20.0] {
            let survival = |x: f64| 0.5 * libm::erfc(x / sigma / 2_f64.sqrt());
            let best = |shift: f64, epsilon: f64| shift / 2.0 + sigma * sigma * epsilon / shift;
            let part = most(sigma, HIDDEN_GAUSSIAN - ROUNDED_GAUSSIAN, &survival, &best);
            assert!(
                part <= 1.0 && (sigma < 20.0 || part > 0.8),
                "{sigma}: {part}"
            );
        }
        for scale in [100.0, 300.0] {
            let survival = |x: f64| {
                let tail = 0.5 * (-x.abs() / scale).exp();
                if x > 0.0 { tail } else { 1.0 - tail }
            };
            let best = |shift: f64, epsilon: f64| (shift + scale * epsilon) / 2.0;
            let part = most(scale, HIDDEN_LAPLACE - ROUNDED_LAPLACE, &survival, &best);
            assert!(part <= 1.0 && part > 0.8, "{scale}: {part}");
        }
    }

    fn event(mechanism: Mechanism) -> Event {
        Event::new(Neighbours::AddRemove, mechanism)
    }

    fn profile(mechanism: &Mechanism, epsilon: f64) -> crate::Answer {
        let epsilon = Epsilon::new(epsilon).expect("in range");
        delta(&event(mechanism.clone()), epsilon).expect("priced")
    }

    /// Sums over all outputs, for integers that differ by `shift` in the first of two coordinates.
    #[test]
    fn profiles_hold_what_outputs_say() {
        let brute = |weight: &dyn Fn(i32) -> f64, shift: i32, epsilon: f64| {
            let total: f64 = (-400..=400).map(weight).sum();
            let gain = |z: i32| (weight(z) - epsilon.exp() * weight(z - shift)).max(0.0);
            (-400..=400).map(gain).sum::<f64>() / total
        };
        for epsilon in [0.0, 0.3, 1.0, 1.9] {
            let truth = brute(&|z| (-f64::from(z.abs()) / 3.0).exp(), 6, epsilon);
            let mechanism = laplace(ratio(3, 1), ratio(6, 1), 1);
            let found = profile(&mechanism, epsilon).bounds;
            assert!(found.lower() <= truth * (1.0 + 1e-9) && truth <= found.upper() + 1e-12);
            assert!(found.relative_width() < 1e-9, "{found:?} {truth}");
            let pair = profile(&laplace(ratio(3, 1), ratio(6, 1), 2), epsilon).bounds;
            assert!(pair.lower() <= truth * (1.0 + 1e-9) && truth <= pair.upper() + 1e-12);
            let truth = brute(&|z| (-f64::from(z * z) / 50.0).exp(), 4, epsilon);
            let found = profile(&gaussian(ratio(5, 1), ratio(16, 1), 1), epsilon).bounds;
            assert!(found.lower() <= truth * (1.0 + 1e-9) && truth <= found.upper() + 1e-12);
            assert!(found.relative_width() < 1e-9, "{found:?} {truth}");
            // The same with a distance.
            let found = profile(&gaussian(ratio(5, 1), ratio(16, 1), 2), epsilon).bounds;
            assert!(found.lower() <= truth && truth <= found.upper());
        }
    }

    /// A long lattice costs what Laplace noise costs: a hundred times with `Δ/b = 0.1` (exact residue sums in mpmath).
    #[test]
    fn laplace_on_fine_grids_costs_what_laplace_costs() {
        let part = laplace(ratio(10 << 40, 1), &ratio(1 << 40, 1) + &ratio(1, 2), 1);
        let whole = Mechanism::Composition(vec![part; 100]);
        let slack = Delta::new(1e-6).expect("below one");
        let paid = price(&event(whole), slack).expect("priced");
        assert!(
            (paid.epsilon.value() - 4.692_667_4).abs() < 1e-6,
            "{paid:?}"
        );
        // Where noise is a few steps, the distance would cost more than it saves.
        let coarse = laplace(ratio(100, 1), ratio(100_000, 1), 1);
        let found = steps(&coarse, Side::Upper).expect("known");
        assert_eq!(found.distance, 0.0);
    }

    /// Never dearer than before, and for fine grids the price of a Gaussian.
    #[test]
    fn gaussians_on_fine_grids_cost_what_gaussians_cost() {
        let sigma = Ratio::power_of_two(40);
        let slack = Delta::new(1e-6).expect("below one");
        for (square, coordinates, parts, golden) in [
            // Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) = 1e-6 at μ = 1 and μ = 1/2.
            (Ratio::power_of_two(80), 1, 1, 4.886_554_1),
            (Ratio::power_of_two(80), 5, 1, 4.886_554_1),
            (Ratio::power_of_two(76), 5, 4, 2.254_084_7),
        ] {
            let part = gaussian(sigma.clone(), square, coordinates);
            let whole = Mechanism::Composition(vec![part; parts]);
            let paid = price(&event(whole.clone()), slack).expect("priced");
            assert!((paid.epsilon.value() - golden).abs() < 1e-5, "{paid:?}");
            assert!(paid.delta <= slack && paid.theorem.contains("ZDW22"));
            let at = profile(&whole, paid.epsilon.value()).bounds;
            assert!(at.upper() <= 1e-6 && at.lower() > 0.9999e-6, "{at:?}");
        }
    }

    /// A pure mechanism keeps its delta unless much is gained; parts with a delta are composed with the others.
    #[test]
    fn delta_is_spent_where_it_is_worth_it() {
        let slack = Delta::new(1e-6).expect("below one");
        let priced = |mechanism| price(&event(mechanism), slack).expect("priced");
        let single = priced(laplace(ratio(2, 1), ratio(1, 1), 1));
        assert_eq!((single.epsilon.value(), single.delta), (0.5, Delta::ZERO));
        let many = Mechanism::Composition(vec![laplace(ratio(10, 1), ratio(1, 1), 1); 200]);
        let many = priced(many);
        // zCDP says 8.4.
        assert!(
            many.epsilon.value() < 7.3 && many.delta == slack,
            "{many:?}"
        );
        let approximate = Mechanism::Approximate {
            epsilon: ratio(1, 10),
            delta: Probability::new(ratio(1, 1_000_000_000)).expect("a share"),
        };
        let black_boxes = priced(Mechanism::Composition(vec![approximate; 100]));
        // Basic composition says 10.
        assert!(black_boxes.epsilon.value() < 5.5, "{black_boxes:?}");
    }
}
