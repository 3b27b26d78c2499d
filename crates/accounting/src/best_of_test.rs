//! Exact enumeration: small runs, every order of their outputs as a score, and laws of `K` summed from their definition.

use whit_core::Probability;

use super::*;
use crate::epsilon as epsilon_of;

fn ratio(numerator: u128, denominator: u128) -> Ratio {
    Ratio::new(numerator, denominator).expect("not zero")
}

fn probability(numerator: u128, denominator: u128) -> Probability {
    Probability::new(ratio(numerator, denominator)).expect("a share")
}

/// `1 + η` and `γ`, in hundredths.
fn binomial(power: u128, gamma: u128) -> Repeats {
    Repeats::TruncatedNegativeBinomial {
        eta_plus_one: ratio(power, 100),
        gamma: probability(gamma, 100),
    }
}

fn poisson(mean: u128) -> Repeats {
    let mean = ratio(mean, 100);
    Repeats::Poisson { mean }
}

fn laws() -> Vec<Repeats> {
    let mut laws: Vec<Repeats> = [
        (200, 10),
        (100, 10),
        (50, 5),
        (200, 50),
        (300, 30),
        (200, 100),
    ]
    .map(|(power, gamma)| binomial(power, gamma))
    .into();
    laws.extend([50, 100, 1000].map(poisson));
    laws
}

/// `Pr[K = k]` from zero on, by its definition, until next to nothing is left.
fn pmf(repeats: &Repeats) -> Vec<f64> {
    let mut found = match repeats {
        Repeats::TruncatedNegativeBinomial {
            eta_plus_one,
            gamma,
        } => {
            let eta = eta_plus_one.to_f64_up() - 1.0;
            let stay = 1.0 - gamma.ratio().to_f64_up();
            // Of k = 1, and from there by the quotients (1-γ)(k+η)/(k+1).
            let mut masses = vec![0.0, 1.0];
            for k in 1..4000 {
                let k = f64::from(k);
                masses.push(masses.last().expect("two") * stay * (k + eta) / (k + 1.0));
            }
            masses
        }
        Repeats::Poisson { mean } => {
            let mean = mean.to_f64_up();
            let mut masses = vec![1.0];
            for k in 1..400 {
                masses.push(masses.last().expect("one") * mean / f64::from(k));
            }
            masses
        }
        _ => unreachable!("two laws"),
    };
    let sum: f64 = found.iter().sum();
    let last = found.iter().rposition(|mass| *mass > 1e-20 * sum);
    found.truncate(last.map_or(1, |last| last + 1));
    found.iter_mut().for_each(|mass| *mass /= sum);
    found
}

/// The law of the best, with outputs from the worst to the best; last what is released without a run.
fn best(pmf: &[f64], run: &[f64]) -> Vec<f64> {
    let generating = |t: f64| {
        pmf.iter()
            .skip(1)
            .rev()
            .fold(0.0, |sum, mass| (sum + mass) * t)
    };
    let mut below = 0.0;
    let mut found: Vec<f64> = run
        .iter()
        .map(|mass| {
            let before = generating(below);
            below += mass;
            generating(below) - before
        })
        .collect();
    found.push(pmf[0]);
    found
}

fn hockey_stick(p: &[f64], q: &[f64], epsilon: f64) -> f64 {
    let terms = p
        .iter()
        .zip(q)
        .map(|(p, q)| (p - epsilon.exp() * q).max(0.0));
    terms.sum()
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..count {
            let mut longer = shorter.clone();
            longer.insert(place, count - 1);
            all.push(longer);
        }
    }
    all
}

/// The best of pairs of runs, in every order of the outputs and both ways round.
fn every_search(repeats: &Repeats, p: &[f64], q: &[f64]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let pmf = pmf(repeats);
    let mut all = Vec::new();
    for order in permutations(p.len()) {
        let sorted = |run: &[f64]| -> Vec<f64> { order.iter().map(|&i| run[i]).collect() };
        let (one, other) = (best(&pmf, &sorted(p)), best(&pmf, &sorted(q)));
        all.push((other.clone(), one.clone()));
        all.push((one, other));
    }
    all
}

