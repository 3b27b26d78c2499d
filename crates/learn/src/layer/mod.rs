//! Layers: forward, backward, and what one example moves.
//!
//! A layer works on the examples of a micro-batch row by row. **The rule that every layer keeps:** what it computes for an
//! example (output, delta, squared norm, per-example gradient) is bitwise a function of the parameters, that example's
//! input, delta and seed, and of nothing else. A layer that cannot keep it (batch norm) does not exist here, and
//! `validate` says what to use instead.
//!
//! **What is contributed.** For the example `i` with factor `f_i` a layer contributes a vector `v_i` of its parameters'
//! length. Either it is `f_i g_i` for a vector of floats `g_i` that is kept (several positions share a parameter), or
//! `a_i ⊗ fl(f_i δ_i)` for a linear layer with one position, and then it is never formed. `square_norms` bounds `‖g_i‖²`
//! from above. The factor comes with a margin for the rounding of `f_i δ_i`, see `clip`.

mod activation;
mod attention;
mod conv;
mod dropout;
mod embedding;
mod linear;
mod norm;
mod pool;
mod reorder;

#[cfg(test)]
pub(crate) mod oracle;

pub use activation::{Activation, Function};
pub use attention::Attention;
pub use conv::{Conv2d, Window};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use norm::Norm;
pub use pool::{Pool, Pooling};
pub use reorder::{ChannelsLast, Flatten};

use crate::aligned::Aligned;
use crate::matmul::{Panels, Strips};
use crate::tensor::{add_scaled_rows, add_scaled_rows_wide, sized, square_norm_upper};

/// What a pass over a micro-batch knows beside its activations.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// The layer's parameters.
    pub params: &'a [f32],
    /// What the layer made of them for this step.
    pub prepared: &'a Prepared,
    /// One seed per example; empty where a model is used and not trained.
    pub seeds: &'a [u64],
}

/// A layer's parameters in the shapes that its products want, made once per step: for all threads, or by each for itself.
#[derive(Default)]
pub struct Prepared {
    /// Does anyone want the delta of the layer's input?
    pub(crate) needs_delta: bool,
    /// How many threads may make it.
    pub(crate) threads: usize,
    pub(crate) forward: Panels,
    pub(crate) backward: Panels,
    /// More of both, for a layer with several matrices.
    pub(crate) more: Vec<(Panels, Panels)>,
    pub(crate) work: Vec<f32>,
}

impl Prepared {
    /// For a layer that is not the first.
    pub(crate) fn with_delta() -> Self {
        Self {
            needs_delta: true,
            ..Self::default()
        }
    }
}

/// What a layer keeps of a micro-batch between its calls. Each thread has its own.
#[derive(Default)]
pub struct Scratch {
    /// From forward to backward.
    pub(crate) kept: Vec<f32>,
    /// One gradient per example, where they are formed.
    pub(crate) gradients: Vec<f32>,
    pub(crate) work: Vec<f32>,
    pub(crate) more: Vec<f32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) places: Vec<u32>,
    pub(crate) panels: Panels,
}

/// What a layer keeps of a micro-batch until several are summed jointly.
#[derive(Default)]
pub struct Kept {
    pub(crate) strips: Strips,
    pub(crate) panels: Panels,
    /// Inputs as they came, where they are not packed.
    pub(crate) rows: Aligned,
}

