//! # One part of an account
//! A mechanism with named numbers, as JSON or the readable form gave them, on its way to a [`Step`]. Quotients such as `256/60000`,
//! or noise over a sensitivity, are no floats in general: they are rounded against the caller for the upper bound and in his
//! favour for the lower one, so the truth stays between.

use whit_accounting::{Error as Refusal, Step};
use whit_core::round;

use super::error::{Error, Result};
use super::kind::{COUNT, Kind, Parameter, Search};

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    Real(f64),
    Whole(u64),
    /// One number over another.
    Quotient(f64, f64),
    List(Vec<f64>),
    /// The question mark.
    Unknown,
}

/// Which bound the step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Upper,
    Lower,
}

/// So many times a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    kind: Kind,
    /// What the mechanism was called.
    name: &'static str,
    fields: Vec<(&'static Parameter, Field)>,
    /// What parameters were called, by their names here.
    words: Vec<(&'static str, &'static str)>,
    count: Field,
}

/// Parameters of which at most one says it all.
const EITHER: [[&str; 2]; 5] = [
    ["noise_multiplier", "sigma"],
    ["noise_multiplier", "l2_sensitivity"],
    ["scale", "rate"],
    ["scale", "epsilon"],
    ["rate", "epsilon"],
];

/// Whole numbers are exact as floats up to here.
const WHOLE_MAX: u64 = 1 << 53;

impl Term {
    /// Refuses a parameter that the kind does not have, and what is said twice.
    pub(super) fn new(
        kind: Kind,
        named: impl IntoIterator<Item = (String, Field)>,
        count: Field,
    ) -> Result<Self> {
        Self::called(kind.name(), kind, named, count)
    }

    /// The same for a mechanism that was called by this name: messages speak of it so.
    pub(super) fn called(
        called: &'static str,
        kind: Kind,
        named: impl IntoIterator<Item = (String, Field)>,
        count: Field,
    ) -> Result<Self> {
        let mut fields: Vec<(&'static Parameter, Field)> = Vec::new();
        let mut words: Vec<(&'static str, &'static str)> = Vec::new();
        for (name, field) in named {
            let parameter = kind.parameter(&name).map_err(|error| match error {
                Error::UnknownParameter {
                    parameter, known, ..
                } => Error::UnknownParameter {
                    mechanism: called,
                    parameter,
                    known,
                },
                other => other,
            })?;
            let before = words.iter().find(|(known, _)| *known == parameter.name);
            if let Some((_, before)) = before {
                return Err(twice(called, before, &name));
            }
            fields.push((parameter, field));
            words.push((parameter.name, parameter.spelt(&name)));
        }
        let word = |name: &'static str| {
            let found = words.iter().find(|(known, _)| *known == name);
            found.map_or(name, |(_, word)| *word)
        };
        let has = |name| fields.iter().any(|(parameter, _)| parameter.name == name);
        for [first, second] in EITHER {
            if has(first) && has(second) {
                return Err(twice(called, word(first), word(second)));
            }
        }
        Ok(Self {
            kind,
            name: called,
            fields,
            words,
            count,
        })
    }

    /// With another word for its count.
    pub(super) fn counting(mut self, word: &'static str) -> Self {
        self.words.push((COUNT.name, word));
        self
    }

    /// The name in messages.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the accountant calls it so.
    pub(super) fn is_step(&self, name: &str) -> bool {
        self.kind.name() == name
    }

    /// What a parameter is called in messages: as it was written, or as people call it.
    pub(super) fn word(&self, parameter: &'static str) -> &'static str {
        let written = |name: &str| {
            let found = self.words.iter().find(|(known, _)| *known == name);
            found.map(|(_, word)| *word)
        };
        let known = self.kind.parameter(parameter).ok();
        written(parameter)
            .or_else(|| match parameter {
                // Steps know one of the two.
                "noise_multiplier" if written("l2_sensitivity").is_some() => {
                    Some("sigma over sensitivity")
                }
                "noise_multiplier" => written("sigma"),
                "sigma" => written("noise_multiplier"),
                _ => None,
            })
            .or_else(|| known.map(Parameter::word))
            .unwrap_or(parameter)
    }

    /// The parameters that are to be found.
    pub(super) fn unknowns(&self) -> impl Iterator<Item = &'static Parameter> {
        let all = self
            .fields
            .iter()
            .map(|(parameter, field)| (*parameter, field));
        all.chain([(&COUNT, &self.count)])
            .filter(|(_, field)| **field == Field::Unknown)
            .map(|(parameter, _)| parameter)
    }

