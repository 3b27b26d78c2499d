//! Both products against their formula, and the bits of a row wherever it stands.

use super::*;
use crate::aligned::Aligned;
use pulp::Simd;

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

/// All floats, the padding included.
fn all(panels: &Panels) -> Vec<f32> {
    panels::firsts(panels.columns)
        .flat_map(|(first, _)| panels.panel(first).to_vec())
        .collect()
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
                // In memory that was used before: what is padding must be written, too.
                let mut other = Panels::default();
                other.pack(
                    &vec![f32::NAN; 2 * depth * (columns + BLOCK)],
                    2 * (columns + BLOCK),
                );
                other.pack_transposed(&across, depth, 1);
                assert!(all(&other) == all(&panels));

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
                if columns % BLOCK == 0 {
                    let mut other = vec![1.0; rows * columns];
                    add_transposed_unpacked(&a, &b, columns, &mut other);
                    assert!(other == added);
                }
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
    for rows in [2, 5, 8, 13, 32, 64] {
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
        let run = |out: &mut [f32], machine: &dyn Fn(Product<ByRow, false>)| {
            let (left, right, start) = (&a, &panels, Start::Zero);
            machine(Product {
                factors: ByRow { left, right, start },
                rows: 0..rows,
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

#[test]
fn threads_pack_the_same_panels() {
    // Large enough to be shared, and with a last panel that is padded.
    let (depth, columns) = (301, 1003);
    let rows = numbers(depth * columns, 8);
    let (mut one, mut other) = (Panels::default(), Panels::default());
    one.pack_transposed(&rows, depth, 1);
    other.pack_transposed(&rows, depth, 3);
    assert!(all(&one) == all(&other));
}

/// `Σ_b A_bᵀ B_b` in `f64`, and the entries of one row whatever rows are asked for with it.
#[test]
fn joint_products_are_those_of_the_formula() {
    for (rows, columns) in [(1, 1), (8, 48), (13, 70), (40, 100)] {
        let depths = [3, 32, 1, 20, 7];
        let (mut strips, mut panels, mut lying) = (Vec::new(), Vec::new(), Vec::new());
        let mut expected = vec![0.0; rows * columns];
        for (seed, depth) in depths.into_iter().enumerate() {
            let (a, b) = (
                numbers(depth * rows, seed),
                numbers(depth * columns, 9 + seed),
            );
            let (mut left, mut right) = (Strips::default(), Panels::default());
            left.pack_scaled(&a, &vec![1.0; depth]);
            right.pack(&b, columns);
            strips.push(left);
            panels.push(right);
            lying.push(Aligned::copied(&b));
            let shape = (rows, depth, columns);
            let terms = reference(shape, |i, k| a[k * rows + i], |k, j| b[k * columns + j]);
            expected
                .iter_mut()
                .zip(&terms)
                .for_each(|(sum, x)| *sum += x);
        }
        let blocks: Vec<_> = strips.iter().zip(&panels).collect();
        let mut out = vec![f32::NAN; rows * columns];
        add_up(&blocks, 0..rows, &mut out);
        assert_close(&out, &expected, depths.iter().sum());
        let lying = lying.iter().map(|floats| {
            let floats = floats.with_spare();
            Rows { floats, columns }
        });
        let mut same = vec![f32::NAN; rows * columns];
        let lying: Vec<_> = strips.iter().zip(lying).collect();
        add_up(&lying, 0..rows, &mut same);
        assert!(same == out, "packed or not");
        for first in (0..rows).step_by(STRIP) {
            let mut some = vec![f32::NAN; (rows - first).min(3) * columns];
            let range = first..first + some.len() / columns;
            add_up(&blocks, range, &mut some);
            assert!(some == out[first * columns..][..some.len()]);
        }
        let mut plain = vec![f32::NAN; rows * columns];
        let joint = Product::<_, false> {
            factors: Joint { blocks: &blocks },
            rows: 0..rows,
            out: &mut plain,
        };
        pulp::Scalar::new().vectorize(joint);
        assert_close(&plain, &expected, depths.iter().sum());
    }
    let mut none = [f32::NAN; 4];
    add_up::<&Panels>(&[], 0..2, &mut none);
    assert_eq!(none, [0.0; 4]);
}
