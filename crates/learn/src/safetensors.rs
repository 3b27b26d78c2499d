//! Safetensors: eight bytes with the length of a header, the header as JSON, then the numbers. Any framework reads it without
//! running code from the file.
//!
//! Parameters are a release, so nothing here is private. Names are those of [`tensors`](crate::model::tensors), which are the names that
//! a PyTorch `Sequential` of the same layers gives its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

use crate::model::Tensor;

/// Headers beyond this are refused by the format's own reader, too.
const HEADER_MAX: u64 = 100_000_000;

/// Bytes that are no safetensors file of 32-bit floats, or parameters that do not fit their tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error("this is no safetensors file of 32-bit floats: {what}")]
pub struct NoSafetensors {
    what: &'static str,
}

impl Fault for NoSafetensors {
    fn kind(&self) -> FaultKind {
        FaultKind::Invalid
    }

    fn code(&self) -> &'static str {
        "no_safetensors"
    }

    fn suggestion(&self) -> String {
        "give a file that whit wrote, or one with tensors of type F32 only".into()
    }
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Texts about the file, by name.
    pub notes: BTreeMap<String, String>,
    /// Tensors in the order of their bytes; offsets count numbers.
    pub tensors: Vec<Tensor>,
    /// All numbers.
    pub parameters: Vec<f32>,
}

impl Weights {
    /// The bytes of a file. `None` if the tensors do not cover the parameters, one after the other, or if two have the same name.
    pub fn write(
        tensors: &[Tensor],
        parameters: &[f32],
        notes: &BTreeMap<String, String>,
    ) -> Option<Vec<u8>> {
        let text = |value: &str| Value::from(value).to_string();
        let mut entries = Vec::with_capacity(tensors.len() + 1);
        if !notes.is_empty() {
            let notes = notes
                .iter()
                .map(|(name, note)| format!("{}:{}", text(name), text(note)));
            let notes: Vec<_> = notes.collect();
            entries.push(format!("\"__metadata__\":{{{}}}", notes.join(",")));
        }
        let (mut end, mut names) = (0, BTreeSet::from(["__metadata__"]));
        for tensor in tensors {
            let start = end;
            end += tensor.len();
            if tensor.offset != start || !names.insert(&tensor.name) {
                return None;
            }
            let sides: Vec<_> = tensor.shape.iter().map(usize::to_string).collect();
            entries.push(format!(
                "{}:{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                text(&tensor.name),
                sides.join(","),
                4 * start,
                4 * end
            ));
        }
        if end != parameters.len() {
            return None;
        }
        let mut text = format!("{{{}}}", entries.join(",")).into_bytes();
        // Numbers begin at a multiple of eight, so that they can be mapped into memory.
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut bytes = Vec::with_capacity(8 + text.len() + 4 * parameters.len());
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text);
        for parameter in parameters {
            bytes.extend(parameter.to_le_bytes());
        }
        Some(bytes)
    }

    /// Reads a file. Every byte of it must belong to the header or to one tensor, as the format demands.
    pub fn read(bytes: &[u8]) -> Result<Self, NoSafetensors> {
        let no = |what| NoSafetensors { what };
        let (length, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or(no("it is shorter than 8 bytes"))?;
        let length = u64::from_le_bytes(*length);
        if length > HEADER_MAX {
            return Err(no("its header is longer than 100 MB"));
        }
        let (text, numbers) = rest
            .split_at_checked(length as usize)
            .ok_or(no("it is shorter than its header"))?;
        let header: Map<String, Value> =
            serde_json::from_slice(text).map_err(|_| no("its header is no JSON object"))?;
        let mut notes = BTreeMap::new();
        let mut placed = Vec::new();
        for (name, entry) in header {
            if name == "__metadata__" {
                notes = serde_json::from_value(entry).map_err(|_| no("its notes are not texts"))?;
            } else {
                placed.push(place(name, &entry).ok_or(no("a tensor is described wrongly"))?);
            }
        }
        placed.sort_by_key(|(start, tensor)| (*start, tensor.len()));
        let mut end = 0;
        for (start, tensor) in &mut placed {
            let size = tensor.len().checked_mul(4);
            if *start != end {
                return Err(no("its tensors overlap or leave a gap"));
            }
            tensor.offset = *start / 4;
            end = size
                .and_then(|size| end.checked_add(size))
                .ok_or(no("a tensor is too large"))?;
        }
        if end != numbers.len() {
            return Err(no("its tensors do not end where it does"));
        }
        let (chunks, _) = numbers.as_chunks::<4>();
        Ok(Self {
            notes,
            tensors: placed.into_iter().map(|(_, tensor)| tensor).collect(),
            parameters: chunks
                .iter()
                .map(|chunk| f32::from_le_bytes(*chunk))
                .collect(),
        })
    }
}

