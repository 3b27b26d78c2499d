//! Fourier transforms of short sides, of as many pictures at once as a vector has lanes.
//!
//! **Method.** [Goo58]: if `n = n1 n2` with coprime factors, input `(n2 i1 + n1 i2) mod n` and the output `k` with `k = k1 mod n1`
//! and `k = k2 mod n2` make a transform of length `n` into one of `n1` times `n2`, since `ω_n^((n2 i1 + n1 i2) k) = ω_n1^(i1 k1) ω_n2^(i2 k2)`. No
//! twiddles are needed between the factors, and both orders are tables of places. The inverse is the forward one read from its other end: `x` at `-k`.
//! Neither divides by `n`.

use pulp::{Simd, WithSimd};

use super::filter::turn;

/// Real and imaginary parts, one lane for each picture.
pub(super) type Complex<S> = [<S as Simd>::f32s; 2];

/// Which sign the exponent has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    Forward,
    Inverse,
}

/// A transform of one length, from entries that are `stride` apart to adjacent ones.
pub(super) struct Fourier {
    passes: Vec<Pass>,
    len: usize,
}

/// The transforms along one factor.
struct Pass {
    factor: usize,
    /// Places of entries before and after, one transform after the other.
    from: Vec<u32>,
    to: Vec<u32>,
    /// For factors without a kernel of their own: cosine and minus sine of each part of a turn.
    turns: Vec<[f32; 2]>,
}

impl Fourier {
    pub(super) fn new(len: usize, direction: Direction, stride: usize) -> Self {
        let factors = coprime(len);
        let last = factors.len() - 1;
        // Between the first pass and the last, entries stand in the order of their places along each factor, the first varying slowest.
        let passes = factors.iter().enumerate().map(|(number, &factor)| {
            let inner: usize = factors[number + 1..].iter().product();
            let starts = (0..len).filter(|at| (at / inner).is_multiple_of(factor));
            let places: Vec<usize> = starts
                .flat_map(|start| (0..factor).map(move |j| start + j * inner))
                .collect();
            let from = |&place: &usize| match number {
                0 => stride * input(place, &factors),
                _ => place,
            };
            let to = |&place: &usize| match (number == last, direction) {
                (false, _) => place,
                (true, Direction::Forward) => output(place, &factors),
                (true, Direction::Inverse) => (len - output(place, &factors)) % len,
            };
            Pass {
                factor,
                from: places.iter().map(|place| from(place) as u32).collect(),
                to: places.iter().map(|place| to(place) as u32).collect(),
                turns: (0..factor)
                    .map(|at| turn(at, factor))
                    .map(|(cos, sin)| [cos as f32, -sin as f32])
                    .collect(),
            }
        });
        Self {
            passes: passes.collect(),
            len,
        }
    }

    /// All but the last pass: from `x` to `scratch`, which has room for two. Returns which half of it holds the result.
    #[inline(always)]
    fn begin<S: Simd>(&self, simd: S, x: &[Complex<S>], scratch: &mut [Complex<S>]) -> bool {
        let (left, right) = scratch.split_at_mut(self.len);
        let mut in_right = false;
        for (number, pass) in self.passes[..self.passes.len() - 1].iter().enumerate() {
            match (number, in_right) {
                (0, _) => pass.run(simd, x, right),
                (_, true) => pass.run(simd, right, left),
                (_, false) => pass.run(simd, left, right),
            }
            in_right = !in_right;
        }
        in_right
    }

    /// From `x` to the first entries of `out`.
    #[inline(always)]
    pub(super) fn run<S: Simd>(
        &self,
        simd: S,
        x: &[Complex<S>],
        out: &mut [Complex<S>],
        scratch: &mut [Complex<S>],
    ) {
        let last = &self.passes[self.passes.len() - 1];
        if self.passes.len() == 1 {
            return last.run(simd, x, out);
        }
        let in_right = self.begin(simd, x, scratch);
        last.run(simd, half(scratch, self.len, in_right), out);
    }

