//! Clipping: how much of an example's gradient is contributed.
//!
//! **Claim.** Let `s_l` be upper bounds of the squared norms of an example's gradient `g_l` in each layer, and `f_l` the factors
//! that `Clip::factors` gives for a margin `m`. Then the vector of all `f_l g_l` has norm at most `m C`, with `C` the
//! [`norm`](Clip::norm_upper), and so has the vector of all `fl(f_l g_l)`, products being rounded to the nearest float or to
//! zero.
//! **Proof.** *Flat:* with `n = √(Σ s_l)` rounded up, `f = 1` only if `n <= mC'`, else `f <= mC'/n`, rounded down, where
//! `C' = C (1 - 2^-22)`; so `f ‖g‖ <= m C'`. A rounded product is larger by a factor of at most `1 + 2^-24`, unless it is
//! below the normal floats and then it is zero; where `f = 1` it is not rounded. *Per layer:* the same for each `l` with
//! `C_l`, and `C² = Σ C_l²`. *Automatic:* `f <= mC'/(n + γ)`, so `f ‖g‖ < m C'`. \[BWZK23\] An example with a bound that is
//! not finite has factors zero.
//!
//! A factor depends on the example and on public numbers only.

use whit_core::round;

use crate::train::Clipping;
use crate::validate::{NetworkError, Result};

/// Covers the rounding of factor times delta to a float, twice over.
const ROUNDING: f64 = 1.0 - 1.0 / 4_194_304.0;

/// Clip norms that pass: between them no product or sum of contributions leaves the normal floats by more than is accounted
/// for.
pub(crate) const NORMS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// How gradients are clipped.
#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    kind: Kind,
    norm_upper: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Flat,
    PerLayer(Vec<f64>),
    Automatic { gamma: f64 },
}

fn within(what: &'static str, norm: f64) -> Result<f64> {
    if NORMS.contains(&norm) {
        return Ok(norm);
    }
    Err(NetworkError::OutOfRange { what, given: norm })
}

impl Clip {
    /// The whole gradient has norm at most `norm` \[ACG+16\].
    pub fn flat(norm: f64) -> Result<Self> {
        Ok(Self {
            kind: Kind::Flat,
            norm_upper: within("the clip norm", norm)?,
        })
    }

    /// Each layer's gradient has its own norm; one for each layer that has parameters. Together they have the root of the sum
    /// of the squares \[MRTZ18\].
    pub fn per_layer(norms: Vec<f64>) -> Result<Self> {
        let mut square = 0.0;
        for &norm in &norms {
            let norm = within("a layer's clip norm", norm)?;
            square = round::add_up(square, round::mul_up(norm, norm));
        }
        Ok(Self {
            kind: Kind::PerLayer(norms),
            norm_upper: within("the clip norm of all layers", round::sqrt_up(square))?,
        })
    }

    /// The same norm for each of `layers` layers, so that together they have at most `norm`.
    pub fn per_layer_even(norm: f64, layers: usize) -> Result<Self> {
        let norm = within("the clip norm", norm)?;
        // A little less than norm/√layers: the rounding of the squares stays below it.
        let each = norm / (layers.max(1) as f64).sqrt() * (1.0 - 1e-12);
        let clip = Self::per_layer(vec![each; layers.max(1)])?;
        Ok(Self {
            norm_upper: clip.norm_upper.max(norm),
            ..clip
        })
    }

    /// Every gradient is brought near `norm`, by `norm/(|g| + gamma)` \[BWZK23\].
    pub fn automatic(norm: f64, gamma: f64) -> Result<Self> {
        let gamma = within("the automatic clip's gamma", gamma)?;
        Ok(Self {
            kind: Kind::Automatic { gamma },
            norm_upper: within("the clip norm", norm)?,
        })
    }

    /// As a plan says it, for a network of so many layers that have parameters.
    pub(crate) fn of(clipping: Clipping, norm: f64, layers: usize) -> Result<Self> {
        match clipping {
            Clipping::Flat => Self::flat(norm),
            Clipping::PerLayer => Self::per_layer_even(norm, layers),
            Clipping::Automatic { gamma } => Self::automatic(norm, gamma),
        }
    }

    /// No example contributes more than this, in L2.
    pub fn norm_upper(&self) -> f64 {
        self.norm_upper
    }

    /// How many layers with parameters it is made for; `None` if for any number.
    pub fn layers(&self) -> Option<usize> {
        match &self.kind {
            Kind::PerLayer(norms) => Some(norms.len()),
            _ => None,
        }
    }

