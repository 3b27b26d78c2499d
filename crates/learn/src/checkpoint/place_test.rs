//! Places are held by one run, count its steps, and say before what they could not keep.
#![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

use tempfile::TempDir;
use whit_core::Fault;

use super::super::tests::{checkpoint, run};
use super::*;
use crate::payment::Payer;

/// As one that was started there.
fn at_home(place: &Place, mut checkpoint: Checkpoint) -> Checkpoint {
    checkpoint.home = place.home();
    checkpoint
}

#[test]
fn what_was_kept_is_loaded() {
    let folder = TempDir::new().expect("a folder");
    let place = Place::open(folder.path(), run(7)).expect("free");
    assert_eq!(place.load(), Ok(None));
    let mut own = at_home(&place, checkpoint());
    place.keep(&mut own).expect("writable");
    let read = place.load().expect("own").expect("there");
    assert_eq!(read, own);
    assert_eq!(read.parameters[1].to_bits(), (-0.0_f32).to_bits());
    let name = place.path().file_name().and_then(|name| name.to_str());
    assert_eq!(name, Some("whit-0707070707070707.checkpoint"));
}

/// Runs that crash at random places, give steps back, cannot write that, and go on: never more steps than were paid for, and all of them without a crash.
#[test]
fn crashes_never_add_steps() {
    let folder = TempDir::new().expect("a folder");
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let (mut given_back, mut unwritten) = (0, 0);
    for plan in 0..40 {
        let (calm, epoch) = (plan < 2, 1 + u64::from(plan % 2) * 2);
        let (mut ran, mut kept, mut is_over) = (0, 0, false);
        while !is_over {
            let mut place = Place::open(folder.path(), run(plan)).expect("free");
            let mut here = match place.load().expect("own") {
                Some(checkpoint) => checkpoint,
                None => {
                    let first = Checkpoint::new(run(plan), Payer::Nobody, vec![0.0; 3]);
                    at_home(&place, first)
                }
            };
            assert!(here.steps_kept() >= kept, "kept steps stay");
            let part = place.path().with_extension("part");
            loop {
                let mut granted = place.begin(&mut here, 7).expect("writable");
                is_over = granted == 0;
                if is_over || (!calm && random(4) == 0) {
                    // Killed after some of them.
                    ran += random(granted + 1);
                    break;
                }
                let taken = match random(3) {
                    0 => random(granted),
                    _ => granted,
                };
                ran += taken;
                here.done(taken);
                granted -= taken;
                let fails = !calm && random(3) == 0;
                if fails {
                    fs::create_dir(&part).expect("in the way");
                }
                let written = place.give_back(&mut here, &mut granted, epoch);
                assert_eq!(written.is_err(), fails);
                if fails {
                    fs::remove_dir(&part).expect("ours");
                    unwritten += 1;
                } else {
                    kept = here.steps_kept();
                }
                given_back += u64::from(granted == 0);
                if !calm && random(3) == 0 {
                    break;
                }
                // The rest of an epoch stays granted, and is taken.
                ran += granted;
                here.done(granted);
            }
        }
        assert!(ran <= 50, "{ran} steps were run");
        assert!(!calm || ran == 50, "{ran} steps were run");
    }
    assert!(given_back > 20 && unwritten > 20);
}

#[test]
fn a_run_is_begun_once_and_by_a_payment_of_its_own() {
    let folder = TempDir::new().expect("a folder");
    assert!(!Place::is_begun(folder.path(), &run(7)));
    let place = Place::open(folder.path(), run(7)).expect("free");
    let payment = |run: &Run| Payment::rest(run.event.fingerprint(), Payer::Nobody, 0);
    let begun_before = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 3);
    assert_eq!(
        place.start(begun_before, vec![0.0]),
        Err(crate::Error::OtherPlan),
        "what was begun elsewhere"
    );
    assert_eq!(place.start(payment(&run(7)), vec![0.5]), Ok(()));
    assert!(Place::is_begun(folder.path(), &run(7)));
    let kept = place.load().expect("own").expect("there");
    assert_eq!((kept.steps_begun(), kept.payer()), (0, &Payer::Nobody));
    let again = place.start(payment(&run(7)), vec![0.5]);
    let path = place.path().to_owned();
    assert_eq!(again, Err(CheckpointError::Begun { path }.into()));
}

