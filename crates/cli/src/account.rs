//! `whit account`: what many mechanisms on the same data cost together.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use whit::account::{
    Account, Answer, Case, JsonType, Length, Line, Query, Safe, Sampling, Training,
    first_moments_accountant, json_types,
};
use whit::accounting::Notion;
use whit::{Delta, Failure, Neighbours};

use crate::account_plot::{self, PlotArguments};
use crate::{Format, outcome, table};

/// What many mechanisms on the same data cost together, between bounds that are both proven.
///
/// A composition is written as people speak of it: gaussian(sigma=20) x 512. Mechanisms are gaussian(sigma=…), laplace(scale=…),
/// discrete_gaussian(sigma=…), discrete_laplace(scale=…), geometric(epsilon=…), rr(epsilon=…, values=…), exponential(epsilon=…),
/// permute_and_flip(epsilon=…), partition_selection(epsilon=…, delta=…), dp(epsilon=…, delta=…), zcdp(rho=…), gdp(mu=…) and
/// tabulated(p=[…], q=[…]); sensitivity=… may stand beside noise, and is 1 if it does not. Samplers stand around a mechanism:
/// poisson(rate, …), fixed_size(fraction, …), allocation(steps, …), batches(number, …); and shuffle(users, epsilon=…). A sampler is
/// priced for what it is: batches of a shuffled data set are no Poisson samples, and cost more.
///
/// x, * and × mean times, + joins, 256/60000 is a quotient, and ? is the number to be found.
///
/// What each mechanism is asked may depend on earlier answers; how noisy it is may not.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help(), arg_required_else_help = false)]
pub(crate) struct Arguments {
    /// Answer cases in JSON, from a file or from standard input (-), with one line of JSON each
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    question: Option<Question>,
}

