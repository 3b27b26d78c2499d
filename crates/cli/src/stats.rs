//! `whit stats`: text becomes a request, a file becomes a reader, an answer becomes text.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Subcommand, ValueEnum};
use serde::Serialize;
use whit::session::{Charge, Measured, Remaining, rehearse_statistic};
use whit::stats::{
    Answer, BINS_DEFAULT, CategoryColumn, NoiseKind, Plan, Range, Request, Share, Statistic,
};
use whit::{Bounds, Failure, Neighbours, OsEntropy};

use crate::account::does_not_vanish;
use crate::catalogued::{self, Catalogued};
use crate::place::is_there;
use crate::progress::Progress;
use crate::{Format, census, query, table};

/// Statistics of a CSV file: counts, sums, means, quantiles, tables and more.
///
/// The file's first line names its columns. Without a file, the bundled census data is used: 32,561 people with columns
/// age, workclass, fnlwgt, education, education_num, marital_status, occupation, relationship, race, sex, capital_gain,
/// capital_loss, hours_per_week, native_country and income.
///
/// Columns are separated by commas, and cells that hold commas, quotes or line ends must be quoted. The first line is public. A cell
/// that is no number (empty, text, 1,000 or $5) is left out of all statistics of numbers; values beyond the range, infinite ones
/// too, count as its end. With --unit, rows without a unit are left out. Answers may be negative: that is the noise.
///
/// If no range is known, --range auto finds one: a quarter of epsilon is spent on a search for bounds between powers of two (see
/// whit stats bounds), and the rest on the statistic. If nothing is found, that is the answer, for the whole charge.
///
/// A file that a catalog (whit.toml) names as a private table, by whatever name or link it is given here, is paid from its ledger, and the catalog says whom to protect. Of other
/// files nothing is recorded: if you ask again about the same people, the charges add up.
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
  whit stats median --column hours_per_week --range auto --epsilon 1
      The median of a column of which no range is known.
  whit stats histogram --column hours_per_week --range 0,100 --bins 5 --epsilon 1
      Five counts, for one charge.
  whit stats sum visits.csv --column cost --range 0,500 --epsilon 1 --unit patient --rows-per-unit 4
      Protects patients and not just visits: at most 4 visits of each are used.";

