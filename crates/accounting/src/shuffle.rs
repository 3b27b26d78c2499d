//! # Shuffled local reports
//! **Definition.** Each of `n` units sends one report `R(x)` through a randomizer that is `ε₀`-DP for every pair of inputs;
//! only the multiset of reports is seen. Neighbours differ in one unit's input (replace-one).
//!
//! **Theorem** [FMT21, Sec. 3]. With `C ~ Bin(n-1, e^-ε₀)`, `A ~ Bin(C, ½)` and `D ~ Bern(e^ε₀/(1+e^ε₀))`, the
//! pair `(A+D, C-A+1-D)` against `(A+1-D, C-A+D)` dominates. It is its own mirror image, so one direction is both.
//! *Proof.* Let `x₀`, `x₁` be the inputs of the unit in question, and `w = e^ε₀/(1+e^ε₀)`. Since `R(x₀) <= e^ε₀ R(x₁)` and
//! back, `Q₀ = (e^ε₀ R(x₀) - R(x₁))/(e^ε₀ - 1)` and likewise `Q₁` are distributions, with `R(x₀) = wQ₀ + (1-w)Q₁` and
//! `R(x₁) = (1-w)Q₀ + wQ₁`. Every other input has `R(x) >= e^-ε₀ max(R(x₀), R(x₁)) >= e^-ε₀ (R(x₀)+R(x₁))/2 =
//! e^-ε₀ (Q₀+Q₁)/2`: with probability `e^-ε₀` its report is a clone, drawn from `Q₀` or `Q₁` by a fair coin, and otherwise it
//! comes from what is left of `R(x)`. The pair counts the draws from `Q₀` and from `Q₁`. From the counts the reports are
//! simulated: their sum less one is `C`; choose which `C` of the others are clones uniformly, draw the rest from what is left
//! of theirs, and shuffle. So the mechanism is post-processing of the pair. ∎
//! A larger clone probability, `2/(e^ε₀+1)` \[FMT23\], rests on another decomposition and is not used.
//!
//! **What the brackets hold** is the profile of this pair. Its upper end bounds the mechanism; for the mechanism itself the
//! lower end says nothing, since no randomizer need be as bad as the pair.
//!
//! **Profile.** The sum reveals `C = c` on both sides, so `δ(ε) = Σ_c Pr[C=c] δ_c(ε)`. Given `c`, let `b_c` be the law of `A`,
//! `S_c(k) = Pr[A >= k]`. The first count is `x` with `w b_c(x-1) + (1-w) b_c(x)` against `(1-w) b_c(x-1) + w b_c(x)`, whose
//! ratio grows with `b_c(x-1)/b_c(x) = x/(c+1-x)`; it exceeds `e^ε` for `x > (c+1)t`, `t = ½(1 + tanh(ε/2)/tanh(ε₀/2))`. With
//! `k = ⌊(c+1)t⌋+1`, `β = w - e^ε(1-w)`,
//! `δ_c(ε) = β b_c(k-1) - (e^ε-1) S_c(k)`.
//! `δ_c` falls with `c`, for one more clone adds a coin to `A` in both worlds; hence `δ` falls with `n`. With `τ = t-½`,
//! Hoeffding's inequality gives `δ_c <= Pr[A >= k-1] <= e^(4τ-2τ²c)`. For `ε >= ε₀`, `δ = 0`; where `(n)(1-t) <= 1`, `k = c+1`
//! for all `c` and `δ = β E[2^-C] = β(1-e^-ε₀/2)^(n-1)`.
//!
//! **Evaluation.** Weights of `C` follow from one another outward from the most likely one, and are divided by their sum.
//! `S_c` and `b_c` follow from `S_(c+1)(k) = S_c(k) + ½b_c(k-1)`, `S_(c+1)(k+1) = S_c(k) - ½b_c(k)`; now and then they are
//! summed afresh from the middle of the binomial law.
//!
//! **How the error is bounded.** Each rounded operation errs by a share `u = 2^-53`; shares add up along the recurrences and
//! are kept beside the values. These bounds are computed in floats too, and enlarged by a hundredth, which is far more than
//! their own rounding. Values are scaled by `2^1000`, out of the reach of underflow. What is left out of the sum over `c` is,
//! above, at most a geometric series times the last `δ_c`, and below a geometric series with Hoeffding's bound. Any `k` gives
//! a lower bound of `δ_c`; if rounding leaves `k` in doubt, the one outcome in doubt is added to the error of the upper bound.

