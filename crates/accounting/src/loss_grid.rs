//! # Sums of losses on a grid
//! All sums of two lists (`loss_list.rs`) while there are few; more are put on a grid, from above by spreading each over both edges of
//! its cell, from below by putting a cell together. Both keep `Σ m` and `Σ m e^-l` of every cell.
//!
//! **Floats.** `e^-l` of a sum is a product of exponentials with a known relative error `e`. For an atom between the edges `a < b`, the
//! share of the upper one is `(e^-a - e^-l)/(e^-a - e^-b)`, which errs by at most `η = 4e e^-a/(e^-a - e^-b)`; both shares are taken larger by
//! `η`. Sums of `n` masses are off by `n` roundings, which go to the side of the list.

use whit_core::round;

use crate::Bracket;
use crate::loss_list::{Atom, Side, tidy};

/// So many sums are listed; more go to a grid.
const LIST_MAX: usize = 1 << 17;
/// The cells of the grid.
const CELLS: usize = 1 << 14;
/// For more sums than this, both lists are put on a grid first.
const PRODUCT_MAX: usize = 1 << 21;
/// Standard deviations around the mean that have the finer cells.
const REACH: f64 = 12.0;
/// Losses further apart have exponentials that are no floats.
const SPAN_MAX: f64 = 600.0;
/// Products below this would be rounded by more than a share; from below they are left out.
const VANISHING: f64 = 1e-290;

/// All sums while there are few, else on a grid.
pub(crate) fn product(a: &[Atom], b: &[Atom], side: Side) -> Vec<Atom> {
    let (small, large) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if small.len().saturating_mul(large.len()) > PRODUCT_MAX {
        let small = coarsened(small, PRODUCT_MAX.isqrt(), side);
        let large = coarsened(large, PRODUCT_MAX / small.len().max(1), side);
        return product(&small, &large, side);
    }
    if small.len() * large.len() > LIST_MAX
        && let Some(grid) = Grid::new(small, large, CELLS)
    {
        return grid.fill(small, large, side);
    }
    // One sorted run for each atom of the shorter list.
    let mut atoms = Vec::with_capacity(small.len() * large.len());
    for x in small {
        for y in large {
            atoms.push(match side {
                Side::Above => Atom {
                    loss: round::add_up(x.loss, y.loss),
                    mass: round::mul_up(x.mass, y.mass),
                },
                Side::Below => Atom {
                    loss: round::add_down(x.loss, y.loss),
                    mass: round::mul_down(x.mass, y.mass),
                },
            });
        }
    }
    tidy(atoms, side)
}

/// At most about `room` atoms. Losses too far apart for a grid are cut into runs, each at its upper or lower end.
fn coarsened(atoms: &[Atom], room: usize, side: Side) -> Vec<Atom> {
    if atoms.len() <= room {
        return atoms.to_vec();
    }
    let nothing = [Atom {
        loss: 0.0,
        mass: 1.0,
    }];
    if let Some(grid) = Grid::new(&nothing, atoms, room) {
        return grid.fill(&nothing, atoms, side);
    }
    let runs = atoms.chunks(atoms.len().div_ceil(room));
    runs.map(|run| match side {
        Side::Above => Atom {
            loss: run[run.len() - 1].loss,
            mass: run
                .iter()
                .fold(0.0, |sum, atom| round::add_up(sum, atom.mass)),
        },
        Side::Below => Atom {
            loss: run[0].loss,
            mass: run
                .iter()
                .fold(0.0, |sum, atom| round::add_down(sum, atom.mass)),
        },
    })
    .collect()
}

/// Cells over all sums of two lists: most of them even over where nearly all mass is, the rest above it. What is below goes
/// to the lowest edge.
struct Grid {
    low: f64,
    knee: f64,
    top: f64,
    fine: usize,
    rough: usize,
}

impl Grid {
    /// None where losses span more than floats can tell apart.
    fn new(a: &[Atom], b: &[Atom], room: usize) -> Option<Self> {
        let moments = |atoms: &[Atom]| {
            let total: f64 = atoms.iter().map(|atom| atom.mass).sum();
            let mean = atoms.iter().map(|atom| atom.mass * atom.loss).sum::<f64>() / total;
            let square = |atom: &Atom| atom.mass * (atom.loss - mean) * (atom.loss - mean);
            (mean, atoms.iter().map(square).sum::<f64>() / total)
        };
        let ((x, x_square), (y, y_square)) = (moments(a), moments(b));
        let (middle, spread) = (x + y, (x_square + y_square).sqrt());
        let bottom = a.first()?.loss + b.first()?.loss;
        let top = round::add_up(a.last()?.loss, b.last()?.loss);
        let low = bottom.max(middle - REACH * spread);
        let knee = top.min(middle + REACH * spread);
        let rough = if knee < top { room / 8 } else { 0 };
        let fine = room - rough - 1;
        let width = (knee - low) / fine as f64;
        let sound = top - bottom < SPAN_MAX && width > 1e-12 * top.abs().max(bottom.abs());
        sound.then_some(Self {
            low,
            knee,
            top,
            fine,
            rough,
        })
    }

