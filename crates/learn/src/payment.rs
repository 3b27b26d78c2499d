//! # Who has paid
//! A plan says what a run would do and what that costs; it can be made and priced as often as anybody likes. To *take* its steps somebody
//! must have paid: a [`Payment`] is that, once. It is used up by the one [sampler](crate::plan::Plan::sampler) of its run, or by the one fit of a
//! [classical model](crate::classical). What can be paid for is [`Priced`], and there are three ways to get a payment:
//! - [`Payment::charged`]: for a [`Permit`], which there is once a journal has kept the charge of the whole run;
//! - [`Payment::uncharged`]: by the statement that no ledger keeps this budget, which the model's card repeats;
//! - within a [`Place`](crate::checkpoint::Place): a run that was paid for and stopped goes on, for the steps that were never begun.
//!
//! **Claim.** The steps that are ever taken for one permit are at most those of the event that it was paid for.
//! **Proof.** A permit is not copied and makes one payment, a payment one sampler, and a sampler draws as many batches as its plan has steps,
//! less those begun before. A batch is used up by the one release of its step. A payment that is laid down in a place is used up by that, and
//! from there on the place counts steps before they are taken (see [`checkpoint`](crate::checkpoint)). A classical plan takes all its rounds
//! in the one fit that uses the payment up, and a [search](crate::search) all its runs in the one choice that does: as many as its event says, each with a payment that is made
//! for it there. That a guarantee covers its event is vouched for by the plans of this crate, and nobody else can
//! be [`Priced`]. ∎
//!
//! ```
//! use whit_learn::{Draft, NoiseDraft, Payment, Plan, SamplerDraft, Uncharged};
//! # use whit_core::Neighbours;
//!
//! let plan = Plan::new(&Draft {
//!     sampler: SamplerDraft::Poisson { rate: 0.5 },
//!     steps: 10,
//!     clip_norm: 1.0,
//!     adaptive: None,
//!     noise: NoiseDraft::Multiplier(2.0),
//!     delta: 1e-5,
//!     relation: Neighbours::AddRemove,
//!     examples_public: 100,
//! })?;
//! let payment = Payment::uncharged(&plan, Uncharged);
//! let sampler = plan.sampler(97, payment)?;
//! # Ok::<(), whit_learn::Error>(())
//! ```
//! A plan is no payment,
//! ```compile_fail,E0061
//! # use whit_learn::Plan;
//! fn for_nothing(plan: &Plan) {
//!     let _ = plan.sampler(97);
//! }
//! ```
//! a payment is not used twice,
//! ```compile_fail,E0382
//! # use whit_learn::{Payment, Plan};
//! fn twice(plan: &Plan, payment: Payment) {
//!     let _first = plan.sampler(97, payment);
//!     let _second = plan.sampler(97, payment);
//! }
//! ```
//! not copied,
//! ```compile_fail,E0599
//! # use whit_learn::Payment;
//! fn copy(payment: &Payment) -> Payment {
//!     Payment::clone(payment)
//! }
//! ```
//! nor made by hand; nor does anybody say what else a cheap guarantee covers;
//! ```compile_fail,E0277
//! # use whit_core::Event;
//! struct Cheap(Event, Event);
//! impl whit_learn::Priced for Cheap {
//!     fn event(&self) -> &Event {
//!         &self.0
//!     }
//!     fn guarantee(&self) -> whit_learn::Result<Event> {
//!         Ok(self.1.clone())
//!     }
//! }
//! ```
//! and neither is a permit used twice.
//! ```compile_fail,E0451
//! # use whit_learn::{Payer, Payment};
//! fn forge(event: [u8; 32]) -> Payment {
//!     Payment { event, payer: Payer::Nobody, begun: 0 }
//! }
//! ```
//! ```compile_fail,E0382
//! # use whit_accounting::reserve::Permit;
//! # use whit_learn::{Payment, Plan};
//! fn two_runs(plan: &Plan, permit: Permit) {
//!     let _first = Payment::charged(plan, permit, "first".into());
//!     let _second = Payment::charged(plan, permit, "second".into());
//! }
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};
use whit_accounting::reserve::{Permit, Redeemed};
use whit_core::Event;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::sampler::Fingerprint;
use crate::search::SearchPlan;

pub(crate) mod sealed {
    /// Whoever could say of a foreign event that a guarantee of its own covers it could pay for the one with the other.
    pub trait Sealed {}
    impl Sealed for super::Plan {}
    impl Sealed for super::SearchPlan {}
}

