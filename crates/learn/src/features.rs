//! `[features]` of a plan: a fixed, public map that examples go through before the network sees them.
//!
//! ```toml
//! [features]
//! kind = "scattering"    # pictures of [1, 28, 28] become [81, 7, 7]
//! levels = 2             # else 2
//! angles = 8             # else 8
//! groups = 27            # may be left out: channels in so many groups, each of which gets mean 0 and variance 1
//! mirror = "mean"        # may be left out: the mean of a picture's features and of its mirror image's; [81, 7, 7] becomes [81, 7, 4]
//! colours = "opponent"   # may be left out: red, green and blue become brightness and two differences first
//! deskew = "moments"     # may be left out: each picture is set upright first, as its own moments say
//! ```
//!
//! It is applied to private and to public data alike, one example at a time, and needs no privacy of its own: see [`crate::scatter`]. An example whose features
//! are not finite becomes an empty one, as a function of itself alone. The model takes features, not pictures, and its files do not hold the map.
//!
//! **Fewer numbers, less noise.** A model gets noise in each of its parameters. Where left and right mean the same, the mean over a picture and its mirror image keeps what
//! matters in half as many numbers. Of `C` columns, `2^J` pixels apart from the first pixel on, those on the right stand for both halves: of a picture of 32 columns and its mirror image they
//! have seen 16, 20, 24, 28 and 15, 11, 7, 3, evenly over the whole. Those on the left have seen the same with a gap in the middle, and are left out.

pub(crate) mod deskew;
mod planes;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::scatter::{SIDE_MAX, Scattering};
use deskew::deskew;
use planes::{average_right, mirror, opponent};
use whit_mechanism::crew;

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
    /// If given, the channels of an example fall into so many groups, and the numbers of each group are brought to mean 0 and variance 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// `"mean"`: the mean of the features of a picture and of its mirror image, without the columns on the left, which say about the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// `"opponent"`: planes of red, green and blue are turned into brightness, red against green, and both against blue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colours: Option<String>,
    /// `"moments"`: each picture is set upright and to the middle, by its own slant and centre.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deskew: Option<String>,
}

/// So many examples are mapped at once, so that what they need on the way stays small. No number depends on it.
const BLOCK: usize = 256;

/// Added to the variance of a group, so that a constant one can be divided by its root.
const VARIANCE_MIN: f64 = 1e-5;

impl Features {
    /// Refuses what no pictures could make right.
    pub fn check(&self) -> Result<()> {
        // Whether groups divide the channels depends on how many planes pictures have.
        let any = Self {
            groups: None,
            ..self.clone()
        };
        any.shape(&[3, SIDE_MAX, SIDE_MAX]).map(drop)
    }

    /// The shape of features of examples of this shape.
    pub fn shape(&self, examples: &[usize]) -> Result<Vec<usize>> {
        let [planes, height, width] = self.picture(examples)?;
        let [channels, rows, columns] =
            Scattering::shape(height, width, self.levels(), self.angles())?;
        let channels = planes * channels;
        let columns = match self.is_mirrored() {
            true => columns.div_ceil(2),
            false => columns,
        };
        match self.groups {
            Some(groups) if groups == 0 || !channels.is_multiple_of(groups) => {
                Err(Error::FeatureGroups { groups, channels })
            }
            _ => Ok(vec![channels, rows, columns]),
        }
    }

    /// The features of all examples, on at most so many threads.
    pub fn of(&self, data: Dataset, threads: NonZeroUsize) -> Result<Dataset> {
        let [planes, height, width] = self.picture(data.shape())?;
        let scattering = Scattering::new(height, width, self.levels(), self.angles())?;
        let shape = self.shape(data.shape())?;
        let (pixels, features) = (planes * height * width, shape.iter().product());
        let map = Map {
            scattering,
            threads,
            pixels,
            plane: height * width,
            width,
            features,
        };
        data.mapped(shape, |examples, out| {
            let blocks = examples.chunks(BLOCK * pixels);
            blocks
                .zip(out.chunks_mut(BLOCK * features))
                .try_for_each(|(examples, out)| self.block(&map, examples, out))
        })
    }

