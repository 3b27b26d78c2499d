//! # Gaussian on real values
//! **Definition.** `M(x) = 2^k (r(x/2^k) + Z)`: round each coordinate to a public grid, add discrete Gaussian noise of scale `σ/2^k`
//!   steps, scale back.
//! **Requires.** `‖x - x'‖₂ <= Δ` for all neighbours, of the floats as they are given; the step `2^k` and the number of
//!   coordinates `d` are public.
//! **Guarantee.** `ρ`-zCDP with `ρ = Δ_k²/(2(σ/2^k)²)`, where `Δ_k = ceil(Δ/2^k)` for one coordinate and `Δ/2^k + √d` for more,
//!   rounded up.
//! **Proof.** See [`Grid`] for the distance after rounding; the rest is [`DiscreteGaussian`], and scaling back is post-processing.
//! **Sampler.** Exact over the integers. Every output is a multiple of the step (rounded to a float if it needs more than 53 bits).
//! **Error.** That of the discrete Gaussian, in steps, plus half a step.

use dashu_base::SquareRoot;
use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Confidence, Entropy, Event, L2, Ratio, Relation, Scale, Secret, Sensitivity};

use crate::additive::{Noise, only};
use crate::grid::Grid;
use crate::laplace::{check_coordinates, to_steps};
use crate::{DiscreteGaussian, Release, Result};

/// Adds Gaussian noise to floats, on a public grid.
pub struct Gaussian<R: Relation> {
    grid: Grid,
    coordinates: u64,
    steps: DiscreteGaussian<R>,
}

impl<R: Relation> Gaussian<R> {
    /// For vectors of a public length, on a given grid; [`Grid::for_scale`] gives one that costs nothing noticeable.
    pub fn new(
        scale: &Scale,
        sensitivity: &Sensitivity<L2, R>,
        coordinates: u64,
        grid: Grid,
    ) -> Result<Self> {
        check_coordinates(coordinates)?;
        let step = grid.step();
        let Noise::Gaussian(scale) = Noise::Gaussian(scale.clone()).in_steps(&step)? else {
            unreachable!("Gaussian noise stays Gaussian noise")
        };
        let square = sensitivity
            .square()
            .checked_div(&(&step * &step))
            .expect("a step is positive");
        let sensitivity = Sensitivity::from_square(rounded_square(&square, coordinates));
        Ok(Self {
            grid,
            coordinates,
            steps: DiscreteGaussian::new(scale, sensitivity),
        })
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.steps.event_of(self.coordinates)
    }

    /// Spends one `event` of a single value.
    pub fn release(&self, x: Secret<f64>, entropy: &mut impl Entropy) -> Result<Release<f64>> {
        Ok(self.release_vector(x.map(|x| vec![x]), entropy)?.map(only))
    }

    /// Spends one `event`. A vector of another length than was declared is cut or filled with zeros, so that its length
    /// tells nothing.
    pub fn release_vector(
        &self,
        x: Secret<Vec<f64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        let grid = self.grid;
        let steps = x.map(|x| to_steps(&x, self.coordinates, grid));
        Ok(self
            .steps
            .release_vector(steps, entropy)?
            .map(|steps| steps.iter().map(|&s| grid.value(s)).collect()))
    }

    /// The half-width of an interval around each released coordinate.
    pub fn half_width(&self, confidence: Confidence) -> f64 {
        self.grid
            .value(self.steps.half_width(confidence) as i128 + 1)
    }
}

/// The squared distance after rounding, from the squared distance before, both in steps: an upper bound.
fn rounded_square(square: &Ratio, coordinates: u64) -> Ratio {
    let root = if coordinates == 1 {
        // The smallest integer whose square is at least the given one.
        RBig::from(ceil_sqrt(&square.ceil()))
    } else {
        // Roots rounded up to multiples of 2^-32.
        let fine = |value: &Ratio| {
            let scaled = (value * &Ratio::power_of_two(64)).ceil();
            RBig::from(ceil_sqrt(&scaled)) / RBig::from(UBig::ONE << 32)
        };
        fine(square) + fine(&Ratio::from(coordinates))
    };
    Ratio::from_rbig(&root * &root).expect("a square is not negative")
}

