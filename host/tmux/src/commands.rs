//! Every command that is sent to tmux, put together by the builders of `tmux_interface`.
//!
//! They give words and start nothing: `client.rs` writes a command as a line of control mode, and a backend starts the processes. What the
//! builders lack goes in as raw arguments, here as well: `--` before what is typed, and `send-keys -X`, as `SendKeys` has `-X` and `-R` under
//! each other's names.
//!
//! The script of `server.rs` has two questions of its own, `list-sessions` and `has-session`: on their answers depends what comes next, and
//! all of it is one trip to the backend. What it starts is built here.

use super::condition::{MADE, VISITS};
use super::control::quoted;
use super::names::SHARED;
use super::screen::View;
use super::shell::CELL;
use std::borrow::Cow;
use std::ffi::OsString;
use tmux_interface::{
    AttachSession, CapturePane, ClientFlags, DeleteBuffer, DisplayMessage, IfShell, KillPane, KillSession, ListClients,
    ListPanes, ListSessions, NewSession, NewWindow, SaveBuffer, SendKeys, SetBuffer, SetHook, SetOption, ShowOptions,
    StartServer, SwapPane, Tmux, TmuxCommand,
};

/// What ends a command where several are words of one line.
const END: &str = ";";

/// What a server is set to.
const SETTINGS: [(&str, &str); 11] = [
    ("default-shell", "/bin/sh"),
    ("history-limit", "50000"),
    ("update-environment", ""),
    ("set-clipboard", "off"),
    ("allow-rename", "off"),
    ("allow-passthrough", "off"),
    ("destroy-unattached", "off"),
    ("remain-on-exit", "off"),
    ("visual-bell", "off"),
    ("bell-action", "none"),
    ("detach-on-destroy", "on"),
];
/// When a person comes to a session or leaves it, and what tells a person from a host: nothing else tells of one who typed and has left.
const COMES_AND_GOES: [(&str, &str); 2] =
    [("client-session-changed", "#{!=:#{client_control_mode},1}"), ("client-detached", "#{m:/*,#{hook_client}}")];
/// The size of a session that nobody looks at.
const COLUMNS: usize = 200;
const ROWS: usize = 50;

/// A command, as the words that it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command(Vec<String>);

impl Command {
    /// As a line of control mode, or as the text of a command in another one. Every word is quoted: nothing in it is expanded or ends the
    /// command.
    pub(super) fn line(&self) -> String {
        self.0.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

fn built<'a>(command: impl Into<TmuxCommand<'a>>) -> Command {
    Command(command.into().to_vec().into_iter().map(Cow::into_owned).collect())
}

fn id(pane: u32) -> String {
    format!("%{pane}")
}

/// A session, where a window or a pane could be meant as well.
fn within(session: &str) -> String {
    format!("{session}:")
}

/// Expands a format for a pane.
pub(super) fn ask(pane: u32, format: &str) -> Command {
    built(DisplayMessage::new().print().target_pane(id(pane)).message(format))
}

/// Expands a format for the client that asks.
pub(super) fn ask_of_client(format: &str) -> Command {
    built(DisplayMessage::new().print().message(format))
}

pub(super) fn list_sessions(format: &str) -> Command {
    built(ListSessions::new().format(format))
}

/// Lists the panes of all sessions.
pub(super) fn list_panes(format: &str) -> Command {
    built(ListPanes::new().all().format(format))
}

pub(super) fn list_panes_of(session: &str, format: &str) -> Command {
    built(ListPanes::new().session().format(format).target(within(session)))
}

/// Lists the clients of all sessions.
pub(super) fn list_clients(format: &str) -> Command {
    built(ListClients::new().format(format))
}

pub(super) fn list_clients_of(session: &str, format: &str) -> Command {
    built(ListClients::new().format(format).target_session(session))
}

fn pane_option(pane: String, option: &str) -> SetOption<'_> {
    SetOption::new().pane().target_pane(pane).option(option)
}

