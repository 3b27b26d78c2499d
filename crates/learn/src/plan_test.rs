//! Plans cost what golden values say, hold together, and are refused with what would pass.

use std::num::NonZeroUsize;

use super::*;
use crate::draft::SamplerDraft;
use crate::payment::Uncharged;
use whit_core::{Fault, Secret};
use whit_testkit::Seeded;

/// The published run on MNIST that a vector prices (pub-028): 256 of 60,000, 60 epochs, noise 1.1.
fn mnist() -> Draft {
    Draft {
        sampler: SamplerDraft::Poisson {
            rate: 0.004_266_666_666_666_667,
        },
        steps: 14_062,
        clip_norm: 1.5,
        adaptive: None,
        noise: NoiseDraft::Multiplier(1.1),
        delta: 1e-5,
        relation: Neighbours::AddRemove,
        examples_public: 60_000,
    }
}

fn paid(plan: &Plan, examples: usize) -> Result<Sampler> {
    plan.sampler(examples, Payment::uncharged(plan, Uncharged))
}

fn plan(draft: &Draft) -> Plan {
    Plan::new(draft).expect("a plan")
}

#[test]
fn a_plan_costs_what_the_vector_says() {
    let plan = plan(&mnist());
    let Summary {
        epsilon_lower,
        epsilon_upper,
        ..
    } = plan.summary();
    let golden = 2.381_596_921_424_357;
    assert!(epsilon_lower <= golden * (1.0 + 1e-9) && golden * (1.0 - 1e-9) <= epsilon_upper);
    assert!(epsilon_upper - epsilon_lower < 1e-6 * golden);
    // What a ledger is charged is what the plan shows.
    let paid = whit_accounting::price(plan.event(), plan.delta()).expect("priced");
    assert!((paid.epsilon.value() / epsilon_upper - 1.0).abs() < 1e-9);
}

#[test]
fn a_summary_has_the_fields_of_a_dry_run() {
    let shown = serde_json::to_value(plan(&mnist()).summary()).expect("plain data");
    assert_eq!(shown["sampler"], "poisson");
    assert_eq!(shown["relation"], "add_remove");
    assert_eq!(shown["steps"], 14_062);
    assert_eq!(shown["noise_multiplier"], 1.1);
    assert_eq!(shown["rate"], 0.004_266_666_666_666_667);
    assert_eq!(shown["delta"], 1e-5);
    assert!(shown["epsilon_lower"].is_number() && shown["epsilon_upper"].is_number());
    assert!((plan(&mnist()).expected_batch() - 256.0).abs() < 1e-9);
}

/// What the noise of a step says of itself is what the event of the run says of its steps: in both relations, for odd clip norms.
#[test]
fn noise_and_event_are_one() {
    for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        for clip_norm in [1.0, 0.1, 1.5, 1e-9, 1e9, 0.7] {
            let plan = plan(&Draft {
                relation,
                clip_norm,
                steps: 10,
                ..mnist()
            });
            let Mechanism::Sampled { steps, inner, .. } = plan.event().mechanism() else {
                panic!("a run");
            };
            let noise = plan.noise().expect("in range");
            let mut entropy = Seeded::new(1);
            let batch = paid(&plan, 5).and_then(|mut sampler| sampler.draw(&mut entropy));
            let released =
                noise.release(batch.expect("paid"), Secret::new(vec![0; 3]), &mut entropy);
            let said = released.expect("released").event().clone();
            assert_eq!(said, Event::new(relation, (**inner).clone()));
            assert_eq!(*steps, 10);
            let units = clip_norm / plan.grid();
            assert!((2_f64.powi(36)..2_f64.powi(37)).contains(&units), "{units}");
            // Standard deviation and distance in the units of gradients.
            let Mechanism::Gaussian {
                scale,
                sensitivity_l2_square,
            } = &**inner
            else {
                panic!("noise");
            };
            let sigma = scale.ratio().to_f64_up() * plan.grid();
            assert!((sigma / (1.1 * clip_norm) - 1.0).abs() < 1e-15);
            let distance = sensitivity_l2_square.to_f64_up().sqrt() * plan.grid();
            let norms = if relation == Neighbours::ReplaceOne {
                2.0
            } else {
                1.0
            };
            assert!((distance / (norms * clip_norm) - 1.0).abs() < 1e-15);
        }
    }
}

