//! # From text to a statement
//! The planner parses and binds against tables that have columns and no rows; nothing is read. What it makes is walked
//! from the top: steps over noisy values down to one aggregate, then one flat relation. Every node and every expression on
//! the way must be on an allow-list; the first that is not is refused by name.

use datafusion::common::DataFusionError;
use datafusion::logical_expr::{Aggregate as AggregateNode, Expr, LogicalPlan};
use datafusion::sql::parser::{DFParser, Statement as Parsed};
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use datafusion::sql::sqlparser::ast::Statement as Ast;

use crate::error::{Error, Result, refused, sql};
use crate::table::Tables;
use crate::term::Term;
use crate::value::Kind;

pub(crate) mod after;
mod expression;
mod meter;
mod provider;
pub(crate) mod relation;
mod syntax;

pub(crate) use after::Step;
pub(crate) use expression::Typed;
use provider::{Provider, Unknown};
pub(crate) use relation::Relation;

/// A statement in which everything is on the allow-list. Nothing is known yet of its privacy.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The tables it was bound to.
    pub(crate) tables: u64,
    pub(crate) relation: Relation,
    pub(crate) keys: Vec<Typed>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) steps: Vec<Step>,
    pub(crate) names: Vec<String>,
    pub(crate) kinds: Vec<Kind>,
}

/// One aggregate over the rows of a group.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    /// As SQL.
    pub(crate) name: String,
    pub(crate) measure: Measure,
    /// Only rows for which this is true count.
    pub(crate) filter: Option<Term>,
}

/// What is aggregated.
#[derive(Clone, Debug)]
pub(crate) enum Measure {
    /// COUNT(*).
    Rows,
    /// COUNT(x).
    Present(Term),
    /// COUNT(DISTINCT x); the analysis checks that x is the unit.
    Distinct(Term),
    /// SUM(x).
    Sum(Typed),
    /// AVG(x).
    Mean(Typed),
}

/// Longer statements are refused, so that walking one needs a bounded stack.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What is computed for each row is held until it is summed: these bound how much more that is than the row itself, so that
/// nobody's rows fill the memory when they would not fill the file.
const KEYS_MAX: usize = 32;
const AGGREGATES_MAX: usize = 32;

impl Statement {
    /// Parses, binds and checks a statement against the tables.
    pub fn parse(text: &str, tables: &Tables) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(sql(
                "too_long",
                format!("the statement has {} bytes", text.len()),
                format!("keep it within {TEXT_BYTES_MAX} bytes"),
            ));
        }
        let planned = tables.planners().run(|| read(text, tables));
        planned.unwrap_or(Err(Error::Bug {
            invariant: "the planner ends with a plan or a reason",
        }))
    }
}

impl Statement {
    /// Of the columns that the aggregate gives: keys, then noisy numbers.
    pub(crate) fn traits(&self) -> Vec<after::Trait> {
        let keys = self.keys.iter().map(|_| after::Trait::Exact);
        let aggregates = self.aggregates.iter().map(|_| after::Trait::Bounded(None));
        keys.chain(aggregates).collect()
    }
}

