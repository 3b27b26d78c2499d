//! # Continual counting by a binary tree
//! **Definition.** A stream of at most `T` integers `x_1, x_2, …`; after each, the sum so far, with noise. Each dyadic block
//!   `(a 2^l, (a+1) 2^l]` with even `a` gets one noisy sum when its last step comes, and the sum up to `t` is put together from the
//!   blocks of the binary digits of `t`. [CSS11, DNPR10]
//! **Requires.** The streams of neighbours differ in at most `c` steps and by at most `Δ` in each ([`Stream`]).
//! **Guarantee.** That of the noise on all blocks together, paid for once, before the first step. With `h = ⌊log₂ T⌋ + 1` levels:
//!   `L1 = c Δ h` and `L2² = Δ² c Σ_{l<h} min(c, 2^l)`, which is `Δ² h` for `c = 1`.
//! **Proof.** Step `t` completes exactly one block, of size `2^l` with `l` the number of trailing zeros of `t` (its `a = t/2^l - 1` is even), so
//!   there are `T` blocks, disjoint on each level, and those within `T` steps have `l <= log₂ T`. On one level a changed step
//!   lies in at most one block: the changes there have L1 norm at most `cΔ`, and if block `i` holds `m_i <= min(c, 2^l)` of them,
//!   squares add up to at most `Δ² Σ m_i² <= Δ² min(c, 2^l) Σ m_i <= Δ² min(c, 2^l) c`. Levels add. Sums of noisy blocks are post-processing.
//! **Adaptivity.** The noise of a block is drawn when the block is complete, so later numbers may react to earlier answers, if the two
//!   streams that neighbours give for the *same* answers differ in no more than the above. Then log-ratios of Laplace noise add up
//!   to at most `L1/b` along every path of answers: pure ε is as stated. Rényi divergences of Gaussian noise add up to at most those
//!   of `L2` along every path, so zCDP is as stated too \[FZ21\]. Other ways to price the event assume fixed streams.
//! **Error.** The answer at `t` has the noise of as many blocks as `t` has binary ones: variance at most `h` times that of one block.
//!   Memory and time per step are `O(h)`. For Gaussian noise [`SquareRootCounter`](crate::SquareRootCounter) is better; for
//!   Laplace noise the tree is.

