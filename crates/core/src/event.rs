//! What a mechanism did, told to an accountant.
//!
//! Events are forever, since ledgers store them: variants are added, never altered or removed, and a version travels with
//! each record. An accountant that does not know a variant must refuse it; there is no default price.
//!
//! **Versions.** An event has the version in which the youngest of its mechanisms came in, so that old events keep their records
//! and fingerprints, and an old reader of a young event can say which version it lacks. A record with any other number is
//! refused: equal events would have different records.

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Neighbours, Probability, Ratio, Repeats, Result, Sampling, Scale};

/// The highest version this program writes and reads.
pub const EVENT_VERSION: u16 = 3;

/// One thing that was done to private data, for one neighbour relation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    version: u16,
    neighbours: Neighbours,
    mechanism: Mechanism,
}

/// The mechanisms an event can name. Numbers are exact; where a bound was taken, it was taken against the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Mechanism {
    /// Integers plus independent noise with `Pr[z] ∝ exp(-|z|/scale)` in each of `coordinates`; the integer vectors of
    /// neighbours are at most `sensitivity_l1` apart in L1.
    DiscreteLaplace {
        /// The noise scale `b`.
        scale: Scale,
        /// The L1 bound.
        sensitivity_l1: Ratio,
        /// How many coordinates were released together.
        coordinates: u64,
    },
    /// Integers plus independent noise with `Pr[z] ∝ exp(-z²/(2 scale²))` in each of `coordinates`; neighbours are at most
    /// `√sensitivity_l2_square` apart in L2.
    DiscreteGaussian {
        /// The noise scale `σ`.
        scale: Scale,
        /// The square of the L2 bound.
        sensitivity_l2_square: Ratio,
        /// How many coordinates were released together.
        coordinates: u64,
    },
    /// One value out of `categories`, kept with probability `keep` and otherwise replaced by a uniform choice among the
    /// others.
    RandomizedResponse {
        /// The probability of the true value.
        keep: Probability,
        /// The number of categories, at least two.
        categories: u64,
    },
    /// A mechanism whose log-ratio of output probabilities between neighbours varies, over all outputs, by at most `epsilon`
    /// (bounded range), such as the exponential mechanism; or an average of such over coins that do not depend on data, which
    /// need not have that range itself, but no divergence above theirs. It is `epsilon`-DP and concentrated four times as well
    /// as a mechanism of which only that is known.
    BoundedRange {
        /// The bound on the range, and on the loss.
        epsilon: Ratio,
    },
    /// A mechanism that is `epsilon`-DP, and of which nothing else is known.
    Pure {
        /// The bound on the loss.
        epsilon: Ratio,
    },
    /// A mechanism that is `(epsilon, delta)`-DP, and of which nothing else is known.
    Approximate {
        /// The bound on the loss.
        epsilon: Ratio,
        /// The slack.
        delta: Probability,
    },
    /// A mechanism that is `rho`-zCDP, and of which nothing else is known.
    Concentrated {
        /// The bound on the concentrated loss.
        rho: Ratio,
    },
    /// The choice which keys to show, each by the number of its units and the optimal curve for `(epsilon, delta)`, for units
    /// that have one key. (A unit with `k` keys is a composition of `k` of these.)
    PartitionSelection {
        /// The bound on the loss for one key.
        epsilon: Ratio,
        /// The probability with which the key of a single unit is shown.
        delta: Probability,
    },
    /// Exactly `inner`, but sampled from a distribution that is within `total_variation` of the exact one on every input.
    Close {
        /// The mechanism that was meant.
        inner: Box<Mechanism>,
        /// The largest total-variation distance between the meant and the sampled output distribution.
        total_variation: Probability,
    },
    /// All of these, on the same data, with parameters that were fixed beforehand. What is asked of a part may depend on the
    /// answers of others, and interactive parts may run at the same time: only theorems that allow that may price it.
    Composition(Vec<Mechanism>),
    /// Real vectors plus independent noise `N(0, scale²)` in each coordinate, or any function of that, such as the nearest
    /// integers; the vectors of neighbours are at most `√sensitivity_l2_square` apart in L2. (Since version 2.)
    Gaussian {
        /// The noise scale `σ`.
        scale: Scale,
        /// The square of the L2 bound.
        sensitivity_l2_square: Ratio,
    },
    /// So many `steps` of `inner`, each on the units that `sampling` draws for it; what is asked in a step may depend on the
    /// answers before. Sensitivities of `inner` are between samples that differ in one unit, by the relation of the event: under
    /// add/remove it is in one of them, under replace-one it is replaced. Under replace-one there is one thing more to vouch for:
    /// leaving the unit out moves the vector at most *half* as far, as it does for sums of clipped vectors (but for
    /// [`Sampling::All`], which leaves nobody out). (Since version 2.)
    Sampled {
        /// Who takes part in which step.
        sampling: Sampling,
        /// How many steps, over all epochs.
        steps: u64,
        /// What is done in each of them.
        inner: Box<Mechanism>,
    },
    /// The best of several runs, by a score that is part of what a run gives. There are as many as `repeats` draws. Each is one of `among`, chosen by coins
    /// of its own that do not look at the data, and knows nothing of the other runs. All that is released is the best run, with which of
    /// `among` it was: not how many there were, and nothing of the others. (Since version 3.)
    BestOf {
        /// How the number of runs is drawn.
        repeats: Repeats,
        /// What a run may be, at least one.
        among: Vec<Mechanism>,
    },
}

