//! # The best of a random number of runs
//! Somebody runs a mechanism `K` times, afresh each time, and releases the best run alone, by a score that is part of what a run gives. For a fixed
//! `K` that may cost `K` times as much. Where `K` is random and stays hidden it costs little more than a few runs. [LT19, PS22]
//!
//! **Setting.** `K` is drawn without looking at the data; `f(t) = E[t^K]`, so that `f'(1) = E[K]`. A run has the law `Q` on one data set and `Q'` on its
//! neighbour, with `Q(S) - e^ε Q'(S) <= δ(ε)` for all `S` and `ε >= 0`, both ways round; `H(c) = sup_S Q(S) - cQ'(S)` is at most `δ(ln c)` for `c >= 1`, and
//! `1 - c + cδ(-ln c)` below, by complements. `T(s) = min(1, inf_c cs + H(c))` is the most that `Q'` gives to a set with `Q(S) = s`.
//!
//! **Theorem.** Let `A` and `A'` be the laws of what is released. For every `ε >= 0` and every measurable `S`,
//! `A(S) - e^ε A'(S) <= E_{Q'}[h(dQ/dQ')]` with the convex `h(x) = sup_s (f'(1-s) x - e^ε f'(1-T(s)))₊` over `s` from 0 to 1.
//! *Proof.*
//! 1. Runs with equal scores are alike, so whichever of them is taken, by what does not depend on them: the law is that of comparing `(score, U)` with a
//!    uniform `U` for each run, which is data-independent and changes no profile. So let ties have probability zero.
//! 2. Let `s(y)` be the probability under `Q` that a run is better than `y`, and `s'(y)` that under `Q'`. Of `k` runs, each is `y` and the best with density
//!    `(1-s(y))^(k-1) dQ(y)`, so `dA = f'(1-s) dQ` and `dA' = f'(1-s') dQ'`. Without a run (Poisson) both release the same thing, which adds
//!    `Pr[K=0](1-e^ε)₊ = 0`.
//! 3. `s' <= T(s)`, as the set of what is better than `y` is a set; and `f'` does not fall, being a power series without negative coefficients. So at each `y`
//!    `dA - e^ε dA' <= f'(1-s) dQ - e^ε f'(1-T(s)) dQ' <= h(dQ/dQ') dQ'`. ∎
//!
//! Below the infimum over `c` one may stop early, and `δ` may be larger than need be: `T` is then larger and so is `h`. As `h` is convex with `h(0) = 0`, the
//! right side is a mixture of hockey sticks `E_{Q'}(x - c)₊ = H(c)`: `best_of_profile.rs` bounds it from a table of `δ`. Taking for every `y` the worst ratio
//! `f'(1-s)/f'(1-T(s))` and the largest `f'(1-s) = E[K]` gives the simpler bound of \[KRW24\], which is never smaller.
//!
//! **Runs of several kinds.** If a run is first one of several mechanisms by coins of its own, and says which, its profile is the mean of theirs, and at most
//! the largest.
//!
//! **Truncated negative binomial** with `η > -1`, `0 < γ <= 1`: `f'(1-s) = E[K] (γ/(γ+(1-γ)s))^(1+η)` with `E[K] = η(1-γ)/(γ(1-γ^η))`; at `η = 0` it is
//! `(1-γ)/(γ ln(1/γ))`, the limit. *Proof.* For `η ≠ 0`, `f(t) = ((1-(1-γ)t)^(-η) - 1)/(γ^(-η) - 1)`, by the binomial series; differentiate. **Poisson**: `f'(1-s) = μe^(-μs)`.
//!
//! **Pure.** If `Q` is `ε`-DP, then `T(s) <= min(e^ε s, 1-e^(-ε)(1-s))`, and `ln(f'(1-s)/f'(1-T(s)))` grows with `s` where the first is smaller and falls where the
//! second is: it is largest where they meet, at `s = 1/(1+e^ε)`. So `A` is pure with `ε + (1+η) ln((γ+(1-γ)e^ε s)/(γ+(1-γ)s)) <= (2+η)ε` \[PS22\], and for
//! Poisson with `ε + μ tanh(ε/2)`.
//!
//! **Not covered**: whoever also learns `K`. Given `K = k` the best of `k` runs was released, by `f(t) = t^k`, and that costs up to `kε`.