/// What is paid for: something that is done to the data once, described before any data is read. For the plans of this crate alone.
pub trait Priced: sealed::Sealed {
    /// All that is done to the data.
    fn event(&self) -> &Event;
    /// A guarantee, as an event, that was proven of [`event`](Self::event), so that whoever has paid for it has paid for that.
    fn guarantee(&self) -> Result<Event>;
}

impl Priced for Plan {
    fn event(&self) -> &Event {
        Self::event(self)
    }

    fn guarantee(&self) -> Result<Event> {
        Self::guarantee(self)
    }
}

impl Priced for SearchPlan {
    fn event(&self) -> &Event {
        Self::event(self)
    }

    fn guarantee(&self) -> Result<Event> {
        Self::guarantee(self)
    }
}

/// The statement that no ledger keeps the budget of the data, so that nobody is charged: whoever says so adds up what runs cost by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncharged;

/// That what one plan does may be done, once.
#[must_use = "what was paid is spent, and dropping the payment refunds nothing"]
pub struct Payment {
    event: Fingerprint,
    payer: Payer,
    begun: u64,
}

/// Whose budget a run was charged to. Public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Payer {
    /// No ledger was charged.
    Nobody,
    /// A ledger.
    Ledger {
        /// The data set whose budget it keeps.
        dataset: String,
        /// The number of the charge in the ledger.
        sequence: u64,
        /// What tells this run from all others of the same plan, drawn when it was paid for.
        run: String,
    },
}

impl Payment {
    /// For a permit of the plan's [event](Priced::event), or of its [guarantee](Priced::guarantee), which covers it. `run` tells this run from all others of the
    /// same plan. What is redeemed settles the charge. A permit for anything else is lost, and stays paid.
    pub fn charged(plan: &impl Priced, permit: Permit, run: String) -> Result<(Self, Redeemed)> {
        let guarantee = plan.guarantee()?;
        let paid_for = match permit.fingerprint() == guarantee.fingerprint() {
            true => &guarantee,
            false => plan.event(),
        };
        let redeemed = permit.redeem(paid_for).map_err(|_| Error::OtherPermit)?;
        let payer = Payer::Ledger {
            dataset: redeemed.dataset().to_owned(),
            sequence: redeemed.sequence(),
            run,
        };
        Ok((Self::fresh(plan, payer), redeemed))
    }

    /// For nothing, by the word of whoever trains.
    pub fn uncharged(plan: &impl Priced, _: Uncharged) -> Self {
        Self::fresh(plan, Payer::Nobody)
    }

    fn fresh(plan: &impl Priced, payer: Payer) -> Self {
        Self {
            event: plan.event().fingerprint(),
            payer,
            begun: 0,
        }
    }

    /// For the steps that a place has not counted yet. Only what counts them before they are taken may ask for this, and a search for its own runs, once it has used its
    /// payment up.
    pub(crate) fn rest(event: Fingerprint, payer: Payer, begun: u64) -> Self {
        Self {
            event,
            payer,
            begun,
        }
    }

    /// Who has paid.
    pub fn payer(&self) -> &Payer {
        &self.payer
    }

    /// How many steps were begun before, if it is for a run with this event.
    pub(crate) fn use_up(self, event: &Fingerprint) -> Result<u64> {
        match self.event == *event {
            true => Ok(self.begun),
            false => Err(Error::OtherPlan),
        }
    }

    /// Who has paid, for what lays it down in a place or takes all steps at once: none of them may have been begun.
    pub(crate) fn lay_down(self, event: &Fingerprint) -> Result<Payer> {
        match self.event == *event && self.begun == 0 {
            true => Ok(self.payer),
            false => Err(Error::OtherPlan),
        }
    }
}

