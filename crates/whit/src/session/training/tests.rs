//! Runs are paid for before a row is read, once each, whole.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the tests' own, beside the door"
)]

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use whit_core::{Fault, FaultKind};
use whit_testkit::Seeded;

use super::*;
use crate::session::Catalog;

const RECIPE: &str = "
[data]
path = 'points.csv'
label = 'side'
classes = 2
n_public = 100
[model]
kind = 'logistic'
[plan]
rate = 0.1
steps = 40
clip = 1.0
noise_multiplier = 8.0
delta = 1e-6
";
const TABLE: &str = "[table.points]\nsource = 'points.csv'\nunit = 'who'\nrows_per_unit = 1\n";

/// A folder with a catalog's table, a recipe for it, and room for runs.
struct Stage {
    folder: TempDir,
    recipe: Recipe,
    plan: Plan,
}

impl Stage {
    fn new(recipe: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut text = String::from("who,x,y,side\n");
        for row in 0..200 {
            let (who, x) = (row % 120, f64::from(row * 37 % 101) / 50.0 - 1.0);
            text += &format!("p{who},{x},0.5,{}\n", i32::from(x > 0.0));
        }
        fs::write(folder.path().join("points.csv"), text).expect("writable");
        let recipe: Recipe = toml::from_str(recipe).expect("a recipe");
        let plan = recipe.plan().expect("a plan");
        Self {
            folder,
            recipe,
            plan,
        }
    }

    fn session(&self, budget: &str, table: &str) -> Session {
        let text = format!("[dataset]\nid = 'points'\n[budget]\n{budget}\n{table}");
        let catalog = Catalog::parse(&text).expect("a catalog");
        let ledger = self.folder.path().join("whit.ledger");
        Session::open(catalog, self.folder.path(), &ledger).expect("opens")
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn order(&self) -> Order<'_> {
        Order {
            table: "points",
            recipe: &self.recipe,
            plan: &self.plan,
            analyst: None,
            folder: self.folder.path(),
        }
    }

    fn train(&self, session: &Session, out: &str, seed: u64) -> Result<Course> {
        let desk = Desk {
            out: &self.out(out),
            interval: NonZeroUsize::new(5).expect("not zero"),
            threads: NonZeroUsize::MIN,
        };
        session.train(&self.order(), &desk, &mut Seeded::new(seed))
    }
}

const BUDGET: &str = "epsilon = 8.0\ndelta = 1e-4";

fn left(session: &Session) -> f64 {
    session.budget(None).expect("open").dataset.epsilon
}

fn code(refused: Result<Course>) -> &'static str {
    refused.err().expect("refused").code()
}

#[test]
fn two_runs_pay_twice_and_a_run_that_goes_on_pays_once() {
    let stage = Stage::new(RECIPE);
    let session = stage.session(BUDGET, TABLE);
    let before = left(&session);
    let mut first = stage.train(&session, "a", 1).expect("room");
    assert!(!first.resumed && first.charge.epsilon > 0.0);
    let after_one = left(&session);
    assert!(after_one < before);
    assert!(first.charge.epsilon >= stage.plan.epsilon().upper());
    // It stops after some steps.
    let mut entropy = Seeded::new(2);
    for _ in 0..7 {
        first.trainer.step(&mut entropy).expect("entropy");
    }
    let receipt = first.receipt;
    drop(first.trainer);
    let mut again = stage.train(&session, "a", 3).expect("paid for");
    assert!(again.resumed && again.charge.epsilon == 0.0);
    assert_eq!((again.charge.rho, left(&session)), (Some(0.0), after_one));
    assert_eq!(again.receipt, receipt);
    assert_eq!((again.trainer.taken(), again.trainer.steps_kept()), (10, 5));
    let mut taken = 0;
    let ran = again.trainer.run(&mut entropy, |_| {
        taken += 1;
        Ok(())
    });
    assert_eq!((ran, taken), (Ok(()), 30));
    // Another folder is another run.
    let second = stage.train(&session, "b", 4).expect("room");
    assert!(!second.resumed && left(&session) < after_one);
    assert_ne!(second.receipt, receipt);
    // While one is under way, nobody else goes on with it.
    assert_eq!(code(stage.train(&session, "b", 5)), "checkpoint_busy");
}

