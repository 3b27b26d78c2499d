//! What a record adds up to: the first part of its body.
//!
//! This is read a million times when a ledger is opened, nearly always in the very form in which it was written: that form is taken
//! apart here by hand. Whatever else is JSON with the same fields, such as a name with an escaped letter, is left to
//! serde, which decides; a test compares the two.

use std::borrow::Cow;

use serde::Deserialize;
use whit_accounting::budget::{Amount, Sums};

use crate::body::{ANSWER, CHARGE_END, Hex, Units, find};
use crate::record::{Hash, unhex};

/// Of a reservation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Charged<'a> {
    pub(crate) cost: Sums,
    pub(crate) team: Option<Cow<'a, str>>,
    pub(crate) analyst: Option<Cow<'a, str>>,
    pub(crate) key: Option<Hash>,
}

/// What a reservation charges, and to whom.
pub(crate) fn charged(body: &[u8]) -> Option<Charged<'_>> {
    charged_as_written(body).or_else(|| charged_by_serde(body))
}

/// Which reservation a settlement is of.
pub(crate) fn settled(body: &[u8]) -> Option<u64> {
    settled_as_written(body).or_else(|| settled_by_serde(body))
}

fn charged_by_serde(body: &[u8]) -> Option<Charged<'_>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct First {
        loss: Units,
        delta: Units,
        team: Option<String>,
        analyst: Option<String>,
        key: Option<Hex>,
    }
    let first: First = serde_json::from_slice(&first_part(body, CHARGE_END)?).ok()?;
    Some(Charged {
        cost: Sums {
            loss: first.loss.0,
            delta: first.delta.0,
        },
        team: first.team.map(Cow::Owned),
        analyst: first.analyst.map(Cow::Owned),
        key: first.key.map(|Hex(key)| key),
    })
}

fn settled_by_serde(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct First {
        of: u64,
    }
    let first: First = serde_json::from_slice(&first_part(body, ANSWER)?).ok()?;
    Some(first.of)
}

/// The fields before a marker, as an object of their own.
fn first_part(body: &[u8], marker: &[u8]) -> Option<Vec<u8>> {
    let end = find(body, marker)?;
    let mut part = body[..end].to_vec();
    part.push(b'}');
    Some(part)
}

fn charged_as_written(body: &[u8]) -> Option<Charged<'_>> {
    let mut rest = Rest(body);
    rest.skip(b"{\"loss\":\"")?;
    let loss = Amount::from_units(rest.digits()?);
    rest.skip(b"\",\"delta\":\"")?;
    let delta = Amount::from_units(rest.digits()?);
    rest.skip(b"\",\"team\":")?;
    let team = rest.name()?;
    rest.skip(b",\"analyst\":")?;
    let analyst = rest.name()?;
    rest.skip(b",\"key\":")?;
    let key = match rest.text_or_null()? {
        Some(text) => Some(unhex(std::str::from_utf8(text).ok()?)?),
        None => None,
    };
    rest.skip(CHARGE_END)?;
    Some(Charged {
        cost: Sums { loss, delta },
        team,
        analyst,
        key,
    })
}

fn settled_as_written(body: &[u8]) -> Option<u64> {
    let mut rest = Rest(body);
    rest.skip(b"{\"of\":")?;
    // JSON has no numbers that begin with a zero and go on.
    let first = rest.0.first().filter(|first| **first != b'0')?;
    let of = first.is_ascii_digit().then(|| rest.digits())??;
    rest.skip(ANSWER)?;
    u64::try_from(of).ok()
}

