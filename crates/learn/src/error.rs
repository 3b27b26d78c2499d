//! Why a plan was refused, and what would pass. All values are of the plan, which is public.

use thiserror::Error as ThisError;
use whit_core::{EntropyFailure, Fault, FaultKind, Neighbours};

use crate::checkpoint::CheckpointError;
use crate::data::DataError;
use crate::model::ModelError;
use crate::pate::VotesError;
use crate::validate::NetworkError;

/// A plan that cannot be, a run that is over, or no entropy.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A unit is out of its domain.
    #[error(transparent)]
    Unit(#[from] whit_core::Error),
    /// The accountant has no price for the plan.
    #[error(transparent)]
    Accounting(#[from] whit_accounting::Error),
    /// A mechanism refused.
    #[error(transparent)]
    Mechanism(#[from] whit_mechanism::Error),
    /// A statistic of an audit refused.
    #[error(transparent)]
    Audit(#[from] whit_audit::Error),
    /// No entropy.
    #[error(transparent)]
    Entropy(#[from] EntropyFailure),
    /// The data do not fit what was declared of them.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Votes of teachers do not fit.
    #[error(transparent)]
    Votes(#[from] VotesError),
    /// The description of a model makes none.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A network cannot be, or not privately.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A run cannot be kept, or cannot go on.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Batches of the plan cannot be summed in floats exactly enough.
    #[error(
        "a batch of {expected} examples, and now and then {cap}, cannot be summed in floats: rounding could reach {share:.2} of the clip norm"
    )]
    BatchRounding {
        /// The public size of a batch.
        expected: f64,
        /// The public cap.
        cap: u32,
        /// What rounding could reach.
        share: f64,
        /// The largest expected batch that passes for this network.
        passes: u64,
        /// The declared number of examples.
        examples_public: u64,
        /// The sampler in one word.
        sampler: &'static str,
    },
    /// A field of a plan that is needed, or has no use.
    #[error("{of} {} `{field}`", if *missing { "needs" } else { "has no use for" })]
    Field {
        /// What needs it, such as a sampler.
        of: &'static str,
        /// The field.
        field: &'static str,
        /// Is it missing? Else it is there in vain.
        missing: bool,
        /// An example of what would pass.
        passes: &'static str,
    },
    /// A word of a plan that means nothing here.
    #[error("`{field}` is {given:?}, which is not known here")]
    Word {
        /// The field.
        field: &'static str,
        /// What was given.
        given: String,
        /// What would pass.
        passes: &'static str,
    },
    /// A sampler that has no price under the relation that is asked for.
    #[error("{of} has no price under `relation = \"{given}\"`")]
    Relation {
        /// The sampler.
        of: &'static str,
        /// What was asked for.
        given: &'static str,
        /// What would pass.
        passes: &'static str,
    },
    /// Examples are not what the network takes.
    #[error("the network takes {takes} numbers, and an example has {gives}")]
    OtherFeatures {
        /// What the network takes.
        takes: usize,
        /// What an example has, which is public.
        gives: usize,
    },
    /// What is to be learnt is not what the network gives.
    #[error("the network gives {outputs} outputs, and the data {}", classes.map_or("hold numbers to be learnt".into(), |count| format!("have {count} classes")))]
    OtherAnswers {
        /// What the network gives.
        outputs: usize,
        /// How many classes there are; `None` where numbers are learnt.
        classes: Option<u32>,
    },
    /// Public data that are declared in another way than the private ones, so that the model would see other numbers.
    #[error("`{field}` is {test} in [{section}] and {data} in [data]")]
    OtherTest {
        /// `test` or `validation`.
        section: &'static str,
        /// The field of the plan.
        field: &'static str,
        /// As given there.
        test: String,
        /// As given in `[data]`.
        data: String,
    },
    /// A batch or a payment of one plan was given to another.
    #[error("this belongs to another plan than it was used for")]
    OtherPlan,
    /// A permit was paid for something else.
    #[error("the permit was paid for another event than this plan's")]
    OtherPermit,
    /// The number of gradients below the clip norm has so little noise that it costs all that a step may.
    #[error(
        "count_noise is {count_noise}, which costs more than a noise multiplier of {noise_multiplier} by itself"
    )]
    CountNoise {
        /// The noise of the number.
        count_noise: f64,
        /// That of sum and number together.
        noise_multiplier: f64,
    },
    /// An audit of so many trials says nothing, or does not end.
    #[error("an audit of {given} trials of each world is too small, or takes longer than a day")]
    Trials {
        /// What was asked for.
        given: usize,
        /// How many end in about a day.
        most: usize,
    },
    /// A list of budgets in a search.
    #[error(
        "a search has no use for a list of `{field}`: no theorem here pays for runs whose budgets differ"
    )]
    Searched {
        /// The field.
        field: &'static str,
    },
    /// A search was begun and did not end.
    #[error("this search was stopped, and cannot go on")]
    SearchStopped,
    /// What would be summed is not what the plan pays for.
    #[error("the sums of this run would not be those that its plan pays for")]
    Unbound,
    /// A number of the plan is out of its range.
    #[error("{what} is {given}, and must be {range}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What was given.
        given: f64,
        /// What would pass.
        range: &'static str,
    },
    /// Declared ends between which there is nothing.
    #[error("from {lower} to {upper} is no interval that values can be in")]
    EmptyInterval {
        /// As given.
        lower: f64,
        /// As given.
        upper: f64,
    },
    /// A column without declared bounds, or bounds for what is no column of the model's.
    #[error("{column:?} {}", if *missing { "has no declared bounds" } else { "has bounds, and is no column of numbers that the model sees" })]
    Bounds {
        /// The column, or what stands for all features where there are no columns.
        column: String,
        /// Are they missing? Else they are there in vain.
        missing: bool,
    },
    /// Examples do not have the numbers that were declared.
    #[error("{declared} features were declared, and an example has {given}")]
    OtherColumns {
        /// As the plan has it.
        declared: usize,
        /// What an example has, which is public.
        given: usize,
    },
    /// What is to be learnt is not what was declared.
    #[error("the plan learns {}, and the data hold {}", answers(*declared), answers(*given))]
    OtherLabels {
        /// The classes of the plan; `None` where numbers are learnt.
        declared: Option<u32>,
        /// Those of the data, which are public.
        given: Option<u32>,
    },
    /// Pictures whose scattering at so many scales would be padding.
    #[error(
        "pictures of {height} by {width} pixels are too small to be scattered at {levels} levels"
    )]
    SmallPicture {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
        /// How often the scale doubles.
        levels: usize,
        /// What each side would have to be.
        least: usize,
    },
    /// Examples that are not channels, rows and columns.
    #[error("examples of the shape {shape:?} are no pictures")]
    NoPictures {
        /// Their shape, which is public.
        shape: Vec<usize>,
    },
    /// Groups that do not divide the channels.
    #[error("{channels} channels do not fall into {groups} groups of the same size")]
    FeatureGroups {
        /// As given.
        groups: usize,
        /// Of an example's features, which are public.
        channels: usize,
    },
    /// Colours of pictures that do not have three planes.
    #[error("pictures of {planes} planes have no opponent colours")]
    NoColours {
        /// As declared, which is public.
        planes: usize,
    },
    /// A list that does not hold whole pictures, or room for another number of them.
    #[error(
        "pictures of {pixels} pixels and room for their {features} features do not fit each other"
    )]
    OtherPictures {
        /// Of one picture.
        pixels: usize,
        /// Of one picture.
        features: usize,
    },
    /// The declared number of examples is that of neighbours, too; the data has another one.
    #[error("the plan declares {declared} examples, and the data has another number")]
    OtherNumberOfExamples {
        /// What was declared.
        declared: u64,
        /// Under this relation it is public.
        relation: Neighbours,
    },
    /// More examples than can be numbered here.
    #[error("the data has more examples than the {most} that can be numbered here")]
    TooManyExamples {
        /// How many can be.
        most: u32,
    },
    /// What a cyclic run remembers of its noise would not fit into memory.
    #[error("noise that is correlated over {rows} rows of {parameters} parameters takes more memory than the {} GiB that a run may have", bytes_max >> 30)]
    NoiseMemory {
        /// Of the model.
        parameters: u64,
        /// The steps of a band, or the levels of a tree.
        rows: u64,
        /// What passes.
        bytes_max: u64,
        /// The widest band that passes for this model, perhaps none; not of a tree.
        band_max: Option<u64>,
        /// The largest model that passes for these rows.
        parameters_max: u64,
    },
    /// Parameters, sums and the state of an optimizer that are not those of one model.
    #[error("a model of {parameters} parameters was given {given} numbers")]
    OtherModel {
        /// How many parameters the optimizer was made for.
        parameters: usize,
        /// How many were given.
        given: usize,
    },
    /// All steps that the plan pays for were taken.
    #[error("all {steps} steps of this plan were taken")]
    StepsTaken {
        /// How many.
        steps: u64,
    },
    /// Sums of a cyclic run are released one after the other, and one is missing or comes late.
    #[error("the sum of step {given} was to be released, and that of step {next} is next")]
    OutOfOrder {
        /// The step that is next, from zero.
        next: u64,
        /// That of the batch.
        given: u64,
    },
    /// A run with epochs was to be taken up in the middle of one.
    #[error("this sampler cannot be taken up after {taken} steps, in the middle of an epoch")]
    MiddleOfEpoch {
        /// After how many steps.
        taken: u64,
        /// How many steps an epoch has.
        epoch: u64,
    },
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Unit(error) => error.kind(),
            Self::Accounting(error) => error.kind(),
            Self::Mechanism(error) => error.kind(),
            Self::Audit(error) => error.kind(),
            Self::Data(error) => error.kind(),
            Self::Votes(error) => error.kind(),
            Self::Model(error) => error.kind(),
            Self::Network(error) => error.kind(),
            Self::Checkpoint(error) => error.kind(),
            Self::Entropy(_) | Self::Unbound => FaultKind::Bug,
            Self::OutOfRange { .. }
            | Self::EmptyInterval { .. }
            | Self::Bounds { .. }
            | Self::OtherColumns { .. }
            | Self::OtherLabels { .. }
            | Self::SmallPicture { .. }
            | Self::NoPictures { .. }
            | Self::FeatureGroups { .. }
            | Self::NoColours { .. }
            | Self::OtherPictures { .. }
            | Self::Field { .. }
            | Self::Word { .. }
            | Self::Relation { .. }
            | Self::OtherFeatures { .. }
            | Self::OtherAnswers { .. }
            | Self::OtherTest { .. }
            | Self::OtherNumberOfExamples { .. }
            | Self::TooManyExamples { .. }
            | Self::NoiseMemory { .. }
            | Self::OtherModel { .. } => FaultKind::Invalid,
            Self::CountNoise { .. } | Self::Trials { .. } => FaultKind::Invalid,
            Self::BatchRounding { .. }
            | Self::Searched { .. }
            | Self::SearchStopped
            | Self::MiddleOfEpoch { .. }
            | Self::OutOfOrder { .. }
            | Self::OtherPlan
            | Self::OtherPermit => FaultKind::Refused,
            Self::StepsTaken { .. } => FaultKind::Exhausted,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unit(error) => error.code(),
            Self::Accounting(error) => error.code(),
            Self::Mechanism(error) => error.code(),
            Self::Audit(error) => error.code(),
            Self::Data(error) => error.code(),
            Self::Votes(error) => error.code(),
            Self::Model(error) => error.code(),
            Self::Network(error) => error.code(),
            Self::Checkpoint(error) => error.code(),
            Self::BatchRounding { .. } => "batch_rounding",
            Self::Field { missing: true, .. } => "plan_field_missing",
            Self::Field { .. } => "plan_field_unused",
            Self::Word { .. } => "plan_word",
            Self::Relation { .. } => "plan_relation",
            Self::OtherFeatures { .. } => "other_features",
            Self::OtherAnswers { .. } => "other_answers",
            Self::OtherTest { .. } => "test_differs",
            Self::OtherPlan => "other_plan",
            Self::OtherPermit => "other_permit",
            Self::CountNoise { .. } => "count_noise",
            Self::Trials { .. } => "audit_trials",
            Self::Searched { .. } => "searched_budget",
            Self::SearchStopped => "search_stopped",
            Self::Unbound => "sum_not_the_plans",
            Self::Entropy(_) => "no_entropy",
            Self::OutOfRange { .. } => "plan_out_of_range",
            Self::EmptyInterval { .. } => "empty_interval",
            Self::Bounds { missing: true, .. } => "bounds_missing",
            Self::Bounds { .. } => "bounds_unused",
            Self::OtherColumns { .. } => "other_columns",
            Self::OtherLabels { .. } => "other_labels",
            Self::SmallPicture { .. } => "small_picture",
            Self::NoPictures { .. } => "no_pictures",
            Self::FeatureGroups { .. } => "feature_groups",
            Self::NoColours { .. } => "no_colours",
            Self::OtherPictures { .. } => "other_pictures",
            Self::OtherNumberOfExamples { .. } => "other_number_of_examples",
            Self::TooManyExamples { .. } => "too_many_examples",
            Self::NoiseMemory { .. } => "noise_memory",
            Self::OtherModel { .. } => "other_model",
            Self::StepsTaken { .. } => "steps_taken",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::MiddleOfEpoch { .. } => "middle_of_epoch",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Unit(error) => error.suggestion(),
            Self::Accounting(error) => error.suggestion(),
            Self::Mechanism(error) => error.suggestion(),
            Self::Audit(error) => error.suggestion(),
            Self::Data(error) => error.suggestion(),
            Self::Votes(error) => error.suggestion(),
            Self::Model(error) => error.suggestion(),
            Self::Network(error) => error.suggestion(),
            Self::Checkpoint(error) => error.suggestion(),
            Self::BatchRounding {
                passes,
                examples_public,
                sampler,
                ..
            } => {
                // Rounded so that what is told passes.
                let rate = (*passes as f64 / *examples_public as f64 * 1e6).floor() / 1e6;
                let parts = examples_public.div_ceil((*passes).max(1));
                let field = match *sampler {
                    "fixed_size" => format!("a `size` of at most {passes}"),
                    "shuffled" => format!("at least {parts} `batches`"),
                    "balls_in_bins" | "cyclic_banded" | "cyclic_tree" => format!("at least {parts} `bins`"),
                    "all" => format!("sampler = \"poisson\" and a `rate` of at most {rate}"),
                    _ => format!("a sampling `rate` of at most {rate}"),
                };
                format!(
                    "let the expected batch be at most {passes}: {field} in [plan] if n_public is {examples_public}"
                )
            }
            Self::Field {
                field,
                missing: true,
                passes,
                ..
            } => format!("give `{field}`, such as {passes}"),
            Self::Field { field, .. } => format!("leave `{field}` out"),
            Self::Word { field, passes, .. } => format!("give `{field}` as {passes}"),
            Self::Relation { passes, .. } => {
                format!("give `relation = \"{passes}\"` in [plan], or leave it out")
            }
            Self::OtherFeatures { gives, .. } => {
                format!("make the network for examples of {gives} numbers")
            }
            Self::OtherAnswers { classes, .. } => match classes {
                Some(count) => {
                    format!("let the last layer give {count} outputs, one for each class")
                }
                None => "let the last layer give one output, or declare `classes`".into(),
            },
            Self::OtherTest { field, .. } => format!("give both the same `{field}`"),
            Self::OtherPlan => "use what a plan has made with that plan alone".into(),
            Self::OtherPermit => "reserve the plan's own event, or its guarantee".into(),
            Self::CountNoise {
                noise_multiplier, ..
            } => format!(
                "give count_noise above {noise_multiplier}, such as a twentieth of the expected batch"
            ),
            Self::Trials { most, .. } if *most < 2 => {
                "audit a plan of fewer steps, or of smaller batches: a run of this one takes a day".into()
            }
            Self::Trials { most, .. } => format!("give from 2 to {most} trials, or none for a minute of them"),
            Self::Searched { field } => {
                format!("give one `{field}` in [plan], which all runs of the search keep together")
            }
            Self::SearchStopped => {
                "search again in another folder, as --out: how many runs are left is not kept, so that is another search, and costs as much".into()
            }
            Self::Unbound => "report this, please".into(),
            Self::Entropy(_) => "run where the operating system's random source works".into(),
            Self::OutOfRange { what, range, .. } => format!("give {what} as {range}"),
            Self::EmptyInterval { .. } => {
                "give two numbers that are apart, by no less than 1e-99 and no further out than 1e100, the lower one first".into()
            }
            Self::Bounds {
                column,
                missing: true,
            } => format!(
                "give {column:?} = [lower, upper] in [bounds], where its values lie by what you know without looking at the data, or all its `categories` in [data] if it holds text"
            ),
            Self::Bounds { column, .. } => format!("leave {column:?} out of [bounds]"),
            Self::OtherColumns { given, .. } => {
                format!("declare {given} features, or give data of the declared ones")
            }
            Self::OtherLabels { declared, .. } => {
                format!("give data with {}", answers(*declared))
            }
            Self::SmallPicture { least, .. } => {
                format!("give pictures with sides of at least {least} pixels, or fewer levels")
            }
            Self::NoPictures { .. } => {
                "give `shape` as channels, rows and columns, such as [1, 28, 28]".into()
            }
            Self::FeatureGroups { channels, .. } => {
                let fit = (1..=*channels).filter(|groups| channels.is_multiple_of(*groups));
                let fit: Vec<String> = fit.map(|groups| groups.to_string()).collect();
                format!("give `groups` as one of {}", fit.join(", "))
            }
            Self::NoColours { .. } => {
                "give pictures of red, green and blue, such as [3, 32, 32], or leave `colours` out"
                    .into()
            }
            Self::OtherPictures { features, .. } => {
                format!("give whole pictures, and room for {features} numbers for each")
            }
            Self::OtherNumberOfExamples { relation, .. } => format!(
                "declare the number that the data has, which is public under {relation}, or use a poisson sampler under add/remove"
            ),
            Self::TooManyExamples { most } => format!("train on at most {most} examples"),
            Self::NoiseMemory {
                band_max,
                parameters_max,
                ..
            } => {
                let model = format!("a model of at most {parameters_max} parameters");
                match band_max {
                    Some(band) if *band > 0 => format!("give `band` as at most {band}, or {model}"),
                    _ => format!("give {model}, or sampler = \"poisson\""),
                }
            }
            Self::OtherModel { parameters, .. } => {
                format!("give as many numbers as the model has parameters: {parameters}")
            }
            Self::StepsTaken { .. } => "plan more steps, and pay for them, before training".into(),
            Self::OutOfOrder { .. } => {
                "release each batch before the next is drawn; a run that lost one is over".into()
            }
            Self::MiddleOfEpoch { taken, epoch } => {
                let next = taken.checked_next_multiple_of((*epoch).max(1));
                format!(
                    "take it up after {} steps, the next multiple of {epoch}, or use a poisson sampler",
                    next.unwrap_or(u64::MAX)
                )
            }
        }
    }
}