#[derive(Subcommand)]
enum Subcommands {
    /// How many rows there are, or how many have something in a column
    #[command(after_help = COUNT_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Count(CountArguments),
    /// The sum of a column's values
    #[command(after_help = SUM_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Sum(ValueArguments),
    /// The mean of a column's values
    #[command(after_help = MEAN_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Mean(ValueArguments),
    /// The variance of a column's values
    #[command(after_help = VARIANCE_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Variance(ValueArguments),
    /// The standard deviation of a column's values
    #[command(after_help = STDDEV_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Stddev(ValueArguments),
    /// How many of a column's values fall in each of several bins
    #[command(after_help = HISTOGRAM_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Histogram(HistogramArguments),
    /// A value with half of a column's values on either side
    #[command(after_help = MEDIAN_EXAMPLES, mut_arg("mechanism", chooses_number))]
    Median(ValueArguments),
    /// Values below which given shares of a column's values lie
    #[command(after_help = QUANTILE_EXAMPLES, mut_arg("mechanism", chooses_number))]
    Quantile(QuantileArguments),
    /// A range that holds most of a column's values
    #[command(after_help = BOUNDS_EXAMPLES, mut_arg("mechanism", searches))]
    Bounds(ColumnArguments),
    /// The most frequent category of a column
    #[command(after_help = MODE_EXAMPLES, mut_arg("mechanism", chooses_category))]
    Mode(CategoryArguments),
    /// The most frequent categories of a column
    #[command(after_help = TOP_EXAMPLES, mut_arg("mechanism", chooses_category))]
    Top(TopArguments),
    /// How many different units there are, or how many different values a column has
    #[command(after_help = DISTINCT_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Distinct(DistinctArguments),
    /// How many rows there are with each combination of categories of several columns
    #[command(after_help = MARGINALS_EXAMPLES, mut_arg("mechanism", adds_noise))]
    Marginals(MarginalsArguments),
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

const VARIANCE_EXAMPLES: &str = "\
Examples:
  whit stats variance --column age --range 0,120 --epsilon 1
      Of these rows, divided by their number. A third of epsilon each for a sum, for squares and a count.
  whit stats variance --column hours_per_week --range auto --epsilon 2
  whit stats variance people.csv --column age --range 0,120 --epsilon 1 --relation replace
      The number of rows counts as public: half of epsilon for each sum.";

const STDDEV_EXAMPLES: &str = "\
Examples:
  whit stats stddev --column age --range 0,120 --epsilon 1
      The root of the variance, for the same charge.
  whit stats stddev --column age --range 0,120 --epsilon 1 --mechanism gaussian --delta 1e-6
  whit stats stddev visits.csv --column cost --range 0,500 --epsilon 1 --unit who --rows-per-unit 4";

const MEDIAN_EXAMPLES: &str = "\
Examples:
  whit stats median --column age --range 0,120 --epsilon 0.1
  whit stats median --column age --range 0,120,1 --epsilon 0.1
      Ages are whole numbers: fewer values to choose from, and a better choice.
  whit stats median --column hours_per_week --range auto --epsilon 1 --format json
  whit stats median visits.csv --column cost --range 0,500 --epsilon 1 --unit who --rows-per-unit 4

The answer is chosen by how far its rank is off, by the exponential mechanism or, where a step
leaves at most 65,537 values, by permute-and-flip. No interval of values is known without looking
at the data again; instead, the rank error says how many rows lie between the answer and the true
median at most.";

const QUANTILE_EXAMPLES: &str = "\
Examples:
  whit stats quantile --column age --range 0,120 --q 0.9 --epsilon 0.5
  whit stats quantile --column age --range 0,120 --q 0.25,0.5,0.75 --epsilon 1
      Three quantiles, in order, for one charge.
  whit stats quantile people.csv --column income --range auto --q 0.1,0.9 --epsilon 1";

const BOUNDS_EXAMPLES: &str = "\
Examples:
  whit stats bounds --column capital_gain --epsilon 0.5
  whit stats bounds visits.csv --column cost --epsilon 1 --unit patient --rows-per-unit 4

Values are counted in bins that double: 0 to 2^-20 (about a millionth), up to 2^-19, and so on up
to 2^35 (34 billion), and as many below zero; what is larger counts in the last bin. The answer
goes from the first to the last bin with clearly more than noise: if all were empty, one would
pass with probability 10^-6; if none passes, that is relaxed, up to 1%. Values in bins with few
rows may lie outside. If no bin passes, the answer is empty, for the same charge.";

const MODE_EXAMPLES: &str = "\
Examples:
  whit stats mode --column sex --categories Female,Male --epsilon 0.1
  whit stats mode visits.csv --column ward --categories @wards.txt --epsilon 1
      The file wards.txt names one category on each line.

The list is what can stand in the column, never taken from the data. Other values are left out.";

const TOP_EXAMPLES: &str = "\
Examples:
  whit stats top --k 2 --column race --categories White,Black,Other --epsilon 1
  whit stats top visits.csv --k 3 --column ward --categories @wards.txt --epsilon 1
      The file wards.txt names one category on each line.

The list is what can stand in the column, never taken from the data. Other values are left out.
Each of the k choices has an equal part of epsilon; how many rows a category has is not told.";

const DISTINCT_EXAMPLES: &str = "\
Examples:
  whit stats distinct --unit native_country --epsilon 1
      How many countries there are; each of them is protected with all its rows.
  whit stats distinct --column occupation --epsilon 1
      How many occupations there are; each row is protected.
  whit stats distinct visits.csv --column ward --unit patient --values-per-unit 2 --epsilon 1
      How many wards there are, counting the first 2 different ones of each patient.";

const MARGINALS_EXAMPLES: &str = "\
Examples:
  whit stats marginals --columns sex,income --categories 'sex=Female|Male;income=>50K' --epsilon 1
      Two counts, for one charge.
  whit stats marginals visits.csv --columns ward,year --categories @lists.json --epsilon 1
      The file lists.json holds an object: {\"ward\":[\"north\",\"south\"],\"year\":[\"2024\",\"2025\"]}

The lists are what can stand in the columns, never taken from the data. Rows with another value
are left out.";

/// Other mechanisms are read, and refused by name: help lists those that pass.
fn adds_noise(mechanism: Arg) -> Arg {
    let help = "Which noise: laplace (no delta; the better choice for single numbers, and what is taken if nothing is said) or \
                gaussian (needs --delta; thinner tails)";
    mechanism.hide_possible_values(true).help(help)
}

fn searches(mechanism: Arg) -> Arg {
    let help = "Which noise: only laplace, which is what is taken if nothing is said";
    mechanism.hide_possible_values(true).help(help)
}

fn chooses_number(mechanism: Arg) -> Arg {
    let help = "How to choose: exponential or, for one quantile and a range with a step, permute-and-flip, which is better; the \
                best that fits if nothing is said";
    mechanism.hide_possible_values(true).help(help)
}

fn chooses_category(mechanism: Arg) -> Arg {
    let help = "How to choose: only exponential, which is what is taken if nothing is said";
    mechanism.hide_possible_values(true).help(help)
}

#[derive(Args)]
struct CountArguments {
    /// Count only rows that have something in this column
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    #[command(flatten)]
    noise: NoiseArguments,
    #[command(flatten)]
    rows: RowsArguments,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Args)]
struct ColumnArguments {
    /// The column that holds the values; where they must be numbers, a cell that is none is left out
    #[arg(long, value_name = "COLUMN")]
    column: String,
    #[command(flatten)]
    noise: NoiseArguments,
    #[command(flatten)]
    rows: RowsArguments,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Args)]
