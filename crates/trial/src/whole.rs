//! Mechanisms made of others: keys with their counts, synthetic data, perturbed minima, the best of many runs.

use std::collections::BTreeMap;
use std::rc::Rc;

use whit_core::{
    AddRemove, Delta, Entropy, Epsilon, Mechanism, Probability, Ratio, Repeats, ReplaceOne, Secret,
    Sensitivity,
};
use whit_mechanism::contingency_table::{Column, Unknown};
use whit_mechanism::minima_perturbation::{MinimaPerturbation, ObjectiveNoise};
use whit_mechanism::mwem::{Iterate, Mwem, Rounds};
use whit_mechanism::workload::{Domain, Query, Workload};
use whit_mechanism::{BestOf, Noise, PartitionSelection, PartitionThreshold, RandomizedResponse};

use crate::case::{Case, Claim, Cost, Share, both, laplace_chances, scale};
use crate::selection::{ratio, two_apart};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in [1.0, 2.0] {
        cases.push(partition_threshold(epsilon));
        cases.push(new_key(epsilon));
        cases.push(rest_of_keys(epsilon));
        cases.push(mwem(0.5 + epsilon / 2.0));
        cases.push(minima_perturbation(epsilon));
        cases.push(best_of(epsilon));
    }
    cases
}

fn delta(value: f64) -> Delta {
    Delta::new(value).expect("below one")
}

/// A unit with two keys that others have too: both counts are as large as with it.
fn partition_threshold(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 2 keys of a unit");
    let claim = Claim::delta(epsilon * (1.0 + 1e-9), delta(1e-6));
    let case = Case::new("partitions by noisy counts", name, claim, move |share| {
        let noise = Noise::Laplace(scale(2.0 / epsilon, share));
        let of = PartitionThreshold::<AddRemove>::new(&noise, delta(1e-6), 2);
        let of = Rc::new(of.expect("a delta that is not tiny"));
        both(1001_u64, 1000, move |count, coins| {
            let units = BTreeMap::from([(1, *count), (2, *count)]);
            let release = of.release(Secret::new(units), coins);
            let release = release.expect("the stream is open");
            let high = release
                .value()
                .shown
                .iter()
                .filter(|(_, noisy)| *noisy >= 1001);
            high.count() == 2
        })
    });
    let each = move |share: Share| laplace_chances(epsilon / share.value() / 2.0, 1);
    case.with_chances(move |share| each(share).map(|one| one * one))
        .costing(Cost::Statistic)
}

/// A key of one unit, that is not there without it: shown with probability delta at most. The fault is a threshold that is off by one, whatever its share.
fn new_key(epsilon: f64) -> Case {
    // δ = q^t/(1+q) exactly, at the threshold t = 2, so that it is all used.
    let q = libm::exp(-epsilon);
    let slack = q * q / (1.0 + q) * (1.0 + 1e-12);
    let name = format!("epsilon {epsilon}, one unit");
    let claim = Claim::delta(epsilon, delta(slack));
    let shown = move |share: Share| {
        if share == Share::ALL {
            slack
        } else {
            slack / q
        }
    };
    let case = Case::new("partitions by noisy counts", name, claim, move |share| {
        let noise = Noise::Laplace(scale(1.0 / epsilon, Share::ALL));
        let of = PartitionThreshold::<AddRemove>::new(&noise, delta(shown(share)), 1);
        let of = Rc::new(of.expect("a delta that is not tiny"));
        let alone = BTreeMap::from([(1, 1_u64)]);
        both(alone, BTreeMap::new(), move |units, coins| {
            let release = of.release(Secret::new(units.clone()), coins);
            !release
                .expect("the stream is open")
                .value()
                .shown
                .is_empty()
        })
    });
    case.with_chances(move |share| [shown(share), 0.0])
        .costing(Cost::Statistic)
}

/// A unit in a key that is not shown is counted with the rest.
fn rest_of_keys(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon} for the rest");
    // Of hidden keys that are shown after all.
    let claim = Claim::delta(epsilon * (1.0 + 1e-9), delta(1e-8));
    let case = Case::new("partition selection, the rest", name, claim, move |share| {
        let units = Epsilon::new(1.0).expect("not negative");
        let of = PartitionSelection::<AddRemove>::new(units, delta(1e-9), 1);
        let of = of.expect("a delta that is not tiny");
        // Sensitivity 1 to being there, and 1 more to being shown or not.
        let noise = Noise::Laplace(scale(1.0 / epsilon, share));
        let of = Rc::new(of.with_other(&noise));
        let units = |hidden: u64| BTreeMap::from([(1, hidden), (2, 1001 - hidden)]);
        both(units(1), units(0), move |units, coins| {
            let release = of.release(Secret::new(units.clone()), coins);
            let rest = release.expect("the stream is open").into_value().other;
            rest.is_some_and(|rest| rest >= 1)
        })
    });
    case.with_chances(move |share| laplace_chances(epsilon / share.value(), 1))
        .costing(Cost::Statistic)
}

