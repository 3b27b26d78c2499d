//! Attacks on one person, with and without that person in the data: status, shape and charge must be the same.

use crate::shop::{Shop, at, epsilon, with_delta};
use crate::victim::{CATALOG, check, world};
use whit_core::{Delta, Epsilon, Fault};
use whit_sql::{Asked, Catalog, Cell, Request, Tables};

#[test]
fn attack_1_division_by_zero_is_null() {
    check(
        "SELECT COUNT(*) FROM users WHERE 1/(user_id-4242) >= 0 OR TRUE",
        "answered",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE user_id <> 4242 AND 1/(user_id-4242) > 0",
        "answered",
    );
    check("SELECT SUM(age / (user_id - 4242)) FROM users", "unbounded");
    check(
        "SELECT SUM(age % 7) FROM users WHERE income / (user_id - 4242) > 1",
        "answered",
    );
}

#[test]
fn attack_2_casts_and_overflow_fail_for_nobody() {
    check(
        "SELECT COUNT(*) FROM users WHERE CAST(note AS BIGINT) > 0",
        "answered",
    );
    check(
        "SELECT SUM(CASE WHEN user_id = 4242 THEN 9223372036854775807 + 1 ELSE 1 END) FROM users",
        "answered",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE age * age * age * age * age * age * age * age * age * age > 5",
        "answered",
    );
    check("SELECT SUM(-age) FROM users WHERE -user_id < 0", "answered");
    check(
        "SELECT AVG(CASE WHEN user_id = 4242 THEN CAST(note AS DOUBLE) ELSE 0 END) FROM users",
        "unbounded",
    );
    for call in [
        "exp(1e9)",
        "sqrt(-1)",
        "ln(0)",
        "abs(age)",
        "power(age, 1000)",
    ] {
        check(
            &format!(
                "SELECT COUNT(*) FROM users WHERE CASE WHEN user_id = 4242 THEN {call} ELSE 0 END > 0"
            ),
            "function_not_allowed",
        );
    }
}

/// Each of the victim's rows meets a thousand public rows; those of others one.
#[test]
fn attack_3_a_public_table_multiplies_one_person() {
    check(
        "SELECT COUNT(*), SUM(age) FROM users u JOIN crowd c ON u.city = c.city",
        "answered",
    );
    check(
        "SELECT u.city, COUNT(*) FROM users u JOIN crowd c ON u.city = c.city GROUP BY u.city",
        "answered",
    );
    check(
        "SELECT COUNT(*) FROM users u JOIN crowd c ON u.city = c.city JOIN crowd d ON c.city = d.city",
        "join_fan_out",
    );
}

#[test]
fn attack_4_the_unit_is_no_key() {
    check(
        "SELECT user_id, COUNT(*) FROM users GROUP BY user_id",
        "group_by_unit",
    );
    check(
        "SELECT user_id / 1, COUNT(*) FROM users GROUP BY user_id / 1",
        "group_by_unit",
    );
    check(
        "SELECT CAST(user_id AS VARCHAR), COUNT(*) FROM users GROUP BY CAST(user_id AS VARCHAR)",
        "group_by_unit",
    );
    check(
        "SELECT x, COUNT(*) FROM (SELECT user_id + 1 AS x FROM users) t GROUP BY x",
        "group_by_unit",
    );
    check(
        "SELECT md5(user_id), COUNT(*) FROM users GROUP BY md5(user_id)",
        "function_not_allowed",
    );
    check(
        "SELECT user_id = 4242, COUNT(*) FROM users GROUP BY user_id = 4242",
        "group_by_unit",
    );
}

#[test]
fn attack_5_raw_rows_are_neither_shown_nor_limited() {
    check(
        "SELECT AVG(age) FROM (SELECT age FROM users ORDER BY age LIMIT 1) t",
        "limit_before_aggregate",
    );
    check(
        "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM users) t",
        "distinct",
    );
    check("SELECT * FROM users", "raw_rows");
    check("SELECT age FROM users WHERE user_id = 4242", "raw_rows");
    check("SELECT age FROM users ORDER BY age LIMIT 1", "raw_rows");
    check(
        "SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM users GROUP BY city) t",
        "nested_aggregate",
    );
    check(
        "SELECT ROW_NUMBER() OVER (ORDER BY age) FROM users",
        "window_function",
    );
}

