//! What all records add up to.
//!
//! [`State::push`] takes rows in order and never trusts one: the number follows, the hash fits, the link fits, the body can be
//! read, and no reservation passes the cap that held when it was made. What fails is noted as damage; of it only reservations that
//! pass a cap still count, since it may be the cap that was lost. A ledger with damage is not used, until a later `recover` record, which the signed head covers, names exactly that
//! damage. From there on the budget is closed: what the damaged records had spent is not known, so all of it is taken as
//! spent.

use std::collections::{BTreeMap, HashMap};

use whit_accounting::budget::{Amount, Cap, Mode, Sums};
use whit_accounting::reserve::{Level, Standing};
use whit_core::Neighbours;

use crate::body::{Accept, CapBody, Damage, FORMAT, Hex, Opening, Recover, Resume, Suspend};
use crate::error::{Error, Result};
use crate::record::{Hash, Kind, Raw, Receipt};
use crate::tally::{self, Charged};

/// A level's cap and sums.
#[derive(Clone, Copy, Debug, Default)]
struct Purse {
    cap: Option<Cap>,
    spent: Sums,
}

impl Purse {
    /// Adds a reservation, and says whether it is within the cap.
    fn charge(&mut self, cost: Sums) -> bool {
        let sum = self.spent.checked_add(cost);
        self.spent = sum.unwrap_or(EVERYTHING);
        self.cap
            .is_none_or(|cap| sum.is_some_and(|sum| within(sum, cap.limit())))
    }

    fn close(&mut self, floor: Sums) {
        let limit = self.cap.map_or(floor, |cap| most(floor, cap.limit()));
        self.spent = most(self.spent, limit);
    }
}

/// Where a level without a cap stays once its sum is no amount any more.
const EVERYTHING: Sums = Sums {
    loss: Amount::from_units(u128::MAX),
    delta: Amount::from_units(u128::MAX),
};

fn within(sum: Sums, limit: Sums) -> bool {
    sum.loss <= limit.loss && sum.delta <= limit.delta
}

fn most(one: Sums, two: Sums) -> Sums {
    Sums {
        loss: one.loss.max(two.loss),
        delta: one.delta.max(two.delta),
    }
}

/// Half of a key. Two requests with the same half, which nobody has ever found, would be taken for one.
type ShortKey = [u8; 16];

fn short(key: &Hash) -> ShortKey {
    std::array::from_fn(|at| key[at])
}

/// From reservations to settlements: a list by number, since nearly every number is used, and a map for what lies beyond a
/// gap that damage has left.
#[derive(Clone, Debug, Default)]
struct Settlements {
    list: Vec<u64>,
    beyond: BTreeMap<u64, u64>,
    count: u64,
}

/// The list is no longer than the number of rows and this.
const GAP_MAX: u64 = 1 << 20;

impl Settlements {
    /// Whether this is the first settlement of the reservation.
    fn insert(&mut self, reservation: u64, settlement: u64, rows: u64) -> bool {
        if self.get(reservation).is_some() {
            return false;
        }
        self.count += 1;
        match usize::try_from(reservation) {
            Ok(at) if reservation < rows + GAP_MAX => {
                if at >= self.list.len() {
                    self.list.resize(at + 1, 0);
                }
                self.list[at] = settlement;
            }
            _ => {
                self.beyond.insert(reservation, settlement);
            }
        }
        true
    }

    fn get(&self, reservation: u64) -> Option<u64> {
        let at = usize::try_from(reservation).ok()?;
        let listed = self.list.get(at).copied().filter(|found| *found > 0);
        listed.or_else(|| self.beyond.get(&reservation).copied())
    }
}

/// The sums of a chain up to some record.
#[derive(Clone, Debug)]
pub(crate) struct State {
    opening: Option<Opening>,
    next: u64,
    /// The hash that the next record must name; none where damage made it unknown.
    link: Option<Hash>,
    dataset: Purse,
    teams: BTreeMap<String, Purse>,
    analysts: BTreeMap<String, Purse>,
    /// From idempotency keys to reservations.
    keys: HashMap<ShortKey, u64>,
    settlements: Settlements,
    rows: u64,
    reserved: u64,
    /// The charge whose statement failed, until the owner has looked into it.
    suspended: Option<u64>,
    damage: Vec<Damage>,
    first_damage: Option<(u64, &'static str)>,
}

impl State {
    /// Before the first record. Room is made for as many reservations and settlements as that many records can hold.
    pub(crate) fn new(records: usize) -> Self {
        Self {
            opening: None,
            next: 1,
            link: Some([0; 32]),
            dataset: Purse::default(),
            teams: BTreeMap::new(),
            analysts: BTreeMap::new(),
            keys: HashMap::with_capacity(records / 2),
            settlements: Settlements::default(),
            rows: 0,
            reserved: 0,
            suspended: None,
            damage: Vec::new(),
            first_damage: None,
        }
    }

    /// Takes the next row.
    pub(crate) fn push(&mut self, raw: &Raw<'_>) {
        self.push_hashed(raw, raw.is_sound());
    }

