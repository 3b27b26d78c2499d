//! Formulas of the plan, distributions of what leaves, and neighbours that must not be told apart.

use super::*;
use crate::classical::Interval;
use crate::classical::doubt::{budget, fitted, judge_pure, nasty, refused, seed, seeded};
use crate::payment::Uncharged;
use whit_audit::{Alpha, Claim, Verdict, falsify};
use whit_core::Fault;
use whit_testkit::SeededBits;

fn domains() -> Vec<Domain> {
    let interval = Interval::new(-1.0, 1.0).expect("an interval");
    let number = Domain::numbers(interval, 2).expect("a domain");
    let category = Domain::categories(3).expect("a domain");
    vec![number, number, category]
}

fn plan(classes: u32, (epsilon, delta): (f64, f64)) -> MinimaPerturbationPlan {
    let budget = budget(epsilon, delta);
    let objective = Penalised::fitting(&domains(), classes, budget);
    MinimaPerturbationPlan::new(domains(), classes, objective, budget).expect("a plan")
}

fn data(rows: &[(Vec<f32>, u32)], classes: u32) -> Secret<Dataset> {
    let features = rows.iter().flat_map(|row| row.0.clone()).collect();
    let labels = rows.iter().map(|row| row.1).collect();
    let data = Dataset::with_classes(vec![3], features, labels, classes);
    Secret::new(data.expect("fits"))
}

/// Epsilon is that of the noise, `κ` for the determinants and a fiftieth for the output; and the noise is what that leaves.
#[test]
fn closed_form() {
    // Two numbers and a category: 1 + 1/2 + 1/2 + 1 in L1, and squares of 1 + 1/4 + 1/4 + 1.
    let (norm, square) = (3.0, 2.5 / 9.0);
    for (classes, parts, of, length) in
        [(2, 1.0, 4.0, 1.0), (3, 2.0, 3.0, 2.0), (10, 9.0, 10.0, 2.0)]
    {
        for epsilon in [0.1, 1.0, 10.0] {
            let pure = plan(classes, (epsilon, 0.0));
            assert_eq!(pure.objective.norm, norm);
            let shared: f64 = square / (of * (0.3 * epsilon / parts).exp_m1());
            let penalty = shared.max(1.0 / 9.0);
            assert!((pure.objective.penalty / penalty - 1.0).abs() < 1e-9);
            let determinants = parts * (square / (of * penalty)).ln_1p();
            let expected = std::f64::consts::SQRT_2 * length / (0.98 * epsilon - determinants);
            assert!((pure.terms().deviation / expected - 1.0).abs() < 1e-6);
            let upper = pure.terms().epsilon.upper();
            assert!(upper <= epsilon && upper > 0.999_999 * epsilon, "{upper}");
            let Mechanism::Composition(parts) = pure.event().mechanism() else {
                panic!("another event")
            };
            let Mechanism::Pure { epsilon: first } = &parts[0] else {
                panic!("another event")
            };
            assert!((first.to_f64_up() / (0.98 * epsilon) - 1.0).abs() < 1e-9);
            let gaussian = plan(classes, (epsilon, 1e-6));
            let upper = gaussian.terms().epsilon.upper();
            assert!(upper <= epsilon && upper > 0.999_999 * epsilon, "{upper}");
            let Mechanism::Composition(parts) = gaussian.event().mechanism() else {
                panic!("another event")
            };
            let Mechanism::Approximate {
                epsilon: first,
                delta,
            } = &parts[0]
            else {
                panic!("another event")
            };
            assert!((first.to_f64_up() / (0.98 * epsilon) - 1.0).abs() < 1e-9);
            assert!(delta.ratio().to_f64_up() <= 1e-6 && delta.ratio().to_f64_up() > 0.999e-6);
        }
    }
    // The exact analysis of the Gaussian mechanism needs σ = 4.22467… at ε = 1 and δ = 1e-6 (mpmath).
    let exact = noise(2, 1.0, Delta::new(1e-6).expect("a delta")).expect("in reach");
    assert!((4.224_67..4.224_69).contains(&exact.deviation()));
    // For three classes each of two others has half of delta, and gradients are longer by the root of two.
    let three = noise(3, 1.0, Delta::new(2e-6).expect("a delta")).expect("in reach");
    let ratio = three.deviation() / exact.deviation();
    assert!((ratio / 2.0_f64.sqrt() - 1.0).abs() < 1e-5, "{ratio}");
}

