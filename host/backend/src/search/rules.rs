//! Which names a walk leaves out, as ripgrep decides it: globs, types, ignore files, hidden names.
//!
//! Ignore files are read as all files of the walk are, so one that the plugin may not read does not count. As git, it follows no link to one.

use super::Which;
use base::envelope::Failure;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use std::path::Path;
use std::sync::Arc;

/// The names by which a directory is known to have rules.
pub const RGIGNORE: &str = ".rgignore";
pub const IGNORE: &str = ".ignore";
pub const GITIGNORE: &str = ".gitignore";
pub const GIT: &str = ".git";
pub const JJ: &str = ".jj";
/// Where a repository has rules of its own.
pub const INFO: &str = "info";
pub const EXCLUDE: &str = "exclude";

/// The rules that hold in all directories.
pub struct Rules {
    globs: Override,
    types: Types,
    hidden: bool,
    ignored: bool,
    /// The user's own ignore file.
    user: Gitignore,
}

/// The rules of a directory, with those of the directories above it that have any.
#[derive(Default)]
pub struct Level {
    above: Option<Arc<Level>>,
    rgignore: Gitignores,
    ignore: Gitignores,
    git: Gitignores,
    exclude: Gitignores,
    /// A repository begins here.
    has_git: bool,
    /// Here or above.
    in_git: bool,
}

/// None where there is no rule.
type Gitignores = Option<Gitignore>;

/// What a directory has of rules, by the files that were read there.
#[derive(Default)]
pub struct Texts {
    pub rgignore: Option<Vec<u8>>,
    pub ignore: Option<Vec<u8>>,
    pub git: Option<Vec<u8>>,
    pub exclude: Option<Vec<u8>>,
    pub has_git: bool,
}

impl Rules {
    /// Globs count from `root`. `user` is the user's own ignore file, which counts from where commands begin.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` for a glob or a type that is none.
    pub fn new(which: &Which, root: &Path, user: Option<(&Path, &[u8])>) -> Result<Self, Failure> {
        which.check()?;
        let mut globs = OverrideBuilder::new(root);
        for glob in &which.globs {
            globs.add(glob).map_err(|error| {
                Failure::invalid(format!("`{glob}` is not a valid glob: {error}"))
                    .hint("write it as in a `.gitignore` file: `*.rs`, `src/**`, `!*.min.js`")
            })?;
        }
        let globs = globs.build().map_err(|error| Failure::invalid(format!("the globs are too large: {error}")))?;
        let mut types = TypesBuilder::new();
        if !which.types.is_empty() {
            types.add_defaults();
        }
        for name in &which.types {
            match name.strip_prefix('!') {
                Some(name) => types.negate(name),
                None => types.select(name),
            };
        }
        let types = types.build().map_err(|error| {
            Failure::invalid(format!("{error}"))
                .hint("use a type of `rg --type-list`, such as `rust`, `py`, `js`, or a glob")
        })?;
        let user = user.and_then(|(from, text)| parsed(from, text)).unwrap_or_else(Gitignore::empty);
        Ok(Self { globs, types, hidden: which.hidden, ignored: which.ignored, user })
    }

    /// Ignore files count.
    pub fn reads_ignore_files(&self) -> bool {
        !self.ignored
    }

    /// Whether the walk leaves a path out. `path` is absolute, and the level that of its directory.
    pub fn skips(&self, level: Option<&Level>, path: &Path, name: &[u8], is_directory: bool) -> bool {
        match self.globs.matched(path, is_directory) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
        let ignored = if self.ignored { Match::None } else { self.ignored(level, path, is_directory) };
        if ignored.is_ignore() {
            return true;
        }
        let types = self.types.matched(path, is_directory);
        let is_named = ignored.is_whitelist() || types.is_whitelist();
        types.is_ignore() || !self.hidden && !is_named && name.starts_with(b".")
    }

    /// What the ignore files say. The nearest counts; those of one kind come before those of the next.
    fn ignored(&self, level: Option<&Level>, path: &Path, is_directory: bool) -> Match<()> {
        let Some(level) = level else { return Match::None };
        let said = |rules: &Gitignores| match rules {
            Some(rules) => rules.matched(path, is_directory).map(|_| ()),
            None => Match::None,
        };
        let nearest = |said: &dyn Fn(&Level) -> Match<()>| {
            level.upwards().map(said).find(|said| !said.is_none()).unwrap_or(Match::None)
        };
        // Rules of git end with their repository.
        let in_repository = |said: &dyn Fn(&Level) -> Match<()>| {
            if !level.in_git {
                return Match::None;
            }
            let mut is_within = true;
            let within = level.upwards().take_while(|level| std::mem::replace(&mut is_within, !level.has_git));
            within.map(said).find(|said| !said.is_none()).unwrap_or(Match::None)
        };
        nearest(&|level| said(&level.rgignore))
            .or(nearest(&|level| said(&level.ignore)))
            .or(in_repository(&|level| said(&level.git)))
            .or(in_repository(&|level| said(&level.exclude)))
            .or(if level.in_git { self.user.matched(path, is_directory).map(|_| ()) } else { Match::None })
    }
}

