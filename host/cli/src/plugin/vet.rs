//! `toolcrib plugin vet`, `sign`, `lock` and `verify`: what reviewers write and sign, and whether it holds (host/docs/locked.md).

use super::super::audit::duration;
use super::super::setup::{Setup, cannot, usage};
use super::super::{print, print_json};
use super::changes::{Change, changed, definitions, lines};
use super::open;
use ::policy::vetting::documents::{Document, Statement};
use base::dirs::replace;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign::{PublicKey, SecretKey, SecretKeyBox};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, SystemTime};
use toml_edit::{Array, ArrayOfTables, Datetime, DocumentMut, Item, Table, value};
use toolcrib::envelope::Failure;
use toolcrib::tools::manifest::Manifest;

#[derive(clap::Args)]
pub(in super::super) struct Vet {
    /// The component
    file: PathBuf,
    /// Its version, in your words
    #[arg(long)]
    version: String,
    /// The statement of the version before: what changed since is shown
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What the review found, such as source-read (repeatable)
    #[arg(long, value_name = "CRITERION")]
    criteria: Vec<String>,
    /// How long the statement counts, such as 365d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Duration,
    /// The most that it may read: below this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    read: Vec<PathBuf>,
    /// The most that it may write: below this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// The hosts that it may reach at most (repeatable)
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// It may run commands
    #[arg(long)]
    shell: bool,
    /// What else there is to say
    #[arg(long)]
    notes: Option<String>,
    /// Accept that it imports, offers or may do more than the version before
    #[arg(long)]
    widen: bool,
    /// Where to write the statement; default: NAME.vet.toml beside the component
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(in super::super) struct Sign {
    /// A statement, list or revocation
    file: PathBuf,
    /// Your secret key, as `minisign -G` makes it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Write FILE.NAME.minisig, so that several can sign; default: FILE.minisig
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(in super::super) struct Lock {
    /// The directory of components, each with its statement NAME.vet.toml
    directory: PathBuf,
    /// The list to write; one that is there is replaced by the next number
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The name of the list
    #[arg(long)]
    name: String,
    /// How long the list counts, such as 30d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    valid: Duration,
    /// A plugin without which nothing is served (repeatable)
    #[arg(long, value_name = "PLUGIN")]
    require: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn vet(setup: &Setup, arguments: &Vet) -> Result<ExitCode, Failure> {
    let component = open(setup, &arguments.file)?;
    let plugin = component.manifest().clone();
    let definitions = setup.host.same_definitions_of(component, &setup.context).await?;
    let before = arguments.from.as_deref().map(read_statement).transpose()?;
    let name = format!("{}.vet.toml", plugin.name());
    let output = arguments.output.clone().unwrap_or_else(|| arguments.file.with_file_name(name));
    let text = arguments.statement(&plugin, &definitions, before.as_ref())?;
    // What is written is read as a host will read it.
    let statement = Statement::read(text.as_bytes(), &output)
        .map_err(|reason| usage(format!("this statement could not be used: {reason}")))?;
    let changes = before.as_ref().map(|before| changes(before, &statement));
    let widens = changes.iter().flatten().any(|change| change.widens);
    let is_written = !widens || arguments.widen;
    let refusal = || {
        Failure::denied("not written: it would import, offer or may do more than the version before")
            .hint("look at the lines marked `widens`, then repeat with `--widen`")
    };
    if is_written {
        write(&output, &text)?;
    }
    if arguments.json {
        print_json(&json!({
            "name": plugin.name(),
            "sequence": statement.said.sequence,
            "changes": changes.map(|changes| changes.iter().map(Change::to_json).collect::<Vec<_>>()),
            "written": is_written.then_some(&output),
        }))?;
        return if is_written { Ok(ExitCode::SUCCESS) } else { Err(refusal()) };
    }
    print("definitions asked 4 times, at other times and with other random numbers: the same\n")?;
    if let (Some(before), Some(changes)) = (&before, &changes) {
        let lines = lines(changes);
        print(&format!("against sequence {} ({}):\n{lines}", before.said.sequence, before.said.version))?;
    }
    if !is_written {
        return Err(refusal());
    }
    print(&format!("wrote {}; sign it with `toolcrib plugin sign` or `minisign -S`\n", output.display()))
}

impl Vet {
    fn statement(&self, plugin: &Manifest, definitions: &str, before: Option<&Statement>) -> Result<String, Failure> {
        let now = SystemTime::now();
        let mut document = DocumentMut::new();
        let mut set = |key: &str, item: Item| _ = document.insert(key, item);
        set("toolcrib", value("vet/1"));
        set("name", value(plugin.name()));
        set("version", value(&self.version));
        set("sequence", value(number(before.map_or(1, |before| before.said.sequence + 1))?));
        set("sha256", value(plugin.sha256()));
        set("size", value(number(plugin.size)?));
        set("imports", list(sorted(&plugin.imports)));
        set("tools", list(sorted(&plugin.tools)));
        set("definitions_sha256", value(definitions));
        set("criteria", list(&self.criteria));
        set("issued", date(now)?);
        set("expires", date(now + self.expires)?);
        if let Some(before) = before {
            set("reviewed_from", value(number(before.said.sequence)?));
        }
        let widened = if self.widen { Some("accepted as wider than the version before (--widen)") } else { None };
        let notes: Vec<&str> = self.notes.as_deref().into_iter().chain(widened).collect();
        if !notes.is_empty() {
            set("notes", value(notes.join("; ")));
        }
        let mut ceiling = Table::new();
        if self.shell {
            ceiling.insert("shell", value(true));
        }
        let mut files = Table::new();
        for (key, directories) in [("read", &self.read), ("write", &self.write)] {
            if !directories.is_empty() {
                files.insert(key, list(paths(directories)?));
            }
        }
        if !files.is_empty() {
            ceiling.insert("files", Item::Table(files));
        }
        if !self.host.is_empty() {
            let mut http = Table::new();
            http.insert("hosts", list(&self.host));
            ceiling.insert("http", Item::Table(http));
        }
        if !ceiling.is_empty() {
            set("ceiling", Item::Table(ceiling));
        }
        Ok(document.to_string())
    }
}

fn changes(before: &Statement, now: &Statement) -> Vec<Change> {
    let (old, new) = (&before.said, &now.said);
    let imports = changed("import", &old.imports, &new.imports, true);
    let tools = changed("tool", &old.tools, &new.tools, true);
    let criteria = changed("criterion", &old.criteria, &new.criteria, false);
    let rights =
        now.wider_than(before).into_iter().map(|right| Change { what: format!("right + {right}"), widens: true });
    let definitions = definitions(Some(&old.definitions_sha256), &new.definitions_sha256);
    imports.into_iter().chain(tools).chain(criteria).chain(rights).chain(definitions).collect()
}

pub(super) fn sign(arguments: &Sign) -> Result<ExitCode, Failure> {
    let bytes = std::fs::read(&arguments.file).map_err(|error| cannot(&arguments.file, &error))?;
    let kind = Document::read(&bytes, &arguments.file)
        .map_err(|reason| usage(format!("`{}` cannot be signed: {reason}", arguments.file.display())))?;
    let key = secret(&arguments.key)?;
    let public = PublicKey::from_secret_key(&key).map_err(|error| cannot(&arguments.key, &error))?;
    let trusted = format!("toolcrib {}, signed {}", kind.name(), humantime::format_rfc3339_seconds(SystemTime::now()));
    let signature = minisign::sign(Some(&public), &key, Cursor::new(&bytes), Some(&trusted), None)
        .map_err(|error| cannot(&arguments.key, &error))?;
    let name = arguments.file.file_name().unwrap_or_default().to_string_lossy();
    let name = match &arguments.name {
        Some(signer) => format!("{name}.{signer}.minisig"),
        None => format!("{name}.minisig"),
    };
    let output = arguments.file.with_file_name(name);
    write(&output, &signature.into_string())?;
    if arguments.json {
        return print_json(&json!({ "kind": kind.name(), "written": output }));
    }
    print(&format!("wrote {}\n", output.display()))
}

/// A secret key; its password is asked for on the terminal if it has one.
fn secret(path: &Path) -> Result<SecretKey, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| cannot(path, &error))?;
    let not_a_key = || usage(format!("`{}` is no secret key of minisign", path.display()));
    let bytes = text.lines().nth(1).and_then(|line| STANDARD.decode(line.trim()).ok()).ok_or_else(not_a_key)?;
    // Keys without a password have no sum to be checked by where the packaged minisign made them.
    if bytes.get(2..4) == Some(&[0, 0]) {
        return SecretKey::from_bytes(&bytes).map_err(|_| not_a_key());
    }
    let key = SecretKeyBox::from_string(&text).and_then(|key| key.into_secret_key(None));
    key.map_err(|error| {
        // The library tells the two apart by its words alone.
        let hint = match error.to_string().contains("Wrong password") {
            true => "type the password that was set when `minisign -G` made the key",
            false => "the password of a key is asked for at a terminal",
        };
        cannot(path, &error).hint(hint)
    })
}

pub(super) fn lock(setup: &Setup, arguments: &Lock) -> Result<ExitCode, Failure> {
    let previous = match std::fs::read(&arguments.output) {
        Ok(bytes) => Document::read(&bytes, &arguments.output)
            .ok()
            .and_then(|document| document.sequence())
            .ok_or_else(|| usage(format!("`{}` is no list, and is not replaced", arguments.output.display())))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(cannot(&arguments.output, &error)),
    };
    let entries = std::fs::read_dir(&arguments.directory).map_err(|error| cannot(&arguments.directory, &error))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "wasm")).collect();
    files.sort();
    let (now, mut plugins, mut names) = (SystemTime::now(), ArrayOfTables::new(), BTreeSet::new());
    for file in &files {
        let component = open(setup, file)?;
        let plugin = component.manifest();
        let path = file.with_file_name(format!("{}.vet.toml", plugin.name()));
        let bytes = std::fs::read(&path).map_err(|error| cannot(&path, &error))?;
        let statement = read_statement(&path)?;
        if !statement.said.sha256.eq_ignore_ascii_case(plugin.sha256()) || statement.said.name != plugin.name() {
            return Err(usage(format!("`{}` is about something else than `{}`", path.display(), file.display()))
                .hint("write it anew with `toolcrib plugin vet`"));
        }
        let mut entry = Table::new();
        entry.insert("name", value(plugin.name()));
        entry.insert("sha256", value(plugin.sha256()));
        entry.insert("statement", value(Document::sha256(&bytes)));
        if arguments.require.iter().any(|name| name == plugin.name()) {
            entry.insert("mode", value("required"));
        }
        names.insert(plugin.name().to_owned());
        plugins.push(entry);
    }
    if let Some(name) = arguments.require.iter().find(|name| !names.contains(*name)) {
        return Err(usage(format!("`{}` is in no file of {}", name.escape_debug(), arguments.directory.display())));
    }
    let mut document = DocumentMut::new();
    document.insert("toolcrib", value("list/1"));
    document.insert("name", value(&arguments.name));
    document.insert("sequence", value(number(previous + 1)?));
    document.insert("issued", date(now)?);
    document.insert("valid_until", date(now + arguments.valid)?);
    if !plugins.is_empty() {
        document.insert("plugin", Item::ArrayOfTables(plugins));
    }
    write(&arguments.output, &document.to_string())?;
    if arguments.json {
        let (name, plugins) = (&arguments.name, &names);
        return print_json(
            &json!({ "list": name, "sequence": previous + 1, "plugins": plugins, "written": arguments.output }),
        );
    }
    let listed = names.into_iter().collect::<Vec<_>>().join(", ");
    print(&format!("wrote {}: list {} {}: {listed}\n", arguments.output.display(), arguments.name, previous + 1))
}

