//! # A Fourier transform with a bound of its round-off
//! **Transform.** Radix 4, decimation in frequency forward (natural to bit-reversed order) and in time backward, so that
//! nothing is ever reordered. The frequencies `k` and `N-k` are at the places `2^m + i` and `2^m + (2^m - 1 - i)`.
//!
//! **Round-off.** Let `u = 2^-53`. Every intermediate value is a sum of some of the inputs, each times a number of modulus 1.
//! *Claim:* after `s` passes the value differs from the true one by at most `((1+η)^s - 1) Σ|x_i|` over these inputs. A pass
//! takes sums of four values, in two additions, and multiplies by one root of unity: each addition errs by `u` of the
//! result, a complex product by `√5 u` [BPZ07, Thm 1], and a tabulated root by at most `11u` (below). So the error of one
//! pass, relative to the sum of the moduli, is below `η = (1+u)²(1+√5u)(1+11u) - 1 < 16u`; the induction step is the
//! triangle inequality. Every output is thus within `γ ‖x‖₁` of the truth, `γ = (1+16u)^s - 1`. For masses, which add up to
//! one, this is better than the bound in the Euclidean norm [Hig02, Thm 24.2].
//!
//! **Roots.** `e^(-2πi m/N)` is the product of a coarse and a fine root, each from sine and cosine of an angle in
//! `[0, π/4]` (errors: `2u` of the angle, below 1, and one unit in the last place each, together below `4u`), so it errs by
//! less than `(1+4u)²(1+√5u) - 1 < 11u`.
//!
//! The code is ours because the bound is about the code: each of its operations is one of those counted here.

/// `u`, the relative error of one rounding.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;
/// What one pass adds to the relative error: see the module's documentation.
const PASS_ERROR: f64 = 16.0 * UNIT;

/// A complex product, rounded.
pub(crate) fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Where the frequencies `k` and `N - k` are, for the pair with this number.
pub(crate) fn places(pair: usize) -> (usize, usize) {
    if pair < 2 {
        // 0 and N/2 are their own mirrors.
        return (pair, pair);
    }
    // Pairs 2^m/2 + 1 … 2^m belong to the block from 2^m on.
    let block = (pair - 1).ilog2() + 1;
    let start = 1_usize << block;
    let offset = pair - 1 - start / 2;
    (start + offset, 2 * start - 1 - offset)
}

/// The roots of unity for one pass: `w^j`, `w^(2j)`, `w^(3j)`.
struct Roots {
    re: [Vec<f64>; 3],
    im: [Vec<f64>; 3],
}

/// A transform of one size.
pub(crate) struct Plan {
    size: usize,
    levels: Vec<Roots>,
}

/// Blocks up to this many places are done pass by pass; larger ones depth first, to stay in the cache.
const BLOCK: usize = 4096;

impl Plan {
    /// A power of two, of at least 4.
    pub(crate) fn new(size: usize) -> Self {
        assert!(
            size.is_power_of_two() && size >= 4,
            "sizes are powers of two"
        );
        let table = RootTable::new(size);
        let mut levels: Vec<Roots> = Vec::new();
        let mut length = size;
        while length >= 4 {
            let quarter = length / 4;
            let roots = match levels.last() {
                None => Roots::new(&table, quarter),
                // w_(N/4)^j = w_N^(4j).
                Some(above) => above.thinned(quarter),
            };
            levels.push(roots);
            length /= 4;
        }
        Self { size, levels }
    }

    /// `γ`: one pass per level, one of radix 2 at odd powers.
    pub(crate) fn error(&self) -> f64 {
        ((self.levels.len() + 1) as f64 * PASS_ERROR).exp_m1() * (1.0 + 1e-9)
    }

    /// To bit-reversed order.
    pub(crate) fn forward(&self, re: &mut [f64], im: &mut [f64]) {
        debug_assert_eq!(re.len(), self.size);
        self.forward_from(0, re, im);
    }

    fn forward_from(&self, level: usize, re: &mut [f64], im: &mut [f64]) {
        let length = re.len();
        if length > BLOCK {
            forward_pass(&self.levels[level], re, im);
            let quarter = length / 4;
            for (re, im) in re
                .chunks_exact_mut(quarter)
                .zip(im.chunks_exact_mut(quarter))
            {
                self.forward_from(level + 1, re, im);
            }
            return;
        }
        let mut length = length;
        for roots in &self.levels[level..] {
            for (re, im) in re.chunks_exact_mut(length).zip(im.chunks_exact_mut(length)) {
                forward_pass(roots, re, im);
            }
            length /= 4;
        }
        if length == 2 {
            pass_of_two(re);
            pass_of_two(im);
        }
    }

