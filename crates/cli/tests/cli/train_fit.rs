//! `whit train` for classical models: priced without data, charged by a ledger, a model and its card that no failure loses, and what would not pass is told.

use std::path::Path;

use tempfile::TempDir;

use super::*;

const DATA: &str = "[data]\npath = 'points.csv'\nlabel = 'side'\nclasses = 2\ncolumns = ['x', 'y', 'hue']\n[data.categories]\nhue = ['red', 'blue']\n";
const TEST: &str = "[test]\npath = 'public.csv'\nlabel = 'side'\nclasses = 2\ncolumns = ['x', 'y', 'hue']\n[test.categories]\nhue = ['red', 'blue']\n";
const BOUNDS: &str = "[bounds]\nx = [-1, 1]\ny = [-1, 1]\n";
const BAYES: &str = "[model]\nkind = 'naive_bayes'\n";
const PLAN: &str = "[plan]\nepsilon = 2.0\ndelta = 1e-6\n";

const CATALOG: &str = "\
[dataset]
id = 'points'
[budget]
epsilon = 8.0
delta = 1e-4
[table.points]
source = 'points.csv'
unit = 'who'
rows_per_unit = 1
";

/// Points of people on either side of a line. The last one is nobody's business.
fn points(rows: usize, last: &str) -> String {
    let mut text = String::from("who,x,y,hue,side\n");
    for row in 0..rows {
        let x = (row * 37 % 101) as f64 / 50.0 - 1.0;
        let y = 0.5 * x + (row * 53 % 89) as f64 / 178.0 - 0.25;
        let hue = ["red", "blue"][usize::from(x > 0.0)];
        text += &format!("p{row},{x},{y},{hue},{}\n", i32::from(x > 0.0));
    }
    text + last
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text);
    write("points.csv", points(3000, "")).expect("writable");
    write("public.csv", points(300, "")).expect("writable");
    folder
}

/// Writes a plan and gives the command that fits by it.
fn command(folder: &Path, plan: &str) -> String {
    let path = folder.join("plan.toml");
    fs::write(&path, plan).expect("writable");
    format!("train {}", path.display())
}

fn whole() -> String {
    format!("{DATA}{TEST}{BOUNDS}{BAYES}{PLAN}")
}

#[test]
fn a_dry_run_prices_a_fit_whose_data_are_nowhere() {
    let folder = TempDir::new().expect("a folder");
    let price = |plan: &str| {
        let text = format!("{DATA}{BOUNDS}{BAYES}{plan}");
        answer(&run(&format!(
            "{} --dry-run --format json",
            command(folder.path(), &text)
        )))
    };
    let found = price(PLAN);
    assert_eq!(
        (&found["mechanism"], &found["kind"]),
        (&"gaussian".into(), &"naive_bayes".into())
    );
    assert_eq!(
        (&found["relation"], &found["features"]),
        (&"add_remove".into(), &4.into())
    );
    let (lower, upper) = (
        number(&found, "epsilon_lower"),
        number(&found, "epsilon_upper"),
    );
    assert!(lower <= upper && upper <= 2.0 && lower > 1.99, "{found}");
    let pure = price("[plan]\nepsilon = 2.0\ndelta = 0\n");
    assert_eq!(pure["mechanism"], "laplace");
    assert_eq!(number(&pure, "epsilon_upper"), 2.0);
    assert_eq!(number(&pure, "delta"), 0.0);
    // Four features: 1 + 6 in L1, so noise of scale 3.5.
    let deviation = number(&pure, "noise_deviation");
    assert!(
        (deviation / (3.5 * 2_f64.sqrt()) - 1.0).abs() < 1e-9,
        "{deviation}"
    );
}

#[test]
fn every_kind_fits_and_leaves_a_model_and_a_card() {
    let numbers = DATA
        .replace("classes = 2\n", "")
        .replace("label = 'side'", "label = 'y'");
    let numbers = numbers.replace("'x', 'y', 'hue'", "'x', 'hue'");
    let tested = TEST
        .replace("classes = 2\n", "")
        .replace("label = 'side'", "label = 'y'");
    let tested = tested.replace("'x', 'y', 'hue'", "'x', 'hue'");
    let classes = format!("{DATA}{TEST}");
    let line = format!("{numbers}{tested}");
    let check = |data: &str, model: &str, measure: &str, range: std::ops::Range<f64>| {
        for delta in ["1e-6", "0"] {
            let folder = folder();
            let text =
                format!("{data}{BOUNDS}[model]\n{model}\n[plan]\nepsilon = 8.0\ndelta = {delta}\n");
            let found = answer(&run(&format!(
                "{} --format json",
                command(folder.path(), &text)
            )));
            let value = number(&found["test"], measure);
            assert!(range.contains(&value), "{model} at delta {delta}: {found}");
            let read = |name: &str| {
                fs::read_to_string(folder.path().join("plan").join(name)).expect("written")
            };
            let card = read("card.md");
            for part in [
                "**epsilon 8** at delta",
                "for one example",
                "no ledger",
                "How many rows there are is not public",
            ] {
                assert!(card.contains(part), "{part:?} is not in\n{card}");
            }
            let document: Value = serde_json::from_str(&read("model.json")).expect("JSON");
            assert!(model.contains(document["model"]["kind"].as_str().expect("a word")));
            assert_eq!(
                number(&document["promise"], "delta"),
                delta.parse::<f64>().expect("a number")
            );
        }
    };
    check(&classes, "kind = 'naive_bayes'", "accuracy", 0.9..1.01);
    check(
        &classes,
        "kind = 'forest'\ntrees = 2\ndepth = 2\nbins = 4",
        "accuracy",
        0.8..1.01,
    );
    check(
        &classes,
        "kind = 'boosted_stumps'\nepochs = 2\nbins = 4",
        "accuracy",
        0.8..1.01,
    );
    check(
        &line,
        "kind = 'linear_regression'",
        "mean_squared_error",
        0.0..0.05,
    );
    let nearest = "mean_squared_distance_to_the_nearest_centre";
    check(
        &classes,
        "kind = 'k_means'\nclusters = 2",
        nearest,
        0.0..0.8,
    );
    check(
        &classes,
        "kind = 'pca'\ncomponents = 2",
        "share_of_the_squares_about_the_centre",
        0.6..1.01,
    );
}

