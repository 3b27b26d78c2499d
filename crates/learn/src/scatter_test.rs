use super::cascade::{Pictures, Space};
use super::filter::{SIZE, turn};
use super::*;
use pulp::{Scalar, WithSimd};
use std::f64::consts::{PI, TAU};
use whit_core::Fault;

fn scattering(height: usize, width: usize, levels: usize, angles: usize) -> Scattering {
    Scattering::new(height, width, levels, angles).expect("in range")
}

fn features(scattering: &Scattering, images: &[f32]) -> Vec<f32> {
    let one: usize = scattering.output_shape().iter().product();
    let mut out = vec![f32::NAN; images.len() / scattering.pixels * one];
    scattering
        .transform(images, &mut out)
        .expect("whole pictures");
    out
}

/// The pictures of the vectors.
fn picture(kind: &str, height: usize, width: usize) -> Vec<f32> {
    let pixel = |at: usize| {
        let (r, c) = (at / width, at % width);
        match kind {
            "quadratic" => ((31 * r * r + 17 * c * c + 7 * r * c + 3 * r) % 101) as f32 / 101.0,
            _ => {
                let inside = (3 * r).abs_diff(40).pow(2) + (3 * c).abs_diff(33).pow(2) < 500;
                f32::from(u8::from(inside)) + ((r + 2 * c) % 5) as f32 / 8.0
            }
        }
    };
    (0..height * width).map(pixel).collect()
}

/// Pixels without a pattern, others for each seed.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / 4_294_967_296.0
    };
    (0..len).map(|_| next()).collect()
}

fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |most, x| x.abs().max(most))
}

#[test]
fn numbers_are_those_of_kymatio() {
    let text = include_str!("../../../vectors/scattering.json");
    let file: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let tolerance = file["tolerance_of_largest"].as_f64().expect("a number");
    for case in file["cases"].as_array().expect("a list") {
        let [height, width, levels, angles, every] =
            ["height", "width", "levels", "angles", "every"]
                .map(|field| case[field].as_u64().expect("a number") as usize);
        let scattering = scattering(height, width, levels, angles);
        assert_eq!(serde_json::json!(scattering.output_shape()), case["shape"]);
        let kind = case["picture"].as_str().expect("a word");
        let out = features(&scattering, &picture(kind, height, width));
        let bound = tolerance * case["largest"].as_f64().expect("a number");
        let values = case["values"].as_array().expect("a list");
        assert_eq!(values.len(), out.len().div_ceil(every));
        for (at, (x, value)) in out.iter().step_by(every).zip(values).enumerate() {
            let value = value.as_f64().expect("a number");
            let error = (f64::from(*x) - value).abs();
            assert!(
                error <= bound,
                "{kind} {height}x{width}, {at}: {x} for {value}"
            );
        }
    }
}

/// Scattering by its definition, in double precision: filters and pictures on the plane, and sums over all pixels.
mod definition {
    use super::*;

    pub(super) struct Field {
        pub(super) sides: [usize; 2],
        pub(super) values: Vec<f64>,
    }

    /// `|x ⋆ ψ|` at every `step`-th pixel, the wavelet sampled on a grid whose pixels are `pixel` wide.
    pub(super) fn wavelet(x: &Field, scale: usize, theta: f64, slant: f64, step: usize) -> Field {
        let [height, width] = x.sides;
        let octave = f64::from(1 << scale);
        let (sigma, xi) = (0.8 * octave, 3.0 * PI / 4.0 / octave);
        let mut kernel = vec![[0.0; 3]; height * width];
        for row in -2 * height as i64..3 * height as i64 {
            for column in -2 * width as i64..3 * width as i64 {
                let (r, c) = (row as f64, column as f64);
                let along = r * theta.cos() + c * theta.sin();
                let across = -r * theta.sin() + c * theta.cos();
                let square = along.powi(2) + (slant * across).powi(2);
                let size = slant / (SIZE * sigma * sigma) * (-square / (2.0 * sigma * sigma)).exp();
                let at = row.rem_euclid(height as i64) as usize * width
                    + column.rem_euclid(width as i64) as usize;
                kernel[at][0] += size * (xi * along).cos();
                kernel[at][1] += size * (xi * along).sin();
                kernel[at][2] += size;
            }
        }
        let sum = |part: usize| kernel.iter().map(|k| k[part]).sum::<f64>();
        let means = [sum(0) / sum(2), sum(1) / sum(2)];
        let sides = x.sides.map(|side| side / step);
        let value = |at: usize| {
            let (row, column) = (step * (at / sides[1]), step * (at % sides[1]));
            let mut parts = [0.0; 2];
            for (from, x) in x.values.iter().enumerate() {
                let r = (row + height - from / width) % height;
                let c = (column + width - from % width) % width;
                let k = kernel[r * width + c];
                parts[0] += x * (k[0] - means[0] * k[2]);
                parts[1] += x * (k[1] - means[1] * k[2]);
            }
            parts[0].hypot(parts[1])
        };
        let values = (0..sides[0] * sides[1]).map(value).collect();
        Field { sides, values }
    }

