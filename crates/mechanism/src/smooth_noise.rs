//! # Noise in proportion to a smooth sensitivity
//! **Definition.** `M(x) = ⌊f(x) + (S(x)/α) Z + 1/2⌋` in steps of a public grid, for a smooth sensitivity `S` with
//!   `r S(x) <= S(x') <= S(x)/r` (`r = exp(-β)`) and `|f(x) - f(x')| <= min(S(x), S(x'))` for neighbours. \[NRS07\]
//! **Requires.** The three properties of a [`LocalSensitivity`].
//! **Guarantee.** By the kind of `Z`, for all neighbours:
//!
//! | `Z` | guarantee | if |
//! | --- | --- | --- |
//! | Cauchy | `ε`-DP | `α² <= min(X - 2, (X - r - 1/r)/r)` with `X = 2 cosh ε`; tight |
//! | Laplace | `(ε, δ)`-DP | `α = ε/2`, `β <= ε/2`, `(1-r) exp(-(ε/2+β) r/(1-r)) <= δ` |
//! | Laplace × `exp(σ·`normal`)` | `ρ`-zCDP | `β/σ + α exp(3σ²/2) <= √(2ρ)` |
//!
//! **Proof.** Rounding is post-processing, so consider the continuous `f + (S/α)Z`. Let `s, s'` be the two scales and
//!   `Δ = |f - f'|/min(s, s') <= α`.
//!
//!   *Cauchy.* In units of the smaller scale, with `λ = |ln(s/s')| <= β`, the ratio of the densities is one quadratic in the output
//!   over another. Its extremes over all outputs are the generalised eigenvalues of their matrices; these have determinant one and
//!   trace `T(λ) = 2 cosh λ + Δ² exp(-λ)`, in either direction. So the largest loss `ℓ` has `2 cosh ℓ = T(λ)`, exactly. `T` is convex
//!   in `λ`, hence largest at `λ = 0` or `λ = β`: `2 cosh ℓ <= max(2 + α², r + 1/r + α² r)`. This is
//!   at most `2 cosh ε` under the condition.
//!   (The customary `α = β = ε/6` follows, with much room to spare.)
//!
//!   *Laplace.* Stretch first. If `s < s'`, the density ratio is at most `s'/s <= exp(β) <= exp(ε/2)`. If `s = e^λ s'`, the ratio at
//!   `v = |y - f|/s` is `exp(v(e^λ - 1) - λ)`, which exceeds `exp(ε/2)` for `v > v₀ = (ε/2 + λ)/(e^λ - 1)`; the excess mass there is
//!   `e^{-v₀} - e^{ε/2} e^{-v₀ e^λ} = (1 - e^{-λ}) e^{-v₀}`, and it grows with `λ`. So
//!   `P(E) <= e^{ε/2} P″(E) + δ` for the mechanism with the new scale and the old centre. Then shift: `P″(E) <= e^Δ P'(E) <= e^{ε/2} P'(E)`.
//!   Together `P(E) <= e^ε P'(E) + δ`.
//!
//!   *Laplace log-normal.* Stretching by `e^λ` shifts the normal by `λ/σ`: a Rényi divergence of at most `a β²/(2σ²)` at order `a`.
//!   The density `g(z) = E[½ W e^{-W|z|}]`, `W = e^{-σY}`, has `|g'|/g = E[W²e^{-W|z|}]/E[We^{-W|z|}]`, a mean of `W` under weights that
//!   favour smaller `W` as `|z|` grows, hence at most its value `E[W²]/E[W] = e^{3σ²/2}` at zero. So a shift by `Δ` costs at most
//!   `α e^{3σ²/2}` in pure loss, and at most `a/2` times its square in Rényi divergence \[BS16\]. Divergences of at most `a p²/2` and
//!   `a q²/2` at all orders chain to `a (p+q)²/2`, by Hölder's inequality with the best exponents. \[BS19\]
//! **Sampler.** Exact: the real sum is drawn digit by digit until its rounding is decided. [`sample::real`](crate::sample)
//! **Error.** The scale depends on private data, so no error bar can be given.

use std::marker::PhantomData;

use dashu_base::SquareRoot;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::{
    Delta, Entropy, Epsilon, Error as UnitError, Event, Mechanism, Probability, Ratio, Relation,
    Rho, Secret,
};

