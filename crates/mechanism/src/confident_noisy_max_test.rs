//! Transcripts of whole streams: their exact laws on neighbours, what is seen of them, and twins that tell too much.

use super::*;
use crate::doubt::{ALPHA, scale, seed};
use crate::gaussian_noisy_max::tests::{noisy_max, probabilities, survival, votes};
use std::collections::BTreeMap;
use whit_audit::{Alpha, GdpVerdict, falsify_gdp, g_test};
use whit_core::{Mu, ReplaceOne};
use whit_testkit::{FailingEntropy, Seeded};

type Transcript = Vec<Option<usize>>;

/// Where profiles are compared.
const EPSILONS: [f64; 6] = [0.0, 0.2, 0.5, 1.0, 2.0, 3.0];

/// Parameters as floats, for exact laws.
#[derive(Clone, Copy)]
struct Noise {
    threshold: f64,
    test: f64,
    answer: f64,
}

const NOISE: Noise = Noise {
    threshold: 6.5,
    test: 2.0,
    answer: 2.0,
};

fn confident(noise: Noise, classes: u64) -> ConfidentNoisyMax<ReplaceOne> {
    let whole = |value: f64| ((value * 1000.0).round() as u128, 1000);
    let threshold = Ratio::from_f64(noise.threshold).expect("finite");
    let (test, answer) = (whole(noise.test), whole(noise.answer));
    ConfidentNoisyMax::new(
        &threshold,
        scale(test.0, test.1),
        noisy_max(answer, classes),
    )
    .expect("in range")
}

/// The law of transcripts, by products of exact probabilities; the next query is the one that `next` gives for all that was told.
fn law(
    noise: Noise,
    caps: Caps,
    next: &dyn Fn(&Transcript) -> Vec<u64>,
) -> BTreeMap<Transcript, f64> {
    let mut open = vec![(Transcript::new(), 1.0)];
    let mut done = BTreeMap::new();
    while let Some((told, p)) = open.pop() {
        let answers = told.iter().flatten().count() as u64;
        if told.len() as u64 == caps.tests || answers == caps.answers {
            done.insert(told, p);
            continue;
        }
        let counts = next(&told);
        let most = counts.iter().copied().max().expect("classes") as f64;
        let passes = survival((noise.threshold - most) / noise.test);
        let mut tell = |answer: Option<usize>, p: f64| {
            let mut told = told.clone();
            told.push(answer);
            open.push((told, p));
        };
        tell(None, p * (1.0 - passes));
        for (class, wins) in probabilities(&counts, noise.answer).into_iter().enumerate() {
            tell(Some(class), p * passes * wins);
        }
    }
    done
}

/// Queries that follow the answers, on the votes of twelve teachers of whom one, in the second world, always votes for another class.
fn queries(other: bool) -> impl Fn(&Transcript) -> Vec<u64> {
    move |told: &Transcript| {
        let last = told.last().copied().flatten();
        let mut counts = match (told.len() % 2, last) {
            (0, None) => vec![7, 5],
            (_, Some(0)) => vec![6, 6],
            (_, Some(_)) => vec![5, 7],
            (_, None) => vec![9, 3],
        };
        if other {
            counts[0] -= 1;
            counts[1] += 1;
        }
        counts
    }
}

/// `sup_S P(S) - e^ε Q(S)`.
fn hockey_stick(p: &BTreeMap<Transcript, f64>, q: &BTreeMap<Transcript, f64>, epsilon: f64) -> f64 {
    let excess = p
        .iter()
        .map(|(told, p)| p - epsilon.exp() * q.get(told).copied().unwrap_or(0.0));
    excess.map(|excess| excess.max(0.0)).sum()
}

/// `δ(ε)` of `μ`-GDP.
fn profile(mu: f64, epsilon: f64) -> f64 {
    survival(epsilon / mu - mu / 2.0) - epsilon.exp() * survival(epsilon / mu + mu / 2.0)
}

fn mu(noise: Noise, caps: Caps) -> f64 {
    let tests = caps.tests as f64 / (noise.test * noise.test);
    (tests + 2.0 * caps.answers as f64 / (noise.answer * noise.answer)).sqrt()
}

/// Does some epsilon show more than `μ`-GDP allows?
fn breaks(mu: f64, p: &BTreeMap<Transcript, f64>, q: &BTreeMap<Transcript, f64>) -> bool {
    EPSILONS.into_iter().any(|epsilon| {
        let allowed = profile(mu, epsilon) + 1e-9;
        hockey_stick(p, q, epsilon) > allowed || hockey_stick(q, p, epsilon) > allowed
    })
}

