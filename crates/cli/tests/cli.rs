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
        format!("error: {}\nhint: {}\n", text("reason"), text("suggestion"))
    );
}

fn check_invalid(csv: &[u8], arguments: &str, code: &str) {
    check_refused(csv, arguments, 1, "invalid", code);
}

#[test]
fn parameters_are_refused_before_the_file_is_opened() {
    let check = |rest: &str, code: &str| check_invalid(b"", &format!("stats {rest}"), code);
    for epsilon in ["0", "-0", "-1", "NaN", "inf", "1e400"] {
        check(
            &format!("count no-such-file.csv --epsilon {epsilon}"),
            "out_of_domain",
        );
    }
    for epsilon in ["abc", "1,5", "--column"] {
        check(
            &format!("count no-such-file.csv --epsilon {epsilon}"),
            "not_a_number",
        );
    }
    check("count no-such-file.csv --epsilon=", "not_a_number");
    check("count no-such-file.csv --epsilon 1e300", "no_noise");
    for range in ["5,1", "1,1", "NaN,1", "0,inf", "0,1e400", "-1,-2"] {
        check(
            &format!("sum no-such-file.csv --column x --epsilon 1 --range {range}"),
            "empty_range",
        );
    }
    for range in ["5", "1,2,3,4", "a,b", "1,2,c", ",", "1;2"] {
        check(
            &format!("sum no-such-file.csv --column x --epsilon 1 --range {range}"),
            "not_a_range",
        );
    }
    for range in ["0,8,3", "0,8,0", "0,8,-1", "0,8,0.1", "0,8,inf"] {
        check(
            &format!("sum no-such-file.csv --column x --epsilon 1 --range {range}"),
            "out_of_domain",
        );
    }
    check(
        "count no-such-file.csv --epsilon 1 --delta 1e-6",
        "unused_delta",
    );
    check(
        "count no-such-file.csv --epsilon 1 --mechanism gaussian",
        "missing_delta",
    );
    for delta in ["1", "2", "-1e-9", "NaN"] {
        check(
            &format!("count no-such-file.csv --epsilon 1 --mechanism gaussian --delta {delta}"),
            "out_of_domain",
        );
    }
    check(
        "count no-such-file.csv --epsilon 1 --unit who",
        "missing_rows_per_unit",
    );
    check(
        "count no-such-file.csv --epsilon 1 --rows-per-unit 3",
        "unused_rows_per_unit",
    );
    check(
        "count no-such-file.csv --epsilon 1 --unit who --rows-per-unit 0",
        "count_out_of_range",
    );
    check(
        "count no-such-file.csv --epsilon 1 --unit who --rows-per-unit -1",
        "not_a_number",
    );
    check(
        "histogram no-such-file.csv --column x --range 0,1 --epsilon 1 --bins 0",
        "count_out_of_range",
    );
    check(
        "histogram no-such-file.csv --column x --range 0,1 --epsilon 1 --bins many",
        "not_a_number",
    );
    check(
        "count no-such-file.csv --epsilon 1 --confidence 1",
        "out_of_domain",
    );
    for statistic in ["median", "quantile --q 0.5,0.9"] {
        let rest = "no-such-file.csv --column x --range 0,1 --epsilon 1";
        let check = |more: &str, code| check(&format!("{statistic} {rest} {more}"), code);
        check("--mechanism gaussian --delta 1e-6", "unfit_mechanism");
        check("--mechanism laplace", "unfit_mechanism");
        check("--delta 1e-6", "unused_delta");
        check("--unit who", "missing_rows_per_unit");
    }
    for (shares, code) in [
        ("0.5,0.5", "shares_not_growing"),
        ("0.9,0.1", "shares_not_growing"),
        ("1.5", "out_of_domain"),
        ("-0.5", "out_of_domain"),
        ("NaN", "out_of_domain"),
        ("half", "not_a_number"),
        ("0.1,", "not_a_number"),
    ] {
        let rest = "no-such-file.csv --column x --range 0,1 --epsilon 1";
        check(&format!("quantile {rest} --q {shares}"), code);
    }
    check(
        "variance no-such-file.csv --column x --range 0,1 --epsilon 1 --mechanism exponential",
        "unfit_mechanism",
    );
    check(
        "variance no-such-file.csv --column x --range auto --epsilon 1e30",
        "no_noise",
    );
    check(
        "sum no-such-file.csv --column x --range automatic --epsilon 1",
        "not_a_range",
    );
    check(
        "bounds no-such-file.csv --column x --epsilon 1 --mechanism gaussian --delta 1e-6",
        "unfit_mechanism",
    );
    for (arguments, code) in [
        ("mode --categories a,a", "no_categories"),
        ("mode --categories a,,b", "no_categories"),
        ("mode --categories @no-such-list", "unreadable_file"),
        ("top --k 3 --categories a,b", "count_out_of_range"),
        ("top --k 0 --categories a,b", "count_out_of_range"),
        ("top --k few --categories a,b", "not_a_number"),
        (
            "top --k 1 --categories a,b --mechanism laplace",
            "unfit_mechanism",
        ),
    ] {
        let (statistic, rest) = arguments.split_once(' ').expect("two words");
        check(
            &format!("{statistic} no-such-file.csv --column x --epsilon 1 {rest}"),
            code,
        );
    }
    for (arguments, code) in [
        ("", "missing_parameter"),
        ("--column x --unit who", "missing_parameter"),
        ("--column x --values-per-unit 2", "unused_parameter"),
        ("--unit who --values-per-unit 2", "unused_parameter"),
        (
            "--column x --unit who --values-per-unit 0",
            "count_out_of_range",
        ),
        ("--column x --unit who --values-per-unit -1", "not_a_number"),
    ] {
        check(
            &format!("distinct no-such-file.csv --epsilon 1 {arguments}"),
            code,
        );
    }
    for (arguments, code) in [
        ("--columns a,b --categories a=x|y", "not_categories"),
        ("--columns a --categories a=x|y;b=p", "not_categories"),
        ("--columns a,a --categories a=x|y", "not_categories"),
        ("--columns a,a --categories a=x;a=y", "column_twice"),
        ("--columns a --categories x|y", "not_categories"),
        ("--columns a --categories a=x|x", "no_categories"),
        ("--columns a --categories a=", "no_categories"),
        ("--columns a --categories @no-such-list", "unreadable_file"),
    ] {
        check(
            &format!("marginals no-such-file.csv --epsilon 1 {arguments}"),
            code,
        );
    }
}

