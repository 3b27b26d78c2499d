//! Teachers that break down: what was paid stays paid, nobody else is told, and nothing is lost.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the tests' own, beside the door"
)]

use std::fs;
use std::num::NonZeroUsize;

use tempfile::TempDir;
use whit_core::Fault;
use whit_testkit::{FailingEntropy, Seeded};

use super::*;

const RECIPE: &str = "
[data]
path = 'points.csv'
label = 'side'
classes = 2
columns = ['x', 'y']
[public]
path = 'public.csv'
classes = 2
columns = ['x', 'y']
[teachers]
count = 8
learner = { kind = 'kernel_ridge', penalty = 0.1 }
[aggregator]
sigma2 = 8
queries = 10
answers_max = 4
delta = 1e-6
[student]
learner = { kind = 'kernel_ridge', penalty = 0.1 }
";
const CATALOG: &str = "[dataset]\nid = 'points'\n[budget]\nepsilon = 8.0\ndelta = 1e-4\n\
     [table.points]\nsource = 'points.csv'\nunit = 'who'\nrows_per_unit = 1\n";

/// A folder with a catalog's table, public examples without labels, and room for a run.
struct Stage {
    folder: TempDir,
    recipe: EnsembleRecipe,
    room: Room,
    session: Session,
}

impl Stage {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let (mut private, mut public) = (String::from("who,x,y,side\n"), String::from("x,y\n"));
        for row in 0..80 {
            let x = f64::from(row * 37 % 101) / 50.0 - 1.0;
            private += &format!("p{row},{x},0.5,{}\n", i32::from(x > 0.0));
            public += &format!("{},0.5\n", -x);
        }
        fs::write(folder.path().join("points.csv"), private).expect("writable");
        fs::write(folder.path().join("public.csv"), public).expect("writable");
        let recipe: EnsembleRecipe = toml::from_str(RECIPE).expect("a recipe");
        let room = recipe.room(folder.path(), NonZeroUsize::MIN).expect("fits");
        let catalog = Catalog::parse(CATALOG).expect("a catalog");
        let ledger = folder.path().join("whit.ledger");
        let session = Session::open(catalog, folder.path(), &ledger).expect("opens");
        Self {
            folder,
            recipe,
            room,
            session,
        }
    }

    fn order(&self) -> TeachOrder<'_> {
        TeachOrder {
            table: "points",
            recipe: &self.recipe,
            analyst: None,
            folder: self.folder.path(),
            votes: Afterwards::Remove,
        }
    }

    fn teach(&self, after: &(dyn Fn(usize) + Sync), entropy: &mut impl Entropy) -> Result<Taught> {
        self.teach_as(&self.order(), after, entropy)
    }

    fn teach_as(
        &self,
        order: &TeachOrder<'_>,
        after: &(dyn Fn(usize) + Sync),
        entropy: &mut impl Entropy,
    ) -> Result<Taught> {
        let desk = Desk {
            out: &self.folder.path().join("out"),
            interval: NonZeroUsize::MIN,
            threads: NonZeroUsize::new(2).expect("two"),
        };
        self.session.teach(order, &self.room, &desk, after, entropy)
    }

    fn left(&self) -> f64 {
        self.session.budget(None).expect("open").dataset.epsilon
    }
}

fn code(refused: Result<Taught>) -> &'static str {
    refused.err().expect("refused").code()
}

/// On the thread of a teacher, after some have voted.
fn breaks_down(done: usize) {
    assert!(done < 3, "a teacher breaks down");
}

#[test]
fn a_teacher_that_panics_suspends_the_ledger_and_loses_nothing() {
    let stage = Stage::new();
    let before = stage.left();
    let told = stage.teach(&breaks_down, &mut Seeded::new(1));
    assert_eq!(code(told), "teachers_broke_down");
    let paid = stage.left();
    assert!(paid < before);
    let again = stage.teach(&|_| {}, &mut Seeded::new(2));
    assert_eq!(code(again), "suspended");
    stage.session.ledger.resume().expect("by its owner");
    let told = stage.teach(&|_| {}, &mut Seeded::new(3)).expect("paid for");
    assert!(told.resumed && told.outcome.answered() == 4);
    assert_eq!((told.charge.epsilon, stage.left()), (0.0, paid));
}

/// Paid, counted, and stopped before they were kept: labels are lost, and what is said of it is about labels.
#[test]
fn labels_that_are_lost_stay_paid_and_the_advice_is_about_labels() {
    let stage = Stage::new();
    assert!(stage.teach(&breaks_down, &mut Seeded::new(1)).is_err());
    stage.session.ledger.resume().expect("by its owner");
    let paid = stage.left();
    assert_eq!(
        code(stage.teach(&|_| {}, &mut FailingEntropy)),
        "no_entropy"
    );
    let lost = stage
        .teach(&|_| {}, &mut Seeded::new(2))
        .err()
        .expect("lost");
    assert_eq!((lost.code(), stage.left()), ("labels_lost", paid));
    let advice = lost.suggestion();
    assert!(
        advice.contains("another folder") && !advice.contains("step"),
        "{advice}"
    );
}

/// Whatever door asks: an analyst's run keeps no votes, does not say what it cost at them, and does not show how fast teachers come.
#[test]
fn what_is_the_owners_is_given_to_no_analyst() {
    let stage = Stage::new();
    let by_analyst = TeachOrder {
        analyst: Some("ann"),
        ..stage.order()
    };
    let keeping = TeachOrder {
        votes: Afterwards::Keep,
        ..by_analyst
    };
    let before = stage.left();
    let refused = stage.teach_as(&keeping, &|_| {}, &mut Seeded::new(1));
    assert_eq!(code(refused), "owner_and_analyst");
    let quoted = stage.session.quote_teaching(&keeping).err();
    let quoted = quoted.expect("refused");
    assert_eq!(quoted.code(), "owner_and_analyst");
    assert!(quoted.suggestion().contains("without an analyst"));
    assert_eq!(stage.left(), before, "nothing was charged");
    assert!(!stage.folder.path().join("out").exists());
    let told = stage
        .teach_as(&by_analyst, &breaks_down, &mut Seeded::new(1))
        .expect("paid for, and nobody hears of teachers");
    assert!(told.owner.is_none() && told.outcome.answered() == 4);
    // The owner, of the same data in another folder, sees what it cost and may keep the votes.
    let stage = Stage::new();
    let keeping = TeachOrder {
        votes: Afterwards::Keep,
        ..stage.order()
    };
    let told = stage.teach_as(&keeping, &|_| {}, &mut Seeded::new(1));
    assert!(told.expect("paid for").owner.is_some());
}