/// Says whether the policies in force admit a component, and by whose word.
pub(super) async fn verify(setup: &Setup, file: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let component = open(setup, file)?;
    let plugin = component.manifest().clone();
    let policy = setup.host.policy();
    if !policy.is_locked() {
        return Err(usage("no policy has a lock, so nothing decides").hint("name one with `--policy FILE`"));
    }
    let unbarred = policy.check_locks(&plugin)?;
    let definitions = setup.host.definitions_of(component, &setup.context).await?;
    policy.admit_definitions(&plugin, &definitions)?;
    let rows: Vec<_> = unbarred.vetted().collect();
    if as_json {
        let row = |vetted: &&std::sync::Arc<::policy::vetting::Vetted>| json!({ "version": vetted.statement.said.version, "sequence": vetted.statement.said.sequence, "signers": vetted.signers, "expires": vetted.expires() });
        return print_json(
            &json!({ "name": plugin.name(), "sha256": plugin.sha256(), "admitted": true, "statements": rows.iter().map(row).collect::<Vec<_>>() }),
        );
    }
    let mut text = format!("{} is admitted\n", plugin.name());
    for vetted in rows {
        let signers = vetted.signers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let said = &vetted.statement.said;
        text += &format!(
            "version {} (sequence {}), signed by {signers}; expires {}\n",
            said.version,
            said.sequence,
            vetted.expires()
        );
    }
    print(&text)
}

fn read_statement(path: &Path) -> Result<Statement, Failure> {
    let bytes = std::fs::read(path).map_err(|error| cannot(path, &error))?;
    Statement::read(&bytes, path).map_err(|reason| usage(format!("`{}`: {reason}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text.as_bytes()).map_err(|error| cannot(path, &error))
}

fn sorted(names: &[String]) -> Vec<String> {
    names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn paths(directories: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let path = |path: &PathBuf| {
        let text = path.to_str().filter(|_| path.is_absolute()).map(str::to_owned);
        text.ok_or_else(|| {
            usage(format!("`{}` is not a whole path: a statement is read on other machines", path.display()))
        })
    };
    directories.iter().map(path).collect()
}

fn list(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Item {
    value(texts.into_iter().map(|text| text.as_ref().to_owned()).collect::<Array>())
}

fn number(number: u64) -> Result<i64, Failure> {
    i64::try_from(number).map_err(|_| usage(format!("{number} is too large a number")))
}

fn date(time: SystemTime) -> Result<Item, Failure> {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    Datetime::from_str(&text).map(value).map_err(|error| usage(format!("{text}: {error}")))
}
