//! A model card: what is promised about the model that was trained, to whom, and what is not. Markdown, made of public parameters and of
//! releases alone.
//!
//! Bounds are printed outward: the digits shown are never below an upper bound, nor above a lower one.

mod document;
mod limits;
pub(crate) mod words;

use serde::Serialize;
use whit_core::{Event, Neighbours};

use crate::data::{Classes, Declaration, Inputs};
use crate::features::Features;
use crate::model::{Architecture, Model, parameters};
use crate::payment::Payer;
use crate::plan::{AdaptiveSummary, CyclicSummary};
use words::{down, inline, line, up};

pub use document::CardDocument;
pub use limits::Search;

/// Everything that a card says.
#[derive(Clone, Debug)]
pub struct Card<'a> {
    /// The name of the model.
    pub title: &'a str,
    /// What is promised.
    pub guarantee: Guarantee<'a>,
    /// How it was trained.
    pub training: Training<'a>,
    /// What was declared about the data.
    pub data: &'a Declaration,
    /// What the model takes.
    pub inputs: &'a Inputs,
    /// The fixed map that examples went through first.
    pub features: Option<&'a Features>,
    /// What the plan says about the network.
    pub model: &'a Model,
    /// What was trained.
    pub architecture: &'a Architecture,
    /// What was measured on data that are declared public, or released and charged: a name and a value.
    pub results: &'a [(&'a str, f64)],
    /// How the numbers of the plan were chosen.
    pub search: Search,
    /// Whose budget was charged.
    pub payer: &'a Payer,
    /// The receipt of the charge, if there was one.
    pub receipt: Option<&'a str>,
    /// The [name](crate::checkpoint::Run::name) of the run, by which its folder knows the card.
    pub plan: &'a str,
}

/// What is promised, with both bounds of the accountant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Guarantee<'a> {
    /// What is promised: not more than this.
    pub epsilon_upper: f64,
    /// What the accountant knows to be true: not less than this, for some pair of data sets.
    pub epsilon_lower: f64,
    /// The slack.
    pub delta: f64,
    /// What one unit is, such as "row".
    pub unit: &'a str,
    /// The event of the whole run, which holds the relation.
    #[serde(skip)]
    pub event: &'a Event,
}

impl Guarantee<'_> {
    /// That of the event, in letters.
    fn fingerprint(&self) -> String {
        let bytes = self.event.fingerprint();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The public numbers of the run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Training<'a> {
    /// How batches were drawn, in words.
    pub sampler: &'a str,
    /// The share of examples that a step sees, on average.
    pub rate: f64,
    /// The steps that were paid for.
    pub steps: u64,
    /// The steps that the parameters hold; fewer if the run was stopped or lost some.
    pub steps_kept: u64,
    /// The public number that sums were divided by.
    pub batch_expected: f64,
    /// The largest norm of one example's gradient.
    pub clip_norm: f64,
    /// The noise's standard deviation over the clip norm.
    pub noise_multiplier: f64,
    /// Set where that norm is only the first. Then the multiplier is that of sum and count together, and each has noise of its own.
    pub adaptive: Option<AdaptiveSummary>,
    /// Set where turns are taken in order and noise is correlated between steps. Then no sample makes it cheaper.
    pub cyclic: Option<CyclicSummary>,
    /// The optimizer, in words.
    pub optimizer: &'a str,
    /// The kind of clipping, where it is not that of the whole gradient to one norm.
    pub clipping: Option<&'a str>,
}

impl Training<'_> {
    /// The clip norm, and the noise of all that a step releases.
    fn noise(&self) -> Vec<(&'static str, String)> {
        let (norm, multiplier) = (
            self.clip_norm.to_string(),
            self.noise_multiplier.to_string(),
        );
        let Some(moves) = self.adaptive else {
            return vec![("clip norm", norm), ("noise multiplier", multiplier)];
        };
        let (quantile, rate) = (moves.quantile, moves.clip_rate);
        let sum = moves.sum_noise_multiplier;
        vec![
            ("clip norm of the first step", norm),
            (
                "clip norm follows",
                format!("quantile {quantile}, clip rate {rate}"),
            ),
            ("noise multiplier of sum and count together", multiplier),
            ("noise of the sum, in clip norms", sum.to_string()),
            (
                "noise of the count, in examples",
                moves.count_noise.to_string(),
            ),
        ]
    }
}

