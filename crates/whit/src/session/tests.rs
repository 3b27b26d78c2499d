#![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

use std::path::PathBuf;

use whit_core::{Epsilon, Fault, FaultKind};
use whit_testkit::{FailingEntropy, Seeded};

use super::*;
use crate::stats::{self, Statistic};

const TABLES: &str = r#"
    [table.visits]
    source = "visits.csv"
    unit = "person"
    rows_per_unit = 3
    [table.visits.column]
    city = { values = ["Oslo", "Rome"] }
    cost = { type = "int", range = [0, 100] }
"#;
const COUNT: &str = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city";

struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut csv = String::from("person,city,cost\n");
        for person in 0..300 {
            let city = if person % 3 == 0 { "Rome" } else { "Oslo" };
            csv += &format!("p{person},{city},{}\n", person % 100);
        }
        std::fs::write(folder.path().join("visits.csv"), csv).expect("written");
        Self { folder }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("whit.ledger")
    }

    fn open(&self, head: &str) -> Result<Session> {
        let text = format!("{head}\n{TABLES}");
        let catalog = Catalog::parse(&text).expect("a catalog");
        Session::open(catalog, self.folder.path(), &self.ledger())
    }
}

const PURE: &str = "[dataset]\nid = \"v\"\n[budget]\nepsilon = 1.0";
const ZCDP: &str = "[dataset]\nid = \"v\"\n[budget]\nepsilon = 1.0\ndelta = 1e-6";

fn ask(sql: &str, epsilon: f64) -> Question {
    let mut question = Question::new(sql);
    question.asked = Asked {
        epsilon: Some(Epsilon::new(epsilon).expect("an epsilon")),
        groups_per_unit: Some(1),
        rows_per_group: Some(1),
        ..Asked::default()
    };
    question
}

fn run(session: &Session, question: &Question) -> Result<Reply> {
    session.query(question, &mut Seeded::new(7))
}

/// However a statement divides its epsilon.
#[test]
fn ten_tenths_fit_into_one_and_no_more() {
    for columns in ["COUNT(*)", "COUNT(*), SUM(cost), AVG(cost)"] {
        let house = House::new();
        let session = house.open(PURE).expect("opened");
        let tenth = |number: u32| {
            let sql = format!("SELECT {columns} FROM visits WHERE cost <> {number}");
            run(&session, &ask(&sql, 0.1))
        };
        for number in 0..10 {
            let reply = tenth(number).expect("it fits");
            let charge = reply.charge.epsilon;
            assert!(charge <= 0.1 && charge > 0.1 - 1e-7, "{charge}");
        }
        let error = tenth(10).expect_err("nothing is left");
        assert_eq!(error.kind(), FaultKind::Exhausted, "{error}");
    }
}

#[test]
fn an_answer_is_paid_once_and_stored() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let reply = run(&session, &ask(COUNT, 0.25)).expect("answered");
    assert_eq!(reply.charge.epsilon, 0.25);
    assert_eq!((reply.charge.rho, reply.charge.delta0), (None, None));
    assert_eq!(reply.remaining.dataset.epsilon, 0.75);
    assert!(!reply.reused && !reply.dummy);
    // Layout is no other question; another epsilon, confidence or analyst is.
    let same = run(&session, &ask(&COUNT.replace(' ', "\n "), 0.25)).expect("stored");
    assert!(same.reused);
    assert_eq!((same.charge.epsilon, &same.answer), (0.0, &reply.answer));
    assert_eq!(same.receipt, reply.receipt);
    let mut named = ask(COUNT, 0.25);
    named.analyst = Some("ann".into());
    let mut sure = ask(COUNT, 0.25);
    sure.confidence = Confidence::new(0.99).expect("a confidence");
    for other in [named, sure, ask(COUNT, 0.125)] {
        assert!(!run(&session, &other).expect("answered").reused);
    }
    let left = session.budget(None).expect("there is a cap").dataset;
    assert_eq!(left.epsilon, 0.125);
}

