//! The two bounds that [`price`](crate::price()) chooses from, with all that comes on top of them: basic composition and
//! closeness, as the module text of `price.rs` adds them up.

use whit_core::{Delta, Epsilon, Rho, round};

use crate::approximate::Approximate;
use crate::close::{distance_within, slack};
use crate::search::smallest_passing_f64;
use crate::{Error, Result, zcdp};

/// What proves a pure price. First without and then with parts that have a delta of their own; in each case first for an
/// exact sampler and then for one that is only close.
pub(crate) const PURE: [[&str; 2]; 2] = [
    [
        "pure composition [DR14, Thm 3.14]",
        "pure composition [DR14, Thm 3.14] and closeness in total variation",
    ],
    [
        "basic composition [DR14, Thm 3.16]",
        "basic composition [DR14, Thm 3.16] and closeness in total variation",
    ],
];
/// What proves a converted price, likewise.
pub(crate) const ZCDP: [[&str; 2]; 2] = [
    [
        "zero-concentrated DP [BS16], converted by [CKS20, Cor. 13]",
        "zero-concentrated DP [BS16], converted by [CKS20, Cor. 13], and closeness in total variation",
    ],
    [
        "zero-concentrated DP [BS16], converted by [CKS20, Cor. 13], and basic composition [DR14, Thm 3.16]",
        "zero-concentrated DP [BS16], converted by [CKS20, Cor. 13], basic composition [DR14, Thm 3.16], and closeness in total variation",
    ],
];

/// A price before anybody asked for whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Delta,
    pub(crate) theorem: &'static str,
}

/// What comes on top of the price of the rest.
#[derive(Clone, Copy)]
pub(crate) struct Added {
    pub(crate) approximate: Approximate,
    /// The distance of the sampled from the meant mechanism.
    pub(crate) distance: f64,
}

impl Added {
    /// `ε + ε_A`, rounded up.
    fn epsilon(self, rest: Epsilon) -> Result<Epsilon> {
        let sum = round::add_up(rest.value(), self.approximate.epsilon);
        Epsilon::new(sum).map_err(|_| Error::Unbounded {
            what: "finite epsilon",
        })
    }

    /// `δ_A + (δ + (1 + e^ε)τ)` for the whole epsilon, rounded up. Summed in this order, a bracket that is at most
    /// [`left`](Self::left) gives at most the delta it was left from: both are floats, and rounding up keeps below them.
    fn delta(self, rest: f64, whole: Epsilon) -> f64 {
        let bracket = round::add_up(rest, slack(whole.value(), self.distance));
        round::add_up(self.approximate.delta, bracket)
    }

    /// What of `delta` the parts with a delta of their own leave, rounded down; negative if they need more.
    fn left(self, delta: Delta) -> f64 {
        round::sub_down(delta.value(), self.approximate.delta)
    }

