//! `whit pate`: votes to labels, and which noise to choose.

use std::path::Path;

use tempfile::TempDir;

use super::*;

const NOISE: &str = "--threshold 200 --sigma1 150 --sigma2 40 --queries 640 --delta 1e-5";

/// A NumPy array of bytes.
fn npy(shape: &str, numbers: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(numbers);
    bytes
}

/// The published run's histograms, and small files of all kinds.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../vectors/pate.json"
    ));
    let all: Value = serde_json::from_str(&text.expect("vectors")).expect("JSON");
    let rows: Vec<Vec<u8>> = serde_json::from_value(all["run"]["votes"].clone()).expect("bytes");
    write(
        folder.path(),
        "golden.npy",
        &npy("(640, 10)", &rows.concat()),
    );
    // Nine teachers on four queries: all for 1, all for 2, split, all for 0.
    let votes: Vec<u8> = (0..9_u8)
        .flat_map(|teacher| [1, 2, teacher % 3, 0])
        .collect();
    write(folder.path(), "votes.npy", &npy("(9, 4)", &votes));
    folder
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(name), bytes).expect("writable");
}

fn aggregate(folder: &TempDir, file: &str, more: &str) -> Run {
    run(&format!(
        "pate aggregate --votes {}/{file} {more}",
        folder.path().display()
    ))
}

#[test]
fn golden_run_prints_what_was_published() {
    let folder = folder();
    let more = format!(
        "--layout histogram {NOISE} --answers-max 286 --owner --accounting expected --format json"
    );
    let told = answer(&aggregate(&folder, "golden.npy", &more));
    let near = |name: &str, truth: f64, within: f64| {
        let found = told[name].as_f64().expect("a number");
        assert!((found - truth).abs() < within, "{name}: {found}");
    };
    near("epsilon", 2.16862, 1e-5);
    near("order", 12.5, 1e-12);
    near("expected_answered", 251.27, 0.01);
    near("epsilon_independent", 2.98053, 1e-5);
    near("epsilon_worst_case", 2.98053, 1e-5);
    assert_eq!(told["private"], true);
    assert_eq!(told["labels"].as_array().map(Vec::len), Some(640));
    assert!(
        told["answered"]
            .as_u64()
            .is_some_and(|answered| answered <= 286)
    );
    assert_eq!(told["epsilon_sanitised"], Value::Null);
    let guaranteed = told["epsilon_guaranteed"].as_f64().expect("a number");
    assert!(guaranteed > 2.2 && guaranteed < 2.6, "{guaranteed}");
    let text = aggregate(&folder, "golden.npy", &more.replace("--format json", ""));
    assert!(
        text.stdout.contains("2.16862 at order 12.5") && text.stdout.contains("251.27"),
        "{}",
        text.stdout
    );
    assert!(
        text.stdout.contains("2.98053") && text.stdout.contains("PRIVATE"),
        "{}",
        text.stdout
    );
}

/// Without --owner nothing that depends on the votes is told but labels.
#[test]
fn strangers_see_labels_and_the_guarantee() {
    let folder = folder();
    let more = format!("--layout histogram {NOISE} --answers-max 286 --format json");
    let told = answer(&aggregate(&folder, "golden.npy", &more));
    for private in [
        "epsilon",
        "order",
        "expected_answered",
        "private",
        "consensus",
        "epsilon_tight",
    ] {
        assert!(told.get(private).is_none(), "{private}");
    }
    assert_eq!(told["epsilon_independent"], told["epsilon_guaranteed"]);
    let again = answer(&aggregate(&folder, "golden.npy", &more));
    assert_eq!(told["epsilon_independent"], again["epsilon_independent"]);
    assert_ne!(told["labels"], again["labels"], "noise is fresh");
    let refused = aggregate(
        &folder,
        "golden.npy",
        &format!("--layout histogram {NOISE} --answers-max 9 --accounting expected"),
    );
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--owner"), "{}", refused.stderr);
}

