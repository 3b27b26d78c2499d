//! # Covariance and the moments of several columns
//! **Definition.** Each of `d` columns has public bounds with the middle `m_j` and half width `h_j`; a clamped value becomes
//!   `c_j = (x_j - m_j)/h_j` in `[-1, 1]`. Released together, with independent noise of one scale: `n`, `Σ c_j`, `Σ c_j c_k` for `j < k`, and
//!   `Σ (c_j² - 1/2)`, the sufficient statistics of linear models. Means, covariances and [`LinearModel`](crate::LinearModel)s
//!   are computed from them. Under replace-one with each row a unit, `n` is public and gets no noise.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** That of the noise on the whole vector; `k` is the most rows of one unit:
//!
//! | | L1 | L2 squared |
//! | --- | --- | --- |
//! | add/remove | `k (1 + d + d(d-1)/2 + d/2)` | `k² (1 + d + d(d-1)/2 + d/4)` |
//! | replace-one | `k (2 ⌊(d+1)/2⌋ ⌈(d+1)/2⌉ + d)` | `k² (d+1)²` |
//!
//! **Proof.** Let `v` be what one row adds and `s_j = c_j²`. *Add/remove.* All coordinates of `v` are at most 1 in size, the last `d` at
//!   most 1/2; that is L1. `‖v‖² = 1 + Σ s_j + Σ_{j<k} s_j s_k + Σ (s_j - 1/2)²` is convex in each `s_j`, so largest where all are 0 or 1;
//!   the last sum is `d/4` there and the others grow with the number of ones. *Replace-one, L2.* Put `φ = (1, c)` and
//!   `F = ‖φφᵀ - φ'φ'ᵀ‖² = ‖φ‖⁴ + ‖φ'‖⁴ - 2⟨φ,φ'⟩²`. This counts each mixed coordinate twice and the squares once, so
//!   `‖v - v'‖² = (F + Σ (s_j - s'_j)²)/2`. Without the last term of `F` it is at most
//!   `((1 + Σs)² + (1 + Σs')² + Σ(s - s')²)/2`, convex in all `s, s'`, so largest at zeros and ones; turning an `s_j = 0` into 1 never
//!   lowers it (`2(1 + Σs) + 1` against 1), so the largest is `(d+1)²`, reached for odd `d`. *Replace-one, L1.* The mixed coordinates
//!   add up to a function that is convex in each pair `(c_j, c'_j)`, so largest at signs; if `m` of them differ, it is
//!   `2m + 2m(d-m)`, at most `2⌊(d+1)/2⌋⌈(d+1)/2⌉`. Each square adds at most 1. *Several rows.* A unit's rows add up: `k` times, by the
//!   triangle inequality. Replaced rows are paired with each other and, if one unit has fewer, with nothing; the bounds for one
//!   row against nothing (add/remove) are never above those for a pair. A row with an absent cell adds nothing; where `n` is
//!   public, the cell is read as the middle.
//! **Fixed point.** `c_j` is rounded to `2^-25`, so all coordinates are integers in units of `2^-50`, at most `2^50` for a row; `2^63` rows
//!   fit in 128 bits. The bounds above hold for these integers exactly, as they are numbers in `[-1, 1]` too.
//! **Error.** Each coordinate has the noise's own. Intervals of a covariance hold all that its (up to four) parts allow, each with a
//!   share of what may miss. Clamping and rounding are not part of it.

