//! # Pictures made upright
//! **Definition.** Of a picture with pixels of zero and more: its mass, its centre, and its slant `a = Σ v (y-ȳ)(x-x̄) / Σ v (y-ȳ)²`. The picture is moved so that its centre is in the middle, and sheared by `a`, so that
//! what leaned stands straight; pixels in between are interpolated, and what comes from outside is zero.
//!
//! **Privacy.** It needs none: it is a fixed public map from one picture to one picture, as `scatter.rs` is, and its outcome is a function of that picture alone.

/// Makes each plane of pictures that stand one after the other upright. A plane without mass, or with negative pixels that outweigh the others, stays as it is.
pub(super) fn upright(pictures: &mut [f32], height: usize, width: usize) {
    let mut before = vec![0.0; height * width];
    for plane in pictures.chunks_exact_mut((height * width).max(1)) {
        before.copy_from_slice(plane);
        let Some(pose) = Pose::of(&before, width) else {
            continue;
        };
        let middle = [(width - 1) as f64 / 2.0, (height - 1) as f64 / 2.0];
        for (y, row) in plane.chunks_exact_mut(width).enumerate() {
            let down = y as f64 - middle[1];
            for (x, pixel) in row.iter_mut().enumerate() {
                let across = x as f64 - middle[0];
                let from = [
                    pose.centre[0] + across + pose.slant * down,
                    pose.centre[1] + down,
                ];
                *pixel = between(&before, width, from) as f32;
            }
        }
    }
}

struct Pose {
    centre: [f64; 2],
    slant: f64,
}

impl Pose {
    fn of(plane: &[f32], width: usize) -> Option<Self> {
        let pixels = || {
            let places = plane.iter().enumerate();
            places.map(|(at, v)| {
                let (x, y) = (at % width, at / width);
                (f64::from(*v), x as f64, y as f64)
            })
        };
        let mass: f64 = pixels().map(|(v, ..)| v).sum();
        if mass.is_nan() || mass <= 1e-6 {
            return None;
        }
        let x_mean = pixels().map(|(v, x, _)| v * x).sum::<f64>() / mass;
        let y_mean = pixels().map(|(v, _, y)| v * y).sum::<f64>() / mass;
        let down = |y: f64| y - y_mean;
        let spread: f64 = pixels().map(|(v, _, y)| v * down(y) * down(y)).sum();
        let lean: f64 = pixels().map(|(v, x, y)| v * down(y) * (x - x_mean)).sum();
        let slant = if spread > 1e-9 { lean / spread } else { 0.0 };
        // More than two pixels across for one down is no slant of a drawing.
        Some(Self {
            centre: [x_mean, y_mean],
            slant: slant.clamp(-2.0, 2.0),
        })
    }
}

/// The picture at a place between pixels.
fn between(plane: &[f32], width: usize, [x, y]: [f64; 2]) -> f64 {
    let (left, top) = (x.floor(), y.floor());
    let (right, below) = (x - left, y - top);
    let at = |dx: f64, dy: f64| {
        let (x, y) = (left + dx, top + dy);
        let inside = x >= 0.0 && y >= 0.0 && x < width as f64;
        let place = (y.max(0.0) as usize).checked_mul(width);
        let place = place.and_then(|row| row.checked_add(x.max(0.0) as usize));
        let pixel = place.filter(|_| inside).and_then(|at| plane.get(at));
        pixel.map_or(0.0, |v| f64::from(*v))
    };
    let upper = (1.0 - right) * at(0.0, 0.0) + right * at(1.0, 0.0);
    let lower = (1.0 - right) * at(0.0, 1.0) + right * at(1.0, 1.0);
    (1.0 - below) * upper + below * lower
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