/// The data come through a pipe that gives the first line and then nothing: whoever looks for a row waits until the pipe is closed.
#[cfg(unix)]
#[test]
fn a_refused_charge_has_read_no_row_and_written_nothing() {
    use std::io::Write;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    let stage = Stage::new(RECIPE);
    let session = stage.session("epsilon = 0.01\ndelta = 1e-4", TABLE);
    let pipe = stage.out("points.csv");
    fs::remove_file(&pipe).expect("there");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("runs").success());
    let (refused, heard) = channel::<()>();
    let writer = std::thread::spawn(move || {
        // Waits until somebody opens it.
        let file = fs::OpenOptions::new().write(true).open(&pipe);
        let mut file = file.expect("a pipe");
        file.write_all(b"who,x,y,side\n").expect("a reader");
        // Far longer than a refusal takes; only whoever waits for rows gets here.
        heard.recv_timeout(Duration::from_secs(60)).is_err()
    });
    let out = stage.out("a");
    let desk = Desk {
        out: &out,
        interval: NonZeroUsize::MIN,
        threads: NonZeroUsize::MIN,
    };
    let answer = session.train(&stage.order(), &desk, &mut Seeded::new(1));
    // The writer may have given up already.
    let _ = refused.send(());
    let waited_for_rows = writer.join().expect("ends");
    let answer = answer.err().expect("too dear");
    assert_eq!(
        (answer.kind(), answer.code()),
        (FaultKind::Exhausted, "budget_exhausted")
    );
    assert!(!waited_for_rows);
    assert!(!out.exists());
}

#[test]
fn a_budget_without_a_delta_refuses_with_what_would_pass() {
    let stage = Stage::new(RECIPE);
    let session = stage.session("epsilon = 8.0", TABLE);
    let refused = stage.train(&session, "a", 1).err().expect("Gaussian noise");
    assert_eq!(refused.code(), "budget_without_delta");
    assert!(refused.suggestion().contains("delta of more than"));
    assert_eq!(left(&session), 8.0);
    assert!(!stage.out("a").exists());
}

/// A word that is misspelt would make every row an empty example, and be paid for.
#[test]
fn words_that_the_catalog_does_not_declare_are_refused_before_the_charge() {
    let table = format!(
        "{TABLE}column.side = {{ values = ['left', 'right'] }}\ncolumn.y = {{ values = ['a', 'b'] }}\n"
    );
    let check = |recipe: &str, expected: Option<&str>| {
        let stage = Stage::new(recipe);
        let session = stage.session(BUDGET, &table);
        let before = left(&session);
        let refused = stage.train(&session, "a", 1).err();
        assert_eq!(refused.map(|refused| refused.code()), expected, "{recipe}");
        assert_eq!(left(&session) == before, expected.is_some());
    };
    let classes = |names: &str| {
        let columns = "columns = ['x']\nclasses = ";
        RECIPE.replace("classes = 2", &format!("{columns}{names}"))
    };
    check(&classes("['left', 'right']"), None);
    check(&classes("['left', 'write']"), Some("other_word"));
    check(
        &classes("['left', 'right']\ncategories = { y = ['a', 'c'] }")
            .replace("['x']", "['x', 'y']"),
        Some("other_word"),
    );
    // Words that are to be read as numbers.
    check(
        &classes("['left', 'right']").replace("['x']", "['x', 'y']"),
        Some("other_word"),
    );
}

#[test]
fn whom_the_catalog_protects_is_not_the_recipes_to_say() {
    let several = TABLE.replace("rows_per_unit = 1", "rows_per_unit = 5");
    let stage = Stage::new(RECIPE);
    let session = stage.session(BUDGET, &several);
    assert_eq!(code(stage.train(&session, "a", 1)), "several_rows_per_unit");
    drop(session);
    let with = |line: &str| RECIPE.replace("[data]", &format!("[data]\n{line}"));
    let check = |recipe: &str, expected: &str| {
        let stage = Stage::new(recipe);
        let session = stage.session(BUDGET, TABLE);
        assert_eq!(code(stage.train(&session, "a", 1)), expected, "{recipe}");
        assert!(!stage.out("a").exists() && session.ledger().head().is_ok());
    };
    check(&with("unit = 'x'\nrows_per_unit = 1"), "other_unit");
    check(&with("columns = ['who']"), "data_field_domain");
    check(&with("columns = ['z']"), "unknown_column");
    check(
        &format!("{RECIPE}relation = 'replace_one'"),
        "other_relation",
    );
    // One row of each is enough, whatever the catalog lets others have.
    let stage = Stage::new(&with("rows_per_unit = 1"));
    let session = stage.session(BUDGET, &several);
    assert!(stage.train(&session, "a", 1).is_ok());
}

