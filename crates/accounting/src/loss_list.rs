//! # Finitely many losses, anywhere
//! **Setting.** Losses without a lattice: tabulated pairs, and compositions of mechanisms whose units do not fit each other
//! (Murtagh and Vadhan's heterogeneous composition \[MV16\], of which the exact answer takes all sums). Two lists of atoms are kept,
//! one that dominates the truth and one that the truth dominates; both are exact but for rounding, each to its side, until there
//! are too many atoms.
//!
//! **What may be done to a list.** Its profile is `Σ m (1 - e^(ε-l))_+`, the mean of a convex function of `x = e^-l` that rises with
//! every loss and mass. So
//! - *above*: raise losses and masses; or spread an atom over two losses around it so that `Σ m` and `Σ m e^-l` stay. Then
//!   `x` keeps its mean and is spread, and the profile rises.
//! - *below*: lower them; or put atoms together at the loss `-ln(Σ m e^-l/Σ m)`: `x` becomes its own mean and the profile falls.
//!
//! Both hold inside every composition, since its profile is a mixture of profiles of each factor. Coarsening by cells of width `h`
//! (`loss_grid.rs`) thus costs order `h²`, on both sides.
//!
//! **Evaluation.** With losses `l_1 < l_2 < …`, `A_i = Σ_(j>=i) m_j` and `D_i = Σ_(j>i) m_j (1 - e^(l_i-l_j))`, from the top down
//! `D_(i-1) = (1 - e^(l_(i-1)-l_i)) A_i + e^(l_(i-1)-l_i) D_i`, and between two losses likewise. All terms are positive: each list is
//! rounded to its side throughout.

use whit_core::round;

use crate::Bracket;
use crate::curve::{self, Curve};
use crate::lattice_pair::{LatticePair, Shape};
use crate::loss_grid::product;

/// The longest list of a few steps.
const BATCH_MAX: usize = 64;
/// Powers up to so many of these times their atoms are taken one by one, on the finest grid, and else by squares.
const STEPWISE_MAX: u64 = 1 << 12;
/// Losses closer than this share of the largest are one: sums of the same floats in another order.
const NEAR: f64 = 1e-15;

/// A loss, and its mass under `P`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Atom {
    pub(crate) loss: f64,
    pub(crate) mass: f64,
}

/// On which side of the truth a list stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Above,
    Below,
}

/// A finite pair, or a composition of such.
#[derive(Clone, Debug)]
pub(crate) struct LossList {
    above: Vec<Atom>,
    below: Vec<Atom>,
    infinite: Bracket,
}

impl LossList {
    /// No loss at all.
    pub(crate) fn none() -> Self {
        let one = vec![Atom {
            loss: 0.0,
            mass: 1.0,
        }];
        Self {
            above: one.clone(),
            below: one,
            infinite: Bracket::ZERO,
        }
    }

    /// Any two probability vectors over the same outputs, for the direction from `p` to `q`. The floats mean exactly themselves
    /// but for a common factor: each vector is divided by its sum, since few decimals add up to one in floats. None if a vector
    /// is no distribution: lengths differ, an entry is negative, or a sum is further than 1e-9 from one.
    pub(crate) fn tabulated(p: &[f64], q: &[f64]) -> Option<Self> {
        let sum = |vector: &[f64]| {
            vector
                .iter()
                .fold(Bracket::ZERO, |sum, &mass| sum + Bracket::exact(mass))
        };
        let valid = |vector: &[f64]| {
            let total = sum(vector);
            vector.iter().all(|&mass| mass >= 0.0)
                && total.lower() >= 1.0 - 1e-9
                && total.upper() <= 1.0 + 1e-9
        };
        if p.len() != q.len() || !valid(p) || !valid(q) {
            return None;
        }
        let (p_sum, q_sum) = (sum(p), sum(q));
        let scale = q_sum.ln() - p_sum.ln();
        let mut found = Self {
            above: Vec::new(),
            below: Vec::new(),
            infinite: Bracket::ZERO,
        };
        for (&p, &q) in p.iter().zip(q) {
            let mass = Bracket::exact(p) / p_sum;
            if p > 0.0 && q > 0.0 {
                // Next to 1, the quotient is known better by what it differs from it.
                let (p, q) = (Bracket::exact(p), Bracket::exact(q));
                let loss = (p / q).ln().meet(((p - q) / q).ln_1p()) + scale;
                found.push(loss, mass);
            } else if p > 0.0 {
                found.infinite = found.infinite + mass;
            }
        }
        found.infinite = found.infinite.clamp(0.0, 1.0);
        Some(found.tidy())
    }

    /// The atoms of a lattice pair; none if there is no end of them.
    pub(crate) fn of_lattice(pair: &LatticePair) -> Option<Self> {
        let Shape::Masses(masses) = &pair.shape else {
            return None;
        };
        let mut found = Self {
            above: Vec::new(),
            below: Vec::new(),
            infinite: pair.infinite,
        };
        for (index, mass) in (0..).zip(masses) {
            found.push(pair.loss(index), mass.exp());
        }
        Some(found.tidy())
    }

