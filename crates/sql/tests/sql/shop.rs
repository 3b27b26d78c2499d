//! A data set on disk and the way through the crate, for the tests beside this folder.

use std::path::Path;

use whit_accounting::budget::{Cap, Mode};
use whit_accounting::reserve::{Account, Filter, Memory};
use whit_core::{Confidence, Delta, Epsilon, Fault, Neighbours};
use whit_sql::{
    Answer, Asked, Catalog, PrivatePlan, Request, Result, StablePlan, Statement, Tables, execute,
};
use whit_testkit::Seeded;

/// A catalog with its files in a directory that goes away with it.
pub(crate) struct Shop {
    pub(crate) catalog: Catalog,
    pub(crate) tables: Tables,
    directory: tempfile::TempDir,
}

impl Shop {
    pub(crate) fn new(catalog: &str, files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            write(&directory.path().join(name), text.as_bytes());
        }
        Self::over(catalog, directory)
    }

    /// The same over files that are there.
    pub(crate) fn over(catalog: &str, directory: tempfile::TempDir) -> Self {
        let catalog = Catalog::parse(catalog).expect("a catalog");
        let tables = Tables::open(&catalog, directory.path()).expect("tables");
        Self {
            catalog,
            tables,
            directory,
        }
    }

    /// Where one of its files is.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Steps 2 to 4: no private row is read.
    pub(crate) fn plan(&self, sql: &str, asked: Asked) -> Result<PrivatePlan> {
        let request = Request::new(asked, &self.catalog)?;
        let statement = Statement::parse(sql, &self.tables)?;
        let stable = StablePlan::analyze(statement, &request, &self.tables)?;
        PrivatePlan::rewrite(stable, &request, &self.tables)
    }

    /// Pays for a plan and runs it.
    pub(crate) fn run(&self, plan: &PrivatePlan, seed: u64) -> Result<Answer> {
        // Events with a delta are added up as concentrated losses, the others as they are.
        let mode = if plan.request().delta() == Delta::ZERO {
            Mode::Pure
        } else {
            Mode::Zcdp
        };
        let delta = Delta::new(0.5).expect("a delta");
        let cap = Cap::new(mode, Neighbours::AddRemove, epsilon(1e6), delta).expect("a cap");
        let mut journal = Memory::new("shop", cap);
        let account = Account::new("shop").expect("a name");
        let permit = Filter::new(mode)
            .reserve(plan.event(), &account, &mut journal)
            .expect("within the cap");
        let confidence = Confidence::new(0.95).expect("a confidence");
        let mut entropy = Seeded::new(seed);
        let (secrets, _settle) = execute(plan, &self.tables, permit, &mut entropy)?;
        secrets.release(confidence, &mut entropy)
    }

    /// All steps.
    pub(crate) fn ask(&self, sql: &str, asked: Asked, seed: u64) -> Result<Answer> {
        self.run(&self.plan(sql, asked)?, seed)
    }

    /// The code of the refusal, or `answered`.
    pub(crate) fn status(&self, sql: &str, asked: Asked) -> &'static str {
        self.ask(sql, asked, 1)
            .map_or_else(|error| error.code(), |_| "answered")
    }
}

pub(crate) fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("an epsilon")
}

/// A statement's epsilon.
pub(crate) fn at(value: f64) -> Asked {
    Asked {
        epsilon: Some(epsilon(value)),
        ..Asked::default()
    }
}

/// The same with a delta.
pub(crate) fn with_delta(value: f64, delta: f64) -> Asked {
    Asked {
        delta: Some(Delta::new(delta).expect("a delta")),
        ..at(value)
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the test's own")]
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("written");
}
