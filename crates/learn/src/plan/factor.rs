//! # Noise that cancels: factorisations of prefix sums
//! The alternative without sampling \[KMS+21, DMR+22\]. What training needs are prefix sums of the steps' sums `x_0, x_1, …`; noise that is
//! correlated between steps cancels in them. Instead of the sums themselves, `C x + z` is released, with a public non-negative matrix
//! `C`, the *encoder*, whose row `r` has entries at steps up to some `t(r)` only and is released in that step, and independent noise `z`.
//! Whoever knows `C x + z` computes estimates of `x_t` and of all prefix sums by public arithmetic.
//!
//! - *Banded* \[CGM+23\]: `C` is lower triangular and Toeplitz, `u_t = Σ_{j<b} c_j x_{t-j} + z_t`. The coefficients are those of the square root of the
//!   prefix sums' own, `1/√(1-y) = Σ binom(2j, j) 4^-j y^j`, cut off after `b` of them, as multiples of `2^-8`.
//! - *Tree*: each node of the binary trees over the steps is a row of ones, released with the last step below it.
//!
//! **Who takes part.** Each example draws one of `bins` bins, by itself and once; step `t` takes the examples of bin `t mod bins`. The
//! [sampler](crate::sampler) does that: nothing about it is promised by a caller.
//!
//! **Claim.** Let contributions have a norm of at most 1, and `n` steps be taken. Whoever sees `C x + z`, with `z` normal of standard deviation `σ` in every
//! coordinate, sees a Gaussian mechanism of noise `σ` and the L2 sensitivity `S` (twice that, if an example is replaced), where
//! `S² = max_p Σ_r (Σ_{s ≡ p mod bins} C_rs)²`, over bins `p` and the rows that were released by then.
//! **Proof.** 1. *Coins.* Fix the bins of all examples, and their seeds in each step; those of one that is in only one of both worlds included. They are drawn
//! alike and independently for each example, so that it moves nobody else: both worlds are drawn from the same coins. What holds for each outcome of coins holds
//! for their mixture, since the divergences of a mixture are at most the largest of its parts'. A replaced example has the bin of the one in its place.
//! 2. *One row.* Fix what was released before the step of row `r`. The parameters of every step up to this one are functions of that. Let `p` be the bin of the example in which the
//! worlds differ. A step `s ≢ p mod bins` has the same batch in both, in the same order, and so the same sum to the last bit. The sums of a step `s ≡ p` differ by
//! some `v_s` of norm at most 1, roundings included, as the [plan](super) requires of whoever sums. So the means of the row differ by `Σ_{s ≡ p} C_rs v_s`, of norm at most
//! `a_r = Σ_{s ≡ p} C_rs`. That number is fixed by `p` before the first step. 3. *All rows.* So each release is `a_r/σ`-GDP given all before it, and their adaptive composition is
//! `√(Σ a_r²)/σ`-GDP \[DRS22, Cor 3.3\], at most `S/σ`. For lower triangular `C` this is \[DMR+22, Thm 2.1\]. 4. *No less will do:*
//! contributions that are the same vector in every step reach it. ∎
//!
//! **Banded, in closed form.** The row sums of bin 0 are `r_t = Σ c_j` over `j ≡ t mod bins`, `j < b`, `j <= t`. Those of bin `p` are the same,
//! `p` steps later, and fewer of them. So `S² = V(n) = Σ_{t<n} r_t²`. If `b <= bins`, columns of one example do not meet, and a step that is whole
//! costs `Σ c_j²`. From `t = b-1` on, `r_t` depends on `t mod bins` only.
//! **Beginning again.** A run that is taken up again after `m` steps, a multiple of `bins`, may draw new bins and forget what was before: then rows from
//! `m` on leave the steps before out, and cost `V(n-m)`. Since `r_{t+bins} >= r_t`, `V(m) + V(n-m) <= V(n)`: it is paid for. Of trees this is not claimed.
//!
//! **Error.** With `σ = S/μ`, prefix sums err in each coordinate by a mean square of `S²/μ²` times the mean of `Σ_{s<=t} d_s²` over `t`, where
//! `d` are the coefficients of `1/((1-y) c(y))`; of trees, the mean over `t` of `2^l/(2^(l+1)-1)`, added up over the ones `l` among the digits of `t`. A test has this table, in
//! units of `1/μ²`; roundings of the coefficients are not seen in it:
//!
//! | | independent | tree | `b = 8` | `b = 32` | `b = 128` |
//! | --- | --- | --- | --- | --- | --- |
//! | 256 steps, 256 bins | 128.5 | 21.6 | 24.1 | 10.1 | 7.1 |
//! | 256 steps, 32 bins | 1028 | 384 | 193 | 80.7 | 110.7 |
//! | 256 steps, 16 bins | 2056 | 1345 | 385 | 238 | 378 |

