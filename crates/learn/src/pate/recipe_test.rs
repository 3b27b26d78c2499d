//! The file of an ensemble: what it means, what it refuses, and a whole run.

use std::collections::BTreeMap;

use whit_core::{Fault, Neighbours};
use whit_testkit::Seeded;

use super::*;
use crate::safetensors::Weights;
use crate::{Payment, Uncharged};

const PLAN: &str = r#"
[data]
path = "private.csv"
label = "class"
classes = 2
columns = ["x", "y"]

[public]
path = "public.csv"
label = "class"
classes = 2
columns = ["x", "y"]

[teachers]
count = 20
learner = { kind = "kernel_ridge", width = 1.0, penalty = 0.1 }

[aggregator]
threshold = 12
sigma1 = 3
sigma2 = 3
queries = 60
answers_max = 40
delta = 1e-5

[student]
learner = { kind = "kernel_ridge", width = 1.0, penalty = 0.1 }
neighbours = 6
held_out = 100
"#;

fn recipe(text: &str) -> EnsembleRecipe {
    toml::from_str(text).expect("a plan")
}

fn code(text: &str) -> Option<&'static str> {
    recipe(text)
        .check(Path::new(""))
        .err()
        .map(|error| error.code())
}

/// Two half moons, which no line parts.
fn moons(count: usize, shift: usize) -> Dataset {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (class, at) = (i % 2, ((i + shift) * 7919 % 1000) as f32 / 1000.0 * 3.1);
        let (x, y) = match class {
            0 => (at.cos(), at.sin()),
            _ => (1.0 - at.cos(), 0.4 - at.sin()),
        };
        let wobble = ((i + shift) * 104_729 % 997) as f32 / 997.0 * 0.2;
        features.extend([x + wobble, y - wobble]);
        labels.push(class as u32);
    }
    Dataset::with_classes(vec![2], features, labels, 2).expect("fits")
}

#[test]
fn the_rule_decides_the_relation() {
    let by_hash = recipe(PLAN).aggregation().expect("terms");
    assert_eq!(by_hash.terms().neighbours, Neighbours::AddRemove);
    let text = PLAN.replace("count = 20", "count = 20\nrule = 'place'");
    let by_place = recipe(&text).aggregation().expect("terms");
    assert_eq!(by_place.terms().neighbours, Neighbours::ReplaceOne);
    assert_eq!(by_hash.epsilon(), by_place.epsilon());
    // Where one example moves the places of others, there is no price for them.
    let of_units = text.replacen("label = ", "unit = 'who'\nrows_per_unit = 1\nlabel = ", 1);
    let refused = recipe(&of_units).aggregation().err();
    assert_eq!(refused.map(|error| error.code()), Some("places_move"));
    let pictures = text.replacen("path = ", "format = 'images'\npath = ", 1);
    let refused = recipe(&pictures).aggregation().err();
    assert_eq!(refused.map(|error| error.code()), Some("places_move"));
    assert!(
        recipe(&of_units.replace("'place'", "'hash'"))
            .aggregation()
            .is_ok()
    );
}

#[test]
fn a_plan_means_what_it_says() {
    assert_eq!(code(PLAN), None);
    let check = |from: &str, to: &str, expected: &str| {
        assert!(PLAN.contains(from), "{from}");
        assert_eq!(code(&PLAN.replace(from, to)), Some(expected), "{to}");
    };
    check("count = 20", "count = 0", "plan_out_of_range");
    check("sigma1 = 3\n", "", "plan_field_missing");
    check("threshold = 12\n", "", "plan_field_missing");
    check("sigma2 = 3", "sigma2 = 0", "plan_out_of_range");
    check("delta = 1e-5", "delta = 0", "plan_out_of_range");
    check("queries = 60", "queries = 0", "plan_out_of_range");
    check("neighbours = 6", "share = 0.5", "plan_field_unused");
    check("neighbours = 6", "neighbours = 0", "plan_out_of_range");
    check("neighbours = 6", "rounds = 1000", "plan_out_of_range");
    let learner = "learner = { kind = \"kernel_ridge\", width = 1.0, penalty = 0.1 }";
    for (to, expected) in [
        ("learner = { kind = 'network' }", "plan_field_missing"),
        (
            "learner = { kind = 'network', model = { kind = 'logistic' } }",
            "plan_field_missing",
        ),
        ("learner = { kind = 'forest' }", "plan_word"),
        (
            "learner = { kind = 'network', model = { kind = 'mlp', hidden = [4], dropout = 0.5 }, epochs = 3 }",
            "plan_field_unused",
        ),
        (
            "learner = { kind = 'network', model = { kind = 'layers', layers = [{ kind = 'dropout', rate = 0.5 }, { kind = 'linear', outputs = 2 }] }, epochs = 3 }",
            "plan_field_unused",
        ),
        (
            "learner = { kind = 'kernel_ridge', epochs = 3 }",
            "plan_field_unused",
        ),
    ] {
        check(learner, to, expected);
    }
    let one = PLAN.replace("classes = 2", "classes = 1");
    assert!(code(&one).is_some());
    assert!(toml::from_str::<EnsembleRecipe>(&PLAN.replace("count", "number")).is_err());
    // Different columns would mean something else to teachers.
    let swapped = PLAN.replacen("[\"x\", \"y\"]", "[\"y\", \"x\"]", 1);
    assert!(code(&swapped).is_some());
}

