//! Few frequencies against all of them.

use super::*;
use crate::convolve::compose;

/// A law with a wide bump and a narrow one.
fn bumps(count: usize) -> Vec<f64> {
    let raw: Vec<f64> = (0..count)
        .map(|i| {
            let x = i as f64 / count as f64;
            (-80.0 * (x - 0.3).powi(2)).exp() + 0.5 * (-4000.0 * (x - 0.6).powi(2)).exp()
        })
        .collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|x| x / sum).collect()
}

fn factors<'a>(parts: &[(&'a [f64], &'a [f64], u64)]) -> Vec<Factor<'a>> {
    let each = parts.iter().map(|&(upper, lower, count)| Factor {
        upper,
        lower,
        count,
    });
    each.collect()
}

/// Around the circle until weights have vanished.
fn summed(circle: &[f64], place: usize, weight: impl Fn(f64) -> f64) -> f64 {
    let each = (1..200_000).map(|m| circle[(place + m) % circle.len()] * weight(m as f64));
    each.sum()
}

#[test]
fn series_of_few_waves_are_sums_over_the_circle() {
    let size = 8192;
    let (a, b, c) = (bumps(50), bumps(61), bumps(300));
    for parts in [
        vec![(&a[..], &b[..], 1000)],
        vec![(&a[..], &b[..], 77), (&c[..], &c[..], 60)],
        vec![(&b[..], &a[..], 1 << 30)],
    ] {
        let factors = factors(&parts);
        let spectrum = Spectrum::new(&factors, size).expect("a smooth law");
        assert!(spectrum.waves.len() < size / 16, "{}", spectrum.waves.len());
        let all = compose(&factors, size);
        let sides = [
            (Side::Upper, &all.upper, all.upper_error),
            (Side::Lower, &all.lower, all.lower_error),
        ];
        for (side, circle, error) in sides {
            for (rate, step) in [(1e-3, 2e-3), (0.1, 0.5)] {
                let slow = |m: f64| (-rate * m).exp();
                let fast = |m: f64| (-(rate + step) * m).exp();
                let profile = |m: f64| slow(m) - fast(m);
                let cases: [(Fall, &dyn Fn(f64) -> f64); 3] = [
                    (Fall::Power(rate), &slow),
                    (Fall::Power(rate + step), &fast),
                    (Fall::Profile(rate, step), &profile),
                ];
                for (fall, weight) in cases {
                    let series = spectrum.series(side, fall).expect("usual rates");
                    for place in [0, 1, 999, 4096, 8191] {
                        let found = spectrum.at(&series, place);
                        let truth = summed(circle, place, weight);
                        // What the transform of the whole circle errs by, and the sum.
                        let room = error / rate + 1e-13 * truth;
                        assert!(
                            found.lower() <= truth + room && truth - room <= found.upper(),
                            "{fall:?} {place}: {found:?} {truth}"
                        );
                        assert!(series.error < 1e-8 / rate || parts[0].2 > 1 << 20);
                    }
                }
            }
        }
    }
}

/// Whatever is not listed is below what is said, also where moduli come back far from zero.
#[test]
fn what_is_left_out_is_negligible() {
    let size = 16_384;
    let comb: Vec<f64> = {
        let tooth = |i: usize| if i.is_multiple_of(15) { 1.0 } else { 1e-4 };
        let raw: Vec<f64> = (0..400).map(tooth).collect();
        let sum: f64 = raw.iter().sum();
        raw.iter().map(|x| x / sum).collect()
    };
    let mut resonant = 0;
    for (masses, count) in [
        (bumps(50), 200),
        (bumps(50), 1_000_000),
        (bumps(400), 150),
        (comb, 1000),
    ] {
        let factors = factors(&[(&masses, &masses, count)]);
        let lists: Vec<DotList> = factors.iter().map(DotList::new).collect();
        let roots = RootTable::new(size);
        let usual = folded(&lists, size);
        // Peaks are far narrower than intervals between the frequencies of the smallest circle.
        for places in [usual, FOLDED.0] {
            let found = audible(&lists, size, places, size).expect("there is room");
            if places == usual {
                assert!(found.len() < size / 2, "{count}");
                resonant += usize::from(found.last() > Some(&(size / 4)));
            }
            for frequency in 0..=size / 2 {
                if found.binary_search(&frequency).is_err() {
                    let (x, y) = lists[0].at(&roots, frequency, size)[0];
                    let ln_modulus = 0.5 * (x * x + y * y).ln() * count as f64;
                    assert!(ln_modulus <= -LEFT_OUT, "{frequency}: {ln_modulus}");
                }
            }
        }
    }
    assert_eq!(resonant, 1);
}

/// Where no frequency vanishes, on small circles, and for far more masses than places, the whole circle is transformed.
#[test]
fn a_law_that_is_not_smooth_has_no_few_waves() {
    let point = [0.0, 1.0];
    assert!(Spectrum::new(&factors(&[(&point, &point, 1 << 20)]), 1 << 14).is_none());
    let smooth = bumps(50);
    assert!(Spectrum::new(&factors(&[(&smooth, &smooth, 1000)]), 1 << 10).is_none());
    assert!(Spectrum::new(&factors(&[(&smooth, &smooth, 3)]), 1 << 14).is_none());
    let many = bumps(1 << 16);
    assert!(Spectrum::new(&factors(&[(&many, &many, 1000)]), 1 << 14).is_none());
    let unknown = [0.5, f64::INFINITY, 0.5];
    assert!(Spectrum::new(&factors(&[(&unknown, &smooth, 1000)]), 1 << 14).is_none());
}

#[test]
fn rates_that_floats_do_not_serve_have_no_series() {
    let smooth = bumps(50);
    let spectrum = Spectrum::new(&factors(&[(&smooth, &smooth, 1000)]), 1 << 14).expect("smooth");
    for fall in [
        Fall::Power(0.0),
        Fall::Power(f64::NAN),
        Fall::Power(100.0),
        Fall::Profile(1.0, 1e-200),
        Fall::Profile(40.0, 40.0),
    ] {
        assert!(spectrum.series(Side::Upper, fall).is_none(), "{fall:?}");
    }
}
