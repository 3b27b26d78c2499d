//! # The same composition by every notion
//! What older accountants say beside the exact answer: basic and advanced composition, the moments accountant and Rényi divergences,
//! zCDP, and the optimal composition of black boxes. All are upper bounds; none is below the exact answer.

use whit_core::{Delta, Epsilon, Neighbours, Rho};

use crate::advanced::{self, Part};
use crate::curve::Curve;
use crate::lower::Way;
use crate::pair::Change;
use crate::rdp::{self, Divergence};
use crate::{Bracket, Composition, Error, Result, Step, tradeoff, zcdp};

/// An epsilon by one notion.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Notion {
    /// Its name.
    pub name: &'static str,
    /// The theorem it rests on.
    pub theorem: &'static str,
    /// The upper bound at the asked delta; infinite if it has none, absent if the notion does not know one of the steps.
    pub epsilon: Option<f64>,
}

impl Composition {
    /// The Rényi divergence of order `alpha` above 1, of the worse direction.
    pub fn renyi(&self, alpha: f64) -> Result<Bracket> {
        if !(alpha > 1.0 && alpha < f64::INFINITY) {
            return Err(Error::OutOfRange {
                step: "query",
                what: "alpha",
                found: alpha,
                range: "a number above 1",
            });
        }
        // Of these only upper bounds are known; the others alone are a lower bound.
        let bounded = |step: &Step| {
            matches!(
                step,
                Step::DiscreteGaussian { .. }
                    | Step::DiscreteLaplace { .. }
                    | Step::Exponential { .. }
                    | Step::PermuteAndFlip { .. }
            )
        };
        let exact = self.steps().iter().filter(|(step, _)| !bounded(step));
        let exact = Composition::new(self.neighbours(), exact.cloned())
            .and_then(|exact| exact.for_group(self.group()));
        let (mut lower, mut upper) = (0.0_f64, 0.0_f64);
        for way in [Way::Forth, Way::Back] {
            upper = upper.max(self.divergences(way)?.at(alpha).upper());
            if let Ok(exact) = &exact {
                lower = lower.max(exact.divergences(way)?.at(alpha).lower());
            }
        }
        Ok(Bracket::new(lower.min(upper), upper))
    }

    /// The least rate of false negatives of any test for one unit that has false positives at `rate`.
    pub fn false_negatives(&self, rate: f64) -> Result<Bracket> {
        if !(0.0..=1.0).contains(&rate) {
            return Err(Error::OutOfRange {
                step: "query",
                what: "fpr",
                found: rate,
                range: "a number from 0 to 1",
            });
        }
        // Refusals come before the search.
        self.delta(0.0)?;
        self.least(|one_way| tradeoff::false_negatives(one_way, rate))
    }

    /// The largest rate of true positives of such a test.
    pub fn true_positives(&self, rate: f64) -> Result<Bracket> {
        let missed = self.false_negatives(rate)?;
        Ok((Bracket::exact(1.0) - missed).clamp(0.0, 1.0))
    }

    /// The largest belief that a unit is there after such a test says so, given the belief before it.
    pub fn posterior(&self, prior: f64, rate: f64) -> Result<Bracket> {
        for (what, found) in [("prior", prior), ("fpr", rate)] {
            if !(0.0..=1.0).contains(&found) {
                let (step, range) = ("query", "a number from 0 to 1");
                return Err(Error::OutOfRange {
                    step,
                    what,
                    found,
                    range,
                });
            }
        }
        self.delta(0.0)?;
        let most = self.least(|one_way| -tradeoff::posterior(one_way, prior, rate))?;
        Ok(-most)
    }

    /// The smaller answer of both directions: somebody may test for a unit that left or for one that joined.
    fn least(&self, mut ask: impl FnMut(&mut OneWay) -> Bracket) -> Result<Bracket> {
        let mut both = [Way::Forth, Way::Back].map(|way| {
            ask(&mut OneWay {
                composition: self,
                way,
            })
        });
        both.sort_by(|one, other| one.lower().total_cmp(&other.lower()));
        let [one, other] = both;
        Ok(Bracket::new(one.lower(), one.upper().min(other.upper())))
    }