use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio, Repeats, round};

use crate::best_of_profile::Table;
use crate::bound::Bound;
use crate::close::{distance_within, slack};
use crate::search::smallest_passing_f64;
use crate::{Bracket, Error, Notion, Result, best_of_renyi, price, pure};

/// What proves a price of this kind, for exact samplers and for those that are only close.
pub(crate) const BEST_OF: [&str; 2] = [
    "best of a random number of runs, from the privacy profile of one [PS22; KRW24]",
    "best of a random number of runs, from the privacy profile of one [PS22; KRW24], and closeness in total variation",
];
/// Below this share of the whole delta the profile of one run need not be known: it enters at most times the mean number of runs.
const TAIL: f64 = 0.125;

/// A law of `K`, in brackets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Law {
    /// `1 + η` and `γ`.
    Binomial { power: Bracket, gamma: Bracket },
    /// `μ`.
    Poisson { mean: Bracket },
}

impl Law {
    /// Refuses parameters that are none.
    pub(crate) fn read(repeats: &Repeats) -> Result<Self> {
        let refused = |what, found: &Ratio, range| Error::OutOfRange {
            step: "best_of",
            what,
            found: found.to_f64_up(),
            range,
        };
        match repeats {
            Repeats::TruncatedNegativeBinomial {
                eta_plus_one,
                gamma,
            } => {
                let (power, gamma) = (bracket(eta_plus_one), bracket(gamma.ratio()));
                if !(LEAST..=MOST).contains(&power.lower()) {
                    let range = "a number from 2^-20 to 2^20";
                    return Err(refused("eta plus one", eta_plus_one, range));
                }
                if !(LEAST..=1.0).contains(&gamma.lower()) {
                    let range = "a number from 2^-20 to 1";
                    return Err(refused(
                        "gamma",
                        &Ratio::from_f64(gamma.upper()).unwrap_or_else(Ratio::zero),
                        range,
                    ));
                }
                Ok(Self::Binomial { power, gamma })
            }
            Repeats::Poisson { mean } => {
                let range = "a number from 2^-20 to 2^20";
                let found = bracket(mean);
                match (LEAST..=MOST).contains(&found.lower()) {
                    true => Ok(Self::Poisson { mean: found }),
                    false => Err(refused("mean", mean, range)),
                }
            }
            unknown => Err(Error::UnknownMechanism {
                mechanism: format!("{unknown:?}"),
            }),
        }
    }

    /// `E[K]`.
    pub(crate) fn mean(self) -> Bracket {
        let one = Bracket::exact(1.0);
        let (power, gamma) = match self {
            Self::Poisson { mean } => return mean,
            Self::Binomial { gamma, .. } if gamma.lower() == 1.0 => return one,
            Self::Binomial { power, gamma } => (power, gamma),
        };
        let log = -gamma.ln();
        let u = (power - one) * log;
        // u/(1-e^(-u)) is 1 + u/2 + (u/2 coth(u/2) - 1), where the last lies between 0 and u²/12.
        let rest = Bracket::new(0.0, (u * u / Bracket::exact(12.0)).upper().max(0.0));
        let near = one + u / Bracket::exact(2.0) + rest;
        let found = match u.upper().abs().max(u.lower().abs()) < 1e-4 {
            true => near,
            false => -u / (-u).exp_m1(),
        };
        // No fewer runs than one.
        ((one - gamma) / (gamma * log) * found).max(one)
    }

    /// `f'(1-s)/f'(1)`, which falls with `s`; from 0 to 1.
    pub(crate) fn weight(self, s: f64) -> Bracket {
        (-self.exponent(Bracket::exact(s))).exp().clamp(0.0, 1.0)
    }

