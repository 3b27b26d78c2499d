//! The census (Adult), as it was published: no line of names, a dot behind some labels.
//!
//! **What is public.** Which columns there are and what they may hold stands in the description of the data set, and not in its rows. Numbers are divided by constants; those of capital are taken by their logarithm, gains also as they are up to 15,000.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use whit_learn::data::Dataset;

use crate::failure::Failure;

/// Columns of text, by place, and what they may hold; what is none of it, such as `?`, is all zeros. Three of eight: a teacher has 130 rows.
const TEXTS: [(usize, &[&str]); 3] = [
    (
        5,
        &[
            "Married-civ-spouse",
            "Divorced",
            "Never-married",
            "Separated",
            "Widowed",
            "Married-spouse-absent",
            "Married-AF-spouse",
        ],
    ),
    (
        6,
        &[
            "Tech-support",
            "Craft-repair",
            "Other-service",
            "Sales",
            "Exec-managerial",
            "Prof-specialty",
            "Handlers-cleaners",
            "Machine-op-inspct",
            "Adm-clerical",
            "Farming-fishing",
            "Transport-moving",
            "Priv-house-serv",
            "Protective-serv",
            "Armed-Forces",
        ],
    ),
    (9, &["Female", "Male"]),
];

/// All rows of a file. Labels: 0 for up to 50,000, 1 for more.
pub(crate) fn read(path: &Path) -> Result<Dataset, Failure> {
    let unread = |why: String| Failure::Unread {
        path: path.into(),
        why,
    };
    #[expect(clippy::disallowed_methods, reason = "a door opens files")]
    let file = std::fs::File::open(path).map_err(|error| unread(error.to_string()))?;
    let mut text = String::new();
    MultiGzDecoder::new(file)
        .read_to_string(&mut text)
        .map_err(|error| unread(error.to_string()))?;
    parse(&text).ok_or_else(|| unread("it is not the census".into()))
}

fn parse(text: &str) -> Option<Dataset> {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != 15 {
            continue;
        }
        features.extend(row(&cells)?);
        labels.push(u32::from(cells[14].starts_with(">50K")));
    }
    let width = features.len().checked_div(labels.len())?;
    Dataset::with_classes(vec![width], features, labels, 2)
}

fn row(cells: &[&str]) -> Option<Vec<f32>> {
    let number = |at: usize| cells[at].parse::<f32>().ok();
    let (age, years, hours) = (number(0)?, number(4)?, number(12)?);
    let gain = number(10)?;
    // Income falls with age in the end.
    let mut row = vec![
        age / 50.0,
        (age / 50.0) * (age / 50.0),
        years / 10.0,
        (gain / 15_000.0).min(1.0) * 3.0,
        (1.0 + gain).ln() / 10.0,
        (1.0 + number(11)?).ln() / 10.0,
        (hours / 40.0).min(2.0),
    ];
    for (at, texts) in TEXTS {
        row.extend(
            texts
                .iter()
                .map(|text| f32::from(u8::from(cells[at] == *text))),
        );
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_numbers_and_dots_do_not_matter() {
        let line = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K";
        let text = format!(
            "|1x3 Cross validator\n{line}\n{}.\n\n",
            line.replace("<=", ">")
        );
        let data = parse(&text).expect("two rows");
        assert_eq!(
            (data.rows(), data.width(), data.classes()),
            (2, 30, Some(2))
        );
        let example = data.example(1).expect("fits");
        assert!(example.answer == whit_learn::data::Answer::Class(1));
        // One for each column of text, and forty hours.
        assert_eq!(example.features.iter().filter(|x| **x == 1.0).count(), 4);
        assert!(parse("no rows").is_none());
    }
}
