//! Which plugins a lock lets be there at all: the decision that comes before every other.
//!
//! Each lock decides by itself, on what it was shown (a manifest, or the digest of definitions), and a plugin needs the word of every one.

use config::{Ceiling, GrantBy, Lock, LockMode, Pin, Place, Role, Signed};
use contract::manifest::{Manifest, Origin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use vetting::Code;
use vetting::marks::Marks;
use vetting::{Refused, Vetted, Vetting};

/// How a step of a decision went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It holds.
    Good,
    /// It refuses the plugin.
    Refuses,
    /// One before it did.
    NotReached,
}

/// A lock in force, with what it knows of lists and statements.
pub(super) struct Enforced {
    pub(super) lock: Lock,
    vetting: Option<Vetting>,
}

/// The word of a lock against a plugin.
pub(super) struct LockRefusal<'l> {
    pub(super) code: Code,
    /// What is wrong, with the plugin as its subject, unless the code says that it is about something else.
    pub(super) reason: String,
    /// The setting that decides.
    pub(super) key: String,
    /// Where it is.
    pub(super) place: &'l Place,
    /// What to do about it, in the operator's words.
    pub(super) message: Option<&'l str>,
    /// What helps, where a command does.
    pub(super) remedy: Option<String>,
}

impl Enforced {
    pub(super) fn new(lock: Lock, marks: Option<&Arc<Marks>>) -> Self {
        let vetting = marks.filter(|_| lock.signed.is_some()).map(|marks| Vetting::new(marks.clone()));
        Self { lock, vetting }
    }

    /// What decides where lists and statements do.
    fn signed(&self) -> Option<(&Signed, &Vetting)> {
        Some((self.lock.signed.as_ref()?, self.vetting.as_ref()?))
    }

    /// The line where it begins, and what it demands, in words.
    pub(super) fn described(&self) -> (String, String) {
        let (place, what) = self.demanded();
        let list = self.signed().map(|(signed, vetting)| match vetting.described(&self.lock, signed) {
            Ok(list) => format!("; {list}"),
            Err(refused) => format!("; {}: {}", refused.code, refused.reason),
        });
        (place, what + &list.unwrap_or_default())
    }

    /// The directory of its list, whose files decide.
    pub(super) fn list_directory(&self) -> Option<&Path> {
        self.lock.signed.as_ref()?.list.parent()
    }

    /// When its list ends, in seconds since 1970, and what it is called.
    pub(super) fn list_end(&self) -> Option<(u64, String)> {
        self.signed().and_then(|(signed, vetting)| vetting.list_end(&self.lock, signed))
    }

    /// Has lists looked at before the next decision.
    pub(super) fn look_anew(&self) {
        self.vetting.iter().for_each(Vetting::look_anew);
    }

    /// Revocations that take nothing back, each with the reason.
    pub(super) fn idle_revocations(&self) -> Vec<String> {
        self.signed().map_or_else(Vec::new, |(signed, vetting)| vetting.idle_revocations(&self.lock, signed))
    }

    /// The names of the plugins that it vets, and whether each has to be there.
    pub(super) fn vetted(&self) -> Vec<(String, bool)> {
        let pins = self.lock.pins.keys().map(|name| (name.clone(), false));
        let listed = self.signed().map(|(signed, vetting)| vetting.listed(&self.lock, signed));
        pins.chain(listed.unwrap_or_default()).collect()
    }