fn search(repeats: &Repeats, run: Mechanism) -> Event {
    let mechanism = Mechanism::BestOf {
        repeats: repeats.clone(),
        among: vec![run],
    };
    Event::new(Neighbours::ReplaceOne, mechanism)
}

/// Mechanisms, and a pair of laws that neighbours may have.
fn runs() -> Vec<(Mechanism, Vec<f64>, Vec<f64>)> {
    let response = |keep: u128, categories: u64| {
        let keep_ratio = probability(keep, 100);
        let kept = keep as f64 / 100.0;
        let other = (1.0 - kept) / (categories - 1) as f64;
        let law = |truth: u64| -> Vec<f64> {
            let law = (0..categories).map(|value| if value == truth { kept } else { other });
            law.collect()
        };
        let mechanism = Mechanism::RandomizedResponse {
            keep: keep_ratio,
            categories,
        };
        (mechanism, law(0), law(1))
    };
    let approximate = |epsilon: f64, delta: f64| {
        let truth = epsilon.exp() / (1.0 + epsilon.exp());
        let (p, q) = ((1.0 - delta) * truth, (1.0 - delta) * (1.0 - truth));
        let exact = |value: f64| Ratio::from_f64(value).expect("finite");
        let mechanism = Mechanism::Approximate {
            epsilon: exact(epsilon),
            delta: Probability::new(exact(delta)).expect("a share"),
        };
        (mechanism, vec![delta, p, q, 0.0], vec![0.0, q, p, delta])
    };
    vec![
        response(60, 2),
        response(75, 2),
        response(50, 4),
        approximate(0.5, 1e-3),
        approximate(1.0, 1e-5),
        approximate(0.1, 0.02),
    ]
}

/// The pair of a Gaussian of noise multiplier `sigma`, in cells, as five outputs that a score may order at will.
fn gaussian(sigma: f64) -> (Mechanism, Vec<f64>, Vec<f64>) {
    let scale = whit_core::Scale::new(Ratio::from_f64(sigma).expect("finite"));
    let mechanism = Mechanism::Gaussian {
        scale: scale.expect("in range"),
        sensitivity_l2_square: Ratio::one(),
    };
    let ends = [-2.0, -0.5, 1.5, 3.0].map(|end| end * sigma + 0.5);
    let below = |x: f64| 0.5 * libm::erfc(-x / (sigma * 2.0_f64.sqrt()));
    let law = |shift: f64| {
        let ends = ends.map(|end| below(end - shift));
        let mut law = vec![ends[0]];
        law.extend(ends.windows(2).map(|pair| pair[1] - pair[0]));
        law.push(1.0 - ends[3]);
        law
    };
    (mechanism, law(0.0), law(1.0))
}

#[test]
fn means_and_weights_are_those_of_the_series() {
    let mut all = laws();
    // At η = 0 the formula has a removable hole.
    all.extend([
        binomial(100, 3),
        binomial(1, 50),
        binomial(99, 20),
        binomial(101, 20),
    ]);
    for repeats in all {
        let (law, pmf) = (Law::read(&repeats).expect("a law"), pmf(&repeats));
        let derivative = |t: f64| {
            let terms = pmf.iter().enumerate().skip(1).rev();
            terms.fold(0.0, |sum, (k, mass)| sum * t + k as f64 * mass)
        };
        let mean = law.mean();
        assert!(
            (mean.estimate() / derivative(1.0) - 1.0).abs() < 1e-7,
            "{repeats:?} {mean:?}"
        );
        for s in [0.0, 1e-6, 0.1, 0.5, 1.0] {
            let weight = law.weight(s).estimate();
            let truth = derivative(1.0 - s) / derivative(1.0);
            assert!(
                (weight / truth - 1.0).abs() < 1e-9,
                "{repeats:?} {s}: {weight} {truth}"
            );
        }
    }
}

