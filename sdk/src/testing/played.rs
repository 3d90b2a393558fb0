//! The interfaces of the contract as the other modules of this crate use them, answered by what a test has played.
//!
//! They have the shape of the generated bindings, which stand here in a component. A resource gathers what it is told; the function that ends
//! it is the call. What it is told several times is a list.

use super::call::{Call, Signature};
use super::values::{Write, object};
use crate::bindings::toolcrib::plugin as contract;
use serde_json::Value;
use std::cell::RefCell;

type Answered<T> = Result<T, contract::types::Failure>;

/// All calls that there are.
pub(super) const SIGNATURES: &[&[Signature]] = &[
    shell::Command::SIGNATURES,
    exec::Process::SIGNATURES,
    programs::SIGNATURES,
    programs::Run::SIGNATURES,
    files::SIGNATURES,
    panes::SIGNATURES,
    pane_sessions::SIGNATURES,
    http::Request::SIGNATURES,
    browser::SIGNATURES,
    mail::SIGNATURES,
    embedder::Event::SIGNATURES,
    introspect::SIGNATURES,
    records::SIGNATURES,
    records::Batch::SIGNATURES,
    records::Query::SIGNATURES,
    jobs::SIGNATURES,
    jobs::Submission::SIGNATURES,
    jobs::Query::SIGNATURES,
    schedules::SIGNATURES,
    schedules::Plan::SIGNATURES,
];

