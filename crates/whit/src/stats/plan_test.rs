//! Plans of all statistics, from the request to the answer.

use super::*;
use crate::stats::{CategoryColumn, Range, Share, Statistic, Value};
use whit_core::{Confidence, Delta, Epsilon, Fault, FaultKind, Mechanism};
use whit_mechanism::Bounds;
use whit_testkit::{FailingEntropy, Seeded};

/// So much that noise is far below anything compared here.
const PLENTY: f64 = 1e9;
/// The same, as much as a search for bounds takes.
const PLENTY_AUTO: f64 = 1e6;

fn request(statistic: Statistic, epsilon: f64) -> Request {
    let mut request = Request::new(statistic, Epsilon::new(epsilon).expect("a unit"));
    let (column, range) = match request.statistic {
        Statistic::Count | Statistic::Marginals { .. } => (false, false),
        Statistic::Distinct { .. }
        | Statistic::Bounds
        | Statistic::Mode { .. }
        | Statistic::Top { .. } => (true, false),
        _ => (true, true),
    };
    request.column = column.then(|| "x".into());
    request.range = range.then(|| Bounds::new(0.0, 10.0).expect("a range").into());
    request
}

/// Those that take a range.
fn ranged() -> [Statistic; 7] {
    [
        Statistic::Sum,
        Statistic::Mean,
        Statistic::Variance,
        Statistic::Stddev,
        Statistic::Histogram { bins: 5 },
        Statistic::Median,
        quantiles(&[0.1, 0.25, 0.5, 0.9]),
    ]
}

fn statistics() -> Vec<Statistic> {
    let others = [
        Statistic::Count,
        Statistic::Bounds,
        Statistic::Mode {
            categories: categories(),
        },
        top(3),
        Statistic::Distinct {
            values_per_unit: None,
        },
        marginals(),
    ];
    ranged().into_iter().chain(others).collect()
}

fn quantiles(shares: &[f64]) -> Statistic {
    let share = |&share: &f64| Share::new(share).expect("a share");
    Statistic::Quantile {
        q: shares.iter().map(share).collect(),
    }
}

fn categories() -> Vec<String> {
    ["1", "2", "a", "b"].map(String::from).into()
}

fn top(k: u64) -> Statistic {
    let categories = categories();
    Statistic::Top { k, categories }
}

fn marginals() -> Statistic {
    let column = |column: &str, categories: &[&str]| CategoryColumn {
        column: column.into(),
        categories: categories.iter().copied().map(String::from).collect(),
    };
    Statistic::Marginals {
        columns: vec![column("x", &["1", "2", "9"]), column("who", &["a", "b"])],
    }
}

/// Bounds what one unit has: rows, or in a distinct count values.
fn with_unit(mut request: Request, at_most: u32) -> Request {
    request.unit = Some("who".into());
    match &mut request.statistic {
        Statistic::Distinct { values_per_unit } => *values_per_unit = Some(at_most),
        _ => request.rows_per_unit = Some(at_most),
    }
    request
}

fn variants(epsilon: f64, delta: f64) -> Vec<Request> {
    let mut variants = Vec::new();
    for statistic in statistics() {
        for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            for at_most in [None, Some(1), Some(3)] {
                for mechanism in [None, Some(NoiseKind::Gaussian)] {
                    let mut request = request(statistic.clone(), epsilon);
                    request.relation = relation;
                    request.mechanism = mechanism;
                    if mechanism.is_some() {
                        request.delta = Delta::new(delta).expect("a unit");
                    }
                    if request.mechanism().is_err() {
                        continue;
                    }
                    if let Some(at_most) = at_most {
                        request = with_unit(request, at_most);
                    }
                    // Calibrating Gaussian noise takes time, for each of the extreme ranges.
                    let quick = mechanism.is_none() || statistic == Statistic::Variance;
                    let auto = quick && at_most != Some(1);
                    if request.range.is_some() && auto {
                        let mut auto = request.clone();
                        auto.range = Some(Range::Auto);
                        variants.push(auto);
                    }
                    // Few values, which are chosen from in another way.
                    if statistic == Statistic::Median {
                        for statistic in [Statistic::Median, quantiles(&[0.9])] {
                            let mut stepped = request.clone();
                            stepped.statistic = statistic;
                            stepped.range = Some(Range::with_step(0.0, 10.0, 1.0).expect("few"));
                            assert_eq!(stepped.mechanism(), Ok(NoiseKind::PermuteAndFlip));
                            variants.push(stepped);
                        }
                    }
                    variants.push(request);
                }
            }
        }
    }
    variants
}

