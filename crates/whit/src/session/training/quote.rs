//! What a run would be charged, and whether it would be.

use std::path::Path;

use serde::Serialize;
use whit_accounting::price;
use whit_accounting::reserve::{Account, Filter, Refusal, Standing};
use whit_core::{Delta, Event, Fault, Neighbours};
use whit_learn::Priced;
use whit_learn::checkpoint::Place;
use whit_sql::{Catalog, Tables};

use super::{Desk, Order, Planned, check, protect_examples, room};
use crate::session::rehearsal::{opening, verdict};
use crate::session::{Charge, Error, Left, Remaining, Result, Session, account, reply, terms};

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
    /// Was it begun in its folder and paid for, so that it would go on and be charged nothing?
    pub goes_on: bool,
    /// Why the run would be refused now, if it would.
    pub objection: Option<String>,
}

impl Session {
    /// What a run would be charged. Reads no private row, charges nothing.
    pub fn quote<P: Planned>(&self, order: &Order<'_, P>) -> Result<Quoted> {
        let account = self.account(order.analyst)?;
        let recipe = self.protect_examples(order)?;
        check(order, &recipe)?;
        let standings = self.ledger.standings(&account)?;
        let mut quoted = quoted(&self.catalog, &self.filter, order, &account, standings)?;
        if let Err(stopped) = self.ledger.running() {
            quoted.room = 0;
            quoted.objection = Some(stopped.to_string());
        }
        Ok(quoted)
    }

    /// The same for a run in a folder: if it was begun there and is paid for, it would go on and pay nothing.
    pub fn quote_at<P: Planned>(&self, order: &Order<'_, P>, desk: &Desk<'_>) -> Result<Quoted> {
        let mut quoted = self.quote(order)?;
        let run = order.plan.run(&self.protect_examples(order)?);
        if !Place::is_begun(desk.out, &run) {
            return Ok(quoted);
        }
        let account = self.account(order.analyst)?;
        let begun = self.paid_before(&run, &account, desk);
        let begun = begun.and_then(|begun| Ok(order.plan.goes_on(&begun.place)?));
        match begun {
            Ok(()) => {
                quoted.goes_on = true;
                quoted.charge = quoted.charge.nothing();
                quoted.objection = None;
            }
            Err(refused) => {
                quoted.room = 0;
                quoted.objection = Some(refused.to_string());
            }
        }
        Ok(quoted)
    }
}

/// The same by a ledger that does not exist yet, and that this does not make.
pub fn quote_unopened<P: Planned>(
    catalog: &Catalog,
    folder: &Path,
    order: &Order<'_, P>,
) -> Result<Quoted> {
    let account = account(catalog, order.analyst)?;
    let tables = Tables::open(catalog, folder)?;
    let recipe = protect_examples(catalog, &tables, folder, order)?;
    check(order, &recipe)?;
    let filter = Filter::new(terms(catalog).mode);
    let standings = opening(catalog, &account)?;
    quoted(catalog, &filter, order, &account, standings)
}

/// Would a run be charged, by a ledger that begins with it? Reads no private row, and leaves nothing behind.
pub fn rehearse_run<P: Planned>(
    catalog: &Catalog,
    folder: &Path,
    order: &Order<'_, P>,
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
    let run = order.plan.run(&recipe);
    if Place::is_begun(desk.out, &run) {
        let path = desk.out.to_owned();
        return Err(Error::OtherRun { path });
    }
    Place::is_own(desk.out, &run).map_err(whit_learn::Error::from)?;
    fits(&filter, &event, &account, standings)?;
    Ok(Place::rehearse(desk.out).map_err(whit_learn::Error::from)?)
}

fn quoted<P: Planned>(
    catalog: &Catalog,
    filter: &Filter,
    order: &Order<'_, P>,
    account: &Account,
    standings: Vec<Standing>,
) -> Result<Quoted> {
    let covered = cover(catalog, filter, order.plan, &standings)?;
    quoted_for(covered, filter, account, standings)
}

