//! `toolcrib program`: the lines that declare a program. People write them: nothing here changes settings.

use super::setup::{usage, working_directory};
use super::{print, print_json};
use backend::sealed::program_sha256;
use base::text::names::is_name;
use base::text::sanitize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toml::Table;
use toolcrib::envelope::Failure;

/// What images of programs say of themselves, by the names that OpenOtters has for it.
const ANNOTATION: &str = "vnd.openotters.bin.";
/// Characters of what a program is about.
const ABOUT_CHARS: usize = 500;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Print the section that declares a program, for you to add to your settings
    Inspect {
        /// The program's file, or the directory of an OCI image with `index.json` whose annotations describe it
        path: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What there is to know of a program.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// None where the file is not there.
    pub(super) sha256: Option<String>,
    pub(super) about: Option<String>,
    /// What the user has to do first.
    pub(super) first: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments::Inspect { path, json } = arguments;
    let found = if path.is_dir() { of_image(path)? } else { of_file(path)? };
    if *json {
        let Found { name, path, sha256, about, first } = found;
        return print_json(&json!({ "name": name, "path": path, "sha256": sha256, "about": about, "first": first }));
    }
    print(&sanitize::visible(&found.section()))
}

fn of_file(path: &Path) -> Result<Found, Failure> {
    let refused = |why: &dyn std::fmt::Display| usage(format!("`{}` cannot be declared: {why}", path.display()));
    let whole = working_directory()?.join(path);
    let sha256 = program_sha256(&whole)
        .map_err(|error| refused(&error).hint("give the path of a program's file, such as /usr/bin/jq"))?;
    let name = whole.file_stem().and_then(|stem| stem.to_str()).filter(|name| is_name(name));
    let name = name.ok_or_else(|| {
        refused(&"its name cannot be that of a tool").hint("a tool's name has 1 to 64 of A-Z, a-z, 0-9, `_`, `-`")
    })?;
    Ok(Found { name: name.to_owned(), path: whole, sha256: Some(sha256), about: None, first: None })
}

/// What the annotations of an image say, in the layout of OCI.
fn of_image(directory: &Path) -> Result<Found, Failure> {
    let refused = |why: String| {
        usage(format!("`{}` is not the image of a program: {why}", directory.display()))
            .hint("it is a directory with the layout of OCI, as `skopeo copy docker://IMAGE oci:DIRECTORY` makes one")
    };
    let json = |path: &Path| -> Result<Value, Failure> {
        let text = fs::read(path).map_err(|error| refused(format!("`{}`: {error}", path.display())))?;
        serde_json::from_slice(&text).map_err(|error| refused(format!("`{}`: {error}", path.display())))
    };
    let index = json(&directory.join("index.json"))?;
    let digest = index["manifests"][0]["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    let is_digest = |digest: &&str| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digest =
        digest.filter(is_digest).ok_or_else(|| refused("`index.json` names no manifest by its sha256".into()))?;
    let manifest = json(&directory.join("blobs/sha256").join(digest))?;
    let said = |key: &str| {
        let text = manifest["annotations"][format!("{ANNOTATION}{key}")].as_str()?.trim();
        (!text.is_empty()).then(|| sanitize::line(text).into_owned())
    };
    let name = said("name").filter(|name| is_name(name));
    let name =
        name.ok_or_else(|| refused(format!("the annotation `{ANNOTATION}name` is missing, or no name of a tool")))?;
    // The annotation names its directory.
    let inside = format!("{}/{name}", said("path").unwrap_or_default().trim_end_matches('/'));
    let page = said("usage").unwrap_or_else(|| "/USAGE.md".into());
    let path = PathBuf::from("/usr/local/bin").join(&name);
    let first = format!(
        "put `{inside}` of the image there, or elsewhere, and its usage page, if it has one, from `{page}`; \
         `toolcrib program inspect FILE` then says its sha256"
    );
    Ok(Found { sha256: program_sha256(&path).ok(), name, path, about: said("description"), first: Some(first) })
}

impl Found {
    /// The lines to add.
    pub(super) fn section(&self) -> String {
        let mut table = Table::new();
        table.insert("path".into(), self.path.display().to_string().into());
        let about = self.about.clone().unwrap_or_else(|| format!("What {} is for, in a sentence.", self.name));
        table.insert("about".into(), about.chars().take(ABOUT_CHARS).collect::<String>().into());
        let sha256 = match &self.sha256 {
            Some(sha256) => format!("sha256 = \"{sha256}\""),
            None => "# sha256 = \"…\"".into(),
        };
        let lines = format!("path = {}\n{sha256}\nabout = {}\n", table["path"], table["about"]);
        let first = self.first.as_ref().map(|first| format!("# First {first}.\n")).unwrap_or_default();
        format!("{first}[program.{}]\n{lines}", self.name)
    }
}

/// The file of a program on PATH.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files =
        std::env::split_paths(&path).filter(|directory| directory.is_absolute()).map(|directory| directory.join(name));
    files.find(|file| file.is_file())
}
