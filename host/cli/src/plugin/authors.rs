//! What authors are given, as it was when this program was built: the contract, the SDK, and a template a language.

include!(concat!(env!("OUT_DIR"), "/authors.rs"));

/// Files that would mean something to a tool if they had their own name among the sources.
const RENAMED: [(&str, &str); 2] = [("gitignore", ".gitignore"), ("cargo-config.toml", ".cargo/config.toml")];

/// The files of a template, as they are named where they are written.
pub(super) fn template(lang: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let directory = format!("{lang}/");
    TEMPLATES.iter().filter_map(move |(path, text)| {
        let path = path.strip_prefix(&directory)?;
        Some((RENAMED.iter().find(|(name, _)| *name == path).map_or(path, |(_, name)| name), *text))
    })
}
