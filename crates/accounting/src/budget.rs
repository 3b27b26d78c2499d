//! # Budgets in whole numbers
//! A cap `(E, D)` is what the owner promises to every unit: whatever is answered, to whoever chooses the next question
//! from all answers so far, the whole is `(E, D)`-DP. A [`Cost`] is what one event adds, a [`Cap`] what the sums may
//! reach. Both are integers of `2^-64`: costs are rounded up, caps down, and sums are exact, so that ten million of the
//! smallest charges are ten million units, in whatever order they come, and one more than the cap is one too many.
//!
//! **Pure mode** adds the `(ε_i, δ_i)` that [`price()`] proves of each event. The whole is `(Σε_i, Σδ_i)`-DP also if the
//! parameters are chosen by past answers: `filter.rs`, theorem 2.
//!
//! **zCDP mode** adds `(ρ_i, δ_i)` of `δ_i`-approximate `ρ_i`-zCDP [BS16, Def. 8.1]: for neighbours there are mixtures
//! `P = (1-δ_i)P' + δ_i P''` and `Q = (1-δ_i)Q' + δ_i Q''` with `D_α(P' ‖ Q') <= αρ_i` for every `α > 1`, and the same with
//! `P'` and `Q'` exchanged. The cap is turned once into `(ρ_max, D/2)`, where `ρ_max`-zCDP is `(E, D/2)`-DP by `zcdp.rs`.
//!
//! **Theorem.** Let mechanisms be chosen one by one, each with its `(ρ_i, δ_i)`, by all answers so far, such that
//! `Σρ_i <= ρ_max` and `Σδ_i <= D/2` on every path. The whole is `(E, D)`-DP.
//! *Proof.* Fix neighbours, the coins of whoever chooses, and a number of rounds.
//! 1. Draw round `i` as its mixture says: with probability `δ_i` from the second part, else from the first. Let `P'` be the
//!    measure of transcripts in which every round came from the first part: `dP' = Π (1-δ_i) dP_i'`; and `Q'` alike. The
//!    `δ_i` of a round is known before its answer and is the same for both.
//! 2. `P(S) <= P'(S) + D/2` for every set `S` of transcripts: the probability that some round is the first that came from
//!    its second part is `E[Σ_i 1(none before i) δ_i] <= E[Σδ_i] <= D/2`. And `Q'(S) <= Q(S)`.
//! 3. In the ratio `Z = dP'/dQ' = Π dP_i'/dQ_i'` the factors `1-δ_i` cancel. Given the past, `ρ_i` is known, and
//!    `(1-δ_i) E_{Q_i'}[(dP_i'/dQ_i')^α] <= e^((α-1)αρ_i)`, so by induction over rounds, from the last to the first,
//!    `∫ Z^α e^(-(α-1)αΣρ_i) dQ' <= 1`. The sum in the exponent is at most `ρ_max` on every path:
//!    `∫ Z^α dQ' <= e^((α-1)αρ_max)`.
//! 4. The conversion in `zcdp.rs` bounds `1 - e^E/Z` by `c e^((α-1)(ln Z - E))` at every point, and so holds for measures of
//!    any mass: `P'(S) - e^E Q'(S) <= ∫ (1 - e^E/Z)₊ dP' <= c e^(-(α-1)E) ∫ Z^α dQ' <= c e^((α-1)(αρ_max-E))`, which at the
//!    best `α` is at most `D/2`, as that is how `ρ_max` was found.
//! 5. `P(S) <= P'(S) + D/2 <= e^E Q'(S) + D/2 + D/2 <= e^E Q(S) + D`.
//!
//! Events that run at the same time are in the order of their reservations: what is asked depends on the answers of some
//! of those before. Refused, failed and lost answers only make the transcript shorter. Half of `D` for each purpose is
//! a choice; any split that is fixed beforehand would do.
//!
//! **Sums of approximate zCDP compose** within one event, too: that is steps 1 to 3 for parts that were fixed beforehand,
//! and `1 - Π(1-δ_i) <= Σδ_i`.
//!
//! **What an event costs in zCDP mode.**
//! - What has a `ρ` of its own (`zcdp.rs`): `(ρ, 0)`. Pure: `min(ε²/2, ε)`; bounded range: `min(ε²/8, ε)`.
//! - `(ε, δ)`-DP, partition selection among it: `(min(ε²/2, ε), δ)`. An `(ε, δ)`-DP pair is the image, under one channel, of
//!   the pair that tells all with probability `δ` and else is randomized response at `ε` \[KOV15\]; the image of the
//!   latter is `ε`-DP, and its divergences are no larger than before.
//! - Close to a mechanism that is `(ε, δ)`-DP, by `τ` in total variation: `(ε, δ + (1+e^ε)τ)`-DP by `close.rs`, and from
//!   there as above. Close to what has only a `ρ` is refused: being close says nothing about divergences, and the slack
//!   would have to be taken at the epsilon of the whole budget.

use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio, Rho, round};

use crate::approximate::split;
use crate::close::{idealize, slack};
use crate::{Error, Result, price, pure, zcdp};

