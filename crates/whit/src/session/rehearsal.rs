//! What would be refused, before there is a ledger. For doors that make none before there is something to put into it. Reads no private row,
//! and makes nothing.

use std::path::Path;

use whit_accounting::budget::{Cap, Sums};
use whit_accounting::reserve::{Account, Entry, Filter, Journal, Outcome, Standing, Unreserved};
use whit_core::Event;
use whit_ledger::Terms;
use whit_sql::{Catalog, Tables};

use super::error::{Begun, Keys};
use super::{Error, Question, Result, account, plan, statistic, terms};
use crate::stats::Request;

/// Would a question be charged, if there were room?
pub fn rehearse(catalog: &Catalog, folder: &Path, question: &Question) -> Result<()> {
    let account = account(catalog, question.analyst.as_deref())?;
    let tables = Tables::open(catalog, folder)?;
    let (mode, standings) = (terms(catalog).mode, opening(catalog, &account)?);
    let planned = plan(catalog, &tables, question);
    let advise =
        |error: Error| error.about_delta(Keys::Private, mode, Begun::NotYet, || Some(standings));
    let plan = planned.map_err(advise)?;
    let delta = plan.request().delta();
    Filter::new(mode).with_delta(delta).cost(plan.event())?;
    Ok(())
}

/// Would a statistic of a table be charged, by a ledger that begins with it?
pub fn rehearse_statistic(
    catalog: &Catalog,
    folder: &Path,
    table: &str,
    request: Request,
    analyst: Option<&str>,
) -> Result<()> {
    let account = account(catalog, analyst)?;
    let tables = Tables::open(catalog, folder)?;
    let delta = request.delta;
    let plan = statistic::plan(catalog, &tables, table, request)?;
    let filter = Filter::new(terms(catalog).mode).with_delta(delta);
    verdict(&filter, plan.event(), &account, opening(catalog, &account)?)
}

/// Where an account stands in a ledger that begins now.
pub(super) fn opening(catalog: &Catalog, account: &Account) -> Result<Vec<Standing>> {
    let Terms {
        mode,
        neighbours,
        caps,
        ..
    } = terms(catalog);
    let standing = |level| {
        let cap = caps.iter().find(|(capped, ..)| *capped == level);
        let cap = cap.map(|&(_, epsilon, delta)| Cap::new(mode, neighbours, epsilon, delta));
        Ok(Standing {
            level,
            cap: cap.transpose()?,
            spent: Sums::default(),
        })
    };
    account.levels().into_iter().map(standing).collect()
}

/// Refuses what would be refused now, and charges nothing. Somebody else may be faster; then the charge is refused.
pub(super) fn verdict(
    filter: &Filter,
    event: &Event,
    account: &Account,
    standings: Vec<Standing>,
) -> Result<()> {
    match filter.reserve(event, account, &mut Asked(standings)) {
        // Nothing was kept, so there is no permit.
        Ok(_) | Err(Unreserved::Journal(Fits)) => Ok(()),
        Err(Unreserved::NoPrice(error)) => Err(error.into()),
        Err(Unreserved::Refused(refusal)) => Err(Error::Refused(refusal)),
        Err(_) => Err(Error::Unreadable),
    }
}

/// A journal that gives its verdict and keeps nothing.
struct Asked(Vec<Standing>);

/// It would have been kept.
struct Fits;

impl Journal for Asked {
    type Error = Fits;

    fn keep(&mut self, entry: &Entry) -> std::result::Result<Outcome, Fits> {
        match entry.verdict(&self.0) {
            Ok(_) => Err(Fits),
            Err(refusal) => Ok(Outcome::Refused(refusal)),
        }
    }
}