fn read(text: &str, tables: &Tables) -> Result<Statement> {
    let syntax = |reason: String| sql("sql_syntax", reason, "write one SELECT statement");
    syntax::check_nesting(text)?;
    let mut parsed = DFParser::parse_sql(text).map_err(|error| match error.strip_backtrace() {
        // The parser has a limit of its own for what nests without brackets.
        reason if reason.to_ascii_lowercase().contains("recursion") => syntax::too_nested(),
        reason => syntax(reason),
    })?;
    let (Some(first), None) = (parsed.pop_front(), parsed.pop_front()) else {
        return Err(syntax("there is not exactly one statement".into()));
    };
    let query = match first {
        Parsed::Statement(ast) if matches!(*ast, Ast::Query(_)) => *ast,
        other => {
            let text = other.to_string();
            let word = text
                .split_whitespace()
                .next()
                .unwrap_or("this")
                .to_ascii_uppercase();
            return Err(refused(
                "statement_not_allowed",
                format!("{word} is no query"),
                "write a SELECT statement",
            ));
        }
    };
    syntax::check(&query)?;
    let provider = Provider::new(tables);
    let options = ParserOptions::new()
        .with_enable_ident_normalization(false)
        .with_collect_spans(false);
    let planned = SqlToRel::new_with_options(&provider, options).sql_statement_to_plan(query);
    let plan = planned.map_err(|error| match provider.unknown() {
        Some(Unknown::Function(name)) if names_function(&error) => {
            expression::function_refused(&name)
        }
        Some(Unknown::Table(name)) => {
            let known: Vec<&str> = tables.names().collect();
            sql(
                "unknown_table",
                format!("there is no table {name}"),
                format!("use one of the catalog's tables: {}", known.join(", ")),
            )
        }
        _ if matches!(error, DataFusionError::NotImplemented(_)) => refused(
            "not_supported",
            error.strip_backtrace(),
            "write it with plain columns, arithmetic, CASE and GROUP BY",
        ),
        _ if ill_typed(&error).is_some() => sql(
            "argument_type",
            format!(
                "{} is not computed of what it is given; a column is text unless the catalog gives it a type",
                ill_typed(&error).unwrap_or_default()
            ),
            "give the column a type and a range in the catalog, such as { type = \"int\", range = [0, 100] }; or CAST it, if that is what you mean",
        ),
        _ => sql(
            "sql_binding",
            error.strip_backtrace(),
            match quoted_name(text, &error) {
                Some(name) => format!("if {name:?} is a text and no column, write it in single quotes: '{name}'"),
                None => "check names and types against the catalog; names are case-sensitive".into(),
            },
        ),
    })?;
    statement(&plan, tables)
}

/// The function that the planner has no signature for, in capitals.
fn ill_typed(error: &DataFusionError) -> Option<String> {
    let text = error.strip_backtrace();
    let (_, from) = text.split_once("No function matches the given name and argument types '")?;
    Some(from.split_once('(')?.0.to_ascii_uppercase())
}

/// The column that is not there, if the statement has it in double quotes.
fn quoted_name(text: &str, error: &DataFusionError) -> Option<String> {
    let DataFusionError::SchemaError(error, _) = error.find_root() else {
        return None;
    };
    let datafusion::common::SchemaError::FieldNotFound { field, .. } = error.as_ref() else {
        return None;
    };
    text.contains(&format!("\"{}\"", field.name))
        .then(|| field.name.clone())
}

/// Is this the planner's way to say that it does not know a function?
fn names_function(error: &DataFusionError) -> bool {
    let text = error.strip_backtrace();
    text.contains("Invalid function") || text.contains("no window function")
}

fn statement(plan: &LogicalPlan, tables: &Tables) -> Result<Statement> {
    // From the top down to the aggregate, then back up.
    let mut above: Vec<&LogicalPlan> = Vec::new();
    let mut node = plan;
    let aggregate = loop {
        match node {
            LogicalPlan::Aggregate(aggregate) => break aggregate,
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::SubqueryAlias(_) => {
                above.push(node);
                node = match node.inputs().as_slice() {
                    [input] => *input,
                    _ => return Err(relation::node_refused(&relation::node_name(node))),
                };
            }
            LogicalPlan::TableScan(_) | LogicalPlan::Join(_) | LogicalPlan::EmptyRelation(_) => {
                return Err(refused(
                    "raw_rows",
                    "the statement selects rows, not aggregates",
                    "use COUNT, SUM or AVG, with GROUP BY where you want more than one row",
                ));
            }
            LogicalPlan::Window(_) => return Err(relation::window_refused()),
            other => return Err(relation::node_refused(&relation::node_name(other))),
        }
    };
    let meter = meter::Meter::new();
    let relation = relation::flatten(&aggregate.input, tables, &meter)?;
    let (keys, aggregates, columns) = read_aggregate(aggregate, &relation, &meter)?;
    let mut output = after::Output {
        columns,
        steps: Vec::new(),
    };
    let mut input = node;
    for step in above.into_iter().rev() {
        after::read(step, input, &mut output, &meter)?;
        input = step;
    }
    Ok(Statement {
        tables: tables.id(),
        relation,
        keys,
        aggregates,
        steps: output.steps,
        names: plan
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect(),
        kinds: after::kind_of(&output.columns),
    })
}

type Grouped = (Vec<Typed>, Vec<Aggregate>, Vec<Typed>);