/// The unit of amounts is `2^-AMOUNT_BITS`. Deltas of interest are above `1e-12`, seven digits above the unit; sums of
/// epsilons reach `2^64`.
const AMOUNT_BITS: u32 = 64;

/// What adds up in a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Epsilons and deltas.
    Pure,
    /// Concentrated losses, and the deltas of what is only approximately concentrated.
    Zcdp,
}

impl Mode {
    /// `pure` or `zcdp`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Zcdp => "zcdp",
        }
    }

    /// The mode of that [`word`](Self::word).
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Pure, Self::Zcdp]
            .into_iter()
            .find(|mode| mode.word() == word)
    }
}

/// A number of `2^-64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u128);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many units.
    pub const fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// How many units.
    pub const fn units(self) -> u128 {
        self.0
    }

    /// The least amount that is no smaller. `None` from `2^64` on.
    pub fn up(value: &Ratio) -> Option<Self> {
        let units = (value * &Ratio::power_of_two(AMOUNT_BITS as i32)).ceil();
        u128::try_from(units).ok().map(Self)
    }

    /// The largest amount that is no larger. `None` from `2^64` on.
    pub fn down(value: &Ratio) -> Option<Self> {
        let units = (value * &Ratio::power_of_two(AMOUNT_BITS as i32)).floor();
        u128::try_from(units).ok().map(Self)
    }

    /// The exact sum. `None` if it is no amount.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// What is left of this after `spent`; nothing, if that is more.
    pub fn left_after(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }

    /// The least float that is no smaller.
    pub fn to_f64_up(self) -> f64 {
        self.to_ratio().to_f64_up()
    }

    /// The largest float that is no larger.
    pub fn to_f64_down(self) -> f64 {
        self.to_ratio().to_f64_down()
    }

    fn to_ratio(self) -> Ratio {
        Ratio::new(self.0, 1 << AMOUNT_BITS).expect("the denominator is a power of two")
    }
}

/// Two sums that grow together: of epsilons or of rhos, by the mode, and of deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sums {
    /// Of epsilons in pure mode, of rhos in zCDP mode.
    pub loss: Amount,
    /// Of deltas.
    pub delta: Amount,
}

impl Sums {
    /// Both sums. `None` beyond all amounts.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            loss: self.loss.checked_add(other.loss)?,
            delta: self.delta.checked_add(other.delta)?,
        })
    }
}

/// What an event adds to the sums of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    mode: Mode,
    neighbours: Neighbours,
    sums: Sums,
}

impl Cost {
    /// The cost of `event`. In pure mode it is priced at no more than `delta`; in zCDP mode `delta` is of no use, since it is
    /// taken from the cap once and for all.
    pub fn of(event: &Event, mode: Mode, delta: Delta) -> Result<Self> {
        let sums = match mode {
            Mode::Pure => {
                let paid = price(event, delta)?;
                of_floats(paid.epsilon.value(), paid.delta.value())?
            }
            Mode::Zcdp => {
                // At delta zero pricing is quick. All it is asked for is whether this relation is protected at all.
                if let Err(wrong @ (Error::WrongRelation { .. } | Error::Mismatch { .. })) =
                    price(event, Delta::ZERO)
                {
                    return Err(wrong);
                }
                concentrated(event.mechanism())?
            }
        };
        let neighbours = event.neighbours();
        Ok(Self {
            mode,
            neighbours,
            sums,
        })
    }

    /// What adds up.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whom it is about.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// The two numbers.
    pub fn sums(&self) -> Sums {
        self.sums
    }
}

/// `(ρ, δ)` of approximate zCDP, as the module text says.
fn concentrated(mechanism: &Mechanism) -> Result<Sums> {
    match mechanism {
        Mechanism::Composition(parts) => parts.iter().try_fold(Sums::default(), |sums, part| {
            sums.checked_add(concentrated(part)?).ok_or_else(unbounded)
        }),
        Mechanism::Approximate { epsilon, delta }
        | Mechanism::PartitionSelection { epsilon, delta }
            if !delta.ratio().is_zero() =>
        {
            let half_square = &(epsilon * epsilon) * &Ratio::power_of_two(-1);
            of_ratios(half_square.min(epsilon.clone()), delta.ratio())
        }
        Mechanism::Close { .. } => {
            let (ideal, distance) = idealize(mechanism);
            let (rest, approximate) = split(&ideal);
            let epsilon = pure::epsilon(&rest).map_err(|error| match error {
                Error::NoGuarantee { mechanism, .. } => Error::NoGuarantee {
                    mechanism: format!("a sampler that is only close to {mechanism}"),
                    notion: "concentrated loss",
                },
                other => other,
            })?;
            let epsilon = round::add_up(epsilon.value(), approximate.epsilon);
            let delta = round::add_up(approximate.delta, slack(epsilon, distance));
            let half_square = round::mul_up(round::mul_up(epsilon, epsilon), 0.5);
            of_floats(half_square.min(epsilon), delta)
        }
        other => of_floats(zcdp::rho(other)?.value(), 0.0),
    }
}

