//! # From a pair to a grid, from below
//! **Points.** Cut the line of losses into one cell around each dot, and report only the cell: this is post-processing, so the
//! profile falls. What is left is one point per cell, with the masses `A` and `B` of `P` and `Q`, at the loss `ln(A/B)`: near
//! the dot `l_j`, but not on it.
//!
//! **Moments.** Points may be split, and parts merged, which is post-processing again. Let `t_j = e^(l_j)`; a merged point is on
//! the dot if its moment `A - t_j B` is zero, and right of it if that is positive. So, from the heaviest point outward, a point
//! left of its dot takes in as much of the points or of the mass further right as brings it there, and a point right of
//! its dot as much from the left. If there is not enough, it is brought to the dot on its other side in the same way, or
//! moved down: a smaller loss is a smaller profile too. This keeps moments, and contracts by about the width of a cell:
//! the error is of second order, and half that of the upper grid. Moving every loss down to the next dot, as
//! Privacy Buckets do \[SMM19\], would cost one of first order, which adds up over compositions faster than their spread.
//!
//! **Round-off.** Masses of `P` are rounded down and masses of `Q` up, which lowers `(p - tq)_+`; a mass is put on a dot only if
//! its moment, so rounded, is not negative. Tails err by some units in the last place, and cells are differences of them:
//! this costs a few units per cell, of the mass and of the mean loss.

use whit_core::round;

use crate::grid::{Grid, Lattice, Width, down, up};
use crate::profile::{Profile, Tails};

/// A grid whose profile is at or below that of the pair; see [`upper`]. As much as `budget` of the mean loss may be given up
/// where keeping it would contract more.
pub(crate) fn lower(
    profile: &(impl Profile + ?Sized),
    lattice: Lattice,
    dots: &[usize],
    budget: f64,
) -> Grid {
    let mut placing = Placing {
        points: points(profile, lattice, dots),
        step: lattice.step,
        dots,
        budget,
    };
    placing.place_all();
    let mut masses = vec![0.0; lattice.cells + 1];
    for (&dot, point) in dots.iter().zip(&placing.points) {
        // All are on their dots by now; what is not known to be is dropped.
        masses[dot] = if point.p >= point.q {
            point.p.max(0.0)
        } else {
            0.0
        };
    }
    Grid {
        lattice,
        masses,
        infinite: profile.infinite().lower().max(0.0),
    }
}

/// The masses of one cell: of `P`, and of `Q` times `e^l` of its dot.
#[derive(Clone, Copy, Debug)]
struct Point {
    p: f64,
    q: f64,
}

impl Point {
    const NONE: Self = Self { p: 0.0, q: 0.0 };

    /// What is left when a share is taken away.
    fn rest(self, share: f64) -> Self {
        let rest = 1.0 - share;
        let p = self.p * rest * (1.0 - 4.0 * f64::EPSILON);
        if self.p == self.q {
            Self { p, q: p }
        } else {
            Self {
                p,
                q: up(self.q * rest * (1.0 + 4.0 * f64::EPSILON)),
            }
        }
    }
}

/// One point per dot, with what is left of the first cell dropped.
fn points(profile: &(impl Profile + ?Sized), lattice: Lattice, dots: &[usize]) -> Vec<Point> {
    let error = lattice.error();
    let (atoms, room) = (profile.ends().atoms, profile.atom_room());
    let last = dots.len() - 1;
    // Where a cell ends. Cells of atoms at the first and the last dot hold nothing else.
    let edge = |place: usize| -> f64 {
        let at = |dot: usize| lattice.loss(dot as f64);
        if place == 0 {
            at(dots[0]) - 4.0 * error
        } else if atoms && place == last {
            at(dots[last]) + 4.0 * error
        } else if atoms && place == 1 {
            at(dots[0]) + ATOM_ROOM * error + 4.0 * room
        } else {
            at(dots[place - 1]).midpoint(at(dots[place]))
        }
    };
    let mut points = Vec::with_capacity(dots.len());
    let mut left = edge(0);
    let mut tails = profile.tails(left);
    for (place, &dot) in dots.iter().enumerate() {
        let (right, next) = if place == last {
            (left, Tails::ZERO)
        } else {
            let right = edge(place + 1);
            (right, profile.tails(right))
        };
        let p = round::sub_down(tails.p.lower(), next.p.upper());
        // e^(left) Q(cell), then moved to the dot, of whose loss the difference is known up to the error of the lattice.
        let shift = libm::exp(left - right) * (1.0 - (4.0 + right - left) * f64::EPSILON);
        let q = round::sub_up(tails.q.upper(), down(next.q.lower() * shift).max(0.0));
        let distance = lattice.loss(dot as f64) - left + 2.0 * error;
        let q = up(q.max(0.0) * (libm::exp(distance) * (1.0 + 4.0 * f64::EPSILON)));
        points.push(Point { p, q });
        (left, tails) = (right, next);
    }
    points
}

/// How far above an atom's dot its cell ends, in errors of the lattice: beyond where the atom may be.
const ATOM_ROOM: f64 = 8192.0;

