//! # A question, room by room
//! A [`Session`] ties a catalog, its tables and its ledger together. [`Session::query`] is the path of every private answer, as
//! nine calls: units, parse, analyze, rewrite, which make its plan, and price, reserve, execute, release, settle. Each takes what the
//! one before made, and none can be left out: an answer needs a permit, a permit needs a journal, and a permit runs the plan it was paid for.
//!
//! ```
//! use whit::session::{Asked, Catalog, Question, Session};
//! use whit::{Epsilon, OsEntropy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! # std::fs::write(folder.join("visits.csv"), "person,city\nann,Rome\nben,Oslo\nann,Oslo\n")?;
//! let catalog = Catalog::parse(r#"
//!     [dataset]
//!     id = "visits"
//!     [budget]
//!     epsilon = 1.0
//!     [table.visits]
//!     source = "visits.csv"
//!     unit = "person"
//!     [table.visits.column]
//!     city = { values = ["Oslo", "Rome"] }
//! "#)?;
//! let session = Session::open(catalog, folder, &folder.join("whit.ledger"))?;
//!
//! let mut question = Question::new("SELECT city, COUNT(*) AS n FROM visits GROUP BY city");
//! question.asked = Asked {
//!     epsilon: Some(Epsilon::new(0.5)?),
//!     groups_per_unit: Some(2),
//!     rows_per_group: Some(1),
//!     ..Asked::default()
//! };
//! let reply = session.query(&question, &mut OsEntropy::new())?;
//! assert_eq!(reply.answer.rows.len(), 2);
//! assert_eq!(reply.remaining.dataset.epsilon, 0.5);
//!
//! // The same question again is the same answer, and costs nothing.
//! let again = session.query(&question, &mut OsEntropy::new())?;
//! assert!(again.reused && again.answer == reply.answer);
//! # Ok(())
//! # }
//! ```
//!
//! There is no answer without a permit,
//! ```compile_fail,E0308
//! # use whit::session::PrivatePlan;
//! # use whit_sql::{Tables, execute};
//! fn look(plan: &PrivatePlan, tables: &Tables, entropy: &mut whit::OsEntropy) {
//!     let _ = execute(plan, tables, (), entropy);
//! }
//! ```
//! and no permit without a journal.
//! ```compile_fail,E0277
//! # use whit::accounting::reserve::{Account, Filter, Permit};
//! # use whit::core::Event;
//! fn pay_nobody(filter: Filter, event: &Event, account: &Account) {
//!     let _ = filter.reserve(event, account, &mut ());
//! }
//! ```

use std::path::Path;

use sha2::{Digest, Sha256};
use whit_accounting::budget::{Cap, Cost, Mode};
use whit_accounting::price;
use whit_accounting::reserve::{Account, Filter, Level, Permit, Refusal, Standing, Unreserved};
use whit_core::{Confidence, Delta, Entropy, Neighbours};
use whit_ledger::verify::Beside;
use whit_ledger::{Found, Key, Ledger, Terms};
use whit_sql::catalog::Promise;
use whit_sql::{StablePlan, Statement, Tables, execute};

mod error;
#[cfg(feature = "learn")]
mod fitting;
mod rehearsal;
mod reply;
mod same_file;
mod statistic;
#[cfg(feature = "learn")]
mod teaching;
#[cfg(feature = "learn")]
mod training;
mod turn;
#[cfg(feature = "learn")]
mod votes;

pub use error::{Error, Result};
#[cfg(feature = "learn")]
pub use fitting::{FitOrder, Fitted, quote_fit_unopened, rehearse_fit};
pub use rehearsal::{rehearse, rehearse_statistic};
pub use reply::{Charge, Explained, Left, Remaining, Reply};
pub use same_file::is_same_file;
pub use statistic::Measured;
#[cfg(feature = "learn")]
pub use teaching::{Taught, TeachOrder, quote_teaching_unopened, rehearse_teaching};
#[cfg(feature = "learn")]
pub use training::{Course, Desk, Order, Planned, Quoted, Sought, quote_unopened, rehearse_run};
#[cfg(feature = "learn")]
pub use votes::{
    ChoiceOrder, Chosen, Elected, Election, quote_election_unopened, rehearse_choice,
    rehearse_election,
};
pub use whit_ledger as ledger;
pub use whit_sql::{
    Answer, AnswerColumn, Asked, Catalog, Cell, Explanation, Kind, PrivatePlan, Request, Value,
    catalog, header,
};