const EXAMPLES: &str = "\
Examples:
  whit account epsilon --delta 1e-5 'gaussian(sigma=20) x 512'
      What 512 noisy answers cost together.
  whit account sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5
      What training by noisy gradients costs.
  whit account calibrate --epsilon 1 --delta 1e-5 'poisson(0.01, gaussian(sigma=?)) x 1000'
      How much noise a budget needs.
  whit account compare --delta 1e-5 'laplace(scale=20) x 512'
      The same by every older notion.
  cat cases.json | whit account --json -
      For programs: one case, a list, or {\"cases\":[…]}; a line of JSON for each, in order. A case is
      {\"id\":1,\"mechanisms\":[{\"type\":\"gaussian\",\"sigma\":20,\"count\":512}],\"query\":{\"delta\":1e-5}}
      If a case has no answer, its line has an error, and the exit code is 2.";

/// The examples, and all that a case in JSON can say. A name and its keys have a line each: side by side they would be broken anywhere.
fn long_help() -> String {
    let mut help = format!(
        "{EXAMPLES}\n\nTypes of mechanisms in JSON, and below each its keys (| is between names of the same):\n"
    );
    for JsonType { names, keys, .. } in json_types() {
        let keys: Vec<String> = keys.iter().map(|key| key.join("|")).collect();
        help += &format!("  {}\n      {}\n", names.join(" or "), keys.join(", "));
    }
    help + JSON_REST
}

const JSON_REST: &str = "
Noise is sigma, over a sensitivity, or noise_multiplier; that of the discrete_laplace is scale,
rate or epsilon. Left out, count, sensitivity and epochs are 1, values are 2, and the delta of dp
is 0. A number to be found is \"?\".

Beside \"mechanisms\" stand \"id\", \"adjacency\" (add_remove, if left out, or replace_one), \"group\"
(1, if left out) and \"query\": {\"delta\":…} asks for epsilon, {\"epsilon\":…} for delta, both for the
parameter that is \"?\", {\"alpha\":…} for the Rényi divergence of that order, and {\"fpr\":…} for
the rate of false negatives.";

#[derive(Subcommand)]
enum Question {
    /// The smallest epsilon at a delta
    #[command(after_help = EPSILON_EXAMPLES)]
    Epsilon(EpsilonArguments),
    /// The smallest delta at an epsilon
    #[command(after_help = DELTA_EXAMPLES)]
    Delta(DeltaArguments),
    /// What training by noisy gradients over Poisson samples costs
    #[command(after_help = SGD_EXAMPLES)]
    Sgd(SgdArguments),
    /// The noise, rate, sensitivity or number of steps that a budget allows
    #[command(after_help = CALIBRATE_EXAMPLES)]
    Calibrate(CalibrateArguments),
    /// Epsilon by every notion, side by side
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(EpsilonArguments),
    /// Draw what a composition costs
    #[command(after_help = account_plot::EXAMPLES)]
    Plot(PlotArguments),
}

const EPSILON_EXAMPLES: &str = "\
Examples:
  whit account epsilon --delta 1e-5 'gaussian(sigma=20) x 512'
  whit account epsilon --delta 1e-6 'laplace(scale=20) x 100 + gaussian(sigma=10)'
  whit account epsilon --delta 1e-6 --neighbours replace-one 'rr(epsilon=0.1) x 500'
      Randomized response hides what somebody says, and not that he is there.
  whit account epsilon --delta 1e-5 --group 3 'gaussian(sigma=20) x 100'
      For a family of three.
  whit account epsilon --delta 1e-5 'poisson(256/60000, gaussian(sigma=1.1)) x 14063' --format json";

const DELTA_EXAMPLES: &str = "\
Examples:
  whit account delta --epsilon 1 'gaussian(sigma=20) x 512'
  whit account delta --epsilon 0 'gaussian(sigma=20) x 512'
      The largest advantage of somebody who guesses which of two neighbours it was.
  whit account delta --epsilon 0.15 --neighbours replace-one 'shuffle(1000, epsilon=1)'";

const SGD_EXAMPLES: &str = "\
Examples:
  whit account sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5
  whit account sgd --batch 256 --size 60000 --sigma 1.1 --epochs 60 --delta 1e-5
      Every example with probability 256/60000 in every step, and as many steps as make 60 epochs.
  whit account sgd --rate 0.01 --sigma 4 --steps 10000 --delta 1e-5 --replace-one
      Neighbours that have another example, instead of one more or less.

This is for samples that each example enters by itself. For batches that are cut from a shuffled data set, ask
  whit account epsilon --delta 1e-5 --neighbours replace-one 'batches(100, gaussian(sigma=4)) x 10'";

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  whit account calibrate --epsilon 1 --delta 1e-5 'poisson(0.01, gaussian(sigma=?)) x 1000'
  whit account calibrate --epsilon 1 --delta 1e-5 'poisson(?, gaussian(sigma=2)) x 1000'
      The largest rate.
  whit account calibrate --epsilon 1 --delta 1e-5 'poisson(0.01, gaussian(sigma=2)) x ?'
      The most steps.
  whit account calibrate --epsilon 1 --delta 1e-5 'laplace(scale=?) x 10 + gaussian(sigma=20)'";

const COMPARE_EXAMPLES: &str = "\
Examples:
  whit account compare --delta 1e-5 'gaussian(sigma=20) x 512'
  whit account compare --delta 1e-5 'poisson(0.01, gaussian(sigma=4)) x 10000'
  whit account compare --delta 1e-6 'exponential(epsilon=0.1) x 100' --format json";

#[derive(Args)]
struct EpsilonArguments {
    /// The slack, from 0 to below 1
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: String,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct DeltaArguments {
    /// The loss, from 0 on
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: String,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct CalibrateArguments {
    /// The loss to keep
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: String,
    /// The slack to keep, above 0 and below 1
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: String,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct SgdArguments {
    /// The probability with which each example is in a sample
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, required_unless_present_all = ["batch", "size"])]
    rate: Option<String>,
    /// The expected size of a sample, instead of a rate
    #[arg(
        long,
        value_name = "EXAMPLES",
        requires = "size",
        conflicts_with = "rate"
    )]
    batch: Option<u64>,
    /// The size of the data set
    #[arg(long, value_name = "EXAMPLES", requires = "batch")]
    size: Option<u64>,
    /// The standard deviation of the noise over the clipping norm
    #[arg(long, value_name = "SIGMA", allow_hyphen_values = true)]
    sigma: String,
    /// The number of steps
    #[arg(long, value_name = "STEPS", required_unless_present = "epochs")]
    steps: Option<u64>,
    /// How often each example is sampled on average, instead of steps
    #[arg(
        long,
        value_name = "EPOCHS",
        conflicts_with = "steps",
        allow_hyphen_values = true
    )]
    epochs: Option<String>,
    /// The slack, from 0 to below 1
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: String,
    /// Short for --neighbours replace-one
    #[arg(long)]
    replace_one: bool,
    #[command(flatten)]
    whom: Whom,
}