struct ValueArguments {
    /// The range that values can have, never taken from the data; others are moved to its ends, and rounded to the step if
    /// there is one, such as 1 for whole numbers. auto searches for a range
    #[arg(
        long,
        value_name = "LOWER,UPPER[,STEP]|auto",
        allow_hyphen_values = true
    )]
    range: String,
    #[command(flatten)]
    column: ColumnArguments,
}

#[derive(Args)]
struct QuantileArguments {
    /// One or more shares from 0 to 1, growing, with commas between
    #[arg(long, value_name = "SHARES", allow_hyphen_values = true)]
    q: String,
    #[command(flatten)]
    values: ValueArguments,
}

#[derive(Args)]
struct CategoryArguments {
    /// All categories that count, with commas between, or @ and a file that names one on each line
    #[arg(long, value_name = "LIST|@FILE")]
    categories: String,
    #[command(flatten)]
    column: ColumnArguments,
}

#[derive(Args)]
struct TopArguments {
    /// How many categories to choose
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    k: String,
    #[command(flatten)]
    categories: CategoryArguments,
}

#[derive(Args)]
struct DistinctArguments {
    /// Count this column's different values; without it, the different units
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    /// The column that names whom a row belongs to; without it each row is protected alone
    #[arg(long, value_name = "COLUMN")]
    unit: Option<String>,
    /// How many different values of one unit count at most, the first in the file; needed with --column and --unit
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    values_per_unit: Option<String>,
    #[command(flatten)]
    noise: NoiseArguments,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Args)]
struct MarginalsArguments {
    /// The columns, with commas between
    #[arg(long, value_name = "COLUMNS")]
    columns: String,
    /// All categories that count, as column=one|two;other=three|four, or @ and a JSON file
    #[arg(long, value_name = "LISTS|@FILE")]
    categories: String,
    #[command(flatten)]
    noise: NoiseArguments,
    #[command(flatten)]
    rows: RowsArguments,
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
    /// What is hidden: whether a unit is there at all, or only what it says
    #[arg(long, value_enum, default_value_t = Relation::AddRemove)]
    relation: Relation,
    /// How often the interval covers the truth, at least; of many counts, for each on its own
    #[arg(
        long,
        value_name = "PROBABILITY",
        default_value = "0.95",
        allow_hyphen_values = true
    )]
    confidence: String,
    /// The catalog that names the file; else a whit.toml that names it, in its folder, in this one, or above
    #[arg(long, value_name = "WHIT.TOML")]
    catalog: Option<PathBuf>,
    /// The ledger of a catalogued file; else where the catalog says
    #[arg(long, value_name = "PATH")]
    ledger: Option<PathBuf>,
    /// Who asks, and is charged besides the data set, if the file is catalogued
    #[arg(long, value_name = "NAME")]
    analyst: Option<String>,
}