#[test]
fn usage_is_refused_with_one_and_not_two() {
    let wrong = [
        "",
        "stats",
        "stats maximum --epsilon 1",
        "stats median --epsilon 1",
        "stats quantile --column age --range 0,1 --epsilon 1",
        "stats bounds --column age --range 0,1 --epsilon 1",
        "stats mode --column sex --epsilon 1",
        "stats top --column sex --categories a,b --epsilon 1",
        "stats distinct --unit sex --rows-per-unit 1 --epsilon 1",
        "stats marginals --columns sex --epsilon 1",
        "stats count",
        "stats sum --epsilon 1",
        "stats sum --column age --epsilon 1",
        "stats mean --range 0,1 --epsilon 1",
        "stats count --epsilon 1 --range 0,1",
        "stats count --epsilon 1 --epsilon 2",
        "stats count --epsilon 1 --relation both",
        "stats count --epsilon 1 --mechanism none",
        "stats count one.csv two.csv --epsilon 1",
        "frobnicate",
    ];
    for arguments in wrong {
        check_invalid(b"", arguments, "usage");
    }
    let equals = run("stats count --format=json");
    assert!(
        equals.code == 1 && equals.stdout.starts_with("{\"invalid\":"),
        "{}",
        equals.stdout
    );
    let unknown = run("stats count --epsilon 1 --format xml");
    assert!(
        unknown.code == 1 && unknown.stdout.is_empty() && unknown.stderr.starts_with("error: ")
    );
}

const SUM: &str = "stats sum - --column x --range 0,10 --epsilon 1";

#[test]
fn files_that_are_no_tables_are_refused() {
    check_invalid(b"", SUM, "no_header");
    check_invalid(b"\n\n", SUM, "no_header");
    check_invalid(b"y,z\n1,SECRET-4711\n", SUM, "missing_column");
    // A file without a header: its first row is private too.
    check_invalid(b"SECRET-4711,39\nAda,36\n", SUM, "missing_column");
    check_invalid(b"x,x\n1,SECRET-4711\n", SUM, "repeated_column");
    check_invalid(b"x,\xff\xfe\n1,SECRET-4711\n", SUM, "header_not_text");
    let junk: Vec<u8> = (0..4096_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80)
        .collect();
    check_invalid(&junk, SUM, "header_not_text");
    check_invalid(&junk, "stats count - --epsilon 1", "header_not_text");
    check_invalid(
        b"y\n1\n",
        "stats count - --epsilon 1 --unit who --rows-per-unit 1",
        "missing_column",
    );
    let named = run_on(b"y\n1\n", SUM).stderr;
    assert!(named.contains("\"x\""), "{named}");
    check_invalid(
        b"",
        "stats count no-such-file.csv --epsilon 1",
        "unreadable_file",
    );
    let directory = format!("stats count {} --epsilon 1", env!("CARGO_TARGET_TMPDIR"));
    check_invalid(b"", &directory, "unreadable_file");
}

