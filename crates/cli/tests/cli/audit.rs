//! `whit audit`: verdicts about programs whose truth is known.

use super::*;

fn toy() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/toy.sh").into()
}

/// Two files that differ in one line.
fn neighbours(test: &str) -> [String; 2] {
    [("yes", "no\nyes\n"), ("no", "no\n")].map(|(name, content)| {
        let path = file(&format!("audit-{test}-{name}.csv"), content.as_bytes());
        path.to_str().expect("text").to_owned()
    })
}

/// `whit audit command` on the two files of a test, without its options.
fn audit_of(test: &str) -> Command {
    let [yes, no] = neighbours(test);
    let mut command = program();
    command.args(["audit", "command", "--neighbour-a", &yes]);
    command.args(["--neighbour-b", &no]);
    command
}

fn audit(test: &str, options: &str, words: &[&str]) -> Run {
    let mut command = audit_of(test);
    command
        .args(options.split_whitespace())
        .arg("--")
        .args(words);
    finish(command, b"")
}

fn audit_toy(test: &str, options: &str, mode: &str) -> Run {
    let toy = toy();
    audit(test, options, &["sh", &toy, mode, "{}"])
}

/// How many processes sleep so long. Each test has a number of its own, so that nobody counts another's.
#[cfg(target_os = "linux")]
fn sleeping(seconds: u32) -> usize {
    let line = format!("sleep\0{seconds}\0").into_bytes();
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|found| *found == line).count()
}

