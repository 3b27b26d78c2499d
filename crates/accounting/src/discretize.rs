//! # From a pair to a grid, from above
//! The profile of a pair is a convex, falling function `h` of `t = e^l` (see `profile.rs`); that of a grid is a convex
//! polygon with its corners at the dots `t_i = e^(l_i)`, and the mass of `P` at a dot is `t_i` times the change of its
//! direction there: `h(t) = p_∞ + Σ p_i (1 - t/t_i)_+`. So a polygon above `h` is an upper grid.
//!
//! **Connect the dots** \[DGKKM22\] `(t_i, v_i)` with `v_i >= h(t_i)`: chords of a convex function lie above it, and so do chords
//! of anything above. Left of `t_0` the chord starts at `(0, P(all))`, and right of the last dot the polygon stays at `v_n`,
//! which is counted as infinite loss. Between dots it is too high by at most `(Δl)²/8` times the density of `L`: the error is
//! of second order, while rounding losses up to the next dot would cost one of first order.
//!
//! Rounding makes polygons that are not quite convex, and their masses negative. So only the dots of the convex hull from
//! below are connected: it still lies above `h`, since `h` is convex and below all dots. Which dots these are is decided in
//! floats, for a polygon through fewer dots is above `h` as well; and a mass that comes out negative after all is raised to
//! zero, for more mass is more `h`. For the same reason any dots of a lattice will do, so that where there is little mass
//! cells may be wide.
//!
//! **Round-off.** With `Δ_L` and `Δ_R` the differences of `v` to the corners `a` cells left and `b` cells right,
//! `p = Δ_L/(1 - e^(-a·step)) - Δ_R/(e^(b·step) - 1)`; for `a = b` this is `Δ_L + (Δ_L - Δ_R)/(e^(a·step) - 1)`, in which the
//! differences are exact and nothing is amplified. Each `v` is known up to some units in the last place, which reach the
//! composition as a factor `(1 + few u)^k`, not divided by the step.

use whit_core::round;

use crate::grid::{Grid, Lattice, Width, down, up};
use crate::profile::Profile;

/// A grid whose profile is at or above that of the pair, with its corners at some dots: the first, the last and any others.
pub(crate) fn upper(profile: &(impl Profile + ?Sized), lattice: Lattice, dots: &[usize]) -> Grid {
    let error = lattice.error();
    let values: Vec<f64> = dots
        .iter()
        .map(|&dot| profile.delta_upper(down(lattice.loss(dot as f64) - error)))
        .collect();
    let start = profile.finite_upper();
    let overflow = values.last().copied().unwrap_or(1.0);
    let hull = Hull::new(dots, &values, start, lattice.step);
    Grid {
        lattice,
        masses: hull.masses(lattice.cells),
        infinite: round::add_up(overflow, profile.infinite().upper()),
    }
}

/// The convex polygon from below through some of the dots.
struct Hull<'a> {
    dots: &'a [usize],
    values: &'a [f64],
    /// The value at `t = 0`.
    start: f64,
    step: f64,
    /// Places of the corners among the dots.
    corners: Vec<usize>,
}

impl<'a> Hull<'a> {
    fn new(dots: &'a [usize], values: &'a [f64], start: f64, step: f64) -> Self {
        let mut hull = Self {
            dots,
            values,
            start,
            step,
            corners: Vec::with_capacity(values.len()),
        };
        let mut widths = Widths::new(step);
        for place in 0..values.len() {
            // Each dot enters and leaves once.
            while let Some(&corner) = hull.corners.last() {
                let before = hull.corners.iter().rev().nth(1).copied();
                if hull.mass(&mut widths, before, corner, Some(place)) > 0.0 {
                    break;
                }
                hull.corners.pop();
            }
            hull.corners.push(place);
        }
        hull
    }

