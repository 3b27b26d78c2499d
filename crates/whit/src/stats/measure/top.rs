//! The most frequent categories of a public list.
//!
//! A category's score is the number of its rows. Adding a unit's rows, at most `k`, lowers no score and raises none by more than
//! `k`: monotone under add/remove. Replacing them can do both at once, so then it costs twice as much.

use std::collections::HashMap;
use std::io::Read;

use whit_core::{
    AddRemove, Confidence, Entropy, Event, Linf, Ratio, Relation, ReplaceOne, Secret, Sensitivity,
};
use whit_mechanism::{Contribution, Release, Scores, TopK};

use super::super::input::Input;
use crate::stats::Value;
use crate::stats::target::Target;
use crate::{Error, Result};

/// A relation for which it is known how counts move.
pub(crate) trait CountScores: Relation {
    fn scores(
        options: u64,
        rows_max: &Sensitivity<Linf, Self>,
    ) -> whit_mechanism::Result<Scores<Self>>;
}

impl CountScores for AddRemove {
    fn scores(
        options: u64,
        rows_max: &Sensitivity<Linf, Self>,
    ) -> whit_mechanism::Result<Scores<Self>> {
        Scores::monotone(options, rows_max)
    }
}

impl CountScores for ReplaceOne {
    fn scores(
        options: u64,
        rows_max: &Sensitivity<Linf, Self>,
    ) -> whit_mechanism::Result<Scores<Self>> {
        Scores::new(options, rows_max)
    }
}

pub(crate) struct Top<R: Relation> {
    categories: Vec<String>,
    shape: Shape,
    top: TopK<R>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
}

impl<R: CountScores> Top<R> {
    pub(super) fn mode(
        target: &Target,
        contribution: Contribution,
        column: &str,
        categories: &[String],
    ) -> Result<Self> {
        let top = Self::new(target, contribution, column, categories, 1)?;
        Ok(Self {
            shape: Shape::One,
            ..top
        })
    }

    pub(super) fn new(
        target: &Target,
        contribution: Contribution,
        column: &str,
        categories: &[String],
        k: u64,
    ) -> Result<Self> {
        let categories = distinct_categories(column, categories)?;
        let rows_max = Sensitivity::new(Ratio::from(u64::from(contribution.rows_max())));
        let scores = R::scores(categories.len() as u64, &rows_max)?;
        // A k that does not fit is refused by the mechanism, with any epsilon.
        let rounds = k.clamp(1, categories.len() as u64);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        let each = target.epsilon_in(rounds)?.to_ratio();
        let each = each.checked_div(&Ratio::from(u64::from(rounds)));
        let each = each.unwrap_or_else(Ratio::zero);
        let top = TopK::new(k, each, scores)?;
        target.check_choice(rounds, &rows_max)?;
        Ok(Self {
            categories,
            shape: Shape::List,
            top,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.top.event()
    }

    pub(super) fn release(
        &self,
        input: &mut Input<impl Read>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        // Asked by name only; the order of the map never shows.
        let names = self.categories.iter().map(String::as_bytes);
        let places: HashMap<&[u8], usize> = names.zip(0..).collect();
        let mut counts = vec![0_i64; self.categories.len()];
        let found = input.bounded(|row, columns| {
            let cell = columns.first().map(|&column| row.cell(column));
            cell.and_then(|cell| places.get(cell).copied())
        });
        for place in found.flatten() {
            counts[place] += 1;
        }
        let count_error = self.top.error(confidence);
        let release = self.top.release(Secret::new(counts), entropy)?;
        Ok(release.map(|chosen| {
            let mut names = chosen
                .into_iter()
                .map(|place| self.categories[place].clone());
            match self.shape {
                Shape::One => Value::Mode {
                    answer: names.next().unwrap_or_default(),
                    count_error,
                },
                Shape::List => Value::Top {
                    top: names.collect(),
                    count_error,
                },
            }
        }))
    }
}

/// The categories as cells are read, without the white space around them; none may be empty or stand there twice.
pub(super) fn distinct_categories(column: &str, categories: &[String]) -> Result<Vec<String>> {
    let trimmed: Vec<String> = categories
        .iter()
        .map(|category| category.trim_ascii().to_owned())
        .collect();
    let mut sorted: Vec<&String> = trimmed.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let all_named = trimmed.iter().all(|category| !category.is_empty());
    if trimmed.is_empty() || sorted.len() != trimmed.len() || !all_named {
        let column = column.into();
        return Err(Error::NoCategories { column });
    }
    Ok(trimmed)
}
