//! # Random allocation
//! **Definition.** A unit takes part in exactly one of `t` steps, which one is uniform and secret (balls in bins); each step
//! releases its sum with Gaussian noise of multiplier `σ`, the standard deviation over the unit's largest L2 contribution.
//! Neighbours differ in one unit (add/remove).
//!
//! **Theorem** [FS25; CGK+24]. `P = (1/t) Σ_i N(e_i, σ²I)` against `Q = N(0, σ²I)` in `t` dimensions dominates a unit
//! that leaves, and the exchanged pair one that joins, also if each step's query is chosen by the answers before.
//! *Proof.* Given the answers before, let `g` be what the unit would contribute to step `i`, as a share of the sensitivity:
//! `|g| <= 1`. From the coordinate `y_i` of the pair, `y_i g` plus noise of covariance `σ²(I - gg')`, plus what the other
//! units contribute, is the answer: its covariance is `σ²I` and its mean has `g` exactly if `i` is the unit's step. So all
//! answers are post-processing of the pair. Units that contribute one orthonormal direction per step attain it. ∎
//! Every mixture of Gaussian pairs is at most a Gaussian pair, so `δ` is at most that of one step, `t = 1`.
//!
//! **Profile.** The likelihood ratio is the mean of `t` independent `W_i = e^(x_i/σ² - 1/(2σ²))`, log-normal under `Q` with mean
//! 1. So with `S = W_1 + … + W_t`, `δ_remove(ε) = E(S - te^ε)_+/t` and `δ_add(ε) = e^ε E(te^-ε - S)_+/t`.
//!
//! **Both bounds** come from `convex_sum.rs`: both payoffs are convex in the sum, so a law of it that is spread onto dots
//! gives an upper bound, and one drawn together into cells a lower bound. Up to [`CLOSED_MAX`] steps one term is kept out of the
//! laws: given the sum `x` of the others, with `κ = k - x > 0`, `E(W-κ)_+ = δ_B(ln κ)` and `E(κ-W)_+ = κδ_B(-ln κ)` with
//! the Gaussian profile `δ_B` of `μ = 1/σ`. Widths are then about 1e-5 of `δ`; beyond, below 1e-3 of `ε`.
//!
//! **Epochs.** Allocations drawn afresh compose as pairs do. The lower law is a pair of its own (with some mass left
//! out), so it gives supporting lines too, and the grids of `pld.rs` take both.

use whit_core::round;

use crate::Bracket;
use crate::convex_sum::Laws;
use crate::curve::{self, Curve};
use crate::gaussian::Gaussian;
use crate::normal::{cdf, survival};
use crate::pld::Part;
use crate::profile::{Ends, Profile, Tails};

/// Beyond this the answer is that for one step, from above.
const EPSILON_MAX: f64 = 600.0;
/// Up to here one term is kept out of the laws.
const CLOSED_MAX: u64 = 3;
/// The tail that is left to bounds, before anything is known of `δ`.
const TAIL: f64 = 1e-11;
/// No answer needs a smaller one.
const TAIL_MIN: f64 = 1e-290;
/// The tail that is left to bounds, as a share of `δ`.
const TAIL_SHARE: f64 = 1e-5;

/// How often the distance between the ends of an epsilon is halved: what is left is below a thousandth of it.
const CUTS: u32 = 12;

/// Which of two neighbours has the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The first: a unit leaves.
    Remove,
    /// The second: a unit joins.
    Add,
}

/// One epoch of random allocation in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    steps: u64,
    sigma: f64,
    direction: Direction,
    /// What one term contributes beyond the laws, if one is kept out of them.
    last: Option<Gaussian>,
    base: Gaussian,
    /// Laws of the sum, and the tail they were made for.
    laws: Laws,
    tail: f64,
}

