//! # The parts of a contour
//! One kind of mechanism each: what steers the line (cumulants), what bounds the nodes beyond it (decay), and its moments along it, by closed
//! forms or by turning the nodes of its tilted law.

use std::cell::RefCell;

use crate::contour_line::Line;
use crate::decay::{Decay, LaplaceDecay};
use crate::tilt::{Cumulants, Rough, SampledGaussian, Tilted, UNIT};
use crate::tilt_laplace::SampledLaplace;

/// Turns of tilted nodes along one line, at most.
const TURNS_MAX: f64 = 2e7;
/// What is wanted of a moment to the power of its count: `e^-30` is about `1e-13`.
const MOMENT_DIGITS: f64 = 30.0;

/// A mechanism with moments.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Gaussian { sigma: f64 },
    Laplace { epsilon: f64 },
    Sampled(SampledGaussian, RefCell<Rough>),
    SampledLaplace(SampledLaplace),
}

/// `M_i(s_n)/M̃_i(c)` at one node.
pub(crate) struct Ratio {
    pub(crate) ln_size: f64,
    pub(crate) phase: f64,
    /// `ln(1 + η/|x|)`.
    pub(crate) excess: f64,
}

impl Part {
    pub(crate) fn cumulants(&self, c: f64) -> Option<Cumulants> {
        match self {
            Self::Gaussian { sigma } => {
                let square = 1.0 / (sigma * sigma);
                Some(Cumulants {
                    ln_moment: 0.5 * c * (c + 1.0) * square,
                    mean: (c + 0.5) * square,
                    variance: square,
                })
            }
            Self::Laplace { epsilon } => {
                let h = 1e-3 * (1.0 + c);
                let [low, middle, high] = [c - h, c, c + h].map(|s| ln_laplace(s, *epsilon));
                Some(Cumulants {
                    ln_moment: middle,
                    mean: (high - low) / (2.0 * h),
                    variance: ((high - 2.0 * middle + low) / (h * h)).max(1e-300),
                })
            }
            Self::Sampled(sampled, rough) => rough.borrow_mut().cumulants(sampled, c),
            Self::SampledLaplace(sampled) => sampled.cumulants(c),
        }
    }

    pub(crate) fn decay(&self, c: f64) -> Option<Decay> {
        match self {
            Self::Gaussian { sigma } => Some(Decay::Gaussian { sigma: *sigma }),
            Self::Laplace { epsilon } => {
                let cosh = libm::cosh((c + 0.5) * epsilon);
                let atoms = libm::exp(-epsilon / 2.0 - ln_laplace(c, *epsilon)) * cosh;
                Some(Decay::Laplace(LaplaceDecay {
                    epsilon: *epsilon,
                    atoms: atoms * (1.0 + 1e-12),
                    dip: 1.0 / (cosh * cosh) * (1.0 - 1e-12),
                }))
            }
            Self::Sampled(sampled, _) => sampled.decay(c),
            Self::SampledLaplace(sampled) => sampled.decay(c),
        }
    }

    /// An upper bound of `ln M(r)` for a real tilt.
    pub(crate) fn ln_moment_upper(&self, r: f64) -> Option<f64> {
        match self {
            Self::Gaussian { .. } => Some(self.cumulants(r)?.ln_moment * (1.0 + 1e-14)),
            Self::Laplace { epsilon } => {
                Some(ln_laplace(r, *epsilon) + 1e-14 * (1.0 + r * epsilon))
            }
            Self::Sampled(..) | Self::SampledLaplace(_) => {
                // Aliases are a small share of the value, so a few digits of them are enough.
                let (tilted, quadrature) = self.nodes(r, 0.0, 12.0)?;
                let missing = tilted.error + quadrature;
                Some(tilted.ln_moment + tilted.ln_error + libm::log1p(missing * 1.01) + 1e-15)
            }
        }
    }

