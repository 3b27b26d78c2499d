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

/// Up to rounding, by how many units a private key is shown. A function of epsilon, delta and bounds alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyThreshold {
    /// With so many units it is shown at least every other time.
    pub units_half: u64,
    /// From so many units on it is always shown.
    pub units_always: u64,
}

/// Curves are followed up to here: as far as a selection has one.
const UNITS_MAX: u64 = 1 << 24;

impl KeyThreshold {
    /// The curve of [`PartitionSelection`](whit_mechanism::PartitionSelection), in floats.
    fn new(epsilon: f64, delta: f64) -> Option<Self> {
        let growth = epsilon.exp();
        let (mut shown, mut half) = (0.0_f64, None);
        for units in 1..=UNITS_MAX {
            let next = growth.mul_add(shown, delta);
            shown = next.min(1.0 - (1.0 - shown - delta) / growth);
            if shown >= 0.5 {
                half.get_or_insert(units);
            }
            if shown >= 1.0 {
                return Some(Self {
                    units_half: half?,
                    units_always: units,
                });
            }
        }
        None
    }
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
        let event = self.selection.as_ref()?.event();
        let each = match event.mechanism() {
            Mechanism::Composition(parts) => parts.first()?,
            alone => alone,
        };
        let Mechanism::PartitionSelection { epsilon, delta } = each else {
            return None;
        };
        KeyThreshold::new(epsilon.to_f64_down(), delta.ratio().to_f64_down())
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
            caveats.push("what is computed from several noisy numbers, or divided by one, has noise and no interval");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// About `(2/ε) ln(ε/2δ)` units are always enough, and half of them every other time.
    #[test]
    fn keys_need_as_many_units_as_the_curve_says() {
        let found = KeyThreshold::new(1.0, 1e-6).expect("an end");
        let always = 2.0 * (0.5e6_f64).ln();
        assert!(
            (found.units_always as f64 - always).abs() <= 2.0,
            "{found:?}"
        );
        assert!(
            (found.units_half as f64 - always / 2.0).abs() <= 2.0,
            "{found:?}"
        );
        let one = KeyThreshold::new(1.0, 0.9).expect("an end");
        assert_eq!((one.units_half, one.units_always), (1, 2));
        assert_eq!(KeyThreshold::new(0.0, 1e-300), None);
    }
}
