//! What runs later: files that a program runs or obeys by itself, so that whoever writes one acts when nobody is looking.
//!
//! Not among them is what somebody has to start by its name, such as source code, a Makefile or a workflow of CI: it is read before that,
//! or at least run on purpose.

use super::credentials::below_a_home;
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// By what somebody has a file act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acting {
    /// They enter the directory, open it, or type a git command.
    Opens,
    /// They start a package manager or a build.
    Builds,
    /// An agent of theirs reads it, and takes it for their own words.
    Words,
}

/// Files that one kind of program obeys.
#[derive(Debug, PartialEq, Eq)]
pub struct Later {
    /// What happens, as a question says it.
    pub what: &'static str,
    /// By what somebody has it act.
    pub acting: Acting,
    /// The manual that says so.
    pub source: &'static str,
    /// `~/below any home`, with `~/.*` for all that begins with a dot; `/absolute`; `$PATH` for what lies in one of its directories; `$0` for
    /// the running program. Anything else are names that follow each other in the path, anywhere and in any case; `*` begins a name
    /// of which only the end counts, `$` ends one that must be the file's own name. Any other also covers everything below it.
    pub places: &'static [&'static str],
}

/// All that runs later.
#[rustfmt::skip]
pub const LATER: [Later; 16] = [
    Later {
        what: "git runs hooks, and programs that its settings name",
        acting: Acting::Opens,
        source: "githooks(5); git-config(1), core.fsmonitor, core.pager, core.sshCommand, filter; git-init(1) on bare repositories, \
            of which `HEAD` is a part; the manuals of husky, pre-commit, lefthook and overcommit",
        places: &["*.git", "HEAD$", ".husky", ".githooks", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml",
            "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml",
            "lefthook-local.yml", ".lefthook-local.yml", ".overcommit.yml"],
    },
    Later {
        what: "a shell runs it when somebody enters the directory",
        acting: Acting::Opens,
        source: "direnv(1); mise, Configuration and Hooks; asdf",
        places: &[".envrc", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", ".config/mise", ".config/mise.toml"],
    },
    Later {
        what: "editors run tasks and programs that it names when the project is opened",
        acting: Acting::Opens,
        source: "VS Code, Tasks (runOn), Settings and workspace trust; IntelliJ IDEA, Startup Tasks; Zed, Tasks; Sublime Text, build_systems; \
            Vim 'exrc' and Neovim exrc; GNU Emacs manual, Directory Variables; Helix, languages.toml",
        places: &[".vscode", "*.code-workspace", ".vs", ".idea", ".run", ".fleet", ".zed", ".nova", "*.sublime-project", "*.sublime-workspace",
            ".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el", ".helix"],
    },
    Later {
        what: "it says what a container runs when the project is opened in it",
        acting: Acting::Opens,
        source: "containers.dev, Development Container metadata (initializeCommand, postCreateCommand); Gitpod, .gitpod.yml",
        places: &[".devcontainer", ".devcontainer.json", ".gitpod.yml"],
    },
    Later {
        what: "agents start servers, hooks and programs that it names",
        acting: Acting::Opens,
        source: "Model Context Protocol clients, .mcp.json; Claude Code, Settings and Hooks; Codex, config.toml; Gemini CLI, settings.json; Cursor, MCP \
            and Hooks; Windsurf, Cline, Roo, Continue, Copilot, Amazon Q, Kiro, Junie, opencode and aider, configuration",
        places: &[".mcp.json", "mcp.json", ".claude", ".agents", ".codex", ".gemini", ".cursor", ".windsurf", ".cline", ".roo", ".continue",
            ".github/agents", ".github/hooks", ".amazonq", ".kiro", ".junie", ".opencode", "opencode.json", "opencode.jsonc", ".aider.conf.yml",
            "toolcrib.toml"],
    },
    Later {
        what: "agents take it for their user's word",
        acting: Acting::Words,
        source: "Claude Code, Memory; Codex, AGENTS.md; Gemini CLI, GEMINI.md; Cursor, Windsurf, Cline and Roo, Rules; Copilot, Custom instructions; \
            goose, hints",
        places: &["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENT.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roomodes",
            ".github/copilot-instructions.md", ".github/instructions", ".goosehints"],
    },
    Later {
        what: "git fetches from where it says, when submodules are updated",
        acting: Acting::Builds,
        source: "gitmodules(5)",
        places: &[".gitmodules"],
    },
    Later {
        what: "package managers and builds run what it names, whatever is built",
        acting: Acting::Builds,
        source: "npmrc(5), script-shell and node-options; yarn, yarnPath; pnpm, .pnpmfile.cjs; The Cargo Book, build.rustc-wrapper and target.runner; \
            Maven, extensions.xml and jvm.config; Bundler, BUNDLE_PATH and plugins; bazelrc, run_under; uv and pip, index-url",
        places: &[".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins", ".pnpmfile.cjs", ".cargo/config.toml", ".cargo/config",
            ".mvn", ".bundle", ".bazelrc", "uv.toml", "pip.conf"],
    },
    Later {
        what: "interpreters and debuggers run it when they start here",
        acting: Acting::Opens,
        source: "Python, site (`.pth`, sitecustomize, usercustomize) and pdb (.pdbrc); gdb, Auto-loading; lldb, .lldbinit; Rprofile; irb and pry",
        places: &["*.pth", "sitecustomize.py", "usercustomize.py", ".pdbrc", ".gdbinit", ".lldbinit", ".rprofile", ".renviron", ".irbrc", ".pryrc"],
    },
    Later {
        what: "it is the command that somebody gets who calls it by its name",
        acting: Acting::Opens,
        source: "execvp(3), PATH; file-hierarchy(7), ~/.local/bin",
        places: &["$PATH", "~/bin"],
    },
    Later {
        what: "it is this program",
        acting: Acting::Opens,
        source: "Toolcrib itself",
        places: &["$0"],
    },
    Later {
        what: "macOS starts it at login, or for a service",
        acting: Acting::Opens,
        source: "launchd.plist(5); Automator and Script menu",
        places: &["~/Library"],
    },
    Later {
        what: "shells, desktop and services run or obey what begins with a dot in a home",
        acting: Acting::Opens,
        source: "bash(1), zsh(1), fish(1), FILES; systemd.unit(5), user units; Desktop Application Autostart Specification; git-config(1), FILES; \
            ssh_config(5), ProxyCommand; tmux(1), FILES; XDG Base Directory Specification",
        places: &["~/.*"],
    },
    Later {
        what: "the system starts it by the clock",
        acting: Acting::Opens,
        source: "cron(8), crontab(1), at(1)",
        places: &["/etc/crontab", "/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly", "/var/spool/cron",
            "/var/spool/at", "/var/spool/anacron", "/usr/lib/cron/tabs"],
    },
    Later {
        what: "the system starts it with a machine, a session or a device",
        acting: Acting::Opens,
        source: "systemd.unit(5), Unit File Load Path; init(8); udev(7); pam.d(5); environment.d(5); bash(1), /etc/profile; ld.so(8), /etc/ld.so.preload",
        places: &["/etc/systemd", "/etc/init.d", "/etc/rc.local", "/etc/udev", "/etc/pam.d", "/etc/environment", "/etc/environment.d", "/etc/profile",
            "/etc/profile.d", "/etc/bash.bashrc", "/etc/zsh", "/etc/ld.so.preload", "/etc/ld.so.conf.d", "/etc/xdg", "/run/systemd",
            "/usr/lib/systemd", "/usr/share/applications"],
    },
    Later {
        what: "the system is made of it, or set up by it",
        acting: Acting::Opens,
        source: "hier(7), file-hierarchy(7)",
        places: &super::protected::SYSTEM,
    },
];

/// What the places of the table are on one backend.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub home: PathBuf,
    /// Directories of `PATH`.
    pub programs: Vec<PathBuf>,
    /// The same, as it names them; known of this machine alone.
    pub path: Vec<PathBuf>,
    pub program: Option<PathBuf>,
}

