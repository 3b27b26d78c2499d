//! What is public about a run, and what its guarantee leaves out.

use whit_core::Neighbours;

use super::Card;
use super::words::{inline, line};
use crate::payment::Payer;

/// How the numbers of a plan were chosen. Trying several on the private data costs budget, too.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Search {
    /// Nobody has said.
    NotDeclared,
    /// Taken from elsewhere, or tried on public data only.
    None,
    /// Other runs on the same data were made to choose them, and are not in this guarantee.
    NotCharged {
        /// How many runs.
        runs: u64,
    },
    /// Other runs on the same data were made, and the ledger has charged each.
    Charged {
        /// How many runs.
        runs: u64,
    },
    /// The model is the best of a random number of runs, and the guarantee is that of the choice.
    BestOf {
        /// How many candidates there were.
        candidates: usize,
        /// How many runs there are on average.
        runs: f64,
        /// By which law their number is drawn.
        law: &'static str,
        /// By what they were judged.
        score: &'static str,
        /// Does the time not tell how many there were?
        padded: bool,
    },
}

impl Search {
    /// Whoever sees what is covered by the guarantee.
    pub(super) fn covers(self) -> &'static str {
        match self {
            Self::BestOf { .. } => {
                "This holds for whoever sees this model, and neither other runs of the search nor how many there were."
            }
            _ => "This holds for whoever sees the parameters after every step.",
        }
    }

    /// How the run was chosen, if it was.
    pub(super) fn words(self) -> Option<String> {
        match self {
            Self::BestOf {
                candidates,
                runs,
                law,
                score,
                ..
            } => Some(format!(
                "the best of a random number of runs ({law}, {runs} on average), each with one of {candidates} candidates, by {score} on [validation]"
            )),
            _ => None,
        }
    }
}

impl Card<'_> {
    /// What became of rows that did not fit. Whoever is charged by a ledger hears nothing of them.
    fn misfits(&self) -> &'static str {
        match self.payer {
            Payer::Nobody => {
                "A row that does not fit what was declared has no part in the model: it refuses the run before its first step, or counts as an empty example."
            }
            _ => "A row that does not fit what was declared counts as an empty example.",
        }
    }

    pub(super) fn limits(&self, text: &mut String) {
        line(text, "## What is public\n");
        let number = match (self.guarantee.event.neighbours(), self.data.n_public) {
            (Neighbours::ReplaceOne, Some(rows)) => format!("the number of rows, {rows}; "),
            (_, Some(rows)) => {
                format!("the number {rows} that was declared in place of that of the rows; ")
            }
            (_, None) => String::new(),
        };
        line(
            text,
            &format!(
                "This whole card: {number}the shape of the features, the names of columns and categories, the classes, the constants that features were normalised by, \
                 the network and its initial weights, and all numbers above. By the owner's word they were \
                 chosen without looking at the rows. {}\n",
                self.misfits()
            ),
        );
        line(text, "## What is not in the guarantee\n");
        if let Some(rows) = self
            .data
            .n_public
            .filter(|rows| self.guarantee.delta * *rows as f64 > 1.0)
        {
            line(
                text,
                &format!(
                    "- Delta is above 1/{rows}: a program that publishes one of so many examples at random would keep such a delta."
                ),
            );
        }
        let search = match self.search {
            Search::NotDeclared => {
                "How the numbers of the plan were chosen was not declared. If other runs on the same data were made to choose them, their cost is not in epsilon."
                    .into()
            }
            Search::None => {
                "By the owner's word, no other runs on the same data were made to choose the numbers of the plan."
                    .into()
            }
            Search::NotCharged { runs } => format!(
                "**The numbers of the plan were chosen by {runs} other runs on the same data, whose cost is not in epsilon.**"
            ),
            Search::Charged { runs } => format!(
                "The numbers of the plan were chosen by {runs} other runs on the same data; each has its own charge in the ledger, and they add up."
            ),
            Search::BestOf { padded: true, .. } => {
                "The search is in the guarantee. How many of its runs counted is not, and must stay unknown; as many were made as always, so that the time does not tell."
                    .into()
            }
            Search::BestOf { padded: false, .. } => {
                "The search is in the guarantee. How many runs it had is not: whoever learns that, from how long it took, say, has learnt more than epsilon says."
                    .into()
            }
        };
        line(text, &format!("- {search}"));
        if *self.payer == Payer::Nobody {
            line(
                text,
                "- No ledger was charged for this run: whatever else was released about the same data costs as well, and nothing here adds it up.",
            );
            line(
                text,
                "- One bit, if the owner heard of it: that no row was refused before the first step.",
            );
        }
        line(
            text,
            &format!(
                "- A person who is more than one {} in the data is protected less: with k of them, about k times the epsilon.",
                inline(self.guarantee.unit)
            ),
        );
        line(
            text,
            "- What the model has learnt about the world, and so about people who were not in the data.",
        );
        line(
            text,
            "- Time, memory and other traces of the run on the machine where it was trained.",
        );
    }
}
