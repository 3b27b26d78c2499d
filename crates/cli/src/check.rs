//! `whit check`: a catalog, looked over before anybody asks.

use clap::Args;
use serde_json::json;
use whit::Failure;
use whit::session::header;

use crate::Format;
use crate::place::{Place, PlaceArguments};

/// Looks a catalog over, without reading any row.
///
/// What is wrong is an error; what an owner should think about once more is a warning, such as a delta above 1/N² for N units, with
/// which a mechanism could publish a unit outright. If there is a ledger already, a warning says why it would refuse the catalog.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: PlaceArguments,
}

const EXAMPLES: &str = "\
Examples:
  whit check
  whit check --catalog shop/whit.toml --format json";

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let Place {
        catalog,
        folder,
        ledger,
        ..
    } = arguments.place.find(format)?;
    let mut tables = Vec::new();
    for (name, source) in catalog.sources() {
        let columns = header(&folder.join(source))?;
        let unit = catalog.table(name).and_then(|table| table.unit());
        tables.push((name.to_owned(), unit.map(str::to_owned), columns));
    }
    let mut warnings = catalog.check();
    whit::session::check(&catalog, &folder)?;
    for objection in whit::session::objections(&catalog, &ledger) {
        let failure = Failure::from(objection);
        warnings.push(format!(
            "the next statement would be refused: {}; {}",
            failure.reason(),
            failure.suggestion()
        ));
    }
    match format {
        Format::Json => {
            let tables: Vec<_> = tables
                .iter()
                .map(
                    |(name, unit, columns)| json!({"name": name, "unit": unit, "columns": columns}),
                )
                .collect();
            let dataset = catalog.dataset();
            Ok(json!({"dataset": dataset, "tables": tables, "warnings": warnings}).to_string())
        }
        Format::Table => {
            let mut text = format!("The catalog of {} is fine.\n", catalog.dataset());
            for (name, unit, columns) in &tables {
                let whose = match unit {
                    Some(unit) => format!("protects each {unit}"),
                    None => "public".into(),
                };
                text += &format!("table {name}: {whose}; columns {}\n", columns.join(", "));
            }
            for warning in &warnings {
                text += &format!("warning: {warning}\n");
            }
            Ok(text)
        }
    }
}
