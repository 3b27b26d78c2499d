//! Both products against their formula, and the bits of a row wherever it stands.

use super::*;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0;
    (0..count).map(number).collect()
}

/// `Σ_k a(i, k) b(k, j)` in `f64`.
fn reference(
    (rows, depth, columns): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        (0..depth)
            .map(|k| f64::from(a(i, k)) * f64::from(b(k, j)))
            .sum::<f64>()
    };
    (0..rows)
        .flat_map(|i| (0..columns).map(move |j| (i, j)))
        .map(|(i, j)| entry(i, j))
        .collect()
}

fn assert_close(one: &[f32], other: &[f64], depth: usize) {
    for (&one, &other) in one.iter().zip(other) {
        assert!(
            (f64::from(one) - other).abs() <= 1e-7 * (depth + 2) as f64,
            "{one} {other}"
        );
    }
}

#[test]
fn products_of_all_shapes_are_those_of_the_formula() {
    for rows in [1, 2, 3, 7, 8, 13, 32] {
        for depth in [1, 5, 40] {
            for columns in [1, 10, 16, 17, 32, 47, 48, 49, 64, 100] {
                let (a, b) = (numbers(rows * depth, 1), numbers(depth * columns, 2));
                let right = |k: usize, j: usize| b[k * columns + j];
                let shape = (rows, depth, columns);
                let expected = reference(shape, |i, k| a[i * depth + k], right);
                let mut panels = Panels::default();
                panels.pack(&b, columns);
                let mut out = vec![f32::NAN; rows * columns];
                multiply(&a, &panels, Start::Zero, &mut out);
                assert_close(&out, &expected, depth);

                // The transpose of the transpose packs the same.
                let across: Vec<f32> = (0..columns * depth)
                    .map(|i| right(i % depth, i / depth))
                    .collect();
                let mut other = Panels::default();
                other.pack_transposed(&across, depth);
                assert!(other.floats == panels.floats);

                let start = numbers(columns, 3);
                let mut started = vec![f32::NAN; rows * columns];
                multiply(&a, &panels, Start::Row(&start), &mut started);
                let sums = expected.iter().enumerate();
                let sums = sums.map(|(at, x)| x + f64::from(start[at % columns]));
                assert_close(&started, &sums.collect::<Vec<_>>(), depth);

                let expected = reference(shape, |i, k| a[k * rows + i], right);
                multiply_transposed(&a, &panels, &mut out);
                assert_close(&out, &expected, depth);
                let mut added = vec![1.0; rows * columns];
                add_transposed(&a, &panels, &mut added);
                let mut wide = vec![1.0; rows * columns];
                add_transposed_wide(&a, &panels, &mut wide);
                for at in 0..rows * columns {
                    assert_eq!(added[at], 1.0 + out[at]);
                    assert!((wide[at] - 1.0 - expected[at]).abs() < 1e-12);
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_wherever_it_stands() {
    let (depth, columns) = (37, 70);
    let mut panels = Panels::default();
    panels.pack(&numbers(depth * columns, 4), columns);
    let row = numbers(depth, 5);
    let mut alone = vec![0.0; columns];
    multiply(&row, &panels, Start::Zero, &mut alone);
    for rows in [2, 5, 8, 13, 32] {
        for place in 0..rows {
            let mut a = numbers(rows * depth, rows + place);
            a[place * depth..(place + 1) * depth].copy_from_slice(&row);
            let mut out = vec![0.0; rows * columns];
            multiply(&a, &panels, Start::Zero, &mut out);
            assert!(out[place * columns..(place + 1) * columns] == alone);
        }
    }
}

#[test]
fn panels_are_packed_anew_in_the_same_memory() {
    let mut panels = Panels::default();
    for columns in [20, 50, 20, 20] {
        let b = numbers(3 * columns, columns);
        panels.pack(&b, columns);
        let mut out = vec![0.0; columns];
        multiply(&[0.0, 1.0, 0.0], &panels, Start::Zero, &mut out);
        assert!(out == b[columns..2 * columns]);
    }
}

#[test]
fn every_width_of_vectors_gives_the_same_product() {
    for (rows, depth, columns) in [(13, 9, 70), (8, 20, 48), (5, 3, 10), (1, 4, 33)] {
        let (a, b) = (numbers(rows * depth, 6), numbers(depth * columns, 7));
        let mut panels = Panels::default();
        panels.pack(&b, columns);
        let mut usual = vec![0.0; rows * columns];
        multiply(&a, &panels, Start::Zero, &mut usual);
        let run = |out: &mut [f32], machine: &dyn Fn(Product<ByRow>)| {
            machine(Product {
                left: ByRow(&a, depth),
                right: &panels,
                rows,
                start: Start::Zero,
                add: false,
                out,
            });
        };
        // Without fused operations every product is rounded too.
        let mut plain = vec![f32::NAN; rows * columns];
        run(&mut plain, &|product| {
            pulp::Scalar::new().vectorize(product)
        });
        let usual_wide: Vec<f64> = usual.iter().map(|&x| f64::from(x)).collect();
        assert_close(&plain, &usual_wide, depth);
        #[cfg(target_arch = "x86_64")]
        if let Some(machine) = pulp::x86::V3::try_new() {
            let mut narrow = vec![f32::NAN; rows * columns];
            run(&mut narrow, &|product| Simd::vectorize(machine, product));
            assert!(narrow == usual);
        }
    }
}
