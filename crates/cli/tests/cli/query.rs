//! Private SQL through the door: answers, budgets, ledgers, catalogs.

use super::*;

pub(super) const CATALOG: &str = r#"
[dataset]
id = "clinic"
[budget]
epsilon = 1.0
[table.visits]
source = "visits.csv"
unit = "patient"
rows_per_unit = 2
[table.visits.column]
ward = { values = ["north", "south"] }
cost = { type = "int", range = [0, 100] }
[table.wards]
source = "wards.csv"
public = true
"#;
const BY_WARD: &str = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward";
const KEYS: [&str; 8] = [
    "columns",
    "rows",
    "intervals",
    "charge",
    "remaining",
    "reused",
    "dummy",
    "receipt",
];

/// A folder with a catalog, tables and a ledger of its own.
pub(super) struct Clinic(tempfile::TempDir);

impl Clinic {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut visits = String::from("patient,ward,cost,note\n");
        for visit in 0..200 {
            let ward = if visit % 4 == 0 { "north" } else { "south" };
            visits += &format!("p{},{ward},{},{CANARY}\n", visit / 2, visit % 100);
        }
        let clinic = Self(folder);
        clinic.write("visits.csv", &visits);
        clinic.write("wards.csv", "ward,floor\nnorth,1\nsouth,2\n");
        clinic.write("whit.toml", CATALOG);
        clinic
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, b"")
    }

    fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Run {
        let mut command = program();
        command.args(arguments).current_dir(self.0.path());
        finish(command, stdin)
    }

    fn query(&self, sql: &str, more: &[&str]) -> Run {
        let mut arguments = vec![
            "query",
            sql,
            "--groups-per-unit",
            "1",
            "--rows-per-group",
            "1",
        ];
        arguments.extend(more);
        arguments.extend(["--format", "json"]);
        self.run(&arguments)
    }

    fn answer(&self, sql: &str, epsilon: &str) -> Value {
        answer(&self.query(sql, &["--epsilon", epsilon]))
    }

    /// What is left of the data set's epsilon.
    pub(super) fn left(&self) -> f64 {
        let budget = answer(&self.run(&["budget", "--format", "json"]));
        number(&budget["levels"][0]["remaining"], "epsilon")
    }
}

pub(super) fn failure(run: &Run, exit: i32, kind: &str) -> String {
    assert_eq!(run.code, exit, "{}{}", run.stdout, run.stderr);
    assert!(!format!("{}{}", run.stdout, run.stderr).contains(CANARY));
    let failure: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let code = failure[kind]["code"].as_str();
    code.unwrap_or_else(|| panic!("{failure}")).to_owned()
}

#[test]
fn an_answer_has_the_shape_that_programs_read() {
    let clinic = Clinic::new();
    let found = clinic.answer(BY_WARD, "0.5");
    assert_eq!(keys(&found), KEYS.into());
    let columns = found["columns"].as_array().expect("a list");
    assert_eq!(
        columns[0],
        serde_json::json!({"name":"ward","type":"text","noisy":false})
    );
    assert_eq!(
        columns[1],
        serde_json::json!({"name":"n","type":"int","noisy":true})
    );
    let rows = found["rows"].as_array().expect("a list");
    assert_eq!(
        (rows[0][0].as_str(), rows[1][0].as_str()),
        (Some("north"), Some("south"))
    );
    let ends = &found["intervals"][1];
    assert!(ends[0].is_null());
    let low = ends[1][0].as_f64().expect("a number");
    let high = ends[1][1].as_f64().expect("a number");
    let noisy = rows[1][1].as_f64().expect("a number");
    assert!(low < noisy && noisy < high);
    assert_eq!(
        found["charge"],
        serde_json::json!({"epsilon":0.5,"delta":0.0,"rho":null,"delta0":null})
    );
    assert_eq!(
        found["remaining"],
        serde_json::json!({"dataset":{"epsilon":0.5,"delta":0.0},"team":null,"analyst":null})
    );
    assert_eq!(
        (&found["reused"], &found["dummy"]),
        (&false.into(), &false.into())
    );
    // Its receipt is in the ledger, and one that was made up is not.
    let receipt = found["receipt"].as_str().expect("text");
    let verify =
        |receipt: &str| clinic.run(&["ledger", "verify", "--receipt", receipt, "--format", "json"]);
    assert_eq!(answer(&verify(receipt))["receipts_found"], 1);
    let forged = receipt.replace(['0', '1', '2', '3', '4', '5', '6', '7'], "8");
    assert_eq!(failure(&verify(&forged), 2, "refused"), "receipt_not_found");
    assert_eq!(failure(&verify("so"), 1, "invalid"), "not_a_receipt");
}

