//! `whit predict`: what a trained model says of the rows of a file.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use whit::Failure;
use whit::session::is_same_file;
use whit_learn::predict::{Examples, Predictor, Said, accuracy};

use crate::train_result::write_named;
use crate::{Format, Print, catalogued, sheet, table};

/// So many rows are shown to people.
const SHOWN_MAX: usize = 20;
/// What a student of teachers says is in this file.
const STUDENT: &str = "student.csv";
/// Digits of probabilities.
const DIGITS: usize = 6;

/// Applies a model that whit train has left in a folder to the rows of a file.
///
/// The file is of the form of the training data: a CSV or Parquet file with the same columns, by name and in any order (others are not looked at), or an IDX or npy file of the
/// same shape. It is normalised by the constants of the model's card. Its label may be there or not.
///
/// The model was released, and to use it costs no budget. What it says of a row is about that row: keep predictions about private rows as you keep the rows. A file that is a
/// private table is refused: by whit.toml in its folder or above it, and by the catalog that --catalog names.
///
/// If the file has labels, the accuracy is shown, as it is and without noise: the file must be public, or nobody's but yours. An accuracy on the training data is a question
/// about them that nobody has paid for.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder that whit train has written
    #[arg(value_name = "MODEL_FOLDER")]
    model: PathBuf,
    /// The rows: a file of the form of the training data, with labels or without; pictures in folders of classes, in one folder, or one picture. Pictures are told in order
    /// of their names, which stand beside their predictions
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// The labels of an IDX or npy file; in a table they are a column
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// A catalog whose private tables are refused, too, beside whit.toml in the folder of the file or above it
    #[arg(long, value_name = "WHIT.TOML")]
    catalog: Option<PathBuf>,
    /// Where to write the predictions, which is nothing that is read for them; else they are printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  whit predict digits --data new-images-idx3-ubyte.gz
      The classes and their probabilities, for people: the first rows.
  whit predict income --data people.csv --format csv
      All rows, as CSV: the prediction; of networks its probability, too, and that of each class.
  whit predict income --data people.csv --out predictions.csv
  whit predict income --data people.csv --out predictions.json --format json";

pub(crate) fn run(arguments: Arguments, print: Print) -> Result<String, Failure> {
    let Arguments {
        model,
        data,
        labels,
        catalog,
        out,
    } = &arguments;
    for file in [Some(data), labels.as_ref()].into_iter().flatten() {
        if let Some(found) = catalogued::protects(file, catalog.as_deref())? {
            return Err(Failure::refused(
                "predict_private",
                &format!(
                    "the file {file:?} is the private table {} of a catalog, and predictions would tell about its rows",
                    found.table
                ),
                "give rows that no catalog protects",
            ));
        }
    }
    if let Some(out) = out {
        spares_inputs(out, &arguments)?;
    }
    let predictor = read(model)?;
    let Examples {
        rows,
        labelled,
        names,
    } = predictor.load(data, labels.as_deref())?;
    let answers: Vec<_> = (0..rows.rows())
        .map(|row| rows.example(row).map(|example| example.answer))
        .collect();
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let said = predictor.predict(rows, threads)?;
    let found = Found {
        predictor: &predictor,
        accuracy: accuracy(&said, &answers).filter(|_| labelled),
        names,
        said,
    };
    if let Some(accuracy) = found.accuracy
        && print != Print::Json
    {
        // Talk that nobody hears is no reason to stop.
        let _ = writeln!(
            std::io::stderr(),
            "accuracy {accuracy:.4} on these {} rows, without noise: show it only if they are public or your own",
            found.said.len()
        );
    }
    match (out, print) {
        (None, Print::Csv) => Ok(found.csv()),
        (None, Print::Json) => Ok(found.json().to_string()),
        (None, Print::Table) => Ok(found.table()),
        (Some(out), Print::Json) => {
            write_named(out, format!("{}\n", found.json()).as_bytes())?;
            Ok(found.summary(out, Format::Json))
        }
        (Some(out), _) => {
            write_named(out, (found.csv() + "\n").as_bytes())?;
            Ok(found.summary(out, Format::Table))
        }
    }
}

