//! The ladder of confinement at a place: by which steps commands could be confined, in the order in which they are tried, and why one cannot be
//! used. What each does is in `backend/cell/`.

use backend::Backend;
use backend::cell::{Profile, bounds_memory, how_to_get_a_cgroup};
use base::envelope::{Failure, Kind};
use config::{Needed, Remedies};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The program that makes namespaces for this one.
const BWRAP: &str = "bwrap";

/// A step of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// What each of them needs where memory is to be bounded.
    Cgroup,
    Namespaces,
    Bwrap,
    Landlock,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Namespaces => "namespaces",
            Self::Bwrap => BWRAP,
            Self::Landlock => "Landlock",
        }
    }

    pub(super) fn unusable(self, why: &str, remedy: &str) -> Unusable {
        Unusable { step: self, why: why.to_owned(), remedy: remedy.to_owned() }
    }

    /// What helps where it was tried, as this machine's settings are.
    fn remedy(self, remedies: &Remedies) -> String {
        match self {
            // An empty bound is more than any other.
            Self::Cgroup => remedies.either(
                &how_to_get_a_cgroup(),
                "confine.memory",
                &Needed::MoreThan(u64::MAX),
                "leave `memory` under [confine] empty",
            ),
            Self::Namespaces => of_namespaces(),
            Self::Bwrap => {
                "the system does not let bwrap make namespaces either, or it is too old: 0.10 is enough".into()
            }
            Self::Landlock => "it needs Linux 6.7 or later, with Landlock among its security modules".into(),
        }
    }
}

/// A step that cannot be used at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusable {
    step: Step,
    why: String,
    remedy: String,
}

impl Unusable {
    /// As people call it.
    #[must_use]
    pub fn step(&self) -> &'static str {
        self.step.name()
    }

    /// Why, and what helps.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{} ({})", self.why, self.remedy)
    }
}

/// The refusal of commands whose bound of memory cannot be enforced, if that is what hinders.
pub(super) fn unbounded(unusable: &[Unusable]) -> Option<Failure> {
    let Unusable { why, remedy, .. } = unusable.iter().find(|unusable| unusable.step == Step::Cgroup)?;
    Some(Failure::new(Kind::Unavailable, format!("commands do not run here: {why}")).hint(remedy))
}

/// What hinders, in a line. Some need no name.
pub(super) fn told(unusable: &[Unusable]) -> String {
    let told = |unusable: &Unusable| match unusable.step {
        Step::Namespaces => unusable.why.clone(),
        // How Toolcrib is started is the user's to change, whatever the system lets it do.
        Step::Cgroup => unusable.words(),
        Step::Bwrap | Step::Landlock => format!("{}: {}", unusable.step(), unusable.why),
    };
    unusable.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// What commands reach by each step; else why that one is not tried.
pub(super) struct Ladder {
    own: Arc<Profile>,
    bwrap: Result<Arc<Profile>, Unusable>,
    landlock: Result<Arc<Profile>, Unusable>,
    remedies: Remedies,
}

impl Ladder {
    pub(super) fn new(
        own: Profile,
        bwrap: Result<Profile, Unusable>,
        landlock: Result<Profile, Unusable>,
        remedies: Remedies,
    ) -> Self {
        Self { own: Arc::new(own), bwrap: bwrap.map(Arc::new), landlock: landlock.map(Arc::new), remedies }
    }

    /// The one of the first step.
    #[cfg(test)]
    pub(super) fn first(&self) -> &Arc<Profile> {
        &self.own
    }

    /// The first step that can be used, and why each before it cannot. None is tried where memory is to be bounded and cannot be.
    pub(super) async fn climb(&self, backend: &dyn Backend) -> (Option<Arc<Profile>>, Vec<Unusable>) {
        if let Err(why) = bounds_memory(&self.own).await {
            return (None, vec![Step::Cgroup.unusable(&why, &Step::Cgroup.remedy(&self.remedies))]);
        }
        let mut unusable = Vec::new();
        let steps = [
            (Step::Namespaces, Ok(&self.own)),
            (Step::Bwrap, self.bwrap.as_ref()),
            (Step::Landlock, self.landlock.as_ref()),
        ];
        for (step, profile) in steps {
            match profile {
                Err(why) => unusable.push(why.clone()),
                Ok(profile) => match backend.confines(profile).await {
                    Ok(()) => return (Some(profile.clone()), unusable),
                    // With this bound alone no cell can be made: whoever sets it, as a project may, does not get a command out of its cell so.
                    Err(why) if profile.memory.is_some() && backend.confines(&without_bound(profile)).await.is_ok() => {
                        let why = format!("`memory` under [confine] cannot be enforced: {why}");
                        let most = profile.memory.unwrap_or_default();
                        let remedy = self.remedies.raise("confine.memory", most, "start Toolcrib again");
                        unusable.push(Step::Cgroup.unusable(&why, &remedy));
                        break;
                    }
                    // It is the places that hinder, not the system: who can write there does not get less confinement by it.
                    Err(why) if backend.confines(&bare(profile)).await.is_ok() => {
                        unusable.push(step.unusable(&why, "mend that place, or see [confine]"));
                        break;
                    }
                    Err(why) => unusable.push(step.unusable(&why, &step.remedy(&self.remedies))),
                },
            }
        }
        (None, unusable)
    }
}

/// The same profile, where memory is not bounded.
fn without_bound(profile: &Profile) -> Profile {
    Profile { memory: None, ..profile.clone() }
}

/// The same step without any place.
fn bare(profile: &Profile) -> Profile {
    let Profile { by, network, ports, .. } = profile.clone();
    Profile { by, network, ports, ..Profile::closed() }
}

/// What helps where this program may not make namespaces.
fn of_namespaces() -> String {
    let is = |setting: &str, value: &str| {
        let found = std::fs::read_to_string(Path::new("/proc/sys").join(setting));
        found.is_ok_and(|found| found.trim() == value)
    };
    if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        let program = std::env::current_exe().map(|program| program.display().to_string());
        let program = program.unwrap_or_else(|_| "this program".into());
        return format!(
            "AppArmor lets only programs with a profile do that: install the one for `{program}` that docs/confinement.md shows"
        );
    }
    if is("user/max_user_namespaces", "0") {
        return "run `sysctl user.max_user_namespaces=10000` as root".into();
    }
    if is("kernel/unprivileged_userns_clone", "0") {
        return "run `sysctl kernel.unprivileged_userns_clone=1` as root".into();
    }
    "the system does not let this program do that, as in many containers: there the container is the wall".into()
}

/// A program of that name, in none of the directories that commands may write in: what is there could be theirs.
pub(super) fn bwrap(programs: &[PathBuf], write: &[PathBuf]) -> Result<PathBuf, Unusable> {
    let is_theirs = |program: &Path| write.iter().any(|root| program.starts_with(root));
    let candidates = programs.iter().map(|directory| directory.join(BWRAP));
    let found = candidates.filter_map(|program| program.canonicalize().ok()).find(|program| !is_theirs(program));
    found.ok_or_else(|| Step::Bwrap.unusable("it is not on PATH", "install the package `bubblewrap`"))
}
