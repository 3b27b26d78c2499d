//! # Numbers of runs
//! **Definition.** `K` with the law of a [`Repeats`]: truncated negative binomial with `-1 < η <= 1`, or Poisson.
//! **Sampler.** *Truncated negative binomial.* From `k = 1`: with probability `γ` answer `k`; else, with probability `(k+η)/(k+1)`, go on to `k+1`; else begin anew.
//!   *Poisson.* The sum of `⌈2μ⌉` independent ones of mean `ν <= 1/2`. For each: count successes until the first failure, where the `j`-th succeeds with probability
//!   `ν/j`; keep the count `n` with probability `(1-ν)(n+1)/(n+1-ν)`, else begin anew.
//! **Proof.** *First:* a round answers `k` with probability `γ Π_(l=1)^(k-1) (1-γ)(l+η)/(l+1)`, which is proportional to `Pr[K = k]`, and what is answered does not depend on the
//!   rounds before. For `η <= 1` the factors are probabilities. *Second:* at least `n` successes have the probability `ν^n/n!`, exactly `n` thus
//!   `ν^n/n! (1 - ν/(n+1))`; times the probability to keep it, `(1-ν) ν^n/n!`. Sums of Poisson variables are Poisson. All probabilities are rational, and drawn
//!   exactly.
//! **Tail.** Let `w_k` be proportional to `Pr[K = k]`, with quotients `w_(k+1)/w_k` that are at most `r < 1` from `n+1` on. Then
//!   `Pr[K > n] <= w_(n+1)/((1-r) Σ_(k<=n) w_k)`. For the first law the quotients are at most `1-γ`, for Poisson they fall. Numerator and sum are rounded outward.
//! **Time.** A round answers with probability at least `γ`, and has at most `1/γ` steps on average. It is a function of coins that never see data.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Probability, Ratio, Repeats};

use super::threshold::Bernoulli;

/// An exact sampler of the number of runs.
#[derive(Clone)]
pub struct Runs(Kind);

#[derive(Clone)]
enum Kind {
    Binomial {
        stop: Bernoulli,
        gamma: RBig,
        eta_plus_one: RBig,
    },
    Poisson {
        pieces: u64,
        mean: RBig,
    },
}

/// Beyond, nobody waits for the last run.
const MEAN_MAX: u64 = 1 << 20;
/// Tails further out are not looked at.
const TAIL_MAX: u64 = 100_000;

impl Runs {
    /// `None` for what is no law or has no sampler here: `η` above 1, means above `2^20`, a `γ` of zero.
    pub fn new(repeats: &Repeats) -> Option<Self> {
        match repeats {
            Repeats::TruncatedNegativeBinomial {
                eta_plus_one,
                gamma,
            } => {
                let shaped = !eta_plus_one.is_zero() && *eta_plus_one <= Ratio::from(2_u64);
                let ends = !gamma.ratio().is_zero();
                (shaped && ends).then(|| {
                    Self(Kind::Binomial {
                        stop: Bernoulli::new(gamma),
                        gamma: gamma.ratio().as_rbig().clone(),
                        eta_plus_one: eta_plus_one.as_rbig().clone(),
                    })
                })
            }
            Repeats::Poisson { mean } => {
                let twice = mean + mean;
                let pieces = u64::try_from(twice.ceil()).ok()?;
                (1..=2 * MEAN_MAX).contains(&pieces).then(|| {
                    Self(Kind::Poisson {
                        pieces,
                        mean: mean.as_rbig() / RBig::from(pieces),
                    })
                })
            }
            _ => None,
        }
    }

    /// An upper bound of `Pr[K > most]`; one where that says nothing.
    pub fn tail_upper(&self, most: u64) -> Probability {
        let certain = Probability::new(Ratio::one()).expect("one");
        if most > TAIL_MAX {
            return self.tail_upper(TAIL_MAX);
        }
        let (first, quotient): (u64, Box<dyn Fn(u64) -> RBig>) = match &self.0 {
            Kind::Binomial { eta_plus_one, .. } => (
                1,
                Box::new(move |k| {
                    self.stay() * (RBig::from(k - 1) + eta_plus_one) / RBig::from(k + 1)
                }),
            ),
            Kind::Poisson { pieces, mean } => {
                let mean = mean * RBig::from(*pieces);
                (0, Box::new(move |k| &mean / RBig::from(k + 1)))
            }
        };
        if most < first {
            return certain;
        }
        let (mut up, mut down, mut sum) = (RBig::ONE, RBig::ONE, RBig::ONE);
        for k in first..=most {
            let quotient = quotient(k);
            (up, down) = (
                rounded(up * &quotient, true),
                rounded(down * &quotient, false),
            );
            if k < most {
                sum += &down;
            }
        }
        let later = match &self.0 {
            Kind::Binomial { .. } => self.stay(),
            Kind::Poisson { .. } => quotient(most + 1),
        };
        if later >= RBig::ONE {
            return certain;
        }
        let tail = rounded(up / ((RBig::ONE - later) * sum), true);
        let tail = Ratio::from_rbig(tail).map(Probability::new);
        tail.and_then(Result::ok).unwrap_or(certain)
    }