impl Allocation {
    /// At least one step; a positive noise multiplier.
    pub(crate) fn new(steps: u64, sigma: f64, direction: Direction) -> Self {
        let steps = steps.max(1);
        let base = Gaussian {
            mu: Bracket::exact(1.0) / Bracket::exact(sigma),
        };
        let last = (steps <= CLOSED_MAX).then_some(base);
        Self {
            steps,
            sigma,
            direction,
            last,
            base,
            laws: Laws::new(sigma, steps - u64::from(last.is_some()), TAIL),
            tail: TAIL,
        }
    }

    /// Makes the laws sharp for deltas from `delta` on.
    pub(crate) fn deepen(&mut self, delta: f64) {
        self.deepen_to((delta * TAIL_SHARE).clamp(TAIL_MIN, TAIL));
    }

    fn deepen_to(&mut self, tail: f64) {
        if tail < self.tail && self.steps > 1 {
            self.tail = tail;
            let terms = self.steps - u64::from(self.last.is_some());
            self.laws = Laws::new(self.sigma, terms, tail);
        }
    }

    /// `epochs` of it, each allocated afresh, for the grids.
    pub(crate) fn part(self, epochs: u64) -> Part {
        Part {
            profile: Box::new(self),
            count: epochs,
        }
    }

    /// `δ(ε)` with the laws at hand, for any real `ε`.
    pub(crate) fn profile(&self, epsilon: f64) -> Bracket {
        let one = self.base.delta(epsilon);
        let least = (-Bracket::exact(epsilon).exp_m1()).lower().max(0.0);
        if self.steps == 1 {
            return one;
        }
        if epsilon.is_nan() || epsilon.abs() > EPSILON_MAX {
            return Bracket::new(least, one.upper());
        }
        let upper = self.upper(epsilon).min(one.upper());
        let lower = self.lower(epsilon);
        Bracket::new(lower.max(least).min(upper), upper)
    }

    /// `ε(δ)`.
    pub(crate) fn epsilon(&mut self, delta: f64) -> Bracket {
        self.deepen(delta);
        let found = curve::epsilon(&mut AtHand(self), delta);
        if self.last.is_some() || !found.upper().is_finite() {
            return found;
        }
        // Brackets are wide here and cheap, so each end is moved in while the curve is seen on its side.
        let (mut lower, mut upper) = (found.lower(), found.upper());
        let (mut low, mut high) = (upper, lower);
        for _ in 0..CUTS {
            let next = upper.midpoint(high);
            if self.profile(next).upper() <= delta {
                upper = next;
            } else {
                high = next;
            }
            let next = lower.midpoint(low);
            if self.profile(next).lower() > delta {
                lower = next;
            } else {
                low = next;
            }
        }
        Bracket::new(lower, upper)
    }

    /// `k`, what the sum is compared with, and what `E f` is a share of.
    fn strike(&self, epsilon: f64) -> (Bracket, Bracket) {
        let steps = Bracket::exact(self.steps as f64);
        match self.direction {
            Direction::Remove => (steps * Bracket::exact(epsilon).exp(), steps),
            Direction::Add => {
                let strike = steps * Bracket::exact(-epsilon).exp();
                (strike, strike)
            }
        }
    }

    fn upper(&self, epsilon: f64) -> f64 {
        let law = &self.laws.upper;
        let (strike, share) = self.strike(epsilon);
        let last = self.last.map(|base| Gaussian {
            mu: Bracket::exact(base.mu.upper()),
        });
        let (sum, beyond): (f64, f64) = match self.direction {
            Direction::Remove => {
                let payoff = |place: Bracket| {
                    let rest = round::sub_down(strike.lower(), place.upper());
                    match last {
                        Some(base) if rest > 0.0 => base.delta(round::ln_down(rest)).upper(),
                        Some(_) => round::sub_up(1.0, rest),
                        None => (-rest).max(0.0),
                    }
                };
                let sum = law.atoms().map(|(place, mass)| mass * payoff(place)).sum();
                (sum, law.beyond())
            }
            Direction::Add => {
                let payoff = |place: Bracket| {
                    let rest = round::sub_up(strike.upper(), place.lower());
                    match last {
                        Some(base) if rest > 0.0 => {
                            round::mul_up(rest, base.delta(-round::ln_up(rest)).upper())
                        }
                        _ => rest.max(0.0),
                    }
                };
                let sum = law.atoms().map(|(place, mass)| mass * payoff(place)).sum();
                (sum, round::mul_up(law.lost(), strike.upper()))
            }
        };
        let sum = round::add_up(law.enlarged(sum), beyond);
        (law.unscaled(Bracket::exact(sum)) / share).upper()
    }

