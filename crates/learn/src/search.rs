//! # Searching hyper-parameters
//! A [`SearchPlan`] makes a random number of training runs, each with a candidate that it draws, judges each on public data, and releases the best alone.
//!
//! **Guarantee.** Whoever sees what [`SearchPlan::choose`] gives, and all that is made of it, sees what the plan's event describes: it is `(epsilon_upper, delta)`-DP.
//! *Proof.* [`BestOf`] draws how many runs there are and which candidate each takes. A run is a [`Trainer`] with noise and batches of its own, so it is the event of
//! its candidate's plan, which stands in the event of the search; its score is a function of its parameters and of public data, which are a [`Dataset`] and no
//! `Secret`. All weights of a run and everything on the way to them are covered by the run's event; of a run that is not the best nothing is kept, not even an error. That the best of
//! such runs has the stated price is proven in `accounting`, `best_of.rs`.
//!
//! **What must not be seen.** How many runs there were is not paid for: given that number, the best of so many was released. So nothing here says it. There is
//! no progress, and nothing is written between the first run and the last. A watch tells it, unless the search is padded: then as many runs are made every time, and those that
//! do not count are forgotten. What a ledger is charged for is padded, as whoever is charged has a watch.
//!
//! **All or nothing.** A search that was stopped cannot go on: to draw the rest of the runs one would have to keep how many there were, and the runs. The
//! [place](Place) counts a search as one step, before its first run, and is held for oneself (`&mut`) from where that is read to where it is written; what was paid is spent. Nor is a search that has ended made again: its place keeps what came of it.

mod calibrate;

use std::num::NonZeroUsize;

use serde::Serialize;
use whit_accounting::Error::TooCoarse;
use whit_accounting::{Bracket, epsilon};
use whit_core::{Delta, Entropy, Event, Mechanism, Neighbours, Probability, Ratio, Secret};
use whit_mechanism::{Best, BestOf};

use crate::card::Search;
use crate::checkpoint::{Checkpoint, CheckpointError, Place, Run};
use crate::data::Dataset;
use crate::draft::{Draft, NoiseDraft};
use crate::error::{Error, Result};
use crate::evaluate::evaluate;
use crate::model::Architecture;
use crate::network::Network;
use crate::payment::{Payer, Payment};
use crate::plan::Plan;
use crate::recipe::{PAD_MAX, Recipe, Score};
use crate::train::{Trainer, fits, fits_all};

/// Under which names a place keeps what came of a search.
const CANDIDATE: &str = "candidate";
const SCORE: &str = "score";