impl Surroundings {
    /// What would run or obey a file of this path, which has no links.
    pub fn later(&self, path: &Path) -> Option<&'static Later> {
        LATER.iter().find(|later| later.places.iter().any(|place| self.covers(place, path)))
    }

    fn covers(&self, place: &str, path: &Path) -> bool {
        match place {
            "$PATH" => path.parent().is_some_and(|parent| self.programs.iter().any(|directory| directory == parent)),
            "$0" => self.program.as_deref() == Some(path),
            "~/.*" => self.below_a_home(path).any(begins_with_a_dot),
            _ => match place.strip_prefix("~/") {
                Some(place) => self.below_a_home(path).any(|below| below.starts_with(place)),
                None if place.starts_with('/') => path.starts_with(place),
                None => stands_in(place, path),
            },
        }
    }

    /// The rest of a path below this user's home and below what is a home by its place.
    fn below_a_home<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> {
        let own = path.strip_prefix(&self.home).ok().filter(|_| !self.home.as_os_str().is_empty());
        own.into_iter().chain(below_a_home(path))
    }
}

/// What the last name of a path, with those before it, has obeyed wherever it lies: none for what only lies below such a name, for what counts by
/// its place on this machine, and for repositories, which have gates.
pub fn obeyed_by_name(path: &Path) -> Option<&'static Later> {
    let name = path.file_name()?.as_encoded_bytes();
    // Most names are none of these: one look says so.
    let is_one = LAST.contains(name.to_ascii_lowercase().as_slice()) || ENDS.iter().any(|end| is_named(end, name));
    if !is_one {
        return None;
    }
    LATER.iter().find(|later| later.places.iter().any(|place| is_name(place) && ends_with(place, path)))
}

