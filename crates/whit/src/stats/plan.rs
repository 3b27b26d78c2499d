//! From request to answer.
//!
//! [`Plan::new`] refuses all that can be refused: it calibrates the noise, prices the event of the release to come, and
//! compares the price with what was asked. [`Plan::execute`] checks that the release was that event. What is left to fail
//! once data is read is the device it is read from and the operating system's entropy.

use std::io::Read;

use whit_accounting::{Price, calibrate, price};
use whit_core::{
    AddRemove, Confidence, Delta, Entropy, Epsilon, Event, L1, L2, Neighbours, Relation,
    ReplaceOne, Sensitivity,
};
use whit_mechanism::{
    BoundedMean, BoundedSum, Bounds, Contribution, Count, Estimate, Histogram, Noise, NoisyCount,
    NoisyHistogram, NoisyMean, NoisySum, Release,
};

use super::answer::Cost;
use super::{AddedNoise, Answer, Bin, NoiseKind, Part, Request, Statistic, Value};
use crate::rows::{Column, Row, Rows};
use crate::{Error, Result};

/// A request that nothing speaks against. Not `Clone`: one plan, one release.
#[must_use = "a plan that is not executed answers nothing"]
pub struct Plan {
    request: Request,
    contribution: Contribution,
    query: Query,
    noise: Vec<AddedNoise>,
    event: Event,
    charge: Price,
}

/// The query, for its neighbour relation.
enum Query {
    AddRemove(Measure<AddRemove>),
    ReplaceOne(Measure<ReplaceOne>),
}

/// How rows become a secret, and how that is released.
enum Measure<R: Relation> {
    Count(Count<R>, NoisyCount<R>),
    Sum(BoundedSum<R>, NoisySum<R>),
    Mean(BoundedMean<R>, Box<NoisyMean<R>>),
    Histogram(Histogram<R>, NoisyHistogram<R>),
}

/// Calls the same method for either relation.
macro_rules! either {
    ($query:expr, $measure:ident => $call:expr) => {
        match $query {
            Query::AddRemove($measure) => $call,
            Query::ReplaceOne($measure) => $call,
        }
    };
}

impl Plan {
    /// Checks the request. Sees no data and draws no noise.
    pub fn new(request: Request) -> Result<Self> {
        let contribution = request.contribution()?;
        let (query, noise) = match request.relation {
            Neighbours::AddRemove => {
                let (measure, noise) = Measure::new(&request, contribution)?;
                (Query::AddRemove(measure), noise)
            }
            Neighbours::ReplaceOne => {
                let (measure, noise) = Measure::new(&request, contribution)?;
                (Query::ReplaceOne(measure), noise)
            }
            relation => return Err(Error::UnknownRelation { relation }),
        };
        let event = either!(&query, measure => measure.event());
        let charge = price(&event, request.delta)?;
        if charge.epsilon > request.epsilon || charge.delta > request.delta {
            return Err(Error::Overcharged);
        }
        Ok(Self {
            request,
            contribution,
            query,
            noise,
            event,
            charge,
        })
    }

    /// What the release will do to the data.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// What that costs; never more than was asked.
    pub fn charge(&self) -> &Price {
        &self.charge
    }

    /// Reads the data and releases one answer. Complaints are about the header only; a reader that fails gives one
    /// constant error, whatever was read before.
    pub fn execute(self, csv: impl Read, entropy: &mut impl Entropy) -> Result<Answer> {
        let (column, unit) = (self.request.column.as_deref(), self.request.unit.as_deref());
        let mut rows = Rows::open(csv, column.or(unit))?;
        let column = column.map(|name| rows.column(name)).transpose()?;
        let unit = unit.map(|name| rows.column(name)).transpose()?;
        if matches!(self.query, Query::ReplaceOne(_)) && unit.is_none() && rows.columns() == 1 {
            return Err(Error::OneColumn);
        }
        let cell = Cell::new(self.request.statistic, column);
        let release = match unit {
            None => {
                let values = std::iter::from_fn(|| rows.next().map(|row| cell.value(&row)));
                self.release(values, entropy)
            }
            Some(unit) => {
                let owned = std::iter::from_fn(|| next_owned(&mut rows, unit, cell));
                self.release(self.contribution.bound(owned), entropy)
            }
        }?;
        // A release of half a file is no answer.
        rows.finish()?;
        if *release.event() != self.event {
            return Err(Error::EventChanged);
        }
        let value = either!(&self.query, measure => measure.value(release.into_value()));
        let cost = Cost {
            epsilon: self.charge.epsilon,
            delta: self.charge.delta,
        };
        Ok(Answer::new(self.request, cost, value, self.noise))
    }

