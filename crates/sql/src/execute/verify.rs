//! # The caps and clamps once more
//! On the physical plan, the very one that is about to run: what was written into the plan is read out of it. Whatever was done
//! in between, by the engine or by a mistake of ours, a plan that is not recognised does not run.
//!
//! From the top down to the rows: sums by key; at most `G` groups of a unit; sums by unit and key; at most `R` rows of a unit
//! in a group; at most `T` rows of a unit, where that is declared (caps that a plan keeps by itself are left out); only rows with a unit and a key; units, keys and clamped
//! parts, computed from columns of the tables by the very terms that the noise was made for. Between these may stand what
//! moves rows without changing them. Below may stand inner joins and conditions on rows, over one private table.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{JoinType, NullEquality, ScalarValue};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, IsNotNullExpr, Literal};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateMode as Mode,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, WindowExpr};

use crate::analyze::{Keys, Part, StablePlan};
use crate::rewrite::{Compute, KEY, KeyedHash, Output, UNIT, UNITS, base_name, part_names};
use crate::term::Term;

/// Does the plan hold what the event was stated for?
pub(super) fn verify(plan: &dyn ExecutionPlan, stable: &StablePlan) -> bool {
    recognise(plan, stable).is_some()
}

fn recognise(plan: &dyn ExecutionPlan, stable: &StablePlan) -> Option<()> {
    let parts: Vec<&Part> = (stable.measured.iter())
        .flat_map(|measured| measured.parts())
        .collect();
    let caps = stable.contribution;
    let node = sums(moved(plan)?, &[KEY], parts.len(), &[UNITS])?;
    let node = match stable.caps_groups() {
        true => cap(node, "group_rank", caps.groups, &[UNIT], "whit_groups")?,
        false => node,
    };
    let node = sums(node, &[UNIT, KEY], parts.len(), &[])?;
    let node = match stable.caps_rows() {
        true => cap(node, "row_rank", caps.rows, &[UNIT, KEY], "whit_group_rows")?,
        false => node,
    };
    let node = match caps.total {
        Some(total) => cap(node, "unit_rank", total, &[UNIT], "whit_unit_rows")?,
        None => node,
    };
    let node = present(node)?;
    let node = computed(node, &parts, stable)?;
    (rows(node)? == 1).then_some(())
}

/// Past what moves rows and changes none.
fn moved(mut node: &dyn ExecutionPlan) -> Option<&dyn ExecutionPlan> {
    // Down one input each time.
    while node.is::<RepartitionExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<SortExec>()
        || node.is::<SortPreservingMergeExec>()
    {
        whole(node)?;
        node = only_input(node)?;
    }
    whole(node)?;
    Some(node)
}

/// Nothing is cut off after some rows.
fn whole(node: &dyn ExecutionPlan) -> Option<()> {
    node.fetch().is_none().then_some(())
}

fn only_input(node: &dyn ExecutionPlan) -> Option<&dyn ExecutionPlan> {
    let children = node.children();
    let first: &Arc<dyn ExecutionPlan> = children.first().copied()?;
    (children.len() == 1).then(|| first.as_ref())
}

