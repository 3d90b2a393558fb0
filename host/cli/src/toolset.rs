//! `toolcrib toolset import`: what an Agentfile of OpenOtters says of tools, as settings for a person to read. Nothing is changed by it but the
//! files that `--files` names.

mod agentfile;

use super::Global;
use super::print;
use super::program::{Found, on_path};
use super::setup::{Setup, usage, working_directory};
use ::config::is_agent_variable;
use ::policy::host_reads::HostReads;
use agentfile::{Fault, Instruction, Word};
use backend::sealed::program_sha256;
use base::text::names::{is_name, nearest};
use base::text::sanitize;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toml::{Table, Value};
use toolcrib::envelope::Failure;
use toolcrib::tools::manifest::Manifest;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Print what an Agentfile says of tools as settings, and what of it is left out
    Import {
        /// The Agentfile
        file: PathBuf,
        /// Write its texts (contexts, usage pages) into this directory, which the settings then name
        #[arg(long, value_name = "DIR")]
        files: Option<PathBuf>,
    },
}

/// The families of the tools that OpenOtters' runtime has itself, each tool a capability.
const CAPABILITIES: [&str; 4] = ["fleet", "introspect", "jobs", "notes"];
/// Variables that the runtime sets itself.
const RESERVED: [&str; 7] =
    ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR", "LANG", "OTTERS_AGENT_ROOT"];
/// Where a program is looked for that is not on PATH.
const PROGRAMS: &str = "/usr/local/bin";
/// Bytes of an Agentfile, and of each of its texts.
const MOST_BYTES: u64 = 4 << 20;

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments::Import { file, files } = arguments;
    let setup = Setup::quiet(global).await?;
    let shown = file.display();
    let here = working_directory()?;
    let policy = setup.host.policy();
    let reads = policy.host_reads();
    let text = reads.text(&here.join(file), MOST_BYTES);
    let text = text.map_err(|unread| usage(format!("`{shown}` cannot be read: {unread}")))?;
    let beside = here.join(file).parent().map_or_else(|| here.clone(), Path::to_owned);
    let mut import = Import { beside, files: files.as_ref().map(|files| here.join(files)), ..Import::default() };
    let read = agentfile::read(&text).and_then(|all| all.into_iter().try_for_each(|one| import.take(one, &setup)));
    read.map_err(|Fault { line, message }| usage(format!("{shown}:{line}: {message}")))?;
    let written = import.write(reads)?;
    written.iter().for_each(|file| super::notice(&format!("wrote {}", file.display())));
    print(&sanitize::visible(&format!(
        "# From {shown}. Read it, and add to your settings what you need.\n{}",
        import.settings()
    )))
}

/// What was read so far.
#[derive(Default)]
struct Import {
    /// The directory of the Agentfile.
    beside: PathBuf,
    /// Where texts are written, if they are.
    files: Option<PathBuf>,
    name: Option<String>,
    programs: BTreeMap<String, Program>,
    tools: Vec<String>,
    contexts: BTreeMap<String, (PathBuf, String)>,
    /// By name, with what it is for.
    environment: BTreeMap<String, String>,
    /// Texts to write.
    texts: BTreeMap<PathBuf, String>,
    /// What is not among the settings, and why.
    left_out: Vec<String>,
}

struct Program {
    image: String,
    about: Option<String>,
    usage: Option<PathBuf>,
}

