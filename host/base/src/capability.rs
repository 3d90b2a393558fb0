//! What capabilities there are, and what is so of each: one row of `Capability::about`, and one of [`OPTIONS`].
//!
//! A new one does not compile before it has its row here, its grant (the table of `policy/lib.rs`), and its file in `guest/capability/`. What the
//! compiler cannot see, tests do: that it has its interface in `wit/` and its line in the world, whose functions can refuse, its keys among the
//! settings (`config/plugins.rs`, `config/default.toml`), a refusal for whoever was granted nothing, its face in the SDK, and its rows in the documents.

/// A WIT interface through which a plugin reaches the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// Commands, in processes of their own or in panes.
    Shell,
    /// Programs, without a shell between.
    Exec,
    /// Programs that the user has declared.
    Programs,
    /// Looking at panes, and typing into them.
    Panes,
    /// tmux sessions and panes, made and ended.
    PaneSessions,
    /// Files, by path.
    Files,
    /// Requests to web servers.
    Http,
    /// Pages of the web, in a browser.
    Browser,
    /// The user's mail, read only.
    Mail,
    /// Events for the program around the host.
    Embedder,
    /// What there is to know of where a call is made.
    Introspect,
    /// Documents that stay.
    Records,
    /// Calls that outlive their caller.
    Jobs,
    /// Such calls, and events, at set times.
    Schedules,
    /// What a call says while it runs.
    Events,
    /// A tool of somebody else's server. No interface: no component calls one, and each is a tool by itself.
    Upstream,
}

/// What is done by a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A command of its own is run, once it was admitted.
    Command,
    /// Something else is done, or a command in a place that others share, or later.
    Other,
    /// Nothing: something is looked at, or said to whoever watches the call.
    None,
}

/// How far a tool reaches by a capability, as lists of tools tell clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is changed, and nothing beyond this host's files is reached.
    None,
    /// Documents of this host's own are changed.
    Keeps,
    /// Servers are asked, and nothing is changed there.
    Asks,
    /// Anything: a command can do that, and so can a server with what it is given. Agents are moved, people are spoken to, now or later.
    Acts,
    /// The same, by this function; a plugin of this program that does not call it does nothing.
    ActsBy(&'static str),
    /// Files are changed, as far as the grant reaches.
    Writes,
    /// Servers are asked, and changed as far as the grant's methods reach.
    Sends,
}

/// A setting of `[tools]` that switches capabilities for every plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// `shell_enabled`
    Shell,
    /// `files_enabled`
    Files,
    /// `fetch_enabled`, and `search_enabled` for those that search
    Fetch,
    /// `browser_enabled`
    Browser,
    /// `mail_enabled`
    Mail,
}

/// An option of `toolcrib plugin allow`: a line of a plugin's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowOption {
    /// The capabilities that it lets the plugin use.
    pub of: &'static [Capability],
    /// Of their functions those of which one has to be called for the plugin to need it; any, where none is named.
    pub functions: &'static [&'static str],
    /// What it lets the plugin do.
    pub what: &'static str,
    /// As it is typed.
    pub option: &'static str,
    /// What help says of it.
    pub help: &'static str,
    /// The key of the section that it writes.
    pub key: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// The options that only narrow what this one gives.
    pub narrowed_by: &'static [Narrowing],
}

/// An option that only narrows what another one gives: it takes words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// As it is typed.
    pub option: &'static str,
    /// What help says of it.
    pub help: &'static str,
    /// The key of the section that it writes.
    pub key: &'static str,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it switches something on.
    Nothing,
    /// An entry of a list, each time it is given.
    Words,
    /// A directory, each time it is given.
    Directories,
}

/// What a plugin's section says of a capability: keys below `[plugin.NAME]`.
#[derive(Clone, Copy, Debug)]
pub struct SectionKeys {
    /// Each gives some of it.
    pub grants: &'static [&'static str],
    /// Each only narrows or shapes what the others give.
    pub narrows: &'static [&'static str],
}

/// What is so of one capability.
struct About {
    /// The name of its interface.
    name: &'static str,
    /// The capability whose grant decides on it.
    decided_with: Capability,
    /// The setting that switches it for every plugin.
    switched_by: Option<Switch>,
    /// Whether it is granted by a word and not by a list.
    is_switch: bool,
    deed: Deed,
    effect: Effect,
    section: SectionKeys,
}

