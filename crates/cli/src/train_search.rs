//! `whit train` with `[search]`: the best of a random number of runs.
//!
//! Nothing is shown on the way, and nothing is written: how many runs there were is not paid for.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde_json::{Value, json};
use whit::session::{Desk, Order, quote_unopened, rehearse_run};
use whit::{Failure, OsEntropy};
use whit_learn::card::{Card, Guarantee, Training};
use whit_learn::checkpoint::Place;
use whit_learn::data::{Audience, Dataset, Inputs, inputs, load_public_beside, load_surveyed};
use whit_learn::evaluate::{Evaluation, evaluate};
use whit_learn::loss::Loss;
use whit_learn::model::Architecture;
use whit_learn::network::Network;
use whit_learn::search::Summary;
use whit_learn::{Chosen, Payer, Payment, Plan, Recipe, SearchPlan, Uncharged};

use crate::account::{plain, up};
use crate::catalogued::Catalogued;
use crate::train::{Arguments, between, noted, room};
use crate::train_plan::{check_public, check_search, find};
use crate::train_result::{ModelFiles, Paid, charged};
use crate::{Format, query, table};

pub(crate) fn run(
    recipe: &Recipe,
    arguments: &Arguments,
    format: Format,
) -> Result<String, Failure> {
    if arguments.keep_every.is_some() {
        return Err(Failure::invalid(
            "search_kept",
            "a search is not kept on disk between its steps: that would tell how many runs it has",
            "leave --keep-every out",
        ));
    }
    let plan = SearchPlan::new(recipe)?;
    let folder = arguments.folder();
    let asked = arguments.asked();
    let found = find((&recipe.data, recipe.test.as_ref()), folder, &asked)?;
    if let Some(public) = &recipe.validation {
        check_public(("validation", "validation_private"), public, folder, &asked)?;
    }
    check_search(recipe, &plan, folder, found.is_some())?;
    let job = Job {
        recipe,
        plan: &plan,
        arguments,
    };
    if arguments.dry_run {
        return job.price(found, format);
    }
    let test = recipe.load_test(folder, arguments.threads())?;
    let validation = recipe.validation.as_ref();
    let validation = validation.map(|public| load_public_beside(public, &recipe.data, folder));
    let validation = validation.transpose()?;
    let validation = validation.ok_or_else(|| {
        Failure::bug(
            "validation",
            "a search without [validation] was taken for one",
            "please report this with the plan",
        )
    })?;
    if io::stderr().is_terminal() {
        // Talk that nobody hears is no reason to stop.
        let _ = writeln!(
            io::stderr(),
            "searching; how many runs there are is not told"
        );
    }
    let out = arguments.out();
    let ended = match found {
        Some(found) => job.charged(found, validation, &out)?,
        None => job.uncharged(validation, &out)?,
    };
    job.finish(&ended, test.as_ref(), &out, format)
}

/// What to search, and by which words.
struct Job<'a> {
    recipe: &'a Recipe,
    plan: &'a SearchPlan,
    arguments: &'a Arguments,
}

/// A search that has ended, and what it was charged.
struct Ended {
    chosen: Chosen,
    architecture: Architecture,
    recipe: Recipe,
    inputs: Inputs,
    payer: Payer,
    /// Had it ended before?
    resumed: bool,
    paid: Option<Paid>,
}

