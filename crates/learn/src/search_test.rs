//! Searches cost what their event costs, choose by public data, are made once, and are convicted where they are charged as one run.

use tempfile::TempDir;
use whit_audit::{Alpha, Claim, Verdict, falsify};
use whit_core::{Epsilon, Fault};
use whit_testkit::{FailingEntropy, Seeded, SeededBits};

use super::*;
use crate::payment::Uncharged;

const DATA: &str = "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [2]\nclasses = 2\nn_public = 400\n[model]\nkind = 'logistic'\n";
const VALIDATION: &str =
    "[validation]\npath = 'v.npy'\nlabel = 'w.npy'\nshape = [2]\nclasses = 2\n";
const PLAN: &str =
    "[plan]\nrate = 0.25\nsteps = 8\nclip = 1.0\nnoise_multiplier = 2.0\ndelta = 1e-5\n";

fn read(text: &str) -> Recipe {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn recipe(search: &str) -> Recipe {
    read(&format!("{DATA}{VALIDATION}{PLAN}[search]\n{search}"))
}

fn plan(search: &str) -> SearchPlan {
    SearchPlan::new(&recipe(search)).expect("a search")
}

fn refused(recipe: &Recipe) -> &'static str {
    SearchPlan::new(recipe)
        .err()
        .map_or("accepted", |error| error.code())
}

/// Two classes, one on each side of a line.
fn halves(rows: u32, seed: u64) -> Dataset {
    let mut bits = SeededBits::new(seed);
    let mut coordinate = || bits.below(2001) as f32 / 1000.0 - 1.0;
    let features: Vec<f32> = (0..2 * rows).map(|_| coordinate()).collect();
    let labels = features
        .chunks_exact(2)
        .map(|point| u32::from(point[0] > point[1]));
    let labels = labels.collect();
    Dataset::with_classes(vec![2], features, labels, 2).expect("fits")
}

#[test]
fn a_search_costs_more_than_a_run_and_less_than_all_of_them() {
    let search = plan("runs = 10\nrate = [0.1, 1.0]\nclip = [0.5, 1.0, 1.1]");
    assert_eq!(search.candidates().len(), 6);
    let summary = search.summary();
    assert_eq!(summary.clip_norms, [0.5, 1.0, 1.1]);
    let (one, all) = (summary.epsilon_of_one_run, summary.epsilon_upper);
    assert!(all > one && all < 3.0 * one, "{one} {all}");
    // A norm of a half and of one are the same in units of their grids; that of 1.1 is not.
    let Mechanism::BestOf { among, .. } = search.event().mechanism() else {
        unreachable!("a search")
    };
    assert_eq!(among.len(), 2);
    let guarantee = search.guarantee().expect("finite");
    let price = whit_accounting::price(&guarantee, search.delta()).expect("priced");
    assert!(price.epsilon.value() >= all);
    let other = plan("runs = 10\nlaw = 'logarithmic'\nrate = [0.1, 1.0]");
    assert!(other.epsilon().upper() < all && other.epsilon().lower() > 0.99 * one);
}

#[test]
fn an_epsilon_is_that_of_the_whole_search() {
    let mut recipe = recipe("runs = 5\nrate = [0.1, 1.0]");
    (recipe.plan.noise_multiplier, recipe.plan.epsilon) = (None, Some(2.0));
    let search = SearchPlan::new(&recipe).expect("calibrated");
    let found = search.epsilon().upper();
    assert!((1.99..=2.0).contains(&found), "{found}");
    let one = search.plan(0).expect("two candidates").epsilon().upper();
    assert!(one < 1.7, "{one}");
}

#[test]
fn what_no_theorem_pays_for_is_refused() {
    for (search, code) in [
        ("runs = 5\nepsilon = [1.0, 2.0]", "searched_budget"),
        ("runs = 5\nnoise_multiplier = [1.0, 2.0]", "searched_budget"),
        ("runs = 5\ndelta = [1e-5, 1e-6]", "searched_budget"),
        ("runs = 5", "plan_out_of_range"),
        ("runs = 5\nrate = [0.1]", "plan_out_of_range"),
        ("runs = 0\nrate = [0.1, 1.0]", "plan_out_of_range"),
        ("runs = 5\nclip = [2.0, 3.0]", "plan_out_of_range"),
        ("runs = 5\nlaw = 'fixed'\nrate = [0.1, 1.0]", "plan_word"),
        ("runs = 5\nscore = 'charm'\nrate = [0.1, 1.0]", "plan_word"),
        ("runs = 5\nrate = [0.1, -1.0]", "plan_out_of_range"),
    ] {
        assert_eq!(refused(&recipe(search)), code, "{search}");
    }
    let search = "runs = 5\nrate = [0.1, 1.0]";
    let mut unjudged = recipe(search);
    unjudged.validation = None;
    assert_eq!(refused(&unjudged), "plan_field_missing");
    let mut twice = recipe(search);
    twice.optimizer.rate = Some(0.5);
    assert_eq!(refused(&twice), "plan_field_unused");
    // And nobody takes a search for one run.
    let one = recipe(search).plan().err().map(|error| error.code());
    assert_eq!(one, Some("plan_field_unused"));
    let mut alone = recipe(search);
    alone.search = None;
    let idle = alone.plan().err().map(|error| error.code());
    assert_eq!(idle, Some("plan_field_unused"));
    assert_eq!(refused(&alone), "plan_field_missing");
}