    /// The Gaussian along both sides, on the grid of this level, at the pixels that are kept; each side's response has the frequencies of the
    /// fine grid that the coarse one has, the lowest of them negative.
    pub(super) fn low_pass(x: &Field, level: usize, levels: usize) -> Vec<f64> {
        let sigma = 0.8 * f64::from(1 << (levels - 1));
        let kernels = x.sides.map(|side| {
            let fine = side << level;
            let response = |k: i64| {
                let terms = (-2 * fine as i64..3 * fine as i64).map(|at| {
                    let size = (-(at as f64 / sigma).powi(2) / 2.0).exp() / (SIZE.sqrt() * sigma);
                    size * (TAU * (k * at) as f64 / fine as f64).cos()
                });
                terms.sum::<f64>()
            };
            let half = side as i64 / 2;
            let responses: Vec<f64> = (-half..side as i64 - half).map(response).collect();
            let kernel = |at: usize| {
                let terms = responses.iter().enumerate().map(|(k, x)| {
                    let (cos, _) = turn((k + side - half as usize) * at, side);
                    x * cos
                });
                terms.sum::<f64>() / side as f64
            };
            (0..side).map(kernel).collect::<Vec<f64>>()
        });
        let step = 1 << (levels - level);
        let [rows, columns] = x.sides;
        let mut out = Vec::new();
        for row in (step..rows - step).step_by(step) {
            for column in (step..columns - step).step_by(step) {
                let terms = x.values.iter().enumerate().map(|(from, x)| {
                    let r = (row + rows - from / columns) % rows;
                    let c = (column + columns - from % columns) % columns;
                    x * kernels[0][r] * kernels[1][c]
                });
                out.push(terms.sum());
            }
        }
        out
    }
}

#[test]
fn numbers_are_those_of_the_definition() {
    use definition::{Field, low_pass, wavelet};
    let (height, width, angles) = (9, 14, 3);
    let image = noise(5, height * width);
    // 16 rows and 20 columns: 3 pixels before and 4 after the rows, 3 and 3 at the columns.
    let reflected = |at: i64, side: i64| (side - 1 - (side - 1 - at.abs()).abs()) as usize;
    let pixel = |at: usize| {
        let row = reflected((at / 20) as i64 - 3, 9);
        image[row * width + reflected((at % 20) as i64 - 3, 14)]
    };
    let padded = Field {
        sides: [16, 20],
        values: (0..16 * 20).map(|at| f64::from(pixel(at))).collect(),
    };
    let theta = |angle: usize| (0.0 - angle as f64) * PI / 3.0;
    let slant = 4.0 / 3.0;
    let [mut first, mut second] = [Vec::new(), Vec::new()];
    for (scale, angle) in (0..2).flat_map(|scale| (0..angles).map(move |angle| (scale, angle))) {
        let field = wavelet(&padded, scale, theta(angle), slant, 1 << scale);
        first.extend(low_pass(&field, scale, 2));
        for next in (0..angles).filter(|_| scale == 0) {
            let field = wavelet(&field, 1, theta(next), slant, 2);
            second.extend(low_pass(&field, 1, 2));
        }
    }
    let truth = [low_pass(&padded, 0, 2), first, second].concat();
    let scattering = scattering(height, width, 2, angles);
    assert_eq!(scattering.output_shape(), [1 + 6 + 9, 2, 3]);
    let out = features(&scattering, &image);
    assert_eq!(out.len(), truth.len());
    for (at, (x, y)) in out.iter().zip(&truth).enumerate() {
        let error = (f64::from(*x) - y).abs();
        assert!(
            error <= 1e-6 * f64::from(largest(&out)),
            "{at}: {x} for {y}"
        );
    }
}

