//! `whit pate aggregate --dry-run`: what an aggregation costs, before there are votes.

use serde_json::json;
use whit::Failure;
use whit::session::{Election, Quoted, quote_election_unopened};
use whit_learn::pate::{Aggregation, Terms};

use crate::account::{plain, up};
use crate::place::Place;
use crate::train::room;
use crate::train_result::charged;
use crate::{Format, query, table};

/// What is asked for. All of it is public.
pub(crate) struct Quote<'a> {
    pub(crate) aggregation: &'a Aggregation,
    pub(crate) teachers: Option<u64>,
    pub(crate) classes: Option<usize>,
    /// The catalog and its ledger, and the private table that would be charged.
    pub(crate) at: Option<(Place, &'a str)>,
    pub(crate) analyst: Option<&'a str>,
}

impl Quote<'_> {
    /// Opens no votes, and charges nothing.
    pub(crate) fn run(self, format: Format) -> Result<String, Failure> {
        let aggregation = self.aggregation;
        let terms = aggregation.terms();
        // As for what is told: beside a published cost nobody is to compose by the rest alone.
        let mu = terms.sanitise.is_none().then(|| aggregation.mu());
        let mut all = json!({
            "epsilon_guaranteed": aggregation.epsilon(),
            "delta": terms.delta,
            "mu": mu,
            "relation": terms.neighbours,
            "queries": terms.queries,
            "answers_max": terms.answers_max,
            "teachers": self.teachers,
            "classes": self.classes,
        });
        let line = |name: &str, text: String| (name.to_owned(), text);
        let mut lines = vec![line(
            "guarantee",
            format!(
                "epsilon {} at delta {}, for one teacher, whatever the votes",
                up(aggregation.epsilon(), 6),
                plain(terms.delta)
            ),
        )];
        if terms.sanitise.is_some() {
            let plain = Aggregation::new(&Terms {
                sanitise: None,
                ..*terms
            })?;
            all["epsilon_without_sanitise"] = json!(plain.epsilon());
            let text = format!("epsilon {}", up(plain.epsilon(), 6));
            lines.push(line("without --sanitise", text));
        }
        match self.at {
            Some((place, table)) => {
                let dataset = place.catalog.dataset().to_owned();
                let election = Election {
                    table,
                    aggregation,
                    analyst: self.analyst,
                };
                let quoted: Quoted = match place.has_ledger() {
                    true => place.open()?.quote_election(&election)?,
                    false => quote_election_unopened(&place.catalog, &election)?,
                };
                all["charge"] = json!(quoted.charge);
                all["remaining"] = json!(quoted.remaining);
                all["room"] = json!(quoted.room);
                all["objection"] = json!(quoted.objection);
                lines.extend(charged(&quoted.charge, false));
                lines.extend(query::left(&quoted.remaining, &dataset));
                lines.push(line("room", room(&quoted)));
            }
            None => lines.push(line(
                "charge",
                "no ledger: nobody counts a run but you".into(),
            )),
        }
        Ok(match format {
            Format::Json => all.to_string(),
            Format::Table => table::lines(&lines),
        })
    }
}