/// A composition and whom it protects.
#[derive(Args)]
pub(crate) struct Form {
    /// The composition, such as 'gaussian(sigma=20) x 512'
    #[arg(value_name = "FORM", required = true, num_args = 1..)]
    form: Vec<String>,
    #[command(flatten)]
    whom: Whom,
}

/// Whom an answer protects.
#[derive(Args, Clone, Copy)]
pub(crate) struct Whom {
    /// What neighbours differ in: one unit more or less, or one that says something else
    #[arg(long, value_enum, default_value_t = Relation::AddRemove)]
    neighbours: Relation,
    /// How many units change together
    #[arg(long, value_name = "UNITS", default_value_t = 1)]
    group: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Relation {
    /// One unit is there or not
    #[value(alias = "add_remove")]
    AddRemove,
    /// One unit is another
    #[value(aliases = ["replace_one", "replace"])]
    ReplaceOne,
}

impl Form {
    pub(crate) fn text(&self) -> String {
        self.form.join(" ")
    }

    pub(crate) fn account(&self) -> Result<Account, Failure> {
        let account = Account::parse(&self.text(), self.whom.neighbours())?;
        Ok(account.for_group(self.whom.group))
    }
}

impl Whom {
    pub(crate) fn neighbours(self) -> Neighbours {
        match self.neighbours {
            Relation::AddRemove => Neighbours::AddRemove,
            Relation::ReplaceOne => Neighbours::ReplaceOne,
        }
    }

    pub(crate) fn group(self) -> u64 {
        self.group
    }
}

/// The text for stdout. `unanswered` is set if there is a line of it that has no answer.
pub(crate) fn run(
    arguments: Arguments,
    format: Format,
    unanswered: &mut bool,
) -> Result<String, Failure> {
    match (arguments.json, arguments.question) {
        (Some(path), None) => cases(&path, unanswered),
        (None, Some(question)) => answer(question, format),
        (Some(_), Some(_)) => Err(usage(
            "--json stands alone, but there is a question beside it",
        )),
        (None, None) => Err(usage("whit account needs a question")),
    }
}

fn usage(reason: &str) -> Failure {
    Failure::invalid(
        "usage",
        reason,
        "ask for epsilon, delta, sgd, calibrate, compare or plot; or give cases with --json FILE",
    )
}

fn answer(question: Question, format: Format) -> Result<String, Failure> {
    match question {
        Question::Epsilon(arguments) => {
            let delta = number("delta", &arguments.delta)?;
            told(&arguments.form.account()?, Query::Epsilon { delta }, format)
        }
        Question::Delta(arguments) => {
            let epsilon = number("epsilon", &arguments.epsilon)?;
            told(&arguments.form.account()?, Query::Delta { epsilon }, format)
        }
        Question::Calibrate(arguments) => {
            let (epsilon, delta) = (
                number("epsilon", &arguments.epsilon)?,
                number("delta", &arguments.delta)?,
            );
            let query = Query::Parameter { epsilon, delta };
            told(&arguments.form.account()?, query, format)
        }
        Question::Sgd(arguments) => sgd(&arguments, format),
        Question::Compare(arguments) => compare(&arguments, format),
        Question::Plot(arguments) => account_plot::run(arguments, format),
    }
}

/// A line for each case, whatever happens to the others: the last one is returned, those before are printed as they are answered.
fn cases(path: &Path, unanswered: &mut bool) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().read_to_string(&mut text)
    } else {
        #[expect(clippy::disallowed_methods, reason = "this is a door")]
        let file = fs::File::open(path);
        file.and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|_| {
        Failure::invalid(
            "unreadable_file",
            "the cases cannot be read",
            "name a file of UTF-8 text that you may read, or - for standard input",
        )
    })?;
    let cases = match Case::all(&text) {
        Ok(cases) => cases,
        Err(error) => {
            *unanswered = true;
            return Ok(json(&Line::failed(Value::Null, Failure::new(&error))));
        }
    };
    Ok(answer_all(&cases, &mut io::stdout().lock(), unanswered))
}