use crate::Bracket;
use crate::curve::{self, Curve};
use crate::gaussian::Gaussian;
use crate::normal::HALF_ULP;

/// Beyond this many units the answer for this many is given, as an upper bound only: the sum has `√n` terms.
const USERS_MAX: u64 = 1 << 30;
/// `2^1000`.
const SCALE: f64 = f64::from_bits(2023 << 52);
/// How many steps a recurrence takes before it is summed afresh.
const STEPS_MAX: u32 = 2048;
/// The share of the sum that may be left out at each end.
const LEFT_OUT: f64 = 1e-15;
/// Error bounds are enlarged by this, for their own rounding.
const ENLARGED: f64 = 1.01;

/// The clone pair of `users` reports that are each `epsilon0`-DP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shuffled {
    users: u64,
    epsilon0: f64,
}

impl Shuffled {
    /// At least one user; `epsilon0 >= 0`.
    pub(crate) fn new(users: u64, epsilon0: f64) -> Self {
        Self {
            users: users.max(1),
            epsilon0: epsilon0.max(0.0),
        }
    }

    /// `δ(ε)` of the pair, for any real `ε`.
    pub(crate) fn delta(self, epsilon: f64) -> Bracket {
        if epsilon.is_nan() || self.epsilon0.is_nan() {
            return Bracket::new(0.0, 1.0);
        }
        if epsilon < 0.0 {
            let power = Bracket::exact(epsilon).exp();
            let gain = -Bracket::exact(epsilon).exp_m1();
            return (gain + power * self.delta(-epsilon)).clamp(0.0, 1.0);
        }
        if epsilon >= self.epsilon0 {
            return Bracket::ZERO;
        }
        if self.users > USERS_MAX {
            let fewer = Self::new(USERS_MAX, self.epsilon0).delta(epsilon);
            return Bracket::new(0.0, fewer.upper());
        }
        let found = Profile::new(self, epsilon).delta();
        // One report alone is the case without clones, and nothing is worse.
        found.clamp(0.0, Profile::beta(self.epsilon0, epsilon).upper())
    }

    /// `ε(δ)` of the pair.
    pub(crate) fn epsilon(self, delta: f64) -> Bracket {
        let mut curve = self;
        curve::epsilon(&mut curve, delta)
    }
}

impl Curve for Shuffled {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        Shuffled::delta(*self, epsilon)
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn epsilon_max(&self) -> Option<f64> {
        Some(self.epsilon0)
    }

    /// The counts are nearly normal, and `D` moves them by `tanh(ε₀/2)` of `√C/2`.
    fn guess(&mut self, delta: f64) -> f64 {
        let clones = (self.users as f64) * libm::exp(-self.epsilon0);
        let mu = 2.0 * libm::tanh(self.epsilon0 / 2.0) / (clones + 1.0).sqrt();
        let mu = Bracket::exact(mu);
        Gaussian { mu }
            .epsilon(delta)
            .estimate()
            .min(self.epsilon0 * 0.99)
    }
}

/// Everything that one `ε` fixes.
struct Profile {
    /// `n-1`.
    others: u64,
    /// `β` and `e^ε-1`.
    beta: Bracket,
    growth: Bracket,
    /// `e^-ε₀` against `1-e^-ε₀`.
    odds: Bracket,
    clone: Bracket,
    /// `τ = t-½` and `1-t`.
    tau: Bracket,
    rest: Bracket,
}

/// `δ_c` up to a scale: its value, by how much it may err, and by how much the upper end may be higher still.
#[derive(Clone, Copy)]
struct Part {
    value: f64,
    error: f64,
    doubt: f64,
}

