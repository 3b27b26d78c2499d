//! `whit train` with `[search]`: priced without data, charged whole, made once, and silent about how many runs there were.

use std::path::Path;

use tempfile::TempDir;

use super::*;

const DATA: &str = "[data]\npath = 'points.csv'\nlabel = 'side'\nclasses = 2\ncolumns = ['x', 'y']\nn_public = 400\n";
const PUBLIC: &str =
    "[validation]\npath = 'public.csv'\nlabel = 'side'\nclasses = 2\ncolumns = ['x', 'y']\n";
const PLAN: &str =
    "[model]\nkind = 'logistic'\n[plan]\nrate = 0.2\nsteps = 20\nclip = 1.0\ndelta = 1e-6\n";
const NOISE: &str = "noise_multiplier = 4.0\n";
const SEARCH: &str = "[search]\nruns = 4\nrate = [1e-9, 2.0]\nclip = [1.0, 2.0]\n";
const CATALOG: &str = "[dataset]\nid = 'points'\n[budget]\nepsilon = 30.0\ndelta = 1e-4\n\
                       [table.points]\nsource = 'points.csv'\nunit = 'who'\nrows_per_unit = 1\n";

fn points(rows: u32) -> String {
    let mut text = String::from("who,x,y,side\n");
    for row in 0..rows {
        let x = f64::from(row * 37 % 101) / 50.0 - 1.0;
        text += &format!("p{row},{x},0.5,{}\n", i32::from(x > 0.0));
    }
    text
}

fn folder(plan: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "points.csv", &points(400));
    write(folder.path(), "public.csv", &points(101));
    write(folder.path(), "plan.toml", plan);
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("writable");
}

fn whole() -> String {
    format!("{DATA}{PUBLIC}{PLAN}{NOISE}{SEARCH}")
}

fn train(folder: &TempDir, more: &str) -> String {
    format!("train {}/plan.toml {more}", folder.path().display())
}

#[test]
fn a_dry_run_prices_a_search_whose_data_are_nowhere() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "plan.toml", &whole());
    let found = answer(&run(&train(&folder, "--dry-run --format json")));
    let (one, all) = (
        number(&found, "epsilon_of_one_run"),
        number(&found, "epsilon_upper"),
    );
    assert!(all > one && all < 3.0 * one, "{found}");
    assert_eq!(
        (&found["candidates"], &found["law"]),
        (&4.into(), &"geometric".into())
    );
    let people = run(&train(&folder, "--dry-run"));
    assert_eq!((people.code, people.stderr.as_str()), (0, ""));
    for part in [
        "the best of 4 runs on average (geometric), by accuracy",
        "one run",
    ] {
        assert!(people.stdout.contains(part), "{}", people.stdout);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
    let text = whole().replace(NOISE, "epsilon = 1.0\n");
    write(folder.path(), "plan.toml", &text);
    let found = answer(&run(&train(&folder, "--dry-run --format json")));
    let upper = number(&found, "epsilon_upper");
    assert!(upper <= 1.0 && upper > 0.99, "{found}");
}

#[test]
fn a_search_leaves_its_best_model_and_nothing_of_the_others() {
    let folder = folder(&whole());
    let found = run(&train(&folder, "--format json"));
    assert_eq!(found.stderr, "", "nothing is told on the way");
    let found = answer(&found);
    assert!(
        found["candidate"].as_u64().is_some_and(|at| at < 4),
        "{found}"
    );
    assert!(found["validation"].as_f64().is_some(), "{found}");
    let out = folder.path().join("plan");
    let mut names: Vec<String> = fs::read_dir(&out)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("listed")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names.retain(|name| !name.starts_with("whit-"));
    assert_eq!(
        names,
        ["card.json", "card.md", "model.onnx", "model.safetensors"],
        "no curves"
    );
    let card = fs::read_to_string(out.join("card.md")).expect("a card");
    for part in [
        "the best of a random number of runs (geometric, 4 on average), each with one of 4 candidates",
        "neither other runs of the search nor how many there were",
        "accuracy on [validation]",
        "| charged to | no ledger |",
    ] {
        assert!(card.contains(part), "{part:?} is not in\n{card}");
    }
    // The same command makes no other search: what it leaves is the same.
    let model = fs::read(out.join("model.safetensors")).expect("a model");
    let again = answer(&run(&train(&folder, "--format json")));
    assert_eq!(again["resumed"], true);
    assert_eq!(
        (&again["candidate"], &again["validation"]),
        (&found["candidate"], &found["validation"])
    );
    assert_eq!(
        fs::read(out.join("model.safetensors")).expect("a model"),
        model
    );
}

