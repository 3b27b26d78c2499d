//! Sensitivities are what all patterns and all contributions come to, and errors are as the documents say.

use super::*;
use whit_testkit::SeededBits;

fn banded(bins: u64, band: u64) -> Cyclic {
    Cyclic::new(bins, FactorDraft::Banded { band }, 1).expect("in range")
}

fn tree(bins: u64) -> Cyclic {
    Cyclic::new(bins, FactorDraft::Tree, 1).expect("in range")
}

/// The encoder as a matrix, by its definition.
fn rows(cyclic: &Cyclic, steps: usize) -> Vec<Vec<f64>> {
    match &cyclic.factor {
        Factor::Banded(coefficients) => {
            let entry = |t: usize, s: usize| match t.checked_sub(s) {
                Some(lag) => coefficients.get(lag).map_or(0.0, |&c| f64::from(c) / 256.0),
                None => 0.0,
            };
            let row = |t| (0..steps).map(|s| entry(t, s)).collect();
            (0..steps).map(row).collect()
        }
        Factor::Tree => {
            let mut rows = Vec::new();
            let mut width = 1;
            while width <= steps {
                for node in 0..steps / width {
                    let own = node * width..(node + 1) * width;
                    let entry = |s| f64::from(u8::from(own.contains(&s)));
                    rows.push((0..steps).map(entry).collect());
                }
                width *= 2;
            }
            rows
        }
    }
}

/// `‖C v‖²` of contributions in the plane, to the steps of one bin.
fn moved(rows: &[Vec<f64>], turns: &[usize], contributions: &[[f64; 2]]) -> f64 {
    let along = |row: &Vec<f64>, axis: usize| -> f64 {
        let turns = turns.iter().zip(contributions);
        turns.map(|(&s, v)| row[s] * v[axis]).sum()
    };
    let square = |row| along(row, 0).powi(2) + along(row, 1).powi(2);
    rows.iter().map(square).sum()
}

/// Every bin, every choice of signs, and directions at random: none moves the releases further than is claimed, and some as far.
#[test]
fn no_pattern_and_no_contributions_exceed_the_sensitivity() {
    let mut bits = SeededBits::new(5);
    let mut direction = || {
        let angle = bits.below(1 << 20) as f64 / f64::from(1 << 20) * std::f64::consts::TAU;
        [angle.cos(), angle.sin()]
    };
    for steps in [1, 2, 3, 7, 8, 11] {
        for bins in [1, 2, 3, 5, 20] {
            let bands = [1, 2, 3, 4, 7, 12].map(|band| banded(bins, band));
            for cyclic in bands.into_iter().chain([tree(bins)]) {
                let claimed = cyclic.sensitivity_square(steps as u64).to_f64_up();
                let rows = rows(&cyclic, steps);
                let mut largest = 0.0_f64;
                for bin in 0..bins as usize {
                    let turns: Vec<usize> = (bin..steps).step_by(bins as usize).collect();
                    assert!(turns.len() as u64 <= cyclic.participations(steps as u64));
                    for signs in 0..1_u32 << turns.len() {
                        let sign = |turn| if signs >> turn & 1 == 0 { 1.0 } else { -1.0 };
                        let signed: Vec<_> = (0..turns.len()).map(|t| [sign(t), 0.0]).collect();
                        largest = largest.max(moved(&rows, &turns, &signed));
                    }
                    for _ in 0..20 {
                        let v: Vec<_> = turns.iter().map(|_| direction()).collect();
                        largest = largest.max(moved(&rows, &turns, &v));
                    }
                }
                assert!(
                    (largest - claimed).abs() < 1e-9 * claimed,
                    "{cyclic:?}, {steps} steps: {largest} and not {claimed}"
                );
            }
        }
    }
}

/// The closed form of long runs is the sum of its rows; where columns do not meet, it is that of their squares.
#[test]
fn long_runs_have_a_closed_form() {
    for (band, bins, steps) in [
        (64, 7, 1000),
        (64, 100, 1000),
        (5, 5, 23),
        (1, 9, 40),
        (32, 31, 20),
    ] {
        let cyclic = banded(bins, band);
        let Factor::Banded(c) = &cyclic.factor else {
            panic!("banded")
        };
        let row = |t: u64| -> u128 {
            let lags = (t % bins..=t).step_by(bins as usize);
            let own = lags.filter_map(|lag| c.get(lag as usize));
            own.map(|&c| u128::from(c)).sum()
        };
        let direct: u128 = (0..steps).map(|t| row(t).pow(2)).sum();
        assert_eq!(banded_square(c, bins, steps), direct, "{band} {bins}");
    }
    let column: u128 = coefficients(16).iter().map(|&c| u128::from(c).pow(2)).sum();
    assert_eq!(banded_square(&coefficients(16), 16, 16 << 30), column << 30);
    assert_eq!(tree(256).sensitivity_square(256), Ratio::from(9_u64));
    // Everybody in each step: 8 leaves, 4 pairs, 2 fours and the root.
    assert_eq!(
        tree(1).sensitivity_square(8),
        Ratio::from(8_u64 + 16 + 32 + 64)
    );
}

