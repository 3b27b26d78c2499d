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
        "on 4 queries",
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
            "{noise} --classes 3 {}",
            place.replace("patients", "nobody")
        ),
    );
    assert_ne!(refused.code, 0);
    assert!(
        !folder.path().join("whit.ledger").exists(),
        "what is refused makes no ledger"
    );
    let told = answer(&aggregate(
        &folder,
        "votes.npy",
        &format!("{noise} --classes 3 {place}"),
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
    let exhausted = aggregate(&folder, "votes.npy", &format!("{loud} --classes 3 {place}"));
    assert_eq!(exhausted.code, 3, "{}", exhausted.stderr);
    let bad = aggregate(
        &folder,
        "votes.npy",
        &format!("{noise} --classes 2 {place}"),
    );
    assert_eq!(
        bad.code, 1,
        "a class out of range is refused before it is paid"
    );
    let left = answer(&run(&format!(
        "budget --catalog {}/whit.toml --format json",
        folder.path().display()
    )));
    assert!(left.to_string().contains("patients"), "{left}");
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
