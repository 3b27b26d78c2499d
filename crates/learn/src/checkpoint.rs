//! What is kept of a run so that it can go on after a crash: parameters, the optimizer's state, and how much of the event is spent.
//!
//! **Claim.** However often a run crashes and goes on from its checkpoint, all its steps together are at most those of its event.
//!
//! **Proof.** A checkpoint says how many steps were *begun*. It is never below the number of steps that were ever run, nor above the total, by
//! induction over what is written. 1. `Place::begin` alone grants steps: it raises the number, by no more than what the event leaves, and makes the
//! file durable before it returns, in the folder where the run was begun and not in another that has its name by now (`Place::keep`, which finds the file that it wrote under its name and then the folder; on Unix, and elsewhere on the word of whoever moves folders. Names are looked up one after the other: whoever puts another folder there while the file is written and the first one back between these two looks has counted nowhere, and undoes the claim), so that each step is counted by a file that was written before it. The number that is raised is that of the file that is replaced: `Place::keep` finds there what this state was read from or written to last, by its numbers and by the sum at its end, or refuses. 2. `Place::give_back` alone lowers it, by
//! steps that were granted to this process and not taken, and takes the grant away with them, whether or not the file can be written: those steps were
//! never run, and if they are later, it is by another grant. Whichever of the old file and the new one is there after a crash, its number is not too small. 3. A run that goes on takes
//! its number from the file. Two runs cannot hold the same place: it is locked against other processes, and within one process whoever counts has it for oneself (`&mut`), from where the number is read on. A fork of a process has its lock and its grant, and another number: it is refused where steps are taken and where files are written. A place is begun once, by a [`Payment`](crate::payment::Payment) that this uses up. ∎ Where a lock
//! holds on one machine only (some network disks), two machines could hold a place: then the first one that finds the other's file stops. Both count what they grant, but if both replace the same file, in the moment between the last look and the new name, they are granted the same steps once.
//!
//! Steps that were begun and lost are lost: their noise may have been seen (in a loss on public data that was shown, say), so running
//! them again would be a second release. A run that is stopped in good order loses none: steps that it did not take are given back. Of one that is killed nobody knows which it has taken. Whoever writes more often loses fewer. A folder that is copied while a run is under way would take
//! the same steps twice: on Unix a checkpoint knows the file beside it that it was begun with and their folder, by their numbers and by when they were made, and a copy is refused. Where a disk does not tell when
//! a file was made, a copy that happens to have the same numbers passes, and on every disk a copy of the disk itself does, as does one that is made under a clock that was set back to the nanosecond. An older file that is
//! put back between two runs in place of a newer one is the owner's doing, and undoes the claim; while a run is under way it is noticed at the next write.
//!
//! **Nothing private is in the file.** Parameters and whatever an optimizer makes of them are releases. No key and no state of the
//! entropy is kept, and no number of examples: noise after a crash is fresh. A sampler that deals out an epoch beforehand cannot go on
//! within it, since the deal is secret: what it gives back are whole epochs. Nor are the sums kept that a cyclic run remembers: it begins again without them
//! after a whole epoch, or not at all (see `plan/factor.rs`). The file's name is that of the plan.

mod error;
mod place;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whit_core::Event;

pub use error::CheckpointError;
pub use place::Place;
#[cfg(test)]
pub(crate) use place::room;
pub(crate) use place::same_process;

use crate::payment::Payer;
use error::Result;

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"whitckpt";

/// The version that is written, and the only one that is read.
const VERSION: u32 = 3;

/// What a checkpoint belongs to. If any of it differs, it belongs to something else.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The fingerprint of everything in the plan.
    pub plan: [u8; 32],
    /// The one event of the whole run.
    pub event: Event,
    /// The number of steps that the event pays for.
    pub steps_total: u64,
}

impl Run {
    /// The plan's fingerprint in letters, which stands in the card of the run.
    pub fn name(&self) -> String {
        hex(&self.plan)
    }
}

/// The state of a run between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    run: Run,
    payer: Payer,
    /// Beside which file and in which folder it was begun, where these have numbers.
    home: Option<[u64; 4]>,
    /// The file that it was read from or written to last; `None` before the first write.
    seen: Option<Seen>,
    steps_begun: u64,
    steps_kept: u64,
    /// All parameters, in the order of the model.
    pub parameters: Vec<f32>,
    /// What the optimizer keeps for each parameter, by name.
    pub vectors: BTreeMap<String, Vec<f32>>,
    /// What it keeps besides, by name.
    pub scalars: BTreeMap<String, f64>,
}

/// A file as it was found.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    /// Those of its disk and its own, where the system has them.
    numbers: Option<[u64; 2]>,
    sum: Vec<u8>,
}

