//! Searches cost what their event costs, choose by public data, are made once, and are convicted where they are charged as one run.

use tempfile::TempDir;
use whit_audit::{Alpha, Claim, HalfLine, Verdict, falsify_outputs};
use whit_core::{EntropyFailure, Epsilon, Fault};
use whit_testkit::{FailingEntropy, Seeded, SeededBits, long};

use super::*;
use crate::payment::Uncharged;
use crate::validate::NetworkError;

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
    // And what is run is what was priced.
    let run = |plan: &Plan| among.contains(plan.event().mechanism());
    assert!(search.plans.iter().all(run));
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
    let mut place = place(&search, &folder);
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
            .choose_in(&mut place, data(), wrong, one, &mut Seeded::new(1))
            .is_err()
    );
    assert_eq!(search.found_in(&place), Ok(None));
    let found = search.choose_in(&mut place, data(), judged(), one, &mut Seeded::new(1));
    let found = found.expect("paid");
    assert_eq!(search.found_in(&place), Ok(Some(found.clone())));
    // Entropy would be missed if anything were drawn.
    let again = search.choose_in(&mut place, data(), judged(), one, &mut FailingEntropy);
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
    let mut place = super::tests::place(&search, &folder);
    place
        .start(Payment::uncharged(&search, Uncharged), vec![0.0; 6])
        .expect("laid down");
    let stopped = search.choose_in(&mut place, data(), judged(), one, &mut FailingEntropy);
    assert!(stopped.is_err());
    for _ in 0..2 {
        let after = search.choose_in(&mut place, data(), judged(), one, &mut Seeded::new(1));
        assert_eq!(
            after.err().map(|error| error.code()),
            Some("search_stopped")
        );
    }
}

/// What a run would be refused for, a search is refused for before it is begun: else it would be spent.
#[test]
fn what_no_run_could_be_made_of_is_not_begun() {
    let refused = |recipe: Recipe| {
        let search = SearchPlan::new(&recipe).expect("a search");
        let folder = TempDir::new().expect("a folder");
        let mut place = place(&search, &folder);
        let payment = Payment::uncharged(&search, Uncharged);
        place.start(payment, vec![0.0; 6]).expect("laid down");
        let (data, judged) = (Secret::new(halves(40, 1)), halves(40, 2));
        let one = NonZeroUsize::MIN;
        let chosen = search.choose_in(&mut place, data, judged, one, &mut Seeded::new(1));
        assert_eq!(search.found_in(&place), Ok(None), "not begun");
        chosen.err().map(|error| error.code())
    };
    let mut large = recipe("runs = 2\nrate = [0.1, 1.0]");
    (large.data.n_public, large.plan.rate) = (Some(30_000_000), Some(1.0));
    assert_eq!(refused(large), Some("batch_rounding"));
    let mut other = recipe("runs = 2\nrate = [0.1, 1.0]");
    (other.plan.sampler, other.plan.rate) = (Some("fixed_size".into()), None);
    other.plan.size = Some(10);
    assert_eq!(refused(other), Some("other_number_of_examples"));
}

/// The bound is about private examples, whose batches are summed. A public set that was refused by it suspended the private one.
#[test]
fn runs_are_judged_by_any_number_of_public_examples() {
    let search = plan("runs = 2\nrate = [0.1, 1.0]");
    let many = crate::train::EXAMPLES_MAX as usize + 1;
    let judged = Dataset::with_classes(vec![2], vec![0.0; 2 * many], vec![0; many], 2);
    let data = Secret::new(halves(40, 1));
    let ready = search.ready(data, judged.expect("fits"), NonZeroUsize::MIN);
    assert_eq!(ready.map(drop), Ok(()));
}