/// What is still to be read. Every step says nothing rather than guess.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// As many digits as there are, at least one and no more than surely fit.
    fn digits(&mut self) -> Option<u128> {
        /// `10^19 - 1` is below `2^64`.
        const WORD_DIGITS: usize = 19;
        let count = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let add = |sum: u64, digit: &u8| sum * 10 + u64::from(digit - b'0');
        match count {
            0 => None,
            1..=WORD_DIGITS => Some(digits.iter().fold(0, add).into()),
            _ => std::str::from_utf8(digits).ok()?.parse().ok(),
        }
    }

    /// `null`, or what is between quotes if nothing in it is escaped or should be.
    fn text_or_null(&mut self) -> Option<Option<&'a [u8]>> {
        if let Some(rest) = self.0.strip_prefix(b"null") {
            self.0 = rest;
            return Some(None);
        }
        self.skip(b"\"")?;
        let plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
        let count = self.0.iter().take_while(plain).count();
        let (text, rest) = self.0.split_at(count);
        self.0 = rest;
        self.skip(b"\"")?;
        Some(Some(text))
    }

    fn name(&mut self) -> Option<Option<Cow<'a, str>>> {
        let text = self.text_or_null()?;
        let text = text.map(std::str::from_utf8).transpose().ok()?;
        Some(text.map(Cow::Borrowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, by_hand: bool) {
        let (hand, serde) = (
            charged_as_written(body.as_bytes()),
            charged_by_serde(body.as_bytes()),
        );
        assert_eq!(hand.is_some(), by_hand, "{body}");
        if by_hand {
            assert_eq!(hand, serde, "{body}");
        }
        assert_eq!(charged(body.as_bytes()), serde, "{body}");
    }

    #[test]
    fn what_was_written_is_read_by_hand_as_by_serde() {
        let key = format!("\"{}\"", "0123456789abcdef".repeat(4));
        let most = u128::MAX.to_string();
        for loss in ["0", "1", "18446744073709551615", &most] {
            for team in ["null", "\"red\"", "\"Łódź\"", "\"null\""] {
                for key in ["null", &key] {
                    let first = format!("{{\"loss\":\"{loss}\",\"delta\":\"7\"");
                    let names = format!("\"team\":{team},\"analyst\":\"ann\"");
                    let body = format!("{first},{names},\"key\":{key},\"statement\":null}}");
                    check(&body, true);
                    // Nothing of it may be missing, and none of its quotes may be another letter.
                    let end = body.len() - "null}".len();
                    for at in (0..end).filter(|at| body.is_char_boundary(*at)) {
                        check(&body[..at], false);
                        if body[at..].starts_with('"') {
                            let mut changed = body.clone();
                            changed.replace_range(at..=at, "x");
                            check(&changed, false);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_written_otherwise_is_left_to_serde() {
        let body = |loss: &str, team: &str, key: &str| {
            format!(
                "{{\"loss\":\"{loss}\",\"delta\":\"0\",\"team\":{team},\"analyst\":null,\"key\":{key},\"statement\":null}}"
            )
        };
        let beyond = "340282366920938463463374607431768211456";
        for (loss, team, key) in [
            ("1", "\"a\\\"b\"", "null"),
            ("1", "\"\\u0061\"", "null"),
            ("1", " \"red\"", "null"),
            ("1", "\"a\nb\"", "null"),
            ("1", "5", "null"),
            ("", "null", "null"),
            ("-1", "null", "null"),
            ("1.5", "null", "null"),
            (beyond, "null", "null"),
            ("1", "null", "\"0123\""),
            ("1", "null", "nil"),
        ] {
            check(&body(loss, team, key), false);
        }
    }

    #[test]
    fn settlements_name_a_whole_number() {
        for (body, expected) in [
            ("{\"of\":12,\"answer\":{}}", Some(12)),
            ("{\"of\":18446744073709551615,\"answer\":1}", Some(u64::MAX)),
            ("{\"of\": 12,\"answer\":{}}", Some(12)),
            ("{\"of\":0,\"answer\":{}}", Some(0)),
            ("{\"of\":18446744073709551616,\"answer\":1}", None),
            ("{\"of\":012,\"answer\":1}", None),
            ("{\"of\":-1,\"answer\":1}", None),
            ("{\"of\":,\"answer\":1}", None),
            ("{\"of\":1.0,\"answer\":1}", None),
            ("{\"of\":1,\"of\":2,\"answer\":1}", None),
            ("{\"of\":1}", None),
        ] {
            assert_eq!(settled(body.as_bytes()), expected, "{body}");
            assert_eq!(settled_by_serde(body.as_bytes()), expected, "{body}");
        }
    }
}