    fn push(&mut self, loss: Bracket, mass: Bracket) {
        self.above.push(Atom {
            loss: loss.upper(),
            mass: mass.upper(),
        });
        self.below.push(Atom {
            loss: loss.lower(),
            mass: mass.lower().max(0.0),
        });
    }

    fn tidy(self) -> Self {
        Self {
            above: tidy(self.above, Side::Above),
            below: tidy(self.below, Side::Below),
            infinite: self.infinite,
        }
    }

    /// Both together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let one = Bracket::exact(1.0);
        // Written so that small masses are not lost beside 1.
        let infinite = self.infinite + (one - self.infinite) * other.infinite;
        Self {
            above: product(&self.above, &other.above, Side::Above),
            below: product(&self.below, &other.below, Side::Below),
            infinite: infinite.clamp(0.0, 1.0),
        }
    }

    /// `count` times.
    pub(crate) fn power(&self, count: u64) -> Self {
        let mut power = Self::none();
        // A few steps together make as long a list as is worth multiplying by.
        let (mut batch, mut size) = (self.clone(), 1);
        while size <= count / 2 && batch.len() * batch.len() <= BATCH_MAX * BATCH_MAX {
            let next = batch.and(&batch);
            if next.len() > BATCH_MAX {
                break;
            }
            (batch, size) = (next, 2 * size);
        }
        let (batches, rest) = (count / size, count % size);
        if batches.saturating_mul(batch.len() as u64) <= STEPWISE_MAX {
            for _ in 0..rest {
                power = power.and(self);
            }
            for _ in 0..batches {
                power = power.and(&batch);
            }
        } else {
            let (mut square, mut left) = (self.clone(), count);
            while left > 0 {
                if left % 2 == 1 {
                    power = power.and(&square);
                }
                left /= 2;
                if left > 0 {
                    square = square.and(&square);
                }
            }
        }
        // By its logarithm it is known as well for any count.
        let times = Bracket::exact(count as f64);
        power.infinite = (-(times * (-self.infinite).ln_1p()).exp_m1()).clamp(0.0, 1.0);
        power
    }

    /// How many atoms the longer list has.
    pub(crate) fn len(&self) -> usize {
        self.above.len().max(self.below.len())
    }

    /// The mass of infinite losses.
    pub(crate) fn infinite(&self) -> Bracket {
        self.infinite
    }

    /// The lists above and below.
    pub(crate) fn lists(&self) -> (&[Atom], &[Atom]) {
        (&self.above, &self.below)
    }

    /// The profile, ready to be asked.
    pub(crate) fn profile(&self) -> ListProfile {
        ListProfile {
            above: Staircase::new(&self.above, Side::Above),
            below: Staircase::new(&self.below, Side::Below),
            infinite: self.infinite,
        }
    }
}

/// Sorted, and with losses that are next to each other put together.
pub(crate) fn tidy(mut atoms: Vec<Atom>, side: Side) -> Vec<Atom> {
    atoms.retain(|atom| atom.mass > 0.0);
    // Stable sorting merges the runs that products come in.
    atoms.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    let most = atoms.iter().map(|atom| atom.loss.abs()).fold(0.0, f64::max);
    let near = most * NEAR;
    let mut tidied: Vec<Atom> = Vec::with_capacity(atoms.len());
    for atom in atoms {
        match tidied.last_mut() {
            Some(last) if atom.loss - last.loss <= near => match side {
                Side::Above => {
                    last.loss = atom.loss;
                    last.mass = round::add_up(last.mass, atom.mass);
                }
                Side::Below => last.mass = round::add_down(last.mass, atom.mass),
            },
            _ => tidied.push(atom),
        }
    }
    tidied
}

/// The profile of a [`LossList`].
#[derive(Clone, Debug)]
pub(crate) struct ListProfile {
    above: Staircase,
    below: Staircase,
    infinite: Bracket,
}

impl ListProfile {
    /// `ε(δ)`; at `δ = 0` the largest loss itself.
    pub(crate) fn epsilon(&mut self, delta: f64) -> Bracket {
        if delta == 0.0 && self.infinite.upper() <= 0.0 {
            let end = |side: &Staircase| side.losses.last().map_or(0.0, |last| last.max(0.0));
            return Bracket::new(end(&self.below), end(&self.above));
        }
        curve::epsilon(self, delta)
    }
}

#[derive(Clone, Debug)]
struct Staircase {
    side: Side,
    losses: Vec<f64>,
    tails: Vec<f64>,
    excesses: Vec<f64>,
}

impl Staircase {
    fn new(atoms: &[Atom], side: Side) -> Self {
        let count = atoms.len();
        let (mut tails, mut excesses) = (vec![0.0; count], vec![0.0; count]);
        let (mut tail, mut excess) = (0.0, 0.0);
        for index in (0..count).rev() {
            if index + 1 < count {
                let gap = (atoms[index].loss, atoms[index + 1].loss);
                excess = step(side, gap, tail, excess);
            }
            tail = match side {
                Side::Above => round::add_up(tail, atoms[index].mass),
                Side::Below => round::add_down(tail, atoms[index].mass),
            };
            (tails[index], excesses[index]) = (tail, excess);
        }
        Self {
            side,
            losses: atoms.iter().map(|atom| atom.loss).collect(),
            tails,
            excesses,
        }
    }

