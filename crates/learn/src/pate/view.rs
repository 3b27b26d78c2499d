//! # What teachers and students see of an example
//! Three maps, one after the other: pictures are made upright (`upright.rs`), go through the plan's [`Features`], and their numbers are shifted and scaled by constants of the *public* examples.
//!
//! **Privacy.** The first two are fixed. The third has constants that were computed from public examples alone. So all three map one private example by itself, and neighbours stay neighbours.
//!
//! **Scaling.** A feature of variance `v`, where `w` is the mean of all variances, is divided by `(v/w + 10^-3)^(p/2)` for a power `p`: for `p = 1` all features get the same weight, for `p = 0` they keep theirs. Then all are divided by one
//! number, so that the mean of their squares is 1.

use std::num::NonZeroUsize;

use super::upright::upright;
use crate::data::{Answer, Dataset};
use crate::error::{Error, Result, within};
use crate::features::Features;

/// What is public about the maps, as somebody typed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    /// Are pictures made upright?
    pub upright: bool,
    /// The fixed map, if there is one.
    pub features: Option<Features>,
    /// The power `p` of the scaling, from 0 to 1.
    pub power: f64,
}

/// Maps with their constants.
pub struct View {
    sight: Sight,
    shape: Vec<usize>,
    mean: Vec<f32>,
    factor: Vec<f32>,
}

/// Examples as learners see them, row by row, with shares of classes: 1 for the class of a row, or less where nobody is sure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lesson {
    /// `depth` numbers for each row.
    pub features: Vec<f32>,
    /// `classes` shares for each row.
    pub shares: Vec<f32>,
    /// How many numbers a row has.
    pub depth: usize,
    /// How many classes there are.
    pub classes: usize,
}

impl View {
    /// The maps for examples of the shape of these public ones, and the public ones as they are seen.
    pub fn new(sight: Sight, public: &Dataset, threads: NonZeroUsize) -> Result<(Self, Vec<f32>)> {
        let power = sight.power;
        let passes = (0.0..=1.0).contains(&power);
        within("the power of scaling", power, passes, "from 0 to 1")?;
        if sight.upright && public.shape().len() != 3 {
            return Err(Error::NoPictures {
                shape: public.shape().to_vec(),
            });
        }
        let mut view = Self {
            shape: public.shape().to_vec(),
            sight,
            mean: Vec::new(),
            factor: Vec::new(),
        };
        let rows: Vec<usize> = (0..public.rows()).collect();
        let mut seen = view.mapped(public, &rows, threads)?.0;
        view.fit(&seen, power);
        view.scale(&mut seen);
        Ok((view, seen))
    }

    /// Floats of a row.
    pub fn depth(&self) -> usize {
        self.mean.len()
    }

    /// What is subtracted from features and what they are then multiplied by: functions of public examples.
    pub fn constants(&self) -> [&[f32]; 2] {
        [&self.mean, &self.factor]
    }

    /// Refuses examples of another shape, which is public.
    pub fn check(&self, shape: &[usize]) -> Result<()> {
        match shape == self.shape {
            true => Ok(()),
            false => Err(Error::OtherFeatures {
                takes: self.shape.iter().product(),
                gives: shape.iter().product(),
            }),
        }
    }

    /// These rows of data of the same shape, as they are seen. An example that cannot be seen is left out, as a function of itself alone; a shape that differs is refused, and is public.
    pub fn lesson(&self, data: &Dataset, rows: &[usize], threads: NonZeroUsize) -> Result<Lesson> {
        self.check(data.shape())?;
        let classes = data.classes().unwrap_or_default() as usize;
        let (mut features, labels) = self.mapped(data, rows, threads)?;
        self.scale(&mut features);
        let depth = self.depth();
        let mut lesson = Lesson {
            depth,
            classes,
            ..Lesson::default()
        };
        for (row, label) in features.chunks_exact(depth).zip(labels) {
            let Some(label) = label.filter(|label| *label < classes) else {
                continue;
            };
            lesson.features.extend_from_slice(row);
            let shares = (0..classes).map(|class| f32::from(u8::from(class == label)));
            lesson.shares.extend(shares);
        }
        Ok(lesson)
    }

    /// The first two maps, and the classes. What cannot be seen is zeros, and has no class.
    fn mapped(
        &self,
        data: &Dataset,
        rows: &[usize],
        threads: NonZeroUsize,
    ) -> Result<(Vec<f32>, Vec<Option<usize>>)> {
        let (mut features, mut labels) = (Vec::new(), Vec::new());
        for row in rows {
            match data.example(*row) {
                Some(example) => {
                    features.extend_from_slice(example.features);
                    labels.push(match example.answer {
                        Answer::Class(class) => Some(class as usize),
                        Answer::Number(_) => None,
                    });
                }
                None => {
                    features.resize(features.len() + data.width(), 0.0);
                    labels.push(None);
                }
            }
        }
        if self.sight.upright
            && let [_, height, width] = *self.shape
        {
            upright(&mut features, height, width);
        }
        let Some(map) = &self.sight.features else {
            return Ok((features, labels));
        };
        let shape = self.shape.clone();
        let data = Dataset::with_classes(shape, features, vec![0; rows.len()], 1);
        let data = map.of(data.ok_or(Error::Unbound)?, threads)?;
        let mut features = Vec::with_capacity(rows.len() * data.width());
        for (row, label) in labels.iter_mut().enumerate() {
            match data.example(row) {
                Some(example) => features.extend_from_slice(example.features),
                None => {
                    features.resize(features.len() + data.width(), 0.0);
                    *label = None;
                }
            }
        }
        Ok((features, labels))
    }

