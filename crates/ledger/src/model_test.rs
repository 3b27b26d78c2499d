//! Simulated crashes against a model.
//!
//! Two processes share a disk on which commits are kept, lost, or kept without anybody hearing of it; processes die, come back, and go on
//! with state that others have moved past; clients send the same request again, to whoever is there. After every step the answer must be
//! the one that the model below gives, and after every restart the sums must be the model's. A million schedules:
//! `WHIT_LONG=1 cargo test --release -p whit-ledger --lib crash_schedules`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{
    Account, Entry, Filter, Journal, Level, Outcome, Permit, Redeemed, Refusal, Unreserved,
};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};

use crate::body;
use crate::key::HeadKey;
use crate::ledger::{Found, Terms, first_caps, opening};
use crate::owner::Direction;
use crate::record::{Kind, Raw, Receipt, Record};
use crate::state::State;
use crate::store::{SignedHead, Store};
use crate::writer::{Writer, load};
use crate::{Error, Result};

/// What was asked, by whom and at which price: all of it must be the same for a request to be the same.
type Asked = (u8, u64, Vec<Level>);

/// The model: what a ledger is, in units of an eighth of an epsilon.
#[derive(Clone, Default)]
struct Model {
    caps: BTreeMap<Level, u64>,
    spent: BTreeMap<Level, u64>,
    keys: BTreeMap<u8, u64>,
    charges: BTreeMap<u64, (Asked, Option<String>)>,
    records: u64,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Kept(u64),
    Exhausted,
    Charged(u64),
    Reused(u64),
    Settled,
    SettledBefore,
}

impl Model {
    fn reserve(&mut self, levels: &[Level], cost: u64, key: Option<u8>, statement: u8) -> Answer {
        if let Some(&sequence) = key.and_then(|key| self.keys.get(&key)) {
            let same = self.charges[&sequence].0 == (statement, cost, levels.to_vec());
            return if same {
                Answer::Charged(sequence)
            } else {
                Answer::Reused(sequence)
            };
        }
        let after = |level| self.spent.get(level).copied().unwrap_or(0) + cost;
        let within = |level| self.caps.get(level).is_none_or(|cap| after(level) <= *cap);
        if !levels.iter().all(within) {
            return Answer::Exhausted;
        }
        for level in levels {
            *self.spent.entry(level.clone()).or_default() += cost;
        }
        self.records += 1;
        key.map(|key| self.keys.insert(key, self.records));
        let asked = (statement, cost, levels.to_vec());
        self.charges.insert(self.records, (asked, None));
        Answer::Kept(self.records)
    }

    fn settle(&mut self, sequence: u64, answer: &str) -> Answer {
        let charge = self.charges.get_mut(&sequence).expect("was reserved");
        if charge.1.is_some() {
            return Answer::SettledBefore;
        }
        charge.1 = Some(answer.to_owned());
        self.records += 1;
        Answer::Settled
    }
}

/// What becomes of the next transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Kept,
    Busy,
    AppendFails,
    LostWithError,
    KeptWithError,
}

/// What survives.
#[derive(Clone, Default)]
struct Disk {
    rows: Vec<Record>,
    head: Option<SignedHead>,
}

/// A process's view of the disk.
struct Simulated {
    disk: Rc<RefCell<Disk>>,
    pending: Vec<Record>,
    fate: Rc<RefCell<Fate>>,
}

impl Store for Simulated {
    fn begin(&mut self) -> Result<()> {
        self.pending.clear();
        match *self.fate.borrow() {
            Fate::Busy => Err(Error::Busy),
            _ => Ok(()),
        }
    }

    fn rows(&mut self) -> Result<usize> {
        Ok(self.disk.borrow().rows.len())
    }