use error::{Begun, Keys};
use reply::Stored;
use turn::{QuestionHash, Turns};

/// Tables whose owner declared whom to protect, and the budget for asking about them. One session serves many threads.
#[derive(Debug)]
pub struct Session {
    catalog: Catalog,
    tables: Tables,
    ledger: Ledger,
    filter: Filter,
    turns: Turns,
    /// What the sources of the catalog are relative to.
    #[cfg(feature = "learn")]
    folder: std::path::PathBuf,
}

/// What an analyst asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The statement.
    pub sql: String,
    /// What it may cost and how much of a unit it may use. The catalog says what is left out here.
    pub asked: Asked,
    /// How often the intervals are to hold the value without noise.
    pub confidence: Confidence,
    /// Who asks.
    pub analyst: Option<String>,
}

impl Question {
    /// The statement, with everything else as the catalog has it.
    pub fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            asked: Asked::default(),
            confidence: Confidence::new(0.95).expect("a probability"),
            analyst: None,
        }
    }
}

impl Session {
    /// Opens the tables of a catalog that lies in `folder`, and its ledger, which is made if it was never there. Of private tables
    /// only the headers are read.
    pub fn open(catalog: Catalog, folder: &Path, ledger: &Path) -> Result<Self> {
        let tables = Tables::open(&catalog, folder)?;
        let terms = terms(&catalog);
        let ledger = match Ledger::open(ledger, &terms) {
            Ok(opened) => opened,
            Err(error) => return Err(error::or_begin_anew(error, ledger)),
        };
        Ok(Self {
            catalog,
            tables,
            ledger,
            filter: Filter::new(terms.mode),
            turns: Turns::default(),
            #[cfg(feature = "learn")]
            folder: folder.to_owned(),
        })
    }

    /// A private answer with its error bars, paid before a row is read.
    pub fn query(&self, question: &Question, entropy: &mut impl Entropy) -> Result<Reply> {
        let account = self.account(question.analyst.as_deref())?;
        let plan = self.plan(question, &account)?;
        let answered = self.answer(&plan, question.confidence, &account, entropy);
        answered.map_err(|error| self.advise(error, Keys::of(&plan), &account))
    }

    /// What a question becomes, or what would pass.
    fn plan(&self, question: &Question, account: &Account) -> Result<PrivatePlan> {
        let planned = plan(&self.catalog, &self.tables, question);
        // A statement without a plan fails for its keys, if it is for want of a delta.
        planned.map_err(|error| self.advise(error, Keys::Private, account))
    }

    fn answer(
        &self,
        plan: &PrivatePlan,
        confidence: Confidence,
        account: &Account,
        entropy: &mut impl Entropy,
    ) -> Result<Reply> {
        let charge = self.price(plan)?;
        // An answer that left already says nothing new. Who asks the same at the same time waits for it.
        let same = self.identify(plan, confidence, account);
        let _turn = self.turns.take(same);
        let permit = match self.reserve(plan, same, account)? {
            Paid::Now(permit) => permit,
            Paid::Before(stored, receipt) => {
                let remaining = self.remaining(account)?;
                return Ok(Reply::reused(*stored, plan, remaining, receipt));
            }
        };
        let charged = permit.sequence();
        let executed = execute(plan, &self.tables, permit, entropy);
        let (secrets, redeemed) = self.or_suspend(charged, executed)?;
        let released = secrets.release(confidence, entropy);
        let answer = self.or_suspend(charged, released)?;
        let stored = Stored { answer, charge };
        let settled = (self.ledger).settle_and_stand(redeemed, &stored.text(), account);
        let (receipt, standings) = settled.map_err(Error::Unsettled)?;
        let remaining = Remaining::new(&standings);
        Ok(Reply::fresh(stored, plan, remaining, receipt))
    }

    /// What a question would cost and how far off its answer would be. Reads no private row, charges nothing.
    pub fn explain(&self, question: &Question) -> Result<Explained> {
        let account = self.account(question.analyst.as_deref())?;
        let plan = self.plan(question, &account)?;
        let charge = self.price(&plan)?;
        let standings = self.ledger.standings(&account)?;
        Ok(Explained {
            explanation: plan.explain(question.confidence),
            charge,
            remaining: Remaining::new(&standings),
            room: reply::room(&charge, &standings),
        })
    }

