//! # The best of a random number of runs, by Rényi divergences
//! The first theorems of this kind, as a second opinion on `best_of.rs`, in its setting and with its `dA = f'(1-s) dQ`.
//!
//! **Theorem** [PS22, Thm 2]. Let `K` be truncated negative binomial and let a run be `(λ, ε)`-RDP and `(λ̂, ε̂)`-RDP, with `λ > 1`, `λ̂ >= 1`. The search is
//! `(λ, ε')`-RDP with `ε' = ε + (1+η)(1-1/λ̂)ε̂ + (1+η) ln(1/γ)/λ̂ + ln E[K]/(λ-1)`.
//! *Proof.* With `g = γ+(1-γ)s` and `g'` alike, `dA^λ dA'^(1-λ) = E[K] γ^(1+η) (g'^(λ-1) g^(-λ))^(1+η) dQ^λ dQ'^(1-λ)`. A coin that shows `g` or `g'` is a function of a run
//! and of another coin, so `g'^λ̂ g^(1-λ̂) <= e^((λ̂-1)ε̂)`, that is `g' <= e^((1-1/λ̂)ε̂) g^(1-1/λ̂)`. Hence `g'^(λ-1) g^(-λ)` is at most
//! `e^((λ-1)(1-1/λ̂)ε̂) g^(-1-(λ-1)/λ̂)`, and `g >= γ`. Integrate, take logarithms and divide by `λ-1`. ∎
//!
//! **Theorem** (after [PS22, Thm 6]). Let `K` be Poisson of mean `μ`, and let a run be `(λ, ε)`-RDP and `(ε̂, δ̂)`-DP with `e^ε̂ <= λ/(λ-1)`. The search is `(λ, ε')`-RDP with
//! `ε' = ln(e^(-μ) + μ e^((λ-1)(ε + μδ̂)))/(λ-1)`.
//! *Proof.* `dA^λ dA'^(1-λ) = μ e^(μ((λ-1)s'-λs)) dQ^λ dQ'^(1-λ)`, and `(λ-1)s' <= (λ-1)(e^ε̂ s + δ̂) <= λs + (λ-1)δ̂`. Where there is no run both release the same, which adds
//! `e^(-μ)`. ∎ (The paper states `ε + μδ̂ + ln(μ)/(λ-1)`, without the runs that are none; for `μ < 1` that can be negative.)

use whit_core::{Delta, Event, Neighbours};

use crate::best_of::{Law, Search};
use crate::event_profile::{composition, deltas_upper};
use crate::rdp::{best_order, epsilon_upper};
use crate::{Bracket, Composition};

pub(crate) const THEOREM: &str = "[PS22, Thm 2 and 6], converted by [CKS20, Prop. 12]";

/// An epsilon at `delta`; `None` where divergences of a run are not known.
pub(crate) fn epsilon(search: &Search<'_>, neighbours: Neighbours, delta: Delta) -> Option<f64> {
    let runs: Option<Vec<Composition>> = search
        .among()
        .iter()
        .map(|one| composition(&Event::new(neighbours, one.clone())).ok())
        .collect();
    let runs = runs?;
    let divergence = |order: f64| {
        let each = runs.iter().map(|run| run.renyi(order));
        each.fold(0.0, |worst: f64, found| {
            worst.max(found.map_or(f64::INFINITY, Bracket::upper))
        })
    };
    let whole = |order: f64| match search.law() {
        law @ Law::Binomial { .. } => {
            law.divergence(order, divergence(order), helper(law, divergence))
        }
        law @ Law::Poisson { .. } => {
            let near = Bracket::exact(order - 1.0);
            let epsilon = (Bracket::exact(1.0) / near).ln_1p().lower().max(0.0);
            let slack = search.among().iter().map(|one| {
                let found = deltas_upper(one, neighbours, &[epsilon]);
                found.map_or(1.0, |found| found.first().copied().unwrap_or(1.0))
            });
            law.divergence(order, divergence(order), slack.fold(0.0, f64::max))
        }
    };
    let found = best_order(|order| epsilon_upper(whole(order), order, delta.value())).value;
    found.is_finite().then_some(found)
}

/// The least of `(1-1/λ̂)ε̂ + ln(1/γ)/λ̂`.
fn helper(law: Law, divergence: impl Fn(f64) -> f64) -> f64 {
    let Law::Binomial { gamma, .. } = law else {
        return f64::INFINITY;
    };
    let one = Bracket::exact(1.0);
    let at = |order: f64| {
        let part = one / Bracket::exact(order);
        let known = (one - part) * Bracket::exact(divergence(order));
        (known - part * gamma.ln()).upper()
    };
    best_order(at).value
}

impl Law {
    /// `ε'` of the search at an order, from that of a run and what the theorem takes besides.
    pub(crate) fn divergence(self, order: f64, run: f64, besides: f64) -> f64 {
        let near = Bracket::exact(order) - 1.0.into();
        let found = match self {
            Self::Binomial { power, .. } => {
                Bracket::exact(run) + power * Bracket::exact(besides) + self.mean().ln() / near
            }
            Self::Poisson { mean } => {
                let more = near * (Bracket::exact(run) + mean * Bracket::exact(besides));
                // ln(e^(-μ) + μe^x) = x + ln(μ + e^(-μ-x)).
                (more + (mean + (-(mean + more)).exp()).ln()) / near
            }
        };
        found.upper().max(0.0)
    }
}
