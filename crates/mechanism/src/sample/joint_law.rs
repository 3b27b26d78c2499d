//! The law of [`joint_path`](super::joint_path), against its definition: every proposal there is, with its probability and its odds;
//! every pair of small neighbours; and draws.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::Ratio;

use super::joint_path::{Choice, Field, JointPath, Odds, Proposal, below, wholes};
use super::joint_sums::JointSums;
use super::oracle;
use super::scaled::Scaled;
use crate::doubt;
use whit_audit::{enumerate, g_test};
use whit_testkit::SeededBits;

fn rational(numerator: u64, denominator: u64) -> RBig {
    RBig::from_parts(numerator.into(), denominator.into())
}

fn joint(rate: &RBig, gaps: &[(u64, u64)]) -> JointPath {
    let rate = Ratio::from_rbig(rate.clone()).expect("not negative");
    JointPath::new(&rate, gaps.iter().map(|g| rational(g.0, g.1)).collect())
}

fn field(sorted: &[i64], last: i64) -> Field<'_> {
    Field {
        sorted,
        first: 0,
        last,
    }
}

/// The oracle's exponential, precise relative to itself: of a part of `x`, and raised.
fn exp_neg(x: &RBig) -> RBig {
    let parts = usize::try_from(x.ceil()).expect("small") / 32 + 1;
    let part = oracle::exp_neg(&(x / RBig::from(parts)));
    (0..parts).fold(RBig::ONE, |product, _| product * &part)
}

