//! One-run audits of a whole trade-off curve.
//!
//! **Setting.** That of `one_run.rs`: `m` canaries, `r` guesses, `v` of them right.
//! **Definition.** The claim is a *blow-up*: an event of probability `x` in one world has at least `g(x)` in every neighbouring one. For
//!   `(ε, δ)`-DP `g(x) = max(0, e^-ε (x-δ), 1 - δ - e^ε (1-x))`; for `μ`-GDP `g(x) = Φ(Φ⁻¹(x) - μ)`.
//! **Guarantee.** Let `p_n` be the probability of exactly `n` right guesses, `R_i = Σ_{n>=i} (n/m) p_n` and `H_i = Σ_{n>=i} ((r-n)/m) p_n`, so that
//!   `R_0 + H_0 = r/m`. Start at `a_v = τv/m`, `b_v = τ(r-v)/m`, and go down: `b_{i-1} = max(b_i, g(a_i))`,
//!   `a_{i-1} = a_i + κ_{i-1} (b_{i-1} - b_i)` with `κ_n = n/(r-n)`. If `a_0 + b_0 > r/m`, then `Pr[at least v right] < τ` \[MMC25\].
//! **Proof.** (1) Fix a canary. To turn its coin around makes a right guess of it wrong, and the number of right guesses one less; coins are
//!   fair, so the event "right, and at least `i` right" in one world is "wrong, and at least `i-1` right" in its neighbour. The probability of
//!   the latter is at least `g` of that of the former; on average over all canaries, since `g` is convex, `H_{i-1} >= g(R_i)`.
//!   (2) Suppose `Pr[at least v right] >= τ`. Then `R_i - a_i >= κ_i (H_i - b_i)` for all `i <= v`, and `R_i >= a_i`, and from the first
//!   step on `H_i >= b_i`. At `v` because `R_v >= κ_v H_v`, `a_v = κ_v b_v` and `R_v >= τv/m`. (If `g(a_v) <= b_v` the recursion stays where it
//!   is, at a sum of `τr/m`, and refutes nothing.) Going down, `H_{i-1} >= H_i >= b_i` and `H_{i-1} >= g(R_i) >= g(a_i)`; and
//!   `R_{i-1} - R_i = κ_{i-1} (H_{i-1} - H_i)`, so that `R_{i-1} - a_{i-1} = κ_{i-1} (H_{i-1} - b_{i-1}) + (R_i - a_i) - κ_{i-1} (H_i - b_i)`, where the rest is
//!   not negative since `κ` grows. At zero, `r/m = R_0 + H_0 >= a_0 + b_0`.
//! **Rounding.** The recursion is in plain floats of positive numbers, at most `2^20` steps of a few operations each, and a result counts only if it is
//!   above by more than `1e-8` of itself.
//! **Kinds.** A refuted claim is refuted without a model. For `(ε, δ)`-DP this gives an [`EpsilonBound`]; the epsilon of a fitted `μ` is a
//!   [`ModelBound`](crate::ModelBound).

use whit_core::{Delta, round};

use crate::bound::{EpsilonBound, Reach};
use crate::interval::bisect;
use crate::normal::{ERROR, distribution, quantile_lower};
use crate::one_run::OneRun;
use crate::{Alpha, Error, MuBound, Result};

/// The most guesses for which the error of the recursion was bounded.
const GUESSES_MAX: u64 = 1 << 20;
/// The relative error of the recursion, with room to spare.
const RECURSION_ERROR: f64 = 1e-8;

impl OneRun {
    /// Is the claim refuted, at level `alpha`, that an event of probability `x` in one world has at least `blow_up(x)` in its
    /// neighbours? `blow_up` must be at most the truth, convex and growing. Refused if the number of guesses was not fixed before the output.
    pub fn refutes_blow_up(&self, alpha: Alpha, blow_up: impl Fn(f64) -> f64) -> Result<bool> {
        self.check_fixed()?;
        let share = alpha.split(self.tallies().len())?;
        let mut refuted = false;
        for (guesses, right) in self.tallies() {
            refuted |= too_many_right(self.canaries(), *guesses, *right, share, &blow_up)?;
        }
        Ok(refuted)
    }

    /// As [`OneRun::epsilon_lower`], by the recursion above: sharper where there are many guesses and a small delta.
    pub fn epsilon_lower_by_recursion(&self, delta: Delta, alpha: Alpha) -> Result<EpsilonBound> {
        self.refutes_blow_up(alpha, |_| 0.0)?;
        let refuted = |epsilon: f64| {
            self.refutes_blow_up(alpha, |x| approximate_blow_up(x, epsilon, delta))
                .unwrap_or(false)
        };
        let epsilon_lower = if refuted(0.0) {
            bisect(0.0, 700.0, refuted).0
        } else {
            0.0
        };
        let plain = self.epsilon_lower(delta, alpha)?;
        let evidence = plain.evidence().to_owned();
        // Silence of this bound is judged by what this bound could have shown: without a delta that is less than the other's.
        let reaches = plain.into_reaches().into_iter().map(|reach| match reach {
            Reach::OneRun(reach) => Reach::OneRun(reach.by_recursion()),
            pair @ Reach::Pair { .. } => pair,
        });
        Ok(EpsilonBound::new(
            epsilon_lower,
            delta,
            alpha,
            evidence,
            reaches.collect(),
        ))
    }

