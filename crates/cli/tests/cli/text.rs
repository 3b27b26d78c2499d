//! What people read: tables, help, explanations.

use super::*;

#[test]
fn table_says_all_that_a_reader_needs() {
    let csv = file("table.csv", b"who,age\na,30\na,31\nb,40\n");
    let path = csv.to_str().expect("text");
    let run_table = |arguments: &str| {
        let run = run(arguments);
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (0, ""),
            "stderr is no terminal and there is nothing to say"
        );
        run.stdout
    };
    let text = run_table(&format!("stats count {path} --epsilon 1"));
    for words in [
        "count of rows",
        "95% interval",
        "laplace, noise scale 1",
        "epsilon 1",
        "each row",
        "2.7183 (e^1)",
        "not recorded: repeats add up",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let text = run_table(&format!(
        "stats mean {path} --column age --range 0,120 --epsilon 1 --mechanism gaussian --delta 1e-5 --unit who --rows-per-unit 2 --confidence 0.9"
    ));
    for words in [
        "mean of age",
        "90% interval",
        "gaussian",
        "delta 1e-5",
        "each who",
        "(delta)",
        "up to 2 rows",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let text = run_table(&format!(
        "stats mean {path} --column age --range 0,120 --epsilon 2"
    ));
    let words = "laplace, noise scale 60 on each of two sums";
    assert!(text.contains(words), "{words:?} is not in\n{text}");
    let text = run_table(&format!(
        "stats median {path} --column age --range 0,120,1 --epsilon 2"
    ));
    assert!(text.contains("permute-and-flip"), "{text}");
    let text = run_table(&format!(
        "stats histogram {path} --column age --range 0,80 --bins 2 --epsilon 30"
    ));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .take(3)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[1],
        ["[0,", "40)", "2", "2", "to", "2", &"#".repeat(30)],
        "{text}"
    );
    assert_eq!(
        rows[2],
        ["[40,", "80]", "1", "1", "to", "1", &"#".repeat(15)],
        "{text}"
    );
}