fn read_aggregate(
    node: &AggregateNode,
    relation: &Relation,
    meter: &meter::Meter,
) -> Result<Grouped> {
    let scope = expression::Scope {
        schema: node.input.schema(),
        columns: &relation.columns,
        meter,
    };
    for (what, given, most) in [
        ("keys", node.group_expr.len(), KEYS_MAX),
        ("aggregates", node.aggr_expr.len(), AGGREGATES_MAX),
    ] {
        if given > most {
            return Err(refused(
                "too_many_columns",
                format!("the statement has {given} {what}"),
                format!("keep to {most} {what} in one statement"),
            ));
        }
    }
    let mut keys = Vec::new();
    for key in &node.group_expr {
        if matches!(key, Expr::GroupingSet(_)) {
            return Err(refused(
                "grouping_sets",
                "GROUPING SETS, ROLLUP and CUBE are not supported",
                "write one statement for each set of keys",
            ));
        }
        keys.push(scope.bind(key)?);
    }
    let aggregates = node
        .aggr_expr
        .iter()
        .map(|expr| read_measure(expr, &scope))
        .collect::<Result<Vec<_>>>()?;
    if aggregates.is_empty() {
        return Err(refused(
            "no_aggregate",
            "the statement has keys and no aggregate",
            "add COUNT(*), for example",
        ));
    }
    let mut columns = keys.clone();
    columns.extend(aggregates.iter().map(|aggregate| Typed {
        term: Term::Column(0),
        kind: aggregate.kind(),
    }));
    Ok((keys, aggregates, columns))
}

fn read_measure(expr: &Expr, scope: &expression::Scope<'_>) -> Result<Aggregate> {
    let call = match expr {
        Expr::Alias(alias) => {
            let name = alias.name.clone();
            return Ok(Aggregate {
                name,
                ..read_measure(&alias.expr, scope)?
            });
        }
        Expr::AggregateFunction(call) => call,
        _ => {
            return Err(Error::Bug {
                invariant: "an aggregate node holds aggregates",
            });
        }
    };
    let params = &call.params;
    if !params.order_by.is_empty() || params.null_treatment.is_some() {
        return Err(refused(
            "ordered_aggregate",
            "ORDER BY and NULLS inside an aggregate are not supported",
            "take them out",
        ));
    }
    let filter = params
        .filter
        .as_deref()
        .map(|filter| scope.condition(filter))
        .transpose()?;
    let [argument] = params.args.as_slice() else {
        return Err(refused(
            "aggregate_arguments",
            format!(
                "{} with several arguments is not supported",
                call.func.name()
            ),
            "give one argument",
        ));
    };
    let measure = match (call.func.name(), params.distinct, argument) {
        ("count", false, Expr::Literal(value, _)) if !value.is_null() => Measure::Rows,
        ("count", false, _) => Measure::Present(scope.bind(argument)?.term),
        ("count", true, _) => Measure::Distinct(scope.bind(argument)?.term),
        ("sum", false, _) => Measure::Sum(numeric(scope.bind(argument)?)?),
        ("avg", false, _) => Measure::Mean(numeric(scope.bind(argument)?)?),
        (name, true, _) => {
            return Err(refused(
                "distinct",
                format!("{name}(DISTINCT …) is not supported"),
                "take DISTINCT out, or count units with COUNT(DISTINCT unit)",
            ));
        }
        (name, ..) => return Err(expression::function_refused(name)),
    };
    let name = match measure {
        Measure::Rows => "count(*)".to_owned(),
        _ => expr.schema_name().to_string(),
    };
    Ok(Aggregate {
        name,
        measure,
        filter,
    })
}

fn numeric(value: Typed) -> Result<Typed> {
    match value.kind {
        Kind::Int | Kind::Real => Ok(value),
        other => Err(sql(
            "type_mismatch",
            format!("SUM and AVG take numbers, and this is {}", other.word()),
            "give the column type = \"int\" or \"float\" and a range in the catalog, or use CASE to make numbers",
        )),
    }
}

impl Aggregate {
    /// The kind of the noisy answer.
    fn kind(&self) -> Kind {
        match &self.measure {
            Measure::Rows | Measure::Present(_) | Measure::Distinct(_) => Kind::Int,
            Measure::Sum(value) => value.kind,
            Measure::Mean(_) => Kind::Real,
        }
    }
}
