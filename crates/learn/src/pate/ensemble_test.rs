//! Neighbouring data give votes in which one teacher differs; whole runs, and runs that go on.

use whit_audit::{Alpha, falsify_gdp};
use whit_core::{Delta, Fault, Mu, Neighbours};
use whit_testkit::Seeded;

use super::super::kernel::{Kernel, KernelRidge};
use super::super::learner::{Judge, PlainNetwork};
use super::super::view::{Lesson, Sight};
use super::super::{Aggregation, LaplaceAggregation, Outcome, Terms, Test};
use super::*;
use crate::{Payment, Uncharged};

const ONE: NonZeroUsize = NonZeroUsize::MIN;

const RIDGE: KernelRidge = KernelRidge {
    kernel: Kernel::Gaussian { width: 1.0 },
    penalty: 0.05,
};

/// Points around three centres.
fn points(count: usize, seed: usize) -> Dataset {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for i in 0..count {
        let class = i % 3;
        let wobble = |k: usize| (((i + seed) * 7919 + k * 104_729) % 1000) as f32 / 500.0 - 1.0;
        let (x, y) = [(0.0, 0.0), (3.0, 0.0), (0.0, 3.0)][class];
        features.extend([x + 1.4 * wobble(1), y + 1.4 * wobble(2)]);
        labels.push(class as u32);
    }
    Dataset::with_classes(vec![2], features, labels, 3).expect("fits")
}

fn without(data: &Dataset, row: usize) -> Dataset {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for other in (0..data.rows()).filter(|other| *other != row) {
        let example = data.example(other).expect("fits");
        features.extend_from_slice(example.features);
        let crate::data::Answer::Class(class) = example.answer else {
            panic!("classes")
        };
        labels.push(class);
    }
    Dataset::with_classes(vec![2], features, labels, 3).expect("fits")
}

fn view(public: &Dataset) -> (View, Vec<f32>) {
    let sight = Sight {
        upright: false,
        features: None,
        power: 1.0,
    };
    View::new(sight, public, ONE).expect("fits")
}

fn quiet<'a>(threads: usize, ballots: Option<&'a Ballots>) -> Work<'a> {
    Work {
        threads: NonZeroUsize::new(threads).expect("some"),
        ballots,
        after: &|_| {},
    }
}

fn ensemble<'a>(view: &'a View, learner: &'a dyn Learn) -> Ensemble<'a> {
    Ensemble {
        teachers: 12,
        rule: Rule::Hash,
        seed: 5,
        view,
        learner,
    }
}

/// How far apart two histograms are at one query, at most: two counts by one if one vote moves.
fn apart(one: &Votes, other: &Votes) -> u64 {
    let query = |query: usize| -> u64 {
        let pairs = one.counts(query).iter().zip(other.counts(query));
        pairs.map(|(a, b)| a.abs_diff(*b)).sum()
    };
    (0..one.queries()).map(query).max().unwrap_or(0)
}

#[test]
fn one_example_more_moves_one_vote_of_each_query_at_most() {
    let (data, public) = (points(120, 1), points(40, 77));
    let (view, rows) = view(&public);
    let net = PlainNetwork {
        model: toml::from_str("kind = 'logistic'").expect("a model"),
        epochs: 5,
        batch: 8,
        rate: 0.1,
    };
    let mut moved = 0;
    for learner in [&RIDGE as &dyn Learn, &net] {
        let votes = |data: Dataset| {
            let work = quiet(2, None);
            let votes =
                ensemble(&view, learner).votes(&Secret::new(data), Queries { rows: &rows }, work);
            votes.expect("fits").expose()
        };
        let all = votes(points(120, 1));
        for row in [0, 17, 59, 119] {
            let fewer = votes(without(&data, row));
            assert!(apart(&all, &fewer) <= 2, "{row}");
            moved += u64::from(apart(&all, &fewer) > 0);
        }
    }
    assert!(moved > 0, "some example matters");
}

