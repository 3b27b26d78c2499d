//! `whit train`: plans are priced without data, runs leave a model and its card, and what would not pass is told.

use std::path::Path;

use plotters::prelude::{BitMapBackend, DrawingBackend};
use tempfile::TempDir;

use super::*;

const PLAN: &str = "[plan]\nsampler = 'poisson'\nrate = 0.1\nsteps = 40\nclip = 1.0\n";
const NOISE: &str = "noise_multiplier = 1.0\ndelta = 1e-5\n";
const DATA: &str =
    "[data]\npath = 'points.csv'\nlabel = 'side'\nclasses = 2\nshape = [2]\nn_public = 1000\n";
const TEST: &str = "[test]\npath = 'public.csv'\nlabel = 'side'\nclasses = 2\nshape = [2]\n";
const MODEL: &str = "[model]\nkind = 'mlp'\nhidden = [8]\n";
const OPTIMIZER: &str = "[optimizer]\nkind = 'sgd'\nrate = 2.0\n";

/// Points on either side of a line, all over a square.
fn points(rows: usize) -> String {
    let mut text = String::from("x,y,side\n");
    for row in 0..rows {
        let (x, y) = (
            (row * 37 % 101) as f64 / 50.0 - 1.0,
            (row * 53 % 89) as f64 / 44.0 - 1.0,
        );
        text += &format!("{x},{y},{}\n", i32::from(x + 0.5 * y > 0.0));
    }
    text
}

fn folder(rows: usize) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text);
    write("points.csv", points(rows)).expect("writable");
    write("public.csv", points(300)).expect("writable");
    folder
}

/// Writes a plan and gives the command that trains by it.
fn command(folder: &Path, plan: &str) -> String {
    let path = folder.join("plan.toml");
    fs::write(&path, plan).expect("writable");
    format!("train {}", path.display())
}

fn whole() -> String {
    format!("{DATA}{TEST}{MODEL}{PLAN}{NOISE}{OPTIMIZER}")
}

#[test]
fn a_dry_run_prices_a_plan_whose_data_are_nowhere() {
    let folder = TempDir::new().expect("a folder");
    // The published run that a golden vector prices, under two relations.
    let plan = |relation: &str| {
        let plan = "[plan]\nrate = 0.004266666666666667\nsteps = 14062\nclip = 1.5\n";
        let data = DATA.replace("1000", "60000");
        let text = format!(
            "{data}{MODEL}{plan}relation = '{relation}'\nnoise_multiplier = 1.1\ndelta = 1e-5\n"
        );
        command(folder.path(), &text) + " --dry-run --format json"
    };
    let found = answer(&run(&plan("add_remove")));
    let wanted = [
        "epsilon_lower",
        "epsilon_upper",
        "delta",
        "noise_multiplier",
        "steps",
        "rate",
        "sampler",
        "relation",
    ];
    for key in wanted {
        assert!(!found[key].is_null(), "{key} of {found}");
    }
    let golden = 2.381_596_921_424_357;
    let (lower, upper) = (
        number(&found, "epsilon_lower"),
        number(&found, "epsilon_upper"),
    );
    assert!(
        lower <= golden * (1.0 + 1e-9) && golden * (1.0 - 1e-9) <= upper,
        "{found}"
    );
    assert!(upper - lower < 1e-3);
    assert_eq!(
        (&found["sampler"], &found["relation"]),
        (&"poisson".into(), &"add_remove".into())
    );
    let people = run(plan("add_remove").trim_end_matches(" --format json"));
    assert_eq!(people.code, 0);
    let note = "points.csv is not there";
    assert!(people.stderr.contains(note), "{}", people.stderr);
    assert!(people.stdout.contains("2.3816"), "{}", people.stdout);
    // Nothing was written.
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
}

#[test]
fn noise_is_calibrated_to_the_epsilon_that_is_asked_for() {
    let folder = TempDir::new().expect("a folder");
    let text = format!("{DATA}{MODEL}{PLAN}epsilon = 2.0\ndelta = 1e-5\n");
    let found = answer(&run(
        &(command(folder.path(), &text) + " --dry-run --format json")
    ));
    let upper = number(&found, "epsilon_upper");
    assert!(upper <= 2.0 && upper > 1.99, "{found}");
}