    fn release(
        &self,
        values: impl Iterator<Item = f64>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<Estimate>>> {
        let confidence = self.request.confidence;
        either!(&self.query, measure => measure.release(values, confidence, entropy))
    }
}

/// The next row that belongs to somebody, with whom it belongs to.
fn next_owned(rows: &mut Rows<impl Read>, unit: Column, cell: Cell) -> Option<(Box<[u8]>, f64)> {
    loop {
        let row = rows.next()?;
        let owner = row.cell(unit);
        if !owner.is_empty() {
            return Some((owner.into(), cell.value(&row)));
        }
    }
}

/// What of a row counts. Absent is `NaN`.
#[derive(Clone, Copy)]
enum Cell {
    Whole,
    NotEmpty(Column),
    Number(Column),
}

impl Cell {
    fn new(statistic: Statistic, column: Option<Column>) -> Self {
        match (statistic, column) {
            (_, None) => Self::Whole,
            (Statistic::Count, Some(column)) => Self::NotEmpty(column),
            (_, Some(column)) => Self::Number(column),
        }
    }

    fn value(self, row: &Row<'_>) -> f64 {
        match self {
            Self::Whole => 0.0,
            Self::NotEmpty(column) if row.cell(column).is_empty() => f64::NAN,
            Self::NotEmpty(_) => 0.0,
            Self::Number(column) => row.number(column),
        }
    }
}

impl<R: Relation> Measure<R> {
    fn new(request: &Request, contribution: Contribution) -> Result<(Self, Vec<AddedNoise>)> {
        let target = Target::new(request)?;
        Ok(match request.statistic {
            Statistic::Count => {
                if request.range.is_some() {
                    return Err(Error::Unused {
                        statistic: "count",
                        parameter: "range",
                    });
                }
                let count = Count::new(contribution);
                let (l1, l2) = (count.sensitivity_l1(), count.sensitivity_l2());
                let noise = target.noise(Share::Whole, l1, l2)?;
                let noisy = count.with_noise(&noise);
                (Self::Count(count, noisy), vec![added(Part::Count, &noise)])
            }
            Statistic::Sum => {
                let sum = BoundedSum::new(bounds(request)?, contribution);
                let (l1, l2) = (sum.sensitivity_l1(), sum.sensitivity_l2());
                let noise = target.noise(Share::Whole, l1, l2)?;
                let noisy = sum.with_noise(&noise).map_err(own_words)?;
                (Self::Sum(sum, noisy), vec![added(Part::Sum, &noise)])
            }
            Statistic::Mean => {
                let mean = BoundedMean::new(bounds(request)?, contribution);
                let (l1, l2) = (mean.sum_sensitivity_l1(), mean.sum_sensitivity_l2());
                let (noise, count_noise) = if mean.count_is_public() {
                    (target.noise(Share::Whole, l1, l2)?, None)
                } else {
                    let count = mean.count();
                    let (count_l1, count_l2) = (count.sensitivity_l1(), count.sensitivity_l2());
                    let count_noise = target.noise(Share::Half, count_l1, count_l2)?;
                    (target.noise(Share::Half, l1, l2)?, Some(count_noise))
                };
                let noisy = mean
                    .with_noise(&noise, count_noise.as_ref())
                    .map_err(own_words)?;
                let mut noises = vec![added(Part::Sum, &noise)];
                noises.extend(count_noise.map(|noise| added(Part::Count, &noise)));
                (Self::Mean(mean, Box::new(noisy)), noises)
            }
            Statistic::Histogram { bins } => {
                let histogram = Histogram::new(bounds(request)?, bins, contribution)?;
                let (l1, l2) = (histogram.sensitivity_l1(), histogram.sensitivity_l2());
                let noise = target.noise(Share::Whole, l1, l2)?;
                let noisy = histogram.with_noise(&noise);
                (
                    Self::Histogram(histogram, noisy),
                    vec![added(Part::Bin, &noise)],
                )
            }
        })
    }