/// The public head of a file. Floats stand there as their bits, so that they are read as they were.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    plan: String,
    event: Event,
    payer: Payer,
    /// Always of the same length.
    home: Option<String>,
    steps_total: u64,
    steps_begun: u64,
    steps_kept: u64,
    parameters: u64,
    vectors: Vec<(String, u64)>,
    scalars: Vec<(String, u64)>,
}

impl Checkpoint {
    /// A run before its first step, and who has paid for it.
    pub(crate) fn new(run: Run, payer: Payer, parameters: Vec<f32>) -> Self {
        Self {
            run,
            payer,
            home: None,
            seen: None,
            steps_begun: 0,
            steps_kept: 0,
            parameters,
            vectors: BTreeMap::new(),
            scalars: BTreeMap::new(),
        }
    }

    /// Counts up to `steps` more as begun, and says how many there are: none at the end.
    fn begin(&mut self, steps: u64) -> u64 {
        let granted = steps.min(self.run.steps_total - self.steps_begun);
        self.steps_begun += granted;
        granted
    }

    /// Takes `granted` steps that were begun and not taken back, as far as they are not of an epoch that was begun: what deals examples to its
    /// steps is secret and not kept, so that a run goes on after whole epochs. Says how many of them stay granted.
    fn give_back(&mut self, granted: u64, epoch: u64) -> u64 {
        let taken = self.steps_begun.saturating_sub(granted);
        let end = taken.next_multiple_of(epoch.max(1)).min(self.steps_begun);
        self.steps_begun = end;
        end - taken
    }

    /// Notes that the parameters hold `steps` more steps than before.
    pub(crate) fn done(&mut self, steps: u64) {
        self.steps_kept = (self.steps_kept + steps).min(self.steps_begun);
    }

    /// How many steps the parameters hold.
    pub fn steps_kept(&self) -> u64 {
        self.steps_kept
    }

    /// How many steps are spent; those that are not kept are lost.
    pub fn steps_begun(&self) -> u64 {
        self.steps_begun
    }

    /// Is there nothing left to take, and nothing that was taken? Then the parameters are the initial ones, and no model of this run.
    pub fn is_lost(&self) -> bool {
        self.steps_kept == 0 && self.steps_begun >= self.run.steps_total
    }

    /// Who has paid for the run.
    pub fn payer(&self) -> &Payer {
        &self.payer
    }

    /// What it belongs to.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The bytes of a file: magic, version, length of the head, head, numbers, and SHA-256 of all that.
    pub fn encode(&self) -> Vec<u8> {
        let header = Header {
            plan: hex(&self.run.plan),
            event: self.run.event.clone(),
            payer: self.payer.clone(),
            home: self
                .home
                .map(|home| home.map(|number| format!("{number:016x}")).concat()),
            steps_total: self.run.steps_total,
            steps_begun: self.steps_begun,
            steps_kept: self.steps_kept,
            parameters: self.parameters.len() as u64,
            vectors: self
                .vectors
                .iter()
                .map(|(name, values)| (name.clone(), values.len() as u64))
                .collect(),
            scalars: self
                .scalars
                .iter()
                .map(|(name, value)| (name.clone(), value.to_bits()))
                .collect(),
        };
        let text = serde_json::to_vec(&header).expect("plain data, whose keys are names");
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text);
        for values in std::iter::once(&self.parameters).chain(self.vectors.values()) {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        let sum = Sha256::digest(&bytes);
        bytes.extend(sum);
        bytes
    }

    /// Reads a file of the given run.
    pub fn decode(bytes: &[u8], run: &Run) -> Result<Self> {
        let read = Self::decode_any(bytes)?;
        // All of it, since a fingerprint may be made of less than a caller believes.
        if read.run == *run {
            Ok(read)
        } else {
            Err(CheckpointError::OtherPlan)
        }
    }

