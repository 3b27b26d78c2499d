//! What somebody who is new to `whit stats` and `whit explain` stumbles over.

use super::*;

/// The reason and the hint of a range, refused before any file is opened.
fn range(text: &str) -> String {
    let run = run(&format!(
        "stats sum no-such-file.csv --column x --epsilon 1 --range {text}"
    ));
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{text}");
    run.stderr
}

#[test]
fn ranges_are_told_what_is_wrong_with_them() {
    for (text, words) in [
        ("5", "the range is one number, where two are needed"),
        ("1,2,4,8", "the range has 4 parts"),
        ("a,5", "the lower end of the range, \"a\", is not a number"),
        (
            "5,1O",
            "the upper end of the range, \"1O\", is not a number",
        ),
        ("1,2,c", "the step of the range, \"c\", is not a number"),
        ("0,", "the upper end of the range is missing"),
        (",7", "the lower end of the range is missing"),
        (
            "5,1",
            "the lower end of the range, 5, is above the upper one, 1\nhint: write the lower end first: --range 1,5",
        ),
        ("3,3", "both ends of the range are 3"),
        ("0,inf", "an end of the range is infinite"),
        ("NaN,1", "an end of the range is no number"),
        ("0,1e300", "too far away"),
        ("0,8,3", "power of two"),
    ] {
        let refused = range(text);
        assert!(refused.contains(words), "{text}: {refused}");
    }
}

/// Whether a column holds numbers is private, so what became of other cells is said in every answer, in the same words.
#[test]
fn cells_that_are_no_numbers_are_accounted_for() {
    let cells = |csv: &[u8], arguments: &str| {
        let run = run_on(csv, &format!("stats {arguments}"));
        assert_eq!(run.code, 0, "{arguments}: {}", run.stderr);
        // Until the next line that has a name.
        let mut lines = run
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("cells "));
        let mut text = lines.next().unwrap_or_default().to_owned();
        for line in lines.take_while(|line| line.starts_with(' ')) {
            text += " ";
            text += line.trim();
        }
        text
    };
    let (numbers, text): (&[u8], &[u8]) = (
        b"x,y\n1,a\n2,b\n3,c\n",
        b"x,y\none,a\ntwo,b\nSECRET-4711,c\n",
    );
    for arguments in [
        "sum - --column x --range 0,10 --epsilon 1",
        "mean - --column x --range 0,10 --epsilon 1",
        "stddev - --column x --range 0,10 --epsilon 1",
        "histogram - --column x --range 0,10 --epsilon 1",
        "median - --column x --range 0,10 --epsilon 1",
        "bounds - --column x --epsilon 1",
    ] {
        let said = cells(text, arguments);
        assert!(
            said.contains("are left out; where all are, the answer is only noise"),
            "{arguments}: {said}"
        );
        assert_eq!(said, cells(numbers, arguments), "{arguments}");
    }
    let mean = cells(
        text,
        "mean - --column x --range 0,10 --epsilon 1 --relation replace",
    );
    assert!(mean.contains("count as the middle of the range"), "{mean}");
    let sum = cells(
        text,
        "sum - --column x --range 0,10 --epsilon 1 --relation replace",
    );
    assert!(sum.contains("nearest to zero"), "{sum}");
    assert_eq!(cells(text, "count - --epsilon 1"), "");
}

#[test]
fn numbers_that_would_become_zero_are_refused() {
    for arguments in [
        "stats count no-such-file.csv --epsilon 1e-400",
        "stats count no-such-file.csv --epsilon 1 --mechanism gaussian --delta 1e-400",
        "explain --epsilon 1e-400",
        "explain --epsilon 1 --delta 1e-400",
    ] {
        check_invalid(b"", arguments, "too_small");
    }
    assert_eq!(run("explain --epsilon 1 --delta 5e-324").code, 0);
}

/// What the help of a statistic offers is taken, and what it does not name is refused.
#[test]
fn help_names_the_mechanisms_that_pass() {
    let all = ["laplace", "gaussian", "exponential", "permute-and-flip"];
    let values = "--column age --range 0,120,1";
    for (statistic, rest, fits) in [
        ("count", "", &all[..2]),
        ("sum", values, &all[..2]),
        ("mean", values, &all[..2]),
        ("variance", values, &all[..2]),
        ("stddev", values, &all[..2]),
        ("histogram", values, &all[..2]),
        ("distinct", "--column sex", &all[..2]),
        (
            "marginals",
            "--columns sex --categories sex=Female|Male",
            &all[..2],
        ),
        ("bounds", "--column age", &all[..1]),
        ("median", values, &all[2..]),
        (
            "quantile",
            "--q 0.9 --column age --range 0,120,1",
            &all[2..],
        ),
        ("mode", "--column sex --categories Female,Male", &all[2..3]),
        (
            "top",
            "--k 1 --column sex --categories Female,Male",
            &all[2..3],
        ),
    ] {
        let help = run(&format!("stats {statistic} --help")).stdout;
        let (_, text) = help.split_once("--mechanism <").expect("the option");
        let (text, _) = text.split_once("\n      --").unwrap_or((text, ""));
        for mechanism in all {
            let passes = fits.contains(&mechanism);
            assert_eq!(
                text.contains(mechanism),
                passes,
                "{statistic} {mechanism}: {text}"
            );
            let delta = if mechanism == "gaussian" {
                "--delta 1e-6"
            } else {
                ""
            };
            let run = run(&format!(
                "stats {statistic} {rest} --epsilon 1 --mechanism {mechanism} {delta} --format json"
            ));
            assert_eq!(
                run.code == 0,
                passes,
                "{statistic} {mechanism}: {}",
                run.stdout
            );
        }
    }
}
