//! Mechanisms that choose one option of many, or answer a stream of comparisons.

use std::rc::Rc;

use whit_core::{AddRemove, Linf, Ratio, ReplaceOne, Secret, Sensitivity};
use whit_mechanism::confident_noisy_max::{Caps, ConfidentNoisyMax};
use whit_mechanism::gaussian_noisy_max::{GaussianNoisyMax, steps};
use whit_mechanism::{
    Answer, Piece, PiecewiseExponential, ReportNoisyMax, Scores, SparseVector, TopK,
};

use crate::case::{Case, Claim, Cost, Share, both, laplace_chances, scale, upper_tail};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in [1.0, 2.0, 3.0] {
        cases.push(report_noisy_max(epsilon));
        cases.push(top_k(epsilon));
        cases.push(on_a_line(epsilon));
    }
    for epsilon in [1.0, 2.0] {
        cases.push(sparse_vector(epsilon));
        cases.push(sparse_vector_with_values(epsilon));
    }
    for sigma in [0.5, 1.0, 2.0] {
        cases.push(gaussian_noisy_max(sigma));
        cases.push(confident_noisy_max(sigma));
    }
    cases
}

pub(crate) fn ratio(epsilon: f64, share: Share) -> Ratio {
    Ratio::from_f64(epsilon / share.value()).expect("finite")
}

fn sensitivity<R: whit_core::Relation>(by: u64) -> Sensitivity<Linf, R> {
    Sensitivity::new(Ratio::from(by))
}

/// `Pr[Z - Z' >= least]` of discrete Laplace noise whose every unit costs `rate`.
fn apart(rate: f64, least: i64) -> f64 {
    two_apart([rate; 2], least)
}

/// The same of noises whose units cost this much and that much: over all of the first, the tail of the other.
pub(crate) fn two_apart([rate, other]: [f64; 2], least: i64) -> f64 {
    let ratio = libm::exp(-rate);
    let law = |z: i64| (1.0 - ratio) / (1.0 + ratio) * libm::pow(ratio, z.abs() as f64);
    let last = (60.0 / rate) as i64;
    let each = |z: i64| law(z) * laplace_tail(other, least - z);
    (-last..=last).map(each).sum()
}

/// `Pr[Z >= t]`.
pub(crate) fn laplace_tail(rate: f64, t: i64) -> f64 {
    let q = libm::exp(-rate);
    if t > 0 {
        libm::pow(q, t as f64) / (1.0 + q)
    } else {
        1.0 - libm::pow(q, (1 - t) as f64) / (1.0 + q)
    }
}

/// Two options change places, each by the sensitivity. With discrete Laplace noise of scale `b = 2/ε` on both, the first of equals winning, option 0 is chosen
/// with probability `Pr[Z - Z' >= -1]` and `Pr[Z - Z' >= 1]`.
fn report_noisy_max(epsilon: f64) -> Case {
    let chances = move |share: Share| [-1, 1].map(|d| apart(epsilon / share.value() / 2.0, d));
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 0.0);
    let name = format!("epsilon {epsilon}, 2 options");
    Case::new("report noisy max", name, claim, move |share| {
        let scores = Scores::<ReplaceOne>::new(2, &sensitivity(1)).expect("two options");
        let mechanism = ReportNoisyMax::new(ratio(epsilon, share), scores);
        let mechanism = Rc::new(mechanism.expect("a usual scale"));
        both(vec![1, 0], vec![0, 1], move |x, coins| {
            let release = mechanism.release(Secret::new(x.clone()), coins);
            *release.expect("the stream is open").value() == 0
        })
    })
    .with_chances(chances)
}

