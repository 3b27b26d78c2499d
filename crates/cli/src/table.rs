//! An answer as a table for people.

use whit::Neighbours;
use whit::stats::{Answer, Bin, Cell, Part, Value};

/// Width of the whole, which every terminal has.
const LINE_CHARS: usize = 80;
/// The longest bar of a histogram.
const BAR_CHARS: f64 = 30.0;
/// An interval's width is shown with so many digits, and the answer to the same place: what is below is noise.
const INTERVAL_DIGITS: i32 = 2;
/// Public numbers (noise scales, the edges of bins) are shown with so many digits.
const PUBLIC_DIGITS: i32 = 3;

/// How many digits a number has that comes without an interval.
const CHOSEN_DIGITS: i32 = 6;
/// Enough for the largest end of a range that can be found.
const EDGE_DIGITS: i32 = 12;

/// The answer, its interval, the noise, the charge, whom it protects, and what that means.
pub(crate) fn render(answer: &Answer) -> String {
    let mut lines = Vec::new();
    let mut above = String::new();
    match &answer.value {
        &Value::Single {
            answer: value,
            low,
            high,
        } => {
            let place = Place::of(high - low, INTERVAL_DIGITS);
            let is_count = ["count", "distinct"].contains(&answer.statistic.as_str());
            let place = if is_count { place.whole() } else { place };
            lines.push((title(answer), place.show(value)));
            lines.push((
                interval_name(answer),
                format!("{} to {}", place.show(low), place.show(high)),
            ));
        }
        &Value::Quantile {
            answer: value,
            rank_error,
            ..
        } => {
            lines.push((title(answer), chosen(value)));
            lines.push(("rank error".into(), rank(answer, rank_error)));
        }
        Value::Quantiles {
            quantiles,
            rank_error,
        } => {
            let column = answer.column.as_deref().unwrap_or_default();
            for at in quantiles {
                let name = format!("{} quantile of {column}", at.q);
                lines.push((name, chosen(at.answer)));
            }
            lines.push(("rank error".into(), rank(answer, *rank_error)));
        }
        Value::Bounds { answer: ends } => {
            let ends = format!("{} to {}", edge(ends.low), edge(ends.high));
            lines.push((title(answer), ends));
        }
        Value::Mode {
            answer: category,
            count_error,
        } => {
            lines.push((title(answer), category.clone()));
            lines.push(("count error".into(), rows_behind(answer, *count_error)));
        }
        Value::Top { top, count_error } => {
            for (place, category) in top.iter().enumerate() {
                let column = answer.column.as_deref().unwrap_or_default();
                let name = format!("top {} of {column}", place + 1);
                lines.push((name, category.clone()));
            }
            lines.push(("count error".into(), rows_behind(answer, *count_error)));
        }
        Value::Histogram { bins } => above = histogram(answer, bins) + "\n",
        Value::Marginals { columns, cells } => above = cells_of(answer, columns, cells) + "\n",
        Value::Nothing { .. } => {
            let why = "none: no bounds were found, since too few values are alike or epsilon is too small";
            lines.push((title(answer), why.into()));
        }
        _ => {}
    }
    let mut add = |name: &str, text: String| lines.push((name.into(), text));
    if let Some(range) = &answer.range {
        let (search, all) = (
            public(range.epsilon.value()),
            public(answer.epsilon.value()),
        );
        let cost = format!("for epsilon {search} of {all}");
        let text = match (range.low, range.high) {
            (Some(low), Some(high)) => {
                let (low, high) = (edge(low), edge(high));
                format!("{low} to {high}, found {cost}; values beyond it count as its ends")
            }
            _ => format!("none found, {cost}"),
        };
        add("range", text);
    }
    if let Some(absent) = answer.absent_cells() {
        add("cells", absent.into());
    }
    add("mechanism", mechanism(answer));
    add("charge", answer.charge());
    add("protects", protects(answer));
    add("guarantee", answer.guarantee.clone());
    if !answer.recorded {
        add("budget", "not recorded: repeats add up".into());
    }
    above + &self::lines(&lines)
}

/// A public number.
fn public(value: f64) -> String {
    Place::of(value.abs(), PUBLIC_DIGITS).show_short(value)
}

/// An end of a range that was found: a power of two, shown whole.
fn edge(value: f64) -> String {
    Place::of(value.abs(), EDGE_DIGITS).show_short(value)
}

/// A number of which it is not known how far it is off.
fn chosen(value: f64) -> String {
    Place::of(value.abs(), CHOSEN_DIGITS).show_short(value)
}

