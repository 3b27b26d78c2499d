//! # The room in which teachers vote and the student learns
//! Public examples, as everybody sees them: the first are asked about, all but the last are learnt from, and the last judge the student. Nothing here is private.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use sha2::{Digest, Sha256};

use super::learner::{Judge, said};
use super::student::accuracy;
use super::view::View;
use crate::data::{Answer, Dataset};
use crate::error::{Error, Result};
use crate::model::Tensor;
use crate::safetensors::Weights;

/// Public examples, as everybody in the room sees them.
pub struct Room {
    pub(super) fingerprint: [u8; 32],
    pub(super) view: View,
    pub(super) classes: usize,
    /// Those that may be asked about and learnt from.
    pub(super) rows: Vec<f32>,
    /// Those that judge the student.
    pub(super) held: Vec<f32>,
    pub(super) truth: Vec<usize>,
}

impl Room {
    /// Refuses private examples of another shape than the public ones: before anything is paid.
    pub fn check(&self, shape: &[usize]) -> Result<()> {
        self.view.check(shape)
    }

    /// The student as a file: its numbers, and the constants of what it sees. `None` if it has none to write.
    pub fn safetensors(
        &self,
        student: &dyn Judge,
        notes: &BTreeMap<String, String>,
    ) -> Option<Vec<u8>> {
        let [mean, factor] = self.view.constants();
        let mut parts = student.tensors();
        if parts.is_empty() {
            return None;
        }
        parts.push(("view.mean".into(), vec![mean.len()], mean));
        parts.push(("view.factor".into(), vec![factor.len()], factor));
        let (mut tensors, mut floats) = (Vec::new(), Vec::new());
        for (name, shape, part) in parts {
            let offset = floats.len();
            tensors.push(Tensor {
                name,
                shape,
                offset,
            });
            floats.extend_from_slice(part);
        }
        Weights::write(&tensors, &floats, notes)
    }

    /// What the public examples are known by: their features, and of those that are held out the labels, too. Labels that were told are of these, and of no others.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// How many public examples there are, without those that are held out.
    pub fn rows(&self) -> usize {
        self.rows.len() / self.view.depth().max(1)
    }

    /// How many are held out.
    pub fn held_out(&self) -> usize {
        self.truth.len()
    }

    /// What a student says of all of them, and then of those that are held out.
    pub fn says(&self, student: &dyn Judge, threads: NonZeroUsize) -> Result<Vec<usize>> {
        let mut scores = student.scores(&self.rows, threads)?;
        scores.extend(student.scores(&self.held, threads)?);
        Ok(said(&scores, self.classes))
    }

    /// The share of those held out of which a student says the truth; `None` if there are none.
    pub fn accuracy(&self, student: &dyn Judge, threads: NonZeroUsize) -> Result<Option<f64>> {
        if self.truth.is_empty() {
            return Ok(None);
        }
        accuracy(student, &self.held, &self.truth, self.classes, threads).map(Some)
    }
}

/// A hash of shape, classes and features of all examples, and of the labels from a row on: whose labels nobody looks at may change. An example that has no features is as the loader left it: empty.
pub(super) fn fingerprint(data: &Dataset, judged: usize) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(b"whit pate public examples");
    let mut word = |value: usize| hash.update((value as u64).to_le_bytes());
    word(data.shape().len());
    data.shape().iter().for_each(|side| word(*side));
    word(data.classes().unwrap_or_default() as usize);
    word(data.rows());
    for row in 0..data.rows() {
        let Some(example) = data.example(row) else {
            hash.update([0]);
            continue;
        };
        hash.update([1]);
        let bytes = example.features.iter().flat_map(|x| x.to_le_bytes());
        hash.update(bytes.collect::<Vec<u8>>());
        if row >= judged {
            hash.update(match example.answer {
                Answer::Class(class) => class.to_le_bytes(),
                Answer::Number(number) => number.to_le_bytes(),
            });
        }
    }
    hash.finalize().into()
}

/// The first rows, and the others.
pub(super) fn split(data: &Dataset, first: usize) -> Result<[Dataset; 2]> {
    let part = |rows: std::ops::Range<usize>| {
        let (mut features, mut labels) = (Vec::new(), Vec::new());
        for row in rows {
            match data.example(row) {
                Some(example) => {
                    features.extend_from_slice(example.features);
                    labels.push(match example.answer {
                        Answer::Class(class) => class,
                        Answer::Number(_) => u32::MAX,
                    });
                }
                None => {
                    features.resize(features.len() + data.width(), 0.0);
                    labels.push(u32::MAX);
                }
            }
        }
        let (shape, classes) = (data.shape().to_vec(), data.classes().unwrap_or_default());
        Dataset::with_classes(shape, features, labels, classes).ok_or(Error::Unbound)
    };
    Ok([part(0..first)?, part(first..data.rows())?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(features: [f32; 6], labels: [u32; 3], classes: u32) -> Dataset {
        Dataset::with_classes(vec![2], features.into(), labels.into(), classes).expect("fits")
    }

    #[test]
    fn a_fingerprint_is_of_what_is_seen_and_of_labels_that_judge() {
        let features = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let of = |features, labels, classes| fingerprint(&data(features, labels, classes), 2);
        let first = of(features, [0, 1, 0], 2);
        assert_eq!(of(features, [0, 1, 0], 2), first);
        assert_eq!(of(features, [1, 0, 0], 2), first, "nobody looks at these");
        assert_ne!(of(features, [0, 1, 1], 2), first, "this one judges");
        assert_ne!(of(features, [0, 1, 0], 3), first);
        assert_ne!(of(features, [7, 1, 0], 2), first, "an empty example");
        for place in 0..features.len() {
            let mut other = features;
            other[place] += 0.5;
            assert_ne!(of(other, [0, 1, 0], 2), first, "{place}");
        }
        let swapped = [3.0, 4.0, 1.0, 2.0, 5.0, 6.0];
        assert_ne!(of(swapped, [0, 1, 0], 2), first, "labels go by places");
        let flat = Dataset::with_classes(vec![1, 2], features.into(), vec![0, 1, 0], 2);
        assert_ne!(fingerprint(&flat.expect("fits"), 2), first);
    }
}
