//! Dropout: a share of the numbers is zero while training, and the others are larger for it.
//!
//! Which ones is decided by the example's own seed, so that one example's mask says nothing about another's and does not
//! depend on its slot or on how many rows the data have. Masks are part of an example's contribution and need no secrecy: any seed
//! gives a clipped one.

use super::{Layer, Pass, Scratch};

/// Dropout of a share of each example's numbers. Where a model is used and not trained, nothing is dropped.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    len: usize,
    /// A number is kept if 32 random bits are below this.
    kept_below: u64,
    scale: f32,
    /// Tells the layers of a network apart.
    salt: u64,
}

impl Dropout {
    /// Drops this share, from 0 on and below 1; what is outside counts as the nearest of them. `salt` tells the dropouts of one
    /// network apart.
    pub fn new(len: usize, share: f64, salt: u64) -> Self {
        // At most so much is dropped that 32 bits still keep something.
        let kept = if share > 0.0 {
            (1.0 - share).max(1e-6)
        } else {
            1.0
        };
        Self {
            len,
            kept_below: (kept * 4_294_967_296.0) as u64,
            scale: (1.0 / kept) as f32,
            salt,
        }
    }

    /// `output = mask · input`, the mask from the seeds.
    fn mask(&self, seeds: &[u64], input: &[f32], output: &mut [f32]) {
        if seeds.is_empty() {
            return output.copy_from_slice(input);
        }
        let examples = input
            .chunks_exact(self.len)
            .zip(output.chunks_exact_mut(self.len));
        for ((input, output), &seed) in examples.zip(seeds) {
            let start = mixed(seed ^ mixed(self.salt));
            for ((index, output), &x) in (0_u64..).zip(output.iter_mut()).zip(input) {
                let bits = mixed(start.wrapping_add(index)) >> 32;
                *output = if bits < self.kept_below {
                    x * self.scale
                } else {
                    0.0
                };
            }
        }
    }
}

/// A bijection of 64 bits that spreads every bit (the finalizer of SplitMix64 \[SLF14\]).
pub(crate) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Layer for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn proven(&self) -> Option<super::Proven> {
        Some(super::Proven::here())
    }

    fn input_len(&self) -> usize {
        self.len
    }

    fn output_len(&self) -> usize {
        self.len
    }

    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], _scratch: &mut Scratch) {
        self.mask(pass.seeds, input, output);
    }

    fn backward(
        &self,
        pass: Pass,
        _input: &[f32],
        delta: &[f32],
        input_delta: Option<&mut [f32]>,
        _scratch: &mut Scratch,
    ) {
        if let Some(input_delta) = input_delta {
            self.mask(pass.seeds, delta, input_delta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn agrees_with_the_oracle() {
        let layer = Dropout::new(50, 0.3, 4);
        oracle::check(&layer, |_, x, seed| {
            let (ones, mut mask) = ([1.0; 50], [0.0; 50]);
            layer.mask(&[seed], &ones, &mut mask);
            x.iter().zip(mask).map(|(x, m)| x * f64::from(m)).collect()
        });
    }

    #[test]
    fn the_share_is_dropped_and_the_mean_is_kept() {
        let len = 100_000;
        let (ones, mut out) = (vec![1.0; len], vec![0.0; len]);
        Dropout::new(len, 0.25, 0).mask(&[7], &ones, &mut out);
        let dropped = out.iter().filter(|&&x| x == 0.0).count() as f64;
        // Six standard deviations of a binomial of 100,000 draws.
        assert!((dropped - 25_000.0).abs() < 6.0 * 137.0);
        let mean = out.iter().map(|&x| f64::from(x)).sum::<f64>() / len as f64;
        assert!((mean - 1.0).abs() < 0.012);
    }

    #[test]
    fn seeds_and_layers_have_different_masks() {
        let ones = [1.0; 64];
        let mask = |salt, seed| {
            let mut out = [0.0; 64];
            Dropout::new(64, 0.5, salt).mask(&[seed], &ones, &mut out);
            out
        };
        assert_eq!(mask(0, 1), mask(0, 1));
        assert_ne!(mask(0, 1), mask(0, 2));
        assert_ne!(mask(0, 1), mask(1, 1));
        let mut out = [0.0; 64];
        Dropout::new(64, 0.5, 0).mask(&[], &ones, &mut out);
        assert_eq!(out, ones);
    }
}