impl Job<'_> {
    fn order<'a>(&'a self, table: &'a str) -> Order<'a, SearchPlan> {
        Order {
            table,
            recipe: self.recipe,
            plan: self.plan,
            analyst: self.arguments.analyst.as_deref(),
            folder: self.arguments.folder(),
        }
    }

    fn desk<'a>(&self, out: &'a Path) -> Desk<'a> {
        Desk {
            out,
            interval: std::num::NonZeroUsize::MIN,
            threads: self.arguments.threads(),
        }
    }

    fn price(&self, found: Option<Catalogued>, format: Format) -> Result<String, Failure> {
        let summary = self.plan.summary();
        let mut all = value(&summary);
        let mut lines = priced(&summary);
        lines.extend(noted(self.recipe));
        if let Some(Catalogued { place, table }) = found {
            let dataset = place.catalog.dataset().to_owned();
            let (order, out) = (self.order(&table), self.arguments.out());
            let quoted = match place.has_ledger() {
                true => place.open()?.quote_at(&order, &self.desk(&out))?,
                false => quote_unopened(&place.catalog, &place.folder, &order)?,
            };
            all["charge"] = json!(quoted.charge);
            all["remaining"] = json!(quoted.remaining);
            all["room"] = json!(quoted.room);
            all["goes_on"] = json!(quoted.goes_on);
            all["objection"] = json!(quoted.objection);
            lines.extend(charged(&quoted.charge, quoted.goes_on));
            lines.extend(query::left(&quoted.remaining, &dataset));
            lines.push(("room".into(), room(&quoted)));
        }
        Ok(match format {
            Format::Json => all.to_string(),
            Format::Table => table::lines(&lines),
        })
    }

    /// A private table is paid from its ledger, and protects whom its catalog says.
    fn charged(
        &self,
        found: Catalogued,
        validation: Dataset,
        out: &Path,
    ) -> Result<Ended, Failure> {
        let Catalogued { place, table } = found;
        let (order, desk) = (self.order(&table), self.desk(out));
        // A ledger begins with what could be charged, and not with what is refused.
        if !place.has_ledger() {
            rehearse_run(&place.catalog, &place.folder, &order, &desk)?;
        }
        let session = place.open()?;
        let sought = session.search(&order, validation, &desk, &mut OsEntropy::new())?;
        let paid = Paid {
            dataset: session.catalog().dataset().to_owned(),
            charge: sought.charge,
            remaining: sought.remaining,
            receipt: sought.receipt,
        };
        Ok(Ended {
            chosen: sought.chosen,
            architecture: sought.architecture,
            recipe: sought.recipe,
            inputs: sought.inputs,
            payer: sought.payer,
            resumed: sought.resumed,
            paid: Some(paid),
        })
    }

    /// Data that no catalog protects.
    fn uncharged(&self, validation: Dataset, out: &Path) -> Result<Ended, Failure> {
        let run = self.plan.run(self.recipe);
        Place::rehearse(out)?;
        Place::is_own(out, &run)?;
        // What does not fit is told before the first step, to the owner alone: see the documents of `data`.
        let (data, folder) = (&self.recipe.data, self.arguments.folder());
        let inputs = inputs(data, folder).map_err(whit_learn::Error::from)?;
        let private = load_surveyed(data, folder, Audience::Owner, &inputs)?;
        // Shape and classes are public.
        let public = private.as_ref().expose();
        let (architecture, _) = self.recipe.architecture(public.shape(), public.classes())?;
        let is_begun = Place::is_begun(out, &run);
        let mut place = Place::make(out, run)?;
        if !is_begun {
            let payment = Payment::uncharged(self.plan, Uncharged);
            place.start(payment, self.recipe.initial(&architecture))?;
        }
        let kept = place.load()?;
        let payer = kept.map_or(Payer::Nobody, |kept| kept.payer().clone());
        if payer != Payer::Nobody {
            return Err(Failure::refused(
                "other_run",
                &format!("the search at {:?} was charged to {payer}", place.path()),
                "give its catalog, as --catalog, or another folder as --out",
            ));
        }
        let ended = self.plan.found_in(&place)?.is_some();
        let threads = self.arguments.threads();
        let entropy = &mut OsEntropy::new();
        let chosen = self
            .plan
            .choose_in(&mut place, private, validation, threads, entropy)?;
        Ok(Ended {
            chosen,
            architecture,
            recipe: self.recipe.clone(),
            inputs,
            payer,
            resumed: ended,
            paid: None,
        })
    }

    fn finish(
        &self,
        ended: &Ended,
        test: Option<&Dataset>,
        out: &Path,
        format: Format,
    ) -> Result<String, Failure> {
        // Without a run that gave one the model is that of the first candidate before its first step.
        let candidate = ended.chosen.candidate.unwrap_or(0);
        let mut recipe = self
            .plan
            .candidates()
            .get(candidate)
            .cloned()
            .unwrap_or_else(|| self.recipe.clone());
        recipe.data = ended.recipe.data.clone();
        let Some(plan) = self.plan.plan(candidate) else {
            return Err(Failure::bug(
                "candidate",
                "a search chose what was no candidate",
                "please report this with the plan",
            ));
        };
        let loss = match recipe.data.classes {
            Some(_) => Loss::CrossEntropy,
            None => Loss::Squared,
        };
        let evaluation = test.map(|test| {
            let layers = ended.architecture.layers();
            let network = Network::from_specs(layers, loss).map_err(whit_learn::Error::from)?;
            evaluate(&network, &ended.chosen.parameters, test)
        });
        let result = Found {
            job: self,
            ended,
            recipe: &recipe,
            plan,
            evaluation: evaluation.transpose()?,
        };
        let summary = self.plan.summary();
        let model = ModelFiles {
            recipe: &recipe,
            architecture: &ended.architecture,
            parameters: &ended.chosen.parameters,
            guarantee: format!(
                "epsilon {} at delta {}, {} for one {}",
                summary.epsilon_upper,
                summary.delta,
                summary.relation,
                result.unit()
            ),
            inputs: &ended.inputs,
            card: result.card(&ended.inputs),
        };
        let files = model.write(out, &self.plan.run(&ended.recipe))?;
        Ok(result.show(out, &files, format))
    }
}

