//! What a run would be charged, and whether it would be.

use std::path::Path;

use serde::Serialize;
use whit_accounting::price;
use whit_accounting::reserve::{Account, Filter, Standing};
use whit_core::{Delta, Event, Neighbours};
use whit_learn::Plan;
use whit_learn::checkpoint::Place;
use whit_sql::{Catalog, Tables};

use super::{Desk, Order, check, protect_examples, room};
use crate::session::rehearsal::{opening, verdict};
use crate::session::{Charge, Error, Remaining, Result, Session, account, reply, terms};

/// What a run would be charged.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Quoted {
    /// What it would be charged.
    pub charge: Charge,
    /// What is left as long as nothing is charged.
    pub remaining: Remaining,
    /// For how many such runs there is room, at least.
    pub room: u64,
    /// Why the run would be refused now, if it would.
    pub objection: Option<String>,
}

impl Session {
    /// What a run would be charged. Reads no private row, charges nothing.
    pub fn quote(&self, order: &Order<'_>) -> Result<Quoted> {
        let account = self.account(order.analyst)?;
        let recipe = self.protect_examples(order)?;
        recipe.data.check().map_err(whit_learn::Error::from)?;
        let standings = self.ledger.standings(&account)?;
        let mut quoted = quoted(&self.catalog, &self.filter, order, &account, standings)?;
        if let Err(stopped) = self.ledger.running() {
            quoted.objection = Some(stopped.to_string());
        }
        Ok(quoted)
    }
}

/// The same by a ledger that does not exist yet, and that this does not make.
pub fn quote_unopened(catalog: &Catalog, folder: &Path, order: &Order<'_>) -> Result<Quoted> {
    let account = account(catalog, order.analyst)?;
    let tables = Tables::open(catalog, folder)?;
    let recipe = protect_examples(catalog, &tables, folder, order)?;
    recipe.data.check().map_err(whit_learn::Error::from)?;
    let filter = Filter::new(terms(catalog).mode);
    let standings = opening(catalog, &account)?;
    quoted(catalog, &filter, order, &account, standings)
}

/// Would a run be charged, by a ledger that begins with it? Reads no private row, and leaves nothing behind.
pub fn rehearse_run(
    catalog: &Catalog,
    folder: &Path,
    order: &Order<'_>,
    desk: &Desk<'_>,
) -> Result<()> {
    let account = account(catalog, order.analyst)?;
    let tables = Tables::open(catalog, folder)?;
    let recipe = protect_examples(catalog, &tables, folder, order)?;
    let (filter, standings) = (
        Filter::new(terms(catalog).mode),
        opening(catalog, &account)?,
    );
    let (event, _) = cover(catalog, &filter, order.plan, &standings)?;
    check(order, &recipe)?;
    // A ledger that begins now has not paid for what was begun before.
    if Place::is_begun(desk.out, &recipe.run(order.plan)) {
        let path = desk.out.to_owned();
        return Err(Error::OtherRun { path });
    }
    verdict(&filter, &event, &account, standings)?;
    Ok(Place::rehearse(desk.out).map_err(whit_learn::Error::from)?)
}

fn quoted(
    catalog: &Catalog,
    filter: &Filter,
    order: &Order<'_>,
    account: &Account,
    standings: Vec<Standing>,
) -> Result<Quoted> {
    let (event, charge) = cover(catalog, filter, order.plan, &standings)?;
    let remaining = Remaining::new(&standings);
    let room = reply::room(&charge, &standings);
    let refused = match verdict(filter, &event, account, standings) {
        Err(refused @ Error::Refused(_)) => Some(refused),
        other => other.map(|()| None)?,
    };
    Ok(Quoted {
        charge,
        remaining,
        // What is told is rounded, and the verdict is not.
        room: if refused.is_some() { 0 } else { room.max(1) },
        objection: refused.map(|refused| refused.to_string()),
    })
}

/// The event to charge, and what that adds.
pub(super) fn cover(
    catalog: &Catalog,
    filter: &Filter,
    plan: &Plan,
    standings: &[Standing],
) -> Result<(Event, Charge)> {
    if plan.relation() != Neighbours::AddRemove {
        return Err(Error::OtherRelation {
            budget: Neighbours::AddRemove,
            given: plan.relation(),
        });
    }
    let (_, slack) = catalog.budget();
    if slack == Delta::ZERO {
        let delta = plan.delta().value();
        return Err(Error::NoDelta { delta });
    }
    let guarantee = plan.guarantee()?;
    let alone = price(&guarantee, plan.delta())?;
    let (own, simple) = (filter.cost(plan.event())?, filter.cost(&guarantee)?);
    Ok(match room::takes_less(&own, &simple, standings) {
        true => (plan.event().clone(), Charge::new(alone, &own)),
        false => (guarantee, Charge::new(alone, &simple)),
    })
}
