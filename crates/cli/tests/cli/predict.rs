//! `whit predict`: what a model says of rows is what it said in training, whatever the order of columns and whether or not labels are there.

use std::path::Path;

use tempfile::TempDir;

use super::*;

/// Numbers far from zero, a column of text, and a column that is of no use.
fn rows(count: usize, order: &[&str]) -> String {
    let mut text = order.join(",") + "\n";
    for row in 0..count {
        let (age, hue) = (20 + row * 37 % 60, ["red", "blue"][row * 13 % 2]);
        let cell = |name: &&str| match *name {
            "age" => age.to_string(),
            "hue" => hue.to_owned(),
            "old" => ["no", "yes"][usize::from(age > 50)].to_owned(),
            _ => format!("x{row}"),
        };
        let cells: Vec<String> = order.iter().map(cell).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

const DATA: &str = "path = 'train.csv'\nlabel = 'old'\nclasses = ['no', 'yes']\ncolumns = ['age', 'hue']\ncategories = { hue = ['red', 'blue'] }\n";
const NETWORK: &str = "[model]\nkind = 'logistic'\n[plan]\nrate = 0.2\nsteps = 60\nclip = 1.0\nnoise_multiplier = 0.5\ndelta = 1e-5\n[optimizer]\nrate = 2.0\n";
const SCALED: &str = "mean = [50, 0, 0]\nstd = [20, 1, 1]\n";
const FOREST: &str =
    "[bounds]\nage = [0, 100]\n[model]\nkind = 'forest'\n[plan]\nepsilon = 4.0\ndelta = 1e-6\n";

fn folder(plan: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("writable");
    };
    write("train.csv", &rows(2000, &["id", "age", "hue", "old"]));
    write("same.csv", &rows(300, &["old", "hue", "age"]));
    write("bare.csv", &rows(300, &["hue", "age"]));
    write("plan.toml", plan);
    folder
}

fn within(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = program();
    command.args(arguments).current_dir(folder);
    finish(command, b"")
}

fn network() -> String {
    let test = DATA.replace("train.csv", "same.csv");
    format!("[data]\n{DATA}{SCALED}n_public = 2000\n[test]\n{test}{SCALED}{NETWORK}")
}

#[test]
fn a_network_says_of_rows_what_its_test_has_shown() {
    let folder = folder(&network());
    let folder = folder.path();
    let trained = answer(&within(folder, &["train", "plan.toml", "--format", "json"]));
    let accuracy = number(&trained["test"], "accuracy");
    assert!(accuracy > 0.8, "{trained}");
    let found = answer(&within(
        folder,
        &["predict", "plan", "--data", "same.csv", "--format", "json"],
    ));
    assert_eq!(number(&found, "accuracy"), accuracy);
    assert_eq!(found["classes"], serde_json::json!(["no", "yes"]));
    for row in found["rows"].as_array().expect("a list") {
        let shares: Vec<f64> =
            serde_json::from_value(row["probabilities"].clone()).expect("numbers");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let said = row["prediction"] == "yes";
        assert_eq!(said, shares[1] > shares[0], "{row}");
    }
    // Without labels the same is said, and no accuracy.
    let bare = answer(&within(
        folder,
        &["predict", "plan", "--data", "bare.csv", "--format", "json"],
    ));
    assert_eq!(
        (&bare["rows"], &bare["accuracy"]),
        (&found["rows"], &Value::Null)
    );
    // As CSV: a header and a row for each; the accuracy is talk, with a warning.
    let csv = within(
        folder,
        &["predict", "plan", "--data", "same.csv", "--format", "csv"],
    );
    assert_eq!((csv.code, csv.stdout.lines().count()), (0, 301));
    assert!(
        csv.stdout
            .starts_with("prediction,probability,p_no,p_yes\n"),
        "{}",
        csv.stdout
    );
    assert!(
        csv.stderr.contains("only if they are public or your own"),
        "{}",
        csv.stderr
    );
    let people = within(
        folder,
        &["predict", "plan", "--data", "bare.csv", "--out", "said.csv"],
    );
    assert_eq!(
        (people.code, people.stderr.as_str()),
        (0, ""),
        "{}",
        people.stdout
    );
    let said = fs::read_to_string(folder.join("said.csv")).expect("written");
    assert_eq!(said, csv.stdout);
    let people = within(folder, &["predict", "plan", "--data", "bare.csv"]);
    assert!(
        people.stdout.contains("and 280 more rows"),
        "{}",
        people.stdout
    );
    // The card has all that it takes, for people and for programs.
    let card = fs::read_to_string(folder.join("plan/card.md")).expect("written");
    for part in [
        "| columns, in order | age, hue |",
        "hue: red, blue",
        "mean \\[50.0, 0.0, 0.0\\], std \\[20.0, 1.0, 1.0\\]",
    ] {
        assert!(card.contains(part), "{part:?} is not in\n{card}");
    }
    let card = fs::read_to_string(folder.join("plan/card.json")).expect("written");
    let card: Value = serde_json::from_str(&card).expect("JSON");
    assert_eq!(card["inputs"]["columns"], serde_json::json!(["age", "hue"]));
    assert_eq!(card["inputs"]["mean"], serde_json::json!([50.0, 0.0, 0.0]));
    let onnx = fs::read(folder.join("plan/model.onnx")).expect("written");
    let text = String::from_utf8_lossy(&onnx);
    for part in ["input.mean", "Sub", "hue=blue", "[\"no\",\"yes\"]"] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_classical_model_is_applied_as_it_was_fitted() {
    let test = DATA.replace("train.csv", "same.csv");
    let folder = folder(&format!("[data]\n{DATA}[test]\n{test}{FOREST}"));
    let folder = folder.path();
    let trained = answer(&within(folder, &["train", "plan.toml", "--format", "json"]));
    let found = answer(&within(
        folder,
        &["predict", "plan", "--data", "same.csv", "--format", "json"],
    ));
    assert_eq!(found["accuracy"], trained["test"]["accuracy"]);
    let bare = answer(&within(
        folder,
        &["predict", "plan", "--data", "bare.csv", "--format", "json"],
    ));
    assert_eq!(bare["rows"], found["rows"]);
}

/// Clusters are none of the classes that the data have: they were once told by names of classes, with an accuracy.
#[test]
fn clusters_have_numbers() {
    let data = DATA
        .replace(", 'hue']", "]")
        .replace("categories = { hue = ['red', 'blue'] }\n", "");
    let rest = "[bounds]\nage = [0, 100]\n[model]\nkind = 'k_means'\nclusters = 3\n[plan]\nepsilon = 4.0\ndelta = 1e-6\n";
    let folder = folder(&format!("[data]\n{data}{rest}"));
    let folder = folder.path();
    answer(&within(folder, &["train", "plan.toml", "--format", "json"]));
    let found = within(
        folder,
        &["predict", "plan", "--data", "same.csv", "--format", "csv"],
    );
    assert_eq!(found.code, 0, "{}", found.stderr);
    let mut lines = found.stdout.lines();
    assert_eq!(lines.next(), Some("prediction"));
    assert!(
        lines.all(|line| ["0", "1", "2"].contains(&line)),
        "{}",
        found.stdout
    );
    assert!(!found.stderr.contains("accuracy"), "{}", found.stderr);
}

#[test]
fn what_cannot_be_predicted_is_told() {
    let folder = folder(&network());
    let folder = folder.path();
    answer(&within(folder, &["train", "plan.toml", "--format", "json"]));
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("writable");
    write("unnamed.csv", &format!("{CANARY},52,red\na,3,blue\n"));
    write("text.csv", "age,hue\n3,green\n");
    let code = |data: &str, model: &str, exit: i32| {
        let run = within(
            folder,
            &["predict", model, "--data", data, "--format", "json"],
        );
        assert_eq!(run.code, exit, "{}", run.stdout);
        assert!(!run.stdout.contains(CANARY), "{}", run.stdout);
        let found: Value = serde_json::from_str(&run.stdout).expect("JSON");
        found
            .as_object()
            .expect("one")
            .values()
            .next()
            .expect("one")["code"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(code("unnamed.csv", "plan", 1), "data_column");
    assert_eq!(code("text.csv", "plan", 1), "row_unknown_category");
    assert_eq!(code("gone.csv", "plan", 1), "data_unreadable");
    assert_eq!(code("bare.csv", ".", 1), "no_model");
    fs::create_dir(folder.join("student")).expect("writable");
    write("student/student.csv", "example,class\n");
    let student = within(folder, &["predict", "student", "--data", "bare.csv"]);
    assert!(student.stderr.contains("student.csv"), "{}", student.stderr);
    // Weights of another network.
    let weights = folder.join("plan/model.safetensors");
    let kept = fs::read(&weights).expect("written");
    fs::write(&weights, &kept[..kept.len() - 4]).expect("writable");
    assert_eq!(code("bare.csv", "plan", 1), "plan_word");
    fs::write(&weights, kept).expect("writable");
    // What a catalog protects is not told row by row.
    write(
        "whit.toml",
        "[dataset]\nid = 'a'\n[budget]\nepsilon = 1.0\n[table.t]\nsource = 'train.csv'\nunit = 'id'\n",
    );
    assert_eq!(code("train.csv", "plan", 2), "predict_private");
    // A catalog of another name protects as well, if it is named.
    fs::rename(folder.join("whit.toml"), folder.join("shop.toml")).expect("ours");
    let by_name = [
        "predict",
        "plan",
        "--data",
        "train.csv",
        "--catalog",
        "shop.toml",
    ];
    assert_eq!(within(folder, &by_name).code, 2);
}

/// A model of sheets takes a sheet, and pictures of the same shape in other forms.
#[test]
fn a_model_of_sheets_takes_sheets_and_arrays() {
    let folder = folder("");
    let folder = folder.path();
    // Eight pictures of two by two, of which the odd ones are bright.
    let bright = |row: u32| 200 * (row % 2);
    let pixels: Vec<u8> = (0..8)
        .flat_map(|row| (0..4).map(move |column| (bright(row) + 3 * column + row) as u8))
        .collect();
    let mut sheet = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut sheet);
    image::ImageEncoder::write_image(encoder, &pixels, 4, 8, image::ColorType::L8)
        .expect("a sheet");
    fs::write(folder.join("a.png"), &sheet).expect("writable");
    fs::write(folder.join("y.json"), "[0,1,0,1,0,1,0,1]").expect("writable");
    let mut idx = vec![0, 0, 8, 3, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 2];
    idx.extend(&pixels);
    fs::write(folder.join("a-idx3-ubyte"), idx).expect("writable");
    let plan = "[data]\npath = '.'\nformat = 'sheets'\nsheets = ['a.png']\nlabel = 'y.json'\nclasses = 2\nshape = [1, 2, 2]\nn_public = 8\n\
        [model]\nkind = 'logistic'\n[plan]\nrate = 0.5\nsteps = 5\nclip = 1.0\nnoise_multiplier = 0.5\ndelta = 1e-5\n[optimizer]\nrate = 2.0\n";
    fs::write(folder.join("plan.toml"), plan).expect("writable");
    answer(&within(folder, &["train", "plan.toml", "--format", "json"]));
    let of = |data: &str| {
        let run = within(
            folder,
            &["predict", "plan", "--data", data, "--format", "json"],
        );
        answer(&run)["rows"].clone()
    };
    let rows = of("a.png");
    assert_eq!(rows.as_array().map(Vec::len), Some(8));
    assert_eq!(rows, of("a-idx3-ubyte"));
    // Where labels lie is on no card.
    let card = fs::read_to_string(folder.join("plan/card.json")).expect("written");
    assert!(!card.contains("y.json"), "{card}");
}

/// Two networks may have the same layers and have learnt different things: the guarantee on the card of one says nothing about the other.
#[test]
fn weights_of_another_run_are_refused_beside_a_card() {
    let folder = folder(&network());
    let folder = folder.path();
    let other = network().replace("steps = 60", "steps = 61");
    fs::write(folder.join("other.toml"), other).expect("writable");
    for plan in ["plan.toml", "other.toml"] {
        assert_eq!(within(folder, &["train", plan]).code, 0, "{plan}");
    }
    let predict = || within(folder, &["predict", "plan", "--data", "bare.csv"]);
    assert_eq!(predict().code, 0);
    let weights = |run: &str| folder.join(run).join("model.safetensors");
    let own = fs::read(weights("plan")).expect("written");
    fs::copy(weights("other"), weights("plan")).expect("copied");
    let refused = predict();
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("of another run than card.json"),
        "{}",
        refused.stderr
    );
    // What another program has written has no such notes, and what it is of is the owner's to know.
    let name = |name: &str| format!("\"{name}\":");
    let mut bare = own.clone();
    for noted in ["plan", "columns"] {
        let (from, to) = (name(noted), name(&"x".repeat(noted.len())));
        let place = bare
            .windows(from.len())
            .position(|part| part == from.as_bytes());
        let place = place.expect("noted");
        bare[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    fs::write(weights("plan"), bare).expect("writable");
    assert_eq!(predict().code, 0);
    fs::write(weights("plan"), own).expect("writable");
    assert_eq!(predict().code, 0);
}

/// Predictions were written over the rows that they were about.
#[test]
fn nothing_that_is_read_is_written_over() {
    let test = DATA.replace("train.csv", "same.csv");
    let folder = folder(&format!("[data]\n{DATA}[test]\n{test}{FOREST}"));
    let folder = folder.path();
    answer(&within(folder, &["train", "plan.toml", "--format", "json"]));
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("writable");
    write(
        "shop.toml",
        "[dataset]\nid = 'a'\n[budget]\nepsilon = 1.0\n[table.t]\nsource = 'train.csv'\nunit = 'id'\n",
    );
    let predict = |out: &str| {
        let arguments = [
            "predict",
            "plan",
            "--data",
            "bare.csv",
            "--catalog",
            "shop.toml",
            "--format",
            "json",
            "--out",
            out,
        ];
        within(folder, &arguments)
    };
    fs::hard_link(folder.join("bare.csv"), folder.join("also.csv")).expect("writable");
    // Whatever they hold: the names are those of a ledger.
    let ledger = ["whit.ledger", "whit.ledger.mark", "whit.ledger-wal"];
    for name in ledger {
        fs::write(folder.join(name), "receipts").expect("writable");
    }
    for out in ledger.into_iter().chain([
        "bare.csv",
        "plan/../bare.csv",
        "also.csv",
        "shop.toml",
        "train.csv",
        "plan/model.json",
        "plan/card.md",
    ]) {
        let before = fs::read(folder.join(out)).expect("there");
        let refused = predict(out);
        assert_eq!(refused.code, 2, "{out}: {}", refused.stdout);
        assert!(
            refused.stdout.contains("\"out_is_input\""),
            "{}",
            refused.stdout
        );
        assert_eq!(fs::read(folder.join(out)).expect("there"), before, "{out}");
    }
    // An earlier answer is replaced, and so is one that a link leads to; the link stays.
    std::os::unix::fs::symlink("said.json", folder.join("link.json")).expect("a link");
    for out in ["said.json", "said.json", "link.json"] {
        if out == "link.json" {
            fs::write(folder.join("said.json"), "").expect("writable");
        }
        assert_eq!(predict(out).code, 0);
    }
    let link = folder.join("link.json").symlink_metadata().expect("there");
    assert!(link.is_symlink());
    // Names that only begin like a ledger's are free.
    assert_eq!(predict("whit.ledger-said.json").code, 0);
    let said = fs::read_to_string(folder.join("said.json")).expect("written");
    let said: Value = serde_json::from_str(&said).expect("whole");
    assert_eq!(said["rows"].as_array().map(Vec::len), Some(300));
}

/// Bright pictures and dark ones, in folders of their classes.
fn pictures(folder: &Path) {
    let picture = |name: &str, grey: u8| {
        let mut bytes = Vec::new();
        let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
        let pixels = [grey, grey + 1, grey + 2, grey];
        image::ImageEncoder::write_image(encoder, &pixels, 2, 2, image::ColorType::L8)
            .expect("a picture");
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, bytes).expect("writable");
    };
    for at in 0..40 {
        picture(&format!("train/dark/{at:02}.png"), at);
        picture(&format!("train/bright/{at:02}.png"), 200 + at);
    }
    picture("new/b.png", 230);
    picture("new/a.png", 10);
}

/// Clusters and components of pictures were fitted, paid for, and could not be applied: nobody knew the folders any more.
#[test]
fn models_of_pictures_tell_which_file_each_row_is_of() {
    let folder = folder("");
    let folder = folder.path();
    pictures(folder);
    let images = "[data]\npath = 'train'\nformat = 'images'\nclasses = ['dark', 'bright']\nshape = [1, 2, 2]\n";
    let rest = "[bounds]\nfeatures = [0, 1]\n[plan]\nepsilon = 50.0\ndelta = 1e-6\n[model]\n";
    let step = "n_public = 80\n[model]\nkind = 'logistic'\n[plan]\nrate = 0.5\nsteps = 40\nclip = 1.0\nnoise_multiplier = 0.5\ndelta = 1e-5\n[optimizer]\nrate = 1.0\n";
    for (model, plan) in [
        ("bayes", format!("{rest}kind = 'naive_bayes'\n")),
        ("means", format!("{rest}kind = 'k_means'\nclusters = 2\n")),
        ("pca", format!("{rest}kind = 'pca'\ncomponents = 1\n")),
        ("steps", step.to_owned()),
    ] {
        let name = format!("{model}.toml");
        fs::write(folder.join(&name), format!("{images}{plan}")).expect("writable");
        let trained = within(folder, &["train", &name]);
        assert_eq!(trained.code, 0, "{}", trained.stderr);
        let of = |data: &str| {
            let run = within(
                folder,
                &["predict", model, "--data", data, "--format", "json"],
            );
            answer(&run)
        };
        let files = |found: &Value| {
            let rows = found["rows"].as_array().expect("a list").iter();
            let files = rows.map(|row| row["file"].as_str().expect("text").to_owned());
            files.collect::<Vec<_>>()
        };
        let learns = matches!(model, "bayes" | "steps");
        let all = of("train");
        let named = files(&all);
        assert_eq!((named.len(), &*named[0]), (80, "dark/00.png"), "{model}");
        assert_eq!(named[79], "bright/39.png");
        assert_eq!(all["accuracy"].is_number(), learns, "{model}");
        assert_eq!(all["classes"].is_array(), learns, "{model}");
        let new = of("new");
        assert_eq!(files(&new), ["a.png", "b.png"]);
        assert_ne!(
            new["rows"][0]["prediction"], new["rows"][1]["prediction"],
            "{model}"
        );
        assert_eq!(files(&of("new/b.png")), ["b.png"]);
        let run = within(
            folder,
            &["predict", model, "--data", "new", "--format", "csv"],
        );
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines[0].starts_with("file,"), "{}", run.stdout);
        assert!(lines[1].starts_with("a.png,") && lines[2].starts_with("b.png,"));
    }
}