/// What is left of a search.
struct Found<'a> {
    job: &'a Job<'a>,
    ended: &'a Ended,
    /// Of the candidate that was chosen.
    recipe: &'a Recipe,
    plan: &'a Plan,
    evaluation: Option<Evaluation>,
}

impl Found<'_> {
    /// Whom the guarantee protects one of.
    fn unit(&self) -> &str {
        self.recipe.data.unit.as_deref().unwrap_or("example")
    }

    /// The names of the scores, and their values.
    fn scores(&self) -> Vec<(&'static str, f64)> {
        let Chosen {
            candidate, score, ..
        } = self.ended.chosen;
        let judged = match self.job.plan.score().word() {
            "accuracy" => "accuracy on [validation]",
            _ => "loss on [validation]",
        };
        let mut scores: Vec<_> = candidate.map(|_| (judged, score)).into_iter().collect();
        if let Some(Evaluation { loss, accuracy }) = self.evaluation {
            scores.extend(accuracy.map(|accuracy| ("accuracy on [test]", accuracy)));
            scores.push(("loss on [test]", loss));
        }
        scores
    }

    fn steps_kept(&self) -> u64 {
        self.ended.chosen.candidate.map_or(0, |_| self.plan.steps())
    }

    fn card(&self, inputs: &Inputs) -> [String; 2] {
        let (whole, one) = (self.job.plan.summary(), self.plan.summary());
        let optimizer = self.recipe.optimizer_words();
        let sampler = one.sampler.replace('_', " ");
        let card = Card {
            title: self.recipe.title.as_deref().unwrap_or("A private model"),
            guarantee: Guarantee {
                epsilon_upper: whole.epsilon_upper,
                epsilon_lower: whole.epsilon_lower,
                delta: whole.delta,
                unit: self.unit(),
                event: self.job.plan.event(),
            },
            training: Training {
                sampler: &sampler,
                rate: one.rate,
                steps: one.steps,
                steps_kept: self.steps_kept(),
                batch_expected: one.expected_batch,
                clip_norm: one.clip_norm,
                noise_multiplier: one.noise_multiplier,
                adaptive: one.adaptive,
                cyclic: one.cyclic,
                optimizer: &optimizer,
                clipping: self.recipe.plan.clipping_word(),
            },
            data: &self.recipe.data,
            inputs,
            features: self.recipe.features.as_ref(),
            model: &self.recipe.model,
            architecture: &self.ended.architecture,
            results: &self.scores(),
            search: self.job.plan.words(),
            payer: &self.ended.payer,
            receipt: self.ended.paid.as_ref().map(|paid| paid.receipt.as_str()),
            plan: &self.job.plan.run(&self.ended.recipe).name(),
        };
        [card.markdown(), card.json()]
    }

    fn show(&self, out: &Path, files: &[String], format: Format) -> String {
        let summary = self.job.plan.summary();
        let paid = self.ended.paid.as_ref();
        let chosen = &self.ended.chosen;
        match format {
            Format::Json => {
                let mut all = value(&summary);
                all["candidate"] = json!(chosen.candidate);
                all["clip_norm"] = json!(self.plan.clip_norm());
                all["optimizer"] = json!(self.recipe.optimizer_words());
                all["validation"] = json!(chosen.candidate.map(|_| chosen.score));
                all["test"] = json!(self.evaluation);
                all["out"] = json!(out.display().to_string());
                all["files"] = json!(files);
                all["resumed"] = json!(self.ended.resumed);
                if let Some(paid) = paid {
                    all["charge"] = json!(paid.charge);
                    all["remaining"] = json!(paid.remaining);
                    all["receipt"] = json!(paid.receipt);
                }
                all.to_string()
            }
            Format::Table => {
                let mut lines = priced(&summary);
                lines.extend(noted(self.recipe));
                let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
                line(
                    "chosen",
                    match chosen.candidate {
                        Some(_) => format!(
                            "{}, clip norm {}",
                            self.recipe.optimizer_words(),
                            plain(self.plan.clip_norm())
                        ),
                        None => {
                            "nothing: by its law this search had no run, or no run gave a model; these weights are untrained"
                                .into()
                        }
                    },
                );
                if self.ended.resumed {
                    line("run", "was at its end before: no run was made now".into());
                }
                for (name, score) in self.scores() {
                    line(name, format!("{score:.4}"));
                }
                line("written to", out.display().to_string());
                line("files", files.join(", "));
                if let Some(paid) = paid {
                    lines.extend(charged(&paid.charge, self.ended.resumed));
                    lines.extend(query::left(&paid.remaining, &paid.dataset));
                    lines.push(("receipt".into(), paid.receipt.clone()));
                }
                table::lines(&lines)
            }
        }
    }
}

