//! # Rounded Gaussian sampler
//! **Definition.** `Z = round(σX)` for a standard normal `X`: `Pr[Z = z] = Φ((z+1/2)/σ) - Φ((z-1/2)/σ)` on the integers, for any positive
//!   rational `σ`. Halves, which have probability zero, may go either way.
//! **Sampler.** `|X|` is drawn from boxes over the normal curve (`gaussian_cells`), as a box and the digits of a uniform that says
//!   where in its width it is; a bit is the sign. One word holds the share of the table (`k` bits), the sign, and the first
//!   `u = 63 - k` digits; nearly always nothing more is drawn.
//! **Proof.** `|X|` has the exact density, so `σX` has that of `N(0, σ²)`. `round(σX)` is `floor(σ|X| + 1/2)` with the sign, but for
//!   halves. It is given out only when all reals that begin with the known digits agree on it; until they do, digits are
//!   drawn. Those on which they never agree are at a half: a null set.
//! **Quick look.** Let `p 2^-u` be the known digits of `|X|/h`, so `p <= 2^u |X|/h < p + q` (`q = 1` for 64-bit words), and
//!   `F = floor(σh 2^(f-u))`. Then `pF <= 2^f σ|X| < (p+q)(F+1)`, so the integer lies between `(pF + 2^(f-1)) >> f` and
//!   `(pF + p + q(F+1) - 1 + 2^(f-1)) >> f`. With `p < 2^61`, `q <= 2^60`, `F < 2^63` and `f <= 127` no sum reaches `2^128`. At
//!   `σ = 2^38` the two differ once in `2^17` draws.
//! **Quicker.** For `q = 1` what is between them, `p + F`, is below `2^64`. As `f > 64`, they agree unless the `f - 64` bits of the
//!   fraction that are in the upper word are all ones; so the lower word need not be looked at.

use dashu_base::UnsignedAbs;
use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Scale};

use super::gaussian_cells::{Cells, Cut};
use super::gaussian_point::{Cell, Fraction, take};

/// An exact sampler of a Gaussian real of standard deviation `scale`, rounded to the nearest integer.
#[derive(Clone)]
pub struct RoundedGaussian(Sampler<{ Cut::FINE.table_bits }>);

impl RoundedGaussian {
    /// Prepares the fixed-point constants; the first one ever also the table that all share.
    pub fn new(scale: &Scale) -> Self {
        Self(Sampler::new(Cells::shared(), scale))
    }

    /// Draws `Z`. Saturates at the ends of `i128`.
    pub fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        self.0.sample(bits)
    }

    /// Adds a draw to each value. The sum is clamped to the ends of `i64`, and not the noise: noise that was clamped by itself would
    /// end where the value tells.
    pub fn add_to<B: Bits>(&self, values: &mut [i64], bits: &mut B) {
        self.0.add_to(values, bits);
    }
}

/// The sampler of a table with `2^K` shares.
#[derive(Clone)]
struct Sampler<const K: u32> {
    cells: &'static Cells,
    sigma: RBig,
    /// None for scales above `2^52` or so.
    quick: Option<Quick>,
}

/// The fixed point of the quick look.
#[derive(Clone, Copy)]
struct Quick {
    /// `F`.
    factor: u64,
    /// `f - 64`, from 1 to 63.
    shift: u32,
}

impl Quick {
    /// With as many digits as there is room for.
    fn new(sigma: &RBig, cut: Cut) -> Option<Self> {
        let u = 63 - cut.table_bits;
        (1..=63).rev().find_map(|shift| {
            let up = RBig::from(UBig::ONE << (shift as usize + 64));
            let down = UBig::ONE << (u + cut.width_bits) as usize;
            let factor = (sigma * up / RBig::from(down)).floor().unsigned_abs();
            let factor = u64::try_from(factor).ok()?;
            (factor >> 63 == 0).then_some(Self { factor, shift })
        })
    }

    /// `2^(f-1)`, in the upper word.
    #[inline(always)]
    fn half(&self) -> u64 {
        1 << (self.shift - 1)
    }

