//! `whit stats`: text becomes a request, a file becomes a reader, an answer becomes text.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use whit::stats::{Answer, BINS_DEFAULT, NoiseKind, Plan, Request, Statistic};
use whit::{Bounds, Failure, Neighbours, OsEntropy};

use crate::progress::Progress;
use crate::{Format, census, table};

/// Count, sum, mean and histogram of a CSV file.
///
/// The file's first line names its columns. Without a file, the bundled census data is used: 32,561 people with columns
/// age, workclass, fnlwgt, education, education_num, marital_status, occupation, relationship, race, sex, capital_gain,
/// capital_loss, hours_per_week, native_country and income.
///
/// Columns are separated by commas, and cells that hold commas, quotes or line ends must be quoted. The first line is public. A cell
/// that is no number (empty, text, 1,000 or $5) is left out of sums, means and histograms; values beyond the range, infinite ones
/// too, count as its end. With --unit, rows without a unit are left out. Answers may be negative: that is the noise.
///
/// Nothing is recorded yet: if you ask again about the same people, the charges add up.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    statistic: Subcommands,
}

const EXAMPLES: &str = "\
Examples:
  whit stats count --epsilon 1
      How many rows there are.
  whit stats mean --column age --range 0,120 --epsilon 0.5
      The mean age. The range is what ages can be, not what they are.
  whit stats histogram --column hours_per_week --range 0,100 --bins 5 --epsilon 1
      Five counts, for one charge.
  whit stats sum visits.csv --column cost --range 0,500 --epsilon 1 --unit patient --rows-per-unit 4
      Protects patients and not just visits: at most 4 visits of each are used.";

#[derive(Subcommand)]
enum Subcommands {
    /// How many rows there are, or how many have something in a column
    #[command(after_help = COUNT_EXAMPLES)]
    Count(CountArguments),
    /// The sum of a column's values
    #[command(after_help = SUM_EXAMPLES)]
    Sum(ValueArguments),
    /// The mean of a column's values
    #[command(after_help = MEAN_EXAMPLES)]
    Mean(ValueArguments),
    /// How many of a column's values fall in each of several bins
    #[command(after_help = HISTOGRAM_EXAMPLES)]
    Histogram(HistogramArguments),
}

const COUNT_EXAMPLES: &str = "\
Examples:
  whit stats count --epsilon 1
  whit stats count people.csv --column email --epsilon 0.1
      How many rows have an email.
  whit stats count visits.csv --epsilon 1 --unit patient --rows-per-unit 4
      How many visits, at most 4 of each patient. With 1: how many patients.";

const SUM_EXAMPLES: &str = "\
Examples:
  whit stats sum --column hours_per_week --range 0,100 --epsilon 1
  whit stats sum accounts.csv --column balance --range -5000,5000 --epsilon 1 --format json
  cat costs.csv | whit stats sum - --column cost --range 0,500 --epsilon 1";

const MEAN_EXAMPLES: &str = "\
Examples:
  whit stats mean --column age --range 0,120 --epsilon 0.5
  whit stats mean --column age --range 0,120 --epsilon 0.5 --mechanism gaussian --delta 1e-6
  whit stats mean people.csv --column age --range 0,120 --epsilon 0.5 --relation replace
      The number of rows counts as public. A cell without a number stands for the middle of the range.";

const HISTOGRAM_EXAMPLES: &str = "\
Examples:
  whit stats histogram --column age --range 15,95 --bins 8 --epsilon 1
  whit stats histogram people.csv --column age --range 0,120 --epsilon 1 --format json";

#[derive(Args)]
struct CountArguments {
    /// Count only rows that have something in this column
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Args)]
struct ValueArguments {
    /// The column that holds the values; a cell that is no number is left out
    #[arg(long, value_name = "COLUMN")]
    column: String,
    /// The range that values can have, never taken from the data; others are moved to its ends
    #[arg(long, value_name = "LOWER,UPPER", allow_hyphen_values = true)]
    range: String,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Args)]
struct HistogramArguments {
    /// How many bins of equal width the range is cut into
    #[arg(long, value_name = "N", default_value_t = BINS_DEFAULT.to_string(), allow_hyphen_values = true)]
    bins: String,
    #[command(flatten)]
    values: ValueArguments,
}

/// Numbers arrive as text, so that what is wrong with them is said in the words of the units.
#[derive(Args)]
struct CommonArguments {
    /// A CSV file; - is standard input, nothing is the bundled census data
    #[arg(value_name = "FILE.csv")]
    file: Option<PathBuf>,
    /// What the answer may cost: 0.1 protects strongly, 1 is usual, 10 protects weakly
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: String,
    /// For gaussian noise: a probability far below one in the number of people, such as 1e-6
    #[arg(
        long,
        value_name = "DELTA",
        default_value = "0",
        allow_hyphen_values = true
    )]
    delta: String,
    /// Which noise to add
    #[arg(long, value_enum, default_value_t = Mechanism::Laplace)]
    mechanism: Mechanism,
    /// The column that names whom a row belongs to; without it each row is protected alone
    #[arg(long, value_name = "COLUMN")]
    unit: Option<String>,
    /// How many rows of one unit are used at most, the first in the file; needed with --unit
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    rows_per_unit: Option<String>,
    /// What is hidden: whether a unit is there at all, or only what it says
    #[arg(long, value_enum, default_value_t = Relation::AddRemove)]
    relation: Relation,
    /// How often the interval covers the truth, at least; in a histogram, for each bin on its own
    #[arg(
        long,
        value_name = "PROBABILITY",
        default_value = "0.95",
        allow_hyphen_values = true
    )]
    confidence: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mechanism {
    /// No delta, the better choice for single numbers
    Laplace,
    /// Needs --delta; thinner tails
    Gaussian,
}