    fn at(&self, epsilon: f64) -> f64 {
        let index = self.losses.partition_point(|&loss| loss <= epsilon);
        if index == self.losses.len() {
            return 0.0;
        }
        let gap = (epsilon, self.losses[index]);
        step(self.side, gap, self.tails[index], self.excesses[index])
    }
}

/// `(1 - e^(a-b)) tail + e^(a-b) excess` for `a <= b`, rounded to the side.
fn step(side: Side, (a, b): (f64, f64), tail: f64, excess: f64) -> f64 {
    let gap = Bracket::exact(a) - Bracket::exact(b);
    let gap = Bracket::new(gap.lower().min(0.0), gap.upper().min(0.0));
    let exact = Bracket::exact;
    let found = -gap.exp_m1() * exact(tail) + gap.exp() * exact(excess);
    match side {
        Side::Above => found.upper(),
        Side::Below => found.lower().max(0.0),
    }
}

impl Curve for ListProfile {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let (above, below) = (self.above.at(epsilon), self.below.at(epsilon));
        (Bracket::new(below.min(above), above) + self.infinite).clamp(0.0, 1.0)
    }

    fn infinite(&self) -> Bracket {
        self.infinite
    }

    fn epsilon_max(&self) -> Option<f64> {
        Some(self.above.losses.last().map_or(0.0, |last| last.max(0.0)))
    }

    fn guess(&mut self, delta: f64) -> f64 {
        let target = delta - self.infinite.estimate();
        let index = self
            .above
            .excesses
            .partition_point(|&excess| excess > target);
        self.above.losses.get(index).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete_pair::randomized_response;
    use crate::lattice::Lattice;

    /// `E_P[(1 - e^ε Q/P)_+]` by its definition.
    fn plain(p: &[f64], q: &[f64], epsilon: f64) -> f64 {
        let term = |(p, q): (&f64, &f64)| (p - epsilon.exp() * q).max(0.0);
        p.iter().zip(q).map(term).sum()
    }

    #[test]
    fn tables_are_their_definition() {
        let (p, q) = ([0.5, 0.2, 0.2, 0.1, 0.0], [0.1, 0.4, 0.2, 0.0, 0.3]);
        let table = LossList::tabulated(&p, &q).expect("distributions");
        let mut one = table.profile();
        for epsilon in [-3.0, -1.0, 0.0, 0.5, 1.0, 1.6, 1.7, 30.0] {
            let (found, truth) = (one.delta(epsilon), plain(&p, &q, epsilon));
            assert!(
                (found.estimate() - truth).abs() < 1e-15,
                "{epsilon}: {found:?} {truth}"
            );
            assert!(found.relative_width() < 1e-14);
        }
        assert!(one.infinite().holds(0.1));
        assert_eq!(one.epsilon(0.05), Bracket::exact(f64::INFINITY));
        let mut square = table.power(2).profile();
        let products = |a: &[f64]| -> Vec<f64> {
            a.iter()
                .flat_map(|x| a.iter().map(move |y| x * y))
                .collect()
        };
        for epsilon in [-1.0, 0.0, 0.9, 2.0, 3.2] {
            let truth = plain(&products(&p), &products(&q), epsilon);
            let found = square.delta(epsilon);
            assert!(
                (found.estimate() - truth).abs() < 1e-15,
                "{epsilon}: {found:?} {truth}"
            );
        }
    }

    #[test]
    fn tables_that_are_no_distributions_are_refused() {
        assert!(LossList::tabulated(&[0.5, 0.5], &[1.0]).is_none());
        assert!(LossList::tabulated(&[0.5, 0.6], &[0.5, 0.5]).is_none());
        assert!(LossList::tabulated(&[1.5, -0.5], &[0.5, 0.5]).is_none());
        assert!(LossList::tabulated(&[f64::NAN, 1.0], &[0.5, 0.5]).is_none());
        assert!(LossList::tabulated(&[], &[]).is_none());
        // Ten times 0.1 is not 1 in floats, and passes.
        assert!(LossList::tabulated(&[0.1; 10], &[0.1; 10]).is_some());
    }

    /// All sums listed, against the lattice.
    #[test]
    fn short_compositions_are_exact() {
        let pair = randomized_response(0.05, 3);
        let mut list = LossList::of_lattice(&pair)
            .expect("finite")
            .power(40)
            .profile();
        let mut lattice = Lattice::power(pair, 40).expect("has losses");
        for epsilon in [-0.2, 0.0, 0.1, 0.333, 1.0, 1.9] {
            let (a, b) = (list.delta(epsilon), lattice.delta(epsilon));
            assert!(
                a.lower() <= b.upper() && b.lower() <= a.upper(),
                "{a:?} {b:?}"
            );
            assert!(a.relative_width() < 1e-12, "{a:?}");
        }
        assert!(list.epsilon(0.0).holds(2.0));
    }
}