    /// Epsilon at `delta` by every notion that knows all steps, the exact one first.
    pub fn notions(&self, delta: Delta) -> Result<Vec<Notion>> {
        let exact = self.epsilon(delta.value())?;
        let mut notions = vec![Notion {
            name: "exact",
            theorem: exact.theorem,
            epsilon: Some(exact.bounds.upper()),
        }];
        let renyi = [Way::Forth, Way::Back]
            .into_iter()
            .map(|way| Ok(self.divergences(way)?.epsilon(delta.value()).value));
        let renyi: Result<Vec<f64>> = renyi.collect();
        notions.push(Notion {
            name: "Rényi DP (moments accountant)",
            theorem: "[Mir17, Prop. 1; ACG+16, Thm 2], converted by [CKS20, Prop. 12]",
            epsilon: renyi.ok().map(|both| both.into_iter().fold(0.0, f64::max)),
        });
        notions.push(Notion {
            name: "zCDP",
            theorem: "[BS16, Lem. 2.3], converted by [CKS20, Cor. 13]",
            epsilon: self
                .concentrated()
                .and_then(|rho| zcdp::epsilon(rho, delta).ok())
                .map(Epsilon::value),
        });
        let parts = self.black_boxes(delta);
        notions.push(Notion {
            name: "advanced composition",
            theorem: "[DRV10], as in [DR14, Thm 3.20] with the constants of [KOV15]",
            epsilon: parts
                .as_deref()
                .map(|parts| advanced::epsilon(parts, delta)),
        });
        notions.push(Notion {
            name: "basic composition",
            theorem: "[DR14, Thm 3.16]",
            epsilon: parts.as_deref().map(|parts| {
                let sum = advanced::basic(parts);
                if sum.delta <= delta.value() {
                    sum.epsilon
                } else {
                    f64::INFINITY
                }
            }),
        });
        Ok(notions)
    }

    pub(crate) fn divergences(&self, way: Way) -> Result<rdp::Composition> {
        let parts: Option<Vec<_>> = self
            .steps()
            .iter()
            .map(|(step, count)| Some((self.divergence(step, way)?, Bracket::exact(*count as f64))))
            .collect();
        parts.map(rdp::Composition::new).ok_or(Error::NoEngine {
            what: "a step without Rényi divergences",
        })
    }

    fn divergence(&self, step: &Step, way: Way) -> Option<Divergence> {
        let change = match (self.neighbours(), way) {
            (Neighbours::AddRemove, Way::Forth) => Change::Remove,
            (Neighbours::AddRemove, Way::Back) => Change::Add,
            _ => Change::Replace,
        };
        let group = Bracket::exact(self.group() as f64);
        let per = |noise: f64, sensitivity: f64| {
            Bracket::exact(noise) / (Bracket::exact(sensitivity) * group)
        };
        Some(match *step {
            Step::Gaussian { sensitivity, .. } | Step::Laplace { sensitivity, .. }
                if sensitivity == 0.0 =>
            {
                Divergence::Concentrated { rho: Bracket::ZERO }
            }
            Step::Gaussian { sigma, sensitivity } => Divergence::Gaussian {
                sigma: per(sigma, sensitivity),
            },
            Step::Laplace { scale, sensitivity } => Divergence::Laplace {
                scale: per(scale, sensitivity),
            },
            // Its divergences are at most those of the Gaussian with the same parameter [CKS20, Thm 14].
            Step::DiscreteGaussian { sigma, sensitivity } => {
                let sensitivity = Bracket::exact(sensitivity as f64) * group;
                let rho = sensitivity * sensitivity
                    / (Bracket::exact(2.0) * Bracket::exact(sigma) * Bracket::exact(sigma));
                Divergence::Concentrated { rho }
            }
            Step::DiscreteLaplace { rate, sensitivity } => Divergence::Pure {
                epsilon: Bracket::exact(rate) * Bracket::exact(sensitivity as f64) * group,
            },
            Step::RandomizedResponse {
                epsilon,
                categories,
            } if self.group() == 1 => Divergence::RandomizedResponse {
                epsilon: Bracket::exact(epsilon),
                categories,
            },
            Step::Exponential { epsilon } => {
                let epsilon = Bracket::exact(epsilon) * group;
                Divergence::Concentrated {
                    rho: epsilon * epsilon / Bracket::exact(8.0),
                }
            }
            Step::PermuteAndFlip { epsilon } => Divergence::Pure {
                epsilon: Bracket::exact(epsilon) * group,
            },
            Step::Approximate {
                epsilon,
                delta: 0.0,
            } => Divergence::Pure {
                epsilon: Bracket::exact(epsilon) * group,
            },
            Step::Concentrated { rho } => Divergence::Concentrated {
                rho: Bracket::exact(rho) * group * group,
            },
            Step::Gdp { mu } => {
                let mu = Bracket::exact(mu) * group;
                Divergence::Concentrated {
                    rho: mu * mu / Bracket::exact(2.0),
                }
            }
            Step::PoissonGaussian {
                rate,
                noise_multiplier,
            } if self.group() == 1 && rate < 1.0 => Divergence::SampledGaussian {
                rate,
                sigma: noise_multiplier,
                change,
            },
            Step::FixedSizeGaussian { fraction, sigma } if self.group() == 1 => {
                Divergence::FixedSizeGaussian {
                    rate: fraction,
                    sigma,
                }
            }
            _ => return None,
        })
    }