/// So that one long case does not hold up the answers before it, each is written at once.
fn answer_all(cases: &[Case], to: &mut impl Write, unanswered: &mut bool) -> String {
    let mut line = String::new();
    for (index, case) in cases.iter().enumerate() {
        let mut answered = false;
        // One case that breaks the program must not take the others with it.
        let found = outcome::guard(|| {
            let line = case.line();
            answered = line.is_answered();
            Ok(json(&line))
        });
        *unanswered |= !answered;
        line = found.unwrap_or_else(|failure| json(&Line::failed(case.id().clone(), failure)));
        if index + 1 == cases.len() {
            break;
        }
        let written = writeln!(to, "{line}").and_then(|()| to.flush());
        if let Err(error) = written {
            // Whoever prints the rest meets the same error, and knows how to end. A reader may have seen enough, but not a disk.
            *unanswered |= error.kind() != io::ErrorKind::BrokenPipe;
            break;
        }
    }
    line
}

#[derive(Serialize)]
struct Told<'a> {
    quantity: &'static str,
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(flatten)]
    whom: Protected,
}

#[derive(Serialize)]
struct Protected {
    adjacency: &'static str,
    group: u64,
}

impl Protected {
    fn of(account: &Account) -> Self {
        let adjacency = match account.neighbours() {
            Neighbours::AddRemove => "add_remove",
            _ => "replace_one",
        };
        Self {
            adjacency,
            group: account.group(),
        }
    }
}

fn told(account: &Account, query: Query, format: Format) -> Result<String, Failure> {
    let answer = account.ask(query)?;
    if format == Format::Json {
        return Ok(json(&Told {
            quantity: answer.quantity,
            answer: &answer,
            whom: Protected::of(account),
        }));
    }
    let at = match query {
        Query::Epsilon { delta } => format!(" at delta {}", plain(delta)),
        Query::Delta { epsilon } => format!(" at epsilon {}", plain(epsilon)),
        Query::Parameter { epsilon, delta } => {
            format!(
                ", which keeps epsilon {} at delta {}",
                plain(epsilon),
                plain(delta)
            )
        }
        _ => String::new(),
    };
    let mut lines = vec![line(answer.quantity, first(&answer) + &at)];
    if differ(&answer) {
        let between = format!(
            "{} and {}: the truth is proven to be there",
            down(answer.lower, DIGITS),
            up(answer.upper, DIGITS)
        );
        lines.push(line("between", between));
    }
    lines.extend(origin(&answer, account));
    Ok(table::lines(&lines))
}

/// Enough for people.
const DIGITS: usize = 6;
/// Enough to see both bounds of an engine at work.
const FINE_DIGITS: usize = 11;

/// The safe end, with how it is rounded.
fn first(answer: &Answer) -> String {
    match (answer.safe, answer.reason()) {
        (Safe::Lower, _) if answer.quantity == "count" => {
            let steps = plain(answer.lower);
            if answer.lower < 1.0 {
                format!("{steps} (not even one)")
            } else {
                steps
            }
        }
        (Safe::Lower, _) => format!("{} (rounded down)", down(answer.lower, DIGITS)),
        (_, Some(reason)) => format!("infinite ({reason})"),
        (_, None) => format!("{} (rounded up)", up(answer.upper, DIGITS)),
    }
}

