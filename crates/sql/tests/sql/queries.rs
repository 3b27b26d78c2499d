//! What statements mean, seen with so large an epsilon that noise is almost always zero; and what they cost with a small one.

use crate::shop::{Shop, at, with_delta};
use whit_accounting::price;
use whit_mechanism::PartitionSelection;
use whit_sql::{Answer, Asked, Cell, Value};

const CATALOG: &str = r#"
    [dataset]
    id = "shop"
    [budget]
    epsilon = 10.0
    [table.orders]
    source = "orders.csv"
    unit = "user"
    [table.orders.column]
    plan = { values = ["free", "pro", "team"] }
    paid = { values = [true, false] }
    Amount = { type = "decimal(10,2)", range = [0, 100] }
    items = { type = "int", range = [-5, 5] }
    [table.countries]
    source = "countries.csv"
    public = true
"#;

const ORDERS: &str = "user,plan,paid,Amount,items,country\n\
    a,free,true,10.50,1,NO\n\
    a,pro,true,20.25,2,NO\n\
    b,pro,false,500,-9,IT\n\
    b,pro,true,,3,IT\n\
    c,gold,true,1,1,IT\n\
    d,free,maybe,2,2,XX\n\
    ,pro,true,99,5,NO\n";

fn orders() -> Shop {
    Shop::new(
        CATALOG,
        &[
            ("orders.csv", ORDERS),
            (
                "countries.csv",
                "code,name\nNO,Norway\nIT,Italy\nFR,France\n",
            ),
        ],
    )
}

fn sure() -> Asked {
    Asked {
        groups_per_unit: Some(10),
        rows_per_group: Some(10),
        ..at(1000.0)
    }
}

fn show(answer: &Answer) -> Vec<String> {
    let cell = |value: &Value| match value {
        Cell::Null => "NULL".to_owned(),
        Cell::Bool(b) => b.to_string(),
        Cell::Int(i) => i.to_string(),
        Cell::Real(x) => format!("{x:.2}"),
        Cell::Text(t) => t.to_string(),
    };
    answer
        .rows
        .iter()
        .map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" "))
        .collect()
}

fn check(sql: &str, expected: &[&str]) {
    let answer = orders().ask(sql, sure(), 1).expect(sql);
    assert_eq!(show(&answer), expected, "{sql}");
}

#[test]
fn aggregates_are_those_of_the_capped_and_clamped_rows() {
    check(
        "SELECT COUNT(*), COUNT(Amount), COUNT(DISTINCT orders.user) FROM orders",
        &["6 5 4"],
    );
    check("SELECT SUM(items) FROM orders", &["4"]);
    check("SELECT AVG(items) FROM orders WHERE items > 0", &["1.80"]);
    check(
        "SELECT SUM(items * 2 + 1) FROM orders WHERE plan IN ('free', 'gold')",
        &["11"],
    );
    check(
        "SELECT SUM(CASE WHEN plan = 'pro' THEN 1 ELSE 0 END) FROM orders",
        &["3"],
    );
    check(
        "SELECT COUNT(*) FILTER (WHERE paid) AS paid, SUM(items) FILTER (WHERE paid IS NULL) FROM orders",
        &["4 2"],
    );
    check(
        "SELECT COUNT(*) FROM orders WHERE Amount BETWEEN 10.5 AND 20.25",
        &["2"],
    );
    check(
        "SELECT COUNT(*) FROM orders WHERE COALESCE(Amount, 0) = 0 OR NULLIF(plan, 'gold') IS NULL",
        &["2"],
    );
}

/// 500 is clamped to 100, an absent amount adds nothing; noise of scale 1 is left.
#[test]
fn sums_of_decimals_are_clamped() {
    let sql = "SELECT SUM(Amount) FROM orders WHERE plan = 'pro'";
    let answer = orders().ask(sql, sure(), 1).expect("answered");
    let sum = answer.rows[0][0].number().expect("a number");
    assert!((sum - 120.25).abs() < 15.0, "{sum}");
}

