//! The attacks of one analyst on one person, seen before the noise: with the same hash key, the sums with and without the
//! victim are no further apart than the noise is made for. (That status, shape and charge are the same is tested from outside.)

use super::tests::{Shop, plan, sums_of, within};
use super::*;
use crate::catalog::Catalog;

const CATALOG: &str = r#"
    [dataset]
    id = "shop"
    [budget]
    epsilon = 10.0
    [table.users]
    source = "users.csv"
    unit = "user_id"
    [table.users.column]
    user_id = { type = "int" }
    age = { type = "int", range = [0, 120] }
    income = { range = [0, 1000] }
    city = { values = ["Oslo", "Rome"] }
    [table.crowd]
    source = "crowd.csv"
    public = true
"#;

/// Everybody, or everybody but the victim, whose cells are as hostile as cells can be.
fn world(victim: bool) -> Shop {
    let mut users = String::from("user_id,age,income,city,note\n");
    for user in 0..20 {
        let city = ["Oslo", "Rome"][user % 2];
        users += &format!("{user},{},{},{city},n{user}\n", user + 20, user * 50);
    }
    if victim {
        let long = "99999999999999999999(".repeat(500);
        users += &format!("4242,-9223372036854775808,NaN,Rome,\"{long}\"\n");
        users += "4242,9223372036854775807,-inf,Atlantis,\"'; DROP TABLE users\"\n";
        users += "+4242,zero,1e999,,\n04242\n4242,0,-0,Oslo,0,more,cells,than,columns\n";
        users += &"4242,120,1000,Rome,again\n".repeat(50);
        users += &"4242,120,inf,Oslo,again\n".repeat(50);
    }
    // Last, so that rows behind the victim's are there in both worlds.
    users += "777,33,33,Oslo,last\n";
    let directory = tempfile::tempdir().expect("a directory");
    let crowd = format!("city\nOslo\n{}", "Rome\n".repeat(1000));
    #[expect(clippy::disallowed_methods, reason = "files of the test's own")]
    for (name, text) in [("users.csv", &users), ("crowd.csv", &crowd)] {
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    let catalog = Catalog::parse(CATALOG).expect("a catalog");
    let tables = Tables::open(&catalog, directory.path()).expect("tables");
    Shop {
        catalog,
        tables,
        _directory: directory,
    }
}

/// Gives how many aggregates moved as far as they may.
fn check(sql: &str) -> u32 {
    let (with, without) = (world(true), world(false));
    let mut reached = 0;
    for (groups, rows) in [(1, 1), (2, 3)] {
        let (one, other) = (
            plan(&with, sql, groups, rows),
            plan(&without, sql, groups, rows),
        );
        assert_eq!(
            one.event().fingerprint(),
            other.event().fingerprint(),
            "{sql}"
        );
        let sums = (sums_of(&with, &one, 7), sums_of(&without, &other, 7));
        reached += within(&one, &sums.0, &sums.1, sql);
    }
    reached
}

#[test]
fn attacks_1_and_2_move_no_sum_further_than_it_may() {
    check("SELECT COUNT(*) FROM users WHERE 1/(user_id-4242) >= 0 OR TRUE");
    check("SELECT SUM(age % 7), COUNT(*) FROM users WHERE income / (user_id - 4242) IS NULL");
    check("SELECT COUNT(*) FROM users WHERE CAST(note AS BIGINT) > 0 OR note IS NULL");
    check(
        "SELECT SUM(CASE WHEN user_id = 4242 THEN 9223372036854775807 + 1 ELSE 1 END) FROM users",
    );
    check("SELECT SUM(-age), SUM(age * age * age), AVG(0 - income) FROM users WHERE -user_id < 0");
}

#[test]
fn attack_3_a_thousandfold_join_counts_as_its_caps_say() {
    let joined = "FROM users u JOIN crowd c ON u.city = c.city";
    assert!(check(&format!("SELECT COUNT(*), SUM(age), AVG(income) {joined}")) > 0);
    assert!(
        check(&format!(
            "SELECT u.city, COUNT(*), SUM(income) {joined} GROUP BY u.city"
        )) > 0
    );
    check(&format!(
        "SELECT note, COUNT(*), COUNT(DISTINCT user_id) {joined} GROUP BY note"
    ));
}

#[test]
fn attack_13_odd_values_and_keys_move_no_sum_further_than_it_may() {
    let all = "COUNT(*), COUNT(income), SUM(income), AVG(income), SUM(age), AVG(age), COUNT(DISTINCT user_id)";
    assert!(check(&format!("SELECT {all} FROM users")) > 0);
    for key in [
        "city",
        "income",
        "age",
        "note",
        "income / 0",
        "CAST(note AS DOUBLE)",
        "CASE WHEN income > 5 THEN NULL ELSE income END",
    ] {
        check(&format!("SELECT {key}, {all} FROM users GROUP BY {key}"));
    }
    check(
        "SELECT city, SUM(income - income), SUM(0 * income), SUM(income + 1) FROM users GROUP BY city",
    );
}
