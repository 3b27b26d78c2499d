//! Where noise gets its randomness.
//!
//! The crate that draws noise asks for a [`Bits`] stream *per release* and drops it afterwards. No generator state outlives
//! a release, so there is none to clone, to fork or to steal: past noise together with a released answer would be the
//! private answer.

use thiserror::Error;

/// A stream of independent, uniform words.
pub trait Bits {
    /// How many bits a word has, from 1 to 64. Production streams have 64; narrow ones let tests walk through every
    /// possible outcome.
    const WIDTH: u32;

    /// The next word, uniform in `0 .. 2^WIDTH`.
    fn word(&mut self) -> u64;
}

impl<B: Bits> Bits for &mut B {
    const WIDTH: u32 = B::WIDTH;
    fn word(&mut self) -> u64 {
        (**self).word()
    }
}

/// A source that opens one fresh stream per release.
pub trait Entropy {
    /// The stream it opens.
    type Bits: Bits;

    /// Opens a stream that was never used and never will be again. An error means no release: there is no second choice.
    fn open(&mut self) -> Result<Self::Bits, EntropyFailure>;
}

impl<E: Entropy> Entropy for &mut E {
    type Bits = E::Bits;
    fn open(&mut self) -> Result<Self::Bits, EntropyFailure> {
        (**self).open()
    }
}

/// The operating system gave no entropy. Nothing is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the operating system gave no entropy, so nothing was released")]
pub struct EntropyFailure;
