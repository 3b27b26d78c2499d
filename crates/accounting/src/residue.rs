//! # Many equal Laplace mechanisms, exactly
//! **Definition.** The profile of `k` independent copies of `Laplace(1, b)` against `Laplace(0, b)`. With `a = 1/b`, one
//! loss is `a - D`, where the deficit `D` is 0 with probability `1/2`, `2a` with probability `e^-a/2`, and has the density
//! `e^(-D/2)/4` between. With `y = ka - ε` and the deficit `D` of the sum, `δ(ε) = E[(1 - e^(D-y))_+]`.
//!
//! **Residues.** As a contour integral [AGA+23, Thm 3.1], `δ` is a finite sum of residues at `t = 0` and `t = 1/2`. That sum
//! alternates and loses about `k` bits. But its part at `t = 0` is a spline in `y` written in truncated powers; in the
//! Bernstein form of each of its cells the same spline has positive coefficients only, and nothing cancels.
//!
//! **Splines.** In units of `2a`, one deficit has the law `e^(-az) N(dz)` with `N = (δ_0 + δ_1)/2 + (a/2) 1_(0,1) dz`, so
//! the sum has `e^(-az) N^k(dz)`: atoms `C(k,d)/2^k` at integers `d`, and on each cell `(d, d+1)` a polynomial `f_k` of
//! degree `k-1`. One more convolution with `N` is
//! `f_{n+1}(z) = (f_n(z) + f_n(z-1))/2 + (a/2) (C(n,d)/2^n + ∫_d^z f_n + ∫_{z-1}^d f_n)` on cell `d`.
//! Let `c_i` be the coefficients of `f_n` on a cell in the basis `C(n-1,i) v^i (1-v)^(n-1-i)`. Raised by one degree they are
//! `(i c_{i-1} + (n-i) c_i)/n`; integrated from the left `Σ_{l<i} c_l / n`, to the right end `Σ_{l>=i} c_l / n`. All of this
//! only adds products of numbers that are not negative. Cell `d` is kept times `q^d`, `q = e^-a`, so that what comes from
//! cell `d-1` is multiplied by `q`. It needs cells at most `d` only, so cells are built when an epsilon asks for them.
//!
//! **Profile.** Let `z = y/2a = d + v`, and `w_j = 1 - e^(-2a(z-j))`. Splitting `1 - e^(D-y)` at each cell's right end,
//! `δ = Σ_{j<=d} atom_j w_j + Σ_{j<d} (w_{j+1} mass_j + (1-w_{j+1}) rest_j) + part`, where over a cell of length `h` with
//! coefficients `c_i`, `mass = h Σ c_i μ_i(ah)` and `rest = h Σ c_i ρ_i(ah)`, and `part` is `rest` of the piece `(d, d+v)`,
//! whose coefficients are de Casteljau's. With `B_i` the basis of degree `n` and `u = 1-v`,
//! `μ_i(x) = ∫ B_i e^(-xv) dv = e^-x Σ_p T_p` and `ρ_i(x) = ∫ B_i e^(-xv) (1 - e^(-2xu)) dv = 2 e^-x Σ_{p odd} T_p`, where
//! `T_p = x^p/p! ∫ B_i u^p dv`, so `T_0 = 1/(n+1)` and `T_{p+1}/T_p = x/(p+1) · (n-i+p+1)/(n+p+2)`. Positive again. For
//! `ε < 0`, `δ(ε) = 1 - e^ε + e^ε δ(-ε)`, since the pair is its own mirror image.
//!
//! **Rounding.** Nothing is subtracted, so relative errors add along the longest path of roundings of `2^-53` each; the
//! counts stand beside the code and are summed up in [`LaplaceSum::at`]. Underflow adds less than `k³` times 10 roundings of
//! `2^-1075`, each magnified at most by `k a <= 2^18`, and as mass, which convolution with a probability keeps; that is
//! below `2^-1026` in kept units. `δ >= 2^-k (1-e^-y)` is above `2^-1120`, or `2^-622` where `a >= 1`, and for `a < 1` a
//! mass of one is kept as `2^500`: relative to `δ` it is below `2^-400`, and one more rounding covers it. Weights are above
//! `2^-800`, far from underflow. What overflows is not finite in the end, and then nothing is claimed.
//!
//! **Huge `a`.** Below `2a` the law of `D` does not depend on `a`. So above some `a' = 128, 256, 512`, the first that is not
//! below `k + 63` or the last, cells of length `2a'` serve, and where `y > 2a'`, `δ` is between its value at `2a'` and one.
//! That is sharp: `1 - δ <= E e^(θ(D-2a')) <= (1/2 + 1/(2-4θ))^k e^(-2θa')` for `0 < θ < 1/2`, below `e^-37` by
//! `θ = 0.3` up to 449 mechanisms and by `θ = 0.2` up to 512.

