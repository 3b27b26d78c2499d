//! What is released is `C x + z`, in its order, and what is decoded is `x` with the noise that a plan says.

use super::*;
use crate::draft::{Draft, FactorDraft, NoiseDraft, SamplerDraft};
use crate::payment::{Payment, Uncharged};
use crate::plan::Plan;
use crate::sampler::Sampler;
use whit_core::{Event, Fault, Mechanism};
use whit_testkit::{FailingEntropy, Seeded, SeededBits};

fn encoder(factor: FactorDraft) -> Encoder {
    Encoder::new(&Cyclic::new(3, factor, 16).expect("in range").factor)
}

/// Numbers of both signs, up to `2^bits`.
fn numbers(bits: &mut SeededBits, count: usize, size: u32) -> Vec<i64> {
    let centre = 1_i64 << size;
    let number = |_| bits.below(2 << size) as i64 - centre;
    (0..count).map(number).collect()
}

/// Sixteen steps with noise that is known: what was released, and what was decoded.
fn run(factor: FactorDraft, sums: &[Vec<i64>], noise: &[Vec<i64>]) -> [Vec<Vec<i64>>; 2] {
    let mut encoder = encoder(factor);
    let mut noise = noise.iter();
    let (mut rows, mut decoded) = (Vec::new(), Vec::new());
    for sum in sums {
        let released = |row: Secret<Vec<i64>>| {
            let noise = noise.next().expect("enough");
            let row: Vec<i64> = row.expose().iter().zip(noise).map(|(u, z)| u + z).collect();
            rows.push(row.clone());
            Ok(row)
        };
        let sum = Secret::new(sum.clone());
        decoded.push(
            encoder
                .step(NonZeroUsize::MIN, sum, released)
                .expect("fits"),
        );
    }
    [rows, decoded]
}

#[test]
fn banded_releases_are_the_encoded_sums_and_their_noise() {
    let mut bits = SeededBits::new(1);
    let sums: Vec<_> = (0..16).map(|_| numbers(&mut bits, 5, 40)).collect();
    let noise: Vec<_> = (0..16).map(|_| numbers(&mut bits, 5, 44)).collect();
    let c = [256, 128, 96, 80];
    let factor = FactorDraft::Banded { band: 4 };
    let [rows, decoded] = run(factor, &sums, &noise);
    let mut wanted = vec![vec![0.0; 5]; 16];
    for t in 0..16 {
        for i in 0..5 {
            let lags = 0..=t.min(3);
            let encoded: i64 = lags.clone().map(|j| c[j] * sums[t - j][i]).sum();
            assert_eq!(rows[t][i], encoded + noise[t][i]);
            // Forward substitution in floats: x + C⁻¹ z.
            let before: f64 = (1..=t.min(3))
                .map(|j| c[j] as f64 / 256.0 * wanted[t - j][i])
                .sum();
            wanted[t][i] = noise[t][i] as f64 - before;
            let exact = 256.0 * sums[t][i] as f64 + wanted[t][i];
            assert!((decoded[t][i] as f64 - exact).abs() < 4.0, "step {t}");
        }
    }
    let silent = vec![vec![0; 5]; 16];
    let [_, decoded] = run(factor, &sums, &silent);
    let times: Vec<Vec<i64>> = sums
        .iter()
        .map(|x| x.iter().map(|x| 256 * x).collect())
        .collect();
    assert_eq!(decoded, times);
}

