//! A ledger that cannot be written: no answer, no charge, and a word why.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use super::*;

const CATALOG: &str = r#"
[dataset]
id = "kept"
[budget]
epsilon = 1.0
[defaults]
epsilon = 0.25
groups_per_unit = 1
rows_per_group = 1
[table.t]
source = "t.csv"
unit = "u"
"#;

/// Who may do anything may also write what is read-only: then it is done as somebody who may not.
const NOBODY: u32 = 65_534;

/// The program, for an ordinary user.
fn program_of_a_user(folder: &Path) -> Command {
    let rooted = fs::metadata(folder).expect("a folder").uid() == 0;
    if !rooted {
        return program();
    }
    // Where it was built may be closed to others.
    let copy = folder.join("program");
    if !copy.exists() {
        let built = env!("CARGO_BIN_EXE_whit");
        fs::hard_link(built, &copy)
            .or_else(|_| fs::copy(built, &copy).map(drop))
            .expect("a copy of the program");
    }
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY);
    command
}

fn query(mut command: Command, folder: &Path, sql: &str) -> Run {
    command.args(["query", sql]).current_dir(folder);
    finish(command, b"")
}

#[test]
fn a_ledger_that_cannot_be_written_answers_nothing() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("data");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("whit.toml"), CATALOG).expect("a catalog");
    fs::write(folder.join("t.csv"), format!("u,x\n{CANARY},1\nb,2\n")).expect("rows");
    let first = query(program(), &folder, "SELECT COUNT(*) FROM t");
    assert_eq!(first.code, 0, "{}", first.stderr);
    let kept = |name: &str| fs::read(folder.join(name)).expect("it is there");
    let before = kept("whit.ledger");

    let user = || program_of_a_user(outer.path());
    fs::set_permissions(outer.path(), Permissions::from_mode(0o755)).expect("open");
    // First where nothing can be made beside it, then where it could.
    for mode in [0o555, 0o777] {
        for name in ["whit.ledger", "whit.ledger.mark"] {
            let path = folder.join(name);
            fs::set_permissions(path, Permissions::from_mode(0o444)).expect("closed");
        }
        fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("closed");
        let run = query(user(), &folder, "SELECT COUNT(x) FROM t");
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{mode:o}");
        assert!(run.stderr.contains("ledger"), "{}", run.stderr);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
        assert!(!run.stderr.contains(CANARY), "{}", run.stderr);
        assert_eq!(kept("whit.ledger"), before, "{mode:o}");
    }
    // Writable again, it goes on where it was.
    for name in ["whit.ledger", "whit.ledger.mark"] {
        let path = folder.join(name);
        fs::set_permissions(path, Permissions::from_mode(0o644)).expect("open");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("open");
    let last = query(program(), &folder, "SELECT COUNT(x) FROM t");
    assert_eq!(last.code, 0, "{}", last.stderr);
    assert!(last.stdout.contains("0.5 left"), "{}", last.stdout);
}
