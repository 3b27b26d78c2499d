//! Testers of divergences: hockey-stick at an epsilon, Rényi at an order.
//!
//! **Hockey-stick.** `δ(ε) >= P(S) - e^ε Q(S)` for every event, so bounds on one event bound the delta of a claim from below.
//! **Rényi, by an event.** Which event happened is a function of the output, and a function brings no two worlds further apart: `D_α` of two
//!   coins bounds `D_α` of the worlds. It grows as the coins move apart, so the bounds nearest to each other are taken.
//! **Rényi, by a witness.** For every function `g`, by Hölder's inequality with exponents `α` and `α/(α-1)`,
//!   `E_P[e^{(α-1)g}] = E_Q[(P/Q) e^{(α-1)g}] <= E_Q[(P/Q)^α]^{1/α} · E_Q[e^{αg}]^{(α-1)/α}`, hence
//!   `D_α(P‖Q) >= α/(α-1) · ln E_P[e^{(α-1)g}] - ln E_Q[e^{αg}]`, with equality for `g = ln(P/Q)` \[BDK+21\]. The witness is chosen on shown
//!   outputs and cut to `[-bound, bound]`; the two means, of bounded numbers, get empirical Bernstein bounds \[MP09, Thm 4\], which assume nothing.

use whit_core::{Epsilon, Order, round};

use crate::bound::ProbabilityBounds;
use crate::group::{Group, allowed_up};
use crate::world::{Counts, Held, World};
use crate::{Alpha, Error, Result};
use whit_core::Delta;

/// At most the true delta at an epsilon, with known confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct DeltaBound {
    /// The bound.
    pub delta_lower: f64,
    /// How often a bound made this way holds, at least.
    pub confidence: f64,
}

/// At most the true Rényi divergence at an order, with known confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct RenyiBound {
    /// The bound. Zero if nothing was found.
    pub divergence_lower: f64,
    /// Of this order.
    pub order: Order,
    /// How often a bound made this way holds, at least.
    pub confidence: f64,
}

impl RenyiBound {
    /// The least `ρ` of zero-concentrated DP that could hold: `D_α <= ρα` at every order.
    pub fn rho_lower(&self) -> f64 {
        round::div_down(self.divergence_lower, self.order.value())
    }
}

impl Counts {
    /// The largest `δ` that these counts refute at `epsilon`, between neighbours.
    pub fn delta_lower(&self, epsilon: Epsilon, alpha: Alpha) -> Result<DeltaBound> {
        let half = self.half_share(alpha)?;
        let mut best: f64 = 0.0;
        for tally in self.tallies() {
            let bounds = ProbabilityBounds::new(tally, half)?;
            for ProbabilityBounds { likely, unlikely } in [bounds, bounds.complement()] {
                let covered = allowed_up(unlikely, epsilon.value(), Delta::ZERO, Group::ONE);
                best = best.max(round::sub_down(likely, covered));
            }
        }
        Ok(DeltaBound {
            delta_lower: best,
            confidence: alpha.confidence(),
        })
    }

    /// The largest Rényi divergence that these counts show, in whichever direction shows more.
    pub fn renyi_lower(&self, order: Order, alpha: Alpha) -> Result<RenyiBound> {
        let half = self.half_share(alpha)?;
        let mut best: f64 = 0.0;
        for tally in self.tallies() {
            let ProbabilityBounds { likely, unlikely } = ProbabilityBounds::new(tally, half)?;
            if likely > unlikely {
                let forth = coins_divergence(likely, unlikely, order.value());
                let back = coins_divergence(unlikely, likely, order.value());
                best = best.max(forth).max(back);
            }
        }
        Ok(RenyiBound {
            divergence_lower: best,
            order,
            confidence: alpha.confidence(),
        })
    }
}