/// All points in order, with how many orders they have if `counted`, and their errors by the definition.
fn tuples(path: &JointPath, field: Field, counted: bool) -> Vec<(Vec<i64>, u64, RBig)> {
    let levels = path.gaps.len() - 1;
    let mut all = vec![vec![]];
    for _ in 0..levels {
        let longer = |r: &Vec<i64>| {
            let from = r.last().copied().unwrap_or(field.first);
            let with = |next| [&r[..], &[next]].concat();
            (from..=field.last).map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    let factorial = |k: usize| (1..=k as u64).product::<u64>();
    let describe = |r: Vec<i64>| {
        let runs = r.chunk_by(|a, b| a == b).map(|run| factorial(run.len()));
        let orders = if counted {
            factorial(levels) / runs.product::<u64>()
        } else {
            1
        };
        let ends = r.iter().copied().chain([i64::MAX]);
        let starts = [i64::MIN].into_iter().chain(r.iter().copied());
        let mut error = RBig::ZERO;
        for ((start, end), gap) in starts.zip(ends).zip(&path.gaps) {
            let inside = field.sorted.iter().filter(|&&x| start < x && x <= end);
            let off = RBig::from(inside.count()) - gap * RBig::from(field.sorted.len());
            error += off.clone().max(-off);
        }
        (r, orders, error)
    };
    all.into_iter().map(describe).collect()
}

/// The law, by the definition.
fn law(path: &JointPath, field: Field, counted: bool) -> Vec<(Vec<i64>, RBig)> {
    let weigh = |(r, orders, error): (Vec<i64>, u64, RBig)| {
        let weight = RBig::from(orders) * exp_neg(&(&path.rate * error));
        (r, weight)
    };
    let all: Vec<_> = tuples(path, field, counted)
        .into_iter()
        .map(weigh)
        .collect();
    let total = all.iter().fold(RBig::ZERO, |sum, (_, w)| sum + w);
    all.into_iter().map(|(r, w)| (r, w / &total)).collect()
}

/// All proposals there are, with their probabilities.
fn proposals(sums: &JointSums) -> Vec<(Proposal, RBig)> {
    fn extend(
        sums: &JointSums,
        open: usize,
        cell: usize,
        so_far: &Proposal,
        p: RBig,
        all: &mut Vec<(Proposal, RBig)>,
    ) {
        if open == 0 {
            let mut path = so_far.path.clone();
            path.reverse();
            all.push((
                Proposal {
                    path,
                    choices: so_far.choices.clone(),
                },
                p,
            ));
            return;
        }
        let cells: Vec<Scaled> = sums.arrivals(open, cell).collect();
        for (back, choice) in options(&cells) {
            let cell = cell - 1 - back;
            let p = &p * choice.probability();
            for (more, run) in options(&sums.runs(open - 1, cell)) {
                let p = &p * run.probability();
                let more = more + 1;
                let path = [&so_far.path[..], &vec![cell; more]].concat();
                let choices = [&so_far.choices[..], &[choice.clone(), run]].concat();
                extend(sums, open - more, cell, &Proposal { path, choices }, p, all);
            }
        }
    }
    let mut all = vec![];
    let nothing = Proposal {
        path: vec![],
        choices: vec![],
    };
    extend(
        sums,
        sums.left.len(),
        sums.left[0].len(),
        &nothing,
        RBig::ONE,
        &mut all,
    );
    all
}

/// All that could be chosen.
fn options(weights: &[Scaled]) -> Vec<(usize, Choice)> {
    let (wholes, unit) = wholes(weights);
    let out_of = wholes.iter().map(|&q| u128::from(q)).sum();
    let choice = |taken| Choice {
        taken,
        out_of,
        unit,
    };
    let all = wholes.into_iter().map(choice).enumerate();
    all.filter(|(_, choice)| choice.taken > 0).collect()
}

impl Choice {
    fn probability(&self) -> RBig {
        RBig::from(self.taken) / RBig::from(self.out_of)
    }
}

/// The law of the sampler, computed from all proposals and their odds, is the definition's; no odds are above one, and all
/// but `close` of the proposals are accepted.
fn check(path: &JointPath, field: Field, close: f64) {
    let sums = JointSums::new(&path.rate, &path.gaps, field);
    let cell = |r: &i64| field.sorted.iter().filter(|&&x| x <= *r).count();
    let mut expected = std::collections::BTreeMap::new();
    for (r, p) in law(path, field, true) {
        let cells: Vec<usize> = r.iter().map(cell).collect();
        *expected.entry(cells).or_insert(RBig::ZERO) += p;
    }
    let all = proposals(&sums);
    let (mut ratio, mut accepted) = (None, RBig::ZERO);
    let tiny = rational(1, 1 << 60);
    for (proposal, probability) in &all {
        let (low, high, by) = path.odds(&sums, proposal).enclose(100);
        assert!(high <= by && high >= low, "{:?}", field.sorted);
        let low = RBig::from(low) / RBig::from(by);
        let expected = expected.remove(&proposal.path).expect("it has points");
        // Proposed and accepted, over what is expected: the same for all.
        let found = probability * low;
        accepted += &found;
        let found = found / expected;
        let ratio = ratio.get_or_insert_with(|| found.clone());
        let off = &found / &*ratio - RBig::ONE;
        assert!(off.clone().max(-off) < tiny, "{:?}", proposal.path);
    }
    assert!(expected.is_empty(), "{expected:?} can never be");
    let sum = all.iter().fold(RBig::ZERO, |sum, (_, p)| sum + p);
    assert_eq!(sum, RBig::ONE);
    assert!(accepted.to_f64().value() >= 1.0 - close, "{accepted}");
}

const GAPS: [&[(u64, u64)]; 6] = [
    &[(1, 2), (1, 2)],
    &[(1, 4), (1, 2), (1, 4)],
    &[(1, 10), (1, 3), (17, 30)],
    &[(0, 1), (1, 7), (6, 7)],
    &[(1, 3), (2, 3), (0, 1)],
    &[(1, 4), (1, 4), (1, 4), (1, 4)],
];

/// All sets of up to three values on five points, ties included.
#[test]
fn the_law_is_the_definition() {
    for code in (0..6 * 6 * 6).filter(|code| code % 6 <= code / 6 % 6 && code / 6 % 6 <= code / 36)
    {
        let digits = [code % 6, code / 6 % 6, code / 36].map(|digit| digit - 1);
        let sorted: Vec<i64> = digits.into_iter().filter(|&x| x >= 0).collect();
        for (i, gaps) in GAPS.into_iter().enumerate() {
            if (code as usize + i).is_multiple_of(2) {
                check(&joint(&rational(2, 3), gaps), field(&sorted, 4), 1e-4);
            }
        }
    }
}

/// More values, flat and steep rates, and rates at which nothing that is computed resembles a float: a path of equal values
/// is worth `exp(-2500)`.
#[test]
fn the_law_is_the_definition_at_all_rates() {
    let clumped = [3; 10];
    let spread = [0, 1, 1, 2, 4, 5, 5, 5, 7, 8];
    for sorted in [clumped, spread] {
        for (numerator, denominator) in [(0, 1), (1, 1 << 50), (1, 10), (3, 2), (17, 1)] {
            for gaps in [GAPS[1], GAPS[2], GAPS[5]] {
                let path = joint(&rational(numerator, denominator), gaps);
                check(&path, field(&sorted, 8), 1e-4);
            }
        }
    }
}

#[test]
fn many_equal_values_are_no_trouble() {
    let mut bits = SeededBits::new(561);
    let gaps: Vec<(u64, u64)> = vec![(1, 10); 10];
    let path = joint(&RBig::from(2000), &gaps);
    assert_eq!(path.rate, RBig::from(1024), "no more than that is used");
    let (equal, two) = (vec![7; 3000], [[7; 1500], [14; 1500]].concat());
    let mut below = 0;
    for _ in 0..40 {
        let points = path.choose(field(&equal, 20), &mut bits);
        assert!(points.is_sorted() && points.iter().all(|r| (0..=20).contains(r)));
        below += points.iter().filter(|&&r| r < 7).count();
        // Two gaps have half of the values each, and not one all of them: that is off by 600 more.
        let points = path.choose(field(&two, 20), &mut bits);
        assert!(points.iter().any(|r| (7..14).contains(r)), "{points:?}");
    }
    // One gap has them all, and it makes no difference which: these are uniform points, sorted. A third of 360, by five deviations.
    assert!((75..165).contains(&below), "{below}");
    // Wide ranges, few values, none.
    let far = 1 << 61;
    for sorted in [vec![], vec![0], vec![far], vec![0, far], vec![far; 40]] {
        let points = path.choose(field(&sorted, far), &mut bits);
        assert!(points.is_sorted() && points[0] >= 0 && points[8] <= far);
    }
    let one_point = path.choose(field(&[0, 0], 0), &mut bits);
    assert_eq!(one_point, [0; 9]);
}

/// The most that runs left out of the table may weigh on this path, in units of `2^-62` of what they are missing from: all that are below
/// `2^-16` of it.
fn left_out(sums: &JointSums, path: &[usize]) -> u128 {
    let mut open = path.len();
    let mut units = 0;
    for run in path.chunk_by(|a, b| a == b).rev() {
        let total = sums.left[open - 1][run[0]].bits();
        let below = |term: &Scaled| u32::try_from(total - term.bits()).unwrap_or(0);
        let terms = sums.runs(open - 1, run[0]);
        let small = terms.iter().filter(|term| !term.is_zero()).map(below);
        let small = small.filter(|&below| below >= 16);
        units += small
            .map(|below| 1 << 63_u32.saturating_sub(below))
            .sum::<u128>();
        open -= run.len();
    }
    units
}

/// Step 3 of the proof, for many values: `p(1 + σ)` is above one by at most `14n + 14m + 37` units for each point, and what runs that were
/// left out may weigh; with the `σ` of the text.
#[test]
fn odds_are_as_close_to_one_as_proven() {
    let mut bits = SeededBits::new(doubt::seed(566));
    let unit = RBig::from_parts(1.into(), UBig::ONE << 62);
    let (mut sharp, mut all) = (0, 0);
    for count in [700, 2000] {
        let mut sorted: Vec<i64> = (0..count).map(|_| bits.below(1 << 40) as i64).collect();
        sorted.sort_unstable();
        for (levels, rate) in [
            (1, rational(1, 4)),
            (3, rational(1, 1000)),
            (3, rational(1, 4)),
            (9, rational(1, 100)),
            (9, rational(10, 1)),
        ] {
            let path = joint(&rate, &vec![(1, levels + 1); levels as usize + 1]);
            let sums = JointSums::new(&path.rate, &path.gaps, field(&sorted, (1 << 40) - 1));
            for _ in 0..20 {
                let proposal = Proposal::draw(&sums, &mut bits);
                let (_, high, by) = path.odds(&sums, &proposal).enclose(100);
                assert!(high <= by, "a probability");
                let sigma = RBig::from(16 * (levels + 1) * (count + levels + (1 << 42))) * &unit;
                let above = RBig::from(high) / RBig::from(by) * (RBig::ONE + sigma) - RBig::ONE;
                let proven = u128::from(levels * (14 * count + 14 * levels + 37));
                let left_out = left_out(&sums, &proposal.path);
                assert!(
                    above <= RBig::from(proven + left_out) * &unit,
                    "{count} {levels} {rate}: {}",
                    (above / unit).to_f64().value()
                );
                sharp += u32::from(left_out < proven);
                all += 1;
            }
        }
    }
    assert!(2 * sharp > all, "{sharp} of {all}");
}

#[test]
fn distribution() {
    let sorted = [0, 2, 2, 3];
    let field = field(&sorted, 4);
    let path = joint(&rational(1, 3), GAPS[5]);
    let mut bits = SeededBits::new(doubt::seed(562));
    let all = law(&path, field, true);
    let mut counts = vec![0; all.len()];
    for _ in 0..40_000 {
        let points = path.choose(field, &mut bits);
        counts[all.iter().position(|(r, _)| *r == points).expect("a tuple")] += 1;
    }
    let fit = |path: &JointPath, counted: bool| {
        let law = law(path, field, counted);
        let p: Vec<f64> = law.iter().map(|(_, p)| p.to_f64().value()).collect();
        g_test(&counts, &p).expect("probabilities").p_value
    };
    let honest = fit(&path, true);
    assert!(honest >= doubt::ALPHA, "p = {honest:e}");
    let off = fit(&joint(&rational(2, 5), GAPS[5]), true);
    assert!(
        off < doubt::ALPHA,
        "a rate that is 20% off is seen: {off:e}"
    );
    let multisets = fit(&path, false);
    assert!(
        multisets < doubt::ALPHA,
        "and so is another measure: {multisets:e}"
    );
}

/// The range of `ln(P/Q)` over all outputs, on all neighbours of up to three values on four points: the largest.
fn largest_range(gaps: &[(u64, u64)], rate: &RBig, replace: bool) -> f64 {
    let path = joint(rate, gaps);
    let mut sets = vec![vec![]];
    for _ in 0..3 {
        let with = |set: &Vec<i64>| {
            (0..4)
                .map(|x| [&set[..], &[x]].concat())
                .collect::<Vec<_>>()
        };
        sets.extend(sets.clone().iter().flat_map(with));
    }
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets.sort();
    sets.dedup();
    let laws: Vec<Vec<f64>> = sets
        .iter()
        .map(|set| {
            let law = law(&path, field(set, 3), true);
            law.iter().map(|(_, p)| p.to_f64().value().ln()).collect()
        })
        .collect();
    let without = |set: &[i64], i: usize| [&set[..i], &set[i + 1..]].concat();
    let neighbours = |a: &[i64], b: &[i64]| {
        let mut fewer = (0..a.len()).map(|i| without(a, i));
        if replace {
            // A row that is no number may come or go as well.
            fewer.any(|rest| rest == b || (0..b.len()).any(|j| without(b, j) == rest))
        } else {
            fewer.any(|rest| rest == b)
        }
    };
    let mut largest = 0.0_f64;
    for (a, one) in sets.iter().zip(&laws) {
        for (b, other) in sets.iter().zip(&laws) {
            if neighbours(a, b) {
                let losses = one.iter().zip(other).map(|(p, q)| p - q);
                let (low, high) = losses.fold((f64::MAX, f64::MIN), |(low, high), loss| {
                    (low.min(loss), high.max(loss))
                });
                largest = largest.max(high - low);
            }
        }
    }
    largest
}

/// At the rate `ε/(2Δ)` the range is at most `ε`, on every pair; and with half the sensitivity it is not.
#[test]
fn bounded_range_on_all_small_neighbours() {
    for gaps in &GAPS[..5] {
        let smallest = gaps
            .iter()
            .map(|g| rational(g.0, g.1))
            .min()
            .expect("a gap");
        for replace in [false, true] {
            let sensitivity = match replace {
                true => RBig::from(2),
                false => RBig::from(2) * (RBig::ONE - &smallest),
            };
            let rate = |of: &RBig| RBig::ONE / (RBig::from(2) * of);
            let range = largest_range(gaps, &rate(&sensitivity), replace);
            assert!(range <= 1.0 + 1e-9 && range > 0.55, "{gaps:?}: {range}");
            let half = sensitivity / RBig::from(2);
            assert!(largest_range(gaps, &rate(&half), replace) > 1.1, "{gaps:?}");
        }
    }
}

/// The law of what is released: values are points of a grid, each of them two points here, and a row has one of two numbers.
fn averaged(path: &JointPath, rows: &[i64], last: i64) -> Vec<f64> {
    let mut all = std::collections::BTreeMap::new();
    for numbers in 0..1_i64 << rows.len() {
        let numbered = rows
            .iter()
            .enumerate()
            .map(|(i, x)| 2 * x + (numbers >> i & 1));
        let mut sorted: Vec<i64> = numbered.collect();
        sorted.sort_unstable();
        for (r, p) in law(path, field(&sorted, 2 * last + 1), true) {
            let released: Vec<i64> = r.into_iter().map(|r| r >> 1).collect();
            *all.entry(released).or_insert(0.0) += p.to_f64().value();
        }
    }
    let count = f64::from(1_u32 << rows.len());
    all.into_values().map(|p| p / count).collect()
}

/// `ln E_Q (P/Q)^α / (α - 1)`.
fn renyi(p: &[f64], q: &[f64], order: f64) -> f64 {
    let term = |(p, q): (&f64, &f64)| q * (p / q).powf(order);
    p.iter().zip(q).map(term).sum::<f64>().ln() / (order - 1.0)
}

/// An average over the numbers that order ties need not have the range that it has for each of them, here 1.5% more; but it is
/// `ε`-DP and `ε²/8`-zCDP all the same. With half the sensitivity it is neither.
#[test]
fn averages_keep_their_price_but_not_their_range() {
    let gaps = GAPS[1];
    let orders = [1.01, 1.5, 2.0, 4.0, 16.0, 64.0];
    let rows: [[&[i64]; 2]; 2] = [[&[0, 1, 2, 1], &[1, 2, 1, 3]], [&[0, 1, 2, 1], &[1, 2, 1]]];
    for ([one, other], sensitivity) in rows.into_iter().zip([rational(2, 1), rational(3, 2)]) {
        // The loss, the range, and the largest Rényi divergence for its order.
        let measured = |epsilon: u64| {
            let path = joint(
                &(RBig::from(epsilon) / (RBig::from(2) * &sensitivity)),
                gaps,
            );
            let (p, q) = (averaged(&path, one, 3), averaged(&path, other, 3));
            let losses = p.iter().zip(&q).map(|(p, q)| (p / q).ln());
            let (low, high) = losses.fold((f64::MAX, f64::MIN), |(low, high), loss| {
                (low.min(loss), high.max(loss))
            });
            let rho = |order: &f64| renyi(&p, &q, *order).max(renyi(&q, &p, *order)) / order;
            let rho = orders.iter().map(rho).fold(0.0, f64::max);
            (high.max(-low), high - low, rho)
        };
        for epsilon in [1_u64, 5, 8] {
            let (loss, range, rho) = measured(epsilon);
            let e = epsilon as f64;
            assert!(loss <= e && rho <= e * e / 8.0, "{epsilon}: {loss} {rho}");
            let wider = one.len() == other.len() && epsilon > 1;
            assert_eq!(range > e, wider, "{epsilon}: {range}");
        }
        let (_, range, _) = measured(8);
        assert!(range < 8.13 && range > 7.5, "{range}");
        let (loss, _, rho) = measured(2);
        assert!(loss > 1.0 && rho > 0.125, "at one: {loss} {rho}");
    }
}

#[test]
fn numbers_below_and_coins() {
    for bound in [1, 2, 3, 7, 12] {
        let found = enumerate::<1, _>(12, |tape| below(bound, tape));
        let each = RBig::ONE / RBig::from(bound);
        let range = |&x: &u128| match x < bound {
            true => (each.clone(), each.clone()),
            false => (RBig::ZERO, RBig::ZERO),
        };
        assert!(found.violations(range).is_empty(), "{bound}");
    }
    let mut bits = SeededBits::new(565);
    let bound = 5 << 62;
    let draws: Vec<u128> = (0..1000).map(|_| below(bound, &mut bits)).collect();
    assert!(draws.iter().all(|&x| x < bound));
    assert!((150..250).contains(&draws.iter().filter(|&&x| x >= 1 << 64).count()));
    // 3/4 · 2^8 · exp(-6), by every tape.
    let odds = Odds {
        x: RBig::from(6),
        numerator: UBig::from(3_u32),
        denominator: UBig::from(4_u32),
        unit: -8,
    };
    let found = enumerate::<1, _>(14, |tape| odds.heads(tape));
    let p = RBig::from(192) * oracle::exp_neg(&RBig::from(6));
    let range = |heads: &bool| {
        let p = if *heads { p.clone() } else { RBig::ONE - &p };
        (
            &p - oracle::slack() * RBig::from(512),
            p + oracle::slack() * RBig::from(512),
        )
    };
    assert!(found.violations(range).is_empty() && found.unresolved() <= 2);
}