#[test]
fn attack_6_no_subquery_asks_about_one_person() {
    let sub = "subquery_in_expression";
    check(
        "SELECT COUNT(*) FROM cities WHERE EXISTS (SELECT 1 FROM users WHERE user_id = 4242)",
        sub,
    );
    check(
        "SELECT COUNT(*) FROM cities WHERE (SELECT COUNT(*) FROM users WHERE user_id = 4242) > 0",
        sub,
    );
    check(
        "SELECT COUNT(*) FROM users WHERE age IN (SELECT age FROM users WHERE user_id = 4242)",
        sub,
    );
    check("SELECT COUNT(*) FROM cities", "no_private_table");
    check(
        "SELECT COUNT(*) FROM users a JOIN users b ON a.city = b.city",
        "two_private_tables",
    );
    check(
        "SELECT COUNT(*) FROM users LEFT JOIN cities ON users.city = cities.city",
        "outer_join",
    );
    check(
        "SELECT COUNT(*) FROM users, cities WHERE users.city = cities.city",
        "join_condition",
    );
    check(
        "SELECT COUNT(*) FROM users JOIN cities ON users.city < cities.city",
        "join_condition",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE age > 3 UNION ALL SELECT COUNT(*) FROM users",
        "node_not_allowed",
    );
}

#[test]
fn attack_7_functions_that_throw_or_explode_do_not_exist() {
    for call in [
        "repeat(note, 2000000000)",
        "lpad(note, 2000000000)",
        "split_part(note, 'x', 0)",
        "chr(-1)",
        "decode(note, 'hex')",
        "to_timestamp(note)",
        "regexp_replace(note, note, '')",
        "upper(note)",
        "now()",
    ] {
        check(
            &format!("SELECT COUNT(*) FROM users WHERE {call} IS NOT NULL"),
            "function_not_allowed",
        );
    }
    check(
        "SELECT COUNT(*) FROM users WHERE substr(note, -1) = 'x'",
        "not_supported",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE note LIKE note",
        "expression_not_allowed",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE note || note = 'x'",
        "operator_not_allowed",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE note ~ note",
        "operator_not_allowed",
    );
    check(
        "SELECT COUNT(*) FROM users WHERE CAST(note AS DATE) IS NULL",
        "cast_not_allowed",
    );
    let long = format!(
        "SELECT COUNT(*) FROM users WHERE {}",
        vec!["age > 1"; 1000].join(" OR ")
    );
    check(&long, "too_deep");
    check(
        &format!("SELECT COUNT(*) FROM users WHERE {}", "age".repeat(20_000)),
        "too_long",
    );
}

#[test]
fn attack_8_parameters_out_of_range_are_rejected_before_any_charge() {
    check(
        "SELECT city, COUNT(*) FROM users GROUP BY city LIMIT -1",
        "bad_limit",
    );
    check(
        "SELECT city, COUNT(*) FROM users GROUP BY city OFFSET -5",
        "bad_limit",
    );
    check(
        "SELECT city, COUNT(*) FROM users GROUP BY city LIMIT 99999999999999999999",
        "bad_limit",
    );
    check(
        "SELECT city, COUNT(*) FROM users GROUP BY city LIMIT 9223372036854775807 OFFSET 9223372036854775807",
        "answered",
    );
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Epsilon::new(value).is_err());
    }
    assert!(Delta::new(1.0).is_err());
    let shop = world(true);
    for asked in [
        at(0.0),
        at(1e20),
        Asked {
            groups_per_unit: Some(0),
            ..at(1.0)
        },
        Asked {
            rows_per_group: Some(0),
            ..at(1.0)
        },
        Asked {
            groups_per_unit: Some(u32::MAX),
            ..at(1.0)
        },
    ] {
        let error = Request::new(asked, &shop.catalog).expect_err("out of range");
        assert_eq!(error.code(), "out_of_domain");
    }
    assert_eq!(
        Request::new(Asked::default(), &shop.catalog)
            .expect_err("no epsilon")
            .code(),
        "epsilon_missing"
    );
    assert!(
        Request::new(
            Asked {
                epsilon: Some(epsilon(1.0)),
                ..Asked::default()
            },
            &shop.catalog
        )
        .is_ok()
    );
}

