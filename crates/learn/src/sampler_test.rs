//! Each sampler draws what its event says, and no more often than was paid for.

use std::collections::BTreeMap;

use super::*;
use whit_audit::enumerate::enumerate;
use whit_core::{Probability, Ratio};
use whit_testkit::{FailingEntropy, Seeded, SeededBits};

fn ratio(numerator: u128, denominator: u128) -> Ratio {
    Ratio::new(numerator, denominator).expect("not zero")
}

fn sampler(sampling: &Sampling, rows: usize, steps: u64) -> Sampler {
    Sampler::new(sampling, rows as u64, rows, steps, 0).expect("fits")
}

fn poisson(numerator: u128, denominator: u128) -> Sampling {
    Sampling::Poisson {
        rate: Probability::new(ratio(numerator, denominator)).expect("a share"),
    }
}

fn sorted(mut batch: Vec<u32>) -> Vec<u32> {
    batch.sort_unstable();
    batch
}

/// Every path of coins: sets of three out of five, each with one tenth; also after another draw, from the order that it left.
#[test]
fn samples_of_fixed_size_are_uniform() {
    let fixed = Sampling::FixedSize { size: 3, of: 5 };
    let found = enumerate::<4, _>(20, |tape| {
        let mut sampler = sampler(&fixed, 5, 2);
        // A first draw from other coins.
        sampler.draw_from(&mut SeededBits::new(3));
        sorted(sampler.draw_from(tape))
    });
    let tenth = ratio(1, 10).as_rbig().clone();
    let nothing = Ratio::zero().as_rbig().clone();
    let violations = found.violations(|set| {
        let fits = set.len() == 3 && set.windows(2).all(|pair| pair[0] < pair[1]);
        let exact = if fits { tenth.clone() } else { nothing.clone() };
        (exact.clone(), exact)
    });
    assert!(violations.is_empty(), "{violations:?}");
    assert_eq!(found.masses().len(), 10);
    assert!(found.unresolved() < 1 << 19);
}

/// Two draws of one out of three: all nine pairs alike, so the second does not depend on the first.
#[test]
fn samples_of_fixed_size_are_independent() {
    let fixed = Sampling::FixedSize { size: 1, of: 3 };
    let found = enumerate::<2, _>(20, |tape| {
        let mut sampler = sampler(&fixed, 3, 2);
        [(); 2].map(|()| {
            let batch = sampler.draw_from(tape);
            sampler.taken += 1;
            batch
        })
    });
    let ninth = ratio(1, 9).as_rbig().clone();
    let violations = found.violations(|_| (ninth.clone(), ninth.clone()));
    assert!(
        violations.is_empty() && found.masses().len() == 9,
        "{violations:?}"
    );
}

/// Three examples in three bins: all 27 ways alike, and everybody takes part once in an epoch.
#[test]
fn balls_fall_into_bins_independently() {
    let bins = Sampling::BallsInBins { bins: 3 };
    let found = enumerate::<2, _>(20, |tape| {
        let mut sampler = sampler(&bins, 3, 3);
        [(); 3].map(|()| {
            let batch = sampler.draw_from(tape);
            sampler.taken += 1;
            sorted(batch)
        })
    });
    let each = ratio(1, 27).as_rbig().clone();
    let violations = found.violations(|epoch| {
        assert_eq!(sorted(epoch.concat()), [0, 1, 2]);
        (each.clone(), each.clone())
    });
    assert!(
        violations.is_empty() && found.masses().len() == 27,
        "{violations:?}"
    );
}