#[test]
fn the_best_candidate_is_chosen_by_public_data() {
    let search = plan("runs = 6\nrate = [1e-9, 2.0]\nscore = 'accuracy'");
    let (mut better, mut seen) = (0, 0);
    for seed in 0..12 {
        let payment = Payment::uncharged(&search, Uncharged);
        let data = Secret::new(halves(400, 1));
        let found = search.choose(
            data,
            halves(300, 2),
            NonZeroUsize::MIN,
            payment,
            &mut Seeded::new(seed),
        );
        let found = found.expect("paid");
        let architecture = search.recipe.architecture(&[2], Some(2)).expect("fits").0;
        let network = search.recipe.network_of(&architecture).expect("fits");
        let again = evaluate(&network, &found.parameters, &halves(300, 2)).expect("fits");
        assert_eq!(again.accuracy, Some(found.score));
        seen += 1;
        better += u32::from(found.candidate == Some(1));
        // What does not learn stays where it began.
        let initial = search.recipe.initial(&architecture);
        let moved = initial
            .iter()
            .zip(&found.parameters)
            .any(|(a, b)| (a - b).abs() > 1e-3);
        assert_eq!(moved, found.candidate == Some(1));
    }
    // One of both is all there is in a run in six, and half of those are the wrong one.
    assert!(better >= 8 && seen == 12, "{better}");
}

#[test]
fn a_payment_is_for_one_search() {
    let search = plan("runs = 2\nrate = [0.1, 1.0]");
    let other = plan("runs = 3\nrate = [0.1, 1.0]");
    let payment = Payment::uncharged(&other, Uncharged);
    let found = search.choose(
        Secret::new(halves(9, 1)),
        halves(9, 2),
        NonZeroUsize::MIN,
        payment,
        &mut Seeded::new(1),
    );
    assert_eq!(found.err().map(|error| error.code()), Some("other_plan"));
    // One run of a candidate is not paid for by the search.
    let run = search.plan(0).expect("a candidate");
    let refused = run.sampler(9, Payment::uncharged(&search, Uncharged));
    assert_eq!(refused.err().map(|error| error.code()), Some("other_plan"));
}

fn place(search: &SearchPlan, folder: &TempDir) -> Place {
    let run = search.run(&search.recipe);
    Place::make(folder.path(), run).expect("free")
}

/// A search ends in its place once: it is not made again, and one that was stopped does not go on.
#[test]
fn a_search_is_all_or_nothing() {
    let search = plan("runs = 2\nrate = [0.1, 1.0]");
    let folder = TempDir::new().expect("a folder");
    let place = place(&search, &folder);
    let (data, judged) = (|| Secret::new(halves(40, 1)), || halves(40, 2));
    let one = NonZeroUsize::MIN;
    let early = search.found_in(&place).err().map(|error| error.code());
    assert_eq!(early, Some("checkpoint_not_begun"));
    place
        .start(Payment::uncharged(&search, Uncharged), vec![0.0; 6])
        .expect("laid down");
    assert_eq!(search.found_in(&place), Ok(None));
    // What is refused for what it is was not begun.
    let wrong = Dataset::with_numbers(vec![2], vec![0.0; 4], vec![0.0; 2]).expect("fits");
    assert!(
        search
            .choose_in(&place, data(), wrong, one, &mut Seeded::new(1))
            .is_err()
    );
    assert_eq!(search.found_in(&place), Ok(None));
    let found = search.choose_in(&place, data(), judged(), one, &mut Seeded::new(1));
    let found = found.expect("paid");
    assert_eq!(search.found_in(&place), Ok(Some(found.clone())));
    // Entropy would be missed if anything were drawn.
    let again = search.choose_in(&place, data(), judged(), one, &mut FailingEntropy);
    assert_eq!(again, Ok(found));
    // What the place keeps is as long whatever the number of runs was, and does not hold it.
    let kept = place.load().expect("readable").expect("there");
    assert_eq!(
        (
            kept.steps_begun(),
            kept.steps_kept(),
            kept.run().steps_total
        ),
        (1, 1, 1)
    );
    assert_eq!(kept.scalars.keys().collect::<Vec<_>>(), [CANDIDATE, SCORE]);
    assert!(kept.vectors.is_empty());

    let folder = TempDir::new().expect("a folder");
    let place = super::tests::place(&search, &folder);
    place
        .start(Payment::uncharged(&search, Uncharged), vec![0.0; 6])
        .expect("laid down");
    let stopped = search.choose_in(&place, data(), judged(), one, &mut FailingEntropy);
    assert!(stopped.is_err());
    for _ in 0..2 {
        let after = search.choose_in(&place, data(), judged(), one, &mut Seeded::new(1));
        assert_eq!(
            after.err().map(|error| error.code()),
            Some("search_stopped")
        );
    }
}