#[test]
fn a_budget_survives_its_session_and_ends() {
    let house = House::new();
    let question = |n: u32| {
        ask(
            &format!("SELECT COUNT(*) FROM visits WHERE cost < {n}"),
            0.5,
        )
    };
    for n in [1, 2] {
        let session = house.open(PURE).expect("opened");
        run(&session, &question(n)).expect("within the cap");
    }
    let session = house.open(PURE).expect("opened");
    let error = run(&session, &question(3)).expect_err("all is spent");
    assert_eq!(
        (error.kind(), error.code()),
        (FaultKind::Exhausted, "budget_exhausted")
    );
    assert!(run(&session, &question(1)).expect("stored").reused);
    // To look at the price is free, even then.
    let explained = session.explain(&question(3)).expect("priced");
    assert_eq!(explained.charge.epsilon, 0.5);
    assert_eq!(explained.remaining.dataset.epsilon, 0.0);
}

#[test]
fn concentrated_losses_add_up() {
    let house = House::new();
    let session = house.open(ZCDP).expect("opened");
    let reply = run(&session, &ask(COUNT, 0.1)).expect("answered");
    let rho = reply.charge.rho.expect("a sum of losses");
    assert!((0.004_999..=0.005).contains(&rho), "{rho}");
    assert_eq!(reply.charge.delta0, Some(0.0));
    assert!(reply.remaining.dataset.epsilon < 1.0);
}

#[test]
fn refusals_cost_nothing() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    for (sql, kind) in [
        ("SELECT person FROM visits", FaultKind::Refused),
        ("SELECT COUNT(*) FROM nowhere", FaultKind::Invalid),
        ("SELECT", FaultKind::Invalid),
    ] {
        let error = run(&session, &ask(sql, 0.5)).expect_err(sql);
        assert_eq!(error.kind(), kind, "{sql}: {error}");
    }
    assert_eq!(session.budget(None).expect("a cap").dataset.epsilon, 1.0);
}

#[test]
fn a_catalog_cannot_take_back_what_it_promised() {
    let house = House::new();
    drop(house.open(PURE).expect("opened"));
    let code = |head: &str| house.open(head).expect_err(head).code();
    assert_eq!(code(&PURE.replace("1.0", "2.0")), "cap_raised");
    assert_eq!(code(ZCDP), "other_mode");
    assert_eq!(code(&PURE.replace("\"v\"", "\"w\"")), "other_dataset");
    assert!(
        house.open(&PURE.replace("1.0", "0.5")).is_ok(),
        "less is fine"
    );
    assert_eq!(code(PURE), "cap_raised", "and then stays");
}

#[test]
fn teams_and_analysts_have_their_share() {
    let house = House::new();
    let people = "[team.lab]\nepsilon = 0.5\n[analyst.ann]\nteam = \"lab\"\n[analyst.ben]\nteam = \"lab\"\nepsilon = 0.25";
    let session = house.open(&format!("{PURE}\n{people}")).expect("opened");
    let question = |analyst: &str, epsilon: f64| {
        let mut question = ask(COUNT, epsilon);
        question.analyst = Some(analyst.into());
        question
    };
    let reply = run(&session, &question("ben", 0.25)).expect("answered");
    let left = reply.remaining;
    assert_eq!(left.dataset.epsilon, 0.75);
    assert_eq!(left.team.expect("a cap").epsilon, 0.25);
    assert_eq!(left.analyst.expect("a cap").epsilon, 0.0);
    let code = |question: &Question| run(&session, question).expect_err("no room").code();
    assert_eq!(code(&question("ben", 0.125)), "budget_exhausted");
    assert_eq!(code(&question("ann", 0.5)), "budget_exhausted");
    assert_eq!(code(&question("eve", 0.1)), "unknown_analyst");
    assert_eq!(code(&ask(COUNT, 0.1)), "unknown_analyst");
    run(&session, &question("ann", 0.25)).expect("the rest of the team's");
}

#[test]
fn another_version_of_the_data_is_asked_anew() {
    let house = House::new();
    let head = |version: &str| PURE.replace("\"v\"", &format!("\"v\"\nversion = \"{version}\""));
    let ask = ask(COUNT, 0.25);
    assert!(
        !run(&house.open(&head("May")).expect("opened"), &ask)
            .expect("answered")
            .reused
    );
    assert!(
        run(&house.open(&head("May")).expect("opened"), &ask)
            .expect("answered")
            .reused
    );
    assert!(
        !run(&house.open(&head("June")).expect("opened"), &ask)
            .expect("answered")
            .reused
    );
}

