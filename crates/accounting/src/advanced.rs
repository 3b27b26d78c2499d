//! # Basic and advanced composition
//! Of mechanisms that are `(ε_i, δ_i)`-DP, each chosen by earlier answers, with parameters that were fixed
//! beforehand. These are the bounds that the exact engines are compared with.
//!
//! **Basic.** `(Σ ε_i, Σ δ_i)` [DR14, Thm 3.16]; the proof is in `approximate.rs`.
//!
//! **Advanced.** For every `δ' > 0`, `(ε', 1 - (1-δ') Π(1-δ_i))` with `ε' = Σ ε_i tanh(ε_i/2) + √(2 ln(1/δ') Σ ε_i²)`
//! [KOV15, Thm 3.5, third bound]. With equal parts and the sum `Tδ + δ'` of the deltas it is
//! `ε√(2T ln(1/δ')) + Tε(e^ε-1)/(e^ε+1)`, the form that is taught; the original [DRV10, Thm III.3] has `Tε(e^ε-1)`.
//! *Proof.* An `(ε, δ)`-DP pair is a post-processing of: with probability `δ` the input itself, otherwise binary
//! randomized response with ratio `e^ε` \[KOV15\]; so it is enough to compose these, and what one of them reveals is
//! within `1 - Π(1-δ_i)`. Of the rest, each loss is `±ε_i` with mean `ε_i tanh(ε_i/2)`; by Hoeffding's inequality the
//! sum exceeds its mean by `t` with probability at most `exp(-2t²/Σ(2ε_i)²) = exp(-t²/(2Σε_i²))`, which is `δ'` at
//! `t = √(2 ln(1/δ') Σε_i²)`. Where the loss does not exceed `ε'`, the profile has no mass. The rest has weight
//! `Π(1-δ_i)`, and `1 - Π + Π δ'` is the claim.
//!
//! The other bound of the same theorem has `ln(e + √(Σε_i²)/δ')` in place of `ln(1/δ')`; which is smaller depends.
//! It is cited, not proven here, and therefore not used.
//!
//! **How the error is bounded.** Brackets throughout; the upper end is the answer.

use whit_core::{Delta, Epsilon};

use crate::Bracket;

/// `count` mechanisms that are `(epsilon, delta)`-DP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The loss of each.
    pub epsilon: Epsilon,
    /// The slack of each.
    pub delta: Delta,
    /// How many there are.
    pub count: u64,
}

/// An epsilon and a delta, both of them upper bounds; the epsilon infinite and the delta one where nothing is proven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Composed {
    /// The loss of all.
    pub epsilon: f64,
    /// The slack of all.
    pub delta: f64,
}

/// Epsilons add up, and so do deltas.
pub fn basic(parts: &[Part]) -> Composed {
    let sum = |of: fn(&Part) -> f64| {
        parts.iter().fold(Bracket::ZERO, |sum, part| {
            sum + Bracket::exact(of(part)) * count(part)
        })
    };
    Composed {
        epsilon: sum(|part| part.epsilon.value()).upper(),
        delta: sum(|part| part.delta.value()).upper().min(1.0),
    }
}

/// The advanced bound with the slack `spread`, which is `δ'`.
pub fn advanced(parts: &[Part], spread: Delta) -> Composed {
    let (mut mean, mut square, mut kept) = (Bracket::ZERO, Bracket::ZERO, Bracket::ZERO);
    for part in parts {
        let (epsilon, count) = (Bracket::exact(part.epsilon.value()), count(part));
        mean = mean + epsilon * tanh_half(part.epsilon.value()) * count;
        square = square + epsilon * epsilon * count;
        kept = kept + (-Bracket::exact(part.delta.value())).ln_1p() * count;
    }
    let slack = Bracket::exact(spread.value());
    let width = (Bracket::exact(2.0) * -slack.ln() * square).sqrt();
    let epsilon = if square == Bracket::ZERO {
        0.0
    } else {
        (mean + width).upper()
    };
    // 1 - (1-δ') Π (1-δ_i)
    let delta = -(kept + (-slack).ln_1p()).exp_m1();
    Composed {
        epsilon,
        delta: delta.upper().clamp(0.0, 1.0),
    }
}

/// The smaller epsilon of both at a given delta of the whole; the advanced bound spends on its slack what the parts
/// leave.
pub fn epsilon(parts: &[Part], delta: Delta) -> f64 {
    let plain = basic(parts);
    let plain = if plain.delta <= delta.value() {
        plain.epsilon
    } else {
        f64::INFINITY
    };
    let kept = parts.iter().fold(Bracket::ZERO, |kept, part| {
        kept + (-Bracket::exact(part.delta.value())).ln_1p() * count(part)
    });
    // 1 - δ' = (1-δ)/Π(1-δ_i)
    let room = -((-Bracket::exact(delta.value())).ln_1p() - kept).exp_m1();
    let spread = Delta::new(room.lower().max(0.0));
    match spread {
        Ok(spread) if spread > Delta::ZERO => {
            let found = advanced(parts, spread);
            if found.delta <= delta.value() {
                plain.min(found.epsilon)
            } else {
                // The last digits of the slack were rounded against us; half of it passes.
                let half = Delta::new(spread.value() / 2.0).unwrap_or(Delta::ZERO);
                let found = advanced(parts, half);
                if found.delta <= delta.value() {
                    plain.min(found.epsilon)
                } else {
                    plain
                }
            }
        }
        _ => plain,
    }
}