#[test]
fn votes_become_labels_and_the_cap_is_kept() {
    let folder = folder();
    let quiet = "--threshold 5 --sigma1 0.1 --sigma2 0.1 --queries 4 --delta 1e-5 --format json";
    let told = answer(&aggregate(
        &folder,
        "votes.npy",
        &format!("{quiet} --classes 3 --answers-max 4"),
    ));
    assert_eq!(told["labels"], serde_json::json!([1, 2, null, 0]));
    assert_eq!((&told["answered"], &told["tested"]), (&3.into(), &4.into()));
    let out = folder.path().join("labels.csv");
    let capped = format!("{quiet} --answers-max 1 --out {}", out.display());
    let told = answer(&aggregate(&folder, "votes.npy", &capped));
    assert_eq!(told["labels"], serde_json::json!([1, null, null, null]));
    assert_eq!(
        (&told["tested"], &told["classes_found_in_votes"]),
        (&1.into(), &true.into())
    );
    assert_eq!(
        fs::read_to_string(out).expect("written"),
        "query,label\n0,1\n"
    );
    let plain = "--sigma2 0.1 --queries 4 --answers-max 2 --delta 1e-5 --format json";
    let told = answer(&aggregate(&folder, "votes.npy", plain));
    assert_eq!(told["labels"], serde_json::json!([1, 2, null, null]));
}

#[test]
fn bad_input_is_refused_clearly() {
    let folder = folder();
    let csv = |text: &str| write(folder.path(), "bad.csv", text.as_bytes());
    let good = "--threshold 5 --sigma1 1 --sigma2 1 --queries 1 --answers-max 1 --delta 1e-5";
    let check = |file: &str, more: &str, text: &str| {
        let run = aggregate(&folder, file, more);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (1, ""),
            "{more}: {}",
            run.stderr
        );
        assert!(run.stderr.contains(text), "{more}: {}", run.stderr);
        assert!(!folder.path().join("whit.ledger").exists());
    };
    csv("a,b\n0,1\n0\n");
    check("bad.csv", good, "more or fewer cells");
    csv("a,b\n0,7\n");
    check(
        "bad.csv",
        &format!("{good} --classes 3"),
        "no class from 0 to 2",
    );
    csv("a,b\n0,nan\n");
    check("bad.csv", good, "no class from 0");
    csv("a,b\n");
    check("bad.csv", good, "no teacher");
    csv("a,b\n0,0\n");
    check("bad.csv", good, "one class");
    csv("a,b\n0,0\n");
    check(
        "bad.csv",
        &format!("{good} --layout histogram"),
        "no teacher",
    );
    check(
        "votes.npy",
        &good.replace("--sigma2 1", "--sigma2 0"),
        "above zero",
    );
    check(
        "votes.npy",
        &good.replace("--sigma1 1", "--sigma1 nan"),
        "sigma1",
    );
    check(
        "votes.npy",
        &good.replace("--queries 1", "--queries 5"),
        "there are 4 queries",
    );
    check(
        "votes.npy",
        &good.replace("--queries 1", "--queries 0"),
        "number of queries",
    );
    check(
        "votes.npy",
        &good.replace("--delta 1e-5", "--delta 0"),
        "delta",
    );
    check("votes.npy", &format!("{good} --classes 1"), "classes");
    check("votes.npy", &format!("{good} --analyst ann"), "--analyst");
    check("nowhere.npy", good, "no such file");
}