use whit_core::{
    Confidence, Entropy, Event, L1, L2, Neighbours, Ratio, Relation, Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::{Bounds, Contribution, Error, Moments, Release, Result};

/// The moments of several columns.
#[derive(Clone, Debug)]
pub struct Covariance<R: Relation> {
    columns: Vec<Bounds>,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// What the data gives: all sums in order, and the number of rows, with values or without.
pub struct MomentParts {
    sums: Secret<Vec<i128>>,
    rows: Secret<i64>,
}

/// More columns than this are no table of moments.
const COLUMNS_MAX: usize = 1 << 10;
/// One half width, in steps: `2^25`. With scales up to a thousand half widths the Gaussian sampler stays in 64 bits.
const UNIT_BITS: i32 = 25;
const UNIT: i128 = 1 << UNIT_BITS;

impl<R: Relation> Covariance<R> {
    /// Over columns with these bounds, of rows that were bounded so.
    pub fn new(columns: Vec<Bounds>, contribution: Contribution) -> Result<Self> {
        if !(1..=COLUMNS_MAX).contains(&columns.len()) {
            return Err(Error::CountOutOfRange {
                what: "the number of columns",
                given: columns.len() as u64,
                min: 1,
                max: COLUMNS_MAX as u64,
            });
        }
        Ok(Self {
            columns,
            contribution,
            relation: std::marker::PhantomData,
        })
    }

    /// Is the number of rows public?
    pub fn count_is_public(&self) -> bool {
        R::NEIGHBOURS == Neighbours::ReplaceOne && self.contribution == Contribution::Row
    }

    /// The most that one unit changes all moments together, where a column's half width is one.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        let d = self.columns.len() as u128;
        // In halves: 2 + 2d + d(d-1) + d, and twice the other.
        let halves = R::pick(2 + 2 * d + d * d, 4 * d.div_ceil(2) * ((d + 2) / 2) + 2 * d);
        let rows_max = u128::from(self.contribution.rows_max());
        Sensitivity::new(&Ratio::from(halves * rows_max) * &Ratio::power_of_two(-1))
    }

    /// The same in L2.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        let d = self.columns.len() as u128;
        let quarters = R::pick(4 + 3 * d + 2 * d * d, 4 * (d + 1) * (d + 1));
        let rows_max = u128::from(self.contribution.rows_max());
        let square = &Ratio::from(quarters * rows_max * rows_max) * &Ratio::power_of_two(-2);
        Sensitivity::from_square(square)
    }

    /// Adds up the moments of rows with one value per column; what is no number, or missing at the end, is absent.
    pub fn aggregate<Row: AsRef<[f64]>>(&self, rows: impl IntoIterator<Item = Row>) -> MomentParts {
        let layout = Layout(self.columns.len());
        let mut sums = vec![0_i128; layout.coordinates()];
        let mut all = 0_i64;
        let middle_if_absent = self.count_is_public().then_some(0);
        let mut units = Vec::with_capacity(self.columns.len());
        for row in rows {
            all += 1;
            units.clear();
            units.extend(self.columns.iter().enumerate().map_while(|(j, bounds)| {
                let value = row.as_ref().get(j).copied().unwrap_or(f64::NAN);
                bounds
                    .fix(value)
                    .map(|steps| in_units(*bounds, steps))
                    .or(middle_if_absent)
            }));
            if units.len() < self.columns.len() {
                continue;
            }
            sums[0] += UNIT * UNIT;
            for (j, &c) in units.iter().enumerate() {
                sums[layout.sum(j)] += c * UNIT;
                for (k, &other) in units.iter().enumerate().skip(j) {
                    let centre = if j == k { UNIT * UNIT / 2 } else { 0 };
                    sums[layout.product(j, k)] += c * other - centre;
                }
            }
        }
        MomentParts {
            sums: Secret::new(sums),
            rows: Secret::new(all),
        }
    }

    /// Prepares the noise, whose scale is in the unit in which a column's half width is one. No data is needed, so the event can
    /// be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> Result<NoisyMoments<R>> {
        let steps = Ratio::power_of_two(2 * UNIT_BITS);
        let noise = noise.in_steps(&Ratio::power_of_two(-2 * UNIT_BITS))?;
        let l1 = Sensitivity::new(self.sensitivity_l1().bound() * &steps);
        let l2 = Sensitivity::from_square(&(self.sensitivity_l2().square() * &steps) * &steps);
        Ok(NoisyMoments {
            columns: self.columns.clone(),
            count_is_public: self.count_is_public(),
            mechanism: Additive::new(&noise, l1, l2),
        })
    }
}

/// `(x - m)/h` in units, to the nearest: within `±UNIT`, with both ends reached.
fn in_units(bounds: Bounds, steps: i64) -> i128 {
    let width = i128::from(bounds.width());
    let centred = 2 * i128::from(steps) - i128::from(bounds.lower()) - i128::from(bounds.upper());
    (2 * centred * UNIT + width).div_euclid(2 * width)
}