#[test]
fn a_place_that_takes_no_file_is_noticed_before_a_run_is_begun() {
    let folder = TempDir::new().expect("a folder");
    let place = Place::open(folder.path(), run(7)).expect("free");
    assert_eq!(place.probe(1000), Ok(()));
    let part = place.path().with_extension("part");
    assert!(!part.exists() && !Place::is_begun(folder.path(), &run(7)));
    fs::create_dir(&part).expect("in the way");
    let tried = place.probe(1000);
    assert!(matches!(tried, Err(CheckpointError::Unwritable { .. })));
    fs::remove_dir(&part).expect("ours");
    let payment = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 0);
    place.start(payment, vec![0.5]).expect("free");
    let tried = place.probe(1000);
    assert!(matches!(tried, Err(CheckpointError::Begun { .. })));
}

/// Whoever copies a folder in which a run is under way does not take its steps a second time.
#[cfg(unix)]
#[test]
fn a_copy_of_a_folder_is_no_second_run() {
    let folder = TempDir::new().expect("a folder");
    let names = ["first", "copy", "linked", "moved"];
    let [first, copy, linked, moved] = names.map(|name| folder.path().join(name));
    fs::create_dir(&first).expect("writable");
    let place = Place::open(&first, run(7)).expect("free");
    let payment = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 0);
    place.start(payment, vec![0.5]).expect("writable");
    drop(place);
    for other in [&copy, &linked] {
        fs::create_dir(other).expect("writable");
    }
    for entry in fs::read_dir(&first).expect("there") {
        let entry = entry.expect("listed");
        fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
        fs::hard_link(entry.path(), linked.join(entry.file_name())).expect("linked");
    }
    for other in [&copy, &linked] {
        let place = Place::open(other, run(7)).expect("free");
        assert!(matches!(place.load(), Err(CheckpointError::Copied { .. })));
    }
    fs::rename(&first, &moved).expect("moved");
    let place = Place::open(&moved, run(7)).expect("free");
    assert!(place.load().is_ok_and(|found| found.is_some()));
}

/// A run of seven that was paid for and begun in a folder.
#[cfg(unix)]
fn begun_in(folder: &Path) -> Place {
    let place = Place::open(folder, run(7)).expect("free");
    let payment = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 0);
    place.start(payment, vec![0.5]).expect("writable");
    place
}

/// Fresh disks, and folders in the place of what was removed, hand out the same numbers again.
#[cfg(unix)]
#[test]
fn what_has_the_numbers_and_was_made_at_another_time_is_a_copy() {
    let folder = TempDir::new().expect("a folder");
    let place = begun_in(folder.path());
    let kept = place.load().expect("own").expect("there");
    for made in [1, 3] {
        let mut other = kept.clone();
        other.home.as_mut().expect("numbers")[made] ^= 1;
        fs::write(place.path(), other.encode()).expect("writable");
        assert!(matches!(place.load(), Err(CheckpointError::Copied { .. })));
    }
    fs::write(place.path(), kept.encode()).expect("writable");
    assert_eq!(place.load(), Ok(Some(kept)), "as it was");
}

