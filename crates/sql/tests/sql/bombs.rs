//! Statements that would eat memory, stack or time: small texts that grow while they are read, and terms that would end the
//! process for one person alone. Each is refused for what it says, before anything is paid or read.

use std::fmt::Write;

use crate::shop::{Shop, at, with_delta};
use whit_sql::{Asked, Cell};

const CATALOG: &str = r#"
    [dataset]
    id = "shop"
    [budget]
    epsilon = 10.0
    [defaults]
    groups_per_unit = 2
    rows_per_group = 3
    [table.users]
    source = "users.csv"
    unit = "user_id"
    [table.users.column]
    user_id = { type = "int" }
    age = { type = "int", range = [0, 120] }
    [table.cities]
    source = "cities.csv"
    public = true
"#;

fn shop() -> Shop {
    let cities = (0..100).fold(String::from("city,country\n"), |text, at| {
        text + &format!("c{at},NO\n")
    });
    Shop::new(
        CATALOG,
        &[
            (
                "users.csv",
                "user_id,age,city,note\n1,20,c1,a\n4242,30,c2,b\n",
            ),
            ("cities.csv", &cities),
        ],
    )
}

fn check(sql: &str, code: &str) {
    let found = shop().status(sql, with_delta(1.0, 1e-6));
    let start: String = sql.chars().take(200).collect();
    assert_eq!(found, code, "{start}");
}

/// A chain of common table expressions, each over the one before.
fn chain(levels: usize, step: &str, last: &str) -> String {
    let mut sql =
        String::from("WITH t0 AS (SELECT user_id, age, age AS x, age > 3 AS p FROM users)");
    for level in 1..=levels {
        let _ = write!(
            sql,
            ", t{level} AS (SELECT user_id, age, {step} FROM t{})",
            level - 1
        );
    }
    let _ = write!(sql, " {last} t{levels}");
    sql
}

/// Each level doubles the expression of the one before: sixty levels would be `2^60` terms.
#[test]
fn expressions_do_not_grow_without_end() {
    let last = "SELECT COUNT(*) FROM";
    check(&chain(60, "x + x AS x", "SELECT SUM(x) FROM"), "too_large");
    check(&chain(60, "x + x AS x", last), "too_large");
    check(&chain(60, "p IN (TRUE, FALSE) AS p", last), "too_large");
    check(&chain(60, "x BETWEEN x AND x AS p, x", last), "answered");
    check(
        &chain(60, "p IS TRUE AND p IS FALSE AS p", "SELECT COUNT(*) FROM"),
        "too_large",
    );
    check(
        &chain(
            60,
            "CASE p WHEN TRUE THEN TRUE WHEN FALSE THEN FALSE END AS p",
            last,
        ),
        "too_large",
    );
    let nested = (0..20).fold("p".to_owned(), |inner, _| {
        format!("({inner} IN (TRUE, FALSE, NULL))")
    });
    check(
        &format!("SELECT COUNT(*) FROM (SELECT age > 3 AS p FROM users) t WHERE {nested}"),
        "too_large",
    );
    check(&chain(8, "x + x AS x", "SELECT COUNT(x) FROM"), "answered");
}

/// Deep terms are walked by recursion for the rows that reach them: a stack that overflows ends the process, and a CASE would
/// choose for whom.
#[test]
fn no_term_is_too_deep_for_a_row() {
    let step = format!("x{} AS x", "+1".repeat(190));
    let last = "SELECT COUNT(CASE WHEN user_id = 4242 THEN x ELSE 0 END) FROM";
    check(&chain(35, &step, last), "too_deep");
    let step = format!("x{} AS x", " + 1".repeat(30));
    check(&chain(5, &step, last), "answered");
    // As deep as is allowed, for a row that walks all of it.
    let deep = format!(
        "SELECT COUNT(*) FROM users WHERE age{} > 7",
        " + 1".repeat(190)
    );
    check(&deep, "answered");
    check(
        &deep.replace("> 7", &format!("{} > 7", " + 1".repeat(20))),
        "too_deep",
    );
}

