//! # Marginals
//! **Definition.** Columns with public lists of categories. A marginal is a set of columns; its table has one cell for each combination
//!   of their categories and counts the rows with it. Several marginals are released together, each cell with independent integer
//!   noise of one scale. A value that is not on its column's list belongs to an extra last category, or its row is left out of
//!   the marginals of that column, as the column declares.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with. Lists are public, so empty cells are released too.
//! **Guarantee.** That of the noise on all cells of all `m` tables; `k` is the most rows of one unit:
//!
//! | | L1 | L2 squared |
//! | --- | --- | --- |
//! | add/remove | `m k` | `m k²` |
//! | replace-one | `2 m k` | `2 m k²` |
//!
//! **Proof.** A row counts in at most one cell of each table, so a unit adds to each table a vector `v >= 0` with `‖v‖₁ <= k`, hence
//!   `‖v‖₂² <= k²`. Replacing subtracts another such one: `‖v - v'‖₁ <= 2k` and `‖v - v'‖₂² <= ‖v‖₂² + ‖v'‖₂²`, since their product is not
//!   negative. Tables stand side by side, so both norms add up over them (the second squared).
//! **Order.** The columns of a marginal are in the order of the domain, however they were named, and the last of them changes fastest
//!   from cell to cell. So the same cells come in the same order for all data.
//! **Error.** That of the noise, for each cell on its own. Two tables with a common column need not agree on it.

use std::collections::HashMap;

use whit_core::{Confidence, Entropy, Event, L1, L2, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::contingency_table::{CELLS_MAX, check};
use crate::{Column, Contribution, Estimate, Release, Result, Table, Unknown};

/// Tables over sets of columns.
#[derive(Clone, Debug)]
pub struct Marginals<R: Relation> {
    columns: Vec<Column>,
    /// Columns in order, without repeats.
    sets: Vec<Vec<usize>>,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

impl<R: Relation> Marginals<R> {
    /// Tables over these sets of columns, of rows that were bounded so. The same set twice costs twice. The empty set is the count
    /// of all rows.
    pub fn new(
        columns: Vec<Column>,
        sets: &[&[usize]],
        contribution: Contribution,
    ) -> Result<Self> {
        check("the number of marginals", sets.len() as u64, CELLS_MAX)?;
        let in_order = |set: &&[usize]| {
            let mut set = set.to_vec();
            set.sort_unstable();
            set.dedup();
            set
        };
        let sets: Vec<Vec<usize>> = sets.iter().map(in_order).collect();
        if let Some(last) = sets.iter().flatten().max() {
            check(
                "the number of columns",
                *last as u64 + 1,
                columns.len() as u64,
            )?;
        }
        let cells = |set: &Vec<usize>| {
            let sizes = set.iter().map(|&column| columns[column].size() as u64);
            sizes.fold(1_u64, u64::saturating_mul)
        };
        let all = sets.iter().map(cells).fold(0, u64::saturating_add);
        check("the number of cells", all, CELLS_MAX)?;
        Ok(Self {
            columns,
            sets,
            contribution,
            relation: std::marker::PhantomData,
        })
    }

    /// The most that one unit changes all cells together.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.rows_max() * &self.tables())
    }

    /// The same in L2.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        let rows_max = self.rows_max();
        Sensitivity::from_square(&(&rows_max * &rows_max) * &self.tables())
    }

    fn rows_max(&self) -> Ratio {
        Ratio::from(u64::from(self.contribution.rows_max()))
    }

    /// The number of tables, for each of the contributions that tell neighbours apart.
    fn tables(&self) -> Ratio {
        Ratio::from(R::pick(1_u64, 2) * self.sets.len() as u64)
    }

    fn cells(&self, set: &[usize]) -> usize {
        set.iter()
            .map(|&column| self.columns[column].size())
            .product()
    }

    /// Counts rows with one value for each column; a value that is missing at the end is not on any list.
    pub fn aggregate<S: AsRef<str>, Row: AsRef<[S]>>(
        &self,
        rows: impl IntoIterator<Item = Row>,
    ) -> Secret<Vec<i64>> {
        // Asked by name only; the order of the maps never shows.
        let index = |column: &Column| -> HashMap<String, usize> {
            (0..)
                .map_while(|i| column.category(i))
                .map(String::from)
                .zip(0..)
                .collect()
        };
        let indices: Vec<HashMap<String, usize>> = self.columns.iter().map(index).collect();
        let sizes: Vec<usize> = self.sets.iter().map(|set| self.cells(set)).collect();
        let mut counts = vec![0_i64; sizes.iter().sum()];
        let mut categories = vec![None; self.columns.len()];
        for row in rows {
            for (j, (column, index)) in self.columns.iter().zip(&indices).enumerate() {
                let listed = row
                    .as_ref()
                    .get(j)
                    .and_then(|value| index.get(value.as_ref()));
                let other = (column.unknown() == Unknown::Other).then_some(column.size() - 1);
                categories[j] = listed.copied().or(other);
            }
            let mut first = 0;
            for (set, size) in self.sets.iter().zip(&sizes) {
                let cell = set.iter().try_fold(0, |cell, &column| {
                    Some(cell * self.columns[column].size() + categories[column]?)
                });
                if let Some(cell) = cell {
                    counts[first + cell] += 1;
                }
                first += size;
            }
        }
        Secret::new(counts)
    }

    /// Prepares the noise. No data is needed, so the event can be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> NoisyMarginals<R> {
        let shape = |set: &Vec<usize>| Table {
            columns: set.clone(),
            shape: set
                .iter()
                .map(|&column| self.columns[column].size())
                .collect(),
            cells: Vec::new(),
        };
        NoisyMarginals {
            shapes: self.sets.iter().map(shape).collect(),
            cells: self.sets.iter().map(|set| self.cells(set)).sum(),
            mechanism: Additive::new(noise, self.sensitivity_l1(), self.sensitivity_l2()),
        }
    }
}