/// Whatever ends a statement after its charge, a failure, a crash or a caller who hangs up, refunds nothing; and who asks again pays again
/// for fresh noise, unless the first answer was stored.
#[test]
fn a_failure_after_the_charge_refunds_nothing() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let question = ask(COUNT, 0.25);
    for spent in [0.25, 0.5] {
        let error = session.query(&question, &mut FailingEntropy);
        assert!(error.is_err(), "there is no noise, so there is no answer");
        let left = session.budget(None).expect("a cap").dataset.epsilon;
        assert_eq!(left, 1.0 - spent);
    }
    assert!(!run(&session, &question).expect("answered").reused);
    assert_eq!(session.budget(None).expect("a cap").dataset.epsilon, 0.25);
    assert!(run(&session, &question).expect("stored").reused);
}

/// The same question from many at once is answered once, and the others get that answer.
#[test]
fn identical_questions_at_the_same_time_are_charged_once() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let callers = [(); 16].map(|()| scope.spawn(|| run(&session, &ask(COUNT, 0.25))));
        let replies = callers.map(|caller| caller.join().expect("no panic").expect("answered"));
        replies.into()
    });
    assert_eq!(replies.iter().filter(|reply| !reply.reused).count(), 1);
    assert!(
        replies
            .iter()
            .all(|reply| reply.answer == replies[0].answer)
    );
    assert_eq!(session.budget(None).expect("a cap").dataset.epsilon, 0.75);
}

/// What fails in the engine may tell of the data, so it happens once.
#[test]
fn a_statement_that_cannot_be_executed_suspends_the_data_set() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let (file, aside) = (
        house.folder.path().join("visits.csv"),
        house.folder.path().join("aside"),
    );
    std::fs::rename(&file, &aside).expect("renamed");
    let code = |epsilon: f64| {
        run(&session, &ask(COUNT, epsilon))
            .expect_err("no rows")
            .code()
    };
    assert_eq!(code(0.25), "execution_failed");
    std::fs::rename(&aside, &file).expect("renamed");
    assert_eq!(code(0.25), "suspended");
    assert_eq!(code(0.125), "suspended");
    assert_eq!(session.budget(None).expect("a cap").dataset.epsilon, 0.75);
    session.ledger().resume().expect("it was suspended");
    assert!(!run(&session, &ask(COUNT, 0.25)).expect("answered").reused);
    assert_eq!(session.budget(None).expect("a cap").dataset.epsilon, 0.5);
}

/// Two sessions on one ledger, as two processes have them, and 64 callers with statements of their own: as many are answered
/// as the budget covers, in every round.
#[test]
fn races_spend_no_more_than_the_cap() {
    const CALLERS: usize = 64;
    const COVERED: usize = 4;
    let rounds = if whit_testkit::long() { 100 } else { 10 };
    for round in 0..rounds {
        let house = House::new();
        let sessions = [(); 2].map(|()| house.open(PURE).expect("opened"));
        let answered = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|caller| {
                    let session = &sessions[caller % 2];
                    let sql = format!("SELECT COUNT(*) FROM visits WHERE cost < {caller}");
                    scope.spawn(move || match run(session, &ask(&sql, 0.25)) {
                        Ok(_) => 1,
                        Err(error) => {
                            assert_eq!(error.code(), "budget_exhausted");
                            0
                        }
                    })
                })
                .collect();
            let answers = callers
                .into_iter()
                .map(|caller| caller.join().expect("no panic"));
            answers.sum::<usize>()
        });
        assert_eq!(answered, COVERED, "in round {round}");
    }
}

