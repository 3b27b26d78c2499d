//! # What a guarantee means for one person
//! Two readings of `(ε, δ)`-DP: what a test can find out, and what a belief can become. All numbers are worst cases over every
//! mechanism with the guarantee, every pair of neighbours and every attacker, rounded against the person.
//!
//! **Testing.** Somebody sees the answer and decides which of two neighbours was used. A set `S` of answers that makes him say
//! *present* has `FPR = Pr[M(x') ∈ S]` and `FNR = Pr[M(x) ∉ S]`. The definition, for `S` and its complement and in both
//! directions, says `FNR >= max(0, 1 - δ - e^ε FPR, e^-ε (1 - δ - FPR))`. [WZ10, KOV15]
//! *Proof.* `1 - FNR <= e^ε FPR + δ` is the definition for `S`. For the complement with the roles exchanged,
//! `1 - FPR <= e^ε FNR + δ`.
//!
//! **Advantage.** `TPR - FPR <= (e^ε - 1 + 2δ)/(e^ε + 1)`, which is `tanh(ε/2)` for `δ = 0`.
//! *Proof.* The two lines above meet at `FPR = FNR = (1-δ)/(1+e^ε)`; `1 - FNR - FPR` is largest there, since one line falls more
//! steeply and the other less steeply than one to one.
//!
//! **Belief.** Prior odds on any statement about one person's row change, on seeing the answer, by a factor within
//! `[e^-ε, e^ε]` for `δ = 0`. For `δ > 0` no such bound holds for every answer; but except with probability `2δ` the factor is
//! within `[e^-ε/2, 2e^ε]`.
//! *Proof.* The factor is the likelihood ratio. Let `S` be the answers where it exceeds `t = 2e^ε`; `Pr[M(x) ∈ S] = p <= e^ε
//! Pr[M(x') ∈ S] + δ <= (e^ε/t) p + δ = p/2 + δ`, so `p <= 2δ`. (Each side on its own; the other follows by exchange.)
//!
//! **Distance of beliefs.** With and without the person's row in the computation, posteriors given the same answer are within
//! `tanh(ε/2)` of each other in statistical distance, for `δ = 0`; the `2ε` of [Vad17, §1.6] is the same for small `ε`, four
//! times looser. *Proof.* Their log-ratio is a loss in `[-ε, ε]` less a constant (the normaliser), so it varies by at most
//! `w = 2ε`. Among distributions whose log-ratio varies by at most `w`, the distance is largest for two points with log-ratios
//! `±w/2`, where it is `tanh(w/4)`.
//!
//! **Groups.** For `k` units together: `(kε, δ (e^(kε) - 1)/(e^ε - 1))`, by changing one unit after the other. [Vad17, Lem. 2.2]

use whit_core::{Delta, Epsilon, Mu, Probability, round};

use crate::{Error, Result};

/// A promise of `(epsilon, delta)`-DP, to be explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// The bound on the loss.
    pub epsilon: Epsilon,
    /// The slack.
    pub delta: Delta,
}

/// What a belief can become.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Posterior {
    /// At least this.
    pub low: f64,
    /// At most this.
    pub high: f64,
    /// Except with this probability, on each side.
    pub except: f64,
}

impl Guarantee {
    /// By how much the chance of anything bad that comes of the answer can be multiplied: `e^ε`.
    pub fn risk_factor_max(self) -> f64 {
        round::exp_up(self.epsilon.value())
    }

    /// The least share of the present that a test misses which wrongly flags this share of the absent.
    pub fn false_negatives_min(self, false_positives: &Probability) -> f64 {
        let rest = round::sub_down(
            round::sub_down(1.0, self.delta.value()),
            false_positives.ratio().to_f64_up(),
        );
        let steep = round::sub_down(
            round::sub_down(1.0, self.delta.value()),
            round::mul_up(self.risk_factor_max(), false_positives.ratio().to_f64_up()),
        );
        // For a negative rest the bound is vacuous; zero covers it.
        steep
            .max(round::mul_down(
                rest.max(0.0),
                round::exp_down(-self.epsilon.value()),
            ))
            .max(0.0)
    }

    /// The most by which a guesser who sees the answer can catch the present more often than the absent.
    pub fn advantage_max(self) -> f64 {
        // (e - 1 + 2δ)/(e + 1) = 1 - 2(1 - δ)/(e + 1).
        let missed = round::div_down(
            round::mul_down(2.0, round::sub_down(1.0, self.delta.value())),
            round::add_up(self.risk_factor_max(), 1.0),
        );
        round::sub_up(1.0, missed).clamp(0.0, 1.0)
    }

