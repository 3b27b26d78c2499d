//! Votes: for each public query, how many teachers chose each class.
//!
//! Votes that an ensemble of ours has cast know between which neighbours one teacher differs, by the rule that dealt examples out ([`Votes::relation`]). Those of a program or a file do not: that is vouched for.
//!
//! Which teacher voted how is dropped at once: nothing needs it. How many teachers there are is public: the same number votes on every query, or it is declared, and then
//! some may abstain (their vote moves a count by one instead of two, which every bound covers).

use std::path::Path;

use whit_core::{Neighbours, Secret};
use whit_mechanism::gaussian_noisy_max::VOTERS_MAX;

use super::error::VotesError;
use crate::Result;
use crate::data::{Matrix, matrix};

/// How a table holds votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A row for each teacher, a column for each query: class numbers.
    Votes,
    /// A row for each query, a column for each class: how many teachers.
    Histogram,
}

/// What somebody says about votes without looking at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// How many classes there are.
    pub classes: Option<usize>,
    /// How many teachers.
    pub teachers: Option<u64>,
}

/// Counts of votes, query by query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes {
    counts: Vec<u64>,
    classes: usize,
    teachers: u64,
    relation: Option<Neighbours>,
}

impl Votes {
    /// From counts, query by query, of teachers who all vote on every query.
    pub fn from_histogram(counts: &[u64], classes: usize) -> std::result::Result<Self, VotesError> {
        let sums = sums(counts, classes)?;
        if sums.iter().any(|sum| *sum != sums[0]) {
            return Err(VotesError::Unequal { teachers: None });
        }
        Self::of(counts, classes, sums[0])
    }

    /// From counts of a declared number of teachers, who may abstain.
    pub fn with_teachers(
        counts: &[u64],
        classes: usize,
        teachers: u64,
    ) -> std::result::Result<Self, VotesError> {
        if sums(counts, classes)?.iter().any(|sum| *sum > teachers) {
            return Err(VotesError::Unequal {
                teachers: Some(teachers),
            });
        }
        Self::of(counts, classes, teachers)
    }

    fn of(counts: &[u64], classes: usize, teachers: u64) -> std::result::Result<Self, VotesError> {
        match teachers {
            0 => Err(VotesError::Empty { what: "teacher" }),
            1..=VOTERS_MAX => Ok(Self {
                counts: counts.to_vec(),
                classes,
                teachers,
                relation: None,
            }),
            _ => Err(VotesError::NoCount { most: VOTERS_MAX }),
        }
    }

    /// From class numbers, teacher by teacher, on so many queries each.
    pub fn from_votes(
        votes: &[u32],
        queries: usize,
        classes: usize,
    ) -> std::result::Result<Self, VotesError> {
        if queries == 0 {
            return Err(VotesError::Empty { what: "query" });
        }
        if votes.is_empty() {
            return Err(VotesError::Empty { what: "teacher" });
        }
        if classes < 2 {
            return Err(VotesError::Classes { classes });
        }
        if !votes.len().is_multiple_of(queries) {
            return Err(VotesError::Ragged { width: queries });
        }
        let cells = queries
            .checked_mul(classes)
            .filter(|cells| *cells <= 1 << 32);
        let cells = cells.ok_or(VotesError::NoCount { most: VOTERS_MAX })?;
        let mut counts = vec![0; cells];
        for teacher in votes.chunks_exact(queries) {
            for (query, vote) in teacher.iter().enumerate() {
                let class = *vote as usize;
                if class >= classes {
                    return Err(VotesError::OutOfRange { last: classes - 1 });
                }
                counts[query * classes + class] += 1;
            }
        }
        Self::from_histogram(&counts, classes)
    }

