//! # Which engine answers
//! Every composition has one exact answer, and several ways to it. In this order:
//! 1. **closed form**: Gaussians alone;
//! 2. **lattice**: discrete pairs alone, exactly; beside Gaussians or sampled mechanisms as a mixture over their atoms;
//! 3. **residues**: one kind of Laplace noise, up to some hundred times;
//! 4. **contour**: everything with moments;
//! 5. **grid**: privacy-loss distributions by Fourier transforms, for the rest of what has a profile, and for what the contour
//!    leaves wide;
//! 6. **Rényi**: where only divergences are known.
//!
//! All of them prove both of their bounds; two that were asked agree within them, and the narrower is told.

use crate::allocation::Allocation;
use crate::contour::Contour;
use crate::curve::{self, Curve};
use crate::fixed_size::FixedSize;
use crate::gaussian::Gaussian;
use crate::lattice::Lattice;
use crate::lattice_pair::LatticePair;
use crate::loss_list::LossList;
use crate::lower::Lowered;
use crate::mixture::Mixture;
use crate::optimal::{self, Composed, Discrete};
use crate::pair::Pair;
use crate::pld::{Fineness, Part, Pld};
use crate::profile::{PairProfile, Profile};
use crate::rdp::{self, Divergence};
use crate::residue::LaplaceSum;
use crate::shuffle::Shuffled;
use crate::shuffled_batches::ShuffledBatches;
use crate::{Bracket, Error, Result};

/// Up to this many equal Laplace steps the residue sum is used.
const RESIDUE_MAX: u64 = 200;
/// A contour answer that is wider than this asks the grid, too.
const WIDE: f64 = 1e-6;
/// What the grid may cost, as a share of epsilon.
const FINENESS: Fineness = Fineness::Relative(4e-7);
/// The delta for which the laws of random allocation are made before they go on a grid.
const DEEP: f64 = 1e-12;
/// A mixture over more atoms than this takes long.
const ATOMS_MAX: usize = 1 << 10;

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) engine: &'static str,
    pub(crate) theorem: &'static str,
}

const CLOSED: Origin = Origin {
    engine: "closed form",
    theorem: "Gaussian profile [BW18, Thm 8], composed as dominating pairs [ZDW22, Thm 10]",
};
const LATTICE: Origin = Origin {
    engine: "lattice",
    theorem: "exact product of discrete dominating pairs [ZDW22, Thm 10; KOV15, Thm 3.3; MV16, Thm 1.5]",
};
const MIXTURE: Origin = Origin {
    engine: "mixture",
    theorem: "exact mixture over the atoms of discrete dominating pairs [ZDW22, Thm 10]",
};
const RESIDUES: Origin = Origin {
    engine: "residues",
    theorem: "exact spline of the Laplace pair, in a positive form",
};
const CONTOUR: Origin = Origin {
    engine: "contour",
    theorem: "contour integral of dominating pairs [AGA+23, Thm 3.1; ZDW22, Thm 10]",
};
const GRID: Origin = Origin {
    engine: "grid",
    theorem: "privacy loss distributions on a grid [SMM19; DGKKM22], composed as dominating pairs [ZDW22, Thm 10]",
};
pub(crate) const RENYI: Origin = Origin {
    engine: "renyi",
    theorem: "Rényi composition [Mir17, Prop. 1], converted by [CKS20, Prop. 12]",
};
const FIXED_SIZE: Origin = Origin {
    engine: "fixed size",
    theorem: "sampling without replacement [BBG18, Thm 11], composed as dominating pairs [ZDW22, Thm 10]",
};
const ALLOCATION: Origin = Origin {
    engine: "random allocation",
    theorem: "random allocation [FS25], bounded in the convex order",
};
const SHUFFLE: Origin = Origin {
    engine: "shuffle",
    theorem: "amplification by shuffling, clone pair [FMT21] (not known to be attained)",
};
const BATCHES: Origin = Origin {
    engine: "shuffled batches",
    theorem: "one Gaussian per epoch from above, thresholds of the largest batch from below [CGK+24]",
};