/// `D_α` between coins with these probabilities of heads, a little too small.
fn coins_divergence(p: f64, q: f64, order: f64) -> f64 {
    let term = |p: f64, q: f64| {
        if p == 0.0 {
            0.0
        } else {
            // p^α q^(1-α), in logarithms since either power may overflow.
            libm::exp(order * libm::log(p) - (order - 1.0) * libm::log(q))
        }
    };
    let sum = term(p, q) + term(1.0 - p, 1.0 - q);
    if !sum.is_finite() {
        // Some order is too large for floats; the max-divergence is not, and D_α with α at least 2 is near it. Say less.
        return 0.0;
    }
    // Logarithms of probabilities are below 750 in size, so that the exponents err by less than 2^-40 of the order; near order one
    // the division makes the error of the logarithm as much larger.
    let slack = 1e-11 * (1.0 + order) / (order - 1.0).min(1.0);
    (libm::log(sum) / (order - 1.0) - slack).max(0.0)
}

/// A function of the output that is large where the first world is likelier. Cut to `[-bound, bound]`.
pub struct Witness<T> {
    bound: f64,
    value: Box<dyn Fn(&T) -> f64>,
}

impl<T> std::fmt::Debug for Witness<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Witness(within {})", self.bound)
    }
}

impl<T> Witness<T> {
    /// The best one is the logarithm of the likelihood ratio, as well as it is known.
    pub fn new(bound: f64, value: impl Fn(&T) -> f64 + 'static) -> Result<Self> {
        if !(bound > 0.0 && bound <= 50.0) {
            return Err(Error::OutOfDomain {
                what: "bound of a witness",
                given: bound,
                domain: "a number above 0 and up to 50",
            });
        }
        Ok(Self {
            bound,
            value: Box::new(value),
        })
    }

    /// What is no number says nothing.
    fn of(&self, output: &T) -> f64 {
        let value = (self.value)(output);
        if value.is_nan() {
            0.0
        } else {
            value.clamp(-self.bound, self.bound)
        }
    }
}

impl<T> Held<T> {
    /// The Rényi divergence of world `from` from the other, bounded from below by a witness of that direction.
    pub fn renyi_lower(
        self,
        from: World,
        order: Order,
        witness: &Witness<T>,
        alpha: Alpha,
    ) -> Result<RenyiBound> {
        let (one, other) = self.into_worlds();
        let (numerator, denominator) = match from {
            World::One => (one, other),
            World::Other => (other, one),
        };
        let half = alpha.split(2)?;
        let order_value = order.value();
        let mean = |outputs: &[T], power: f64| {
            let values = outputs
                .iter()
                .map(|output| libm::exp(power * witness.of(output)));
            let edge = power.abs() * witness.bound;
            Mean::new(values, libm::exp(-edge), libm::exp(edge), half)
        };
        let above = mean(&numerator, order_value - 1.0).lower;
        let below = mean(&denominator, order_value).upper;
        let bound = if above > 0.0 && below.is_finite() {
            order_value / (order_value - 1.0) * libm::log(above) - libm::log(below) - 1e-9
        } else {
            0.0
        };
        Ok(RenyiBound {
            divergence_lower: bound.max(0.0),
            order,
            confidence: alpha.confidence(),
        })
    }
}

/// Bounds on a mean by the empirical Bernstein inequality. Sums of up to `2^32` positive numbers err by far less than `1e-9` of
/// themselves when they are added pairwise by blocks, and that much is left on either side.
struct Mean {
    lower: f64,
    upper: f64,
}

