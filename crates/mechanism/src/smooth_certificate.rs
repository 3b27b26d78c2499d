//! Smooth noise under exact comparison: every output on every pair of neighbours, as the theorem is about all of them. The
//! broken twins of smooth sensitivity are convicted here without drawing a sample.

use dashu_ratio::RBig;
use whit_core::{Delta, Epsilon, Ratio, ReplaceOne, Rho};

use crate::smooth_median::OrderedRows;
use crate::smooth_noise::exp_lower;
use crate::smooth_sensitivity::{LocalSensitivity, Smoothness};
use crate::{Bounds, SmoothNoise};

/// A value and its smooth sensitivity.
pub(crate) type Input = (i128, RBig);

/// `Pr[M(x) ∈ E] <= exp(ε) Pr[M(x') ∈ E]` for every event of the continuous Cauchy mechanism, decided in rationals:
/// `exp(ε) s'(s² + (y-f)²) - s(s'² + (y-f')²)` is a quadratic in `y` that is nowhere negative.
pub(crate) fn cauchy_holds(x: &Input, other: &Input, alpha: &RBig, epsilon: &RBig) -> bool {
    let factor = exp_lower(epsilon);
    let (s, t) = (&x.1 / alpha, &other.1 / alpha);
    let d = RBig::from(other.0 - x.0);
    let a = &factor * &t - &s;
    let c = &factor * &t * &s * &s - &s * &t * &t - &s * &d * &d;
    let b = &s * &d;
    a >= RBig::ZERO && c >= RBig::ZERO && &b * &b <= a * c
}

/// The smallest `δ` at `ε` between the rounded Laplace mechanisms on two inputs, up to `1e-13`.
pub(crate) fn laplace_delta(x: &Input, other: &Input, alpha: &RBig, epsilon: f64) -> f64 {
    let float = |r: &RBig| r.to_f64().value();
    let mass = |(f, s): &Input, y: i128| {
        let s = float(s) / float(alpha);
        let tail = |t: f64| (-t / s).exp() / 2.0;
        let z = (y - f).unsigned_abs() as f64;
        if z == 0.0 {
            1.0 - 2.0 * tail(0.5)
        } else {
            tail(z - 0.5) - tail(z + 0.5)
        }
    };
    let reach = (float(&x.1).max(float(&other.1)) / float(alpha) * 40.0) as i128 + 2;
    let (low, high) = (x.0.min(other.0) - reach, x.0.max(other.0) + reach);
    (low..=high)
        .map(|y| (mass(x, y) - epsilon.exp() * mass(other, y)).max(0.0))
        .sum()
}

mod tests {
    use super::*;

