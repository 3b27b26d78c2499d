//! Test instruments shared by the files of this crate: seeds, exact distributions, and the verdicts that every mechanism faces.

use whit_audit::{Alpha, Cells, Claim, Verdict, falsify};
use whit_core::{Delta, Epsilon, Ratio, Scale};
use whit_testkit::fresh;

/// The false-alarm rate of each statistical test. Fixed seeds make it zero in ordinary runs; where seeds are fresh, fits get a
/// second, larger try.
pub(crate) const ALPHA: f64 = 1e-6;

/// Fixed in ordinary runs; fresh, and printed, under `WHIT_LONG=1` or `WHIT_FRESH=1`.
pub(crate) fn seed(of: u64) -> u64 {
    if !fresh() {
        return of;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a test that asks for a fresh seed"
    )]
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |t| t.as_nanos() as u64);
    let seed = now ^ of.rotate_left(32);
    eprintln!("seed {seed} (for {of})");
    seed
}

/// The scale `numerator/denominator`.
pub(crate) fn scale(numerator: u128, denominator: u128) -> Scale {
    Scale::new(Ratio::new(numerator, denominator).expect("not zero")).expect("in range")
}

/// A distribution on the integers, cut into cells that a test can count in.
pub(crate) struct Shape {
    /// Values per cell.
    width: i128,
    /// Cells on each side of zero.
    cells: i128,
    probabilities: Vec<f64>,
}

impl Shape {
    /// Cells from a distribution function, about `per_scale` to a scale and `reach` scales to each side.
    fn from_cdf(scale: f64, reach: f64, cdf: impl Fn(i128) -> f64) -> Self {
        let width = (scale / 8.0).floor().max(1.0) as i128;
        let cells = ((reach * scale) as i128 / width).max(2);
        let probabilities = (-cells..=cells)
            .map(|cell| {
                let first = cell * width;
                (cdf(first + width - 1) - cdf(first - 1)).max(0.0)
            })
            .collect();
        Self {
            width,
            cells,
            probabilities,
        }
    }

    /// Discrete Laplace: `Pr[Z <= z]` is a closed form.
    pub(crate) fn laplace(scale: &Scale) -> Self {
        let b = scale.ratio().to_f64_up();
        let q = (-1.0 / b).exp();
        Self::from_cdf(b, 40.0, |z| {
            let tail = |t: i128| (-(t as f64) / b).exp() / (1.0 + q);
            if z >= 0 { 1.0 - tail(z + 1) } else { tail(-z) }
        })
    }

    /// Discrete Gaussian: summed for small scales; for large ones the normal distribution at half-integers, which is off by
    /// less than `1/(24 σ²)` relative.
    pub(crate) fn gaussian(scale: &Scale) -> Self {
        let sigma = scale.ratio().to_f64_up();
        if sigma > 5000.0 {
            return Self::from_cdf(sigma, 8.0, |z| {
                0.5 * libm::erfc(-(z as f64 + 0.5) / (sigma * std::f64::consts::SQRT_2))
            });
        }
        let weight = |z: i128| (-((z * z) as f64) / (2.0 * sigma * sigma)).exp();
        let last = (40.0 * sigma).ceil() as i128 + 2;
        let total: f64 = 1.0 + 2.0 * (1..=last).rev().map(weight).sum::<f64>();
        let mut below = 0.0;
        let sums: Vec<f64> = (-last..=last)
            .map(|z| {
                below += weight(z) / total;
                below
            })
            .collect();
        Self::from_cdf(sigma, 10.0, |z| match z + last {
            index if index < 0 => 0.0,
            index => sums.get(index as usize).copied().unwrap_or(1.0),
        })
    }

    /// Geometric on `0, 1, …`.
    pub(crate) fn geometric(scale: &Scale) -> Self {
        let b = scale.ratio().to_f64_up();
        Self::from_cdf(b, 40.0, |z| {
            if z < 0 {
                0.0
            } else {
                -libm::expm1(-((z + 1) as f64) / b)
            }
        })
    }

    /// The p-value of so many draws: of the worse of two tests, doubled. The G-test sees any difference; a z-test of the mean
    /// absolute value sees a wrong scale long before it.
    pub(crate) fn p_value(&self, draws: u64, mut draw: impl FnMut() -> i128) -> f64 {
        let index = |z: i128| {
            usize::try_from(z.div_euclid(self.width).saturating_add(self.cells))
                .unwrap_or(usize::MAX)
        };
        let distance = |cell: usize| (cell as f64 - self.cells as f64).abs();
        let mut total = 0.0;
        let cells = Cells::tally(
            self.probabilities.len(),
            (0..draws).map(|_| {
                let cell = index(draw());
                total += if cell < self.probabilities.len() {
                    distance(cell)
                } else {
                    0.0
                };
                cell
            }),
        );
        let fit = cells
            .g_test(&self.probabilities)
            .expect("probabilities are probabilities")
            .p_value;
        let moment = |power: i32| -> f64 {
            self.probabilities
                .iter()
                .enumerate()
                .map(|(cell, p)| p * distance(cell).powi(power))
                .sum()
        };
        let variance = moment(2) - moment(1).powi(2);
        // With hardly any mass beside zero the sum is no Gaussian; the G-test's exact part judges those.
        if variance * (draws as f64) < 100.0 {
            return fit;
        }
        let z = (total / draws as f64 - moment(1)) / (variance / draws as f64).sqrt();
        (2.0 * fit.min(libm::erfc(z.abs() / std::f64::consts::SQRT_2))).min(1.0)
    }

    /// Fails if the draws do not follow the shape: a second try with four times the draws must fail too.
    pub(crate) fn assert_fits(&self, what: &str, draws: u64, mut draw: impl FnMut() -> i128) {
        let first = self.p_value(draws, &mut draw);
        if first < ALPHA {
            let second = self.p_value(4 * draws, &mut draw);
            assert!(second >= ALPHA, "{what}: p = {first:e}, then {second:e}");
        }
    }
}

/// Runs a mechanism in two worlds and judges the claim by one event, fixed beforehand.
pub(crate) fn judge(
    epsilon: f64,
    delta: f64,
    trials: u64,
    world_one: impl FnMut() -> bool,
    world_other: impl FnMut() -> bool,
) -> Verdict {
    let claim = Claim {
        epsilon: Epsilon::new(epsilon).expect("an epsilon"),
        delta: Delta::new(delta).expect("a delta"),
    };
    let alpha = Alpha::new(ALPHA).expect("a level");
    falsify(claim, trials, alpha, world_one, world_other).expect("enough trials")
}

/// Entropy that reads a tape, for walking through every outcome of a whole mechanism. One release per tape.
pub(crate) struct TapeEntropy<'a, const W: u32>(pub(crate) Option<&'a mut whit_audit::Tape<W>>);

impl<'a, const W: u32> whit_core::Entropy for TapeEntropy<'a, W> {
    type Bits = &'a mut whit_audit::Tape<W>;

    fn open(&mut self) -> Result<Self::Bits, whit_core::EntropyFailure> {
        self.0.take().ok_or(whit_core::EntropyFailure)
    }
}

/// `c` with the given value.
pub(crate) fn confidence(value: f64) -> whit_core::Confidence {
    whit_core::Confidence::new(value).expect("between zero and one")
}
