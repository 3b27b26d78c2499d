//! The classic attacks on floating-point noise, run against a naive twin and against us.
//!
//! - *Least significant bits* \[Mir12\]: `x - b ln(u)` in floats reaches only some floats, and which ones depends on `x`.
//! - *Precision* \[HDH22\]: even with perfect noise, `x + z` takes the precision of the coarser summand.
//!
//! Each must tell 0 from 1 with certainty within a hundred outputs of its twin, and do no better on our outputs than the
//! guarantee allows anyone.

use whit_audit::{Alpha, clopper_pearson_upper};
use whit_core::{AddRemove, Bits, Ratio, Secret, Sensitivity};
use whit_testkit::{Seeded, SeededBits};

use crate::doubt::{scale, seed};
use crate::sample::DiscreteLaplace;
use crate::{Grid, Laplace};

/// A uniform float with 53 bits, never zero, as such code draws it.
fn uniform(bits: &mut SeededBits) -> f64 {
    ((bits.word() >> 11) + 1) as f64 / 2_f64.powi(53)
}

/// What a textbook would write: inverse transform, then addition.
fn textbook(x: f64, bits: &mut SeededBits) -> f64 {
    let sign = if bits.word() >> 63 == 1 { -1.0 } else { 1.0 };
    x + sign * -uniform(bits).ln()
}

/// Laplace noise that is right to the last bit of a float, then addition.
fn perfect_noise(sampler: &DiscreteLaplace, x: f64, bits: &mut SeededBits) -> f64 {
    x + sampler.sample(bits) as f64 / 2_f64.powi(90)
}

/// Ours, of the same scale, at ε = 1.
fn ours() -> impl FnMut(f64) -> f64 {
    let sensitivity = Sensitivity::<_, AddRemove>::new(Ratio::one());
    let mechanism =
        Laplace::new(&scale(1, 1), &sensitivity, 1, Grid::for_scale(&scale(1, 1))).expect("valid");
    let mut entropy = Seeded::new(seed(301));
    move |x| {
        *mechanism
            .release(Secret::new(x), &mut entropy)
            .expect("entropy")
            .value()
    }
}

/// Could the textbook have printed `y` for `x`? Looks for a uniform that gives it.
fn textbook_reaches(x: f64, y: f64) -> bool {
    let centre = ((-(y - x).abs()).exp() * 2_f64.powi(53)) as i64;
    (centre - 8..=centre + 8).filter(|&k| k > 0).any(|k| {
        let magnitude = -(k as f64 / 2_f64.powi(53)).ln();
        x + magnitude == y || x - magnitude == y
    })
}

/// Is `y` finer than any sum with a number near one can be?
fn finer_than_sums_with_one(y: f64) -> bool {
    (y * 2_f64.powi(53)).fract() != 0.0
}

/// How many outputs for 0 it takes until the world of 1 is ruled out with certainty.
fn outputs_until_certain(
    rules_out_one: impl Fn(f64) -> bool,
    mut draw: impl FnMut() -> f64,
) -> usize {
    (1..=1000)
        .find(|_| rules_out_one(draw()))
        .unwrap_or(usize::MAX)
}

#[test]
fn least_significant_bits_break_the_textbook() {
    let mut bits = SeededBits::new(seed(302));
    let certain = outputs_until_certain(|y| !textbook_reaches(1.0, y), || textbook(0.0, &mut bits));
    assert!(certain <= 100, "took {certain} outputs");
    // And it never rules out the truth.
    assert!((0..10_000).all(|_| textbook_reaches(0.0, textbook(0.0, &mut bits))));
    assert!((0..10_000).all(|_| textbook_reaches(1.0, textbook(1.0, &mut bits))));
}

#[test]
fn precision_breaks_perfect_noise() {
    let mut bits = SeededBits::new(seed(303));
    let sampler = DiscreteLaplace::new(&scale(1 << 90, 1));
    let certain = outputs_until_certain(finer_than_sums_with_one, || {
        perfect_noise(&sampler, 0.0, &mut bits)
    });
    assert!(certain <= 100, "took {certain} outputs");
    assert!(
        (0..10_000).all(|_| !finer_than_sums_with_one(perfect_noise(&sampler, 1.0, &mut bits)))
    );
}

/// The share of games that an attacker wins who sees one output for 0 or 1, each as often, and guesses.
fn games_won(guess_zero: impl Fn(f64) -> bool, mut draw: impl FnMut(f64) -> f64) -> f64 {
    let games: u64 = 20_000;
    let won = (0..games).filter(|game| {
        let x = (game % 2) as f64;
        guess_zero(draw(x)) == (x == 0.0)
    });
    let alpha = Alpha::new(1e-3).expect("a level");
    clopper_pearson_upper(won.count() as u64, games, alpha).expect("enough games")
}

#[test]
fn neither_attack_beats_the_guarantee_on_ours() {
    let fair = 1_f64.exp() / (1.0 + 1_f64.exp());
    assert!(games_won(|y| !textbook_reaches(1.0, y), ours()) <= fair);
    assert!(games_won(|y| textbook_reaches(0.0, y), ours()) <= fair);
    assert!(games_won(finer_than_sums_with_one, ours()) <= fair);
}

/// Why: what ours can print is the same grid whatever the data.
#[test]
fn ours_prints_multiples_of_a_public_step() {
    let step = Grid::for_scale(&scale(1, 1)).exponent();
    let mut draw = ours();
    for x in [0.0, 1.0, 1e-9, std::f64::consts::PI, -7.3e5] {
        for _ in 0..20_000 {
            let steps = draw(x) * 2_f64.powi(-step);
            assert_eq!(steps.fract(), 0.0, "{x}");
        }
    }
}