    fn lower(&self, epsilon: f64) -> f64 {
        let law = &self.laws.lower;
        let (strike, share) = self.strike(epsilon);
        let last = self.last.map(|base| Gaussian {
            mu: Bracket::exact(base.mu.lower()),
        });
        let payoff = |place: Bracket| match self.direction {
            Direction::Remove => {
                let rest = round::sub_up(strike.upper(), place.lower());
                match last {
                    Some(base) if rest > 0.0 => base.delta(round::ln_up(rest)).lower(),
                    Some(_) => round::sub_down(1.0, rest),
                    None => (-rest).max(0.0),
                }
            }
            Direction::Add => {
                let rest = round::sub_down(strike.lower(), place.upper());
                match last {
                    Some(base) if rest > 0.0 => {
                        round::mul_down(rest, base.delta(-round::ln_down(rest)).lower())
                    }
                    _ => rest.max(0.0),
                }
            }
        };
        let sum: f64 = law.atoms().map(|(place, mass)| mass * payoff(place)).sum();
        (law.unscaled(Bracket::exact(law.reduced(sum))) / share).lower()
    }

    /// Of the lower law, with `S = x + W`: `E[S; S > k]/t` and `k P(S > k)/t` for a unit that leaves, `P(S < k)` and
    /// `E[S; S < k]/k` for one that joins.
    fn lower_tails(&self, epsilon: f64) -> Tails {
        let law = &self.laws.lower;
        let (strike, share) = self.strike(epsilon);
        let mut mass_sum = (0.0, 0.0);
        let mut mean_sum = (0.0, 0.0);
        for (place, mass) in law.atoms() {
            let rest = strike - place;
            // Mass and mean of the last term on the side of the payoff; if there is none, it is zero.
            let (one, none) = (Bracket::exact(1.0), Bracket::ZERO);
            let parts = |rest: f64| match (self.direction, self.last) {
                (Direction::Remove, Some(base)) if rest > 0.0 => {
                    let score = self.score(rest);
                    (survival(score), survival(score - base.mu))
                }
                (Direction::Remove, Some(_)) => (one, one),
                (Direction::Add, Some(base)) if rest > 0.0 => {
                    let score = self.score(rest);
                    (cdf(score), cdf(score - base.mu))
                }
                (Direction::Remove, None) if rest < 0.0 => (one, none),
                (Direction::Add, None) if rest > 0.0 => (one, none),
                _ => (none, none),
            };
            let (least, largest) = match self.direction {
                Direction::Remove => (parts(rest.upper()), parts(rest.lower())),
                Direction::Add => (parts(rest.lower()), parts(rest.upper())),
            };
            let mean = |(mass, mean): (Bracket, Bracket)| place * mass + mean;
            mass_sum.0 += mass * least.0.lower();
            mass_sum.1 += mass * largest.0.upper();
            mean_sum.0 += mass * mean(least).lower();
            mean_sum.1 += mass * mean(largest).upper();
        }
        let close = |(lower, upper): (f64, f64)| {
            law.unscaled(Bracket::new(law.reduced(lower), law.enlarged(upper)))
        };
        let (mass, mean) = (close(mass_sum), close(mean_sum) / share);
        match self.direction {
            Direction::Remove => Tails {
                p: mean,
                q: mass * strike / share,
            },
            Direction::Add => Tails { p: mass, q: mean },
        }
    }

    /// One step is an upper bound, and the root is far below where there are many.
    fn guess_at(&self, delta: f64) -> f64 {
        self.base.epsilon(delta).estimate() / (self.steps as f64).sqrt()
    }

