//! Plants each bug of `whit_testkit::mutant` in a copy of the workspace and runs the tests that should notice. Then runs the tests
//! twenty times without a bug and with fresh seeds, and expects silence.
//!
//! `cargo run --release -p whit-testkit --example mutants [-- NAME]`: about a quarter of an hour on two cores. With a NAME, only the
//! mutants whose names contain it.

#![expect(
    clippy::disallowed_methods,
    reason = "a tool that edits a copy of the source"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use whit_testkit::mutant::{MUTANTS, Mutant};

const CLEAN_RUNS: usize = 20;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let copy = copy_of_workspace();
    println!("| planted bug | file | convicted by | seconds |");
    println!("| --- | --- | --- | --- |");
    let mut survivors = 0;
    for mutant in MUTANTS
        .iter()
        .filter(|mutant| mutant.name.contains(&wanted))
    {
        let start = Instant::now();
        let verdict = try_mutant(&copy, mutant);
        let by = verdict.unwrap_or_else(|| {
            survivors += 1;
            "**nobody**".into()
        });
        println!(
            "| {} | {} | {by} | {:.0} |",
            mutant.name,
            mutant.file,
            start.elapsed().as_secs_f64()
        );
    }
    let mut alarms = 0;
    if wanted.is_empty() {
        for _ in 0..CLEAN_RUNS {
            for package in ["whit-mechanism", "whit-accounting", "whit"] {
                if !test(&copy, package, "").status.success() {
                    alarms += 1;
                }
            }
        }
        println!(
            "\n{survivors} survivors; {alarms} alarms in {CLEAN_RUNS} clean runs with fresh seeds"
        );
    }
    if survivors + alarms == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A clone of the workspace with the changes that are not committed, and a target folder of its own.
fn copy_of_workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = root.join("target/mutants/workspace");
    std::fs::create_dir_all(&copy).expect("target can be written");
    let files = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .expect("git");
    for file in String::from_utf8(files.stdout).expect("text").lines() {
        let (from, to) = (root.join(file), copy.join(file));
        std::fs::create_dir_all(to.parent().expect("a file has a folder"))
            .expect("target can be written");
        let content = std::fs::read(&from).unwrap_or_default();
        // Untouched files keep their time, so that cargo does not build them again.
        if std::fs::read(&to).ok().as_ref() != Some(&content) {
            std::fs::write(to, content).expect("target can be written");
        }
    }
    copy
}

/// The test that noticed, or nothing.
fn try_mutant(copy: &Path, mutant: &Mutant) -> Option<String> {
    let path = copy.join(mutant.file);
    let source = std::fs::read_to_string(&path).expect("a file of the workspace");
    assert_eq!(
        source.matches(mutant.original).count(),
        1,
        "{}: the original is gone",
        mutant.name
    );
    std::fs::write(&path, source.replace(mutant.original, mutant.planted))
        .expect("target can be written");
    let output = test(copy, mutant.package, mutant.tests);
    std::fs::write(&path, source).expect("target can be written");
    if output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = text.lines().find_map(|line| {
        line.strip_prefix("test ")?
            .strip_suffix(" ... FAILED")
            .map(str::to_owned)
    });
    Some(failed.unwrap_or_else(|| {
        panic!(
            "{} does not compile:\n{}",
            mutant.name,
            String::from_utf8_lossy(&output.stderr)
        )
    }))
}

fn test(copy: &Path, package: &str, filter: &str) -> Output {
    Command::new(env!("CARGO"))
        .args([
            "test",
            "--quiet",
            "--package",
            package,
            "--lib",
            filter,
            "--",
            "--format",
            "pretty",
        ])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.with_file_name("target"))
        .env("WHIT_FRESH", "1")
        .output()
        .expect("cargo runs")
}
