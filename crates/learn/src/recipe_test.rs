//! Plans are read as they were meant, and what is not meant is refused with what would pass.

use whit_core::{Fault, Neighbours};

use super::*;
use crate::draft::SamplerDraft;
use crate::train::Clipping;

const DATA: &str =
    "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [4]\nclasses = 3\nn_public = 1000";
const PLAN: &str =
    "[plan]\nrate = 0.1\nsteps = 10\nclip = 1.0\nnoise_multiplier = 2.0\ndelta = 1e-5";

fn read(plan: &str, rest: &str) -> Recipe {
    let text = format!("{DATA}\n[model]\nkind = 'logistic'\n{plan}\n{rest}");
    toml::from_str(&text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[test]
fn a_short_plan_is_a_plan() {
    let recipe = read(PLAN, "");
    let plan = recipe.plan().expect("a plan");
    assert_eq!(
        (plan.steps(), plan.expected_batch(), plan.relation()),
        (10, 100.0, Neighbours::AddRemove)
    );
    let (architecture, loss) = recipe
        .architecture_declared()
        .expect("fits")
        .expect("a shape is declared");
    assert_eq!((architecture.outputs(), loss), (3, Loss::CrossEntropy));
    let method = recipe.method(15, NonZeroUsize::MIN).expect("usual");
    assert_eq!(method.clipping, Clipping::Flat);
    assert_eq!(method.average, None);
}

#[test]
fn every_sampler_has_its_own_field() {
    let sampler = |text: &str| {
        let plan = "[plan]\nsteps = 10\nclip = 1.0\nnoise_multiplier = 2.0\ndelta = 1e-5\n";
        read(&format!("{plan}{text}"), "")
            .plan
            .sampler()
            .map_err(|error| error.code())
    };
    assert_eq!(
        sampler("rate = 0.5"),
        Ok(SamplerDraft::Poisson { rate: 0.5 })
    );
    assert_eq!(
        sampler("sampler = 'fixed_size'\nsize = 7"),
        Ok(SamplerDraft::FixedSize { size: 7 })
    );
    assert_eq!(
        sampler("sampler = 'balls_in_bins'\nbins = 7"),
        Ok(SamplerDraft::BallsInBins { bins: 7 })
    );
    assert_eq!(
        sampler("sampler = 'shuffled'\nbatches = 7"),
        Ok(SamplerDraft::Shuffled { batches: 7 })
    );
    let cyclic = |factor| Ok(SamplerDraft::Cyclic { bins: 7, factor });
    let banded = cyclic(crate::FactorDraft::Banded { band: 3 });
    assert_eq!(sampler("sampler = 'cyclic'\nbins = 7\nband = 3"), banded);
    assert_eq!(
        sampler("sampler = 'cyclic'\nmechanism = 'banded'\nbins = 7\nband = 3"),
        banded
    );
    assert_eq!(
        sampler("sampler = 'cyclic'\nmechanism = 'tree'\nbins = 7"),
        cyclic(crate::FactorDraft::Tree)
    );
    for (text, code) in [
        ("sampler = 'cyclic'\nbins = 7", "plan_field_missing"),
        ("sampler = 'cyclic'\nband = 7", "plan_field_missing"),
        (
            "sampler = 'cyclic'\nmechanism = 'tree'\nbins = 7\nband = 3",
            "plan_field_unused",
        ),
        (
            "sampler = 'cyclic'\nmechanism = 'dense'\nbins = 7",
            "plan_word",
        ),
        ("rate = 0.5\nband = 3", "plan_field_unused"),
        ("rate = 0.5\nmechanism = 'tree'", "plan_field_unused"),
    ] {
        assert_eq!(sampler(text), Err(code), "{text}");
    }
    assert_eq!(sampler("sampler = 'all'"), Ok(SamplerDraft::All));
    assert_eq!(sampler(""), Err("plan_field_missing"));
    assert_eq!(
        sampler("sampler = 'shuffled'\nrate = 0.5"),
        Err("plan_field_unused")
    );
    assert_eq!(
        sampler("sampler = 'all'\nrate = 0.5"),
        Err("plan_field_unused")
    );
    assert_eq!(sampler("sampler = 'weighted'"), Err("plan_word"));
}

#[test]
fn what_is_not_meant_is_refused() {
    let check = |plan: &str, rest: &str, code: &str, passes: &str| {
        let recipe = read(plan, rest);
        let refused = recipe
            .plan()
            .map(|_| ())
            .and_then(|()| recipe.method(15, NonZeroUsize::MIN).map(|_| ()));
        let error = refused.expect_err(rest);
        assert_eq!(error.code(), code, "{error}");
        let whole = format!("{error}; {}", error.suggestion());
        assert!(whole.contains(passes), "{whole}");
    };
    let with = |line: &str| format!("{PLAN}\n{line}");
    check(
        &with("epsilon = 1"),
        "",
        "plan_field_unused",
        "noise_multiplier",
    );
    let without = PLAN.replace("noise_multiplier = 2.0", "");
    check(&without, "", "plan_field_missing", "epsilon = 3.0");
    check(
        &PLAN.replace("0.1", "1.5"),
        "",
        "plan_out_of_range",
        "at most 1",
    );
    check(&with("clipping = 'hard'"), "", "plan_word", "per_layer");
    check(
        &with("gamma = 0.1"),
        "",
        "plan_field_unused",
        "leave `gamma` out",
    );
    check(
        &with("quantile = 0.5"),
        "",
        "plan_field_unused",
        "leave `quantile` out",
    );
    check(PLAN, "[optimizer]\nkind = 'lion'", "plan_word", "adam");
    check(
        PLAN,
        "[optimizer]\nbeta1 = 0.5",
        "plan_field_unused",
        "beta1",
    );
    check(PLAN, "[optimizer]\nlast = 0.5", "plan_field_unused", "last");
    check(
        PLAN,
        "[optimizer]\nschedule = 'step'",
        "plan_word",
        "cosine",
    );
    check(
        PLAN,
        "[optimizer]\nmomentum = 1.5",
        "plan_out_of_range",
        "below 1",
    );
    check(
        &with("sampler = 'fixed_size'\nsize = 10\nrelation = 'add_remove'")
            .replace("rate = 0.1\n", ""),
        "",
        "plan_relation",
        "relation = \"replace_one\"",
    );
    check(
        &PLAN.replace("1e-5", "0.5"),
        "",
        "plan_out_of_range",
        "below 0.1",
    );
    check(
        PLAN,
        "[optimizer]\naverage = 2.0",
        "plan_out_of_range",
        "average",
    );
    let mut recipe = read(PLAN, "");
    recipe.data.n_public = None;
    let error = recipe.plan().expect_err("no public number");
    assert_eq!(error.code(), "plan_field_missing");
    assert!(error.suggestion().contains("n_public = 60000"));
}

#[test]
fn a_clip_norm_that_moves_has_usual_numbers() {
    let with = |line: &str| read(&format!("{PLAN}\nclipping = 'adaptive'\n{line}"), "");
    let shown = |recipe: Recipe| {
        let plan = recipe.plan().expect("a plan");
        let method = recipe.method(15, NonZeroUsize::MIN).expect("usual");
        assert_eq!(method.clipping, Clipping::Flat);
        plan.summary().adaptive.expect("it moves")
    };
    let usual = shown(with(""));
    // A twentieth of the expected hundred.
    let numbers = (usual.quantile, usual.clip_rate, usual.count_noise);
    assert_eq!(numbers, (0.5, 0.2, 5.0));
    let own = shown(with("quantile = 0.9\nclip_rate = 0.1\ncount_noise = 7"));
    let numbers = (own.quantile, own.clip_rate, own.count_noise);
    assert_eq!(numbers, (0.9, 0.1, 7.0));
    let refused = with("count_noise = 1.0").plan().expect_err("too dear");
    assert_eq!(refused.code(), "count_noise");
    assert!(refused.suggestion().contains("above 2"), "{refused}");
}

#[test]
fn every_word_of_a_plan_is_in_its_fingerprint() {
    let of = |recipe: &Recipe| recipe.run(&recipe.plan().expect("a plan")).plan;
    let recipe = read(PLAN, "");
    let mut others = vec![
        read(PLAN, "[optimizer]\nrate = 0.2"),
        read(&format!("{PLAN}\nclipping = 'per_layer'"), ""),
    ];
    for change in [
        |recipe: &mut Recipe| recipe.data.path = "z.npy".into(),
        |recipe: &mut Recipe| recipe.model.seed = Some(1),
        |recipe: &mut Recipe| recipe.searched = Some(0),
    ] {
        others.push(recipe.clone());
        others.last_mut().map(change).expect("just pushed");
    }
    assert_eq!(of(&recipe), of(&read(&format!("{PLAN} # a remark"), "")));
    for other in &others {
        assert_ne!(of(&recipe), of(other));
    }
}

/// What a trainer would refuse, a check of the plan refuses before anybody has paid.
#[test]
fn clips_of_layers_are_checked_without_data() {
    let check = |clip: &str, expected: Option<&str>| {
        let plan = PLAN.replace("clip = 1.0", clip);
        let text = format!("{DATA}\n[model]\nkind = 'mlp'\nhidden = [4]\n{plan}");
        let recipe: Recipe = toml::from_str(&text).expect("a plan");
        let plan = recipe.plan().expect("priced");
        let refused = recipe.check(&plan, &[4]).err().map(|error| error.code());
        assert_eq!(refused, expected, "{clip}");
    };
    check("clip = 1e-9", None);
    check("clip = 1e-9\nclipping = 'per_layer'", Some("out_of_range"));
    check("clip = 1e-8\nclipping = 'per_layer'", None);
    check(
        "clip = 1.0\nclipping = 'automatic'\ngamma = 0.0",
        Some("out_of_range"),
    );
}

/// What is probed before anybody pays is enough for the old checkpoint and the new one, whatever the optimizer keeps.
#[test]
fn there_is_room_for_all_that_an_optimizer_keeps() {
    let check = |optimizer: &str, times: usize| {
        let recipe = read(PLAN, &format!("[optimizer]\n{optimizer}"));
        let plan = recipe.plan().expect("a plan");
        let (architecture, _) = recipe.architecture(&[4], Some(3)).expect("fits");
        let initial = recipe.initial(&architecture);
        let floats = recipe.floats_kept(initial.len()).expect("usual");
        assert_eq!(floats, times * initial.len(), "{optimizer}");
        let folder = tempfile::TempDir::new().expect("a folder");
        let place = Place::open(folder.path(), recipe.run(&plan)).expect("free");
        let path = place.path().to_owned();
        let payment = Payment::uncharged(&plan, crate::Uncharged);
        place.start(payment, initial.clone()).expect("writable");
        let first = path.metadata().expect("written").len();
        let none = Dataset::with_classes(vec![4], vec![], vec![], 3).expect("no rows");
        let data = Secret::new(none);
        let every = NonZeroUsize::MIN;
        let kept = recipe.trainer_kept(&plan, data, NonZeroUsize::MIN, place, every);
        let (mut trainer, _) = kept.expect("begun");
        let ran = trainer.run(&mut whit_testkit::Seeded::new(1), |_| Ok(()));
        assert_eq!(ran, Ok(()));
        let last = path.metadata().expect("written").len();
        let more = last - first;
        assert!(more >= 4 * (floats - initial.len()) as u64);
        assert!(2 * last <= crate::checkpoint::room(floats) as u64);
    };
    check("kind = 'sgd'\nrate = 0.1", 1);
    check("kind = 'sgd'\nrate = 0.1\nmomentum = 0.9", 2);
    check("kind = 'adam'\nrate = 0.1", 3);
    check("kind = 'adam'\nrate = 0.1\naverage = 0.5", 4);
}

const PICTURES: &str = "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [2, 12, 8]\nclasses = 3\nn_public = 20\n\
    [model]\nkind = 'logistic'\n[plan]\nrate = 0.5\nsteps = 3\nclip = 1.0\nnoise_multiplier = 2.0\ndelta = 1e-5\n";

fn scattered(section: &str) -> Recipe {
    toml::from_str(&format!("{PICTURES}{section}")).expect("a plan")
}

#[test]
fn plans_see_the_shape_of_features_before_data_are_read() {
    let recipe = scattered("[features]\nkind = 'scattering'\nangles = 4");
    let (architecture, _) = recipe
        .architecture_declared()
        .expect("fits")
        .expect("declared");
    assert_eq!(architecture.input(), [2 * 25, 3, 2]);
    let plan = recipe.plan().expect("a plan");
    let architecture = recipe.check(&plan, &[2, 12, 8]).expect("fits");
    assert_eq!(architecture.input(), [2 * 25, 3, 2]);
    let small = recipe.check(&plan, &[2, 12, 4]).expect_err("refused");
    assert_eq!(small.code(), "small_picture");
    for (section, code) in [
        ("kind = 'wavelets'", "plan_word"),
        ("kind = 'scattering'\nlevels = 0", "plan_out_of_range"),
        ("kind = 'scattering'\nangles = 65", "plan_out_of_range"),
    ] {
        let plan = scattered(&format!("[features]\n{section}")).plan();
        assert_eq!(plan.expect_err("refused").code(), code);
    }
}

#[test]
fn features_are_trained_on_and_evaluated_and_belong_to_a_run() {
    let data = || {
        let pixels = (0..20 * 192).map(|at| ((at * at) % 37) as f32 / 37.0);
        let labels = (0..20).map(|row| row % 3);
        let (pixels, labels) = (pixels.collect(), labels.collect());
        Dataset::with_classes(vec![2, 12, 8], pixels, labels, 3).expect("fits")
    };
    let [recipe, plain] = ["[features]\nkind = 'scattering'", ""].map(scattered);
    let plan = recipe.plan().expect("a plan");
    assert!(recipe.run(&plan) != plain.run(&plan));
    // Runs that were begun before there were features go on.
    let words = serde_json::to_string(&plain).expect("plain data");
    assert!(!words.contains("features"));
    let payment = Payment::uncharged(&plan, crate::Uncharged);
    let trainer = recipe.trainer(&plan, Secret::new(data()), NonZeroUsize::MIN, payment);
    let (mut trainer, architecture) = trainer.expect("a run");
    assert_eq!(architecture.input(), [162, 3, 2]);
    let mut entropy = whit_testkit::Seeded::new(1);
    trainer.run(&mut entropy, |_| Ok(())).expect("steps");
    let prepared = recipe
        .prepared(data(), NonZeroUsize::MIN)
        .expect("pictures");
    assert!(
        trainer
            .evaluate(&prepared)
            .is_ok_and(|found| found.loss.is_finite())
    );
    // Pictures as they are would be no features.
    assert!(matches!(
        trainer.evaluate(&data()),
        Err(Error::OtherFeatures { .. })
    ));
    let inputs = crate::data::Inputs {
        format: crate::data::Format::Npy,
        columns: Vec::new(),
        categories: Default::default(),
        shape: vec![2, 12, 8],
        scale: 1.0,
        mean: vec![0.0; 2],
        std: vec![1.0; 2],
    };
    let onnx = recipe.onnx(&architecture, &trainer.parameters(), &inputs, &[]);
    assert_eq!(onnx, Err(OnnxError::Features));
    let (architecture, _) = plain.architecture(&[2, 12, 8], Some(3)).expect("fits");
    assert!(
        plain
            .onnx(&architecture, &plain.initial(&architecture), &inputs, &[])
            .is_ok()
    );
}

/// Sixteen bytes for each parameter and row: told before anybody pays, and by what would pass.
#[test]
fn noise_that_would_fill_the_memory_is_refused() {
    let recipe = |hidden: &str, turns: &str| {
        let plan = format!(
            "[plan]\nsampler = 'cyclic'\nsteps = 2048\nclip = 1.0\nnoise_multiplier = 8.0\ndelta = 1e-5\n{turns}"
        );
        let text = format!("{DATA}\n[model]\nkind = 'mlp'\nhidden = {hidden}\n{plan}");
        toml::from_str::<Recipe>(&text).unwrap_or_else(|error| panic!("{text}\n{error}"))
    };
    // 4 inputs and 3 outputs: 1,051,633 parameters, of which 255 rows are just below 4 GiB.
    let check = |hidden: &str, turns: &str, passes: Option<&str>| {
        let recipe = recipe(hidden, turns);
        let plan = recipe.plan().expect("a plan");
        let checked = recipe.check(&plan, &[4]).map(|_| ());
        match (checked, passes) {
            (checked, None) => assert_eq!(checked, Ok(()), "{hidden} {turns}"),
            (checked, Some(passes)) => {
                let error = checked.expect_err(turns);
                assert_eq!(error.code(), "noise_memory", "{error}");
                let suggestion = error.suggestion();
                assert!(suggestion.contains(passes), "{suggestion}");
            }
        }
    };
    let large = "[1021, 1021]";
    check(large, "bins = 64\nband = 255", None);
    check(
        large,
        "bins = 64\nband = 256",
        Some("`band` as at most 255"),
    );
    check("[8]", "bins = 64\nband = 1024", None);
    check(large, "bins = 64\nmechanism = 'tree'", None);
    // Twelve levels of a tree of 2,048 steps.
    check(
        "[5000, 5000]",
        "bins = 64\nmechanism = 'tree'",
        Some("22369621 parameters"),
    );
}

/// A run of more examples would be refused after it was paid for.
#[test]
fn more_examples_than_are_trained_on_are_refused_by_what_is_declared() {
    let recipe = |examples: u64| {
        let mut recipe = read(&PLAN.replace("rate = 0.1", "rate = 1e-5"), "");
        recipe.data.n_public = Some(examples);
        let plan = recipe.plan().expect("a plan");
        let checked = recipe.check(&plan, &[4]).map(|_| ());
        let unread = recipe.check_unopened(&plan, std::path::Path::new(""));
        assert_eq!(checked, unread);
        checked
    };
    assert_eq!(recipe(1 << 25), Ok(()));
    let error = recipe((1 << 25) + 1).expect_err("one more");
    assert_eq!(error.code(), "too_many_examples");
    assert!(error.suggestion().contains("33554432"));
}

/// A plan of batches that may be too large, with a sampler: is it refused for that?
fn large_batches(sampler: &str) -> crate::Result<()> {
    let text = format!(
        "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [20]\nclasses = 2\nn_public = 30000000\n\
         [model]\nkind = 'mlp'\nhidden = [8]\n\
         [plan]\n{sampler}\nsteps = 1\nclip = 1.0\nnoise_multiplier = 1.0\ndelta = 1e-9\n"
    );
    let recipe: Recipe = toml::from_str(&text).expect("a plan");
    let plan = recipe.plan().expect("a price");
    recipe.check(&plan, &[20]).map(drop)
}

/// The field that a refusal of large batches names is one that the plan has, or is told to have; and what it tells of it passes.
#[test]
fn batches_that_cannot_be_summed_are_refused_by_a_field_of_the_plan() {
    for (sampler, named, field) in [
        ("rate = 1.0", "a sampling `rate` of at most ", "rate = "),
        (
            "sampler = 'fixed_size'\nsize = 30000000",
            "a `size` of at most ",
            "sampler = 'fixed_size'\nsize = ",
        ),
        (
            "sampler = 'shuffled'\nbatches = 2",
            "at least ",
            "sampler = 'shuffled'\nbatches = ",
        ),
        (
            "sampler = 'balls_in_bins'\nbins = 2",
            "at least ",
            "sampler = 'balls_in_bins'\nbins = ",
        ),
        (
            "sampler = 'cyclic'\nbins = 2\nmechanism = 'tree'",
            "at least ",
            "sampler = 'cyclic'\nmechanism = 'tree'\nbins = ",
        ),
        (
            "sampler = 'all'",
            "sampler = \"poisson\" and a `rate` of at most ",
            "rate = ",
        ),
    ] {
        let refused = large_batches(sampler).expect_err(sampler);
        assert_eq!(refused.code(), "batch_rounding", "{sampler}");
        let told = refused.suggestion();
        let (_, told) = told.split_once(": ").expect("a field");
        let number = told.strip_prefix(named).expect(told);
        let (number, rest) = number.split_once(' ').expect(told);
        let name = field
            .rsplit('\n')
            .next()
            .map(|line| line.replace(" = ", ""));
        let name = name.expect("a line");
        assert!(
            named.contains(&name) || rest.starts_with(&format!("`{name}` in [plan]")),
            "{told}"
        );
        assert_eq!(large_batches(&format!("{field}{number}")), Ok(()), "{told}");
    }
}

/// What a refusal of large batches tells would pass, does, and a little more does not.
#[test]
fn batches_that_cannot_be_summed_are_refused_with_a_number() {
    let checked = |rate: f64| large_batches(&format!("rate = {rate:?}"));
    let Err(error) = checked(1.0) else {
        panic!("thirty million examples in 32-bit floats");
    };
    let Error::BatchRounding { passes, .. } = error else {
        panic!("{error:?}");
    };
    assert!(error.suggestion().contains(&format!("at most {passes}")));
    assert!(passes > 1000, "{passes}");
    assert_eq!(checked(passes as f64 / 3e7), Ok(()));
    assert!(checked((passes + 20) as f64 / 3e7).is_err());
}