#[test]
fn public_keys_all_appear_and_others_do_not() {
    check(
        "SELECT plan, COUNT(*) AS n FROM orders GROUP BY plan",
        &["free 2", "pro 3", "team 0"],
    );
    check(
        "SELECT plan, paid, COUNT(*) FROM orders GROUP BY plan, paid",
        &[
            "free true 1",
            "free false 0",
            "pro true 2",
            "pro false 1",
            "team true 0",
            "team false 0",
        ],
    );
    check(
        "SELECT c.name, COUNT(*) AS n FROM countries c LEFT JOIN orders o ON c.code = o.country GROUP BY c.name ORDER BY n DESC, c.name",
        &["Italy 3", "Norway 2", "France 0"],
    );
    check(
        "SELECT c.name, COUNT(*) AS n FROM orders o RIGHT JOIN countries c ON c.code = o.country GROUP BY c.name ORDER BY c.name",
        &["France 0", "Italy 3", "Norway 2"],
    );
    check(
        "SELECT plan, COUNT(*) FROM orders o JOIN countries c ON o.country = c.code WHERE c.name <> 'Italy' GROUP BY plan",
        &["free 1", "pro 1", "team 0"],
    );
    check(
        "SELECT p, COUNT(*) FROM (SELECT plan AS p, items FROM orders WHERE items > 0) t GROUP BY p",
        &["free 2", "pro 2", "team 0"],
    );
    check(
        "WITH t AS (SELECT plan AS p FROM orders) SELECT p, COUNT(*) FROM t GROUP BY p",
        &["free 2", "pro 3", "team 0"],
    );
}

#[test]
fn what_follows_the_noise_sees_noisy_values() {
    check(
        "SELECT plan, COUNT(*) AS n FROM orders GROUP BY plan HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 1",
        &["pro 3"],
    );
    check(
        "SELECT plan FROM orders GROUP BY plan ORDER BY COUNT(*), plan OFFSET 1",
        &["free", "pro"],
    );
    check(
        "SELECT plan, 100 * COUNT(*) / 5 AS share, CASE WHEN COUNT(*) = 0 THEN 'none' ELSE 'some' END FROM orders GROUP BY plan",
        &["free 40 some", "pro 60 some", "team 0 none"],
    );
    check(
        "SELECT n FROM (SELECT plan, COUNT(*) AS n FROM orders GROUP BY plan) t WHERE n < 3 ORDER BY n",
        &["0", "2"],
    );
    check("SELECT SUM(items) / 0 FROM orders", &["NULL"]);
}

#[test]
fn columns_say_what_is_noisy_and_cells_have_intervals() {
    let sql = "SELECT plan, COUNT(*) AS n, COUNT(*) + 1 AS m, 7 AS c, AVG(Amount) AS a FROM orders GROUP BY plan";
    let answer = orders()
        .ask(
            sql,
            Asked {
                epsilon: Some(crate::shop::epsilon(1.0)),
                ..sure()
            },
            1,
        )
        .expect("answered");
    let noisy: Vec<bool> = answer.columns.iter().map(|column| column.noisy).collect();
    assert_eq!(noisy, [false, true, true, false, true]);
    for (row, intervals) in answer.rows.iter().zip(&answer.intervals) {
        let given: Vec<bool> = intervals.iter().map(Option::is_some).collect();
        assert_eq!(given, [false, true, true, false, true]);
        for (cell, interval) in row.iter().zip(intervals) {
            if let (Some(x), Some([low, high])) = (cell.number(), interval) {
                assert!(
                    *low <= x && x <= *high && low < high,
                    "{cell:?} {interval:?}"
                );
            }
        }
    }
}

