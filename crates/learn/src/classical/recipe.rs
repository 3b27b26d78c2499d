//! # The file of a classical plan
//! All that `whit train` is told of a fit: which data, where their values lie, which model, and what it may cost.
//!
//! ```toml
//! [data]
//! path = "people.csv"
//! label = "income"
//! classes = ["<=50K", ">50K"]
//! columns = ["age", "workclass"]
//! [data.categories]            # columns of text, with all that they may hold
//! workclass = ["Private", "State-gov", "?"]
//!
//! [bounds]                     # all other columns, and the label if it is a number
//! age = [17, 90]
//!
//! [model]
//! kind = "naive_bayes"
//!
//! [plan]
//! epsilon = 1.0
//! delta = 1e-6                 # or 0, for pure differential privacy
//! ```
//!
//! A field that is not known, or that is of no use beside the others, is refused: a plan means what it says.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whit_core::{Delta, Epsilon, Mechanism, Neighbours};

use super::{
    AnyPlan, BoostedStumpsPlan, Boosting, Budget, Classical, DecisionForestPlan, Domain,
    ForestShape, Interval, KMeansPlan, LinearRegressionPlan, Lloyd, MinimaPerturbationPlan,
    NaiveBayesPlan, Origin, PcaPlan, Penalised,
};
use crate::card::Search;
use crate::data::{Classes, Coding, Declaration, Format, survey_if_there};
use crate::error::{Error, Result, within};
use crate::payment::Priced;
use crate::recipe::public::alike;

/// A promise that may fail for one in ten is none.
const DELTA_END: f64 = 0.1;
/// What stands for all features of data without columns.
const ALL: &str = "features";

/// Everything in the file of a classical plan. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitRecipe {
    /// The name of the model, for its card.
    pub title: Option<String>,
    /// How many other runs on the same data were made to choose the numbers of this one, for the card; they are not charged here.
    pub searched: Option<u64>,
    /// The private data.
    pub data: Declaration,
    /// Data that are public.
    pub test: Option<Declaration>,
    /// Where the values of each column lie; `features` for all, and `label`, where there are no columns.
    #[serde(default)]
    pub bounds: BTreeMap<String, [f64; 2]>,
    /// The model.
    pub model: ModelSection,
    /// What it may cost.
    pub plan: BudgetSection,
}

/// A kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Gaussian naive Bayes.
    NaiveBayes,
    /// Linear regression.
    LinearRegression,
    /// k-means.
    KMeans,
    /// Principal components.
    Pca,
    /// A decision forest.
    Forest,
    /// Gradient-boosted stumps.
    BoostedStumps,
    /// Logistic regression by approximate-minima perturbation.
    MinimaPerturbation,
}

impl Kind {
    /// All kinds, by their words.
    pub const WORDS: [(&'static str, Self); 7] = [
        ("naive_bayes", Self::NaiveBayes),
        ("linear_regression", Self::LinearRegression),
        ("k_means", Self::KMeans),
        ("pca", Self::Pca),
        ("forest", Self::Forest),
        ("boosted_stumps", Self::BoostedStumps),
        ("minima_perturbation", Self::MinimaPerturbation),
    ];

    /// The kind that a word means, if it is that of a classical model.
    pub fn of(word: &str) -> Option<Self> {
        let mut words = Self::WORDS.iter();
        words.find(|known| known.0 == word).map(|known| known.1)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        words
            .find(|known| known.1 == self)
            .map_or("", |known| known.0)
    }

    /// The fields that it takes.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::NaiveBayes => &[],
            Self::LinearRegression => &["ridge"],
            Self::KMeans => &["clusters", "rounds", "seed"],
            Self::Pca => &["components", "about", "centre", "norm"],
            Self::Forest => &["trees", "depth", "features_per_node", "bins", "seed"],
            Self::BoostedStumps => &["epochs", "leaves", "rate", "bins", "seed"],
            Self::MinimaPerturbation => &["norm", "penalty"],
        }
    }

    /// What has such a field in vain, or needs it.
    fn of_kind(self) -> &'static str {
        match self {
            Self::NaiveBayes => "a model of kind \"naive_bayes\"",
            Self::LinearRegression => "a model of kind \"linear_regression\"",
            Self::KMeans => "a model of kind \"k_means\"",
            Self::Pca => "a model of kind \"pca\"",
            Self::Forest => "a model of kind \"forest\"",
            Self::BoostedStumps => "a model of kind \"boosted_stumps\"",
            Self::MinimaPerturbation => "a model of kind \"minima_perturbation\"",
        }
    }
}