/// Whether the bounds differ by more than rounding to digits.
fn differ(answer: &Answer) -> bool {
    answer.upper - answer.lower > 1e-6 * answer.upper
}

fn origin(answer: &Answer, account: &Account) -> Vec<(String, String)> {
    vec![
        line("engine", answer.engine.to_owned()),
        line("theorem", answer.theorem.to_owned()),
        line("protects", protects(account)),
    ]
}

fn protects(account: &Account) -> String {
    let (whom, is, says) = match account.group() {
        1 => ("one unit".to_owned(), "it is", "it says"),
        units => (format!("{units} units together"), "they are", "they say"),
    };
    match account.neighbours() {
        Neighbours::AddRemove => format!("{whom}: whether {is} there at all (add-remove)"),
        _ => format!("{whom}: what {says} (replace-one)"),
    }
}

#[derive(Serialize)]
struct Compared<'a> {
    quantity: &'static str,
    #[serde(flatten)]
    answer: &'a Answer,
    #[serde(flatten)]
    whom: Protected,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    notions: Vec<ComparedNotion>,
}

#[derive(Serialize)]
struct ComparedNotion {
    name: &'static str,
    /// Null if the notion has no finite epsilon, or does not know a mechanism.
    epsilon: Option<f64>,
    theorem: &'static str,
}

impl From<&Notion> for ComparedNotion {
    fn from(notion: &Notion) -> Self {
        Self {
            name: notion.name,
            epsilon: notion.epsilon.filter(|epsilon| epsilon.is_finite()),
            theorem: notion.theorem,
        }
    }
}

const FIRST_MOMENTS: &str = "moments accountant of 2016";

/// What else there is to say, besides the exact answer.
fn notions(account: &Account, delta: f64) -> Result<Vec<Notion>, Failure> {
    let delta = Delta::new(delta)?;
    let mut notions = account
        .composition()
        .and_then(|composition| Ok(composition.notions(delta)?))?;
    notions.retain(|notion| notion.name != "exact");
    Ok(notions)
}

fn notion_lines(compared: &[ComparedNotion], notions: &[Notion]) -> Vec<(String, String)> {
    let known = |name: &str| notions.iter().find(|notion| notion.name == name);
    compared
        .iter()
        .map(|notion| {
            let epsilon = match (notion.epsilon, known(notion.name)) {
                (Some(epsilon), _) => up(epsilon, DIGITS),
                (None, Some(notion)) if notion.epsilon.is_some() => "none".into(),
                _ => "unknown".into(),
            };
            line(notion.name, format!("{epsilon:<9} {}", notion.theorem))
        })
        .collect()
}

fn compare(arguments: &EpsilonArguments, format: Format) -> Result<String, Failure> {
    let delta = number("delta", &arguments.delta)?;
    let account = arguments.form.account()?;
    let answer = account.ask(Query::Epsilon { delta })?;
    let notions = notions(&account, delta)?;
    let compared: Vec<ComparedNotion> = notions.iter().map(ComparedNotion::from).collect();
    if format == Format::Json {
        return Ok(json(&Compared {
            quantity: answer.quantity,
            answer: &answer,
            whom: Protected::of(&account),
            rate: None,
            steps: None,
            notions: compared,
        }));
    }
    let shown = if answer.upper.is_finite() {
        up(answer.upper, DIGITS)
    } else {
        "none".into()
    };
    let mut lines = vec![
        line("notion", format!("{:<9} rests on", "epsilon")),
        line("exact", format!("{shown:<9} {}", answer.theorem)),
    ];
    lines.extend(notion_lines(&compared, &notions));
    let text = table::lines(&lines);
    let note = vec![
        line(
            "delta",
            format!(
                "{}; every epsilon is an upper bound, rounded up",
                plain(delta)
            ),
        ),
        line("protects", protects(&account)),
    ];
    Ok(text + "\n" + &table::lines(&note))
}

