//! # The mechanisms by name
//! Every kind of step, the names it goes by, and its parameters with the names they go by. JSON and the readable form share this
//! table, so they cannot disagree.

use super::error::{Error, Result};

/// How a parameter is found if it is the unknown one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Search {
    /// More of it is more private: the least is wanted.
    Noise,
    /// More of it costs more: the largest up to `most` is wanted.
    Cost { most: f64 },
    /// A whole number that costs: the largest is wanted.
    Whole,
    /// It is not searched for.
    Never,
}

/// A parameter of a mechanism.
#[derive(Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) also: &'static [&'static str],
    pub(super) search: Search,
}

/// The largest loss or sensitivity that a search looks at; what is beyond is no privacy in any case.
const MOST: f64 = 1e6;

impl Parameter {
    /// One of its names, as it was written.
    pub(super) fn spelt(&self, name: &str) -> &'static str {
        let other = self.also.iter().find(|other| **other == name);
        other.copied().unwrap_or(self.name)
    }

    /// What people call it.
    pub(super) fn word(&self) -> &'static str {
        match self.name {
            "epsilon0"
            | "delta0"
            | "l1_sensitivity"
            | "l2_sensitivity"
            | "num_values"
            | "sampling_probability"
            | "sampling_fraction"
            | "t"
            | "n" => self.also.first().unwrap_or(&self.name),
            name => name,
        }
    }

    /// All its names, the one that people use first.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let word = self.word();
        let all = [self.name].into_iter().chain(self.also.iter().copied());
        [word]
            .into_iter()
            .chain(all.filter(move |name| *name != word))
    }
}

const fn parameter(name: &'static str, also: &'static [&'static str], search: Search) -> Parameter {
    Parameter { name, also, search }
}

const fn cost(name: &'static str, also: &'static [&'static str]) -> Parameter {
    parameter(name, also, Search::Cost { most: MOST })
}

const fn share(name: &'static str, also: &'static [&'static str]) -> Parameter {
    parameter(name, also, Search::Cost { most: 1.0 })
}

const SIGMA: Parameter = parameter("sigma", &[], Search::Noise);
const MULTIPLIER: Parameter = parameter("noise_multiplier", &[], Search::Noise);
const SCALE: Parameter = parameter("scale", &[], Search::Noise);
const L2: Parameter = cost("l2_sensitivity", &["sensitivity"]);
const L1: Parameter = cost("l1_sensitivity", &["sensitivity"]);
const DISTANCE: Parameter = parameter("sensitivity", &[], Search::Whole);
const LOSS: Parameter = cost("epsilon0", &["epsilon"]);
/// The largest delta below one.
const SLACK: Parameter = parameter(
    "delta0",
    &["delta"],
    Search::Cost {
        most: 1.0 - f64::EPSILON / 2.0,
    },
);
const RATE: Parameter = share("sampling_probability", &["rate"]);
const EPOCHS: Parameter = parameter("epochs", &[], Search::Whole);

/// The count stands beside the parameters, and is found in the same way.
pub(super) const COUNT: Parameter = parameter("count", &[], Search::Whole);

/// What a term is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gaussian,
    Laplace,
    DiscreteGaussian,
    DiscreteLaplace,
    RandomizedResponse,
    Exponential,
    PermuteAndFlip,
    Approximate,
    PartitionSelection,
    Tabulated,
    Concentrated,
    Gdp,
    PoissonGaussian,
    PoissonLaplace,
    FixedSizeGaussian,
    RandomAllocation,
    ShuffledBatches,
    Shuffled,
}

/// A kind, its names with the one of JSON first, and its parameters.
struct Entry {
    kind: Kind,
    names: &'static [&'static str],
    parameters: &'static [Parameter],
}

const fn entry(
    kind: Kind,
    names: &'static [&'static str],
    parameters: &'static [Parameter],
) -> Entry {
    Entry {
        kind,
        names,
        parameters,
    }
}

