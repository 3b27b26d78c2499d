//! # Compositions of discrete pairs
//! The best bound for a list of pairs is the profile of their product: for black boxes the optimal composition of Kairouz, Oh and
//! Viswanath (one pair many times, \[KOV15\]) and of Murtagh and Vadhan (different ones, \[MV16\]). Exactly
//! computed, the latter is #P-hard in general; but parameters are decimals, and decimals are multiples of a common unit.
//!
//! 1. Units that are multiples of one unit up to rounding, found by Euclid's algorithm on floats and then proven by brackets,
//!    go to one [`Lattice`], exactly and for any number of steps.
//! 2. What does not fit is listed as [`LossList`], exactly while there are few sums, and else with both bounds.
//! 3. Both together are a [`Mixture`].

use crate::Bracket;
use crate::curve::{self, Curve};
use crate::lattice::{Lattice, Part};
use crate::lattice_pair::{LatticePair, Shape};
use crate::loss_list::{ListProfile, LossList};
use crate::mixture::Mixture;

/// Multiples of the common unit, at most.
const MULTIPLE_MAX: f64 = 1e6;
/// Units are multiples of the common one up to this share: a few roundings of decimals.
const NEAR: f64 = 8.0 * f64::EPSILON;
/// Where a mixture has more atoms than this, every answer takes long.
const MIXED_MAX: usize = 1 << 12;

/// A discrete pair.
#[derive(Clone, Debug)]
pub(crate) enum Discrete {
    /// With losses on a lattice.
    Lattice(LatticePair),
    /// With losses anywhere.
    Atoms(LossList),
}

/// The profile of a composition of discrete pairs.
pub(crate) enum Composed {
    /// All on one lattice.
    Lattice(Box<Lattice>),
    /// None on a lattice.
    Atoms(ListProfile),
    /// Some of both.
    Mixture(Box<Mixture<Lattice>>),
}

/// The composition of so many steps of each pair; none if pairs without end do not fit on one lattice.
pub(crate) fn compose(parts: &[(Discrete, u64)]) -> Option<Composed> {
    let mut lattices = Vec::new();
    let mut atoms = LossList::none();
    for (pair, count) in parts {
        match pair {
            Discrete::Lattice(pair) if *count > 0 => match lossless(pair) {
                Some(rest) => atoms = atoms.and(&rest.power(*count)),
                None => lattices.push((pair.clone(), *count)),
            },
            Discrete::Atoms(list) if *count > 0 => atoms = atoms.and(&list.power(*count)),
            _ => {}
        }
    }
    let (lattice, left) = largest_group(lattices);
    for (pair, count) in left {
        atoms = atoms.and(&LossList::of_lattice(&pair)?.power(count));
    }
    match lattice {
        None => Some(Composed::Atoms(atoms.profile())),
        Some(lattice) if atoms.len() == 1 && is_nothing(&atoms) => {
            Some(Composed::Lattice(Box::new(lattice)))
        }
        Some(lattice) if atoms.len() <= MIXED_MAX => {
            Some(Composed::Mixture(Box::new(Mixture::new(atoms, lattice))))
        }
        Some(lattice) => {
            let listed = lattice.parts().iter().try_fold(atoms, |sum, part| {
                Some(sum.and(&LossList::of_lattice(&part.pair)?.power(part.count)))
            })?;
            Some(Composed::Atoms(listed.profile()))
        }
    }
}

impl Composed {
    /// `ε(δ)`, exact at `δ = 0`.
    pub(crate) fn epsilon(&mut self, delta: f64) -> Bracket {
        match self {
            Self::Lattice(lattice) => lattice.epsilon(delta),
            Self::Atoms(profile) => profile.epsilon(delta),
            Self::Mixture(mixture) => curve::epsilon(mixture.as_mut(), delta),
        }
    }
}

impl Curve for Composed {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        match self {
            Self::Lattice(lattice) => lattice.delta(epsilon),
            Self::Atoms(profile) => profile.delta(epsilon),
            Self::Mixture(mixture) => mixture.delta(epsilon),
        }
    }

    fn infinite(&self) -> Bracket {
        match self {
            Self::Lattice(lattice) => lattice.infinite(),
            Self::Atoms(profile) => profile.infinite(),
            Self::Mixture(mixture) => mixture.infinite(),
        }
    }

    fn epsilon_max(&self) -> Option<f64> {
        match self {
            Self::Lattice(lattice) => lattice.epsilon_max(),
            Self::Atoms(profile) => profile.epsilon_max(),
            Self::Mixture(mixture) => mixture.epsilon_max(),
        }
    }

    fn guess(&mut self, delta: f64) -> f64 {
        match self {
            Self::Lattice(lattice) => lattice.guess(delta),
            Self::Atoms(profile) => profile.guess(delta),
            Self::Mixture(mixture) => mixture.guess(delta),
        }
    }
}