#[test]
fn a_run_goes_on_only_with_what_it_was_begun_with() {
    let stage = Stage::new(RECIPE);
    let people =
        ["ann", "ben"].map(|name| format!("[analyst.{name}]\nepsilon = 8.0\ndelta = 1e-4\n"));
    let session = stage.session(&format!("{BUDGET}\n{}", people.concat()), TABLE);
    let train = |name: &'static str, out: &str| {
        let order = Order {
            analyst: Some(name),
            ..stage.order()
        };
        let desk = Desk {
            out: &stage.out(out),
            interval: NonZeroUsize::MIN,
            threads: NonZeroUsize::MIN,
        };
        session.train(&order, &desk, &mut Seeded::new(1))
    };
    let left = || session.budget(Some("ann")).expect("open");
    drop(train("ann", "a").expect("room"));
    assert!(left().analyst.is_some_and(|left| left.epsilon < 8.0));
    assert_eq!(code(train("ben", "a")), "other_run");
    assert!(train("ann", "a").is_ok_and(|course| course.resumed));
    // Nor with a run that nobody has paid for.
    let run = session.protect_examples(&stage.order()).expect("fits");
    let run = run.run(&stage.plan);
    let free = stage.out("free");
    fs::create_dir(&free).expect("writable");
    let place = Place::open(&free, run).expect("free");
    let payment = Payment::uncharged(&stage.plan, whit_learn::Uncharged);
    place.start(payment, vec![0.0; 6]).expect("writable");
    drop(place);
    let spent = left();
    assert_eq!(code(train("ann", "free")), "other_run");
    assert_eq!(left(), spent);
}

/// A copy has the same rows, and may have any others: its ledger is not this one.
#[test]
fn a_run_is_on_the_file_of_the_table_that_is_charged() {
    let stage = Stage::new(&RECIPE.replace("points.csv", "others.csv"));
    let (table, others) = (stage.out("points.csv"), stage.out("others.csv"));
    fs::copy(&table, &others).expect("writable");
    let session = stage.session(BUDGET, TABLE);
    let before = left(&session);
    assert_eq!(code(stage.train(&session, "a", 1)), "other_file");
    let quoted = session.quote(&stage.order()).err();
    let quoted = quoted.expect("refused");
    assert_eq!(quoted.code(), "other_file");
    assert!(quoted.suggestion().contains("points.csv"), "{quoted}");
    assert!(left(&session) == before && !stage.out("a").exists());
    // Another name of the same file is the same rows.
    fs::remove_file(&others).expect("there");
    fs::hard_link(&table, &others).expect("writable");
    assert!(stage.train(&session, "a", 1).is_ok());
}

#[test]
fn what_could_not_be_kept_or_clipped_is_noticed_before_the_charge() {
    let stage = Stage::new(RECIPE);
    let session = stage.session(BUDGET, TABLE);
    let before = left(&session);
    // A file is no folder.
    let failed = stage.train(&session, "points.csv/a", 1);
    assert_eq!(code(failed), "out_not_written");
    // Nor is a folder that stands where the run would be written.
    let run = session.protect_examples(&stage.order()).expect("fits");
    fs::create_dir(stage.out("a")).expect("writable");
    let place = Place::open(&stage.out("a"), run.run(&stage.plan)).expect("free");
    let part = place.path().with_extension("part");
    fs::create_dir(&part).expect("writable");
    drop(place);
    assert_eq!(code(stage.train(&session, "a", 1)), "checkpoint_unwritable");
    // A run that is under way elsewhere.
    fs::remove_dir(&part).expect("empty");
    let place = Place::open(&stage.out("a"), run.run(&stage.plan)).expect("free");
    assert_eq!(code(stage.train(&session, "a", 1)), "checkpoint_busy");
    drop(place);
    assert_eq!(left(&session), before);
    assert!(stage.train(&session, "a", 1).is_ok());
    // Of the smallest clip norm there is, a layer's share is too small.
    let tiny = RECIPE.replace("clip = 1.0", "clip = 1e-9\nclipping = 'per_layer'");
    let tiny = Stage::new(&tiny.replace("'logistic'", "'mlp'\nhidden = [4]"));
    let session = tiny.session(BUDGET, TABLE);
    assert_eq!(code(tiny.train(&session, "a", 1)), "out_of_range");
    assert!(left(&session) == before && !tiny.out("a").exists());
}

