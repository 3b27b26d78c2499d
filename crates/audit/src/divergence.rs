//! How far apart two enumerated neighbours are.
//!
//! **Definition.** The hockey-stick divergence at `ε` is the smallest `δ` for which one direction of `(ε, δ)`-DP holds:
//!   `δ(ε) = sup_S P(S) - e^ε Q(S) = Σ_y max(0, P(y) - e^ε Q(y))` \[BBG18\]. Pure DP needs `ε >= sup_S ln P(S)/Q(S)`.
//! **With unresolved mass.** Write `p`, `q` for the resolved masses and `u`, `v` for the unresolved ones. For every
//!   `S`, `p(S) <= P(S) <= p(S) + u` and `q(S) <= Q(S) <= q(S) + v`. Hence, with `h = Σ_y max(0, p(y) - e^ε q(y))`,
//!   `h - e^ε v <= δ(ε) <= h + u`, and `ε >= max_S ln p(S)/(q(S) + v)`.
//! **Best set.** If `λ` is the largest value of `p(S)/(q(S) + v)`, then `p(S) - λ q(S)` is largest, namely `λv`, for
//!   `S = { y : p(y) > λ q(y) }` \[Din67\]. So it suffices to sort by `p/q` and to try every beginning of that order.
//! **Rounding.** Masses are integers and sums are exact; `e^ε` and `ln` are rounded outward once.

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::{Epsilon, Ratio, round};

use crate::Enumeration;

impl<T: Ord> Enumeration<T> {
    /// At least the `δ` with which `self` and `other` are `(epsilon, δ)`-close in this direction. A mechanism is
    /// private if both directions are small.
    pub fn hockey_stick_upper(&self, other: &Self, epsilon: Epsilon) -> f64 {
        // The sum falls as e^ε grows. Beyond the floats, the largest float is below e^ε.
        let factor = round::exp_down(epsilon.value()).min(f64::MAX);
        let excess = self.excess(other, factor) + self.fraction(self.unresolved());
        nonnegative(excess).to_f64_up().min(1.0)
    }

    /// At most the `δ` with which `self` and `other` are `(epsilon, δ)`-close in this direction: a claim of less is
    /// refuted.
    pub fn hockey_stick_lower(&self, other: &Self, epsilon: Epsilon) -> f64 {
        let factor = round::exp_up(epsilon.value());
        if factor == f64::INFINITY {
            // No float is above e^ε. Zero is always a lower bound.
            return 0.0;
        }
        let hidden = exact(factor) * other.fraction(other.unresolved());
        nonnegative(self.excess(other, factor) - hidden).to_f64_down()
    }

    /// At most the `ε` of pure differential privacy that could hold between these two neighbours, in both directions:
    /// a claim of less is refuted. Infinite if something that one of them does is impossible for the other.
    pub fn max_log_ratio_lower(&self, other: &Self) -> f64 {
        self.log_ratio_lower(other)
            .max(other.log_ratio_lower(self))
            .max(0.0)
    }

    /// `Σ_y max(0, p(y) - factor · q(y))`.
    fn excess(&self, other: &Self, factor: f64) -> RBig {
        let factor = exact(factor);
        let terms = self.masses().iter().map(|(output, &mass)| {
            let allowed = &factor * other.fraction(other.mass(output));
            self.fraction(mass) - allowed
        });
        terms
            .filter(|term| *term > RBig::ZERO)
            .fold(RBig::ZERO, |sum, term| sum + term)
    }

    fn log_ratio_lower(&self, other: &Self) -> f64 {
        let pairs = self
            .masses()
            .iter()
            .map(|(output, &mass)| (u128::from(mass), u128::from(other.mass(output))));
        let mut pairs: Vec<(u128, u128)> = pairs.collect();
        // Largest p/q first. Masses are at most 2^62, so products do not overflow.
        pairs.sort_by(|(p, q), (p_next, q_next)| (p_next * q).cmp(&(p * q_next)));
        let (mut p_sum, mut q_sum) = (0, u128::from(other.unresolved()));
        let mut best = (0, 1);
        for (p, q) in pairs {
            p_sum += p;
            q_sum += q;
            if p_sum * best.1 > best.0 * q_sum {
                best = (p_sum, q_sum);
            }
        }
        let (p, q) = best;
        if q == 0 {
            return f64::INFINITY;
        }
        let ratio = RBig::from_parts(
            IBig::from(p) << other.bits() as usize,
            UBig::from(q) << self.bits() as usize,
        );
        round::ln_down(nonnegative(ratio).to_f64_down())
    }

    /// A mass as a probability.
    fn fraction(&self, mass: u64) -> RBig {
        RBig::from_parts(IBig::from(mass), UBig::ONE << self.bits() as usize)
    }
}

fn exact(value: f64) -> RBig {
    RBig::try_from(value).expect("the callers give finite floats")
}

