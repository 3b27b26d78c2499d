//! # Privacy profiles, and the epsilon at a delta
//! The profile of a pair of distributions is `δ(ε) = sup_S P(S) - e^ε Q(S) = E_P[(1 - e^(ε-L))_+]` with the privacy loss
//! `L = ln(P/Q)`; where `Q` is zero, `L` is infinite. It falls from the total variation at `ε = 0` to the mass of the
//! infinite losses.
//!
//! Each engine gives a [`Curve`]: brackets of `δ(ε)`. This file turns a curve around. Nothing is assumed of its brackets
//! but that they hold the truth: an epsilon is an upper bound because the curve was seen at or below `δ` there, and a
//! lower bound because it was seen above.

use crate::Bracket;

/// A profile in one direction, for a fixed composition.
pub(crate) trait Curve {
    /// `δ(ε)` for any real `ε`.
    fn delta(&mut self, epsilon: f64) -> Bracket;

    /// The mass of infinite losses, below which no epsilon reaches.
    fn infinite(&self) -> Bracket;

    /// An epsilon that all finite losses are below, if there is one: `δ` is [`infinite`](Self::infinite) from there on.
    fn epsilon_max(&self) -> Option<f64> {
        None
    }

    /// A first guess of `ε(δ)`, if there is a number.
    fn guess(&mut self, _delta: f64) -> f64 {
        f64::NAN
    }

    /// Where the curve meets `δ`, from those that find it with fewer questions than a search on all of a float's digits.
    fn root(&mut self, _delta: f64) -> Option<Root> {
        None
    }
}

/// Where a curve seems to meet `δ`. Only speed and sharpness rest on it.
pub(crate) struct Root {
    pub(crate) place: f64,
    /// How fast `ln δ(ε)` falls there.
    pub(crate) slope: f64,
    /// The first steps from there to a proven bound; from one to the next they double.
    pub(crate) step: f64,
}

/// The smallest relative step between two tries.
const STEP_MIN: f64 = 3e-16;
/// How often a try may double its distance: from the smallest step to beyond every float.
const TRIES_MAX: u32 = 2200;

/// `ε(δ) = min {ε >= 0 : δ(ε) <= δ}`; infinite where even infinite losses exceed `δ`.
pub(crate) fn epsilon(curve: &mut (impl Curve + ?Sized), delta: f64) -> Bracket {
    if curve.infinite().lower() > delta {
        return Bracket::exact(f64::INFINITY);
    }
    if delta <= 0.0 && curve.infinite().upper() <= 0.0 {
        // The largest loss; engines that know it exactly answer before this.
        return Bracket::new(0.0, curve.epsilon_max().unwrap_or(f64::INFINITY));
    }
    let limit = curve.epsilon_max().unwrap_or(f64::MAX);
    let own = curve.root(delta);
    let guess = match &own {
        Some(root) => root.place,
        None => curve.guess(delta),
    };
    // Far from zero the profile at zero does not matter, and may be dear.
    let from_zero = guess.is_nan() || guess <= 0.0;
    if from_zero && curve.delta(0.0).upper() <= delta {
        return Bracket::ZERO;
    }
    let root = match own {
        Some(root) => root,
        None => search(curve, guess, delta, limit),
    };
    let upper = first_below(curve, delta, &root, limit);
    let lower = last_above(curve, delta, &root);
    if lower == 0.0 && !from_zero && curve.delta(0.0).upper() <= delta {
        return Bracket::ZERO;
    }
    Bracket::new(lower.min(upper), upper)
}

/// Brackets the place, and closes in on it.
fn search(curve: &mut (impl Curve + ?Sized), guess: f64, delta: f64, limit: f64) -> Root {
    let target = delta.ln();
    let mut excess = |epsilon: f64| curve.delta(epsilon).estimate().max(0.0).ln() - target;
    let start = if guess.is_finite() && guess > 0.0 {
        guess.min(limit)
    } else {
        limit.min(1.0)
    };
    let (mut low, mut low_excess) = (0.0, f64::INFINITY);
    let (mut high, mut high_excess) = (limit, f64::NEG_INFINITY);
    // Narrow the range down to a finite one that holds the root, by steps that double.
    let (mut next, mut step) = (start, start * 1e-3);
    for _ in 0..TRIES_MAX {
        let found = excess(next);
        if found > 0.0 {
            (low, low_excess) = (next, found);
            next = (next + step).min(high);
        } else {
            (high, high_excess) = (next, found);
            next = (next - step).max(low);
        }
        step *= 2.0;
        let both_seen = low_excess.is_finite() && high_excess.is_finite();
        if both_seen || next <= low || next >= high {
            break;
        }
    }
    // Then false position on the logarithm, with halved weights for the end that stays (the Illinois rule).
    let mut slope = f64::NAN;
    let mut place = if high < f64::MAX { high } else { start };
    for _ in 0..100 {
        if low_excess.is_finite() && high_excess.is_finite() && high > low {
            slope = (low_excess - high_excess) / (high - low);
        }
        let share = low_excess / (low_excess - high_excess);
        let middle = low.midpoint(high);
        let next = if share.is_finite() {
            low + (high - low) * share
        } else {
            middle
        };
        let next = if next > low && next < high {
            next
        } else {
            middle
        };
        if next <= low || next >= high {
            break;
        }
        let found = excess(next);
        place = next;
        if found.abs() < 1e-14 || high - low < STEP_MIN * high {
            break;
        }
        if found > 0.0 {
            (low, low_excess) = (next, found);
            high_excess /= 2.0;
        } else {
            (high, high_excess) = (next, found);
            low_excess /= 2.0;
        }
    }
    if !(slope.is_finite() && slope > 0.0) {
        slope = 1.0;
    }
    Root {
        place,
        slope,
        step: place.max(f64::MIN_POSITIVE) * STEP_MIN,
    }
}