#[test]
fn a_budget_lasts_until_it_is_spent() {
    let clinic = Clinic::new();
    let first = clinic.answer("SELECT COUNT(*) FROM visits", "0.5");
    assert_eq!(clinic.left(), 0.5);
    let again = clinic.answer("select count(*)\nfrom visits", "0.5");
    assert_eq!(again["reused"], true);
    assert_eq!(again["charge"]["epsilon"], 0.0);
    assert_eq!((&again["rows"], clinic.left()), (&first["rows"], 0.5));
    clinic.answer("SELECT SUM(cost) FROM visits", "0.5");
    let run = clinic.query(BY_WARD, &["--epsilon", "0.1"]);
    assert_eq!(failure(&run, 3, "exhausted"), "budget_exhausted");
    // People are told the same on stderr.
    let run = clinic.run(&[
        "query",
        BY_WARD,
        "--epsilon",
        "0.1",
        "--rows-per-group",
        "1",
        "--groups-per-unit",
        "1",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    assert!(
        run.stderr
            .starts_with("error[budget_exhausted]: the dataset has"),
        "{}",
        run.stderr
    );
}

#[test]
fn nothing_is_charged_for_what_is_refused() {
    let clinic = Clinic::new();
    let check = |sql: &str, more: &[&str], exit: i32, kind: &str| {
        let run = clinic.query(sql, more);
        assert!(!failure(&run, exit, kind).is_empty(), "{sql}");
    };
    for epsilon in ["-1", "1e20", "NaN", "0", "inf", "x"] {
        check(BY_WARD, &["--epsilon", epsilon], 1, "invalid");
    }
    let half = ["--epsilon", "0.5"];
    for delta in ["1", "-1", "NaN"] {
        check(BY_WARD, &[half[0], half[1], "--delta", delta], 1, "invalid");
    }
    check("SELECT * FROM visits", &half, 2, "refused");
    check(
        "SELECT patient, COUNT(*) FROM visits GROUP BY patient",
        &half,
        2,
        "refused",
    );
    check("SELECT COUNT(*) FROM visits LIMIT -1", &half, 1, "invalid");
    check("SELECT COUNT(*) FROM nowhere", &half, 1, "invalid");
    check("DROP TABLE visits", &half, 2, "refused");
    check("", &half, 1, "invalid");
    check(
        "SELECT COUNT(*) FROM visits",
        &["--epsilon", "0.5", "--analyst", ""],
        1,
        "invalid",
    );
    assert_eq!(clinic.left(), 1.0);
}

#[test]
fn a_price_can_be_seen_before_it_is_paid() {
    let clinic = Clinic::new();
    let explained =
        answer(&clinic.query(&format!("EXPLAIN PRIVACY {BY_WARD}"), &["--epsilon", "0.5"]));
    assert_eq!(explained["charge"]["epsilon"], 0.5);
    assert_eq!(
        (&explained["keys"], &explained["groups"]),
        (&"public".into(), &2.into())
    );
    let same = answer(&clinic.query(BY_WARD, &["--epsilon", "0.5", "--explain"]));
    assert_eq!(same, explained);
    let words = clinic.run(&[
        "query",
        BY_WARD,
        "--explain",
        "--epsilon",
        "0.5",
        "--rows-per-group",
        "1",
        "--groups-per-unit",
        "1",
    ]);
    for line in ["nothing was read or charged", "for 2 such statements"] {
        assert!(words.stdout.contains(line), "{}", words.stdout);
    }
    assert_eq!(clinic.left(), 1.0);
}

#[test]
fn statements_come_from_standard_input_and_rows_leave_as_csv() {
    let clinic = Clinic::new();
    let arguments = [
        "query",
        "--epsilon",
        "0.5",
        "--rows-per-group",
        "1",
        "--groups-per-unit",
        "1",
        "--format",
        "csv",
    ];
    let run = clinic.run_with(&arguments, format!("\u{feff}{BY_WARD};\r\n").as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], "ward,n,n_low,n_high");
    assert!(lines[1].starts_with("north,") && lines[2].starts_with("south,"));
    assert_eq!(lines[1].split(',').count(), 4);
    let run = clinic.run(&["budget", "--format", "csv"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
}

#[test]
fn a_join_with_a_public_table_gives_keys() {
    let clinic = Clinic::new();
    let outer = "SELECT w.floor, COUNT(v.patient) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.floor";
    let found = clinic.answer(outer, "0.5");
    assert_eq!(
        (&found["rows"][0][0], &found["rows"][1][0]),
        (&"1".into(), &"2".into())
    );
    // From an inner join only the floors with visits would come out, which is a secret that costs a delta.
    let inner = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor";
    let run = clinic.query(inner, &["--epsilon", "0.5"]);
    assert_eq!(failure(&run, 2, "refused"), "keys_need_delta");
}

#[test]
fn a_promise_changes_only_on_the_record() {
    let clinic = Clinic::new();
    clinic.answer(BY_WARD, "0.5");
    let refused = || failure(&clinic.query(BY_WARD, &["--epsilon", "0.1"]), 2, "refused");
    // A higher cap.
    clinic.write(
        "whit.toml",
        &CATALOG.replace("epsilon = 1.0", "epsilon = 2.0"),
    );
    assert_eq!(refused(), "cap_raised");
    let cap = answer(&clinic.run(&["ledger", "cap", "--epsilon", "2", "--format", "json"]));
    assert_eq!(
        (&cap["level"], &cap["epsilon"]),
        (&"dataset".into(), &2.0.into())
    );
    assert_eq!(clinic.left(), 1.5);
    // Another unit.
    let changed = CATALOG
        .replace("epsilon = 1.0", "epsilon = 2.0")
        .replace("rows_per_unit = 2", "rows_per_unit = 3");
    clinic.write("whit.toml", &changed);
    assert_eq!(refused(), "catalog_changed");
    assert_eq!(
        answer(&clinic.run(&["ledger", "accept", "--format", "json"]))["accepted"],
        true
    );
    assert_eq!(clinic.left(), 1.5);
    let shown = answer(&clinic.run(&["ledger", "show", "--format", "json"]));
    let kinds: Vec<&str> = shown["records"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|record| record["kind"].as_str().expect("text"))
        .collect();
    assert_eq!(kinds, ["open", "cap", "reserve", "settle", "cap", "accept"]);
    // Whose name is on the charge is not what was asked, and no cell is in the ledger.
    assert!(!shown.to_string().contains(CANARY));
}

#[test]
fn damage_is_found_and_closes_the_budget() {
    let clinic = Clinic::new();
    clinic.answer(BY_WARD, "0.5");
    let path = clinic.path("whit.ledger");
    let mut bytes = fs::read(&path).expect("a ledger");
    let place = bytes.windows(7).position(|window| window == b"\"event\"");
    let place = place.expect("the charge holds its event");
    bytes[place + 1] ^= 1;
    fs::write(&path, bytes).expect("written");
    let json = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--format", "json"]);
        clinic.run(&all)
    };
    assert_eq!(
        failure(&json(&["ledger", "verify"]), 4, "refused"),
        "ledger_damaged"
    );
    assert_eq!(failure(&json(&["budget"]), 4, "refused"), "ledger_damaged");
    assert_eq!(
        failure(&json(&["ledger", "recover"]), 2, "refused"),
        "not_confirmed"
    );
    let done = answer(&json(&["ledger", "recover", "--close-budget"]));
    assert_eq!(done["closed"], true);
    assert_eq!(clinic.left(), 0.0);
    assert_eq!(
        failure(
            &clinic.query("SELECT SUM(cost) FROM visits", &["--epsilon", "0.1"]),
            3,
            "exhausted"
        ),
        "budget_exhausted"
    );
}

#[test]
fn from_a_file_to_a_first_answer() {
    let clinic = Clinic::new();
    fs::remove_file(clinic.path("whit.toml")).expect("it was there");
    let made = answer(&clinic.run(&[
        "init",
        "visits.csv",
        "--unit",
        "patient",
        "--dataset",
        "mine",
        "--format",
        "json",
    ]));
    assert_eq!(made["catalog"], "whit.toml");
    let run = clinic.run(&["init", "visits.csv", "--format", "json"]);
    assert_eq!(failure(&run, 1, "invalid"), "catalog_not_written");
    // Columns that are not separated by commas would be one, and each row a unit of its own.
    clinic.write("other.csv", &format!("{CANARY};ward\np1;north\n"));
    clinic.write("rows.csv", &format!("{CANARY},north,52\np1,north,3\n"));
    for (file, code) in [
        ("other.csv", "not_by_commas"),
        ("rows.csv", "no_names"),
        ("gone.csv", "source_not_read"),
    ] {
        let run = clinic.run(&["init", file, "--output", "other.toml", "--format", "json"]);
        assert_eq!(failure(&run, 1, "invalid"), code);
        assert!(!run.stdout.contains(CANARY), "{}", run.stdout);
    }
    // Without --unit nobody is guessed to be protected, and the catalog is refused.
    answer(&clinic.run(&[
        "init",
        "visits.csv",
        "--output",
        "unsaid.toml",
        "--format",
        "json",
    ]));
    let run = clinic.run(&["check", "--catalog", "unsaid.toml", "--format", "json"]);
    assert_eq!(failure(&run, 1, "invalid"), "no_unit");
    let named = [
        "init",
        "visits.csv",
        "--unit",
        "nobody",
        "--output",
        "b.toml",
    ];
    let run = clinic.run(&[&named[..], &["--format", "json"]].concat());
    assert_eq!(failure(&run, 1, "invalid"), "unknown_column");
    let draft = fs::read_to_string(clinic.path("whit.toml")).expect("written");
    assert!(!draft.contains(CANARY), "no cell is looked at");
    let checked = answer(&clinic.run(&["check", "--format", "json"]));
    assert_eq!(
        (&checked["dataset"], &checked["tables"][0]["unit"]),
        (&"mine".into(), &"patient".into())
    );
    let found = clinic.answer("SELECT COUNT(*) FROM visits", "0.5");
    assert_eq!(found["remaining"]["dataset"]["epsilon"], 0.5);
    let warned = CATALOG
        .replace("id = \"clinic\"", "id = \"clinic\"\nunits = 1000")
        .replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 0.01");
    clinic.write("whit.toml", &warned);
    let run = clinic.run(&["check"]);
    assert!(
        run.code == 0 && run.stdout.contains("1/N²"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

/// Without a catalog there is a demonstration, with a budget of its own in a folder of its own.
#[test]
fn the_demonstration_answers() {
    let home = tempfile::tempdir().expect("a folder");
    let empty = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let mut command = program();
        command
            .args(arguments)
            .current_dir(empty.path())
            .env("WHIT_HOME", home.path());
        finish(command, b"")
    };
    let sql = "SELECT weekday, COUNT(*) AS n, AVG(amount) AS mean FROM purchases GROUP BY weekday";
    let found = answer(&run(&["query", sql, "--format", "json"]));
    assert_eq!(found["rows"].as_array().expect("a list").len(), 7);
    assert!(found["charge"]["rho"].as_f64().expect("a number") > 0.0);
    let table = run(&["query", sql]);
    assert!(
        table.stderr.contains("demonstration") && table.stdout.contains('±'),
        "{}",
        table.stdout
    );
    assert!(table.stdout.contains("answered before"), "{}", table.stdout);
    let sql = "SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC";
    let found = answer(&run(&["query", sql, "--format", "json"]));
    assert_eq!(found["rows"][0][0], "United Kingdom");
    assert!(home.path().join("demo/whit.ledger").exists());
    assert_eq!(fs::read_dir(empty.path()).expect("a folder").count(), 0);
}

/// A program that is closed before it has shown its answer has still spent for it, and shows it when asked again.
#[test]
fn an_answer_that_nobody_read_stays_paid() {
    let clinic = Clinic::new();
    let mut command = program();
    command
        .args([
            "query",
            BY_WARD,
            "--epsilon",
            "0.5",
            "--groups-per-unit",
            "1",
            "--rows-per-group",
            "1",
        ])
        .current_dir(clinic.0.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    drop(child.stdout.take());
    child.wait().expect("the program ends");
    assert_eq!(clinic.left(), 0.5);
    assert_eq!(clinic.answer(BY_WARD, "0.5")["reused"], true);
    assert_eq!(clinic.left(), 0.5);
}

/// The hint of a raised cap is followed word by word; and who records another cap than the catalog's is told.
#[test]
fn a_cap_is_recorded_as_the_catalog_has_it() {
    let clinic = Clinic::new();
    clinic.answer(BY_WARD, "0.5");
    let people = "[team.lab]\nepsilon = 0.5\n[table.visits]";
    let people = CATALOG.replace("[table.visits]", people);
    clinic.write("whit.toml", &people);
    assert_eq!(clinic.left(), 0.5);
    let more = people
        .replace("epsilon = 1.0", "epsilon = 2.0")
        .replace("epsilon = 0.5", "epsilon = 0.75");
    clinic.write("whit.toml", &more);
    let hint = |run: Run| {
        let (_, rest) = run.stderr.split_once('`').expect("a command");
        rest.split_once('`').expect("a command").0.to_owned()
    };
    for expected in ["whit ledger cap", "whit ledger cap --team lab"] {
        let command = hint(clinic.run(&["budget"]));
        assert_eq!(command, expected);
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let run = clinic.run(&words);
        assert_eq!(
            (run.code, run.stdout.contains("but")),
            (0, false),
            "{}",
            run.stderr
        );
    }
    assert_eq!(clinic.left(), 1.5);
    let run = clinic.run(&["ledger", "cap", "--epsilon", "3"]);
    assert!(
        run.stdout.contains("the catalog says epsilon 2"),
        "{}",
        run.stdout
    );
    let run = clinic.run(&["ledger", "cap", "--analyst", "ann", "--format", "json"]);
    assert_eq!(failure(&run, 1, "invalid"), "no_cap");
    let again = || answer(&clinic.run(&["ledger", "cap", "--team", "lab", "--format", "json"]));
    assert_eq!(again(), again(), "what is recorded is not recorded again");
    let run = clinic.run(&["ledger"]);
    assert!(run.stderr.contains("subcommand"), "{}", run.stderr);
}

/// Keys and names are whatever somebody typed: they neither command a terminal nor a spreadsheet.
#[test]
fn keys_and_names_are_only_text() {
    let clinic = Clinic::new();
    let keys = r#"["=1+1", "a\u001b[2J\nb", "-5", "\u202eright"]"#;
    let catalog = CATALOG.replace(r#"["north", "south"]"#, keys).replace(
        "epsilon = 1.0",
        "epsilon = 1.0\n[defaults]\nepsilon = 0.1\ngroups_per_unit = 1\nrows_per_group = 1",
    );
    clinic.write("whit.toml", &catalog);
    let sql = "SELECT ward AS \"w\u{1b}]0;x\u{7}\", COUNT(*) AS \"=n\" FROM visits GROUP BY ward";
    for format in ["table", "csv"] {
        let run = clinic.run(&["query", sql, "--format", format]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let commands = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!run.stdout.contains(commands), "{:?}", run.stdout);
        assert!(run.stdout.contains("a\\u{1b}[2J"), "{:?}", run.stdout);
        if format == "csv" {
            assert!(
                run.stdout.contains("\n'=1+1,") && run.stdout.contains("\n-5,"),
                "{}",
                run.stdout
            );
            assert!(run.stdout.contains(",'=n,"), "{}", run.stdout);
        }
    }
    let run = clinic.run(&["query", "SELECT COUNT(*) FROM \"\u{1b}[2J\""]);
    assert!(
        run.code == 1 && !run.stderr.contains('\u{1b}'),
        "{:?}",
        run.stderr
    );
}

/// What people read is rounded to the careful side: what is printed as left can be spent, and then a statement of 0.1 is
/// refused.
#[test]
fn what_is_printed_as_left_can_be_spent() {
    let clinic = Clinic::new();
    let run = |sql: &str, epsilon: &str| {
        let bounds = ["--groups-per-unit", "1", "--rows-per-group", "1"];
        let mut arguments = vec!["query", sql, "--epsilon", epsilon];
        arguments.extend(bounds);
        clinic.run(&arguments)
    };
    let first = run("SELECT COUNT(*) FROM visits", "0.1");
    let left = first
        .stdout
        .split("budget   epsilon ")
        .nth(1)
        .expect("a line");
    let left = left.split(' ').next().expect("a number");
    assert!(
        left.parse::<f64>().expect("a number") <= clinic.left(),
        "{left}"
    );
    let all = run("SELECT SUM(cost) FROM visits", left);
    assert_eq!(all.code, 0, "{left}: {}", all.stderr);
    let more = run("SELECT AVG(cost) FROM visits", "0.1");
    assert!(
        more.code == 3 && more.stderr.contains("this costs epsilon 0.1\n"),
        "{}",
        more.stderr
    );
    let none = clinic.run(&[
        "query",
        "--explain",
        BY_WARD,
        "--epsilon",
        "0.1",
        "--groups-per-unit",
        "1",
        "--rows-per-group",
        "1",
    ]);
    assert!(
        none.stdout.contains("for no such statement"),
        "{}",
        none.stdout
    );
    // How far off it would be is no more certain than the confidence that was asked for.
    let explain = clinic.run(&[
        "query",
        "--explain",
        BY_WARD,
        "--epsilon",
        "0.5",
        "--confidence",
        "0.999",
        "--groups-per-unit",
        "1",
        "--rows-per-group",
        "1",
    ]);
    assert!(
        explain.stdout.contains("99.9% confidence"),
        "{}",
        explain.stdout
    );
}
