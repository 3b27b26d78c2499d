//! # Answers to a student who asks
//! Interactive Confident-GNMax [PSM+18, Alg. 2]: a student who has learnt something already tells what it would say itself, and teachers are asked where they disagree with it: the test
//! is whether some class has more votes than the student expects, `max_i (n_i - n p_i) + N(0, σ₁²) >= T`. Where they agree with a student that is sure, its own opinion is the label, and costs the test alone.
//!
//! What the student asks, and says, may depend on all answers before: `whit_mechanism::confident_noisy_max` proves the guarantee for that. Both are public.

use whit_core::{AddRemove, Entropy, Neighbours, ReplaceOne, Secret};
use whit_mechanism::ConfidentStream;
use whit_mechanism::gaussian_noisy_max::{STEPS_PER_VOTE, VOTERS_MAX, steps};

use super::aggregation::{Aggregation, caps, confident, maximum};
use crate::payment::Payment;
use crate::{Error, Result};

enum Stream {
    AddRemove(ConfidentStream<AddRemove>),
    ReplaceOne(ConfidentStream<ReplaceOne>),
}

/// An aggregation that was paid for, and waits for questions.
pub struct Interactive {
    stream: Stream,
    classes: usize,
}

impl Aggregation {
    /// Uses the payment up, and answers one question at a time. Refused without a test, and with a sanitised cost, which is for runs over a list.
    pub fn interactive(&self, payment: Payment) -> Result<Interactive> {
        let terms = self.terms();
        let field = |field, missing, passes| Error::Field {
            of: "interactive aggregation",
            field,
            missing,
            passes,
        };
        let test = terms.test.ok_or(field("threshold", true, "200"))?;
        if terms.sanitise.is_some() {
            return Err(field("sanitise", false, "none"));
        }
        let stream = match terms.neighbours {
            Neighbours::AddRemove => {
                Stream::AddRemove(confident(&test, maximum(terms)?)?.start(caps(terms)))
            }
            _ => Stream::ReplaceOne(confident(&test, maximum(terms)?)?.start(caps(terms))),
        };
        payment.lay_down(&self.event().fingerprint())?;
        Ok(Interactive {
            stream,
            classes: terms.classes,
        })
    }
}

impl Interactive {
    /// Whether no more can be asked.
    pub fn is_halted(&self) -> bool {
        match &self.stream {
            Stream::AddRemove(stream) => stream.is_halted(),
            Stream::ReplaceOne(stream) => stream.is_halted(),
        }
    }

    /// The class with most votes after noise, where teachers say something else than the student; else nothing. `expected` is how many votes the student expects for each class, its probability times the
    /// public number of teachers; what is no number, or missing, counts as none.
    pub fn ask(
        &mut self,
        counts: Secret<Vec<u64>>,
        expected: &[f64],
        entropy: &mut impl Entropy,
    ) -> Result<Option<usize>> {
        let votes = steps(counts, self.classes);
        let most = VOTERS_MAX as f64;
        // Public numbers, on the grid of the votes; a float that is no number becomes zero.
        let baseline: Vec<i64> = expected
            .iter()
            .map(|votes| (votes.clamp(-most, most) * STEPS_PER_VOTE as f64) as i64)
            .collect();
        let told = match &mut self.stream {
            Stream::AddRemove(stream) => stream.ask_beyond(votes, &baseline, entropy),
            Stream::ReplaceOne(stream) => stream.ask_beyond(votes, &baseline, entropy),
        };
        Ok(told?.into_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uncharged;
    use crate::pate::{Terms, Test};
    use whit_core::Fault;
    use whit_testkit::Seeded;

    fn terms(neighbours: Neighbours) -> Terms {
        Terms {
            test: Some(Test {
                threshold: 50.0,
                sigma: 0.1,
            }),
            sigma: 0.1,
            queries: 4,
            answers_max: 2,
            classes: 3,
            neighbours,
            ..Terms::default()
        }
    }

    #[test]
    fn teachers_answer_where_the_student_is_wrong() {
        for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let aggregation = Aggregation::new(&terms(neighbours)).expect("terms");
            let payment = Payment::uncharged(&aggregation, Uncharged);
            let mut asking = aggregation.interactive(payment).expect("paid");
            let mut entropy = Seeded::new(971);
            let mut ask = |expected: &[f64]| {
                let counts = Secret::new(vec![90, 8, 2]);
                asking
                    .ask(counts, expected, &mut entropy)
                    .map_err(|error| error.code())
            };
            assert_eq!(ask(&[90.0, 5.0, 5.0]), Ok(None), "they agree");
            assert_eq!(ask(&[5.0, 90.0, 5.0]), Ok(Some(0)));
            assert_eq!(
                ask(&[f64::NAN]),
                Ok(Some(0)),
                "a student without an opinion"
            );
            assert_eq!(ask(&[]), Err("halted"), "both answers were given");
            assert!(asking.is_halted());
        }
    }

    #[test]
    fn needs_a_test_and_its_own_payment() {
        let plain = Aggregation::new(&Terms {
            test: None,
            ..terms(Neighbours::ReplaceOne)
        });
        let plain = plain.expect("terms");
        let payment = Payment::uncharged(&plain, Uncharged);
        assert!(plain.interactive(payment).is_err());
        let aggregation = Aggregation::new(&terms(Neighbours::ReplaceOne)).expect("terms");
        let payment = Payment::uncharged(&plain, Uncharged);
        assert!(matches!(
            aggregation.interactive(payment),
            Err(Error::OtherPlan)
        ));
    }
}
