//! # Workload
//! **Definition.** A [`Domain`] is a product of columns with public categories: every combination of them is a cell, and a table has one
//!   number for each cell. A linear counting [`Query`] is a set of cells; its answer is the sum of their numbers. A [`Workload`] is a list
//!   of queries: all cells of some marginals, or any sets.
//! **Order.** Cells as in [`Marginals`](crate::Marginals): the last column changes fastest. Queries in the order given, those of one
//!   marginal in the order of its cells.
//! **Sensitivity.** A row is in one cell or in none, so it adds zero or one to every answer. A unit with at most `k` rows adds a number from
//!   `0` to `k` to each; one that is replaced adds the difference of two such numbers. So each answer moves by at most `k`, whether
//!   a unit is added, removed or replaced. Nothing is said here about several answers together.
//!
//! All of this is public: no function here sees a row.

use std::ops::Add;

use crate::contingency_table::{Column, check};
use crate::{Error, Result};

/// A product of columns with public categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    columns: Vec<Column>,
    size: usize,
}

/// More cells than this are no universe to keep a weight for each.
const CELLS_MAX: u64 = 1 << 20;

/// More queries than this are too many to choose from.
const QUERIES_MAX: u64 = 1 << 24;

impl Domain {
    /// At least one column, and at most `2^20` cells.
    pub fn new(columns: Vec<Column>) -> Result<Self> {
        check("the number of columns", columns.len() as u64, CELLS_MAX)?;
        let sizes = columns.iter().map(|column| column.size() as u64);
        let size = sizes.fold(1, u64::saturating_mul);
        check("the number of cells", size, CELLS_MAX)?;
        Ok(Self {
            columns,
            size: size as usize,
        })
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many cells there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The category of each column in a cell.
    pub fn categories(&self, cell: usize) -> Vec<usize> {
        let mut rest = cell;
        let mut categories: Vec<usize> = (self.columns.iter().rev())
            .map(|column| {
                let category = rest % column.size();
                rest /= column.size();
                category
            })
            .collect();
        categories.reverse();
        categories
    }

    /// Columns in order and without repeats, if all of them are here.
    fn set(&self, columns: &[usize]) -> Result<Vec<usize>> {
        let mut set = columns.to_vec();
        set.sort_unstable();
        set.dedup();
        if let Some(&last) = set.last() {
            let columns = self.columns.len() as u64;
            check("the number of columns", last as u64 + 1, columns)?;
        }
        Ok(set)
    }

    fn cells(&self, set: &[usize]) -> usize {
        let sizes = set.iter().map(|&column| self.columns[column].size());
        sizes.product()
    }

    /// Sums all columns but those of the set out of a table, one after the other. About twice as many steps as there are cells.
    fn marginal<T: Copy + Add<Output = T>>(&self, set: &[usize], table: &[T]) -> Vec<T> {
        let mut table = table.to_vec();
        let (mut kept, mut inner) = (1, self.size);
        for (column, axis) in self.columns.iter().map(Column::size).enumerate() {
            inner /= axis;
            if set.contains(&column) {
                kept *= axis;
                continue;
            }
            // The table is kept × axis × inner now; each slab is folded onto its first part, and the parts are moved together.
            for outer in 0..kept {
                let from = outer * axis * inner;
                table.copy_within(from..from + inner, outer * inner);
                for i in 1..axis {
                    let (sums, rest) = table.split_at_mut((outer + 1) * inner);
                    let more = &rest[from + i * inner - (outer + 1) * inner..][..inner];
                    let sums = &mut sums[outer * inner..];
                    for (sum, &more) in sums.iter_mut().zip(more) {
                        *sum = *sum + more;
                    }
                }
            }
            table.truncate(kept * inner);
        }
        table
    }
}

/// A linear counting query: how many rows are in one of these cells?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Cells in order. They fit in 32 bits, since a domain has at most `2^20`.
    members: Vec<u32>,
}

impl Query {
    /// The cells whose categories satisfy a condition.
    pub fn of(domain: &Domain, holds: impl Fn(&[usize]) -> bool) -> Self {
        let mut categories = domain.categories(0);
        let mut members = Vec::new();
        for cell in 0..domain.size {
            if holds(&categories) {
                members.push(cell as u32);
            }
            // The next cell: like counting, with carries from the last column to the first.
            for (category, column) in categories.iter_mut().zip(&domain.columns).rev() {
                *category += 1;
                if *category < column.size() {
                    break;
                }
                *category = 0;
            }
        }
        Self { members }
    }

