//! The meter: one GROUP BY over many public keys is as many samples of the whole way from a file to an answer. In one world
//! every key has its unit, in the other none has; key by key these are neighbours, and what an observer learns from a key must be
//! what was charged: not more, and, for noise that is tight, not much less.

use std::fmt::Write;

use crate::shop::{Shop, at, with_delta};
use whit_accounting::price;
use whit_audit::{Alpha, clopper_pearson_lower, clopper_pearson_upper};
use whit_core::Delta;
use whit_sql::{Answer, Asked};

const KEYS: u32 = 40_000;

const CATALOG: &str = r#"
    [dataset]
    id = "meter"
    [budget]
    epsilon = 10.0
    [defaults]
    groups_per_unit = 1
    rows_per_group = 2
    [table.visits]
    source = "visits.csv"
    unit = "person"
    [table.visits.column]
    amount = { type = "int", range = [-3, 5] }
    [table.places]
    source = "places.csv"
    public = true
"#;

/// One unit with three rows in each key, of which two count; or none.
fn world(present: bool) -> Shop {
    let (mut visits, mut places) = (
        String::from("person,place,amount\n"),
        String::from("place\n"),
    );
    for key in 0..KEYS {
        let _ = writeln!(places, "p{key}");
        if present {
            // All three are clamped to 5.
            for amount in [5, 7, 99] {
                let _ = writeln!(visits, "u{key},p{key},{amount}");
            }
        }
    }
    Shop::new(CATALOG, &[("visits.csv", &visits), ("places.csv", &places)])
}

fn numbers(answer: &Answer) -> Vec<f64> {
    answer
        .rows
        .iter()
        .map(|row| row[1].number().expect("a number"))
        .collect()
}

/// The measured epsilon and its 99.9% lower bound, for the event that the answer is at least `threshold`.
fn measure(aggregate: &str, threshold: f64, asked: Asked) -> (f64, f64, f64) {
    let sql = format!(
        "SELECT p.place, {aggregate} FROM places p LEFT JOIN visits v ON p.place = v.place GROUP BY p.place"
    );
    let mut counts = [0_u64; 2];
    let mut charge = 0.0;
    for (present, count) in [(true, 0), (false, 1)] {
        let shop = world(present);
        let plan = shop.plan(&sql, asked).expect("a plan");
        charge = price(plan.event(), Delta::ZERO)
            .expect("priced")
            .epsilon
            .value();
        let answer = shop.run(&plan, 11 + count as u64).expect("answered");
        assert_eq!(answer.rows.len(), KEYS as usize);
        counts[count] = numbers(&answer).iter().filter(|&&x| x >= threshold).count() as u64;
    }
    let n = u64::from(KEYS);
    let alpha = Alpha::new(0.0005).expect("a level");
    let low = clopper_pearson_lower(counts[0], n, alpha).expect("counts");
    let high = clopper_pearson_upper(counts[1], n, alpha).expect("counts");
    (
        (counts[0] as f64 / counts[1] as f64).ln(),
        (low / high).ln(),
        charge,
    )
}

fn tight(aggregate: &str, threshold: f64) {
    let (measured, lower, charge) = measure(aggregate, threshold, at(1.0));
    assert_eq!(charge, 1.0);
    assert!(
        (measured / charge - 1.0).abs() <= 0.07,
        "{aggregate}: {measured}"
    );
    assert!(lower <= charge, "{aggregate}: {lower}");
    // An answer with a tenth too little noise would be convicted.
    assert!(lower > charge / 1.1, "{aggregate}: {lower}");
}

#[test]
fn counts_cost_what_is_charged() {
    tight("COUNT(*)", 2.0);
}

#[test]
fn sums_cost_what_is_charged() {
    tight("SUM(amount)", 10.0);
}

#[test]
fn units_cost_what_is_charged() {
    tight("COUNT(DISTINCT v.person)", 1.0);
}

#[test]
fn means_cost_no_more_than_is_charged() {
    for threshold in [1.5, 3.0, 4.9] {
        let (_, lower, charge) = measure("AVG(amount)", threshold, at(1.0));
        assert!(lower <= charge && lower > 0.3, "{lower}");
    }
}

/// Keys of one unit each: a share of at most delta of them is shown, and hardly less.
#[test]
fn private_keys_are_shown_with_probability_delta() {
    let shop = world(true);
    let delta = 0.01;
    let answer = shop
        .ask(
            "SELECT place, COUNT(*) FROM visits GROUP BY place",
            with_delta(1.0, delta),
            13,
        )
        .expect("answered");
    let shown = answer.rows.len() as u64;
    let alpha = Alpha::new(0.001).expect("a level");
    assert!(
        clopper_pearson_lower(shown, u64::from(KEYS), alpha).expect("counts") <= delta,
        "{shown}"
    );
    assert!(
        clopper_pearson_upper(shown, u64::from(KEYS), alpha).expect("counts") >= delta,
        "{shown}"
    );
    let none = shop
        .ask(
            "SELECT place, COUNT(*) FROM visits GROUP BY place",
            with_delta(1.0, 1e-9),
            13,
        )
        .expect("answered");
    assert!(none.rows.is_empty());
}