#[derive(Args)]
struct NoiseArguments {
    /// For gaussian noise: a probability far below one in the number of people, such as 1e-6
    #[arg(
        long,
        value_name = "DELTA",
        default_value = "0",
        allow_hyphen_values = true
    )]
    delta: String,
    /// Which mechanism to use; laplace if it adds noise, the best that fits if it chooses
    #[arg(long, value_enum)]
    mechanism: Option<Mechanism>,
}

#[derive(Args)]
struct RowsArguments {
    /// The column that names whom a row belongs to; without it each row is protected alone
    #[arg(long, value_name = "COLUMN")]
    unit: Option<String>,
    /// How many rows of one unit are used at most, the first in the file; needed with --unit
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    rows_per_unit: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mechanism {
    /// No delta, the better choice for single numbers
    Laplace,
    /// Needs --delta; thinner tails
    Gaussian,
    /// Chooses instead of adding noise: for quantiles and the most frequent categories
    Exponential,
    /// Chooses better: for one quantile, and a range with a step
    PermuteAndFlip,
}

#[derive(Clone, Copy, ValueEnum)]
enum Relation {
    /// A unit is there or not; the number of units is secret
    #[value(alias = "add_remove")]
    AddRemove,
    /// A unit says one thing or another; the number of units is public
    #[value(aliases = ["replace-one", "replace_one"])]
    Replace,
}

/// Where the rows are, and who pays.
struct Source {
    file: Option<PathBuf>,
    catalog: Option<PathBuf>,
    ledger: Option<PathBuf>,
    analyst: Option<String>,
}

/// Everything that can be refused is refused before a file is opened.
pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let (request, source) = arguments.parse()?;
    if let Some(found) = source.catalogued()? {
        return paid(request, source, found, format);
    }
    let plan = Plan::new(request)?;
    let file = source.file;
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
            json(&answer, data, None)
        }
    })
}

impl Source {
    /// The private table that the file is, if a catalog says so.
    fn catalogued(&self) -> Result<Option<Catalogued>, Failure> {
        let (catalog, ledger) = (self.catalog.as_deref(), self.ledger.as_deref());
        let found = match &self.file {
            Some(file) => catalogued::find(file, catalog, ledger)?,
            _ if catalog.is_none() => None,
            _ => {
                return Err(Failure::invalid(
                    "not_in_catalog",
                    "a catalog was given, but no file that could be in it",
                    "give the path of a file that the catalog names, or leave --catalog out",
                ));
            }
        };
        let named = ledger.map(|_| "--ledger");
        let named = named.or(self.analyst.as_ref().map(|_| "--analyst"));
        match named {
            Some(option) if found.is_none() && !self.is_missing() => {
                let data = match &self.file {
                    Some(file) => format!("the file {file:?} is"),
                    None => "the bundled data are".to_owned(),
                };
                Err(catalogued::uncharged(option, &data))
            }
            _ => Ok(found),
        }
    }

    /// Is there no such file? Whoever opens it will say why.
    fn is_missing(&self) -> bool {
        let file = self.file.as_deref();
        file.is_some_and(|file| file != Path::new("-") && !is_there(file))
    }
}

