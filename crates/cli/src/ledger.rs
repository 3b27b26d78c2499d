//! `whit ledger`: for owners and auditors.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use whit::accounting::budget::Mode;
use whit::accounting::reserve::Level;
use whit::session::ledger::verify::Beside;
use whit::session::ledger::{self, Ledger, Receipt, verify};
use whit::{Delta, Epsilon, Failure};

use crate::place::{Place, PlaceArguments};
use crate::{Format, budget, sheet, table};

/// The ledger behind a budget: look at it, verify it, change what it allows.
///
/// A ledger is a file of records that form a chain: each holds the hash of the one before, the last is signed with the key beside
/// the file. A receipt is a hash of that chain, so whoever keeps one can find out later whether history was changed.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  whit ledger show --last 5
  whit ledger verify --receipt 17-5e0c…
      Is every record as it was written, and is this answer among them?
  whit ledger cap
      Records the cap that the catalog gives the data set by now, higher or lower.
  whit ledger accept
      Records that the owner has seen a changed catalog and wants it.";

#[derive(Subcommand)]
enum Command {
    /// The records, as they stand there
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArguments),
    /// Is every record as it was written?
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Record another cap
    #[command(after_help = CAP_EXAMPLES)]
    Cap(CapArguments),
    /// Record a changed catalog
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept(PlaceArguments),
    /// Let charges through again, after a statement failed
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(PlaceArguments),
    /// Go on after damage: what was spent is not known, so all of it counts as spent
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArguments),
}

const SHOW_EXAMPLES: &str = "\
Examples:
  whit ledger show --last 5
  whit ledger show --catalog shop/whit.toml --last 1000000 --format json

A reserve record is a charge, a settle record its answer; charges without one are spent all the
same. Nothing here is verified: whit ledger verify does that.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  whit ledger verify
  whit ledger verify --catalog shop/whit.toml --receipt 17-5e0c\u{2026}

A ledger that was put back as it was yesterday is sound, and yet not true: what shows it is a
receipt of today, kept elsewhere.";

const CAP_EXAMPLES: &str = "\
Examples:
  whit ledger cap
  whit ledger cap --catalog shop/whit.toml --analyst ann --epsilon 1

First change the cap in the catalog, then record it here. With --epsilon it can be another one,
but the two should be the same: where the catalog says less, its cap is recorded the next time it
is used; where it says more, it is refused.";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  whit ledger accept
  whit ledger accept --catalog shop/whit.toml

What was spent stays spent.";

const RESUME_EXAMPLES: &str = "\
Examples:
  whit ledger resume --catalog shop/whit.toml

That a statement failed after its charge can tell of the data, so nothing more is charged until
the owner has found out why.";

const RECOVER_EXAMPLES: &str = "\
Examples:
  whit ledger recover --catalog shop/whit.toml --close-budget

What is damaged stays where it is, and is named in a record; what it had spent is not known, so
the whole budget counts as spent until its cap is raised. A lost key or a lost mark counts as
damage, too.";

#[derive(Args)]
struct ShowArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Show only so many records, the last ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: u64,
}

#[derive(Args)]
struct VerifyArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// A receipt that came with an answer: is that answer among the records?
    #[arg(long, value_name = "RECEIPT")]
    receipt: Vec<String>,
}

#[derive(Args)]
struct CapArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// What all answers together may reveal; else as the catalog says
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: Option<String>,
    /// The slack; else as the catalog says
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: Option<String>,
    /// The cap of this team instead of the data set's
    #[arg(long, value_name = "NAME", conflicts_with = "analyst")]
    team: Option<String>,
    /// The cap of this analyst instead of the data set's
    #[arg(long, value_name = "NAME")]
    analyst: Option<String>,
}

#[derive(Args)]
struct RecoverArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Yes, close the budget: it stays closed until its cap is raised
    #[arg(long)]
    close_budget: bool,
}

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let (value, text) = match arguments.command {
        Command::Show(arguments) => show(arguments, format)?,
        Command::Verify(arguments) => verified(arguments, format)?,
        Command::Cap(arguments) => cap(arguments, format)?,
        Command::Accept(place) => accept(place.find(format)?)?,
        Command::Resume(place) => resume(place.find(format)?)?,
        Command::Recover(arguments) => recover(arguments, format)?,
    };
    match format {
        Format::Json => Ok(value.to_string()),
        Format::Table => Ok(text),
    }
}

