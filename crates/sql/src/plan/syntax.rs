//! Clauses that the planner reads and ignores. A statement that says one thing and is answered as another is refused instead.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, Select, Statement, TableFactor, Visit, Visitor};

use crate::error::{Result, refused};

/// Refuses a statement with a clause that would be ignored.
pub(super) fn check(statement: &Statement) -> Result<()> {
    match statement.visit(&mut Ignored) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(clause) => Err(refused(
            "clause_not_allowed",
            format!("{clause} is not supported"),
            "take it out",
        )),
    }
}

struct Ignored;

fn refuse(any: bool, clause: &'static str) -> ControlFlow<&'static str> {
    if any {
        ControlFlow::Break(clause)
    } else {
        ControlFlow::Continue(())
    }
}

impl Visitor for Ignored {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        refuse(!query.locks.is_empty(), "FOR UPDATE")?;
        refuse(query.for_clause.is_some(), "FOR")?;
        refuse(query.settings.is_some(), "SETTINGS")?;
        refuse(query.format_clause.is_some(), "FORMAT")?;
        refuse(!query.pipe_operators.is_empty(), "a pipe operator")
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        refuse(select.into.is_some(), "INTO")?;
        refuse(select.prewhere.is_some(), "PREWHERE")?;
        refuse(!select.connect_by.is_empty(), "CONNECT BY")?;
        refuse(!select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
        refuse(select.qualify.is_some(), "QUALIFY")?;
        refuse(!select.named_window.is_empty(), "WINDOW")?;
        refuse(select.value_table_mode.is_some(), "AS STRUCT and AS VALUE")?;
        refuse(select.select_modifiers.is_some(), "a modifier after SELECT")?;
        refuse(!select.optimizer_hints.is_empty(), "an optimizer hint")
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table {
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => {
                refuse(sample.is_some(), "TABLESAMPLE")?;
                refuse(args.is_some(), "a table function")?;
                refuse(version.is_some(), "a table version")?;
                refuse(!partitions.is_empty(), "PARTITION")?;
                refuse(json_path.is_some(), "a path into a table")?;
                refuse(*with_ordinality, "WITH ORDINALITY")?;
                refuse(
                    !with_hints.is_empty() || !index_hints.is_empty(),
                    "a table hint",
                )
            }
            TableFactor::Derived {
                lateral, sample, ..
            } => {
                refuse(sample.is_some(), "TABLESAMPLE")?;
                refuse(*lateral, "LATERAL")
            }
            TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break("what stands in FROM"),
        }
    }
}