    /// Takes the next row, of which somebody has found out whether it is sound.
    pub(crate) fn push_hashed(&mut self, raw: &Raw<'_>, is_sound: bool) {
        self.rows += 1;
        let Some(sequence) = self.sequence_of(raw) else {
            return self.note_altered(raw, "its number does not follow");
        };
        self.next = sequence + 1;
        let linked = self.link.is_none_or(|link| link == raw.previous);
        self.link = raw.hash.try_into().ok();
        if !is_sound {
            self.note_altered(raw, "its hash is not that of its content");
        } else if !linked {
            self.note_altered(raw, "it does not name the record before");
        } else if self.apply(sequence, raw).is_none() {
            self.note_altered(raw, "it cannot be read, or passes a cap");
        }
    }

    /// The number of a row, if it can be the next one or leaves a gap. Rows beyond any honest number are no rows.
    fn sequence_of(&mut self, raw: &Raw<'_>) -> Option<u64> {
        let sequence = u64::try_from(raw.sequence).ok()?;
        if sequence < self.next || sequence > i64::MAX as u64 / 2 {
            return None;
        }
        self.note_missing_up_to(sequence);
        Some(sequence)
    }

    fn note_missing_up_to(&mut self, sequence: u64) {
        if sequence > self.next {
            let (first, last) = (self.next, sequence - 1);
            self.note(first, "it is missing", Damage::Missing { first, last });
            self.link = None;
            self.next = sequence;
        }
    }

    fn note_altered(&mut self, raw: &Raw<'_>, what: &'static str) {
        let (sequence, digest) = (raw.sequence, Hex(raw.digest()));
        let place = u64::try_from(sequence).unwrap_or_default();
        self.note(place, what, Damage::Altered { sequence, digest });
    }

    fn note(&mut self, place: u64, what: &'static str, damage: Damage) {
        self.first_damage.get_or_insert((place, what));
        self.damage.push(damage);
    }

    fn apply(&mut self, sequence: u64, raw: &Raw<'_>) -> Option<()> {
        let kind = Kind::from_word(raw.kind)?;
        if self.opening.is_none() && !matches!(kind, Kind::Open | Kind::Recover) {
            return None;
        }
        match kind {
            Kind::Reserve => self.apply_reserve(sequence, raw.body),
            Kind::Settle => {
                let of = tally::settled(raw.body)?;
                let first = self.settlements.insert(of, sequence, self.rows);
                (first && of < sequence).then_some(())
            }
            Kind::Open => {
                let opening: Opening = serde_json::from_slice(raw.body).ok()?;
                let first = sequence == 1 && opening.format == FORMAT;
                self.opening = Some(first.then_some(opening)?);
                Some(())
            }
            Kind::Cap => {
                let body: CapBody = serde_json::from_slice(raw.body).ok()?;
                let cap = body.cap(self.mode()?, self.neighbours()?)?;
                self.purse_mut(&body.level.into())?.cap = Some(cap);
                Some(())
            }
            Kind::Accept => {
                let accept: Accept = serde_json::from_slice(raw.body).ok()?;
                self.opening.as_mut()?.catalog = accept.catalog;
                Some(())
            }
            Kind::Recover => self.apply_recover(serde_json::from_slice(raw.body).ok()?),
            Kind::Suspend => {
                let suspend: Suspend = serde_json::from_slice(raw.body).ok()?;
                self.suspended = Some(suspend.of);
                (suspend.of < sequence).then_some(())
            }
            Kind::Resume => {
                let Resume {} = serde_json::from_slice(raw.body).ok()?;
                self.suspended.take().map(|_| ())
            }
        }
    }

    fn apply_reserve(&mut self, sequence: u64, body: &[u8]) -> Option<()> {
        let Charged {
            cost,
            team,
            analyst,
            key,
        } = tally::charged(body)?;
        let mut fits = self.dataset.cap.is_some();
        fits &= self.dataset.charge(cost);
        if let Some(team) = team {
            fits &= charge(&mut self.teams, &team, cost);
        }
        if let Some(analyst) = analyst {
            fits &= charge(&mut self.analysts, &analyst, cost);
        }
        self.reserved += 1;
        if let Some(key) = key {
            fits &= self.keys.insert(short(&key), sequence).is_none();
        }
        fits.then_some(())
    }

    /// Damage that is named exactly is no news any more; but the budget is closed.
    fn apply_recover(&mut self, recover: Recover) -> Option<()> {
        let in_rows = |damage: &&Damage| damage.is_in_rows();
        let named = recover.damage.iter().filter(in_rows);
        if !named.eq(self.damage.iter().filter(in_rows)) || recover.opening.format != FORMAT {
            return None;
        }
        // Another key without a closed budget would let anybody sign a history of their own.
        let key = self.opening.as_ref().map(|opening| opening.public_key);
        if recover.damage.is_empty() && key != Some(recover.opening.public_key) {
            return None;
        }
        self.opening = Some(recover.opening);
        if !recover.damage.is_empty() {
            let floor = Sums {
                loss: recover.loss_floor.0,
                delta: recover.delta_floor.0,
            };
            self.dataset.close(floor);
            let named = self.teams.values_mut().chain(self.analysts.values_mut());
            named.for_each(|purse| purse.close(Sums::default()));
        }
        self.damage.clear();
        self.first_damage = None;
        Some(())
    }

