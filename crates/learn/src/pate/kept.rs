//! # An aggregation that is kept in a folder
//! Teachers take long, and labels are told once. So an aggregation that was paid for lies in a [`Place`], as a training run does: as a run of one step.
//!
//! **Claim.** For one payment, at most one aggregation is run, however often the process stops and goes on.
//! **Proof.** The payment is laid down when the place is begun. The one step is counted there, durably, before noise is drawn; a place grants it once (`checkpoint.rs`) to whoever holds it: no other process does, since it is locked, and in this one nobody else has it while it is counted, read and written,
//! since that needs the place for oneself (`&mut`). What was told is written with it: whoever asks again gets the same labels, and no new noise. ∎ If the process stops between the two, the labels are lost, and what was paid is spent.
//!
//! What is written is what was told, and public: labels, how many queries were tested, and a sanitised cost if one was asked for. Beside it, from the start, a fingerprint of the public examples: labels go by the number of a query, and would
//! be of other examples if the file with the public ones had changed. Then the run is refused, before a private row is read.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use whit_core::{Entropy, Secret};

use super::aggregation::{Aggregation, Outcome};
use super::sanitise::Sanitised;
use super::votes::Votes;
use crate::Result;
use crate::checkpoint::{Checkpoint, CheckpointError, Place, Run};
use crate::payment::{Payer, Payment};

/// Names of what is kept.
const PUBLIC: &str = "public";
const LABELS: &str = "labels";
const TESTED: &str = "tested";
const SANITISED: [&str; 5] = ["epsilon", "low", "high", "confidence", "order"];

impl Aggregation {
    /// What its place belongs to: all words of the plan, and its event.
    pub fn run_of(&self, words: &[u8]) -> Run {
        Run {
            plan: Sha256::digest(words).into(),
            event: self.event().clone(),
            steps_total: 1,
        }
    }

    /// Lays down in a place that it was paid for, and of which public examples: `public` is their [fingerprint](super::Room::fingerprint).
    pub fn start_in(&self, place: &Place, payment: Payment, public: &[u8; 32]) -> Result<()> {
        let vectors = BTreeMap::from([(PUBLIC.to_owned(), floats(public))]);
        place.start_with(payment, Vec::new(), vectors)
    }

    /// What was told in a place before, if anything was, and who had paid for it. Refused if nothing was begun there, or of other public examples, or if labels were lost.
    pub fn told_in(&self, place: &Place, public: &[u8; 32]) -> Result<(Option<Outcome>, Payer)> {
        let checkpoint = self.begun_in(place, public)?;
        let payer = checkpoint.payer().clone();
        if checkpoint.steps_kept() == 0 {
            return Ok((None, payer));
        }
        let told = read(&checkpoint).ok_or(CheckpointError::Damaged)?;
        Ok((Some(told), payer))
    }

    fn begun_in(&self, place: &Place, public: &[u8; 32]) -> Result<Checkpoint> {
        let path = || place.path().to_owned();
        let not_begun = || CheckpointError::NotBegun { path: path() };
        let checkpoint = place.load()?.ok_or_else(not_begun)?;
        if checkpoint.run().event != *self.event() || checkpoint.run().steps_total != 1 {
            return Err(CheckpointError::OtherPlan.into());
        }
        // One without a fingerprint is of nobody knows which.
        if checkpoint.vectors.get(PUBLIC) != Some(&floats(public)) {
            return Err(CheckpointError::OtherPublic { path: path() }.into());
        }
        if checkpoint.is_lost() {
            return Err(CheckpointError::LabelsLost { path: path() }.into());
        }
        Ok(checkpoint)
    }