/// The intervals of counts and sums hold the value without noise as often as they say.
#[test]
fn intervals_cover() {
    let shop = orders();
    let plan = shop
        .plan(
            "SELECT plan, COUNT(*), SUM(Amount), AVG(items) FROM orders GROUP BY plan",
            Asked {
                epsilon: Some(crate::shop::epsilon(3.0)),
                ..sure()
            },
        )
        .expect("a plan");
    let truth = [[2.0, 12.5, 1.5], [3.0, 120.25, 0.0]];
    let (mut covered, mut all) = (0, 0);
    for seed in 0..60 {
        let answer = shop.run(&plan, seed).expect("answered");
        for (intervals, truth) in answer.intervals.iter().zip(&truth) {
            for (interval, truth) in intervals[1..].iter().zip(truth) {
                let [low, high] = interval.expect("noisy");
                all += 1;
                covered += u32::from(low <= *truth && *truth <= high);
            }
        }
    }
    // At 95%, 342 of 360; four standard deviations below is 325.
    assert!(covered >= 325, "{covered} of {all}");
}

/// Whatever the statement, its price is within what was asked for.
#[test]
fn the_charge_is_within_the_statements_epsilon() {
    let shop = orders();
    let aggregates = [
        "COUNT(*)",
        "SUM(items)",
        "AVG(Amount)",
        "COUNT(Amount)",
        "COUNT(DISTINCT orders.user)",
        "SUM(Amount)",
        "SUM(items * items)",
    ];
    let check = |many: usize, keys: &str, (epsilon, delta): (f64, f64), groups: u32| {
        let list = aggregates[..many].join(", ");
        let sql = match keys {
            "" => format!("SELECT {list} FROM orders"),
            keys => format!("SELECT {keys}, {list} FROM orders GROUP BY {keys}"),
        };
        let asked = Asked {
            groups_per_unit: Some(groups),
            rows_per_group: Some(3),
            ..with_delta(epsilon, delta)
        };
        let plan = shop.plan(&sql, asked).expect(&sql);
        let delta = plan.request().delta();
        let price = price(plan.event(), delta).expect("priced");
        assert!(
            price.epsilon.value() <= epsilon && price.delta <= delta,
            "{sql}: {price:?}"
        );
        assert!(price.epsilon.value() > 0.2 * epsilon, "{sql}: {price:?}");
    };
    for (epsilon, groups) in [(0.1, 1), (1.0, 7), (3.3, 3)] {
        for many in 1..=aggregates.len() {
            check(many, "", (epsilon, 0.0), groups);
            check(many, "plan", (epsilon, 0.0), groups);
        }
    }
    for keys in ["", "plan", "country"] {
        check(1, keys, (1.0, 1e-6), 3);
        check(3, keys, (0.3, 1e-6), 1);
    }
}

#[test]
fn bounds_that_nobody_gave_are_asked_for() {
    let shop = orders();
    assert_eq!(
        shop.status("SELECT COUNT(*) FROM orders", at(1.0)),
        "contribution_missing"
    );
    let rows = Asked {
        rows_per_group: Some(1),
        ..at(1.0)
    };
    assert_eq!(shop.status("SELECT COUNT(*) FROM orders", rows), "answered");
    assert_eq!(
        shop.status("SELECT plan, COUNT(*) FROM orders GROUP BY plan", rows),
        "contribution_missing"
    );
    assert_eq!(
        shop.status("SELECT COUNT(DISTINCT orders.user) FROM orders", at(1.0)),
        "answered"
    );
    assert_eq!(
        shop.status("SELECT SUM(items / Amount) FROM orders", sure()),
        "unbounded"
    );
    assert_eq!(
        shop.status("SELECT COUNT(DISTINCT plan) FROM orders", sure()),
        "count_distinct"
    );
}

