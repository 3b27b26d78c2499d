use super::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use whit_audit::Ruling;
use whit_testkit::Seeded;

fn recipe(noise: &str) -> Recipe {
    let text = format!(
        "[data]\npath = \"none.csv\"\nlabel = \"y\"\nclasses = 2\nn_public = 60\n\
         [model]\nkind = \"logistic\"\n\
         [plan]\nsampler = \"poisson\"\nrate = 0.5\nsteps = 20\nclip = 1.0\n{noise}\ndelta = 1e-5\n\
         [optimizer]\nkind = \"sgd\"\nrate = 0.05\n"
    );
    toml::from_str(&text).expect("a plan")
}

fn data() -> Dataset {
    let mut draw = crate::layer::oracle::draws(7);
    let features = (0..60 * 6).map(|at| if at % 6 == 5 { 0.0 } else { draw() });
    let labels = (0..60).map(|row| row % 2).collect();
    Dataset::with_classes(vec![6], features.collect(), labels, 2).expect("fits")
}

fn attack(recipe: &Recipe, seed: u64) -> EpsilonBound {
    let plan = recipe.plan().expect("priced");
    let seeds = AtomicU64::new(seed);
    let trainings = AtomicUsize::new(0);
    let attack = ClipBkd {
        groups: vec![1, 2],
        trials: 2000,
        threads: NonZeroUsize::MIN,
    };
    let found = attack.run(
        (recipe, &plan),
        data(),
        Alpha::new(1e-6).expect("in range"),
        || Seeded::new(seeds.fetch_add(1, Ordering::Relaxed)),
        |done| {
            trainings.fetch_add(done, Ordering::Relaxed);
        },
    );
    assert_eq!(trainings.into_inner(), 6000);
    found.expect("scores")
}

/// An honest run is not convicted, whatever its noise; a run with a thirtieth of the noise is, at the claim of the whole.
#[test]
fn clip_bkd_convicts_a_run_with_little_noise_and_no_honest_one() {
    let honest = recipe("noise_multiplier = 6.0");
    let claim = claimed(&honest.plan().expect("priced")).expect("a bound");
    assert!(claim.epsilon.value() < 3.0, "{claim:?}");
    assert_ne!(attack(&honest, 1).ruling(claim), Ruling::Violated);
    let twin = attack(&recipe("noise_multiplier = 0.2"), 100_000);
    assert_eq!(twin.ruling(claim), Ruling::Violated, "{twin:?}");
}

#[test]
fn a_white_box_audit_convicts_a_plan_that_adds_less_noise_than_it_claims() {
    let honest = recipe("noise_multiplier = 6.0").plan().expect("priced");
    let claim = claimed(&honest).expect("a bound");
    let alpha = Alpha::new(1e-6).expect("in range");
    let measured = |plan: &Plan| {
        let (seeds, done) = (AtomicU64::new(3), AtomicUsize::new(0));
        let two = NonZeroUsize::MIN.saturating_add(1);
        let found = white_box(
            plan,
            (50_000, two),
            alpha,
            || Seeded::new(seeds.fetch_add(1, Ordering::Relaxed)),
            |more| {
                done.fetch_add(more, Ordering::Relaxed);
            },
        );
        assert!(done.into_inner() >= 50_000);
        found.expect("seeded")
    };
    assert_ne!(measured(&honest).ruling(claim), Ruling::Violated);
    let twin = recipe("noise_multiplier = 2.0").plan().expect("priced");
    assert_eq!(measured(&twin).ruling(claim), Ruling::Violated);
}

/// Whatever the sampler is, an audit that nobody gave a number ends; one that would not is refused, and says what would pass.
#[test]
fn trials_are_bounded_by_the_work_of_a_run() {
    let of = |sampler: &str| -> Plan {
        let text = format!(
            "[data]\npath = \"none.csv\"\nlabel = \"y\"\nclasses = 2\nn_public = 60000\n\
             [model]\nkind = \"logistic\"\n\
             [plan]\n{sampler}\nclip = 1.0\nnoise_multiplier = 1.0\ndelta = 1e-5\n\
             [optimizer]\nkind = \"sgd\"\nrate = 0.05\n"
        );
        let recipe: Recipe = toml::from_str(&text).expect("a plan");
        recipe.plan().expect("priced")
    };
    let poisson = of("sampler = \"poisson\"\nrate = 0.01\nsteps = 100");
    assert_eq!(usual_trials(&poisson).expect("fits"), 200_000);
    let fixed = of("sampler = \"fixed_size\"\nsize = 250\nsteps = 1000");
    let usual = usual_trials(&fixed).expect("fits");
    // A run draws 250,000 examples.
    assert!((500..3000).contains(&usual), "{usual}");
    let alpha = Alpha::new(0.01).expect("in range");
    for trials in [0, 1, 100_000_000, usize::MAX] {
        let refused = white_box(
            &fixed,
            (trials, NonZeroUsize::MIN),
            alpha,
            || Seeded::new(1),
            |_| (),
        );
        assert!(matches!(refused, Err(Error::Trials { most, .. }) if most > usual));
    }
}

#[test]
fn more_poison_than_data_is_refused() {
    let recipe = recipe("noise_multiplier = 1.0");
    let plan = recipe.plan().expect("priced");
    for groups in [vec![], vec![0], vec![61]] {
        let attack = ClipBkd {
            groups,
            trials: 4,
            threads: NonZeroUsize::MIN,
        };
        let alpha = Alpha::new(0.01).expect("in range");
        let found = attack.run((&recipe, &plan), data(), alpha, || Seeded::new(1), |_| ());
        assert!(found.is_err());
    }
}
