//! # Bounded variance and standard deviation
//! **Definition.** With the middle `m = (L+U)/2` and `c_i = clamp(x_i) - m`: `Σc²/n - (Σc/n)²`, the variance of the clamped values
//!   (of these rows, divisor `n`), from noisy versions of `Σc`, of `Σ(c² - w²/8)` with `w = U - L`, and of `n`. Under replace-one
//!   with each row a unit, `n` is the public number of rows and two noisy parts are enough. Clamped to `[0, w²/4]`, which no
//!   variance in the range leaves. The standard deviation is its square root.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** The composition of the noise on the parts, at these sensitivities; `k` is the most rows of one unit:
//!
//! | | centred sum | centred squares | count |
//! | --- | --- | --- | --- |
//! | add/remove | `k w/2` | `k w²/8` | `k` |
//! | replace-one, up to `k` rows | `k w` | `k w²/4` | `k` |
//! | replace-one, each row a unit | `w` | `w²/4` | public |
//!
//! **Proof.** `c` lies in `[-w/2, w/2]`, so `c²` in `[0, w²/4]` and `c² - w²/8` in `[-w²/8, w²/8]`. A row without a value adds zero to all
//!   parts; where `n` is public it is read as the middle, `c = 0`, like any other value. So a unit's total lies in `k` times
//!   these ranges, one end of which is half the width from zero. (A variance does not depend on where it is centred. Squares
//!   about the middle move by `w²/8`, uncentred ones by `max(L²,U²)/2` or `|U²-L²|/2`, which is never less.) Division,
//!   subtraction and clamping are post-processing.
//! **Fixed point.** `c` counts half steps of the grid, `|c| <= w <= 2^61`. Its square is below `2^123`, so that the sum over many rows
//!   would leave 128 bits; hence `q = floor(c²/2^s)` with the public `s >= 0` for which `Q = floor(w²/2^s) < 2^52`. The floor is
//!   monotone, so `0 <= q <= Q` and `2q - Q` is in `[-Q, Q]`, exactly as above with `Q` for the width; `2^63` rows stay below
//!   `2^116`. What the floor takes is less than one part in `2^51` of the range.
//! **Error.** Each of the two or three parts stays within its half-width except with its share of the missing probability, so all do
//!   with the stated confidence (union bound), and the interval holds every variance that they allow.