/// A private table is paid from its ledger, and protects whom its catalog says.
fn paid(
    request: Request,
    source: Source,
    found: Catalogued,
    format: Format,
) -> Result<String, Failure> {
    let Catalogued { place, table } = found;
    let (analyst, file) = (source.analyst.as_deref(), source.file.as_deref());
    // A ledger begins with what could be charged, and not with what is refused.
    if !place.has_ledger() {
        let request = request.clone();
        rehearse_statistic(&place.catalog, &place.folder, &table, request, analyst)?;
    }
    let session = place.open()?;
    let rows = || open(file).map_err(|_| whit::Error::Unreadable);
    let measured = session.measure(&table, request, analyst, rows, &mut OsEntropy::new())?;
    Ok(match format {
        Format::Json => json(&measured.answer, "catalogued file", Some(&measured)),
        Format::Table => {
            let mut lines = query::left(&measured.remaining, session.catalog().dataset());
            lines.push(("receipt".into(), measured.receipt.clone()));
            table::render(&measured.answer) + &table::lines(&lines)
        }
    })
}

fn json(answer: &Answer, data: &str, paid: Option<&Measured>) -> String {
    let paid = paid.map(|measured| Paid {
        charge: &measured.charge,
        remaining: &measured.remaining,
        receipt: &measured.receipt,
    });
    let printed = Printed { answer, data, paid };
    serde_json::to_string(&printed).expect("an answer is plain data")
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
    #[serde(flatten)]
    paid: Option<Paid<'a>>,
}

/// What a ledger has to say.
#[derive(Serialize)]
struct Paid<'a> {
    charge: &'a Charge,
    remaining: &'a Remaining,
    receipt: &'a str,
}

impl Arguments {
    fn parse(self) -> Result<(Request, Source), Failure> {
        match self.statistic {
            Subcommands::Count(arguments) => arguments.parse(),
            Subcommands::Sum(values) => values.parse(Statistic::Sum),
            Subcommands::Mean(values) => values.parse(Statistic::Mean),
            Subcommands::Variance(values) => values.parse(Statistic::Variance),
            Subcommands::Stddev(values) => values.parse(Statistic::Stddev),
            Subcommands::Histogram(HistogramArguments { bins, values }) => {
                let bins = crate::whole_number("the number of bins", &bins)?;
                values.parse(Statistic::Histogram { bins })
            }
            Subcommands::Median(values) => values.parse(Statistic::Median),
            Subcommands::Quantile(QuantileArguments { q, values }) => {
                values.parse(Statistic::Quantile { q: shares(&q)? })
            }
            Subcommands::Bounds(column) => column.parse(Statistic::Bounds),
            Subcommands::Mode(arguments) => {
                let categories = categories(&arguments.categories, &arguments.column.common)?;
                arguments.column.parse(Statistic::Mode { categories })
            }
            Subcommands::Top(TopArguments {
                k,
                categories: arguments,
            }) => {
                let k = crate::whole_number("the number of categories to choose", &k)?.into();
                let categories = categories(&arguments.categories, &arguments.column.common)?;
                arguments.column.parse(Statistic::Top { k, categories })
            }
            Subcommands::Distinct(arguments) => arguments.parse(),
            Subcommands::Marginals(arguments) => arguments.parse(),
        }
    }
}

impl CountArguments {
    fn parse(self) -> Result<(Request, Source), Failure> {
        let mut request = self.common.request(Statistic::Count)?;
        request.column = self.column;
        self.noise.add_to(&mut request)?;
        self.rows.add_to(&mut request)?;
        Ok((request, self.common.source()))
    }
}

impl ColumnArguments {
    fn parse(self, statistic: Statistic) -> Result<(Request, Source), Failure> {
        let mut request = self.common.request(statistic)?;
        request.column = Some(self.column);
        self.noise.add_to(&mut request)?;
        self.rows.add_to(&mut request)?;
        Ok((request, self.common.source()))
    }
}

impl ValueArguments {
    fn parse(self, statistic: Statistic) -> Result<(Request, Source), Failure> {
        let (mut request, source) = self.column.parse(statistic)?;
        request.range = Some(range(&self.range)?);
        Ok((request, source))
    }
}

impl DistinctArguments {
    fn parse(self) -> Result<(Request, Source), Failure> {
        let values_per_unit = self.values_per_unit.as_deref();
        let values_per_unit = values_per_unit
            .map(|text| crate::whole_number("the number of values per unit", text))
            .transpose()?;
        let statistic = Statistic::Distinct { values_per_unit };
        let mut request = self.common.request(statistic)?;
        (request.column, request.unit) = (self.column, self.unit);
        self.noise.add_to(&mut request)?;
        Ok((request, self.common.source()))
    }
}

