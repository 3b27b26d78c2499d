//! # The readable form
//!
//! ```text
//! form     = term { "+" term }
//! term     = call [ times count ]
//! times    = "x" | "*" | "×"
//! call     = name "(" [ argument { "," argument } ] ")"
//! argument = [ name "=" ] value | call
//! value    = number [ "/" number ] | "[" number { "," number } "]" | "?"
//! ```
//!
//! Numbers are named, but for the first of a sampler and of `shuffle`; a call stands only within a sampler.

use super::error::{Error, Result};
use super::kind::{Kind, SAMPLERS, Sampler, listed, readable_names};
use super::term::{Field, Term};

/// Whole floats from here on may be the rounding of another number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The terms of a text.
pub(super) fn parse(form: &str) -> Result<Vec<Term>> {
    let mut parser = Parser {
        form,
        letters: form.chars().collect(),
        place: 0,
    };
    let mut terms = vec![parser.term()?];
    while parser.takes('+') {
        terms.push(parser.term()?);
    }
    parser.space();
    if parser.place < parser.letters.len() {
        return Err(
            parser.wrong("write \"+\" and another mechanism, \"x\" and how often, or nothing")
        );
    }
    Ok(terms)
}

struct Parser<'a> {
    form: &'a str,
    letters: Vec<char>,
    place: usize,
}

/// Values by their names.
type Fields = Vec<(String, Field)>;

/// A mechanism as it is written, before it is known what its numbers are called.
struct Call {
    name: String,
    place: usize,
    fields: Fields,
    inside: Option<Box<Call>>,
}