    type Rows = OrderedRows<ReplaceOne>;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("an epsilon")
    }

    fn smoothness(beta: f64) -> Smoothness {
        Smoothness::new(&Ratio::from_f64(beta).expect("finite"))
    }

    fn bounds(lower: f64, upper: f64) -> Bounds {
        Bounds::new(lower, upper).expect("a range")
    }

    fn cauchy(value: f64) -> SmoothNoise<ReplaceOne> {
        SmoothNoise::cauchy(epsilon(value)).expect("in range")
    }

    fn laplace(value: f64, delta: f64) -> SmoothNoise<ReplaceOne> {
        let delta = Delta::new(delta).expect("a delta");
        SmoothNoise::laplace(epsilon(value), delta).expect("in range")
    }

    fn beta(noise: &SmoothNoise<ReplaceOne>) -> f64 {
        -noise.smoothness().decay().to_f64_up().ln()
    }

    /// The pairs at which the theorem is tight: same scale and full shift, or scales that differ by the whole factor.
    fn worst_pairs(noise: &SmoothNoise<ReplaceOne>) -> [(Input, Input); 3] {
        let unit = RBig::from(1000);
        let wide = &unit / noise.smoothness().decay().as_rbig();
        [
            ((0, unit.clone()), (1000, unit.clone())),
            ((0, unit.clone()), (1000, wide.clone())),
            ((0, unit), (0, wide)),
        ]
    }

    #[test]
    fn cauchy_is_tight() {
        for value in [0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 64.0] {
            let noise = cauchy(value);
            let exact = epsilon(value).to_ratio().as_rbig().clone();
            // One part in 10^9 for the rounding of e^ε down.
            let claim = &exact * "1000000001/1000000000".parse::<RBig>().expect("a fraction");
            let holds = |alpha: &RBig| {
                worst_pairs(&noise).iter().all(|(x, other)| {
                    cauchy_holds(x, other, alpha, &claim) && cauchy_holds(other, x, alpha, &claim)
                })
            };
            assert!(holds(noise.alpha().as_rbig()), "ε = {value}");
            let tenth = noise.alpha().as_rbig() * RBig::from_parts(1001.into(), 1000_u32.into());
            assert!(!holds(&tenth), "ε = {value} with a thousandth less noise");
        }
    }

    #[test]
    fn laplace_keeps_its_delta() {
        for (value, delta) in [
            (1.0, 1e-3),
            (0.5, 1e-6),
            (4.0, 1e-6),
            (20.0, 1e-6),
            (1.0, 0.5),
        ] {
            let noise = laplace(value, delta);
            let found = worst_pairs(&noise)
                .iter()
                .flat_map(|(x, other)| {
                    [(x, other), (other, x)]
                        .map(|(x, other)| laplace_delta(x, other, noise.alpha().as_rbig(), value))
                })
                .fold(0.0, f64::max);
            assert!(found <= delta, "{value} {delta}: {found}");
            // The stretch alone uses up all of δ at ε/2, unless ε/2 limits it.
            let [_, _, (x, wide)] = worst_pairs(&noise);
            let stretch = laplace_delta(&wide, &x, noise.alpha().as_rbig(), value / 2.0);
            assert!(stretch <= delta * 1.001, "{value} {delta}: {stretch}");
            assert!(
                stretch > 0.95 * delta || beta(&noise) > 0.49 * value,
                "{stretch}"
            );
        }
    }

    /// The Rényi divergence of the worst pair, by numerical integration, against `a ρ`.
    #[test]
    fn log_normal_is_concentrated() {
        let rho = 0.5;
        let noise = SmoothNoise::<ReplaceOne>::laplace_log_normal(Rho::new(rho).expect("positive"))
            .expect("in range");
        let nodes: Vec<(f64, f64)> = (-160..=160)
            .map(|i| f64::from(i) / 20.0)
            .map(|y| {
                (
                    (-y * y / 2.0).exp() / 50.132_565_492_620_01,
                    (-0.45 * y).exp(),
                )
            })
            .collect();
        let density = |z: f64| -> f64 {
            let terms = nodes
                .iter()
                .map(|(p, w)| p * w / 2.0 * (-w * z.abs()).exp());
            terms.sum()
        };
        let divergence = |alpha: f64, stretch: f64, order: f64| -> f64 {
            // Unit scale at zero, and the stretched scale a shift away; a graded grid, denser near the middle.
            let sum: f64 = (-2000..2000)
                .map(|i| (f64::from(i) + 0.5) / 200.0)
                .map(|u| (u.sinh() * 0.5, u.cosh() * 0.5 / 200.0))
                .map(|(z, width)| {
                    let p = density(z);
                    let q = density((z - alpha) / stretch) / stretch;
                    p.powf(order) * q.powf(1.0 - order) * width
                })
                .sum();
            sum.ln() / (order - 1.0)
        };
        let (alpha, stretch) = (noise.alpha().to_f64_up(), beta(&noise).exp());
        for order in [1.5, 2.0, 4.0] {
            assert!(divergence(alpha, stretch, order) <= order * rho);
            assert!(divergence(alpha, 1.0 / stretch, order) <= order * rho);
        }
        // Noise four times too small is not concentrated so.
        assert!(divergence(4.0 * alpha, 1.0 / stretch, 1.5) > 1.5 * rho);
    }

    /// All data sets of up to five rows over a small domain, with all their neighbours: the three properties, exactly.
    fn for_all_neighbours(mut visit: impl FnMut(&Rows, &Rows)) {
        let range = bounds(0.0, 7.0);
        let unit = range.upper() / 7;
        let rows = |code: usize, n: u32| -> Vec<i64> {
            let digit = |place: u32| [0, 1, 3, 7][code / 4_usize.pow(place) % 4] * unit;
            (0..n).map(digit).collect()
        };
        for n in 1..=5 {
            for code in 0..4_usize.pow(n) {
                let one = rows(code, n);
                // Order does not matter, so sorted data sets stand for all.
                if one.is_sorted() {
                    for (place, value) in (0..n as usize).flat_map(|p| [0, 1, 3, 7].map(|v| (p, v)))
                    {
                        let mut other = one.clone();
                        other[place] = value * unit;
                        visit(&Rows::new(range, one.clone()), &Rows::new(range, other));
                    }
                }
            }
        }
    }

    #[test]
    fn bound_is_smooth_for_all_neighbours() {
        let smoothness = smoothness(0.3);
        let decay = smoothness.decay().as_rbig().clone();
        for_all_neighbours(|one, other| {
            let (a, b) = (one.smooth(&smoothness), other.smooth(&smoothness));
            assert!(a.steps() * &decay <= *b.steps());
            assert!(RBig::from(one.value().abs_diff(other.value())) <= *a.steps());
            assert!((0..7).all(|k| one.at_distance(k) <= other.at_distance(k + 1)));
        });
    }

    /// Every output of the whole mechanism on every pair of neighbours, for sensitivities made by `sense`: how many pairs break
    /// the claim.
    fn broken_pairs(
        noise: &SmoothNoise<ReplaceOne>,
        sense: impl Fn(&Rows) -> RBig,
        holds: impl Fn(&Input, &Input, &RBig) -> bool,
    ) -> usize {
        let alpha = noise.alpha().as_rbig().clone();
        let mut broken = 0;
        for_all_neighbours(|one, other| {
            let input = |rows: &Rows| (rows.value(), sense(rows));
            broken += usize::from(!holds(&input(one), &input(other), &alpha));
        });
        broken
    }

    #[test]
    fn exact_comparison_of_all_neighbours() {
        let claim = 0.8;
        let noise = SmoothNoise::cauchy(epsilon(claim)).expect("in range");
        let exact = epsilon(claim).to_ratio().as_rbig().clone();
        let pure = |x: &Input, y: &Input, alpha: &RBig| cauchy_holds(x, y, alpha, &exact);
        let with = |s: Smoothness| move |rows: &Rows| rows.smooth(&s).steps().clone();
        assert_eq!(
            broken_pairs(&noise, with(noise.smoothness().clone()), pure),
            0
        );
        // Twins: the local sensitivity itself; a smoothness twice too large; the median's neighbours on one side only.
        let local = |rows: &Rows| RBig::from(rows.at_distance(0).max(1));
        assert!(broken_pairs(&noise, local, pure) > 0);
        assert!(broken_pairs(&noise, with(smoothness(2.0 * 0.57)), pure) > 0);
        let one_sided = |rows: &Rows| RBig::from(rows.gap(0, 1).max(1));
        assert!(broken_pairs(&noise, one_sided, pure) > 0);
    }

    #[test]
    fn exact_comparison_of_all_neighbours_with_a_delta() {
        let (claim, slack) = (1.0, 1e-3);
        let delta = Delta::new(slack).expect("a delta");
        let noise = SmoothNoise::laplace(epsilon(claim), delta).expect("in range");
        // In coarse steps, so that all outputs can be summed: the claim is about any scale.
        let coarse = |(value, sensitivity): &Input| -> Input {
            let unit = bounds(0.0, 7.0).upper() / 7;
            (value / i128::from(unit), sensitivity / RBig::from(unit))
        };
        let holds = |x: &Input, y: &Input, alpha: &RBig| {
            laplace_delta(&coarse(x), &coarse(y), alpha, claim) <= slack
        };
        let with = |s: Smoothness| move |rows: &Rows| rows.smooth(&s).steps().clone();
        assert_eq!(
            broken_pairs(&noise, with(noise.smoothness().clone()), holds),
            0
        );
        let beta = -noise.smoothness().decay().to_f64_up().ln();
        assert!(broken_pairs(&noise, with(smoothness(6.0 * beta)), holds) > 0);
        let local = |rows: &Rows| RBig::from(rows.at_distance(0).max(1));
        assert!(broken_pairs(&noise, local, holds) > 0);
    }
}
