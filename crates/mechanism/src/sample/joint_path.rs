//! # Choice of a path
//! **Definition.** For a rate `g` and shares of gaps `s_1 … s_(m+1)` that sum to one, points `r_1 <= … <= r_m` with the probability
//!   `∝ v(r) exp(-g Σ_j |c_j - s_j n|)`, exactly, where `c_j = #{r_(j-1) < x <= r_j}` (all up to `r_1`, and all above `r_m`), and `v(r)` is how many ways
//!   there are to order `r_1 … r_m`: so that at `g = 0` they are `m` independent uniform points, sorted.
//! **Sampler.** Summed over the points of its cells a path has, up to `m!`, the weight `W` of [`joint_sums`](super::joint_sums), since
//!   `w^k/k!` is the sum of `v/k!` over all `k` points of one cell. A path is proposed from its end: first the last cell; then how many points
//!   lie in it; then the cell before; and so on. A choice among options that should weigh `t` is made by integers `q = floor(h/2^y) + 1`,
//!   where `h` is about `t`, and `y` is such that all of them have about 62 bits together: with probability `q/N`, `N = Σ q`. The path is
//!   accepted with probability `p = W Π(N/q)/c`, where `c = N_1 2^(y_1) (1 + σ)` belongs to the first choice and
//!   `σ = 16(m+1)(n+m+2^42) 2^-62`; if it is not, all begins anew. At last `k` uniform points in each cell.
//! **Proof.** A path is proposed with probability `Π(q/N)`, hence proposed and accepted with `W/c`: proportional to `W`, whatever the table
//!   says, if only `p <= 1`. Let `u = 2^-62`, let `A` be the entries of the table, and `C` the sums over them as the formulas say.
//!   1. A cell should weigh `K A`, and has `q 2^y >= h >= K A (1 - (2n+2)u)`. All together should weigh `C`, and have
//!      `N 2^y <= Σ h + (n+1) 2^y <= C (1 + 2(n+1)u)`, because `2^y <= 2u Σ h`.
//!   2. A run should weigh `T = C w^k/k! ⋯`. If it matters, `q 2^y >= h >= T (1 - (5n+6m+16)u)`, and else `T < 2^-70 A <= 2^y <= q 2^y`. All together should
//!      weigh `A`, and have `N 2^y <= A (1 + (5n+8m+2^45+17)u)` and terms in `u²`.
//!   3. In `W Π(N/q)` each `N 2^y` but the first stands over the `q 2^y` of the choice before, whose weight had the `A` or `C` as a factor that
//!      is now under `N 2^y`. So all of them cancel up to `14n + 14m + 2^45 + 37` of `u` for each of at most `m` points, and the product is at most
//!      `N_1 2^(y_1) (1 + σ)`, second orders included, if `σ <= 1/16`: for a hundred points up to `n = 2^47`, which is more than any memory holds.
//!
//!   The number `p` is compared with a uniform one by enclosures of `exp`, as sharp as it takes; everything else in it is rational.
//! **Cost.** A few operations for each cell and level, and `16 mn` bytes. A proposal is rejected with a probability of about `σ`, one in a few thousand.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Ratio};

use super::joint_sums::{JointSums, sum};
pub(crate) use super::rank_cells::Field;
use super::scaled::{Near, Scaled};
use super::uniform_below;

/// Chooses several points by the numbers of values between them.
#[derive(Clone)]
pub(crate) struct JointPath {
    pub(super) rate: RBig,
    pub(super) gaps: Vec<RBig>,
}

/// A steeper rate than this is of no use, and exponents have room for it with more values than there will ever be.
const RATE_MAX: u32 = 1 << 10;

impl JointPath {
    /// For a public rate and public shares of the gaps, one more than points, that sum to one. A rate beyond 1024 counts as that.
    pub(crate) fn new(rate: &Ratio, gaps: Vec<RBig>) -> Self {
        let rate = rate.as_rbig().clone().min(RBig::from(RATE_MAX));
        Self { rate, gaps }
    }

    /// The rate that is used.
    pub(crate) fn rate(&self) -> Ratio {
        Ratio::from_rbig(self.rate.clone()).expect("a rate is not negative")
    }

    /// The points, in order.
    pub(crate) fn choose<B: Bits>(&self, field: Field, bits: &mut B) -> Vec<i64> {
        let sums = JointSums::new(&self.rate, &self.gaps, field);
        let path = loop {
            let proposal = Proposal::draw(&sums, bits);
            if self.odds(&sums, &proposal).heads(bits) {
                break proposal.path;
            }
        };
        let point = |cell: usize| sums.begin(cell) + uniform_below(sums.width(cell), bits) as i64;
        let mut points: Vec<i64> = path.into_iter().map(point).collect();
        points.sort_unstable();
        points
    }

