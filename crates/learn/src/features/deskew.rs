//! # Pictures set upright
//! **Definition.** What a pixel has above the least pixel of its plane, summed over planes, is its weight; the picture's slant is `a = μ_xy/μ_yy`, its second moments about the centre of its weight, from -1 to 1. The picture becomes one whose
//!   pixel in row `y` and column `x`, counted from the middle, is what it had at row `y` and column `x + a y` from the centre of its weight, linear between four pixels; beyond the edge is the least pixel of the plane.
//!   The new picture has a slant near zero, and the centre of its weight is in the middle. Writers slant their digits each in another way, which says nothing about which digit it is. \[LBBH98, Sec. III\]
//!   Teachers of PATE see pictures by another rule (`pate/upright.rs`), with the same [`Moments`] and the same [`Pose::upright`].
//! **Privacy.** It needs none: a fixed map of one example to one example, as [`crate::scatter`] has it. Each picture is mapped by itself, in one order of operations.
//! **Total.** A picture without weight, or with all of it in one row, or whose moments are not finite, stays as it is: a function of itself. Pixels that are not finite make features that are not, and an empty example.
//!   What is not is between pixels that were there: interpolation cannot make numbers larger.

/// A picture that is nearly a level line has a slant of any size; this is 45 degrees.
const SLANT_MAX: f64 = 1.0;

/// Less of a second moment than this, in squares of pixels, is that of one row.
const UPRIGHT_MIN: f64 = 1e-6;

/// Sets one picture upright, whose planes have rows of this width.
pub(super) fn deskew(picture: &mut [f32], plane: usize, width: usize) {
    let Some(pose) = pose(picture, plane, width) else {
        return;
    };
    let mut given = vec![0.0; plane];
    for plane in picture.chunks_exact_mut(plane) {
        given.copy_from_slice(plane);
        pose.upright(&given, plane, width, least(&given));
    }
}

/// None if there is none.
fn pose(picture: &[f32], plane: usize, width: usize) -> Option<Pose> {
    let mut weights = vec![0.0; plane];
    for plane in picture.chunks_exact(plane) {
        let least = least(plane);
        for (weight, pixel) in weights.iter_mut().zip(plane) {
            *weight += f64::from(*pixel) - least;
        }
    }
    let moments = Moments::of(&weights, width);
    let slant = moments.slant();
    // Nothing over nothing is no number, and above nothing.
    (slant.is_finite() && moments.upright > UPRIGHT_MIN).then_some(Pose {
        centre: moments.centre,
        slant: slant.clamp(-SLANT_MAX, SLANT_MAX),
    })
}

/// Where weight is in a plane, in pixels: rows and columns. Not numbers if there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) total: f64,
    pub(crate) centre: [f64; 2],
    /// `μ_yy`, the mean square of how far weight is above or below the centre.
    pub(crate) upright: f64,
    /// `μ_xy`.
    mixed: f64,
}

impl Moments {
    pub(crate) fn of(weights: &[f64], width: usize) -> Self {
        let total: f64 = weights.iter().sum();
        let mean = |value: &dyn Fn(f64, f64) -> f64| {
            let places =
                (0..weights.len()).map(|at| value((at / width) as f64, (at % width) as f64));
            let weighted = weights.iter().zip(places).map(|(weight, at)| weight * at);
            weighted.sum::<f64>() / total
        };
        let centre = [mean(&|y, _| y), mean(&|_, x| x)];
        let [row, column] = centre;
        let upright = mean(&|y, _| (y - row).powi(2));
        let mixed = mean(&|y, x| (y - row) * (x - column));
        Self {
            total,
            centre,
            upright,
            mixed,
        }
    }

    /// `a`.
    pub(crate) fn slant(self) -> f64 {
        self.mixed / self.upright
    }
}

/// Where the middle of a picture is to come from, and how it leans: rows and columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pose {
    pub(crate) centre: [f64; 2],
    pub(crate) slant: f64,
}

impl Pose {
    /// The plane as it is when set upright, where all pixels beyond its edge are this.
    pub(crate) fn upright(self, given: &[f32], out: &mut [f32], width: usize, beyond: f64) {
        let height = given.len() / width;
        let pixel = |row: f64, column: f64| {
            let is_inside =
                (0.0..height as f64).contains(&row) && (0.0..width as f64).contains(&column);
            match is_inside {
                true => f64::from(given[row as usize * width + column as usize]),
                false => beyond,
            }
        };
        let middle = [height, width].map(|side| (side as f64 - 1.0) / 2.0);
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let up = row as f64 - middle[0];
            let from_row = self.centre[0] + up;
            let from_start = self.centre[1] - middle[1] + self.slant * up;
            let (above, lower) = (from_row.floor(), from_row - from_row.floor());
            for (column, out) in out.iter_mut().enumerate() {
                let from = from_start + column as f64;
                let (left, righter) = (from.floor(), from - from.floor());
                let line = |row: f64| {
                    let [one, other] = [left, left + 1.0].map(|column| pixel(row, column));
                    one + righter * (other - one)
                };
                let [one, other] = [above, above + 1.0].map(line);
                *out = (one + lower * (other - one)) as f32;
            }
        }
    }
}

