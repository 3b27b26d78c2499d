//! `whit train` on a private table of a catalog: paid from its ledger, whole, before a row is read.

use std::path::Path;

use tempfile::TempDir;

use super::*;

const PLAN: &str = "\
[data]
path = 'points.csv'
label = 'side'
classes = 2
n_public = 100
[model]
kind = 'logistic'
[plan]
rate = 0.1
steps = 40
clip = 1.0
noise_multiplier = 8.0
delta = 1e-6
";

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

/// Points of people, some of whom have two.
fn folder(catalog: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut text = String::from("who,x,y,side\n");
    for row in 0..200 {
        let (who, x) = (row % 120, f64::from(row * 37 % 101) / 50.0 - 1.0);
        text += &format!("p{who},{x},0.5,{}\n", i32::from(x > 0.0));
    }
    text += &format!("{CANARY},x,{CANARY},7\n");
    write(folder.path(), "points.csv", &text);
    write(folder.path(), "plan.toml", PLAN);
    write(folder.path(), "whit.toml", catalog);
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("writable");
}

fn train(folder: &TempDir, more: &str) -> String {
    format!("train {}/plan.toml {more}", folder.path().display())
}

fn names(folder: &Path) -> BTreeSet<std::ffi::OsString> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("listed").file_name())
        .collect()
}

fn left(found: &Value) -> f64 {
    number(&found["remaining"]["dataset"], "epsilon")
}

#[test]
fn a_run_is_charged_and_says_so() {
    let folder = folder(CATALOG);
    let dry = answer(&run(&train(&folder, "--dry-run --format json")));
    let rho = number(&dry["charge"], "rho");
    assert!(rho > 0.0 && left(&dry) == 8.0, "{dry}");
    let first = answer(&run(&train(&folder, "--format json")));
    assert_eq!(first["charge"], dry["charge"]);
    assert_eq!(first["resumed"], false);
    assert!(left(&first) < 8.0);
    let receipt = first["receipt"].as_str().expect("text");
    let card = fs::read_to_string(folder.path().join("plan").join("card.md")).expect("a card");
    for part in [
        "for one who",
        "the ledger of points, record",
        receipt,
        "Whether or not any one who was in the data",
    ] {
        assert!(card.contains(part), "{part:?} is not in\n{card}");
    }
    assert!(!card.contains("No ledger was charged") && !card.contains(CANARY));
    // The same command has nothing left to do, and pays nothing.
    let again = answer(&run(&train(&folder, "--format json")));
    assert_eq!(
        (left(&again), &again["resumed"]),
        (left(&first), &true.into())
    );
    assert_eq!(number(&again["charge"], "rho"), 0.0);
    assert_eq!(again["receipt"], first["receipt"]);
    // Another folder is another run.
    let out = folder.path().join("other");
    let other = train(&folder, &format!("--format json --out {}", out.display()));
    let other = answer(&run(&other));
    assert!(left(&other) < left(&first) && other["resumed"] == false);
    let catalog = folder.path().join("whit.toml");
    let verified = run(&format!("ledger verify --catalog {}", catalog.display()));
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let people = run(&train(&folder, ""));
    assert_eq!((people.code, people.stderr.as_str()), (0, ""));
    for part in [
        "paid for when it began",
        "no step was taken now",
        "left of points",
        "receipt",
    ] {
        assert!(people.stdout.contains(part), "{}", people.stdout);
    }
}