/// Refuses a place for predictions where something stands that was read for them, or that a catalog protects.
fn spares_inputs(out: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments {
        model,
        data,
        labels,
        catalog,
        ..
    } = arguments;
    let refused = |what: &str| {
        Err(Failure::refused(
            "out_is_input",
            &format!("{out:?} is {what}, and predictions would be written over it"),
            "give --out the name of a file that is not there yet, or that holds earlier predictions and lies elsewhere",
        ))
    };
    let inputs = [
        (Some(data), "the data"),
        (labels.as_ref(), "the file of the labels"),
        (catalog.as_ref(), "the catalog"),
    ];
    for (input, what) in inputs {
        if input.is_some_and(|input| is_same_file(input, out)) {
            return refused(what);
        }
    }
    // What is not there yet has no such path.
    let lies_in = |folder: &Path| match (out.canonicalize(), folder.canonicalize()) {
        (Ok(out), Ok(folder)) => out.starts_with(folder),
        _ => false,
    };
    if lies_in(model) {
        return refused("a file in the folder of the model");
    }
    if data.is_dir() && lies_in(data) {
        return refused("a file in the folder of the data");
    }
    match catalogued::in_the_way(out, catalog.as_deref())? {
        Some(what) => refused(&what),
        None => Ok(()),
    }
}

/// The model of a folder, of whatever kind.
fn read(folder: &Path) -> Result<Predictor, Failure> {
    let there = |name: &str| folder.join(name).exists();
    if there("card.json") {
        let (card, weights) = (
            text(folder, "card.json")?,
            bytes(folder, "model.safetensors")?,
        );
        return Ok(Predictor::network(&card, &weights)?);
    }
    if there("model.json") {
        let (model, taken) = (text(folder, "model.json")?, text(folder, "inputs.json")?);
        return Ok(Predictor::classical(&model, &taken)?);
    }
    if there(STUDENT) {
        return Err(Failure::invalid(
            "no_model",
            &format!(
                "the folder {folder:?} holds a student of whit pate train, which is not applied to other rows"
            ),
            &format!(
                "take what it says of the public examples from {STUDENT}; for other rows, put them among [public] before the run"
            ),
        ));
    }
    Err(Failure::invalid(
        "no_model",
        &format!("the folder {folder:?} holds no model: neither card.json nor model.json is there"),
        "give the folder that whit train has written, such as the plan's name without its ending; a run that was stopped has no model yet",
    ))
}

#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn bytes(folder: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| {
        Failure::invalid(
            "model_not_read",
            &format!("{path:?} cannot be read: {error}"),
            "give the whole folder that whit train has written",
        )
    })
}

fn text(folder: &Path, name: &str) -> Result<String, Failure> {
    String::from_utf8(bytes(folder, name)?).map_err(|_| {
        Failure::invalid(
            "model_not_read",
            &format!("{:?} is no text", folder.join(name)),
            "give the folder as whit train has written it",
        )
    })
}

/// What a model said of all rows.
struct Found<'a> {
    predictor: &'a Predictor,
    said: Vec<Said>,
    /// Of pictures, the names of their files.
    names: Option<Vec<String>>,
    accuracy: Option<f64>,
}