/// A folder that is copied, removed and copied back under its old name is another one, whatever numbers it gets.
#[cfg(unix)]
#[test]
fn a_copy_in_the_place_of_the_first_is_no_second_run() {
    let folder = TempDir::new().expect("a folder");
    let [first, copy] = ["run", "copy"].map(|name| folder.path().join(name));
    let copied = |from: &Path, to: &Path| {
        fs::create_dir(to).expect("writable");
        for entry in fs::read_dir(from).expect("there") {
            let entry = entry.expect("listed");
            fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    };
    fs::create_dir(&first).expect("writable");
    let place = begun_in(&first);
    let home = place.home().expect("numbers");
    drop(place);
    copied(&first, &copy);
    // What is made in the same tick of the system's clock has the same time. One that does not tell times must not be waited for.
    let tick = folder.path().join("tick");
    let made = || {
        fs::write(&tick, b"").expect("writable");
        let made = origin(tick.metadata()).expect("numbers")[1];
        fs::remove_file(&tick).expect("ours");
        made
    };
    let later = (0..1_000_000).map(|_| made()).find(|made| *made > home[1]);
    if later.is_none() {
        assert_eq!(home[1], 0, "times that stand still");
        return;
    }
    fs::remove_dir_all(&first).expect("ours");
    copied(&copy, &first);
    let mut place = Place::open(&first, run(7)).expect("free");
    assert!(matches!(place.load(), Err(CheckpointError::Copied { .. })));
    // What follows of it is as much of a copy.
    let mut here = Checkpoint::new(run(7), Payer::Nobody, vec![0.5]);
    here.home = Some(home);
    let refused = place.begin(&mut here, 5).expect_err("another folder");
    assert_eq!(refused.code(), "checkpoint_moved");
}

/// Another folder that has the run's name while a checkpoint is written gets it, and no step is granted; nor is one if another file got the checkpoint's name.
#[cfg(unix)]
#[test]
fn a_folder_that_is_replaced_during_a_write_grants_no_steps() {
    let folder = TempDir::new().expect("a folder");
    let [run_at, moved] = ["run", "moved"].map(|name| folder.path().join(name));
    fs::create_dir(&run_at).expect("writable");
    let place = begun_in(&run_at);
    let mut here = place.load().expect("own").expect("there");
    assert_eq!(here.begin(5), 5);
    let part = place.path().with_extension("part");
    let bytes = here.encode();
    let written = place.keep_by(&mut here, |file| {
        file.write_all(&bytes)?;
        fs::rename(&run_at, &moved)?;
        fs::create_dir(&run_at)?;
        for file in [&part, place.path()] {
            let name = file.file_name().expect("a name");
            fs::hard_link(moved.join(name), file)?;
        }
        Ok(())
    });
    assert_eq!(written.map_err(|e| e.code()), Err("checkpoint_moved"));
    assert!(place.path().exists(), "it went into the other folder");
    fs::remove_dir_all(&run_at).expect("ours");
    fs::rename(&moved, &run_at).expect("back");
    let found = place.load().expect("own").expect("there");
    assert_eq!(found.steps_begun(), 0);

    let mut here = found;
    assert_eq!(here.begin(5), 5);
    let written = place.keep_by(&mut here, |file| {
        file.write_all(&bytes)?;
        let old = fs::read(place.path())?;
        fs::rename(&part, folder.path().join("taken"))?;
        fs::write(&part, old)
    });
    assert_eq!(written.map_err(|e| e.code()), Err("checkpoint_moved"));
    let refused = place.keep(&mut here).map_err(|e| e.code());
    assert_eq!(refused, Err("checkpoint_changed"), "it is another file");
    let mut here = place.load().expect("own").expect("there");
    assert_eq!(
        place.keep(&mut here),
        Ok(()),
        "and then nobody is in the way"
    );
}

/// A run counts its steps in the folder that it holds: whoever moves that and goes on there finds all that were granted.
#[cfg(unix)]
#[test]
fn a_folder_that_is_moved_or_replaced_grants_no_more_steps() {
    let folder = TempDir::new().expect("a folder");
    let names = ["run", "moved", "other", "link"];
    let [run_at, moved, other, link] = names.map(|name| folder.path().join(name));
    fs::create_dir(&run_at).expect("writable");
    let payment = || Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 0);
    let mut place = Place::open(&run_at, run(7)).expect("free");
    place.start(payment(), vec![0.5]).expect("writable");
    let mut here = place.load().expect("own").expect("there");
    assert_eq!(place.begin(&mut here, 5), Ok(5));
    fs::rename(&run_at, &moved).expect("moved");
    let mut refused = || match place.begin(&mut here, 5) {
        Err(error) => error.code(),
        Ok(granted) => panic!("{granted} steps"),
    };
    assert_eq!(refused(), "checkpoint_moved", "nothing has its name");
    fs::create_dir(&run_at).expect("writable");
    assert_eq!(refused(), "checkpoint_moved", "another folder has its name");
    assert!(all(&run_at).is_empty(), "which is left alone");
    drop(place);
    let place = Place::open(&moved, run(7)).expect("free");
    let found = place.load().expect("own").expect("there");
    assert_eq!(found.steps_begun(), 5);

    // By a link that comes to point elsewhere.
    drop(place);
    fs::create_dir(&other).expect("writable");
    std::os::unix::fs::symlink(&moved, &link).expect("writable");
    let mut place = Place::open(&link, run(7)).expect("free");
    let mut here = place.load().expect("own").expect("there");
    fs::remove_file(&link).expect("ours");
    std::os::unix::fs::symlink(&other, &link).expect("writable");
    let refused = place.begin(&mut here, 5).expect_err("elsewhere");
    assert_eq!(refused.code(), "checkpoint_moved");
    assert!(all(&other).is_empty());

    // And where the lock is another file by now.
    drop(place);
    let mut place = Place::open(&moved, run(7)).expect("free");
    let mut here = place.load().expect("own").expect("there");
    fs::remove_file(place.path().with_extension("lock")).expect("ours");
    fs::write(place.path().with_extension("lock"), b"").expect("writable");
    let refused = place.begin(&mut here, 5).expect_err("another lock");
    assert_eq!(refused.code(), "checkpoint_moved");
}

