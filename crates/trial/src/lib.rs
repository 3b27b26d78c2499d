//! The mechanisms of whit, put on trial.
//!
//! `audit` knows no mechanism and `mechanism` no audit; this crate knows both, and nothing else. A [`Case`] is a mechanism, two
//! neighbouring inputs, an event that was fixed beforehand, and the loss that the mechanism's definition gives to that event. The trial
//! runs each case in both worlds, with the noise that ships, and compares.
//!
//! **Two stages.** A first look at level `1e-3` convicts nobody: of 300 honest cases one alarms in three trials. What alarms is run
//! again, with fresh entropy and four times as many samples, at level `1e-7`. Both looks are independent, so an honest case is convicted with probability at most `1e-10`, and one of
//! 400 with at most `4e-8`: [`TwoStages`](whit_audit::TwoStages) has the proof.
//!
//! **Claims.** A claim that is too small convicts what is true, and one that is too large acquits what is false. Where a closed form is known, the case has the chances of its event: tests compare the claim with what these lose, and
//! the chances with what is seen.
//!
//! **Power.** Ten percent too little noise is found with probability above 99.9 % in each case of a full trial that costs a [draw](Cost::Draw): a test plans that from the
//! probabilities of its event, and the benchmark plants the fault. Slower cases are sampled less often, and find half of the noise; a test plants that in every case.
//!
//! What needs more than mechanisms (SQL, training) is no business of this crate: whoever knows it makes a [`Case`] of it.

mod additive;
mod case;
mod chosen;
mod coins;
mod gaussian;
mod moment;
mod quantile;
mod selection;
mod stable;
mod statistic;
mod trial;
mod whole;

pub use case::{
    Case, Claim, Cost, Draws, Share, Untried, fine_laplace_chances, laplace_chances, upper_tail,
};
pub use coins::Coins;
pub use moment::mean_chances;
pub use quantile::sliver_chances;
pub use trial::{Effort, Stage, row, trial};

