//! A first catalog for files of which only the header line is read.

use std::fmt::Write;

use crate::error::{Result, catalog};

/// A commented `whit.toml` for CSV files, each given by its path and the columns of its header. No cell is looked at: what a
/// column holds and what may be public is the owner's to say.
pub fn draft(dataset: &str, files: &[(String, Vec<String>)], unit: Option<&str>) -> Result<String> {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    let _ = write!(
        text,
        "# What is private, whose it is, and how much may be spent. `whit check` reads this file and no data.\n\n\
         [dataset]\n\
         id = {}            # identity in the ledger; editing this file never reopens a budget\n\
         # version = \"2026-05\"    # changed when the data changes: stored answers belong to one version\n\
         # units = 10000          # how many units there are, if that is public: delta is compared with 1/N²\n\n\
         [budget]                  # the cap of the whole dataset\n\
         epsilon = 1.0\n\
         # delta = 1e-8            # given: concentrated accounting, and keys that are not declared can be shown\n\n\
         [defaults]                # for statements that do not say\n\
         # epsilon = 0.1           # without this line, a statement must bring its own\n\
         # delta = 1e-9            # for keys that are not declared, and for Gaussian noise\n\
         groups_per_unit = 1       # in how many groups one unit counts\n\
         rows_per_group = 1        # how many rows of one unit count in a group\n\n\
         # [ledger]\n\
         # path = \"whit.ledger\"    # beside this file\n\n\
         # [team.NAME]             # what a team may spend of the budget\n\
         # epsilon = 0.5\n\
         # [analyst.NAME]          # once there is one, only declared analysts may ask\n\
         # team = \"NAME\"\n\
         # epsilon = 0.1\n",
        quoted(dataset)
    );
    for (path, columns) in files {
        let stem = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let stem = stem.strip_suffix(".csv").unwrap_or(stem);
        let mut name: String = stem
            .to_ascii_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        if names.contains(&name) || name.is_empty() {
            name = format!("{name}_{}", names.len());
        }
        if columns.is_empty() {
            return Err(catalog(
                "no_header",
                format!("{path} has no header line"),
                "give a CSV file whose first line names its columns",
            ));
        }
        let source = quoted(path);
        // Whom to protect is nothing to guess: a table without a unit passes no check.
        let unit = match unit.filter(|unit| columns.iter().any(|column| column == unit)) {
            Some(unit) => format!("unit = {}           #", quoted(unit)),
            None => "# unit = \"COLUMN\"         # SAY THIS, or whit check refuses the table:"
                .to_owned(),
        };
        let _ = write!(
            text,
            "\n[table.{name}]\n\
             source = {source}\n\
             {unit} the column that says whose row it is; all rows of one unit are protected together\n\
             # public = true           # instead of unit: nothing in this file is private\n\
             # rows_per_unit = 100     # at most so many rows of one unit are used\n\
             [table.{name}.column]      # a column that is not listed is text\n"
        );
        for column in columns {
            let _ = writeln!(
                text,
                "# {} = {{ type = \"int\", range = [0, 100] }}   # or float, decimal(10,2), bool, text; or {{ values = [\"a\", \"b\"] }} for public group keys",
                key(column)
            );
        }
        names.push(name);
    }
    Ok(text)
}

/// A key of TOML, quoted where it must be.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A string of TOML, which escapes otherwise than Rust does.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    /// Names of all sorts come back as they were.
    #[test]
    fn strings_are_written_as_toml_reads_them() {
        for name in [
            "plain",
            "a \"b\" \\ c",
            "zero\u{200b}width",
            "tab\tand\u{7f}",
            "é\u{301}",
        ] {
            let files = [("a.csv".to_owned(), vec![name.to_owned(), "x".to_owned()])];
            let text = draft(name, &files, Some(name))
                .expect("a draft")
                .replace("# \"", "\"");
            let catalog = Catalog::parse(&text).expect(name);
            assert_eq!(catalog.dataset(), name);
        }
    }
}
