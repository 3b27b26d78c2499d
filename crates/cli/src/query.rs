//! `whit query`: a statement becomes a private answer.

use std::io::{self, IsTerminal, Read};

use clap::Args;
use whit::session::{Answer, Asked, Charge, Explained, Question, Remaining, Reply};
use whit::{Confidence, Epsilon, Failure, OsEntropy};

use crate::account::does_not_vanish;
use crate::place::{PlaceArguments, is_there};
use crate::{Format, Print, sheet, table};

/// Private answers to SQL, paid from a budget that lasts.
///
/// The catalog (whit.toml) says which tables there are, whose rows they hold, and how much may be spent; whit init makes a
/// first one. Without a catalog the bundled demonstration is used: what 4,372 customers bought from a shop, in the tables customers
/// (customer, country), purchases (purchase, customer, month, weekday, hour, lines, items, amount) and weekdays (public).
///
/// A statement counts or adds up rows of one private table: COUNT(*), COUNT(x), COUNT(DISTINCT unit), SUM(x) and AVG(x), with
/// WHERE, GROUP BY, joins with public tables, HAVING, ORDER BY and LIMIT. What it costs is decided, and kept in the ledger, before a
/// private row is read. The same statement again gives the same answer, for nothing: to the same analyst, with the same epsilon, delta,
/// bounds and confidence, about the same tables and the same version that the catalog names.
///
/// Numbers with ± were made private: the true one, computed on the rows that count, lies within with the confidence that is
/// told. Which rows count is bounded by --groups-per-unit and --rows-per-group: rows of a unit beyond that are left out.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The statement; read from standard input if it is left out or -. Before SELECT, EXPLAIN PRIVACY means --explain
    #[arg(value_name = "SQL")]
    sql: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
    /// What the whole statement may cost; else as the catalog says
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: Option<String>,
    /// The slack of the whole statement; else as the catalog says. Keys that are not declared need one
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: Option<String>,
    /// In how many groups one unit counts, the others left out by chance
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    groups_per_unit: Option<String>,
    /// How many rows of one unit count in a group, the others left out by chance
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    rows_per_group: Option<String>,
    /// Who asks, and is charged besides the data set
    #[arg(long, value_name = "NAME")]
    analyst: Option<String>,
    /// Tell price, noise and expected error, and do nothing
    #[arg(long)]
    explain: bool,
    /// How often an interval holds the value without noise, at least
    #[arg(
        long,
        value_name = "PROBABILITY",
        default_value = "0.95",
        allow_hyphen_values = true
    )]
    confidence: String,
}

const EXAMPLES: &str = "\
Examples:
  whit query 'SELECT weekday, COUNT(*) AS n, AVG(amount) AS mean FROM purchases GROUP BY weekday'
      Seven counts and means of the demonstration.
  whit query 'SELECT COUNT(DISTINCT customer) FROM customers' --epsilon 0.1
      How many customers there are.
  whit query 'SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC'
      Countries were not declared: those with enough customers are shown.
  whit query --explain 'SELECT SUM(amount) FROM purchases WHERE hour < 12'
      What it would cost, and how far off it would be.
  whit query --catalog shop/whit.toml --format json < question.sql";

/// More than anybody writes; a statement has its own limit below this.
const SQL_BYTES_MAX: u64 = 1 << 24;

pub(crate) fn run(arguments: Arguments, print: Print) -> Result<String, Failure> {
    let confidence: Confidence = arguments.confidence.parse()?;
    let asked = arguments.asked()?;
    let (sql, explain) = without_explain(statement(arguments.sql)?);
    let mut question = Question::new(sql);
    question.asked = asked;
    question.confidence = confidence;
    question.analyst = arguments.analyst;
    let explain = explain || arguments.explain;
    // Rows go to a program as JSON does: without talk.
    let format = match print {
        Print::Csv if !explain => Format::Json,
        other => other.format()?,
    };
    let place = arguments.place.find(format)?;
    // A ledger begins with a statement that could be charged, and not with one that is refused.
    if !is_there(&place.ledger) {
        whit::session::rehearse(&place.catalog, &place.folder, &question)?;
    }
    let session = place.open()?;
    if explain {
        let explained = session.explain(&question)?;
        return Ok(match format {
            Format::Table => explanation(&explained, confidence, session.catalog().dataset()),
            Format::Json => json(&explained),
        });
    }
    let reply = session.query(&question, &mut OsEntropy::new())?;
    Ok(match print {
        Print::Table => words(&reply, confidence, session.catalog().dataset()),
        Print::Json => json(&reply),
        Print::Csv => sheet::csv(&reply.answer, &reply.bounded),
    })
}

