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
    pub fn new(
        scale: &Scale,
        sensitivity: &Sensitivity<L1, R>,
        coordinates: u64,
        grid: Grid,
    ) -> Result<Self> {
        check_coordinates(coordinates)?;
        let step = grid.step();
        let Noise::Laplace(scale) = Noise::Laplace(scale.clone()).in_steps(&step)? else {
            unreachable!("Laplace noise stays Laplace noise")
        };
        let in_steps = sensitivity
            .bound()
            .checked_div(&step)
            .expect("a step is positive");
        let bound = in_steps.ceil() + UBig::from(coordinates - 1);
        let bound = Ratio::from_rbig(RBig::from(bound)).expect("not negative");
        Ok(Self {
            grid,
            coordinates,
            steps: DiscreteLaplace::new(scale, Sensitivity::new(bound)),
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

pub(crate) fn check_coordinates(coordinates: u64) -> Result<()> {
    if (1..=COORDINATES_MAX).contains(&coordinates) {
        return Ok(());
    }
    let what = "the number of coordinates";
    Err(Error::CountOutOfRange {
        what,
        given: coordinates,
        min: 1,
        max: COORDINATES_MAX,
    })
}

/// Rounds to the grid and to the declared length.
pub(crate) fn to_steps(x: &[f64], coordinates: u64, grid: Grid) -> Vec<i128> {
    (0..coordinates as usize)
        .map(|i| grid.round(x.get(i).copied().unwrap_or(0.0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, Shape, confidence, judge, scale, seed};
    use whit_core::{AddRemove, Mechanism};
    use whit_testkit::Seeded;

    fn mechanism(
        b: (u128, u128),
        sensitivity: f64,
        coordinates: u64,
        exponent: i32,
    ) -> Laplace<AddRemove> {
        let sensitivity = Sensitivity::from_f64(sensitivity).expect("finite");
        Laplace::new(
            &scale(b.0, b.1),
            &sensitivity,
            coordinates,
            Grid::new(exponent).expect("in range"),
        )
        .expect("valid")
    }

    fn steps_of(mechanism: &Laplace<AddRemove>) -> u128 {
        let event = mechanism.event();
        let Mechanism::DiscreteLaplace { sensitivity_l1, .. } = event.mechanism() else {
            panic!("another event")
        };
        u128::try_from(sensitivity_l1.floor()).expect("small")
    }

    #[test]
    fn closed_form() {
        // A sensitivity that is a multiple of the step grows by nothing; any other is rounded up.
        assert_eq!(steps_of(&mechanism((1, 1), 1.0, 1, -4)), 16);
        assert_eq!(steps_of(&mechanism((1, 1), 1.01, 1, -4)), 17);
        assert_eq!(steps_of(&mechanism((1, 1), 1.0, 3, -4)), 18);
        assert_eq!(steps_of(&mechanism((1, 1), 0.001, 1, 0)), 1);
        let fine = mechanism((1, 1), 1.0, 1, -30);
        let exact = (1.0_f64 / 0.05).ln();
        assert!((fine.half_width(confidence(0.95)) - exact).abs() < 1e-6);
    }

    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(241));
        let mechanism = mechanism((5, 2), 1.0, 1, -3);
        // 5/2 is 20 steps of an eighth.
        Shape::laplace(&scale(20, 1)).assert_fits("steps", 100_000, || {
            let y = *mechanism
                .release(Secret::new(1.25), &mut entropy)
                .expect("entropy")
                .value();
            ((y - 1.25) * 8.0) as i128
        });
    }

    /// Neighbours that rounding drives apart as far as it can: 0.4 and 2.9 steps are 0 and 3.
    fn seen(b: (u128, u128)) -> whit_audit::Verdict {
        let mechanism = mechanism(b, 2.5, 1, 0);
        let (mut one, mut other) = (Seeded::new(seed(242)), Seeded::new(seed(243)));
        let event = |x: f64, entropy: &mut Seeded| {
            *mechanism
                .release(Secret::new(x), entropy)
                .expect("entropy")
                .value()
                >= 3.0
        };
        judge(
            1.0,
            0.0,
            100_000,
            || event(2.9, &mut one),
            || event(0.4, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((3, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.92,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((27, 10)).convicted, "a tenth too little noise");
        // A twin that forgets what rounding does to the sensitivity.
        assert!(seen((5, 2)).convicted);
    }

    #[test]
    fn special_values_are_released_like_any_other() {
        let mut entropy = Seeded::new(244);
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
        let y = *mechanism
            .release(Secret::new(f64::NAN), &mut entropy)
            .expect("entropy")
            .value();
        assert!(y.abs() < 50.0, "what is no number counts as zero");
    }

    #[test]
    fn length_is_public() {
        let mut entropy = Seeded::new(245);
        for given in [0, 2, 3, 9] {
            let release = mechanism((1, 1), 1.0, 3, -20)
                .release_vector(Secret::new(vec![1.0; given]), &mut entropy);
            assert_eq!(release.expect("entropy").value().len(), 3);
        }
        let sensitivity = Sensitivity::<L1, AddRemove>::from_f64(1.0).expect("finite");
        assert!(
            Laplace::new(&scale(1, 1), &sensitivity, 0, Grid::for_scale(&scale(1, 1))).is_err()
        );
    }

    /// No two neighbouring vectors are further apart on the grid than the event says.
    #[test]
    fn rounding_stays_within_the_sensitivity() {
        use whit_core::Bits;
        let mut bits = whit_testkit::SeededBits::new(doubt::seed(246));
        let mut uniform = || bits.word() as f64 / 2_f64.powi(64);
        let grid = Grid::new(-2).expect("in range");
        let bound = steps_of(&mechanism((1, 1), 1.0, 3, -2)) as i128;
        for _ in 0..100_000 {
            let x: Vec<f64> = (0..3).map(|_| 10.0 * uniform() - 5.0).collect();
            // A random vector of L1 norm at most one.
            let cuts = [uniform(), uniform(), uniform()];
            let total: f64 = cuts.iter().sum::<f64>().max(1e-9);
            let moved: Vec<f64> = x
                .iter()
                .zip(cuts)
                .map(|(x, cut)| x + (1.0 - 1e-9) * cut / total)
                .collect();
            let distance: i128 = x
                .iter()
                .zip(&moved)
                .map(|(&a, &b)| (grid.round(a) - grid.round(b)).abs())
                .sum();
            assert!(distance <= bound, "{x:?} {moved:?}: {distance} > {bound}");
        }
    }
}