/// Each level joins the one before with itself.
#[test]
fn tables_do_not_multiply_without_end() {
    let mut sql = String::from("WITH t0 AS (SELECT city FROM cities)");
    for level in 1..30 {
        let before = level - 1;
        let _ = write!(
            sql,
            ", t{level} AS (SELECT a.city FROM t{before} a JOIN t{before} b ON a.city = b.city)"
        );
    }
    sql += " SELECT COUNT(*) FROM users JOIN t29 ON users.city = t29.city";
    check(&sql, "too_many_tables");
    let many = (0..40).fold(String::from("SELECT COUNT(*) FROM users u"), |sql, at| {
        sql + &format!(" JOIN cities c{at} ON u.city = c{at}.city")
    });
    check(&many, "too_many_tables");
}

/// A person whose row meets many public rows, and those many more: `100^4` rows for one.
#[test]
fn joins_multiply_a_row_by_a_bounded_number() {
    let joins = |copies: usize| {
        let start = String::from("SELECT COUNT(*) FROM users u JOIN cities c0 ON u.city = c0.city");
        (1..=copies).fold(start, |sql, at| {
            sql + &format!(" JOIN cities c{at} ON c0.country = c{at}.country")
        })
    };
    check(&joins(1), "answered");
    check(&joins(4), "join_fan_out");
    let first = "SELECT COUNT(*) FROM cities a JOIN cities b ON a.country = b.country JOIN cities c ON b.country = c.country \
                 JOIN cities d ON c.country = d.country JOIN users u ON u.city = d.city";
    check(first, "join_fan_out");
    // 64 alike and 64 of each: 4096, which is allowed; 65 is too many.
    for (alike, status) in [(64, "answered"), (65, "join_fan_out")] {
        let cities = (0..alike).fold(String::from("city,country\n"), |text, at| {
            text + &format!("c{at},NO\n")
        });
        let users = "user_id,age,city,note\n1,20,c1,a\n";
        let shop = Shop::new(CATALOG, &[("users.csv", users), ("cities.csv", &cities)]);
        assert_eq!(shop.status(&joins(2), at(1.0)), status, "{alike}");
    }
}

/// Joins may stand in any order: what is joined first is chosen so that nothing large is made on the way.
#[test]
fn joins_start_from_the_private_table() {
    let many = (0..2000).fold(String::from("city,country\n"), |text, at| {
        text + &format!("c{at},NO\n")
    });
    let users = "user_id,age,city,note\n1,20,c1,NO\n2,20,c2,NO\n3,20,c2,SE\n";
    let shop = Shop::new(CATALOG, &[("users.csv", users), ("cities.csv", &many)]);
    let asked = Asked {
        rows_per_group: Some(9),
        ..at(1000.0)
    };
    // The public tables alone would make four million rows.
    let sql = "SELECT COUNT(*) FROM cities a JOIN cities b ON a.country = b.country JOIN users u ON u.city = a.city AND u.city = b.city";
    assert_eq!(
        shop.ask(sql, asked, 1).expect("answered").rows,
        [[Cell::Int(3)]]
    );
    let nested = "SELECT COUNT(*) FROM users u JOIN (cities a JOIN cities b ON a.country = b.country AND a.city = b.city) ON u.city = b.city WHERE a.country = u.note";
    assert_eq!(
        shop.ask(nested, asked, 1).expect("answered").rows,
        [[Cell::Int(2)]]
    );
}

