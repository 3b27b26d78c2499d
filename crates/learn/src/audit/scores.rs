//! What a model is boiled down to: one number, larger where an adversary takes it for world 1.

use super::world::Point;
use crate::error::Result;
use crate::network::Network;

/// `(f(x_p) - f(0)) · y_p`, of ClipBKD.
pub fn clip_bkd(network: &Network, weights: &[f32], point: &Point) -> Result<f64> {
    let mut inputs = point.features.clone();
    inputs.resize(2 * point.features.len(), 0.0);
    let outputs = network.predict(weights, &inputs)?;
    let (at, zero) = outputs.split_at(network.output_len());
    let class = point.class as usize;
    Ok(f64::from(at[class]) - f64::from(zero[class]))
}

/// Minus the loss on some points: of a member of the data, or of examples with a backdoor.
pub fn negative_loss(network: &Network, weights: &[f32], points: &[Point]) -> Result<f64> {
    let inputs: Vec<f32> = points.iter().flat_map(|point| point.features.iter().copied()).collect();
    let outputs = network.predict(weights, &inputs)?;
    let each = outputs.chunks_exact(network.output_len()).zip(points);
    let losses = each.map(|(output, point)| network.loss().value(output, point.class as f32));
    Ok(-losses.sum::<f64>())
}
