//! Real numbers to three hundred bits, for tests of what is computed in fewer: integers in units of `2^-320`, and exponentials by another way than the one that ships.

use dashu_int::IBig;

/// Units of numbers.
const BITS: usize = 320;
/// How often an exponent is halved before the series, and its exponential squared after.
const HALVINGS: usize = 16;

/// A number in units of two to minus `bits`.
pub(super) fn exact(value: i128, bits: i32) -> IBig {
    IBig::from(value) << (BITS - bits as usize)
}

/// A float, which is an integer in units of `2^-200` if it is above `2^-147`, or zero.
pub(super) fn exact_float(value: f64) -> IBig {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1075;
    let whole = i128::from(bits & ((1 << 52) - 1) | 1 << 52);
    match value == 0.0 {
        true => IBig::ZERO,
        false => {
            let sized = IBig::from(whole) << (BITS as i32 + exponent) as usize;
            if value < 0.0 { -sized } else { sized }
        }
    }
}

pub(super) fn times(one: &IBig, other: &IBig) -> IBig {
    (one * other) >> BITS
}

/// `exp(-d)` for `d >= 0`, to `2^-290`.
pub(super) fn exponential(d: &IBig) -> IBig {
    let one = IBig::ONE << BITS;
    // Below two to minus 300.
    if *d > exact(208, 0) {
        return IBig::ZERO;
    }
    let small = d >> HALVINGS;
    let (mut sum, mut term, mut count) = (one.clone(), one, 1);
    // At most 2^-8 each time.
    while term != IBig::ZERO {
        term = times(&term, &small) / IBig::from(count);
        sum += if count % 2 == 1 { -&term } else { term.clone() };
        count += 1;
        assert!(count < 100);
    }
    for _ in 0..HALVINGS {
        sum = times(&sum, &sum);
    }
    sum
}

/// The probabilities of classes with these scores.
pub(super) fn shares(scores: &[IBig]) -> Vec<IBig> {
    let largest = scores.iter().max().cloned().unwrap_or_default();
    let odds: Vec<IBig> = scores
        .iter()
        .map(|score| exponential(&(&largest - score)))
        .collect();
    let total = odds.iter().fold(IBig::ZERO, |sum, odds| sum + odds);
    odds.iter().map(|odds| (odds << BITS) / &total).collect()
}

/// The length of a vector, nearly.
pub(super) fn length(vector: &[IBig]) -> f64 {
    let one = f64::from(BITS as i32).exp2();
    let square = |entry: &IBig| (entry.to_f64().value() / one).powi(2);
    vector.iter().map(square).sum::<f64>().sqrt()
}

/// By decimals of eighty places.
#[test]
fn closed_form() {
    for (d, expected) in [
        (0.0, "1."),
        (
            0.5,
            "0.60653065971263342360379953499118045344191813548718695568289",
        ),
        (
            1.0,
            "0.36787944117144232159552377016146086744581113103176783450783",
        ),
        (20.0, "0.0000000020611536224385578279659403801558209763758"),
    ] {
        let digits = expected.split_once('.').expect("a point").1;
        let all: IBig = expected.replace('.', "").parse().expect("digits");
        let expected = (all << BITS) / IBig::from(10).pow(digits.len());
        let off = exponential(&exact_float(d)) - expected;
        assert!(length(&[off]) < 1e-48, "{d}");
    }
    assert_eq!(exact_float(-0.75), exact(-3, 2));
    assert_eq!(shares(&vec![exact(7, 0); 4]), vec![exact(1, 2); 4]);
}
