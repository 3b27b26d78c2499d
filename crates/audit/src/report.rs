//! What an audit found, for people and for programs.
//!
//! A [`Report`] is a list of [`Row`]s: an attack, what was claimed, what was measured, and how far that can be relied upon. A row can have a verdict
//! only if it was made from an [`EpsilonBound`], which assumes nothing; rows of models and estimates stand beside it without one.
//! Anybody can feed it: audits of mechanisms, of programs, of training.
//!
//! **Names in JSON.** Only a bound that assumes nothing is called `epsilon_lower`. What rests on a model is `epsilon_lower_if_model`, with
//! `confidence_if_model`, and what is no bound is `epsilon_estimate`: a program that looks for the first cannot read one of the others by mistake.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use whit_core::{Delta, round};

use crate::Claim;
use crate::bound::{EpsilonBound, Ruling};
use crate::model::{Estimate, ModelBound};
use crate::two_stages::TwoStages;

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
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    attack: String,
    series: Option<String>,
    claim: Option<Claim>,
    delta: Delta,
    measured: f64,
    confidence: Option<f64>,
    kind: Kind,
    verdict: Option<Ruling>,
    evidence: String,
    /// Why its outputs could not have shown anything, if so.
    unjudged: Option<String>,
    /// At most the probability that the row wrongs a true claim, or states a bound that does not hold.
    doubt: f64,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (measured, confidence) = match self.kind {
            Kind::DistributionFree => ("epsilon_lower", "confidence"),
            Kind::ModelBased => ("epsilon_lower_if_model", "confidence_if_model"),
            Kind::Estimate => ("epsilon_estimate", "confidence"),
        };
        let mut row = serializer.serialize_struct("Row", 10)?;
        row.serialize_field("attack", &self.attack)?;
        if let Some(series) = &self.series {
            row.serialize_field("series", series)?;
        }
        row.serialize_field("claimed", &self.claimed())?;
        row.serialize_field("claimed_delta", &self.claimed_delta())?;
        row.serialize_field("delta", &self.delta())?;
        row.serialize_field(measured, &self.measured)?;
        if let Some(share) = &self.confidence {
            row.serialize_field(confidence, share)?;
        }
        row.serialize_field("kind", &self.kind)?;
        row.serialize_field("verdict", &self.verdict)?;
        row.serialize_field("evidence", &self.evidence)?;
        row.end()
    }
}

impl Row {
    /// A bound without assumptions, with its verdict if there is a claim.
    pub fn of_bound(attack: impl Into<String>, bound: &EpsilonBound, claim: Option<Claim>) -> Self {
        Self {
            attack: attack.into(),
            series: None,
            claim,
            delta: bound.delta(),
            measured: bound.epsilon_lower(),
            confidence: Some(bound.confidence()),
            kind: Kind::DistributionFree,
            verdict: claim.map(|claim| bound.ruling(claim)),
            evidence: bound.evidence().to_owned(),
            unjudged: bound.why_unjudged().map(str::to_owned),
            doubt: bound.alpha().value(),
        }
    }

    /// Two looks, of which only both together convict. The confidence of the row is that of the bound which the last look gave; the report's is that of
    /// its verdict.
    pub fn of_two_stages(attack: impl Into<String>, found: &TwoStages) -> Self {
        Self {
            verdict: Some(found.ruling()),
            doubt: found.false_conviction(),
            ..Self::of_bound(attack, found.bound(), Some(found.claimed()))
        }
    }

    /// A bound that rests on a model. No verdict.
    pub fn of_model(attack: impl Into<String>, bound: &ModelBound, claim: Option<Claim>) -> Self {
        Self {
            attack: attack.into(),
            series: None,
            claim,
            delta: bound.delta(),
            measured: bound.epsilon_lower(),
            confidence: Some(bound.confidence()),
            kind: Kind::ModelBased,
            verdict: None,
            evidence: format!("assumes: {}", bound.model()),
            unjudged: None,
            doubt: 0.0,
        }
    }