#[test]
fn a_tree_releases_each_node_once_with_its_last_step() {
    let mut bits = SeededBits::new(2);
    let sums: Vec<_> = (0..16).map(|_| numbers(&mut bits, 3, 40)).collect();
    let noise: Vec<_> = (0..31).map(|_| numbers(&mut bits, 3, 38)).collect();
    let [rows, decoded] = run(FactorDraft::Tree, &sums, &noise);
    // Nodes by their last step, smaller ones first.
    let mut nodes = Vec::new();
    for t in 1..=16_usize {
        let widths = (0..=t.trailing_zeros()).map(|level| 1 << level);
        nodes.extend(widths.map(|width| t - width..t));
    }
    assert_eq!((rows.len(), nodes.len()), (31, 31));
    for ((row, noise), node) in rows.iter().zip(&noise).zip(&nodes) {
        for i in 0..3 {
            let sum: i64 = node.clone().map(|s| sums[s][i]).sum();
            assert_eq!(row[i], sum + noise[i], "{node:?}");
        }
    }
    // The value of a node: 2/3 of its own release and 1/3 of its two leaves, and so on upward.
    for i in 0..3 {
        let value = |own: i64, level: u32, children: f64| {
            let weight = f64::from(1 << level);
            (own as f64 * weight + children * (weight - 1.0)) / (2.0 * weight - 1.0)
        };
        let pair = value(rows[2][i], 1, (rows[0][i] + rows[1][i]) as f64);
        let next = value(rows[5][i], 1, (rows[3][i] + rows[4][i]) as f64);
        let four = value(rows[6][i], 2, pair + next);
        let prefix = |steps: usize| -> f64 { decoded[..steps].iter().map(|y| y[i] as f64).sum() };
        for (steps, wanted) in [
            (1, rows[0][i] as f64),
            (2, pair),
            (3, pair + rows[3][i] as f64),
            (4, four),
            (5, four + rows[7][i] as f64),
        ] {
            assert!((prefix(steps) - wanted).abs() < 8.0, "{steps} steps");
        }
    }
    let [_, decoded] = run(FactorDraft::Tree, &sums, &vec![vec![0; 3]; 31]);
    assert_eq!(decoded, sums);
}

/// Also at the ends of 64 bits, where rows are clamped: no vectors are moved further apart by that.
#[test]
fn weighted_sums_are_exact() {
    let mut bits = SeededBits::new(3);
    let vectors: Vec<Vec<i64>> = (0..1024)
        .map(|_| {
            (0..9)
                .map(|_| bits.below(u64::MAX) as i64)
                .chain([i64::MIN, i64::MAX, -1, 0])
                .collect()
        })
        .collect();
    let vectors: Vec<&[i64]> = vectors.iter().map(Vec::as_slice).collect();
    for (count, factor) in [(1, 1), (3, 255), (1024, 256), (1024, u16::MAX)] {
        let factors: Vec<u16> = (0..count).map(|j| factor - (j % 2)).collect();
        let mut out = vec![0; 13];
        let exact = |i: usize| -> i128 {
            let terms = factors.iter().zip(&vectors);
            terms
                .map(|(&factor, vector)| i128::from(factor) * i128::from(vector[i]))
                .sum()
        };
        let threads = NonZeroUsize::new(2).expect("two");
        weighted(threads, &factors, &vectors, &mut out, |_, total| {
            total >> 30
        });
        for (i, &out) in out.iter().enumerate() {
            assert_eq!(i128::from(out), exact(i) >> 30);
        }
        weighted(threads, &factors, &vectors, &mut out, |_, total| total);
        for (i, &out) in out.iter().enumerate() {
            assert_eq!(out, clamped(exact(i)));
        }
    }
}

fn draft(bins: u64, steps: u64, factor: FactorDraft) -> Draft {
    Draft {
        sampler: SamplerDraft::Cyclic { bins, factor },
        steps,
        clip_norm: 0.7,
        adaptive: None,
        noise: NoiseDraft::Multiplier(2.0),
        delta: 1e-5,
        relation: Neighbours::AddRemove,
        examples_public: 10,
    }
}

const BANDED: FactorDraft = FactorDraft::Banded { band: 2 };

fn plan(bins: u64, steps: u64, factor: FactorDraft) -> Plan {
    Plan::new(&draft(bins, steps, factor)).expect("a plan")
}