use whit_core::Ratio;

use crate::draft::FactorDraft;
use crate::error::{Error, Result, within};

/// Coefficients are multiples of `2^-8`: fine enough for the largest band, whose smallest is `5/256`, and coarse enough that sums times 256 are far from
/// the ends of 64 bits.
pub(super) const COEFFICIENT_BITS: u32 = 8;
/// The most coefficients: their smallest is still seen in multiples of `2^-8`.
const BAND_MAX: u64 = 1024;
/// A row that is remembered costs so many bytes for each parameter: a sum and an estimate of 64 bits.
const ROW_BYTES: u64 = 16;
/// The most bytes that a run may remember: more would fill the memory of many machines in the middle of a run that is paid for.
const MEMORY_MAX: u64 = 1 << 32;
/// The sensitivity of trees is added up node by node.
const TREE_STEPS_MAX: u64 = 1 << 20;

/// A clip norm is below `2^37` units of the grid, each of them 256 units of what is released: this much noise is below `2^60` of these.
const BANDED_NOISE_MAX: f64 = 32_768.0;

/// Examples in bins that are visited in turn, and what is released of the sums.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cyclic {
    pub(super) bins: u64,
    pub(super) factor: Factor,
}

/// The encoder.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Factor {
    /// The coefficients `c_j`, times 256. They are positive and never grow.
    Banded(Vec<u16>),
    /// Nodes of binary trees.
    Tree,
}

impl Cyclic {
    /// The bins were checked.
    pub(super) fn new(bins: u64, draft: FactorDraft, steps: u64) -> Result<Self> {
        let factor = match draft {
            FactorDraft::Banded { band } => {
                let passes = (1..=BAND_MAX).contains(&band);
                within("band", band as f64, passes, "a whole number from 1 to 1024")?;
                Factor::Banded(coefficients(band))
            }
            FactorDraft::Tree => {
                let range = "a whole number from 1 to 2^20, with a tree";
                within("steps", steps as f64, steps <= TREE_STEPS_MAX, range)?;
                Factor::Tree
            }
        };
        Ok(Self { bins, factor })
    }

    /// `S²` of the first `steps` steps, exactly.
    pub(super) fn sensitivity_square(&self, steps: u64) -> Ratio {
        match &self.factor {
            Factor::Banded(coefficients) => {
                let whole = Ratio::from(banded_square(coefficients, self.bins, steps));
                &whole * &Ratio::power_of_two(-2 * COEFFICIENT_BITS as i32)
            }
            Factor::Tree => {
                let bins = self.bins.min(steps);
                let largest = (0..bins).map(|bin| tree_square(bin, self.bins, steps));
                Ratio::from(largest.max().unwrap_or(0))
            }
        }
    }

    /// Refuses noise that the ends of 64 bits would cut off: as private, and of no use. What is released is clamped there.
    pub(super) fn check_noise(&self, multiplier: f64) -> Result<()> {
        let passes = self.bits() == 0 || multiplier <= BANDED_NOISE_MAX;
        let range = "a number from 0.001 to 32768 with banded noise";
        within("noise_multiplier", multiplier, passes, range)
    }

