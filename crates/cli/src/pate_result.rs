//! What is shown of an aggregation, and what is written.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whit::Failure;
use whit::session::{Charge, Remaining};
use whit_learn::pate::{Accounting, Aggregation, Outcome, Owner};

use crate::account::{plain, up};
use crate::catalogued::{in_the_way, is_one};
use crate::train_result::charged;
use crate::{Format, query, table};

/// What a ledger was charged.
pub(crate) struct Paid {
    pub(crate) dataset: String,
    pub(crate) charge: Charge,
    pub(crate) remaining: Remaining,
    pub(crate) receipt: String,
}

/// An aggregation that has ended.
pub(crate) struct Finished<'a> {
    pub(crate) aggregation: &'a Aggregation,
    pub(crate) teachers: u64,
    /// Was the number of classes found in the votes?
    pub(crate) classes_found: bool,
    pub(crate) outcome: &'a Outcome,
    pub(crate) owner: Option<(&'a Owner, Accounting)>,
    pub(crate) paid: Option<&'a Paid>,
}

/// What an option shows or keeps is computed from the votes without noise, or is the votes, and is the owner's; whoever asks as an analyst is somebody else, whose budget is counted.
pub(crate) fn owner_alone(
    (option, given): (&str, bool),
    analyst: Option<&str>,
) -> Result<(), Failure> {
    if given && analyst.is_some() {
        return Err(Failure::refused(
            "owner_and_analyst",
            &format!(
                "{option} is for the owner, who may see the votes without noise, and an analyst is charged for what noise leaves"
            ),
            &format!(
                "leave out {option}, or leave out --analyst and keep what comes of it to yourself"
            ),
        ));
    }
    Ok(())
}