use whit_core::round;

use crate::Bracket;
use crate::curve::Curve;

/// The most mechanisms that fit: the work grows with the cube, and this takes about a tenth of a second.
const COUNT_MAX: u64 = 512;
/// Beyond this scale powers of `1/b` come near the smallest floats.
const SCALE_MAX: f64 = 1e150;
/// The largest `a'`. The largest coefficients are about `e^(k(1-ln 2) + a')`, here and for 512 mechanisms `1e291`.
const INVERSE_MAX: usize = 512;
/// `2^500`: what stands for a mass of one if `a < 1`.
const UNIT: f64 = f64::from_bits((1023 + 500) << 52);
/// One rounding, `2^-53`; second-order terms of at most `10^5` roundings are below the added hundredth.
const ROUNDING: f64 = 1.01 * f64::EPSILON / 2.0;

/// The profile of `count` Laplace mechanisms of one `scale`, both directions being the same.
#[derive(Clone, Debug)]
pub(crate) struct LaplaceSum {
    scale: f64,
    count: usize,
    /// Cells are `2/cell_scale` long: `2a`, or `2a'`.
    cell_scale: f64,
    /// `q`.
    decay: f64,
    unit: f64,
    whole: Weights,
    cells: Vec<Cell>,
    /// Of the cell built last.
    layers: Layers,
}

/// What `count` mechanisms leave on `[d, d+1)`, in kept units.
#[derive(Clone, Debug)]
struct Cell {
    atom: f64,
    mass: f64,
    rest: f64,
    coefficients: Vec<f64>,
}

/// One cell through all counts: `atoms[n]`, and `n` coefficients from `n(n-1)/2` on.
#[derive(Clone, Debug)]
struct Layers {
    atoms: Vec<f64>,
    coefficients: Vec<f64>,
}

impl LaplaceSum {
    /// `scale` is positive and per sensitivity. None where the number of mechanisms or the scale is too large.
    pub(crate) fn new(scale: f64, count: u64) -> Option<Self> {
        if !(scale > 0.0 && scale <= SCALE_MAX && (1..=COUNT_MAX).contains(&count)) {
            return None;
        }
        let count = count as usize;
        // `a'`, a power of two.
        let inverse_max = (count + 63).next_power_of_two().clamp(128, INVERSE_MAX);
        let cell_scale = scale.max(1.0 / inverse_max as f64);
        Some(Self {
            scale,
            count,
            cell_scale,
            decay: exp_minus(1.0, cell_scale),
            unit: if cell_scale > 1.0 { UNIT } else { 1.0 },
            whole: Weights::new(count, 1.0, cell_scale),
            cells: Vec::new(),
            layers: Layers {
                atoms: vec![0.0; count + 1],
                coefficients: vec![0.0; count * (count + 1) / 2],
            },
        })
    }

    /// `b`.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// `k`.
    pub(crate) fn count(&self) -> u64 {
        self.count as u64
    }