    /// The constants of public rows.
    fn fit(&mut self, seen: &[f32], power: f64) {
        let depth = match &self.sight.features {
            Some(map) => map.shape(&self.shape).unwrap_or_default(),
            None => self.shape.clone(),
        };
        let depth: usize = depth.iter().product();
        let rows = (seen.len() / depth.max(1)).max(1) as f64;
        let (mut mean, mut variance) = (vec![0.0; depth], vec![0.0; depth]);
        for row in seen.chunks_exact(depth.max(1)) {
            for (sum, x) in mean.iter_mut().zip(row) {
                *sum += f64::from(*x) / rows;
            }
        }
        for row in seen.chunks_exact(depth.max(1)) {
            for ((sum, x), mean) in variance.iter_mut().zip(row).zip(&mean) {
                *sum += (f64::from(*x) - mean).powi(2) / rows;
            }
        }
        let whole = (variance.iter().sum::<f64>() / depth.max(1) as f64).max(f64::MIN_POSITIVE);
        let bare = |v: &f64| (v / whole + 1e-3).powf(-power / 2.0);
        let squares = variance.iter().map(|v| v * bare(v).powi(2)).sum::<f64>();
        let common = (squares / depth.max(1) as f64)
            .max(f64::MIN_POSITIVE)
            .sqrt();
        self.mean = mean.iter().map(|x| *x as f32).collect();
        self.factor = variance.iter().map(|v| (bare(v) / common) as f32).collect();
    }

    fn scale(&self, features: &mut [f32]) {
        for row in features.chunks_exact_mut(self.depth().max(1)) {
            for ((x, mean), factor) in row.iter_mut().zip(&self.mean).zip(&self.factor) {
                *x = (*x - mean) * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    fn sight(power: f64) -> Sight {
        Sight {
            upright: false,
            features: None,
            power,
        }
    }

    fn data(features: &[f32]) -> Dataset {
        let labels = vec![1; features.len() / 2];
        Dataset::with_classes(vec![2], features.to_vec(), labels, 3).expect("fits")
    }

    #[test]
    fn constants_are_those_of_public_examples() {
        let public = data(&[0.0, 0.0, 2.0, 20.0]);
        let (even, seen) = View::new(sight(1.0), &public, ONE).expect("fits");
        // Variances 1 and 100, of which the mean is 50.5: both are brought to about one.
        assert!(
            (seen[0] + 1.0).abs() < 0.05 && (seen[1] + 1.0).abs() < 0.05,
            "{seen:?}"
        );
        let (kept, seen) = View::new(sight(0.0), &public, ONE).expect("fits");
        assert!((seen[3] / seen[2] - 10.0).abs() < 1e-4, "{seen:?}");
        let square: f32 = seen.iter().map(|x| x * x).sum::<f32>() / 4.0;
        assert!((square - 1.0).abs() < 1e-5);
        // Private examples do not move them.
        let other = even.lesson(&data(&[1.0, 10.0, 500.0, 500.0]), &[0], ONE);
        let other = other.expect("fits");
        assert!(other.features.iter().all(|x| x.abs() < 1e-6));
        assert_eq!(
            (other.shares, other.classes, kept.depth()),
            (vec![0.0, 1.0, 0.0], 3, 2)
        );
    }

    #[test]
    fn other_shapes_are_refused_and_empty_examples_left_out() {
        let (view, _) = View::new(sight(0.5), &data(&[0.0, 0.0, 2.0, 20.0]), ONE).expect("fits");
        let wide = Dataset::with_classes(vec![3], vec![0.0; 3], vec![0], 3).expect("fits");
        assert!(matches!(
            view.lesson(&wide, &[0], ONE),
            Err(Error::OtherFeatures { takes: 2, gives: 3 })
        ));
        let lesson = view.lesson(&data(&[f32::NAN, 0.0, 1.0, 1.0]), &[0, 1], ONE);
        assert_eq!(lesson.expect("fits").shares.len(), 3);
        for bad in [-0.1, 1.1, f64::NAN] {
            assert!(View::new(sight(bad), &data(&[0.0, 0.0]), ONE).is_err());
        }
        let flat = Sight {
            upright: true,
            ..sight(0.5)
        };
        assert!(View::new(flat, &data(&[0.0, 0.0]), ONE).is_err());
    }
}
