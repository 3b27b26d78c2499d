//! Arithmetic with a direction: `_up` is never below the true value, `_down` never above it.
//!
//! Costs go up, grants go down. The four basic operations of IEEE 754 err by at most half a unit in the last place, so one
//! step outward is enough, and none is taken when the result is exact. The elementary functions come from `libm`, whose
//! documented error is below one unit in the last place; we step twice that outward.

/// How far an elementary function steps outward: twice what `libm` documents.
const ELEMENTARY_ULPS: u32 = 2;

fn steps_up(value: f64, count: u32) -> f64 {
    (0..count).fold(value, |value, _| value.next_up())
}

fn steps_down(value: f64, count: u32) -> f64 {
    (0..count).fold(value, |value, _| value.next_down())
}

/// The rounding error `a + b - sum`, exactly (Knuth's two-sum); only its sign is used.
fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let b_virtual = sum - a;
    let a_virtual = sum - b_virtual;
    (a - a_virtual) + (b - b_virtual)
}

/// `a + b`, rounded up.
pub fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum == f64::NEG_INFINITY && a.is_finite() && b.is_finite() {
        return f64::MIN;
    }
    // An overflow to infinity is above the truth already; an error that is not a number comes from there too.
    if sum_error(a, b, sum) > 0.0 {
        sum.next_up()
    } else {
        sum
    }
}

/// `a + b`, rounded down.
pub fn add_down(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum == f64::INFINITY && a.is_finite() && b.is_finite() {
        return f64::MAX;
    }
    if sum_error(a, b, sum) < 0.0 {
        sum.next_down()
    } else {
        sum
    }
}

/// `a - b`, rounded up.
pub fn sub_up(a: f64, b: f64) -> f64 {
    add_up(a, -b)
}

/// `a - b`, rounded down.
pub fn sub_down(a: f64, b: f64) -> f64 {
    add_down(a, -b)
}

/// `a * b`, rounded up.
pub fn mul_up(a: f64, b: f64) -> f64 {
    let product = a * b;
    if product_is_exact(a, b, product) {
        product
    } else {
        product.next_up()
    }
}

/// `a * b`, rounded down.
pub fn mul_down(a: f64, b: f64) -> f64 {
    let product = a * b;
    if product_is_exact(a, b, product) {
        product
    } else {
        product.next_down()
    }
}

/// `fma(a, b, -p)` is the exact error unless it underflows, and then the product is not called exact.
fn product_is_exact(a: f64, b: f64, product: f64) -> bool {
    let comfortably_normal = product.abs() > 1e-200 && product.is_finite();
    a == 0.0 || b == 0.0 || (comfortably_normal && libm::fma(a, b, -product) == 0.0)
}

/// `a / b`, rounded up.
pub fn div_up(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if quotient_is_exact(a, b, quotient) {
        quotient
    } else {
        quotient.next_up()
    }
}

/// `a / b`, rounded down.
pub fn div_down(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if quotient_is_exact(a, b, quotient) {
        quotient
    } else {
        quotient.next_down()
    }
}

fn quotient_is_exact(a: f64, b: f64, quotient: f64) -> bool {
    let comfortably_normal =
        a.abs() > 1e-200 && quotient.abs() > 1e-200 && quotient.is_finite() && b.is_finite();
    (a == 0.0 && b != 0.0) || (comfortably_normal && libm::fma(quotient, b, -a) == 0.0)
}

/// The square root, rounded up.
pub fn sqrt_up(value: f64) -> f64 {
    if value == 0.0 {
        0.0
    } else {
        value.sqrt().next_up()
    }
}

/// The square root, rounded down, and never below zero.
pub fn sqrt_down(value: f64) -> f64 {
    value.sqrt().next_down().max(0.0)
}

/// `exp(value)`, rounded up.
pub fn exp_up(value: f64) -> f64 {
    if value == 0.0 {
        1.0
    } else {
        steps_up(libm::exp(value), ELEMENTARY_ULPS)
    }
}