impl Card<'_> {
    /// The card as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        self.promise(&mut text);
        self.table(&mut text);
        self.results(&mut text);
        self.limits(&mut text);
        text
    }

    fn promise(&self, text: &mut String) {
        let Guarantee {
            epsilon_upper,
            epsilon_lower,
            delta,
            unit,
            event,
        } = self.guarantee;
        let unit = inline(unit);
        let change = match event.neighbours() {
            Neighbours::AddRemove => format!("Whether or not any one {unit} was in the data"),
            Neighbours::ReplaceOne => format!("Whatever any one {unit} in the data was"),
            // A relation that is not known here is named and not explained.
            other => format!("Between neighbours ({other}) of one {unit}"),
        };
        line(text, &format!("# {}\n", inline(self.title)));
        line(
            text,
            &format!(
                "Trained with differential privacy: **epsilon {}** at delta {}, {} for one {unit}.\n",
                up(epsilon_upper),
                up(delta),
                event.neighbours()
            ),
        );
        line(
            text,
            &format!(
                "{change}, the probability of ending with any set of models is at most e^epsilon times as large as otherwise, plus delta. \
                 {} The true epsilon lies between {} and {}.\n",
                self.search.covers(),
                down(epsilon_lower),
                up(epsilon_upper)
            ),
        );
    }

    fn table(&self, text: &mut String) {
        let Training {
            sampler,
            rate,
            steps,
            steps_kept,
            batch_expected,
            optimizer,
            ..
        } = self.training;
        let classes = match &self.data.classes {
            Some(Classes::Names(names)) => inline(&names.join(", ")),
            Some(Classes::Count(count)) => count.to_string(),
            None => "none declared".into(),
        };
        let kinds: Vec<_> = self
            .architecture
            .layers()
            .iter()
            .map(|layer| layer.kind())
            .collect();
        let fingerprint = self.guarantee.fingerprint();
        let share = match self.training.cyclic {
            Some(_) => "share of the examples in a step",
            None => "sampling rate",
        };
        let mut rows = vec![
            ("batches", inline(sampler)),
            (share, rate.to_string()),
            ("steps paid for", steps.to_string()),
            ("steps in the model", steps_kept.to_string()),
            ("sums divided by", batch_expected.to_string()),
        ];
        rows.extend(self.search.words().map(|words| ("chosen as", words)));
        rows.extend(self.training.noise());
        rows.extend(self.training.cyclic.iter().flat_map(CyclicSummary::words));
        let clipping = self.training.clipping;
        rows.extend(clipping.map(|word| ("clipping", inline(&word.replace('_', " ")))));
        rows.extend([
            ("optimizer", inline(optimizer)),
            ("layers", kinds.join(", ")),
            (
                "parameters",
                parameters(self.architecture.layers()).to_string(),
            ),
            ("features", format!("{:?}", self.architecture.input())),
        ]);
        let features = self.features.map(Features::words);
        rows.extend(features.map(|words| ("features are", inline(&words))));
        rows.extend(self.takes());
        rows.extend([
            ("classes", classes),
            ("charged to", self.charged()),
            ("event", format!("`{fingerprint}`")),
            ("plan", format!("`{}`", inline(self.plan))),
        ]);
        line(text, "| | |\n| --- | --- |");
        for (name, value) in rows {
            line(text, &format!("| {name} | {value} |"));
        }
        line(text, "");
    }

    /// Columns, categories and normalisation: what somebody needs who uses the model.
    fn takes(&self) -> Vec<(&'static str, String)> {
        let Inputs {
            columns,
            categories,
            shape,
            ..
        } = self.inputs;
        let mut rows = Vec::new();
        if columns.is_empty() {
            rows.push(("takes", format!("{shape:?}")));
        } else {
            rows.push(("columns, in order", inline(&columns.join(", "))));
        }
        let texts = categories.iter().map(|(column, names)| {
            let names: Vec<_> = names.iter().map(|name| name.trim()).collect();
            format!("{column}: {}", names.join(", "))
        });
        let texts: Vec<_> = texts.collect();
        if !texts.is_empty() {
            rows.push((
                "columns of text, as one feature for each",
                inline(&texts.join("; ")),
            ));
        }
        rows.push(("normalisation", inline(&self.inputs.normalisation_words())));
        rows
    }

    fn charged(&self) -> String {
        let payer = inline(&self.payer.to_string());
        match self.receipt {
            Some(receipt) => format!("{payer}, receipt `{}`", inline(receipt)),
            None => payer,
        }
    }

    fn results(&self, text: &mut String) {
        if self.results.is_empty() {
            return;
        }
        line(text, "## Results\n");
        line(
            text,
            "On data that were declared public, or released with noise and charged:\n",
        );
        line(text, "| | |\n| --- | --- |");
        for (name, value) in self.results {
            line(text, &format!("| {} | {value} |", inline(name)));
        }
        line(text, "");
    }
}

#[cfg(test)]
mod tests {
    use whit_core::{Mechanism, Ratio};

    use super::*;
    use crate::model::Model;

    fn card(neighbours: Neighbours, search: Search) -> String {
        card_of(neighbours, search, &Payer::Nobody)
    }