#[test]
fn without_a_run_nothing_was_learnt() {
    let search = plan("runs = 1\nlaw = 'poisson'\nrate = [0.1, 1.0]");
    let mut none = 0;
    for seed in 0..40 {
        let payment = Payment::uncharged(&search, Uncharged);
        let (data, judged) = (Secret::new(halves(9, 1)), halves(9, 2));
        let found = search.choose(
            data,
            judged,
            NonZeroUsize::MIN,
            payment,
            &mut Seeded::new(seed),
        );
        let found = found.expect("paid");
        if found.candidate.is_none() {
            let architecture = search.recipe.architecture(&[2], Some(2)).expect("fits").0;
            assert_eq!(found.parameters, search.recipe.initial(&architecture));
            assert!(found.score.is_nan());
            none += 1;
        }
    }
    // 40/e on average.
    assert!((4..=27).contains(&none), "{none}");
}

/// One step on everybody, and a canary that pulls the bias up by one clip norm, where the noise has one, too; runs are judged by how far down it is. The event is that it is
/// far down, which the canary makes rarer.
fn seen(claimed: f64, delta: f64, search: &SearchPlan) -> Verdict {
    let claim = Claim {
        epsilon: Epsilon::new(claimed).expect("finite"),
        delta: Delta::new(delta).expect("below one"),
    };
    let alpha = Alpha::new(1e-6).expect("a level");
    let world = |answers: Vec<f32>, seed: u64| {
        let mut entropy = Seeded::new(seed);
        move || {
            let zeros = vec![0.0; answers.len()];
            let data = Dataset::with_numbers(vec![1], zeros, answers.clone());
            let judged = Dataset::with_numbers(vec![1], vec![0.0], vec![-1000.0]).expect("fits");
            let payment = Payment::uncharged(search, Uncharged);
            let data = Secret::new(data.expect("fits"));
            let found = search.choose(data, judged, NonZeroUsize::MIN, payment, &mut entropy);
            // The weight sees zeros alone, and the bias begins at zero.
            found.expect("paid").parameters[1] < -1.3
        }
    };
    falsify(
        claim,
        6000,
        alpha,
        world(vec![0.0], 71),
        world(vec![0.0, 1e6], 72),
    )
    .expect("enough trials")
}

#[test]
fn a_search_that_is_charged_as_one_run_is_convicted() {
    let text = "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [1]\nn_public = 2\n[model]\nkind = 'logistic'\n\
                [validation]\npath = 'v.npy'\nlabel = 'w.npy'\nshape = [1]\n\
                [plan]\nsampler = 'all'\nsteps = 1\nclip = 1.0\nnoise_multiplier = 1.0\ndelta = 0.09\n\
                [optimizer]\nrate = 2.0\n[search]\nruns = 5\nmomentum = [0.0, 0.5]";
    let search = SearchPlan::new(&read(text)).expect("a search");
    assert_eq!(search.score(), Score::Loss);
    let summary = search.summary();
    let honest = seen(summary.epsilon_upper, summary.delta, &search);
    assert!(!honest.convicted, "{honest:?} {summary:?}");
    let one = seen(summary.epsilon_of_one_run, summary.delta, &search);
    assert!(one.convicted, "{one:?} {summary:?}");
}

/// A padded search costs next to nothing more, and one whose pad is cut short is refused.
#[test]
fn time_is_padded_for_next_to_nothing() {
    let plain = plan("runs = 3\nlaw = 'poisson'\nrate = [0.1, 1.0]");
    let padded = plan("runs = 3\nlaw = 'poisson'\npad = 24\nrate = [0.1, 1.0]");
    let (one, other) = (plain.epsilon().upper(), padded.epsilon().upper());
    assert!(other >= one && other < 1.01 * one, "{one} {other}");
    assert!(padded.is_padded() && !plain.is_padded());
    for pad in ["0", "6", "100000"] {
        let short = recipe(&format!(
            "runs = 3\nlaw = 'poisson'\npad = {pad}\nrate = [0.1, 1.0]"
        ));
        assert_eq!(refused(&short), "plan_out_of_range", "{pad}");
    }
}
