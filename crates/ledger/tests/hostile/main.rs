//! What people, other programs and machines do to a ledger: a budget is never spent twice, and nothing is answered that was not paid.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test handles files, and says by its name what must not fail"
)]

mod clock;
#[cfg(unix)]
mod disk;
mod history;
mod path;
mod race;
mod request;

use std::fs;
use std::path::PathBuf;

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level, Permit, Unreserved};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
use whit_ledger::{Error, Ledger, Terms};

/// A folder of its own for each test, removed before and after.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("whit-ledger-hostile-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn ledger(&self) -> PathBuf {
        self.file("whit.ledger")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn terms(cap: f64) -> Terms {
    Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Pure,
        neighbours: Neighbours::AddRemove,
        caps: vec![(Level::Dataset, epsilon(cap), Delta::ZERO)],
    }
}

fn open(folder: &Folder, cap: f64) -> Ledger {
    Ledger::open(&folder.ledger(), &terms(cap)).unwrap()
}

/// An event that costs one.
fn one() -> Event {
    let epsilon = Ratio::one();
    Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon })
}

fn shop() -> Account {
    Account::new("shop").unwrap()
}

fn reserve(ledger: &Ledger) -> Result<Permit, Unreserved<Error>> {
    Filter::new(Mode::Pure).reserve(&one(), &shop(), &mut ledger.charge_once())
}

/// Why the ledger gave no permit.
fn stop(ledger: &Ledger) -> Error {
    match reserve(ledger) {
        Err(Unreserved::Journal(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn spent(ledger: &Ledger) -> u128 {
    let standings = ledger.standings(&shop()).unwrap();
    standings[0].spent.loss.units() >> 64
}
