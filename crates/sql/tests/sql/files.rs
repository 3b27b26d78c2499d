//! Files as they come: whatever is wrong with a row of a private file is that row's affair, and whatever is wrong with a file
//! is told without its cells.

use crate::shop::{Shop, at, with_delta, write};
use whit_core::Fault;
use whit_sql::{Asked, Catalog, Cell, Tables};

const CATALOG: &str = r#"
    [dataset]
    id = "files"
    [budget]
    epsilon = 10.0
    [table.visits]
    source = "visits.csv"
    unit = "person"
    [table.visits.column]
    amount = { type = "int", range = [0, 10] }
"#;

fn sure() -> Asked {
    Asked {
        groups_per_unit: Some(1),
        rows_per_group: Some(1),
        ..at(1000.0)
    }
}

fn visits(text: &str) -> Shop {
    Shop::new(CATALOG, &[("visits.csv", text)])
}

fn count(text: &[u8], aggregate: &str) -> Cell<'static> {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory.path().join("visits.csv"), text);
    let shop = Shop::over(CATALOG, directory);
    let sql = format!("SELECT {aggregate} FROM visits");
    shop.ask(&sql, sure(), 1).expect("answered").rows[0][0].clone()
}

#[test]
fn rows_of_any_length_are_rows() {
    let ragged = b"person,amount\na,1\nb\nc,2,3,4\n\n\xff,1\nd,zz\n\"e\ne\",\"1\n\"\n";
    assert_eq!(
        count(ragged, "COUNT(*)"),
        Cell::Int(5),
        "a, b, c, d and e, not what is no text"
    );
    assert_eq!(count(ragged, "SUM(amount)"), Cell::Int(4));
    assert_eq!(
        count(b"person,amount\r\na,1\r\nb,2\r\n", "SUM(amount)"),
        Cell::Int(3)
    );
    assert_eq!(
        count(b"\xef\xbb\xbfperson,amount\na,1", "SUM(amount)"),
        Cell::Int(1)
    );
    assert_eq!(count(b"person,amount\n", "SUM(amount)"), Cell::Int(0));
}

/// Two people are two units, however long their names are and whatever bytes are in them: if the first part of a name were
/// the unit, one person's rows would push out another's.
#[test]
fn units_that_cannot_be_told_apart_are_dropped() {
    let long = "n".repeat(5000);
    let text = format!("person,amount\n{long}1,1\n{long}2,1\nshort,1\n");
    assert_eq!(count(text.as_bytes(), "COUNT(*)"), Cell::Int(1));
    assert_eq!(
        count(b"person,amount\n\xff,1\n\xfe,1\nshort,1\n", "COUNT(*)"),
        Cell::Int(1)
    );
    let fits = "n".repeat(4000);
    let text = format!("person,amount\n{fits}1,1\n{fits}2,1\n");
    assert_eq!(count(text.as_bytes(), "COUNT(*)"), Cell::Int(2));
}

/// Long numbers are no floats: 2^53 and 2^53 + 1 would be one unit.
#[test]
fn a_unit_is_no_float() {
    let catalog = Catalog::parse(
        &CATALOG.replace("amount = {", "person = { range = [0, 1] }\n    amount = {"),
    )
    .expect("a catalog");
    let directory = tempfile::tempdir().expect("a directory");
    write(
        &directory.path().join("visits.csv"),
        b"person,amount\n1,1\n",
    );
    let error = Tables::open(&catalog, directory.path()).expect_err("a float");
    assert_eq!(error.code(), "unit_of_floats");
    assert!(error.suggestion().contains("int"), "{}", error.suggestion());
}

/// A cell of any size costs what a short one does, and a quote that is never closed costs no more.
#[test]
fn huge_cells_are_cut() {
    let huge = format!("person,amount\na,1\nb,\"{}\n", "x,1\n".repeat(1 << 20));
    assert_eq!(count(huge.as_bytes(), "COUNT(*)"), Cell::Int(2));
}

