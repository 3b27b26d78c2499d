//! # Privacy filters
//! **Definition.** Mechanisms are chosen one by one, each *with its parameters*, by all answers so far. A filter lets
//! a mechanism run or not, by the losses alone; what it let run is one mechanism, and a filter is valid if that
//! mechanism keeps the cap, whoever chooses \[RRUV16\]. Composition theorems for parameters that were fixed
//! beforehand do not say this.
//!
//! **One rule.** Sums of losses stay within the cap on every path. A refused loss changes nothing, and a smaller one
//! may follow.
//!
//! **Theorem**, for interactions of at most `n` rounds, for every `n`:
//! 1. *Pure*, `Σ ε_i <= ε`: the whole is `ε`-DP. The likelihood ratio of a transcript is a product of factors
//!    `<= e^(ε_i)`.
//! 2. *Approximate*, `Σ ε_i <= ε` and `Σ δ_i <= δ`: the whole is `(ε, δ)`-DP \[RRUV16\].
//!    *Proof*, backwards: what follows a first mechanism is, whatever it answered, `(ε-ε_1, δ-δ_1)`-DP by induction,
//!    for `ε_1` and `δ_1` were chosen before the answer; then basic composition of two, `approximate.rs`.
//! 3. *Gaussian*, `Σ μ_i² <= μ²`: the whole is `μ`-GDP \[ST22, KTH23\]. *Proof*, the same: whatever the first one
//!    answered, the rest is `√(μ²-μ_1²)`-GDP, one and the same curve for all answers; then composition of two,
//!    `gdp.rs`.
//! 4. *Rényi* at one order `α` that was fixed beforehand, `Σ ρ_i <= ρ`: the whole has `D_α <= ρ` [FZ21, Thm 3.1].
//!    *Proof.* Let `Z_i` be the likelihood ratio of the first `i` answers. `Z_i^α e^(-(α-1)(ρ_1 + … + ρ_i))` has,
//!    under `Q`, an expectation that does not grow: given the past, `ρ_i` is known and
//!    `E_Q[(Z_i/Z_(i-1))^α] <= e^((α-1)ρ_i)`. So `E_Q[Z_n^α e^(-(α-1)Σρ_i)] <= 1`, and the sum is at most `ρ` on
//!    every path.
//! 5. *Concentrated*, `Σ ρ_i <= ρ`: that is 4 at every order at once; the whole is `ρ`-zCDP.
//! 6. *Advanced*: of `(ε_i, δ_i)`-DP mechanisms, while `√(2 ln(1/δ') Σ ε_i²) + Σ ε_i²/2 <= ε` and `Σ δ_i <= δ''`: the
//!    whole is `(ε, δ'+δ'')`-DP [WRRW23, Thm 1]. *Proof.* An `(ε_i, δ_i)`-DP pair is `P_i = (1-δ_i) P_i' + δ_i P_i''`
//!    and `Q_i` alike, where `P_i'` and `Q_i'` are within `e^(±ε_i)` of each other \[KOV15\], so
//!    `D_α(P_i' ‖ Q_i') <= α ε_i²/2` [BS16, Prop. 1.4]. Let `P'` and `Q'` be the measures of transcripts in which
//!    every step came from the first part: `P <= P' + δ''` on every event, as the second parts are entered with
//!    probability at most `E[Σ δ_i]`, and `Q' <= Q`. The factors `1-δ_i` are common and at most one, so 4 holds for
//!    `P'` and `Q'` with `ρ = αΣε_i²/2`; and the conversion of zCDP, `ε = ρ + 2√(ρ ln(1/δ'))` [BS16, Prop. 1.3], is
//!    pointwise in the ratio.
//!
//! **What is not offered.** Composing the curves of a path and stopping when they cross `(ε, δ)` is *not* valid: how
//! much of `δ` an answer has used up depends on the answer, and who chooses can pick the continuation that has most
//! left to gain. The test beside this file convicts such a filter on four coin flips, exactly.
//!
//! **How the error is bounded.** Sums are rounded up, caps down.

use std::fmt;

use whit_core::{Delta, Epsilon, Fault, FaultKind, Mu, Order, Rho, round};

use crate::gaussian::Gaussian;
use crate::rdp::epsilon_upper;
use crate::{Bracket, Error, Result, zcdp};