#[test]
fn a_search_is_charged_whole_and_once() {
    let folder = folder(&whole());
    write(folder.path(), "whit.toml", CATALOG);
    // Whoever is charged has a watch.
    let refused = run(&train(&folder, "--dry-run --format json"));
    assert!(
        refused.stdout.contains("plan_field_missing") && refused.stdout.contains("pad"),
        "{}",
        refused.stdout
    );
    let plan = whole().replace("runs = 4\n", "runs = 3\nlaw = 'poisson'\npad = 24\n");
    write(folder.path(), "plan.toml", &plan);
    let left = |found: &Value| number(&found["remaining"]["dataset"], "epsilon");
    let dry = answer(&run(&train(&folder, "--dry-run --format json")));
    assert!(
        number(&dry["charge"], "rho") > 0.0 && left(&dry) == 30.0,
        "{dry}"
    );
    let first = answer(&run(&train(&folder, "--format json")));
    assert_eq!(first["charge"], dry["charge"]);
    // Its guarantee is charged: about half the square of its epsilon.
    let (rho, epsilon) = (
        number(&first["charge"], "rho"),
        number(&first, "epsilon_upper"),
    );
    assert!(
        (rho / (0.5 * epsilon * epsilon) - 1.0).abs() < 1e-6,
        "{first}"
    );
    assert!(left(&first) < 30.0);
    let again = answer(&run(&train(&folder, "--format json")));
    assert_eq!(
        (left(&again), &again["resumed"]),
        (left(&first), &true.into())
    );
    assert_eq!(number(&again["charge"], "rho"), 0.0);
    let out = folder.path().join("other");
    let other = train(&folder, &format!("--format json --out {}", out.display()));
    assert!(
        left(&answer(&run(&other))) < left(&first),
        "another search pays"
    );
    let catalog = folder.path().join("whit.toml");
    let verified = run(&format!("ledger verify --catalog {}", catalog.display()));
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn what_no_theorem_covers_is_refused() {
    let folder = folder("");
    for (text, more, code) in [
        (
            whole().replace("runs = 4", "runs = 4\nepsilon = [1.0, 2.0]"),
            "",
            "searched_budget",
        ),
        (whole().replace(PUBLIC, ""), "", "plan_field_missing"),
        (
            whole().replace("public.csv", "points.csv"),
            "",
            "test_private",
        ),
        (
            whole().replace("runs = 4", "runs = 4\nlaw = 'fixed'"),
            "",
            "plan_word",
        ),
        (whole().replace(SEARCH, ""), "", "plan_field_unused"),
        (whole(), "--keep-every 5", "search_kept"),
        (
            whole().replace("runs = 4", "runs = 4\npad = 5"),
            "",
            "plan_out_of_range",
        ),
        (
            whole().replace("runs = 4", "runs = 4\nsteps = [1, 2]"),
            "",
            "plan_malformed",
        ),
    ] {
        write(folder.path(), "plan.toml", &text);
        for dry in ["--dry-run", ""] {
            let found = run(&train(&folder, &format!("--format json {dry} {more}")));
            assert_ne!(found.code, 0, "{text}");
            let found: Value = serde_json::from_str(&found.stdout).expect("JSON");
            let kind = ["refused", "invalid"]
                .into_iter()
                .find(|kind| !found[kind].is_null());
            assert_eq!(found[kind.unwrap_or("refused")]["code"], code, "{found}");
        }
    }
    assert!(!folder.path().join("plan").exists());
}