    /// `floor(σ|X| + 1/2)`, if the known digits tell.
    fn round(&self, p: u64, q: u64) -> Option<i64> {
        let low = u128::from(p) * u128::from(self.factor) + (u128::from(self.half()) << 64);
        let high = low + u128::from(p) + u128::from(q) * u128::from(self.factor + 1) - 1;
        let integer = |value: u128| ((value >> 64) as u64) >> self.shift;
        // Below 2^63, as the products are below 2^124 and the half is less than one.
        (integer(low) == integer(high)).then_some(integer(low) as i64)
    }

    /// The same for `q = 1`, though it may give up a little more often.
    #[inline(always)]
    fn round_word(&self, p: u64) -> Option<i64> {
        let upper = ((u128::from(p) * u128::from(self.factor)) >> 64) as u64 + self.half();
        let fraction = (1 << self.shift) - 1;
        ((upper + 1) & fraction != 0).then_some((upper >> self.shift) as i64)
    }
}

impl<const K: u32> Sampler<K> {
    fn new(cells: &'static Cells, scale: &Scale) -> Self {
        assert!(cells.cut.table_bits == K, "a table with 2^K shares");
        let sigma = scale.ratio().as_rbig().clone();
        Self {
            quick: Quick::new(&sigma, cells.cut),
            cells,
            sigma,
        }
    }

    fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        let head = Self::head(bits);
        match self.quickly::<B>(head) {
            Some(noise) => i128::from(noise),
            None => self.slowly(head, bits),
        }
    }

    fn add_to<B: Bits>(&self, values: &mut [i64], bits: &mut B) {
        for value in values {
            let head = Self::head(bits);
            *value = match self.quickly::<B>(head) {
                Some(noise) => value.saturating_add(noise),
                None => clamped_sum(*value, self.slowly(head, bits)),
            };
        }
    }

    /// How many bits a head has: those of a word, or of as many as it takes to hold the share and the sign. At most 64, as a table has at
    /// most `2^20` shares.
    const fn known<B: Bits>() -> u32 {
        (K + 1).next_multiple_of(B::WIDTH)
    }

    /// The first bits of a draw, the very first one on top.
    #[inline(always)]
    fn head<B: Bits>(bits: &mut B) -> u64 {
        if B::WIDTH == 64 {
            return bits.word();
        }
        take(Self::known::<B>(), bits) << (64 - Self::known::<B>())
    }

    /// Is the draw of this head negative? The bit behind the share.
    #[inline(always)]
    fn negative(head: u64) -> bool {
        (head << K) >> 63 == 1
    }

    /// The draw that a head tells of, if it tells of one.
    #[inline(always)]
    fn quickly<B: Bits>(&self, head: u64) -> Option<i64> {
        let quick = self.quick?;
        let strip = *self.cells.sure.get((head >> (64 - K)) as usize)?;
        let rest = head & (u64::MAX >> (K + 1));
        let p = (u64::from(strip) << (63 - K)) | rest;
        let magnitude = if B::WIDTH == 64 {
            quick.round_word(p)?
        } else {
            quick.round(p, 1 << (64 - Self::known::<B>()))?
        };
        Some(if Self::negative(head) {
            -magnitude
        } else {
            magnitude
        })
    }

    /// The draw that begins with a head which does not tell by itself.
    #[cold]
    #[inline(never)]
    fn slowly<B: Bits>(&self, mut head: u64, bits: &mut B) -> i128 {
        // About half of the points of doubtful boxes are kept.
        let (cell, x) = loop {
            let share = head >> (64 - K);
            if let Some(&strip) = self.cells.sure.get(share as usize) {
                let x = Fraction::new(head << (K + 1), Self::known::<B>() - (K + 1));
                break (self.cells.strip(strip), x);
            }
            let cell = self.cells.other(share, bits);
            if let Some(x) = cell.keep(bits) {
                break (cell, x);
            }
            head = Self::head(bits);
        };
        let magnitude = match self.quickly_in(&cell, &x) {
            Some(magnitude) => i128::from(magnitude),
            None => self.exactly_in(&cell, x, bits),
        };
        if Self::negative(head) {
            -magnitude
        } else {
            magnitude
        }
    }

    /// The quick look at a box and the first digits of a fraction of its width.
    fn quickly_in(&self, cell: &Cell, x: &Fraction) -> Option<i64> {
        let quick = self.quick?;
        // Strips begin before 2^(K-3), and no box is wider than that: p < 2^61.
        if cell.start >> (K - 3) > 0 {
            return None;
        }
        // A box is 2^(e - width_bits) strips wide, so that many bits of the fraction are whole strips.
        let drop = K + 1 - (cell.strip_bits - cell.width_bits);
        let p = (cell.start << (63 - K)) + (x.head >> drop);
        quick.round(p, 1 << (64 - x.known).saturating_sub(drop))
    }

    /// `floor(σ|X| + 1/2)`, drawing on until it is certain.
    #[cold]
    fn exactly_in<B: Bits>(&self, cell: &Cell, mut x: Fraction, bits: &mut B) -> i128 {
        let sigma = self.sigma.numerator().unsigned_abs();
        // Each round narrows the interval by a word; it ends with probability one, and after one round nearly always.
        loop {
            let ((low, high), places) = cell.x(&x, B::WIDTH);
            // σ|X| + 1/2 as a fraction.
            let unit = self.sigma.denominator() << (places + 1);
            let half = &unit >> 1;
            let low = (((&sigma * low) << 1) + &half) / &unit;
            // |X| is below the upper end, so this is the largest integer that is possible.
            let high = (((&sigma * high) << 1) + half - UBig::ONE) / unit;
            if low == high {
                return i128::try_from(low).unwrap_or(i128::MAX);
            }
            x.refine(bits);
        }
    }
}

