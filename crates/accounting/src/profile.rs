//! # The profile of one mechanism, at a loss
//! For a pair `(P, Q)` with privacy loss `L = ln(P/Q)` a grid needs, at a loss `l`, the tails `P(L > l)` and `e^l Q(L > l)`, and
//! their difference, the profile `δ(l)`. As a function of `t = e^l` the profile is `h(t) = sup_S P(S) - tQ(S)`: convex and
//! falling, with `h(0) = P(all)`.
//!
//! **Base pairs.** `f_1` against `f_0`, with tails `A_1 = f_1(B > β)` and `A_0 = f_0(B > β)` of their loss `B` and
//! `δ_B = A_1 - e^β A_0`. Gaussian: `gaussian.rs`, `A_0 = S(σβ + 1/(2σ))` and `A_1 = S(σβ - 1/(2σ))`. Laplace with `a = 1/b`: on
//! `[-a, a)`, `A_0 = ½ e^(-(a+β)/2)` and `A_1 = 1 - ½ e^(-(a-β)/2)`; so `δ_B = max(0, 1 - e^β, 1 - e^((β-a)/2))`.
//!
//! **Samples** [ZDW22, Prop 30]. The likelihood ratio of each pair grows or falls with that of the base, so `{L > l}` is a tail of
//! `B`.
//! - *Remove*: `L > l` iff `e^B > 1 + (e^l-1)/q =: e^β`. The tails are `(1-q) A_0 + q A_1` and `e^l A_0`, and `δ = q δ_B(β)`; all
//!   of it where `e^l <= 1-q`.
//! - *Add*: `L > l` iff `B < β(-l)`, which by symmetry of the noise is the tail beyond `-β` with the roles of `f_0` and `f_1`
//!   exchanged: the tails are `A_1(-β)` and `e^l ((1-q) A_1(-β) + q A_0(-β))`, and `δ = e^l (q + e^-l - 1) δ_B(-β)`; zero where
//!   `e^-l <= 1-q`.
//! - *Replace*: symmetric, so `P(L > -l) = 1 - Q(L > l)` and the like (up to atoms, which are not asked for), and
//!   `δ(-l) = 1 - e^-l + e^-l δ(l)`. For `l >= 0` the threshold `τ` of the noise solves
//!   `(1-q) f_0 + q f_1 = e^l ((1-q) f_0 + q f_-1)`. With `F_x` the noise's tail beyond `τ` around `x`, the tails are
//!   `(1-q) F_0 + q F_1` and `e^l ((1-q) F_0 + q F_-1)`, and `δ = q (F_1 - F_-1) - (e^l - 1)((1-q) F_0 + q F_-1)`.
//!
//! Everything is computed in brackets, or in floats with a bound of their error where that is plain; where the place of an
//! atom against `l` is undecided both answers are held.

use crate::Bracket;
use crate::gaussian::Gaussian;
use crate::normal::{survival, survival_at, within};
use crate::pair::{Change, Pair};

/// One pair of distributions, by the profile of its finite losses.
pub(crate) trait Profile {
    /// At least `δ(l)`, infinite losses not counted.
    fn delta_upper(&self, loss: f64) -> f64;

    /// The masses of losses beyond `l`, infinite ones not counted.
    fn tails(&self, loss: f64) -> Tails;

    /// The mass of infinite losses.
    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    /// At least the mass of finite losses.
    fn finite_upper(&self) -> f64 {
        1.0
    }

    /// The least and the largest finite loss, as far as they are finite.
    fn ends(&self) -> Ends;

    /// How far from an atom tails must be asked for to tell on which side of it that is, beyond what floats tell apart.
    fn atom_room(&self) -> f64 {
        0.0
    }
}

/// The masses of large losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tails {
    /// `P(L > l)`.
    pub(crate) p: Bracket,
    /// `e^l Q(L > l)`.
    pub(crate) q: Bracket,
}

