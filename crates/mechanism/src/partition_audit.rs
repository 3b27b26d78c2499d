//! Doubts about [`PartitionSelection`] and [`PartitionThreshold`] under replace-one, and about their count of what is not shown.

use std::collections::BTreeMap;

use whit_audit::{Enumeration, Verdict, enumerate};
use whit_core::{Delta, Epsilon, Event, Mechanism, ReplaceOne, Secret};
use whit_testkit::Seeded;

use crate::additive::Noise;
use crate::doubt::{TapeEntropy, judge, scale, seed};
use crate::{PartitionSelection, PartitionThreshold};

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("an epsilon")
}

fn selection(e: f64, d: f64, keys_max: u32) -> PartitionSelection<ReplaceOne> {
    let delta = Delta::new(d).expect("a delta");
    PartitionSelection::new(epsilon(e), delta, keys_max).expect("in range")
}

fn threshold(d: f64) -> PartitionThreshold<ReplaceOne> {
    let noise = Noise::Laplace(scale(1, 2));
    PartitionThreshold::new(&noise, Delta::new(d).expect("a delta"), 1).expect("in range")
}

fn parts(event: &Event) -> Vec<Mechanism> {
    let Mechanism::Composition(parts) = event.mechanism() else {
        panic!("one part: {event:?}")
    };
    parts.clone()
}

/// Two keys with so many units each.
fn two(here: u64, there: u64) -> Secret<BTreeMap<u8, u64>> {
    Secret::new(BTreeMap::from([(1, here), (2, there)]))
}

/// The largest `δ` that is sure to be needed at `e` when one unit leaves the first key and comes to the second, over some numbers of
/// units and all tapes.
fn largest<T: Ord>(run: impl Fn(u64, u64) -> Enumeration<T>, e: f64) -> f64 {
    let mut largest = 0.0_f64;
    for (here, there) in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 2), (5, 4)] {
        let (a, b) = (run(here, there), run(here - 1, there + 1));
        let open = (a.unresolved() + b.unresolved()) as f64 / 2_f64.powi(a.bits() as i32);
        assert!(open < 0.02, "{open}");
        for (one, other) in [(&a, &b), (&b, &a)] {
            largest = largest.max(one.hockey_stick_lower(other, epsilon(e)));
        }
    }
    largest
}

#[test]
fn selection_of_a_replaced_unit() {
    let (e, d) = (0.5, 0.125);
    let honest = selection(e, d, 1);
    // Basic composition of what the event names.
    let (mut claimed_e, mut claimed_d) = (0.0, 0.0);
    for part in parts(&honest.event()) {
        let Mechanism::Approximate { epsilon, delta } = part else {
            panic!("not an upper bound: {part:?}")
        };
        claimed_e += epsilon.to_f64_up();
        claimed_d += delta.ratio().to_f64_up();
    }
    let needed = |of: &PartitionSelection<ReplaceOne>, e| {
        let run = |here, there| {
            enumerate::<1, Vec<u8>>(16, |tape| {
                let release = of.release(two(here, there), &mut TapeEntropy(Some(tape)));
                release.expect("one release").into_value().shown
            })
        };
        largest(run, e)
    };
    let found = needed(&honest, claimed_e);
    assert!(found <= claimed_d && found > 0.45 * claimed_d, "{found}");
    // Teeth: the claim for a unit that is added, and a curve that rises faster than it says.
    assert!(needed(&honest, e) > 1.1 * d);
    assert!(needed(&selection(e, 2.5 * d, 1), claimed_e) > claimed_d);
}

/// The guarantee of Laplace noise of scale 1/2 is `(4, δ)`; with the claim for a unit that is added, `(2, δ)`, it would be convicted.
#[test]
fn noisy_counts_of_a_replaced_unit() {
    // Pr[Z >= 2] = 0.0161 and Pr[Z >= 1] = 0.119.
    let d = 0.02;
    let (honest, early) = (threshold(d), threshold(0.12));
    assert_eq!((honest.threshold(), early.threshold()), (2, 1));
    let parts = parts(&honest.event());
    let Mechanism::DiscreteLaplace {
        scale,
        sensitivity_l1,
        ..
    } = &parts[0]
    else {
        panic!("Laplace noise")
    };
    let claimed = sensitivity_l1.to_f64_up() / scale.ratio().to_f64_down();
    let needed = |of: &PartitionThreshold<ReplaceOne>, e| {
        let run = |here, there| {
            enumerate::<1, Vec<(u8, i64)>>(20, |tape| {
                let release = of.release(two(here, there), &mut TapeEntropy(Some(tape)));
                release.expect("one release").into_value().shown
            })
        };
        largest(run, e)
    };
    // A lower bound: e^4 times what is not walked to its end is missing.
    let found = needed(&honest, claimed);
    assert!(found <= d && found > 0.005, "{found}");
    assert!(needed(&honest, claimed / 2.0) > 1.5 * d);
    assert!(needed(&early, claimed) > d, "greater or equal");
}

/// The rest alone: a unit whose keys are hidden, against one whose keys are shown anyway. It counts as often as it has keys. The claim is that
/// of the event, unless another is given.
fn seen(keys_max: u32, claim: Option<f64>) -> Verdict {
    let noise = Noise::Laplace(scale(u128::from(keys_max), 1));
    let of = selection(1.0, 1e-9, keys_max).with_other(&noise);
    let parts = parts(&of.event());
    let Some(Mechanism::DiscreteLaplace { sensitivity_l1, .. }) = parts.last() else {
        panic!("the rest has noise of its own")
    };
    let claimed = sensitivity_l1.to_f64_up() / f64::from(keys_max);
    let units = |hidden: u64| {
        let few = (0..keys_max).map(|key| (key, hidden));
        let many = (100..100 + keys_max).map(|key| (key, 1001 - hidden));
        few.chain(many).collect::<BTreeMap<u32, u64>>()
    };
    let (with, without) = (units(1), units(0));
    let (mut one, mut other) = (Seeded::new(seed(627)), Seeded::new(seed(628)));
    let event = |units: &BTreeMap<u32, u64>, entropy: &mut Seeded| {
        let release = of.release(Secret::new(units.clone()), entropy);
        let rest = release.expect("entropy").into_value().other;
        rest.expect("asked for") >= i64::from(keys_max)
    };
    judge(
        claim.unwrap_or(claimed),
        // Of hidden keys that are shown after all.
        f64::from(keys_max) * 1e-9,
        100_000,
        || event(&with, &mut one),
        || event(&without, &mut other),
    )
}

#[test]
fn falsifier_of_the_rest() {
    for keys_max in [1, 3] {
        let verdict = seen(keys_max, None);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.92,
            "{verdict:?}"
        );
    }
}

#[test]
fn falsifier_of_the_rest_has_teeth() {
    assert!(
        seen(3, Some(1.0 / 3.0)).convicted,
        "a unit with three keys that pays for one"
    );
    assert!(seen(1, Some(0.9)).convicted, "a tenth too little");
}
