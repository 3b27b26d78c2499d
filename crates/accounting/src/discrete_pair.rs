//! # Pairs of discrete mechanisms
//! Each is stated with the reason why its pair dominates. All are symmetric: `P` and `Q` may be exchanged by relabelling outputs,
//! so one pair serves both directions.
//!
//! **Randomized response** over `m` values, kept with probability `p` and otherwise any other one: on inputs `x` and `x'`, output
//! `x` has the loss `ε₀ = ln(p (m-1)/(1-p))`, output `x'` has `-ε₀`, all others 0. The same for every two inputs. It hides what
//! a unit says: replace-one.
//!
//! **Pure `ε₀`-DP, and `(ε₀, δ₀)`-DP.** The pair has the losses `∞, ε₀, -ε₀` and, under `Q` alone, `-∞`, with masses
//! `δ₀, (1-δ₀)e^ε₀/(1+e^ε₀), (1-δ₀)/(1+e^ε₀), 0`. Every such mechanism is a function of it \[KOV15\], in either
//! direction; hence it dominates, and it is one of them: the bound is the best for what is known.
//!
//! **Additive noise with a log-concave law `f` on the integers**, queries of neighbours at most `d` apart: the shift `d` is the
//! worst. *Proof.* `f(y)/f(y-s)` falls with `y`, so `Σ_y (f(y) - e^ε f(y-s))_+ = max_a F(a) - e^ε F(a-s)` with the distribution
//! function `F`, which rises with `s` for each `a`; `f` is symmetric, so `-s` is no worse. ∎
//! - *Discrete Laplace* with rate `r` (scale `1/r`), `α = e^-r`: the loss is `(d-2y) r` for `0 <= y <= d` and the same as at the ends
//!   beyond, with masses `1/(1+α)` for `y <= 0`, `α^y (1-α)/(1+α)` between and `α^d/(1+α)` for `y >= d`. For `d = 1` this is
//!   randomized response. The geometric mechanism is the same.
//! - *Discrete Gaussian*: see `lattice_gaussian.rs`.
//!
//! **Permute-and-flip** is `ε`-DP \[MS20\], and as such it is priced.
//!
//! **Partition selection** with the optimal curve for `(ε, δ)` is `(ε, δ)`-DP for one key, in both directions. Little is lost:
//! the curve meets `δ(ε')` of the black box at `ε' >= ε` (one unit or none) and, where some `π(n)` is `(1-δ)/(1+e^ε)`, at 0.

use crate::Bracket;
use crate::lattice_pair::{LatticePair, Shape};

/// More masses are not worth while: another engine answers.
pub(crate) const MASSES_MAX: u64 = 1 << 16;

/// `m`-ary randomized response with `Pr[true value] = e^ε₀/(e^ε₀ + m - 1)`; `m >= 2`.
pub(crate) fn randomized_response(epsilon: f64, categories: u64) -> LatticePair {
    let unit = Bracket::exact(epsilon);
    let others = Bracket::exact(1.0) - Bracket::exact(2.0) + count(categories);
    // e^-ε₀ is the weight of each other value, beside 1 for the true one.
    let keep = -(others * (-unit).exp()).ln_1p();
    three(unit, keep, keep - unit, keep - unit, categories)
}

/// A mechanism that is `ε₀`-DP, and of which nothing else is known.
pub(crate) fn pure(epsilon: f64) -> LatticePair {
    randomized_response(epsilon, 2)
}

/// A mechanism that is `(ε₀, δ₀)`-DP, and of which nothing else is known.
pub(crate) fn approximate(epsilon: f64, delta: f64) -> LatticePair {
    let mut pair = pure(epsilon);
    let delta = Bracket::exact(delta);
    let left = (-delta).ln_1p();
    if let Shape::Masses(masses) = &mut pair.shape {
        for mass in masses {
            *mass = *mass + left;
        }
    }
    (pair.infinite, pair.missing) = (delta, delta);
    pair
}

