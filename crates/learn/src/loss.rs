//! What is made small: the loss of one example, and its slope in the network's output.

use crate::tensor::{exp, vectorised};

/// A loss. The target of an example is one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Softmax and cross-entropy; the target is the number of a class. A class that is not there has loss and slope zero.
    CrossEntropy,
    /// One output, the log-odds of a target that is 1 and not 0.
    Logistic,
    /// One output, half its squared distance from the target.
    Squared,
}

impl Loss {
    /// Can it be taken of so many outputs?
    pub fn fits(self, outputs: usize) -> bool {
        match self {
            Self::CrossEntropy => outputs >= 2,
            Self::Logistic | Self::Squared => outputs == 1,
        }
    }

    /// The slopes, for examples one after the other.
    pub(crate) fn deltas(self, outputs: &[f32], targets: &[f32], deltas: &mut [f32]) {
        let width = outputs.len() / targets.len().max(1);
        if width == 0 {
            return;
        }
        if self == Self::CrossEntropy && width <= LANES {
            return few_classes(outputs, targets, deltas);
        }
        let each = outputs
            .chunks_exact(width)
            .zip(deltas.chunks_exact_mut(width));
        for ((output, delta), &target) in each.zip(targets) {
            match self {
                Self::CrossEntropy => cross_entropy_delta(output, target, delta),
                Self::Logistic => {
                    let odds = exp(-output[0].abs());
                    let share = if output[0] >= 0.0 { 1.0 } else { odds } / (1.0 + odds);
                    // An output that is not a number stays one.
                    delta[0] = share - target + 0.0 * output[0];
                }
                Self::Squared => delta[0] = output[0] - target,
            }
        }
    }

    /// The loss of one example, in `f64`. It is private where the example is: show it of public data only.
    pub fn value(self, output: &[f32], target: f32) -> f64 {
        let wide = |x: f32| f64::from(x);
        match self {
            Self::CrossEntropy => {
                let Some(&own) = class(target, output.len()).and_then(|at| output.get(at)) else {
                    return 0.0;
                };
                let largest = output.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = output
                    .iter()
                    .map(|&x| (wide(x) - wide(largest)).exp())
                    .sum();
                wide(largest) - wide(own) + sum.ln()
            }
            Self::Logistic => {
                let (output, target) = (wide(output[0]), wide(target));
                output.max(0.0) - output * target + (-output.abs()).exp().ln_1p()
            }
            Self::Squared => 0.5 * (wide(output[0]) - wide(target)).powi(2),
        }
    }
}

fn class(target: f32, classes: usize) -> Option<usize> {
    let at = target as usize;
    (target >= 0.0 && at < classes).then_some(at)
}

/// `softmax(output)`, less one at the target's class.
fn cross_entropy_delta(output: &[f32], target: f32, delta: &mut [f32]) {
    let Some(at) = class(target, output.len()) else {
        return delta.fill(0.0);
    };
    let largest = output.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (delta, &x) in delta.iter_mut().zip(output) {
        *delta = exp(x - largest);
        sum += *delta;
    }
    for delta in delta.iter_mut() {
        *delta /= sum;
    }
    delta[at] -= 1.0;
}

/// Classes that fit in one vector of AVX-512.
const LANES: usize = 16;

/// The same for all examples, where a whole row of outputs fits in a vector.
fn few_classes(outputs: &[f32], targets: &[f32], deltas: &mut [f32]) {
    let width = outputs.len() / targets.len();
    vectorised(
        deltas,
        #[inline(always)]
        move |deltas: &mut [f32]| {
            let each = outputs
                .chunks_exact(width)
                .zip(deltas.chunks_exact_mut(width));
            for ((output, delta), &target) in each.zip(targets) {
                let Some(at) = class(target, width) else {
                    delta.fill(0.0);
                    continue;
                };
                let mut lanes = [f32::NEG_INFINITY; LANES];
                lanes.iter_mut().zip(output).for_each(|(to, &x)| *to = x);
                let mut largest = lanes;
                halve(&mut largest, f32::max);
                for (lane, x) in lanes.iter_mut().enumerate() {
                    *x = if lane < width {
                        exp(*x - largest[0])
                    } else {
                        0.0
                    };
                }
                let mut sum = lanes;
                halve(&mut sum, |a, b| a + b);
                lanes.iter_mut().for_each(|x| *x /= sum[0]);
                lanes[at] -= 1.0;
                delta.copy_from_slice(&lanes[..width]);
            }
        },
    );
}

