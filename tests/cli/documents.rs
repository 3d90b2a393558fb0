//! The documents: README.md is short, and links lead to files that exist.

use std::fs;
use std::path::{Path, PathBuf};

/// What somebody reads who has never heard of Toolcrib.
const README_BYTES: usize = 8192;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// README.md, and the pages beside what they describe.
fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut directories = vec![root.clone(), root.join("host/docs"), root.join("sdk"), root.join("wit")];
    directories.extend(entries(&root.join("tests")).into_iter().filter(|path| path.is_dir()));
    let files = directories.iter().flat_map(|directory| entries(directory));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The paths that links and pictures of a page name, without those of blocks of code.
fn linked_paths(page: &str) -> Vec<&str> {
    let prose = page.split("```").step_by(2);
    let targets = prose.flat_map(|text| text.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    let paths = targets.filter(|target| !target.contains("://")).filter_map(|target| target.split('#').next());
    paths.filter(|path| !path.is_empty()).collect()
}

#[test]
fn readme_has_at_most_8_kib() {
    let bytes = read(&root().join("README.md")).len();
    assert!(bytes <= README_BYTES, "README.md has {bytes} bytes (limit: {README_BYTES}): move details to host/docs/");
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let documents = documents();
    for name in ["README.md", "host/docs/policy.md", "tests/adversarial/README.md", "wit/README.md"] {
        assert!(documents.contains(&root().join(name)), "{name} was not found");
    }
    let mut broken = Vec::new();
    for document in &documents {
        let page = read(document);
        let directory = document.parent().expect("a document is in a directory");
        let missing = linked_paths(&page).into_iter().filter(|path| !directory.join(path).exists());
        broken.extend(missing.map(|path| format!("{}: `{path}`", document.display())));
    }
    assert!(broken.is_empty(), "links to files that do not exist:\n{}", broken.join("\n"));
}
