//! `[search]` of a plan's file: which numbers are tried, how often, and by what they are judged.

use serde::{Deserialize, Serialize};
use whit_core::{Probability, Ratio, Repeats};

use super::Recipe;
use crate::error::{Error, Result, within};

/// Most runs that are ever made for the sake of time.
pub(crate) const PAD_MAX: u64 = 10_000;
/// More candidates than anybody tries.
const CANDIDATES_MAX: usize = 1000;
/// The law's parameter is rounded to multiples of this, so that records stay short.
const GAMMA_UNIT: f64 = 1_048_576.0;
/// Fewer are no search, and more take forever.
const RUNS: std::ops::RangeInclusive<f64> = 1.0..=1000.0;

/// `[search]`. Each run takes one of the candidates, all as likely: one value of each list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSection {
    /// How many runs there are on average. How many there were nobody learns.
    pub runs: f64,
    /// `geometric`, `logarithmic` or `poisson`; else `geometric`.
    pub law: Option<String>,
    /// If given, always so many runs are made, those that do not count included, so that the time does not tell how many do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad: Option<u64>,
    /// `accuracy` or `loss`, on `[validation]`; else accuracy where classes are learnt.
    pub score: Option<String>,
    /// Learning rates, in place of that of `[optimizer]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate: Vec<f64>,
    /// Momenta, in place of that of `[optimizer]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub momentum: Vec<f32>,
    /// Averages, in place of that of `[optimizer]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub average: Vec<f32>,
    /// Clip norms; that of `[plan]` is one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clip: Vec<f64>,
    /// Refused: every run keeps the same budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epsilon: Vec<f64>,
    /// Refused likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delta: Vec<f64>,
    /// Refused likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise_multiplier: Vec<f64>,
}

/// By what runs are judged: always on public data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// The share of examples that are told right; the more the better.
    Accuracy,
    /// The mean loss; the less the better.
    Loss,
}

impl Score {
    /// The word of a plan.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Loss => "loss",
        }
    }
}

impl SearchSection {
    /// The law in one word.
    pub fn word(&self) -> Result<&'static str> {
        let given = self.law.as_deref().unwrap_or("geometric");
        let known = ["geometric", "logarithmic", "poisson"];
        known
            .into_iter()
            .find(|word| *word == given)
            .ok_or_else(|| Error::Word {
                field: "law",
                given: given.into(),
                passes: "\"geometric\", \"logarithmic\" or \"poisson\", in [search]",
            })
    }

    /// How the number of runs is drawn: about so many on average, and whatever it is exactly, it is what is priced.
    pub(crate) fn repeats(&self) -> Result<Repeats> {
        let runs = self.runs;
        within(
            "runs",
            runs,
            RUNS.contains(&runs),
            "a number from 1 to 1000",
        )?;
        let binomial = |eta_plus_one: u64, gamma: f64| -> Result<Repeats> {
            let units = (gamma * GAMMA_UNIT).round().clamp(1.0, GAMMA_UNIT);
            Ok(Repeats::TruncatedNegativeBinomial {
                eta_plus_one: Ratio::from(eta_plus_one),
                gamma: Probability::new(Ratio::new(units as u128, GAMMA_UNIT as u128)?)?,
            })
        };
        match self.word()? {
            "geometric" => binomial(2, 1.0 / runs),
            "logarithmic" => binomial(1, logarithmic(runs)),
            _ => Ok(Repeats::Poisson {
                mean: Ratio::from_f64(runs).ok_or(Error::Unbound)?,
            }),
        }
    }

    pub(crate) fn score(&self, classes: bool) -> Result<Score> {
        match (self.score.as_deref(), classes) {
            (None | Some("accuracy"), true) => Ok(Score::Accuracy),
            (None, false) | (Some("loss"), _) => Ok(Score::Loss),
            (Some(given), _) => Err(Error::Word {
                field: "score",
                given: given.into(),
                passes: "\"accuracy\", where classes are learnt, or \"loss\", in [search]",
            }),
        }
    }
}

/// The `γ` at which `(1/γ - 1)/ln(1/γ)` is this mean, nearly: it falls with `γ`. Sixty halvings of its logarithm.
fn logarithmic(mean: f64) -> f64 {
    let (mut low, mut high) = ((1.0 / GAMMA_UNIT).ln(), 0.0);
    for _ in 0..60 {
        let middle: f64 = 0.5 * (low + high);
        match (-middle).exp_m1() / -middle > mean {
            true => low = middle,
            false => high = middle,
        }
    }
    high.exp()
}

