//! # Parameters for a target
//! The least noise, the largest rate or the most steps with which a composition stays within `(ε, δ)`. `δ(ε)` falls with noise and
//! grows with everything else, so each is a search on one number; both ends of what is found were tried: at one the upper
//! bound of the composition's delta keeps the target, at the other the lower bound breaks it.

use crate::curve::{self, Curve, Root};
use crate::{Answer, Bracket, Composition, Error, Result};

/// Parameters are searched between these.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e12;
/// The secant rule ends with a step this small; the error of the last one is about its square.
const SECANT: f64 = 1e-6;
/// The bounds are this far from the root at first: a parameter with more digits is of no use, and each try asks a composition.
const STEP: f64 = 1e-11;

/// A target `(ε, δ)` with both numbers in range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    epsilon: f64,
    delta: f64,
}

impl Target {
    /// Epsilon from 0 on, delta above 0 and below 1.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        let check = |what, found, passes, range| {
            if passes {
                Ok(())
            } else {
                Err(Error::OutOfRange {
                    step: "target",
                    what,
                    found,
                    range,
                })
            }
        };
        check(
            "epsilon",
            epsilon,
            (0.0..f64::INFINITY).contains(&epsilon),
            "a number from 0 on",
        )?;
        check(
            "delta",
            delta,
            delta > 0.0 && delta < 1.0,
            "a number above 0 and below 1",
        )?;
        Ok(Self { epsilon, delta })
    }
}

/// The profile at the target's epsilon as a function of the parameter: falling, like a profile in epsilon.
struct Sweep<F> {
    compose: F,
    epsilon: f64,
    /// The first refusal, and the last engine that answered.
    error: Option<Error>,
    last: Option<Answer>,
}