impl Tails {
    pub(crate) const ZERO: Self = Self {
        p: Bracket::ZERO,
        q: Bracket::ZERO,
    };
}

/// Where the finite losses of a pair end; infinite where they do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ends {
    pub(crate) bottom: Bracket,
    pub(crate) top: Bracket,
    /// Whether the ends have a mass of their own, so that it matters where a grid meets them.
    pub(crate) atoms: bool,
}

/// The noise under a pair.
#[derive(Clone, Copy, Debug)]
enum Base {
    Gaussian { sigma: Bracket, mu: Bracket },
    Laplace { inverse: Bracket },
}

fn known(value: f64) -> Bracket {
    Bracket::exact(value)
}

fn one() -> Bracket {
    known(1.0)
}

fn half() -> Bracket {
    known(0.5)
}

impl Base {
    fn gaussian(sigma: f64) -> Self {
        Base::Gaussian {
            sigma: known(sigma),
            mu: one() / known(sigma),
        }
    }

    fn laplace(scale: f64) -> Self {
        Base::Laplace {
            inverse: one() / known(scale),
        }
    }

    fn delta_upper(self, beta: f64) -> f64 {
        match self {
            Base::Gaussian { mu, .. } => Gaussian {
                mu: known(mu.upper()),
            }
            .delta(beta)
            .upper(),
            Base::Laplace { inverse } => laplace_delta(beta, inverse.upper()).upper(),
        }
    }

    /// `A_0`.
    fn tail_zero(self, beta: Bracket) -> Bracket {
        match self {
            Base::Gaussian { sigma, mu } => survival(beta * sigma + mu * half()),
            Base::Laplace { inverse } => laplace_tail(beta, inverse, |beta| {
                half() * (-(inverse + beta) * half()).exp()
            }),
        }
    }

    /// `A_1`.
    fn tail_one(self, beta: Bracket) -> Bracket {
        match self {
            Base::Gaussian { sigma, mu } => survival(beta * sigma - mu * half()),
            Base::Laplace { inverse } => laplace_tail(beta, inverse, |beta| {
                one() - half() * ((beta - inverse) * half()).exp()
            }),
        }
    }

    fn ends(self) -> Ends {
        match self {
            Base::Gaussian { .. } => Ends {
                bottom: known(f64::NEG_INFINITY),
                top: known(f64::INFINITY),
                atoms: false,
            },
            Base::Laplace { inverse } => Ends {
                bottom: -inverse,
                top: inverse,
                atoms: true,
            },
        }
    }
}

/// One rounding of the difference, which counts at most once (`|h|e^h <= 1 - e^h` for `h < 0`), and two units of `expm1`.
fn laplace_delta(beta: f64, inverse: f64) -> Bracket {
    let value = (-libm::expm1(beta)).max(-libm::expm1(0.5 * (beta - inverse)));
    if value > 0.0 {
        within(value, 4.0 * f64::EPSILON)
    } else {
        Bracket::ZERO
    }
}

/// A falling function that is 1 below `-a`, `inner` up to `a` and 0 from there on; `lower` and `upper` are decided apart.
fn laplace_tail(beta: Bracket, inverse: Bracket, inner: impl Fn(Bracket) -> Bracket) -> Bracket {
    let lower = if beta.upper() < -inverse.upper() {
        1.0
    } else if beta.upper() < inverse.lower() {
        inner(beta).lower().clamp(0.0, 1.0)
    } else {
        0.0
    };
    let upper = if beta.lower() < -inverse.lower() {
        1.0
    } else if beta.lower() < inverse.upper() {
        inner(beta).upper().clamp(0.0, 1.0)
    } else {
        0.0
    };
    Bracket::new(lower, upper)
}

/// A pair with everything that does not depend on the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairProfile {
    base: Base,
    rate: f64,
    change: Change,
}