    /// Compares the end of the chain with the head that was signed, whose signature is known to be good or not.
    pub(crate) fn check_head(&mut self, head: Option<Receipt>) {
        let last = self.next - 1;
        match head {
            Some(head) if head.sequence > last && head.sequence <= i64::MAX as u64 / 2 => {
                self.note_missing_up_to(head.sequence + 1);
            }
            Some(head) if head.sequence == last && self.link == Some(head.hash) => {}
            _ => self.note(
                0,
                "the signed head is not that of the last record",
                Damage::Head,
            ),
        }
    }

    /// Compares the chain with how far it had come once. `found` is the hash of the record that was the last one then.
    pub(crate) fn check_mark(&mut self, mark: Receipt, found: Option<Hash>) {
        if mark.sequence >= self.next && mark.sequence <= i64::MAX as u64 / 2 {
            self.note_missing_up_to(mark.sequence + 1);
        } else if found != Some(mark.hash) {
            let what = "it is not the record that was here once";
            self.note(mark.sequence, what, Damage::Head);
        }
    }

    /// That there is no damage.
    pub(crate) fn sound(&self) -> Result<&Opening> {
        match (self.first_damage, &self.opening) {
            (Some((sequence, what)), _) => Err(Error::Damaged { sequence, what }),
            (None, None) => Err(Error::Emptied),
            (None, Some(opening)) => Ok(opening),
        }
    }

    /// That no charge waits for the owner to look into it.
    pub(crate) fn running(&self) -> Result<()> {
        match self.suspended {
            Some(sequence) => Err(Error::Suspended { sequence }),
            None => Ok(()),
        }
    }

    /// What is wrong.
    pub(crate) fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// How the ledger was opened, if that can be read, with the catalog that was accepted last.
    pub(crate) fn opening(&self) -> Option<&Opening> {
        self.opening.as_ref()
    }

    fn mode(&self) -> Option<Mode> {
        self.opening.as_ref().map(|opening| opening.mode.0)
    }

    fn neighbours(&self) -> Option<Neighbours> {
        self.opening.as_ref().map(|opening| opening.neighbours)
    }

    /// The number of the next record, and what it must name.
    pub(crate) fn end(&self) -> (u64, Hash) {
        (self.next, self.link.unwrap_or_default())
    }

    /// The last record.
    pub(crate) fn head(&self) -> Option<Receipt> {
        let sequence = self.next.checked_sub(1).filter(|last| *last > 0)?;
        let hash = self.link?;
        Some(Receipt { sequence, hash })
    }

    /// Whether nothing was read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.next == 1 && self.damage.is_empty()
    }

    /// The reservation under an idempotency key.
    pub(crate) fn reserved_as(&self, key: &Hash) -> Option<u64> {
        self.keys.get(&short(key)).copied()
    }

    /// The settlement of a reservation.
    pub(crate) fn settled_as(&self, reservation: u64) -> Option<u64> {
        self.settlements.get(reservation)
    }

    /// Reservations, and how many of them are settled.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.reserved, self.settlements.count)
    }

    /// Where a level stands.
    pub(crate) fn standing(&self, level: Level) -> Standing {
        let purse = match &level {
            Level::Team(name) => self.teams.get(name).copied(),
            Level::Analyst(name) => self.analysts.get(name).copied(),
            _ => Some(self.dataset),
        };
        let Purse { cap, spent } = purse.unwrap_or_default();
        Standing { level, cap, spent }
    }

    /// Every level that has a cap or was charged, the data set first.
    pub(crate) fn levels(&self) -> Vec<Level> {
        let teams = self.teams.keys().cloned().map(Level::Team);
        let analysts = self.analysts.keys().cloned().map(Level::Analyst);
        std::iter::once(Level::Dataset)
            .chain(teams)
            .chain(analysts)
            .collect()
    }

    fn purse_mut(&mut self, level: &Level) -> Option<&mut Purse> {
        match level {
            Level::Dataset => Some(&mut self.dataset),
            Level::Team(name) => Some(purse(&mut self.teams, name.clone())),
            Level::Analyst(name) => Some(purse(&mut self.analysts, name.clone())),
            _ => None,
        }
    }
}

/// Charges somebody by name; a name that is known is not copied.
fn charge(purses: &mut BTreeMap<String, Purse>, name: &str, cost: Sums) -> bool {
    match purses.get_mut(name) {
        Some(purse) => purse.charge(cost),
        None => purse(purses, name.to_owned()).charge(cost),
    }
}

fn purse(purses: &mut BTreeMap<String, Purse>, name: String) -> &mut Purse {
    purses.entry(name).or_default()
}