/// Whatever an example is, it is at most one long; and some are.
#[test]
fn the_worst_example_is_as_long_as_claimed() {
    let mut bits = SeededBits::new(seed(801));
    for (delta, norm) in [
        (1e-6, 1.58),
        (0.0, 3.0),
        (1e-6, 1.0),
        (0.0, 1.25),
        (0.0, 1e-3),
        (1e-6, 1e-3),
    ] {
        let budget = budget(1.0, delta);
        let square = Lengths::of(&domains()).square(norm, budget.delta());
        let square = square.expect("a norm").to_f64_up();
        let objective = Penalised { norm, penalty: 3.0 };
        let plan = MinimaPerturbationPlan::new(domains(), 2, objective, budget);
        let plan = plan.expect("a plan");
        let (mut worst, mut worst_square) = (0.0_f64, 0.0_f64);
        for _ in 0..3000 {
            let row = plan.row(&nasty(&mut bits, 3));
            assert!(
                row.iter()
                    .all(|(column, _)| *column < columns(&plan.domains))
            );
            let sizes = row.iter().map(|(_, value)| *value as f64 / UNIT as f64);
            let squares: f64 = sizes.clone().map(|v| v * v).sum();
            assert!(squares <= square, "{squares} of {square}");
            worst_square = worst_square.max(squares / square);
            let size: f64 = match delta > 0.0 {
                true => sizes.map(|v| v * v).sum(),
                false => sizes.map(f64::abs).sum(),
            };
            assert!(size <= 1.0);
            worst = worst.max(size);
        }
        assert!(worst > 1.0 - 1e-4, "{worst}");
        // Where nothing is shortened, or all of it is in L2, that bound is reached as well.
        if delta > 0.0 || norm == 3.0 {
            assert!(worst_square > 1.0 - 1e-4, "{norm}: {worst_square}");
        }
    }
    let far = Lengths::of(&domains()).square(10.0, Delta::ZERO);
    assert_eq!(far, Ok(Ratio::new(25, 1000).expect("a ratio")));
    let near = Lengths::of(&domains()).square(2.0, Delta::ZERO);
    assert_eq!(
        near,
        Ok(Ratio::new(1, 2).expect("a ratio")),
        "the largest entry"
    );
}

/// The logarithm of a determinant, by elimination.
fn ln_det(mut of: Vec<Vec<f64>>) -> f64 {
    let mut sum = 0.0;
    for at in 0..of.len() {
        let pivot = of[at].clone();
        sum += pivot[at].ln();
        for row in of.iter_mut().skip(at + 1) {
            let by = row[at] / pivot[at];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= by * p);
        }
    }
    sum
}

/// Adds an example with these probabilities to a second derivative.
fn curve(onto: &mut [Vec<f64>], shares: &[f64], x: &[f64]) {
    let (scores, all) = (shares.len(), onto.len());
    for (row, column) in (0..all).flat_map(|row| (0..all).map(move |c| (row, c))) {
        let (k, j) = (row % scores, column % scores);
        let same = if k == j { shares[k] } else { 0.0 };
        onto[row][column] += (same - shares[k] * shares[j]) * x[row / scores] * x[column / scores];
    }
}

/// Step 1 of the proof, for examples and probabilities of all sorts: the bound holds, is reached where nobody else is there and all classes are as likely, and is larger than nine tenths of itself.
#[test]
fn determinants_move_as_far_as_claimed() {
    let mut bits = SeededBits::new(seed(810));
    for (classes, penalty, square) in [(2, 0.05, 0.3), (2, 2.0, 1.0), (3, 0.1, 0.5), (5, 0.02, 0.1)]
    {
        let exact = Ratio::from_f64(square).expect("finite");
        let claimed = determinants(classes, &exact, penalty);
        let scores = scores_of(classes);
        let mut unit = || bits.below(1001) as f64 / 1000.0;
        let mut worst = 0.0_f64;
        for others in [0, 0, 1, 2, 5, 20].repeat(20) {
            let mut one = |equal: bool| {
                let odds: Vec<f64> = (0..classes)
                    .map(|_| if equal { 1.0 } else { (8.0 * unit()).exp() })
                    .collect();
                let total: f64 = odds.iter().sum();
                let shares: Vec<f64> = odds.iter().map(|odds| odds / total).collect();
                let part = unit();
                let x = [part.sqrt(), (1.0 - part).sqrt()].map(|x| x * square.sqrt());
                (shares[classes - scores..].to_vec(), x)
            };
            let mut curved = vec![vec![0.0; 2 * scores]; 2 * scores];
            (0..2 * scores).for_each(|at| curved[at][at] = penalty);
            for _ in 0..others {
                let (shares, x) = one(false);
                curve(&mut curved, &shares, &x);
            }
            let before = ln_det(curved.clone());
            let (shares, x) = one(others == 0);
            curve(&mut curved, &shares, &x);
            let moved = ln_det(curved) - before;
            assert!(
                (-1e-9..=claimed + 1e-9).contains(&moved),
                "{moved} of {claimed}"
            );
            worst = worst.max(moved);
        }
        assert!(
            worst > claimed - 1e-9 && worst > 0.9 * claimed,
            "{worst} of {claimed}"
        );
    }
}

