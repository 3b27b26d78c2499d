//! # Cases as JSON
//! `{"id":…,"mechanisms":[{"type":…,…,"count":…}],"adjacency":…,"group":…,"query":{…}}`; what else stands there is not
//! needed and not looked at. Numbers that are left out have the values that the readable form gives them. The unknown parameter of
//! a calibration is the text `"?"`.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};
use whit_core::Neighbours;

use super::error::{Error, Result};
use super::kind::Kind;
use super::question::{Account, Answer, Query};
use super::strict::{Strict, Wrapped};
use super::term::{Field, Term};
use crate::Failure;

/// A question as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    value: Value,
    /// The first key that stands twice in one of its objects.
    twice: Option<String>,
}

/// The answer to a [`Case`] as one line of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    id: Value,
    outcome: std::result::Result<Answer, Failure>,
    /// What nobody reads of the mechanisms and the query.
    ignored: Vec<String>,
}

/// What a query may say; a calibration also names what is to be found.
const QUERY_FIELDS: [&str; 5] = ["epsilon", "delta", "alpha", "fpr", "group"];

impl Case {
    /// All cases of a text: one case, a list, or an object with a list called `cases`; or several of these one after the other.
    pub fn all(text: &str) -> Result<Vec<Self>> {
        let mut cases = Vec::new();
        for value in serde_json::Deserializer::from_str(text).into_iter() {
            let wrapped = value.map_err(|error| Error::NotJson {
                found: error.to_string(),
            })?;
            let listed = match wrapped {
                Wrapped::Many(listed) => listed,
                Wrapped::One(single) => vec![single],
                Wrapped::NoList(other) => {
                    return Err(wrong("cases", shown(&other), "a list of cases"));
                }
            };
            let read = listed.into_iter();
            cases.extend(read.map(|Strict { value, twice }| Self { value, twice }));
        }
        if cases.is_empty() {
            return Err(Error::NoCases);
        }
        Ok(cases)
    }

    /// Its name; null if it has none.
    pub fn id(&self) -> &Value {
        self.value.get("id").unwrap_or(&Value::Null)
    }

    /// What it is about, and what it asks.
    pub fn question(&self) -> Result<(Account, Query)> {
        if let Some(key) = &self.twice {
            return Err(Error::KeyTwice { key: key.clone() });
        }
        let case = object("a case", &self.value)?;
        let query = match case.get("query") {
            Some(query) => object("query", query)?,
            None => {
                return Err(Error::Query {
                    found: "no query".into(),
                });
            }
        };
        let neighbours = match case.get("adjacency") {
            None => Neighbours::AddRemove,
            Some(value) => relation(value)?,
        };
        let mechanisms = match case.get("mechanisms") {
            Some(Value::Array(mechanisms)) => mechanisms,
            Some(other) => return Err(wrong("mechanisms", shown(other), "a list of mechanisms")),
            None => {
                return Err(wrong(
                    "mechanisms",
                    "missing".into(),
                    "a list of mechanisms",
                ));
            }
        };
        let terms: Result<_> = mechanisms
            .iter()
            .map(|mechanism| term(mechanism, neighbours))
            .collect();
        let account = Account {
            terms: terms?,
            neighbours,
            group: group(case, query)?,
        };
        Ok((account, asked(query)?))
    }

    /// The answer.
    pub fn answer(&self) -> Result<Answer> {
        let (account, query) = self.question()?;
        account.ask(query)
    }

    /// The answer or the failure as a line.
    pub fn line(&self) -> Line {
        Line {
            id: self.id().clone(),
            outcome: self.answer().map_err(|error| Failure::new(&error)),
            ignored: self.ignored(),
        }
    }

    /// Fields of mechanisms and of the query that nobody reads: a letter too few may cost a factor of hundreds.
    fn ignored(&self) -> Vec<String> {
        let mut ignored = Vec::new();
        let mechanisms = self.value.get("mechanisms").and_then(Value::as_array);
        for mechanism in mechanisms.into_iter().flatten() {
            let kind = mechanism.get("type").and_then(Value::as_str);
            let Some(kind) = kind.and_then(Kind::named) else {
                continue;
            };
            for name in mechanism.as_object().into_iter().flat_map(Map::keys) {
                let known = ["type", "count", "adjacency"].contains(&name.as_str())
                    || kind.parameter(name).is_ok();
                if !known {
                    ignored.push(format!("{}.{name}", kind.name()));
                }
            }
        }
        let query = self.value.get("query").and_then(Value::as_object);
        for name in query.into_iter().flat_map(Map::keys) {
            if !QUERY_FIELDS.contains(&name.as_str()) {
                ignored.push(format!("query.{name}"));
            }
        }
        ignored
    }
}