/// The same for what is charged.
pub(in crate::session) fn quoted_for(
    (event, charge): (Event, Charge),
    filter: &Filter,
    account: &Account,
    standings: Vec<Standing>,
) -> Result<Quoted> {
    let remaining = Remaining::new(&standings);
    let room = reply::room(&charge, &standings);
    let refused = match fits(filter, &event, account, standings) {
        Err(refused @ (Error::Refused(_) | Error::Advised { .. })) => Some(refused),
        other => other.map(|()| None)?,
    };
    Ok(Quoted {
        charge,
        remaining,
        // What is told is rounded, and the verdict is not.
        room: if refused.is_some() { 0 } else { room.max(1) },
        goes_on: false,
        objection: refused.map(|refused| format!("{refused}; {}", refused.suggestion())),
    })
}

/// Refuses a run for which there is no room, and says what is left in the words of the budget.
pub(in crate::session) fn fits(
    filter: &Filter,
    event: &Event,
    account: &Account,
    standings: Vec<Standing>,
) -> Result<()> {
    let Err(refused) = verdict(filter, event, account, standings.clone()) else {
        return Ok(());
    };
    let Error::Refused(Refusal::Exhausted {
        level,
        what: "rho",
        left,
        ..
    }) = &refused
    else {
        return Err(refused);
    };
    let standing = standings.iter().find(|standing| standing.level == *level);
    let Some(Left { epsilon, delta }) = standing.and_then(Left::of) else {
        return Err(refused);
    };
    // A run of (epsilon, delta) alone is charged about epsilon²/2.
    let run = (2.0 * left.to_f64_down()).sqrt();
    let suggestion = format!(
        "left are epsilon {} at delta {} in all, which is enough for a run of about epsilon {} in [plan]; ask for that, or let the owner raise the cap",
        digits(epsilon),
        digits(delta),
        digits(run)
    );
    Err(Error::Advised {
        error: Box::new(refused),
        suggestion,
    })
}

/// Two digits of a number.
fn digits(number: f64) -> String {
    let rounded = format!("{number:.1e}").parse::<f64>();
    match rounded.unwrap_or(number) {
        number if number == 0.0 || number >= 1e-4 => number.to_string(),
        number => format!("{number:e}"),
    }
}

/// The event to charge, and what that adds.
pub(super) fn cover<P: Planned>(
    catalog: &Catalog,
    filter: &Filter,
    plan: &P,
    standings: &[Standing],
) -> Result<(Event, Charge)> {
    cover_at(catalog, filter, (plan, plan.delta()), standings)
}

/// The same for whatever is priced at a delta.
pub(in crate::session) fn cover_at(
    catalog: &Catalog,
    filter: &Filter,
    (plan, delta): (&impl Priced, Delta),
    standings: &[Standing],
) -> Result<(Event, Charge)> {
    let relation = plan.event().neighbours();
    if relation != Neighbours::AddRemove {
        return Err(Error::OtherRelation {
            budget: Neighbours::AddRemove,
            given: relation,
        });
    }
    let (_, slack) = catalog.budget();
    if slack == Delta::ZERO && delta > Delta::ZERO {
        let delta = delta.value();
        return Err(Error::NoDelta { delta });
    }
    let guarantee = plan.guarantee()?;
    let alone = price(&guarantee, delta)?;
    let simple = filter.cost(&guarantee)?;
    Ok(match filter.cost(plan.event()) {
        Ok(own) if room::takes_less(&own, &simple, standings) => {
            (plan.event().clone(), Charge::new(alone, &own))
        }
        // Of a search over noisy runs there is no number that this ledger adds up, but of its guarantee.
        Ok(_) | Err(whit_accounting::Error::NoGuarantee { .. }) => {
            (guarantee, Charge::new(alone, &simple))
        }
        Err(refused) => return Err(refused.into()),
    })
}
