//! `whit audit`: verdicts about programs whose truth is known.

use super::*;

fn toy() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/toy.sh").into()
}

/// Two files that differ in one line.
fn neighbours(test: &str) -> [String; 2] {
    [("yes", "no\nyes\n"), ("no", "no\n")].map(|(name, content)| {
        let path = file(&format!("audit-{test}-{name}.csv"), content.as_bytes());
        path.to_str().expect("text").to_owned()
    })
}

fn audit(test: &str, options: &str, words: &[&str]) -> Run {
    let [yes, no] = neighbours(test);
    let mut command = program();
    command.args([
        "audit",
        "command",
        "--neighbour-a",
        &yes,
        "--neighbour-b",
        &no,
    ]);
    command
        .args(options.split_whitespace())
        .arg("--")
        .args(words);
    finish(command, b"")
}

fn audit_toy(test: &str, options: &str, mode: &str) -> Run {
    let toy = toy();
    audit(test, options, &["sh", &toy, mode, "{}"])
}

fn verdict(run: &Run, code: i32) -> Value {
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    assert_eq!((run.stdout.lines().count(), run.stderr.as_str()), (1, ""));
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn a_leaky_program_is_convicted() {
    let options = "--epsilon 1.1 --trials 400 --confidence 0.99 --format json";
    let found = verdict(&audit_toy("leaky", options, "leaky"), 3);
    assert_eq!(found["verdict"], "violated", "{found}");
    assert_eq!(
        (number(&found, "claimed"), number(&found, "confidence")),
        (1.1, 0.99)
    );
    // ln 15 is 2.708.
    let lower = number(&found, "epsilon_lower");
    assert!(lower > 1.1 && lower < 3.5, "{found}");
    assert_eq!(found["trials"], serde_json::json!([400, 400]));
    assert_eq!(found["outcomes"][0]["a number"], 400);
    assert_eq!(found["event"]["counted_a"], 200, "the other half was shown");
}

/// At this confidence an honest program is convicted once in ten million times.
#[test]
fn an_honest_program_is_not_convicted() {
    let toy = toy();
    let options =
        "--epsilon 1.0987 --trials 20000 --batch 5000 --confidence 0.9999999 --format json";
    let run = audit("honest", options, &["sh", &toy, "batch", "{}", "5000"]);
    let found = verdict(&run, 0);
    assert_eq!(found["verdict"], "consistent", "{found}");
    let lower = number(&found, "epsilon_lower");
    assert!(lower > 0.8 && lower < 1.0987, "{found}");
}

#[test]
fn few_trials_are_inconclusive_and_say_how_many_would_do() {
    let options = "--epsilon 1.0987 --trials 8 --format json";
    let found = verdict(&audit_toy("few", options, "honest"), 0);
    assert_eq!(found["verdict"], "inconclusive", "{found}");
    let needed = number(&found, "trials_needed");
    assert!(needed > 100.0 && needed < 1000.0, "{found}");
    let found = verdict(
        &audit_toy("no-claim", "--trials 8 --format json", "honest"),
        0,
    );
    assert_eq!(
        (&found["verdict"], &found["claimed"]),
        (&"inconclusive".into(), &Value::Null)
    );
}

#[test]
fn an_exit_code_is_evidence() {
    let options = "--epsilon 1 --trials 200 --format json";
    let found = verdict(&audit_toy("crash", options, "crash"), 3);
    let crashed = number(&found["outcomes"][0], "exit code 7");
    assert!(crashed > 50.0 && crashed < 150.0, "{found}");
    assert_eq!(found["outcomes"][1]["a number"], 200);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_out_of_time_is_evidence_and_leaves_nobody_behind() {
    let run = audit_toy("hang", "--trials 3 --timeout 3 --format json", "hang");
    let found = verdict(&run, 0);
    assert_eq!(found["outcomes"][0]["out of time"], 3, "{found}");
    assert_eq!(found["outcomes"][1]["a number"], 3, "{found}");
    let left = fs::read_dir("/proc")
        .expect("Linux")
        .flatten()
        .filter(|entry| {
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x0098765\x00")
        });
    assert_eq!(left.count(), 0);
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let [yes, no] = neighbours("refused");
    let toy = toy();
    let files = format!("audit command --neighbour-a {yes} --neighbour-b {no}");
    check_invalid(
        b"",
        &format!("{files} -- sh {toy} honest"),
        "no_place_for_the_file",
    );
    check_invalid(
        b"",
        &format!("{files} -- {toy}-absent {{}}"),
        "program_not_started",
    );
    check_invalid(
        b"",
        &format!("{files} --confidence 1 -- sh {toy} honest {{}}"),
        "confidence",
    );
    check_invalid(
        b"",
        &format!("{files} --trials 0 -- sh {toy} honest {{}}"),
        "not_positive",
    );
    check_invalid(
        b"",
        &format!("{files} --timeout -1 -- sh {toy} honest {{}}"),
        "usage",
    );
    check_invalid(
        b"",
        &format!("{files} --timeout 0 -- sh {toy} honest {{}}"),
        "not_positive",
    );
    check_invalid(
        b"",
        &format!("{files} --group 0 -- sh {toy} honest {{}}"),
        "out_of_domain",
    );
    check_invalid(
        b"",
        &format!("{files} -- sh {toy} fail {{}}"),
        "program_fails",
    );
    let absent = format!(
        "audit command --neighbour-a {yes} --neighbour-b {no}-absent -- sh {toy} honest {{}}"
    );
    check_invalid(b"", &absent, "file_missing");
    check_invalid(b"", "audit command --neighbour-a a.csv", "usage");
    let run = audit_toy("fails", "", "fail");
    assert!(run.stderr.contains("no such column"), "{}", run.stderr);
}

#[test]
fn reports_stand_on_their_own() {
    let page = file("audit-report.html", b"");
    let options = format!("--epsilon 1.1 --trials 400 --report {}", page.display());
    let run = audit_toy("report", &options, "leaky");
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        run.stdout
            .starts_with("verdict    violated\nclaimed    epsilon 1.1, delta 0\n")
            && run.stdout.contains("more leaks than was promised"),
        "{}",
        run.stdout
    );
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.contains("<svg") && page.contains("violated") && !page.contains("<script"));
}