    /// A refusal for want of a delta, with one that would pass.
    fn advise(&self, error: Error, keys: Keys, account: &Account) -> Error {
        let mode = mode(self.catalog.budget().1);
        let standings = || self.ledger.standings(account).ok();
        error.about_delta(keys, mode, Begun::Already, standings)
    }

    /// What is left for whoever asks, at every level.
    pub fn budget(&self, analyst: Option<&str>) -> Result<Remaining> {
        self.remaining(&self.account(analyst)?)
    }

    /// Where the levels stand that an analyst is charged at.
    pub fn standings(&self, analyst: Option<&str>) -> Result<Vec<Standing>> {
        Ok(self.ledger.standings(&self.account(analyst)?)?)
    }

    /// The catalog that the session was opened with.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The ledger behind it.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// That a statement failed after its charge is a bit about the data that nobody has paid for. So that there are not many, nothing
    /// more is charged until the owner has looked into it.
    fn or_suspend<T>(&self, charged: u64, executed: whit_sql::Result<T>) -> Result<T> {
        if let Err(whit_sql::Error::Execution) = executed {
            self.ledger.suspend(charged)?;
        }
        Ok(executed?)
    }

    /// What the statement is on its own, and what it adds to the sums of the ledger.
    fn price(&self, plan: &PrivatePlan) -> Result<Charge> {
        let delta = plan.request().delta();
        let alone = price(plan.event(), delta)?;
        let cost = self.filter.with_delta(delta).cost(plan.event())?;
        Ok(Charge::new(alone, &cost))
    }

    fn account(&self, analyst: Option<&str>) -> Result<Account> {
        account(&self.catalog, analyst)
    }

    fn remaining(&self, account: &Account) -> Result<Remaining> {
        Ok(Remaining::new(&self.ledger.standings(account)?))
    }

    /// What the same question of the same account about the same version of the data has in common.
    fn identify(
        &self,
        plan: &PrivatePlan,
        confidence: Confidence,
        account: &Account,
    ) -> QuestionHash {
        let mut question = Sha256::new();
        question.update(plan.fingerprint());
        question.update(self.catalog.hash());
        question.update(confidence.value().to_bits().to_be_bytes());
        let version = self.catalog.version().unwrap_or_default();
        // Names may hold anything, so each is preceded by its length.
        let names = account.levels().into_iter().map(|level| level.to_string());
        for text in names.chain([version.to_owned()]) {
            question.update((text.len() as u64).to_be_bytes());
            question.update(text);
        }
        question.finalize().into()
    }

    /// Pays for a plan, unless its answer was paid for and stored before. A charge whose answer was lost, or that another process has
    /// not answered yet, stays charged; asking again is another charge.
    fn reserve(&self, plan: &PrivatePlan, same: QuestionHash, account: &Account) -> Result<Paid> {
        // Before anything is paid: afterwards, that there are no threads could not be told from rows that cannot be read.
        let threads = self.tables.start();
        let filter = self.filter.with_delta(plan.request().delta());
        // Ends at the first key that was never charged: there are as many as times that an answer was lost.
        for attempt in 0_u64.. {
            let key = Key::new(&format!("statement {attempt} {same:?}"));
            let mut journal = self.ledger.charge(key, plan.fingerprint());
            // Most questions are new, so paying comes first; what was answered before is found whatever there is left to pay with.
            let unpaid: Error = match &threads {
                Err(none) => none.clone().into(),
                Ok(()) => match filter.reserve(plan.event(), account, &mut journal) {
                    Ok(permit) => return Ok(Paid::Now(permit)),
                    // It may have been kept all the same: the next key would be charged too.
                    Err(unsure @ Unreserved::Refused(Refusal::OtherEntry)) => {
                        return Err(unsure.into());
                    }
                    Err(unpaid) => unpaid.into(),
                },
            };
            match self.ledger.find(key)? {
                Some(Found::Answered {
                    answer, receipt, ..
                }) => {
                    let stored = Stored::read(&answer).ok_or(Error::Unreadable)?;
                    return Ok(Paid::Before(Box::new(stored), receipt));
                }
                Some(_) => {}
                None => return Err(unpaid),
            }
        }
        Err(Error::Unreadable)
    }
}

