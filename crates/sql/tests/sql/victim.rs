//! Two worlds that differ in one person, and what must be the same in both.

use crate::shop::{Shop, at, with_delta};
use whit_sql::{Answer, Cell, Value};

pub(crate) const CATALOG: &str = r#"
    [dataset]
    id = "shop"
    [budget]
    epsilon = 10.0
    delta = 1e-6
    [defaults]
    groups_per_unit = 2
    rows_per_group = 3
    [table.users]
    source = "users.csv"
    unit = "user_id"
    [table.users.column]
    user_id = { type = "int" }
    age = { type = "int", range = [0, 120] }
    income = { range = [0, 1000] }
    city = { values = ["Oslo", "Rome"] }
    [table.cities]
    source = "cities.csv"
    public = true
    [table.crowd]
    source = "crowd.csv"
    public = true
"#;

/// Everybody, or everybody but the victim, whose cells are as hostile as cells can be.
pub(crate) fn world(victim: bool) -> Shop {
    let mut users = String::from("user_id,age,income,city,note\n");
    for user in 0..50 {
        users += &format!(
            "{user},{},{},{},n{user}\n",
            user + 20,
            user * 10,
            ["Oslo", "Rome"][user % 2]
        );
    }
    if victim {
        users += &format!(
            "4242,-9223372036854775808,NaN,Rome,\"{}\"\n",
            "99999999999999999999(".repeat(500)
        );
        users += "4242,9223372036854775807,-inf,Atlantis,\"'; DROP TABLE users\"\n";
        users += "4242,zero,1e999,,\n4242\n4242,0,-0,Oslo,0,more,cells,than,columns\n";
    }
    let cities = "city,country\nOslo,NO\nRome,IT\nParis,FR\n";
    let crowd = format!("city\nOslo\nRome\n{}", "Atlantis\n".repeat(1000));
    Shop::new(
        CATALOG,
        &[
            ("users.csv", &users),
            ("cities.csv", cities),
            ("crowd.csv", &crowd),
        ],
    )
}

/// For each row, what kind of cell stands where, and where there are intervals.
fn shape(answer: &Answer) -> Vec<Vec<(&'static str, bool)>> {
    let kind = |cell: &Value| match cell {
        Cell::Null => "null",
        Cell::Bool(_) => "bool",
        Cell::Int(_) => "int",
        Cell::Real(_) => "float",
        Cell::Text(_) => "text",
    };
    let rows = answer.rows.iter().zip(&answer.intervals);
    rows.map(|(cells, intervals)| {
        let cells = cells.iter().zip(intervals);
        cells
            .map(|(cell, interval)| (kind(cell), interval.is_some()))
            .collect()
    })
    .collect()
}

/// The same code with and without the victim; if answered, the same columns, shape and event, and so the same charge.
pub(crate) fn check(sql: &str, code: &str) {
    let (with, without) = (world(true), world(false));
    for asked in [at(1.0), with_delta(1.0, 1e-6)] {
        assert_eq!(with.status(sql, asked), code, "{sql}");
        assert_eq!(without.status(sql, asked), code, "{sql}");
        let (Ok(one), Ok(other)) = (with.plan(sql, asked), without.plan(sql, asked)) else {
            let text = |shop: &Shop| shop.plan(sql, asked).expect_err("refused").to_string();
            assert_eq!(text(&with), text(&without), "{sql}");
            continue;
        };
        assert_eq!(
            one.event().fingerprint(),
            other.event().fingerprint(),
            "{sql}"
        );
        let (one, other) = (
            with.run(&one, 7).expect(sql),
            without.run(&other, 7).expect(sql),
        );
        assert_eq!(one.columns, other.columns, "{sql}");
        assert_eq!(shape(&one), shape(&other), "{sql}");
    }
}
