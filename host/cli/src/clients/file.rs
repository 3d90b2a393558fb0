//! The files of clients: read within bounds, changed as a text, and written whole or not at all. A link stays one, and a file that is changed is
//! kept as it was beside it.

use super::super::setup::{cannot, usage};
use super::edit::Step;
use super::json::{JSONC, said};
use super::{json, table, yaml};
use base::paths::canonical;
use jsonc_parser::errors::ParseError;
use jsonc_parser::parse_to_serde_value;
use serde_json::Value;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;

/// Bytes of a file.
const MOST_BYTES: u64 = 4 << 20;
/// Files that keep one file as it was.
const MOST_BACKUPS: usize = 100;
const MARK: char = '\u{feff}';
/// The permission of its owner to write a file.
const WRITABLE: u32 = 0o200;

/// A file's text; none if the file is missing. Links are followed: people keep their settings elsewhere.
pub(in super::super) fn text(file: &Path) -> Result<Option<String>, Failure> {
    let text = bytes(file)?.map(|bytes| decoded(file, bytes)).transpose()?;
    Ok(text.map(|text| text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text)))
}

/// A file's bytes; none if the file is missing.
pub(super) fn bytes(file: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let unread = |error: &dyn std::fmt::Display| usage(format!("`{}` cannot be read: {error}", file.display()));
    match file.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unread(&error)),
        // A pipe would be waited for.
        Ok(found) if !found.is_file() => return Err(unread(&"it is not a file")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| unread(&error))?;
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unread(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unread(&format!("it is longer than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(Some(bytes))
}

fn decoded(file: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|_| usage(format!("`{}` cannot be read: it is not UTF-8", file.display())))
}

/// Returns what a file says. An error names the line, and shows nothing of it.
pub(in super::super) fn parsed(file: &Path, text: &str) -> Result<Value, Failure> {
    let broken = |line: usize, why: &dyn std::fmt::Display| usage(format!("`{}`, line {line}: {why}", file.display()));
    match Format::of(file) {
        Format::Toml => {
            let table = toml::from_str::<toml::Table>(text).map_err(|error| {
                let at = error.span().map_or(0, |span| span.start);
                broken(text[..at.min(text.len())].matches('\n').count() + 1, &error.message())
            })?;
            serde_json::to_value(table).map_err(|error| broken(1, &error))
        }
        Format::Yaml => yaml::parsed(text).map_err(|(line, why)| broken(line, &why)),
        // An empty file, with which some clients begin, is `null`.
        Format::Json => {
            parse_to_serde_value(text, &JSONC).map_err(|error: ParseError| broken(error.line_display(), &said(&error)))
        }
    }
}

/// How a file is written; its name tells.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Json,
    Toml,
    Yaml,
}

impl Format {
    fn of(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            Some(_) | None => Self::Json,
        }
    }
}

/// Returns whether a file is TOML.
pub(in super::super) fn is_toml(file: &Path) -> bool {
    Format::of(file) == Format::Toml
}

/// A file that is to be changed.
pub(super) struct Found {
    /// As it is named.
    pub(super) file: PathBuf,
    /// Where it lies.
    pub(super) target: PathBuf,
    /// None if it is missing.
    pub(super) bytes: Option<Vec<u8>>,
    text: String,
    pub(super) value: Value,
}

impl Found {
    /// Reads a file, whether it is there or not.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is not valid, or is not this user's to write.
    pub(super) fn open(file: &Path) -> Result<Self, Failure> {
        let bytes = bytes(file)?;
        match file.metadata() {
            Ok(metadata) => writable(file, &metadata)?,
            Err(_) if file.symlink_metadata().is_ok() => {
                return Err(usage(format!("`{}` is a link to a file that is missing", file.display()))
                    .hint("make that file, or remove the link"));
            }
            Err(_) => {}
        }
        let text = bytes.clone().map(|bytes| decoded(file, bytes)).transpose()?.unwrap_or_default();
        let value = parsed(file, text.strip_prefix(MARK).unwrap_or(&text))?;
        Ok(Self { file: file.to_owned(), target: canonical(file), bytes, text, value })
    }

