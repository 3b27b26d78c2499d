//! What people are told: why there is no answer and what would pass, and what an answer does not say by itself.

use super::*;

const CATALOG: &str = r#"
[dataset]
id = "wards"
[budget]
epsilon = 100.0
[defaults]
epsilon = 1.0
groups_per_unit = 1
rows_per_group = 1
[table.t]
source = "t.csv"
unit = "u"
[table.t.column]
x = { type = "int", range = [0, 10] }
ward = { values = ["north", "south"] }
[table.p]
source = "p.csv"
public = true
"#;
const BY_X: &str = "SELECT x, COUNT(*) AS n FROM t GROUP BY x";

struct Wards(tempfile::TempDir);

impl Wards {
    fn new() -> Self {
        let wards = Self(tempfile::tempdir().expect("a folder"));
        wards.write("whit.toml", CATALOG);
        wards.write("t.csv", "u,x,ward\na,1,north\nb,2,south\n");
        wards.write("p.csv", "ward\nnorth\n");
        wards
    }

    /// The same, with another line in its catalog.
    fn edit(&self, from: &str, to: &str) {
        self.write("whit.toml", &CATALOG.replace(from, to));
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("written");
    }

    fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let mut command = program();
        command.args(arguments).current_dir(self.0.path());
        finish(command, b"")
    }

    fn query(&self, sql: &str, more: &[&str]) -> Run {
        self.run(&[&["query", sql], more].concat())
    }

    /// What an error says, with its hint.
    fn told(&self, arguments: &[&str], code: &str) -> String {
        let run = self.run(arguments);
        assert_eq!(run.stdout, "", "{}", run.stderr);
        let begin = format!("error[{code}]: ");
        assert!(run.stderr.starts_with(&begin), "{}", run.stderr);
        run.stderr
    }
}

#[test]
fn refused_statements_make_no_ledger() {
    let wards = Wards::new();
    for (sql, more, code) in [
        ("SELECT u FROM t", ["--epsilon", "1"], "raw_rows"),
        (
            "SELECT COUNT(*) FROM p",
            ["--epsilon", "1"],
            "no_private_table",
        ),
        (
            "SELECT COUNT(*) FROM t",
            ["--epsilon", "0"],
            "out_of_domain",
        ),
        (
            "SELECT COUNT(*) FROM t",
            ["--epsilon", "1e-30"],
            "epsilon_too_small",
        ),
        (
            "SELECT COUNT(*) FROM t",
            ["--analyst", "ann\n"],
            "out_of_domain",
        ),
        (BY_X, ["--epsilon", "1"], "keys_need_delta"),
    ] {
        let run = wards.query(sql, &more);
        assert!(run.code == 1 || run.code == 2, "{sql}: {}", run.stderr);
        let begin = format!("error[{code}]: ");
        assert!(run.stderr.starts_with(&begin), "{}", run.stderr);
        assert!(
            !wards.has("whit.ledger") && !wards.has("whit.ledger.key"),
            "{sql}"
        );
    }
    assert_eq!(wards.query("SELECT COUNT(*) FROM t", &[]).code, 0);
    assert!(wards.has("whit.ledger"));
}

#[test]
fn an_unused_ledger_may_be_deleted_and_a_used_one_not() {
    let wards = Wards::new();
    assert_eq!(wards.run(&["budget"]).code, 0);
    let may = "may also be deleted";
    wards.edit("wards", "others");
    let told = wards.told(&["budget"], "other_dataset");
    assert!(told.contains(may), "{told}");
    wards.edit("epsilon = 100.0", "epsilon = 100.0\ndelta = 1e-8");
    let told = wards.told(&["budget"], "other_mode");
    assert!(
        told.contains(may) && told.contains("take `delta` out"),
        "{told}"
    );
    wards.edit("", "");
    assert_eq!(wards.query("SELECT COUNT(*) FROM t", &[]).code, 0);
    wards.edit("wards", "others");
    let told = wards.told(&["budget"], "other_dataset");
    assert!(!told.contains(may), "{told}");
}