    /// Maps some examples, each by itself: nothing here looks from one to another.
    fn block(&self, map: &Map, examples: &[f32], out: &mut [f32]) -> Result<()> {
        let mut pictures = examples.to_vec();
        if self.deskew.is_some() {
            let each = pictures.chunks_exact_mut(map.pixels);
            crew::each(map.threads.get(), each, |picture| {
                deskew(picture, map.plane, map.width);
            });
        }
        if self.colours.is_some() {
            pictures.chunks_exact_mut(map.pixels).for_each(opponent);
        }
        if self.is_mirrored() {
            let [channels, rows, columns] = map.scattering.output_shape();
            let planes = pictures.len() / map.plane;
            let mut sides = [(); 2].map(|()| vec![0.0; planes * channels * rows * columns]);
            for side in &mut sides {
                map.scattering.transform_on(map.threads, &pictures, side)?;
                mirror(&mut pictures, map.width);
            }
            average_right(&sides, columns, out);
        } else {
            map.scattering.transform_on(map.threads, &pictures, out)?;
        }
        if let Some(groups) = self.groups {
            let examples = out.chunks_exact_mut(map.features);
            crew::each(map.threads.get(), examples, |example| {
                let groups = example.chunks_exact_mut(map.features / groups);
                groups.for_each(normalise);
            });
        }
        Ok(())
    }

    /// The map in words, for the card.
    pub fn words(&self) -> String {
        let (levels, angles) = (self.levels(), self.angles());
        let colours = match self.colours {
            Some(_) => " of opponent colours",
            None => "",
        };
        let deskew = match self.deskew {
            Some(_) => ", each picture set upright by its own moments",
            None => "",
        };
        let mirror = match self.mirror {
            Some(_) => ", the mean over a picture and its mirror image",
            None => "",
        };
        let groups = match self.groups {
            Some(groups) => format!(", each example normalised in {groups} groups of channels"),
            None => String::new(),
        };
        format!(
            "{}{colours} with {levels} levels and {angles} angles{deskew}{mirror}{groups}, fixed and public; the model takes its outcome, not pictures",
            self.kind
        )
    }

    fn levels(&self) -> usize {
        self.levels.unwrap_or(2)
    }

    fn angles(&self) -> usize {
        self.angles.unwrap_or(8)
    }

    fn is_mirrored(&self) -> bool {
        self.mirror.is_some()
    }

    /// Planes, rows and columns of examples that can be mapped.
    fn picture(&self, examples: &[usize]) -> Result<[usize; 3]> {
        let word = |field, given: Option<&String>, known: &str, passes| match given {
            Some(given) if given != known => Err(Error::Word {
                field,
                given: given.clone(),
                passes,
            }),
            _ => Ok(()),
        };
        let kind = Some(&self.kind);
        word("kind", kind, "scattering", "\"scattering\" in [features]")?;
        let mirror = self.mirror.as_ref();
        word("mirror", mirror, "mean", "\"mean\", or nothing")?;
        let colours = self.colours.as_ref();
        word("colours", colours, "opponent", "\"opponent\", or nothing")?;
        let deskew = self.deskew.as_ref();
        word("deskew", deskew, "moments", "\"moments\", or nothing")?;
        let shape: [usize; 3] = examples.try_into().map_err(|_| Error::NoPictures {
            shape: examples.to_vec(),
        })?;
        match (colours, shape) {
            (Some(_), [planes, ..]) if planes != 3 => Err(Error::NoColours { planes }),
            _ => Ok(shape),
        }
    }
}

/// What all examples go through.
struct Map {
    scattering: Scattering,
    threads: NonZeroUsize,
    /// Of an example.
    pixels: usize,
    /// Pixels of one of its planes.
    plane: usize,
    /// Of a row.
    width: usize,
    /// Of an example.
    features: usize,
}