impl Mean {
    /// Of numbers in `[low, high]`; each bound holds except with probability `alpha`.
    fn new(values: impl Iterator<Item = f64>, low: f64, high: f64, alpha: Alpha) -> Self {
        // Welford's recursion: the variance loses nothing to cancellation.
        let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for value in values {
            n += 1.0;
            let step: f64 = value - mean;
            mean += step / n;
            squares += step * (value - mean);
        }
        if n < 2.0 {
            return Self {
                lower: low,
                upper: high,
            };
        }
        let log = libm::log(2.0 / alpha.value());
        let variance = squares / (n - 1.0);
        let width =
            (2.0 * variance * log / n).sqrt() + 7.0 * (high - low) * log / (3.0 * (n - 1.0));
        let width = width * (1.0 + 1e-9) + 1e-9 * mean.abs();
        Self {
            lower: (mean - width).max(low),
            upper: (mean + width).min(high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, normal, respond};
    use crate::world::Outputs;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn order(value: f64) -> Order {
        Order::new(value).expect("above one")
    }

    /// Randomized response: `δ(ε) = p - e^ε (1-p)`.
    #[test]
    fn hockey_stick_is_found_and_not_exaggerated() {
        let p = 1.0 / (1.0 + (-2.0_f64).exp());
        let expected = p - 1_f64.exp() * (1.0 - p);
        let at = Epsilon::new(1.0).expect("positive");
        let bound = |trials, level, seed| {
            respond(2.0, trials, seed)
                .delta_lower(at, alpha(level))
                .expect("valid")
                .delta_lower
        };
        let found = bound(100_000, 1e-6, 5);
        assert!(
            found < expected && found > expected - 0.02,
            "{found} {expected}"
        );
        assert_false_alarms(0.05, |seed| bound(300, 0.05, seed) > expected);
    }

    #[test]
    fn renyi_of_a_coin_is_found_and_not_exaggerated() {
        // Randomized response has D_α = ln(p^α (1-p)^(1-α) + (1-p)^α p^(1-α))/(α-1).
        let (p, a): (f64, f64) = (1.0 / (1.0 + (-1.0_f64).exp()), 3.0);
        let expected = (p.powf(a) * (1.0 - p).powf(1.0 - a) + (1.0 - p).powf(a) * p.powf(1.0 - a))
            .ln()
            / (a - 1.0);
        let bound = |trials, level, seed| {
            respond(1.0, trials, seed)
                .renyi_lower(order(a), alpha(level))
                .expect("valid")
                .divergence_lower
        };
        let found = bound(100_000, 1e-6, 1);
        assert!(
            found < expected && found > 0.9 * expected,
            "{found} {expected}"
        );
        assert_false_alarms(0.05, |seed| bound(300, 0.05, seed) > expected);
    }

    /// Gaussian noise: `D_α = αμ²/2`, and the witness is linear.
    fn gaussian_witness(mu: f64, trials: usize, level: f64, seed: u64) -> RenyiBound {
        let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
        let witness = Witness::new(2.0, |y: &f64| *y - 0.5).expect("in range");
        Outputs::run(trials, || one() + mu, &mut other)
            .hold()
            .renyi_lower(World::One, order(2.0), &witness, alpha(level))
            .expect("valid")
    }

    #[test]
    fn a_witness_convicts_and_does_not_exaggerate() {
        let bound = gaussian_witness(1.0, 200_000, 1e-6, 3);
        assert!(
            bound.divergence_lower < 1.0 && bound.divergence_lower > 0.5,
            "{bound:?}"
        );
        // Noise that is half of what rho = 1/8 needs.
        assert!(bound.rho_lower() > 0.125, "{bound:?}");
        assert_false_alarms(0.05, |seed| {
            gaussian_witness(0.5, 500, 0.05, seed).divergence_lower > 0.25
        });
    }

    /// The worst case for a bound on means: numbers that are seldom large.
    #[test]
    fn means_are_covered() {
        for (p, n) in [(0.01, 100), (0.5, 50), (0.001, 2000)] {
            assert_false_alarms(0.05, |seed| {
                let mut flip = crate::simulate::coin(seed, p);
                let mean = Mean::new((0..n).map(|_| f64::from(flip())), 0.0, 1.0, alpha(0.05));
                mean.upper < p
            });
            assert_false_alarms(0.05, |seed| {
                let mut flip = crate::simulate::coin(seed, p);
                let mean = Mean::new((0..n).map(|_| f64::from(flip())), 0.0, 1.0, alpha(0.05));
                mean.lower > p
            });
        }
    }

    #[test]
    fn edges() {
        assert_eq!(coins_divergence(0.5, 0.5, 7.0), 0.0);
        assert_eq!(coins_divergence(0.5, 0.0, 7.0), 0.0);
        assert!(Witness::new(0.0, |_: &f64| 0.0).is_err());
        let none = gaussian_witness(1.0, 1, 0.05, 1);
        assert_eq!(none.divergence_lower, 0.0);
    }
}