/// A composition in one direction and for one side, ready to be asked.
pub(crate) enum Engine {
    Gaussian(Gaussian),
    Discrete(Composed),
    GaussianMixture(Mixture<Gaussian>),
    ContourMixture(Box<Mixture<Contour>>),
    Residues(LaplaceSum),
    /// One step that has a profile in closed form.
    Single(Single),
    /// With what the grid needs if the contour is wide.
    Contour(Box<Contour>, Vec<(Pair, u64)>),
    Grid(Box<Pld>),
    FixedSize(Box<FixedSize>, u64),
    Allocation(Box<Allocation>),
    ShuffledBatches(ShuffledBatches),
    Shuffled(Shuffled),
    Renyi(rdp::Composition),
    Nothing,
}

impl Engine {
    pub(crate) fn new(parts: Vec<Lowered>) -> Result<Self> {
        let (mut pairs, mut discrete, mut own, mut divergences) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            match part {
                Lowered::Pair(_, 0) | Lowered::Discrete(_, 0) | Lowered::Nothing => {}
                Lowered::Pair(pair, count) => add(&mut pairs, pair, count),
                Lowered::Discrete(pair, count) => discrete.push((pair, count)),
                Lowered::Divergence(divergence, count) => divergences.push((divergence, count)),
                other => own.push(other),
            }
        }
        if !divergences.is_empty() {
            return renyi(pairs, &discrete, &own, divergences);
        }
        if let [_] = own.as_slice()
            && pairs.is_empty()
            && discrete.is_empty()
        {
            return alone(own.swap_remove(0));
        }
        if !own.is_empty() {
            return mixed(pairs, &discrete, own);
        }
        let gaussian = pairs
            .iter()
            .all(|(pair, _)| matches!(pair, Pair::Gaussian { .. }));
        match (pairs.as_slice(), discrete.is_empty()) {
            ([], true) => Ok(Self::Nothing),
            ([], false) => optimal::compose(&discrete)
                .map(Self::Discrete)
                .ok_or(Error::NoEngine {
                    what: "a discrete step",
                }),
            (_, true) if gaussian => Ok(Self::Gaussian(compose_gaussians(&pairs))),
            ([(pair, 1)], true) => Ok(Self::Single(Single(PairProfile::new(pair)))),
            (_, true) => match (residues(&pairs), Contour::new(&pairs)) {
                (Some(sum), _) => Ok(Self::Residues(sum)),
                (None, Some(contour)) => Ok(Self::Contour(Box::new(contour), pairs)),
                (None, None) => Ok(Self::Grid(Box::new(grid(&pairs)))),
            },
            (_, false) => {
                let atoms = atoms(&discrete).ok_or(Error::NoEngine {
                    what: "a discrete step with many losses",
                })?;
                if gaussian {
                    Ok(Self::GaussianMixture(Mixture::new(
                        atoms,
                        compose_gaussians(&pairs),
                    )))
                } else {
                    let contour = Contour::new(&pairs).ok_or(Error::NoEngine {
                        what: "a discrete step",
                    })?;
                    Ok(Self::ContourMixture(Box::new(Mixture::new(atoms, contour))))
                }
            }
        }
    }

    /// The grid, whatever else could answer; for steps that have moments.
    pub(crate) fn by_grid(parts: Vec<Lowered>, fineness: Fineness) -> Result<Self> {
        let mut pairs = Vec::new();
        for part in parts {
            match part {
                Lowered::Pair(pair, count) => add(&mut pairs, pair, count),
                _ => {
                    return Err(Error::NoEngine {
                        what: "a step without a density of losses, on a grid,",
                    });
                }
            }
        }
        Ok(Self::Grid(Box::new(grid_as_fine(&pairs, fineness))))
    }

    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::Gaussian(_) | Self::Single(_) | Self::Nothing => CLOSED,
            Self::Discrete(_) => LATTICE,
            Self::GaussianMixture(_) | Self::ContourMixture(_) => MIXTURE,
            Self::Residues(_) => RESIDUES,
            Self::Contour(..) => CONTOUR,
            Self::Grid(_) => GRID,
            Self::FixedSize(..) => FIXED_SIZE,
            Self::Allocation(_) => ALLOCATION,
            Self::ShuffledBatches(_) => BATCHES,
            Self::Shuffled(_) => SHUFFLE,
            Self::Renyi(_) => RENYI,
        }
    }

    /// `δ(ε)`, and what proved it.
    pub(crate) fn delta(&mut self, epsilon: f64) -> (Bracket, Origin) {
        let origin = self.origin();
        let found = match self {
            Self::Gaussian(gaussian) => Gaussian::delta(*gaussian, epsilon),
            Self::Discrete(composed) => composed.delta(epsilon),
            Self::GaussianMixture(mixture) => mixture.delta(epsilon),
            Self::ContourMixture(mixture) => mixture.delta(epsilon),
            Self::Residues(sum) => sum.delta(epsilon),
            Self::Single(single) => single.delta(epsilon),
            Self::Contour(contour, pairs) => {
                let found = contour.delta(epsilon).meet(atoms_below(
                    pairs,
                    |curve| curve.delta(epsilon).lower(),
                    1.0,
                ));
                if found.relative_width() > WIDE {
                    return narrower(found, grid(pairs).delta(epsilon));
                }
                found
            }
            Self::Grid(grid) => grid.delta(epsilon),
            Self::FixedSize(fixed, count) => fixed.delta(*count, epsilon),
            Self::Allocation(allocation) => Curve::delta(allocation.as_mut(), epsilon),
            Self::ShuffledBatches(batches) => batches.delta(epsilon),
            Self::Shuffled(shuffled) => Shuffled::delta(*shuffled, epsilon),
            Self::Renyi(composition) => theorem_value(composition.delta(epsilon).value),
            Self::Nothing => Bracket::ZERO,
        };
        (found, origin)
    }

    /// `ε(δ)`, and what proved it.
    pub(crate) fn epsilon(&mut self, delta: f64) -> (Bracket, Origin) {
        let origin = self.origin();
        if delta == 0.0
            && let Some(most) = self.loss_max()
        {
            return (most, origin);
        }
        let found = match self {
            Self::Gaussian(gaussian) => gaussian.epsilon(delta),
            Self::Discrete(composed) => composed.epsilon(delta),
            Self::GaussianMixture(mixture) => curve::epsilon(mixture, delta),
            Self::ContourMixture(mixture) => curve::epsilon(mixture.as_mut(), delta),
            Self::Residues(sum) => curve::epsilon(sum, delta),
            Self::Single(single) => curve::epsilon(single, delta),
            Self::Contour(contour, pairs) => {
                if let Some(found) = only_atoms(pairs, delta) {
                    return (found, LATTICE);
                }
                let found = curve::epsilon(contour.as_mut(), delta).meet(atoms_below(
                    pairs,
                    |curve| curve.epsilon(delta).lower(),
                    f64::INFINITY,
                ));
                let width = found.relative_width();
                if delta > 0.0 && (width.is_nan() || width > WIDE) {
                    return narrower(found, grid(pairs).epsilon(delta));
                }
                found
            }
            Self::Grid(grid) => grid.epsilon(delta),
            Self::FixedSize(fixed, count) => fixed.epsilon(*count, delta),
            Self::Allocation(allocation) => allocation.epsilon(delta),
            Self::ShuffledBatches(batches) => batches.epsilon(delta),
            Self::Shuffled(shuffled) => Shuffled::epsilon(*shuffled, delta),
            Self::Renyi(composition) => theorem_value(composition.epsilon(delta).value),
            Self::Nothing => Bracket::ZERO,
        };
        (found, origin)
    }
}