    /// `δ` at the exact place `z = y/2a`, which is not negative.
    ///
    /// Roundings on the longest path, with `P` terms in the weights: 7 per mechanism and 7 per cell before in each
    /// coefficient, 3 per mechanism in the subdivision, and `5P + 14` in the weighted sum; without a subdivision, `5P + 26`
    /// in a cell's `mass` or `rest`, its factor, and the sum. 6 are to spare.
    fn at(&mut self, place: f64) -> Bracket {
        if self.cell_scale > self.scale && place > 1.0 {
            return Bracket::new(self.at(1.0).lower(), 1.0);
        }
        // Both are exact, and so are the differences below: multiples of the last place that are no larger.
        let whole = place.floor();
        let part = place - whole;
        let full = whole as usize;
        self.build(full + usize::from(part > 0.0));
        let mut sum = Sum::default();
        let mut terms = self.whole.terms;
        let mut factor = self.fall(place);
        for (index, cell) in self.cells[..full].iter().enumerate() {
            sum.add([cell.atom * factor]);
            factor = self.fall(place - (index + 1) as f64);
            // 5 in the factor, 5 and one in its complement; these are of `rest`, which is at most `mass`.
            sum.add([factor * cell.mass]);
            sum.add([(1.0 - factor) * cell.rest]);
        }
        if part > 0.0 {
            let cell = &self.cells[full];
            sum.add([cell.atom * factor]);
            let weights = Weights::new(self.count, part, self.cell_scale);
            let piece = subdivide(&cell.coefficients, part);
            sum.add([part * dot(&piece, &weights.rest)]);
            terms = terms.max(weights.terms);
        }
        let roundings = 10 * self.count + 7 * full + 5 * terms + 32;
        let value = sum.value()[0] / self.unit;
        if !value.is_finite() {
            return Bracket::new(0.0, 1.0);
        }
        let error = roundings as f64 * ROUNDING;
        Bracket::new(
            round::mul_down(value, 1.0 - error).max(0.0),
            round::mul_up(value, 1.0 + error).max(f64::from_bits(1)),
        )
        .clamp(0.0, 1.0)
    }

    /// `w = 1 - e^(-2a·distance)`. One rounding in the exponent, which `w` passes on at most once, and four (two units in
    /// the last place, twice what is documented) in `expm1`.
    fn fall(&self, distance: f64) -> f64 {
        -libm::expm1(-2.0 * distance / self.cell_scale)
    }

    /// The first `wanted` cells.
    fn build(&mut self, wanted: usize) {
        while self.cells.len() < wanted {
            self.build_next();
        }
    }

    /// One more cell, from the one before it through all counts, in its place.
    fn build_next(&mut self) {
        let (d, count) = (self.cells.len(), self.count);
        let inverse = 1.0 / self.cell_scale;
        let Layers {
            atoms,
            coefficients,
        } = &mut self.layers;
        // Cell `d` is empty before `d` mechanisms. What the cell before leaves is multiplied by `q`, with six roundings in
        // the factor and one in the product.
        let first = d.saturating_sub(1);
        let mut other_atom = atoms[first] * self.decay;
        let (mut other, mut other_next) = (vec![0.0; count], vec![0.0; count]);
        let (mut left, mut right) = (vec![0.0; count + 1], vec![0.0; count + 1]);
        atoms[first] = if d == 0 { self.unit } else { 0.0 };
        for n in first..count {
            let constant = atoms[n] * (0.5 * inverse);
            let atom = 0.5 * (atoms[n] + other_atom);
            other_atom = atoms[n + 1] * self.decay;
            atoms[n + 1] = atom;
            let start = n * n.saturating_sub(1) / 2;
            let (done, open) = coefficients.split_at_mut(start + n);
            let (own, next) = (&done[start..], &mut open[..=n]);
            for (kept, value) in other_next.iter_mut().zip(next.iter()) {
                *kept = value * self.decay;
            }
            if n > 0 {
                let other = &other[..n];
                running_sums(own, other, &mut left[..=n], &mut right[..=n]);
                let half = 0.5 / n as f64;
                let slope = 0.5 * inverse / n as f64;
                // Seven roundings on the longest paths: product, sum, sum, `half`, product, sum; and running sum, sum,
                // `inverse`, `slope`, product, sum, sum.
                for (next, (left, right)) in next.iter_mut().zip(left.iter().zip(&right)) {
                    *next = (left + right) * slope + constant;
                }
                next[0] += (own[0] + other[0]) * 0.5;
                next[n] += (own[n - 1] + other[n - 1]) * 0.5;
                let pairs = own.windows(2).zip(other.windows(2));
                for (i, (next, (own, other))) in (1..n).zip(next[1..n].iter_mut().zip(pairs)) {
                    let (i, rest) = (i as f64, (n - i) as f64);
                    let raised = (i * own[0] + rest * own[1]) + (i * other[0] + rest * other[1]);
                    *next += raised * half;
                }
            } else {
                next[0] = constant;
            }
            std::mem::swap(&mut other, &mut other_next);
        }
        let coefficients = coefficients[count * (count - 1) / 2..].to_vec();
        self.cells.push(Cell {
            atom: atoms[count],
            mass: dot(&coefficients, &self.whole.mass),
            rest: dot(&coefficients, &self.whole.rest),
            coefficients,
        });
    }

