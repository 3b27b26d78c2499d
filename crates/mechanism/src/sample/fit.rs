//! Goodness of fit of every sampler at twelve scales: two hundred thousand draws each in an ordinary run, ten million under
//! `WHIT_LONG=1`. Detects a scale that is 0.3% off (long), and must.

use whit_core::{Probability, Ratio, Scale};
use whit_testkit::{SeededBits, long};

use super::{
    Bernoulli, ConstantTimeGaussian, ConstantTimeLaplace, DiscreteGaussian, DiscreteLaplace,
    Geometric, uniform_below,
};
use crate::doubt::{self, Shape};

const SCALES: [(u128, u128); 12] = [
    (1, 1 << 40),
    (1, 1 << 20),
    (1, 10),
    (1, 3),
    (1, 1),
    (5, 2),
    (10, 1),
    (377, 10),
    (1000, 7),
    (1 << 20, 1),
    (1 << 30, 1),
    (1 << 40, 1),
];

fn draws() -> u64 {
    if long() { 10_000_000 } else { 200_000 }
}

fn at_every_scale(seed: u64, mut check: impl FnMut(&str, &Scale, &mut SeededBits)) {
    let mut bits = SeededBits::new(doubt::seed(seed));
    for (numerator, denominator) in SCALES {
        check(
            &format!("scale {numerator}/{denominator}"),
            &doubt::scale(numerator, denominator),
            &mut bits,
        );
    }
}

#[test]
fn discrete_laplace_fits() {
    at_every_scale(101, |what, scale, bits| {
        let sampler = DiscreteLaplace::new(scale);
        Shape::laplace(scale).assert_fits(what, draws(), || sampler.sample(bits));
    });
}

#[test]
fn discrete_gaussian_fits() {
    at_every_scale(102, |what, scale, bits| {
        let sampler = DiscreteGaussian::new(scale);
        Shape::gaussian(scale).assert_fits(what, draws(), || sampler.sample(bits));
    });
}

#[test]
fn geometric_fits() {
    at_every_scale(103, |what, scale, bits| {
        let sampler = Geometric::new(scale);
        Shape::geometric(scale).assert_fits(what, draws(), || sampler.sample(bits) as i128);
    });
}

#[test]
fn constant_time_laplace_fits() {
    at_every_scale(104, |what, scale, bits| {
        let sampler = ConstantTimeLaplace::new(scale);
        Shape::laplace(scale).assert_fits(what, draws(), || sampler.sample(bits));
    });
}

#[test]
fn constant_time_gaussian_fits() {
    at_every_scale(105, |what, scale, bits| {
        if let Some(sampler) = ConstantTimeGaussian::new(scale) {
            // The table is read through for each draw, so the long form takes a tenth of the draws.
            Shape::gaussian(scale)
                .assert_fits(what, draws().min(1_000_000), || sampler.sample(bits));
        }
    });
}

fn assert_rate(what: &str, p: f64, mut event: impl FnMut() -> bool) {
    let p_value = |draws: u64, event: &mut dyn FnMut() -> bool| {
        let happened = (0..draws).filter(|_| event()).count() as u64;
        whit_audit::g_test(&[happened, draws - happened], &[p, 1.0 - p])
            .expect("probabilities")
            .p_value
    };
    let first = p_value(draws(), &mut event);
    assert!(
        first >= doubt::ALPHA || p_value(4 * draws(), &mut event) >= doubt::ALPHA,
        "{what}: p = {first:e}"
    );
}

#[test]
fn bernoulli_fits() {
    let mut bits = SeededBits::new(doubt::seed(106));
    for (numerator, denominator) in [
        (1_u128, 2_u128),
        (1, 3),
        (999, 1000),
        (1, 1000),
        (123_456_789, 987_654_321),
    ] {
        let ratio = Ratio::new(numerator, denominator).expect("not zero");
        let event = Bernoulli::new(&Probability::new(ratio.clone()).expect("below one"));
        assert_rate("rational", ratio.to_f64_up(), || event.sample(&mut bits));
        let event = Bernoulli::exp_neg(ratio.as_rbig().clone());
        assert_rate("exp", (-ratio.to_f64_up()).exp(), || {
            event.sample(&mut bits)
        });
    }
}

#[test]
fn uniform_fits() {
    let mut bits = SeededBits::new(doubt::seed(107));
    for bound in [2_usize, 3, 10, 100, 257, 1000] {
        let mut p_value = |draws| {
            let draws = (0..draws).map(|_| uniform_below(bound as u64, &mut bits) as usize);
            let cells = whit_audit::Cells::tally(bound, draws);
            cells
                .g_test(&vec![1.0 / bound as f64; bound])
                .expect("probabilities")
                .p_value
        };
        let first = p_value(draws());
        assert!(
            first >= doubt::ALPHA || p_value(4 * draws()) >= doubt::ALPHA,
            "below {bound}: p = {first:e}"
        );
    }
}

/// The same test must convict a sampler of a slightly wrong scale: 2% off in an ordinary run, 0.3% in the long form. As in
/// [`Shape::assert_fits`] there is a second try with four times the draws: the first misses once in a hundred thousand.
#[test]
fn the_fit_has_teeth() {
    let (off, one) = if long() { (997, 1000) } else { (98, 100) };
    let mut bits = SeededBits::new(doubt::seed(108));
    for (numerator, denominator) in [(10, 1), (1000, 7), (1 << 40, 1)] {
        let (right, wrong) = (
            doubt::scale(numerator, denominator),
            doubt::scale(numerator * off, denominator * one),
        );
        let (laplace, gaussian) = (DiscreteLaplace::new(&wrong), DiscreteGaussian::new(&wrong));
        let convicts = |shape: Shape, draw: &mut dyn FnMut() -> i128| {
            let mut p_value = |draws| shape.p_value(draws, &mut *draw);
            p_value(draws()) < doubt::ALPHA || p_value(4 * draws()) < doubt::ALPHA
        };
        assert!(
            convicts(Shape::laplace(&right), &mut || laplace.sample(&mut bits)),
            "a Laplace twin at {numerator}/{denominator} passes"
        );
        assert!(
            convicts(Shape::gaussian(&right), &mut || gaussian.sample(&mut bits)),
            "a Gaussian twin at {numerator}/{denominator} passes"
        );
    }
}