    /// The cells with these categories, given as `(column, category)`; none if there is no such column or category.
    pub fn cell(domain: &Domain, fixed: &[(usize, usize)]) -> Self {
        Self::of(domain, |categories| {
            let fits = |&(column, category)| categories.get(column) == Some(&category);
            fixed.iter().all(fits)
        })
    }

    /// The cells, in order.
    pub fn members(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|&cell| cell as usize)
    }

    /// The sum over its cells. A cell that the table does not have counts as zero.
    pub fn answer<T: Copy + Default + Add<Output = T>>(&self, table: &[T]) -> T {
        self.members()
            .filter_map(|cell| table.get(cell))
            .fold(T::default(), |sum, &more| sum + more)
    }
}

/// A public list of queries.
#[derive(Clone, Debug)]
pub struct Workload {
    domain: Domain,
    parts: Vec<Part>,
    queries: usize,
}

#[derive(Clone, Debug)]
enum Part {
    /// All cells of the marginal of these columns.
    Marginal(Vec<usize>),
    Query(Query),
}

impl Workload {
    /// All cells of the marginals of these sets of columns. The empty set is the number of all rows.
    pub fn marginals(domain: Domain, sets: &[&[usize]]) -> Result<Self> {
        let sets: Result<Vec<_>> = sets.iter().map(|set| domain.set(set)).collect();
        Self::new(domain, sets?.into_iter().map(Part::Marginal).collect())
    }

    /// All cells of all marginals of `width` columns.
    pub fn all_marginals(domain: Domain, width: usize) -> Result<Self> {
        let columns = domain.columns.len();
        check("the width of a marginal", width as u64, columns as u64)?;
        let mut sets: Vec<Vec<usize>> = vec![vec![]];
        for _ in 0..width {
            let first = |set: &Vec<usize>| set.last().map_or(0, |last| last + 1);
            // Counted before they are listed: there may be many columns of one category.
            let count = sets.iter().map(|set| (columns - first(set)) as u64).sum();
            check("the number of marginals", count, QUERIES_MAX)?;
            let longer = |set: &Vec<usize>| {
                let first = first(set);
                let set = set.clone();
                (first..columns).map(move |next| [&set[..], &[next]].concat())
            };
            sets = sets.iter().flat_map(longer).collect();
        }
        Self::new(domain, sets.into_iter().map(Part::Marginal).collect())
    }

    /// Any queries over the domain. One with a cell that the domain does not have is refused.
    pub fn queries(domain: Domain, queries: Vec<Query>) -> Result<Self> {
        for query in &queries {
            let last = query.members().last().unwrap_or(0);
            check("a cell's number", last as u64 + 1, domain.size as u64)?;
        }
        Self::new(domain, queries.into_iter().map(Part::Query).collect())
    }

    fn new(domain: Domain, parts: Vec<Part>) -> Result<Self> {
        let len = |part: &Part| match part {
            Part::Marginal(set) => domain.cells(set) as u64,
            Part::Query(_) => 1,
        };
        let queries = parts.iter().map(len).fold(0, u64::saturating_add);
        check("the number of queries", queries, QUERIES_MAX)?;
        Ok(Self {
            domain,
            parts,
            queries: queries as usize,
        })
    }