impl Found<'_> {
    /// The names of columns: how many there are follows from the model, and from a row of components.
    fn header(&self) -> Vec<String> {
        let file = self.names.iter().map(|_| "file".to_owned());
        file.chain(self.header_said()).collect()
    }

    fn header_said(&self) -> Vec<String> {
        let has_shares = |said: &Said| matches!(said, Said::Class(_, Some(_)));
        let places = self.said.iter().find_map(|said| match said {
            Said::Place(place) => Some(place.len()),
            _ => None,
        });
        if let Some(places) = places {
            return (1..=places).map(|at| format!("component_{at}")).collect();
        }
        let mut header = vec!["prediction".to_owned()];
        if let Some(classes) = self.predictor.classes()
            && self.said.iter().any(has_shares)
        {
            header.push("probability".into());
            let name = |class| format!("p_{}", self.predictor.class_name(class));
            header.extend((0..classes).map(name));
        }
        header
    }

    /// The cells of each row.
    fn rows(&self, width: usize) -> impl Iterator<Item = Vec<String>> {
        self.said.iter().enumerate().map(move |(row, said)| {
            let name = self.names.as_ref().and_then(|names| names.get(row));
            let mut cells: Vec<String> = name.cloned().into_iter().collect();
            cells.extend(self.cells(said, width - cells.len()));
            cells
        })
    }

    /// What was said, in cells: quoted where it is text.
    fn cells(&self, said: &Said, width: usize) -> Vec<String> {
        let share = |share: &f64| format!("{share:.DIGITS$}");
        match said {
            Said::Class(class, shares) => {
                let mut cells = vec![self.predictor.class_name(*class)];
                if let Some(shares) = shares {
                    cells.extend(shares.get(*class as usize).map(share));
                    cells.extend(shares.iter().map(share));
                }
                cells
            }
            Said::Number(number) => vec![number.to_string()],
            Said::Place(place) => place.iter().map(f64::to_string).collect(),
            _ => vec![String::new(); width],
        }
    }

    fn csv(&self) -> String {
        let header = self.header();
        let quoted = |cells: &[String]| {
            let cells: Vec<_> = cells.iter().map(|cell| sheet::quoted(cell)).collect();
            cells.join(",")
        };
        let mut lines = vec![quoted(&header)];
        lines.extend(self.rows(header.len()).map(|cells| quoted(&cells)));
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let said = |said: &Said| match said {
            Said::Class(class, shares) => {
                let mut row = json!({ "prediction": self.predictor.class_name(*class) });
                if let Some(shares) = shares {
                    row["probabilities"] = json!(shares);
                }
                row
            }
            Said::Number(number) => json!({ "prediction": number }),
            Said::Place(place) => json!({ "prediction": place }),
            _ => json!({ "prediction": null }),
        };
        let each = |(row, of): (usize, &Said)| {
            let mut told = said(of);
            if let Some(name) = self.names.as_ref().and_then(|names| names.get(row)) {
                told["file"] = json!(name);
            }
            told
        };
        let classes = self.predictor.classes();
        let names = classes.map(|count| {
            let names = (0..count).map(|class| self.predictor.class_name(class));
            names.collect::<Vec<_>>()
        });
        json!({
            "classes": names,
            "rows": self.said.iter().enumerate().map(each).collect::<Vec<_>>(),
            "accuracy": self.accuracy,
        })
    }

    /// The first rows, in columns.
    fn table(&self) -> String {
        let header = self.header();
        let rows = self.rows(header.len()).take(SHOWN_MAX);
        let all: Vec<Vec<String>> = std::iter::once(header.clone()).chain(rows).collect();
        let width = |column: usize| {
            let cells = all.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..header.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths);
            let cells: Vec<_> = cells
                .map(|(cell, width)| format!("{:width$}", sheet::printable(cell)))
                .collect();
            cells.join("  ").trim_end().to_owned()
        };
        let mut lines: Vec<String> = all.iter().map(line).collect();
        if self.said.len() > SHOWN_MAX {
            lines.push(format!(
                "and {} more rows; --format csv prints all, --out FILE writes them",
                self.said.len() - SHOWN_MAX
            ));
        }
        lines.join("\n")
    }

    fn summary(&self, out: &Path, format: Format) -> String {
        let out = out.display().to_string();
        match format {
            Format::Json => {
                json!({ "out": out, "rows": self.said.len(), "accuracy": self.accuracy })
                    .to_string()
            }
            Format::Table => {
                let mut lines = vec![
                    ("rows".to_owned(), self.said.len().to_string()),
                    ("written to".to_owned(), out),
                ];
                let accuracy = self.accuracy.map(|accuracy| format!("{accuracy:.4}"));
                lines.extend(accuracy.map(|accuracy| ("accuracy".to_owned(), accuracy)));
                table::lines(&lines)
            }
        }
    }
}