/// Whatever happens after the charge, it stays: the plan of a folder that is lost is paid for again.
#[test]
fn a_run_that_is_lost_stays_paid() {
    let stage = Stage::new(RECIPE);
    let session = stage.session(BUDGET, TABLE);
    let before = left(&session);
    drop(stage.train(&session, "a", 2).expect("room"));
    fs::remove_dir_all(stage.out("a")).expect("there");
    let after_one = left(&session);
    let again = stage.train(&session, "a", 3).expect("room");
    assert!(!again.resumed && after_one < before && left(&session) < after_one);
}

/// As for statements: a failure that rows may have caused stops everything until the owner has looked.
#[test]
fn rows_that_cannot_be_read_suspend_the_data_set() {
    let stage = Stage::new(RECIPE);
    let session = stage.session(BUDGET, TABLE);
    let paid = stage.train(&session, "a", 1).expect("room");
    let Payer::Ledger { sequence, .. } = *paid.trainer.payer() else {
        panic!("a ledger was charged");
    };
    let failed: Result<()> = session.trained_or_suspend(
        sequence,
        Err(whit_learn::Error::TooManyExamples { most: 1 }),
    );
    assert!(failed.is_err());
    assert!(stage.train(&session, "b", 2).is_err(), "nothing is charged");
    drop(paid);
    let again = stage
        .train(&session, "a", 1)
        .err()
        .map(|error| error.code());
    assert_eq!(again, Some("suspended"), "nor are rows read again");
    let quoted = session.quote(&stage.order()).expect("priced");
    assert_eq!((quoted.room, quoted.objection.is_some()), (0, true));
    session.ledger().resume().expect("the owner has looked");
    assert!(stage.train(&session, "b", 2).is_ok());
}

#[test]
fn the_cheaper_of_two_covers_is_charged_and_settled() {
    let stage = Stage::new(RECIPE);
    let session = stage.session(BUDGET, TABLE);
    let quoted = session.quote(&stage.order()).expect("priced");
    let epsilon = stage.plan.epsilon().upper();
    let rho = quoted.charge.rho.expect("concentrated");
    // Everybody in every step would be 40/(2·64).
    assert!(
        rho < 40.0 / 128.0 && rho >= epsilon * epsilon / 2.0,
        "{rho}"
    );
    assert!(quoted.charge.delta0.is_some_and(|delta| delta >= 1e-6));
    // Two steps of nearly everybody are cheaper by themselves.
    let few = RECIPE.replace("rate = 0.1", "rate = 1.0");
    let few = Stage::new(&few.replace("steps = 40", "steps = 2"));
    let quoted = few
        .session(BUDGET, TABLE)
        .quote(&few.order())
        .expect("priced");
    assert_eq!(quoted.charge.delta0, Some(0.0));
    assert_eq!(quoted.charge.rho, Some(2.0 / 128.0));
}

/// What adds less to one sum may not fit into the other.
#[test]
fn a_cover_is_chosen_for_both_sums() {
    let check = |delta: &str, by_guarantee: bool| {
        let stage = Stage::new(RECIPE);
        let session = stage.session(&format!("epsilon = 8.0\ndelta = {delta}"), TABLE);
        let quoted = session.quote(&stage.order()).expect("priced").charge;
        let charged = stage.train(&session, "a", 1).expect("room").charge;
        assert_eq!(charged, quoted);
        assert_eq!(charged.delta0 > Some(0.0), by_guarantee, "{charged:?}");
    };
    check("1e-4", true);
    // Half of the budget's delta is there to be added up, and the guarantee's does not fit into that.
    check("1.5e-6", false);
    // It fits once, and the run by itself twice.
    check("2.5e-6", false);
}

#[test]
fn whichever_cover_fits_into_what_is_left_is_charged() {
    let stage = Stage::new(RECIPE);
    let session = stage.session("epsilon = 8.0\ndelta = 1e-5", TABLE);
    let runs = (0..20).map_while(|run| stage.train(&session, &run.to_string(), run).ok());
    let deltas: Vec<bool> = runs.map(|run| run.charge.delta0 > Some(0.0)).collect();
    // The guarantee's delta fits five times, and concentrated loss is left for others.
    assert!(deltas.len() > 5, "{deltas:?}");
    assert!(deltas[0] && !deltas[deltas.len() - 1], "{deltas:?}");
}

