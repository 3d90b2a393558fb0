//! Secrets: values that settings name, and that no tool sees. To all but the egress and the commands that get one, a secret is its name.
//!
//! Where a value may go is decided by the grants of `policy`; that it gets nowhere else is the work of `leaks`, which learns each value here as
//! soon as it is known.
//!
//! It depends on `backend`, which runs the programs that print secrets, `base`, `config` and `leaks`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

use backend::own::OwnPrograms;
use backend::{Finished, finish};
use base::dirs::Dirs;
use base::disk::{OwnDir, told};
use base::envelope::{Failure, Kind, duration};
use config::{Config, Part, SecretSection, Template};
use futures_util::future::BoxFuture;
pub use leaks::MOST_BYTES;
use leaks::{Known, Value, shapes};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::MutexGuard;
use zeroize::Zeroizing;

/// How long what a program printed counts before it is asked again.
const LIFETIME: Duration = Duration::from_secs(600);
/// How long such a program may take: a person may have to unlock what it reads.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a program or a server that failed is not asked again: it may count wrong attempts, and whoever calls may try at once.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How often files are looked at, so that another value is known within a second.
const LOOK: Duration = Duration::from_millis(500);

/// The secrets of a host.
pub struct Secrets {
    all: BTreeMap<String, Secret>,
    /// What runs the programs that print secrets.
    runner: Option<OwnPrograms>,
    state: Mutex<State>,
}

struct Secret {
    source: Source,
    /// One asks for it, others wait. When that failed last, and why.
    asking: tokio::sync::Mutex<Option<(Instant, Failure)>>,
}

/// Where a value is.
#[derive(Clone)]
enum Source {
    File(PathBuf),
    Command(Vec<String>),
    /// The token server of a mail account, which `mail/refresh.rs` asks.
    Server,
}

/// Whether a value has to be asked for.
pub enum Turn<'s> {
    /// It is known, and still good.
    Known(Value),
    /// Whoever holds this asks, and says what came of it.
    Ask(Asking<'s>),
}

/// The right to ask for a value. Others who need it wait until it is dropped.
pub struct Asking<'s> {
    secrets: &'s Secrets,
    name: &'s str,
    failed: MutexGuard<'s, Option<(Instant, Failure)>>,
}

impl Asking<'_> {
    /// Keeps the value for so long.
    pub fn holds(mut self, value: Value, lifetime: Duration) -> Value {
        *self.failed = None;
        let mut state = self.secrets.state.lock();
        state.hold(self.name, value.clone(), Mark::Given(Instant::now() + lifetime));
        state.learn();
        value
    }

    /// Has the next ones told the same for some time.
    pub fn failed(mut self, failure: Failure) -> Failure {
        *self.failed = Some((Instant::now(), failure.clone()));
        failure
    }
}

#[derive(Default)]
struct State {
    looked: Option<Instant>,
    held: BTreeMap<String, Held>,
    /// What is no secret of a section: a token of this program itself.
    further: Vec<(String, Value)>,
    /// By the names of secrets, what servers gave in their place.
    successors: BTreeMap<String, Successor>,
    known: Arc<Known>,
}

/// A value, and what it was read from.
struct Held {
    value: Value,
    /// The one before it may still be good for its server.
    before: Option<Value>,
    mark: Mark,
}

/// A value that takes the place of a secret, for as long as that is the one that it was given for.
struct Successor {
    of: Value,
    value: Value,
    /// The one before it may still be good for its server.
    before: Option<Value>,
}

/// By what it is known that a value is still the one that was read.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    /// Of a file: device, inode, size, and when it was changed last.
    File(u64, u64, u64, i64, i64),
    /// Until when what a program printed, or a server gave, counts.
    Given(Instant),
}

impl Mark {
    fn of(found: &Metadata) -> Self {
        Self::File(found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec())
    }
}

impl Secrets {
    /// The secrets of these settings. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// When a section names no source, or two.
    pub fn new(config: &Config, dirs: &Dirs) -> Result<Self, Failure> {
        let mut all = BTreeMap::new();
        for (name, section) in &config.secret {
            let source = Source::of(name, section, dirs)?;
            all.insert(name.clone(), Secret { source, asking: tokio::sync::Mutex::default() });
        }
        for (account, section) in &config.mail {
            let source = match (&section.token_command, &section.refresh) {
                (Some(argv), _) => Source::Command(argv.clone()),
                (None, Some(_)) => Source::Server,
                (None, None) => continue,
            };
            all.insert(of_account(account), Secret { source, asking: tokio::sync::Mutex::default() });
        }
        let has_command = all.values().any(|secret| matches!(secret.source, Source::Command(_)));
        let runner = has_command.then(|| OwnPrograms::new(dirs));
        Ok(Self { all, runner, state: Mutex::default() })
    }

    /// No secrets.
    #[must_use]
    pub fn none() -> Self {
        Self { all: BTreeMap::new(), runner: None, state: Mutex::default() }
    }