    fn len(&self) -> usize {
        self.fine + self.rough + 1
    }

    fn edge(&self, index: usize) -> f64 {
        if index < self.fine {
            self.low + (self.knee - self.low) * (index as f64 / self.fine as f64)
        } else if index == self.fine {
            self.knee
        } else if index + 1 == self.len() {
            self.top
        } else {
            let share = (index - self.fine) as f64 / self.rough as f64;
            self.knee + (self.top - self.knee) * share
        }
    }

    /// The cell of a loss, or one next to it.
    fn cell(&self, loss: f64) -> usize {
        let index = if loss < self.knee || self.rough == 0 {
            ((loss - self.low) / (self.knee - self.low) * self.fine as f64) as usize
        } else {
            let share = (loss - self.knee) / (self.top - self.knee);
            self.fine + (share * self.rough as f64) as usize
        };
        index.min(self.len() - 2)
    }

    fn fill(&self, a: &[Atom], b: &[Atom], side: Side) -> Vec<Atom> {
        match side {
            Side::Above => self.spread(a, b),
            Side::Below => self.together(a, b),
        }
    }

    /// A sum that is not in its cell by rounding goes whole to an edge above.
    fn spread(&self, a: &[Atom], b: &[Atom]) -> Vec<Atom> {
        let edges: Vec<f64> = (0..self.len()).map(|index| self.edge(index)).collect();
        let (x_middle, y_middle) = (a[a.len() / 2].loss, b[b.len() / 2].loss);
        let (x, x_error) = exponentials(a.iter().map(|atom| atom.loss), x_middle);
        let (y, y_error) = exponentials(b.iter().map(|atom| atom.loss), y_middle);
        let middle = x_middle + y_middle;
        let (ends, end_error) = exponentials(edges.iter().copied(), middle);
        // The middle is rounded, which moves all sums alike.
        let error = x_error + y_error + end_error + 4.0 * f64::EPSILON * (1.0 + middle.abs());
        let mut masses = vec![(0.0, 0_u32); edges.len()];
        let mut give = |index: usize, mass: f64| {
            masses[index].0 += mass;
            masses[index].1 += 1;
        };
        for (i, one) in a.iter().enumerate() {
            for (j, two) in b.iter().enumerate() {
                let loss = round::add_up(one.loss, two.loss);
                let mass = one.mass * two.mass;
                let cell = self.cell(loss);
                if loss <= edges[cell] {
                    give(cell, mass);
                } else if loss > edges[cell + 1] {
                    give((cell + 2).min(edges.len() - 1), mass);
                } else {
                    let (left, right) = (ends[cell], ends[cell + 1]);
                    let width = left - right;
                    let share = (left - x[i] * y[j]) / width;
                    let wrong = 4.0 * error * left / width;
                    give(cell + 1, mass * (share + wrong).clamp(0.0, 1.0));
                    give(cell, mass * (1.0 - share + wrong).clamp(0.0, 1.0));
                }
            }
        }
        let raised = masses.iter().zip(edges).map(|(&(mass, count), loss)| {
            let count = f64::from(count);
            let room = 1.0 + (count + 8.0) * f64::EPSILON;
            // A product may have vanished.
            let mass = mass * room + count * f64::MIN_POSITIVE;
            Atom { loss, mass }
        });
        tidy(raised.collect(), Side::Above)
    }

