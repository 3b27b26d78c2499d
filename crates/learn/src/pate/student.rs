//! # The student
//! Learns from public examples, and from the labels that an aggregator told about some of them. All of it is post-processing: whoever sees the student sees a function of public examples and of those labels, and
//! the guarantee of the aggregation is that of the student. So it may be trained as often, and shown to whomever, one likes.
//!
//! **Half-taught.** A few hundred labels are few, and thousands of examples without any say which of them belong together. With [`Spread`], labels spread to neighbours first; a model then learns from all rows that they have
//! reached, each with the class of its largest share; and once more from what it says itself of those rows, where it has seen that most rows like one agree on another class. Known labels stay as they were told.

use std::num::NonZeroUsize;

use super::learner::{Judge, Learn, said};
use super::spread::Spread;
use super::view::Lesson;
use crate::Result;

/// How a student learns. All of it is public.
pub struct Student<'a> {
    /// What it learns by.
    pub learner: &'a dyn Learn,
    /// How labels spread before; without it, it learns from those rows alone that have one.
    pub spread: Option<Spread>,
    /// How often it learns again from what it says itself.
    pub rounds: usize,
    /// The seed of its learner.
    pub seed: u64,
}

impl Student<'_> {
    /// Refuses what cannot be learnt for its shape.
    pub fn check(&self, depth: usize, classes: usize) -> Result<()> {
        self.learner.check(depth, classes)?;
        self.spread.map_or(Ok(()), |spread| spread.check())
    }

    /// Learns from public rows of `depth` numbers, of which some have a label.
    pub fn learn(
        &self,
        rows: &[f32],
        depth: usize,
        labels: &[Option<usize>],
        classes: usize,
        threads: NonZeroUsize,
    ) -> Result<Box<dyn Judge>> {
        let spread = match self.spread {
            Some(spread) => reached(
                &spread.shares(rows, depth, labels, classes, threads),
                classes,
            ),
            None => labels.to_vec(),
        };
        let mut classes_of = spread;
        keep(labels, &mut classes_of);
        for _ in 0..self.rounds {
            let judge = self.teach(rows, depth, &classes_of, classes, threads)?;
            let own = said(&judge.scores(rows, threads)?, classes);
            classes_of = own.into_iter().map(Some).collect();
            keep(labels, &mut classes_of);
        }
        self.teach(rows, depth, &classes_of, classes, threads)
    }

    fn teach(
        &self,
        rows: &[f32],
        depth: usize,
        labels: &[Option<usize>],
        classes: usize,
        threads: NonZeroUsize,
    ) -> Result<Box<dyn Judge>> {
        let mut lesson = Lesson {
            depth,
            classes,
            ..Lesson::default()
        };
        for (row, label) in rows.chunks_exact(depth.max(1)).zip(labels) {
            let Some(label) = label.filter(|label| *label < classes) else {
                continue;
            };
            lesson.features.extend_from_slice(row);
            let shares = (0..classes).map(|class| f32::from(u8::from(class == label)));
            lesson.shares.extend(shares);
        }
        self.learner.learn(lesson, self.seed, threads)
    }
}

/// The class of each row that has any share.
fn reached(shares: &[f32], classes: usize) -> Vec<Option<usize>> {
    let rows = shares.chunks_exact(classes.max(1));
    let said = said(shares, classes);
    rows.zip(said)
        .map(|(shares, class)| (shares[class] > 0.0).then_some(class))
        .collect()
}

fn keep(labels: &[Option<usize>], classes_of: &mut [Option<usize>]) {
    for (known, class) in labels.iter().zip(classes_of) {
        if known.is_some() {
            *class = *known;
        }
    }
}

/// The share of rows whose class is said, on rows that are public and have nothing to do with training.
pub fn accuracy(
    judge: &dyn Judge,
    rows: &[f32],
    truth: &[usize],
    classes: usize,
    threads: NonZeroUsize,
) -> Result<f64> {
    let said = said(&judge.scores(rows, threads)?, classes);
    let right = said.iter().zip(truth).filter(|(a, b)| a == b).count();
    Ok(right as f64 / truth.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::kernel::{Kernel, KernelRidge};
    use super::*;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    /// Two long clouds beside each other; labels at one end of each.
    fn clouds() -> (Vec<f32>, Vec<usize>) {
        let truth: Vec<usize> = (0..200).map(|i| i % 2).collect();
        let row = |i: usize| {
            let along = (i / 2) as f32 * 0.1;
            let noise = ((i * 7919) % 13) as f32 * 0.02;
            // They bend, so that one end of the first lies under the other end of the second.
            [
                along + noise,
                (along * 0.6).sin() * 2.0 + 1.5 * (i % 2) as f32 + noise,
            ]
        };
        ((0..200).flat_map(row).collect(), truth)
    }

    #[test]
    fn examples_without_labels_help() {
        let (rows, truth) = clouds();
        let mut labels = vec![None; 200];
        for i in 0..4 {
            labels[i * 3] = Some(truth[i * 3]);
        }
        let ridge = KernelRidge {
            kernel: Kernel::Gaussian { width: 0.3 },
            penalty: 0.1,
        };
        let taught = |spread, rounds| {
            let student = Student {
                learner: &ridge,
                spread,
                rounds,
                seed: 0,
            };
            student.check(2, 2).expect("fits");
            let judge = student.learn(&rows, 2, &labels, 2, ONE).expect("fits");
            accuracy(&*judge, &rows, &truth, 2, ONE).expect("fits")
        };
        let spread = Spread {
            neighbours: 5,
            share: 0.9,
        };
        let (alone, helped) = (taught(None, 0), taught(Some(spread), 1));
        assert!(alone < 0.8 && helped > 0.95, "{alone} {helped}");
    }

    #[test]
    fn a_student_without_labels_is_a_student() {
        let (rows, _) = clouds();
        let ridge = KernelRidge {
            kernel: Kernel::Linear,
            penalty: 1.0,
        };
        let student = Student {
            learner: &ridge,
            spread: None,
            rounds: 0,
            seed: 0,
        };
        let judge = student
            .learn(&rows, 2, &[None; 200], 2, ONE)
            .expect("nothing fails");
        assert_eq!(judge.scores(&rows, ONE).expect("fits"), vec![0.0; 400]);
    }
}