    /// The places `z` below and above that of an epsilon which is not negative.
    fn places(&self, epsilon: f64) -> (f64, f64) {
        let count = self.count as f64;
        // `k - εb = y b`, rounded once; its sign is right.
        let rest = libm::fma(-epsilon, self.scale, count);
        if rest <= 0.0 {
            return (0.0, 0.0);
        }
        let (low, high) = if epsilon == 0.0 {
            (rest, rest)
        } else {
            (rest.next_down(), rest.next_up().min(count))
        };
        if self.cell_scale == self.scale {
            return (low / 2.0, high / 2.0);
        }
        // A power of two, so these products are exact.
        let half = self.cell_scale / 2.0;
        (
            round::div_down(low * half, self.scale),
            round::div_up(high * half, self.scale),
        )
    }
}

impl Curve for LaplaceSum {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        if epsilon < 0.0 {
            let exponent = Bracket::exact(epsilon);
            let mirrored = self.delta(-epsilon);
            return (exponent.exp() * mirrored - exponent.exp_m1()).clamp(0.0, 1.0);
        }
        if epsilon.is_nan() {
            return Bracket::new(0.0, 1.0);
        }
        // `δ` grows with the place.
        let (near, far) = self.places(epsilon);
        if far <= 0.0 {
            return Bracket::ZERO;
        }
        let upper = self.at(far);
        let lower = if near == far { upper } else { self.at(near) };
        Bracket::new(lower.lower(), upper.upper())
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn epsilon_max(&self) -> Option<f64> {
        let most = round::div_up(self.count as f64, self.scale);
        most.is_finite().then_some(most)
    }

    /// Between the ends of the cell where `δ` is passed, `ln δ` is nearly straight.
    fn guess(&mut self, delta: f64) -> f64 {
        let most = self.count as f64 / self.scale;
        if delta.is_nan() || delta <= 0.0 {
            return most;
        }
        let last = self.places(0.0).0;
        let (mut place, mut before) = (0.0, 0.0);
        while place < last && (place < 1.0 || self.cell_scale == self.scale) {
            let next = (place + 1.0).min(last);
            let found = self.at(next).estimate();
            if found > delta {
                let share = if before > 0.0 {
                    libm::log(delta / before) / libm::log(found / before)
                } else {
                    delta / found
                };
                place += share * (next - place);
                return (most - 2.0 * place / self.cell_scale).max(0.0);
            }
            (place, before) = (next, found);
        }
        (most - 2.0 * place / self.cell_scale).max(0.0)
    }
}

/// `μ_i` and `ρ_i` for a piece of length `h = part` of a cell, `x = part/scale`, in degree `count - 1`.
#[derive(Clone, Debug)]
struct Weights {
    mass: Vec<f64>,
    rest: Vec<f64>,
    terms: usize,
}