type Shown = Result<(Value, String), Failure>;

#[derive(Serialize)]
struct Record {
    sequence: i64,
    kind: String,
    body: Value,
    hash: String,
}

fn show(arguments: ShowArguments, format: Format) -> Shown {
    let place = arguments.place.find(format)?;
    let mut records = Vec::new();
    for found in verify::last(&place.ledger, arguments.last)? {
        records.push(Record {
            sequence: found.sequence,
            // A record may be damaged, so what should be JSON may be anything.
            body: serde_json::from_str(&found.body).unwrap_or(Value::String(found.body)),
            kind: found.kind,
            hash: found.hash,
        });
    }
    let mut text = String::new();
    for record in &records {
        let kind: String = record.kind.escape_debug().collect();
        text += &format!(
            "{:>6}  {kind:<8}  {}  {}\n",
            record.sequence, &record.hash, record.body
        );
    }
    Ok((json!({ "records": records }), text))
}

fn verified(arguments: VerifyArguments, format: Format) -> Shown {
    let place = arguments.place.find(format)?;
    let report = verify(&place.ledger)?;
    for receipt in &arguments.receipt {
        let receipt: Receipt = receipt.parse()?;
        let at = receipt.sequence;
        let records = verify::show(&place.ledger, at, at)?;
        let same = |record: &verify::Shown| format!("{at}-{}", record.hash) == receipt.to_string();
        if !records.iter().any(same) {
            return Err(Failure::refused(
                "receipt_not_found",
                &format!("the ledger is sound, but has no record {receipt}"),
                "compare the receipt with the answer it came with; if it is right, this ledger is not the one that gave it, or was put back",
            ));
        }
    }
    let levels: Vec<budget::Line> = report
        .standings
        .iter()
        .map(|standing| budget::line(standing, report.mode))
        .collect();
    let mut lines = vec![
        (
            "ledger".to_owned(),
            "sound: every record is as it was written".to_owned(),
        ),
        ("data set".into(), sheet::printable(&report.dataset)),
        ("mode".into(), report.mode.word().into()),
        (
            "records".into(),
            format!(
                "{}, of which {} charges, {} of them answered",
                report.head.sequence, report.reserved, report.settled
            ),
        ),
    ];
    if let Some(line) = levels.first() {
        lines.push(("budget".into(), budget::spent(line)));
    }
    if let Some(charge) = report.suspended {
        let text = format!("since the statement of record {charge} failed; see whit ledger resume");
        lines.push(("suspended".into(), text));
    }
    for (what, found, so) in [
        (
            "key",
            report.key,
            "nothing can be charged without it; put it back, or see whit ledger recover",
        ),
        (
            "mark",
            report.mark,
            "an older copy of the file could not be told from it; put it back, or see whit ledger recover",
        ),
    ] {
        if found != Beside::Fits {
            lines.push((
                what.into(),
                format!("{} beside this file: {so}", found.word()),
            ));
        }
    }
    if !arguments.receipt.is_empty() {
        lines.push((
            "receipts".into(),
            format!("{} found", arguments.receipt.len()),
        ));
    }
    lines.push(("head".into(), report.head.to_string()));
    let value = json!({
        "sound": true,
        "dataset": report.dataset,
        "mode": report.mode.word(),
        "records": report.head.sequence,
        "charges": report.reserved,
        "answered": report.settled,
        "suspended": report.suspended,
        "levels": levels,
        "receipts_found": arguments.receipt.len(),
        "head": report.head.to_string(),
        "key": report.key.word(),
        "mark": report.mark.word(),
    });
    Ok((value, table::lines(&lines)))
}