/// As a card says it.
impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("no ledger"),
            Self::Ledger {
                dataset, sequence, ..
            } => write!(f, "the ledger of {dataset}, record {sequence}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use whit_accounting::budget::{Cap, Mode};
    use whit_accounting::reserve::{Account, Filter, Memory};
    use whit_core::{Delta, Epsilon, Fault, Neighbours};
    use whit_testkit::Seeded;

    use super::*;
    use crate::draft::{Draft, NoiseDraft, SamplerDraft};

    fn plan(steps: u64) -> Plan {
        Plan::new(&Draft {
            sampler: SamplerDraft::Poisson { rate: 0.5 },
            steps,
            clip_norm: 1.0,
            adaptive: None,
            noise: NoiseDraft::Multiplier(8.0),
            delta: 1e-5,
            relation: Neighbours::AddRemove,
            examples_public: 100,
        })
        .expect("a plan")
    }

    fn permit(event: &whit_core::Event) -> Permit {
        let (epsilon, delta) = (Epsilon::new(100.0), Delta::new(0.5));
        let (epsilon, delta) = (epsilon.expect("finite"), delta.expect("below one"));
        let cap = Cap::new(Mode::Zcdp, Neighbours::AddRemove, epsilon, delta).expect("a cap");
        let account = Account::new("shop").expect("a name");
        let mut journal = Memory::new("shop", cap);
        let permit = Filter::new(Mode::Zcdp).reserve(event, &account, &mut journal);
        permit.expect("within the cap")
    }

    #[test]
    fn a_permit_pays_for_its_own_plan_by_its_event_or_by_its_guarantee() {
        let (ten, twenty) = (plan(10), plan(20));
        let guarantee = ten.guarantee().expect("finite");
        for event in [ten.event(), &guarantee] {
            let paid = Payment::charged(&ten, permit(event), "a".into());
            let (payment, redeemed) = paid.expect("its own");
            assert_eq!(payment.payer().to_string(), "the ledger of shop, record 1");
            assert_eq!(redeemed.fingerprint(), event.fingerprint());
            let mut sampler = ten.sampler(9, payment).expect("its own");
            let mut entropy = Seeded::new(1);
            for _ in 0..10 {
                assert!(sampler.draw(&mut entropy).is_ok());
            }
            assert!(sampler.draw(&mut entropy).is_err(), "ten were paid for");
            let other = Payment::charged(&twenty, permit(event), "a".into());
            assert_eq!(other.err().map(|error| error.code()), Some("other_permit"));
        }
    }

    /// A classical plan is paid for in the same way, by its event or by its guarantee, and nobody's else.
    #[test]
    fn a_permit_pays_for_one_fit() {
        use crate::classical::{Budget, Classical, Interval, KMeansPlan, Lloyd};
        use crate::data::Dataset;
        use whit_core::Secret;

        let plan_of = |rounds| {
            let budget = (Epsilon::new(1.0), Delta::new(1e-6));
            let budget = (budget.0.expect("finite"), budget.1.expect("below one"));
            let budget = Budget::new(budget.0, budget.1).expect("above zero");
            let (clusters, seed) = (2, 1);
            let lloyd = Lloyd {
                clusters,
                rounds,
                seed,
            };
            let interval = Interval::new(0.0, 1.0).expect("an interval");
            KMeansPlan::new(vec![interval], lloyd, budget).expect("a plan")
        };
        let (two, three) = (plan_of(2), plan_of(3));
        let data = Dataset::with_numbers(vec![1], vec![0.5; 9], vec![0.0; 9]);
        let data = Secret::new(data.expect("fits"));
        let guarantee = two.guarantee().expect("finite");
        for event in [two.event(), &guarantee] {
            let paid = Payment::charged(&two, permit(event), "a".into());
            let (payment, redeemed) = paid.expect("its own");
            assert_eq!(redeemed.fingerprint(), event.fingerprint());
            let fit = two.on(&data).expect("its shape");
            let fitted = fit.release(payment, &mut Seeded::new(2));
            assert_eq!(fitted.expect("paid").event(), two.event());
        }
        let other = Payment::charged(&three, permit(two.event()), "a".into());
        assert_eq!(other.err().map(|error| error.code()), Some("other_permit"));
        for payment in [
            Payment::uncharged(&three, Uncharged),
            Payment::uncharged(&plan(2), Uncharged),
            Payment::rest(two.event().fingerprint(), Payer::Nobody, 1),
        ] {
            let fit = two.on(&data).expect("its shape");
            let refused = fit.release(payment, &mut Seeded::new(3)).err();
            assert_eq!(refused.map(|error| error.code()), Some("other_plan"));
        }
        let refused = plan(2).sampler(9, Payment::uncharged(&two, Uncharged));
        assert_eq!(refused.err().map(|error| error.code()), Some("other_plan"));
    }

    #[test]
    fn a_payment_is_for_one_plan() {
        let (ten, twenty) = (plan(10), plan(20));
        let refused = twenty.sampler(9, Payment::uncharged(&ten, Uncharged));
        assert_eq!(refused.err().map(|error| error.code()), Some("other_plan"));
    }

    #[test]
    fn a_guarantee_is_never_below_what_the_plan_costs() {
        let plan = plan(10);
        let guarantee = plan.guarantee().expect("finite");
        let price = whit_accounting::price(&guarantee, plan.delta()).expect("priced");
        assert!(price.epsilon.value() >= plan.epsilon().upper());
        assert!(price.delta.value() >= plan.delta().value());
    }
}