    /// Whether both sides may differ for some value of an unknown parameter.
    pub(super) fn divides(&self) -> bool {
        let has = |names: &[&str]| {
            self.fields
                .iter()
                .any(|(parameter, _)| names.contains(&parameter.name))
        };
        let quotient = |(_, field): &(&Parameter, Field)| matches!(field, Field::Quotient(_, _));
        let per_sensitivity = !matches!(self.kind, Kind::Gaussian | Kind::Laplace);
        self.fields.iter().any(quotient)
            || (per_sensitivity && has(&["l2_sensitivity"]))
            || (self.kind == Kind::DiscreteLaplace && has(&["scale", "epsilon"]))
    }

    /// The step and its count for one side, with `at` in the place of the question mark.
    pub(super) fn step(&self, side: Side, at: Option<f64>) -> Result<(Step, u64)> {
        let reader = Reader {
            term: self,
            side,
            at,
        };
        let count = reader.whole_of(&COUNT, Some(&self.count))?;
        Ok((reader.step()?, count.unwrap_or(1)))
    }

    /// The same, `times` as often.
    pub(super) fn repeated(&self, times: u64) -> Result<Self> {
        let (_, count) = self.step(Side::Upper, None)?;
        let count = count.saturating_mul(times);
        Ok(Self {
            count: Field::Whole(count),
            ..self.clone()
        })
    }
}

fn twice(mechanism: &'static str, first: &str, second: &str) -> Error {
    Error::GivenTwice {
        mechanism,
        first: first.into(),
        second: second.into(),
    }
}

struct Reader<'a> {
    term: &'a Term,
    side: Side,
    at: Option<f64>,
}