/// The noise that is added has the standard deviation that is paid for: 2,000 draws, within five of their own deviations.
#[test]
fn noise_has_its_scale() {
    let plan = plan(&Draft {
        steps: 1,
        ..mnist()
    });
    let noise = plan.noise().expect("in range");
    let mut entropy = Seeded::new(4);
    let batch = paid(&plan, 9).and_then(|mut sampler| sampler.draw(&mut entropy));
    let zeros = Secret::new(vec![0_i64; 2000]);
    let two = NonZeroUsize::new(2).expect("two");
    let released = noise.release_on(two, batch.expect("paid"), zeros, &mut entropy);
    let released = released.expect("released");
    let squares = released
        .value()
        .iter()
        .map(|&z| (z as f64 * plan.grid()).powi(2));
    let variance = squares.sum::<f64>() / 2000.0 / (1.1 * 1.5_f64).powi(2);
    assert!(
        (variance - 1.0).abs() < 5.0 * (2.0 / 2000.0_f64).sqrt(),
        "{variance}"
    );
}

/// pub-062: epsilon 1 at 1e-5 with a thousand steps at one in a hundred.
#[test]
fn calibrated_noise_keeps_its_target_and_is_hardly_more_than_needed() {
    let draft = Draft {
        sampler: SamplerDraft::Poisson { rate: 0.01 },
        steps: 1000,
        noise: NoiseDraft::Epsilon(1.0),
        ..mnist()
    };
    let plan = plan(&draft);
    let golden = 1.414_619_406_528_672_6;
    let found = plan.noise_multiplier();
    assert!(
        found >= golden * (1.0 - 1e-9) && found < golden * (1.0 + 1e-6),
        "{found}"
    );
    assert!(plan.epsilon().upper() <= 1.0 && plan.epsilon().lower() > 0.999_99);
    let again = Plan::new(&Draft {
        noise: NoiseDraft::Multiplier(found),
        ..draft
    });
    assert_eq!(again.expect("a plan").event(), plan.event());
}

/// Prices of balls in bins take a second each where there are several epochs, so few are asked for.
#[test]
fn balls_in_bins_are_calibrated_by_a_few_prices() {
    for (epsilon, steps) in [(0.5, 4), (4.0, 4)] {
        let sampler = SamplerDraft::BallsInBins { bins: 4 };
        let plan = plan(&Draft {
            sampler,
            steps,
            noise: NoiseDraft::Epsilon(epsilon),
            relation: sampler.relation(),
            ..mnist()
        });
        let found = plan.epsilon().upper();
        assert!(found <= epsilon && found >= 0.9999 * epsilon, "{found}");
    }
}

/// Samples of fixed size: what a search for the least noise goes by is not what the noise is priced by, and a target that can be kept was refused as a bug.
#[test]
fn noise_is_found_where_epsilon_is_priced_more_coarsely_than_delta() {
    for (size, steps, epsilon) in [(250, 60, 2.0), (50, 20, 0.5), (500, 200, 3.0)] {
        let sampler = SamplerDraft::FixedSize { size };
        let plan = plan(&Draft {
            sampler,
            steps,
            noise: NoiseDraft::Epsilon(epsilon),
            delta: 1e-6,
            relation: sampler.relation(),
            examples_public: 5000,
            ..mnist()
        });
        let found = plan.epsilon().upper();
        assert!(found <= epsilon && found >= 0.999 * epsilon, "{found}");
    }
}