/// Marginals with their noise, ready to release as often as their event is paid for.
pub struct NoisyMarginals<R: Relation> {
    /// Tables that are still empty.
    shapes: Vec<Table>,
    cells: usize,
    mechanism: Additive<R>,
}

impl<R: Relation> NoisyMarginals<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.mechanism.event_of(self.cells as u64)
    }

    /// Adds the noise and the error bars: one table for each set, in the order of the sets. Spends one `event`. Cells that are
    /// missing count as empty, further ones are dropped.
    pub fn release(
        &self,
        counts: Secret<Vec<i64>>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<Table>>> {
        let half_width = self.mechanism.half_width(confidence) as f64;
        let counts = counts.map(|mut counts| {
            counts.resize(self.cells, 0);
            counts
        });
        Ok(self
            .mechanism
            .release_vector(counts, entropy)?
            .map(|noisy| {
                let mut estimates = noisy.into_iter().map(|count| {
                    let answer = count as f64;
                    Estimate {
                        answer,
                        low: answer - half_width,
                        high: answer + half_width,
                    }
                });
                let mut tables = self.shapes.clone();
                for table in &mut tables {
                    let size = table.shape.iter().product();
                    table.cells = estimates.by_ref().take(size).collect();
                }
                tables
            }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{Seeded, SeededBits, long};

    fn column(categories: &[&str], unknown: Unknown) -> Column {
        let categories = categories.iter().map(|name| name.to_string()).collect();
        Column::new(categories, unknown).expect("categories")
    }

    /// Two, three with others and two categories.
    fn domain() -> Vec<Column> {
        vec![
            column(&["f", "m"], Unknown::Drop),
            column(&["north", "south"], Unknown::Other),
            column(&["no", "yes"], Unknown::Drop),
        ]
    }

    fn marginals<R: Relation>(sets: &[&[usize]], contribution: Contribution) -> Marginals<R> {
        Marginals::new(domain(), sets, contribution).expect("tables")
    }

    #[test]
    fn closed_form() {
        let sets: [&[usize]; 3] = [&[0], &[0, 1], &[]];
        let unit = Contribution::RowsPerUnit(2);
        let (added, replaced) = (
            marginals::<AddRemove>(&sets, unit),
            marginals::<ReplaceOne>(&sets, unit),
        );
        assert_eq!(added.sensitivity_l1().bound(), &Ratio::from(6_u64));
        assert_eq!(added.sensitivity_l2().square(), &Ratio::from(12_u64));
        assert_eq!(replaced.sensitivity_l1().bound(), &Ratio::from(12_u64));
        assert_eq!(replaced.sensitivity_l2().square(), &Ratio::from(24_u64));
        let event = added.with_noise(&Noise::Laplace(scale(1, 1))).event();
        // Two, six and one cells.
        assert!(matches!(
            event.mechanism(),
            whit_core::Mechanism::DiscreteLaplace { coordinates: 9, .. }
        ));
    }

    #[test]
    fn rows_fall_where_they_belong() {
        let rows = [
            vec!["f", "north", "no"],
            vec!["f", "south", "yes"],
            vec!["m", "nowhere", "yes"],
            vec!["?", "north", "yes"],
            vec!["m"],
            vec![],
        ];
        let marginals = marginals::<AddRemove>(&[&[1, 0], &[2], &[], &[1, 1]], Contribution::Row);
        let counts = marginals.aggregate(rows).expose();
        assert_eq!(counts, [1, 1, 0, 0, 0, 2, 1, 3, 6, 2, 1, 3]);
        let noisy = marginals.with_noise(&Noise::Laplace(scale(1, 1 << 40)));
        let release = noisy.release(Secret::new(counts), confidence(0.95), &mut Seeded::new(681));
        let tables = release.expect("entropy").into_value();
        assert_eq!(
            (tables[0].columns(), tables[0].shape()),
            (&[0, 1][..], &[2, 3][..])
        );
        let answer = |table: usize, categories: &[usize]| {
            tables[table].cell(categories).map(|cell| cell.answer)
        };
        assert_eq!(answer(0, &[1, 2]), Some(2.0), "men from elsewhere");
        assert_eq!((answer(1, &[1]), answer(2, &[])), (Some(3.0), Some(6.0)));
    }

    fn row(bits: &mut SeededBits) -> Vec<&'static str> {
        let mut pick = |names: [&'static str; 3]| names[bits.below(3) as usize];
        let mut row = vec![
            pick(["f", "m", "x"]),
            pick(["north", "south", ""]),
            pick(["no", "yes", "?"]),
        ];
        row.truncate(1 + bits.below(3) as usize);
        row
    }

    fn record_and_replay<R: Relation>(replace: bool) {
        let mut bits = SeededBits::new(seed(682));
        let marginals = marginals::<R>(
            &[&[0, 1, 2], &[1], &[0, 2], &[]],
            Contribution::RowsPerUnit(2),
        );
        for _ in 0..200 {
            let one: Vec<_> = (0..bits.below(10)).map(|_| row(&mut bits)).collect();
            let mut other = one.clone();
            other.extend((0..2).map(|_| row(&mut bits)));
            let mut one = one;
            if replace {
                one.extend((0..2).map(|_| row(&mut bits)));
            }
            let (a, b) = (
                marginals.aggregate(one).expose(),
                marginals.aggregate(other).expose(),
            );
            assert_eq!(a.len(), b.len());
            let apart = a.iter().zip(&b).map(|(a, b)| a.abs_diff(*b));
            let (l1, l2) = apart.fold((0, 0), |(l1, l2), d| (l1 + d, l2 + d * d));
            assert!(Ratio::from(l1) <= *marginals.sensitivity_l1().bound());
            assert!(Ratio::from(l2) <= *marginals.sensitivity_l2().square());
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay::<AddRemove>(false);
        record_and_replay::<ReplaceOne>(true);
    }

    /// The worst neighbours: all rows of a unit in one cell of each table, and all of them in another cell. Nothing is to spare.
    #[test]
    fn worst_neighbours_reach_the_sensitivity() {
        let sets: [&[usize]; 3] = [&[0], &[1], &[0, 2]];
        for rows_max in [1, 3] {
            let unit = |row: [&'static str; 3]| vec![row; rows_max as usize];
            let (old, new) = (unit(["f", "north", "yes"]), unit(["m", "nowhere", "no"]));
            let contribution = Contribution::RowsPerUnit(rows_max);
            let (added, replaced) = (
                marginals::<AddRemove>(&sets, contribution),
                marginals::<ReplaceOne>(&sets, contribution),
            );
            let distance = |one: Vec<[&str; 3]>, other| {
                let (a, b) = (added.aggregate(one).expose(), added.aggregate(other));
                let apart = a.into_iter().zip(b.expose()).map(|(a, b)| a.abs_diff(b));
                let (l1, l2) = apart.fold((0, 0), |(l1, l2), d| (l1 + d, l2 + d * d));
                (Ratio::from(l1), Ratio::from(l2))
            };
            let (l1, l2) = distance(new.clone(), vec![]);
            assert_eq!(l1, *added.sensitivity_l1().bound());
            assert_eq!(l2, *added.sensitivity_l2().square());
            let (l1, l2) = distance(new, old);
            assert_eq!(l1, *replaced.sensitivity_l1().bound());
            assert_eq!(l2, *replaced.sensitivity_l2().square());
        }
    }

    #[test]
    fn refuses_what_is_no_table() {
        let new =
            |sets: &[&[usize]]| Marginals::<AddRemove>::new(domain(), sets, Contribution::Row);
        assert!(new(&[]).is_err() && new(&[&[3]]).is_err() && new(&[&[0, 1, 2]]).is_ok());
        let wide = Column::new((0..5000).map(|i| i.to_string()).collect(), Unknown::Drop)
            .expect("categories");
        let wide = Marginals::<AddRemove>::new(
            vec![wide; 8],
            &[&[0, 1, 2, 3, 4, 5, 6, 7]],
            Contribution::Row,
        );
        assert!(
            wide.is_err(),
            "too many cells, whose number does not even fit in 64 bits"
        );
    }

    /// One row more shows in all tables at once.
    fn seen(b: (u128, u128)) -> whit_audit::Verdict {
        let marginals = marginals::<AddRemove>(&[&[0], &[1], &[0, 2]], Contribution::Row);
        let noisy = marginals.with_noise(&Noise::Laplace(scale(b.0, b.1)));
        let (mut one, mut other) = (Seeded::new(seed(683)), Seeded::new(seed(684)));
        let event = |rows: &[[&str; 3]], entropy: &mut Seeded| {
            let release = noisy
                .release(marginals.aggregate(rows), confidence(0.95), entropy)
                .expect("entropy");
            let cells = [(0, &[0][..]), (1, &[0]), (2, &[0, 1])];
            cells.iter().all(|&(table, cell)| {
                release.value()[table]
                    .cell(cell)
                    .is_some_and(|cell| cell.answer >= 1.0)
            })
        };
        judge(
            1.0,
            0.0,
            if long() { 400_000 } else { 220_000 },
            || event(&[["f", "north", "yes"]], &mut one),
            || event(&[], &mut other),
        )
    }

    /// A replaced row shows in all tables twice: where it was and where it is. The claim is that of the event.
    fn seen_replaced(
        b: (u128, u128),
        trials: u64,
        claimed: impl Fn(&Event) -> f64,
    ) -> whit_audit::Verdict {
        let marginals = marginals::<ReplaceOne>(&[&[0], &[2]], Contribution::Row);
        let noisy = marginals.with_noise(&Noise::Laplace(scale(b.0, b.1)));
        let counts = |row: [&str; 3]| marginals.aggregate([row]).expose();
        let (is, was) = (counts(["f", "", "no"]), counts(["m", "", "yes"]));
        let (mut one, mut other) = (Seeded::new(seed(685)), Seeded::new(seed(686)));
        let event = |counts: &[i64], entropy: &mut Seeded| {
            let noisy = noisy
                .mechanism
                .release_vector(Secret::new(counts.to_vec()), entropy);
            let noisy = noisy.expect("entropy").into_value();
            noisy.iter().zip(&is).all(|(noisy, &is)| match is {
                0 => *noisy <= 0,
                _ => *noisy >= 1,
            })
        };
        judge(
            claimed(&noisy.event()),
            0.0,
            trials,
            || event(&is, &mut one),
            || event(&was, &mut other),
        )
    }

    /// What an event of Laplace noise costs.
    fn epsilon(event: &Event) -> f64 {
        let whit_core::Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            ..
        } = event.mechanism()
        else {
            panic!("Laplace noise")
        };
        sensitivity_l1.to_f64_up() / scale.ratio().to_f64_down()
    }

    #[test]
    fn falsifier() {
        let verdict = seen((3, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.86,
            "{verdict:?}"
        );
        let verdict = seen_replaced((4, 1), 600_000, epsilon);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.88,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((27, 10)).convicted, "noise a tenth too small");
        assert!(seen((1, 1)).convicted, "each table pays for all of them");
        assert!(
            seen_replaced((36, 10), 600_000, |_| 1.0).convicted,
            "noise a tenth too small"
        );
        assert!(
            seen_replaced((4, 1), 60_000, |event| epsilon(event) / 2.0).convicted,
            "a replaced row that pays for one cell of each table"
        );
    }
}