#[test]
fn a_run_leaves_a_model_a_card_and_curves() {
    let folder = folder(1000);
    let train = command(folder.path(), &whole()) + " --format json --threads 2";
    let found = answer(&run(&train));
    let accuracy = found["test"]["accuracy"].as_f64().expect("classes");
    assert!(accuracy > 0.8, "{found}");
    assert_eq!(found["steps_kept"], 40);
    let out = folder.path().join("plan");
    let bytes = |name: &str| fs::read(out.join(name)).unwrap_or_else(|_| panic!("no {name}"));
    for name in [
        "model.safetensors",
        "model.onnx",
        "card.md",
        "curve.csv",
        "epsilon.svg",
        "epsilon.png",
        "accuracy.svg",
        "accuracy.png",
        "loss.svg",
        "loss.png",
    ] {
        assert!(
            found["files"]
                .as_array()
                .expect("a list")
                .contains(&name.into()),
            "{name}"
        );
        assert!(!bytes(name).is_empty(), "{name}");
    }
    assert!(bytes("accuracy.png").starts_with(b"\x89PNG"));
    let card = String::from_utf8(bytes("card.md")).expect("text");
    assert!(
        card.contains("add/remove for one example") && card.contains("no ledger"),
        "{card}"
    );
    let curve = String::from_utf8(bytes("curve.csv")).expect("text");
    // Twenty times each, and the header.
    assert_eq!(curve.lines().count(), 61, "{curve}");
    // The same command finds that all steps were taken: it takes none and says so, and model and curves are the same.
    let kept = || ["model.safetensors", "curve.csv", "loss.svg", "loss.png"].map(bytes);
    let before = kept();
    let again = answer(&run(&train));
    for same in ["steps_kept", "test", "files"] {
        assert_eq!(again[same], found[same], "{same}");
    }
    let now = |found: &Value| (found["resumed"].clone(), found["steps_now"].clone());
    assert_eq!(now(&found), (false.into(), 40.into()));
    assert_eq!(now(&again), (true.into(), 0.into()));
    assert!(kept() == before);
    // What is missing is made again.
    fs::remove_file(out.join("loss.png")).expect("there");
    answer(&run(&train));
    assert!(bytes("loss.png").starts_with(b"\x89PNG"));
    let people = run(train.trim_end_matches(" --format json --threads 2"));
    assert_eq!((people.code, people.stderr.as_str()), (0, ""));
    for part in ["accuracy on [test]", "no step was taken now"] {
        assert!(people.stdout.contains(part), "{}", people.stdout);
    }
}

/// Names, sizes and all words are the same for any number of rows.
#[test]
fn nothing_that_is_written_knows_how_many_rows_there_are() {
    let seen = |rows: usize| {
        let folder = folder(rows);
        let text = format!("{DATA}{MODEL}{PLAN}{NOISE}{OPTIMIZER}");
        let mut found = answer(&run(&(command(folder.path(), &text) + " --format json")));
        found["out"].take();
        let out = fs::read_dir(folder.path().join("plan")).expect("written");
        let mut files: Vec<_> = out
            .map(|entry| {
                let entry = entry.expect("readable");
                let size = entry.metadata().expect("readable").len();
                (entry.file_name(), size)
            })
            .collect();
        files.sort();
        let card = fs::read(folder.path().join("plan").join("card.md")).expect("written");
        (found.to_string(), files, card)
    };
    let (few, many) = (seen(7), seen(1000));
    assert_eq!(few.0, many.0);
    assert_eq!(few.2, many.2);
    assert_eq!(few.1, many.1);
}

/// A plan that is refused, with its code, and with a word of what would pass.
fn check_plan(folder: &Path, plan: &str, flags: &str, exit: i32, code: &str, passes: &str) {
    let kind = if exit == 1 { "invalid" } else { "refused" };
    let train = command(folder, plan) + flags;
    check_refused(b"", &train, exit, kind, code);
    let table = run(&train);
    let hint = table.stderr.lines().nth(1).expect("a hint");
    assert!(hint.contains(passes), "{code}: {hint}");
    assert!(!folder.join("plan").exists(), "{code}");
}

#[test]
fn bad_numbers_are_refused_before_data_are_looked_for() {
    let folder = TempDir::new().expect("a folder");
    let check = |from: &str, to: &str, code: &str, passes: &str| {
        let plan = whole().replace(from, to);
        assert_ne!(plan, whole());
        check_plan(folder.path(), &plan, " --dry-run", 1, code, passes);
    };
    check("rate = 0.1", "rate = 1.5", "plan_out_of_range", "at most 1");
    check("clip = 1.0", "clip = 0", "plan_out_of_range", "from 1e-9");
    check("steps = 40", "steps = 0", "plan_out_of_range", "from 1");
    check("'mlp'", "'oracle'", "unknown_model", "\"mlp\"");
    let layers = "[model]\nkind = 'layers'\nlayers = [{ kind = 'wormhole' }]\n";
    check(MODEL, layers, "unknown_layer", "linear");
    let norm = layers.replace("wormhole", "batch_norm");
    let norm = whole().replace(MODEL, &norm);
    check_plan(
        folder.path(),
        &norm,
        " --dry-run",
        2,
        "batch_norm",
        "group_norm",
    );
    check(
        "n_public = 1000",
        "",
        "plan_field_missing",
        "n_public = 60000",
    );
    check("steps = 40", "stepz = 40", "plan_malformed", "[plan]");
    check("'poisson'", "'weighted'", "plan_word", "fixed_size");
}

