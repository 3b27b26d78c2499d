//! Words of other trainers that people write into a plan, and what they are called here.

use whit_learn::classical::Kind;

/// What a plan is of: the same word means other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trained {
    /// A network, step by step.
    Steps,
    /// A classical model, at once.
    Fit(Kind),
    /// Teachers and a student.
    Teachers,
}

/// The words, as fields that are not known here, and what is meant by them in plans of steps.
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
pub(crate) fn hint(message: &str, of: Trained) -> Option<&'static str> {
    let word = || message.strip_prefix("unknown field `")?.split('`').next();
    match of {
        Trained::Steps if message.contains("struct OptimizerSection") => Some(OPTIMIZER),
        Trained::Steps => of_steps(word()?),
        Trained::Fit(kind) => of_fit(word()?, kind),
        Trained::Teachers => of_teachers(word()?),
    }
}

fn of_steps(word: &str) -> Option<&'static str> {
    if matches!(word, "optimizer" | "optim") {
        return Some(OPTIMIZER);
    }
    let known = WORDS.iter().find(|(words, _)| words.contains(&word));
    known.map(|(_, hint)| *hint)
}

/// A classical model has no steps, no batches and no gradients that would be clipped; what stands for them depends on its kind.
fn of_fit(word: &str, kind: Kind) -> Option<&'static str> {
    const NO_PENALTY: &str = "leave it out: a model of this kind has nothing that holds it back";
    Some(match (word, kind) {
        ("C", Kind::MinimaPerturbation) => {
            "give penalty in [model], which is one over C, or leave it out: then it is chosen so that it costs little"
        }
        (
            "l2" | "weight_decay" | "alpha" | "reg" | "lambda" | "regularization",
            Kind::MinimaPerturbation,
        ) => {
            "give penalty in [model]: how strongly weights are held at zero, half of it times their square; or leave it out: then it is chosen so that it costs little"
        }
        (
            "C" | "l2" | "weight_decay" | "alpha" | "reg" | "lambda" | "regularization",
            Kind::LinearRegression,
        ) => "give ridge in [model]: how many examples are added in all directions",
        ("C" | "l2" | "weight_decay" | "alpha" | "reg" | "lambda" | "regularization", _) => {
            NO_PENALTY
        }
        (
            "clip" | "max_grad_norm" | "l2_norm_clip" | "clip_norm" | "clipping_norm" | "max_norm"
            | "data_norm",
            Kind::MinimaPerturbation | Kind::Pca,
        ) => {
            "give norm in [model]: how long examples are at most, and longer ones are shortened; or leave it out: [bounds] say how long they can be"
        }
        (
            "clip" | "max_grad_norm" | "l2_norm_clip" | "clip_norm" | "clipping_norm" | "max_norm"
            | "data_norm",
            _,
        ) => "leave it out: no gradient is clipped; [bounds] say where values lie",
        ("steps" | "num_steps" | "max_steps" | "iterations" | "n_iter" | "max_iter", kind) => {
            match kind {
                Kind::KMeans => "give rounds in [model]: how often the centres move",
                Kind::BoostedStumps => {
                    "give epochs in [model]: how often each feature has its turn"
                }
                Kind::MinimaPerturbation => {
                    "leave it out: the minimum is looked for until it is as near as the price counts on"
                }
                _ => "leave it out: a model of this kind is fitted at once",
            }
        }
        ("num_epochs" | "n_epochs" | "num_train_epochs", Kind::BoostedStumps) => {
            "give epochs in [model]: how often each feature has its turn"
        }
        ("epochs" | "num_epochs" | "n_epochs" | "num_train_epochs", _) => {
            "leave it out: a model of this kind is fitted at once, to all examples"
        }
        ("lr" | "learning_rate" | "lr_init", Kind::BoostedStumps) => {
            "give rate in [model]: by which share of a step scores move, such as rate = 0.8"
        }
        ("lr" | "learning_rate" | "lr_init" | "optimizer" | "optim", _) => {
            "leave it out: a model of this kind is fitted at once, without an optimizer"
        }
        (
            "rate"
            | "batch_size"
            | "batch"
            | "lot_size"
            | "expected_batch_size"
            | "sample_rate"
            | "sampling_rate"
            | "q"
            | "sampler"
            | "poisson_sampling"
            | "shuffle",
            _,
        ) => "leave it out: a classical model is fitted to all examples, and no batch is drawn",
        ("noise_multiplier" | "noise" | "sigma" | "noise_scale" | "noise_std", _) => {
            "leave it out: give epsilon and delta in [plan], and the least noise that keeps them is taken"
        }
        ("n_clusters" | "k", Kind::KMeans) => "give clusters in [model], such as clusters = 8",
        ("n_components", Kind::Pca) => "give components in [model], such as components = 2",
        ("n_estimators" | "n_trees" | "num_trees", Kind::Forest) => {
            "give trees in [model], such as trees = 4"
        }
        ("n_estimators", Kind::BoostedStumps) => {
            "give epochs in [model]: how often each feature has its turn"
        }
        ("max_depth", Kind::Forest) => "give depth in [model], such as depth = 5",
        ("max_features", Kind::Forest) => {
            "give features_per_node in [model]: among how many features a node chooses"
        }
        ("n_bins" | "max_bins" | "max_bin", Kind::Forest | Kind::BoostedStumps) => {
            "give bins in [model]: into how many a number's bounds are cut, such as bins = 32"
        }
        ("random_state" | "random_seed", Kind::KMeans | Kind::Forest | Kind::BoostedStumps) => {
            "give seed in [model], which is public and moves no noise"
        }
        // What is meant the same in every plan.
        _ => return of_any(word),
    })
}

