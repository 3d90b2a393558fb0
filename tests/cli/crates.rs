//! What the crates of the host depend on: walls that are facts of `Cargo.toml`, and no others.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The crates of the host, each with those that it depends on. A new edge is a decision, and is made here.
#[rustfmt::skip]
const EDGES: &[(&str, &str)] = &[
    ("audit", "base chained_log config contract"),
    ("backend", "base config file_access git leaks"),
    ("base", ""),
    ("browser", "backend base config egress leaks policy secrets"),
    ("builtins", "base"),
    ("chained_log", "base config"),
    ("cli", "audit backend base builtins config core egress file_access guest policy secrets serve store tmux undo upstream"),
    ("command", "base config"),
    ("config", "base"),
    ("contract", "base config"),
    ("core", "audit backend base browser config contract egress embedder embeddings engine formats guest kept_output leaks oci policy secrets store tmux undo upstream"),
    ("egress", "backend base config keys leaks policy"),
    ("embedder", "base policy"),
    ("embeddings", "backend base config egress policy secrets"),
    ("engine", "backend base config"),
    ("file_access", "base config"),
    ("formats", "base config contract policy"),
    ("git", "base file_access"),
    ("guest", "audit backend base browser command config contract egress embedder engine file_access kept_output leaks mail policy secrets store tmux undo"),
    ("kept_output", "backend base"),
    ("keys", "backend base leaks"),
    ("leaks", "base"),
    ("mail", "base config egress leaks policy secrets"),
    ("oci", "base config"),
    ("policy", "audit backend base chained_log command config contract file_access git kept_output keys leaks secrets vetting"),
    ("search", "base contract"),
    ("secrets", "backend base config leaks"),
    ("serve", "base config core search upstream"),
    ("store", "base config embeddings policy"),
    ("tmux", "backend base config policy"),
    ("undo", "backend base"),
    ("upstream", "audit backend base config contract egress leaks policy secrets"),
    ("vetting", "base config contract"),
];

/// What leads out of this machine, starts or stores something, or is a whole protocol, and the crates that may use it.
#[rustfmt::skip]
const WALLS: &[(&str, &str)] = &[
    // Who reaches the network.
    ("reqwest", "egress"), ("hickory-resolver", "egress"), ("tokio-rustls", "egress"), ("openssh", "backend"),
    ("hyper", "egress guest serve"), ("hyper-util", "egress serve"), ("rmcp", "serve"),
    // Who makes stores of guests, and knows their values.
    ("wasmtime", "contract engine guest"), ("wasmtime-wasi", "guest"), ("wasmtime-wasi-http", "guest"),
    // Who keeps rows: the store in a file, the search in memory.
    ("rusqlite", "search store"),
    // Where effects land.
    ("cap-std", "backend"), ("grep-searcher", "backend"), ("ignore", "backend"), ("landlock", "backend"), ("gix-odb", "git"), ("tmux_interface", "tmux"),
    ("mail-parser", "mail"), ("brush-parser", "command"), ("clap", "cli"),
];

/// The dependencies of the host's crates, without those of tests: of each, the crates that have it.
#[expect(clippy::disallowed_methods, reason = "a test starts cargo")]
fn dependencies() -> (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let said = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"))
        .output()
        .expect("cargo starts");
    let said: Value = serde_json::from_slice(&said.stdout).expect("metadata is JSON");
    let packages: Vec<(&str, &Value)> = said["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
            let directory = manifest.parent().expect("a directory");
            let is_ours = directory.parent().is_some_and(|above| above.ends_with("host"));
            is_ours.then(|| (directory.file_name().and_then(|name| name.to_str()).expect("a name"), package))
        })
        .collect();
    let named = |name: &str| {
        let ours = packages.iter().find(|(_, package)| package["name"] == name);
        ours.map_or(name, |(directory, _)| directory).to_owned()
    };
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (directory, package) in &packages {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["kind"].is_null() {
                let name = named(dependency["name"].as_str().expect("a name"));
                all.entry(name).or_default().insert((*directory).to_owned());
            }
        }
    }
    (packages.iter().map(|(directory, _)| (*directory).to_owned()).collect(), all)
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn each_crate_of_the_host_depends_on_what_the_table_says() {
    let (crates, all) = dependencies();
    assert_eq!(crates, EDGES.iter().map(|(name, _)| (*name).to_owned()).collect(), "the crates of the table");
    for (name, on) in EDGES {
        let found = all.iter().filter(|(_, who)| who.contains(*name)).map(|(dependency, _)| dependency.clone());
        assert_eq!(
            found.filter(|dependency| crates.contains(dependency)).collect::<BTreeSet<_>>(),
            words(on),
            "{name}"
        );
    }
}

#[test]
fn what_leads_out_or_stores_is_used_by_named_crates_alone() {
    let (_, all) = dependencies();
    for (dependency, crates) in WALLS {
        assert_eq!(all.get(*dependency), Some(&words(crates)), "{dependency}");
    }
}