/// When a question was paid for.
enum Paid {
    Now(Permit),
    Before(Box<Stored>, whit_ledger::Receipt),
}

/// Who is charged for what an analyst asks.
fn account(catalog: &Catalog, analyst: Option<&str>) -> Result<Account> {
    let team = catalog.people().team_of(analyst)?;
    let mut account = Account::new(catalog.dataset())?;
    if let Some(team) = team {
        account = account.team(team)?;
    }
    if let Some(analyst) = analyst {
        account = account.analyst(analyst)?;
    }
    Ok(account)
}

/// What a question becomes: a function of the statement, the catalog and public tables.
fn plan(catalog: &Catalog, tables: &Tables, question: &Question) -> Result<PrivatePlan> {
    let request = Request::new(question.asked, catalog)?;
    let statement = Statement::parse(&question.sql, tables)?;
    let stable = StablePlan::analyze(statement, &request, tables)?;
    Ok(PrivatePlan::rewrite(stable, &request, tables)?)
}

/// Why the next question would be refused by the ledger at this path, whatever it is, and what helps. Where there is no ledger yet,
/// nothing is wrong. Changes nothing.
pub fn objections(catalog: &Catalog, ledger: &Path) -> Vec<Error> {
    let report = match whit_ledger::verify(ledger) {
        Ok(report) => report,
        Err(whit_ledger::Error::Missing) => return Vec::new(),
        Err(error) => return vec![error.into()],
    };
    let terms = terms(catalog);
    let mut found = Vec::new();
    if report.dataset != terms.dataset {
        found.push(whit_ledger::Error::OtherDataset {
            recorded: report.dataset.clone(),
            given: terms.dataset.clone(),
        });
    } else if report.mode != terms.mode {
        found.push(whit_ledger::Error::OtherMode {
            recorded: report.mode,
            given: terms.mode,
        });
    } else {
        if report.catalog != terms.catalog {
            found.push(whit_ledger::Error::CatalogChanged);
        }
        for (level, epsilon, delta) in &terms.caps {
            let mut standings = report.standings.iter();
            let recorded = standings.find(|standing| standing.level == *level);
            let recorded = recorded.and_then(|standing| standing.cap);
            let declared = Cap::new(terms.mode, terms.neighbours, *epsilon, *delta);
            if let (Some(recorded), Ok(declared)) = (recorded, declared)
                && declared.exceeds(&recorded)
            {
                let level = level.clone();
                found.push(whit_ledger::Error::CapRaised { level });
            }
        }
    }
    if report.key == Beside::Missing {
        found.push(whit_ledger::Error::KeyMissing);
    }
    if let Some(sequence) = report.suspended {
        found.push(whit_ledger::Error::Suspended { sequence });
    }
    let unless_empty = |error| error::or_begin_anew(error, ledger);
    found.into_iter().map(unless_empty).collect()
}

/// Do the tables have the columns that the catalog speaks of? Reads headers, and public tables.
pub fn check(catalog: &Catalog, folder: &Path) -> Result<()> {
    Tables::open(catalog, folder)?;
    Ok(())
}

/// What a catalog promises, as a ledger keeps it.
pub fn terms(catalog: &Catalog) -> Terms {
    let (epsilon, delta) = catalog.budget();
    let mut caps = vec![(Level::Dataset, epsilon, delta)];
    caps.extend(catalog.people().promises().map(|promise| match promise {
        Promise::Team(name, epsilon, delta) => (Level::Team(name.into()), epsilon, delta),
        Promise::Analyst(name, epsilon, delta) => (Level::Analyst(name.into()), epsilon, delta),
        _ => (Level::Dataset, epsilon, delta),
    }));
    Terms {
        dataset: catalog.dataset().to_owned(),
        catalog: catalog.hash(),
        mode: mode(delta),
        neighbours: Neighbours::AddRemove,
        caps,
    }
}

/// Budgets with a delta add up concentrated losses, the others epsilons.
fn mode(delta: Delta) -> Mode {
    if delta == Delta::ZERO {
        Mode::Pure
    } else {
        Mode::Zcdp
    }
}

/// What a cost adds in zCDP mode.
fn concentrated(cost: &Cost) -> Option<(f64, f64)> {
    let sums = cost.sums();
    (cost.mode() == Mode::Zcdp).then(|| (sums.loss.to_f64_up(), sums.delta.to_f64_up()))
}

#[cfg(test)]
mod tests;