static TABLE: [Entry; 18] = [
    entry(Kind::Gaussian, &["gaussian"], &[SIGMA, MULTIPLIER, L2]),
    entry(Kind::Laplace, &["laplace"], &[SCALE, L1]),
    entry(
        Kind::DiscreteGaussian,
        &["discrete_gaussian"],
        &[SIGMA, DISTANCE],
    ),
    entry(
        Kind::DiscreteLaplace,
        &["discrete_laplace", "geometric"],
        &[
            SCALE,
            cost("rate", &[]),
            cost("epsilon", &["epsilon0"]),
            DISTANCE,
        ],
    ),
    entry(
        Kind::RandomizedResponse,
        &["randomized_response", "rr"],
        &[LOSS, parameter("num_values", &["values"], Search::Never)],
    ),
    entry(Kind::Exponential, &["exponential"], &[LOSS]),
    entry(Kind::PermuteAndFlip, &["permute_and_flip"], &[LOSS]),
    entry(Kind::Approximate, &["approx_dp", "dp"], &[LOSS, SLACK]),
    entry(
        Kind::PartitionSelection,
        &["partition_selection"],
        &[LOSS, SLACK],
    ),
    entry(
        Kind::Tabulated,
        &["tabulated"],
        &[
            parameter("p", &[], Search::Never),
            parameter("q", &[], Search::Never),
        ],
    ),
    entry(Kind::Concentrated, &["zcdp"], &[cost("rho", &[])]),
    entry(Kind::Gdp, &["gdp"], &[cost("mu", &[])]),
    entry(
        Kind::PoissonGaussian,
        &["poisson_subsampled_gaussian"],
        &[RATE, SIGMA, MULTIPLIER, L2],
    ),
    entry(
        Kind::PoissonLaplace,
        &["poisson_subsampled_laplace"],
        &[RATE, SCALE, L1],
    ),
    entry(
        Kind::FixedSizeGaussian,
        &["fixed_size_subsampled_gaussian"],
        &[
            share("sampling_fraction", &["fraction", "rate"]),
            SIGMA,
            MULTIPLIER,
            L2,
        ],
    ),
    entry(
        Kind::RandomAllocation,
        &["random_allocation_gaussian"],
        &[
            parameter("t", &["steps"], Search::Never),
            SIGMA,
            MULTIPLIER,
            L2,
            EPOCHS,
        ],
    ),
    entry(
        Kind::ShuffledBatches,
        &["shuffled_batches_gaussian"],
        &[
            parameter("batches", &[], Search::Never),
            SIGMA,
            MULTIPLIER,
            L2,
            EPOCHS,
        ],
    ),
    entry(
        Kind::Shuffled,
        &["shuffled_ldp", "shuffle"],
        &[parameter("n", &["users"], Search::Never), LOSS],
    ),
];

impl Kind {
    /// By any of its names.
    pub(super) fn named(name: &str) -> Option<Self> {
        let entry = TABLE.iter().find(|entry| entry.names.contains(&name))?;
        Some(entry.kind)
    }

    /// One of its names, as it was written.
    pub(super) fn spelt(self, name: &str) -> &'static str {
        let names = self.entry().names;
        names
            .iter()
            .find(|known| **known == name)
            .unwrap_or(&names[0])
    }

    /// Its name in JSON.
    pub(super) fn name(self) -> &'static str {
        self.entry().names[0]
    }

    /// What it takes.
    pub(super) fn parameters(self) -> &'static [Parameter] {
        self.entry().parameters
    }

    /// The parameter of that name.
    pub(super) fn parameter(self, name: &str) -> Result<&'static Parameter> {
        let parameters = self.parameters();
        let found = parameters
            .iter()
            .find(|parameter| parameter.name == name || parameter.also.contains(&name));
        found.ok_or_else(|| Error::UnknownParameter {
            mechanism: self.name(),
            parameter: name.into(),
            known: listed(parameters.iter().flat_map(Parameter::names)),
        })
    }

    fn entry(self) -> &'static Entry {
        TABLE
            .iter()
            .find(|entry| entry.kind == self)
            .expect("every kind has its entry, which a test looks after")
    }

    /// Every name of every kind, for a message.
    pub(super) fn all_names() -> String {
        listed(TABLE.iter().flat_map(|entry| entry.names).copied())
    }
}

