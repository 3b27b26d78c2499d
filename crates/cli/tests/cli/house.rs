//! Who uses whom, as ARCHITECTURE draws it.

use super::*;

fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The crates of this platform; those of others may not have been downloaded.
fn metadata() -> Value {
    let version = cargo(&["-vV"]);
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("cargo names its host");
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--offline",
        "--locked",
        "--filter-platform",
        host,
    ];
    serde_json::from_str(&cargo(&arguments)).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("no list {key}"))
}

/// The names of the packages that a package uses outside of its tests.
fn used_by(metadata: &Value, package: &str) -> BTreeSet<String> {
    let name_of = |id: &Value| {
        let found = list(metadata, "packages")
            .iter()
            .find(|package| package["id"] == *id)
            .expect("listed");
        found["name"].as_str().expect("text").to_owned()
    };
    let nodes = list(&metadata["resolve"], "nodes");
    let node = nodes
        .iter()
        .find(|node| name_of(&node["id"]) == package)
        .expect("in the graph");
    let shipped = |used: &&Value| {
        list(used, "dep_kinds")
            .iter()
            .any(|kind| kind["kind"] != "dev")
    };
    list(node, "deps")
        .iter()
        .filter(shipped)
        .map(|used| name_of(&used["pkg"]))
        .collect()
}

#[test]
fn shipped_binary_does_not_link_the_testkit() {
    let metadata = metadata();
    let (mut seen, mut open) = (BTreeSet::new(), vec!["whit-cli".to_owned()]);
    while let Some(package) = open.pop() {
        if seen.insert(package.clone()) {
            open.extend(used_by(&metadata, &package));
        }
    }
    assert!(
        seen.contains("whit-mechanism") && seen.contains("getrandom"),
        "{seen:?}"
    );
    assert!(!seen.contains("whit-testkit"), "{seen:?}");
    // The same from the other end: the names of linked crates stand in the binary.
    let binary = fs::read(env!("CARGO_BIN_EXE_whit")).expect("it was built");
    let holds = |name: &str| {
        binary
            .windows(name.len())
            .any(|window| window == name.as_bytes())
    };
    assert!(holds("whit_mechanism") && !holds("whit_testkit"));
}

/// The picture in ARCHITECTURE: who may use whom.
#[test]
fn crates_use_each_other_as_drawn() {
    let metadata = metadata();
    let drawn: [(&str, &[&str]); 12] = [
        ("whit-core", &[]),
        ("whit-mechanism", &["whit-core"]),
        ("whit-accounting", &["whit-core"]),
        ("whit-audit", &["whit-core"]),
        ("whit-ledger", &["whit-accounting", "whit-core"]),
        (
            "whit-sql",
            &["whit-accounting", "whit-core", "whit-mechanism"],
        ),
        (
            "whit-learn",
            &[
                "whit-accounting",
                "whit-audit",
                "whit-core",
                "whit-mechanism",
            ],
        ),
        ("whit-testkit", &["whit-core"]),
        (
            "whit",
            &[
                "whit-accounting",
                "whit-core",
                "whit-learn",
                "whit-ledger",
                "whit-mechanism",
                "whit-sql",
            ],
        ),
        ("whit-trial", &["whit-audit", "whit-core", "whit-mechanism"]),
        (
            "whit-cli",
            &["whit", "whit-audit", "whit-learn", "whit-trial"],
        ),
        (
            "whit-experiments",
            &["whit-audit", "whit-core", "whit-learn", "whit-mechanism"],
        ),
    ];
    let members: BTreeSet<String> = {
        let ids = list(&metadata, "workspace_members");
        let packages = list(&metadata, "packages")
            .iter()
            .filter(|package| ids.contains(&package["id"]));
        packages
            .map(|package| package["name"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(
        members,
        drawn.iter().map(|(name, _)| (*name).to_owned()).collect(),
        "a crate is not in the picture"
    );
    for (package, may_use) in drawn {
        let used = used_by(&metadata, package);
        let beyond: Vec<_> = used
            .intersection(&members)
            .filter(|used| !may_use.contains(&used.as_str()))
            .collect();
        assert!(
            beyond.is_empty(),
            "{package} uses {beyond:?}, which is not drawn"
        );
    }
    assert!(used_by(&metadata, "whit-cli").contains("whit"));
    assert_eq!(used_by(&metadata, "whit").intersection(&members).count(), 6);
}
