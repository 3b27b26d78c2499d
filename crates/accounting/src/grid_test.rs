//! Grids and tilted grids.

use super::*;

fn grid(masses: Vec<f64>) -> Grid {
    let cells = masses.len() - 1;
    Grid {
        lattice: Lattice {
            base: -1.0,
            step: 0.25,
            cells,
        },
        masses,
        infinite: 0.0,
    }
}

#[test]
fn tilted_masses_are_the_masses_times_a_power() {
    let grid = grid(vec![0.25, 0.0, 0.5, 1e-250, 0.25]);
    for theta in [0.0, 0.125, short(0.7), 40.0, 170.0] {
        for side in [Side::Upper, Side::Lower] {
            let tilted = grid.tilt(theta, side);
            let sum: f64 = tilted.masses.iter().sum();
            assert!((sum - 1.0).abs() < 1e-14);
            for (index, (&a, &p)) in tilted.masses.iter().zip(&grid.masses).enumerate() {
                let place = index as f64 - tilted.centre as f64;
                let exponent = theta * place + tilted.ln_factor.estimate();
                let expected = p * libm::exp(exponent);
                assert!(
                    (a - expected).abs() <= 1e-12 * expected + 1e-300,
                    "{theta} {index}"
                );
                match side {
                    Side::Upper => assert!(a >= expected * (1.0 - 1e-12) - 1e-300),
                    Side::Lower => assert!(a <= expected * (1.0 + 1e-12) + 1e-300),
                }
            }
        }
    }
}

#[test]
fn moments_are_sums() {
    let tilted = grid(vec![0.25, 0.0, 0.5, 0.25]).tilt(0.5, Side::Upper);
    for lambda in [-30.0, -1.0, 0.0, 0.3, 20.0] {
        let sum: f64 = tilted
            .masses
            .iter()
            .enumerate()
            .map(|(i, a)| a * (lambda * (i as f64 - tilted.centre as f64)).exp())
            .sum();
        let found = tilted.ln_moment_upper(lambda);
        assert!(found >= sum.ln() && found <= sum.ln() + 1e-13);
    }
}

#[test]
fn totals_are_rounded_up() {
    let grid = grid(vec![0.1; 10]);
    assert!(grid.total_upper() >= 1.0 && grid.total_upper() < 1.0 + 1e-14);
}