/// `[model]`. Which fields are taken depends on the kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSection {
    /// The kind.
    pub kind: Kind,
    /// How many examples are added in all directions (`linear_regression`); else none.
    pub ridge: Option<f64>,
    /// How many centres (`k_means`).
    pub clusters: Option<usize>,
    /// How often they move (`k_means`); else 5.
    pub rounds: Option<usize>,
    /// Where chance of the model's own begins (`k_means`, `forest`, `boosted_stumps`); else 0. Public.
    pub seed: Option<u64>,
    /// How many components (`pca`).
    pub components: Option<usize>,
    /// What examples are away from (`pca`); else the middles of the bounds.
    pub centre: Option<Vec<f64>>,
    /// What components are about (`pca`), `mean` or `centre`; else `mean`, which is released as well.
    pub about: Option<Origin>,
    /// How far they are at most (`pca`); else as far as the corners of the bounds. How long they are at most (`minima_perturbation`), where each number is its place between its bounds, from -1/2 to 1/2, and each category 1; else as long as they can be.
    pub norm: Option<f64>,
    /// How many trees (`forest`); else 4.
    pub trees: Option<usize>,
    /// How deep they are (`forest`); else 5.
    pub depth: Option<usize>,
    /// Among how many features a node chooses (`forest`); else 4.
    pub features_per_node: Option<usize>,
    /// How often each feature has its turn (`boosted_stumps`); else from 2 to 40, more if more may be spent.
    pub epochs: Option<usize>,
    /// Into how many leaves its values are cut (`boosted_stumps`); else 3.
    pub leaves: Option<usize>,
    /// By which share of a step scores move (`boosted_stumps`); else 0.8.
    pub rate: Option<f64>,
    /// How strongly weights are held at zero (`minima_perturbation`); else so that it costs three tenths of epsilon, or less.
    pub penalty: Option<f64>,
    /// Into how many bins a number's bounds are cut (`forest`, `boosted_stumps`); else 32.
    pub bins: Option<usize>,
}

/// `[plan]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSection {
    /// What the fit may cost.
    pub epsilon: f64,
    /// The slack; zero asks for pure differential privacy.
    pub delta: f64,
    /// `add_remove`, which is the only relation here.
    pub relation: Option<Neighbours>,
}

/// The price of a fit, for a dry run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitSummary {
    /// The kind of model.
    pub kind: Kind,
    /// The event costs no less than this; zero where nothing is proven. A fit may cost a little less than its event, where examples are not quite as long as it says.
    pub epsilon_lower: f64,
    /// No more than this.
    pub epsilon_upper: f64,
    /// The slack.
    pub delta: f64,
    /// Between which data sets the promise is.
    pub relation: Neighbours,
    /// The noise: `laplace` or `gaussian`.
    pub mechanism: &'static str,
    /// How often it is added.
    pub rounds: usize,
    /// Its standard deviation, where what an example adds to a count is one.
    pub noise_deviation: f64,
    /// How many numbers an example has.
    pub features: usize,
}

impl FitRecipe {
    /// As it is meant: categories of models with bins are numbers.
    #[must_use]
    pub fn read_as_meant(mut self) -> Self {
        let placed = [Kind::Forest, Kind::BoostedStumps, Kind::MinimaPerturbation];
        if placed.contains(&self.model.kind) {
            self.data.coding = Coding::Place;
            if let Some(test) = &mut self.test {
                test.coding = Coding::Place;
            }
        }
        self
    }