/// Sets an option of a pane.
pub(super) fn set(pane: u32, option: &str, value: &str) -> Command {
    built(pane_option(id(pane), option).value(value))
}

/// Sets an option of a pane that is not set yet, and says nothing where it is.
pub(super) fn set_first(pane: u32, option: &str, value: &str) -> Command {
    built(pane_option(id(pane), option).not_overwrite().quiet().value(value))
}

/// Sets an option of a pane to what a format is just then.
pub(super) fn set_expanded(pane: u32, option: &str, format: &str) -> Command {
    built(pane_option(id(pane), option).format().value(format))
}

pub(super) fn unset(pane: u32, option: &str) -> Command {
    built(pane_option(id(pane), option).unset())
}

/// Prints the value of a pane's option; nothing where it is not set.
pub(super) fn show(pane: u32, option: &str) -> Command {
    built(ShowOptions::new().pane().quiet().value().target_pane(id(pane)).option(option))
}

/// The same for an option of a session.
pub(super) fn show_of(session: &str, option: &str) -> Command {
    built(ShowOptions::new().quiet().value().target_pane(within(session)).option(option))
}

/// Runs a command where a format is true for a pane.
pub(super) fn when(pane: u32, format: &str, command: &Command) -> Command {
    built(IfShell::new().not_execute().target_pane(id(pane)).shell_command(format).command(command.line()))
}

/// Types text as it is.
pub(super) fn type_text(pane: u32, text: &str) -> Command {
    built(SendKeys::new().disable_lookup().target_pane(id(pane)).key("--").key(text))
}

/// Presses a key by its name.
pub(super) fn press(pane: u32, key: &str) -> Command {
    built(SendKeys::new().target_pane(id(pane)).key("--").key(key))
}

/// Leaves the mode of tmux's that a pane is in.
pub(super) fn leave_mode(pane: u32) -> Command {
    built(SendKeys::new().target_pane(id(pane)).key("-X").key("cancel"))
}

/// Prints what a pane shows, or the screen that an `alternate` one has put aside.
pub(super) fn capture(pane: u32, view: &View, alternate: bool) -> Command {
    let line = |number: Option<i64>, is_all| if is_all { Some("-".into()) } else { Some(number?.to_string().into()) };
    built(CapturePane {
        stdout: true,
        alternate_screen: alternate,
        escape_sequences: view.escapes,
        escape_non_printable: view.octal,
        join: view.join,
        trailing_spaces: view.trailing_spaces,
        start_line: line(view.start, view.from_begin),
        end_line: line(view.end, view.to_end),
        target_pane: Some(id(pane).into()),
        ..CapturePane::new()
    })
}

/// Makes a pane in a window of its own, which begins in a directory or in the session's, and prints its id.
pub(super) fn new_window(session: &str, name: &str, directory: Option<&str>, program: &str) -> Command {
    let window = NewWindow::new().detached().print().format("#{pane_id}").window_name(name);
    let window = match directory {
        // tmux expands formats in it.
        Some(directory) => window.start_directory(directory.replace('#', "##")),
        None => window,
    };
    built(window.target_window(within(session)).shell_command(program))
}

/// Has two panes change places, each with the window and the size of the other.
pub(super) fn swap_panes(one: u32, other: u32) -> Command {
    built(SwapPane::new().detached().src_pane(id(one)).dst_pane(id(other)))
}

pub(super) fn kill_pane(pane: u32) -> Command {
    built(KillPane::new().target_pane(id(pane)))
}

pub(super) fn kill_session(session: &str) -> Command {
    built(KillSession::new().target_session(session))
}

/// Has the server write a file, by way of a buffer.
pub(super) fn write(buffer: &str, path: &str, text: &str) -> [Command; 3] {
    [
        built(SetBuffer::new().buffer_name(buffer).data(text)),
        built(SaveBuffer::new().buffer_name(buffer).path(path)),
        built(DeleteBuffer::new().buffer_name(buffer)),
    ]
}