    fn decode_any(bytes: &[u8]) -> Result<Self> {
        let damaged = CheckpointError::Damaged;
        let (start, rest) = bytes.split_first_chunk::<8>().ok_or(damaged.clone())?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(damaged.clone())?;
        if start != MAGIC {
            return Err(damaged);
        }
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(CheckpointError::Version { found: version });
        }
        let (rest, sum) = rest.split_last_chunk::<32>().ok_or(damaged.clone())?;
        if Sha256::digest(&bytes[..bytes.len() - 32])[..] != sum[..] {
            return Err(damaged);
        }
        Self::read(rest).ok_or(damaged)
    }

    /// What stands between the version and the sum.
    fn read(rest: &[u8]) -> Option<Self> {
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (text, mut numbers) = rest.split_at_checked(length)?;
        let header: Header = serde_json::from_slice(text).ok()?;
        let mut take = |count: u64| {
            let bytes = usize::try_from(count).ok()?.checked_mul(4)?;
            let (values, rest) = numbers.split_at_checked(bytes)?;
            numbers = rest;
            let (values, _) = values.as_chunks::<4>();
            Some(
                values
                    .iter()
                    .map(|value| f32::from_le_bytes(*value))
                    .collect(),
            )
        };
        let parameters = take(header.parameters)?;
        let vectors = header
            .vectors
            .into_iter()
            .map(|(name, count)| Some((name, take(count)?)))
            .collect::<Option<_>>()?;
        let scalars = header.scalars.into_iter();
        let read = Self {
            run: Run {
                plan: unhex(&header.plan)?,
                event: header.event,
                steps_total: header.steps_total,
            },
            payer: header.payer,
            home: match header.home {
                Some(home) => Some(unhex_numbers(&home)?),
                None => None,
            },
            seen: None,
            steps_begun: header.steps_begun,
            steps_kept: header.steps_kept,
            parameters,
            vectors,
            scalars: scalars
                .map(|(name, bits)| (name, f64::from_bits(bits)))
                .collect(),
        };
        let steps = read.steps_kept <= read.steps_begun && read.steps_begun <= read.run.steps_total;
        (numbers.is_empty() && steps).then_some(read)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = [0; 32];
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Four numbers of sixteen digits each.
fn unhex_numbers(text: &str) -> Option<[u64; 4]> {
    let (digits, rest) = text.as_bytes().as_chunks::<16>();
    let digits: [[u8; 16]; 4] = digits.try_into().ok()?;
    let mut numbers = [0; 4];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        *number = u64::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
    }
    rest.is_empty().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use whit_core::{Mechanism, Neighbours, Ratio};

    use super::*;

    pub(super) fn run(plan: u8) -> Run {
        let epsilon = Ratio::new(3, 1).expect("three");
        Run {
            plan: [plan; 32],
            event: Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon }),
            steps_total: 50,
        }
    }

    fn payer() -> Payer {
        Payer::Ledger {
            dataset: "shop".into(),
            sequence: 3,
            run: "a".into(),
        }
    }

    pub(super) fn checkpoint() -> Checkpoint {
        let parameters = vec![1.5, -0.0, f32::MIN_POSITIVE, 1.0 / 3.0];
        let mut checkpoint = Checkpoint::new(run(7), payer(), parameters);
        checkpoint.vectors.insert("momentum".into(), vec![0.25; 4]);
        checkpoint.vectors.insert("average".into(), vec![]);
        checkpoint.scalars.insert("clip".into(), 0.1 + 0.2);
        assert_eq!(checkpoint.begin(30), 30);
        checkpoint.done(20);
        checkpoint
    }

    #[test]
    fn other_plans_events_and_lengths_are_refused() {
        let bytes = checkpoint().encode();
        assert_eq!(Checkpoint::decode(&bytes, &run(7)), Ok(checkpoint()));
        let epsilon = Ratio::new(4, 1).expect("four");
        let event = Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon });
        let others = [
            run(8),
            Run { event, ..run(7) },
            Run {
                steps_total: 51,
                ..run(7)
            },
        ];
        for other in others {
            let found = Checkpoint::decode(&bytes, &other);
            assert_eq!(found, Err(CheckpointError::OtherPlan));
        }
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let whole = checkpoint().encode();
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert!(
                Checkpoint::decode(&changed, &run(7)).is_err(),
                "byte {place}"
            );
            assert!(
                Checkpoint::decode(&whole[..place], &run(7)).is_err(),
                "cut {place}"
            );
        }
        let mut later = whole;
        for other in [2, 4] {
            later[8] = other;
            let found = u32::from(other);
            let refused = Checkpoint::decode(&later, &run(7));
            assert_eq!(refused, Err(CheckpointError::Version { found }));
        }
    }

    #[test]
    fn no_more_steps_are_granted_than_there_are() {
        let mut checkpoint = Checkpoint::new(run(7), Payer::Nobody, vec![]);
        let granted = [0; 4].map(|_| checkpoint.begin(20));
        assert_eq!(granted, [20, 20, 10, 0]);
        checkpoint.done(99);
        assert_eq!(checkpoint.steps_kept(), 50);
    }

    #[test]
    fn whole_epochs_that_were_not_begun_are_given_back() {
        let check = |begun: u64, granted: u64, epoch: u64, expected: (u64, u64)| {
            let mut checkpoint = Checkpoint::new(run(7), Payer::Nobody, vec![]);
            assert_eq!(checkpoint.begin(begun), begun);
            let left = checkpoint.give_back(granted, epoch);
            assert_eq!((checkpoint.steps_begun(), left), expected);
        };
        check(20, 20, 1, (0, 0));
        check(20, 7, 1, (13, 0));
        check(20, 0, 1, (20, 0));
        // 13 were taken, and the epoch ends at 15.
        check(20, 7, 5, (15, 2));
        check(20, 5, 5, (15, 0));
        check(20, 7, 20, (20, 7));
        // The last epoch is cut by the end of the run.
        check(50, 3, 20, (50, 3));
        check(50, 13, 20, (40, 3));
        check(0, 0, 5, (0, 0));
    }
}