impl serde::Serialize for Capability {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Capability {
    /// Every interface of the contract.
    pub const ALL: [Self; 15] = [
        Self::Shell,
        Self::Exec,
        Self::Programs,
        Self::Panes,
        Self::PaneSessions,
        Self::Files,
        Self::Http,
        Self::Browser,
        Self::Mail,
        Self::Embedder,
        Self::Introspect,
        Self::Records,
        Self::Jobs,
        Self::Schedules,
        Self::Events,
    ];

    const fn about(self) -> About {
        match self {
            Self::Shell => About {
                name: "shell",
                decided_with: self,
                switched_by: Some(Switch::Shell),
                is_switch: true,
                deed: Deed::Command,
                effect: Effect::Acts,
                section: SectionKeys { grants: &["shell"], narrows: &[] },
            },
            Self::Exec => About {
                name: "exec",
                decided_with: self,
                switched_by: Some(Switch::Shell),
                is_switch: false,
                deed: Deed::Command,
                effect: Effect::Acts,
                section: SectionKeys { grants: &["exec.programs"], narrows: &["exec.environment"] },
            },
            Self::Programs => About {
                name: "programs",
                decided_with: self,
                switched_by: Some(Switch::Shell),
                is_switch: false,
                deed: Deed::Command,
                effect: Effect::ActsBy("[method]run.start"),
                section: SectionKeys { grants: &["programs"], narrows: &[] },
            },
            // Typing into a pane is running a command.
            Self::Panes => About {
                name: "panes",
                decided_with: Self::Shell,
                switched_by: Some(Switch::Shell),
                is_switch: true,
                deed: Deed::Other,
                effect: Effect::ActsBy("send"),
                section: SectionKeys { grants: &["shell"], narrows: &[] },
            },
            Self::PaneSessions => About {
                name: "pane-sessions",
                decided_with: Self::Shell,
                switched_by: Some(Switch::Shell),
                is_switch: true,
                deed: Deed::Other,
                effect: Effect::Acts,
                section: SectionKeys { grants: &["shell"], narrows: &[] },
            },
            Self::Files => About {
                name: "files",
                decided_with: self,
                switched_by: Some(Switch::Files),
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::Writes,
                section: SectionKeys { grants: &["files.read", "files.write"], narrows: &[] },
            },
            Self::Http => About {
                name: "http",
                decided_with: self,
                switched_by: Some(Switch::Fetch),
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::Sends,
                section: SectionKeys {
                    grants: &["http.hosts"],
                    narrows: &["http.methods", "http.paths", "http.base", "http.headers"],
                },
            },
            Self::Browser => About {
                name: "browser",
                decided_with: self,
                switched_by: Some(Switch::Browser),
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::Acts,
                section: SectionKeys {
                    grants: &["browser.hosts"],
                    narrows: &[
                        "browser.profiles",
                        "browser.evaluate",
                        "browser.downloads",
                        "browser.uploads",
                        "browser.secrets",
                    ],
                },
            },
            Self::Mail => About {
                name: "mail",
                decided_with: self,
                switched_by: Some(Switch::Mail),
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::Asks,
                section: SectionKeys { grants: &["mail"], narrows: &[] },
            },
            Self::Embedder => About {
                name: "embedder",
                decided_with: self,
                switched_by: None,
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::Acts,
                section: SectionKeys { grants: &["embedder.kinds"], narrows: &[] },
            },
            Self::Introspect => About {
                name: "introspect",
                decided_with: self,
                switched_by: None,
                is_switch: true,
                deed: Deed::None,
                effect: Effect::None,
                section: SectionKeys { grants: &["introspect"], narrows: &[] },
            },
            Self::Records => About {
                name: "records",
                decided_with: self,
                switched_by: None,
                is_switch: true,
                deed: Deed::Other,
                effect: Effect::Keeps,
                section: SectionKeys { grants: &["records"], narrows: &[] },
            },
            Self::Jobs => About {
                name: "jobs",
                decided_with: self,
                switched_by: None,
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::ActsBy("submit"),
                section: SectionKeys { grants: &["jobs"], narrows: &[] },
            },
            Self::Schedules => About {
                name: "schedules",
                decided_with: self,
                switched_by: None,
                is_switch: true,
                deed: Deed::Other,
                effect: Effect::Acts,
                section: SectionKeys { grants: &["schedules"], narrows: &[] },
            },
            Self::Events => About {
                name: "events",
                decided_with: self,
                switched_by: None,
                is_switch: false,
                deed: Deed::None,
                effect: Effect::None,
                section: SectionKeys { grants: &[], narrows: &[] },
            },
            Self::Upstream => About {
                name: "upstream",
                decided_with: self,
                switched_by: None,
                is_switch: false,
                deed: Deed::Other,
                effect: Effect::Acts,
                section: SectionKeys { grants: &[], narrows: &[] },
            },
        }
    }

