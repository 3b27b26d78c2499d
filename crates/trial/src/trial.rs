//! One case on trial, in two stages.

use whit_audit::{Alpha, Counts, EpsilonBound, Group, Share as Tally};
use whit_core::EntropyFailure;

use crate::case::{Case, Draw, Draws, Share};
use crate::coins::Coins;

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

    /// A million samples of each world: finds ten percent too little noise in every case.
    pub fn full() -> Self {
        Self::of(1_000_000)
    }

    /// Seconds: finds half of the noise.
    pub fn quick() -> Self {
        Self::of(5000)
    }
}

/// What a trial found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What was measured, in the last stage that was needed.
    pub bound: EpsilonBound,
    /// Did the first stage alarm?
    pub alarmed: bool,
    /// And did the second?
    pub confirmed: bool,
}

impl Finding {
    /// Both stages alarmed.
    pub fn convicted(&self) -> bool {
        self.alarmed && self.confirmed
    }
}

/// Tries a case with this share of its noise, which is one for what ships.
pub fn trial(case: &Case, share: Share, effort: Effort) -> Result<Finding, EntropyFailure> {
    let mut finding = stage(case, share, effort.first)?;
    if finding.alarmed {
        let again = stage(case, share, effort.second)?;
        finding.bound = again.bound;
        finding.confirmed = again.alarmed;
    }
    Ok(finding)
}

fn stage(case: &Case, share: Share, stage: Stage) -> Result<Finding, EntropyFailure> {
    // A fresh key for each stage.
    let mut coins = Coins::fresh()?;
    let Draws {
        mut likely,
        mut unlikely,
    } = case.draws(share);
    let mut count = |draw: &mut Draw| Tally {
        hits: (0..stage.samples).filter(|_| draw(&mut coins)).count() as u64,
        trials: stage.samples,
    };
    let (likely, unlikely) = (count(&mut likely), count(&mut unlikely));
    let counts = Counts::of_fixed_event(case.name(), likely, unlikely);
    let bound = counts
        .epsilon_lower(case.delta(), Group::ONE, stage.alpha)
        .expect("at most 2^32 samples");
    Ok(Finding {
        alarmed: bound.epsilon_lower() > case.claimed().value(),
        confirmed: false,
        bound,
    })
}