fn is_nothing(atoms: &LossList) -> bool {
    let (above, _) = atoms.lists();
    atoms.infinite() == Bracket::ZERO && above.iter().all(|atom| atom.loss == 0.0)
}

/// A pair whose finite losses are all zero (or whose unit is), as atoms.
fn lossless(pair: &LatticePair) -> Option<LossList> {
    let flat = pair.unit.upper() <= 0.0 || pair.span() == Some(0);
    if !flat {
        return None;
    }
    match &pair.shape {
        Shape::Masses(_) => LossList::of_lattice(pair),
        Shape::Gaussian { .. } => Some(LossList::none()),
    }
}

type Counted = (LatticePair, u64);

/// The largest group of pairs on one lattice, by the number of steps, and the others.
fn largest_group(mut pairs: Vec<Counted>) -> (Option<Lattice>, Vec<Counted>) {
    // The pair with the most steps has the most sums; one without end cannot be listed.
    pairs.sort_by_key(|(pair, count)| (pair.span().is_none(), *count));
    let mut group: Vec<Counted> = Vec::new();
    let mut left = Vec::new();
    let mut unit = 0.0;
    while let Some((pair, count)) = pairs.pop() {
        let candidate = common_unit(unit, pair.unit.estimate());
        let fits = group
            .iter()
            .chain([&(pair.clone(), count)])
            .all(|(pair, _)| {
                let multiple = pair.unit.estimate() / candidate;
                let off = (multiple - multiple.round()).abs();
                multiple <= MULTIPLE_MAX && off <= NEAR * multiple
            });
        if fits {
            unit = candidate;
            group.push((pair, count));
        } else {
            left.push((pair, count));
        }
    }
    (lattice(group, unit), left)
}

/// The greatest common divisor of two floats that stand for decimals: Euclid's algorithm until the rest is rounding.
fn common_unit(a: f64, b: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    let noise = a * 1e-11;
    while b > noise {
        let rest = a - (a / b).round() * b;
        (a, b) = (b, rest.abs());
    }
    a
}

