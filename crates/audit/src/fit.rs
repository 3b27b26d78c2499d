//! Goodness of fit: do these draws follow this distribution?
//!
//! **Definition.** With counts `O_i`, expected counts `E_i = n p_i` and `k` cells, `G = 2 Σ O_i ln(O_i/E_i)`, twice
//!   the logarithm of the likelihood ratio. If the draws follow `p`, then `G` is nearly chi-squared with `k - 1`
//!   degrees of freedom \[Wil38\]. Its mean exceeds `k - 1` by `(Σ 1/p_i - 1)/6n`; Williams' correction divides that
//!   out \[Wil76\], which matters for many small cells and for levels like `1e-6`.
//! **Pooling.** The approximation wants ten expected draws in every cell. Cells that expect fewer are pooled with
//!   each other, in the order given, until they expect enough; what remains at the end joins the last pool. Large
//!   cells stay alone, so that nothing rare can hide in them. The rule sees probabilities and `n` only: one that
//!   looked at the counts would change the distribution of `G`.
//! **What is rare in all.** If all small cells together expect fewer than ten draws, they join the smallest large
//!   cell, where they might hide. So their number is tested apart, against its exact binomial tail, and twice the
//!   smaller of the two p-values counts (union bound).
//! **What is impossible.** One draw from a cell of probability zero gives p-value zero.
//!
//! At a million draws this sees an error of one percent in a common probability; at ten million, a noise scale that
//! is off by 0.2 %. It needs to know the distribution: black boxes are for [`crate::falsify()`].

use statrs::function::gamma::gamma_ur;

use crate::binomial::{Coin, deviance, upper_tail};
use crate::{Error, Result};

/// A cell that expects less than this is pooled. Twice the customary five, since the levels used here are far out
/// in the tail.
const EXPECTED_MIN: f64 = 10.0;
/// Probabilities that sum to more than one by more than this are no distribution.
const SUM_SLACK: f64 = 1e-9;
/// A rest below this is the rounding of a sum that should be one, and means an impossible cell.
const REST_ROUNDING: f64 = 1e-14;

/// Counts of draws by cell, and of those that fell into none: the *rest*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    counts: Vec<u64>,
    rest: u64,
}

impl Cells {
    /// From counts made elsewhere.
    pub fn new(counts: Vec<u64>, rest: u64) -> Self {
        Self { counts, rest }
    }

    /// Counts draws that were already turned into the index of their cell. An index beyond the cells is the rest.
    pub fn tally(cells: usize, draws: impl IntoIterator<Item = usize>) -> Self {
        let mut tally = Self {
            counts: vec![0; cells],
            rest: 0,
        };
        for cell in draws {
            *tally.counts.get_mut(cell).unwrap_or(&mut tally.rest) += 1;
        }
        tally
    }

    /// Tests the counts against the probabilities of the cells. What these leave to one is the probability of the rest.
    pub fn g_test(&self, probabilities: &[f64]) -> Result<GTest> {
        test(&self.counts, self.rest, probabilities)
    }
}

/// Tests counts against probabilities, when every draw fell into a cell: the rest, if the probabilities leave one,
/// is empty.
pub fn g_test(observed: &[u64], probabilities: &[f64]) -> Result<GTest> {
    test(observed, 0, probabilities)
}

/// What a goodness-of-fit test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GTest {
    /// The corrected statistic. Infinite after an impossible draw.
    pub statistic: f64,
    /// Degrees of freedom: pools less one.
    pub degrees: u64,
    /// The probability that draws from the right distribution look at least this wrong.
    pub p_value: f64,
}

/// A cell, or several pooled ones.
#[derive(Clone, Copy, Default)]
struct Pool {
    observed: u64,
    probability: f64,
}

impl Pool {
    fn join(self, other: Self) -> Self {
        Self {
            observed: self.observed + other.observed,
            probability: self.probability + other.probability,
        }
    }
}