/// No search over a run of this description has more than is claimed, whatever the score; and some have nearly as much. A bound that takes only the number of runs
/// into account, and not that the neighbour has other scores, is convicted.
#[test]
fn no_score_exceeds_the_bound() {
    let epsilons = [0.0, 0.05, 0.3, 1.0, 2.5];
    let (mut checked, mut simple_fails, mut nearest) = (0, 0, 0.0_f64);
    for repeats in laws() {
        for (run, p, q) in runs().into_iter().chain([gaussian(1.0), gaussian(4.0)]) {
            let event = search(&repeats, run.clone());
            let read = Search::of(event.mechanism()).expect("a search");
            let read = read.expect("priced");
            let small = Delta::new(1e-9).expect("below one");
            let table = read.table(Neighbours::ReplaceOne, small).expect("priced");
            let mean = read.law().mean().upper();
            let all = every_search(&repeats, &p, &q);
            for epsilon in epsilons {
                let bound = table.delta(epsilon);
                let one = hockey_stick(&p, &q, epsilon).max(hockey_stick(&q, &p, epsilon));
                for (left, right) in &all {
                    let exact = hockey_stick(left, right, epsilon);
                    assert!(
                        exact <= bound + 1e-12,
                        "{event:?} {epsilon}: {exact} {bound}"
                    );
                    checked += 1;
                    simple_fails += u32::from(exact > mean * one + 1e-9);
                    nearest = nearest.max(if mean > 2.0 { exact / bound } else { 0.0 });
                }
            }
        }
    }
    assert!(
        checked > 10_000 && simple_fails > 100,
        "{checked} {simple_fails}"
    );
    assert!(nearest > 0.3, "{nearest}");
}

/// What is charged keeps its delta. Runs that tell all with some probability do so in a search, too, and may have no price.
#[test]
fn no_score_exceeds_the_price() {
    for repeats in [binomial(200, 10), binomial(50, 5), poisson(1000)] {
        for (run, p, q) in [runs().remove(1), runs().remove(5), gaussian(1.0)] {
            let event = search(&repeats, run);
            let all = every_search(&repeats, &p, &q);
            for delta in [0.3, 1e-2, 1e-5] {
                let Ok(paid) = price(&event, Delta::new(delta).expect("below one")) else {
                    assert!(delta < 0.3 && p[0] == 0.02, "{event:?} {delta}");
                    continue;
                };
                for (left, right) in &all {
                    let exact = hockey_stick(left, right, paid.epsilon.value());
                    assert!(exact <= delta * (1.0 + 1e-9), "{event:?} {delta}: {exact}");
                }
            }
        }
    }
}

/// The pure bound is attained: a good output, and one that is hardly ever seen just below it.
#[test]
fn the_pure_bound_is_attained() {
    for repeats in laws() {
        for loss in [0.1_f64, 1.0, 3.0] {
            let tiny = 1e-7;
            let top = 1.0 / (1.0 + loss.exp()) - tiny;
            let run = vec![1.0 - top - tiny * loss.exp(), tiny * loss.exp(), top];
            let other = vec![1.0 - top * loss.exp() - tiny, tiny, top * loss.exp()];
            let pmf = pmf(&repeats);
            let (one, two) = (best(&pmf, &run), best(&pmf, &other));
            let exact = (one[1] / two[1]).ln();
            let epsilon = Ratio::from_f64(loss).expect("finite");
            let claimed = price(&search(&repeats, Mechanism::Pure { epsilon }), Delta::ZERO);
            let claimed = claimed.expect("pure").epsilon.value();
            assert!(
                exact <= claimed + 1e-6,
                "{repeats:?} {loss}: {exact} {claimed}"
            );
            assert!(
                exact > 0.999 * claimed,
                "{repeats:?} {loss}: {exact} {claimed}"
            );
            if let Repeats::TruncatedNegativeBinomial { eta_plus_one, .. } = &repeats {
                let simple = (1.0 + eta_plus_one.to_f64_up()) * loss;
                assert!(claimed <= simple * (1.0 + 1e-12), "(2+η)ε, as in [PS22]");
            }
        }
    }
}

/// A fixed number of runs is convicted at the price of a random number with the same mean: the formula for the one does not pass for the other.
#[test]
fn a_fixed_number_of_runs_is_convicted() {
    let (run, p, q) = runs().remove(0);
    let repeats = binomial(200, 10);
    let event = search(&repeats, run);
    let paid = price(&event, Delta::new(1e-6).expect("below one")).expect("priced");
    let mut fixed = vec![0.0; 11];
    fixed[10] = 1.0;
    let worst = permutations(2).into_iter().map(|order| {
        let sorted = |run: &[f64]| -> Vec<f64> { order.iter().map(|&i| run[i]).collect() };
        let (one, other) = (best(&fixed, &sorted(&p)), best(&fixed, &sorted(&q)));
        hockey_stick(&one, &other, paid.epsilon.value()).max(hockey_stick(
            &other,
            &one,
            paid.epsilon.value(),
        ))
    });
    let worst = worst.fold(0.0, f64::max);
    assert!(worst > 1e-3, "{worst}");
}

