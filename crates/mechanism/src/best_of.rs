//! # The best of a random number of runs
//! **Definition.** Draw `K` by a [`Repeats`]. Then `K` times: draw one of several kinds uniformly, and run it afresh. What is released is the run with the largest
//!   score, and its kind; of equals the first; nothing where `K` is zero. [LT19, PS22]
//! **Requires.** A run of kind `i` is what the event says of that kind, whatever was run before, with noise of its own. The score is a function of what the run
//!   gives: [`choose`](BestOf::choose) hands it nothing else, and it must not look at private data on the way. (A score of private data is noised and charged within the run.) How many runs
//!   there were is not told, neither by what is shown nor by how long it takes: see `LIMITS.md`.
//! **Guarantee.** That of its event: the price stands in `accounting`, `best_of.rs`.
//! **Proof.** `K` and the kinds are drawn from streams of their own and never see the data; runs with one kind are alike and independent. A run that is not the best
//!   leaves nothing. Scores that are no numbers count as the lowest, which is a function of the run, too. ∎
//! **Padded.** There are always as many runs as are given, of which those after the `K`-th are made and forgotten: then the time does not tell `K`. It is as if `K` were cut there,
//!   which moves its law, and with it that of what is released, by at most the probability that it is larger: the event says so.
//! **Sampler.** Exact; [`sample::repeats`](crate::sample::repeats).

use whit_core::{
    Entropy, EntropyFailure, Event, Mechanism, Neighbours, Probability, Ratio, Repeats,
};

use crate::sample::{Runs, uniform_below};

/// Releases the best of several runs.
#[derive(Clone)]
pub struct BestOf {
    repeats: Repeats,
    among: Vec<Mechanism>,
    runs: Runs,
    pad: Option<u64>,
}

/// The best run.
#[derive(Clone, Debug, PartialEq)]
pub struct Best<T> {
    /// What it gave.
    pub value: T,
    /// Which of the kinds it was, from zero.
    pub kind: usize,
    /// Its score.
    pub score: f64,
}

impl BestOf {
    /// For runs of these kinds, each as likely. `None` if there is none, or the law has no sampler.
    pub fn new(repeats: Repeats, among: Vec<Mechanism>) -> Option<Self> {
        let runs = Runs::new(&repeats)?;
        (!among.is_empty()).then_some(Self {
            repeats,
            among,
            runs,
            pad: None,
        })
    }

    /// The same with always so many runs, those that are forgotten included.
    pub fn padded(self, runs: u64) -> Self {
        let pad = Some(runs);
        Self { pad, ..self }
    }

    /// How far the pad moves the law of what is released, at most; zero without one.
    pub fn total_variation(&self) -> Probability {
        let zero = Probability::new(Ratio::zero()).expect("zero");
        self.pad.map_or(zero, |pad| self.runs.tail_upper(pad))
    }

    /// What the whole does. A kind that is there twice is named once.
    pub fn event(&self, neighbours: Neighbours) -> Event {
        let mut among: Vec<Mechanism> = Vec::new();
        for kind in &self.among {
            if !among.contains(kind) {
                among.push(kind.clone());
            }
        }
        let repeats = self.repeats.clone();
        let exact = Mechanism::BestOf { repeats, among };
        let mechanism = match self.pad {
            None => exact,
            Some(_) => Mechanism::Close {
                inner: Box::new(exact),
                total_variation: self.total_variation(),
            },
        };
        Event::new(neighbours, mechanism)
    }