    /// Reads a table: npy, CSV with a line of names, or Parquet. Whatever does not fit is refused with a text for the owner, before anything is charged. Without a
    /// number of classes, that of a histogram is its width, and that of votes is found in the votes: then it must be no secret.
    pub fn read(path: &Path, layout: Layout, declared: Declared) -> Result<Secret<Self>> {
        let Declared { classes, teachers } = declared;
        let Matrix { values, width } = matrix(path)?;
        let votes = match layout {
            Layout::Histogram => {
                if let Some(declared) = classes.filter(|declared| *declared != width) {
                    return Err(VotesError::OtherClasses {
                        declared,
                        found: width,
                    }
                    .into());
                }
                let most = VOTERS_MAX as f64;
                let counts: Option<Vec<u64>> =
                    values.into_iter().map(|value| whole(value, most)).collect();
                let counts = counts.ok_or(VotesError::NoCount { most: VOTERS_MAX })?;
                match teachers {
                    Some(teachers) => Self::with_teachers(&counts, width, teachers)?,
                    None => Self::from_histogram(&counts, width)?,
                }
            }
            Layout::Votes => {
                let largest = values
                    .iter()
                    .copied()
                    .filter(|value| value.is_finite())
                    .fold(0.0, f64::max);
                let classes =
                    classes.unwrap_or_else(|| (largest.min(CLASSES_FOUND_MAX) as usize) + 1);
                let last = classes.saturating_sub(1);
                let votes = values.into_iter().map(|value| whole(value, last as f64));
                let votes: Option<Vec<u32>> = votes.map(|vote| u32::try_from(vote?).ok()).collect();
                let votes = votes.ok_or(VotesError::OutOfRange { last })?;
                let votes = Self::from_votes(&votes, width, classes)?;
                if teachers.is_some_and(|teachers| teachers != votes.teachers) {
                    return Err(VotesError::Unequal { teachers }.into());
                }
                votes
            }
        };
        Ok(Secret::new(votes))
    }

    /// How many queries there are. Public.
    pub fn queries(&self) -> usize {
        self.counts.len() / self.classes
    }

    /// How many classes. Public.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How many teachers. Public.
    pub fn teachers(&self) -> u64 {
        self.teachers
    }

    /// Between which neighbours one teacher differs, if an ensemble of ours has cast the votes. Public.
    pub fn relation(&self) -> Option<Neighbours> {
        self.relation
    }

    /// As cast by an ensemble whose rule has this relation.
    pub(super) fn between(self, relation: Neighbours) -> Self {
        let relation = Some(relation);
        Self { relation, ..self }
    }

    /// Refuses to be told of under another relation than that of the rule by which examples were dealt out.
    pub(super) fn check_relation(&self, priced: Neighbours) -> std::result::Result<(), VotesError> {
        match self.relation {
            Some(cast) if cast != priced => Err(VotesError::OtherRelation { cast, priced }),
            _ => Ok(()),
        }
    }

    /// The counts of a query.
    pub fn counts(&self, query: usize) -> &[u64] {
        &self.counts[query * self.classes..(query + 1) * self.classes]
    }

    /// The counts of a query as floats, for costs.
    pub(crate) fn floats(&self, query: usize) -> Vec<f64> {
        self.counts(query)
            .iter()
            .map(|count| *count as f64)
            .collect()
    }
}

/// How many vote on each query; at least one query.
fn sums(counts: &[u64], classes: usize) -> std::result::Result<Vec<u64>, VotesError> {
    if classes < 2 {
        return Err(VotesError::Classes { classes });
    }
    if counts.is_empty() {
        return Err(VotesError::Empty { what: "query" });
    }
    if !counts.len().is_multiple_of(classes) {
        return Err(VotesError::Ragged { width: classes });
    }
    let rows = counts.chunks_exact(classes);
    let sums = rows.map(|row| row.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n)));
    let sums = sums.collect::<Option<Vec<u64>>>();
    sums.ok_or(VotesError::NoCount { most: VOTERS_MAX })
}

/// More classes than this are not found in votes; they can be declared.
const CLASSES_FOUND_MAX: f64 = 65_535.0;

