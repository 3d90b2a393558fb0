//! The policy in force: the policy files are read anew once one of them has changed, over the settings as they were at the start, and over what
//! the program around this host has set since.
//!
//! Who decides something holds the policy that it began with. What cannot be obeyed lets nothing begin, until it can: a change of what is set
//! up only once, such as limits, needs a new start, and so does a file that root is not alone to write: it may be a command of this very
//! program that changed it.

use super::Policy;
use crate::toolset::line_of;
use audit::Audit;
use base::dirs::{Dirs, directory_of};
use base::disk::{open_of_root, told};
use base::envelope::{Failure, Kind};
use config::Settings;
use config::trail::PolicyDigest;
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vetting::read_file;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// More than a policy may have, in bytes: what is longer is another.
const LONGEST: u64 = 4 << 20;

/// The policy in force, which is another one when its files have changed.
pub struct InForce {
    policy: RwLock<Arc<Policy>>,
    dirs: Dirs,
    /// Further files that hold policy.
    own: Vec<PathBuf>,
    /// Weak: whoever holds the host writes the last line of the trail.
    audit: Weak<Audit>,
    /// The settings that the program started with.
    started: Settings,
    state: Mutex<State>,
    /// The policies of toolsets that narrow settings, by their names.
    narrowed: Mutex<HashMap<String, Narrowed>>,
    changes: watch::Sender<()>,
}

/// A policy within what a toolset leaves of it.
struct Narrowed {
    of: Arc<Policy>,
    policy: Arc<Policy>,
}

struct State {
    looked: Instant,
    settings: Settings,
    /// What the files were when they were last looked at, and since when.
    seen: Vec<Result<Option<String>, ErrorKind>>,
    since: Instant,
    /// Why nothing may begin.
    refusal: Option<Failure>,
}

/// What the policy files say now.
struct Anew {
    settings: Settings,
    /// None where it is what they said before.
    policy: Option<Policy>,
    changed: Vec<PolicyDigest>,
}

/// Why what they say cannot be obeyed, and what to do about it.
struct NotObeyed {
    why: String,
    hint: String,
}

impl InForce {
    /// The policy of these settings; see [`Policy::new`].
    ///
    /// # Errors
    ///
    /// When a pattern of the denylist cannot be enforced.
    pub fn new(settings: &Settings, dirs: &Dirs, own: &[PathBuf]) -> Result<Self, Failure> {
        let policy = RwLock::new(Arc::new(Policy::new(settings, dirs, own)?));
        let seen = digests(settings);
        let now = Instant::now();
        let state = State { looked: now, settings: settings.clone(), seen, since: now, refusal: None };
        let (dirs, own, state) = (dirs.clone(), own.to_vec(), Mutex::new(state));
        let (narrowed, changes) = (Mutex::default(), watch::channel(()).0);
        Ok(Self { policy, dirs, own, audit: Weak::new(), started: settings.clone(), state, narrowed, changes })
    }

    /// The same, with its changes on record.
    pub fn audited(self, audit: &Arc<Audit>) -> Self {
        Self { audit: Arc::downgrade(audit), ..self }
    }

    /// Where the user's settings are.
    pub fn config_directory(&self) -> &Path {
        &self.dirs.config
    }

