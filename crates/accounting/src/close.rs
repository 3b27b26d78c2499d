//! # Samplers that are only close to what was meant
//! **Closeness.** Let `M` be `(ε, δ)`-DP and let `M'` be within total variation `τ` of `M` on every input. Then `M'` is
//! `(ε, δ + (1 + e^ε)τ)`-DP.
//! *Proof.* `Pr[M'(x) ∈ S] <= Pr[M(x) ∈ S] + τ <= e^ε Pr[M(x') ∈ S] + δ + τ <= e^ε (Pr[M'(x') ∈ S] + τ) + δ + τ`.
//!
//! **Closeness composes.** If the parts of a composition are within `τ_1, τ_2, …` of what was meant, the whole is
//! within their sum. *Proof.* Draw each part and its ideal from a coupling in which they differ with probability `τ_i`,
//! independently of the other parts; by the union bound, some part differs with probability at most `Σ τ_i`.
//! Closeness to something close adds, too, by the triangle inequality. A sampled mechanism draws its samples by coins of their own,
//! the same for what was meant: given them it is a composition of its steps, and a mixture is as close as what it mixes.

use whit_core::{Mechanism, Ratio, round};

/// The mechanism that was meant, and an upper bound of the distance that the sampled one has from it.
pub(crate) fn idealize(mechanism: &Mechanism) -> (Mechanism, f64) {
    match mechanism {
        Mechanism::Close {
            inner,
            total_variation,
        } => {
            let (ideal, distance) = idealize(inner);
            let further = total_variation.ratio().to_f64_up();
            (ideal, round::add_up(distance, further))
        }
        Mechanism::Composition(parts) => {
            let (ideals, distances): (Vec<_>, Vec<_>) = parts.iter().map(idealize).unzip();
            let distance = distances.into_iter().fold(0.0, round::add_up);
            (Mechanism::Composition(ideals), distance)
        }
        Mechanism::Sampled {
            sampling,
            steps,
            inner,
        } => {
            let (ideal, distance) = idealize(inner);
            let ideal = Mechanism::Sampled {
                sampling: sampling.clone(),
                steps: *steps,
                inner: Box::new(ideal),
            };
            let times = Ratio::from(*steps).to_f64_up();
            (ideal, round::mul_up(distance, times))
        }
        // Also a mechanism that is not known here: pricing the ideal refuses it by name.
        exact => (exact.clone(), 0.0),
    }
}

/// `(1 + e^ε)τ`, rounded up.
pub(crate) fn slack(epsilon: f64, distance: f64) -> f64 {
    if distance == 0.0 {
        0.0
    } else {
        round::mul_up(one_plus_exp(epsilon), distance)
    }
}

fn one_plus_exp(epsilon: f64) -> f64 {
    round::add_up(1.0, round::exp_up(epsilon))
}

/// A distance whose slack at `epsilon` stays within `delta`: what a refusal can offer. A few last digits less than the
/// quotient, so that rounding the slack up does not lift it over `delta` again.
pub(crate) fn distance_within(delta: f64, epsilon: f64) -> f64 {
    let quotient = round::div_down(delta, one_plus_exp(epsilon));
    round::mul_down(quotient, 1.0 - 8.0 * f64::EPSILON).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Probability, Sampling, Scale};

    fn laplace() -> Mechanism {
        Mechanism::DiscreteLaplace {
            scale: Scale::new(Ratio::one()).expect("in range"),
            sensitivity_l1: Ratio::one(),
            coordinates: 1,
        }
    }

    fn close(inner: Mechanism, exponent: i32) -> Mechanism {
        let total_variation = Probability::new(Ratio::power_of_two(exponent)).expect("at most one");
        Mechanism::Close {
            inner: Box::new(inner),
            total_variation,
        }
    }

    #[test]
    fn distances_are_collected_from_every_depth() {
        let parts = vec![
            laplace(),
            close(close(laplace(), -3), -4),
            close(laplace(), -5),
        ];
        let (ideal, distance) = idealize(&close(Mechanism::Composition(parts), -6));
        assert_eq!(ideal, Mechanism::Composition(vec![laplace(); 3]));
        assert_eq!(distance, 0.125 + 0.0625 + 0.03125 + 0.015625);
    }

    #[test]
    fn every_step_of_a_run_is_as_far() {
        let run = |inner| Mechanism::Sampled {
            sampling: Sampling::All,
            steps: 3,
            inner: Box::new(inner),
        };
        let (ideal, distance) = idealize(&run(close(laplace(), -4)));
        assert_eq!((ideal, distance), (run(laplace()), 0.1875));
        assert_eq!(idealize(&run(laplace())).1, 0.0);
    }

    #[test]
    fn a_distance_below_the_floats_is_not_lost() {
        assert_eq!(idealize(&close(laplace(), -2000)).1, 5e-324);
    }

    /// `(1 + e)/1024` and `2/1024`.
    #[test]
    fn slack_is_rounded_up() {
        let truth = (1.0 + std::f64::consts::E) / 1024.0;
        let found = slack(1.0, 1.0 / 1024.0);
        assert!(found > truth && found < truth * (1.0 + 1e-15));
        assert_eq!(slack(0.0, 1.0 / 1024.0), 2.0 / 1024.0);
        assert_eq!((slack(1e6, 0.0), slack(1e6, 5e-324)), (0.0, f64::INFINITY));
    }

    /// The lemma on the worst pair there is: two points, where `M'` moves `τ` against itself on both inputs.
    #[test]
    fn the_lemma_is_tight_on_two_points() {
        let (epsilon, tau) = (1.0_f64, 0.01);
        let keep = epsilon.exp() / (1.0 + epsilon.exp());
        let exact = keep - epsilon.exp() * (1.0 - keep);
        let moved = (keep + tau) - epsilon.exp() * (1.0 - keep - tau);
        assert!(exact.abs() < 1e-15 && (moved - slack(epsilon, tau)).abs() < 1e-15);
    }

    #[test]
    fn an_offered_distance_fits() {
        for delta in [0.0, 5e-324, 1e-300, 1e-9, 0.3] {
            for epsilon in [0.0, 0.1, 3.0, 50.0, 700.0, 1e6] {
                let offered = distance_within(delta, epsilon);
                assert!(
                    slack(epsilon, offered) <= delta,
                    "{delta} {epsilon}: {offered}"
                );
            }
        }
    }
}
