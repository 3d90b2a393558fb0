//! Values of variables and headers, as a section has them: secrets by their names, what refers to the user's environment not copied.

use super::super::super::setup::usage;
use super::clients::Piece;
use super::draft::Draft;
use super::looks;
use super::sections::Secret;
use ::config::SecretSection;
use secrets::{MOST_BYTES, check_value};
use std::path::Path;
use toolcrib::envelope::Failure;

/// A secret that a section is to have.
struct Wanted<'t> {
    /// The variable or header that has it.
    owner: &'t str,
    /// The name that it should have.
    preferred: &'t str,
    value: Option<&'t str>,
    is_of_environment: bool,
}

impl Draft<'_> {
    /// Refuses a text that refers to a variable: where it stands, only what is written down can.
    pub(super) fn check_plain(&self, what: &str, text: &str) -> Result<(), Failure> {
        let pieces = self.entry.client.pieces(text, false);
        let reference = pieces.iter().find_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Variable { name, .. } => Some((*name).to_owned()),
            Piece::Input(id) => Some((*id).to_owned()),
            Piece::Other(whole) => Some((*whole).to_owned()),
        });
        let Some(reference) = reference else { return Ok(()) };
        let why = format!("its {what} refers to `{}`, and variables are not expanded", reference.escape_debug());
        Err(usage(why).hint("write what it stands for into the file of the client, or add the server by hand"))
    }

    /// The text of a variable or a header as a section has it; none where it refers to what is not known.
    pub(super) fn template(&mut self, owner: &str, text: &str, is_variable: bool) -> Result<Option<String>, Failure> {
        let entry = self.entry;
        let pieces = entry.client.pieces(text, is_variable);
        if let [Piece::Text(_)] | [] = pieces.as_slice() {
            return self.literal(owner, text).map(Some);
        }
        let mut whole = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) if is_mixed(owner, text) => {
                    return Err(usage(format!(
                        "`{}` mixes what looks like a secret with a variable",
                        owner.escape_debug()
                    )));
                }
                Piece::Text(text) => whole += text,
                Piece::Variable { name, default } => match self.reference(owner, name, default)? {
                    Some(text) => whole += &text,
                    None => return Ok(None),
                },
                Piece::Input(id) => match self.input(owner, id)? {
                    Some(text) => whole += &text,
                    None => return Ok(None),
                },
                Piece::Other(reference) => {
                    self.say_unset(owner, reference);
                    return Ok(None);
                }
            }
        }
        Ok(Some(whole))
    }

    /// A text that is meant as it is.
    fn literal(&mut self, owner: &str, text: &str) -> Result<String, Failure> {
        if !looks::is_secret(owner, text) {
            return Ok(text.to_owned());
        }
        let scheme = text.split_once(' ').map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
        let (begin, value) = scheme.map_or(("", text), |scheme| text.split_at(scheme.len() + 1));
        let name =
            self.secret(&Wanted { owner, preferred: owner, value: Some(value.trim()), is_of_environment: false })?;
        Ok(format!("{begin}${{secret:{name}}}"))
    }

    /// A variable of the user's environment: a secret if it looks like one, and otherwise not copied.
    pub(super) fn reference(
        &mut self,
        owner: &str,
        variable: &str,
        default: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let set = self.world.environment.iter().find(|(name, value)| name == variable && !value.is_empty());
        let set = set.map(|(_, value)| value.as_str());
        let value = set.or(default);
        let names = [owner, variable];
        let is_secret = match value {
            Some(value) => names.iter().any(|name| looks::is_secret(name, value)),
            None => names.into_iter().any(looks::is_secret_name),
        };
        match (is_secret, default) {
            (true, _) => {
                let wanted = Wanted { owner, preferred: variable, value, is_of_environment: set.is_some() };
                self.secret(&wanted).map(|name| Some(format!("${{secret:{name}}}")))
            }
            (false, Some(default)) => {
                self.notes.push(format!("`{owner}` has its default: `{variable}` of your environment is not copied"));
                Ok(Some(default.to_owned()))
            }
            (false, None) => {
                self.say_unset(owner, variable);
                Ok(None)
            }
        }
    }

    /// What the client would ask its user for.
    fn input(&mut self, owner: &str, id: &str) -> Result<Option<String>, Failure> {
        let is_password = self.entry.inputs.get(id).copied().unwrap_or(false);
        if is_password || [owner, id].into_iter().any(looks::is_secret_name) {
            return self
                .secret(&Wanted { owner, preferred: owner, value: None, is_of_environment: false })
                .map(|name| Some(format!("${{secret:{name}}}")));
        }
        self.say_unset(owner, id);
        Ok(None)
    }

    fn say_unset(&mut self, owner: &str, reference: &str) {
        self.notes.push(format!(
            "`{}` refers to `{}`, which is not copied: set it in its section if the server needs it",
            owner.escape_debug(),
            reference.escape_debug()
        ));
    }

    /// The name of the secret that has this value, or that is to have it. Without a value it must be there.
    fn secret(&mut self, wanted: &Wanted) -> Result<String, Failure> {
        let Wanted { owner, value, .. } = *wanted;
        if let Some(Err(why)) = value.map(|value| check_value(value.as_bytes())) {
            let why = format!("`{}` looks like a secret, and cannot be kept as one: {why}", owner.escape_debug());
            return Err(usage(why).hint(format!("add it by hand, with `toolcrib upstream add {}`", self.name)));
        }
        let candidates = self.candidates(wanted);
        for name in candidates.iter().filter(|name| base::text::names::is_name(name)) {
            let planned = self.secrets.iter().find(|secret| secret.name == *name).map(|secret| &secret.value);
            let planned = planned.or_else(|| self.values.get(name));
            match (self.world.config.secret.get(name), value) {
                (Some(section), value) if self.is_usable(section, value) => {
                    // What stands in the file itself it knows already.
                    if (value.is_none() || wanted.is_of_environment) && self.is_of_project() {
                        let why = format!("a file of a project asks for your secret `{name}` by its name");
                        return Err(usage(why).hint(format!(
                            "if you trust it, add it by hand, with `toolcrib upstream add {}`",
                            self.name
                        )));
                    }
                    if self.bound.is_empty() {
                        self.bound.clone_from(&section.hosts);
                    }
                    self.notes.push(format!("it gets your secret `{name}`"));
                    self.lent.insert(name.clone());
                    return Ok(name.clone());
                }
                (None, Some(value)) if planned.is_none_or(|planned| planned == value) => {
                    self.need(name, value, wanted.is_of_environment);
                    return Ok(name.clone());
                }
                (Some(_), _) | (None, Some(_) | None) => {}
            }
        }
        let name = candidates.first().map_or("", String::as_str);
        let why = match value {
            Some(_) => format!("the secret `{name}` is there already, and has another value or goes elsewhere"),
            None => format!("`{}` looks like a secret, and its value is not known here", owner.escape_debug()),
        };
        let set = format!("`toolcrib secret set {name} --host HOST` keeps it; then import the server again");
        Err(usage(why).hint(set))
    }

    /// The names that a secret can have, the best first.
    fn candidates(&self, Wanted { owner, preferred, .. }: &Wanted) -> Vec<String> {
        let word =
            |text: &str| -> String { text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect() };
        let own = format!("{}_{}", word(self.name), word(owner)).to_ascii_uppercase();
        // The name of a header does not say whose it is.
        let is_of_header = self.is_bound_by_url && preferred == owner;
        if is_of_header { vec![own] } else { vec![word(preferred), own] }
    }

    /// Whether a secret that is kept has this value and goes to where it would have to.
    fn is_usable(&self, section: &SecretSection, value: Option<&str>) -> bool {
        let goes = self.bound.iter().all(|host| section.hosts.contains(host));
        let Some(value) = value else { return goes };
        let kept = section.file.as_ref().and_then(|file| bounded(file));
        goes && kept.is_some_and(|kept| kept.trim_end_matches(['\r', '\n']) == value)
    }

    /// Whether its file came with the directory, as those of a cloned repository do.
    fn is_of_project(&self) -> bool {
        !self.world.own.contains(&self.entry.file)
    }

    fn need(&mut self, name: &str, value: &str, is_of_environment: bool) {
        self.lent.insert(name.to_owned());
        if !self.secrets.iter().any(|secret| secret.name == name) {
            self.secrets.push(Secret { name: name.to_owned(), value: value.to_owned(), is_of_environment });
        }
    }
}

/// Whether a part of a value would be written down that may be a secret.
fn is_mixed(owner: &str, text: &str) -> bool {
    looks::is_secret_text(text) || (looks::is_secret_name(owner) && !is_scheme(text.trim()))
}

/// Whether it is the word before the token of a header, which is no secret.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token"].contains(&&*word.to_ascii_lowercase())
}

/// A small file's text.
fn bounded(file: &Path) -> Option<String> {
    let found = file.metadata().ok().filter(|found| found.is_file() && found.len() <= MOST_BYTES as u64);
    found.and_then(|_| std::fs::read_to_string(file).ok())
}
