//! What a plan will do and how far off its answer will be, told before anything is paid or read.

use serde::Serialize;
use sha2::{Digest, Sha256};
use whit_core::{Confidence, Mechanism};

use super::PrivatePlan;
use crate::analyze::{Keys, Measured};
use crate::plan::Statement;
use crate::plan::after::{Trait, chooses_by_noise, traits_after};
use crate::value::Kind;

/// A plan in words and numbers. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// `one`, `public` or `private`.
    pub keys: &'static str,
    /// How many groups the answer has before HAVING and LIMIT, if that is public.
    pub groups: Option<u64>,
    /// In how many groups a unit counts.
    pub groups_per_unit: u32,
    /// How many rows of a unit count in a group.
    pub rows_per_group: u32,
    /// How many rows of a unit count altogether, where its table declares less than the others allow.
    pub rows_per_unit: Option<u32>,
    /// The noise of each aggregate.
    pub noise: Vec<Expected>,
    /// How many units a key needs to be shown, where keys are private.
    pub threshold: Option<KeyThreshold>,
    /// What a reader might take otherwise.
    pub notes: Vec<&'static str>,
}

/// By how many units a private key is shown. A function of epsilon, delta and bounds alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyThreshold {
    /// With so many units it is shown at least every other time.
    pub units_half: u64,
    /// From so many units on it is always shown.
    pub units_always: u64,
}

/// The noise of one aggregate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Expected {
    /// The aggregate, as SQL.
    pub aggregate: String,
    /// `discrete Laplace` or `discrete Gaussian`.
    pub distribution: &'static str,
    /// Its scale, in the unit of the answer.
    pub scale: f64,
    /// How far the answer is from that without noise, at the confidence asked for. None where that depends on how many rows
    /// there are.
    pub half_width: Option<f64>,
}

impl PrivatePlan {
    /// What will be done, and how far off the answer will be.
    pub fn explain(&self, confidence: Confidence) -> Explanation {
        let contribution = self.stable.contribution;
        let aggregates = self
            .stable
            .statement
            .aggregates
            .iter()
            .zip(&self.stable.measured);
        let noise = aggregates
            .zip(&self.noise)
            .map(|((aggregate, measured), noise)| {
                let event = noise.event_of(1);
                let (distribution, scale) = match event.mechanism() {
                    Mechanism::DiscreteGaussian { scale, .. } => {
                        ("discrete Gaussian", scale.ratio().to_f64_up())
                    }
                    Mechanism::DiscreteLaplace { scale, .. } => {
                        ("discrete Laplace", scale.ratio().to_f64_up())
                    }
                    _ => ("unknown", f64::INFINITY),
                };
                let step = match measured {
                    Measured::Count(_) | Measured::Units => 1.0,
                    Measured::Sum(fixed, _) | Measured::Mean(fixed, _) => {
                        fixed.bounds.step().to_f64_up()
                    }
                };
                let half_width = match measured {
                    Measured::Mean(..) => None,
                    _ => Some(noise.half_width(confidence) as f64 * step),
                };
                Expected {
                    aggregate: aggregate.name.clone(),
                    distribution,
                    scale: scale * step,
                    half_width,
                }
            });
        Explanation {
            keys: match self.keys() {
                Keys::One => "one",
                Keys::Public(_) => "public",
                Keys::Private => "private",
            },
            groups: self.groups(),
            groups_per_unit: contribution.groups,
            rows_per_group: contribution.rows,
            rows_per_unit: contribution.total,
            noise: noise.collect(),
            threshold: self.threshold(),
            notes: self.notes(),
        }
    }

    fn threshold(&self) -> Option<KeyThreshold> {
        let selection = self.selection.as_ref()?;
        Some(KeyThreshold {
            units_half: selection.units_half(),
            units_always: selection.units_always(),
        })
    }

    /// For each column of the answer, whether its cells have intervals. Told before there are rows.
    pub fn bounded(&self) -> Vec<bool> {
        let statement = &self.stable.statement;
        let traits = traits_after(&statement.steps, statement.traits());
        let is_bounded = |found: Trait| matches!(found, Trait::Bounded(_));
        traits.into_iter().map(is_bounded).collect()
    }

    /// What a reader of the answer's intervals must know: about the statement, and not about its rows.
    pub fn caveats(&self) -> Vec<&'static str> {
        let statement = &self.stable.statement;
        let traits = traits_after(&statement.steps, statement.traits());
        let mut caveats = Vec::new();
        if chooses_by_noise(&statement.steps, statement.traits()) {
            caveats.push("rows are chosen by noisy numbers, so more of them than usual have noise that went that way: an interval holds for a row that was chosen beforehand");
        }
        let is_number = |kind: &Kind| matches!(kind, Kind::Int | Kind::Real);
        let mut columns = traits.iter().zip(&statement.kinds);
        if columns.any(|(found, kind)| *found == Trait::Noisy && is_number(kind)) {
            caveats.push("a number that is computed from noisy ones has noise and no interval, unless it is one of them plus, minus, times or divided by public numbers");
        }
        caveats
    }

    fn notes(&self) -> Vec<&'static str> {
        let mut notes = vec!["rows without a unit are not counted"];
        if self.stable.statement.relation.supplier.is_some() {
            notes.push("the outer join supplies keys; what it adds for keys without private rows is not counted");
        }
        match self.keys() {
            Keys::One => {}
            Keys::Public(_) => notes.push("keys are public: all appear, and rows with other keys are not counted"),
            Keys::Private => notes.push("keys appear by the number of their units; texts in them are cut to 4096 bytes altogether"),
        }
        notes.extend(self.caveats());
        notes
    }

    /// SHA-256 of what the plan computes and releases: layout, aliases of tables and the spelling of keywords do not count.
    /// Together with the catalog's hash and the owner's version of the data it says which stored answer is the same.
    pub fn fingerprint(&self) -> [u8; 32] {
        // Statements hold lists and numbers only, no maps, so their text is the same each time. Which opening of the tables it is
        // bound to does not count.
        let statement = Statement {
            tables: 0,
            ..self.stable.statement.clone()
        };
        let canonical = format!(
            "{:?}\n{:?}\n{:?}",
            statement, self.stable.contribution, self.request
        );
        let mut hash = Sha256::new();
        hash.update(canonical.as_bytes());
        hash.update(self.event().fingerprint());
        hash.finalize().into()
    }
}