    fn read(&mut self, first: u64, last: u64, visit: &mut dyn FnMut(&Raw<'_>)) -> Result<()> {
        let disk = self.disk.borrow();
        let rows = disk.rows.iter().chain(&self.pending);
        let asked = rows.filter(|row| (first..=last).contains(&row.sequence));
        asked.for_each(|row| visit(&row.raw()));
        Ok(())
    }

    fn head(&mut self) -> Result<Option<SignedHead>> {
        Ok(self.disk.borrow().head)
    }

    fn append(&mut self, record: &Record) -> Result<()> {
        if *self.fate.borrow() == Fate::AppendFails {
            return Err(Error::failed("no room"));
        }
        self.pending.push(record.clone());
        Ok(())
    }

    fn commit(&mut self, head: Option<&SignedHead>) -> Result<()> {
        let fate = *self.fate.borrow();
        if matches!(fate, Fate::Kept | Fate::KeptWithError) {
            let mut disk = self.disk.borrow_mut();
            disk.rows.append(&mut self.pending);
            disk.head = head.copied();
        }
        match fate {
            Fate::Kept => Ok(()),
            _ => Err(Error::failed("input or output")),
        }
    }

    fn abort(&mut self) {
        self.pending.clear();
    }
}

/// A journal over a writer without a thread between.
struct Direct<'a> {
    writer: &'a mut Writer<Simulated>,
    key: Option<[u8; 32]>,
    statement: Option<[u8; 32]>,
}

impl Journal for Direct<'_> {
    type Error = Error;

    fn keep(&mut self, entry: &Entry) -> Result<Outcome> {
        let mut outcome = Err(Error::failed("not asked"));
        let (key, statement) = (self.key, self.statement);
        let body = body::write_reserve(entry, key, statement)?;
        let committed = self
            .writer
            .transact(|writer| outcome = writer.reserve(entry, key, statement, body));
        committed.and(outcome)
    }
}

/// Numbers for schedules (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

fn eighths(cost: u64) -> Event {
    let epsilon = Ratio::new(u128::from(cost), 8).expect("eight");
    Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon })
}

fn promise(eighths: u64) -> (Epsilon, Delta) {
    let epsilon = Epsilon::new(eighths as f64 / 8.0).expect("finite");
    (epsilon, Delta::ZERO)
}

fn ann() -> Level {
    Level::Analyst("ann".into())
}

fn key() -> HeadKey {
    HeadKey::simulated()
}

/// A disk with a ledger of 24 eighths for the data set and 9 for Ann, and the model of it.
fn genesis() -> (Disk, Model) {
    let ((whole, _), (part, _)) = (promise(24), promise(9));
    let terms = Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Pure,
        neighbours: Neighbours::AddRemove,
        caps: vec![
            (Level::Dataset, whole, Delta::ZERO),
            (ann(), part, Delta::ZERO),
        ],
    };
    let disk = Rc::default();
    let store = Simulated {
        disk: Rc::clone(&disk),
        pending: vec![],
        fate: Rc::new(RefCell::new(Fate::Kept)),
    };
    let mut writer = Writer::new(store, State::new(0), key(), None);
    let open = body::write(&opening(&terms, key().public()));
    writer.append(Kind::Open, open).expect("room");
    for cap in first_caps(&terms).expect("caps") {
        writer.append(Kind::Cap, body::write(&cap)).expect("room");
    }
    writer.commit().expect("kept");
    let model = Model {
        caps: BTreeMap::from([(Level::Dataset, 24), (ann(), 9)]),
        records: 3,
        ..Model::default()
    };
    let disk = disk.borrow().clone();
    (disk, model)
}

/// One world: the disk, two processes, what clients hold, and what should be.
struct World {
    disk: Rc<RefCell<Disk>>,
    fate: Rc<RefCell<Fate>>,
    processes: [Option<Writer<Simulated>>; 2],
    permits: Vec<Redeemed>,
    receipts: Vec<Receipt>,
    model: Model,
}

const STEPS: u64 = 12;

impl World {
    fn new(disk: &Disk, model: &Model) -> Self {
        Self {
            disk: Rc::new(RefCell::new(disk.clone())),
            fate: Rc::new(RefCell::new(Fate::Kept)),
            processes: [None, None],
            permits: Vec::new(),
            receipts: Vec::new(),
            model: model.clone(),
        }
    }

    /// Runs a schedule of steps.
    fn run(&mut self, dice: &mut Dice) {
        for _ in 0..STEPS {
            let process = dice.roll(2) as usize;
            if self.processes[process].is_none() {
                self.start(process);
            }
            *self.fate.borrow_mut() = match dice.roll(10) {
                0 => Fate::Busy,
                1 => Fate::AppendFails,
                2 => Fate::LostWithError,
                3 => Fate::KeptWithError,
                _ => Fate::Kept,
            };
            match dice.roll(10) {
                0 => self.processes[process] = None,
                1 => self.raise(process),
                2 => self.find(process, dice.roll(3) as u8),
                3..=5 if !self.permits.is_empty() => self.settle(process, dice),
                _ => self.reserve(process, dice),
            }
        }
        for process in 0..2 {
            self.processes[process] = None;
            self.start(process);
        }
    }

