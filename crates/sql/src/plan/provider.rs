//! What the planner may know: the names and types of the catalog's tables, and a handful of functions.
//!
//! There is no session behind it: no files, no table functions, no variables, no settings, no statistics. A function that is
//! not on the list does not exist.

use std::sync::{Arc, Mutex};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::logical_plan::builder::LogicalTableSource;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};

use crate::batch::schema;
use crate::table::Tables;

/// The functions of one row. All are rewritten to total terms; the engine's own versions never run.
pub(super) const SCALARS: [&str; 2] = ["coalesce", "nullif"];
/// The functions of many rows.
pub(super) const AGGREGATES: [&str; 3] = ["count", "sum", "avg"];

pub(super) struct Provider<'a> {
    tables: &'a Tables,
    options: ConfigOptions,
    planners: Vec<Arc<dyn ExprPlanner>>,
    /// The first name that was asked for and is not there.
    unknown: Mutex<Option<Unknown>>,
}

#[derive(Clone, Debug)]
pub(super) enum Unknown {
    Table(String),
    Function(String),
}

impl<'a> Provider<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self {
            tables,
            options: ConfigOptions::default(),
            planners: vec![Arc::new(
                datafusion::functions_aggregate::planner::AggregateFunctionPlanner,
            )],
            unknown: Mutex::new(None),
        }
    }

    pub(super) fn unknown(&self) -> Option<Unknown> {
        self.unknown.lock().ok()?.clone()
    }

    fn note(&self, name: Unknown) {
        if let Ok(mut unknown) = self.unknown.lock() {
            unknown.get_or_insert(name);
        }
    }
}

impl ContextProvider for Provider<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let found = match &name {
            TableReference::Bare { table } => self.tables.position(table),
            _ => None,
        };
        let Some(at) = found else {
            self.note(Unknown::Table(name.to_string()));
            return Err(DataFusionError::Plan(format!("table '{name}' not found")));
        };
        let columns = self.tables.table(at).columns.iter();
        let columns = columns.map(|(name, column)| (name.as_str(), column.kind));
        Ok(Arc::new(LogicalTableSource::new(schema(columns))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        match name.to_ascii_lowercase().as_str() {
            "coalesce" => Some(datafusion::functions::core::coalesce()),
            "nullif" => Some(datafusion::functions::core::nullif()),
            _ => None,
        }
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        match name.to_ascii_lowercase().as_str() {
            "count" => Some(datafusion::functions_aggregate::count::count_udaf()),
            "sum" => Some(datafusion::functions_aggregate::sum::sum_udaf()),
            "avg" | "mean" => Some(datafusion::functions_aggregate::average::avg_udaf()),
            other => {
                // Aggregates are looked up last, so this is a function that nobody knows.
                self.note(Unknown::Function(other.to_owned()));
                None
            }
        }
    }

    fn get_window_meta(&self, _: &str) -> Option<Arc<WindowUDF>> {
        None
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        SCALARS.map(str::to_owned).into()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        AGGREGATES.map(str::to_owned).into()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}
