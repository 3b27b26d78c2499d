//! Do all ways in which a layer adds up contributions speak of the same ones?
//!
//! What an example contributes is what `accumulate` adds for it alone, in wide floats. It must not be longer than `square_norms` says, since
//! that is what it is clipped by; and sums of several examples, joint ones too, must be the sums of these, up to rounding. A layer whose joint
//! sum forgets a factor would pass on what was not clipped.

use super::{Bench, EXAMPLES};
use crate::aligned::Aligned;
use crate::layer::{Kept, Sum};

/// At least twice as many as a term goes through in these sums: two factors, and a chain of up to five examples, or of two in three chains that are added.
const ROUNDINGS: f64 = 16.0;

/// Far above the rounding of a sum of squares in 64 bits, and far below what a clip norm keeps off for rounding.
const SLACK: f64 = 1e-9;

/// Some examples as they are, some clipped, one left out.
const FACTORS: [f32; EXAMPLES] = [1.0, 0.75, 0.0, 0.3, 1.0];

/// Where three micro-batches begin and end.
const CUTS: [usize; 4] = [0, 2, 4, EXAMPLES];

/// Says what does not agree, if anything does not.
pub(super) fn disagreement(bench: &Bench, inputs: &[f32], deltas: &[f32]) -> Option<&'static str> {
    let layer = bench.layer;
    let width = layer.param_len();
    if width == 0 {
        return None;
    }
    let (input, output) = (layer.input_len(), layer.output_len());
    let rows = |from: usize, to: usize| {
        (
            &inputs[from * input..to * input],
            &deltas[from * output..to * output],
        )
    };
    let (mut sums, mut sizes) = (vec![0.0; width], vec![0.0; width]);
    for (i, &factor) in FACTORS.iter().enumerate() {
        let (input, delta) = rows(i, i + 1);
        let wide = |factor: f32| {
            let mut outcome = bench.run(input, delta, &[i as u64]);
            let mut one = vec![0.0; width];
            let sum = Sum::Wide(&mut one);
            layer.accumulate(&[factor], input, delta, &mut outcome.scratch, sum);
            (one, outcome.norms[0])
        };
        let (whole, norm) = wide(1.0);
        // Training leaves such an example out, and so nothing is seen here.
        if !norm.is_finite() {
            return None;
        }
        let square: f64 = whole.iter().map(|x| x * x).sum();
        if square.is_nan() || square > norm * (1.0 + SLACK) {
            return Some("a contribution is longer than square_norms says");
        }
        for ((sum, size), x) in sums.iter_mut().zip(&mut sizes).zip(wide(factor).0) {
            *sum += x;
            *size += x.abs();
        }
    }
    let is_sum = |found: &[f32]| {
        let mut all = found.iter().zip(&sums).zip(&sizes);
        all.all(|((&x, sum), size)| {
            let off = (f64::from(x) - sum).abs();
            off <= ROUNDINGS / 16_777_216.0 * size + f64::from(f32::MIN_POSITIVE)
        })
    };
    let seeds: [u64; EXAMPLES] = std::array::from_fn(|i| i as u64);
    let (mut outcome, mut narrow) = (bench.run(inputs, deltas, &seeds), vec![0.0; width]);
    let sum = Sum::Narrow(&mut narrow);
    layer.accumulate(&FACTORS, inputs, deltas, &mut outcome.scratch, sum);
    if !is_sum(&narrow) {
        return Some("accumulate adds something else for several examples than for each");
    }
    let pieces: Vec<usize> = (0..layer.joint_pieces())
        .map(|piece| layer.joint_len(piece))
        .collect();
    // Pieces that leave something out are never used.
    if pieces.iter().sum::<usize>() != width {
        return None;
    }
    let keep = |from: usize, to: usize, kept: &mut Kept| {
        let (input, delta) = rows(from, to);
        layer.keep(&FACTORS[from..to], &mut Aligned::copied(input), delta, kept);
    };
    let kept: Vec<Kept> = CUTS
        .windows(2)
        .map(|cut| {
            let mut kept = Kept::default();
            // Such places are used again and again, for micro-batches of several lengths.
            keep(0, EXAMPLES, &mut kept);
            keep(cut[0], cut[1], &mut kept);
            kept
        })
        .collect();
    let kept: Vec<&Kept> = kept.iter().collect();
    let mut joint = vec![f32::NAN; width];
    let mut rest = &mut joint[..];
    for (piece, &len) in pieces.iter().enumerate() {
        let (out, others) = rest.split_at_mut(len);
        layer.joint_sum(piece, &kept, out);
        rest = others;
    }
    (!is_sum(&joint)).then_some("joint_sum writes something else than accumulate adds")
}

