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

/// The folders with votes of teachers that lie beside results.
fn votes_in(out: &Path) -> Vec<String> {
    let Ok(all) = fs::read_dir(out) else {
        return Vec::new();
    };
    let names = all.map(|entry| entry.expect("readable").file_name().display().to_string());
    names
        .filter(|name| name.starts_with("teachers-") && name.ends_with(".private"))
        .collect()
}

/// What the folder of such a run's votes is called: it has the name of the run's checkpoint.
fn votes_of(folder: &TempDir, more: &str) -> String {
    let out = folder.path().join("scout");
    let place = format!("--out {} --keep-votes {more}", out.display());
    assert_eq!(train(folder, &place).code, 0);
    let found = votes_in(&out);
    fs::remove_dir_all(out).expect("ours");
    found.into_iter().next().expect("votes were kept")
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
    assert_eq!(votes_in(&out), [""; 0], "labels are kept");
    let card = fs::read_to_string(out.join("card.md")).expect("text");
    assert!(
        card.contains("Guarantee") && !card.contains("data-dependent"),
        "{card}"
    );
    assert!(!card.contains("teachers-"), "{card}");
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
    answer(&train(&folder, "--keep-votes --format json"));
    let card = fs::read_to_string(folder.path().join("plan/card.md")).expect("text");
    let out = folder.path().join("plan");
    let name = &votes_in(&out)[0];
    assert!(card.contains(name), "{card}");
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("writable");
    let votes = other.join(name).join("00003.votes");
    fs::rename(out.join(name), other.join(name)).expect("moved");
    let before = fs::read(&votes).expect("there");
    fs::remove_file(&votes).expect("removed");
    let place = format!("--out {} --format json", other.display());
    answer(&train(&folder, &format!("{place} --keep-votes")));
    let after = fs::read(&votes).expect("trained again");
    assert_eq!(before, after, "bit by bit");
    // Whoever does not ask for votes again has none left.
    answer(&train(&folder, &place));
    assert_eq!(votes_in(&other), [""; 0]);
}

/// Stops a run after it was paid and before its teachers vote: a file stands where their folder should.
fn stopped(folder: &TempDir, more: &str) -> Run {
    let (out, name) = (folder.path().join("plan"), votes_of(folder, more));
    fs::create_dir_all(&out).expect("writable");
    write(&out, &name, "in the way");
    let told = train(folder, more);
    fs::remove_file(out.join(name)).expect("removed");
    told
}

#[test]
fn labels_are_of_the_public_examples_that_a_run_was_begun_with() {
    let folder = folder();
    let public = fs::read_to_string(folder.path().join("public.csv")).expect("text");
    let changed = public.replacen("p1,", "p1,1", 1);
    let refused = || {
        write(folder.path(), "public.csv", &changed);
        let told = train(&folder, "");
        write(folder.path(), "public.csv", &public);
        assert_eq!(told.code, 2, "{}", told.stderr);
        let says = "checkpoint_other_public";
        assert!(told.stderr.contains(says), "{}", told.stderr);
    };
    assert_eq!(stopped(&folder, "").code, 1);
    refused();
    let first = answer(&train(&folder, "--format json"));
    let labels = fs::read(folder.path().join("plan/labels.csv")).expect("there");
    refused();
    assert_eq!(
        fs::read(folder.path().join("plan/labels.csv")).expect("there"),
        labels
    );
    let again = answer(&train(&folder, "--format json"));
    assert_eq!(again["labels"], first["labels"]);
}

#[test]
fn what_keeps_teachers_from_voting_suspends_the_ledger_and_loses_nothing() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG);
    let failed = stopped(&folder, "");
    assert_ne!(failed.code, 0);
    let refused = train(&folder, "");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("suspended"), "{}", refused.stderr);
    let catalog = format!("--catalog {}/whit.toml", folder.path().display());
    let resumed = run(&format!("ledger resume {catalog}"));
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let told = answer(&train(&folder, "--format json"));
    assert_eq!(told["resumed"], true, "{told}");
    assert_eq!(told["charge"]["rho"], 0.0, "{told}");
}

#[test]
fn results_of_somebody_else_are_not_written_over() {
    for name in ["labels.csv", "student.csv", "student.safetensors"] {
        let folder = folder();
        let out = folder.path().join("plan");
        fs::create_dir(&out).expect("writable");
        write(&out, name, "mine");
        let told = train(&folder, "");
        assert_eq!(told.code, 2, "{name}: {}", told.stderr);
        assert!(told.stderr.contains("out_taken"), "{}", told.stderr);
        assert_eq!(fs::read_to_string(out.join(name)).expect("text"), "mine");
    }
}

#[test]
fn what_is_the_owners_is_not_shown_to_an_analyst() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG);
    for option in ["--owner", "--keep-votes"] {
        let told = train(&folder, &format!("{option} --analyst ann"));
        assert_eq!(told.code, 2, "{option}: {}", told.stderr);
        for says in ["owner_and_analyst", option] {
            assert!(told.stderr.contains(says), "{option}: {}", told.stderr);
        }
        assert!(!folder.path().join("whit.ledger").exists());
        assert!(!folder.path().join("plan").exists());
    }
}