#[test]
fn a_published_cost_is_paid_for() {
    let folder = folder();
    let more = format!("--layout histogram {NOISE} --answers-max 286 --format json");
    let plain = answer(&aggregate(&folder, "golden.npy", &more));
    let told = answer(&aggregate(
        &folder,
        "golden.npy",
        &format!("{more} --sanitise"),
    ));
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(number(&told["epsilon_guaranteed"]) > number(&plain["epsilon_guaranteed"]) + 0.1);
    // The rest alone is not what it all costs, and nobody is to compose by it.
    assert!(number(&plain["mu"]) > 0.5);
    assert_eq!(told["mu"], Value::Null);
    let sanitised = &told["sanitised"];
    assert!(number(&sanitised["low"]) <= number(&told["epsilon_sanitised"]));
    assert!(number(&sanitised["high"]) >= number(&told["epsilon_sanitised"]));
    assert!(told.get("epsilon").is_none());
    let run = aggregate(
        &folder,
        "golden.npy",
        &format!("{more} --sanitise --sanitise-order 400"),
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
}

#[test]
fn owners_can_draw_how_far_teachers_agree() {
    let folder = folder();
    let picture = folder.path().join("agree.svg");
    let more = format!(
        "--layout histogram {NOISE} --answers-max 286 --plot {}",
        picture.display()
    );
    let run = aggregate(&folder, "golden.npy", &more);
    assert_eq!(run.code, 1, "private without --owner");
    assert!(!picture.exists());
    let run = aggregate(&folder, "golden.npy", &format!("{more} --owner"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        fs::read_to_string(picture)
            .expect("drawn")
            .contains("private")
    );
    assert!(run.stdout.contains("up to 100%"), "{}", run.stdout);
}

const CATALOG: &str = "\
[dataset]
id = 'patients'
[budget]
epsilon = 8.0
delta = 1e-4
[table.patients]
source = 'patients.csv'
unit = 'who'
";

#[test]
fn a_ledger_is_charged_whole_and_stops_what_does_not_fit() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG.as_bytes());
    write(folder.path(), "patients.csv", b"who,age\nann,31\nben,40\n");
    let place = format!(
        "--catalog {}/whit.toml --table patients",
        folder.path().display()
    );
    let noise = "--threshold 5 --sigma1 40 --sigma2 40 --queries 4 --answers-max 2 --delta 1e-6 --format json";
    let refused = aggregate(&folder, "votes.npy", &format!("{noise} {place}"));
    assert_eq!(refused.code, 1);
    // Programs hear of failures as JSON.
    assert!(refused.stdout.contains("--classes"), "{}", refused.stdout);
    let refused = aggregate(
        &folder,
        "votes.npy",
        &format!(
            "{noise} --classes 3 --teachers 9 {}",
            place.replace("patients", "nobody")
        ),
    );
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains("nobody"), "{}", refused.stdout);
    assert!(
        !folder.path().join("whit.ledger").exists(),
        "what is refused makes no ledger"
    );
    let told = answer(&aggregate(
        &folder,
        "votes.npy",
        &format!("{noise} --classes 3 --teachers 9 {place}"),
    ));
    assert!(
        told["charge"]["rho"].as_f64().is_some_and(|rho| rho > 0.0),
        "{told}"
    );
    assert_eq!(told["relation"], "add_remove");
    assert!(
        told["receipt"]
            .as_str()
            .is_some_and(|receipt| receipt.len() > 20)
    );
    let loud = noise.replace("--sigma2 40", "--sigma2 0.1");
    let exhausted = aggregate(
        &folder,
        "votes.npy",
        &format!("{loud} --classes 3 --teachers 9 {place}"),
    );
    assert_eq!(exhausted.code, 3, "{}", exhausted.stderr);
    let bad = aggregate(
        &folder,
        "votes.npy",
        &format!("{noise} --classes 2 --teachers 9 {place}"),
    );
    assert_eq!(
        bad.code, 1,
        "a class out of range is refused before it is paid"
    );
    assert!(bad.stdout.contains("votes_out_of_range"), "{}", bad.stdout);
    let left = answer(&run(&format!(
        "budget --catalog {}/whit.toml --format json",
        folder.path().display()
    )));
    assert!(left.to_string().contains("patients"), "{left}");
}

/// A catalog and `--catalog … --table …` for it.
fn catalogued(folder: &TempDir) -> String {
    write(folder.path(), "whit.toml", CATALOG.as_bytes());
    write(folder.path(), "patients.csv", b"who,age\nann,31\nben,40\n");
    format!(
        "--classes 3 --teachers 9 --catalog {}/whit.toml --table patients",
        folder.path().display()
    )
}