/// Where the moments of so many columns stand: the count, the sums, the upper triangle of products row by row.
#[derive(Clone, Copy)]
pub(crate) struct Layout(pub(crate) usize);

impl Layout {
    fn coordinates(self) -> usize {
        1 + self.0 + self.0 * (self.0 + 1) / 2
    }

    pub(crate) fn sum(self, j: usize) -> usize {
        1 + j
    }

    pub(crate) fn product(self, j: usize, k: usize) -> usize {
        let (j, k) = (j.min(k), j.max(k));
        // Rows before j have d, d-1, … entries.
        1 + self.0 + j * (2 * self.0 + 1 - j) / 2 + (k - j)
    }
}

/// Moments with their noise, ready to release as often as their event is paid for.
pub struct NoisyMoments<R: Relation> {
    columns: Vec<Bounds>,
    count_is_public: bool,
    mechanism: Additive<R>,
}

impl<R: Relation> NoisyMoments<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let all = Layout(self.columns.len()).coordinates() as u64;
        self.mechanism
            .event_of(all - u64::from(self.count_is_public))
    }

    /// Adds the noise. Spends one `event`. The confidence is that of each interval which the moments will give.
    pub fn release(
        &self,
        parts: MomentParts,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Moments>> {
        // A quarter of what may miss for each part of a covariance.
        let confidence = confidence.for_each_of_two().for_each_of_two();
        let half_width = libm::ldexp(self.mechanism.half_width(confidence) as f64, -2 * UNIT_BITS);
        let columns = self.columns.clone();
        let public = self.count_is_public;
        // The number of rows is the same for all neighbours where it is public: it may leave without noise.
        let rows = public.then(|| parts.rows.expose() as f64);
        let coordinates = Layout(columns.len()).coordinates();
        let sums = parts.sums.map(|mut sums| {
            // As many as were paid for, whoever made the parts.
            sums.resize(coordinates, 0);
            sums.drain(..usize::from(public));
            sums
        });
        Ok(self.mechanism.release_vector(sums, entropy)?.map(|noisy| {
            let noisy = noisy
                .into_iter()
                .map(|sum| libm::ldexp(sum as f64, -2 * UNIT_BITS));
            Moments {
                columns,
                sums: rows.into_iter().chain(noisy).collect(),
                count_half_width: if public { 0.0 } else { half_width },
                half_width,
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, judge, scale, seed};
    use whit_audit::{Alpha, GdpVerdict, falsify_gdp};
    use whit_core::{AddRemove, Mu, ReplaceOne};
    use whit_testkit::{NeighbourPair, Seeded, SeededBits, UnitPair, long};

    fn of<R: Relation>(d: usize, contribution: Contribution) -> Covariance<R> {
        Covariance::new(
            vec![Bounds::new(-1.0, 1.0).expect("a range"); d],
            contribution,
        )
        .expect("some columns")
    }

    #[test]
    fn closed_form() {
        let l1 = |d| {
            of::<AddRemove>(d, Contribution::Row)
                .sensitivity_l1()
                .bound()
                .to_f64_up()
        };
        let l2 = |d| {
            of::<AddRemove>(d, Contribution::Row)
                .sensitivity_l2()
                .square()
                .to_f64_up()
        };
        assert_eq!((l1(1), l1(2), l1(3)), (2.5, 5.0, 8.5));
        assert_eq!((l2(1), l2(2), l2(3)), (2.25, 4.5, 7.75));
        let unit = Contribution::RowsPerUnit(3);
        let replaced = of::<ReplaceOne>(3, unit);
        assert_eq!(replaced.sensitivity_l1().bound(), &Ratio::from(33_u64));
        assert_eq!(replaced.sensitivity_l2().square(), &Ratio::from(144_u64));
        // A row against nothing is never worse than a row against a row, which the proof for several rows needs.
        for d in 1..50 {
            let (added, replaced) = (of::<AddRemove>(d, unit), of::<ReplaceOne>(d, unit));
            assert!(added.sensitivity_l1().bound() <= replaced.sensitivity_l1().bound());
            assert!(added.sensitivity_l2().square() <= replaced.sensitivity_l2().square());
        }
    }

    /// The distance of two data sets in units, in L1 and L2 squared.
    fn distance<R: Relation>(
        of: &Covariance<R>,
        one: &[Vec<f64>],
        other: &[Vec<f64>],
    ) -> (f64, f64) {
        let sums = |rows: &[Vec<f64>]| of.aggregate(rows).sums.expose();
        let apart = sums(one)
            .into_iter()
            .zip(sums(other))
            .skip(usize::from(of.count_is_public()));
        let apart = apart.map(|(a, b)| libm::ldexp(a.abs_diff(b) as f64, -2 * UNIT_BITS));
        apart.fold((0.0, 0.0), |(l1, l2), d| (l1 + d, l2 + d * d))
    }

    /// Rows at the corners of the cube and inside it: no pair is further apart than claimed, and the claim is reached.
    #[test]
    fn the_worst_rows_are_as_far_apart_as_claimed() {
        let mut bits = SeededBits::new(seed(641));
        for d in 1..=4 {
            let added = of::<AddRemove>(d, Contribution::Row);
            let replaced = of::<ReplaceOne>(d, Contribution::Row);
            let mut worst = [0.0_f64; 4];
            for round in 0..4000_u32 {
                let mut row = |corner: bool| -> Vec<f64> {
                    let value = |bits: &mut SeededBits| bits.below(2001) as f64 / 1000.0 - 1.0;
                    (0..d)
                        .map(|_| {
                            if corner {
                                value(&mut bits).signum()
                            } else {
                                value(&mut bits)
                            }
                        })
                        .collect()
                };
                let (one, other) = (vec![row(round % 2 == 0)], vec![row(round % 3 == 0)]);
                let (l1, l2) = distance(&added, &one, &[]);
                let (l1_replaced, l2_replaced) = distance(&replaced, &one, &other);
                for (worst, found) in worst.iter_mut().zip([l1, l2, l1_replaced, l2_replaced]) {
                    *worst = worst.max(found);
                }
            }
            let claims = [
                added.sensitivity_l1().bound().to_f64_up(),
                added.sensitivity_l2().square().to_f64_up(),
                replaced.sensitivity_l1().bound().to_f64_up(),
                replaced.sensitivity_l2().square().to_f64_up(),
            ];
            assert!(
                worst
                    .iter()
                    .zip(claims)
                    .all(|(worst, claim)| *worst <= claim),
                "{d}: {worst:?} {claims:?}"
            );
            assert_eq!(worst[..2], claims[..2], "{d}: tight for add/remove");
            assert!(
                d % 2 == 0 || worst[3] == claims[3],
                "{d}: tight for replace-one in odd dimensions"
            );
            assert!(worst[3] > 0.85 * claims[3], "{d}: close to it in even ones");
        }
    }

    fn record_and_replay<R: Relation>(pair: impl Fn(&mut SeededBits) -> NeighbourPair) {
        let mut bits = SeededBits::new(seed(642));
        let of = Covariance::<R>::new(
            vec![
                Bounds::new(0.0, 1.0).expect("a range"),
                Bounds::new(-1e200, 1e200).expect("a range"),
            ],
            Contribution::Row,
        );
        let of = of.expect("two columns");
        for _ in 0..200 {
            let NeighbourPair { one, other } = pair(&mut bits);
            let rows = |values: Vec<f64>| -> Vec<Vec<f64>> {
                values
                    .into_iter()
                    .map(|x| if x > 7.0 { vec![x] } else { vec![x, -x] })
                    .collect()
            };
            let (one, other) = (rows(one), rows(other));
            let (l1, l2) = distance(&of, &one, &other);
            assert!(l1 <= of.sensitivity_l1().bound().to_f64_up());
            assert!(l2 <= of.sensitivity_l2().square().to_f64_up());
            let counts = [one, other].map(|rows| of.aggregate(rows).rows.expose());
            assert!(
                !of.count_is_public() || counts[0] == counts[1],
                "a public count differs"
            );
        }
    }

    fn replay_units<R: Relation>(pair: impl Fn(&mut SeededBits) -> UnitPair) {
        let mut bits = SeededBits::new(seed(649));
        let contribution = Contribution::RowsPerUnit(3);
        let of = of::<R>(2, contribution);
        for _ in 0..200 {
            let UnitPair { one, other } = pair(&mut bits);
            let rows = |rows: Vec<(u64, f64)>| -> Vec<Vec<f64>> {
                contribution
                    .bound(rows)
                    .map(|x| vec![x, 1.0 - 3.0 * x])
                    .collect()
            };
            let (l1, l2) = distance(&of, &rows(one), &rows(other));
            assert!(l1 <= of.sensitivity_l1().bound().to_f64_up());
            assert!(l2 <= of.sensitivity_l2().square().to_f64_up());
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay::<AddRemove>(NeighbourPair::add_remove);
        record_and_replay::<ReplaceOne>(NeighbourPair::replace_one);
        replay_units::<AddRemove>(UnitPair::add_remove);
        replay_units::<ReplaceOne>(UnitPair::replace_one);
    }

    /// The noisy integers themselves, in half widths.
    fn noisy<const D: usize>(
        of: &Covariance<AddRemove>,
        noisy: &NoisyMoments<AddRemove>,
        rows: &[[f64; D]],
        entropy: &mut Seeded,
    ) -> Vec<f64> {
        let sums = of.aggregate(rows).sums;
        let release = noisy
            .mechanism
            .release_vector(sums, entropy)
            .expect("entropy");
        let unit = |&sum: &i128| libm::ldexp(sum as f64, -2 * UNIT_BITS);
        release.value().iter().map(unit).collect()
    }

    /// All moments of one row at a corner, against none. For Gaussian noise the best test is linear.
    fn seen_gaussian(sigma: (u128, u128)) -> GdpVerdict {
        let of = of::<AddRemove>(2, Contribution::Row);
        let with_noise = of
            .with_noise(&Noise::Gaussian(scale(sigma.0, sigma.1)))
            .expect("in range");
        let worst = [1.0, 1.0, 1.0, 0.5, 1.0, 0.5];
        let (mut one, mut other) = (Seeded::new(seed(645)), Seeded::new(seed(646)));
        let event = |rows: &[[f64; 2]], entropy: &mut Seeded| {
            let sums = noisy(&of, &with_noise, rows, entropy);
            sums.iter().zip(worst).map(|(sum, v)| sum * v).sum::<f64>() >= 2.25
        };
        let (claim, alpha) = (
            Mu::new(1.0).expect("a mu"),
            Alpha::new(ALPHA).expect("a level"),
        );
        falsify_gdp(
            claim,
            60_000,
            alpha,
            || event(&[[1.0, 1.0]], &mut one),
            || event(&[], &mut other),
        )
        .expect("trials")
    }

    /// For Laplace noise it is a product of half-lines.
    fn seen_laplace(b: (u128, u128), trials: u64) -> whit_audit::Verdict {
        let of = of::<AddRemove>(1, Contribution::Row);
        let with_noise = of
            .with_noise(&Noise::Laplace(scale(b.0, b.1)))
            .expect("in range");
        let (mut one, mut other) = (Seeded::new(seed(647)), Seeded::new(seed(648)));
        let event = |rows: &[[f64; 1]], entropy: &mut Seeded| {
            let sums = noisy(&of, &with_noise, rows, entropy);
            sums.iter().zip([1.0, 1.0, 0.5]).all(|(sum, v)| *sum >= v)
        };
        judge(
            1.0,
            0.0,
            if long() { 2 * trials } else { trials },
            || event(&[[1.0]], &mut one),
            || event(&[], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        // √4.5 = 2.12132…, rounded up.
        let verdict = seen_gaussian((212_133, 100_000));
        assert!(!verdict.convicted && verdict.mu_lower > 0.9, "{verdict:?}");
        let verdict = seen_laplace((5, 2), 200_000);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.85,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen_gaussian((19, 10)).convicted, "noise a tenth too small");
        assert!(
            seen_laplace((9, 4), 400_000).convicted,
            "noise a tenth too small"
        );
        assert!(
            seen_laplace((3, 2), 200_000).convicted,
            "the sensitivity of L2 for Laplace noise"
        );
    }
}
