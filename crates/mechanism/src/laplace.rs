//! # Laplace on real values
//! **Definition.** `M(x) = 2^k (r(x/2^k) + Z)`: round each coordinate to a public grid, add discrete Laplace noise of scale `b/2^k`
//!   steps, scale back.
//! **Requires.** `‖x - x'‖₁ <= Δ` for all neighbours, of the floats as they are given; the step `2^k` and the number of
//!   coordinates `d` are public.
//! **Guarantee.** `ε`-DP with `ε = Δ_k/(b/2^k)`, where `Δ_k = ceil(Δ/2^k)` for one coordinate and
//!   `ceil(Δ/2^k) + d - 1` for `d` of them.
//! **Proof.** For `d = 1` see [`Grid`]. For more, `‖r(x) - r(x')‖₁ < Δ/2^k + d`, and the left side is an integer, so it is at most
//!   `ceil(Δ/2^k + d) - 1 = ceil(Δ/2^k) + d - 1`. The rest is [`DiscreteLaplace`], and scaling back is post-processing.
//! **Sampler.** Exact over the integers. Every output is a multiple of the step (rounded to a float if it needs more than 53 bits).
//! **Error.** That of the discrete Laplace, in steps, plus half a step.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Confidence, Entropy, Event, L1, Ratio, Relation, Scale, Secret, Sensitivity};

use crate::additive::{Noise, only};
use crate::grid::Grid;
use crate::{DiscreteLaplace, Error, Release, Result};

/// Adds Laplace noise to floats, on a public grid.
pub struct Laplace<R: Relation> {
    grid: Grid,
    coordinates: u64,
    steps: DiscreteLaplace<R>,
}

/// Vectors longer than this are not released at once.
pub(crate) const COORDINATES_MAX: u64 = 1 << 32;

impl<R: Relation> Laplace<R> {
    /// For vectors of a public length, on a given grid; [`Grid::for_scale`] gives one that costs nothing noticeable.
    pub fn new(scale: &Scale, sensitivity: &Sensitivity<L1, R>, coordinates: u64, grid: Grid) -> Result<Self> {
        check_coordinates(coordinates)?;
        let step = grid.step();
        let Noise::Laplace(scale) = Noise::Laplace(scale.clone()).in_steps(&step)? else {
            unreachable!("Laplace noise stays Laplace noise")
        };
        let in_steps = sensitivity.bound().checked_div(&step).expect("a step is positive");
        let bound = in_steps.ceil() + UBig::from(coordinates - 1);
        let bound = Ratio::from_rbig(RBig::from(bound)).expect("not negative");
        Ok(Self { grid, coordinates, steps: DiscreteLaplace::new(scale, Sensitivity::new(bound)) })
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

pub(crate) fn check_coordinates(coordinates: u64) -> Result<()> {
    if (1..=COORDINATES_MAX).contains(&coordinates) {
        return Ok(());
    }
    let what = "the number of coordinates";
    Err(Error::CountOutOfRange { what, given: coordinates, min: 1, max: COORDINATES_MAX })
}

/// Rounds to the grid and to the declared length.
pub(crate) fn to_steps(x: &[f64], coordinates: u64, grid: Grid) -> Vec<i128> {
    (0..coordinates as usize).map(|i| grid.round(x.get(i).copied().unwrap_or(0.0))).collect()
}
