//! `[features]` of a plan: a fixed, public map that examples go through before the network sees them.
//!
//! ```toml
//! [features]
//! kind = "scattering"    # pictures of [1, 28, 28] become [81, 7, 7]
//! levels = 2             # else 2
//! angles = 8             # else 8
//! ```
//!
//! It is applied to private and to public data alike, one example at a time, and needs no privacy of its own: see [`crate::scatter`]. An example whose features
//! are not finite becomes an empty one, as a function of itself alone. The model takes features, not pictures, and its files do not hold the map.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::scatter::{SIDE_MAX, Scattering};

/// What a plan says about features. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Which map: `"scattering"`.
    pub kind: String,
    /// Scales of wavelets, else 2.
    pub levels: Option<usize>,
    /// Angles of wavelets, else 8.
    pub angles: Option<usize>,
}

impl Features {
    /// Refuses what no pictures could make right.
    pub fn check(&self) -> Result<()> {
        self.shape(&[1, SIDE_MAX, SIDE_MAX]).map(drop)
    }

    /// The shape of features of examples of this shape.
    pub fn shape(&self, examples: &[usize]) -> Result<Vec<usize>> {
        let [planes, height, width] = self.picture(examples)?;
        let [channels, rows, columns] =
            Scattering::shape(height, width, self.levels(), self.angles())?;
        Ok(vec![planes * channels, rows, columns])
    }

    /// The features of all examples, on at most so many threads.
    pub fn of(&self, data: Dataset, threads: NonZeroUsize) -> Result<Dataset> {
        let [_, height, width] = self.picture(data.shape())?;
        let scattering = Scattering::new(height, width, self.levels(), self.angles())?;
        let shape = self.shape(data.shape())?;
        data.mapped(shape, |examples, out| {
            scattering.transform_on(threads, examples, out)
        })
    }

    /// The map in words, for the card.
    pub fn words(&self) -> String {
        let (levels, angles) = (self.levels(), self.angles());
        format!(
            "{} with {levels} levels and {angles} angles, fixed and public; the model takes its outcome, not pictures",
            self.kind
        )
    }

    fn levels(&self) -> usize {
        self.levels.unwrap_or(2)
    }

    fn angles(&self) -> usize {
        self.angles.unwrap_or(8)
    }

    /// Planes, rows and columns of examples that can be mapped.
    fn picture(&self, examples: &[usize]) -> Result<[usize; 3]> {
        if self.kind != "scattering" {
            return Err(Error::Word {
                field: "kind",
                given: self.kind.clone(),
                passes: "\"scattering\" in [features]",
            });
        }
        examples.try_into().map_err(|_| Error::NoPictures {
            shape: examples.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Answer;
    use whit_core::Fault;

    fn features(text: &str) -> Features {
        toml::from_str(text).expect("a section")
    }

    #[test]
    fn shapes_are_known_without_data() {
        let usual = features("kind = 'scattering'");
        assert_eq!(usual.shape(&[1, 28, 28]), Ok(vec![81, 7, 7]));
        assert_eq!(usual.shape(&[3, 32, 32]), Ok(vec![243, 8, 8]));
        let other = features("kind = 'scattering'\nlevels = 3\nangles = 4");
        assert_eq!(other.shape(&[2, 40, 24]), Ok(vec![122, 5, 3]));
        let flat = usual.shape(&[784]).expect_err("refused");
        assert_eq!(
            (flat.to_string(), flat.suggestion()),
            (
                "examples of the shape [784] are no pictures".into(),
                "give `shape` as channels, rows and columns, such as [1, 28, 28]".into()
            )
        );
        let small = usual.shape(&[1, 28, 4]).expect_err("refused");
        assert_eq!(small.code(), "small_picture");
        let unknown = features("kind = 'wavelets'").check();
        assert_eq!(unknown.expect_err("refused").code(), "plan_word");
        assert!(toml::from_str::<Features>("kind = 'scattering'\nlevel = 3").is_err());
    }

    #[test]
    fn examples_keep_their_answers_and_empty_ones_stay_empty() {
        let pixels: Vec<f32> = (0..4 * 2 * 48).map(|at| (at % 13) as f32).collect();
        let mut bad = pixels.clone();
        bad[96 + 5] = f32::NAN;
        // Finite, and its features are not.
        bad[3 * 96] = 3e38;
        let data = |features: Vec<f32>| {
            Dataset::with_classes(vec![2, 8, 6], features, vec![0, 1, 7, 1], 3).expect("fits")
        };
        let map = features("kind = 'scattering'\nlevels = 1\nangles = 2");
        let two = NonZeroUsize::new(2).expect("not zero");
        let [good, bad] = [pixels.clone(), bad].map(|x| map.of(data(x), two).expect("pictures"));
        assert_eq!((good.shape(), good.rows()), (&[6, 4, 3][..], 4));
        let is_empty = |data: &Dataset| [0, 1, 2, 3].map(|row| data.example(row).is_none());
        assert_eq!(is_empty(&good), [false, false, true, false]);
        assert_eq!(is_empty(&bad), [false, true, true, true]);
        let [first, last] = [0, 3].map(|row| good.example(row).expect("not empty"));
        assert!(last.answer == Answer::Class(1));
        assert!(bad.example(0).is_some_and(|x| x.features == first.features));
        let mut alone = vec![0.0; 2 * 3 * 12];
        let scattering = Scattering::new(8, 6, 1, 2).expect("in range");
        scattering
            .transform(&pixels[3 * 96..], &mut alone)
            .expect("whole");
        assert_eq!(last.features, alone);
    }
}
