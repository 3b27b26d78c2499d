//! Runs the program and looks at all that comes out: stdout, stderr and exit code.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests stand outside the door"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

mod account;
mod account_words;
mod advice;
mod answers;
mod audit;
mod catalogued;
mod house;
mod kill;
mod pate;
mod pate_train;
mod predict;
mod query;
mod read_only;
mod refusals;
mod stats_words;
mod text;
mod train;
mod train_fit;
mod train_ledger;
mod train_once;
mod train_search;
mod train_stop;

/// Stands in private cells, and must never come out.
const CANARY: &str = "SECRET-4711";
/// The bundled data, counted with another program.
const CENSUS_ROWS: f64 = 32_561.0;
const CENSUS_MEAN_AGE: f64 = 38.581_646_755_320_78;
const CENSUS_SUM_HOURS: f64 = 1_316_684.0;
const CENSUS_VARIANCE_AGE: f64 = 186.055_686_007_830_84;
const CENSUS_VARIANCE_HOURS: f64 = 152.454_312_792_690_25;
const CENSUS_OCCUPATIONS: f64 = 15.0;
/// By sex, and for each by income: Female <=50K, Female >50K, Male <=50K, Male >50K.
const CENSUS_SEX_INCOME: [f64; 4] = [9592.0, 1179.0, 15_128.0, 6662.0];
const CENSUS_AGES_BY_DECADE: [f64; 10] = [
    0.0, 1657.0, 8054.0, 8613.0, 7175.0, 4418.0, 2015.0, 508.0, 78.0, 43.0,
];

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_whit"))
}

fn finish(mut command: Command, stdin: &[u8]) -> Run {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses its arguments does not read its input.
    let _ = child.stdin.take().expect("piped").write_all(stdin);
    let output = child.wait_with_output().expect("the program ends");
    Run {
        code: output.status.code().expect("no signal ended it"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

fn run(arguments: &str) -> Run {
    run_on(b"", arguments)
}

/// Runs a statistic on a file with these bytes, by way of standard input.
fn run_on(csv: &[u8], arguments: &str) -> Run {
    let mut command = program();
    command.args(arguments.split_whitespace());
    finish(command, csv)
}

fn answer(run: &Run) -> Value {
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    serde_json::from_str(&run.stdout).expect("JSON")
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).expect("the test directory is writable");
    path
}

/// The same refusal in both formats: the right exit code and code, one JSON object on stdout or two lines on stderr, and no
/// private word anywhere.
fn check_refused(csv: &[u8], arguments: &str, exit: i32, kind: &str, code: &str) {
    let json = run_on(csv, &format!("{arguments} --format json"));
    let table = run_on(csv, arguments);
    for run in [&json, &table] {
        assert_eq!(run.code, exit, "{arguments}: {}{}", run.stdout, run.stderr);
        assert!(
            !format!("{}{}", run.stdout, run.stderr).contains(CANARY),
            "{arguments}"
        );
    }
    assert_eq!(
        (json.stdout.lines().count(), json.stderr.as_str()),
        (1, ""),
        "{arguments}"
    );
    let failure: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(keys(&failure), [kind].into(), "{arguments}");
    assert_eq!(
        keys(&failure[kind]),
        ["code", "reason", "suggestion"].into()
    );
    assert_eq!(failure[kind]["code"], code, "{arguments}: {failure}");
    let text = |key: &str| failure[kind][key].as_str().expect("text").to_owned();
    assert!(!text("reason").is_empty() && !text("suggestion").is_empty());
    assert_eq!(table.stdout, "");
    assert_eq!(
        table.stderr,
        format!(
            "error[{}]: {}\nhint: {}\n",
            text("code"),
            text("reason"),
            text("suggestion")
        )
    );
}

fn check_invalid(csv: &[u8], arguments: &str, code: &str) {
    check_refused(csv, arguments, 1, "invalid", code);
}

const SUM: &str = "stats sum - --column x --range 0,10 --epsilon 1";

const COMMON_KEYS: [&str; 13] = [
    "confidence",
    "epsilon",
    "delta",
    "mechanism",
    "unit",
    "statistic",
    "column",
    "relation",
    "rows_per_unit",
    "noise",
    "recorded",
    "guarantee",
    "data",
];

const COMMANDS: [&str; 31] = [
    "",
    "query",
    "budget",
    "ledger",
    "ledger show",
    "ledger verify",
    "ledger cap",
    "ledger accept",
    "ledger resume",
    "ledger recover",
    "init",
    "check",
    "stats",
    "stats count",
    "stats sum",
    "stats mean",
    "stats variance",
    "stats stddev",
    "stats histogram",
    "stats median",
    "stats quantile",
    "stats bounds",
    "stats mode",
    "stats top",
    "stats distinct",
    "stats marginals",
    "train",
    "predict",
    "audit",
    "audit command",
    "audit self",
];