/// `exp(value)`, rounded down, and never below zero.
pub fn exp_down(value: f64) -> f64 {
    if value == 0.0 {
        1.0
    } else {
        steps_down(libm::exp(value), ELEMENTARY_ULPS).max(0.0)
    }
}

/// `ln(value)`, rounded up.
pub fn ln_up(value: f64) -> f64 {
    if value == 1.0 {
        0.0
    } else {
        steps_up(libm::log(value), ELEMENTARY_ULPS)
    }
}

/// `ln(value)`, rounded down.
pub fn ln_down(value: f64) -> f64 {
    if value == 1.0 {
        0.0
    } else {
        steps_down(libm::log(value), ELEMENTARY_ULPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_ratio::RBig;
    use proptest::prelude::*;

    fn exact(value: f64) -> RBig {
        RBig::try_from(value).expect("finite")
    }

    #[test]
    fn exact_results_stay_exact() {
        assert_eq!((add_up(1.0, 2.0), add_down(1.0, 2.0)), (3.0, 3.0));
        assert_eq!((mul_up(1.5, 2.0), mul_down(1.5, 2.0)), (3.0, 3.0));
        assert_eq!((div_up(1.0, 4.0), div_down(1.0, 4.0)), (0.25, 0.25));
        assert_eq!((exp_up(0.0), ln_up(1.0), mul_up(0.0, 7.0)), (1.0, 0.0, 0.0));
    }

    #[test]
    fn nothing_positive_is_absorbed() {
        assert!(add_up(1e300, 5e-324) > 1e300);
        assert!(mul_up(1e-200, 1e-200) > 0.0);
        assert!(div_up(1e-300, 1e300) > 0.0);
    }

    #[test]
    fn overflow_goes_the_right_way() {
        assert_eq!(add_up(f64::MAX, f64::MAX), f64::INFINITY);
        assert_eq!(add_down(f64::MAX, f64::MAX), f64::MAX);
        assert_eq!(add_up(f64::MIN, f64::MIN), f64::MIN);
        assert_eq!(add_down(f64::MIN, f64::MIN), f64::NEG_INFINITY);
        assert!(mul_down(f64::MAX, 2.0) <= f64::MAX);
    }

    proptest! {
        #[test]
        fn basic_operations_bracket_the_truth(a in -1e150_f64..1e150, b in -1e150_f64..1e150) {
            prop_assert!(exact(add_down(a, b)) <= exact(a) + exact(b));
            prop_assert!(exact(add_up(a, b)) >= exact(a) + exact(b));
            prop_assert!(exact(sub_down(a, b)) <= exact(a) - exact(b));
            prop_assert!(exact(sub_up(a, b)) >= exact(a) - exact(b));
            prop_assert!(exact(mul_down(a, b)) <= exact(a) * exact(b));
            prop_assert!(exact(mul_up(a, b)) >= exact(a) * exact(b));
            if b != 0.0 && (a / b).is_finite() {
                prop_assert!(exact(div_down(a, b)) <= exact(a) / exact(b));
                prop_assert!(exact(div_up(a, b)) >= exact(a) / exact(b));
            }
        }

        #[test]
        fn roots_bracket_the_truth(value in 0.0_f64..1e300) {
            let (low, high) = (exact(sqrt_down(value)), exact(sqrt_up(value)));
            prop_assert!(&low * &low <= exact(value));
            prop_assert!(&high * &high >= exact(value));
        }

        #[test]
        fn elementary_functions_keep_their_order(value in -700.0_f64..700.0) {
            prop_assert!(exp_down(value) < exp_up(value));
            // exp and ln are inverse, so the outward ends must enclose the start.
            prop_assert!(ln_down(exp_down(value)) <= value && value <= ln_up(exp_up(value)));
        }
    }
}