/// Votes that lie on their side would be charged as one of as many teachers as there are queries: how many there are has to be said, and to fit.
#[test]
fn a_ledger_is_not_charged_for_votes_that_lie_on_their_side() {
    let folder = folder();
    let place = catalogued(&folder);
    let turned: Vec<u8> = [1, 2, 0, 0].iter().flat_map(|vote| [*vote; 9]).collect();
    write(folder.path(), "turned.npy", &npy("(4, 9)", &turned));
    let unsaid = place.replace("--teachers 9 ", "");
    for file in ["votes.npy", "turned.npy"] {
        let told = aggregate(&folder, file, &format!("{CHARGED} {unsaid}"));
        assert_eq!(
            (told.code, told.stdout.as_str()),
            (1, ""),
            "{}",
            told.stderr
        );
        assert!(told.stderr.contains("--teachers"), "{}", told.stderr);
    }
    let plan =
        "pate plan --epsilon 2 --delta 1e-5 --queries 4 --choice-epsilon 0.5 --private-votes";
    let votes = |file: &str| format!("{plan} {}/{file}", folder.path().display());
    let told = run(&format!("{} {unsaid}", votes("votes.npy")));
    assert_eq!(told.code, 1, "{}", told.stdout);
    assert!(told.stderr.contains("--teachers"), "{}", told.stderr);
    for told in [
        aggregate(&folder, "turned.npy", &format!("{CHARGED} {place}")),
        run(&format!("{} {place}", votes("turned.npy"))),
    ] {
        assert_eq!(
            (told.code, told.stdout.as_str()),
            (1, ""),
            "{}",
            told.stderr
        );
        assert!(told.stderr.contains("votes_unequal"), "{}", told.stderr);
    }
    assert!(!folder.path().join("whit.ledger").exists());
    let told = aggregate(&folder, "votes.npy", &format!("{CHARGED} {place}"));
    assert_eq!(told.code, 0, "{}", told.stderr);
}

/// What is read, a private table and a ledger that is not there yet: none of them is written over, and nothing is paid.
#[test]
fn what_is_read_is_not_written_over() {
    let folder = folder();
    let place = catalogued(&folder);
    write(folder.path(), "votes.csv", b"a,b\n0,1\n1,1\n");
    let here = folder.path().display().to_string();
    #[cfg(unix)]
    std::os::unix::fs::symlink("votes.csv", folder.path().join("link.csv")).expect("writable");
    let quiet = "--sigma2 40 --queries 2 --answers-max 2 --delta 1e-6";
    let paid = place.replace("--classes 3 --teachers 9", "--classes 2 --teachers 2");
    let link = if cfg!(unix) { "link.csv" } else { "votes.csv" };
    for (more, says) in [
        (format!("--out {here}/votes.csv"), "the votes"),
        (format!("--out {here}/./votes.csv"), "the votes"),
        (format!("--out {here}/{link}"), "the votes"),
        (format!("--out {here}/patients.csv"), "private table"),
        (format!("--out {here}/patients.csv {paid}"), "private table"),
        (format!("--out {here}/whit.toml {paid}"), "the catalog"),
        (format!("--out {here}/whit.ledger {paid}"), "the ledger"),
        (format!("--out {here}/whit.ledger.key {paid}"), "the ledger"),
        (
            format!("--owner --plot {here}/new.svg --out {here}/./new.svg"),
            "--out",
        ),
    ] {
        let told = aggregate(&folder, "votes.csv", &format!("{quiet} {more}"));
        assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{more}");
        assert!(
            told.stderr.contains("out_is_input"),
            "{more}: {}",
            told.stderr
        );
        assert!(told.stderr.contains(says), "{more}: {}", told.stderr);
        assert!(!folder.path().join("whit.ledger").exists(), "{more}");
    }
    let read = |name: &str| fs::read(folder.path().join(name)).expect("there");
    assert_eq!(read("votes.csv"), b"a,b\n0,1\n1,1\n");
    assert_eq!(read("whit.toml"), CATALOG.as_bytes());
    assert_eq!(read("patients.csv"), b"who,age\nann,31\nben,40\n");
    let told = aggregate(
        &folder,
        "votes.csv",
        &format!("{quiet} {paid} --out {here}/labels.csv"),
    );
    assert_eq!(told.code, 0, "{}", told.stderr);
}