#[test]
fn features_are_bitwise_of_one_picture_alone() {
    let scattering = scattering(12, 10, 2, 4);
    let pixels = scattering.pixels;
    let image = noise(1, pixels);
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let alone = bits(&features(&scattering, &image));
    for (count, at) in [(2, 0), (16, 15), (17, 16), (40, 21), (130, 129), (130, 64)] {
        for neighbour in [0.0, 1e30, f32::NAN, f32::INFINITY, 0.3] {
            let mut images = noise(count as u32, count * pixels);
            images.iter_mut().for_each(|x| *x *= neighbour);
            images[at * pixels..][..pixels].copy_from_slice(&image);
            let out = features(&scattering, &images);
            assert!(bits(&out[at * alone.len()..][..alone.len()]) == alone);
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let scattering = scattering(8, 9, 1, 3);
    let images = noise(3, 300 * scattering.pixels);
    let one = features(&scattering, &images);
    for threads in [2, 3, 9] {
        let mut out = vec![f32::NAN; one.len()];
        let threads = NonZeroUsize::new(threads).expect("not zero");
        let done = scattering.transform_on(threads, &images, &mut out);
        assert!(
            done.is_ok()
                && out
                    .iter()
                    .zip(&one)
                    .all(|(x, y)| x.to_bits() == y.to_bits())
        );
    }
}

#[test]
fn machines_without_vectors_come_close() {
    let scattering = scattering(28, 28, 2, 8);
    let images = noise(4, 3 * scattering.pixels);
    let out = features(&scattering, &images);
    let mut scalar = vec![f32::NAN; out.len()];
    let pictures = Pictures {
        cascade: &scattering.cascade,
        images: &images,
        out: &mut scalar,
        space: &mut Space::default(),
    };
    pictures.with_simd(Scalar::new());
    let far = out.iter().zip(&scalar).map(|(x, y)| (x - y).abs());
    assert!(far.fold(0.0, f32::max) < 2e-6 * largest(&out));
}

#[test]
fn constants_have_their_mean_and_nothing_else() {
    let scattering = scattering(28, 28, 2, 8);
    let out = features(&scattering, &[0.75; 28 * 28]);
    assert!(out[..49].iter().all(|x| (x - 0.750_022).abs() < 1e-6));
    assert!(largest(&out[49..]) < 1e-6);
    assert!(largest(&features(&scattering, &[0.0; 28 * 28])) == 0.0);
}

/// Far from the edges, features move with the picture by whole pixels of the output, and change little by less. They scale with it.
#[test]
fn features_move_and_scale_with_pictures() {
    let scattering = scattering(40, 40, 2, 4);
    let blob = |row: f32, column: f32, size: f32| -> Vec<f32> {
        let pixel = |at: usize| {
            let (r, c) = ((at / 40) as f32 - row, (at % 40) as f32 - column);
            size * (-(r * r + 2.0 * c * c + r * c) / 5.0).exp()
        };
        (0..1600).map(pixel).collect()
    };
    let out = features(&scattering, &blob(20.0, 20.0, 1.0));
    let moved = features(&scattering, &blob(24.0, 16.0, 1.0));
    let nearby = features(&scattering, &blob(21.0, 20.0, 1.0));
    let scaled = features(&scattering, &blob(20.0, 20.0, 3.0));
    let channels = scattering.channels();
    assert_eq!(out.len(), channels * 100);
    let (mut change, mut size) = (0.0, 0.0);
    for channel in 0..channels {
        for (row, column) in (2..7).flat_map(|row| (3..8).map(move |column| (row, column))) {
            let at = channel * 100 + row * 10 + column;
            let x = out[at];
            assert!((x - moved[at + 10 - 1]).abs() < 2e-4 * largest(&out));
            assert!((3.0 * x - scaled[at]).abs() < 1e-5 * largest(&out));
            change += (x - nearby[at]).powi(2);
            size += x * x;
        }
    }
    assert!(change < 0.2 * size, "{change} of {size}");
}

#[test]
fn what_cannot_be_scattered_is_refused_with_what_would_pass() {
    let refusal = |height, width, levels, angles| {
        let error = Scattering::new(height, width, levels, angles).err();
        let error = error.expect("refused");
        format!("{error}; {}", error.suggestion())
    };
    assert_eq!(
        refusal(4, 28, 2, 8),
        "pictures of 4 by 28 pixels are too small to be scattered at 2 levels; give pictures with sides of at least 5 pixels, or fewer levels"
    );
    assert_eq!(
        refusal(28, 28, 0, 8),
        "levels is 0, and must be from 1 to 8; give levels as from 1 to 8"
    );
    assert!(refusal(28, 28, 2, 0).starts_with("angles is 0"));
    assert!(refusal(28, 2000, 2, 8).starts_with("the width of pictures is 2000"));
    assert!(Scattering::new(5, 5, 2, 8).is_ok());
    let scattering = scattering(5, 6, 2, 1);
    assert_eq!(scattering.output_shape(), [1 + 2 + 1, 1, 1]);
    let mut room = [0.0; 4];
    let whole = scattering.transform(&[0.0; 31], &mut room);
    let room_for_two = scattering.transform(&[0.0; 60], &mut room);
    for error in [whole, room_for_two] {
        let error = error.expect_err("refused");
        assert_eq!(error.code(), "other_pictures");
        assert!(error.suggestion().contains("room for 4 numbers for each"));
    }
    assert!(scattering.transform(&[], &mut []).is_ok());
}