    /// The plan, priced, for data whose header tells so many features; `None` where only the declaration is known, which must then tell.
    pub fn plan(&self, features: Option<usize>) -> Result<AnyPlan> {
        self.check()?;
        let budget = self.budget()?;
        let missing = Error::Field {
            of: "data without a file yet",
            field: "shape",
            missing: true,
            passes: "shape = [784]",
        };
        let declared = self
            .data
            .shape_declared()
            .map(|shape| shape.iter().product());
        let width = features.or(declared).ok_or(missing)?;
        let model = &self.model;
        let seed = model.seed.unwrap_or(0);
        Ok(match model.kind {
            Kind::NaiveBayes => {
                let intervals = self.intervals(width)?;
                AnyPlan::NaiveBayes(NaiveBayesPlan::new(intervals, self.classes()?, budget)?)
            }
            Kind::LinearRegression => {
                let plan =
                    LinearRegressionPlan::new(self.intervals(width)?, self.target()?, budget)?;
                AnyPlan::LinearRegression(plan.with_ridge(model.ridge.unwrap_or(0.0))?)
            }
            Kind::KMeans => {
                let lloyd = Lloyd {
                    clusters: self.needed(model.clusters, "clusters", "clusters = 8")?,
                    rounds: model.rounds.unwrap_or(5),
                    seed,
                };
                AnyPlan::KMeans(KMeansPlan::new(self.intervals(width)?, lloyd, budget)?)
            }
            Kind::Pca => AnyPlan::Pca(self.pca(width, budget)?),
            Kind::Forest => {
                let shape = ForestShape {
                    trees: model.trees.unwrap_or(4),
                    depth: model.depth.unwrap_or(5),
                    features_per_node: model.features_per_node.unwrap_or(4),
                    seed,
                };
                let domains = self.domains(width)?;
                AnyPlan::Forest(DecisionForestPlan::new(
                    domains,
                    self.classes()?,
                    shape,
                    budget,
                )?)
            }
            Kind::BoostedStumps => {
                let domains = self.domains(width)?;
                let fitting = Boosting::fitting(domains.len(), budget);
                let boosting = Boosting {
                    epochs: model.epochs.unwrap_or(fitting.epochs),
                    leaves: model.leaves.unwrap_or(fitting.leaves),
                    rate: model.rate.unwrap_or(fitting.rate),
                    seed,
                };
                AnyPlan::BoostedStumps(BoostedStumpsPlan::new(
                    domains,
                    self.classes()?,
                    boosting,
                    budget,
                )?)
            }
            Kind::MinimaPerturbation => {
                let (domains, classes) = (self.domains(width)?, self.classes()?);
                let fitting = Penalised::fitting(&domains, classes, budget);
                let objective = Penalised {
                    norm: model.norm.unwrap_or(fitting.norm),
                    penalty: model.penalty.unwrap_or(fitting.penalty),
                };
                let plan = MinimaPerturbationPlan::new(domains, classes, objective, budget)?;
                AnyPlan::MinimaPerturbation(Box::new(plan))
            }
        })
    }

    /// The plan by what is declared and by the headers of files that are there. Reads no row.
    pub fn plan_unread(&self, folder: &Path) -> Result<AnyPlan> {
        self.check()?;
        let shape = survey_if_there(&self.data, folder)?;
        let plan = self.plan(shape.map(|shape| shape.iter().product()))?;
        if let Some(test) = &self.test
            && let Some(shape) = survey_if_there(test, folder)?
        {
            let classes = test.classes.as_ref().map(Classes::count);
            plan.takes().check(shape.iter().product(), classes)?;
        }
        Ok(plan)
    }

    /// The same where the file of the private data is somebody else's to open.
    pub fn plan_unopened(&self) -> Result<AnyPlan> {
        self.plan(None)
    }

