//! Rows and columns: an answer as a table for people, or as CSV.

use whit::session::{Answer, Cell, Value};

/// Digits of an interval that are worth showing.
const INTERVAL_DIGITS: i32 = 2;
/// Digits of other numbers.
const DIGITS: i32 = 4;

/// Names, rows, and error bars behind the numbers that have some.
pub(crate) fn table(answer: &Answer) -> String {
    let header = answer.columns.iter().map(|column| column.name.clone());
    let mut rows: Vec<Vec<String>> = vec![header.collect()];
    for (row, intervals) in answer.rows.iter().zip(&answer.intervals) {
        let cells = row.iter().zip(intervals);
        rows.push(
            cells
                .map(|(value, interval)| cell(value, *interval))
                .collect(),
        );
    }
    let width = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column));
        widths.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..answer.columns.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(text, &width)| format!("{text:<width$}"))
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A header and rows. Behind a column with intervals come two more, with their ends.
pub(crate) fn csv(answer: &Answer) -> String {
    let has_intervals: Vec<bool> = (0..answer.columns.len())
        .map(|at| answer.intervals.iter().any(|row| row[at].is_some()))
        .collect();
    let mut text = String::new();
    let mut header = Vec::new();
    for (column, &has) in answer.columns.iter().zip(&has_intervals) {
        header.push(quoted(&column.name));
        if has {
            header.push(quoted(&format!("{}_low", column.name)));
            header.push(quoted(&format!("{}_high", column.name)));
        }
    }
    text += &header.join(",");
    for (row, intervals) in answer.rows.iter().zip(&answer.intervals) {
        let mut cells = Vec::new();
        for ((value, interval), &has) in row.iter().zip(intervals).zip(&has_intervals) {
            cells.push(match value {
                Cell::Null => String::new(),
                Cell::Text(text) => quoted(text),
                other => plain(other),
            });
            if has {
                let ends = interval.map(|ends| ends.map(|end| end.to_string()));
                cells.extend(ends.unwrap_or_default());
            }
        }
        text.push('\n');
        text += &cells.join(",");
    }
    text
}

fn quoted(text: &str) -> String {
    // An empty text is not nothing, and white space at the ends is easily lost.
    let needs = text.is_empty() || text.contains([',', '"', '\n', '\r']) || text.trim() != text;
    if needs {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn plain(value: &Value) -> String {
    match value {
        Cell::Null => "NULL".into(),
        Cell::Bool(truth) => truth.to_string(),
        Cell::Int(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        // What a terminal could take for a command is shown as it would be written.
        Cell::Text(text) if text.chars().any(char::is_control) => text.escape_debug().to_string(),
        Cell::Text(text) => text.to_string(),
    }
}

fn cell(value: &Value, interval: Option<[f64; 2]>) -> String {
    let number = match value {
        Cell::Int(number) => *number as f64,
        Cell::Real(number) => *number,
        _ => return plain(value),
    };
    let is_whole = matches!(value, Cell::Int(_));
    let Some([low, high]) = interval else {
        return if is_whole {
            plain(value)
        } else {
            short(number)
        };
    };
    let digits = decimals((high - low) / 2.0, INTERVAL_DIGITS);
    let digits = if is_whole { 0 } else { digits };
    let show = |number: f64| format!("{number:.digits$}");
    let (below, above) = (number - low, high - number);
    // An interval that is not around the number is shown as it is.
    if (below - above).abs() <= 0.01 * (high - low) {
        format!("{} ± {}", show(number), show(below.max(above)))
    } else {
        format!("{} ({} to {})", show(number), show(low), show(high))
    }
}

/// How many places behind the point a number of this size needs to have that many digits.
fn decimals(size: f64, digits: i32) -> usize {
    if size > 0.0 && size.is_finite() {
        usize::try_from(digits - 1 - size.log10().floor() as i32).map_or(0, |places| places.min(17))
    } else {
        0
    }
}

/// A number with a few digits, and none at its end that say nothing.
pub(crate) fn short(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && !(1e-4..1e15).contains(&size) {
        let text = format!("{number:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}e{exponent}");
    }
    let text = format!("{number:.*}", decimals(size, DIGITS));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_their_error_leaves() {
        let check = |value: Value, interval, expected: &str| {
            assert_eq!(cell(&value, interval), expected);
        };
        check(Cell::Int(1234), Some([1184.0, 1284.0]), "1234 ± 50");
        check(
            Cell::Real(12.345_678),
            Some([11.845_678, 12.845_678]),
            "12.35 ± 0.50",
        );
        check(Cell::Real(12.3), Some([12.0, 19.0]), "12.3 (12.0 to 19.0)");
        check(Cell::Real(0.5), None, "0.5");
        check(Cell::Int(7), None, "7");
        check(Cell::Null, None, "NULL");
        check(Cell::Text("a\u{1b}[2Jb".into()), None, "a\\u{1b}[2Jb");
    }

    #[test]
    fn short_numbers() {
        for (number, text) in [
            (0.0, "0"),
            (9.876_54, "9.877"),
            (10.0, "10"),
            (123_456.0, "123456"),
            (1e-8, "1e-8"),
            (1.25e-8, "1.25e-8"),
            (0.25, "0.25"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn csv_can_be_read_back() {
        for (text, expected) in [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
