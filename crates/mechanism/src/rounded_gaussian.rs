//! # Rounded Gaussian
//! **Definition.** On the integers, `M(x) = x + round(Y)` with `Y` normal of standard deviation `σ`, independently in each coordinate.
//! **Requires.** `‖x - x'‖₂ <= Δ` for all neighbours: an L2 sensitivity over all coordinates, vouched for by the caller.
//! **Guarantee.** Whatever holds for the continuous Gaussian mechanism `x + Y` on real vectors: `Δ/σ`-GDP, hence `Δ²/(2σ²)`-zCDP, and
//!   every theorem about sampling before it. The event says so: it is that of the continuous mechanism. [DRS22, Thm 2.7]
//! **Proof.** `x` is an integer, so `round(x + Y) = x + round(Y)`, but for `Y` at a half, which has probability zero. So `M(x)` is a
//!   function of `x + Y` that does not know `x`: post-processing. Clamping the sum to the ends of `i64` is, too. How many
//!   coordinates there are does not matter to the price.
//! **Sampler.** Exact over the integers; no float touches Y. [`sample::rounded_gaussian`]
//! **Error.** `Pr[|round(Y)| > t] = erfc((t + 1/2)/(σ√2))` for integers `t >= 0`.

use std::num::NonZeroUsize;

use whit_core::{Confidence, Entropy, Event, L2, Mechanism, Relation, Scale, Secret, Sensitivity};

use crate::additive::normal_half_width;
use crate::{Release, Result, crew, sample};

/// Coordinates that share a stream, at most: to open one takes as long as hundreds of draws.
const BLOCK: usize = 1 << 14;

/// Blocks come in multiples of this, so that a few threads share them evenly.
const SHARES: usize = 4;

/// How many coordinates share a stream. It depends on the length of a vector alone, so that who draws what does not depend on how many
/// threads there are.
fn block(length: usize) -> usize {
    let blocks = length.div_ceil(BLOCK).max(1).next_multiple_of(SHARES);
    length.div_ceil(blocks).max(BLOCK / SHARES)
}

/// Adds rounded Gaussian noise to integers.
pub struct RoundedGaussian<R: Relation> {
    scale: Scale,
    sensitivity: Sensitivity<L2, R>,
    sampler: sample::RoundedGaussian,
}

impl<R: Relation> RoundedGaussian<R> {
    /// Takes parsed units, so there is nothing left to check.
    pub fn new(scale: Scale, sensitivity: Sensitivity<L2, R>) -> Self {
        let sampler = sample::RoundedGaussian::new(&scale);
        Self {
            scale,
            sensitivity,
            sampler,
        }
    }

    /// What an accountant needs to know, for vectors of any length.
    pub fn event(&self) -> Event {
        Event::new(
            R::NEIGHBOURS,
            Mechanism::Gaussian {
                scale: self.scale.clone(),
                sensitivity_l2_square: self.sensitivity.square().clone(),
            },
        )
    }