fn sgd(arguments: &SgdArguments, format: Format) -> Result<String, Failure> {
    let delta = number("delta", &arguments.delta)?;
    let sampling = match (&arguments.rate, arguments.batch, arguments.size) {
        (Some(rate), ..) => Sampling::Rate(number("rate", rate)?),
        (None, Some(batch), Some(size)) => Sampling::Batch { batch, size },
        _ => return Err(usage("there is no rate, and no batch and size")),
    };
    let length = match (arguments.steps, &arguments.epochs) {
        (Some(steps), _) => Length::Steps(steps),
        (None, Some(epochs)) => Length::Epochs(number("epochs", epochs)?),
        (None, None) => return Err(usage("there are no steps, and no epochs")),
    };
    let training = Training {
        sampling,
        noise_multiplier: number("sigma", &arguments.sigma)?,
        length,
    };
    let neighbours = if arguments.replace_one {
        Neighbours::ReplaceOne
    } else {
        arguments.whom.neighbours()
    };
    let steps = training.steps()?;
    let account = training
        .account(neighbours)?
        .for_group(arguments.whom.group());
    let answer = account.ask(Query::Epsilon { delta })?;
    let rate = match sampling {
        Sampling::Batch { batch, size } => batch as f64 / size as f64,
        Sampling::Rate(rate) => rate,
        _ => f64::NAN,
    };
    let notions = notions(&account, delta)?;
    let mut compared: Vec<ComparedNotion> = notions.iter().map(ComparedNotion::from).collect();
    if delta > 0.0
        && let Ok(epsilon) = account
            .composition()
            .and_then(|composition| first_moments_accountant(&composition, delta))
    {
        let first = ComparedNotion {
            name: FIRST_MOMENTS,
            epsilon: Some(epsilon).filter(|epsilon| epsilon.is_finite()),
            theorem: "[ACG+16, Thm 2] at whole orders up to 32",
        };
        compared.insert(1.min(compared.len()), first);
    }
    if format == Format::Json {
        return Ok(json(&Compared {
            quantity: answer.quantity,
            answer: &answer,
            whom: Protected::of(&account),
            rate: Some(rate),
            steps: Some(steps),
            notions: compared,
        }));
    }
    let mut lines = vec![
        line(
            "epsilon",
            format!("{} at delta {}", first(&answer), plain(delta)),
        ),
        line(
            "bounds",
            format!(
                "{} to {}",
                down(answer.lower, FINE_DIGITS),
                up(answer.upper, FINE_DIGITS)
            ),
        ),
        line(
            "training",
            format!(
                "{steps} steps, each over a Poisson sample at rate {}, with noise of {} clipping norms",
                up(rate, DIGITS),
                plain(training.noise_multiplier)
            ),
        ),
    ];
    lines.extend(origin(&answer, &account));
    let older = notion_lines(&compared, &notions);
    Ok(table::lines(&lines) + "\nolder accountants, rounded up\n" + &table::lines(&older))
}

fn line(name: &str, text: String) -> (String, String) {
    (name.to_owned(), text)
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers, texts and lists")
}

/// A number of the command line.
pub(crate) fn number(what: &str, text: &str) -> Result<f64, Failure> {
    does_not_vanish(what, text)?;
    text.trim().parse().map_err(|_| {
        Failure::invalid(
            "not_a_number",
            &format!("{what} is not a number"),
            &format!("write {what} as a decimal number, such as 0.01 or 1e-5"),
        )
    })
}

/// Refuses a number above zero that is below all that are known here: read as zero, it would ask for something else.
pub(crate) fn does_not_vanish(what: &str, text: &str) -> Result<(), Failure> {
    let text = text.trim();
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_more = mantissa.contains(|letter: char| ('1'..='9').contains(&letter));
    if is_more && text.parse() == Ok(0.0) {
        return Err(Failure::invalid(
            "too_small",
            &format!("{what} {text} is not zero, but smaller than any number here"),
            &format!("write {what} as 0, or as a number from 5e-324 on, such as 1e-300"),
        ));
    }
    Ok(())
}

