//! Why a session has no answer.

use std::path::Path;

use thiserror::Error as ThisError;
use whit_accounting::budget::{Mode, Sums};
use whit_accounting::reserve::{Level, Refusal, Standing, Unreserved};
use whit_core::{Fault, FaultKind};
use whit_ledger::verify::{Beside, Report};
use whit_sql::PrivatePlan;

use crate::stats::short_up;

/// A question that cannot be answered, or a ledger that does not let it.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The catalog or the statement does not pass.
    #[error(transparent)]
    Sql(#[from] whit_sql::Error),
    /// The ledger refuses, or stopped.
    #[error(transparent)]
    Ledger(#[from] whit_ledger::Error),
    /// The ledger stopped after a charge: that is kept, and what it was paid for is lost.
    #[error("{0}; what was charged before stays charged, and its answer is lost")]
    Unsettled(whit_ledger::Error),
    /// The plan has no price.
    #[error(transparent)]
    Accounting(#[from] whit_accounting::Error),
    /// The statistic does not pass.
    #[error(transparent)]
    Statistic(#[from] crate::Error),
    /// A level of the budget has no room.
    #[error("{}", no_room(.0))]
    Refused(Refusal),
    /// A permit was shown for another event.
    #[error(transparent)]
    OtherEvent(#[from] whit_accounting::reserve::OtherEvent),
    /// A statistic of a table protects somebody else than the catalog says.
    #[error("the catalog protects each {unit} of the table {table}, and this each {given}")]
    OtherUnit {
        /// The table.
        table: String,
        /// Its unit in the catalog.
        unit: String,
        /// The unit that was asked for.
        given: String,
    },
    /// A plan for words that the catalog does not have in a column.
    #[cfg(feature = "learn")]
    #[error(
        "the catalog declares the values of {column} in the table {table}, and {given} is none of them"
    )]
    OtherWord {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the plan has there.
        given: String,
        /// What the catalog has there.
        words: Vec<String>,
    },
    /// A statistic for another neighbour relation than the budget's.
    #[error("the budget is for {budget} neighbours, and this is for {given} neighbours")]
    OtherRelation {
        /// The budget's.
        budget: whit_core::Neighbours,
        /// What was asked for.
        given: whit_core::Neighbours,
    },
    /// A statistic of a table that is not private, or not there.
    #[error("the catalog has no private table {table}")]
    NoTable {
        /// The table.
        table: String,
    },
    /// A statistic of a table whose units are numbers.
    #[error(
        "the unit {unit} of the table {table} is not text, and statistics tell units apart as text"
    )]
    UnitNotText {
        /// The table.
        table: String,
        /// Its unit.
        unit: String,
    },
    /// A statistic of a column that its table does not have.
    #[error("the table {table} has no column {column:?}")]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The run does not pass.
    #[cfg(feature = "learn")]
    #[error(transparent)]
    Learn(#[from] whit_learn::Error),
    /// A run on a file that is not the table's, whose ledger would be charged for it.
    #[cfg(feature = "learn")]
    #[error("the data of the plan, {}, are not the file of the table {table}", given.display())]
    OtherFile {
        /// The table.
        table: String,
        /// Its file.
        file: std::path::PathBuf,
        /// The file of the plan.
        given: std::path::PathBuf,
    },
    /// A run on units of which each may have many rows.
    #[cfg(feature = "learn")]
    #[error(
        "the catalog protects each {unit} of the table {table}, and a run protects one row of each"
    )]
    SeveralRows {
        /// The table.
        table: String,
        /// Its unit.
        unit: String,
    },
    /// A run that has a delta, and a budget that has none.
    #[cfg(feature = "learn")]
    #[error("the budget has no delta, and the noise of a training run needs one")]
    NoDelta {
        /// The plan's.
        delta: f64,
    },
    /// A folder that holds a run which this ledger was not charged for.
    #[cfg(feature = "learn")]
    #[error("the run at {} was not paid for from this ledger by this account", path.display())]
    OtherRun {
        /// Where it is kept.
        path: std::path::PathBuf,
    },
    /// Votes as they are, kept for somebody who is charged for what noise leaves of them.
    #[cfg(feature = "learn")]
    #[error("votes as they are belong to the owner, and {analyst} is charged as an analyst")]
    VotesKept {
        /// Who asks.
        analyst: String,
    },
    /// What somebody below says, and what would pass here.
    #[error("{error}")]
    Advised {
        /// What is wrong.
        error: Box<Error>,
        /// What would pass.
        suggestion: String,
    },
    /// An answer that was stored by a newer program.
    #[error("the ledger holds an answer that this program cannot read")]
    Unreadable,
}

