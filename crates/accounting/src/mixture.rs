//! # Atoms beside another profile
//! If one factor of a composition has the losses `l_j` with masses `m_j` (and an infinite one), and the rest the profile `δ`, then the
//! whole has `infinite + Σ_j m_j δ(ε - l_j)`: condition on the first loss. With a Gaussian beside a few atoms this is exact where
//! neither a lattice nor a closed form is; it is the same for two lattices whose units do not fit each other.
//!
//! Rounded to each side, with the two lists of `loss_list.rs`: `δ` falls with `ε`, so a difference rounded down gives an upper bound.

use whit_core::round;

use crate::Bracket;
use crate::curve::Curve;
use crate::loss_list::{Atom, LossList};

/// Atoms and the rest.
pub(crate) struct Mixture<C> {
    atoms: LossList,
    rest: C,
    infinite: Bracket,
}

impl<C: Curve> Mixture<C> {
    /// The composition of both.
    pub(crate) fn new(atoms: LossList, rest: C) -> Self {
        let one = Bracket::exact(1.0);
        // Written so that small masses are not lost beside 1.
        let infinite = atoms.infinite() + (one - atoms.infinite()) * rest.infinite();
        Self {
            atoms,
            rest,
            infinite: infinite.clamp(0.0, 1.0),
        }
    }
}

impl<C: Curve> Curve for Mixture<C> {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let (above, below) = self.atoms.lists();
        let (mut upper, mut lower) = (0.0, 0.0);
        for &Atom { loss, mass } in above {
            let found = self.rest.delta(round::sub_down(epsilon, loss)).upper();
            upper = round::add_up(upper, round::mul_up(mass, found));
        }
        for &Atom { loss, mass } in below {
            let found = self.rest.delta(round::sub_up(epsilon, loss)).lower();
            lower = round::add_down(lower, round::mul_down(mass, found.max(0.0)));
        }
        (Bracket::new(lower.min(upper), upper) + self.atoms.infinite()).clamp(0.0, 1.0)
    }

    fn infinite(&self) -> Bracket {
        self.infinite
    }

    fn epsilon_max(&self) -> Option<f64> {
        let most = self.atoms.lists().0.last().map_or(0.0, |last| last.loss);
        Some(round::add_up(self.rest.epsilon_max()?, most).max(0.0))
    }

    /// Between what the rest alone needs and that with the largest loss on top; the search narrows it down.
    fn guess(&mut self, delta: f64) -> f64 {
        let mean: f64 = self
            .atoms
            .lists()
            .0
            .iter()
            .map(|atom| atom.loss * atom.mass)
            .sum();
        self.rest.guess(delta) + mean.max(0.0)
    }
}
