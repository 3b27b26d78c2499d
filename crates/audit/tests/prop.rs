//! What must hold for every input.

use proptest::prelude::*;
use whit_audit::{Alpha, Cells, Claim, Enumeration, HalfLine, Tape};
use whit_audit::{
    clopper_pearson_lower, clopper_pearson_upper, enumerate, falsify_outputs, g_test,
};
use whit_core::{Bits, Epsilon};

fn alpha() -> impl Strategy<Value = Alpha> {
    (-12.0_f64..-0.31).prop_map(|exponent| Alpha::new(10_f64.powf(exponent)).expect("in range"))
}

fn tally() -> impl Strategy<Value = (u64, u64)> {
    (1_u64..100_000).prop_flat_map(|trials| (0..=trials, Just(trials)))
}

/// Looks its output up in a table, by four bits at a time; a table entry may also send it on to the next four.
fn by_table(table: [u8; 16]) -> Enumeration<u8> {
    enumerate::<4, u8>(8, move |tape: &mut Tape<4>| {
        loop {
            let entry = table[tape.word() as usize];
            if entry < 6 {
                return entry;
            }
        }
    })
}

/// At least one entry must be an output, or no tape ever ends.
fn table() -> impl Strategy<Value = [u8; 16]> {
    any::<[u8; 16]>().prop_map(|bytes| {
        let mut table = bytes.map(|byte| byte % 8);
        table[0] %= 6;
        table
    })
}

proptest! {
    #[test]
    fn bounds_enclose_the_estimate((successes, trials) in tally(), alpha in alpha()) {
        let estimate = successes as f64 / trials as f64;
        let lower = clopper_pearson_lower(successes, trials, alpha).expect("valid");
        let upper = clopper_pearson_upper(successes, trials, alpha).expect("valid");
        prop_assert!(0.0 <= lower && lower <= estimate && estimate <= upper && upper <= 1.0);
    }

    #[test]
    fn bounds_rise_with_the_successes((successes, trials) in tally(), alpha in alpha()) {
        prop_assume!(successes < trials);
        let lower = |successes| clopper_pearson_lower(successes, trials, alpha).expect("valid");
        let upper = |successes| clopper_pearson_upper(successes, trials, alpha).expect("valid");
        prop_assert!(lower(successes) < lower(successes + 1));
        prop_assert!(upper(successes) < upper(successes + 1));
    }

    #[test]
    fn more_confidence_means_wider_bounds((successes, trials) in tally(), alpha in alpha()) {
        let half = alpha.split(2).expect("in range");
        let lower = |alpha| clopper_pearson_lower(successes, trials, alpha).expect("valid");
        let upper = |alpha| clopper_pearson_upper(successes, trials, alpha).expect("valid");
        prop_assert!(lower(half) <= lower(alpha) && upper(half) >= upper(alpha));
    }

    #[test]
    fn masses_sum_to_one(table in table()) {
        let enumeration = by_table(table);
        prop_assert_eq!(enumeration.masses().values().sum::<u64>() + enumeration.unresolved(), 256);
        let onward = table.iter().filter(|entry| **entry >= 6).count() as u64;
        prop_assert_eq!(enumeration.unresolved(), onward * onward);
    }

    #[test]
    fn divergences_are_ordered(one in table(), other in table(), epsilon in 0.0_f64..4.0) {
        let (one, other) = (by_table(one), by_table(other));
        let at = |epsilon| Epsilon::new(epsilon).expect("not negative");
        let (lower, upper) = (one.hockey_stick_lower(&other, at(epsilon)), one.hockey_stick_upper(&other, at(epsilon)));
        prop_assert!(0.0 <= lower && lower <= upper && upper <= 1.0);
        prop_assert!(one.hockey_stick_upper(&other, at(epsilon + 0.5)) <= upper);
        prop_assert!(one.hockey_stick_lower(&other, at(epsilon + 0.5)) <= lower);
        // Where pure privacy is refuted, the divergence just below is positive in one direction.
        let epsilon_lower = one.max_log_ratio_lower(&other).min(5.0);
        if epsilon_lower > 0.01 {
            let below = at(epsilon_lower - 0.005);
            prop_assert!(one.hockey_stick_lower(&other, below) > 0.0 || other.hockey_stick_lower(&one, below) > 0.0);
        }
    }

    #[test]
    fn nobody_differs_from_himself(table in table(), epsilon in 0.0_f64..4.0) {
        let enumeration = by_table(table);
        prop_assert_eq!(enumeration.max_log_ratio_lower(&enumeration), 0.0);
        let epsilon = Epsilon::new(epsilon).expect("not negative");
        prop_assert_eq!(enumeration.hockey_stick_lower(&enumeration, epsilon), 0.0);
    }

    #[test]
    fn splitting_a_cell_by_name_only_changes_no_probability(counts in prop::collection::vec(0_u64..500, 2..20)) {
        // The rest cell is a cell like any other: naming it or leaving it over gives the same test.
        let p = 1.0 / counts.len() as f64;
        let named = g_test(&counts, &vec![p; counts.len()]).expect("valid");
        let (last, others) = counts.split_last().expect("not empty");
        let left_over = Cells::new(others.to_vec(), *last).g_test(&vec![p; others.len()]).expect("valid");
        prop_assert!((named.statistic - left_over.statistic).abs() <= 1e-9 * (1.0 + named.statistic));
        prop_assert!((0.0..=1.0).contains(&named.p_value));
    }

    #[test]
    fn equal_worlds_are_never_convicted(outputs in prop::collection::vec(-50_i128..50, 0..200), threshold in -50_i128..50) {
        let claim = Claim::pure(Epsilon::ZERO);
        let events = [HalfLine::AtLeast(threshold), HalfLine::AtMost(threshold)];
        let alpha = Alpha::new(0.5).expect("in range");
        let verdict = falsify_outputs(claim, &outputs, &outputs, &events, alpha).expect("valid");
        prop_assert!(!verdict.convicted && verdict.epsilon_lower == 0.0);
    }
}