/// Where a tensor's bytes begin, and the tensor.
fn place(name: String, entry: &Value) -> Option<(usize, Tensor)> {
    if entry.get("dtype")?.as_str()? != "F32" {
        return None;
    }
    let whole = |value: &Value| value.as_u64().and_then(|value| usize::try_from(value).ok());
    let list = |field: &str| -> Option<Vec<usize>> {
        entry.get(field)?.as_array()?.iter().map(whole).collect()
    };
    let shape = list("shape")?;
    let [start, end] = list("data_offsets")?[..] else {
        return None;
    };
    let size = shape
        .iter()
        .try_fold(4_usize, |size, side| size.checked_mul(*side))?;
    let offset = 0;
    (end.checked_sub(start)? == size).then_some((
        start,
        Tensor {
            name,
            shape,
            offset,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors() -> Vec<Tensor> {
        let tensor = |name: &str, shape: &[usize], offset| Tensor {
            name: name.into(),
            shape: shape.into(),
            offset,
        };
        vec![tensor("0.weight", &[2, 3], 0), tensor("0.bias", &[2], 6)]
    }

    fn file() -> Vec<u8> {
        let notes = BTreeMap::from([("epsilon".into(), "1 \"or\" less".into())]);
        let parameters: Vec<f32> = (0..8).map(|index| index as f32 / 3.0).collect();
        Weights::write(&tensors(), &parameters, &notes).expect("fits")
    }

    #[test]
    fn what_was_written_is_read() {
        let read = Weights::read(&file()).expect("own file");
        assert_eq!(read.tensors, tensors());
        assert_eq!(read.parameters[1].to_bits(), (1.0_f32 / 3.0).to_bits());
        assert_eq!(read.parameters.len(), 8);
        assert_eq!(read.notes["epsilon"], "1 \"or\" less");
    }

    /// The layout that others rely on, byte by byte.
    #[test]
    fn bytes_are_those_of_the_format() {
        let one = [Tensor {
            name: "w".into(),
            shape: vec![1],
            offset: 0,
        }];
        let bytes = Weights::write(&one, &[1.0], &BTreeMap::new()).expect("fits");
        let text = br#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        assert_eq!(bytes[..8], 56_u64.to_le_bytes());
        assert_eq!(bytes[8..8 + text.len()], text[..]);
        assert_eq!(bytes[64..], [0, 0, 0x80, 0x3f]);
    }

    #[test]
    fn tensors_must_cover_the_parameters() {
        let notes = BTreeMap::new();
        assert!(Weights::write(&tensors(), &[0.0; 7], &notes).is_none());
        let mut gap = tensors();
        gap[1].offset = 7;
        assert!(Weights::write(&gap, &[0.0; 8], &notes).is_none());
        let mut twins = tensors();
        twins[1].name = "0.weight".into();
        assert!(Weights::write(&twins, &[0.0; 8], &notes).is_none());
    }

    #[test]
    fn every_cut_and_every_lie_is_refused() {
        let whole = file();
        for end in 0..whole.len() {
            assert!(Weights::read(&whole[..end]).is_err(), "cut at {end}");
        }
        let lie = |from: &str, to: &str| {
            let length = u64::from_le_bytes(whole[..8].try_into().expect("eight")) as usize;
            let text = String::from_utf8_lossy(&whole[8..8 + length]).replace(from, to);
            let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
            bytes.extend(text.as_bytes());
            bytes.extend(&whole[8 + length..]);
            Weights::read(&bytes).is_err()
        };
        assert!(!lie("0.bias", "0.other"));
        assert!(lie("F32", "F16"));
        assert!(lie("[24,32]", "[20,28]"));
        assert!(lie("[24,32]", "[28,36]"));
        assert!(lie("[2,3]", "[3,3]"));
        assert!(lie("[2,3]", "[4611686018427387904,4]"));
        assert!(lie("[24,32]", "[32,24]"));
    }
}