/// Functions of an interface: a call each.
macro_rules! functions {
    ($interface:literal: $($function:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        pub(in super::super) const SIGNATURES: &[Signature] = &[
            $(Signature { interface: $interface, function: stringify!($function), arguments: &[$(stringify!($argument)),*] }),+
        ];

        $(pub(crate) fn $function($($argument: $type),*) -> Answered<$result> {
            Call::new([$((stringify!($argument), $argument.write())),*]).answer($interface, stringify!($function))
        })+
    };
}

/// A resource: its constructor and what sets one thing (`set`), adds to a list (`add`, with the name of that), or adds itself to a list (`step`)
/// gather the arguments of the calls that end it (`end`).
macro_rules! resource {
    ($interface:literal: $resource:ident($($argument:ident: $type:ty),*) {
        $(set $set:ident($($set_argument:ident: $set_type:ty),*);)*
        $(add $list:ident by $add:ident($($add_argument:ident: $add_type:ty),+);)*
        $(step $steps:ident by $step:ident($($step_argument:ident: $step_type:ty),+);)*
        $(end $end:ident -> $result:ty;)+
    }) => {
        #[derive(Debug)]
        pub(crate) struct $resource(RefCell<Call>);

        impl $resource {
            const ARGUMENTS: &[&str] =
                &[$(stringify!($argument),)* $(stringify!($set),)* $(stringify!($list),)* $(stringify!($steps),)*];
            pub(in super::super) const SIGNATURES: &[Signature] = &[
                $(Signature { interface: $interface, function: stringify!($end), arguments: Self::ARGUMENTS }),+
            ];

            pub(crate) fn new($($argument: $type),*) -> Self {
                Self(RefCell::new(Call::new([$((stringify!($argument), $argument.write())),*])))
            }

            $(pub(crate) fn $set(&self $(, $set_argument: $set_type)*) {
                self.0.borrow_mut().set(stringify!($set), told([$($set_argument.write()),*]));
            })*

            $(pub(crate) fn $add(&self $(, $add_argument: $add_type)+) {
                self.0.borrow_mut().add(stringify!($list), told([$($add_argument.write()),+]));
            })*

            $(pub(crate) fn $step(&self $(, $step_argument: $step_type)+) {
                let step = told([$($step_argument.write()),+]);
                self.0.borrow_mut().add(stringify!($steps), object([(stringify!($step), step)]));
            })*

            $(pub(crate) fn $end(&self) -> Answered<$result> {
                self.0.borrow().clone().answer($interface, stringify!($end))
            })+
        }
    };
}

/// Returns what a resource is told by one call: that it was called, the argument, or several of them.
fn told<const N: usize>(arguments: [Value; N]) -> Value {
    match N {
        0 => true.into(),
        1 => arguments.into_iter().collect::<Vec<_>>().remove(0),
        _ => arguments.into_iter().collect(),
    }
}

pub(crate) mod shell {
    use super::contract::types::{Declaration, Pane};
    use super::*;
    pub(crate) use contract::shell::Wait;
    pub use contract::shell::{Finished, Outcome};

    resource! { "shell": Command(text: &str, declaration: &Declaration) {
        set in_pane(pane: &Pane);
        set wait(wait: Wait);
        set head(chars: u32);
        set tail(chars: u32);
        set directory(path: &str);
        set stdin(bytes: &[u8]);
        set own_process();
        add environment by environment(name: &str, value: &str);
        end run -> Outcome;
    } }
}

pub(crate) mod exec {
    use super::contract::types::Declaration;
    use super::*;
    pub use contract::exec::Finished;

    resource! { "exec": Process(program: &str, arguments: &[String], declaration: &Declaration) {
        set directory(path: &str);
        set stdin(bytes: &[u8]);
        set at_most_ms(ms: u64);
        set head_and_tail(head: u32, tail: u32);
        add environment by environment(name: &str, value: &str);
        end run -> Finished;
    } }
}

pub(crate) mod programs {
    use super::*;
    pub use contract::programs::{Finished, Program};

    functions! { "programs":
        declared() -> Vec<Program>;
    }

    resource! { "programs": Run(program: &str, arguments: &[String]) {
        set stdin(bytes: &[u8]);
        set at_most_ms(ms: u64);
        set head_and_tail(head: u32, tail: u32);
        end start -> Finished;
    } }
}

pub(crate) mod files {
    use super::contract::types::Captured;
    use super::*;
    pub(crate) use contract::files::{Entry, EntryKind, Listing, Whole};

    functions! { "files":
        read(path: &str, offset: u64, max: u32) -> Captured;
        write(path: &str, content: &[u8]) -> u64;
        read_whole(path: &str) -> Whole;
        replace(path: &str, content: &[u8], revision: &str) -> u64;
        read_bytes(path: &str, offset: u64, max: u32) -> Vec<u8>;
        append(path: &str, content: &[u8]) -> u64;
        list_directory(path: &str, max: u32) -> Listing;
        stat(path: &str) -> Entry;
        make_directory(path: &str) -> bool;
    }
}

pub(crate) mod panes {
    use super::contract::types::{Declaration, Pane};
    use super::*;
    pub use contract::panes::{Input, Place, Screen, View};

    functions! { "panes":
        capture(pane: &Pane, view: &View, delay_ms: u64) -> Screen;
        send(pane: &Pane, input: &Input, delay_ms: u64, declaration: &Declaration) -> Place;
    }
}

pub(crate) mod pane_sessions {
    use super::contract::types::{Declaration, Place};
    use super::*;

    functions! { "pane-sessions":
        create_session(session: &str, declaration: &Declaration) -> Place;
        kill_session(session: &str, declaration: &Declaration) -> String;
        create_pane(session: Option<&str>, pane: &str, declaration: &Declaration) -> Place;
        kill_pane(session: Option<&str>, pane: &str, declaration: &Declaration) -> Place;
    }
}

pub(crate) mod http {
    use super::*;
    pub(crate) use contract::http::Response;

    resource! { "http": Request(method: &str, url: &str) {
        set body(bytes: &[u8]);
        set limit(bytes: u32);
        add headers by header(name: &str, value: &str);
        end send -> Response;
    } }
}

pub(crate) mod browser {
    use super::contract::types::Captured;
    use super::*;
    pub use contract::browser::{Action, Answer, Destination, Effect, Entry, Tab, View};

    functions! { "browser":
        tabs() -> Vec<Tab>;
        open(url: Option<&str>, profile: Option<&str>) -> Effect;
        go(tab: Option<&str>, to: &Destination) -> Effect;
        look(tab: Option<&str>, view: &View) -> Captured;
        act(tab: Option<&str>, element: Option<&str>, action: &Action, dialogs: Option<&Answer>) -> Effect;
        wait(tab: Option<&str>, text: &str, gone: bool, ms: u32) -> Effect;
        image(tab: Option<&str>, element: Option<&str>, full_page: bool) -> Vec<u8>;
        evaluate(tab: Option<&str>, script: &str) -> Captured;
        activate(tab: &str) -> Effect;
        close(tab: Option<&str>) -> u32;
    }
}

pub(crate) mod mail {
    use super::*;
    pub use contract::mail::{Address, Content, Folder, Found, Header, Message, Part, Query};

    functions! { "mail":
        accounts() -> Vec<String>;
        folders(account: Option<&str>) -> Vec<Folder>;
        search(account: Option<&str>, query: &Query) -> Found;
        read(id: &str, offset: u64, chars: u32) -> Message;
        attachment(id: &str, part: &str, offset: u64, chars: u32) -> Content;
    }
}

pub(crate) mod embedder {
    use super::*;

    resource! { "embedder": Event(kind: &str, payload: &str) {
        set wait_ms(ms: u32);
        add visible by visible(pointer: &str);
        add attachments by attach(path: &str, name: &str, media_type: &str);
        end send -> String;
        end post -> bool;
    } }
}

pub(crate) mod introspect {
    use super::contract::types::Captured;
    use super::*;
    pub use contract::introspect::{ContextFile, Entry, MountPoint};

    functions! { "introspect":
        contexts() -> Vec<ContextFile>;
        context(name: &str, offset: u64, max: u32) -> Captured;
        environment() -> Vec<Entry>;
        mounts() -> Vec<MountPoint>;
        settings(section: Option<&str>) -> String;
        documents() -> Vec<Entry>;
        document(name: &str) -> String;
    }
}

pub(crate) mod records {
    use super::*;
    pub(crate) use contract::records::{Item, Page};

    functions! { "records":
        get(collection: &str, key: &str) -> Option<Item>;
    }

    resource! { "records": Batch() {
        set confirm(action: &str, details: &str);
        step changes by put(collection: &str, key: &str, body: &str);
        step changes by expect(collection: &str, key: &str, revision: u64);
        step changes by delete(collection: &str, key: &str);
        step changes by embed(collection: &str, key: &str, pointer: &str);
        end commit -> Vec<Item>;
    } }

    resource! { "records": Query(collection: &str) {
        set words(text: &str);
        set any_word(text: &str);
        set near(text: &str);
        set order(pointer: &str, descending: bool);
        set limit(items: u32);
        set after(cursor: &str);
        add equals by equals(pointer: &str, value: &str);
        add between by between(pointer: &str, low: &str, high: &str);
        end run -> Page;
    } }
}

pub(crate) mod jobs {
    use super::*;
    pub use contract::jobs::{Job, Page, Piece, State};

    functions! { "jobs":
        get(id: &str, head: u32) -> Job;
        wait(id: &str, at_most_ms: u64, with_call: bool, head: u32) -> Job;
        follow(id: &str, stdout_start: u64, stderr_start: u64, most: u32, at_most_ms: u64) -> Job;
        cancel(id: &str) -> Job;
        tools() -> Vec<String>;
    }

    resource! { "jobs": Submission(tool: &str, arguments: &str) {
        set at_most_ms(ms: u64);
        set token(token: &str);
        set outlive_session();
        set may_repeat();
        add labels by label(name: &str, value: &str);
        end submit -> String;
    } }

    resource! { "jobs": Query() {
        set all_sessions();
        set in_state(state: State);
        set limit(items: u32);
        set after(cursor: &str);
        add labels by label(name: &str, value: &str);
        end run -> Page;
    } }
}

pub(crate) mod schedules {
    use super::*;
    pub use contract::schedules::{Came, Last, Schedule, State};

    functions! { "schedules":
        list_all() -> Vec<Schedule>;
        remove(id: &str) -> ();
        pause(id: &str) -> Schedule;
        resume(id: &str) -> Schedule;
    }

    resource! { "schedules": Plan(id: &str) {
        set event(data: &str);
        set job(tool: &str, arguments: &str);
        set cron(expression: &str);
        set every_ms(ms: u64);
        set zone(name: &str);
        set once();
        set hours(start: u8, end: u8);
        set timeout_ms(ms: u64);
        set replace();
        end save -> Schedule;
    } }
}

/// Events need no answer, so nobody has to play them.
pub(crate) mod events {
    use super::*;

    pub(crate) use contract::events::Level;

    pub(crate) fn log(level: Level, text: &str) {
        Call::new([("level", level.write()), ("text", text.write())]).note("events", "log");
    }

    pub(crate) fn progress(done: u64, total: Option<u64>, message: Option<&str>) {
        let arguments = [("done", done.write()), ("total", total.write()), ("message", message.write())];
        Call::new(arguments).note("events", "progress");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The calls of an interface, and of each function that belongs to no resource its arguments: what has a result is a call.
    fn calls(interface: &str, wit: &str) -> BTreeSet<(String, Option<String>)> {
        let mut calls = BTreeSet::new();
        let mut is_in_resource = false;
        for line in wit.lines().map(str::trim) {
            is_in_resource = line.starts_with("resource ") || (is_in_resource && line != "}");
            if let Some((name, rest)) = line.split_once(": func(")
                && let Some((arguments, result)) = rest.rsplit_once(')')
                && result.starts_with(" -> ")
            {
                calls.insert((format!("{interface}.{name}"), (!is_in_resource).then(|| names(arguments))));
            }
        }
        calls
    }

    /// The names in `path: string, offset: u64`.
    fn names(arguments: &str) -> String {
        let names = arguments.split(", ").map(|argument| argument.split(':').next().unwrap_or_default());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_call_of_the_contract_can_be_played() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("wit");
        let world = std::fs::read_to_string(directory.join("world.wit")).unwrap();
        let imports = world.lines().filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'));
        let wanted: BTreeSet<_> = imports
            .flat_map(|interface| {
                calls(interface, &std::fs::read_to_string(directory.join(format!("{interface}.wit"))).unwrap())
            })
            .collect();
        let is_function = |name: &str| wanted.iter().any(|(call, arguments)| call == name && arguments.is_some());
        let played: BTreeSet<_> = SIGNATURES
            .iter()
            .copied()
            .flatten()
            .map(|signature| {
                let (name, arguments) = (signature.name(), signature.arguments.join(" ").replace('_', "-"));
                let arguments = is_function(&name).then_some(arguments);
                (name, arguments)
            })
            .collect();
        assert_eq!(played, wanted);
    }
}