impl Import {
    fn take(&mut self, Instruction { line, keyword, words, body }: Instruction, setup: &Setup) -> Result<(), Fault> {
        let fault = |message: String| Err(Fault::new(line, message));
        let told: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        match (keyword.as_str(), told.as_slice()) {
            ("FROM", ["scratch"]) | ("ARG", [_, ..]) => {}
            ("FROM", [parent]) => self.leave_out(format!("FROM {parent}: what that says has to be imported by itself")),
            ("NAME", [name]) if is_name(name) => self.name = Some((*name).to_owned()),
            ("NAME", [name]) => return fault(format!("`{}` cannot be the name of a toolset", name.escape_debug())),
            ("BIN", [name, image, ..]) => {
                let about = description(&words, 2).map_err(|message| Fault::new(line, message))?;
                return self.bin(name, image, about, body, setup).map_err(|message| Fault::new(line, message));
            }
            ("CAPABILITY", [name]) => return self.capability(name, setup).map_err(|message| Fault::new(line, message)),
            ("ENV", [assignment, ..]) => {
                let about = description(&words, 1).map_err(|message| Fault::new(line, message))?;
                return self.variable(assignment, about).map_err(|message| Fault::new(line, message));
            }
            ("CONTEXT", [name, rest @ ..]) => {
                let path = rest.iter().find_map(|word| word.strip_prefix("file://"));
                let about = words.iter().skip(1).find(|word| word.is_quoted).map(|word| word.text.clone());
                return self.context(name, path, about, body).map_err(|message| Fault::new(line, message));
            }
            ("ADD", [from, to, ..]) => {
                self.leave_out(format!("ADD {from} {to}: files are where they are; copy it there"))
            }
            ("RUNTIME" | "MODEL", [_, ..]) | ("EXEC" | "CONFIG", [_, ..]) => {
                self.leave_out(format!("{keyword} {}: the embedder's, which has the agent's loop", told.join(" ")));
            }
            ("LABEL", [label, ..]) => self.leave_out(format!("LABEL {label}: says nothing of tools")),
            (
                "FROM" | "NAME" | "ARG" | "BIN" | "CAPABILITY" | "ENV" | "CONTEXT" | "ADD" | "RUNTIME" | "MODEL"
                | "EXEC" | "CONFIG" | "LABEL",
                _,
            ) => return fault(format!("`{keyword}` has too few words, or too many")),
            _ => return fault(format!("`{}` is no instruction of an Agentfile", keyword.escape_debug())),
        }
        Ok(())
    }

    fn leave_out(&mut self, what: String) {
        self.left_out.push(sanitize::line(&what).into_owned());
    }