    /// `-ln` of that.
    pub(crate) fn exponent(self, s: Bracket) -> Bracket {
        let found = match self {
            Self::Binomial { power, gamma } => {
                let one = Bracket::exact(1.0);
                power * (s * (one - gamma) / gamma).ln_1p()
            }
            Self::Poisson { mean } => mean * s,
        };
        found.clamp(0.0, f64::INFINITY)
    }

    /// The pure epsilon, if a run has one.
    fn pure(self, epsilon: Epsilon) -> Result<Epsilon> {
        let loss = Bracket::exact(epsilon.value());
        let odds = (-loss).exp();
        let one = Bracket::exact(1.0);
        let (most, least) = (one / (one + odds), odds / (one + odds));
        let gain = match self {
            Self::Binomial { .. } => self.exponent(most) - self.exponent(least),
            Self::Poisson { mean } => mean * (most - least),
        };
        // At no loss rounding must not make one.
        let gain = if epsilon == Epsilon::ZERO {
            0.0
        } else {
            gain.upper().max(0.0)
        };
        Epsilon::new(round::add_up(epsilon.value(), gain)).map_err(|_| Error::Unbounded {
            what: "finite epsilon",
        })
    }
}

/// The ends of what is priced: means and shapes beyond are no search.
const LEAST: f64 = 1.0 / 1_048_576.0;
const MOST: f64 = 1_048_576.0;

fn bracket(ratio: &Ratio) -> Bracket {
    Bracket::new(ratio.to_f64_down(), ratio.to_f64_up())
}

/// A search whose parts were checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search<'a> {
    law: Law,
    among: &'a [Mechanism],
}

impl<'a> Search<'a> {
    /// The search that a mechanism is, also as the only part of a composition. `None` if it is something else; refused if it searches among nothing, or among
    /// searches.
    pub(crate) fn of(mechanism: &'a Mechanism) -> Option<Result<Self>> {
        match mechanism {
            Mechanism::BestOf { repeats, among } => Some(Self::new(repeats, among)),
            Mechanism::Composition(parts) => match &parts[..] {
                [one] => Self::of(one),
                _ => None,
            },
            _ => None,
        }
    }

    fn new(repeats: &Repeats, among: &'a [Mechanism]) -> Result<Self> {
        if among.is_empty() {
            return Err(Error::Empty);
        }
        if among.iter().any(holds_a_search) {
            return Err(Error::UnknownMechanism {
                mechanism: "a BestOf within a BestOf".into(),
            });
        }
        let law = Law::read(repeats)?;
        Ok(Self { law, among })
    }

    /// How the number of runs is drawn.
    pub(crate) fn law(&self) -> Law {
        self.law
    }

    /// What a run may be.
    pub(crate) fn among(&self) -> &'a [Mechanism] {
        self.among
    }

    /// What every run is, if there is always one and it is always the same.
    pub(crate) fn one(&self) -> Option<&'a Mechanism> {
        match (self.law, self.among) {
            (Law::Binomial { .. }, [one]) => Some(one),
            _ => None,
        }
    }

    /// The pure epsilon.
    pub(crate) fn pure(&self) -> Result<Epsilon> {
        let each = self.among.iter().map(pure::epsilon);
        let worst = each.collect::<Result<Vec<_>>>()?.into_iter();
        let worst = worst.max_by(|one, other| one.value().total_cmp(&other.value()));
        self.law.pure(worst.ok_or(Error::Empty)?)
    }

    /// What is known of one run, as far as it matters at `delta`.
    pub(crate) fn table(&self, neighbours: Neighbours, delta: Delta) -> Result<Table> {
        let share = round::mul_down(delta.value(), TAIL);
        let tail = round::div_down(share, self.law.mean().upper());
        let mut reach = 0.0_f64;
        for one in self.among {
            let event = Event::new(neighbours, one.clone());
            reach = reach.max(far_out(&event, tail)?);
        }
        Table::new(self.law, self.among, neighbours, reach)
    }
}

