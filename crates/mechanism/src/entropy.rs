//! The only source of randomness that a shipped program has.
//!
//! Each release opens its own ChaCha20 stream \[RFC8439\], keyed with 256 bits from the operating system, and drops it (wiping the
//! key) when the release is done. So no generator state exists between releases: nothing to clone, nothing that a fork
//! could duplicate, nothing from which past noise could be computed. There is no seed and no way to set one. If the
//! operating system gives no entropy, nothing is released.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use whit_core::{Bits, Entropy, EntropyFailure};
use zeroize::Zeroize;

/// Opens streams keyed from the operating system. Has no state.
#[derive(Debug, Default)]
pub struct OsEntropy(());

impl OsEntropy {
    /// A handle to the operating system's entropy.
    pub fn new() -> Self {
        Self(())
    }
}

impl Entropy for OsEntropy {
    type Bits = ChaChaBits;

    fn open(&mut self) -> Result<ChaChaBits, EntropyFailure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where keys come from"
        )]
        ChaChaBits::keyed_by(|key| getrandom::fill(key).map_err(|_| EntropyFailure))
    }
}

/// Words per refill: two kibibytes, so that the cipher works on several blocks at once.
const BUFFER_WORDS: usize = 256;
const BUFFER_BYTES: usize = BUFFER_WORDS * 8;
/// Refills before the 32-bit block counter of ChaCha20 would wrap; then the nonce moves on.
const REFILLS_PER_NONCE: u64 = (1 << 32) / (BUFFER_BYTES as u64 / 64) - 1;

/// A ChaCha20 key stream, read in words. Not `Clone`: two copies would draw the same noise.
pub struct ChaChaBits(Box<State>);

/// In one place on the heap, so that moving the stream leaves no copies behind.
struct State {
    key: [u8; 32],
    nonce: u64,
    refills: u64,
    cipher: ChaCha20,
    buffer: [[u8; 8]; BUFFER_WORDS],
    /// The next word; one beyond the last if there is none left.
    next: usize,
}

impl ChaChaBits {
    fn keyed_by(
        fill: impl FnOnce(&mut [u8]) -> Result<(), EntropyFailure>,
    ) -> Result<Self, EntropyFailure> {
        let mut state = Box::new(State {
            key: [0; 32],
            nonce: 0,
            refills: 0,
            cipher: cipher(&[0; 32], 0),
            buffer: [[0; 8]; BUFFER_WORDS],
            next: BUFFER_WORDS,
        });
        fill(&mut state.key)?;
        // A source that reports success but fills nothing would make all noise known.
        if state.key == [0; 32] {
            return Err(EntropyFailure);
        }
        state.cipher = cipher(&state.key, 0);
        Ok(Self(state))
    }
}

impl State {
    /// Fills the buffer anew, and gives its first word.
    #[inline(never)]
    fn refill(&mut self) -> u64 {
        if self.refills == REFILLS_PER_NONCE {
            self.nonce += 1;
            self.refills = 0;
            self.cipher = cipher(&self.key, self.nonce);
        }
        self.refills += 1;
        self.cipher.write_keystream(self.buffer.as_flattened_mut());
        self.next = 1;
        u64::from_le_bytes(self.buffer[0])
    }
}

/// The cipher at the start of one nonce. The nonce only has to differ under the same key, which never leaves this file.
fn cipher(key: &[u8; 32], nonce: u64) -> ChaCha20 {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&nonce.to_le_bytes());
    ChaCha20::new(key.into(), &bytes.into())
}

impl Bits for ChaChaBits {
    const WIDTH: u32 = 64;

