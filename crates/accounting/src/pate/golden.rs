//! The golden vectors, read once for each test.

use serde_json::Value;

pub(super) fn golden(family: &str) -> Vec<Value> {
    let text = include_str!("../../../../vectors/pate.json");
    let all: Value = serde_json::from_str(text).expect("JSON");
    match &all[family] {
        Value::Array(cases) => cases.clone(),
        one => vec![one.clone()],
    }
}

pub(super) fn number(case: &Value, name: &str) -> f64 {
    case[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {case}"))
}

pub(super) fn numbers(case: &Value, name: &str) -> Vec<f64> {
    let list = case[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {case}"));
    list.iter()
        .map(|value| value.as_f64().expect("a number"))
        .collect()
}

/// Within `1e-9` of the golden value, relatively.
#[track_caller]
pub(super) fn close(found: f64, golden: f64) {
    assert!(
        (found - golden).abs() <= 1e-9 * golden.abs(),
        "{found:e} for {golden:e}"
    );
}
