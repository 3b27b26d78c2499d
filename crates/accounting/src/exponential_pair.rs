//! # The pair of mechanisms with bounded range
//! **Setting.** A mechanism has range `ε` if, for all neighbours, its losses lie in one interval of length `ε`
//! (`bounded_range.rs`), as for the exponential mechanism; where the interval lies may depend on the neighbours and, in a
//! composition, on earlier answers.
//!
//! **Theorem.** Let `P` have the loss density `e^(x/2)/(4 sinh(ε/2))` on `[-ε, ε]`, and `Q = e^-L P`. This pair dominates every
//! mechanism of range `ε`, and nothing smaller does.
//!
//! *Proof.*
//! 1. Let the losses lie in `[t-ε, t]`. `x = e^-L = Q/P` has mean 1 under `P` and lies in `[e^-t, e^(ε-t)]`, and the profile is the mean
//!    of the convex function `(1 - e^ε' x)_+`. So it is largest if all mass is at both ends: at loss `t` the mass
//!    `p = (e^ε - e^t)/(e^ε - 1)`, at `t-ε` the rest \[DDR20\].
//! 2. For `t-ε <= ε' <= t` that is `p (1 - e^(ε'-t))`, largest at `t = (ε+ε')/2`: `δ(ε') = (e^(ε/2) - e^(ε'/2))²/(e^ε - 1)`.
//!    For each `ε'` this is attained, by the exponential mechanism with two outputs.
//! 3. The stated pair has this profile: with `y = e^(ε'/2)` and `a = e^(ε/2)`, the integral of
//!    `e^(x/2)(1 - e^(ε'-x))/(4 sinh(ε/2))` from `ε'` to `ε` is `(a - 2y + y²/a)/(2 sinh(ε/2)) = (a-y)²/(a²-1)`. ∎
//!
//! Pairs compose, also adaptively [ZDW22, Thm 10], so this one may be composed as any other. Its moments are
//! `M(s) = sinh((s+½)ε)/((2s+1) sinh(ε/2))`: between `P` and `Q` losses are uniform.
//!
//! **On a lattice.** In each of `w` cells of width `h = 2ε/w`,
//! - *above*: move the mass to both ends so that `P` and `Q` keep theirs. In terms of `x = e^-L` that spreads mass around its
//!   mean, and every profile rises (1.). Both ends of a cell with middle `m` get shares in the ratio `e^(h/2)`, and a grid point `x`
//!   in all `e^(x/2) tanh(h/4)/sinh(ε/2)`, half of that at both ends of the range.
//! - *below*: report the cell only. `P` and `Q` of a cell are in the ratio `e^m`: its loss is the middle, and post-processing lowers
//!   every profile. But the pair is only an upper bound for many steps; what mechanisms of range `ε` reach for sure is
//!   randomized response with losses `±ε/2` (1. with `t = ε/2`), which is the lower end here.
//!
//! Cells widen the variance by a share of `2/w²`.

use crate::Bracket;
#[cfg(test)]
use crate::curve::Curve;
use crate::discrete_pair::randomized_response;
#[cfg(test)]
use crate::lattice::Lattice;
use crate::lattice_pair::LatticePair;

/// `w`: the variance of the bound is 8e-6 of itself too large, and so half of that its epsilon.
const CELLS: i64 = 512;

/// A pair on a lattice that dominates every mechanism of range `ε`, in both directions.
pub(crate) fn bounded_range(epsilon: f64) -> LatticePair {
    let whole = Bracket::exact(epsilon);
    let half = Bracket::exact(0.5);
    let unit = whole / Bracket::exact(CELLS as f64);
    // tanh(h/4) = (e^(h/2) - 1)/(e^(h/2) + 1), and h/2 is the unit.
    let grown = unit.exp_m1();
    let tangent = grown / (grown + Bracket::exact(2.0));
    // sinh(ε/2) = (1 - e^-ε) e^(ε/2)/2.
    let ln_sine = (-(-whole).exp_m1()).ln() + whole * half + half.ln();
    let ln_scale = tangent.ln() - ln_sine;
    let masses = (0..=CELLS)
        .map(|index| {
            let loss = unit * Bracket::exact((2 * index - CELLS) as f64);
            let inner = loss * half + ln_scale;
            if index == 0 || index == CELLS {
                inner + half.ln()
            } else {
                inner
            }
        })
        .collect();
    LatticePair::symmetric(unit, -CELLS, 2, masses)
}