    /// The sum of the concentrated losses, if every step has one.
    fn concentrated(&self) -> Option<Rho> {
        let parts: Option<Vec<_>> =
            self.steps()
                .iter()
                .map(|(step, count)| {
                    let rho = match self.divergence(step, Way::Forth)? {
                        Divergence::Concentrated { rho } => rho,
                        Divergence::Gaussian { sigma } => Bracket::exact(0.5) / (sigma * sigma),
                        Divergence::Laplace { scale } => pure_rho(Bracket::exact(1.0) / scale),
                        Divergence::Pure { epsilon }
                        | Divergence::RandomizedResponse { epsilon, .. } => pure_rho(epsilon),
                        Divergence::SampledGaussian { .. }
                        | Divergence::FixedSizeGaussian { .. } => return None,
                    };
                    Some(rho * Bracket::exact(*count as f64))
                })
                .collect();
        let sum = parts?.into_iter().fold(Bracket::ZERO, |sum, rho| sum + rho);
        Rho::new(sum.upper()).ok()
    }

    /// Each step as an `(ε, δ)` of its own. Steps that are not pure share half of delta evenly.
    fn black_boxes(&self, delta: Delta) -> Option<Vec<Part>> {
        let total: f64 = self.steps().iter().map(|(_, count)| *count as f64).sum();
        let share = delta.value() / (2.0 * total);
        let parts = self.steps().iter().map(|(step, count)| {
            let one = Composition::new(self.neighbours(), [(step.clone(), 1)])
                .and_then(|one| one.for_group(self.group()))
                .ok()?;
            let pure = one.epsilon(0.0).ok()?.bounds.upper();
            let (epsilon, delta) = if pure.is_finite() {
                (pure, 0.0)
            } else {
                (one.epsilon(share).ok()?.bounds.upper(), share)
            };
            Some(Part {
                epsilon: Epsilon::new(epsilon).ok()?,
                delta: Delta::new(delta).ok()?,
                count: *count,
            })
        });
        parts.collect()
    }
}

/// `min(ε²/2, ε)`.
fn pure_rho(epsilon: Bracket) -> Bracket {
    let square = epsilon * epsilon / Bracket::exact(2.0);
    Bracket::new(
        square.lower().min(epsilon.lower()),
        square.upper().min(epsilon.upper()),
    )
}

/// The profile of one direction, asked anew for each epsilon.
struct OneWay<'a> {
    composition: &'a Composition,
    way: Way,
}

impl OneWay<'_> {
    fn at(&self, way: Way, epsilon: f64) -> Bracket {
        self.composition
            .one_way(way, &mut |engine| engine.delta(epsilon))
            .map_or(Bracket::new(0.0, 1.0), |answer| answer.bounds)
    }
}

