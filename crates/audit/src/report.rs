//! What an audit found, for people and for programs.
//!
//! A [`Report`] is a list of [`Row`]s: an attack, what was claimed, what was measured, and how far that can be relied upon. A row can have a verdict
//! only if it was made from an [`EpsilonBound`], which assumes nothing; rows of models and estimates stand beside it without one.
//! Anybody can feed it: audits of mechanisms, of programs, of training.

use serde::Serialize;
use whit_core::Epsilon;

use crate::bound::{EpsilonBound, Ruling};
use crate::model::{Estimate, ModelBound};

/// How far a number can be relied upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A bound whatever the mechanism is.
    DistributionFree,
    /// A bound if the mechanism has the named shape.
    ModelBased,
    /// No bound.
    Estimate,
}

/// One attack and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    attack: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<String>,
    claimed: Option<f64>,
    delta: f64,
    epsilon_lower: f64,
    confidence: Option<f64>,
    kind: Kind,
    verdict: Option<Ruling>,
    evidence: String,
}

impl Row {
    /// A bound without assumptions, with its verdict if there is a claim.
    pub fn of_bound(
        attack: impl Into<String>,
        bound: &EpsilonBound,
        claimed: Option<Epsilon>,
    ) -> Self {
        Self {
            attack: attack.into(),
            series: None,
            claimed: claimed.map(Epsilon::value),
            delta: bound.delta().value(),
            epsilon_lower: bound.epsilon_lower(),
            confidence: Some(bound.confidence()),
            kind: Kind::DistributionFree,
            verdict: claimed.map(|claimed| bound.ruling(claimed)),
            evidence: bound.evidence().to_owned(),
        }
    }

    /// A bound that rests on a model. No verdict.
    pub fn of_model(
        attack: impl Into<String>,
        bound: &ModelBound,
        claimed: Option<Epsilon>,
    ) -> Self {
        Self {
            attack: attack.into(),
            series: None,
            claimed: claimed.map(Epsilon::value),
            delta: bound.delta().value(),
            epsilon_lower: bound.epsilon_lower(),
            confidence: Some(bound.confidence()),
            kind: Kind::ModelBased,
            verdict: None,
            evidence: format!("assumes: {}", bound.model()),
        }
    }

    /// A number without a guarantee, of an epsilon at `delta`. No verdict.
    pub fn of_estimate(
        attack: impl Into<String>,
        estimate: &Estimate,
        delta: whit_core::Delta,
        claimed: Option<Epsilon>,
    ) -> Self {
        Self {
            attack: attack.into(),
            series: None,
            claimed: claimed.map(Epsilon::value),
            delta: delta.value(),
            epsilon_lower: estimate.value,
            confidence: None,
            kind: Kind::Estimate,
            verdict: None,
            evidence: format!(
                "{}: most resamples lie between {:.3} and {:.3}",
                estimate.method, estimate.low, estimate.high
            ),
        }
    }

    /// Rows of one series are joined by a line in plots.
    #[must_use]
    pub fn in_series(mut self, series: impl Into<String>) -> Self {
        self.series = Some(series.into());
        self
    }

    /// What was tried.
    pub fn attack(&self) -> &str {
        &self.attack
    }

    /// The line that it is a point of.
    pub fn series(&self) -> Option<&str> {
        self.series.as_deref()
    }

    /// The claimed epsilon.
    pub fn claimed(&self) -> Option<f64> {
        self.claimed
    }

    /// The measured one.
    pub fn epsilon_lower(&self) -> f64 {
        self.epsilon_lower
    }

    /// At this delta.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// How often such a bound holds, if it is one.
    pub fn confidence(&self) -> Option<f64> {
        self.confidence
    }

    /// How far it can be relied upon.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it says of the claim, if it may.
    pub fn verdict(&self) -> Option<Ruling> {
        self.verdict
    }

    /// By what.
    pub fn evidence(&self) -> &str {
        &self.evidence
    }
}

impl Serialize for Ruling {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// All that an audit found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    title: String,
    verdict: Ruling,
    /// With which confidence all bounds of the report hold together.
    confidence: f64,
    sentence: String,
    rows: Vec<Row>,
}