    /// Where the normal variable of a term is when the term is `value`: `σ ln w + 1/(2σ)`.
    fn score(&self, value: f64) -> Bracket {
        Bracket::exact(self.sigma) * Bracket::exact(value).ln() + self.base.mu * Bracket::exact(0.5)
    }
}

impl Curve for Allocation {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let mut found = self.profile(epsilon);
        // The exponent of the tail at least doubles, so that this takes at most five turns.
        while self.steps > 1 && found.upper() * TAIL_SHARE < self.tail && self.tail > TAIL_MIN {
            let tail = (found.upper() * TAIL_SHARE).min(self.tail * self.tail);
            self.deepen_to(tail.max(TAIL_MIN));
            found = found.meet(self.profile(epsilon));
        }
        found
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn guess(&mut self, delta: f64) -> f64 {
        self.guess_at(delta)
    }
}

/// The curve with the laws at hand, for a delta that they were made for: far places need not be sharp.
struct AtHand<'a>(&'a Allocation);

impl Curve for AtHand<'_> {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        self.0.profile(epsilon)
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn guess(&mut self, delta: f64) -> f64 {
        self.0.guess_at(delta)
    }
}

impl Profile for Allocation {
    fn delta_upper(&self, loss: f64) -> f64 {
        self.profile(loss).upper()
    }

    /// Those of the lower law, whose supporting lines are the ones that are drawn.
    fn tails(&self, loss: f64) -> Tails {
        if loss > EPSILON_MAX {
            // As if nothing were there.
            Tails::ZERO
        } else if loss < -EPSILON_MAX {
            // The line 1 - e^ε is below every profile.
            Tails {
                p: Bracket::exact(1.0),
                q: Bracket::exact(loss).exp(),
            }
        } else {
            self.lower_tails(loss)
        }
    }

