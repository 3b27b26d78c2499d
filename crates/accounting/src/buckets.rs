//! # Privacy Buckets
//! **Problem** \[SMM19\]. Two distributions `P` and `Q` over outcomes, as a table; `r` independent observations. What is `δ(ε)`
//! of the `r` together? Enumerating `n^r` outcomes is out of reach, so outcomes are put into `n` buckets by their loss
//! `ln(P/Q)`, and buckets are composed: pessimistically, with losses rounded up, and optimistically, with losses rounded down.
//!
//! **Here.** The buckets are cells of a grid over all sums of `r` losses, so they need not be squared and rearranged between
//! compositions; rounding is of second order (`discretize.rs`), and all `r` compositions are one power of a spectrum instead of
//! `log r` quadratic convolutions: of the few frequencies that count where losses are smooth (`spectrum.rs`), else of all of them, by one
//! pair of Fourier transforms (`convolve.rs`). Both bounds hold in floating point.
//!
//! One [`Buckets`] bounds one direction. For guarantees in both, take the larger of `(P, Q)` and `(Q, P)`.

use crate::Bracket;
use crate::atoms::{Atoms, Sum};
use crate::curve::Curve;
use crate::pair::Pair;
use crate::pld::{Fineness, Part, Pld};

/// How many buckets, and how many independent observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Buckets of the composition; rounded up to a power of two.
    pub buckets: usize,
    /// How often the pair is composed with itself.
    pub folds: u64,
}

/// Upper and lower bounds of the profile of a composition, in buckets.
///
/// ```
/// use whit_accounting::buckets::{Buckets, Size};
///
/// // A coin that comes up heads with 3/4 against one with 1/4, tossed a hundred times.
/// let size = Size { buckets: 10_000, folds: 100 };
/// let mut coins = Buckets::of_table(&[0.75, 0.25], &[0.25, 0.75], size).expect("two distributions");
/// let epsilon = coins.epsilon(1e-6);
/// assert!(epsilon.lower() <= epsilon.upper() && epsilon.upper() < 100.0 * 3_f64.ln());
/// ```
pub struct Buckets {
    pld: Pld,
}

/// How far from one the masses of a table may add up.
const SUM_ERROR: f64 = 1e-9;
/// Quotients that differ by a smaller share are not told apart: some units, and below what tells atoms apart.
const ALIKE: f64 = 16.0 * f64::EPSILON;

impl Buckets {
    /// Two distributions over the same outcomes, as they are tabulated. None if the tables are not of equal length, or hold
    /// numbers that are no probabilities, or do not add up to one, or have no outcome in common.
    pub fn of_table(p: &[f64], q: &[f64], size: Size) -> Option<Self> {
        let is_law = |masses: &[f64]| {
            masses.iter().all(|mass| (0.0..=1.0).contains(mass))
                && (masses.iter().sum::<f64>() - 1.0).abs() <= SUM_ERROR
        };
        if p.len() != q.len() || !is_law(p) || !is_law(q) {
            return None;
        }
        let mut infinite = Bracket::ZERO;
        let mut atoms = Vec::new();
        let mut run: Option<Run> = None;
        for (&p, &q) in p.iter().zip(q) {
            if p > 0.0 && q > 0.0 {
                let quotient = p / q;
                if !quotient.is_normal() {
                    // Too small or too large for floats, but the logarithms of both masses are not.
                    let mass = Bracket::exact(p);
                    atoms.push((mass.ln() - Bracket::exact(q).ln(), mass));
                } else if !run.as_mut().is_some_and(|run| run.add(quotient, p)) {
                    atoms.extend(run.replace(Run::new(quotient, p)).map(Run::atom));
                }
            } else if p > 0.0 {
                infinite = infinite + Bracket::exact(p);
            }
        }
        atoms.extend(run.map(Run::atom));
        let atoms = Atoms::new(atoms, infinite)?;
        let part = Part {
            profile: Box::new(atoms),
            count: size.folds,
        };
        Some(Self::new(part, size))
    }

    /// Laplace noise, by its scale over the sensitivity. None if that is not a positive number.
    pub fn of_laplace(scale: f64, size: Size) -> Option<Self> {
        let pair = Pair::Laplace { scale };
        is_positive(scale).then(|| Self::new(Part::new(&pair, size.folds), size))
    }

