//! # Questions and answers
//! An [`Account`] is asked one thing at a time, and answers with both bounds and what proves them.

use serde::ser::{Serialize, SerializeMap, Serializer};
use whit_accounting::target::{self, Target};
use whit_accounting::{
    Answer as Found, Bracket, Composition, Error as Refusal, Result as Accounted,
};
use whit_core::Neighbours;

use super::error::{Error, Result};
use super::form;
use super::kind::{Parameter, Search};
use super::term::{Side, Term};

/// Mechanisms on the same data, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub(super) terms: Vec<Term>,
    pub(super) neighbours: Neighbours,
    pub(super) group: u64,
}

/// What an account can be asked.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Query {
    /// The smallest epsilon at this delta.
    Epsilon {
        /// The slack.
        delta: f64,
    },
    /// The smallest delta at this epsilon.
    Delta {
        /// The loss.
        epsilon: f64,
    },
    /// The Rényi divergence of this order.
    Renyi {
        /// The order, above 1.
        alpha: f64,
    },
    /// The least rate of false negatives of any test with this rate of false positives.
    FalseNegatives {
        /// The rate of false positives.
        rate: f64,
    },
    /// The value of the one unknown parameter that keeps this guarantee.
    Parameter {
        /// The loss to keep.
        epsilon: f64,
        /// The slack to keep.
        delta: f64,
    },
}

/// Which end of an answer is safe to rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Safe {
    /// A cost, or noise that is needed.
    Upper,
    /// A grant: what may be spent, sampled or repeated; errors that an attacker cannot avoid.
    Lower,
}

/// A number between two bounds that are proven.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// What the number is: `epsilon`, `delta`, `rdp_epsilon`, `fnr` or a parameter, as it was written.
    pub quantity: &'static str,
    /// The truth is not below.
    pub lower: f64,
    /// The truth is not above.
    pub upper: f64,
    /// The bound that a promise may rest on.
    pub safe: Safe,
    /// What computed it.
    pub engine: &'static str,
    /// What proves it, with the keys of its references.
    pub theorem: &'static str,
}

impl Account {
    /// Reads the form for people: see [the module](super) for examples.
    pub fn parse(form: &str, neighbours: Neighbours) -> Result<Self> {
        let (terms, group) = (form::parse(form)?, 1);
        Ok(Self {
            terms,
            neighbours,
            group,
        })
    }

    /// The same, for so many units that change together.
    pub fn for_group(self, group: u64) -> Self {
        Self { group, ..self }
    }

    /// Every mechanism so many times as often.
    pub fn repeated(&self, times: u64) -> Result<Self> {
        let terms: Result<_> = self.terms.iter().map(|term| term.repeated(times)).collect();
        Ok(Self {
            terms: terms?,
            ..self.clone()
        })
    }

    /// Whom it protects.
    pub fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// How many units change together.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// For the accountant: every rounding is against the caller, so upper bounds of it are upper bounds.
    pub fn composition(&self) -> Result<Composition> {
        let composed = self.compose(Side::Upper, None);
        composed.map_err(|error| self.worded(error))
    }

    /// Answers.
    pub fn ask(&self, query: Query) -> Result<Answer> {
        self.answer(query).map_err(|error| self.worded(error))
    }

    /// A refusal in the words in which the account was written, and not in those of the accountant.
    fn worded(&self, error: Error) -> Error {
        let Error::Accounting(mut refusal) = error else {
            return error;
        };
        let called = |step: &str| self.terms.iter().find(|term| term.is_step(step));
        match &mut refusal {
            Refusal::OutOfRange { step, what, .. } => {
                if let Some(term) = called(step) {
                    (*step, *what) = (term.name(), term.word(what));
                }
            }
            Refusal::Mismatch { step, .. }
            | Refusal::GroupUnknown { step }
            | Refusal::NoEngine { what: step } => {
                if let Some(term) = called(step) {
                    *step = term.name();
                }
            }
            _ => {}
        }
        refusal.into()
    }

