//! # A pair by its list of losses
//! Finitely many outcomes, each with a loss and a mass of `P`, both known up to brackets, and a mass of infinite losses: what
//! [`Profile`] asks of it, by sums from the largest loss down.
//!
//! With atoms at `l_1 < l_2 < …`, let `S_a = Σ_(i>=a) p_i e^(l_a - l_i)` and `H_a = Σ_(i>=a) p_i (1 - e^(l_a - l_i))`. Then
//! `S_a = p_a + e^(-g) S_(a+1)` and `H_a = H_(a+1) + (1 - e^-g) S_(a+1)` with the gap `g` to the next atom, and for
//! `l_(a-1) <= l < l_a`, `e^l Q(L > l) = e^(l - l_a) S_a` and `δ(l) = H_a + (1 - e^(l - l_a)) S_a`. All terms are positive, so `n`
//! atoms cost `n` times a few roundings. The sums are kept once with every loss and mass at its upper end and once at the
//! lower; which of two atoms comes first may differ between the two, and nothing rests on it.

use whit_core::round;

use crate::Bracket;
use crate::profile::{Ends, Profile, Tails};

/// Finitely many finite losses, and a mass of infinite ones.
#[derive(Clone, Debug)]
pub(crate) struct Atoms {
    upper: Sums,
    lower: Sums,
    infinite: Bracket,
    ends: Ends,
    /// How wide the widest bracket of a loss is.
    width: f64,
    /// How wide the widest bracket of a mass at an end is, as a share of it.
    mass_width: f64,
}

/// Sums from the largest loss down to each atom, with all atoms at one end of their brackets.
#[derive(Clone, Debug)]
struct Sums {
    losses: Vec<f64>,
    /// `Σ p`, `S` and `H`.
    sums: Vec<[f64; 3]>,
}

impl Atoms {
    /// From losses and masses; those without mass are left out. None if there is none with a mass, or one of them is not finite.
    pub(crate) fn new(mut atoms: Vec<(Bracket, Bracket)>, infinite: Bracket) -> Option<Self> {
        atoms.retain(|(_, mass)| mass.upper() > 0.0);
        let finite = |loss: Bracket| loss.lower().is_finite() && loss.upper().is_finite();
        if !atoms.iter().all(|(loss, _)| finite(*loss)) {
            return None;
        }
        let kept = merged(atoms);
        let first = kept.first()?;
        let end = |ends: Bracket, pick: fn(f64, f64) -> f64| {
            kept.iter().fold(ends, |ends, (loss, _)| {
                Bracket::new(
                    pick(ends.lower(), loss.lower()),
                    pick(ends.upper(), loss.upper()),
                )
            })
        };
        let width = kept
            .iter()
            .map(|(loss, _)| round::sub_up(loss.upper(), loss.lower()))
            .fold(0.0, f64::max);
        let outer = [kept.first(), kept.last()].into_iter().flatten();
        let mass_width = outer
            .map(|(_, mass)| mass.relative_width())
            .fold(0.0, f64::max);
        let ups = kept.iter().map(|(loss, mass)| (loss.upper(), mass.upper()));
        let downs = kept
            .iter()
            .map(|(loss, mass)| (loss.lower(), mass.lower().max(0.0)));
        let (upper, lower) = (Sums::new(ups.collect()), Sums::new(downs.collect()));
        let ends = Ends {
            bottom: end(first.0, f64::min),
            top: end(first.0, f64::max),
            atoms: true,
        };
        Some(Self {
            upper,
            lower,
            infinite: infinite.clamp(0.0, 1.0),
            ends,
            width,
            mass_width,
        })
    }
}