#[test]
fn a_check_looks_at_the_ledger() {
    let wards = Wards::new();
    let warns = |what: &str| {
        let run = wards.run(&["check"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let refused = run.stdout.contains("would be refused");
        assert_eq!(refused, !what.is_empty(), "{}", run.stdout);
        assert!(run.stdout.contains(what), "{what}: {}", run.stdout);
    };
    warns("");
    assert!(!wards.has("whit.ledger"), "looking makes none");
    assert_eq!(wards.query("SELECT COUNT(*) FROM t", &[]).code, 0);
    warns("");
    for (from, to, what) in [
        ("wards", "others", "name the data set"),
        ("100.0", "200.0", "whit ledger cap"),
        ("100.0", "100.0\ndelta = 1e-8", "take `delta` out"),
        ("[0, 10]", "[0, 20]", "whit ledger accept"),
    ] {
        wards.edit(from, to);
        warns(what);
    }
    wards.edit("", "");
    warns("");
    fs::remove_file(wards.0.path().join("whit.ledger.mark")).expect("was there");
    warns("whit ledger recover");
}

#[test]
fn without_its_mark_a_ledger_answers_nothing() {
    let wards = Wards::new();
    assert_eq!(wards.query("SELECT COUNT(*) FROM t", &[]).code, 0);
    let path = |name: &str| wards.0.path().join(name);
    let yesterday = fs::read(path("whit.ledger")).expect("a ledger");
    assert_eq!(wards.query("SELECT SUM(x) FROM t", &[]).code, 0);
    fs::write(path("whit.ledger"), yesterday).expect("written");
    fs::remove_file(path("whit.ledger.mark")).expect("was there");
    for arguments in [
        &["ledger", "verify"][..],
        &["budget"],
        &["query", "SELECT SUM(x) FROM t"],
    ] {
        let run = wards.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (4, ""), "{arguments:?}");
        assert!(run.stderr.contains("whit ledger recover"), "{}", run.stderr);
    }
    assert_eq!(wards.run(&["ledger", "recover", "--close-budget"]).code, 0);
    assert_eq!(wards.query("SELECT SUM(x) FROM t", &[]).code, 3);
    // A copy elsewhere has neither key nor mark, and says so.
    fs::remove_file(path("whit.ledger.key")).expect("was there");
    let run = wards.run(&["ledger", "verify", "--format", "json"]);
    let report = answer(&run);
    assert_eq!(
        (&report["key"], &report["mark"]),
        (&"missing".into(), &"fits".into())
    );
}

#[test]
fn a_delta_that_is_suggested_passes() {
    let wards = Wards::new();
    let suggested = |told: &str, before: &str| {
        let (_, rest) = told.split_once(before).unwrap_or_else(|| panic!("{told}"));
        let end = rest.find([',', ' ', ';']).expect("more follows");
        rest[..end].to_owned()
    };
    wards.edit("epsilon = 100.0", "epsilon = 100.0\ndelta = 1e-8");
    let first = wards.told(&["query", BY_X], "keys_need_delta");
    let delta = suggested(&first, "give --delta ");
    assert_eq!(wards.query(BY_X, &["--delta", &delta]).code, 0);
    let all = ["query", BY_X, "--delta", "5e-9"];
    let told = wards.told(&all, "budget_exhausted");
    let most = suggested(&told, "no more than ");
    let budget = wards.run(&["budget"]).stdout;
    assert!(
        budget
            .replace(char::is_whitespace, " ")
            .contains("can spend delta"),
        "{budget}"
    );
    assert_eq!(wards.query(BY_X, &["--delta", &most]).code, 0);
}

#[test]
fn a_ledger_without_delta_says_what_its_owner_must_do() {
    let wards = Wards::new();
    assert_eq!(wards.query("SELECT COUNT(*) FROM t", &[]).code, 0);
    for more in [&[][..], &["--delta", "1e-8"]] {
        let run = wards.query(BY_X, more);
        assert!(run.stderr.contains("begin a new ledger"), "{}", run.stderr);
    }
    wards.edit("epsilon = 100.0", "epsilon = 100.0\ndelta = 1e-8");
    wards.told(&["ledger", "cap"], "ledger_without_delta");
}

/// A delta that buys nothing is left out; keys have nothing to do with it.
#[test]
fn a_delta_that_only_noise_wants_is_left_out() {
    let wards = Wards::new();
    let sums: Vec<String> = (0..30).map(|more| format!("SUM(x + {more})")).collect();
    let sql = format!("SELECT {} FROM t", sums.join(", "));
    let run = wards.query(&sql, &["--delta", "1e-6"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("hint: leave --delta out"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("key"), "{}", run.stderr);
    assert_eq!(wards.query(&sql, &[]).code, 0);
}

#[test]
fn headers_do_not_depend_on_rows() {
    let wards = Wards::new();
    let header = |having: &str| {
        let sql = format!(
            "SELECT ward, COUNT(*) AS n, COUNT(*) * 2 AS m, AVG(x) / COUNT(*) AS r FROM t GROUP BY ward HAVING COUNT(*) > {having}"
        );
        let run = wards.query(&sql, &["--format", "csv"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let lines: Vec<&str> = run.stdout.lines().collect();
        (lines[0].to_owned(), lines.len())
    };
    let (all, none) = (header("-1000"), header("1000000"));
    assert_eq!((all.1, none.1), (3, 1));
    assert_eq!(all.0, none.0);
    assert_eq!(all.0, "ward,n,n_low,n_high,m,m_low,m_high,r");
}

#[test]
fn answers_say_what_their_intervals_do_not() {
    let wards = Wards::new();
    let chosen = "chosen by noisy numbers";
    let unbounded = "has noise and no interval";
    for (sql, expected) in [
        ("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", vec![]),
        (
            "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward ORDER BY n",
            vec![],
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward ORDER BY n LIMIT 1",
            vec![chosen],
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward HAVING COUNT(*) > 0",
            vec![chosen],
        ),
        ("SELECT COUNT(*) + 1 FROM t", vec![]),
        ("SELECT AVG(x) / COUNT(*) FROM t", vec![unbounded]),
        ("SELECT COUNT(*) % 7 FROM t", vec![unbounded]),
        (
            "SELECT CASE WHEN COUNT(*) > 3 THEN 1 ELSE 2 END FROM t",
            vec![unbounded],
        ),
    ] {
        let told = |run: Run| run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = [
            told(wards.query(sql, &[])),
            told(wards.query(sql, &["--explain"])),
            told(wards.query(sql, &["--format", "json"])),
        ];
        for text in texts {
            for note in [chosen, unbounded] {
                assert_eq!(
                    text.contains(note),
                    expected.contains(&note),
                    "{sql}: {text}"
                );
            }
        }
    }
}

#[test]
fn what_saturates_saturates_with_its_interval() {
    let wards = Wards::new();
    // With so much noise, most numbers are beyond 64 bits. The last is on a grid whose steps are no ones.
    let checks = [
        ("COUNT(*)", "1e-19"),
        ("SUM(x)", "1e-19"),
        ("SUM(x * 200000000000000000)", "0.1"),
    ];
    for ((column, epsilon), number) in checks
        .iter()
        .flat_map(|check| (0..8).map(move |n| (check, n)))
    {
        let sql = format!("SELECT {column} FROM t WHERE x <> {number}");
        let found = answer(&wards.query(&sql, &["--epsilon", epsilon, "--format", "json"]));
        let value = found["rows"][0][0].as_i64().expect("an integer") as f64;
        let end = |side: usize| found["intervals"][0][0][side].as_f64().expect("a number");
        assert!(end(0) <= value && value <= end(1), "{found}");
        assert!(
            end(0) >= i64::MIN as f64 && end(1) <= i64::MAX as f64,
            "{found}"
        );
    }
}

/// A mean may be zero, and then ends of intervals are zero, and not beside it.
///
/// With so much noise, nearly all intervals begin at zero; of 95% confidence, about one in forty begins elsewhere, so several are asked for.
#[test]
fn ends_that_are_zero_are_printed_as_zero() {
    let wards = Wards::new();
    let mut zeros = 0;
    for number in 0..8 {
        let sql = format!("SELECT AVG(x) * 1.0 AS m FROM t WHERE x <> {number}");
        let run = wards.query(&sql, &["--epsilon", "1e-6", "--format", "csv"]);
        let (_, row) = run.stdout.trim_end().split_once('\n').expect("a row");
        let low = row.split(',').nth(1).expect("a lower end");
        if low != "0" {
            let beyond: f64 = low.parse().expect("a number");
            assert!(beyond > 1e-6, "beside zero: {row}");
            continue;
        }
        // The same statement again is the same answer, now as a table.
        let shown = wards.query(&sql, &["--epsilon", "1e-6"]).stdout;
        let cell = shown.lines().nth(1).expect("a row");
        assert!(cell.contains(" (0.0 to ") && !cell.contains('-'), "{cell}");
        zeros += 1;
    }
    assert!(zeros >= 2, "{zeros} of 8 intervals begin at zero");
}

#[test]
fn an_explanation_tells_threshold_and_room() {
    let wards = Wards::new();
    wards.edit("epsilon = 100.0", "epsilon = 100.0\ndelta = 1e-6");
    let asked = &["--delta", "1e-8", "--explain", "--format", "json"];
    let found = answer(&wards.query(BY_X, asked));
    assert!(found["room"].as_u64().expect("a number") > 0);
    let units = |what: &str| found["threshold"][what].as_u64().expect("a number");
    assert!(units("units_half") > 10 && units("units_always") >= 2 * units("units_half") - 2);
    let found = answer(&wards.query("SELECT COUNT(*) FROM t", asked));
    assert_eq!(found["threshold"], Value::Null);
}

#[test]
fn statements_that_look_like_others_are_told_apart() {
    let wards = Wards::new();
    for (sql, code, hint) in [
        (
            "SELECT SUM(x) OVER () FROM t",
            "window_function",
            "GROUP BY",
        ),
        (
            "SELECT ward, RANK() OVER (ORDER BY COUNT(*)) FROM t GROUP BY ward",
            "window_function",
            "GROUP BY",
        ),
        (
            "SELECT COUNT(*) FROM t WHERE ward = \"north\"",
            "sql_binding",
            "'north'",
        ),
        (
            "SELECT COUNT(*) FROM p",
            "no_private_table",
            "private table",
        ),
    ] {
        let told = wards.told(&["query", sql], code);
        assert!(told.contains(hint), "{told}");
    }
    for epsilon in ["0", "-1", "1e-400", "1e-30", "nan", "1025"] {
        let run = wards.query("SELECT COUNT(*) FROM t", &["--epsilon", epsilon]);
        let hint = "hint: give epsilon as a number above 0, up to 1024";
        assert!(run.stderr.contains(hint), "{epsilon}: {}", run.stderr);
    }
}
