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

use crate::discrete_pair::MASSES_MAX;
use crate::engine::{Engine, Origin, RENYI};
use crate::lower::{Lowered, Side, Way, lower};
use crate::pld::Fineness;
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
    /// The truth lies in between; infinite where no finite number is true. Of zCDP alone and of shuffled reports alone, what lies in between is what
    /// their theorem says: no mechanism costs more, and it is not known that one costs as much.
    pub bounds: Bracket,
    /// Which engine found it.
    pub engine: &'static str,
    /// What proves it, with the keys of its references.
    pub theorem: &'static str,
}

impl Answer {
    /// The larger of two, with what proved it.
    fn or_worse(self, other: Self) -> Self {
        let bounds = self.bounds.max(other.bounds);
        if self.bounds.upper() >= other.bounds.upper() {
            Self { bounds, ..self }
        } else {
            Self { bounds, ..other }
        }
    }

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
        let mut total = 0_u64;
        for (step, count) in &steps {
            step.check(neighbours)?;
            // Beyond, counts and their sums are no floats.
            let times = count.checked_mul(step.epochs());
            let sum = times.and_then(|times| total.checked_add(times));
            match sum {
                Some(sum) if *count > 0 && sum <= COUNT_MAX => total = sum,
                _ => {
                    return Err(Error::OutOfRange {
                        step: step.name(),
                        what: "count",
                        found: *count as f64 * step.epochs() as f64,
                        range: "a whole number from 1 on, with all counts and epochs up to 2^53 in total",
                    });
                }
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
        check_delta(delta)?;
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

    /// The smallest epsilon at `delta` once more, by privacy-loss distributions on a grid and Fourier transforms alone: a second opinion
    /// on continuous and sampled noise, up to a thousandth wide.
    pub fn epsilon_by_grid(&self, delta: f64) -> Result<Answer> {
        check_delta(delta)?;
        let ask = |way: Way, fineness: Fineness| -> Result<Answer> {
            let one_side = |side: Side| -> Result<(Bracket, Origin)> {
                let mut engine = Engine::by_grid(self.lowered(side, way, way)?, fineness)?;
                Ok(engine.epsilon(delta))
            };
            let (mut bounds, Origin { engine, theorem }) = one_side(Side::Upper)?;
            if !self.tight() {
                let lower = one_side(Side::Lower)?.0.lower();
                bounds = Bracket::new(lower.min(bounds.upper()), bounds.upper());
            }
            Ok(Answer {
                bounds,
                engine,
                theorem,
            })
        };
        let forth = ask(Way::Forth, Fineness::USUAL)?;
        if self.symmetric() {
            return Ok(forth);
        }
        // Mostly the other direction is so much cheaper that a rough grid shows it.
        let rough = ask(Way::Back, Fineness::ROUGH)?;
        if rough.bounds.upper() <= forth.bounds.lower() {
            return Ok(forth);
        }
        Ok(forth.or_worse(ask(Way::Back, Fineness::USUAL)?))
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

    /// Upper bounds of delta at several epsilons, by engines that are made once. Not for tables, which would have to be taken both ways round.
    pub(crate) fn deltas_upper(&self, epsilons: &[f64]) -> Result<Vec<f64>> {
        if self
            .steps
            .iter()
            .any(|(step, _)| matches!(step, Step::Tabulated { .. }))
        {
            return Err(Error::NoEngine { what: "a table" });
        }
        let mut found = vec![0.0_f64; epsilons.len()];
        let ways = [Way::Forth, Way::Back];
        for way in &ways[..if self.symmetric() { 1 } else { 2 }] {
            let mut engine = Engine::new(self.lowered(Side::Upper, *way, *way)?)?;
            for (found, &epsilon) in found.iter_mut().zip(epsilons) {
                *found = found.max(engine.delta(epsilon).0.upper());
            }
        }
        Ok(found)
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
            // A comparison with what is no number is false.
            [Some(forth), Some(back)]
                if forth < answer.bounds.upper() && back < answer.bounds.upper() =>
            {
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
        let mut worst = self.one_way(Way::Forth, &mut ask)?;
        if !self.symmetric() {
            let back = self.one_way(Way::Back, &mut ask)?;
            worst = worst.or_worse(back);
        }
        Ok(worst)
    }

    /// One direction. Tables are taken both ways round, all of them at once: which neighbour is which they do not say.
    pub(crate) fn one_way(
        &self,
        way: Way,
        ask: &mut impl FnMut(&mut Engine) -> (Bracket, Origin),
    ) -> Result<Answer> {
        let mut worst = self.one_way_round(way, way, ask)?;
        let is_table = |step: &Step| matches!(step, Step::Tabulated { .. });
        let tables = self.steps.iter().filter(|(step, _)| is_table(step)).count();
        if tables > 0 && tables < self.steps.len() {
            let other = match way {
                Way::Forth => Way::Back,
                Way::Back => Way::Forth,
            };
            worst = worst.or_worse(self.one_way_round(way, other, ask)?);
        }
        Ok(worst)
    }

    fn one_way_round(
        &self,
        way: Way,
        tables: Way,
        ask: &mut impl FnMut(&mut Engine) -> (Bracket, Origin),
    ) -> Result<Answer> {
        let (mut bounds, Origin { engine, theorem }) =
            ask(&mut Engine::new(self.lowered(Side::Upper, way, tables)?)?);
        if !self.tight() {
            let lower = match Engine::new(self.lowered(Side::Lower, way, tables)?) {
                Ok(mut engine) => ask(&mut engine).0.lower(),
                // What is attained may be beyond the engines here; then nothing is claimed.
                Err(_) => 0.0,
            };
            bounds = Bracket::new(lower.min(bounds.upper()), bounds.upper());
        }
        Ok(Answer {
            bounds,
            engine,
            theorem,
        })
    }

    fn lowered(&self, side: Side, way: Way, tables: Way) -> Result<Vec<Lowered>> {
        let lowered = self.steps.iter().map(|(step, count)| {
            let way = match step {
                Step::Tabulated { .. } => tables,
                _ => way,
            };
            lower(step, *count, self.group, self.neighbours, side, way)
        });
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
            // Beyond, only its largest loss is listed.
            Step::DiscreteLaplace { sensitivity, .. } => sensitivity
                .checked_mul(self.group)
                .is_some_and(|shift| shift < MASSES_MAX),
            Step::Approximate { epsilon, .. } => {
                (Bracket::exact(*epsilon) * Bracket::exact(self.group as f64)).relative_width()
                    == 0.0
            }
            // By itself it proves both bounds, or what its theorem says; beside others only the upper one.
            Step::FixedSizeGaussian { .. } | Step::Shuffled { .. } => self.steps.len() == 1,
            Step::Exponential { .. }
            | Step::PermuteAndFlip { .. }
            | Step::PartitionSelection { .. } => false,
            // Of divergences nothing better is known; beside other steps a Gaussian is what is attained.
            Step::Concentrated { rho } => {
                let concentrated =
                    |(step, _): &(Step, u64)| matches!(step, Step::Concentrated { .. });
                *rho == 0.0 || self.steps.iter().all(concentrated)
            }
            _ => true,
        })
    }
}

fn check_delta(delta: f64) -> Result<()> {
    if (0.0..1.0).contains(&delta) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        step: "query",
        what: "delta",
        found: delta,
        range: "a number from 0 to below 1",
    })
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
#[path = "composition_test.rs"]
mod tests;