use whit_core::{Entropy, Event, L1, L2, Linf, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::{Error, Release, Result};

/// A stream of a public length at most, and how much of it one unit can change.
#[derive(Clone, Debug)]
pub struct Stream<R: Relation> {
    horizon: u64,
    steps_max: u32,
    change: Sensitivity<Linf, R>,
}

/// Longer streams would take centuries.
const HORIZON_MAX: u64 = 1 << 40;
/// A unit that changes more steps than this is not protected by any useful noise.
const STEPS_MAX: u32 = 1 << 20;

impl<R: Relation> Stream<R> {
    /// At most `horizon` steps; one unit changes at most `steps_max` of them, each by at most `change`. The caller vouches for it.
    pub fn new(horizon: u64, steps_max: u32, change: Sensitivity<Linf, R>) -> Result<Self> {
        check("the number of steps", horizon, HORIZON_MAX)?;
        check(
            "the number of steps of one unit",
            u64::from(steps_max),
            u64::from(STEPS_MAX),
        )?;
        Ok(Self {
            horizon,
            steps_max,
            change,
        })
    }

    /// The most steps there are.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// The most steps that one unit changes.
    pub(crate) fn steps_max(&self) -> Ratio {
        Ratio::from(u64::from(self.steps_max))
    }

    /// The most that one unit changes one step.
    pub(crate) fn change(&self) -> &Ratio {
        self.change.bound()
    }

    /// How many levels the tree has.
    fn levels(&self) -> u32 {
        self.horizon.ilog2() + 1
    }

    /// The most that one unit changes all blocks of the tree together.
    pub fn tree_sensitivity_l1(&self) -> Sensitivity<L1, R> {
        let levels = Ratio::from(u64::from(self.levels()));
        Sensitivity::new(&(&self.steps_max() * self.change()) * &levels)
    }

    /// The same in L2.
    pub fn tree_sensitivity_l2(&self) -> Sensitivity<L2, R> {
        let most = u64::from(self.steps_max);
        let levels: u64 = (0..self.levels()).map(|level| most.min(1 << level)).sum();
        let squares = &self.steps_max() * &Ratio::from(levels);
        Sensitivity::from_square(&(&squares * self.change()) * self.change())
    }

    /// Starts a tree. No data is needed, so the event can be paid for first.
    pub fn tree(&self, noise: &Noise) -> TreeCounter<R> {
        TreeCounter {
            horizon: self.horizon,
            noise: Additive::new(
                noise,
                self.tree_sensitivity_l1(),
                self.tree_sensitivity_l2(),
            ),
            variance_each: variance_upper(noise),
            steps: 0,
            exact: vec![0; self.levels() as usize],
            noisy: vec![0; self.levels() as usize],
        }
    }
}

pub(crate) fn check(what: &'static str, given: u64, max: u64) -> Result<()> {
    if (1..=max).contains(&given) {
        return Ok(());
    }
    Err(Error::CountOutOfRange {
        what,
        given,
        min: 1,
        max,
    })
}

/// At least the variance of the noise: `2b²` for Laplace, since `2q/(1-q)² <= 2b²`, and `σ²` for Gaussian. \[CKS20\]
pub(crate) fn variance_upper(noise: &Noise) -> f64 {
    let square = |scale: &whit_core::Scale| (scale.ratio() * scale.ratio()).to_f64_up();
    match noise {
        Noise::Laplace(scale) => 2.0 * square(scale),
        Noise::Gaussian(scale) => square(scale),
    }
}

/// A running sum from a tree of noisy blocks.
pub struct TreeCounter<R: Relation> {
    horizon: u64,
    noise: Additive<R>,
    variance_each: f64,
    steps: u64,
    /// For each binary digit of `steps` that is one, the sum of its block. Others are stale.
    exact: Vec<i128>,
    /// The same with noise.
    noisy: Vec<i128>,
}

impl<R: Relation> TreeCounter<R> {
    /// What an accountant needs to know: one event for the whole stream, to be paid before the first step.
    pub fn event(&self) -> Event {
        self.noise.event_of(self.horizon)
    }

    /// How many steps there were.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// At least the variance of the answer at a step.
    pub fn variance(&self, step: u64) -> f64 {
        f64::from(step.count_ones()) * self.variance_each
    }

    /// Takes the next number and gives the sum so far. All steps together spend one `event`, which every release names. Refused
    /// beyond the horizon. Without entropy nothing is taken, and the step can be tried again.
    pub fn step(&mut self, x: Secret<i64>, entropy: &mut impl Entropy) -> Result<Release<f64>> {
        let step = self.steps + 1;
        check("the number of steps", step, self.horizon)?;
        let level = step.trailing_zeros() as usize;
        let block = Secret::new(self.block(level, i128::from(x.expose())));
        let noisy = self
            .noise
            .release(block.as_ref().map(|&block| block), entropy)?;
        self.exact[level] = block.expose();
        self.noisy[level] = noisy.into_value();
        self.steps = step;
        let digits = (0..self.noisy.len()).filter(|level| step >> level & 1 == 1);
        let sum = digits.fold(0_i128, |sum, level| sum.saturating_add(self.noisy[level]));
        Ok(Release::new(sum as f64, self.event()))
    }

    /// The block that the next step completes: all smaller ones, which the digits below `level` name, and `x`.
    fn block(&self, level: usize, x: i128) -> i128 {
        // At most 2^40 numbers of 63 bits.
        self.exact[..level].iter().sum::<i128>() + x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{judge, scale, seed};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits, long};

    fn stream<R: Relation>(horizon: u64, steps_max: u32) -> Stream<R> {
        Stream::new(horizon, steps_max, Sensitivity::new(Ratio::one())).expect("a stream")
    }

    #[test]
    fn closed_form() {
        let l1 = |horizon, steps_max| {
            let stream = stream::<AddRemove>(horizon, steps_max);
            stream.tree_sensitivity_l1().bound().to_f64_up()
        };
        let l2 = |horizon, steps_max| {
            let stream = stream::<AddRemove>(horizon, steps_max);
            stream.tree_sensitivity_l2().square().to_f64_up()
        };
        assert_eq!((l1(1, 1), l1(1023, 1), l1(1024, 1)), (1.0, 10.0, 11.0));
        assert_eq!((l2(1, 1), l2(1023, 1), l2(1024, 1)), (1.0, 10.0, 11.0));
        // Three steps: 3 (1 + 2 + 3 + 3).
        assert_eq!((l1(8, 3), l2(8, 3)), (12.0, 27.0));
        let two = Stream::<ReplaceOne>::new(4, 1, Sensitivity::new(Ratio::from(2_u64)))
            .expect("a stream");
        assert_eq!(two.tree_sensitivity_l2().square(), &Ratio::from(12_u64));
        let counter = stream::<AddRemove>(1024, 1).tree(&Noise::Laplace(scale(10, 1)));
        assert_eq!(
            (counter.variance(1), counter.variance(1023)),
            (200.0, 2000.0)
        );
        for (horizon, steps) in [(0, 1), (1, 0), (1 << 41, 1)] {
            assert!(
                Stream::<AddRemove>::new(horizon, steps, Sensitivity::new(Ratio::one())).is_err()
            );
        }
    }

    /// All blocks of a stream, without noise.
    fn blocks(xs: &[i64]) -> Vec<i128> {
        let mut counter =
            stream::<AddRemove>(xs.len() as u64, 1).tree(&Noise::Laplace(scale(1, 1)));
        let mut blocks = Vec::new();
        for (step, &x) in (1_u64..).zip(xs) {
            let level = step.trailing_zeros() as usize;
            counter.exact[level] = counter.block(level, i128::from(x));
            blocks.push(counter.exact[level]);
        }
        blocks
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let mut bits = SeededBits::new(seed(661));
        let mut reached = false;
        for _ in 0..500 {
            let horizon = bits.below(40) + 1;
            let one: Vec<i64> = (0..horizon).map(|_| bits.below(100) as i64 - 50).collect();
            let mut other = one.clone();
            let changed = bits.below(4) as u32;
            for _ in 0..changed {
                let at = if bits.below(2) == 0 {
                    0
                } else {
                    bits.below(horizon) as usize
                };
                other[at] = one[at] + bits.below(3) as i64 - 1;
            }
            let stream = stream::<AddRemove>(horizon, changed.max(1));
            let apart = blocks(&one)
                .into_iter()
                .zip(blocks(&other))
                .map(|(a, b)| a.abs_diff(b));
            let (l1, l2) = apart.fold((0, 0), |(l1, l2), d| (l1 + d, l2 + d * d));
            assert!(Ratio::from(l1) <= *stream.tree_sensitivity_l1().bound());
            assert!(Ratio::from(l2) <= *stream.tree_sensitivity_l2().square());
            reached |= changed == 1 && Ratio::from(l2) == *stream.tree_sensitivity_l2().square();
        }
        assert!(reached, "the first step is in a block of every level");
    }

    #[test]
    fn without_noise_it_is_the_sum() {
        let mut entropy = Seeded::new(662);
        let mut counter = stream::<AddRemove>(100, 1).tree(&Noise::Laplace(scale(1, 1 << 40)));
        let mut sum = 0.0;
        for step in 1..=100_i64 {
            let x = step * step % 17 - 8;
            sum += x as f64;
            let release = counter
                .step(Secret::new(x), &mut entropy)
                .expect("within the horizon");
            assert_eq!(*release.value(), sum);
            assert_eq!(release.event(), &counter.event());
        }
        assert!(
            counter.step(Secret::new(1), &mut entropy).is_err(),
            "beyond the horizon"
        );
        let mut extremes = stream::<AddRemove>(4, 1).tree(&Noise::Gaussian(scale(1 << 90, 1)));
        for x in [i64::MIN, i64::MAX, i64::MIN, 0] {
            assert!(
                extremes
                    .step(Secret::new(x), &mut entropy)
                    .expect("entropy")
                    .value()
                    .is_finite()
            );
        }
    }

    #[test]
    fn a_step_without_entropy_can_be_tried_again() {
        let mut counter = stream::<AddRemove>(2, 1).tree(&Noise::Laplace(scale(1, 1 << 40)));
        assert!(counter.step(Secret::new(5), &mut FailingEntropy).is_err());
        let release = counter
            .step(Secret::new(5), &mut Seeded::new(663))
            .expect("entropy");
        assert_eq!((*release.value(), counter.steps()), (5.0, 1));
    }

    /// The first of four numbers is in three blocks, and the answers at 1, 2 and 4 show each of them.
    fn seen(b: (u128, u128), trials: u64) -> whit_audit::Verdict {
        let stream = stream::<AddRemove>(4, 1);
        let (mut one, mut other) = (Seeded::new(seed(664)), Seeded::new(seed(665)));
        let counter = std::cell::RefCell::new(stream.tree(&Noise::Laplace(scale(b.0, b.1))));
        let event = |first: i64, entropy: &mut Seeded| {
            let mut counter = counter.borrow_mut();
            // From the start again; what the vectors hold is stale.
            counter.steps = 0;
            let mut step = |x| {
                *counter
                    .step(Secret::new(x), entropy)
                    .expect("entropy")
                    .value()
            };
            let answers = [step(first), step(0), step(0), step(0)];
            answers[0] >= 1.0 && answers[1] >= 1.0 && answers[3] >= 1.0
        };
        judge(
            1.0,
            0.0,
            if long() { 3 * trials } else { trials },
            || event(1, &mut one),
            || event(0, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((3, 1), 100_000);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.84,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((27, 10), 250_000).convicted, "noise a tenth too small");
        assert!(seen((2, 1), 100_000).convicted, "one level forgotten");
    }
}