impl Engine {
    /// The largest loss of a composition of pairs, which is epsilon at a delta of zero.
    fn loss_max(&self) -> Option<Bracket> {
        let pairs = match self {
            Self::Gaussian(gaussian) if gaussian.mu.lower() > 0.0 => {
                return Some(Bracket::exact(f64::INFINITY));
            }
            Self::Single(Single(profile)) => return Some(profile.ends().top),
            Self::Residues(sum) => vec![(Pair::Laplace { scale: sum.scale() }, sum.count())],
            Self::Contour(_, pairs) => pairs.clone(),
            _ => return None,
        };
        let most = pairs.iter().fold(Bracket::ZERO, |sum, (pair, count)| {
            sum + PairProfile::new(pair).ends().top * Bracket::exact(*count as f64)
        });
        Some(most)
    }
}

/// Of Laplace noise alone, what is left if all that lies between the two centres is told as one answer: a lattice with the atoms of
/// the composition, and so a lower bound that stays sharp where only atoms are left.
fn atoms_below(
    pairs: &[(Pair, u64)],
    mut ask: impl FnMut(&mut Lattice) -> f64,
    most: f64,
) -> Bracket {
    let lower = match pairs {
        [(Pair::Laplace { scale }, count)] => {
            let unit = Bracket::exact(1.0) / Bracket::exact(*scale);
            let ln_half = Bracket::exact(0.5).ln();
            let middle = (-(-unit).exp_m1()).ln() + ln_half;
            let masses = vec![ln_half - unit, middle, ln_half];
            let pair = LatticePair::symmetric(unit, -1, 1, masses);
            Lattice::power(pair, *count).map_or(0.0, |mut lattice| ask(&mut lattice))
        }
        _ => 0.0,
    };
    Bracket::new(lower.max(0.0), most)
}