/// Every case, in a fixed order.
pub fn cases() -> Vec<Case> {
    let mut cases = additive::cases();
    cases.extend(gaussian::cases());
    cases.extend(chosen::cases());
    cases.extend(statistic::cases());
    cases.extend(selection::cases());
    cases.extend(moment::cases());
    cases.extend(quantile::cases());
    cases.extend(stable::cases());
    cases.extend(whole::cases());
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use whit_audit::Alpha;
    use whit_core::{AddRemove, L1, Ratio, Scale, Secret, Sensitivity};
    use whit_mechanism::DiscreteLaplace;

    fn three() -> Sensitivity<L1, AddRemove> {
        Sensitivity::new(Ratio::from(3_u64))
    }

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

    /// What is public in `mechanism` and no case names, and why.
    const NO_CASE: &[(&str, &str)] = &[
        (
            "made by a statistic or a mechanism that has cases, which call it",
            "AboveThreshold ConfidentStream TreeCounter SquareRootCounter ProposedSensitivity NoisyApproximateBounds NoisyMean NoisySum \
             NoisyVariance NoisyCount NoisyMoments NoisyHistogram NoisyMarginals NoisyBlockMean Additive",
        ),
        (
            "goes into a mechanism or comes out of one",
            "FoundRange Best MeanParts VarianceParts MomentParts Estimate Spread StableSpread Moments Partitions Release OrderedRows BlockValues \
             Blocks Measurement Synthetic Graph Table Integer SmoothSensitivity Smoothness Error",
        ),
        (
            "computes on releases alone",
            "LinearModel MultiplicativeWeights standard_deviation",
        ),
        (
            "a sampler, which mechanisms call, and whose draws are compared with their exact law beside it",
            "Bernoulli ConstantTimeGaussian ConstantTimeLaplace ExpCoin Runs Weight Weighted uniform_below",
        ),
        ("starts threads", "awake even side_by_side"),
    ];

    /// The words of a source, without its comments and its tests.
    fn words(source: &str) -> BTreeSet<String> {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        let words = code.flat_map(|line| {
            line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        });
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Types, traits and functions that a module shows, of which a line of its own begins with `pub`.
    fn shown(source: &str) -> Vec<String> {
        let kinds = ["struct", "enum", "trait", "fn", "type"];
        let item = |line: &str| {
            let rest = line.strip_prefix("pub ")?;
            let rest = rest.strip_prefix("const ").unwrap_or(rest);
            let (kind, rest) = rest.split_once(' ')?;
            let end = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            let name = &rest[..end.unwrap_or(rest.len())];
            kinds.contains(&kind).then(|| name.to_owned())
        };
        source.lines().filter_map(item).collect()
    }

    #[test]
    fn a_word_in_a_comment_is_no_case() {
        let source = "/// As `Gaussian`.\nuse a::{Laplace}; // and Geometric\n#[cfg(test)]\nmod tests { use a::Stable; }";
        let words = words(source);
        assert!(words.contains("Laplace"));
        assert!(
            !["Gaussian", "Geometric", "Stable"]
                .iter()
                .any(|word| words.contains(*word))
        );
        let shown = shown(
            "pub struct A;\npub(crate) struct B;\n    pub fn c() {}\npub const fn d<T>() {}\npub const E: u8 = 0;",
        );
        assert_eq!(shown, ["A", "d"]);
    }

    /// A mechanism that is added and not put on trial is found out here, whether the crate exports it or one of its modules shows it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "reads the source, not data")]
    fn every_mechanism_that_ships_is_on_trial_or_says_why_not() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../mechanism/src");
        let read = |path: &str| std::fs::read_to_string(path).expect("a source of the workspace");
        let root = read(&format!("{folder}/lib.rs"));
        let mut names = BTreeSet::new();
        for item in root
            .split(';')
            .filter_map(|item| item.split_once("pub use "))
        {
            let path = item.1;
            names.extend(words(
                path.split_once("::").map_or(path, |(_, names)| names),
            ));
        }
        let exported = names.len();
        for line in root.lines() {
            let module = line
                .strip_prefix("pub mod ")
                .and_then(|rest| rest.strip_suffix(';'));
            let Some(module) = module else { continue };
            let file = format!("{folder}/{module}.rs");
            if std::path::Path::new(&file).exists() {
                names.extend(shown(&read(&file)));
                continue;
            }
            for file in std::fs::read_dir(format!("{folder}/{module}")).expect("a module") {
                let file = file.expect("a file").path();
                names.extend(shown(&read(file.to_str().expect("text"))));
            }
        }
        let sources = [
            include_str!("additive.rs"),
            include_str!("chosen.rs"),
            include_str!("coins.rs"),
            include_str!("gaussian.rs"),
            include_str!("moment.rs"),
            include_str!("quantile.rs"),
            include_str!("selection.rs"),
            include_str!("stable.rs"),
            include_str!("statistic.rs"),
            include_str!("whole.rs"),
        ];
        let tried: BTreeSet<String> = sources.into_iter().flat_map(words).collect();
        let excused: BTreeSet<String> =
            NO_CASE.iter().flat_map(|(_, names)| words(names)).collect();
        for name in &names {
            let (tried, excused) = (tried.contains(name), excused.contains(name));
            assert!(tried || excused, "{name} has no case");
            assert!(!(tried && excused), "{name} has a case and an excuse");
        }
        assert!(
            exported > 80 && names.len() > exported,
            "{exported}: the list was not read"
        );
    }

    /// A tenth less noise is convicted in 999 full trials of a thousand in each case that costs a draw.
    #[test]
    fn a_tenth_of_the_noise_is_missed_once_in_a_thousand_trials() {
        let short = Share::new(1.0 / 1.1);
        let mut least = (1.0, String::new());
        let draws = |case: &Case| case.cost() == Cost::Draw;
        for case in cases().into_iter().filter(draws) {
            let power = Effort::full().power(&case, short);
            let power = power.unwrap_or_else(|| panic!("{}", case.name()));
            if power < least.0 {
                least = (power, case.name().to_owned());
            }
        }
        assert!(least.0 >= 0.999, "{least:?}");
    }

    /// Half of the noise is convicted by a quick trial as well, 99 times in a hundred, in each case whose chances are known.
    #[test]
    fn a_quick_trial_convicts_half_of_the_noise() {
        let mut least = (1.0, String::new());
        for case in cases() {
            let power = Effort::quick().power(&case, Share::new(0.5));
            match power {
                Some(power) if power < least.0 => least = (power, case.name().to_owned()),
                Some(_) => {}
                None => assert!(NO_CHANCES.contains(&case.family()), "{}", case.name()),
            }
        }
        assert!(least.0 >= 0.99, "{least:?}");
    }

    /// What no closed form is known of.
    const NO_CHANCES: [&str; 2] = ["bounded variance", "interquartile range"];

    /// The claim of a case is the loss of its event: what is claimed beyond it would be acquitted.
    #[test]
    fn claims_are_the_loss_of_their_event() {
        for case in cases() {
            let over = case.overclaimed();
            let excused = NO_CHANCES.contains(&case.family());
            assert_eq!(over.is_none(), excused, "{}", case.name());
            // Grids, roundings and slack that is stated.
            let most = if case.cost() == Cost::Draw {
                2e-5
            } else {
                1.1e-3
            };
            let within = |over: &f64| (-1e-9 * case.claimed().value()..most).contains(over);
            assert!(over.iter().all(within), "{}: {over:?}", case.name());
        }
    }

    /// One case that no number of samples could tell would make every report inconclusive.
    #[test]
    fn every_case_is_told_by_a_full_trial_and_by_a_quick_one() {
        // What is claimed of many cases is looked at once.
        let mut seen = BTreeSet::new();
        let mut cases = cases();
        cases.retain(|case| {
            let claimed = [case.claimed().value(), case.delta().value()];
            seen.insert((claimed.map(f64::to_bits), case.cost().samples(1_000_000)))
        });
        for effort in [Effort::full(), Effort::quick()] {
            let open = cases.iter().filter(|case| !effort.tells(case));
            let open: Vec<&str> = open.map(Case::name).collect();
            assert!(open.is_empty(), "{open:?} {effort:?}");
        }
    }

    /// Of these less is lost by their event than their epsilon, or chances are known but for a little, or not at all; and what is lost is what they claim.
    #[test]
    fn claims_are_what_is_seen_to_be_lost() {
        let of = [
            ("bounded mean, add/remove", 80_000),
            ("covariance", 100_000),
            ("MWEM", 80_000),
            // Of many rows, which take longer.
            ("bounded variance", 30_000),
        ];
        let mut tried = 0;
        for case in cases() {
            let Some((_, trials)) = of.iter().find(|(family, _)| *family == case.family()) else {
                continue;
            };
            tried += 1;
            let counted = case.count(Share::ALL, *trials).expect("entropy");
            let [likely, unlikely] = counted.map(|seen| seen.hits as f64);
            let (found, claimed) = ((likely / unlikely).ln(), case.claimed().value());
            let error = (1.0 / likely + 1.0 / unlikely).sqrt();
            // As seldom as once in twenty million; an epsilon that is claimed in place of the loss is off by a tenth or more.
            assert!(
                (found - claimed).abs() < 5.5 * error && 5.5 * error < 0.12 * claimed,
                "{}: {found} of {claimed}, within {error}",
                case.name()
            );
        }
        assert_eq!(tried, 8);
    }

    /// Whoever claims epsilon of an event that loses half of it is found out, with chances that are right and with chances that go with the claim.
    #[test]
    fn a_claim_that_is_too_large_is_found() {
        let alpha = Alpha::new(1e-10).expect("a level");
        let half = |chances: [f64; 2]| {
            let draws = |_| {
                case::both(3_i64, 0, |x, coins| {
                    let noise = Scale::new(Ratio::from(6_u64)).expect("in range");
                    let noise = DiscreteLaplace::<AddRemove>::new(noise, three());
                    let release = noise.release(Secret::new(*x), coins);
                    *release.expect("the stream is open").value() >= 3
                })
            };
            let case = Case::new("noise", "for twice as much".into(), Claim::loss(1.0), draws);
            case.with_chances(move |_| chances)
        };
        let claimed = half(laplace_chances(1.0 / 3.0, 3));
        let true_ones = half(laplace_chances(1.0 / 6.0, 3));
        assert!(claimed.overclaimed().is_some_and(|over| over.abs() < 1e-6));
        let seen = claimed.unlike_stated(12_000, alpha).expect("entropy");
        assert!(seen.is_some_and(|seen| seen.contains("was stated")));
        assert!(true_ones.overclaimed().is_some_and(|over| over > 0.49));
        assert_eq!(true_ones.unlike_stated(12_000, alpha), Ok(None));
    }

    /// A suite that cannot fail proves nothing: with half of the noise, every case is convicted. With all of it none is, and its event is seen as often as its chances say: of two thousand bounds one is wrong with probability `2e-7`.
    #[test]
    fn every_case_convicts_half_the_noise_and_shows_what_it_states_with_all_of_it() {
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
        let wrong = Mutex::new(Vec::new());
        let work = || {
            while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut note = |line| wrong.lock().expect("nobody panics").push(line);
                let found = trial(case, Share::new(0.5), effort).expect("entropy");
                if !found.convicted() {
                    let measured = found.bound().epsilon_lower();
                    let claimed = case.claimed().value();
                    note(format!("{}: {measured} of {claimed}, half", case.name()));
                }
                let honest = case.unlike_stated(12_000, alpha(1e-10));
                honest.expect("entropy").map(&mut note);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(work);
            }
        });
        let wrong = wrong.into_inner().expect("nobody panics");
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
