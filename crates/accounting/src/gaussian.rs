//! # Gaussian mechanisms, composed and inverted
//! **Definition.** `N(1, σ²)` against `N(0, σ²)` has the privacy loss `N(μ²/2, μ²)` with `μ = 1/σ`; losses of
//! independent Gaussians add up to one of the same form with `μ² = Σ 1/σ_i²`, and a group of `g` units multiplies `μ`
//! by `g`.
//!
//! **Profile.** `gaussian_point.rs` encloses `δ(ε)`; it grows with `μ`, so that a bracket of `μ` gives one of `δ`.
//!
//! **Inverses.** `ε(δ)` and the `μ` of a target are found by Halley's and Newton's rule on `ln δ`, whose slopes come
//! with the value, in plain floats. Nothing rests on that: each end of the answer is a place where the profile was
//! *seen* at or below, or above, the `δ`; and where no such places are near, slower searches look for them.

use crate::Bracket;
use crate::curve::{self, Curve};
use crate::gaussian_point::{EPSILON_REGULAR, Evaluated, MU_REGULAR, Point, delta_at};
use crate::normal::UNDERFLOWS_FROM;
use crate::search::smallest_passing_f64;

/// A composition of Gaussians, by its `μ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gaussian {
    /// `√(Σ (Δ_i/σ_i)²)`.
    pub(crate) mu: Bracket,
}

impl Gaussian {
    /// `count` Gaussians of each noise multiplier, together.
    pub(crate) fn compose(parts: impl IntoIterator<Item = (Bracket, Bracket)>) -> Self {
        let sum = parts
            .into_iter()
            .fold(Bracket::ZERO, |sum, (sigma, count)| {
                sum + count / (sigma * sigma)
            });
        Self { mu: sum.sqrt() }
    }

    /// What `size` units that change together see.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "groups are formed before pairs are")
    )]
    pub(crate) fn group(self, size: Bracket) -> Self {
        Self { mu: self.mu * size }
    }

    /// `δ(ε)` for any real `ε`.
    pub(crate) fn delta(self, epsilon: f64) -> Bracket {
        let (low, high) = (self.mu.lower(), self.mu.upper());
        if low == high {
            return delta_at(low, epsilon);
        }
        Bracket::new(
            delta_at(low, epsilon).lower(),
            delta_at(high, epsilon).upper(),
        )
    }

    /// `ε(δ)`: a place found by Newton's rule, and two places next to it where the profile was seen on either side.
    pub(crate) fn epsilon(self, delta: f64) -> Bracket {
        if let Some(found) = self.epsilon_near(delta) {
            return found;
        }
        let mut curve = self;
        curve::epsilon(&mut curve, delta)
    }

    fn epsilon_near(self, delta: f64) -> Option<Bracket> {
        let mu = self.mu.estimate();
        let Found { place, slope } = epsilon_guess(mu, delta)?;
        let found = Gaussian::delta(self, place);
        let width = (found.relative_width() + f64::EPSILON) / slope;
        let mut step = width + place * f64::EPSILON;
        let (mut lower, mut upper) = (None, None);
        // Twice as far each time: eight turns are 256 times what the slope says.
        for _ in 0..8 {
            if upper.is_none() && self.delta(place + step).upper() <= delta {
                upper = Some(place + step);
            }
            if lower.is_none() && place > step && self.delta(place - step).lower() > delta {
                lower = Some(place - step);
            }
            if let (Some(lower), Some(upper)) = (lower, upper) {
                return Some(Bracket::new(lower, upper));
            }
            step *= 2.0;
        }
        None
    }
}

impl Curve for Gaussian {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        Gaussian::delta(*self, epsilon)
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn epsilon_max(&self) -> Option<f64> {
        (self.mu.upper() == 0.0).then_some(0.0)
    }

    fn guess(&mut self, delta: f64) -> f64 {
        epsilon_guess(self.mu.estimate(), delta).map_or(f64::NAN, |found| found.place)
    }
}