    /// A process comes up and finds exactly what the model has.
    fn start(&mut self, process: usize) {
        *self.fate.borrow_mut() = Fate::Kept;
        let mut store = Simulated {
            disk: Rc::clone(&self.disk),
            pending: vec![],
            fate: Rc::clone(&self.fate),
        };
        let (state, seen) = load(&mut store).expect("readable");
        state.sound().expect("sound");
        for level in [Level::Dataset, ann(), Level::Team("red".into())] {
            let expected = self.model.spent.get(&level).copied().unwrap_or(0);
            let found = state.standing(level).spent.loss.units() >> 61;
            assert_eq!(found, u128::from(expected));
        }
        assert_eq!(state.end().0, self.model.records + 1);
        let mut writer = Writer::new(store, state, key(), seen);
        for receipt in &self.receipts {
            assert!(
                writer.holds(*receipt).expect("readable"),
                "a receipt without a record"
            );
        }
        self.processes[process] = Some(writer);
    }

    /// Does what the fate leaves of it: in the model, and for who is told.
    fn settle_fate<T>(&mut self, process: usize, before: Model, appends: bool, told: &Result<T>) {
        let fate = *self.fate.borrow();
        let dead = appends && !matches!(fate, Fate::Kept | Fate::Busy);
        let durable = appends && matches!(fate, Fate::Kept | Fate::KeptWithError);
        if !durable {
            self.model = before;
        }
        if fate == Fate::Busy {
            assert_eq!(told.as_ref().err(), Some(&Error::Busy));
        } else if dead {
            assert!(
                matches!(told, Err(Error::Failed { .. })),
                "an answer after a failed write"
            );
            // A stopped handle answers nothing more.
            *self.fate.borrow_mut() = Fate::Kept;
            let writer = self.processes[process].as_mut().expect("is up");
            assert!(writer.transact(|_| unreachable!("it has stopped")).is_err());
            self.processes[process] = None;
        }
    }

    fn reserve(&mut self, process: usize, dice: &mut Dice) {
        let cost = 1 + dice.roll(4);
        let key = Some(dice.roll(5) as u8).filter(|key| *key < 3);
        let statement = dice.roll(2) as u8;
        let account = Account::new("shop").expect("a name");
        let account = match dice.roll(3) {
            0 => account
                .analyst("ann")
                .and_then(|account| account.team("red")),
            1 => account.team("red"),
            _ => Ok(account),
        };
        let account = account.expect("names");
        let before = self.model.clone();
        let expected = self.model.reserve(&account.levels(), cost, key, statement);
        let appends = matches!(expected, Answer::Kept(_));
        let mut journal = Direct {
            writer: self.processes[process].as_mut().expect("is up"),
            key: key.map(|key| [key; 32]),
            statement: Some([statement; 32]),
        };
        let event = eighths(cost);
        let told = match Filter::new(Mode::Pure).reserve(&event, &account, &mut journal) {
            Ok(permit) => Ok(permit),
            Err(Unreserved::Journal(error)) => Err(error),
            Err(Unreserved::Refused(Refusal::Exhausted { .. })) => Err(Error::Emptied),
            Err(other) => panic!("{other}"),
        };
        self.settle_fate(process, before, appends, &told);
        self.compare(expected, told, &event);
    }

    /// The fate is `Kept` again if the process died of it, and then there was no answer to compare.
    fn compare(&mut self, expected: Answer, told: Result<Permit>, event: &Event) {
        match (expected, told) {
            (_, Err(Error::Busy | Error::Failed { .. })) => {}
            (Answer::Kept(sequence), Ok(permit)) => {
                assert_eq!(permit.sequence(), sequence);
                let durable = self
                    .disk
                    .borrow()
                    .rows
                    .iter()
                    .any(|row| row.sequence == sequence && row.kind == Kind::Reserve);
                assert!(durable, "a permit without a charge");
                self.permits.push(permit.redeem(event).expect("its event"));
            }
            (Answer::Exhausted, Err(Error::Emptied)) => {}
            (Answer::Charged(first), Err(Error::Charged { sequence })) => {
                assert_eq!(first, sequence)
            }
            (Answer::Reused(first), Err(Error::KeyReused { sequence })) => {
                assert_eq!(first, sequence)
            }
            (expected, told) => panic!("{expected:?} was expected, and not {told:?}"),
        }
    }