fn sampler(plan: &Plan) -> Sampler {
    let payment = Payment::uncharged(plan, Uncharged);
    plan.sampler(5, payment).expect("paid")
}

fn stream(plan: &Plan) -> Correlated {
    plan.correlated().expect("in range").expect("cyclic")
}

fn release(stream: &mut Correlated, sampler: &mut Sampler) -> Result<Vec<i64>> {
    let mut entropy = Seeded::new(4);
    let batch = sampler.draw(&mut entropy)?;
    stream.release_on(
        NonZeroUsize::MIN,
        batch,
        Secret::new(vec![0; 3]),
        &mut entropy,
    )
}

fn code(found: Result<Vec<i64>>) -> Option<&'static str> {
    found.err().map(|error| error.code())
}

/// A batch that is lost, one of another run, and one of another plan with the same event: each would bring turns closer together.
#[test]
fn batches_out_of_turn_are_refused() {
    for factor in [BANDED, FactorDraft::Tree] {
        let plan = plan(2, 8, factor);
        let (mut own, mut stream) = (sampler(&plan), stream(&plan));
        assert!(release(&mut stream, &mut own).is_ok());
        assert_eq!(
            code(release(&mut stream, &mut sampler(&plan))),
            Some("other_plan")
        );
        drop(own.draw(&mut Seeded::new(1)));
        assert_eq!(code(release(&mut stream, &mut own)), Some("out_of_order"));
        // A stream that begins later knows no sums from before: a band is cut off, and a tree would be another one.
        let late = code(release(&mut self::stream(&plan), &mut own));
        let refused = (factor == FactorDraft::Tree).then_some("out_of_order");
        assert_eq!(late, refused);
    }
    // Four whole columns of 1.25, and five of 1.
    let (two, one) = (
        plan(2, 8, BANDED),
        plan(1, 5, FactorDraft::Banded { band: 1 }),
    );
    assert_eq!(
        two.summary().cyclic.map(|c| c.sensitivity),
        one.summary().cyclic.map(|c| c.sensitivity)
    );
    let foreign = release(&mut stream(&two), &mut sampler(&one));
    assert_eq!(code(foreign), Some("other_plan"));
}

#[test]
fn a_step_without_entropy_ends_the_stream() {
    let plan = plan(2, 8, BANDED);
    let (mut own, mut stream) = (sampler(&plan), stream(&plan));
    let batch = own.draw(&mut Seeded::new(1)).expect("paid");
    let sum = Secret::new(vec![0; 3]);
    let failed = stream.release_on(NonZeroUsize::MIN, batch, sum, &mut FailingEntropy);
    assert!(failed.is_err());
    assert!(release(&mut stream, &mut own).is_err());
}

/// The mechanism says of itself what the plan's event says, in both relations, and its noise has that scale.
#[test]
fn noise_and_event_are_one() {
    for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
        for factor in [BANDED, FactorDraft::Tree] {
            let plan = Plan::new(&Draft {
                relation,
                ..draft(2, 8, factor)
            })
            .expect("a plan");
            let mut stream = stream(&plan);
            let said = Mechanism::Gaussian {
                scale: stream.scale.clone(),
                sensitivity_l2_square: stream.sensitivity_square.clone(),
            };
            assert_eq!(*plan.event(), Event::new(relation, said));
            let mut entropy = Seeded::new(7);
            let batch = sampler(&plan).draw(&mut entropy).expect("paid");
            let zeros = Secret::new(vec![0; 4000]);
            let found = stream.release_on(NonZeroUsize::MIN, batch, zeros, &mut entropy);
            let squares = found
                .expect("entropy")
                .into_iter()
                .map(|y| (y as f64).powi(2));
            let sigma = (squares.sum::<f64>() / 4000.0).sqrt() * plan.release_unit();
            // Within five of its own deviations, of a share 1/√8000 each.
            assert!((sigma / (2.0 * 0.7) - 1.0).abs() < 0.056, "{sigma}");
        }
    }
}