#[cfg(test)]
mod tests {
    use super::super::{NetworkError, check};
    use crate::aligned::Aligned;
    use crate::layer::{Kept, Layer, Linear, Pass, Prepared, Scratch, Sum};
    use whit_core::Fault as _;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        None,
        FactorsForgotten,
        MicroBatchForgotten,
        PieceForgotten,
        PiecesExchanged,
        NormTooSmall,
        FactorsSquared,
    }

    /// A linear layer with a fault.
    struct Twin(Linear, Fault);

    impl Layer for Twin {
        fn name(&self) -> &'static str {
            "twin"
        }
        fn input_len(&self) -> usize {
            self.0.input_len()
        }
        fn output_len(&self) -> usize {
            self.0.output_len()
        }
        fn param_len(&self) -> usize {
            self.0.param_len()
        }
        fn prepare(&self, params: &[f32], prepared: &mut Prepared) {
            self.0.prepare(params, prepared);
        }
        fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch) {
            self.0.forward(pass, input, output, scratch);
        }
        fn backward(
            &self,
            pass: Pass,
            input: &[f32],
            delta: &[f32],
            input_delta: Option<&mut [f32]>,
            scratch: &mut Scratch,
        ) {
            self.0.backward(pass, input, delta, input_delta, scratch);
        }
        fn square_norms(
            &self,
            input: &[f32],
            delta: &[f32],
            scratch: &mut Scratch,
            norms: &mut [f64],
        ) {
            self.0.square_norms(input, delta, scratch, norms);
            if self.1 == Fault::NormTooSmall {
                norms.iter_mut().for_each(|norm| *norm *= 0.999);
            }
        }
        fn accumulate(
            &self,
            factors: &[f32],
            input: &[f32],
            delta: &[f32],
            scratch: &mut Scratch,
            sum: Sum,
        ) {
            let squared: Vec<f32> = factors.iter().map(|factor| factor * factor).collect();
            let factors = match (self.1, &sum) {
                (Fault::FactorsSquared, Sum::Narrow(_)) => &squared,
                _ => factors,
            };
            self.0.accumulate(factors, input, delta, scratch, sum);
        }
        fn joint_pieces(&self) -> usize {
            self.0.joint_pieces()
        }
        fn joint_len(&self, piece: usize) -> usize {
            self.0.joint_len(piece)
        }
        fn keep(&self, factors: &[f32], input: &mut Aligned, delta: &[f32], kept: &mut Kept) {
            match self.1 {
                Fault::FactorsForgotten => {
                    let ones = vec![1.0; factors.len()];
                    self.0.keep(&ones, input, delta, kept);
                }
                _ => self.0.keep(factors, input, delta, kept),
            }
        }
        fn joint_sum(&self, piece: usize, kept: &[&Kept], out: &mut [f32]) {
            match self.1 {
                Fault::MicroBatchForgotten => self.0.joint_sum(piece, &kept[1..], out),
                Fault::PieceForgotten if piece == 1 => {}
                // Of the same length, in a layer with as many outputs as weights of each.
                Fault::PiecesExchanged => self.0.joint_sum(1 - piece, kept, out),
                _ => self.0.joint_sum(piece, kept, out),
            }
        }
    }

    #[test]
    fn sums_that_disagree_are_refused() {
        let refused = |fault| check(&Twin(Linear::new(1, 7), fault), 2).err();
        assert_eq!(refused(Fault::None), None);
        for fault in [
            Fault::FactorsForgotten,
            Fault::MicroBatchForgotten,
            Fault::PieceForgotten,
            Fault::PiecesExchanged,
            Fault::NormTooSmall,
            Fault::FactorsSquared,
        ] {
            let error = refused(fault).unwrap_or_else(|| panic!("{fault:?}"));
            assert_eq!(error.code(), "layer_disagrees", "{fault:?}");
            let joint = error.to_string().contains("joint_sum");
            let is_joint = !matches!(fault, Fault::NormTooSmall | Fault::FactorsSquared);
            assert_eq!(joint, is_joint, "{fault:?}: {error}");
            assert!(error.suggestion().contains("the same contributions"));
            let NetworkError::Disagrees { at, name, .. } = error else {
                panic!("{error}");
            };
            assert_eq!((at, name), (2, "twin"));
        }
    }

    /// Of several pieces, and of lengths that fill no strip.
    #[test]
    fn layers_that_are_summed_jointly_pass() {
        for (inputs, outputs) in [(1, 1), (53, 70), (16, 64), (3, 300)] {
            assert_eq!(check(&Linear::new(inputs, outputs), 1), Ok(()));
        }
    }
}
