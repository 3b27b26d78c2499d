//! # Subsample and aggregate
//! **Definition.** The units are dealt out to `m` blocks, each unit to one, uniformly and independently of everything else. Any function is
//!   evaluated on each block; its values, clamped to `[L, U]`, are aggregated by a private mean or median. \[NRS07\]
//! **Requires.** The function is called once per block and sees nothing but its block: no memory, no clock, no output. All rows of a unit
//!   carry the unit's name; if each row is a unit, its number is its name.
//! **Guarantee.** That of the noise: for the mean at the sensitivity `(U-L)/m`, for the median that of the [`SmoothNoise`].
//! **Proof.** Fix the blocks of all units that two neighbours share. If a unit is added or removed, its block is the only one that differs.
//!   If it is replaced, its block and that of its successor are both uniform and independent of the rest, so the second mechanism has
//!   the same output distribution if the successor takes the unit's place: again one block differs. (Taking over the same name is a
//!   special case.) The number of values is always `m` and each is in `[L, U]`, because what is no number, or a panic, counts as the
//!   value of the range nearest to zero. So one of `m` values is replaced by another: their sum changes by at most `U - L`, and the median's local
//!   sensitivities are those of replaced rows. This holds for each way to deal; the release is a mixture over them with weights
//!   that are the same for both neighbours, and `P(E) <= e^ε P'(E) + δ`, or a bound on Rényi divergences
//!   (which are quasi-convex), passes to mixtures.
//! **Error.** The noise is that of `m` rows. The rest is the function's: how much its value on `n/m` rows differs from that on `n`.
//!
//! A panic of the function is caught (in a program that unwinds), but whoever listens hears it: the standard hook prints its
//! message. Nor does anything hide how long the function takes.

use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use whit_core::{Confidence, Entropy, Event, L1, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::sample::uniform_below;
use crate::{Bounds, Error, Estimate, OrderedRows, Release, Result, SmoothMedian, SmoothNoise};

/// Any function, made private by running it on disjoint blocks of the data.
#[derive(Clone, Copy, Debug)]
pub struct SubsampleAggregate<R: Relation> {
    bounds: Bounds,
    blocks: u32,
    relation: PhantomData<R>,
}

/// More blocks than this are no sample.
const BLOCKS_MAX: u32 = 1 << 20;

/// The units' rows, dealt out to blocks.
pub struct Blocks<V>(Vec<Vec<V>>);

/// The value of each block, in steps.
pub struct BlockValues<R: Relation> {
    steps: Vec<i64>,
    relation: PhantomData<R>,
}

impl<R: Relation> SubsampleAggregate<R> {
    /// So many blocks, and a range for the function's values.
    pub fn new(bounds: Bounds, blocks: u32) -> Result<Self> {
        if (1..=BLOCKS_MAX).contains(&blocks) {
            return Ok(Self {
                bounds,
                blocks,
                relation: PhantomData,
            });
        }
        Err(Error::CountOutOfRange {
            what: "the number of blocks",
            given: u64::from(blocks),
            min: 1,
            max: u64::from(BLOCKS_MAX),
        })
    }

    /// Deals units out to blocks. Rows of one unit stay together, in the order given.
    pub fn partition<U: Eq + Hash, V>(
        &self,
        rows: impl IntoIterator<Item = (U, V)>,
        entropy: &mut impl Entropy,
    ) -> Result<Secret<Blocks<V>>> {
        let mut bits = entropy.open()?;
        let mut blocks: Vec<Vec<V>> = (0..self.blocks).map(|_| Vec::new()).collect();
        // The map is only asked for blocks; its order never shows.
        let mut block_of: HashMap<U, usize> = HashMap::new();
        for (unit, row) in rows {
            let drawn = || uniform_below(u64::from(self.blocks), &mut bits) as usize;
            let block = *block_of.entry(unit).or_insert_with(drawn);
            blocks[block].push(row);
        }
        Ok(Secret::new(Blocks(blocks)))
    }

    /// Runs the function on each block, empty ones included.
    pub fn evaluate<V>(
        &self,
        blocks: Secret<Blocks<V>>,
        function: impl Fn(&[V]) -> f64,
    ) -> Secret<BlockValues<R>> {
        let absent = self.bounds.nearest_to_zero();
        blocks.map(|Blocks(blocks)| {
            let value = |block: &Vec<V>| {
                let value = match catch_unwind(AssertUnwindSafe(|| function(block))) {
                    Ok(value) => self.bounds.fix(value),
                    Err(payload) => {
                        // Dropping it could panic once more, where nobody catches it.
                        std::mem::forget(payload);
                        None
                    }
                };
                value.unwrap_or(absent)
            };
            BlockValues {
                steps: blocks.iter().map(value).collect(),
                relation: PhantomData,
            }
        })
    }

    /// The most that one unit changes the mean of the blocks, in the unit of the values.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&Ratio::from(self.bounds.width()) * &self.mean_step())
    }

    /// What one step of the sum is in the mean.
    fn mean_step(&self) -> Ratio {
        let step = self.bounds.step();
        let step = step.checked_div(&Ratio::from(u64::from(self.blocks)));
        step.expect("there is a block")
    }

    /// Prepares a mean with noise in the unit of the values. No data is needed, so the event can be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> Result<NoisyBlockMean<R>> {
        let noise = noise.in_steps(&self.mean_step())?;
        let width = Ratio::from(self.bounds.width());
        let mechanism = Additive::new(
            &noise,
            Sensitivity::new(width.clone()),
            Sensitivity::new(width),
        );
        Ok(NoisyBlockMean {
            bounds: self.bounds,
            blocks: self.blocks,
            mechanism,
        })
    }

    /// The median of the blocks, clamped to the range. Spends the event of `noise`.
    pub fn median(
        &self,
        values: Secret<BlockValues<R>>,
        noise: &SmoothNoise<R>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<f64>> {
        let rows = values.map(|values| OrderedRows::new(self.bounds, values.steps));
        SmoothMedian::new(self.bounds).release(rows, noise, entropy)
    }
}

