//! `whit train` that is told to stop: the step under way is finished, what was done is kept, and the same command goes on.
#![cfg(unix)]

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use super::*;

/// Enough steps that the signal finds some left, whatever else the machine does.
const STEPS: u64 = 8000;

fn folder(sampler: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut rows = String::from("x,y,side\n");
    for row in 0..1000 {
        let (x, y) = (row * 37 % 101 - 50, row * 53 % 89 - 44);
        rows += &format!("{x},{y},{}\n", i32::from(2 * x + y > 0));
    }
    let plan = format!(
        "[data]\npath = 'points.csv'\nlabel = 'side'\nclasses = 2\nstd = 50\nn_public = 1000\n\
         [test]\npath = 'public.csv'\nlabel = 'side'\nclasses = 2\nstd = 50\n\
         [model]\nkind = 'mlp'\nhidden = [200]\n\
         [plan]\n{sampler}\nsteps = {STEPS}\nclip = 1.0\nnoise_multiplier = 4.0\ndelta = 1e-5\n"
    );
    for (name, text) in [
        ("points.csv", &rows),
        ("public.csv", &rows),
        ("plan.toml", &plan),
    ] {
        fs::write(folder.path().join(name), text).expect("writable");
    }
    folder
}

fn train(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(["train", "plan.toml"]).args(arguments);
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The checkpoint of the run; empty before there is one.
fn kept(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder.join("plan"));
    let paths = files.into_iter().flatten().flatten();
    let mut paths = paths.map(|file| file.path());
    let found = paths.find(|path| path.extension().is_some_and(|end| end == "checkpoint"));
    found
        .and_then(|path| fs::read(path).ok())
        .unwrap_or_default()
}

