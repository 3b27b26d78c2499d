//! The curve of partition selection, in integers.
//!
//! **Definition.** `π(0) = 0`, `π(n) = min(r π(n-1) + δ, 1 - (1 - π(n-1) - δ)/r, 1)` with `r = e^ε`: the probability with which a key of `n`
//!   units is shown. \[DVGM22\]
//! **Method.** Probabilities are integers over `2^N`, and `r` is replaced by a rational from *below*. Each `π(n)` is rounded down, from the
//!   rounded `π(n-1)`. Beyond `ε = 64` the curve for 64 is used.
//! **Proof.** The three properties that make the curve private hold for the rounded one, exactly. That `π(n) <= r π(n-1) + δ` and that
//!   `1 - π(n-1) <= r (1 - π(n)) + δ` only ask for a `π(n)` that is small enough, and both arguments of the minimum grow with `r` and
//!   `δ`, which are rounded down. And `π(n) >= π(n-1)`: both arguments are at least `π(n-1)`, as `r >= 1`, and since that is on the
//!   grid, they are so when rounded down.
//! **Error.** `δ` keeps 192 bits, so a step loses less than a part in `2^190` of `δ`.

use dashu_base::BitTest;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::{Probability, Ratio};

use super::tail::{self, exp_lower};

/// A curve that needs more units than this to reach one is refused: nobody waits for it.
pub(crate) const CURVE_MAX: u64 = 1 << 18;
/// Larger losses get the curve of this one.
const EPSILON_MAX: u64 = 64;

/// `π(1), π(2), …` up to the last that is below one. None if that takes too long.
pub(crate) fn curve(epsilon: &Ratio, delta: &Ratio) -> Option<Vec<Probability>> {
    // δ has 192 significant bits on this grid.
    let bits = 192 + delta.as_rbig().denominator().bit_len();
    let one = UBig::ONE << bits;
    let delta = (delta * &Ratio::power_of_two(bits as i32)).floor();
    let r = exp_lower(&epsilon.as_rbig().clone().min(RBig::from(EPSILON_MAX)));
    let mut curve: Vec<UBig> = vec![UBig::ZERO];
    // At most CURVE_MAX rounds.
    loop {
        let shown = curve.last().expect("zero units are the first");
        let hidden = &one - shown;
        if hidden <= delta {
            // Then π(n-1) + δ >= 1, so all three arguments are at least one.
            break;
        }
        if curve.len() as u64 > CURVE_MAX {
            return None;
        }
        let rising = ((&r * shown) >> tail::BITS) + &delta;
        let falling = &one - divide_up((hidden - &delta) << tail::BITS, &r);
        curve.push(rising.min(falling));
    }
    let probability = |shown: UBig| {
        let ratio = Ratio::from_rbig(RBig::from_parts(IBig::from(shown), one.clone()));
        Probability::new(ratio.expect("not negative")).expect("below one")
    };
    Some(curve.into_iter().skip(1).map(probability).collect())
}

fn divide_up(value: UBig, by: &UBig) -> UBig {
    (value + by - UBig::ONE) / by
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Epsilon;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("an epsilon")
    }

    fn exact(e: f64, d: f64) -> Vec<Probability> {
        let delta = Ratio::from_f64(d).expect("positive");
        curve(&epsilon(e).to_ratio(), &delta).expect("short")
    }

    /// The closed form: rising geometrically up to `n1`, then falling short of one geometrically. \[DVGM22\]
    #[test]
    fn closed_form() {
        for (e, d) in [
            (1.0_f64, 1e-5_f64),
            (0.1, 1e-10),
            (0.5, 1e-2),
            (3.0, 1e-3),
            (0.01, 1e-6),
        ] {
            let (r, found) = (e.exp(), exact(e, d));
            let turn = ((r + 2.0 * d - 1.0) / ((r + 1.0) * d)).ln() / e;
            let n1 = 1 + turn.floor() as i32;
            let rising = |n: i32| d * (f64::from(n) * e).exp_m1() / e.exp_m1();
            for (n, p) in (1..).zip(&found) {
                let expected = if n <= n1 {
                    rising(n)
                } else {
                    let beyond = d / e.exp_m1();
                    1.0 + beyond - (-f64::from(n - n1) * e).exp() * (1.0 - rising(n1) + beyond)
                };
                let p = p.ratio().to_f64_up();
                assert!(
                    (p / expected - 1.0).abs() < 1e-9,
                    "{e} {d} {n}: {p} {expected}"
                );
            }
            let always = (found.len() + 1) as f64;
            let about = 2.0 / e * (e / (2.0 * d)).ln();
            assert!(
                (always - about).abs() < 5.0 + 0.1 * about,
                "{always} {about}"
            );
        }
        // Without epsilon the curve is a straight line.
        assert_eq!(exact(0.0, 0.25).len(), 3);
    }

    /// Every step of the curve that is sampled, in rationals, against bounds of `e^ε` that hold for sure.
    #[test]
    fn every_step_is_private() {
        for (e, d) in [
            (1.0, 1e-5),
            (0.1, 1e-10),
            (0.0, 0.01),
            (5.0, 1e-3),
            (64.5, 1e-300),
            (0.3, 0.9),
        ] {
            // A bound from below is the strict side here.
            let r = RBig::from_parts(
                exp_lower(epsilon(e).to_ratio().as_rbig()).into(),
                UBig::ONE << tail::BITS,
            );
            let d_exact = Ratio::from_f64(d).expect("positive").as_rbig().clone();
            let mut before = RBig::ZERO;
            let ends = exact(e, d)
                .into_iter()
                .chain([Probability::new(Ratio::one()).expect("one")]);
            for p in ends {
                let p = p.ratio().as_rbig().clone();
                let (hidden, hidden_before) = (RBig::ONE - &p, RBig::ONE - &before);
                assert!(p >= before && p <= &r * &before + &d_exact);
                assert!(hidden_before <= &r * hidden + &d_exact);
                before = p;
            }
        }
    }
}
