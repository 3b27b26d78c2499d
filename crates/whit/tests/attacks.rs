//! Why aggregates need noise: three attacks that read people out of exact answers about real census data, and cannot out of ours.
//!
//! The book's chapter *Why aggregates leak* tells the story; these are its figures.

use std::io::Read;

use whit::core::{AddRemove, Bits, Confidence, Ratio, Scale};
use whit::mechanism::{BoundedSum, Bounds, Contribution, Noise, NoisySum};
use whit_audit::{Alpha, clopper_pearson_upper};
use whit_testkit::{Seeded, SeededBits};

/// The bundled census data, one list of cells per person.
fn census() -> Vec<Vec<String>> {
    let packed: &[u8] = include_bytes!("../../cli/data/adult.csv.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("the bundled file is whole");
    let split = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(split).collect()
}

const CAPITAL_GAIN: usize = 10;
const INCOME: usize = 14;

fn number(person: &[String], column: usize) -> f64 {
    person[column].parse().expect("this column holds numbers")
}

/// A sum with Laplace noise that costs `epsilon` for one person.
fn private_sum(range: (f64, f64), epsilon: f64) -> (BoundedSum<AddRemove>, NoisySum<AddRemove>) {
    let sum = BoundedSum::new(
        Bounds::new(range.0, range.1).expect("a range"),
        Contribution::Row,
    );
    let epsilon = Ratio::from_f64(epsilon).expect("positive");
    let scale = sum
        .sensitivity_l1()
        .bound()
        .checked_div(&epsilon)
        .expect("positive");
    let noisy = sum
        .with_noise(&Noise::Laplace(Scale::new(scale).expect("in range")))
        .expect("in range");
    (sum, noisy)
}

fn ask(
    sum: &(BoundedSum<AddRemove>, NoisySum<AddRemove>),
    values: impl IntoIterator<Item = f64>,
    entropy: &mut Seeded,
) -> f64 {
    let confidence = Confidence::new(0.95).expect("a unit");
    sum.1
        .release(sum.0.aggregate(values), confidence, entropy)
        .expect("entropy")
        .value()
        .answer
}

/// Differencing: the total of all, less the total of all but one.
#[test]
fn differencing_reads_one_person_out_of_exact_sums_and_not_out_of_ours() {
    let census = census();
    let gains: Vec<f64> = census
        .iter()
        .map(|person| number(person, CAPITAL_GAIN))
        .collect();
    let without = |victim: usize| {
        gains
            .iter()
            .enumerate()
            .filter(move |(i, _)| *i != victim)
            .map(|(_, gain)| *gain)
    };
    // Exact answers tell everybody's gain to the dollar.
    let total: f64 = gains.iter().sum();
    for victim in (0..gains.len()).step_by(997) {
        assert_eq!(total - without(victim).sum::<f64>(), gains[victim]);
    }
    // Private ones, at ε = 1/2 each: the attacker must say whether the victim gained nothing or the most there is.
    let sum = private_sum((0.0, 100_000.0), 0.5);
    let mut entropy = Seeded::new(401);
    let (rich, poor) = (100_000.0, 0.0);
    let games: u64 = 400;
    let few: Vec<f64> = gains.iter().copied().step_by(100).collect();
    let won = (0..games).filter(|game| {
        let truth = if game % 2 == 0 { rich } else { poor };
        let with = ask(&sum, few.iter().copied().chain([truth]), &mut entropy);
        let without = ask(&sum, few.iter().copied(), &mut entropy);
        (with - without > 50_000.0) == (truth == rich)
    });
    let won = won.count() as u64;
    // Two answers cost ε = 1 together, which allows at most e/(1+e) = 73% right guesses.
    let upper =
        clopper_pearson_upper(won, games, Alpha::new(1e-3).expect("a level")).expect("games");
    assert!(
        upper <= 1_f64.exp() / (1.0 + 1_f64.exp()) + 0.05,
        "{won} of {games}"
    );
    assert!((won as f64) < 0.731 * games as f64, "{won} of {games}");
}

/// Least squares by Gaussian elimination on the normal equations.
fn solve(queries: &[Vec<f64>], answers: &[f64]) -> Vec<f64> {
    let n = queries[0].len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let dot = |column: &dyn Fn(usize) -> f64| {
                queries
                    .iter()
                    .enumerate()
                    .map(|(q, row)| row[i] * column(q))
                    .sum::<f64>()
            };
            let mut row: Vec<f64> = (0..n).map(|j| dot(&|q| queries[q][j])).collect();
            row[i] += 1e-9;
            row.push(dot(&|q| answers[q]));
            row
        })
        .collect();
    for i in 0..n {
        let pivot = (i..n)
            .max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs()))
            .expect("rows are left");
        rows.swap(i, pivot);
        let lead = rows[i].clone();
        for (j, row) in rows.iter_mut().enumerate() {
            if j != i {
                let factor = row[i] / lead[i];
                row.iter_mut()
                    .zip(&lead)
                    .for_each(|(cell, lead)| *cell -= factor * lead);
            }
        }
    }
    (0..n).map(|i| rows[i][n] / rows[i][i]).collect()
}