    /// Gaussian noise, by its standard deviation over the sensitivity. None if that is not a positive number.
    pub fn of_gaussian(sigma: f64, size: Size) -> Option<Self> {
        let pair = Pair::Gaussian { sigma };
        is_positive(sigma).then(|| Self::new(Part::new(&pair, size.folds), size))
    }

    fn new(part: Part, size: Size) -> Self {
        Self {
            pld: Pld::new(vec![part], Fineness::Cells(size.buckets)),
        }
    }

    /// The least epsilon at which `δ(ε) <= delta`.
    pub fn epsilon(&mut self, delta: f64) -> Bracket {
        self.pld.epsilon(delta)
    }

    /// `δ(ε)`.
    pub fn delta(&mut self, epsilon: f64) -> Bracket {
        Curve::delta(&mut self.pld, epsilon)
    }
}

/// Outcomes in a row whose quotients `P/Q` differ by hardly more than rounding: tables of noise are full of them, and they are one atom
/// with one logarithm.
struct Run {
    low: f64,
    high: f64,
    mass: Sum,
}

impl Run {
    fn new(quotient: f64, mass: f64) -> Self {
        Self {
            low: quotient,
            high: quotient,
            mass: Sum::new(mass),
        }
    }

    /// False if this quotient is another.
    fn add(&mut self, quotient: f64, mass: f64) -> bool {
        let (low, high) = (self.low.min(quotient), self.high.max(quotient));
        let alike = high - low <= ALIKE * low;
        if alike {
            (self.low, self.high) = (low, high);
            self.mass.add(mass);
        }
        alike
    }