/// A sum over `c` in progress.
#[derive(Clone, Copy, Default)]
struct Sum {
    value: f64,
    error: f64,
    doubt: f64,
    weight: f64,
    weight_error: f64,
}

impl Profile {
    fn new(shuffled: Shuffled, epsilon: f64) -> Self {
        let half = Bracket::exact(0.5);
        let (e0, e) = (Bracket::exact(shuffled.epsilon0), Bracket::exact(epsilon));
        let growth = e.exp_m1();
        let (shrunk, kept) = (-(-e0).exp_m1(), (-e0).exp());
        let one = Bracket::exact(1.0);
        // tanh(x/2) = (e^x - 1)/(e^x + 1), for ε₀ with both sides divided by e^ε₀.
        let tanh = growth / (growth + Bracket::exact(2.0));
        let tanh0 = shrunk / (kept + one);
        Self {
            others: shuffled.users - 1,
            beta: Self::beta(shuffled.epsilon0, epsilon),
            growth,
            odds: kept / shrunk,
            clone: kept,
            tau: half * tanh / tanh0,
            // 1-t = (e^ε₀ - e^ε)/((e^ε₀ - 1)(e^ε + 1)).
            rest: -(e - e0).exp_m1() / (shrunk * (growth + Bracket::exact(2.0))),
        }
    }

    /// `β = (1 - e^(ε-ε₀))/(1 + e^-ε₀)`.
    fn beta(epsilon0: f64, epsilon: f64) -> Bracket {
        let (e0, e) = (Bracket::exact(epsilon0), Bracket::exact(epsilon));
        let beta = -(e - e0).exp_m1() / (Bracket::exact(1.0) + (-e0).exp());
        beta.clamp(0.0, 1.0)
    }

    fn delta(&self) -> Bracket {
        let others = Bracket::exact(self.others as f64);
        let known = [self.odds, self.tau, self.rest];
        if !known
            .iter()
            .all(|one| one.lower() >= 0.0 && one.upper() < f64::INFINITY)
        {
            // ε₀ is among the smallest floats; δ is at most β.
            return Bracket::new(0.0, 1.0);
        }
        if self.clone.upper() < 1e-303 {
            // Without a clone δ is β; there is one with probability at most n e^-ε₀ < 1e-290.
            return self.beta * Bracket::new(1.0 - 1e-200, 1.0);
        }
        if ((others + Bracket::exact(1.0)) * self.rest).upper() <= 1.0 {
            let half = self.clone * Bracket::exact(0.5);
            return self.beta * (others * (-half).ln_1p()).exp();
        }
        // Hoeffding: δ <= e^(4τ) (1 - e^-ε₀ (1 - e^(-2τ²)))^(n-1).
        let fall = -(Bracket::exact(-2.0) * self.tau * self.tau).exp_m1();
        let exponent = Bracket::exact(4.0) * self.tau
            + others * (-(self.clone * fall).clamp(0.0, 1.0)).ln_1p();
        let ceiling = exponent.exp().upper().min(1.0);
        if exponent.upper() < -750.0 {
            return Bracket::new(0.0, ceiling);
        }
        self.sum().clamp(0.0, ceiling)
    }

    fn sum(&self) -> Bracket {
        let likely = self.clone.estimate() * (self.others as f64 + 1.0);
        let middle = (likely as u64).min(self.others);
        let start = Tail::fresh(self, middle);
        let mut sum = Sum::default();
        let part = start.part(self);
        sum.add(1.0, 0.0, part);
        let mut left_out = self.downward(start, &mut sum);
        left_out.join(self.upward(start, part, &mut sum));

        let error = sum.error * ENLARGED + sum.value.abs() * 4.0 * HALF_ULP;
        let weight_error = sum.weight_error * ENLARGED + sum.weight * 4.0 * HALF_ULP;
        let upper = sum.value + error + (sum.doubt + left_out.value) * ENLARGED;
        let top = Bracket::new((sum.value - error).max(0.0), upper.next_up());
        let weight = Bracket::new(
            sum.weight - weight_error,
            sum.weight + weight_error + left_out.weight * ENLARGED,
        );
        (top / weight) * Bracket::exact(1.0 / SCALE)
    }