    #[inline]
    fn word(&mut self) -> u64 {
        let state = &mut *self.0;
        let Some(bytes) = state.buffer.get(state.next) else {
            return state.refill();
        };
        state.next += 1;
        u64::from_le_bytes(*bytes)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // The cipher wipes itself; these are the rest of what could recompute the noise.
        self.key.zeroize();
        self.buffer.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn fixed_key(key: [u8; 32]) -> ChaChaBits {
        ChaChaBits::keyed_by(|out| {
            out.copy_from_slice(&key);
            Ok(())
        })
        .expect("a key was given")
    }

    /// RFC 8439, appendix A.1, test vectors 3 and 2 use counters and keys that this stream never has; the cipher is checked
    /// with vector 2.4.2's set-up through the same crate, and the stream against the cipher.
    #[test]
    fn cipher_matches_rfc_8439() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let mut block = [0; 128];
        // Section 2.3.2: key 00..1f, nonce 000000090000004a00000000, block counter 1.
        let nonce: [u8; 12] = [0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0];
        ChaCha20::new(&key.into(), &nonce.into()).apply_keystream(&mut block);
        let expected = [
            0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20,
            0x71, 0xc4, 0xc7, 0xd1, 0xf4, 0xc7, 0x33, 0xc0, 0x68, 0x03, 0x04, 0x22, 0xaa, 0x9a,
            0xc3, 0xd4, 0x6c, 0x4e, 0xd2, 0x82, 0x64, 0x46, 0x07, 0x9f, 0xaa, 0x09, 0x14, 0xc2,
            0xd7, 0x05, 0xd9, 0x8b, 0x02, 0xa2, 0xb5, 0x12, 0x9c, 0xd1, 0xde, 0x16, 0x4e, 0xb9,
            0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e,
        ];
        assert_eq!(block[64..], expected);
    }

    /// A block of ChaCha20 as RFC 8439 writes it down, one number after the other: the cipher has a way of its own for every width of vectors.
    fn plain_block(key: &[u8; 32], counter: u32, nonce: u64) -> [u8; 64] {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let mut start = [0_u32; 16];
        start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (to, from) in start[4..].iter_mut().zip(key.chunks_exact(4)) {
            *to = word(from);
        }
        start[12..15].copy_from_slice(&[counter, nonce as u32, (nonce >> 32) as u32]);
        let mut state = start;
        let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
            for (to, from, with, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]
            {
                state[to] = state[to].wrapping_add(state[from]);
                state[with] = (state[with] ^ state[to]).rotate_left(turn);
            }
        };
        for _ in 0..10 {
            for i in 0..4 {
                quarter(i, 4 + i, 8 + i, 12 + i);
            }
            for i in 0..4 {
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
            }
        }
        let mut block = [0; 64];
        for ((bytes, word), start) in block.chunks_exact_mut(4).zip(state).zip(start) {
            bytes.copy_from_slice(&word.wrapping_add(start).to_le_bytes());
        }
        block
    }

    #[test]
    fn stream_is_the_key_stream() {
        let key: [u8; 32] = std::array::from_fn(|i| 7 * i as u8 + 1);
        let mut bits = fixed_key(key);
        for nonce in 0..2 {
            for counter in 0..5 * BUFFER_BYTES as u32 / 64 {
                for chunk in plain_block(&key, counter, nonce).chunks_exact(8) {
                    let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
                    assert_eq!(bits.word(), word, "block {counter} of nonce {nonce}");
                }
            }
            bits.0.refills = REFILLS_PER_NONCE;
        }
    }

    #[test]
    fn nonce_moves_on_before_the_counter_wraps() {
        let mut bits = fixed_key([9; 32]);
        let first = bits.word();
        bits.0.refills = REFILLS_PER_NONCE;
        bits.0.next = BUFFER_WORDS;
        let mut expected = [0; 8];
        cipher(&[9; 32], 1).apply_keystream(&mut expected);
        assert_eq!(bits.word(), u64::from_le_bytes(expected));
        assert_ne!(first, u64::from_le_bytes(expected));
    }

    #[test]
    fn fails_closed() {
        assert!(ChaChaBits::keyed_by(|_| Err(EntropyFailure)).is_err());
        assert!(
            ChaChaBits::keyed_by(|_| Ok(())).is_err(),
            "a key of zeros is no key"
        );
    }

    #[test]
    fn no_two_streams_are_alike() {
        let open = || {
            let mut bits = OsEntropy::new()
                .open()
                .expect("the test machine has entropy");
            (bits.word(), bits.word())
        };
        let threads: Vec<_> = (0..64)
            .map(|_| std::thread::spawn(move || (0..200).map(|_| open()).collect::<Vec<_>>()))
            .collect();
        let mut seen = BTreeSet::new();
        for thread in threads {
            for stream in thread.join().expect("no panic") {
                assert!(seen.insert(stream), "a stream was repeated");
            }
        }
    }
}
