//! # Bounded mean
//! **Definition.** For values clamped to `[L, U]`, let `A = Σ (x_i - L)` and `B = Σ (U - x_i)`. Each row that has a value adds to both, `w = U - L`
//!   in total, so the number of such rows is `(A+B)/w` and their mean `L + w A/(A+B)`. Both sums get noise. Under replace-one
//!   with each row a unit, the number of rows `n` is public and the noisy `A` alone is enough, `B = nw - A`; there, a row without
//!   a value is read as the middle. The answer is clamped to `[L, U]`; where noise leaves less than one row, one is assumed.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with, at most `k` of each unit.
//! **Guarantee.** That of one vector of noise on `(A, B)`, at these sensitivities:
//!
//! | | L1 | L2, squared |
//! | --- | --- | --- |
//! | add/remove | `k w` | `(k w)²` |
//! | replace-one, up to `k` rows | `2 k w` | `2 (k w)²` |
//! | replace-one, each row a unit (`A` alone) | `w` | `w²` |
//!
//! **Proof.** A row adds `(x - L, U - x)` to `(A, B)`: two numbers that are not negative and add up to `w`; or nothing. So what a unit adds is not
//!   negative either, and has L1 norm at most `k w`, hence L2 norm at most `k w`. That is the first line. What is replaced changes `(A, B)` by
//!   the difference `u - v` of two such vectors: `‖u - v‖₁ <= ‖u‖₁ + ‖v‖₁`, and `‖u - v‖₂² <= ‖u‖₂² + ‖v‖₂²` since `⟨u, v⟩ >= 0`. For a single
//!   row, `A` moves between values in `[0, w]`. Everything after the noise is post-processing.
//! **Why these two.** The obvious pair, a centred sum and a count, has to share `ε`: a row at an end moves both by all they can, yet in
//!   units of `w/2` each row moves the count by exactly one, so that the pair moves in a square, not a diamond. `A` and `B` are its
//!   corners, turned by 45°: *every* row has L1 norm `w` and none of the noise is for a move that cannot be. With Laplace noise the
//!   variance of the mean is half of that of two parts at `ε/2`, for any data; with Gaussian noise, to which a turn is nothing,
//!   it is the same.
//! **Fixed point.** Sums count half steps of the grid, so that the middle is exact.
//! **Error.** With `p = (mean - L)/w` the mean is off by about `((1-p) Z₁ - p Z₂)/n`. [`share_interval`](crate::share_interval) makes an interval
//!   for `p = A/(A+B)` that holds at the stated confidence for any number of rows. Its ends are rounded outward: the mean that they hold is
//!   that of the values on the grid, exactly.