/// Short for a result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no room, with numbers as people write them. What is left is rounded down, a cost up.
fn no_room(refusal: &Refusal) -> String {
    let Refusal::Exhausted {
        level,
        what,
        asked,
        left,
    } = refusal
    else {
        return refusal.to_string();
    };
    let (left, asked) = (plain(left.to_f64_down()), short_up(asked.to_f64_up()));
    format!("the {level} has {what} {left} left, and this costs {what} {asked}")
}

fn plain(number: f64) -> String {
    if number == 0.0 || (1e-4..1e7).contains(&number) {
        number.to_string()
    } else {
        format!("{number:e}")
    }
}

/// As a shell takes it for one word.
fn word(name: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    if name.chars().all(bare) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

impl From<Unreserved<whit_ledger::Error>> for Error {
    fn from(unreserved: Unreserved<whit_ledger::Error>) -> Self {
        match unreserved {
            Unreserved::NoPrice(error) => Self::Accounting(error),
            Unreserved::Refused(refusal) => Self::Refused(refusal),
            Unreserved::Journal(error) => Self::Ledger(error),
            _ => Self::Unreadable,
        }
    }
}

/// What helps without any delta.
const DECLARE: &str =
    "declare `values` of the key columns, or LEFT JOIN from a public table of keys";

/// Was nothing ever charged there, for all that is known? Damage may have taken charges away, but then a recovery has closed the budget,
/// and a copy without its key and mark may be an old one.
fn is_unused(report: &Report) -> bool {
    let beside = [report.key, report.mark];
    report.reserved == 0
        && report.standings.iter().all(|s| s.spent == Sums::default())
        && beside.iter().all(|found| *found == Beside::Fits)
}

/// For the data set of another ledger, or another way to keep it: if nothing was charged there, nothing is lost by beginning anew.
pub(super) fn or_begin_anew(error: whit_ledger::Error, ledger: &Path) -> Error {
    use whit_ledger::Error::{OtherDataset, OtherMode};
    let other = matches!(error, OtherDataset { .. } | OtherMode { .. });
    let unused = || whit_ledger::verify(ledger).is_ok_and(|report| is_unused(&report));
    if other && unused() {
        let suggestion = format!(
            "{}; nothing was charged here yet, so this ledger may also be deleted, together with its .key and .mark",
            error.suggestion()
        );
        let error = Box::new(error.into());
        return Error::Advised { error, suggestion };
    }
    error.into()
}

/// Is there a ledger?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    Already,
    NotYet,
}

/// Whose keys an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Those of the data, which need a delta.
    Private,
    /// Public ones, or none.
    Public,
}

impl Keys {
    pub(super) fn of(plan: &PrivatePlan) -> Self {
        match plan.groups() {
            None => Self::Private,
            Some(_) => Self::Public,
        }
    }
}

/// Two digits of a number, never more than it is.
fn down(number: f64) -> String {
    let step = 10_f64.powi(number.log10().floor() as i32 - 1);
    let text = format!("{:.1e}", (number / step).floor() * step);
    let text = match text.parse::<f64>() {
        Ok(shown) if shown <= number => text,
        _ => format!("{:.1e}", ((number / step).floor() - 1.0) * step),
    };
    text.replace(".0e", "e")
}

