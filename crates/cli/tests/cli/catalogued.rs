//! Files that a catalog names are paid from its ledger by whatever name they come.

use super::query::{CATALOG, Clinic, failure};
use super::*;

/// `whit stats` on a private table of a catalog beside it is paid from the same ledger.
#[test]
fn statistics_of_a_catalogued_file_are_charged() {
    let clinic = Clinic::new();
    let stats = |more: &str| {
        let arguments = format!("stats count visits.csv --epsilon 0.25 --format json {more}");
        clinic.run(&arguments.split_whitespace().collect::<Vec<_>>())
    };
    let found = answer(&stats(""));
    assert_eq!(
        (&found["data"], &found["recorded"]),
        (&"catalogued file".into(), &true.into())
    );
    assert_eq!(
        (&found["unit"], &found["rows_per_unit"]),
        (&"patient".into(), &2.into())
    );
    assert_eq!(found["remaining"]["dataset"]["epsilon"], 0.75);
    assert_eq!(clinic.left(), 0.75);
    assert_eq!(
        failure(&stats("--unit ward --rows-per-unit 1"), 2, "refused"),
        "other_unit"
    );
    assert_eq!(
        failure(&stats("--relation replace"), 2, "refused"),
        "other_relation"
    );
    assert_eq!(
        failure(&stats("--column nothing"), 1, "invalid"),
        "unknown_column"
    );
    assert_eq!(clinic.left(), 0.75);
    // Of a public table, and of a file that no catalog names, nothing is recorded.
    let public = clinic.run(&[
        "stats",
        "count",
        "wards.csv",
        "--epsilon",
        "1",
        "--format",
        "json",
    ]);
    assert_eq!(answer(&public)["recorded"], false);
    let named = clinic.run(&[
        "stats",
        "count",
        "wards.csv",
        "--epsilon",
        "1",
        "--catalog",
        "whit.toml",
        "--format",
        "json",
    ]);
    assert_eq!(failure(&named, 1, "invalid"), "not_in_catalog");
    // Nor can its rows be told as if they were public.
    let run = clinic.run(&[
        "stats",
        "mode",
        "wards.csv",
        "--column",
        "ward",
        "--categories",
        "@visits.csv",
        "--epsilon",
        "1",
        "--format",
        "json",
    ]);
    assert_eq!(failure(&run, 2, "refused"), "private_categories");
    // A catalog that cannot be read is no reason to answer without it.
    clinic.write("whit.toml", "nonsense");
    assert_eq!(failure(&stats(""), 1, "invalid"), "catalog_syntax");
    clinic.write("whit.toml", CATALOG);
    for _ in 0..3 {
        answer(&stats(""));
    }
    assert_eq!(failure(&stats(""), 3, "exhausted"), "budget_exhausted");
    let table = clinic.run(&["stats", "count", "wards.csv", "--epsilon", "1"]);
    assert!(table.stdout.contains("not recorded"), "{}", table.stdout);
}

/// Whatever a catalogued file is called, it is the same rows: by a link, by a second name, by way of other folders, through standard
/// input, or from the folder of a catalog that names files elsewhere.
#[cfg(unix)]
#[test]
fn other_names_of_a_catalogued_file_are_charged_too() {
    let clinic = Clinic::new();
    let (cellar, attic) = (clinic.path("cellar"), clinic.path("attic"));
    for folder in [&cellar, &attic] {
        fs::create_dir(folder).expect("a folder");
    }
    fs::rename(clinic.path("visits.csv"), cellar.join("visits.csv")).expect("moved");
    fs::rename(clinic.path("whit.toml"), attic.join("whit.toml")).expect("moved");
    fs::rename(clinic.path("wards.csv"), attic.join("wards.csv")).expect("moved");
    std::os::unix::fs::symlink("../cellar/visits.csv", attic.join("visits.csv")).expect("a link");
    fs::hard_link(cellar.join("visits.csv"), attic.join("second.csv")).expect("a link");
    let whole = cellar.join("visits.csv");
    let whole = whole.to_str().expect("text");
    let mut left = 1.0;
    for file in [
        "visits.csv",
        "./../attic/visits.csv",
        "../cellar/visits.csv",
        "second.csv",
        whole,
        "-",
        "/dev/stdin",
    ] {
        let mut command = program();
        command
            .args([
                "stats",
                "count",
                file,
                "--epsilon",
                "0.125",
                "--format",
                "json",
            ])
            .current_dir(&attic)
            .stdin(fs::File::open(cellar.join("visits.csv")).expect("it is there"));
        let output = command.output().expect("it runs");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found["recorded"], true, "{file}: {found}");
        left -= 0.125;
        assert_eq!(found["remaining"]["dataset"]["epsilon"], left, "{file}");
    }
    // What comes through a pipe is no file, so it cannot be in a catalog.
    let stats = |more: &[&str]| {
        let mut command = program();
        let arguments = ["stats", "count", "-", "--epsilon", "1", "--format", "json"];
        command.args(arguments).args(more).current_dir(&attic);
        finish(command, b"patient\np1\n")
    };
    assert_eq!(answer(&stats(&[]))["recorded"], false);
    let run = stats(&["--catalog", "whit.toml"]);
    assert_eq!(failure(&run, 1, "invalid"), "not_in_catalog");
}