/// Whoever learns the number of runs has more than the price: the law of `K` and the best run together.
#[test]
fn a_number_of_runs_that_is_seen_is_not_paid_for() {
    let (run, p, q) = runs().remove(1);
    let repeats = binomial(200, 10);
    let paid = price(&search(&repeats, run), Delta::ZERO).expect("pure");
    let pmf = pmf(&repeats);
    let mut seen = 0.0;
    for (k, &mass) in pmf.iter().enumerate().take(60).skip(1) {
        let mut fixed = vec![0.0; k + 1];
        fixed[k] = 1.0;
        let (one, other) = (best(&fixed, &p), best(&fixed, &q));
        seen += mass
            * hockey_stick(&one, &other, paid.epsilon.value()).max(hockey_stick(
                &other,
                &one,
                paid.epsilon.value(),
            ));
    }
    assert!(seen > 1e-6, "{seen}");
}

#[test]
fn the_theorems_on_divergences_hold() {
    let divergence = |p: &[f64], q: &[f64], order: f64| {
        let terms = p.iter().zip(q).filter(|(p, q)| **p > 0.0 || **q > 0.0);
        let sum: f64 = terms
            .map(|(p, q)| p.powf(order) * q.powf(1.0 - order))
            .sum();
        sum.ln() / (order - 1.0)
    };
    for repeats in laws() {
        let law = Law::read(&repeats).expect("a law");
        for (_, p, q) in runs()
            .into_iter()
            .take(3)
            .chain([gaussian(1.0), gaussian(4.0)])
        {
            let run = |order| divergence(&p, &q, order).max(divergence(&q, &p, order));
            for order in [1.5, 2.0, 8.0, 40.0] {
                let besides = match law {
                    Law::Binomial { gamma, .. } => [1.0 + 1e-9, 1.5, 4.0, 30.0]
                        .map(|other| {
                            let part = 1.0 / other;
                            (1.0 - part) * run(other) - part * gamma.estimate().ln()
                        })
                        .into_iter()
                        .fold(f64::INFINITY, f64::min),
                    Law::Poisson { .. } => {
                        let near = (1.0 + 1.0 / (order - 1.0_f64)).ln();
                        hockey_stick(&p, &q, near).max(hockey_stick(&q, &p, near))
                    }
                };
                let claimed = law.divergence(order, run(order), besides);
                for (one, other) in every_search(&repeats, &p, &q) {
                    let exact = divergence(&one, &other, order);
                    assert!(
                        exact <= claimed + 1e-9,
                        "{repeats:?} {order}: {exact} {claimed}"
                    );
                }
            }
        }
    }
}

fn training(multiplier: f64) -> Event {
    let inner = Mechanism::Gaussian {
        scale: whit_core::Scale::new(Ratio::from_f64(multiplier).expect("finite"))
            .expect("in range"),
        sensitivity_l2_square: Ratio::one(),
    };
    let mechanism = Mechanism::Sampled {
        sampling: whit_core::Sampling::Poisson {
            rate: probability(1, 100),
        },
        steps: 1000,
        inner: Box::new(inner),
    };
    Event::new(Neighbours::AddRemove, mechanism)
}

