//! A case: a mechanism, two neighbours, an event, and the loss that the definition gives to it.

use whit_core::{Delta, Epsilon, Ratio, Scale};

use crate::Coins;

/// Relative error of the losses that cases state.
const LOSS_ERROR: f64 = 1e-9;

/// The share of the noise that a mechanism should have. One for what ships; less for a planted fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(f64);

impl Share {
    /// All of it.
    pub const ALL: Self = Self(1.0);

    /// A share in `(0, 1]`.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub fn new(share: f64) -> Self {
        assert!(share > 0.0 && share <= 1.0, "a share of the noise");
        Self(share)
    }

    /// The number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// Did the output fall into the event?
pub(crate) type Draw = Box<dyn FnMut(&mut Coins) -> bool>;

/// The same event, in the world where it should be likelier and in the other.
pub struct Draws {
    /// The likelier world.
    pub likely: Draw,
    /// The other.
    pub unlikely: Draw,
}

/// What is claimed of an event: `ln((P(S) - δ)/Q(S))` is at most the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    loss: f64,
    delta: Delta,
}

impl Claim {
    /// The logarithm of the ratio of its probabilities. Losses are computed in floats, and a little is forgiven.
    pub(crate) fn loss(loss: f64) -> Self {
        Self {
            loss: loss * (1.0 + LOSS_ERROR),
            delta: Delta::ZERO,
        }
    }

    /// An event that may have this probability where it is impossible in the other world.
    pub(crate) fn delta(loss: f64, delta: Delta) -> Self {
        Self { loss, delta }
    }
}

/// One case.
pub struct Case {
    name: String,
    family: &'static str,
    claim: Claim,
    make: Box<dyn Fn(Share) -> Draws + Send + Sync>,
}

impl Case {
    /// `make` builds the mechanism with a share of its noise.
    pub(crate) fn new(
        family: &'static str,
        name: String,
        claim: Claim,
        make: impl Fn(Share) -> Draws + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: format!("{family}, {name}"),
            family,
            claim,
            make: Box::new(make),
        }
    }

    /// What it is called, with its parameters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The mechanism.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// The loss of the event by the mechanism's definition, which may be less than the mechanism's epsilon.
    pub fn claimed(&self) -> Epsilon {
        Epsilon::new(self.claim.loss).expect("losses are positive")
    }

    /// At this delta.
    pub fn delta(&self) -> Delta {
        self.claim.delta
    }

    /// The mechanism with this share of its noise, ready to draw.
    pub fn draws(&self, share: Share) -> Draws {
        (self.make)(share)
    }
}

/// Epsilons of the pure cases.
pub(crate) const EPSILONS: [f64; 7] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0];

/// A scale of this many units, times a share.
pub(crate) fn scale(units: f64, share: Share) -> Scale {
    let ratio = Ratio::from_f64(units * share.value()).expect("finite and positive");
    Scale::new(ratio).expect("within the range of scales")
}

/// Draws of one function of the world.
pub(crate) fn both<T: 'static>(
    likely: T,
    unlikely: T,
    draw: impl Fn(&T, &mut Coins) -> bool + Clone + 'static,
) -> Draws {
    let again = draw.clone();
    Draws {
        likely: Box::new(move |coins| draw(&likely, coins)),
        unlikely: Box::new(move |coins| again(&unlikely, coins)),
    }
}
