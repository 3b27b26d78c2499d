//! The plan of `whit train`: read, checked as far as that needs no data, and brought together with the catalog that protects its data.

use std::path::Path;

use whit::Failure;
use whit_learn::classical::{FitRecipe, Kind};
use whit_learn::data::Declaration;
use whit_learn::{Plan, Recipe, SearchPlan};

use crate::catalogued::{self, Catalogued};
use crate::train_words::{self, Trained};

/// What was said about a ledger.
pub(crate) struct Asked<'a> {
    pub(crate) catalog: Option<&'a Path>,
    pub(crate) ledger: Option<&'a Path>,
    pub(crate) analyst: Option<&'a str>,
    /// Is the plan only to be priced?
    pub(crate) dry_run: bool,
}

/// A plan of steps, or of one fit.
pub(crate) enum Read {
    Steps(Box<Recipe>),
    Fit(Box<FitRecipe>),
}

pub(crate) fn read(path: &Path) -> Result<Read, Failure> {
    let help = "[data], [model] and [plan] as in the example of whit train --help";
    let text = text(path)?;
    let kind = toml::from_str::<toml::Table>(&text).ok();
    let kind = kind
        .as_ref()
        .and_then(|plan| plan.get("model")?.get("kind")?.as_str());
    let kind = kind.and_then(Kind::of);
    let read = match kind {
        Some(_) => toml::from_str(&text)
            .map(|recipe: FitRecipe| Read::Fit(Box::new(recipe.read_as_meant()))),
        None => toml::from_str(&text).map(|recipe| Read::Steps(Box::new(recipe))),
    };
    let of = kind.map_or(Trained::Steps, Trained::Fit);
    read.map_err(|error| malformed((path, &text), of, &error, help))
}

/// A plan of teachers; `help` says what would pass.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(path: &Path, help: &str) -> Result<T, Failure> {
    let text = text(path)?;
    let of = Trained::Teachers;
    toml::from_str(&text).map_err(|error| malformed((path, &text), of, &error, help))
}

#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::invalid(
            "plan_not_read",
            &format!("the plan {path:?} cannot be read: {error}"),
            "give the path of a TOML file; whit train --help shows one",
        )
    })
}

fn malformed(
    (path, text): (&Path, &str),
    of: Trained,
    error: &toml::de::Error,
    help: &str,
) -> Failure {
    let place = match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or_default();
            format!(", line {}", before.matches('\n').count() + 1)
        }
        None => String::new(),
    };
    let suggestion = match train_words::hint(error.message(), of) {
        Some(hint) => hint.to_owned(),
        None => format!("give {help}"),
    };
    Failure::invalid(
        "plan_malformed",
        &format!("the plan {path:?}{place}: {}", in_words(error.message())),
        &suggestion,
    )
}

/// What the reader of TOML says, in the words of plans and not in those of the program.
fn in_words(message: &str) -> String {
    let layer = "a layer such as { kind = \"linear\", outputs = 10 }";
    let words = [
        ("struct LayerDescription", layer),
        ("struct PlanSection", "a section [plan]"),
        ("struct OptimizerSection", "a section [optimizer]"),
        ("struct SearchSection", "a section [search]"),
        ("struct Declaration", "a section such as [data]"),
        ("struct ModelSection", "a section [model]"),
        ("struct BudgetSection", "a section [plan]"),
        ("struct TeachersSection", "a section [teachers]"),
        ("struct AggregatorSection", "a section [aggregator]"),
        ("struct StudentSection", "a section [student]"),
        (
            "struct LearnerSection",
            "a learner such as { kind = \"kernel_ridge\" }",
        ),
        ("struct Model", "a section [model]"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected u32", "expected a whole number from 0 on"),
        ("expected usize", "expected a whole number from 0 on"),
        ("expected f64", "expected a number"),
        ("expected f32", "expected a number"),
        ("expected a sequence", "expected a list"),
        (
            "data did not match any variant of untagged enum Classes",
            "expected a whole number, or a list of names",
        ),
        (
            "data did not match any variant of untagged enum PerChannel",
            "expected a number, or a list of numbers",
        ),
    ];
    let replace = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    words.into_iter().fold(message.to_owned(), replace)
}

/// What can be refused without reading a row, so that a dry run refuses it too, in the same words.
pub(crate) fn check(
    recipe: &Recipe,
    plan: &Plan,
    folder: &Path,
    is_catalogued: bool,
) -> Result<(), Failure> {
    Ok(match is_catalogued {
        // A catalog adds its unit to what is declared, and the session checks the whole.
        true => recipe.check_unopened(plan, folder),
        false => recipe.check_unread(plan, folder),
    }?)
}

/// The same for a search.
pub(crate) fn check_search(
    recipe: &Recipe,
    search: &SearchPlan,
    folder: &Path,
    is_catalogued: bool,
) -> Result<(), Failure> {
    Ok(match is_catalogued {
        true => recipe.check_search_unopened(search, folder),
        false => recipe.check_search_unread(search, folder),
    }?)
}

/// Refuses public data that a catalog protects. That they are not the data themselves is checked with the rest of the plan.
pub(crate) fn check_public(
    (section, code): (&str, &'static str),
    public: &Declaration,
    folder: &Path,
    asked: &Asked<'_>,
) -> Result<(), Failure> {
    for path in public.files(folder) {
        if catalogued::protects(&path, asked.catalog)?.is_some() {
            return Err(Failure::refused(
                code,
                &format!("the file {path:?} of [{section}] is private"),
                &format!(
                    "give data in [{section}] that are public, and none of the private ones, or leave [{section}] out"
                ),
            ));
        }
    }
    Ok(())
}

/// The private table that the data are, if a catalog says so. Then a ledger is charged, and there is no way around: not for the labels, nor
/// by calling the same rows public.
pub(crate) fn find(
    (declared, test): (&Declaration, Option<&Declaration>),
    folder: &Path,
    asked: &Asked<'_>,
) -> Result<Option<Catalogued>, Failure> {
    let data = folder.join(&declared.path);
    if let Some(test) = test {
        check_public(("test", "test_private"), test, folder, asked)?;
    }
    let label = declared.label.as_deref();
    if let Some(label) = label
        && let Some(found) = catalogued::protects(&folder.join(label), asked.catalog)?
    {
        return Err(Failure::refused(
            "train_catalogued",
            &format!(
                "the file {label:?} of the labels is the private table {} of a catalog",
                found.table
            ),
            "train on a table whose label is one of its columns",
        ));
    }
    let found = catalogued::find(&data, asked.catalog, asked.ledger)?;
    let named = [
        // Whoever opens data that are not there says so; a dry run opens none.
        ("--catalog", asked.catalog.is_some() && asked.dry_run),
        ("--ledger", asked.ledger.is_some()),
        ("--analyst", asked.analyst.is_some()),
    ];
    match named.iter().find(|(_, given)| *given) {
        Some((option, _)) if found.is_none() => Err(catalogued::uncharged(
            option,
            &format!("the data {data:?} are"),
        )),
        _ => Ok(found),
    }
}