    /// Spends one `event`, on a vector whose length must be public. Adds in place. Saturates at the ends of `i64`, which is
    /// post-processing.
    pub fn release(
        &self,
        x: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<i64>>> {
        let mut values = x.expose();
        let length = block(values.len());
        for block in values.chunks_mut(length) {
            self.sampler.add_to(block, &mut entropy.open()?);
        }
        Ok(Release::new(values, self.event()))
    }

    /// The same, and from the same streams, on several threads.
    pub fn release_on<E: Entropy<Bits: Send>>(
        &self,
        threads: NonZeroUsize,
        x: Secret<Vec<i64>>,
        entropy: &mut E,
    ) -> Result<Release<Vec<i64>>> {
        let mut values = x.expose();
        // All streams are opened before any is read, so that nothing is released if one is missing.
        let length = block(values.len());
        let work = values
            .chunks_mut(length)
            .map(|block| Ok((block, entropy.open()?)))
            .collect::<Result<Vec<_>>>()?;
        let threads = threads.get().min(work.len());
        // A thread that panics takes the release with it.
        crew::each(threads, work, |(block, mut bits)| {
            self.sampler.add_to(block, &mut bits);
        });
        Ok(Release::new(values, self.event()))
    }

    /// The smallest `t` with `Pr[|noise| <= t] >= confidence`, in each coordinate, up to the rounding of floats.
    pub fn half_width(&self, confidence: Confidence) -> u128 {
        let miss = 1.0 - confidence.value();
        let sigma = self.scale.ratio().to_f64_up();
        (normal_half_width(miss) * sigma - 0.5).ceil().max(0.0) as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, Shape, TapeEntropy, confidence, judge, scale, seed};
    use whit_audit::enumerate;
    use whit_core::{AddRemove, Epsilon, Ratio};
    use whit_testkit::{FailingEntropy, Seeded};

    fn mechanism(sigma: (u128, u128), sensitivity: u64) -> RoundedGaussian<AddRemove> {
        RoundedGaussian::new(
            scale(sigma.0, sigma.1),
            Sensitivity::new(Ratio::from(sensitivity)),
        )
    }

    /// `Pr[|round(Y)| <= t]`.
    fn within(sigma: f64, t: f64) -> f64 {
        1.0 - libm::erfc((t + 0.5) / (sigma * std::f64::consts::SQRT_2))
    }

    #[test]
    fn closed_form() {
        for (sigma, c) in [
            ((10, 1), 0.95),
            ((1, 1), 0.95),
            ((1, 3), 0.99),
            ((1000, 7), 0.5),
            ((1 << 38, 1), 0.999),
        ] {
            let t = mechanism(sigma, 1).half_width(confidence(c)) as f64;
            let sigma = sigma.0 as f64 / sigma.1 as f64;
            assert!(
                within(sigma, t) >= c - 1e-12,
                "{sigma} at {c}: {t} is narrow"
            );
            let less = t - 1.0 - 1e-9 * sigma;
            assert!(
                t == 0.0 || within(sigma, less) < c,
                "{sigma} at {c}: {t} is wide"
            );
        }
        assert_eq!(mechanism((1, 1 << 20), 1).half_width(confidence(0.99)), 0);
        let event = mechanism((10, 3), 4).event();
        let Mechanism::Gaussian {
            scale: sigma,
            sensitivity_l2_square,
        } = event.mechanism()
        else {
            panic!("another event")
        };
        assert_eq!(
            (sigma, sensitivity_l2_square),
            (&scale(10, 3), &Ratio::from(16_u64))
        );
    }

    /// Every coordinate, around its own value. From a scale of 5000 on the shape is that of the normal distribution at halves.
    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(231));
        let (sigma, x) = (scale(1 << 20, 3), [7_i64, -3, 1 << 40]);
        let mechanism = mechanism((1 << 20, 3), 1);
        let mut draws: Vec<Vec<i128>> = vec![Vec::new(); x.len()];
        for _ in 0..50_000 {
            let release = mechanism
                .release(Secret::new(x.to_vec()), &mut entropy)
                .expect("entropy");
            for ((draws, y), x) in draws.iter_mut().zip(release.value()).zip(x) {
                draws.push(i128::from(y - x));
            }
        }
        for draws in draws {
            let mut next = draws.iter().copied();
            let p = Shape::gaussian(&sigma)
                .p_value(draws.len() as u64, || next.next().expect("one per draw"));
            assert!(p >= ALPHA, "p = {p:e}");
        }
    }

    fn seen(sigma: (u128, u128)) -> whit_audit::Verdict {
        let mechanism = mechanism(sigma, 11);
        let (mut one, mut other) = (Seeded::new(seed(232)), Seeded::new(seed(233)));
        // Half way between the two means, where a half decides as the real numbers do: nothing is lost by rounding.
        let event = |x: i64, entropy: &mut Seeded| {
            let release = mechanism.release(Secret::new(vec![x]), entropy);
            release.expect("entropy").value()[0] >= 6
        };
        // The claim at ε = 0 for Δ/σ-GDP: Φ(μ/2) - Φ(-μ/2).
        let delta = 1.0 - libm::erfc(11.0 / 20.0 / std::f64::consts::SQRT_2);
        judge(
            0.0,
            delta,
            100_000,
            || event(11, &mut one),
            || event(0, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((10, 1));
        assert!(!verdict.convicted, "{verdict:?}");
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 1)).convicted);
    }

    /// Every tape on both neighbours: the divergence at `ε = 0` is that of the continuous mechanism, less what rounding hides. At odd
    /// distances it hides nothing.
    #[test]
    fn enumeration_of_neighbours() {
        let run = |sigma: (u128, u128), x: i64| {
            let mechanism = mechanism(sigma, 1);
            enumerate::<1, i64>(18, |tape| {
                mechanism
                    .release(Secret::new(vec![x]), &mut TapeEntropy(Some(tape)))
                    .expect("one release")
                    .value()[0]
            })
        };
        let exact = |sigma: f64| 1.0 - libm::erfc(0.5 / sigma / std::f64::consts::SQRT_2);
        let (one, other) = (run((1, 1), 1), run((1, 1), 0));
        let low = one.hockey_stick_lower(&other, Epsilon::ZERO);
        let high = one.hockey_stick_upper(&other, Epsilon::ZERO);
        assert!(
            low <= exact(1.0) && exact(1.0) <= high && high - low < 0.1,
            "{low} {} {high}",
            exact(1.0)
        );
        let twin = run((3, 4), 1).hockey_stick_lower(&run((3, 4), 0), Epsilon::ZERO);
        assert!(twin > exact(1.0), "{twin}");
    }

    /// The same noise on any number of threads, and no noise twice.
    #[test]
    fn threads_change_nothing() {
        let mechanism = mechanism((1 << 38, 1), 1);
        let zeros = || Secret::new(vec![0_i64; 5 * BLOCK + 17]);
        let alone = mechanism
            .release(zeros(), &mut Seeded::new(234))
            .expect("entropy");
        for threads in [1, 2, 3, 9] {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            let together = mechanism.release_on(threads, zeros(), &mut Seeded::new(234));
            assert_eq!(together.expect("entropy"), alone);
        }
        let length = block(5 * BLOCK + 17);
        let (first, rest) = alone.value().split_at(length);
        for block in rest.chunks(length) {
            let same = block.iter().zip(first).filter(|(y, z)| y == z).count();
            assert!(same < 3, "{same} draws were repeated");
        }
        let nothing = mechanism.release_on(
            NonZeroUsize::MIN,
            Secret::new(Vec::new()),
            &mut Seeded::new(234),
        );
        assert!(nothing.expect("nothing to do").value().is_empty());
    }

    #[test]
    fn blocks_are_even_and_never_tiny() {
        for (length, expected) in [(0, 4096), (1, 4096), (16_384, 4096), (71_010, 8877)] {
            assert_eq!(block(length), expected);
        }
        for length in (0..2_000_000).step_by(7919) {
            let (block, whole) = (block(length), BLOCK / SHARES * SHARES);
            assert!((BLOCK / SHARES..=BLOCK).contains(&block));
            let count = length.div_ceil(block);
            assert!(length < whole || count.is_multiple_of(SHARES), "{length}");
        }
    }

    #[test]
    fn ends_saturate_and_nothing_wraps() {
        let mut entropy = Seeded::new(235);
        for sigma in [(1, 1 << 40), (1, 1), (1 << 40, 1), (1 << 90, 1)] {
            let mechanism = mechanism(sigma, 1);
            for _ in 0..50 {
                let x = Secret::new(vec![i64::MIN, i64::MAX]);
                let release = mechanism.release(x, &mut entropy).expect("entropy");
                let (low, high) = (release.value()[0], release.value()[1]);
                if sigma.0 <= 1 << 40 {
                    assert!(low < i64::MIN / 2 && high > i64::MAX / 2, "{low} {high}");
                }
            }
        }
    }

    #[test]
    fn no_entropy_no_release() {
        let (mechanism, x) = (mechanism((1, 1), 1), || Secret::new(vec![0_i64]));
        assert!(mechanism.release(x(), &mut FailingEntropy).is_err());
        assert!(
            mechanism
                .release_on(NonZeroUsize::MIN, x(), &mut FailingEntropy)
                .is_err()
        );
    }
}