#[test]
fn data_that_do_not_fit_are_refused_before_the_first_step() {
    let folder = folder(20);
    let check = |from: &str, to: &str, code: &str, passes: &str| {
        check_plan(
            folder.path(),
            &whole().replace(from, to),
            "",
            1,
            code,
            passes,
        );
    };
    check("'points.csv'", "'nowhere.csv'", "data_unreadable", "exists");
    check(
        "path = 'public.csv'",
        "path = 'nowhere.csv'",
        "data_unreadable",
        "exists",
    );
    check(
        "label = 'side'",
        "label = 'colour'",
        "data_column",
        "first line of the file",
    );
    fs::write(folder.path().join("points.csv"), "x,y,side\n0,1,2\n").expect("writable");
    check("", "", "row_label_out_of_range", "from 0 to 1");
    let missing = run(&format!(
        "train {}",
        folder.path().join("no.toml").display()
    ));
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("cannot be read"),
        "{}",
        missing.stderr
    );
}

#[test]
fn pictures_of_another_size_are_refused() {
    let folder = TempDir::new().expect("a folder");
    for (class, side) in [("cat", 4_u32), ("dog", 5)] {
        let place = folder.path().join("pictures").join(class);
        fs::create_dir_all(&place).expect("writable");
        let path = place.join("one.png");
        let mut picture = BitMapBackend::new(&path, (side, side));
        picture.present().expect("written");
    }
    let bare = "[data]\npath = 'pictures'\nformat = 'images'\nshape = [3, 4, 4]\nn_public = 2\n";
    // Which folders there are is private: without classes nothing is read, or priced.
    for flags in ["", " --dry-run"] {
        let plan = format!("{bare}{MODEL}{PLAN}{NOISE}");
        let passes = "classes = [\"cat\", \"dog\"]";
        check_plan(folder.path(), &plan, flags, 1, "data_field_missing", passes);
    }
    let data = bare.replace("n_public", "classes = ['cat', 'dog']\nn_public");
    let plan = format!("{data}{MODEL}{PLAN}{NOISE}");
    check_plan(
        folder.path(),
        &plan,
        "",
        1,
        "row_picture_size",
        "4 pixels wide",
    );
}

/// A clip norm that moves, from the plan to the card.
#[test]
fn a_clip_norm_that_moves_is_priced_and_trained() {
    let folder = folder(1000);
    let moves = "clipping = 'adaptive'\nquantile = 0.5\ncount_noise = 5.0\n";
    let plan = whole().replace("clip = 1.0\n", &format!("clip = 1.0\n{moves}"));
    let train = command(folder.path(), &plan);
    let dry = answer(&run(&format!("{train} --dry-run --format json")));
    let sum = number(&dry, "sum_noise_multiplier");
    assert!((sum - 1.005_037_8).abs() < 1e-6, "{dry}");
    assert_eq!(
        (number(&dry, "count_noise"), number(&dry, "quantile")),
        (5.0, 0.5)
    );
    let steady = command(folder.path(), &whole()) + " --dry-run --format json";
    let steady = answer(&run(&steady));
    assert!(steady["count_noise"].is_null());
    let (one, other) = (
        number(&dry, "epsilon_upper"),
        number(&steady, "epsilon_upper"),
    );
    assert!(one <= other && one > 0.9999 * other);
    let train = command(folder.path(), &plan);
    let people = run(&format!("{train} --dry-run"));
    assert!(people.stdout.contains("quantile 0.5"), "{}", people.stdout);
    let found = answer(&run(&format!("{train} --format json")));
    assert!(
        found["test"]["accuracy"].as_f64().expect("classes") > 0.8,
        "{found}"
    );
    let card = fs::read_to_string(folder.path().join("plan").join("card.md")).expect("a card");
    for part in [
        "| clip norm of the first step | 1 |",
        "| clip norm follows | quantile 0.5, clip rate 0.2 |",
        "| noise multiplier of sum and count together | 1 |",
        &format!("| noise of the sum, in clip norms | {sum} |"),
        "| noise of the count, in examples | 5 |",
    ] {
        assert!(card.contains(part), "{part:?} is not in\n{card}");
    }
}