    /// Adds all `c` below `tail.c` that count.
    fn downward(&self, mut tail: Tail, sum: &mut Sum) -> LeftOut {
        let odds = self.odds.estimate();
        let step_error = self.odds.relative_width() + 4.0 * HALF_ULP;
        let (tau, mut weight, mut weight_error) = (self.tau.lower(), 1.0, 0.0);
        while tail.c > 0 {
            let c = tail.c as f64;
            let ratio = c / ((self.others as f64 - c + 1.0) * odds);
            let tilted = ratio * libm::exp(2.0 * tau * tau) * (1.0 + 1e-9);
            if tilted < 1.0 && ratio * (1.0 + 1e-9) < 1.0 {
                let last = weight * (1.0 + weight_error);
                let bound = libm::exp(4.0 * self.tau.upper() - 2.0 * tau * tau * c) * SCALE;
                let left_out = LeftOut {
                    value: last * bound * tilted / (1.0 - tilted) * (1.0 + 1e-9),
                    weight: last * ratio / (1.0 - ratio) * (1.0 + 1e-9),
                };
                if left_out.is_small(sum) {
                    return left_out;
                }
            }
            weight *= ratio;
            weight_error += step_error;
            tail = tail.down(self);
            sum.add(weight, weight_error, tail.part(self));
        }
        LeftOut::default()
    }

    /// Adds all `c` above `tail.c` that count.
    fn upward(&self, mut tail: Tail, mut part: Part, sum: &mut Sum) -> LeftOut {
        let odds = self.odds.estimate();
        let step_error = self.odds.relative_width() + 4.0 * HALF_ULP;
        let (mut weight, mut weight_error) = (1.0, 0.0);
        while tail.c < self.others {
            let c = tail.c as f64;
            let ratio = (self.others as f64 - c) / (c + 1.0) * odds;
            if ratio * (1.0 + 1e-9) < 1.0 {
                let left = weight * (1.0 + weight_error) * ratio / (1.0 - ratio) * (1.0 + 1e-9);
                let height = part.value.max(0.0) + part.error * ENLARGED + part.doubt;
                let left_out = LeftOut {
                    value: left * height,
                    weight: left,
                };
                if left_out.is_small(sum) {
                    return left_out;
                }
            }
            weight *= ratio;
            weight_error += step_error;
            tail = tail.up(self);
            part = tail.part(self);
            sum.add(weight, weight_error, part);
        }
        LeftOut::default()
    }

    /// `k` for `c`, and whether rounding leaves it in doubt: then by which share of `c+1` at most.
    fn threshold(&self, c: u64) -> (u64, Option<f64>) {
        let m = (c + 1) as f64;
        let place = 0.5 * m + self.tau.estimate() * m;
        let share = (self.tau.upper() - self.tau.lower()) + 4.0 * HALF_ULP;
        let near = (place - place.round()).abs();
        let k = (place.floor() as u64).min(c) + 1;
        (k, (near <= share * m).then_some(2.0 * share))
    }
}

impl Sum {
    fn add(&mut self, weight: f64, weight_error: f64, part: Part) {
        let value = weight * part.value;
        self.value += value;
        self.error += weight * part.error * (1.0 + weight_error)
            + value.abs() * (weight_error + HALF_ULP)
            + self.value.abs() * HALF_ULP;
        self.doubt += weight * part.doubt * (1.0 + weight_error);
        self.weight += weight;
        self.weight_error += weight * weight_error + self.weight * HALF_ULP;
    }
}

#[derive(Clone, Copy, Default)]
struct LeftOut {
    value: f64,
    weight: f64,
}

impl LeftOut {
    fn is_small(&self, sum: &Sum) -> bool {
        self.value <= LEFT_OUT * sum.value && self.weight <= LEFT_OUT * sum.weight
    }