#[test]
fn a_whole_run_teaches_a_student() {
    let one = NonZeroUsize::MIN;
    let recipe = recipe(PLAN);
    let room = recipe.room_of(moons(400, 3), one).expect("fits");
    assert_eq!((room.rows(), room.held_out()), (300, 100));
    let heard = std::sync::atomic::AtomicUsize::new(0);
    let after = |_: usize| {
        heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let private = Secret::new(moons(1000, 0));
    let votes = recipe
        .votes(&room, &private, None, one, &after)
        .expect("fits");
    assert_eq!(heard.into_inner(), 20);
    let aggregation = recipe.aggregation().expect("terms");
    let payment = Payment::uncharged(&aggregation, Uncharged);
    let outcome = aggregation.run(&votes, payment, &mut Seeded::new(1001));
    let outcome = outcome.expect("entropy");
    let student = recipe.teach(&room, &outcome, one).expect("fits");
    let accuracy = room.accuracy(&*student, one).expect("fits");
    assert!(accuracy > Some(0.9), "{accuracy:?}");
    assert_eq!(room.says(&*student, one).expect("fits").len(), 400);
    let file = room
        .safetensors(&*student, &BTreeMap::new())
        .expect("numbers");
    let file = Weights::read(&file).expect("a file");
    let names: Vec<&str> = file.tensors.iter().map(|tensor| &tensor.name[..]).collect();
    assert_eq!(names, ["examples", "weights", "view.mean", "view.factor"]);
    assert!(room.check(&[2]).is_ok() && room.check(&[3]).is_err());
}

/// Where no public example is held out, nobody looks at their labels: they may be missing, or anything.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test's own files")]
fn public_examples_need_labels_only_if_they_are_held_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = |more: &str| -> String {
        let row = |i: u32| format!("{i}.5,{}{more}\n", i % 7);
        (0..80).map(row).collect()
    };
    let files = [
        ("without.csv", format!("x,y\n{}", rows(""))),
        ("unknown.csv", format!("x,y,class\n{}", rows(",?"))),
        ("known.csv", format!("x,y,class\n{}", rows(",1"))),
    ];
    for (name, text) in &files {
        std::fs::write(folder.path().join(name), text).expect("writable");
    }
    let seen = |text: &str, file: &str| {
        let recipe = recipe(&text.replace("public.csv", file));
        recipe.check(folder.path())?;
        let room = recipe.room(folder.path(), NonZeroUsize::MIN)?;
        room.check(&[2])?;
        Ok((room.rows(), *room.fingerprint()))
    };
    let code = |seen: Result<_>| seen.map(drop).map_err(|error| error.code());
    let none_held = PLAN.replace("held_out = 100\n", "");
    let unlabelled = none_held.replace(
        "path = \"public.csv\"\nlabel = \"class\"\nclasses = 2\n",
        "path = \"public.csv\"\n",
    );
    assert_ne!(none_held, unlabelled);
    let anywhere = |text: &str| text.replace("columns = [\"x\", \"y\"]\n", "");
    for text in [
        &none_held,
        &unlabelled,
        &anywhere(&none_held),
        &anywhere(&unlabelled),
    ] {
        let all = files
            .each_ref()
            .map(|(name, _)| seen(text, name).expect("fits"));
        assert_eq!(all[0].0, 80);
        assert!(
            all.iter().all(|other| *other == all[0]),
            "the same examples"
        );
    }
    // Those that judge need them.
    let held = PLAN.replace("held_out = 100", "held_out = 10");
    assert_eq!(code(seen(&held, "known.csv")), Ok(()));
    assert_eq!(code(seen(&held, "without.csv")), Err("data_column"));
    assert_eq!(
        code(seen(&held, "unknown.csv")),
        Err("row_label_out_of_range")
    );
    let nameless = unlabelled + "held_out = 10\n";
    let refused = seen(&nameless, "known.csv").expect_err("no label");
    assert_eq!(refused.code(), "plan_field_missing");
    assert!(
        refused.suggestion().contains("held_out"),
        "{}",
        refused.suggestion()
    );
}

#[test]
fn fewer_public_examples_than_queries_are_refused() {
    let room = recipe(PLAN).room_of(moons(150, 0), NonZeroUsize::MIN);
    assert_eq!(room.err().map(|error| error.code()), Some("votes_too_few"));
    let none = PLAN.replace("held_out = 100\n", "");
    let room = recipe(&none)
        .room_of(moons(60, 0), NonZeroUsize::MIN)
        .expect("fits");
    let ridge = KernelRidge {
        kernel: Kernel::Linear,
        penalty: 1.0,
    };
    let lesson = super::super::view::Lesson {
        depth: 2,
        classes: 2,
        ..Default::default()
    };
    let judge = ridge.learn(lesson, 0, NonZeroUsize::MIN).expect("fits");
    assert_eq!(room.accuracy(&*judge, NonZeroUsize::MIN), Ok(None));
}