    /// Back, times the size.
    pub(crate) fn backward(&self, re: &mut [f64], im: &mut [f64]) {
        debug_assert_eq!(re.len(), self.size);
        self.backward_from(0, re, im);
    }

    fn backward_from(&self, level: usize, re: &mut [f64], im: &mut [f64]) {
        let whole = re.len();
        if whole > BLOCK {
            let quarter = whole / 4;
            for (re, im) in re
                .chunks_exact_mut(quarter)
                .zip(im.chunks_exact_mut(quarter))
            {
                self.backward_from(level + 1, re, im);
            }
            backward_pass(&self.levels[level], re, im);
            return;
        }
        let mut length = whole >> (2 * (self.levels.len() - level));
        if length == 2 {
            pass_of_two(re);
            pass_of_two(im);
        }
        for roots in self.levels[level..].iter().rev() {
            length *= 4;
            for (re, im) in re.chunks_exact_mut(length).zip(im.chunks_exact_mut(length)) {
                backward_pass(roots, re, im);
            }
        }
    }
}

fn pass_of_two(values: &mut [f64]) {
    for pair in values.chunks_exact_mut(2) {
        (pair[0], pair[1]) = (pair[0] + pair[1], pair[0] - pair[1]);
    }
}

/// The four quarters of a slice.
fn quarters(values: &mut [f64]) -> [&mut [f64]; 4] {
    let (front, back) = values.split_at_mut(values.len() / 2);
    let (a, b) = front.split_at_mut(front.len() / 2);
    let (c, d) = back.split_at_mut(back.len() / 2);
    [a, b, c, d]
}

fn forward_pass(roots: &Roots, re: &mut [f64], im: &mut [f64]) {
    let n = re.len() / 4;
    let [a, b, c, d] = quarters(re).map(|part| &mut part[..n]);
    let [a_im, b_im, c_im, d_im] = quarters(im).map(|part| &mut part[..n]);
    let [w, w_two, w_three] = [0, 1, 2].map(|power| &roots.re[power][..n]);
    let [v, v_two, v_three] = [0, 1, 2].map(|power| &roots.im[power][..n]);
    for j in 0..n {
        let (even, even_im) = (a[j] + c[j], a_im[j] + c_im[j]);
        let (odd, odd_im) = (a[j] - c[j], a_im[j] - c_im[j]);
        let (sum, sum_im) = (b[j] + d[j], b_im[j] + d_im[j]);
        // -i (b - d).
        let (turned, turned_im) = (b_im[j] - d_im[j], d[j] - b[j]);
        (a[j], a_im[j]) = (even + sum, even_im + sum_im);
        let two = (even - sum, even_im - sum_im);
        (b[j], b_im[j]) = product(two, (w_two[j], v_two[j]));
        let one = (odd + turned, odd_im + turned_im);
        (c[j], c_im[j]) = product(one, (w[j], v[j]));
        let three = (odd - turned, odd_im - turned_im);
        (d[j], d_im[j]) = product(three, (w_three[j], v_three[j]));
    }
}

fn backward_pass(roots: &Roots, re: &mut [f64], im: &mut [f64]) {
    let n = re.len() / 4;
    let [a, b, c, d] = quarters(re).map(|part| &mut part[..n]);
    let [a_im, b_im, c_im, d_im] = quarters(im).map(|part| &mut part[..n]);
    let [w, w_two, w_three] = [0, 1, 2].map(|power| &roots.re[power][..n]);
    let [v, v_two, v_three] = [0, 1, 2].map(|power| &roots.im[power][..n]);
    for j in 0..n {
        let two = product((b[j], b_im[j]), (w_two[j], -v_two[j]));
        let one = product((c[j], c_im[j]), (w[j], -v[j]));
        let three = product((d[j], d_im[j]), (w_three[j], -v_three[j]));
        let (even, even_im) = (a[j] + two.0, a_im[j] + two.1);
        let (sum, sum_im) = (a[j] - two.0, a_im[j] - two.1);
        let (odd, odd_im) = (one.0 + three.0, one.1 + three.1);
        // i (one - three).
        let (turned, turned_im) = (three.1 - one.1, one.0 - three.0);
        (a[j], a_im[j]) = (even + odd, even_im + odd_im);
        (c[j], c_im[j]) = (even - odd, even_im - odd_im);
        (b[j], b_im[j]) = (sum + turned, sum_im + turned_im);
        (d[j], d_im[j]) = (sum - turned, sum_im - turned_im);
    }
}

