//! Doubts about [`Mwem`](crate::Mwem): exact probabilities of whole transcripts, draws against them, falsifiers, and how good it is.

use whit_audit::{Cells, Verdict};
use whit_core::{AddRemove, Bits, Ratio, Relation, Secret};
use whit_testkit::{Seeded, SeededBits, long};

use crate::Contribution;
use crate::additive::Noise;
use crate::doubt::{ALPHA, confidence, judge, scale, seed};
use crate::marginals::Marginals;
use crate::multiplicative_weights::MultiplicativeWeights;
use crate::mwem::{Iterate, Mwem, Rounds, scores};
use crate::score::tests::ratio;
use crate::synthetic::Measurement;
use crate::workload::tests::domain;
use crate::workload::{Query, Workload};

/// Three cells and a query for each.
fn three() -> Workload {
    Workload::all_marginals(domain(&[3]), 1).expect("one set")
}

fn rounds(count: u32, epsilon: Ratio, b: (u128, u128)) -> Rounds {
    Rounds {
        count,
        epsilon,
        noise: Noise::Laplace(scale(b.0, b.1)),
        replays: 1,
        iterate: Iterate::Last,
    }
}

fn laplace(z: i64, b: f64) -> f64 {
    let q = (-1.0 / b).exp();
    (1.0 - q) / (1.0 + q) * (-(z.abs() as f64) / b).exp()
}

/// The probability of the measurements after `rows` is known, by the formulas of the module: selection `∝ exp(ε q/2)`, answers with
/// Laplace noise. Both have the epsilon and the scale given, whatever the mechanism was made with.
fn probability<R: Relation>(
    mwem: &Mwem<R>,
    counts: &[i64],
    rows: i64,
    measurements: &[Measurement],
    (epsilon, b): (f64, f64),
) -> f64 {
    let truths = mwem.truths(counts);
    let mut x = MultiplicativeWeights::uniform(&domain(&[3]), 1);
    let mut probability = 1.0;
    for &measurement in measurements {
        let weight = |q: i64| (epsilon * q as f64 / 2.0).exp();
        let q = scores(&truths, &mwem.expected(&x, rows));
        let all: f64 = q.iter().copied().map(weight).sum();
        probability *= weight(q[measurement.query]) / all;
        probability *= laplace(measurement.answer - truths[measurement.query], b);
        mwem.learn(&mut x, rows, measurement);
    }
    probability
}