    /// Spends one `event`. `run` is called with the kind of each run; whatever it refuses ends the search, and must not depend on private data.
    pub fn choose<T, E: Entropy, F: From<EntropyFailure>>(
        &self,
        entropy: &mut E,
        mut run: impl FnMut(usize, &mut E) -> Result<T, F>,
        score: impl Fn(&T) -> Result<f64, F>,
    ) -> Result<Option<Best<T>>, F> {
        let count = self.runs.sample(&mut entropy.open()?);
        let mut best: Option<Best<T>> = None;
        for number in 0..self.pad.unwrap_or(count) {
            let kind = uniform_below(self.among.len() as u64, &mut entropy.open()?) as usize;
            let value = run(kind, entropy)?;
            let score = score(&value)?;
            let score = if score.is_nan() {
                f64::NEG_INFINITY
            } else {
                score
            };
            let better = best.as_ref().is_none_or(|best| score > best.score);
            if number < count && better {
                best = Some(Best { value, kind, score });
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{judge, seed};
    use crate::{Error, RandomizedResponse};
    use whit_audit::Verdict;
    use whit_core::Secret;
    use whit_testkit::Seeded;

    fn share(numerator: u128, denominator: u128) -> Probability {
        let ratio = Ratio::new(numerator, denominator).expect("not zero");
        Probability::new(ratio).expect("a share")
    }

    /// About ten runs, by a geometric law.
    fn geometric() -> Repeats {
        Repeats::TruncatedNegativeBinomial {
            eta_plus_one: Ratio::from(2_u64),
            gamma: share(1, 10),
        }
    }

    /// What a run is asked about, and how it is scored.
    type Scored = fn(bool, bool) -> f64;

    /// A survey with a keep probability of 3/5, the best of which is released; the event is that it says yes.
    fn seen(claimed: f64, repeats: &Repeats, fixed: Option<u64>, score: Scored) -> Verdict {
        let survey = RandomizedResponse::new(share(3, 5), 2).expect("a survey");
        let kind = survey.event().mechanism().clone();
        let search = BestOf::new(repeats.clone(), vec![kind]).expect("a law");
        let world = |truth: bool, seed: u64| {
            let (survey, search) = (&survey, &search);
            let mut entropy = Seeded::new(seed);
            move || {
                let run = |_: usize, entropy: &mut Seeded| {
                    let said = survey.release_bool(Secret::new(truth), entropy)?;
                    Ok::<_, Error>(*said.value())
                };
                let best = match fixed {
                    None => search.choose(&mut entropy, run, |said| Ok(score(*said, truth))),
                    Some(count) => {
                        let runs = (0..count).map(|_| run(0, &mut entropy).expect("entropy"));
                        let found = runs.fold(None, |best: Option<bool>, said| match best {
                            Some(best) if score(best, truth) >= score(said, truth) => Some(best),
                            _ => Some(said),
                        });
                        Ok(found.map(|value| Best {
                            value,
                            kind: 0,
                            score: 0.0,
                        }))
                    }
                };
                best.expect("entropy").is_some_and(|best| best.value)
            }
        };
        judge(
            claimed,
            0.0,
            200_000,
            world(true, seed(251)),
            world(false, seed(252)),
        )
    }

    /// `ε + 2 ln((γ+(1-γ)p)/(γ+(1-γ)(1-p)))` at `ε = ln 1.5` and `p = 3/5`: what `accounting` charges, by hand.
    fn price() -> f64 {
        1.5_f64.ln() + 2.0 * (0.64_f64 / 0.46).ln()
    }

    #[test]
    fn falsifier() {
        let honest: Scored = |said, _| if said { 0.0 } else { 1.0 };
        let verdict = seen(price(), &geometric(), None, honest);
        // Yes is released if no run said no: f(3/5)/f(2/5), where f(t) = γt/(1-(1-γ)t).
        let exact = ((0.6 / (1.0 - 0.9 * 0.6)) / (0.4_f64 / (1.0 - 0.9 * 0.4))).ln();
        assert!(!verdict.convicted && exact < price(), "{verdict:?} {exact}");
        assert!(verdict.epsilon_lower > 0.9 * exact, "{verdict:?} {exact}");
    }

    #[test]
    fn falsifier_has_teeth() {
        let honest: Scored = |said, _| if said { 0.0 } else { 1.0 };
        // Five runs, always as many: 5 ln(3/2).
        let fixed = seen(price(), &geometric(), Some(5), honest);
        assert!(fixed.convicted, "{fixed:?}");
        // A score that knows the truth: whatever is said, the truth is preferred.
        let peeking: Scored = |said, truth| f64::from(said == truth);
        let peeked = seen(price(), &geometric(), None, peeking);
        assert!(peeked.convicted, "{peeked:?}");
    }

    #[test]
    fn the_first_of_the_best_is_released_and_nothing_without_a_run() {
        let kinds = vec![
            Mechanism::Pure {
                epsilon: Ratio::one()
            };
            3
        ];
        let search = BestOf::new(geometric(), kinds).expect("a law");
        let Mechanism::BestOf { among, .. } =
            search.event(Neighbours::AddRemove).mechanism().clone()
        else {
            unreachable!("it is one")
        };
        assert_eq!(among.len(), 1, "equal kinds are one");
        let mut kinds_seen = [0_u32; 3];
        let mut entropy = Seeded::new(253);
        for _ in 0..3000 {
            let mut count = 0_u32;
            let run = |kind: usize, _: &mut Seeded| {
                count += 1;
                Ok::<_, Error>((kind, count))
            };
            let score = |(_, count): &(usize, u32)| Ok(if *count == 2 { f64::NAN } else { 1.0 });
            let best = search.choose(&mut entropy, run, score).expect("entropy");
            let best = best.expect("at least one run");
            assert_eq!((best.value.1, best.kind), (1, best.value.0));
            kinds_seen[best.kind] += 1;
        }
        assert!(
            kinds_seen.iter().all(|seen| (850..1150).contains(seen)),
            "{kinds_seen:?}"
        );
        let mean = Ratio::new(1, 1_000_000).expect("not zero");
        let rare = BestOf::new(
            Repeats::Poisson { mean },
            vec![Mechanism::Pure {
                epsilon: Ratio::one(),
            }],
        );
        let none =
            rare.expect("a law")
                .choose(&mut entropy, |_, _| Ok::<_, Error>(()), |()| Ok(0.0));
        assert_eq!(none.expect("entropy"), None);
        assert!(BestOf::new(geometric(), vec![]).is_none());
    }

    /// A padded search makes as many runs every time, releases what the other does, and says how far it is from it.
    #[test]
    fn a_pad_hides_how_many_runs_count() {
        let kinds = vec![Mechanism::Pure {
            epsilon: Ratio::one(),
        }];
        let plain = BestOf::new(geometric(), kinds).expect("a law");
        let padded = plain.clone().padded(60);
        let tail = padded.total_variation().ratio().to_f64_up();
        assert!(
            tail >= 0.9_f64.powi(60) && tail < 3.0 * 0.9_f64.powi(60),
            "{tail}"
        );
        let Mechanism::Close { inner, .. } =
            padded.event(Neighbours::AddRemove).mechanism().clone()
        else {
            unreachable!("it is close")
        };
        assert_eq!(*inner, *plain.event(Neighbours::AddRemove).mechanism());
        // Later runs are better, so the best is the last that counts: min(K, 60).
        let mut counts = vec![0_u64; 61];
        let mut entropy = Seeded::new(seed(254));
        for _ in 0..20_000 {
            let mut made = 0_usize;
            let run = |_: usize, _: &mut Seeded| {
                made += 1;
                Ok::<_, Error>(made)
            };
            let best = padded.choose(&mut entropy, run, |at| Ok(*at as f64));
            counts[best.expect("entropy").expect("a run").value] += 1;
            assert_eq!(made, 60);
        }
        let law = |k: usize| match k {
            0 => 0.0,
            60 => 0.9_f64.powi(59),
            k => 0.1 * 0.9_f64.powi(k as i32 - 1),
        };
        let law: Vec<f64> = (0..=60).map(law).collect();
        let found = whit_audit::g_test(&counts, &law).expect("probabilities");
        assert!(found.p_value >= crate::doubt::ALPHA, "{found:?}");
    }
}