#[test]
fn what_does_not_fit_the_budget_leaves_nothing() {
    let check = |catalog: &str, exit: i32, kind: &str, code: &str| {
        let folder = folder(catalog);
        let before = names(folder.path());
        check_refused(b"", &train(&folder, ""), exit, kind, code);
        assert_eq!(names(folder.path()), before, "{code}");
    };
    let small = CATALOG.replace("epsilon = 8.0", "epsilon = 0.01");
    check(&small, 3, "exhausted", "budget_exhausted");
    let pure = CATALOG.replace("delta = 1e-4\n", "");
    check(&pure, 2, "refused", "budget_without_delta");
    let several = CATALOG.replace("rows_per_unit = 1\n", "");
    check(&several, 2, "refused", "several_rows_per_unit");
    // Nor does what cannot be written, with a ledger or without one.
    let folder = folder(CATALOG);
    let before = names(folder.path());
    let file = folder.path().join("plan.toml");
    let said = ["", "/deep"].map(|more| {
        let train = train(&folder, &format!("--out {}{more}", file.display()));
        check_refused(b"", &train, 1, "invalid", "out_not_written");
        assert_eq!(names(folder.path()), before);
        run(&train).stderr
    });
    fs::remove_file(folder.path().join("whit.toml")).expect("there");
    let before = names(folder.path());
    let again = ["", "/deep"].map(|more| {
        let train = train(&folder, &format!("--out {}{more}", file.display()));
        check_refused(b"", &train, 1, "invalid", "out_not_written");
        assert_eq!(names(folder.path()), before);
        run(&train).stderr
    });
    assert_eq!(said, again, "one thing is said in one way");
}

/// A dry run says that there is no room, by the ledger that is there and by one that is not.
#[test]
fn a_dry_run_tells_whether_there_is_room() {
    let large = folder(CATALOG);
    let before = names(large.path());
    let dry = |folder: &TempDir| answer(&run(&train(folder, "--dry-run --format json")));
    let found = dry(&large);
    let room = number(&found, "room");
    assert!(room >= 2.0 && found["objection"].is_null(), "{found}");
    assert_eq!(names(large.path()), before, "no ledger was made");
    let people = run(&train(&large, "--dry-run")).stdout;
    assert!(
        people.contains(&format!("for {room} such runs")),
        "{people}"
    );

    // The budget has room for one run, which is then taken.
    let small = folder(&CATALOG.replace("epsilon = 8.0", "epsilon = 1.5"));
    let found = dry(&small);
    assert_eq!(found["room"], 1, "{found}");
    assert!(
        run(&train(&small, "--dry-run"))
            .stdout
            .contains("for one such run")
    );
    answer(&run(&train(&small, "--format json")));
    // The same command would go on, in its folder, and pay nothing.
    let found = dry(&small);
    assert!(
        found["goes_on"] == true && found["objection"].is_null(),
        "{found}"
    );
    assert_eq!(number(&found["charge"], "rho"), 0.0);
    let people = run(&train(&small, "--dry-run")).stdout;
    assert!(people.contains("paid for when it began"), "{people}");
    // In another one there is no room.
    let elsewhere = format!("--out {}/b", small.path().display());
    let dry = |folder: &TempDir| {
        let dry = train(folder, &format!("--dry-run --format json {elsewhere}"));
        answer(&run(&dry))
    };
    let before = fs::read(small.path().join("whit.ledger")).expect("a ledger");
    let found = dry(&small);
    assert_eq!(found["room"], 0, "{found}");
    let why = found["objection"].as_str().expect("a reason");
    assert!(why.contains("left, and this costs rho"), "{why}");
    assert!(
        why.contains("left are epsilon") && why.contains("a run of about epsilon"),
        "{why}"
    );
    let people = run(&train(&small, &format!("--dry-run {elsewhere}")));
    assert_eq!((people.code, people.stderr.as_str()), (0, ""));
    assert!(
        people.stdout.contains("for no such run: the"),
        "{}",
        people.stdout
    );
    let other = train(&small, &format!("--out {}/b", small.path().display()));
    check_refused(b"", &other, 3, "exhausted", "budget_exhausted");
    assert!(!small.path().join("b").exists());
    let after = fs::read(small.path().join("whit.ledger")).expect("a ledger");
    assert_eq!(before, after, "nothing was recorded");

    // A ledger without a catalog that has the data is none that could be asked.
    fs::remove_file(large.path().join("whit.toml")).expect("there");
    for option in ["--ledger x.ledger", "--analyst ann"] {
        let train = train(&large, &format!("--dry-run {option}"));
        check_refused(b"", &train, 1, "invalid", "not_in_catalog");
    }
}