/// At the largest batches that pass: no run fails for where its norm has come to.
#[test]
fn a_search_is_made_with_clip_norms_that_move() {
    let text = |rate: f64| {
        format!(
            "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [600]\nclasses = 2\nn_public = 30000000\n\
             [validation]\npath = 'v.npy'\nlabel = 'w.npy'\nshape = [600]\nclasses = 2\n\
             [model]\nkind = 'mlp'\nhidden = [600]\n\
             [plan]\nrate = {rate}\nsteps = 3\nclip = 1.5\nclipping = 'adaptive'\nquantile = 0.1\nclip_rate = 1.0\n\
             noise_multiplier = 8.0\ndelta = 1e-6\n[search]\nruns = 3\nclip = [1.5, 3.5]\nrate = [1e-9, 0.1]\n"
        )
    };
    let made = |rate: f64| {
        let recipe = read(&text(rate));
        let search = SearchPlan::new(&recipe).expect("a search");
        let checked = search.check(&recipe, &[600]).map(drop);
        (search, checked)
    };
    let passes = match made(0.1).1 {
        Err(Error::BatchRounding { passes, .. }) => passes,
        other => panic!("{other:?}"),
    };
    let (search, checked) = made(passes as f64 / 3e7);
    assert_eq!(checked, Ok(()));
    let examples = || {
        let made = Dataset::with_classes(vec![600], vec![0.1; 2400], vec![0, 1, 0, 1], 2);
        made.expect("fits")
    };
    let found = search.choose(
        Secret::new(examples()),
        examples(),
        NonZeroUsize::MIN,
        Payment::uncharged(&search, Uncharged),
        &mut Seeded::new(9),
    );
    let found = found.expect("paid");
    assert!(found.candidate.is_some_and(|candidate| candidate < 4));
    assert!(found.score.is_finite(), "no run has failed");
}

#[test]
fn a_run_that_fails_is_judged_the_worst_and_ends_no_search() {
    let failed: [Error; 3] = [
        NetworkError::Rounding { cap: 1, share: 0.6 }.into(),
        Error::Unbound,
        Error::StepsTaken { steps: 1 },
    ];
    for error in failed {
        assert_eq!(or_nothing(Err(error)), Ok(None));
    }
    assert_eq!(or_nothing(Ok(vec![1.0])), Ok(Some(vec![1.0])));
    let dry = [
        Error::from(EntropyFailure),
        whit_mechanism::Error::from(EntropyFailure).into(),
    ];
    for error in dry {
        assert_eq!(or_nothing(Err(error.clone())), Err(error));
    }
}