impl Parser<'_> {
    fn term(&mut self) -> Result<Term> {
        let call = self.call()?;
        let count = if self.times() {
            self.count()?
        } else {
            Field::Whole(1)
        };
        let end = self.place;
        self.place = call.place;
        let (name, kind, fields) = self.resolve(call)?;
        self.place = end;
        Term::called(name, kind, fields, count)
    }

    fn call(&mut self) -> Result<Call> {
        self.space();
        let place = self.place;
        let mechanism = "name a mechanism, such as gaussian(sigma=20)";
        let name = self.name().ok_or_else(|| self.wrong(mechanism))?;
        self.place = place;
        let sampler = SAMPLERS.iter().find(|sampler| sampler.name == name);
        let first = match (sampler, Kind::named(&name)) {
            (Some(sampler), _) => Some(sampler.first),
            (None, Some(Kind::Shuffled)) => Some("users"),
            (None, Some(_)) => None,
            (None, None) => {
                return Err(Error::UnknownMechanism {
                    name,
                    known: readable_names(),
                });
            }
        };
        self.place += name.chars().count();
        self.needs(
            '(',
            "write its parameters in parentheses, such as (sigma=20)",
        )?;
        let (mut fields, mut inside) = (Vec::new(), None);
        while !self.takes(')') {
            if !(fields.is_empty() && inside.is_none()) {
                self.needs(',', "write a comma or a closing parenthesis")?;
            }
            self.space();
            let place = self.place;
            match self.name() {
                Some(name) if self.takes('=') => fields.push((name, self.value()?)),
                Some(name) => {
                    self.place = place;
                    if sampler.is_none() || inside.is_some() {
                        return Err(self.wrong("write a parameter's name, \"=\" and its value"));
                    }
                    if SAMPLERS.iter().any(|sampler| sampler.name == name) {
                        return Err(self.wrong("write a mechanism without a sampler of its own"));
                    }
                    inside = Some(Box::new(self.call()?));
                }
                None => match first {
                    Some(first) if fields.is_empty() => {
                        fields.push((first.to_owned(), self.value()?));
                    }
                    _ => return Err(self.wrong("write the parameter's name, \"=\" and its value")),
                },
            }
        }
        Ok(Call {
            name,
            place,
            fields,
            inside,
        })
    }

    /// What a call is about, with what is within a sampler, and what it was called.
    fn resolve(&self, call: Call) -> Result<(&'static str, Kind, Fields)> {
        let Some(sampler) = SAMPLERS.iter().find(|sampler| sampler.name == call.name) else {
            let kind = Kind::named(&call.name).ok_or_else(|| self.wrong("name a mechanism"))?;
            return Ok((kind.spelt(&call.name), kind, call.fields));
        };
        let passes = || {
            let inside = sampler.inside.iter().map(|(kind, _)| kind.name());
            format!(
                "write it as {}({}, mechanism), where the mechanism is one of {}",
                sampler.name,
                sampler.first,
                listed(inside)
            )
        };
        let Some(inside) = call.inside else {
            return Err(self.wrong(&passes()));
        };
        let made = |sampler: &Sampler| {
            let kind = Kind::named(&inside.name)?;
            let (_, made) = sampler.inside.iter().find(|(known, _)| *known == kind)?;
            Some((kind, *made))
        };
        let Some((kind, made)) = made(sampler) else {
            let place = inside.place;
            return Err(self.wrong_at(place, &passes()));
        };
        // What is inside may say only what it may say outside.
        for (name, _) in &inside.fields {
            kind.parameter(name)?;
        }
        let mut fields = call.fields;
        fields.extend(inside.fields);
        Ok((sampler.name, made, fields))
    }

    /// `x`, `*` or `×`; the `x` may stand right before the count.
    fn times(&mut self) -> bool {
        self.space();
        let is_times = match self.letters[self.place..] {
            ['*' | '×', ..] => true,
            ['x' | 'X', next, ..] => !(next.is_alphabetic() || next == '_'),
            ['x' | 'X'] => true,
            _ => false,
        };
        self.place += usize::from(is_times);
        is_times
    }

    fn count(&mut self) -> Result<Field> {
        let passes = "write how often as a whole number, such as 512, or ?";
        self.space();
        let place = self.place;
        match self.value() {
            Ok(field @ (Field::Whole(_) | Field::Unknown)) => Ok(field),
            // A float has other digits than those that were written.
            Ok(Field::Real(count)) if count >= WHOLE_MAX => {
                let written = self.letters[place..self.place].iter();
                Err(Error::TooLarge {
                    what: "count".into(),
                    found: written.collect(),
                })
            }
            Ok(Field::Real(count)) if count.fract() == 0.0 => Ok(Field::Real(count)),
            _ => Err(self.wrong_at(place, passes)),
        }
    }

    fn value(&mut self) -> Result<Field> {
        self.space();
        if self.takes('?') {
            return Ok(Field::Unknown);
        }
        if self.takes('[') {
            let mut values = Vec::new();
            while !self.takes(']') {
                if !values.is_empty() {
                    self.needs(',', "write a comma or a closing bracket")?;
                }
                values.push(real(&self.number()?));
            }
            return Ok(Field::List(values));
        }
        let first = self.number()?;
        if self.takes('/') {
            let place = self.place;
            let (over, under) = (real(&first), real(&self.number()?));
            if !(under > 0.0 && under < f64::INFINITY) {
                return Err(self.wrong_at(place, "divide by a number above 0"));
            }
            return Ok(Field::Quotient(over, under));
        }
        Ok(first)
    }

    /// A decimal number, with underscores for the eye.
    fn number(&mut self) -> Result<Field> {
        self.space();
        let start = self.place;
        let mut text = String::new();
        while let Some(&letter) = self.letters.get(self.place) {
            let signed = text.is_empty() || text.ends_with(['e', 'E']);
            match letter {
                '+' | '-' if signed => {}
                'e' | 'E' if text.ends_with(|last: char| last.is_ascii_digit() || last == '.') => {}
                '0'..='9' | '.' | '_' => {}
                _ => break,
            }
            if letter != '_' {
                text.push(letter);
            }
            self.place += 1;
        }
        let whole = text.parse().ok().map(Field::Whole);
        let field = whole.or_else(|| text.parse().ok().map(Field::Real));
        if field == Some(Field::Real(0.0)) && vanishes(&text) {
            let passes = "write 0, or a number from 5e-324 on: this one is above zero, but no number here is so small";
            return Err(self.wrong_at(start, passes));
        }
        field.ok_or_else(|| self.wrong_at(start, "write a number, such as 20, 0.01 or 1e-5, or ?"))
    }

    fn name(&mut self) -> Option<String> {
        self.space();
        let rest = &self.letters[self.place..];
        if !rest.first()?.is_alphabetic() {
            return None;
        }
        let name: String = rest
            .iter()
            .take_while(|letter| letter.is_alphanumeric() || **letter == '_')
            .collect();
        self.place += name.chars().count();
        Some(name)
    }

    fn needs(&mut self, letter: char, passes: &str) -> Result<()> {
        if self.takes(letter) {
            Ok(())
        } else {
            Err(self.wrong(passes))
        }
    }

    fn takes(&mut self, letter: char) -> bool {
        self.space();
        let found = self.letters.get(self.place) == Some(&letter);
        self.place += usize::from(found);
        found
    }

    fn space(&mut self) {
        while self
            .letters
            .get(self.place)
            .is_some_and(|letter| letter.is_whitespace())
        {
            self.place += 1;
        }
    }

    fn wrong(&self, passes: &str) -> Error {
        self.wrong_at(self.place, passes)
    }

    fn wrong_at(&self, place: usize, passes: &str) -> Error {
        let rest = self.letters.get(place..).unwrap_or_default();
        let word = rest
            .iter()
            .take_while(|letter| letter.is_alphanumeric() || **letter == '_')
            .count();
        let found = match rest {
            [] => "it ends there".into(),
            _ => format!("{:?}", rest[..word.clamp(1, 24)].iter().collect::<String>()),
        };
        Error::Form {
            form: self.form.into(),
            place: place + 1,
            found,
            passes: passes.into(),
        }
    }
}

