//! Rows and columns: an answer as a table for people, or as CSV.

use whit::session::{Answer, Cell, Value};

/// Digits of an interval that are worth showing.
const INTERVAL_DIGITS: i32 = 2;
/// Digits of other numbers.
const DIGITS: i32 = 4;

/// Names, rows, and error bars behind the numbers that have some.
pub(crate) fn table(answer: &Answer) -> String {
    let header = answer.columns.iter().map(|column| printable(&column.name));
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

/// A header and rows. Behind a column with intervals come two more, with their ends: which these are is the plan's to say, so that the
/// header does not depend on the rows.
pub(crate) fn csv(answer: &Answer, has_intervals: &[bool]) -> String {
    let mut text = String::new();
    let mut header = Vec::new();
    for (column, &has) in answer.columns.iter().zip(has_intervals) {
        header.push(quoted(&column.name));
        if has {
            header.push(quoted(&format!("{}_low", column.name)));
            header.push(quoted(&format!("{}_high", column.name)));
        }
    }
    text += &header.join(",");
    for (row, intervals) in answer.rows.iter().zip(&answer.intervals) {
        let mut cells = Vec::new();
        for ((value, interval), &has) in row.iter().zip(intervals).zip(has_intervals) {
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

pub(crate) fn quoted(text: &str) -> String {
    let text = &no_formula(text);
    // An empty text is not nothing, and white space at the ends is easily lost.
    let needs = text.is_empty() || text.contains([',', '"', '\n', '\r']) || text.trim() != text;
    if needs {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Spreadsheets run what begins like a formula, quoted or not, and a key is whatever people typed. An apostrophe makes it a text there.
fn no_formula(text: &str) -> String {
    let begins = text.trim_start().starts_with(['=', '+', '-', '@']);
    if begins && text.trim().parse::<f64>().is_err() {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// What a terminal could take for a command, or for another direction of writing, is shown as it would be written.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |c| c.is_control())
}

/// The same for a text of several lines.
pub(crate) fn printable_lines(text: &str) -> String {
    escaped(text, |c| c.is_control() && c != '\n')
}

fn escaped(text: &str, is_command: impl Fn(char) -> bool) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_command(c) || turns(c) {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn plain(value: &Value) -> String {
    match value {
        Cell::Null => "NULL".into(),
        Cell::Bool(truth) => truth.to_string(),
        Cell::Int(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => printable(text),
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
    let show = |number: f64, to: To| decimal(number, digits, to);
    // An interval that is not around the number is shown as it is. What is shown is never narrower than what is known.
    if ((number - low) - (high - number)).abs() <= 0.01 * (high - low) {
        // Floats do not hold all integers.
        let shown = match is_whole {
            true => plain(value),
            false => show(number, To::Nearest),
        };
        let middle = shown.parse().unwrap_or(number);
        let half = f64::max(middle - low, high - middle);
        format!("{shown} ± {}", show(half, To::Above))
    } else {
        let (low, high) = (show(low, To::Below), show(high, To::Above));
        format!("{} ({low} to {high})", show(number, To::Nearest))
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

/// Where the digits that are not shown go. Bounds keep their side: costs go up, what is left goes down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Nearest,
    Above,
    Below,
}

impl To {
    /// Is a number that is shown on its side of the one that is meant?
    fn is_kept(self, shown: f64, meant: f64) -> bool {
        match self {
            Self::Nearest => true,
            Self::Above => shown >= meant,
            Self::Below => shown <= meant,
        }
    }

    /// The text of a number, or of the next one on its side, `step` away, if that text is on the other side.
    fn text(self, number: f64, step: f64, write: impl Fn(f64) -> String) -> String {
        let text = write(number);
        let is_kept = text.parse().is_ok_and(|shown| self.is_kept(shown, number));
        match self {
            _ if is_kept => text,
            Self::Below => write(number - step),
            _ => write(number + step),
        }
    }
}

fn decimal(number: f64, places: usize, to: To) -> String {
    let step = 0.1_f64.powi(places as i32);
    to.text(number, step, |number| format!("{number:.places$}"))
}

/// A number with a few digits, and none at its end that say nothing.
pub(crate) fn short(number: f64) -> String {
    digits(number, To::Nearest)
}

/// A probability in percent, with the digits that it has.
pub(crate) fn percent(probability: f64) -> String {
    let text = decimal(100.0 * probability, 10, To::Nearest);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Never less than it is: for costs and errors.
pub(crate) fn short_up(number: f64) -> String {
    digits(number, To::Above)
}

/// Never more than it is: for what is left.
pub(crate) fn short_down(number: f64) -> String {
    digits(number, To::Below)
}

fn digits(number: f64, to: To) -> String {
    let size = number.abs();
    let end = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if number != 0.0 && !(1e-4..1e15).contains(&size) {
        let step = 10_f64.powi(size.log10().floor() as i32 - (DIGITS - 1));
        let places = DIGITS as usize - 1;
        let text = to.text(number, step, |number| format!("{number:.places$e}"));
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", end(digits));
    }
    end(&decimal(number, decimals(size, DIGITS), to))
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
            "12.35 ± 0.51",
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
    fn bounds_keep_their_side() {
        for (number, below, above) in [
            (0.25, "0.25", "0.25"),
            (0.1, "0.1", "0.1"),
            (0.1 - 1e-17, "0.0999", "0.1"),
            (0.899_999_999_999_999_9, "0.8999", "0.9"),
            (0.005_000_000_000_000_002, "0.005", "0.005001"),
            (9.999_999_999_970_306e-9, "9.999e-9", "1e-8"),
            (1.000_000_000_015_745e-9, "1e-9", "1.001e-9"),
            (9.692_37, "9.692", "9.693"),
            (23_965.858, "23965", "23966"),
            (0.0, "0", "0"),
            (1e300, "1e300", "1e300"),
        ] {
            assert_eq!(
                (short_down(number).as_str(), short_up(number).as_str()),
                (below, above)
            );
        }
    }

    /// With every kind of digits: what is printed is on the right side, and close.
    #[test]
    fn bounds_that_are_printed_are_bounds() {
        let mut number = 3.1e-17;
        while number < 1e20 {
            number *= 1.037_123;
            let read = |text: String| text.parse::<f64>().expect("a number");
            let (below, above) = (read(short_down(number)), read(short_up(number)));
            assert!(below <= number && number <= above, "{number}");
            assert!(above - below <= 0.002 * number, "{number}");
        }
    }

    /// The ends of an interval as it is printed hold the interval that is known.
    #[test]
    fn printed_intervals_are_no_narrower() {
        for at in 0..2000 {
            let number = f64::from(at) * 0.737_1 - 300.0;
            let half = 0.013 + f64::from(at % 97) * 0.173_1;
            let ends = [number - half, number + half];
            let text = cell(&Cell::Real(number), Some(ends));
            let (middle, error) = text.split_once(" ± ").expect("around the number");
            let read = |text: &str| text.parse::<f64>().expect("a number");
            let (middle, error) = (read(middle), read(error));
            assert!(
                middle - error <= ends[0] + 1e-9 && ends[1] - 1e-9 <= middle + error,
                "{text}"
            );
        }
    }

    #[test]
    fn csv_can_be_read_back() {
        for (text, expected) in [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("", "\"\""),
            ("-5", "-5"),
            ("=1+1", "'=1+1"),
            ("@SUM(A1,B1)", "\"'@SUM(A1,B1)\""),
            ("-cmd|x", "'-cmd|x"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn nothing_commands_a_terminal() {
        for (text, line, lines) in [
            ("é ± x", "é ± x", "é ± x"),
            ("a\nb", "a\\nb", "a\nb"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("a\u{202e}b", "a\\u{202e}b", "a\\u{202e}b"),
            ("\r\t", "\\r\\t", "\\r\\t"),
        ] {
            assert_eq!(
                (printable(text), printable_lines(text)),
                (line.into(), lines.into())
            );
        }
    }
}