    fn theorem(self, table: [[&'static str; 2]; 2]) -> &'static str {
        let basic = usize::from(self.approximate.delta > 0.0);
        table[basic][usize::from(self.distance > 0.0)]
    }

    fn no_room(self, delta: Delta, delta_passing: f64) -> Error {
        Error::NoRoom {
            delta_parts: self.approximate.delta,
            delta: delta.value(),
            delta_passing,
        }
    }
}

pub(crate) fn pure_bound(rest: Epsilon, added: Added, delta: Delta) -> Result<Bound> {
    let epsilon = added.epsilon(rest)?;
    let needed = added.delta(0.0, epsilon);
    let left = added.left(delta);
    if left < 0.0 {
        return Err(added.no_room(delta, needed));
    }
    if needed > delta.value() {
        return Err(Error::TooCoarse {
            total_variation: added.distance,
            delta: delta.value(),
            delta_passing: needed,
            total_variation_passing: distance_within(left, epsilon.value()),
        });
    }
    Ok(Bound {
        epsilon,
        delta: Delta::new(needed)?,
        theorem: added.theorem(PURE),
    })
}

/// The smallest `ε + ε_A` seen with `δ_A + δ_ρ(ε) + (1 + e^(ε + ε_A))τ <= δ`.
///
/// If nothing has to be sampled closely, `δ_ρ` may take all that `δ_A` leaves. Otherwise it falls and the slack grows
/// with `ε`. We start where the first takes half of what is left: if the second does not fit into the other half, the
/// sampler is too coarse and the event is refused, at worst by a factor of two too early. If it does, the start passes,
/// since two floats of at most half of what is left add up to at most that in any rounding.
pub(crate) fn converted_bound(rho: Rho, added: Added, delta: Delta) -> Result<Bound> {
    let left = added.left(delta);
    let share = if added.distance == 0.0 {
        left
    } else {
        round::mul_down(left, 0.5)
    };
    let starved = share <= 0.0 && rho.value() > 0.0 && added.approximate.delta > 0.0;
    if left < 0.0 || starved {
        return Err(no_room(rho, added, delta));
    }
    let start = zcdp::epsilon(rho, Delta::new(share.max(0.0))?)?;
    let whole = added.epsilon(start)?;
    let needed = slack(whole.value(), added.distance);
    if added.distance > 0.0 && needed > share {
        let more = round::mul_up(2.0, needed);
        return Err(Error::TooCoarse {
            total_variation: added.distance,
            delta: delta.value(),
            delta_passing: round::add_up(added.approximate.delta, more),
            total_variation_passing: distance_within(share.max(0.0), whole.value()),
        });
    }
    let passes = |rest: f64| {
        Epsilon::new(rest)
            .map_err(Error::from)
            .and_then(|rest| {
                let whole = added.epsilon(rest)?;
                Ok(added.delta(zcdp::delta(rho, rest)?.value(), whole))
            })
            .is_ok_and(|found| found <= delta.value())
    };
    let smallest = if added.distance == 0.0 {
        start.value()
    } else if passes(0.0) {
        0.0
    } else {
        smallest_passing_f64(0.0, start.value(), passes)
    };
    if !passes(smallest) {
        return Err(Error::Unverified { what: "epsilon" });
    }
    Ok(Bound {
        epsilon: added.epsilon(Epsilon::new(smallest)?)?,
        delta,
        theorem: added.theorem(ZCDP),
    })
}

/// The refusal of a delta that leaves nothing for a concentrated loss. It offers twice what the other parts need, or
/// midway from there to one, if that was seen to pass; if the sampler is too coarse for it, what that refusal offers.
fn no_room(rho: Rho, added: Added, delta: Delta) -> Error {
    let parts = added.approximate.delta;
    let more = round::mul_up(2.0, parts).min(parts.midpoint(1.0));
    // Below the normal floats, half of what is left could be nothing again.
    let more = more.max(f64::MIN_POSITIVE);
    let Some(more) = Delta::new(more).ok().filter(|more| added.left(*more) > 0.0) else {
        return added.no_room(delta, parts.max(1.0));
    };
    match converted_bound(rho, added, more) {
        Ok(_) => added.no_room(delta, more.value()),
        Err(Error::TooCoarse { delta_passing, .. }) => added.no_room(delta, delta_passing),
        // No delta helps against this one.
        Err(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However tight, a sum that was left room for is never over its delta by its own rounding.
    #[test]
    fn what_is_left_fits_again() {
        for parts in [0.0_f64, 5e-324, 1e-300, 1e-9, 0.1, 1.0 / 3.0] {
            for delta in [parts, parts.next_up(), 1e-9 / 3.0, 1e-6, 0.3, 0.999] {
                let added = Added {
                    approximate: Approximate {
                        epsilon: 0.0,
                        delta: parts,
                    },
                    distance: 0.0,
                };
                let left = added.left(Delta::new(delta).expect("below one"));
                assert_eq!(left < 0.0, parts > delta);
                if left >= 0.0 {
                    assert!(added.delta(left, Epsilon::ZERO) <= delta, "{parts} {delta}");
                }
            }
        }
    }
}