/// Of training runs: above one run, far below as many as are expected, and below what divergences say.
#[test]
fn a_search_over_training_runs_costs_little_more_than_two() {
    let (run, delta) = (training(1.0), Delta::new(1e-5).expect("below one"));
    let alone = price(&run, delta).expect("priced").epsilon.value();
    for repeats in [binomial(200, 10), binomial(100, 3), poisson(1000)] {
        let among = vec![run.mechanism().clone()];
        let event = Event::new(
            Neighbours::AddRemove,
            Mechanism::BestOf {
                repeats: repeats.clone(),
                among,
            },
        );
        let paid = price(&event, delta).expect("priced").epsilon.value();
        assert!(
            paid > alone && paid < 2.2 * alone,
            "{repeats:?}: {alone} {paid}"
        );
        let found = notions(&event, delta).expect("a search");
        assert_eq!(found[0].epsilon, Some(paid));
        let renyi = found[1].epsilon.expect("divergences are known");
        assert!(paid < renyi, "{repeats:?}: {paid} {renyi}");
        let between = epsilon_of(&event, delta).expect("priced").bounds;
        assert!(between.upper() <= paid);
    }
}

#[test]
fn one_run_costs_what_it_costs() {
    for run in [runs().remove(4).0, gaussian(2.0).0] {
        let delta = Delta::new(1e-4).expect("below one");
        let alone = Event::new(Neighbours::ReplaceOne, run.clone());
        let alone = price(&alone, delta).expect("priced").epsilon.value();
        let paid = price(&search(&binomial(200, 100), run), delta).expect("priced");
        let paid = paid.epsilon.value();
        assert!(
            paid >= alone * 0.999 && paid < 1.003 * alone,
            "{alone} {paid}"
        );
    }
}

#[test]
fn the_worst_of_several_kinds_is_paid() {
    let delta = Delta::new(1e-5).expect("below one");
    let of = |among: Vec<Mechanism>| {
        let repeats = binomial(200, 20);
        let event = Event::new(Neighbours::AddRemove, Mechanism::BestOf { repeats, among });
        price(&event, delta).expect("priced").epsilon.value()
    };
    let [strong, weak] = [2.0, 1.0].map(|noise| training(noise).mechanism().clone());
    let both = of(vec![strong.clone(), weak.clone()]);
    assert!(both >= of(vec![weak]) && both > of(vec![strong]));
}

#[test]
fn a_close_sampler_costs_its_slack() {
    let delta = Delta::new(1e-5).expect("below one");
    let inner = search(&binomial(200, 10), gaussian(4.0).0);
    let exact = price(&inner, delta).expect("priced").epsilon;
    let close = |tau: f64| {
        let total_variation = Probability::new(Ratio::from_f64(tau).expect("finite"));
        let mechanism = Mechanism::Close {
            inner: Box::new(inner.mechanism().clone()),
            total_variation: total_variation.expect("a share"),
        };
        price(&Event::new(Neighbours::ReplaceOne, mechanism), delta)
    };
    assert!(close(1e-7).expect("fits").epsilon > exact);
    assert!(matches!(close(1e-5), Err(Error::TooCoarse { .. })));
}

/// What no theorem here covers has no price.
#[test]
fn the_rest_is_refused() {
    let delta = Delta::new(1e-5).expect("below one");
    let run = gaussian(1.0).0;
    let refused = |mechanism: Mechanism| {
        let event = Event::new(Neighbours::ReplaceOne, mechanism);
        assert!(price(&event, delta).is_err(), "{event:?}");
    };
    let of = |repeats: Repeats, among: Vec<Mechanism>| Mechanism::BestOf { repeats, among };
    refused(of(binomial(200, 10), vec![]));
    refused(of(binomial(200, 0), vec![run.clone()]));
    refused(of(binomial(0, 10), vec![run.clone()]));
    refused(of(poisson(0), vec![run.clone()]));
    let nested = of(binomial(200, 10), vec![run.clone()]);
    refused(of(poisson(100), vec![nested.clone()]));
    refused(Mechanism::Composition(vec![nested.clone(), run.clone()]));
    refused(Mechanism::Sampled {
        sampling: whit_core::Sampling::All,
        steps: 1,
        inner: Box::new(nested.clone()),
    });
    let alone = Event::new(Neighbours::ReplaceOne, nested);
    assert!(
        price(&alone, Delta::ZERO).is_err(),
        "Gaussian runs are not pure"
    );
    // Who reports is public, so it is not hidden whether somebody does.
    let response = runs().remove(0).0;
    let joined = Event::new(Neighbours::AddRemove, of(poisson(100), vec![response]));
    assert!(matches!(
        price(&joined, delta),
        Err(Error::WrongRelation { .. })
    ));
}