/// Of Laplace noise alone, at a delta that the largest losses alone exceed.
fn only_atoms(pairs: &[(Pair, u64)], delta: f64) -> Option<Bracket> {
    let below = atoms_below(
        pairs,
        |lattice| lattice.epsilon(delta).lower(),
        f64::INFINITY,
    );
    let [(Pair::Laplace { scale }, count)] = pairs else {
        return None;
    };
    let most = Bracket::exact(*count as f64) / Bracket::exact(*scale);
    let found = Bracket::new(below.lower().min(most.upper()), most.upper());
    (found.relative_width() < 1e-9).then_some(found)
}

/// One step by its closed form.
pub(crate) struct Single(PairProfile);

impl Curve for Single {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let upper = self.0.delta_upper(epsilon).clamp(0.0, 1.0);
        let tails = self.0.tails(epsilon);
        let lower = (tails.p - tails.q).lower().clamp(0.0, 1.0);
        Bracket::new(lower.min(upper), upper)
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn epsilon_max(&self) -> Option<f64> {
        let top = self.0.ends().top.upper();
        top.is_finite().then_some(top)
    }

    fn guess(&mut self, _: f64) -> f64 {
        f64::NAN
    }
}

/// Both brackets hold the truth; what both hold is told with the engine of the narrower.
fn narrower(contour: Bracket, grid: Bracket) -> (Bracket, Origin) {
    let origin = if grid.relative_width() < contour.relative_width() {
        GRID
    } else {
        CONTOUR
    };
    (contour.meet(grid), origin)
}

/// What a theorem about divergences says is found to nine digits; what a mechanism with just these divergences really costs is
/// not known better.
fn theorem_value(value: f64) -> Bracket {
    Bracket::new(value * (1.0 - 1e-9), value)
}

/// Equal pairs are one with the sum of their counts.
fn add(pairs: &mut Vec<(Pair, u64)>, pair: Pair, count: u64) {
    match pairs.iter_mut().find(|(known, _)| *known == pair) {
        Some((_, known)) => *known = known.saturating_add(count),
        None => pairs.push((pair, count)),
    }
}

fn compose_gaussians(pairs: &[(Pair, u64)]) -> Gaussian {
    Gaussian::compose(pairs.iter().filter_map(|(pair, count)| match pair {
        Pair::Gaussian { sigma } => Some((Bracket::exact(*sigma), Bracket::exact(*count as f64))),
        _ => None,
    }))
}

/// One kind of Laplace noise, not too often: its atoms keep a contour from converging.
fn residues(pairs: &[(Pair, u64)]) -> Option<LaplaceSum> {
    match pairs {
        [(Pair::Laplace { scale }, count)] if *count <= RESIDUE_MAX => {
            LaplaceSum::new(*scale, *count)
        }
        _ => None,
    }
}