    /// The name of its interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// The capability of an interface.
    #[must_use]
    pub fn of_interface(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.name() == name)
    }

    /// The capability whose grant decides on it: typing into a pane is running a command.
    #[must_use]
    pub const fn decided_with(self) -> Self {
        self.about().decided_with
    }

    /// The setting that switches it for every plugin; none where there is no such setting.
    #[must_use]
    pub const fn switched_by(self) -> Option<Switch> {
        self.about().switched_by
    }

    /// Whether it is granted by a word and not by a list.
    pub const fn is_switch(self) -> bool {
        self.about().is_switch
    }

    /// What is done by it.
    pub const fn deed(self) -> Deed {
        self.about().deed
    }

    /// How far tools reach by it.
    #[must_use]
    pub const fn effect(self) -> Effect {
        self.about().effect
    }

    /// The keys of a plugin's section that are about it.
    #[must_use]
    pub const fn section(self) -> SectionKeys {
        self.about().section
    }

    /// What lets a plugin use it.
    pub fn options(self) -> impl Iterator<Item = &'static AllowOption> {
        OPTIONS.iter().filter(move |option| option.of.contains(&self))
    }
}

/// The options of `toolcrib plugin allow`, in the order of its help.
pub const OPTIONS: &[AllowOption] = &[
    AllowOption {
        of: &[Capability::Files],
        functions: &[
            "read",
            "read-whole",
            "read-encoded",
            "read-bytes",
            "list-directory",
            "stat",
            "search",
            "find",
            "notation",
        ],
        what: "read files",
        option: "--read DIR",
        help: "Let it read below this directory (repeatable)",
        key: "files.read",
        takes: Takes::Directories,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Files],
        functions: &["write", "replace", "write-encoded", "append", "make-directory", "undo"],
        what: "write files",
        option: "--write DIR",
        help: "Let it write below this directory (repeatable)",
        key: "files.write",
        takes: Takes::Directories,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Shell],
        functions: &[],
        what: "run commands",
        option: "--shell",
        help: "Let it run commands",
        key: "shell",
        takes: Takes::Nothing,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Panes, Capability::PaneSessions],
        functions: &[],
        what: "use panes",
        option: "--pane",
        help: "Let it use panes as well, whose shells others may have changed",
        key: "shell.pane",
        takes: Takes::Nothing,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Exec],
        functions: &[],
        what: "start programs",
        option: "--exec PROGRAM",
        help: "Let it start this program without a shell between: a name that is found on PATH, an absolute path, or `*` (repeatable)",
        key: "exec.programs",
        takes: Takes::Words,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Programs],
        functions: &[],
        what: "run declared programs",
        option: "--program NAME",
        help: "Let it run this program, which your settings declare by [program.NAME], or `*` for all of them (repeatable)",
        key: "programs",
        takes: Takes::Words,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Http],
        functions: &[],
        what: "make requests",
        option: "--host HOST",
        help: "Let it make requests to this host: a name, `*.example.com` for its subdomains, an address or a range (repeatable)",
        key: "http.hosts",
        takes: Takes::Words,
        narrowed_by: &[
            Narrowing {
                option: "--method METHOD",
                help: "Let these requests use this method; default: GET and HEAD (repeatable)",
                key: "http.methods",
            },
            Narrowing {
                option: "--path PREFIX",
                help: "Let these requests go to this path and below it; default: every path (repeatable)",
                key: "http.paths",
            },
        ],
    },
    AllowOption {
        of: &[Capability::Browser],
        functions: &[],
        what: "use a browser",
        option: "--browse HOST",
        help: "Let it use a browser whose pages may come from this host: a name, `*.example.com` for its subdomains, an address or a range (repeatable)",
        key: "browser.hosts",
        takes: Takes::Words,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Mail],
        functions: &[],
        what: "read mail",
        option: "--mail NAME",
        help: "Let it read the mail of this account, a section [mail.NAME] of the settings, or `*` for all accounts (repeatable)",
        key: "mail",
        takes: Takes::Words,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Jobs],
        functions: &[],
        what: "submit jobs",
        option: "--job TOOL",
        help: "Let it submit calls of this tool as jobs, and see such jobs, or `*` for all tools (repeatable)",
        key: "jobs",
        takes: Takes::Words,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Schedules],
        functions: &[],
        what: "have jobs and events at set times",
        option: "--schedules",
        help: "Let it have such jobs, and events that it may hand over (`schedule.fired`), at set times",
        key: "schedules",
        takes: Takes::Nothing,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Records],
        functions: &[],
        what: "keep documents",
        option: "--records",
        help: "Let it keep documents from one call to the next",
        key: "records",
        takes: Takes::Nothing,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Introspect],
        functions: &[],
        what: "look at settings and contexts",
        option: "--introspect",
        help: "Let it look at settings, and at what toolsets declare",
        key: "introspect",
        takes: Takes::Nothing,
        narrowed_by: &[],
    },
    AllowOption {
        of: &[Capability::Embedder],
        functions: &[],
        what: "hand events to the embedder",
        option: "--event KIND",
        help: "Let it hand events of this kind to the embedder: `message.send`, `message.*` for all that begin so, or `*` (repeatable)",
        key: "embedder.kinds",
        takes: Takes::Words,
        narrowed_by: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The contract is the list: each interface of `wit/` that a plugin imports is a capability, and none is anything else.
    #[test]
    fn every_imported_interface_of_the_contract_is_a_capability() {
        let wit = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let world = std::fs::read_to_string(wit.join("world.wit")).expect("the world of plugins");
        let imports = world.lines().filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'));
        let imports: BTreeSet<&str> = imports.collect();
        let capabilities: BTreeSet<&str> = Capability::ALL.into_iter().map(Capability::name).collect();
        assert_eq!(imports, capabilities);
        for name in imports {
            assert_eq!(Capability::of_interface(name).map(Capability::name), Some(name));
            let text = std::fs::read_to_string(wit.join(format!("{name}.wit"))).expect("a file of its name");
            assert!(text.contains(&format!("interface {name} {{")), "{name}");
        }
    }

    /// A function that needs a grant and cannot say `denied` would have to end the call instead.
    #[test]
    fn every_function_of_what_needs_a_grant_can_refuse_or_answers_nothing() {
        let wit = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        for capability in Capability::ALL.into_iter().filter(|capability| !capability.section().grants.is_empty()) {
            let text = std::fs::read_to_string(wit.join(format!("{}.wit", capability.name()))).expect("its file");
            let functions: Vec<&str> = text.lines().filter(|line| line.contains(": func(")).collect();
            let refuses = |line: &&str| line.contains("-> result<") && line.ends_with(", failure>;");
            assert!(functions.iter().any(refuses), "{capability:?}");
            for function in functions.iter().filter(|line| line.contains(" -> ")) {
                assert!(refuses(function), "{capability:?}: {function}");
            }
        }
    }

    /// Else a plugin that uses just that function would be said to ask for nothing.
    #[test]
    fn where_options_name_functions_each_function_of_the_interface_is_named() {
        let wit = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        for capability in Capability::ALL {
            let named: BTreeSet<&str> = capability.options().flat_map(|option| option.functions).copied().collect();
            let text = std::fs::read_to_string(wit.join(format!("{}.wit", capability.name()))).expect("its file");
            let functions: BTreeSet<&str> =
                text.lines().filter_map(|line| Some(line.trim().split_once(": func(")?.0)).collect();
            assert!(named.is_empty() || named == functions, "{capability:?}: {named:?}, {functions:?}");
        }
    }

    /// Else nobody could allow it, or an option would write what decides on nothing.
    #[test]
    fn every_key_that_grants_is_written_by_an_option() {
        for capability in Capability::ALL {
            let keys = capability.section();
            let written: BTreeSet<&str> =
                capability.options().map(|option| option.key.trim_end_matches(".pane")).collect();
            assert_eq!(written, keys.grants.iter().copied().collect(), "{capability:?}");
            let narrowed = capability.options().flat_map(|option| option.narrowed_by).map(|narrowing| narrowing.key);
            assert!(narrowed.into_iter().all(|key| keys.narrows.contains(&key)), "{capability:?}");
        }
    }

    #[test]
    fn every_capability_has_a_face_in_the_sdk_and_a_row_in_the_contract() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let contract = std::fs::read_to_string(root.join("wit/README.md")).expect("the contract's page");
        for capability in Capability::ALL {
            let name = capability.name();
            assert!(contract.contains(&format!("[{name}.wit]({name}.wit)")), "{name}");
            assert!(root.join(format!("sdk/src/{}.rs", name.replace('-', "_"))).exists(), "{name}");
        }
    }
}