/// While a run is under way its checkpoint is replaced by nobody else: an older one has fewer steps counted, and that of another run, which holds a lock of its own on another machine, counts the same steps for itself.
#[test]
fn a_checkpoint_that_is_not_the_last_one_grants_no_step() {
    let folder = TempDir::new().expect("a folder");
    let mut place = Place::open(folder.path(), run(7)).expect("free");
    let mut here = at_home(&place, Checkpoint::new(run(7), Payer::Nobody, vec![0.0]));
    assert_eq!(place.begin(&mut here, 5), Ok(5));
    let (path, older) = (
        place.path().to_owned(),
        fs::read(place.path()).expect("there"),
    );
    let mut other = place.load().expect("own").expect("there");
    assert_eq!(place.begin(&mut here, 5), Ok(5));
    let newer = fs::read(&path).expect("there");
    // What somebody else is about to write stays as it is.
    let part = path.with_extension("part");
    fs::write(&part, b"another's").expect("writable");
    let refused = |place: &mut Place, checkpoint: &mut Checkpoint| {
        let before = fs::read(&path).ok();
        let granted = place.begin(checkpoint, 5).map_err(|error| error.code());
        assert_eq!(granted, Err("checkpoint_changed"));
        assert_eq!(fs::read(&path).ok(), before);
        assert_eq!(fs::read(&part).ok().as_deref(), Some(&b"another's"[..]));
    };
    refused(&mut place, &mut other);
    fs::write(&path, &older).expect("writable");
    refused(&mut place, &mut here);
    // By its old name, or removed.
    fs::remove_file(&path).expect("ours");
    refused(&mut place, &mut here);
    fs::write(&path, b"short").expect("writable");
    refused(&mut place, &mut here);
    fs::write(&path, &newer).expect("writable");
    let mut read = place.load().expect("own").expect("there");
    assert_eq!(
        (read.steps_begun(), place.begin(&mut read, 50)),
        (10, Ok(40))
    );
}

/// Another machine's file comes while this one is written: it is not replaced, and nothing is granted.
#[test]
fn a_checkpoint_that_comes_during_a_write_is_not_replaced() {
    let folder = TempDir::new().expect("a folder");
    let mut place = Place::open(folder.path(), run(7)).expect("free");
    let mut here = at_home(&place, Checkpoint::new(run(7), Payer::Nobody, vec![0.0]));
    assert_eq!(place.begin(&mut here, 5), Ok(5));
    let mut theirs = here.clone();
    assert_eq!((here.begin(5), theirs.begin(7)), (5, 7));
    let (ours, theirs) = (here.encode(), theirs.encode());
    let written = place.keep_by(&mut here, |file| {
        file.write_all(&ours)?;
        fs::write(place.path(), &theirs)
    });
    assert_eq!(written.map_err(|e| e.code()), Err("checkpoint_changed"));
    assert!(!place.path().with_extension("part").exists());
    let found = place.load().expect("own").expect("there");
    assert_eq!(found.steps_begun(), 12);
}