/// An epsilon at which a run has no more than this delta, or the least that it has: what is released with some probability stays so at every epsilon. Any epsilon
/// would do; only sharpness rests on it.
fn far_out(event: &Event, tail: f64) -> Result<f64> {
    match price(event, Delta::new(tail)?) {
        Ok(found) => Ok(found.epsilon.value()),
        Err(Error::NoRoom { delta_passing, .. } | Error::TooCoarse { delta_passing, .. })
            if delta_passing > tail && delta_passing < 1.0 =>
        {
            Ok(price(event, Delta::new(delta_passing)?)?.epsilon.value())
        }
        Err(error) => Err(error),
    }
}

fn holds_a_search(mechanism: &Mechanism) -> bool {
    match mechanism {
        Mechanism::BestOf { .. } => true,
        Mechanism::Close { inner, .. } | Mechanism::Sampled { inner, .. } => holds_a_search(inner),
        Mechanism::Composition(parts) => parts.iter().any(holds_a_search),
        _ => false,
    }
}

/// Epsilon of a search at `delta` by the theorem here, and by the Rényi divergences of one run. What is charged is the [`price()`].
pub fn notions(event: &Event, delta: Delta) -> Result<Vec<Notion>> {
    let search = Search::of(event.mechanism());
    let search = search.unwrap_or(Err(Error::NoEngine { what: "no search" }))?;
    let exact = bound(&search, 0.0, event.neighbours(), delta)?;
    let renyi = best_of_renyi::epsilon(&search, event.neighbours(), delta);
    Ok(vec![
        Notion {
            name: "privacy profile",
            theorem: BEST_OF[0],
            epsilon: exact.map(|bound| bound.epsilon.value()),
        },
        Notion {
            name: "Rényi DP",
            theorem: best_of_renyi::THEOREM,
            epsilon: renyi,
        },
    ])
}

/// The smallest epsilon that the profile of one run proves at `delta`, for what is within `distance` of the search; `None` if it proves none.
pub(crate) fn bound(
    search: &Search<'_>,
    distance: f64,
    neighbours: Neighbours,
    delta: Delta,
) -> Result<Option<Bound>> {
    if delta == Delta::ZERO {
        return Ok(None);
    }
    let table = search.table(neighbours, delta)?;
    // The slack of a distance grows with epsilon: it is tried where one half of delta is enough for the rest.
    let share = if distance > 0.0 { 0.5 } else { 1.0 };
    let Some(most) = first_within(&table, 0.0, round::mul_down(delta.value(), share)) else {
        return Ok(None);
    };
    let needed = slack(most, distance);
    if needed > round::mul_down(delta.value(), share) {
        return Err(Error::TooCoarse {
            total_variation: distance,
            delta: delta.value(),
            delta_passing: round::mul_up(2.0, needed),
            total_variation_passing: distance_within(round::mul_down(delta.value(), share), most),
        });
    }
    let epsilon = match distance > 0.0 {
        true => {
            first_within(&table, distance, delta.value()).map_or(most, |better| better.min(most))
        }
        false => most,
    };
    Ok(Some(Bound {
        epsilon: Epsilon::new(epsilon)?,
        delta,
        theorem: BEST_OF[usize::from(distance > 0.0)],
    }))
}

/// The smallest epsilon seen at which delta, with the slack of a distance, is within `delta`.
fn first_within(table: &Table, distance: f64, delta: f64) -> Option<f64> {
    let passes =
        |epsilon: f64| round::add_up(table.delta(epsilon), slack(epsilon, distance)) <= delta;
    if passes(0.0) {
        return Some(0.0);
    }
    let most = table.reach();
    let found = smallest_passing_f64(0.0, most, passes);
    // Nothing below may have passed, and the end is not tried by itself.
    passes(found).then_some(found)
}

/// An upper bound of delta at `epsilon`, for the search itself.
pub(crate) fn delta_upper(
    search: &Search<'_>,
    neighbours: Neighbours,
    epsilon: Epsilon,
) -> Result<f64> {
    if search.pure().is_ok_and(|pure| pure <= epsilon) {
        return Ok(0.0);
    }
    // As far as where deltas are of interest; further out the last of the table holds.
    let found = search.table(neighbours, Delta::new(1e-12)?)?;
    Ok(found.delta(epsilon.value()).min(1.0))
}

#[cfg(test)]
#[path = "best_of_test.rs"]
mod tests;