use whit_core::{
    Confidence, Entropy, Event, L1, L2, Neighbours, Ratio, Relation, Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::count::NoisyCount;
use crate::standard_deviation::{each_of, variance};
use crate::{Bounds, Contribution, Count, Error, Estimate, Release, Result};

/// The variance of values in public bounds.
#[derive(Clone, Copy, Debug)]
pub struct BoundedVariance<R: Relation> {
    bounds: Bounds,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// What the data gives to a variance: the centred sum in half steps, the centred squares, how many values there are, and how
/// many rows, with a value or without.
pub struct VarianceParts {
    centred: Secret<i128>,
    squares: Secret<i128>,
    count: Secret<i64>,
    rows: Secret<i64>,
}

/// How much noise each part gets: the caller's split of the budget.
#[derive(Clone, Debug)]
pub struct VarianceNoise {
    /// On the centred sum, in the unit of the values.
    pub sum: Noise,
    /// On the centred squares, in the square of that unit.
    pub squares: Noise,
    /// On the count; none exactly when the count is public.
    pub count: Option<Noise>,
}

/// A square has at most this many bits: 128 bits hold any sum, and for common budgets 64 bits the noise, which is quick.
const SQUARE_BITS: u32 = 52;

impl<R: Relation> BoundedVariance<R> {
    /// A variance over rows that were bounded so.
    pub fn new(bounds: Bounds, contribution: Contribution) -> Self {
        Self {
            bounds,
            contribution,
            relation: std::marker::PhantomData,
        }
    }

    /// Is the number of rows public, so that only the two sums need noise?
    pub fn count_is_public(&self) -> bool {
        R::NEIGHBOURS == Neighbours::ReplaceOne && self.contribution == Contribution::Row
    }

    /// The most that one unit changes the centred sum, in the unit of the values.
    pub fn sum_sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.moves(self.bounds.width()) * &self.half_step())
    }

    /// The same; in one dimension all norms agree.
    pub fn sum_sensitivity_l2(&self) -> Sensitivity<L2, R> {
        Sensitivity::new(self.sum_sensitivity_l1().bound().clone())
    }

    /// The most that one unit changes the centred squares, in the square of the unit of the values.
    pub fn square_sensitivity_l1(&self) -> Sensitivity<L1, R> {
        let squares = Squares::new(self.bounds);
        Sensitivity::new(&self.moves(squares.largest) * &self.square_unit())
    }

    /// The same; in one dimension all norms agree.
    pub fn square_sensitivity_l2(&self) -> Sensitivity<L2, R> {
        Sensitivity::new(self.square_sensitivity_l1().bound().clone())
    }

    /// The count that divides the sums, when it needs noise.
    pub fn count(&self) -> Count<R> {
        Count::new(self.contribution)
    }

    fn half_step(&self) -> Ratio {
        &self.bounds.step() * &Ratio::power_of_two(-1)
    }

    /// The unit in which centred squares are counted: half of `2^s` squared half steps.
    fn square_unit(&self) -> Ratio {
        let shift = Squares::new(self.bounds).shift as i32;
        &(&self.half_step() * &self.half_step()) * &Ratio::power_of_two(shift - 1)
    }

    /// How far a unit moves a sum of integers in `[-each, each]`.
    fn moves(&self, each: u64) -> Ratio {
        let sides = R::pick(1_u128, 2);
        Ratio::from(sides * u128::from(each) * u128::from(self.contribution.rows_max()))
    }

    /// Centres, squares and adds up; what is no number is absent.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> VarianceParts {
        let twice_middle = i128::from(self.bounds.lower()) + i128::from(self.bounds.upper());
        let squares_of = Squares::new(self.bounds);
        let middle_if_absent = self.count_is_public().then_some(0);
        let (mut centred, mut squares, mut count, mut all) = (0_i128, 0_i128, 0_i64, 0_i64);
        for value in rows {
            all += 1;
            let steps = self.bounds.fix(value);
            let c = steps.map(|steps| 2 * i128::from(steps) - twice_middle);
            if let Some(c) = c.or(middle_if_absent) {
                centred += c;
                squares += squares_of.centred(c);
                count += 1;
            }
        }
        VarianceParts {
            centred: Secret::new(centred),
            squares: Secret::new(squares),
            count: Secret::new(count),
            rows: Secret::new(all),
        }
    }

    /// Prepares the noise. No data is needed, so the event can be paid for first. There must be noise for the count exactly
    /// when [`count_is_public`](Self::count_is_public) is false.
    pub fn with_noise(&self, noise: &VarianceNoise) -> Result<NoisyVariance<R>> {
        if self.count_is_public() != noise.count.is_none() {
            return Err(Error::CountNoise {
                public: self.count_is_public(),
            });
        }
        let additive = |noise: &Noise, unit: &Ratio, moves: Ratio| -> Result<Additive<R>> {
            let noise = noise.in_steps(unit)?;
            let (l1, l2) = (Sensitivity::new(moves.clone()), Sensitivity::new(moves));
            Ok(Additive::new(&noise, l1, l2))
        };
        let squares = Squares::new(self.bounds);
        Ok(NoisyVariance {
            bounds: self.bounds,
            sum: additive(
                &noise.sum,
                &self.half_step(),
                self.moves(self.bounds.width()),
            )?,
            squares: additive(
                &noise.squares,
                &self.square_unit(),
                self.moves(squares.largest),
            )?,
            count: noise
                .count
                .as_ref()
                .map(|noise| self.count().with_noise(noise)),
        })
    }
}