/// The `μ` at which `δ(ε)` is `delta`: every `μ` up to the lower end keeps the target, none beyond the upper one does.
pub(crate) fn mu(epsilon: f64, delta: f64) -> Bracket {
    if !(epsilon >= 0.0 && delta > 0.0) {
        return Bracket::new(0.0, if delta <= 0.0 { 0.0 } else { f64::INFINITY });
    }
    if delta >= 1.0 {
        return Bracket::exact(f64::INFINITY);
    }
    let keeps = |mu: f64| delta_at(mu, epsilon).upper() <= delta;
    let breaks = |mu: f64| delta_at(mu, epsilon).lower() > delta;
    if let Some(Found { place, slope }) = mu_guess(epsilon, delta) {
        let width = (delta_at(place, epsilon).relative_width() + f64::EPSILON) / slope;
        let mut step = width + place * f64::EPSILON;
        let (mut lower, mut upper) = (None, None);
        for _ in 0..8 {
            if lower.is_none() && place > step && keeps(place - step) {
                lower = Some(place - step);
            }
            if upper.is_none() && breaks(place + step) {
                upper = Some(place + step);
            }
            if let (Some(lower), Some(upper)) = (lower, upper) {
                return Bracket::new(lower, upper);
            }
            step *= 2.0;
        }
    }
    // Where Newton's rule is of no use, 64 steps of bisection over all floats.
    let upper = smallest_passing_f64(0.0, f64::MAX, breaks);
    let beyond = smallest_passing_f64(0.0, upper, |mu| !keeps(mu));
    Bracket::new(
        // The float before the first that fails was seen to keep the target, or is zero, which keeps every one.
        beyond.next_down().max(0.0),
        if breaks(upper) { upper } else { f64::INFINITY },
    )
}

/// A place, and how fast the logarithm of the profile changes there.
struct Found {
    place: f64,
    slope: f64,
}

/// Newton's rule for `ln δ(ε) = ln δ`; only speed and sharpness rest on it.
fn epsilon_guess(mu: f64, delta: f64) -> Option<Found> {
    let regular = mu > 0.0 && mu <= MU_REGULAR && delta > 0.0 && delta < 0.5;
    if !regular {
        return None;
    }
    let target = libm::log(delta);
    let mut place = mu * (quantile_start(delta, mu) + mu / 2.0);
    place = place.max(mu * mu * 0.25).max(1e-3 * mu);
    for _ in 0..20 {
        let point = Point::new(mu, place);
        if point.a.abs() >= UNDERFLOWS_FROM - 0.5 {
            return None;
        }
        let Evaluated {
            value,
            slope,
            curvature,
            ..
        } = point.evaluate();
        let excess = libm::log(value) - target;
        // Halley's rule, where its correction is moderate.
        let bend = 1.0 - excess * curvature / 2.0;
        let change = excess / (slope * bend.clamp(0.5, 2.0));
        let next = place + change;
        if !next.is_finite() {
            return None;
        }
        if next <= 0.0 {
            place /= 8.0;
            continue;
        }
        place = next;
        // The rule cubes the excess.
        if excess.abs() <= 1e-5 {
            return Some(Found { place, slope });
        }
    }
    None
}

/// Newton's rule for `ln δ(μ) = ln δ` at a fixed epsilon.
fn mu_guess(epsilon: f64, delta: f64) -> Option<Found> {
    let regular = (epsilon == 0.0 || (EPSILON_REGULAR.0..1e12).contains(&epsilon)) && delta < 0.5;
    if !regular {
        return None;
    }
    let target = libm::log(delta);
    // Solves ε/μ - μ/2 = y for the quantile y of δ.
    let y = quantile_start(delta, f64::INFINITY);
    let mut place = 2.0 * epsilon / (y + (y * y + 2.0 * epsilon).sqrt());
    place = place.max(delta);
    for _ in 0..40 {
        let point = Point::new(place, epsilon);
        if point.a.abs() >= UNDERFLOWS_FROM - 0.5 {
            return None;
        }
        let Evaluated {
            value, slope_mu, ..
        } = point.evaluate();
        let change = (target - libm::log(value)) / slope_mu;
        let next = place + change;
        if !next.is_finite() {
            return None;
        }
        if next <= place / 2.0 {
            place /= 2.0;
            continue;
        }
        place = next;
        if change.abs() <= 1e-13 * place {
            return Some(Found {
                place,
                slope: slope_mu,
            });
        }
    }
    None
}