    /// What it costs, and what noise it adds.
    pub fn summary(&self, plan: &AnyPlan) -> FitSummary {
        let terms = plan.terms();
        let (rounds, first) = match plan.event().mechanism() {
            Mechanism::Composition(parts) => (parts.len(), parts.first()),
            single => (1, Some(single)),
        };
        FitSummary {
            kind: self.model.kind,
            epsilon_lower: terms.epsilon.lower(),
            epsilon_upper: terms.epsilon.upper(),
            delta: terms.budget.delta().value(),
            relation: plan.event().neighbours(),
            mechanism: match first {
                // What is known of a minimum is a guarantee, and which noise it has follows from its kind.
                Some(Mechanism::Gaussian { .. } | Mechanism::Approximate { .. }) => "gaussian",
                Some(Mechanism::DiscreteLaplace { .. } | Mechanism::Pure { .. }) => "laplace",
                _ => "other",
            },
            rounds,
            noise_deviation: terms.deviation,
            features: plan.takes().features,
        }
    }

    /// What tells this plan from all others: every word of it.
    pub fn fingerprint(&self) -> [u8; 32] {
        let text = serde_json::to_vec(self).expect("plain data");
        Sha256::digest(text).into()
    }

    /// How the numbers were chosen, for the card.
    pub fn search(&self) -> Search {
        match self.searched {
            None => Search::NotDeclared,
            Some(0) => Search::None,
            Some(runs) => Search::NotCharged { runs },
        }
    }

