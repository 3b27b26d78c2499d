//! # Parts of which only an epsilon and a delta are known
//! **Basic composition.** If `M_1` is `(ε_1, δ_1)`-DP, `M_2` is `(ε_2, δ_2)`-DP and their noise is independent, both
//! together are `(ε_1+ε_2, δ_1+δ_2)`-DP. [DR14, Thm 3.16]
//! *Proof.* Let `P_i` and `Q_i` be the output distributions of `M_i` on neighbours, `S` a set of pairs of outputs and
//! `S_y` the second halves that it holds for a first half `y`.
//! 1. `P_2(S_y) <= f(y) + δ_2`, where `f(y) = min(1, e^{ε_2} Q_2(S_y))`: the left side is at most one, too.
//! 2. `f` has values in `[0, 1]`, so `E[f] = ∫ Pr[f > t] dt` over `0 <= t < 1`, and `E_{P_1}[f] <= e^{ε_1} E_{Q_1}[f] + δ_1`,
//!    since that holds for each of the sets `{f > t}`.
//! 3. `(P_1×P_2)(S) = E_{P_1}[P_2(S_y)] <= E_{P_1}[f] + δ_2 <= e^{ε_1} E_{Q_1}[f] + δ_1 + δ_2
//!    <= e^{ε_1+ε_2} (Q_1×Q_2)(S) + δ_1 + δ_2`.
//!
//! By induction the parts of a composition that have a delta add up to `(ε_A, δ_A)`; and whatever proves `(ε, δ)` for the
//! rest as one mechanism, the whole is `(ε + ε_A, δ + δ_A)`-DP.
//!
//! **Partition selection** is `(ε, δ)`-DP for neighbours that differ by one unit at one key: the optimal curve is the
//! largest that keeps to the definition, in both directions, from each number of units to the next. \[DVGM22\] Where
//! neighbours differ at more keys, as for a unit with several or one that moves from key to key under replace-one, the
//! event is a composition of as many; what is written is what is priced.

use whit_core::{Mechanism, round};

/// The sums `ε_A` and `δ_A`, rounded up; infinite beyond the floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Approximate {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

/// Takes out the parts that have a delta, at every depth of composition: what is left as one flat composition, and what
/// they add up to. Parts with a delta of exactly zero are pure and stay.
pub(crate) fn split(mechanism: &Mechanism) -> (Mechanism, Approximate) {
    let mut rest = Vec::new();
    let mut sum = Approximate {
        epsilon: 0.0,
        delta: 0.0,
    };
    collect(mechanism, &mut rest, &mut sum);
    (Mechanism::Composition(rest), sum)
}

fn collect(mechanism: &Mechanism, rest: &mut Vec<Mechanism>, sum: &mut Approximate) {
    match mechanism {
        Mechanism::Composition(parts) => {
            for part in parts {
                collect(part, rest, sum);
            }
        }
        Mechanism::Approximate { epsilon, delta }
        | Mechanism::PartitionSelection { epsilon, delta }
            if !delta.ratio().is_zero() =>
        {
            sum.epsilon = round::add_up(sum.epsilon, epsilon.to_f64_up());
            sum.delta = round::add_up(sum.delta, delta.ratio().to_f64_up());
        }
        // Also a mechanism that is not known here: pricing the rest refuses it by name.
        other => rest.push(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Probability, Ratio};

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("the denominator is positive")
    }

    fn approximate(epsilon: Ratio, delta: Ratio) -> Mechanism {
        let delta = Probability::new(delta).expect("at most one");
        Mechanism::Approximate { epsilon, delta }
    }

    fn selection(epsilon: Ratio, delta: Ratio) -> Mechanism {
        let delta = Probability::new(delta).expect("at most one");
        Mechanism::PartitionSelection { epsilon, delta }
    }

    fn pure(epsilon: Ratio) -> Mechanism {
        Mechanism::Pure { epsilon }
    }

    #[test]
    fn parts_are_found_at_every_depth() {
        let inner = Mechanism::Composition(vec![
            selection(ratio(1, 2), ratio(1, 8)),
            pure(ratio(3, 1)),
            Mechanism::Composition(vec![approximate(ratio(1, 4), ratio(1, 16))]),
        ]);
        let whole = Mechanism::Composition(vec![pure(ratio(1, 1)), inner, pure(ratio(2, 1))]);
        let (rest, sum) = split(&whole);
        let flat = vec![pure(ratio(1, 1)), pure(ratio(3, 1)), pure(ratio(2, 1))];
        assert_eq!(rest, Mechanism::Composition(flat));
        assert_eq!((sum.epsilon, sum.delta), (0.75, 0.1875));
    }

    #[test]
    fn a_delta_of_zero_is_pure_and_the_smallest_is_not() {
        let none = approximate(ratio(1, 1), Ratio::zero());
        let (rest, sum) = split(&none);
        assert_eq!(rest, Mechanism::Composition(vec![none]));
        assert_eq!((sum.epsilon, sum.delta), (0.0, 0.0));
        let (rest, sum) = split(&selection(ratio(1, 1), Ratio::power_of_two(-2000)));
        assert_eq!(rest, Mechanism::Composition(vec![]));
        assert_eq!((sum.epsilon, sum.delta), (1.0, 5e-324));
    }

    #[test]
    fn sums_are_rounded_up() {
        let third = approximate(ratio(1, 3), ratio(1, 7));
        let (_, sum) = split(&Mechanism::Composition(vec![third; 3]));
        assert!(Ratio::from_f64(sum.epsilon).expect("finite") > ratio(1, 1));
        assert!(Ratio::from_f64(sum.delta).expect("finite") > ratio(3, 7));
        let (_, sum) = split(&approximate(Ratio::power_of_two(2000), ratio(1, 2)));
        assert_eq!(sum.epsilon, f64::INFINITY);
    }

    /// The worst case there is for given `(ε_i, δ_i)`: with probability `δ` the input itself, otherwise randomized
    /// response. The delta of two of them at `ε_1 + ε_2` is `1 - (1-δ_1)(1-δ_2)`, a hair below the sum of their deltas.
    #[test]
    fn basic_composition_holds_on_the_worst_pair() {
        let channel = |epsilon: f64, delta: f64| {
            let truth = epsilon.exp() / (1.0 + epsilon.exp());
            let (p, q) = ((1.0 - delta) * truth, (1.0 - delta) * (1.0 - truth));
            [(delta, 0.0), (p, q), (q, p), (0.0, delta)]
        };
        for (one, two) in [((0.5, 0.01), (1.0, 0.02)), ((0.0, 0.3), (2.0, 0.1))] {
            let mut exact = 0.0;
            for (p, q) in channel(one.0, one.1) {
                for (r, s) in channel(two.0, two.1) {
                    exact += (p * r - f64::exp(one.0 + two.0) * q * s).max(0.0);
                }
            }
            let (sum, either) = (one.1 + two.1, 1.0 - (1.0 - one.1) * (1.0 - two.1));
            assert!(
                exact <= sum && (exact - either).abs() < 1e-12,
                "{exact} {sum}"
            );
        }
    }
}