impl Weights {
    /// Roundings: one in `T_0`, four in each further ratio (`x`, quotient, two products), one for each sum, seven for the
    /// factor `e^-x`, one for what is left out.
    fn new(count: usize, part: f64, scale: f64) -> Self {
        let x = part / scale;
        let mut term = vec![1.0 / count as f64; count];
        let (mut even, mut odd) = (term.clone(), vec![0.0; count]);
        // `T_p/T_0 <= x^p/p!` and `T_p/T_1 <= x^(p-1)/p!`; from the place where they halve and are below `2^-60`, all
        // further ones together are below `2^-59` of what is kept. At most `e·x + 60` terms.
        let (mut bound, mut p) = (1.0, 0_usize);
        while p < 2 || (p as f64) < 2.0 * x || bound * x.max(1.0) > f64::EPSILON / 256.0 {
            let ratio = x / ((p + 1) * (count + p + 1)) as f64;
            let sum = if p % 2 == 0 { &mut odd } else { &mut even };
            for (i, (term, sum)) in term.iter_mut().zip(sum).enumerate() {
                *term *= ratio * (count + p - i) as f64;
                *sum += *term;
            }
            p += 1;
            if p > 1 {
                bound *= x / p as f64;
            }
        }
        let decay = exp_minus(part, scale);
        let mass = even.iter().zip(&odd).map(|(e, o)| (e + o) * decay);
        Self {
            mass: mass.collect(),
            rest: odd.iter().map(|o| 2.0 * decay * o).collect(),
            terms: p,
        }
    }
}

/// `e^(-part/scale)` for a quotient of at most 512, with six roundings: the quotient's own is known and taken back to first
/// order, which leaves less than `2^-87`; then `exp` (four, as for `fall`), a sum and a product.
fn exp_minus(part: f64, scale: f64) -> f64 {
    let x = part / scale;
    let left = libm::fma(-x, scale, part) / scale;
    libm::exp(-x) * (1.0 - left)
}

/// De Casteljau's coefficients of the piece `(0, part)`: three roundings per degree.
fn subdivide(coefficients: &[f64], part: f64) -> Vec<f64> {
    let complement = 1.0 - part;
    let mut row = coefficients.to_vec();
    let mut piece = Vec::with_capacity(row.len());
    for length in (1..=coefficients.len()).rev() {
        piece.push(row[0]);
        for i in 1..length {
            row[i - 1] = complement * row[i - 1] + part * row[i];
        }
    }
    piece
}

