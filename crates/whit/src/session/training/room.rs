//! # Is there room for a run?
//! A ledger of concentrated losses adds up two numbers, `rho` and `delta0`, at every level of an account, and a charge must fit into what is
//! left of both. The share that a cost takes is the largest of `asked / left`, over levels and numbers. Where no cap was lowered below what is
//! spent, a cost fits if and only if its share is at most one (else none does), so if one of two costs fits, the one with the smaller share does; and of costs like it, more fit.

use whit_accounting::budget::Cost;
use whit_accounting::reserve::Standing;
use whit_core::Ratio;

/// Does the first of two costs take no larger share of what is left than the second?
pub(super) fn takes_less(first: &Cost, second: &Cost, standings: &[Standing]) -> bool {
    match (share(first, standings), share(second, standings)) {
        (Some(first), Some(second)) => first <= second,
        (first, second) => first.is_some() || second.is_none(),
    }
}

/// `None` if something is asked for of which nothing is left.
fn share(cost: &Cost, standings: &[Standing]) -> Option<Ratio> {
    let asked = cost.sums();
    let mut share = Ratio::zero();
    for standing in standings {
        let Some(cap) = &standing.cap else { continue };
        let (limit, spent) = (cap.limit(), standing.spent);
        for (asked, left) in [
            (asked.loss, limit.loss.left_after(spent.loss)),
            (asked.delta, limit.delta.left_after(spent.delta)),
        ] {
            if asked.units() > 0 {
                share = share.max(Ratio::new(asked.units(), left.units()).ok()?);
            }
        }
    }
    Some(share)
}

#[cfg(test)]
mod tests {
    use whit_accounting::budget::{Amount, Cap, Mode, Sums};
    use whit_accounting::reserve::Level;
    use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Probability};

    use super::*;

    /// Both in thousandths.
    fn cost(epsilon: u128, delta: u128) -> Cost {
        let part = |number| Ratio::new(number, 1000).expect("a thousandth");
        let delta = Probability::new(part(delta)).expect("below one");
        let epsilon = part(epsilon);
        let mechanism = Mechanism::Approximate { epsilon, delta };
        let event = Event::new(Neighbours::AddRemove, mechanism);
        Cost::of(&event, Mode::Zcdp, Delta::ZERO).expect("priced")
    }

    /// A level with so much left of both sums, in thousandths.
    fn standing(level: Level, rho: u128, delta: u128) -> Standing {
        let whole = (Epsilon::new(100.0), Delta::new(0.9));
        let whole = (whole.0.expect("finite"), whole.1.expect("below one"));
        let cap = Cap::new(Mode::Zcdp, Neighbours::AddRemove, whole.0, whole.1).expect("a cap");
        let part = |number| Amount::up(&Ratio::new(number, 1000).expect("a thousandth"));
        let limit = Sums {
            loss: part(rho).expect("small"),
            delta: part(delta).expect("small"),
        };
        Standing {
            level,
            cap: Some(cap.at_most(limit)),
            spent: Sums::default(),
        }
    }

    #[test]
    fn the_sum_that_is_nearer_to_its_end_decides() {
        // rho 0.02 and delta 0.01, against rho 0.5 and no delta.
        let (with, without) = (cost(200, 10), cost(1000, 0));
        let check = |rho, delta, expected: bool| {
            let standings = [standing(Level::Dataset, rho, delta)];
            assert_eq!(takes_less(&without, &with, &standings), expected);
            assert_eq!(takes_less(&with, &without, &standings), !expected);
        };
        check(1000, 100, false);
        check(1000, 15, true);
        check(1000, 5, true);
        check(1000, 0, true);
        check(400, 15, false);
        let nothing = [standing(Level::Dataset, 0, 0)];
        assert!(takes_less(&without, &with, &nothing) && takes_less(&with, &without, &nothing));
    }

    #[test]
    fn every_level_counts() {
        let (with, without) = (cost(200, 10), cost(1000, 0));
        let dataset = standing(Level::Dataset, 1000, 100);
        let free = Standing {
            cap: None,
            ..standing(Level::Team("a".into()), 0, 0)
        };
        let analyst = standing(Level::Analyst("b".into()), 1000, 5);
        assert!(!takes_less(
            &without,
            &with,
            &[dataset.clone(), free.clone()]
        ));
        assert!(takes_less(&without, &with, &[dataset, free, analyst]));
    }
}