fn answer(request: Request, csv: impl AsRef<[u8]>) -> Result<Answer> {
    let mut entropy = Seeded::new(7);
    Plan::new(request)?.execute(csv.as_ref(), &mut entropy)
}

fn single(request: Request, csv: &str) -> f64 {
    match answer(request, csv).expect("answered").value {
        Value::Single { answer, low, high } => {
            assert!(low <= answer && answer <= high);
            answer
        }
        Value::Quantile { answer, .. } => answer,
        other => panic!("{other:?} is not one number"),
    }
}

fn counts(request: Request, csv: &str) -> Vec<f64> {
    match answer(request, csv).expect("answered").value {
        Value::Histogram { bins } => bins.iter().map(|bin| bin.answer).collect(),
        Value::Marginals { cells, .. } => cells.iter().map(|cell| cell.answer).collect(),
        Value::Quantiles { quantiles, .. } => quantiles.iter().map(|at| at.answer).collect(),
        other => panic!("{other:?} is not many numbers"),
    }
}

#[test]
fn charge_never_exceeds_what_was_asked_and_comes_close() {
    for (epsilon, delta) in [
        (1.0, 1e-6),
        (0.1, 1e-9),
        (1.0 / 3.0, 1e-5),
        (1e-3, 1e-12),
        (7.7, 0.01),
    ] {
        for request in variants(epsilon, delta) {
            let plan = Plan::new(request.clone()).expect("can be answered");
            let charge = plan.charge();
            assert!(
                charge.epsilon <= request.epsilon && charge.delta <= request.delta,
                "{request:?}"
            );
            // Only the parts of a variance round their Gaussian scales apart from each other.
            assert!(
                charge.epsilon.value() >= epsilon * (1.0 - 1e-6),
                "{request:?}: {charge:?}"
            );
            assert_eq!(charge.neighbours, request.relation);
        }
    }
}

#[test]
fn parts_share_the_charge_evenly() {
    let check = |statistic: Statistic, relation, parts: usize| {
        let mut request = request(statistic, 1.0);
        request.relation = relation;
        let parts_of = |request: &Request| {
            let plan = Plan::new(request.clone()).expect("can be answered");
            match plan.event().mechanism() {
                Mechanism::Composition(parts) => parts.clone(),
                single => vec![single.clone()],
            }
        };
        let laplace = parts_of(&request);
        assert_eq!(laplace.len(), parts);
        for part in &laplace {
            let epsilon = whit_accounting::pure::epsilon(part).expect("Laplace");
            assert!((epsilon.value() * parts as f64 - 1.0).abs() < 1e-14);
        }
        request.mechanism = Some(NoiseKind::Gaussian);
        request.delta = Delta::new(1e-6).expect("a unit");
        let rho = |part| whit_accounting::zcdp::rho(part).expect("Gaussian").value();
        let rhos: Vec<f64> = parts_of(&request).iter().map(rho).collect();
        assert!(rhos.iter().all(|rho| (rho / rhos[0] - 1.0).abs() < 1e-6));
    };
    let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
    check(Statistic::Sum, added, 1);
    check(Statistic::Mean, added, 1);
    check(Statistic::Mean, replaced, 1);
    check(Statistic::Variance, added, 3);
    check(Statistic::Stddev, added, 3);
    check(Statistic::Variance, replaced, 2);
}

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