/// Naming a catalog adds to what is protected, and takes nothing away.
#[test]
fn a_named_catalog_protects_besides_the_nearby_one() {
    let clinic = Clinic::new();
    let run = |arguments: &str| {
        let arguments = format!("stats {arguments} --epsilon 0.5 --format json");
        clinic.run(&arguments.split_whitespace().collect::<Vec<_>>())
    };
    clinic.write(
        "lax.toml",
        &CATALOG.replace("epsilon = 1.0", "epsilon = 9.0"),
    );
    let count = run("count visits.csv --catalog lax.toml");
    assert_eq!(failure(&count, 2, "refused"), "other_catalog");
    assert_eq!(clinic.left(), 1.0);
    assert_eq!(
        answer(&run("count visits.csv --catalog ./whit.toml"))["recorded"],
        true
    );
    // Rows that only the named one protects are no categories.
    let staff = "[table.staff]\nsource = \"staff.csv\"\nunit = \"ward\"\n";
    clinic.write("named.toml", &format!("{CATALOG}{staff}"));
    clinic.write("staff.csv", &format!("ward\nnorth\n{CANARY}\n"));
    fs::remove_file(clinic.path("whit.toml")).expect("there");
    for list in [
        "mode visits.csv --column ward --categories @staff.csv",
        "top visits.csv --k 1 --column ward --categories @staff.csv",
        "marginals visits.csv --columns ward --categories @staff.csv",
    ] {
        let run = run(&format!("{list} --catalog named.toml"));
        assert_eq!(failure(&run, 2, "refused"), "private_categories", "{list}");
    }
}

/// A file that one table has as public and another as private is private.
#[test]
fn a_file_that_is_declared_twice_is_private() {
    let clinic = Clinic::new();
    let twice = CATALOG.replace("\"wards.csv\"", "\"visits.csv\"");
    clinic.write("whit.toml", &twice.replace("table.wards", "table.all"));
    let run = clinic.run(&[
        "stats",
        "count",
        "visits.csv",
        "--epsilon",
        "0.5",
        "--format",
        "json",
    ]);
    assert_eq!(answer(&run)["remaining"]["dataset"]["epsilon"], 0.5);
}

/// A catalog that is a link to nothing said something once: neither the demonstration nor an unrecorded answer stands in for it.
#[cfg(unix)]
#[test]
fn a_catalog_that_is_gone_is_missed() {
    let clinic = Clinic::new();
    fs::remove_file(clinic.path("whit.toml")).expect("it was there");
    std::os::unix::fs::symlink("nowhere.toml", clinic.path("whit.toml")).expect("a link");
    let run = clinic.run(&["budget", "--format", "json"]);
    assert_eq!(failure(&run, 1, "invalid"), "catalog_not_read");
    let run = clinic.run(&[
        "stats",
        "count",
        "visits.csv",
        "--epsilon",
        "1",
        "--format",
        "json",
    ]);
    assert_eq!(failure(&run, 1, "invalid"), "catalog_not_read");
}

/// What is refused before there is a ledger makes none.
#[test]
fn a_refused_statistic_makes_no_ledger() {
    let clinic = Clinic::new();
    let stats = |more: &str| {
        let arguments = format!("stats count visits.csv --format json {more}");
        clinic.run(&arguments.split_whitespace().collect::<Vec<_>>())
    };
    for (more, exit, kind, code) in [
        ("--epsilon 5", 3, "exhausted", "budget_exhausted"),
        ("--epsilon 0.5 --column no", 1, "invalid", "unknown_column"),
        (
            "--epsilon 0.5 --relation replace",
            2,
            "refused",
            "other_relation",
        ),
        ("--epsilon 0.5 --unit ward", 2, "refused", "other_unit"),
    ] {
        assert_eq!(failure(&stats(more), exit, kind), code, "{more}");
        for name in ["whit.ledger", "whit.ledger.key", "whit.ledger.mark"] {
            assert!(!clinic.path(name).exists(), "{more}: {name}");
        }
    }
    assert_eq!(answer(&stats("--epsilon 0.5"))["recorded"], true);
    // A ledger that is there stays as it is.
    let before = fs::read(clinic.path("whit.ledger")).expect("a ledger");
    let run = stats("--epsilon 5");
    assert_eq!(failure(&run, 3, "exhausted"), "budget_exhausted");
    assert!(fs::read(clinic.path("whit.ledger")).expect("a ledger") == before);
}

/// Who names a ledger, or whom to charge, is not answered without.
#[test]
fn a_ledger_is_not_ignored_for_files_that_no_catalog_has() {
    let clinic = Clinic::new();
    for option in ["--ledger whit.ledger", "--analyst ann"] {
        for file in ["wards.csv", "-", ""] {
            let arguments = format!("stats count {file} --epsilon 1 {option} --format json");
            let run = clinic.run(&arguments.split_whitespace().collect::<Vec<_>>());
            assert_eq!(failure(&run, 1, "invalid"), "not_in_catalog", "{arguments}");
            assert!(run.stdout.contains("give --catalog"), "{}", run.stdout);
        }
        // Of a file that is not there, that is said.
        let arguments = format!("stats count no.csv --epsilon 1 {option} --format json");
        let run = clinic.run(&arguments.split_whitespace().collect::<Vec<_>>());
        assert_eq!(failure(&run, 1, "invalid"), "unreadable_file");
    }
    assert!(!clinic.path("whit.ledger").exists());
}
