//! # JSON that says nothing twice
//! Of a key that stands there twice a parser usually keeps the last, and nobody hears of the first: `"count":512,"count":1` would be one.
//! Here the value comes with the first such key, wherever it is, so that the case can be refused and others be answered.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value, and the first key that stands twice in one of its objects.
#[derive(Debug)]
pub(super) struct Strict {
    pub(super) value: Value,
    pub(super) twice: Option<String>,
}

/// One case, or the cases of a list or of an object with a list called `cases`.
#[derive(Debug)]
pub(super) enum Wrapped {
    One(Strict),
    Many(Vec<Strict>),
    /// Something else is called `cases`.
    NoList(Value),
}

impl Strict {
    fn once(value: Value) -> Self {
        Self { value, twice: None }
    }

    fn list(items: Vec<Self>) -> Self {
        let mut twice = None;
        let values = items.into_iter().map(|item| {
            twice = twice.take().or(item.twice);
            item.value
        });
        let value = Value::Array(values.collect());
        Self { value, twice }
    }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Reader)? {
            Read::Plain(value) => Self::once(value),
            Read::List(items) => Self::list(items),
            Read::Object { map, twice, .. } => Self {
                value: Value::Object(map),
                twice,
            },
        })
    }
}

impl<'de> Deserialize<'de> for Wrapped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Reader)? {
            Read::Plain(value) => Self::One(Strict::once(value)),
            Read::List(items) => Self::Many(items),
            Read::Object {
                twice: Some(twice),
                map,
                ..
            } => Self::One(Strict {
                value: Value::Object(map),
                twice: Some(twice),
            }),
            Read::Object {
                cases: Some(Cases::List(items)),
                ..
            } => Self::Many(items),
            Read::Object {
                cases: Some(Cases::Other(value)),
                ..
            } => Self::NoList(value),
            Read::Object { map, .. } => Self::One(Strict::once(Value::Object(map))),
        })
    }
}

/// What is called `cases`: each of them may be wrong by itself.
enum Cases {
    List(Vec<Strict>),
    Other(Value),
}

impl<'de> Deserialize<'de> for Cases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Reader)? {
            Read::List(items) => Self::List(items),
            Read::Plain(value) => Self::Other(value),
            Read::Object { map, .. } => Self::Other(Value::Object(map)),
        })
    }
}

enum Read {
    Plain(Value),
    List(Vec<Strict>),
    Object {
        /// All but `cases`.
        map: Map<String, Value>,
        twice: Option<String>,
        cases: Option<Cases>,
    },
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Read;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a case, or a list of cases")
    }

    fn visit_unit<E>(self) -> Result<Read, E> {
        Ok(Read::Plain(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read, E> {
        Ok(Read::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
        Ok(Read::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
        Ok(Read::Plain(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
        let number = Number::from_f64(value).map_or(Value::Null, Value::Number);
        Ok(Read::Plain(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Read, E> {
        Ok(Read::Plain(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Read, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Read::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Read, A::Error> {
        let (mut map, mut twice, mut cases) = (Map::new(), None, None);
        while let Some(key) = object.next_key::<String>()? {
            let again = map.contains_key(&key) || (key == "cases" && cases.is_some());
            let inner = if key == "cases" {
                cases = Some(object.next_value::<Cases>()?);
                None
            } else {
                let Strict { value, twice } = object.next_value()?;
                map.insert(key.clone(), value);
                twice
            };
            twice = twice.or(again.then_some(key)).or(inner);
        }
        Ok(Read::Object { map, twice, cases })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Strict {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn values_are_what_they_are_elsewhere() {
        for text in [
            "null",
            "true",
            "-3",
            "18446744073709551615",
            "1e-5",
            r#""text \" 💥""#,
            r#"[1,[2,{"a":null}]]"#,
            r#"{"b":1,"a":{"b":2,"c":[]},"":0}"#,
        ] {
            let found = read(text);
            let usual: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!((found.value, found.twice), (usual, None), "{text}");
        }
    }

    #[test]
    fn keys_that_stand_twice_are_found_at_every_depth() {
        for (text, key) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"{"a":1,"b":{"c":1,"d":2,"c":3}}"#, "c"),
            (r#"[0,{"a":[{"x":1,"x":2}]}]"#, "x"),
            // However it is spelt.
            (r#"{"a":1,"\u0061":1}"#, "a"),
        ] {
            assert_eq!(read(text).twice.as_deref(), Some(key), "{text}");
        }
        assert_eq!(read(r#"[{"a":1},{"a":1},{"b":{"a":1}}]"#).twice, None);
    }

    /// One wrong case does not take the others with it; a wrapping that is wrong itself is one.
    #[test]
    fn wrappings_keep_cases_apart() {
        for text in [
            r#"[{"a":1,"a":2},{"a":1}]"#,
            r#"{"cases":[{"a":1,"a":2},{"a":1}]}"#,
        ] {
            let Ok(Wrapped::Many(cases)) = serde_json::from_str(text) else {
                panic!("{text}");
            };
            let twice: Vec<_> = cases.iter().map(|case| case.twice.as_deref()).collect();
            assert_eq!(twice, [Some("a"), None]);
        }
        let both = serde_json::from_str(r#"{"cases":[],"cases":[]}"#);
        assert!(
            matches!(both, Ok(Wrapped::One(Strict { twice: Some(key), .. })) if key == "cases")
        );
        let number = serde_json::from_str(r#"{"cases":3}"#);
        assert!(matches!(number, Ok(Wrapped::NoList(Value::Number(_)))));
    }
}