/// Two-sided geometric noise of the given rate on integers at most `shift` apart; none if that is too far to list.
pub(crate) fn discrete_laplace(rate: f64, shift: u64) -> Option<LatticePair> {
    if shift >= MASSES_MAX {
        return None;
    }
    let unit = Bracket::exact(rate);
    let whole = -(-unit).exp().ln_1p();
    let point = (-(-unit).exp_m1()).ln() + whole;
    // Index 0 has the lowest loss, y = d.
    let masses = (0..=shift)
        .map(|index| {
            let y = shift - index;
            let fall = -(unit * count(y));
            if y == 0 || y == shift {
                fall + whole
            } else {
                fall + point
            }
        })
        .collect();
    Some(LatticePair::symmetric(unit, -(shift as i64), 2, masses))
}

/// Discrete Gaussian noise of scale `σ` on integers at most `shift` apart.
pub(crate) fn discrete_gaussian(sigma: f64, shift: u32) -> LatticePair {
    let (square, d) = (
        Bracket::exact(sigma) * Bracket::exact(sigma),
        Bracket::exact(f64::from(shift)),
    );
    let unit = d / (Bracket::exact(2.0) * square);
    let mut pair = LatticePair::symmetric(unit, i64::from(shift), 2, Vec::new());
    pair.shape = Shape::Gaussian {
        sigma,
        shift: f64::from(shift),
        stretch: Bracket::exact(1.0),
    };
    pair
}

/// Losses `-unit, 0, unit` with the given logarithms of masses, that of 0 for each of the other categories.
fn three(
    unit: Bracket,
    high: Bracket,
    low: Bracket,
    each: Bracket,
    categories: u64,
) -> LatticePair {
    if categories == 2 {
        return LatticePair::symmetric(unit, -1, 2, vec![low, high]);
    }
    let rest = each + count(categories - 2).ln();
    LatticePair::symmetric(unit, -1, 1, vec![low, rest, high])
}

fn count(value: u64) -> Bracket {
    crate::lattice_pair::integer(i128::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masses(pair: &LatticePair) -> Vec<(Bracket, Bracket)> {
        let Shape::Masses(masses) = &pair.shape else {
            panic!("no masses");
        };
        (0..)
            .zip(masses)
            .map(|(index, mass)| (pair.loss(index), mass.exp()))
            .collect()
    }

    /// `P` and `Q` are probabilities, and each other's mirror image.
    fn is_a_pair(pair: &LatticePair) {
        let listed = masses(pair);
        let p = listed
            .iter()
            .fold(pair.infinite, |sum, (_, mass)| sum + *mass);
        let q = listed.iter().fold(pair.missing, |sum, (loss, mass)| {
            sum + *mass * (-*loss).exp()
        });
        assert!(p.holds(1.0) && q.holds(1.0), "{pair:?}: {p:?} {q:?}");
        assert!(p.upper() - p.lower() < 1e-12 && q.upper() - q.lower() < 1e-12);
        for ((loss, mass), (other, mirrored)) in listed.iter().zip(listed.iter().rev()) {
            assert!((*loss + *other).holds(0.0));
            let back = *mass * (-*loss).exp();
            assert!(back.lower() <= mirrored.upper() && mirrored.lower() <= back.upper());
        }
    }

    #[test]
    fn all_are_pairs() {
        for epsilon in [1e-12, 0.1, 1.0, 30.0, 700.0] {
            for categories in [2, 3, 10, 1_000_000] {
                is_a_pair(&randomized_response(epsilon, categories));
            }
            for delta in [0.0, 1e-9, 0.3] {
                is_a_pair(&approximate(epsilon, delta));
            }
            for shift in [1, 2, 3, 50] {
                is_a_pair(&discrete_laplace(epsilon / 50.0, shift).expect("few"));
            }
        }
    }
}