    /// All sums of a cell become one, at the loss `middle - ln(Σ m e^(middle-l)/Σ m)`.
    fn together(&self, a: &[Atom], b: &[Atom]) -> Vec<Atom> {
        let (x_middle, y_middle) = (a[a.len() / 2].loss, b[b.len() / 2].loss);
        let (x, x_error) = exponentials(a.iter().map(|atom| atom.loss), x_middle);
        let (y, y_error) = exponentials(b.iter().map(|atom| atom.loss), y_middle);
        let middle = Bracket::exact(x_middle) + Bracket::exact(y_middle);
        let mut cells = vec![(0.0, 0.0, 0_u32); self.len()];
        for (i, one) in a.iter().enumerate() {
            for (j, two) in b.iter().enumerate() {
                let mass = one.mass * two.mass;
                let other = mass * (x[i] * y[j]);
                if mass < VANISHING || other < VANISHING {
                    continue;
                }
                let cell = &mut cells[self.cell(one.loss + two.loss)];
                cell.0 += mass;
                cell.1 += other;
                cell.2 += 1;
            }
        }
        let filled = cells.iter().filter(|cell| cell.2 > 0);
        let merged = filled.map(|&(mass, other, count)| {
            let rounding = (f64::from(count) + 8.0) * f64::EPSILON;
            let wrong = 2.0 * rounding + x_error + y_error;
            let away = (Bracket::exact(other) / Bracket::exact(mass)).ln();
            let loss = middle - away - Bracket::new(0.0, 1.01 * wrong);
            Atom {
                loss: loss.lower(),
                mass: mass * (1.0 - rounding),
            }
        });
        tidy(merged.collect(), Side::Below)
    }
}

/// `e^(middle - loss)`, and their largest relative error.
fn exponentials(losses: impl Iterator<Item = f64>, middle: f64) -> (Vec<f64>, f64) {
    let mut error = 0.0_f64;
    let exponentials = losses
        .map(|loss| {
            let found = (Bracket::exact(middle) - Bracket::exact(loss)).exp();
            error = error.max(found.relative_width());
            found.estimate()
        })
        .collect();
    (exponentials, error + 4.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::discrete_pair::randomized_response;
    use crate::lattice::Lattice;
    use crate::loss_list::LossList;

    /// `Σ m (1 - e^(ε-l))_+`, by its definition.
    fn plain(atoms: &[Atom], epsilon: f64) -> f64 {
        let term = |atom: &Atom| -atom.mass * (epsilon - atom.loss).min(0.0).exp_m1();
        atoms.iter().map(term).sum()
    }

    /// A coarse grid stays on its side, and close.
    #[test]
    fn coarse_lists_stay_on_their_sides() {
        let pair = randomized_response(0.05, 3);
        let list = LossList::of_lattice(&pair).expect("finite").power(200);
        let (above, below) = list.lists();
        let (up, down) = (
            coarsened(above, 300, Side::Above),
            coarsened(below, 300, Side::Below),
        );
        assert!(up.len() <= 300 && down.len() <= 300);
        let mut lattice = Lattice::power(pair, 200).expect("has losses");
        for epsilon in [0.0, 0.3, 1.0, 2.22, 4.0] {
            let truth = lattice.delta(epsilon);
            let (upper, lower) = (plain(&up, epsilon), plain(&down, epsilon));
            assert!(
                lower <= truth.upper() && truth.lower() <= upper,
                "{epsilon}"
            );
            assert!(upper - lower < 0.1 * upper, "{epsilon}: {lower} {upper}");
        }
    }

    /// What is spread keeps both masses, and what is put together as well.
    #[test]
    fn grids_keep_both_masses() {
        let atom = |i: u32| Atom {
            loss: f64::from(i * i % 97) * 0.01 - 0.3,
            mass: 1e-3,
        };
        let atoms = tidy((0..1000).map(atom).collect(), Side::Above);
        let sums = |atoms: &[Atom]| {
            let p: f64 = atoms.iter().map(|atom| atom.mass).sum();
            let q: f64 = atoms
                .iter()
                .map(|atom| atom.mass * (-atom.loss).exp())
                .sum();
            (p, q)
        };
        let (p, q) = sums(&atoms);
        for side in [Side::Above, Side::Below] {
            let (found_p, found_q) = sums(&coarsened(&atoms, 20, side));
            assert!((found_p - p).abs() < 1e-12 && (found_q - q).abs() < 1e-12);
        }
    }

    /// A table without a lattice, many times: more sums than are listed.
    #[test]
    fn long_compositions_keep_both_bounds() {
        let (p, q) = ([0.3, 0.25, 0.25, 0.2], [0.27, 0.26, 0.22, 0.25]);
        let table = LossList::tabulated(&p, &q).expect("distributions");
        let found = table.power(200).profile().epsilon(1e-6);
        assert!(
            found.relative_width() < 2e-5,
            "{found:?} {:e}",
            found.relative_width()
        );
    }
}
