//! # The stream of a cyclic run
//! Releases the sums of a run's steps, one after the other, through the encoder of its plan (see `plan/factor.rs`), and decodes what was released.
//!
//! **Claim.** All that leaves a [`Correlated`] is a function of `C x + z` and of public numbers, with `C` the plan's encoder, or that with rows cut off as in
//! *beginning again*, and `x_t` the sum of the batch of step `t`.
//! **Proof.** 1. *Integers.* `x` is in whole units of the grid and the entries of `2^8 C` (or of the tree's `C`) are whole numbers, so the encoded row is an
//! integer vector, formed exactly in 128 bits. Clamping it to 64 bits moves no two vectors further apart; rows of trees are sums of clamped rows, for which
//! this holds by induction. Rounded Gaussian noise on integers is post-processing of `C x + z` \[`RoundedGaussian`\]. 2. *Order.* A batch knows its step and its sampler.
//! The first one binds the stream to that sampler; from there on each must be of the next step, so the row that is released is that of its step: no other
//! order can bring an example's turns closer together. A step that fails ends the stream. 3. *One sampler.* Batches of another one, even of the same plan, have other bins,
//! and are refused. 4. *Nothing twice.* A batch is used up. What begins after some steps, in a second stream or in a run that was taken up again,
//! knows no sums from before. 5. *Decoding* looks at releases alone:
//!   - banded, by forward substitution, `y_t = u_t - Σ_{0<j<b} c_j y_{t-j}`, rounded to the unit. The `c_j` never grow and `c_1 < c_0`, so `c(y)` has no zero within the
//!     unit circle (Eneström–Kakeya) and roundings do not build up;
//!   - of a tree, each node's value from its own release and its children's values, weighted by their precision \[KMS+21\], after Honaker:
//!     at level `l` by `2^l` and `2^l - 1` over `2^(l+1) - 1`. `y_t` is the difference of two prefix sums. ∎
//!
//! **Secrets that stay.** The last `b - 1` sums, or one for each level of the tree, are kept in memory as a `Secret` and nowhere else: no checkpoint has them.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use whit_core::Sensitivity;
use whit_core::{AddRemove, Entropy, L2, Neighbours, Ratio, Relation, ReplaceOne, Scale, Secret};
use whit_mechanism::{Release, RoundedGaussian, crew};

use super::factor::{COEFFICIENT_BITS, Cyclic, Factor};
use crate::error::{Error, Result};
use crate::sampler::{Batch, Fingerprint};

/// Coordinates that one thread encodes at a time.
const PIECE: usize = 1 << 12;

/// Releases the sums of a cyclic run. Made by its plan alone; each release uses up a batch of the same plan.
pub struct Correlated {
    run: Fingerprint,
    scale: Scale,
    /// Of the whole run.
    sensitivity_square: Ratio,
    relation: Neighbours,
    /// The sampler that it is bound to, and the step that is next.
    bound: Option<(u64, u64)>,
    encoder: Encoder,
}

/// What is remembered between steps.
pub(super) enum Encoder {
    Banded(Banded),
    Tree(Tree),
}

impl Correlated {
    /// Noise of this scale on encoded sums, as the event of the run has it.
    pub(super) fn new(
        cyclic: &Cyclic,
        (scale, sensitivity_square): (Scale, Ratio),
        relation: Neighbours,
        run: Fingerprint,
    ) -> Self {
        Self {
            run,
            scale,
            sensitivity_square,
            relation,
            bound: None,
            encoder: Encoder::new(&cyclic.factor),
        }
    }

    /// Spends one step of the plan: releases what the sum of this batch adds, and answers with the estimate of that sum, in
    /// units of the plan's [`release_unit`](super::Plan::release_unit). Refused for a batch of another plan or another sampler, and out of order.
    pub fn release_on<E: Entropy<Bits: Send>>(
        &mut self,
        threads: NonZeroUsize,
        batch: Batch,
        sum: Secret<Vec<i64>>,
        entropy: &mut E,
    ) -> Result<Vec<i64>> {
        self.check(&batch)?;
        // Bound before anything is remembered: no other batch is of this step, so that a failure is the end.
        self.bound = Some((batch.sampler(), batch.step()));
        let (relation, scale) = (self.relation, self.scale.clone());
        let square = self.sensitivity_square.clone();
        let released = |row: Secret<Vec<i64>>| -> Result<Vec<i64>> {
            let release = match relation {
                Neighbours::AddRemove => {
                    add::<AddRemove, E>(scale.clone(), square.clone(), threads, row, entropy)
                }
                // There are no others: the accountant has refused them.
                _ => add::<ReplaceOne, E>(scale.clone(), square.clone(), threads, row, entropy),
            };
            Ok(release?.into_value())
        };
        let estimate = self.encoder.step(threads, sum, released)?;
        self.bound = Some((batch.sampler(), batch.step() + 1));
        Ok(estimate)
    }