#[test]
fn attack_12_nothing_but_queries_over_declared_tables() {
    let query = "SELECT COUNT(*) FROM users";
    for statement in [
        format!("EXPLAIN ANALYZE {query}"),
        format!("EXPLAIN {query}"),
        "SHOW TABLES".into(),
        "DESCRIBE users".into(),
        "SET a.b = 1".into(),
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'other.csv'".into(),
        format!("CREATE TABLE t AS {query}"),
        "DROP TABLE users".into(),
        "COPY users TO 'copy.csv'".into(),
        "INSERT INTO users VALUES (1)".into(),
        "DELETE FROM users".into(),
        "RESET ALL".into(),
    ] {
        check(&statement, "statement_not_allowed");
    }
    check(
        "SELECT COUNT(*) FROM information_schema.tables",
        "unknown_table",
    );
    check("SELECT COUNT(*) FROM 'users.csv'", "unknown_table");
    check("SELECT COUNT(*) FROM public.users", "unknown_table");
    check(
        "SELECT COUNT(*) FROM generate_series(1, 100000000000)",
        "clause_not_allowed",
    );
    check(&format!("{query}; {query}"), "sql_syntax");
    check(
        "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT COUNT(*) FROM r",
        "not_supported",
    );
    check("SELECT COUNT(*) FROM users WHERE agee > 1", "sql_binding");
    check("SELECT SUM(city) FROM users", "argument_type");
    for clause in ["TABLESAMPLE BERNOULLI (10)", "FOR UPDATE", "|> LIMIT 1"] {
        check(&format!("{query} {clause}"), "clause_not_allowed");
    }
    check("SELECT COUNT(*) INTO copy FROM users", "clause_not_allowed");
}

/// What is wrong with a file is told without any of its cells.
#[test]
fn attack_12_load_errors_quote_no_cells() {
    let catalog = Catalog::parse(CATALOG).expect("a catalog");
    let missing = tempfile::tempdir().expect("a directory");
    let error = Tables::open(&catalog, missing.path()).expect_err("no files");
    assert_eq!(error.code(), "source_not_read");
    let shop = world(true);
    let answer = shop.ask("SELECT COUNT(*) FROM users WHERE age > 10", at(1.0), 1);
    assert!(
        answer.is_ok(),
        "rows that cannot be read as declared are no error"
    );
}

#[test]
fn attack_13_odd_values_and_keys_are_values_and_keys() {
    check(
        "SELECT SUM(income), AVG(income), COUNT(income), SUM(age), AVG(age) FROM users",
        "answered",
    );
    check(
        "SELECT city, SUM(income) FROM users GROUP BY city",
        "answered",
    );
    check(
        "SELECT city, SUM(income - income), SUM(0 * income) FROM users GROUP BY city",
        "answered",
    );
    check(
        "SELECT city, COUNT(*) FROM users GROUP BY city ORDER BY city",
        "answered",
    );
}

/// Keys that are not declared appear by selection: a group of one odd row is shown with probability delta, whatever it is.
#[test]
fn attack_13_odd_private_keys_stay_hidden() {
    let shop = world(true);
    for key in [
        "income",
        "age",
        "note",
        "income / 0",
        "CAST(note AS DOUBLE)",
    ] {
        let sql =
            format!("SELECT {key} AS k, COUNT(*) FROM users WHERE user_id > 4000 GROUP BY {key}");
        assert_eq!(shop.status(&sql, at(1.0)), "keys_need_delta", "{key}");
        let answer = shop.ask(&sql, with_delta(1.0, 1e-9), 3).expect("answered");
        assert!(answer.rows.is_empty(), "{key}");
    }
}

/// NULL is a key like any other, once enough units have it.
#[test]
fn attack_13_null_is_one_private_key() {
    let mut users = String::from("user_id,age,income,city,note\n");
    for user in 0..400 {
        users += &format!("{user},1,{},Oslo,\n", ["NaN", "-NaN", "", "x"][user % 4]);
    }
    let shop = Shop::new(
        CATALOG,
        &[
            ("users.csv", &users),
            ("cities.csv", "city,country\nOslo,NO\n"),
            ("crowd.csv", "city\n"),
        ],
    );
    let answer = shop
        .ask(
            "SELECT income, COUNT(*) AS n FROM users GROUP BY income",
            with_delta(8.0, 1e-6),
            5,
        )
        .expect("answered");
    assert_eq!(answer.rows.len(), 1, "{answer:?}");
    assert_eq!(answer.rows[0][0], Cell::Null);
    assert!(
        matches!(answer.rows[0][1], Cell::Int(n) if (n - 400).abs() < 60),
        "{answer:?}"
    );
}

#[test]
fn attack_14_keys_are_functions_of_rows() {
    check(
        "SELECT random() < 0.5, COUNT(*) FROM users GROUP BY random() < 0.5",
        "function_not_allowed",
    );
    check(
        "SELECT uuid(), COUNT(*) FROM users GROUP BY 1",
        "function_not_allowed",
    );
}