    /// A number without a guarantee, of an epsilon at `delta`. No verdict.
    pub fn of_estimate(
        attack: impl Into<String>,
        estimate: &Estimate,
        delta: Delta,
        claim: Option<Claim>,
    ) -> Self {
        Self {
            attack: attack.into(),
            series: None,
            claim,
            delta,
            measured: estimate.value,
            unjudged: None,
            doubt: 0.0,
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
        self.claim.map(|claim| claim.epsilon.value())
    }

    /// At this delta, which need not be that of the measurement.
    pub fn claimed_delta(&self) -> Option<f64> {
        self.claim.map(|claim| claim.delta.value())
    }

    /// Is it measured at a smaller delta than is claimed, so that it says nothing of the claim?
    pub(crate) fn beside_the_claim(&self) -> bool {
        self.claim
            .is_some_and(|claim| self.delta.value() < claim.delta.value())
    }

    /// What was measured: a lower bound, one if a model holds, or no bound at all, as [`kind`](Self::kind) says.
    pub fn measured(&self) -> f64 {
        self.measured
    }

    /// The measured lower bound, if it is one without assumptions.
    pub fn epsilon_lower(&self) -> Option<f64> {
        (self.kind == Kind::DistributionFree).then_some(self.measured)
    }

    /// At this delta.
    pub fn delta(&self) -> f64 {
        self.delta.value()
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
    /// With which confidence the verdict was reached: no true claim is refuted. Bounds have confidences of their own, in their rows.
    #[serde(rename = "verdict_confidence")]
    confidence: f64,
    sentence: String,
    /// What was run, and what was counted, as names and values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
    rows: Vec<Row>,
}

impl Report {
    /// Violated if one row is, and consistent only if every row with a verdict is: rows may be of different mechanisms, and one whose trials
    /// sufficed says nothing of another's. The confidence is one less the sum, rounded up, of what each row leaves to doubt: the level of its bound or, where a
    /// verdict took two looks, the probability that both convict a true claim. By the union bound, no row wrongs a true claim with at least that probability.
    pub fn new(title: impl Into<String>, rows: Vec<Row>) -> Self {
        let verdicts = || rows.iter().filter_map(Row::verdict);
        let verdict = verdicts()
            .find(|verdict| *verdict == Ruling::Violated)
            .or(verdicts().min())
            .unwrap_or(Ruling::Inconclusive);
        let doubt = rows
            .iter()
            .fold(0.0, |sum, row| round::add_up(sum, row.doubt));
        let confidence = round::sub_down(1.0, doubt).max(0.0);
        let sentence = sentence(&rows, verdict, confidence);
        Self {
            title: title.into(),
            verdict,
            confidence,
            sentence,
            settings: BTreeMap::new(),
            rows,
        }
    }

    /// With what it was made: the command, the number of trials, what was counted.
    #[must_use]
    pub fn with_setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// All of these, by name.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// At least the probability that it wrongs no true claim.
    pub fn confidence(&self) -> f64 {
        self.confidence
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
        rows.max_by(|a, b| a.measured.total_cmp(&b.measured))
            .map_or((0.0, 0.0), |row| {
                (at_least(row.measured), row.claimed().unwrap_or(0.0))
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
            let open = || judged().filter(|row| row.verdict == Some(Ruling::Inconclusive));
            let beside = open().filter(|row| row.beside_the_claim()).count();
            let unjudged: BTreeSet<&str> = open()
                .filter(|row| !row.beside_the_claim())
                .filter_map(|row| row.unjudged.as_deref())
                .collect();
            let few = open()
                .filter(|row| !row.beside_the_claim() && row.unjudged.is_none())
                .count();
            let mut text = format!("{tried}, and none showed more than was promised.");
            if few > 0 {
                text += &format!(
                    " In {few} the trials were too few to tell: even randomized response that loses twice the claim could have passed. More trials are needed."
                );
            }
            for why in unjudged {
                text += &format!(" Nothing can be said of the claim: {why}");
            }
            if beside > 0 {
                text += &format!(
                    " In {beside} the loss was measured at a smaller delta than was claimed, which says nothing of the claim."
                );
            }
            text
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
    use whit_core::Epsilon;

    pub(crate) fn row(hits: (u64, u64), trials: u64, claimed: Option<f64>) -> Row {
        let share = |hits| Share { hits, trials };
        let bound = Counts::of_fixed_event("yes", share(hits.0), share(hits.1))
            .epsilon_lower(Delta::ZERO, Group::ONE, Alpha::new(0.01).expect("in range"))
            .expect("valid");
        Row::of_bound("yes or no", &bound, claimed.map(pure))
    }

    fn pure(epsilon: f64) -> Claim {
        Claim::pure(Epsilon::new(epsilon).expect("not negative"))
    }

    fn estimate() -> Row {
        let estimate = Estimate {
            value: 99.0,
            low: 90.0,
            high: 110.0,
            method: "bootstrap",
        };
        Row::of_estimate("resampled", &estimate, Delta::ZERO, Some(pure(1.0)))
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
        let model = Row::of_model("fitted", &model, Some(pure(1.0)));
        assert!(model.measured() > 49.0 && model.epsilon_lower().is_none());
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

    /// A program that looks for a lower bound finds one, or nothing.
    #[test]
    fn json_calls_only_bounds_without_assumptions_lower() {
        let model = ModelBound::of_curve(
            "a shape",
            Delta::ZERO,
            Alpha::new(0.01).expect("in range"),
            |epsilon| if epsilon < 50.0 { 1.0 } else { 0.0 },
        );
        let model = Row::of_model("fitted", &model, Some(pure(1.0)));
        let json = |row: &Row| serde_json::to_value(row).expect("numbers and strings");
        let rows = [row((600, 400), 1000, Some(1.0)), model, estimate()].map(|row| json(&row));
        let has = |row: usize, key: &str| rows[row].get(key).is_some_and(|value| value.is_f64());
        let keys = [
            "epsilon_lower",
            "epsilon_lower_if_model",
            "epsilon_estimate",
        ];
        for (at, own) in keys.into_iter().enumerate() {
            assert!(
                (0..3).all(|row| has(row, own) == (row == at)),
                "{own}: {rows:?}"
            );
        }
        assert!(has(0, "confidence") && !has(1, "confidence") && has(1, "confidence_if_model"));
        assert!(rows[2].get("confidence").is_none());
    }

    /// Three hundred looks at 1e-3 do not hold together, and a verdict that takes two looks does.
    #[test]
    fn two_looks_make_a_verdict_sure() {
        let share = |hits| Share { hits, trials: 1000 };
        let look = |hits: (u64, u64)| {
            TwoStages::look(
                pure(1.0),
                [1e-3, 1e-7].map(|level| Alpha::new(level).expect("in range")),
                |_, level| {
                    Counts::of_fixed_event("yes", share(hits.0), share(hits.1)).epsilon_lower(
                        Delta::ZERO,
                        Group::ONE,
                        level,
                    )
                },
            )
            .expect("valid")
        };
        let row = |hits| Row::of_two_stages("case", &look(hits));
        let honest: Vec<Row> = (0..300).map(|_| row((600, 400))).collect();
        let report = Report::new("t", honest.clone());
        assert_eq!(report.verdict(), Ruling::Consistent);
        assert!(1.0 - report.confidence() > 2.9e-8 && 1.0 - report.confidence() < 3.1e-8);
        // That is no confidence of the bounds, of which each has its own.
        let json = serde_json::to_value(&report).expect("numbers and strings");
        assert!(json["verdict_confidence"].is_f64() && json.get("confidence").is_none());
        assert_eq!(json["rows"][0]["confidence"], 0.999);
        let report = Report::new("t", [honest, vec![row((900, 100))]].concat());
        assert_eq!(report.verdict(), Ruling::Violated);
        assert!(
            report.sentence().ends_with("with 99.9999969 % confidence."),
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
        assert!(report.sentence().contains("In 1 the trials were too few"));
    }

    /// 20 of 2000 against none, where 0.5 is claimed at delta 0.01.
    #[test]
    fn what_is_measured_at_a_smaller_delta_says_nothing_of_the_claim() {
        let claim = Claim {
            delta: Delta::new(0.01).expect("in range"),
            ..pure(0.5)
        };
        let share = |hits| Share { hits, trials: 2000 };
        let bound = Counts::of_fixed_event("shown", share(20), share(0)).epsilon_lower(
            Delta::ZERO,
            Group::ONE,
            Alpha::new(0.05).expect("in range"),
        );
        let row = Row::of_bound("shown", &bound.expect("valid"), Some(claim));
        assert!(row.measured() > 0.5 && row.claimed_delta() == Some(0.01));
        assert_eq!(row.verdict(), Some(Ruling::Inconclusive));
        let report = Report::new("t", vec![row]);
        assert!(
            report.sentence().contains("at a smaller delta")
                && !report.sentence().contains("too few"),
            "{}",
            report.sentence()
        );
        // Above the diagonal a claim is false, and this one is not.
        assert!(!report.to_html().contains("<svg"));
    }

    #[test]
    fn what_cannot_be_judged_is_said() {
        let share = |hits| Share { hits, trials: 1000 };
        let bound = Counts::of_fixed_event("any", share(1000), share(1000)).epsilon_lower(
            Delta::ZERO,
            Group::ONE,
            Alpha::new(0.01).expect("in range"),
        );
        let bound = bound
            .expect("valid")
            .unjudged("it never prints the same twice.");
        let report = Report::new("t", vec![Row::of_bound("any", &bound, Some(pure(1.0)))]);
        assert_eq!(report.verdict(), Ruling::Inconclusive);
        let sentence = report.sentence();
        assert!(
            sentence.ends_with("of the claim: it never prints the same twice."),
            "{sentence}"
        );
        assert!(!sentence.contains("too few"), "{sentence}");
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