    /// Decides on a plugin before it takes a name: in the order of the table that `host/docs/locked.md` has. Returns what it was vetted as,
    /// where a statement says so.
    pub(super) fn decide(&self, plugin: &Manifest) -> Result<Option<Arc<Vetted>>, LockRefusal<'_>> {
        let lock = &self.lock;
        if plugin.id.is_builtin() {
            return self.decide_builtin(plugin).map(|()| None);
        }
        if lock.revoked.plugins.contains(plugin.sha256()) {
            return Err(self.refusal(Code::Revoked, "was revoked by the policy".into(), "lock.revoked"));
        }
        match lock.plugins {
            LockMode::Off => Ok(None),
            LockMode::Pins => self.pinned(plugin).map(|()| None),
            LockMode::Signed if !can_be_listed(plugin) => self.pinned(plugin).map(|()| None),
            LockMode::Signed => {
                let (signed, vetting) = self.signed().expect("`signed` has what it needs");
                vetting.decide(lock, signed, plugin).map(Some).map_err(|Refused { code, reason, remedy }| LockRefusal {
                    code,
                    reason,
                    remedy,
                    key: "lock.list".into(),
                    place: &signed.place,
                    message: lock.message.as_deref(),
                })
            }
        }
    }

    /// Decides on what an admitted plugin says of its tools.
    pub(super) fn decide_definitions(&self, plugin: &Manifest, definitions: &str) -> Result<(), LockRefusal<'_>> {
        match self.decide(plugin)? {
            None => self.decide_pinned_definitions(plugin, definitions),
            Some(vetted) if vetted.statement.said.definitions_sha256.eq_ignore_ascii_case(definitions) => Ok(()),
            Some(_) => {
                let reason = "says something else of its tools than what was vetted".to_owned();
                Err(self.refusal(Code::DefinitionsChanged, reason, "lock.list"))
            }
        }
    }

    /// Whether a plugin was taken back since it was admitted.
    pub(super) fn has_revoked(&self, plugin: &Manifest) -> bool {
        self.decide(plugin).is_err_and(|refusal| refusal.code == Code::Revoked)
    }

    /// What the lock looks at in turn, and up to where that went well.
    pub(super) fn steps(&self, plugin: &Manifest) -> Vec<(Step, &'static str)> {
        let mode = match self.lock.plugins {
            LockMode::Signed if !can_be_listed(plugin) => LockMode::Pins,
            mode => mode,
        };
        let steps: &[(&str, &[Code])] = match (plugin.id.is_builtin(), mode) {
            (true, _) => &[("came with the program, and may be used", &[Code::BuiltinOff])],
            (false, LockMode::Off) => &[("not revoked", &[Code::Revoked])],
            (false, LockMode::Pins) => &[
                ("not revoked", &[Code::Revoked]),
                ("named with these bytes", &[Code::NotVetted, Code::OtherBytes, Code::Renamed]),
                ("says of its tools what was vetted", &[Code::DefinitionsChanged]),
            ],
            (false, LockMode::Signed) => &[
                ("not revoked", &[Code::Revoked]),
                ("list signed", &[Code::ListInvalid, Code::ListUnsigned]),
                ("list no older than one before", &[Code::RolledBack, Code::Forked]),
                ("clock", &[Code::Clock]),
                ("list in force", &[Code::ListExpired]),
                ("listed with these bytes", &[Code::NotVetted, Code::OtherBytes, Code::Renamed]),
                ("statement signed", &[Code::StatementChanged, Code::TooFewSignatures, Code::StatementInvalid]),
                ("statement about this plugin", &[Code::StatementMismatch]),
                ("statement in force", &[Code::Expired]),
                ("reviewed for what the policy asks", &[Code::Criteria]),
                ("says of its tools what was vetted", &[Code::DefinitionsChanged]),
            ],
        };
        let refused = self.decide(plugin).err().map(|refusal| refusal.code);
        let at = refused.and_then(|code| steps.iter().position(|(_, codes)| codes.contains(&code)));
        let step = |(number, (what, _)): (usize, &(&'static str, &[Code]))| {
            let step = match at {
                Some(at) if number == at => Step::Refuses,
                Some(at) if number > at => Step::NotReached,
                _ => Step::Good,
            };
            (step, *what)
        };
        steps.iter().enumerate().map(step).collect()
    }

    /// Whether the rights of a plugin depend on this lock.
    pub(super) fn binds(&self, plugin: &Manifest, is_vetted: bool) -> bool {
        let is_others = !plugin.id.is_builtin();
        let has_pin = || self.lock.pins.get(plugin.name()).is_some_and(|pin| pin.ceiling.is_some());
        is_others && (is_vetted || self.lock.ceiling.is_some() || self.lock.grant == GrantBy::Vetted || has_pin())
    }

    /// What the plugin gets, and at most gets, by this lock: what it was vetted with, and what the lock gives anybody.
    pub(super) fn ceilings<'l>(
        &'l self,
        plugin: &Manifest,
        vetted: Option<&'l Vetted>,
        nothing: &'l Ceiling,
    ) -> (Option<&'l Ceiling>, Vec<&'l Ceiling>) {
        let pin = || self.lock.pins.get(plugin.name()).and_then(|pin| pin.ceiling.as_ref());
        let own = vetted.map(|vetted| &vetted.statement.ceiling).or_else(pin);
        let gets = match self.lock.grant {
            GrantBy::User => None,
            GrantBy::Vetted => Some(own.unwrap_or(nothing)),
        };
        (gets, own.into_iter().chain(&self.lock.ceiling).collect())
    }

    /// The line where it begins, and what it demands, in words.
    fn demanded(&self) -> (String, String) {
        let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let plugins = match self.lock.plugins {
            LockMode::Off => "plugins: any".to_owned(),
            LockMode::Pins => format!("plugins: {} by their bytes", self.lock.pins.len()),
            LockMode::Signed => match &self.lock.signed {
                None => "plugins: none".to_owned(),
                Some(Signed { vet, lists, keys, .. }) => {
                    let of = |role| {
                        let keys = keys.iter().filter(|(_, key)| key.roles.contains(&role));
                        names(&keys.map(|(name, _)| name.clone()).collect::<Vec<_>>())
                    };
                    let (reviewers, listers) = (of(Role::Vet), of(Role::List));
                    format!("plugins: vetted by {vet} of {reviewers}, listed by {lists} of {listers}")
                }
            },
        };
        let builtin = self.lock.builtin.as_ref().map_or_else(|| "all".to_owned(), |list| names(list));
        let counted = [("programs", &self.lock.programs), ("servers", &self.lock.upstreams)].into_iter();
        let counted = counted.filter(|(_, pins)| !pins.is_empty());
        let others: String = counted.map(|(what, pins)| format!("; {what}: {} by their bytes", pins.len())).collect();
        let directories = self.lock.directories.iter().flatten().map(|directory| directory.display().to_string());
        let directories: Vec<String> = directories.collect();
        let directories = self.lock.directories.as_ref().map(|_| format!("; directories: {}", names(&directories)));
        (
            self.lock.place.to_string(),
            format!("{plugins}{others}; built in: {builtin}{}", directories.unwrap_or_default()),
        )
    }

    fn decide_builtin(&self, plugin: &Manifest) -> Result<(), LockRefusal<'_>> {
        let is_off = self.lock.builtin.as_ref().is_some_and(|list| !list.iter().any(|name| name == plugin.name()));
        let reason = || "is not among the built-in plugins that the policy lists".to_owned();
        if is_off { Err(self.refusal(Code::BuiltinOff, reason(), "lock.builtin")) } else { Ok(()) }
    }

    fn pinned(&self, plugin: &Manifest) -> Result<(), LockRefusal<'_>> {
        let is_it = |pin: &&Pin| pin.sha256.eq_ignore_ascii_case(plugin.sha256());
        let (pins, _) = self.pins_for(plugin);
        match pins.get(plugin.name()) {
            Some(pin) if is_it(&pin) => Ok(()),
            Some(pin) => {
                let reason = format!("has other bytes than those that were vetted, {}", shortened(&pin.sha256));
                Err(self.refusal_at(Code::OtherBytes, reason, plugin, plugin.name(), pin))
            }
            None => Err(match pins.iter().find(|(_, pin)| is_it(pin)) {
                Some((name, pin)) => {
                    let reason = format!("was vetted under another name, `{name}`");
                    self.refusal_at(Code::Renamed, reason, plugin, name, pin)
                }
                None => self.refusal(Code::NotVetted, "was not vetted".into(), "lock.plugins"),
            }),
        }
    }

    /// Decides on what an admitted plugin says of its tools.
    fn decide_pinned_definitions(&self, plugin: &Manifest, definitions: &str) -> Result<(), LockRefusal<'_>> {
        let pin = self.pins_for(plugin).0.get(plugin.name()).filter(|_| !plugin.id.is_builtin());
        let Some(pin) = pin else { return Ok(()) };
        let Some(vetted) = &pin.definitions else {
            if !plugin.has_words {
                return Ok(());
            }
            let reason = "has words of its own, and what was vetted does not pin them".into();
            return Err(self.refusal_at(Code::DefinitionsChanged, reason, plugin, plugin.name(), pin));
        };
        if vetted.eq_ignore_ascii_case(definitions) {
            return Ok(());
        }
        let reason = format!("says something else of its tools than what was vetted, {}", shortened(vetted));
        Err(self.refusal_at(Code::DefinitionsChanged, reason, plugin, plugin.name(), pin))
    }

    fn refusal(&self, code: Code, reason: String, key: &str) -> LockRefusal<'_> {
        let message = self.lock.message.as_deref();
        LockRefusal { code, reason, key: key.into(), place: &self.lock.place, message, remedy: None }
    }

    /// What the policy names by its bytes, of the kind that this is, and its section.
    fn pins_for(&self, plugin: &Manifest) -> (&BTreeMap<String, Pin>, &'static str) {
        match plugin.id.origin {
            Origin::BuiltIn | Origin::File(_) => (&self.lock.pins, "plugin"),
            Origin::Program { .. } => (&self.lock.programs, "program"),
            Origin::Upstream { .. } => (&self.lock.upstreams, "upstream"),
        }
    }

    fn refusal_at<'l>(
        &'l self,
        code: Code,
        reason: String,
        plugin: &Manifest,
        name: &str,
        pin: &'l Pin,
    ) -> LockRefusal<'l> {
        let key = format!("lock.{}.{name}.sha256", self.pins_for(plugin).1);
        LockRefusal { code, reason, key, place: &pin.place, message: self.lock.message.as_deref(), remedy: None }
    }
}

/// Whether lists and statements can be about it: nobody signs any about declared programs, or about servers of others.
fn can_be_listed(plugin: &Manifest) -> bool {
    match plugin.id.origin {
        Origin::BuiltIn | Origin::File(_) => true,
        Origin::Program { .. } | Origin::Upstream { .. } => false,
    }
}

/// The directories that plugins are read from: the user's, or those that every lock with a list has, and the lines that decide.
pub(super) fn directories(locks: &[Enforced], users: Vec<PathBuf>) -> (Vec<PathBuf>, Option<&Place>) {
    let locks = locks.iter().map(|enforced| &enforced.lock);
    let mut lists = locks.filter_map(|lock| Some((lock.directories.as_ref()?, &lock.place)));
    let Some((first, place)) = lists.next() else { return (users, None) };
    let rest: Vec<_> = lists.collect();
    let is_everywhere = |directory: &&PathBuf| rest.iter().all(|(list, _)| list.contains(directory));
    (first.iter().filter(is_everywhere).cloned().collect(), Some(place))
}

/// The beginning of a digest, as far as people compare.
fn shortened(digest: &str) -> &str {
    &digest[..12]
}
