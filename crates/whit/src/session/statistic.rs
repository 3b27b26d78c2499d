//! A statistic of a catalogued file is paid from the catalog's ledger, like a statement.

use std::io::Read;

use whit_core::{Entropy, Neighbours};
use whit_sql::{Catalog, Tables};

use super::{Charge, Error, Kind, Remaining, Result, Session};
use crate::stats::{Answer, Plan, Request, Statistic};

/// A statistic that was paid from a ledger.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measured {
    /// The answer.
    pub answer: Answer,
    /// What was charged.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// The hash that commits the ledger to this answer and everything before it.
    pub receipt: String,
}

impl Session {
    /// Answers `request` about the private table of that name, whose rows `csv` gives with their header. Whom to protect is the
    /// catalog's to say: the unit and its declared rows are filled in where the request is silent, and another unit is
    /// refused. The header is compared before anything is charged.
    pub fn measure<R: Read>(
        &self,
        table: &str,
        request: Request,
        analyst: Option<&str>,
        csv: impl FnOnce() -> crate::Result<R>,
        entropy: &mut impl Entropy,
    ) -> Result<Measured> {
        let account = self.account(analyst)?;
        let delta = request.delta;
        let plan = plan(&self.catalog, &self.tables, table, request)?;
        let cost = self.filter.with_delta(delta).cost(plan.event())?;
        let charge = Charge::new(*plan.charge(), &cost);
        let filter = self.filter.with_delta(delta);
        let permit = filter.reserve(plan.event(), &account, &mut self.ledger.charge_once())?;
        let charged = permit.sequence();
        let redeemed = permit.redeem(plan.event())?;
        let executed = csv().and_then(|csv| plan.execute(csv, entropy));
        let mut answer = self.measured_or_suspend(charged, executed)?;
        answer.recorded = true;
        let stored = serde_json::to_string(&answer).expect("an answer is plain data");
        let settled = (self.ledger).settle_and_stand(redeemed, &stored, &account);
        let (receipt, standings) = settled.map_err(Error::Unsettled)?;
        Ok(Measured {
            answer,
            charge,
            remaining: Remaining::new(&standings),
            receipt: receipt.to_string(),
        })
    }

    /// As for statements: that rows could not be read is a bit about them that nobody has paid for. That there was no noise is not.
    fn measured_or_suspend<T>(&self, charged: u64, executed: crate::Result<T>) -> Result<T> {
        if let Err(error) = &executed
            && !matches!(error, crate::Error::Mechanism(_))
        {
            self.ledger.suspend(charged)?;
        }
        Ok(executed?)
    }
}

/// What a statistic of a table becomes: a function of the request, the catalog and the table's first line.
pub(super) fn plan(
    catalog: &Catalog,
    tables: &Tables,
    table: &str,
    mut request: Request,
) -> Result<Plan> {
    protect(catalog, tables, table, &mut request)?;
    // As for statements, so that ten tenths fit into one.
    request.epsilon = request.epsilon.in_whole_steps();
    Ok(Plan::new(request)?)
}

/// Makes the request protect whom the catalog protects, or refuses.
fn protect(catalog: &Catalog, tables: &Tables, name: &str, request: &mut Request) -> Result<()> {
    let table = catalog.table(name);
    let unit = table.and_then(|table| table.unit());
    let (Some(table), Some(unit), Some(columns)) = (table, unit, tables.columns(name)) else {
        let table = name.to_owned();
        return Err(Error::NoTable { table });
    };
    if request.relation != Neighbours::AddRemove {
        return Err(Error::OtherRelation {
            budget: Neighbours::AddRemove,
            given: request.relation,
        });
    }
    // Statistics tell units apart as text. A number can be written in several ways.
    let text = |&(column, kind): &(&str, Kind)| column == unit && kind == Kind::Text;
    if !columns.iter().any(text) {
        return Err(Error::UnitNotText {
            table: name.to_owned(),
            unit: unit.to_owned(),
        });
    }
    match &request.unit {
        None => request.unit = Some(unit.to_owned()),
        Some(given) if given == unit => {}
        Some(given) => {
            return Err(Error::OtherUnit {
                table: name.to_owned(),
                unit: unit.to_owned(),
                given: given.clone(),
            });
        }
    }
    // A declared cap is enforced, not trusted.
    if let Some(most) = table.rows_per_unit()
        && !matches!(request.statistic, Statistic::Distinct { .. })
    {
        let asked = request.rows_per_unit.unwrap_or(most);
        request.rows_per_unit = Some(asked.min(most));
    }
    let known = |column: &&str| columns.iter().any(|(name, _)| name == column);
    match request.columns().iter().find(|column| !known(column)) {
        Some(&column) => Err(Error::NoColumn {
            table: name.to_owned(),
            column: column.to_owned(),
        }),
        None => Ok(()),
    }
}