/// One vote that turns an election between two: the difference of two noisy counts is normal with deviation `√2 σ`.
fn gaussian_noisy_max(sigma: f64) -> Case {
    let chances = move |share: Share| {
        let off = std::f64::consts::FRAC_1_SQRT_2 / (sigma * share.value());
        [-off, off].map(upper_tail)
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-6);
    let name = format!("sigma {sigma}, 2 classes");
    Case::new("Gaussian noisy max", name, claim, move |share| {
        let mechanism = GaussianNoisyMax::<ReplaceOne>::new(scale(sigma, share), 2);
        let mechanism = Rc::new(mechanism.expect("two classes"));
        both(vec![7, 6], vec![6, 7], move |votes, coins| {
            let votes = steps(Secret::new(votes.clone()), 2);
            let release = mechanism.release(votes, coins);
            *release.expect("the stream is open").value() == 0
        })
    })
    .with_chances(chances)
}

/// Two queries of a stream, of which both are answered, and both for the class that one vote puts ahead: its largest count is above the threshold or below it by half a
/// vote, and the classes are two votes apart, or not at all.
fn confident_noisy_max(sigma: f64) -> Case {
    let chances = move |share: Share| {
        let sigma = sigma * share.value();
        let (test, tell) = (0.5 / sigma, std::f64::consts::SQRT_2 / sigma);
        let likely = upper_tail(-test) * upper_tail(-tell);
        let unlikely = upper_tail(test) * 0.5;
        [likely * likely, unlikely * unlikely]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-6);
    let name = format!("sigma {sigma}, two queries");
    let case = Case::new("confident Gaussian noisy max", name, claim, move |share| {
        both(vec![7, 5], vec![6, 6], move |votes, coins| {
            let maximum = GaussianNoisyMax::<ReplaceOne>::new(scale(sigma, share), 2);
            let threshold = Ratio::new(13, 2).expect("not zero");
            let maximum = maximum.expect("two classes");
            let mechanism = ConfidentNoisyMax::new(&threshold, scale(sigma, share), maximum);
            let caps = Caps {
                tests: 2,
                answers: 2,
            };
            let mut stream = mechanism.expect("a usual scale").start(caps);
            (0..2).all(|_| {
                let votes = steps(Secret::new(votes.clone()), 2);
                let release = stream.ask(votes, coins).expect("the stream is open");
                *release.value() == Some(0)
            })
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// Two options that lose what two others gain, `ε/2` for each round: both are told, in either order.
fn top_k(epsilon: f64) -> Case {
    let chosen = |own: f64, rest: f64| {
        let total = 2.0 * own + 2.0 * rest;
        2.0 * own / total * own / (total - own)
    };
    let chances = move |share: Share| {
        let w = libm::exp(epsilon / share.value() / 2.0 / 2.0);
        [chosen(w, 1.0), chosen(1.0, w)]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 0.0);
    let name = format!("epsilon {epsilon}, 2 of 4 options");
    let case = Case::new("top k", name, claim, move |share| {
        let scores = Scores::<ReplaceOne>::new(4, &sensitivity(1)).expect("four options");
        let mechanism = TopK::new(2, ratio(epsilon / 2.0, share), scores);
        let mechanism = Rc::new(mechanism.expect("two of four"));
        both(vec![1, 1, 0, 0], vec![0, 0, 1, 1], move |x, coins| {
            let release = mechanism.release(Secret::new(x.clone()), coins);
            let mut told = release.expect("the stream is open").into_value();
            told.sort_unstable();
            told == [0, 1]
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// A hill of a fifth of the points moves up by the sensitivity where all others move down: by a factor of `e^ε` in weight.
fn on_a_line(epsilon: f64) -> Case {
    let chances = move |share: Share| {
        let weight = libm::exp(epsilon / share.value()) / 4.0;
        [weight / (weight + 1.0), 0.2]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 0.0);
    let name = format!("epsilon {epsilon}, 1000 points");
    let case = Case::new("exponential on a line", name, claim, move |share| {
        let mechanism =
            PiecewiseExponential::<ReplaceOne>::new(ratio(epsilon, share), &sensitivity(3), 0, 999);
        let mechanism = Rc::new(mechanism.expect("a thousand points"));
        both(3_i64, 0, move |by, coins| {
            let piece = |start, score| Piece {
                start,
                score,
                slope: 0,
            };
            let pieces = vec![piece(0, -by), piece(500, *by), piece(700, -by)];
            let release = mechanism.release(Secret::new(pieces), coins);
            (500..700).contains(release.expect("the stream is open").value())
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// The probability of so many answers below and then one above, at queries `first` below and `last` above a threshold of zero. The noise of threshold and query
/// is discrete Laplace; the split is that of the definition.
fn stream_probability(epsilon: f64, (below, first): (i32, i64), last: i64) -> f64 {
    let weight = libm::pow(2.0, 2.0 / 3.0);
    let threshold = epsilon / (1.0 + weight);
    let query = (epsilon - threshold) / 2.0;
    let law = |rate: f64, z: i64| {
        let q = libm::exp(-rate);
        (1.0 - q) / (1.0 + q) * libm::pow(q, z.abs() as f64)
    };
    let from = |t: i64| laplace_tail(query, t);
    let reach = (40.0 / threshold) as i64;
    let each = |z: i64| law(threshold, z) * (1.0 - from(z - first)).powi(below) * from(z - last);
    (-reach..=reach).map(each).sum()
}

/// Many below and then one above: the event of the proof that is tight.
fn sparse_vector(epsilon: f64) -> Case {
    let chances = move |share: Share| {
        let epsilon = epsilon / share.value();
        [(0, 1), (1, 0)].map(|(first, last)| stream_probability(epsilon, (4, first), last))
    };
    let [likely, unlikely] = chances(Share::ALL);
    // The split is rounded to multiples of 2^-30.
    let claim = Claim::of(likely, unlikely, 1e-6);
    let name = format!("epsilon {epsilon}, 5 queries");
    let case = Case::new("sparse vector", name, claim, move |share| {
        let mechanism = SparseVector::<ReplaceOne>::new(ratio(epsilon, share), 1, &sensitivity(1));
        let mechanism = Rc::new(mechanism.expect("one answer"));
        both([0, 0, 0, 0, 1], [1, 1, 1, 1, 0], move |queries, coins| {
            let mut stream = mechanism.start(0, coins).expect("the stream is open");
            let last = queries.len() - 1;
            for (at, query) in queries.iter().enumerate() {
                let answer = stream.above(Secret::new(*query), coins);
                let above = *answer.expect("the stream is open").value() != Answer::Below;
                if above {
                    return at == last;
                }
            }
            false
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// One query above the threshold, with its value: half of the epsilon for each. A count that goes from 0 to 1 under add/remove.
fn sparse_vector_with_values(epsilon: f64) -> Case {
    // Monotone: the threshold and the query have half of the comparison's half each.
    let chances = move |share: Share| {
        let epsilon = epsilon / share.value();
        let [likely, unlikely] = laplace_chances(epsilon / 2.0, 1);
        [
            apart(epsilon / 4.0, -1) * likely,
            apart(epsilon / 4.0, 0) * unlikely,
        ]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let name = format!("epsilon {epsilon}, one query");
    let claim = Claim::of(likely, unlikely, 1e-6);
    Case::new("sparse vector with values", name, claim, move |share| {
        let half = ratio(epsilon / 2.0, share);
        let mechanism = SparseVector::<AddRemove>::monotone(half.clone(), 1, &sensitivity(1));
        let mechanism = mechanism.and_then(|mechanism| mechanism.with_values(&half));
        let mechanism = Rc::new(mechanism.expect("one answer"));
        both(1_i64, 0, move |query, coins| {
            let mut stream = mechanism.start(0, coins).expect("the stream is open");
            let answer = stream.above(Secret::new(*query), coins);
            match answer.expect("the stream is open").value() {
                Answer::Above { value: Some(value) } => *value >= 1,
                _ => false,
            }
        })
    })
    .with_chances(chances)
}