#[test]
fn every_sampler_has_a_plan_under_its_relation() {
    for (sampler, word, rate) in [
        (SamplerDraft::Poisson { rate: 0.25 }, "poisson", 0.25),
        (SamplerDraft::FixedSize { size: 250 }, "fixed_size", 0.25),
        (SamplerDraft::BallsInBins { bins: 4 }, "balls_in_bins", 0.25),
        (SamplerDraft::Shuffled { batches: 4 }, "shuffled", 0.25),
        (SamplerDraft::All, "all", 1.0),
    ] {
        let draft = Draft {
            sampler,
            steps: 4,
            noise: NoiseDraft::Multiplier(4.0),
            relation: sampler.relation(),
            examples_public: 1000,
            ..mnist()
        };
        let plan = plan(&draft);
        let summary = plan.summary();
        assert_eq!((summary.sampler, summary.rate), (word, rate));
        assert_eq!(plan.expected_batch(), rate * 1000.0);
        let mut entropy = Seeded::new(6);
        let mut drawn = paid(&plan, 1000).expect("made");
        for _ in 0..4 {
            assert!(drawn.draw(&mut entropy).is_ok());
        }
        assert!(matches!(
            drawn.draw(&mut entropy),
            Err(Error::StepsTaken { steps: 4 })
        ));
    }
}

/// A shuffled run must not have the price of a Poisson one; nor is anything priced where nothing is proven.
#[test]
fn samplers_are_not_taken_for_one_another() {
    let with = |sampler, relation| {
        Plan::new(&Draft {
            sampler,
            steps: 400,
            noise: NoiseDraft::Multiplier(2.0),
            relation,
            examples_public: 1000,
            ..mnist()
        })
    };
    let poisson = SamplerDraft::Poisson { rate: 0.01 };
    let shuffled = SamplerDraft::Shuffled { batches: 100 };
    let cheap = with(poisson, Neighbours::ReplaceOne).expect("a plan");
    let dear = with(shuffled, Neighbours::ReplaceOne).expect("a plan");
    assert!(dear.epsilon().upper() > 4.0 * cheap.epsilon().upper());
    for (sampler, relation) in [
        (shuffled, Neighbours::AddRemove),
        (SamplerDraft::FixedSize { size: 10 }, Neighbours::AddRemove),
        (
            SamplerDraft::BallsInBins { bins: 10 },
            Neighbours::ReplaceOne,
        ),
    ] {
        let refused = with(sampler, relation).expect_err("not proven");
        assert_eq!(refused.code(), "sampler_mismatch");
    }
}

#[test]
fn the_cost_so_far_grows_to_the_whole() {
    let plan = plan(&mnist());
    assert_eq!(plan.epsilon_after(0), Ok(Bracket::ZERO));
    let mut last = 0.0;
    for taken in [1, 100, 7031, 14_061] {
        let found = plan.epsilon_after(taken).expect("priced");
        assert!(
            found.upper() > last && found.lower() <= found.upper(),
            "{taken}: {found:?}"
        );
        last = found.upper();
    }
    assert!(last <= plan.epsilon().upper());
    for all in [14_062, u64::MAX] {
        assert_eq!(plan.epsilon_after(all), Ok(plan.epsilon()));
    }
    let half = plan.epsilon_after(7031).expect("priced").upper();
    let shorter = super::Plan::new(&Draft {
        steps: 7031,
        ..mnist()
    });
    assert_eq!(shorter.expect("a plan").epsilon().upper(), half);
}