/// `value + noise`, at the ends of `i64` if it is beyond them.
fn clamped_sum(value: i64, noise: i128) -> i64 {
    i128::from(value)
        .saturating_add(noise)
        .clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::super::gaussian_cells::tests::{COARSE, MIDDLE};
    use super::super::oracle;
    use super::*;
    use crate::doubt::{ALPHA, scale, seed};
    use whit_audit::enumerate;
    use whit_testkit::SeededBits;

    fn sampler(sigma: (u128, u128)) -> RoundedGaussian {
        RoundedGaussian::new(&scale(sigma.0, sigma.1))
    }

    fn coarse(change: impl FnOnce(&mut Cells), sigma: (u128, u128)) -> Sampler<5> {
        let mut cells = Cells::new(COARSE);
        change(&mut cells);
        Sampler::new(Box::leak(Box::new(cells)), &scale(sigma.0, sigma.1))
    }

    fn middle(sigma: (u128, u128)) -> Sampler<8> {
        Sampler::new(
            Box::leak(Box::new(Cells::new(MIDDLE))),
            &scale(sigma.0, sigma.1),
        )
    }

    /// `Pr[X >= t]`, without cancellation for large `t`.
    fn above(t: f64) -> f64 {
        0.5 * libm::erfc(t / std::f64::consts::SQRT_2)
    }

    /// `Pr[first <= Z <= last]`, for `0 <= first` or a whole interval around zero.
    fn mass(sigma: f64, first: i128, last: i128) -> f64 {
        let (low, high) = ((first as f64 - 0.5) / sigma, (last as f64 + 0.5) / sigma);
        if high <= 0.0 {
            above(-high) - above(-low)
        } else {
            above(low) - above(high)
        }
    }

    /// Every bit string up to the depth, against the formula within `1e-12`.
    fn check<const W: u32, const K: u32>(sampler: &Sampler<K>, unresolved_max: f64) {
        let sigma = sampler.sigma.to_f64().value();
        let found = enumerate::<W, i128>(oracle::depth() - 2, |tape| {
            sampler.sample(tape).clamp(-60, 60)
        });
        let share = found.unresolved() as f64 / 2_f64.powi(found.bits() as i32);
        assert!(share < unresolved_max, "width {W}: {share} did not end");
        let violations = found.violations(|&z| {
            let p = match z.abs() {
                60 => above(59.5 / sigma),
                z => mass(sigma, z, z),
            };
            let exact = |p: f64| RBig::try_from(p).expect("finite");
            (exact(p - 1e-12), exact(p + 1e-12))
        });
        assert!(violations.is_empty(), "width {W}: {violations:?}");
    }

    #[test]
    fn enumeration() {
        for sigma in [(1, 3), (1, 1), (5, 2)] {
            let (coarse, middle) = (coarse(|_| (), sigma), middle(sigma));
            check::<1, _>(&coarse, 0.35);
            check::<2, _>(&coarse, 0.35);
            check::<1, _>(&middle, 0.15);
            check::<2, _>(&middle, 0.15);
            check::<5, _>(&middle, 0.25);
        }
    }

    /// The table that ships, as deep as it takes for most draws.
    #[test]
    fn enumeration_of_the_fine_table() {
        check::<1, _>(&sampler((1, 1)).0, 0.05);
        check::<8, _>(&sampler((1, 4)).0, 0.05);
    }

    /// The smaller of two p-values, doubled: a fit in cells of an eighth of a scale, and one of the last digits.
    fn p_value(sigma: f64, draws: u64, mut draw: impl FnMut() -> i128) -> f64 {
        let width = (sigma / 8.0).floor().max(1.0) as i128;
        let reach = ((9.0 * sigma) as i128 / width).max(2);
        let fraction = sigma > 1e4;
        let (mut cells, mut digits) = (vec![0_u64; 2 * reach as usize + 1], vec![0_u64; 16]);
        let mut rest = 0;
        for _ in 0..draws {
            let z = draw();
            let cell = usize::try_from(z.div_euclid(width) + reach).unwrap_or(usize::MAX);
            *cells.get_mut(cell).unwrap_or(&mut rest) += 1;
            digits[z.rem_euclid(16) as usize] += 1;
        }
        let expected: Vec<f64> = (-reach..=reach)
            .map(|cell| mass(sigma, cell * width, cell * width + width - 1))
            .collect();
        let cells = whit_audit::Cells::new(cells, rest);
        let fit = cells.g_test(&expected).expect("probabilities").p_value;
        if !fraction {
            return fit;
        }
        let even = whit_audit::g_test(&digits, &[1.0 / 16.0; 16]).expect("probabilities");
        (2.0 * fit.min(even.p_value)).min(1.0)
    }

    #[test]
    fn distribution() {
        for (number, sigma, draws) in [
            (5210, (3, 10), 200_000),
            (5211, (1, 1), 1_000_000),
            (5212, (17, 3), 1_000_000),
            (5213, (1000, 1), 1_000_000),
            (5214, (1 << 38, 1), 1_000_000),
            (5215, ((1 << 40) + 12_345, 7), 1_000_000),
            (5216, (1 << 50, 3), 100_000),
            (5217, (1 << 70, 1), 20_000),
        ] {
            let mut bits = SeededBits::new(seed(number));
            let (sampler, float) = (sampler(sigma), sigma.0 as f64 / sigma.1 as f64);
            let mut p = |draws| p_value(float, draws, || sampler.sample(&mut bits));
            let first = p(draws);
            assert!(
                first >= ALPHA || p(4 * draws) >= ALPHA,
                "{sigma:?}: p = {first:e}"
            );
        }
    }

    /// Twins that the same test convicts: strips of equal weight, no tail, halves that fall to one side, noise a fiftieth too small.
    #[test]
    fn distribution_has_teeth() {
        let mut bits = SeededBits::new(seed(5220));
        let convicts = |what: &str, sigma: f64, draw: &mut dyn FnMut() -> i128| {
            let p = p_value(sigma, 1_000_000, draw);
            assert!(p < ALPHA, "{what}: p = {p:e}");
        };
        let equal = |cells: &mut Cells| cells.sure = (0..32).map(|share| share / 8).collect();
        let equal = coarse(equal, (17, 3));
        convicts("equal", 17.0 / 3.0, &mut || equal.sample(&mut bits));
        let no_tail = coarse(|cells| cells.sure.resize(32, 3), (1000, 1));
        convicts("no tail", 1000.0, &mut || no_tail.sample(&mut bits));
        let twice = sampler((34, 3));
        convicts("halves", 17.0 / 3.0, &mut || {
            twice.sample(&mut bits).div_euclid(2)
        });
        let less = sampler((98, 1));
        convicts("scale", 100.0, &mut || less.sample(&mut bits));
    }

    /// Right before each border between integers, and beside it: the quicker look says nothing that the quick one does not say.
    #[test]
    fn quicker_look_gives_up_where_digits_are_missing() {
        for sigma in [(64, 1), (1000, 3), (1 << 38, 1), (1 << 44, 3)] {
            let quick = sampler(sigma).0.quick.expect("a scale for quick looks");
            let mut open = 0;
            for n in 1..500_u128 {
                let border = (n << (64 + quick.shift)) - (u128::from(quick.half()) << 64);
                let p = u64::try_from(border / u128::from(quick.factor)).expect("below 2^61");
                for p in p.saturating_sub(2)..p + 3 {
                    match quick.round_word(p) {
                        Some(found) => assert_eq!(quick.round(p, 1), Some(found), "{sigma:?}"),
                        None => open += 1,
                    }
                }
            }
            assert!(open >= 499, "{sigma:?}: {open}");
        }
    }

    /// What a head tells of is what its digits tell of when more of them are drawn.
    #[test]
    fn quick_look_is_never_wrong() {
        let mut bits = SeededBits::new(seed(5230));
        for sigma in [
            (1, 1 << 60),
            (1, 7),
            (1, 1),
            (64, 1),
            (1000, 3),
            (1 << 38, 1),
            (1 << 44, 3),
            (1 << 52, 1),
        ] {
            let sampler = sampler(sigma).0;
            let k = sampler.cells.cut.table_bits;
            let (mut told, mut open) = (0, 0);
            for _ in 0..3_000 {
                let mut head = bits.word();
                // Half of them close to a border between integers, where a strip begins and scales are whole.
                if head & 1 == 1 {
                    let flip = (u64::MAX >> (k + 1)) & (u64::MAX << bits.below(49));
                    head = if head & 2 == 2 {
                        head | flip
                    } else {
                        head & !flip
                    };
                }
                let Some(&strip) = sampler.cells.sure.get((head >> (64 - k)) as usize) else {
                    continue;
                };
                let Some(found) = sampler.quickly::<SeededBits>(head) else {
                    open += 1;
                    continue;
                };
                told += 1;
                let cell = sampler.cells.strip(strip);
                let x = Fraction::new(head << (k + 1), 63 - k);
                let exact = sampler.exactly_in(&cell, x, &mut bits);
                let negative = (head >> (63 - k)) & 1 == 1;
                assert_eq!(i128::from(found), if negative { -exact } else { exact });
            }
            assert!(
                told > 1_000 || sigma.0 == 1 << 52,
                "{sigma:?}: {told} {open}"
            );
        }
    }

    #[test]
    fn extremes_saturate() {
        let mut bits = SeededBits::new(5240);
        let none = sampler((1, 1 << 64));
        assert!((0..1000).all(|_| none.sample(&mut bits) == 0));
        let most = sampler((1 << 96, 1));
        let mut ends = [0, 0];
        for _ in 0..200 {
            let z = most.sample(&mut bits);
            assert!(z.unsigned_abs() < 1 << 100 && z.unsigned_abs() > 1 << 60);
            ends[usize::from(z > 0)] += 1;
            let mut values = [-5, 7];
            most.add_to(&mut values, &mut bits);
            // Noise that was clamped by itself would leave the value's own digits at the end.
            assert!(values.iter().all(|y| [i64::MIN, i64::MAX].contains(y)));
        }
        assert!(ends[0] > 50 && ends[1] > 50, "{ends:?}");
        assert_eq!(clamped_sum(i64::MAX, 1), i64::MAX);
        assert_eq!(clamped_sum(-1, i128::MAX), i64::MAX);
        assert_eq!(clamped_sum(i64::MIN, i128::MIN), i64::MIN);
        assert_eq!(clamped_sum(-3, 10), 7);
    }

    /// A vector gets the draws that single samples would have been.
    #[test]
    fn vectors_get_one_draw_each() {
        let sampler = sampler((1000, 3));
        let (mut one, mut other) = (SeededBits::new(5250), SeededBits::new(5250));
        let mut values = vec![5_i64; 10_000];
        sampler.add_to(&mut values, &mut one);
        assert!(
            values
                .iter()
                .all(|&y| i128::from(y) == 5 + sampler.sample(&mut other))
        );
    }
}