/// As a bracket, since counts beyond `2^53` are no floats.
fn count(part: &Part) -> Bracket {
    let nearest = part.count as f64;
    if part.count <= 1 << 53 {
        Bracket::exact(nearest)
    } else {
        Bracket::new(nearest.next_down(), nearest.next_up())
    }
}

/// `(e^ε-1)/(e^ε+1) = -expm1(-ε)/(2 + expm1(-ε))`, the mean of the sign of the loss.
fn tanh_half(epsilon: f64) -> Bracket {
    let fall = (-Bracket::exact(epsilon)).exp_m1();
    (-fall / (Bracket::exact(2.0) + fall)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(epsilon: f64, delta: f64, count: u64) -> Part {
        Part {
            epsilon: Epsilon::new(epsilon).expect("finite"),
            delta: Delta::new(delta).expect("below one"),
            count,
        }
    }

    fn slack(value: f64) -> Delta {
        Delta::new(value).expect("below one")
    }

    #[test]
    fn basic_adds_up() {
        let found = basic(&[part(0.5, 1e-6, 3), part(0.25, 0.0, 2)]);
        assert_eq!(found.epsilon, 2.0);
        assert!((3e-6..3.000_001e-6).contains(&found.delta));
        assert_eq!(
            basic(&[]),
            Composed {
                epsilon: 0.0,
                delta: 0.0
            }
        );
    }

    /// The formula as it is taught, for equal parts.
    #[test]
    fn advanced_is_the_taught_formula() {
        for (epsilon, delta, count, spread) in [
            (0.1_f64, 1e-8, 100_u32, 1e-5_f64),
            (1.0, 0.0, 7, 1e-9),
            (1e-6, 1e-20, 1_000_000, 1e-12),
        ] {
            let t = f64::from(count);
            let truth = epsilon * (2.0 * t * (1.0 / spread).ln()).sqrt()
                + t * epsilon * (epsilon.exp() - 1.0) / (epsilon.exp() + 1.0);
            let found = advanced(&[part(epsilon, delta, count.into())], slack(spread));
            assert!(found.epsilon >= truth * (1.0 - 1e-9) && found.epsilon <= truth * (1.0 + 1e-9));
            assert!(found.delta <= (t * delta + spread) * (1.0 + 1e-9));
            assert!(found.delta >= (t * delta + spread) * (1.0 - t * delta - spread - 1e-9));
        }
    }

    /// Exact profile of `k` randomized responses: never above what is promised, and basic composition is exact at its
    /// end.
    #[test]
    fn never_below_the_exact_profile_of_randomized_response() {
        for (epsilon, count, spread) in
            [(0.1_f64, 60_u32, 1e-3_f64), (0.5, 20, 1e-2), (1.0, 8, 1e-4)]
        {
            let found = advanced(&[part(epsilon, 0.0, count.into())], slack(spread));
            let keep = epsilon.exp() / (1.0 + epsilon.exp());
            let (mut exact, mut choose) = (0.0, 1.0);
            for heads in 0..=count {
                let (up, down) = (f64::from(heads), f64::from(count - heads));
                let p = choose * keep.powf(up) * (1.0 - keep).powf(down);
                let q = choose * keep.powf(down) * (1.0 - keep).powf(up);
                exact += (p - found.epsilon.exp() * q).max(0.0);
                choose *= down / (up + 1.0);
            }
            assert!(exact <= found.delta, "{epsilon} {count}: {exact} {found:?}");
        }
    }

    #[test]
    fn parts_differ_and_the_better_bound_wins() {
        let parts = [part(0.01, 1e-9, 1000), part(0.2, 0.0, 3)];
        let best = epsilon(&parts, slack(1e-5));
        assert!(best < basic(&parts).epsilon);
        assert!(best >= advanced(&parts, slack(1e-5)).epsilon);
        assert_eq!(epsilon(&[part(1.0, 0.0, 2)], slack(1e-9)), 2.0);
        assert_eq!(epsilon(&[part(1.0, 1e-3, 2)], slack(1e-9)), f64::INFINITY);
        assert_eq!(epsilon(&[part(1.0, 0.0, 2)], Delta::ZERO), 2.0);
        assert_eq!(epsilon(&[], Delta::ZERO), 0.0);
    }

    #[test]
    fn extremes() {
        for count in [1, 1 << 53, u64::MAX] {
            for size in [0.0, 5e-324, 1e-9, 1.0, 1e300] {
                for delta in [0.0, 5e-324, 1e-300, 0.5] {
                    let parts = [part(size, delta, count)];
                    let (plain, found) = (basic(&parts), advanced(&parts, slack(1e-300)));
                    assert!(plain.epsilon >= size && plain.delta >= delta);
                    assert!(found.epsilon >= 0.0 && found.delta >= 1e-300 && found.delta <= 1.0);
                    assert!(epsilon(&parts, slack(0.9)) >= 0.0);
                }
            }
        }
        let none = advanced(&[part(0.0, 0.0, 5)], Delta::ZERO);
        assert_eq!(
            none,
            Composed {
                epsilon: 0.0,
                delta: 0.0
            }
        );
        assert_eq!(
            advanced(&[part(1.0, 0.0, 5)], Delta::ZERO).epsilon,
            f64::INFINITY
        );
    }
}