/// What is solved is within what the output's noise is for: the minimum for noise that is moved by half a unit, found far more exactly.
#[test]
fn approximate_minima_are_near_the_exact_ones() {
    let mut bits = SeededBits::new(seed(802));
    for classes in [2, 3] {
        let plan = plan(classes, (1.0, 1e-6));
        let mut any = || (nasty(&mut bits, 3), bits.below(u64::from(classes)) as u32);
        let rows: Vec<_> = (0..200).map(|_| any()).collect();
        let rows = plan.read(data(&rows, classes).as_ref().expose());
        let noise: Vec<f64> = (0..plan.weights())
            .map(|w| 3.0 * (w as f64).sin())
            .collect();
        let found = plan.solve(&rows, &noise);
        let half = f64::from(-NOISE_BITS - 1).exp2();
        let moved: Vec<f64> = noise.iter().map(|noise| noise + half).collect();
        let exact = SoftmaxObjective {
            rows: &rows,
            classes: plan.classes,
            scores: scores_of(plan.classes),
            penalty: plan.objective.penalty,
            noise: &moved,
        };
        let exact = exact.minimum(plan.objective.penalty * 1e-10);
        let one = f64::from(OUTPUT_BITS).exp2();
        let off = found
            .iter()
            .zip(&exact)
            .map(|(w, exact)| (*w as f64 - exact * one).abs());
        let off: f64 = off.sum();
        assert!(
            2.0 * off <= apart(plan.weights(), plan.objective.penalty).to_f64_down(),
            "{off}"
        );
    }
}

/// What the broken twins do.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    Nothing,
    HalfTheNoise,
    /// The canary is twice as long as declared.
    NotShortened,
}

impl Flaw {
    /// How many of its residuals the canary is away.
    fn side(self) -> f64 {
        match self {
            Self::NotShortened => 2.0,
            _ => 1.0,
        }
    }
}

const OTHERS: usize = 20;
const TRIALS: u64 = 10_000;

/// One feature of one category: all examples have the same two columns. Twenty are of the first class, so that the residual of the canary, which is of the second, is near one.
fn small((epsilon, delta): (f64, f64)) -> MinimaPerturbationPlan {
    let domain = Domain::categories(1).expect("a domain");
    let budget = budget(epsilon, delta);
    let penalty = Penalised {
        penalty: 1.0,
        ..Penalised::fitting(&[domain], 2, budget)
    };
    MinimaPerturbationPlan::new(vec![domain], 2, penalty, budget).expect("a plan")
}

fn world(plan: &MinimaPerturbationPlan, canary: i64) -> SparseRows {
    let mut rows = SparseRows::default();
    for (weight, class) in std::iter::repeat_n((1, 0), OTHERS).chain([(canary, 1)]) {
        let row = plan.row(&[0.0]).into_iter();
        rows.entries
            .extend(row.map(|(column, value)| (column, weight * value)));
        rows.ends.push(rows.entries.len());
        rows.classes.push(class);
    }
    rows
}

/// The noise that would have led to these weights if the canary were not there, and its residual if it were.
fn implied(plan: &MinimaPerturbationPlan, weights: &[f64]) -> ([f64; 2], f64) {
    let x = plan.row(&[0.0])[0].1 as f64 / UNIT as f64;
    let p = 1.0 / (1.0 + (-(weights[0] + weights[1]) * x).exp());
    let noise = |w: f64| -(OTHERS as f64 * p * x + plan.objective.penalty * w);
    ([noise(weights[0]), noise(weights[1])], (p - 1.0) * x)
}

fn run(
    claimed: &MinimaPerturbationPlan,
    flaw: Flaw,
    present: bool,
    of: u64,
    event: impl Fn([f64; 2], f64) -> bool,
) -> impl FnMut() -> bool {
    let mut done = claimed.clone();
    if flaw == Flaw::HalfTheNoise {
        let terms = claimed.noise.terms().budget;
        let twice = noise(2, 2.0 * terms.epsilon().value(), terms.delta());
        done.noise = twice.expect("in reach");
    }
    let canary = match (present, flaw) {
        (false, _) => 0,
        (true, Flaw::NotShortened) => 2,
        (true, _) => 1,
    };
    let mut entropy = seeded(of);
    move || {
        let payment = Payment::uncharged(&done, Uncharged);
        let rows = Secret::new(world(&done, canary));
        let weights = done.release(rows, payment, &mut entropy);
        let (noise, residual) = implied(&done, weights.expect("entropy").value());
        event(noise, residual)
    }
}

