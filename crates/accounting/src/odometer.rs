//! # Privacy odometers
//! **Definition.** Mechanisms are chosen one by one, each with its parameters, by all answers so far, without a cap.
//! An odometer shows after each one a number `e_n`, by the losses alone, such that for neighbours, in each direction,
//! `Pr_P[there is an n with L_n > e_n] <= δ`, where `L_n` is the privacy loss of the first `n` answers \[RRUV16\].
//! One may stop at any time, for any reason seen in the answers, and the number shown then holds.
//!
//! **Pure.** `e_n = Σ_{i<=n} ε_i` with `δ = 0`: no factor of the likelihood ratio exceeds `e^(ε_i)`.
//!
//! **Rényi.** For one order `α`, `e_n = Σ_{i<=n} ρ_i(α) + ln(1/δ)/(α-1)`, where `ρ_i(α)` bounds the divergence of the
//! `i`-th mechanism.
//! *Proof.* `X_n = exp((α-1)(L_n - Σ_{i<=n} ρ_i))` is a supermartingale under `P`: given the past, `ρ_n` is known and
//! `E_P[e^((α-1)(L_n - L_(n-1)))] = e^((α-1) D_α) <= e^((α-1)ρ_n)`. It starts at one, so by Ville's inequality it
//! ever reaches `1/δ` with probability at most `δ`. (The supermartingale is that of [FZ21, Thm 3.1]; for zCDP the
//! line is one of those in \[WRRW23\].)
//!
//! **Several orders.** With `k` orders that were fixed beforehand and `δ/k` for each, all lines hold together with
//! probability `1-δ`, and so does the lowest. Each order is tight at about one amount of loss; a ladder of orders is
//! never far from the best, and no odometer can be as good as a filter at all times \[RRUV16\].
//!
//! A mechanism with a delta of its own has infinite divergences, and the sum of deltas is not bounded beforehand:
//! refused.
//!
//! **How the error is bounded.** Sums and lines are rounded up.

use whit_core::{Delta, Epsilon, Order, Rho, round};

use crate::rdp::Divergence;
use crate::{Bracket, Error, Result};

/// The sum of pure losses.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PureOdometer {
    sum: f64,
}

impl PureOdometer {
    /// Nothing lost yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// After a mechanism that is `epsilon`-DP.
    pub fn spend(&mut self, epsilon: Epsilon) {
        self.sum = round::add_up(self.sum, epsilon.value());
    }

    /// What the loss is at most, infinite beyond the floats.
    pub fn epsilon_upper(&self) -> f64 {
        self.sum
    }
}

/// Lines at several orders.
#[derive(Clone, Debug, PartialEq)]
pub struct RenyiOdometer {
    delta: Delta,
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    order: Order,
    /// `ln(k/δ)/(α-1)`, rounded up.
    start: f64,
    /// `Σ ρ_i(α)`, rounded up.
    sum: f64,
}

impl RenyiOdometer {
    /// An odometer that errs with probability at most `delta`, which is positive, by these orders.
    pub fn new(delta: Delta, orders: impl IntoIterator<Item = Order>) -> Result<Self> {
        let orders: Vec<Order> = orders.into_iter().collect();
        if delta == Delta::ZERO {
            return Err(Error::ZeroTarget { what: "delta" });
        }
        let count = Bracket::exact(orders.len() as f64);
        let wager = count.ln() - Bracket::exact(delta.value()).ln();
        let lines = orders.into_iter().map(|order| {
            let offset = Bracket::exact(order.value()) - 1.0.into();
            Line {
                order,
                start: (wager / offset).upper(),
                sum: 0.0,
            }
        });
        Ok(Self {
            delta,
            lines: lines.collect(),
        })
    }

    /// Orders `1 + 2^j` from `j = -3` to `10`: tight from concentrated losses of about `1e-5` to `1e3` at usual deltas.
    pub fn ladder(delta: Delta) -> Result<Self> {
        let orders = (-3..=10).map(|j| Order::new(1.0 + 2.0_f64.powi(j)));
        Self::new(delta, orders.collect::<std::result::Result<Vec<_>, _>>()?)
    }

    /// The probability with which it may ever show too little.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// After a mechanism that is `rho`-zCDP.
    pub fn spend_concentrated(&mut self, rho: Rho) {
        self.spend(|order| round::mul_up(order.value(), rho.value()));
    }

    /// After a mechanism that is `epsilon`-DP.
    pub fn spend_pure(&mut self, epsilon: Epsilon) {
        let pure = Divergence::Pure {
            epsilon: Bracket::exact(epsilon.value()),
        };
        self.spend(|order| pure.at(order.value()).upper());
    }

    /// After a mechanism whose divergences are at most what is given, order by order.
    pub(crate) fn spend(&mut self, divergence: impl Fn(Order) -> f64) {
        for line in &mut self.lines {
            // What is no number is no bound.
            let added = divergence(line.order);
            let added = if added >= 0.0 { added } else { f64::INFINITY };
            line.sum = round::add_up(line.sum, added);
        }
    }