/// A checked search with its price.
#[derive(Clone)]
pub struct SearchPlan {
    recipe: Recipe,
    candidates: Vec<Recipe>,
    /// Of each candidate.
    plans: Vec<Plan>,
    best_of: BestOf,
    score: Score,
    event: Event,
    epsilon: Bracket,
    delta: Delta,
    law: &'static str,
    runs: f64,
    pad: Option<u64>,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Chosen {
    /// Which candidate the best run had, from zero; `None` if by its law there was no run, or if none gave a model.
    pub candidate: Option<usize>,
    /// The parameters of the best run; the initial ones if there was none.
    pub parameters: Vec<f32>,
    /// Its accuracy or its loss on the public data of `[validation]`; not a number if there was none.
    pub score: f64,
}

impl SearchPlan {
    /// Checks, calibrates if an epsilon was asked for, and prices. Reads no data. Refused for a recipe without `[search]`.
    pub fn new(recipe: &Recipe) -> Result<Self> {
        let needs = |field, passes| Error::Field {
            of: "a search",
            field,
            missing: true,
            passes,
        };
        let search = recipe.search.as_ref();
        let search = search.ok_or(needs(
            "search",
            "[search] with runs = 10 and rate = [0.1, 1.0]",
        ))?;
        if recipe.validation.is_none() {
            let passes = "[validation], examples that are declared public: a score of private ones would have to be noised and charged";
            return Err(needs("validation", passes));
        }
        let candidates = recipe.candidates(search)?;
        for candidate in &candidates {
            candidate.method(0, NonZeroUsize::MIN)?;
        }
        let repeats = search.repeats()?;
        let examples = recipe.examples_public()?;
        let drafts = candidates.iter().map(|one| one.plan.draft(examples));
        let drafts = drafts.collect::<Result<Vec<Draft>>>()?;
        let first = drafts.first().ok_or(Error::Unbound)?;
        let (relation, delta) = (first.relation, Delta::new(first.delta)?);
        if let Some(pad) = search.pad.filter(|pad| !(1..=PAD_MAX).contains(pad)) {
            return Err(short_pad(pad));
        }
        let best_of = |multiplier: f64| -> Result<BestOf> {
            let kinds = drafts.iter().map(|draft| {
                let noise = NoiseDraft::Multiplier(multiplier);
                let event = Plan::event_of(&Draft {
                    noise,
                    ..draft.clone()
                })?;
                Ok(event.mechanism().clone())
            });
            let kinds = kinds.collect::<Result<Vec<Mechanism>>>()?;
            let best_of = BestOf::new(repeats.clone(), kinds).ok_or(Error::Unbound)?;
            Ok(match search.pad {
                Some(pad) => best_of.padded(pad),
                None => best_of,
            })
        };
        let priced = |multiplier: f64| -> Result<(BestOf, Event, Bracket)> {
            let best_of = best_of(multiplier)?;
            let event = best_of.event(relation);
            let found = epsilon(&event, delta).map_err(|error| match (error, search.pad) {
                (TooCoarse { .. }, Some(pad)) => short_pad(pad),
                (error, _) => error.into(),
            });
            Ok((best_of, event, found?.bounds))
        };
        let (multiplier, (best_of, event, epsilon)) = match first.noise {
            NoiseDraft::Multiplier(given) => (given, priced(given)?),
            NoiseDraft::Epsilon(target) => {
                // With the noise of one run that costs as much there is too little for the best of several.
                let start = Plan::new(first)?.noise_multiplier();
                calibrate::least(target, start, priced)?
            }
        };
        let plans = plans(&drafts, multiplier)?;
        Ok(Self {
            score: search.score(recipe.data.classes.is_some())?,
            law: search.word()?,
            runs: search.runs,
            pad: search.pad,
            recipe: recipe.clone(),
            candidates,
            plans,
            best_of,
            event,
            epsilon,
            delta,
        })
    }

    /// What the whole search does to the data.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The smallest epsilon at the plan's delta, between proven bounds.
    pub fn epsilon(&self) -> Bracket {
        self.epsilon
    }

    /// The slack.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Whom it protects.
    pub fn relation(&self) -> Neighbours {
        self.event.neighbours()
    }

    /// The guarantee as an event: that the search is `(epsilon_upper, delta)`-DP, and nothing else.
    pub fn guarantee(&self) -> Result<Event> {
        let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
        let guarantee = Mechanism::Approximate {
            epsilon: exact(self.epsilon.upper())?,
            delta: Probability::new(exact(self.delta.value())?)?,
        };
        Ok(Event::new(self.relation(), guarantee))
    }

    /// The candidates, each as the recipe of one run.
    pub fn candidates(&self) -> &[Recipe] {
        &self.candidates
    }

    /// The plan of one run of a candidate; it prices that run by itself.
    pub fn plan(&self, candidate: usize) -> Option<&Plan> {
        self.plans.get(candidate)
    }

    /// Does the time that it takes not tell how many runs counted?
    pub fn is_padded(&self) -> bool {
        self.pad.is_some()
    }

    /// What a card says about the search.
    pub fn words(&self) -> Search {
        Search::BestOf {
            candidates: self.candidates.len(),
            runs: self.runs,
            law: self.law,
            score: self.score.word(),
            padded: self.is_padded(),
        }
    }

    /// By what runs are judged.
    pub fn score(&self) -> Score {
        self.score
    }

    /// What a place of this search belongs to: every word of the recipe, and the event. The search is one step.
    pub fn run(&self, recipe: &Recipe) -> Run {
        recipe.run_of(&self.event, 1)
    }