    /// The largest `μ` of Gaussian DP that the guesses refute.
    pub fn mu_lower(&self, alpha: Alpha) -> Result<MuBound> {
        self.refutes_blow_up(alpha, |_| 0.0)?;
        let refuted = |mu: f64| {
            self.refutes_blow_up(alpha, |x| gaussian_blow_up(x, mu))
                .unwrap_or(false)
        };
        let mu_lower = if refuted(0.0) {
            bisect(0.0, 70.0, refuted).0
        } else {
            0.0
        };
        Ok(MuBound::new(mu_lower, alpha))
    }
}

/// Do so many right guesses of so many about so many canaries refute `(ε, δ)`-DP?
pub(crate) fn refuted_by_recursion(
    (canaries, guesses, right): (u64, u64, u64),
    epsilon: f64,
    delta: Delta,
    alpha: Alpha,
) -> bool {
    let blow_up = |x: f64| approximate_blow_up(x, epsilon, delta);
    too_many_right(canaries, guesses, right, alpha, blow_up).unwrap_or(false)
}

/// At most what `(ε, δ)`-DP leaves to the neighbour of an event of probability `x`.
fn approximate_blow_up(x: f64, epsilon: f64, delta: Delta) -> f64 {
    let (d, up) = (delta.value(), round::exp_up(epsilon));
    let one_way = round::div_down(round::sub_down(x, d), up);
    let other_way = round::sub_down(
        round::sub_down(1.0, d),
        round::mul_up(up, round::sub_up(1.0, x)),
    );
    one_way.max(other_way).max(0.0)
}

/// At most `Φ(Φ⁻¹(x) - μ)`.
fn gaussian_blow_up(x: f64, mu: f64) -> f64 {
    distribution(quantile_lower(x.clamp(0.0, 1.0)) - mu) * (1.0 - 4.0 * ERROR)
}

