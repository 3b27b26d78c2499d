//! From what is written to what is meant: each table and column is checked once, and a fault says what would pass.

use std::collections::{BTreeMap, BTreeSet};

use whit_core::Epsilon;

use super::{Access, Column, EPSILON_MAX, ROWS_PER_UNIT_MAX, Table, VALUES_MAX, record};
use crate::error::{Result, catalog};
use crate::interval::Interval;
use crate::value::{Cell, Kind, Value, encode_all};

pub(super) fn budget(value: f64) -> Result<Epsilon> {
    let epsilon = Epsilon::new(value)?;
    if epsilon == Epsilon::ZERO || value > EPSILON_MAX {
        let domain = "a number above 0, up to 1024";
        return Err(whit_core::Error::OutOfDomain {
            what: "epsilon",
            given: value.to_string(),
            domain,
        }
        .into());
    }
    Ok(epsilon)
}

pub(super) fn bound(what: &'static str, given: Option<u32>, max: u32) -> Result<Option<u32>> {
    match given {
        Some(value) if !(1..=max).contains(&value) => Err(catalog(
            "bound_out_of_range",
            format!("{what} is {value}"),
            format!("give {what} from 1 to {max}"),
        )),
        given => Ok(given),
    }
}

pub(super) fn table(name: &str, table: &record::Table) -> Result<Table> {
    let fault = |code, reason: &str, suggestion: &str| {
        Err(catalog(code, format!("table {name}: {reason}"), suggestion))
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return fault(
            "table_name",
            "its name needs quotes in SQL",
            "use small letters, digits and underscores",
        );
    }
    if !table.source.to_ascii_lowercase().ends_with(".csv")
        || table.source.contains(['*', '?', '['])
    {
        return fault(
            "source_not_supported",
            "its source is not one CSV file; Parquet, archives, several files and databases are not supported yet",
            "give the path of one CSV file that ends in .csv and has a header line",
        );
    }
    let access = match (&table.unit, table.public) {
        (Some(_), true) => {
            return fault(
                "public_with_unit",
                "it is public and has a unit",
                "keep `unit` if its rows are people's, else `public = true`",
            );
        }
        (None, false) => {
            return fault(
                "no_unit",
                "it is not public and has no unit",
                "give unit = \"COLUMN\", whose value says whose row it is, or public = true",
            );
        }
        (None, true) if table.rows_per_unit.is_some() => {
            return fault(
                "public_with_unit",
                "it is public and has rows_per_unit",
                "take rows_per_unit out",
            );
        }
        (None, true) => Access::Public,
        (Some(unit), false) if unit.contains("->") => {
            return fault(
                "foreign_key_unit",
                "a unit over foreign keys is not supported yet",
                "write the unit into a column of the table itself, and give unit = \"THAT COLUMN\"",
            );
        }
        (Some(unit), false) => Access::Private {
            unit: unit.clone(),
            rows_per_unit: bound("rows_per_unit", table.rows_per_unit, ROWS_PER_UNIT_MAX)?,
        },
    };
    let mut columns = BTreeMap::new();
    for (column, declared) in &table.column {
        columns.insert(
            column.clone(),
            column_of(&format!("{name}.{column}"), declared)?,
        );
    }
    Ok(Table {
        source: table.source.clone(),
        access,
        columns,
    })
}

fn column_of(name: &str, column: &record::Column) -> Result<Column> {
    let fault = |code, reason: String, suggestion: &str| {
        Err(catalog(
            code,
            format!("column {name}: {reason}"),
            suggestion,
        ))
    };
    let declared = match column.kind.as_deref() {
        None => None,
        Some(word) => match kind(word) {
            Some(kind) => Some(kind),
            None => {
                return fault(
                    "unknown_type",
                    format!("type {word:?} is not known"),
                    "give one of \"int\", \"float\", \"decimal(p,s)\", \"bool\", \"text\"",
                );
            }
        },
    };
    let range = match column.range {
        None => None,
        Some(ends) => {
            let [low, high] = ends.map(|end| match end {
                record::Number::Int(i) => i as f64,
                record::Number::Real(x) => x,
            });
            match Interval::new(low, high).filter(|_| low < high) {
                Some(range) => Some(range),
                None => {
                    return fault(
                        "empty_range",
                        format!("range [{low}, {high}] holds no two numbers"),
                        "give range = [LEAST, LARGEST], the least first, both finite",
                    );
                }
            }
        }
    };
    let values: Option<Vec<Value>> = column
        .values
        .as_ref()
        .map(|values| values.iter().map(value).collect());
    let kind = match (declared, &range, &values) {
        (Some(kind), ..) => kind,
        (None, Some(_), _) => Kind::Real,
        (None, None, Some(values)) => match kind_of(values) {
            Some(kind) => kind,
            None => {
                return fault(
                    "mixed_values",
                    "its values are of several types".into(),
                    "give values of one type, or say which with `type`",
                );
            }
        },
        (None, None, None) => Kind::Text,
    };
    if range.is_some() && !matches!(kind, Kind::Int | Kind::Real) {
        return fault(
            "range_of_text",
            format!("a range needs numbers, and it is {}", kind.word()),
            "give type = \"int\" or \"float\", or take the range out",
        );
    }
    let values = match values {
        None => None,
        Some(values) => {
            let count = values.len();
            let values: Vec<Value> = values.into_iter().map(|value| value.cast(kind)).collect();
            let distinct: BTreeSet<Vec<u8>> = values
                .iter()
                .map(|value| encode_all([value.clone()]))
                .collect();
            if values.is_empty()
                || count > VALUES_MAX
                || distinct.len() != count
                || values.contains(&Cell::Null)
            {
                return fault(
                    "bad_values",
                    "its values are none, too many, not of its type, or not distinct".into(),
                    "list each value once, as the type of the column",
                );
            }
            Some(values)
        }
    };
    Ok(Column {
        kind,
        range,
        values,
    })
}

fn kind(word: &str) -> Option<Kind> {
    let word = word.trim().to_ascii_lowercase();
    match word.as_str() {
        "int" | "integer" | "bigint" => Some(Kind::Int),
        "float" | "real" | "double" => Some(Kind::Real),
        "bool" | "boolean" => Some(Kind::Bool),
        "text" | "string" | "varchar" => Some(Kind::Text),
        _ => {
            let digits = word.strip_prefix("decimal(")?.strip_suffix(')')?;
            let (precision, scale) = digits.split_once(',')?;
            let (precision, scale): (u8, u8) =
                (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
            // Fixed-point sums are made on a binary grid of a trillionth of the range, which holds what a decimal says.
            (scale <= precision && (1..=15).contains(&precision)).then_some(Kind::Real)
        }
    }
}

fn value(value: &record::Declared) -> Value {
    match value {
        record::Declared::Bool(b) => Cell::Bool(*b),
        record::Declared::Int(i) => Cell::Int(*i),
        record::Declared::Real(x) => Cell::real(*x),
        record::Declared::Text(t) => Cell::text(t.clone()),
    }
}

fn kind_of(values: &[Value]) -> Option<Kind> {
    values.iter().try_fold(Kind::Null, |kind, value| {
        kind.join(match value {
            Cell::Null => Kind::Null,
            Cell::Bool(_) => Kind::Bool,
            Cell::Int(_) => Kind::Int,
            Cell::Real(_) => Kind::Real,
            Cell::Text(_) => Kind::Text,
        })
    })
}