/// A twin whose teachers look at what others have: each hears how many examples there are in all.
#[test]
fn a_learner_that_shares_is_seen() {
    struct Gossip(std::sync::atomic::AtomicUsize);
    struct Says(usize);
    impl Learn for Gossip {
        fn check(&self, _: usize, _: usize) -> Result<()> {
            Ok(())
        }
        fn learn(&self, lesson: Lesson, _: u64, _: NonZeroUsize) -> Result<Box<dyn Judge>> {
            let rows = lesson.features.len() / lesson.depth;
            let before = self.0.fetch_add(rows, Ordering::Relaxed);
            Ok(Box::new(Says((before + rows) % 3)))
        }
    }
    impl Judge for Says {
        fn scores(&self, rows: &[f32], _: NonZeroUsize) -> Result<Vec<f32>> {
            let row = |class| f32::from(u8::from(class == self.0));
            Ok((0..rows.len() / 2).flat_map(|_| (0..3).map(row)).collect())
        }
    }
    let (data, public) = (points(120, 1), points(3, 77));
    let (view, rows) = view(&public);
    let votes = |data: Dataset| {
        let gossip = Gossip(0.into());
        let made = ensemble(&view, &gossip);
        let votes = made.votes(&Secret::new(data), Queries { rows: &rows }, quiet(1, None));
        votes.expect("fits").expose()
    };
    let all = votes(points(120, 1));
    let worst = (0..20)
        .map(|row| apart(&all, &votes(without(&data, row))))
        .max();
    assert!(worst > Some(2), "{worst:?}");
}

/// From examples to labels: the whole way, judged against its guarantee. The twin lets the one example reach every teacher.
#[test]
fn one_example_shows_no_more_in_labels_than_the_guarantee() {
    // Two classes, told apart by a threshold that the nearest examples decide; one example turns one teacher around.
    struct Nearest;
    struct Says(bool);
    impl Learn for Nearest {
        fn check(&self, _: usize, _: usize) -> Result<()> {
            Ok(())
        }
        fn learn(&self, lesson: Lesson, _: u64, _: NonZeroUsize) -> Result<Box<dyn Judge>> {
            // An example far out makes its teacher say the second class, always.
            Ok(Box::new(Says(lesson.features.iter().any(|x| *x > 50.0))))
        }
    }
    impl Judge for Says {
        fn scores(&self, rows: &[f32], _: NonZeroUsize) -> Result<Vec<f32>> {
            let one = if self.0 { [0.0, 1.0] } else { [1.0, 0.0] };
            Ok(one.repeat(rows.len()))
        }
    }
    let make = |out: &[usize]| {
        let features = (0..40).map(|i| i as f32 / 40.0);
        let out = out.iter().map(|i| 1000.0 + *i as f32);
        let features: Vec<f32> = features.chain(out).collect();
        let labels = vec![0; features.len()];
        Secret::new(Dataset::with_classes(vec![1], features, labels, 2).expect("fits"))
    };
    let public =
        Dataset::with_classes(vec![1], (0..16).map(|x| x as f32).collect(), vec![0; 16], 2);
    let (view, rows) = view(&public.expect("fits"));
    let made = Ensemble {
        teachers: 21,
        ..ensemble(&view, &Nearest)
    };
    let terms = Terms {
        test: Some(Test {
            threshold: 0.0,
            sigma: 6.0,
        }),
        sigma: 4.0,
        queries: 16,
        answers_max: 16,
        neighbours: made.rule.neighbours(),
        ..Terms::default()
    };
    let aggregation = Aggregation::new(&terms).expect("terms");
    let votes = |out: &[usize]| {
        let queries = Queries { rows: &rows };
        let votes = made.votes(&make(out), queries, quiet(1, None));
        votes.expect("fits")
    };
    let second = |votes: &Secret<Votes>| votes.as_ref().expose().counts(0)[1];
    // Where teachers are divided one of them shows most: examples are added until ten of 21 say the second class, and then one that turns another around.
    let (mut out, mut next) = (Vec::new(), 0);
    while second(&votes(&out)) < 10 {
        out.push(next);
        next += 1;
    }
    let without = votes(&out);
    let turns = |example: &usize| second(&votes(&[&out[..], &[*example]].concat())) == 11;
    let neighbour = (next..).find(turns).expect("one of 21");
    let judged = |with: &Secret<Votes>| {
        let mostly_second = |votes: &Secret<Votes>, entropy: &mut Seeded| {
            let payment = Payment::uncharged(&aggregation, Uncharged);
            let told = aggregation.run(votes, payment, entropy).expect("entropy");
            mostly_second(&told)
        };
        let (mut one, mut two) = (Seeded::new(991), Seeded::new(992));
        falsify_gdp(
            Mu::new(aggregation.mu()).expect("finite"),
            10_000,
            Alpha::new(1e-6).expect("a level"),
            || mostly_second(with, &mut one),
            || mostly_second(&without, &mut two),
        )
        .expect("trials")
    };
    let honest = judged(&votes(&[&out[..], &[neighbour]].concat()));
    assert!(
        !honest.convicted && honest.mu_lower > REACHED * aggregation.mu(),
        "{honest:?}"
    );
    // Sixty examples more reach nearly all teachers: more than one neighbour is away, and so it is seen.
    let many: Vec<usize> = out.iter().copied().chain(next..next + 60).collect();
    assert!(judged(&votes(&many)).convicted);
}

