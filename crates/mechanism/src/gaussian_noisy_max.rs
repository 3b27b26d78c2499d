//! # Gaussian noisy max
//! **Definition.** Add independent Gaussian noise `N(0, σ²)`, rounded to a step of `2^-32` votes, to the votes for each class, and tell which class has most; the
//!   first of them if several do. The noisy counts stay secret. Known as GNMax. [PSM+18, Sec. 4.1]
//! **Requires.** One unit reaches one voter, whatever that voter makes of it: between neighbours of the relation `R` one vote moves from one class to
//!   another, vouched for by the caller. How many vote is public.
//! **Guarantee.** `√2/σ`-GDP.
//! **Proof.** A vote that moves takes 1 from one count and gives 1 to another: the vectors are `√2` apart in L2, in votes. Counts are whole numbers of steps, so
//!   rounding noise is rounding the noisy counts (see `rounded_gaussian.rs`), and the first of the largest is a function of those, whose order of classes is public:
//!   post-processing of the Gaussian mechanism. Sums that saturate at the ends of `i64` are, too. [DRS22, Thm 2.7]
//! **Tight** for two classes, whose counts are level but for one vote: then only their difference matters, which moves by 2 under noise `√2σ`.
//! **Sampler.** Exact over the integers; no float touches it. [`sample::RoundedGaussian`]
//! **Error.** A class that is `g` votes behind wins over the first with probability at most `S(g/(√2σ))`, up to ties of steps.

use std::marker::PhantomData;

use whit_core::{Entropy, Event, Mechanism, Ratio, Relation, Scale, Secret};

use crate::{Error, Release, Result, sample};

/// How many steps a vote is. Noise and counts are in whole steps; ties, and what they do to probabilities, are that rare.
pub const STEPS_PER_VOTE: i64 = 1 << 32;
/// As many voters fit with room for a baseline and noise.
pub const VOTERS_MAX: u64 = 1 << 29;
/// More classes than this are no vote.
const CLASSES_MAX: u64 = 1 << 24;

/// Counts of votes in steps. Fewer than `classes` counts are filled up with zeros, more are cut, and counts beyond [`VOTERS_MAX`] are taken as that:
/// nothing fails by what is secret.
pub fn steps(counts: Secret<Vec<u64>>, classes: usize) -> Secret<Vec<i64>> {
    counts.map(|mut counts| {
        counts.resize(classes, 0);
        let step = |count: u64| count.min(VOTERS_MAX) as i64 * STEPS_PER_VOTE;
        counts.into_iter().map(step).collect()
    })
}

/// A noise scale in votes as one in steps.
pub(crate) fn in_steps(scale: &Scale) -> Result<Scale> {
    Ok(Scale::new(scale.ratio() * &Ratio::power_of_two(32))?)
}

/// Tells the class whose noisy count is largest.
pub struct GaussianNoisyMax<R: Relation> {
    classes: usize,
    scale: Scale,
    noise: sample::RoundedGaussian,
    relation: PhantomData<fn() -> R>,
}

