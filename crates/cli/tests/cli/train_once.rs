//! `whit train` takes nobody for two, nothing private for public, and nothing for a model that is none.

use std::num::NonZeroUsize;
use std::path::Path;

use plotters::prelude::{BitMapBackend, DrawingBackend};
use tempfile::TempDir;
use whit::OsEntropy;
use whit_learn::checkpoint::Place;
use whit_learn::data::{Audience, load_private};
use whit_learn::{Payment, Recipe, Uncharged};

use super::*;

const PLAN: &str = "[model]\nkind = 'logistic'\n[plan]\nrate = 0.5\nsteps = 4\nclip = 1.0\nnoise_multiplier = 4.0\ndelta = 1e-5\n";
const PICTURES: &str =
    "path = 'a'\nformat = 'images'\nshape = [3, 4, 4]\nclasses = ['cat', 'dog']\n";
const CYCLIC: &str = "[data]\npath = 'x.csv'\nlabel = 'y'\nclasses = 2\nshape = [1]\nn_public = 8\n[model]\nkind = 'logistic'\n\
                      [plan]\nsampler = 'cyclic'\nbins = 2\nmechanism = 'tree'\nsteps = 6\nclip = 1.0\nnoise_multiplier = 4.0\ndelta = 1e-5\n";

fn train(folder: &TempDir, plan: &str, more: &str) -> String {
    let path = folder.path().join("plan.toml");
    fs::write(&path, plan).expect("writable");
    format!("train {} {more}", path.display())
}

fn picture(path: &Path) {
    fs::create_dir_all(path.parent().expect("in a folder")).expect("writable");
    let mut picture = BitMapBackend::new(path, (4, 4));
    picture.present().expect("written");
}

/// Private pictures in `a`, public ones in `b`.
fn pictures() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for place in ["a/cat/1.png", "a/dog/1.png", "b/cat/1.png", "b/dog/1.png"] {
        picture(&folder.path().join(place));
    }
    folder
}

fn with_test(test: &str) -> String {
    format!("[data]\n{PICTURES}n_public = 2\n[test]\n{test}{PLAN}")
}

#[test]
fn private_pictures_are_not_public_by_another_name() {
    let folder = pictures();
    let out = PICTURES
        .replace("'a'", "'b'")
        .replace("['cat', 'dog']", "['../a/cat', '../a/dog']");
    for more in ["", "--dry-run"] {
        for test in [PICTURES, &PICTURES.replace("'a'", "'b/../a'"), &out] {
            let train = train(&folder, &with_test(test), more);
            check_refused(b"", &train, 2, "refused", "test_private");
        }
        // Nor are folders of classes named so where nothing is private.
        let elsewhere = out.replace("../a/", "../b/");
        let train = train(&folder, &with_test(&elsewhere), more);
        check_refused(b"", &train, 1, "invalid", "data_field_domain");
    }
    let apart = train(
        &folder,
        &with_test(&PICTURES.replace("'a'", "'b'")),
        "--format json",
    );
    assert!(answer(&run(&apart))["test"]["accuracy"].is_number());
}

#[cfg(unix)]
#[test]
fn links_to_private_pictures_are_not_public() {
    for (place, target) in [
        ("c", "a"),
        ("c/cat", "../a/cat"),
        ("c/cat/1.png", "../../a/cat/1.png"),
    ] {
        let folder = pictures();
        let path = folder.path();
        if place != "c" {
            picture(&path.join("c/dog/1.png"));
        }
        let link = path.join(place);
        fs::create_dir_all(link.parent().expect("in a folder")).expect("writable");
        std::os::unix::fs::symlink(target, &link).expect("writable");
        let plan = with_test(&PICTURES.replace("'a'", "'c'"));
        for more in ["", "--dry-run"] {
            let train = train(&folder, &plan, more);
            check_refused(b"", &train, 2, "refused", "test_private");
        }
        assert!(!path.join("plan").exists());
    }
}

#[test]
fn nobody_is_two_examples() {
    let folder = pictures();
    let plan = format!("[data]\n{PICTURES}n_public = 2\n{PLAN}");
    for classes in ["['cat', './cat', 'dog']", "['cat', 'CAT', 'dog']"] {
        let plan = plan.replace("['cat', 'dog']", classes);
        for more in ["", "--dry-run"] {
            let train = train(&folder, &plan, more);
            check_refused(b"", &train, 1, "invalid", "data_field_domain");
        }
    }
    #[cfg(unix)]
    {
        let cat = folder.path().join("a").join("cat");
        fs::hard_link(cat.join("1.png"), cat.join("2.png")).expect("writable");
        let linked = train(&folder, &plan, "");
        check_refused(b"", &linked, 1, "invalid", "row_several_names");
        std::os::unix::fs::symlink("cat", folder.path().join("a").join("owl")).expect("writable");
        let twins = plan.replace("['cat', 'dog']", "['cat', 'dog', 'owl']");
        for more in ["", "--dry-run"] {
            let train = train(&folder, &twins, more);
            check_refused(b"", &train, 1, "invalid", "data_same_file");
        }
    }
    assert!(!folder.path().join("plan").exists());
}

/// A run with a tree is written at its end only. If it is stopped before, its initial weights are no model.
#[test]
fn a_run_of_which_nothing_is_left_writes_no_model() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    fs::write(path.join("x.csv"), "x,y\n1,0\n2,1\n3,0\n4,1\n").expect("writable");
    let train = train(&folder, CYCLIC, "");
    let recipe: Recipe = toml::from_str(CYCLIC).expect("a plan");
    let plan = recipe.plan().expect("a plan");
    let out = path.join("plan");
    // The first steps of this very run, which is then stopped.
    let place = Place::make(&out, recipe.run(&plan)).expect("writable");
    let data = load_private(&recipe.data, path, Audience::Owner).expect("fits");
    let (architecture, _) = recipe.architecture(&[1], Some(2)).expect("fits");
    let payment = Payment::uncharged(&plan, Uncharged);
    place
        .start(payment, recipe.initial(&architecture))
        .expect("writable");
    let one = NonZeroUsize::MIN;
    let begun = recipe.trainer_kept(&plan, data, one, place, one);
    let mut trainer = begun.expect("fits").0;
    for _ in 0..3 {
        trainer.step(&mut OsEntropy::new()).expect("entropy");
    }
    drop(trainer);
    check_refused(b"", &train, 2, "refused", "checkpoint_lost");
    let told = run(&train).stderr;
    assert!(
        told.contains("initial weights") && told.contains("in another folder"),
        "{told}"
    );
    assert!(!out.join("model.safetensors").exists() && !out.join("card.md").exists());
    // In another folder it is a run as any other.
    let other = format!("{train} --out {} --format json", path.join("b").display());
    assert_eq!(answer(&run(&other))["steps_kept"], 6);
}

#[test]
fn noise_that_does_not_fit_into_memory_is_refused_before_data_are_read() {
    let folder = TempDir::new().expect("a folder");
    let wide = CYCLIC
        .replace("kind = 'logistic'", "kind = 'mlp'\nhidden = [1000, 1000]")
        .replace("mechanism = 'tree'\nsteps = 6", "band = 1024\nsteps = 4000");
    for more in ["", "--dry-run"] {
        let train = train(&folder, &wide, more);
        check_refused(b"", &train, 1, "invalid", "noise_memory");
        let told = run(&train).stderr;
        assert!(told.contains("`band` as at most 267"), "{told}");
    }
    let passes = train(
        &folder,
        &wide.replace("band = 1024", "band = 267"),
        "--dry-run",
    );
    assert_eq!(run(&passes).code, 0);
}
