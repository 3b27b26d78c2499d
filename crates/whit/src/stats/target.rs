//! What a whole answer may cost, and the least noise that keeps to it.

use whit_accounting::calibrate;
use whit_core::{
    Delta, Epsilon, Event, L1, L2, Linf, Mechanism, Neighbours, Probability, Ratio, Relation,
    Scale, Sensitivity, round,
};
use whit_mechanism::Noise;

use super::{AddedNoise, NoiseKind, Part, Request};
use crate::{Error, Result};

/// What a whole answer may cost.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) mechanism: NoiseKind,
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Delta,
}

/// The part of epsilon that a search for bounds gets when a range is `auto`. A quarter: bounds are powers of two, and a few
/// hundred rows are enough for them, while every answer gets better with more.
const SEARCH_SHARE: f64 = 0.25;

impl Target {
    /// Checks that what was asked for can be spent.
    pub(crate) fn new(request: &Request) -> Result<Self> {
        let mechanism = request.mechanism()?;
        let &Request { epsilon, delta, .. } = request;
        if epsilon == Epsilon::ZERO {
            let (given, domain) = (epsilon.to_string(), "a finite number above zero");
            return Err(whit_core::Error::OutOfDomain {
                what: "epsilon",
                given,
                domain,
            }
            .into());
        }
        match (mechanism, delta == Delta::ZERO) {
            (NoiseKind::Gaussian, true) => Err(Error::DeltaMissing),
            (NoiseKind::Gaussian, false) | (_, true) => Ok(Self {
                mechanism,
                epsilon,
                delta,
            }),
            (_, false) => Err(Error::DeltaUnused {
                mechanism,
                delta: delta.value(),
            }),
        }
    }

    /// The least noise for one of so many parts that are released together and cost the same.
    ///
    /// A part is had by calibrating so many times the sensitivity to the whole: twice the L1 bound costs twice the epsilon,
    /// and twice the *squared* L2 bound twice the rho. So one of two real releases costs half, exactly.
    pub(crate) fn noise<R: Relation>(
        &self,
        parts: u32,
        l1: Sensitivity<L1, R>,
        l2: Sensitivity<L2, R>,
    ) -> Result<Noise> {
        let (epsilon, times) = (self.epsilon_in(parts)?, Ratio::from(u64::from(parts)));
        let noise = match self.mechanism {
            NoiseKind::Laplace => {
                calibrate::laplace_scale(&(l1.bound() * &times), epsilon).map(Noise::Laplace)
            }
            NoiseKind::Gaussian => {
                let square = &(l2.square() * &times) * &room_for_sums(parts);
                calibrate::gaussian_scale(&square, epsilon, self.delta).map(Noise::Gaussian)
            }
            NoiseKind::Exponential | NoiseKind::PermuteAndFlip => {
                let (statistic, mechanism) = ("noisy number", self.mechanism);
                return Err(Error::UnfitMechanism {
                    statistic,
                    mechanism,
                });
            }
        };
        noise.map_err(|error| match error {
            whit_accounting::Error::Unit(error) => Error::NoNoise(error),
            error => error.into(),
        })
    }

    /// Less noise than that, if the price of what it makes leaves room: concentrated DP knows no more of Gaussian noise than its spread.
    pub(crate) fn sharpen(&self, noise: Noise, event: impl Fn(&Noise) -> Option<Event>) -> Noise {
        let Noise::Gaussian(scale) = &noise else {
            return noise;
        };
        let covers = |scale: &Scale| {
            let event = event(&Noise::Gaussian(scale.clone()));
            event.is_some_and(|event| self.covers(&event).unwrap_or(false))
        };
        Noise::Gaussian(calibrate::least_scale(scale, covers))
    }

    /// The same for several kinds of noise at once: the smallest share of all of them, in millionths or so, that leaves no price above this.
    pub(crate) fn share(&self, event: impl Fn(&Ratio) -> Option<Event>) -> Ratio {
        let share = |parts: u64| Ratio::new(u128::from(parts), SHARES).expect("not zero");
        if self.mechanism != NoiseKind::Gaussian {
            return Ratio::one();
        }
        let covers = |parts: u64| {
            let event = event(&share(parts));
            event.is_some_and(|event| self.covers(&event).unwrap_or(false))
        };
        let (mut fails, mut passes) = (SHARES as u64 / 2, SHARES as u64);
        while passes - fails > 1 {
            let middle = fails.midpoint(passes);
            if covers(middle) {
                passes = middle;
            } else {
                fails = middle;
            }
        }
        share(passes)
    }

