//! # Votes of teachers are aggregated at the expense of a ledger
//! Teachers were trained on parts of a private table; what their votes tell is paid from the ledger of its catalog, whole, before noise is drawn and any answer leaves.
//!
//! **Whom it protects.** A catalog protects units, by adding or removing one. All rows of a unit must have gone to one teacher, and to which one must not depend on other units: whoever
//! trained the teachers vouches for that. Then a unit more or less changes the votes of one teacher, which is what the event speaks of.
//!
//! **A choice by votes** ([`Session::choose`]) is paid in the same way, before it is made: it has an event of its own.
//!
//! **What was read before.** The votes were read and checked, so that what cannot be aggregated is refused before it is paid. Whether they fit is told to whoever has their file.

use serde::Serialize;
use whit_accounting::price;
use whit_accounting::reserve::{Account, Filter, Standing};
use whit_core::{Bits, Delta, Entropy, Event, Neighbours, Secret};
use whit_learn::pate::{Aggregation, Choice, Outcome, PrivateChoice, Votes};
use whit_learn::{Payment, Priced};
use whit_sql::Catalog;

use super::rehearsal::{opening, verdict};
use super::training::{Quoted, quoted_for};
use super::{Charge, Error, Remaining, Result, Session, account, terms};

/// Which votes, on whose expense.
#[derive(Clone, Copy, Debug)]
pub struct Election<'a> {
    /// The private table of the catalog that the teachers were trained on.
    pub table: &'a str,
    /// What is done.
    pub aggregation: &'a Aggregation,
    /// Who asks.
    pub analyst: Option<&'a str>,
}

/// An aggregation that was paid from a ledger.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elected {
    /// What the teachers' votes tell.
    pub outcome: Outcome,
    /// What was charged.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// The hash that commits the ledger to this outcome and everything before it.
    pub receipt: String,
}

/// Which choice by votes, on whose expense.
#[derive(Clone, Copy)]
pub struct ChoiceOrder<'a> {
    /// The private table of the catalog that the teachers were trained on.
    pub table: &'a str,
    /// Among what, at which price.
    pub choice: &'a PrivateChoice,
    /// The slack of whatever is told of the price.
    pub delta: Delta,
    /// Who asks.
    pub analyst: Option<&'a str>,
}

/// A choice that was paid from a ledger.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Chosen<'a> {
    /// What was chosen.
    pub choice: &'a Choice,
    /// What was charged.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// The hash that commits the ledger to this choice and everything before it.
    pub receipt: String,
}

/// What the ledger keeps of a choice: its public numbers.
#[derive(Serialize)]
struct Parameters {
    threshold: Option<f64>,
    sigma1: Option<f64>,
    sigma2: f64,
    queries: u64,
    answers_max: u64,
}

impl Parameters {
    fn of(choice: &Choice) -> Self {
        let terms = choice.aggregation.terms();
        Self {
            threshold: terms.test.map(|test| test.threshold),
            sigma1: terms.test.map(|test| test.sigma),
            sigma2: terms.sigma,
            queries: terms.queries,
            answers_max: terms.answers_max,
        }
    }
}

/// What was told once, and paid.
struct Told<T> {
    outcome: T,
    charge: Charge,
    remaining: Remaining,
    receipt: String,
}

impl Session {
    /// Charges the whole aggregation, and then tells what it tells.
    pub fn elect(
        &self,
        election: &Election<'_>,
        votes: &Secret<Votes>,
        entropy: &mut impl Entropy,
    ) -> Result<Elected> {
        let aggregation = election.aggregation;
        let account = self.account(election.analyst)?;
        check(&self.catalog, election.table, aggregation.event())?;
        // Shape is public.
        let shape = aggregation.check(votes.as_ref().expose());
        shape.map_err(whit_learn::Error::from)?;
        let priced = (aggregation, delta(aggregation)?);
        let told = self.tell(&account, priced, entropy, |payment, entropy| {
            let outcome = aggregation.run(votes, payment, entropy)?;
            let stored = serde_json::to_string(&outcome).expect("plain data");
            Ok((outcome, stored))
        })?;
        Ok(Elected {
            outcome: told.outcome,
            charge: told.charge,
            remaining: told.remaining,
            receipt: told.receipt,
        })
    }

    /// What an aggregation would be charged. Looks at no vote, charges nothing.
    pub fn quote_election(&self, election: &Election<'_>) -> Result<Quoted> {
        let account = self.account(election.analyst)?;
        let standings = self.ledger.standings(&account)?;
        let mut quoted = quoted(&self.catalog, &self.filter, election, &account, standings)?;
        if let Err(stopped) = self.ledger.running() {
            quoted.room = 0;
            quoted.objection = Some(stopped.to_string());
        }
        Ok(quoted)
    }