/// The positive part.
fn nonnegative(value: RBig) -> Ratio {
    Ratio::from_rbig(value).unwrap_or_else(Ratio::zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enumerate;
    use whit_core::Bits;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("not negative")
    }

    /// Tells the truth with probability 3/4.
    fn response(truth: bool) -> Enumeration<bool> {
        enumerate::<2, bool>(8, move |tape| truth ^ (tape.word() == 0))
    }

    /// `x` plus a geometric number of tails.
    fn geometric_from(x: u64, bits_max: u32) -> Enumeration<u64> {
        enumerate::<1, u64>(bits_max, move |tape| {
            let mut sum = x;
            while tape.word() == 0 {
                sum += 1;
            }
            sum
        })
    }

    fn check(value: f64, expected: f64, side: std::cmp::Ordering) {
        assert!((value - expected).abs() < 1e-14, "{expected}, got {value}");
        assert_ne!(
            value.total_cmp(&expected),
            side,
            "{value} is on the wrong side of {expected}"
        );
    }

    #[test]
    fn randomized_response_has_its_closed_form() {
        let (yes, no) = (response(true), response(false));
        check(
            yes.max_log_ratio_lower(&no),
            3_f64.ln(),
            std::cmp::Ordering::Greater,
        );
        for value in [0.0_f64, 0.5, 1.0] {
            let delta = 0.75 - value.exp() * 0.25;
            assert!((yes.hockey_stick_lower(&no, epsilon(value)) - delta).abs() < 1e-14);
            assert!((yes.hockey_stick_upper(&no, epsilon(value)) - delta).abs() < 1e-14);
            assert!(
                yes.hockey_stick_lower(&no, epsilon(value))
                    <= yes.hockey_stick_upper(&no, epsilon(value))
            );
        }
        assert_eq!(
            yes.hockey_stick_upper(&no, epsilon(1.1)),
            0.0,
            "ln 3 is below 1.1"
        );
        assert_eq!(yes.hockey_stick_upper(&no, epsilon(1e6)), 0.0);
        assert_eq!(yes.hockey_stick_lower(&no, epsilon(1e6)), 0.0);
    }

    #[test]
    fn what_only_one_neighbour_can_say_is_an_infinite_loss() {
        let (tells, silent) = (
            enumerate::<1, u64>(4, |tape| tape.word()),
            enumerate::<1, u64>(4, |_| 0),
        );
        assert_eq!(tells.max_log_ratio_lower(&silent), f64::INFINITY);
        assert_eq!(
            silent.max_log_ratio_lower(&tells),
            f64::INFINITY,
            "both directions are looked at"
        );
        assert_eq!(tells.hockey_stick_lower(&silent, epsilon(700.0)), 0.5);
        assert_eq!(silent.hockey_stick_lower(&tells, epsilon(1.0)), 0.0);
    }

    #[test]
    fn unresolved_mass_widens_the_bounds() {
        // One-sided geometric noise: only the left neighbour can output x, which it does half of the time.
        let (one, other) = (geometric_from(0, 10), geometric_from(1, 10));
        let (lower, upper) = (
            one.hockey_stick_lower(&other, epsilon(1.0)),
            one.hockey_stick_upper(&other, epsilon(1.0)),
        );
        assert!(
            lower < 0.5 && 0.5 < upper && upper - lower < 5.0 / 1024.0,
            "{lower} {upper}"
        );
        // In the other direction e^ε = 2 suffices. What is unresolved leaves 2^-10 of doubt, and so does the output
        // 10, which at this depth only the other neighbour reaches.
        let upper = other.hockey_stick_upper(&one, epsilon(1.0));
        assert_eq!(upper, 2.0 / 1024.0);
        // An infinite ratio cannot be certified while mass is unresolved; a large one can.
        let lower = one.max_log_ratio_lower(&other);
        assert!(lower > 6.0 && lower < 1024_f64.ln(), "{lower}");
    }

    #[test]
    fn the_best_set_may_need_several_outputs() {
        // The first neighbour says 0 or 1 with 1/2 each, the second with 1/8 each and 2 otherwise; 1/16 is unresolved.
        let one = enumerate::<4, u64>(4, |tape| tape.word() % 2);
        let other = enumerate::<4, u64>(4, |tape| match tape.word() {
            word @ 0..4 => word % 2,
            4 => tape.word(),
            _ => 2,
        });
        assert_eq!(other.unresolved(), 1);
        // One output alone is worth (1/2) / (1/8 + 1/16) = 8/3, both together 1 / (1/4 + 1/16) = 16/5.
        check(
            one.log_ratio_lower(&other),
            3.2_f64.ln(),
            std::cmp::Ordering::Greater,
        );
    }

    #[test]
    fn depths_need_not_agree() {
        let shallow = enumerate::<2, bool>(2, |tape| tape.word() != 0);
        let deep = response(false);
        check(
            shallow.max_log_ratio_lower(&deep),
            3_f64.ln(),
            std::cmp::Ordering::Greater,
        );
        assert_eq!(shallow.max_log_ratio_lower(&response(true)), 0.0);
    }
}