/// A type of mechanism in JSON, for a help text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonType {
    /// What may stand as its `type`.
    pub names: &'static [&'static str],
    /// Its keys, each with all names it goes by.
    pub keys: Vec<Vec<&'static str>>,
}

/// Every type of mechanism that a [`Case`](super::Case) can name.
pub fn json_types() -> Vec<JsonType> {
    let of = |entry: &Entry| JsonType {
        names: entry.names,
        keys: entry
            .parameters
            .iter()
            .map(|parameter| parameter.names().collect())
            .collect(),
    };
    TABLE.iter().map(of).collect()
}

/// A sampler around another mechanism in the readable form: its name, what its first number means, and the kind that it makes of
/// what is inside.
pub(super) struct Sampler {
    pub(super) name: &'static str,
    pub(super) first: &'static str,
    pub(super) inside: &'static [(Kind, Kind)],
}

pub(super) static SAMPLERS: [Sampler; 4] = [
    Sampler {
        name: "poisson",
        first: "rate",
        inside: &[
            (Kind::Gaussian, Kind::PoissonGaussian),
            (Kind::Laplace, Kind::PoissonLaplace),
        ],
    },
    Sampler {
        name: "fixed_size",
        first: "fraction",
        inside: &[(Kind::Gaussian, Kind::FixedSizeGaussian)],
    },
    Sampler {
        name: "allocation",
        first: "steps",
        inside: &[(Kind::Gaussian, Kind::RandomAllocation)],
    },
    Sampler {
        name: "batches",
        first: "batches",
        inside: &[(Kind::Gaussian, Kind::ShuffledBatches)],
    },
];

/// The names of the readable form, for a message: samplers around something last.
pub(super) fn readable_names() -> String {
    let plain = TABLE
        .iter()
        .filter(|entry| {
            !SAMPLERS
                .iter()
                .any(|sampler| sampler.inside.iter().any(|(_, made)| *made == entry.kind))
        })
        .flat_map(|entry| entry.names)
        .copied();
    listed(plain.chain(SAMPLERS.iter().map(|sampler| sampler.name)))
}

/// With commas.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever misspells a name is told of every one that passes.
    #[test]
    fn hints_leave_nothing_out() {
        let (readable, json) = (readable_names(), Kind::all_names());
        let named = |list: &str, name: &str| list.split(", ").any(|known| known == name);
        for name in [
            "discrete_laplace",
            "geometric",
            "rr",
            "randomized_response",
            "dp",
            "poisson",
        ] {
            assert!(named(&readable, name), "{name}: {readable}");
        }
        for entry in &TABLE {
            assert!(entry.names.iter().all(|name| named(&json, name)), "{json}");
            let Err(Error::UnknownParameter { known, .. }) = entry.kind.parameter("sgima") else {
                panic!("a parameter of that name");
            };
            for parameter in entry.parameters {
                let mut names = parameter.also.iter().chain([&parameter.name]);
                assert!(names.all(|name| named(&known, name)), "{known}");
            }
        }
    }

    #[test]
    fn names_mean_one_thing() {
        let names: Vec<_> = TABLE.iter().flat_map(|entry| entry.names).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} stands there twice");
            let kind = Kind::named(name).expect("it is in the table");
            assert!(kind.entry().names.contains(name));
        }
        for sampler in &SAMPLERS {
            assert!(Kind::named(sampler.name).is_none());
            for (_, made) in sampler.inside {
                assert!(made.parameter(sampler.first).is_ok(), "{}", sampler.name);
            }
        }
        for entry in &TABLE {
            let names: Vec<_> = entry
                .parameters
                .iter()
                .flat_map(|parameter| parameter.also.iter().chain([&parameter.name]))
                .collect();
            for (index, name) in names.iter().enumerate() {
                assert!(!names[..index].contains(name), "{:?} {name}", entry.kind);
            }
        }
    }
}
