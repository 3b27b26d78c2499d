//! # Which teacher learns from an example
//! **Claim.** Neighbouring data sets give all teachers but one the same examples, in the same order: under add/remove for [`Rule::Hash`], under replace-one for [`Rule::Place`].
//!
//! **Proof.** *Hash*: an example's teacher is a function of that example (features and label, bit by bit) and of a public seed, and of nothing else. An example more or less, wherever it stands, leaves every
//! other example with its teacher, and leaves the order of those others as it is: so it changes what one teacher gets. Examples that are equal have the same teacher. *Place*: an
//! example's teacher is its row modulo the number of teachers. Data sets of equally many rows that differ in one row differ in what one teacher gets. ∎
//!
//! **What is not claimed.** An example more in the middle moves all rows behind it: by place that changes every teacher, so there is no price for [`Rule::Place`] under add/remove. An example that is *replaced*
//! may go to another teacher by hash, and then two teachers change: there is no price for [`Rule::Hash`] under replace-one. Both are refused, and not guessed: the rule decides the relation.
//!
//! A row that is an empty example reaches no teacher. With a `unit`, the loader gives one example for each unit, by that unit's rows alone, so that "example" may be read as "unit" above for [`Rule::Hash`].
//! The *place* of a unit is how many came before it, and that of a picture in a folder is how the others are called: one of them more or less moves all behind it. So [`Rule::Place`] requires rows whose numbers are
//! their positions in a file, and plans with a unit or with folders of pictures are refused.
//!
//! How many examples a teacher gets is private. A hash spreads them evenly: for 240 on average, nearly all teachers get between 190 and 290. Who knows the seed can make examples that all
//! go to one teacher, and spoil that one.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whit_core::Neighbours;

use crate::data::{Answer, Dataset, Example};

/// How examples are dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// By a hash of the example: for data sets to which one may be added.
    #[default]
    Hash,
    /// By its row: for data sets of a public number of rows, of which one may be replaced.
    Place,
}

impl Rule {
    /// The neighbours for which one teacher changes.
    pub fn neighbours(self) -> Neighbours {
        match self {
            Self::Hash => Neighbours::AddRemove,
            Self::Place => Neighbours::ReplaceOne,
        }
    }

    fn teacher(self, row: usize, example: &Example<'_>, seed: u64, teachers: usize) -> usize {
        match self {
            Self::Place => row % teachers,
            Self::Hash => {
                let mut hash = Sha256::new_with_prefix(b"whit pate part");
                hash.update(seed.to_le_bytes());
                let answer = match example.answer {
                    Answer::Class(class) => u64::from(class),
                    Answer::Number(number) => u64::from(number.to_bits()) | 1 << 63,
                };
                hash.update(answer.to_le_bytes());
                let bytes: Vec<u8> = example
                    .features
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                hash.update(bytes);
                let [a, b, c, d, e, f, g, h, ..] = hash.finalize().0;
                // The remainder of 64 bits is even to one part in 2^64 / teachers.
                (u64::from_le_bytes([a, b, c, d, e, f, g, h]) % teachers as u64) as usize
            }
        }
    }
}

/// The rows of each teacher, in their order. Private.
pub(super) fn deal(data: &Dataset, rule: Rule, seed: u64, teachers: usize) -> Vec<Vec<usize>> {
    let mut parts = vec![Vec::new(); teachers];
    for row in 0..data.rows() {
        if let Some(example) = data.example(row) {
            parts[rule.teacher(row, &example, seed, teachers)].push(row);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(rows: &[u32]) -> Dataset {
        let features = rows.iter().map(|row| *row as f32).collect();
        let labels = rows.iter().map(|row| row % 3).collect();
        Dataset::with_classes(vec![1], features, labels, 3).expect("fits")
    }

    /// What each teacher gets, as numbers of examples.
    fn dealt(rows: &[u32], rule: Rule) -> Vec<Vec<u32>> {
        let parts = deal(&data(rows), rule, 7, 5);
        let rows = |part: &Vec<usize>| part.iter().map(|row| rows[*row]).collect();
        parts.iter().map(rows).collect()
    }

    fn changed(one: &[u32], other: &[u32], rule: Rule) -> usize {
        let (one, other) = (dealt(one, rule), dealt(other, rule));
        one.iter().zip(&other).filter(|(a, b)| a != b).count()
    }

    #[test]
    fn one_example_reaches_one_teacher_under_its_relation() {
        let all: Vec<u32> = (0..60).chain([3, 3, 17]).collect();
        for place in 0..all.len() {
            let mut fewer = all.clone();
            fewer.remove(place);
            assert_eq!(changed(&all, &fewer, Rule::Hash), 1, "{place}");
            let mut other = all.clone();
            other[place] = 1000;
            assert_eq!(changed(&all, &other, Rule::Place), 1, "{place}");
        }
        assert_eq!(Rule::Hash.neighbours(), Neighbours::AddRemove);
        assert_eq!(Rule::Place.neighbours(), Neighbours::ReplaceOne);
    }

    /// Every data set of up to five rows of four kinds, with each of its neighbours: the most teachers that change.
    fn most_changed(rule: Rule, relation: Neighbours) -> usize {
        const KINDS: u32 = 4;
        let mut most = 0;
        for length in 1..=5_u32 {
            for code in 0..KINDS.pow(length) {
                let kind = |place| 10 + code / KINDS.pow(place) % KINDS;
                let all: Vec<u32> = (0..length).map(kind).collect();
                for place in 0..all.len() {
                    let mut other = all.clone();
                    if relation == Neighbours::AddRemove {
                        other.remove(place);
                        most = most.max(changed(&all, &other, rule));
                        continue;
                    }
                    for kind in 0..KINDS {
                        other[place] = 10 + kind;
                        most = most.max(changed(&all, &other, rule));
                    }
                }
            }
        }
        most
    }

    /// Why the rules have one relation each: under the other one more than one teacher changes. Exact, for small data sets: 5 teachers and up to 5 rows, where one row less moves all rows behind it.
    #[test]
    fn one_teacher_changes_under_the_relation_of_a_rule_and_more_under_the_other() {
        for rule in [Rule::Hash, Rule::Place] {
            for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
                let expected = match (rule, relation) {
                    (Rule::Place, Neighbours::AddRemove) => 5,
                    (Rule::Hash, Neighbours::ReplaceOne) => 2,
                    _ => 1,
                };
                let most = most_changed(rule, relation);
                assert_eq!(most, expected, "{rule:?} under {relation}");
                assert_eq!(most == 1, relation == rule.neighbours());
            }
        }
    }

    #[test]
    fn parts_are_about_even_and_follow_the_seed_and_empty_examples_reach_nobody() {
        let rows: Vec<u32> = (0..10_000).collect();
        let data = data(&rows);
        let sizes = |seed| -> Vec<usize> {
            let parts = deal(&data, Rule::Hash, seed, 10);
            parts.iter().map(Vec::len).collect()
        };
        // Six deviations of a binomial number.
        assert!(sizes(1).iter().all(|size| size.abs_diff(1000) < 180));
        assert_ne!(sizes(1), sizes(2));
        let empty = Dataset::with_classes(vec![1], vec![1.0, f32::NAN], vec![0, 0], 2);
        let parts = deal(&empty.expect("fits"), Rule::Place, 0, 2);
        assert_eq!(parts, [vec![0], vec![]]);
    }
}