/// The group on multiples of the unit. A single pair keeps its own unit, with nothing to be off by.
fn lattice(group: Vec<Counted>, unit: f64) -> Option<Lattice> {
    let first = group.first()?.0.unit;
    if group.iter().all(|(pair, _)| pair.unit == first) {
        let parts = group.into_iter().map(|(pair, count)| Part {
            pair,
            count,
            multiple: 1,
        });
        return Lattice::new(parts.collect(), first, 0.0);
    }
    // The unit that the largest one is a multiple of, so that its roundings are shared by none.
    let largest = group
        .iter()
        .map(|(pair, _)| pair.unit.estimate())
        .fold(0.0, f64::max);
    let unit = Bracket::exact(largest / (largest / unit).round());
    let mut slack = 0.0;
    let mut parts = Vec::new();
    for (pair, count) in group {
        let multiple = (pair.unit.estimate() / unit.lower()).round() as i64;
        let own = unit * Bracket::exact(multiple as f64);
        let off = pair.unit - own;
        let off = off.upper().max(-off.lower());
        let moved = Bracket::exact(off) * Bracket::exact(count as f64) * pair.multiple_max();
        slack = whit_core::round::add_up(slack, moved.upper());
        parts.push(Part {
            pair: pair.rescaled(own),
            count,
            multiple,
        });
    }
    Lattice::new(parts, unit, slack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete_pair as pair;
    use crate::gaussian::Gaussian;

    fn responses(epsilons: &[f64]) -> Vec<(Discrete, u64)> {
        let one = |epsilon: &f64| (Discrete::Lattice(pair::pure(*epsilon)), 1);
        epsilons.iter().map(one).collect()
    }

    fn check(name: &str, found: Bracket, truth: f64, width: f64) {
        let room = 4.0 * f64::EPSILON * truth;
        assert!(
            found.lower() <= truth + room && truth - room <= found.upper(),
            "{name}: {found:?} {truth}"
        );
        assert!(
            found.relative_width() <= width,
            "{name}: {found:?} {:e}",
            found.relative_width()
        );
    }

    const EIGHT: [f64; 8] = [0.3, 0.1, 0.7, 0.45, 0.2, 0.9, 0.15, 0.6];

    /// pub-025 and pub-026: by full enumeration, in 50 digits.
    #[test]
    fn golden_heterogeneous() {
        let fourteen: Vec<f64> = (1..=14).map(|n| f64::from(5 * n) / 100.0).collect();
        let mut all = compose(&responses(&fourteen)).expect("finite");
        assert!(matches!(all, Composed::Lattice(_)));
        check("pub-025", all.epsilon(1e-6), 5.248375420610767, 1e-12);
        let mut all = compose(&responses(&EIGHT)).expect("finite");
        check("pub-026", all.epsilon(1e-4), 3.3939904925037423, 1e-12);
    }

    /// pub-060: 200 Gaussians of scale 20 beside one black box.
    #[test]
    fn golden_beside_a_gaussian() {
        let count = Bracket::exact(200.0);
        let gaussian = Gaussian::compose([(Bracket::exact(20.0), count)]);
        let atoms = LossList::of_lattice(&pair::approximate(0.3, 1e-7)).expect("finite");
        let mut both = Mixture::new(atoms, gaussian);
        check(
            "pub-060",
            curve::epsilon(&mut both, 1e-5),
            3.153691438465816,
            1e-9,
        );
    }

    /// The lattice, and the list of all sums, are two proofs of one number.
    #[test]
    fn lattice_and_list_agree() {
        let mut lattice = compose(&responses(&EIGHT)).expect("finite");
        let mut list = LossList::none();
        for epsilon in EIGHT {
            list = list.and(&LossList::of_lattice(&pair::pure(epsilon)).expect("finite"));
        }
        let mut list = list.profile();
        for epsilon in [-2.0, -0.3, 0.0, 0.01, 1.0, 2.55, 3.0, 3.39] {
            let (a, b) = (lattice.delta(epsilon), list.delta(epsilon));
            assert!(
                a.lower() <= b.upper() && b.lower() <= a.upper(),
                "{epsilon}: {a:?} {b:?}"
            );
            assert!(
                a.relative_width() < 1e-11 && b.relative_width() < 1e-11,
                "{a:?} {b:?}"
            );
        }
        assert!(lattice.epsilon(0.0).holds(3.4) && list.epsilon(0.0).holds(3.4));
    }

    /// Units that do not fit: a mixture, against the list.
    #[test]
    fn incommensurable_units_mix() {
        let parts = [
            (Discrete::Lattice(pair::randomized_response(0.1, 3)), 20),
            (
                Discrete::Lattice(pair::pure(0.1 * std::f64::consts::SQRT_2)),
                5,
            ),
            (
                Discrete::Lattice(pair::approximate(0.05 * std::f64::consts::E, 1e-9)),
                2,
            ),
        ];
        let mut mixed = compose(&parts).expect("finite");
        assert!(matches!(mixed, Composed::Mixture(_)));
        let mut list = LossList::none();
        for (pair, count) in &parts {
            let Discrete::Lattice(pair) = pair else {
                continue;
            };
            list = list.and(&LossList::of_lattice(pair).expect("finite").power(*count));
        }
        let (a, b) = (mixed.epsilon(1e-5), list.profile().epsilon(1e-5));
        assert!(
            a.lower() <= b.upper() && b.lower() <= a.upper(),
            "{a:?} {b:?}"
        );
        assert!(
            a.relative_width() < 1e-10 && b.relative_width() < 1e-10,
            "{a:?} {b:?}"
        );
    }

    /// Discrete Gaussians whose units are multiples up to rounding, against the continuous one that they are close to.
    #[test]
    fn discrete_gaussians_of_different_scales_compose() {
        let parts = [
            (Discrete::Lattice(pair::discrete_gaussian(10.0, 1)), 40),
            (Discrete::Lattice(pair::discrete_gaussian(20.0, 1)), 60),
            (Discrete::Lattice(pair::discrete_gaussian(5.0, 1)), 3),
        ];
        let mut all = compose(&parts).expect("one lattice");
        let found = all.epsilon(1e-6);
        let one = |sigma: f64, count: f64| (Bracket::exact(sigma), Bracket::exact(count));
        let mut smooth = Gaussian::compose([one(10.0, 40.0), one(20.0, 60.0), one(5.0, 3.0)]);
        let near = curve::epsilon(&mut smooth, 1e-6);
        assert!(found.relative_width() < 1e-9, "{found:?}");
        assert!(
            (found.estimate() - near.estimate()).abs() < 1e-3,
            "{found:?} {near:?}"
        );
    }

    #[test]
    fn nothing_composes_to_nothing() {
        let mut none = compose(&[]).expect("nothing");
        assert_eq!(none.epsilon(0.0), Bracket::ZERO);
        let mut flat = compose(&responses(&[0.0, 0.0])).expect("nothing");
        assert!(flat.epsilon(0.0).upper() < 1e-300 && flat.delta(0.0).upper() < 1e-15);
        let certain = [(Discrete::Lattice(pair::approximate(0.0, 0.25)), 2)];
        let mut certain = compose(&certain).expect("finite");
        assert!(certain.infinite().holds(0.4375));
        assert_eq!(certain.epsilon(0.1), Bracket::exact(f64::INFINITY));
    }
}