/// Is a text that reads as zero about more than that?
fn vanishes(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.contains(|letter: char| ('1'..='9').contains(&letter))
}

fn real(field: &Field) -> f64 {
    match field {
        Field::Whole(value) => *value as f64,
        Field::Real(value) => *value,
        // Only numbers come here.
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::term::Side;
    use whit_accounting::Step;

    fn check(form: &str, expected: &[(Step, u64)]) {
        let terms = parse(form).unwrap_or_else(|error| panic!("{error}"));
        let steps: Result<Vec<_>> = terms
            .iter()
            .map(|term| term.step(Side::Upper, None))
            .collect();
        assert_eq!(steps.as_deref(), Ok(expected), "{form}");
    }

    #[test]
    fn reads_what_people_write() {
        let gaussian = |sigma| Step::Gaussian {
            sigma,
            sensitivity: 1.0,
        };
        let laplace = Step::Laplace {
            scale: 20.0,
            sensitivity: 1.0,
        };
        for times in [" x 512", "*512", " × 512", "x512", " X 5.12e2", " x 5_12"] {
            check(
                &format!("gaussian(sigma=20){times}"),
                &[(gaussian(20.0), 512)],
            );
        }
        check(
            "laplace(scale=20) x 512 + gaussian(sigma=1e1)",
            &[(laplace, 512), (gaussian(10.0), 1)],
        );
        check(
            " gaussian ( sigma = 2 , sensitivity = 3 ) ",
            &[(
                Step::Gaussian {
                    sigma: 2.0,
                    sensitivity: 3.0,
                },
                1,
            )],
        );
        let sampled = Step::PoissonGaussian {
            rate: 0.01,
            noise_multiplier: 4.0,
        };
        check(
            "poisson(0.01, gaussian(sigma=4)) x 10000",
            &[(sampled.clone(), 10_000)],
        );
        check(
            "poisson(gaussian(sigma=4), rate=0.01)",
            &[(sampled.clone(), 1)],
        );
        check(
            "poisson_subsampled_gaussian(rate=0.01, noise_multiplier=4)",
            &[(sampled, 1)],
        );
        check(
            "poisson(rate=1/4, laplace(scale=1))",
            &[(
                Step::PoissonLaplace {
                    rate: 0.25,
                    scale: 1.0,
                    sensitivity: 1.0,
                },
                1,
            )],
        );
        check(
            "fixed_size(0.01, gaussian(sigma=1))",
            &[(
                Step::FixedSizeGaussian {
                    fraction: 0.01,
                    sigma: 1.0,
                },
                1,
            )],
        );
        check(
            "allocation(100, gaussian(sigma=1)) x 2",
            &[(
                Step::RandomAllocation {
                    steps: 100,
                    noise_multiplier: 1.0,
                    epochs: 1,
                },
                2,
            )],
        );
        check(
            "batches(100, gaussian(sigma=1)) x 2",
            &[(
                Step::ShuffledBatches {
                    batches: 100,
                    noise_multiplier: 1.0,
                    epochs: 1,
                },
                2,
            )],
        );
        check(
            "shuffle(1000, epsilon=1)",
            &[(
                Step::Shuffled {
                    users: 1000,
                    epsilon: 1.0,
                },
                1,
            )],
        );
        check(
            "rr(epsilon=1, values=10) + rr(epsilon=0.5)",
            &[
                (
                    Step::RandomizedResponse {
                        epsilon: 1.0,
                        categories: 10,
                    },
                    1,
                ),
                (
                    Step::RandomizedResponse {
                        epsilon: 0.5,
                        categories: 2,
                    },
                    1,
                ),
            ],
        );
        check(
            "dp(epsilon=0.5, delta=1e-8) x 3 + zcdp(rho=0.5) + gdp(mu=1)",
            &[
                (
                    Step::Approximate {
                        epsilon: 0.5,
                        delta: 1e-8,
                    },
                    3,
                ),
                (Step::Concentrated { rho: 0.5 }, 1),
                (Step::Gdp { mu: 1.0 }, 1),
            ],
        );
        check(
            "discrete_laplace(scale=8) + geometric(epsilon=0.25) + discrete_gaussian(sigma=10)",
            &[
                (
                    Step::DiscreteLaplace {
                        rate: 0.125,
                        sensitivity: 1,
                    },
                    1,
                ),
                (
                    Step::DiscreteLaplace {
                        rate: 0.25,
                        sensitivity: 1,
                    },
                    1,
                ),
                (
                    Step::DiscreteGaussian {
                        sigma: 10.0,
                        sensitivity: 1,
                    },
                    1,
                ),
            ],
        );
        check(
            "exponential(epsilon=1) + permute_and_flip(epsilon=1) + partition_selection(epsilon=1, delta=1e-6)",
            &[
                (Step::Exponential { epsilon: 1.0 }, 1),
                (Step::PermuteAndFlip { epsilon: 1.0 }, 1),
                (
                    Step::PartitionSelection {
                        epsilon: 1.0,
                        delta: 1e-6,
                    },
                    1,
                ),
            ],
        );
        check(
            "tabulated(p=[0.5, 0.5], q=[0.25, 0.75])",
            &[(
                Step::Tabulated {
                    p: vec![0.5, 0.5],
                    q: vec![0.25, 0.75],
                },
                1,
            )],
        );
    }

    #[test]
    fn finds_the_question_mark() {
        for (form, name) in [
            ("poisson(0.01, gaussian(sigma=?)) x 1000", "sigma"),
            ("poisson(?, gaussian(sigma=1))", "sampling_probability"),
            ("gaussian(sigma=1) x ?", "count"),
        ] {
            let terms = parse(form).expect("readable");
            let names: Vec<_> = terms[0].unknowns().map(|found| found.name).collect();
            assert_eq!(names, [name]);
        }
    }

    #[test]
    fn points_at_the_place() {
        let place = |form: &str| match parse(form) {
            Err(Error::Form { place, .. }) => place,
            other => panic!("{form}: {other:?}"),
        };
        for (form, expected) in [
            ("", 1),
            ("gaussian", 9),
            ("gaussian(sigma=20", 18),
            ("gaussian(sigma=)", 16),
            ("gaussian(20)", 10),
            ("gaussian(sigma=20) y 512", 20),
            ("gaussian(sigma=20) x many", 22),
            ("gaussian(sigma=20) x 1.5", 22),
            ("gaussian(sigma=20) +", 21),
            ("gaussian(sigma=20) x 2 x 2", 24),
            ("gaussian(sigma=1.2.3)", 16),
            ("gaussian(sigma=1/0)", 18),
            ("dp(epsilon=1, delta=1e-400)", 21),
            ("gaussian(sigma=20 sensitivity=1)", 19),
            ("poisson(0.01)", 1),
            ("poisson(0.01, rr(epsilon=1))", 15),
            ("poisson(0.01, 0.02, gaussian(sigma=1))", 15),
            ("(gaussian(sigma=1))", 1),
        ] {
            assert_eq!(place(form), expected, "{form}");
        }
        let unknown = parse("gausian(sigma=1)").expect_err("misspelt").to_string();
        assert_eq!(unknown, "there is no mechanism called \"gausian\"");
        for form in [
            "gaussian(sgima=1)",
            "poisson(0.1, gaussian(rate=1))",
            "gaussian(sigma=1, sigma=2)",
        ] {
            assert!(parse(form).is_err(), "{form}");
        }
    }

    /// Whatever somebody types, there is an answer or an error.
    #[test]
    fn never_panics() {
        let form =
            "poisson(1/100, gaussian(sigma=?, sensitivity=[1,2])) x 10 + rr(epsilon=1e-5) × 3";
        let letters: Vec<char> = form.chars().collect();
        for from in 0..letters.len() {
            for to in from..=letters.len() {
                let _ = parse(&letters[from..to].iter().collect::<String>());
            }
            for other in ['(', ')', 'x', '?', '=', '💥', '\u{0}', '-'] {
                let mut changed = letters.clone();
                changed[from] = other;
                let _ = parse(&changed.iter().collect::<String>());
            }
        }
    }
}
