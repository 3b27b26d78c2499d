//! # The accountant
//! A [`Composition`] of steps with fixed parameters, what it costs in every currency, and what proves it.
//!
//! Parameters must not depend on answers: what is asked of each step may, how noisy it is may not. For budgets that are
//! spent adaptively there are [`filter`](crate::filter)s.
//!
//! ```
//! use whit_accounting::{Composition, Step};
//! use whit_core::Neighbours;
//!
//! let step = Step::PoissonGaussian { rate: 0.01, noise_multiplier: 4.0 };
//! let training = Composition::new(Neighbours::AddRemove, [(step, 10_000)])?;
//! let answer = training.epsilon(1e-5)?;
//! assert!((answer.bounds.estimate() - 0.946_866_800_8).abs() < 1e-9 && answer.bounds.relative_width() < 1e-6);
//! # Ok::<(), whit_accounting::Error>(())
//! ```

use whit_core::Neighbours;

use crate::engine::{Engine, Origin, RENYI};
use crate::lower::{Lowered, Side, Way, lower};
use crate::step::COUNT_MAX;
use crate::{Bracket, Error, Result, Step};

/// Steps that are taken on the same data.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    neighbours: Neighbours,
    steps: Vec<(Step, u64)>,
    group: u64,
}

/// A number between proven bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The truth lies in between; infinite where no finite number is true.
    pub bounds: Bracket,
    /// Which engine found it.
    pub engine: &'static str,
    /// What proves it, with the keys of its references.
    pub theorem: &'static str,
}

impl Answer {
    /// Of nothing at all.
    pub(crate) fn nothing() -> Self {
        Self {
            bounds: Bracket::ZERO,
            engine: "closed form",
            theorem: "nothing was done",
        }
    }
}

impl Composition {
    /// So many times each step, for neighbours of the given relation.
    pub fn new(
        neighbours: Neighbours,
        steps: impl IntoIterator<Item = (Step, u64)>,
    ) -> Result<Self> {
        let steps: Vec<_> = steps.into_iter().collect();
        if steps.is_empty() {
            return Err(Error::Empty);
        }
        if !matches!(neighbours, Neighbours::AddRemove | Neighbours::ReplaceOne) {
            return Err(Error::WrongRelation {
                mechanism: "this composition".into(),
                neighbours,
            });
        }
        for (step, count) in &steps {
            step.check(neighbours)?;
            if *count == 0 || *count > COUNT_MAX {
                let (found, range) = (*count as f64, "a whole number from 1 to 2^53");
                return Err(Error::OutOfRange {
                    step: step.name(),
                    what: "count",
                    found,
                    range,
                });
            }
        }
        Ok(Self {
            neighbours,
            steps,
            group: 1,
        })
    }

    /// The same, for `size` units that change together.
    pub fn for_group(mut self, size: u64) -> Result<Self> {
        if size == 0 || size > 1 << 20 {
            let range = "a whole number from 1 to 2^20";
            return Err(Error::OutOfRange {
                step: "group",
                what: "size",
                found: size as f64,
                range,
            });
        }
        self.group = size;
        Ok(self)
    }

    /// Whom it protects.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// How many units change together.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// The steps and their counts.
    pub fn steps(&self) -> &[(Step, u64)] {
        &self.steps
    }

    /// The smallest epsilon at `delta`, which is from 0 to below 1.
    pub fn epsilon(&self, delta: f64) -> Result<Answer> {
        if !(0.0..1.0).contains(&delta) {
            return Err(Error::OutOfRange {
                step: "query",
                what: "delta",
                found: delta,
                range: "a number from 0 to below 1",
            });
        }
        if delta == 0.0 && self.steps.iter().any(|(step, _)| unbounded(step)) {
            return Ok(Answer {
                bounds: Bracket::exact(f64::INFINITY),
                engine: "closed form",
                theorem: "losses of Gaussian noise have no bound",
            });
        }
        let answer = self.both(|engine| engine.epsilon(delta))?;
        let answer = self.or_by_divergences(answer, |way| {
            Some(self.divergences(way).ok()?.epsilon(delta).value)
        });
        match self.pure_if_wide(answer) {
            // No more than the largest loss.
            Some(pure) if pure.bounds.upper() < answer.bounds.upper() => Ok(Answer {
                bounds: Bracket::new(
                    answer.bounds.lower().min(pure.bounds.upper()),
                    pure.bounds.upper(),
                ),
                ..pure
            }),
            _ => Ok(answer),
        }
    }