    /// What is compared is public: plans, and numbers of steps and samplers.
    fn check(&self, batch: &Batch) -> Result<()> {
        if *batch.run() != self.run {
            return Err(Error::OtherPlan);
        }
        let next = match (self.bound, &self.encoder) {
            (Some((sampler, _)), _) if sampler != batch.sampler() => return Err(Error::OtherPlan),
            (Some((_, next)), _) => next,
            (None, Encoder::Banded(_)) => batch.step(),
            // Its nodes are those that were paid for only if they begin with the run.
            (None, Encoder::Tree(_)) => 0,
        };
        match batch.step() == next {
            true => Ok(()),
            false => Err(Error::OutOfOrder {
                next,
                given: batch.step(),
            }),
        }
    }
}

fn add<R: Relation, E: Entropy<Bits: Send>>(
    scale: Scale,
    square: Ratio,
    threads: NonZeroUsize,
    row: Secret<Vec<i64>>,
    entropy: &mut E,
) -> Result<Release<Vec<i64>>> {
    let noise = RoundedGaussian::new(scale, Sensitivity::<L2, R>::from_square(square));
    Ok(noise.release_on(threads, row, entropy)?)
}

impl Encoder {
    pub(super) fn new(factor: &Factor) -> Self {
        match factor {
            Factor::Banded(coefficients) => Self::Banded(Banded {
                coefficients: coefficients.clone(),
                sums: VecDeque::new(),
                estimates: VecDeque::new(),
            }),
            Factor::Tree => Self::Tree(Tree::default()),
        }
    }

    /// Encodes a step's sum, has each row of the step `released`, and decodes.
    pub(super) fn step(
        &mut self,
        threads: NonZeroUsize,
        sum: Secret<Vec<i64>>,
        released: impl FnMut(Secret<Vec<i64>>) -> Result<Vec<i64>>,
    ) -> Result<Vec<i64>> {
        // How long a sum is, is public.
        let given = sum.as_ref().expose().len();
        match self.length().filter(|&length| length != given) {
            Some(parameters) => Err(Error::OtherModel { parameters, given }),
            None => match self {
                Self::Banded(banded) => banded.step(threads, sum, released),
                Self::Tree(tree) => tree.step(sum, released),
            },
        }
    }

    fn length(&self) -> Option<usize> {
        match self {
            Self::Banded(banded) => banded.estimates.front().map(Vec::len),
            Self::Tree(tree) => (!tree.prefix.is_empty()).then_some(tree.prefix.len()),
        }
    }
}

/// The last sums and their estimates, the latest first.
pub(super) struct Banded {
    coefficients: Vec<u16>,
    sums: VecDeque<Secret<Vec<i64>>>,
    estimates: VecDeque<Vec<i64>>,
}

impl Banded {
    fn step(
        &mut self,
        threads: NonZeroUsize,
        sum: Secret<Vec<i64>>,
        mut released: impl FnMut(Secret<Vec<i64>>) -> Result<Vec<i64>>,
    ) -> Result<Vec<i64>> {
        self.sums.push_front(sum);
        let sums: Vec<&[i64]> = self
            .sums
            .iter()
            .map(|sum| &sum.as_ref().expose()[..])
            .collect();
        let mut row = vec![0; sums[0].len()];
        weighted(threads, &self.coefficients, &sums, &mut row, |_, total| {
            total
        });
        let mut estimate = released(Secret::new(row))?;
        // From here on everything is public.
        let estimates: Vec<&[i64]> = self.estimates.iter().map(Vec::as_slice).collect();
        let half = 1_i128 << (COEFFICIENT_BITS - 1);
        weighted(
            threads,
            &self.coefficients[1..],
            &estimates,
            &mut estimate,
            |own, total| i128::from(own) - ((total + half) >> COEFFICIENT_BITS),
        );
        self.estimates.push_front(estimate.clone());
        let kept = self.coefficients.len() - 1;
        self.sums.truncate(kept);
        self.estimates.truncate(kept);
        Ok(estimate)
    }
}