impl Error {
    /// The same, and if it is for want of a delta, with one that would pass. `standings` are asked for in that case only.
    pub(super) fn about_delta(
        self,
        keys: Keys,
        mode: Mode,
        begun: Begun,
        standings: impl FnOnce() -> Option<Vec<Standing>>,
    ) -> Self {
        let is_about_delta = match &self {
            Self::Sql(whit_sql::Error::Refused { code, .. }) => *code == "keys_need_delta",
            Self::Refused(Refusal::Exhausted { what, .. }) => *what == "delta",
            _ => false,
        };
        let found = if is_about_delta { standings() } else { None };
        let Some(standings) = found else {
            return self;
        };
        let left = standings.iter().filter_map(|standing| {
            let left = standing.cap?.remaining(standing.spent).left;
            Some(left.delta.to_f64_down())
        });
        let left = left.fold(f64::INFINITY, f64::min);
        let has_left = left > 0.0 && left.is_finite();
        let suggestion = match (mode, begun) {
            _ if keys == Keys::Public && has_left => {
                format!("leave --delta out, or give at most {}", down(left))
            }
            _ if keys == Keys::Public => {
                "leave --delta out, or give --delta 0 where the catalog has a default".into()
            }
            (Mode::Pure, Begun::Already) => format!(
                "{DECLARE}: this ledger was begun without a delta, so other keys cannot be shown; for them the owner must begin a new ledger, with `delta` in [budget] of the catalog from the start"
            ),
            (Mode::Pure, Begun::NotYet) => format!(
                "{DECLARE}; or let the owner put `delta` into [budget] of the catalog before anything is charged, since a ledger that was begun without one has none for good"
            ),
            // A statement that takes a tenth leaves room for others.
            _ if has_left => format!(
                "give --delta {}, for example, and no more than {}, which is left for statements; or {DECLARE}",
                down(left / 10.0),
                down(left)
            ),
            _ => format!("{DECLARE}; no delta is left until the owner raises the cap"),
        };
        let error = Box::new(self);
        Self::Advised { error, suggestion }
    }

