//! What was accepted of a server: what runs, and what it says of itself and of each tool, word for word. It is kept in a file beside the settings,
//! whose section names the digest of that; so whoever changes the file changes nothing.

use super::listing::Offered;
use super::{package, prompts, resources};
use base::capability::Capability;
use base::disk::OwnDir;
use base::text::names::is_name;
use base::text::sanitize;
use config::{BETWEEN, Limits, UpstreamSection};
use contract::definition::{Definition, Guidance, Tool};
use contract::dialect;
use contract::manifest::{Manifest, Origin, PluginId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of these files, beside the settings.
const DIRECTORY: &str = "upstream";
/// Bytes of a file.
const MOST_BYTES: u64 = 32 << 20;
/// Bytes of a description, where settings say less: two of fourteen servers in use have more than 4 KiB in one.
const DESCRIPTION_BYTES: u64 = 8 << 10;
/// Differences of one definition that are shown.
const MOST_DIFFERENCES: usize = 8;
/// Characters of a text that a difference shows.
const SHOWN: usize = 160;
/// Characters of the mark of the whole with which a name ends that was too long.
const MARK_CHARS: usize = 8;

/// What was accepted of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The version of the protocol that it spoke.
    pub protocol: String,
    /// How it calls itself, with its version.
    pub server: Value,
    /// What it says for models about itself as a whole.
    pub instructions: Option<String>,
    /// What was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Where it was instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The files of that and the packages in which they lie, by path, each with its digest.
    pub files: BTreeMap<PathBuf, String>,
    /// Its tools, by the names under which they are offered.
    pub tools: BTreeMap<String, AcceptedTool>,
}

/// A tool as it was accepted, or what is called as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTool {
    /// What settings call it: a tool as its server does.
    pub name: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "AcceptedKind::is_tool")]
    pub kind: AcceptedKind,
    /// All that it says of it.
    pub definition: Map<String, Value>,
}

/// What is called by a name of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcceptedKind {
    /// A tool of it.
    #[default]
    Tool,
    /// Words for a conversation that it has ready. A person asks for them, and models are not offered them.
    Prompt,
    /// The way to read its resources.
    Resources,
}

impl AcceptedKind {
    fn is_tool(&self) -> bool {
        *self == Self::Tool
    }
}

impl AcceptedTool {
    /// As a plugin would say it.
    ///
    /// # Errors
    ///
    /// What keeps it from being offered, as the rest of a sentence.
    pub fn definition(&self, offered_as: &str) -> Result<Definition, String> {
        let text = |key: &str| self.definition.get(key).and_then(Value::as_str).map(str::to_owned);
        let schema = |key: &str| self.definition.get(key).map(dialect::modern).transpose();
        let annotated = self.definition.get("annotations").and_then(|said| said.get("title")?.as_str());
        let nothing = String::new;
        let summary = match self.kind {
            AcceptedKind::Tool => text("description").unwrap_or_else(|| format!("Call `{}`.", self.name)),
            AcceptedKind::Prompt => text("description")
                .unwrap_or_else(|| format!("The prompt `{}` of this server.", prompts::name(&self.definition))),
            AcceptedKind::Resources => resources::summary(&self.definition),
        };
        Ok(Definition {
            name: offered_as.to_owned(),
            title: text("title").or_else(|| annotated.map(str::to_owned)),
            summary,
            guidance: Guidance {
                when_to_use: nothing(),
                when_not_to_use: nothing(),
                disambiguation: nothing(),
                examples: Vec::new(),
            },
            usage: None,
            input_schema: self.input_schema()?,
            output_schema: if self.kind.is_tool() { schema("outputSchema")? } else { None },
            events: Vec::new(),
            is_of_command: false,
        })
    }

    /// The schema of its arguments.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the rest of a sentence.
    pub fn input_schema(&self) -> Result<Value, String> {
        match self.kind {
            AcceptedKind::Tool => dialect::modern(self.definition.get("inputSchema").ok_or("has no input schema")?),
            AcceptedKind::Prompt => prompts::schema(&self.definition),
            AcceptedKind::Resources => Ok(resources::schema()),
        }
    }

