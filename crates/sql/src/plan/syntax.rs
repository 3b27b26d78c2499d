//! What is refused before the planner sees it: clauses that it reads and ignores, since a statement that says one thing must
//! not be answered as another; and texts that would grow while it binds them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, ObjectName, Query, Select, SetExpr, Statement, TableFactor, TableWithJoins,
    Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, Result, refused};

/// Brackets nest this deep at most: each level is a call of the parser, and some are tried twice.
const NESTING_MAX: usize = 24;
/// So many tables may stand in FROM, each common table expression written out where it is named.
const TABLES_MAX: usize = 16;

/// Refuses a text whose brackets nest too deeply for a parser that walks them by recursion.
pub(super) fn check_nesting(text: &str) -> Result<()> {
    // What cannot be cut into tokens, the parser refuses with a better reason.
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize()
        .unwrap_or_default();
    let mut depth = 0_usize;
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::CASE => depth += 1,
            Token::Word(word) if word.keyword == Keyword::END => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Err(too_nested());
        }
    }
    Ok(())
}

/// The parser gives up on what nests too deeply without brackets.
pub(super) fn too_nested() -> Error {
    refused(
        "too_nested",
        "the statement nests too deeply",
        format!(
            "keep brackets, CASE and NOT within {NESTING_MAX} levels; WITH names what would nest"
        ),
    )
}

/// Refuses a statement with a clause that would be ignored, a subquery where a value is wanted, or too many tables.
pub(super) fn check(statement: &Statement) -> Result<()> {
    if let ControlFlow::Break(error) = statement.visit(&mut Ignored) {
        return Err(error);
    }
    match statement {
        Statement::Query(query) => tables_of(query, &BTreeMap::new()).map(|_| ()),
        _ => Ok(()),
    }
}

/// How many tables each common table expression stands for.
type Named = BTreeMap<String, usize>;

fn tables_of(query: &Query, named: &Named) -> Result<usize> {
    let mut named = named.clone();
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        let tables = tables_of(&cte.query, &named)?;
        named.insert(cte.alias.name.value.clone(), tables);
    }
    tables_of_body(&query.body, &named)
}

fn tables_of_body(body: &SetExpr, named: &Named) -> Result<usize> {
    match body {
        SetExpr::Select(select) => sum(select.from.iter().map(|from| tables_of_from(from, named))),
        SetExpr::Query(query) => tables_of(query, named),
        SetExpr::SetOperation { left, right, .. } => {
            sum([tables_of_body(left, named), tables_of_body(right, named)])
        }
        SetExpr::Values(_) => Ok(1),
        _ => Err(clause("what stands in place of SELECT")),
    }
}

fn tables_of_from(from: &TableWithJoins, named: &Named) -> Result<usize> {
    let joined = from.joins.iter().map(|join| &join.relation);
    sum([&from.relation]
        .into_iter()
        .chain(joined)
        .map(|table| match table {
            TableFactor::Table { name, .. } => Ok(named.get(&bare(name)).copied().unwrap_or(1)),
            TableFactor::Derived { subquery, .. } => tables_of(subquery, named),
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => tables_of_from(table_with_joins, named),
            _ => Err(clause("what stands in FROM")),
        }))
}

fn bare(name: &ObjectName) -> String {
    match name.0.as_slice() {
        [part] => part
            .as_ident()
            .map_or(String::new(), |name| name.value.clone()),
        _ => String::new(),
    }
}

/// Added up as long as it is little: what is refused here doubles with each level.
fn sum(tables: impl IntoIterator<Item = Result<usize>>) -> Result<usize> {
    let mut all = 0;
    for tables in tables {
        all += tables?;
        if all > TABLES_MAX {
            return Err(refused(
                "too_many_tables",
                format!("written out, the statement reads more than {TABLES_MAX} tables"),
                "join fewer tables, or name one of them less often",
            ));
        }
    }
    Ok(all)
}

fn clause(clause: &str) -> Error {
    refused(
        "clause_not_allowed",
        format!("{clause} is not supported"),
        "take it out",
    )
}

struct Ignored;

fn refuse(any: bool, name: &str) -> ControlFlow<Error> {
    if any {
        ControlFlow::Break(clause(name))
    } else {
        ControlFlow::Continue(())
    }
}

impl Visitor for Ignored {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Exists { .. } | Expr::InSubquery { .. } | Expr::Subquery(_) => {
                ControlFlow::Break(refused(
                    "subquery_in_expression",
                    "a subquery inside an expression could ask about one person",
                    "join the tables, or put the subquery into FROM",
                ))
            }
            Expr::Function(call) if call.over.is_some() => {
                ControlFlow::Break(super::relation::window_refused())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        refuse(!query.locks.is_empty(), "FOR UPDATE")?;
        refuse(query.for_clause.is_some(), "FOR")?;
        refuse(query.settings.is_some(), "SETTINGS")?;
        refuse(query.format_clause.is_some(), "FORMAT")?;
        refuse(!query.pipe_operators.is_empty(), "a pipe operator")
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        refuse(select.into.is_some(), "INTO")?;
        refuse(select.exclude.is_some(), "EXCLUDE")?;
        let modified = match &select.group_by {
            GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => {
                !modifiers.is_empty()
            }
        };
        refuse(modified, "a modifier of GROUP BY")?;
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
            _ => ControlFlow::Break(clause("what stands in FROM")),
        }
    }
}
