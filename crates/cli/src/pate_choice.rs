//! `whit pate plan --private-votes`: which noise and threshold, by votes that are private, for a price.

use std::path::Path;

use serde_json::json;
use whit::core::{Confidence, Delta};
use whit::session::{ChoiceOrder, Chosen, rehearse_choice};
use whit::{Failure, Neighbours, OsEntropy};
use whit_learn::pate::private_choice::Shape;
use whit_learn::pate::{Choice, Declared, Goal, PrivateChoice, Votes};
use whit_learn::{Payment, Uncharged};

use crate::account::up;
use crate::catalogued::refuse_as_votes;
use crate::pate_aggregate::{LayoutWord, classes_wanted, teachers_wanted};
use crate::pate_plan::{Arguments, options, parameters};
use crate::pate_result::Paid;
use crate::place::Place;
use crate::train_result::charged;
use crate::{Format, query, table};

/// How often the chosen candidate is at most as much further from the votes than the nearest as is told.
const CONFIDENCE: f64 = 0.95;

pub(crate) fn run(
    arguments: &Arguments,
    path: &Path,
    (goal, epsilon): (&Goal, f64),
    format: Format,
) -> Result<String, Failure> {
    let is_charged = arguments.catalog.is_some();
    // Candidates depend on it, whoever pays.
    if arguments.layout == LayoutWord::Votes && arguments.classes.is_none() {
        return Err(classes_wanted("a choice by private votes has a guarantee"));
    }
    if is_charged && arguments.teachers.is_none() {
        return Err(teachers_wanted());
    }
    refuse_as_votes(path, arguments.catalog.as_deref())?;
    let declared = Declared {
        classes: arguments.classes,
        teachers: arguments.teachers,
    };
    let votes = Votes::read(path, arguments.layout.layout(), declared)?;
    // Numbers of classes, queries and teachers are public; see the help of `whit pate aggregate`.
    let shape = Shape::of(votes.as_ref().expose());
    let neighbours = match is_charged {
        true => Neighbours::AddRemove,
        false => Neighbours::ReplaceOne,
    };
    let made = PrivateChoice::new(goal, shape, epsilon, neighbours)?;
    let (choice, paid) = match (&arguments.catalog, &arguments.table) {
        (Some(catalog), Some(table)) => {
            let place = Place::read(catalog, arguments.ledger.clone())?;
            let order = ChoiceOrder {
                table,
                choice: &made,
                delta: Delta::new(goal.delta).map_err(whit_learn::Error::from)?,
                analyst: arguments.analyst.as_deref(),
            };
            // A ledger begins with what could be charged, and not with what is refused.
            if !place.has_ledger() {
                rehearse_choice(&place.catalog, &order)?;
            }
            let dataset = place.catalog.dataset().to_owned();
            let Chosen {
                choice,
                charge,
                remaining,
                receipt,
                ..
            } = place
                .open()?
                .choose(&order, &votes, &mut OsEntropy::new())?;
            let paid = Paid {
                dataset,
                charge,
                remaining,
                receipt,
            };
            (choice, Some(paid))
        }
        _ => {
            let payment = Payment::uncharged(&made, Uncharged);
            (made.run(&votes, payment, &mut OsEntropy::new())?, None)
        }
    };
    let confidence = Confidence::new(CONFIDENCE).expect("between 0 and 1");
    let told = Told {
        choice,
        candidates: made.candidates().count(),
        epsilon,
        behind: made.error(confidence)?,
        paid,
    };
    Ok(match format {
        Format::Json => told.json(),
        Format::Table => told.table(),
    })
}

/// All that is told: which candidate it was, and public numbers.
struct Told<'a> {
    choice: &'a Choice,
    candidates: usize,
    epsilon: f64,
    /// How much further from the level of the votes than the nearest candidate it is at most, in votes a query.
    behind: f64,
    paid: Option<Paid>,
}

impl Told<'_> {
    fn json(&self) -> String {
        let mut all = json!({
            "votes": "private votes",
            "choice": parameters(self.choice),
            "candidates": self.candidates,
            "epsilon_choice": self.epsilon,
            "votes_behind_nearest_max": self.behind,
            "confidence": CONFIDENCE,
        });
        if let Some(paid) = &self.paid {
            all["charge"] = json!(paid.charge);
            all["remaining"] = json!(paid.remaining);
            all["receipt"] = json!(paid.receipt);
        }
        all.to_string()
    }

    fn table(&self) -> String {
        let line = |name: &str, text: String| (name.to_owned(), text);
        let mut lines = vec![
            line("choice", options(self.choice)),
            line(
                "its guarantee",
                format!(
                    "epsilon {}, when it is used",
                    up(self.choice.aggregation.epsilon(), 6)
                ),
            ),
            line(
                "of the choice",
                format!(
                    "epsilon {}, for one teacher: it adds to that",
                    up(self.epsilon, 6)
                ),
            ),
            line(
                "how good",
                format!(
                    "in 95 of 100 runs at most {:.0} votes a query further from how far your teachers agree than the nearest of {} candidates, where a vote too few counts as three",
                    self.behind.ceil(),
                    self.candidates
                ),
            ),
        ];
        match &self.paid {
            Some(paid) => {
                lines.extend(charged(&paid.charge, false));
                lines.extend(query::left(&paid.remaining, &paid.dataset));
                lines.push(line("receipt", paid.receipt.clone()));
            }
            None => lines.push(line(
                "charged",
                "nobody: no catalog was given, so count it yourself".into(),
            )),
        }
        table::lines(&lines)
    }
}
