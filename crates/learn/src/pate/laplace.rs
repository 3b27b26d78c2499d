//! # Laplace noisy max (LNMax)
//! The aggregator of [PAE+17]: discrete Laplace noise of scale `λ` on each count, every query answered. One vote that moves changes two counts, so an answer is `2/λ`-DP
//! (`whit_mechanism::report_noisy_max` has the proof), and `N` of them are `N` such events, priced together by `price`. For equal epsilons it answers fewer
//! queries than Gaussian noise as soon as there are more than a few; it is here for comparison, and for guarantees without a delta.

use whit_accounting::price;
use whit_core::{
    AddRemove, Delta, Entropy, Event, Linf, Mechanism, Neighbours, Ratio, Relation, ReplaceOne,
    Secret, Sensitivity,
};
use whit_mechanism::{ReportNoisyMax, Scores};

use super::aggregation::{Outcome, scale, within};
use super::error::VotesError;
use super::votes::Votes;
use crate::payment::{Payment, Priced, sealed};
use crate::{Error, Result};

/// Events are kept one for each answer, so there are not too many of them.
const QUERIES_MAX: u64 = 100_000;

/// Terms of an aggregation with Laplace noise, checked and priced.
#[derive(Clone, Debug)]
pub struct LaplaceAggregation {
    epsilon_each: Ratio,
    queries: u64,
    classes: usize,
    event: Event,
    epsilon: f64,
}

impl LaplaceAggregation {
    /// Noise of scale `lambda` votes on the first `queries`, between public classes; the price is at `delta`, which may be zero.
    pub fn new(
        lambda: f64,
        queries: u64,
        classes: usize,
        delta: Delta,
        neighbours: Neighbours,
    ) -> Result<Self> {
        within("the number of queries", queries)?;
        if queries > QUERIES_MAX {
            return Err(Error::OutOfRange {
                what: "the number of queries",
                given: queries as f64,
                range: "at most 100,000 with Laplace noise",
            });
        }
        let scale = scale("lambda, the noise of the maximum,", lambda)?;
        let epsilon_each = Ratio::from(2_u64).checked_div(scale.ratio());
        let epsilon_each = epsilon_each.unwrap_or_else(Ratio::one);
        let each = match neighbours {
            Neighbours::AddRemove => noisy_max::<AddRemove>(&epsilon_each, classes)?.event(),
            Neighbours::ReplaceOne => noisy_max::<ReplaceOne>(&epsilon_each, classes)?.event(),
            other => {
                return Err(whit_accounting::Error::WrongRelation {
                    mechanism: "an aggregation of votes".into(),
                    neighbours: other,
                }
                .into());
            }
        };
        let parts = vec![each.mechanism().clone(); queries as usize];
        let event = Event::new(each.neighbours(), Mechanism::Composition(parts));
        let epsilon = price(&event, delta)?.epsilon.value();
        Ok(Self {
            epsilon_each,
            queries,
            classes,
            event,
            epsilon,
        })
    }