/// However a statistic divides its epsilon.
#[test]
fn ten_statistics_of_a_tenth_fit_into_one_and_no_more() {
    for statistic in [
        Statistic::Count,
        Statistic::Mean,
        Statistic::Variance,
        Statistic::Median,
    ] {
        let house = House::new();
        let session = house.open(PURE).expect("opened");
        let path = house.folder.path().join("visits.csv");
        let tenth = || {
            let epsilon = Epsilon::new(0.1).expect("an epsilon");
            let mut request = stats::Request::new(statistic.clone(), epsilon);
            request.column = Some("cost".into());
            request.range = (statistic != Statistic::Count)
                .then(|| crate::Bounds::new(0.0, 9.0).expect("a range").into());
            let open = || std::fs::File::open(&path).map_err(|_| crate::Error::Unreadable);
            session.measure("visits", request, None, open, &mut Seeded::new(1))
        };
        for _ in 0..10 {
            tenth().expect("it fits");
        }
        let error = tenth().expect_err("nothing is left");
        assert_eq!(error.kind(), FaultKind::Exhausted, "{statistic:?}: {error}");
    }
}

/// A statistic of a catalogued table protects whom the catalog says, and is charged.
#[test]
fn statistics_pay_from_the_same_ledger() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let measure = |change: &dyn Fn(&mut stats::Request)| {
        let mut request = stats::Request::new(Statistic::Count, Epsilon::new(0.25).expect("one"));
        change(&mut request);
        let path = house.folder.path().join("visits.csv");
        let open = || std::fs::File::open(path).map_err(|_| crate::Error::Unreadable);
        session.measure("visits", request, None, open, &mut Seeded::new(1))
    };
    let measured = measure(&|_| ()).expect("answered");
    assert_eq!(measured.remaining.dataset.epsilon, 0.75);
    assert!(measured.answer.recorded);
    assert_eq!(measured.answer.unit, "person");
    assert_eq!(measured.answer.rows_per_unit, Some(3), "the declared cap");
    let more = measure(&|request| request.rows_per_unit = Some(9)).expect("answered");
    assert_eq!(more.answer.rows_per_unit, Some(3), "is enforced");
    let code = |change: &dyn Fn(&mut stats::Request)| measure(change).expect_err("refused").code();
    assert_eq!(
        code(&|request| request.unit = Some("city".into())),
        "other_unit"
    );
    assert_eq!(
        code(&|request| request.column = Some("nothing".into())),
        "unknown_column"
    );
    assert_eq!(
        code(&|request| request.relation = Neighbours::ReplaceOne),
        "other_relation"
    );
    let left = session.budget(None).expect("a cap").dataset;
    assert_eq!(left.epsilon, 0.5, "refusals cost nothing");
}

/// Rows that end in a failure of the disk.
struct Torn(&'static [u8]);

impl std::io::Read for Torn {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::other("SECRET-4711")),
            read => Ok(read),
        }
    }
}

/// A statistic that cannot be finished is as good an oracle as a statement that cannot be: it happens once, and stays charged.
#[test]
fn a_statistic_that_cannot_be_read_suspends_the_data_set() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let measure = |rows: crate::Result<Torn>| {
        let request = stats::Request::new(Statistic::Count, Epsilon::new(0.25).expect("one"));
        let found = session.measure("visits", request, None, || rows, &mut Seeded::new(1));
        found.expect_err("no rows").code()
    };
    let rows = || Torn(b"person,city,cost\np1,Oslo,5\n");
    let left = || session.budget(None).expect("a cap").dataset.epsilon;
    for (rows, spent) in [(Ok(rows()), 0.25), (Err(crate::Error::Unreadable), 0.5)] {
        assert_eq!(measure(rows), "unreadable_file");
        assert_eq!(left(), 1.0 - spent);
        assert_eq!(measure(Ok(Torn(b""))), "suspended");
        assert_eq!(left(), 1.0 - spent, "what is suspended is not charged");
        session.ledger().resume().expect("it was suspended");
    }
    // Without noise there is no answer either, but that says nothing of the rows.
    let request = stats::Request::new(Statistic::Count, Epsilon::new(0.25).expect("one"));
    let found = session.measure("visits", request, None, || Ok(rows()), &mut FailingEntropy);
    assert!(found.is_err());
    assert_eq!(left(), 0.25);
    run(&session, &ask(COUNT, 0.25)).expect("it is not suspended");
}