    /// Has a value of this program's own looked for as well, such as its token.
    pub fn guard(&self, name: &str, value: &str) {
        let mut state = self.state.lock();
        if state.further.iter().any(|(known, of)| known == name && of.expose() == value) {
            return;
        }
        state.further.push((name.to_owned(), Value::own(value)));
        state.learn();
    }

    /// All values that are known now. Files are looked at for that, twice a second.
    pub fn known(&self) -> Arc<Known> {
        let mut state = self.state.lock();
        if !self.all.is_empty() && state.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            self.look(&mut state);
        }
        state.known.clone()
    }

    /// Reads the files that have changed.
    fn look(&self, state: &mut State) {
        state.looked = Some(Instant::now());
        let mut has_news = false;
        for (name, secret) in &self.all {
            if let Source::File(path) = &secret.source {
                // Why it cannot be read is said to whoever needs it.
                has_news |= state.read(name, path).unwrap_or(false);
            }
        }
        if has_news {
            state.learn();
        }
    }

    /// The value of a secret, for its egress or its command alone.
    ///
    /// # Errors
    ///
    /// `unavailable` when it cannot be read, with the reason.
    pub fn value<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let (name, secret) = self.secret(name)?;
            match &secret.source {
                Source::File(path) => {
                    let mut state = self.state.lock();
                    if state.read(name, path).map_err(|why| unreadable(name, &why))? {
                        state.learn();
                    }
                    Ok(state.held[name].value.clone())
                }
                Source::Command(argv) => {
                    let asking = match self.turn(name).await? {
                        Turn::Known(value) => return Ok(value),
                        Turn::Ask(asking) => asking,
                    };
                    match self.print(argv).await {
                        Ok(printed) => Ok(asking.holds(printed, LIFETIME)),
                        Err(why) => Err(asking.failed(unreadable(name, &why))),
                    }
                }
                Source::Server => Err(Failure::new(Kind::Internal, format!("nobody has asked for `{name}`"))),
            }
        })
    }

    /// A text with the values of its secrets, for the same.
    ///
    /// # Errors
    ///
    /// Those of [`Self::value`].
    pub fn fill<'a>(&'a self, template: &'a Template) -> BoxFuture<'a, Result<Zeroizing<String>, Failure>> {
        Box::pin(async move {
            let mut text = Zeroizing::new(String::new());
            for part in template.parts() {
                match part {
                    Part::Text(piece) => text.push_str(piece),
                    Part::Secret(secret) => text.push_str(self.value(secret).await?.expose()),
                }
            }
            Ok(text)
        })
    }

    fn secret(&self, name: &str) -> Result<(&str, &Secret), Failure> {
        let found = self.all.get_key_value(name).map(|(name, secret)| (name.as_str(), secret));
        found.ok_or_else(|| {
            Failure::new(Kind::Unavailable, format!("there is no secret `{name}`"))
                .hint(format!("`toolcrib secret set {name}` makes it"))
        })
    }

    /// The value that was asked for not long ago, or the right to ask for it.
    ///
    /// # Errors
    ///
    /// The failure of whoever asked just now.
    pub fn turn<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Turn<'a>, Failure>> {
        Box::pin(async move {
            let (name, secret) = self.secret(name)?;
            let failed = secret.asking.lock().await;
            if let Some(value) = self.state.lock().fresh(name) {
                return Ok(Turn::Known(value));
            }
            match &*failed {
                Some((at, failure)) if at.elapsed() < AFTER_FAILURE => Err(failure.clone()),
                Some(_) | None => Ok(Turn::Ask(Asking { secrets: self, name, failed })),
            }
        })
    }

    /// Does not count a value any more that its server has refused: the next who needs one asks for another.
    pub fn outdate(&self, name: &str, refused: &Value) {
        self.state.lock().outdate(name, refused);
    }

    /// What a server gave in place of this value of a secret, if it did.
    pub fn successor(&self, name: &str, of: &Value) -> Option<Value> {
        let state = self.state.lock();
        let given = state.successors.get(name).filter(|given| given.of.expose() == of.expose())?;
        Some(given.value.clone())
    }

    /// Keeps what a server gave in place of this value of a secret. Returns whether it is the first.
    pub fn succeed(&self, name: &str, of: &Value, value: Value) -> bool {
        let mut state = self.state.lock();
        let earlier = state.successors.remove(name).filter(|given| given.of.expose() == of.expose());
        let is_first = earlier.is_none();
        let before = earlier.map(|given| given.value);
        state.successors.insert(name.to_owned(), Successor { of: of.clone(), value, before });
        state.learn();
        is_first
    }

    async fn print(&self, argv: &[String]) -> Result<Value, String> {
        let runner = self.runner.as_ref().expect("there is a runner where a secret has a command");
        let process = runner.start(argv).await.map_err(|failure| failure.message)?;
        let finished = tokio::time::timeout(PATIENCE, finish(process)).await;
        let finished = finished.map_err(|_| format!("its program took more than {}", duration(PATIENCE)))?;
        let Finished { status, stdout, .. } = finished.map_err(|error| format!("its program was lost: {error}"))?;
        let printed = Zeroizing::new(stdout);
        // What it says on standard error may hold anything.
        if status != 0 {
            return Err(format!("its program exits with {status}"));
        }
        Value::read(&printed)
    }

    /// Each secret of a section by its name, with what stands against its use now, if anything does. Programs are not run for that.
    #[must_use]
    pub fn check(&self) -> Vec<(&str, Result<(), String>)> {
        let of_sections = self.all.iter().filter(|(name, _)| !name.contains(OF_ACCOUNT));
        let checked = of_sections.map(|(name, secret)| {
            let found = match &secret.source {
                Source::File(path) => self.state.lock().read(name, path).map(|_| ()),
                Source::Command(_) | Source::Server => Ok(()),
            };
            (name.as_str(), found)
        });
        checked.collect()
    }
}

