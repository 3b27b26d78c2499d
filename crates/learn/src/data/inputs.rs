//! What a model takes, as the numbers of a file: which columns in which order, and the constants by which they are made small. All of it is declared, or stands in the public
//! part of a file (see the module above), so that it may stand on a card. Whoever has a model and this can use it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Format;

/// What a model takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The kind of data.
    pub format: Format,
    /// The columns that are features, in order; empty where there are none.
    pub columns: Vec<String>,
    /// Columns of text, each with all that it may hold, in order. Such a column is as many features, of which that of the row's category is 1 and the others are 0.
    pub categories: BTreeMap<String, Vec<String>>,
    /// Of one example.
    pub shape: Vec<usize>,
    /// What each number is multiplied by first.
    pub scale: f64,
    /// What is then subtracted, for each entry of the shape's first side.
    pub mean: Vec<f64>,
    /// What is then divided by.
    pub std: Vec<f64>,
}

impl Inputs {
    /// A name for each feature of a table, such as `age` or `sex=Female`; none where there are no columns.
    pub fn feature_names(&self) -> Vec<String> {
        let each = |column: &String| match self.categories.get(column) {
            Some(names) => names
                .iter()
                .map(|name| format!("{column}={}", name.trim()))
                .collect(),
            None => vec![column.clone()],
        };
        self.columns.iter().flat_map(each).collect()
    }

    /// Is every number taken as it is?
    pub fn is_plain(&self) -> bool {
        self.scale == 1.0
            && self.mean.iter().all(|mean| *mean == 0.0)
            && self.std.iter().all(|std| *std == 1.0)
    }

    /// The normalisation in words.
    pub fn normalisation_words(&self) -> String {
        if self.is_plain() {
            return "none: numbers are taken as they are".into();
        }
        let list = |values: &[f64]| match values {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => first.to_string(),
            _ => format!("{values:?}"),
        };
        let of = match self.mean.len() {
            1 => "",
            _ if self.columns.is_empty() => ", for each entry of the shape's first side",
            _ => ", for each feature in order",
        };
        format!(
            "(x · {} - mean) / std, mean {}, std {}{of}",
            self.scale,
            list(&self.mean),
            list(&self.std)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_names_and_constants_have_words() {
        let mut inputs = Inputs {
            format: Format::Csv,
            columns: vec!["age".into(), "sex".into()],
            categories: BTreeMap::from([("sex".into(), vec!["F".into(), " M".into()])]),
            shape: vec![3],
            scale: 1.0,
            mean: vec![0.0; 3],
            std: vec![1.0; 3],
        };
        assert_eq!(inputs.feature_names(), ["age", "sex=F", "sex=M"]);
        assert!(inputs.is_plain() && inputs.normalisation_words().starts_with("none"));
        inputs.mean[0] = 40.0;
        assert_eq!(
            inputs.normalisation_words(),
            "(x · 1 - mean) / std, mean [40.0, 0.0, 0.0], std 1, for each feature in order"
        );
    }
}
