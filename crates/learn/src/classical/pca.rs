//! # Principal components
//! **Definition.** An example is what it is away from a declared centre, over a declared norm, and if it is longer than one it is shortened to that. Released,
//!   with independent noise of one scale: the upper triangle of `Σ xxᵀ`; and `Σ x/2` and half the number of examples, if components are to be about the mean, which takes `Σx (Σx)ᵀ/n` off. The first
//!   eigenvectors of what is left are the components. \[DTTZ14, BDMN05\]
//! **Requires.** Centre and norm that were declared without the data.
//! **Guarantee.** That of [`noisy_sums`](super::noisy_sums) with one round, `Δ₁ = (d+1)/2` and `Δ₂ = 1`. The second is reached, and the first where `d` is a power of
//!   four; else but for rounding. About the mean `Δ₁ = (d+1)/2 + (√d+1)/2`, with the root rounded up to a multiple of `2^-18`, and `Δ₂² = 3/2`.
//! **Proof.** Let `‖x‖ <= 1`. `Σ_{j<=k} (x_j x_k)² = (‖x‖⁴ + Σ x_j⁴)/2 <= 1`, with equality where one coordinate is all. `Σ_{j<=k} |x_j x_k| = (‖x‖₁² + ‖x‖²)/2 <=
//!   (d + 1)/2`, with equality where all are the same size. *Integers.* Places are whole multiples of `u = 2^-18`. An example with `S = Σ c_j²` above `U = 1/u²`, in units,
//!   gets `c_j ⌊1/u⌋ / r`, cut toward zero, with `r = ⌈√S⌉`: no coordinate is above `c_j/(u√S)` in size, so the sum of their squares is at most `U`. Roots and quotients are of
//!   integers, so there is nothing to round but what was said. *About the mean.* Halves of `x` and of one are added at places of their own: `‖x‖₁/2 + 1/2 <= (√d + 1)/2` more in L1, and
//!   `‖x‖²/4 + 1/4 <= 1/2` more squared in L2; on the grid of `2^-36` halves are whole. ∎
//! **What is not released** about a declared centre is the number of examples: eigenvalues are those of the sum, which has about that number times the variance about the centre.
//! **Error.** Noise alone has eigenvalues of up to about `2σ√d`; components below that are noise.

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Ratio, Secret};
use whit_mechanism::Release;

use super::eigen::{Eigen, Triangle, eigen};
use super::interval::{SIZE_MAX, SIZE_MIN, UNIT, UNIT_BITS};
use super::noisy_sums::{NoisySums, Reach, sum};
use super::{Answers, Budget, Classical, Fit, MATRIX_MAX, MATRIX_RANGE, Takes, Terms, counted};
use crate::data::{Dataset, Example};
use crate::error::{Result, within};
use crate::payment::Payment;

/// The grid of all sums: that of products of two places.
const BITS: i32 = 2 * UNIT_BITS;
/// Of fewer examples than this many deviations of the noise no mean is taken.
const DEVIATIONS: f64 = 2.0;
/// The corners of 256 intervals that are as wide as can be declared are 16 half widths from their middle.
const NORM_MAX: f64 = 20.0 * SIZE_MAX;
/// No place is further out than this, in units, before its example is shortened: so that squares of 256 of them add up within 128 bits.
const PLACE_MAX: i64 = 1 << 50;

/// What finding principal components would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PcaPlan {
    centre: Vec<f64>,
    norm: f64,
    components: usize,
    origin: Origin,
    pub(super) noise: NoisySums,
}

/// What components are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The declared centre.
    Centre,
    /// The mean of the examples, which is released as well.
    Mean,
}

