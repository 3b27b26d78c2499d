//! How good a model is, on data that are declared public. A loss on private data is a query about them, and there is none here: whoever
//! holds a `Secret` cannot call this.

use serde::Serialize;

use crate::data::{Answer, Dataset};
use crate::error::Result;
use crate::network::Network;

/// Examples that are predicted at once, so that memory does not grow with the data.
const AT_ONCE: usize = 512;

/// What a model does on public examples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// The mean loss; not a number where there are no examples.
    pub loss: f64,
    /// The share of examples whose class has the largest output; `None` where numbers are learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

/// Evaluates a model on public data. Empty examples do not count.
pub fn evaluate(network: &Network, parameters: &[f32], public: &Dataset) -> Result<Evaluation> {
    let (mut loss, mut right, mut seen) = (0.0, 0_u64, 0_u64);
    let mut rows = (0..public.rows())
        .filter_map(|row| public.example(row))
        .peekable();
    let (mut features, mut answers) = (Vec::new(), Vec::new());
    while rows.peek().is_some() {
        features.clear();
        answers.clear();
        for example in rows.by_ref().take(AT_ONCE) {
            features.extend_from_slice(example.features);
            answers.push(example.answer);
        }
        let outputs = network.predict(parameters, &features)?;
        for (output, answer) in outputs.chunks_exact(network.output_len()).zip(&answers) {
            let target = match *answer {
                Answer::Class(class) => class as f32,
                Answer::Number(number) => number,
            };
            loss += network.loss().value(output, target);
            right += u64::from(largest(output).map(Answer::Class) == Some(*answer));
            seen += 1;
        }
    }
    Ok(Evaluation {
        loss: loss / seen as f64,
        accuracy: public.classes().map(|_| right as f64 / seen as f64),
    })
}

/// The place of the largest output, the first of several. `None` where there is none of which shares could be told: of a model that diverged no class is said, and none is right.
pub(crate) fn largest(output: &[f32]) -> Option<u32> {
    let mut best = 0;
    for (place, value) in output.iter().enumerate() {
        if value.is_nan() {
            return None;
        }
        if *value > output[best] {
            best = place;
        }
    }
    output.get(best)?.is_finite().then_some(best as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Linear;
    use crate::loss::Loss;

    #[test]
    fn loss_and_accuracy_are_means_over_examples_that_count() {
        // The output is (x, 0): class 0 is guessed where x is not negative.
        let network =
            Network::new(vec![Box::new(Linear::new(1, 2))], Loss::CrossEntropy).expect("fits");
        let parameters = [1.0, 0.0, 0.0, 0.0];
        let rows = 1100;
        let features: Vec<f32> = (0..rows)
            .map(|row| match row % 4 {
                0 | 1 => 2.0,
                2 => -2.0,
                _ => f32::NAN,
            })
            .collect();
        let labels = (0..rows).map(|row| u32::from(row % 4 == 1)).collect();
        let public = Dataset::with_classes(vec![1], features, labels, 2).expect("fits");
        let found = evaluate(&network, &parameters, &public).expect("fits");
        // Of three that count, the first is right, the second has the other class, and the third is wrong.
        assert_eq!(found.accuracy, Some(1.0 / 3.0));
        let (small, large) = ((1.0 + (-2_f64).exp()).ln(), (1.0 + 2_f64.exp()).ln());
        let expected = (small + 2.0 * large) / 3.0;
        assert!((found.loss - expected).abs() < 1e-6, "{found:?} {expected}");
    }

    /// Class 0 was taken for what is said where all outputs are lost, and was right wherever it was the class.
    #[test]
    fn a_model_that_diverged_is_right_about_nothing() {
        let network =
            Network::new(vec![Box::new(Linear::new(1, 2))], Loss::CrossEntropy).expect("fits");
        let public = || Dataset::with_classes(vec![1], vec![1.0; 4], vec![0, 0, 0, 1], 2);
        let found = |weight: f32| {
            let parameters = [weight, 0.0, 0.0, 0.0];
            let found = evaluate(&network, &parameters, &public().expect("fits"));
            found.expect("fits").accuracy
        };
        assert_eq!(found(1.0), Some(0.75));
        assert_eq!(found(f32::NAN), Some(0.0));
        assert_eq!(found(f32::INFINITY), Some(0.0));
        assert_eq!(largest(&[f32::NEG_INFINITY, 0.0, 0.0]), Some(1));
        assert_eq!(largest(&[0.0, f32::NAN]), None);
    }

    #[test]
    fn nothing_is_right_about_nothing() {
        let network = Network::new(vec![Box::new(Linear::new(1, 1))], Loss::Squared).expect("fits");
        let public = Dataset::with_numbers(vec![1], Vec::new(), Vec::new()).expect("no rows");
        let found = evaluate(&network, &[1.0, 0.0], &public).expect("fits");
        assert!(found.loss.is_nan() && found.accuracy.is_none());
    }
}