    /// Asks the queries, once it is counted in a place that was begun with a payment; gives what was told before, if it was. Votes that do not fit are refused before that.
    ///
    /// Two threads that share a place could both read that nothing was counted, and both tell. So it is not shared:
    /// ```compile_fail,E0308
    /// # use whit_core::Secret;
    /// # use whit_learn::checkpoint::Place;
    /// # use whit_learn::pate::{Aggregation, Votes};
    /// fn twice(aggregation: &Aggregation, place: &Place, votes: &Secret<Votes>) {
    ///     let told = || aggregation.run_in(place, &[0; 32], votes, &mut whit_mechanism::OsEntropy::new());
    ///     std::thread::scope(|scope| [scope.spawn(told), scope.spawn(told)].map(drop));
    /// }
    /// ```
    pub fn run_in(
        &self,
        place: &mut Place,
        public: &[u8; 32],
        votes: &Secret<Votes>,
        entropy: &mut impl Entropy,
    ) -> Result<Outcome> {
        // Shape is public.
        self.check(votes.as_ref().expose())?;
        let mut checkpoint = self.begun_in(place, public)?;
        if checkpoint.steps_kept() > 0 {
            return Ok(read(&checkpoint).ok_or(CheckpointError::Damaged)?);
        }
        if place.begin(&mut checkpoint, 1)? != 1 {
            let path = place.path().to_owned();
            return Err(CheckpointError::LabelsLost { path }.into());
        }
        let payer = checkpoint.payer().clone();
        let payment = Payment::rest(self.event().fingerprint(), payer, 0);
        let outcome = self.run(votes, payment, entropy)?;
        write(&mut checkpoint, &outcome);
        checkpoint.done(1);
        place.keep(&mut checkpoint)?;
        Ok(outcome)
    }
}

/// A fingerprint as a checkpoint holds it: a float for each byte.
fn floats(fingerprint: &[u8; 32]) -> Vec<f32> {
    fingerprint.iter().map(|byte| f32::from(*byte)).collect()
}

/// Labels as floats, which hold whole numbers up to 2^24: as many classes as there may be. No label is -1.
fn write(checkpoint: &mut Checkpoint, outcome: &Outcome) {
    let label = |label: &Option<usize>| label.map_or(-1.0, |label| label as f32);
    let labels = outcome.labels.iter().map(label).collect();
    checkpoint.vectors.insert(LABELS.into(), labels);
    let tested = outcome.tested as f64;
    checkpoint.scalars.insert(TESTED.into(), tested);
    if let Some(told) = &outcome.sanitised {
        let values = [
            told.epsilon,
            told.low,
            told.high,
            told.confidence,
            told.order,
        ];
        for (name, value) in SANITISED.into_iter().zip(values) {
            checkpoint.scalars.insert(name.into(), value);
        }
    }
}