#[test]
fn whatever_stands_in_a_cell_is_answered() {
    let files: [&[u8]; 8] = [
        b"x,y",
        b"x,y\n",
        b"x,y\n1,SECRET-4711\n",
        b"x,y\nSECRET-4711,1\n2,3\n",
        b"x,y\n\xff\xfe,1\n2,\xc3\x28\n",
        b"x,y\n1\n\n1,2,3,4,SECRET-4711\n,\n",
        b"x,y\r\n?,SECRET-4711\r\nNaN,1\r\ninf,2\r\n-1e400,3\r\n",
        b"x,y\n\"SECRET-4711,1\n2,3\n",
    ];
    for csv in files {
        for statistic in [
            "sum",
            "mean",
            "variance",
            "stddev",
            "histogram",
            "median",
            "quantile --q 0.1,0.9",
        ] {
            for range in ["0,10", "auto"] {
                let run = run_on(
                    csv,
                    &format!(
                        "stats {statistic} - --column x --range {range} --epsilon 1 --format json"
                    ),
                );
                answer(&run);
                assert!(!run.stdout.contains(CANARY));
            }
        }
        for statistic in [
            "bounds - --column x",
            "mode - --column x --categories 1,2",
            "top - --k 2 --column x --categories 1,2",
            "distinct - --column x",
            "distinct - --unit x",
            "marginals - --columns x,y --categories x=1|2;y=1|3",
        ] {
            let run = run_on(csv, &format!("stats {statistic} --epsilon 1 --format json"));
            answer(&run);
            assert!(!run.stdout.contains(CANARY));
        }
        let run = run_on(csv, "stats count - --epsilon 1");
        assert!(run.code == 0 && !format!("{}{}", run.stdout, run.stderr).contains(CANARY));
    }
}

/// The answer with all that was released struck out.
fn public_part(mut answer: Value) -> Value {
    let strike = |value: &mut Value, keys: &[&str]| {
        for key in keys {
            assert!(!value[key].is_null(), "no {key} in {value}");
            value[key] = Value::Null;
        }
    };
    for (list, keys) in [
        ("bins", &["answer", "interval"][..]),
        ("cells", &["answer", "interval"]),
        ("quantiles", &["answer"]),
    ] {
        if let Some(entries) = answer.get_mut(list).and_then(Value::as_array_mut) {
            entries.iter_mut().for_each(|entry| strike(entry, keys));
            return answer;
        }
    }
    if answer.get("top").is_some() {
        strike(&mut answer, &["top"]);
    } else if answer["reason"] == "no_bounds_found" || answer["answer"].is_object() {
        // Whether a range is found is part of the answer.
        let answer = answer.as_object_mut().expect("an object");
        answer.remove("reason");
        answer.remove("answer");
    } else if answer["low"].is_null() {
        strike(&mut answer, &["answer"]);
    } else {
        strike(&mut answer, &["answer", "low", "high"]);
    }
    answer
}

#[test]
fn neighbours_look_alike() {
    let long = "z".repeat(1_000_000);
    let digits = "9".repeat(1_000_000);
    let poison = [
        "NaN,a",
        "inf,a",
        "-inf,a",
        "1e308,a",
        "word,a",
        "\"",
        "",
        ",",
        "1",
        "1,2,3,4,5",
        &long,
        &digits,
    ];
    let clean = "x,who\n1,a\n2,b\n3,c\n";
    for statistic in [
        "count - --epsilon 1",
        "count - --column x --epsilon 1 --unit who --rows-per-unit 2",
        "sum - --column x --range 0,10 --epsilon 1",
        "mean - --column x --range 0,10 --epsilon 1 --mechanism gaussian --delta 1e-6",
        "mean - --column x --range 0,10 --epsilon 1 --relation replace",
        "histogram - --column x --range -10,10 --bins 3 --epsilon 1",
        "variance - --column x --range 0,10 --epsilon 1",
        "stddev - --column x --range 0,10 --epsilon 1 --relation replace",
        "median - --column x --range 0,10 --epsilon 1",
        "quantile - --column x --range 0,10 --q 0.1,0.5,0.9 --epsilon 1 --unit who --rows-per-unit 2",
        // So little that nothing is found.
        "median - --column x --range auto --epsilon 1e-3",
        "mean - --column x --range auto --epsilon 1e-3 --mechanism gaussian --delta 1e-6",
        "bounds - --column x --epsilon 1",
        "mode - --column x --categories 1,2,3 --epsilon 1",
        "top - --k 2 --column x --categories 1,2,3 --epsilon 1 --unit who --rows-per-unit 2",
        "distinct - --column x --epsilon 1",
        "distinct - --column x --epsilon 1 --unit who --values-per-unit 2",
        "distinct - --epsilon 1 --unit who",
        "marginals - --columns x,who --categories x=1|2;who=a|b|c --epsilon 1",
    ] {
        let arguments = format!("stats {statistic} --format json");
        let expected = public_part(answer(&run_on(clean.as_bytes(), &arguments)));
        for row in poison {
            let poisoned = format!("{clean}{row}\n");
            let found = public_part(answer(&run_on(poisoned.as_bytes(), &arguments)));
            assert_eq!(found, expected, "{statistic}");
        }
    }
}

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