impl Event {
    /// What `mechanism` did to neighbours of the given relation.
    pub fn new(neighbours: Neighbours, mechanism: Mechanism) -> Self {
        Self {
            version: mechanism.version(),
            neighbours,
            mechanism,
        }
    }

    /// The version of the record.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The neighbour relation that the guarantee speaks of.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// What was done.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// The canonical record: JSON without spaces, fields in the order of their declaration, ratios in lowest terms. Equal
    /// events have equal records, and different events different ones.
    pub fn record(&self) -> String {
        serde_json::to_string(self).expect("an event is plain data, whose keys are names")
    }

    /// SHA-256 of [`record`](Self::record): what a permit is bound to, and what a ledger is searched by.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(self.record()).into()
    }

    /// Both events on the same data. Refused if they speak of different relations.
    pub fn and(self, other: Self) -> Result<Self> {
        if self.neighbours != other.neighbours {
            return Err(Error::MixedRelations {
                left: self.neighbours,
                right: other.neighbours,
            });
        }
        let mut parts = self.mechanism.into_parts();
        parts.extend(other.mechanism.into_parts());
        Ok(Self::new(self.neighbours, Mechanism::Composition(parts)))
    }
}

impl Mechanism {
    /// The version in which the youngest mechanism in this came in.
    fn version(&self) -> u16 {
        match self {
            Self::BestOf { among, .. } => youngest(among).max(3),
            Self::Gaussian { .. } => 2,
            Self::Sampled { inner, .. } => inner.version().max(2),
            Self::Close { inner, .. } => inner.version(),
            Self::Composition(parts) => youngest(parts),
            _ => 1,
        }
    }

    fn into_parts(self) -> Vec<Self> {
        match self {
            Self::Composition(parts) => parts,
            single => vec![single],
        }
    }
}

