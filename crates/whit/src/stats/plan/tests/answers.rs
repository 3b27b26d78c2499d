//! Answers are what they say, and as far off as they say.

use super::*;

#[test]
fn statistics_are_what_they_say() {
    let csv = "x,who\n1,a\n2,a\n ,b\n9,b\n12,c\n-4,c\nword,d\n";
    assert_eq!(single(request(Statistic::Count, PLENTY), csv), 7.0);
    let mut not_empty = request(Statistic::Count, PLENTY);
    not_empty.column = Some("x".into());
    assert_eq!(single(not_empty, csv), 6.0);
    // 1 + 2 + 9 + 10 + 0; empty and word are absent.
    assert!((single(request(Statistic::Sum, PLENTY), csv) - 22.0).abs() < 1e-3);
    assert!((single(request(Statistic::Mean, PLENTY), csv) - 22.0 / 5.0).abs() < 1e-3);
    assert_eq!(
        counts(request(Statistic::Histogram { bins: 5 }, PLENTY), csv),
        [2.0, 1.0, 0.0, 0.0, 2.0]
    );
    // The mean of squares is (1 + 4 + 81 + 100 + 0)/5.
    let variance = 37.2 - 4.4 * 4.4;
    assert!((single(request(Statistic::Variance, PLENTY), csv) - variance).abs() < 1e-3);
    assert!((single(request(Statistic::Stddev, PLENTY), csv) - variance.sqrt()).abs() < 1e-3);
    // In order: 0 1 2 9 10.
    assert!((single(request(Statistic::Median, PLENTY), csv) - 2.0).abs() < 1e-9);
    let found = counts(request(quantiles(&[0.1, 0.5, 0.7]), PLENTY), csv);
    for (found, expected) in found.iter().zip([0.0, 2.0, 9.0]) {
        assert!((found - expected).abs() < 1e-9, "{found:?}");
    }
    let ends = counts(request(quantiles(&[0.0, 0.5, 1.0]), PLENTY), csv);
    assert!(
        ends[1] == 2.0 && ends[0] == 0.0 && ends[2] == 10.0,
        "{ends:?}"
    );
    assert_eq!(
        counts(request(marginals(), PLENTY), csv),
        [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    );
    let distinct = Statistic::Distinct {
        values_per_unit: None,
    };
    assert_eq!(single(request(distinct, PLENTY), csv), 6.0);
    // Seven rows are public under replace-one; absent cells stand for the middle of the range.
    let mut replace = request(Statistic::Mean, PLENTY);
    replace.relation = Neighbours::ReplaceOne;
    assert!((single(replace, csv) - (22.0 + 5.0 + 5.0) / 7.0).abs() < 1e-3);
}

#[test]
fn frequent_categories_come_first() {
    let csv = "x,who\na,1\na,2\n a ,3\n2,4\n2,5\nz,6\nz,7\nz,8\nz,9\nb,1\n";
    let value = answer(request(top(3), PLENTY), csv)
        .expect("answered")
        .value;
    let Value::Top { top, count_error } = value else {
        panic!("{value:?}")
    };
    assert_eq!(top, ["a", "2", "b"]);
    assert!(count_error < 1e-6);
    let categories = categories();
    let mode = answer(request(Statistic::Mode { categories }, PLENTY), csv);
    let value = mode.expect("answered").value;
    assert!(
        matches!(&value, Value::Mode { answer, .. } if answer == "a"),
        "{value:?}"
    );
}

#[test]
fn distinct_counts_keep_the_first_values_of_each_unit() {
    let csv = "who,x\na,1\na,1\na,2\na,3\nb,3\nb,\n,4\nc,1\n";
    let distinct = |column: Option<&str>, unit: Option<&str>, values_per_unit| {
        let mut request = request(Statistic::Distinct { values_per_unit }, PLENTY);
        request.column = column.map(String::from);
        request.unit = unit.map(String::from);
        single(request, csv)
    };
    assert_eq!(distinct(Some("x"), None, None), 4.0);
    assert_eq!(distinct(Some("x"), Some("who"), Some(1)), 2.0);
    assert_eq!(distinct(Some("x"), Some("who"), Some(2)), 3.0);
    assert_eq!(distinct(None, Some("who"), None), 3.0);
}

#[test]
fn bounds_are_the_powers_of_two_around_the_values() {
    let value = |epsilon, csv: &str| {
        let answer = answer(request(Statistic::Bounds, epsilon), csv);
        answer.expect("answered").value
    };
    let found = value(PLENTY, &many_rows());
    assert!(
        matches!(&found, Value::Bounds { answer } if (answer.low, answer.high) == (2.0, 64.0)),
        "{found:?}"
    );
    assert_eq!(value(1.0, "x,who\n1,a\n"), Value::no_bounds());
}

#[test]
fn auto_finds_a_range_and_uses_it() {
    let ask = |statistic: &Statistic, epsilon, csv: &str| {
        let mut request = request(statistic.clone(), epsilon);
        request.range = Some(Range::Auto);
        answer(request, csv).expect("answered")
    };
    for statistic in ranged() {
        let found = ask(&statistic, PLENTY_AUTO, &many_rows());
        let range = found.range.expect("searched for");
        assert_eq!((range.low, range.high), (Some(2.0), Some(64.0)));
        assert_eq!(range.epsilon.value(), PLENTY_AUTO / 4.0);
        assert_eq!(found.epsilon.value(), PLENTY_AUTO);
        let mut given = request(statistic.clone(), 0.75 * PLENTY_AUTO);
        given.range = Some(Bounds::new(2.0, 64.0).expect("a range").into());
        let given = answer(given, many_rows()).expect("answered");
        assert_eq!(found.noise, given.noise, "{statistic}");
        // Too few rows for a range: that is the answer, for the whole price.
        let nothing = ask(&statistic, 1.0, "x,who\n1,a\n2,b\n");
        assert_eq!(nothing.value, Value::no_bounds());
        assert_eq!(nothing.epsilon.value(), 1.0);
        let range = nothing.range.expect("searched for");
        assert_eq!((range.low, range.epsilon.value()), (None, 0.25));
        assert!(nothing.noise.is_empty());
    }
}

#[test]
fn rows_beyond_the_cap_and_rows_of_nobody_are_left_out() {
    let csv = "who,x\na,1\n a ,2\nb,3\na,4\n,5\n\"  \",6\nb\na,7\n";
    let with_unit = |statistic| with_unit(request(statistic, PLENTY), 2);
    // a: 1, 2; b: 3 and an absent cell.
    assert_eq!(single(with_unit(Statistic::Count), csv), 4.0);
    assert!((single(with_unit(Statistic::Sum), csv) - 6.0).abs() < 1e-3);
    assert!((single(with_unit(Statistic::Mean), csv) - 2.0).abs() < 1e-3);
    let mut not_empty = with_unit(Statistic::Count);
    not_empty.column = Some("x".into());
    assert_eq!(single(not_empty, csv), 3.0);
    let answer = answer(with_unit(Statistic::Count), csv).expect("answered");
    assert_eq!(
        (answer.unit.as_str(), answer.rows_per_unit),
        ("who", Some(2))
    );
}

#[test]
fn files_without_rows_are_answered() {
    for request in variants(1.0, 1e-6) {
        assert!(answer(request, "x,who").is_ok());
    }
}

/// The seed is fixed, so this cannot fail by chance; another would fail once in ten thousand. Counts cover more than they
/// must, since they are whole.
#[test]
fn intervals_cover_as_often_as_they_say() {
    let row = |row: u32| format!("{},{row}\n", row % 10);
    let csv = "x,who\n".to_owned() + &(0..40).map(row).collect::<String>();
    for mut request in variants(1.0, 1e-6) {
        let given = matches!(request.range, None | Some(Range::Given(_)));
        if request.rows_per_unit == Some(3) || !given {
            continue;
        }
        request.confidence = Confidence::new(0.9).expect("a unit");
        let truth = match request.statistic {
            Statistic::Count => 40.0,
            Statistic::Sum => 180.0,
            Statistic::Mean => 4.5,
            Statistic::Variance => 8.25,
            Statistic::Stddev => 8.25_f64.sqrt(),
            Statistic::Histogram { .. } => 8.0,
            _ => continue,
        };
        let mut entropy = Seeded::new(4);
        let plan = Plan::new(request.clone()).expect("can be answered");
        let mut covered = Vec::new();
        while covered.len() < 1000 {
            let covers = |low: f64, high: f64| low <= truth && truth <= high;
            let found = plan.release(csv.as_bytes(), &mut entropy);
            match found.expect("answered").value {
                Value::Single { low, high, .. } => covered.push(covers(low, high)),
                Value::Histogram { bins } => {
                    covered.extend(
                        bins.iter()
                            .map(|bin| covers(bin.interval[0], bin.interval[1])),
                    );
                }
                other => panic!("{other:?} has no interval"),
            }
        }
        let share =
            covered.iter().filter(|&&covered| covered).count() as f64 / covered.len() as f64;
        assert!(share > 0.86, "{share}: {request:?}");
    }
}

/// Of few values one is chosen by permute-and-flip, and by the exponential mechanism if somebody insists; of many by the
/// latter only.
#[test]
fn a_step_makes_a_better_choice() {
    let mut request = request(Statistic::Median, 1.0);
    let planned = |request: &Request| {
        let plan = Plan::new(request.clone()).expect("can be answered");
        (plan.mechanism, plan.event().mechanism().clone())
    };
    let exponential = planned(&request);
    assert!(matches!(
        exponential,
        (NoiseKind::Exponential, Mechanism::BoundedRange { .. })
    ));
    request.range = Some(Range::with_step(0.0, 10.0, 1.0).expect("a range"));
    for statistic in [Statistic::Median, quantiles(&[0.9])] {
        request.statistic = statistic;
        let flipped = planned(&request);
        assert!(
            matches!(flipped, (NoiseKind::PermuteAndFlip, Mechanism::Pure { .. })),
            "{flipped:?}"
        );
    }
    request.mechanism = Some(NoiseKind::Exponential);
    assert_eq!(planned(&request), exponential);
    request.statistic = quantiles(&[0.1, 0.9]);
    request.mechanism = Some(NoiseKind::PermuteAndFlip);
    assert!(Plan::new(request.clone()).is_err(), "several");
    request.mechanism = None;
    assert_eq!(planned(&request).0, NoiseKind::Exponential);
    request.statistic = Statistic::Median;
    request.epsilon = Epsilon::new(PLENTY).expect("a unit");
    let answer = answer(request, "x,who\n1,a\n2,a\n2.2,b\n9,b\n12,c\n").expect("answered");
    assert_eq!(answer.mechanism, NoiseKind::PermuteAndFlip);
    assert!(matches!(answer.value, Value::Quantile { answer, .. } if answer == 2.0));
}