/// Brackets are counted before anything that walks them.
#[test]
fn nesting_is_refused_and_does_not_end_the_process() {
    for (open, close) in [
        ("(", ")"),
        ("NOT (", ")"),
        ("-(", ")"),
        ("CASE WHEN TRUE THEN ", " END"),
    ] {
        let nested = format!("{}age > 1{}", open.repeat(300), close.repeat(300));
        check(
            &format!("SELECT COUNT(*) FROM users WHERE {nested}"),
            "too_nested",
        );
    }
    let nested = format!("{}users{}", "(".repeat(7000), ")".repeat(7000));
    check(&format!("SELECT COUNT(*) FROM {nested}"), "too_nested");
    let nested = format!(
        "{}SELECT COUNT(*) FROM users{}",
        "(".repeat(7000),
        ")".repeat(7000)
    );
    check(&nested, "too_nested");
    let nots = format!(
        "SELECT COUNT(*) FROM users WHERE {} age > 1",
        "NOT ".repeat(3000)
    );
    assert_ne!(shop().status(&nots, at(1.0)), "answered");
    let minus = format!(
        "SELECT COUNT(*) FROM users WHERE {} age > 1",
        "- ".repeat(3000)
    );
    assert_ne!(shop().status(&minus, at(1.0)), "answered");
}

/// Many keys times many aggregates is more than fits, whatever the data.
#[test]
fn answers_are_of_bounded_size() {
    let catalog = CATALOG.replace(
        "[table.cities]",
        "a = { type = \"int\", values = [0,1,2,3,4,5,6,7,8,9] }\n[table.cities]",
    );
    let shop = Shop::new(
        &catalog,
        &[
            ("users.csv", "user_id,age,a\n1,2,3\n"),
            ("cities.csv", "city\nc\n"),
        ],
    );
    let aliased = (0..6)
        .map(|at| format!("a AS a{at}"))
        .collect::<Vec<_>>()
        .join(", ");
    let names = (0..6)
        .map(|at| format!("a{at}"))
        .collect::<Vec<_>>()
        .join(", ");
    let sums = (0..30)
        .map(|at| format!("COUNT(age + {at})"))
        .collect::<Vec<_>>()
        .join(", ");
    let sql = format!(
        "SELECT {names}, {sums} FROM (SELECT age, {aliased} FROM users) t GROUP BY {names}"
    );
    assert_eq!(
        shop.status(
            &sql,
            Asked {
                groups_per_unit: Some(1),
                ..at(1.0)
            }
        ),
        "too_many_numbers"
    );
    let one = shop
        .ask("SELECT a, COUNT(*) FROM users GROUP BY a", at(1000.0), 1)
        .expect("answered");
    assert_eq!(one.rows[3], [Cell::Int(3), Cell::Int(1)]);
}

/// What is computed for each row stays small: a hundred keys made of one long text would be a hundred times that text.
#[test]
fn a_row_is_not_blown_up() {
    let many = |count: usize| {
        let keys = (0..count)
            .map(|at| format!("COALESCE(note, '{at}')"))
            .collect::<Vec<_>>();
        format!("SELECT COUNT(*) FROM users GROUP BY {}", keys.join(", "))
    };
    check(&many(32), "answered");
    check(&many(33), "too_many_columns");
    let sums = |count: usize| {
        let sums = (0..count)
            .map(|at| format!("COUNT(age + {at})"))
            .collect::<Vec<_>>();
        format!("SELECT {} FROM users", sums.join(", "))
    };
    check(&sums(32), "answered");
    check(&sums(33), "too_many_columns");
    let mut users = String::from("user_id,age,city,note\n");
    for user in 0..300 {
        users += &format!("{user},1,c1,\"{}{user}\"\n", "long ".repeat(1000));
    }
    let shop = Shop::new(
        CATALOG,
        &[("users.csv", &users), ("cities.csv", "city,country\n")],
    );
    let answer = shop
        .ask(
            "SELECT note, city, COUNT(*) FROM users GROUP BY note, city",
            with_delta(4.0, 1e-6),
            1,
        )
        .expect("answered");
    assert_eq!(answer.rows.len(), 1, "two texts share the room of one");
    assert!(matches!(&answer.rows[0][0], Cell::Text(text) if text.len() == 2048));
}
