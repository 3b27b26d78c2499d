//! The mechanisms of whit, put on trial.
//!
//! `audit` knows no mechanism and `mechanism` no audit; this crate knows both, and nothing else. A [`Case`] is a mechanism, two
//! neighbouring inputs, an event that was fixed beforehand, and the loss that the mechanism's definition gives to that event. The trial
//! runs each case in both worlds, with the noise that ships, and compares.
//!
//! **Two stages.** A first look at level `1e-3` convicts nobody: of 300 honest cases one alarms in three trials. What alarms is run
//! again, with fresh entropy and four times as many samples, at level `1e-7`. So an honest suite is convicted with probability below
//! `300 · 1e-3 · 1e-7 = 3e-8`, and ten percent too little noise is found with probability above 99.9 % in each case of a full trial: `trials_for` says how many
//! samples that takes, and the benchmark plants the fault in every case.

mod additive;
mod case;
mod chosen;
mod coins;
mod gaussian;
mod statistic;
mod trial;

pub use case::{Case, Draws, Share};
pub use coins::Coins;
pub use trial::{Effort, Finding, Stage, trial};

/// Every case, in a fixed order.
pub fn cases() -> Vec<Case> {
    let mut cases = additive::cases();
    cases.extend(gaussian::cases());
    cases.extend(chosen::cases());
    cases.extend(statistic::cases());
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use whit_audit::Alpha;

    #[test]
    fn there_are_three_hundred_cases_with_names_of_their_own() {
        let cases = cases();
        assert!(cases.len() >= 300, "{}", cases.len());
        let names: BTreeSet<&str> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len());
        let visible = |case: &Case| case.claimed().value() > 0.19;
        assert!(
            cases.iter().all(visible),
            "a loss that a million samples can show"
        );
    }

    /// A suite that cannot fail proves nothing: with half of the noise, every case is convicted, and with all of it none is.
    #[test]
    fn every_case_convicts_half_the_noise_and_acquits_all_of_it() {
        let alpha = |value| Alpha::new(value).expect("a level");
        let stage = |samples, level| Stage {
            samples,
            alpha: alpha(level),
        };
        let effort = Effort {
            first: stage(12_000, 1e-3),
            second: stage(24_000, 1e-7),
        };
        let (cases, next) = (cases(), AtomicUsize::new(0));
        let work = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let twin = trial(case, Share::new(0.5), effort).expect("entropy");
                assert!(twin.convicted(), "{}: {twin:?}", case.name());
                let honest = trial(case, Share::ALL, effort).expect("entropy");
                assert!(!honest.convicted(), "{}: {honest:?}", case.name());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(work);
            }
        });
    }
}
