//! What an experiment is: a claim, and the plans that are to reach it.

use whit_learn::Recipe;

use crate::failure::Failure;

/// One command.
pub(crate) struct Experiment {
    /// As it is called on the command line, and what its files are called.
    pub(crate) name: &'static str,
    /// What stands above its table and its plots.
    pub(crate) title: &'static str,
    /// The folder of the data, within that of `WHIT_DATA`.
    pub(crate) folder: &'static str,
    /// What must be in it.
    pub(crate) files: &'static [&'static str],
    /// Whose figure it is beside, and where the numbers of the plans come from: paper, or a search of our own.
    pub(crate) sources: &'static str,
    /// One model each.
    pub(crate) settings: &'static [Setting],
    /// Figures of others for the same data, which stand beside a curve of accuracy over epsilon. Without any there is no such curve.
    pub(crate) beside: &'static [Published],
}

/// A figure of a paper, as it states it.
pub(crate) struct Published {
    /// Whose it is, what was trained, and which accountant gave the epsilon.
    pub(crate) name: &'static str,
    pub(crate) epsilon: f64,
    /// As a share.
    pub(crate) accuracy: f64,
}

/// One model, trained once for each seed.
pub(crate) struct Setting {
    /// In tables and legends.
    pub(crate) name: &'static str,
    /// What is asked of the mean accuracy.
    pub(crate) goal: Goal,
    /// `[data]` and `[test]`.
    pub(crate) data: &'static str,
    /// `[model]`, `[plan]` and `[optimizer]`, as `whit train` reads them.
    pub(crate) plan: &'static str,
}

/// What a mean accuracy is to reach, as a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// This or more.
    AtLeast(f64),
    /// More than this.
    Above(f64),
    /// Nothing: it is measured and shown.
    Shown,
}

impl Goal {
    pub(crate) fn value(self) -> Option<f64> {
        match self {
            Self::AtLeast(value) | Self::Above(value) => Some(value),
            Self::Shown => None,
        }
    }

    /// Means of shares are off by the rounding of floats, which must not decide: it is far below one answer of one model.
    pub(crate) fn is_met(self, mean: f64) -> bool {
        const ROUNDING: f64 = 1e-12;
        match self {
            Self::AtLeast(value) => mean >= value - ROUNDING,
            Self::Above(value) => mean > value + ROUNDING,
            Self::Shown => true,
        }
    }

    pub(crate) fn words(self) -> String {
        match self {
            Self::AtLeast(value) => format!("at least {:.1} %", 100.0 * value),
            Self::Above(value) => format!("above {:.1} %", 100.0 * value),
            Self::Shown => "nothing".into(),
        }
    }
}

impl Setting {
    /// The plan for one seed, which decides the initial weights.
    pub(crate) fn recipe(&self, seed: u64) -> Result<Recipe, Failure> {
        let mut recipe: Recipe = toml::from_str(&format!("{}\n{}", self.data, self.plan))?;
        recipe.model.seed = Some(seed);
        Ok(recipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_met_from_their_border_on_or_above_it() {
        assert!(Goal::AtLeast(0.968).is_met(0.968));
        assert!(!Goal::AtLeast(0.968).is_met(0.9679));
        assert!(!Goal::Above(0.9).is_met(0.9));
        assert!(Goal::Above(0.9).is_met(0.9001));
        assert!(Goal::Shown.is_met(0.1));
        // 49,050 right answers of 50,000: the sum of floats is a little less than the share.
        let mean = [0.9818, 0.9814, 0.982, 0.9791, 0.9807].iter().sum::<f64>() / 5.0;
        assert!(Goal::AtLeast(0.981).is_met(mean) && !Goal::Above(0.981).is_met(mean));
        assert!(!Goal::AtLeast(0.981).is_met(49_049.0 / 50_000.0));
    }
}