    /// The same in place, for a stride of 1.
    #[inline(always)]
    pub(super) fn run_in_place<S: Simd>(
        &self,
        simd: S,
        x: &mut [Complex<S>],
        scratch: &mut [Complex<S>],
    ) {
        let last = &self.passes[self.passes.len() - 1];
        if self.passes.len() == 1 {
            last.run(simd, x, scratch);
            return x[..self.len].copy_from_slice(&scratch[..self.len]);
        }
        let in_right = self.begin(simd, x, scratch);
        last.run(simd, half(scratch, self.len, in_right), x);
    }
}

#[inline(always)]
fn half<T>(scratch: &[T], len: usize, right: bool) -> &[T] {
    &scratch[if right { len } else { 0 }..][..len]
}

/// The entries at these places, one by one: a loop over them goes through memory.
macro_rules! entries {
    ($x:ident[$places:ident] $($number:literal)*) => {
        [$($x[$places[$number] as usize]),*]
    };
}

impl Pass {
    /// Compiled once, for all who call it.
    #[inline(always)]
    fn run<S: Simd>(&self, simd: S, x: &[Complex<S>], out: &mut [Complex<S>]) {
        apart(
            simd,
            #[inline(always)]
            || match self.factor {
                2 => self.each(x, out, |x, at| two(simd, entries!(x[at] 0 1))),
                3 => self.each(x, out, |x, at| three(simd, entries!(x[at] 0 1 2))),
                4 => self.each(x, out, |x, at| four(simd, entries!(x[at] 0 1 2 3))),
                5 => self.each(x, out, |x, at| five(simd, entries!(x[at] 0 1 2 3 4))),
                8 => self.each(x, out, |x, at| eight(simd, entries!(x[at] 0 1 2 3 4 5 6 7))),
                9 => self.each(x, out, |x, at| {
                    nine(simd, entries!(x[at] 0 1 2 3 4 5 6 7 8))
                }),
                _ => self.by_definition(simd, x, out),
            },
        );
    }

    #[inline(always)]
    fn each<T: Copy, const N: usize>(
        &self,
        x: &[T],
        out: &mut [T],
        kernel: impl Fn(&[T], &[u32; N]) -> [T; N],
    ) {
        let (from, to) = (self.from.as_chunks::<N>().0, self.to.as_chunks::<N>().0);
        for (from, to) in from.iter().zip(to) {
            let y = kernel(x, from);
            for (&place, y) in to.iter().zip(y) {
                out[place as usize] = y;
            }
        }
    }

    /// For other factors: as many multiplications as the square of the factor.
    #[inline(always)]
    fn by_definition<S: Simd>(&self, simd: S, x: &[Complex<S>], out: &mut [Complex<S>]) {
        let transforms = self.from.chunks_exact(self.factor);
        for (from, to) in transforms.zip(self.to.chunks_exact(self.factor)) {
            for (k, &to) in to.iter().enumerate() {
                let mut sum = x[from[0] as usize];
                let mut angle = 0;
                for &from in &from[1..] {
                    angle = (angle + k) % self.factor;
                    let [cos, sin] = self.turns[angle];
                    let (cos, sin) = (simd.splat_f32s(cos), simd.splat_f32s(sin));
                    let x = x[from as usize];
                    sum[0] = simd.mul_add_e_f32s(cos, x[0], sum[0]);
                    sum[0] = simd.negate_mul_add_e_f32s(sin, x[1], sum[0]);
                    sum[1] = simd.mul_add_e_f32s(cos, x[1], sum[1]);
                    sum[1] = simd.mul_add_e_f32s(sin, x[0], sum[1]);
                }
                out[to as usize] = sum;
            }
        }
    }
}