    /// Refuses what can be refused by the words alone.
    fn check(&self) -> Result<()> {
        self.data.check()?;
        self.check_fields()?;
        let useless = |field| Error::Field {
            of: "a classical model",
            field,
            missing: false,
            passes: "",
        };
        // Bounds say where values lie, so that nothing needs to be made small.
        for (field, given) in [
            ("mean", self.data.mean.is_some()),
            ("std", self.data.std.is_some()),
        ] {
            if given {
                return Err(useless(field));
            }
        }
        // A category that is multiplied is another one, or none.
        if self.data.scale.is_some() && self.data.categories.is_some() {
            return Err(Error::Field {
                of: "a classical model of columns of text",
                field: "scale",
                missing: false,
                passes: "",
            });
        }
        // Whoever declares classes reads no numbers, and would be refused after the fit was paid for.
        if self.model.kind == Kind::LinearRegression && self.data.classes.is_some() {
            return Err(Error::Field {
                of: self.model.kind.of_kind(),
                field: "classes",
                missing: false,
                passes: "",
            });
        }
        if self.is_table() && self.data.columns.is_none() {
            return Err(Error::Field {
                of: self.model.kind.of_kind(),
                field: "columns",
                missing: true,
                passes: "columns = [\"age\", \"hours\"] in [data]",
            });
        }
        for column in self.bounds.keys() {
            if !self.has_use_for(column) {
                let (column, missing) = (column.clone(), false);
                return Err(Error::Bounds { column, missing });
            }
        }
        match self.plan.relation {
            None | Some(Neighbours::AddRemove) => {}
            Some(_) => {
                return Err(Error::Relation {
                    of: "a classical model",
                    given: "replace_one",
                    passes: "add_remove",
                });
            }
        }
        if let Some(test) = &self.test {
            test.check()?;
            alike(&self.data, test)?;
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<()> {
        let model = &self.model;
        let given = [
            ("ridge", model.ridge.is_some()),
            ("clusters", model.clusters.is_some()),
            ("rounds", model.rounds.is_some()),
            ("seed", model.seed.is_some()),
            ("components", model.components.is_some()),
            ("about", model.about.is_some()),
            ("centre", model.centre.is_some()),
            ("norm", model.norm.is_some()),
            ("trees", model.trees.is_some()),
            ("depth", model.depth.is_some()),
            ("features_per_node", model.features_per_node.is_some()),
            ("epochs", model.epochs.is_some()),
            ("leaves", model.leaves.is_some()),
            ("rate", model.rate.is_some()),
            ("bins", model.bins.is_some()),
            ("penalty", model.penalty.is_some()),
        ];
        let kind = model.kind;
        match given
            .iter()
            .find(|(field, given)| *given && !kind.fields().contains(field))
        {
            Some((field, _)) => Err(Error::Field {
                of: kind.of_kind(),
                field,
                missing: false,
                passes: "",
            }),
            None => Ok(()),
        }
    }

    fn is_table(&self) -> bool {
        matches!(self.data.format(), Ok(Format::Csv | Format::Parquet))
    }

    /// Is a name of `[bounds]` a column of numbers that the model sees, or what stands for all?
    fn has_use_for(&self, column: &str) -> bool {
        let learns_number = self.model.kind == Kind::LinearRegression;
        if !self.is_table() {
            return column == ALL || (column == LABEL && learns_number);
        }
        let is_label = self.data.label.as_deref() == Some(column);
        let mut columns = self.data.columns.iter().flatten();
        let is_feature = columns.any(|name| name == column);
        (is_feature && self.data.categories_of(column).is_none()) || (is_label && learns_number)
    }

    fn budget(&self) -> Result<Budget> {
        let delta = self.plan.delta;
        let passes = (0.0..DELTA_END).contains(&delta);
        let range = "0 for pure differential privacy, or a number below 0.1, and better below one over the number of examples";
        within("delta", delta, passes, range)?;
        Budget::new(Epsilon::new(self.plan.epsilon)?, Delta::new(delta)?)
    }

    fn needed<T>(&self, given: Option<T>, field: &'static str, passes: &'static str) -> Result<T> {
        given.ok_or(Error::Field {
            of: self.model.kind.of_kind(),
            field,
            missing: true,
            passes,
        })
    }

    fn classes(&self) -> Result<u32> {
        let classes = self.data.classes.as_ref().map(Classes::count);
        self.needed(classes, "classes", "classes = [\"no\", \"yes\"] in [data]")
    }

    fn interval(&self, column: &str) -> Result<Interval> {
        match self.bounds.get(column) {
            Some([lower, upper]) => Interval::new(*lower, *upper),
            None => Err(Error::Bounds {
                column: column.into(),
                missing: true,
            }),
        }
    }

    fn target(&self) -> Result<Interval> {
        match (self.is_table(), &self.data.label) {
            (true, Some(label)) => self.interval(label),
            _ => self.interval(LABEL),
        }
    }

    /// Of each feature.
    fn intervals(&self, width: usize) -> Result<Vec<Interval>> {
        let Some(columns) = &self.data.columns else {
            return Ok(vec![self.interval(ALL)?; width]);
        };
        let mut intervals = Vec::with_capacity(width);
        for column in columns {
            match self.data.categories_of(column) {
                Some(names) => intervals.extend(vec![Interval::new(0.0, 1.0)?; names.len()]),
                None => intervals.push(self.interval(column)?),
            }
        }
        Ok(intervals)
    }

    fn domains(&self, width: usize) -> Result<Vec<Domain>> {
        let bins = self.model.bins.unwrap_or(32);
        let Some(columns) = &self.data.columns else {
            return Ok(vec![Domain::numbers(self.interval(ALL)?, bins)?; width]);
        };
        let domain = |column: &String| match self.data.categories_of(column) {
            Some(names) => Domain::categories(names.len()),
            None => Domain::numbers(self.interval(column)?, bins),
        };
        columns.iter().map(domain).collect()
    }

    fn pca(&self, width: usize, budget: Budget) -> Result<PcaPlan> {
        let components = self.needed(self.model.components, "components", "components = 2")?;
        // Bounds have nothing to add where both are given.
        let (centre, norm) = match (&self.model.centre, self.model.norm) {
            (Some(centre), Some(norm)) => (centre.clone(), norm),
            (centre, norm) => {
                let intervals = self.intervals(width)?;
                let middles = || intervals.iter().map(|interval| interval.middle()).collect();
                let squares = intervals
                    .iter()
                    .map(|interval| interval.half_width().powi(2));
                let corner = squares.sum::<f64>().sqrt();
                (
                    centre.clone().unwrap_or_else(middles),
                    norm.unwrap_or(corner),
                )
            }
        };
        if centre.len() != width {
            let (declared, given) = (centre.len(), width);
            return Err(Error::OtherColumns { declared, given });
        }
        let about = self.model.about.unwrap_or(Origin::Mean);
        PcaPlan::new((centre, norm), components, about, budget)
    }
}

/// What stands for the label of data without columns.
const LABEL: &str = "label";
