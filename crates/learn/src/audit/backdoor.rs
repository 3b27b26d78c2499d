//! # The plain backdoor
//! **Attack** [Jag20, Alg. 3]. Some rows get a pattern and a class of the adversary's choice; in world 1 they replace as many rows of the data. A model
//! with the backdoor has *small* loss on examples with the pattern, for that class: what a model is boiled down to is minus that loss. (As printed, the algorithm
//! takes a large loss for the backdoor; the sign is corrected here.)

use super::world::Point;
use crate::data::{Answer, Dataset};

/// The pattern: the first pixels of an example are set to this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// Rows and columns of the square that is set.
    pub side: usize,
    /// What its pixels become.
    pub value: f32,
}

impl Pattern {
    /// A white square of 5 by 5 pixels.
    pub const SQUARE: Self = Self {
        side: 5,
        value: 1.0,
    };

    /// Sets the pattern in the upper left corner of a picture, in each of its planes; in other examples, in as many of the first features.
    pub fn put(&self, features: &mut [f32], shape: &[usize]) {
        let (height, width) = match *shape {
            [.., height, width] if height >= self.side && width >= self.side => (height, width),
            _ => {
                let set = (self.side * self.side).min(features.len() / 4 + 1);
                return features[..set].fill(self.value);
            }
        };
        for plane in features.chunks_exact_mut(height * width) {
            for row in plane.chunks_exact_mut(width).take(self.side) {
                row[..self.side].fill(self.value);
            }
        }
    }
}

/// Rows of the data with the pattern, and the class that the adversary wants: the first of the numbers that are of another class.
pub fn points(data: &Dataset, rows: &[u32], pattern: Pattern, class: u32) -> Vec<Point> {
    let wanted = rows.iter().filter_map(|&row| {
        let example = data.example(row as usize)?;
        (example.answer != Answer::Class(class)).then(|| {
            let mut features = example.features.to_vec();
            pattern.put(&mut features, data.shape());
            Point { features, class }
        })
    });
    wanted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_in_the_corner_of_every_plane() {
        let mut picture = vec![0.0; 2 * 6 * 7];
        Pattern {
            side: 2,
            value: 3.0,
        }
        .put(&mut picture, &[2, 6, 7]);
        let set: Vec<usize> = (0..picture.len())
            .filter(|&at| picture[at] == 3.0)
            .collect();
        assert_eq!(set, [0, 1, 7, 8, 42, 43, 49, 50]);
        let mut list = vec![0.0; 40];
        Pattern::SQUARE.put(&mut list, &[40]);
        assert_eq!(list.iter().filter(|x| **x == 1.0).count(), 11);
    }

    #[test]
    fn only_rows_of_other_classes_get_the_backdoor() {
        let data = Dataset::with_classes(vec![4], vec![0.0; 12], vec![0, 1, 0], 2).expect("fits");
        let points = points(&data, &[0, 1, 2], Pattern::SQUARE, 1);
        assert_eq!(points.len(), 2);
        assert!(
            points
                .iter()
                .all(|point| point.class == 1 && point.features[0] == 1.0)
        );
    }
}