/// Runs `body`, which must be `#[inline(always)]`, in a function of its own that is compiled for the machine at hand: what calls it is shorter
/// by that.
#[inline(always)]
pub(super) fn apart<S: Simd, R>(simd: S, body: impl FnOnce() -> R) -> R {
    struct Run<F>(F);
    impl<R, F: FnOnce() -> R> WithSimd for Run<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) -> R {
            (self.0)()
        }
    }
    simd.vectorize(Run(body))
}

/// The powers of primes whose product is `len`, or 1 alone.
fn coprime(len: usize) -> Vec<usize> {
    let (mut rest, mut factors) = (len, Vec::new());
    let mut prime = 2;
    while rest > 1 {
        let mut factor = 1;
        while rest.is_multiple_of(prime) {
            (factor, rest) = (factor * prime, rest / prime);
        }
        if factor > 1 {
            factors.push(factor);
        }
        prime += 1;
    }
    if factors.is_empty() {
        factors.push(1);
    }
    factors
}

/// The entry that stands at this place, whose digits in these factors are `i1, i2, …`: `Σ i_f n/n_f mod n`.
fn input(place: usize, factors: &[usize]) -> usize {
    let len: usize = factors.iter().product();
    let mut inner = len;
    let terms = factors.iter().map(|factor| {
        inner /= factor;
        (place / inner) % factor * (len / factor)
    });
    terms.sum::<usize>() % len
}

/// The output that comes out at this place: the one with these remainders.
fn output(place: usize, factors: &[usize]) -> usize {
    let len: usize = factors.iter().product();
    let fits = |k: &usize| {
        let mut inner = len;
        factors.iter().all(|factor| {
            inner /= factor;
            (place / inner) % factor == k % factor
        })
    };
    (0..len).find(fits).expect("remainders of coprime factors")
}

#[inline(always)]
fn add<S: Simd>(simd: S, a: Complex<S>, b: Complex<S>) -> Complex<S> {
    [simd.add_f32s(a[0], b[0]), simd.add_f32s(a[1], b[1])]
}

#[inline(always)]
fn sub<S: Simd>(simd: S, a: Complex<S>, b: Complex<S>) -> Complex<S> {
    [simd.sub_f32s(a[0], b[0]), simd.sub_f32s(a[1], b[1])]
}

/// `a + f b` for a real `f`.
#[inline(always)]
fn add_scaled<S: Simd>(simd: S, a: Complex<S>, f: S::f32s, b: Complex<S>) -> Complex<S> {
    [
        simd.mul_add_e_f32s(f, b[0], a[0]),
        simd.mul_add_e_f32s(f, b[1], a[1]),
    ]
}

/// `a - i f b` and `a + i f b` for a real `f`.
#[inline(always)]
fn turned<S: Simd>(simd: S, a: Complex<S>, f: S::f32s, b: Complex<S>) -> [Complex<S>; 2] {
    [
        [
            simd.mul_add_e_f32s(f, b[1], a[0]),
            simd.negate_mul_add_e_f32s(f, b[0], a[1]),
        ],
        [
            simd.negate_mul_add_e_f32s(f, b[1], a[0]),
            simd.mul_add_e_f32s(f, b[0], a[1]),
        ],
    ]
}

/// `a - i b` and `a + i b`.
#[inline(always)]
fn quarter<S: Simd>(simd: S, a: Complex<S>, b: Complex<S>) -> [Complex<S>; 2] {
    [
        [simd.add_f32s(a[0], b[1]), simd.sub_f32s(a[1], b[0])],
        [simd.sub_f32s(a[0], b[1]), simd.add_f32s(a[1], b[0])],
    ]
}

/// `a` times `cos - i sin`.
#[inline(always)]
fn twiddle<S: Simd>(simd: S, a: Complex<S>, [cos, sin]: [f32; 2]) -> Complex<S> {
    let (cos, sin) = (simd.splat_f32s(cos), simd.splat_f32s(sin));
    [
        simd.mul_add_e_f32s(cos, a[0], simd.mul_f32s(sin, a[1])),
        simd.negate_mul_add_e_f32s(sin, a[0], simd.mul_f32s(cos, a[1])),
    ]
}