impl Arguments {
    fn asked(&self) -> Result<Asked, Failure> {
        let number = |text: &Option<String>, what: &str| {
            let text = text.as_deref();
            text.map(|text| crate::whole_number(what, text)).transpose()
        };
        if let Some(delta) = &self.delta {
            does_not_vanish("delta", delta)?;
        }
        Ok(Asked {
            epsilon: self.epsilon.as_deref().map(epsilon).transpose()?,
            delta: self.delta.as_deref().map(str::parse).transpose()?,
            groups_per_unit: number(&self.groups_per_unit, "the number of groups per unit")?,
            rows_per_group: number(&self.rows_per_group, "the number of rows per group")?,
        })
    }
}

/// Whatever is wrong with an epsilon, the same would pass.
fn epsilon(text: &str) -> Result<Epsilon, Failure> {
    let wanted = |failure: Failure| {
        let suggestion = "give epsilon as a number above 0, up to 1024";
        Failure::invalid(failure.code(), failure.reason(), suggestion)
    };
    does_not_vanish("epsilon", text).map_err(wanted)?;
    text.parse()
        .map_err(|error: whit::core::Error| wanted(error.into()))
}

/// From the arguments or from standard input.
fn statement(sql: Option<String>) -> Result<String, Failure> {
    match sql {
        Some(sql) if sql != "-" => Ok(sql),
        None if io::stdin().is_terminal() => Err(Failure::invalid(
            "no_statement",
            "there is no statement",
            "write it behind the command in quotes, or send it to standard input",
        )),
        _ => {
            let mut text = String::new();
            let read = io::stdin().take(SQL_BYTES_MAX).read_to_string(&mut text);
            // Some editors begin a file with a mark that is no part of it.
            let text = || text.trim_start_matches('\u{feff}').to_owned();
            read.map(|_| text()).map_err(|_| {
                Failure::invalid(
                    "no_statement",
                    "standard input is no text",
                    "send one statement in UTF-8",
                )
            })
        }
    }
}

/// `EXPLAIN PRIVACY` before the statement is a wish, and not SQL.
fn without_explain(sql: String) -> (String, bool) {
    let mut rest = sql.trim_start();
    for word in ["explain", "privacy"] {
        let Some((head, tail)) = rest.split_at_checked(word.len()) else {
            return (sql, false);
        };
        if !head.eq_ignore_ascii_case(word) || !tail.starts_with(char::is_whitespace) {
            return (sql, false);
        }
        rest = tail.trim_start();
    }
    (rest.to_owned(), true)
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("a reply is plain data")
}

fn words(reply: &Reply, confidence: Confidence, dataset: &str) -> String {
    let Reply {
        answer,
        charge,
        remaining,
        reused,
        receipt,
        ..
    } = reply;
    let mut lines = Vec::new();
    if answer.rows.is_empty() {
        lines.push(("rows".to_owned(), nothing(answer)));
    }
    if answer.intervals.iter().flatten().any(Option::is_some) {
        let percent = sheet::percent(confidence.value());
        let text = format!(
            "±, or from and to: the value without noise is within, with {percent} confidence"
        );
        lines.push(("errors".into(), text));
    }
    for note in &reply.notes {
        lines.push(("note".into(), (*note).into()));
    }
    let cost = if *reused {
        "nothing: this was answered before".to_owned()
    } else {
        price(charge)
    };
    lines.push(("charge".into(), cost));
    lines.extend(left(remaining, dataset));
    lines.push(("receipt".into(), receipt.clone()));
    sheet::table(answer) + "\n" + &table::lines(&lines)
}

fn nothing(answer: &Answer) -> String {
    let keys = answer.columns.iter().any(|column| !column.noisy);
    if keys {
        "none: no key had enough units behind it, or HAVING or LIMIT left none".into()
    } else {
        "none".into()
    }
}