/// `left[i]` sums `own` before `i`, `right[i]` sums `other` from `i` on.
fn running_sums(own: &[f64], other: &[f64], left: &mut [f64], right: &mut [f64]) {
    let n = own.len();
    // Two at a time, since each waits for the one before.
    let mut sum = Sum::<2>::default();
    left[0] = 0.0;
    right[n] = 0.0;
    for i in 0..n {
        sum.add([own[i], other[n - 1 - i]]);
        [left[i + 1], right[n - 1 - i]] = sum.value();
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sum = Sum::default();
    left.iter().zip(right).for_each(|(l, r)| sum.add([l * r]));
    let [value] = sum.value();
    value
}

/// Sums, side by side, of numbers that are not negative, with one rounding in all: the error of each addition is exact
/// (Knuth), and adding up `m` of them errs by `m² 2^-106` at most.
#[derive(Clone, Copy)]
struct Sum<const N: usize> {
    high: [f64; N],
    low: [f64; N],
}

impl<const N: usize> Default for Sum<N> {
    fn default() -> Self {
        Self {
            high: [0.0; N],
            low: [0.0; N],
        }
    }
}

impl<const N: usize> Sum<N> {
    #[inline(always)]
    fn add(&mut self, values: [f64; N]) {
        for (lane, value) in values.into_iter().enumerate() {
            let high = self.high[lane];
            let sum = high + value;
            let virtual_value = sum - high;
            self.low[lane] += (high - (sum - virtual_value)) + (value - virtual_value);
            self.high[lane] = sum;
        }
    }

    #[inline(always)]
    fn value(&self) -> [f64; N] {
        std::array::from_fn(|lane| self.high[lane] + self.low[lane])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve;

    fn sum(scale: f64, count: u64) -> LaplaceSum {
        LaplaceSum::new(scale, count).expect("in range")
    }

    /// The wanted number is a decimal rounded to a float, so next to the bracket is enough.
    fn holds(found: Bracket, wanted: f64) -> bool {
        found.lower() <= wanted.next_up() && wanted.next_down() <= found.upper()
    }

    /// Exact residue sums in mpmath.
    #[test]
    fn epsilons_at_a_delta() {
        let check = |scale, count, delta: f64, wanted: f64| {
            let found = curve::epsilon(&mut sum(scale, count), delta);
            assert!(holds(found, wanted), "{scale} {count}: {found:?} {wanted}");
            let width = found.relative_width();
            assert!(width < 2e-13, "{scale} {count}: {width:e}");
        };
        check(1.0, 1, 1e-3, 0.997_998_999_332_833);
        check(2.0, 8, 1e-5, 3.997_449_761_104_551_6);
        check(5.0, 32, 1e-8, 5.732_744_925_641_575);
        check(10.0, 100, 1e-6, 4.692_667_414_680_189);
        check(20.0, 512, 1e-5, 4.986_458_909_916_051);
    }

    /// Exact residue sums in mpmath, at 1500 digits.
    #[test]
    fn deltas_at_an_epsilon() {
        let check = |scale, count, epsilon, wanted: f64| {
            let found = sum(scale, count).delta(epsilon);
            assert!(
                holds(found, wanted),
                "{scale} {count} {epsilon}: {found:?} {wanted}"
            );
            assert!(
                found.relative_width() < 1e-12,
                "{scale} {count}: {:e}",
                found.relative_width()
            );
        };
        check(4.0, 16, 1.5, 0.045_270_223_274_007_73);
        check(20.0, 256, 3.7, 1.220_853_427_184_817_3e-6);
        check(20.0, 256, 0.0, 0.308_515_940_205_203_4);
        check(3.0, 200, 30.0, 8.377_760_320_895_264e-7);
        check(0.5, 150, 280.0, 3.985_727_714_777_305_3e-20);
        check(0.001, 10, 9990.0, 0.482_791_420_015_794_17);
        check(0.001, 1, 999.5, 0.221_199_216_928_587_02);
        check(1e6, 50, 1e-5, 2.425_819_351_573_306e-7);
        check(1e20, 64, 1e-19, 3.959_850_721_503_103e-21);
        check(0.05, 20, 390.0, 0.058_318_847_789_764_42);
        check(2.0, 100, 49.5, 1.515_099_157_994_240_8e-28);
    }

    /// `1 - e^((ε-a)/2)`, and for two with `y = 2a - ε < 2a` by integrating the three parts of the law of `D`:
    /// `(1 - e^-y)/4 + (1 - e^(-y/2))²/2 + (1 - y e^(-y/2) - e^-y)/4`.
    #[test]
    fn one_and_two_in_closed_form() {
        for scale in [1e-300, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e100, SCALE_MAX] {
            for share in [0.0, 1e-9, 0.2, 0.5, 0.999] {
                let inverse = Bracket::exact(1.0) / Bracket::exact(scale);
                let epsilon = share * inverse.estimate();
                let deficit = inverse - Bracket::exact(epsilon);
                let one = -(Bracket::exact(-0.5) * deficit).exp_m1();
                let found = sum(scale, 1).delta(epsilon);
                assert_eq!(found.meet(one).hull(found), found, "{scale} {share}");
                assert!(found.upper() >= one.lower() && found.lower() <= one.upper());
            }
        }
        for scale in [0.1, 0.7, 1.0, 12.0] {
            for share in [0.01, 0.3, 0.8] {
                let y: f64 = 2.0 * share / scale;
                let (half, full) = ((-y / 2.0).exp(), (-y).exp());
                let two = (1.0 - full) / 4.0
                    + (1.0 - half) * (1.0 - half) / 2.0
                    + (1.0 - y * half - full) / 4.0;
                let found = sum(scale, 2).delta(2.0 / scale - y).estimate();
                assert!((found / two - 1.0).abs() < 1e-12, "{scale} {share}");
            }
        }
    }

    /// `δ_{k+1}(ε) = E[δ_k(ε - L)]` with the law of one loss, by Simpson's rule between the corners of `δ_k`.
    #[test]
    fn one_more_is_an_expectation() {
        for (scale, count) in [(1.0, 1), (0.4, 2), (5.0, 3), (2.0, 6)] {
            let a = 1.0 / scale;
            let (mut fewer, mut more) = (sum(scale, count), sum(scale, count + 1));
            for share in [-0.4, 0.0, 0.1, 0.35, 0.7, 0.95] {
                let epsilon = share * a * (count + 1) as f64;
                let mut at = |loss: f64| fewer.delta(epsilon - loss).estimate();
                let atoms = (at(a) + (-a).exp() * at(-a)) / 2.0;
                // `ε - a(1-2x)` meets the corner `a(2j-k)` at one place `x` of the unit interval.
                let corner =
                    (-(share * (count + 1) as f64 - 1.0 + count as f64) / 2.0).rem_euclid(1.0);
                let mut density = |x: f64| a / 2.0 * (-a * x).exp() * at(a * (1.0 - 2.0 * x));
                let mut simpson = |from: f64, to: f64| {
                    let step = (to - from) / 400.0;
                    let nodes = (0..=400).map(|node| {
                        let weight = match node {
                            0 | 400 => 1.0,
                            _ if node % 2 == 1 => 4.0,
                            _ => 2.0,
                        };
                        weight * density(from + step * f64::from(node))
                    });
                    nodes.sum::<f64>() * step / 3.0
                };
                let wanted = atoms + simpson(0.0, corner) + simpson(corner, 1.0);
                let found = more.delta(epsilon).estimate();
                assert!(
                    (found / wanted - 1.0).abs() < 1e-9,
                    "{scale} {count} {share}: {found} {wanted}"
                );
            }
        }
    }

    #[test]
    fn ends_are_exact() {
        let mut curve = sum(3.0, 7);
        let most = curve.epsilon_max().expect("finite");
        assert!(most >= 7.0 / 3.0 && most <= (7.0_f64 / 3.0).next_up());
        assert_eq!(curve.delta(most), Bracket::ZERO);
        assert_eq!(curve.delta(f64::INFINITY), Bracket::ZERO);
        assert!(curve.delta(most.next_down().next_down()).lower() > 0.0);
        assert!(curve.delta(f64::NEG_INFINITY).holds(1.0));
        assert_eq!(curve::epsilon(&mut curve, 0.0).upper(), most);
        for delta in [1e-300, 1e-30] {
            let found = curve::epsilon(&mut curve, delta);
            assert!(found.upper() <= most && found.lower() >= most * (1.0 - 1e-15));
        }
        // Beyond the total variation nothing is spent.
        assert_eq!(curve::epsilon(&mut curve, 0.9), Bracket::ZERO);
    }

    #[test]
    fn grows_with_the_loss_and_stays_a_probability() {
        for scale in [
            5e-324,
            1e-300,
            1e-3,
            1.0 / 300.0,
            0.02,
            1.0,
            50.0,
            1e10,
            SCALE_MAX,
        ] {
            let curves = [1, 2, 3, 30, 77].map(|count| sum(scale, count));
            let mut fewer = [0.0_f64; 8];
            for mut curve in curves {
                let most = curve.count as f64 / scale;
                let mut last = Bracket::exact(1.0);
                for (step, fewer) in fewer.iter_mut().enumerate() {
                    let epsilon = match step {
                        0 => -1.0,
                        1 => 0.0,
                        _ => most.min(f64::MAX) * (1.0 - 4_f64.powi(3 - step as i32 * 2)),
                    };
                    let found = curve.delta(epsilon);
                    assert!(0.0 <= found.lower() && found.upper() <= 1.0);
                    assert!(found.lower() <= last.upper(), "{scale} {epsilon}");
                    assert!(found.relative_width() < 2e-12 || found.upper() < 1e-300);
                    last = found;
                    // At a fixed epsilon more mechanisms leak more.
                    if step < 2 {
                        assert!(found.upper() >= *fewer);
                        *fewer = found.lower();
                    }
                }
                let small = curve::epsilon(&mut curve, 1e-300);
                assert!(small.lower() > 0.0 && small.upper() >= small.lower());
            }
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for (scale, count) in [
            (1.0, 0),
            (1.0, 1 << 53),
            (0.0, 1),
            (f64::NAN, 1),
            (1e200, 1),
        ] {
            assert!(LaplaceSum::new(scale, count).is_none());
        }
    }
}
