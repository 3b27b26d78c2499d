//! # How much of a unit counts
//! **Definition.** After all joins and filters a unit keeps at most `G` groups (`groups`), `R` rows in each (`rows`), and, where its table
//! declares it, `T` rows altogether (`total`).
//! **Sensitivity.** Let each row add, to one part of a sum, an integer (or a vector of two with L1 norm) of size at most `c`. Adding
//!   or removing a unit changes the vector of all groups' sums by at most
//!   `L1 <= c min(G R, T)` and `L2² <= c² S` with `S = q R² + r²`, where `q R + r = min(G R, T)`, `r < R`.
//! **Proof.** The unit adds `n_g` rows to group `g`, in at most `G` groups, `n_g <= R` and `Σ n_g <= min(G R, T)`. Its vector has size at
//!   most `c n_g` in group `g`, in L1 and so in L2 too. Hence `L1 <= c Σ n_g`; and `Σ n_g²` is convex, so it is largest at a corner
//!   of what is allowed: as many full groups as fit, `q`, and the rest in one. Rows of other units are not touched. ∎
//!   The number of distinct units in a group moves by at most one, in at most `min(G, T)` groups: `L1 <= min(G, T)`, `L2² <= min(G, T)`.

use whit_core::{AddRemove, L1, L2, Ratio, Sensitivity};

use super::Keys;
use crate::error::{Result, refused};
use crate::request::Request;

/// The caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contribution {
    /// In how many groups a unit counts.
    pub(crate) groups: u32,
    /// How many rows of a unit count in a group.
    pub(crate) rows: u32,
    /// How many rows of a unit count altogether, if that is less than what the other two allow.
    pub(crate) total: Option<u32>,
}

impl Contribution {
    pub(super) fn find(
        request: &Request,
        rows_per_unit: Option<u32>,
        keys: &Keys,
        only_units: bool,
    ) -> Result<Self> {
        let missing = |what: &str, option: &str| {
            refused(
                "contribution_missing",
                format!("neither the statement nor the catalog says {what}"),
                format!("give --{option} 1, for example, or a default in the catalog"),
            )
        };
        let known = rows_per_unit.unwrap_or(u32::MAX);
        let groups = match keys {
            Keys::One => 1,
            Keys::Public(keys) => {
                let most = u32::try_from(keys.order.len()).unwrap_or(u32::MAX);
                let asked = request.groups_per_unit().or(rows_per_unit);
                asked
                    .ok_or_else(|| missing("in how many groups a unit counts", "groups-per-unit"))?
                    .min(most)
            }
            Keys::Private => request
                .groups_per_unit()
                .or(rows_per_unit)
                .ok_or_else(|| missing("in how many groups a unit counts", "groups-per-unit"))?,
        };
        let rows = match request.rows_per_group().or(rows_per_unit) {
            Some(rows) => rows,
            None if only_units => 1,
            None => {
                return Err(missing(
                    "how many rows of a unit count in a group",
                    "rows-per-group",
                ));
            }
        };
        let (groups, rows) = (groups.min(known), rows.min(known));
        let most = u64::from(groups) * u64::from(rows);
        Ok(Self {
            groups,
            rows,
            total: rows_per_unit.filter(|&total| u64::from(total) < most),
        })
    }

    /// The most rows of one unit that count.
    fn rows_all(self) -> u64 {
        let most = u64::from(self.groups) * u64::from(self.rows);
        self.total.map_or(most, |total| u64::from(total).min(most))
    }

    /// For sums to which each row adds at most `reach`.
    pub(crate) fn of_rows(
        self,
        reach: u64,
    ) -> (Sensitivity<L1, AddRemove>, Sensitivity<L2, AddRemove>) {
        let (all, rows) = (self.rows_all(), u64::from(self.rows));
        let (full, rest) = (u128::from(all / rows), u128::from(all % rows));
        let squares = full * u128::from(rows) * u128::from(rows) + rest * rest;
        let reach = Ratio::from(reach);
        let l1 = &reach * &Ratio::from(all);
        let l2_square = &(&reach * &reach) * &Ratio::from(squares);
        (Sensitivity::new(l1), Sensitivity::from_square(l2_square))
    }

    /// For the number of distinct units in each group.
    pub(crate) fn of_units(self) -> (Sensitivity<L1, AddRemove>, Sensitivity<L2, AddRemove>) {
        let groups = || Ratio::from(u64::from(self.groups));
        (
            Sensitivity::new(groups()),
            Sensitivity::from_square(groups()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(groups: u32, rows: u32, total: Option<u32>, l1: u64, l2_square: u64) {
        let (one, two) = Contribution {
            groups,
            rows,
            total,
        }
        .of_rows(3);
        assert_eq!(
            one.bound(),
            &Ratio::from(3 * l1),
            "{groups} {rows} {total:?}"
        );
        assert_eq!(
            two.square(),
            &Ratio::from(9 * l2_square),
            "{groups} {rows} {total:?}"
        );
    }

    #[test]
    fn closed_form() {
        check(1, 1, None, 1, 1);
        check(5, 10, None, 50, 500);
        check(5, 10, Some(23), 23, 100 + 100 + 9);
        check(5, 10, Some(1), 1, 1);
        check(4, 1, Some(3), 3, 3);
        let (one, two) = Contribution {
            groups: 7,
            rows: 3,
            total: None,
        }
        .of_units();
        assert_eq!(
            (one.bound(), two.square()),
            (&Ratio::from(7_u64), &Ratio::from(7_u64))
        );
    }

    /// No way to spread rows over groups moves further than the bound, and one moves as far.
    #[test]
    fn no_spread_of_rows_is_worse() {
        for (groups, rows, total) in [(3_u32, 2_u32, 5_u32), (2, 3, 4), (3, 3, 7), (3, 2, 2)] {
            let (one, two) = Contribution {
                groups,
                rows,
                total: Some(total),
            }
            .of_rows(1);
            let (mut l1, mut l2) = (0, 0);
            for code in 0..(rows + 1).pow(groups) {
                let spread: Vec<u32> = (0..groups)
                    .map(|g| code / (rows + 1).pow(g) % (rows + 1))
                    .collect();
                if spread.iter().sum::<u32>() <= total {
                    l1 = l1.max(spread.iter().sum::<u32>());
                    l2 = l2.max(spread.iter().map(|n| n * n).sum::<u32>());
                }
            }
            assert_eq!(one.bound(), &Ratio::from(u64::from(l1)));
            assert_eq!(two.square(), &Ratio::from(u64::from(l2)));
        }
    }
}