#[derive(Clone, Copy, ValueEnum)]
enum Relation {
    /// A unit is there or not; the number of units is secret
    AddRemove,
    /// A unit says one thing or another; the number of units is public
    Replace,
}

/// Everything that can be refused is refused before a file is opened.
pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let (request, file) = arguments.parse()?;
    let plan = Plan::new(request)?;
    if file.is_none() && format == Format::Table {
        // Programs read which data it is in the answer. Talk that nobody hears is no reason to stop.
        let _ = writeln!(
            io::stderr(),
            "No file was given, so this is the bundled census data: {}.",
            census::CREDIT
        );
    }
    let answer = plan.execute(open(file.as_deref())?, &mut OsEntropy::new())?;
    Ok(match format {
        Format::Table => table::render(&answer),
        Format::Json => {
            let data = match &file {
                None => "bundled census",
                Some(path) if path == Path::new("-") => "standard input",
                Some(_) => "file",
            };
            let answer = &answer;
            serde_json::to_string(&Printed { answer, data }).expect("an answer is plain data")
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn open(file: Option<&Path>) -> Result<Box<dyn Read>, Failure> {
    let Some(path) = file else {
        return Ok(Box::new(census::open()));
    };
    if path == Path::new("-") {
        return Ok(Box::new(Progress::new(io::stdin().lock(), None)));
    }
    let file = File::open(path).map_err(|error| unreadable(path, error.kind()))?;
    let metadata = file.metadata().ok();
    if metadata.as_ref().is_some_and(|metadata| metadata.is_dir()) {
        return Err(unreadable(path, io::ErrorKind::IsADirectory));
    }
    Ok(Box::new(Progress::new(
        file,
        metadata.map(|metadata| metadata.len()),
    )))
}

fn unreadable(path: &Path, kind: io::ErrorKind) -> Failure {
    let why = match kind {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
        other => other.to_string(),
    };
    Failure::invalid(
        "unreadable_file",
        &format!("the file {path:?} cannot be read: {why}"),
        "give the path of a CSV file that you may read, or none for the bundled data",
    )
}

/// An answer, and which data it is about.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    data: &'a str,
}

impl Arguments {
    fn parse(self) -> Result<(Request, Option<PathBuf>), Failure> {
        match self.statistic {
            Subcommands::Count(CountArguments { column, common }) => {
                let mut request = common.request(Statistic::Count)?;
                request.column = column;
                Ok((request, common.file))
            }
            Subcommands::Sum(values) => values.parse(Statistic::Sum),
            Subcommands::Mean(values) => values.parse(Statistic::Mean),
            Subcommands::Histogram(HistogramArguments { bins, values }) => {
                let bins = whole_number("the number of bins", &bins)?;
                values.parse(Statistic::Histogram { bins })
            }
        }
    }
}

impl ValueArguments {
    fn parse(self, statistic: Statistic) -> Result<(Request, Option<PathBuf>), Failure> {
        let mut request = self.common.request(statistic)?;
        request.column = Some(self.column);
        request.range = Some(range(&self.range)?);
        Ok((request, self.common.file))
    }
}

impl CommonArguments {
    fn request(&self, statistic: Statistic) -> Result<Request, Failure> {
        let mut request = Request::new(statistic, self.epsilon.parse()?);
        request.delta = self.delta.parse()?;
        request.confidence = self.confidence.parse()?;
        request.mechanism = match self.mechanism {
            Mechanism::Laplace => NoiseKind::Laplace,
            Mechanism::Gaussian => NoiseKind::Gaussian,
        };
        request.relation = match self.relation {
            Relation::AddRemove => Neighbours::AddRemove,
            Relation::Replace => Neighbours::ReplaceOne,
        };
        request.unit = self.unit.clone();
        let rows_per_unit = self.rows_per_unit.as_deref();
        request.rows_per_unit = rows_per_unit
            .map(|text| whole_number("the number of rows per unit", text))
            .transpose()?;
        Ok(request)
    }
}

fn whole_number(what: &str, text: &str) -> Result<u32, Failure> {
    text.trim().parse().map_err(|_| {
        let reason = format!("{what} is not a whole number below 2^32");
        Failure::invalid("not_a_number", &reason, "write a whole number such as 10")
    })
}

fn range(text: &str) -> Result<Bounds, Failure> {
    let ends = text.split_once(',').and_then(|(lower, upper)| {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        number(lower).zip(number(upper))
    });
    match ends {
        Some((lower, upper)) => Ok(Bounds::new(lower, upper)?),
        None => {
            let suggestion =
                "write the lower and the upper end, such as --range 0,120 or --range -5,5";
            Err(Failure::invalid(
                "not_a_range",
                "the range is not two numbers with a comma between them",
                suggestion,
            ))
        }
    }
}