    /// The factors of one example, layer by layer, from the bounds of its squared norms.
    pub(crate) fn factors(&self, margin: f64, squares: &[f64], factors: &mut [f32]) -> Clipped {
        // A sum of numbers that are not negative, rounded up at every step; infinite and undefined ones stay so.
        let square = squares.iter().fold(0.0_f64, |sum, s| (sum + s).next_up());
        if !square.is_finite() {
            factors.fill(0.0);
            return Clipped::Never;
        }
        // One step down is below the exact product of positive numbers, and cheaper than to find out whether it was exact.
        let limit = |norm: f64| (norm * (margin * ROUNDING).next_down()).next_down();
        let norm = round::sqrt_up(square);
        match &self.kind {
            Kind::Flat => factors.fill(factor(limit(self.norm_upper), norm)),
            Kind::PerLayer(norms) => {
                for ((factor_, &square), &own) in factors.iter_mut().zip(squares).zip(norms) {
                    *factor_ = factor(limit(own), round::sqrt_up(square));
                }
            }
            Kind::Automatic { gamma } => {
                let divisor = (norm + *gamma).next_up();
                factors.fill(ratio_down(limit(self.norm_upper), divisor));
            }
        }
        if norm <= self.norm_upper {
            Clipped::Below
        } else {
            Clipped::Above
        }
    }
}

/// Where an example's norm was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clipped {
    /// At most the clip norm: what an adaptive clip counts.
    Below,
    /// Above it.
    Above,
    /// Not finite: it contributes nothing.
    Never,
}

/// At most `limit/norm`, and at most 1.
fn factor(limit: f64, norm: f64) -> f32 {
    if norm <= limit {
        1.0
    } else {
        ratio_down(limit, norm)
    }
}

/// A float below `a/b`, and zero below the normal ones: `1 - 2^-23` takes away more than three roundings can add, two of 2^-53 and one of 2^-24.
fn ratio_down(a: f64, b: f64) -> f32 {
    let near = (a / b * (1.0 - 1.0 / 8_388_608.0)) as f32;
    // What is not a number is no factor either.
    if near >= f32::MIN_POSITIVE {
        near.min(f32::MAX)
    } else {
        0.0
    }
}

/// A clip norm that follows a quantile of the gradients' norms \[ATMR21\].
///
/// At each step the number of examples below the norm is released with noise and charged together with the sum, by the plan
/// (`plan/adaptive.rs`). What is here is post-processing of that number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveQuantile {
    norm: f64,
    quantile: f64,
    rate: f64,
}

impl AdaptiveQuantile {
    /// Starts at `norm` and moves by a factor of at most about `exp(rate)` per step, towards the quantile, which is between 0
    /// and 1.
    pub fn new(norm: f64, quantile: f64, rate: f64) -> Result<Self> {
        let inside = |what, given: f64| match (0.0..=1.0).contains(&given) {
            true => Ok(given),
            false => Err(NetworkError::OutOfRange { what, given }),
        };
        Ok(Self {
            norm: within("the clip norm", norm)?,
            quantile: inside("the quantile", quantile)?,
            rate: inside("the quantile's rate", rate)?,
        })
    }

    /// The same at another norm, such as one that was kept.
    pub fn at(&self, norm: f64) -> Result<Self> {
        Self::new(norm, self.quantile, self.rate)
    }

    /// The clip norm of the next step.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// The clip of the next step.
    pub fn clip(&self) -> Result<Clip> {
        Clip::flat(self.norm)
    }

