//! The card of a classical model: what is promised about it, to whom, and what is not. Markdown, made of public parameters and of releases alone.

use whit_core::Event;

use super::{FitRecipe, FitSummary, Kind};
use crate::card::Search;
use crate::card::words::{down, inline, line, up};
use crate::payment::Payer;

/// Everything that a card says.
#[derive(Clone, Debug)]
pub struct FitCard<'a> {
    /// As ordered.
    pub recipe: &'a FitRecipe,
    /// What it costs, and its noise.
    pub summary: &'a FitSummary,
    /// What was done to the data.
    pub event: &'a Event,
    /// What was measured on data that are declared public: a name and a value.
    pub result: Option<(&'a str, f64)>,
    /// Whose budget was charged.
    pub payer: &'a Payer,
    /// The receipt of the charge, if there was one.
    pub receipt: Option<&'a str>,
}

impl FitCard<'_> {
    /// The card as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        self.promise(&mut text);
        self.table(&mut text);
        self.limits(&mut text);
        text
    }

    fn unit(&self) -> String {
        inline(self.recipe.data.unit.as_deref().unwrap_or("example"))
    }

    fn promise(&self, text: &mut String) {
        let FitSummary {
            epsilon_upper,
            epsilon_lower,
            delta,
            relation,
            ..
        } = *self.summary;
        let unit = self.unit();
        let title = self.recipe.title.as_deref().unwrap_or("A private model");
        line(text, &format!("# {}\n", inline(title)));
        line(
            text,
            &format!(
                "Fitted with differential privacy: **epsilon {}** at delta {}, {relation} for one {unit}.\n",
                up(epsilon_upper),
                up(delta)
            ),
        );
        let seen = match self.summary.kind {
            Kind::MinimaPerturbation => format!(
                "This holds for whoever sees the weights of the model; the noise of the objective, and what was found before the weights had noise of their own, must never be seen. The true epsilon of the fit is at most {}; how far below is not known.",
                up(epsilon_upper)
            ),
            _ => format!(
                "This holds for whoever sees the noisy sums that the model was made from. The epsilon of the event that describes them lies between {} and {}.",
                down(epsilon_lower),
                up(epsilon_upper)
            ),
        };
        line(
            text,
            &format!(
                "Whether or not any one {unit} was in the data, the probability of ending with any set of models is at most e^epsilon times as large as \
                 otherwise, plus delta. {seen}\n"
            ),
        );
    }

    fn table(&self, text: &mut String) {
        let summary = self.summary;
        let bytes = self.event.fingerprint();
        let fingerprint: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let charged = match self.receipt {
            Some(receipt) => format!("{}, receipt `{receipt}`", self.payer),
            None => self.payer.to_string(),
        };
        // Of sums there are rounds; an objective has noise once, and so has its minimum.
        let (noise, deviation) = match summary.kind {
            Kind::MinimaPerturbation => (
                format!(
                    "{} on the gradient of the objective, laplace on the weights",
                    summary.mechanism
                ),
                "deviation of the noise of the gradient, in examples",
            ),
            _ => (
                format!("{}, {} times", summary.mechanism, summary.rounds),
                "deviation of the noise, in examples",
            ),
        };
        let mut rows = vec![
            ("model", summary.kind.word().replace('_', " ")),
            ("noise", noise),
            (deviation, summary.noise_deviation.to_string()),
            ("features", summary.features.to_string()),
            ("charged to", inline(&charged).replace("\\`", "`")),
            ("event", format!("`{fingerprint}`")),
        ];
        let measured = self.result.map(|(_, value)| format!("{value:.6}"));
        rows.extend(measured.map(|value| {
            (
                self.result.map_or("", |result| result.0),
                format!("{value}, on [test]"),
            )
        }));
        line(text, "| | |\n| --- | --- |");
        for (name, value) in rows {
            line(text, &format!("| {name} | {value} |"));
        }
        line(text, "");
    }

    fn limits(&self, text: &mut String) {
        line(text, "## What is public\n");
        line(
            text,
            "This whole card, the columns, categories and classes, the bounds of all values, and every word of the plan. By the owner's word they were chosen without looking at the \
             rows. What lies outside of the bounds was taken to them; a row that does not fit what was declared counts as an empty example. How many rows there are is not public.\n",
        );
        line(text, "## What is not in the guarantee\n");
        let search = match self.recipe.search() {
            Search::None => "By the owner's word, no other runs on the same data were made to choose the numbers of the plan.".to_owned(),
            Search::NotCharged { runs } => format!(
                "**The numbers of the plan were chosen by {runs} other runs on the same data, whose cost is not in epsilon.**"
            ),
            _ => "How the numbers of the plan were chosen was not declared. If other runs on the same data were made to choose them, their cost is not in epsilon.".to_owned(),
        };
        line(text, &format!("- {search}"));
        if *self.payer == Payer::Nobody {
            line(
                text,
                "- No ledger was charged for this fit: whatever else was released about the same data costs as well, and nothing here adds it up.",
            );
            line(
                text,
                "- One bit, if the owner heard of it: that no row was refused before the fit.",
            );
        }
        line(
            text,
            &format!(
                "- A person who is more than one {} in the data is protected less: with k of them, about k times the epsilon.",
                self.unit()
            ),
        );
        line(
            text,
            "- What the model has learnt about the world, and so about people who were not in the data.",
        );
        line(
            text,
            "- Time, memory and other traces of the fit on the machine where it was made.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::AnyPlan;
    use crate::payment::Priced;

    fn card(kind: &str) -> String {
        let text = format!(
            "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [2]\nclasses = 3\n[bounds]\nfeatures = [-1, 1]\n\
             [model]\nkind = '{kind}'\n[plan]\nepsilon = 1.0\ndelta = 1e-6"
        );
        let recipe: FitRecipe = toml::from_str(&text).expect("a plan");
        let plan: AnyPlan = recipe.plan(None).expect("a price");
        let card = FitCard {
            recipe: &recipe,
            summary: &recipe.summary(&plan),
            event: plan.event(),
            result: None,
            payer: &Payer::Nobody,
            receipt: None,
        };
        card.markdown()
    }

    /// What is shown differs: noisy sums, or weights alone.
    #[test]
    fn cards_say_who_may_see_what_and_what_is_proven() {
        let sums = card("naive_bayes");
        assert!(sums.contains("whoever sees the noisy sums"), "{sums}");
        assert!(sums.contains("lies between 0.9"), "{sums}");
        assert!(sums.contains("gaussian, 1 times"), "{sums}");
        let minima = card("minima_perturbation");
        assert!(minima.contains("whoever sees the weights"), "{minima}");
        assert!(!minima.contains("noisy sums") && !minima.contains("lies between"));
        assert!(!minima.contains("times |") && minima.contains("laplace on the weights"));
    }
}