impl Level {
    /// The rules of a directory below another; that of the other where it has none.
    pub fn below(above: Option<Arc<Self>>, directory: &Path, texts: &Texts) -> Option<Arc<Self>> {
        let rules = |text: &Option<Vec<u8>>| text.as_ref().and_then(|text| parsed(directory, text));
        let level = Self {
            rgignore: rules(&texts.rgignore),
            ignore: rules(&texts.ignore),
            git: rules(&texts.git),
            exclude: rules(&texts.exclude),
            has_git: texts.has_git,
            in_git: texts.has_git || above.as_ref().is_some_and(|above| above.in_git),
            above: None,
        };
        let has_rules =
            [&level.rgignore, &level.ignore, &level.git, &level.exclude].iter().any(|rules| rules.is_some());
        if !has_rules && !level.has_git {
            return above;
        }
        Some(Arc::new(Self { above, ..level }))
    }

    /// This and those above it.
    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.above.as_deref())
    }
}

/// The rules of an ignore file that counts from a directory. A line that is no rule is passed over, as by git.
fn parsed(directory: &Path, text: &[u8]) -> Gitignores {
    let mut builder = GitignoreBuilder::new(directory);
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(line) = std::str::from_utf8(line) {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// Where settings of git say that the user's own ignore file is (gitignore(5), core.excludesFile).
pub fn excludes_file(settings: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(settings);
    text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"').trim();
        (key.trim().eq_ignore_ascii_case("excludesfile") && !value.is_empty()).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(above: Option<Arc<Level>>, directory: &str, git: &str, ignore: &str, has_git: bool) -> Option<Arc<Level>> {
        let text = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
        let texts = Texts { git: text(git), ignore: text(ignore), has_git, ..Texts::default() };
        Level::below(above, Path::new(directory), &texts)
    }

    fn skipped(which: &Which, level: Option<&Level>, path: &str) -> bool {
        let rules = Rules::new(which, Path::new("/r"), Some((Path::new("/r"), b"*.swp"))).expect("rules");
        let path = Path::new(path);
        rules.skips(level, path, path.file_name().expect("a name").as_encoded_bytes(), false)
    }

    #[test]
    fn the_nearest_rule_of_the_repository_counts() {
        let outer = level(None, "/r", "*.log\n/out/x\n", "", true);
        let inner = level(outer.clone(), "/r/in", "!keep.log\n", "", false);
        let other = level(inner.clone(), "/r/in/other", "*.tmp", "", true);
        let which = Which::default();
        for (at, path, expected) in [
            (&outer, "/r/a.log", true),
            (&outer, "/r/out/x", true),
            (&inner, "/r/in/out/x", false),
            (&inner, "/r/in/keep.log", false),
            (&inner, "/r/in/a.log", true),
            (&other, "/r/in/other/a.log", false),
            (&other, "/r/in/other/a.tmp", true),
            (&inner, "/r/in/a.swp", true),
            (&inner, "/r/in/.hidden", true),
        ] {
            assert_eq!(skipped(&which, at.as_deref(), path), expected, "{path}");
        }
        let outside = level(None, "/r", "*.log", "*.bak", false);
        assert!(!skipped(&which, outside.as_deref(), "/r/a.log") && skipped(&which, outside.as_deref(), "/r/a.bak"));
        assert!(!skipped(&which, outside.as_deref(), "/r/a.swp"));
    }

    #[test]
    fn globs_count_before_all_others() {
        let outer = level(None, "/r", "*.log", "", true);
        let which = |globs: &[&str], types: &[&str]| Which {
            globs: globs.iter().map(ToString::to_string).collect(),
            types: types.iter().map(ToString::to_string).collect(),
            ..Which::default()
        };
        assert!(!skipped(&which(&["*.log"], &[]), outer.as_deref(), "/r/.a.log"));
        assert!(skipped(&which(&["*.log"], &[]), outer.as_deref(), "/r/a.rs"));
        assert!(skipped(&which(&["!a.rs"], &[]), outer.as_deref(), "/r/a.rs"));
        assert!(!skipped(&which(&[], &["rust"]), outer.as_deref(), "/r/a.rs"));
        assert!(skipped(&which(&[], &["!rust"]), outer.as_deref(), "/r/a.rs"));
        let refused = |which: &Which| Rules::new(which, Path::new("/r"), None).err().expect("it is refused").message;
        assert!(refused(&which(&["a{"], &[])).starts_with("`a{` is not a valid glob"));
        assert!(refused(&which(&[], &["klingon"])).contains("klingon"));
    }

    #[test]
    fn settings_of_git_name_the_users_own_file() {
        let named = |text: &str| excludes_file(text.as_bytes());
        assert_eq!(named("[core]\n\texcludesFile = \"~/.gitignore_global\"\n").as_deref(), Some("~/.gitignore_global"));
        assert_eq!(named("[core]\n\teditor = vi\n"), None);
    }
}