#[test]
fn tables_of_choices_and_searches() {
    let check = |arguments: &str, expected: &[&str]| {
        let table = run(&format!("stats {arguments}"));
        assert_eq!(table.code, 0, "{}", table.stderr);
        let text = &table.stdout;
        for words in expected {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
    };
    check(
        "median --column age --range auto --epsilon 8",
        &[
            "median of age",
            "37",
            "rank error",
            "rows, with 95% confidence",
            "16 to 128, found for epsilon 2 of 8",
            "exponential",
        ],
    );
    check(
        "quantile --q 0.25,0.9 --column age --range 0,120 --epsilon 40",
        &["0.25 quantile of age  28", "0.9 quantile of age   58"],
    );
    check(
        "variance --column age --range 0,120 --epsilon 1",
        &["180 on the sum and 5400 on the squares", "epsilon 1\n"],
    );
    check(
        "bounds --column age --epsilon 8",
        &["bounds of age  16 to 128"],
    );
    check(
        "top --k 2 --column sex --categories Female,Male --epsilon 8",
        &["top 1 of sex  Male", "top 2 of sex  Female", "rows more"],
    );
    check(
        "distinct --unit native_country --epsilon 1",
        &[
            "distinct native_country",
            "each native_country with all its rows",
        ],
    );
    check(
        "distinct --column sex --unit race --values-per-unit 2 --epsilon 1",
        &["distinct sex", "up to 2 different values of each"],
    );
    check(
        "marginals --columns sex,income --categories sex=Female|Male;income=>50K --epsilon 50",
        &[
            "sex     income  count",
            "Female  >50K     1179",
            "Male    >50K     6662",
        ],
    );
}

#[test]
fn bundled_data_is_credited_on_stderr() {
    let run = run("stats count --epsilon 1");
    assert!(run.stderr.contains("CC BY 4.0") && !run.stdout.contains("CC BY"));
}

#[test]
fn standard_input_and_a_file_are_the_same() {
    let csv = b"x\n1\n2\n3\n";
    let path = file("same.csv", csv);
    let mut from_file = answer(&run(&format!(
        "stats count {} --epsilon 50 --format json",
        path.display()
    )));
    let from_stdin = answer(&run_on(csv, "stats count - --epsilon 50 --format json"));
    assert_eq!(
        (&from_file["data"], &from_stdin["data"]),
        (&"file".into(), &"standard input".into())
    );
    from_file["data"] = "standard input".into();
    assert_eq!(from_file, from_stdin);
    assert_eq!(number(&from_file, "answer"), 3.0);
}

#[test]
fn help_teaches_with_examples() {
    for command in COMMANDS {
        for help in ["--help", "-h"] {
            let run = run(&format!("{command} {help}"));
            assert_eq!((run.code, run.stderr.as_str()), (0, ""));
            assert!(
                run.stdout.contains("Examples:") && run.stdout.contains(&format!("whit {command}")),
                "{}",
                run.stdout
            );
        }
    }
    assert_eq!(
        run("--version").stdout,
        concat!("whit ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// Words as a shell takes them: what is in single quotes is one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (part, text) in line.split('\'').enumerate() {
        let quoted = part % 2 == 1;
        for letter in text.chars() {
            match words.last_mut() {
                Some(word) if quoted || letter != ' ' => word.push(letter),
                _ => words.push(String::new()),
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Every example that uses the bundled data works as printed.
#[test]
fn examples_in_help_work() {
    let home = tempfile::tempdir().expect("a folder");
    let mut tried = 0;
    for command in COMMANDS {
        for line in run(&format!("{command} --help")).stdout.lines() {
            // What whit ships is on trial once among the tests of audits: that takes a minute.
            let elsewhere = [".csv", ".toml", ".sql", ".gz", "audit self", "\u{2026}"];
            if let Some(example) = line
                .trim()
                .strip_prefix("whit ")
                .filter(|example| !elsewhere.iter().any(|file| example.contains(file)))
            {
                let mut command = program();
                command
                    .args(words(example))
                    .current_dir(home.path())
                    .env("WHIT_HOME", home.path());
                let run = finish(command, b"");
                assert_eq!(run.code, 0, "whit {example}: {}", run.stderr);
                tried += 1;
            }
        }
    }
    assert!(tried >= 25, "only {tried} examples were found");
}

#[test]
fn a_reader_that_leaves_early_is_no_panic() {
    let mut command = program();
    command.args("stats histogram --column age --range 0,100 --bins 100000 --epsilon 1".split(' '));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = [0; 10];
    child
        .stdout
        .take()
        .expect("piped")
        .read_exact(&mut first)
        .expect("there is output");
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(
        output.status.code() == Some(0) && !stderr.contains("error"),
        "{stderr}"
    );
}

#[test]
fn no_option_and_no_variable_makes_noise_repeat() {
    for option in [
        "--seed",
        "--random-seed",
        "--rng",
        "--rng-seed",
        "--entropy",
        "--deterministic",
        "--test",
        "--debug",
    ] {
        for value in ["", " 7", "=7"] {
            check_invalid(
                b"",
                &format!("stats count --epsilon 1 {option}{value}"),
                "usage",
            );
        }
        let global = run(&format!("{option} 7 stats count --epsilon 1"));
        assert_eq!(global.code, 1, "{option}");
    }
    let noisy = || {
        let mut command = program();
        command.args(
            "stats histogram - --column x --range 0,1 --bins 40 --epsilon 0.01 --format json"
                .split(' '),
        );
        for variable in [
            "WHIT_SEED",
            "WHIT_RNG",
            "WHIT_TEST",
            "SEED",
            "RNG_SEED",
            "RANDOM_SEED",
            "RUST_SEED",
        ] {
            command.env(variable, "7");
        }
        finish(command, b"x\n").stdout
    };
    let answers: BTreeSet<String> = (0..5).map(|_| noisy()).collect();
    assert_eq!(answers.len(), 5, "noise was repeated");
    for help in ["--help", "stats --help", "stats count --help"] {
        assert!(!run(help).stdout.to_lowercase().contains("seed"), "{help}");
    }
}

#[test]
fn explain_speaks_to_people_and_programs() {
    let explained = answer(&run(
        "explain --epsilon 1 --delta 1e-6 --group 3 --prior 0.01 --format json",
    ));
    assert_eq!(number(&explained, "epsilon"), 3.0);
    assert!(
        number(&explained, "posterior_max") > 0.01 && number(&explained, "right_guesses_max") < 1.0
    );
    let table = run("explain --epsilon 0.1 --prior 0.01");
    assert_eq!(table.code, 0);
    // The seed of this project says 11% for an epsilon of 0.1.
    for text in ["10.6% more", "at most 52.5% of the time", "at most 1.11%"] {
        assert!(table.stdout.contains(text), "{}", table.stdout);
    }
    for arguments in [
        "--epsilon -1",
        "--epsilon NaN",
        "--epsilon 1 --delta 1",
        "--epsilon 1 --prior 2",
        "--epsilon 1 --prior x",
        "--epsilon 1 --group 0",
        "--epsilon 1 --group -1",
        "--epsilon 1 --plot picture.gif",
        "--epsilon 1 --plot no/such/folder/picture.svg",
    ] {
        let refused = run(&format!("explain {arguments} --format json"));
        assert_eq!(refused.code, 1, "{arguments}: {}", refused.stdout);
        assert!(
            refused.stdout.starts_with(r#"{"invalid":"#),
            "{}",
            refused.stdout
        );
    }
    let none_left = run("explain --epsilon 1 --delta 1e-3 --group 1000 --format json");
    assert_eq!(none_left.code, 2, "{}", none_left.stdout);
}

#[test]
fn explain_draws() {
    for (name, start) in [
        ("region.svg", &b"<svg"[..]),
        ("region.png", &b"\x89PNG"[..]),
    ] {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = program();
        command
            .args(["explain", "--epsilon", "1", "--group", "2", "--plot"])
            .arg(&path);
        assert_eq!(finish(command, b"").code, 0);
        assert!(
            fs::read(&path).expect("it was drawn").starts_with(start),
            "{name}"
        );
    }
}
