//! From tools to a list of definitions, with a report of what the list does not say as the tools do.

use super::schema::{Portable, portable};
use super::strict::Dialect;
use super::{Declared, Format, Note, Shape};
use base::capability::Effect;
use base::envelope::{Failure, Kind};
use config::Allowlist;
use contract::definition::{Definition, Tool};
use contract::folded::{composition, folded};
use contract::manifest::Manifest;
use policy::Grants;
use serde_json::Value;

/// Whether a provider forces its model to keep to the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// If the provider makes it the default and no part of the schema is lost
    #[default]
    Auto,
    /// For every tool; an error if a schema cannot be expressed in strict mode
    On,
    /// Never
    Off,
}

impl Strictness {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Auto, Self::On, Self::Off];

    /// What it is called where one is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// A tool that models are offered.
pub struct Offer<'t> {
    /// What its plugin says of it.
    pub definition: &'t Definition,
    /// The description that a model reads.
    pub description: &'t str,
    /// What it can do.
    pub effects: Effects,
    /// Its results fit the schema of its result: one that does not is never handed on.
    pub keeps_its_word: bool,
}

/// What a tool can do, as its imports and grants have it; what a plugin says of itself does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// It can change something.
    pub writes: bool,
    /// It can reach beyond this host's files.
    pub reaches_out: bool,
}

/// A list of definitions.
pub struct Definitions {
    /// The list, as the API accepts it; `None` if there are no tools: a request must then omit it.
    pub json: Option<Value>,
    /// What the list does not say as the tools do, a line each.
    pub report: Vec<String>,
}

impl<'t> Offer<'t> {
    /// A tool with what its plugin was granted.
    #[must_use]
    pub fn new(tool: &'t Tool, grants: &Grants) -> Self {
        let effects = Effects::of(tool.plugin(), grants);
        // Of a server of others a result is handed on as it is, and clients throw away what does not fit a schema that was told.
        let keeps_its_word = !tool.plugin().id.is_upstream();
        Self { definition: tool.definition(), description: tool.description(), effects, keeps_its_word }
    }
}

impl Effects {
    fn of(plugin: &Manifest, grants: &Grants) -> Self {
        let all = plugin.capabilities.iter().map(|capability| {
            let (writes, reaches_out) = match capability.effect() {
                Effect::None => (false, false),
                Effect::Keeps => (true, false),
                Effect::Asks => (false, true),
                Effect::Acts => (true, true),
                Effect::ActsBy(function) => {
                    let acts = !plugin.id.is_builtin() || plugin.calls(*capability, function);
                    (acts, acts)
                }
                Effect::Writes => (can_write(plugin, grants), false),
                Effect::Sends => (can_send(grants), true),
            };
            Self { writes, reaches_out }
        });
        let nothing = Self { writes: false, reaches_out: false };
        all.fold(nothing, |one, other| Self {
            writes: one.writes || other.writes,
            reaches_out: one.reaches_out || other.reaches_out,
        })
    }
}

/// Of a plugin of others only the grant counts: the calls in its code are what it shows.
fn can_write(plugin: &Manifest, grants: &Grants) -> bool {
    let is_granted = grants.files().is_ok_and(|files| !files.writable().contains(&Allowlist::NOTHING));
    is_granted && (!plugin.id.is_builtin() || plugin.writes_files())
}

/// A method that is granted is more than a question.
fn can_send(grants: &Grants) -> bool {
    grants.http().is_ok_and(|http| http.methods().iter().any(|method| !["GET", "HEAD", "OPTIONS"].contains(method)))
}