/// Each of `out` becomes what `of` makes of it and of the sum of the vectors there, each times its factor; clamped to 64 bits. At most 1024 vectors.
fn weighted(
    threads: NonZeroUsize,
    factors: &[u16],
    vectors: &[&[i64]],
    out: &mut [i64],
    of: impl Fn(i64, i128) -> i128 + Sync,
) {
    let pieces = out.chunks_mut(PIECE).enumerate();
    crew::each(threads.get(), pieces, |(piece, out)| {
        let first = piece * PIECE;
        // Upper and lower halves, of which 2^10 times 2^16 fit into 64 bits.
        let (mut upper, mut lower) = (vec![0_i64; out.len()], vec![0_i64; out.len()]);
        for (&factor, vector) in factors.iter().zip(vectors) {
            let factor = i64::from(factor);
            let values = &vector[first..first + out.len()];
            for ((upper, lower), value) in upper.iter_mut().zip(&mut lower).zip(values) {
                *upper += factor * (value >> 32);
                *lower += factor * (value & 0xffff_ffff);
            }
        }
        for ((out, upper), lower) in out.iter_mut().zip(upper).zip(lower) {
            let total = (i128::from(upper) << 32) + i128::from(lower);
            *out = clamped(of(*out, total));
        }
    });
}

fn clamped(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Nodes whose siblings are not there yet, by their level: at most one of each, as the digits of the number of steps.
#[derive(Default)]
pub(super) struct Tree {
    waiting: Vec<Option<Node>>,
    /// The estimate of the sum of all steps so far.
    prefix: Vec<i64>,
}

struct Node {
    sum: Secret<Vec<i64>>,
    estimate: Vec<i64>,
}

impl Tree {
    fn step(
        &mut self,
        sum: Secret<Vec<i64>>,
        mut released: impl FnMut(Secret<Vec<i64>>) -> Result<Vec<i64>>,
    ) -> Result<Vec<i64>> {
        let mut release = |sum: Secret<&Vec<i64>>| released(Secret::new(sum.expose().clone()));
        let estimate = release(sum.as_ref())?;
        let mut node = Node { sum, estimate };
        let mut level = 0;
        // As many rounds as the number of steps ends in ones.
        while let Some(left) = self.waiting.get_mut(level).and_then(Option::take) {
            level += 1;
            let sum = both(left.sum, node.sum);
            let own = release(sum.as_ref())?;
            let children = left.estimate.iter().zip(&node.estimate);
            let estimate = own.iter().zip(children);
            let estimate = estimate.map(|(&own, (&left, &right))| {
                joined(level as u32, own, i128::from(left) + i128::from(right))
            });
            node = Node {
                sum,
                estimate: estimate.collect(),
            };
        }
        let places = self.waiting.len().max(level + 1);
        self.waiting.resize_with(places, || None);
        self.waiting[level] = Some(node);
        let mut prefix = vec![
            0_i64;
            self.waiting[level]
                .as_ref()
                .map_or(0, |node| node.estimate.len())
        ];
        for node in self.waiting.iter().flatten() {
            for (prefix, value) in prefix.iter_mut().zip(&node.estimate) {
                *prefix = prefix.saturating_add(*value);
            }
        }
        self.prefix.resize(prefix.len(), 0);
        let step = prefix
            .iter()
            .zip(&self.prefix)
            .map(|(now, before)| now.saturating_sub(*before));
        let step = step.collect();
        self.prefix = prefix;
        Ok(step)
    }
}

/// The sum of two nodes.
fn both(left: Secret<Vec<i64>>, right: Secret<Vec<i64>>) -> Secret<Vec<i64>> {
    let right = right.expose();
    left.map(|mut sum| {
        for (sum, right) in sum.iter_mut().zip(right) {
            *sum = sum.saturating_add(right);
        }
        sum
    })
}

/// A node's value from its own release, of variance 1, and the sum of its children's values, of variance `2^l/(2^l - 1)`.
fn joined(level: u32, own: i64, children: i128) -> i64 {
    let weight = 1_i128 << level;
    let sum = i128::from(own) * weight + children * (weight - 1);
    let all = 2 * weight - 1;
    // To the nearest.
    clamped((2 * sum + all).div_euclid(2 * all))
}

#[cfg(test)]
#[path = "correlated_test.rs"]
mod tests;

#[cfg(test)]
#[path = "correlated_canary_test.rs"]
mod canary_tests;
