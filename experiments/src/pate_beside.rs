//! The same data by noisy steps (DP-SGD), at the epsilon that the labels of teachers are guaranteed: what the one way gives beside the other.

use whit_core::Secret;
use whit_learn::data::{Answer, Dataset};
use whit_learn::{Payment, Recipe, Uncharged};
use whit_mechanism::OsEntropy;

use crate::failure::Failure;

/// On which examples, and by how many threads.
pub(crate) struct Beside<'a> {
    /// As `whit train` reads it, but for its epsilon.
    pub(crate) plan: &'a str,
    pub(crate) epsilon: f64,
    pub(crate) seed: u64,
    pub(crate) threads: std::num::NonZeroUsize,
}

impl Beside<'_> {
    /// The plan with its epsilon and seed.
    pub(crate) fn recipe(&self) -> Result<Recipe, Failure> {
        let mut recipe: Recipe = toml::from_str(self.plan)?;
        recipe.plan.epsilon = Some(self.epsilon);
        recipe.model.seed = Some(self.seed);
        Ok(recipe)
    }

    /// Trains on private data, and gives the accuracy on the last public ones.
    pub(crate) fn accuracy(
        &self,
        private: Secret<Dataset>,
        public: &Dataset,
        held_out: usize,
    ) -> Result<f64, Failure> {
        let recipe = self.recipe()?;
        let plan = recipe.plan()?;
        let payment = Payment::uncharged(&plan, Uncharged);
        let (mut trainer, _) = recipe.trainer(&plan, private, self.threads, payment)?;
        trainer.run(&mut OsEntropy::new(), |_| Ok(()))?;
        let held = recipe.prepared(last(public, held_out).ok_or(Failure::NoTest)?, self.threads)?;
        Ok(trainer.evaluate(&held)?.accuracy.unwrap_or(f64::NAN))
    }
}

/// The last rows.
fn last(data: &Dataset, count: usize) -> Option<Dataset> {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for row in data.rows().saturating_sub(count)..data.rows() {
        let example = data.example(row)?;
        features.extend_from_slice(example.features);
        let Answer::Class(class) = example.answer else {
            return None;
        };
        labels.push(class);
    }
    Dataset::with_classes(data.shape().to_vec(), features, labels, data.classes()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rows_are_the_last() {
        let data = Dataset::with_classes(vec![1], vec![1.0, 2.0, 3.0], vec![0, 1, 0], 2);
        let last = last(&data.expect("fits"), 2).expect("two rows");
        let features: Vec<f32> = (0..2)
            .filter_map(|row| last.example(row))
            .map(|example| example.features[0])
            .collect();
        assert_eq!(features, [2.0, 3.0]);
    }

    #[test]
    fn plans_keep_the_epsilon_that_they_are_given() {
        for ensembles in [&crate::pate::MNIST, &crate::pate::ADULT] {
            let epsilon = ensembles.guarantee().expect("a price");
            let beside = Beside {
                plan: ensembles.beside,
                epsilon,
                seed: 1,
                threads: std::num::NonZeroUsize::MIN,
            };
            let plan = beside.recipe().expect("a plan").plan().expect("a price");
            let summary = plan.summary();
            assert!(summary.epsilon_upper <= epsilon && summary.epsilon_upper > 0.99 * epsilon);
            assert_eq!(summary.delta, 1e-5);
            assert_eq!(summary.relation, whit_core::Neighbours::AddRemove);
        }
    }
}
