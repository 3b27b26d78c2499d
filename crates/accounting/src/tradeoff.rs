//! # The trade-off curve of a profile
//! **Definition.** Somebody decides between `Q` (null) and `P` by a test that rejects on `S`. Its false positive rate
//! is `α = Q(S)`, its false negative rate `β = 1 - P(S)`. The least `β` at an `α` is the trade-off curve [DRS22, Def.
//! 2.1].
//!
//! **From the profile** `δ(ε) = sup_S P(S) - e^ε Q(S)`, for every real `ε`: `β >= F(t) = 1 - δ(ln t) - tα` with
//! `t = e^ε`, and the largest `F` is the least `β` [DRS22, Prop. 2.12]. At `-ε` this is `e^-ε (1 - δ_r(ε) - α)` with
//! the profile `δ_r` of the other direction. So *every* epsilon that is looked at proves a lower bound, whatever it
//! is.
//!
//! **Upper bound.** `δ` is a supremum of functions linear in `t`, so `F` is concave, and a chord carried on beyond
//! its ends is above it. Between neighbouring places that were looked at, the chords next to the gap bound `F`;
//! before the first and after the last one, the outer chords do, up to `t = 1/α`, from where on `F` is negative. And
//! `β <= 1 - α` always: a coin rejects as often.
//!
//! **Error.** Evaluations are brackets, and chords are taken through the ends that make them largest.
//!
//! **Also.** The largest advantage `TPR - FPR` is `δ(0)`. Somebody who believes in `P` with probability `π`
//! beforehand believes after a rejection, by Bayes' rule, with at most `π TPR/(π TPR + (1-π) α)`.

use crate::Bracket;
use crate::curve::Curve;

/// Places are looked at this far to both sides of the best one, in epsilon, and ten times as far each time: the
/// nearest for chords that hug the curve, the farthest for chords with little round-off.
const NEAREST: f64 = 1e-7;
/// Up to a factor of `e^10`.
const DISTANCES: usize = 9;
/// The golden section leaves `0.618^80 < 1e-16` of the range.
const STEPS: u32 = 80;

/// The least false negative rate of a test with the false positive rate `rate`, in `[0, 1]`.
pub(crate) fn false_negatives(curve: &mut impl Curve, rate: f64) -> Bracket {
    let most = (Bracket::exact(1.0) - rate.into()).upper();
    if rate <= 0.0 {
        // Only where Q is zero may P be rejected for free.
        return (Bracket::exact(1.0) - curve.infinite()).clamp(0.0, 1.0);
    }
    let mut look = |epsilon: f64| value(curve, rate, epsilon);
    let best = search(|epsilon| look(epsilon).estimate(), rate);
    let mut distances = [NEAREST; DISTANCES];
    for i in 1..DISTANCES {
        distances[i] = 10.0 * distances[i - 1];
    }
    let left = distances.iter().rev().map(|distance| best - distance);
    let right = distances.iter().map(|distance| best + distance);
    let places: Vec<Place> = left
        .chain(right)
        .map(|epsilon| Place {
            t: Bracket::exact(epsilon).exp(),
            value: look(epsilon),
        })
        .collect();
    let seen = look(best).lower().max(look(0.0).lower()).max(0.0);
    let lower = places
        .iter()
        .fold(seen, |lower, place| lower.max(place.value.lower()));
    let upper = above(&places, rate).min(most);
    Bracket::new(lower.min(upper), upper.max(0.0))
}

/// The largest true positive rate at a false positive rate.
pub(crate) fn true_positives(curve: &mut impl Curve, rate: f64) -> Bracket {
    (Bracket::exact(1.0) - false_negatives(curve, rate)).clamp(0.0, 1.0)
}

/// The largest difference of both rates: the total variation.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the front door asks for delta at zero")
)]
pub(crate) fn advantage(curve: &mut impl Curve) -> Bracket {
    curve.delta(0.0).clamp(0.0, 1.0)
}