/// Sums of all parts by some columns, in one step or in two: what is below. `counts` are the counts of rows that stand after.
fn sums<'a>(
    node: &'a dyn ExecutionPlan,
    by: &[&str],
    parts: usize,
    counts: &[&str],
) -> Option<&'a dyn ExecutionPlan> {
    let step = |node: &'a dyn ExecutionPlan| -> Option<&'a AggregateExec> {
        let aggregate = node.downcast_ref::<AggregateExec>()?;
        let schema = aggregate.input().schema();
        let group = aggregate.group_expr();
        let keys = group
            .expr()
            .iter()
            .map(|(key, name)| (column(key, &schema)? == name).then_some(name.as_str()));
        let keys: Vec<&str> = keys.collect::<Option<_>>()?;
        let plain = keys == by
            && !group.has_grouping_set()
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && aggregate.aggr_expr().len() == parts + counts.len();
        let names = part_names(parts).collect::<Vec<_>>();
        let names = names
            .iter()
            .map(String::as_str)
            .chain(counts.iter().copied());
        let raw = aggregate.mode().input_mode() == AggregateInputMode::Raw;
        let named = names.zip(aggregate.aggr_expr()).all(|(name, call)| {
            let counted = counts.contains(&name);
            let function = if counted { "count" } else { "sum" };
            let arguments = call.expressions();
            let own = match arguments.as_slice() {
                [argument] if raw && counted => argument.is::<Literal>(),
                [argument] if raw => column(argument, &schema) == Some(name),
                _ => !raw,
            };
            call.fun().name() == function && call.name() == name && !call.is_distinct() && own
        });
        (plain && named).then_some(aggregate)
    };
    let last = step(node)?;
    let first = match last.mode() {
        Mode::Single | Mode::SinglePartitioned => last,
        Mode::Final | Mode::FinalPartitioned => {
            let first = step(moved(last.input().as_ref())?)?;
            (*first.mode() == Mode::Partial).then_some(first)?
        }
        _ => return None,
    };
    moved(first.input().as_ref())
}

/// A condition `rank <= most` on ranks by a keyed hash in each partition: what is below.
fn cap<'a>(
    node: &'a dyn ExecutionPlan,
    rank: &str,
    most: u32,
    partition: &[&str],
    purpose: &str,
) -> Option<&'a dyn ExecutionPlan> {
    let (predicate, input) = condition(node)?;
    let compared = predicate.downcast_ref::<BinaryExpr>()?;
    let limit = compared.right().downcast_ref::<Literal>()?;
    let limited = *compared.op() == Operator::LtEq
        && column(compared.left(), &input.schema()) == Some(rank)
        && *limit.value() == ScalarValue::UInt64(Some(u64::from(most)));
    let window = moved(input)?;
    let ranks: &[Arc<dyn WindowExpr>] = match window.downcast_ref::<BoundedWindowAggExec>() {
        Some(window) => window.window_expr(),
        None => window.downcast_ref::<WindowAggExec>()?.window_expr(),
    };
    let [ranked] = ranks else { return None };
    let input = only_input(window)?;
    let schema = input.schema();
    // The rank is the one column that the window adds.
    let added = window.schema();
    let last = added.fields().last()?;
    let own = last.name() == rank && added.fields().len() == schema.fields().len() + 1;
    let by: Vec<&str> = (ranked.partition_by().iter())
        .map(|by| column(by, &schema))
        .collect::<Option<_>>()?;
    let standard = ranked.as_any().downcast_ref::<StandardWindowExpr>()?;
    let function = standard.get_standard_func_expr().as_any();
    let function = function.downcast_ref::<WindowUDFExpr>()?;
    let first = ranked.order_by().first()?;
    let hash = ScalarFunctionExpr::try_downcast_func::<KeyedHash>(first.expr.as_ref())?;
    let right = limited
        && own
        && by == partition
        && function.fun().name() == "row_number"
        && hash.name() == purpose;
    right.then(|| moved(input))?
}

/// A filter that is nothing but a condition: the condition, and what is below.
fn condition(node: &dyn ExecutionPlan) -> Option<(&Arc<dyn PhysicalExpr>, &dyn ExecutionPlan)> {
    let filter = node.downcast_ref::<FilterExec>()?;
    filter.projection().is_none().then_some(())?;
    Some((filter.predicate(), filter.input().as_ref()))
}

/// Only rows that have a unit and a key.
fn present(node: &dyn ExecutionPlan) -> Option<&dyn ExecutionPlan> {
    let (predicate, input) = condition(node)?;
    let both = predicate.downcast_ref::<BinaryExpr>()?;
    let there = |expr: &Arc<dyn PhysicalExpr>, name: &str| {
        let there = expr.downcast_ref::<IsNotNullExpr>();
        there.is_some_and(|there| column(there.arg(), &input.schema()) == Some(name))
    };
    let both = *both.op() == Operator::And && there(both.left(), UNIT) && there(both.right(), KEY);
    both.then(|| moved(input))?
}