    /// The share of right guesses between two equally likely neighbours, at most.
    pub fn right_guesses_max(self) -> f64 {
        round::mul_up(0.5, round::add_up(1.0, self.advantage_max())).min(1.0)
    }

    /// What a belief of this strength can become.
    pub fn posterior(self, prior: &Probability) -> Posterior {
        let (loosened, except) = if self.delta == Delta::ZERO {
            (1.0, 0.0)
        } else {
            (2.0, round::mul_up(2.0, self.delta.value()).min(1.0))
        };
        let factor = round::mul_up(loosened, self.risk_factor_max());
        let prior = prior.ratio();
        // p f / (1 - p + p f), and the same for the complement from below.
        let after = |p_up: f64, rest_down: f64| {
            let grown = round::mul_up(p_up, factor);
            if grown == f64::INFINITY {
                1.0
            } else {
                round::div_up(grown, round::add_down(rest_down, grown)).min(1.0)
            }
        };
        let (up, down) = (prior.to_f64_up(), prior.to_f64_down());
        let high = if up == 0.0 {
            0.0
        } else {
            after(up, round::sub_down(1.0, up))
        };
        let low = if down >= 1.0 {
            1.0
        } else {
            round::sub_down(1.0, after(round::sub_up(1.0, down), down)).max(0.0)
        };
        Posterior { low, high, except }
    }

    /// The statistical distance between beliefs formed with and without the person's row, at most. Only for `δ = 0`.
    pub fn belief_distance_max(self) -> Result<f64> {
        if self.delta == Delta::ZERO {
            return Ok(self.advantage_max());
        }
        Err(Error::NoGuarantee {
            mechanism: "Approximate".into(),
            notion: "distance of beliefs",
        })
    }

    /// The guarantee for so many units together. Refused when none is left.
    pub fn group(self, units: u32) -> Result<Self> {
        let epsilon = round::mul_up(f64::from(units), self.epsilon.value());
        let mut delta: f64 = 0.0;
        // δ (1 + e^ε + … + e^((k-1)ε)), by Horner's rule; each step at least adds δ, and stops at one.
        for _ in 0..units {
            delta = round::add_up(
                self.delta.value(),
                round::mul_up(delta, self.risk_factor_max()),
            );
            if self.delta == Delta::ZERO || delta >= 1.0 {
                break;
            }
        }
        let none_left = |_| Error::Unbounded {
            what: "guarantee for a group of this size at this epsilon",
        };
        Ok(Self {
            epsilon: Epsilon::new(epsilon).map_err(none_left)?,
            delta: Delta::new(delta).map_err(none_left)?,
        })
    }
}