#[test]
fn closed_form() {
    let caps = Caps {
        tests: 640,
        answers: 300,
    };
    let mechanism = confident(
        Noise {
            threshold: 200.0,
            test: 150.0,
            answer: 40.0,
        },
        10,
    );
    assert_eq!(
        mechanism.event(caps).record(),
        r#"{"version":2,"neighbours":"replace_one","mechanism":{"composition":[{"sampled":{"sampling":"all","steps":640,"inner":{"gaussian":{"scale":"150","sensitivity_l2_square":"1"}}}},{"sampled":{"sampling":"all","steps":300,"inner":{"gaussian":{"scale":"40","sensitivity_l2_square":"2"}}}}]}}"#
    );
    let stream = mechanism.start(caps);
    assert_eq!((stream.left(), stream.is_halted()), (caps, false));
    assert_eq!(
        stream.event(),
        confident(
            Noise {
                threshold: 1.0,
                test: 150.0,
                answer: 40.0
            },
            10
        )
        .event(caps)
    );
}

/// Exact laws of adaptive streams on neighbours: within `μ`-GDP for every cap, and not far below.
#[test]
fn exact_loss_of_streams() {
    let mut nearest = f64::INFINITY;
    for (tests, answers) in [(1, 1), (3, 1), (4, 2), (5, 5), (6, 3)] {
        let caps = Caps { tests, answers };
        let (p, q) = (
            law(NOISE, caps, &queries(false)),
            law(NOISE, caps, &queries(true)),
        );
        let sum: f64 = p.values().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert!(!breaks(mu(NOISE, caps), &p, &q), "{caps:?}");
        nearest = nearest.min(profile(mu(NOISE, caps), 0.0) / hockey_stick(&p, &q, 0.0));
    }
    assert!(nearest < 2.0, "{nearest}");
}

/// Twins, by their exact laws: too little noise on either, abstention for free, and a cap that is not kept.
#[test]
fn exact_loss_convicts_twins() {
    let caps = Caps {
        tests: 4,
        answers: 2,
    };
    let claimed = mu(NOISE, caps);
    let convicted = |noise: Noise, caps: Caps| {
        breaks(
            claimed,
            &law(noise, caps, &queries(false)),
            &law(noise, caps, &queries(true)),
        )
    };
    assert!(!convicted(NOISE, caps));
    assert!(convicted(
        Noise {
            answer: 0.5,
            ..NOISE
        },
        caps
    ));
    // Abstaining without noise tells on which side of the threshold the most votes are.
    assert!(convicted(
        Noise {
            test: 0.01,
            ..NOISE
        },
        caps
    ));
    let sure = Noise {
        threshold: 0.0,
        ..NOISE
    };
    assert!(!convicted(sure, caps));
    assert!(convicted(
        sure,
        Caps {
            tests: 9,
            answers: 9
        }
    ));
}

fn run(noise: Noise, caps: Caps, other: bool, entropy: &mut Seeded) -> Transcript {
    let (mut stream, next) = (confident(noise, 2).start(caps), queries(other));
    let mut told = Transcript::new();
    while !stream.is_halted() {
        let release = stream.ask(votes(&next(&told)), entropy).expect("entropy");
        told.push(release.into_value());
    }
    told
}

/// Whole transcripts against their exact law.
#[test]
fn distribution() {
    let caps = Caps {
        tests: 4,
        answers: 2,
    };
    let mut entropy = Seeded::new(seed(911));
    let law = law(NOISE, caps, &queries(false));
    let mut seen: BTreeMap<Transcript, u64> = law.keys().map(|told| (told.clone(), 0)).collect();
    for _ in 0..40_000 {
        *seen
            .get_mut(&run(NOISE, caps, false, &mut entropy))
            .expect("a transcript of the law") += 1;
    }
    let (seen, law): (Vec<u64>, Vec<f64>) =
        (seen.into_values().collect(), law.into_values().collect());
    let p = g_test(&seen, &law).expect("probabilities").p_value;
    assert!(p >= ALPHA, "p = {p:e}");
}

/// What is claimed for `caps` and [`NOISE`], and done with others, judged by the transcripts that are likelier in the first world.
fn judged(noise: Noise, done: Caps, claimed: Caps) -> GdpVerdict {
    let (p, q) = (
        law(noise, done, &queries(false)),
        law(noise, done, &queries(true)),
    );
    // The exact laws say which event shows most; it is fixed before anything is drawn.
    let claim = mu(NOISE, claimed);
    let shows = |epsilon: &f64| hockey_stick(&p, &q, *epsilon) - profile(claim, *epsilon);
    let epsilon = EPSILONS
        .into_iter()
        .max_by(|a, b| shows(a).total_cmp(&shows(b)));
    let epsilon = epsilon.expect("some");
    let likelier = |told: &Transcript| p[told] > epsilon.exp() * q[told];
    let (mut one, mut other) = (Seeded::new(seed(912)), Seeded::new(seed(913)));
    falsify_gdp(
        Mu::new(claim).expect("finite"),
        30_000,
        Alpha::new(ALPHA).expect("a level"),
        || likelier(&run(noise, done, false, &mut one)),
        || likelier(&run(noise, done, true, &mut other)),
    )
    .expect("trials")
}

#[test]
fn falsifier() {
    for (tests, answers) in [(1, 1), (4, 2), (6, 6)] {
        let caps = Caps { tests, answers };
        let verdict = judged(NOISE, caps, caps);
        assert!(!verdict.convicted, "{verdict:?}");
    }
}

