use super::*;
use whit_core::Fault;

const HEAD: &str = "[dataset]\nid = \"d\"\n[budget]\nepsilon = 1.0\n";

fn with(table: &str) -> Result<Catalog> {
    Catalog::parse(&format!("{HEAD}[table.t]\n{table}"))
}

fn check(table: &str, code: &str) {
    let error = with(table).expect_err(table);
    assert_eq!(error.code(), code, "{table}: {error}");
    assert!(!error.suggestion().is_empty());
}

#[test]
fn refuses_what_is_not_clear() {
    let csv = "source = \"a.csv\"\n";
    check(csv, "no_unit");
    check(
        &format!("{csv}unit = \"u\"\npublic = true"),
        "public_with_unit",
    );
    check(&format!("{csv}unit = \"u -> users\""), "foreign_key_unit");
    check(
        &format!("{csv}unit = \"u\"\nrows_per_unit = 0"),
        "bound_out_of_range",
    );
    check(&format!("{csv}unit = \"u\"\nepsilon = 3"), "catalog_syntax");
    check(
        "source = \"a.parquet\"\nunit = \"u\"",
        "source_not_supported",
    );
    check("source = \"*.csv\"\nunit = \"u\"", "source_not_supported");
    let column = |column: &str| format!("{csv}unit = \"u\"\n[table.t.column]\nx = {column}");
    check(&column("{ type = \"money\" }"), "unknown_type");
    check(&column("{ range = [5, 1] }"), "empty_range");
    check(&column("{ range = [nan, 1] }"), "empty_range");
    check(&column("{ range = [0, inf] }"), "empty_range");
    check(
        &column("{ type = \"text\", range = [0, 1] }"),
        "range_of_text",
    );
    check(&column("{ values = [] }"), "bad_values");
    check(&column("{ values = [\"a\", \"a\"] }"), "bad_values");
    check(&column("{ values = [\"a\", 1] }"), "mixed_values");
    check(
        &column("{ type = \"int\", values = [\"a\"] }"),
        "bad_values",
    );
    check(
        &column("{ type = \"int\", nullable = true }"),
        "catalog_syntax",
    );
}

#[test]
fn budgets_are_checked_at_the_door() {
    let budget = |epsilon: &str, delta: &str| {
        Catalog::parse(&format!(
            "[dataset]\nid=\"d\"\n[budget]\nepsilon = {epsilon}\ndelta = {delta}\n[table.t]\nsource=\"a.csv\"\nunit=\"u\""
        ))
    };
    assert!(budget("1", "1e-6").is_ok());
    for (epsilon, delta) in [
        ("-1", "0"),
        ("0", "0"),
        ("1e20", "0"),
        ("nan", "0"),
        ("inf", "0"),
        ("1", "1.0"),
        ("1", "-1e-9"),
    ] {
        assert!(budget(epsilon, delta).is_err(), "{epsilon} {delta}");
    }
}

#[test]
fn columns_are_text_unless_the_catalog_says_otherwise() {
    let catalog = with("source = \"a.csv\"\nunit = \"u\"\n[table.t.column]\na = {}\nb = { range = [0, 5] }\nc = { values = [1, 2] }\nd = { type = \"decimal(10,2)\" }").expect("valid");
    let kinds: Vec<Kind> = catalog.tables()["t"]
        .columns()
        .values()
        .map(|column| column.kind)
        .collect();
    assert_eq!(kinds, [Kind::Text, Kind::Real, Kind::Int, Kind::Real]);
}