impl Line {
    /// A case that failed for a reason outside of it, such as that there is none.
    pub fn failed(id: Value, failure: Failure) -> Self {
        Self {
            id,
            outcome: Err(failure),
            ignored: Vec::new(),
        }
    }

    /// Whether there is an answer.
    pub fn is_answered(&self) -> bool {
        self.outcome.is_ok()
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        match &self.outcome {
            Ok(answer) => answer.entries(&mut map)?,
            Err(failure) => map.serialize_entry("error", &Fault(failure))?,
        }
        if !self.ignored.is_empty() {
            map.serialize_entry("ignored", &self.ignored)?;
        }
        map.end()
    }
}

/// A failure without the word of its kind around it.
struct Fault<'a>(&'a Failure);

impl Serialize for Fault<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", self.0.kind().word())?;
        map.serialize_entry("code", self.0.code())?;
        map.serialize_entry("reason", self.0.reason())?;
        map.serialize_entry("suggestion", self.0.suggestion())?;
        map.end()
    }
}

fn asked(query: &Map<String, Value>) -> Result<Query> {
    let number = |name: &str| match query.get(name) {
        // What is asked for may be written, too.
        None => Ok(None),
        Some(Value::String(text)) if text == "?" => Ok(None),
        Some(value) => value
            .as_f64()
            .map(Some)
            .ok_or_else(|| wrong(&format!("query: {name}"), shown(value), "a number")),
    };
    let [epsilon, delta, alpha, fpr] = ["epsilon", "delta", "alpha", "fpr"].map(number);
    match (epsilon?, delta?, alpha?, fpr?) {
        (None, Some(delta), None, None) => Ok(Query::Epsilon { delta }),
        (Some(epsilon), None, None, None) => Ok(Query::Delta { epsilon }),
        (Some(epsilon), Some(delta), None, None) => Ok(Query::Parameter { epsilon, delta }),
        (None, None, Some(alpha), None) => Ok(Query::Renyi { alpha }),
        (None, None, None, Some(rate)) => Ok(Query::FalseNegatives { rate }),
        _ => Err(Error::Query {
            found: shown(&Value::Object(query.clone())),
        }),
    }
}

fn group(case: &Map<String, Value>, query: &Map<String, Value>) -> Result<u64> {
    match (case.get("group"), query.get("group")) {
        (None, None) => Ok(1),
        (Some(one), Some(other)) if one != other => Err(wrong(
            "group",
            format!("{} and {}", shown(one), shown(other)),
            "one size",
        )),
        (Some(value), _) | (None, Some(value)) => value
            .as_u64()
            .or_else(|| {
                let real = value.as_f64()?;
                let whole = real.fract() == 0.0 && (0.0..9e15).contains(&real);
                whole.then_some(real as u64)
            })
            .ok_or_else(|| wrong("group", shown(value), "a whole number from 1 to 2^20")),
    }
}

fn relation(value: &Value) -> Result<Neighbours> {
    match value.as_str() {
        Some("add_remove" | "add-remove") => Ok(Neighbours::AddRemove),
        Some("replace_one" | "replace-one") => Ok(Neighbours::ReplaceOne),
        _ => Err(wrong(
            "adjacency",
            shown(value),
            "\"add_remove\" or \"replace_one\"",
        )),
    }
}

fn term(value: &Value, neighbours: Neighbours) -> Result<Term> {
    let mechanism = object("a mechanism", value)?;
    let kind = match mechanism.get("type") {
        Some(Value::String(name)) => Kind::named(name).ok_or_else(|| Error::UnknownMechanism {
            name: name.clone(),
            known: Kind::all_names(),
        })?,
        Some(other) => return Err(wrong("type", shown(other), "the name of a mechanism")),
        None => return Err(wrong("type", "missing".into(), "the name of a mechanism")),
    };
    if let Some(its) = mechanism.get("adjacency")
        && relation(its)? != neighbours
    {
        return Err(Error::MixedRelations {
            mechanism: kind.name(),
            its: shown(its),
            whole: neighbours.to_string(),
        });
    }
    // Noise per sensitivity has no need of the sensitivity.
    let needless = |name: &str| {
        ["l2_sensitivity", "sensitivity"].contains(&name)
            && kind.parameter("noise_multiplier").is_ok()
            && mechanism.contains_key("noise_multiplier")
    };
    let mut fields = Vec::new();
    for parameter in kind.parameters() {
        for name in parameter.also.iter().chain([&parameter.name]) {
            if let Some(value) = mechanism.get(*name)
                && !needless(name)
            {
                fields.push(((*name).to_owned(), field(kind, name, value)?));
            }
        }
    }
    let count = match mechanism.get("count") {
        None => Field::Whole(1),
        Some(value) => field(kind, "count", value)?,
    };
    Term::new(kind, fields, count)
}

