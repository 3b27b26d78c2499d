//! The golden cases of `vectors/accounting.json`: every value that is known lies within the bounds, and the bounds are narrow.

use std::time::Instant;

use serde_json::Value;
use whit::account::Case;

const VECTORS: &str = include_str!("../../../vectors/accounting.json");
/// How wide the bounds may be, as a share of the upper one: where there is a closed form or a lattice, and where there is not.
const EXACT: f64 = 1e-9;
const SMOOTH: f64 = 1e-6;

fn number(case: &Value, key: &str) -> f64 {
    case[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {}", case["id"]))
}

/// The values that count as right, and the width that is allowed.
fn golden(case: &Value) -> ([f64; 2], f64) {
    let (value, tolerance) = (number(case, "value"), number(case, "tolerance_rel"));
    if case["kind"] == "bracket" {
        return ([number(case, "lo"), number(case, "hi")], tolerance);
    }
    let family = case["family"].as_str().expect("text");
    let smooth = [
        "poisson_",
        "heterogeneous subsampled",
        "heterogeneous mixture",
    ];
    let least = if smooth.iter().any(|start| family.starts_with(start)) {
        SMOOTH
    } else {
        EXACT
    };
    let range = [value * (1.0 - tolerance), value * (1.0 + tolerance)];
    (range, tolerance.max(least))
}

/// What is wrong with the answer to a case, if anything.
fn check(case: &Value) -> Option<String> {
    let ([low, high], width_max) = golden(case);
    let asked = Case::all(&case.to_string()).expect("a case").remove(0);
    let start = Instant::now();
    let answer = asked.answer();
    let seconds = start.elapsed().as_secs_f64();
    let (id, family) = (&case["id"], &case["family"]);
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(format!("{id} {family}: {error}")),
    };
    assert_eq!(case["answer"], answer.quantity, "{id}");
    let width = (answer.upper - answer.lower) / answer.upper;
    let meets = answer.lower <= high && low <= answer.upper;
    // A comparison with a NaN is false, so it fails here, too.
    let narrow = width >= 0.0 && width <= width_max;
    (!meets || !narrow).then(|| {
        format!(
            "{id} {family}: [{}, {}] for [{low}, {high}], width {width:.1e} of {width_max:.0e}, {} in {seconds:.3} s",
            answer.lower, answer.upper, answer.engine
        )
    })
}

#[test]
fn golden_cases_are_met() {
    let all: Value = serde_json::from_str(VECTORS).expect("JSON");
    let cases = all["cases"].as_array().expect("a list");
    assert_eq!(cases.len(), 74);
    let failed: Vec<String> = cases.iter().filter_map(check).collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

/// The file as a whole is a list of cases, in its order.
#[test]
fn the_file_is_read_as_it_is() {
    let cases = Case::all(VECTORS).expect("cases");
    let ids: Vec<_> = cases.iter().map(|case| case.id().as_str()).collect();
    let expected: Vec<_> = (1..=74).map(|number| format!("pub-{number:03}")).collect();
    let expected: Vec<_> = expected.iter().map(|id| Some(id.as_str())).collect();
    assert_eq!(ids, expected);
}

/// The check above can fail: a value that is a little off is seen, on either side.
#[test]
fn the_check_has_teeth() {
    let all: Value = serde_json::from_str(VECTORS).expect("JSON");
    for index in [0, 16, 26, 53, 61, 64, 68, 71] {
        for factor in [1.0 - 1e-5, 1.0 + 1e-5] {
            let mut case = all["cases"][index].clone();
            case["value"] = (number(&case, "value") * factor).into();
            assert!(check(&case).is_some(), "{} times {factor}", case["id"]);
        }
    }
}