/// About the `a` with `δ = φ(a)(m(a) - m(a + μ))`: the survival function, and a share of it of about `μ/(μ + a + 1)`.
fn quantile_start(delta: f64, mu: f64) -> f64 {
    let tail = |s: f64| {
        let far = (-2.0 * libm::log(2.0 * s)).max(0.0).sqrt();
        far - libm::log1p(0.8 * far) / (far + 1.0)
    };
    let alone = tail(delta);
    if mu == f64::INFINITY {
        alone
    } else {
        tail(delta * (mu + alone + 1.2) / mu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(mu: f64) -> Gaussian {
        Gaussian {
            mu: Bracket::exact(mu),
        }
    }

    fn composed(sigma: f64, count: f64) -> Gaussian {
        Gaussian::compose([(Bracket::exact(sigma), Bracket::exact(count))])
    }

    /// The golden cases pub-001 to 009, 054 (noise from 10 in steps of 0.5, fifty times), 061 and 071.
    #[test]
    fn golden_values_are_met() {
        let check = |found: Bracket, truth: f64| {
            let room = Bracket::new(truth * (1.0 - 1e-13), truth * (1.0 + 1e-13));
            assert!(
                room.lower() <= found.upper() && found.lower() <= room.upper(),
                "{found:?} {truth}"
            );
            assert!(found.relative_width() < 1e-11, "{found:?}");
        };
        for (sigma, count, delta, truth) in [
            (20.0, 512.0, 1e-5, 5.052_787_674_052_982),
            (20.0, 512.0, 1e-12, 8.281_072_547_504_97),
            (1.0, 1.0, 1e-6, 4.886_554_117_462_212),
            (5.0, 1.0, 1e-9, 1.104_040_262_592_085_5),
            (50.0, 10_000.0, 1e-15, 17.479_458_492_636_287),
            (0.5, 4.0, 1e-5, 24.381_610_883_113_673),
            (3.0, 100.0, 1e-30, 43.335_939_688_128_61),
        ] {
            check(composed(sigma, count).epsilon(delta), truth);
            check(curve::epsilon(&mut composed(sigma, count), delta), truth);
        }
        check(composed(20.0, 512.0).delta(1.0), 0.175_130_662_657_952_44);
        check(composed(10.0, 50.0).delta(8.0), 1.773_624_624_380_265_6e-29);
        let many = (0..50).map(|i| 10.0 + 0.5 * f64::from(i));
        let many = Gaussian::compose(many.map(|sigma| (sigma.into(), 1.0.into())));
        check(many.epsilon(1e-5), 1.486_642_553_516_104_3);
        check(Bracket::exact(1.0) / mu(1.0, 1e-5), 3.730_631_634_815_942);
        let group = composed(20.0, 100.0).group(Bracket::exact(3.0));
        check(group.epsilon(1e-5), 7.051_413_223_793_958);
    }

    #[test]
    fn both_inversions_agree_and_undo_the_profile() {
        for size in [1e-8, 1e-3, 0.0101, 0.3, 1.0, 20.0, 1e4] {
            for delta in [1e-300, 1e-100, 1e-17, 1e-9, 1e-3, 0.2, 0.45, 0.9] {
                let (fast, slow) = (
                    exact(size).epsilon(delta),
                    curve::epsilon(&mut exact(size), delta),
                );
                assert!(fast.meet(slow).relative_width() <= fast.relative_width());
                assert!(fast.upper().is_finite(), "{size} {delta}: {fast:?}");
                assert!(exact(size).delta(fast.upper()).lower() <= delta);
                if fast.lower() > 0.0 {
                    assert!(exact(size).delta(fast.lower()).upper() >= delta);
                    assert!(fast.relative_width() < 1e-9, "{size} {delta}: {fast:?}");
                    let back = mu(fast.lower(), delta);
                    assert!(back.lower() <= size && back.relative_width() < 1e-9);
                    assert!(mu(fast.upper(), delta).upper() >= size);
                }
            }
        }
    }

    #[test]
    fn extremes_are_honest() {
        assert_eq!(exact(0.0).epsilon(0.0), Bracket::ZERO);
        assert_eq!(exact(0.0).delta(0.0), Bracket::ZERO);
        assert_eq!(exact(1.0).epsilon(0.0).upper(), f64::INFINITY);
        for size in [5e-324, 1e-200, 1e-100, 1e-8, 1.0, 1e8, 1e100, 1e154, 1e300] {
            let mut last = 1.0;
            for epsilon in [
                0.0,
                5e-324,
                1e-250,
                1e-50,
                1.0,
                1e10,
                1e150,
                1e307,
                f64::MAX,
            ] {
                let found = exact(size).delta(epsilon);
                assert!(
                    found.lower() >= 0.0 && found.upper() <= 1.0,
                    "{size} {epsilon}"
                );
                assert!(
                    found.lower() <= last,
                    "{size} {epsilon}: {found:?} after {last}"
                );
                last = found.upper();
                let negative = exact(size).delta(-epsilon);
                assert!(negative.upper() >= found.lower() && negative.upper() <= 1.0);
            }
        }
        assert!(exact(1e-200).epsilon(1e-210).upper() < 1e-198);
        assert!(exact(1e100).epsilon(1e-300).upper() < 1e201);
        assert!(mu(0.0, 1e-300).lower() > 2.5e-300 && mu(0.0, 1e-300).upper() < 2.6e-300);
        assert!(mu(1e300, 1e-10).upper().is_finite());
        assert_eq!(mu(1.0, 0.0), Bracket::ZERO);
    }
}