/// The same after all that there is has been taken in.
const NEARLY: f64 = 1e-5;
/// A share of the step that a point may be right of its dot, and count as on it.
const ROUNDING: f64 = 1e-9;
/// How many points on one side are looked at for what one lacks: mass further out costs more than it saves.
const LOOKS: usize = 256;

/// Points on their way to dots: those that are there have `q = p`.
struct Placing<'a> {
    points: Vec<Point>,
    step: f64,
    dots: &'a [usize],
    budget: f64,
}

impl Placing<'_> {
    fn width(&self, left: usize, right: usize) -> Width {
        Width::new(self.step * (self.dots[right] - self.dots[left]) as f64)
    }

    /// From the heaviest point outward, so that what is lacking can be had from points that are further out, and lighter,
    /// or from the mass further in, which is plenty.
    fn place_all(&mut self) {
        let heaviest = (0..self.points.len())
            .max_by(|&a, &b| self.points[a].p.total_cmp(&self.points[b].p))
            .unwrap_or(0);
        for place in heaviest..self.points.len() {
            self.place(place);
        }
        for place in (0..heaviest).rev() {
            self.place(place);
        }
    }

    fn place(&mut self, place: usize) {
        let point = self.points[place];
        self.points[place] = Point::NONE;
        let Point { p, q } = point;
        if p <= 0.0 {
            return;
        }
        if p < q {
            if let Some(mass) = self.take_from_right(place, point) {
                self.put(place, mass);
            } else if place > 0 {
                // Still left of the dot, but right of the one before.
                let width = self.width(place - 1, place);
                let q = up(q * width.fall * (1.0 + width.error));
                if p >= q {
                    let mass = self.take_from_left(place - 1, Point { p, q });
                    self.put(place - 1, mass.unwrap_or(p));
                }
            }
            return;
        }
        // What is left of rounding is given up without being counted.
        let given = p - q;
        if given <= ROUNDING * self.step * p {
            self.put(place, p);
        } else if given <= self.budget {
            self.budget -= given;
            self.put(place, p);
        } else if let Some(mass) = self.take_from_left(place, point) {
            self.put(place, mass);
        } else if place + 1 < self.points.len()
            && let Some(mass) = self.take_from_right(place + 1, self.about_next(place, point))
        {
            self.put(place + 1, mass);
        } else {
            self.put(place, p);
        }
    }

    /// A point of one dot as one of the next.
    fn about_next(&self, place: usize, point: Point) -> Point {
        let width = self.width(place, place + 1);
        Point {
            p: point.p,
            q: up(point.q * (1.0 + width.growth) * (1.0 + width.error)),
        }
    }

    /// Adds mass that is on a dot to what is there, or still near it.
    fn put(&mut self, place: usize, mass: f64) {
        let other = self.points[place];
        self.points[place] = if other.p <= 0.0 || other.p == other.q {
            let p = round::add_down(other.p.max(0.0), mass.max(0.0));
            Point { p, q: p }
        } else {
            Point {
                p: round::add_down(other.p, mass.max(0.0)),
                q: round::add_up(other.q, mass.max(0.0)),
            }
        };
    }

    /// Takes in mass from the right until the point is not left of the dot, and tells the mass that is then there. Nothing is
    /// taken if there is not enough.
    fn take_from_right(&mut self, place: usize, point: Point) -> Option<f64> {
        let mut found = point;
        for next in (place + 1..self.points.len()).take(LOOKS) {
            let other = self.points[next];
            if other.p <= 0.0 {
                continue;
            }
            let width = self.width(place, next);
            let other_q = up(other.q * width.fall * (1.0 + width.error));
            let moment = other.p - other_q;
            if moment <= 0.0 {
                return None;
            }
            // A little more than it takes, for the rounding of what follows.
            let short = found.q - found.p + 4.0 * f64::EPSILON * (found.p + found.q);
            let taken = short / moment * other.p;
            let share = ((short + 8.0 * f64::EPSILON * taken) / moment).min(1.0);
            found = Point {
                p: round::add_down(found.p, down(share * other.p)),
                q: round::add_up(found.q, up(share * other_q)),
            };
            if found.p >= found.q {
                self.points[place + 1..next].fill(Point::NONE);
                self.points[next] = other.rest(share);
                return Some(found.p);
            }
            if share < 1.0 {
                return None;
            }
        }
        None
    }

    /// Takes in mass from the left until the point is hardly right of the dot, but not left of it, and tells the mass that is
    /// then there. Nothing is taken if there is not enough.
    fn take_from_left(&mut self, place: usize, point: Point) -> Option<f64> {
        let mut found = point;
        for next in (0..place).rev().take(LOOKS) {
            let other = self.points[next];
            if other.p <= 0.0 {
                continue;
            }
            let width = self.width(next, place);
            let other_q = up(other.q * (1.0 + width.growth) * (1.0 + width.error));
            let moment = other_q - other.p;
            if moment <= 0.0 {
                return None;
            }
            let spare = found.p - found.q - 4.0 * f64::EPSILON * (found.p + found.q);
            let taken = spare / moment * other_q;
            let share = ((spare - 8.0 * f64::EPSILON * taken) / moment).clamp(0.0, 1.0);
            found = Point {
                p: round::add_down(found.p, down(share * other.p).max(0.0)),
                q: round::add_up(found.q, up(share * other_q)),
            };
            if found.p < found.q {
                return None;
            }
            if share < 1.0 {
                self.points[next + 1..place].fill(Point::NONE);
                self.points[next] = other.rest(share);
                return Some(found.p);
            }
            if found.p - found.q <= NEARLY * self.step * found.p {
                self.points[next..place].fill(Point::NONE);
                return Some(found.p);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discretize::upper;
    use crate::pair::{Change, Pair};
    use crate::profile::PairProfile;

    fn pairs() -> Vec<Pair> {
        let mut pairs = vec![
            Pair::Gaussian { sigma: 1.0 },
            Pair::Gaussian { sigma: 20.0 },
            Pair::Laplace { scale: 0.7 },
            Pair::Laplace { scale: 30.0 },
        ];
        for change in [Change::Remove, Change::Add, Change::Replace] {
            for (rate, width) in [(0.01, 4.0), (0.001, 0.6), (0.3, 1.0), (0.9, 0.8)] {
                pairs.push(Pair::SampledGaussian {
                    rate,
                    sigma: width,
                    change,
                });
                pairs.push(Pair::SampledLaplace {
                    rate,
                    scale: width,
                    change,
                });
            }
        }
        pairs
    }

    /// All dots, and some of them.
    fn choices(cells: usize) -> Vec<Vec<usize>> {
        let mut some: Vec<usize> = (0..cells).filter(|dot| dot * dot % 7 < 2).collect();
        some.push(cells);
        vec![(0..=cells).collect(), some]
    }

    #[test]
    fn grids_are_on_their_sides_of_every_pair() {
        for pair in pairs() {
            let profile = PairProfile::new(&pair);
            for (base, step, cells) in [(-1.3, 0.05, 52), (-0.021, 0.001, 47), (-6.0, 0.5, 30)] {
                let lattice = Lattice { base, step, cells };
                for dots in choices(cells) {
                    let above = upper(&profile, lattice, &dots);
                    let below = lower(&profile, lattice, &dots, 1e-6);
                    assert!(
                        above
                            .masses
                            .iter()
                            .chain(&below.masses)
                            .all(|mass| *mass >= 0.0)
                    );
                    for part in -40..=4 * cells as i64 + 40 {
                        let loss = base + step * 0.25 * (part as f64 + 0.123);
                        let tails = profile.tails(loss);
                        let truth = tails.p - tails.q;
                        let (high, low) = (above.profile(loss), below.profile(loss));
                        assert!(
                            high >= truth.lower() - 1e-13,
                            "{pair:?} {loss} {high} {truth:?}"
                        );
                        assert!(
                            low <= truth.upper() + 1e-13,
                            "{pair:?} {loss} {low} {truth:?}"
                        );
                        assert!(high >= profile.delta_upper(loss) * (1.0 - 1e-9) - 1e-15);
                    }
                }
            }
        }
    }

    #[test]
    fn errors_are_of_second_order() {
        let profile = PairProfile::new(&Pair::Gaussian { sigma: 1.0 });
        let mut before: Option<[f64; 2]> = None;
        for cells in [100, 200, 400] {
            let step = 16.0 / cells as f64;
            let lattice = Lattice {
                base: -8.0,
                step,
                cells,
            };
            let dots: Vec<usize> = (0..=cells).collect();
            let above = upper(&profile, lattice, &dots);
            let below = lower(&profile, lattice, &dots, 0.0);
            // The mean of the profile's error, over many places.
            let places = (0..1000).map(|i| -3.0 + 0.0071 * f64::from(i));
            let mut errors = [0.0; 2];
            for loss in places {
                let truth = profile.delta_upper(loss);
                errors[0] += above.profile(loss) - truth;
                errors[1] += truth - below.profile(loss);
            }
            if let Some(before) = before {
                for side in 0..2 {
                    let ratio = before[side] / errors[side];
                    assert!((3.4..4.6).contains(&ratio), "{side}: {ratio}");
                }
                assert!(errors[1] < errors[0]);
            }
            before = Some(errors);
        }
    }

    #[test]
    fn atoms_on_dots_stay_there() {
        let profile = PairProfile::new(&Pair::Laplace { scale: 2.0 });
        let lattice = |pad: f64| Lattice {
            base: -0.5 + pad,
            step: 0.01,
            cells: 100,
        };
        let dots: Vec<usize> = (0..=100).collect();
        let above = upper(&profile, lattice(1e-13), &dots);
        let below = lower(&profile, lattice(-1e-12), &dots, 0.0);
        for grid in [&above, &below] {
            assert!((grid.masses[100] - 0.5).abs() < 2e-3);
            assert!((grid.masses[0] - 0.5 * (-0.5_f64).exp()).abs() < 2e-3);
            let sum: f64 = grid.masses.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
        assert!(above.infinite < 1e-300);
    }
}
