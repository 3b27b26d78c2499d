//! Protobuf messages, as far as ONNX needs them: a field is a tag and a number, a float or a run of bytes.

/// A protobuf message that grows.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(super) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(super) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn texts(self, field: u64, values: &[&str]) -> Self {
        values
            .iter()
            .fold(self, |message, value| message.text(field, value))
    }

    pub(super) fn message(self, field: u64, value: Message) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A reader of its own, so that tests do not believe the writer.
#[cfg(test)]
pub(super) mod read {
    /// One field of a message.
    #[derive(Debug, PartialEq)]
    pub(in crate::onnx) enum Field {
        Number(u64),
        Float(f32),
        Bytes(Vec<u8>),
    }

    pub(in crate::onnx) fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..64).step_by(7) {
                let (first, rest) = bytes.split_first().expect("a byte");
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                5 => {
                    let (value, rest) = bytes.split_first_chunk().expect("four bytes");
                    bytes = rest;
                    Field::Float(f32::from_le_bytes(*value))
                }
                wire => panic!("wire type {wire}"),
            };
            found.push((tag >> 3, field));
        }
        found
    }

    pub(in crate::onnx) fn all(bytes: &[u8], field: u64) -> Vec<Vec<u8>> {
        let of = fields(bytes).into_iter().filter(|(tag, _)| *tag == field);
        of.map(|(_, value)| match value {
            Field::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        })
        .collect()
    }

    pub(in crate::onnx) fn texts(bytes: &[u8], field: u64) -> Vec<String> {
        let texts = all(bytes, field).into_iter();
        texts
            .map(|text| String::from_utf8(text).expect("text"))
            .collect()
    }

    pub(in crate::onnx) fn numbers(bytes: &[u8], field: u64) -> Vec<u64> {
        let of = fields(bytes).into_iter().filter(|(tag, _)| *tag == field);
        of.filter_map(|(_, value)| match value {
            Field::Number(value) => Some(value),
            _ => None,
        })
        .collect()
    }

    /// As in the documentation of the encoding: field 1 is 150, field 2 is "testing".
    #[test]
    fn messages_are_those_of_the_documentation() {
        let message = super::Message::default()
            .number(1, 150)
            .text(2, "testing")
            .float(3, 1.5);
        assert_eq!(message.0[..3], [0x08, 0x96, 0x01]);
        assert_eq!(message.0[3..12], *b"\x12\x07testing");
        assert_eq!(
            fields(&message.0),
            [
                (1, Field::Number(150)),
                (2, Field::Bytes(b"testing".into())),
                (3, Field::Float(1.5))
            ]
        );
    }
}
