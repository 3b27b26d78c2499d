//! `whit pate train`: from private data to a student.

use std::path::Path;

use tempfile::TempDir;

use serde_json::json;

use super::*;

const PLAN: &str = "\
[data]
path = 'patients.csv'
label = 'ill'
classes = ['no', 'yes']
columns = ['x', 'y']
[public]
path = 'public.csv'
label = 'ill'
classes = ['no', 'yes']
columns = ['x', 'y']
[teachers]
count = 25
learner = { kind = 'kernel_ridge', width = 1.0, penalty = 0.1 }
[aggregator]
threshold = 15
sigma1 = 6
sigma2 = 6
queries = 60
answers_max = 40
delta = 1e-6
[student]
learner = { kind = 'network', model = { kind = 'logistic' }, epochs = 40, rate = 0.05 }
held_out = 100
";

const CATALOG: &str = "\
[dataset]
id = 'patients'
[budget]
epsilon = 25.0
delta = 1e-4
[table.patients]
source = 'patients.csv'
unit = 'who'
rows_per_unit = 1
";

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("writable");
}

/// Two clouds, and the plan.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let rows = |count: usize, shift: usize| -> String {
        let row = |i: usize| {
            let wobble = |k: usize| ((i + shift) * 7919 * k % 1000) as f64 / 700.0;
            let ill = i % 2;
            let place = 1.5 * ill as f64;
            let word = ["no", "yes"][ill];
            format!("p{i},{},{},{word}\n", place + wobble(1), place - wobble(3))
        };
        (0..count).map(row).collect()
    };
    write(
        folder.path(),
        "patients.csv",
        &format!("who,x,y,ill\n{}", rows(600, 0)),
    );
    write(
        folder.path(),
        "public.csv",
        &format!("who,x,y,ill\n{}", rows(300, 5)),
    );
    write(folder.path(), "plan.toml", PLAN);
    folder
}

fn train(folder: &TempDir, more: &str) -> Run {
    run(&format!(
        "pate train {}/plan.toml {more}",
        folder.path().display()
    ))
}

#[test]
fn a_student_is_trained_once_and_shown_again() {
    let folder = folder();
    let priced = answer(&train(&folder, "--dry-run --format json"));
    assert_eq!(priced["relation"], "add_remove");
    let first = answer(&train(&folder, "--owner --format json"));
    assert_eq!(first["epsilon_guaranteed"], priced["epsilon_guaranteed"]);
    assert!(
        first["accuracy"].as_f64().is_some_and(|share| share > 0.8),
        "{first}"
    );
    assert_eq!(
        (&first["private"], &first["resumed"]),
        (&json!(true), &json!(false))
    );
    assert!(first["epsilon"].as_f64().is_some());
    let out = folder.path().join("plan");
    for name in [
        "labels.csv",
        "student.csv",
        "student.safetensors",
        "card.md",
    ] {
        assert!(out.join(name).exists(), "{name}");
    }
    assert_eq!(
        fs::read_dir(out.join("teachers.private"))
            .expect("there")
            .count(),
        25
    );
    let card = fs::read_to_string(out.join("card.md")).expect("text");
    assert!(
        card.contains("Guarantee") && !card.contains("data-dependent"),
        "{card}"
    );
    // Nothing new is told, and what is private is not shown unasked.
    let again = answer(&train(&folder, "--format json"));
    assert_eq!(
        (&again["labels"], &again["resumed"]),
        (&first["labels"], &json!(true))
    );
    assert!(again.get("private").is_none() && again.get("epsilon").is_none());
    let text = train(&folder, "").stdout;
    assert!(
        text.contains("guarantee") && !text.contains("PRIVATE"),
        "{text}"
    );
    // Another plan does not write over what is there.
    write(
        folder.path(),
        "plan.toml",
        &PLAN.replace("count = 25", "count = 24"),
    );
    let other = train(&folder, "");
    assert_eq!(other.code, 2, "{}", other.stderr);
}

#[test]
fn teachers_that_have_voted_are_not_trained_again() {
    let folder = folder();
    answer(&train(&folder, "--format json"));
    let out = folder.path().join("plan");
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("writable");
    let votes = out.join("teachers.private/00003.votes");
    let before = fs::read(&votes).expect("there");
    fs::rename(out.join("teachers.private"), other.join("teachers.private")).expect("moved");
    fs::remove_file(other.join("teachers.private/00003.votes")).expect("removed");
    let place = format!("--out {} --format json", other.display());
    answer(&train(&folder, &place));
    let after = fs::read(other.join("teachers.private/00003.votes")).expect("trained again");
    assert_eq!(before, after, "bit by bit");
}

#[test]
fn a_ledger_is_charged_once_and_before_rows_are_read() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG);
    let priced = answer(&train(&folder, "--dry-run --format json"));
    assert!(
        priced["charge"]["rho"]
            .as_f64()
            .is_some_and(|rho| rho > 0.0),
        "{priced}"
    );
    assert!(!folder.path().join("whit.ledger").exists());
    // By place there is no price for units that come and go.
    write(
        folder.path(),
        "plan.toml",
        &PLAN.replace("count = 25", "count = 25\nrule = 'place'"),
    );
    let refused = train(&folder, "");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("plan_word"), "{}", refused.stderr);
    assert!(
        !folder.path().join("whit.ledger").exists(),
        "what is refused makes no ledger"
    );
    write(folder.path(), "plan.toml", PLAN);
    let first = answer(&train(&folder, "--format json"));
    assert!(
        first["receipt"]
            .as_str()
            .is_some_and(|receipt| receipt.len() > 20),
        "{first}"
    );
    let again = answer(&train(&folder, "--format json"));
    assert_eq!(
        (&again["labels"], &again["remaining"]),
        (&first["labels"], &first["remaining"])
    );
    // Another folder is another run, and is paid; then there is no room.
    let more = answer(&train(
        &folder,
        &format!("--out {}/b --format json", folder.path().display()),
    ));
    assert_ne!(more["remaining"], first["remaining"]);
    let mut code = 0;
    for name in ["c", "d", "e", "f", "g"] {
        code = train(
            &folder,
            &format!("--out {}/{name}", folder.path().display()),
        )
        .code;
        if code != 0 {
            assert!(!folder.path().join(name).join("teachers.private").exists());
            break;
        }
    }
    assert_eq!(code, 3, "the budget ends");
}

#[test]
fn bad_plans_are_refused_with_what_would_pass() {
    let folder = folder();
    let refused = |from: &str, to: &str, says: &str| {
        write(folder.path(), "plan.toml", &PLAN.replace(from, to));
        let told = train(&folder, "");
        assert_ne!(told.code, 0, "{to}");
        assert!(told.stderr.contains(says), "{to}: {}", told.stderr);
        assert!(!folder.path().join("plan").exists(), "{to}");
    };
    refused("count = 25", "count = 0", "number of teachers");
    refused("sigma2 = 6", "sigma2 = 0", "sigma2");
    refused("classes = ['no', 'yes']", "classes = ['no']", "class");
    refused("queries = 60", "queries = 6000", "quer");
    refused("public.csv", "patients.csv", "private");
    refused("kind = 'kernel_ridge'", "kind = 'oracle'", "kernel_ridge");
    refused("count = 25", "size = 25", "plan");
    refused("threshold = 15\n", "", "threshold");
}