#[test]
fn the_hash_follows_meaning_and_not_layout() {
    let table = "source = \"a.csv\"\nunit = \"u\"\n";
    let one = with(table).expect("valid").hash();
    let spaced = with("unit   = \"u\" # whose\nsource = \"a.csv\"\n")
        .expect("valid")
        .hash();
    assert_eq!(one, spaced);
    let other = with(&format!("{table}rows_per_unit = 5"))
        .expect("valid")
        .hash();
    assert_ne!(one, other);
    // A cap is compared with the recorded one, and a default with nothing.
    let text = format!(
        "[dataset]\nid = \"d\"\nversion = \"May\"\n[budget]\nepsilon = 2.0\n[defaults]\nepsilon = 0.1\n[table.t]\n{table}"
    );
    assert_eq!(one, Catalog::parse(&text).expect("valid").hash());
    let renamed = text.replace("\"d\"", "\"e\"");
    assert_ne!(one, Catalog::parse(&renamed).expect("valid").hash());
}

#[test]
fn analysts_belong_to_teams_that_exist() {
    let people = |text: &str| with(&format!("source = \"a.csv\"\nunit = \"u\"\n{text}"));
    let team = "[team.lab]\nepsilon = 1\ndelta = 1e-7\n";
    let catalog = people(&format!("{team}[analyst.ann]\nteam = \"lab\"\n")).expect("valid");
    let people_of = catalog.people();
    assert_eq!(people_of.team_of(Some("ann")).expect("known"), Some("lab"));
    assert_eq!(people_of.promises().count(), 1, "ann has what her team has");
    for nobody in [None, Some("ben")] {
        assert_eq!(
            people_of.team_of(nobody).expect_err("unknown").code(),
            "unknown_analyst"
        );
    }
    let anybody = people("").expect("valid");
    assert_eq!(
        anybody
            .people()
            .team_of(Some("ben"))
            .expect("nobody is declared"),
        None
    );
    assert_eq!(
        anybody.people().team_of(None).expect("nobody is declared"),
        None
    );
    let code = |text: &str| people(text).expect_err(text).code();
    assert_eq!(code("[analyst.ann]\nteam = \"lab\""), "unknown_team");
    assert_eq!(code("[analyst.ann]\ndelta = 0.1"), "delta_without_epsilon");
    assert_eq!(code("[team.lab]\nepsilon = -1"), "out_of_domain");
}

#[test]
fn a_delta_above_one_over_n_squared_is_pointed_out() {
    let check = |units: u64, delta: &str| {
        let text = format!(
            "[dataset]\nid=\"d\"\nunits={units}\n[budget]\nepsilon=1\ndelta={delta}\n[table.t]\nsource=\"a.csv\"\nunit=\"u\""
        );
        Catalog::parse(&text)
            .expect("valid")
            .check()
            .iter()
            .any(|warning| warning.contains("1/N²"))
    };
    assert!(check(10_000, "1e-7"));
    assert!(!check(10_000, "1e-8"));
    assert!(!check(1000, "1e-6"), "exactly 1/N² passes");
}

#[test]
fn a_draft_is_a_catalog_of_its_own() {
    let columns = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let files = [
        (
            "data/Users 1.csv".to_owned(),
            columns(&["id", "birth year", "plan"]),
        ),
        ("b/users_1.csv".to_owned(), columns(&["x"])),
    ];
    // Whose the rows are is nothing to guess.
    let unsaid = draft("shop", &files, None).expect("headers");
    let refused = Catalog::parse(&unsaid).expect_err("no unit");
    assert_eq!(refused.code(), "no_unit");
    let half = draft("shop", &files, Some("id")).expect("headers");
    assert!(Catalog::parse(&half).is_err(), "the other table has none");
    let text = half.replace("# public = true ", "public = true ");
    let text = text.replacen("public = true ", "# public = true ", 1);
    let catalog = Catalog::parse(&text).expect("valid");
    assert_eq!(
        catalog
            .tables()
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        ["users_1", "users_1_1"]
    );
    let uncommented = text
        .replace("# \"birth year\"", "\"birth year\"")
        .replace("# plan", "plan");
    assert!(Catalog::parse(&uncommented).is_ok(), "{uncommented}");
    assert!(draft("shop", &[("a.csv".into(), vec![])], None).is_err());
}