    /// What the queries are about.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// How many queries there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.queries
    }

    /// One query. None beyond the last.
    pub fn query(&self, index: usize) -> Option<Query> {
        let mut index = index;
        for part in &self.parts {
            match part {
                Part::Marginal(set) if index < self.domain.cells(set) => {
                    let mut fixed = Vec::new();
                    for &column in set.iter().rev() {
                        let size = self.domain.columns[column].size();
                        fixed.push((column, index % size));
                        index /= size;
                    }
                    return Some(Query::cell(&self.domain, &fixed));
                }
                Part::Marginal(set) => index -= self.domain.cells(set),
                Part::Query(query) if index == 0 => return Some(query.clone()),
                Part::Query(_) => index -= 1,
            }
        }
        None
    }

    /// All answers, in order. The table must have one number for each cell of the domain.
    pub fn answers<T: Copy + Default + Add<Output = T>>(&self, table: &[T]) -> Result<Vec<T>> {
        let (given, size) = (table.len() as u64, self.domain.size as u64);
        if given != size {
            return Err(Error::CountOutOfRange {
                what: "the number of cells in the table",
                given,
                min: size,
                max: size,
            });
        }
        let mut answers = Vec::with_capacity(self.queries);
        for part in &self.parts {
            match part {
                Part::Marginal(set) => answers.extend(self.domain.marginal(set, table)),
                Part::Query(query) => answers.push(query.answer(table)),
            }
        }
        Ok(answers)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::contingency_table::Unknown;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    /// Columns with so many categories each, for tests.
    pub(crate) fn domain(sizes: &[usize]) -> Domain {
        let column = |&size: &usize| {
            let categories = (0..size).map(|i| i.to_string()).collect();
            Column::new(categories, Unknown::Drop).expect("categories")
        };
        Domain::new(sizes.iter().map(column).collect()).expect("not too large")
    }

    #[test]
    fn answers_are_those_of_the_queries() {
        let mut bits = SeededBits::new(691);
        let domain = domain(&[2, 3, 1, 4]);
        assert_eq!(domain.size(), 24);
        let table: Vec<i64> = (0..24).map(|_| (bits.word() >> 40) as i64).collect();
        let sets: [&[usize]; 6] = [&[], &[3, 1], &[0], &[2], &[0, 1, 2, 3], &[1, 1]];
        let all = [
            Workload::marginals(domain.clone(), &sets).expect("sets"),
            Workload::all_marginals(domain.clone(), 3).expect("sets"),
            Workload::queries(
                domain.clone(),
                vec![
                    Query::of(&domain, |row| row[0] + row[1] + row[3] == 3),
                    Query::of(&domain, |_| false),
                ],
            )
            .expect("queries"),
        ];
        let lens = all.each_ref().map(Workload::len);
        assert_eq!(lens, [1 + 12 + 2 + 1 + 24 + 3, 6 + 24 + 8 + 12, 2]);
        for workload in all {
            let answers = workload.answers(&table).expect("24 cells");
            assert_eq!(answers.len(), workload.len());
            for (i, answer) in answers.iter().enumerate() {
                let query = workload.query(i).expect("within");
                assert_eq!(query.answer(&table), *answer, "query {i}");
            }
            assert_eq!(workload.query(workload.len()), None);
            assert!(workload.answers(&table[1..]).is_err());
        }
    }

    #[test]
    fn cells_are_numbered_like_those_of_marginals() {
        let domain = domain(&[2, 3]);
        assert_eq!(domain.categories(4), [1, 1]);
        let query = Query::cell(&domain, &[(1, 2)]);
        assert_eq!(query.members().collect::<Vec<_>>(), [2, 5]);
        assert_eq!(Query::cell(&domain, &[(2, 0)]).members().count(), 0);
        assert_eq!(Query::cell(&domain, &[(1, 3)]).members().count(), 0);
        assert_eq!(Query::cell(&domain, &[]).members().count(), 6);
    }

    #[test]
    fn refuses_what_is_too_large_or_not_there() {
        assert!(Domain::new(vec![]).is_err());
        let wide = domain(&[1 << 10]).columns()[0].clone();
        assert!(Domain::new(vec![wide.clone(); 2]).is_ok());
        assert!(Domain::new(vec![wide.clone(); 3]).is_err());
        assert!(Domain::new(vec![wide; 100]).is_err());
        let two = domain(&[2, 2]);
        assert!(Workload::marginals(two.clone(), &[]).is_err());
        assert!(Workload::marginals(two.clone(), &[&[2]]).is_err());
        assert!(Workload::all_marginals(two.clone(), 0).is_err());
        assert!(Workload::all_marginals(two.clone(), 3).is_err());
        // Of a hundred thousand columns with one category there are five billion pairs: refused before they are listed.
        let many = domain(&vec![1; 100_000]);
        assert!(Workload::all_marginals(many, 2).is_err());
        let foreign = Query::of(&domain(&[5]), |_| true);
        assert!(Workload::queries(two.clone(), vec![foreign]).is_err());
        assert!(Workload::queries(two, vec![]).is_err());
    }
}
