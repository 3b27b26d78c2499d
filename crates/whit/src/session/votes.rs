//! # Votes of teachers are aggregated at the expense of a ledger
//! Teachers were trained on parts of a private table; what their votes tell is paid from the ledger of its catalog, whole, before noise is drawn and any answer leaves.
//!
//! **Whom it protects.** A catalog protects units, by adding or removing one. All rows of a unit must have gone to one teacher, and to which one must not depend on other units: whoever
//! trained the teachers vouches for that. Then a unit more or less changes the votes of one teacher, which is what the event speaks of.
//!
//! **What was read before.** The votes were read and checked, so that what cannot be aggregated is refused before it is paid. Whether they fit is told to whoever has their file.

use whit_accounting::price;
use whit_accounting::reserve::Filter;
use whit_core::{Bits, Delta, Entropy, Neighbours, Secret};
use whit_learn::Payment;
use whit_learn::pate::{Aggregation, Outcome, Votes};
use whit_sql::Catalog;

use super::rehearsal::{opening, verdict};
use super::{Charge, Error, Remaining, Result, Session, account, terms};

/// Which votes, on whose expense.
#[derive(Clone, Copy, Debug)]
pub struct Election<'a> {
    /// The private table of the catalog that the teachers were trained on.
    pub table: &'a str,
    /// What is done.
    pub aggregation: &'a Aggregation,
    /// Who asks.
    pub analyst: Option<&'a str>,
}

/// An aggregation that was paid from a ledger.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elected {
    /// What the teachers' votes tell.
    pub outcome: Outcome,
    /// What was charged.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// The hash that commits the ledger to this outcome and everything before it.
    pub receipt: String,
}

impl Session {
    /// Charges the whole aggregation, and then tells what it tells.
    pub fn elect(
        &self,
        election: &Election<'_>,
        votes: &Secret<Votes>,
        entropy: &mut impl Entropy,
    ) -> Result<Elected> {
        let aggregation = election.aggregation;
        let account = self.account(election.analyst)?;
        check(&self.catalog, election)?;
        // Shape is public.
        let shape = aggregation.check(votes.as_ref().expose());
        shape.map_err(whit_learn::Error::from)?;
        self.ledger.running()?;
        let (filter, delta) = priced(self.filter, aggregation)?;
        let cost = filter.cost(aggregation.event())?;
        let charge = Charge::new(price(aggregation.event(), delta)?, &cost);
        let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
        let id = format!("{:016x}{:016x}", bits.word(), bits.word());
        let mut journal = self.ledger.charge_once();
        let permit = filter.reserve(aggregation.event(), &account, &mut journal)?;
        let (payment, redeemed) = Payment::charged(aggregation, permit, id)?;
        // After this only a lack of entropy fails, which says nothing about votes.
        let outcome = aggregation.run(votes, payment, entropy)?;
        let stored = serde_json::to_string(&outcome).expect("plain data");
        let settled = self.ledger.settle_and_stand(redeemed, &stored, &account);
        let (receipt, standings) = settled.map_err(Error::Unsettled)?;
        Ok(Elected {
            outcome,
            charge,
            remaining: Remaining::new(&standings),
            receipt: receipt.to_string(),
        })
    }
}

/// Would an aggregation be charged, by a ledger that begins with it?
pub fn rehearse_election(catalog: &Catalog, election: &Election<'_>) -> Result<()> {
    let account = account(catalog, election.analyst)?;
    check(catalog, election)?;
    let (filter, _) = priced(Filter::new(terms(catalog).mode), election.aggregation)?;
    let event = election.aggregation.event();
    verdict(&filter, event, &account, opening(catalog, &account)?)
}

fn priced(filter: Filter, aggregation: &Aggregation) -> Result<(Filter, Delta)> {
    let delta = Delta::new(aggregation.terms().delta).map_err(whit_learn::Error::from)?;
    Ok((filter.with_delta(delta), delta))
}

/// The table is private, and the event is about its units.
fn check(catalog: &Catalog, election: &Election<'_>) -> Result<()> {
    let table = catalog.table(election.table);
    if table.and_then(|table| table.unit()).is_none() {
        return Err(Error::NoTable {
            table: election.table.to_owned(),
        });
    }
    let given = election.aggregation.terms().neighbours;
    if given != Neighbours::AddRemove {
        return Err(Error::OtherRelation {
            budget: Neighbours::AddRemove,
            given,
        });
    }
    Ok(())
}
