//! Looking for the pair of neighbours that a query tells apart best.
//!
//! Every data set of at most so many rows over a small public domain is tried, with every neighbour of it: whatever is found is a real pair, and the
//! largest distance is a lower bound on the sensitivity. Rows that matter are few for most queries (an empty data set, the ends of
//! a range, one row too many), so that small data sets show most mistakes. Order of rows is tried too, since programs may depend on it.

use crate::{Error, Result};
use whit_core::Neighbours;

/// The most data sets that are tried.
const DATA_SETS_MAX: usize = 1 << 20;

/// Two neighbouring data sets, and how far apart they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair<T> {
    /// The first.
    pub one: Vec<T>,
    /// Its neighbour.
    pub other: Vec<T>,
    /// What the given function says of them.
    pub distance: f64,
}

/// The pair that is farthest apart by `distance`, of all data sets of up to `rows_max` rows whose values are in `domain`, and all their
/// neighbours within the same limits. `None` if there is no pair.
///
/// A distance that is no number counts as infinite: a query that has no answer on one of two neighbours tells them apart.
pub fn farthest_neighbours<T: Clone>(
    domain: &[T],
    rows_max: usize,
    relation: Neighbours,
    mut distance: impl FnMut(&[T], &[T]) -> f64,
) -> Result<Option<Pair<T>>> {
    let mut data_sets: Vec<Vec<T>> = vec![Vec::new()];
    let mut shortest = 0;
    for _ in 0..rows_max {
        let longest = data_sets.len();
        for at in shortest..longest {
            for value in domain {
                let mut rows = data_sets[at].clone();
                rows.push(value.clone());
                data_sets.push(rows);
                if data_sets.len() > DATA_SETS_MAX {
                    return Err(Error::OutOfDomain {
                        what: "number of data sets",
                        given: data_sets.len() as f64,
                        domain: "at most 2^20: a smaller domain, or fewer rows",
                    });
                }
            }
        }
        shortest = longest;
    }
    let mut best: Option<Pair<T>> = None;
    let mut consider = |one: &[T], other: &[T]| {
        let apart = distance(one, other);
        let apart = if apart.is_nan() { f64::INFINITY } else { apart };
        if best.as_ref().is_none_or(|best| apart > best.distance) {
            best = Some(Pair {
                one: one.to_vec(),
                other: other.to_vec(),
                distance: apart,
            });
        }
    };
    for rows in &data_sets {
        for at in 0..rows.len() {
            match relation {
                Neighbours::AddRemove => {
                    let mut fewer = rows.clone();
                    fewer.remove(at);
                    consider(rows, &fewer);
                }
                Neighbours::ReplaceOne => {
                    for value in domain {
                        let mut changed = rows.clone();
                        changed[at] = value.clone();
                        consider(rows, &changed);
                    }
                }
                _ => {
                    return Err(Error::OutOfDomain {
                        what: "neighbour relation",
                        given: f64::NAN,
                        domain: "add/remove or replace-one",
                    });
                }
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(query: impl Fn(&[f64]) -> f64, domain: &[f64], relation: Neighbours) -> Pair<f64> {
        farthest_neighbours(domain, 4, relation, |a, b| (query(a) - query(b)).abs())
            .expect("small")
            .expect("some pair")
    }

    #[test]
    fn sensitivities_of_textbooks_are_found() {
        let sum = |rows: &[f64]| rows.iter().sum::<f64>();
        let domain = [0.0, 3.0, 10.0];
        assert_eq!(apart(sum, &domain, Neighbours::AddRemove).distance, 10.0);
        let domain = [-2.0, 3.0];
        assert_eq!(apart(sum, &domain, Neighbours::ReplaceOne).distance, 5.0);
        let count = |rows: &[f64]| rows.len() as f64;
        assert_eq!(apart(count, &domain, Neighbours::AddRemove).distance, 1.0);
        assert_eq!(apart(count, &domain, Neighbours::ReplaceOne).distance, 0.0);
    }

    /// A mean that divides by the true number of rows has no answer without rows.
    #[test]
    fn a_query_that_fails_on_one_neighbour_is_infinitely_far() {
        let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len() as f64;
        let pair = apart(mean, &[0.0, 1.0], Neighbours::AddRemove);
        assert_eq!((pair.distance, pair.other.len()), (f64::INFINITY, 0));
    }

    /// The defect of a published library: a bound that is taken from the wrong end.
    #[test]
    fn a_wrong_bound_is_found() {
        let (low, high) = (0.0_f64, 100.0_f64);
        let squares = |rows: &[f64]| rows.iter().map(|x| x * x).sum::<f64>();
        let claimed = low.abs().max(low.abs()).powi(2);
        let found = apart(squares, &[low, high], Neighbours::AddRemove);
        assert!(found.distance > claimed && found.distance == 10_000.0);
    }

    #[test]
    fn large_searches_are_refused() {
        let domain: Vec<u8> = (0..=255).collect();
        let refused = farthest_neighbours(&domain, 4, Neighbours::AddRemove, |_, _| 0.0);
        assert!(refused.is_err());
        let none = farthest_neighbours(&domain, 0, Neighbours::AddRemove, |_, _| 0.0);
        assert_eq!(none, Ok(None));
    }
}
