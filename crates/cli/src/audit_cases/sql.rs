//! Statements in SQL, end to end: a catalog, a table in a file, a ledger on disk, and an answer with its receipt.
//!
//! **What is on trial.** A person has more rows in a group than count, rows in more groups than count, and values beyond the declared range: noise that would do without caps and clamps does not
//! do without them. A twin in the tests has wider ones than its noise was made for, and is convicted. A statement with several aggregates divides its epsilon among them: they are judged together, and a twin that
//! spends all of it on each is convicted too.
//!
//! **Many groups at once.** A statement takes milliseconds, so each asks about 64 groups, and the worlds differ in one person of each trial. A trial is a group, or two with a person who is in
//! both; nobody is in two trials, and the noise of groups is independent; so they are trials as canaries are in training. That noise is independent is assumed here: an engine that used the same noise twice would make trials that are none.
//!
//! An answer that was given once is given again for nothing, so each statement asks for intervals of another confidence: another question, with the same noise.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use whit::core::{Bits, Entropy};
use whit::session::{Asked, Catalog, Question, Session, Value};
use whit::{Confidence, Delta, Epsilon, OsEntropy};
use whit_trial::{Case, Claim, Cost, Draws, Untried, laplace_chances, upper_tail};

use super::untried;

/// Are the answers of the groups of a trial in the event? Of each group there are as many as aggregates.
type Event = fn(&[f64]) -> bool;

/// Groups of a statement.
const GROUPS: usize = 64;