/// Something that adds up, with its cap.
pub trait Loss: Copy + fmt::Debug {
    /// What may be spent in all.
    type Cap: Copy + fmt::Debug;
    /// The sums so far, rounded up.
    type Spent: Copy + fmt::Debug + Default + PartialEq;

    /// The sums with this loss.
    fn add_to(self, spent: Self::Spent) -> Self::Spent;

    /// Whether sums are within a cap, and if not, what is missing.
    fn fits(spent: Self::Spent, cap: Self::Cap) -> std::result::Result<(), Exhausted>;
}

/// The cap does not cover a loss.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the {what} would be {needed:e}, and the cap is {cap:e}")]
pub struct Exhausted {
    /// Which of the sums.
    pub what: &'static str,
    /// What it would be with the loss.
    pub needed: f64,
    /// What it may be.
    pub cap: f64,
}

impl Fault for Exhausted {
    fn kind(&self) -> FaultKind {
        FaultKind::Exhausted
    }

    fn code(&self) -> &'static str {
        "filter_exhausted"
    }

    fn suggestion(&self) -> String {
        "ask for something that loses less, or for a larger budget".into()
    }
}

/// Lets mechanisms run while the sums of their losses are within the cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter<L: Loss> {
    cap: L::Cap,
    spent: L::Spent,
}

impl<L: Loss> Filter<L> {
    /// Nothing spent yet.
    pub fn new(cap: L::Cap) -> Self {
        Self {
            cap,
            spent: L::Spent::default(),
        }
    }

    /// The cap, which the whole keeps whatever is spent.
    pub fn cap(&self) -> L::Cap {
        self.cap
    }

    /// The sums so far, rounded up.
    pub fn spent(&self) -> L::Spent {
        self.spent
    }

    /// Whether the cap covers this loss, too.
    pub fn admits(&self, loss: L) -> std::result::Result<(), Exhausted> {
        L::fits(loss.add_to(self.spent), self.cap)
    }

    /// Spends, if the cap covers it; otherwise nothing changes. To be called before the mechanism runs.
    pub fn try_spend(&mut self, loss: L) -> std::result::Result<(), Exhausted> {
        let spent = loss.add_to(self.spent);
        L::fits(spent, self.cap)?;
        self.spent = spent;
        Ok(())
    }
}

/// `sum <= cap`, also for what overflowed.
fn within(what: &'static str, needed: f64, cap: f64) -> std::result::Result<(), Exhausted> {
    if needed <= cap {
        Ok(())
    } else {
        Err(Exhausted { what, needed, cap })
    }
}

impl Loss for Epsilon {
    type Cap = Self;
    type Spent = f64;

    fn add_to(self, spent: f64) -> f64 {
        round::add_up(spent, self.value())
    }

    fn fits(spent: f64, cap: Self) -> std::result::Result<(), Exhausted> {
        within("sum of epsilons", spent, cap.value())
    }
}

impl Loss for Rho {
    type Cap = Self;
    type Spent = f64;

    fn add_to(self, spent: f64) -> f64 {
        round::add_up(spent, self.value())
    }

    fn fits(spent: f64, cap: Self) -> std::result::Result<(), Exhausted> {
        within("sum of concentrated losses", spent, cap.value())
    }
}

impl Filter<Rho> {
    /// The epsilon of the whole at `delta`.
    pub fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        zcdp::epsilon(self.cap, delta)
    }
}

/// Gaussian losses: their squares add up.
impl Loss for Mu {
    type Cap = Self;
    type Spent = f64;

    fn add_to(self, spent: f64) -> f64 {
        round::add_up(spent, round::mul_up(self.value(), self.value()))
    }

    fn fits(spent: f64, cap: Self) -> std::result::Result<(), Exhausted> {
        let cap = round::mul_down(cap.value(), cap.value());
        within("sum of squares of mu", spent, cap.max(0.0))
    }
}

impl Filter<Mu> {
    /// The epsilon of the whole at `delta`.
    pub fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        let mu = Bracket::exact(self.cap.value());
        let found = Gaussian { mu }.epsilon(delta.value()).upper();
        Epsilon::new(found).map_err(|_| Error::Unbounded {
            what: "finite epsilon",
        })
    }
}