#[inline(always)]
fn two<S: Simd>(simd: S, [a, b]: [Complex<S>; 2]) -> [Complex<S>; 2] {
    [add(simd, a, b), sub(simd, a, b)]
}

#[inline(always)]
fn three<S: Simd>(simd: S, [a, b, c]: [Complex<S>; 3]) -> [Complex<S>; 3] {
    /// The sine of a third of a turn.
    const SIN: f32 = 0.866_025_4;
    let (sum, difference) = (add(simd, b, c), sub(simd, b, c));
    let middle = add_scaled(simd, a, simd.splat_f32s(-0.5), sum);
    let [second, third] = turned(simd, middle, simd.splat_f32s(SIN), difference);
    [add(simd, a, sum), second, third]
}

#[inline(always)]
fn four<S: Simd>(simd: S, [a, b, c, d]: [Complex<S>; 4]) -> [Complex<S>; 4] {
    let ([even, odd], [both, apart]) = (two(simd, [a, c]), two(simd, [b, d]));
    let [second, fourth] = quarter(simd, odd, apart);
    [add(simd, even, both), second, sub(simd, even, both), fourth]
}

#[inline(always)]
fn five<S: Simd>(simd: S, [a, b, c, d, e]: [Complex<S>; 5]) -> [Complex<S>; 5] {
    /// Cosines of a fifth and of two fifths of a turn.
    const COS: [f32; 2] = [0.309_017, -0.809_017];
    /// The sine of a fifth of a turn, and the ratio of that of two fifths to it.
    const SIN: [f32; 2] = [0.951_056_5, 0.618_034];
    let ([outer, outer_apart], [inner, inner_apart]) = (two(simd, [b, e]), two(simd, [c, d]));
    let (cos, cos_two) = (simd.splat_f32s(COS[0]), simd.splat_f32s(COS[1]));
    let (sin, ratio) = (simd.splat_f32s(SIN[0]), simd.splat_f32s(SIN[1]));
    let first = add_scaled(simd, add_scaled(simd, a, cos, outer), cos_two, inner);
    let second = add_scaled(simd, add_scaled(simd, a, cos_two, outer), cos, inner);
    let first_apart = add_scaled(simd, outer_apart, ratio, inner_apart);
    let second_apart = [
        simd.sub_f32s(simd.mul_f32s(ratio, outer_apart[0]), inner_apart[0]),
        simd.sub_f32s(simd.mul_f32s(ratio, outer_apart[1]), inner_apart[1]),
    ];
    let [y1, y4] = turned(simd, first, sin, first_apart);
    let [y2, y3] = turned(simd, second, sin, second_apart);
    [add(simd, a, add(simd, outer, inner)), y1, y2, y3, y4]
}

#[inline(always)]
fn eight<S: Simd>(simd: S, x: [Complex<S>; 8]) -> [Complex<S>; 8] {
    let even = four(simd, [x[0], x[2], x[4], x[6]]);
    let odd = four(simd, [x[1], x[3], x[5], x[7]]);
    let half = simd.splat_f32s(std::f32::consts::FRAC_1_SQRT_2);
    // Times (1 - i)/√2; the second of them is turned by another quarter below.
    let ([a, b], [c, d]) = (odd[1], odd[3]);
    let eighth = [
        simd.mul_f32s(half, simd.add_f32s(a, b)),
        simd.mul_f32s(half, simd.sub_f32s(b, a)),
    ];
    let three_eighths = [
        simd.mul_f32s(half, simd.add_f32s(c, d)),
        simd.mul_f32s(half, simd.sub_f32s(d, c)),
    ];
    let [y0, y4] = two(simd, [even[0], odd[0]]);
    let [y1, y5] = two(simd, [even[1], eighth]);
    let [y2, y6] = quarter(simd, even[2], odd[2]);
    let [y3, y7] = quarter(simd, even[3], three_eighths);
    [y0, y1, y2, y3, y4, y5, y6, y7]
}

