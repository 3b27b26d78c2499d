//! One case on trial, in two stages.

use whit_audit::{Alpha, Row, TwoStages};

use crate::case::{Case, Share, Untried};

/// So many samples, judged at such a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// In each world.
    pub samples: u64,
    /// The chance of an alarm without a cause.
    pub alpha: Alpha,
}

/// How hard to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Every case goes through this.
    pub first: Stage,
    /// What alarmed goes through this, with fresh entropy.
    pub second: Stage,
}

impl Effort {
    /// First so many samples at `1e-3`, then four times as many at `1e-7`.
    pub fn of(samples: u64) -> Self {
        let alpha = |value| Alpha::new(value).expect("a level");
        Self {
            first: Stage {
                samples,
                alpha: alpha(1e-3),
            },
            second: Stage {
                samples: 4 * samples,
                alpha: alpha(1e-7),
            },
        }
    }

    /// A million samples of each world: finds ten percent too little noise in every case that costs a [draw](crate::Cost::Draw), and half of it in the others, which are sampled less often.
    pub fn full() -> Self {
        Self::of(1_000_000)
    }

    /// Five thousand samples where a sample costs a draw of noise, and as many as half of it takes in the others: finds half of the noise of every case.
    pub fn quick() -> Self {
        Self::of(5000)
    }
}

impl Effort {
    /// How many samples of each world both looks take of a case. What is slow is sampled less often in both, by the same factor.
    fn samples(self, case: &Case) -> [u64; 2] {
        let first = case.cost().samples(self.first.samples);
        let times = self.second.samples / self.first.samples.max(1);
        [first, first * times.max(1)]
    }

    /// Do both looks take as many samples as it needs for a verdict that the case is consistent with its claim? If one case of a report has too few, the whole report is inconclusive.
    pub fn tells(self, case: &Case) -> bool {
        let stages = [self.first, self.second];
        let mut looks = stages.iter().zip(self.samples(case));
        looks.all(|(stage, samples)| case.is_told_by(samples, stage.alpha))
    }

    /// About with which probability both looks convict a case with this share of its noise, where the probabilities of its event are known.
    pub fn power(self, case: &Case, share: Share) -> Option<f64> {
        let [first, second] = self.samples(case);
        let first = case.power(share, first, self.first.alpha)?;
        Some(first * case.power(share, second, self.second.alpha)?)
    }
}

/// Tries a case with this share of its noise, which is one for what ships.
pub fn trial(case: &Case, share: Share, effort: Effort) -> Result<TwoStages, Untried> {
    let stages = [effort.first, effort.second];
    let samples = effort.samples(case);
    TwoStages::look(
        case.claim(),
        stages.map(|stage| stage.alpha),
        |at, alpha| case.look(share, samples[at], alpha),
    )
}

/// A row of a report, whose verdict is that of both stages.
pub fn row(case: &Case, found: &TwoStages) -> Row {
    Row::of_two_stages(case.name(), found).in_series(case.family())
}