    /// Returns the text after some steps, which were checked against the value.
    ///
    /// # Errors
    ///
    /// If the text would say anything else than the steps make of its value.
    pub(super) fn changed(&self, steps: &[Step]) -> Result<String, Failure> {
        let (mark, text) = match self.text.strip_prefix(MARK) {
            Some(text) => (MARK.to_string(), text),
            None => (String::new(), self.text.as_str()),
        };
        let is_crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
        let plain = if is_crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
        let after = match Format::of(&self.file) {
            Format::Json => json::changed(&plain, steps),
            Format::Toml => table::changed(&plain, steps),
            Format::Yaml => yaml::changed(&plain, steps),
        };
        let after = after.and_then(|after| if self.says(&after, steps) { Ok(after) } else { Err(UNSURE.to_owned()) });
        let after = after.map_err(|why| {
            let by_hand: Vec<String> = steps.iter().map(by_hand).collect();
            usage(format!("`{}` cannot be changed: {why}", self.file.display()))
                .hint(format!("write this by hand: {}", by_hand.join("; ")))
        })?;
        Ok(mark + &if is_crlf { after.replace('\n', "\r\n") } else { after })
    }

    /// Whether a text says what the steps make of the value, and nothing else.
    fn says(&self, after: &str, steps: &[Step]) -> bool {
        let mut wanted = self.value.clone();
        steps.iter().for_each(|step| _ = step.make(&mut wanted));
        parsed(&self.file, after).is_ok_and(|said| said == wanted)
    }

    /// Replaces the file, if it is still as it was read.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        self.unchanged()?;
        base::dirs::replace(&self.target, text.as_bytes()).map_err(|error| cannot(&self.file, &error))
    }

    /// An error if the file was changed since it was read.
    pub(super) fn unchanged(&self) -> Result<(), Failure> {
        match bytes(&self.file)? == self.bytes {
            true => Ok(()),
            false => Err(usage(format!("`{}` was changed in the meantime", self.file.display()))
                .hint("repeat the command, which shows it as it is now")),
        }
    }
}

const UNSURE: &str = "it is written in a way that this program does not change safely";

fn by_hand(step: &Step) -> String {
    let keys = step.keys().join(".");
    match step {
        Step::Set(_, value) => format!("`{keys}` = `{value}`"),
        Step::Add(_, item) => format!("`{item}` in `{keys}`"),
        Step::Remove(_) => format!("no `{keys}`"),
        Step::Take(_, item) => format!("no `{item}` in `{keys}`"),
    }
}

fn writable(file: &Path, found: &Metadata) -> Result<(), Failure> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(usage(format!("`{}` belongs to another user", file.display()))
            .hint("run this command as the user whose client it is"));
    }
    if found.permissions().mode() & WRITABLE == 0 {
        return Err(usage(format!("`{}` is read-only", file.display()))
            .hint(format!("`chmod u+w '{}'` makes it writable", file.display())));
    }
    Ok(())
}

/// Copies a file beside it, under a name that nothing has: its own with `suffix`, and a number if that is taken.
pub(in super::super) fn keep(file: &Path, suffix: &str) -> io::Result<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mode = file.metadata()?.permissions();
    let names = (1..=MOST_BACKUPS).map(|number| match number {
        1 => format!("{name}{suffix}"),
        number => format!("{name}{suffix}-{number}"),
    });
    for backup in names.map(|name| file.with_file_name(name)) {
        match File::options().write(true).create_new(true).mode(0o600).open(&backup) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(mut copy) => {
                io::copy(&mut File::open(file)?, &mut copy)?;
                copy.set_permissions(mode)?;
                copy.sync_data()?;
                return Ok(backup);
            }
        }
    }
    Err(io::Error::other(format!("{MOST_BACKUPS} files ending in `{suffix}` are beside it: remove some")))
}