/// What cannot train is refused by a dry run, whether or not the data are there, in the words of the real run.
#[test]
fn a_dry_run_refuses_what_cannot_train() {
    let there = folder(20);
    let nowhere = TempDir::new().expect("a folder");
    // The first line of a file, or the columns, tell the shape where it is not declared.
    let bare = whole().replace("shape = [2]\n", "");
    let named = bare.replace("label = 'side'\n", "label = 'side'\ncolumns = ['x', 'y']\n");
    let check = |from: &str, to: &str, exit: i32, code: &str, passes: &str| {
        for plan in [&whole(), &bare, &named] {
            let changed = plan.replace(from, to);
            assert_ne!(&changed, plan);
            check_plan(there.path(), &changed, " --dry-run", exit, code, passes);
            check_plan(there.path(), &changed, "", exit, code, passes);
            let (dry, real) = (" --dry-run", "");
            let said = [dry, real].map(|flags| {
                let train = command(there.path(), &changed);
                run(&format!("{train}{flags}")).stderr
            });
            assert_eq!(said[0], said[1], "{code}");
        }
    };
    let layers = |list: &str| format!("[model]\nkind = 'layers'\nlayers = [{list}]\n");
    check("'mlp'", "'oracle'", 1, "unknown_model", "\"mlp\"");
    check("hidden = [8]\n", "", 1, "model_field_missing", "hidden");
    check(MODEL, &layers(""), 1, "no_layers", "flatten");
    let unknown = layers("{ kind = 'wormhole' }");
    check(MODEL, &unknown, 1, "unknown_layer", "linear");
    let norm = layers("{ kind = 'batch_norm' }");
    check(MODEL, &norm, 2, "batch_norm", "group_norm");
    let three = layers("{ kind = 'linear', outputs = 3 }");
    check(MODEL, &three, 1, "model_outputs", "outputs = 2");
    check(
        MODEL,
        "[model]\nkind = 'cnn'\n",
        1,
        "layer_input",
        "channels",
    );
    check(
        "n_public",
        "std = 0\nn_public",
        1,
        "data_field_domain",
        "above 0",
    );
    check(
        "[model]",
        "mean = 1.0\n[model]",
        1,
        "test_differs",
        "the same `mean`",
    );
    // Without a file what is declared is all there is.
    for plan in [whole(), named.clone()] {
        let cnn = plan.replace(MODEL, "[model]\nkind = 'cnn'\n");
        check_plan(
            nowhere.path(),
            &cnn,
            " --dry-run",
            1,
            "layer_input",
            "channels",
        );
    }
    for to in [&unknown, &norm, &three] {
        let train = command(nowhere.path(), &bare.replace(MODEL, to)) + " --dry-run";
        assert_ne!(run(&train).code, 0, "{to}");
    }
    let (first, second) = named.split_once("[test]").expect("public data");
    let other = format!("{first}[test]{}", second.replace("['x', 'y']", "['x']"));
    check_plan(
        nowhere.path(),
        &other,
        " --dry-run",
        1,
        "test_differs",
        "the same `columns`",
    );
    let other = whole().replace(TEST, &TEST.replace("[2]", "[3]"));
    check_plan(
        nowhere.path(),
        &other,
        " --dry-run",
        1,
        "test_differs",
        "the same `shape`",
    );
}

/// Another plan does not replace what a run has left, nor does any run replace what is not its own.
#[test]
fn what_another_run_has_left_stays() {
    let folder = folder(100);
    let out = folder.path().join("plan");
    let first = command(folder.path(), &whole());
    answer(&run(&format!("{first} --format json")));
    let bytes = |name: &str| fs::read(out.join(name)).expect("written");
    let before = ["model.safetensors", "card.md", "loss.png"].map(bytes);
    // Without [test] there would be no losses, and those of the first run would stand beside the new model.
    let other = command(folder.path(), &whole().replace(TEST, ""));
    check_refused(b"", &other, 2, "refused", "out_taken");
    let told = run(&other).stderr;
    assert!(
        told.contains("--out OTHER") && told.contains("card.md"),
        "{told}"
    );
    assert!(["model.safetensors", "card.md", "loss.png"].map(bytes) == before);
    let elsewhere = format!("{other} --out {}", folder.path().join("b").display());
    assert_eq!(run(&elsewhere).code, 0);
    assert!(!folder.path().join("b").join("loss.png").exists());
    // A card of somebody else's, in a folder where no run was, and in one where this run is.
    let notes = folder.path().join("notes");
    fs::create_dir(&notes).expect("writable");
    for path in [
        notes.join("card.md"),
        folder.path().join("b").join("card.md"),
    ] {
        fs::write(&path, "mine").expect("writable");
        let place = path.parent().expect("a folder").display();
        let train = format!("{other} --out {place}");
        check_refused(b"", &train, 2, "refused", "out_taken");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), Some("mine"));
        fs::remove_file(&path).expect("there");
    }
    // The first run is still what its folder holds.
    let again = command(folder.path(), &whole()) + " --format json";
    assert_eq!(answer(&run(&again))["steps_now"], 0);
}