    /// The name under which it is offered, without that of its server.
    pub(super) fn offered(&self) -> String {
        match self.kind {
            AcceptedKind::Tool => self.name.clone(),
            AcceptedKind::Prompt => prompts::offered(prompts::name(&self.definition)),
            AcceptedKind::Resources => resources::OFFERED.to_owned(),
        }
    }

    /// What the server says of whether it only reads. It proposes, and decides nothing.
    #[must_use]
    pub fn is_said_to_read(&self) -> bool {
        let hint = self.definition.get("annotations").and_then(|said| said.get("readOnlyHint"));
        match self.kind {
            AcceptedKind::Tool => hint.and_then(Value::as_bool).unwrap_or(false),
            // By the protocol.
            AcceptedKind::Prompt | AcceptedKind::Resources => true,
        }
    }
}

impl Accepted {
    /// What the server shows: the tools that its section offers. An error is the reason to refuse it.
    pub fn manifest(&self, name: &str, section: &UpstreamSection) -> Result<Manifest, String> {
        let said = serde_json::to_vec(&(name, section)).expect("a section is plain data");
        let declared = hex::encode(Sha256::digest(said));
        let origin = Origin::Upstream { command: section.place(), declared };
        let id = PluginId { name: name.to_owned(), sha256: section.accepted.clone(), origin };
        let offered = || self.tools.iter().filter(|(_, tool)| section.offers(&tool.name));
        let of_kind =
            |kind| offered().filter(move |(_, tool)| tool.kind == kind).map(|(offered_as, _)| offered_as.clone());
        let tools: Vec<String> = offered().map(|(offered_as, _)| offered_as.clone()).collect();
        if tools.is_empty() {
            return Err("it offers no tools".into());
        }
        if let Some(odd) = tools.iter().find(|tool| !is_name(tool)) {
            return Err(format!("`{odd}` cannot be the name of a tool"));
        }
        let functions = vec![(Capability::Upstream, "call".to_owned())];
        // Not held against the bounds of a plugin: a server may have many, and names that a person would take for the same are its own affair.
        let mut manifest = Manifest::new(id, vec![name.to_owned()], vec![Capability::Upstream], functions)?;
        (manifest.prompts, manifest.reader) =
            (of_kind(AcceptedKind::Prompt).collect(), of_kind(AcceptedKind::Resources).next());
        manifest.tools = tools;
        Ok(manifest)
    }

    /// What there is to accept of a server, by what it said.
    ///
    /// # Errors
    ///
    /// When a file of its command line cannot be read.
    pub(super) fn of(name: &str, section: &UpstreamSection, said: &Offered, limits: &Limits) -> io::Result<Self> {
        let most = usize::try_from(limits.upstream_name_chars).unwrap_or(usize::MAX);
        let tools = said.listed.tools.iter().map(|(offered, tool)| (offered_as(name, offered, most), tool.clone()));
        Ok(Self {
            protocol: said.protocol.clone(),
            server: said.server.clone(),
            instructions: said.instructions.clone(),
            command: section.command.clone(),
            url: section.url.clone(),
            files: package::digests(section)?,
            tools: tools.collect(),
        })
    }

    /// Takes out what cannot be offered: each tool by its server's name, with the reason as the rest of a sentence.
    pub(super) fn take_unfit(
        &mut self,
        name: &str,
        section: &UpstreamSection,
        limits: &Limits,
    ) -> Vec<(String, String)> {
        // All are looked at, whatever of them the section offers.
        let whole = UpstreamSection { tools: vec!["*".into()], ..section.clone() };
        let Ok(manifest) = self.manifest(name, &whole).map(Arc::new) else { return Vec::new() };
        let limits = Limits { description_bytes: limits.description_bytes.max(DESCRIPTION_BYTES), ..limits.clone() };
        let mut seen = BTreeSet::new();
        let mut fault = |offered_as: &str, tool: &AcceptedTool| {
            if !seen.insert(offered_as.to_ascii_lowercase()) {
                return Some("has the name of another one but for capital letters".to_owned());
            }
            let checked =
                tool.definition(offered_as).and_then(|said| Tool::new(said, manifest.clone(), &limits).map(drop));
            checked.err()
        };
        let tools = std::mem::take(&mut self.tools).into_iter();
        let (unfit, fit): (Vec<_>, Vec<_>) = tools
            .map(|(offered_as, tool)| (fault(&offered_as, &tool), offered_as, tool))
            .partition(|(fault, ..)| fault.is_some());
        self.tools = fit.into_iter().map(|(_, offered_as, tool)| (offered_as, tool)).collect();
        unfit.into_iter().filter_map(|(fault, _, tool)| Some((tool.name, fault?))).collect()
    }

