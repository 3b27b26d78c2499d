//! # White-box canaries
//! **Attack.** An adversary who sees every release puts examples into the data whose clipped gradient is the same vector of norm `C` in every step: canary `i` has
//! one feature of its own, all others zero, and an answer so far off that its gradient is clipped along that feature whatever happens. Then
//! coordinate `i` of the releases is what the plan's price is about, a Gaussian around 0 or `C` over a secret sample, and nothing else.
//!
//! **Many at once.** *Claim.* The coordinates of different canaries are independent, so that one run with `m` canaries is `m` trials. *Proof.* Weights are not moved here
//! (an optimizer may do as it likes, it is post-processing), so that the contribution of a canary is the same float vector whenever it is sampled. It is zero, exactly, in
//! the coordinates of the others, since their features are. Coins of a Poisson sampler and draws of noise are independent, and how partial sums
//! are rounded to the grid adds zeros only. (The bias is shared, and is not looked at.) For other samplers, and where a fixed number of rows is
//! drawn, coins are not independent, and a run is one trial.
//!
//! **Score.** How much likelier the releases are with the canary than without, in logarithms, summed over steps: nothing tells the worlds apart better, by Neyman and
//! Pearson. Where neighbours replace an example, the canary's neighbour is its opposite, whose gradient is `-C`: they are as far apart as
//! the relation allows.
//!
//! **One run** \[SNJ23\]. Each of many canaries is in or out by a coin, and guesses who is in are made from the scores by a rule that was fixed before.

use whit_audit::{CanaryScores, GuessRule, OneRun, Outputs};
use whit_core::{Bits, Entropy, Neighbours, Secret};

use crate::clip::Clip;
use crate::clipped_sum::{BatchRows, ClippedSum, Memory};
use crate::error::{Error, Result, within};
use crate::layer::Linear;
use crate::loss::Loss;
use crate::network::{Examples, Network};
use crate::payment::{Payment, Uncharged};
use crate::plan::{Noise, Plan};

/// The feature of a canary: so large that the bias has a millionth of the squared norm.
const FEATURE: f32 = 1000.0;
/// The answer: whatever is predicted, it is off by so much that the gradient is clipped.
const ANSWER: f32 = -1e6;

/// Canaries that are tried side by side, where they do not know of each other.
const SIDE_BY_SIDE: usize = 256;

/// A plan with canaries.
pub struct Canaries<'a> {
    plan: &'a Plan,
    network: Network,
    sum: ClippedSum,
    noise: Noise,
    count: usize,
    rows: usize,
}

impl<'a> Canaries<'a> {
    /// As many canaries as make the most of a run of this plan: one, where a run is one trial.
    pub fn side_by_side(plan: &'a Plan) -> Result<Self> {
        let most = match (knows_nobody(plan), plan.relation()) {
            (false, _) => 1,
            (true, Neighbours::AddRemove) => SIDE_BY_SIDE,
            (true, _) => SIDE_BY_SIDE.min(examples(plan)),
        };
        Self::new(plan, most)
    }

    /// So many canaries under this plan.
    pub fn new(plan: &'a Plan, count: usize) -> Result<Self> {
        if plan.turns().is_some() {
            return Err(Error::Word {
                field: "sampler",
                given: "cyclic".into(),
                passes: "another sampler: noise that is correlated between steps has a canary of its own among the tests",
            });
        }
        let public = plan.relation() != Neighbours::AddRemove;
        let most = if public {
            examples(plan)
        } else {
            u32::MAX as usize
        };
        within(
            "the number of canaries",
            count as f64,
            (1..=most).contains(&count),
            "at least 1 and, where an example is replaced, at most the plan's public number of examples",
        )?;
        let network = Network::new(vec![Box::new(Linear::new(count, 1))], Loss::Squared)?;
        let clip = Clip::flat(plan.clip_norm())?;
        let sum = ClippedSum::new(&network, clip, plan.grid(), plan.batch_cap())?;
        if plan.adaptive()?.is_some() {
            return Err(Error::Word {
                field: "clipping",
                given: "adaptive".into(),
                passes: "a clip norm that stays",
            });
        }
        // Where the number of examples is public, the rest are empty examples.
        let rows = match plan.relation() {
            Neighbours::AddRemove => count,
            _ => examples(plan),
        };
        Ok(Self {
            noise: plan.noise()?,
            plan,
            network,
            sum,
            count,
            rows,
        })
    }

    /// How many trials one run is.
    pub fn trials_of_a_run(&self) -> usize {
        if knows_nobody(self.plan) {
            self.count
        } else {
            1
        }
    }

    /// About how much one run is: examples that are drawn and looked at, and draws of noise.
    pub fn work_of_a_run(&self) -> f64 {
        let a_step = self.plan.rate() * self.rows as f64 + self.count as f64;
        self.plan.steps() as f64 * a_step + self.rows as f64
    }

