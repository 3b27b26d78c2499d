//! How every door tells that there is no answer.

use serde::ser::{Serialize, SerializeMap, Serializer};
use whit_core::{Fault, FaultKind};

/// A fault as JSON: `{"invalid":{"code":…,"reason":…,"suggestion":…}}`, under the word of its [`FaultKind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    kind: FaultKind,
    details: Details,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
struct Details {
    code: String,
    reason: String,
    suggestion: String,
}

impl Failure {
    /// What a fault says about itself.
    pub fn new(fault: &impl Fault) -> Self {
        Self::with(
            fault.kind(),
            fault.code(),
            &fault.to_string(),
            &fault.suggestion(),
        )
    }

    /// Input that a door could not make sense of before there was a request.
    pub fn invalid(code: &str, reason: &str, suggestion: &str) -> Self {
        Self::with(FaultKind::Invalid, code, reason, suggestion)
    }

    /// What a door does not do by a rule of its own.
    pub fn refused(code: &str, reason: &str, suggestion: &str) -> Self {
        Self::with(FaultKind::Refused, code, reason, suggestion)
    }

    /// A broken invariant of the door itself.
    pub fn bug(code: &str, reason: &str, suggestion: &str) -> Self {
        Self::with(FaultKind::Bug, code, reason, suggestion)
    }

    fn with(kind: FaultKind, code: &str, reason: &str, suggestion: &str) -> Self {
        let [code, reason, suggestion] = [code, reason, suggestion].map(String::from);
        Self {
            kind,
            details: Details {
                code,
                reason,
                suggestion,
            },
        }
    }

    /// Which of the four kinds.
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// A stable word for programs.
    pub fn code(&self) -> &str {
        &self.details.code
    }

    /// What went wrong.
    pub fn reason(&self) -> &str {
        &self.details.reason
    }

    /// What would pass.
    pub fn suggestion(&self) -> &str {
        &self.details.suggestion
    }
}

impl<F: Fault> From<F> for Failure {
    fn from(fault: F) -> Self {
        Self::new(&fault)
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.kind.word(), &self.details)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_kind_is_the_key() {
        let check = |failure: Failure, expected: &str| {
            assert_eq!(
                serde_json::to_string(&failure).expect("plain data"),
                expected
            );
        };
        check(
            Failure::from(crate::Error::Unreadable),
            r#"{"invalid":{"code":"unreadable_file","reason":"the file cannot be read","suggestion":"check that it is a file, that you may read it, and that its disk is well"}}"#,
        );
        check(
            Failure::bug("a", "b", "c"),
            r#"{"bug":{"code":"a","reason":"b","suggestion":"c"}}"#,
        );
        let refused = whit_core::Error::UnknownVersion { found: 9, known: 1 };
        assert_eq!(Failure::from(refused).kind(), FaultKind::Refused);
    }
}