impl PcaPlan {
    /// So many components, about this, of examples that are mostly within `norm` of a centre.
    pub fn new(
        (centre, norm): (Vec<f64>, f64),
        components: usize,
        origin: Origin,
        budget: Budget,
    ) -> Result<Self> {
        let d = centre.len();
        counted("features", d, MATRIX_MAX, MATRIX_RANGE)?;
        let range = "a whole number from 1 to the number of features";
        counted("components", components, d, range)?;
        // Eigenvalues are multiples of the square of the norm, and a model that says infinity cannot be read.
        let passes = (SIZE_MIN..=NORM_MAX).contains(&norm);
        within("norm", norm, passes, "a number from 1e-100 to 2e101")?;
        for place in &centre {
            let passes = place.abs() <= SIZE_MAX;
            within("centre", *place, passes, "numbers from -1e100 to 1e100")?;
        }
        let (entries, half) = (Triangle(d).entries(), Ratio::new(1, 2)?);
        let square = Ratio::new(d as u128 + 1, 2)?;
        let reach = match origin {
            Origin::Centre => Reach {
                l1: square,
                l2_square: Ratio::one(),
                coordinates: entries,
                bits: BITS,
            },
            Origin::Mean => Reach {
                l1: &square + &(&half * &(&root_up(d)? + &Ratio::one())),
                l2_square: &Ratio::one() + &half,
                coordinates: entries + d + 1,
                bits: BITS,
            },
        };
        let noise = NoisySums::new(reach, 1, budget)?;
        Ok(Self {
            centre,
            norm,
            components,
            origin,
            noise,
        })
    }

    fn sums(&self, data: &Secret<Dataset>) -> Secret<Vec<i128>> {
        let mut places = Vec::with_capacity(self.centre.len());
        let entries = Triangle(self.centre.len()).entries();
        let more = match self.origin {
            Origin::Centre => 0,
            Origin::Mean => self.centre.len() + 1,
        };
        sum(data, entries + more, |example, sums| {
            self.places(example, &mut places);
            shorten(&mut places);
            add(&places, sums);
            let halves = places.iter().chain(std::iter::once(&UNIT));
            for (sum, place) in sums[entries..].iter_mut().zip(halves) {
                *sum += i128::from(place * (UNIT / 2));
            }
        })
    }

    fn places(&self, example: Example<'_>, places: &mut Vec<i64>) {
        places.clear();
        let each = self.centre.iter().zip(example.features);
        places.extend(each.map(|(centre, value)| {
            let place = (f64::from(*value) - centre) / self.norm;
            // A cast takes what is too large to the ends, and what is no number to zero.
            ((place * UNIT as f64).round() as i64).clamp(-PLACE_MAX, PLACE_MAX)
        }));
    }

    /// Post-processing: what components are about, and the squares about it. If there are not clearly more examples than noise, that is the declared centre.
    fn about(&self, sums: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let triangle = Triangle(self.centre.len());
        let (squares, halves) = sums.split_at(triangle.entries());
        let mut squares = squares.to_vec();
        let Some((count, halves)) = halves.split_last() else {
            return (self.centre.clone(), squares);
        };
        if *count <= DEVIATIONS * self.noise.deviation() {
            return (self.centre.clone(), squares);
        }
        let mean: Vec<f64> = halves
            .iter()
            .map(|half| (half / count).clamp(-1.0, 1.0))
            .collect();
        for j in 0..triangle.0 {
            for k in j..triangle.0 {
                squares[triangle.at(j, k)] -= 2.0 * count * mean[j] * mean[k];
            }
        }
        let about = self.centre.iter().zip(&mean);
        (
            about
                .map(|(centre, mean)| centre + mean * self.norm)
                .collect(),
            squares,
        )
    }

    /// Post-processing.
    fn model(&self, sums: &[f64]) -> Pca {
        let (about, sums) = self.about(sums);
        let Eigen { values, vectors } = eigen(Triangle(self.centre.len()), &sums);
        let square = self.norm * self.norm;
        let components = vectors.into_iter().take(self.components);
        Pca {
            centre: about,
            components: components.map(pointed).collect(),
            eigenvalues: values
                .iter()
                .take(self.components)
                .map(|value| value * square)
                .collect(),
        }
    }
}

impl Classical for PcaPlan {
    type Model = Pca;

    fn takes(&self) -> Takes {
        Takes {
            features: self.centre.len(),
            answers: Answers::Nothing,
        }
    }