    /// The policy in force, as it was last read.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.read().clone()
    }

    /// The policy in force. Its files are looked at for that, once a second.
    ///
    /// # Errors
    ///
    /// `unavailable` while what is there now cannot be obeyed.
    pub fn obeyed(&self) -> Result<Arc<Policy>, Failure> {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK {
            self.look(&mut state);
        }
        state.refusal.clone().map_or_else(|| Ok(self.policy()), Err)
    }

    /// Puts further arguments of `--set` in force, behind those that the program started with and in the place of those that this put in force
    /// before. What began before goes on as it was.
    ///
    /// # Errors
    ///
    /// `usage` where one of them is not a setting, or one that is set up when the program starts; `unavailable` while what the policy files
    /// say cannot be obeyed. All stays as it was then.
    pub fn set(&self, set: &[String]) -> Result<(), Failure> {
        let mut state = self.state.lock();
        // The files first: they are judged by `look` alone, and may have taken back what this would give.
        self.look(&mut state);
        if let Some(refusal) = &state.refusal {
            return Err(refusal.clone());
        }
        let settings = self.started.with_set(set).map_err(|error| Failure::new(Kind::Usage, error.to_string()))?;
        check_judged(&state.settings, &settings, "nothing is set while it is not")?;
        let policy = self.policy().anew(&settings, &self.dirs, &self.own)?;
        *self.policy.write() = Arc::new(policy);
        state.settings = settings;
        if let Some(audit) = self.audit.upgrade() {
            // What values a plugin gets is no right, and may be somebody's own.
            let shown = set.iter().map(|set| match set.split_once('=') {
                Some((key, _)) if key.ends_with(".config") => key,
                Some(_) | None => set,
            });
            audit.changed(&format!("set in this program: {}", shown.collect::<Vec<_>>().join(" ")));
        }
        self.changes.send_replace(());
        Ok(())
    }

    /// A policy within the grants of a toolset.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where a grant would give more than there is; `unavailable` where the policy files cannot be read.
    pub fn within(&self, policy: &Arc<Policy>, toolset: &str) -> Result<Arc<Policy>, Failure> {
        let mut all = self.narrowed.lock();
        if let Some(narrowed) = all.get(toolset).filter(|narrowed| Arc::ptr_eq(&narrowed.of, policy)) {
            return Ok(narrowed.policy.clone());
        }
        let settings = self.state.lock().settings.clone();
        let line = line_of(policy.config(), toolset)?;
        let grants = line.into_iter().filter_map(|name| {
            let grant = policy.config().toolset.get(&name)?.grant.clone();
            (!grant.is_empty()).then_some((name, grant))
        });
        let narrowed =
            settings.within(&grants.collect::<Vec<_>>()).map_err(|error| Failure::invalid(error.to_string()))?;
        check_judged(&settings, &narrowed, "a toolset narrows what is in force")?;
        let settings = narrowed;
        let narrowed = Arc::new(policy.of_toolset(toolset, &settings, &self.dirs, &self.own)?);
        all.insert(toolset.to_owned(), Narrowed { of: policy.clone(), policy: narrowed.clone() });
        Ok(narrowed)
    }

    /// Looks at the files, and at those that the policy names, before the next decision.
    pub fn look_anew(&self) {
        self.look(&mut self.state.lock());
        self.policy().look_anew();
    }

    /// The settings in force, as TOML with where each value comes from.
    pub fn rendered(&self) -> String {
        self.state.lock().settings.render(true)
    }

    /// Told when another policy is in force.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The directories in which policy files are, and those of lists.
    pub fn directories(&self) -> Vec<PathBuf> {
        let policy = self.policy();
        let files = &self.state.lock().settings.policies;
        let directories = files.iter().filter_map(|file| directory_of(&file.path)).chain(policy.list_directories());
        directories.filter(|directory| directory.is_dir()).map(Path::to_owned).collect()
    }

    fn look(&self, state: &mut State) {
        state.looked = Instant::now();
        let now: Vec<_> = state.settings.policies.iter().map(|file| digest(&file.path)).collect();
        let is_news = now != state.seen;
        // What could not be obeyed is tried again: the reason may be in another file.
        if !is_news && state.refusal.is_none() {
            return;
        }
        if is_news {
            (state.seen, state.since) = (now, Instant::now());
        }
        match self.anew(state) {
            Ok(Anew { settings, policy, changed }) => {
                let was_refused = state.refusal.take().is_some();
                if let Some(policy) = policy {
                    *self.policy.write() = Arc::new(policy);
                    self.record(&changed, None);
                } else if was_refused {
                    self.record(&settings.policies, None);
                }
                state.settings = settings;
                self.changes.send_replace(());
            }
            Err(NotObeyed { why, hint }) => {
                let message = format!("the policy was changed, and is not obeyed yet: {why}");
                let refusal = Failure::new(Kind::Unavailable, message).hint(hint);
                if is_news || state.refusal.as_ref().is_none_or(|before| before.message != refusal.message) {
                    self.record(&different(&state.settings.policies, &state.seen), Some(&why));
                }
                state.refusal = Some(refusal);
            }
        }
    }

    /// Reads the policy files.
    fn anew(&self, state: &State) -> Result<Anew, NotObeyed> {
        let mend = || "mend it: `toolcrib policy check` says what is wrong".to_owned();
        let start = || "start it again: it then obeys the policy as it is now".to_owned();
        let before = &state.settings;
        let settings = before.anew().map_err(|error| NotObeyed { why: error.to_string(), hint: mend() })?;
        // By the bytes that would be obeyed: others may have been there a moment before.
        let read = digests(&settings);
        let changed = different(&before.policies, &read);
        if changed.is_empty() {
            return Ok(Anew { settings, policy: None, changed });
        }
        for file in &changed {
            let source = before.sources.policies.iter().find(|source| source.path == file.path);
            if !source.is_some_and(|source| source.of_root)
                && let Err(error) = open_of_root(&file.path)
            {
                let why = format!("{}, so a command of this program may have changed it", told(&error));
                return Err(NotObeyed { why, hint: start() });
            }
        }
        if let Some(key) = before.set_up_with(&settings) {
            let why = format!("`{key}` is set up when the program starts");
            return Err(NotObeyed { why, hint: start() });
        }
        // A file that is written in its place is empty for a moment.
        let is_open = settings.locks.len() < before.locks.len();
        if is_open && (state.since.elapsed() < LOOK || read != state.seen) {
            let hint = "try again in some seconds, if that is meant".into();
            return Err(NotObeyed { why: "a lock is gone from it".into(), hint });
        }
        let policy = self
            .policy()
            .anew(&settings, &self.dirs, &self.own)
            .map_err(|failure| NotObeyed { why: failure.message, hint: mend() })?;
        Ok(Anew { settings, policy: Some(policy), changed })
    }

    fn record(&self, changed: &[PolicyDigest], refused: Option<&str>) {
        let Some(audit) = self.audit.upgrade() else { return };
        changed.iter().for_each(|file| audit.policy_changed(file, refused));
    }
}