    fn bin(
        &mut self,
        name: &str,
        image: &str,
        about: Option<String>,
        usage: Option<String>,
        setup: &Setup,
    ) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("`{}` cannot be the name of a tool", name.escape_debug()));
        }
        if setup.context.tools.plugin_of(name).is_ok_and(|plugin| plugin.id.is_builtin()) {
            self.leave_out(format!("BIN {name}: Toolcrib has a tool of that name, which the toolset gets"));
            self.tool(name);
            return Ok(());
        }
        let usage =
            usage.and_then(|text| self.text(&format!("{name}.usage.md"), text, &format!("the usage of BIN {name}")));
        self.programs.insert(name.to_owned(), Program { image: image.to_owned(), about, usage });
        self.tool(name);
        Ok(())
    }

    /// A tool of the runtime's own, by either way of writing it: Toolcrib has each under the same name.
    fn capability(&mut self, name: &str, setup: &Setup) -> Result<(), String> {
        let tool = name.replace('-', "_");
        let tools = &setup.context.tools;
        let is_capability = |plugin: &Manifest| plugin.family.is_some_and(|family| CAPABILITIES.contains(&family));
        match tools.plugin_of(&tool) {
            Ok(plugin) if is_capability(plugin) => self.tool(&tool),
            Ok(_) | Err(_) => {
                let of_runtime = tools.plugins().chain(tools.barred()).filter(|plugin| is_capability(plugin));
                let meant = nearest(&tool, of_runtime.flat_map(|plugin| &plugin.tools).map(String::as_str))
                    .map(|known| format!(", did you mean `{known}`?"))
                    .unwrap_or_default();
                return Err(format!("there is no capability `{}`{meant}", name.escape_debug()));
            }
        }
        Ok(())
    }

    fn variable(&mut self, assignment: &str, about: Option<String>) -> Result<(), String> {
        let (name, _) = assignment.split_once('=').ok_or("an ENV has the form `KEY=value`")?;
        let is_upper = |char: char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_';
        if name.is_empty() || !name.chars().all(is_upper) || name.starts_with(|char: char| char.is_ascii_digit()) {
            return Err(format!("`{}` is not a name of an ENV: it is made of A-Z, 0-9 and `_`", name.escape_debug()));
        }
        if RESERVED.contains(&name) || !is_agent_variable(name) {
            return Err(format!("`{name}` is not an ENV for an agent: it is reserved, or may carry a key"));
        }
        self.leave_out(format!("ENV {name}: its value; start Toolcrib with it"));
        self.environment.insert(name.to_owned(), about.unwrap_or_else(|| "Set by the Agentfile.".into()));
        Ok(())
    }

    fn context(
        &mut self,
        name: &str,
        path: Option<&str>,
        about: Option<String>,
        text: Option<String>,
    ) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("`{}` cannot be the name of a context", name.escape_debug()));
        }
        let file = match (path, text) {
            (Some(path), None) => Some(self.beside.join(path)),
            (None, Some(text)) => self.text(&format!("{name}.md"), text, &format!("the text of CONTEXT {name}")),
            (Some(_), Some(_)) | (None, None) => return Err(format!("`{name}` needs a `file://` or a text")),
        };
        if let Some(file) = file {
            self.contexts.insert(name.to_owned(), (file, about.unwrap_or_else(|| name.to_owned())));
        }
        Ok(())
    }

    /// Where a text will be; none where none is written.
    fn text(&mut self, file: &str, text: String, what: &str) -> Option<PathBuf> {
        match &self.files {
            Some(directory) => {
                let file = directory.join(file);
                self.texts.insert(file.clone(), text);
                Some(file)
            }
            None => {
                self.leave_out(format!("{what}: `--files DIR` writes it to a file"));
                None
            }
        }
    }

    fn tool(&mut self, name: &str) {
        if !self.tools.iter().any(|tool| tool == name) {
            self.tools.push(name.to_owned());
        }
    }

    /// Writes the texts. None takes the place of a file that says something else, or lies behind a link that commands could have made: the
    /// settings name these files, and such are not read.
    fn write(&self, reads: &HostReads) -> Result<Vec<PathBuf>, Failure> {
        let mut written = Vec::new();
        for (file, text) in &self.texts {
            let failed = |why: &dyn std::fmt::Display| usage(format!("`{}` cannot be written: {why}", file.display()));
            match reads.text(file, MOST_BYTES) {
                Ok(there) if there == *text => continue,
                Ok(_) => return Err(failed(&"it is there, and says something else")),
                Err(unread) if unread.is_missing() => {}
                Err(unread) => return Err(failed(&unread)),
            }
            let (directory, name) = (file.parent().unwrap_or(file), file.file_name().unwrap_or_default());
            fs::create_dir_all(directory).map_err(|error| failed(&error))?;
            let directory = reads.directory(directory).map_err(|unread| failed(&unread))?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o666)).map_err(io::Error::from);
            let made = made.and_then(|made| fs::File::from(made).write_all(text.as_bytes()));
            made.map_err(|error| failed(&error))?;
            written.push(file.clone());
        }
        Ok(written)
    }

    /// The lines to add.
    fn settings(&self) -> String {
        let mut text = String::new();
        for left_out in &self.left_out {
            text += &format!("# Left out: {left_out}.\n");
        }
        let environment: Vec<&str> = self.environment.keys().map(String::as_str).collect();
        for (name, Program { image, about, usage }) in &self.programs {
            let path = on_path(name).unwrap_or_else(|| Path::new(PROGRAMS).join(name));
            let sha256 = program_sha256(&path).ok();
            let first = match sha256 {
                Some(_) => format!("see whether this is what {image} has"),
                None => {
                    format!("put what {image} has there, or elsewhere; `toolcrib program inspect FILE` says its sha256")
                }
            };
            let found = Found { name: name.clone(), path, sha256, about: about.clone(), first: Some(first) };
            text += &format!("\n{}", found.section());
            let mut more = Table::new();
            usage.iter().for_each(|usage| _ = more.insert("usage".into(), usage.display().to_string().into()));
            if !environment.is_empty() {
                more.insert("environment".into(), environment.clone().into());
            }
            text += &more.to_string();
        }
        let mut toolset = Table::new();
        toolset.insert("tools".into(), self.tools.clone().into());
        if !self.environment.is_empty() {
            let environment = self.environment.iter().map(|(name, about)| (name.clone(), about.clone().into()));
            toolset.insert("environment".into(), Value::Table(environment.collect()));
        }
        if !self.contexts.is_empty() {
            let context = |(name, (file, about)): (&String, &(PathBuf, String))| {
                let fields = [("file", file.display().to_string()), ("about", about.clone())];
                (
                    name.clone(),
                    Value::Table(fields.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect()),
                )
            };
            toolset.insert("context".into(), Value::Table(self.contexts.iter().map(context).collect()));
        }
        let name = self.name.clone().unwrap_or_else(|| "agent".into());
        let named: Table = [(name, Value::Table(toolset))].into_iter().collect();
        let whole: Table = [("toolset".to_owned(), Value::Table(named))].into_iter().collect();
        text + "\n" + &whole.to_string()
    }
}

/// The description behind so many words, which is quoted.
fn description(words: &[Word], after: usize) -> Result<Option<String>, String> {
    match &words[after.min(words.len())..] {
        [] => Ok(None),
        [word] if word.is_quoted => Ok(Some(word.text.clone())),
        [word, ..] => Err(format!("`{}` is not expected here: a description is in quotes", word.text.escape_debug())),
    }
}
