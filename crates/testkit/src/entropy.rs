//! Entropy with a seed, and entropy that fails.

use whit_core::{Bits, Entropy, EntropyFailure};

/// Opens streams that depend on the seed and on how many were opened before.
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// The same seed gives the same streams.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Entropy for Seeded {
    type Bits = SeededBits;

    fn open(&mut self) -> Result<SeededBits, EntropyFailure> {
        Ok(SeededBits::from_splitmix(&mut self.state))
    }
}

/// xoshiro256++: fast, and good enough to test a sampler with; never for privacy.
pub struct SeededBits {
    state: [u64; 4],
}

impl SeededBits {
    /// One stream on its own.
    pub fn new(seed: u64) -> Self {
        Self::from_splitmix(&mut { seed })
    }

    fn from_splitmix(state: &mut u64) -> Self {
        Self {
            state: std::array::from_fn(|_| splitmix(state)),
        }
    }

    /// A number in `0 .. bound`, close enough to uniform for making test data.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }
}

impl Bits for SeededBits {
    const WIDTH: u32 = 64;

    #[inline]
    fn word(&mut self) -> u64 {
        let s = &mut self.state;
        let word = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        word
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// An operating system without entropy.
pub struct FailingEntropy;

impl Entropy for FailingEntropy {
    type Bits = SeededBits;

    fn open(&mut self) -> Result<SeededBits, EntropyFailure> {
        Err(EntropyFailure)
    }
}