    /// `1-γ`.
    fn stay(&self) -> RBig {
        match &self.0 {
            Kind::Binomial { gamma, .. } => RBig::ONE - gamma,
            Kind::Poisson { .. } => RBig::ZERO,
        }
    }

    /// Draws `K`.
    pub fn sample<B: Bits>(&self, bits: &mut B) -> u64 {
        match &self.0 {
            Kind::Binomial {
                stop, eta_plus_one, ..
            } => binomial(stop, eta_plus_one, bits),
            Kind::Poisson { pieces, mean } => (0..*pieces).map(|_| poisson(mean, bits)).sum(),
        }
    }
}

/// Multiples of `2^-128`, so that numbers stay short.
fn rounded(value: RBig, up: bool) -> RBig {
    let scaled = value * RBig::from(UBig::ONE << 128);
    let whole = if up { scaled.ceil() } else { scaled.floor() };
    RBig::from(whole) / RBig::from(UBig::ONE << 128)
}

fn binomial<B: Bits>(stop: &Bernoulli, eta_plus_one: &RBig, bits: &mut B) -> u64 {
    let mut k = 1_u64;
    loop {
        if stop.sample(bits) {
            return k;
        }
        let more = (RBig::from(k - 1) + eta_plus_one) / RBig::from(k + 1);
        k = if coin(more).sample(bits) { k + 1 } else { 1 };
    }
}

/// Of a mean of at most one half.
fn poisson<B: Bits>(mean: &RBig, bits: &mut B) -> u64 {
    loop {
        let mut count = 0_u64;
        while coin(mean / RBig::from(count + 1)).sample(bits) {
            count += 1;
        }
        let next = RBig::from(count + 1);
        let keep = (RBig::ONE - mean) * &next / (&next - mean);
        if coin(keep).sample(bits) {
            return count;
        }
    }
}

