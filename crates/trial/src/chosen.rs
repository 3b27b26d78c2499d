//! Mechanisms that choose: an option by its score, or which keys to show.

use std::collections::BTreeMap;
use std::rc::Rc;

use whit_core::{AddRemove, Delta, Epsilon, Ratio, Secret, Sensitivity};
use whit_mechanism::{Exponential, PartitionSelection, PermuteAndFlip, Scores};

use crate::case::{Case, Claim, EPSILONS, Share, both};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in EPSILONS {
        // Half of the epsilon is the loss, and a loss of an eighth would take more samples.
        for options in [2, 3, 4].into_iter().filter(|_| epsilon >= 0.5) {
            cases.push(exponential(epsilon, options));
        }
        cases.push(permute_and_flip(epsilon));
    }
    for delta in [0.06, 0.1, 0.2, 0.3] {
        for epsilon in [0.5, 1.0, 2.0, 3.0] {
            cases.push(partition_selection(epsilon, delta));
        }
    }
    cases
}

/// The scores of two neighbours: the first two options change places, each by the sensitivity.
fn swapped(options: usize) -> (Vec<i64>, Vec<i64>) {
    let (mut one, mut other) = (vec![0; options], vec![0; options]);
    (one[0], other[1]) = (1, 1);
    (one, other)
}

fn scores(options: usize) -> Scores<AddRemove> {
    let sensitivity = Sensitivity::new(Ratio::one());
    Scores::new(options as u64, &sensitivity).expect("two options or more")
}

fn ratio(epsilon: f64, share: Share) -> Ratio {
    Ratio::from_f64(epsilon / share.value()).expect("finite")
}

/// Option 0 has weight `e^{ε/2}` in one world and 1 in the other, and the sum of weights is the same: the loss is `ε/2`.
fn exponential(epsilon: f64, options: usize) -> Case {
    let name = format!("epsilon {epsilon}, {options} options");
    Case::new(
        "exponential",
        name,
        Claim::loss(epsilon / 2.0),
        move |share| {
            let mechanism = Rc::new(Exponential::new(ratio(epsilon, share), scores(options)));
            let (one, other) = swapped(options);
            both(one, other, move |x, coins| {
                let release = mechanism.release(Secret::new(x.clone()), coins);
                *release.expect("the stream is open").value() == 0
            })
        },
    )
    .with_chances(move |share| {
        let weight = libm::exp(epsilon / 2.0 / share.value());
        [weight, 1.0].map(|own| own / (weight + (options - 1) as f64))
    })
}

/// Of two options the worse one is chosen with probability `e^{-ε/2}/2`.
fn permute_and_flip(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 2 options");
    let chances = move |share: Share| {
        let worse = libm::exp(-epsilon / 2.0 / share.value()) / 2.0;
        [1.0 - worse, worse]
    };
    let [better, worse] = chances(Share::ALL);
    let loss = Claim::loss(libm::log(better / worse));
    Case::new("permute and flip", name, loss, move |share| {
        let mechanism = Rc::new(PermuteAndFlip::new(ratio(epsilon, share), scores(2)));
        let (one, other) = swapped(2);
        both(one, other, move |x, coins| {
            let release = mechanism.release(Secret::new(x.clone()), coins);
            *release.expect("the stream is open").value() == 0
        })
    })
    .with_chances(chances)
}

/// A key of one unit is shown with probability `δ`, and one of none never. The fault shows it as much more often as less noise would.
fn partition_selection(epsilon: f64, delta: f64) -> Case {
    let name = format!("epsilon {epsilon}, delta {delta}");
    let claim = Claim::delta(epsilon, Delta::new(delta).expect("below one"));
    let shown = move |share: Share| (delta / share.value()).min(0.99);
    Case::new("partition selection", name, claim, move |share| {
        let units = Epsilon::new(epsilon).expect("positive");
        let shown = Delta::new(shown(share)).expect("below one");
        let mechanism = PartitionSelection::<AddRemove>::new(units, shown, 1);
        let mechanism = Rc::new(mechanism.expect("a delta that is not tiny"));
        let alone = BTreeMap::from([("key", 1_u64)]);
        both(alone, BTreeMap::new(), move |x, coins| {
            let release = mechanism.release(Secret::new(x.clone()), coins);
            !release
                .expect("the stream is open")
                .value()
                .shown
                .is_empty()
        })
    })
    .with_chances(move |share| [shown(share), 0.0])
}