/// Brings the numbers of one group of one example to mean 0 and variance 1.
fn normalise(group: &mut [f32]) {
    let count = group.len() as f64;
    let mean = group.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let squares = group.iter().map(|&x| (f64::from(x) - mean).powi(2));
    let inverse = 1.0 / (squares.sum::<f64>() / count + VARIANCE_MIN).sqrt();
    for x in group {
        *x = ((f64::from(*x) - mean) * inverse) as f32;
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
    fn groups_have_mean_zero_and_variance_one_and_divide_the_channels() {
        let map = features("kind = 'scattering'\nlevels = 1\nangles = 2\ngroups = 3");
        assert_eq!(map.check(), Ok(()));
        assert!(map.words().contains("normalised in 3 groups"));
        assert_eq!(map.shape(&[4, 8, 8]), Ok(vec![12, 4, 4]));
        let five = features("kind = 'scattering'\nlevels = 1\nangles = 2\ngroups = 5");
        let refused = five.shape(&[1, 8, 8]).expect_err("3 channels");
        assert_eq!(refused.code(), "feature_groups");
        assert!(
            refused.suggestion().contains("1, 3"),
            "{}",
            refused.suggestion()
        );
        let pixels: Vec<f32> = (0..2 * 64).map(|at| (at * at % 31) as f32).collect();
        let data = |pixels: &[f32]| {
            let labels = vec![0; pixels.len() / 64];
            Dataset::with_classes(vec![1, 8, 8], pixels.to_vec(), labels, 2).expect("fits")
        };
        let both = map.of(data(&pixels), NonZeroUsize::MIN).expect("pictures");
        let alone = map
            .of(data(&pixels[64..]), NonZeroUsize::MIN)
            .expect("pictures");
        let [second, same] = [both.example(1), alone.example(0)].map(|x| x.expect("not empty"));
        assert_eq!(second.features, same.features, "whoever else is there");
        for group in second.features.chunks_exact(16) {
            let mean: f32 = group.iter().sum::<f32>() / 16.0;
            let square: f32 = group.iter().map(|x| x * x).sum::<f32>() / 16.0;
            assert!(
                mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-3,
                "{mean} {square}"
            );
        }
    }

    #[test]
    fn a_picture_and_its_mirror_image_have_the_same_features() {
        let text = "kind = 'scattering'\nlevels = 1\nangles = 4\nmirror = 'mean'";
        let map = features(text);
        assert!(map.words().contains("mirror image"));
        assert_eq!(map.shape(&[1, 8, 10]), Ok(vec![5, 4, 3]));
        let pixels: Vec<f32> = (0..80).map(|at| (at * at % 31) as f32).collect();
        let mut image = pixels.clone();
        mirror(&mut image, 10);
        assert_ne!(pixels, image);
        let of = |map: &Features, pixels: &[f32]| {
            let data = Dataset::with_classes(vec![1, 8, 10], pixels.to_vec(), vec![0], 2);
            let found = map.of(data.expect("fits"), NonZeroUsize::MIN);
            let found = found.expect("pictures");
            found.example(0).expect("not empty").features.to_vec()
        };
        let kept = of(&map, &pixels);
        assert_eq!(kept, of(&map, &image), "bitwise");
    }

    /// A bright column of pixels is seen in the means that are kept, wherever it is.
    #[test]
    fn the_columns_that_are_kept_see_the_whole_picture() {
        let map = features("kind = 'scattering'\nmirror = 'mean'");
        for width in [28, 32] {
            let seen: Vec<f32> = (0..width)
                .map(|at| {
                    let pixels =
                        (0..width * width).map(|pixel| f32::from(u8::from(pixel % width == at)));
                    let shape = vec![1, width, width];
                    let data = Dataset::with_classes(shape, pixels.collect(), vec![0], 2);
                    let found = map.of(data.expect("fits"), NonZeroUsize::MIN);
                    let found = found.expect("pictures");
                    let kept = found.shape()[1] * found.shape()[2];
                    // Local means are the first channel.
                    let features = found.example(0).expect("not empty").features;
                    features[..kept].iter().sum()
                })
                .collect();
            let mean = seen.iter().sum::<f32>() / width as f32;
            // But for what the window of an outermost column loses beyond the edge.
            for (at, seen) in seen.into_iter().enumerate().take(width - 3).skip(3) {
                let share = seen / mean;
                assert!(share > 0.75, "{width} {at}: {share}");
            }
        }
    }

    #[test]
    fn opponent_colours_are_of_each_example_alone_and_need_three_planes() {
        let text =
            "kind = 'scattering'\nlevels = 1\nangles = 2\ncolours = 'opponent'\nmirror = 'mean'";
        let map = features(text);
        assert_eq!(
            (map.check(), map.shape(&[3, 8, 8])),
            (Ok(()), Ok(vec![9, 4, 2]))
        );
        let grey = map.shape(&[1, 8, 8]).expect_err("refused");
        assert_eq!(grey.code(), "no_colours");
        assert!(grey.suggestion().contains("[3, 32, 32]"));
        for wrong in ["colours = 'yuv'", "mirror = 'both'", "deskew = 'yes'"] {
            let wrong = features(&format!("kind = 'scattering'\n{wrong}"));
            assert_eq!(wrong.check().expect_err("refused").code(), "plan_word");
        }
        // More than a block of them, with one that has another neighbour.
        let count = BLOCK + 3;
        let pixels: Vec<f32> = (0..count * 192).map(|at| (at * at % 257) as f32).collect();
        let of = |pixels: &[f32], threads: usize| {
            let labels = vec![0; pixels.len() / 192];
            let data = Dataset::with_classes(vec![3, 8, 8], pixels.to_vec(), labels, 2);
            let threads = NonZeroUsize::new(threads).expect("not zero");
            map.of(data.expect("fits"), threads).expect("pictures")
        };
        let mut spoilt = pixels.clone();
        spoilt[(BLOCK - 1) * 192] = f32::NAN;
        let [whole, other] = [of(&pixels, 1), of(&spoilt, 2)];
        for row in (0..count).filter(|row| *row != BLOCK - 1) {
            let [a, b] = [&whole, &other].map(|data| data.example(row).expect("not empty"));
            assert_eq!(a.features, b.features, "{row}");
        }
        assert!(other.example(BLOCK - 1).is_none());
        let last = of(&pixels[(count - 1) * 192..], 1);
        let [a, b] = [whole.example(count - 1), last.example(0)].map(|x| x.expect("not empty"));
        assert_eq!(a.features, b.features);
    }

    /// With blank, level, endless and huge pictures among them: each has the features that it has alone, on any number of threads.
    #[test]
    fn upright_pictures_are_of_each_example_alone() {
        let text = "kind = 'scattering'\nlevels = 1\nangles = 2\ngroups = 3\ndeskew = 'moments'";
        let map = features(text);
        assert_eq!(
            (map.check(), map.shape(&[1, 8, 8])),
            (Ok(()), Ok(vec![3, 4, 4]))
        );
        assert!(map.words().contains("set upright"));
        let count = BLOCK + 5;
        let mut pixels: Vec<f32> = (0..count * 64).map(|at| (at * at % 257) as f32).collect();
        for (row, value) in [(1, 0.0), (2, f32::NAN), (3, f32::INFINITY), (4, 3e38)] {
            pixels[row * 64..][..20].fill(value);
            pixels[row * 64 + 20..][..44].fill(0.0);
        }
        pixels[5 * 64..][..64].fill(0.0);
        pixels[5 * 64 + 16..][..8].fill(1.0);
        let of = |pixels: &[f32], threads: usize| {
            let labels = vec![0; pixels.len() / 64];
            let data = Dataset::with_classes(vec![1, 8, 8], pixels.to_vec(), labels, 2);
            let threads = NonZeroUsize::new(threads).expect("not zero");
            map.of(data.expect("fits"), threads).expect("pictures")
        };
        let [one, two] = [1, 2].map(|threads| of(&pixels, threads));
        let reversed: Vec<f32> = pixels.chunks(64).rev().flatten().copied().collect();
        let reversed = of(&reversed, 2);
        for row in 0..count {
            let alone = of(&pixels[row * 64..][..64], 1);
            let found = [
                one.example(row),
                two.example(row),
                reversed.example(count - 1 - row),
                alone.example(0),
            ];
            let bits = found.map(|example| {
                let features = example.map(|example| example.features);
                features.map(|x| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
            });
            assert!(bits.iter().all(|other| other == &bits[0]), "{row}");
        }
        let is_empty = [1, 2, 3, 4, 5].map(|row| one.example(row).is_none());
        assert_eq!(is_empty, [false, true, true, true, false]);
        // It does something.
        let plain = features("kind = 'scattering'\nlevels = 1\nangles = 2\ngroups = 3");
        let data = Dataset::with_classes(vec![1, 8, 8], pixels[..64].to_vec(), vec![0], 2);
        let plain = plain
            .of(data.expect("fits"), NonZeroUsize::MIN)
            .expect("pictures");
        let [plain, upright] = [&plain, &one].map(|data| data.example(0).expect("not empty"));
        assert_ne!(plain.features, upright.features);
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