/// A dry run reads no votes, and there need be none; what it says of the ledger is what is charged.
#[test]
fn dry_runs_price_without_votes() {
    let folder = folder();
    let here = folder.path().display().to_string();
    let quote = |more: &str| run(&format!("pate aggregate --dry-run {CHARGED} {more}"));
    let number = |value: &Value| value.as_f64().expect("a number");
    let alone = answer(&quote("--format json"));
    let told = answer(&quote("--sanitise --format json"));
    assert_eq!(
        told["epsilon_without_sanitise"],
        alone["epsilon_guaranteed"]
    );
    assert!(number(&told["epsilon_guaranteed"]) > number(&alone["epsilon_guaranteed"]) + 0.1);
    assert_eq!(
        (&told["mu"], &alone["classes"]),
        (&Value::Null, &Value::Null)
    );
    let text = quote("--sanitise").stdout;
    for says in ["guarantee", "without --sanitise", "nobody counts"] {
        assert!(text.contains(says), "{text}");
    }
    // Bad votes are not read, and neither are rows of a private table.
    let place = catalogued(&folder);
    write(folder.path(), "bad.csv", b"a,b\n0,nan\n");
    for file in ["bad.csv", "patients.csv", "nowhere.npy"] {
        let told = quote(&format!("--votes {here}/{file} --format json"));
        assert_eq!(answer(&told), alone, "{file}");
    }
    let quoted = answer(&quote(&format!("{place} --format json")));
    assert_eq!(quoted["relation"], "add_remove");
    assert!(quoted["room"].as_u64().is_some_and(|room| room > 0));
    assert!(!folder.path().join("whit.ledger").exists());
    let paid = aggregate(
        &folder,
        "votes.npy",
        &format!("{CHARGED} {place} --format json"),
    );
    let paid = answer(&paid);
    assert_eq!(paid["charge"], quoted["charge"]);
    assert_eq!(paid["epsilon_guaranteed"], quoted["epsilon_guaranteed"]);
    let again = answer(&quote(&format!("{place} --format json")));
    assert_eq!(again["remaining"], paid["remaining"], "nothing was charged");
    let dear = CHARGED.replace("--sigma2 40", "--sigma2 0.1");
    let dear = run(&format!("pate aggregate --dry-run {dear} {place}"));
    assert_eq!(dear.code, 0, "{}", dear.stderr);
    assert!(dear.stdout.contains("for no such run"), "{}", dear.stdout);
    let missing = run(&format!("pate aggregate {CHARGED}"));
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("--votes"), "{}", missing.stderr);
}

const CHARGED: &str =
    "--threshold 5 --sigma1 40 --sigma2 40 --queries 4 --answers-max 2 --delta 1e-6";

#[test]
fn what_is_the_owners_is_not_shown_to_an_analyst_who_pays() {
    let folder = folder();
    let place = catalogued(&folder);
    let more = format!("{CHARGED} {place} --owner --analyst ann");
    let told = aggregate(&folder, "votes.npy", &more);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (2, ""),
        "{}",
        told.stderr
    );
    let says = "owner_and_analyst";
    assert!(told.stderr.contains(says), "{}", told.stderr);
    assert!(!folder.path().join("whit.ledger").exists());
}

/// A file that cannot be written is noticed before anything is paid.
#[test]
fn labels_that_cannot_be_written_are_not_paid() {
    let folder = folder();
    let place = catalogued(&folder);
    let good = format!("{CHARGED} {place} --format json");
    answer(&aggregate(&folder, "votes.npy", &good));
    let left = || {
        answer(&run(&format!(
            "budget --catalog {}/whit.toml --format json",
            folder.path().display()
        )))
    };
    let before = left();
    let nowhere = folder.path().join("nowhere").display().to_string();
    let there = folder.path().join("there").display().to_string();
    for (option, code) in [
        (format!("--out {nowhere}/labels.csv"), "labels_unwritable"),
        (
            format!("--out {}", folder.path().display()),
            "labels_unwritable",
        ),
        (
            format!("--owner --plot {nowhere}/agree.svg"),
            "plot_unwritable",
        ),
        (format!("--owner --plot {there}.txt"), "plot_kind"),
    ] {
        let told = aggregate(&folder, "votes.npy", &format!("{CHARGED} {place} {option}"));
        assert_eq!(told.code, 1, "{option}: {}", told.stderr);
        assert!(told.stderr.contains(code), "{option}: {}", told.stderr);
        assert_eq!(left(), before, "{option}");
    }
    // What is there is left as it is until there are labels.
    write(folder.path(), "there", b"before");
    let dear = CHARGED.replace("--sigma2 40", "--sigma2 0.1");
    let refused = aggregate(
        &folder,
        "votes.npy",
        &format!("{dear} {place} --out {there}"),
    );
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(fs::read(&there).expect("there"), b"before");
}

