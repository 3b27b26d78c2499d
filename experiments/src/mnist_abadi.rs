//! MNIST at three epsilons, beside the paper that brought DP-SGD.

use crate::experiment::{Experiment, Goal, Setting};
use crate::mnist::{FILES, SECTIONS, plan};

/// [ACG+16, Sec. 5.2] reports 97 %, 95 % and 90 % with a private PCA and one layer of 1,000 units. Any model may beat it: this one is the
/// small CNN with tanh.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "mnist-abadi",
    title: "MNIST at epsilon 8, 2 and 0.5",
    folder: "mnist",
    files: FILES,
    sources: "Beside Abadi et al. (CCS 2016, Sec. 5.2): 97 %, 95 % and 90 %. The network is that of Opacus' example with tanh; clip norm 0.1 and momentum \
              0.9 are those of Tramèr and Boneh (ICLR 2021). Rates, steps, learning rates and averaging are ours: taken from an \
              earlier search for mnist-tanh without another one; that search is not charged.",
    settings: &[
        Setting {
            name: "epsilon 8",
            goal: Goal::Above(0.97),
            data: SECTIONS,
            plan: EIGHT,
        },
        Setting {
            name: "epsilon 2",
            goal: Goal::Above(0.95),
            data: SECTIONS,
            plan: TWO,
        },
        Setting {
            name: "epsilon 0.5",
            goal: Goal::Above(0.90),
            data: SECTIONS,
            plan: HALF,
        },
    ],
    beside: &[],
};

const EIGHT: &str = plan!("kind = \"cnn\"", rate "0.02", steps "400", epsilon "8.0", learning "5.0", average "0.95");

const TWO: &str = plan!("kind = \"cnn\"", rate "0.03", steps "170", epsilon "2.0", learning "8.0", average "0.95");

/// A higher rate and fewer steps: where there is much noise, larger batches pay for it.
const HALF: &str = plan!("kind = \"cnn\"", rate "0.04", steps "125", epsilon "0.5", learning "6.0", average "0.95");