use crate::sample::log_normal::LaplaceLogNormal;
use crate::sample::real::{Cauchy, Laplace, exp_between, round_sum};
use crate::smooth_sensitivity::{LocalSensitivity, Smoothness};
use crate::{Release, Result};

/// Adds noise whose scale follows the data, smoothly.
pub struct SmoothNoise<R: Relation> {
    kind: Kind,
    smoothness: Smoothness,
    /// `α`: the scale of the noise is the smooth sensitivity divided by this.
    alpha: RBig,
    cost: Mechanism,
    relation: PhantomData<R>,
}

#[derive(Clone, Copy)]
enum Kind {
    Laplace,
    Cauchy,
    LaplaceLogNormal,
}

/// Binary digits in the calibration: far more than any `δ` that passes needs.
const BITS: usize = 512;
/// Losses below `2^-20` leave nothing but noise, and above 64 none; between them the arithmetic has digits to spare.
const EPSILON: std::ops::RangeInclusive<f64> = 1.0 / 1_048_576.0..=64.0;
/// Concentrated losses, likewise.
const RHO: std::ops::RangeInclusive<f64> = 1.0 / 1_099_511_627_776.0..=1024.0;
/// Smaller than this is below the chance of a cosmic ray in every bit: `2^-200`.
const DELTA_MIN: f64 = 6.223015277861142e-61;

impl<R: Relation> SmoothNoise<R> {
    /// Cauchy noise: pure `ε`-DP, with heavy tails. Refuses `ε` outside `2^-20 ..= 64`.
    pub fn cauchy(epsilon: Epsilon) -> Result<Self> {
        check(
            "epsilon",
            epsilon.value(),
            EPSILON,
            "a number from 2^-20 to 64",
        )?;
        let exact = epsilon.to_ratio().as_rbig().clone();
        // A lower bound of X = 2 cosh ε: a larger ε only permits more.
        let x = exp_lower(&exact) + exp_lower(&-exact.clone());
        // With r = 1/(X-1) both conditions agree; below ε = 1 a smoother 0.7 ε does better, near the ε/√2 at which αβ is largest.
        let fast = exp_upper(&(-&exact * RBig::from_parts(IBig::from(7), UBig::from(10_u32))));
        let smoothness = Smoothness::from_decay(&fast.min(RBig::ONE / (&x - RBig::ONE)));
        let r = smoothness.decay().as_rbig().clone();
        let inverse = RBig::ONE / r;
        let stretched = &inverse * (&x - RBig::ONE / &inverse - &inverse);
        let alpha = sqrt_lower(&stretched.min(x - RBig::from(2)));
        let cost = Mechanism::Pure {
            epsilon: epsilon.to_ratio(),
        };
        Ok(Self::new(Kind::Cauchy, smoothness, alpha, cost))
    }

    /// Laplace noise: `(ε, δ)`-DP. Refuses `ε` outside `2^-20 ..= 64` and `δ < 2^-200`.
    pub fn laplace(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        check(
            "epsilon",
            epsilon.value(),
            EPSILON,
            "a number from 2^-20 to 64",
        )?;
        let domain = "a number of at least 2^-200 and less than 1";
        check("delta", delta.value(), DELTA_MIN..=1.0, domain)?;
        let half = epsilon.to_ratio().as_rbig() / RBig::from(2);
        let slack = Ratio::from_f64(delta.value()).expect("checked above");
        let passes = |smoothness: &Smoothness| {
            let r = smoothness.decay().as_rbig().clone();
            let rest = RBig::ONE - &r;
            // -ln r >= 2(1-r)/(1+r), so v₀ = (ε/2 - ln r) r/(1-r) is at least this.
            let v = &half * &r / &rest + RBig::from(2) * &r / (RBig::ONE + &r);
            rest * exp_upper(&-v) <= *slack.as_rbig()
        };
        // The fastest decay that passes, in units of 2^-63: from r = exp(-ε/2) on, and certainly within the last unit before one.
        let unit = |decay: u64| {
            Smoothness::from_decay(&RBig::from_parts(IBig::from(decay), UBig::ONE << 63))
        };
        let scaled = (exp_upper(&-&half) * RBig::from(UBig::ONE << 63)).ceil();
        let mut fast = u64::try_from(scaled).unwrap_or(1 << 63);
        let mut slow = (1 << 63) - 1;
        if !passes(&unit(fast)) {
            while slow - fast > 1 {
                let middle = fast + (slow - fast) / 2;
                if passes(&unit(middle)) {
                    slow = middle;
                } else {
                    fast = middle;
                }
            }
            fast = slow;
        }
        let cost = Mechanism::Approximate {
            epsilon: epsilon.to_ratio(),
            delta: Probability::new(slack)?,
        };
        Ok(Self::new(Kind::Laplace, unit(fast), half, cost))
    }