fn value(summary: &Summary) -> Value {
    serde_json::to_value(summary).expect("plain data")
}

/// The price of a search for people, bounds rounded outward.
fn priced(summary: &Summary) -> Vec<(String, String)> {
    let line = |name: &str, text: String| (name.to_owned(), text);
    let clips: Vec<String> = summary.clip_norms.iter().map(|norm| plain(*norm)).collect();
    vec![
        line(
            "epsilon",
            between(summary.epsilon_upper, summary.epsilon_lower),
        ),
        line("delta", plain(summary.delta)),
        line("relation", summary.relation.to_string()),
        line(
            "search",
            format!(
                "the best of {} runs on average ({}), by {} on [validation]",
                plain(summary.runs),
                summary.law,
                summary.score
            ),
        ),
        line(
            "time",
            match summary.pad {
                Some(pad) => format!("that of {pad} runs, always"),
                None => "tells how many runs there are, and must not be known to whom the guarantee is given".into(),
            },
        ),
        line("candidates", summary.candidates.to_string()),
        line(
            "one run",
            format!("epsilon {} by itself", up(summary.epsilon_of_one_run, 6)),
        ),
        line("noise multiplier", plain(summary.noise_multiplier)),
        line("clip norm", clips.join(", ")),
        line("steps", format!("{} in each run", summary.steps)),
        line("sampler", summary.sampler.replace('_', " ")),
        line("sampling rate", plain(summary.rate)),
        line("sums divided by", plain(summary.expected_batch)),
    ]
}
