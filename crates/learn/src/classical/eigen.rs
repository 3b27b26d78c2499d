//! Symmetric matrices: where their entries stand in a list, and their eigenvectors. Post-processing, in floats.

/// Where the upper triangle of a symmetric matrix of this size stands, row by row.
#[derive(Clone, Copy)]
pub(super) struct Triangle(pub(super) usize);

impl Triangle {
    pub(super) fn entries(self) -> usize {
        self.0 * (self.0 + 1) / 2
    }

    /// The place of an entry, `j <= k` or not.
    pub(super) fn at(self, j: usize, k: usize) -> usize {
        let (j, k) = (j.min(k), j.max(k));
        // Rows before j have size, size - 1, … entries.
        j * (2 * self.0 + 1 - j) / 2 + (k - j)
    }
}

/// Eigenvalues from the largest on, with an eigenvector of length one for each.
pub(super) struct Eigen {
    pub(super) values: Vec<f64>,
    pub(super) vectors: Vec<Vec<f64>>,
}

/// Cyclic sweeps converge quadratically; matrices of a few hundred rows take about ten. What is left after these is as good as it gets.
const SWEEPS_MAX: usize = 40;
/// A sweep that leaves this share of the matrix beside the diagonal is the last.
const REST: f64 = 1e-14;

/// Jacobi's rotations on the symmetric matrix with this upper triangle. [GV13, Sec. 8.5]
pub(super) fn eigen(triangle: Triangle, entries: &[f64]) -> Eigen {
    let size = triangle.0;
    let row = |j: usize| (0..size).map(move |k| entries[triangle.at(j, k)]).collect();
    let mut a: Vec<Vec<f64>> = (0..size).map(row).collect();
    let unit = |j: usize| {
        (0..size)
            .map(move |k| f64::from(u8::from(j == k)))
            .collect()
    };
    let mut vectors: Vec<Vec<f64>> = (0..size).map(unit).collect();
    let norm: f64 = a.iter().flatten().map(|entry| entry * entry).sum();
    for _ in 0..SWEEPS_MAX {
        let beside = (0..size).flat_map(|j| (0..j).map(move |k| (j, k)));
        let beside: f64 = beside.map(|(j, k)| a[j][k] * a[j][k]).sum();
        if beside <= REST * REST * norm {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut a, &mut vectors, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&j, &k| a[k][k].total_cmp(&a[j][j]));
    Eigen {
        values: order.iter().map(|&j| a[j][j]).collect(),
        vectors: order.iter().map(|&j| vectors[j].clone()).collect(),
    }
}

/// Makes the entry at `p, q` zero. The rows of `vectors` are the eigenvectors to be.
fn rotate(a: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    // The smaller of two roots, so that the angle is at most 45 degrees.
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    let turn = |x: &mut f64, y: &mut f64| {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    };
    for row in a.iter_mut() {
        let (left, right) = row.split_at_mut(q);
        turn(&mut left[p], &mut right[0]);
    }
    for rows in [a, vectors] {
        let (above, below) = rows.split_at_mut(q);
        for (x, y) in above[p].iter_mut().zip(below[0].iter_mut()) {
            turn(x, y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::nearly_normal;
    use whit_testkit::SeededBits;

    #[test]
    fn a_matrix_is_its_eigenvectors() {
        let mut bits = SeededBits::new(741);
        for size in [1, 2, 3, 10, 40] {
            let triangle = Triangle(size);
            let entries: Vec<f64> = (0..triangle.entries())
                .map(|_| nearly_normal(&mut bits))
                .collect();
            let Eigen { values, vectors } = eigen(triangle, &entries);
            assert!(values.is_sorted_by(|a, b| a >= b));
            for j in 0..size {
                for k in 0..size {
                    let sum = |scale: &dyn Fn(usize) -> f64| -> f64 {
                        (0..size)
                            .map(|i| scale(i) * vectors[i][j] * vectors[i][k])
                            .sum()
                    };
                    let entry = sum(&|i| values[i]);
                    assert!((entry - entries[triangle.at(j, k)]).abs() < 1e-11, "{size}");
                    let unit = sum(&|_| 1.0);
                    assert!((unit - f64::from(u8::from(j == k))).abs() < 1e-12, "{size}");
                }
            }
        }
    }

    /// `[[2, 1], [1, 2]]` has 3 and 1; and places of a triangle are all different.
    #[test]
    fn closed_form() {
        let found = eigen(Triangle(2), &[2.0, 1.0, 2.0]);
        assert!((found.values[0] - 3.0).abs() < 1e-14 && (found.values[1] - 1.0).abs() < 1e-14);
        let zero = eigen(Triangle(3), &[0.0; 6]);
        assert_eq!(zero.values, [0.0; 3]);
        let triangle = Triangle(5);
        let mut places: Vec<_> = (0..5)
            .flat_map(|j| (j..5).map(move |k| triangle.at(k, j)))
            .collect();
        places.sort_unstable();
        assert_eq!(places, (0..triangle.entries()).collect::<Vec<_>>());
    }
}