/// Where contributions are added.
pub enum Sum<'a> {
    /// The usual one.
    Narrow(&'a mut [f32]),
    /// For batches beyond the public cap.
    Wide(&'a mut [f64]),
}

/// What only layers of this crate have.
#[derive(Clone, Copy, Debug)]
pub struct Proven(());

impl Proven {
    pub(crate) fn here() -> Self {
        Self(())
    }
}

/// One layer. All slices hold whole examples; the number of examples follows from their length.
pub trait Layer: Send + Sync {
    /// The name that a plan uses.
    fn name(&self) -> &'static str;

    /// Is its proof beside its code? A layer of another crate cannot say so: it is put to the test, and refused if it is too large for that.
    fn proven(&self) -> Option<Proven> {
        None
    }

    /// Floats per example that go in.
    fn input_len(&self) -> usize;

    /// Floats per example that come out.
    fn output_len(&self) -> usize;

    /// Parameters.
    fn param_len(&self) -> usize {
        0
    }

    /// Floats per example that are kept because gradients are formed: what a micro-batch's memory depends on.
    fn gradient_len(&self) -> usize {
        0
    }

    /// Floats per example that are kept from forward to backward, beside what goes in and comes out.
    fn kept_len(&self) -> usize {
        0
    }

    /// Once per step, before any pass.
    fn prepare(&self, _params: &[f32], _prepared: &mut Prepared) {}

    /// Writes all of `output`.
    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch);

    /// Writes all of `input_delta`, unless the layer is the first and nobody wants it.
    fn backward(
        &self,
        pass: Pass,
        input: &[f32],
        delta: &[f32],
        input_delta: Option<&mut [f32]>,
        scratch: &mut Scratch,
    );

    /// Forms and bounds the squared norm of each example's gradient. Called after `backward`.
    fn square_norms(
        &self,
        _input: &[f32],
        _delta: &[f32],
        scratch: &mut Scratch,
        norms: &mut [f64],
    ) {
        let width = self.param_len();
        if width == 0 {
            return norms.fill(0.0);
        }
        let gradients = scratch.gradients.chunks_exact(width);
        for (norm, gradient) in norms.iter_mut().zip(gradients) {
            *norm = square_norm_upper(gradient);
        }
    }

    /// Adds the contributions. An example of factor zero has finite floats everywhere (`forget` saw to it).
    ///
    /// In narrow floats each coordinate is summed over the examples on its own, with at most one product and one addition for each of them, and that
    /// sum is added at its end; in wide ones products are exact, and there is one addition for each example and at most one more. [`clipped_sum`](crate::clipped_sum) counts
    /// these roundings, and its bound does not hold for a layer with more of them.
    fn accumulate(
        &self,
        factors: &[f32],
        _input: &[f32],
        _delta: &[f32],
        scratch: &mut Scratch,
        sum: Sum,
    ) {
        match sum {
            _ if self.param_len() == 0 => {}
            Sum::Narrow(out) => add_scaled_rows(&scratch.gradients, factors, out),
            Sum::Wide(out) => add_scaled_rows_wide(&scratch.gradients, factors, out),
        }
    }

    /// Into how many pieces the layer's parameters fall, one after the other, that are summed over several micro-batches at once.
    /// With none, contributions are added micro-batch by micro-batch.
    fn joint_pieces(&self) -> usize {
        0
    }

    /// Parameters of a joint piece.
    fn joint_len(&self, _piece: usize) -> usize {
        0
    }

    /// Instead of `accumulate`: keeps the contributions of a micro-batch until `joint_sum`. The layer may take the memory of the inputs,
    /// of which `factors` tells how many examples they hold, and leave as much of its own.
    fn keep(&self, _factors: &[f32], _input: &mut Aligned, _delta: &[f32], _kept: &mut Kept) {}

    /// Writes a piece of the sum of what several micro-batches kept: of each coordinate one chain for each micro-batch, and
    /// these added in their order.
    fn joint_sum(&self, _piece: usize, _kept: &[&Kept], _out: &mut [f32]) {}

    /// Makes zero what is kept of an example whose gradient is not finite: zero times infinity is not zero.
    fn forget(&self, example: usize, scratch: &mut Scratch) {
        let width = self.gradient_len();
        if let Some(gradient) = scratch
            .gradients
            .get_mut(example * width..(example + 1) * width)
        {
            gradient.fill(0.0);
        }
    }
}

/// One gradient per example, all of `scratch.gradients`, which holds as many as there are examples.
pub(crate) fn gradients(gradients: &mut Vec<f32>, examples: usize, width: usize) -> &mut [f32] {
    gradients.truncate(examples * width);
    sized(gradients, examples * width)
}
