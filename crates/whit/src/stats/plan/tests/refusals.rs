//! What is refused, and when.

use super::*;

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