    /// One run, in which these are in: the score of each.
    pub fn scores<E: Entropy>(&self, is_in: &[bool], entropy: &mut E) -> Result<Vec<f64>> {
        let present = Present {
            is_in,
            otherwise: match self.plan.relation() {
                Neighbours::AddRemove => Otherwise::Absent,
                _ => Otherwise::Opposite,
            },
        };
        let payment = Payment::uncharged(self.plan, Uncharged);
        let mut sampler = self.plan.sampler(self.rows, payment)?;
        let (mut memory, mut buffer) = (Memory::default(), Vec::new());
        let weights = vec![0.0; self.network.param_len()];
        let unit = self.plan.grid() / self.plan.clip_norm();
        let likelihood = Likelihood {
            rate: self.plan.rate(),
            precision: self.plan.noise_multiplier().powi(-2),
            unit,
            otherwise: present.otherwise,
        };
        let mut scores = vec![0.0; self.count];
        for _ in 0..self.plan.steps() {
            let batch = sampler.draw(entropy)?;
            let rows = BatchRows {
                examples: &present,
                rows: batch.expose(),
                seeds: &[],
            };
            let taken = std::mem::take(&mut buffer);
            let summed = self
                .sum
                .sum(&self.network, &weights, rows, 1, &mut memory, taken)?;
            let secret = Secret::new(summed.sum.expose());
            let released = self.noise.release(batch, secret, entropy)?.into_value();
            let each = scores.iter_mut().zip(&released);
            each.for_each(|(score, &sum)| *score += likelihood.of(sum));
            buffer = released;
        }
        Ok(scores)
    }

    /// So many trials with the canary and as many without, or a few more.
    pub fn worlds<E: Entropy>(&self, trials: usize, entropy: &mut E) -> Result<Outputs<f64>> {
        let [with, without] = self.scores_of_worlds(trials, entropy)?;
        Ok(Outputs::new(with, without))
    }

    /// The same, for whoever joins several such: first with the canary, then without.
    pub fn scores_of_worlds<E: Entropy>(
        &self,
        trials: usize,
        entropy: &mut E,
    ) -> Result<[Vec<f64>; 2]> {
        let of_a_run = self.trials_of_a_run();
        let mut worlds = [Vec::with_capacity(trials), Vec::with_capacity(trials)];
        while worlds[1].len() < trials {
            for (world, is_in) in worlds.iter_mut().zip([true, false]) {
                let mut all = vec![false; self.count];
                all[..of_a_run].fill(is_in);
                let scores = self.scores(&all, entropy)?;
                world.extend_from_slice(&scores[..of_a_run]);
            }
        }
        Ok(worlds)
    }

    /// One run with a coin for each canary, and what the guesses of a rule that was fixed before come to.
    pub fn one_run<E: Entropy>(&self, rule: GuessRule, entropy: &mut E) -> Result<OneRun> {
        if self.trials_of_a_run() != self.count {
            return Err(Error::Word {
                field: "sampler",
                given: self.plan.summary().sampler.into(),
                passes: "\"poisson\" or \"all\", whose canaries do not know of each other",
            });
        }
        let mut bits = entropy.open()?;
        let is_in: Vec<bool> = (0..self.count).map(|_| bits.word() & 1 == 1).collect();
        let scores = self.scores(&is_in, entropy)?;
        Ok(CanaryScores::new(scores).guess(rule)?.reveal(&is_in)?)
    }
}

/// Are examples drawn by coins of their own?
fn knows_nobody(plan: &Plan) -> bool {
    matches!(plan.summary().sampler, "poisson" | "all")
}

/// The plan's public number of examples.
fn examples(plan: &Plan) -> usize {
    (plan.expected_batch() / plan.rate()).round() as usize
}

/// What stands in the place of a canary that is not in.
#[derive(Clone, Copy, PartialEq)]
enum Otherwise {
    Absent,
    Opposite,
}

/// Which canaries are there.
struct Present<'a> {
    is_in: &'a [bool],
    otherwise: Otherwise,
}

impl Examples for Present<'_> {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let is_in = *self.is_in.get(row as usize)?;
        input.fill(0.0);
        input[row as usize] = FEATURE;
        match (is_in, self.otherwise) {
            (true, _) => Some(ANSWER),
            (false, Otherwise::Opposite) => Some(-ANSWER),
            (false, Otherwise::Absent) => None,
        }
    }
}

/// Of a release along a canary: `ln(q φ(s-1) + (1-q) φ(s)) - ln φ(s)` for noise of this precision, and the same less that of the opposite.
struct Likelihood {
    rate: f64,
    precision: f64,
    unit: f64,
    otherwise: Otherwise,
}

impl Likelihood {
    #[inline]
    fn of(&self, sum: i64) -> f64 {
        let along = sum as f64 * self.unit;
        let ratio = |along: f64| {
            let shifted = ((along - 0.5) * self.precision).exp();
            (self.rate * shifted + (1.0 - self.rate)).ln()
        };
        match self.otherwise {
            Otherwise::Absent => ratio(along),
            Otherwise::Opposite => ratio(along) - ratio(-along),
        }
    }
}

#[cfg(test)]
#[path = "canary_test.rs"]
mod tests;