    /// The nodes for all `|t| <= t_max`, and their quadrature error as a share of `M̃(c)`; `None` for closed forms.
    fn nodes(&self, c: f64, t_max: f64, digits: f64) -> Option<(Tilted, f64)> {
        let (tilted, error) = match self {
            Self::Sampled(sampled, _) => {
                let step = sampled.step(c, t_max, digits);
                let tilted = sampled.tilted(c, step)?;
                (tilted, sampled.quadrature_error(step, c, t_max))
            }
            Self::SampledLaplace(sampled) => {
                let step = sampled.step(c, t_max, digits)?;
                let tilted = sampled.tilted(c, step)?;
                let error = sampled.quadrature_error(step, c, t_max, tilted.ln_moment);
                (tilted, error)
            }
            Self::Gaussian { .. } | Self::Laplace { .. } => return None,
        };
        // A share of M(c) is at most this share of M̃(c), if both are near.
        (error + tilted.error < 0.005).then_some((tilted, error * 1.01))
    }

    /// Walks along the line and tells each node's ratio; adds `k ln M̃(c)` to the line's.
    pub(crate) fn along(
        &self,
        c: f64,
        step: f64,
        t_max: f64,
        count: f64,
        line: &mut Line,
        tell: &mut impl FnMut(usize, Ratio),
    ) -> Option<()> {
        let nodes = (t_max / step).round() as usize;
        match self {
            Self::Gaussian { sigma } => {
                let square = 1.0 / (sigma * sigma);
                let ln_moment = 0.5 * c * (c + 1.0) * square;
                line.ln_moment += count * ln_moment;
                line.ln_error += 8.0 * UNIT * count * ln_moment;
                for n in 0..=nodes {
                    let t = step * n as f64;
                    // Relative errors of 1/σ² act on both exponents.
                    let size = 0.5 * t * t * square;
                    let phase = t * (c + 0.5) * square;
                    tell(
                        n,
                        Ratio {
                            ln_size: -size,
                            phase,
                            excess: 8.0 * UNIT * (size + phase),
                        },
                    );
                }
            }
            Self::Laplace { epsilon } => {
                let real = ln_laplace(c, *epsilon);
                line.ln_moment += count * real;
                line.ln_error += count * UNIT * (16.0 + 16.0 * (c + 1.0) * epsilon);
                for n in 0..=nodes {
                    let t = step * n as f64;
                    let (re, im) = laplace(c, t, *epsilon, real);
                    let size = (re * re + im * im).sqrt();
                    let error = UNIT * (40.0 + 20.0 * (c + 1.0 + t) * epsilon);
                    let x = Ratio {
                        ln_size: libm::log(size),
                        phase: libm::atan2(im, re),
                        excess: libm::log1p(error / size),
                    };
                    tell(
                        n,
                        if n == 0 {
                            Ratio {
                                ln_size: 0.0,
                                phase: 0.0,
                                excess: error,
                            }
                        } else {
                            x
                        },
                    );
                }
            }
            Self::Sampled(..) | Self::SampledLaplace(_) => {
                let (tilted, quadrature) = self.nodes(c, t_max, MOMENT_DIGITS + count.ln())?;
                if nodes as f64 * tilted.losses.len() as f64 > TURNS_MAX {
                    return None;
                }
                line.ln_moment += count * tilted.ln_moment;
                line.ln_error += count * tilted.ln_error;
                let (turn_re, turn_im) = Spin::turns(&tilted.losses, step);
                let (block_re, block_im) = Spin::turns(&tilted.losses, step * BLOCK as f64);
                let mut block = Spin::new(&tilted.weights);
                let mut spin = block.clone();
                let mean_abs: f64 = tilted
                    .weights
                    .iter()
                    .zip(&tilted.losses)
                    .map(|(w, l)| w * l.abs())
                    .sum();
                let (mut re, mut im) = (1.0, 0.0);
                for n in 0..=nodes {
                    let t = step * n as f64;
                    if n > 0 && n % BLOCK == 0 {
                        (re, im) = block.turn(&block_re, &block_im);
                        spin.clone_from(&block);
                    } else if n > 0 {
                        (re, im) = spin.turn(&turn_re, &turn_im);
                    }
                    let turns = (n / BLOCK + n % BLOCK) as f64;
                    let error = quadrature
                        + tilted.error
                        + t * (tilted.loss_error + 2.0 * UNIT * mean_abs)
                        + UNIT
                            * (6.0 * turns + (tilted.weights.len() / LANES + LANES) as f64 + 10.0);
                    let size = (re * re + im * im).sqrt();
                    let x = if n == 0 {
                        Ratio {
                            ln_size: 0.0,
                            phase: 0.0,
                            excess: libm::log1p(error),
                        }
                    } else {
                        Ratio {
                            ln_size: libm::log(size),
                            phase: libm::atan2(im, re),
                            excess: libm::log1p(error / size),
                        }
                    };
                    tell(n, x);
                }
            }
        }
        Some(())
    }
}