#[test]
fn bad_numbers_are_refused_with_what_would_pass() {
    let check = |draft: Draft, what: &str| {
        let refused = Plan::new(&draft).expect_err(what);
        let text = format!("{refused}; {}", refused.suggestion());
        assert!(
            refused.code() == "plan_out_of_range" && text.contains(what) && text.contains("give"),
            "{text}"
        );
    };
    for rate in [0.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
        let sampler = SamplerDraft::Poisson { rate };
        check(Draft { sampler, ..mnist() }, "rate");
    }
    for clip_norm in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        check(
            Draft {
                clip_norm,
                ..mnist()
            },
            "clip",
        );
    }
    for delta in [0.0, 1.0, -1e-9, f64::NAN] {
        check(Draft { delta, ..mnist() }, "delta");
    }
    for steps in [0, u64::MAX] {
        check(Draft { steps, ..mnist() }, "steps");
    }
    for given in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let noise = NoiseDraft::Multiplier(given);
        check(Draft { noise, ..mnist() }, "noise_multiplier");
        let noise = NoiseDraft::Epsilon(given);
        check(Draft { noise, ..mnist() }, "epsilon");
    }
    // The search for its noise took a minute, in silence.
    let noise = NoiseDraft::Epsilon(1e9);
    check(Draft { noise, ..mnist() }, "at most 10000");
    for size in [0, 60_001] {
        let (sampler, relation) = (SamplerDraft::FixedSize { size }, Neighbours::ReplaceOne);
        check(
            Draft {
                sampler,
                relation,
                ..mnist()
            },
            "batch size",
        );
    }
    let sampler = SamplerDraft::BallsInBins { bins: 0 };
    check(Draft { sampler, ..mnist() }, "bins");
    let sampler = SamplerDraft::Shuffled { batches: 0 };
    check(Draft { sampler, ..mnist() }, "batches");
    check(
        Draft {
            examples_public: 0,
            ..mnist()
        },
        "n_public",
    );
}

/// 256 on average: in five hundred batches of the declared number of examples none reaches the cap.
#[test]
fn batches_stay_below_the_cap() {
    let plan = plan(&mnist());
    let cap = plan.batch_cap() as usize;
    assert_eq!(cap, 448);
    let mut sampler = paid(&plan, 60_000).expect("made");
    let mut entropy = Seeded::new(11);
    for _ in 0..500 {
        let batch = sampler.draw(&mut entropy).expect("paid");
        assert!(batch.expose().len() < cap);
    }
}

/// Whoever pays for much noise must not add little: a batch is released by the noise of its own plan, and by no other's.
#[test]
fn a_batch_is_not_released_with_the_noise_of_another_plan() {
    let drawn = |plan: &Plan, entropy: &mut Seeded| {
        let batch = paid(plan, 9).and_then(|mut sampler| sampler.draw(entropy));
        batch.expect("paid")
    };
    let zeros = || Secret::new(vec![0_i64; 3]);
    let mut entropy = Seeded::new(12);
    let dear = plan(&mnist());
    let few = Draft {
        steps: 10,
        ..mnist()
    };
    let cheap = plan(&Draft {
        noise: NoiseDraft::Multiplier(1e6),
        ..few.clone()
    });
    let noise = dear.noise().expect("in range");
    // Other noise, and other steps: each is another event.
    for other in [cheap, plan(&few)] {
        let batch = drawn(&other, &mut entropy);
        let refused = noise.release(batch, zeros(), &mut entropy);
        assert!(refused.is_err_and(|error| error == Error::OtherPlan));
        let two = NonZeroUsize::new(2).expect("two");
        let batch = drawn(&other, &mut entropy);
        assert!(noise.release_on(two, batch, zeros(), &mut entropy).is_err());
    }
    // The same plan made twice is the same plan.
    let batch = drawn(&plan(&mnist()), &mut entropy);
    assert!(noise.release(batch, zeros(), &mut entropy).is_ok());
}

/// The count is part of the event: sum and count together cost what the multiplier costs, and leaving the count out would cost less.
#[test]
fn a_clip_norm_that_moves_is_paid_for() {
    let adaptive = crate::draft::AdaptiveDraft {
        quantile: 0.5,
        rate: 0.2,
        count_noise: 1.0,
    };
    for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        let steady = Draft {
            relation,
            steps: 100,
            ..mnist()
        };
        let moves = Draft {
            adaptive: Some(adaptive),
            ..steady.clone()
        };
        let (steady, moving) = (plan(&steady), plan(&moves));
        let (one, other) = (steady.epsilon().upper(), moving.epsilon().upper());
        assert!(other <= one && other > one * (1.0 - 1e-5), "{one} {other}");
        let shown = moving.summary().adaptive.expect("it moves");
        let sum = shown.sum_noise_multiplier;
        let effective = (sum.powi(-2) + 0.25).powf(-0.5);
        let asked = 1.1..1.1 * (1.0 + 1e-6);
        assert!(asked.contains(&effective), "{effective}");
        let alone = plan(&Draft {
            noise: NoiseDraft::Multiplier(sum),
            ..Draft {
                adaptive: None,
                ..moves
            }
        });
        assert!(alone.epsilon().upper() < 0.95 * other);
    }
}

