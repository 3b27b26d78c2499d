//! How often intervals hold the value without noise.

use whit_audit::{Alpha, clopper_pearson_lower, clopper_pearson_upper};
use whit_sql::Asked;

use crate::shop::{Shop, at};

const KEYS: u64 = 4000;

/// Many public keys, with a unit for each of their rows.
fn keys() -> Shop {
    let mut rows = String::from("unit,key\n");
    let mut list = String::from("name\n");
    for key in 0..KEYS {
        list += &format!("k{key}\n");
        for unit in 0..key % 3 {
            rows += &format!("u{key}-{unit},k{key}\n");
        }
    }
    let catalog = "[dataset]\nid = \"d\"\n[budget]\nepsilon = 1.0\n\
        [table.rows]\nsource = \"rows.csv\"\nunit = \"unit\"\n\
        [table.keys]\nsource = \"keys.csv\"\npublic = true\n";
    Shop::new(catalog, &[("rows.csv", &rows), ("keys.csv", &list)])
}

/// An interval of what is computed from a count holds as often as the confidence says, and hardly more often.
#[test]
fn derived_intervals_hold_as_often_as_they_say() {
    let shop = keys();
    let asked = Asked {
        groups_per_unit: Some(1),
        rows_per_group: Some(1),
        ..at(0.05)
    };
    for (column, slope, offset, seed) in [
        ("COUNT(*) * 2 + 1", 2, 1, 811),
        ("7 - COUNT(*)", -1, 7, 812),
    ] {
        // Keys come in the order of their names, which are read back.
        let sql = format!(
            "SELECT k.name, {column} FROM keys k LEFT JOIN rows r ON k.name = r.key GROUP BY k.name"
        );
        let answer = shop.ask(&sql, asked, seed).expect("answered");
        assert_eq!(answer.rows.len() as u64, KEYS);
        // With ends that are moved to the middle, by so much of the whole.
        let held = |shrunk: f64| {
            let rows = answer.rows.iter().zip(&answer.intervals);
            let held = rows.filter(|(row, intervals)| {
                let whit_sql::Cell::Text(name) = &row[0] else {
                    panic!("a name")
                };
                let key: i64 = name[1..].parse().expect("a number");
                let value = (slope * (key % 3) + offset) as f64;
                let [low, high] = intervals[1].expect("an interval");
                let by = shrunk * (high - low);
                (low + by..=high - by).contains(&value)
            });
            held.count() as u64
        };
        let alpha = Alpha::new(1e-6).expect("a level");
        let upper = |held| clopper_pearson_upper(held, KEYS, alpha).expect("counts");
        let lower = |held| clopper_pearson_lower(held, KEYS, alpha).expect("counts");
        assert!(upper(held(0.0)) >= 0.95, "{column}: {}", held(0.0));
        assert!(lower(held(0.0)) <= 0.955, "{column}: {}", held(0.0));
        // Teeth: intervals of two thirds of the width are convicted.
        assert!(upper(held(1.0 / 6.0)) < 0.95, "{column}");
    }
}