impl<F: Fn(f64) -> Result<Composition>> Curve for Sweep<F> {
    fn delta(&mut self, parameter: f64) -> Bracket {
        if parameter <= 0.0 {
            // No noise at all: nothing is proven, and no composition is asked.
            return Bracket::new(0.0, 1.0);
        }
        let found =
            (self.compose)(parameter).and_then(|composition| composition.delta(self.epsilon));
        match found {
            Ok(answer) => {
                self.last = Some(answer);
                answer.bounds
            }
            Err(error) => {
                self.error.get_or_insert(error);
                Bracket::new(0.0, 1.0)
            }
        }
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    /// Doubling or halving from one to a pair of neighbours, and then the secant rule in logarithms.
    fn root(&mut self, delta: f64) -> Option<Root> {
        let target = delta.ln();
        let mut excess =
            |parameter: f64| self.delta(parameter).estimate().max(1e-320).ln() - target;
        let (mut place, mut value) = (1.0_f64, excess(1.0));
        let factor = if value > 0.0 { 2.0 } else { 0.5 };
        let (mut other, mut other_value) = (place, value);
        while (value > 0.0) == (factor > 1.0) && (LEAST..MOST).contains(&place) {
            (other, other_value) = (place, value);
            place *= factor;
            value = excess(place);
        }
        // Where the profile has a jump or a bend that stops it, the general search goes on.
        for _ in 0..20 {
            let (x, y) = (place.ln(), other.ln());
            let slope = (value - other_value) / (y - x);
            let next = (x + value / slope).exp();
            if !(slope > 0.0 && slope.is_finite() && next > 0.0 && next.is_finite()) {
                break;
            }
            if (next / place - 1.0).abs() < SECANT {
                return Some(Root {
                    place: next,
                    slope: slope / next,
                    step: next * STEP,
                });
            }
            (other, other_value) = (place, value);
            place = next;
            value = excess(place);
        }
        None
    }
}

fn sweep(compose: impl Fn(f64) -> Result<Composition>, target: Target) -> Result<Answer> {
    let mut sweep = Sweep {
        compose,
        epsilon: target.epsilon,
        error: None,
        last: None,
    };
    let bounds = curve::epsilon(&mut sweep, target.delta);
    match (sweep.error, sweep.last) {
        (Some(error), _) => Err(error),
        (
            None,
            Some(Answer {
                engine, theorem, ..
            }),
        ) if bounds.upper() < MOST => Ok(Answer {
            bounds,
            engine,
            theorem,
        }),
        _ => Err(Error::OutOfReach {
            epsilon: target.epsilon,
            delta: target.delta,
        }),
    }
}

/// The least noise: the composition keeps the target with the upper end, and not with the lower one.
pub fn least_noise(compose: impl Fn(f64) -> Result<Composition>, target: Target) -> Result<Answer> {
    sweep(compose, target)
}

/// The largest value of a parameter that costs, such as a rate or an epsilon, up to `most`: the target is kept with the lower
/// end.
pub fn largest(
    compose: impl Fn(f64) -> Result<Composition>,
    most: f64,
    target: Target,
) -> Result<Answer> {
    if let Ok(answer) = compose(most).and_then(|composition| composition.delta(target.epsilon))
        && answer.bounds.upper() <= target.delta
    {
        return Ok(Answer {
            bounds: Bracket::exact(most),
            ..answer
        });
    }
    let inverse = |value: f64| compose((1.0 / value).min(most));
    let found = sweep(inverse, target)?;
    // 1/v is rounded once: a step to each side keeps what was tried.
    let bounds = Bracket::new(
        (1.0 / found.bounds.upper()).next_down(),
        (1.0 / found.bounds.lower()).next_up().min(most),
    );
    Ok(Answer { bounds, ..found })
}

/// The most steps: with the lower end the target is kept.
pub fn most_steps(compose: impl Fn(u64) -> Result<Composition>, target: Target) -> Result<Answer> {
    let ask = |count: u64| compose(count)?.delta(target.epsilon);
    // What is told beside the bounds is what proved the last count that passes.
    let mut by = ask(1)?;
    if by.bounds.upper() > target.delta {
        let certain = by.bounds.lower() > target.delta;
        return Ok(Answer {
            bounds: Bracket::new(0.0, if certain { 0.0 } else { 1.0 }),
            ..by
        });
    }
    // The last count that passes, and the first that is seen to fail or does not pass.
    let mut passes = 1_u64;
    let mut fails = 2_u64;
    while fails < 1 << 53 {
        let found = ask(fails)?;
        if found.bounds.upper() > target.delta {
            break;
        }
        (passes, fails, by) = (fails, fails * 2, found);
    }
    if fails >= 1 << 53 {
        fails = 1 << 53;
        if ask(fails)?.bounds.upper() <= target.delta {
            // More steps than can be counted here.
            let bounds = Bracket::exact(fails as f64);
            return Ok(Answer { bounds, ..by });
        }
    }
    while fails - passes > 1 {
        let middle = passes.midpoint(fails);
        let found = ask(middle)?;
        if found.bounds.upper() <= target.delta {
            (passes, by) = (middle, found);
        } else {
            fails = middle;
        }
    }
    let mut surely = fails;
    while surely < 1 << 53 && ask(surely)?.bounds.lower() <= target.delta {
        surely += (surely - passes).max(1);
    }
    // Beyond what can be counted nothing was tried.
    let most = if surely < 1 << 53 {
        (surely - 1) as f64
    } else {
        f64::INFINITY
    };
    Ok(Answer {
        bounds: Bracket::new(passes as f64, most),
        ..by
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use whit_core::Neighbours;

    fn target() -> Target {
        Target::new(1.0, 1e-5).expect("in range")
    }

    fn gaussian(sigma: f64) -> Result<Composition> {
        Composition::new(
            Neighbours::AddRemove,
            [(
                Step::Gaussian {
                    sigma,
                    sensitivity: 1.0,
                },
                1,
            )],
        )
    }

    fn sampled(rate: f64, noise_multiplier: f64, count: u64) -> Result<Composition> {
        Composition::new(
            Neighbours::AddRemove,
            [(
                Step::PoissonGaussian {
                    rate,
                    noise_multiplier,
                },
                count,
            )],
        )
    }

    fn check(found: Bracket, golden: f64, width: f64) {
        assert!(
            found.lower() <= golden * (1.0 + width) && golden * (1.0 - width) <= found.upper(),
            "{found:?} {golden}"
        );
        assert!(found.relative_width() <= width, "{found:?}");
    }

    #[test]
    fn golden_noise() {
        check(
            least_noise(gaussian, target()).expect("in reach").bounds,
            3.730631634815942,
            1e-9,
        );
        let found = least_noise(|sigma| sampled(0.01, sigma, 1000), target());
        check(found.expect("in reach").bounds, 1.4146194065286726, 1e-6);
    }

    /// What was found for one parameter is found again for another.
    #[test]
    fn searches_agree() {
        let sigma = least_noise(|sigma| sampled(0.01, sigma, 1000), target())
            .expect("in reach")
            .bounds
            .upper();
        let rate = largest(|rate| sampled(rate, sigma, 1000), 1.0, target())
            .expect("in reach")
            .bounds;
        assert!((rate.lower() / 0.01 - 1.0).abs() < 1e-6, "{rate:?}");
        let steps = most_steps(|count| sampled(0.01, sigma, count), target())
            .expect("in reach")
            .bounds;
        assert!(steps.holds(1000.0), "{steps:?}");
        let everything = largest(|rate| sampled(rate, 100.0, 10), 1.0, target())
            .expect("all may be sampled")
            .bounds;
        assert_eq!(everything, Bracket::exact(1.0));
    }

    #[test]
    fn hopeless_targets_are_named() {
        assert!(Target::new(1.0, 0.0).is_err() && Target::new(-1.0, 0.1).is_err());
        let refused = least_noise(|sigma| sampled(2.0, sigma, 1), target());
        assert!(matches!(refused, Err(Error::OutOfRange { .. })));
    }
}