impl PairProfile {
    pub(crate) fn new(pair: &Pair) -> Self {
        let (base, rate, change) = match *pair {
            Pair::Gaussian { sigma } => (Base::gaussian(sigma), 1.0, Change::Remove),
            Pair::Laplace { scale } => (Base::laplace(scale), 1.0, Change::Remove),
            Pair::SampledGaussian {
                rate,
                sigma,
                change,
            } => (Base::gaussian(sigma), rate, change),
            Pair::SampledLaplace {
                rate,
                scale,
                change,
            } => (Base::laplace(scale), rate, change),
        };
        Self { base, rate, change }
    }

    /// `β(l)` as a float and a bound of its error, where that is plain: `expm1` and `log1p` err by less than two units each.
    fn beta_near(&self, loss: f64) -> Option<(f64, f64)> {
        if self.rate >= 1.0 {
            return Some((loss, 0.0));
        }
        let ratio = libm::expm1(loss) / self.rate;
        let whole = 1.0 + ratio;
        if !(whole > 1e-3 && loss < 30.0) {
            return None;
        }
        let beta = libm::log1p(ratio);
        Some((
            beta,
            f64::EPSILON * (4.0 * ratio.abs() / whole + 3.0 * beta.abs()),
        ))
    }

    /// The factor `e^l (q + e^-l - 1)` of a unit that joins, up to a relative error, where that is plain: two units of
    /// `expm1`, a sum, `exp` and a product.
    fn joined_near(&self, loss: f64) -> Option<(f64, f64)> {
        let shrunk = libm::expm1(-loss);
        let sum = self.rate + shrunk;
        let factor = libm::exp(loss) * sum;
        let plain = sum > 1e-3 * self.rate && factor > 1e-290 && factor.is_finite();
        plain.then(|| (factor, f64::EPSILON * (6.0 + 3.0 * shrunk.abs() / sum)))
    }

    /// `A_0` and `A_1` beyond `β ± error`, for Gaussian noise. The places are rounded three times, and the hazard rate of the
    /// normal law is below `1 + x`, and below `2φ(x)` for `x < 0`.
    fn gaussian_tails(sigma: f64, beta: f64, error: f64) -> [Bracket; 2] {
        let (middle, shift) = (sigma * beta, 0.5 / sigma);
        let error = 1.01 * sigma * error + 2.0 * f64::EPSILON * (middle.abs() + shift);
        [middle + shift, middle - shift].map(|place| {
            let found = survival_at(place);
            let square = 0.5 * place * place;
            let hazard = if place < 0.0 {
                0.8 / (1.0 + square + 0.5 * square * square)
            } else {
                1.0 + place
            };
            // Also at places up to the error further, which is far below 1.
            let room = 1.1 * error * hazard + error * error;
            Bracket::new(
                (found.lower() * (1.0 - room)).next_down().max(0.0),
                (found.upper() * (1.0 + room)).next_up().min(1.0),
            )
        })
    }

    /// `β(l) = ln(1 + (e^l - 1)/q)`; the lower end is `-∞` where `e^l` is perhaps not above `1-q`.
    fn beta(&self, loss: f64) -> Bracket {
        if self.rate >= 1.0 {
            return known(loss);
        }
        let rate = known(self.rate);
        if loss > 30.0 {
            // e^l (1 - (1-q)e^-l)/q.
            return known(loss) - rate.ln() + ((rate - one()) * known(-loss).exp()).ln_1p();
        }
        (known(loss).exp_m1() / rate).ln_1p()
    }

