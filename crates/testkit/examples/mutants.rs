//! Runs the tests twenty times with fresh seeds, and expects silence; then plants each bug of `whit_testkit::mutant` and runs the tests
//! that should notice.
//!
//! `cargo run --release -p whit-testkit --example mutants [-- NAME]`: less than half an hour on two cores. With a NAME only the mutants
//! whose names contain it are planted; with `clean` none, and with `planted` all but those of doors, and nothing is run without a bug. With `learning` it is about private
//! learning instead: its bugs, those of PATE too, its tests without them, a few minutes. With `pate` those of PATE are planted, with `audits` those of the instruments that doubt. With `doors` bugs of sessions and of the command line are planted, for which the engine of private SQL is built.
//!
//! All of this happens in a copy of the workspace that it is called in, as it is now, changes included, so that it may be edited meanwhile. The first clean run is of
//! all tests; those that tell of no seed do the same every time and are left out of the others. A mutant's tests end with the first that fails. With
//! `WHIT_LONG=1` (about twice as long) the first clean run is that of the long forms, and each bug must be noticed under two fresh seeds.
//!
//! The result is not zero if a mutant survives, does not compile or is not found in its file, or if a test fails without one.

#![expect(
    clippy::disallowed_methods,
    reason = "a tool that edits a copy of the source"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use whit_testkit::long;
use whit_testkit::mutant::{AUDITS, DOORS, LEARNING, MUTANTS, Mutant, VOTES, all};

const CLEAN_RUNS: usize = 20;
/// Packages, and which of their tests.
type Suite = &'static [(&'static str, &'static [&'static str])];
const CATALOGUE: Suite = &[
    (
        "whit-mechanism",
        &[
            "--skip",
            "rounded_gaussian",
            "--skip",
            "gaussian_cells",
            "--skip",
            "gaussian_point",
        ],
    ),
    ("whit-accounting", &[]),
    ("whit", &[]),
];
const TRAINING: Suite = &[
    (
        "whit-mechanism",
        &["rounded_gaussian", "gaussian_cells", "gaussian_point"],
    ),
    ("whit-learn", &[]),
];

/// Unit tests. Without the session they need no engine of private SQL, which takes long to build.
const UNITS: &[&str] = &["--lib", "--no-default-features"];
/// Those of the session, which has it.
const SESSION: &[&str] = &["--lib", "--features", "learn"];
/// Those that run the program.
const DOOR: &[&str] = &["--test", "cli"];

fn main() -> ExitCode {
    let start = Instant::now();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let workshop = Workshop::open();
    let mut alarms = 0;
    let suite = match wanted.as_str() {
        "" | "clean" => Some(CATALOGUE),
        "learning" => Some(TRAINING),
        _ => None,
    };
    if let Some(suite) = suite {
        alarms = workshop.clean_runs(suite);
    }
    let mutants: Vec<&Mutant> = match wanted.as_str() {
        "" => MUTANTS.iter().collect(),
        "learning" => LEARNING.iter().chain(VOTES).collect(),
        "pate" => VOTES.iter().collect(),
        "audits" => AUDITS.iter().collect(),
        "doors" => DOORS.iter().collect(),
        "planted" => MUTANTS
            .iter()
            .chain(LEARNING)
            .chain(VOTES)
            .chain(AUDITS)
            .collect(),
        name => {
            let named = |mutant: &&Mutant| mutant.name.contains(name);
            all().filter(named).collect()
        }
    };
    let survivors = workshop.plant(&mutants);
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    println!(
        "\n{survivors} of {} mutants survived; {alarms} alarms without a bug. {minutes:.1} minutes{}.",
        mutants.len(),
        cpu_minutes().map_or(String::new(), |cpu| format!(", {cpu:.1} of a processor"))
    );
    if survivors + alarms == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A copy of the workspace, with a target folder of its own.
struct Workshop {
    copy: PathBuf,
    target: PathBuf,
}

/// Tests that were built.
struct Program {
    path: PathBuf,
    /// Where the package is: tests run there, as cargo runs them.
    package: PathBuf,
}

/// What a run of tests came to.
struct Outcome {
    /// Tests that passed and told of a seed, if output was asked for.
    seeded: Vec<String>,
    passed: usize,
    /// The first that failed, and all that was said.
    failed: Vec<String>,
    output: String,
}

/// Removes what an earlier state of the workspace has left in the copy.
fn remove_others(folder: &Path, copy: &Path, files: &BTreeSet<&str>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            remove_others(&path, copy, files);
            continue;
        }
        let name = path.strip_prefix(copy).ok().and_then(Path::to_str);
        if name.is_none_or(|name| !files.contains(name)) {
            std::fs::remove_file(&path).expect("target can be written");
        }
    }
}