#[test]
fn there_is_no_way_around_a_ledger() {
    let folder = folder(CATALOG);
    // The same rows, called public.
    for test in ["points.csv", "./points.csv"] {
        let plan = format!("{PLAN}[test]\npath = '{test}'\nlabel = 'side'\nclasses = 2\n");
        write(folder.path(), "plan.toml", &plan);
        check_refused(b"", &train(&folder, ""), 2, "refused", "test_private");
    }
    // The same without a catalog.
    let path = folder.path();
    fs::rename(path.join("whit.toml"), path.join("other.toml")).expect("there");
    check_refused(b"", &train(&folder, ""), 2, "refused", "test_private");
    write(path, "plan.toml", PLAN);
    let ledger = train(&folder, "--ledger x.ledger");
    check_refused(b"", &ledger, 1, "invalid", "not_in_catalog");
    // A catalog of another name is found if it is named, and a run that it has paid for goes on with it alone.
    let named = format!("--catalog {}", path.join("other.toml").display());
    let paid = answer(&run(&train(&folder, &format!("{named} --format json"))));
    assert!(left(&paid) < 8.0);
    // Nor is another private table of that catalog a public one.
    let second = "[table.others]\nsource = \"others.csv\"\nunit = \"who\"\n";
    let both = fs::read_to_string(path.join("other.toml")).expect("there") + second;
    write(path, "other.toml", &both);
    fs::copy(path.join("points.csv"), path.join("others.csv")).expect("copied");
    let plan = format!("{PLAN}[test]\npath = 'others.csv'\nlabel = 'side'\nclasses = 2\n");
    write(path, "plan.toml", &plan);
    check_refused(b"", &train(&folder, &named), 2, "refused", "test_private");
}

/// A catalog that is named does not stand in for the one that is there.
#[test]
fn naming_another_catalog_is_no_way_around_the_nearby_one() {
    let folder = folder(CATALOG);
    let path = folder.path();
    write(
        path,
        "lax.toml",
        &CATALOG.replace("epsilon = 8.0", "epsilon = 80.0"),
    );
    fs::create_dir(path.join("far")).expect("writable");
    let far = CATALOG.replace("'points.csv'", "'../points.csv'");
    write(&path.join("far"), "whit.toml", &far);
    for other in ["lax.toml", "far/whit.toml"] {
        let named = format!("--catalog {}", path.join(other).display());
        for more in ["", " --dry-run"] {
            let train = train(&folder, &format!("{named}{more}"));
            check_refused(b"", &train, 2, "refused", "other_catalog");
        }
    }
    assert!(!path.join("plan").exists() && !path.join("far").join("whit.ledger").exists());
    // The nearby one by any of its names is itself.
    let named = format!("--catalog {}", path.join("far/../whit.toml").display());
    let paid = answer(&run(&train(&folder, &format!("{named} --format json"))));
    assert!(left(&paid) < 8.0);
}

/// A run of its owner's own data, by people and not by rows, without a ledger.
#[test]
fn units_of_uncharged_runs_are_protected_too() {
    let folder = folder(CATALOG);
    fs::remove_file(folder.path().join("whit.toml")).expect("there");
    let text = fs::read_to_string(folder.path().join("points.csv")).expect("there");
    let (text, _) = text.split_once(CANARY).expect("the last row");
    write(folder.path(), "points.csv", text);
    let unit = PLAN.replace("[data]", "[data]\nunit = 'who'\nrows_per_unit = 1");
    write(folder.path(), "plan.toml", &unit);
    let found = answer(&run(&train(&folder, "--format json")));
    assert!(found["charge"].is_null() && found["steps_kept"] == 40);
    let card = fs::read_to_string(folder.path().join("plan").join("card.md")).expect("a card");
    assert!(card.contains("for one who") && card.contains("No ledger was charged"));
    write(
        folder.path(),
        "plan.toml",
        &unit.replace("rows_per_unit = 1", ""),
    );
    check_refused(b"", &train(&folder, ""), 1, "invalid", "data_field_missing");
}