    fn terms(&self) -> Terms {
        self.noise.terms()
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Pca>> {
        let (plan, data) = (fit.plan(), fit.data());
        let noisy = plan.noise.release(payment, || plan.sums(data), entropy)?;
        Ok(noisy.map(|sums| plan.model(&sums)))
    }
}

/// A rational number from the root of `d` on, a multiple of `2^-18`.
fn root_up(d: usize) -> Result<Ratio> {
    let units = (d as u128) << (2 * UNIT_BITS);
    let floor = units.isqrt();
    let root = floor + u128::from(floor * floor < units);
    Ok(Ratio::new(root, u128::from(UNIT.unsigned_abs()))?)
}

/// Makes the sum of squares at most `UNIT²`.
pub(super) fn shorten(places: &mut [i64]) {
    let square: u128 = places
        .iter()
        .map(|c| u128::from(c.unsigned_abs()).pow(2))
        .sum();
    let most = u128::from(UNIT.unsigned_abs()).pow(2);
    if square <= most {
        return;
    }
    let floor = square.isqrt();
    let root = (floor + u128::from(floor * floor < square)) as i128;
    for place in places {
        *place = (i128::from(*place) * i128::from(UNIT) / root) as i64;
    }
}

/// What one example adds, in the order of the triangle.
fn add(places: &[i64], sums: &mut [i128]) {
    let pairs = (0..places.len()).flat_map(|j| (j..places.len()).map(move |k| (j, k)));
    for (sum, (j, k)) in sums.iter_mut().zip(pairs) {
        *sum += i128::from(places[j] * places[k]);
    }
}

/// An eigenvector has no sign of its own: its largest coordinate is made positive.
fn pointed(vector: Vec<f64>) -> Vec<f64> {
    let largest = vector
        .iter()
        .copied()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let sign = largest.unwrap_or(1.0).signum();
    vector.into_iter().map(|v| v * sign).collect()
}

/// Directions in which examples spread. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pca {
    centre: Vec<f64>,
    components: Vec<Vec<f64>>,
    eigenvalues: Vec<f64>,
}