impl Reader<'_> {
    fn step(&self) -> Result<Step> {
        Ok(match self.term.kind {
            Kind::Gaussian => match self.real_maybe("noise_multiplier")? {
                Some(sigma) => Step::Gaussian {
                    sigma,
                    sensitivity: 1.0,
                },
                None => Step::Gaussian {
                    sigma: self.real("sigma")?,
                    sensitivity: self.real_maybe("l2_sensitivity")?.unwrap_or(1.0),
                },
            },
            Kind::Laplace => Step::Laplace {
                scale: self.real("scale")?,
                sensitivity: self.real_maybe("l1_sensitivity")?.unwrap_or(1.0),
            },
            Kind::DiscreteGaussian => Step::DiscreteGaussian {
                sigma: self.real("sigma")?,
                sensitivity: self.whole_maybe("sensitivity")?.unwrap_or(1),
            },
            Kind::DiscreteLaplace => self.discrete_laplace()?,
            Kind::RandomizedResponse => Step::RandomizedResponse {
                epsilon: self.real("epsilon0")?,
                categories: self.whole_maybe("num_values")?.unwrap_or(2),
            },
            Kind::Exponential => Step::Exponential {
                epsilon: self.real("epsilon0")?,
            },
            Kind::PermuteAndFlip => Step::PermuteAndFlip {
                epsilon: self.real("epsilon0")?,
            },
            Kind::Approximate => Step::Approximate {
                epsilon: self.real("epsilon0")?,
                delta: self.real_maybe("delta0")?.unwrap_or(0.0),
            },
            Kind::PartitionSelection => Step::PartitionSelection {
                epsilon: self.real("epsilon0")?,
                delta: self.real("delta0")?,
            },
            Kind::Tabulated => Step::Tabulated {
                p: self.list("p")?,
                q: self.list("q")?,
            },
            Kind::Concentrated => Step::Concentrated {
                rho: self.real("rho")?,
            },
            Kind::Gdp => Step::Gdp {
                mu: self.real("mu")?,
            },
            Kind::PoissonGaussian => Step::PoissonGaussian {
                rate: self.real("sampling_probability")?,
                noise_multiplier: self.noise_multiplier()?,
            },
            Kind::PoissonLaplace => Step::PoissonLaplace {
                rate: self.real("sampling_probability")?,
                scale: self.real("scale")?,
                sensitivity: self.real_maybe("l1_sensitivity")?.unwrap_or(1.0),
            },
            Kind::FixedSizeGaussian => Step::FixedSizeGaussian {
                fraction: self.real("sampling_fraction")?,
                sigma: self.noise_multiplier()?,
            },
            Kind::RandomAllocation => Step::RandomAllocation {
                steps: self.whole("t")?,
                noise_multiplier: self.noise_multiplier()?,
                epochs: self.whole_maybe("epochs")?.unwrap_or(1),
            },
            Kind::ShuffledBatches => Step::ShuffledBatches {
                batches: self.whole("batches")?,
                noise_multiplier: self.noise_multiplier()?,
                epochs: self.whole_maybe("epochs")?.unwrap_or(1),
            },
            Kind::Shuffled => Step::Shuffled {
                users: self.whole("n")?,
                epsilon: self.real("epsilon0")?,
            },
        })
    }

    /// Noise over sensitivity: less of it is the worse case.
    fn noise_multiplier(&self) -> Result<f64> {
        if let Some(multiplier) = self.real_maybe("noise_multiplier")? {
            return Ok(multiplier);
        }
        let sigma = self.real("sigma")?;
        match self.real_maybe("l2_sensitivity")? {
            // What is out of range is left to the step to refuse, by its own name.
            Some(sensitivity) if sigma > 0.0 && sigma < f64::INFINITY => {
                self.positive("l2_sensitivity", sensitivity)?;
                Ok(self.quotient(sigma, sensitivity, Search::Noise))
            }
            _ => Ok(sigma),
        }
    }

    fn discrete_laplace(&self) -> Result<Step> {
        let sensitivity = self.whole_maybe("sensitivity")?.unwrap_or(1);
        let (scale, epsilon) = (self.real_maybe("scale")?, self.real_maybe("epsilon")?);
        let costly = Search::Whole;
        let rate = match (scale, epsilon) {
            (Some(scale), _) => {
                self.positive("scale", scale)?;
                self.quotient(1.0, scale, costly)
            }
            (None, Some(epsilon)) if sensitivity > 0 => {
                self.positive("epsilon", epsilon)?;
                self.quotient(epsilon, sensitivity as f64, costly)
            }
            (None, Some(epsilon)) => epsilon,
            (None, None) => match self.real_maybe("rate")? {
                Some(rate) => rate,
                None => return Err(self.missing("scale, rate or epsilon")),
            },
        };
        Ok(Step::DiscreteLaplace { rate, sensitivity })
    }

    fn field(&self, name: &'static str) -> Result<(&'static Parameter, Option<&Field>)> {
        let parameter = self.term.kind.parameter(name)?;
        let found = self
            .term
            .fields
            .iter()
            .find(|(known, _)| *known == parameter);
        Ok((parameter, found.map(|(_, field)| field)))
    }

    fn real(&self, name: &'static str) -> Result<f64> {
        self.real_maybe(name)?.ok_or_else(|| self.missing(name))
    }

    fn real_maybe(&self, name: &'static str) -> Result<Option<f64>> {
        let (parameter, field) = self.field(name)?;
        Ok(Some(match field {
            None => return Ok(None),
            Some(Field::Real(value)) => *value,
            Some(Field::Whole(value)) => *value as f64,
            Some(Field::Quotient(over, under)) => self.quotient(*over, *under, parameter.search),
            Some(Field::List(_)) => return Err(self.wrong(name, "a list", "one number")),
            Some(Field::Unknown) => self.unknown()?,
        }))
    }

    fn whole(&self, name: &'static str) -> Result<u64> {
        self.whole_maybe(name)?.ok_or_else(|| self.missing(name))
    }

    fn whole_maybe(&self, name: &'static str) -> Result<Option<u64>> {
        let (parameter, field) = self.field(name)?;
        self.whole_of(parameter, field)
    }

    /// Floats that are whole count as whole below 2^53; from there on they may be the rounding of another number.
    fn whole_of(
        &self,
        parameter: &'static Parameter,
        field: Option<&Field>,
    ) -> Result<Option<u64>> {
        let real = match field {
            None => return Ok(None),
            // In the digits that were written, which a float has not.
            Some(Field::Whole(value)) if *value > WHOLE_MAX => {
                return Err(Error::TooLarge {
                    what: format!("{}: {}", self.term.name(), self.term.word(parameter.name)),
                    found: value.to_string(),
                });
            }
            Some(Field::Whole(value)) => return Ok(Some(*value)),
            Some(Field::Real(value)) => *value,
            Some(Field::Unknown) => return Ok(Some(self.unknown()? as u64)),
            Some(Field::Quotient(..)) => {
                return Err(self.wrong(parameter.name, "a quotient", "a whole number"));
            }
            Some(Field::List(_)) => {
                return Err(self.wrong(parameter.name, "a list", "a whole number"));
            }
        };
        if real >= 0.0 && real < WHOLE_MAX as f64 && real.fract() == 0.0 {
            Ok(Some(real as u64))
        } else {
            Err(self.out_of_range(parameter.name, real, "a whole number from 1 to 2^53"))
        }
    }

    fn list(&self, name: &'static str) -> Result<Vec<f64>> {
        match self.field(name)?.1 {
            Some(Field::List(values)) => Ok(values.clone()),
            None => Err(self.missing(name)),
            Some(_) => Err(self.wrong(name, "one number", "a list of probabilities")),
        }
    }

    fn unknown(&self) -> Result<f64> {
        self.at.ok_or(Error::Unknowns {
            found: 1,
            wanted: 0,
        })
    }

    fn quotient(&self, over: f64, under: f64, search: Search) -> f64 {
        match (self.side, search) {
            (Side::Upper, Search::Noise) => round::div_down(over, under),
            (Side::Lower, Search::Noise) => round::div_up(over, under),
            (Side::Upper, _) => round::div_up(over, under),
            (Side::Lower, _) => round::div_down(over, under).max(f64::MIN_POSITIVE),
        }
    }

    fn positive(&self, what: &'static str, found: f64) -> Result<()> {
        if found > 0.0 && found < f64::INFINITY {
            Ok(())
        } else {
            Err(self.out_of_range(what, found, "a number above 0"))
        }
    }

    fn out_of_range(&self, what: &'static str, found: f64, range: &'static str) -> Error {
        let (step, what) = (self.term.name(), self.term.word(what));
        Refusal::OutOfRange {
            step,
            what,
            found,
            range,
        }
        .into()
    }

    fn missing(&self, parameter: &'static str) -> Error {
        Error::MissingParameter {
            mechanism: self.term.name(),
            parameter: self.term.word(parameter),
        }
    }

    fn wrong(&self, name: &'static str, found: &str, passes: &'static str) -> Error {
        Error::WrongValue {
            what: format!("{}: {}", self.term.name(), self.term.word(name)),
            found: found.into(),
            passes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: Kind, fields: &[(&str, Field)], side: Side) -> Result<Step> {
        let named = fields
            .iter()
            .map(|(name, field)| ((*name).to_owned(), field.clone()));
        Ok(Term::new(kind, named, Field::Whole(1))?.step(side, None)?.0)
    }

    #[test]
    fn quotients_are_rounded_against_the_caller() {
        let fields = [
            ("rate", Field::Quotient(1.0, 3.0)),
            ("sigma", Field::Real(1.0)),
            ("sensitivity", Field::Whole(3)),
        ];
        let of = |side| match step(Kind::PoissonGaussian, &fields, side) {
            Ok(Step::PoissonGaussian {
                rate,
                noise_multiplier,
            }) => (rate, noise_multiplier),
            other => panic!("{other:?}"),
        };
        let (upper, lower) = (of(Side::Upper), of(Side::Lower));
        assert!(upper.0 > lower.0 && upper.1 < lower.1);
        assert!(upper.0 - lower.0 < 1e-15 && lower.1 - upper.1 < 1e-15);
        let geometric =
            |side| match step(Kind::DiscreteLaplace, &[("scale", Field::Whole(10))], side) {
                Ok(Step::DiscreteLaplace { rate, .. }) => rate,
                other => panic!("{other:?}"),
            };
        assert!(geometric(Side::Upper) >= 0.1 && geometric(Side::Lower) <= 0.1);
        assert!(geometric(Side::Upper) > geometric(Side::Lower));
    }

    #[test]
    fn whole_numbers_are_whole() {
        let count = |count| {
            let sigma = [("sigma".to_owned(), Field::Real(1.0))];
            let term = Term::new(Kind::Gaussian, sigma, count).expect("known");
            term.step(Side::Upper, None).map(|(_, count)| count)
        };
        assert_eq!(count(Field::Real(1e4)), Ok(10_000));
        assert_eq!(count(Field::Whole(1 << 53)), Ok(1 << 53));
        // The digits are those that were written.
        let error = count(Field::Whole((1 << 53) + 1)).expect_err("no float");
        let words = "gaussian: count is 9007199254740993; it must be a whole number up to 2^53";
        assert_eq!(error.to_string(), words);
        for wrong in [0.5, -1.0, 9_007_199_254_740_992.0, 1e300, f64::NAN] {
            assert!(count(Field::Real(wrong)).is_err(), "{wrong}");
        }
        assert!(count(Field::Quotient(4.0, 2.0)).is_err());
    }

    #[test]
    fn nothing_is_said_twice() {
        for (kind, first, second) in [
            (Kind::Gaussian, "sigma", "noise_multiplier"),
            (Kind::Gaussian, "sensitivity", "l2_sensitivity"),
            (Kind::PoissonGaussian, "noise_multiplier", "sensitivity"),
            (Kind::DiscreteLaplace, "scale", "rate"),
            (Kind::DiscreteLaplace, "epsilon", "epsilon0"),
        ] {
            let both = [(first, Field::Whole(1)), (second, Field::Whole(1))];
            assert!(
                matches!(
                    step(kind, &both, Side::Upper),
                    Err(Error::GivenTwice { .. })
                ),
                "{first} {second}"
            );
        }
    }
}