    /// Epsilon for something of several equal parts. An accountant rounds each of them up, and each sum; so the whole is
    /// lowered, mostly by one unit in the last place, until their sum does not pass what was asked.
    pub(crate) fn epsilon_in(&self, parts: u32) -> Result<Epsilon> {
        let (asked, count) = (self.epsilon.value(), Ratio::from(u64::from(parts)));
        let passes = |epsilon: &Epsilon| {
            let each = epsilon.to_ratio().checked_div(&count);
            let each = each.map_or(0.0, |each| each.to_f64_up());
            let sum = (0..parts).fold(0.0, |sum, _| round::add_up(sum, each));
            sum <= asked
        };
        let steps = (0..u32::BITS).map(|power| f64::from(1_u32 << power));
        let rooms = std::iter::once(0.0).chain(steps);
        let lowered = rooms.map(|room| round::mul_down(asked, 1.0 - 0.5 * room * f64::EPSILON));
        let mut lowered = lowered.filter_map(|epsilon| Epsilon::new(epsilon).ok());
        lowered.find(passes).ok_or_else(|| self.too_little())
    }

    /// A choice by scores has no noise, but `2Δ/ε` plays its part and must be a scale that can be computed with.
    pub(crate) fn check_choice<R: Relation>(
        &self,
        parts: u32,
        sensitivity: &Sensitivity<Linf, R>,
    ) -> Result<()> {
        let twice = sensitivity.bound() * &Ratio::from(2 * u64::from(parts));
        let scale = twice.checked_div(&self.epsilon.to_ratio());
        let scale = scale.map(Scale::new).transpose();
        scale.map_err(Error::NoNoise).map(|_| ())
    }

    /// First a search for bounds, then all the rest. The two epsilons add up to no more than the whole.
    pub(crate) fn split(self) -> Result<(Self, Self)> {
        let search = Epsilon::new(SEARCH_SHARE * self.epsilon.value()).map_err(Error::NoNoise)?;
        let rest = round::sub_down(self.epsilon.value(), search.value());
        let rest = Epsilon::new(rest).map_err(Error::NoNoise)?;
        if search == Epsilon::ZERO {
            return Err(self.too_little());
        }
        let search = Self {
            mechanism: NoiseKind::Laplace,
            epsilon: search,
            delta: Delta::ZERO,
        };
        Ok((
            search,
            Self {
                epsilon: rest,
                ..self
            },
        ))
    }

    fn too_little(&self) -> Error {
        Error::NoNoise(whit_core::Error::OutOfDomain {
            what: "epsilon",
            given: self.epsilon.to_string(),
            domain: "a number that can be divided",
        })
    }

    /// The event of something of which no more is known than that it keeps to this target.
    pub(crate) fn event(&self, neighbours: Neighbours) -> Event {
        let epsilon = self.epsilon.to_ratio();
        let mechanism = if self.delta == Delta::ZERO {
            Mechanism::Pure { epsilon }
        } else {
            let delta = Ratio::from_f64(self.delta.value()).map(Probability::new);
            let delta = delta.expect("a delta is finite and not negative");
            let delta = delta.expect("a delta is below one");
            Mechanism::Approximate { epsilon, delta }
        };
        Event::new(neighbours, mechanism)
    }

    /// Is the price of the event within this target?
    pub(crate) fn covers(&self, event: &Event) -> Result<bool> {
        let price = whit_accounting::price(event, self.delta)?;
        Ok(price.epsilon <= self.epsilon && price.delta <= self.delta)
    }
}

/// Noise is shared out in so many parts.
const SHARES: u128 = 1 << 20;

/// A factor for squared sensitivities, one in a trillion above one: the losses of several parts are rounded up before they are
/// added, and their sum must not pass that of the whole.
fn room_for_sums(parts: u32) -> Ratio {
    if parts == 1 {
        return Ratio::one();
    }
    &Ratio::one() + &Ratio::power_of_two(-40)
}

/// The noise that an answer tells of.
pub(crate) fn added(to: Part, noise: &Noise) -> AddedNoise {
    let (Noise::Laplace(scale) | Noise::Gaussian(scale)) = noise;
    AddedNoise {
        to,
        scale: scale.ratio().to_f64_up(),
    }
}

/// Nobody asked for a scale, so nobody can be told to give another.
pub(crate) fn own_words(error: whit_mechanism::Error) -> Error {
    match error {
        whit_mechanism::Error::Unit(error) => Error::NoNoise(error),
        error => error.into(),
    }
}