    /// `p`.
    pub(super) fn odds(&self, sums: &JointSums, proposal: &Proposal) -> Odds {
        let path = &proposal.path;
        let (mut numerator, mut denominator) = (UBig::ONE, UBig::ONE);
        for run in path.chunk_by(|a, b| a == b) {
            let width = sums.width(run[0]);
            for length in 1..=run.len() {
                numerator *= width;
                denominator *= UBig::from(length);
            }
        }
        let [first, later @ ..] = &proposal.choices[..] else {
            unreachable!("the last cell is always chosen");
        };
        for choice in later {
            numerator *= UBig::from(choice.out_of);
        }
        for choice in &proposal.choices {
            denominator *= choice.taken;
        }
        // Divided by 1 + σ.
        let (levels, cells) = (path.len() as u128, sums.left[0].len() as u128);
        let slack = 16 * (levels + 1) * (cells - 1 + levels + (1 << 42));
        numerator <<= 62;
        denominator *= UBig::from(slack + (1 << 62));
        Odds {
            x: &self.rate * sums.distance(path),
            numerator,
            denominator,
            unit: first.unit,
        }
    }
}

/// The probability `numerator/denominator · exp(-x) · 2^-unit`.
pub(super) struct Odds {
    pub(super) x: RBig,
    pub(super) numerator: UBig,
    pub(super) denominator: UBig,
    pub(super) unit: i64,
}

impl Odds {
    /// Throws the coin.
    pub(super) fn heads<B: Bits>(&self, bits: &mut B) -> bool {
        let (mut drawn, mut drawn_bits) = (UBig::ZERO, 0);
        loop {
            drawn = (drawn << B::WIDTH as usize) + UBig::from(bits.word());
            drawn_bits += B::WIDTH as usize;
            // U lies in [drawn, drawn + 1) 2^-drawn_bits.
            let (low, high, by) = self.enclose(drawn_bits + 64);
            if (&drawn + UBig::ONE) * &by <= low << drawn_bits {
                return true;
            }
            if &drawn * by >= high << drawn_bits {
                return false;
            }
        }
    }

    /// `(low, high, by)`: it lies between `low/by` and `high/by`, which are closer than `2^-bits` of it.
    pub(super) fn enclose(&self, bits: usize) -> (UBig, UBig, UBig) {
        let near = Near::exp_neg(&self.x, bits);
        let shift = near.shift + self.unit;
        let (up, down) = ((-shift).max(0) as usize, shift.max(0) as usize);
        let at = |end: UBig| (end * &self.numerator) << up;
        (at(near.low), at(near.high), &self.denominator << down)
    }
}

/// One choice that was made: `q` of the option taken, `N`, and `y`.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) taken: u64,
    pub(super) out_of: u128,
    pub(super) unit: i64,
}

/// A path, with the choices that led to it.
pub(super) struct Proposal {
    pub(super) path: Vec<usize>,
    pub(super) choices: Vec<Choice>,
}

impl Proposal {
    pub(super) fn draw<B: Bits>(sums: &JointSums, bits: &mut B) -> Self {
        let levels = sums.left.len();
        let mut proposal = Self {
            path: Vec::with_capacity(levels),
            choices: Vec::new(),
        };
        let mut weights = Vec::new();
        // How many points are not placed yet, and where the next one must be: before this cell.
        let (mut open, mut cell) = (levels, sums.left[0].len());
        while open > 0 {
            weights.extend(sums.arrivals(open, cell));
            cell -= 1 + proposal.choose(&mut weights, bits);
            weights.extend(sums.runs(open - 1, cell));
            let run = 1 + proposal.choose(&mut weights, bits);
            proposal.path.extend(std::iter::repeat_n(cell, run));
            open -= run;
        }
        proposal.path.reverse();
        proposal
    }

    /// One choice, for which the weights are used up.
    fn choose<B: Bits>(&mut self, weights: &mut Vec<Scaled>, bits: &mut B) -> usize {
        let (wholes, unit) = wholes(weights);
        weights.clear();
        let out_of = wholes.iter().map(|&whole| u128::from(whole)).sum();
        let mut rest = below(out_of, bits);
        let mut taken = 0;
        let index = wholes.iter().position(|&whole| {
            taken = whole;
            let here = rest < u128::from(whole);
            rest = rest.wrapping_sub(u128::from(whole));
            here
        });
        self.choices.push(Choice {
            taken,
            out_of,
            unit,
        });
        index.expect("the weights sum up to what the number is below")
    }
}

/// `q` for each weight, and `y`: the sum takes 62 bits, and some more for what is rounded. Nothing stays nothing.
pub(super) fn wholes(weights: &[Scaled]) -> (Vec<u64>, i64) {
    let unit = sum(weights.iter().copied()).bits() - 62;
    let whole = |weight: &Scaled| {
        if weight.is_zero() {
            0
        } else {
            weight.in_units_of(unit) + 1
        }
    };
    (weights.iter().map(whole).collect(), unit)
}

/// A number below `bound`, each with the same probability. The bound is positive.
pub(super) fn below<B: Bits>(bound: u128, bits: &mut B) -> u128 {
    let last = bound - 1;
    let high = match u64::try_from(last >> 64).expect("the upper half") {
        u64::MAX => unreachable!("sums of 64-bit weights are far below"),
        high => high + 1,
    };
    loop {
        let upper = u128::from(uniform_below(high, bits)) << 64;
        // With one word or less, as many bits as it takes.
        let lower = match u64::try_from(bound) {
            Ok(bound) => uniform_below(bound, bits),
            Err(_) => word(bits),
        };
        if upper + u128::from(lower) < bound {
            return upper + u128::from(lower);
        }
    }
}

/// 64 bits.
fn word<B: Bits>(bits: &mut B) -> u64 {
    let half = 1 << 32;
    (uniform_below(half, bits) << 32) | uniform_below(half, bits)
}
