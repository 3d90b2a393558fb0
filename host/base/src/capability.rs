//! What capabilities there are. Whatever depends on the kind matches on [`Capability`] without a catch-all arm, so that a new one does not
//! compile before its parts exist: its settings (`Capability::section`, `Policy::switch`), its grant (`policy/lib.rs`) and its refusal
//! (`policy/grants.rs`), its clauses (`policy/explain.rs`), its effects (`formats/definitions.rs`), and how it is allowed (`Capability::options`).
//!
//! What the compiler cannot see, tests do: that each has its interface in `wit/`, whose functions can refuse, its keys among the settings, a
//! refusal for whoever was granted nothing, its option of `plugin allow`, its face in the SDK, and its rows in the documents.

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

/// An option of `toolcrib plugin allow`: a line of a plugin's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowOption {
    /// The functions of which one has to be called for the plugin to need it; any, where none is named.
    pub functions: &'static [&'static str],
    /// What it lets the plugin do.
    pub what: &'static str,
    /// As it is typed.
    pub option: &'static str,
}

/// What a plugin's section says of a capability: keys below `[plugin.NAME]`.
#[derive(Clone, Copy, Debug)]
pub struct SectionKeys {
    /// Each gives some of it.
    pub grants: &'static [&'static str],
    /// Each only narrows or shapes what the others give.
    pub narrows: &'static [&'static str],
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

    /// The name of its interface.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Exec => "exec",
            Self::Programs => "programs",
            Self::Panes => "panes",
            Self::PaneSessions => "pane-sessions",
            Self::Files => "files",
            Self::Http => "http",
            Self::Browser => "browser",
            Self::Mail => "mail",
            Self::Embedder => "embedder",
            Self::Introspect => "introspect",
            Self::Records => "records",
            Self::Jobs => "jobs",
            Self::Schedules => "schedules",
            Self::Events => "events",
            Self::Upstream => "upstream",
        }
    }

    /// The capability of an interface.
    #[must_use]
    pub fn of_interface(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.name() == name)
    }

    /// The capability whose grant decides on it: typing into a pane is running a command.
    #[must_use]
    pub const fn decided_with(self) -> Self {
        match self {
            Self::Shell | Self::Panes | Self::PaneSessions => Self::Shell,
            Self::Exec => Self::Exec,
            Self::Programs => Self::Programs,
            Self::Files => Self::Files,
            Self::Http => Self::Http,
            Self::Browser => Self::Browser,
            Self::Mail => Self::Mail,
            Self::Embedder => Self::Embedder,
            Self::Introspect => Self::Introspect,
            Self::Records => Self::Records,
            Self::Jobs => Self::Jobs,
            Self::Schedules => Self::Schedules,
            Self::Events => Self::Events,
            Self::Upstream => Self::Upstream,
        }
    }

    /// Whether it is granted by a word and not by a list.
    pub const fn is_switch(self) -> bool {
        match self {
            Self::Shell | Self::Panes | Self::PaneSessions | Self::Introspect | Self::Records | Self::Schedules => true,
            Self::Exec
            | Self::Programs
            | Self::Files
            | Self::Http
            | Self::Browser
            | Self::Mail
            | Self::Embedder
            | Self::Jobs
            | Self::Events
            | Self::Upstream => false,
        }
    }

    /// What is done by it.
    pub const fn deed(self) -> Deed {
        match self {
            Self::Shell | Self::Exec | Self::Programs => Deed::Command,
            Self::Panes
            | Self::PaneSessions
            | Self::Files
            | Self::Http
            | Self::Browser
            | Self::Mail
            | Self::Embedder
            | Self::Records
            | Self::Jobs
            | Self::Schedules
            | Self::Upstream => Deed::Other,
            Self::Introspect | Self::Events => Deed::None,
        }
    }

    /// The keys of a plugin's section that are about it.
    #[must_use]
    pub const fn section(self) -> SectionKeys {
        match self {
            Self::Shell | Self::Panes | Self::PaneSessions => SectionKeys { grants: &["shell"], narrows: &[] },
            Self::Exec => SectionKeys { grants: &["exec.programs"], narrows: &["exec.environment"] },
            Self::Programs => SectionKeys { grants: &["programs"], narrows: &[] },
            Self::Files => SectionKeys { grants: &["files.read", "files.write"], narrows: &[] },
            Self::Http => SectionKeys {
                grants: &["http.hosts"],
                narrows: &["http.methods", "http.paths", "http.base", "http.headers"],
            },
            Self::Browser => SectionKeys {
                grants: &["browser.hosts"],
                narrows: &[
                    "browser.profiles",
                    "browser.evaluate",
                    "browser.downloads",
                    "browser.uploads",
                    "browser.secrets",
                ],
            },
            Self::Mail => SectionKeys { grants: &["mail"], narrows: &[] },
            Self::Embedder => SectionKeys { grants: &["embedder.kinds"], narrows: &[] },
            Self::Introspect => SectionKeys { grants: &["introspect"], narrows: &[] },
            Self::Records => SectionKeys { grants: &["records"], narrows: &[] },
            Self::Jobs => SectionKeys { grants: &["jobs"], narrows: &[] },
            Self::Schedules => SectionKeys { grants: &["schedules"], narrows: &[] },
            Self::Events | Self::Upstream => SectionKeys { grants: &[], narrows: &[] },
        }
    }

    /// What lets a plugin use it.
    #[must_use]
    pub const fn options(self) -> &'static [AllowOption] {
        const PANE: AllowOption = AllowOption { functions: &[], what: "use panes", option: "--pane" };
        match self {
            Self::Shell => &[AllowOption { functions: &[], what: "run commands", option: "--shell" }],
            Self::Exec => &[AllowOption { functions: &[], what: "start programs", option: "--exec PROGRAM" }],
            Self::Programs => {
                &[AllowOption { functions: &[], what: "run declared programs", option: "--program NAME" }]
            }
            Self::Panes | Self::PaneSessions => &[PANE],
            Self::Files => &[
                AllowOption {
                    functions: &["read", "read-whole", "read-bytes", "list-directory", "stat"],
                    what: "read files",
                    option: "--read DIR",
                },
                AllowOption {
                    functions: &["write", "replace", "append", "make-directory"],
                    what: "write files",
                    option: "--write DIR",
                },
            ],
            Self::Http => &[AllowOption { functions: &[], what: "make requests", option: "--host HOST" }],
            Self::Browser => &[AllowOption { functions: &[], what: "use a browser", option: "--browse HOST" }],
            Self::Mail => &[AllowOption { functions: &[], what: "read mail", option: "--mail NAME" }],
            Self::Embedder => {
                &[AllowOption { functions: &[], what: "hand events to the embedder", option: "--event KIND" }]
            }
            Self::Introspect => {
                &[AllowOption { functions: &[], what: "look at settings and contexts", option: "--introspect" }]
            }
            Self::Records => &[AllowOption { functions: &[], what: "keep documents", option: "--records" }],
            Self::Jobs => &[AllowOption { functions: &[], what: "submit jobs", option: "--job TOOL" }],
            Self::Schedules => {
                &[AllowOption { functions: &[], what: "have jobs and events at set times", option: "--schedules" }]
            }
            Self::Events | Self::Upstream => &[],
        }
    }
}

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
            let named: BTreeSet<&str> =
                capability.options().iter().flat_map(|option| option.functions).copied().collect();
            let text = std::fs::read_to_string(wit.join(format!("{}.wit", capability.name()))).expect("its file");
            let functions: BTreeSet<&str> =
                text.lines().filter_map(|line| Some(line.trim().split_once(": func(")?.0)).collect();
            assert!(named.is_empty() || named == functions, "{capability:?}: {named:?}, {functions:?}");
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