/// Atoms that are as good as at one loss become one: a table may hold thousands that differ by rounding alone.
fn merged(mut atoms: Vec<(Bracket, Bracket)>) -> Vec<(Bracket, Bracket)> {
    atoms.sort_unstable_by(|a, b| a.0.lower().total_cmp(&b.0.lower()));
    let width = atoms.iter().map(|(loss, _)| loss.upper() - loss.lower());
    let close = width.fold(CLOSE, f64::max);
    let mut found: Vec<(Bracket, [Sum; 2])> = Vec::new();
    for (loss, mass) in atoms {
        let ends = [mass.lower().max(0.0), mass.upper()];
        match found.last_mut() {
            Some((known, sums)) if loss.upper() - known.lower() <= 2.0 * close => {
                *known = known.hull(loss);
                sums[0].add(ends[0]);
                sums[1].add(ends[1]);
            }
            _ => found.push((loss, ends.map(Sum::new))),
        }
    }
    let bracket =
        |[low, high]: [Sum; 2]| Bracket::new(low.bracket().lower(), high.bracket().upper());
    found
        .into_iter()
        .map(|(loss, sums)| (loss, bracket(sums)))
        .collect()
}

/// A sum of positive numbers with what its roundings lost: good to two units however many there are (below 2^26)
/// [Hig02, Sec 4.3].
pub(crate) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub(crate) fn new(first: f64) -> Self {
        Self {
            sum: first,
            lost: 0.0,
        }
    }

    pub(crate) fn add(&mut self, next: f64) {
        let sum = self.sum + next;
        let (large, small) = if self.sum >= next {
            (self.sum, next)
        } else {
            (next, self.sum)
        };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    pub(crate) fn bracket(self) -> Bracket {
        if self.lost == 0.0 {
            return Bracket::exact(self.sum);
        }
        let sum = self.sum + self.lost;
        Bracket::around(sum, 2.0 * f64::EPSILON * sum)
    }
}

/// Where masses are known so badly, nothing is gained by more room.
const ROOM_MAX: f64 = 1e-9;
/// Losses closer than this are not told apart.
const CLOSE: f64 = 1e-14;

impl Sums {
    fn new(mut atoms: Vec<(f64, f64)>) -> Self {
        atoms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut sums = vec![[0.0; 3]; atoms.len()];
        let mut after: Option<(f64, [f64; 3])> = None;
        for (place, &(loss, mass)) in atoms.iter().enumerate().rev() {
            let found = match after {
                None => [mass, mass, 0.0],
                Some((next, [tail, sum, profile])) => {
                    let gap = next - loss;
                    [
                        tail + mass,
                        mass + libm::exp(-gap) * sum,
                        profile - libm::expm1(-gap) * sum,
                    ]
                }
            };
            sums[place] = found;
            after = Some((loss, found));
        }
        Self {
            losses: atoms.into_iter().map(|(loss, _)| loss).collect(),
            sums,
        }
    }

    /// `P(L > l)`, `e^l Q(L > l)` and `δ(l)`.
    fn at(&self, loss: f64) -> [f64; 3] {
        let place = self.losses.partition_point(|&atom| atom <= loss);
        let Some(&[tail, sum, profile]) = self.sums.get(place) else {
            return [0.0; 3];
        };
        let gap = self.losses[place] - loss;
        [
            tail,
            libm::exp(-gap) * sum,
            profile - libm::expm1(-gap) * sum,
        ]
    }

    /// The relative error of all of them: for each atom two units of a function, two products and a sum; and gaps are rounded
    /// once, which counts once in `e^-g - 1` and `g` times in `e^-g`, together as often as the losses are wide.
    fn error(&self) -> f64 {
        let range = match self.losses[..] {
            [first, .., last] => last - first,
            _ => 0.0,
        };
        f64::EPSILON * (16.0 + 2.0 * range + 6.0 * self.losses.len() as f64)
    }
}

impl Profile for Atoms {
    fn delta_upper(&self, loss: f64) -> f64 {
        (self.upper.at(loss)[2] * (1.0 + self.upper.error())).next_up()
    }