fn grid(pairs: &[(Pair, u64)]) -> Pld {
    grid_as_fine(pairs, FINENESS)
}

fn grid_as_fine(pairs: &[(Pair, u64)], fineness: Fineness) -> Pld {
    let parts = pairs
        .iter()
        .map(|(pair, count)| Part::new(pair, *count))
        .collect();
    Pld::new(parts, fineness)
}

/// All discrete steps as one list of atoms, if it is short.
fn atoms(discrete: &[(Discrete, u64)]) -> Option<LossList> {
    let mut sum = LossList::none();
    for (pair, count) in discrete {
        let one = match pair {
            Discrete::Lattice(pair) => LossList::of_lattice(pair)?,
            Discrete::Atoms(atoms) => atoms.clone(),
        };
        sum = sum.and(&one.power(*count));
    }
    (sum.len() <= ATOMS_MAX).then_some(sum)
}

/// A step with a profile of its own, and nothing else.
fn alone(part: Lowered) -> Result<Engine> {
    match part {
        Lowered::FixedSize(fixed, count) => Ok(Engine::FixedSize(Box::new(fixed), count)),
        Lowered::Allocation(allocation, 1) => Ok(Engine::Allocation(allocation)),
        Lowered::Allocation(mut allocation, count) => {
            allocation.deepen(DEEP);
            let part = allocation.part(count);
            Ok(Engine::Grid(Box::new(Pld::new(vec![part], FINENESS))))
        }
        Lowered::ShuffledBatches(batches) => Ok(Engine::ShuffledBatches(batches)),
        Lowered::Shuffled(shuffled, 1) => Ok(Engine::Shuffled(shuffled)),
        _ => Err(Error::NoEngine {
            what: "several rounds of shuffled reports",
        }),
    }
}

/// Steps with profiles of their own beside others: on a grid, if they have one.
fn mixed(
    pairs: Vec<(Pair, u64)>,
    discrete: &[(Discrete, u64)],
    own: Vec<Lowered>,
) -> Result<Engine> {
    if !discrete.is_empty() {
        return Err(Error::NoEngine {
            what: "a discrete step",
        });
    }
    let mut parts: Vec<Part> = pairs
        .iter()
        .map(|(pair, count)| Part::new(pair, *count))
        .collect();
    for part in own {
        parts.push(match part {
            Lowered::FixedSize(fixed, count) => fixed.part(count),
            Lowered::Allocation(mut allocation, count) => {
                allocation.deepen(DEEP);
                allocation.part(count)
            }
            _ => return Err(Error::NoEngine { what: "shuffling" }),
        });
    }
    Ok(Engine::Grid(Box::new(Pld::new(parts, FINENESS))))
}

/// Divergences of all steps, if each has them.
fn renyi(
    pairs: Vec<(Pair, u64)>,
    discrete: &[(Discrete, u64)],
    own: &[Lowered],
    mut parts: Vec<(Divergence, u64)>,
) -> Result<Engine> {
    if !discrete.is_empty() || !own.is_empty() {
        return Err(Error::NoEngine { what: "zCDP" });
    }
    for (pair, count) in pairs {
        let divergence = match pair {
            Pair::Gaussian { sigma } => Divergence::Gaussian {
                sigma: Bracket::exact(sigma),
            },
            Pair::Laplace { scale } => Divergence::Laplace {
                scale: Bracket::exact(scale),
            },
            Pair::SampledGaussian {
                rate,
                sigma,
                change,
            } => Divergence::SampledGaussian {
                rate,
                sigma,
                change,
            },
            Pair::SampledLaplace { .. } => return Err(Error::NoEngine { what: "zCDP" }),
        };
        parts.push((divergence, count));
    }
    let parts = parts
        .into_iter()
        .map(|(divergence, count)| (divergence, Bracket::exact(count as f64)));
    Ok(Engine::Renyi(rdp::Composition::new(parts)))
}
