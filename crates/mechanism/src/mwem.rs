//! # MWEM
//! **Definition.** A distribution `x` over a [`Domain`](crate::Domain), at first uniform, and a public [`Workload`] of counting queries. `n` is the
//!   number of rows: public, or released first with noise. Then `T` rounds:
//!   1. the [`Exponential`] mechanism chooses a query, by the score `|f(D) - round(n f(x))|`;
//!   2. its count `f(D)` is released with noise;
//!   3. `x` learns the answer by [`MultiplicativeWeights`].
//!
//!   Out comes the last `x`, or the average of those that queries were chosen against. \[HLM12\]
//! **Requires.** Rows bounded by the same [`Contribution`] the mechanism was made with. A public number of rows must be public.
//! **Guarantee.** That of `T` selections of range `ε`, `T` releases of one count at sensitivity `k`, and one more for the number of rows
//!   if it is not public; `k` is the most rows of one unit. The event is their composition, known before any data is seen.
//! **Proof.** Let all that was released before a round be fixed. Then `x` and `n` are fixed, being functions of it that see no data (floats
//!   compute the same from the same), and so is the integer `t_f = round(n f(x))` of each query. For neighbours
//!   `|f(D) - f(D')| <= k`, added, removed or replaced (see [`workload`](crate::workload)). Clamped cells change none of that: a unit
//!   adds to each what it would, or less. Hence `||f(D) - t_f| - |f(D') - t_f|| <= k`: scores of sensitivity `k` and, since some may rise
//!   while others fall, spread `2k`. The chosen query is then fixed too, and its count is an integer of sensitivity `k`; so is the number of rows. Each
//!   release keeps its promise given any releases before it, and that is what composition asks for; the parameters do not
//!   depend on them. The rest is post-processing.
//! **Error.** For a public `n`, with all rows in the domain, no replays and the average: if all scores chosen are within `s` of the
//!   best and all noise is at most `w`, then all shares of the workload are within `√(4 ln U/T + w²/n²) + (s+1)/n` of the truth.
//!   For [`MultiplicativeWeights`] show `Σ e_t² <= 4 ln U + T w²/n²`, hence `Σ e_t/T` is at most that root; the largest
//!   error in round `t` is at most `e_t + (s+1)/n`, one for rounding twice by a half; and the error of an average is at most the
//!   average of the errors. That is a worst case. The last iterate with replays is better in practice, and nothing is proven of it.

use whit_core::{
    Entropy, Event, L1, L2, Linf, Mechanism, Ratio, Relation, ReplaceOne, Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::contingency_table::check;
use crate::marginals::Marginals;
use crate::multiplicative_weights::MultiplicativeWeights;
use crate::synthetic::{Measurement, Synthetic};
use crate::workload::Workload;
use crate::{Contribution, Exponential, Release, Result, Scores};

/// What happens in the rounds.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// How many rounds.
    pub count: u32,
    /// The epsilon of the selection in each round.
    pub epsilon: Ratio,
    /// The noise of the answer in each round.
    pub noise: Noise,
    /// How often all answers so far are learnt again in each round. Costs time and no budget.
    pub replays: u32,
    /// Which distribution is the result.
    pub iterate: Iterate,
}

/// Which of the distributions is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iterate {
    /// The average of all that queries were chosen against, the uniform one included.
    Average,
    /// The last one, after all answers. Better with replays.
    Last,
}

/// Learns a distribution by asking the queries that it answers worst.
pub struct Mwem<R: Relation> {
    workload: Workload,
    rounds: Rounds,
    rows: Rows<R>,
    select: Exponential<R>,
    answer: Additive<R>,
    table: Marginals<R>,
}

enum Rows<R: Relation> {
    Public(i64),
    Noisy(Box<Additive<R>>),
}

/// More rounds than this leave no budget for each.
const ROUNDS_MAX: u64 = 1 << 12;
/// Replays beyond this change nothing.
const REPLAYS_MAX: u64 = 1 << 12;
/// Cells are clamped to this, so that no sum over `2^20` of them overflows. No data has so many rows.
const ROWS_MAX: i64 = 1 << 42;

impl<R: Relation> Mwem<R> {
    /// Over rows that were bounded so; their number is released first, with this noise.
    pub fn new(
        workload: Workload,
        contribution: Contribution,
        rounds: Rounds,
        rows_noise: &Noise,
    ) -> Result<Self> {
        let rows = Rows::Noisy(Box::new(additive(contribution, rows_noise)));
        Self::with_rows(workload, contribution, rounds, rows)
    }