/// Waits, on a machine that may be slow, and not for ever.
#[cfg(target_os = "linux")]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !holds() {
        assert!(
            std::time::Instant::now() < deadline,
            "{what}, within two minutes"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn verdict(run: &Run, code: i32) -> Value {
    assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
    assert_eq!((run.stdout.lines().count(), run.stderr.as_str()), (1, ""));
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn a_leaky_program_is_convicted() {
    let options = "--epsilon 1.1 --trials 400 --confidence 0.99 --format json";
    let found = verdict(&audit_toy("leaky", options, "leaky"), 3);
    assert_eq!(found["verdict"], "violated", "{found}");
    assert_eq!(
        (number(&found, "claimed"), number(&found, "confidence")),
        (1.1, 0.99)
    );
    // ln 15 is 2.708.
    let lower = number(&found, "epsilon_lower");
    assert!(lower > 1.1 && lower < 3.5, "{found}");
    assert_eq!(found["trials"], serde_json::json!([400, 400]));
    assert_eq!(found["outcomes"][0]["a number"], 400);
    assert_eq!(found["event"]["counted_a"], 200, "the other half was shown");
}

/// At this confidence an honest program is convicted once in ten million times.
#[test]
fn an_honest_program_is_not_convicted() {
    let toy = toy();
    let options =
        "--epsilon 1.0987 --trials 20000 --batch 5000 --confidence 0.9999999 --format json";
    let run = audit("honest", options, &["sh", &toy, "batch", "{}", "5000"]);
    let found = verdict(&run, 0);
    assert_eq!(found["verdict"], "consistent", "{found}");
    let lower = number(&found, "epsilon_lower");
    assert!(lower > 0.8 && lower < 1.0987, "{found}");
}

#[test]
fn few_trials_are_inconclusive_and_say_how_many_would_do() {
    let options = "--epsilon 1.0987 --trials 8 --format json";
    let found = verdict(&audit_toy("few", options, "honest"), 0);
    assert_eq!(found["verdict"], "inconclusive", "{found}");
    let needed = number(&found, "trials_needed");
    assert!(needed > 100.0 && needed < 1000.0, "{found}");
    let found = verdict(
        &audit_toy("no-claim", "--trials 8 --format json", "honest"),
        0,
    );
    assert_eq!(
        (&found["verdict"], &found["claimed"]),
        (&"inconclusive".into(), &Value::Null)
    );
}

#[test]
fn an_exit_code_is_evidence() {
    let options = "--epsilon 1 --trials 200 --format json";
    let found = verdict(&audit_toy("crash", options, "crash"), 3);
    let crashed = number(&found["outcomes"][0], "exit code 7");
    assert!(crashed > 50.0 && crashed < 150.0, "{found}");
    assert_eq!(found["outcomes"][1]["a number"], 200);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_out_of_time_is_evidence_and_leaves_nobody_behind() {
    let (toy, options) = (toy(), "--trials 3 --timeout 3 --format json");
    let run = audit("hang", options, &["sh", &toy, "hang", "{}", "98765"]);
    let found = verdict(&run, 0);
    assert_eq!(found["outcomes"][0]["out of time"], 3, "{found}");
    assert_eq!(found["outcomes"][1]["a number"], 3, "{found}");
    // What was killed goes at once, but not in the same moment.
    wait_until("nobody sleeps", || sleeping(98765) == 0);
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let [yes, no] = neighbours("refused");
    let toy = toy();
    let files = format!("audit command --neighbour-a {yes} --neighbour-b {no}");
    check_invalid(
        b"",
        &format!("{files} -- sh {toy} honest"),
        "no_place_for_the_file",
    );
    check_invalid(
        b"",
        &format!("{files} -- {toy}-absent {{}}"),
        "program_not_started",
    );
    check_invalid(
        b"",
        &format!("{files} --confidence 1 -- sh {toy} honest {{}}"),
        "confidence",
    );
    check_invalid(
        b"",
        &format!("{files} --trials 0 -- sh {toy} honest {{}}"),
        "not_positive",
    );
    let most = usize::MAX;
    for options in [
        format!("--trials {most}"),
        format!("--jobs {most}"),
        format!("--batch {most}"),
    ] {
        check_invalid(
            b"",
            &format!("{files} {options} -- sh {toy} honest {{}}"),
            "too_many",
        );
    }
    check_invalid(
        b"",
        &format!("{files} --timeout -1 -- sh {toy} honest {{}}"),
        "usage",
    );
    check_invalid(
        b"",
        &format!("{files} --timeout 0 -- sh {toy} honest {{}}"),
        "not_positive",
    );
    check_invalid(
        b"",
        &format!("{files} --group 0 -- sh {toy} honest {{}}"),
        "out_of_domain",
    );
    check_invalid(
        b"",
        &format!("{files} -- sh {toy} fail {{}}"),
        "program_fails",
    );
    let absent = format!(
        "audit command --neighbour-a {yes} --neighbour-b {no}-absent -- sh {toy} honest {{}}"
    );
    check_invalid(b"", &absent, "file_missing");
    check_invalid(b"", "audit command --neighbour-a a.csv", "usage");
    let run = audit_toy("fails", "", "fail");
    assert!(run.stderr.contains("no such column"), "{}", run.stderr);
}

#[test]
fn reports_stand_on_their_own() {
    let page = file("audit-report.html", b"");
    let options = format!("--epsilon 1.1 --trials 400 --report {}", page.display());
    let run = audit_toy("report", &options, "leaky");
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(
        run.stdout
            .starts_with("verdict    violated\nclaimed    epsilon 1.1, delta 0\n")
            && run.stdout.contains("more leaks than was promised"),
        "{}",
        run.stdout
    );
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.contains("<svg") && page.contains("violated") && !page.contains("<script"));
    // With what it was made.
    for said in [
        "toy.sh leaky {}",
        "400 on a, 400 on b",
        " of 200",
        "400 a number",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

/// A report that cannot be written is noticed before the work, which was lost with it.
#[test]
fn a_report_without_a_place_is_refused_before_the_first_run() {
    let log = file("audit-no-report.log", b"");
    let options = "--epsilon 1 --trials 100 --report no/such/folder.html";
    let script = format!("echo ran >>{}; wc -l <$1", log.display());
    let run = audit_script("no-report", options, &script);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stderr.contains("report_not_written"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(log).expect("there"), "");
}

/// A failed run is one outcome and a good one is a thousand: shares of such outcomes vary far more than those of independent trials.
#[test]
fn a_broken_batch_is_refused() {
    for mode in ["crash", "hang"] {
        let test = format!("broken-{mode}");
        let run = audit_toy(&test, "--trials 40 --batch 1 --timeout 3", mode);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(run.stderr.contains("broken_batch"), "{}", run.stderr);
    }
    let run = audit_toy("short", "--trials 40 --batch 2", "honest");
    assert!(run.stderr.contains("printed 1 lines"), "{}", run.stderr);
}

/// A generator that starts from the same seed in every run: a thousand lines of it are one answer. The run before the first that is counted is one of them.
#[test]
fn a_fixed_seed_is_no_noise() {
    for trials in [50, 200] {
        let options = format!("--epsilon 2 --trials {trials} --batch 50");
        let run = audit_script("seed", &options, "seq 50 # $1");
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(run.stderr.contains("batch_repeats"), "{}", run.stderr);
    }
    // What always prints the same line has no noise to repeat.
    let same = "yes 3 | head -n 40 # $1";
    let found = verdict(
        &audit_script("same", &format!("{SOME} --batch 40"), same),
        0,
    );
    assert_eq!(found["verdict"], "consistent", "{found}");
}

/// What the audit found took its time, and is said before anybody hears that a page could not be written.
#[test]
fn a_report_that_fails_at_the_end_costs_no_verdict() {
    let folder = file("audit-report-lost", b"").with_extension("d");
    let page = folder.join("report.html");
    for (format, epsilon, code) in [("json", 2, 0), ("json", 1, 3), ("table", 2, 0)] {
        fs::create_dir_all(&folder).expect("the test directory is writable");
        let options = format!(
            "--epsilon {epsilon} --trials 240 --confidence 0.9 --format {format} --report {}",
            page.display()
        );
        // The folder is there when the audit begins, and gone when it ends.
        let answer = if code == 3 { "cat \"$1\"" } else { "echo 3" };
        let script = format!("rm -rf {}; {answer} # $1", folder.display());
        let run = audit_script("lost", &options, &script);
        // A refuted claim is said by the exit code, whatever became of the page.
        assert_eq!(run.code, code.max(1), "{}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains("report_not_written"), "{}", run.stderr);
        if format == "json" {
            assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
            let found: Value = serde_json::from_str(&run.stdout).expect("JSON");
            let expected = if code == 3 { "violated" } else { "consistent" };
            assert_eq!(found["verdict"], expected, "{found}");
        } else {
            assert!(
                run.stdout.starts_with("verdict    consistent\n"),
                "{}",
                run.stdout
            );
        }
    }
}

/// A shell that runs this, with the file as its first argument.
fn audit_script(test: &str, options: &str, script: &str) -> Run {
    audit(test, options, &["sh", "-c", script, "sh", "{}"])
}

/// Enough of them that a claim of 2 can be consistent.
const SOME: &str = "--epsilon 2 --trials 240 --confidence 0.9 --format json";

/// What a program says of where its file is, and not of what is in it.
#[test]
fn the_name_of_a_file_is_no_evidence() {
    for (test, script) in [
        ("name", "echo \"answer 3 of $1\""),
        ("stem", "basename \"$1\" .csv"),
        ("real", "readlink -f -- \"$1\""),
        ("mode", "stat -c '%a %n %h' -- \"$1\""),
    ] {
        let found = verdict(&audit_script(test, SOME, script), 0);
        assert_eq!(number(&found, "epsilon_lower"), 0.0, "{found}");
        assert_eq!(found["verdict"], "consistent", "{found}");
    }
}

/// Two files that hold their own names: all of each is shown.
#[test]
fn a_file_may_hold_its_own_name() {
    let (yes, no) = (file("yes", b"yes\n"), file("no", b"no\n"));
    let mut command = program();
    command
        .args(["audit", "command", "--neighbour-a"])
        .arg(&yes);
    command.arg("--neighbour-b").arg(&no);
    command
        .args(SOME.split_whitespace())
        .args(["--", "cat", "{}"]);
    let found = verdict(&finish(command, b""), 3);
    assert_eq!(found["verdict"], "violated", "{found}");
}

/// A run that writes to its file, or beside it, is alone with that, and nothing of it is left.
#[test]
fn every_run_has_a_copy_of_its_own() {
    let folder = file("audit-copies", b"").with_extension("d");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("the test directory is writable");
    let [_, no] = neighbours("copies");
    let mut command = audit_of("copies");
    command.env("TMPDIR", &folder);
    command.args(["--trials", "8", "--format", "json", "--", "sh", "-c"]);
    command.args([
        "echo more | tee -a \"$1\" > \"$1.new\"; cat \"$1\"* | wc -l",
        "sh",
        "{}",
    ]);
    let found = verdict(&finish(command, b""), 0);
    let hits = ["hits_a", "hits_b"].map(|key| number(&found["event"], key));
    assert!(hits == [4.0, 0.0] || hits == [0.0, 4.0], "{found}");
    assert_eq!(fs::read(&no).expect("it is there"), b"no\n");
    assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 0);
}

#[test]
fn files_that_cannot_be_neighbours_are_refused() {
    let refused = |one: &std::path::Path, other: &std::path::Path, code: &str| {
        let (one, other) = (one.display(), other.display());
        let files = format!("audit command --neighbour-a {one} --neighbour-b {other}");
        check_invalid(b"", &format!("{files} -- cat {{}}"), code);
    };
    let one = file("audit-alike-1.csv", b"1\n2\n");
    let other = file("audit-alike-2.csv", b"1\n2\n");
    refused(&one, &one, "neighbours_equal");
    refused(&one, &other, "neighbours_equal");
    refused(&one, &file("audit-alike.txt", b"1\n"), "endings_differ");
}

/// Whoever sees nothing on either file has nothing to tell apart, and has not been seen to be private.
#[test]
fn what_shows_nothing_is_refused() {
    for (options, script, code) in [
        (
            "--timeout 1",
            "sleep 98770; cat \"$1\"",
            "program_out_of_time",
        ),
        (
            "--timeout 1",
            "cat \"$1\"; sleep 98770",
            "program_out_of_time",
        ),
        ("", ": \"$1\"", "program_silent"),
        ("--batch 4", ": \"$1\"", "program_silent"),
        ("", "kill -9 $$ # $1", "program_fails"),
    ] {
        let run = audit_script("nothing", &format!("--epsilon 1 {options}"), script);
        assert_eq!(run.code, 1, "{script}: {}", run.stdout);
        assert!(run.stderr.contains(code), "{script}: {}", run.stderr);
    }
}

/// A constant has been seen whole. Text that is new each time has been seen once, and any set of it that is looked for is not there the next time.
#[test]
fn text_that_never_repeats_is_not_judged() {
    let found = verdict(&audit_script("constant", SOME, "echo always # $1"), 0);
    assert_eq!(found["verdict"], "consistent", "{found}");
    assert_eq!(number(&found, "unseen"), 0.0, "{found}");
    let new = "echo \"answer $(od -An -N7 -tu8 /dev/urandom)\" # $1";
    let found = verdict(&audit_script("new", SOME, new), 0);
    assert_eq!(found["verdict"], "inconclusive", "{found}");
    assert!(number(&found, "unseen") > 0.5, "{found}");
    let sentence = found["sentence"].as_str().expect("text");
    assert!(
        sentence.contains("print one number and nothing else"),
        "{found}"
    );
    assert!(
        found.get("trials_needed").is_none(),
        "more would not help: {found}"
    );
    // The same number alone is judged.
    let bare = "od -An -N7 -tu8 /dev/urandom # $1";
    let found = verdict(&audit_script("bare", SOME, bare), 0);
    assert_eq!(found["verdict"], "consistent", "{found}");
}

/// Whatever differs is evidence: bytes that are no text, codes of failures, signals, what is printed before a failure.
#[test]
fn all_that_can_be_seen_is_evidence() {
    for (test, on_yes, on_no) in [
        ("bytes", "printf '\\377'", "printf '\\376'"),
        ("codes", "exit 3", "exit 4"),
        ("signals", "kill -9 $$", "kill -15 $$"),
        ("signal", "kill -9 $$", "exit 9"),
        ("forms", "echo 3", "echo 3.0"),
        ("ends", "printf yes", "echo yes"),
        ("nothing", ":", "echo"),
        ("digits", "echo 9007199254740992", "echo 9007199254740993"),
    ] {
        let script = format!("if grep -qx yes \"$1\"; then {on_yes}; else {on_no}; fi");
        let found = verdict(&audit_script(test, SOME, &script), 3);
        assert_eq!(found["verdict"], "violated", "{test}: {found}");
    }
    // Most runs fail, as often on both files; what they print before that tells.
    let script = "draw=$(od -An -N1 -tu1 /dev/urandom); [ $((draw % 8)) -eq 0 ] && { echo 0; exit; }; grep -cx yes \"$1\"; exit $((draw % 2 + 3))";
    let options = SOME.replace("240", "400");
    let mut run = audit_script("before", &options, script);
    // A rehearsal in which both runs fail alike is refused, and comes to that in a third of all cases.
    for _ in 0..40 {
        if !run.stdout.contains("program_fails") {
            break;
        }
        run = audit_script("before", &options, script);
    }
    assert_eq!(verdict(&run, 3)["verdict"], "violated");
}

#[test]
fn what_is_printed_at_length_takes_little_room() {
    let long = "head -c 3000000 /dev/zero; cat \"$1\"";
    let run = audit_script("long", "--trials 40 --format json", long);
    let found = verdict(&run, 0);
    assert_eq!(found["outcomes"][0]["a long text"], 40, "{found}");
    assert!(run.stdout.len() < 3000, "{}", run.stdout.len());
    // Its last bytes are seen as well.
    let hits = ["hits_a", "hits_b"].map(|key| number(&found["event"], key));
    assert!(hits == [20.0, 0.0] || hits == [0.0, 20.0], "{found}");
    let batch = "yes $(head -c 1 \"$1\") | head -c 20000000";
    let run = audit_script("long-batch", "--trials 8 --batch 4", batch);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stderr.contains("more than 16 MiB"), "{}", run.stderr);
}

/// It has answered and is done; that its child goes on, and could print, changes nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_child_that_could_still_print_is_not_waited_for() {
    let found = verdict(&audit_script("holds", SOME, "sleep 98771 & cat \"$1\""), 3);
    assert_eq!(found["outcomes"][0]["text"], 240, "{found}");
    assert_eq!(found["outcomes"][1]["text"], 240, "{found}");
    wait_until("nobody sleeps", || sleeping(98771) == 0);
}

/// A run that ends well and leaves a child behind, which prints nowhere.
#[cfg(target_os = "linux")]
#[test]
fn what_a_run_leaves_behind_is_ended() {
    let program = "sleep 98766 >/dev/null 2>&1 & echo 1 # $1";
    let run = audit(
        "behind",
        "--trials 2 --format json",
        &["sh", "-c", program, "sh", "{}"],
    );
    verdict(&run, 0);
    wait_until("nobody sleeps", || sleeping(98766) == 0);
}

/// Whoever stops an audit means what it runs as well, and what that has started.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_what_is_under_way() {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    let alive = || sleeping(98767);
    let (a, b) = (file("stopped-a.csv", b"1\n"), file("stopped-b.csv", b"2\n"));
    let folder = file("audit-stopped", b"").with_extension("d");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("the test directory is writable");
    for (signal, number, name) in [
        ("-INT", 2, "SIGINT"),
        ("-QUIT", 3, "SIGQUIT"),
        ("-TERM", 15, "SIGTERM"),
    ] {
        let mut command = without_core();
        command.env("TMPDIR", &folder);
        command.args(["audit", "command", "--trials", "4"]);
        command
            .arg("--neighbour-a")
            .arg(&a)
            .arg("--neighbour-b")
            .arg(&b);
        command.args([
            "--",
            "sh",
            "-c",
            "sleep 98767 & sleep 98767 # $1",
            "sh",
            "{}",
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut audit = command.spawn().expect("whit starts");
        wait_until("both sleep", || {
            let ended = audit.try_wait().expect("its child");
            assert!(ended.is_none(), "it ended by itself");
            alive() >= 2
        });
        let sent = Command::new("kill")
            .arg(signal)
            .arg(audit.id().to_string())
            .status();
        assert!(sent.expect("kill is there").success());
        wait_until("it ends", || audit.try_wait().expect("its child").is_some());
        let status = audit.wait().expect("its child");
        assert_eq!(status.signal(), Some(number), "{status}");
        let mut said = String::new();
        let mut talk = audit.stderr.take().expect("piped");
        talk.read_to_string(&mut said).expect("text");
        assert!(
            said.contains(&format!("stopped by {name}: 1 run was under way")),
            "{said}"
        );
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 0);
        // What was killed goes at once, but not in the same moment.
        wait_until("nobody sleeps", || alive() == 0);
    }
}

/// The program, which leaves no core behind when SIGQUIT ends it, and hears signals also where the tests were started to ignore them, as shells do with what runs in the background.
#[cfg(target_os = "linux")]
fn without_core() -> std::process::Command {
    let mut command = std::process::Command::new("env");
    command.arg("--default-signal=INT,QUIT,TERM");
    command.args(["sh", "-c", "ulimit -c 0; exec \"$@\"", "sh"]);
    command.arg(program().get_program());
    command
}

/// As `nohup` starts it: a terminal that hangs up is no reason to end, and SIGTERM still is.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    let (a, b) = (file("nohup-a.csv", b"1\n"), file("nohup-b.csv", b"2\n"));
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    command.arg(program().get_program());
    command.args(["audit", "command", "--trials", "4"]);
    command.arg("--neighbour-a").arg(&a);
    command.arg("--neighbour-b").arg(&b);
    command.args(["--", "sh", "-c", "sleep 98768 # $1", "sh", "{}"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut audit = command.spawn().expect("sh starts");
    let send = |signal: &str, id: u32| {
        let sent = Command::new("kill")
            .arg(signal)
            .arg(id.to_string())
            .status();
        assert!(sent.expect("kill is there").success());
    };
    wait_until("it sleeps", || sleeping(98768) == 1);
    send("-HUP", audit.id());
    // Signals of one process come in the order of their numbers: if the first had been heard, it would be the one that ends it.
    send("-TERM", audit.id());
    wait_until("it ends", || audit.try_wait().expect("its child").is_some());
    let status = audit.wait().expect("its child");
    assert_eq!(status.signal(), Some(15), "{status}");
    wait_until("nobody sleeps", || sleeping(98768) == 0);
}

/// A sampler that deals with everybody at once: one canary, and as many runs as end. The default as well.
#[test]
fn a_plan_of_fixed_batches_is_audited() {
    let text = "[data]\npath = \"none.csv\"\nlabel = \"y\"\nclasses = 2\nn_public = 60\n\
                [model]\nkind = \"logistic\"\n\
                [plan]\nsampler = \"fixed_size\"\nsize = 10\nsteps = 2\nclip = 1.0\nnoise_multiplier = 1.0\ndelta = 1e-5\n\
                [optimizer]\nkind = \"sgd\"\nrate = 0.1\n";
    let plan = file("audit-fixed.toml", text.as_bytes());
    let plan = plan.display();
    let found = verdict(
        &run(&format!("audit train {plan} --trials 2000 --format json")),
        0,
    );
    let row = &found["rows"][0];
    assert_eq!(
        (row["delta"].as_f64(), &row["claimed_delta"]),
        (Some(1e-5), &row["delta"])
    );
    assert_ne!(row["verdict"], "violated", "{found}");
    let most = usize::MAX;
    check_invalid(
        b"",
        &format!("audit train {plan} --trials {most}"),
        "audit_trials",
    );
    check_invalid(
        b"",
        &format!("audit train {plan} --trainings {most}"),
        "trainings",
    );
}

/// The file may stand inside an argument, and is no business of a shell.
#[test]
fn names_of_files_are_not_for_a_shell() {
    let path = file("audit; touch pwned $(x).csv", b"no\nyes\n");
    let other = file("audit; other.csv", b"no\n");
    let folder = file("audit; touch pwned $(x)", b"").with_extension("d");
    fs::create_dir_all(&folder).expect("the test directory is writable");
    let mut command = program();
    // What the program is given lies in there.
    command.env("TMPDIR", &folder);
    command.args(["audit", "command", "--trials", "4", "--format", "json"]);
    command
        .arg("--neighbour-a")
        .arg(&path)
        .arg("--neighbour-b")
        .arg(&other);
    command.args(["--", "grep", "-c", "--regexp=yes", "--", "{}"]);
    let run = finish(command, b"");
    // grep exits with 1 where nothing is found.
    let found = verdict(&run, 0);
    assert_eq!(found["outcomes"][0]["a number"], 4, "{found}");
    assert_eq!(
        found["outcomes"][1]["exit code 1 after a number"], 4,
        "{found}"
    );
}

#[test]
fn whit_passes_its_own_audit() {
    let run = run("audit self --quick --format json");
    let report = verdict(&run, 0);
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() >= 300, "{}", rows.len());
    assert!(rows.iter().all(|row| row["kind"] == "distribution_free"));
    // One row that no number of trials could tell would leave all of it open.
    let told = |row: &&serde_json::Value| row["verdict"] != "consistent";
    let open: Vec<_> = rows.iter().filter(told).collect();
    assert!(open.is_empty(), "{open:#?}");
    assert_eq!(report["verdict"], "consistent", "{}", report["sentence"]);
}