/// A mean over blocks with its noise.
pub struct NoisyBlockMean<R: Relation> {
    bounds: Bounds,
    blocks: u32,
    mechanism: Additive<R>,
}

impl<R: Relation> NoisyBlockMean<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.mechanism.event_of(1)
    }

    /// Adds the noise and the error bars, which speak of the mean over blocks. Spends one `event`.
    pub fn release(
        &self,
        values: Secret<BlockValues<R>>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        let half_width = i128::try_from(self.mechanism.half_width(confidence)).unwrap_or(i128::MAX);
        let (bounds, blocks) = (self.bounds, self.blocks as usize);
        let sum = values.map(|values| {
            // So many values in this range, whoever evaluated them.
            let absent = std::iter::repeat(bounds.nearest_to_zero());
            let steps = values.steps.into_iter().chain(absent).take(blocks);
            let clamped = steps.map(|step| step.clamp(bounds.lower(), bounds.upper()));
            clamped.map(i128::from).sum::<i128>()
        });
        let (grid, blocks) = (self.bounds.grid(), f64::from(self.blocks));
        Ok(self.mechanism.release(sum, entropy)?.map(|noisy| Estimate {
            answer: grid.value(noisy) / blocks,
            low: grid.value(noisy.saturating_sub(half_width)) / blocks,
            high: grid.value(noisy.saturating_add(half_width)) / blocks,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_audit::{enumerate, g_test};
    use whit_core::{AddRemove, Epsilon, Neighbours, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits};

    fn blocks<R: Relation>(count: u32) -> SubsampleAggregate<R> {
        let bounds = Bounds::new(0.0, 10.0).expect("a range");
        SubsampleAggregate::new(bounds, count).expect("blocks")
    }

    fn mean(rows: &[f64]) -> f64 {
        rows.iter().sum::<f64>() / rows.len() as f64
    }

    fn numbered(rows: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        rows.iter().copied().enumerate()
    }

    #[test]
    fn closed_form() {
        let sensitivity = blocks::<AddRemove>(5).sensitivity_l1();
        assert_eq!(sensitivity.bound(), &Ratio::from(2_u64));
        let noisy = blocks::<ReplaceOne>(5).with_noise(&Noise::Laplace(scale(2, 1)));
        assert_eq!(
            noisy.expect("in range").event().neighbours(),
            Neighbours::ReplaceOne
        );
        let bounds = Bounds::new(0.0, 1.0).expect("a range");
        for count in [0, BLOCKS_MAX + 1] {
            assert!(SubsampleAggregate::<AddRemove>::new(bounds, count).is_err());
        }
    }

    /// The event's loss is the sensitivity over the scale, in whatever unit.
    #[test]
    fn noise_is_in_the_unit_of_the_values() {
        let aggregate = blocks::<AddRemove>(4);
        let noisy = aggregate
            .with_noise(&Noise::Laplace(scale(5, 2)))
            .expect("in range");
        let event = noisy.event();
        let whit_core::Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            ..
        } = event.mechanism()
        else {
            panic!("another event")
        };
        assert_eq!(
            sensitivity_l1.checked_div(scale.ratio()),
            Some(Ratio::one())
        );
    }

    #[test]
    fn whatever_the_function_does_there_are_as_many_values() {
        let functions: [fn(&[f64]) -> f64; 5] = [
            |_| f64::NAN,
            |_| f64::NEG_INFINITY,
            |_| 1e300,
            |rows| rows[0],
            |rows| {
                if rows.is_empty() {
                    -0.0
                } else {
                    panic!("rows")
                }
            },
        ];
        let mut entropy = Seeded::new(seed(5801));
        for function in functions {
            for rows in [vec![], vec![3.0], vec![f64::NAN; 9]] {
                let aggregate = blocks::<AddRemove>(4);
                let dealt = aggregate
                    .partition(numbered(&rows), &mut entropy)
                    .expect("entropy");
                let values = aggregate.evaluate(dealt, function).expose();
                assert_eq!(values.steps.len(), 4);
                let range = aggregate.bounds.lower()..=aggregate.bounds.upper();
                assert!(values.steps.iter().all(|value| range.contains(value)));
            }
        }
        assert!(
            blocks::<AddRemove>(4)
                .partition(numbered(&[1.0]), &mut FailingEntropy)
                .is_err()
        );
    }

    #[test]
    fn units_stay_together_and_blocks_are_even() {
        let aggregate = blocks::<AddRemove>(3);
        let mut entropy = Seeded::new(seed(5802));
        let mut counts = [0_u64; 9];
        for _ in 0..20_000 {
            let rows = [("a", 1), ("b", 2), ("a", 3), ("c", 4)];
            let Blocks(blocks) = aggregate
                .partition(rows, &mut entropy)
                .expect("entropy")
                .expose();
            let block_of = |row: i32| blocks.iter().position(|block| block.contains(&row));
            let place = |row| block_of(row).expect("every row is somewhere");
            assert_eq!(place(1), place(3));
            counts[3 * place(1) + place(2)] += 1;
        }
        let p = g_test(&counts, &[1.0 / 9.0; 9])
            .expect("probabilities")
            .p_value;
        assert!(p >= crate::doubt::ALPHA, "p = {p:e}");
    }

    /// Every tape of the dealing: two units fall into each pair of blocks with the same probability, exactly.
    #[test]
    fn enumeration_of_the_dealing() {
        let aggregate = blocks::<AddRemove>(4);
        let found = enumerate::<1, Vec<usize>>(12, |tape| {
            let rows = [("a", 0), ("b", 1), ("a", 2)];
            let dealt = aggregate.partition(rows, &mut crate::doubt::TapeEntropy(Some(tape)));
            let Blocks(blocks) = dealt.expect("one stream").expose();
            let place = |row: i32| blocks.iter().position(|block| block.contains(&row));
            (0..3).map(|row| place(row).expect("somewhere")).collect()
        });
        assert_eq!((found.masses().len(), found.unresolved()), (16, 0));
        assert!(found.masses().values().all(|&mass| mass == 1 << 8));
        assert!(found.masses().keys().all(|places| places[0] == places[2]));
    }

    /// Frozen dealing: neighbours differ in one block, and the sum by no more than the declared sensitivity.
    #[test]
    fn neighbours_differ_in_one_block() {
        let mut bits = SeededBits::new(seed(5803));
        let aggregate = blocks::<AddRemove>(5);
        for round in 0..200 {
            let mut rows: Vec<(u64, f64)> = (0..bits.below(30))
                .map(|_| (bits.below(8), bits.below(12) as f64 - 1.0))
                .collect();
            // The unit that leaves is named last, so that the others are dealt the same.
            rows.sort_by_key(|&(unit, _)| unit);
            let without: Vec<(u64, f64)> = rows
                .iter()
                .copied()
                .filter(|&(unit, _)| unit != 7)
                .collect();
            let values = |rows: Vec<(u64, f64)>| {
                let dealt = aggregate
                    .partition(rows, &mut Seeded::new(round))
                    .expect("entropy");
                aggregate.evaluate(dealt, mean).expose().steps
            };
            let (one, other) = (values(rows), values(without));
            assert!(one.iter().zip(&other).filter(|(a, b)| a != b).count() <= 1);
            let sums = [one, other].map(|steps| steps.iter().sum::<i64>());
            assert!(sums[0].abs_diff(sums[1]) <= aggregate.bounds.width());
        }
    }

    /// The function's value jumps from end to end with one row: the worst there is.
    fn seen(b: (u128, u128), together: bool) -> whit_audit::Verdict {
        let aggregate = blocks::<AddRemove>(5);
        let noisy = aggregate
            .with_noise(&Noise::Laplace(scale(b.0, b.1)))
            .expect("in range");
        let (mut one, mut other) = (Seeded::new(seed(5804)), Seeded::new(seed(5805)));
        let event = |with: bool, entropy: &mut Seeded| {
            // One unit of three rows; the twin forgets that they are one.
            let rows = (0..3)
                .filter(|_| with)
                .map(|row| (if together { 0 } else { row }, ()));
            let dealt = aggregate.partition(rows, entropy).expect("entropy");
            let values = aggregate.evaluate(dealt, |rows: &[()]| 10.0 * rows.len() as f64);
            let release = noisy
                .release(values, confidence(0.95), entropy)
                .expect("entropy");
            release.value().answer >= 2.0
        };
        judge(
            1.0,
            0.0,
            80_000,
            || event(true, &mut one),
            || event(false, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((2, 1), true);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.88,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 5), true).convicted, "noise a tenth too small");
        assert!(
            seen((2, 1), false).convicted,
            "rows of one unit in several blocks"
        );
    }

    #[test]
    fn mean_and_median_are_near() {
        let aggregate = blocks::<ReplaceOne>(200);
        let mut entropy = Seeded::new(seed(5806));
        let rows: Vec<f64> = (0..20_000).map(|i| f64::from(i % 11)).collect();
        let mut values = || {
            let dealt = aggregate
                .partition(numbered(&rows), &mut entropy)
                .expect("entropy");
            aggregate.evaluate(dealt, mean)
        };
        let (one, other) = (values(), values());
        let noisy = aggregate
            .with_noise(&Noise::Laplace(scale(1, 20)))
            .expect("in range");
        let answer = noisy
            .release(one, confidence(0.999), &mut entropy)
            .expect("entropy");
        assert!((answer.value().answer - 5.0).abs() < 0.7);
        let epsilon = Epsilon::new(1.0).expect("one");
        let noise = SmoothNoise::cauchy(epsilon).expect("in range");
        // Cauchy noise is far off once in two hundred releases: so the middle of several.
        let steps = other.expose().steps;
        let mut medians: Vec<f64> = (0..15)
            .map(|_| {
                let values = Secret::new(BlockValues {
                    steps: steps.clone(),
                    relation: PhantomData,
                });
                let median = aggregate.median(values, &noise, &mut entropy);
                let median = median.expect("entropy");
                assert_eq!(median.event().neighbours(), Neighbours::ReplaceOne);
                *median.value()
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        assert!((medians[7] - 5.0).abs() < 0.7, "{medians:?}");
    }
}