/// The first place tried from `place` upward where the curve is seen at or below `δ`.
fn first_below(curve: &mut (impl Curve + ?Sized), delta: f64, root: &Root, limit: f64) -> f64 {
    let (mut next, mut step) = (root.place, root.step);
    for _ in 0..TRIES_MAX {
        let found = curve.delta(next).upper();
        if found <= delta {
            return next;
        }
        if next >= limit {
            break;
        }
        // As far as the slope says the bracket is too high, and twice as far as last time.
        let asked = (found.ln() - delta.ln()) / root.slope;
        let asked = if asked.is_finite() {
            asked.min(root.place)
        } else {
            0.0
        };
        next = (next + step.max(asked)).min(limit);
        step *= 2.0;
    }
    // From the largest finite loss on only infinite losses count.
    if limit < f64::MAX && curve.infinite().upper() <= delta {
        limit
    } else {
        f64::INFINITY
    }
}

/// The first place tried from `place` downward where the curve is seen above `δ`; zero if there is none.
fn last_above(curve: &mut (impl Curve + ?Sized), delta: f64, root: &Root) -> f64 {
    let (mut next, mut step) = (root.place, root.step);
    for _ in 0..TRIES_MAX {
        if next <= 0.0 {
            break;
        }
        let found = curve.delta(next).lower();
        if found > delta {
            return next;
        }
        let asked = (delta.ln() - found.max(0.0).ln()) / root.slope;
        let asked = if asked.is_finite() { asked } else { 0.0 };
        next -= step.max(asked);
        step *= 2.0;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `δ(ε) = δ_∞ + a e^(-b ε)` up to the largest loss, known up to a relative error.
    struct Exponential {
        infinite: f64,
        size: f64,
        rate: f64,
        error: f64,
        limit: Option<f64>,
    }

    impl Curve for Exponential {
        fn delta(&mut self, epsilon: f64) -> Bracket {
            let finite = match self.limit {
                Some(limit) if epsilon >= limit => 0.0,
                _ => self.size * (-self.rate * epsilon).exp(),
            };
            let value = self.infinite + finite;
            Bracket::new(value * (1.0 - self.error), value * (1.0 + self.error))
        }

        fn infinite(&self) -> Bracket {
            Bracket::exact(self.infinite)
        }

        fn epsilon_max(&self) -> Option<f64> {
            self.limit
        }

        fn guess(&mut self, _: f64) -> f64 {
            1.0
        }
    }

    #[test]
    fn finds_the_place_within_the_error() {
        for rate in [1e-3, 1.0, 50.0] {
            for delta in [1e-300, 1e-30, 1e-6, 0.1] {
                for error in [0.0, 1e-12, 1e-3] {
                    let mut curve = Exponential {
                        infinite: 0.0,
                        size: 0.5,
                        rate,
                        error,
                        limit: None,
                    };
                    let truth = (0.5_f64 / delta).ln() / rate;
                    let found = epsilon(&mut curve, delta);
                    let room = (2.5 * error + 1e-13) / rate + 1e-13 * truth;
                    assert!(
                        found.lower() <= truth * (1.0 + 1e-14)
                            && truth * (1.0 - 1e-14) <= found.upper(),
                        "{rate} {delta} {error}: {found:?} {truth}"
                    );
                    assert!(
                        found.upper() - found.lower() <= 2.0 * room,
                        "{rate} {delta} {error}: {found:?} {truth}"
                    );
                }
            }
        }
    }

    #[test]
    fn ends_are_exact() {
        let mut curve = Exponential {
            infinite: 1e-6,
            size: 0.5,
            rate: 1.0,
            error: 0.0,
            limit: Some(3.0),
        };
        assert_eq!(epsilon(&mut curve, 1e-7), Bracket::exact(f64::INFINITY));
        assert_eq!(epsilon(&mut curve, 0.6), Bracket::ZERO);
        let found = epsilon(&mut curve, 1e-6);
        assert_eq!(found.upper(), 3.0);
        assert!(found.lower() > 2.9);
    }
}