    fn answer(&self, query: Query) -> Result<Answer> {
        let unknowns: Vec<_> = self
            .terms
            .iter()
            .flat_map(|term| term.unknowns().map(move |parameter| (term, parameter)))
            .collect();
        let wanted = usize::from(matches!(query, Query::Parameter { .. }));
        match (query, unknowns.as_slice()) {
            (Query::Parameter { epsilon, delta }, [(term, parameter)]) => {
                let target = Target::new(epsilon, delta)?;
                self.calibrate(term, parameter, target)
            }
            (Query::Parameter { .. }, _) | (_, [_, ..]) => Err(Error::Unknowns {
                found: unknowns.len(),
                wanted,
            }),
            (Query::Epsilon { delta }, []) => {
                let found = self.found(|composition| composition.epsilon(delta))?;
                Ok(answer("epsilon", Safe::Upper, found))
            }
            (Query::Delta { epsilon }, []) => {
                let found = self.found(|composition| composition.delta(epsilon))?;
                Ok(answer("delta", Safe::Upper, found))
            }
            (Query::Renyi { alpha }, []) => {
                let (upper, lower) = self.sides()?;
                let most = upper.renyi(alpha)?;
                let least = if upper == lower {
                    most
                } else {
                    lower.renyi(alpha)?
                };
                Ok(Answer {
                    quantity: "rdp_epsilon",
                    lower: not_negative(least.lower().min(most.upper())),
                    upper: most.upper(),
                    safe: Safe::Upper,
                    engine: "renyi",
                    theorem: "Rényi divergences of dominating pairs, which add up [Mir17, Prop. 1]",
                })
            }
            (Query::FalseNegatives { rate }, []) => {
                // Whoever pays more can be told apart more easily: the sides change places.
                let (upper, lower) = self.sides()?;
                let least = upper.false_negatives(rate)?;
                let most = if upper == lower {
                    least
                } else {
                    lower.false_negatives(rate)?
                };
                Ok(Answer {
                    quantity: "fnr",
                    lower: not_negative(least.lower()),
                    upper: most.upper().max(least.lower()),
                    safe: Safe::Lower,
                    engine: upper.delta(0.0)?.engine,
                    theorem: "the trade-off curve as the conjugate of the profile [DRS22, Prop. 2.12]",
                })
            }
        }
    }

    /// For the upper bound of a cost, and for its lower one; mostly the same.
    fn sides(&self) -> Result<(Composition, Composition)> {
        Ok((
            self.compose(Side::Upper, None)?,
            self.compose(Side::Lower, None)?,
        ))
    }

    fn compose(&self, side: Side, at: Option<f64>) -> Result<Composition> {
        let steps: Result<Vec<_>> = self.terms.iter().map(|term| term.step(side, at)).collect();
        Ok(Composition::new(self.neighbours, steps?)?.for_group(self.group)?)
    }

    /// Each bound from its own side.
    fn found(&self, ask: impl Fn(&Composition) -> Accounted<Found>) -> Result<(Bracket, Found)> {
        let (upper, lower) = self.sides()?;
        let found = ask(&upper)?;
        if upper == lower {
            return Ok((found.bounds, found));
        }
        let least = ask(&lower)?.bounds.lower().min(found.bounds.upper());
        Ok((Bracket::new(least, found.bounds.upper()), found))
    }