/// A whole number from 0 to `most`.
fn whole(value: f64, most: f64) -> Option<u64> {
    (value >= 0.0 && value <= most && value.fract() == 0.0).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

    use super::*;
    use whit_core::Fault;

    fn read(
        name: &str,
        bytes: &[u8],
        layout: Layout,
        classes: Option<usize>,
    ) -> std::result::Result<Votes, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        let declared = Declared {
            classes,
            teachers: None,
        };
        Votes::read(&path, layout, declared)
            .map(Secret::expose)
            .map_err(|error| error.code().to_owned())
    }

    fn npy(kind: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(numbers);
        bytes
    }

    #[test]
    fn both_layouts_count_the_same() {
        let votes = Votes::from_votes(&[0, 1, 2, 0, 1, 1], 3, 3).expect("two teachers");
        assert_eq!(
            votes,
            Votes::from_histogram(&[2, 0, 0, 0, 2, 0, 0, 1, 1], 3).expect("counts")
        );
        assert_eq!(
            (votes.queries(), votes.classes(), votes.teachers()),
            (3, 3, 2)
        );
        assert_eq!(votes.counts(2), [0, 1, 1]);
    }

    /// A Parquet file of whole numbers, row by row.
    fn parquet(width: usize, numbers: &[i64]) -> Vec<u8> {
        use std::sync::Arc;

        use parquet::column::writer::ColumnWriter;
        use parquet::file::writer::SerializedFileWriter;
        use parquet::schema::parser::parse_message_type;

        let columns = (0..width).map(|place| format!("required int64 c{place};"));
        let schema = format!("message votes {{ {} }}", columns.collect::<String>());
        let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
        let mut bytes = Vec::new();
        let writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default());
        let mut writer = writer.expect("a writer");
        let mut rows = writer.next_row_group().expect("a group");
        let mut place = 0;
        while let Some(mut column) = rows.next_column().expect("a column") {
            let cells: Vec<i64> = numbers.iter().copied().skip(place).step_by(width).collect();
            let ColumnWriter::Int64ColumnWriter(cells_of) = column.untyped() else {
                panic!("integers of 64 bits")
            };
            cells_of.write_batch(&cells, None, None).expect("all rows");
            column.close().expect("a column");
            place += 1;
        }
        rows.close().expect("a group");
        writer.close().expect("a file");
        bytes
    }

    /// Votes that lie on their side are those of as many teachers as there were queries.
    #[test]
    fn votes_have_as_many_teachers_as_were_declared() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |text: &str, teachers| {
            let path = folder.path().join("v.csv");
            std::fs::write(&path, text).expect("written");
            let declared = Declared {
                classes: Some(3),
                teachers: Some(teachers),
            };
            let votes = Votes::read(&path, Layout::Votes, declared);
            votes.map(Secret::expose).map_err(|error| error.code())
        };
        let votes = read("a,b,c\n0,1,2\n0,1,1\n", 2).expect("two teachers");
        assert_eq!((votes.teachers(), votes.queries()), (2, 3));
        let turned = read("a,b\n0,0\n1,1\n2,1\n", 2);
        assert_eq!(turned, Err("votes_unequal"));
    }

    #[test]
    fn files_of_all_kinds_are_read() {
        let expected = Votes::from_votes(&[0, 1, 2, 0, 1, 1], 3, 3).expect("two teachers");
        let bytes = npy("|u1", "(2, 3)", &[0, 1, 2, 0, 1, 1]);
        assert_eq!(
            read("v.npy", &bytes, Layout::Votes, None).as_ref(),
            Ok(&expected)
        );
        assert_eq!(
            read("v.npy", &bytes, Layout::Votes, Some(3)).as_ref(),
            Ok(&expected)
        );
        assert_eq!(
            read("v.csv", b"a,b,c\n0,1,2\n0,1,1\n", Layout::Votes, None).as_ref(),
            Ok(&expected)
        );
        assert_eq!(
            read("v.csv", b"0,1,2\n0,1,2\n0,1,1\n", Layout::Votes, None).as_ref(),
            Ok(&expected)
        );
        let longs = [2_i64, 0, 0, 0, 2, 0, 0, 1, 1]
            .map(i64::to_le_bytes)
            .concat();
        let histogram = read(
            "h.npy",
            &npy("<i8", "(3, 3)", &longs),
            Layout::Histogram,
            None,
        );
        assert_eq!(histogram.as_ref(), Ok(&expected));
        assert_eq!(
            read(
                "h.csv",
                b"x,y,z\n2,0,0\n0,2,0\n0,1,1\n",
                Layout::Histogram,
                Some(3)
            )
            .as_ref(),
            Ok(&expected)
        );
    }

    #[test]
    fn parquet_files_of_both_layouts_are_read() {
        let expected = Votes::from_votes(&[0, 1, 2, 0, 1, 1], 3, 3).expect("two teachers");
        let votes = parquet(3, &[0, 1, 2, 0, 1, 1]);
        let histogram = parquet(3, &[2, 0, 0, 0, 2, 0, 0, 1, 1]);
        for classes in [None, Some(3)] {
            let found = read("v.parquet", &votes, Layout::Votes, classes);
            assert_eq!(found.as_ref(), Ok(&expected));
            let found = read("h.parquet", &histogram, Layout::Histogram, classes);
            assert_eq!(found.as_ref(), Ok(&expected));
        }
        let half = &votes[votes.len() / 2..];
        let damaged = read("v.parquet", half, Layout::Votes, None);
        assert_eq!(damaged, Err("data_malformed".into()));
        let negative = read("v.parquet", &parquet(2, &[0, -1]), Layout::Votes, None);
        assert_eq!(negative, Err("votes_out_of_range".into()));
    }

    #[test]
    fn bad_input_is_refused_by_its_rule() {
        let check = |name: &str, bytes: &[u8], layout, classes, code: &str| {
            let found = read(name, bytes, layout, classes);
            assert_eq!(
                found,
                Err(code.to_owned()),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        };
        let (votes, histogram) = (Layout::Votes, Layout::Histogram);
        check("v.csv", b"a,b\n0,1\n0\n", votes, None, "data_malformed");
        // Numbers of rows would be a query, and each label be told of the next one.
        check(
            "v.csv",
            b",a,b\n0,0,1\n1,0,1\n",
            votes,
            None,
            "data_malformed",
        );
        check(
            "v.csv",
            b"a,b\n0,1\n0,7\n",
            votes,
            Some(2),
            "votes_out_of_range",
        );
        check(
            "v.csv",
            b"a,b\n0,1\n0,-1\n",
            votes,
            Some(2),
            "votes_out_of_range",
        );
        check(
            "v.csv",
            b"a,b\n0,1\n0,0.5\n",
            votes,
            Some(2),
            "votes_out_of_range",
        );
        check(
            "v.csv",
            b"a,b\n0,1\n0,nan\n",
            votes,
            None,
            "votes_out_of_range",
        );
        check(
            "v.csv",
            b"a,b\n0,1\n0,\n",
            votes,
            None,
            "votes_out_of_range",
        );
        check("v.csv", b"a,b\n", votes, Some(2), "votes_empty");
        check("v.csv", b"a,b\n0,0\n", votes, None, "votes_classes");
        check("v.csv", b"a,b\n0,0\n", votes, Some(1), "votes_classes");
        check("v.csv", b"3,1\n0,1\n", votes, None, "data_malformed");
        check(
            "h.csv",
            b"a,b\n3,1\n-1,5\n",
            histogram,
            None,
            "votes_no_count",
        );
        check(
            "h.csv",
            b"a,b\n3,1\n2.5,1.5\n",
            histogram,
            None,
            "votes_no_count",
        );
        check(
            "h.csv",
            b"a,b\n3,1\ninf,1\n",
            histogram,
            None,
            "votes_no_count",
        );
        check("h.csv", b"a,b\n0,0\n", histogram, None, "votes_empty");
        check("h.csv", b"a\n3\n", histogram, None, "votes_classes");
        check(
            "h.csv",
            b"a,b\n3,1\n",
            histogram,
            Some(3),
            "votes_other_classes",
        );
        check(
            "h.npy",
            &npy("|u1", "(2,)", &[1, 2]),
            histogram,
            None,
            "data_malformed",
        );
        check(
            "h.npy",
            &npy("|u1", "(2, 2)", &[1, 2, 3]),
            histogram,
            None,
            "data_malformed",
        );
        check(
            "h.npy",
            &npy(
                "<f8",
                "(1, 2)",
                &[f64::NAN, 1.0].map(f64::to_le_bytes).concat(),
            ),
            histogram,
            None,
            "votes_no_count",
        );
        check("h.txt", b"1 2", histogram, None, "data_malformed");
        check(
            "h.csv",
            b"a,b\n3,1\n3,2\n",
            histogram,
            None,
            "votes_unequal",
        );
        assert!(Votes::with_teachers(&[3, 1, 3, 2], 2, 5).is_ok_and(|votes| votes.teachers() == 5));
        assert!(Votes::with_teachers(&[3, 1, 3, 2], 2, 4).is_err());
        assert!(
            Votes::from_votes(&[0, 1, 0], 2, 2).is_err()
                && Votes::from_histogram(&[1, 2, 3], 2).is_err()
        );
        assert!(
            Votes::from_votes(&[], 0, 2).is_err()
                && Votes::from_histogram(&[u64::MAX, 1], 2).is_err()
        );
    }
}