#[inline(always)]
fn nine<S: Simd>(simd: S, x: [Complex<S>; 9]) -> [Complex<S>; 9] {
    /// Cosine and sine of one, two and four ninths of a turn.
    const NINTHS: [[f32; 2]; 3] = [
        [0.766_044_44, 0.642_787_6],
        [0.173_648_18, 0.984_807_7],
        [-0.939_692_6, 0.342_020_14],
    ];
    let a = three(simd, [x[0], x[3], x[6]]);
    let b = three(simd, [x[1], x[4], x[7]]);
    let c = three(simd, [x[2], x[5], x[8]]);
    let [b1, b2] = [
        twiddle(simd, b[1], NINTHS[0]),
        twiddle(simd, b[2], NINTHS[1]),
    ];
    let [c1, c2] = [
        twiddle(simd, c[1], NINTHS[1]),
        twiddle(simd, c[2], NINTHS[2]),
    ];
    let [y0, y3, y6] = three(simd, [a[0], b[0], c[0]]);
    let [y1, y4, y7] = three(simd, [a[1], b1, c1]);
    let [y2, y5, y8] = three(simd, [a[2], b2, c2]);
    [y0, y1, y2, y3, y4, y5, y6, y7, y8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Arch, Scalar};

    /// A transform of pseudo-random numbers beside its definition, in the first lane and in the last.
    struct Check {
        len: usize,
        direction: Direction,
        stride: usize,
    }

    impl WithSimd for Check {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self {
                len,
                direction,
                stride,
            } = self;
            let number = |at: usize| ((at * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
            let x: Vec<Complex<S>> = (0..len * stride)
                .map(|at| [2 * at, 2 * at + 1].map(|at| simd.splat_f32s(number(at))))
                .collect();
            let mut scratch = vec![[simd.splat_f32s(0.0); 2]; 2 * len];
            let mut out = vec![[simd.splat_f32s(0.0); 2]; len];
            let fourier = Fourier::new(len, direction, stride);
            fourier.run(simd, &x, &mut out, &mut scratch);
            let sign = [-1.0, 1.0][usize::from(direction == Direction::Inverse)];
            for (k, &[real, imaginary]) in out.iter().enumerate() {
                let terms = (0..len).map(|at| {
                    let [a, b] = [0, 1].map(|part| f64::from(number(2 * at * stride + part)));
                    let (cos, sin) = turn(at * k, len);
                    [a * cos - sign * b * sin, b * cos + sign * a * sin]
                });
                let sum = terms.fold([0.0, 0.0], |sum, x| [sum[0] + x[0], sum[1] + x[1]]);
                let [real, imaginary] =
                    [real, imaginary].map(|x| simd.reduce_sum_f32s(x) / S::F32_LANES as f32);
                assert!((f64::from(real) - sum[0]).abs() < 3e-5, "{len} {k}");
                assert!((f64::from(imaginary) - sum[1]).abs() < 3e-5, "{len} {k}");
            }
            if stride == 1 {
                let mut again = x.clone();
                fourier.run_in_place(simd, &mut again, &mut scratch);
                assert!(again.iter().zip(&out).all(|(a, b)| {
                    [0, 1]
                        .iter()
                        .all(|&p| simd.reduce_sum_f32s(a[p]) == simd.reduce_sum_f32s(b[p]))
                }));
            }
        }
    }

    #[test]
    fn transforms_are_those_of_their_definition() {
        for len in [
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 18, 20, 24, 28, 36, 40, 60, 72, 210,
        ] {
            for (direction, stride) in [(Direction::Forward, 1), (Direction::Inverse, 3)] {
                Arch::new().dispatch(Check {
                    len,
                    direction,
                    stride,
                });
                Check {
                    len,
                    direction,
                    stride,
                }
                .with_simd(Scalar::new());
            }
        }
    }
}