/// The header line is public and the next is not: a quote that is left open would make cells into a name.
#[test]
fn a_header_holds_no_cells() {
    for text in [
        "person,\"amount\nsecret,1\nother,2\n",
        "person,amount\u{0}\nsecret,1\n",
        &format!("person,{}\nsecret,1\n", "amount".repeat(100)),
        "person,person\nsecret,1\n",
        "person,\nsecret,1\n",
        "",
        "\n\n",
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        write(&directory.path().join("visits.csv"), text.as_bytes());
        let catalog = Catalog::parse(CATALOG).expect("a catalog");
        let error = Tables::open(&catalog, directory.path()).expect_err(text);
        assert!(
            ["bad_header", "source_not_read"].contains(&error.code()),
            "{text:?}: {error}"
        );
        let said = format!("{error} {}", error.suggestion());
        assert!(
            !said.contains("secret") && !said.contains("other,2"),
            "{said}"
        );
    }
}

/// A file whose columns changed places since it was opened would be read with somebody else's unit.
#[test]
fn a_file_that_changed_its_header_is_not_read() {
    let shop = visits("person,amount\na,1\nb,2\n");
    let plan = shop
        .plan("SELECT SUM(amount) FROM visits", sure())
        .expect("a plan");
    assert!(shop.run(&plan, 1).is_ok());
    write(&shop.path("visits.csv"), b"amount,person\n1,a\n2,b\n");
    let error = shop.run(&plan, 1).expect_err("another header");
    assert_eq!(error.code(), "execution_failed");
}

/// A plan was analyzed for one catalog: over other tables its columns, unit and bounds would mean something else.
#[test]
fn a_plan_runs_over_the_tables_it_was_made_for() {
    let shop = visits("person,amount\na,1\n");
    let other = visits("person,amount\na,1\n");
    let plan = shop
        .plan("SELECT SUM(amount) FROM visits", sure())
        .expect("a plan");
    assert_eq!(
        other.run(&plan, 1).expect_err("other tables").code(),
        "other_tables"
    );
    assert!(shop.run(&plan, 1).is_ok());
}

#[test]
fn sources_and_units_of_later_slices_are_refused_with_a_way_out() {
    let check = |from: &str, to: &str, code: &str, hint: &str| {
        let error = Catalog::parse(&CATALOG.replace(from, to)).expect_err(to);
        assert_eq!(error.code(), code, "{to}");
        assert!(error.to_string().contains("visits"), "{error}");
        assert!(error.suggestion().contains(hint), "{}", error.suggestion());
    };
    let unit = "unit = \"person\"";
    check(
        unit,
        "unit = \"person -> people\"",
        "foreign_key_unit",
        "column",
    );
    check(
        unit,
        "unit = \"visit -> visits -> people\"",
        "foreign_key_unit",
        "column",
    );
    for source in [
        "visits.parquet",
        "visits.csv.gz",
        "visits/*.csv",
        "visits",
        "postgres://host/db",
        "visits.json",
    ] {
        check("visits.csv", source, "source_not_supported", "CSV");
    }
}

/// Sums of whole numbers too large to be summed in ones are whole numbers all the same, so that what follows can sort them.
#[test]
fn wide_sums_are_of_one_kind() {
    let catalog = CATALOG.replace(
        "range = [0, 10]",
        "range = [-9000000000000000000, 9000000000000000000]",
    );
    let shop = Shop::new(&catalog, &[("visits.csv", "person,amount\na,1\n")]);
    let answer = shop
        .ask("SELECT SUM(amount) AS s FROM visits", sure(), 1)
        .expect("answered");
    assert!(matches!(answer.rows[0][0], Cell::Int(_)), "{answer:?}");
}

/// Keys of any text: long ones are cut, and a group of one is not shown.
#[test]
fn keys_of_any_size_are_keys() {
    let long = "k".repeat(100_000);
    let mut text = String::from("person,amount,note\n");
    for person in 0..300 {
        text += &format!("p{person},1,\"{long}{}\"\n", person % 2);
    }
    let shop = visits(&text);
    let asked = Asked {
        groups_per_unit: Some(1),
        rows_per_group: Some(1),
        ..with_delta(4.0, 1e-6)
    };
    let answer = shop
        .ask(
            "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
            asked,
            1,
        )
        .expect("answered");
    assert_eq!(answer.rows.len(), 1);
    assert_eq!(answer.rows[0][0], Cell::Text("k".repeat(4096).into()));
}