/// How much of a claim falsifiers from data to labels reach. A label is one bit of each noisy maximum, which is worth `√(2/π)` of it at most, and that most labels are of one class is all that is looked at: so these see
/// what is wrong as a whole, such as an example that reaches several teachers. A tenth of the noise is seen where one mechanism is doubted: `doubt_test.rs`.
const REACHED: f64 = 0.6;

/// Are there more labels of the second class of two?
fn mostly_second(told: &Outcome) -> bool {
    let side = |label: &usize| if *label == 1 { 1 } else { -1 };
    told.labels.iter().flatten().map(side).sum::<i32>() > 0
}

/// From a table to labels, where teachers hear one row less: by hash that turns one of four around, as the guarantee has it. The twin deals rows out by their places and claims add/remove: the row that is gone moves all
/// rows behind it, and every teacher turns around.
#[test]
fn parts_by_place_that_claim_add_remove_are_convicted() {
    // A teacher says whether it has an odd number of examples of the second class.
    struct Parity;
    struct Says(usize);
    impl Learn for Parity {
        fn check(&self, _: usize, _: usize) -> Result<()> {
            Ok(())
        }
        fn learn(&self, lesson: Lesson, _: u64, _: NonZeroUsize) -> Result<Box<dyn Judge>> {
            let second = lesson.shares.chunks_exact(2).filter(|row| row[1] == 1.0);
            Ok(Box::new(Says(second.count() % 2)))
        }
    }
    impl Judge for Says {
        fn scores(&self, rows: &[f32], _: NonZeroUsize) -> Result<Vec<f32>> {
            let row = |class| f32::from(u8::from(class == self.0));
            Ok((0..rows.len()).flat_map(|_| (0..2).map(row)).collect())
        }
    }
    // Rows 0 1 0 1, then one of the first class or of the second, then 0 1 0 1: four teachers with it by places have 1 1 1 1 in all, and 0 0 0 0 without it.
    let table = |middle: Option<u32>| {
        let rows: Vec<(f32, u32)> = (0..9)
            .filter_map(|place| match place {
                4 => middle.map(|class| (4.0, class)),
                0..4 => Some((place as f32, place % 2)),
                _ => Some((place as f32, (place + 1) % 2)),
            })
            .collect();
        let (features, labels) = rows.into_iter().unzip();
        Secret::new(Dataset::with_classes(vec![1], features, labels, 2).expect("fits"))
    };
    let public =
        Dataset::with_classes(vec![1], (0..16).map(|x| x as f32).collect(), vec![0; 16], 2);
    let (view, rows) = view(&public.expect("fits"));
    let terms = Terms {
        sigma: 6.0,
        queries: 16,
        answers_max: 16,
        neighbours: Neighbours::AddRemove,
        ..Terms::default()
    };
    let aggregation = Aggregation::new(&terms).expect("terms");
    let judged = |rule: Rule, middle: u32| {
        let made = Ensemble {
            teachers: 4,
            rule,
            ..ensemble(&view, &Parity)
        };
        let votes = |data| {
            let queries = Queries { rows: &rows };
            made.votes(&data, queries, quiet(1, None)).expect("fits")
        };
        let (with, without) = (votes(table(Some(middle))), votes(table(None)));
        assert_eq!(
            aggregation.check(with.as_ref().expose()).is_ok(),
            rule == Rule::Hash
        );
        let [with, without] = [with, without].map(|votes| votes.map(of_nobody));
        let moved = apart(with.as_ref().expose(), without.as_ref().expose()) / 2;
        let mostly_second = |votes: &Secret<Votes>, entropy: &mut Seeded| {
            let payment = Payment::uncharged(&aggregation, Uncharged);
            let told = aggregation.run(votes, payment, entropy).expect("entropy");
            mostly_second(&told)
        };
        let (mut one, mut two) = (Seeded::new(993), Seeded::new(994));
        let verdict = falsify_gdp(
            Mu::new(aggregation.mu()).expect("finite"),
            10_000,
            Alpha::new(1e-6).expect("a level"),
            || mostly_second(&with, &mut one),
            || mostly_second(&without, &mut two),
        );
        (moved, verdict.expect("trials"))
    };
    let (moved, honest) = judged(Rule::Hash, 1);
    assert_eq!(moved, 1);
    assert!(
        !honest.convicted && honest.mu_lower > REACHED * aggregation.mu(),
        "{honest:?}"
    );
    let (moved, twin) = judged(Rule::Place, 0);
    assert_eq!(moved, 4, "every teacher");
    assert!(twin.convicted, "{twin:?}");
    // Nobody is given that claim: the rule says under which relation it is priced.
    assert_eq!(Rule::Place.neighbours(), Neighbours::ReplaceOne);
}