    fn calibrate(
        &self,
        term: &Term,
        parameter: &'static Parameter,
        target: Target,
    ) -> Result<Answer> {
        // What cannot be composed at all is refused in the words of the form.
        let trial = match parameter.search {
            Search::Noise | Search::Cost { .. } => 0.5,
            Search::Whole | Search::Never => 1.0,
        };
        self.compose(Side::Upper, Some(trial))?;
        let search = |side| match parameter.search {
            Search::Noise => target::least_noise(|value| self.accounted(side, value), target),
            Search::Cost { most } => {
                target::largest(|value| self.accounted(side, value), most, target)
            }
            _ => target::most_steps(|value| self.accounted(side, value as f64), target),
        };
        let safe = match parameter.search {
            Search::Noise => Safe::Upper,
            Search::Never => {
                return Err(Error::NotSearched {
                    mechanism: term.name(),
                    parameter: term.word(parameter.name),
                });
            }
            Search::Cost { .. } | Search::Whole => Safe::Lower,
        };
        let found = search(Side::Upper)?;
        let mut bounds = found.bounds;
        if self.terms.iter().any(Term::divides) {
            let other = search(Side::Lower)?.bounds;
            bounds = match safe {
                Safe::Upper => Bracket::new(other.lower().min(bounds.upper()), bounds.upper()),
                Safe::Lower => Bracket::new(bounds.lower(), other.upper().max(bounds.lower())),
            };
        }
        Ok(answer(term.word(parameter.name), safe, (bounds, found)))
    }

    fn accounted(&self, side: Side, at: f64) -> Accounted<Composition> {
        self.compose(side, Some(at)).map_err(|error| match error {
            Error::Accounting(error) => error,
            // The form was composed once before the search began.
            _ => whit_accounting::Error::Unverified { what: "form" },
        })
    }
}

fn answer(quantity: &'static str, safe: Safe, (bounds, found): (Bracket, Found)) -> Answer {
    Answer {
        quantity,
        lower: not_negative(bounds.lower()),
        upper: bounds.upper(),
        safe,
        engine: found.engine,
        theorem: found.theorem,
    }
}

/// Nothing that is asked for is negative.
fn not_negative(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}

impl Answer {
    /// A number between the bounds; infinite if the upper one is.
    pub fn estimate(&self) -> f64 {
        if self.upper.is_finite() {
            Bracket::new(self.lower, self.upper).estimate()
        } else {
            f64::INFINITY
        }
    }

    /// Why a bound is infinite.
    pub fn reason(&self) -> Option<&'static str> {
        if self.lower.is_infinite() {
            Some(match self.quantity {
                "epsilon" => "no finite epsilon holds at this delta",
                _ => "the truth is infinite",
            })
        } else if self.upper.is_infinite() {
            Some("no finite upper bound is proven")
        } else {
            None
        }
    }
}

/// `{"lower":…,"upper":…,"estimate":…,"engine":…,"theorem":…}`, with null for infinity and then a `reason`.
impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