    /// Who says so, if it is somebody below.
    fn below(&self) -> Option<&dyn Fault> {
        Some(match self {
            Self::Sql(error) => error,
            Self::Ledger(error) | Self::Unsettled(error) => error,
            Self::Accounting(error) => error,
            Self::Statistic(error) => error,
            Self::Refused(refusal) => refusal,
            Self::OtherEvent(error) => error,
            Self::Advised { error, .. } => error.as_ref(),
            #[cfg(feature = "learn")]
            Self::Learn(error) => error,
            _ => return None,
        })
    }
}

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match (self.below(), self) {
            (Some(error), _) => error.kind(),
            (None, Self::NoColumn { .. } | Self::NoTable { .. }) => FaultKind::Invalid,
            (None, _) => FaultKind::Refused,
        }
    }

    fn code(&self) -> &'static str {
        match (self.below(), self) {
            (Some(error), _) => error.code(),
            (None, Self::OtherUnit { .. }) => "other_unit",
            #[cfg(feature = "learn")]
            (None, Self::OtherWord { .. }) => "other_word",
            (None, Self::OtherRelation { .. }) => "other_relation",
            (None, Self::NoColumn { .. }) => "unknown_column",
            (None, Self::NoTable { .. }) => "unknown_table",
            (None, Self::UnitNotText { .. }) => "unit_not_text",
            #[cfg(feature = "learn")]
            (None, Self::OtherFile { .. }) => "other_file",
            #[cfg(feature = "learn")]
            (None, Self::SeveralRows { .. }) => "several_rows_per_unit",
            #[cfg(feature = "learn")]
            (None, Self::NoDelta { .. }) => "budget_without_delta",
            #[cfg(feature = "learn")]
            (None, Self::OtherRun { .. }) => "other_run",
            #[cfg(feature = "learn")]
            (None, Self::VotesKept { .. }) => "owner_and_analyst",
            (None, _) => "stored_answer_unreadable",
        }
    }

    fn suggestion(&self) -> String {
        match (self.below(), self) {
            (_, Self::Advised { suggestion, .. }) => suggestion.clone(),
            (_, Self::Refused(Refusal::Exhausted { what: "rho", .. })) => {
                "ask with a smaller epsilon (rho goes with its square), or let the owner raise the cap".into()
            }
            (_, Self::Ledger(whit_ledger::Error::CapRaised { level })) => {
                let option = match level {
                    Level::Team(name) => format!(" --team {}", word(name)),
                    Level::Analyst(name) => format!(" --analyst {}", word(name)),
                    _ => String::new(),
                };
                format!("undo the change, or record it with `whit ledger cap{option}`")
            }
            (Some(error), _) => error.suggestion(),
            (None, Self::OtherUnit { unit, .. }) => {
                format!("leave the unit out, or give {unit}")
            }
            #[cfg(feature = "learn")]
            (None, Self::OtherWord { column, words, .. }) => format!(
                "give classes, categories and columns as the catalog has them; {column} holds words: {}",
                words.join(", ")
            ),
            (None, Self::OtherRelation { budget, .. }) => format!("use {budget}"),
            #[cfg(feature = "learn")]
            (None, Self::OtherFile { file, .. }) => format!(
                "give {} as the path in [data], or name the table that has the plan's file",
                file.display()
            ),
            #[cfg(feature = "learn")]
            (None, Self::SeveralRows { .. }) => {
                "say rows_per_unit = 1, in [data] of the plan or in the catalog: then one row of each unit is trained on".into()
            }
            #[cfg(feature = "learn")]
            (None, Self::NoDelta { delta }) => format!(
                "train on data whose catalog has a delta of more than {} in [budget] from the start; a ledger that was opened without one has none for good",
                plain(2.0 * delta)
            ),
            #[cfg(feature = "learn")]
            (None, Self::OtherRun { .. }) => {
                "go on with the catalog, ledger and analyst that it was begun with, or give another folder".into()
            }
            #[cfg(feature = "learn")]
            (None, Self::VotesKept { .. }) => {
                "let votes be removed once labels are kept, or ask as the owner, without an analyst"
                    .into()
            }
            (None, Self::NoColumn { .. }) => "compare with the first line of its file".into(),
            (None, Self::NoTable { .. }) => "name one that has a unit in the catalog".into(),
            (None, Self::UnitNotText { .. }) => {
                "take the type of that column out of the catalog, or ask in SQL with `whit query`"
                    .into()
            }
            (None, _) => "use the program that stored it, or a newer one".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use whit_accounting::budget::{Amount, Cap};
    use whit_core::{Delta, Epsilon, Neighbours};

    use super::*;

    #[test]
    fn keys_are_spoken_of_where_they_are_private() {
        let cap = |delta: f64| {
            let (epsilon, delta) = (Epsilon::new(1.0), Delta::new(delta));
            let (epsilon, delta) = (epsilon.expect("an epsilon"), delta.expect("a delta"));
            Cap::new(Mode::Zcdp, Neighbours::AddRemove, epsilon, delta).expect("a cap")
        };
        let standing = |delta: f64| Standing {
            level: Level::Dataset,
            cap: Some(cap(delta)),
            spent: Sums::default(),
        };
        let exhausted = |what| {
            Error::Refused(Refusal::Exhausted {
                level: Level::Dataset,
                what,
                asked: Amount::from_units(2),
                left: Amount::from_units(1),
            })
        };
        let hint = |keys| {
            let standings = || Some(vec![standing(1e-6)]);
            let error = exhausted("delta");
            let error = error.about_delta(keys, Mode::Zcdp, Begun::Already, standings);
            error.suggestion()
        };
        assert!(hint(Keys::Private).contains("key columns"));
        let public = hint(Keys::Public);
        let (_, most) = public.split_once("or give at most ").expect("a number");
        let most: f64 = most.parse().expect("a number");
        assert!(public.starts_with("leave --delta out") && !public.contains("key"));
        assert!(0.0 < most && most <= 1e-6);
        // Whatever is about something else needs no look at the ledger.
        for other in [exhausted("rho"), Error::Unreadable] {
            let look = || panic!("the ledger was asked");
            let same = other.clone();
            assert_eq!(
                other.about_delta(Keys::Private, Mode::Zcdp, Begun::Already, look),
                same
            );
        }
    }

    #[test]
    fn two_digits_are_never_more() {
        for (number, text) in [
            (1e-9, "1e-9"),
            (4.999_999_9e-9, "4.9e-9"),
            (5e-10, "5e-10"),
            (9.99e-7, "9.9e-7"),
            (0.25, "2.5e-1"),
        ] {
            assert_eq!(down(number), text);
        }
        let mut number = 1e-18;
        while number < 1.0 {
            number *= 1.37;
            let shown: f64 = down(number).parse().expect("a number");
            assert!(shown <= number && number <= 1.2 * shown, "{number}");
        }
    }
}