    /// What a dry run shows.
    pub fn summary(&self) -> Summary {
        let one = self.plans.iter().map(|plan| plan.epsilon().upper());
        let first = self.plans.first();
        let of = |number: fn(&Plan) -> f64| first.map_or(f64::NAN, number);
        let mut clips: Vec<f64> = self.plans.iter().map(Plan::clip_norm).collect();
        clips.sort_by(f64::total_cmp);
        clips.dedup();
        Summary {
            epsilon_lower: self.epsilon.lower(),
            epsilon_upper: self.epsilon.upper(),
            delta: self.delta.value(),
            relation: self.relation(),
            runs: self.runs,
            pad: self.pad,
            law: self.law,
            candidates: self.candidates.len(),
            score: self.score.word(),
            epsilon_of_one_run: one.fold(0.0, f64::max),
            noise_multiplier: of(Plan::noise_multiplier),
            clip_norms: clips,
            steps: first.map_or(0, Plan::steps),
            rate: of(Plan::rate),
            sampler: first.map_or("", |plan| plan.summary().sampler),
            expected_batch: of(Plan::expected_batch),
        }
    }

    /// Refuses what can be refused by what is public about the data, and gives the network for examples of this shape.
    pub fn check(&self, recipe: &Recipe, shape: &[usize]) -> Result<Architecture> {
        let mut made = None;
        for (candidate, plan) in self.candidates.iter().zip(&self.plans) {
            // A door may have added the unit that a catalog protects.
            let mut candidate = candidate.clone();
            candidate.data = recipe.data.clone();
            made = Some(candidate.check(plan, shape)?);
        }
        made.ok_or(Error::Unbound)
    }

    /// All of the search: the best run, and nothing of the others. `validation` are public examples as they were loaded.
    pub fn choose<E: Entropy<Bits: Send>>(
        &self,
        data: Secret<Dataset>,
        validation: Dataset,
        threads: NonZeroUsize,
        payment: Payment,
        entropy: &mut E,
    ) -> Result<Chosen> {
        let payer = payment.lay_down(&self.event.fingerprint())?;
        let ready = self.ready(data, validation, threads)?;
        self.taken(ready, threads, &payer, entropy)
    }

    /// The same in the place where it was paid for: once. A search that was stopped there is refused; one that has ended there is not made again.
    ///
    /// Two threads that share a place could both read that nothing was begun, and both search. So it is not shared:
    /// ```compile_fail,E0308
    /// # use std::num::NonZeroUsize;
    /// # use whit_core::Secret;
    /// # use whit_learn::SearchPlan;
    /// # use whit_learn::checkpoint::Place;
    /// # use whit_learn::data::Dataset;
    /// fn twice(search: &SearchPlan, place: &Place, data: fn() -> Secret<Dataset>, judged: fn() -> Dataset) {
    ///     let chosen = || {
    ///         let entropy = &mut whit_mechanism::OsEntropy::new();
    ///         search.choose_in(place, data(), judged(), NonZeroUsize::MIN, entropy)
    ///     };
    ///     std::thread::scope(|scope| [scope.spawn(chosen), scope.spawn(chosen)].map(drop));
    /// }
    /// ```
    pub fn choose_in<E: Entropy<Bits: Send>>(
        &self,
        place: &mut Place,
        data: Secret<Dataset>,
        validation: Dataset,
        threads: NonZeroUsize,
        entropy: &mut E,
    ) -> Result<Chosen> {
        let mut kept = self.kept(place)?;
        if let Some(found) = self.ended(&kept)? {
            return Ok(found);
        }
        let ready = self.ready(data, validation, threads)?;
        if place.begin(&mut kept, 1)? != 1 {
            return Err(Error::SearchStopped);
        }
        let payer = kept.payer().clone();
        let found = self.taken(ready, threads, &payer, entropy)?;
        kept.parameters.clone_from(&found.parameters);
        let candidate = found.candidate.map_or(-1.0, |candidate| candidate as f64);
        kept.scalars.insert(CANDIDATE.into(), candidate);
        kept.scalars.insert(SCORE.into(), found.score);
        kept.done(1);
        place.keep(&mut kept)?;
        Ok(found)
    }