/// What becomes of the schemas.
enum Mode {
    Plain,
    WhereNothingIsLost(&'static Dialect),
    Always(&'static Dialect),
}

struct Writer {
    shape: &'static dyn Shape,
    mode: Mode,
    report: Vec<String>,
    impossible: Vec<String>,
}

pub(super) fn write(
    format: Format,
    mut offers: Vec<Offer<'_>>,
    strictness: Strictness,
) -> Result<Definitions, Failure> {
    let shape = format.shape();
    let mode = match (strictness, shape.dialect()) {
        (Strictness::On, Some(dialect)) => Mode::Always(dialect),
        (Strictness::Auto, Some(dialect)) if shape.is_strict_by_default() => Mode::WhereNothingIsLost(dialect),
        (Strictness::On, None) => {
            let message = format!("`{}` has no strict mode", format.name());
            return Err(Failure::new(Kind::Usage, message).hint("omit `--strict`"));
        }
        _ => Mode::Plain,
    };
    let mut writer = Writer { shape, mode, report: Vec::new(), impossible: Vec::new() };
    offers.sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
    let tools: Vec<Value> = offers.iter().filter_map(|offer| writer.tool(offer)).collect();
    if writer.impossible.is_empty() {
        let is_left_out = tools.is_empty() && !shape.has_empty_list();
        if is_left_out {
            writer.report.push("no tool can be called: omit the list of tools from the request".into());
        }
        return Ok(Definitions { json: (!is_left_out).then(|| shape.list(tools)), report: writer.report });
    }
    let why = writer.impossible.join("; ");
    Err(Failure::new(Kind::Usage, format!("the strict mode of `{}` cannot express {why}", format.name()))
        .hint("omit `--strict on`, or ask for the other tools by name"))
}

impl Writer {
    fn tool(&mut self, offer: &Offer<'_>) -> Option<Value> {
        let name = &offer.definition.name;
        if let Some(why) = self.shape.refuses_name(name) {
            self.report.push(format!("`{name}` is omitted: {why}"));
            return None;
        }
        let chars = offer.description.chars().count();
        if chars > self.shape.description_chars() {
            let most = self.shape.description_chars();
            self.report.push(format!(
                "`{name}`: its description has {chars} characters, and some servers of this API refuse more than {most}"
            ));
        }
        let (input, is_strict) = self.input(offer);
        let output = self.output(offer);
        Some(self.shape.tool(Declared { offer, input, output, is_strict }))
    }

    fn input(&mut self, offer: &Offer<'_>) -> (Value, bool) {
        let (name, original) = (&offer.definition.name, &offer.definition.input_schema);
        let Portable { schema, notes, is_inlined } = portable(original);
        self.note(name, "", &notes);
        let (dialect, must_be) = match self.mode {
            Mode::Plain => return (self.plain(name, &schema), false),
            Mode::WhereNothingIsLost(dialect) => (dialect, false),
            Mode::Always(dialect) => (dialect, true),
        };
        let mut strict = dialect.say(&schema, original);
        if !is_inlined {
            strict.impossible.push(Note::new("", "references that cannot be inlined"));
        }
        if must_be {
            self.note(name, "", &strict.lost);
            self.impossible.extend(strict.impossible.iter().map(|note| format!("`{name}`: {note}")));
            return (strict.schema, true);
        }
        if strict.lost.is_empty() && strict.impossible.is_empty() {
            return (strict.schema, true);
        }
        self.note(name, " is not strict", &strict.lost);
        self.note(name, " is not strict", &strict.impossible);
        (self.plain(name, &schema), false)
    }

    /// A schema as an API takes it that is not strict.
    fn plain(&mut self, name: &str, schema: &Value) -> Value {
        let keywords: Vec<String> = composition(schema).iter().map(|keyword| format!("`{keyword}`")).collect();
        if !keywords.is_empty() {
            let note = Note::new("", format!("{} at the top are folded into its properties", keywords.join(", ")));
            self.note(name, "", &[note]);
        }
        folded(schema).into_owned()
    }

    fn output(&mut self, offer: &Offer<'_>) -> Option<Value> {
        let is_told = self.shape.has_output_schema() && offer.keeps_its_word && !offer.definition.is_of_command;
        let schema = offer.definition.output_schema.as_ref().filter(|_| is_told)?;
        let Portable { schema, notes, .. } = portable(schema);
        let name = &offer.definition.name;
        if schema["type"] == "string" {
            // It is read as it is, and is nothing for a program to take apart.
            return None;
        }
        if schema["type"] != "object" {
            self.report.push(format!("`{name}`: its output schema is dropped: its type is not `object`"));
            return None;
        }
        self.note(name, ", in its output", &notes);
        Some(schema)
    }

    fn note(&mut self, name: &str, how: &str, notes: &[Note]) {
        self.report.extend(notes.iter().map(|note| format!("`{name}`{how}: {note}")));
    }
}