/// Are so many right guesses less likely than `alpha` under the claim?
fn too_many_right(
    canaries: u64,
    guesses: u64,
    right: u64,
    alpha: Alpha,
    blow_up: impl Fn(f64) -> f64,
) -> Result<bool> {
    if guesses > GUESSES_MAX {
        return Err(Error::TooManyTrials {
            trials: guesses,
            trials_max: GUESSES_MAX,
        });
    }
    if right == 0 {
        return Ok(false);
    }
    let (m, r, v) = (canaries as f64, guesses as f64, right as f64);
    let mut above = alpha.value() * v / m;
    let mut beside = alpha.value() * (r - v) / m;
    // At most `right` rounds.
    for i in (0..right).rev() {
        let next = beside.max(blow_up(above));
        if next == beside {
            // Neither will ever change again.
            break;
        }
        above = (above + i as f64 / (guesses - i) as f64 * (next - beside)).min(1.0);
        beside = next;
    }
    Ok(above + beside > r / m * (1.0 + RECURSION_ERROR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_run::{CanaryScores, GuessRule};
    use crate::simulate::{assert_false_alarms, coin, normal};
    use whit_core::Mu;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    /// Every canary separately by randomized response: the number of right guesses is binomial, and the least `τ` that the recursion
    /// accepts must be at least its tail. By brute force over all sheets for small `m`.
    #[test]
    fn recursion_is_above_the_tail_of_all_sheets() {
        let epsilon = 0.8_f64;
        let q = epsilon.exp() / (1.0 + epsilon.exp());
        for m in [1_u64, 2, 3, 5, 8, 11] {
            for v in 1..=m {
                // All 2^m ways to be right or wrong.
                let tail: f64 = (0..1_u64 << m)
                    .filter(|sheet| u64::from(sheet.count_ones()) >= v)
                    .map(|sheet| {
                        q.powi(sheet.count_ones() as i32)
                            * (1.0 - q).powi((m - u64::from(sheet.count_ones())) as i32)
                    })
                    .sum();
                let refuted = |tau: f64| {
                    too_many_right(m, m, v, alpha(tau), |x| {
                        approximate_blow_up(x, epsilon, Delta::ZERO)
                    })
                    .expect("valid")
                };
                // A level just below the true tail must never be refuted ...
                if tail < 0.5 {
                    assert!(!refuted(tail * (1.0 - 1e-6)), "m {m}, v {v}: {tail}");
                }
                // ... and four times the tail is, or the bound would be idle.
                if tail < 0.125 {
                    assert!(refuted(tail * 4.0), "m {m}, v {v}: {tail}");
                }
            }
        }
    }

    fn gaussian_run(mu: f64, canaries: usize, guesses: usize, seed: u64) -> OneRun {
        let (mut member, mut noise) = (coin(2 * seed, 0.5), normal(2 * seed + 1));
        let is_in: Vec<bool> = (0..canaries).map(|_| member()).collect();
        let scores = is_in
            .iter()
            .map(|present| if *present { mu } else { 0.0 } + noise())
            .collect();
        let rule = GuessRule {
            highest_in: guesses / 2,
            lowest_out: guesses / 2,
        };
        CanaryScores::new(scores)
            .guess(rule)
            .and_then(|guesses| guesses.reveal(&is_in))
            .expect("valid")
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        assert_false_alarms(0.05, |seed| {
            gaussian_run(1.0, 500, 100, seed)
                .refutes_blow_up(alpha(0.05), |x| gaussian_blow_up(x, 1.0))
                .expect("valid")
        });
        let truth = 1.0 / (1.0 + (-1.0_f64).exp());
        assert_false_alarms(0.05, |seed| {
            let mut honest = coin(seed, truth);
            let right = (0..200).filter(|_| honest()).count() as u64;
            OneRun::of_fixed_guesses(200, 200, right)
                .and_then(|run| {
                    run.refutes_blow_up(alpha(0.05), |x| approximate_blow_up(x, 1.0, Delta::ZERO))
                })
                .expect("valid")
        });
    }

    #[test]
    fn too_little_noise_is_convicted() {
        let run = gaussian_run(2.0, 5000, 2000, 1);
        let bound = run.mu_lower(alpha(0.05)).expect("valid");
        assert!(bound.refutes(Mu::new(1.0).expect("positive")), "{bound:?}");
        assert!(bound.mu_lower() < 2.0, "{bound:?}");
        let delta = Delta::new(1e-5).expect("in range");
        let (plain, recursion) = (
            run.epsilon_lower(delta, alpha(0.05)).expect("valid"),
            run.epsilon_lower_by_recursion(delta, alpha(0.05))
                .expect("valid"),
        );
        let gaussian = bound.epsilon_if_gaussian(delta);
        assert!(
            plain.epsilon_lower() > 1.0 && recursion.epsilon_lower() > 1.0,
            "{plain:?} {recursion:?}"
        );
        // The point of a curve: with the model, far more follows from the same guesses.
        assert!(
            gaussian.epsilon_lower() > 1.5 * plain.epsilon_lower(),
            "{gaussian:?} {plain:?}"
        );
    }

    /// Where the recursion shows less than the plain bound, its silence means less too: "consistent" promises that randomized response of twice
    /// the claim would have been convicted nine times out of ten, by the recursion itself.
    #[test]
    fn a_consistent_ruling_would_have_convicted_the_blatant() {
        for claim in [0.5_f64, 1.0, 2.0] {
            let claimed = whit_core::Epsilon::new(claim).expect("positive");
            let claimed = crate::Claim::pure(claimed);
            let bound = |guesses, right| {
                OneRun::of_fixed_guesses(guesses, guesses, right)
                    .and_then(|run| run.epsilon_lower_by_recursion(Delta::ZERO, alpha(0.05)))
                    .expect("valid")
            };
            let guesses = (1..2000)
                .find(|guesses| bound(*guesses, 0).ruling(claimed) == crate::Ruling::Consistent)
                .expect("some number suffices");
            let least = (0..=guesses)
                .find(|right| bound(guesses, *right).epsilon_lower() > claim)
                .expect("all right is a conviction");
            let coin = crate::binomial::Coin::with_tails(1.0 / (1.0 + (2.0 * claim).exp()));
            let power = crate::binomial::upper_tail(least, guesses, coin);
            assert!(power >= 0.9, "{claim}: {power} by {guesses} guesses");
        }
    }

    #[test]
    fn blow_ups_have_their_closed_forms() {
        let delta = Delta::new(0.1).expect("in range");
        let at = |x| approximate_blow_up(x, 2_f64.ln(), delta);
        assert!((at(0.5) - 0.2).abs() < 1e-12 && at(0.05) == 0.0);
        assert!((at(1.0) - 0.9).abs() < 1e-12);
        assert!((gaussian_blow_up(0.5, 1.0) - 0.158_655_253_931_457).abs() < 1e-9);
        assert_eq!(gaussian_blow_up(0.0, 1.0), 0.0);
    }

    #[test]
    fn nothing_right_refutes_nothing() {
        let run = OneRun::of_fixed_guesses(10, 5, 0).expect("valid");
        assert_eq!(run.mu_lower(alpha(0.05)).expect("valid").mu_lower(), 0.0);
        let many = OneRun::of_fixed_guesses(1 << 22, 1 << 21, 1 << 20).expect("valid");
        assert!(many.mu_lower(alpha(0.05)).is_err());
    }
}