/// Noise is that of the pair, in the units of whatever norm a step has; what each release says of itself is in the event.
#[test]
fn both_releases_of_a_step_add_up_to_its_event() {
    let draft = Draft {
        adaptive: Some(crate::draft::AdaptiveDraft {
            quantile: 0.5,
            rate: 0.2,
            count_noise: 1.0,
        }),
        steps: 10,
        ..mnist()
    };
    let plan = plan(&draft);
    let noise = plan.noise().expect("in range");
    let mut entropy = Seeded::new(1);
    let mut sampler = paid(&plan, 5).expect("rows");
    let of = |event: &Event| match event.mechanism() {
        Mechanism::Gaussian {
            scale,
            sensitivity_l2_square,
        } => sensitivity_l2_square
            .checked_div(&(scale.ratio() * scale.ratio()))
            .expect("noise"),
        other => panic!("{other:?}"),
    };
    for norm in [1.5, 0.3, 1e-9, 1e9] {
        let batch = sampler.draw(&mut entropy).expect("paid");
        let secrets = (Secret::new(vec![0; 3]), Secret::new(0));
        let both = noise.release_both(NonZeroUsize::MIN, batch, norm, secrets, &mut entropy);
        let both = both.expect("released");
        let Mechanism::Sampled { inner, .. } = plan.event().mechanism() else {
            panic!("a run");
        };
        let whole = of(&Event::new(plan.relation(), (**inner).clone()));
        assert_eq!(&of(both.sum.event()) + &of(both.count.event()), whole);
    }
    // The sum alone is not what this plan releases, nor is a pair what a steady one does.
    let batch = sampler.draw(&mut entropy).expect("paid");
    let alone = noise.release(batch, Secret::new(vec![0; 3]), &mut entropy);
    assert_eq!(alone.err(), Some(Error::Unbound));
    let steady = super::Plan::new(&Draft {
        adaptive: None,
        ..draft
    });
    let steady = steady.expect("a plan");
    let batch = paid(&steady, 5).and_then(|mut sampler| sampler.draw(&mut entropy));
    let secrets = (Secret::new(vec![0; 3]), Secret::new(0));
    let pair = steady.noise().expect("in range").release_both(
        NonZeroUsize::MIN,
        batch.expect("paid"),
        1.5,
        secrets,
        &mut entropy,
    );
    assert_eq!(pair.err(), Some(Error::Unbound));
}

/// Above `steps · ln(1/(1-rate))` removing an example has no loss at all, and a coarser search would leave a tenth of epsilon unused.
#[test]
fn calibrated_noise_is_tight_for_large_targets_too() {
    let draft = Draft {
        sampler: SamplerDraft::Poisson { rate: 0.01 },
        steps: 100,
        noise: NoiseDraft::Epsilon(2.0),
        ..mnist()
    };
    assert!(2.0 > 100.0 * (1.0_f64 / 0.99).ln());
    let found = plan(&draft).epsilon().upper();
    assert!(found <= 2.0 && found > 1.999, "{found}");
}

fn cyclic(bins: u64, steps: u64, factor: crate::draft::FactorDraft) -> Draft {
    Draft {
        sampler: SamplerDraft::Cyclic { bins, factor },
        steps,
        ..mnist()
    }
}

