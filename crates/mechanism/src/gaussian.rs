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
    pub fn new(scale: &Scale, sensitivity: &Sensitivity<L2, R>, coordinates: u64, grid: Grid) -> Result<Self> {
        check_coordinates(coordinates)?;
        let step = grid.step();
        let Noise::Gaussian(scale) = Noise::Gaussian(scale.clone()).in_steps(&step)? else {
            unreachable!("Gaussian noise stays Gaussian noise")
        };
        let square = sensitivity.square().checked_div(&(&step * &step)).expect("a step is positive");
        let sensitivity = Sensitivity::from_square(rounded_square(&square, coordinates));
        Ok(Self { grid, coordinates, steps: DiscreteGaussian::new(scale, sensitivity) })
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
    pub fn release_vector(&self, x: Secret<Vec<f64>>, entropy: &mut impl Entropy) -> Result<Release<Vec<f64>>> {
        let grid = self.grid;
        let steps = x.map(|x| to_steps(&x, self.coordinates, grid));
        Ok(self.steps.release_vector(steps, entropy)?.map(|steps| steps.iter().map(|&s| grid.value(s)).collect()))
    }

    /// The half-width of an interval around each released coordinate.
    pub fn half_width(&self, confidence: Confidence) -> f64 {
        self.grid.value(self.steps.half_width(confidence) as i128 + 1)
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
    if &floor * &floor == *value { floor } else { floor + UBig::ONE }
}