/// The last names of all places that are names.
static LAST: LazyLock<HashSet<Vec<u8>>> = LazyLock::new(|| {
    let last = |place: &&'static str| place.rsplit('/').next().unwrap_or(place).to_ascii_lowercase().into_bytes();
    names().filter(|place| !place.starts_with('*')).map(|place| last(&place)).collect()
});
/// Those of which the end counts.
static ENDS: LazyLock<Vec<&str>> = LazyLock::new(|| names().filter(|place| place.starts_with('*')).collect());

fn names() -> impl Iterator<Item = &'static str> {
    LATER.iter().flat_map(|later| later.places.iter().copied()).filter(|place| is_name(place))
}

/// A name that counts anywhere, and is none of git's own, which gates are about.
fn is_name(place: &str) -> bool {
    !place.starts_with(['~', '/', '$']) && !place.ends_with('$') && place != "*.git"
}

/// Whether names follow each other at the end of a path.
pub fn ends_with(names: &str, path: &Path) -> bool {
    let (names, mut parts) = (names.rsplit('/'), path.components().rev());
    names.into_iter().all(|name| match parts.next() {
        Some(Component::Normal(part)) => is_named(name, part.as_encoded_bytes()),
        Some(Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir) | None => false,
    })
}

fn begins_with_a_dot(below: &Path) -> bool {
    below.components().next().is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// Whether names follow each other in a path. Some file systems ignore case.
fn stands_in(names: &str, path: &Path) -> bool {
    if let Some(own) = names.strip_suffix('$') {
        return path.file_name().is_some_and(|name| is_named(own, name.as_encoded_bytes()));
    }
    let names: Vec<&str> = names.split('/').collect();
    let parts: Vec<&[u8]> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.as_encoded_bytes()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect();
    parts.windows(names.len()).any(|parts| names.iter().zip(parts).all(|(name, part)| is_named(name, part)))
}

fn is_named(name: &str, part: &[u8]) -> bool {
    match name.strip_prefix('*') {
        None => part.eq_ignore_ascii_case(name.as_bytes()),
        Some(end) => {
            let at = part.len().checked_sub(end.len());
            at.is_some_and(|at| part[at..].eq_ignore_ascii_case(end.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Surroundings {
        let programs = vec!["/opt/tools".into(), "/srv/app/node_modules/.bin".into()];
        let program = Some("/srv/toolcrib".into());
        Surroundings { home: "/srv/homes/u".into(), programs, program, ..Surroundings::default() }
    }

    fn what(path: &str) -> &'static str {
        here().later(Path::new(path)).map_or("", |later| later.what.split(' ').next().expect("a word"))
    }

    #[test]
    fn every_row_says_what_happens_and_where_that_is_written() {
        for later in &LATER {
            assert!(later.what.len() > 10 && later.source.len() > 10 && !later.places.is_empty(), "{}", later.what);
        }
        assert!(LATER.iter().map(|later| later.places.len()).sum::<usize>() > 100);
    }

    #[test]
    fn a_place_of_the_system_counts_by_its_own_row() {
        for (path, row) in [
            ("/etc/crontab", "by the clock"),
            ("/var/spool/at/a1", "by the clock"),
            ("/var/spool/anacron/cron.daily", "by the clock"),
            ("/etc/systemd/system/x.service", "with a machine"),
            ("/etc/ld.so.preload", "with a machine"),
            ("/etc/hosts", "is made of it"),
            ("/usr/bin/ls", "is made of it"),
        ] {
            let what = here().later(Path::new(path)).map_or("", |later| later.what);
            assert!(what.contains(row), "{path}: {what}");
        }
    }

    #[test]
    fn names_count_in_any_place_and_case() {
        for path in [
            "/w/.git/hooks/pre-commit",
            "/w/sub/.git",
            "/w/.git/modules/sub/config",
            "/w/.git/worktrees/x/config.worktree",
            "/srv/bare.git/hooks/post-receive",
            "/w/.GIT/config",
            "/w/a/HEAD",
        ] {
            assert_eq!(what(path), "git", "{path}");
        }
        assert_eq!(what("/w/.vscode/tasks.json"), "editors");
        assert_eq!(what("/w/.github/copilot-instructions.md"), "agents");
        assert_eq!(what("/w/x.pth"), "interpreters");
    }

    #[test]
    fn names_that_only_look_alike_do_not_count() {
        for path in [
            "/w/git/config",
            "/w/.gitignore",
            "/w/.gitattributes",
            "/w/vscode/tasks.json",
            "/w/.github/workflows/ci.yml",
            "/w/Makefile",
            "/w/src/main.rs",
            "/w/.env",
            "/w/HEADER",
            "/w/components/head/x.tsx",
            "/w/config",
            "/w/claude.txt",
            "/w/.cargo/registry",
            "/opt/tools/below/file",
            "/srv/toolcrib2",
        ] {
            assert_eq!(what(path), "", "{path}");
        }
    }

    #[test]
    fn what_begins_with_a_dot_counts_directly_below_a_home_alone() {
        for path in
            ["/srv/homes/u/.new", "/srv/homes/u/.config/systemd/user/x.service", "/root/.profile", "/home/other/.x/y"]
        {
            assert_eq!(what(path), "shells,", "{path}");
        }
        for path in ["/srv/homes/u/notes/.hidden", "/srv/homes/u/notes", "/srv/homes/v/.x", "/home/other/notes"] {
            assert_eq!(what(path), "", "{path}");
        }
    }

    #[test]
    fn a_name_counts_by_itself_and_not_what_lies_below_it() {
        let what = |path: &str| obeyed_by_name(Path::new(path)).map(|later| later.acting);
        for (path, class) in [
            ("a/.envrc", Some(Acting::Opens)),
            (".VSCode", Some(Acting::Opens)),
            ("x.code-workspace", Some(Acting::Opens)),
            ("a/.github/hooks", Some(Acting::Opens)),
            ("a/.github/Instructions", Some(Acting::Words)),
            ("AGENTS.md", Some(Acting::Words)),
            (".cargo/config.toml", Some(Acting::Builds)),
            (".npmrc", Some(Acting::Builds)),
            (".gitmodules", Some(Acting::Builds)),
            (".vscode/tasks.json", None),
            ("hooks", None),
            ("config.toml", None),
            (".git", None),
            ("bare.git", None),
            ("HEAD", None),
            ("bin", None),
        ] {
            assert_eq!(what(path), class, "{path}");
        }
    }

    #[test]
    fn programs_count_by_the_directories_of_path_and_by_the_one_that_runs() {
        assert_eq!((what("/opt/tools/ls"), what("/srv/toolcrib"), what("/srv/homes/u/bin/ls")), ("it", "it", "it"));
    }
}