fn test(observed: &[u64], rest: u64, probabilities: &[f64]) -> Result<GTest> {
    if observed.len() != probabilities.len() {
        return Err(Error::CellsDiffer {
            observed: observed.len(),
            expected: probabilities.len(),
        });
    }
    let rest = Pool {
        observed: rest,
        probability: rest_probability(probabilities)?,
    };
    let cells = observed
        .iter()
        .zip(probabilities)
        .map(|(&observed, &probability)| Pool {
            observed,
            probability,
        });
    let (possible, impossible): (Vec<Pool>, Vec<Pool>) =
        cells.chain([rest]).partition(|cell| cell.probability > 0.0);
    let total = possible
        .iter()
        .chain(&impossible)
        .map(|cell| cell.observed)
        .sum();
    let (pools, rare) = pool(possible, total);
    let degrees = (pools.len() as u64).saturating_sub(1);
    if impossible.iter().any(|cell| cell.observed > 0) {
        return Ok(GTest {
            statistic: f64::INFINITY,
            degrees,
            p_value: 0.0,
        });
    }
    let statistic = statistic(&pools, total);
    let common_p_value = chi_squared_tail(statistic, degrees);
    let p_value = match rare {
        Some(rare) => {
            let rare_p_value = upper_tail(
                rare.observed,
                total,
                Coin::with_heads(rare.probability.min(1.0)),
            );
            (2.0 * common_p_value.min(rare_p_value)).min(1.0)
        }
        None => common_p_value,
    };
    Ok(GTest {
        statistic,
        degrees,
        p_value,
    })
}

/// One less the sum, with the rounding errors of the sum carried along (Kahan).
fn rest_probability(probabilities: &[f64]) -> Result<f64> {
    let (mut rest, mut carry) = (1.0, 0.0);
    for &probability in probabilities {
        if !(0.0..=1.0).contains(&probability) {
            return Err(Error::OutOfDomain {
                what: "probability",
                given: probability,
                domain: "a number from 0 to 1",
            });
        }
        let next = -probability - carry;
        let sum = rest + next;
        carry = (sum - rest) - next;
        rest = sum;
    }
    if rest < -SUM_SLACK {
        let domain = "numbers that sum to at most 1";
        return Err(Error::OutOfDomain {
            what: "sum of the probabilities",
            given: 1.0 - rest,
            domain,
        });
    }
    Ok(if rest < REST_ROUNDING { 0.0 } else { rest })
}

/// The pools, and the small cells by themselves if they had to join a large one.
fn pool(cells: Vec<Pool>, total: u64) -> (Vec<Pool>, Option<Pool>) {
    let is_large = |pool: &Pool| pool.probability * total as f64 >= EXPECTED_MIN;
    let (mut pools, small): (Vec<Pool>, Vec<Pool>) = cells.into_iter().partition(is_large);
    let large_pools = pools.len();
    let mut open = Pool::default();
    for cell in small {
        open = open.join(cell);
        if is_large(&open) {
            pools.push(std::mem::take(&mut open));
        }
    }
    if open.probability == 0.0 {
        return (pools, None);
    }
    if pools.len() > large_pools {
        let last = pools.len() - 1;
        pools[last] = pools[last].join(open);
        return (pools, None);
    }
    match pools
        .iter_mut()
        .min_by(|a, b| a.probability.total_cmp(&b.probability))
    {
        Some(smallest) => *smallest = smallest.join(open),
        None => pools.push(open),
    }
    (pools, Some(open))
}

/// Williams' corrected `G`. Each term is `O ln(O/E) + E - O >= 0`, which sums to the same, and does not cancel.
fn statistic(pools: &[Pool], total: u64) -> f64 {
    let total = total as f64;
    if pools.len() < 2 {
        return 0.0;
    }
    let g: f64 = pools
        .iter()
        .map(|pool| 2.0 * deviance(pool.observed as f64, total * pool.probability))
        .sum();
    let inverses: f64 = pools.iter().map(|pool| 1.0 / pool.probability).sum();
    let degrees = (pools.len() - 1) as f64;
    g / (1.0 + (inverses - 1.0) / (6.0 * total * degrees))
}