impl Pca {
    /// Do its parts fit each other? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let numbers = |of: &[f64]| of.iter().all(|number| number.is_finite());
        let fits =
            |component: &Vec<f64>| component.len() == self.centre.len() && numbers(component);
        !self.components.is_empty()
            && self.components.len() == self.eigenvalues.len()
            && self.components.iter().all(fits)
            && numbers(&self.centre)
            && numbers(&self.eigenvalues)
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        self.centre.len()
    }

    /// Each of length one, the one with the largest spread first.
    pub fn components(&self) -> &[Vec<f64>] {
        &self.components
    }

    /// The noisy sum, over all examples, of the squares along each component. Noise can make it negative.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// The square of how far an example is from the centre.
    pub fn distance_square(&self, features: &[f32]) -> f64 {
        let each = features.iter().zip(&self.centre);
        each.map(|(x, centre)| (f64::from(*x) - centre).powi(2))
            .sum()
    }

    /// An example along the components, from the centre. Features that are missing count as the centre.
    pub fn transform(&self, features: &[f32]) -> Vec<f64> {
        let along = |component: &Vec<f64>| {
            let each = component.iter().zip(features).zip(&self.centre);
            each.map(|((v, x), centre)| v * (f64::from(*x) - centre))
                .sum()
        };
        self.components.iter().map(along).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{
        Flaw, Twin, acquits, budget, convicts, fitted, in_grid, longest, nasty, nearly_normal,
        plus, refused, seed, stated,
    };
    use crate::payment::Priced;
    use whit_core::{Bits, Fault};
    use whit_testkit::SeededBits;

    fn plan(d: usize, terms: (f64, f64)) -> PcaPlan {
        about(Origin::Centre, d, terms)
    }

    fn about(origin: Origin, d: usize, (epsilon, delta): (f64, f64)) -> PcaPlan {
        PcaPlan::new((vec![0.0; d], 1.0), 1, origin, budget(epsilon, delta)).expect("a plan")
    }

    fn data(d: usize, rows: &[Vec<f32>]) -> Secret<Dataset> {
        let features = rows.concat();
        let data = Dataset::with_numbers(vec![d], features, vec![0.0; rows.len()]);
        Secret::new(data.expect("fits"))
    }

    /// At both ends of what may be declared, and with noise beyond all sums, models are numbers that a file can hold.
    #[test]
    fn models_at_the_ends_are_whole() {
        let make = |place: f64, norm: f64, terms: (f64, f64)| {
            let terms = budget(terms.0, terms.1);
            PcaPlan::new((vec![place; 3], norm), 2, Origin::Mean, terms)
        };
        let rows = [vec![f32::MAX, 1.0, 0.0], vec![f32::MIN, 1.0, -1.0]];
        for norm in [SIZE_MIN, NORM_MAX] {
            for place in [-SIZE_MAX, 0.0, SIZE_MAX] {
                for terms in [(1.0, 1e-6), (1.0, 0.0), (1e-9, 0.0)] {
                    let plan = make(place, norm, terms).expect("a plan");
                    let model = fitted(&plan, &data(3, &rows), 829);
                    let text = serde_json::to_string(&model).expect("plain data");
                    let read: Pca = serde_json::from_str(&text).expect("numbers");
                    assert!(read.is_whole(), "{text}");
                }
            }
        }
        for (place, norm) in [
            (0.0, 2.01e101),
            (0.0, 0.99e-100),
            (1.01e100, 1.0),
            (-1.01e100, 1.0),
        ] {
            assert!(make(place, norm, (1.0, 1e-6)).is_err());
        }
    }

    #[test]
    fn closed_form() {
        for (d, l1, sums) in [(1, 1.0, 1), (2, 1.5, 3), (7, 4.0, 28)] {
            let [gaussian, pure] = [plan(d, (1.0, 1e-6)), plan(d, (1.0, 0.0))];
            assert_eq!(stated(gaussian.event(), BITS), [(1.0, None)]);
            assert_eq!(stated(pure.event(), BITS), [(l1, Some(sums))]);
        }
        // With a root that is whole, and with one that is not.
        let [gaussian, pure] = [1e-6, 0.0].map(|delta| about(Origin::Mean, 4, (1.0, delta)));
        assert_eq!(stated(gaussian.event(), BITS), [(1.5, None)]);
        assert_eq!(stated(pure.event(), BITS), [(4.0, Some(15))]);
        let (l1, _) = stated(about(Origin::Mean, 2, (1.0, 0.0)).event(), BITS)[0];
        let exact = 1.5 + 0.5 * (2_f64.sqrt() + 1.0);
        assert!(l1 >= exact && l1 < exact + 1e-5, "{l1}");
    }

    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(731));
        for d in 1..=4 {
            let plan = plan(d, (1.0, 0.0));
            let worst = longest(4000, BITS, || {
                let mut row = || -> Vec<f32> {
                    let scale = [1.0, 0.5, 1e-3, 1e6][bits.below(4) as usize];
                    nasty(&mut bits, d).iter().map(|x| x * scale).collect()
                };
                let others = vec![row(), row()];
                let mut all = others.clone();
                all.push(row());
                [all, others].map(|rows| plan.sums(&data(d, &rows)))
            });
            let claims = ((d as f64 + 1.0) / 2.0, 1.0);
            assert!(
                worst.0 <= claims.0 && worst.0 > claims.0 * (1.0 - 1e-4),
                "{d}: {worst:?}"
            );
            assert!(
                worst.0 == claims.0 || ![1, 4].contains(&d),
                "{d}: {worst:?}"
            );
            assert_eq!(worst.1, claims.1, "{d}");
        }
    }

    #[test]
    fn the_worst_example_about_the_mean_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(736));
        for d in [1, 3, 4] {
            let plan = about(Origin::Mean, d, (1.0, 0.0));
            let worst = longest(4000, BITS, || {
                let mut row = || nasty(&mut bits, d);
                let others = vec![row(), row()];
                let mut all = others.clone();
                all.push(row());
                [all, others].map(|rows| plan.sums(&data(d, &rows)))
            });
            let size = d as f64;
            let claims = ((size + 1.0) / 2.0 + (size.sqrt() + 1.0) / 2.0, 1.5);
            let close = worst.0 <= claims.0 && worst.0 > claims.0 * (1.0 - 1e-4);
            assert!(close && worst.1 == claims.1, "{d}: {worst:?}");
        }
    }

    #[test]
    fn whatever_is_shortened_is_short_enough_and_hardly_shorter() {
        let mut bits = SeededBits::new(seed(732));
        let square =
            |places: &[i64]| -> i128 { places.iter().map(|c| i128::from(*c).pow(2)).sum() };
        for _ in 0..20_000 {
            let size = 1 + bits.below(8) as usize;
            let shift = bits.below(46) as u32;
            let mut places: Vec<i64> = (0..size)
                .map(|_| (bits.word() as i64 >> 13) >> shift)
                .collect();
            let before = square(&places);
            shorten(&mut places);
            let (after, most) = (square(&places), i128::from(UNIT).pow(2));
            assert!(after <= most && after <= before);
            assert!(before <= most || after as f64 > most as f64 * (1.0 - 1e-4));
        }
        for place in [PLACE_MAX, -PLACE_MAX] {
            let mut ends = vec![place; MATRIX_MAX];
            shorten(&mut ends);
            assert_eq!(square(&ends), i128::from(UNIT).pow(2));
        }
    }

    /// A canary that is too long, beside nine others. With Laplace noise it is worst on the diagonal, with Gaussian noise on an axis.
    fn twin(flaw: Flaw, form: (f64, f64)) -> Twin {
        let claimed = plan(2, form);
        let on_axis = form.1 != 0.0 || flaw == Flaw::RowsFromData;
        let canary = if on_axis {
            vec![2.0, 0.0]
        } else {
            vec![2.0, 2.0]
        };
        let others = vec![vec![0.0, 1.0]; 9];
        let all = [others.clone(), vec![canary.clone()]].concat();
        let worlds = [others, all].map(|rows| {
            let mut plan = claimed.clone();
            if flaw == Flaw::BoundsFromData {
                let norm = |row: &Vec<f32>| row.iter().map(|x| f64::from(x * x)).sum::<f64>();
                plan.norm = rows.iter().map(norm).fold(0.0, f64::max).sqrt();
            }
            let mut sums = plan.sums(&data(2, &rows)).expose();
            if flaw == Flaw::RowsFromData {
                let count = rows.len() as i128;
                sums.iter_mut().for_each(|sum| *sum = *sum * 10 / count);
            }
            sums
        });
        let [without, mut with] = worlds;
        if flaw == Flaw::Unclamped {
            let [x, y] = [0, 1].map(|j| f64::from(canary[j]));
            with = plus(&without, &in_grid(&[x * x, x * y, y * y], BITS));
        }
        // The products of two features are released, and not priced; in L2 they would cost nothing, so there the triangle counts as half.
        let half = Ratio::new(1, 2).expect("not zero");
        let diagonal = claimed.noise.believing(Ratio::one(), half);
        Twin::new(flaw, &claimed.noise, diagonal, [without, with])
    }

    #[test]
    fn falsifier() {
        acquits(733, twin);
    }

    #[test]
    fn falsifier_has_teeth() {
        use Flaw::{BoundsFromData, Forgotten, LessNoise, RowsFromData, Unclamped};
        let flaws = [
            LessNoise,
            Forgotten,
            BoundsFromData,
            Unclamped,
            RowsFromData,
        ];
        convicts(734, &flaws, twin);
    }

    /// The same about the mean, which comes for nothing in a broken twin.
    fn twin_about_mean(flaw: Flaw, form: (f64, f64)) -> Twin {
        let claimed = about(Origin::Mean, 1, form);
        let worlds = [vec![], vec![vec![3.0]]];
        let sums = worlds.map(|rows| claimed.sums(&data(1, &rows)).expose());
        let [without, mut with] = sums;
        if flaw == Flaw::Unclamped {
            with = in_grid(&[9.0, 1.5, 0.5], BITS);
        }
        let for_nothing = claimed.noise.believing(Ratio::one(), Ratio::one());
        Twin::new(flaw, &claimed.noise, for_nothing, [without, with])
    }

    #[test]
    fn falsifier_about_the_mean() {
        acquits(737, twin_about_mean);
        use Flaw::{Forgotten, LessNoise, Unclamped};
        convicts(738, &[LessNoise, Forgotten, Unclamped], twin_about_mean);
    }

    #[test]
    fn finds_the_long_side() {
        let mut bits = SeededBits::new(734);
        let axis = [0.8, -0.6];
        let rows: Vec<Vec<f32>> = (0..5000)
            .map(|_| {
                let (long, short) = (
                    0.4 * nearly_normal(&mut bits),
                    0.1 * nearly_normal(&mut bits),
                );
                let at = |v: f64, w: f64, centre: f64| (centre + long * v + short * w) as f32;
                vec![at(axis[0], 0.6, 5.0), at(axis[1], 0.8, -2.0)]
            })
            .collect();
        for terms in [(1.0, 1e-6), (1.0, 0.0)] {
            let terms = budget(terms.0, terms.1);
            let plan = PcaPlan::new((vec![5.0, -2.0], 2.0), 2, Origin::Centre, terms);
            let plan = plan.expect("a plan");
            let found = fitted(&plan, &data(2, &rows), 735);
            let first = &found.components()[0];
            let cosine = first[0] * axis[0] + first[1] * axis[1];
            assert!(cosine > 0.99, "{found:?}");
            assert!(
                (found.eigenvalues()[0] / 800.0 - 1.0).abs() < 0.3,
                "{found:?}"
            );
            let along = found.transform(&[5.8, -2.6]);
            assert!(
                (along[0] - 1.0).abs() < 0.05 && along[1].abs() < 0.2,
                "{along:?}"
            );
        }
    }

    /// Far from the declared centre the mean is the longest direction about that, and none about itself.
    #[test]
    fn components_are_about_the_mean_if_asked_for() {
        let mut bits = SeededBits::new(739);
        let rows: Vec<Vec<f32>> = (0..5000)
            .map(|_| {
                let along = 0.1 * nearly_normal(&mut bits);
                vec![(0.5 + along) as f32, (0.5 - along) as f32]
            })
            .collect();
        for (origin, expected) in [(Origin::Centre, 1.0), (Origin::Mean, -1.0)] {
            let plan = PcaPlan::new((vec![0.0; 2], 1.0), 1, origin, budget(3.0, 1e-6));
            let found = fitted(&plan.expect("a plan"), &data(2, &rows), 740);
            let first = &found.components()[0];
            let product = 2.0 * first[0] * first[1];
            assert!((product - expected).abs() < 0.05, "{origin:?}: {found:?}");
            let off = found.transform(&[0.5, 0.5])[0];
            assert!(origin == Origin::Centre || off.abs() < 0.05, "{found:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let make = |d: usize, norm, components| {
            PcaPlan::new(
                (vec![0.0; d], norm),
                components,
                Origin::Mean,
                budget(1.0, 0.0),
            )
            .err()
        };
        for refused in [
            make(0, 1.0, 1),
            make(MATRIX_MAX + 1, 1.0, 1),
            make(2, 1.0, 0),
            make(2, 1.0, 3),
            make(2, 0.0, 1),
            make(2, -1.0, 1),
            make(2, f64::NAN, 1),
            make(2, f64::INFINITY, 1),
            PcaPlan::new((vec![f64::NAN], 1.0), 1, Origin::Mean, budget(1.0, 0.0)).err(),
        ] {
            let refused = refused.expect("refused");
            assert_eq!(refused.code(), "plan_out_of_range");
            assert!(refused.suggestion().starts_with("give "));
        }
        let plan = plan(2, (1.0, 0.0));
        assert_eq!(refused(&plan, &data(3, &[])), Some("other_columns"));
        assert_eq!(refused(&plan, &data(2, &[])), None);
    }
}