fn ceil_sqrt(value: &UBig) -> UBig {
    let floor = value.sqrt();
    if &floor * &floor == *value {
        floor
    } else {
        floor + UBig::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{Shape, confidence, judge, scale, seed};
    use whit_core::{AddRemove, Mechanism};
    use whit_testkit::Seeded;

    fn mechanism(
        sigma: (u128, u128),
        sensitivity: f64,
        coordinates: u64,
        exponent: i32,
    ) -> Gaussian<AddRemove> {
        let sensitivity = Sensitivity::from_f64(sensitivity).expect("finite");
        Gaussian::new(
            &scale(sigma.0, sigma.1),
            &sensitivity,
            coordinates,
            Grid::new(exponent).expect("in range"),
        )
        .expect("valid")
    }

    fn square_of(mechanism: &Gaussian<AddRemove>) -> f64 {
        let event = mechanism.event();
        let Mechanism::DiscreteGaussian {
            sensitivity_l2_square,
            ..
        } = event.mechanism()
        else {
            panic!("another event")
        };
        sensitivity_l2_square.to_f64_down()
    }

    #[test]
    fn closed_form() {
        assert_eq!(square_of(&mechanism((1, 1), 1.0, 1, -4)), 256.0);
        assert_eq!(square_of(&mechanism((1, 1), 1.01, 1, -4)), 289.0);
        assert_eq!(square_of(&mechanism((1, 1), 0.001, 1, 0)), 1.0);
        let four = square_of(&mechanism((1, 1), 1.0, 4, -4));
        assert!(
            (18.0_f64.powi(2)..18.001_f64.powi(2)).contains(&four),
            "{four}"
        );
        let fine = mechanism((1, 1), 1.0, 1, -20);
        assert!((fine.half_width(confidence(0.95)) - 1.959_964).abs() < 1e-4);
    }

    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(251));
        let mechanism = mechanism((5, 2), 1.0, 1, -3);
        Shape::gaussian(&scale(20, 1)).assert_fits("steps", 100_000, || {
            let y = *mechanism
                .release(Secret::new(1.25), &mut entropy)
                .expect("entropy")
                .value();
            ((y - 1.25) * 8.0) as i128
        });
    }

    /// Neighbours that rounding drives apart as far as it can, against the total variation at the claimed sensitivity.
    fn seen(sigma: (u128, u128)) -> whit_audit::Verdict {
        let mechanism = mechanism(sigma, 9.1, 1, 0);
        let weight = |z: i64| (-((z * z) as f64) / 200.0).exp();
        let total: f64 = (-400..=400).map(weight).sum();
        let claim: f64 = (-300..=300)
            .map(|y| (weight(y - 10) - weight(y)).max(0.0) / total)
            .sum();
        let (mut one, mut other) = (Seeded::new(seed(252)), Seeded::new(seed(253)));
        let event = |x: f64, entropy: &mut Seeded| {
            *mechanism
                .release(Secret::new(x), entropy)
                .expect("entropy")
                .value()
                >= 5.0
        };
        judge(
            0.0,
            claim,
            100_000,
            || event(9.5, &mut one),
            || event(0.4, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((10, 1));
        assert!(!verdict.convicted, "{verdict:?}");
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 1)).convicted);
    }

    #[test]
    fn special_values_are_released_like_any_other() {
        let mut entropy = Seeded::new(254);
        let mechanism = mechanism((1, 1), 1.0, 1, -20);
        for x in [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            5e-324,
            f64::MAX,
        ] {
            let y = *mechanism
                .release(Secret::new(x), &mut entropy)
                .expect("entropy")
                .value();
            assert!(y.is_finite(), "{x} gave {y}");
        }
    }
}