#[test]
fn what_would_not_pass_is_told_before_anything_is_paid() {
    let folder = folder();
    let catalog = folder.path().join("whit.toml");
    fs::write(&catalog, CATALOG).expect("writable");
    let before = fs::read_dir(folder.path()).expect("a folder").count() + 1;
    let check = |from: &str, to: &str, code: &str, part: &str| {
        let plan = whole().replace(from, to);
        assert_ne!(plan, whole(), "{from}");
        for dry in ["", " --dry-run"] {
            let command = command(folder.path(), &plan) + dry;
            let said = answer_of_refusal(&command, code);
            assert!(said.contains(part), "{said}");
        }
        // No ledger, no folder.
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            before,
            "{code}"
        );
    };
    check(
        "y = [-1, 1]\n",
        "",
        "bounds_missing",
        "\\\"y\\\" = [lower, upper] in [bounds]",
    );
    check(
        "y = [-1, 1]\n",
        "y = [-1, 1]\nz = [0, 1]\n",
        "bounds_unused",
        "leave \\\"z\\\" out",
    );
    check(
        "y = [-1, 1]\n",
        "y = [1, -1]\n",
        "empty_interval",
        "the lower one first",
    );
    check(
        "kind = 'naive_bayes'\n",
        "kind = 'naive_bayes'\nclusters = 2\n",
        "plan_field_unused",
        "leave `clusters` out",
    );
    check(
        "kind = 'naive_bayes'\n",
        "kind = 'k_means'\n",
        "plan_field_missing",
        "clusters = 8",
    );
    check(
        "kind = 'naive_bayes'\n",
        "kind = 'naive_bayes'\ncolour = 1\n",
        "plan_malformed",
        "colour",
    );
    // A word of other programs means what this kind of model has for it.
    check(
        "kind = 'naive_bayes'\n",
        "kind = 'minima_perturbation'\nC = 1.0\n",
        "plan_malformed",
        "give penalty in [model], which is one over C",
    );
    check(
        "epsilon = 2.0",
        "epsilon = 0.0",
        "plan_out_of_range",
        "a number above 0",
    );
    check(
        "delta = 1e-6",
        "delta = 0.5",
        "plan_out_of_range",
        "0 for pure differential privacy",
    );
    check(
        "delta = 1e-6\n",
        "delta = 1e-6\nsteps = 4\n",
        "plan_malformed",
        "steps",
    );
    check(
        "['red', 'blue']\n[bounds]",
        "['red', 'green']\n[bounds]",
        "test_differs",
        "the same `categories`",
    );
    check(
        "columns = ['x', 'y', 'hue']\n[data",
        "columns = ['x', 'y', 'hue']\nmean = 1.0\n[data",
        "plan_field_unused",
        "leave `mean` out",
    );
    check(
        "columns = ['x', 'y', 'hue']\n[data",
        "columns = ['x', 'y', 'hue']\nscale = 2.0\n[data",
        "plan_field_unused",
        "leave `scale` out",
    );
    check(
        "[model]\nkind = 'naive_bayes'\n",
        "side = [0, 1]\n[model]\nkind = 'linear_regression'\n",
        "plan_field_unused",
        "leave `classes` out",
    );
}

/// The words of a refusal, as JSON.
fn answer_of_refusal(command: &str, code: &str) -> String {
    let refused = run(&format!("{command} --format json"));
    assert_ne!(refused.code, 0, "{command}: {}", refused.stdout);
    assert!(
        refused.stdout.contains(&format!("\"{code}\"")),
        "{}{}",
        refused.stdout,
        refused.stderr
    );
    refused.stdout
}