/// What a run costs that is taken up again after whole epochs, however often.
#[test]
fn beginning_again_is_paid_for() {
    for (band, bins) in [(1, 4), (4, 4), (9, 4), (30, 4), (5, 1), (3, 10)] {
        let cyclic = banded(bins, band);
        let cost = |steps: u64| cyclic.sensitivity_square(steps);
        for steps in [13, 20, 40] {
            for first in (0..=steps).step_by(bins as usize) {
                assert!(&cost(first) + &cost(steps - first) <= cost(steps));
            }
        }
    }
    // Of trees this is not claimed: they are kept whole.
    assert_eq!((tree(4).epoch(40), banded(4, 9).epoch(40)), (40, 4));
}

#[test]
fn coefficients_are_those_of_the_square_root() {
    assert_eq!(coefficients(6), [256, 128, 96, 80, 70, 63]);
    let all = coefficients(BAND_MAX);
    assert_eq!(all.last(), Some(&5));
    assert!(all.windows(2).all(|pair| pair[0] >= pair[1]));
    // Its square is that of prefix sums, 1 + y + y² + …, as far as it goes.
    let c: Vec<f64> = all.iter().map(|&c| f64::from(c) / 256.0).collect();
    for lag in 0..64 {
        let product: f64 = (0..=lag).map(|j| c[j] * c[lag - j]).sum();
        assert!((product - 1.0).abs() < 0.02, "{lag}: {product}");
    }
}

/// The mean square error of prefix sums for a Gaussian mechanism of `μ = 1`.
fn error(cyclic: &Cyclic, steps: u64) -> f64 {
    let spread: f64 = match &cyclic.factor {
        Factor::Banded(coefficients) => {
            let c: Vec<f64> = coefficients.iter().map(|&c| f64::from(c) / 256.0).collect();
            let (mut inverse, mut prefix, mut squares) = (Vec::new(), 0.0, 0.0);
            let mut all = 0.0;
            for t in 0..steps as usize {
                let first = f64::from(u8::from(t == 0));
                let before: f64 = (1..c.len().min(t + 1)).map(|j| c[j] * inverse[t - j]).sum();
                inverse.push(first - before);
                prefix += first - before;
                squares += prefix * prefix;
                all += squares;
            }
            all
        }
        Factor::Tree => {
            let node = |level: u32| f64::from(1 << level) / f64::from((2 << level) - 1);
            let levels = |t: u64| (0..32).filter(move |level| t >> level & 1 == 1);
            (1..=steps).flat_map(levels).map(node).sum()
        }
    };
    cyclic.sensitivity_square(steps).to_f64_up() * spread / steps as f64
}

#[test]
fn correlated_noise_cancels_in_prefix_sums() {
    let table = [
        (256, [128.5, 21.6, 24.1, 10.1, 7.1]),
        (32, [1028.0, 384.0, 193.0, 80.7, 110.7]),
        (16, [2056.0, 1345.0, 385.0, 238.0, 378.0]),
    ];
    for (bins, expected) in table {
        let kinds = [
            banded(bins, 1),
            tree(bins),
            banded(bins, 8),
            banded(bins, 32),
            banded(bins, 128),
        ];
        for (cyclic, expected) in kinds.iter().zip(expected) {
            let found = error(cyclic, 256);
            assert!(
                (found / expected - 1.0).abs() < 0.01,
                "{bins}: {found} for {expected}"
            );
        }
    }
}

#[test]
fn bands_and_trees_out_of_range_are_refused() {
    for band in [0, 1025, u64::MAX] {
        assert!(Cyclic::new(3, FactorDraft::Banded { band }, 10).is_err());
    }
    assert!(Cyclic::new(3, FactorDraft::Tree, 1 << 20).is_ok());
    assert!(Cyclic::new(3, FactorDraft::Tree, (1 << 20) + 1).is_err());
}