/// A fork has the lock of its parent, and what was granted to it.
#[test]
fn a_fork_of_the_process_counts_nothing() {
    let folder = TempDir::new().expect("a folder");
    let mut place = Place::open(folder.path(), run(7)).expect("free");
    let mut here = at_home(&place, Checkpoint::new(run(7), Payer::Nobody, vec![0.0]));
    assert_eq!(place.begin(&mut here, 5), Ok(5));
    // As it is found there: by another number.
    place.process ^= 1;
    let granted = place.begin(&mut here, 5).map_err(|error| error.code());
    assert_eq!(granted, Err("other_process"));
    let counted = place.load().expect("own").expect("there");
    assert_eq!(counted.steps_begun(), 5);
}

/// A program that is killed right after its steps finds them counted.
#[test]
fn steps_are_counted_before_they_are_granted() {
    let folder = TempDir::new().expect("a folder");
    let mut place = Place::open(folder.path(), run(7)).expect("free");
    let mut here = at_home(&place, Checkpoint::new(run(7), Payer::Nobody, vec![0.0]));
    assert_eq!(place.begin(&mut here, 20), Ok(20));
    let read = place.load().expect("own").expect("there");
    assert_eq!((read.steps_begun(), read.steps_kept()), (20, 0));
    fs::remove_file(place.path()).expect("ours");
    fs::create_dir(place.path()).expect("in the way");
    assert!(
        place.begin(&mut here, 20).is_err(),
        "not durable, not granted"
    );
}

#[test]
fn a_place_is_held_by_one_process_and_for_one_run() {
    let folder = TempDir::new().expect("a folder");
    let first = Place::open(folder.path(), run(7)).expect("free");
    let second = Place::open(folder.path(), run(7));
    assert!(matches!(second, Err(CheckpointError::Busy { .. })));
    let mut other = Checkpoint::new(run(8), Payer::Nobody, vec![]);
    assert_eq!(first.keep(&mut other), Err(CheckpointError::OtherPlan));
    drop(first);
    assert!(Place::open(folder.path(), run(7)).is_ok());
    let nowhere = Place::open(&folder.path().join("no"), run(7));
    assert!(matches!(nowhere, Err(CheckpointError::Folder { .. })));
}

#[test]
fn a_half_written_file_is_never_read() {
    let folder = TempDir::new().expect("a folder");
    let place = Place::open(folder.path(), run(7)).expect("free");
    let mut own = at_home(&place, checkpoint());
    place.keep(&mut own).expect("writable");
    fs::write(place.path().with_extension("part"), b"half").expect("writable");
    assert_eq!(place.load(), Ok(Some(own.clone())));
    place.keep(&mut own).expect("over the half");
}

/// Every path in a folder.
fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let entries = entries.map(|entry| entry.expect("listed").path());
    let below = |path: PathBuf| match path.is_dir() {
        true => [vec![path.clone()], all(&path)].concat(),
        false => vec![path],
    };
    entries.flat_map(below).collect()
}

#[test]
fn a_folder_that_was_tried_is_as_it_was() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("there")).expect("writable");
    fs::write(folder.path().join("there").join("model"), b"old").expect("writable");
    fs::write(folder.path().join("file"), b"old").expect("writable");
    let before = all(folder.path());
    let tried = |name: &str| Place::rehearse(&folder.path().join(name));
    for name in ["", "there", "new", "there/new/deep"] {
        assert_eq!(tried(name), Ok(()), "{name}");
        assert_eq!(all(folder.path()), before, "{name}");
    }
    for name in ["file", "file/new", "there/model/new/deep"] {
        let refused = tried(name).expect_err("a file is no folder");
        assert_eq!(refused.code(), "out_not_written", "{name}");
        assert!(
            refused.to_string().contains("a file stands there"),
            "{refused}"
        );
        let made = Place::make(&folder.path().join(name), run(7)).err();
        assert_eq!(made, Some(refused), "the same words");
        assert_eq!(all(folder.path()), before, "{name}");
    }
    // Nothing that somebody else has put there is removed, whatever its name.
    let own = folder.path().join("there").join("whit.trial");
    fs::write(&own, b"mine").expect("writable");
    assert_eq!(tried("there"), Ok(()));
    assert_eq!(fs::read(&own).ok().as_deref(), Some(&b"mine"[..]));
    fs::remove_file(&own).expect("there");
    assert_eq!(all(folder.path()), before);
}