    fn ends(&self) -> Ends {
        let nowhere = Bracket::exact(f64::INFINITY);
        let least = Bracket::exact(f64::NEG_INFINITY);
        Ends {
            bottom: least,
            top: nowhere,
            atoms: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pld::{Fineness, Pld};

    fn check(steps: u64, sigma: f64, epsilon: f64, expected: [f64; 2], width: f64) {
        for (direction, expected) in [Direction::Remove, Direction::Add]
            .into_iter()
            .zip(expected)
        {
            let mut allocation = Allocation::new(steps, sigma, direction);
            let found = Curve::delta(&mut allocation, epsilon);
            assert!(
                found.holds(expected) && found.relative_width() < width,
                "{steps} {sigma} {epsilon} {direction:?}: {found:?} {expected} {:e}",
                found.relative_width()
            );
        }
    }

    #[test]
    fn golden_values() {
        // Reference cases pub-063 (whose remove value is good to 1e-8) and pub-064: quadrature over all but one term.
        check(2, 1.0, 1.0, [0.059_206_501, 0.050_197_662_368], 1e-5);
        check(3, 1.0, 0.8, [0.055_090_866_935, 0.044_631_759_629], 1e-5);
    }

    #[test]
    fn agrees_with_the_laplace_transform() {
        // E(k-S)_+ = (1/2πi) ∫ e^(sk) E[e^(-sW)]^t/s² ds in mpmath 1.3.0 with 24 digits.
        check(
            10,
            1.0,
            0.5,
            [0.026_850_355_930_672_1, 0.019_064_112_948_394_6],
            2e-3,
        );
        check(
            100,
            1.0,
            0.85,
            [1.072_713_598_950_56e-6, 5.962_257_128_018_6e-15],
            5e-2,
        );
        check(
            30,
            2.0,
            0.25,
            [1.948_660_750_204_3e-4, 1.591_211_473_519_7e-4],
            1e-2,
        );
    }

    #[test]
    fn golden_epsilon() {
        // Reference case pub-074: PLD_accounting 2.0 says [0.8436, 0.8745].
        let found = Allocation::new(100, 1.0, Direction::Remove).epsilon(1e-6);
        assert!(
            found.lower() > 0.8437 && found.upper() < 0.8745,
            "{found:?}"
        );
        assert!(found.relative_width() < 5e-4, "{found:?}");
    }

    #[test]
    fn one_step_is_a_gaussian() {
        for direction in [Direction::Remove, Direction::Add] {
            let found = Allocation::new(1, 0.7, direction).epsilon(1e-9);
            let mu = Bracket::exact(1.0) / Bracket::exact(0.7);
            assert_eq!(found, curve::epsilon(&mut Gaussian { mu }, 1e-9));
        }
    }

    /// Both ends of the mean at once, for a small number of steps, against a plain midpoint rule over two terms.
    #[test]
    fn agrees_with_plain_quadrature() {
        for (sigma, epsilon) in [(0.5, 2.0_f64), (0.5, -1.0), (3.0, 0.1)] {
            let term = |z: f64| libm::exp(z / sigma - 0.5 / (sigma * sigma));
            let (count, step) = (2000, 0.01_f64);
            let nodes: Vec<(f64, f64)> = (0..count)
                .map(|index| {
                    let z = (f64::from(index) - 999.5) * step;
                    (
                        term(z),
                        step * 0.398_942_280_401_432_7 * libm::exp(-z * z / 2.0),
                    )
                })
                .collect();
            let (mut remove, mut add) = (0.0, 0.0);
            let power = epsilon.exp();
            for (x, p) in &nodes {
                for (y, q) in &nodes {
                    let mean = (x + y) / 2.0;
                    remove += p * q * (mean - power).max(0.0);
                    add += p * q * (1.0 - power * mean).max(0.0);
                }
            }
            for (direction, plain) in [(Direction::Remove, remove), (Direction::Add, add)] {
                let found = Allocation::new(2, sigma, direction).profile(epsilon);
                let error = (found.estimate() / plain - 1.0).abs();
                assert!(
                    error < 1e-3,
                    "{sigma} {epsilon} {direction:?}: {found:?} {plain}"
                );
            }
        }
    }

    #[test]
    fn falls_with_epsilon_and_stays_below_one_step() {
        for direction in [Direction::Remove, Direction::Add] {
            let allocation = Allocation::new(50, 0.8, direction);
            let mut last = 1.0;
            for step in -40..=60 {
                let epsilon = f64::from(step) * 0.1;
                let found = allocation.profile(epsilon);
                assert!(found.lower() <= last && found.upper() <= last * (1.0 + 1e-9));
                assert!(found.lower() <= allocation.base.delta(epsilon).upper());
                last = found.upper();
            }
        }
    }

    #[test]
    fn epochs_compose() {
        let allocation = Allocation::new(20, 1.0, Direction::Remove);
        let mut alone = allocation.clone();
        let grid = |epochs| {
            Pld::new(
                vec![allocation.clone().part(epochs)],
                Fineness::Relative(1e-3),
            )
            .epsilon(1e-5)
        };
        let (one, four) = (grid(1), grid(4));
        let exact = alone.epsilon(1e-5);
        assert!(one.lower() <= exact.upper() && exact.lower() <= one.upper());
        assert!(one.relative_width() < 1e-2, "{one:?} {exact:?}");
        assert!(four.lower() > 1.3 * one.upper() && four.upper() < 4.0 * one.lower());
        assert!(four.relative_width() < 2e-2, "{four:?}");
    }

    #[test]
    fn extremes() {
        for steps in [2, 5, 1 << 53] {
            for sigma in [1e-3, 0.2, 30.0, 1e6] {
                for direction in [Direction::Remove, Direction::Add] {
                    let allocation = Allocation::new(steps, sigma, direction);
                    for epsilon in [-1e9, -2.0, 0.0, 1e-12, 3.0, 590.0, 1e9] {
                        let found = allocation.profile(epsilon);
                        assert!(found.lower() >= 0.0 && found.upper() <= 1.0, "{found:?}");
                    }
                }
            }
        }
        let mut far = Allocation::new(4, 1.0, Direction::Remove);
        let found = far.epsilon(1e-250);
        assert!(found.relative_width() < 1e-2, "{found:?}");
    }
}