impl Recipe {
    /// The candidates of a search, each as a recipe of one run; the clip norms of the first ones change last.
    pub(crate) fn candidates(&self, search: &SearchSection) -> Result<Vec<Self>> {
        for (field, given) in [
            ("epsilon", &search.epsilon),
            ("delta", &search.delta),
            ("noise_multiplier", &search.noise_multiplier),
        ] {
            if !given.is_empty() {
                return Err(Error::Searched { field });
            }
        }
        let unused = |field, given: bool| match given {
            true => Err(Error::Field {
                of: "an [optimizer] beside a list of them in [search]",
                field,
                missing: false,
                passes: "",
            }),
            false => Ok(()),
        };
        let optimizer = &self.optimizer;
        unused("rate", !search.rate.is_empty() && optimizer.rate.is_some())?;
        unused(
            "momentum",
            !search.momentum.is_empty() && optimizer.momentum.is_some(),
        )?;
        unused(
            "average",
            !search.average.is_empty() && optimizer.average.is_some(),
        )?;
        if !search.clip.is_empty() && !search.clip.contains(&self.plan.clip) {
            return Err(Error::OutOfRange {
                what: "clip",
                given: self.plan.clip,
                range: "in [plan] one of the norms in [search]",
            });
        }
        let mut one = self.clone();
        (one.search, one.validation) = (None, None);
        let mut all = vec![one];
        all = vary(all, &search.clip, |one, clip| one.plan.clip = clip);
        all = vary(all, &search.rate, |one, rate| {
            one.optimizer.rate = Some(rate)
        });
        all = vary(all, &search.momentum, |one, momentum| {
            one.optimizer.momentum = Some(momentum);
        });
        all = vary(all, &search.average, |one, average| {
            one.optimizer.average = Some(average);
        });
        let count = all.len();
        let passes = (2..=CANDIDATES_MAX).contains(&count);
        let range = "from 2 to 1000, as all combinations of the lists in [search]";
        within("the number of candidates", count as f64, passes, range)?;
        Ok(all)
    }
}

/// Each of them with each value; as they are without values.
fn vary<T: Copy>(all: Vec<Recipe>, values: &[T], set: impl Fn(&mut Recipe, T)) -> Vec<Recipe> {
    if values.is_empty() {
        return all;
    }
    let with = |one: &Recipe, value: T| {
        let mut one = one.clone();
        set(&mut one, value);
        one
    };
    // No more than can be refused for being too many.
    let each = all
        .iter()
        .flat_map(|one| values.iter().map(move |value| with(one, *value)));
    each.take(CANDIDATES_MAX + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f64` means of what was rounded.
    fn mean(search: &SearchSection) -> f64 {
        match search.repeats().expect("a law") {
            Repeats::TruncatedNegativeBinomial {
                eta_plus_one,
                gamma,
            } => {
                let gamma = gamma.ratio().to_f64_up();
                match eta_plus_one == Ratio::one() {
                    true => (1.0 / gamma - 1.0) / (1.0 / gamma).ln(),
                    false => 1.0 / gamma,
                }
            }
            Repeats::Poisson { mean } => mean.to_f64_up(),
            _ => unreachable!("three words"),
        }
    }

    #[test]
    fn there_are_about_as_many_runs_as_asked_for() {
        for law in ["geometric", "logarithmic", "poisson"] {
            for runs in [2.0, 10.0, 37.5, 300.0] {
                let search = SearchSection {
                    runs,
                    law: Some(law.into()),
                    ..SearchSection::default()
                };
                assert!(
                    (mean(&search) / runs - 1.0).abs() < 0.01,
                    "{law} {runs}: {}",
                    mean(&search)
                );
            }
        }
        for (runs, law) in [
            (0.5, "geometric"),
            (f64::NAN, "poisson"),
            (1e9, "poisson"),
            (5.0, "fixed"),
        ] {
            let search = SearchSection {
                runs,
                law: Some(law.into()),
                ..SearchSection::default()
            };
            assert!(search.repeats().is_err(), "{law} {runs}");
        }
    }
}