    /// The losses of all, and their mass. A normal quotient errs by half a unit of itself, so its logarithm by half a unit of one, and by two
    /// units of its own.
    fn atom(self) -> (Bracket, Bracket) {
        let loss = |quotient: f64| {
            let ln = libm::log(quotient);
            Bracket::around(ln, f64::EPSILON * (1.0 + 2.0 * ln.abs()))
        };
        let mut losses = loss(self.low);
        if self.high > self.low {
            losses = losses.hull(loss(self.high));
        }
        (losses, self.mass.bracket())
    }
}

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(buckets: usize, folds: u64) -> Size {
        Size { buckets, folds }
    }

    /// All `n^r` outcomes, one by one.
    fn enumerated(p: &[f64], q: &[f64], folds: u32, epsilon: f64) -> f64 {
        let outcomes = p.len().pow(folds);
        (0..outcomes)
            .map(|mut outcome| {
                let (mut x, mut y) = (1.0, 1.0);
                for _ in 0..folds {
                    x *= p[outcome % p.len()];
                    y *= q[outcome % p.len()];
                    outcome /= p.len();
                }
                (x - epsilon.exp() * y).max(0.0)
            })
            .sum()
    }

    #[test]
    fn tables_hold_what_enumeration_finds() {
        let p = [0.4, 0.25, 0.2, 0.1, 0.05];
        let q = [0.1, 0.3, 0.25, 0.15, 0.2];
        for folds in 1..=6 {
            let mut buckets = Buckets::of_table(&p, &q, size(4096, folds.into())).expect("laws");
            for epsilon in [0.0, 0.3, 1.0, 2.0, 5.0] {
                let truth = enumerated(&p, &q, folds, epsilon);
                let found = buckets.delta(epsilon);
                assert!(
                    found.lower() <= truth + 1e-14 && truth <= found.upper() + 1e-14,
                    "{folds} {epsilon}: {found:?} {truth}"
                );
                assert!(
                    found.upper() - found.lower() < 0.01,
                    "{folds} {epsilon}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn outcomes_of_one_side_alone_are_infinite_losses() {
        let (p, q) = ([0.5, 0.499, 0.001, 0.0], [0.499, 0.5, 0.0, 0.001]);
        let mut buckets = Buckets::of_table(&p, &q, size(1000, 3)).expect("laws");
        let truth = 1.0 - 0.999_f64.powi(3);
        let found = buckets.delta(1.0);
        assert!((found.lower() - truth).abs() < 1e-12 && (found.upper() - truth).abs() < 1e-12);
        assert_eq!(buckets.epsilon(1e-4), Bracket::exact(f64::INFINITY));
        assert!(buckets.epsilon(0.01).upper() < 0.1);
    }

    /// The seed's figure: width 2.1e-3 with 100,000 buckets; the truth is golden value 010.
    #[test]
    fn laplace_after_512_observations() {
        let mut buckets = Buckets::of_laplace(20.0, size(100_000, 512)).expect("a scale");
        let found = buckets.epsilon(1e-5);
        assert!(found.holds(4.986458909916051));
        assert!(found.upper() - found.lower() < 1e-6, "{found:?}");
    }

    /// Runs hold the losses of all their outcomes, and end where quotients are others.
    #[test]
    fn runs_are_one_atom() {
        let mut run = Run::new(3.0, 0.25);
        assert!(run.add(3.0_f64.next_up(), 0.125) && run.add(3.0_f64.next_down(), 0.0625));
        assert!(!run.add(3.0 * (1.0 + 1e-13), 0.5) && !run.add(1.0 / 3.0, 0.5));
        let (losses, mass) = run.atom();
        assert_eq!(mass, Bracket::exact(0.4375));
        for quotient in [3.0, 3.0_f64.next_up(), 3.0_f64.next_down()] {
            let truth = Bracket::exact(quotient).ln();
            assert!(losses.lower() <= truth.lower() && truth.upper() <= losses.upper());
        }
        assert!(losses.upper() - losses.lower() < 3e-15);
        // e^x - 1 is x up to far less than a unit of one.
        let small = 2.0_f64.powi(-50);
        assert!(Run::new(1.0 + small, 0.5).atom().0.holds(small));
        // Steps that are alike, one after the other, do not creep away.
        let mut creeping = Run::new(1.0, 0.5);
        let ends = (0..1000).map(|unit| 1.0 + f64::from(unit) * f64::EPSILON);
        assert_eq!(ends.filter(|&end| creeping.add(end, 1e-9)).count(), 17);
    }

    /// In a row or far apart, and with quotients beyond the floats: the same table.
    #[test]
    fn the_order_of_outcomes_does_not_matter() {
        let tiny = f64::from_bits(1);
        let table = [
            (0.25, 0.125),
            (0.25, 0.125),
            (0.125, 0.25),
            (0.125, 0.25),
            (0.25, 0.25),
            (tiny, 0.0),
            (tiny, tiny),
        ];
        for order in [[0, 1, 2, 3, 4, 5, 6], [6, 0, 2, 4, 1, 5, 3]] {
            let (p, q): (Vec<f64>, Vec<f64>) = order.map(|place| table[place]).into_iter().unzip();
            let mut buckets = Buckets::of_table(&p, &q, size(4096, 4)).expect("laws");
            for epsilon in [0.0, 0.7, 2.0] {
                let (found, truth) = (buckets.delta(epsilon), enumerated(&p, &q, 4, epsilon));
                assert!(found.lower() <= truth + 1e-15 && truth <= found.upper() + 1e-15);
                assert!(found.relative_width() < 1e-6, "{epsilon}: {found:?}");
            }
        }
        // A quotient of 2^1073 is no float, but a loss of 743.7.
        let buckets = Buckets::of_table(&[0.5, 0.5], &[tiny, 1.0], size(4096, 1));
        let found = buckets.expect("laws").delta(700.0);
        assert!(found.lower() <= 0.5 && found.upper() >= 0.5 * (1.0 - 1e-15));
    }

    #[test]
    fn few_buckets_are_wide_and_many_are_narrow() {
        let mut last = f64::INFINITY;
        for count in [1000, 10_000, 100_000] {
            let mut buckets = Buckets::of_gaussian(20.0, size(count, 512)).expect("a scale");
            let found = buckets.epsilon(1e-5);
            // Golden value 001.
            assert!(found.holds(5.052787674052982), "{count}: {found:?}");
            assert!(found.relative_width() < last / 20.0);
            last = found.relative_width();
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let all = size(100, 2);
        assert!(Buckets::of_table(&[0.5, 0.5], &[1.0], all).is_none());
        assert!(Buckets::of_table(&[0.5, 0.6], &[0.5, 0.5], all).is_none());
        assert!(Buckets::of_table(&[1.5, -0.5], &[0.5, 0.5], all).is_none());
        assert!(Buckets::of_table(&[f64::NAN, 1.0], &[0.5, 0.5], all).is_none());
        assert!(Buckets::of_table(&[1.0, 0.0], &[0.0, 1.0], all).is_none());
        assert!(Buckets::of_table(&[], &[], all).is_none());
        assert!(Buckets::of_laplace(0.0, all).is_none());
        assert!(Buckets::of_gaussian(f64::NAN, all).is_none());
    }
}
