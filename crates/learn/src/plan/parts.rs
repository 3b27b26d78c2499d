//! What the event of a run is made of, but for the amount of noise.

use whit_core::{Event, Mechanism, Neighbours, Ratio, Sampling, Scale};

use super::adaptive::Adaptive;
use super::factor::Cyclic;
use crate::draft::{CLIP_RANGE, Draft, NOISE_RANGE, Pattern};
use crate::error::{Error, Result};

/// A grid step is the clip norm's power of two over this one's: rounding to it is far below the noise, and sums of `2^25` examples are
/// within 64 bits.
const GRID_BITS: i32 = 36;

/// Everything but the noise multiplier.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parts {
    pub(super) turns: Turns,
    pub(super) steps: u64,
    pub(super) clip: ClipUnits,
    pub(super) relation: Neighbours,
    /// Set if the clip norm follows a quantile.
    pub(super) adaptive: Option<Adaptive>,
}

/// Who takes part in which step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turns {
    Sampled(Sampling),
    Cyclic(Cyclic),
}

/// A clip norm and the grid that goes with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClipUnits {
    pub(super) norm: f64,
    /// The same in units of the grid: from `2^36` to below `2^37`.
    pub(super) units: Ratio,
    grid_exponent: i32,
}

impl ClipUnits {
    pub(super) fn new(norm: f64) -> Result<Self> {
        let refused = Error::OutOfRange {
            what: "clip",
            given: norm,
            range: CLIP_RANGE,
        };
        let exact = Ratio::from_f64(norm).filter(|_| norm.is_normal());
        let exact = exact.ok_or(refused)?;
        let grid_exponent = exponent(norm) - GRID_BITS;
        Ok(Self {
            norm,
            units: &exact * &Ratio::power_of_two(-grid_exponent),
            grid_exponent,
        })
    }

    /// The step of the grid: a power of two.
    pub(super) fn grid(&self) -> f64 {
        power(self.grid_exponent)
    }
}

impl Parts {
    pub(super) fn new(draft: &Draft, pattern: Pattern) -> Result<Self> {
        let adaptive = draft.adaptive.map(|adaptive| Adaptive::new(&adaptive));
        let turns = match pattern {
            Pattern::Sampled(sampling) => Turns::Sampled(sampling),
            Pattern::Cyclic { bins, factor } => {
                Turns::Cyclic(Cyclic::new(bins, factor, draft.steps)?)
            }
        };
        Ok(Self {
            turns,
            steps: draft.steps,
            clip: ClipUnits::new(draft.clip_norm)?,
            relation: draft.relation,
            adaptive: adaptive.transpose()?,
        })
    }

    /// How far samples are apart that differ in one example, over the most that one adds.
    pub(super) fn norms_apart(&self) -> Ratio {
        match self.relation {
            Neighbours::AddRemove => Ratio::one(),
            // Also for relations that are not known here, which the accountant refuses.
            _ => Ratio::from(2_u64),
        }
    }

    /// Steps of a run whose noise is so many times what one example adds.
    pub(super) fn event(&self, multiplier: f64, steps: u64) -> Result<Event> {
        let sampling = match &self.turns {
            Turns::Sampled(sampling) => sampling.clone(),
            Turns::Cyclic(cyclic) => {
                let (scale, sensitivity_l2_square) = self.encoded(cyclic, multiplier, steps)?;
                let run = Mechanism::Gaussian {
                    scale,
                    sensitivity_l2_square,
                };
                return Ok(Event::new(self.relation, run));
            }
        };
        let apart = self.norms_apart();
        let inner = match &self.adaptive {
            None => {
                let distance = &apart * &self.clip.units;
                Mechanism::Gaussian {
                    scale: scale(multiplier, &self.clip)?,
                    sensitivity_l2_square: &distance * &distance,
                }
            }
            // In units of the noise of each part.
            Some(adaptive) => Mechanism::Gaussian {
                scale: Scale::new(Ratio::one())?,
                sensitivity_l2_square: &(&apart * &apart) * &adaptive.pair(multiplier)?.square(),
            },
        };
        let run = Mechanism::Sampled {
            sampling,
            steps,
            inner: Box::new(inner),
        };
        Ok(Event::new(self.relation, run))
    }

    /// The noise of a cyclic run, and how far neighbours are apart in all that it releases, squared; in the unit of what is released.
    pub(super) fn encoded(
        &self,
        cyclic: &Cyclic,
        multiplier: f64,
        steps: u64,
    ) -> Result<(Scale, Ratio)> {
        let units = &self.clip.units * &Ratio::power_of_two(cyclic.bits() as i32);
        let distance = &self.norms_apart() * &units;
        let square = &(&distance * &distance) * &cyclic.sensitivity_square(steps);
        Ok((Scale::new(&exact_multiplier(multiplier)? * &units)?, square))
    }

    /// How likely an example is in a step, by itself.
    pub(super) fn rate(&self) -> f64 {
        let sampling = match &self.turns {
            Turns::Sampled(sampling) => sampling,
            Turns::Cyclic(cyclic) => return 1.0 / cyclic.bins as f64,
        };
        match sampling {
            Sampling::Poisson { rate } => rate.ratio().to_f64_up(),
            Sampling::FixedSize { size, of } => *size as f64 / *of as f64,
            Sampling::BallsInBins { bins: count } | Sampling::Shuffled { batches: count } => {
                1.0 / *count as f64
            }
            _ => 1.0,
        }
    }

    /// The sampler in one word.
    pub(super) fn word(&self) -> &'static str {
        let sampling = match &self.turns {
            Turns::Sampled(sampling) => sampling,
            Turns::Cyclic(cyclic) => return cyclic.word(),
        };
        match sampling {
            Sampling::Poisson { .. } => "poisson",
            Sampling::FixedSize { .. } => "fixed_size",
            Sampling::BallsInBins { .. } => "balls_in_bins",
            Sampling::Shuffled { .. } => "shuffled",
            _ => "all",
        }
    }
}

/// The scale of noise that is `multiplier` clip norms, in units of the grid.
pub(super) fn scale(multiplier: f64, clip: &ClipUnits) -> Result<Scale> {
    Ok(Scale::new(&exact_multiplier(multiplier)? * &clip.units)?)
}

/// A noise multiplier to its last digit.
pub(super) fn exact_multiplier(multiplier: f64) -> Result<Ratio> {
    let refused = Error::OutOfRange {
        what: "noise_multiplier",
        given: multiplier,
        range: NOISE_RANGE,
    };
    let exact = Ratio::from_f64(multiplier).filter(|exact| !exact.is_zero());
    exact.ok_or(refused)
}

/// The exponent of a positive normal float: the largest `e` with `2^e <= value`.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// `2^exponent`, for exponents of normal floats.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_exponents_of_their_powers() {
        for value in [1.0, 1.5, 2.0, 1e-9, 1e9, 0.7] {
            let e = exponent(value);
            assert!(power(e) <= value && value < 2.0 * power(e), "{value}");
        }
    }

    #[test]
    fn a_grid_goes_with_its_norm() {
        for norm in [1.0, 0.999, 1e-9, 1e9, 3.7e-5] {
            let clip = ClipUnits::new(norm).expect("in range");
            let units = clip.units.to_f64_up();
            assert_eq!(units * clip.grid(), norm);
            assert!((2_f64.powi(36)..2_f64.powi(37)).contains(&units), "{norm}");
        }
        for norm in [0.0, f64::NAN, f64::INFINITY, -1.0, 1e-310] {
            assert!(ClipUnits::new(norm).is_err(), "{norm}");
        }
    }
}
