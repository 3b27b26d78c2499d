//! How the program ends: what it prints, where, and its exit code.

use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use whit::{Failure, FaultKind};

use crate::Format;

/// Exit code for a program, or a ledger, that broke.
const BROKEN: u8 = 4;
/// What is wrong with a ledger that broke, or lost something that belongs beside it. No bug of the program, and nothing that asking
/// otherwise would help.
const DAMAGE: [&str; 5] = [
    "ledger_damaged",
    "ledger_emptied",
    "ledger_key_missing",
    "ledger_key_mismatch",
    "ledger_mark_missing",
];

/// Runs `work` so that a panic says nothing about the data that was in its hands.
pub(crate) fn guard(work: impl FnOnce() -> Result<String, Failure>) -> Result<String, Failure> {
    // The payload of a panic may quote what it failed on, so nobody gets to see it.
    panic::set_hook(Box::new(|_| {}));
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let suggestion = "please report this with the command you ran, without the data";
        Err(Failure::bug(
            "panic",
            "whit broke an invariant of its own, so there is no answer",
            suggestion,
        ))
    })
}

/// Prints an answer or a failure, and says how to exit.
pub(crate) fn show(outcome: Result<String, Failure>, format: Format) -> ExitCode {
    let (written, code) = match (outcome, format) {
        // Whoever has no data has said all on stderr.
        (Ok(text), _) if text.is_empty() => (Ok(()), 0),
        (Ok(text), _) => (write(io::stdout(), &text), 0),
        (Err(failure), Format::Json) => (write(io::stdout(), &json(&failure)), exit_code(&failure)),
        (Err(failure), Format::Table) => {
            (write(io::stderr(), &lines(&failure)), exit_code(&failure))
        }
    };
    match written {
        Ok(()) => code.into(),
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => code.into(),
        Err(_) => {
            // If stderr is gone too, the exit code has to say it all.
            let _ = write(
                io::stderr(),
                "error[output_not_written]: the output could not be written",
            );
            BROKEN.into()
        }
    }
}

/// Says on stderr what went wrong beside an answer, which has stdout for itself.
pub(crate) fn complain(failure: &Failure) -> ExitCode {
    // Who does not hear it has the exit code.
    let _ = write(io::stderr(), &lines(failure));
    exit_code(failure).into()
}

fn lines(failure: &Failure) -> String {
    format!(
        "error[{}]: {}\nhint: {}",
        failure.code(),
        failure.reason(),
        failure.suggestion()
    )
}

fn write(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.trim_end().as_bytes())?;
    to.write_all(b"\n")?;
    to.flush()
}

fn json(failure: &Failure) -> String {
    serde_json::to_string(failure).expect("a failure is made of strings")
}

fn exit_code(failure: &Failure) -> u8 {
    match failure.kind() {
        _ if DAMAGE.contains(&failure.code()) => BROKEN,
        FaultKind::Invalid => 1,
        FaultKind::Refused => 2,
        FaultKind::Exhausted => 3,
        _ => BROKEN,
    }
}

/// What is wrong with the arguments, in the words of their parser.
pub(crate) fn usage(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let mut paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let reason = paragraphs.next().unwrap_or_default();
    let tip = paragraphs.find_map(|paragraph| {
        paragraph
            .strip_prefix("tip: a similar")
            .map(|tip| format!("a similar{tip}"))
    });
    let suggestion =
        tip.unwrap_or_else(|| "add --help to the command to see how it is used".into());
    Failure::invalid("usage", reason.trim_start_matches("error: "), &suggestion)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "SECRET-4711";

    #[test]
    fn panics_become_a_constant_bug() {
        let failure = guard(|| panic!("{CANARY}")).expect_err("it panicked");
        assert_eq!((failure.kind(), exit_code(&failure)), (FaultKind::Bug, 4));
        assert!(json(&failure).starts_with(r#"{"bug":{"code":"panic","reason":"#));
        assert!(!json(&failure).contains(CANARY));
    }

    /// Runs the test above in a process of its own and looks at all that it prints.
    #[test]
    fn panics_print_no_payload() {
        let me = std::env::current_exe().expect("this test binary");
        let test = "outcome::tests::panics_become_a_constant_bug";
        let run = std::process::Command::new(me)
            .args([test, "--exact", "--nocapture"])
            .output()
            .expect("it runs");
        let printed = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
        assert!(
            run.status.success() && printed.contains("1 passed") && !printed.contains(CANARY),
            "{printed}"
        );
    }

    /// A fault of any kind.
    #[derive(Debug)]
    struct Any(FaultKind);

    impl std::fmt::Display for Any {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("b")
        }
    }

    impl std::error::Error for Any {}

    impl whit::core::Fault for Any {
        fn kind(&self) -> FaultKind {
            self.0
        }

        fn code(&self) -> &'static str {
            "a"
        }

        fn suggestion(&self) -> String {
            "c".into()
        }
    }

    #[test]
    fn every_kind_has_its_exit_code() {
        for (kind, code) in [
            (FaultKind::Invalid, 1),
            (FaultKind::Refused, 2),
            (FaultKind::Exhausted, 3),
            (FaultKind::Bug, 4),
        ] {
            assert_eq!(exit_code(&Failure::new(&Any(kind))), code, "{kind:?}");
        }
        let damaged = Failure::refused("ledger_damaged", "b", "c");
        assert_eq!(exit_code(&damaged), 4);
    }
}