/// Words of plans, and none of the program's own.
#[test]
fn refusals_speak_of_plans() {
    let folder = folder(20);
    let check = |from: &str, to: &str, part: &str| {
        let plan = whole().replace(from, to);
        assert_ne!(plan, whole());
        let told = run(&(command(folder.path(), &plan) + " --dry-run"));
        assert_ne!(told.code, 0, "{to}");
        assert!(told.stderr.contains(part), "{}", told.stderr);
        for word in ["struct", "u64", "Names(", "entity"] {
            assert!(!told.stderr.contains(word), "{}", told.stderr);
        }
    };
    let classes = "classes = 2\nshape = [2]\nn_public";
    let names = "classes = ['<=50K']\nshape = [2]\nn_public";
    check(classes, names, "[\"<=50K\"]");
    check("steps = 40", "steps = 'many'", "a whole number");
    let layer = "[model]\nkind = 'layers'\nlayers = ['linear']\n";
    check(MODEL, layer, "a layer such as");
    check("delta = 1e-5", "delta = 0.5", "below 0.1");
    check("rate = 2.0", "average = 2.0", "average is 2");
    let fixed = "relation = 'add_remove'\nsampler = 'fixed_size'\nsize = 10\n";
    check(
        "sampler = 'poisson'\nrate = 0.1\n",
        fixed,
        "relation = \"replace_one\"",
    );
    let missing = command(
        folder.path(),
        &whole().replace("'points.csv'", "'nowhere.csv'"),
    );
    let told = run(&missing).stderr;
    assert!(told.contains("there is no such file"), "{told}");
    // What is unusual is shown: the kind of clipping, and a delta that protects few.
    let unusual = whole()
        .replace("1e-5", "1e-2")
        .replace("clip = 1.0\n", "clip = 1.0\nclipping = 'per_layer'\n");
    let shown = run(&(command(folder.path(), &unusual) + " --dry-run")).stdout;
    for part in ["per layer", "delta is above 1/1000"] {
        assert!(shown.contains(part), "{shown}");
    }
}

/// What other trainers call it, and how to write it here.
#[test]
fn words_of_other_trainers_are_told_what_they_are_here() {
    let folder = TempDir::new().expect("a folder");
    for (from, to, part) in [
        (
            "rate = 0.1\nsteps",
            "batch_size = 600\nsteps",
            "rate = batch_size / n_public",
        ),
        ("steps = 40", "epochs = 15", "steps = epochs / rate"),
        ("clip = 1.0", "max_grad_norm = 1.0", "give clip in [plan]"),
        ("rate = 2.0", "lr = 2.0", "rate in [optimizer]"),
        (
            "noise_multiplier = 1.0",
            "noise = 1.0",
            "noise_multiplier in [plan]",
        ),
        (
            "noise_multiplier = 1.0",
            "target_epsilon = 1.0",
            "give epsilon in [plan]",
        ),
        (
            "[optimizer]\nkind = 'sgd'\nrate = 2.0\n",
            "optimizer = 'adam'\n",
            "a section [optimizer]",
        ),
    ] {
        let plan = whole().replace(from, to);
        assert_ne!(plan, whole(), "{from}");
        let told = run(&(command(folder.path(), &plan) + " --dry-run"));
        assert_eq!(told.code, 1, "{}", told.stdout);
        assert!(
            told.stderr.contains(part),
            "{part:?} is not in {}",
            told.stderr
        );
    }
}

/// Weights are releases, and the loss is that of public data: both may be spoken of.
#[test]
fn a_run_that_diverged_says_so() {
    let folder = folder(1000);
    let plan = whole().replace("rate = 2.0", "rate = 1e38");
    let told = run(&command(folder.path(), &plan));
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    let part = "the loss on [test] is above 0.693";
    let words: Vec<&str> = told.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(part), "{}", told.stdout);
    let usual = run(&(command(folder.path(), &whole())
        + " --out "
        + &folder.path().join("usual").display().to_string()));
    assert!(!usual.stdout.contains("note"), "{}", usual.stdout);
}