fn coin(probability: RBig) -> Bernoulli {
    let ratio = Ratio::from_rbig(probability).expect("a quotient of what is not negative");
    let probability = Probability::new(ratio).expect("at most one, by the proof above");
    Bernoulli::new(&probability)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crate::doubt;
    use whit_audit::enumerate::enumerate;
    use whit_audit::{Cells, g_test};
    use whit_testkit::SeededBits;

    /// `1 + η` and `γ`, in hundredths.
    fn binomial_law(power: u128, gamma: u128) -> Repeats {
        let ratio = |hundredths| Ratio::new(hundredths, 100).expect("a hundred");
        Repeats::TruncatedNegativeBinomial {
            eta_plus_one: ratio(power),
            gamma: Probability::new(ratio(gamma)).expect("a share"),
        }
    }

    fn poisson_law(mean: u128) -> Repeats {
        let mean = Ratio::new(mean, 100).expect("a hundred");
        Repeats::Poisson { mean }
    }

    fn laws() -> Vec<Repeats> {
        let mut laws: Vec<Repeats> = [(200, 10), (100, 10), (50, 25), (1, 50), (200, 100)]
            .map(|(power, gamma)| binomial_law(power, gamma))
            .into();
        laws.extend([10, 50, 100, 1000].map(poisson_law));
        laws
    }

    /// The closed forms: geometric, logarithmic, Poisson, and for other shapes their sums.
    fn pmf(repeats: &Repeats) -> Vec<f64> {
        match repeats {
            Repeats::TruncatedNegativeBinomial {
                eta_plus_one,
                gamma,
            } => {
                let (eta, gamma) = (eta_plus_one.to_f64_up() - 1.0, gamma.ratio().to_f64_up());
                let stay = 1.0 - gamma;
                // Pr[K = k] = (1-γ)^k Γ(k+η)/(k! Γ(η)) / (γ^(-η) - 1), and (1-γ)^k/(k ln(1/γ)).
                let mut weight = match (gamma, eta) {
                    (1.0, _) => 1.0,
                    (_, 0.0) => stay / (1.0 / gamma).ln(),
                    _ => stay * eta / (gamma.powf(-eta) - 1.0),
                };
                let mut all = vec![0.0];
                for k in 1..3000 {
                    all.push(weight);
                    weight *= stay * (f64::from(k) + eta) / f64::from(k + 1);
                }
                all
            }
            Repeats::Poisson { mean } => {
                let mean = mean.to_f64_up();
                let mut all = vec![(-mean).exp()];
                for k in 1..200 {
                    all.push(all[all.len() - 1] * mean / f64::from(k));
                }
                all
            }
            _ => unreachable!("two laws"),
        }
    }

    #[test]
    fn enumeration() {
        for repeats in laws() {
            let (runs, pmf) = (Runs::new(&repeats).expect("a law"), pmf(&repeats));
            assert!((pmf.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{repeats:?}");
            let found = enumerate::<1, _>(oracle::depth(), |tape| runs.sample(tape));
            let violations = found.violations(|&k| {
                let p = pmf.get(k as usize).copied().unwrap_or(0.0);
                let exact = |value: f64| RBig::try_from(value.max(0.0)).expect("finite");
                (exact(p - 1e-11), exact(p + 1e-11))
            });
            assert!(violations.is_empty(), "{repeats:?}: {violations:?}");
        }
    }

    /// The worse of two tries, as in `fit.rs`.
    fn p_value(repeats: &Repeats, mut draw: impl FnMut() -> u64) -> f64 {
        let pmf = pmf(repeats);
        let cells: Vec<f64> = pmf.into_iter().take(400).collect();
        let draws = (0..100_000).map(|_| draw() as usize);
        let tally = Cells::tally(cells.len(), draws);
        tally.g_test(&cells).expect("probabilities").p_value
    }

    #[test]
    fn fits() {
        let mut bits = SeededBits::new(doubt::seed(161));
        for repeats in laws() {
            let runs = Runs::new(&repeats).expect("a law");
            let found = p_value(&repeats, || runs.sample(&mut bits));
            assert!(found >= doubt::ALPHA, "{repeats:?}: {found:e}");
        }
    }

    /// Twins that never begin anew: a geometric law instead of a logarithmic one, and counts of successes instead of Poisson variables.
    #[test]
    fn the_fit_has_teeth() {
        let mut bits = SeededBits::new(doubt::seed(162));
        let logarithmic = binomial_law(100, 10);
        let geometric = Runs::new(&binomial_law(200, 10)).expect("a law");
        let found = p_value(&logarithmic, || geometric.sample(&mut bits));
        assert!(found < doubt::ALPHA, "{found:e}");
        let half = poisson_law(50);
        let mean = RBig::from_parts(1.into(), 2_u32.into());
        let successes = |bits: &mut SeededBits| {
            let mut count = 0;
            while coin(&mean / RBig::from(count + 1)).sample(bits) {
                count += 1;
            }
            count
        };
        let found = p_value(&half, || successes(&mut bits));
        assert!(found < doubt::ALPHA, "{found:e}");
        // And a mean that is a fiftieth off.
        let off = Runs::new(&poisson_law(1020)).expect("a law");
        let found = p_value(&poisson_law(1000), || off.sample(&mut bits));
        assert!(found < doubt::ALPHA, "{found:e}");
        let fair = g_test(&[500, 500], &[0.5, 0.5]).expect("probabilities");
        assert!(fair.p_value > 0.9);
    }

    #[test]
    fn tails_are_bounded_and_hardly_more() {
        for repeats in laws() {
            let (runs, pmf) = (Runs::new(&repeats).expect("a law"), pmf(&repeats));
            for most in [0, 1, 2, 5, 12, 40] {
                let exact: f64 = pmf.iter().skip(most + 1).sum();
                let found = runs.tail_upper(most as u64).ratio().to_f64_up();
                assert!(
                    found >= exact * (1.0 - 1e-9),
                    "{repeats:?} {most}: {found} {exact}"
                );
                let close = found <= 3.0 * exact + 1e-30 || most < 12;
                assert!(close, "{repeats:?} {most}: {found} {exact}");
            }
        }
    }

    #[test]
    fn what_is_no_law_has_no_sampler() {
        for repeats in [
            binomial_law(201, 10),
            binomial_law(0, 10),
            binomial_law(200, 0),
            poisson_law(0),
            poisson_law(1_000_000_000_000),
        ] {
            assert!(Runs::new(&repeats).is_none(), "{repeats:?}");
        }
    }
}