fn unbounded() -> Error {
    Error::Unbounded {
        what: "cost below 2^64",
    }
}

fn of_floats(loss: f64, delta: f64) -> Result<Sums> {
    let exact = |value| Ratio::from_f64(value).ok_or_else(unbounded);
    of_ratios(exact(loss)?, &exact(delta)?)
}

fn of_ratios(loss: Ratio, delta: &Ratio) -> Result<Sums> {
    let (loss, delta) = (Amount::up(&loss), Amount::up(delta));
    let (loss, delta) = loss.zip(delta).ok_or_else(unbounded)?;
    Ok(Sums { loss, delta })
}

/// How far the sums of a budget may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cap {
    mode: Mode,
    neighbours: Neighbours,
    epsilon: Epsilon,
    delta: Delta,
    limit: Sums,
}

impl Cap {
    /// The cap under which the whole is `(epsilon, delta)`-DP. In zCDP mode `delta` must be above zero.
    pub fn new(mode: Mode, neighbours: Neighbours, epsilon: Epsilon, delta: Delta) -> Result<Self> {
        let exact = |value| Ratio::from_f64(value).expect("a unit is finite and not negative");
        let whole = Amount::down(&exact(delta.value())).ok_or_else(unbounded)?;
        let limit = match mode {
            Mode::Pure => Sums {
                loss: Amount::down(&exact(epsilon.value())).ok_or_else(unbounded)?,
                delta: whole,
            },
            Mode::Zcdp if delta == Delta::ZERO => {
                return Err(Error::ZeroTarget {
                    what: "delta of a zCDP budget",
                });
            }
            Mode::Zcdp => Sums {
                loss: rho_max(epsilon, half(delta)),
                delta: Amount(whole.0 / 2),
            },
        };
        Ok(Self {
            mode,
            neighbours,
            epsilon,
            delta,
            limit,
        })
    }

    /// The same promise with limits that are no higher than these, as a ledger noted them down.
    pub fn at_most(mut self, limit: Sums) -> Self {
        self.limit.loss = self.limit.loss.min(limit.loss);
        self.limit.delta = self.limit.delta.min(limit.delta);
        self
    }

    /// What adds up.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whom the promise is about.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// The epsilon of the whole.
    pub fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The delta of the whole.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// What the sums may reach.
    pub fn limit(&self) -> Sums {
        self.limit
    }

    /// Whether this allows, in epsilon or in delta, what `other` does not.
    pub fn exceeds(&self, other: &Self) -> bool {
        self.epsilon > other.epsilon || self.delta > other.delta
    }

    /// What is left after `spent`.
    pub fn remaining(&self, spent: Sums) -> Remaining {
        let left = Sums {
            loss: self.limit.loss.left_after(spent.loss),
            delta: self.limit.delta.left_after(spent.delta),
        };
        let (epsilon, delta) = match self.mode {
            Mode::Pure => (left.loss.to_f64_down(), left.delta.to_f64_down()),
            Mode::Zcdp => {
                let rho = Rho::new(left.loss.to_f64_down()).expect("an amount is finite");
                let epsilon = zcdp::epsilon(rho, half(self.delta)).map_or(0.0, Epsilon::value);
                let both = round::add_down(half(self.delta).value(), left.delta.to_f64_down());
                (epsilon, both)
            }
        };
        let epsilon = epsilon.min(self.epsilon.value());
        let delta = delta.min(self.delta.value());
        Remaining {
            left,
            epsilon: Epsilon::new(epsilon).expect("at most that of the cap"),
            delta: Delta::new(delta).expect("at most that of the cap"),
        }
    }
}

/// What is left of a budget, for people and for machines.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Remaining {
    /// What the sums may still grow by. This is what decides.
    pub left: Sums,
    /// The epsilon of a whole that would use up what is left: in zCDP mode that of `left.loss` at half the delta of the cap.
    pub epsilon: Epsilon,
    /// The delta of such a whole: in zCDP mode half the delta of the cap, for the conversion, and `left.delta`.
    pub delta: Delta,
}

fn half(delta: Delta) -> Delta {
    Delta::new(round::mul_down(delta.value(), 0.5).max(0.0)).expect("half of a delta is one")
}

/// The largest amount that was seen to pass the conversion. Whatever the conversion does in its last digits, the answer has
/// itself been tested. At most 65 doublings and 128 halvings.
fn rho_max(epsilon: Epsilon, delta: Delta) -> Amount {
    let passes = |units: u128| {
        let rho = Rho::new(Amount(units).to_f64_up()).expect("an amount is finite");
        zcdp::delta(rho, epsilon).is_ok_and(|found| found <= delta)
    };
    // No loss has no delta, so zero passes.
    let (mut good, mut bad) = (0, 1_u128 << AMOUNT_BITS);
    while passes(bad) {
        good = bad;
        match bad.checked_mul(2) {
            Some(twice) => bad = twice,
            None => return Amount(good),
        }
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if passes(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Amount(good)
}

#[cfg(test)]
#[path = "budget_test.rs"]
mod tests;