/// Refuses settings for which policy files were read in other bytes than those in force. What they say now is obeyed only once `look` has judged
/// it: else who changes one for a moment would have it obeyed here, and kept.
fn check_judged(in_force: &Settings, read: &Settings, why: &str) -> Result<(), Failure> {
    if different(&in_force.policies, &digests(read)).is_empty() {
        return Ok(());
    }
    let message = format!("the policy was changed, and is not obeyed yet: {why}");
    Err(Failure::new(Kind::Unavailable, message).hint("try again in some seconds"))
}

/// What the policy files were when these settings were read.
fn digests(settings: &Settings) -> Vec<Result<Option<String>, ErrorKind>> {
    settings.policies.iter().map(|file| Ok(file.sha256.clone())).collect()
}

/// The files whose digest is another.
fn different(files: &[PolicyDigest], now: &[Result<Option<String>, ErrorKind>]) -> Vec<PolicyDigest> {
    let other = |(file, now): (&PolicyDigest, &Result<Option<String>, ErrorKind>)| {
        let sha256 = now.clone().unwrap_or_default();
        (*now != Ok(file.sha256.clone())).then(|| PolicyDigest { path: file.path.clone(), sha256 })
    };
    files.iter().zip(now).filter_map(other).collect()
}

/// The digest of a file; none where there is none. What cannot be read is another.
fn digest(path: &Path) -> Result<Option<String>, ErrorKind> {
    match read_file(path, LONGEST) {
        Ok(bytes) => Ok(Some(hex::encode(Sha256::digest(bytes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{PolicySource, Sources};
    use std::fs;
    use tempfile::TempDir;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    /// What decides in a directory of its own, under this policy, for a program that was started with these settings.
    fn in_force(policy: &str, started: &[&str]) -> (TempDir, InForce) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("policy.toml");
        fs::write(&file, policy).expect("a file");
        let sources = Sources {
            home: "/home/u".into(),
            policies: vec![PolicySource::named(file)],
            set: texts(started),
            ..Sources::default()
        };
        let settings = Settings::load(&sources).expect("settings");
        let dirs = Dirs::below(directory.path());
        let in_force = InForce::new(&settings, &dirs, &[]).expect("a policy");
        (directory, in_force)
    }

    fn texts(settings: &[&str]) -> Vec<String> {
        settings.iter().map(ToString::to_string).collect()
    }

    fn about(digest: &str, right: &str) -> Vec<String> {
        vec![format!("plugin.x.sha256={digest}"), format!("plugin.x.{right}")]
    }

    /// Whether these bytes of the plugin may run commands, and whether they may read in `/a`.
    fn rights(in_force: &InForce, digest: &str) -> (bool, bool) {
        let rights = in_force.policy().config().plugin_rights("x", digest, false);
        (rights.shell, rights.read.iter().all(|list| list.contains(Path::new("/a"))))
    }

    #[test]
    fn a_right_is_set_for_bytes_and_goes_with_what_is_set_next() {
        let (_directory, in_force) = in_force("", &[]);
        let before = in_force.policy();
        let mut changes = in_force.changes();
        assert_eq!(rights(&in_force, A), (false, false));
        in_force.set(&about(A, "files.read=['/a']")).expect("set");
        assert!(changes.has_changed().expect("it lives"));
        assert_eq!((rights(&in_force, A), rights(&in_force, B)), ((false, true), (false, false)));
        // Who began before has what there was.
        assert!(before.config().plugin.is_empty());

        changes.mark_unchanged();
        in_force.set(&about(B, "shell=true")).expect("set");
        assert!(changes.has_changed().expect("it lives"));
        assert_eq!((rights(&in_force, A), rights(&in_force, B)), ((false, false), (true, false)));

        in_force.set(&[]).expect("set");
        assert_eq!((rights(&in_force, A), rights(&in_force, B)), ((false, false), (false, false)));
    }

    #[test]
    fn what_the_program_started_with_stays() {
        let started = ["tools.equal_calls=7", &format!("plugin.x.sha256={A}"), "plugin.x.files.read=['/a']"];
        let (_directory, in_force) = in_force("", &started);
        in_force.set(&texts(&["tools.shell_confirm=false"])).expect("set");
        let policy = in_force.policy();
        assert_eq!((policy.config().tools.equal_calls, policy.config().tools.shell_confirm), (7, false));
        assert_eq!(rights(&in_force, A), (false, true));
        in_force.set(&texts(&["tools.equal_calls=8"])).expect("set");
        let policy = in_force.policy();
        assert_eq!((policy.config().tools.equal_calls, policy.config().tools.shell_confirm), (8, true));
    }

    #[test]
    fn what_is_set_up_once_is_refused_and_nothing_changes() {
        let (_directory, in_force) = in_force("", &[]);
        in_force.set(&about(A, "files.read=['/a']")).expect("set");
        let mut changes = in_force.changes();
        changes.mark_unchanged();
        for key in ["limits.call_ms=5", "secret.x.env=true", "program.x.path='/bin/true'", "agent.name=other"] {
            let refusal = in_force.set(&[about(B, "shell=true"), texts(&[key])].concat()).expect_err(key);
            let name = key.split('=').next().expect("a key");
            let wanted = format!("--set: `{name}` is set up when the program starts, and cannot be set later");
            assert_eq!((refusal.kind, refusal.message), (Kind::Usage, wanted));
        }
        for wrong in ["lock.plugins=off", "tools.shel=true", "tools.shell_confirm"] {
            assert_eq!(in_force.set(&texts(&[wrong])).expect_err(wrong).kind, Kind::Usage);
        }
        assert_eq!((rights(&in_force, A), rights(&in_force, B)), ((false, true), (false, false)));
        assert!(!changes.has_changed().expect("it lives"));
    }

    #[test]
    fn a_policy_and_its_lock_stay_over_what_is_set() {
        let policy = "[plugin.x]\nshell = false\n[tools]\nfiles_enabled = false\n[lock]\nplugins = \"pins\"\n";
        let (_directory, in_force) = in_force(policy, &[]);
        in_force.set(&[about(A, "shell=true"), texts(&["tools.files_enabled=true"])].concat()).expect("set");
        assert!(in_force.policy().is_locked());
        assert!(!in_force.policy().config().tools.files_enabled);
        assert_eq!(rights(&in_force, A), (false, false));
        // Also when the file is looked at again.
        in_force.look_anew();
        assert!(in_force.obeyed().is_ok_and(|policy| policy.is_locked()));
    }

    #[test]
    fn what_is_set_outlasts_a_look_at_the_policy() {
        let (directory, in_force) = in_force("", &[]);
        in_force.set(&about(A, "files.read=['/a']")).expect("set");
        // As after a change that was obeyed: the same reading.
        let again = in_force.state.lock().settings.anew().expect("settings");
        assert!(again.config.plugin_rights("x", A, false).read[0].contains(Path::new("/a")));
        drop(directory);
    }

    /// A policy that was changed is judged by the look at its file, and by nothing else: until that obeys it, nothing is set by it.
    #[test]
    fn nothing_is_set_while_a_changed_policy_is_not_obeyed() {
        let (directory, in_force) = in_force("[lock]\nplugins = \"pins\"\n", &[]);
        fs::write(directory.path().join("policy.toml"), "[limits]\ncall_ms = 5\n").expect("a file");
        let refusal = in_force.set(&about(A, "shell=true")).expect_err("it is not obeyed");
        assert_eq!(refusal.kind, Kind::Unavailable, "{refusal:?}");
        assert!(in_force.policy().is_locked());
        assert_eq!(rights(&in_force, A), (false, false));
    }
}