/// The largest belief after a rejection, given the belief before. Where nothing is ever rejected there is no belief
/// after it.
pub(crate) fn posterior(curve: &mut impl Curve, prior: f64, rate: f64) -> Bracket {
    if rate <= 0.0 {
        // A rejection without false positives is certain, if there is one.
        let certain = |mass: f64| {
            if mass > 0.0 && prior > 0.0 {
                1.0
            } else {
                prior
            }
        };
        let infinite = curve.infinite();
        return Bracket::new(certain(infinite.lower()), certain(infinite.upper()));
    }
    let hit = Bracket::exact(prior) * true_positives(curve, rate);
    let miss = (Bracket::exact(1.0) - prior.into()) * rate.into();
    // x/(x + y) grows with x: each end has one x.
    let at = |hit: f64| Bracket::exact(hit) / (Bracket::exact(hit) + miss);
    if hit.lower() <= 0.0 && miss.lower() <= 0.0 {
        return Bracket::new(0.0, 1.0);
    }
    Bracket::new(at(hit.lower()).lower(), at(hit.upper()).upper()).clamp(0.0, 1.0)
}

/// `F = 1 - δ(ε) - e^ε α`.
fn value(curve: &mut impl Curve, rate: f64, epsilon: f64) -> Bracket {
    let paid = Bracket::exact(epsilon).exp() * rate.into();
    Bracket::exact(1.0) - curve.delta(epsilon) - paid
}

/// About where `F` is largest. From `t = 1/α` on, `F` is negative; far below zero `t` hardly moves it.
fn search(mut look: impl FnMut(f64) -> f64, rate: f64) -> f64 {
    let mut right = -rate.ln() + 1.0;
    let mut left = -right.max(40.0);
    let golden = 0.618_033_988_749_894_9;
    let (mut a, mut b) = (
        right - golden * (right - left),
        left + golden * (right - left),
    );
    let (mut at_a, mut at_b) = (look(a), look(b));
    for _ in 0..STEPS {
        if right - left < NEAREST {
            break;
        }
        if at_a >= at_b {
            right = b;
            (b, at_b) = (a, at_a);
            a = right - golden * (right - left);
            at_a = look(a);
        } else {
            left = a;
            (a, at_a) = (b, at_b);
            b = left + golden * (right - left);
            at_b = look(b);
        }
    }
    left.midpoint(right)
}

/// Where `F` was looked at.
struct Place {
    t: Bracket,
    value: Bracket,
}