/// Numbers of teachers' noise are in votes, and what a learner takes depends on its kind.
fn of_teachers(word: &str) -> Option<&'static str> {
    Some(match word {
        "epsilon" | "target_epsilon" | "eps" | "privacy_budget" => {
            "give threshold, sigma1 and sigma2 in [aggregator], which fix epsilon: whit pate plan finds them for an epsilon, and --dry-run says what they cost"
        }
        "target_delta" => "give delta in [aggregator], such as delta = 1e-5",
        "noise" | "sigma" | "noise_scale" | "noise_std" | "noise_multiplier" => {
            "give sigma1 and sigma2 in [aggregator]: the standard deviations of the noise of the threshold and of the answers, in votes"
        }
        "num_teachers" | "n_teachers" | "nb_teachers" => {
            "give count in [teachers], such as count = 250"
        }
        "lr" | "learning_rate" | "lr_init" => {
            "give rate in a learner of kind \"network\", such as rate = 0.01"
        }
        "batch_size" => "give batch in a learner of kind \"network\", such as batch = 32",
        "num_epochs" | "n_epochs" => {
            "give epochs in a learner of kind \"network\", such as epochs = 30"
        }
        "alpha" | "l2" | "weight_decay" => {
            "give penalty in a learner of kind \"kernel_ridge\", such as penalty = 0.3"
        }
        "clip" | "max_grad_norm" | "l2_norm_clip" | "clip_norm" => {
            "leave it out: teachers learn without noise, and nothing of theirs is clipped"
        }
        _ => return of_any(word),
    })
}

/// Words that mean the same in every plan.
fn of_any(word: &str) -> Option<&'static str> {
    let same = [
        "target_epsilon",
        "target_delta",
        "secure_mode",
        "accountant",
        "max_physical_batch_size",
        "target",
        "num_classes",
    ];
    let of_steps = WORDS.iter().find(|(words, _)| words.contains(&word));
    let (words, hint) = of_steps?;
    words
        .iter()
        .any(|word| same.contains(word))
        .then_some(*hint)
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
        assert_eq!(said("colour", Trained::Steps), None);
        assert!(said("lr", Trained::Steps).is_some_and(|it| it.contains("[optimizer]")));
    }

    fn said(word: &str, of: Trained) -> Option<&'static str> {
        hint(&format!("unknown field `{word}`, expected `a`"), of)
    }

    /// Nobody is sent to a section that plans of this kind do not have, nor to a field that they do not take.
    #[test]
    fn a_word_means_what_a_plan_of_its_kind_has() {
        let minima = Trained::Fit(Kind::MinimaPerturbation);
        for (word, of, part) in [
            ("C", minima, "penalty in [model], which is one over C"),
            ("weight_decay", minima, "penalty in [model]"),
            ("max_iter", minima, "leave it out"),
            (
                "l2",
                Trained::Fit(Kind::LinearRegression),
                "ridge in [model]",
            ),
            ("max_iter", Trained::Fit(Kind::KMeans), "rounds in [model]"),
            ("n_clusters", Trained::Fit(Kind::KMeans), "clusters"),
            ("max_depth", Trained::Fit(Kind::Forest), "depth in [model]"),
            ("lr", Trained::Fit(Kind::BoostedStumps), "rate in [model]"),
            ("eps", Trained::Fit(Kind::Pca), "epsilon in [plan]"),
            ("eps", Trained::Teachers, "[aggregator]"),
            ("sigma", Trained::Teachers, "sigma1"),
            ("num_classes", Trained::Teachers, "classes in [data]"),
        ] {
            let found = said(word, of).expect("a hint");
            assert!(found.contains(part), "{word}: {found}");
        }
        let words = WORDS.iter().flat_map(|(words, _)| *words);
        for word in words.chain(["optimizer", "sampler", "clip", "steps"].iter()) {
            for (_, kind) in Kind::WORDS {
                let found = said(word, Trained::Fit(kind)).unwrap_or_default();
                for other in [
                    "steps in",
                    "[optimizer]",
                    "clip in",
                    "noise_multiplier in",
                    "rate in [plan]",
                ] {
                    assert!(!found.contains(other), "{word} of {kind:?}: {found}");
                }
            }
            let found = said(word, Trained::Teachers).unwrap_or_default();
            assert!(
                !found.contains("[plan]") && !found.contains("[optimizer]"),
                "{word}: {found}"
            );
        }
    }
}