impl Answer {
    pub(super) fn entries<M: SerializeMap>(
        &self,
        map: &mut M,
    ) -> std::result::Result<(), M::Error> {
        for (key, value) in [
            ("lower", self.lower),
            ("upper", self.upper),
            ("estimate", self.estimate()),
        ] {
            map.serialize_entry(key, &value.is_finite().then_some(value))?;
        }
        map.serialize_entry("engine", self.engine)?;
        map.serialize_entry("theorem", self.theorem)?;
        if let Some(reason) = self.reason() {
            map.serialize_entry("reason", reason)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(form: &str, query: Query) -> Result<Answer> {
        Account::parse(form, Neighbours::AddRemove)?.ask(query)
    }

    #[test]
    fn a_quotient_stays_between() {
        let query = Query::Epsilon { delta: 1e-5 };
        let exact = ask("geometric(rate=0.1) x 10", query).expect("known");
        let over = ask("geometric(scale=10) x 10", query).expect("known");
        assert!(over.lower <= exact.upper && exact.lower <= over.upper);
        assert!((over.upper - over.lower) / over.upper < 1e-9);
    }

    #[test]
    fn finds_each_kind_of_parameter() {
        let target = Query::Parameter {
            epsilon: 1.0,
            delta: 1e-5,
        };
        for (form, quantity, safe, near) in [
            ("gaussian(sigma=?)", "sigma", Safe::Upper, 3.730_631_6),
            (
                "gaussian(sigma=3.730632, sensitivity=?)",
                "sensitivity",
                Safe::Lower,
                1.0,
            ),
            ("gaussian(sigma=3.730632) x ?", "count", Safe::Lower, 1.0),
            ("gaussian(sigma=37.30632) x ?", "count", Safe::Lower, 100.0),
            ("gdp(mu=?)", "mu", Safe::Lower, 0.268_051_1),
            ("geometric(epsilon=?)", "epsilon", Safe::Lower, 1.000_02),
            ("dp(epsilon=1, delta=?)", "delta", Safe::Lower, 1e-5),
            (
                "poisson(0.01, gaussian(sigma=?, sensitivity=2)) x 1000",
                "sigma",
                Safe::Upper,
                2.0 * 1.414_619_4,
            ),
        ] {
            let found = ask(form, target).unwrap_or_else(|error| panic!("{form}: {error}"));
            assert_eq!((found.quantity, found.safe), (quantity, safe), "{form}");
            let value = match safe {
                Safe::Upper => found.upper,
                Safe::Lower => found.lower,
            };
            assert!((value / near - 1.0).abs() < 2e-5, "{form}: {found:?}");
            assert!(found.lower <= found.upper);
        }
        for form in ["gaussian(sigma=1)", "gaussian(sigma=?) x ?"] {
            assert!(
                matches!(ask(form, target), Err(Error::Unknowns { .. })),
                "{form}"
            );
        }
        let users = Account::parse("shuffle(?, epsilon=1)", Neighbours::ReplaceOne)
            .and_then(|account| account.ask(target));
        assert!(matches!(users, Err(Error::NotSearched { .. })), "{users:?}");
        let open = ask("gaussian(sigma=?)", Query::Epsilon { delta: 1e-5 });
        assert!(matches!(open, Err(Error::Unknowns { .. })));
    }

    /// Nobody who writes `poisson(1.5, …)` has heard of a `sampling_probability`.
    #[test]
    fn refusals_speak_the_words_of_the_form() {
        let query = Query::Epsilon { delta: 1e-5 };
        for (form, words) in [
            ("poisson(1.5, gaussian(sigma=1))", "poisson: rate is 1.5;"),
            ("poisson(0.1, gaussian(sigma=-1))", "poisson: sigma is -1;"),
            (
                "poisson(0.1, gaussian(noise_multiplier=0))",
                "poisson: noise_multiplier is 0;",
            ),
            (
                "gaussian(sigma=1, sensitivity=-1)",
                "gaussian: sensitivity is -1;",
            ),
            ("dp(epsilon=1, delta=1)", "dp: delta is 1;"),
            ("approx_dp(epsilon0=-1)", "approx_dp: epsilon0 is -1;"),
            (
                "allocation(0, gaussian(sigma=1))",
                "allocation: steps is 0;",
            ),
            ("geometric(scale=0)", "geometric: scale is 0;"),
            ("rr()", "rr needs epsilon"),
            ("rr(epsilon=1)", "rr is not priced under add/remove"),
            ("poisson(0.1, gaussian())", "poisson needs sigma"),
            (
                "poisson(0.1, steps=3, gaussian(sigma=1))",
                "poisson has no parameter called \"steps\"",
            ),
            (
                "gaussian(sigma=1, sensitivity=1, l2_sensitivity=1)",
                "gaussian has both sensitivity and l2_sensitivity",
            ),
            (
                "gaussian(sigma=1) x 99999999999999999999",
                "count is 99999999999999999999; it must be",
            ),
            (
                "gaussian(sigma=1) x 9007199254740993",
                "gaussian: count is 9007199254740993; it must be",
            ),
        ] {
            let error = ask(form, query).expect_err(form).to_string();
            assert!(error.starts_with(words), "{form}: {error}");
        }
    }

    #[test]
    fn infinity_has_a_reason() {
        let found = ask("gaussian(sigma=1)", Query::Epsilon { delta: 0.0 }).expect("an answer");
        assert_eq!((found.lower, found.upper), (f64::INFINITY, f64::INFINITY));
        let json = serde_json::to_string(&found).expect("plain data");
        assert!(
            json.starts_with(r#"{"lower":null,"upper":null,"estimate":null,"engine":"#)
                && json.ends_with(r#""reason":"no finite epsilon holds at this delta"}"#),
            "{json}"
        );
    }
}