    fn with_rows(
        workload: Workload,
        contribution: Contribution,
        rounds: Rounds,
        rows: Rows<R>,
    ) -> Result<Self> {
        check("the number of rounds", rounds.count.into(), ROUNDS_MAX)?;
        check(
            "one more than the number of replays",
            u64::from(rounds.replays) + 1,
            REPLAYS_MAX + 1,
        )?;
        let sensitivity = Sensitivity::<Linf, R>::new(rows_max(contribution));
        let scores = Scores::new(workload.len() as u64, &sensitivity)?;
        let columns = workload.domain().columns();
        let all: Vec<usize> = (0..columns.len()).collect();
        Ok(Self {
            select: Exponential::new(rounds.epsilon.clone(), scores),
            answer: additive(contribution, &rounds.noise),
            table: Marginals::new(columns.to_vec(), &[&all], contribution)?,
            workload,
            rounds,
            rows,
        })
    }

    /// What an accountant needs to know: everything, in the order in which it happens.
    pub fn event(&self) -> Event {
        let mut parts = Vec::new();
        if let Rows::Noisy(rows) = &self.rows {
            parts.push(rows.event_of(1).mechanism().clone());
        }
        for _ in 0..self.rounds.count {
            parts.push(self.select.event().mechanism().clone());
            parts.push(self.answer.event_of(1).mechanism().clone());
        }
        Event::new(R::NEIGHBOURS, Mechanism::Composition(parts))
    }

    /// Counts rows with one value for each column. A row with a value that is on no list, in a column that drops those, is in no cell.
    pub fn aggregate<S: AsRef<str>, Row: AsRef<[S]>>(
        &self,
        rows: impl IntoIterator<Item = Row>,
    ) -> Secret<Vec<i64>> {
        self.table.aggregate(rows)
    }