    fn event(&self) -> Event {
        match self {
            Self::Count(_, noisy) => noisy.event(),
            Self::Sum(_, noisy) => noisy.event(),
            Self::Mean(_, noisy) => noisy.event(),
            Self::Histogram(_, noisy) => noisy.event(),
        }
    }

    fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<Estimate>>> {
        let single = |release: Release<Estimate>| release.map(|estimate| vec![estimate]);
        Ok(match self {
            Self::Count(count, noisy) => {
                let rows = values.filter(|value| !value.is_nan()).count();
                single(noisy.release(count.aggregate(rows as u64), confidence, entropy)?)
            }
            Self::Sum(sum, noisy) => {
                single(noisy.release(sum.aggregate(values), confidence, entropy)?)
            }
            Self::Mean(mean, noisy) => {
                single(noisy.release(mean.aggregate(values), confidence, entropy)?)
            }
            Self::Histogram(histogram, noisy) => {
                noisy.release(histogram.aggregate(values), confidence, entropy)?
            }
        })
    }

    /// Post-processing: names what came out.
    fn value(&self, estimates: Vec<Estimate>) -> Value {
        if let Self::Histogram(histogram, _) = self {
            let bin = |(index, estimate): (u32, Estimate)| {
                let (low, high) = histogram.edges(index);
                let interval = [estimate.low, estimate.high];
                Bin {
                    low,
                    high,
                    answer: estimate.answer,
                    interval,
                }
            };
            return Value::Histogram {
                bins: (0..).zip(estimates).map(bin).collect(),
            };
        }
        let single = estimates
            .first()
            .expect("all but histograms release one number");
        let &Estimate { answer, low, high } = single;
        Value::Single { answer, low, high }
    }
}

fn added(to: Part, noise: &Noise) -> AddedNoise {
    let (Noise::Laplace(scale) | Noise::Gaussian(scale)) = noise;
    AddedNoise {
        to,
        scale: scale.ratio().to_f64_up(),
    }
}

/// All statistics but the count need a column and its range.
fn bounds(request: &Request) -> Result<Bounds> {
    let missing = |parameter| Error::Missing {
        statistic: request.statistic.word(),
        parameter,
    };
    if request.column.is_none() {
        return Err(missing("column"));
    }
    request.range.ok_or(missing("range"))
}

/// What a whole answer may cost.
struct Target {
    mechanism: NoiseKind,
    epsilon: Epsilon,
    delta: Delta,
}

/// How much of the target one noise may cost.
#[derive(Clone, Copy)]
enum Share {
    Whole,
    /// One of two that are released together.
    Half,
}

impl Target {
    fn new(request: &Request) -> Result<Self> {
        let &Request {
            mechanism,
            epsilon,
            delta,
            ..
        } = request;
        if epsilon == Epsilon::ZERO {
            let (given, domain) = (epsilon.to_string(), "a finite number above zero");
            return Err(whit_core::Error::OutOfDomain {
                what: "epsilon",
                given,
                domain,
            }
            .into());
        }
        match (mechanism, delta == Delta::ZERO) {
            (NoiseKind::Laplace, false) => Err(Error::DeltaUnused {
                delta: delta.value(),
            }),
            (NoiseKind::Gaussian, true) => Err(Error::DeltaMissing),
            _ => Ok(Self {
                mechanism,
                epsilon,
                delta,
            }),
        }
    }