/// The same votes as a program of somebody's own might give them, who vouches for the relation.
fn of_nobody(votes: Votes) -> Votes {
    let counts: Vec<u64> = (0..votes.queries())
        .flat_map(|query| votes.counts(query).to_vec())
        .collect();
    Votes::with_teachers(&counts, votes.classes(), votes.teachers()).expect("votes")
}

/// The rule by which an ensemble deals examples out decides the relation, whoever writes the terms.
#[test]
fn votes_are_told_of_under_the_relation_of_their_rule_alone() {
    let (view, rows) = view(&points(4, 77));
    for (rule, other) in [
        (Rule::Hash, Neighbours::ReplaceOne),
        (Rule::Place, Neighbours::AddRemove),
    ] {
        let made = Ensemble {
            rule,
            ..ensemble(&view, &RIDGE)
        };
        let queries = Queries { rows: &rows };
        let votes = made.votes(&Secret::new(points(60, 1)), queries, quiet(1, None));
        let votes = votes.expect("fits");
        let told = |neighbours, votes: &Secret<Votes>| {
            let terms = Terms {
                queries: 4,
                classes: 3,
                neighbours,
                ..Terms::default()
            };
            let aggregation = Aggregation::new(&terms).expect("terms");
            let payment = Payment::uncharged(&aggregation, Uncharged);
            let told = aggregation.run(votes, payment, &mut Seeded::new(995));
            told.map(drop).map_err(|error| error.code())
        };
        assert_eq!(votes.as_ref().expose().relation(), Some(rule.neighbours()));
        assert_eq!(told(rule.neighbours(), &votes), Ok(()));
        assert_eq!(told(other, &votes), Err("votes_other_relation"));
        let delta = Delta::new(1e-5).expect("a delta");
        let laplace = LaplaceAggregation::new(40.0, 4, 3, delta, other).expect("terms");
        let payment = Payment::uncharged(&laplace, Uncharged);
        let refused = laplace.run(&votes, payment, &mut Seeded::new(996));
        assert_eq!(
            refused.err().map(|error| error.code()),
            Some("votes_other_relation")
        );
        assert_eq!(told(other, &votes.map(of_nobody)), Ok(()), "vouched for");
    }
}