#[test]
fn json_has_exactly_its_keys() {
    let with = |own: &[&'static str]| {
        COMMON_KEYS
            .iter()
            .chain(own)
            .copied()
            .collect::<BTreeSet<&str>>()
    };
    let count = answer(&run("stats count --epsilon 2 --format json"));
    assert_eq!(keys(&count), with(&["answer", "low", "high"]));
    assert_eq!(
        (
            number(&count, "confidence"),
            number(&count, "epsilon"),
            number(&count, "delta")
        ),
        (0.95, 2.0, 0.0)
    );
    assert_eq!(
        (&count["mechanism"], &count["unit"]),
        (&"laplace".into(), &"row".into())
    );
    assert_eq!(count["recorded"], false);
    let mean = "mean --column age --range 0,120 --epsilon 1 --mechanism gaussian --delta 1e-6";
    let mean = answer(&run(&format!(
        "stats {mean} --unit native_country --rows-per-unit 5 --format json"
    )));
    assert_eq!(keys(&mean), with(&["answer", "low", "high"]));
    assert_eq!(
        (&mean["mechanism"], &mean["unit"]),
        (&"gaussian".into(), &"native_country".into())
    );
    let epsilon = number(&mean, "epsilon");
    assert!(
        epsilon <= 1.0 && epsilon > 0.999_999 && number(&mean, "delta") == 1e-6,
        "{mean}"
    );
    let histogram = answer(&run(
        "--format json stats histogram --column age --range 0,100 --epsilon 1",
    ));
    assert_eq!(keys(&histogram), with(&["bins"]));
    let bins = histogram["bins"].as_array().expect("a list");
    assert_eq!(bins.len(), 10);
    for (index, bin) in bins.iter().enumerate() {
        assert_eq!(keys(bin), ["low", "high", "answer", "interval"].into());
        assert_eq!(
            (number(bin, "low"), number(bin, "high")),
            (10.0 * index as f64, 10.0 * (index + 1) as f64)
        );
        assert_eq!(bin["interval"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn json_of_choices_and_searches() {
    let with = |own: &[&'static str]| {
        COMMON_KEYS
            .iter()
            .chain(own)
            .copied()
            .collect::<BTreeSet<&str>>()
    };
    let ask = |arguments: &str| answer(&run(&format!("stats {arguments} --format json")));
    let median = ask("median --column age --range 0,120 --epsilon 1");
    assert_eq!(
        keys(&median),
        with(&["answer", "low", "high", "rank_error"])
    );
    assert_eq!(
        (&median["mechanism"], &median["low"], &median["high"]),
        (&"exponential".into(), &Value::Null, &Value::Null)
    );
    // ln(N/0.05) for 120 times 2^33 points and one, at a sensitivity of one half.
    let points = 120.0 * 2_f64.powi(33);
    assert!((number(&median, "rank_error") - (20.0 * points).ln()).abs() < 1e-6);
    // The same for 121 points.
    let median = ask("median --column age --range 0,120,1 --epsilon 1");
    assert_eq!(median["mechanism"], "permute_and_flip");
    assert!((number(&median, "rank_error") - 2420_f64.ln()).abs() < 1e-6);
    let quartiles = ask("quantile --q 0.25,0.5,0.75 --column age --range 0,120 --epsilon 1");
    assert_eq!(keys(&quartiles), with(&["quantiles", "rank_error"]));
    for entry in quartiles["quantiles"].as_array().expect("a list") {
        assert_eq!(keys(entry), ["q", "answer"].into());
    }
    let bounds = ask("bounds --column age --epsilon 1");
    assert_eq!(keys(&bounds), with(&["answer"]));
    assert_eq!(keys(&bounds["answer"]), ["low", "high"].into());
    let sum = ask("sum --column age --range auto --epsilon 2");
    assert_eq!(keys(&sum), with(&["answer", "low", "high", "range"]));
    assert_eq!(keys(&sum["range"]), ["low", "high", "epsilon"].into());
    assert_eq!(
        (number(&sum, "epsilon"), number(&sum["range"], "epsilon")),
        (2.0, 0.5)
    );
    let gaussian =
        ask("mean --column age --range auto --epsilon 2 --mechanism gaussian --delta 1e-6");
    assert_eq!(
        (number(&gaussian, "epsilon"), number(&gaussian, "delta")),
        (2.0, 1e-6)
    );
    let mode = ask("mode --column sex --categories Female,Male --epsilon 1");
    assert_eq!(keys(&mode), with(&["answer", "count_error"]));
    let top = ask("top --k 2 --column sex --categories Female,Male --epsilon 1");
    assert_eq!(keys(&top), with(&["top", "count_error"]));
    let distinct = ask("distinct --column sex --unit race --values-per-unit 2 --epsilon 1");
    assert_eq!(
        keys(&distinct),
        with(&["answer", "low", "high", "values_per_unit"])
    );
    let table = ask("marginals --columns sex --categories sex=Female|Male --epsilon 1");
    assert_eq!(keys(&table), with(&["columns", "cells"]));
    for cell in table["cells"].as_array().expect("a list") {
        assert_eq!(keys(cell), ["categories", "answer", "interval"].into());
    }
}

/// That nothing was found is an answer, for the whole charge.
#[test]
fn an_empty_file_has_no_bounds() {
    // An empty column passes with probability 0.01; all four of these do in one run of a hundred million.
    let mut found = 0;
    for arguments in [
        "bounds - --column x --epsilon 1",
        "mean - --column x --range auto --epsilon 1",
        "histogram - --column x --range auto --epsilon 1",
        "median - --column x --range auto --epsilon 1",
    ] {
        let run = run_on(b"x,y\n", &format!("stats {arguments} --format json"));
        let answer = answer(&run);
        assert_eq!(number(&answer, "epsilon"), 1.0);
        if answer["reason"] != "no_bounds_found" {
            found += 1;
            continue;
        }
        assert_eq!(answer["answer"], Value::Null);
        if !arguments.starts_with("bounds") {
            let range = &answer["range"];
            assert_eq!(
                (&range["low"], &range["high"]),
                (&Value::Null, &Value::Null)
            );
            assert_eq!(number(range, "epsilon"), 0.25);
        }
    }
    assert!(found < 4);
    let table = run_on(
        b"x,y\n",
        "stats mean - --column x --range auto --epsilon 1e-3",
    );
    assert!(table.code == 0 && table.stdout.contains("charge"));
}

#[test]
fn answers_are_near_the_truth() {
    let near = |arguments: &str, truth: f64, tolerance: f64| {
        let answer = answer(&run(&format!(
            "stats {arguments} --epsilon 10 --format json"
        )));
        let found = number(&answer, "answer");
        assert!(
            (found - truth).abs() <= tolerance,
            "{arguments}: {found}, not {truth}"
        );
        assert!(number(&answer, "low") <= found && found <= number(&answer, "high"));
    };
    // At epsilon 10 noise beyond these has a probability below exp(-40).
    near("count", CENSUS_ROWS, 4.0);
    near("count --column workclass", CENSUS_ROWS, 4.0);
    near("mean --column age --range 0,120", CENSUS_MEAN_AGE, 0.05);
    near(
        "mean --column age --range 0,120 --relation replace",
        CENSUS_MEAN_AGE,
        0.05,
    );
    near(
        "mean --column age --range 0,120 --mechanism gaussian --delta 1e-6",
        CENSUS_MEAN_AGE,
        0.05,
    );
    near(
        "sum --column hours_per_week --range -5,100",
        CENSUS_SUM_HOURS,
        500.0,
    );
    near(
        "variance --column age --range 0,120",
        CENSUS_VARIANCE_AGE,
        3.0,
    );
    near(
        "variance --column age --range 0,120 --relation replace",
        CENSUS_VARIANCE_AGE,
        3.0,
    );
    near(
        "stddev --column age --range 0,120 --mechanism gaussian --delta 1e-6",
        CENSUS_VARIANCE_AGE.sqrt(),
        0.1,
    );
    // All ages lie between 16 and 128, and all hours between 0 and 128.
    near("mean --column age --range auto", CENSUS_MEAN_AGE, 0.1);
    near(
        "sum --column hours_per_week --range auto",
        CENSUS_SUM_HOURS,
        2000.0,
    );
    near(
        "stddev --column hours_per_week --range auto",
        CENSUS_VARIANCE_HOURS.sqrt(),
        0.2,
    );
    near(
        "variance --column age --range auto --mechanism gaussian --delta 1e-6",
        CENSUS_VARIANCE_AGE,
        5.0,
    );
    near("distinct --column occupation", CENSUS_OCCUPATIONS, 4.0);
    near("distinct --unit native_country", 42.0, 4.0);
    // Each of 42 countries may name two sexes, so the noise covers two; in all there are two.
    near(
        "distinct --column sex --unit native_country --values-per-unit 2",
        2.0,
        10.0,
    );
    // 42 countries; one row of each is used.
    near("count --unit native_country --rows-per-unit 1", 42.0, 4.0);
    let histogram = answer(&run(
        "stats histogram --column age --range 0,100 --epsilon 10 --format json",
    ));
    let bins = histogram["bins"].as_array().expect("a list");
    for (bin, truth) in bins.iter().zip(CENSUS_AGES_BY_DECADE) {
        assert!(
            (number(bin, "answer") - truth).abs() <= 5.0,
            "{bin}, not {truth}"
        );
    }
}

/// Sixty ranks to either side the ages are the same here, and at epsilon 40 no rank is off by that much: for four quantiles a
/// level has 10 of it, and there are 2^62 points, which `exp(-10 * 60 / 4)` outweighs by far.
#[test]
fn choices_are_near_the_truth() {
    let ask = |arguments: &str| {
        answer(&run(&format!(
            "stats {arguments} --epsilon 40 --format json"
        )))
    };
    for range in ["0,120", "auto"] {
        let median = ask(&format!("median --column age --range {range}"));
        assert_eq!(number(&median, "answer"), 37.0);
        let tail = ask(&format!("quantile --q 0.9 --column age --range {range}"));
        assert_eq!(number(&tail, "answer"), 58.0);
        let many = ask(&format!(
            "quantile --q 0.1,0.25,0.5,0.9 --column age --range {range}"
        ));
        let many = many["quantiles"].as_array().expect("a list");
        let found: Vec<f64> = many.iter().map(|at| number(at, "answer")).collect();
        assert_eq!(found, [22.0, 28.0, 37.0, 58.0]);
    }
    // Of the ages 17 to 90, hundreds lie in each of (16, 32], (32, 64] and (64, 128].
    let bounds = ask("bounds --column age");
    assert_eq!(
        (
            number(&bounds["answer"], "low"),
            number(&bounds["answer"], "high")
        ),
        (16.0, 128.0)
    );
    let list = "HS-grad,Doctorate,Bachelors,Masters,Some-college,No-such";
    let mode = ask(&format!("mode --column education --categories {list}"));
    assert_eq!(mode["answer"], "HS-grad");
    let path = file("education.txt", list.replace(',', "\n\n ").as_bytes());
    let top = ask(&format!(
        "top --k 3 --column education --categories @{} --relation replace",
        path.display()
    ));
    let top: Vec<&Value> = top["top"].as_array().expect("a list").iter().collect();
    assert_eq!(top, ["HS-grad", "Some-college", "Bachelors"]);
    let lists = file(
        "lists.json",
        br#"{"income":["<=50K",">50K"],"sex":["Female","Male"]}"#,
    );
    for lists in [
        format!("@{}", lists.display()),
        "income=<=50K|>50K;sex=Female|Male".into(),
    ] {
        let table = ask(&format!(
            "marginals --columns sex,income --categories {lists}"
        ));
        let cells = table["cells"].as_array().expect("a list");
        assert_eq!(cells.len(), 4);
        assert_eq!(cells[1]["categories"][1], ">50K");
        for (cell, truth) in cells.iter().zip(CENSUS_SEX_INCOME) {
            assert!((number(cell, "answer") - truth).abs() <= 5.0, "{cell}");
        }
    }
}

/// Each of 60 intervals misses with probability at most 0.05. More than 15 misses have a probability below 1e-7.
#[test]
fn intervals_contain_the_truth() {
    let mut misses = 0;
    for _ in 0..60 {
        let answer = answer(&run(
            "stats mean --column age --range 0,120 --epsilon 1 --format json",
        ));
        misses += u32::from(
            number(&answer, "low") > CENSUS_MEAN_AGE || number(&answer, "high") < CENSUS_MEAN_AGE,
        );
    }
    assert!(misses <= 15, "{misses} of 60 intervals miss");
}

/// Every bin of an empty file holds zero, and an interval that is cut at zero still contains it: 2000 intervals in one
/// run. Each misses with probability 0.027, since counts are whole; 7% are further off than chance reaches in 1e-20.
#[test]
fn intervals_of_all_bins_contain_the_truth() {
    let run = run_on(
        b"x\n",
        "stats histogram - --column x --range 0,1 --bins 2000 --epsilon 1 --format json",
    );
    let answer = answer(&run);
    let bins = answer["bins"].as_array().expect("a list");
    let end = |bin: &Value, side: usize| bin["interval"][side].as_f64().expect("a number");
    let misses = bins.iter().filter(|bin| end(bin, 0) > 0.0).count();
    assert!(misses < 140, "{misses} of 2000 intervals miss");
    assert!(misses > 0, "intervals this wide are no 95% intervals");
}

#[test]
fn table_says_all_that_a_reader_needs() {
    let csv = file("table.csv", b"who,age\na,30\na,31\nb,40\n");
    let path = csv.to_str().expect("text");
    let run_table = |arguments: &str| {
        let run = run(arguments);
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (0, ""),
            "stderr is no terminal and there is nothing to say"
        );
        run.stdout
    };
    let text = run_table(&format!("stats count {path} --epsilon 1"));
    for words in [
        "count of rows",
        "95% interval",
        "laplace, noise scale 1",
        "epsilon 1",
        "each row",
        "2.7183 (e^1)",
        "not recorded: repeats add up",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let text = run_table(&format!(
        "stats mean {path} --column age --range 0,120 --epsilon 1 --mechanism gaussian --delta 1e-5 --unit who --rows-per-unit 2 --confidence 0.9"
    ));
    for words in [
        "mean of age",
        "90% interval",
        "gaussian",
        "delta 1e-5",
        "each who",
        "(delta)",
        "up to 2 rows",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let text = run_table(&format!(
        "stats mean {path} --column age --range 0,120 --epsilon 2"
    ));
    let words = "laplace, noise scale 60 on each of two sums";
    assert!(text.contains(words), "{words:?} is not in\n{text}");
    let text = run_table(&format!(
        "stats median {path} --column age --range 0,120,1 --epsilon 2"
    ));
    assert!(text.contains("permute-and-flip"), "{text}");
    let text = run_table(&format!(
        "stats histogram {path} --column age --range 0,80 --bins 2 --epsilon 30"
    ));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .take(3)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[1],
        ["[0,", "40)", "2", "2", "to", "2", &"#".repeat(30)],
        "{text}"
    );
    assert_eq!(
        rows[2],
        ["[40,", "80]", "1", "1", "to", "1", &"#".repeat(15)],
        "{text}"
    );
}

#[test]
fn tables_of_choices_and_searches() {
    let check = |arguments: &str, expected: &[&str]| {
        let table = run(&format!("stats {arguments}"));
        assert_eq!(table.code, 0, "{}", table.stderr);
        let text = &table.stdout;
        for words in expected {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
    };
    check(
        "median --column age --range auto --epsilon 8",
        &[
            "median of age",
            "37",
            "rank error",
            "rows, with 95% confidence",
            "16 to 128, found for epsilon 2 of 8",
            "exponential",
        ],
    );
    check(
        "quantile --q 0.25,0.9 --column age --range 0,120 --epsilon 40",
        &["0.25 quantile of age  28", "0.9 quantile of age   58"],
    );
    check(
        "variance --column age --range 0,120 --epsilon 1",
        &["180 on the sum and 5400 on the squares", "epsilon 1\n"],
    );
    check(
        "bounds --column age --epsilon 8",
        &["bounds of age  16 to 128"],
    );
    check(
        "top --k 2 --column sex --categories Female,Male --epsilon 8",
        &["top 1 of sex  Male", "top 2 of sex  Female", "rows more"],
    );
    check(
        "distinct --unit native_country --epsilon 1",
        &[
            "distinct native_country",
            "each native_country with all its rows",
        ],
    );
    check(
        "distinct --column sex --unit race --values-per-unit 2 --epsilon 1",
        &["distinct sex", "up to 2 different values of each"],
    );
    check(
        "marginals --columns sex,income --categories sex=Female|Male;income=>50K --epsilon 50",
        &[
            "sex     income  count",
            "Female  >50K     1179",
            "Male    >50K     6662",
        ],
    );
}

#[test]
fn bundled_data_is_credited_on_stderr() {
    let run = run("stats count --epsilon 1");
    assert!(run.stderr.contains("CC BY 4.0") && !run.stdout.contains("CC BY"));
}

#[test]
fn standard_input_and_a_file_are_the_same() {
    let csv = b"x\n1\n2\n3\n";
    let path = file("same.csv", csv);
    let mut from_file = answer(&run(&format!(
        "stats count {} --epsilon 50 --format json",
        path.display()
    )));
    let from_stdin = answer(&run_on(csv, "stats count - --epsilon 50 --format json"));
    assert_eq!(
        (&from_file["data"], &from_stdin["data"]),
        (&"file".into(), &"standard input".into())
    );
    from_file["data"] = "standard input".into();
    assert_eq!(from_file, from_stdin);
    assert_eq!(number(&from_file, "answer"), 3.0);
}

const COMMANDS: [&str; 15] = [
    "",
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
];

#[test]
fn help_teaches_with_examples() {
    for command in COMMANDS {
        for help in ["--help", "-h"] {
            let run = run(&format!("{command} {help}"));
            assert_eq!((run.code, run.stderr.as_str()), (0, ""));
            assert!(
                run.stdout.contains("Examples:") && run.stdout.contains("whit stats "),
                "{}",
                run.stdout
            );
        }
    }
    assert_eq!(
        run("--version").stdout,
        concat!("whit ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// Every example that uses the bundled data works as printed.
#[test]
fn examples_in_help_work() {
    let mut tried = 0;
    for command in COMMANDS {
        for line in run(&format!("{command} --help")).stdout.lines() {
            if let Some(example) = line
                .trim()
                .strip_prefix("whit ")
                .filter(|example| !example.contains(".csv"))
            {
                // A shell takes the quotes away.
                assert_eq!(run(&example.replace('\'', "")).code, 0, "whit {example}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 25, "only {tried} examples were found");
}

#[test]
fn a_reader_that_leaves_early_is_no_panic() {
    let mut command = program();
    command.args("stats histogram --column age --range 0,100 --bins 100000 --epsilon 1".split(' '));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = [0; 10];
    child
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut first)
        .expect("there is output");
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(
        output.status.code() == Some(0) && !stderr.contains("error"),
        "{stderr}"
    );
}

#[test]
fn no_option_and_no_variable_makes_noise_repeat() {
    for option in [
        "--seed",
        "--random-seed",
        "--rng",
        "--rng-seed",
        "--entropy",
        "--deterministic",
        "--test",
        "--debug",
    ] {
        for value in ["", " 7", "=7"] {
            check_invalid(
                b"",
                &format!("stats count --epsilon 1 {option}{value}"),
                "usage",
            );
        }
        let global = run(&format!("{option} 7 stats count --epsilon 1"));
        assert_eq!(global.code, 1, "{option}");
    }
    let noisy = || {
        let mut command = program();
        command.args(
            "stats histogram - --column x --range 0,1 --bins 40 --epsilon 0.01 --format json"
                .split(' '),
        );
        for variable in [
            "WHIT_SEED",
            "WHIT_RNG",
            "WHIT_TEST",
            "SEED",
            "RNG_SEED",
            "RANDOM_SEED",
            "RUST_SEED",
        ] {
            command.env(variable, "7");
        }
        finish(command, b"x\n").stdout
    };
    let answers: BTreeSet<String> = (0..5).map(|_| noisy()).collect();
    assert_eq!(answers.len(), 5, "noise was repeated");
    for help in ["--help", "stats --help", "stats count --help"] {
        assert!(!run(help).stdout.to_lowercase().contains("seed"), "{help}");
    }
}

#[test]
fn explain_speaks_to_people_and_programs() {
    let explained = answer(&run(
        "explain --epsilon 1 --delta 1e-6 --group 3 --prior 0.01 --format json",
    ));
    assert_eq!(number(&explained, "epsilon"), 3.0);
    assert!(
        number(&explained, "posterior_max") > 0.01 && number(&explained, "right_guesses_max") < 1.0
    );
    let table = run("explain --epsilon 0.1 --prior 0.01");
    assert_eq!(table.code, 0);
    // The seed of this project says 11% for an epsilon of 0.1.
    for text in ["10.6% more", "at most 52.5% of the time", "at most 1.11%"] {
        assert!(table.stdout.contains(text), "{}", table.stdout);
    }
    for arguments in [
        "--epsilon -1",
        "--epsilon NaN",
        "--epsilon 1 --delta 1",
        "--epsilon 1 --prior 2",
        "--epsilon 1 --prior x",
        "--epsilon 1 --group 0",
        "--epsilon 1 --group -1",
        "--epsilon 1 --plot picture.gif",
        "--epsilon 1 --plot no/such/folder/picture.svg",
    ] {
        let refused = run(&format!("explain {arguments} --format json"));
        assert_eq!(refused.code, 1, "{arguments}: {}", refused.stdout);
        assert!(
            refused.stdout.starts_with(r#"{"invalid":"#),
            "{}",
            refused.stdout
        );
    }
    let none_left = run("explain --epsilon 1 --delta 1e-3 --group 1000 --format json");
    assert_eq!(none_left.code, 2, "{}", none_left.stdout);
}

#[test]
fn explain_draws() {
    for (name, start) in [
        ("region.svg", &b"<svg"[..]),
        ("region.png", &b"\x89PNG"[..]),
    ] {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = program();
        command
            .args(["explain", "--epsilon", "1", "--group", "2", "--plot"])
            .arg(&path);
        assert_eq!(finish(command, b"").code, 0);
        assert!(
            fs::read(&path).expect("it was drawn").starts_with(start),
            "{name}"
        );
    }
}

fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The crates of this platform; those of others may not have been downloaded.
fn metadata() -> Value {
    let version = cargo(&["-vV"]);
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("cargo names its host");
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--offline",
        "--locked",
        "--filter-platform",
        host,
    ];
    serde_json::from_str(&cargo(&arguments)).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("no list {key}"))
}

/// The names of the packages that a package uses outside of its tests.
fn used_by(metadata: &Value, package: &str) -> BTreeSet<String> {
    let name_of = |id: &Value| {
        let found = list(metadata, "packages")
            .iter()
            .find(|package| package["id"] == *id)
            .expect("listed");
        found["name"].as_str().expect("text").to_owned()
    };
    let nodes = list(&metadata["resolve"], "nodes");
    let node = nodes
        .iter()
        .find(|node| name_of(&node["id"]) == package)
        .expect("in the graph");
    let shipped = |used: &&Value| {
        list(used, "dep_kinds")
            .iter()
            .any(|kind| kind["kind"] != "dev")
    };
    list(node, "deps")
        .iter()
        .filter(shipped)
        .map(|used| name_of(&used["pkg"]))
        .collect()
}

#[test]
fn shipped_binary_does_not_link_the_testkit() {
    let metadata = metadata();
    let (mut seen, mut open) = (BTreeSet::new(), vec!["whit-cli".to_owned()]);
    while let Some(package) = open.pop() {
        if seen.insert(package.clone()) {
            open.extend(used_by(&metadata, &package));
        }
    }
    assert!(
        seen.contains("whit-mechanism") && seen.contains("getrandom"),
        "{seen:?}"
    );
    assert!(!seen.contains("whit-testkit"), "{seen:?}");
    // The same from the other end: the names of linked crates stand in the binary.
    let binary = fs::read(env!("CARGO_BIN_EXE_whit")).expect("it was built");
    let holds = |name: &str| {
        binary
            .windows(name.len())
            .any(|window| window == name.as_bytes())
    };
    assert!(holds("whit_mechanism") && !holds("whit_testkit"));
}

/// The picture in ARCHITECTURE: who may use whom.
#[test]
fn crates_use_each_other_as_drawn() {
    let metadata = metadata();
    let drawn: [(&str, &[&str]); 9] = [
        ("whit-core", &[]),
        ("whit-mechanism", &["whit-core"]),
        ("whit-accounting", &["whit-core"]),
        ("whit-audit", &["whit-core"]),
        ("whit-ledger", &["whit-accounting", "whit-core"]),
        (
            "whit-sql",
            &["whit-accounting", "whit-core", "whit-mechanism"],
        ),
        ("whit-testkit", &["whit-core"]),
        ("whit", &["whit-accounting", "whit-core", "whit-mechanism"]),
        ("whit-cli", &["whit"]),
    ];
    let members: BTreeSet<String> = {
        let ids = list(&metadata, "workspace_members");
        let packages = list(&metadata, "packages")
            .iter()
            .filter(|package| ids.contains(&package["id"]));
        packages
            .map(|package| package["name"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(
        members,
        drawn.iter().map(|(name, _)| (*name).to_owned()).collect(),
        "a crate is not in the picture"
    );
    for (package, may_use) in drawn {
        let used = used_by(&metadata, package);
        let beyond: Vec<_> = used
            .intersection(&members)
            .filter(|used| !may_use.contains(&used.as_str()))
            .collect();
        assert!(
            beyond.is_empty(),
            "{package} uses {beyond:?}, which is not drawn"
        );
    }
    assert!(used_by(&metadata, "whit-cli").contains("whit"));
    assert_eq!(used_by(&metadata, "whit").intersection(&members).count(), 3);
}
