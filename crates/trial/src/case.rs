//! A case: a mechanism, two neighbours, an event, and the loss that the definition gives to it.

use std::fmt;

use whit_audit::{
    Alpha, Counts, EpsilonBound, Group, Ruling, Share as Tally, clopper_pearson_lower,
    clopper_pearson_upper, planned_power,
};
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

/// Why a case could not be tried: there was no entropy, or no room on the disk. It says nothing about the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untried(String);

impl Untried {
    /// In words.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for Untried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Did the output fall into the event?
pub(crate) type Draw = Box<dyn FnMut(&mut Coins) -> Result<bool, Untried>>;

/// The same event, in the world where it should be likelier and in the other.
pub struct Draws {
    pub(crate) likely: Draw,
    pub(crate) unlikely: Draw,
}

impl Draws {
    /// Of one function of the world; first the likelier one.
    pub fn new<T: 'static>(
        likely: T,
        unlikely: T,
        draw: impl FnMut(&T, &mut Coins) -> Result<bool, Untried> + Clone + 'static,
    ) -> Self {
        let (mut one, mut other) = (draw.clone(), draw);
        Self {
            likely: Box::new(move |coins| one(&likely, coins)),
            unlikely: Box::new(move |coins| other(&unlikely, coins)),
        }
    }
}

/// What is claimed of an event: `ln((P(S) - δ)/Q(S))` is at most the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    loss: f64,
    delta: Delta,
}

impl Claim {
    /// The logarithm of the ratio of its probabilities. Losses are computed in floats, and a little is forgiven.
    pub fn loss(loss: f64) -> Self {
        Self {
            loss: loss * (1.0 + LOSS_ERROR),
            delta: Delta::ZERO,
        }
    }

    /// Of an event that has these probabilities in the likelier world and in the other, give or take `error` in the loss. What is measured is the larger loss of the event
    /// and of its complement, with the worlds exchanged; so is what is claimed.
    pub fn of(likely: f64, unlikely: f64, error: f64) -> Self {
        let event = libm::log(likely / unlikely);
        let complement = libm::log((1.0 - unlikely) / (1.0 - likely));
        Self::loss(event.max(complement) + error)
    }

    /// An event that may have this probability where it is impossible in the other world.
    pub fn delta(loss: f64, delta: Delta) -> Self {
        Self { loss, delta }
    }
}

/// How long one sample takes, and so how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A microsecond: as many samples as are asked for. A million show ten percent too little noise.
    Draw,
    /// Tens of microseconds: a tenth of them, but never below twelve thousand, however few are asked for: with half as many, half of the noise of sparse vector is missed once in six times.
    Statistic,
    /// A millisecond, as a statement in SQL: one in five hundred, but never below twelve hundred. They show half of the noise: by exact sums over both counts, each of these
    /// cases misses it with probability below `1e-8`.
    Program,
}

impl Cost {
    /// How many samples are taken where so many are asked for.
    pub fn samples(self, asked: u64) -> u64 {
        let (every, least) = match self {
            Self::Draw => (1, 1),
            Self::Statistic => (10, 12_000),
            Self::Program => (500, 1200),
        };
        (asked / every).max(least)
    }
}

/// One case.
pub struct Case {
    name: String,
    family: &'static str,
    claim: Claim,
    cost: Cost,
    make: Box<dyn Fn(Share) -> Result<Draws, Untried> + Send + Sync>,
    chances: Option<Box<Chances>>,
}

/// The probabilities of the event, in the likelier world and in the other, with a share of the noise.
type Chances = dyn Fn(Share) -> [f64; 2] + Send + Sync;

impl Case {
    /// `make` builds the mechanism with a share of its noise.
    pub(crate) fn new(
        family: &'static str,
        name: String,
        claim: Claim,
        make: impl Fn(Share) -> Draws + Send + Sync + 'static,
    ) -> Self {
        Self::of(family, name, claim, Cost::Draw, move |share| {
            Ok(make(share))
        })
    }

    /// The same, with the probabilities of its event. Its power can be planned then, and in tests its claim is compared with them, and they with what is seen.
    pub fn with_chances(
        mut self,
        chances: impl Fn(Share) -> [f64; 2] + Send + Sync + 'static,
    ) -> Self {
        self.chances = Some(Box::new(chances));
        self
    }

    /// The same, whose samples take longer.
    pub(crate) fn costing(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }

    /// A case of somebody who knows more than mechanisms: of a whole engine, or of training. `make` builds what ships, with a share of its noise.
    pub fn of(
        family: &'static str,
        name: String,
        claim: Claim,
        cost: Cost,
        make: impl Fn(Share) -> Result<Draws, Untried> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: format!("{family}, {name}"),
            family,
            claim,
            cost,
            make: Box::new(make),
            chances: None,
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

    /// What is claimed of its event.
    pub(crate) fn claim(&self) -> whit_audit::Claim {
        whit_audit::Claim {
            epsilon: self.claimed(),
            delta: self.delta(),
        }
    }

    /// The loss of the event by the mechanism's definition, which may be less than the mechanism's epsilon.
    pub fn claimed(&self) -> Epsilon {
        Epsilon::new(self.claim.loss).expect("losses are positive")
    }

    /// At this delta.
    pub fn delta(&self) -> Delta {
        self.claim.delta
    }

    /// How long its samples take.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The probabilities of its event with this share of the noise, where they are known.
    pub fn chances(&self, share: Share) -> Option<[f64; 2]> {
        self.chances.as_ref().map(|chances| chances(share))
    }

    /// About with which probability one look convicts it, where that is known.
    pub(crate) fn power(&self, share: Share, trials: u64, alpha: Alpha) -> Option<f64> {
        let chances = self.chances(share)?;
        Some(planned_power(chances, self.claim(), trials, alpha))
    }

    /// By how much the claim is above what its event loses, where that is known. Below zero, a true mechanism would be convicted; far above, a false one acquitted.
    pub fn overclaimed(&self) -> Option<f64> {
        let [likely, unlikely] = self.chances(Share::ALL)?;
        let delta = self.delta().value();
        // What is impossible in one world is all delta, and no epsilon is lost.
        let all_is_delta = unlikely == 0.0 && likely <= delta * (1.0 + LOSS_ERROR);
        if all_is_delta {
            return Some(0.0);
        }
        let losses = [(likely, unlikely), (1.0 - unlikely, 1.0 - likely)];
        let losses = losses.map(|(p, q)| libm::log((p - delta) / q));
        Some(self.claimed().value() - losses[0].max(losses[1]))
    }

    /// What so many honest runs of each world show that is not as it is stated, in words: more loss than is claimed, or an event that is seen more often or less often than its chances say. Each of five bounds is
    /// at this level. A claim that is far too large passes unless the chances are known.
    pub fn unlike_stated(&self, trials: u64, alpha: Alpha) -> Result<Option<String>, Untried> {
        let [likely, unlikely] = self.count(Share::ALL, trials)?;
        let counts = Counts::of_fixed_event(self.name(), likely, unlikely);
        let bound = counts.epsilon_lower(self.delta(), Group::ONE, alpha);
        let bound = bound.map_err(Untried::new)?;
        let stated = self.claimed();
        if bound.ruling(self.claim()) == Ruling::Violated {
            let found = bound.epsilon_lower();
            return Ok(Some(format!("{}: {found} of {stated}", self.name())));
        }
        for (stated, seen) in self
            .chances(Share::ALL)
            .into_iter()
            .flatten()
            .zip([likely, unlikely])
        {
            let low = clopper_pearson_lower(seen.hits, seen.trials, alpha).map_err(Untried::new)?;
            let high =
                clopper_pearson_upper(seen.hits, seen.trials, alpha).map_err(Untried::new)?;
            if !(low..=high).contains(&stated) {
                let Tally { hits, trials } = seen;
                return Ok(Some(format!(
                    "{}: {hits} of {trials}, where {stated} was stated",
                    self.name()
                )));
            }
        }
        Ok(None)
    }

    /// Would so many runs tell twice the claim, so that silence means something?
    pub(crate) fn is_told_by(&self, trials: u64, alpha: Alpha) -> bool {
        let nothing = Tally { hits: 0, trials };
        let counts = Counts::of_fixed_event(self.name(), nothing, nothing);
        let bound = counts.epsilon_lower(self.delta(), Group::ONE, alpha);
        bound.is_ok_and(|bound| bound.ruling(self.claim()) == Ruling::Consistent)
    }

    /// One look, with this share of the noise: fresh runs, and a bound at this level.
    pub(crate) fn look(
        &self,
        share: Share,
        trials: u64,
        alpha: Alpha,
    ) -> Result<EpsilonBound, Untried> {
        let [likely, unlikely] = self.count(share, trials)?;
        let counts = Counts::of_fixed_event(self.name(), likely, unlikely);
        let bound = counts.epsilon_lower(self.delta(), Group::ONE, alpha);
        bound.map_err(Untried::new)
    }

    /// How often its event is seen in fresh runs of the likelier world, and of the other.
    pub(crate) fn count(&self, share: Share, trials: u64) -> Result<[Tally; 2], Untried> {
        // A fresh key for each look, and whatever the case opens anew.
        let mut coins = Coins::fresh().map_err(Untried::new)?;
        let Draws {
            mut likely,
            mut unlikely,
        } = (self.make)(share)?;
        let mut count = |draw: &mut Draw| -> Result<Tally, Untried> {
            let mut hits = 0;
            for _ in 0..trials {
                hits += u64::from(draw(&mut coins)?);
            }
            Ok(Tally { hits, trials })
        };
        Ok([count(&mut likely)?, count(&mut unlikely)?])
    }
}

/// Epsilons of the pure cases.
pub(crate) const EPSILONS: [f64; 7] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0];

/// A scale of this many units, times a share.
pub(crate) fn scale(units: f64, share: Share) -> Scale {
    let ratio = Ratio::from_f64(units * share.value()).expect("finite and positive");
    Scale::new(ratio).expect("within the range of scales")
}

/// Draws of one function of the world that cannot fail.
pub(crate) fn both<T: 'static>(
    likely: T,
    unlikely: T,
    draw: impl Fn(&T, &mut Coins) -> bool + Clone + 'static,
) -> Draws {
    Draws::new(likely, unlikely, move |x, coins| Ok(draw(x, coins)))
}

/// Discrete Laplace noise on the larger of two inputs, and on the other, this many units below: where both are at or above the larger. A unit costs `rate`.
pub fn laplace_chances(rate: f64, distance: i64) -> [f64; 2] {
    let ratio = libm::exp(-rate);
    [0, distance].map(|units| libm::exp(-rate * units as f64) / (1.0 + ratio))
}

/// The same of Laplace noise on a fine grid, where the whole distance costs `epsilon`.
pub fn fine_laplace_chances(epsilon: f64) -> [f64; 2] {
    [0.5, 0.5 * libm::exp(-epsilon)]
}

/// The upper tail of the normal distribution.
pub fn upper_tail(from: f64) -> f64 {
    0.5 * libm::erfc(from * std::f64::consts::FRAC_1_SQRT_2)
}