/// The unit, the key and the parts, as they were analyzed.
fn computed<'a>(
    node: &'a dyn ExecutionPlan,
    parts: &[&Part],
    stable: &StablePlan,
) -> Option<&'a dyn ExecutionPlan> {
    let projection = node.downcast_ref::<ProjectionExec>()?;
    let schema = projection.input().schema();
    let [unit, key, rest @ ..] = projection.expr() else {
        return None;
    };
    let unit_is = match &output(&unit.expr, &schema)?.output {
        Output::Unit(term) => *term == Term::Column(stable.unit) && unit.alias == UNIT,
        _ => false,
    };
    let key_is = match (&output(&key.expr, &schema)?.output, &stable.keys) {
        (Output::Key(terms, public), keys) => {
            let own = stable.statement.keys.iter().map(|key| &key.term);
            // Other keys than the public ones must not be counted, or they would crowd out those that are shown.
            let known = match (public, keys) {
                (Some(public), Keys::Public(keys)) => Arc::ptr_eq(public, keys),
                (None, Keys::One | Keys::Private) => true,
                _ => false,
            };
            terms.iter().eq(own) && known && key.alias == KEY
        }
        _ => false,
    };
    let parts_are = rest.len() == parts.len()
        && (rest.iter().zip(parts).zip(part_names(parts.len()))).all(|((found, part), name)| {
            let output = output(&found.expr, &schema).map(|compute| &compute.output);
            matches!(output, Some(Output::Part(found)) if found == *part) && found.alias == name
        });
    (unit_is && key_is && parts_are).then(|| projection.input().as_ref())
}

/// A term over the columns that it was made for.
fn output<'a>(expr: &'a Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<&'a Compute> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let compute = call.fun().inner().downcast_ref::<Compute>()?;
    let own = compute.places.len() == call.args().len()
        && (compute.places.iter().zip(call.args()))
            .all(|(&place, argument)| column(argument, schema) == Some(base_name(place).as_str()));
    own.then_some(compute)
}

/// How many private tables are below, where all else is conditions, inner joins and public tables.
fn rows(node: &dyn ExecutionPlan) -> Option<usize> {
    let node = moved(node)?;
    if let Some(scan) = node.downcast_ref::<StreamingTableExec>() {
        return (scan.limit().is_none() && scan.partitions().len() == 1).then_some(1);
    }
    if node.is::<DataSourceExec>() {
        return Some(0);
    }
    if let Some((predicate, input)) = condition(node) {
        let compute = output(predicate, &input.schema())?;
        return matches!(compute.output, Output::All(_)).then(|| rows(input))?;
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        // Columns in another order, as a join with its sides exchanged leaves them.
        let schema = projection.input().schema();
        let same = |each: &ProjectionExpr| column(&each.expr, &schema) == Some(each.alias.as_str());
        return projection
            .expr()
            .iter()
            .all(same)
            .then(|| rows(projection.input().as_ref()))?;
    }
    let join = node.downcast_ref::<HashJoinExec>()?;
    let inner = join.join_type == JoinType::Inner
        && join.filter.is_none()
        && !join.null_aware
        && join.null_equality == NullEquality::NullEqualsNothing;
    inner.then(|| Some(rows(join.left().as_ref())? + rows(join.right().as_ref())?))?
}

/// The name of a column, as its input has it: columns are found by their place, whatever they are called.
fn column<'a>(expr: &'a Arc<dyn PhysicalExpr>, schema: &'a Schema) -> Option<&'a str> {
    let column = expr.downcast_ref::<Column>()?;
    let found = schema.fields().get(column.index())?;
    (found.name() == column.name()).then_some(column.name())
}

#[cfg(test)]
mod tests;
