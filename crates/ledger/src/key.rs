//! The key that signs heads: a file beside the ledger that only its owner can read.
//!
//! Its public half stands in the chain. A new key is written under a name of its own, before the first record is committed,
//! and gets its proper name afterwards; so a crash in between leaves either no records and no key, or records and a key
//! that only needs renaming. A proper key without records is therefore never the work of a crash. Neither is one without a mark, which is
//! founded between the two.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::record::{Hash, Receipt, hex, unhex};
use crate::store::SignedHead;
use crate::{Error, Result};

/// The first line of the file.
const TITLE: &str = "whit ledger key 1";

/// Signs heads.
pub(crate) struct HeadKey(Kind);

enum Kind {
    Ed25519(Box<SigningKey>),
    /// For simulations of millions of heads: a hash in place of a signature.
    #[cfg(test)]
    Simulated,
}

/// The public half of a simulated key: no point of the curve.
#[cfg(test)]
const SIMULATED: Hash = [0xff; 32];

#[cfg(test)]
impl HeadKey {
    pub(crate) fn simulated() -> Self {
        Self(Kind::Simulated)
    }
}

#[cfg(test)]
fn simulated_signature(head: Receipt) -> [u8; 64] {
    use sha2::{Digest, Sha256};
    let half: Hash = Sha256::digest(message(head)).into();
    std::array::from_fn(|at| half[at % 32])
}

impl HeadKey {
    /// From the operating system's entropy.
    pub(crate) fn fresh() -> Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        #[expect(clippy::disallowed_methods, reason = "a signing key is no noise")]
        getrandom::fill(seed.as_mut_slice()).map_err(Error::failed)?;
        // A source that reports success but fills nothing would make the key known.
        if *seed == [0; 32] {
            return Err(Error::failed("the operating system gave no entropy"));
        }
        Ok(Self::from_seed(&seed))
    }

    fn from_seed(seed: &Hash) -> Self {
        Self(Kind::Ed25519(Box::new(SigningKey::from_bytes(seed))))
    }

    pub(crate) fn public(&self) -> Hash {
        match &self.0 {
            Kind::Ed25519(key) => key.verifying_key().to_bytes(),
            #[cfg(test)]
            Kind::Simulated => SIMULATED,
        }
    }

    pub(crate) fn sign(&self, head: Receipt) -> SignedHead {
        let signature = match &self.0 {
            Kind::Ed25519(key) => key.sign(&message(head)).to_bytes(),
            #[cfg(test)]
            Kind::Simulated => simulated_signature(head),
        };
        SignedHead { head, signature }
    }

    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let mut text = Zeroizing::new(String::new());
        #[expect(clippy::disallowed_methods, reason = "the ledger's own key")]
        let read = File::open(path).and_then(|file| file.take(1024).read_to_string(&mut text));
        match read.map_err(|error| (error.kind(), error)) {
            Ok(_) => {}
            Err((ErrorKind::NotFound | ErrorKind::InvalidData, _)) => {
                return Err(Error::KeyMissing);
            }
            // A key that cannot be opened just now is not lost.
            Err((_, error)) => {
                return Err(Error::failed(format!("its key cannot be read: {error}")));
            }
        }
        let seed = text.strip_prefix(TITLE).and_then(|seed| unhex(seed.trim()));
        seed.map(|seed| Self::from_seed(&seed))
            .ok_or(Error::KeyMissing)
    }

    /// The key that somebody left at `path` who was making the ledger and died, or a fresh one, written there durably.
    ///
    /// What was left is used again, since its records may come back: a commit that was cut off may be in SQLite's log and not yet in the index
    /// of that log. Whoever has the file open then does not see it, and the next one to open it does.
    pub(crate) fn left_or_fresh(path: &Path) -> Result<Self> {
        if let Ok(left) = Self::read(path) {
            #[expect(clippy::disallowed_methods, reason = "the ledger's own key")]
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(Error::failed)?;
            sync_folder_of(path)?;
            return Ok(left);
        }
        let key = Self::fresh()?;
        key.write(path)?;
        Ok(key)
    }

    /// Writes the file at `path`, durably, readable by its owner alone.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let seed = match &self.0 {
            Kind::Ed25519(key) => Zeroizing::new(hex(key.as_bytes())),
            #[cfg(test)]
            Kind::Simulated => return Err(Error::KeyMissing),
        };
        let text = Zeroizing::new(format!("{TITLE}\n{}\n", seed.as_str()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::failed(error));
            }
            _ => {}
        }
        #[expect(clippy::disallowed_methods, reason = "the ledger's own key")]
        let mut file = options.open(path).map_err(Error::failed)?;
        file.write_all(text.as_bytes()).map_err(Error::failed)?;
        file.sync_all().map_err(Error::failed)?;
        sync_folder_of(path)
    }
}

/// Whether a head was signed by the owner of `public`.
pub(crate) fn is_signed(signed: &SignedHead, public: &Hash) -> bool {
    #[cfg(test)]
    if *public == SIMULATED {
        return signed.signature == simulated_signature(signed.head);
    }
    let signature = Signature::from_bytes(&signed.signature);
    VerifyingKey::from_bytes(public)
        .and_then(|key| key.verify_strict(&message(signed.head), &signature))
        .is_ok()
}

fn message(head: Receipt) -> Vec<u8> {
    let mut message = b"whit ledger head 1\0".to_vec();
    message.extend(head.sequence.to_be_bytes());
    message.extend(head.hash);
    message
}

/// Where the key of a ledger is.
pub(crate) fn key_path(ledger: &Path) -> PathBuf {
    beside(ledger, ".key")
}

/// Where a key is until its first head is committed.
pub(crate) fn new_key_path(ledger: &Path) -> PathBuf {
    beside(ledger, ".key.new")
}

/// A file beside a ledger.
pub(crate) fn beside(ledger: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(ledger);
    name.push(suffix);
    name.into()
}

/// Gives a new key its proper name, durably. Somebody else may have done so in the meantime.
pub(crate) fn promote(ledger: &Path) -> Result<()> {
    match std::fs::rename(new_key_path(ledger), key_path(ledger)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::failed(error));
        }
        _ => {}
    }
    sync_folder_of(ledger)
}

/// Makes the names in a file's folder durable, where a folder can be opened.
pub(crate) fn sync_folder_of(file: &Path) -> Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    #[expect(clippy::disallowed_methods, reason = "the ledger's own folder")]
    let folder = File::open(folder).map_err(Error::failed)?;
    folder.sync_all().map_err(Error::failed)
}

/// Which name a key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Proper,
    /// That of a new key: whoever made the ledger has not come to an end, or never will.
    New,
}

/// The key of a ledger whose records name `public`.
pub(crate) fn load(ledger: &Path, public: &Hash) -> Result<(HeadKey, Name)> {
    let found = HeadKey::read(&key_path(ledger));
    let waiting = HeadKey::read(&new_key_path(ledger));
    match (found, waiting) {
        (Ok(key), _) if key.public() == *public => Ok((key, Name::Proper)),
        (_, Ok(key)) if key.public() == *public => Ok((key, Name::New)),
        // Between looking for the first and for the second, somebody else may have renamed.
        (Err(_), Err(_)) => {
            let key = HeadKey::read(&key_path(ledger))?;
            (key.public() == *public)
                .then_some((key, Name::Proper))
                .ok_or(Error::KeyMismatch)
        }
        (Ok(_), _) => Err(Error::KeyMismatch),
        (Err(error), Ok(_)) => Err(error),
    }
}
