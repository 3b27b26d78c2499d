//! Activations: one function of each number.

use super::{Layer, Pass, Scratch};
use crate::tensor::{combine, tanh};

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Function {
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// `x Φ(x)`, with the tanh approximation of `Φ`: `x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2`.
    Gelu,
}

/// The function, on every number of an example.
#[derive(Clone, Copy, Debug)]
pub struct Activation {
    function: Function,
    len: usize,
}

/// `√(2/π)`.
const GELU_SLOPE: f32 = 0.797_884_6;
/// The cubic term of the approximation.
const GELU_CUBE: f32 = 0.044_715;

impl Activation {
    /// For examples of `len` numbers.
    pub const fn new(function: Function, len: usize) -> Self {
        Self { function, len }
    }
}

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    tanh(GELU_SLOPE * (x + GELU_CUBE * x * x * x))
}

impl Layer for Activation {
    fn name(&self) -> &'static str {
        match self.function {
            Function::Relu => "relu",
            Function::Tanh => "tanh",
            Function::Gelu => "gelu",
        }
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

    fn kept_len(&self) -> usize {
        self.len
    }

    fn forward(&self, _pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch) {
        match self.function {
            // Not `max`, which would turn what is not a number into zero.
            Function::Relu => combine(input, input, output, |x, _| if x < 0.0 { 0.0 } else { x }),
            Function::Tanh => {
                combine(input, input, output, |x, _| tanh(x));
                // The derivative is 1 - y².
                scratch.kept.clear();
                scratch.kept.extend_from_slice(output);
            }
            Function::Gelu => {
                combine(input, input, output, |x, _| 0.5 * x * (1.0 + gelu_tanh(x)));
            }
        }
    }

    fn backward(
        &self,
        _pass: Pass,
        input: &[f32],
        delta: &[f32],
        input_delta: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) {
        let Some(out) = input_delta else { return };
        match self.function {
            Function::Relu => combine(input, delta, out, |x, d| if x > 0.0 { d } else { 0.0 }),
            Function::Tanh => combine(&scratch.kept, delta, out, |y, d| d * (1.0 - y * y)),
            Function::Gelu => combine(input, delta, out, |x, d| {
                let t = gelu_tanh(x);
                let slope = GELU_SLOPE * (1.0 + 3.0 * GELU_CUBE * x * x);
                d * 0.5 * ((1.0 + t) + x * (1.0 - t * t) * slope)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn agrees_with_the_oracle() {
        let formula = |function, x: f64| match function {
            Function::Relu => x.max(0.0),
            Function::Tanh => x.tanh(),
            Function::Gelu => {
                let slope = (2.0 / std::f64::consts::PI).sqrt();
                0.5 * x * (1.0 + (slope * (x + 0.044715 * x.powi(3))).tanh())
            }
        };
        for function in [Function::Relu, Function::Tanh, Function::Gelu] {
            oracle::check(&Activation::new(function, 37), |_, x, _| {
                x.iter().map(|&x| formula(function, x)).collect()
            });
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for function in [Function::Relu, Function::Tanh, Function::Gelu] {
            let mut out = [0.0];
            let pass = Pass {
                params: &[],
                prepared: &Default::default(),
                seeds: &[],
            };
            let layer = Activation::new(function, 1);
            layer.forward(pass, &[f32::NAN], &mut out, &mut Scratch::default());
            assert!(out[0].is_nan(), "{function:?}");
        }
    }
}