    fn tails(&self, loss: f64) -> Tails {
        let (above, below) = (self.upper.at(loss), self.lower.at(loss));
        let error = self.upper.error();
        // The masses of Q are those of P times e^-l, at the other end of the loss.
        let shift = error + 2.0 * self.width;
        Tails {
            p: Bracket::new(below[0] * (1.0 - error), above[0] * (1.0 + error)),
            q: Bracket::new(
                (below[1] * (1.0 - shift)).max(0.0),
                above[1] * (1.0 + shift),
            ),
        }
    }

    fn infinite(&self) -> Bracket {
        self.infinite
    }

    fn finite_upper(&self) -> f64 {
        let all = self.upper.sums.first().map_or(0.0, |sums| sums[0]);
        (all * (1.0 + self.upper.error())).next_up()
    }

    fn ends(&self) -> Ends {
        self.ends
    }

    fn atom_room(&self) -> f64 {
        4.0 * (self.upper.error() + 2.0 * self.width + self.mass_width).min(ROOM_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atoms(list: &[(f64, f64)], infinite: f64) -> Atoms {
        let exact = Bracket::exact;
        let list: Vec<_> = list.iter().map(|&(l, p)| (exact(l), exact(p))).collect();
        Atoms::new(list, exact(infinite)).expect("there are finite losses")
    }

    #[test]
    fn sums_are_those_of_the_list() {
        let list = [(0.5, 0.25), (-1.0, 0.25), (2.0, 0.125), (0.0, 0.25)];
        let found = atoms(&list, 0.125);
        for step in -30..=30 {
            let loss = f64::from(step) * 0.1 + 0.01;
            let beyond = list.iter().filter(|(l, _)| *l > loss);
            let p: f64 = beyond.clone().map(|(_, p)| p).sum();
            let q: f64 = beyond.map(|(l, p)| p * (loss - l).exp()).sum();
            let tails = found.tails(loss);
            assert!(tails.p.holds(p) && tails.q.relative_width() < 1e-13);
            assert!((tails.q.estimate() - q).abs() < 1e-15 && tails.q.holds(tails.q.estimate()));
            assert!((found.delta_upper(loss) - (p - q)).abs() < 1e-14);
            assert!(found.delta_upper(loss) >= p - q);
        }
        assert_eq!(found.infinite(), Bracket::exact(0.125));
        assert!((found.finite_upper() - 0.875).abs() < 1e-14);
        assert_eq!(found.ends().top, Bracket::exact(2.0));
        assert_eq!(found.ends().bottom, Bracket::exact(-1.0));
    }

    #[test]
    fn an_atom_is_beyond_nothing_but_itself() {
        let found = atoms(&[(1.0, 1.0)], 0.0);
        assert_eq!(found.tails(1.0).p, Bracket::ZERO);
        assert!(found.tails(1.0_f64.next_down()).p.holds(1.0));
        assert_eq!(found.delta_upper(1.0).max(1e-300), 1e-300);
    }

    #[test]
    fn undecided_losses_are_held_on_both_sides() {
        let list = vec![(Bracket::new(0.9, 1.1), Bracket::new(0.4, 0.6))];
        let found = Atoms::new(list, Bracket::ZERO).expect("one loss");
        let tails = found.tails(1.0);
        assert!(tails.p.holds(0.0) && tails.p.holds(0.6));
        assert!(found.delta_upper(1.0) >= 0.6 * (1.0 - (-0.1_f64).exp()));
    }

    #[test]
    fn nothing_finite_is_nothing() {
        assert!(Atoms::new(Vec::new(), Bracket::exact(1.0)).is_none());
        let none = vec![(Bracket::exact(1.0), Bracket::ZERO)];
        assert!(Atoms::new(none, Bracket::exact(1.0)).is_none());
        // To leave out a loss that may be infinite would be to call it nothing.
        let (some, all) = (Bracket::exact(0.5), Bracket::new(0.0, f64::INFINITY));
        let list = vec![(some, some), (all, some)];
        assert!(Atoms::new(list, Bracket::ZERO).is_none());
    }
}