impl Curve for OneWay<'_> {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        if epsilon < 0.0 {
            // By the other direction: δ(-ε) = 1 - e^-ε + e^-ε δ_r(ε).
            let other = match self.way {
                Way::Forth => Way::Back,
                Way::Back => Way::Forth,
            };
            let power = Bracket::exact(epsilon).exp();
            return (power * self.at(other, -epsilon) - Bracket::exact(epsilon).exp_m1())
                .clamp(0.0, 1.0);
        }
        self.at(self.way, epsilon)
    }

    fn infinite(&self) -> Bracket {
        // At an epsilon beyond all finite losses that matter only infinite ones are left.
        Bracket::new(0.0, self.at(self.way, 1e4).upper())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composition(step: Step, count: u64) -> Composition {
        Composition::new(Neighbours::AddRemove, [(step, count)]).expect("in range")
    }

    #[test]
    fn golden_divergences() {
        for (rate, noise_multiplier, alpha, golden) in [
            (0.01, 4.0, 32.0, 0.00010526360659081726),
            (0.01, 1.1, 2.5, 0.00016207740937000372),
            (0.004, 0.8, 16.0, 6.610441705211118),
        ] {
            let found = composition(
                Step::PoissonGaussian {
                    rate,
                    noise_multiplier,
                },
                1,
            )
            .renyi(alpha)
            .expect("known");
            assert!(
                found.lower() <= golden * (1.0 + 1e-9) && golden * (1.0 - 1e-9) <= found.upper(),
                "{found:?} {golden}"
            );
            assert!(found.relative_width() < 1e-9);
        }
    }

    /// `D_2` of discrete Laplace noise, summed over all outputs; only its largest loss is used from above.
    #[test]
    fn divergences_hold_the_truth_from_below() {
        let step = Step::DiscreteLaplace {
            rate: 0.1,
            sensitivity: 10,
        };
        let found = composition(step, 1).renyi(2.0).expect("known");
        assert!(
            found.lower() <= 0.62066 && 0.62066 <= found.upper(),
            "{found:?}"
        );
    }

    /// The directions of a sampled mechanism have different curves, and the truth is the lower of both: 0.413818 and 0.415651 by
    /// quadrature of the Neyman-Pearson tests.
    #[test]
    fn each_direction_has_its_own_trade_off() {
        let step = Step::PoissonGaussian {
            rate: 0.5,
            noise_multiplier: 1.0,
        };
        let found = composition(step, 1).false_negatives(0.4).expect("priced");
        assert!(
            found.lower() <= 0.413_818_5 && 0.413_817_5 <= found.upper(),
            "{found:?}"
        );
        assert!(found.relative_width() < 1e-4, "{found:?}");
    }

    #[test]
    fn golden_trade_off() {
        for (mu, rate, golden) in [
            (1.0, 0.01, 0.907637751926306),
            (2.5, 0.001, 0.7224825420032525),
        ] {
            let found = composition(Step::Gdp { mu }, 1)
                .false_negatives(rate)
                .expect("known");
            assert!(
                found.lower() <= golden * (1.0 + 1e-10) && golden * (1.0 - 1e-10) <= found.upper(),
                "{found:?} {golden}"
            );
            assert!(found.relative_width() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn no_notion_is_below_the_exact_one() {
        let delta = Delta::new(1e-5).expect("in range");
        for (step, count) in [
            (
                Step::Gaussian {
                    sigma: 20.0,
                    sensitivity: 1.0,
                },
                512,
            ),
            (
                Step::Laplace {
                    scale: 20.0,
                    sensitivity: 1.0,
                },
                512,
            ),
            (
                Step::PoissonGaussian {
                    rate: 0.01,
                    noise_multiplier: 4.0,
                },
                10_000,
            ),
            (
                Step::DiscreteLaplace {
                    rate: 0.1,
                    sensitivity: 1,
                },
                200,
            ),
            (Step::Exponential { epsilon: 0.1 }, 100),
        ] {
            let notions = composition(step.clone(), count)
                .notions(delta)
                .expect("known");
            let exact = notions[0].epsilon.expect("the exact answer");
            for notion in &notions[1..] {
                assert!(
                    notion
                        .epsilon
                        .is_none_or(|other| other >= exact * (1.0 - 1e-9)),
                    "{step:?} {notion:?} {exact}"
                );
            }
            assert!(
                notions
                    .iter()
                    .filter(|notion| notion.epsilon.is_some())
                    .count()
                    >= 4,
                "{notions:?}"
            );
        }
    }
}