#[test]
fn a_catalogued_fit_is_charged_as_its_dry_run_says_and_each_fit_anew() {
    let folder = folder();
    let strange = format!("{CANARY},x,{CANARY},{CANARY},7\n");
    fs::write(folder.path().join("points.csv"), points(3000, &strange)).expect("writable");
    fs::write(folder.path().join("whit.toml"), CATALOG).expect("writable");
    let command = command(folder.path(), &whole());
    let left = |found: &Value| number(&found["remaining"]["dataset"], "epsilon");
    let dry = answer(&run(&format!("{command} --dry-run --format json")));
    assert!(number(&dry, "room") >= 1.0 && left(&dry) == 8.0, "{dry}");
    let first = answer(&run(&format!("{command} --format json")));
    assert_eq!(first["charge"], dry["charge"]);
    assert!(
        left(&first) < 8.0 && number(&first["test"], "accuracy") > 0.9,
        "{first}"
    );
    let card = fs::read_to_string(folder.path().join("plan/card.md")).expect("a card");
    let receipt = first["receipt"].as_str().expect("text");
    for part in ["for one who", "the ledger of points, record", receipt] {
        assert!(card.contains(part), "{part:?} is not in\n{card}");
    }
    assert!(!card.contains(CANARY));
    // What is there stays, and nobody pays for it twice.
    let again = answer_of_refusal(&command, "out_taken");
    assert!(again.contains("give another folder"), "{again}");
    let other = format!(
        "{command} --format json --out {}",
        folder.path().join("other").display()
    );
    assert!(left(&answer(&run(&other))) < left(&first));
    let verified = run(&format!(
        "ledger verify --catalog {}",
        folder.path().join("whit.toml").display()
    ));
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let large = whole().replace("epsilon = 2.0", "epsilon = 30.0");
    let large = self::command(folder.path(), &large);
    let refused = answer_of_refusal(
        &format!("{large} --out {}", folder.path().join("third").display()),
        "budget_exhausted",
    );
    assert!(refused.contains("left"), "{refused}");
}

#[test]
fn the_owner_hears_of_rows_that_do_not_fit() {
    let folder = folder();
    fs::write(
        folder.path().join("points.csv"),
        points(30, "q,0,0,green,1\n"),
    )
    .expect("writable");
    let said = answer_of_refusal(&command(folder.path(), &whole()), "row_unknown_category");
    assert!(
        said.contains("categories") && !said.contains("green"),
        "{said}"
    );
    assert!(!folder.path().join("plan").exists());
}

/// What a fit has printed after the word that a file could not be written.
fn rescued(said: &str, name: &str) -> String {
    let start = format!("{name} could not be written");
    let (_, rest) = said.split_once(&start).expect("told");
    let (_, text) = rest.split_once('\n').expect("a line");
    let end = text.find(" could not be written").unwrap_or(text.len());
    let (text, _) = text[..end].rsplit_once('\n').unwrap_or((text, ""));
    text.to_owned()
}

/// A model that was paid for was lost with its card where the disk was full, and the next fit was refused for what was left.
#[test]
fn a_model_that_cannot_be_written_is_printed() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("whit.toml"), CATALOG).expect("writable");
    let command = command(path, &whole());
    // A folder stands where files are written first.
    let blocks = |name: &str| {
        fs::create_dir_all(path.join("plan").join(name)).expect("writable");
    };
    let frees = |name: &str| fs::remove_dir(path.join("plan").join(name)).expect("empty");
    blocks("model.part.json");
    let first = run(&command);
    assert_eq!(first.code, 1, "{}", first.stderr);
    assert!(first.stderr.contains("out_not_written"), "{}", first.stderr);
    let files = || {
        let entries = fs::read_dir(path.join("plan")).expect("there");
        let names = entries.map(|entry| entry.expect("listed").file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    frees("model.part.json");
    assert!(files().is_empty(), "{:?}", files());
    let kept = path.join("kept");
    fs::create_dir(&kept).expect("writable");
    for name in ["model.json", "inputs.json", "card.md"] {
        fs::write(kept.join(name), rescued(&first.stderr, name)).expect("writable");
    }
    let predicted = run(&format!(
        "predict {} --data {} --format json",
        kept.display(),
        path.join("public.csv").display()
    ));
    assert!(number(&answer(&predicted), "accuracy") > 0.9);
    let card = fs::read_to_string(kept.join("card.md")).expect("there");
    assert!(card.contains("the ledger of points, record"), "{card}");
    // The model comes first: what fails after it is what is told.
    blocks("card.part.md");
    let second = run(&command);
    assert!(second.code == 1 && !second.stderr.contains("model.json"));
    assert!(rescued(&second.stderr, "card.md").contains("**epsilon 2**"));
    answer_of_refusal(&command, "out_taken");
}

/// Two fits in one folder were both paid, and one model was left.
#[test]
fn a_folder_is_written_to_by_one_fit() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("whit.toml"), CATALOG).expect("writable");
    let command = command(path, &whole());
    fs::create_dir(path.join("plan")).expect("writable");
    let held = path.join("plan/.whit-fit.lock");
    let lock = fs::File::create(&held).expect("writable");
    lock.try_lock().expect("nobody else's");
    answer_of_refusal(&command, "out_busy");
    assert!(!path.join("whit.ledger").exists(), "nothing is charged");
    drop(lock);
    answer(&run(&format!("{command} --format json")));
    assert!(!held.exists());
}
