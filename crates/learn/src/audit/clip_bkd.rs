//! # ClipBKD: the backdoor that clipping does not stop
//! **Attack** [Jag20, Alg. 4]. The poisoned point is `x_p = m v`, with `v` the right singular vector of the data that belongs to the smallest
//! singular value, and its class `y_p` is the least likely one under a pretrained model. World 0 is the data as they are; in world 1 `k` rows are
//! replaced by `(x_p, y_p)`. What a model is boiled down to is `(f(x_p) - f(0)) · y_p`, the answer for the class `y_p` at the point beyond that at
//! zero.
//! **Why.** Gradients of all examples are clipped to one norm, so that a large gradient buys nothing. What is left to choose is a direction in which no other example
//! moves the weights: along the least singular direction the data hardly vary, and what is there in the end was put there by the poison, or by noise.
//! **Sound** whatever the point is: worlds are `k` replacements apart, and that is all a bound uses.

use super::world::Point;
use crate::clipped_sum::{BatchRows, Memory, non_private_sum};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::network::Network;

/// The norm of the poisoned point, as published.
pub const NORM: f64 = 10.0;

/// Turns of inverse iteration: each shrinks all other directions by the quotient of their eigenvalues and the least, and a hundred leave the least and
/// what is within some per cent of it, which serves as well.
const TURNS: usize = 200;

/// The direction in which the data vary least: of length one, with a positive sum.
///
/// Inverse iteration with the Cholesky factor of `XᵀX + λI`, where `λ` is a tiny share of the trace, so that directions in which there is nothing at
/// all are found as well.
pub fn least_direction(data: &Dataset) -> Vec<f64> {
    let width = data.width();
    let mut gram = vec![0.0_f64; width * width];
    for row in 0..data.rows() {
        let Some(example) = data.example(row) else {
            continue;
        };
        for (j, &x) in example.features.iter().enumerate() {
            if x == 0.0 {
                continue;
            }
            let x = f64::from(x);
            let out = &mut gram[j * width..=j * width + j];
            for (sum, &y) in out.iter_mut().zip(example.features) {
                *sum += x * f64::from(y);
            }
        }
    }
    let trace: f64 = (0..width).map(|j| gram[j * width + j]).sum();
    let ridge = (trace / width as f64 * 1e-10).max(f64::MIN_POSITIVE);
    (0..width).for_each(|j| gram[j * width + j] += ridge);
    cholesky(&mut gram, width);
    // Any start that is not orthogonal to the direction; this one has no symmetry that data might share.
    let mut v: Vec<f64> = (0..width).map(|j| 1.0 + (j as f64 * 0.7).sin()).collect();
    for _ in 0..TURNS {
        solve(&gram, width, &mut v);
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.iter_mut().for_each(|x| *x /= norm);
    }
    if v.iter().sum::<f64>() < 0.0 {
        v.iter_mut().for_each(|x| *x = -*x);
    }
    v
}

/// The lower factor of a positive matrix, in place of its lower triangle. [GV13, Sec. 4.2]
fn cholesky(a: &mut [f64], size: usize) {
    for j in 0..size {
        for k in 0..=j {
            let (before, own) = a.split_at_mut(j * size);
            let (row, other) = (&own[..size], &before[(k * size).min(before.len())..]);
            let other = if k == j { row } else { &other[..size] };
            let dot: f64 = row[..k].iter().zip(&other[..k]).map(|(x, y)| x * y).sum();
            let rest = row[k] - dot;
            own[k] = match k == j {
                // Rounding may leave a direction with nothing in it a little below zero.
                true => rest.max(f64::MIN_POSITIVE).sqrt(),
                false => rest / other[k],
            };
        }
    }
}

/// Solves `L Lᵀ x = v` in place.
fn solve(l: &[f64], size: usize, v: &mut [f64]) {
    for j in 0..size {
        let row = &l[j * size..];
        let dot: f64 = row[..j].iter().zip(&*v).map(|(x, y)| x * y).sum();
        v[j] = (v[j] - dot) / row[j];
    }
    for j in (0..size).rev() {
        v[j] /= l[j * size + j];
        let value = v[j];
        let row = &l[j * size..j * size + j];
        v.iter_mut().zip(row).for_each(|(y, x)| *y -= x * value);
    }
}

/// The poisoned point: `norm` times the least direction, and the class that the pretrained model finds least likely there.
pub fn point(
    data: &Dataset,
    norm: f64,
    (network, pretrained): (&Network, &[f32]),
) -> Result<Point> {
    let direction = least_direction(data);
    let features: Vec<f32> = direction.iter().map(|x| (norm * x) as f32).collect();
    let outputs = network.predict(pretrained, &features)?;
    let class = least(&outputs).ok_or(Error::Unbound)?;
    Ok(Point { features, class })
}

fn least(outputs: &[f32]) -> Option<u32> {
    let each = outputs.iter().enumerate();
    let (class, _) = each.min_by(|a, b| a.1.total_cmp(b.1))?;
    Some(class as u32)
}

/// A model that was trained with **no privacy**, from these weights, on whole passes over the data: what an adversary who has similar data would use.
pub fn pretrain(
    data: &Dataset,
    network: &Network,
    start: &[f32],
    (passes, batch, rate): (usize, usize, f32),
) -> Result<Vec<f32>> {
    let mut weights = start.to_vec();
    let (mut memory, mut gradient) = (Memory::default(), Vec::new());
    let rows: Vec<u32> = (0..data.rows() as u32).collect();
    for _ in 0..passes {
        for rows in rows.chunks(batch.max(1)) {
            let rows = BatchRows {
                examples: data,
                rows,
                seeds: &[],
            };
            let step = rate / rows.rows.len() as f32;
            non_private_sum(network, &weights, rows, &mut memory, &mut gradient)?;
            let each = weights.iter_mut().zip(&gradient);
            each.for_each(|(weight, slope)| *weight -= step * slope);
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data in three of four dimensions, of which one hardly varies.
    #[test]
    fn the_least_direction_is_the_one_in_which_nothing_is() {
        let rows = (0..50).flat_map(|row| {
            let t = row as f32 * 0.37;
            [t.sin(), t.cos(), t.sin() + t.cos(), 0.5 * (t * 1.7).sin()]
        });
        let data = Dataset::with_classes(vec![4], rows.collect(), vec![0; 50], 2).expect("fits");
        let v = least_direction(&data);
        let along: f64 = (0..50)
            .filter_map(|row| data.example(row))
            .map(|example| {
                let dot: f64 = example
                    .features
                    .iter()
                    .zip(&v)
                    .map(|(&x, v)| f64::from(x) * v)
                    .sum();
                dot.abs()
            })
            .fold(0.0, f64::max);
        assert!(along < 1e-5, "{along}");
        let norm: f64 = v.iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 1e-12);
        // (1, 1, -1, 0)/√3, up to its sign.
        assert!(v[3].abs() < 1e-5 && (v[0] - v[1]).abs() < 1e-5 && (v[0] + v[2]).abs() < 1e-5);
    }
}