/// Who hears that the ledger stopped must know whether it was before the charge or after.
#[test]
fn a_ledger_that_stops_after_a_charge_says_that_it_is_kept() {
    let house = House::new();
    let session = house.open(PURE).expect("opened");
    let (mark, aside) = (
        house.folder.path().join("whit.ledger.mark"),
        house.folder.path().join("aside"),
    );
    let measure = |rows: &mut dyn FnMut()| {
        let request = stats::Request::new(Statistic::Count, Epsilon::new(0.25).expect("one"));
        let csv = || {
            rows();
            Ok(&b"person,city,cost\np1,Oslo,5\n"[..])
        };
        let found = session.measure("visits", request, None, csv, &mut Seeded::new(1));
        found.expect_err("no mark").to_string()
    };
    let kept = "stays charged";
    let text = measure(&mut || std::fs::rename(&mark, &aside).expect("renamed"));
    assert!(text.contains(kept), "{text}");
    let text = measure(&mut || panic!("nothing is read"));
    assert!(!text.contains(kept), "{text}");
    drop(session);
    std::fs::rename(&aside, &mark).expect("renamed");
    let session = house.open(PURE).expect("opened");
    assert_eq!(session.budget(None).expect("a cap").dataset.epsilon, 0.75);
}

#[test]
fn what_does_not_fit_is_said_in_plain_numbers() {
    let house = House::new();
    let session = house.open(ZCDP).expect("opened");
    let error = run(&session, &ask(COUNT, 10.0)).expect_err("too much");
    assert_eq!(error.code(), "budget_exhausted");
    let text = error.to_string();
    assert!(
        text.starts_with("the dataset has rho 0.0") && text.ends_with("and this costs rho 10"),
        "{text}"
    );
    assert!(error.suggestion().contains("smaller epsilon"));
}

/// The hint of a refusal, followed word by word, must pass.
#[test]
fn a_raised_cap_names_the_command_that_records_it() {
    let house = House::new();
    let head =
        |team: &str| format!("{PURE}\n[team.lab]\nepsilon = {team}\n[analyst.ann]\nteam = \"lab\"");
    drop(house.open(&head("0.25")).expect("opened"));
    let error = house
        .open(&head("0.5"))
        .expect_err("more than was promised");
    assert_eq!(error.code(), "cap_raised");
    assert!(error.suggestion().contains("`whit ledger cap --team lab`"));
    let error = house
        .open(&head("0.25").replace("1.0", "2.0"))
        .expect_err("more");
    assert!(error.suggestion().contains("`whit ledger cap`"));
}

/// After a recovery no charge may be left to count, though there was one: such a ledger must not be deleted.
#[test]
fn a_recovered_ledger_is_not_unused() {
    let house = House::new();
    let other = PURE.replace("\"v\"", "\"w\"");
    let may = |house: &House| {
        let error = house.open(&other).expect_err("another data set");
        assert_eq!(error.code(), "other_dataset");
        error.suggestion().contains("deleted")
    };
    let session = house.open(PURE).expect("opened");
    assert!(may(&house));
    run(&session, &ask(COUNT, 0.25)).expect("answered");
    let terms = terms(session.catalog());
    drop(session);
    assert!(!may(&house));
    let mut bytes = std::fs::read(house.ledger()).expect("a ledger");
    let place = bytes.windows(7).position(|window| window == b"\"event\"");
    bytes[place.expect("the charge holds its event") + 1] ^= 1;
    std::fs::write(house.ledger(), bytes).expect("written");
    whit_ledger::recover(&house.ledger(), &terms).expect("recovered");
    assert!(!may(&house));
}

/// A copy without its key and mark may be older than what was charged since.
#[test]
fn a_ledger_that_lost_what_is_beside_it_is_not_unused() {
    let house = House::new();
    drop(house.open(PURE).expect("opened"));
    let other = format!("{}\n{TABLES}", PURE.replace("\"v\"", "\"w\""));
    let other = Catalog::parse(&other).expect("a catalog");
    let may = || {
        let found = objections(&other, &house.ledger());
        assert_eq!(found[0].code(), "other_dataset");
        found[0].suggestion().contains("deleted")
    };
    assert!(may());
    for lost in ["whit.ledger.key", "whit.ledger.mark"] {
        std::fs::remove_file(house.folder.path().join(lost)).expect("was there");
        assert!(!may(), "{lost}");
    }
}
