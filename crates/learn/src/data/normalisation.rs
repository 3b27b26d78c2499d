//! Features are made small by constants of the plan: the mean of the data would be a query about the data.

use serde::{Deserialize, Serialize};

use super::error::{DataError, Result};

/// One number for all channels, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerChannel {
    /// One for all.
    All(f64),
    /// One for each.
    Each(Vec<f64>),
}

impl PerChannel {
    /// One, or one for each.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::All(value) => std::slice::from_ref(value),
            Self::Each(values) => values,
        }
    }
}

/// `(x · scale - mean) / std`, by public constants.
pub(super) struct Normalisation {
    scale: f64,
    means: Vec<f64>,
    deviations: Vec<f64>,
}

impl Normalisation {
    /// Refuses constants that no data could take; `channels` is the first side of the shape, if that is known.
    pub(super) fn check(
        scale: Option<f64>,
        mean: Option<&PerChannel>,
        std: Option<&PerChannel>,
        channels: Option<usize>,
    ) -> Result<()> {
        let sides = |given: Option<&PerChannel>| {
            let own = given.map_or(1, |given| given.values().len()).max(1);
            channels.unwrap_or(own)
        };
        Self::new(scale, mean, None, 1.0, sides(mean))?;
        Self::new(scale, None, std, 1.0, sides(std)).map(drop)
    }

    /// `scale_otherwise` is the scale of the number type, and `channels` the first side of the shape.
    pub(super) fn new(
        scale: Option<f64>,
        mean: Option<&PerChannel>,
        std: Option<&PerChannel>,
        scale_otherwise: f64,
        channels: usize,
    ) -> Result<Self> {
        let each = |field, given: Option<&PerChannel>, otherwise, passes: fn(f64) -> bool| {
            let Some(given) = given else {
                return Ok(vec![otherwise; channels]);
            };
            match given.values() {
                [value] if passes(*value) => Ok(vec![*value; channels]),
                values if values.len() == channels && values.iter().copied().all(passes) => {
                    Ok(values.to_vec())
                }
                values => Err(DataError::Domain {
                    field,
                    given: format!("{values:?}"),
                    passes: {
                        let above = if field == "std" { " above 0" } else { "" };
                        let more = match channels {
                            1 => String::new(),
                            _ => format!(
                                ", or {channels} of them, one for each entry of the shape's first side"
                            ),
                        };
                        format!("one finite number{above}{more}")
                    },
                }),
            }
        };
        let scale = scale.unwrap_or(scale_otherwise);
        if !(scale.is_finite() && scale != 0.0) {
            return Err(DataError::Domain {
                field: "scale",
                given: scale.to_string(),
                passes: "a finite number other than 0".into(),
            });
        }
        Ok(Self {
            scale,
            means: each("mean", mean, 0.0, f64::is_finite)?,
            deviations: each("std", std, 1.0, |value| value.is_finite() && value > 0.0)?,
        })
    }

    /// Scale, means and deviations.
    pub(super) fn constants(&self) -> (f64, &[f64], &[f64]) {
        (self.scale, &self.means, &self.deviations)
    }

    pub(super) fn apply(&self, channel: usize, value: f64) -> f64 {
        (value * self.scale - self.means[channel]) / self.deviations[channel]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_out_of_their_domain_are_refused() {
        let check = |scale, mean: Option<PerChannel>, std: Option<PerChannel>| {
            Normalisation::new(scale, mean.as_ref(), std.as_ref(), 1.0, 3).is_err()
        };
        assert!(check(Some(0.0), None, None));
        assert!(check(Some(f64::NAN), None, None));
        assert!(check(None, Some(PerChannel::Each(vec![1.0, 2.0])), None));
        assert!(check(None, Some(PerChannel::All(f64::INFINITY)), None));
        assert!(check(None, None, Some(PerChannel::All(0.0))));
        assert!(!check(
            None,
            None,
            Some(PerChannel::Each(vec![1.0, 2.0, 3.0]))
        ));
    }
}