    /// The guarantee's epsilon, rounded up.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Uses the payment up and answers the queries in order.
    pub fn run(
        &self,
        votes: &Secret<Votes>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Outcome> {
        // Shape is public.
        let votes = votes.as_ref().expose();
        votes.check_relation(self.event.neighbours())?;
        if votes.classes() != self.classes {
            return Err(VotesError::OtherClasses {
                declared: self.classes,
                found: votes.classes(),
            }
            .into());
        }
        if (votes.queries() as u64) < self.queries {
            return Err(VotesError::TooFew {
                declared: self.queries,
                found: votes.queries(),
            }
            .into());
        }
        payment.lay_down(&self.event.fingerprint())?;
        let labels = match self.event.neighbours() {
            Neighbours::AddRemove => self.ask::<AddRemove>(votes, entropy)?,
            _ => self.ask::<ReplaceOne>(votes, entropy)?,
        };
        Ok(Outcome {
            tested: labels.len(),
            labels,
            sanitised: None,
        })
    }

    fn ask<R: Relation>(
        &self,
        votes: &Votes,
        entropy: &mut impl Entropy,
    ) -> Result<Vec<Option<usize>>> {
        let mechanism = noisy_max::<R>(&self.epsilon_each, self.classes)?;
        let mut labels = Vec::new();
        for query in 0..self.queries as usize {
            let counts = votes.counts(query).iter().map(|count| *count as i64);
            let told = mechanism.release(Secret::new(counts.collect()), entropy)?;
            labels.push(Some(told.into_value()));
        }
        Ok(labels)
    }
}

/// Each count moves by at most one, up or down.
fn noisy_max<R: Relation>(epsilon: &Ratio, classes: usize) -> Result<ReportNoisyMax<R>> {
    if classes < 2 {
        return Err(VotesError::Classes { classes }.into());
    }
    let one: Sensitivity<Linf, R> = Sensitivity::new(Ratio::one());
    let scores = Scores::new(classes as u64, &one)?;
    Ok(ReportNoisyMax::new(epsilon.clone(), scores)?)
}

impl sealed::Sealed for LaplaceAggregation {}

impl Priced for LaplaceAggregation {
    fn event(&self) -> &Event {
        &self.event
    }

    fn guarantee(&self) -> Result<Event> {
        Ok(self.event.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uncharged;
    use whit_audit::{Alpha, Claim, falsify};
    use whit_core::Epsilon;
    use whit_testkit::Seeded;

    const RELATION: Neighbours = Neighbours::ReplaceOne;

    fn made(lambda: f64, queries: u64, delta: f64) -> LaplaceAggregation {
        let delta = Delta::new(delta).expect("a delta");
        LaplaceAggregation::new(lambda, queries, 2, delta, RELATION).expect("terms")
    }

    #[test]
    fn answers_add_up_to_two_over_lambda_each() {
        assert!((made(20.0, 5, 0.0).epsilon() - 0.5).abs() < 1e-12);
        let many = made(20.0, 100, 1e-5).epsilon();
        assert!(many > 3.0 && many < 6.0, "{many}");
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(LaplaceAggregation::new(bad, 5, 2, Delta::ZERO, RELATION).is_err());
        }
        assert!(LaplaceAggregation::new(20.0, 0, 2, Delta::ZERO, RELATION).is_err());
        assert!(LaplaceAggregation::new(20.0, 5, 1, Delta::ZERO, RELATION).is_err());
    }

    /// One teacher turns the vote on both queries; both labels for the first class are the event.
    fn convicted(done: &LaplaceAggregation, claimed: &LaplaceAggregation) -> bool {
        let votes = |counts: [u64; 2]| {
            Secret::new(Votes::from_histogram(&counts.repeat(2), 2).expect("votes"))
        };
        let first = |votes: &Secret<Votes>, entropy: &mut Seeded| {
            let payment = Payment::uncharged(done, Uncharged);
            let told = done.run(votes, payment, entropy).expect("entropy");
            told.labels == [Some(0), Some(0)]
        };
        let (mut one, mut two) = (Seeded::new(981), Seeded::new(982));
        let (with, without) = (votes([6, 7]), votes([5, 8]));
        let claim = Claim::pure(Epsilon::new(claimed.epsilon()).expect("finite"));
        let alpha = Alpha::new(1e-6).expect("a level");
        falsify(
            claim,
            20_000,
            alpha,
            || first(&with, &mut one),
            || first(&without, &mut two),
        )
        .expect("trials")
        .convicted
    }

    #[test]
    fn one_teacher_shows_no_more_than_the_guarantee() {
        let honest = made(4.0, 2, 0.0);
        assert!(!convicted(&honest, &honest));
        // A twin that answers with a third of the noise it has paid for.
        assert!(convicted(&made(4.0 / 3.0, 2, 0.0), &honest));
    }
}