use whit_core::{
    Confidence, Entropy, Event, L1, L2, Neighbours, Ratio, Relation, Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::share_interval::share_interval;
use crate::{Bounds, Contribution, Error, Estimate, Release, Result};

/// The mean of values in public bounds.
#[derive(Clone, Copy, Debug)]
pub struct BoundedMean<R: Relation> {
    bounds: Bounds,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// What the data gives to a mean: the sums of the distances from both ends of the range, in half steps, and how many rows there
/// are, with a value or without. Released by the mean that made them, or one like it.
pub struct MeanParts {
    of: Origin,
    above: Secret<i128>,
    below: Secret<i128>,
    rows: Secret<i64>,
}

/// What makes one mean another, all of it public: what is free of noise here is not so there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    bounds: Bounds,
    contribution: Contribution,
    neighbours: Neighbours,
}

/// Room for the rounding of shares, which are at most one: see the comments in `estimate`.
const ROOM: f64 = 1.0 / (1_u64 << 50) as f64;

impl<R: Relation> BoundedMean<R> {
    /// A mean over rows that were bounded so.
    pub fn new(bounds: Bounds, contribution: Contribution) -> Self {
        Self {
            bounds,
            contribution,
            relation: std::marker::PhantomData,
        }
    }

    fn origin(&self) -> Origin {
        Origin {
            bounds: self.bounds,
            contribution: self.contribution,
            neighbours: R::NEIGHBOURS,
        }
    }

    /// Is the number of rows public, so that one sum is enough?
    pub fn count_is_public(&self) -> bool {
        R::NEIGHBOURS == Neighbours::ReplaceOne && self.contribution == Contribution::Row
    }

    /// The most that one unit changes the sums, together, in the unit of the values.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.moves_l1() * &self.half_step())
    }

    /// The same in the other norm.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        let half_step = self.half_step();
        Sensitivity::from_square(&self.moves_l2_square() * &(&half_step * &half_step))
    }

    fn half_step(&self) -> Ratio {
        &self.bounds.step() * &Ratio::power_of_two(-1)
    }

    /// What all rows of a unit add to both sums, at most: `k w`, in half steps.
    fn unit_adds(&self) -> Ratio {
        let width = 2 * u128::from(self.bounds.width());
        Ratio::from(width * u128::from(self.contribution.rows_max()))
    }

    /// How many such amounts neighbours differ by. A single replaced row moves one sum within its range.
    fn amounts(&self) -> Ratio {
        let amounts = if self.count_is_public() {
            1
        } else {
            R::pick(1_u64, 2)
        };
        Ratio::from(amounts)
    }

    fn moves_l1(&self) -> Ratio {
        &self.amounts() * &self.unit_adds()
    }

    fn moves_l2_square(&self) -> Ratio {
        let unit_adds = self.unit_adds();
        &self.amounts() * &(&unit_adds * &unit_adds)
    }

    /// Adds up the distances from both ends. What is no number is absent; where the number of rows is public, it is the middle.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> MeanParts {
        let (lower, upper) = (
            i128::from(self.bounds.lower()),
            i128::from(self.bounds.upper()),
        );
        let if_absent = self.count_is_public().then_some(lower + upper);
        let (mut above, mut below, mut count) = (0_i128, 0_i128, 0_i64);
        for value in rows {
            count += 1;
            let steps = self.bounds.fix(value);
            // In half steps, like the ends.
            if let Some(value) = steps.map(|steps| 2 * i128::from(steps)).or(if_absent) {
                above += value - 2 * lower;
                below += 2 * upper - value;
            }
        }
        MeanParts {
            of: self.origin(),
            above: Secret::new(above),
            below: Secret::new(below),
            rows: Secret::new(count),
        }
    }

    /// Prepares the noise, the same on each sum. No data is needed, so the event can be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> Result<NoisyMean<R>> {
        let noise = noise.in_steps(&self.half_step())?;
        let l2 = Sensitivity::from_square(self.moves_l2_square());
        Ok(NoisyMean {
            of: self.origin(),
            count_is_public: self.count_is_public(),
            sums: Additive::new(&noise, Sensitivity::new(self.moves_l1()), l2),
            noise,
        })
    }
}

/// A mean with its noise, ready to release as often as its event is paid for.
pub struct NoisyMean<R: Relation> {
    of: Origin,
    count_is_public: bool,
    sums: Additive<R>,
    /// In half steps.
    noise: Noise,
}

