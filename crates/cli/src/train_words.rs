//! Words of other trainers that people write into a plan, and what they are called here.

/// The words, as fields that are not known here, and what is meant by them.
const WORDS: [(&[&str], &str); 16] = [
    (
        &[
            "batch_size",
            "batch",
            "lot_size",
            "expected_batch_size",
            "sample_rate",
            "sampling_rate",
            "q",
        ],
        "the size of a batch is secret and its expectation follows from the sampling rate: give rate = batch_size / n_public in [plan] (a batch of 600 out of 60000 is rate = 0.01), or sampler = \"fixed_size\" and size = 600",
    ),
    (
        &["epochs", "num_epochs", "n_epochs", "num_train_epochs"],
        "give steps = epochs / rate in [plan]: an epoch is 1 / rate steps, so that 15 epochs at rate = 0.01 are steps = 1500",
    ),
    (
        &[
            "max_grad_norm",
            "l2_norm_clip",
            "clip_norm",
            "clipping_norm",
            "max_norm",
            "C",
        ],
        "give clip in [plan]: the norm that each example's gradient is clipped to, such as clip = 1.0",
    ),
    (
        &["lr", "learning_rate", "lr_init"],
        "give the learning rate as rate in [optimizer], such as rate = 0.5; rate in [plan] is the sampling rate",
    ),
    (
        &["target_epsilon", "eps", "privacy_budget"],
        "give epsilon in [plan], such as epsilon = 3.0: the least noise that keeps it is taken",
    ),
    (
        &["target_delta"],
        "give delta in [plan], such as delta = 1e-6, well below one over the number of examples",
    ),
    (
        &["noise", "sigma", "noise_scale", "noise_std"],
        "give noise_multiplier in [plan]: the noise's standard deviation over clip, such as noise_multiplier = 1.1; or epsilon instead",
    ),
    (
        &["num_steps", "max_steps", "iterations", "n_iter", "max_iter"],
        "give steps in [plan], such as steps = 1000",
    ),
    (
        &["poisson_sampling", "shuffle"],
        "give sampler in [plan]: \"poisson\", which is the default, or \"shuffled\", which is priced without amplification",
    ),
    (
        &["secure_mode", "noise_seed"],
        "leave it out: noise is always exact and from the operating system's entropy",
    ),
    (
        &["accountant", "alphas"],
        "leave it out: the price is that of exact composition, with proven bounds",
    ),
    (
        &[
            "max_physical_batch_size",
            "num_microbatches",
            "microbatches",
            "accumulation_steps",
            "gradient_accumulation_steps",
        ],
        "leave it out: batches of any size are summed piece by piece, in constant memory",
    ),
    (
        &["weight_decay", "l2"],
        "leave it out: there is no weight decay; average in [optimizer] gives a mean over steps",
    ),
    (
        &["dataset_size", "n", "num_examples", "num_samples"],
        "give n_public in [data]: a number of examples that may be public, and was not counted in secret",
    ),
    (
        &["target", "label_column", "y"],
        "give label in [data]: the column, or the file, that is to be learnt",
    ),
    (
        &["num_classes", "n_classes"],
        "give classes in [data]: how many there are, or the list of their names",
    ),
];

/// Where a section is expected and one word stands: `optimizer = "adam"`.
const OPTIMIZER: &str = "give a section [optimizer] with kind = \"sgd\", \"nesterov\" or \"adam\", and the learning rate as rate";

/// What would pass instead, if the message of the TOML reader names such a word.
pub(crate) fn hint(message: &str) -> Option<&'static str> {
    if message.contains("struct OptimizerSection") {
        return Some(OPTIMIZER);
    }
    let word = message.strip_prefix("unknown field `")?.split('`').next()?;
    if matches!(word, "optimizer" | "optim") {
        return Some(OPTIMIZER);
    }
    let known = WORDS.iter().find(|(words, _)| words.contains(&word));
    known.map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_stands_once_and_is_no_field_of_ours() {
        let mut all: Vec<&str> = WORDS
            .iter()
            .flat_map(|(words, _)| *words)
            .copied()
            .collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
        let ours = [
            "rate",
            "steps",
            "clip",
            "epsilon",
            "delta",
            "noise_multiplier",
            "size",
            "classes",
        ];
        assert!(ours.iter().all(|word| !all.contains(word)));
        assert_eq!(hint("unknown field `colour`, expected `a`"), None);
        assert!(
            hint("unknown field `lr`, expected `a`").is_some_and(|it| it.contains("[optimizer]"))
        );
    }
}