/// Waits until a step was counted that was not counted when it began: from there on signals are heard. A program that ends instead, or that counts none within five minutes,
/// fails the test.
fn under_way(mut child: Child, folder: &Path, before: &[u8]) -> Child {
    for _ in 0..300_000 {
        let bytes = kept(folder);
        let is_begun = !String::from_utf8_lossy(&bytes).contains("\"steps_begun\":0,");
        if !bytes.is_empty() && is_begun && bytes != before {
            return child;
        }
        if child.try_wait().expect("its state").is_some() {
            let Run { stdout, stderr, .. } = ended(child);
            panic!("it ended before it took a step: {stdout} {stderr}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it runs");
    panic!("it counts no step: {}", ended_by_force(child));
}

/// What a program has said that was killed.
fn ended_by_force(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn ended(child: Child) -> Run {
    let output = child.wait_with_output().expect("it ends");
    Run {
        code: output.status.code().expect("it ended by itself"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn a_run_that_is_stopped_loses_nothing_and_goes_on() {
    let folder = folder("rate = 0.1");
    let folder = folder.path();
    let child = train(folder, &["--format", "json"])
        .spawn()
        .expect("it starts");
    let child = under_way(child, folder, b"");
    send(&child, Signal::TERM);
    let first = ended(child);
    assert_eq!(
        (first.code, first.stderr.as_str()),
        (143, ""),
        "{}",
        first.stdout
    );
    let first: Value = serde_json::from_str(&first.stdout).expect("JSON");
    assert_eq!(first["stopped"], "SIGTERM");
    assert!(
        first["goes_on_with"]
            .as_str()
            .is_some_and(|it| it.ends_with("train plan.toml --format json"))
    );
    let begun = first["steps_begun"].as_u64().expect("a number");
    assert_eq!(first["steps_kept"], begun);
    assert!((1..STEPS).contains(&begun));
    // There is no model yet, and what was seen is kept beside the checkpoint.
    assert!(
        !folder.join("plan/model.safetensors").exists() && !folder.join("plan/curve.csv").exists()
    );
    // People hear of it, and of how to go on, on stderr.
    let before = kept(folder);
    let child = train(folder, &["--threads", "1"])
        .spawn()
        .expect("it starts");
    let child = under_way(child, folder, &before);
    send(&child, Signal::INT);
    let second = ended(child);
    assert_eq!(
        (second.code, second.stdout.as_str()),
        (130, ""),
        "{}",
        second.stderr
    );
    assert!(
        second.stderr.contains("stopped by SIGINT after step"),
        "{}",
        second.stderr
    );
    assert!(
        second.stderr.contains("to go on: ")
            && second.stderr.contains("train plan.toml --threads 1"),
        "{}",
        second.stderr
    );
    let mut last = train(folder, &["--format", "json"]);
    let last = answer(&ended(last.spawn().expect("it starts")));
    assert_eq!(
        (&last["steps_kept"], &last["resumed"]),
        (&STEPS.into(), &true.into())
    );
    // The curve begins where the run did, and not where it went on.
    let curve = fs::read_to_string(folder.join("plan/curve.csv")).expect("written");
    assert_eq!(curve.lines().count(), 61, "{curve}");
    let left: Vec<_> = fs::read_dir(folder.join("plan"))
        .expect("there")
        .flatten()
        .collect();
    assert!(
        left.iter()
            .all(|file| file.path().extension().is_none_or(|end| end != "curve"))
    );
}

/// A tree cannot go on, and what it has learnt is not lost either.
#[test]
fn a_run_that_cannot_go_on_leaves_what_it_has() {
    let folder = folder("sampler = 'cyclic'\nbins = 10\nmechanism = 'tree'");
    let folder = folder.path();
    let child = train(folder, &[]).spawn().expect("it starts");
    let child = under_way(child, folder, b"");
    send(&child, Signal::INT);
    let stopped = ended(child);
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    assert!(
        stopped.stderr.contains("no step is left"),
        "{}",
        stopped.stderr
    );
    let mut rest = train(folder, &["--format", "json"]);
    let rest = answer(&ended(rest.spawn().expect("it starts")));
    let kept = rest["steps_kept"].as_u64().expect("a number");
    assert!(
        (1..STEPS).contains(&kept) && rest["steps_now"] == 0,
        "{rest}"
    );
}

/// The second signal ends a run at once, with its own code and without a word; what was kept by then is there, and the same command goes on with it.
#[test]
fn a_run_that_is_stopped_twice_says_nothing_and_goes_on_after_what_was_kept() {
    let folder = folder("rate = 0.1");
    let folder = folder.path();
    let arguments = ["--threads", "1", "--format", "json"];
    let child = train(folder, &arguments).spawn().expect("it starts");
    let child = under_way(child, folder, b"");
    // Held up, so that it hears both before it takes another step.
    send(&child, Signal::STOP);
    let held = waitpid(Some(Pid::from_child(&child)), WaitOptions::UNTRACED);
    assert!(
        held.expect("it runs")
            .is_some_and(|(_, held)| held.stopped())
    );
    send(&child, Signal::INT);
    send(&child, Signal::TERM);
    send(&child, Signal::CONT);
    let twice = ended(child);
    // The system says which of two that wait is heard first.
    assert!([130, 143].contains(&twice.code), "{}", twice.code);
    assert_eq!((twice.stdout.as_str(), twice.stderr.as_str()), ("", ""));
    let help = program().arg("--help").output().expect("it runs");
    let help = String::from_utf8(help.stdout).expect("text");
    assert!(
        help.contains("where nothing is said it goes on after what was kept last"),
        "{help}"
    );
    let before = kept(folder);
    let child = train(folder, &arguments).spawn().expect("it starts");
    let child = under_way(child, folder, &before);
    send(&child, Signal::TERM);
    let once: Value = serde_json::from_str(&ended(child).stdout).expect("JSON");
    let [begun, kept] = ["steps_begun", "steps_kept"].map(|name| once[name].as_u64());
    assert!(
        kept > Some(0) && kept <= begun && begun < Some(STEPS),
        "{once}"
    );
}

/// Curves that were half written when the machine stopped are written again from the notebook; without one they stay as they are.
#[test]
fn half_written_curves_are_written_again() {
    let folder = folder("rate = 0.1");
    let folder = folder.path();
    let plan = fs::read_to_string(folder.join("plan.toml")).expect("there");
    let plan = plan.replace(&format!("steps = {STEPS}"), "steps = 20");
    fs::write(folder.join("plan.toml"), plan).expect("writable");
    let run = || {
        answer(&ended(
            train(folder, &["--format", "json"])
                .spawn()
                .expect("it starts"),
        ))
    };
    run();
    let file = |name: &str| folder.join("plan").join(name);
    let names = ["curve.csv", "accuracy.svg", "accuracy.png"];
    let whole = names.map(|name| fs::read(file(name)).expect("written"));
    let checkpoints = fs::read_dir(folder.join("plan")).expect("there").flatten();
    let mut checkpoints = checkpoints.map(|entry| entry.path());
    let checkpoint =
        checkpoints.find(|path| path.extension().is_some_and(|end| end == "checkpoint"));
    let notebook = checkpoint.expect("kept").with_extension("curve");
    for (has_notebook, is_mended) in [(false, false), (true, true)] {
        for (name, whole) in names.iter().zip(&whole) {
            fs::write(file(name), &whole[..whole.len() / 2]).expect("writable");
        }
        if has_notebook {
            fs::write(&notebook, &whole[0]).expect("writable");
        }
        assert_eq!(run()["steps_now"], 0);
        for (name, whole) in names.iter().zip(&whole) {
            let is_whole = fs::read(file(name)).expect("there") == *whole;
            assert_eq!(is_whole, is_mended, "{name}");
        }
        assert!(!notebook.exists());
    }
}
