//! Claims of a whole curve: the delta of an event at every epsilon.
//!
//! **Definition.** A mechanism has the curve `δ(·)` if for all neighbours, both ways, and all events `P(S) <= e^ε Q(S) + δ(ε)` at every
//!   `ε >= 0`. An accountant states such a curve for any event: Poisson-sampled steps too, of which the Gaussian formula is wrong.
//!   The curve comes here as a closure, so that nothing here knows an accountant.
//! **Refuting.** `p > e^ε q + δ(ε)` at one `ε`, for bounds on an event, refutes the curve and needs no model. All `ε` may be tried: the
//!   inequalities follow from the same two bounds.
//! **Fitting.** In a family of curves that grow with a strength `θ` (a clip norm over a noise), the refuted strengths are all those
//!   below some point. That the mechanism is one of the family is the model; the epsilon that follows is a [`ModelBound`](crate::ModelBound).

use whit_core::round;

use crate::bound::ProbabilityBounds;
use crate::world::Counts;
use crate::{Alpha, Error, Result};

/// At how many places a curve is asked. More are sharper and slower; none is less valid.
const PLACES: u32 = 128;

/// Where a strength is looked for, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The least strength of interest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// How often the interval is halved; a curve is made each time.
    pub rounds: u32,
}

impl Counts {
    /// Is the claim refuted that the mechanism has at most this delta at every epsilon? At level `alpha`.
    pub fn refutes_curve(&self, alpha: Alpha, delta_at: impl Fn(f64) -> f64) -> Result<bool> {
        let half = self.half_share(alpha)?;
        for tally in self.tallies() {
            let bounds = ProbabilityBounds::new(tally, half)?;
            if [bounds, bounds.complement()]
                .into_iter()
                .any(|bounds| above_curve(bounds, &delta_at))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The largest strength in the search whose curve is refuted, or `None` if not even the least one is. `curve(θ)` must be at
    /// least the delta of strength `θ`, and grow with it.
    pub fn fit_curve<C: Fn(f64) -> f64>(
        &self,
        alpha: Alpha,
        search: Search,
        mut curve: impl FnMut(f64) -> C,
    ) -> Result<Option<f64>> {
        let Search {
            mut low,
            mut high,
            rounds,
        } = search;
        if !(low.is_finite() && high.is_finite() && low <= high) {
            return Err(Error::OutOfDomain {
                what: "strength",
                given: high,
                domain: "an interval of finite numbers",
            });
        }
        if !self.refutes_curve(alpha, curve(low))? {
            return Ok(None);
        }
        if self.refutes_curve(alpha, curve(high))? {
            return Ok(Some(high));
        }
        for _ in 0..rounds {
            let middle = low + (high - low) / 2.0;
            if self.refutes_curve(alpha, curve(middle))? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }
}

/// Does the event lie above the curve somewhere?
fn above_curve(bounds: ProbabilityBounds, delta_at: impl Fn(f64) -> f64) -> bool {
    let ProbabilityBounds { likely, unlikely } = bounds;
    if likely <= unlikely {
        return false;
    }
    // Beyond the logarithm of the ratio nothing is left for a delta to be smaller than.
    let last = libm::log(likely / unlikely).min(700.0);
    (0..=PLACES).any(|place| {
        let epsilon = last * f64::from(place) / f64::from(PLACES);
        let allowed = round::add_up(
            round::mul_up(round::exp_up(epsilon), unlikely),
            delta_at(epsilon),
        );
        likely > allowed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gdp::gaussian_delta_lower;
    use crate::simulate::{assert_false_alarms, coin, normal};
    use crate::world::{Event, Outputs, World};
    use crate::{Group, ModelBound};
    use whit_core::Delta;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    /// The Gaussian curve; its lower bound is exact enough to stand for an upper one in tests.
    fn gaussian(mu: f64) -> impl Fn(f64) -> f64 {
        move |epsilon| gaussian_delta_lower(mu, epsilon) + 1e-11
    }

    /// One step on a Poisson sample of rate `q`: `δ(ε) = q δ_G(ln(1 + (e^ε - 1)/q))` in the direction that is worse [BBG18].
    fn sampled(rate: f64, mu: f64) -> impl Fn(f64) -> f64 {
        move |epsilon: f64| rate * gaussian(mu)((epsilon.exp_m1() / rate).ln_1p())
    }

    fn sampled_counts(rate: f64, mu: f64, trials: usize, seed: u64) -> Counts {
        let (mut drawn, mut one, mut other) = (
            coin(3 * seed, rate),
            normal(3 * seed + 1),
            normal(3 * seed + 2),
        );
        let high = Event::new("high", World::One, move |y: &f64| *y >= mu);
        Outputs::run(
            trials,
            || one() + if drawn() { mu } else { 0.0 },
            &mut other,
        )
        .hold()
        .count(&high)
    }

    #[test]
    fn sampled_steps_are_not_convicted_of_their_own_curve() {
        assert_false_alarms(0.05, |seed| {
            sampled_counts(0.2, 2.0, 1000, seed)
                .refutes_curve(alpha(0.05), sampled(0.2, 2.0))
                .expect("valid")
        });
    }

    #[test]
    fn too_little_noise_under_sampling_is_convicted() {
        let counts = sampled_counts(0.2, 2.0 / 0.8, 100_000, 7);
        assert_eq!(
            counts.refutes_curve(alpha(1e-6), sampled(0.2, 2.0)),
            Ok(true)
        );
        assert_eq!(
            counts.refutes_curve(alpha(1e-6), sampled(0.2, 2.6)),
            Ok(false)
        );
    }

    /// The Gaussian formula reads a sampled step wrongly; its own curve reads it right.
    #[test]
    fn fits_the_strength_under_sampling() {
        let counts = sampled_counts(0.2, 2.0, 400_000, 9);
        let search = Search {
            low: 0.1,
            high: 8.0,
            rounds: 30,
        };
        let found = counts
            .fit_curve(alpha(0.01), search, |mu| sampled(0.2, mu))
            .expect("valid")
            .expect("something is refuted");
        assert!(found > 1.8 && found < 2.0, "{found}");
        let as_gaussian = counts.mu_lower(Group::ONE, alpha(0.01)).expect("valid");
        assert!(as_gaussian.mu_lower() < 1.0, "{as_gaussian:?}");
        let bound = ModelBound::of_curve(
            "Gaussian step on a Poisson sample",
            Delta::new(1e-5).expect("in range"),
            alpha(0.01),
            sampled(0.2, found),
        );
        assert!(bound.epsilon_lower() > 6.0, "{bound:?}");
        assert!(bound.epsilon_lower() < 9.0, "{bound:?}");
    }

    #[test]
    fn nothing_found_is_nothing_fitted() {
        let counts = sampled_counts(0.2, 0.0, 1000, 1);
        let search = Search {
            low: 0.5,
            high: 8.0,
            rounds: 30,
        };
        assert_eq!(counts.fit_curve(alpha(0.01), search, gaussian), Ok(None));
        let backwards = Search { low: 9.0, ..search };
        assert!(counts.fit_curve(alpha(0.01), backwards, gaussian).is_err());
    }
}