/// Reconstruction: random subset counts, solved for everybody's secret at once. [DN03]
#[test]
fn reconstruction_solves_exact_counts_and_not_ours() {
    let census = census();
    let secret = |person: &Vec<String>| f64::from(u8::from(person[INCOME].starts_with(">50K")));
    // Forty people who earn more than 50,000 and forty who do not: blind guessing is right half the time.
    let (mut rich, mut poor): (Vec<_>, Vec<_>) =
        census.iter().map(secret).partition(|&secret| secret == 1.0);
    rich.truncate(40);
    poor.truncate(40);
    let secrets: Vec<f64> = rich
        .into_iter()
        .zip(poor)
        .flat_map(|(rich, poor)| [rich, poor])
        .collect();
    let mut bits = SeededBits::new(402);
    let queries: Vec<Vec<f64>> = (0..400)
        .map(|_| {
            (0..secrets.len())
                .map(|_| (bits.word() >> 63) as f64)
                .collect()
        })
        .collect();
    let share_right = |answers: &[f64]| {
        let solved = solve(&queries, answers);
        let right = solved
            .iter()
            .zip(&secrets)
            .filter(|(solved, secret)| (**solved > 0.5) == (**secret == 1.0));
        right.count() as f64 / secrets.len() as f64
    };
    let exact = |query: &Vec<f64>| {
        query
            .iter()
            .zip(&secrets)
            .map(|(asked, secret)| asked * secret)
            .sum::<f64>()
    };
    let answers: Vec<f64> = queries.iter().map(exact).collect();
    assert_eq!(
        share_right(&answers),
        1.0,
        "exact counts give everybody away"
    );
    let rounded: Vec<f64> = answers
        .iter()
        .map(|answer| (answer / 3.0).round() * 3.0)
        .collect();
    assert!(
        share_right(&rounded) > 0.95,
        "rounding to threes does not help"
    );
    // All four hundred for ε = 1 together. Whoever is protected by ε = 1 is guessed right at most 73% of the time.
    let sum = private_sum((0.0, 1.0), 1.0 / queries.len() as f64);
    let mut entropy = Seeded::new(403);
    let mut total = 0.0;
    for _ in 0..10 {
        let asked = |query: &Vec<f64>| {
            query
                .iter()
                .zip(&secrets)
                .map(|(asked, secret)| asked * secret)
                .collect::<Vec<f64>>()
        };
        let answers: Vec<f64> = queries
            .iter()
            .map(|query| ask(&sum, asked(query), &mut entropy))
            .collect();
        total += share_right(&answers);
    }
    assert!(total / 10.0 < 0.60, "{}", total / 10.0);
}

/// Everybody as a list of yes-or-no attributes: each value of each column of words.
fn attributes(census: &[Vec<String>]) -> Vec<Vec<f64>> {
    let mut values: Vec<(usize, String)> = Vec::new();
    for column in [1, 3, 5, 6, 7, 8, 9, 13, 0, 12] {
        let mut seen: Vec<String> = census.iter().map(|person| person[column].clone()).collect();
        seen.sort();
        seen.dedup();
        values.extend(seen.into_iter().map(|value| (column, value)));
    }
    census
        .iter()
        .map(|person| {
            values
                .iter()
                .map(|(column, value)| f64::from(u8::from(person[*column] == *value)))
                .collect()
        })
        .collect()
}

/// Membership: is this person one of the hundred whose averages were published? [HSR08]
#[test]
fn membership_shows_in_exact_averages_and_not_in_ours() {
    const GROUP: usize = 100;
    let people = attributes(&census()[..8000]);
    let width = people[0].len();
    assert!(width > 250, "{width} attributes");
    let average = |people: &[Vec<f64>]| -> Vec<f64> {
        (0..width)
            .map(|i| people.iter().map(|person| person[i]).sum::<f64>() / people.len() as f64)
            .collect()
    };
    let population = average(&people[4000..]);
    // Rare attributes weigh more: each is scaled by its variance in the population.
    let score = |person: &[f64], published: &[f64]| -> f64 {
        (0..width)
            .map(|i| {
                let p = population[i].clamp(1e-4, 1.0 - 1e-4);
                (person[i] - p) * (published[i] - p) / (p * (1.0 - p))
            })
            .sum()
    };
    // How often a member scores above a stranger.
    let share_above = |group: &[Vec<f64>], strangers: &[Vec<f64>], published: &[f64]| {
        let scores = |people: &[Vec<f64>]| {
            people
                .iter()
                .map(|person| score(person, published))
                .collect::<Vec<f64>>()
        };
        let (inside, outside) = (scores(group), scores(strangers));
        let above: usize = inside
            .iter()
            .map(|member| outside.iter().filter(|stranger| member > stranger).count())
            .sum();
        above as f64 / (inside.len() * outside.len()) as f64
    };
    let (mut exact, mut private) = (0.0, 0.0);
    let sum = private_sum((0.0, 1.0), 1.0 / width as f64);
    let mut entropy = Seeded::new(404);
    const ROUNDS: usize = 10;
    for round in 0..ROUNDS {
        let group = &people[round * GROUP..(round + 1) * GROUP];
        let strangers = &people[2000 + round * GROUP..2000 + (round + 1) * GROUP];
        exact += share_above(group, strangers, &average(group));
        let published: Vec<f64> = (0..width)
            .map(|i| ask(&sum, group.iter().map(|person| person[i]), &mut entropy) / GROUP as f64)
            .collect();
        private += share_above(group, strangers, &published);
    }
    let (exact, private) = (exact / ROUNDS as f64, private / ROUNDS as f64);
    assert!(exact > 0.75, "exact averages: {exact}");
    assert!((private - 0.5).abs() < 0.06, "private averages: {private}");
}