impl<R: Relation> NoisyMean<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.sums.event_of(if self.count_is_public { 1 } else { 2 })
    }

    /// Adds the noise and the error bars. Spends one `event`. Refuses the parts of a mean with other bounds, another contribution or
    /// another relation, whatever they are.
    pub fn release(
        &self,
        parts: MeanParts,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        let sums = self.release_sums(parts, entropy)?;
        Ok(sums.map(|sums| self.estimate(sums, confidence)))
    }

    /// All that touches the data: both sums, noisy, in half steps.
    fn release_sums(
        &self,
        parts: MeanParts,
        entropy: &mut impl Entropy,
    ) -> Result<Release<[i128; 2]>> {
        if parts.of != self.of {
            return Err(Error::OtherStatistic);
        }
        if self.count_is_public {
            // The number of rows is the same for all neighbours: it may leave without noise.
            let both = i128::from(parts.rows.expose()) * self.row();
            let above = self.sums.release(parts.above, entropy)?;
            return Ok(above.map(|above| [above, both.saturating_sub(above)]));
        }
        let MeanParts { above, below, .. } = parts;
        let sums = above.map(|above| vec![above, below.expose()]);
        let noisy = self.sums.release_vector(sums, entropy)?;
        Ok(noisy.map(|noisy| [noisy[0], noisy[1]]))
    }

    /// `w`, what a row adds to both sums together, in half steps.
    fn row(&self) -> i128 {
        2 * i128::from(self.of.bounds.width())
    }

    /// Post-processing. Sums are whole numbers until they are divided.
    fn estimate(&self, [above, below]: [i128; 2], confidence: Confidence) -> Estimate {
        // All of n w, if the number of rows n is public.
        let both = above.saturating_add(below).max(self.row());
        let apart = above.saturating_sub(below);
        // Two conversions and a division, relative to at most one, then a sum: off by less than 2.2 · 2^-53 where it is not clamped.
        let at = |apart: i128| 0.5 + 0.5 * (apart as f64 / both as f64).clamp(-1.0, 1.0);
        let share = at(apart);
        let [low, high] = if self.count_is_public {
            // A off by t is B off by -t.
            let half_width = self.sums.half_width(confidence);
            let off = i128::try_from(half_width.saturating_mul(2)).unwrap_or(i128::MAX);
            [at(apart.saturating_sub(off)), at(apart.saturating_add(off))]
        } else {
            // Off by at most 5 · 2^-53.
            share_interval(&self.noise, confidence, [above, below])
        };
        // Noise beyond an end of the range leaves next to nothing of an interval that is cut there: right as often as it says, and read as
        // certainty. So it is no narrower than the noise is wide.
        let [low, high] = if apart.saturating_abs() >= both {
            let reach = self.sums.half_width(confidence) as f64 / both as f64;
            [low.min(share - reach), high.max(share + reach)]
        } else {
            [low, high]
        };
        // Bounds are made of floats, so these are exact.
        let bounds = self.of.bounds;
        let [lower, upper] =
            [bounds.lower(), bounds.upper()].map(|steps| bounds.grid().value(i128::from(steps)));
        // Three roundings more, each 2^-53 of the width at most: with those above less than `ROOM` of it. The last one is of the
        // sum: less than to the next float.
        let at = |share: f64| lower + share * (upper - lower);
        Estimate {
            answer: at(share).clamp(lower, upper),
            low: at(low.min(share) - ROOM).next_down().clamp(lower, upper),
            high: at(high.max(share) + ROOM).next_up().clamp(lower, upper),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grid;
    use crate::doubt::{TapeEntropy, confidence, judge, scale, seed};
    use whit_audit::enumerate;
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{FailingEntropy, NeighbourPair, Seeded, SeededBits, UnitPair};

    fn mean<R: Relation>(contribution: Contribution) -> BoundedMean<R> {
        BoundedMean::new(Bounds::new(-100.0, 50.0).expect("a range"), contribution)
    }

    fn laplace(numerator: u128, denominator: u128) -> Noise {
        Noise::Laplace(scale(numerator, denominator))
    }

    /// A thousand rows at the lower end of the range: half of all answers are pushed beyond it, and none of them looks certain.
    #[test]
    fn answers_at_an_end_are_not_certain() {
        let mean = mean::<AddRemove>(Contribution::Row);
        let noisy = mean.with_noise(&laplace(150, 1)).expect("in range");
        let mut entropy = Seeded::new(seed(4471));
        let mut at_end = 0;
        for _ in 0..200 {
            let parts = mean.aggregate([-100.0; 1000]);
            let release = noisy.release(parts, confidence(0.95), &mut entropy);
            let found = release.expect("entropy").into_value();
            // Noise of 150 on either sum is 0.15 on the mean, and three times that at 95%.
            assert!(found.high - found.low > 0.2, "{found:?}");
            at_end += u32::from(found.answer == -100.0);
        }
        assert!((50..150).contains(&at_end), "{at_end}");
    }

    fn check<R: Relation>(contribution: Contribution, l1: f64, l2_square: f64) {
        let mean = mean::<R>(contribution);
        assert_eq!(mean.sensitivity_l1().bound().to_f64_up(), l1);
        assert_eq!(mean.sensitivity_l2().square().to_f64_up(), l2_square);
    }

    #[test]
    fn closed_form() {
        let unit = Contribution::RowsPerUnit(3);
        check::<AddRemove>(Contribution::Row, 150.0, 150.0 * 150.0);
        check::<AddRemove>(unit, 450.0, 450.0 * 450.0);
        check::<ReplaceOne>(Contribution::Row, 150.0, 150.0 * 150.0);
        check::<ReplaceOne>(Contribution::RowsPerUnit(1), 300.0, 2.0 * 150.0 * 150.0);
        check::<ReplaceOne>(unit, 900.0, 2.0 * 450.0 * 450.0);
        assert!(mean::<ReplaceOne>(Contribution::Row).count_is_public());
        assert!(
            !mean::<ReplaceOne>(unit).count_is_public()
                && !mean::<AddRemove>(Contribution::Row).count_is_public()
        );
        let noisy = mean::<AddRemove>(unit)
            .with_noise(&laplace(450, 1))
            .expect("in range");
        let whit_core::Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            coordinates,
        } = noisy.event().mechanism().clone()
        else {
            panic!("another event")
        };
        assert_eq!((scale.ratio(), coordinates), (&sensitivity_l1, 2));
    }

    /// How far two aggregates are apart: L1, and L2 squared.
    fn distances(a: MeanParts, b: MeanParts, count_is_public: bool) -> [Ratio; 2] {
        let above = a.above.expose().abs_diff(b.above.expose());
        let below = a.below.expose().abs_diff(b.below.expose());
        let below = if count_is_public {
            assert!(above == below && a.rows.expose() == b.rows.expose());
            0
        } else {
            below
        };
        let square = |x: u128| &Ratio::from(x) * &Ratio::from(x);
        [Ratio::from(above + below), &square(above) + &square(below)]
    }

    fn stay_within<R: Relation>(mean: &BoundedMean<R>, a: MeanParts, b: MeanParts) {
        let [l1, l2_square] = distances(a, b, mean.count_is_public());
        assert!(l1 <= mean.moves_l1() && l2_square <= mean.moves_l2_square());
    }

    fn record_and_replay<R: Relation>(pair: impl Fn(&mut SeededBits) -> NeighbourPair) {
        let mut bits = SeededBits::new(seed(281));
        for (lower, upper) in [(-100.0, 50.0), (1e15, 1e15 + 1.0), (-1e200, 1e200)] {
            let bounds = Bounds::new(lower, upper).expect("a range");
            for contribution in [Contribution::Row, Contribution::RowsPerUnit(1)] {
                let mean = BoundedMean::<R>::new(bounds, contribution);
                for _ in 0..200 {
                    let NeighbourPair { one, other } = pair(&mut bits);
                    stay_within(&mean, mean.aggregate(one), mean.aggregate(other));
                }
            }
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay::<AddRemove>(NeighbourPair::add_remove);
        record_and_replay::<ReplaceOne>(NeighbourPair::replace_one);
    }

    fn replay_units<R: Relation>(pair: impl Fn(&mut SeededBits) -> UnitPair) {
        let mut bits = SeededBits::new(seed(289));
        for rows_max in [1, 3] {
            let contribution = Contribution::RowsPerUnit(rows_max);
            let mean = mean::<R>(contribution);
            for _ in 0..200 {
                let UnitPair { one, other } = pair(&mut bits);
                let rows = |rows| mean.aggregate(contribution.bound(rows));
                stay_within(&mean, rows(one), rows(other));
            }
        }
    }

    #[test]
    fn units_stay_within_the_sensitivity() {
        replay_units::<AddRemove>(UnitPair::add_remove);
        replay_units::<ReplaceOne>(UnitPair::replace_one);
    }

    /// Whatever the row, it moves the sums by exactly what is paid for.
    #[test]
    fn every_row_uses_all_of_the_sensitivity() {
        let mean = mean::<AddRemove>(Contribution::Row);
        for x in [-100.0, -3.25, 0.0, 17.0, 50.0, f64::INFINITY] {
            let [l1, _] = distances(mean.aggregate([x]), mean.aggregate([]), false);
            assert_eq!(l1, mean.moves_l1());
        }
        // The bounds under replace-one are met as well, by a unit that goes from one end to the other.
        let unit = Contribution::RowsPerUnit(3);
        let mean = super::tests::mean::<ReplaceOne>(unit);
        let found = distances(
            mean.aggregate([-100.0; 3]),
            mean.aggregate([50.0; 3]),
            false,
        );
        assert_eq!(found, [mean.moves_l1(), mean.moves_l2_square()]);
    }

    /// Root mean square error, how often the truth was covered, and the mean width of the interval.
    fn measured<R: Relation>(mean: &BoundedMean<R>, noise: &Noise, rows: &[f64]) -> [f64; 3] {
        let truth = rows.iter().sum::<f64>() / rows.len() as f64;
        let noisy = mean.with_noise(noise).expect("in range");
        let mut entropy = Seeded::new(seed(282));
        let runs = 4000;
        let (mut square, mut covered, mut width) = (0.0, 0, 0.0);
        for _ in 0..runs {
            let parts = mean.aggregate(rows.iter().copied());
            let release = noisy.release(parts, confidence(0.95), &mut entropy);
            let Estimate { answer, low, high } = *release.expect("entropy").value();
            assert!(-100.0 <= low && low <= answer && answer <= high && high <= 50.0);
            square += (answer - truth).powi(2);
            covered += u32::from(low <= truth && truth <= high);
            width += high - low;
        }
        let runs = f64::from(runs);
        [
            (square / runs).sqrt(),
            f64::from(covered) / runs,
            width / runs,
        ]
    }

    /// At ε = 1 and `n` rows the error is `(w/n) √(2(p² + (1-p)²))`. A sum and a count at ε/2 each have `√2` times as much, and an
    /// interval of `2·ln(40) w/n` or more: 1.8 times as wide in the middle.
    #[test]
    fn answers_are_near_and_covered() {
        let n = 2000;
        for (shift, p) in [(0.0, 0.5), (50.0, 5.0 / 6.0)] {
            let rows: Vec<f64> = (0..n)
                .map(|i| f64::from(i % 41) - 45.0 + shift)
                .map(|x: f64| x.clamp(-100.0, 50.0))
                .collect();
            let mean_of_rows = rows.iter().sum::<f64>() / f64::from(n);
            assert!(((mean_of_rows + 100.0) / 150.0 - p).abs() < 1e-2);
            let secret = mean::<AddRemove>(Contribution::Row);
            let [error, covered, width] = measured(&secret, &laplace(150, 1), &rows);
            let expected = 150.0 / f64::from(n) * (2.0 * (p * p + (1.0 - p) * (1.0 - p))).sqrt();
            assert!(
                (error / expected - 1.0).abs() < 0.11,
                "{error}, not {expected}"
            );
            assert!((0.929..0.971).contains(&covered), "{covered}");
            let two_parts =
                2.0 * 40_f64.ln() * 150.0 / f64::from(n) * (1.0 + (2.0 * p - 1.0).abs());
            assert!(width < 0.57 * two_parts, "{width} {two_parts}");
            let public = mean::<ReplaceOne>(Contribution::Row);
            let [_, covered, _] = measured(&public, &laplace(150, 1), &rows);
            assert!((0.929..0.971).contains(&covered), "{covered}");
            let gaussian = Noise::Gaussian(scale(150, 1));
            let [error, covered, _] = measured(&secret, &gaussian, &rows);
            assert!((error / (expected / 2_f64.sqrt()) - 1.0).abs() < 0.11);
            assert!((0.929..0.971).contains(&covered), "{covered}");
        }
    }

    /// Where noise is as large as the number of rows, intervals are wide, and still cover.
    #[test]
    fn a_few_rows_are_covered_too() {
        let units = Contribution::RowsPerUnit(2);
        for rows in [
            &[17.0][..],
            &[-100.0, -100.0],
            &[-20.0, 30.0, 50.0, 50.0, 1.5],
        ] {
            for noise in [
                laplace(300, 1),
                laplace(20, 1),
                Noise::Gaussian(scale(150, 1)),
            ] {
                let [_, one, _] = measured(&mean::<AddRemove>(units), &noise, rows);
                let [_, other, _] = measured(&mean::<ReplaceOne>(units), &noise, rows);
                assert!(one.min(other) > 0.929, "{rows:?} {noise:?}: {one} {other}");
            }
        }
    }

    /// Three quarters of many rows at `first` and the others at `second`, both seen from `at`, which is far from zero.
    fn rounded_outward<R: Relation>(at: f64, below: f64, [first, second]: [f64; 2]) {
        let bounds = Bounds::new(at - below, at + 1.0).expect("a range");
        let mean = BoundedMean::<R>::new(bounds, Contribution::Row);
        let noisy = mean.with_noise(&laplace(2, 1)).expect("in range");
        for seed in 0..10 {
            let row = |i| at + if i % 4 < 3 { first } else { second };
            let parts = mean.aggregate((0..100_000).map(row));
            let release = noisy.release(parts, confidence(0.999_999), &mut Seeded::new(seed));
            let Estimate { answer, low, high } = *release.expect("entropy").value();
            assert!(at - below <= low && low <= answer && answer <= high && high <= at + 1.0);
            // Exactly, relative to `at`.
            let truth = first + (second - first) / 4.0;
            assert!(low - at <= truth && truth <= high - at, "{low} {high}");
            assert!(high - low <= 0.5, "{low} {high}");
        }
    }

    /// Ranges so narrow and so far away that floats hardly divide them, and more rows than noise can move: all that is uncertain is how
    /// ends are rounded. Floats are an eighth apart there.
    #[test]
    fn ends_are_rounded_outward() {
        for (below, rows) in [
            (0.0, [0.0, 0.125]),
            (1.0, [0.125, 0.25]),
            (1.0, [0.25, 0.125]),
            (1.0, [-0.25, 0.25]),
        ] {
            for at in [1e15, -1e15] {
                rounded_outward::<AddRemove>(at, below, rows);
                rounded_outward::<ReplaceOne>(at, below, rows);
            }
        }
    }

    /// What is public in one mean is not in another.
    #[test]
    fn parts_of_another_mean_are_refused() {
        fn parts<R: Relation>(upper: f64, contribution: Contribution) -> MeanParts {
            let bounds = Bounds::new(-100.0, upper).expect("a range");
            BoundedMean::<R>::new(bounds, contribution).aggregate([1.0, 2.0])
        }
        let (row, unit) = (Contribution::Row, Contribution::RowsPerUnit(1));
        let noisy = mean::<ReplaceOne>(row).with_noise(&laplace(150, 1));
        let noisy = noisy.expect("in range");
        let release = |parts| {
            noisy
                .release(parts, confidence(0.5), &mut Seeded::new(1))
                .err()
        };
        assert_eq!(release(parts::<ReplaceOne>(50.0, row)), None);
        for other in [
            parts::<ReplaceOne>(50.0, unit),
            parts::<ReplaceOne>(60.0, row),
            parts::<AddRemove>(50.0, row),
        ] {
            assert_eq!(release(other), Some(Error::OtherStatistic));
        }
    }

    #[test]
    fn no_rows_and_one_row_are_answered() {
        let mut entropy = Seeded::new(283);
        let plenty = laplace(1, 1 << 20);
        let mut answer = |rows: &[f64], public: bool| {
            let rows = rows.iter().copied();
            let (row, sure) = (Contribution::Row, confidence(0.95));
            let estimate = if public {
                let mean = mean::<ReplaceOne>(row);
                let noisy = mean.with_noise(&plenty).expect("in range");
                noisy.release(mean.aggregate(rows), sure, &mut entropy)
            } else {
                let mean = mean::<AddRemove>(row);
                let noisy = mean.with_noise(&plenty).expect("in range");
                noisy.release(mean.aggregate(rows), sure, &mut entropy)
            };
            let Estimate { answer, low, high } = *estimate.expect("entropy").value();
            assert!(-100.0 <= low && low <= answer && answer <= high && high <= 50.0);
            answer
        };
        for public in [true, false] {
            assert!((answer(&[], public) + 25.0).abs() < 1e-3);
            assert!((answer(&[7.0], public) - 7.0).abs() < 1e-3);
            assert!((answer(&[f64::NAN], public) + 25.0).abs() < 1e-3);
            assert!((answer(&[f64::MAX, f64::NEG_INFINITY], public) + 25.0).abs() < 1e-3);
        }
        // Absent, or the middle where the number of rows is public.
        assert!((answer(&[50.0, f64::NAN], false) - 50.0).abs() < 1e-3);
        assert!((answer(&[50.0, f64::NAN], true) - 12.5).abs() < 1e-3);
        let mean = mean::<AddRemove>(Contribution::Row);
        let noisy = mean.with_noise(&plenty).expect("in range");
        let parts = mean.aggregate([1.0]);
        assert!(
            noisy
                .release(parts, confidence(0.5), &mut FailingEntropy)
                .is_err()
        );
    }

    /// Both sums at once, where all of ε shows, wherever the row is.
    fn seen(row: f64, of: (u128, u128)) -> whit_audit::Verdict {
        let bounds = Bounds::new(0.0, 2.0).expect("a range");
        let mean = BoundedMean::<AddRemove>::new(bounds, Contribution::Row);
        let noisy = mean.with_noise(&laplace(of.0, of.1)).expect("in range");
        let [above, below] = [mean.aggregate([row]).above, mean.aggregate([row]).below];
        let ends = [above.expose(), below.expose()];
        let event = |rows: &[f64], entropy: &mut Seeded| {
            let parts = mean.aggregate(rows.iter().copied());
            let release = noisy.release_sums(parts, entropy).expect("entropy");
            let [above, below] = release.into_value();
            above >= ends[0] && below >= ends[1]
        };
        let (mut one, mut other) = (Seeded::new(seed(285)), Seeded::new(seed(286)));
        judge(
            1.0,
            0.0,
            300_000,
            || event(&[row], &mut one),
            || event(&[], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        for row in [0.0, 1.0, 1.7] {
            let verdict = seen(row, (2, 1));
            assert!(
                !verdict.convicted && verdict.epsilon_lower > 0.91,
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn falsifier_has_teeth() {
        for row in [0.0, 1.0, 1.7] {
            assert!(seen(row, (9, 5)).convicted, "a tenth too little noise");
        }
        assert!(
            seen(2.0, (1, 1)).convicted,
            "each sum as if it were alone and centred"
        );
    }

    /// Every tape of the whole release on a grid of two points: a row, at either end, or none.
    #[test]
    fn enumeration_of_neighbours() {
        let whole = Grid::new(0).expect("in range");
        let bounds = Bounds::on_grid(0.0, 1.0, whole).expect("a range");
        let mean = BoundedMean::<AddRemove>::new(bounds, Contribution::Row);
        let run = |of: (u128, u128), rows: &[f64]| {
            let noisy = mean.with_noise(&laplace(of.0, of.1)).expect("in range");
            enumerate::<1, [i128; 2]>(20, |tape| {
                let parts = mean.aggregate(rows.iter().copied());
                let release = noisy.release_sums(parts, &mut TapeEntropy(Some(tape)));
                release.expect("one release").into_value()
            })
        };
        let nothing = run((1, 1), &[]);
        for row in [0.0, 1.0] {
            let honest = nothing.max_log_ratio_lower(&run((1, 1), &[row]));
            assert!(honest <= 1.0 && honest > 0.65, "{honest}");
        }
        let twin = run((1, 2), &[]).max_log_ratio_lower(&run((1, 2), &[1.0]));
        assert!(twin > 1.0, "{twin}");
    }

    /// Replace-one with a public count: a row moves from one end of the range to the other.
    fn seen_replaced(of: (u128, u128)) -> whit_audit::Verdict {
        let bounds = Bounds::new(0.0, 2.0).expect("a range");
        let mean = BoundedMean::<ReplaceOne>::new(bounds, Contribution::Row);
        let noisy = mean.with_noise(&laplace(of.0, of.1)).expect("in range");
        let (mut one, mut other) = (Seeded::new(seed(287)), Seeded::new(seed(288)));
        let row = 2 * i128::from(mean.bounds.width());
        let event = |value: f64, entropy: &mut Seeded| {
            let release = noisy.release_sums(mean.aggregate([value, 1.0]), entropy);
            let [above, below] = release.expect("entropy").into_value();
            assert_eq!(above + below, 2 * row);
            2 * above >= 3 * row
        };
        judge(
            1.0,
            0.0,
            100_000,
            || event(2.0, &mut one),
            || event(0.0, &mut other),
        )
    }

    #[test]
    fn falsifier_of_a_public_count() {
        let verdict = seen_replaced((2, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.91,
            "{verdict:?}"
        );
        assert!(seen_replaced((9, 5)).convicted);
    }
}