/// What the engine is told, and what it is asked.
#[derive(Clone)]
struct Statement {
    text: String,
    epsilon: f64,
    /// With one there is Gaussian noise, if that is less, and the ledger adds up concentrated losses.
    delta: f64,
    /// How many aggregates it has.
    aggregates: usize,
    /// The upper end of the range of costs, whose lower end is zero.
    range: u32,
    /// Rows of a unit that count in a group, and groups in which it counts.
    caps: [u32; 2],
    /// How many groups a trial has.
    groups: usize,
    /// The rows of each group in the likelier world, and in the other.
    people: [&'static str; 2],
    event: Event,
}

/// Two rows of one person, both of 25.
const TWICE: &str = "extra,25 extra,25";

fn count(event: Event) -> Statement {
    Statement {
        text: "SELECT city, COUNT(*) FROM visits GROUP BY city".into(),
        epsilon: 1.0,
        delta: 0.0,
        aggregates: 1,
        range: 10,
        caps: [1, 1],
        groups: 1,
        people: ["base,7 extra,25 extra,25", "base,7"],
        event,
    }
}

fn of(measure: &str, event: Event) -> Statement {
    let count = count(event);
    let text = count.text.replace("COUNT(*)", measure);
    Statement { text, ..count }
}

fn sum() -> Statement {
    of("SUM(cost)", |answers| answers[0] >= 17.0)
}

/// A person in both groups of a trial, of which one counts: together the two are one above what the others are.
fn two_groups() -> Statement {
    Statement {
        groups: 2,
        people: ["base,7 extra,7", "base,7"],
        ..count(|answers| answers[0] + answers[1] >= 3.0)
    }
}

pub(super) fn cases() -> Vec<Case> {
    let least_two: Event = |answers| answers[0] >= 2.0;
    let with_where = count(|answers| answers[0] >= 1.0);
    let with_where = Statement {
        text: with_where.text.replace(" GROUP", " WHERE cost > 8 GROUP"),
        ..with_where
    };
    let mean = Statement {
        epsilon: 2.0,
        people: [TWICE, ""],
        ..of("AVG(cost)", |answers| answers[0] >= 10.0)
    };
    vec![
        case("COUNT(*)", 1.0, count(least_two), count_chances),
        case("COUNT(*) with WHERE", 1.0, with_where, count_chances),
        case("SUM", 1.0, sum(), sum_chances),
        case("AVG", 2.0, mean, mean_chances),
        case(
            "COUNT(DISTINCT)",
            1.0,
            of("COUNT(DISTINCT person)", least_two),
            count_chances,
        ),
        case(
            "COUNT(*) of a person in two groups",
            1.0,
            two_groups(),
            pair_chances,
        ),
        case("COUNT(*) and SUM", 2.0, two_aggregates(), both_chances),
        case(
            "COUNT(*), SUM and COUNT(DISTINCT) with Gaussian noise",
            2.0,
            three_aggregates(),
            gaussian_chances,
        ),
    ]
}

/// A count and a sum of one person's row, both at least as large as with it.
fn two_aggregates() -> Statement {
    Statement {
        epsilon: 2.0,
        aggregates: 2,
        ..of("COUNT(*), SUM(cost)", |answers| {
            answers[0] >= 2.0 && answers[1] >= 17.0
        })
    }
}

/// At which Gaussian noise for three aggregates is less than Laplace noise.
const DELTA: f64 = 0.1;

/// Each in units of what a person moves it by, their sum is nearer to what it is with the person: 27 without, 57 with, in tenths.
fn three_aggregates() -> Statement {
    let measures = "COUNT(*), SUM(cost), COUNT(DISTINCT person)";
    Statement {
        epsilon: 2.0,
        delta: DELTA,
        aggregates: 3,
        ..of(measures, |answers| {
            10.0 * answers[0] + answers[1] + 10.0 * answers[2] >= 42.0
        })
    }
}

fn count_chances(epsilon: f64) -> [f64; 2] {
    laplace_chances(epsilon, 1)
}

/// A person moves it by ten.
fn sum_chances(epsilon: f64) -> [f64; 2] {
    laplace_chances(epsilon / 10.0, 10)
}

/// The mean is the upper end where the sum of distances from the lower end is a whole row or more, and that from the upper end is not above zero. The person
/// moves the first of them by a whole row: `Pr[Z >= 0]/Pr[Z >= 10]` is all of epsilon.
fn mean_chances(epsilon: f64) -> [f64; 2] {
    let [not_above, _] = sum_chances(epsilon);
    sum_chances(epsilon).map(|first| first * not_above)
}

/// Of the sum `D` of two noises: `Pr[D >= 0]` and `Pr[D >= 1]`, whichever of the groups counts.
fn pair_chances(epsilon: f64) -> [f64; 2] {
    let none: f64 = (-1000..=1000).map(|z| law(epsilon, z).powi(2)).sum();
    [(1.0 + none) / 2.0, (1.0 - none) / 2.0]
}

/// `q^|z| (1-q)/(1+q)`, where a unit costs `rate`.
fn law(rate: f64, z: i32) -> f64 {
    let q = (-rate).exp();
    (1.0 - q) / (1.0 + q) * q.powi(z.abs())
}

/// Half of epsilon for each.
fn both_chances(epsilon: f64) -> [f64; 2] {
    let (count, sum) = (count_chances(epsilon / 2.0), sum_chances(epsilon / 2.0));
    [count[0] * sum[0], count[1] * sum[1]]
}

/// A third of the concentrated loss for each. With `ρ` for all of them the sum, in tenths, has a deviation of `30/√(2ρ)`; it is a whole number, and so many that the noise is as good as continuous.
fn gaussian_chances(epsilon: f64) -> [f64; 2] {
    let deviation = 30.0 / (2.0 * concentrated(epsilon, DELTA)).sqrt();
    [-15.5, 14.5].map(|from| upper_tail(from / deviation))
}

/// The largest `ρ` for which `ρ`-zCDP is `(ε, δ)`-DP by `δ = exp((α-1)(αρ-ε))/(α-1) (1-1/α)^α`, at the best `α > 1` \[CKS20, Cor. 13\].
fn concentrated(epsilon: f64, delta: f64) -> f64 {
    let log_delta = |rho: f64, above_one: f64| {
        let alpha = 1.0 + above_one;
        above_one * (alpha * rho - epsilon) - above_one.ln() + alpha * (above_one / alpha).ln()
    };
    // Steps of a hundredth; at the least of all the slope is zero, and what is missed is far below the slack.
    let steps = || (-700..=700).map(|step| (f64::from(step) / 100.0).exp());
    let least = |rho| {
        steps()
            .map(|above| log_delta(rho, above))
            .fold(f64::MAX, f64::min)
    };
    let (mut low, mut high) = (0.0, epsilon);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if least(middle) <= delta.ln() {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// A statement of which so much is claimed, whatever it is asked with; the chances of its event depend on that.
fn case(name: &str, epsilon: f64, statement: Statement, chances: fn(f64) -> [f64; 2]) -> Case {
    let name = format!("{name} at epsilon {epsilon}");
    let [likely, unlikely] = chances(epsilon);
    // Scales of Gaussian noise are rounded, and their sum is no integral.
    let slack = if statement.delta > 0.0 { 1e-3 } else { 1e-5 };
    let claim = Claim::of(likely, unlikely, slack);
    Case::of(
        "statement in SQL",
        name,
        claim,
        Cost::Program,
        move |share| {
            let mut statement = statement.clone();
            statement.epsilon /= share.value();
            draws(statement)
        },
    )
    .with_chances(move |share| chances(epsilon / share.value()))
}

fn draws(statement: Statement) -> Result<Draws, Untried> {
    let [likely, unlikely] = statement.people.map(|people| Desk::new(people, &statement));
    let (likely, unlikely) = (RefCell::new(likely?), RefCell::new(unlikely?));
    let mut trials = Vec::new();
    Ok(Draws::new(
        likely,
        unlikely,
        move |desk: &RefCell<Desk>, _| {
            if trials.is_empty() {
                let answers = desk.borrow_mut().ask(&statement)?;
                let each = answers.chunks_exact(statement.groups * statement.aggregates);
                trials.extend(each.map(statement.event));
            }
            trials.pop().ok_or_else(|| Untried::new("no groups"))
        },
    ))
}

/// As many statements as a budget has room for, at twice the epsilons above and more.
const STATEMENTS: u64 = 200;

/// A table in a folder of its own, and one ledger after the other. The folder is removed at the end.
struct Desk {
    folder: PathBuf,
    catalog: String,
    session: Option<Session>,
    asked: u64,
}

impl Desk {
    fn new(people: &str, statement: &Statement) -> Result<Self, Untried> {
        let rows = (0..GROUPS).flat_map(|group| {
            let trial = group / statement.groups;
            people.split_whitespace().map(move |row| {
                let (name, cost) = row.split_once(',').unwrap_or((row, "0"));
                // Others are in one group alone.
                let number = if name == "extra" { trial } else { group };
                format!("{name}{number},c{group},{cost}\n")
            })
        });
        let header = std::iter::once("person,city,cost\n".to_owned());
        let text: String = header.chain(rows).collect();
        let cities: Vec<String> = (0..GROUPS).map(|group| format!("\"c{group}\"")).collect();
        let catalog = format!(
            "[dataset]\nid = \"trial\"\n[budget]\nepsilon = 1000.0\ndelta = {}\n[table.visits]\nsource = \"visits.csv\"\nunit = \"person\"\n\
             [table.visits.column]\ncity = {{ values = [{}] }}\ncost = {{ type = \"int\", range = [0, {}] }}\n",
            if statement.delta > 0.0 { 0.5 } else { 0.0 },
            cities.join(", "),
            statement.range,
        );
        // Only a folder that was made here is removed in the end.
        let desk = Self {
            folder: new_folder(&std::env::temp_dir(), random_name)?,
            catalog,
            session: None,
            asked: 0,
        };
        #[expect(clippy::disallowed_methods, reason = "a door writes files")]
        let written = fs::write(desk.folder.join("visits.csv"), text);
        written.map_err(untried)?;
        Ok(desk)
    }

    /// The answers of all groups, in their order, each with its aggregates.
    fn ask(&mut self, statement: &Statement) -> Result<Vec<f64>, Untried> {
        if self.asked.is_multiple_of(STATEMENTS) {
            let catalog = Catalog::parse(&self.catalog).map_err(untried)?;
            let ledger = self.folder.join(format!("{}.ledger", self.asked));
            let session = Session::open(catalog, &self.folder, &ledger);
            self.session = Some(session.map_err(untried)?);
        }
        let [rows, groups] = statement.caps;
        let mut question = Question::new(&statement.text);
        question.asked = Asked {
            epsilon: Some(Epsilon::new(statement.epsilon).map_err(untried)?),
            delta: Some(Delta::new(statement.delta).map_err(untried)?),
            groups_per_unit: Some(groups),
            rows_per_group: Some(rows),
        };
        let other = 0.5 + (self.asked % STATEMENTS) as f64 / 1000.0;
        question.confidence = Confidence::new(other).map_err(untried)?;
        self.asked += 1;
        let session = self
            .session
            .as_ref()
            .ok_or_else(|| Untried::new("no session"))?;
        let reply = session.query(&question, &mut OsEntropy::new());
        let reply = reply.map_err(untried)?;
        if reply.reused {
            return Err(Untried::new("an answer was given twice"));
        }
        // A group that has no answer is in no event.
        let mut answers = vec![vec![f64::NAN; statement.aggregates]; GROUPS];
        for row in &reply.answer.rows {
            if let [Value::Text(city), of_group @ ..] = &row[..] {
                let group = city[1..].parse().ok();
                let answers = group.and_then(|group: usize| answers.get_mut(group));
                let answers = answers.ok_or_else(|| Untried::new("another group"))?;
                if of_group.len() != answers.len() {
                    return Err(Untried::new("another number of aggregates"));
                }
                for (answer, value) in answers.iter_mut().zip(of_group) {
                    *answer = value.number().unwrap_or(f64::NAN);
                }
            }
        }
        Ok(answers.concat())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.session = None;
        // What cannot be removed is left to whoever cleans the system's folder for such.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A folder that was not there before.
fn new_folder(
    within: &Path,
    name: impl FnOnce() -> Result<String, Untried>,
) -> Result<PathBuf, Untried> {
    let folder = within.join(name()?);
    fs::create_dir(&folder).map_err(|error| {
        let folder = folder.display();
        Untried::new(format!("no folder for a table at {folder}: {error}"))
    })?;
    Ok(folder)
}

/// A name that nobody guesses.
fn random_name() -> Result<String, Untried> {
    let mut bits = OsEntropy::new().open().map_err(untried)?;
    Ok(format!(
        "whit-audit-{:016x}{:016x}",
        bits.word(),
        bits.word()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_trial::{Effort, Share, trial};

    /// Engines that count more than their noise was made for: values up to 25 with noise for 10, two rows or two groups with noise for one.
    #[test]
    fn wider_ranges_and_caps_than_claimed_are_convicted() {
        let wide = Statement {
            range: 25,
            epsilon: 2.5,
            ..sum()
        };
        let rows = Statement {
            caps: [2, 1],
            epsilon: 2.0,
            ..count(|answers| answers[0] >= 2.0)
        };
        let groups = Statement {
            caps: [1, 2],
            epsilon: 2.0,
            ..two_groups()
        };
        convicts([
            case("range", 1.0, wide, sum_chances),
            case("rows", 1.0, rows, count_chances),
            case("groups", 1.0, groups, pair_chances),
        ]);
    }

    fn convicts<const N: usize>(twins: [Case; N]) {
        for twin in twins {
            let found = trial(&twin, Share::ALL, Effort::quick());
            let found = found.expect("a folder");
            assert!(found.convicted(), "{}: {found:?}", twin.name());
        }
    }

    /// Engines that spend all of epsilon on each aggregate: noise as of a statement that has as many times the epsilon, or the concentrated loss.
    #[test]
    fn epsilon_that_is_spent_on_each_of_several_aggregates_is_convicted() {
        let each = |statement: Statement, epsilon| Statement {
            epsilon,
            ..statement
        };
        // Three times the loss: no noise is less than is made for that.
        let all = 3.0 * concentrated(2.0, DELTA);
        let whole = 4.5;
        assert!(concentrated(whole, DELTA) < all);
        convicts([
            case("both", 2.0, each(two_aggregates(), 4.0), both_chances),
            case(
                "three",
                2.0,
                each(three_aggregates(), whole),
                gaussian_chances,
            ),
        ]);
    }

    /// Somebody else's folder of the same name stays, with what is in it.
    #[test]
    fn a_folder_that_is_there_is_not_taken() {
        let within = new_folder(&std::env::temp_dir(), random_name).expect("room");
        let taken = within.join("taken");
        new_folder(&within, || Ok("taken".into())).expect("it is not there yet");
        assert!(new_folder(&within, || Ok("taken".into())).is_err());
        assert!(taken.is_dir());
        fs::remove_dir_all(within).expect("it was made here");
    }
}