/// Both coordinates of the noise on the canary's side: the likelihood ratio is largest there.
fn pure(flaw: Flaw) -> Verdict {
    let claimed = small((3.0, 0.0));
    let side = flaw.side();
    let event = move |noise: [f64; 2], residual: f64| noise.iter().all(|b| *b <= side * residual);
    let worlds = [(true, 803), (false, 804)];
    let [one, other] = worlds.map(|(present, of)| run(&claimed, flaw, present, of, event));
    judge_pure(3.0, TRIALS, one, other)
}

/// The delta at which a small epsilon is claimed, by the Gaussian mechanism's.
fn gaussian(flaw: Flaw) -> Verdict {
    let claimed = small((6.0, 1e-6));
    let small = Epsilon::new(0.1).expect("an epsilon");
    let side = flaw.side();
    let event = move |noise: [f64; 2], residual: f64| noise[0] + noise[1] <= side * residual;
    let worlds = [(true, 805), (false, 806)];
    let [one, other] = worlds.map(|(present, of)| run(&claimed, flaw, present, of, event));
    let delta = whit_accounting::delta(claimed.noise.event(), small).expect("a Gaussian");
    let determinants_and_output = 1.25_f64.ln() + 6.0 * OUTPUT_SHARE;
    let claim = Claim {
        epsilon: Epsilon::new(0.1 + determinants_and_output).expect("an epsilon"),
        delta: Delta::new(delta.bounds.upper()).expect("a delta"),
    };
    let alpha = Alpha::new(1e-6).expect("a level");
    falsify(claim, TRIALS, alpha, one, other).expect("enough trials")
}

#[test]
fn falsifier() {
    let verdict = pure(Flaw::Nothing);
    assert!(
        !verdict.convicted && verdict.epsilon_lower > 1.5,
        "{verdict:?}"
    );
    assert!(!gaussian(Flaw::Nothing).convicted);
}

#[test]
fn falsifier_has_teeth() {
    for flaw in [Flaw::HalfTheNoise, Flaw::NotShortened] {
        let verdicts = [pure(flaw), gaussian(flaw)];
        assert!(
            verdicts.iter().all(|verdict| verdict.convicted),
            "{verdicts:?}"
        );
    }
}

#[test]
fn learns_a_line() {
    let mut bits = SeededBits::new(807);
    let mut draw = |classes: u32| {
        let mut row = nasty(&mut bits, 2);
        let category = bits.below(3) as u32;
        row.push(category as f32);
        let score = row[0].clamp(-1.0, 1.0) + if category == 1 { 0.7 } else { -0.7 };
        match classes {
            2 => (row, u32::from(score > 0.0)),
            _ => (row, (category + 1) % 3),
        }
    };
    for (classes, terms) in [(2, (1.0, 1e-6)), (2, (2.0, 0.0)), (3, (1.0, 1e-6))] {
        let rows: Vec<_> = (0..4000).map(|_| draw(classes)).collect();
        let model = fitted(&plan(classes, terms), &data(&rows, classes), 808);
        let right = (0..1000).map(|_| draw(classes));
        let right = right.filter(|(row, class)| model.predict(row) == *class);
        let right = right.count();
        assert!(right > 930, "{right} for {classes} at {terms:?}");
        assert!(model.predict(&[]) < classes, "nothing is missed");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let make = |domains: Vec<Domain>, classes, norm, penalty| {
        let objective = Penalised { norm, penalty };
        MinimaPerturbationPlan::new(domains, classes, objective, budget(1.0, 1e-6)).err()
    };
    for refused in [
        make(vec![], 2, 1.0, 1.0),
        make(domains(), 1, 1.0, 1.0),
        make(domains(), u32::MAX, 1.0, 1.0),
        make(domains(), 1 << 18, 1.0, 10.0),
        make(domains(), 2, 0.0, 1.0),
        make(domains(), 2, f64::NAN, 1.0),
        make(domains(), 2, 1.0, 0.0),
        make(domains(), 2, 1.0, f64::INFINITY),
        make(domains(), 2, 1.0, 0.14),
        make(domains(), 2, 1.0, 0.000_999),
    ] {
        let refused = refused.expect("refused");
        assert_eq!(refused.code(), "plan_out_of_range");
        assert!(refused.suggestion().starts_with("give "));
    }
    let plan = plan(2, (1.0, 0.0));
    let narrow = Dataset::with_classes(vec![4], vec![], vec![], 2).expect("fits");
    assert_eq!(refused(&plan, &Secret::new(narrow)), Some("other_columns"));
    assert_eq!(refused(&plan, &data(&[], 3)), Some("other_labels"));
    assert_eq!(refused(&plan, &data(&[], 2)), None);
    let other = small((1.0, 0.0));
    let rows = Secret::new(SparseRows::default());
    let stolen = plan.release(
        rows,
        Payment::uncharged(&other, Uncharged),
        &mut seeded(809),
    );
    assert_eq!(stolen.err().map(|error| error.code()), Some("other_plan"));
}