impl Roots {
    fn new(table: &RootTable, quarter: usize) -> Self {
        let all = |power: usize| -> (Vec<f64>, Vec<f64>) {
            (0..quarter).map(|j| table.root(power * j)).unzip()
        };
        let [(a, b), (c, d), (e, f)] = [1, 2, 3].map(all);
        Self {
            re: [a, c, e],
            im: [b, d, f],
        }
    }

    fn thinned(&self, quarter: usize) -> Self {
        let thin = |values: &Vec<f64>| values.iter().step_by(4).take(quarter).copied().collect();
        Self {
            re: self.re.each_ref().map(thin),
            im: self.im.each_ref().map(thin),
        }
    }
}

/// `e^(-2πi m/N)` as products of two tabulated roots, each within `11u`.
pub(crate) struct RootTable {
    shift: u32,
    coarse: Vec<(f64, f64)>,
    fine: Vec<(f64, f64)>,
}

impl RootTable {
    /// Of a power of two.
    pub(crate) fn new(size: usize) -> Self {
        let shift = size.ilog2() / 2;
        let fine_size = 1 << shift;
        Self {
            shift,
            coarse: (0..size >> shift).map(|m| root(m << shift, size)).collect(),
            fine: (0..fine_size).map(|m| root(m, size)).collect(),
        }
    }

    /// For `0 <= m < N`.
    pub(crate) fn root(&self, m: usize) -> (f64, f64) {
        let fine = m & ((1 << self.shift) - 1);
        product(self.coarse[m >> self.shift], self.fine[fine])
    }
}

/// `e^(-2πi m/N)` for `0 <= m < N`, from an angle of at most an eighth of the circle.
fn root(m: usize, size: usize) -> (f64, f64) {
    // In units of 1/(8N) of the circle everything is an integer.
    let (octant, rest) = ((8 * m) / size, (8 * m) % size);
    let inner = if octant % 2 == 0 { rest } else { size - rest };
    // At most a quarter of π; the quotient by a power of two is exact.
    let (sin, cos) = libm::sincos(std::f64::consts::FRAC_PI_4 * (inner as f64 / size as f64));
    let (x, y) = match octant {
        0 => (cos, sin),
        1 => (sin, cos),
        2 => (-sin, cos),
        3 => (-cos, sin),
        4 => (-cos, -sin),
        5 => (-sin, -cos),
        6 => (sin, -cos),
        _ => (cos, -sin),
    };
    (x, -y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_roots() {
        for bits in 2..16 {
            let size = 1 << bits;
            let table = RootTable::new(size);
            for m in (0..size).step_by((size / 64).max(1)) {
                let (x, y) = table.root(m);
                let angle = std::f64::consts::TAU * m as f64 / size as f64;
                assert!((x - angle.cos()).abs() < 1e-15 && (y + angle.sin()).abs() < 1e-15);
            }
        }
        assert_eq!(root(2, 8), (0.0, -1.0));
    }

    #[test]
    fn every_frequency_has_its_mirror() {
        for bits in 2..12 {
            let size = 1_usize << bits;
            let mut seen = vec![false; size];
            for pair in 0..=size / 2 {
                let (at, mirror) = places(pair);
                let reversed = |place: usize| place.reverse_bits() >> (usize::BITS - bits);
                assert_eq!((reversed(at) + reversed(mirror)) % size, 0);
                seen[at] = true;
                seen[mirror] = true;
            }
            assert!(seen.iter().all(|seen| *seen));
        }
    }

    #[test]
    fn there_and_back_is_times_the_size() {
        for bits in 2..14 {
            let size = 1_usize << bits;
            let plan = Plan::new(size);
            let start: Vec<f64> = (0..size).map(|i| 1.0 / (1.0 + i as f64)).collect();
            let (mut re, mut im) = (start.clone(), vec![0.0; size]);
            plan.forward(&mut re, &mut im);
            let sum: f64 = start.iter().sum();
            assert!((re[0] - sum).abs() <= plan.error() * sum);
            plan.backward(&mut re, &mut im);
            for ((re, im), start) in re.iter().zip(&im).zip(&start) {
                assert!((re / size as f64 - start).abs() < 1e-14 && im.abs() < 1e-10);
            }
        }
    }
}