    /// What came of a search that has ended in a place; `None` if it was not begun. Refused if it was stopped.
    pub fn found_in(&self, place: &Place) -> Result<Option<Chosen>> {
        self.ended(&self.kept(place)?)
    }

    fn kept(&self, place: &Place) -> Result<Checkpoint> {
        let path = place.path().to_owned();
        let kept = place.load()?.ok_or(CheckpointError::NotBegun { path })?;
        match kept.run().event == self.event && kept.run().steps_total == 1 {
            true => Ok(kept),
            false => Err(CheckpointError::OtherPlan.into()),
        }
    }

    fn ended(&self, kept: &Checkpoint) -> Result<Option<Chosen>> {
        match (kept.steps_begun(), kept.steps_kept()) {
            (0, _) => return Ok(None),
            (_, 0) => return Err(Error::SearchStopped),
            _ => {}
        }
        let damaged = || Error::from(CheckpointError::Damaged);
        let number = |name| kept.scalars.get(name).copied().ok_or_else(damaged);
        let candidate = number(CANDIDATE)?;
        let known = candidate < self.candidates.len() as f64;
        Ok(Some(Chosen {
            candidate: match candidate {
                -1.0 => None,
                at if at >= 0.0 && known => Some(at as usize),
                _ => return Err(damaged()),
            },
            parameters: kept.parameters.clone(),
            score: number(SCORE)?,
        }))
    }

    /// Whatever could be refused is refused here, before the first run.
    fn ready(
        &self,
        data: Secret<Dataset>,
        validation: Dataset,
        threads: NonZeroUsize,
    ) -> Result<Ready> {
        let (data, architecture, network) = self.recipe.network(data, threads)?;
        let validation = self.recipe.prepared(validation, threads)?;
        let data = data.expose();
        fits_all(&network, &data)?;
        // Of public examples there may be any number: they are evaluated, and summed by nobody.
        fits(&network, &validation)?;
        for (candidate, plan) in self.candidates.iter().zip(&self.plans) {
            let method = candidate.method(network.param_len(), threads)?;
            candidate.check_rounding(plan, &network, method.clipping)?;
            plan.check_memory(network.param_len())?;
        }
        // All of them draw in the same way. This one draws nothing.
        if let Some(plan) = self.plans.first() {
            let trial = Payment::rest(plan.event().fingerprint(), Payer::Nobody, 0);
            plan.sampler(data.rows(), trial)?;
        }
        Ok(Ready {
            data: Secret::new(data),
            validation,
            architecture,
            network,
        })
    }