/// Squares of half steps, coarsened so that integers hold them.
#[derive(Clone, Copy)]
pub(crate) struct Squares {
    /// The public `s`.
    pub(crate) shift: u32,
    /// The largest `q`.
    pub(crate) largest: u64,
}

impl Squares {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let largest = u128::from(bounds.width()) * u128::from(bounds.width());
        let bits = u128::BITS - largest.leading_zeros();
        let shift = bits.saturating_sub(SQUARE_BITS);
        Self {
            shift,
            largest: (largest >> shift) as u64,
        }
    }

    /// `2q - Q` for `|c| <= w`.
    fn centred(self, c: i128) -> i128 {
        2 * ((c * c) >> self.shift) - i128::from(self.largest)
    }
}

/// A variance with its noise, ready to release as often as its event is paid for.
pub struct NoisyVariance<R: Relation> {
    bounds: Bounds,
    sum: Additive<R>,
    squares: Additive<R>,
    /// Absent when the count is public.
    count: Option<NoisyCount<R>>,
}

impl<R: Relation> NoisyVariance<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let same = "all speak of the relation R";
        let sums = self.sum.event_of(1).and(self.squares.event_of(1));
        let sums = sums.expect(same);
        match &self.count {
            Some(count) => sums.and(count.event()).expect(same),
            None => sums,
        }
    }

    /// Adds the noise and the error bars. Spends one `event`. For the standard deviation, map
    /// [`standard_deviation`](crate::standard_deviation()) over it.
    pub fn release(
        &self,
        parts: VarianceParts,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        let bounds = self.bounds;
        let parts = self.release_parts(parts, confidence, entropy)?;
        Ok(parts.map(|[sum, squares, count]| variance(bounds, sum, squares, count)))
    }

    /// All that touches the data: the noisy sums in their units, and the count, noisy unless it is public. All three intervals
    /// hold together with the confidence asked for.
    fn release_parts(
        &self,
        parts: VarianceParts,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<[Estimate; 3]>> {
        let confidence = each_of(if self.count.is_some() { 3 } else { 2 }, confidence);
        let sum = self.sum.release(parts.centred, entropy)?;
        let squares = self.squares.release(parts.squares, entropy)?;
        let sums = sum.and(squares)?.map(|(sum, squares)| {
            let around = |noisy: i128, half_width: u128| Estimate {
                answer: noisy as f64,
                low: noisy as f64 - half_width as f64,
                high: noisy as f64 + half_width as f64,
            };
            (
                around(sum, self.sum.half_width(confidence)),
                around(squares, self.squares.half_width(confidence)),
            )
        });
        let Some(count) = &self.count else {
            // The number of rows is the same for all neighbours: it may leave without noise.
            let rows = parts.rows.expose() as f64;
            let count = Estimate {
                answer: rows,
                low: rows,
                high: rows,
            };
            return Ok(sums.map(|(sum, squares)| [sum, squares, count]));
        };
        let count = count.release(parts.count, confidence, entropy)?;
        Ok(sums
            .and(count)?
            .map(|((sum, squares), count)| [sum, squares, count]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{NeighbourPair, Seeded, SeededBits, UnitPair, long};

    fn of<R: Relation>(range: (f64, f64), contribution: Contribution) -> BoundedVariance<R> {
        BoundedVariance::new(
            Bounds::new(range.0, range.1).expect("a range"),
            contribution,
        )
    }

    fn check<R: Relation>(contribution: Contribution, sum: f64, squares: f64) {
        let variance = of::<R>((-100.0, 50.0), contribution);
        assert_eq!(variance.sum_sensitivity_l1().bound().to_f64_up(), sum);
        let found = variance.square_sensitivity_l1().bound().to_f64_up();
        assert!(
            found <= squares && found > squares * (1.0 - 1e-14),
            "{found}"
        );
    }

    #[test]
    fn closed_form() {
        let unit = Contribution::RowsPerUnit(3);
        check::<AddRemove>(Contribution::Row, 75.0, 2812.5);
        check::<AddRemove>(unit, 225.0, 8437.5);
        check::<ReplaceOne>(Contribution::Row, 150.0, 5625.0);
        check::<ReplaceOne>(unit, 450.0, 16875.0);
        assert!(of::<ReplaceOne>((0.0, 1.0), Contribution::Row).count_is_public());
        assert!(!of::<ReplaceOne>((0.0, 1.0), unit).count_is_public());
        // Never more than half the range of the uncentred squares.
        for (lower, upper) in [(-100.0, 50.0), (0.0, 120.0), (18.0, 90.0), (-5.0, 5.0)] {
            let ours = of::<AddRemove>((lower, upper), Contribution::Row).square_sensitivity_l1();
            let straddles = lower < 0.0 && upper > 0.0;
            let (least, most) = (
                (lower * lower).min(upper * upper),
                (lower * lower).max(upper * upper),
            );
            let uncentred = 0.5 * (most - if straddles { 0.0 } else { least });
            assert!(ours.bound().to_f64_up() <= uncentred);
        }
    }

    fn stay_within<R: Relation>(of: &BoundedVariance<R>, a: VarianceParts, b: VarianceParts) {
        let moved = |a: Secret<i128>, b: Secret<i128>| Ratio::from(a.expose().abs_diff(b.expose()));
        assert!(moved(a.centred, b.centred) <= of.moves(of.bounds.width()));
        assert!(moved(a.squares, b.squares) <= of.moves(Squares::new(of.bounds).largest));
        let counts = a.count.expose().abs_diff(b.count.expose());
        let most = u64::from(of.contribution.rows_max());
        assert!(counts <= if of.count_is_public() { 0 } else { most });
    }

    fn record_and_replay<R: Relation>(pair: impl Fn(&mut SeededBits) -> NeighbourPair) {
        let mut bits = SeededBits::new(seed(601));
        for range in [
            (-100.0, 50.0),
            (0.0, 1.0),
            (1e15, 1e15 + 1.0),
            (-1e200, 1e200),
            (0.0, 5e-324),
        ] {
            let variance = of::<R>(range, Contribution::Row);
            for _ in 0..200 {
                let NeighbourPair { one, other } = pair(&mut bits);
                stay_within(
                    &variance,
                    variance.aggregate(one),
                    variance.aggregate(other),
                );
            }
        }
    }

    fn replay_units<R: Relation>(pair: impl Fn(&mut SeededBits) -> UnitPair) {
        let mut bits = SeededBits::new(seed(606));
        for rows_max in [1, 3] {
            let contribution = Contribution::RowsPerUnit(rows_max);
            let variance = of::<R>((-100.0, 50.0), contribution);
            let of = |rows| variance.aggregate(contribution.bound(rows));
            for _ in 0..200 {
                let UnitPair { one, other } = pair(&mut bits);
                stay_within(&variance, of(one), of(other));
            }
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay::<AddRemove>(NeighbourPair::add_remove);
        record_and_replay::<ReplaceOne>(NeighbourPair::replace_one);
        replay_units::<AddRemove>(UnitPair::add_remove);
        replay_units::<ReplaceOne>(UnitPair::replace_one);
    }

    #[test]
    fn squares_fit_for_the_widest_bounds() {
        for range in [
            (-1e200, 1e200),
            (1e15, 1e15 + 1.0),
            (-1.0, 1.0),
            (0.0, 5e-324),
            (-1e18, 1e18),
        ] {
            let variance = of::<AddRemove>(range, Contribution::Row);
            let squares = Squares::new(variance.bounds);
            let width = i128::from(variance.bounds.width());
            assert!(squares.largest < 1 << SQUARE_BITS);
            for (c, q) in [(width, 1), (-width, 1), (0, -1)] {
                assert_eq!(squares.centred(c), q * i128::from(squares.largest));
            }
            // What 2^63 rows at the end of the range add up to.
            assert!(i128::from(squares.largest).checked_mul(1 << 63).is_some());
        }
    }

    fn noise(sum: u128, squares: u128, count: Option<u128>) -> VarianceNoise {
        let laplace = |b| Noise::Laplace(scale(b, 1));
        VarianceNoise {
            sum: laplace(sum),
            squares: laplace(squares),
            count: count.map(laplace),
        }
    }

    #[test]
    fn refuses_the_wrong_number_of_noises() {
        let (secret, public) = (
            of::<AddRemove>((0.0, 1.0), Contribution::Row),
            of::<ReplaceOne>((0.0, 1.0), Contribution::Row),
        );
        assert!(secret.with_noise(&noise(1, 1, None)).is_err());
        assert!(public.with_noise(&noise(1, 1, Some(1))).is_err());
    }

    /// All parts at once, where all of ε shows: a row at the end of the range moves each by all it can.
    fn seen<R: Relation>(
        noise: [(u128, u128); 3],
        worlds: [&[f64]; 2],
        (twice, trials): (bool, u64),
    ) -> whit_audit::Verdict {
        let variance = of::<R>((-1.0, 1.0), Contribution::Row);
        let [sum, squares, count] = noise.map(|b| Noise::Laplace(scale(b.0, b.1)));
        let count = (!variance.count_is_public()).then_some(count);
        let noisy = variance.with_noise(&VarianceNoise {
            sum,
            squares,
            count,
        });
        let noisy = noisy.expect("in range");
        let most = Squares::new(variance.bounds).largest as f64;
        let width = variance.bounds.width() as f64;
        let (mut one, mut other) = (Seeded::new(seed(604)), Seeded::new(seed(605)));
        let event = |rows: &[f64], entropy: &mut Seeded| {
            let mut parts = variance.aggregate(rows.iter().copied());
            parts.squares = parts.squares.map(|squares| squares << u32::from(twice));
            let release = noisy.release_parts(parts, confidence(0.95), entropy);
            let [sum, squares, count] = release.expect("entropy").into_value();
            sum.answer >= width && squares.answer >= most && count.answer >= 1.0
        };
        judge(
            1.0,
            0.0,
            if long() { 4 * trials } else { trials },
            || event(worlds[0], &mut one),
            || event(worlds[1], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        // A third for each part: sensitivities 1, 1/2 and 1.
        let verdict = seen::<AddRemove>([(3, 1), (3, 2), (3, 1)], [&[1.0], &[]], (false, 100_000));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.82,
            "{verdict:?}"
        );
        // With a public count, two halves of 2 and 1. From the end to the middle the sum moves by half of what it may, so all
        // of the squares' half and half of the sum's shows: 3/4.
        let verdict =
            seen::<ReplaceOne>([(4, 1), (2, 1), (1, 1)], [&[1.0], &[0.0]], (false, 100_000));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.62,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        let added = |noise, how| seen::<AddRemove>(noise, [&[1.0], &[]], how).convicted;
        assert!(
            added([(27, 10), (27, 20), (27, 10)], (false, 320_000)),
            "a tenth too little noise"
        );
        assert!(
            added([(3, 1), (1, 1), (3, 1)], (false, 200_000)),
            "squares that get half of the budget"
        );
        assert!(
            added([(3, 1), (3, 2), (3, 1)], (true, 100_000)),
            "squares that are not centred"
        );
        assert!(
            added([(3, 1), (3, 2), (1, 1 << 20)], (false, 100_000)),
            "a count without noise"
        );
        let replaced = [(4, 1), (1, 1), (1, 1)];
        assert!(
            seen::<ReplaceOne>(replaced, [&[1.0], &[0.0]], (false, 100_000)).convicted,
            "squares with the sensitivity of add/remove"
        );
    }
}