/// As it was given.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 || (1e-4..1e7).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// So many digits, never below the number.
pub(crate) fn up(value: f64, digits: usize) -> String {
    rounded(value, digits, |shown| shown < value, 1)
}

/// So many digits, never above the number.
pub(crate) fn down(value: f64, digits: usize) -> String {
    rounded(value, digits, |shown| shown > value, -1)
}

/// To the nearest decimal, and one unit of its last digit further if that is on the wrong side.
fn rounded(value: f64, digits: usize, is_wrong: impl Fn(f64) -> bool, step: i64) -> String {
    if value == 0.0 || !value.is_finite() {
        return plain(value);
    }
    let nearest = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = nearest.split_once('e').expect("the format has an exponent");
    let mut whole: i64 = mantissa.replace('.', "").parse().expect("digits");
    let last: i32 = exponent.parse::<i32>().expect("a number") + 1 - digits as i32;
    if nearest.parse().is_ok_and(is_wrong) {
        whole += step;
    }
    // The decimal is exact: only its digits are moved about, and printed again.
    let exact: f64 = format!("{whole}e{last}").parse().expect("a number");
    plain(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was written before each flush.
    #[derive(Default)]
    struct Flushed {
        pending: Vec<u8>,
        pieces: Vec<String>,
        broken: bool,
    }

    impl Write for Flushed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.broken {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.pending.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            let piece = std::mem::take(&mut self.pending);
            self.pieces.push(String::from_utf8(piece).expect("text"));
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_when_it_is_answered() {
        let case = |id: u32, mu: &str| {
            format!(
                r#"{{"id":{id},"mechanisms":[{{"type":"gdp","mu":{mu}}}],"query":{{"delta":1e-5}}}}"#
            )
        };
        let text = [case(1, "1"), case(2, "-1"), case(3, "2")].join("\n");
        let cases = Case::all(&text).expect("JSON");
        let (mut to, mut unanswered) = (Flushed::default(), false);
        let last = answer_all(&cases, &mut to, &mut unanswered);
        let [first, second] = to.pieces.as_slice() else {
            panic!("{:?}", to.pieces);
        };
        assert!(first.starts_with(r#"{"id":1,"#) && first.ends_with("}\n"));
        assert!(second.starts_with(r#"{"id":2,"error""#) && second.ends_with("}\n"));
        assert!(last.starts_with(r#"{"id":3,"#) && last.ends_with('}'));
        assert!(unanswered && to.pending.is_empty());
        assert_eq!(answer_all(&[], &mut to, &mut unanswered), "");
        // Where nobody reads, nothing more is computed.
        to.broken = true;
        assert!(answer_all(&cases, &mut to, &mut unanswered).starts_with(r#"{"id":1,"#));
    }

    #[test]
    fn costs_are_never_shown_too_small() {
        for (value, above, below) in [
            (5.052_787_674, "5.05279", "5.05278"),
            (0.1, "0.1", "0.1"),
            (1.0, "1", "1"),
            (0.999_999_99, "1", "0.99999"),
            (1.773_624_6e-29, "1.77363e-29", "1.77362e-29"),
            (22_026.465_79, "22026.5", "22026.4"),
            (123_456_789.0, "1.23457e8", "1.23456e8"),
            (0.0, "0", "0"),
            (5e-324, "5e-324", "0"),
        ] {
            if value > 1e-320 {
                assert_eq!(
                    (up(value, 6).as_str(), down(value, 6).as_str()),
                    (above, below)
                );
            }
            assert!(
                up(value, 6).parse::<f64>().expect("a number") >= value,
                "{value}"
            );
            assert!(
                down(value, 6).parse::<f64>().expect("a number") <= value,
                "{value}"
            );
        }
    }
}