    /// What the loss has been at most at this time, up to `delta` over all times.
    pub fn epsilon_upper(&self) -> f64 {
        self.lines
            .iter()
            .map(|line| {
                if line.sum == 0.0 {
                    // Divergences of zero are equal distributions.
                    0.0
                } else {
                    round::add_up(line.sum, line.start)
                }
            })
            .fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("finite")
    }

    fn rho(value: f64) -> Rho {
        Rho::new(value).expect("finite")
    }

    fn delta(value: f64) -> Delta {
        Delta::new(value).expect("below one")
    }

    #[test]
    fn pure_losses_add_up() {
        let mut odometer = PureOdometer::new();
        assert_eq!(odometer.epsilon_upper(), 0.0);
        for _ in 0..10 {
            odometer.spend(epsilon(0.1));
        }
        assert!(odometer.epsilon_upper() >= 1.0 && odometer.epsilon_upper() < 1.0 + 1e-12);
        odometer.spend(epsilon(f64::MAX));
        odometer.spend(epsilon(f64::MAX));
        assert_eq!(odometer.epsilon_upper(), f64::INFINITY);
    }

    #[test]
    fn one_line_is_the_formula() {
        let order = Order::new(11.0).expect("above one");
        let mut odometer = RenyiOdometer::new(delta(1e-6), [order]).expect("positive");
        odometer.spend_concentrated(rho(0.02));
        odometer.spend_concentrated(rho(0.03));
        let truth = 11.0 * 0.05 + (1e6_f64).ln() / 10.0;
        assert!((odometer.epsilon_upper() / truth - 1.0).abs() < 1e-12);
        assert!(odometer.epsilon_upper() >= truth * (1.0 - 1e-15));
    }

    /// Within a small factor of the filter that knew the loss beforehand, `ρ + 2√(ρ ln(1/δ))`.
    #[test]
    fn the_ladder_is_never_far_from_the_filter() {
        for total in [1e-4, 0.01, 0.3, 5.0, 100.0] {
            let mut odometer = RenyiOdometer::ladder(delta(1e-6)).expect("positive");
            for _ in 0..10 {
                odometer.spend_concentrated(rho(total / 10.0));
            }
            let filter = total + 2.0 * (total * 1e6_f64.ln()).sqrt();
            let found = odometer.epsilon_upper();
            assert!(
                found >= filter && found < 1.35 * filter,
                "{total}: {found} {filter}"
            );
        }
    }

    /// Ten questions, each louder if the last answer spoke for `P`: the probability under `P` with which the loss
    /// ever exceeds what is shown, by an odometer or by the sum of the mean losses.
    fn ever_exceeded(
        odometer: &RenyiOdometer,
        rounds_left: u32,
        (probability, sum, mean): (f64, f64, f64),
        (loud, naive): (bool, bool),
    ) -> f64 {
        let shown = if naive {
            mean
        } else {
            odometer.epsilon_upper()
        };
        if sum > shown {
            return probability;
        }
        if rounds_left == 0 {
            return 0.0;
        }
        let loss: f64 = if loud { 0.9 } else { 0.3 };
        let keep = loss.exp() / (1.0 + loss.exp());
        let mut next = odometer.clone();
        next.spend_pure(epsilon(loss));
        let mean = mean + loss * (loss / 2.0).tanh();
        [(true, keep, loss), (false, 1.0 - keep, -loss)]
            .into_iter()
            .map(|(up, chance, gain)| {
                let state = (probability * chance, sum + gain, mean);
                ever_exceeded(&next, rounds_left - 1, state, (up, naive))
            })
            .sum()
    }

    /// All transcripts of a choosing adversary. The twin that shows the mean is convicted.
    #[test]
    fn holds_at_all_times_on_every_transcript() {
        for target in [0.3, 0.1, 0.01] {
            let odometer = RenyiOdometer::ladder(delta(target)).expect("positive");
            let ours = ever_exceeded(&odometer, 10, (1.0, 0.0, 0.0), (false, false));
            assert!(ours <= target, "{target}: {ours}");
            let naive = ever_exceeded(&odometer, 10, (1.0, 0.0, 0.0), (false, true));
            assert!(naive > target, "{target}: {naive}");
        }
    }

    #[test]
    fn refuses_and_extremes() {
        assert!(RenyiOdometer::ladder(Delta::ZERO).is_err());
        let mut odometer = RenyiOdometer::ladder(delta(5e-324)).expect("positive");
        assert_eq!(odometer.epsilon_upper(), 0.0);
        odometer.spend_concentrated(rho(1e-300));
        assert!(odometer.epsilon_upper() > 0.0 && odometer.epsilon_upper() < 1.0);
        odometer.spend_pure(epsilon(f64::MAX));
        assert!(odometer.epsilon_upper() >= f64::MAX);
        let mut unknown = RenyiOdometer::ladder(delta(1e-6)).expect("positive");
        unknown.spend(|_| f64::NAN);
        assert_eq!(unknown.epsilon_upper(), f64::INFINITY);
        let none = RenyiOdometer::new(delta(0.5), []).expect("positive");
        assert_eq!(none.epsilon_upper(), f64::INFINITY);
    }
}
