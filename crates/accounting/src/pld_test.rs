//! The engine against golden values, closed forms and itself.

use super::*;
use crate::atoms::Atoms;
use crate::gaussian::Gaussian;
use crate::pair::Change::{self, Add, Remove, Replace};
use crate::{Composition, Step};
use whit_core::Neighbours;

fn gaussian(sigma: f64) -> Pair {
    Pair::Gaussian { sigma }
}

fn laplace(scale: f64) -> Pair {
    Pair::Laplace { scale }
}

fn sampled(rate: f64, sigma: f64, change: Change) -> Pair {
    Pair::SampledGaussian {
        rate,
        sigma,
        change,
    }
}

fn sampled_laplace(rate: f64, scale: f64, change: Change) -> Pair {
    Pair::SampledLaplace {
        rate,
        scale,
        change,
    }
}

fn pld(parts: &[(Pair, u64)]) -> Pld {
    let parts = parts.iter().map(|(pair, count)| Part::new(pair, *count));
    Pld::new(parts.collect(), Fineness::USUAL)
}

/// Name, composition, delta and epsilon.
type Golden = (&'static str, Vec<(Pair, u64)>, f64, f64);

/// Golden values of the reference file.
fn golden() -> Vec<Golden> {
    let mut cases = vec![
        ("001", vec![(gaussian(20.0), 512)], 1e-5, 5.052787674052982),
        ("002", vec![(gaussian(20.0), 512)], 1e-12, 8.28107254750497),
        ("003", vec![(gaussian(1.0), 1)], 1e-6, 4.886554117462212),
        ("004", vec![(gaussian(5.0), 1)], 1e-9, 1.1040402625920855),
        (
            "005",
            vec![(gaussian(50.0), 10_000)],
            1e-15,
            17.479458492636287,
        ),
        ("006", vec![(gaussian(0.5), 4)], 1e-5, 24.381610883113673),
        ("007", vec![(gaussian(3.0), 100)], 1e-30, 43.33593968812861),
        ("010", vec![(laplace(20.0), 512)], 1e-5, 4.986458909916051),
        ("011", vec![(laplace(20.0), 512)], 1e-15, 9.135892571930992),
        ("012", vec![(laplace(1.0), 1)], 1e-3, 0.997998999332833),
        ("013", vec![(laplace(2.0), 8)], 1e-5, 3.9974497611045514),
        ("014", vec![(laplace(5.0), 32)], 1e-8, 5.732744925641574),
        ("015", vec![(laplace(10.0), 100)], 1e-6, 4.692667414680189),
    ];
    let steps = [
        (
            "027",
            0.01,
            4.0,
            10_000,
            1e-5,
            0.9468668007643095,
            0.9370364254020973,
        ),
        (
            "028",
            0.004266666666666667,
            1.1,
            14_062,
            1e-5,
            2.381596921424357,
            2.243559372698864,
        ),
        (
            "029",
            0.001,
            0.8,
            60_000,
            1e-5,
            1.9521717358900637,
            1.8099635054857137,
        ),
        (
            "030",
            0.001,
            1.0,
            1_000_000,
            1e-6,
            6.694272659734772,
            6.614617413790014,
        ),
        (
            "031",
            0.01,
            4.0,
            10_000,
            1e-10,
            1.528218476663899,
            1.5039079704222202,
        ),
        (
            "032",
            0.01,
            4.0,
            10_000,
            1e-15,
            1.9560534829444796,
            1.9169356039088,
        ),
        (
            "033",
            0.01,
            4.0,
            10_000,
            1e-20,
            2.3107969893712563,
            2.2567613401214883,
        ),
        (
            "034",
            0.01,
            0.5,
            1000,
            1e-5,
            13.360823985349713,
            4.315927155944377,
        ),
        (
            "035",
            0.1,
            2.0,
            500,
            1e-6,
            6.216698122825157,
            5.487611585533918,
        ),
        (
            "036",
            0.5,
            5.0,
            1000,
            1e-6,
            19.663942363391037,
            19.185032522038316,
        ),
        (
            "037",
            0.0001,
            0.6,
            200_000,
            1e-7,
            1.6272050014802955,
            0.7385880254169487,
        ),
        (
            "038",
            0.02,
            1.0,
            100,
            1e-6,
            1.7693131437104612,
            0.7851376526070729,
        ),
    ];
    for (id, rate, sigma, count, delta, remove, add) in steps {
        cases.push((
            id,
            vec![(sampled(rate, sigma, Remove), count)],
            delta,
            remove,
        ));
        cases.push((id, vec![(sampled(rate, sigma, Add), count)], delta, add));
    }
    for (id, rate, sigma, count, delta, replace) in [
        ("042", 0.01, 4.0, 10_000, 1e-5, 1.9931200570576615),
        ("043", 0.005, 1.5, 5000, 1e-6, 2.1484743331144793),
        ("044", 0.1, 3.0, 200, 1e-5, 4.074494201198391),
    ] {
        cases.push((
            id,
            vec![(sampled(rate, sigma, Replace), count)],
            delta,
            replace,
        ));
    }
    for (id, rate, scale, count, delta, remove, add) in [
        (
            "045",
            0.01,
            1.0,
            1000,
            1e-6,
            1.2864073997694416,
            1.2189208857303433,
        ),
        (
            "046",
            0.02,
            2.0,
            5000,
            1e-5,
            2.7612038658022002,
            2.730110446969041,
        ),
        (
            "047",
            0.1,
            5.0,
            2000,
            1e-8,
            4.949397629614037,
            4.906996571669585,
        ),
    ] {
        cases.push((
            id,
            vec![(sampled_laplace(rate, scale, Remove), count)],
            delta,
            remove,
        ));
        cases.push((
            id,
            vec![(sampled_laplace(rate, scale, Add), count)],
            delta,
            add,
        ));
    }
    let range =
        |count: u32, start: f64, step: f64| (0..count).map(move |i| start + step * f64::from(i));
    let gaussians = range(50, 10.0, 0.5).map(|sigma| (gaussian(sigma), 1));
    cases.push(("054", gaussians.collect(), 1e-5, 1.4866425535161043));
    for (change, value) in [(Remove, 1.237134550720071), (Add, 1.077450328993117)] {
        let both = range(50, 0.001, 0.0004).zip(range(50, 0.8, 0.024));
        let parts = both.map(|(rate, sigma)| (sampled(rate, sigma, change), 20));
        cases.push(("055", parts.collect(), 1e-6, value));
    }
    for (change, value) in [(Remove, 1.3481764819699749), (Add, 1.1969567557985117)] {
        let first = range(15, 20.0, 1.0).map(|sigma| (gaussian(sigma), 1));
        let second = range(15, 25.0, 1.0).map(|scale| (laplace(scale), 1));
        let both = range(20, 0.002, 0.002).zip(range(20, 1.0, 0.05));
        let third = both.map(|(rate, sigma)| (sampled(rate, sigma, change), 10));
        cases.push((
            "056",
            first.chain(second).chain(third).collect(),
            1e-6,
            value,
        ));
    }
    cases
}

/// Values of the reference file are good to some 1e-10.
const GOLDEN_ERROR: f64 = 1e-9;

#[test]
fn golden_epsilons_are_enclosed_within_a_thousandth() {
    for (id, parts, delta, value) in golden() {
        let found = pld(&parts).epsilon(delta);
        let excludes = found.lower() > value * (1.0 + GOLDEN_ERROR)
            || found.upper() < value * (1.0 - GOLDEN_ERROR);
        assert!(!excludes, "{id}: {found:?} {value}");
        assert!(found.relative_width() <= 1e-3, "{id}: {found:?} {value}");
    }
}

#[test]
fn golden_deltas_are_enclosed() {
    for (id, parts, epsilon, value) in [
        ("008", (gaussian(20.0), 512), 1.0, 0.17513066265795244),
        ("009", (gaussian(10.0), 50), 8.0, 1.7736246243802656e-29),
        ("016", (laplace(4.0), 16), 1.5, 0.04527022327400773),
        (
            "039",
            (sampled(0.01, 4.0, Remove), 10_000),
            1.0,
            4.243484252480414e-06,
        ),
        (
            "039",
            (sampled(0.01, 4.0, Add), 10_000),
            1.0,
            3.529865524931966e-06,
        ),
        (
            "041",
            (sampled(0.01, 1.0, Remove), 1000),
            0.0,
            0.16101761969793632,
        ),
        (
            "041",
            (sampled(0.01, 1.0, Add), 1000),
            0.0,
            0.16101761969793632,
        ),
    ] {
        let found = pld(&[parts]).delta(epsilon);
        let error = value * GOLDEN_ERROR;
        assert!(
            found.lower() <= value + error && value - error <= found.upper(),
            "{id}: {found:?}"
        );
        assert!(found.relative_width() <= 2e-3, "{id}: {found:?}");
    }
}

/// Randomized response as two atoms, which a grid meets exactly; golden values 017 to 020.
#[test]
fn atoms_on_the_grid_are_exact() {
    for (epsilon, count, delta, value) in [
        (0.1, 500, 1e-6, 12.517879962510287),
        (1.0, 20, 1e-5, 19.99472647421367),
        (0.02, 10_000, 1e-8, 12.74438247648878),
        (0.5, 64, 1e-15, 31.984858076612486),
    ] {
        let exact = Bracket::exact;
        let mass = exact(1.0) / (exact(1.0) + exact(-epsilon).exp());
        let list = vec![(exact(epsilon), mass), (exact(-epsilon), exact(1.0) - mass)];
        let profile = Atoms::new(list, Bracket::ZERO).expect("two losses");
        let part = Part {
            profile: Box::new(profile),
            count,
        };
        let found = Pld::new(vec![part], Fineness::USUAL).epsilon(delta);
        assert!(
            found.holds(value) || found.relative_width() < 1e-12,
            "{found:?} {value}"
        );
        assert!(found.lower() <= value * (1.0 + 1e-12) && found.upper() >= value * (1.0 - 1e-12));
        assert!(found.relative_width() < 1e-6, "{found:?}");
    }
}

/// KOV's pair with a mass of infinite losses; golden values 023 and 024.
#[test]
fn infinite_losses_are_counted() {
    for (epsilon, infinite, count, delta, value) in [
        (0.1, 1e-8, 100, 1e-5, 4.3296367140166065),
        (0.5, 1e-7, 30, 1e-4, 11.970781016974067),
    ] {
        let exact = Bracket::exact;
        let rest = exact(1.0) - exact(infinite);
        let mass = rest / (exact(1.0) + exact(-epsilon).exp());
        let list = vec![(exact(epsilon), mass), (exact(-epsilon), rest - mass)];
        let profile = Atoms::new(list, exact(infinite)).expect("two losses");
        let part = Part {
            profile: Box::new(profile),
            count,
        };
        let mut pld = Pld::new(vec![part], Fineness::USUAL);
        let found = pld.epsilon(delta);
        assert!(found.lower() <= value * (1.0 + 1e-12) && found.upper() >= value * (1.0 - 1e-12));
        assert!(found.relative_width() < 1e-6, "{found:?}");
        // Below the infinite mass there is no epsilon.
        assert_eq!(pld.epsilon(infinite), Bracket::exact(f64::INFINITY));
    }
}

/// Against the closed form of composed Gaussians, also split into different parts.
#[test]
fn gaussians_of_every_size_hold_the_closed_form() {
    for (parts, mu_square) in [
        (vec![(gaussian(1.0), 1)], 1.0),
        (vec![(gaussian(1.0), 3), (gaussian(2.0), 4)], 4.0),
        (vec![(gaussian(100.0), 100)], 0.01),
        (vec![(gaussian(0.3), 2)], 2.0 / 0.09),
        (vec![(gaussian(1000.0), 1_000_000)], 1.0),
        (vec![(gaussian(8.0), 64), (gaussian(0.5), 1)], 5.0),
    ] {
        let mu = Bracket::exact(mu_square).sqrt();
        let truth = Gaussian { mu };
        for delta in [0.3, 1e-3, 1e-10, 1e-40, 1e-150] {
            let (found, known) = (pld(&parts).epsilon(delta), truth.epsilon(delta));
            assert!(
                found.lower() <= known.upper() && known.lower() <= found.upper(),
                "{parts:?} {delta}: {found:?} {known:?}"
            );
            let far = delta < 1e-100;
            assert!(
                far || found.relative_width() < 2e-3,
                "{parts:?} {delta}: {found:?}"
            );
        }
        let mut pld = pld(&parts);
        for epsilon in [-3.0, -0.1, 0.0, 1e-3, 0.5, 2.0, 10.0] {
            let (found, known) = (pld.delta(epsilon), truth.delta(epsilon));
            assert!(
                found.lower() <= known.upper() && known.lower() <= found.upper(),
                "{parts:?} {epsilon}: {found:?} {known:?}"
            );
        }
    }
}

/// `ε = k/b + ln(1 - 2^k δ)`, where only the largest sum of losses is left.
#[test]
fn epsilons_next_to_the_largest_loss_are_found() {
    for (scale, count, delta) in [(1.19, 1_u32, 2e-7), (0.7, 2, 2e-12), (3.0, 4, 1e-9)] {
        let top = f64::from(count) / scale;
        let truth = top + (-f64::from(count).exp2() * delta).ln_1p();
        let found = pld(&[(laplace(scale), u64::from(count))]).epsilon(delta);
        let error = 4e-15 * top;
        assert!(
            found.lower() <= truth + error && truth - error <= found.upper(),
            "{scale} {count}: {found:?} {truth}"
        );
    }
}

/// A composition is never cheaper than one of its parts. Here a wide tilt once overflowed, and nothing was left of the
/// upper bound.
#[test]
fn a_part_is_a_lower_bound() {
    for (rate, sigma, count, delta) in [
        (
            0.00015111124577841037,
            4.49054793432297,
            17,
            1.4226861822074915e-12,
        ),
        (0.0029, 6.9, 1, 5.4e-6),
        (0.0026, 0.69, 3, 3.75e-4),
    ] {
        let pair = sampled(rate, sigma, Remove);
        let single = PairProfile::new(&pair);
        let mut pld = pld(&[(pair, count)]);
        let found = pld.epsilon(delta).upper();
        for epsilon in [0.0, found / 2.0, found, 2.0 * found, 1.0, 30.0] {
            let tails = single.tails(epsilon);
            assert!(pld.delta(epsilon).upper() >= (tails.p - tails.q).lower());
        }
        let tails = single.tails(found);
        assert!((tails.p - tails.q).lower() <= delta);
    }
}

#[test]
fn more_of_anything_costs_more() {
    let at = |pair: Pair, count: u64, delta: f64| pld(&[(pair, count)]).epsilon(delta);
    let mut last = Bracket::ZERO;
    for count in [1, 2, 10, 100, 1000, 100_000] {
        let found = at(sampled(0.01, 2.0, Remove), count, 1e-6);
        assert!(found.upper() >= last.lower(), "{count}");
        last = found;
    }
    assert!(
        at(laplace(2.0), 5, 1e-6).upper() >= at(laplace(2.1), 5, 1e-6).lower()
            && at(laplace(2.0), 5, 1e-7).upper() >= at(laplace(2.0), 5, 1e-6).lower()
    );
}

#[test]
fn extremes_are_answered() {
    let pairs = [
        gaussian(1e-3),
        gaussian(1e6),
        laplace(1e-3),
        laplace(1e6),
        sampled(1e-9, 0.5, Remove),
        sampled(1.0, 1.0, Add),
        sampled(0.5, 1e3, Replace),
        sampled_laplace(1e-6, 0.01, Add),
        sampled_laplace(0.999, 1.0, Replace),
    ];
    for pair in pairs {
        for count in [1, 1 << 53] {
            let mut pld = pld(&[(pair.clone(), count)]);
            for delta in [1e-300, 0.01] {
                let found = pld.epsilon(delta);
                assert!(
                    found.lower() >= 0.0 && !found.upper().is_nan(),
                    "{pair:?} {count}"
                );
                assert!(
                    found.lower().is_finite(),
                    "{pair:?} {count} {delta}: {found:?}"
                );
            }
            for epsilon in [0.0, 1.0, 1e300, f64::INFINITY] {
                let found = pld.delta(epsilon);
                assert!(
                    found.lower() >= 0.0 && found.upper() <= 1.0,
                    "{pair:?} {count}"
                );
            }
        }
    }
}

#[test]
fn nothing_costs_nothing() {
    let mut none = Pld::new(Vec::new(), Fineness::USUAL);
    assert_eq!(none.epsilon(1e-6), Bracket::ZERO);
    assert_eq!(none.delta(1.0), Bracket::ZERO);
    let mut zero = pld(&[(gaussian(1.0), 0)]);
    assert_eq!(zero.epsilon(1e-6), Bracket::ZERO);
}

/// Noise so small that powers of losses, or losses themselves, are beyond the floats: an answer, and never too small a one.
#[test]
fn tiny_noise_is_answered() {
    let ask = |step: Step, count: u64, delta: f64| {
        let steps = Composition::new(Neighbours::AddRemove, [(step, count)]).expect("in range");
        let asked = std::time::Instant::now();
        let found = steps.epsilon(delta).expect("answered").bounds;
        // Far more than it takes, as machines may be busy.
        assert!(asked.elapsed().as_secs() < 10, "{steps:?} {delta:e}");
        found
    };
    let sensitivity = 1.0;
    for scale in [1e-3, 5e-4, 1e-5, 1e-100, 1e-300, 1e-306, 1e-310] {
        for rate in [1e-300, 0.1, 0.5, 1.0 - 1e-16] {
            // The largest loss: what 1-q adds to q e^(1/b) is below its last digit.
            let most = 1.0 / scale + libm::log(rate);
            for count in [3.0, 10.0] {
                let step = Step::PoissonLaplace {
                    rate,
                    scale,
                    sensitivity,
                };
                let found = ask(step, count as u64, 1e-5);
                let what = format!("{rate:e} {scale:e} {count}: {found:?}");
                // It is seen each time with this chance.
                let seen = libm::pow(rate / 2.0, count);
                let least = count * most + libm::log1p(-1e-5 / seen);
                let fits = seen <= 1e-5 || found.upper() >= least * (1.0 - 1e-12);
                assert!(fits, "{what}: {least}");
                assert!(found.lower() <= count * most * (1.0 + 1e-12), "{what}");
            }
        }
    }
    for scale in [1e-3, 1e-300, 1e-306, 1e-310, 5e-324] {
        let found = ask(Step::Laplace { scale, sensitivity }, 300, 1e-5);
        let most = 300.0 / scale;
        assert!(
            found.lower() <= most && found.upper() >= 0.9 * most,
            "{scale:e}: {found:?}"
        );
    }
}