/// One epoch of independent noise is one Gaussian mechanism for each example; four epochs cost as much as one with half the noise.
#[test]
fn cyclic_runs_cost_what_their_turns_cost() {
    use crate::draft::FactorDraft::{Banded, Tree};
    let cost = |bins, steps, multiplier, factor| {
        let noise = NoiseDraft::Multiplier(multiplier);
        let draft = cyclic(bins, steps, factor);
        plan(&Draft { noise, ..draft }).epsilon().upper()
    };
    let once = cost(100, 100, 2.0, Banded { band: 1 });
    // The Gaussian mechanism of noise 2 at delta 1e-5, by the formula of [BW18] and another program.
    assert!((once / 1.9930914044151204 - 1.0).abs() < 1e-6, "{once}");
    let four = cost(100, 400, 4.0, Banded { band: 1 });
    assert!((four / once - 1.0).abs() < 1e-9);
    // Nine nodes hold a step of 256.
    let tree = cost(256, 256, 6.0, Tree);
    assert!((tree / once - 1.0).abs() < 1e-9);
    let kept = plan(&cyclic(10, 100, Banded { band: 8 }));
    let after: Vec<f64> = [0, 1, 10, 11, 50, 100]
        .map(|taken| kept.epsilon_after(taken).expect("priced").upper())
        .to_vec();
    assert!(after.windows(2).all(|pair| pair[0] < pair[1]), "{after:?}");
    assert_eq!(after[5], kept.epsilon().upper());
}

#[test]
fn cyclic_noise_is_calibrated() {
    use crate::draft::FactorDraft::{Banded, Tree};
    for factor in [Banded { band: 16 }, Tree] {
        for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            let draft = cyclic(50, 1000, factor);
            let noise = NoiseDraft::Epsilon(3.0);
            let plan = plan(&Draft {
                noise,
                relation,
                ..draft
            });
            let found = plan.epsilon().upper();
            assert!((2.9999..=3.0).contains(&found), "{found}");
            let shown = plan.summary().cyclic.expect("cyclic");
            assert_eq!((shown.bins, shown.participations), (50, 20));
        }
    }
}

/// Where an example is replaced, what it adds may turn around: twice as far, for the same noise.
#[test]
fn cyclic_runs_count_replaced_examples_twice() {
    use crate::draft::FactorDraft::{Banded, Tree};
    for factor in [Banded { band: 16 }, Tree] {
        let square = |relation| {
            let noise = NoiseDraft::Multiplier(3.0);
            let draft = cyclic(50, 1000, factor);
            let plan = plan(&Draft {
                noise,
                relation,
                ..draft
            });
            let Mechanism::Gaussian {
                scale,
                sensitivity_l2_square,
            } = plan.event().mechanism().clone()
            else {
                panic!("another event");
            };
            (scale, sensitivity_l2_square)
        };
        let (one, removed) = square(Neighbours::AddRemove);
        let (other, replaced) = square(Neighbours::ReplaceOne);
        assert_eq!(one, other);
        assert_eq!(&removed * &Ratio::from(4_u64), replaced);
    }
}

#[test]
fn cyclic_plans_that_make_no_sense_are_refused() {
    use crate::draft::FactorDraft::Banded;
    let adaptive = Some(crate::draft::AdaptiveDraft {
        quantile: 0.5,
        rate: 0.2,
        count_noise: 10.0,
    });
    let banded = cyclic(50, 1000, Banded { band: 4 });
    let code = |draft: &Draft| Plan::new(draft).err().map(|error| error.code());
    assert_eq!(
        code(&Draft {
            adaptive,
            ..banded.clone()
        }),
        Some("plan_word")
    );
    assert_eq!(
        code(&cyclic(0, 10, Banded { band: 4 })),
        Some("plan_out_of_range")
    );
    assert_eq!(
        code(&cyclic(5, 10, Banded { band: 0 })),
        Some("plan_out_of_range")
    );
    let noise = NoiseDraft::Multiplier(32_769.0);
    assert_eq!(
        code(&Draft {
            noise,
            ..banded.clone()
        }),
        Some("plan_out_of_range")
    );
    // Its sums leave through a stream, and no other noise is made for them.
    assert!(plan(&banded).noise().is_err());
    assert!(plan(&mnist()).correlated().expect("in range").is_none());
}