fn cap(arguments: CapArguments, format: Format) -> Shown {
    let epsilon: Option<Epsilon> = arguments.epsilon.as_deref().map(str::parse).transpose()?;
    let delta: Option<Delta> = arguments.delta.as_deref().map(str::parse).transpose()?;
    let place = arguments.place.find(format)?;
    let level = match (arguments.team, arguments.analyst) {
        (Some(team), _) => Level::Team(team),
        (None, Some(analyst)) => Level::Analyst(analyst),
        (None, None) => Level::Dataset,
    };
    let whose = level.to_string();
    let caps = whit::session::terms(&place.catalog).caps;
    let declared = caps.iter().find(|(whose, ..)| *whose == level);
    let declared = declared.map(|&(_, epsilon, delta)| (epsilon, delta));
    let Some(epsilon) = epsilon.or(declared.map(|(epsilon, _)| epsilon)) else {
        return Err(Failure::invalid(
            "no_cap",
            &format!("the catalog has no cap for the {whose}"),
            "give one with --epsilon, or in the catalog",
        ));
    };
    // Without a delta of its own, nobody is rationed below that of the data set.
    let delta = delta
        .or(declared.map(|(_, delta)| delta))
        .unwrap_or(place.catalog.budget().1);
    // A delta that no statement could spend is no promise that anybody should read in a ledger.
    if delta > Delta::ZERO && verify(&place.ledger)?.mode == Mode::Pure {
        return Err(Failure::refused(
            "ledger_without_delta",
            "the ledger was begun without a delta, so a cap with one would change nothing",
            "take `delta` out, here and in [budget] of the catalog; for a budget with one, begin a new ledger",
        ));
    }
    let ledger = Ledger::attach(&place.ledger)?;
    // Which of the two it is, is for the ledger to say.
    let lowered = ledger.lower_cap(level.clone(), epsilon, delta);
    let set = match lowered {
        Err(ledger::Error::CapDirection { .. }) => ledger.raise_cap(level, epsilon, delta),
        other => other,
    };
    let receipt = match set {
        // It is as the catalog says already, and whoever has this receipt can show so.
        Err(ledger::Error::CapDirection { .. }) if Some((epsilon, delta)) == declared => {
            ledger.head()?
        }
        other => other?,
    };
    let value = json!({
        "level": whose,
        "epsilon": epsilon.value(),
        "delta": delta.value(),
        "receipt": receipt.to_string(),
    });
    let pair = |epsilon: Epsilon, delta: Delta| match delta.value() {
        0.0 => format!("epsilon {epsilon}"),
        delta => format!("epsilon {epsilon}, delta {}", sheet::short_down(delta)),
    };
    let mut lines = vec![(
        "recorded".to_owned(),
        format!("the cap of the {whose} is {}", pair(epsilon, delta)),
    )];
    if let Some((other, slack)) = declared.filter(|declared| *declared != (epsilon, delta)) {
        let text = format!(
            "the catalog says {} for the {whose}: change it, too, before it is used, or its cap is recorded again where it is lower, and refused where it is higher",
            pair(other, slack)
        );
        lines.push(("but".into(), text));
    }
    lines.push(("receipt".into(), receipt.to_string()));
    Ok((value, table::lines(&lines)))
}

fn accept(place: Place) -> Shown {
    let receipt = Ledger::attach(&place.ledger)?.accept(place.catalog.hash())?;
    let lines = [
        ("recorded".to_owned(), "the catalog as it is now".to_owned()),
        ("receipt".to_owned(), receipt.to_string()),
    ];
    let value = json!({ "accepted": true, "receipt": receipt.to_string() });
    Ok((value, table::lines(&lines)))
}

fn resume(place: Place) -> Shown {
    let receipt = Ledger::attach(&place.ledger)?.resume()?;
    let lines = [
        ("recorded".to_owned(), "charges go through again".to_owned()),
        ("receipt".to_owned(), receipt.to_string()),
    ];
    let value = json!({ "resumed": true, "receipt": receipt.to_string() });
    Ok((value, table::lines(&lines)))
}

fn recover(arguments: RecoverArguments, format: Format) -> Shown {
    let place = arguments.place.find(format)?;
    if !arguments.close_budget {
        return Err(Failure::refused(
            "not_confirmed",
            "recovering counts the whole budget as spent",
            "put back a sound copy if there is one; else add --close-budget",
        ));
    }
    let done = ledger::recover(&place.ledger, &whit::session::terms(&place.catalog))?;
    let lines = [
        (
            "damage".to_owned(),
            format!(
                "{} altered and {} missing records",
                done.altered, done.missing
            ),
        ),
        (
            "budget".to_owned(),
            "closed: it counts as spent until the cap is raised".to_owned(),
        ),
        ("receipt".to_owned(), done.receipt.to_string()),
    ];
    let value = json!({
        "altered": done.altered,
        "missing": done.missing,
        "closed": done.closed,
        "receipt": done.receipt.to_string(),
    });
    Ok((value, table::lines(&lines)))
}