impl Report {
    /// Violated if one row is, and consistent only if every row with a verdict is: rows may be of different mechanisms, and one whose trials
    /// sufficed says nothing of another's. The confidence is that of all bounds together, by the union bound.
    pub fn new(title: impl Into<String>, rows: Vec<Row>) -> Self {
        let verdicts = || rows.iter().filter_map(Row::verdict);
        let verdict = verdicts()
            .find(|verdict| *verdict == Ruling::Violated)
            .or(verdicts().min())
            .unwrap_or(Ruling::Inconclusive);
        let doubt: f64 = rows
            .iter()
            .filter(|row| row.kind == Kind::DistributionFree)
            .filter_map(|row| row.confidence.map(|confidence| 1.0 - confidence))
            .sum();
        let confidence = (1.0 - doubt).max(0.0);
        let sentence = sentence(&rows, verdict, confidence);
        Self {
            title: title.into(),
            verdict,
            confidence,
            sentence,
            rows,
        }
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The gravest verdict.
    pub fn verdict(&self) -> Ruling {
        self.verdict
    }

    /// What it means, for somebody who has one minute.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// One for each attack.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

fn sentence(rows: &[Row], verdict: Ruling, confidence: f64) -> String {
    let judged = || rows.iter().filter(|row| row.verdict.is_some());
    let attacks = judged().count();
    let tried = if attacks == 1 {
        "One attack was tried".to_owned()
    } else {
        format!("{attacks} attacks were tried")
    };
    let strongest = |rows: &mut dyn Iterator<Item = &Row>| {
        rows.max_by(|a, b| a.epsilon_lower.total_cmp(&b.epsilon_lower))
            .map_or((0.0, 0.0), |row| {
                (at_least(row.epsilon_lower), row.claimed.unwrap_or(0.0))
            })
    };
    match verdict {
        Ruling::Violated => {
            let mut broken = judged().filter(|row| row.verdict == Some(Ruling::Violated));
            let count = broken.clone().count();
            let (measured, claimed) = strongest(&mut broken);
            format!(
                "{tried}, and {count} showed that more leaks than was promised: a loss of at least {measured} where {claimed} was \
                 claimed. The claim is false, with {} confidence.",
                percent(confidence)
            )
        }
        Ruling::Consistent => {
            let (measured, claimed) = strongest(&mut judged());
            format!(
                "{tried}, and none showed more than was promised; the strongest measured a loss of {measured} where {claimed} was \
                 claimed. Randomized response that loses twice the claim would have been caught nine times out of ten; what leaks by rarer events, or \
                 elsewhere, may have passed."
            )
        }
        // Models and estimates are no lower bounds, and have no place in a sentence about one.
        Ruling::Inconclusive if attacks == 0 => {
            let mut bounds = rows.iter().filter(|row| row.kind == Kind::DistributionFree);
            if bounds.clone().next().is_none() {
                return "No bound without assumptions was measured, so nothing can be said of a loss, and nothing was refuted.".into();
            }
            let (measured, _) = strongest(&mut bounds);
            format!(
                "Nothing was claimed, so nothing could be refuted; the measured loss is at least {measured}, with {} confidence.",
                percent(confidence)
            )
        }
        Ruling::Inconclusive => {
            let open = judged().filter(|row| row.verdict == Some(Ruling::Inconclusive));
            format!(
                "{tried}, none showed more than was promised, and in {} the trials were too few to tell: even randomized response that loses twice the claim could \
                 have passed. More trials are needed.",
                open.count()
            )
        }
    }
}

/// A lower bound with four digits behind the point, rounded down as a lower bound is.
pub(crate) fn at_least(epsilon: f64) -> f64 {
    (epsilon * 1e4).floor() / 1e4
}

/// Rounded down: `0.99` is `99 %`, and nothing below certainty is `100 %`.
pub(crate) fn percent(share: f64) -> String {
    let digits = (1..=9).find(|digits| share <= 1.0 - 10_f64.powi(-(*digits)) + 1e-12);
    let places = digits.map_or(7, |digits| (digits - 2).max(0) as usize + 1);
    let scale = 10_f64.powi(places as i32);
    let value = (share * 100.0 * scale + 1e-6).floor() / scale;
    format!("{value} %")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::world::{Counts, Share};
    use crate::{Alpha, Group};
    use whit_core::Delta;

    pub(crate) fn row(hits: (u64, u64), trials: u64, claimed: Option<f64>) -> Row {
        let share = |hits| Share { hits, trials };
        let bound = Counts::of_fixed_event("yes", share(hits.0), share(hits.1))
            .epsilon_lower(Delta::ZERO, Group::ONE, Alpha::new(0.01).expect("in range"))
            .expect("valid");
        let claimed = claimed.map(|epsilon| Epsilon::new(epsilon).expect("not negative"));
        Row::of_bound("yes or no", &bound, claimed)
    }

    fn estimate() -> Row {
        let estimate = Estimate {
            value: 99.0,
            low: 90.0,
            high: 110.0,
            method: "bootstrap",
        };
        let claimed = Epsilon::new(1.0).ok();
        Row::of_estimate("resampled", &estimate, Delta::ZERO, claimed)
    }

    #[test]
    fn verdicts_rest_on_bounds_without_assumptions() {
        let honest = row((600, 400), 1000, Some(1.0));
        // An estimate of 99 where 1 is claimed, and a model's bound, convict nobody.
        let model = ModelBound::of_curve(
            "a shape",
            Delta::ZERO,
            Alpha::new(0.01).expect("in range"),
            |epsilon| if epsilon < 50.0 { 1.0 } else { 0.0 },
        );
        let model = Row::of_model("fitted", &model, Epsilon::new(1.0).ok());
        assert!(model.epsilon_lower() > 49.0);
        let report = Report::new("t", vec![honest.clone(), estimate(), model]);
        assert_eq!(report.verdict(), Ruling::Consistent);
        assert_eq!(
            Report::new("t", vec![estimate()]).verdict(),
            Ruling::Inconclusive
        );
        let broken = row((900, 100), 1000, Some(1.0));
        let report = Report::new("t", vec![honest, broken]);
        assert_eq!(report.verdict(), Ruling::Violated);
        assert!(
            report.sentence().contains("1 showed that more leaks")
                && report.sentence().ends_with("with 98 % confidence."),
            "{}",
            report.sentence()
        );
    }

    /// One attack whose trials sufficed does not speak for another.
    #[test]
    fn a_report_is_consistent_only_as_a_whole() {
        let (told, open) = (row((600, 400), 1000, Some(1.0)), row((5, 5), 10, Some(1.0)));
        assert_eq!(
            Report::new("t", vec![told.clone(), told.clone()]).verdict(),
            Ruling::Consistent
        );
        let report = Report::new("t", vec![told, open]);
        assert_eq!(report.verdict(), Ruling::Inconclusive);
        assert!(report.sentence().contains("in 1 the trials were too few"));
    }

    /// An estimate of 99 is no loss of at least 99, and has no confidence.
    #[test]
    fn sentences_rest_on_bounds_without_assumptions() {
        let report = Report::new("t", vec![estimate()]);
        assert!(!report.sentence().contains("99"), "{}", report.sentence());
        let report = Report::new("t", vec![row((600, 400), 1000, None), estimate()]);
        assert!(
            !report.sentence().contains("99.00"),
            "{}",
            report.sentence()
        );
    }

    #[test]
    fn sentences_say_what_was_found() {
        let few = Report::new("t", vec![row((5, 5), 10, Some(1.0))]);
        assert!(few.sentence().contains("too few"), "{}", few.sentence());
        let no_claim = Report::new("t", vec![row((900, 100), 1000, None)]);
        assert!(no_claim.sentence().starts_with("Nothing was claimed"));
        assert_eq!(no_claim.verdict(), Ruling::Inconclusive);
    }

    /// Of 871 and 76 in 1000, at half a percent each, the bound is 2.12822: 2.13 would be too much.
    #[test]
    fn bounds_are_rounded_down() {
        let report = Report::new("t", vec![row((871, 76), 1000, Some(1.0))]);
        assert!(
            report.sentence().contains("at least 2.1282 where 1 was"),
            "{}",
            report.sentence()
        );
        assert_eq!(at_least(0.999_99), 0.9999);
    }

    #[test]
    fn percents_are_rounded_down() {
        for (share, expected) in [
            (0.99, "99 %"),
            (0.95, "95 %"),
            (0.999, "99.9 %"),
            (0.999_999, "99.9999 %"),
            (0.98, "98 %"),
            (0.0, "0 %"),
            (0.123_456, "12.3 %"),
        ] {
            assert_eq!(percent(share), expected);
        }
    }
}