impl MarginalsArguments {
    fn parse(self) -> Result<(Request, Source), Failure> {
        let columns = category_columns(&self.columns, &self.categories, &self.common)?;
        let mut request = self.common.request(Statistic::Marginals { columns })?;
        self.noise.add_to(&mut request)?;
        self.rows.add_to(&mut request)?;
        Ok((request, self.common.source()))
    }
}

impl CommonArguments {
    fn source(self) -> Source {
        Source {
            file: self.file,
            catalog: self.catalog,
            ledger: self.ledger,
            analyst: self.analyst,
        }
    }

    fn request(&self, statistic: Statistic) -> Result<Request, Failure> {
        does_not_vanish("epsilon", &self.epsilon)?;
        does_not_vanish("confidence", &self.confidence)?;
        let mut request = Request::new(statistic, self.epsilon.parse()?);
        request.confidence = self.confidence.parse()?;
        request.relation = match self.relation {
            Relation::AddRemove => Neighbours::AddRemove,
            Relation::Replace => Neighbours::ReplaceOne,
        };
        Ok(request)
    }
}

impl NoiseArguments {
    fn add_to(&self, request: &mut Request) -> Result<(), Failure> {
        does_not_vanish("delta", &self.delta)?;
        request.delta = self.delta.parse()?;
        request.mechanism = self.mechanism.map(|mechanism| match mechanism {
            Mechanism::Laplace => NoiseKind::Laplace,
            Mechanism::Gaussian => NoiseKind::Gaussian,
            Mechanism::Exponential => NoiseKind::Exponential,
            Mechanism::PermuteAndFlip => NoiseKind::PermuteAndFlip,
        });
        Ok(())
    }
}

impl RowsArguments {
    fn add_to(self, request: &mut Request) -> Result<(), Failure> {
        request.unit = self.unit;
        let rows_per_unit = self.rows_per_unit.as_deref();
        request.rows_per_unit = rows_per_unit
            .map(|text| crate::whole_number("the number of rows per unit", text))
            .transpose()?;
        Ok(())
    }
}

fn range(text: &str) -> Result<Range, Failure> {
    if text.trim() == "auto" {
        return Ok(Range::Auto);
    }
    let wrong = |reason: &str| {
        let suggestion = "write the lower and the upper end with a comma between, such as --range 0,120 or --range -5,5; a step \
                          after another comma, such as --range 0,120,1; or --range auto";
        Failure::invalid("not_a_range", reason, suggestion)
    };
    let mut numbers = Vec::new();
    for (place, part) in ["lower end", "upper end", "step"]
        .into_iter()
        .zip(text.split(','))
    {
        let part = part.trim();
        numbers.push(part.parse::<f64>().map_err(|_| {
            wrong(&match part {
                "" => format!("the {place} of the range is missing"),
                _ => format!("the {place} of the range, {part:?}, is not a number"),
            })
        })?);
    }
    match (numbers.as_slice(), text.split(',').count()) {
        (&[lower, upper], _) => {
            let bounds = Bounds::new(lower, upper);
            Ok(bounds
                .map_err(|error| no_range(lower, upper, Failure::new(&error)))?
                .into())
        }
        (&[lower, upper, step], 3) => {
            let range = Range::with_step(lower, upper, step);
            Ok(range.map_err(|error| no_range(lower, upper, Failure::new(&error)))?)
        }
        (&[_], _) => Err(wrong("the range is one number, where two are needed")),
        (_, parts) => Err(wrong(&format!(
            "the range has {parts} parts, where two ends and perhaps a step are needed"
        ))),
    }
}