/// A disk that is full by then: what was paid is printed, and the exit code says that the file is not there.
#[cfg(target_os = "linux")]
#[test]
fn labels_that_could_not_be_written_after_all_are_printed() {
    let folder = folder();
    let place = catalogued(&folder);
    let told = aggregate(
        &folder,
        "votes.npy",
        &format!("{CHARGED} {place} --out /dev/full"),
    );
    assert_eq!(told.code, 1, "{}", told.stderr);
    assert!(told.stderr.contains("labels_unwritable"), "{}", told.stderr);
    assert!(told.stdout.contains("receipt"), "{}", told.stdout);
    assert!(
        told.stdout.contains("Labels, from query 0 on"),
        "{}",
        told.stdout
    );
    // For programs stdout is one object, with what failed in it.
    let told = aggregate(
        &folder,
        "votes.npy",
        &format!("{CHARGED} {place} --out /dev/full --format json"),
    );
    assert_eq!(told.code, 1, "{}", told.stderr);
    assert!(told.stderr.contains("labels_unwritable"), "{}", told.stderr);
    assert_eq!(told.stdout.lines().count(), 1, "{}", told.stdout);
    let all: Value = serde_json::from_str(&told.stdout).expect("one object");
    assert_eq!(all["failure"]["invalid"]["code"], "labels_unwritable");
    assert!(
        all["receipt"].is_string() && all["labels"].is_array(),
        "{all}"
    );
}

#[test]
fn plans_keep_their_epsilon() {
    let told = answer(&run(
        "pate plan --epsilon 2 --delta 1e-5 --queries 640 --classes 10 --format json",
    ));
    let choices = told["choices"].as_array().expect("choices");
    assert_eq!(
        (choices.len(), &told["votes"]),
        (5, &"simulated votes".into())
    );
    for choice in choices {
        assert!(
            choice["epsilon"]
                .as_f64()
                .is_some_and(|epsilon| epsilon <= 2.0),
            "{choice}"
        );
        assert!(
            choice["agreement"]
                .as_f64()
                .is_some_and(|share| share >= 0.95),
            "{choice}"
        );
    }
    let text = run("pate plan --epsilon 2 --delta 1e-5 --queries 640 --classes 10 --show 1");
    assert!(
        text.stdout.contains("--threshold") && text.stdout.contains("epsilon 1.9"),
        "{}",
        text.stdout
    );
    let folder = folder();
    let public = format!(
        "pate plan --epsilon 4 --delta 1e-5 --queries 640 --layout histogram --public-votes {}/golden.npy --format json",
        folder.path().display()
    );
    assert_eq!(answer(&run(&public))["votes"], "public votes");
    let never =
        run("pate plan --epsilon 0.001 --delta 1e-9 --queries 640 --agreement 0.9999 --teachers 5");
    assert_eq!(never.code, 2, "{}", never.stdout);
}

/// A catalog that has votes.csv as a private table, and one table beside it on which teachers may have been trained.
fn votes_in_catalog() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write(folder.path(), name, text.as_bytes());
    write("votes.csv", "teacher,a,b\n0,0,1\n1,1,1\n");
    write("patients.csv", "who,age\nann,31\nben,40\n");
    write(
        "whit.toml",
        "[dataset]\nid = 'v'\n[budget]\nepsilon = 1.0\ndelta = 1e-4\n\
         [table.votes]\nsource = 'votes.csv'\nunit = 'teacher'\n\
         [table.patients]\nsource = 'patients.csv'\nunit = 'who'\n",
    );
    folder
}