/// Labels are of the public examples that were there when they were paid.
#[test]
fn a_run_that_was_paid_goes_on_with_its_public_examples_alone() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG);
    let first = answer(&train(&folder, "--format json"));
    let public = fs::read_to_string(folder.path().join("public.csv")).expect("text");
    let changed = public.replacen("p1,", "p1,1", 1);
    write(folder.path(), "public.csv", &changed);
    let told = train(&folder, "");
    assert_eq!(told.code, 2, "{}", told.stderr);
    let says = "checkpoint_other_public";
    assert!(told.stderr.contains(says), "{}", told.stderr);
    write(folder.path(), "public.csv", &public);
    let again = answer(&train(&folder, "--format json"));
    assert_eq!(
        (&again["labels"], &again["remaining"]),
        (&first["labels"], &first["remaining"])
    );
}

/// Votes that cannot be removed, since somebody's own file lies among them: labels are kept and told again, and nothing is paid again.
#[test]
fn votes_that_are_left_are_told_of_and_cost_nothing() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG);
    let inner = folder.path().join("plan").join(votes_of(&folder, ""));
    fs::create_dir_all(&inner).expect("writable");
    write(&inner, "notes.txt", "mine");
    let budget = || {
        let catalog = format!("--catalog {}/whit.toml", folder.path().display());
        answer(&run(&format!("budget {catalog} --format json")))
    };
    let told = train(&folder, "");
    assert_eq!(told.code, 1, "{}", told.stderr);
    assert!(told.stderr.contains("votes_left"), "{}", told.stderr);
    let left: Vec<_> = fs::read_dir(&inner).expect("there").collect();
    assert_eq!(left.len(), 1, "the votes are gone");
    let paid = budget();
    assert_eq!(train(&folder, "").code, 1, "and again");
    fs::remove_file(inner.join("notes.txt")).expect("ours");
    let first = answer(&train(&folder, "--format json"));
    assert!(!inner.exists());
    let again = answer(&train(&folder, "--format json"));
    assert_eq!(
        (&first["resumed"], &first["charge"]["rho"]),
        (&json!(true), &json!(0.0))
    );
    assert_eq!(first["labels"], again["labels"]);
    assert_eq!(budget(), paid);
}

/// Names of classes are whatever people call them.
#[test]
fn names_of_classes_are_quoted_in_tables() {
    let folder = folder();
    for file in ["patients.csv", "public.csv"] {
        let text = fs::read_to_string(folder.path().join(file)).expect("text");
        write(
            folder.path(),
            file,
            &text.replace(",yes\n", ",\"yes, severe\"\n"),
        );
    }
    write(
        folder.path(),
        "plan.toml",
        &PLAN.replace("'yes'", "'yes, severe'"),
    );
    answer(&train(&folder, "--format json"));
    for name in ["labels.csv", "student.csv"] {
        let text = fs::read_to_string(folder.path().join("plan").join(name)).expect("text");
        assert!(text.contains(",\"yes, severe\"\n"), "{text}");
        let cells = |line: &str| line.replace("\"yes, severe\"", "yes").matches(',').count();
        assert!(text.lines().all(|line| cells(line) == 1), "{text}");
    }
}

/// Of two plans with one folder neither removes what the other needs, nor writes over its results.
#[test]
fn two_plans_with_one_folder_leave_each_other_alone() {
    let folder = folder();
    assert_eq!(stopped(&folder, "").code, 1);
    // The first has trained some teachers.
    let (out, name) = (folder.path().join("plan"), votes_of(&folder, ""));
    fs::create_dir(out.join(&name)).expect("writable");
    write(&out.join(&name), "00003.votes", "the first one's");
    let other = PLAN.replace("count = 25", "count = 24");
    write(folder.path(), "other.toml", &other);
    let told = run(&format!(
        "pate train {}/other.toml --out {}",
        folder.path().display(),
        out.display()
    ));
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(
        votes_in(&out),
        std::slice::from_ref(&name),
        "of the second none are left"
    );
    let kept = fs::read_to_string(out.join(name).join("00003.votes"));
    assert_eq!(kept.expect("left alone"), "the first one's");
    let first = train(&folder, "");
    assert_eq!(first.code, 2, "{}", first.stderr);
    assert!(first.stderr.contains("out_taken"), "{}", first.stderr);
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
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("places_move"), "{}", refused.stderr);
    assert!(refused.stderr.contains("\"hash\""), "{}", refused.stderr);
    assert!(
        !folder.path().join("whit.ledger").exists(),
        "what is refused makes no ledger"
    );
    write(folder.path(), "plan.toml", PLAN);
    let first = answer(&train(&folder, "--format json"));
    assert_eq!(
        votes_in(&folder.path().join("plan")),
        [""; 0],
        "labels are kept"
    );
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
            assert_eq!(votes_in(&folder.path().join(name)), [""; 0]);
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
    refused("queries = 60", "queries = 6000", "public examples");
    refused("public.csv", "patients.csv", "private");
    refused("kind = 'kernel_ridge'", "kind = 'oracle'", "kernel_ridge");
    refused(
        "{ kind = 'logistic' }",
        "{ kind = 'mlp', hidden = [4], dropout = 0.5 }",
        "leave `dropout` out",
    );
    refused(
        "{ kind = 'kernel_ridge', width = 1.0, penalty = 0.1 }",
        "{ kind = 'network', model = { kind = 'mlp', hidden = [4], dropout = 0.5 }, epochs = 2 }",
        "leave `dropout` out",
    );
    refused("count = 25", "size = 25", "plan");
    refused("threshold = 15\n", "", "threshold");
}
