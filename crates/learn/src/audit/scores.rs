//! What a model is boiled down to: one number, larger where an adversary takes it for world 1.

use super::world::Point;
use crate::error::Result;
use crate::network::Network;

/// `(f(x_p) - f(0)) · y_p`, of ClipBKD: `y_p` is 1 for the poisoned class and -1 for the other, shared evenly if there are several others.
pub fn clip_bkd(network: &Network, weights: &[f32], point: &Point) -> Result<f64> {
    let mut inputs = point.features.clone();
    inputs.resize(2 * point.features.len(), 0.0);
    let outputs = network.predict(weights, &inputs)?;
    let (at, zero) = outputs.split_at(network.output_len());
    let others = (network.output_len() as f64 - 1.0).max(1.0);
    let each = at.iter().zip(zero).enumerate().map(|(class, (at, zero))| {
        let beyond = f64::from(*at) - f64::from(*zero);
        match class == point.class as usize {
            true => beyond,
            false => -beyond / others,
        }
    });
    Ok(each.sum())
}

/// Minus the loss on some points: of a member of the data, or of examples with a backdoor.
pub fn negative_loss(network: &Network, weights: &[f32], points: &[Point]) -> Result<f64> {
    let inputs: Vec<f32> = points
        .iter()
        .flat_map(|point| point.features.iter().copied())
        .collect();
    let outputs = network.predict(weights, &inputs)?;
    let each = outputs.chunks_exact(network.output_len()).zip(points);
    let losses = each.map(|(output, point)| network.loss().value(output, point.class as f32));
    Ok(-losses.sum::<f64>())
}

/// How much likelier a score is in world 1 than in world 0, in logarithms, if the scores of both worlds are normal with the mean and deviation of these: the
/// likelihood ratio of membership inference \[CCN+22\]. Any function of a score is a score, so that nothing rests on whether they are normal; but the two lists
/// must be of trials that do not judge.
pub fn likelihood_ratio(without: &[f64], with: &[f64]) -> impl Fn(f64) -> f64 + use<> {
    let fit = |scores: &[f64]| {
        let count = scores.len().max(1) as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let variance = scores.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.max(f64::MIN_POSITIVE))
    };
    let (zero, one) = (fit(without), fit(with));
    move |score| {
        let log = |(mean, variance): (f64, f64)| {
            -(score - mean).powi(2) / (2.0 * variance) - variance.ln() / 2.0
        };
        log(one) - log(zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Linear;
    use crate::loss::Loss;

    #[test]
    fn the_score_of_clip_bkd_is_the_margin_beyond_zero() {
        let network = Network::new(vec![Box::new(Linear::new(2, 2))], Loss::CrossEntropy);
        let network = network.expect("fits");
        // f(x) = (x1 + 7, 3 x2 + 1).
        let weights = [1.0, 0.0, 0.0, 3.0, 7.0, 1.0];
        let point = |class| Point {
            features: vec![2.0, 5.0],
            class,
        };
        let score = |class| clip_bkd(&network, &weights, &point(class)).expect("fits");
        assert_eq!((score(1), score(0)), (13.0, -13.0));
        let loss = negative_loss(&network, &weights, &[point(1), point(0)]).expect("fits");
        let outputs = [9.0_f64, 16.0];
        let expected = (outputs[0].exp() + outputs[1].exp()).ln() * 2.0 - 25.0;
        assert!((loss + expected).abs() < 1e-5, "{loss} {expected}");
    }

    #[test]
    fn likelihood_ratios_grow_towards_the_world_that_is_nearer() {
        let ratio = likelihood_ratio(&[-1.0, 0.0, 1.0], &[3.0, 4.0, 5.0]);
        assert!(ratio(4.0) > ratio(2.5) && ratio(2.5) > 0.0);
        assert!(ratio(0.0) < 0.0 && ratio(2.0).abs() < 1e-12);
    }
}