/// Which noise does well on private votes tells about them, and nothing pays for that where they are called public.
#[test]
fn private_votes_tune_nothing() {
    let folder = votes_in_catalog();
    let told = run(&format!(
        "pate plan --epsilon 2 --delta 1e-5 --queries 2 --public-votes {}/votes.csv",
        folder.path().display()
    ));
    assert_eq!(told.code, 2, "{}", told.stderr);
    assert!(told.stderr.contains("private_votes"), "{}", told.stderr);
    assert!(told.stderr.contains("simulated"), "{}", told.stderr);
    for passes in ["--choice-epsilon", "--catalog", "--table"] {
        assert!(told.stderr.contains(passes), "{}", told.stderr);
    }
    assert!(told.stdout.is_empty(), "{}", told.stdout);
}

/// Rows of a private table are no votes of teachers: without a catalog nobody would be charged for them, and with one the wrong event.
#[test]
fn rows_of_a_private_table_are_not_taken_for_votes() {
    let folder = votes_in_catalog();
    let here = folder.path().display().to_string();
    let doors = [
        "pate aggregate --sigma2 0.000001 --queries 3 --answers-max 3 --delta 1e-5 --votes",
        "pate plan --epsilon 2 --delta 1e-5 --queries 3 --choice-epsilon 1 --private-votes",
    ];
    let catalogs = [
        String::new(),
        format!("--catalog {here}/whit.toml --table votes"),
        format!("--catalog {here}/whit.toml --table patients"),
    ];
    for door in doors {
        for layout in ["votes", "histogram"] {
            for catalog in &catalogs {
                let given =
                    format!("{door} {here}/votes.csv --layout {layout} --classes 2 --teachers 2");
                refused_as_rows(&run(&format!("{given} {catalog}")), &given);
            }
        }
    }
    assert!(!folder.path().join("whit.ledger").exists());
    // The same votes pass in a file of their own, at the expense of the table that teachers were trained on.
    write(folder.path(), "cast.csv", b"a,b\n0,1\n1,1\n");
    let told = run(&format!(
        "pate aggregate --sigma2 40 --queries 2 --answers-max 2 --delta 1e-6 --votes {here}/cast.csv --classes 2 --teachers 2 {}",
        catalogs[2]
    ));
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(folder.path().join("whit.ledger").exists());
}

/// Nothing is told, and the hint says what passes.
fn refused_as_rows(told: &Run, given: &str) {
    let found = (told.code, told.stdout.as_str());
    assert_eq!(found, (2, ""), "{given}: {}", told.stderr);
    for says in ["private_votes", "no catalog", "--catalog", "--table"] {
        assert!(told.stderr.contains(says), "{given}: {}", told.stderr);
    }
}

/// By a link to the file or to its folder; by another name of the file, as far as a catalog can be seen from there or is named.
#[cfg(unix)]
#[test]
fn rows_of_a_private_table_are_known_by_other_names() {
    use std::os::unix::fs::symlink;
    let (folder, elsewhere) = (votes_in_catalog(), tempfile::tempdir().expect("a folder"));
    let (here, there) = (folder.path(), elsewhere.path());
    symlink(here.join("votes.csv"), there.join("link.csv")).expect("writable");
    symlink("link.csv", there.join("twice.csv")).expect("writable");
    symlink(here, there.join("linked")).expect("writable");
    fs::hard_link(here.join("votes.csv"), there.join("hard.csv")).expect("writable");
    let named = format!("--catalog {}/whit.toml --table patients", here.display());
    for (from, file, catalog) in [
        (there, there.join("link.csv"), ""),
        (there, "twice.csv".into(), ""),
        (there, there.join("linked/votes.csv"), ""),
        (here, "./votes.csv".into(), ""),
        (here, there.join("hard.csv"), ""),
        (there, there.join("hard.csv"), &named),
    ] {
        let mut command = program();
        command.current_dir(from).arg("pate").arg("aggregate");
        command.args("--sigma2 1e-6 --queries 3 --answers-max 3".split(' '));
        command.args("--delta 1e-5 --classes 2 --teachers 2".split(' '));
        command.args(catalog.split_whitespace());
        command.arg("--votes").arg(&file);
        refused_as_rows(&finish(command, b""), &file.display().to_string());
    }
    assert!(!here.join("whit.ledger").exists());
}