    /// The mass at a corner between two others, rounded up.
    fn mass(
        &self,
        widths: &mut Widths,
        left: Option<usize>,
        corner: usize,
        right: Option<usize>,
    ) -> f64 {
        let value = self.values[corner];
        let before = left.map_or(self.start, |left| self.values[left]);
        let after = right.map_or(value, |right| self.values[right]);
        let (fall, next_fall) = (round::sub_up(before, value), round::sub_down(value, after));
        let left_cells = left.map(|left| self.dots[corner] - self.dots[left]);
        let right_cells = right.map(|right| self.dots[right] - self.dots[corner]);
        if left_cells == right_cells
            && let Some(cells) = left_cells
        {
            let Width { growth, error, .. } = widths.of(cells);
            let bend = round::sub_up(fall, next_fall) / growth;
            return round::add_up(fall, up(bend + bend.abs() * error));
        }
        let (gain, gain_error) = match left_cells {
            Some(cells) => {
                let Width { decay, error, .. } = widths.of(cells);
                (fall / decay, fall.abs() / decay * error)
            }
            None => (fall, 0.0),
        };
        let (loss, loss_error) = match right_cells {
            Some(cells) => {
                let Width { growth, error, .. } = widths.of(cells);
                (next_fall / growth, next_fall.abs() / growth * error)
            }
            None => (0.0, 0.0),
        };
        let error = (gain_error + loss_error) * 1.01;
        // Where the growth is only known to be beyond all floats, nothing is taken off.
        let loss = if loss < 1e-290 { 0.0 } else { loss };
        up(up(gain - loss) + error)
    }

    /// The mass of each dot of the lattice, never negative.
    fn masses(&self, cells: usize) -> Vec<f64> {
        let mut masses = vec![0.0; cells + 1];
        let mut widths = Widths::new(self.step);
        for (place, &corner) in self.corners.iter().enumerate() {
            let left = place.checked_sub(1).map(|before| self.corners[before]);
            let right = self.corners.get(place + 1).copied();
            let mass = self.mass(&mut widths, left, corner, right);
            // What is no number could be anything.
            masses[self.dots[corner]] = if mass.is_nan() {
                f64::INFINITY
            } else {
                mass.max(0.0)
            };
        }
        masses
    }
}

/// Widths that were asked for last.
struct Widths {
    step: f64,
    known: [(usize, Width); 8],
}

impl Widths {
    fn new(step: f64) -> Self {
        Self {
            step,
            known: [(0, Width::new(0.0)); 8],
        }
    }

    fn of(&mut self, cells: usize) -> Width {
        // Most are powers of two, and those next to each other have a place each.
        let slot = (cells.trailing_zeros() % 8) as usize;
        if self.known[slot].0 != cells {
            let found = Width::new(cells as f64 * self.step);
            self.known[slot] = (cells, found);
        }
        self.known[slot].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Pair;
    use crate::profile::PairProfile;

    #[test]
    fn masses_add_up_to_one_and_a_little() {
        let profile = PairProfile::new(&Pair::Gaussian { sigma: 1.0 });
        for cells in [16, 160, 1600, 16_000] {
            let lattice = Lattice {
                base: -8.0,
                step: 16.0 / cells as f64,
                cells,
            };
            let dots: Vec<usize> = (0..=cells).collect();
            let total = upper(&profile, lattice, &dots).total_upper();
            assert!((1.0..1.0 + 1e-11).contains(&total), "{cells}: {total}");
        }
    }

    /// A profile that is known only up to noise of both signs, far larger than round-off.
    struct Noisy(PairProfile);

    impl Profile for Noisy {
        fn delta_upper(&self, loss: f64) -> f64 {
            let noise = 1e-6 * (loss * 1e6).sin().abs();
            self.0.delta_upper(loss) + noise
        }

        fn tails(&self, loss: f64) -> crate::profile::Tails {
            self.0.tails(loss)
        }

        fn ends(&self) -> crate::profile::Ends {
            self.0.ends()
        }
    }

    #[test]
    fn noise_does_not_add_up() {
        let exact = PairProfile::new(&Pair::Gaussian { sigma: 2.0 });
        let lattice = Lattice {
            base: -5.0,
            step: 0.002,
            cells: 5000,
        };
        let dots: Vec<usize> = (0..=5000).collect();
        let grid = upper(&Noisy(exact), lattice, &dots);
        for index in (0..5000).step_by(50) {
            let loss = lattice.loss(f64::from(index));
            let found = grid.profile(loss);
            let truth = exact.delta_upper(loss);
            assert!(
                found >= truth && found <= truth + 5e-6,
                "{loss}: {found} {truth}"
            );
        }
    }
}