#[test]
fn a_plan_explains_itself_without_reading_a_row() {
    let shop = orders();
    let confidence = whit_core::Confidence::new(0.95).expect("a confidence");
    let asked = Asked {
        groups_per_unit: Some(2),
        rows_per_group: Some(3),
        ..at(1.0)
    };
    let plan = shop
        .plan(
            "SELECT plan, COUNT(*), SUM(items) FROM orders GROUP BY plan",
            asked,
        )
        .expect("a plan");
    let explained = plan.explain(confidence);
    assert_eq!((explained.keys, explained.groups), ("public", Some(3)));
    assert_eq!(
        (explained.groups_per_unit, explained.rows_per_group),
        (2, 3)
    );
    // Half of epsilon each; six rows of one, and of up to five.
    let scales: Vec<f64> = explained.noise.iter().map(|noise| noise.scale).collect();
    assert_eq!(scales, [12.0, 60.0]);
    let names: Vec<&str> = explained
        .noise
        .iter()
        .map(|noise| noise.aggregate.as_str())
        .collect();
    assert_eq!(names[0], "count(*)");
    let outer = "SELECT c.name, COUNT(*) FROM countries c LEFT JOIN orders o ON c.code = o.country GROUP BY c.name";
    let notes = shop
        .plan(outer, asked)
        .expect("a plan")
        .explain(confidence)
        .notes;
    assert!(
        notes.iter().any(|note| note.contains("outer join")),
        "{notes:?}"
    );
    let inner = explained.notes;
    assert!(
        inner.iter().all(|note| !note.contains("outer join")),
        "{inner:?}"
    );
}

/// The threshold that is told is that of the selection that will run: each gets a part of epsilon and delta.
#[test]
fn thresholds_are_those_of_the_selection() {
    let shop = orders();
    let confidence = whit_core::Confidence::new(0.95).expect("a confidence");
    let sql = "SELECT country, COUNT(*) FROM orders GROUP BY country";
    for delta in [1e-6, 1e-18, 1e-250] {
        let asked = Asked {
            groups_per_unit: Some(2),
            rows_per_group: Some(1),
            ..with_delta(2.0, delta)
        };
        let plan = shop.plan(sql, asked).expect("a plan");
        let found = plan.explain(confidence).threshold.expect("private keys");
        let epsilon = whit_core::Epsilon::new(0.5).expect("an epsilon");
        let each = f64::from_bits((delta / 2.0).to_bits() >> 29 << 29);
        let each = whit_core::Delta::new(each).expect("a delta");
        let selection =
            PartitionSelection::<whit_core::AddRemove>::new(epsilon, each, 2).expect("in range");
        assert_eq!(
            (found.units_half, found.units_always),
            (selection.units_half(), selection.units_always())
        );
    }
}

#[test]
fn an_answer_is_json() {
    let sql = "SELECT plan, COUNT(*) AS n FROM orders GROUP BY plan HAVING COUNT(*) > 2";
    let answer = orders().ask(sql, sure(), 1).expect("answered");
    let json = serde_json::to_string(&answer).expect("plain data");
    assert_eq!(
        json,
        r#"{"columns":[{"name":"plan","type":"text","noisy":false},{"name":"n","type":"int","noisy":true}],"rows":[["pro",3]],"intervals":[[null,[3.0,3.0]]]}"#
    );
}

#[test]
fn the_same_statement_in_other_words_has_the_same_fingerprint() {
    let shop = orders();
    let print = |sql: &str, asked: Asked| shop.plan(sql, asked).expect(sql).fingerprint();
    let one = print(
        "SELECT plan, COUNT(*) AS n FROM orders WHERE items > 1 GROUP BY plan",
        sure(),
    );
    assert_eq!(
        one,
        print(
            "select o.plan, count(*) as n\nfrom orders as o where (o.items > 1) group by 1",
            sure()
        )
    );
    assert_ne!(
        one,
        print(
            "SELECT plan, COUNT(*) AS n FROM orders WHERE items > 2 GROUP BY plan",
            sure()
        )
    );
    assert_ne!(
        one,
        print(
            "SELECT plan, COUNT(*) AS n FROM orders WHERE items > 1 GROUP BY plan",
            Asked {
                rows_per_group: Some(9),
                ..sure()
            }
        )
    );
}