    /// Charges a choice by votes, and then makes it.
    pub fn choose<'a>(
        &self,
        order: &ChoiceOrder<'a>,
        votes: &Secret<Votes>,
        entropy: &mut impl Entropy,
    ) -> Result<Chosen<'a>> {
        let account = self.account(order.analyst)?;
        check(&self.catalog, order.table, order.choice.event())?;
        // Shape is public.
        let shape = order.choice.check(votes.as_ref().expose());
        shape.map_err(whit_learn::Error::from)?;
        let priced = (order.choice, order.delta);
        let told = self.tell(&account, priced, entropy, |payment, entropy| {
            let choice = order.choice.run(votes, payment, entropy)?;
            let stored = serde_json::to_string(&Parameters::of(choice)).expect("plain data");
            Ok((choice, stored))
        })?;
        Ok(Chosen {
            choice: told.outcome,
            charge: told.charge,
            remaining: told.remaining,
            receipt: told.receipt,
        })
    }

    /// Charges the whole of what is priced, and then lets it be told and keeps that.
    fn tell<T, E: Entropy>(
        &self,
        account: &Account,
        (priced, delta): (&impl Priced, Delta),
        entropy: &mut E,
        tell: impl FnOnce(Payment, &mut E) -> whit_learn::Result<(T, String)>,
    ) -> Result<Told<T>> {
        self.ledger.running()?;
        let filter = self.filter.with_delta(delta);
        let cost = filter.cost(priced.event())?;
        let charge = Charge::new(price(priced.event(), delta)?, &cost);
        let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
        let id = format!("{:016x}{:016x}", bits.word(), bits.word());
        drop(bits);
        let mut journal = self.ledger.charge_once();
        let permit = filter.reserve(priced.event(), account, &mut journal)?;
        let (payment, redeemed) = Payment::charged(priced, permit, id)?;
        // After this only a lack of entropy fails, which says nothing about votes.
        let (outcome, stored) = tell(payment, entropy)?;
        let settled = self.ledger.settle_and_stand(redeemed, &stored, account);
        let (receipt, standings) = settled.map_err(Error::Unsettled)?;
        Ok(Told {
            outcome,
            charge,
            remaining: Remaining::new(&standings),
            receipt: receipt.to_string(),
        })
    }
}

/// What an aggregation would be charged by a ledger that does not exist yet, and that this does not make.
pub fn quote_election_unopened(catalog: &Catalog, election: &Election<'_>) -> Result<Quoted> {
    let account = account(catalog, election.analyst)?;
    let standings = opening(catalog, &account)?;
    let filter = Filter::new(terms(catalog).mode);
    quoted(catalog, &filter, election, &account, standings)
}

/// As [`Session::elect`] would charge it.
fn quoted(
    catalog: &Catalog,
    filter: &Filter,
    election: &Election<'_>,
    account: &Account,
    standings: Vec<Standing>,
) -> Result<Quoted> {
    let event = election.aggregation.event();
    check(catalog, election.table, event)?;
    let delta = delta(election.aggregation)?;
    let filter = filter.with_delta(delta);
    let charge = Charge::new(price(event, delta)?, &filter.cost(event)?);
    quoted_for((event.clone(), charge), &filter, account, standings)
}

/// Would an aggregation be charged, by a ledger that begins with it?
pub fn rehearse_election(catalog: &Catalog, election: &Election<'_>) -> Result<()> {
    let aggregation = election.aggregation;
    let about = (election.table, election.analyst);
    would_be(catalog, about, aggregation.event(), delta(aggregation)?)
}

/// Would a choice by votes be charged, by a ledger that begins with it?
pub fn rehearse_choice(catalog: &Catalog, order: &ChoiceOrder<'_>) -> Result<()> {
    let about = (order.table, order.analyst);
    would_be(catalog, about, order.choice.event(), order.delta)
}

fn would_be(
    catalog: &Catalog,
    (table, analyst): (&str, Option<&str>),
    event: &Event,
    delta: Delta,
) -> Result<()> {
    let account = account(catalog, analyst)?;
    check(catalog, table, event)?;
    let filter = Filter::new(terms(catalog).mode).with_delta(delta);
    verdict(&filter, event, &account, opening(catalog, &account)?)
}

fn delta(aggregation: &Aggregation) -> Result<Delta> {
    let delta = Delta::new(aggregation.terms().delta);
    Ok(delta.map_err(whit_learn::Error::from)?)
}

/// The table is private, and the event is about its units.
fn check(catalog: &Catalog, table: &str, event: &Event) -> Result<()> {
    let found = catalog.table(table);
    if found.and_then(|found| found.unit()).is_none() {
        return Err(Error::NoTable {
            table: table.to_owned(),
        });
    }
    let given = event.neighbours();
    if given != Neighbours::AddRemove {
        return Err(Error::OtherRelation {
            budget: Neighbours::AddRemove,
            given,
        });
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "files of the tests' own, beside the door"
)]
mod tests {
    use whit_core::Fault;
    use whit_learn::pate::private_choice::Shape;
    use whit_learn::pate::{Goal, Terms};
    use whit_testkit::Seeded;

    use super::*;

