//! `whit account`, run as a program: stdout, stderr and exit code.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{Run, finish, program};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/accounting.json");

/// A composition is one argument for a shell, and may be several for the program: it makes no difference.
fn run(arguments: &str) -> Run {
    run_on("", arguments)
}

fn run_on(stdin: &str, arguments: &str) -> Run {
    let mut command = program();
    command.arg("account").args(arguments.split_whitespace());
    finish(command, stdin.as_bytes())
}

fn check(arguments: &str, expected: &str) {
    let run = run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments}");
    assert_eq!(run.stdout.trim_end(), expected.trim(), "{arguments}");
}

fn json(arguments: &str) -> Value {
    let run = run(&format!("{arguments} --format json"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments}");
    assert_eq!(run.stdout.lines().count(), 1, "{arguments}");
    serde_json::from_str(&run.stdout).expect("JSON")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

/// The same refusal in both formats.
fn check_refused(arguments: &str, exit: i32, code: &str) {
    let (table, machine) = (run(arguments), run(&format!("{arguments} --format json")));
    assert_eq!(
        (table.code, machine.code),
        (exit, exit),
        "{arguments}: {}",
        table.stderr
    );
    assert_eq!((table.stdout.as_str(), machine.stderr.as_str()), ("", ""));
    let failure: Value = serde_json::from_str(&machine.stdout).expect("JSON");
    let kind = if exit == 1 { "invalid" } else { "refused" };
    let details = &failure[kind];
    assert_eq!(details["code"], code, "{arguments}: {failure}");
    let text = |key: &str| details[key].as_str().expect("text").to_owned();
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

#[test]
fn epsilon_is_told_to_people() {
    check(
        "epsilon --delta 1e-5 gaussian(sigma=20) x 512",
        "
epsilon   5.05279 (rounded up) at delta 1e-5
engine    closed form
theorem   Gaussian profile [BW18, Thm 8], composed as dominating pairs [ZDW22,
          Thm 10]
protects  one unit: whether it is there at all (add-remove)",
    );
    let group = run("epsilon --delta 1e-5 --group 3 gaussian(sigma=20) x 100").stdout;
    assert!(
        group.starts_with("epsilon   7.05142 (rounded up)"),
        "{group}"
    );
    assert!(
        group.contains("3 units together: whether they are there at all"),
        "{group}"
    );
    let response =
        run("epsilon --delta 1e-6 --neighbours replace-one rr(epsilon=0.1) x 500").stdout;
    assert!(
        response.starts_with("epsilon   12.5179 (rounded up)"),
        "{response}"
    );
    assert!(
        response.contains("one unit: what it says (replace-one)"),
        "{response}"
    );
    let wide =
        run("epsilon --delta 1e-5 --neighbours replace-one batches(100, gaussian(sigma=4)) x 10");
    assert!(wide.stdout.contains("\nbetween   0.0"), "{}", wide.stdout);
    let infinite = run("epsilon --delta 1e-10 dp(epsilon=0.1, delta=1e-8) x 100").stdout;
    assert!(
        infinite.starts_with(
            "epsilon   infinite (no finite epsilon holds at this delta) at delta 1e-10"
        ),
        "{infinite}"
    );
}

#[test]
fn epsilon_is_told_to_programs() {
    let answer = json("epsilon --delta 1e-5 poisson(0.01, gaussian(sigma=4)) x 10000");
    let (lower, upper) = (number(&answer, "lower"), number(&answer, "upper"));
    assert!(lower <= 0.946_866_800_8 && 0.946_866_800_7 <= upper && upper - lower < 1e-6);
    assert_eq!(answer["quantity"], "epsilon");
    assert_eq!(
        (&answer["adjacency"], &answer["group"]),
        (&"add_remove".into(), &1.into())
    );
    assert!(answer["engine"].is_string() && answer["theorem"].is_string());
    let delta = json("delta --epsilon 1 gaussian(sigma=20) x 512");
    assert!((number(&delta, "estimate") - 0.175_130_662_657_952_44).abs() < 1e-12);
    // Times are written in three ways, and need no space.
    for times in ["x 512", "x512", "* 512", "× 512"] {
        let same = json(&format!("delta --epsilon 1 gaussian(sigma=20) {times}"));
        assert_eq!(same, delta, "{times}");
    }
}

#[test]
fn training_is_compared_with_older_accountants() {
    let told = run("sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5");
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    for text in [
        "epsilon   0.946867 (rounded up) at delta 1e-5\n",
        "bounds    0.946866800",
        "training  10000 steps, each over a Poisson sample at rate 0.01",
        "older accountants, rounded up",
        "moments accountant of 2016     1.25",
        "advanced composition",
        "basic composition",
    ] {
        assert!(told.stdout.contains(text), "{text}: {}", told.stdout);
    }
    let epochs = json("sgd --rate 0.01 --sigma 4 --epochs 100 --delta 1e-5");
    let steps = json("sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5");
    assert_eq!(epochs, steps);
    let batch = json("sgd --batch 256 --size 60000 --sigma 1.1 --epochs 60 --delta 1e-5");
    assert_eq!(batch["steps"], 14_063);
    assert!(
        (number(&batch, "estimate") - 2.3817).abs() < 1e-3,
        "{batch}"
    );
    let short = json("sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5 --replace-one");
    let long =
        json("sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5 --neighbours replace-one");
    assert_eq!(short, long);
    assert!((number(&short, "estimate") - 1.993_120_057_057_661_5).abs() < 1e-6);
    for arguments in [
        "sgd --sigma 4 --steps 10 --delta 1e-5",
        "sgd --rate 0.1 --batch 10 --size 100 --sigma 4 --steps 10 --delta 1e-5",
        "sgd --batch 10 --sigma 4 --steps 10 --delta 1e-5",
        "sgd --rate 0.1 --sigma 4 --delta 1e-5",
        "sgd --rate 0.1 --sigma 4 --steps 10 --epochs 10 --delta 1e-5",
    ] {
        check_refused(arguments, 1, "usage");
    }
}

#[test]
fn budgets_are_calibrated() {
    check(
        "calibrate --epsilon 1 --delta 1e-5 gaussian(sigma=?)",
        "
sigma     3.73064 (rounded up), which keeps epsilon 1 at delta 1e-5
engine    closed form
theorem   Gaussian profile [BW18, Thm 8], composed as dominating pairs [ZDW22,
          Thm 10]
protects  one unit: whether it is there at all (add-remove)",
    );
    let noise = json("calibrate --epsilon 1 --delta 1e-5 poisson(0.01, gaussian(sigma=?)) x 1000");
    assert_eq!(noise["quantity"], "sigma");
    let sigma = number(&noise, "upper");
    assert!((sigma - 1.414_619_4).abs() < 1e-6, "{noise}");
    let kept = json(&format!(
        "delta --epsilon 1 poisson(0.01, gaussian(sigma={sigma})) x 1000"
    ));
    assert!(number(&kept, "upper") <= 1e-5, "{kept}");
    let rate =
        run("calibrate --epsilon 1 --delta 1e-5 poisson(?, gaussian(sigma=2)) x 1000").stdout;
    assert!(rate.contains("0.015433 (rounded down)"), "{rate}");
    let count = run("calibrate --epsilon 1 --delta 1e-5 gaussian(sigma=37.30632) x ?").stdout;
    assert!(count.starts_with("count     100, which keeps"), "{count}");
    let none = run("calibrate --epsilon 1 --delta 1e-5 gaussian(sigma=0.1) x ?").stdout;
    assert!(none.starts_with("count     0 (not even one)"), "{none}");
    for form in ["gaussian(sigma=1)", "gaussian(sigma=?) x ?"] {
        check_refused(
            &format!("calibrate --epsilon 1 --delta 1e-5 {form}"),
            1,
            "unknown_count",
        );
    }
    check_refused("epsilon --delta 1e-5 gaussian(sigma=?)", 1, "unknown_count");
}

#[test]
fn notions_stand_side_by_side() {
    let told = run("compare --delta 1e-5 laplace(scale=20) x 512");
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    let names = [
        "notion",
        "exact",
        "Rényi DP",
        "zCDP",
        "advanced composition",
        "basic composition",
    ];
    let mut rest = told.stdout.as_str();
    for name in names {
        let place = rest.find(&format!("\n{name}")).map(|place| place + 1);
        let place = place.unwrap_or_else(|| {
            if name == "notion" {
                0
            } else {
                panic!("{name}")
            }
        });
        rest = &rest[place..];
    }
    let compared = json("compare --delta 1e-5 laplace(scale=20) x 512");
    let notions = compared["notions"].as_array().expect("a list");
    for notion in notions {
        // No older notion is below the exact answer.
        assert!(
            number(notion, "epsilon") >= number(&compared, "lower"),
            "{notion}"
        );
    }
    assert!(notions.len() >= 4);
}

#[test]
fn plots_are_drawn() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for (arguments, name) in [
        ("profile gaussian(sigma=20) x 512", "profile.svg"),
        (
            "compositions --most 64 gaussian(sigma=20)",
            "compositions.png",
        ),
        ("tradeoff gdp(mu=1)", "tradeoff.svg"),
        ("training --epochs 4", "training.png"),
    ] {
        let path = folder.join(name);
        let drawn = run(&format!("plot {arguments} --output {}", path.display()));
        assert_eq!((drawn.code, drawn.stderr.as_str()), (0, ""), "{arguments}");
        let start: &[u8] = if name.ends_with("svg") {
            b"<svg"
        } else {
            b"\x89PNG"
        };
        assert!(
            fs::read(&path).expect("it was drawn").starts_with(start),
            "{name}"
        );
    }
    let path = folder.join("points.svg");
    let chart = json(&format!(
        "plot tradeoff gdp(mu=1) --output {}",
        path.display()
    ));
    let curves = chart["curves"].as_array().expect("a list");
    assert_eq!(curves.len(), 3);
    for name in ["picture.gif", "picture"] {
        check_refused(
            &format!("plot tradeoff gdp(mu=1) --output {name}"),
            1,
            "plot_kind",
        );
    }
    let nowhere = "plot tradeoff gdp(mu=1) --output no/such/folder/picture.svg";
    check_refused(nowhere, 1, "plot_unwritable");
}

#[test]
fn cases_are_answered_line_by_line() {
    let all = run(&format!("--json {VECTORS}"));
    assert_eq!((all.code, all.stderr.as_str()), (0, ""));
    assert_eq!(all.stdout.lines().count(), 74);
    for (index, line) in all.stdout.lines().enumerate() {
        let start = format!(r#"{{"id":"pub-{:03}","lower":"#, index + 1);
        assert!(line.starts_with(&start), "{line}");
        assert!(!line.contains("NaN") && !line.contains("null"), "{line}");
        let parsed: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(parsed.to_string().len(), line.len(), "numbers round trip");
    }
    let file = fs::read_to_string(VECTORS).expect("the vectors");
    assert_eq!(run_on(&file, "--json -").stdout, all.stdout);
    let mixed = run_on(
        r#"[{"id":1,"mechanisms":[{"type":"gdp","mu":1}],"query":{"delta":0.1}},
            {"id":"b","mechanisms":[],"query":{"delta":0.1}},
            {"mechanisms":[{"type":"gaussian","sigma":1}],"query":{"delta":0}},
            {"id":4,"mechanisms":[{"type":"gdp","mu":-1}],"query":{"delta":0.1}}]"#,
        "--json -",
    );
    assert_eq!((mixed.code, mixed.stderr.as_str()), (2, ""));
    let lines: Vec<&str> = mixed.stdout.lines().collect();
    assert_eq!(lines.len(), 4);
    for (line, start) in lines.iter().zip([
        r#"{"id":1,"lower":1."#,
        r#"{"id":"b","error":{"kind":"invalid","code":"empty_composition","reason":"#,
        r#"{"id":null,"lower":null,"upper":null,"estimate":null,"engine":"#,
        r#"{"id":4,"error":{"kind":"invalid","code":"out_of_range","reason":"#,
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    assert!(
        lines[2].ends_with(r#""reason":"no finite epsilon holds at this delta"}"#),
        "{}",
        lines[2]
    );
    for text in [
        "",
        "garbage",
        "[",
        "[]",
        r#"{"cases":[]}"#,
        "NaN",
        "3",
        "null",
    ] {
        let failed = run_on(text, "--json -");
        assert_eq!((failed.code, failed.stderr.as_str()), (2, ""), "{text}");
        assert!(
            failed.stdout.starts_with(r#"{"id":null,"error":{"#),
            "{}",
            failed.stdout
        );
        assert_eq!(failed.stdout.lines().count(), 1);
    }
    check_refused("--json no-such-file.json", 1, "unreadable_file");
}

#[test]
fn wrong_input_is_told_what_would_pass() {
    let check = |form: &str, exit, code| {
        check_refused(&format!("epsilon --delta 1e-5 {form}"), exit, code);
    };
    for form in [
        "gaussian(sigma=-1)",
        "gaussian(sigma=0)",
        "gaussian(sigma=1e400)",
        "gaussian(sigma=1, sensitivity=-1)",
        "poisson(1.5, gaussian(sigma=1))",
        "poisson(0, gaussian(sigma=1))",
        "poisson(3/2, gaussian(sigma=1))",
        "gaussian(sigma=1) x 0",
        "gaussian(sigma=1) x 9007199254740993",
        "gaussian(sigma=1) x 1e300",
        "dp(epsilon=1, delta=1)",
        "tabulated(p=[0.5, 0.6], q=[0.5, 0.5])",
        "discrete_laplace(scale=0)",
        "discrete_gaussian(sigma=1, sensitivity=0.5)",
    ] {
        check(form, 1, "out_of_range");
    }
    for form in [
        "gaussian(sigma=20) y 512",
        "gaussian(20)",
        "gaussian(sigma=1) x 1.5",
        "gaussian(sigma=1",
        "poisson(0.1)",
        "poisson(0.1, rr(epsilon=1))",
        "poisson(0.1, poisson(0.1, gaussian(sigma=1)))",
    ] {
        check(form, 1, "not_a_form");
    }
    check("gausian(sigma=1)", 1, "unknown_mechanism");
    check("gaussian(scale=1)", 1, "unknown_parameter");
    check("gaussian()", 1, "missing_parameter");
    check("gaussian(sigma=1, noise_multiplier=1)", 1, "given_twice");
    // Relations that do not fit, or not together.
    check("rr(epsilon=1)", 2, "sampler_mismatch");
    check(
        "--neighbours replace-one poisson(0.1, laplace(scale=1))",
        2,
        "sampler_mismatch",
    );
    check(
        "fixed_size(0.1, gaussian(sigma=1)) + allocation(10, gaussian(sigma=1))",
        2,
        "sampler_mismatch",
    );
    check(
        "--group 2 poisson(0.1, gaussian(sigma=1))",
        2,
        "group_unknown",
    );
    check("--group 0 gaussian(sigma=1)", 1, "out_of_range");
    for delta in ["1", "2", "-1e-9", "NaN", "inf"] {
        check_refused(
            &format!("epsilon --delta {delta} gdp(mu=1)"),
            1,
            "out_of_range",
        );
    }
    for epsilon in ["-1", "NaN", "inf"] {
        check_refused(
            &format!("delta --epsilon {epsilon} gdp(mu=1)"),
            1,
            "out_of_range",
        );
    }
    check_refused(
        "calibrate --epsilon 1 --delta 0 gaussian(sigma=?)",
        1,
        "out_of_range",
    );
    for text in ["abc", "1,5", "--format"] {
        check_refused(
            &format!("epsilon --delta={text} gdp(mu=1)"),
            1,
            "not_a_number",
        );
    }
    for arguments in [
        "",
        "epsilon gdp(mu=1)",
        "epsilon --delta 1e-5",
        "frobnicate",
        "plot",
    ] {
        check_refused(arguments, 1, "usage");
    }
    check_refused("--json - epsilon --delta 1e-5 gdp(mu=1)", 1, "usage");
    let place = run("epsilon --delta 1e-5 gaussian(sigma=20) y 512").stderr;
    assert!(
        place.contains(r#""gaussian(sigma=20) y 512" goes wrong at letter 20: "y""#),
        "{place}"
    );
}

/// Every help has examples, and every example works as printed.
#[test]
fn help_teaches_with_examples() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut tried = 0;
    for command in [
        "",
        "epsilon",
        "delta",
        "sgd",
        "calibrate",
        "compare",
        "plot",
        "plot profile",
        "plot compositions",
        "plot tradeoff",
        "plot training",
    ] {
        let help = run(&format!("{command} --help"));
        assert_eq!((help.code, help.stderr.as_str()), (0, ""));
        assert!(help.stdout.contains("Examples:"), "{command}");
        for line in help.stdout.lines() {
            let Some(example) = line.trim().strip_prefix("whit account ") else {
                continue;
            };
            // A shell takes the quotes away; pictures go elsewhere.
            let output = format!("--output {}/", folder.display());
            let example = example.replace('\'', "").replace("--output ", &output);
            let answered = run(&example);
            assert_eq!(
                answered.code, 0,
                "whit account {example}: {}",
                answered.stderr
            );
            tried += 1;
        }
    }
    assert!(tried >= 25, "only {tried} examples were found");
}