    /// The smallest delta at `epsilon`, which is not negative. At 0 this is the total variation: the largest advantage of an
    /// attacker who guesses which neighbour it was.
    pub fn delta(&self, epsilon: f64) -> Result<Answer> {
        if !(0.0..f64::INFINITY).contains(&epsilon) {
            return Err(Error::OutOfRange {
                step: "query",
                what: "epsilon",
                found: epsilon,
                range: "a number from 0 on",
            });
        }
        let answer = self.both(|engine| engine.delta(epsilon))?;
        let answer = self.or_by_divergences(answer, |way| {
            Some(self.divergences(way).ok()?.delta(epsilon).value)
        });
        match self.pure_if_wide(answer) {
            // No loss is larger.
            Some(pure) if pure.bounds.upper() <= epsilon => Ok(Answer {
                bounds: Bracket::ZERO,
                ..pure
            }),
            _ => Ok(answer),
        }
    }

    /// The largest loss, where an answer leaves room for it.
    fn pure_if_wide(&self, answer: Answer) -> Option<Answer> {
        let finite = !self.steps.iter().any(|(step, _)| unbounded(step));
        if !(finite && wide(answer.bounds)) {
            return None;
        }
        self.both(|engine| engine.epsilon(0.0)).ok()
    }

    /// Of the exponential mechanism, the pair that dominates is not attained, and its divergences may say more; so they may
    /// where an engine leaves its bounds far apart.
    fn or_by_divergences(&self, answer: Answer, upper: impl Fn(Way) -> Option<f64>) -> Answer {
        let exponential = |(step, _): &(Step, u64)| matches!(step, Step::Exponential { .. });
        if !self.steps.iter().any(exponential) && !wide(answer.bounds) {
            return answer;
        }
        let both = [Way::Forth, Way::Back].map(upper);
        match both {
            [Some(forth), Some(back)] if forth.max(back) < answer.bounds.upper() => {
                let upper = forth.max(back);
                let bounds = Bracket::new(answer.bounds.lower().min(upper), upper);
                let Origin { engine, theorem } = RENYI;
                Answer {
                    bounds,
                    engine,
                    theorem,
                }
            }
            _ => answer,
        }
    }

    /// The larger of both directions, with each side from its own pairs where they differ.
    fn both(&self, mut ask: impl FnMut(&mut Engine) -> (Bracket, Origin)) -> Result<Answer> {
        let mut worst: Option<(Bracket, Origin)> = None;
        let ways: &[Way] = if self.symmetric() {
            &[Way::Forth]
        } else {
            &[Way::Forth, Way::Back]
        };
        for way in ways {
            let (mut found, origin) = ask(&mut Engine::new(self.lowered(Side::Upper, *way)?)?);
            if !self.tight() {
                let lower = match Engine::new(self.lowered(Side::Lower, *way)?) {
                    Ok(mut engine) => ask(&mut engine).0.lower(),
                    // What is attained may be beyond the engines here; then nothing is claimed.
                    Err(_) => 0.0,
                };
                found = Bracket::new(lower.min(found.upper()), found.upper());
            }
            worst = Some(match worst {
                Some((known, by)) => (
                    known.max(found),
                    if known.upper() >= found.upper() {
                        by
                    } else {
                        origin
                    },
                ),
                None => (found, origin),
            });
        }
        let (bounds, Origin { engine, theorem }) = worst.ok_or(Error::Empty)?;
        Ok(Answer {
            bounds,
            engine,
            theorem,
        })
    }

    fn lowered(&self, side: Side, way: Way) -> Result<Vec<Lowered>> {
        let lowered = self
            .steps
            .iter()
            .map(|(step, count)| lower(step, *count, self.group, self.neighbours, side, way));
        lowered.collect()
    }