/// A failed run is one outcome and a good one is a thousand: shares of such outcomes vary far more than those of independent trials.
#[test]
fn a_broken_batch_is_refused() {
    for mode in ["crash", "hang"] {
        let test = format!("broken-{mode}");
        let run = audit_toy(&test, "--trials 40 --batch 1 --timeout 3", mode);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(run.stderr.contains("broken_batch"), "{}", run.stderr);
    }
    let run = audit_toy("short", "--trials 40 --batch 2", "honest");
    assert!(run.stderr.contains("printed 1 lines"), "{}", run.stderr);
}

/// The same answer on both files, beside the file's name.
#[test]
fn the_name_of_a_file_is_no_evidence() {
    let run = audit(
        "name",
        "--epsilon 0.1 --trials 100 --format json",
        &["sh", "-c", "echo \"answer 3 of $1\"", "sh", "{}"],
    );
    let found = verdict(&run, 0);
    assert_eq!(number(&found, "epsilon_lower"), 0.0, "{found}");
}

/// A run that ends well and leaves a child behind, which prints nowhere.
#[cfg(target_os = "linux")]
#[test]
fn what_a_run_leaves_behind_is_ended() {
    let program = "sleep 98766 >/dev/null 2>&1 & echo 1 # $1";
    let run = audit(
        "behind",
        "--trials 2 --format json",
        &["sh", "-c", program, "sh", "{}"],
    );
    verdict(&run, 0);
    let left = fs::read_dir("/proc")
        .expect("Linux")
        .flatten()
        .filter(|entry| {
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x0098766\x00")
        });
    assert_eq!(left.count(), 0);
}

/// The file may stand inside an argument, and is no business of a shell.
#[test]
fn names_of_files_are_not_for_a_shell() {
    let path = file("audit; touch pwned $(x).csv", b"no\nyes\n");
    let other = file("audit; other.csv", b"no\n");
    let mut command = program();
    command.args(["audit", "command", "--trials", "4", "--format", "json"]);
    command
        .arg("--neighbour-a")
        .arg(&path)
        .arg("--neighbour-b")
        .arg(&other);
    command.args(["--", "grep", "-c", "--regexp=yes", "--", "{}"]);
    let run = finish(command, b"");
    // grep exits with 1 where nothing is found.
    let found = verdict(&run, 0);
    assert_eq!(found["outcomes"][0]["a number"], 4, "{found}");
    assert_eq!(found["outcomes"][1]["exit code 1"], 4, "{found}");
}

#[test]
fn whit_passes_its_own_audit() {
    let run = run("audit self --quick --format json");
    let report = verdict(&run, 0);
    assert_ne!(report["verdict"], "violated");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() >= 300, "{}", rows.len());
    let convicted = rows.iter().filter(|row| row["verdict"] == "violated");
    assert_eq!(convicted.count(), 0);
    assert!(rows.iter().all(|row| row["kind"] == "distribution_free"));
    let told = rows.iter().filter(|row| row["verdict"] == "consistent");
    assert!(told.count() >= 250, "most cases can tell twice the claim");
}
