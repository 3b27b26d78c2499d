//! # Continual counting by the square root of the counting matrix
//! **Definition.** A stream of at most `T` integers; after each, the sum so far, with noise. The matrix `A` of sums (ones on and below the
//!   diagonal) is a product `A = L R` of lower triangular Toeplitz matrices. Released are the coordinates of `R x + z`, one at each
//!   step, and the answer at `t` is coordinate `t` of `L (R x + z) = A x + L z`. [FHU23, HUU23]
//! **Coefficients.** The root of the generating function `1/(1-u)` of `A` has the coefficients `f_k = C(2k,k)/4^k`, `f_0 = 1`. Here `R` has the
//!   integers `r_k`, the floor of `2^30 f_k`, over `2^30`, so that `R x` is a vector of integers, in units of `2^-30`, and integer
//!   noise can be added to it. `L` is *defined* as `A R⁻¹`, whose coefficients are those of `1/((1-u) R(u))`; they are close to `f_k`
//!   and, being post-processing, are floats.
//! **Requires.** The streams of neighbours differ in at most `c` steps and by at most `Δ` in each ([`Stream`]).
//! **Guarantee.** That of the noise on all `T` coordinates together, paid for once: `L1 = c Δ Σ_{k<T} r_k / 2^30` and
//!   `L2² = c² Δ² Σ_{k<T} r_k² / 2^60`, with the very integers used.
//! **Proof.** A change of `Δ` at step `s` moves coordinate `s + k` by `Δ r_k 2^-30` for `0 <= k <= T - s`: most for `s = 1`. Changes add (triangle
//!   inequality). Coordinate `t` depends on `x_1 … x_t` only, so streams may react to answers, as in
//!   [`continual_count`](crate::continual_count). What is done with the noisy coordinates is post-processing.
//! **Error.** With `L ≈ R`, the variance at `t` is that of one draw times `Σ_{k<t} l_k²`. As `f_k² <= 1/(π(k + 1/4))` and a convex function is at
//!   most its mean over an interval around, `Σ_{k<T} f_k² <= 1 + ln(4T/3)/π`. This stands in the sensitivity and in the variance: for
//!   the same ρ the standard deviation is at most `(1 + ln(4T/3)/π)/√(2ρ)`, up to the rounding of `R`. A tree of `h` levels has up to
//!   `h/√(2ρ)`. For Laplace noise the L1 norm grows like `√T`: use the tree. A step takes time `O(t)`; hence the shorter horizon.

