//! # Pictures made upright
//! **Definition.** Of a picture with pixels of zero and more: its mass, its centre, and its slant `a = Σ v (y-ȳ)(x-x̄) / Σ v (y-ȳ)²`. The picture is moved so that its centre is in the middle, and sheared by `a`, so that
//! what leaned stands straight; pixels in between are interpolated, and what comes from outside is zero.
//!
//! Moments and the map are those of `features/deskew.rs`. What differs is the rule: here each plane has its own pose, pixels weigh what they are and not what they have above the darkest, a picture may lean by two and not one, one in a single row is centred and not left, and beyond the
//! edge is zero and not the darkest pixel. Records of both were made by their rules, so that both stay.
//!
//! **Privacy.** It needs none: it is a fixed public map from one picture to one picture, as `scatter.rs` is, and its outcome is a function of that picture alone.

use crate::features::deskew::{Moments, Pose};

/// Less than this, over all pixels, is no mass.
const MASS_MIN: f64 = 1e-6;
/// Less spread over rows than this, times the mass, is that of one row, which has no slant.
const SPREAD_MIN: f64 = 1e-9;
/// More than two pixels across for one down is no slant of a drawing.
const SLANT_MAX: f64 = 2.0;

/// Makes each plane of pictures that stand one after the other upright. A plane without mass, or with negative pixels that outweigh the others, stays as it is.
pub(super) fn upright(pictures: &mut [f32], height: usize, width: usize) {
    let mut before = vec![0.0; height * width];
    for plane in pictures.chunks_exact_mut((height * width).max(1)) {
        before.copy_from_slice(plane);
        if let Some(pose) = pose(&before, width) {
            pose.upright(&before, plane, width, 0.0);
        }
    }
}

fn pose(plane: &[f32], width: usize) -> Option<Pose> {
    let weights: Vec<f64> = plane.iter().map(|pixel| f64::from(*pixel)).collect();
    let moments = Moments::of(&weights, width);
    if !moments.total.is_finite() || moments.total <= MASS_MIN {
        return None;
    }
    let has_slant = moments.upright * moments.total > SPREAD_MIN;
    let slant = if has_slant { moments.slant() } else { 0.0 };
    Some(Pose {
        centre: moments.centre,
        slant: slant.clamp(-SLANT_MAX, SLANT_MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bar of one pixel in each row, which leans by so many pixels for each row.
    fn bar(lean: f64) -> Vec<f32> {
        let mut picture = vec![0.0; 15 * 15];
        for y in 3..12 {
            let x = (7.0 + lean * (y as f64 - 7.0)).round() as usize;
            picture[y * 15 + x] = 1.0;
        }
        picture
    }

    #[test]
    fn what_leans_stands_straight_and_in_the_middle() {
        let mut straight = bar(0.0);
        let mut leaning = bar(0.5);
        upright(&mut straight, 15, 15);
        upright(&mut leaning, 15, 15);
        let column = |picture: &[f32]| (0..15).map(|y| picture[y * 15 + 7]).sum::<f32>();
        assert!((column(&straight) - 9.0).abs() < 1e-6);
        assert!(column(&bar(0.5)) < 4.0 && column(&leaning) > 6.0);
        let mut moved = vec![0.0; 15 * 15];
        moved[2 * 15 + 3] = 1.0;
        upright(&mut moved, 15, 15);
        assert_eq!((moved[7 * 15 + 7], moved.iter().sum::<f32>()), (1.0, 1.0));
    }

    /// A picture's outcome is its own, whatever stands beside it; nothing fails.
    #[test]
    fn pictures_do_not_see_each_other() {
        let (mut alone, mut both) = (bar(0.4), [bar(0.4), vec![f32::NAN; 225]].concat());
        upright(&mut alone, 15, 15);
        upright(&mut both, 15, 15);
        assert_eq!(alone, both[..225]);
        let mut nothing = vec![0.0; 225];
        upright(&mut nothing, 15, 15);
        assert!(nothing.iter().all(|pixel| *pixel == 0.0));
        upright(&mut [-1.0, 2.0, f32::INFINITY, 1.0], 2, 2);
    }
}