    /// Whether both directions have the same pairs.
    fn symmetric(&self) -> bool {
        self.steps.iter().all(|(step, _)| match step {
            Step::Tabulated { .. }
            | Step::PermuteAndFlip { .. }
            | Step::PartitionSelection { .. }
            | Step::RandomAllocation { .. } => false,
            Step::PoissonGaussian { .. } | Step::PoissonLaplace { .. } => {
                self.neighbours == Neighbours::ReplaceOne
            }
            _ => true,
        })
    }

    /// Whether every step's pair is attained, with parameters that are exact: then one computation proves both bounds.
    fn tight(&self) -> bool {
        let exact = |noise: f64, sensitivity: f64| {
            let quotient = Bracket::exact(noise)
                / (Bracket::exact(sensitivity) * Bracket::exact(self.group as f64));
            quotient.lower() == quotient.upper()
        };
        self.steps.iter().all(|(step, _)| match step {
            Step::Gaussian { sigma, sensitivity } => {
                *sensitivity == 0.0 || exact(*sigma, *sensitivity)
            }
            Step::Laplace { scale, sensitivity }
            | Step::PoissonLaplace {
                scale, sensitivity, ..
            } => *sensitivity == 0.0 || exact(*scale, *sensitivity),
            Step::Gdp { mu } => *mu == 0.0 || exact(1.0, *mu),
            Step::Approximate { epsilon, .. } => {
                (Bracket::exact(*epsilon) * Bracket::exact(self.group as f64)).relative_width()
                    == 0.0
            }
            // By itself it proves both bounds; beside others only the upper one.
            Step::FixedSizeGaussian { .. } => self.steps.len() == 1,
            Step::Exponential { .. }
            | Step::PermuteAndFlip { .. }
            | Step::PartitionSelection { .. } => false,
            // Of divergences nothing better is known; beside other steps a Gaussian is what is attained.
            Step::Concentrated { .. } => self
                .steps
                .iter()
                .all(|(step, _)| matches!(step, Step::Concentrated { .. })),
            _ => true,
        })
    }
}

/// Whether other theorems are worth asking.
fn wide(bounds: Bracket) -> bool {
    let width = bounds.relative_width();
    width.is_nan() || width > 1e-3
}

/// Whether some outcome of the step has an arbitrarily large loss.
fn unbounded(step: &Step) -> bool {
    match *step {
        Step::Gaussian { sensitivity, .. } => sensitivity > 0.0,
        Step::Gdp { mu } => mu > 0.0,
        Step::Concentrated { rho } => rho > 0.0,
        Step::DiscreteGaussian { sensitivity, .. } => sensitivity > 0,
        Step::PoissonGaussian { .. }
        | Step::FixedSizeGaussian { .. }
        | Step::RandomAllocation { .. }
        | Step::ShuffledBatches { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(step: Step, count: u64, delta: f64) -> Bracket {
        let composition = Composition::new(Neighbours::AddRemove, [(step, count)]);
        composition
            .and_then(|composition| composition.epsilon(delta))
            .expect("priced")
            .bounds
    }

    #[test]
    fn few_steps_have_finite_answers() {
        for count in 2..10 {
            let step = Step::PoissonGaussian {
                rate: 0.01,
                noise_multiplier: 4.0,
            };
            let found = epsilon(step, count, 1e-4);
            assert!(found.upper() < 0.05, "{count}: {found:?}");
        }
    }

    #[test]
    fn pure_losses_end() {
        let step = Step::Laplace {
            scale: 1000.0,
            sensitivity: 1.0,
        };
        let composition = Composition::new(Neighbours::AddRemove, [(step, 300)]).expect("in range");
        assert_eq!(
            composition.delta(1.0).expect("priced").bounds,
            Bracket::ZERO
        );
    }

    #[test]
    fn gaussian_losses_do_not() {
        for step in [
            Step::Gaussian {
                sigma: 1e300,
                sensitivity: 1.0,
            },
            Step::DiscreteGaussian {
                sigma: 10.0,
                sensitivity: 1,
            },
            Step::PoissonGaussian {
                rate: 0.01,
                noise_multiplier: 4.0,
            },
        ] {
            assert_eq!(epsilon(step, 100, 0.0), Bracket::exact(f64::INFINITY));
        }
    }
}
