//! One link of the chain.
//!
//! A record is `(sequence, kind, body, previous, hash)`. `hash` is SHA-256 over the other four, each with its length where it
//! has one, so that no two records have the same bytes under the hash; `previous` is the `hash` of the record before, and zero
//! for the first. Whoever knows a hash therefore knows the whole history that led to it: that is what a [`Receipt`] is.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The beginning: data set, mode, relation, catalog and public key.
    Open,
    /// A charge. It counts from here on, whatever becomes of it.
    Reserve,
    /// What a charge was answered with.
    Settle,
    /// What a level may spend from here on.
    Cap,
    /// A changed catalog that the owner has accepted.
    Accept,
    /// Damage that the owner has seen, or a new key.
    Recover,
    /// A statement failed after its charge, which may tell of the data: no further charges.
    Suspend,
    /// The owner has looked into it.
    Resume,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Open,
        Self::Reserve,
        Self::Settle,
        Self::Cap,
        Self::Accept,
        Self::Recover,
        Self::Suspend,
        Self::Resume,
    ];

    /// The word in the record.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Reserve => "reserve",
            Self::Settle => "settle",
            Self::Cap => "cap",
            Self::Accept => "accept",
            Self::Recover => "recover",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
        }
    }

    pub(crate) fn from_word(word: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.word().as_bytes() == word)
    }
}

/// SHA-256.
pub type Hash = [u8; 32];

/// A record that is to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) body: String,
    pub(crate) previous: Hash,
    pub(crate) hash: Hash,
}

impl Record {
    /// The record with its hash.
    pub(crate) fn new(sequence: u64, kind: Kind, body: String, previous: Hash) -> Self {
        let hash = content_hash(sequence, kind.word().as_bytes(), body.as_bytes(), &previous);
        Self {
            sequence,
            kind,
            body,
            previous,
            hash,
        }
    }

    /// As it would be read again.
    pub(crate) fn raw(&self) -> Raw<'_> {
        Raw {
            sequence: self.sequence as i64,
            kind: self.kind.word().as_bytes(),
            body: self.body.as_bytes(),
            previous: &self.previous,
            hash: &self.hash,
        }
    }
}

/// A row as it was found: nothing about it is certain yet. A column of a wrong type is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    pub(crate) sequence: i64,
    pub(crate) kind: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) previous: &'a [u8],
    pub(crate) hash: &'a [u8],
}

impl Raw<'_> {
    /// Whether the hash is that of the content.
    pub(crate) fn is_sound(&self) -> bool {
        self.previous.len() == 32
            && u64::try_from(self.sequence).is_ok_and(|sequence| {
                content_hash(sequence, self.kind, self.body, self.previous) == self.hash
            })
    }

    /// A hash of all that was found, by which damage is named.
    pub(crate) fn digest(&self) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(b"whit damaged row 1\0");
        hasher.update(self.sequence.to_be_bytes());
        for part in [self.kind, self.body, self.previous, self.hash] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

/// The separation from all other uses of SHA-256, then each part; parts of unknown length come with it.
fn content_hash(sequence: u64, kind: &[u8], body: &[u8], previous: &[u8]) -> Hash {
    let mut prefix = [0_u8; 64];
    prefix[..20].copy_from_slice(b"whit ledger record 1");
    prefix[20..28].copy_from_slice(&sequence.to_be_bytes());
    prefix[28..36].copy_from_slice(&(body.len() as u64).to_be_bytes());
    prefix[36..44].copy_from_slice(&(kind.len() as u64).to_be_bytes());
    let mut hasher = Sha256::new();
    hasher.update(prefix);
    hasher.update(kind);
    hasher.update(body);
    hasher.update(previous);
    hasher.finalize().into()
}

/// A place in the chain, by number and hash. It commits to everything before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The number of the record.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.sequence, hex(&self.hash))
    }
}

impl FromStr for Receipt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (sequence, hash) = text.trim().split_once('-')?;
            Some(Self {
                sequence: sequence.parse().ok()?,
                hash: unhex(hash)?,
            })
        };
        parse().ok_or(Error::NotAReceipt)
    }
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    });
    digits.map(char::from).collect()
}

/// 32 bytes from 64 lower-case hex digits.
pub(crate) fn unhex(text: &str) -> Option<Hash> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (DIGIT[usize::from(pair[0])], DIGIT[usize::from(pair[1])]);
        seen |= high | low;
        *byte = high << 4 | (low & 15);
    }
    (seen & NO_DIGIT == 0).then_some(bytes)
}

const NO_DIGIT: u8 = 0x80;
/// What each byte is worth as a digit.
const DIGIT: [u8; 256] = {
    let mut worth = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let letter = if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        };
        worth[letter as usize] = digit;
        digit += 1;
    }
    worth
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_are_lower_case_and_nothing_else() {
        let bytes: Hash = std::array::from_fn(|at| (at * 37 + 11) as u8);
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        for bad in ['g', 'A', '/', ':', '`', ' ', '\u{80}'] {
            let mut text = hex(&bytes);
            text.replace_range(7..8, &bad.to_string());
            assert_eq!(unhex(&text), None, "{bad:?}");
        }
    }

    #[test]
    fn receipts_round_trip() {
        let receipt = Receipt {
            sequence: 12,
            hash: std::array::from_fn(|at| at as u8 * 7),
        };
        assert_eq!(receipt.to_string().parse::<Receipt>(), Ok(receipt));
        for bad in [
            "",
            "12",
            "-",
            "12-00",
            "x-00",
            &receipt.to_string().to_uppercase(),
        ] {
            assert!(bad.parse::<Receipt>().is_err(), "{bad}");
        }
    }

    /// By another program (`hashlib`): ledgers live longer than versions.
    #[test]
    fn the_hash_is_this_one() {
        let record = Record::new(7, Kind::Accept, "{\"catalog\":\"x\"}".into(), [9; 32]);
        assert_eq!(
            hex(&record.hash),
            "9a0fa140ca8dd58cb5ad330489c86adddfd7d6c02de66fbb4d57c49694a57933"
        );
        assert!(record.raw().is_sound());
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let hashes = [
            content_hash(1, b"ab", b"c", &[0; 32]),
            content_hash(1, b"a", b"bc", &[0; 32]),
            content_hash(1, b"abc", b"", &[0; 32]),
            content_hash(2, b"abc", b"", &[0; 32]),
        ];
        for (at, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..at].contains(hash));
        }
    }
}