/// After this many single turns, the next block starts from one long turn, so that turns and their rounding stay few.
const BLOCK: usize = 32;
/// So many numbers are turned and added up side by side.
const LANES: usize = 8;

/// Complex numbers, one for each node of a tilted law.
#[derive(Clone, Debug)]
struct Spin {
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Spin {
    /// The length is a multiple of [`LANES`]: nothing is added at the end.
    fn new(weights: &[f64]) -> Self {
        let length = weights.len().next_multiple_of(LANES);
        let mut re = weights.to_vec();
        re.resize(length, 0.0);
        Self {
            re,
            im: vec![0.0; length],
        }
    }

    /// Cosines and sines of `angle` times each loss, as long as the numbers that they turn.
    fn turns(losses: &[f64], angle: f64) -> (Vec<f64>, Vec<f64>) {
        let length = losses.len().next_multiple_of(LANES);
        let (mut cosines, mut sines) = (Vec::with_capacity(length), Vec::with_capacity(length));
        for loss in losses {
            let (sin, cos) = libm::sincos(angle * loss);
            cosines.push(cos);
            sines.push(sin);
        }
        cosines.resize(length, 0.0);
        sines.resize(length, 0.0);
        (cosines, sines)
    }

    /// Turns each by its own angle, and adds them up in lanes: one pass over memory for both.
    fn turn(&mut self, cos: &[f64], sin: &[f64]) -> (f64, f64) {
        let (mut sums_re, mut sums_im) = ([0.0; LANES], [0.0; LANES]);
        let lanes = self.re.chunks_mut(LANES).zip(self.im.chunks_mut(LANES));
        let turns = cos.chunks(LANES).zip(sin.chunks(LANES));
        for ((re, im), (cos, sin)) in lanes.zip(turns) {
            if let (Ok(re), Ok(im), Ok(cos), Ok(sin)) = (
                <&mut [f64; LANES]>::try_from(&mut *re),
                <&mut [f64; LANES]>::try_from(&mut *im),
                <&[f64; LANES]>::try_from(cos),
                <&[f64; LANES]>::try_from(sin),
            ) {
                for lane in 0..LANES {
                    let (x, y) = (re[lane], im[lane]);
                    re[lane] = x * cos[lane] - y * sin[lane];
                    im[lane] = x * sin[lane] + y * cos[lane];
                    sums_re[lane] += re[lane];
                    sums_im[lane] += im[lane];
                }
            }
        }
        (sums_re.iter().sum(), sums_im.iter().sum())
    }
}

/// `ln M(s)` of the Laplace pair at a real place.
fn ln_laplace(s: f64, epsilon: f64) -> f64 {
    let inverse = 1.0 / (2.0 * s + 1.0);
    let small = libm::exp(-(2.0 * s + 1.0) * epsilon);
    s * epsilon + libm::log(0.5 * ((1.0 + inverse) + small * (1.0 - inverse)))
}

/// `M(c+it)/e^ln_real` of the Laplace pair.
fn laplace(c: f64, t: f64, epsilon: f64, ln_real: f64) -> (f64, f64) {
    // 1/(2s+1)
    let (u, v) = (2.0 * c + 1.0, 2.0 * t);
    let norm = u * u + v * v;
    let (inv_re, inv_im) = (u / norm, -v / norm);
    let (sin, cos) = libm::sincos(t * epsilon);
    let (up, down) = (
        0.5 * libm::exp(c * epsilon - ln_real),
        0.5 * libm::exp(-(c + 1.0) * epsilon - ln_real),
    );
    // e^(ita)(1 + inv) and e^(-ita)(1 - inv)
    let (p, q) = (1.0 + inv_re, 1.0 - inv_re);
    let re = up * (cos * p - sin * inv_im) + down * (cos * q - sin * inv_im);
    let im = up * (sin * p + cos * inv_im) + down * (-sin * q - cos * inv_im);
    (re, im)
}