    fn join(&mut self, other: Self) {
        self.value += other.value;
        self.weight += other.weight;
    }
}

/// `S_c(k)` and `b_c(k-1)`, times [`SCALE`].
#[derive(Clone, Copy)]
struct Tail {
    c: u64,
    k: u64,
    doubt: Option<f64>,
    survival: f64,
    survival_error: f64,
    point: f64,
    /// As a share of `point`.
    point_error: f64,
    /// A share by which both numbers err together, so that it cannot grow in their difference.
    common_error: f64,
    steps: u32,
}

impl Tail {
    /// Summed from the middle of the law of `A` outward.
    fn fresh(profile: &Profile, c: u64) -> Self {
        let (k, doubt) = profile.threshold(c);
        let middle = c / 2;
        let (mut j, mut value) = (middle, SCALE);
        let (mut half, mut survival, mut point) = (0.0, 0.0, if k - 1 == j { value } else { 0.0 });
        // Ends after the standard deviation √c/2 times what a float spans, 60.
        while j < c {
            let ratio = (c - j) as f64 / (j + 1) as f64;
            if j >= k && ratio < 1.0 && value * ratio / (1.0 - ratio) <= 1e-18 * survival {
                break;
            }
            value *= ratio;
            j += 1;
            half += value;
            if j >= k {
                survival += value;
            } else if j == k - 1 {
                point = value;
            }
            if value < 1e-280 {
                break;
            }
        }
        let whole = if c.is_multiple_of(2) {
            SCALE + 2.0 * half
        } else {
            2.0 * half
        };
        // Each step has two roundings and each sum one. Up to k-1 they are common to both numbers, as is the whole.
        let (common, own) = ((k - 1).min(j) - middle, j - (k - 1).min(j));
        let error = |steps: u64| (steps + 2) as f64 * 3.0 * HALF_ULP;
        let survival = survival / whole * SCALE;
        Self {
            c,
            k,
            doubt,
            survival,
            // The last summand stands for what was left out if the loop met the smallest numbers.
            survival_error: survival * error(own) + 1e-270,
            point: point / whole * SCALE,
            point_error: 0.0,
            common_error: error(common) + error(j - middle),
            steps: 0,
        }
    }

    /// For one clone more.
    fn up(self, profile: &Profile) -> Self {
        let (k, doubt) = profile.threshold(self.c + 1);
        if self.is_spent() || k < self.k || k > self.k + 1 {
            return Self::fresh(profile, self.c + 1);
        }
        let c = (self.c + 1) as f64;
        if k == self.k {
            let point = self.point * (c / (2.0 * (c - (k - 1) as f64)));
            self.moved(self.c + 1, k, doubt, 0.5 * self.point, point)
        } else {
            let point = self.point * (c / (2.0 * self.k as f64));
            let change = -point * ((c - self.k as f64) / c);
            self.moved(self.c + 1, k, doubt, change, point)
        }
    }

    /// For one clone less.
    fn down(self, profile: &Profile) -> Self {
        let (k, doubt) = profile.threshold(self.c - 1);
        if self.is_spent() || k > self.k || k + 1 < self.k {
            return Self::fresh(profile, self.c - 1);
        }
        let c = self.c as f64;
        let same = self.point * (2.0 * (c - (self.k - 1) as f64) / c);
        if k == self.k {
            self.moved(self.c - 1, k, doubt, -0.5 * same, same)
        } else {
            let point = self.point * (2.0 * (self.k - 1) as f64 / c);
            self.moved(self.c - 1, k, doubt, 0.5 * same, point)
        }
    }

    fn is_spent(&self) -> bool {
        self.steps >= STEPS_MAX || self.point < 1e-250
    }