/// What mechanisms of range `ε` reach: losses of `±ε/2`.
pub(crate) fn bounded_range_reached(epsilon: f64) -> LatticePair {
    randomized_response(epsilon / 2.0, 2)
}

#[cfg(test)]
/// A profile between two others, each of which bounds it on one side.
pub(crate) struct Between<A, B> {
    /// At or above the truth.
    pub(crate) above: A,
    /// At or below it.
    pub(crate) below: B,
}

#[cfg(test)]
/// `count` mechanisms of range `ε`, of which nothing else is known.
pub(crate) fn bounded_range_power(epsilon: f64, count: u64) -> Option<Between<Lattice, Lattice>> {
    Some(Between {
        above: Lattice::power(bounded_range(epsilon), count)?,
        below: Lattice::power(bounded_range_reached(epsilon), count)?,
    })
}

#[cfg(test)]
impl Between<Lattice, Lattice> {
    /// `ε(δ)`: each side of the one that proves it.
    pub(crate) fn epsilon(&mut self, delta: f64) -> Bracket {
        let (above, below) = (self.above.epsilon(delta), self.below.epsilon(delta));
        Bracket::new(below.lower().min(above.upper()), above.upper())
    }
}

#[cfg(test)]
impl<A: Curve, B: Curve> Curve for Between<A, B> {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let (above, below) = (self.above.delta(epsilon), self.below.delta(epsilon));
        Bracket::new(below.lower().min(above.upper()), above.upper())
    }

    fn infinite(&self) -> Bracket {
        let (above, below) = (self.above.infinite(), self.below.infinite());
        Bracket::new(below.lower().min(above.upper()), above.upper())
    }

    fn epsilon_max(&self) -> Option<f64> {
        self.above.epsilon_max()
    }

    fn guess(&mut self, delta: f64) -> f64 {
        self.above.guess(delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One step: `(e^(ε/2) - e^(ε'/2))²/(e^ε - 1)`, from above and close to it.
    #[test]
    fn one_step_is_the_closed_form() {
        for epsilon in [1e-3, 0.1, 1.0, 5.0] {
            let mut one = Lattice::power(bounded_range(epsilon), 1).expect("has losses");
            for share in [-0.9, -0.2, 0.0, 0.3, 0.77, 0.95] {
                let at = share * epsilon;
                let (a, y) = ((epsilon / 2.0).exp(), (at / 2.0).exp());
                let truth = (a - y) * (a - y) / libm::expm1(epsilon);
                let found = one.delta(at);
                assert!(
                    found.upper() >= truth * (1.0 - 1e-12),
                    "{epsilon} {at}: {found:?} {truth}"
                );
                assert!(
                    found.upper() <= truth * 1.01 + 1e-5 * epsilon,
                    "{epsilon} {at}: {found:?} {truth}"
                );
            }
        }
    }

    /// Every two-point mechanism of range `ε` lies below, also after composition.
    #[test]
    fn two_point_mechanisms_are_dominated() {
        for (epsilon, count) in [(0.5, 3), (1.0, 10), (0.1, 200)] {
            let mut above = Lattice::power(bounded_range(epsilon), count).expect("has losses");
            for share in [0.3, 0.5, 0.6, 0.8] {
                let t = share * epsilon;
                let p = (epsilon.exp() - t.exp()) / libm::expm1(epsilon);
                let pair = LatticePair {
                    base: Bracket::exact(t - epsilon),
                    ..LatticePair::symmetric(
                        Bracket::exact(epsilon),
                        0,
                        1,
                        vec![Bracket::exact(1.0 - p).ln(), Bracket::exact(p).ln()],
                    )
                };
                let mut point = Lattice::power(pair, count).expect("has losses");
                let spread = epsilon * (count as f64).sqrt();
                for steps in [0.0, 0.5, 1.0, 1.5, 2.0] {
                    let at = steps * spread;
                    assert!(point.delta(at).lower() <= above.delta(at).upper());
                }
            }
        }
    }

    /// Far better than what is known of any `ε`-DP mechanism; the truth lies between losses `±ε/2` and this.
    #[test]
    fn composition_beats_pure_composition() {
        let mut range = bounded_range_power(0.1, 500).expect("has losses");
        let found = range.epsilon(1e-6);
        assert!(found.upper() < 6.63 && found.lower() > 4.79, "{found:?}");
        let pure = Lattice::power(randomized_response(0.1, 2), 500)
            .expect("has losses")
            .epsilon(1e-6);
        assert!(found.upper() < 0.65 * pure.lower(), "{found:?} {pure:?}");
    }
}
