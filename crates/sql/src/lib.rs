//! Private SQL: a catalog, an analysis, a rewrite, an execution.
//!
//! An owner writes a [`Catalog`]; an analyst writes plain SQL. The types are the order in which things happen:
//!
//! 1. [`Tables::open`] reads headers, and public tables.
//! 2. [`Statement::parse`] binds the text; what is not on the allow-list is refused by name.
//! 3. [`StablePlan::analyze`] follows the privacy unit, what it contributes, and the bounds of values.
//! 4. [`PrivatePlan::rewrite`] chooses caps, clamps and noise, and states the one event they imply.
//! 5. [`execute()`] takes a permit for that event, and reads private rows up to secret [`Aggregates`].
//! 6. [`Aggregates::release`] adds noise, and gives an [`Answer`].
//!
//! Nothing private is read before the fifth, so everything up to it, refusals and price included, is a function of the statement,
//! the catalog and public tables.
//!
//! ```
//! use whit_accounting::budget::{Cap, Mode};
//! use whit_accounting::reserve::{Account, Filter, Memory};
//! use whit_core::{Confidence, Delta, Epsilon, Neighbours};
//! use whit_mechanism::OsEntropy;
//! use whit_sql::{Asked, Catalog, PrivatePlan, Request, StablePlan, Statement, Tables, execute};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # std::fs::write(directory.path().join("visits.csv"), "person,city\nann,Rome\nben,Oslo\nann,Oslo\n")?;
//! let catalog = Catalog::parse(r#"
//!     [dataset]
//!     id = "visits"
//!     [budget]
//!     epsilon = 1.0
//!     [defaults]
//!     groups_per_unit = 2
//!     rows_per_group = 1
//!     [table.visits]
//!     source = "visits.csv"
//!     unit = "person"
//!     [table.visits.column]
//!     city = { values = ["Oslo", "Rome"] }
//! "#)?;
//! let tables = Tables::open(&catalog, directory.path())?;
//! let asked = Asked { epsilon: Some(Epsilon::new(0.5)?), ..Asked::default() };
//! let request = Request::new(asked, &catalog)?;
//! let statement = Statement::parse("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", &tables)?;
//! let stable = StablePlan::analyze(statement, &request, &tables)?;
//! let plan = PrivatePlan::rewrite(stable, &request, &tables)?;
//!
//! let (epsilon, delta) = catalog.budget();
//! let mut journal = Memory::new("visits", Cap::new(Mode::Pure, Neighbours::AddRemove, epsilon, delta)?);
//! let permit = Filter::new(Mode::Pure).reserve(plan.event(), &Account::new("visits")?, &mut journal)?;
//! let mut entropy = OsEntropy::new();
//! let (secrets, _settle) = execute(&plan, &tables, permit, &mut entropy)?;
//! let answer = secrets.release(Confidence::new(0.95)?, &mut entropy)?;
//! assert_eq!(answer.rows.len(), 2);
//! # Ok(())
//! # }
//! ```

mod analyze;
mod batch;
pub mod catalog;
mod engine;
mod error;
mod execute;
mod interval;
mod plan;
mod record;
mod request;
mod rewrite;
mod table;
mod term;
mod value;
mod workers;

pub use analyze::StablePlan;
pub use catalog::{Catalog, Table};
pub use error::{Error, Result};
pub use execute::{Aggregates, Answer, AnswerColumn, execute};
pub use plan::Statement;
pub use request::{Asked, Request};
pub use rewrite::{Expected, Explanation, KeyThreshold, PrivatePlan};
pub use table::{Tables, header};
pub use value::{Cell, Kind, Value};