impl<R: Relation> GaussianNoisyMax<R> {
    /// Noise of standard deviation `scale`, in votes. Refused for fewer than two classes.
    pub fn new(scale: Scale, classes: u64) -> Result<Self> {
        let passes = (2..=CLASSES_MAX).contains(&classes);
        let count = usize::try_from(classes).ok().filter(|_| passes);
        let classes = count.ok_or(Error::CountOutOfRange {
            what: "the number of classes",
            given: classes,
            min: 2,
            max: CLASSES_MAX,
        })?;
        Ok(Self {
            classes,
            noise: sample::RoundedGaussian::new(&in_steps(&scale)?),
            scale,
            relation: PhantomData,
        })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The noise on each count, in votes.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// What one answer is: Gaussian noise on counts that are at most `√2` apart.
    pub(crate) fn mechanism(&self) -> Mechanism {
        Mechanism::Gaussian {
            scale: self.scale.clone(),
            sensitivity_l2_square: Ratio::from(2_u64),
        }
    }

    /// What an accountant needs to know of one answer.
    pub fn event(&self) -> Event {
        Event::new(R::NEIGHBOURS, self.mechanism())
    }

    /// Spends one `event` and tells the class with most noisy votes. Counts are in [`steps`].
    pub fn release(
        &self,
        votes: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<usize>> {
        let mut noisy = votes.expose();
        noisy.resize(self.classes, 0);
        self.noise.add_to(&mut noisy, &mut entropy.open()?);
        Ok(Release::new(first_largest(&noisy), self.event()))
    }
}

/// The first of the largest.
fn first_largest(noisy: &[i64]) -> usize {
    let mut best = 0;
    for (class, count) in noisy.iter().enumerate() {
        if *count > noisy[best] {
            best = class;
        }
    }
    best
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::doubt::{ALPHA, scale, seed};
    use whit_audit::{Alpha, GdpVerdict, falsify_gdp, g_test};
    use whit_core::{Mu, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded};

    pub(crate) fn noisy_max(sigma: (u128, u128), classes: u64) -> GaussianNoisyMax<ReplaceOne> {
        GaussianNoisyMax::new(scale(sigma.0, sigma.1), classes).expect("classes")
    }

    pub(crate) fn votes(counts: &[u64]) -> Secret<Vec<i64>> {
        steps(Secret::new(counts.to_vec()), counts.len())
    }

    /// `S(x)`.
    pub(crate) fn survival(x: f64) -> f64 {
        0.5 * libm::erfc(x / std::f64::consts::SQRT_2)
    }

    /// The probability of each class, by Simpson's rule over the winner's noise.
    pub(crate) fn probabilities(counts: &[u64], sigma: f64) -> Vec<f64> {
        let of = |i: usize| -> f64 {
            let steps = 600;
            let width = 20.0 / f64::from(steps);
            let at = |z: f64| {
                let mine = counts[i] as f64 + sigma * z;
                let others = counts.iter().enumerate().filter(|(j, _)| *j != i);
                let below: f64 = others
                    .map(|(_, n)| survival((*n as f64 - mine) / sigma))
                    .product();
                libm::exp(-0.5 * z * z) * below
            };
            let weight = |k: i32| {
                if k == 0 || k == steps {
                    1.0
                } else {
                    f64::from(2 + 2 * (k % 2))
                }
            };
            let sum: f64 = (0..=steps)
                .map(|k| weight(k) * at(-10.0 + width * f64::from(k)))
                .sum();
            sum * width / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
        };
        (0..counts.len()).map(of).collect()
    }

    #[test]
    fn closed_form() {
        let mechanism = noisy_max((40, 1), 10);
        assert_eq!(
            (mechanism.classes(), mechanism.scale()),
            (10, &scale(40, 1))
        );
        let event = mechanism.event();
        let Mechanism::Gaussian {
            scale: sigma,
            sensitivity_l2_square,
        } = event.mechanism()
        else {
            panic!("another event")
        };
        assert_eq!(
            (sigma, sensitivity_l2_square),
            (&scale(40, 1), &Ratio::from(2_u64))
        );
        let sum: f64 = probabilities(&[3, 1, 0], 2.0).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        for classes in [0, 1] {
            let made = GaussianNoisyMax::<ReplaceOne>::new(scale(1, 1), classes);
            assert!(matches!(made, Err(Error::CountOutOfRange { .. })));
        }
        assert!(
            GaussianNoisyMax::<ReplaceOne>::new(
                Scale::new(Ratio::power_of_two(96)).expect("a scale"),
                2
            )
            .is_err()
        );
    }

    #[test]
    fn ties_go_to_the_first_and_lengths_are_mended() {
        assert_eq!(first_largest(&[1, 3, 3, 2]), 1);
        assert_eq!(first_largest(&[-7]), 0);
        let counts = steps(Secret::new(vec![1, u64::MAX]), 3).expose();
        assert_eq!(
            counts,
            [STEPS_PER_VOTE, VOTERS_MAX as i64 * STEPS_PER_VOTE, 0]
        );
        assert_eq!(steps(Secret::new(vec![1, 2, 3]), 2).expose().len(), 2);
    }

    /// Every class against its exact probability.
    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(901));
        for (counts, sigma) in [
            (vec![12, 9, 3, 0], (3, 1)),
            (vec![5, 5], (1, 2)),
            (vec![0, 2, 2, 1, 0], (7, 2)),
        ] {
            let mechanism = noisy_max(sigma, counts.len() as u64);
            let mut seen = vec![0_u64; counts.len()];
            for _ in 0..40_000 {
                let release = mechanism
                    .release(votes(&counts), &mut entropy)
                    .expect("entropy");
                seen[*release.value()] += 1;
            }
            let truth = probabilities(&counts, sigma.0 as f64 / sigma.1 as f64);
            let p = g_test(&seen, &truth).expect("probabilities").p_value;
            assert!(p >= ALPHA, "{counts:?}: p = {p:e}");
        }
    }

    /// One vote that turns the election, which is the worst case: `√2/σ` for noise of the claimed scale.
    fn seen(sigma: (u128, u128), claimed: f64) -> GdpVerdict {
        let mechanism = noisy_max(sigma, 2);
        let (mut one, mut other) = (Seeded::new(seed(902)), Seeded::new(seed(903)));
        let wins = |counts: &[u64], entropy: &mut Seeded| {
            *mechanism
                .release(votes(counts), entropy)
                .expect("entropy")
                .value()
                == 0
        };
        falsify_gdp(
            Mu::new(2.0_f64.sqrt() / claimed).expect("finite"),
            100_000,
            Alpha::new(ALPHA).expect("a level"),
            || wins(&[7, 6], &mut one),
            || wins(&[6, 7], &mut other),
        )
        .expect("trials")
    }

    #[test]
    fn falsifier() {
        let verdict = seen((1, 1), 1.0);
        assert!(!verdict.convicted && verdict.mu_lower > 1.3, "{verdict:?}");
    }

    /// A tenth less noise, and noise that was calibrated as if one vote moved one count only.
    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 10), 1.0).convicted);
        assert!(seen((1, 1), 2.0_f64.sqrt()).convicted);
    }

    #[test]
    fn without_entropy_nothing_is_told() {
        let told = noisy_max((1, 1), 2).release(votes(&[1, 2]), &mut FailingEntropy);
        assert!(matches!(told, Err(Error::Entropy(_))));
    }
}