    /// Laplace noise times `exp(9/20 · normal)`: `ρ`-zCDP, with all moments finite. Refuses `ρ` outside `2^-40 ..= 1024`.
    ///
    /// The factor is near the `1/√5` at which the deviation, in proportion to `exp(5σ²/2)/σ` where `S` grows as `1/β`, is smallest.
    pub fn laplace_log_normal(rho: Rho) -> Result<Self> {
        check("rho", rho.value(), RHO, "a number from 2^-40 to 1024")?;
        let rho = Ratio::from_f64(rho.value()).expect("checked above");
        // Half of √(2ρ) goes to the stretch and half to the shift.
        let half = sqrt_lower(&(rho.as_rbig() / RBig::from(2)));
        let sigma = LaplaceLogNormal::sigma();
        let exponent = &sigma * &sigma * RBig::from(3) / RBig::from(2);
        let beta = Ratio::from_rbig(&half * sigma).expect("not negative");
        let alpha = half * exp_lower(&-exponent);
        let cost = Mechanism::Concentrated { rho };
        let smoothness = Smoothness::new(&beta);
        Ok(Self::new(Kind::LaplaceLogNormal, smoothness, alpha, cost))
    }

    fn new(kind: Kind, smoothness: Smoothness, alpha: RBig, cost: Mechanism) -> Self {
        Self {
            kind,
            smoothness,
            alpha,
            cost,
            relation: PhantomData,
        }
    }

    /// How smooth a sensitivity it needs.
    pub fn smoothness(&self) -> &Smoothness {
        &self.smoothness
    }

    /// `α`: the scale of the noise is the smooth sensitivity divided by this.
    pub fn alpha(&self) -> Ratio {
        Ratio::from_rbig(self.alpha.clone()).expect("alpha is positive")
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        Event::new(R::NEIGHBOURS, self.cost.clone())
    }

