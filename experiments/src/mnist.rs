//! MNIST, and what has its form: its files, and what is declared about them.

/// The training split is private, the test split is declared public. Mean and standard deviation of the pixels are the constants that
/// everybody uses for MNIST. Somebody once computed them from the training split, so they count as public only because all the world knows
/// them: the guarantee does not cover them.
pub(crate) const SECTIONS: &str = r#"
[data]
path = "train-images-idx3-ubyte.gz"
label = "train-labels-idx1-ubyte.gz"
shape = [1, 28, 28]
classes = 10
mean = 0.1307
std = 0.3081
n_public = 60000

[test]
path = "t10k-images-idx3-ubyte.gz"
label = "t10k-labels-idx1-ubyte.gz"
shape = [1, 28, 28]
classes = 10
mean = 0.1307
std = 0.3081
"#;

/// The TOML of a plan: after `[model]`, SGD with a learning rate that falls to zero, momentum 0.9, clip norm 0.1 and weights of which
/// `average` is left after each step. `rate` is that of the samples.
macro_rules! plan {
    ($model:literal, rate $rate:literal, steps $steps:literal, epsilon $epsilon:literal, learning $learning:literal, average $average:literal) => {
        concat!(
            "[model]\n",
            $model,
            "\n\n[plan]\nsampler = \"poisson\"\nrate = ",
            $rate,
            "\nsteps = ",
            $steps,
            "\nclip = 0.1\nepsilon = ",
            $epsilon,
            "\ndelta = 1e-5\n\n[optimizer]\nkind = \"sgd\"\nrate = ",
            $learning,
            "\nschedule = \"linear\"\nmomentum = 0.9\naverage = ",
            $average,
            "\n",
        )
    };
}
pub(crate) use plan;

/// As published.
pub(crate) const FILES: &[&str] = &[
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
];