/// Refuses to write over what is read, over what belongs to a catalog, or twice over the same file.
pub(crate) fn apart(
    written: &[(&'static str, &Path)],
    read: &[(&'static str, PathBuf)],
    catalog: Option<&Path>,
) -> Result<(), Failure> {
    let refused = |option: &str, path: &Path, what: &str| {
        Err(Failure::invalid(
            "out_is_input",
            &format!("{option} would write over {what}, {}", path.display()),
            &format!("give {option} another file"),
        ))
    };
    for (place, (option, path)) in written.iter().enumerate() {
        let others = written[..place].iter();
        let others = others.map(|(other, path)| (*other, *path));
        let all = read.iter().map(|(what, path)| (*what, path.as_path()));
        if let Some((what, _)) = all.chain(others).find(|(_, other)| is_one(path, other)) {
            return refused(option, path, what);
        }
        if let Some(what) = in_the_way(path, catalog)? {
            return refused(option, path, &what);
        }
    }
    Ok(())
}

/// Tries whether a file can be written, before anything is paid or told, and leaves it as it was.
#[expect(clippy::disallowed_methods, reason = "a door writes files")]
pub(crate) fn tried(path: &Path, code: &'static str) -> Result<(), Failure> {
    let was_there = path.symlink_metadata().is_ok();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let left = opened.and_then(|_| match was_there {
        true => Ok(()),
        false => std::fs::remove_file(path),
    });
    left.map_err(|error| unwritable(path, code, &error))
}

/// The code of labels that cannot be written.
pub(crate) const LABELS_UNWRITABLE: &str = "labels_unwritable";

fn unwritable(path: &Path, code: &'static str, error: &io::Error) -> Failure {
    Failure::invalid(
        code,
        &format!("{} cannot be written: {error}", path.display()),
        "name a file in a folder that exists and that you may write to",
    )
}

/// Labels in a line.
const LABELS: usize = 20;
/// The longest bar.
const BAR: f64 = 40.0;

impl Finished<'_> {
    /// `query,label` for each query that was answered.
    #[expect(clippy::disallowed_methods, reason = "a door writes files")]
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut text = String::from("query,label\n");
        for (query, label) in self.outcome.labels.iter().enumerate() {
            if let Some(label) = label {
                text += &format!("{query},{label}\n");
            }
        }
        std::fs::write(path, text).map_err(|error| unwritable(path, LABELS_UNWRITABLE, &error))
    }

    /// With what could not be written, for programs: people hear of it beside this.
    pub(crate) fn show(&self, format: Format, unwritten: Option<&Failure>) -> String {
        match format {
            Format::Json => {
                let mut all = self.json();
                if let Some(failure) = unwritten {
                    all["failure"] = json!(failure);
                }
                all.to_string()
            }
            Format::Table => self.table(),
        }
    }

    /// Of an owner who counts expected answers, the worst case of as many; else the guarantee.
    fn independent(&self) -> f64 {
        match self.owner {
            Some((owner, Accounting::Expected)) => owner.independent.epsilon,
            _ => self.aggregation.epsilon(),
        }
    }

    fn json(&self) -> Value {
        let terms = self.aggregation.terms();
        let sanitised = self.outcome.sanitised;
        // A published cost is no Gaussian: whoever composed by the rest alone would charge too little.
        let mu = terms.sanitise.is_none().then(|| self.aggregation.mu());
        let mut all = json!({
            "answered": self.outcome.answered(),
            "labels": self.outcome.labels,
            "epsilon_independent": self.independent(),
            "epsilon_guaranteed": self.aggregation.epsilon(),
            "epsilon_sanitised": sanitised.map(|told| told.epsilon),
            "delta": terms.delta,
            "mu": mu,
            "relation": terms.neighbours,
            "tested": self.outcome.tested,
            "queries": terms.queries,
            "answers_max": terms.answers_max,
            "teachers": self.teachers,
            "classes": terms.classes,
            "classes_found_in_votes": self.classes_found,
            "sanitised": sanitised,
        });
        if let Some((owner, accounting)) = self.owner {
            all["epsilon"] = json!(owner.published.epsilon);
            all["order"] = json!(owner.published.order);
            all["epsilon_tight"] = json!(owner.tight.epsilon);
            all["order_tight"] = json!(owner.tight.order);
            all["epsilon_worst_case"] = json!(owner.independent.epsilon);
            all["order_worst_case"] = json!(owner.independent.order);
            all["expected_answered"] = json!(owner.expected_answered);
            all["answers_counted"] = json!(owner.answers);
            all["accounting"] = json!(word(accounting));
            all["consensus"] = json!(owner.consensus);
            all["private"] = json!(true);
        }
        if let Some(paid) = self.paid {
            all["charge"] = json!(paid.charge);
            all["remaining"] = json!(paid.remaining);
            all["receipt"] = json!(paid.receipt);
        }
        all
    }

    fn table(&self) -> String {
        let terms = self.aggregation.terms();
        let outcome = self.outcome;
        let mut lines: Vec<(String, String)> = Vec::new();
        let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
        line(
            "answered",
            format!(
                "{} of {} queries that were looked at, at most {} of {}",
                outcome.answered(),
                outcome.tested,
                terms.answers_max,
                terms.queries
            ),
        );
        line(
            "guarantee",
            format!(
                "epsilon {} at delta {}, for one of {} teachers, whatever the votes",
                up(self.aggregation.epsilon(), 6),
                plain(terms.delta),
                self.teachers
            ),
        );
        if self.classes_found {
            line(
                "note",
                format!(
                    "{} classes, as the votes have it: give --classes if that is no secret of theirs",
                    terms.classes
                ),
            );
        }
        if let Some(told) = &outcome.sanitised {
            line(
                "sanitised epsilon",
                format!(
                    "{:.3} ({:.3} to {:.3} with {}% confidence), at order {}: an estimate, and no guarantee",
                    told.epsilon,
                    told.low,
                    told.high,
                    plain(100.0 * told.confidence),
                    plain(told.order)
                ),
            );
        }
        if self.paid.is_none() {
            let text = "no ledger: nobody counts this run but you, and the same command again asks anew and costs as much again";
            line("charge", text.into());
        }
        if let Some(paid) = self.paid {
            lines.extend(charged(&paid.charge, false));
            lines.extend(query::left(&paid.remaining, &paid.dataset));
            lines.push(("receipt".into(), paid.receipt.clone()));
        }
        let mut text = table::lines(&lines);
        if let Some((owner, accounting)) = self.owner {
            text += &format!("\n{}", private_part(owner, accounting));
        }
        text + &format!(
            "\nLabels, from query 0 on; - where nothing is told:\n{}",
            labels(&outcome.labels)
        )
    }
}

fn word(accounting: Accounting) -> &'static str {
    match accounting {
        Accounting::Realised => "realised",
        Accounting::Expected => "expected",
    }
}

/// The owner's part.
pub(crate) fn private_part(owner: &Owner, accounting: Accounting) -> String {
    let line = |name: &str, text: String| (name.to_owned(), text);
    let lines = [
        line(
            "epsilon",
            format!(
                "{:.5} at order {} ({} answers; {:.5} by the tighter conversion)",
                owner.published.epsilon,
                plain(owner.published.order),
                word(accounting),
                owner.tight.epsilon
            ),
        ),
        line(
            "worst case",
            format!(
                "{:.5} at order {}, for as many answers at any votes",
                owner.independent.epsilon,
                plain(owner.independent.order)
            ),
        ),
        line(
            "expected answers",
            format!(
                "{:.2}, as tables of papers count: of all queries, whatever the cap",
                owner.expected_answered
            ),
        ),
    ];
    let most = owner.consensus.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bars = owner.consensus.iter().enumerate().map(|(tenth, count)| {
        let bar = "#".repeat((*count as f64 / most * BAR).ceil() as usize);
        format!("  up to {:>3}%  {count:>7}  {bar}", 10 * (tenth + 1))
    });
    let bars: Vec<String> = bars.collect();
    format!(
        "PRIVATE: computed from the votes without noise. For the owner of the data only, and no guarantee.\n{}\nQueries by the winner's share of the votes:\n{}\n",
        table::lines(&lines),
        bars.join("\n")
    )
}

fn labels(labels: &[Option<usize>]) -> String {
    let word = |label: &Option<usize>| label.map_or("-".into(), |label| label.to_string());
    let rows = labels.chunks(LABELS).map(|row| {
        let words: Vec<String> = row.iter().map(word).collect();
        words.join(" ")
    });
    rows.collect::<Vec<_>>().join("\n")
}