/// Starts a server, sets it up, and makes a session of this name. The variables of its environment and the program that runs in it are still
/// to be appended.
pub(super) fn make_session(name: &str) -> Vec<OsString> {
    let settings = SETTINGS.map(|(option, value)| built(SetOption::new().global().quiet().option(option).value(value)));
    let visit = built(SetOption::new().global().append().option(VISITS).value("x")).line();
    let hooks = COMES_AND_GOES.map(|(event, is_person)| {
        let count = built(IfShell::new().not_execute().shell_command(is_person).command(&visit));
        built(SetHook::new().global().hook_name(event).command(count.line()))
    });
    let session = NewSession::new().detached().session_name(name).window_name(SHARED).width(COLUMNS).height(ROWS);
    words([built(StartServer)].into_iter().chain(settings).chain(hooks).chain([built(session)]))
}

/// Marks a session that was just made, and its pane, as ours. The program that runs in panes is still to be appended.
pub(super) fn mark_session(name: &str, owner: &str, workspace: &str, cell: &str) -> Vec<OsString> {
    let target = within(&format!("={name}"));
    let mark = |option| SetOption::new().target_pane(&target).option(option);
    words([
        built(mark("@toolcrib_managed").value("1")),
        built(mark("@toolcrib_owner").value(owner)),
        built(mark("@toolcrib_session").value(name)),
        built(mark("@toolcrib_workspace").value(workspace)),
        built(pane_option(target.clone(), MADE).format().value(format!("#{{{VISITS}}}"))),
        built(pane_option(target.clone(), "@toolcrib_pane").value(SHARED)),
        built(pane_option(target.clone(), CELL).value(cell)),
        built(mark("@toolcrib_program")),
    ])
}

/// A process that says which tmux is there.
pub(super) fn version() -> Vec<OsString> {
    process(Tmux::new().version(), [])
}

/// A process that has a server run commands.
pub(super) fn run(socket: &str, commands: impl IntoIterator<Item = Command>) -> Vec<OsString> {
    process(Tmux::new().socket_path(socket), commands)
}

/// The same, which prints UTF-8 wherever it runs.
pub(super) fn run_in_utf8(socket: &str, commands: impl IntoIterator<Item = Command>) -> Vec<OsString> {
    process(Tmux::new().socket_path(socket).force_utf8(), commands)
}

/// A process by which a person takes part in a session.
pub(super) fn attach(socket: &str, target: &str) -> Vec<OsString> {
    run(socket, [built(AttachSession::new().target_session(target))])
}

/// A client in control mode, to which the size of its session does not matter.
pub(super) fn control(socket: &str, session: &str) -> Vec<OsString> {
    let flags = ClientFlags { ignore_size: Some(true), ..ClientFlags::default() };
    let attach = built(AttachSession::new().flags(flags).target_session(session));
    process(Tmux::new().socket_path(socket).force_utf8().file("/dev/null").control_mode(), [attach])
}

fn process(tmux: Tmux<'_>, commands: impl IntoIterator<Item = Command>) -> Vec<OsString> {
    let tmux = tmux.build();
    tmux.to_vec().into_iter().map(|word| word.into_owned().into()).chain(words(commands)).collect()
}

/// Commands as words of one command line.
fn words(commands: impl IntoIterator<Item = Command>) -> Vec<OsString> {
    let mut words = Vec::new();
    for Command(command) in commands {
        words.extend((!words.is_empty()).then(|| END.into()));
        words.extend(command.into_iter().map(|word| argument(word).into()));
    }
    words
}