/// Why there are no values between two numbers.
fn no_range(lower: f64, upper: f64, failure: Failure) -> Failure {
    if failure.code() != "empty_range" {
        return failure;
    }
    let (reason, suggestion) = if lower.is_nan() || upper.is_nan() {
        (
            "an end of the range is no number".to_owned(),
            "write both ends as numbers, such as --range 0,120".to_owned(),
        )
    } else if lower.is_infinite() || upper.is_infinite() {
        (
            "an end of the range is infinite".to_owned(),
            "write finite ends, such as --range 0,120; values beyond count as the ends. If you know none, --range auto searches for them"
                .to_owned(),
        )
    } else if lower > upper {
        (
            format!("the lower end of the range, {lower}, is above the upper one, {upper}"),
            format!("write the lower end first: --range {upper},{lower}"),
        )
    } else if lower == upper {
        (
            format!("both ends of the range are {lower}"),
            "write two different ends, such as --range 0,120".to_owned(),
        )
    } else {
        (
            "the ends of the range are too far away, or too close together to tell values between them apart".to_owned(),
            "write ends within 1e270 of zero that differ by more than a billionth of a billionth of the larger one and, with a step, by a step or more"
                .to_owned(),
        )
    };
    Failure::invalid("empty_range", &reason, &suggestion)
}

fn shares(text: &str) -> Result<Vec<Share>, Failure> {
    let share = |text: &str| match text.trim().parse() {
        Ok(share) => Ok(Share::new(share)?),
        Err(_) => Err(Failure::invalid(
            "not_a_number",
            "a share is not a number",
            "write shares from 0 to 1 with commas between, such as --q 0.25,0.5,0.75",
        )),
    };
    text.split(',').map(share).collect()
}

/// A list with commas between, or a public file with one category on each line.
fn categories(text: &str, common: &CommonArguments) -> Result<Vec<String>, Failure> {
    let categories: Vec<String> = match text.strip_prefix('@') {
        Some(path) => {
            let lines = public_file(path, common)?;
            let lines = lines.lines().filter(|line| !line.trim().is_empty());
            lines.map(String::from).collect()
        }
        None => text.split(',').map(String::from).collect(),
    };
    Ok(categories)
}

/// The columns in the order given, each with its list.
fn category_columns(
    columns: &str,
    lists: &str,
    common: &CommonArguments,
) -> Result<Vec<CategoryColumn>, Failure> {
    let wrong = |reason: &str| {
        let suggestion = "write each column's list once, such as --columns sex,ward --categories 'sex=f|m;ward=north|south'";
        Failure::invalid("not_categories", reason, suggestion)
    };
    let not_lists = || wrong("the categories are not lists of columns=one|two with ; between");
    let mut lists: Vec<(String, Vec<String>)> = match lists.strip_prefix('@') {
        Some(path) => {
            serde_json::from_str::<BTreeMap<String, Vec<String>>>(&public_file(path, common)?)
                .map_err(|_| wrong("the file of categories is not a JSON object of lists"))?
                .into_iter()
                .collect()
        }
        None => {
            let list = |text: &str| {
                let (column, list) = text.split_once('=')?;
                let list = list.split('|').map(String::from).collect();
                Some((column.trim().to_owned(), list))
            };
            let lists = lists.split(';').map(list).collect::<Option<_>>();
            lists.ok_or_else(not_lists)?
        }
    };
    let mut found = Vec::new();
    for column in columns.split(',').map(str::trim) {
        let place = lists.iter().position(|(name, _)| name == column);
        let Some(place) = place else {
            return Err(wrong(&format!(
                "the column {column:?} has no list of categories"
            )));
        };
        let (column, categories) = lists.swap_remove(place);
        found.push(CategoryColumn { column, categories });
    }
    match lists.first() {
        None => Ok(found),
        Some((column, _)) => Err(wrong(&format!(
            "the list of {column:?} stands there twice or belongs to none of the columns"
        ))),
    }
}

/// A file that belongs to the question and not to the data.
#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn public_file(path: &str, common: &CommonArguments) -> Result<String, Failure> {
    // Categories are told as they stand there, so they must not be somebody's rows.
    if catalogued::protects(Path::new(path), common.catalog.as_deref())?.is_some() {
        return Err(Failure::refused(
            "private_categories",
            &format!("the file {path:?} of categories is a private table of a catalog"),
            "write the categories that can be into a file of their own",
        ));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(Path::new(path), error.kind()))
}