/// Such a search has the initial weights, and must not pass for one that has trained them.
#[test]
fn a_search_of_which_every_run_failed_has_chosen_nothing() {
    let search = plan("runs = 3\nrate = [0.1, 1.0]");
    let of = |made: Option<Vec<f32>>| {
        let run = |_, _: &mut Seeded| or_nothing(made.clone().ok_or(Error::Unbound));
        let score = |made: &Option<Vec<f32>>| {
            Ok::<_, Error>(made.as_ref().map_or(f64::NEG_INFINITY, |_| -0.5))
        };
        let best = search.best_of.choose(&mut Seeded::new(3), run, score);
        let best = best.expect("entropy");
        assert!(best.is_some(), "there are runs");
        chosen(best, vec![0.0; 6], -1.0)
    };
    let failed = of(None);
    assert_eq!((failed.candidate, failed.parameters), (None, vec![0.0; 6]));
    assert!(failed.score.is_nan());
    let made = of(Some(vec![1.0; 6]));
    assert!(made.candidate.is_some());
    assert_eq!((made.parameters, made.score), (vec![1.0; 6], 0.5));
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

/// How many runs there are on average in searches that are doubted.
const RUNS: f64 = 5.0;

/// A search among runs of one step on everybody, in which the bias is a normal number of this deviation; a canary pulls it up by one clip norm, which is one. Runs are judged by how far down it is.
fn doubted(noise: f64, delta: f64) -> SearchPlan {
    let text = format!(
        "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [1]\nn_public = 2\n[model]\nkind = 'logistic'\n\
         [validation]\npath = 'v.npy'\nlabel = 'w.npy'\nshape = [1]\n\
         [plan]\nsampler = 'all'\nsteps = 1\nclip = 1.0\nnoise_multiplier = {noise:?}\ndelta = {delta:?}\n\
         [optimizer]\nrate = 2.0\n[search]\nruns = {RUNS:?}\nmomentum = [0.0, 0.5]"
    );
    let search = SearchPlan::new(&read(&text)).expect("a search");
    assert_eq!(search.score(), Score::Loss);
    search
}

/// A twin whose runs have so many times the noise that was priced.
fn with_noise(search: &SearchPlan, factor: f64) -> SearchPlan {
    let examples = search.recipe.examples_public().expect("declared");
    let drafts = search.candidates.iter().map(|one| one.plan.draft(examples));
    let drafts = drafts.collect::<Result<Vec<Draft>>>().expect("drafts");
    let noise = search.plans[0].noise_multiplier() * factor;
    SearchPlan {
        plans: plans(&drafts, noise).expect("plans"),
        ..search.clone()
    }
}

/// How far down the best run of each search is: of so many without the canary, and of so many with it.
fn biases(search: &SearchPlan, [without, with]: [usize; 2]) -> [Vec<f64>; 2] {
    let world = |answers: &[f32], seed: u64, count: usize| {
        let mut entropy = Seeded::new(seed);
        let one = |_| {
            let zeros = vec![0.0; answers.len()];
            let data = Dataset::with_numbers(vec![1], zeros, answers.to_vec());
            let judged = Dataset::with_numbers(vec![1], vec![0.0], vec![-1000.0]).expect("fits");
            let payment = Payment::uncharged(search, Uncharged);
            let data = Secret::new(data.expect("fits"));
            let found = search.choose(data, judged, NonZeroUsize::MIN, payment, &mut entropy);
            // The weight sees zeros alone, and the bias begins at zero.
            f64::from(found.expect("paid").parameters[1])
        };
        (0..count).map(one).collect()
    };
    [world(&[0.0], 71, without), world(&[0.0, 1e6], 72, with)]
}

/// Judges a claim by how often the best run is at most `far`, which the canary makes rarer.
fn judged(claimed: f64, delta: Delta, [without, with]: &[Vec<f64>; 2], far: f64) -> Verdict {
    let epsilon = Epsilon::new(claimed).expect("finite");
    let alpha = Alpha::new(1e-6).expect("a level");
    let event = [HalfLine::AtMost(far)];
    let verdict = falsify_outputs(Claim { epsilon, delta }, without, with, &event, alpha);
    verdict.expect("enough trials")
}

/// How likely a normal number is below this: by the series at zero.
fn normal_below(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for k in 1..200 {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// How likely the lowest of all biases is below `far`, without the canary and with it. If one is above with probability `x`, all `K` are with `E[x^K]`, which is `γx/(1 - (1 - γ)x)` for the geometric law.
fn below(far: f64, noise: f64) -> [f64; 2] {
    [0.0, 1.0].map(|canary| {
        let above = 1.0 - normal_below((far - canary) / noise);
        1.0 - above / (RUNS - (RUNS - 1.0) * above)
    })
}

/// The epsilon that this half-line shows, or the other one, and no measurement of them goes beyond.
fn shown(far: f64, noise: f64, delta: f64) -> f64 {
    let [without, with] = below(far, noise);
    let lost = |likely: f64, unlikely: f64| ((likely - delta) / unlikely).ln();
    lost(without, with).max(lost(1.0 - with, 1.0 - without))
}

/// The half-line that shows most, of those of which neither side is rarer than one search in ten: the rare shows more, to whoever has more trials.
fn best_half_line(noise: f64, delta: f64) -> f64 {
    let all = (-300..300).map(|far| f64::from(far) / 100.0);
    let often = all.filter(|far| {
        let [without, with] = below(*far, noise);
        with >= 0.1 && without <= 0.9
    });
    let shown = |far: &f64| shown(*far, noise, delta);
    let best = often.max_by(|a, b| shown(a).total_cmp(&shown(b)));
    best.expect("half-lines that are often seen")
}

/// At a delta as runs have it. No claim is within reach of measurements there; what the law of the best of so many normal numbers says is, and from that a tenth less noise is told.
#[test]
fn runs_have_the_noise_that_is_priced_and_shorter_noise_is_convicted() {
    let (noise, delta) = (0.5, 1e-6);
    let search = doubted(noise, delta);
    let claimed = search.summary().epsilon_upper;
    let far = best_half_line(noise, delta);
    let exact = shown(far, noise, delta);
    assert!((2.0..claimed).contains(&exact), "{exact} of {claimed}");
    let more = if long() { 10 } else { 1 };
    let seen = |search: &SearchPlan, counts: [usize; 2]| {
        let seen = biases(search, counts.map(|count| more * count));
        judged(claimed, search.delta(), &seen, far)
    };
    let honest = seen(&search, [6000, 14_000]);
    assert!(
        !honest.convicted && (0.9 * exact..=exact).contains(&honest.epsilon_lower),
        "{honest:?} for {exact}"
    );
    let less = seen(&with_noise(&search, 0.9), [2000, 6000]);
    assert!(less.epsilon_lower > exact, "{less:?} for {exact}");
}

/// At a delta so large that the claims themselves are within reach.
#[test]
fn a_search_that_is_charged_as_one_run_is_convicted() {
    let search = doubted(1.0, 0.09);
    let (summary, delta) = (search.summary(), search.delta());
    let claimed = summary.epsilon_upper;
    let seen = biases(&search, [6000; 2]);
    for far in [-1.3, -0.5] {
        let honest = judged(claimed, delta, &seen, far);
        assert!(!honest.convicted, "{honest:?} {summary:?}");
    }
    let one = judged(summary.epsilon_of_one_run, delta, &seen, -1.3);
    assert!(one.convicted, "{one:?} {summary:?}");
    let seen = biases(&with_noise(&search, 0.5), [3000, 6000]);
    let half = judged(claimed, delta, &seen, -0.5);
    assert!(half.convicted, "{half:?} {summary:?}");
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

/// The first noise that is tried is that of one run, and costs so much for several that the pad was refused as too short.
#[test]
fn a_pad_that_is_enough_is_enough_where_an_epsilon_is_asked_for() {
    let search = |pad: u64, noise: Option<f64>| {
        let mut recipe = recipe("runs = 40\nlaw = 'poisson'\nrate = [0.1, 1.0]");
        (recipe.plan.noise_multiplier, recipe.plan.epsilon) = (noise, Some(8.0));
        if noise.is_some() {
            recipe.plan.epsilon = None;
        }
        if let Some(search) = &mut recipe.search {
            search.pad = Some(pad).filter(|pad| *pad > 0);
        }
        SearchPlan::new(&recipe)
    };
    let unpadded = search(0, None).expect("calibrated").summary();
    let noise = Some(unpadded.noise_multiplier);
    let (mut short, mut enough) = (1, 400);
    assert!(search(short, noise).is_err() && search(enough, noise).is_ok());
    while enough - short > 1 {
        let middle = (short + enough) / 2;
        match search(middle, noise) {
            Ok(_) => enough = middle,
            Err(_) => short = middle,
        }
    }
    let padded = search(enough, None).expect("enough").summary();
    assert!(padded.epsilon_upper <= 8.0);
    let more = padded.noise_multiplier / unpadded.noise_multiplier;
    assert!((0.99..1.1).contains(&more), "{more}");
    // One that is too short for all noise is refused by name.
    let refused = search(2, None).err().map(|error| error.code());
    assert_eq!(refused, Some("plan_out_of_range"));
}