/// All transcripts of so many rounds with answers in a range.
fn transcripts(count: u32, answers: std::ops::Range<i64>) -> Vec<Vec<Measurement>> {
    let mut all = vec![vec![]];
    for _ in 0..count {
        let longer = |transcript: &Vec<Measurement>| {
            let (transcript, answers) = (transcript.clone(), answers.clone());
            (0..3).flat_map(move |query| {
                let transcript = transcript.clone();
                (answers.clone()).map(move |answer| {
                    let next = Measurement { query, answer };
                    [&transcript[..], &[next]].concat()
                })
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// All data of three cells with so many rows at most.
fn data(rows_max: i64) -> Vec<[i64; 3]> {
    let range = || 0..=rows_max;
    let all = range().flat_map(|a| range().flat_map(move |b| range().map(move |c| [a, b, c])));
    all.filter(|counts| counts.iter().sum::<i64>() <= rows_max)
        .collect()
}

/// The largest loss when one row of six is moved, over all data, all moves and all transcripts of two rounds.
fn largest_loss((epsilon, b): (f64, f64)) -> f64 {
    let mwem =
        Mwem::with_public_rows(three(), rounds(2, ratio(1, 2), (2, 1)), 6).expect("in range");
    let (transcripts, mut largest) = (transcripts(2, -2..9), 0.0_f64);
    for counts in data(6).into_iter().filter(|c| c.iter().sum::<i64>() == 6) {
        for (from, to) in [(0, 1), (0, 2), (1, 2)] {
            let mut moved = counts;
            moved[from] -= 1;
            moved[to] += 1;
            if moved[from] < 0 {
                continue;
            }
            for transcript in &transcripts {
                let p = |counts| probability(&mwem, counts, 6, transcript, (epsilon, b)).ln();
                largest = largest.max((p(&counts) - p(&moved)).abs());
            }
        }
    }
    largest
}

#[test]
fn transcripts_of_neighbours_replaced() {
    let claim = 2.0 * (0.5 + 1.0 / 2.0);
    let honest = largest_loss((0.5, 2.0));
    assert!(honest <= claim && honest > 0.75 * claim, "{honest}");
    // The same with twice the epsilon of the selection, or with half the noise.
    for twin in [(1.0, 2.0), (0.5, 1.0)] {
        let loss = largest_loss(twin);
        assert!(loss > claim, "{loss}");
    }
}

/// The largest loss when one row is added to at most six, with the noisy number of rows that is released first.
fn largest_loss_added((epsilon, b): (f64, f64)) -> f64 {
    // Queries that share a cell, so that with one row more one score may rise and another fall.
    let space = domain(&[3]);
    let cells: [&[usize]; 3] = [&[0], &[0, 1], &[2]];
    let query = |cells: &&[usize]| Query::of(&space, |row| cells.contains(&row[0]));
    let queries = cells.iter().map(query).collect();
    let workload = Workload::queries(space.clone(), queries).expect("three queries");
    let plan = rounds(1, ratio(1, 2), (2, 1));
    let noise = Noise::Laplace(scale(4, 1));
    let mwem = Mwem::<AddRemove>::new(workload, Contribution::Row, plan, &noise).expect("in range");
    let (transcripts, mut largest) = (transcripts(1, -2..9), 0.0_f64);
    for counts in data(6) {
        for to in 0..3 {
            let mut more = counts;
            more[to] += 1;
            // One is what all noisy numbers up to one become.
            for rows in 2..20_i64 {
                for transcript in &transcripts {
                    let p = |counts: &[i64; 3]| {
                        let seen = laplace(rows - counts.iter().sum::<i64>(), 4.0).ln();
                        seen + probability(&mwem, counts, rows, transcript, (epsilon, b)).ln()
                    };
                    largest = largest.max((p(&counts) - p(&more)).abs());
                }
            }
        }
    }
    largest
}

#[test]
fn transcripts_of_neighbours_added() {
    let claim = 1.0 / 4.0 + 0.5 + 1.0 / 2.0;
    let honest = largest_loss_added((0.5, 2.0));
    assert!(honest <= claim && honest > 0.85 * claim, "{honest}");
    // Scores taken for monotone, since counts are, which doubles the epsilon of the selection; and half the noise.
    for twin in [(1.0, 2.0), (0.5, 1.0)] {
        let loss = largest_loss_added(twin);
        assert!(loss > claim, "{loss}");
    }
}

/// The code draws the transcripts with the probabilities of the formulas.
#[test]
fn distribution() {
    let mwem =
        Mwem::with_public_rows(three(), rounds(2, ratio(3, 2), (1, 1)), 9).expect("in range");
    let counts = [7, 2, 0];
    let transcripts = transcripts(2, -4..12);
    let p: Vec<f64> = transcripts
        .iter()
        .map(|transcript| probability(&mwem, &counts, 9, transcript, (1.5, 1.0)))
        .collect();
    let mut entropy = Seeded::new(seed(701));
    let mut p_value = |draws: u64| {
        let draws = (0..draws).map(|_| {
            let release = mwem.release(Secret::new(counts.to_vec()), &mut entropy);
            let release = release.expect("entropy");
            let index = |m: &Measurement| {
                let answer = usize::try_from(m.answer + 4).ok().filter(|&at| at < 16);
                answer.map(|answer| m.query * 16 + answer)
            };
            let [first, second] = release.value().measurements() else {
                panic!("two rounds")
            };
            let both = index(first).zip(index(second));
            both.map_or(usize::MAX, |(first, second)| first * 48 + second)
        });
        let cells = Cells::tally(p.len(), draws);
        cells.g_test(&p).expect("probabilities").p_value
    };
    let first = p_value(100_000);
    assert!(first >= ALPHA || p_value(400_000) >= ALPHA, "{first:e}");
}

/// The same for units of three rows: selections and answers are as much flatter as a unit can move more.
#[test]
fn distribution_for_units_of_several_rows() {
    let plan = rounds(1, ratio(9, 2), (3, 1));
    let exact = Noise::Laplace(scale(1, 1 << 30));
    let mwem = Mwem::<AddRemove>::new(three(), Contribution::RowsPerUnit(3), plan, &exact);
    let mwem = mwem.expect("in range");
    let counts = [7, 2, 0];
    let transcripts = transcripts(1, -20..30);
    let p: Vec<f64> = transcripts
        .iter()
        .map(|transcript| probability(&mwem, &counts, 9, transcript, (1.5, 3.0)))
        .collect();
    let mut entropy = Seeded::new(seed(705));
    let mut p_value = |draws: u64| {
        let draws = (0..draws).map(|_| {
            let release = mwem.release(Secret::new(counts.to_vec()), &mut entropy);
            let first = release.expect("entropy").value().measurements()[0];
            let answer = usize::try_from(first.answer + 20).ok();
            let answer = answer.filter(|&at| at < 50);
            answer.map_or(usize::MAX, |answer| first.query * 50 + answer)
        });
        let cells = Cells::tally(p.len(), draws);
        cells.g_test(&p).expect("probabilities").p_value
    };
    let first = p_value(50_000);
    assert!(first >= ALPHA || p_value(200_000) >= ALPHA, "{first:e}");
}

/// Two queries of which the first is right and the second far off; one row is moved from the first to the second. The event: the
/// first is chosen and its answer is low.
fn seen(epsilon: Ratio, b: (u128, u128), trials: u64) -> Verdict {
    let four = domain(&[4]);
    let queries = [0, 1].map(|cell| Query::cell(&four, &[(0, cell)])).to_vec();
    let workload = Workload::queries(four, queries).expect("two queries");
    let mwem = Mwem::with_public_rows(workload, rounds(1, epsilon, b), 40).expect("in range");
    let event = |counts: [i64; 4], entropy: &mut Seeded| {
        let release = mwem.release(Secret::new(counts.to_vec()), entropy);
        let first = release.expect("entropy").value().measurements()[0];
        first.query == 0 && first.answer <= 9
    };
    let (mut one, mut other) = (Seeded::new(seed(702)), Seeded::new(seed(703)));
    judge(
        2.0,
        0.0,
        trials,
        || event([9, 5, 13, 13], &mut one),
        || event([10, 4, 13, 13], &mut other),
    )
}

#[test]
fn falsifier() {
    let verdict = seen(Ratio::one(), (1, 1), 400_000);
    assert!(
        !verdict.convicted && verdict.epsilon_lower > 1.73,
        "{verdict:?}"
    );
}

#[test]
fn falsifier_has_teeth() {
    assert!(
        seen(ratio(2, 1), (1, 1), 250_000).convicted,
        "selection costs double"
    );
    assert!(
        seen(Ratio::one(), (1, 2), 100_000).convicted,
        "half the noise"
    );
    assert!(
        seen(ratio(5, 4), (4, 5), 250_000).convicted,
        "a quarter more of both"
    );
}

/// Rows of binary columns: a hidden class, and a chain within it.
fn binary_rows(columns: usize, rows: usize, bits: &mut SeededBits) -> Vec<i64> {
    let mut counts = vec![0; 1 << columns];
    let mut coin = |percent: u64| bits.below(100) < percent;
    for _ in 0..rows {
        let class = coin(30);
        let (mut cell, mut last) = (0, class);
        for column in 0..columns {
            let percent = match (last, class) {
                (true, true) => 85,
                (true, false) => 60,
                (false, true) => 45,
                (false, false) => 10 + 2 * column as u64,
            };
            last = coin(percent);
            cell = 2 * cell + usize::from(last);
        }
        counts[cell] += 1;
    }
    counts
}

/// The largest and the mean distance.
fn errors(truths: &[i64], answers: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let apart = truths.iter().zip(answers);
    let apart = apart.map(|(truth, answer)| (*truth as f64 - answer).abs());
    let (largest, sum) = apart.fold((0.0_f64, 0.0), |(largest, sum), e| {
        (largest.max(e), sum + e)
    });
    [largest, sum / truths.len() as f64]
}

/// All three-way marginals of twelve binary columns with ε = 1, ten thousand rows: beside the same with Laplace noise on all cells, clamped
/// to what is possible. Errors are averaged over data sets, since a single one may have luck.
#[test]
fn beats_noise_on_all_cells() {
    let (columns, rows) = (12, 10_000);
    let space = domain(&vec![2; columns]);
    let workload = Workload::all_marginals(space.clone(), 3).expect("sets");
    let sets: Vec<Vec<usize>> = (0..columns)
        .flat_map(|i| (i + 1..columns).map(move |j| (i, j)))
        .flat_map(|(i, j)| (j + 1..columns).map(move |k| vec![i, j, k]))
        .collect();
    let sets: Vec<&[usize]> = sets.iter().map(Vec::as_slice).collect();
    let marginals = Marginals::<AddRemove>::new(space.columns().to_vec(), &sets, Contribution::Row);
    let marginals = marginals.expect("sets");
    assert_eq!(marginals.sensitivity_l1().bound(), &Ratio::from(220_u64));
    let noisy = marginals.with_noise(&Noise::Laplace(scale(220, 1)));
    // 1/20 for the number of rows, and 19/20 for 20 rounds: 7/10 of that for the selections.
    let plan = Rounds {
        replays: 20,
        ..rounds(20, ratio(133, 4000), (4000, 57))
    };
    let rows_noise = Noise::Laplace(scale(20, 1));
    let mwem = Mwem::<AddRemove>::new(workload.clone(), Contribution::Row, plan, &rows_noise);
    let mwem = mwem.expect("in range");

    let mut bits = SeededBits::new(seed(704));
    let repeats = if long() { 200 } else { 10 };
    let (mut found, mut baseline, mut uniform) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    let mut beyond_half = 0;
    for _ in 0..repeats {
        let counts = binary_rows(columns, rows, &mut bits);
        let truths = workload.answers(&counts).expect("all cells");
        let mut entropy = Seeded::new(bits.word());
        let tables = noisy.release(Secret::new(truths.clone()), confidence(0.95), &mut entropy);
        let tables = tables.expect("entropy").into_value();
        let cells = tables.iter().flat_map(|table| table.cells());
        let noise = errors(&truths, cells.map(|c| c.answer.clamp(0.0, rows as f64)));
        let release = mwem.release(Secret::new(counts), &mut entropy);
        let synthetic = release.expect("entropy").into_value();
        let own = errors(&truths, synthetic.answers(&workload).expect("same domain"));
        let same = errors(&truths, truths.iter().map(|_| rows as f64 / 8.0));
        beyond_half += u32::from(own[0] > 0.5 * noise[0]);
        for i in 0..2 {
            found[i] += own[i] / f64::from(repeats);
            baseline[i] += noise[i] / f64::from(repeats);
            uniform[i] += same[i] / f64::from(repeats);
        }
    }
    eprintln!(
        "largest and mean error: MWEM {found:.0?}, noise {baseline:.0?}, uniform {uniform:.0?}; \
         {beyond_half} of {repeats} above half of the noise"
    );
    assert!(found[0] <= 0.5 * baseline[0] && found[0] < 0.5 * uniform[0]);
    assert!(found[1] < 0.7 * baseline[1] && found[1] < 0.5 * uniform[1]);
}