    /// Refuses a model for which what is remembered between steps would be too much. All of it is public.
    pub(super) fn check_memory(&self, parameters: usize, steps: u64) -> Result<()> {
        let rows = match &self.factor {
            Factor::Banded(coefficients) => (coefficients.len() as u64).min(steps),
            // One for each level of the tree.
            Factor::Tree => u64::from(u64::BITS - steps.leading_zeros()),
        };
        let parameters = parameters as u64;
        let rows_max = MEMORY_MAX / ROW_BYTES / parameters.max(1);
        if rows <= rows_max {
            return Ok(());
        }
        Err(Error::NoiseMemory {
            parameters,
            rows,
            bytes_max: MEMORY_MAX,
            band_max: matches!(self.factor, Factor::Banded(_)).then_some(rows_max),
            parameters_max: MEMORY_MAX / ROW_BYTES / rows.max(1),
        })
    }

    /// How often one example takes part, at most.
    pub(super) fn participations(&self, steps: u64) -> u64 {
        steps.div_ceil(self.bins)
    }

    /// How many steps belong together in a run that is kept: what is secret about them is not.
    pub(super) fn epoch(&self, steps: u64) -> u64 {
        match self.factor {
            Factor::Banded(_) => self.bins,
            Factor::Tree => steps,
        }
    }

    /// The unit of what is released is the grid's over two to the power of this.
    pub(super) fn bits(&self) -> u32 {
        match self.factor {
            Factor::Banded(_) => COEFFICIENT_BITS,
            Factor::Tree => 0,
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self.factor {
            Factor::Banded(_) => "cyclic_banded",
            Factor::Tree => "cyclic_tree",
        }
    }

    /// How many coefficients there are; 0 for a tree.
    pub(super) fn band(&self) -> u64 {
        match &self.factor {
            Factor::Banded(coefficients) => coefficients.len() as u64,
            Factor::Tree => 0,
        }
    }
}

/// `256 binom(2j, j) 4^-j` for `j < band`, rounded to whole numbers. In integers throughout, so that they are the same everywhere.
fn coefficients(band: u64) -> Vec<u16> {
    // With 40 more digits than are kept. All values are at most one, so that nothing overflows.
    let digits = COEFFICIENT_BITS + 40;
    let exact = std::iter::successors(Some((1_u64, 1_u64 << digits)), |&(j, value)| {
        Some((j + 1, value * (2 * j - 1) / (2 * j)))
    });
    let rounded = exact.map(|(_, value)| ((value + (1 << 39)) >> 40) as u16);
    rounded.take(band as usize).collect()
}

/// `V(n)`, times `2^16`.
fn banded_square(coefficients: &[u16], bins: u64, steps: u64) -> u128 {
    let band = coefficients.len() as u64;
    // The sum of every `bins`-th coefficient that step `t` still sees, from the latest.
    let row = |t: u64| -> u128 {
        let seen = coefficients.iter().enumerate().take((t + 1) as usize);
        let own = seen.filter(|(j, _)| *j as u64 % bins == t % bins);
        own.map(|(_, &c)| u128::from(c)).sum()
    };
    let square = |t: u64| row(t).pow(2);
    let first = (band - 1).min(steps);
    let begin: u128 = (0..first).map(square).sum();
    // From there on a row is that of its place in the turn, of which those beyond the band are zero.
    let rest = (0..bins.min(band)).map(|place| {
        let t = first + (place + bins - first % bins) % bins;
        let times = steps.saturating_sub(t).div_ceil(bins);
        u128::from(times) * square(t)
    });
    begin + rest.sum::<u128>()
}

/// `Σ m²` over all nodes that end within `steps`, where `m` is how often an example of this bin takes part below a node.
fn tree_square(bin: u64, bins: u64, steps: u64) -> u128 {
    // Those before `step`.
    let before = |step: u64| step.saturating_sub(bin).div_ceil(bins);
    let widths = (0..u64::BITS).map(|level| 1_u64 << level);
    let level = |width: u64| -> u128 {
        // Nodes that nobody takes part below cost nothing, and where there are fewer participations than nodes, those are gone through.
        if width < bins {
            let starts = (bin..steps).step_by(bins as usize);
            let whole = starts.filter(|start| start / width * width + width <= steps);
            return whole.count() as u128;
        }
        let nodes = (0..steps / width).map(|node| {
            let within = before((node + 1) * width) - before(node * width);
            u128::from(within).pow(2)
        });
        nodes.sum()
    };
    let widths = widths.take_while(|&width| width <= steps);
    widths.map(level).sum()
}

#[cfg(test)]
#[path = "factor_test.rs"]
mod tests;