    fn moved(self, c: u64, k: u64, doubt: Option<f64>, change: f64, point: f64) -> Self {
        let point_error = self.point_error + 3.0 * HALF_ULP;
        let survival = self.survival + change;
        Self {
            c,
            k,
            doubt,
            survival,
            survival_error: self.survival_error
                + change.abs() * (point_error + 3.0 * HALF_ULP)
                + survival.abs() * HALF_ULP,
            point,
            point_error,
            common_error: self.common_error,
            steps: self.steps + 1,
        }
    }

    /// `δ_c`, times [`SCALE`].
    fn part(&self, profile: &Profile) -> Part {
        // A point that met the smallest numbers is known up to them.
        let point_error = self.point * self.point_error + 1e-270;
        let gain = profile.beta.estimate() * self.point;
        // Nothing lies above c.
        let (survival, survival_error) = if self.k > self.c {
            (0.0, 0.0)
        } else {
            (self.survival, self.survival_error)
        };
        let loss = profile.growth.estimate() * survival;
        let value = gain - loss;
        let error = gain * (profile.beta.relative_width() + 2.0 * HALF_ULP)
            + profile.beta.upper() * point_error
            + loss.abs() * (profile.growth.relative_width() + 2.0 * HALF_ULP)
            + profile.growth.upper() * survival_error
            + value.abs() * (self.common_error + HALF_ULP);
        // The outcome x in doubt has x/(c+1) = t+h, b_c(x) <= b_c(k-1) and weighs β b_c(x) |h|/((1-t)(1-t-h)).
        let doubt = self.doubt.map_or(0.0, |share| {
            let rest = profile.rest.lower() - share;
            if rest > 0.0 {
                profile.beta.upper() * (self.point + point_error) * share / (rest * rest)
            } else {
                SCALE
            }
        });
        Part {
            value,
            error,
            doubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values() {
        // Direct summation of the pair, crosschecked by log-gamma: reference cases pub-057 to pub-059.
        let check = |users, epsilon0, epsilon, expected: f64| {
            let found = Shuffled::new(users, epsilon0).delta(epsilon);
            assert!(found.relative_width() < 1e-10, "{found:?}");
            assert!(
                (found.estimate() / expected - 1.0).abs() < 2e-11,
                "{found:?} {expected}"
            );
        };
        check(1000, 1.0, 0.15, 1.355_091_734_358_69e-5);
        check(200, 0.5, 0.1, 0.000_198_446_083_456_072_83);
        check(10_000, 2.0, 0.1, 0.000_114_019_386_243_229_86);
    }

    /// The pair's profile by enumeration, with brackets.
    fn enumerated(users: u64, epsilon0: f64, epsilon: f64) -> Bracket {
        let exact = Bracket::exact;
        let others = users - 1;
        let clone = exact(-epsilon0).exp();
        let w = exact(1.0) / (exact(1.0) + clone);
        let (v, power) = (clone * w, exact(epsilon).exp());
        let choose = |n: u64, k: u64| {
            (0..k).fold(exact(1.0), |c, i| {
                c * exact((n - i) as f64) / exact((i + 1) as f64)
            })
        };
        let to = |base: Bracket, n: u64| (0..n).fold(exact(1.0), |p, _| p * base);
        let mut sum = Bracket::ZERO;
        for c in 0..=others {
            let weight = choose(others, c)
                * to(clone, c)
                * to((-(exact(-epsilon0).exp_m1())).clamp(0.0, 1.0), others - c);
            for x in 0..=c + 1 {
                let law = |a: Option<u64>| match a {
                    Some(a) if a <= c => choose(c, a) * exact(0.5_f64.powi(c as i32)),
                    _ => Bracket::ZERO,
                };
                let (less, same) = (law(x.checked_sub(1)), law(Some(x)));
                let gap = w * less + v * same - power * (v * less + w * same);
                sum = sum + weight * Bracket::new(gap.lower().max(0.0), gap.upper().max(0.0));
            }
        }
        sum
    }

    #[test]
    fn agrees_with_enumeration() {
        for users in [1, 2, 3, 4, 7, 20, 45] {
            for epsilon0 in [1e-6, 0.1, 1.0, 3.0, 20.0] {
                for share in [0.0, 1e-3, 0.1, 0.3, 0.5, 0.9, 0.999] {
                    let epsilon = epsilon0 * share;
                    let found = Shuffled::new(users, epsilon0).delta(epsilon);
                    let truth = enumerated(users, epsilon0, epsilon);
                    assert!(
                        found.lower() <= truth.upper() && truth.lower() <= found.upper(),
                        "{users} {epsilon0} {epsilon}: {found:?} {truth:?}"
                    );
                    assert!(found.upper() - found.lower() <= 1e-9 * found.upper() + 1e-300);
                }
            }
        }
    }

    #[test]
    fn large_numbers_of_users() {
        // mpmath 1.3.0, 40 digits, direct summation over 14 standard deviations.
        let check = |users, epsilon0, epsilon, expected: f64| {
            let found = Shuffled::new(users, epsilon0).delta(epsilon);
            assert!(found.holds(expected), "{found:?} {expected}");
            assert!(found.relative_width() < 1e-8, "{found:?}");
        };
        check(100_000, 4.0, 0.3, 1.543_907_248_736_765e-13);
        check(1_000_000, 1.0, 0.02, 1.379_488_960_341_178_6e-43);
    }

    #[test]
    fn epsilon_undoes_delta() {
        for (users, epsilon0) in [(100, 0.5), (10_000, 2.0), (1_000_000, 4.0)] {
            for delta in [1e-12, 1e-6, 1e-3] {
                let shuffled = Shuffled::new(users, epsilon0);
                let found = shuffled.epsilon(delta);
                assert!(
                    found.relative_width() < 1e-7,
                    "{users} {epsilon0} {delta}: {found:?}"
                );
                assert!(shuffled.delta(found.upper()).upper() <= delta);
                assert!(found.lower() == 0.0 || shuffled.delta(found.lower()).lower() > delta);
                assert!(found.upper() < epsilon0);
            }
        }
    }

    #[test]
    fn falls_with_users_and_epsilon() {
        let mut last = 1.0;
        for users in [1, 2, 10, 1000, 100_000, 10_000_000, 1 << 30] {
            let found = Shuffled::new(users, 1.0).delta(1e-4);
            assert!(found.lower() <= last, "{users}: {found:?}");
            last = found.upper();
        }
        let shuffled = Shuffled::new(500, 1.5);
        let mut last = 1.0;
        for step in -60..=60 {
            let found = shuffled.delta(f64::from(step) * 0.03);
            assert!(found.lower() <= last && found.upper() <= last * (1.0 + 1e-9));
            last = found.upper();
        }
    }

    #[test]
    fn extremes() {
        let delta = |users, epsilon0, epsilon| Shuffled::new(users, epsilon0).delta(epsilon);
        assert_eq!(delta(5, 1.0, 1.0), Bracket::ZERO);
        assert_eq!(delta(5, 0.0, 0.0), Bracket::ZERO);
        assert!(delta(5, 1000.0, 0.0).lower() > 1.0 - 1e-15);
        assert!(delta(1 << 40, 1000.0, 999.0).lower() > 0.0 - 1e-300);
        assert!(delta(1 << 53, 1e-300, 0.0).upper() < 1e-300);
        for users in [1, 2, 1000, 1 << 24] {
            for epsilon0 in [5e-324, 1e-200, 1e-12, 1.0, 30.0, 699.0, 701.0, 1e300] {
                for share in [0.0, 1e-300, 1e-9, 0.5, 1.0 - 1e-15, 2.0, -1.0] {
                    let found = delta(users, epsilon0, epsilon0 * share);
                    assert!(found.lower() >= 0.0 && found.upper() <= 1.0, "{found:?}");
                }
            }
        }
        // Far out, still sharp: mpmath 1.3.0, 400 digits.
        let found = delta(3000, 1.0, 0.9);
        assert!(
            found.upper() < 1e-150 && found.relative_width() < 1e-9,
            "{found:?}"
        );
        assert_eq!(Shuffled::new(10, 2.0).epsilon(0.0).upper(), 2.0);
    }
}