fn answers(classes: Option<u32>) -> String {
    classes.map_or("numbers".into(), |count| format!("{count} classes"))
}

/// Refuses a number that is out of its range.
pub(crate) fn within(
    what: &'static str,
    given: f64,
    passes: bool,
    range: &'static str,
) -> Result<()> {
    if passes {
        return Ok(());
    }
    Err(Error::OutOfRange { what, given, range })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_would_pass() {
        let range = within("rate", 1.5, false, "a number above 0 and at most 1");
        let range = range.expect_err("refused");
        assert_eq!(
            (range.to_string().as_str(), range.suggestion().as_str()),
            (
                "rate is 1.5, and must be a number above 0 and at most 1",
                "give rate as a number above 0 and at most 1"
            )
        );
        let taken = Error::StepsTaken { steps: 10 };
        assert_eq!(
            (taken.kind(), taken.code()),
            (FaultKind::Exhausted, "steps_taken")
        );
        let inner = Error::from(whit_core::Error::NotANumber { what: "epsilon" });
        assert_eq!(
            (inner.kind(), inner.code()),
            (FaultKind::Invalid, "not_a_number")
        );
        let middle = Error::MiddleOfEpoch {
            taken: 15,
            epoch: 10,
        };
        assert!(
            middle
                .suggestion()
                .contains("after 20 steps, the next multiple of 10")
        );
    }
}
