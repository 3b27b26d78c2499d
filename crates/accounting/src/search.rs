//! Bisection whose answer has itself been tested.

/// Bisects a test that first fails and then passes, between `fails` and `passes`, for the first place that passes.
///
/// Whatever the test does in between, the answer is `passes` or a place where the test was seen to pass; so a test that
/// is not monotone in its last digits costs sharpness and never soundness. At most 64 steps.
pub(crate) fn smallest_passing(fails: u64, passes: u64, mut test: impl FnMut(u64) -> bool) -> u64 {
    let (mut fails, mut passes) = (fails, passes);
    while passes > fails && passes - fails > 1 {
        let middle = fails.midpoint(passes);
        if test(middle) {
            passes = middle;
        } else {
            fails = middle;
        }
    }
    passes
}

/// The same over floats that are not negative. Their bits have the order of their values, so that 64 steps search all
/// magnitudes down to the last digit.
pub(crate) fn smallest_passing_f64(
    fails: f64,
    passes: f64,
    mut test: impl FnMut(f64) -> bool,
) -> f64 {
    let bits = smallest_passing(fails.to_bits(), passes.to_bits(), |bits| {
        test(f64::from_bits(bits))
    });
    f64::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_place_that_passes() {
        for first in [1, 2, 63, 64, 1 << 40, u64::MAX] {
            assert_eq!(smallest_passing(0, u64::MAX, |place| place >= first), first);
        }
    }

    #[test]
    fn floats_are_found_to_the_last_digit() {
        for first in [5e-324, 1e-300, 0.1, 1.0, 1e300, f64::MAX] {
            assert_eq!(
                smallest_passing_f64(0.0, f64::MAX, |value| value >= first),
                first
            );
        }
    }

    #[test]
    fn an_empty_bracket_answers_its_upper_end() {
        assert_eq!(
            smallest_passing(7, 7, |_| unreachable!("nothing lies between")),
            7
        );
    }
}
