//! How the statement's epsilon and delta are divided.
//!
//! *Public keys.* With `m` aggregates, Laplace noise gives each `ε/m`; with a delta, Gaussian noise gives each `1/m` of the
//! concentrated loss that `(ε, δ)` allows. Whichever has the smaller standard deviation for every aggregate is taken; it is a function
//! of the statement alone. *Private keys* need a delta, all of which goes to the selection, with one of `m + 1` equal shares of
//! `ε`; a unit may be in `G` groups, so each selection gets `1/G` of both. The aggregates get Laplace noise.
//!
//! Shares are floats of 24 bits, rounded down: sums of a few of them are exact, so the whole is within `ε` without any slack
//! for rounding.

use whit_accounting::calibrate::{gaussian_scale, laplace_scale};
use whit_core::{AddRemove, Delta, Epsilon, L1, L2, Ratio, Scale, Sensitivity};
use whit_mechanism::{Additive, Noise, PartitionSelection};

use crate::analyze::{Keys, StablePlan};
use crate::error::{Result, refused};
use crate::request::Request;

/// The noise of each aggregate, and the selection of keys.
pub(super) struct Split {
    pub(super) noise: Vec<Additive<AddRemove>>,
    pub(super) selection: Option<PartitionSelection<AddRemove>>,
}

type Both = (Sensitivity<L1, AddRemove>, Sensitivity<L2, AddRemove>);

pub(super) fn split(stable: &StablePlan, request: &Request) -> Result<Split> {
    let bounds: Vec<Both> = stable
        .measured
        .iter()
        .map(|measured| match measured.reach() {
            Some(reach) => stable.contribution.of_rows(reach),
            None => stable.contribution.of_units(),
        })
        .collect();
    let aggregates = u32::try_from(bounds.len()).unwrap_or(u32::MAX);
    if let Keys::Private = stable.keys {
        if request.delta() == Delta::ZERO {
            return Err(refused(
                "keys_need_delta",
                "the keys are not declared, so showing them needs a delta",
                "give --delta 1e-9, for example; or declare `values` of the key columns, or LEFT JOIN from a public table of keys",
            ));
        }
        let groups = stable.contribution.groups;
        let share = part(request.epsilon().value(), aggregates.saturating_add(1));
        let epsilon = Epsilon::new(part(share, groups))?;
        let delta = Delta::new(part(request.delta().value(), groups))?;
        let selection = PartitionSelection::new(epsilon, delta, groups)?;
        let noise = laplace(bounds, Epsilon::new(share)?)?;
        return Ok(Split {
            noise,
            selection: Some(selection),
        });
    }
    let share = Epsilon::new(part(request.epsilon().value(), aggregates))?;
    if let Some(scales) = gaussian(&bounds, share, request, aggregates) {
        let noise = bounds.into_iter().zip(scales);
        let noise = noise.map(|((l1, l2), scale)| Additive::new(&Noise::Gaussian(scale), l1, l2));
        return Ok(Split {
            noise: noise.collect(),
            selection: None,
        });
    }
    Ok(Split {
        noise: laplace(bounds, share)?,
        selection: None,
    })
}

fn laplace(bounds: Vec<Both>, share: Epsilon) -> Result<Vec<Additive<AddRemove>>> {
    let each = |(l1, l2): Both| -> Result<Additive<AddRemove>> {
        let scale = laplace_scale(l1.bound(), share)?;
        Ok(Additive::new(&Noise::Laplace(scale), l1, l2))
    };
    bounds.into_iter().map(each).collect()
}

/// Scales of Gaussian noise, if they are smaller than those of Laplace noise throughout.
fn gaussian(
    bounds: &[Both],
    share: Epsilon,
    request: &Request,
    aggregates: u32,
) -> Option<Vec<Scale>> {
    if request.delta() == Delta::ZERO {
        return None;
    }
    let mut scales = Vec::new();
    for (l1, l2) in bounds {
        // A loss of 1/m of the whole is that of m times the squared sensitivity. Sums of several losses are rounded up, for
        // which there is room of a millionth.
        let room = if aggregates > 1 {
            Ratio::one()
        } else {
            Ratio::zero()
        };
        let times = &Ratio::from(u64::from(aggregates)) + &(&room * &Ratio::power_of_two(-20));
        let scale =
            gaussian_scale(&(l2.square() * &times), request.epsilon(), request.delta()).ok()?;
        let laplace = laplace_scale(l1.bound(), share).ok()?;
        let smaller =
            scale.ratio().to_f64_up() < std::f64::consts::SQRT_2 * laplace.ratio().to_f64_down();
        scales.push(smaller.then_some(scale)?);
    }
    Some(scales)
}

/// Not more than `whole / parts`, with a short mantissa; `whole` itself for one part.
fn part(whole: f64, parts: u32) -> f64 {
    if parts == 1 {
        return whole;
    }
    let short = |value: f64| f64::from_bits(value.to_bits() >> 29 << 29);
    let found = short(whole / f64::from(parts));
    // The division may have rounded up to a short float; then the next below is short too.
    let fits = found * f64::from(parts) <= whole;
    if fits {
        found
    } else {
        short(found.next_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_never_add_up_to_more_than_the_whole() {
        for whole in [0.1, 0.5, 1.0, 3.0, 1e-9, 1.0 / 3.0, 5e-324, 1024.0] {
            for parts in [1, 2, 3, 5, 7, 10, 100, 4097] {
                let each = part(whole, parts);
                let exact =
                    &Ratio::from_f64(each).expect("finite") * &Ratio::from(u64::from(parts));
                assert!(
                    exact <= Ratio::from_f64(whole).expect("finite"),
                    "{whole} in {parts}"
                );
                let sum: f64 = (0..parts).map(|_| each).sum();
                assert!(sum <= whole, "{whole} in {parts}");
                assert!(whole < 1e-300 || each * f64::from(parts) >= whole * (1.0 - 1e-6));
            }
        }
    }
}