/// Two queries, of which the first is right and the second far off; a row goes from the first to the second. Half of epsilon is for the choice, half for the answer: the first
/// is chosen and its answer is low. The answer loses all of its half. Of ten rows expected, the queries are off by 1 and 5 in one world and by 0 and 6 in the other, and a step of such a score
/// weighs `e^{ε/4}`: of the choice's half, `ln((1 + e^{6ε/4})/(1 + e^{4ε/4}))` is lost.
fn mwem(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, one round");
    let chances = move |share: Share| {
        let epsilon = epsilon / share.value();
        let chosen = [4.0, 6.0].map(|steps| 1.0 / (1.0 + libm::exp(steps * epsilon / 4.0)));
        let low = laplace_chances(epsilon / 2.0, 1);
        [chosen[0] * low[0], chosen[1] * low[1]]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 0.0);
    let case = Case::new("MWEM", name, claim, move |share| {
        let names: Vec<String> = (0..4).map(|name| name.to_string()).collect();
        let column = Column::new(names, Unknown::Drop).expect("four categories");
        let domain = Domain::new(vec![column]).expect("four cells");
        let queries = [0, 1]
            .map(|cell| Query::cell(&domain, &[(0, cell)]))
            .to_vec();
        let workload = Workload::queries(domain, queries).expect("two queries");
        let rounds = Rounds {
            count: 1,
            epsilon: ratio(epsilon / 2.0, share),
            noise: Noise::Laplace(scale(2.0 / epsilon, share)),
            replays: 1,
            iterate: Iterate::Last,
        };
        let mwem = Mwem::<ReplaceOne>::with_public_rows(workload, rounds, 40);
        let mwem = Rc::new(mwem.expect("one round"));
        let (one, other) = (vec![9, 5, 13, 13], vec![10, 4, 13, 13]);
        both(one, other, move |counts, coins| {
            let release = mwem.release(Secret::new(counts.clone()), coins);
            let release = release.expect("the stream is open");
            let first = release.value().measurements()[0];
            first.query == 0 && first.answer <= 9
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// What counts as one, in units of noise and output.
const ONE: i64 = 64;

/// The function `θ²/2 - nθ + bθ` of `n` rows has its minimum at `n - b`. A solver finds it exactly, and its output has little noise of its own, which hides a little: the two noises together are not below zero, or
/// not below one.
fn minima_perturbation(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    let chances = move |share: Share| {
        let rates = [0.25, epsilon / share.value() / ONE as f64];
        [0, ONE].map(|least| two_apart(rates, least))
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 0.0);
    let case = Case::new("minima perturbation", name, claim, move |share| {
        let noise = ObjectiveNoise::Laplace(scale(ONE as f64 / epsilon, share));
        let minimum = Mechanism::Pure {
            epsilon: ratio(epsilon, Share::ALL),
        };
        let apart = Sensitivity::new(Ratio::one());
        let output = scale(4.0, Share::ALL);
        let mechanism = MinimaPerturbation::<AddRemove>::new(noise, minimum, output, apart);
        let mechanism = Rc::new(mechanism);
        both(1_i64, 0, move |rows, coins| {
            let solve =
                |noise: Secret<Vec<i128>>| noise.map(|noise| vec![rows * ONE - noise[0] as i64]);
            let release = mechanism.release(1, solve, coins);
            release.expect("the stream is open").value()[0] >= ONE
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// The best of about ten surveys, of which one that says no is preferred: yes is told if none said so. With a share `t` of yes that is `γt/(1 - (1-γ)t)`.
fn best_of(epsilon: f64) -> Case {
    const GAMMA: f64 = 0.5;
    // The survey that loses a third of it.
    let keep = move |share: Share| 1.0 / (1.0 + libm::exp(-epsilon / 3.0 / share.value()));
    let told = |t: f64| GAMMA * t / (1.0 - (1.0 - GAMMA) * t);
    let chances = move |share: Share| [keep(share), 1.0 - keep(share)].map(told);
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 0.0);
    let name = format!("runs of epsilon {:.2}", epsilon / 3.0);
    let case = Case::new("best of many runs", name, claim, move |share| {
        let probability = |p: f64| {
            let ratio = Ratio::from_f64(p).expect("finite");
            Probability::new(ratio).expect("below one")
        };
        let survey = RandomizedResponse::new(probability(keep(share)), 2);
        let survey = survey.expect("two categories");
        let repeats = Repeats::TruncatedNegativeBinomial {
            eta_plus_one: Ratio::from(2_u64),
            gamma: probability(GAMMA),
        };
        let kind = survey.event().mechanism().clone();
        let search = BestOf::new(repeats, vec![kind]).expect("a law");
        let parts = Rc::new((survey, search));
        both(true, false, move |truth, coins| {
            let (survey, search) = &*parts;
            let best = search.choose(
                coins,
                |_, coins| said(survey, *truth, coins),
                |said| Ok(if *said { 0.0 } else { 1.0 }),
            );
            let best = best.expect("the stream is open");
            best.is_some_and(|best| best.value)
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

fn said<E: Entropy>(
    survey: &RandomizedResponse,
    truth: bool,
    entropy: &mut E,
) -> whit_mechanism::Result<bool> {
    Ok(*survey.release_bool(Secret::new(truth), entropy)?.value())
}