/// Four examples in two batches: all six halves alike; sizes are public.
#[test]
fn shuffled_batches_cut_a_uniform_order() {
    let shuffled = Sampling::Shuffled { batches: 2 };
    let found = enumerate::<4, _>(20, |tape| {
        let mut sampler = sampler(&shuffled, 4, 2);
        [(); 2].map(|()| {
            let batch = sampler.draw_from(tape);
            sampler.taken += 1;
            sorted(batch)
        })
    });
    let sixth = ratio(1, 6).as_rbig().clone();
    let violations = found.violations(|[first, second]| {
        assert_eq!((first.len(), second.len()), (2, 2));
        (sixth.clone(), sixth.clone())
    });
    assert!(
        violations.is_empty() && found.masses().len() == 6,
        "{violations:?}"
    );
    let mut uneven = sampler(&Sampling::Shuffled { batches: 4 }, 10, 8);
    let mut entropy = Seeded::new(5);
    for _ in 0..2 {
        let epoch: Vec<Vec<u32>> = (0..4)
            .map(|_| uneven.draw(&mut entropy).expect("paid").expose().to_vec())
            .collect();
        assert_eq!(epoch.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 2, 3]);
        assert_eq!(sorted(epoch.concat()), (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn epochs_are_drawn_afresh() {
    let mut entropy = Seeded::new(8);
    let mut bins = sampler(&Sampling::BallsInBins { bins: 4 }, 1000, 8);
    let epochs: Vec<Vec<Vec<u32>>> = (0..2)
        .map(|_| {
            (0..4)
                .map(|_| bins.draw(&mut entropy).expect("paid").expose().to_vec())
                .collect()
        })
        .collect();
    assert_ne!(epochs[0], epochs[1]);
    for epoch in epochs {
        let mut times = BTreeMap::new();
        for row in epoch.concat() {
            *times.entry(row).or_insert(0) += 1;
        }
        assert!(times.len() == 1000 && times.values().all(|&times| times == 1));
    }
}

#[test]
fn no_more_steps_than_were_paid_for() {
    let mut entropy = Seeded::new(1);
    for sampling in [
        poisson(1, 2),
        Sampling::All,
        Sampling::BallsInBins { bins: 2 },
    ] {
        let mut sampler = sampler(&sampling, 10, 3);
        for taken in 0..3 {
            assert_eq!(sampler.taken(), taken);
            assert!(sampler.draw(&mut entropy).is_ok());
        }
        for _ in 0..2 {
            assert!(matches!(
                sampler.draw(&mut entropy),
                Err(Error::StepsTaken { steps: 3 })
            ));
        }
        let mut late = Sampler::new(&sampling, 10, 10, 3, 4).expect("made");
        assert!(matches!(
            late.draw(&mut entropy),
            Err(Error::StepsTaken { .. })
        ));
    }
}

#[test]
fn without_entropy_nobody_is_drawn_and_no_step_is_taken() {
    let mut sampler = sampler(&poisson(1, 2), 10, 3);
    assert!(matches!(
        sampler.draw(&mut FailingEntropy),
        Err(Error::Entropy(_))
    ));
    assert_eq!(sampler.taken(), 0);
}

/// Under replace-one the number of examples is public and declared; under add/remove nothing is compared with it.
#[test]
fn declared_numbers_are_checked_where_they_are_public() {
    let made = |sampling: &Sampling, rows| Sampler::new(sampling, 10, rows, 5, 0).map(|_| ());
    for public in [
        Sampling::FixedSize { size: 3, of: 10 },
        Sampling::Shuffled { batches: 5 },
    ] {
        assert_eq!(made(&public, 10), Ok(()));
        let refused = made(&public, 11).expect_err("another number");
        assert!(!refused.to_string().contains("11"), "{refused}");
    }
    for secret in [
        poisson(1, 2),
        Sampling::BallsInBins { bins: 5 },
        Sampling::All,
    ] {
        assert_eq!(made(&secret, 11), Ok(()));
    }
}

#[test]
fn runs_are_taken_up_between_epochs() {
    let after = |sampling: &Sampling, taken| Sampler::new(sampling, 10, 10, 50, taken).map(|_| ());
    for epochs in [
        Sampling::BallsInBins { bins: 5 },
        Sampling::Shuffled { batches: 5 },
    ] {
        assert_eq!(after(&epochs, 10), Ok(()));
        let refused = after(&epochs, 12);
        assert_eq!(
            refused,
            Err(Error::MiddleOfEpoch {
                taken: 12,
                epoch: 5
            })
        );
    }
    assert_eq!(after(&poisson(1, 2), 12), Ok(()));
}

/// More bins than there is memory for.
#[test]
fn a_plan_of_many_bins_takes_no_memory() {
    let mut many = sampler(&Sampling::BallsInBins { bins: 1 << 53 }, 100, 10);
    for _ in 0..10 {
        let batch = many.draw(&mut Seeded::new(2)).expect("paid");
        assert!(batch.expose().len() < 100);
    }
}

/// Three examples in two bins: all eight ways alike, and each takes part in every second step, in the one that it drew.
#[test]
fn turns_are_drawn_once_and_kept() {
    let found = enumerate::<2, _>(20, |tape| {
        let mut sampler = Sampler::cyclic(2, 3, 6, 0, 2).expect("fits");
        [(); 6].map(|()| {
            let batch = sampler.draw_from(tape);
            sampler.taken += 1;
            sorted(batch)
        })
    });
    let eighth = ratio(1, 8).as_rbig().clone();
    let violations = found.violations(|_| (eighth.clone(), eighth.clone()));
    assert!(violations.is_empty(), "{violations:?}");
    assert_eq!(found.masses().len(), 8);
    for batches in found.masses().keys() {
        let mut epoch = [&batches[0][..], &batches[1]].concat();
        epoch.sort_unstable();
        assert_eq!(epoch, [0, 1, 2]);
        assert!(batches[2..].iter().zip(&batches[..]).all(|(a, b)| a == b));
    }
}

#[test]
fn turns_begin_with_an_epoch() {
    assert!(Sampler::cyclic(5, 9, 20, 10, 5).is_ok());
    let middle = Sampler::cyclic(5, 9, 20, 11, 5);
    assert!(matches!(
        middle,
        Err(Error::MiddleOfEpoch {
            taken: 11,
            epoch: 5
        })
    ));
}

/// So that one example more changes no other batch than its own, nor the order in any.
#[test]
fn turns_are_in_the_order_of_rows() {
    let mut sampler = Sampler::cyclic(3, 50, 6, 0, 3).expect("fits");
    for _ in 0..6 {
        let batch = sampler.draw(&mut Seeded::new(8)).expect("seeded");
        assert!(batch.expose().len() > 1);
        assert!(batch.expose().windows(2).all(|pair| pair[0] > pair[1]));
    }
}