fn field(kind: Kind, name: &str, value: &Value) -> Result<Field> {
    let passes = "a number, or \"?\" for the one to be found";
    let what = || format!("{}: {name}", kind.name());
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => Ok(Field::Whole(whole)),
            (None, Some(real)) => Ok(Field::Real(real)),
            (None, None) => Err(wrong(&what(), shown(value), passes)),
        },
        Value::String(text) if text == "?" => Ok(Field::Unknown),
        Value::Array(values) => {
            let reals: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
            let list = reals.map(Field::List);
            list.ok_or_else(|| wrong(&what(), shown(value), "a list of numbers"))
        }
        _ => Err(wrong(&what(), shown(value), passes)),
    }
}

fn object<'a>(what: &str, value: &'a Value) -> Result<&'a Map<String, Value>> {
    let found = value.as_object();
    found.ok_or_else(|| wrong(what, shown(value), "an object with names and values"))
}

fn wrong(what: &str, found: String, passes: &'static str) -> Error {
    Error::WrongValue {
        what: what.into(),
        found,
        passes,
    }
}

/// A value for a message, not too long.
fn shown(value: &Value) -> String {
    const LETTERS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let cases = Case::all(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        serde_json::to_string(&cases[0].line()).expect("plain data")
    }

    fn with(mechanism: &str, rest: &str) -> String {
        line(&format!(r#"{{"id":7,"mechanisms":[{mechanism}],{rest}}}"#))
    }

    #[test]
    fn fields_that_nobody_reads_are_named() {
        let line = |text: &str| {
            let case = &Case::all(text).expect("a case")[0];
            serde_json::to_value(case.line()).expect("plain data")
        };
        let typed = line(
            r#"{"mechanisms":[{"type":"gaussian","sigma":20,"cuont":512}],"query":{"delta":1e-5,"detla":1}}"#,
        );
        assert_eq!(
            typed["ignored"],
            serde_json::json!(["gaussian.cuont", "query.detla"])
        );
        let fine = line(
            r#"{"mechanisms":[{"type":"gaussian","sigma":20,"count":512}],"query":{"delta":1e-5},"note":1}"#,
        );
        assert!(fine.get("ignored").is_none() && fine["upper"].is_number());
    }

    /// Which of two counts is meant nobody knows, and the others are answered all the same.
    #[test]
    fn keys_that_stand_twice_are_refused() {
        let twice = r#"{"id":1,"mechanisms":[{"type":"gdp","mu":1,"count":512,"count":1}],"query":{"delta":1e-5}}"#;
        let once = r#"{"id":2,"mechanisms":[{"type":"gdp","mu":1}],"query":{"delta":1e-5}}"#;
        for text in [
            format!("[{twice},{once}]"),
            format!(r#"{{"cases":[{twice},{once}]}}"#),
            format!("{twice}\n{once}"),
        ] {
            let cases = Case::all(&text).expect("two cases");
            let first = serde_json::to_value(cases[0].line()).expect("plain data");
            assert_eq!(
                (&first["id"], &first["error"]["code"]),
                (&1.into(), &"key_twice".into())
            );
            assert_eq!(
                first["error"]["reason"],
                r#"the key "count" stands there twice"#
            );
            assert!(cases[1].line().is_answered(), "{text}");
        }
    }

    #[test]
    fn answers_are_one_line() {
        let rest = r#""adjacency":"add_remove","query":{"delta":1e-5},"note":[1,2]"#;
        let answered = with(r#"{"type":"gdp","mu":1,"sigma":"unneeded"}"#, rest);
        let answered: Value = serde_json::from_str(&answered).expect("JSON");
        let keys: Vec<_> = answered.as_object().expect("an object").keys().collect();
        assert_eq!(keys.len(), 7, "{keys:?}");
        for key in [
            "id", "lower", "upper", "estimate", "engine", "theorem", "ignored",
        ] {
            assert!(keys.contains(&&key.to_owned()), "{key}");
        }
    }

    #[test]
    fn every_type_is_answered() {
        for (mechanism, adjacency) in [
            (r#"{"type":"geometric","rate":0.1}"#, "add_remove"),
            (
                r#"{"type":"geometric","scale":10,"sensitivity":2}"#,
                "add_remove",
            ),
            (
                r#"{"type":"geometric","epsilon":0.1,"sensitivity":2}"#,
                "add_remove",
            ),
            (
                r#"{"type":"exponential","epsilon":0.1,"monotone":true}"#,
                "add_remove",
            ),
            (r#"{"type":"permute_and_flip","epsilon":0.1}"#, "add_remove"),
            (
                r#"{"type":"partition_selection","epsilon":1,"delta":1e-6}"#,
                "add_remove",
            ),
            (
                r#"{"type":"tabulated","p":[0.5,0.5],"q":[0.25,0.75]}"#,
                "add_remove",
            ),
            (
                r#"{"type":"shuffled_batches_gaussian","batches":10,"noise_multiplier":4,"epochs":2}"#,
                "replace_one",
            ),
            (
                r#"{"type":"poisson_subsampled_gaussian","rate":0.1,"sigma":4,"sensitivity":2}"#,
                "add_remove",
            ),
            (
                r#"{"type":"poisson_subsampled_gaussian","rate":0.1,"noise_multiplier":4,"l2_sensitivity":2}"#,
                "replace_one",
            ),
        ] {
            let rest = format!(r#""adjacency":"{adjacency}","query":{{"delta":1e-5}}"#);
            let answered = with(mechanism, &rest);
            assert!(
                answered.starts_with(r#"{"id":7,"lower":"#),
                "{mechanism}: {answered}"
            );
        }
    }

    #[test]
    fn wrong_cases_say_what_would_pass() {
        let delta = r#""query":{"delta":1e-5}"#;
        for (mechanism, rest, code) in [
            ("", delta, "empty_composition"),
            ("3", delta, "wrong_value"),
            (r#"{"sigma":1}"#, delta, "wrong_value"),
            (r#"{"type":"gauss","sigma":1}"#, delta, "unknown_mechanism"),
            (r#"{"type":"gaussian"}"#, delta, "missing_parameter"),
            (r#"{"type":"gaussian","sigma":null}"#, delta, "wrong_value"),
            (r#"{"type":"gaussian","sigma":"20"}"#, delta, "wrong_value"),
            (r#"{"type":"gaussian","sigma":-1}"#, delta, "out_of_range"),
            (r#"{"type":"gaussian","sigma":"?"}"#, delta, "unknown_count"),
            (
                r#"{"type":"gdp","mu":1,"count":9007199254740993}"#,
                delta,
                "out_of_range",
            ),
            (
                r#"{"type":"gdp","mu":1,"count":1e300}"#,
                delta,
                "out_of_range",
            ),
            (
                r#"{"type":"gdp","mu":1,"count":1.5}"#,
                delta,
                "out_of_range",
            ),
            (r#"{"type":"gdp","mu":1,"count":0}"#, delta, "out_of_range"),
            (
                r#"{"type":"gdp","mu":1,"adjacency":"replace_one"}"#,
                delta,
                "mixed_relations",
            ),
            (r#"{"type":"rr","epsilon":1}"#, delta, "sampler_mismatch"),
            (r#"{"type":"gdp","mu":1}"#, r#""query":{}"#, "unclear_query"),
            (r#"{"type":"gdp","mu":1}"#, r#""other":1"#, "unclear_query"),
            (
                r#"{"type":"gdp","mu":1}"#,
                r#""query":{"delta":1,"alpha":2}"#,
                "unclear_query",
            ),
            (
                r#"{"type":"gdp","mu":1}"#,
                r#""query":{"delta":1}"#,
                "out_of_range",
            ),
            (
                r#"{"type":"gdp","mu":1}"#,
                r#""query":{"delta":0.1},"adjacency":"both""#,
                "wrong_value",
            ),
            (
                r#"{"type":"gdp","mu":1}"#,
                r#""query":{"delta":0.1},"group":0"#,
                "out_of_range",
            ),
        ] {
            let failed = with(mechanism, rest);
            let failed: Value = serde_json::from_str(&failed).expect("JSON");
            assert_eq!(
                failed["error"]["code"], code,
                "{mechanism} {rest}: {failed}"
            );
            assert_eq!(failed["id"], 7);
            for key in ["kind", "reason", "suggestion"] {
                assert!(
                    failed["error"][key]
                        .as_str()
                        .is_some_and(|text| !text.is_empty())
                );
            }
        }
    }

    #[test]
    fn cases_come_in_several_wrappings() {
        let case = r#"{"id":"a","mechanisms":[{"type":"gdp","mu":1}],"query":{"delta":0.1}}"#;
        for text in [
            format!("[{case},{case}]"),
            format!(r#"{{"cases":[{case},{case}]}}"#),
            format!("{case}\n{case}\n"),
        ] {
            assert_eq!(Case::all(&text).expect("cases").len(), 2);
        }
        for text in [
            "",
            "[]",
            r#"{"cases":[]}"#,
            r#"{"cases":3}"#,
            "{",
            "garbage",
        ] {
            assert!(Case::all(text).is_err(), "{text}");
        }
    }
}