/// `Pr[χ² >= statistic]`: the regularised upper incomplete gamma function `Q(degrees/2, statistic/2)`.
fn chi_squared_tail(statistic: f64, degrees: u64) -> f64 {
    // The library's function is for positive arguments.
    if degrees == 0 || statistic <= 0.0 {
        return 1.0;
    }
    gamma_ur(degrees as f64 / 2.0, statistic / 2.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    /// Draws a cell by walking down the cumulative probabilities.
    fn draw(bits: &mut SeededBits, probabilities: &[f64]) -> usize {
        let mut left = (bits.word() >> 11) as f64 * 2_f64.powi(-53);
        for (cell, probability) in probabilities.iter().enumerate() {
            left -= probability;
            if left < 0.0 {
                return cell;
            }
        }
        probabilities.len()
    }

    fn simulate(seed: u64, draws: u64, truth: &[f64], claim: &[f64]) -> GTest {
        let mut bits = SeededBits::new(seed);
        let cells = Cells::tally(claim.len(), (0..draws).map(|_| draw(&mut bits, truth)));
        cells.g_test(claim).expect("valid")
    }

    /// The geometric distribution of ratio 1/2, cut off after `cells`.
    fn geometric(cells: i32) -> Vec<f64> {
        (1..=cells).map(|cell| 0.5_f64.powi(cell)).collect()
    }

    #[test]
    fn uniform_draws_pass() {
        let test = simulate(1, 1_000_000, &[0.1; 10], &[0.1; 10]);
        assert_eq!(test.degrees, 9);
        assert!(test.p_value > 1e-3, "{test:?}");
    }

    #[test]
    fn one_percent_of_bias_is_convicted() {
        let biased = [0.505, 0.495];
        assert!(simulate(2, 1_000_000, &biased, &[0.5; 2]).p_value < 1e-6);
        assert!(simulate(3, 1_000_000, &biased, &biased).p_value > 1e-3);
    }

    #[test]
    fn innocent_draws_fail_as_rarely_as_promised() {
        let probabilities = geometric(20);
        let runs = 2000;
        let alarms = (0..runs)
            .filter(|seed| simulate(*seed, 2000, &probabilities, &probabilities).p_value < 0.01)
            .count();
        // 20 are expected; fewer than 5 or more than 41 come less than once in ten thousand times.
        assert!((5..42).contains(&alarms), "{alarms} of {runs}");
    }

    #[test]
    fn statistic_is_not_too_large_when_cells_are_small() {
        // Ten draws in each of a hundred cells. The mean over the runs has a standard deviation of 0.31; without
        // Williams' correction it would be 1.7 above the degrees of freedom, and 1.5 % of the runs would fail at
        // one percent.
        let runs = 2000;
        let statistics =
            (0..runs).map(|seed| simulate(seed, 1000, &[0.01; 100], &[0.01; 100]).statistic);
        let mean = statistics.sum::<f64>() / runs as f64;
        assert!((mean - 99.0).abs() < 1.2, "{mean}");
    }

    /// Reference values: 30-digit arithmetic.
    #[test]
    fn p_values_are_right_far_into_the_tail() {
        let check = |statistic: f64, degrees: u64, expected: f64| {
            let tail = chi_squared_tail(statistic, degrees);
            assert!(
                (tail / expected - 1.0).abs() < 1e-9,
                "{statistic} {degrees}: {expected:e}, got {tail:e}"
            );
        };
        check(3.841, 1, 0.050_013_683_763_956_7);
        check(23.928_126_976_879_47, 1, 1.000_000_000_028_755_9e-6);
        check(50.0, 1, 1.537_459_794_428_035e-12);
        check(11.07, 5, 0.050_009_618_622_405_48);
        check(70.0, 5, 1.024_790_801_319_603e-13);
        check(150.0, 50, 6.315_223_256_933_987e-12);
        check(249.0, 99, 6.592_048_913_558_238e-15);
        check(1500.0, 1000, 1.045_464_038_597_966e-22);
        check(12_000.0, 10_000, 1.147_006_552_460_125e-40);
        check(9000.0, 10_000, 0.999_999_999_999_873);
        assert_eq!(
            (chi_squared_tail(0.0, 3), chi_squared_tail(5.0, 0)),
            (1.0, 1.0)
        );
        assert_eq!(chi_squared_tail(1e6, 3), 0.0);
    }

    #[test]
    fn statistic_has_its_closed_form() {
        let g = 2.0 * (60.0 * 1.2_f64.ln() + 40.0 * 0.8_f64.ln());
        let test = g_test(&[60, 40], &[0.5, 0.5]).expect("valid");
        assert!(
            (test.statistic - g / (1.0 + 3.0 / 600.0)).abs() < 1e-12,
            "{test:?}"
        );
        assert_eq!(g_test(&[50, 50], &[0.5, 0.5]).expect("valid").p_value, 1.0);
    }

    #[test]
    fn impossible_draws_convict() {
        assert_eq!(
            g_test(&[500, 500, 1], &[0.5, 0.5, 0.0])
                .expect("valid")
                .p_value,
            0.0
        );
        assert_eq!(
            Cells::new(vec![500, 500], 1)
                .g_test(&[0.5, 0.5])
                .expect("valid")
                .p_value,
            0.0
        );
        assert_eq!(
            Cells::new(vec![100; 10], 1)
                .g_test(&[0.1; 10])
                .expect("valid")
                .p_value,
            0.0
        );
        assert_eq!(
            g_test(&[500, 500, 0], &[0.5, 0.5, 0.0])
                .expect("valid")
                .p_value,
            1.0
        );
    }

    #[test]
    fn rare_draws_cannot_hide_among_common_ones() {
        // Three in a million where 1e-3 are expected; the common cells are perfect.
        let counts = Cells::new(vec![500_000, 499_997], 3);
        let test = counts.g_test(&[0.5, 0.5 - 1e-9]).expect("valid");
        assert!(test.p_value < 1e-9 && test.statistic < 1.0, "{test:?}");
        assert!(
            Cells::new(vec![500_000, 500_000], 0)
                .g_test(&[0.5, 0.5 - 1e-9])
                .expect("valid")
                .p_value
                == 1.0
        );
    }

    #[test]
    fn a_forgotten_rest_convicts() {
        let test = g_test(&[500, 250], &[0.5, 0.25]).expect("valid");
        assert!(test.degrees == 2 && test.p_value < 1e-12, "{test:?}");
    }

    #[test]
    fn pooling_does_not_look_at_the_counts() {
        let probabilities = geometric(40);
        let degrees = |counts: Vec<u64>| g_test(&counts, &probabilities).expect("valid").degrees;
        let mut lopsided = vec![0; 40];
        lopsided[39] = 1000;
        let mut even = vec![25; 40];
        assert_eq!(degrees(lopsided), degrees(even.clone()));
        // 500, 250, 125, 62.5, 31, 15.6 stand alone; 7.8, 3.9, ... expect 15.6 together and open one pool after two.
        assert_eq!(degrees(even.clone()), 6);
        even[0] += 1_000_000;
        assert!(degrees(even) > 6);
    }

    #[test]
    fn few_draws_prove_nothing() {
        assert_eq!(g_test(&[0, 0], &[0.5, 0.5]).expect("valid").p_value, 1.0);
        let test = g_test(&[3, 0], &[0.5, 0.5]).expect("valid");
        assert_eq!((test.degrees, test.p_value), (0, 1.0));
    }

    #[test]
    fn rejects_what_is_no_distribution() {
        for probabilities in [[0.5, 0.6], [-0.1, 0.5], [f64::NAN, 0.5], [2.0, 0.0]] {
            assert!(
                g_test(&[1, 1], &probabilities).is_err(),
                "{probabilities:?}"
            );
        }
        assert_eq!(
            g_test(&[1], &[0.5, 0.5]),
            Err(Error::CellsDiffer {
                observed: 1,
                expected: 2
            })
        );
    }
}