    fn taken<E: Entropy<Bits: Send>>(
        &self,
        ready: Ready,
        threads: NonZeroUsize,
        payer: &Payer,
        entropy: &mut E,
    ) -> Result<Chosen> {
        let Ready {
            data,
            validation,
            architecture,
            network,
        } = ready;
        let initial = self.recipe.initial(&architecture);
        // Handed from run to run: there is one copy of the examples.
        let mut data = Some(data);
        let run = |kind: usize, entropy: &mut E| -> Result<Option<Vec<f32>>> {
            let (candidate, plan) = (&self.candidates[kind], &self.plans[kind]);
            let payment = Payment::rest(plan.event().fingerprint(), payer.clone(), 0);
            let method = candidate.method(network.param_len(), threads)?;
            let network = self.recipe.network_of(&architecture)?;
            let data_now = data.take().ok_or(Error::Unbound)?;
            let mut trainer =
                Trainer::new(plan, network, initial.clone(), data_now, method, payment)?;
            let ended = trainer.run(entropy, |_| Ok(()));
            let parameters = ended.map(|()| trainer.parameters());
            data = Some(trainer.into_data());
            or_nothing(parameters)
        };
        let sign = match self.score {
            Score::Accuracy => 1.0,
            Score::Loss => -1.0,
        };
        let score = |parameters: &Option<Vec<f32>>| {
            let Some(parameters) = parameters else {
                return Ok(f64::NEG_INFINITY);
            };
            let found = evaluate(&network, parameters, &validation)?;
            Ok(sign
                * match self.score {
                    Score::Accuracy => found.accuracy.unwrap_or(f64::NAN),
                    Score::Loss => found.loss,
                })
        };
        let best = self.best_of.choose(entropy, run, score)?;
        Ok(chosen(best, initial, sign))
    }
}

/// What is told of the best run. One that failed is the best where all did: it gave no model, and nothing was chosen. *Proof* that this costs nothing more:
/// it is a function of the best run alone, of which "failed" is a value as its weights are (`or_nothing`), and of public weights and numbers.
fn chosen(best: Option<Best<Option<Vec<f32>>>>, initial: Vec<f32>, sign: f64) -> Chosen {
    let made = best.and_then(|best| Some((best.kind, best.score, best.value?)));
    match made {
        Some((kind, score, parameters)) => Chosen {
            candidate: Some(kind),
            parameters,
            score: sign * score,
        },
        None => Chosen {
            candidate: None,
            parameters: initial,
            score: f64::NAN,
        },
    }
}

/// What a run gives to be judged: its parameters, or nothing if it failed, which is judged the worst there is.
///
/// An error would end the search and be shown, whichever run it came from: one that loses, or that only passes the time. What a run fails for, if it does, may be a function of its releases, and the
/// price is that of the best run alone. That a run failed is such a function, too, as is its score, so that a run that gives nothing is one that its event describes. No run is known to fail. A
/// generator that fails knows nothing of the data; without it there is no run and no search.
fn or_nothing(parameters: Result<Vec<f32>>) -> Result<Option<Vec<f32>>> {
    match parameters {
        Err(error @ (Error::Entropy(_) | Error::Mechanism(whit_mechanism::Error::Entropy(_)))) => {
            Err(error)
        }
        made => Ok(made.ok()),
    }
}

fn short_pad(pad: u64) -> Error {
    Error::OutOfRange {
        what: "pad",
        given: pad as f64,
        range: "so large that more runs are hardly ever drawn, and at most 10000; the law \"poisson\" needs the least",
    }
}

/// What runs need, checked.
struct Ready {
    data: Secret<Dataset>,
    validation: Dataset,
    architecture: Architecture,
    network: Network,
}

/// A plan for each draft; those that are equal are priced once.
fn plans(drafts: &[Draft], multiplier: f64) -> Result<Vec<Plan>> {
    let mut known: Vec<(Draft, Plan)> = Vec::new();
    let mut plans = Vec::new();
    for draft in drafts {
        let noise = NoiseDraft::Multiplier(multiplier);
        let draft = Draft {
            noise,
            ..draft.clone()
        };
        let plan = match known.iter().find(|(other, _)| *other == draft) {
            Some((_, plan)) => plan.clone(),
            None => {
                let plan = Plan::new(&draft)?;
                known.push((draft, plan.clone()));
                plan
            }
        };
        plans.push(plan);
    }
    Ok(plans)
}

/// What a search promises, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Some search of this description costs no less.
    pub epsilon_lower: f64,
    /// No search of this plan costs more.
    pub epsilon_upper: f64,
    /// The slack.
    pub delta: f64,
    /// Whom it protects.
    pub relation: Neighbours,
    /// How many runs there are on average, as asked for.
    pub runs: f64,
    /// How many are always made, if time is not to tell how many count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<u64>,
    /// By which law their number is drawn.
    pub law: &'static str,
    /// How many candidates there are.
    pub candidates: usize,
    /// By what they are judged.
    pub score: &'static str,
    /// What one run would cost by itself, at the same delta.
    pub epsilon_of_one_run: f64,
    /// Standard deviation over clip norm, in each run.
    pub noise_multiplier: f64,
    /// The clip norms of the candidates.
    pub clip_norms: Vec<f64>,
    /// How many steps a run has.
    pub steps: u64,
    /// How likely an example is in a step.
    pub rate: f64,
    /// How examples are drawn.
    pub sampler: &'static str,
    /// What sums are divided by.
    pub expected_batch: f64,
}

#[cfg(test)]
#[path = "search_test.rs"]
mod tests;