/// Abstention alone, where one vote decides: `1/σ₁` and no more, and close to it.
fn abstention(sigma: f64) -> GdpVerdict {
    let noise = Noise {
        threshold: 6.5,
        test: sigma,
        answer: 1e6,
    };
    let caps = Caps {
        tests: 1,
        answers: 1,
    };
    let answers = |counts: &[u64], entropy: &mut Seeded| {
        let mut stream = confident(noise, 2).start(caps);
        stream
            .ask(votes(counts), entropy)
            .expect("entropy")
            .value()
            .is_some()
    };
    let (mut one, mut other) = (Seeded::new(seed(914)), Seeded::new(seed(915)));
    falsify_gdp(
        Mu::new(1.0).expect("finite"),
        60_000,
        Alpha::new(ALPHA).expect("a level"),
        || answers(&[7, 5], &mut one),
        || answers(&[6, 6], &mut other),
    )
    .expect("trials")
}

#[test]
fn abstention_leaks_what_is_charged_and_no_more() {
    let verdict = abstention(1.0);
    assert!(!verdict.convicted && verdict.mu_lower > 0.9, "{verdict:?}");
}

#[test]
fn falsifier_has_teeth() {
    let caps = Caps {
        tests: 4,
        answers: 2,
    };
    assert!(
        judged(
            Noise {
                answer: 0.5,
                ..NOISE
            },
            caps,
            caps
        )
        .convicted
    );
    assert!(
        judged(
            Noise {
                test: 0.01,
                ..NOISE
            },
            caps,
            caps
        )
        .convicted
    );
    let (sure, more) = (
        Noise {
            threshold: 0.0,
            ..NOISE
        },
        Caps {
            tests: 9,
            answers: 9,
        },
    );
    assert!(judged(sure, more, caps).convicted);
    assert!(abstention(0.9).convicted);
}

#[test]
fn halts_at_either_cap_and_looks_no_further() {
    let mut entropy = Seeded::new(seed(916));
    let sure = Noise {
        threshold: 0.0,
        test: 0.001,
        answer: 0.001,
    };
    let mut stream = confident(sure, 2).start(Caps {
        tests: 5,
        answers: 2,
    });
    for _ in 0..2 {
        let release = stream.ask(votes(&[3, 1]), &mut entropy).expect("a cap");
        assert_eq!(release.value(), &Some(0));
        assert!(
            matches!(release.event().mechanism(), Mechanism::Composition(parts) if parts.len() == 2)
        );
    }
    assert_eq!(
        stream.left(),
        Caps {
            tests: 3,
            answers: 0
        }
    );
    assert!(matches!(
        stream.ask(votes(&[3, 1]), &mut FailingEntropy),
        Err(Error::Halted { answers: 2 })
    ));
    let never = Noise {
        threshold: 1e6,
        ..sure
    };
    let mut stream = confident(never, 2).start(Caps {
        tests: 3,
        answers: 3,
    });
    for _ in 0..3 {
        let release = stream.ask(votes(&[3, 1]), &mut entropy).expect("a cap");
        assert_eq!(release.value(), &None);
        assert!(matches!(
            release.event().mechanism(),
            Mechanism::Gaussian { .. }
        ));
    }
    assert_eq!(
        stream.left(),
        Caps {
            tests: 0,
            answers: 3
        },
        "what is not answered spends no answer"
    );
    assert!(stream.is_halted() && stream.ask(votes(&[3, 1]), &mut entropy).is_err());
}

/// A student who is right already gets no answer; one who is wrong does.
#[test]
fn baselines_are_subtracted_from_the_test_alone() {
    let mut entropy = Seeded::new(seed(917));
    let quiet = Noise {
        threshold: 50.0,
        test: 0.01,
        answer: 0.01,
    };
    let steps =
        |votes: [i64; 3]| votes.map(|votes| votes * crate::gaussian_noisy_max::STEPS_PER_VOTE);
    let mut stream = confident(quiet, 3).start(Caps {
        tests: 9,
        answers: 9,
    });
    let mut ask = |baseline: &[i64]| {
        let release = stream.ask_beyond(votes(&[90, 8, 2]), baseline, &mut entropy);
        release.expect("a cap").into_value()
    };
    assert_eq!(ask(&steps([95, 3, 2])), None);
    assert_eq!(ask(&steps([3, 95, 2])), Some(0));
    assert_eq!(ask(&[]), Some(0));
    assert_eq!(ask(&steps([41, 0, 0])), None);
    assert_eq!(ask(&[i64::MIN, i64::MIN, i64::MIN]), Some(0));
}

/// A test that fails for want of entropy is spent.
#[test]
fn failures_are_spent() {
    let mut stream = confident(NOISE, 2).start(Caps {
        tests: 2,
        answers: 2,
    });
    assert!(stream.ask(votes(&[7, 5]), &mut FailingEntropy).is_err());
    assert_eq!(stream.left().tests, 1);
}