/// The candidates depend on it, and so does what is shown: whoever pays, or nobody.
#[test]
fn a_choice_does_not_take_the_number_of_classes_from_private_votes() {
    let folder = folder();
    let plan = format!(
        "pate plan --epsilon 4 --delta 1e-5 --queries 4 --agreement 0.5 --choice-epsilon 0.5 --private-votes {}/votes.npy",
        folder.path().display()
    );
    let refused = run(&plan);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (1, ""),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("--classes"), "{}", refused.stderr);
    let told = run(&format!("{plan} --classes 3"));
    assert_eq!(told.code, 0, "{}", told.stderr);
}

/// Teachers of another accuracy get other noise: the threshold is not that of the best teachers, whose labels would be wrong two times in five.
#[test]
fn a_choice_follows_the_votes() {
    let folder = folder();
    let plan = |file: &str| {
        let told = answer(&run(&format!(
            "pate plan --epsilon 2 --delta 1e-5 --queries 640 --layout histogram --choice-epsilon 5 --private-votes {}/{file} --format json",
            folder.path().display()
        )));
        told["choice"]["threshold"].as_f64().expect("a number")
    };
    let sure: Vec<u8> = (0..640)
        .flat_map(|_| [241, 1, 1, 1, 1, 1, 1, 1, 1, 1])
        .collect();
    write(folder.path(), "sure.npy", &npy("(640, 10)", &sure));
    assert!(plan("golden.npy") > 200.0);
    assert!(plan("sure.npy") < 100.0);
}

/// A choice by private votes shows which candidate it was and public numbers, and is charged before it is made.
#[test]
fn a_choice_by_private_votes_is_charged_and_shows_nothing_else() {
    let folder = folder();
    write(folder.path(), "whit.toml", CATALOG.as_bytes());
    write(folder.path(), "patients.csv", b"who,age\nann,31\nben,40\n");
    let plan = |more: &str| {
        run(&format!(
            "pate plan --epsilon 2 --delta 1e-5 --queries 640 --layout histogram --teachers 250 --private-votes {}/golden.npy {more}",
            folder.path().display()
        ))
    };
    let missing = plan("");
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    let told = answer(&plan("--choice-epsilon 0.5 --format json"));
    let names: Vec<&String> = told.as_object().expect("an object").keys().collect();
    let mut public = vec![
        "candidates",
        "choice",
        "confidence",
        "epsilon_choice",
        "votes",
        "votes_behind_nearest_max",
    ];
    public.sort_unstable();
    let mut found: Vec<&str> = names.into_iter().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, public);
    for computed in ["expected_answered", "agreement"] {
        assert!(told["choice"].get(computed).is_none(), "{computed}");
    }
    assert_eq!(told["epsilon_choice"], 0.5);
    assert!(
        told["choice"]["epsilon"]
            .as_f64()
            .is_some_and(|epsilon| epsilon <= 2.0)
    );
    let text = plan("--choice-epsilon 0.5").stdout;
    assert!(
        text.contains("nobody") && text.contains("--threshold"),
        "{text}"
    );
    let place = format!("--catalog {}/whit.toml --table", folder.path().display());
    assert_ne!(
        plan(&format!("--choice-epsilon 0.5 {place} nobody")).code,
        0
    );
    let dear = plan(&format!("--choice-epsilon 50 {place} patients"));
    assert_eq!(dear.code, 3, "{}", dear.stderr);
    assert!(
        !folder.path().join("whit.ledger").exists(),
        "nothing was charged"
    );
    let paid = answer(&plan(&format!(
        "--choice-epsilon 0.5 {place} patients --format json"
    )));
    // At the delta that it is told for, a little less than the pure epsilon.
    let charged = paid["charge"]["epsilon"].as_f64();
    assert!(
        charged.is_some_and(|epsilon| epsilon > 0.4 && epsilon <= 0.5),
        "{paid}"
    );
    assert!(
        paid["receipt"]
            .as_str()
            .is_some_and(|receipt| receipt.len() > 20)
    );
}