/// A bound on the Rényi divergence of one order, which all losses of a filter share: the caller looks it up at that
/// order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenyiLoss {
    /// The order it was looked up at.
    pub order: Order,
    /// The divergence.
    pub divergence: Rho,
}

/// What a Rényi filter has added up: a loss of another order spoils the sum for good.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RenyiSpent {
    order: Option<f64>,
    divergence: f64,
}

impl Loss for RenyiLoss {
    type Cap = Self;
    type Spent = RenyiSpent;

    fn add_to(self, spent: RenyiSpent) -> RenyiSpent {
        let order = self.order.value();
        let same = spent.order.is_none_or(|before| before == order);
        let divergence = if same {
            round::add_up(spent.divergence, self.divergence.value())
        } else {
            f64::INFINITY
        };
        RenyiSpent {
            order: Some(order),
            divergence,
        }
    }

    fn fits(spent: RenyiSpent, cap: Self) -> std::result::Result<(), Exhausted> {
        let order = cap.order.value();
        let needed = if spent.order.is_none_or(|found| found == order) {
            spent.divergence
        } else {
            // Nothing is known at the order of the cap.
            f64::INFINITY
        };
        within("sum of Rényi divergences", needed, cap.divergence.value())
    }
}

impl Filter<RenyiLoss> {
    /// The epsilon of the whole at `delta`.
    pub fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        let RenyiLoss { order, divergence } = self.cap;
        let found = epsilon_upper(divergence.value(), order.value(), delta.value());
        Epsilon::new(found).map_err(|_| Error::Unbounded {
            what: "finite epsilon",
        })
    }
}

/// An `(epsilon, delta)`-DP mechanism, added up by basic composition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApproximateLoss {
    /// The bound on the loss.
    pub epsilon: Epsilon,
    /// The slack.
    pub delta: Delta,
}

/// Two sums.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct ApproximateSpent {
    epsilon: f64,
    delta: f64,
}

impl Loss for ApproximateLoss {
    type Cap = Self;
    type Spent = ApproximateSpent;

    fn add_to(self, spent: ApproximateSpent) -> ApproximateSpent {
        ApproximateSpent {
            epsilon: round::add_up(spent.epsilon, self.epsilon.value()),
            delta: round::add_up(spent.delta, self.delta.value()),
        }
    }

    fn fits(spent: ApproximateSpent, cap: Self) -> std::result::Result<(), Exhausted> {
        within("sum of epsilons", spent.epsilon, cap.epsilon.value())?;
        within("sum of deltas", spent.delta, cap.delta.value())
    }
}

/// An `(epsilon, delta)`-DP mechanism, added up by squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdvancedLoss(pub ApproximateLoss);

/// What an advanced filter keeps: the whole is `(epsilon, spread + slack)`-DP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdvancedCap {
    /// The epsilon of the whole.
    pub epsilon: Epsilon,
    /// `δ'`, for the spread of the losses; positive, or nothing with a loss is admitted.
    pub spread: Delta,
    /// `δ''`, for the deltas of the parts.
    pub slack: Delta,
}

/// The sum of the squares of the epsilons, and that of the deltas.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct AdvancedSpent {
    square: f64,
    delta: f64,
}

impl Loss for AdvancedLoss {
    type Cap = AdvancedCap;
    type Spent = AdvancedSpent;

    fn add_to(self, spent: AdvancedSpent) -> AdvancedSpent {
        let epsilon = self.0.epsilon.value();
        AdvancedSpent {
            square: round::add_up(spent.square, round::mul_up(epsilon, epsilon)),
            delta: round::add_up(spent.delta, self.0.delta.value()),
        }
    }

    fn fits(spent: AdvancedSpent, cap: AdvancedCap) -> std::result::Result<(), Exhausted> {
        let square = Bracket::exact(spent.square);
        let spread = -Bracket::exact(cap.spread.value()).ln();
        let width = (Bracket::exact(2.0) * spread * square).sqrt();
        let needed = (width + square * Bracket::exact(0.5)).upper();
        let needed = if spent.square == 0.0 { 0.0 } else { needed };
        within("epsilon of the whole", needed, cap.epsilon.value())?;
        within("sum of deltas", spent.delta, cap.slack.value())
    }
}

#[cfg(test)]
#[path = "filter_test.rs"]
mod tests;