    /// Spends one `event`. The answer is in steps and saturates at the ends of the integers, which is post-processing.
    pub fn release<T: LocalSensitivity<R>>(
        &self,
        x: Secret<T>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<i128>> {
        let mut bits = entropy.open()?;
        let x = x.expose();
        let scale = x.smooth(&self.smoothness).steps() / &self.alpha;
        let noisy = match self.kind {
            Kind::Laplace => round_sum::<Laplace, _>(x.value(), &scale, &mut bits),
            Kind::Cauchy => round_sum::<Cauchy, _>(x.value(), &scale, &mut bits),
            Kind::LaplaceLogNormal => {
                round_sum::<LaplaceLogNormal, _>(x.value(), &scale, &mut bits)
            }
        };
        Ok(Release::new(noisy, self.event()))
    }
}

fn check(
    what: &'static str,
    given: f64,
    range: std::ops::RangeInclusive<f64>,
    domain: &'static str,
) -> Result<()> {
    if range.contains(&given) {
        return Ok(());
    }
    let given = given.to_string();
    Err(UnitError::OutOfDomain {
        what,
        given,
        domain,
    }
    .into())
}

pub(crate) fn exp_lower(x: &RBig) -> RBig {
    exp_between(x, BITS).0
}

/// Of a number that is not positive.
fn exp_upper(x: &RBig) -> RBig {
    let (_, upper) = exp_between(x, BITS);
    upper.expect("a negative exponent has an upper bound")
}

/// A rational just below the root of one that is not negative.
fn sqrt_lower(square: &RBig) -> RBig {
    let scaled = (square * RBig::from(UBig::ONE << BITS)).floor();
    let root = scaled.into_parts().1.sqrt();
    RBig::from_parts(root.into(), UBig::ONE << (BITS / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{judge, seed};
    use whit_core::ReplaceOne;
    use whit_testkit::{FailingEntropy, Seeded};

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("an epsilon")
    }

    fn cauchy(value: f64) -> SmoothNoise<ReplaceOne> {
        SmoothNoise::cauchy(epsilon(value)).expect("in range")
    }

    fn laplace(value: f64, delta: f64) -> SmoothNoise<ReplaceOne> {
        let delta = Delta::new(delta).expect("a delta");
        SmoothNoise::laplace(epsilon(value), delta).expect("in range")
    }

    fn beta(noise: &SmoothNoise<ReplaceOne>) -> f64 {
        -noise.smoothness().decay().to_f64_up().ln()
    }

    fn check(noise: &SmoothNoise<ReplaceOne>, alpha: f64, beta_expected: f64) {
        let (found, beta) = (noise.alpha().to_f64_up(), beta(noise));
        assert!((found / alpha - 1.0).abs() < 1e-4, "alpha {found}");
        assert!((beta / beta_expected - 1.0).abs() < 1e-3, "beta {beta}");
    }

    #[test]
    fn closed_form() {
        // 2 sinh(1/2) and ln(2 cosh 1 - 1); the customary 1/6 and 1/6 is six and four times worse.
        check(&cauchy(1.0), 1.042_19, 0.735_32);
        // At small ε: β = 0.7 ε, α² = e^β (2 cosh ε - 2 cosh β).
        check(&cauchy(0.1), 0.074_004, 0.07);
        // 2 sinh 4 and ln(2 cosh 8 - 1).
        check(&cauchy(8.0), 54.579_8, 7.999_66);
        // The customary β = ε/(2 ln(2/δ)) is 0.03446 and 0.003446.
        check(&laplace(1.0, 1e-6), 0.5, 0.049_68);
        check(&laplace(0.1, 1e-6), 0.05, 0.006_417);
        let noise = SmoothNoise::<ReplaceOne>::laplace_log_normal(Rho::new(0.5).expect("positive"));
        // √(2ρ)/2 = 1/2, times e^{-3·0.2025/2} and times 0.45.
        check(&noise.expect("in range"), 0.369_023, 0.225);
        assert!(matches!(
            cauchy(1.0).event().mechanism(),
            Mechanism::Pure { epsilon } if *epsilon == Ratio::one()
        ));
        assert!(matches!(
            laplace(1.0, 0.5).event().mechanism(),
            Mechanism::Approximate { .. }
        ));
    }

    /// What the table of \[NRS07\] permits is permitted here, and improved upon.
    #[test]
    fn never_worse_than_the_customary_constants() {
        for value in [0.01, 0.1, 0.5, 1.0] {
            let ours = cauchy(value);
            assert!(ours.alpha().to_f64_down() > value / 6.0 && beta(&ours) > value / 6.0);
            for delta in [1e-3_f64, 1e-6, 1e-12, 1e-40] {
                assert!(beta(&laplace(value, delta)) > value / (2.0 * (2.0 / delta).ln()));
            }
        }
    }

    /// However large `δ` is, `β <= ε/2`: the stretch may cost no more than its half of `ε`. It gets as far as that.
    #[test]
    fn laplace_noise_is_never_smoothed_faster_than_half_epsilon() {
        for value in [0.01, 0.5, 1.0, 4.0, 40.0] {
            let half = epsilon(value).to_ratio().as_rbig() / RBig::from(2);
            for delta in [1e-6, 0.1, 0.3, 0.5, 0.9, 0.999_999] {
                let decay = laplace(value, delta).smoothness().decay().clone();
                assert!(*decay.as_rbig() >= exp_lower(&-half.clone()), "{value}");
            }
            let fastest = beta(&laplace(value, 0.999_999)) / value;
            // With ε = 40 even this δ forbids it.
            assert!(value > 4.0 || (fastest - 0.5).abs() < 1e-3, "{fastest}");
        }
    }

    /// The mass by which Laplace noise of scale one around zero exceeds `e^ε` times that of scale `other` around `shift`.
    fn excess(epsilon: f64, shift: f64, other: f64) -> f64 {
        // The densities are exponentials between the two centres and outside of them, so a fine sum over 60 scales is close.
        let (reach, cells) = (60.0, 240_000);
        let width = 2.0 * reach / f64::from(cells);
        let density = |y: f64| 0.5 * (-y.abs()).exp();
        let excess = |i: i32| {
            let y = (f64::from(i) + 0.5) * width - reach;
            density(y) - epsilon.exp() * density((y - shift) / other) / other
        };
        (0..cells).map(|i| excess(i).max(0.0) * width).sum()
    }

    /// `(ε, δ)` by integration, for both directions of the stretch and of the shift, and how close they come.
    #[test]
    fn laplace_noise_keeps_its_delta() {
        let mut closest = 0.0_f64;
        for (value, delta) in [(1.0, 1e-2), (1.0, 0.3), (0.5, 1e-3), (4.0, 0.2)] {
            let noise = laplace(value, delta);
            let (alpha, beta) = (noise.alpha().to_f64_up(), beta(&noise));
            for stretch in [-1.0, -0.5, 0.0, 0.5, 1.0] {
                let other = (stretch * beta).exp();
                for shift in [-1.0, 0.0, 1.0] {
                    let found = excess(value, shift * alpha * other.min(1.0), other);
                    assert!(found <= delta * (1.0 + 1e-3) + 1e-7, "{value} {found}");
                    closest = closest.max(found / delta);
                }
            }
        }
        assert!(closest > 0.05, "{closest}");
    }

    /// A statistic whose sensitivities are made up.
    struct Made {
        value: i128,
        local: Vec<u64>,
    }

    impl LocalSensitivity<ReplaceOne> for Made {
        fn value(&self) -> i128 {
            self.value
        }
        fn global(&self) -> u64 {
            1000
        }
        fn at_distance(&self, changes: u64) -> u64 {
            self.local.get(changes as usize).copied().unwrap_or(1000)
        }
    }

    /// Same scale, full shift: outputs around `α/2 - √(1+α²/4)` scales tell most.
    fn seen(noise: &SmoothNoise<ReplaceOne>, local: u64, trials: u64) -> whit_audit::Verdict {
        let (mut one, mut other) = (Seeded::new(seed(5201)), Seeded::new(seed(5202)));
        let scale = 1000.0 / cauchy(1.0).alpha().to_f64_up();
        let event = |value: i128, entropy: &mut Seeded| {
            let x = Made {
                value,
                local: vec![local; 60],
            };
            let release = noise.release(Secret::new(x), entropy).expect("entropy");
            let z = *release.value() as f64 / scale;
            (-1.1..=-0.2).contains(&z)
        };
        judge(
            1.0,
            0.0,
            trials,
            || event(0, &mut one),
            || event(1000, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen(&cauchy(1.0), 1000, 150_000);
        assert!(!verdict.convicted, "{verdict:?}");
        assert!(verdict.epsilon_lower > 0.84, "{verdict:?}");
    }

    #[test]
    fn falsifier_has_teeth() {
        // Noise for ε = 5/4 under the name of 1, and a sensitivity that was seen here but is not smooth.
        assert!(seen(&cauchy(1.25), 1000, 100_000).convicted);
        assert!(seen(&cauchy(1.0), 600, 50_000).convicted);
    }

    #[test]
    fn rejects_what_is_no_budget() {
        for value in [0.0, 1e-9, 65.0] {
            assert!(SmoothNoise::<ReplaceOne>::cauchy(epsilon(value)).is_err());
            let delta = Delta::new(0.1).expect("a delta");
            assert!(SmoothNoise::<ReplaceOne>::laplace(epsilon(value), delta).is_err());
        }
        for delta in [0.0, 1e-70] {
            let delta = Delta::new(delta).expect("a delta");
            assert!(SmoothNoise::<ReplaceOne>::laplace(epsilon(1.0), delta).is_err());
        }
        let none = Rho::new(0.0).expect("not negative");
        assert!(SmoothNoise::<ReplaceOne>::laplace_log_normal(none).is_err());
        let made = Made {
            value: 0,
            local: vec![1],
        };
        assert!(
            cauchy(1.0)
                .release(Secret::new(made), &mut FailingEntropy)
                .is_err()
        );
    }
}