fn rank(answer: &Answer, rank_error: f64) -> String {
    let rows = Place::of(rank_error, INTERVAL_DIGITS).show_short(rank_error);
    format!("at most {rows} rows, with {} confidence", percent(answer))
}

fn rows_behind(answer: &Answer, count_error: f64) -> String {
    let rows = Place::of(count_error, INTERVAL_DIGITS).show_short(count_error);
    format!(
        "no category left out has {rows} rows more, with {} confidence",
        percent(answer)
    )
}

/// Names on the left, wrapped texts on the right.
pub(crate) fn lines(lines: &[(String, String)]) -> String {
    let name_chars = lines
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    lines
        .iter()
        .map(|(name, text)| line(name, name_chars, text))
        .collect()
}

fn title(answer: &Answer) -> String {
    match (answer.statistic.as_str(), &answer.column) {
        ("distinct", column) => format!("distinct {}", column.as_ref().unwrap_or(&answer.unit)),
        (statistic, Some(column)) => format!("{statistic} of {column}"),
        (statistic, None) => format!("{statistic} of rows"),
    }
}

fn interval_name(answer: &Answer) -> String {
    format!("{} interval", percent(answer))
}

fn percent(answer: &Answer) -> String {
    let (confidence, percent) = (answer.confidence.value(), 100.0 * answer.confidence.value());
    // The shortest text that means the same number.
    let same = |text: &String| {
        text.parse()
            .is_ok_and(|percent: f64| percent / 100.0 == confidence)
    };
    let text = (0..16)
        .map(|digits| format!("{percent:.digits$}"))
        .find(same);
    format!("{}%", text.unwrap_or_else(|| percent.to_string()))
}

fn mechanism(answer: &Answer) -> String {
    if answer.noise.is_empty() {
        return answer.mechanism.to_string();
    }
    let several = answer.noise.len() > 1;
    let noise = answer.noise.iter().map(|noise| {
        let scale = public(noise.scale);
        if several || noise.to == Part::Ends {
            format!("{scale} on {}", noise.to.word())
        } else {
            scale
        }
    });
    format!(
        "{}, noise scale {}",
        answer.mechanism,
        noise.collect::<Vec<_>>().join(" and ")
    )
}

fn protects(answer: &Answer) -> String {
    let hidden = match answer.relation {
        Neighbours::AddRemove => "whether it is there at all (add-remove)",
        Neighbours::ReplaceOne => "what it says (replace)",
        _ => "under another relation",
    };
    let used = answer.rows_per_unit.or(answer.values_per_unit);
    let what = match (answer.values_per_unit, used) {
        (None, Some(1)) => "row",
        (None, _) => "rows",
        (Some(_), Some(1)) => "different value",
        (Some(_), _) => "different values",
    };
    match used {
        None if answer.statistic == "distinct" && answer.column.is_none() => {
            format!("each {} with all its rows, {hidden}", answer.unit)
        }
        None => {
            format!("each row, {hidden}; several rows of one person are not protected together")
        }
        Some(1) => format!(
            "each {} with all its rows, {hidden}; 1 {what} of each is used",
            answer.unit
        ),
        Some(rows) => format!(
            "each {} with all its rows, {hidden}; up to {rows} {what} of each are used",
            answer.unit
        ),
    }
}

fn histogram(answer: &Answer, bins: &[Bin]) -> String {
    let width = bins
        .iter()
        .map(|bin| bin.high - bin.low)
        .fold(f64::INFINITY, f64::min);
    let spread = bins
        .iter()
        .map(|bin| bin.interval[1] - bin.interval[0])
        .fold(0.0, f64::max);
    let most = bins.iter().map(|bin| bin.answer).fold(1.0, f64::max);
    let (edges, counts) = (
        Place::of(width, PUBLIC_DIGITS),
        Place::of(spread, INTERVAL_DIGITS).whole(),
    );
    let row = |(index, bin): (usize, &Bin)| {
        let end = if index + 1 == bins.len() { ']' } else { ')' };
        let name = format!(
            "[{}, {}{end}",
            edges.show_short(bin.low),
            edges.show_short(bin.high)
        );
        let [low, high] = bin.interval.map(|end| counts.show(end));
        let bar = "#".repeat((BAR_CHARS * bin.answer.max(0.0) / most).round() as usize);
        [
            name,
            counts.show(bin.answer),
            format!("{low} to {high}"),
            bar,
        ]
    };
    let column = answer.column.clone().unwrap_or_default();
    let mut rows = vec![[column, "count".into(), interval_name(answer), String::new()]];
    rows.extend(bins.iter().enumerate().map(row));
    let widths = [0, 1, 2].map(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    });
    let text = rows.iter().map(|[name, count, interval, bar]| {
        let row = format!(
            "{name:<0$}  {count:>1$}  {interval:<2$}  {bar}",
            widths[0], widths[1], widths[2]
        );
        row.trim_end().to_owned() + "\n"
    });
    text.collect()
}