pub(crate) fn price(charge: &Charge) -> String {
    let mut text = format!("epsilon {}", sheet::short_up(charge.epsilon));
    if charge.delta > 0.0 {
        text += &format!(", delta {}", sheet::short_up(charge.delta));
    }
    if let Some(sums) = adds(charge) {
        text += &format!(" alone; {sums}");
    }
    text
}

/// What a charge adds to a budget of concentrated losses; none in another one.
pub(crate) fn adds(charge: &Charge) -> Option<String> {
    let mut text = format!("adds rho {}", sheet::short_up(charge.rho?));
    let delta0 = charge.delta0?;
    if delta0 > 0.0 {
        text += &format!(" and delta {}", sheet::short_up(delta0));
    }
    Some(text + " to the budget's sums")
}

/// One line for each level that has a cap. What is left is rounded down, what is charged up.
pub(crate) fn left(remaining: &Remaining, dataset: &str) -> Vec<(String, String)> {
    let levels = [
        (
            format!("of {}", sheet::printable(dataset)),
            Some(remaining.dataset),
        ),
        ("of your team".into(), remaining.team),
        ("of your own".into(), remaining.analyst),
    ];
    let line = |(whose, left): (String, Option<whit::session::Left>)| {
        let left = left?;
        let delta = match left.delta {
            0.0 => String::new(),
            delta => format!(", delta {}", sheet::short_down(delta)),
        };
        let epsilon = sheet::short_down(left.epsilon);
        let text = format!("epsilon {epsilon}{delta} left {whose}");
        Some(("budget".to_owned(), text))
    };
    levels.into_iter().filter_map(line).collect()
}

fn explanation(explained: &Explained, confidence: Confidence, dataset: &str) -> String {
    let plan = &explained.explanation;
    let keys = match (plan.keys, plan.groups) {
        ("one", _) => "one row".to_owned(),
        (_, Some(groups)) => format!("{groups} public keys, each with a row"),
        _ => match plan.threshold {
            Some(found) => format!(
                "private: a key of {} units is shown every other time, one of {} or more always",
                found.units_half, found.units_always
            ),
            None => "private: a key is shown if enough units are behind it".to_owned(),
        },
    };
    let mut uses = format!(
        "of each unit, up to {} rows in up to {} groups",
        plan.rows_per_group, plan.groups_per_unit
    );
    if let Some(rows) = plan.rows_per_unit {
        uses += &format!(", and {rows} rows in all");
    }
    let mut lines = vec![("groups".to_owned(), keys), ("uses".to_owned(), uses)];
    for noise in &plan.noise {
        let error = match noise.half_width {
            Some(half) => format!(
                ": off by at most {}, with {} confidence",
                sheet::short_up(half),
                sheet::percent(confidence.value())
            ),
            None => ": how far off depends on how many rows there are".into(),
        };
        let text = format!(
            "{} of scale {}{error}",
            noise.distribution,
            sheet::short(noise.scale)
        );
        lines.push((sheet::printable(&noise.aggregate), text));
    }
    for note in &plan.notes {
        lines.push(("note".into(), (*note).into()));
    }
    lines.push((
        "charge".into(),
        format!("would be {}", price(&explained.charge)),
    ));
    lines.extend(left(&explained.remaining, dataset));
    let room = match explained.room {
        0 => "for no such statement".to_owned(),
        1 => "for one such statement".to_owned(),
        more => format!("for {more} such statements"),
    };
    lines.push(("room".into(), room));
    lines.push(("so far".into(), "nothing was read or charged".into()));
    table::lines(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explain_privacy_is_a_prefix() {
        let check = |sql: &str, rest: &str, found: bool| {
            assert_eq!(
                without_explain(sql.into()),
                (rest.to_owned(), found),
                "{sql}"
            );
        };
        check("EXPLAIN PRIVACY SELECT 1", "SELECT 1", true);
        check(" explain\n privacy\tselect 1", "select 1", true);
        check("EXPLAIN SELECT 1", "EXPLAIN SELECT 1", false);
        check("EXPLAIN PRIVACYSELECT 1", "EXPLAIN PRIVACYSELECT 1", false);
        check("explé", "explé", false);
        check("", "", false);
    }
}
