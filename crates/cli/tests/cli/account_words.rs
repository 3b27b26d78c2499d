//! What somebody who is new to `whit account` stumbles over, said in the words that were written.

use serde_json::Value;

use super::{Run, finish, program};

fn run(arguments: &[&str]) -> Run {
    run_on("", arguments)
}

fn run_on(stdin: &str, arguments: &[&str]) -> Run {
    let mut command = program();
    command.arg("account").args(arguments);
    finish(command, stdin.as_bytes())
}

fn refused(form: &str) -> String {
    let run = run(&["epsilon", "--delta", "1e-5", form]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{form}");
    run.stderr
}

/// An error without the code that programs read.
fn without_code(text: &str) -> String {
    let (code, rest) = text.split_once("]: ").expect("a code");
    assert!(code.starts_with("error["), "{text}");
    format!("error: {rest}")
}

#[test]
fn refusals_name_what_was_written() {
    for (form, words) in [
        (
            "poisson(1.5, gaussian(sigma=1))",
            "error: poisson: rate is 1.5;",
        ),
        (
            "poisson(0.1, gaussian(sigma=0))",
            "error: poisson: sigma is 0;",
        ),
        ("dp(epsilon=1, delta=1)", "error: dp: delta is 1;"),
        (
            "rr(values=3)",
            "error: rr needs epsilon\nhint: give epsilon as a number\n",
        ),
    ] {
        let text = without_code(&refused(form));
        assert!(text.starts_with(words), "{form}: {text}");
        for internal in ["subsampled", "sampling_probability", "epsilon0", "delta0"] {
            assert!(!text.contains(internal), "{form}: {text}");
        }
    }
    let training = run(&[
        "sgd", "--rate", "1.5", "--sigma", "4", "--steps", "10", "--delta", "1e-5",
    ]);
    assert!(
        without_code(&training.stderr).starts_with("error: sgd: rate is 1.5;"),
        "{}",
        training.stderr
    );
    let found = run(&[
        "calibrate",
        "--epsilon",
        "1",
        "--delta",
        "1e-5",
        "poisson(?, gaussian(sigma=2)) x 1000",
    ]);
    assert!(
        found
            .stdout
            .starts_with("rate      0.015433 (rounded down)"),
        "{}",
        found.stdout
    );
}

#[test]
fn hints_name_every_mechanism_and_parameter() {
    let unknown = refused("gausian(sigma=1)");
    for name in [
        "discrete_laplace",
        "geometric",
        "rr",
        "dp",
        "poisson",
        "shuffle",
    ] {
        assert!(unknown.contains(&format!(" {name}")), "{name}: {unknown}");
    }
    let unknown = refused("gaussian(sigma=1, sensitivty=2)");
    assert!(unknown.contains("sensitivity"), "{unknown}");
}

/// The float next to 2^53 + 1 is 2^53, which would have passed.
#[test]
fn counts_are_shown_in_the_digits_that_were_written() {
    for count in ["9007199254740993", "18446744073709551617", "1e300"] {
        let text = refused(&format!("gaussian(sigma=1) x {count}"));
        assert!(text.contains(&format!("count is {count};")), "{text}");
        assert!(text.contains("9007199254740992"), "{text}");
    }
}

#[test]
fn numbers_that_would_become_zero_are_refused() {
    for arguments in [
        ["epsilon", "--delta", "1e-400", "gaussian(sigma=1)"],
        ["delta", "--epsilon", "0.1e-330", "gaussian(sigma=1)"],
    ] {
        let refused = run(&arguments);
        assert_eq!(refused.code, 1, "{}", refused.stdout);
        assert!(refused.stderr.contains("5e-324"), "{}", refused.stderr);
    }
    assert!(refused("dp(epsilon=1, delta=1e-400)").contains("5e-324"));
    for delta in ["0", "0e-400", "0.000", "5e-324"] {
        let pure = run(&["epsilon", "--delta", delta, "laplace(scale=1)"]);
        assert_eq!(pure.code, 0, "{delta}: {}", pure.stderr);
    }
}

#[test]
fn keys_that_stand_twice_are_refused() {
    let cases = r#"[{"id":1,"mechanisms":[{"type":"gdp","mu":1,"count":512,"count":1}],"query":{"delta":1e-5}},
        {"id":2,"mechanisms":[{"type":"gdp","mu":1}],"query":{"delta":1e-5}}]"#;
    let run = run_on(cases, &["--json", "-"]);
    assert_eq!(run.code, 2);
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["error"]["code"], "key_twice");
    assert!(lines[1]["upper"].is_number(), "{}", run.stdout);
}

/// Every type that help lists is one that can be written, with all its keys.
#[test]
fn help_lists_the_types_of_json() {
    let help = run(&["--help"]).stdout;
    let (_, list) = help
        .split_once("Types of mechanisms in JSON")
        .expect("a list");
    let lines: Vec<&str> = list
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .map(str::trim)
        .collect();
    let mut types = 0;
    for pair in lines.chunks(2) {
        let [names, keys] = pair else {
            panic!("{pair:?} is no name with its keys");
        };
        for name in names.split(" or ") {
            let fields: Vec<String> = keys
                .split([',', '|'])
                .map(|key| format!("{:?}:[]", key.trim()))
                .collect();
            let case = format!(
                r#"{{"mechanisms":[{{"type":{name:?},{}}}],"query":{{"delta":1e-5}}}}"#,
                fields.join(",")
            );
            let answered = run_on(&case, &["--json", "-"]).stdout;
            let answered: Value = serde_json::from_str(&answered).expect("JSON");
            // Known, with nothing that is not read; only what the keys hold is wrong.
            assert_ne!(answered["error"]["code"], "unknown_mechanism", "{case}");
            assert!(answered.get("ignored").is_none(), "{case}: {answered}");
            types += 1;
        }
    }
    assert!(types >= 20, "only {types} in\n{list}");
}