/// One line for each combination of categories.
fn cells_of(answer: &Answer, columns: &[String], cells: &[Cell]) -> String {
    let spread = cells
        .iter()
        .map(|cell| cell.interval[1] - cell.interval[0])
        .fold(0.0, f64::max);
    let counts = Place::of(spread, INTERVAL_DIGITS).whole();
    let mut rows = vec![columns.to_vec()];
    rows[0].extend(["count".into(), interval_name(answer)]);
    for cell in cells {
        let [low, high] = cell.interval.map(|end| counts.show(end));
        let mut row = cell.categories.clone();
        row.extend([counts.show(cell.answer), format!("{low} to {high}")]);
        rows.push(row);
    }
    let width = |column: usize| {
        let chars = rows.iter().map(|row| row[column].chars().count());
        chars.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len() + 2).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(column, text): (usize, &String)| {
            let width = widths[column];
            if column == columns.len() {
                format!("{text:>width$}")
            } else {
                format!("{text:<width$}")
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A name and what it stands for, broken between words.
fn line(name: &str, name_chars: usize, text: &str) -> String {
    let mut lines = vec![format!("{name:<name_chars$} ")];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always a line");
        let is_full = last.chars().count() + 1 + word.chars().count() > LINE_CHARS;
        if is_full && last.chars().count() > name_chars + 1 {
            lines.push(format!("{:name_chars$}  {word}", ""));
        } else {
            last.push(' ');
            last.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// The place of the last digit that is worth showing, as a power of ten.
#[derive(Clone, Copy)]
struct Place(i32);

impl Place {
    /// The place at which `spread` itself would have this many digits.
    fn of(spread: f64, digits: i32) -> Self {
        Self(if spread > 0.0 {
            spread.log10().floor() as i32 + 1 - digits
        } else {
            0
        })
    }

    /// The same, but nothing behind the point.
    fn whole(self) -> Self {
        Self(self.0.max(0))
    }

    fn show(self, value: f64) -> String {
        let Self(exponent) = self;
        if value.abs() >= 1e15 || exponent < -12 {
            return format!("{value:.3e}");
        }
        let text = if exponent < 0 {
            format!("{value:.0$}", exponent.unsigned_abs() as usize)
        } else {
            let unit = 10_f64.powi(exponent);
            format!("{:.0}", (value / unit).round() * unit)
        };
        // A small negative number must not become a minus without a number.
        let is_zero = text.chars().all(|letter| "-0.".contains(letter));
        if is_zero { text.replace('-', "") } else { text }
    }

    /// Without zeros at the end, for numbers that stand alone.
    fn show_short(self, value: f64) -> String {
        let text = self.show(value);
        if text.contains('e') || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, spread: f64, expected: &str) {
        assert_eq!(Place::of(spread, INTERVAL_DIGITS).show(value), expected);
    }

    #[test]
    fn digits_far_below_the_error_bar_are_hidden() {
        check(38.581_646_7, 0.05, "38.582");
        check(38.581_646_7, 5.0, "38.6");
        check(38.0, 5.0, "38.0");
        check(1_256_257.123, 480.0, "1256260");
        check(1_256_257.123, 123_456.0, "1260000");
        check(-0.004, 5.0, "0.0");
        check(-0.4, 60.0, "0");
        check(7.0, 0.0, "7");
        check(3e20, 1e18, "3.000e20");
        check(3e-20, 1e-21, "3.000e-20");
        assert_eq!(
            Place::of(6.0, INTERVAL_DIGITS).whole().show(32_561.0),
            "32561"
        );
    }

    #[test]
    fn numbers_that_stand_alone_are_short() {
        let check = |value, expected: &str| {
            assert_eq!(Place::of(value, PUBLIC_DIGITS).show_short(value), expected)
        };
        check(1.0, "1");
        check(240.0, "240");
        check(12.345, "12.3");
        check(0.1, "0.1");
        check(736.6, "737");
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = line("guarantee", 14, &"word ".repeat(40));
        assert!(
            text.lines().count() > 2 && text.lines().all(|line| line.chars().count() <= LINE_CHARS)
        );
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with(&" ".repeat(16)))
        );
    }
}