/// 600 values between 3 and 60: the bins from (2, 4] to (32, 64] hold more than noise.
fn many_rows() -> String {
    let row = |i: u32| format!("{},{i}\n", 3 + i % 58);
    "x,who\n".to_owned() + &(0..600).map(row).collect::<String>()
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

/// What is told before data is read is the search and a bound on the rest, the same for all ranges that can be found.
#[test]
fn auto_is_priced_without_its_range() {
    for (mechanism, delta) in [(None, 0.0), (Some(NoiseKind::Gaussian), 1e-6)] {
        let mut request = request(Statistic::Mean, 1.0);
        request.range = Some(Range::Auto);
        (request.mechanism, request.delta) = (mechanism, Delta::new(delta).expect("a unit"));
        let plan = Plan::new(request).expect("can be answered");
        let Mechanism::Composition(parts) = plan.event().mechanism() else {
            panic!("two parts")
        };
        let search = whit_accounting::pure::epsilon(&parts[0]).expect("Laplace");
        assert_eq!((parts.len(), search.value()), (2, 0.25));
        let rest = whit_core::Ratio::from_f64(0.75).expect("positive");
        match &parts[1] {
            Mechanism::Pure { epsilon } => assert_eq!((epsilon, delta), (&rest, 0.0)),
            Mechanism::Approximate {
                epsilon,
                delta: given,
            } => {
                assert_eq!((epsilon, given.ratio().to_f64_up()), (&rest, delta));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(plan.charge().epsilon.value(), 1.0);
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
fn shape_is_the_same_for_neighbours() {
    let long = "7".repeat(1_000_000);
    let poison = [
        "NaN,z",
        "inf,z",
        "-1e400,z",
        "1e308,z",
        "SECRET-4711,z",
        "",
        "\"",
        "1",
        "1,2,3,4",
    ];
    for request in variants(1.0, 1e-6) {
        let plan = Plan::new(request.clone()).expect("can be answered");
        let mut entropy = Seeded::new(7);
        let mut public = |csv: String| {
            let outcome = plan.release(csv.as_bytes(), &mut entropy);
            let outcome = outcome.expect("answered");
            // A range that was searched for is part of what was released, and so is what follows from it.
            if request.range == Some(Range::Auto) {
                return (vec![], vec![], outcome.event);
            }
            let shape = match outcome.value {
                Value::Histogram { bins } => bins.iter().map(|bin| (bin.low, bin.high)).collect(),
                Value::Quantiles {
                    quantiles,
                    rank_error,
                } => quantiles.iter().map(|at| (at.q, rank_error)).collect(),
                Value::Quantile { rank_error, .. } => vec![(0.5, rank_error)],
                Value::Mode { count_error, .. } => vec![(1.0, count_error)],
                Value::Top { top, count_error } => vec![(top.len() as f64, count_error)],
                Value::Marginals { cells, .. } => vec![(cells.len() as f64, 0.0)],
                _ => vec![],
            };
            (shape, outcome.noise, outcome.event)
        };
        let clean = public("x,who\n1,a\n2,b\n".into());
        let long = (request.unit.is_none() && request.mechanism.is_none()).then_some(&*long);
        for row in poison.into_iter().chain(long) {
            assert_eq!(public(format!("x,who\n1,a\n{row}\n2,b\n")), clean);
        }
    }
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

fn refused(change: impl FnOnce(&mut Request)) -> Error {
    let mut request = request(Statistic::Sum, 1.0);
    change(&mut request);
    Plan::new(request).err().expect("refused without any data")
}

#[test]
fn refuses_before_data_is_seen() {
    let check = |code: &str, change: fn(&mut Request)| {
        let error = refused(change);
        assert_eq!(
            (error.code(), error.kind()),
            (code, FaultKind::Invalid),
            "{error}"
        );
        assert!(!error.suggestion().is_empty());
    };
    check("out_of_domain", |request| request.epsilon = Epsilon::ZERO);
    check("no_noise", |request| {
        request.epsilon = Epsilon::new(1e300).expect("a unit")
    });
    check("no_noise", |request| {
        request.epsilon = Epsilon::new(1e-300).expect("a unit")
    });
    check("no_noise", |request| {
        request.range = Some(Bounds::new(0.0, 1e200).expect("a range").into())
    });
    // The scale can be sampled, but not in steps of the grid of this range.
    check("no_noise", |request| {
        request.range = Some(Bounds::new(0.0, 1e-9).expect("a range").into());
        request.epsilon = Epsilon::new(1e-30).expect("a unit");
    });
    check("missing_parameter", |request| request.column = None);
    check("missing_parameter", |request| request.range = None);
    check("unused_parameter", |request| {
        request.statistic = Statistic::Count
    });
    check("unused_delta", |request| {
        request.delta = Delta::new(1e-6).expect("a unit")
    });
    check("missing_delta", |request| {
        request.mechanism = Some(NoiseKind::Gaussian)
    });
    check("unfit_mechanism", |request| {
        request.mechanism = Some(NoiseKind::Exponential)
    });
    check("unfit_mechanism", |request| {
        request.statistic = Statistic::Median;
        request.mechanism = Some(NoiseKind::Gaussian);
        request.delta = Delta::new(1e-6).expect("a unit");
    });
    check("unused_delta", |request| {
        request.statistic = Statistic::Median;
        request.delta = Delta::new(1e-6).expect("a unit");
    });
    check("no_noise", |request| {
        request.statistic = Statistic::Median;
        request.epsilon = Epsilon::new(1e-300).expect("a unit");
    });
    check("no_noise", |request| {
        request.statistic = Statistic::Median;
        request.epsilon = Epsilon::new(1e300).expect("a unit");
    });
    check("no_noise", |request| {
        request.range = Some(Range::Auto);
        request.epsilon = Epsilon::new(f64::from_bits(1)).expect("a unit");
    });
    for epsilon in [1e-30, 1e30] {
        let mut auto = super::tests::request(Statistic::Variance, epsilon);
        auto.range = Some(Range::Auto);
        assert_eq!(
            Plan::new(auto).err().map(|error| error.code()),
            Some("no_noise")
        );
    }
    for shares in [&[][..], &[0.5, 0.5], &[0.7, 0.2]] {
        let unordered = super::tests::request(quantiles(shares), 1.0);
        let error = Plan::new(unordered).err().expect("refused");
        assert_eq!(error.code(), "shares_not_growing");
    }
    check("unused_parameter", |request| {
        request.statistic = Statistic::Bounds
    });
    check("unused_parameter", |request| request.statistic = top(1));
    check("unused_parameter", |request| {
        request.statistic = marginals()
    });
    check("count_out_of_range", |request| {
        (request.statistic, request.range) = (top(5), None)
    });
    check("count_out_of_range", |request| {
        (request.statistic, request.range) = (top(0), None)
    });
    for wrong in [&[][..], &["a", "a"], &["a", " a "], &["a", ""]] {
        let categories = wrong.iter().copied().map(String::from).collect();
        let mode = super::tests::request(Statistic::Mode { categories }, 1.0);
        assert_eq!(
            Plan::new(mode).err().map(|error| error.code()),
            Some("no_categories")
        );
    }
    let distinct = |change: fn(&mut Request), code: &str| {
        let values_per_unit = None;
        let mut request = super::tests::request(Statistic::Distinct { values_per_unit }, 1.0);
        change(&mut request);
        assert_eq!(
            Plan::new(request).err().map(|error| error.code()),
            Some(code)
        );
    };
    distinct(|request| request.column = None, "missing_parameter");
    distinct(
        |request| request.unit = Some("who".into()),
        "missing_parameter",
    );
    distinct(
        |request| request.rows_per_unit = Some(1),
        "unused_parameter",
    );
    distinct(
        |request| {
            request.statistic = Statistic::Distinct {
                values_per_unit: Some(1),
            }
        },
        "unused_parameter",
    );
    check("missing_rows_per_unit", |request| {
        request.unit = Some("who".into())
    });
    check("unused_rows_per_unit", |request| {
        request.rows_per_unit = Some(1)
    });
    check("count_out_of_range", |request| {
        request.statistic = Statistic::Histogram { bins: 0 }
    });
    check("count_out_of_range", |request| {
        request.unit = Some("who".into());
        request.rows_per_unit = Some(0);
    });
}

/// At ε = 1 a Laplace scale is the sensitivity itself, in the unit of the values (three times that for each part of a variance).
#[test]
fn noise_covers_all_rows_of_a_unit() {
    let scales = |statistic: &Statistic, relation, at_most: Option<u32>| -> Vec<f64> {
        let mut request = request(statistic.clone(), 1.0);
        if request.range.is_some() {
            request.range = Some(Bounds::new(-5.0, 3.0).expect("a range").into());
        }
        request.relation = relation;
        if let Some(at_most) = at_most {
            request = with_unit(request, at_most);
        }
        let noise = answer(request, "x,who\n1,a\n").expect("answered").noise;
        noise.iter().map(|noise| noise.scale).collect()
    };
    let distinct = Statistic::Distinct {
        values_per_unit: None,
    };
    let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
    let histogram = Statistic::Histogram { bins: 5 };
    for (statistic, relation, at_most, expected) in [
        (&Statistic::Count, added, None, vec![1.0]),
        (&Statistic::Count, added, Some(3), vec![3.0]),
        (&Statistic::Count, replaced, Some(3), vec![3.0]),
        (&Statistic::Sum, added, None, vec![5.0]),
        (&Statistic::Sum, added, Some(3), vec![15.0]),
        (&Statistic::Sum, replaced, None, vec![8.0]),
        (&Statistic::Sum, replaced, Some(3), vec![24.0]),
        (&Statistic::Mean, added, None, vec![8.0]),
        (&Statistic::Mean, added, Some(3), vec![24.0]),
        (&Statistic::Mean, replaced, None, vec![8.0]),
        (&Statistic::Mean, replaced, Some(3), vec![48.0]),
        // Three parts: 3 w/2, 3 w²/8 and 3 with w = 8; two where the count is public.
        (&Statistic::Variance, added, None, vec![12.0, 24.0, 3.0]),
        (&Statistic::Variance, added, Some(3), vec![36.0, 72.0, 9.0]),
        (&Statistic::Variance, replaced, None, vec![16.0, 32.0]),
        (
            &Statistic::Stddev,
            replaced,
            Some(3),
            vec![72.0, 144.0, 9.0],
        ),
        (&histogram, added, None, vec![1.0]),
        (&histogram, added, Some(3), vec![3.0]),
        (&histogram, replaced, None, vec![2.0]),
        (&histogram, replaced, Some(3), vec![6.0]),
        (&Statistic::Bounds, added, None, vec![1.0]),
        (&Statistic::Bounds, added, Some(3), vec![3.0]),
        (&Statistic::Bounds, replaced, Some(3), vec![6.0]),
        (&distinct, added, None, vec![1.0]),
        (&distinct, replaced, None, vec![1.0]),
        (&distinct, added, Some(3), vec![3.0]),
        (&distinct, replaced, Some(3), vec![3.0]),
        (&marginals(), added, None, vec![1.0]),
        (&marginals(), added, Some(3), vec![3.0]),
        (&marginals(), replaced, Some(3), vec![6.0]),
    ] {
        let found = scales(statistic, relation, at_most);
        let close = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() < 1e-12;
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(close),
            "{statistic} {relation} {at_most:?}: {found:?}"
        );
    }
}

/// What a choice may miss by is its scale times a logarithm: at ε = 1, `2Δ ln(N/β)` for ranks and `S ln(n/β)` for counts.
#[test]
fn choices_cover_all_rows_of_a_unit() {
    let error = |statistic: Statistic, relation, at_most: Option<u32>| {
        let mut request = request(statistic, 1.0);
        request.relation = relation;
        if let Some(at_most) = at_most {
            request = with_unit(request, at_most);
        }
        match answer(request, "x,who\n1,a\n").expect("answered").value {
            Value::Quantile { rank_error, .. } | Value::Quantiles { rank_error, .. } => rank_error,
            Value::Mode { count_error, .. } | Value::Top { count_error, .. } => count_error,
            other => panic!("{other:?} is no choice"),
        }
    };
    let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
    let (tail, tenth) = (quantiles(&[0.9]), quantiles(&[0.1]));
    let several = quantiles(&[0.25, 0.5, 0.75]);
    let categories = categories();
    let mode = Statistic::Mode { categories };
    for (statistic, once, relation, at_most, times) in [
        // Half a rank under add/remove, a whole one under replace-one.
        (&Statistic::Median, &Statistic::Median, added, Some(3), 3.0),
        (&Statistic::Median, &Statistic::Median, replaced, None, 2.0),
        (
            &Statistic::Median,
            &Statistic::Median,
            replaced,
            Some(3),
            6.0,
        ),
        (&tail, &Statistic::Median, added, None, 1.8),
        (&tenth, &Statistic::Median, added, None, 1.8),
        (&tail, &Statistic::Median, replaced, Some(2), 4.0),
        (&mode, &mode, added, Some(3), 3.0),
        (&mode, &mode, replaced, None, 2.0),
        (&mode, &mode, replaced, Some(3), 6.0),
        (&top(2), &top(2), added, Some(3), 3.0),
        (&top(2), &top(2), replaced, Some(3), 6.0),
    ] {
        let found = error(statistic.clone(), relation, at_most) / error(once.clone(), added, None);
        assert!(
            (found / times - 1.0).abs() < 1e-9,
            "{statistic} {relation} {at_most:?}: {found}"
        );
    }
    // Of several, but for the row on each of two levels in which a target may fall.
    let beyond_rows = |at_most| error(several.clone(), added, at_most) - 2.0;
    assert!((beyond_rows(Some(3)) / beyond_rows(None) - 3.0).abs() < 1e-9);
    // ln(4/0.05): no factor two under add/remove, since counts are monotone.
    assert!((error(mode, added, None) - 80_f64.ln()).abs() < 1e-9);
    // Two rounds at half of epsilon, and half of what may miss for each.
    assert!((error(top(2), added, None) - 2.0 * 160_f64.ln()).abs() < 1e-9);
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

/// From the file to the answer: a person with three rows, or nobody.
#[test]
fn whole_answers_hide_a_whole_unit() {
    let seen = |epsilon: f64| {
        let mut entropies = (Seeded::new(21), Seeded::new(22));
        let event = |csv: &str, entropy: &mut Seeded| {
            let mut request = request(Statistic::Count, epsilon);
            (request.unit, request.rows_per_unit) = (Some("who".into()), Some(3));
            let plan = Plan::new(request).expect("can be answered");
            let answer = plan.execute(csv.as_bytes(), entropy).expect("answered");
            matches!(answer.value, Value::Single { answer, .. } if answer >= 3.0)
        };
        let claim = whit_audit::Claim::pure(Epsilon::new(1.0).expect("a unit"));
        let alpha = whit_audit::Alpha::new(1e-6).expect("a level");
        let (with, without) = ("who,x\na,1\na,1\na,1\na,1\n", "who,x\n");
        whit_audit::falsify(
            claim,
            10_000,
            alpha,
            || event(with, &mut entropies.0),
            || event(without, &mut entropies.1),
        )
        .expect("enough trials")
    };
    let honest = seen(1.0);
    assert!(
        !honest.convicted && honest.epsilon_lower > 0.75,
        "{honest:?}"
    );
    assert!(seen(1.3).convicted);
}

/// An empty line is no row, so a file of one column could not keep its number of rows when one says nothing.
#[test]
fn one_column_keeps_no_public_number_of_rows() {
    for statistic in statistics() {
        if statistic == marginals() {
            continue;
        }
        let mut request = request(statistic, 1.0);
        request.relation = Neighbours::ReplaceOne;
        let refused = answer(request.clone(), b"x\n1\n\n2\n").expect_err("refused");
        assert_eq!(
            (refused.code(), refused.kind()),
            ("one_column", FaultKind::Refused)
        );
        assert!(answer(request, b"x,y\n1,\n,\n2,\n").is_ok());
    }
}

#[test]
fn without_entropy_there_is_no_answer() {
    for request in variants(1.0, 1e-6) {
        let plan = Plan::new(request).expect("can be answered");
        let answer = plan.execute("x,who\n1,a\n".as_bytes(), &mut FailingEntropy);
        let error = answer.expect_err("no entropy");
        assert_eq!((error.code(), error.kind()), ("no_entropy", FaultKind::Bug));
    }
}

#[test]
fn complaints_about_the_header_come_from_the_header() {
    let check = |csv: &[u8], code: &str| {
        let error = answer(request(Statistic::Sum, 1.0), csv).expect_err("refused");
        assert_eq!((error.code(), error.kind()), (code, FaultKind::Invalid));
        assert!(!format!("{error} {}", error.suggestion()).contains("SECRET-4711"));
    };
    check(b"", "no_header");
    check(b"SECRET-4711,y\n1,2\n", "missing_column");
    check(b"x,SECRET-4711,x\n1,2,3\n", "repeated_column");
    check(b"x,SECRET-4711\xff\n1,2\n", "header_not_text");
    let mut unit = request(Statistic::Count, 1.0);
    unit.unit = Some("who".into());
    unit.rows_per_unit = Some(1);
    let error = answer(unit, "x\n1\n").expect_err("refused");
    assert_eq!(
        error,
        Error::MissingColumn {
            column: "who".into()
        }
    );
}

#[test]
fn half_a_file_is_no_answer() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("SECRET-4711"))
        }
    }
    for request in variants(1.0, 1e-6) {
        let mut entropy = Seeded::new(1);
        let plan = Plan::new(request).expect("can be answered");
        let csv = "x,who\n1,a\n2,b\n".as_bytes().chain(Broken);
        assert_eq!(
            plan.execute(csv, &mut entropy).err(),
            Some(Error::Unreadable)
        );
    }
}