/// An argument for tmux: one that ends in `;` would end the command.
fn argument(word: String) -> String {
    word.strip_suffix(END).map(|before| format!("{before}\\;")).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words with a space between, those with a space in them in brackets.
    fn shown(words: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> String {
        let shown = |word: &str| if word.is_empty() || word.contains(' ') { format!("[{word}]") } else { word.into() };
        let words = words.into_iter().map(|word| shown(&word.as_ref().to_string_lossy()));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands_are_those_of_tmux() {
        for (command, expected) in [
            (ask(3, "#{pane_id} x"), "display-message -p -t %3 [#{pane_id} x]"),
            (ask_of_client("#{pid}"), "display-message -p #{pid}"),
            (list_sessions("#{session_id}"), "list-sessions -F #{session_id}"),
            (list_panes("#{pane_id}"), "list-panes -a -F #{pane_id}"),
            (list_panes_of("$0", "#{pane_id}"), "list-panes -s -F #{pane_id} -t $0:"),
            (list_clients("#{client_pid}"), "list-clients -F #{client_pid}"),
            (list_clients_of("$0", "#{client_pid}"), "list-clients -F #{client_pid} -t $0"),
            (set(3, "@o", "a b"), "set-option -p -t %3 @o [a b]"),
            (set(3, "@o", ""), "set-option -p -t %3 @o []"),
            (set_first(3, "@o", "v"), "set-option -o -p -q -t %3 @o v"),
            (set_expanded(3, "@o", "#{x}"), "set-option -F -p -t %3 @o #{x}"),
            (unset(3, "@o"), "set-option -p -u -t %3 @o"),
            (show(3, "@o"), "show-options -p -q -v -t %3 @o"),
            (show_of("$0", "@o"), "show-options -q -v -t $0: @o"),
            (type_text(3, "-l a"), "send-keys -l -t %3 -- [-l a]"),
            (press(3, "-"), "send-keys -t %3 -- -"),
            (leave_mode(3), "send-keys -t %3 -X cancel"),
            (new_window("$0", "build", None, "exec sh"), "new-window -d -P -F #{pane_id} -n build -t $0: [exec sh]"),
            (swap_panes(4, 3), "swap-pane -d -s %4 -t %3"),
            (kill_pane(3), "kill-pane -t %3"),
            (kill_session("$0"), "kill-session -t $0"),
        ] {
            assert_eq!(shown(&command.0), expected);
        }
        let written = write("b", "/dir/a b", "text\n").map(|command| shown(&command.0));
        assert_eq!(written, ["set-buffer -b b text\n", "save-buffer -b b [/dir/a b]", "delete-buffer -b b"]);
    }

    #[test]
    fn a_view_becomes_flags() {
        let captured = |view: View, alternate| shown(capture(3, &view, alternate).0);
        assert_eq!(captured(View { join: true, ..View::default() }, false), "capture-pane -p -J -t %3");
        let (start, end) = (Some(-40), Some(20));
        let all = View { start, end, trailing_spaces: true, escapes: true, octal: true, ..View::default() };
        assert_eq!(captured(all, true), "capture-pane -a -e -p -C -N -E 20 -S -40 -t %3");
        let history = View { from_begin: true, to_end: true, ..View::default() };
        assert_eq!(captured(history, false), "capture-pane -p -E - -S - -t %3");
    }

    #[test]
    fn processes_are_started_at_a_socket() {
        let commands = || [ask(3, "x"), list_sessions("y")];
        assert_eq!(shown(version()), "tmux -V");
        assert_eq!(shown(run("/a b", commands())), "tmux -S [/a b] display-message -p -t %3 x ; list-sessions -F y");
        assert!(shown(run_in_utf8("/s", commands())).starts_with("tmux -u -S /s display-message -p "));
        assert_eq!(shown(attach("/s", "$0:@1")), "tmux -S /s attach-session -t $0:@1");
        assert_eq!(shown(control("/s", "$0")), "tmux -C -u -f /dev/null -S /s attach-session -f ignore-size -t $0");
    }

    #[test]
    fn a_session_is_made_and_marked_in_one_go() {
        let made = shown(make_session("toolcrib-a"));
        let begin = "start-server ; set-option -g -q default-shell /bin/sh ; set-option -g -q history-limit 50000 ; \
            set-option -g -q update-environment [] ; ";
        assert!(made.starts_with(begin), "{made}");
        assert!(made.ends_with(" ; new-session -d -n shared -s toolcrib-a -x 200 -y 50"), "{made}");
        assert_eq!(
            shown(mark_session("a-b", "a", "a-w", "0af9")),
            "set-option -t =a-b: @toolcrib_managed 1 ; set-option -t =a-b: @toolcrib_owner a ; \
             set-option -t =a-b: @toolcrib_session a-b ; set-option -t =a-b: @toolcrib_workspace a-w ; \
             set-option -F -p -t =a-b: @toolcrib_made #{@toolcrib_visits} ; \
             set-option -p -t =a-b: @toolcrib_pane shared ; set-option -p -t =a-b: @toolcrib_cell 0af9 ; \
             set-option -t =a-b: @toolcrib_program"
        );
    }

    /// Undoes [`quoted`], as tmux does.
    fn unquoted(line: &str) -> Vec<String> {
        let word = |word: &str| {
            let mut bytes = Vec::new();
            let mut pieces = word.split('\\');
            bytes.extend(pieces.next().unwrap_or_default().bytes());
            for piece in pieces {
                bytes.push(u8::from_str_radix(&piece[..3], 8).expect("an octal number"));
                bytes.extend(piece[3..].bytes());
            }
            String::from_utf8(bytes).expect("text")
        };
        let inner = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).expect("quotes");
        inner.split("\" \"").map(word).collect()
    }

    const ATTACKS: [&str; 9] = [
        "",
        ";",
        "x ; kill-server",
        "x\nkill-server\n",
        "\" ; kill-server ; \"",
        "' } kill-server {",
        "#(touch owned) $HOME ~ \\",
        "-t",
        "%3;",
    ];

    #[test]
    fn whatever_a_word_holds_it_stays_one() {
        for attack in ATTACKS {
            for (command, place) in [(set(3, "@o", attack), 5), (type_text(3, attack), 5), (ask(3, attack), 4)] {
                let line = command.line();
                assert!(!line.contains(['\n', ';', '#', '$', '\'']), "{line}");
                let words = unquoted(&line);
                assert_eq!((&words, words[place].as_str(), words.len()), (&command.0, attack, place + 1));
            }
        }
    }

    #[test]
    fn a_command_in_another_one_is_one_word_of_it() {
        for attack in ATTACKS {
            let inner = set(3, "@o", attack);
            let outer = unquoted(&when(3, "#{x}", &inner).line());
            assert_eq!(outer[..5], ["if-shell", "-F", "-t", "%3", "#{x}"]);
            assert_eq!((unquoted(&outer[5]), outer.len()), (inner.0, 6));
        }
        let hooks: Vec<_> = make_session("s").into_iter().filter_map(|word| word.into_string().ok()).collect();
        let hook = hooks.iter().position(|word| word == "client-detached").expect("a hook");
        let hook = unquoted(&hooks[hook + 1]);
        assert_eq!(hook[..3], ["if-shell", "-F", "#{m:/*,#{hook_client}}"]);
        assert_eq!(shown(unquoted(&hook[3])), "set-option -a -g @toolcrib_visits x");
    }

    #[test]
    fn a_semicolon_at_the_end_ends_nothing() {
        assert_eq!(["a;", ";", "a;b", "a\\;"].map(String::from).map(argument), ["a\\;", "\\;", "a;b", "a\\\\;"]);
        let commands = [type_text(3, "ls;"), press(3, ";")];
        assert_eq!(shown(run("/s", commands)), r"tmux -S /s send-keys -l -t %3 -- ls\; ; send-keys -t %3 -- \;");
    }
}