/// A ledger that is not there yet says the same as one that has just begun, and is not made for that.
#[test]
fn a_run_is_rehearsed_without_a_ledger() {
    let stage = Stage::new(RECIPE);
    let check = |budget: &str, table: &str, out: &str, expected: Option<&str>| {
        let text = format!("[dataset]\nid = 'points'\n[budget]\n{budget}\n{table}");
        let catalog = Catalog::parse(&text).expect("a catalog");
        let desk = Desk {
            out: &stage.out(out),
            interval: NonZeroUsize::MIN,
            threads: NonZeroUsize::MIN,
        };
        let names = || {
            let entries = fs::read_dir(stage.folder.path()).expect("there");
            let names = entries.map(|entry| entry.expect("listed").file_name());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let before = names();
        let rehearsed = rehearse_run(&catalog, stage.folder.path(), &stage.order(), &desk);
        assert_eq!(rehearsed.err().map(|error| error.code()), expected);
        let unopened = quote_unopened(&catalog, stage.folder.path(), &stage.order());
        assert_eq!(names(), before, "nothing was made");
        let session = stage.session(budget, table);
        assert_eq!(session.quote(&stage.order()), unopened);
        drop(session);
        for entry in names().difference(&before) {
            fs::remove_file(stage.folder.path().join(entry)).expect("the ledger's");
        }
        unopened.map(|quoted| (quoted.room, quoted.objection.is_some()))
    };
    let large = check(BUDGET, TABLE, "a", None).expect("priced");
    assert!(large.0 > 1 && !large.1, "{large:?}");
    let small = check(
        "epsilon = 0.01\ndelta = 1e-4",
        TABLE,
        "a",
        Some("budget_exhausted"),
    );
    assert_eq!(small, Ok((0, true)));
    let pure = check("epsilon = 8.0", TABLE, "a", Some("budget_without_delta"));
    assert!(pure.is_err());
    assert!(check(BUDGET, TABLE, "points.csv/a", Some("out_not_written")).is_ok());
    // What another ledger has paid for is no run of this one.
    let catalog = stage.session(BUDGET, TABLE);
    drop(stage.train(&catalog, "a", 1).expect("room"));
    drop(catalog);
    for name in ["whit.ledger", "whit.ledger.key", "whit.ledger.mark"] {
        fs::remove_file(stage.out(name)).expect("the ledger's");
    }
    assert!(check(BUDGET, TABLE, "a", Some("other_run")).is_ok());
}

/// The room that is told is the number of runs that are charged, for as long as they are charged alike.
#[test]
fn there_is_room_for_as_many_runs_as_are_told() {
    let stage = Stage::new(RECIPE);
    let session = stage.session("epsilon = 2.0\ndelta = 1e-2", TABLE);
    let room = session.quote(&stage.order()).expect("priced").room;
    assert!(room > 1);
    for run in 0..room {
        assert!(stage.train(&session, &run.to_string(), run).is_ok());
        let quoted = session.quote(&stage.order()).expect("priced");
        assert!(quoted.room + run + 1 >= room, "{quoted:?}");
    }
    let last = session.quote(&stage.order()).expect("priced");
    assert_eq!((last.room, last.objection.is_some()), (0, true));
    assert_eq!(code(stage.train(&session, "last", 1)), "budget_exhausted");
}

/// The initial weights are no model that was paid for. No row is read again for them, and a quote does not promise that they go on.
#[test]
fn a_run_of_which_nothing_is_left_does_not_go_on() {
    let stage = Stage::new(&RECIPE.replace("steps = 40", "steps = 5"));
    let session = stage.session(BUDGET, TABLE);
    let mut paid = stage.train(&session, "a", 1).expect("room");
    paid.trainer.step(&mut Seeded::new(2)).expect("entropy");
    drop(paid);
    let after = left(&session);
    assert_eq!(code(stage.train(&session, "a", 3)), "checkpoint_lost");
    let desk = Desk {
        out: &stage.out("a"),
        interval: NonZeroUsize::MIN,
        threads: NonZeroUsize::MIN,
    };
    let quoted = session.quote_at(&stage.order(), &desk).expect("priced");
    let why = quoted.objection.expect("it would be refused");
    assert!(!quoted.goes_on && why.contains("none is kept"), "{why}");
    assert_eq!(left(&session), after, "spent stays spent");
    assert!(
        stage.train(&session, "b", 4).is_ok(),
        "nor is anything suspended"
    );
}