/// The least pixel; no number if one of them is none.
fn least(plane: &[f32]) -> f64 {
    let least = plane
        .iter()
        .fold(f32::INFINITY, |least, pixel| match pixel.is_nan() {
            true => f32::NAN,
            false if least.is_nan() => least,
            false => least.min(*pixel),
        });
    f64::from(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: usize = 16;

    /// A stroke three pixels wide that leans by so many columns a row, off the middle, as wide on each row as on the others.
    fn stroke(slant: f64) -> Vec<f32> {
        let pixel = |at: usize| {
            let (row, column) = ((at / SIDE) as f64, (at % SIDE) as f64);
            let off = (column - 6.0 - slant * (row - 7.0)).abs();
            match (3.0..12.0).contains(&row) {
                true => (2.0 - off).clamp(0.0, 1.0) as f32,
                false => 0.0,
            }
        };
        (0..SIDE * SIDE).map(pixel).collect()
    }

    fn deskewed(mut picture: Vec<f32>, plane: usize) -> Vec<f32> {
        deskew(&mut picture, plane, SIDE);
        picture
    }

    fn pose_of(picture: &[f32]) -> Pose {
        pose(picture, picture.len(), SIDE).expect("weight in several rows")
    }

    #[test]
    fn closed_form() {
        // Two pixels: the line through them has their slant, and their mean is the centre.
        let mut picture = vec![0.0; SIDE * SIDE];
        (picture[4 * SIDE + 3], picture[8 * SIDE + 5]) = (0.5, 0.5);
        let found = pose_of(&picture);
        assert_eq!((found.centre, found.slant), ([6.0, 4.0], 0.5));
        // From (6, 4) to (7.5, 7.5): rows and columns between pixels are shared by two each, but for the column, which the slant moves by one pixel up and one down.
        let upright = deskewed(picture, SIDE * SIDE);
        let at = |row: usize, column: usize| upright[row * SIDE + column];
        assert!((upright.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        for row in [5, 6, 9, 10] {
            let line: f32 = (0..SIDE).map(|column| at(row, column)).sum();
            assert!((line - 0.25).abs() < 1e-6, "{row}: {line}");
        }
        assert!(pose_of(&upright).slant.abs() < 0.1);
    }

    #[test]
    fn strokes_become_upright_and_come_to_the_middle() {
        let straight = deskewed(stroke(0.0), SIDE * SIDE);
        for slant in [-0.9, -0.5, 0.3, 0.7] {
            let leaning = stroke(slant);
            assert!((pose_of(&leaning).slant - slant).abs() < 0.05);
            let upright = deskewed(leaning, SIDE * SIDE);
            let found = pose_of(&upright);
            assert!(found.slant.abs() < 0.05, "{found:?}");
            for centre in found.centre {
                assert!((centre - 7.5).abs() < 0.05, "{found:?}");
            }
            let off = upright.iter().zip(&straight).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f32::max) < 0.3, "{slant}");
        }
        let flat = Pose {
            centre: [7.5; 2],
            slant: 0.0,
        };
        let mut same = vec![0.0; SIDE * SIDE];
        flat.upright(&straight, &mut same, SIDE, 0.0);
        assert_eq!(same, straight, "in the middle and upright already, bitwise");
    }

    /// Of what is brighter or shown as other numbers, the same: plans may shift and scale pixels first.
    #[test]
    fn neither_brightness_nor_contrast_matter() {
        let picture = stroke(0.6);
        let upright = deskewed(picture.clone(), SIDE * SIDE);
        let other = picture.iter().map(|pixel| 4.0 * pixel - 1.0).collect();
        for (one, other) in upright.iter().zip(deskewed(other, SIDE * SIDE)) {
            assert!((4.0 * one - 1.0 - other).abs() < 1e-5);
        }
    }

    #[test]
    fn planes_move_together() {
        let (one, other) = (stroke(0.6), stroke(0.2));
        let both = deskewed([one.clone(), other.clone()].concat(), SIDE * SIDE);
        let sum: Vec<f32> = one.iter().zip(&other).map(|(a, b)| a + b).collect();
        let sum = deskewed(sum, SIDE * SIDE);
        let (first, second) = both.split_at(SIDE * SIDE);
        for ((a, b), sum) in first.iter().zip(second).zip(sum) {
            assert!((a + b - sum).abs() < 1e-5);
        }
    }

    #[test]
    fn whatever_comes_stays_within_its_pixels_or_as_it_is() {
        let mut row = vec![0.0; SIDE * SIDE];
        row[5 * SIDE + 2..5 * SIDE + 9].fill(0.3);
        let mut corner = vec![-3.0; SIDE * SIDE];
        corner[SIDE * SIDE - 1] = 1e30;
        for kept in [vec![0.0; SIDE * SIDE], vec![7.5; SIDE * SIDE], row, corner] {
            assert_eq!(deskewed(kept.clone(), SIDE * SIDE), kept);
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in [0, 40, SIDE * SIDE - 1] {
                let mut picture = stroke(0.5);
                picture[at] = bad;
                let left = deskewed(picture.clone(), SIDE * SIDE);
                let bits = |of: &[f32]| of.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&left), bits(&picture));
            }
        }
        for (small, large) in [
            (0.0, f32::MAX),
            (f32::MIN, f32::MAX),
            (0.0, 1e-45),
            (-1e-45, 1e-40),
            (1.0, 1.000_000_1),
        ] {
            for seed in 0..200_usize {
                let pixel = |at: usize| match (at * (seed + 7) * 31 + seed) % 11 {
                    0 | 5 => large,
                    _ => small,
                };
                let picture: Vec<f32> = (0..SIDE * SIDE).map(pixel).collect();
                let out = deskewed(picture, SIDE * SIDE);
                assert!(
                    out.iter().all(|x| (small..=large).contains(x)),
                    "{small} {large}"
                );
            }
        }
    }
}