    const CATALOG: &str = "[dataset]\nid = 'people'\n[budget]\nepsilon = 8.0\ndelta = 1e-4\n\
         [table.people]\nsource = 'people.csv'\nunit = 'who'\n\
         [table.streets]\nsource = 'streets.csv'\npublic = true\n";

    /// What is charged is about units of a private table, added or removed: in each way to tell something of votes, and before a ledger is there.
    #[test]
    fn votes_are_charged_to_units_of_a_private_table_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("people.csv", "who,age\nann,31\n"),
            ("streets.csv", "name\nelm\n"),
        ] {
            std::fs::write(folder.path().join(name), text).expect("writable");
        }
        let catalog = Catalog::parse(CATALOG).expect("a catalog");
        let ledger = folder.path().join("whit.ledger");
        let session = Session::open(catalog.clone(), folder.path(), &ledger).expect("opens");
        let left = || session.budget(None).expect("open").dataset.epsilon;
        let before = left();
        let votes = Votes::from_histogram(&[90, 10, 10, 90], 2).expect("votes");
        let votes = Secret::new(votes);
        let goal = Goal {
            epsilon: 4.0,
            delta: 1e-6,
            queries: 2,
            agreement: 0.5,
        };
        let asked = |table: &str, neighbours: Neighbours| {
            let aggregation = Aggregation::new(&Terms {
                neighbours,
                ..Terms::default()
            });
            let aggregation = aggregation.expect("terms");
            let election = Election {
                table,
                aggregation: &aggregation,
                analyst: None,
            };
            let shape = Shape::of(votes.as_ref().expose());
            let choice = PrivateChoice::new(&goal, shape, 0.5, neighbours).expect("a goal");
            let order = ChoiceOrder {
                table,
                choice: &choice,
                delta: Delta::new(1e-6).expect("a delta"),
                analyst: None,
            };
            let code = |refused: Error| refused.code();
            [
                quote_election_unopened(&catalog, &election)
                    .map(drop)
                    .map_err(code),
                session.quote_election(&election).map(drop).map_err(code),
                rehearse_election(&catalog, &election).map_err(code),
                rehearse_choice(&catalog, &order).map_err(code),
                session
                    .elect(&election, &votes, &mut Seeded::new(1))
                    .map(drop)
                    .map_err(code),
                session
                    .choose(&order, &votes, &mut Seeded::new(2))
                    .map(drop)
                    .map_err(code),
            ]
        };
        for (table, neighbours, says) in [
            ("streets", Neighbours::AddRemove, "unknown_table"),
            ("nobody", Neighbours::AddRemove, "unknown_table"),
            ("people", Neighbours::ReplaceOne, "other_relation"),
        ] {
            assert_eq!(asked(table, neighbours), [Err(says); 6], "{table}");
        }
        assert_eq!(left(), before);
        assert_eq!(asked("people", Neighbours::AddRemove), [Ok(()); 6]);
        assert!(left() < before);
    }

    /// What a dry run says is what is charged then, and itself charges nothing.
    #[test]
    fn quotes_are_what_is_charged() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("people.csv", "who,age\nann,31\n"),
            ("streets.csv", "name\nelm\n"),
        ] {
            std::fs::write(folder.path().join(name), text).expect("writable");
        }
        let catalog = Catalog::parse(CATALOG).expect("a catalog");
        let aggregation = Aggregation::new(&Terms {
            neighbours: Neighbours::AddRemove,
            ..Terms::default()
        });
        let aggregation = aggregation.expect("terms");
        let election = Election {
            table: "people",
            aggregation: &aggregation,
            analyst: None,
        };
        let unopened = quote_election_unopened(&catalog, &election).expect("a price");
        let ledger = folder.path().join("whit.ledger");
        assert!(!ledger.exists());
        let session = Session::open(catalog, folder.path(), &ledger).expect("opens");
        let left = || session.budget(None).expect("open").dataset.epsilon;
        let before = left();
        let quoted = session.quote_election(&election).expect("a price");
        assert_eq!(
            (&quoted.charge, quoted.room),
            (&unopened.charge, unopened.room)
        );
        assert_eq!((left(), quoted.objection), (before, None));
        let votes = Secret::new(Votes::from_histogram(&[90, 10], 2).expect("votes"));
        let elected = session.elect(&election, &votes, &mut Seeded::new(3));
        assert_eq!(elected.expect("room").charge, quoted.charge);
        assert!(left() < before);
        // Where there is no room, the quote says so, and the run is refused.
        let dear = Aggregation::new(&Terms {
            sigma: 0.3,
            ..*aggregation.terms()
        });
        let dear = dear.expect("terms");
        let election = Election {
            aggregation: &dear,
            ..election
        };
        let quoted = session.quote_election(&election).expect("a price");
        assert!(quoted.room == 0 && quoted.objection.is_some());
        assert!(
            session
                .elect(&election, &votes, &mut Seeded::new(4))
                .is_err()
        );
    }
}