    /// The least noise that keeps to its share.
    ///
    /// A half is had by calibrating twice the sensitivity to the whole: twice the L1 bound costs twice the epsilon, and
    /// twice the *squared* L2 bound twice the rho. So one of the two real releases costs half, exactly.
    fn noise<R: Relation>(
        &self,
        share: Share,
        l1: Sensitivity<L1, R>,
        l2: Sensitivity<L2, R>,
    ) -> Result<Noise> {
        let (l1, l2) = match share {
            Share::Whole => (l1, l2),
            Share::Half => (l1.clone() + l1, l2.clone() + l2),
        };
        let &Self { epsilon, delta, .. } = self;
        let noise = match self.mechanism {
            NoiseKind::Laplace => calibrate::laplace_scale(l1.bound(), epsilon).map(Noise::Laplace),
            NoiseKind::Gaussian => {
                calibrate::gaussian_scale(l2.square(), epsilon, delta).map(Noise::Gaussian)
            }
        };
        noise.map_err(|error| match error {
            whit_accounting::Error::Unit(error) => Error::NoNoise(error),
            error => error.into(),
        })
    }
}

/// Nobody asked for a scale, so nobody can be told to give another.
fn own_words(error: whit_mechanism::Error) -> Error {
    match error {
        whit_mechanism::Error::Unit(error) => Error::NoNoise(error),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Fault, FaultKind, Mechanism};
    use whit_testkit::{FailingEntropy, Seeded};

    /// So much that noise is far below anything compared here.
    const PLENTY: f64 = 1e9;

    fn request(statistic: Statistic, epsilon: f64) -> Request {
        let mut request = Request::new(statistic, Epsilon::new(epsilon).expect("a unit"));
        if statistic != Statistic::Count {
            request.column = Some("x".into());
            request.range = Some(Bounds::new(0.0, 10.0).expect("a range"));
        }
        request
    }

    fn statistics() -> [Statistic; 4] {
        [
            Statistic::Count,
            Statistic::Sum,
            Statistic::Mean,
            Statistic::Histogram { bins: 5 },
        ]
    }

    fn variants(epsilon: f64, delta: f64) -> Vec<Request> {
        let mut variants = Vec::new();
        for statistic in statistics() {
            for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
                for rows_per_unit in [None, Some(1), Some(3)] {
                    for mechanism in [NoiseKind::Laplace, NoiseKind::Gaussian] {
                        let mut request = request(statistic, epsilon);
                        request.relation = relation;
                        request.rows_per_unit = rows_per_unit;
                        request.unit = rows_per_unit.map(|_| "who".into());
                        request.mechanism = mechanism;
                        if mechanism == NoiseKind::Gaussian {
                            request.delta = Delta::new(delta).expect("a unit");
                        }
                        variants.push(request);
                    }
                }
            }
        }
        variants
    }

    fn answer(request: Request, csv: impl AsRef<[u8]>) -> Result<Answer> {
        let mut entropy = Seeded::new(7);
        Plan::new(request)?.execute(csv.as_ref(), &mut entropy)
    }

    fn single(request: Request, csv: &str) -> f64 {
        match answer(request, csv).expect("answered").value {
            Value::Single { answer, low, high } => {
                assert!(low <= answer && answer <= high);
                answer
            }
            Value::Histogram { .. } => panic!("not a histogram"),
        }
    }

    fn counts(request: Request, csv: &str) -> Vec<f64> {
        match answer(request, csv).expect("answered").value {
            Value::Histogram { bins } => bins.iter().map(|bin| bin.answer).collect(),
            Value::Single { .. } => panic!("not one number"),
        }
    }

    #[test]
    fn charge_never_exceeds_what_was_asked_and_comes_close() {
        for (epsilon, delta) in [
            (1.0, 1e-6),
            (0.1, 1e-9),
            (1.0 / 3.0, 1e-5),
            (1e-3, 1e-12),
            (7.7, 0.01),
        ] {
            for request in variants(epsilon, delta) {
                let plan = Plan::new(request.clone()).expect("can be answered");
                let charge = plan.charge();
                assert!(
                    charge.epsilon <= request.epsilon && charge.delta <= request.delta,
                    "{request:?}"
                );
                // Only a mean's count and sum round their Gaussian scales apart from each other.
                assert!(
                    charge.epsilon.value() >= epsilon * (1.0 - 1e-6),
                    "{request:?}: {charge:?}"
                );
                assert_eq!(charge.neighbours, request.relation);
            }
        }
    }