    /// Spends one `event`. Takes the number of rows in each cell of the domain; cells that are missing count as empty, further
    /// ones are dropped.
    pub fn release(
        &self,
        counts: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Synthetic>> {
        let counts = counts.map(|counts| self.read(counts));
        let rows = match &self.rows {
            Rows::Public(rows) => *rows,
            Rows::Noisy(mechanism) => {
                let total = counts.as_ref().map(|counts| counts.iter().sum::<i64>());
                let noisy = mechanism.release(total, entropy)?.into_value();
                noisy.clamp(1, ROWS_MAX)
            }
        };
        let truths = counts.map(|counts| self.truths(&counts));
        // From here on the truth is seen by two mechanisms only, and `x` by nothing but their releases.
        let mut x = MultiplicativeWeights::uniform(self.workload.domain(), self.rounds.replays);
        let mut sum = vec![0.0; x.probabilities().len()];
        let mut measurements = Vec::new();
        for _ in 0..self.rounds.count {
            for (sum, p) in sum.iter_mut().zip(x.probabilities()) {
                *sum += p;
            }
            let expected = self.expected(&x, rows);
            let scores = truths.as_ref().map(|truths| scores(truths, &expected));
            let query = self.select.release(scores, entropy)?.into_value();
            let truth = truths.as_ref().map(|truths| truths[query]);
            let answer = self.answer.release(truth, entropy)?.into_value();
            let measurement = Measurement { query, answer };
            self.learn(&mut x, rows, measurement);
            measurements.push(measurement);
        }
        let probabilities = match self.rounds.iterate {
            Iterate::Last => x.probabilities().to_vec(),
            Iterate::Average => {
                let rounds = f64::from(self.rounds.count);
                sum.into_iter().map(|p| p / rounds).collect()
            }
        };
        let synthetic = Synthetic {
            domain: self.workload.domain().clone(),
            rows: rows.unsigned_abs(),
            probabilities,
            measurements,
        };
        Ok(Release::new(synthetic, self.event()))
    }

    /// As many cells as the domain has, none of them beyond what can be added up. A unit then adds to each
    /// cell what it would, or less.
    pub(crate) fn read(&self, mut counts: Vec<i64>) -> Vec<i64> {
        counts.resize(self.workload.domain().size(), 0);
        for count in &mut counts {
            *count = (*count).clamp(0, ROWS_MAX);
        }
        counts
    }

    /// The secret answers `f(D)`.
    pub(crate) fn truths(&self, counts: &[i64]) -> Vec<i64> {
        let answers = self.workload.answers(counts);
        answers.expect("read gives one count for each cell")
    }

    /// The public `round(n f(x))`.
    pub(crate) fn expected(&self, x: &MultiplicativeWeights, rows: i64) -> Vec<i64> {
        let shares = self.workload.answers(x.probabilities());
        let shares = shares.expect("x has one weight for each cell");
        let count = |share: f64| (share * rows as f64).round() as i64;
        shares.into_iter().map(count).collect()
    }

    /// What is made of one release, without the data.
    pub(crate) fn learn(&self, x: &mut MultiplicativeWeights, rows: i64, measurement: Measurement) {
        if let Some(query) = self.workload.query(measurement.query) {
            x.learn(query, measurement.answer as f64 / rows as f64);
        }
    }
}

impl Mwem<ReplaceOne> {
    /// Where each row is a unit and replaced by another, their number is public and given here. There is no such thing for neighbours that
    /// add a row:
    ///
    /// ```compile_fail,E0599
    /// # use whit_core::AddRemove;
    /// # use whit_mechanism::{Mwem, Rounds, Workload};
    /// # fn test(workload: Workload, rounds: Rounds) {
    /// let mwem = Mwem::<AddRemove>::with_public_rows(workload, rounds, 10_000);
    /// # }
    /// ```
    pub fn with_public_rows(workload: Workload, rounds: Rounds, rows: u64) -> Result<Self> {
        check("the number of rows", rows, ROWS_MAX as u64)?;
        let rows = Rows::Public(rows as i64);
        Self::with_rows(workload, Contribution::Row, rounds, rows)
    }
}

fn rows_max(contribution: Contribution) -> Ratio {
    Ratio::from(u64::from(contribution.rows_max()))
}

/// Noise for one count; in one dimension all norms agree.
fn additive<R: Relation>(contribution: Contribution, noise: &Noise) -> Additive<R> {
    let k = rows_max(contribution);
    let (l1, l2) = (
        Sensitivity::<L1, R>::new(k.clone()),
        Sensitivity::<L2, R>::new(k),
    );
    Additive::new(noise, l1, l2)
}

/// How far each query is from what is expected. Both are far from the ends of the type.
pub(crate) fn scores(truths: &[i64], expected: &[i64]) -> Vec<i64> {
    let pairs = truths.iter().zip(expected);
    pairs
        .map(|(truth, expected)| truth.abs_diff(*expected).min(i64::MAX as u64) as i64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{scale, seed};
    use crate::score::tests::ratio;
    use crate::workload::tests::domain;
    use whit_core::{AddRemove, EntropyFailure};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits};

    fn rounds(count: u32) -> Rounds {
        Rounds {
            count,
            epsilon: ratio(1, 3),
            noise: Noise::Laplace(scale(4, 1)),
            replays: 2,
            iterate: Iterate::Last,
        }
    }

    fn workload() -> Workload {
        Workload::all_marginals(domain(&[2, 3, 2]), 2).expect("sets")
    }

    fn unit_of_three<R: Relation>(count: u32) -> Mwem<R> {
        let noise = Noise::Gaussian(scale(5, 1));
        let contribution = Contribution::RowsPerUnit(3);
        Mwem::new(workload(), contribution, rounds(count), &noise).expect("in range")
    }

    fn public_rows(count: u32, rows: u64) -> Mwem<ReplaceOne> {
        Mwem::with_public_rows(workload(), rounds(count), rows).expect("in range")
    }

    #[test]
    fn closed_form() {
        let selection = Mechanism::BoundedRange {
            epsilon: ratio(1, 3),
        };
        let answer = |k: u64| Mechanism::DiscreteLaplace {
            scale: scale(4, 1),
            sensitivity_l1: Ratio::from(k),
            coordinates: 1,
        };
        let rows = Mechanism::DiscreteGaussian {
            scale: scale(5, 1),
            sensitivity_l2_square: Ratio::from(9_u64),
            coordinates: 1,
        };
        let event = |parts| Event::new(ReplaceOne::NEIGHBOURS, Mechanism::Composition(parts));
        let public = public_rows(2, 50);
        let round = [selection.clone(), answer(1)];
        assert_eq!(public.event(), event([round.clone(), round].concat()));
        let noisy = unit_of_three::<ReplaceOne>(1);
        assert_eq!(noisy.event(), event(vec![rows, selection, answer(3)]));
        assert_eq!(
            noisy.event().mechanism(),
            unit_of_three::<AddRemove>(1).event().mechanism()
        );
        let release = public.release(Secret::new(vec![5; 12]), &mut Seeded::new(694));
        let release = release.expect("entropy");
        assert_eq!(release.event(), &public.event());
        assert_eq!(release.value().measurements().len(), 2);
        assert_eq!(release.value().rows(), 50);
    }

    /// Opens streams like another, and counts them.
    struct Counting(Seeded, u64);
    impl Entropy for Counting {
        type Bits = SeededBits;
        fn open(&mut self) -> std::result::Result<SeededBits, EntropyFailure> {
            self.1 += 1;
            self.0.open()
        }
    }

    /// What was released, and how many streams were opened for it.
    fn frozen<R: Relation>(mwem: &Mwem<R>, counts: Vec<i64>, seed: u64) -> (Synthetic, u64) {
        let mut entropy = Counting(Seeded::new(seed), 0);
        let release = mwem.release(Secret::new(counts), &mut entropy);
        (release.expect("entropy").into_value(), entropy.1)
    }

    fn within(k: u64, one: &[i64], other: &[i64]) {
        assert_eq!(one.len(), other.len());
        let apart = one.iter().zip(other).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(apart <= Some(k), "{apart:?}");
    }

    /// Runs one world, and shows all that it released to both: every score and every answer is within its sensitivity. Run again with
    /// the same noise, the other opens as many streams and gives as many numbers.
    fn record_and_replay<R: Relation>(mwem: &Mwem<R>, k: u64, replace: bool) {
        let mut bits = SeededBits::new(seed(695));
        for _ in 0..200 {
            // The last number stands for a row in no cell.
            let mut row = || {
                let categories = [3, 4, 3].map(|bound| bits.below(bound));
                categories.map(|category| category.to_string())
            };
            let mut one: Vec<_> = (0..30).map(|_| row()).collect();
            let mut other = one.clone();
            other.extend((0..k).map(|_| row()));
            if replace {
                one.extend((0..k).map(|_| row()));
            }
            let noise = bits.below(u64::MAX);
            let counts = [one, other].map(|rows| mwem.aggregate(rows).expose());
            let [(a, opened), (b, opened_too)] =
                counts.clone().map(|counts| frozen(mwem, counts, noise));
            assert_eq!(opened, opened_too);
            assert_eq!(a.measurements().len(), b.measurements().len());
            assert_eq!(a.probabilities().len(), b.probabilities().len());
            let totals = counts.each_ref().map(|counts| counts.iter().sum::<i64>());
            within(k, &totals[..1], &totals[1..]);
            let truths = counts.map(|counts| mwem.truths(&mwem.read(counts)));
            within(k, &truths[0], &truths[1]);
            let rows = a.rows() as i64;
            let mut x = MultiplicativeWeights::uniform(mwem.workload.domain(), 2);
            for &measurement in a.measurements() {
                let expected = mwem.expected(&x, rows);
                let [q, q2] = truths.each_ref().map(|truths| scores(truths, &expected));
                within(k, &q, &q2);
                mwem.learn(&mut x, rows, measurement);
            }
            // The releases are all that the result was made of.
            assert_eq!(x.probabilities(), a.probabilities());
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay(&unit_of_three::<AddRemove>(5), 3, false);
        record_and_replay(&unit_of_three::<ReplaceOne>(5), 3, true);
        record_and_replay(&public_rows(5, 31), 1, true);
    }

    #[test]
    fn anything_is_answered_alike() {
        let mwem = unit_of_three::<AddRemove>(4);
        let all: [Vec<i64>; 7] = [
            vec![],
            vec![0; 12],
            vec![1],
            vec![7; 30],
            vec![i64::MAX; 12],
            vec![i64::MIN; 12],
            vec![1 << 42; 12],
        ];
        for counts in all {
            let (synthetic, opened) = frozen(&mwem, counts, 696);
            assert_eq!((opened, synthetic.measurements().len()), (9, 4));
            assert!((1..=1 << 42).contains(&synthetic.rows()));
            let sum: f64 = synthetic.probabilities().iter().sum();
            assert!(synthetic.probabilities().len() == 12 && (sum - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_average_is_of_what_was_asked_against() {
        let average = |count| Rounds {
            iterate: Iterate::Average,
            ..rounds(count)
        };
        let run = |rounds: Rounds| {
            let mwem = Mwem::with_public_rows(workload(), rounds, 60).expect("in range");
            frozen(&mwem, (0..12).collect(), 697).0
        };
        // The same noise, so that longer runs begin like shorter ones.
        assert_eq!(run(average(1)).probabilities(), [1.0 / 12.0; 12]);
        let (first, both) = (run(rounds(1)), run(average(2)));
        for (both, first) in both.probabilities().iter().zip(first.probabilities()) {
            assert!((both - (1.0 / 12.0 + first) / 2.0).abs() < 1e-15);
        }
    }

    #[test]
    fn refuses_too_many_or_none_and_no_entropy() {
        let public = |rounds, rows| Mwem::with_public_rows(workload(), rounds, rows);
        assert!(public(rounds(0), 10).is_err() && public(rounds(1 << 13), 10).is_err());
        assert!(public(rounds(1), 0).is_err() && public(rounds(1), u64::MAX).is_err());
        let replays = |replays| Rounds {
            replays,
            ..rounds(1)
        };
        assert!(public(replays(0), 10).is_ok() && public(replays(u32::MAX), 10).is_err());
        let none = unit_of_three::<AddRemove>(1).release(Secret::new(vec![]), &mut FailingEntropy);
        assert!(none.is_err());
    }
}