impl Workshop {
    /// Copies the workspace with the changes that are not committed.
    fn open() -> Self {
        let root = Command::new("git")
            .args(["rev-parse", "--show-toplevel"])
            .output()
            .expect("git");
        let root = PathBuf::from(String::from_utf8_lossy(&root.stdout).trim());
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target
            .unwrap_or_else(|| root.join("target"))
            .join("mutants");
        let copy = target.join("workspace");
        let files = Command::new("git")
            .args(["ls-files", "-co", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("git");
        let files = String::from_utf8(files.stdout).expect("text");
        let files: BTreeSet<&str> = files.lines().collect();
        remove_others(&copy, &copy, &files);
        for file in files {
            // A file that is gone, but not from the index, is not copied.
            let Ok(content) = std::fs::read(root.join(file)) else {
                continue;
            };
            let to = copy.join(file);
            let folder = to.parent().expect("a file has a folder");
            std::fs::create_dir_all(folder).expect("target can be written");
            // Untouched files keep their time, so that cargo does not build them again.
            if std::fs::read(&to).ok().as_ref() != Some(&content) {
                std::fs::write(to, content).expect("target can be written");
            }
        }
        Self {
            copy,
            target: target.join("target"),
        }
    }

    /// Runs all tests, and those that depend on seeds again and again. Tells how many failed.
    fn clean_runs(&self, suite: Suite) -> usize {
        let build = |&(package, tests): &(&str, &'static [&'static str])| {
            progress(&format!("building the tests of {package}"));
            let built = self.build(package, UNITS);
            let built = built
                .unwrap_or_else(|said| panic!("{package} does not build without a bug:\n{said}"));
            (built, tests)
        };
        let builds: Vec<_> = suite.iter().map(build).collect();
        println!("| clean run | tests | seconds | alarms |");
        println!("| --- | --- | --- | --- |");
        let mut seeded = vec![Vec::new(); builds.len()];
        let mut alarms = 0;
        for run in 1..=CLEAN_RUNS {
            let (start, mut tests, mut failed) = (Instant::now(), 0, Vec::new());
            for ((binary, tests_of), seeded) in builds.iter().zip(&mut seeded) {
                progress(&format!("clean run {run} of {CLEAN_RUNS}"));
                let outcome = if run == 1 {
                    if long() {
                        let outcome = Self::run(binary, tests_of, Until::TheEnd, Samples::Long);
                        tests += outcome.passed + outcome.failed.len();
                        failed.extend(outcome.failed);
                    }
                    let show = [&["--show-output"], *tests_of].concat();
                    let outcome = Self::run(binary, &show, Until::TheEnd, Samples::Usual);
                    seeded.clone_from(&outcome.seeded);
                    outcome
                } else if seeded.is_empty() {
                    continue;
                } else {
                    let mut only = vec!["--exact"];
                    only.extend(seeded.iter().map(String::as_str));
                    Self::run(binary, &only, Until::TheEnd, Samples::Usual)
                };
                tests += outcome.passed + outcome.failed.len();
                if !outcome.failed.is_empty() {
                    eprintln!("{}", outcome.output);
                }
                failed.extend(outcome.failed);
            }
            alarms += failed.len();
            let seconds = start.elapsed().as_secs_f64();
            let failed = if failed.is_empty() {
                "none".into()
            } else {
                failed.join(", ")
            };
            row(&format!("| {run} | {tests} | {seconds:.0} | {failed} |"));
        }
        println!();
        alarms
    }

    /// Plants one bug after the other. Tells how many nobody noticed.
    fn plant(&self, mutants: &[&Mutant]) -> usize {
        if mutants.is_empty() {
            return 0;
        }
        println!("| planted bug | file | convicted by | seconds |");
        println!("| --- | --- | --- | --- |");
        let mut survivors = 0;
        for (done, mutant) in mutants.iter().enumerate() {
            progress(&format!(
                "{} of {}: {}",
                done + 1,
                mutants.len(),
                mutant.name
            ));
            let start = Instant::now();
            let by = self.try_mutant(mutant).unwrap_or_else(|why| {
                survivors += 1;
                format!("**nobody**: {why}")
            });
            let seconds = start.elapsed().as_secs_f64();
            let file = mutant.file.trim_start_matches("crates/");
            row(&format!(
                "| {} | {file} | {by} | {seconds:.0} |",
                mutant.name
            ));
        }
        survivors
    }

    /// The test that noticed, or why there is none.
    fn try_mutant(&self, mutant: &Mutant) -> Result<String, String> {
        let path = self.copy.join(mutant.file);
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        if source.matches(mutant.original).count() != 1 {
            return Err("the original does not stand in the file once".into());
        }
        let planted = source.replace(mutant.original, mutant.planted);
        std::fs::write(&path, planted).expect("target can be written");
        let targets = match mutant.package {
            "whit-cli" => DOOR,
            _ if mutant.file.starts_with("crates/whit/src/session/") => SESSION,
            _ => UNITS,
        };
        let built = self.build(mutant.package, targets);
        std::fs::write(&path, source).expect("target can be written");
        let binary = built.map_err(|said| {
            eprintln!("{said}");
            "it does not compile".to_owned()
        })?;
        let mut noticed = Err("nothing was run".to_owned());
        for _ in 0..if long() { 2 } else { 1 } {
            let tests = [mutant.tests];
            let outcome = Self::run(&binary, &tests, Until::OneFails, Samples::Usual);
            let failed = outcome.failed.into_iter().next();
            noticed = failed.ok_or_else(|| format!("{} tests pass", outcome.passed));
            if noticed.is_err() {
                break;
            }
        }
        noticed
    }

    /// Builds some tests of a package: the program, or what the compiler said.
    fn build(&self, package: &str, targets: &[&str]) -> Result<Program, String> {
        let output = Command::new(env!("CARGO"))
            .args(["test", "--package", package, "--no-run"])
            .args(targets)
            .args(["--message-format", "json-render-diagnostics"])
            .current_dir(&self.copy)
            .env("CARGO_TARGET_DIR", &self.target)
            // Nobody looks at line numbers here, and without them a mutant is built in three quarters of the time.
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .output()
            .expect("cargo runs");
        let messages = String::from_utf8_lossy(&output.stdout);
        // Beside tests of a door, the door is built.
        let tests = messages
            .lines()
            .filter(|line| line.contains("\"test\":true"));
        let mut program = tests.filter_map(|line| {
            let (_, from) = line.split_once("\"executable\":\"")?;
            Some(PathBuf::from(from.split_once('"')?.0))
        });
        let program = program.next_back();
        let folder = package.trim_start_matches("whit-");
        program
            .filter(|_| output.status.success())
            .map(|path| Program {
                path,
                package: self.copy.join("crates").join(folder),
            })
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs tests with fresh seeds.
    fn run(program: &Program, arguments: &[&str], until: Until, samples: Samples) -> Outcome {
        let long = match samples {
            Samples::Usual => "0",
            Samples::Long => "1",
        };
        let mut child = Command::new(&program.path)
            .env("WHIT_LONG", long)
            .args(arguments)
            .args(["--format", "pretty"])
            .current_dir(&program.package)
            .env("WHIT_FRESH", "1")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tests run");
        let mut errors = child.stderr.take().expect("piped");
        // Read beside the other, so that neither fills up.
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            text
        });
        let mut outcome = Outcome {
            seeded: Vec::new(),
            passed: 0,
            failed: Vec::new(),
            output: String::new(),
        };
        let mut speaking = None;
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        for line in lines.map_while(Result::ok) {
            let verdict = line
                .strip_prefix("test ")
                .and_then(|line| line.split_once(" ... "));
            match verdict {
                Some((test, "FAILED")) => outcome.failed.push(test.to_owned()),
                Some((_, "ok")) => outcome.passed += 1,
                _ => {}
            }
            if let Some(test) = line.strip_prefix("---- ") {
                speaking = test.split_once(' ').map(|(test, _)| test.to_owned());
            }
            if line.starts_with("seed ") {
                outcome.seeded.extend(speaking.take());
            }
            outcome.output.push_str(&line);
            outcome.output.push('\n');
            if matches!(until, Until::OneFails) && !outcome.failed.is_empty() {
                let _ = child.kill();
                break;
            }
        }
        let status = child.wait().expect("it was started");
        let errors = errors.join().unwrap_or_default();
        outcome.output.push_str(&String::from_utf8_lossy(&errors));
        if !status.success() && outcome.failed.is_empty() {
            outcome
                .failed
                .push(format!("the test program itself ({status})"));
        }
        outcome
    }
}

/// How many samples statistical tests draw.
enum Samples {
    Usual,
    Long,
}

/// When a run of tests ends.
enum Until {
    TheEnd,
    OneFails,
}

/// A row of a table, at once.
fn row(text: &str) {
    println!("{text}");
    let _ = std::io::stdout().flush();
}

/// What is going on, beside the tables.
fn progress(text: &str) {
    eprintln!("{text}");
}

/// How long all children were at work, where the system tells: from the 16th and 17th field of `/proc/self/stat`, in hundredths of a second.
fn cpu_minutes() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(13);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / 6000.0)
}
