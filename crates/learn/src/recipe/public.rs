//! What can be refused by a plan and the public part of its files: for a dry run, and before anything is read or paid.

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::path::Path;

use super::Recipe;
use crate::data::{Classes, Declaration, Format, PerChannel, check_apart, survey_if_there};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::search::SearchPlan;

impl Recipe {
    /// Refuses all that can be refused without reading a row, by the headers of files that are there and by what is declared of others.
    pub fn check_unread(&self, plan: &Plan, folder: &Path) -> Result<()> {
        self.check_test(folder)?;
        self.check_declared()?;
        let shape = survey_if_there(&self.data, folder)?;
        self.check_shapes(plan, shape, folder)
    }

    /// The same where the file of the private data is somebody else's to open.
    pub fn check_unopened(&self, plan: &Plan, folder: &Path) -> Result<()> {
        self.check_test(folder)?;
        self.check_declared()?;
        self.check_shapes(plan, self.data.shape_declared(), folder)
    }

    /// The same for a search: every candidate is checked.
    pub fn check_search_unread(&self, search: &SearchPlan, folder: &Path) -> Result<()> {
        self.check_test(folder)?;
        self.check_declared()?;
        let shape = survey_if_there(&self.data, folder)?;
        self.check_search_shapes(search, shape, folder)
    }

    /// The same where the file of the private data is somebody else's to open.
    pub fn check_search_unopened(&self, search: &SearchPlan, folder: &Path) -> Result<()> {
        self.check_test(folder)?;
        self.check_declared()?;
        self.check_search_shapes(search, self.data.shape_declared(), folder)
    }

    fn check_search_shapes(
        &self,
        search: &SearchPlan,
        shape: Option<Vec<usize>>,
        folder: &Path,
    ) -> Result<()> {
        if let Some(shape) = &shape {
            search.check(self, shape)?;
        }
        self.check_sections(shape, folder)
    }

    /// What is shown of `[test]` is shown as it is, and by `[validation]` runs are chosen.
    fn check_test(&self, folder: &Path) -> Result<()> {
        for public in self.test.iter().chain(&self.validation) {
            check_apart(public, &self.data, folder)?;
        }
        Ok(())
    }

    fn check_declared(&self) -> Result<()> {
        self.check_examples()?;
        self.method(0, NonZeroUsize::MIN)?;
        let classes = self.data.classes.as_ref().map(Classes::count);
        Ok(self
            .model
            .check(classes.map_or(1, |count| count as usize))?)
    }

    fn check_shapes(&self, plan: &Plan, shape: Option<Vec<usize>>, folder: &Path) -> Result<()> {
        if let Some(shape) = &shape {
            self.check(plan, shape)?;
        }
        self.check_sections(shape, folder)
    }

    fn check_sections(&self, shape: Option<Vec<usize>>, folder: &Path) -> Result<()> {
        for (section, public) in [("test", &self.test), ("validation", &self.validation)] {
            if let Some(public) = public {
                let named = |error| in_section(section, error);
                self.check_public(public, shape.as_deref(), folder)
                    .map_err(named)?;
            }
        }
        Ok(())
    }

    fn check_public(
        &self,
        public: &Declaration,
        shape: Option<&[usize]>,
        folder: &Path,
    ) -> Result<()> {
        public.check()?;
        alike(&self.data, public)?;
        let features = |shape: &[usize]| shape.iter().product::<usize>();
        let found = survey_if_there(public, folder)?;
        match shape.zip(found) {
            Some((data, test)) if features(data) != features(&test) => {
                Err(differs("shape", &test, &data.to_vec()))
            }
            _ => Ok(()),
        }
    }
}

/// Which of the public sections it is about.
fn in_section(section: &'static str, error: Error) -> Error {
    match error {
        Error::OtherTest {
            field, test, data, ..
        } => Error::OtherTest {
            section,
            field,
            test,
            data,
        },
        other => other,
    }
}

/// Refuses public data whose numbers would mean something else to the model than the private ones do.
pub(crate) fn alike(data: &Declaration, test: &Declaration) -> Result<()> {
    let (one, other) = (data.format()?, test.format()?);
    let is_table = |format| matches!(format, Format::Csv | Format::Parquet);
    if let (Some(data), Some(test)) = (&data.shape, &test.shape)
        && data != test
    {
        return Err(differs("shape", test, data));
    }
    if is_table(one) && is_table(other) && data.columns != test.columns {
        return Err(differs("columns", &test.columns, &data.columns));
    }
    if data.categories != test.categories {
        return Err(differs("categories", &test.categories, &data.categories));
    }
    let count = |declared: &Declaration| declared.classes.as_ref().map(Classes::count);
    let names = |declared: &Declaration| {
        let names = declared.classes.as_ref().and_then(Classes::names);
        names.map(<[String]>::to_vec)
    };
    match (names(data), names(test)) {
        (Some(data), Some(test)) if data != test => return Err(differs("classes", &test, &data)),
        _ if count(data) != count(test) => {
            return Err(differs("classes", &count(test), &count(data)));
        }
        _ => {}
    }
    for (field, data, test, otherwise) in [
        ("mean", &data.mean, &test.mean, 0.0),
        ("std", &data.std, &test.std, 1.0),
    ] {
        if !same(data.as_ref(), test.as_ref(), otherwise) {
            return Err(differs(field, &numbers(test), &numbers(data)));
        }
    }
    // Bytes and floats of the same pictures have other scales, and only their headers tell which they are.
    let is_told = is_table(one)
        || matches!(one, Format::Images | Format::Sheets)
        || data.scale.is_some() == test.scale.is_some();
    if one == other && is_told && data.scale != test.scale {
        return Err(differs("scale", &test.scale, &data.scale));
    }
    Ok(())
}

fn numbers(given: &Option<PerChannel>) -> Option<&[f64]> {
    given.as_ref().map(PerChannel::values)
}

/// One number for all channels is the same as that number for each.
fn same(one: Option<&PerChannel>, other: Option<&PerChannel>, otherwise: f64) -> bool {
    let otherwise = [otherwise];
    let values = |given: Option<&PerChannel>| {
        given.map_or(otherwise.to_vec(), |given| given.values().to_vec())
    };
    let (one, other) = (values(one), values(other));
    match (&one[..], &other[..]) {
        ([one], others) | (others, [one]) => others.iter().all(|other| other == one),
        (one, other) => one == other,
    }
}

fn differs<T: Words>(field: &'static str, test: &T, data: &T) -> Error {
    Error::OtherTest {
        section: "test",
        field,
        test: test.words(),
        data: data.words(),
    }
}

/// As it would stand in a plan.
trait Words {
    fn words(&self) -> String;
}

impl<T: Debug> Words for Vec<T> {
    fn words(&self) -> String {
        format!("{self:?}")
    }
}

impl<T: Debug> Words for Option<T> {
    fn words(&self) -> String {
        self.as_ref()
            .map_or("not given".into(), |given| format!("{given:?}"))
    }
}