    fn card_of(neighbours: Neighbours, search: Search, payer: &Payer) -> String {
        let epsilon = Ratio::new(3, 1).expect("three");
        let event = Event::new(neighbours, Mechanism::Pure { epsilon });
        let model: Model = toml::from_str("kind = 'mlp'\nhidden = [4]").expect("a model");
        let architecture = model.architecture(&[2], 3).expect("fits");
        let inputs = Inputs {
            format: crate::data::Format::Csv,
            columns: vec!["age|x".into(), "sex".into()],
            categories: [("sex".to_owned(), vec!["F".into(), "M".into()])].into(),
            shape: vec![3],
            scale: 1.0,
            mean: vec![40.0, 0.0, 0.0],
            std: vec![10.0, 1.0, 1.0],
        };
        let features: Features = toml::from_str("kind = 'scattering'").expect("a map");
        let mut data = Declaration::new("people.csv");
        data.n_public = Some(600);
        data.classes = Some(Classes::Names(vec!["a|b".into(), "c".into(), "d".into()]));
        let card = Card {
            title: "Digits <script>",
            guarantee: Guarantee {
                epsilon_upper: 2.910_01,
                epsilon_lower: 2.909_99,
                delta: 1e-5,
                unit: "row",
                event: &event,
            },
            training: Training {
                sampler: "each example with probability 0.1, by itself",
                rate: 0.1,
                steps: 500,
                steps_kept: 480,
                batch_expected: 60.0,
                clip_norm: 1.0,
                noise_multiplier: 1.1,
                adaptive: None,
                cyclic: None,
                optimizer: "SGD",
                clipping: Some("per_layer"),
            },
            data: &data,
            inputs: &inputs,
            features: Some(&features),
            model: &model,
            architecture: &architecture,
            results: &[("accuracy on the public test set", 0.968)],
            search,
            payer,
            receipt: None,
            plan: "ab12",
        };
        let read = CardDocument::from_json(&card.json()).expect("its own");
        assert_eq!((read.inputs, read.model), (inputs.clone(), model.clone()));
        assert_eq!(read.guarantee.relation, neighbours);
        let later = card.json().replace("\"version\": 1", "\"version\": 2");
        assert!(CardDocument::from_json(&later).is_err());
        card.markdown()
    }

    #[test]
    fn a_card_says_what_is_promised_and_what_is_not() {
        let card = card(Neighbours::AddRemove, Search::NotDeclared);
        for part in [
            "# Digits &lt;script>",
            "**epsilon 2.911** at delta 0.00001, add/remove for one row",
            "Whether or not any one row was in the data",
            "between 2.909 and 2.911",
            "| steps paid for | 500 |",
            "| steps in the model | 480 |",
            "| clip norm | 1 |",
            "| noise multiplier | 1.1 |",
            "| classes | a\\|b, c, d |",
            "| parameters | 27 |",
            "| features | [2] |\n| features are | scattering with 2 levels",
            "| columns, in order | age\\|x, sex |",
            "| columns of text, as one feature for each | sex: F, M |",
            "| normalisation | (x · 1 - mean) / std, mean \\[40.0, 0.0, 0.0\\]",
            "| charged to | no ledger |",
            "No ledger was charged for this run",
            "| accuracy on the public test set | 0.968 |",
            "600 that was declared in place of that of the rows",
            "was not declared",
            "it refuses the run before its first step, or counts as an empty example",
            "that no row was refused before the first step",
        ] {
            assert!(card.contains(part), "{part:?} is not in\n{card}");
        }
    }

    #[test]
    fn relations_and_searches_are_told_apart() {
        let replaced = card(Neighbours::ReplaceOne, Search::NotCharged { runs: 12 });
        assert!(replaced.contains("Whatever any one row in the data was"));
        assert!(replaced.contains("the number of rows, 600;"));
        assert!(replaced.contains("**The numbers of the plan were chosen by 12 other runs"));
        let charged = card(Neighbours::AddRemove, Search::Charged { runs: 3 });
        assert!(charged.contains("3 other runs on the same data; each has its own charge"));
        assert!(!card(Neighbours::AddRemove, Search::None).contains("not declared"));
        let search = Search::BestOf {
            candidates: 6,
            runs: 10.0,
            law: "geometric",
            score: "accuracy",
            padded: false,
        };
        let chosen = card(Neighbours::AddRemove, search);
        for part in [
            "| chosen as | the best of a random number of runs (geometric, 10 on average), each with one of 6 candidates, by accuracy on [validation] |",
            "neither other runs of the search nor how many there were",
            "How many runs it had is not",
        ] {
            assert!(chosen.contains(part), "{part:?} is not in\n{chosen}");
        }
        assert!(!chosen.contains("after every step"));
        let payer = Payer::Ledger {
            dataset: "shop_2".into(),
            sequence: 7,
            run: "a".into(),
        };
        let paid = card_of(Neighbours::AddRemove, Search::None, &payer);
        assert!(
            paid.contains("| charged to | the ledger of shop\\_2, record 7 |"),
            "{paid}"
        );
        assert!(!paid.contains("No ledger was charged") && !paid.contains("refuse"));
        assert!(paid.contains("declared counts as an empty example."));
    }
}