    /// Takes in a released count, over the public expected batch size. It may be any number, since it is noisy.
    pub fn update(&mut self, share_below: f64) {
        let share = if share_below.is_nan() {
            self.quantile
        } else {
            share_below.clamp(0.0, 1.0)
        };
        let norm = self.norm * (-self.rate * (share - self.quantile)).exp();
        self.norm = norm.clamp(*NORMS.start(), *NORMS.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(clip: &Clip, margin: f64, squares: &[f64]) -> (Vec<f32>, Clipped) {
        let mut factors = vec![f32::NAN; squares.len()];
        let clipped = clip.factors(margin, squares, &mut factors);
        (factors, clipped)
    }

    #[test]
    fn what_is_contributed_has_the_norm() {
        let clips = [
            Clip::flat(0.7).expect("flat"),
            Clip::per_layer(vec![0.3, 2.0, 0.01]).expect("per layer"),
            Clip::per_layer_even(0.7, 3).expect("even"),
            Clip::automatic(0.7, 0.01).expect("automatic"),
        ];
        for clip in clips {
            for margin in [1.0, 0.97] {
                for exponent in -40..60 {
                    let size = 1.7_f64.powi(exponent);
                    let squares = [size, size * 3.1, size * 0.2];
                    let (factors, _) = factors(&clip, margin, &squares);
                    let each = factors.iter().zip(&squares);
                    let square: f64 = each.map(|(&f, s)| f64::from(f).powi(2) * s).sum();
                    let bound = margin * clip.norm_upper();
                    assert!(square.sqrt() <= bound * (1.0 - 1e-8), "{clip:?} {size}");
                    if size > 100.0 {
                        assert!(square.sqrt() >= bound * 0.99, "{clip:?} {size}");
                    }
                }
            }
        }
    }

    #[test]
    fn short_gradients_are_not_scaled_by_a_flat_clip() {
        let clip = Clip::flat(5.0).expect("flat");
        assert_eq!(
            factors(&clip, 1.0, &[9.0, 15.0]),
            (vec![1.0; 2], Clipped::Below)
        );
        assert_eq!(factors(&clip, 1.0, &[9.0, 16.1]).1, Clipped::Above);
        assert_eq!(
            factors(&clip, 1.0, &[0.0, 0.0]),
            (vec![1.0; 2], Clipped::Below)
        );
    }

    #[test]
    fn what_is_not_finite_contributes_nothing() {
        for clip in [
            Clip::flat(1.0),
            Clip::per_layer(vec![1.0; 2]),
            Clip::automatic(1.0, 0.1),
        ] {
            let clip = clip.expect("a clip");
            for bad in [f64::NAN, f64::INFINITY, f64::MAX, 1e300] {
                let (factors, clipped) = factors(&clip, 1.0, &[1.0, bad]);
                if bad == 1e300 {
                    // Finite, and so long that no float is a factor small enough.
                    assert!(clipped == Clipped::Above && factors[1] == 0.0);
                } else {
                    assert_eq!((factors, clipped), (vec![0.0; 2], Clipped::Never));
                }
            }
        }
    }

    /// Exactly: a float times `b` is a product of whole numbers below 2^77 and a power of two.
    #[test]
    fn ratios_are_below_and_near() {
        fn exact(x: f64) -> (u128, i32) {
            let bits = x.to_bits();
            (
                u128::from((bits % (1 << 52)) | (1 << 52)),
                (bits >> 52) as i32,
            )
        }
        fn is_less((p, at): (u128, i32), (q, other): (u128, i32)) -> bool {
            let [(p, at), (q, other)] = [(p, at), (q, other)].map(|(whole, at)| {
                let zeros = whole.leading_zeros();
                (whole << zeros, at - zeros as i32)
            });
            (at, p) < (other, q)
        }
        let mut draw = crate::layer::oracle::draws(77);
        for case in 0..200_000 {
            let mut unit = || 1.5 + f64::from(draw()) / 2.0;
            let (a, spread) = (unit(), unit() * unit() / 2.25);
            // Anywhere, around the smallest normal float, and next to one.
            let b = match case % 3 {
                0 => a * spread * 2.0_f64.powi(case % 131),
                1 => a / f64::from(f32::MIN_POSITIVE) * (1.0 + (spread - 1.0) * 1e-7),
                _ => a * (1.0 + f64::from(case % 7) * f64::EPSILON),
            };
            let found = ratio_down(a, b);
            assert!(found == 0.0 || found >= f32::MIN_POSITIVE, "{a} {b}");
            if found > 0.0 {
                let ((p, at), (q, other)) = (exact(f64::from(found)), exact(b));
                let product = ((p >> 29) * q, at + other + 29);
                let (whole, at) = exact(a);
                assert!(is_less(product, (whole, at + 1075)), "{found} {a} {b}");
                assert!(f64::from(found) * b > a * (1.0 - 2.0_f64.powi(-22)));
            } else {
                assert!(
                    a / b < f64::from(f32::MIN_POSITIVE) * (1.0 + 1e-6),
                    "{a} {b}"
                );
            }
        }
        assert_eq!(ratio_down(f64::NAN, 1.0), 0.0);
    }

    #[test]
    fn norms_of_layers_add_up() {
        let clip = Clip::per_layer(vec![3.0, 4.0]).expect("norms");
        assert!(clip.norm_upper() >= 5.0 && clip.norm_upper() < 5.0 + 1e-12);
        assert_eq!(
            Clip::per_layer_even(2.0, 7).expect("norms").norm_upper(),
            2.0
        );
    }

    #[test]
    fn clips_out_of_range_are_refused() {
        for norm in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-10, 1e10] {
            assert!(Clip::flat(norm).is_err() && Clip::automatic(1.0, norm).is_err());
            assert!(Clip::per_layer(vec![1.0, norm]).is_err());
            assert!(Clip::per_layer_even(norm, 2).is_err());
            assert!(AdaptiveQuantile::new(norm, 0.5, 0.2).is_err());
        }
        assert!(Clip::per_layer(Vec::new()).is_err());
        assert!(AdaptiveQuantile::new(1.0, 1.5, 0.2).is_err());
    }

    #[test]
    fn the_quantile_is_followed() {
        // Norms uniform between 0 and 10: the median is 5, and the share below c is c/10.
        let mut adaptive = AdaptiveQuantile::new(0.1, 0.5, 0.2).expect("in range");
        for _ in 0..200 {
            let norm = adaptive.clip().expect("in range").norm_upper();
            adaptive.update(norm / 10.0);
        }
        assert!((adaptive.norm - 5.0).abs() < 0.1);
        adaptive.update(f64::NAN);
        adaptive.update(f64::INFINITY);
        assert!(adaptive.clip().is_ok());
    }
}