fn read(checkpoint: &Checkpoint) -> Option<Outcome> {
    let label = |label: &f32| (*label >= 0.0).then_some(*label as usize);
    let labels = checkpoint.vectors.get(LABELS)?;
    let scalar = |name: &str| checkpoint.scalars.get(name).copied();
    let sanitised = match scalar(SANITISED[0]) {
        None => None,
        Some(epsilon) => Some(Sanitised {
            epsilon,
            low: scalar(SANITISED[1])?,
            high: scalar(SANITISED[2])?,
            confidence: scalar(SANITISED[3])?,
            order: scalar(SANITISED[4])?,
        }),
    };
    Some(Outcome {
        labels: labels.iter().map(label).collect(),
        tested: scalar(TESTED)? as usize,
        sanitised,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Sanitise, Terms, Test};
    use super::*;
    use crate::Uncharged;
    use whit_core::Fault;
    use whit_testkit::{FailingEntropy, Seeded};

    fn aggregation(sanitise: Option<Sanitise>) -> Aggregation {
        Aggregation::new(&Terms {
            test: Some(Test {
                threshold: 50.0,
                sigma: 20.0,
            }),
            sigma: 20.0,
            queries: 6,
            answers_max: 3,
            classes: 3,
            sanitise,
            ..Terms::default()
        })
        .expect("terms")
    }

    const SANITISE: Sanitise = Sanitise {
        order: 10.0,
        beta: 0.02,
        sigma: 20.0,
        width_noise: 10.0,
        delta: 1e-6,
        delta_told: 1e-5,
        confidence: 0.9,
    };

    const EXAMPLES: [u8; 32] = [7; 32];

    fn votes() -> Secret<Votes> {
        Secret::new(Votes::from_histogram(&[80, 15, 5].repeat(6), 3).expect("votes"))
    }

    #[test]
    fn labels_are_told_once_and_again() {
        for sanitise in [None, Some(SANITISE)] {
            let aggregation = aggregation(sanitise);
            let folder = tempfile::tempdir().expect("a folder");
            let open = || Place::make(folder.path(), aggregation.run_of(b"plan")).expect("free");
            let mut place = open();
            let code = |error: crate::Error| error.code();
            let early = aggregation.run_in(&mut place, &EXAMPLES, &votes(), &mut Seeded::new(1));
            assert_eq!(early.map_err(code), Err("checkpoint_not_begun"));
            let payment = Payment::uncharged(&aggregation, Uncharged);
            let begun = aggregation.start_in(&place, payment, &EXAMPLES);
            begun.expect("begun");
            assert_eq!(
                aggregation.told_in(&place, &EXAMPLES),
                Ok((None, Payer::Nobody))
            );
            let first = aggregation.run_in(&mut place, &EXAMPLES, &votes(), &mut Seeded::new(2));
            let first = first.expect("entropy");
            drop(place);
            let mut place = open();
            let again = aggregation.run_in(&mut place, &EXAMPLES, &votes(), &mut Seeded::new(3));
            assert_eq!(again.as_ref(), Ok(&first), "no new noise");
            assert_eq!(
                aggregation.told_in(&place, &EXAMPLES),
                Ok((Some(first.clone()), Payer::Nobody))
            );
            assert_eq!(first.sanitised.is_some(), sanitise.is_some());
        }
    }

    /// Stopped between counting and writing: nothing is told twice.
    #[test]
    fn what_was_counted_and_lost_is_lost() {
        let aggregation = aggregation(None);
        let folder = tempfile::tempdir().expect("a folder");
        let mut place = Place::make(folder.path(), aggregation.run_of(b"plan")).expect("free");
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let begun = aggregation.start_in(&place, payment, &EXAMPLES);
        begun.expect("begun");
        let two = Secret::new(Votes::from_histogram(&[80, 20].repeat(6), 2).expect("votes"));
        let unfit = aggregation.run_in(&mut place, &EXAMPLES, &two, &mut Seeded::new(1));
        assert!(unfit.is_err(), "and nothing is counted");
        let dry = aggregation.run_in(&mut place, &EXAMPLES, &votes(), &mut FailingEntropy);
        assert!(dry.is_err());
        let after = aggregation.run_in(&mut place, &EXAMPLES, &votes(), &mut Seeded::new(2));
        assert_eq!(after.map_err(|error| error.code()), Err("labels_lost"));
        let told = aggregation.told_in(&place, &EXAMPLES).expect_err("lost");
        assert!(told.to_string().contains("labels"), "{told}");
        let advice = told.suggestion();
        assert!(
            advice.contains("another folder") && !advice.contains("step"),
            "{advice}"
        );
    }

    /// Labels go by the number of a query: those of other examples are not these.
    #[test]
    fn other_public_examples_are_refused_before_and_after_labels_are_told() {
        let aggregation = aggregation(None);
        let folder = tempfile::tempdir().expect("a folder");
        let mut place = Place::make(folder.path(), aggregation.run_of(b"plan")).expect("free");
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let begun = aggregation.start_in(&place, payment, &EXAMPLES);
        begun.expect("begun");
        let mut other = EXAMPLES;
        other[31] ^= 1;
        let refused = |place: &mut Place| {
            let told = aggregation.told_in(place, &other).map(drop);
            let run = aggregation.run_in(place, &other, &votes(), &mut Seeded::new(1));
            [told, run.map(drop)].map(|result| result.map_err(|error| error.code()))
        };
        assert_eq!(refused(&mut place), [Err("checkpoint_other_public"); 2]);
        let run = aggregation.run_in(&mut place, &EXAMPLES, &votes(), &mut Seeded::new(1));
        assert!(run.is_ok(), "nothing was counted by the refusals");
        assert_eq!(refused(&mut place), [Err("checkpoint_other_public"); 2]);
        // A place that was begun without saying of which examples belongs to none.
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::make(folder.path(), aggregation.run_of(b"plan")).expect("free");
        let payment = Payment::uncharged(&aggregation, Uncharged);
        place.start(payment, Vec::new()).expect("begun");
        let told = aggregation.told_in(&place, &EXAMPLES);
        assert_eq!(
            told.map_err(|error| error.code()),
            Err("checkpoint_other_public")
        );
    }
}
