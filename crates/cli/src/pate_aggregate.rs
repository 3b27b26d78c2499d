//! `whit pate aggregate`: from votes to labels.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use whit::core::Secret;
use whit::session::{Elected, Election, rehearse_election};
use whit::{Failure, Neighbours, OsEntropy};
use whit_learn::pate::{
    Accounting, Aggregation, Declared, Layout, Owner, Sanitise, Terms, Test, Votes, owner,
};
use whit_learn::{Payment, Uncharged};

use crate::account::number;
use crate::catalogued::{refuse_as_votes, uncharged};
use crate::pate_quote::Quote;
use crate::pate_result::{Finished, LABELS_UNWRITABLE, Paid, apart, owner_alone, tried};
use crate::place::Place;
use crate::{Format, pate_plot, plot};

/// Turns the votes of teachers into labels, with noise (Confident-GNMax; GNMax without a threshold).
///
/// The votes are an array of numpy.save, a CSV file with a line of names, or a Parquet file. With --layout votes it has a row for each teacher and a column for each query, and holds class
/// numbers from 0; with --layout histogram a row for each query and a column for each class, and holds how many teachers voted for it.
///
/// For each query the most votes get noise of --sigma1, and if they reach --threshold, the class is told that has most votes after noise of --sigma2; else nothing is told. The first
/// --queries are asked, until --answers-max were answered. All these numbers are public: choose them before you look at votes, with `whit pate plan`.
///
/// The guarantee is fixed by these numbers alone, and holds whatever the votes: one teacher more or less sure, replaced, or trained on another example, changes what is told by no more. It is charged before anything is
/// told, if --catalog and --table name a private table whose units went to one teacher each. A file that is itself a private table of a catalog holds no votes of teachers, and is refused.
///
/// With --dry-run no votes are read: the guarantee is shown, with what --sanitise adds to it, and what a ledger would be charged and whether there is room.
///
/// With --owner it also shows what the run cost at these votes, as the papers count it. Those numbers are private themselves: they are computed from the votes without noise. They are no guarantee
/// either. To publish one, add --sanitise: it gets noise of its own, which is priced, and comes with an interval.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The votes: .npy, .csv or .parquet
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    votes: Option<PathBuf>,
    /// Shows the guarantee, and what would be charged, and reads no votes
    #[arg(long)]
    dry_run: bool,
    /// How the file holds them
    #[arg(long, value_enum, default_value_t = LayoutWord::Votes)]
    layout: LayoutWord,
    /// How many classes there are. Public; else the width of a histogram, or the largest number in the votes and one. If a ledger is charged for class numbers, it must be given
    #[arg(long, value_name = "NUMBER")]
    classes: Option<usize>,
    /// How many teachers there are. Public, and checked against the votes; needed if a ledger is charged, or if some of a histogram's abstain
    #[arg(long, value_name = "NUMBER")]
    teachers: Option<u64>,
    /// How many votes the winner must have, with noise, for an answer; else every query is answered
    #[arg(long, value_name = "VOTES", requires = "sigma1")]
    threshold: Option<String>,
    /// The noise of that test, as a standard deviation in votes
    #[arg(long, value_name = "VOTES", requires = "threshold")]
    sigma1: Option<String>,
    /// The noise on the votes for each class, as a standard deviation in votes
    #[arg(long, value_name = "VOTES")]
    sigma2: String,
    /// How many queries are asked at most, from the first on
    #[arg(long, value_name = "NUMBER")]
    queries: u64,
    /// How many of them are answered at most
    #[arg(long, value_name = "NUMBER")]
    answers_max: u64,
    /// The slack of the guarantee
    #[arg(long, value_name = "NUMBER")]
    delta: String,
    /// Which answers the owner's numbers count: those that were given, or all queries by the probability that they are answered
    #[arg(long, value_enum, default_value_t = AccountingWord::Realised)]
    accounting: AccountingWord,
    /// Show what is private, too: what the run cost at these votes, and how far the teachers agree
    #[arg(long)]
    owner: bool,
    /// Draw how far the teachers agree, as .svg or .png; private, so only with --owner
    #[arg(long, value_name = "FILE", requires = "owner")]
    plot: Option<PathBuf>,
    /// Publish the cost at these votes with noise, and pay for it
    #[arg(long)]
    sanitise: bool,
    /// The Rényi order at which the published cost is counted; choose it beforehand
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "12",
        requires = "sanitise"
    )]
    sanitise_order: String,
    /// How smooth its sensitivity is
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "0.03",
        requires = "sanitise"
    )]
    sanitise_beta: String,
    /// Its noise, in sensitivities
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "15",
        requires = "sanitise"
    )]
    sanitise_sigma: String,
    /// Write the labels to a CSV file, too. Tried before anything is paid; if it cannot be written later, the labels are still printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The catalog whose ledger pays; with --table
    #[arg(long, value_name = "WHIT.TOML", requires = "table")]
    catalog: Option<PathBuf>,
    /// The private table that the teachers were trained on, each unit's rows by one of them
    #[arg(long, value_name = "TABLE", requires = "catalog")]
    table: Option<String>,
    /// The ledger; else where the catalog says
    #[arg(long, value_name = "PATH")]
    ledger: Option<PathBuf>,
    /// Who asks, and is charged besides the data set
    #[arg(long, value_name = "NAME")]
    analyst: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutWord {
    /// Teachers times queries: class numbers
    Votes,
    /// Queries times classes: how many teachers
    Histogram,
}