#[test]
fn votes_that_were_kept_are_not_cast_again() {
    struct Counted(AtomicUsize);
    impl Learn for Counted {
        fn check(&self, _: usize, _: usize) -> Result<()> {
            Ok(())
        }
        fn learn(
            &self,
            lesson: Lesson,
            seed: u64,
            threads: NonZeroUsize,
        ) -> Result<Box<dyn Judge>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            RIDGE.learn(lesson, seed, threads)
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = Aggregation::new(&Terms::default())
        .expect("terms")
        .run_of(b"plan");
    let (view, rows) = view(&points(40, 77));
    let counted = Counted(0.into());
    let made = ensemble(&view, &counted);
    let queries = Queries { rows: &rows };
    let ballots = Ballots::open(folder.path(), &run, [1; 32], &rows).expect("writable");
    let votes = |data: Dataset, threads, ballots| {
        let votes = made.votes(&Secret::new(data), queries, quiet(threads, ballots));
        votes.expect("fits").expose()
    };
    let fresh = votes(points(120, 1), 2, None);
    assert_eq!(counted.0.swap(0, Ordering::Relaxed), 12);
    assert_eq!(votes(points(120, 1), 2, Some(&ballots)), fresh);
    assert_eq!(counted.0.swap(0, Ordering::Relaxed), 12);
    assert_eq!(votes(points(120, 1), 1, Some(&ballots)), fresh);
    assert_eq!(counted.0.swap(0, Ordering::Relaxed), 0, "all were there");
    // One example less: one teacher is trained again.
    votes(without(&points(120, 1), 3), 1, Some(&ballots));
    assert_eq!(counted.0.load(Ordering::Relaxed), 1);
}

#[test]
fn what_cannot_be_is_refused_before_a_teacher_is_trained() {
    let (view, rows) = view(&points(9, 1));
    let queries = Queries { rows: &rows };
    let refused = |made: Ensemble<'_>, data: Dataset| {
        let votes = made.votes(&Secret::new(data), queries, quiet(1, None));
        votes.err().map(|error| error.code())
    };
    let made = ensemble(&view, &RIDGE);
    for teachers in [0, 1_000_000] {
        assert_eq!(
            refused(Ensemble { teachers, ..made }, points(9, 1)),
            Some("plan_out_of_range")
        );
    }
    let one = Dataset::with_classes(vec![2], vec![0.0; 4], vec![0, 0], 1).expect("fits");
    assert_eq!(refused(made, one), Some("votes_classes"));
    let numbers = Dataset::with_numbers(vec![2], vec![0.0; 4], vec![0.0; 2]).expect("fits");
    assert_eq!(refused(made, numbers), Some("votes_classes"));
    let wide = Dataset::with_classes(vec![3], vec![0.0; 6], vec![0, 1], 3).expect("fits");
    assert!(refused(made, wide).is_some());
    // More teachers than examples: those without any vote, too.
    let few = Ensemble {
        teachers: 50,
        ..made
    };
    let votes = few.votes(&Secret::new(points(6, 1)), queries, quiet(1, None));
    let votes = votes.expect("fits").expose();
    assert_eq!(
        (votes.teachers(), votes.counts(0).iter().sum::<u64>()),
        (50, 50)
    );
}