    /// At `l >= 0`: the tails and the profile of a unit that changes.
    fn replaced(&self, loss: f64) -> (Tails, Bracket) {
        let (rate, stay) = (known(self.rate), one() - known(self.rate));
        let grown = known(loss).exp_m1();
        let [minus, zero, plus] = match self.base {
            Base::Gaussian { sigma, mu } => {
                // With y = e^(τ/σ²) and r = e^(-1/(2σ²)), q r y² - (1-q)(e^l - 1) y - q r e^l = 0. All terms are positive.
                let half_square = mu * mu * half();
                let middle = known(loss / 2.0);
                let share = stay * grown * (-middle).exp();
                let root = rate * (-half_square).exp();
                let double = known(2.0);
                let discriminant = (share * share + known(4.0) * root * root).sqrt();
                let ln_y = middle + ((share + discriminant) / (double * rate)).ln() + half_square;
                let place = ln_y * sigma;
                [place + mu, place, place - mu].map(survival)
            }
            Base::Laplace { inverse } => {
                // On 0 <= τ < 1, e^((2τ-1)/b) = e^(-1/b) + (e^l - 1)(1 - q + q e^(-1/b))/q.
                let power = (-inverse).exp();
                let density = stay + rate * power;
                let exponent = (power + grown * density / rate).ln();
                // τ/b, which is 1/b from the largest loss on.
                let place = (inverse + exponent) * half();
                if place.lower() >= inverse.upper() {
                    return (Tails::ZERO, Bracket::ZERO);
                }
                let place = place.clamp(0.0, inverse.upper());
                let found = [
                    half() * (-(place + inverse)).exp(),
                    half() * (-place).exp(),
                    one() - half() * (place - inverse).exp(),
                ];
                if place.upper() < inverse.lower() {
                    found
                } else {
                    found.map(|tail| tail.hull(Bracket::ZERO))
                }
            }
        };
        // Products may round below zero, which e^l would blow up.
        let tail = (stay * zero + rate * minus).clamp(0.0, 1.0);
        let p = (stay * zero + rate * plus).clamp(0.0, 1.0);
        let q = (known(loss).exp() * tail).clamp(0.0, p.upper());
        let delta = rate * (plus - minus) - grown * tail;
        (Tails { p, q }, delta.clamp(0.0, p.upper()))
    }

    /// Tails and profile of a unit that changes, at any loss.
    fn replace(&self, loss: f64) -> (Tails, Bracket) {
        if loss > FAR {
            let (tails, delta) = self.replaced(FAR);
            let below = |bracket: Bracket| Bracket::new(0.0, bracket.upper());
            // e^l Q(L > l) stays below P(L > l).
            let (p, q) = (below(tails.p), below(tails.p));
            return (Tails { p, q }, below(delta));
        }
        if loss < -FAR {
            let (above, power) = (self.replaced(FAR).0, known(loss).exp());
            let p = Bracket::new((one() - above.p).lower(), 1.0);
            let q = Bracket::new(0.0, power.upper());
            return (Tails { p, q }, Bracket::new((one() - power).lower(), 1.0));
        }
        if loss >= 0.0 {
            return self.replaced(loss);
        }
        let (tails, delta) = self.replaced(-loss);
        let power = known(loss).exp();
        (
            Tails {
                p: (one() - power * tails.q).clamp(0.0, 1.0),
                q: (power * (one() - tails.p)).clamp(0.0, 1.0),
            },
            (power * delta - known(loss).exp_m1()).clamp(0.0, 1.0),
        )
    }

    /// The profile in brackets, for what is not plain; a lower end is not needed.
    fn delta(&self, loss: f64) -> f64 {
        let rate = known(self.rate);
        let all = (-known(loss).exp_m1()).clamp(0.0, 1.0);
        let found = match self.change {
            Change::Remove => {
                let beta = self.beta(loss);
                if beta.lower() == f64::NEG_INFINITY {
                    // q δ_B <= q, and q <= 1 - e^l where everything is beyond l.
                    all.max(rate)
                } else {
                    rate * known(self.base.delta_upper(beta.lower()))
                }
            }
            Change::Add => {
                let beta = self.beta(-loss);
                if beta.upper() == f64::NEG_INFINITY {
                    return 0.0;
                }
                let factor = known(loss).exp() * (rate + known(-loss).exp_m1());
                factor.clamp(0.0, 1.0) * known(self.base.delta_upper(-beta.upper()))
            }
            Change::Replace => self.replace(loss).1,
        };
        found.upper().min(1.0)
    }
}