/// An upper bound of `F` where it is positive, which is before `t = 1/α`, from places in ascending order.
fn above(places: &[Place], rate: f64) -> f64 {
    let slopes: Vec<Bracket> = places
        .windows(2)
        .map(|pair| (pair[1].value - pair[0].value) / (pair[1].t - pair[0].t))
        .collect();
    let rise = |from: &Place, slope: f64, width: f64| {
        let gain = Bracket::exact(slope.max(0.0)) * width.max(0.0).into();
        (Bracket::exact(from.value.upper()) + gain).upper()
    };
    let end = Bracket::exact(1.0) / rate.into();
    let last = places.len() - 1;
    let mut most = rise(&places[0], -slopes[0].lower(), places[0].t.upper()).max(rise(
        &places[last],
        slopes[last - 1].upper(),
        (end - places[last].t).upper(),
    ));
    for (i, pair) in places.windows(2).enumerate() {
        let width = (pair[1].t - pair[0].t).upper();
        // The chord before the gap, carried on to the right, and the one after it, carried on to the left.
        let before = (i > 0).then(|| rise(&pair[0], slopes[i - 1].upper(), width));
        let after = (i + 1 < last).then(|| rise(&pair[1], -slopes[i + 1].lower(), width));
        let gap = before
            .unwrap_or(f64::INFINITY)
            .min(after.unwrap_or(f64::INFINITY));
        most = most.max(gap);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian::Gaussian;
    use crate::gdp;

    fn gaussian(mu: f64) -> Gaussian {
        Gaussian {
            mu: Bracket::exact(mu),
        }
    }

    /// Randomized response of ratio `e^loss`, after the truth is told with probability `leak`.
    struct Response {
        loss: f64,
        leak: f64,
    }

    impl Curve for Response {
        fn delta(&mut self, epsilon: f64) -> Bracket {
            let keep = self.loss.exp() / (1.0 + self.loss.exp());
            let of = |p: f64, q: f64| (p - epsilon.exp() * q).max(0.0);
            let rest = of(keep, 1.0 - keep) + of(1.0 - keep, keep);
            Bracket::around(self.leak + (1.0 - self.leak) * rest, 1e-14)
        }
        fn infinite(&self) -> Bracket {
            Bracket::exact(self.leak)
        }
        fn guess(&mut self, _: f64) -> f64 {
            1.0
        }
    }

    /// The closed form of `gdp.rs`; among it the golden cases pub-069 and pub-070.
    #[test]
    fn gaussian_curves_have_their_closed_form() {
        for mu in [0.01, 0.3, 1.0, 2.5, 6.0] {
            for rate in [1e-12, 1e-3, 0.01, 0.2, 0.5, 0.9, 0.999] {
                let found = false_negatives(&mut gaussian(mu), rate);
                let truth = gdp::false_negatives(Bracket::exact(mu), Bracket::exact(rate));
                assert!(
                    found.lower() <= truth.upper() && truth.lower() <= found.upper(),
                    "{mu} {rate}: {found:?} {truth:?}"
                );
                assert!(
                    found.upper() - found.lower() < 1e-8,
                    "{mu} {rate}: {found:?}"
                );
            }
        }
        assert!(false_negatives(&mut gaussian(1.0), 0.01).holds(0.907_637_751_926_306));
        assert!(false_negatives(&mut gaussian(2.5), 0.001).holds(0.722_482_542_003_252_5));
    }

    /// Two lines and a corner: `max(0, 1 - e^ε α, e^-ε (1-α))`, times what does not leak.
    #[test]
    fn corners_are_enclosed() {
        for (loss, leak) in [(1.0_f64, 0.0), (2.0, 0.1), (0.1, 0.01)] {
            for rate in [1e-6, 0.05, 0.2, 1.0 / (1.0 + loss.exp()), 0.6, 0.95] {
                // What leaks in the other direction is never a false positive.
                let inner: f64 = rate / (1.0 - leak);
                let lines = (1.0 - loss.exp() * inner).max((-loss).exp() * (1.0 - inner));
                let truth = (1.0 - leak) * lines.max(0.0);
                let found = false_negatives(&mut Response { loss, leak }, rate);
                assert!(
                    found.lower() <= truth + 1e-12 && truth <= found.upper() + 1e-12,
                    "{loss} {leak} {rate}: {found:?} {truth}"
                );
                assert!(
                    found.upper() - found.lower() < 1e-3,
                    "{loss} {leak} {rate}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn ends_and_monotony() {
        assert_eq!(
            false_negatives(&mut gaussian(1.0), 0.0),
            Bracket::exact(1.0)
        );
        let leaky = false_negatives(
            &mut Response {
                loss: 1.0,
                leak: 0.25,
            },
            0.0,
        );
        assert!(leaky.holds(0.75));
        assert!(false_negatives(&mut gaussian(1.0), 1.0).holds(0.0));
        let mut last = 1.0;
        for step in 1..100 {
            let found = false_negatives(&mut gaussian(1.3), f64::from(step) / 100.0);
            assert!(found.lower() <= last && found.lower() >= 0.0);
            last = found.upper();
        }
        for rate in [5e-324, 1e-300, 1.0 - f64::EPSILON] {
            for mu in [1e-8, 1.0, 100.0] {
                let found = false_negatives(&mut gaussian(mu), rate);
                assert!(
                    found.lower() >= 0.0 && found.upper() <= 1.0 && found.lower() <= found.upper()
                );
            }
        }
    }

    #[test]
    fn advantage_and_belief() {
        // 2Φ(1/2) - 1.
        assert!(advantage(&mut gaussian(1.0)).holds(0.382_924_922_548_026_2));
        let hit = true_positives(&mut gaussian(1.0), 0.01);
        assert!(hit.holds(1.0 - 0.907_637_751_926_306));
        let after = posterior(&mut gaussian(1.0), 0.5, 0.01);
        let truth = 0.092_362_248_073_694 / (0.092_362_248_073_694 + 0.01);
        assert!((after.estimate() - truth).abs() < 1e-6 && after.lower() >= 0.5);
        assert!(posterior(&mut gaussian(0.0), 0.3, 0.2).holds(0.3));
        assert_eq!(posterior(&mut gaussian(1.0), 0.3, 0.0), Bracket::exact(0.3));
        assert_eq!(
            posterior(
                &mut Response {
                    loss: 1.0,
                    leak: 0.1
                },
                0.3,
                0.0
            ),
            Bracket::exact(1.0)
        );
    }
}
