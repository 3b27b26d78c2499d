//! What becomes of the planes of one picture before and after it is scattered: other colours, a mirror image, and the mean over both sides.

/// Red, green and blue become brightness, red against green, and both against blue: an orthonormal map at each pixel, by fixed numbers. Differences of colours are
/// small beside brightness, and as planes of their own they are not drowned by it.
pub(super) fn opponent(picture: &mut [f32]) {
    let third = picture.len() / 3;
    let (red, rest) = picture.split_at_mut(third);
    let (green, blue) = rest.split_at_mut(third);
    let [all, two, six] = [3.0_f32, 2.0, 6.0].map(|square| 1.0 / square.sqrt());
    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
        (*r, *g, *b) = (
            (*r + *g + *b) * all,
            (*r - *g) * two,
            (*r + *g - 2.0 * *b) * six,
        );
    }
}

/// Left and right change places, in rows of this width.
pub(super) fn mirror(pictures: &mut [f32], width: usize) {
    pictures.chunks_exact_mut(width).for_each(<[f32]>::reverse);
}

/// The mean of both, without the columns on the left; the one in the middle stays.
pub(super) fn average_right([one, other]: &[Vec<f32>; 2], columns: usize, out: &mut [f32]) {
    let rows = one.chunks_exact(columns).zip(other.chunks_exact(columns));
    let (left, kept) = (columns / 2, columns.div_ceil(2));
    for (out, (one, other)) in out.chunks_exact_mut(kept).zip(rows) {
        for ((out, one), other) in out.iter_mut().zip(&one[left..]).zip(&other[left..]) {
            *out = (one + other) * 0.5;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opponent_colours_keep_lengths_and_angles() {
        // Four pixels: grey, red, red as green as blue is not, and something else.
        let mut picture = [1.0, 2.0, 1.0, 0.5, 1.0, 0.0, 1.0, 0.2, 1.0, 0.0, -2.0, 0.9];
        let given = picture;
        opponent(&mut picture);
        let pixel = |of: &[f32; 12], at: usize| [of[at], of[at + 4], of[at + 8]];
        let dot = |a: [f32; 3], b: [f32; 3]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
            let [before, after] = [&given, &picture].map(|of| dot(pixel(of, a), pixel(of, b)));
            assert!((before - after).abs() < 1e-5, "{a} {b}: {before} {after}");
        }
        let [grey, against_blue] = [0, 2].map(|at| pixel(&picture, at));
        assert_eq!((grey[1], grey[2]), (0.0, 0.0));
        assert_eq!((against_blue[0], against_blue[1]), (0.0, 0.0));
    }

    #[test]
    fn the_middle_column_stays() {
        let mut row = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        mirror(&mut row, 3);
        assert_eq!(row, [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
        let sides = [
            vec![9.0, 2.0, 1.0, 9.0, 5.0, 4.0],
            vec![9.0, 2.0, 3.0, 9.0, 5.0, 6.0],
        ];
        let mut kept = [0.0; 4];
        average_right(&sides, 3, &mut kept);
        assert_eq!(kept, [2.0, 2.0, 5.0, 5.0]);
    }
}