fn youngest(parts: &[Mechanism]) -> u16 {
    parts.iter().map(Mechanism::version).max().unwrap_or(1)
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Record {
            version: u16,
            neighbours: Neighbours,
            mechanism: Mechanism,
        }
        let Record {
            version,
            neighbours,
            mechanism,
        } = Record::deserialize(deserializer)?;
        if version == 0 || version > EVENT_VERSION {
            let unknown = Error::UnknownVersion {
                found: version,
                known: EVENT_VERSION,
            };
            return Err(serde::de::Error::custom(unknown));
        }
        let needed = mechanism.version();
        if version != needed {
            let text = format!("an event of this mechanism has version {needed}, not {version}");
            return Err(serde::de::Error::custom(text));
        }
        Ok(Self {
            version,
            neighbours,
            mechanism,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laplace(neighbours: Neighbours) -> Event {
        let scale = Scale::new(Ratio::new(10, 3).expect("3")).expect("in range");
        let mechanism = Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1: Ratio::one(),
            coordinates: 1,
        };
        Event::new(neighbours, mechanism)
    }

    #[test]
    fn record_reads_as_written() {
        let event = laplace(Neighbours::AddRemove);
        let text = serde_json::to_string(&event).expect("an event is plain data");
        assert_eq!(
            text,
            r#"{"version":1,"neighbours":"add_remove","mechanism":{"discrete_laplace":{"scale":"10/3","sensitivity_l1":"1","coordinates":1}}}"#
        );
        assert_eq!(
            serde_json::from_str::<Event>(&text).expect("own record"),
            event
        );
    }

    /// Of the text in `record_reads_as_written`, by another program (`sha256sum`): ledgers hold these, so they stay.
    #[test]
    fn fingerprint_is_the_hash_of_the_record() {
        let event = laplace(Neighbours::AddRemove);
        let found: String = event
            .fingerprint()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            found,
            "c963a1b7ba0d58b04a936f351d134727083d9ca0ad681a00579d073f73f91478"
        );
    }

    #[test]
    fn whatever_differs_has_another_fingerprint() {
        let event = laplace(Neighbours::AddRemove);
        let read: Event = serde_json::from_str(&event.record()).expect("own record");
        assert_eq!(read.fingerprint(), event.fingerprint());
        let other = laplace(Neighbours::ReplaceOne);
        assert_ne!(other.fingerprint(), event.fingerprint());
        let twice = event.clone().and(event.clone()).expect("one relation");
        assert_ne!(twice.fingerprint(), event.fingerprint());
    }

    #[test]
    fn refuses_records_from_the_future() {
        let text = serde_json::to_string(&laplace(Neighbours::AddRemove)).expect("plain data");
        for version in ["0", "2", "65535"] {
            let text = text.replace("\"version\":1", &format!("\"version\":{version}"));
            assert!(
                serde_json::from_str::<Event>(&text).is_err(),
                "version {version} was read"
            );
        }
        let extra = text.replace(
            "\"coordinates\":1",
            "\"coordinates\":1,\"rows_per_unit\":50",
        );
        assert!(
            serde_json::from_str::<Event>(&extra).is_err(),
            "a field that is not known may matter"
        );
        let unknown = text.replace("discrete_laplace", "telepathy");
        assert!(serde_json::from_str::<Event>(&unknown).is_err());
    }

    fn training() -> Event {
        let inner = Mechanism::Gaussian {
            scale: Scale::new(Ratio::new(11, 10).expect("10")).expect("in range"),
            sensitivity_l2_square: Ratio::one(),
        };
        let mechanism = Mechanism::Sampled {
            sampling: Sampling::Poisson {
                rate: Probability::new(Ratio::new(1, 250).expect("250")).expect("a share"),
            },
            steps: 15_000,
            inner: Box::new(inner),
        };
        Event::new(Neighbours::AddRemove, mechanism)
    }

    const TRAINING: &str = r#"{"version":2,"neighbours":"add_remove","mechanism":{"sampled":{"sampling":{"poisson":{"rate":"1/250"}},"steps":15000,"inner":{"gaussian":{"scale":"11/10","sensitivity_l2_square":"1"}}}}}"#;

    #[test]
    fn a_training_run_reads_as_written() {
        assert_eq!(training().record(), TRAINING);
        let read: Event = serde_json::from_str(TRAINING).expect("own record");
        assert_eq!(read, training());
        for sampling in [
            r#"{"fixed_size":{"size":5,"of":7}}"#,
            r#"{"balls_in_bins":{"bins":5}}"#,
            r#"{"shuffled":{"batches":5}}"#,
            r#""all""#,
        ] {
            let text = TRAINING.replace(r#"{"poisson":{"rate":"1/250"}}"#, sampling);
            let read: Event = serde_json::from_str(&text).expect("known");
            assert_eq!(read.record(), text);
        }
    }

    /// The version is that of the youngest part, wherever it is; and nobody can write the same event with another one.
    #[test]
    fn versions_follow_from_the_mechanism() {
        assert_eq!(
            (
                laplace(Neighbours::AddRemove).version(),
                training().version()
            ),
            (1, 2)
        );
        let close = Mechanism::Close {
            inner: Box::new(Mechanism::Composition(vec![
                laplace(Neighbours::AddRemove).mechanism().clone(),
                training().mechanism().clone(),
            ])),
            total_variation: Probability::new(Ratio::power_of_two(-60)).expect("a share"),
        };
        assert_eq!(Event::new(Neighbours::AddRemove, close).version(), 2);
        let both = laplace(Neighbours::AddRemove).and(training());
        assert_eq!(both.expect("one relation").version(), 2);
        let old = TRAINING.replace("\"version\":2", "\"version\":1");
        assert!(serde_json::from_str::<Event>(&old).is_err());
    }

    const SEARCH: &str = r#"{"version":3,"neighbours":"add_remove","mechanism":{"best_of":{"repeats":{"truncated_negative_binomial":{"eta_plus_one":"1/2","gamma":"1/10"}},"among":[{"pure":{"epsilon":"1"}},{"pure":{"epsilon":"2"}}]}}}"#;

    #[test]
    fn a_search_reads_as_written() {
        let among = [1, 2_u64].map(|epsilon| Mechanism::Pure {
            epsilon: Ratio::from(epsilon),
        });
        let tenth = Ratio::new(1, 10).expect("ten");
        let repeats = Repeats::TruncatedNegativeBinomial {
            eta_plus_one: Ratio::new(1, 2).expect("two"),
            gamma: Probability::new(tenth).expect("a share"),
        };
        let among = among.to_vec();
        let event = Event::new(Neighbours::AddRemove, Mechanism::BestOf { repeats, among });
        assert_eq!(event.record(), SEARCH);
        let read: Event = serde_json::from_str(SEARCH).expect("own record");
        assert_eq!(read, event);
        let both = laplace(Neighbours::AddRemove).and(event);
        assert_eq!(both.expect("one relation").version(), 3);
        let within = Mechanism::Sampled {
            sampling: Sampling::All,
            steps: 1,
            inner: Box::new(read.mechanism().clone()),
        };
        assert_eq!(Event::new(Neighbours::AddRemove, within).version(), 3);
        let drawn = r#"{"truncated_negative_binomial":{"eta_plus_one":"1/2","gamma":"1/10"}}"#;
        let poisson = SEARCH.replace(drawn, r#"{"poisson":{"mean":"10"}}"#);
        let read: Event = serde_json::from_str(&poisson).expect("known");
        assert_eq!(read.record(), poisson);
        for (honest, hostile) in [
            ("\"version\":3", "\"version\":2"),
            ("\"1/10\"", "\"11/10\""),
            ("\"1/2\"", "\"-1/2\""),
            (drawn, r#"{"fixed":{"runs":10}}"#),
            ("\"among\":", "\"seen\":10,\"among\":"),
        ] {
            let text = SEARCH.replace(honest, hostile);
            assert_ne!(text, SEARCH, "{honest}");
            assert!(serde_json::from_str::<Event>(&text).is_err(), "{hostile}");
        }
    }

    #[test]
    fn hostile_records_are_refused() {
        let deep = "{\"sampled\":{\"sampling\":\"all\",\"steps\":1,\"inner\":".repeat(100_000);
        let deep = format!("{{\"version\":2,\"neighbours\":\"add_remove\",\"mechanism\":{deep}");
        let mut texts = vec![deep];
        for (honest, hostile) in [
            ("15000", "-1"),
            ("15000", "1e3"),
            ("15000", "18446744073709551616"),
            ("\"1/250\"", "\"251/250\""),
            ("\"1/250\"", "\"1/0\""),
            ("\"1/250\"", "0.004"),
            ("\"11/10\"", "\"0\""),
            ("\"poisson\"", "\"poissonish\""),
            ("\"steps\":15000", "\"steps\":15000,\"epochs\":1"),
            ("\"steps\":15000,", ""),
            ("\"rate\":", "\"replace\":true,\"rate\":"),
        ] {
            let text = TRAINING.replace(honest, hostile);
            assert_ne!(text, TRAINING);
            texts.push(text);
        }
        for text in texts {
            let read = serde_json::from_str::<Event>(&text);
            assert!(read.is_err(), "{}", &text[..text.len().min(300)]);
        }
    }

    #[test]
    fn relations_do_not_mix() {
        let mixed = laplace(Neighbours::AddRemove).and(laplace(Neighbours::ReplaceOne));
        assert!(matches!(mixed, Err(Error::MixedRelations { .. })));
        let both = laplace(Neighbours::AddRemove)
            .and(laplace(Neighbours::AddRemove))
            .expect("one relation");
        assert!(matches!(both.mechanism(), Mechanism::Composition(parts) if parts.len() == 2));
    }
}
