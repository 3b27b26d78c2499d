//! Answers in JSON: their keys, and how near they are to the truth.

use super::*;

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
