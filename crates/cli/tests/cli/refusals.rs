//! What is refused, and what is answered whatever stands in the file.

use super::*;

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
        unknown.code == 1
            && unknown.stdout.is_empty()
            && unknown.stderr.starts_with("error[usage]: ")
    );
}

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
    if !answer["range"]["epsilon"].is_null() {
        // Whether a range is found, which, and what is made of it, is up to the noise.
        let answer = answer.as_object_mut().expect("an object");
        answer["range"] = Value::Null;
        for key in ["reason", "answer", "low", "high", "noise"] {
            answer.remove(key);
        }
    } else if answer.get("top").is_some() {
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
