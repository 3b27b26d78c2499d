//! Convolutions against direct sums.

use super::*;

/// Numbers in `[0, 1)` without a generator: multiples of the golden ratio.
fn masses(count: usize, seed: f64) -> Vec<f64> {
    let raw: Vec<f64> = (0..count)
        .map(|i| ((i as f64 + seed) * 0.618_033_988_749_894_9).fract())
        .collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|x| x / sum).collect()
}

fn convolve(a: &[f64], b: &[f64], size: usize) -> Vec<f64> {
    let mut found = vec![0.0; size];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            found[(i + j) % size] += x * y;
        }
    }
    found
}

fn power(masses: &[f64], count: u64, size: usize) -> Vec<f64> {
    (1..count).fold(convolve(masses, &[1.0], size), |found, _| {
        convolve(&found, masses, size)
    })
}

#[test]
fn agrees_with_direct_convolution_within_the_stated_error() {
    for size in [4, 8, 16, 32, 128, 512, 8192] {
        let (upper, lower) = (masses(13.min(size), 0.3), masses(17, 0.7));
        for count in [1, 2, 3, 7] {
            let factor = Factor {
                upper: &upper,
                lower: &lower,
                count,
            };
            let found = compose(&[factor], size);
            let sides = [
                (&found.upper, power(&upper, count, size), found.upper_error),
                (&found.lower, power(&lower, count, size), found.lower_error),
            ];
            for (values, truth, error) in sides {
                assert!(error < 1e-13, "{size} {count}: {error}");
                for (value, truth) in values.iter().zip(truth) {
                    // The direct sum errs by its own few units.
                    assert!((value - truth).abs() <= error + 1e-16, "{size} {count}");
                }
            }
        }
    }
}

/// Additions onto the circle round, too: here each loses all of what it adds.
#[test]
fn many_wraps_are_within_the_stated_error() {
    let tiny = 2.0_f64.powi(-54);
    for (size, wraps) in [(4, 100), (4, 10_000), (64, 1_000)] {
        let mut around = vec![0.0; size * (wraps + 1)];
        around[0] = 1.0;
        for wrap in 1..=wraps {
            around[wrap * size] = tiny;
        }
        let truth = [1.0 + wraps as f64 * tiny, 0.0];
        for count in [1, 3] {
            let factor = Factor {
                upper: &around,
                lower: &truth,
                count,
            };
            let found = compose(&[factor], size);
            let off = (found.upper[0] - found.lower[0]).abs();
            let error = found.upper_error + found.lower_error;
            assert!(off <= error, "{size} {wraps} {count}: {off:e} {error:e}");
            assert!(
                error < 1e-15 * (60 + wraps) as f64 * count as f64,
                "{error:e}"
            );
        }
    }
}

#[test]
fn different_factors_are_convolved() {
    let (a, b, c) = (masses(5, 0.1), masses(9, 0.2), masses(4, 0.9));
    let size = 64;
    let factors = [(&a, &b, 3), (&b, &c, 2), (&c, &a, 1)].map(|(upper, lower, count)| Factor {
        upper,
        lower,
        count,
    });
    let found = compose(&factors, size);
    let truth = convolve(
        &convolve(&power(&a, 3, size), &power(&b, 2, size), size),
        &c,
        size,
    );
    for (value, truth) in found.upper.iter().zip(truth) {
        assert!((value - truth).abs() <= found.upper_error + 1e-16);
    }
    assert!(found.upper_error < 1e-13 && found.lower_error < 1e-13);
}

/// A power of a number of modulus one turns it around; nothing else may happen, and the error must cover what does.
#[test]
fn huge_powers_keep_their_bound() {
    let point = [0.0, 1.0];
    for count in [1_000, 1_000_000, 1 << 40] {
        let factor = Factor {
            upper: &point,
            lower: &point,
            count,
        };
        let found = compose(&[factor], 64);
        for (place, value) in found.upper.iter().enumerate() {
            let truth = f64::from(u8::from(place as u64 == count % 64));
            assert!((value - truth).abs() <= found.upper_error);
        }
    }
}
