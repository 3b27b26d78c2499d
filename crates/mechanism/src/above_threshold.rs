//! The stream of a [sparse vector](crate::sparse_vector), which holds its definition and its proof.
//!
//! State: the noisy threshold, drawn once and never told, and how many answers above are left. Each query opens a fresh stream of
//! bits; nothing of it is kept. After the last answer above there is no way to ask on.

use std::marker::PhantomData;
use std::sync::Arc;

use whit_core::{Entropy, Event, Mechanism, Relation, Scale, Secret};
use zeroize::Zeroize;

use crate::sample::DiscreteLaplace;
use crate::{Error, Release, Result};

/// What a query is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Below the threshold, as far as the noise lets see.
    Below,
    /// At or above it, with a noisy value if these were paid for.
    Above {
        /// The query with noise of its own.
        value: Option<i64>,
    },
}

/// A stream that has started. It keeps the threshold's noise secret and wipes it at the end.
pub struct AboveThreshold<R: Relation> {
    noisy_threshold: i128,
    noise: Arc<StreamNoise>,
    answers: u64,
    left: u64,
    /// The event, until the first answer takes it along.
    unpaid: Option<Event>,
    relation: PhantomData<fn() -> R>,
}

/// The noise of threshold, queries and values.
pub(crate) struct StreamNoise {
    threshold: DiscreteLaplace,
    query: DiscreteLaplace,
    value: Option<DiscreteLaplace>,
}

impl StreamNoise {
    pub(crate) fn new(threshold: &Scale, query: &Scale, value: Option<&Scale>) -> Self {
        Self {
            threshold: DiscreteLaplace::new(threshold),
            query: DiscreteLaplace::new(query),
            value: value.map(DiscreteLaplace::new),
        }
    }
}

impl<R: Relation> AboveThreshold<R> {
    pub(crate) fn start(
        threshold: i64,
        answers: u64,
        event: Event,
        noise: Arc<StreamNoise>,
        entropy: &mut impl Entropy,
    ) -> Result<Self> {
        let mut bits = entropy.open()?;
        let noisy = i128::from(threshold).saturating_add(noise.threshold.sample(&mut bits));
        Ok(Self {
            noisy_threshold: noisy,
            noise,
            answers,
            left: answers,
            unpaid: Some(event),
            relation: PhantomData,
        })
    }

    /// How many more answers above there can be.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Answers one query, which must move by no more than the sensitivity. Refused once the stream has halted, which everybody
    /// knows who has seen its answers.
    pub fn above(
        &mut self,
        query: Secret<i64>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Answer>> {
        if self.left == 0 {
            return Err(Error::Halted {
                answers: self.answers,
            });
        }
        let mut bits = entropy.open()?;
        let query = i128::from(query.expose());
        let noisy = query.saturating_add(self.noise.query.sample(&mut bits));
        // Drawn whatever the answer, so that both take the same steps.
        let value = self.noise.value.as_ref().map(|noise| {
            let value = query.saturating_add(noise.sample(&mut bits));
            value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        });
        let answer = if noisy >= self.noisy_threshold {
            self.left -= 1;
            Answer::Above { value }
        } else {
            Answer::Below
        };
        let event = self
            .unpaid
            .take()
            .unwrap_or_else(|| Event::new(R::NEIGHBOURS, Mechanism::Composition(Vec::new())));
        Ok(Release::new(answer, event))
    }
}

impl<R: Relation> Drop for AboveThreshold<R> {
    fn drop(&mut self) {
        self.noisy_threshold.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SparseVector;
    use crate::doubt::{self, TapeEntropy, seed};
    use crate::score::tests::ratio;
    use whit_audit::enumerate;
    use whit_core::{Ratio, ReplaceOne, Sensitivity};
    use whit_testkit::{FailingEntropy, Seeded};

    const BELOW: Answer = Answer::Below;
    const ABOVE: Answer = Answer::Above { value: None };

    fn any(epsilon: Ratio, answers: u64) -> SparseVector<ReplaceOne> {
        SparseVector::new(epsilon, answers, &Sensitivity::new(Ratio::one())).expect("a stream")
    }

    fn first(stream: &SparseVector<ReplaceOne>, query: i64, entropy: &mut impl Entropy) -> Answer {
        let mut open = stream.start(0, entropy).expect("entropy");
        open.above(Secret::new(query), entropy)
            .expect("entropy")
            .into_value()
    }

    /// Values come with noise of their own: given the answer above, they are the query plus the stated noise.
    #[test]
    fn values_have_fresh_noise() {
        let stream = any(ratio(2, 1), 1)
            .with_values(&ratio(2, 5))
            .expect("values");
        let mut entropy = Seeded::new(seed(352));
        let mut values = (0..60_000).filter_map(|_| match first(&stream, 3, &mut entropy) {
            Answer::Above { value } => Some(i128::from(value.expect("paid for") - 3)),
            Answer::Below => None,
        });
        doubt::Shape::laplace(&doubt::scale(5, 2))
            .assert_fits("values", 8_000, || values.next().expect("enough"));
    }

    /// The whole stream on every tape. One tape serves the start and each query in turn.
    #[test]
    fn enumeration_of_neighbours() {
        let run = |epsilon: u128, query: i64| {
            let stream = any(ratio(epsilon, 1), 1);
            enumerate::<1, _>(20, |tape| {
                let mut open = stream
                    .start(0, &mut TapeEntropy(Some(&mut *tape)))
                    .expect("entropy");
                let answer = open.above(Secret::new(query), &mut TapeEntropy(Some(tape)));
                answer.expect("entropy").into_value()
            })
        };
        let honest = run(3, -1).max_log_ratio_lower(&run(3, 0));
        assert!(honest <= 3.0 && honest > 0.3, "{honest}");
        let twin = run(40, -1).max_log_ratio_lower(&run(40, 0));
        assert!(twin > 3.0, "{twin}");
    }

    #[test]
    fn halts_and_charges_once() {
        let mut entropy = Seeded::new(355);
        let stream = any(ratio(1 << 40, 1), 2);
        let mut open = stream.start(10, &mut entropy).expect("entropy");
        let mut events = Vec::new();
        for (query, answer) in [
            (9, BELOW),
            (10, ABOVE),
            (i64::MIN, BELOW),
            (i64::MAX, ABOVE),
        ] {
            let release = open
                .above(Secret::new(query), &mut entropy)
                .expect("not halted");
            assert_eq!(
                *release.value(),
                answer,
                "{query}: at the threshold is above"
            );
            events.push(release.event().clone());
        }
        assert_eq!(open.left(), 0);
        let refused = open
            .above(Secret::new(0), &mut entropy)
            .map(Release::into_value);
        assert_eq!(refused, Err(Error::Halted { answers: 2 }));
        assert_eq!(events[0], stream.event());
        let free = Event::new(ReplaceOne::NEIGHBOURS, Mechanism::Composition(Vec::new()));
        assert!(events[1..].iter().all(|event| *event == free));
    }

    #[test]
    fn no_entropy_no_answer() {
        let stream = any(ratio(1, 1), 1);
        assert!(stream.start(0, &mut FailingEntropy).is_err());
        let mut open = stream.start(0, &mut Seeded::new(356)).expect("entropy");
        assert!(open.above(Secret::new(0), &mut FailingEntropy).is_err());
        assert_eq!(open.left(), 1);
    }
}
