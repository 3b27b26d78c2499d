//! What every layer is held against: its formula in `f64`, differentiated by finite differences.
//!
//! For a layer `y(p, x)` and a random delta `δ`, the gradient of `δ · y` is found coordinate by coordinate in `f64` for each
//! example by itself. Compared are the output, the input's delta, the squared norm and both clipped sums. Then examples change
//! places and neighbours, and everything that belongs to an example must keep its bits.

use super::{Layer, Pass, Prepared, Scratch, Sum};
use crate::layer::dropout::mixed;

const EXAMPLES: usize = 11;

/// Uniform numbers between -1 and 1.
pub(crate) fn draws(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state += 1;
        (mixed(state) >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

/// Checks a layer whose inputs are any numbers.
pub(crate) fn check(layer: &dyn Layer, reference: impl Fn(&[f64], &[f64], u64) -> Vec<f64>) {
    check_inputs(layer, |_, draw| draw, reference);
}

/// Checks a layer whose inputs are made from their place and a random number.
pub(crate) fn check_inputs(
    layer: &dyn Layer,
    input: impl Fn(usize, f32) -> f32,
    reference: impl Fn(&[f64], &[f64], u64) -> Vec<f64>,
) {
    let mut draw = draws(1);
    let params: Vec<f32> = (0..layer.param_len()).map(|_| draw()).collect();
    let len = EXAMPLES * layer.input_len();
    let inputs: Vec<f32> = (0..len).map(|at| input(at, draw())).collect();
    let deltas: Vec<f32> = (0..EXAMPLES * layer.output_len()).map(|_| draw()).collect();
    let seeds: Vec<u64> = (0..EXAMPLES as u64).map(mixed).collect();
    let mut examples: Vec<Example> = (0..EXAMPLES)
        .map(|i| Example {
            input: inputs[i * layer.input_len()..][..layer.input_len()].to_vec(),
            delta: deltas[i * layer.output_len()..][..layer.output_len()].to_vec(),
            seed: seeds[i],
        })
        .collect();
    let results = run(layer, &params, &examples);
    for (example, result) in examples.iter().zip(&results) {
        compare(
            layer,
            &params,
            example,
            result,
            &reference,
            input(0, 0.3) == 0.3,
        );
    }
    sums_are_those_of_the_examples(layer, &params, &examples, &results);

    // Backwards, without the last three, and the slots are other ones.
    examples.reverse();
    examples.drain(..3);
    let others = run(layer, &params, &examples);
    for (one, other) in results.iter().rev().skip(3).zip(&others) {
        assert!(
            one == other,
            "{}: an example's bits depend on others",
            layer.name()
        );
    }
}

struct Example {
    input: Vec<f32>,
    delta: Vec<f32>,
    seed: u64,
}

/// All that belongs to one example.
#[derive(PartialEq)]
struct Result {
    output: Vec<f32>,
    input_delta: Vec<f32>,
    norm: f64,
    /// Exact: the wide sum of one example with factor 1.
    contribution: Vec<f64>,
}

fn joined(examples: &[Example], part: impl Fn(&Example) -> &[f32]) -> Vec<f32> {
    examples
        .iter()
        .flat_map(|example| part(example).to_vec())
        .collect()
}

fn run(layer: &dyn Layer, params: &[f32], examples: &[Example]) -> Vec<Result> {
    let (input, delta) = (
        joined(examples, |e| &e.input),
        joined(examples, |e| &e.delta),
    );
    let seeds: Vec<u64> = examples.iter().map(|example| example.seed).collect();
    let mut prepared = Prepared::with_delta();
    layer.prepare(params, &mut prepared);
    let pass = Pass {
        params,
        prepared: &prepared,
        seeds: &seeds,
    };
    let mut scratch = Scratch::default();
    // What is not written would show.
    let mut output = vec![f32::NAN; delta.len()];
    let mut input_delta = vec![f32::NAN; input.len()];
    let mut norms = vec![f64::NAN; examples.len()];
    // Twice, since buffers are used again.
    for _ in 0..2 {
        layer.forward(pass, &input, &mut output, &mut scratch);
        layer.backward(pass, &input, &delta, Some(&mut input_delta), &mut scratch);
        layer.square_norms(&input, &delta, &mut scratch, &mut norms);
    }
    (0..examples.len())
        .map(|i| {
            let mut factors = vec![0.0; examples.len()];
            factors[i] = 1.0;
            let mut contribution = vec![0.0; layer.param_len()];
            let sum = Sum::Wide(&mut contribution);
            layer.accumulate(&factors, &input, &delta, &mut scratch, sum);
            Result {
                output: output[i * layer.output_len()..][..layer.output_len()].to_vec(),
                input_delta: input_delta[i * layer.input_len()..][..layer.input_len()].to_vec(),
                norm: norms[i],
                contribution,
            }
        })
        .collect()
}

fn widened(floats: &[f32]) -> Vec<f64> {
    floats.iter().map(|&x| f64::from(x)).collect()
}

fn compare(
    layer: &dyn Layer,
    params: &[f32],
    example: &Example,
    result: &Result,
    reference: impl Fn(&[f64], &[f64], u64) -> Vec<f64>,
    differentiable: bool,
) {
    let (name, params, input) = (layer.name(), widened(params), widened(&example.input));
    let dot = |y: &[f64]| {
        y.iter()
            .zip(&example.delta)
            .map(|(y, &d)| y * f64::from(d))
            .sum::<f64>()
    };
    let slope = |at: usize, of: &[f64], value: &dyn Fn(&[f64]) -> Vec<f64>| {
        let mut moved = of.to_vec();
        moved[at] = of[at] + 1e-6;
        let above = dot(&value(&moved));
        moved[at] = of[at] - 1e-6;
        (above - dot(&value(&moved))) / 2e-6
    };
    let close = |what: &str, one: f64, other: f64| {
        let gap = (one - other).abs();
        assert!(
            gap <= 2e-5 * (1.0 + other.abs()),
            "{name}: {what} {one} is not {other}"
        );
    };
    let output = reference(&params, &input, example.seed);
    assert_eq!(output.len(), result.output.len());
    for (&one, &other) in result.output.iter().zip(&output) {
        close("output", f64::from(one), other);
    }
    if differentiable {
        for (at, &one) in result.input_delta.iter().enumerate() {
            let value = |x: &[f64]| reference(&params, x, example.seed);
            close("delta", f64::from(one), slope(at, &input, &value));
        }
    }
    let mut square = 0.0;
    for (at, &one) in result.contribution.iter().enumerate() {
        let value = |p: &[f64]| reference(p, &input, example.seed);
        let truth = slope(at, &params, &value);
        square += truth * truth;
        close("gradient", one, truth);
    }
    close("squared norm", result.norm, square);
    let contributed: f64 = result.contribution.iter().map(|x| x * x).sum();
    // The bound is one of what is contributed, not only of what should be.
    assert!(
        result.norm >= contributed * (1.0 - 1e-13),
        "{name}: the norm is no upper bound"
    );
}

/// The clipped sums are `Σ f_i g_i`, added to what was there, and an example of factor 0 moves nothing.
fn sums_are_those_of_the_examples(
    layer: &dyn Layer,
    params: &[f32],
    examples: &[Example],
    results: &[Result],
) {
    let (input, delta) = (
        joined(examples, |e| &e.input),
        joined(examples, |e| &e.delta),
    );
    let seeds: Vec<u64> = examples.iter().map(|example| example.seed).collect();
    let mut prepared = Prepared::with_delta();
    layer.prepare(params, &mut prepared);
    let pass = Pass {
        params,
        prepared: &prepared,
        seeds: &seeds,
    };
    let mut scratch = Scratch::default();
    let (mut output, mut norms) = (vec![0.0; delta.len()], vec![0.0; examples.len()]);
    layer.forward(pass, &input, &mut output, &mut scratch);
    layer.backward(pass, &input, &delta, None, &mut scratch);
    layer.square_norms(&input, &delta, &mut scratch, &mut norms);
    let factors: Vec<f32> = (0..EXAMPLES)
        .map(|i| if i == 4 { 0.0 } else { 0.1 * i as f32 })
        .collect();
    let mut narrow = vec![0.5_f32; layer.param_len()];
    let mut wide = vec![0.5_f64; layer.param_len()];
    layer.accumulate(
        &factors,
        &input,
        &delta,
        &mut scratch,
        Sum::Narrow(&mut narrow),
    );
    layer.accumulate(&factors, &input, &delta, &mut scratch, Sum::Wide(&mut wide));
    for at in 0..layer.param_len() {
        let each = results.iter().zip(&factors);
        let terms = each.map(|(result, &factor)| f64::from(factor) * result.contribution[at]);
        let terms: Vec<f64> = terms.collect();
        let (sum, size): (f64, f64) = (terms.iter().sum(), terms.iter().map(|x| x.abs()).sum());
        // Factors times deltas are rounded to floats in a linear layer.
        assert!(
            (wide[at] - 0.5 - sum).abs() <= 1e-7 * (1.0 + size),
            "{}: wide sum",
            layer.name()
        );
        assert!(
            (f64::from(narrow[at]) - 0.5 - sum).abs() <= 2e-6 * (1.0 + size),
            "{}: narrow sum",
            layer.name()
        );
    }
}