/// The same for Gaussian differential privacy: `FNR >= Φ(Φ^-1(1 - FPR) - μ)`, within `1e-9` below. [DRS22, Def. 4]
pub fn gaussian_false_negatives_min(mu: Mu, false_positives: &Probability) -> f64 {
    let false_positives = false_positives.ratio().to_f64_up();
    if false_positives >= 1.0 {
        return 0.0;
    }
    // Pr[N > t] = erfc(t/√2)/2 falls from one to zero; find where it is the share of false positives.
    let above = |t: f64| 0.5 * libm::erfc(t / std::f64::consts::SQRT_2);
    let (mut low, mut high) = (-40.0_f64, 40.0_f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if above(middle) > false_positives {
            low = middle
        } else {
            high = middle
        }
    }
    (above(mu.value() - low) - 1e-9).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Ratio;

    fn guarantee(epsilon: f64, delta: f64) -> Guarantee {
        Guarantee {
            epsilon: Epsilon::new(epsilon).expect("a unit"),
            delta: Delta::new(delta).expect("a unit"),
        }
    }

    fn probability(value: f64) -> Probability {
        Probability::new(Ratio::from_f64(value).expect("finite")).expect("at most one")
    }

    /// At least the truth, and above it only by rounding.
    fn check(found: f64, truth: f64) {
        assert!(
            found >= truth - 1e-12 && found <= truth + 1e-9,
            "{found} for {truth}"
        );
    }

    /// The corner of the region, the largest advantage and the posteriors of the seed's two readings.
    #[test]
    fn closed_form() {
        let corner = 1.0 / (1.0 + 1_f64.exp());
        check(
            guarantee(1.0, 0.0).false_negatives_min(&probability(corner)),
            corner,
        );
        assert!((corner - 0.26894).abs() < 1e-5);
        assert!((guarantee(1.0, 0.0).advantage_max() - 0.46212).abs() < 1e-5);
        check(guarantee(1.0, 0.0).advantage_max(), 0.5_f64.tanh());
        assert!((guarantee(1.0, 0.0).posterior(&probability(0.5)).high - 0.73106).abs() < 1e-5);
        assert!((guarantee(1.0, 0.0).posterior(&probability(0.01)).high - 0.02672).abs() < 1e-5);
        assert!(
            (guarantee(0.1, 0.0).risk_factor_max() - 1.10517).abs() < 1e-5,
            "the seed's 11%"
        );
        assert!(guarantee(0.1, 0.0).belief_distance_max().expect("pure") <= 2.0 * 0.1);
        assert!(guarantee(0.1, 1e-9).belief_distance_max().is_err());
    }

    #[test]
    fn delta_loosens_everything() {
        let (pure, loose) = (guarantee(1.0, 0.0), guarantee(1.0, 0.01));
        assert!(loose.advantage_max() > pure.advantage_max());
        assert!(
            loose.false_negatives_min(&probability(0.1))
                < pure.false_negatives_min(&probability(0.1))
        );
        let posterior = loose.posterior(&probability(0.5));
        check(
            posterior.high,
            2.0 * 1_f64.exp() / (1.0 + 2.0 * 1_f64.exp()),
        );
        assert_eq!(posterior.except, 0.02);
    }

    #[test]
    fn groups_pay_for_each_other() {
        let group = guarantee(1.0, 1e-6)
            .group(3)
            .expect("some guarantee is left");
        check(group.epsilon.value(), 3.0);
        check(
            group.delta.value(),
            1e-6 * (3_f64.exp() - 1.0) / (1_f64.exp() - 1.0),
        );
        assert_eq!(guarantee(1.0, 1e-6).group(1), Ok(guarantee(1.0, 1e-6)));
        assert_eq!(guarantee(0.5, 0.0).group(4), Ok(guarantee(2.0, 0.0)));
        assert!(
            guarantee(1.0, 1e-6).group(100).is_err(),
            "delta would pass one"
        );
        assert_eq!(guarantee(1.0, 0.5).group(0), Ok(guarantee(0.0, 0.0)));
    }

    #[test]
    fn extremes_are_defined() {
        for epsilon in [0.0, 1e-300, 700.0, 1e300] {
            for delta in [0.0, 1e-300, 0.999] {
                let guarantee = guarantee(epsilon, delta);
                for p in [0.0, 5e-324, 0.5, 1.0] {
                    let misses = guarantee.false_negatives_min(&probability(p));
                    let posterior = guarantee.posterior(&probability(p));
                    assert!(
                        (0.0..=1.0).contains(&misses)
                            && (0.0..=1.0).contains(&guarantee.advantage_max())
                    );
                    assert!(
                        0.0 <= posterior.low
                            && posterior.low <= p
                            && p <= posterior.high
                            && posterior.high <= 1.0
                    );
                }
            }
        }
        assert_eq!(guarantee(0.0, 0.0).advantage_max(), 0.0);
    }

    #[test]
    fn gaussian_curve_passes_its_middle() {
        // At FPR = FNR both are Φ(-μ/2).
        let middle = 0.5 * libm::erfc(0.5 / std::f64::consts::SQRT_2);
        let found =
            gaussian_false_negatives_min(Mu::new(1.0).expect("a unit"), &probability(middle));
        assert!(found <= middle && found > middle - 1e-8, "{found} {middle}");
        let none = gaussian_false_negatives_min(Mu::new(0.0).expect("a unit"), &probability(0.3));
        assert!((none - 0.7).abs() < 1e-8);
    }

    /// Randomized response is the worst mechanism with its ε: everything above is attained by it.
    #[test]
    fn randomized_response_attains_the_bounds() {
        let epsilon = 3_f64.ln();
        let (keep, other) = (0.75, 0.25);
        check(guarantee(epsilon, 0.0).advantage_max(), keep - other);
        check(
            guarantee(epsilon, 0.0).false_negatives_min(&probability(other)),
            1.0 - keep,
        );
        check(
            guarantee(epsilon, 0.0).posterior(&probability(0.2)).high,
            0.2 * keep / (0.2 * keep + 0.8 * other),
        );
    }
}