    #[test]
    fn a_mean_splits_its_charge_evenly() {
        let mut request = request(Statistic::Mean, 1.0);
        let plan = Plan::new(request.clone()).expect("can be answered");
        let Mechanism::Composition(parts) = plan.event().mechanism() else {
            panic!("two parts")
        };
        for part in parts {
            assert_eq!(
                whit_accounting::pure::epsilon(part)
                    .expect("Laplace")
                    .value(),
                0.5
            );
        }
        request.mechanism = NoiseKind::Gaussian;
        request.delta = Delta::new(1e-6).expect("a unit");
        let plan = Plan::new(request).expect("can be answered");
        let Mechanism::Composition(parts) = plan.event().mechanism() else {
            panic!("two parts")
        };
        let rho = |part| whit_accounting::zcdp::rho(part).expect("Gaussian").value();
        let [sum, count] = parts.as_slice() else {
            panic!("two parts")
        };
        assert!((rho(sum) / rho(count) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn statistics_are_what_they_say() {
        let csv = "x,who\n1,a\n2,a\n ,b\n9,b\n12,c\n-4,c\nword,d\n";
        assert_eq!(single(request(Statistic::Count, PLENTY), csv), 7.0);
        let mut not_empty = request(Statistic::Count, PLENTY);
        not_empty.column = Some("x".into());
        assert_eq!(single(not_empty, csv), 6.0);
        // 1 + 2 + 9 + 10 + 0; empty and word are absent.
        assert!((single(request(Statistic::Sum, PLENTY), csv) - 22.0).abs() < 1e-3);
        assert!((single(request(Statistic::Mean, PLENTY), csv) - 22.0 / 5.0).abs() < 1e-3);
        assert_eq!(
            counts(request(Statistic::Histogram { bins: 5 }, PLENTY), csv),
            [2.0, 1.0, 0.0, 0.0, 2.0]
        );
        // Seven rows are public under replace-one; absent cells stand for the middle of the range.
        let mut replace = request(Statistic::Mean, PLENTY);
        replace.relation = Neighbours::ReplaceOne;
        assert!((single(replace, csv) - (22.0 + 5.0 + 5.0) / 7.0).abs() < 1e-3);
    }

    #[test]
    fn rows_beyond_the_cap_and_rows_of_nobody_are_left_out() {
        let csv = "who,x\na,1\n a ,2\nb,3\na,4\n,5\n\"  \",6\nb\na,7\n";
        let with_unit = |statistic| {
            let mut request = request(statistic, PLENTY);
            request.unit = Some("who".into());
            request.rows_per_unit = Some(2);
            request
        };
        // a: 1, 2; b: 3 and an absent cell.
        assert_eq!(single(with_unit(Statistic::Count), csv), 4.0);
        assert!((single(with_unit(Statistic::Sum), csv) - 6.0).abs() < 1e-3);
        assert!((single(with_unit(Statistic::Mean), csv) - 2.0).abs() < 1e-3);
        let mut not_empty = with_unit(Statistic::Count);
        not_empty.column = Some("x".into());
        assert_eq!(single(not_empty, csv), 3.0);
        let answer = answer(with_unit(Statistic::Count), csv).expect("answered");
        assert_eq!(
            (answer.unit.as_str(), answer.rows_per_unit),
            ("who", Some(2))
        );
    }

    #[test]
    fn shape_is_the_same_for_neighbours() {
        let long = "7".repeat(1_000_000);
        let poison = [
            "NaN,z",
            "inf,z",
            "-1e400,z",
            "1e308,z",
            "SECRET-4711,z",
            "",
            "\"",
            "1",
            "1,2,3,4",
            &long,
        ];
        for request in variants(1.0, 1e-6) {
            let clean = answer(request.clone(), "x,who\n1,a\n2,b\n").expect("answered");
            for row in poison {
                let csv = format!("x,who\n1,a\n{row}\n2,b\n");
                let poisoned = answer(request.clone(), csv).expect("answered");
                let public = |answer: &Answer| {
                    let Value::Histogram { bins } = &answer.value else {
                        return (vec![], answer.guarantee.clone());
                    };
                    (
                        bins.iter().map(|bin| (bin.low, bin.high)).collect(),
                        answer.guarantee.clone(),
                    )
                };
                assert_eq!(public(&poisoned), public(&clean));
                assert_eq!(
                    (poisoned.epsilon, poisoned.noise),
                    (clean.epsilon, clean.noise.clone())
                );
            }
        }
    }

    #[test]
    fn files_without_rows_are_answered() {
        for request in variants(1.0, 1e-6) {
            assert!(answer(request, "x,who").is_ok());
        }
    }

    /// The seed is fixed, so this cannot fail by chance; another would fail once in ten thousand. Counts cover more than they
    /// must, since they are whole.
    #[test]
    fn intervals_cover_as_often_as_they_say() {
        let values = || (0..40).map(|row| f64::from(row % 10));
        for mut request in variants(1.0, 1e-6) {
            if request.rows_per_unit == Some(3) {
                continue;
            }
            request.confidence = Confidence::new(0.9).expect("a unit");
            let truth = match request.statistic {
                Statistic::Count => 40.0,
                Statistic::Sum => 180.0,
                Statistic::Mean => 4.5,
                Statistic::Histogram { .. } => 8.0,
            };
            let mut entropy = Seeded::new(4);
            let plan = Plan::new(request.clone()).expect("can be answered");
            let mut covered = Vec::new();
            while covered.len() < 1000 {
                let found = plan.release(values(), &mut entropy).expect("answered");
                covered.extend(
                    found
                        .value()
                        .iter()
                        .map(|found| found.low <= truth && truth <= found.high),
                );
            }
            let share =
                covered.iter().filter(|&&covered| covered).count() as f64 / covered.len() as f64;
            assert!(share > 0.86, "{share}: {request:?}");
        }
    }

    fn refused(change: impl FnOnce(&mut Request)) -> Error {
        let mut request = request(Statistic::Sum, 1.0);
        change(&mut request);
        Plan::new(request).err().expect("refused without any data")
    }

    #[test]
    fn refuses_before_data_is_seen() {
        let check = |code: &str, change: fn(&mut Request)| {
            let error = refused(change);
            assert_eq!(
                (error.code(), error.kind()),
                (code, FaultKind::Invalid),
                "{error}"
            );
            assert!(!error.suggestion().is_empty());
        };
        check("out_of_domain", |request| request.epsilon = Epsilon::ZERO);
        check("no_noise", |request| {
            request.epsilon = Epsilon::new(1e300).expect("a unit")
        });
        check("no_noise", |request| {
            request.epsilon = Epsilon::new(1e-300).expect("a unit")
        });
        check("no_noise", |request| {
            request.range = Some(Bounds::new(0.0, 1e200).expect("a range"))
        });
        // The scale can be sampled, but not in steps of the grid of this range.
        check("no_noise", |request| {
            request.range = Some(Bounds::new(0.0, 1e-9).expect("a range"));
            request.epsilon = Epsilon::new(1e-30).expect("a unit");
        });
        check("missing_parameter", |request| request.column = None);
        check("missing_parameter", |request| request.range = None);
        check("unused_parameter", |request| {
            request.statistic = Statistic::Count
        });
        check("unused_delta", |request| {
            request.delta = Delta::new(1e-6).expect("a unit")
        });
        check("missing_delta", |request| {
            request.mechanism = NoiseKind::Gaussian
        });
        check("missing_rows_per_unit", |request| {
            request.unit = Some("who".into())
        });
        check("unused_rows_per_unit", |request| {
            request.rows_per_unit = Some(1)
        });
        check("count_out_of_range", |request| {
            request.statistic = Statistic::Histogram { bins: 0 }
        });
        check("count_out_of_range", |request| {
            request.unit = Some("who".into());
            request.rows_per_unit = Some(0);
        });
    }

    /// At ε = 1 a Laplace scale is the sensitivity itself, in the unit of the values (twice that for each part of a mean).
    #[test]
    fn noise_covers_all_rows_of_a_unit() {
        let scales = |statistic, relation, rows_per_unit: Option<u32>| -> Vec<f64> {
            let mut request = request(statistic, 1.0);
            if statistic != Statistic::Count {
                request.range = Some(Bounds::new(-5.0, 3.0).expect("a range"));
            }
            request.relation = relation;
            request.unit = rows_per_unit.map(|_| "who".into());
            request.rows_per_unit = rows_per_unit;
            let plan = Plan::new(request).expect("can be answered");
            plan.noise.iter().map(|noise| noise.scale).collect()
        };
        let [count, sum, mean, histogram] = statistics();
        let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
        for (statistic, relation, rows_per_unit, expected) in [
            (count, added, None, vec![1.0]),
            (count, added, Some(3), vec![3.0]),
            (count, replaced, Some(3), vec![3.0]),
            (sum, added, None, vec![5.0]),
            (sum, added, Some(3), vec![15.0]),
            (sum, replaced, None, vec![8.0]),
            (sum, replaced, Some(3), vec![24.0]),
            (mean, added, None, vec![8.0, 2.0]),
            (mean, added, Some(3), vec![24.0, 6.0]),
            (mean, replaced, None, vec![8.0]),
            (mean, replaced, Some(3), vec![48.0, 6.0]),
            (histogram, added, None, vec![1.0]),
            (histogram, added, Some(3), vec![3.0]),
            (histogram, replaced, None, vec![2.0]),
            (histogram, replaced, Some(3), vec![6.0]),
        ] {
            assert_eq!(
                scales(statistic, relation, rows_per_unit),
                expected,
                "{statistic} {relation} {rows_per_unit:?}"
            );
        }
    }

    /// From the file to the answer: a person with three rows, or nobody.
    #[test]
    fn whole_answers_hide_a_whole_unit() {
        let seen = |epsilon: f64| {
            let mut entropies = (Seeded::new(21), Seeded::new(22));
            let event = |csv: &str, entropy: &mut Seeded| {
                let mut request = request(Statistic::Count, epsilon);
                (request.unit, request.rows_per_unit) = (Some("who".into()), Some(3));
                let plan = Plan::new(request).expect("can be answered");
                let answer = plan.execute(csv.as_bytes(), entropy).expect("answered");
                matches!(answer.value, Value::Single { answer, .. } if answer >= 3.0)
            };
            let claim = whit_audit::Claim::pure(Epsilon::new(1.0).expect("a unit"));
            let alpha = whit_audit::Alpha::new(1e-6).expect("a level");
            let (with, without) = ("who,x\na,1\na,1\na,1\na,1\n", "who,x\n");
            whit_audit::falsify(
                claim,
                10_000,
                alpha,
                || event(with, &mut entropies.0),
                || event(without, &mut entropies.1),
            )
            .expect("enough trials")
        };
        let honest = seen(1.0);
        assert!(
            !honest.convicted && honest.epsilon_lower > 0.75,
            "{honest:?}"
        );
        assert!(seen(1.3).convicted);
    }

    /// An empty line is no row, so a file of one column could not keep its number of rows when one says nothing.
    #[test]
    fn one_column_keeps_no_public_number_of_rows() {
        for statistic in statistics() {
            let mut request = request(statistic, 1.0);
            request.relation = Neighbours::ReplaceOne;
            let refused = answer(request.clone(), b"x\n1\n\n2\n").expect_err("refused");
            assert_eq!(
                (refused.code(), refused.kind()),
                ("one_column", FaultKind::Refused)
            );
            assert!(answer(request, b"x,y\n1,\n,\n2,\n").is_ok());
        }
    }

    #[test]
    fn without_entropy_there_is_no_answer() {
        for request in variants(1.0, 1e-6) {
            let plan = Plan::new(request).expect("can be answered");
            let answer = plan.execute("x,who\n1,a\n".as_bytes(), &mut FailingEntropy);
            let error = answer.expect_err("no entropy");
            assert_eq!((error.code(), error.kind()), ("no_entropy", FaultKind::Bug));
        }
    }

    #[test]
    fn complaints_about_the_header_come_from_the_header() {
        let check = |csv: &[u8], code: &str| {
            let error = answer(request(Statistic::Sum, 1.0), csv).expect_err("refused");
            assert_eq!((error.code(), error.kind()), (code, FaultKind::Invalid));
            assert!(!format!("{error} {}", error.suggestion()).contains("SECRET-4711"));
        };
        check(b"", "no_header");
        check(b"SECRET-4711,y\n1,2\n", "missing_column");
        check(b"x,SECRET-4711,x\n1,2,3\n", "repeated_column");
        check(b"x,SECRET-4711\xff\n1,2\n", "header_not_text");
        let mut unit = request(Statistic::Count, 1.0);
        unit.unit = Some("who".into());
        unit.rows_per_unit = Some(1);
        let error = answer(unit, "x\n1\n").expect_err("refused");
        assert_eq!(
            error,
            Error::MissingColumn {
                column: "who".into()
            }
        );
    }

    #[test]
    fn half_a_file_is_no_answer() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("SECRET-4711"))
            }
        }
        for request in variants(1.0, 1e-6) {
            let mut entropy = Seeded::new(1);
            let plan = Plan::new(request).expect("can be answered");
            let csv = "x,who\n1,a\n2,b\n".as_bytes().chain(Broken);
            assert_eq!(
                plan.execute(csv, &mut entropy).err(),
                Some(Error::Unreadable)
            );
        }
    }
}
