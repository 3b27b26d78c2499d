//! Cases of `whit audit self` that need more than mechanisms: statistics of files, statements in SQL, steps of training, votes of teachers, classical models. The crate `trial` knows none of these, so they are brought here, to the door that knows all.
//!
//! Each case is what ships, end to end, on two neighbouring inputs. A planted fault asks for more epsilon than is claimed, which is less noise.

mod classical;
mod sql;
mod statistic;
mod teachers;
mod training;

use whit_trial::{Case, Untried};

/// All of them, after those of mechanisms.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = whit_trial::cases();
    cases.extend(whole_programs());
    cases
}

fn whole_programs() -> Vec<Case> {
    let all = [
        statistic::cases(),
        sql::cases(),
        training::cases(),
        teachers::cases(),
        classical::cases(),
    ];
    all.into_iter().flatten().collect()
}

/// What is not tried, and why.
pub(crate) const NOT_TRIED: &[&str] = &[
    "of statistics of files: ranges that are searched for (auto); Gaussian noise, whose scale each request looks for anew, for ten milliseconds: it is tried in SQL and in the library; medians and bounds of units with several rows; statistics that a ledger pays",
    "statements without GROUP BY, which go the same way with one group; keys that are private; joins; HAVING, ORDER BY and LIMIT, which see noisy values alone",
    "training as a whole, for which there is whit audit train: one step of Poisson samples and four in which everybody takes part are tried here, with a canary",
    "classical models but naive Bayes and linear regression, of whose sums one is looked at each; their falsifiers are among the tests",
    "epsilons at the votes of an owner, which are no releases",
    "time, memory and whatever else a release shows beside its value",
];

fn untried(error: impl std::fmt::Display) -> Untried {
    Untried::new(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use whit_audit::Alpha;
    use whit_trial::{Effort, Share, trial};

    /// A case that cannot convict proves nothing. Those of mechanisms have such a test where they are. By exact sums over both counts, with the probabilities of each event, all of these together fail by
    /// chance with probability below `1e-7`. With all of the noise none is convicted, and its event is seen as often as its chances say.
    #[test]
    fn every_case_of_a_whole_program_convicts_half_of_its_noise() {
        let cases = whole_programs();
        let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let note = |line| wrong.lock().expect("nobody panics").push(line);
                match trial(case, Share::new(0.5), Effort::quick()) {
                    Ok(found) if found.convicted() => {}
                    Ok(found) => {
                        let (bound, claimed) = (found.bound().epsilon_lower(), case.claimed());
                        note(format!("{}: {bound} of {claimed}", case.name()));
                    }
                    Err(why) => note(format!("{}: {why}", case.name())),
                }
                let alpha = Alpha::new(1e-10).expect("a level");
                match case.unlike_stated(case.cost().samples(5000), alpha) {
                    Ok(None) => {}
                    Ok(Some(line)) => note(line),
                    Err(why) => note(format!("{}: {why}", case.name())),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(work);
            }
        });
        let wrong = wrong.into_inner().expect("nobody panics");
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// What is claimed beyond the loss of an event would be acquitted, and one case that no number of samples can tell would make every report inconclusive.
    #[test]
    fn claims_are_the_loss_of_their_event_and_can_be_told() {
        for case in whole_programs() {
            let over = case.overclaimed();
            let over = over.unwrap_or_else(|| panic!("{}", case.name()));
            // The slack that is stated.
            let within = -1e-9 * case.claimed().value()..1.1e-3;
            assert!(within.contains(&over), "{}: {over}", case.name());
            for effort in [Effort::full(), Effort::quick()] {
                assert!(effort.tells(&case), "{}, {effort:?}", case.name());
            }
        }
    }

    #[test]
    fn cases_have_names_of_their_own() {
        let cases = cases();
        let names: BTreeSet<&str> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len());
    }
}
