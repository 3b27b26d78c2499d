//! # A clip norm that follows a quantile
//! At each step two things are released: the sum of the gradients, clipped to the norm `C` of that step, and how many of them were below
//! `C`. The second one moves the norm of the next step \[ATMR21\], and is paid for here, together with the first.
//!
//! **Definition.** An example of the batch adds `v`, `‖v‖ <= C`, to the sum, and `s = 1` to the count if its gradient's norm was at most `C`,
//! else `s = -1`. (So the count is twice the number below, less the size of the batch. Counting 0 and 1 instead would move it by as much as
//! this, at half the resolution.) Noise has the scale `z_v C` on the sum and `z_s` on the count, independently.
//! **Claim.** One step is a Gaussian mechanism with noise multiplier `z`, where `z^-2 = z_v^-2 + z_s^-2`.
//! **Proof.** Divide the sum by `z_v C` and the count by `z_s`: both are functions of public numbers, since `C` is a function of what was
//! released before, and what is left is the noise `N(0, 1)` in every coordinate. An example adds the vector `(v/(z_v C), s/z_s)` to this
//! pair, of square norm at most `z_v^-2 + z_s^-2`. It is a function of the example and of what was released before alone. So samples that
//! differ in one example more or less are at most `1/z` apart, and `2/z` if it is replaced, in units of the noise. ∎
//!
//! Both parts are whole numbers with rounded Gaussian noise, which is post-processing of this. In the words of \[ATMR21\], `z_s = 2 σ_b`.
//!
//! **Event.** With the noise as the unit: scale 1, and the square of the distance `z_v^-2 + z_s^-2` (four times that if replaced), an exact
//! ratio. `z` is what a plan is asked for; `z_v` is rounded up, so that the pair costs no more.

use whit_core::Ratio;

use super::parts::exact_multiplier;
use crate::draft::AdaptiveDraft;
use crate::error::{Error, Result, within};

/// Noise multipliers of sums are multiples of this, as are those that are calibrated.
const NOISE_UNIT: f64 = 16_777_216.0;

/// What moves the clip norm.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Adaptive {
    pub(super) quantile: f64,
    pub(super) rate: f64,
    /// `z_s`, which is twice the noise of a number of examples.
    count: Ratio,
    pub(super) count_noise: f64,
}

/// The noise of both parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    /// `z_v`.
    pub(super) sum: f64,
    /// `z_s`.
    pub(super) count: Ratio,
}

impl Adaptive {
    pub(super) fn new(draft: &AdaptiveDraft) -> Result<Self> {
        let share = (0.0..=1.0).contains(&draft.quantile);
        within("quantile", draft.quantile, share, "a number from 0 to 1")?;
        let rate = draft.rate > 0.0 && draft.rate <= 1.0;
        within(
            "clip_rate",
            draft.rate,
            rate,
            "a number above 0 and at most 1",
        )?;
        let passes = (1e-3..=1e9).contains(&draft.count_noise);
        let range = "a number from 0.001 to 1e9";
        within("count_noise", draft.count_noise, passes, range)?;
        // Twice a float is exact.
        let count = exact_multiplier(2.0 * draft.count_noise)?;
        Ok(Self {
            quantile: draft.quantile,
            rate: draft.rate,
            count,
            count_noise: draft.count_noise,
        })
    }

    /// The noise of both parts that together are the multiplier `z`. Refused if the count alone costs as much.
    pub(super) fn pair(&self, multiplier: f64) -> Result<Pair> {
        let asked = exact_multiplier(multiplier)?;
        let limit = inverse_square(&asked);
        let refused = Error::CountNoise {
            count_noise: self.count_noise,
            noise_multiplier: multiplier,
        };
        if self.count <= asked {
            return Err(refused);
        }
        let left = multiplier.powi(-2) - (2.0 * self.count_noise).powi(-2);
        let mut sum = (left.powf(-0.5) * NOISE_UNIT).ceil() / NOISE_UNIT;
        // The root was rounded, and a step or two make up for it.
        for _ in 0..4 {
            let pair = Pair {
                sum,
                count: self.count.clone(),
            };
            if sum.is_finite() && sum <= 1e9 && pair.square() <= limit {
                return Ok(pair);
            }
            sum = (sum + 1.0 / NOISE_UNIT).next_up();
        }
        Err(refused)
    }
}

impl Pair {
    /// `z_v^-2 + z_s^-2`.
    pub(super) fn square(&self) -> Ratio {
        let sum = Ratio::from_f64(self.sum).unwrap_or_else(Ratio::one);
        &inverse_square(&sum) + &inverse_square(&self.count)
    }
}

/// Of a positive number.
fn inverse_square(number: &Ratio) -> Ratio {
    let square = number * number;
    Ratio::one()
        .checked_div(&square)
        .expect("noise is never zero")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive(count_noise: f64) -> Adaptive {
        Adaptive::new(&AdaptiveDraft {
            quantile: 0.5,
            rate: 0.2,
            count_noise,
        })
        .expect("in range")
    }

    #[test]
    fn both_parts_add_up_to_what_was_asked_for_and_hardly_less() {
        for (multiplier, count_noise) in [(1.0, 10.0), (1.1, 0.6), (0.001, 5.0), (30.0, 16.0)] {
            let pair = adaptive(count_noise).pair(multiplier).expect("fits");
            let (sum, count) = (pair.sum, 2.0 * count_noise);
            let effective = (sum.powi(-2) + count.powi(-2)).powf(-0.5);
            assert!((effective / multiplier - 1.0).abs() < 1e-4, "{effective}");
            let exact = Ratio::from_f64(multiplier).expect("finite");
            assert!(pair.square() <= inverse_square(&exact));
            assert!(sum > multiplier, "the count has its share");
        }
        // The figures of the paper: a count over 100 examples with noise 5 costs half a percent of a multiplier of 1.
        let pair = adaptive(5.0).pair(1.0).expect("fits");
        assert!((pair.sum - 1.005_037_815_259_212).abs() < 1e-6, "{pair:?}");
    }

    #[test]
    fn a_count_that_costs_all_there_is_is_refused() {
        for (multiplier, count_noise) in [(1.0, 0.5), (1.0, 0.3), (10.0, 5.0)] {
            let refused = adaptive(count_noise).pair(multiplier);
            assert!(matches!(refused, Err(Error::CountNoise { .. })));
        }
        for count_noise in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let draft = AdaptiveDraft {
                quantile: 0.5,
                rate: 0.2,
                count_noise,
            };
            assert!(Adaptive::new(&draft).is_err());
        }
    }
}