    fn settle(&mut self, process: usize, dice: &mut Dice) {
        let at = dice.roll(self.permits.len() as u64) as usize;
        let redeemed = &self.permits[at];
        let sequence = redeemed.sequence();
        let answer = format!("[{sequence}]");
        let body = body::write_settle(sequence, &answer).expect("JSON");
        let before = self.model.clone();
        let expected = self.model.settle(sequence, &answer);
        let appends = expected == Answer::Settled;
        let mut told = Err(Error::failed("not asked"));
        let writer = self.processes[process].as_mut().expect("is up");
        let committed = writer.transact(|writer| told = writer.settle(redeemed, body));
        let told = committed.and(told);
        self.settle_fate(process, before, appends, &told);
        match (expected, told) {
            (_, Err(Error::Busy | Error::Failed { .. })) => {}
            (Answer::Settled, Ok(receipt)) => self.receipts.push(receipt),
            (Answer::SettledBefore, Err(Error::Settled { .. })) => {}
            (expected, told) => panic!("{expected:?} was expected, and not {told:?}"),
        }
    }

    fn find(&mut self, process: usize, key: u8) {
        let writer = self.processes[process].as_mut().expect("is up");
        let mut told = Err(Error::failed("not asked"));
        let committed = writer.transact(|writer| told = writer.find([key; 32]));
        let told = committed.and(told);
        let before = self.model.clone();
        self.settle_fate(process, before, false, &told);
        let expected = self
            .model
            .keys
            .get(&key)
            .map(|charge| &self.model.charges[charge].1);
        match (expected, told) {
            (_, Err(Error::Busy)) | (None, Ok(None)) => {}
            (Some(None), Ok(Some(Found::Lost { .. }))) => {}
            (Some(Some(stored)), Ok(Some(Found::Answered { answer, .. }))) => {
                assert_eq!(*stored, answer)
            }
            (expected, told) => panic!("{expected:?} was expected, and not {told:?}"),
        }
    }

    fn raise(&mut self, process: usize) {
        let before = self.model.clone();
        let cap = self.model.caps.get_mut(&Level::Dataset).expect("has one");
        *cap += 2;
        let promise = promise(*cap);
        self.model.records += 1;
        let mut told = Err(Error::failed("not asked"));
        let writer = self.processes[process].as_mut().expect("is up");
        let committed = writer
            .transact(|writer| told = writer.set_cap(Level::Dataset, promise, Direction::Raise));
        let told = committed.and(told);
        self.settle_fate(process, before, true, &told);
        assert!(
            matches!(told, Ok(_) | Err(Error::Busy | Error::Failed { .. })),
            "{told:?}"
        );
    }
}

fn schedules(first: u64, count: u64) {
    let (disk, model) = genesis();
    for seed in first..first + count {
        // A panic names the seed that replays it.
        let guard = Named(seed);
        World::new(&disk, &model).run(&mut Dice(seed));
        std::mem::forget(guard);
    }
}

struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        eprintln!("schedule {} failed", self.0);
    }
}

#[test]
fn crash_schedules_agree_with_the_model() {
    let long = std::env::var_os("WHIT_LONG").is_some();
    let each: u64 = if long { 500_000 } else { 50_000 };
    std::thread::scope(|scope| {
        scope.spawn(|| schedules(0, each));
        scope.spawn(|| schedules(each, each));
    });
}

/// The disk that forgets a commit that it has confirmed is caught.
#[test]
fn the_model_has_teeth() {
    let forgetful = std::panic::catch_unwind(|| {
        let (disk, model) = genesis();
        for seed in 0..100 {
            let mut world = World::new(&disk, &model);
            world.start(0);
            let dice = &mut Dice(seed);
            world.reserve(0, dice);
            let shorter = world.disk.borrow().rows.len() - 1;
            world.disk.borrow_mut().rows.truncate(shorter);
            world.start(1);
        }
    });
    assert!(forgetful.is_err());
    let double = std::panic::catch_unwind(|| {
        let (disk, model) = genesis();
        let mut world = World::new(&disk, &model);
        world.start(0);
        world.model.spent.insert(Level::Dataset, 1);
        world.start(1);
    });
    assert!(double.is_err());
}