impl State {
    /// Reads a file whose mark is another one than before; says whether it holds another value.
    fn read(&mut self, name: &str, path: &Path) -> Result<bool, String> {
        let (directory, file) = OwnDir::of_file(path).map_err(|error| told(&error))?;
        let file = directory.file(&file).map_err(|error| told(&error))?;
        let found = file.metadata().map_err(|error| error.to_string())?;
        let mark = Mark::of(&found);
        if self.held.get(name).is_some_and(|held| held.mark == mark) {
            return Ok(false);
        }
        let mut bytes = Zeroizing::new(Vec::new());
        file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        self.hold(name, Value::read(&bytes)?, mark);
        Ok(true)
    }

    fn hold(&mut self, name: &str, value: Value, mark: Mark) {
        let before = self.held.remove(name).map(|held| held.value);
        let before = before.filter(|before| before.expose() != value.expose());
        self.held.insert(name.to_owned(), Held { value, before, mark });
    }

    /// What a program printed or a server gave does not count any more, and stays known.
    fn outdate(&mut self, name: &str, refused: &Value) {
        if let Some(held) = self.held.get_mut(name)
            && let Mark::Given(until) = &mut held.mark
            && held.value.expose() == refused.expose()
        {
            *until = Instant::now();
        }
    }

    /// What was given, and still counts.
    fn fresh(&self, name: &str) -> Option<Value> {
        let held = self.held.get(name)?;
        let is_fresh = match held.mark {
            Mark::File(..) => true,
            Mark::Given(until) => Instant::now() < until,
        };
        is_fresh.then(|| held.value.clone())
    }

    fn learn(&mut self) {
        let held = self.held.iter().flat_map(|(name, held)| {
            let values = [Some(&held.value), held.before.as_ref()].into_iter().flatten();
            values.map(move |value| (name.as_str(), value.expose()))
        });
        let given = self.successors.iter().flat_map(|(name, given)| {
            let values = [Some(&given.value), given.before.as_ref()].into_iter().flatten();
            values.map(move |value| (name.as_str(), value.expose()))
        });
        let further = self.further.iter().map(|(name, value)| (name.as_str(), value.expose()));
        self.known = Arc::new(Known::new(held.chain(given).chain(further)));
    }
}

impl Source {
    fn of(name: &str, section: &SecretSection, dirs: &Dirs) -> Result<Self, Failure> {
        match (&section.file, &section.command) {
            (Some(file), None) => match file.to_str().map(|file| dirs.expand(file)) {
                Some(path) if path.is_absolute() => Ok(Self::File(path)),
                Some(_) | None => Err(Failure::invalid(format!("`file` of [secret.{name}] is relative"))
                    .hint("write an absolute path, or one that begins with `~/`")),
            },
            (None, Some(argv)) => Ok(Self::Command(argv.clone())),
            (Some(_), Some(_)) => {
                Err(Failure::invalid(format!("[secret.{name}] has both `file` and `command`"))
                    .hint("remove one of them"))
            }
            (None, None) => Err(Failure::invalid(format!("[secret.{name}] does not say where its value is"))
                .hint(format!("`toolcrib secret set {name}` keeps one, or write `file` or `command`"))),
        }
    }
}

/// How the name of what is asked for an account begins; sections have no such names.
const OF_ACCOUNT: &str = "mail.";

/// The name of what the program of a mail account prints, or its token server gives, which is a secret like others.
pub fn of_account(account: &str) -> String {
    format!("{OF_ACCOUNT}{account}")
}

/// The files that settings name for secrets: no tool and no command reads them.
pub fn files(config: &Config, dirs: &Dirs) -> Vec<PathBuf> {
    let files = config.secret.values().filter_map(|section| section.file.as_ref()?.to_str());
    files.map(|file| dirs.expand(file)).collect()
}

fn unreadable(name: &str, why: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("the secret `{name}` cannot be used: {why}"))
        .hint("`toolcrib secret list` says where each is and what is wrong with it")
}

/// What a text has in it by its shape, such as `a GitHub token` or `a password in a URL`; none where nothing in it looks like a secret.
#[must_use]
pub fn shape_in(text: &str) -> Option<&'static str> {
    shapes::find(text).first().map(|shape| shape.name)
}

/// Why a value would be refused.
///
/// # Errors
///
/// That, without the value.
pub fn check_value(bytes: &[u8]) -> Result<(), String> {
    Value::read(bytes).map(drop)
}