    /// Reads what was accepted of a server; only bytes of this digest are.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn read(config: &Path, name: &str, sha256: &str) -> Result<Arc<Self>, String> {
        if sha256.is_empty() {
            return Err(format!(
                "nothing of it was accepted yet: `toolcrib upstream review {name}` shows what it offers"
            ));
        }
        let again = || format!("look at it with `toolcrib upstream review {name}`");
        let file = || OwnDir::open(config)?.below(DIRECTORY)?.file(file_name(name));
        let mut bytes = Vec::new();
        let read = file().and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| format!("what was accepted of it cannot be read: {error}; {}", again()))?;
        let found = hex::encode(Sha256::digest(&bytes));
        if !found.eq_ignore_ascii_case(sha256) {
            return Err(format!("the file of what was accepted of it is another one, {}; {}", &found[..12], again()));
        }
        let accepted = serde_json::from_slice(&bytes);
        accepted.map(Arc::new).map_err(|error| format!("what was accepted of it makes no sense: {error}; {}", again()))
    }

    /// Writes its file; returns the digest for the section.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep(&self, config: &Path, name: &str) -> io::Result<String> {
        let bytes = self.bytes();
        OwnDir::open(config)?.below(DIRECTORY)?.replace(&file_name(name), &bytes)?;
        Ok(hex::encode(Sha256::digest(&bytes)))
    }

    /// The digest of its file.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.bytes()))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("it is plain data");
        bytes.push(b'\n');
        bytes
    }

    /// Removes its file.
    ///
    /// # Errors
    ///
    /// When it is there, and cannot be removed.
    pub fn forget(config: &Path, name: &str) -> io::Result<()> {
        match OwnDir::open(config)?.below(DIRECTORY)?.remove(file_name(name).as_ref()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// What would be started now that is another thing than was accepted, a line each.
    #[must_use]
    pub fn changed_files(&self, section: &UpstreamSection) -> Vec<String> {
        let now = match package::digests(section) {
            Ok(now) => now,
            Err(error) => return vec![error.to_string()],
        };
        if self.url != section.url {
            return vec!["`url` of its section is another one than was accepted".to_owned()];
        }
        if self.command != section.command {
            return vec!["`command` of its section is another one than was accepted".to_owned()];
        }
        let all = self.files.keys().chain(now.keys()).collect::<BTreeSet<_>>();
        let changed = all.into_iter().filter(|path| self.files.get(*path) != now.get(*path));
        let said = |path: &PathBuf| {
            let shown = path.display();
            match (self.files.contains_key(path), now.contains_key(path), path.is_dir()) {
                (true, true, true) => format!("what lies in `{shown}` is not what was accepted"),
                (true, true, false) => format!("`{shown}` is another file than was accepted"),
                (false, ..) => format!("`{shown}` runs now, and was not part of what was accepted"),
                (true, false, _) => format!("`{shown}` was accepted, and does not run any more"),
            }
        };
        changed.map(said).collect()
    }
}

fn file_name(name: &str) -> String {
    format!("{name}.json")
}

/// The name under which a tool is offered: that of its server before its own, in the letters that names have, and in so many characters.
#[must_use]
pub fn offered_as(server: &str, tool: &str, most: usize) -> String {
    let whole = format!("{server}{BETWEEN}{tool}");
    if is_name(&whole) && whole.len() <= most {
        return whole;
    }
    let fit = |char: char| if is_name(char.encode_utf8(&mut [0; 4])) { char } else { '_' };
    let tool: String = tool.chars().map(fit).collect();
    let room = most.saturating_sub(MARK_CHARS + 1);
    // A long name of a server leaves half of the room to what tells its tools apart.
    let for_server = room.saturating_sub(BETWEEN.len() + tool.len().min(room / 2));
    let begin = server.chars().map(fit).take(for_server).chain(BETWEEN.chars()).chain(tool.chars()).take(room);
    let mark = hex::encode(Sha256::digest(&whole));
    format!("{}_{}", begin.collect::<String>(), &mark[..MARK_CHARS])
}

/// Where two things that were said differ, each as a path with what was there and what is, for people.
#[must_use]
pub fn differences(before: &Value, now: &Value) -> Vec<String> {
    let mut all = Vec::new();
    differ(String::new(), before, now, &mut all);
    if all.len() > MOST_DIFFERENCES {
        let more = all.len() - MOST_DIFFERENCES;
        all.truncate(MOST_DIFFERENCES);
        all.push(format!("and {more} more"));
    }
    all
}

fn differ(path: String, before: &Value, now: &Value, all: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            for key in keys {
                let path = format!("{path}/{key}");
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => differ(path, old, new, all),
                    (Some(old), None) => all.push(format!("{}: {} is gone", line(&path), shown(old))),
                    (None, Some(new)) => all.push(format!("{}: {} is new", line(&path), shown(new))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (place, (old, new)) in old.iter().zip(new).enumerate() {
                differ(format!("{path}/{place}"), old, new, all);
            }
        }
        (old, new) if old != new => all.push(format!("{}: {} is now {}", line(&path), shown(old), shown(new))),
        _ => {}
    }
}

fn line(path: &str) -> String {
    sanitize::visible_line(path).chars().take(SHOWN).collect()
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(SHOWN).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{more}", sanitize::visible_line(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_those_that_model_apis_take_and_stay_apart() {
        assert_eq!(offered_as("github", "search_issues", 48), "github__search_issues");
        assert_eq!(offered_as("x", "a-b", 48), "x__a-b");
        let names =
            ["a.b", "a/b", "a b", &"n".repeat(100), &"n".repeat(101), "ä"].map(|tool| offered_as("x", tool, 48));
        assert!(names.iter().all(|name| is_name(name)), "{names:?}");
        let apart: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len());
    }

    #[test]
    fn names_leave_room_for_what_clients_put_before_them() {
        let server = "s".repeat(48);
        let tools: Vec<String> = (0..50).map(|number| format!("search_all_the_open_issues_{number}")).collect();
        for most in [32, 48, 64] {
            let names: BTreeSet<String> = tools.iter().map(|tool| offered_as(&server, tool, most)).collect();
            assert_eq!(names.len(), tools.len(), "{names:?}");
            for name in &names {
                assert!(is_name(name) && name.len() <= most, "{name}");
                assert!(name.starts_with("ss") && name.contains("__search_al"), "{name}");
            }
        }
        assert_eq!("mcp__toolcrib__".len() + offered_as(&server, &tools[0], 48).len(), 63);
        // Rules and conversations name it, so it stays.
        assert_eq!(offered_as(&server, "look", 48), "sssssssssssssssssssssssssssssssss__look_41519b51");
    }

    #[test]
    fn a_difference_names_its_path_and_the_order_of_keys_is_none() {
        let before = json!({ "a": { "b": ["x", "y"] }, "c": 1 });
        assert!(differences(&before, &json!({ "c": 1, "a": { "b": ["x", "y"] } })).is_empty());
        assert_eq!(differences(&before, &json!({ "a": { "b": ["x", "z"] }, "c": 1 })), [r#"/a/b/1: "y" is now "z""#]);
        assert_eq!(
            differences(&before, &json!({ "a": { "b": ["x", "y"] }, "d": 2 })),
            ["/c: 1 is gone", "/d: 2 is new"]
        );
    }
}