impl LayoutWord {
    pub(crate) fn layout(self) -> Layout {
        match self {
            Self::Votes => Layout::Votes,
            Self::Histogram => Layout::Histogram,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AccountingWord {
    /// The answers that were given
    Realised,
    /// Every query, by the probability that it is answered, as published tables do
    Expected,
}

const EXAMPLES: &str = "\
Examples:
  whit pate aggregate --votes votes.npy --threshold 200 --sigma1 150 --sigma2 40 --queries 640 --answers-max 286 --delta 1e-5
      Labels where 250 teachers agree, and the guarantee.
  whit pate aggregate --votes counts.csv --layout histogram --sigma2 40 --queries 100 --answers-max 100 --delta 1e-5 --format json
      Every query is answered (GNMax).
  whit pate aggregate --votes votes.npy --threshold 200 --sigma1 150 --sigma2 40 --queries 640 --answers-max 286 --delta 1e-5 --owner --accounting expected
      What the papers' accounting says of these votes. Private.
  whit pate aggregate --threshold 200 --sigma1 150 --sigma2 40 --queries 640 --answers-max 286 --delta 1e-5 --sanitise --dry-run
      What that costs, before there are votes.
  whit pate aggregate --votes votes.npy ... --classes 10 --teachers 250 --catalog whit.toml --table patients --analyst ann
      Charges the ledger of the table that the teachers were trained on.";

/// What is told; `unwritten` is set if a file could not be written that was to hold it, too.
pub(crate) fn run(
    arguments: Arguments,
    format: Format,
    unwritten: &mut Option<Failure>,
) -> Result<String, Failure> {
    if arguments.accounting == AccountingWord::Expected && !arguments.owner {
        return Err(Failure::invalid(
            "usage",
            "expected answers are computed from the votes without noise, and are the owner's alone",
            "add --owner, or leave --accounting out",
        ));
    }
    owner_alone(("--owner", arguments.owner), arguments.analyst.as_deref())?;
    if arguments.catalog.is_none() {
        for (option, given) in [
            ("--ledger", arguments.ledger.is_some()),
            ("--analyst", arguments.analyst.is_some()),
        ] {
            if given {
                return Err(uncharged(option, "these votes are of"));
            }
        }
    }
    let mut terms = terms(&arguments)?;
    // What the numbers alone refuse is refused before the file is opened. The classes of a file may have to be found in it.
    Aggregation::new(&terms)?;
    let declared = Declared {
        classes: arguments.classes,
        teachers: arguments.teachers,
    };
    if arguments.catalog.is_some() && !arguments.dry_run {
        arguments.public()?;
    }
    let (written, read) = (arguments.written(), arguments.read()?);
    apart(&written, &read, arguments.catalog.as_deref())?;
    let Some(path) = arguments.votes.as_deref().filter(|_| !arguments.dry_run) else {
        return arguments.quote(&Aggregation::new(&terms)?, format);
    };
    refuse_as_votes(path, arguments.catalog.as_deref())?;
    let votes = Votes::read(path, arguments.layout.layout(), declared)?;
    // Numbers of classes and teachers are public; see the help.
    let shape = votes.as_ref().expose();
    terms.classes = shape.classes();
    let teachers = shape.teachers();
    let aggregation = Aggregation::new(&terms)?;
    aggregation.check(shape).map_err(whit_learn::Error::from)?;
    // What cannot be written is noticed before it is paid.
    if let Some(path) = &arguments.plot {
        plot::ending(path)?;
        tried(path, "plot_unwritable")?;
    }
    if let Some(path) = &arguments.out {
        tried(path, LABELS_UNWRITABLE)?;
    }
    let (outcome, paid) = tell(&arguments, &aggregation, &votes)?;
    let accounting = match arguments.accounting {
        AccountingWord::Realised => Accounting::Realised,
        AccountingWord::Expected => Accounting::Expected,
    };
    // The owner asked to see it.
    let seen: Option<Owner> = arguments
        .owner
        .then(|| owner::owner(aggregation.terms(), &votes, &outcome, accounting).expose());
    let finished = Finished {
        aggregation: &aggregation,
        teachers,
        classes_found: arguments.layout == LayoutWord::Votes && arguments.classes.is_none(),
        outcome: &outcome,
        owner: seen.as_ref().map(|seen| (seen, accounting)),
        paid: paid.as_ref(),
    };
    let drawn = match (&arguments.plot, &seen) {
        (Some(path), Some(seen)) => pate_plot::consensus(path, &seen.consensus),
        _ => Ok(()),
    };
    let written = match &arguments.out {
        Some(path) => finished.write(path),
        None => Ok(()),
    };
    // What was told is spent, and would be lost with the file: it is printed, and so is what failed.
    *unwritten = written.and(drawn).err();
    Ok(finished.show(format, unwritten.as_ref()))
}

impl Arguments {
    /// Refuses what a ledger must not take from private votes, or from the shape of their file.
    fn public(&self) -> Result<(), Failure> {
        if self.layout == LayoutWord::Votes && self.classes.is_none() {
            return Err(classes_wanted("a ledger is charged"));
        }
        if self.teachers.is_none() {
            return Err(teachers_wanted());
        }
        Ok(())
    }

    /// Which files are written, by which option.
    fn written(&self) -> Vec<(&'static str, &Path)> {
        let all = [("--out", &self.out), ("--plot", &self.plot)];
        let given = all.into_iter();
        given
            .filter_map(|(option, path)| Some((option, path.as_deref()?)))
            .collect()
    }

    /// Which files are read, or changed by others.
    fn read(&self) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
        let mut all = Vec::new();
        all.extend(self.votes.clone().map(|path| ("the votes", path)));
        if let Some(path) = &self.catalog {
            let place = Place::read(path, self.ledger.clone())?;
            all.extend(place.own());
        }
        Ok(all)
    }

    fn quote(&self, aggregation: &Aggregation, format: Format) -> Result<String, Failure> {
        let at = match (&self.catalog, &self.table) {
            (Some(catalog), Some(table)) => {
                Some((Place::read(catalog, self.ledger.clone())?, table.as_str()))
            }
            _ => None,
        };
        let quote = Quote {
            aggregation,
            teachers: self.teachers,
            classes: self.classes,
            at,
            analyst: self.analyst.as_deref(),
        };
        quote.run(format)
    }
}

/// The number of classes must be said, since votes are private; `why` says what depends on it.
pub(crate) fn classes_wanted(why: &str) -> Failure {
    Failure::invalid(
        "usage",
        &format!("{why}, and the number of classes would be found in private votes"),
        "give --classes, which is public",
    )
}

/// Votes that lie on their side have a row for each query: what is charged would be about a query, and not about a teacher.
pub(crate) fn teachers_wanted() -> Failure {
    Failure::invalid(
        "usage",
        "a ledger is charged for one of the teachers, and how many there are would be taken from the shape of the file, which may lie on its side",
        "give --teachers, which is public",
    )
}

fn terms(arguments: &Arguments) -> Result<Terms, Failure> {
    let delta = number("delta", &arguments.delta)?;
    let test = match (&arguments.threshold, &arguments.sigma1) {
        (Some(threshold), Some(sigma)) => Some(Test {
            threshold: number("the threshold", threshold)?,
            sigma: number("sigma1", sigma)?,
        }),
        _ => None,
    };
    let sanitise = match arguments.sanitise {
        true => Some(Sanitise {
            order: number("the order", &arguments.sanitise_order)?,
            beta: number("beta", &arguments.sanitise_beta)?,
            sigma: number("the noise on the cost", &arguments.sanitise_sigma)?,
            width_noise: WIDTH_NOISE,
            delta: delta * SANITISE_SHARE,
            delta_told: delta,
            confidence: 0.95,
        }),
        false => None,
    };
    Ok(Terms {
        test,
        sigma: number("sigma2", &arguments.sigma2)?,
        queries: arguments.queries,
        answers_max: arguments.answers_max,
        classes: arguments.classes.unwrap_or(2),
        delta,
        sanitise,
        neighbours: match arguments.catalog {
            Some(_) => Neighbours::AddRemove,
            None => Neighbours::ReplaceOne,
        },
    })
}

/// The noise on the width of a published cost, in its own sensitivity: a tenth of a Gaussian, which hardly costs anything.
const WIDTH_NOISE: f64 = 10.0;
/// Which share of delta a published cost has.
const SANITISE_SHARE: f64 = 0.1;

fn tell(
    arguments: &Arguments,
    aggregation: &Aggregation,
    votes: &Secret<Votes>,
) -> Result<(whit_learn::pate::Outcome, Option<Paid>), Failure> {
    let (Some(catalog), Some(table)) = (&arguments.catalog, &arguments.table) else {
        let payment = Payment::uncharged(aggregation, Uncharged);
        let outcome = aggregation.run(votes, payment, &mut OsEntropy::new())?;
        return Ok((outcome, None));
    };
    let place = Place::read(catalog, arguments.ledger.clone())?;
    let election = Election {
        table,
        aggregation,
        analyst: arguments.analyst.as_deref(),
    };
    // A ledger begins with what could be charged, and not with what is refused.
    if !place.has_ledger() {
        rehearse_election(&place.catalog, &election)?;
    }
    let dataset = place.catalog.dataset().to_owned();
    let session = place.open()?;
    let Elected {
        outcome,
        charge,
        remaining,
        receipt,
        ..
    } = session.elect(&election, votes, &mut OsEntropy::new())?;
    let paid = Paid {
        dataset,
        charge,
        remaining,
        receipt,
    };
    Ok((outcome, Some(paid)))
}
