use super::*;
use whit_core::Bits;
use whit_testkit::SeededBits;

fn alpha(value: f64) -> Alpha {
    Alpha::new(value).expect("in range")
}

fn trials<'a>(without: &'a [f64], with: &'a [f64], group: u32, delta: f64) -> Trials<'a> {
    Trials {
        without,
        with,
        choosing: without.len() / 2,
        group: Group::new(group).expect("not zero"),
        delta: Delta::new(delta).expect("a slack"),
    }
}

/// Worlds that are told apart always: the ceilings of the published set-up, alone and with four sizes of groups.
#[test]
fn perfect_separation_reaches_the_ceilings() {
    let (without, with) = (vec![0.0; 1000], vec![1.0; 1000]);
    for group in [1, 2, 4, 8] {
        let bound = trials(&without, &with, group, 0.0)
            .bound(alpha(0.01))
            .expect("fits");
        let ceiling = 4.5416 / f64::from(group);
        assert!((bound.epsilon_lower() - ceiling).abs() < 1e-3, "{bound:?}");
    }
    let all: Vec<_> = [1, 2, 4, 8]
        .map(|group| trials(&without, &with, group, 0.0))
        .into();
    let bound = corrected(&all, alpha(0.01)).expect("fits");
    assert!((bound.epsilon_lower() - 4.3087).abs() < 1e-3, "{bound:?}");
    // Scores that are smaller with the poison show nothing: which way they go is fixed before.
    let bound = trials(&with, &without, 1, 0.0)
        .bound(alpha(0.01))
        .expect("fits");
    assert_eq!(bound.epsilon_lower(), 0.0, "{bound:?}");
}

/// Randomized response: `ε = ln 3` exactly. No bound may be above it more often than the level says: 600 repetitions at 10 % are above 97 of them with
/// probability below 1e-6.
#[test]
fn false_alarms_are_as_rare_as_stated() {
    let mut bits = SeededBits::new(11);
    let mut truth = move |bit: bool| f64::from(u8::from(bit ^ (bits.word().is_multiple_of(4))));
    let mut wrong = 0;
    for _ in 0..600 {
        let without: Vec<f64> = (0..400).map(|_| truth(false)).collect();
        let with: Vec<f64> = (0..400).map(|_| truth(true)).collect();
        let bound = trials(&without, &with, 1, 0.0)
            .bound(alpha(0.1))
            .expect("fits");
        wrong += u32::from(bound.epsilon_lower() > 3_f64.ln());
    }
    assert!(wrong <= 97, "{wrong}");
}

/// Two worlds that are the same: what papers report, the largest of several bounds, is above zero more often than the corrected one.
#[test]
fn nothing_is_found_where_there_is_nothing() {
    let mut bits = SeededBits::new(12);
    let mut wrong = 0;
    for _ in 0..300 {
        let mut scores = || -> Vec<f64> { (0..200).map(|_| (bits.word() >> 11) as f64).collect() };
        let worlds: Vec<[Vec<f64>; 2]> = (0..4).map(|_| [scores(), scores()]).collect();
        let all: Vec<_> = worlds.iter().map(|[a, b]| trials(a, b, 1, 0.0)).collect();
        let bound = corrected(&all, alpha(0.1)).expect("fits");
        wrong += u32::from(bound.epsilon_lower() > 0.0);
    }
    // Binomial of 300 at 10 %: above 60 with probability below 1e-6.
    assert!(wrong <= 60, "{wrong}");
}

#[test]
fn trials_that_choose_cannot_judge() {
    let scores = [0.0; 10];
    for choosing in [11, 12] {
        let trials = Trials {
            choosing,
            ..trials(&scores, &scores, 1, 0.0)
        };
        assert!(trials.bound(alpha(0.01)).is_err());
    }
    // All of them choose, and nobody is left to judge: nothing is found.
    let (without, with) = (vec![0.0; 10], vec![1.0; 10]);
    let trials = Trials {
        choosing: 10,
        ..trials(&without, &with, 1, 0.0)
    };
    let bound = trials.bound(alpha(0.01)).expect("nothing to judge");
    assert_eq!(bound.epsilon_lower(), 0.0);
}

fn normal(bits: &mut SeededBits, mean: f64, count: usize) -> Vec<f64> {
    let uniform = |word: u64| ((word >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
    let each = (0..count).map(|_| {
        let radius = (-2.0 * uniform(bits.word()).ln()).sqrt();
        mean + radius * (std::f64::consts::TAU * uniform(bits.word())).cos()
    });
    each.collect()
}

/// Normal scores that are two deviations apart, of 1,000 models: on average a fit by a tenth of them finds more than an order by half of them, and no more than
/// there is. Without noise the ceiling is reached as well, and scores that are far from normal are bounded as truly.
#[test]
fn a_fit_finds_more_with_fewer_trials() {
    let mut bits = SeededBits::new(14);
    let (mut by_order, mut by_fit) = (0.0, 0.0);
    let found = |bound: Result<EpsilonBound>| bound.expect("fits").epsilon_lower();
    for _ in 0..20 {
        let [without, with] = [0.0, 2.0].map(|mean| normal(&mut bits, mean, 1000));
        let half = trials(&without, &with, 1, 0.0);
        let tenth = Trials {
            choosing: 100,
            ..half
        };
        by_order += found(half.bound(alpha(0.01))) / 20.0;
        by_fit += found(tenth.bound_by_fit(alpha(0.01))) / 20.0;
    }
    assert!(by_fit > by_order + 0.2, "{by_order} {by_fit}");
    let (without, with) = (vec![0.0; 1000], vec![1.0; 1000]);
    let bound = trials(&without, &with, 1, 0.0).bound_by_fit(alpha(0.01));
    assert!((found(bound) - 4.5416).abs() < 1e-3);
}

/// Randomized response in place of normal scores, as above: `ε = ln 3` exactly.
#[test]
fn false_alarms_are_as_rare_if_scores_are_not_normal() {
    let mut bits = SeededBits::new(15);
    let mut truth = move |bit: bool| f64::from(u8::from(bit ^ (bits.word().is_multiple_of(4))));
    let mut wrong = 0;
    for _ in 0..300 {
        let without: Vec<f64> = (0..400).map(|_| truth(false)).collect();
        let with: Vec<f64> = (0..400).map(|_| truth(true)).collect();
        let trials = Trials {
            choosing: 40,
            ..trials(&without, &with, 1, 0.0)
        };
        let bound = trials.bound_by_fit(alpha(0.1)).expect("fits");
        wrong += u32::from(bound.epsilon_lower() > 3_f64.ln());
    }
    // Binomial of 300 at 10 %: above 60 with probability below 1e-6.
    assert!(wrong <= 60, "{wrong}");
}

/// Normal scores that are two deviations apart: the `μ` that is found is below that and most of it, and the event for it is not a rare one.
#[test]
fn the_bound_on_mu_is_close_to_the_truth() {
    let mut bits = SeededBits::new(13);
    let [without, with] = [0.0, 2.0].map(|mean| normal(&mut bits, mean, 2000));
    let found = trials(&without, &with, 1, 0.0).mu_bound(alpha(0.01));
    let mu = found.expect("fits").mu_lower();
    assert!(mu > 1.7 && mu <= 2.0, "{mu}");
}