/// A few roundings.
const MIX_ERROR: f64 = 4.0 * f64::EPSILON;
/// Beyond this loss a unit that changes is only bounded.
const FAR: f64 = 700.0;

impl Profile for PairProfile {
    fn delta_upper(&self, loss: f64) -> f64 {
        if self.change == Change::Remove
            && let Some((beta, error)) = self.beta_near(loss)
        {
            let part = self.base.delta_upper((beta - error).next_down());
            return (self.rate * part).next_up().min(1.0);
        }
        if self.change == Change::Add
            && let Some((beta, error)) = self.beta_near(-loss)
            && let Some((factor, room)) = self.joined_near(loss)
        {
            let part = self.base.delta_upper((-beta - error).next_down());
            return (factor * (1.0 + room) * part).next_up().min(1.0);
        }
        self.delta(loss)
    }

    fn tails(&self, loss: f64) -> Tails {
        let stay = one() - known(self.rate);
        let sign = match self.change {
            Change::Remove => 1.0,
            Change::Add => -1.0,
            Change::Replace => return self.replace(loss).0,
        };
        let near = match self.base {
            Base::Gaussian { sigma, .. } => self
                .beta_near(sign * loss)
                .map(|(beta, error)| Self::gaussian_tails(sigma.upper(), sign * beta, error)),
            Base::Laplace { .. } => None,
        };
        let [zero, one] = match near {
            Some(tails) => tails,
            None => {
                let beta = self.beta(sign * loss);
                if beta.upper() == f64::NEG_INFINITY {
                    return match self.change {
                        Change::Remove => Tails {
                            p: one(),
                            q: known(loss).exp(),
                        },
                        _ => Tails::ZERO,
                    };
                }
                let place = if sign > 0.0 { beta } else { -beta };
                [self.base.tail_zero(place), self.base.tail_one(place)]
            }
        };
        // A rounded sum of two rounded products, and 1 - q rounded too.
        let mix = |near: Bracket, far: Bracket| {
            let sum = |near: f64, far: f64| stay.lower() * near + self.rate * far;
            Bracket::new(
                (sum(near.lower(), far.lower()) * (1.0 - MIX_ERROR))
                    .next_down()
                    .max(0.0),
                (sum(near.upper(), far.upper()) * (1.0 + MIX_ERROR))
                    .next_up()
                    .min(1.0),
            )
        };
        let (p, q) = match self.change {
            Change::Remove => (mix(zero, one), zero),
            _ => (one, mix(one, zero)),
        };
        let grown = libm::exp(loss);
        let q = if grown.is_finite() && grown > 1e-290 {
            Bracket::new(
                (grown * q.lower() * (1.0 - MIX_ERROR)).next_down().max(0.0),
                (grown * q.upper() * (1.0 + MIX_ERROR)).next_up(),
            )
        } else {
            (known(loss).exp() * q).clamp(0.0, f64::INFINITY)
        };
        // e^l Q(L > l) stays below P(L > l).
        Tails {
            p,
            q: q.clamp(0.0, p.upper()),
        }
    }