/// Folds the upper half of the lanes onto the lower one until the first is left.
#[inline(always)]
fn halve(lanes: &mut [f32; LANES], f: impl Fn(f32, f32) -> f32) {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = f(lanes[lane], lanes[lane + half]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slope by finite differences of the loss in `f64`, whose argument is a float: steps of 2^-12 are exact.
    fn slope(loss: Loss, output: &[f32], target: f32, at: usize) -> f64 {
        let value = |step: f32| {
            let mut output = output.to_vec();
            output[at] += step;
            loss.value(&output, target)
        };
        let step = 1.0 / 4096.0;
        (value(step) - value(-step)) / (2.0 * f64::from(step))
    }

    fn check(loss: Loss, output: &[f32], target: f32) {
        let mut delta = vec![f32::NAN; output.len()];
        loss.deltas(output, &[target], &mut delta);
        for (at, &delta) in delta.iter().enumerate() {
            let truth = slope(loss, output, target, at);
            assert!(
                (f64::from(delta) - truth).abs() < 1e-6,
                "{loss:?} {output:?} {target}"
            );
        }
    }

    #[test]
    fn deltas_are_slopes() {
        for target in [0.0, 2.0, 3.0] {
            check(Loss::CrossEntropy, &[0.5, -1.25, 3.0, 0.125], target);
            check(Loss::CrossEntropy, &[40.0, -30.0, 0.0, 1.0], target);
        }
        for output in [-9.5, -0.5, 0.0, 0.25, 7.0] {
            check(Loss::Logistic, &[output], 0.0);
            check(Loss::Logistic, &[output], 1.0);
            check(Loss::Squared, &[output], 2.5);
        }
    }

    #[test]
    fn many_classes_are_as_few() {
        let output: Vec<f32> = (0..16).map(|i| ((i * 7) % 11) as f32 * 0.5 - 2.0).collect();
        for width in [2, 9, 16] {
            let (mut few, mut many) = (vec![0.0; width], vec![0.0; width]);
            Loss::CrossEntropy.deltas(&output[..width], &[1.0], &mut few);
            cross_entropy_delta(&output[..width], 1.0, &mut many);
            let close = few.iter().zip(&many).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(close, "{few:?} {many:?}");
        }
        check(Loss::CrossEntropy, &output.repeat(2)[..20], 3.0);
    }

    #[test]
    fn a_class_that_is_not_there_moves_nothing() {
        for target in [-1.0, 3.0, f32::NAN, f32::INFINITY] {
            let mut delta = [1.0; 3];
            Loss::CrossEntropy.deltas(&[1.0, 2.0, 3.0], &[target], &mut delta);
            // Infinity is beyond every class; what is not a number is none.
            assert_eq!(delta, [0.0; 3], "{target}");
            assert_eq!(Loss::CrossEntropy.value(&[1.0, 2.0, 3.0], target), 0.0);
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for loss in [Loss::CrossEntropy, Loss::Logistic, Loss::Squared] {
            let output = vec![f32::NAN; if loss == Loss::CrossEntropy { 2 } else { 1 }];
            let mut delta = vec![0.0; output.len()];
            loss.deltas(&output, &[0.0], &mut delta);
            assert!(delta[0].is_nan(), "{loss:?}");
        }
    }
}