use whit_core::{Entropy, Event, L1, L2, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::continual_count::{Stream, check, variance_upper};
use crate::{Release, Result};

/// Longer streams should use a tree.
const HORIZON_MAX: u64 = 1 << 14;
/// `R` is in units of `2^-30`.
const UNIT_BITS: i32 = 30;
/// What the coefficients are computed with: 60 further bits.
const WORK_BITS: i32 = UNIT_BITS + 60;

impl<R: Relation> Stream<R> {
    /// The most that one unit changes all released coordinates together. Refused for horizons above `2^14`.
    pub fn square_root_sensitivity_l1(&self) -> Result<Sensitivity<L1, R>> {
        check("the number of steps", self.horizon(), HORIZON_MAX)?;
        let unit = Ratio::power_of_two(-UNIT_BITS);
        let encoded = self.encoded_l1(&coefficients(self.horizon()));
        Ok(Sensitivity::new(&encoded * &unit))
    }

    /// The same in L2.
    pub fn square_root_sensitivity_l2(&self) -> Result<Sensitivity<L2, R>> {
        check("the number of steps", self.horizon(), HORIZON_MAX)?;
        let unit = Ratio::power_of_two(-2 * UNIT_BITS);
        let encoded = self.encoded_l2_square(&coefficients(self.horizon()));
        Ok(Sensitivity::from_square(&encoded * &unit))
    }

    fn encoded_l1(&self, encoder: &[u64]) -> Ratio {
        let sum: u128 = encoder.iter().map(|&r| u128::from(r)).sum();
        &(&self.steps_max() * self.change()) * &Ratio::from(sum)
    }

    fn encoded_l2_square(&self, encoder: &[u64]) -> Ratio {
        let sum: u128 = encoder.iter().map(|&r| u128::from(r) * u128::from(r)).sum();
        let each = &self.steps_max() * self.change();
        &(&each * &each) * &Ratio::from(sum)
    }

    /// Starts a counter. No data is needed, so the event can be paid for first. Refused for horizons above `2^14`.
    pub fn square_root(&self, noise: &Noise) -> Result<SquareRootCounter<R>> {
        check("the number of steps", self.horizon(), HORIZON_MAX)?;
        let encoder = coefficients(self.horizon());
        let in_units = noise.in_steps(&Ratio::power_of_two(-UNIT_BITS))?;
        let l1 = Sensitivity::new(self.encoded_l1(&encoder));
        let l2 = Sensitivity::from_square(self.encoded_l2_square(&encoder));
        Ok(SquareRootCounter {
            horizon: self.horizon(),
            noise: Additive::new(&in_units, l1, l2),
            variance_each: variance_upper(noise),
            decoder: decoder(&encoder),
            encoder,
            exact: Vec::new(),
            noisy: Vec::new(),
        })
    }
}

/// `r_0 … r_{T-1}`, of at most 31 bits.
fn coefficients(horizon: u64) -> Vec<u64> {
    // f_k = f_{k-1} (2k-1)/(2k), each rounded down; what counts are the integers that come out.
    let mut f = 1_u128 << WORK_BITS;
    let mut next = |k: u64| {
        if k > 0 {
            f = f / (2 * u128::from(k)) * (2 * u128::from(k) - 1);
        }
        (f >> (WORK_BITS - UNIT_BITS)) as u64
    };
    (0..horizon).map(&mut next).collect()
}

/// The coefficients of `1/((1-u) R(u))`.
fn decoder(encoder: &[u64]) -> Vec<f64> {
    let r: Vec<f64> = encoder
        .iter()
        .map(|&r| libm::ldexp(r as f64, -UNIT_BITS))
        .collect();
    // g = 1/R: g_0 = 1 and Σ_{k<=n} r_k g_{n-k} = 0. All g but the first are negative and sum to less than one in size, so
    // errors do not grow.
    let mut inverse: Vec<f64> = Vec::with_capacity(r.len());
    for n in 0..r.len() {
        let known: f64 = (1..=n).map(|k| r[k] * inverse[n - k]).sum();
        inverse.push(if n == 0 { 1.0 } else { -known });
    }
    let mut sum = 0.0;
    inverse
        .iter()
        .map(|g| {
            sum += g;
            sum
        })
        .collect()
}

/// A running sum from noisy coordinates of the root.
pub struct SquareRootCounter<R: Relation> {
    horizon: u64,
    noise: Additive<R>,
    variance_each: f64,
    /// `r_k`.
    encoder: Vec<u64>,
    /// `l_k`.
    decoder: Vec<f64>,
    /// The stream so far.
    exact: Vec<i64>,
    /// The released coordinates so far, in the unit of the stream.
    noisy: Vec<f64>,
}

impl<R: Relation> SquareRootCounter<R> {
    /// What an accountant needs to know: one event for the whole stream, to be paid before the first step.
    pub fn event(&self) -> Event {
        self.noise.event_of(self.horizon)
    }

    /// How many steps there were.
    pub fn steps(&self) -> u64 {
        self.exact.len() as u64
    }

    /// At least the variance of the answer at a step, up to rounding.
    pub fn variance(&self, step: u64) -> f64 {
        let used = self
            .decoder
            .iter()
            .take(usize::try_from(step).unwrap_or(usize::MAX));
        used.map(|l| l * l).sum::<f64>() * self.variance_each
    }

    /// Takes the next number and gives the sum so far. All steps together spend one `event`, which every release names. Refused
    /// beyond the horizon. Without entropy nothing is taken, and the step can be tried again.
    pub fn step(&mut self, x: Secret<i64>, entropy: &mut impl Entropy) -> Result<Release<f64>> {
        check("the number of steps", self.steps() + 1, self.horizon)?;
        self.exact.push(x.expose());
        let noisy = self.noise.release(Secret::new(self.encode()), entropy);
        let noisy = noisy.inspect_err(|_| {
            self.exact.pop();
        })?;
        self.noisy
            .push(libm::ldexp(noisy.into_value() as f64, -UNIT_BITS));
        let newest_first = self.noisy.iter().rev();
        let sum = newest_first.zip(&self.decoder).map(|(y, l)| y * l).sum();
        Ok(Release::new(sum, self.event()))
    }

    /// The newest coordinate of `R x`, in units: at most `2^14` products of 63 and 31 bits.
    fn encode(&self) -> i128 {
        let newest_first = self.exact.iter().rev();
        newest_first
            .zip(&self.encoder)
            .map(|(&x, &r)| i128::from(x) * i128::from(r))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, scale, seed};
    use whit_audit::{Alpha, GdpVerdict, falsify_gdp};
    use whit_core::{AddRemove, Mechanism, Mu};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits, long};

    fn stream(horizon: u64, steps_max: u32) -> Stream<AddRemove> {
        Stream::new(horizon, steps_max, Sensitivity::new(Ratio::one())).expect("a stream")
    }

    #[test]
    fn closed_form() {
        let unit = 2_f64.powi(UNIT_BITS);
        let r = coefficients(5);
        for (r, f) in r.iter().zip([1.0, 0.5, 0.375, 0.3125, 0.273_437_5]) {
            assert!((*r as f64 / unit - f).abs() < 2.0 / unit, "{r} {f}");
        }
        for horizon in [1_u64, 2, 100, 1024, 16_384] {
            let square = stream(horizon, 1)
                .square_root_sensitivity_l2()
                .expect("a short stream")
                .square()
                .to_f64_up();
            assert!(
                square <= 1.0 + (4.0 * horizon as f64 / 3.0).ln() / std::f64::consts::PI,
                "{horizon}: {square}"
            );
        }
        let (one, three) = (stream(100, 1), stream(100, 3));
        let nine = Ratio::from(9_u64);
        let three = three
            .square_root_sensitivity_l2()
            .expect("a short stream")
            .square()
            .clone();
        assert_eq!(
            three,
            one.square_root_sensitivity_l2()
                .expect("a short stream")
                .square()
                * &nine
        );
        assert!(
            stream(1 << 15, 1)
                .square_root(&Noise::Laplace(scale(1, 1)))
                .is_err()
        );
    }

    /// `L R = A`, with the coefficients that are used.
    #[test]
    fn the_factors_multiply_to_sums() {
        let r = coefficients(500);
        let l = decoder(&r);
        for n in 0..r.len() {
            let product: f64 = (0..=n)
                .map(|k| l[n - k] * libm::ldexp(r[k] as f64, -UNIT_BITS))
                .sum();
            assert!((product - 1.0).abs() < 1e-12, "{n}: {product}");
        }
    }

    /// All coordinates of `R x`.
    fn encoded(xs: &[i64]) -> Vec<i128> {
        let counter = stream(xs.len() as u64, 1).square_root(&Noise::Laplace(scale(1, 1)));
        let mut counter = counter.expect("short");
        xs.iter()
            .map(|&x| {
                counter.exact.push(x);
                counter.encode()
            })
            .collect()
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let mut bits = SeededBits::new(seed(671));
        let mut reached = false;
        for _ in 0..300 {
            let horizon = bits.below(30) + 1;
            let one: Vec<i64> = (0..horizon).map(|_| bits.below(100) as i64 - 50).collect();
            let mut other = one.clone();
            let changed = bits.below(3) as u32 + 1;
            for _ in 0..changed {
                let at = if bits.below(2) == 0 {
                    0
                } else {
                    bits.below(horizon) as usize
                };
                other[at] = one[at] + bits.below(3) as i64 - 1;
            }
            let stream = stream(horizon, changed);
            let encoder = coefficients(horizon);
            let apart = encoded(&one)
                .into_iter()
                .zip(encoded(&other))
                .map(|(a, b)| a.abs_diff(b));
            let (l1, l2) = apart.fold((0, 0), |(l1, l2), d| (l1 + d, l2 + d * d));
            assert!(Ratio::from(l1) <= stream.encoded_l1(&encoder));
            assert!(Ratio::from(l2) <= stream.encoded_l2_square(&encoder));
            reached |= changed == 1 && Ratio::from(l2) == stream.encoded_l2_square(&encoder);
        }
        assert!(reached, "a change in the first step");
    }

    #[test]
    fn without_noise_it_is_the_sum() {
        let mut entropy = Seeded::new(672);
        let tiny = Noise::Laplace(scale(1, 1 << 60));
        let mut counter = stream(100, 1).square_root(&tiny).expect("short");
        let mut sum = 0.0;
        for step in 1..=100_i64 {
            let x = step * step % 17 - 8;
            assert!(
                counter.step(Secret::new(x), &mut FailingEntropy).is_err(),
                "and nothing is taken"
            );
            sum += x as f64;
            let release = counter
                .step(Secret::new(x), &mut entropy)
                .expect("within the horizon");
            assert!((release.value() - sum).abs() < 1e-9);
        }
        assert!(
            counter.step(Secret::new(1), &mut entropy).is_err(),
            "beyond the horizon"
        );
        let event = counter.event();
        assert!(matches!(
            event.mechanism(),
            Mechanism::DiscreteLaplace {
                coordinates: 100,
                ..
            }
        ));
        let mut extremes = stream(3, 1)
            .square_root(&Noise::Gaussian(scale(1 << 60, 1)))
            .expect("short");
        for x in [i64::MIN, i64::MAX, i64::MIN] {
            assert!(
                extremes
                    .step(Secret::new(x), &mut entropy)
                    .expect("entropy")
                    .value()
                    .is_finite()
            );
        }
    }

    /// For the same ρ and T = 1024 the root has a far smaller error than the tree, and both have the one that they state.
    #[test]
    fn better_than_the_tree() {
        const HORIZON: u64 = 1024;
        let stream = stream(HORIZON, 1);
        // ρ = 1/2: σ² is the squared sensitivity; rounded to a rational.
        let sigma = |square: &Ratio| (square.to_f64_up().sqrt() * 1e9) as u128;
        let tree_noise = Noise::Gaussian(scale(
            sigma(stream.tree_sensitivity_l2().square()),
            1_000_000_000,
        ));
        let root_noise = Noise::Gaussian(scale(
            sigma(
                stream
                    .square_root_sensitivity_l2()
                    .expect("a short stream")
                    .square(),
            ),
            1_000_000_000,
        ));
        let runs = if long() { 400 } else { 40 };
        let mut entropy = Seeded::new(seed(673));
        let (mut found, mut stated) = ([0.0; 2], [0.0; 2]);
        let mut stated_max = [0.0_f64; 2];
        for _ in 0..runs {
            let mut tree = stream.tree(&tree_noise);
            let mut root = stream.square_root(&root_noise).expect("short");
            let mut sum = 0.0;
            for step in 1..=HORIZON {
                let x = (step % 3) as i64;
                sum += x as f64;
                let one = tree.step(Secret::new(x), &mut entropy).expect("entropy");
                let other = root.step(Secret::new(x), &mut entropy).expect("entropy");
                let share = 1.0 / (runs * HORIZON) as f64;
                let variances = [tree.variance(step), root.variance(step)];
                for i in 0..2 {
                    found[i] += [one.value(), other.value()][i].mul_add(1.0, -sum).powi(2) * share;
                    stated[i] += variances[i] * share;
                    stated_max[i] = stated_max[i].max(variances[i]);
                }
            }
        }
        // The mean squared errors are as stated, within what so few runs show: they vary by a thirteenth, and in the long form by a
        // third of that.
        let within = if long() { 0.25 } else { 0.45 };
        for i in 0..2 {
            assert!(
                (found[i] / stated[i] - 1.0).abs() < within,
                "{found:?} {stated:?}"
            );
        }
        // Of the tree: 11 levels, five ones in the mean and ten at most. Of the root: at most (1 + ln(4T/3)/π)².
        assert!(
            (stated[0] / 55.0 - 1.0).abs() < 0.01 && (stated_max[0] / 110.0 - 1.0).abs() < 0.01
        );
        let theory = (1.0 + (4.0 * HORIZON as f64 / 3.0).ln() / std::f64::consts::PI).powi(2);
        assert!(stated_max[1] <= theory, "{stated_max:?} {theory}");
        assert!(stated[1] < stated[0] / 4.0 && stated_max[1] < stated_max[0] / 8.0);
    }

    /// One number more in the first step, tested along the direction in which it moves the coordinates.
    fn seen(shrink: f64) -> GdpVerdict {
        const HORIZON: u64 = 16;
        let stream = stream(HORIZON, 1);
        let norm = stream
            .square_root_sensitivity_l2()
            .expect("a short stream")
            .square()
            .to_f64_up();
        let noise = Noise::Gaussian(scale(
            (norm.sqrt() * shrink * 1e9).ceil() as u128,
            1_000_000_000,
        ));
        let r: Vec<f64> = coefficients(HORIZON)
            .into_iter()
            .map(|r| libm::ldexp(r as f64, -UNIT_BITS))
            .collect();
        let (mut one, mut other) = (Seeded::new(seed(674)), Seeded::new(seed(675)));
        let counter = std::cell::RefCell::new(stream.square_root(&noise).expect("short"));
        let event = |first: i64, entropy: &mut Seeded| {
            let mut counter = counter.borrow_mut();
            // From the start again.
            counter.exact.clear();
            counter.noisy.clear();
            for step in 0..HORIZON {
                let x = if step == 0 { first } else { 0 };
                let _ = counter.step(Secret::new(x), entropy).expect("entropy");
            }
            let along: f64 = counter.noisy.iter().zip(&r).map(|(y, r)| y * r).sum();
            along >= 0.5 * norm
        };
        let (claim, alpha) = (
            Mu::new(1.0).expect("a mu"),
            Alpha::new(ALPHA).expect("a level"),
        );
        falsify_gdp(
            claim,
            50_000,
            alpha,
            || event(1, &mut one),
            || event(0, &mut other),
        )
        .expect("trials")
    }

    #[test]
    fn falsifier() {
        let verdict = seen(1.0);
        assert!(!verdict.convicted && verdict.mu_lower > 0.89, "{verdict:?}");
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen(0.9).convicted, "noise a tenth too small");
    }
}