    fn ends(&self) -> Ends {
        let Ends { bottom, top, atoms } = self.base.ends();
        if self.rate >= 1.0 && self.change == Change::Remove {
            return self.base.ends();
        }
        let (rate, stay) = (known(self.rate), one() - known(self.rate));
        // ln(1 - q + q e^B), with both ends exact where B is infinite.
        let mixed = |end: Bracket| {
            if end.upper() == f64::NEG_INFINITY {
                stay.ln()
            } else if end.lower() == f64::INFINITY {
                end
            } else if end.lower() > FAR {
                // The power itself may be beyond the floats; this one is not.
                let whole = end + rate.ln();
                let above = whole + (stay * (-whole).exp()).ln_1p();
                let below = (whole.exp() - rate).ln_1p();
                if whole.lower() > 0.0 { above } else { below }
            } else {
                (rate * end.exp_m1()).ln_1p()
            }
        };
        let (bottom, top) = match self.change {
            Change::Remove => (mixed(bottom), mixed(top)),
            Change::Add => (-mixed(top), -mixed(bottom)),
            Change::Replace => {
                let top = if atoms {
                    mixed(top) - mixed(bottom)
                } else {
                    top
                };
                (-top, top)
            }
        };
        Ends { bottom, top, atoms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: [Change; 3] = [Change::Remove, Change::Add, Change::Replace];

    fn profile(base: &str, rate: f64, width: f64, change: Change) -> PairProfile {
        PairProfile::new(&match base {
            "gaussian" => Pair::SampledGaussian {
                rate,
                sigma: width,
                change,
            },
            _ => Pair::SampledLaplace {
                rate,
                scale: width,
                change,
            },
        })
    }

    /// Sums the two densities over a fine grid of outcomes: independent of thresholds and tails.
    fn summed(base: &str, rate: f64, width: f64, change: Change, loss: f64) -> [f64; 3] {
        let noise = |x: f64, centre: f64| {
            let z = (x - centre) / width;
            match base {
                "gaussian" => (-0.5 * z * z).exp() / (width * std::f64::consts::TAU.sqrt()),
                _ => (-z.abs()).exp() / (2.0 * width),
            }
        };
        let reach = 40.0 * width + 2.0;
        let count = 400_000;
        let step = 2.0 * reach / f64::from(count);
        let mut sums = [0.0; 3];
        for index in 0..count {
            let x = -reach + (f64::from(index) + 0.5) * step;
            let at = |centre: f64| (1.0 - rate) * noise(x, 0.0) + rate * noise(x, centre);
            let (p, q) = match change {
                Change::Remove => (at(1.0), noise(x, 0.0)),
                Change::Add => (noise(x, 0.0), at(1.0)),
                Change::Replace => (at(1.0), at(-1.0)),
            };
            if p > loss.exp() * q {
                sums[0] += step * p;
                sums[1] += step * loss.exp() * q;
                sums[2] += step * (p - loss.exp() * q);
            }
        }
        sums
    }

    #[test]
    fn tails_and_profiles_are_sums_of_densities() {
        for base in ["gaussian", "laplace"] {
            for change in CHANGES {
                for (rate, width) in [(0.1, 1.0), (0.7, 0.6)] {
                    let profile = profile(base, rate, width, change);
                    for loss in [-1.37, -0.3, -0.051, 0.013, 0.09, 0.63, 1.9] {
                        let [p, q, delta] = summed(base, rate, width, change, loss);
                        let tails = profile.tails(loss);
                        let found = profile.delta_upper(loss);
                        let what = format!("{base} {change:?} {rate} {loss}");
                        // The cell that holds the threshold, and the kinks of Laplace, are worth 1e-4 of mass.
                        assert!(
                            (tails.p.estimate() - p).abs() < 2e-4,
                            "{what}: {tails:?} {p}"
                        );
                        assert!(
                            (tails.q.estimate() - q).abs() < 2e-4,
                            "{what}: {tails:?} {q}"
                        );
                        assert!((found - delta).abs() < 1e-7, "{what}: {found} {delta}");
                    }
                }
            }
        }
    }

    /// The profile is the difference of the tails, falls, and is at least `1 - e^l`.
    #[test]
    fn brackets_agree_and_are_narrow() {
        for base in ["gaussian", "laplace"] {
            for change in CHANGES {
                for (rate, width) in [
                    (1e-6, 0.7),
                    (0.01, 4.0),
                    (0.3, 0.3),
                    (1.0, 2.0),
                    (0.5, 30.0),
                ] {
                    let profile = profile(base, rate, width, change);
                    let mut last = 1.0;
                    for index in -400..=400 {
                        let loss = 1e-3 * f64::from(index) * (1.0 + f64::from(index).abs() / 40.0);
                        let (tails, delta) = (profile.tails(loss), profile.delta_upper(loss));
                        let difference = tails.p - tails.q;
                        let what = format!("{base} {change:?} {rate} {width} {loss}");
                        assert!(
                            delta >= difference.lower(),
                            "{what}: {delta} {difference:?}"
                        );
                        assert!(
                            delta <= difference.upper() * (1.0 + 1e-9) + 1e-14,
                            "{what}: {delta} {difference:?}"
                        );
                        assert!(
                            tails.p.upper() - tails.p.lower() <= 1e-11,
                            "{what}: {tails:?}"
                        );
                        assert!(
                            delta <= last * (1.0 + 1e-12) && delta >= -loss.exp_m1(),
                            "{what}"
                        );
                        last = delta;
                    }
                }
            }
        }
    }

    #[test]
    fn ends_are_where_the_profile_is_zero_and_the_tail_is_all() {
        for change in CHANGES {
            for rate in [0.01, 0.5, 1.0] {
                let profile = profile("laplace", rate, 0.8, change);
                let Ends {
                    bottom, top, atoms, ..
                } = profile.ends();
                assert!(atoms && top.relative_width() < 1e-13);
                assert!(profile.tails(top.upper() * (1.0 + 1e-12)).p.upper() < 1e-300);
                assert!(profile.tails(top.lower() * (1.0 - 1e-12)).p.lower() > 1e-6);
                let below = bottom.lower() * (1.0 + 1e-12);
                assert!(profile.tails(below).p.holds(1.0));
                assert!(profile.tails(bottom.upper() * (1.0 - 1e-12)).p.upper() < 1.0 - 1e-6);
            }
        }
    }

    /// `ln(1 - q + q e^(1/b))`, by mpmath 1.3.0, and less the like with `-1/b` for a unit that changes; and where only its size is known.
    #[test]
    fn ends_beyond_the_powers_are_finite() {
        for (rate, scale, truth) in [
            (0.5, 1.0 / 1024.0, 1_023.306_852_819_440_1),
            (0.1, 1.0 / 2048.0, 2_045.697_414_907_006),
            (0.5, 1.0 / 709.75, 709.056_852_819_440_1),
            (2.0_f64.powi(-1000), 1.0 / 1024.0, 330.852_819_440_054_7),
            (2.0_f64.powi(-1030), 1.0 / 704.0, 4.812_927_002_620_305e-5),
        ] {
            let Ends { top, .. } = profile("laplace", rate, scale, Change::Remove).ends();
            let room = 1e-13 * (truth + 1.0 / scale);
            assert!(
                top.lower() <= truth + room && truth - room <= top.upper(),
                "{top:?} {truth}"
            );
            assert!(top.upper() - top.lower() <= room, "{top:?} {truth}");
            let Ends { bottom, .. } = profile("laplace", rate, scale, Change::Add).ends();
            assert_eq!(bottom, -top);
        }
        for scale in [1e-6, 1e-100, 1e-300] {
            for rate in [1e-300, 0.5, 1.0 - 1e-16] {
                for change in CHANGES {
                    let Ends { bottom, top, .. } = profile("laplace", rate, scale, change).ends();
                    assert!(top.upper().is_finite() && bottom.lower().is_finite());
                    assert!(top.upper() - bottom.lower() >= 0.99 / scale);
                }
            }
        }
    }

    #[test]
    fn far_losses_are_no_trouble() {
        for base in ["gaussian", "laplace"] {
            for change in CHANGES {
                let profile = profile(base, 0.01, 0.2, change);
                for loss in [50.0, 300.0, 800.0, 1e5, 1e300] {
                    assert!(profile.delta_upper(loss) <= 1.0 && profile.delta_upper(loss) >= 0.0);
                    assert!(profile.delta_upper(-loss) >= 1.0 - 1e-15);
                    let (far, near) = (profile.tails(loss), profile.tails(-loss));
                    assert!(far.p.lower() >= 0.0 && far.q.lower() >= 0.0 && near.p.upper() <= 1.0);
                }
            }
        }
    }
}
