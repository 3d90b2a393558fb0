//! Wrappers: programs that run a command from their arguments.
//!
//! One table says where in the arguments it is; `reader.rs` follows it.

use super::basename;

/// A command within the arguments of another.
pub(super) enum Wrapped {
    Words(Vec<String>),
    Script(String),
}

struct Wrapper {
    names: &'static str,
    /// Short options with a value: the rest of the word, or the next word.
    valued: &'static str,
    /// Long options whose value may be the next word.
    long: &'static str,
    /// Options, short and long, whose value is a script.
    script: &'static str,
    /// Arguments before the command.
    operands: usize,
    takes: Takes,
    /// What it runs, it runs in its own shell rather than in a child.
    same_shell: bool,
}

enum Takes {
    /// The words of a command.
    Words,
    /// Words that are joined by blanks and read as a script.
    Script,
    /// One argument that is a script.
    FirstAsScript,
    /// With `-c`, one argument that is a script; else nothing.
    ScriptIfTold,
    /// The words of a command, unless the option `-v` or `-V` only asks about it.
    WordsUnlessAsked,
    /// Commands after each of these words, up to `;` or the end.
    After(&'static str),
}

const WORDS: Wrapper =
    Wrapper { names: "", valued: "", long: "", script: "", operands: 0, takes: Takes::Words, same_shell: false };
const SCRIPT: Wrapper = Wrapper { takes: Takes::Script, ..WORDS };

static WRAPPERS: &[Wrapper] = &[
    Wrapper { names: "builtin noglob nocorrect -", same_shell: true, ..WORDS },
    Wrapper { names: "command", takes: Takes::WordsUnlessAsked, same_shell: true, ..WORDS },
    Wrapper { names: "exec", valued: "a", same_shell: true, ..WORDS },
    Wrapper { names: "eval", same_shell: true, ..SCRIPT },
    Wrapper { names: "trap", takes: Takes::FirstAsScript, same_shell: true, ..WORDS },
    Wrapper { names: "repeat", operands: 1, same_shell: true, ..WORDS },
    Wrapper {
        names: "sh bash dash ash zsh ksh mksh rbash fish",
        valued: "oO",
        long: "rcfile init-file",
        script: "command",
        takes: Takes::ScriptIfTold,
        ..WORDS
    },
    Wrapper { names: "nohup setsid fakeroot unbuffer busybox toybox", ..WORDS },
    Wrapper {
        names: "sudo",
        valued: "CDghpRrTtUu",
        long: "chdir chroot close-from command-timeout group host other-user prompt role type user",
        ..WORDS
    },
    Wrapper { names: "doas", valued: "Cu", ..WORDS },
    Wrapper { names: "pkexec", long: "user", ..WORDS },
    Wrapper {
        names: "su",
        valued: "gGsw",
        long: "group supp-group shell whitelist-environment",
        script: "c command session-command",
        operands: 1,
        ..WORDS
    },
    Wrapper {
        names: "runuser",
        valued: "gGlsuw",
        long: "group supp-group shell user whitelist-environment",
        script: "c command session-command",
        ..WORDS
    },
    Wrapper { names: "env genv", valued: "aCu", long: "argv0 chdir unset", script: "S split-string", ..WORDS },
    Wrapper { names: "nice gnice", valued: "n", long: "adjustment", ..WORDS },
    Wrapper { names: "ionice", valued: "cnpPu", long: "class classdata", ..WORDS },
    Wrapper { names: "chrt taskset", valued: "DPT", operands: 1, ..WORDS },
    Wrapper { names: "time gtime", valued: "fo", long: "format output", same_shell: true, ..WORDS },
    Wrapper { names: "timeout gtimeout", valued: "ks", long: "kill-after signal", operands: 1, ..WORDS },
    Wrapper { names: "stdbuf gstdbuf", valued: "eio", long: "error input output", ..WORDS },
    Wrapper {
        names: "flock",
        valued: "Ew",
        long: "conflict-exit-code timeout wait",
        script: "c command",
        operands: 1,
        ..WORDS
    },
    Wrapper { names: "caffeinate", valued: "tw", ..WORDS },
    Wrapper {
        names: "systemd-run",
        valued: "EHMpu",
        long: "description gid machine property setenv slice uid unit working-directory",
        ..WORDS
    },
    // `systemctl reboot` is `reboot`.
    Wrapper {
        names: "systemctl loginctl",
        valued: "HMPnopst",
        long: "host job-mode kill-whom lines machine output property root signal state type what when",
        ..WORDS
    },
    Wrapper {
        names: "run0",
        valued: "Dgu",
        long: "chdir description group machine property setenv slice unit user",
        ..WORDS
    },
    Wrapper {
        names: "setpriv",
        long: "ambient-caps apparmor-profile bounding-set egid euid groups inh-caps pdeathsig ptracer regid reset-env reuid rgid \
               ruid securebits selinux-label",
        ..WORDS
    },
    Wrapper {
        names: "prlimit choom numactl",
        valued: "CNPilmnp",
        long: "adjust cpunodebind interleave membind pid",
        ..WORDS
    },
    Wrapper { names: "systemd-inhibit", long: "mode what who why", ..WORDS },
    Wrapper {
        names: "xargs gxargs",
        valued: "adEILnPs",
        long: "arg-file delimiter max-args max-chars max-procs",
        ..WORDS
    },
    Wrapper {
        names: "parallel",
        valued: "aCDdIJjLNnPSs",
        long: "arg-file colsep delay delimiter jobs joblog max-args max-procs nice results retries sshlogin timeout \
               tmpdir workdir",
        ..SCRIPT
    },
    Wrapper { names: "watch", valued: "nq", long: "equexit interval", ..SCRIPT },
    Wrapper {
        names: "script",
        valued: "BEImoOT",
        long: "echo log-in log-io log-out log-timing logging-format output-limit",
        script: "c command",
        operands: 1,
        ..WORDS
    },
    Wrapper { names: "chroot", long: "groups userspec", operands: 1, ..WORDS },
    Wrapper {
        names: "unshare",
        valued: "GRSw",
        long: "map-group map-groups map-user map-users propagation root setgid setgroups setuid wd",
        ..WORDS
    },
    Wrapper { names: "nsenter", valued: "GSt", long: "setgid setuid target", ..WORDS },
    Wrapper { names: "strace ltrace", valued: "abeEFIlnoOpPsSuUxX", ..WORDS },
    Wrapper { names: "ssh", valued: "bBcDeEFiIJlLmoOpQRSwW", operands: 1, ..SCRIPT },
    Wrapper { names: "find gfind", takes: Takes::After("-exec -execdir -ok -okdir"), ..WORDS },
    Wrapper { names: "fd fdfind", takes: Takes::After("-x -X --exec --exec-batch"), ..WORDS },
];

/// The commands that a command runs besides itself, and whether they run in the same shell.
pub(super) fn unwrap(words: &[String]) -> (Vec<Wrapped>, bool) {
    let Some((name, arguments)) = words.split_first() else { return (Vec::new(), false) };
    // `$SUDO rm` is `rm` when the variable is empty or holds a wrapper.
    let variable = name.starts_with('$').then_some(&WORDS);
    let wrapper = variable.or_else(|| WRAPPERS.iter().find(|wrapper| listed(wrapper.names, basename(name))));
    wrapper.map_or((Vec::new(), false), |wrapper| (wrapper.read(arguments), wrapper.same_shell))
}

fn listed(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|listed| listed == name)
}

/// What an option means for the words after it.
enum Effect {
    Nothing,
    TakesNext,
    TakesScript,
    Script(String),
}

impl Wrapper {
    fn read(&self, arguments: &[String]) -> Vec<Wrapped> {
        let mut found = Vec::new();
        let (mut operands, mut options, mut flags) = (self.operands, true, String::new());
        let mut rest = arguments;
        while let Some((argument, after)) = rest.split_first() {
            if options && argument.starts_with(['-', '+']) {
                options = argument != "--";
                let effect = self.option(argument, &mut flags);
                let takes = matches!(effect, Effect::TakesNext | Effect::TakesScript) && !after.is_empty();
                rest = &after[usize::from(takes)..];
                match effect {
                    Effect::Nothing | Effect::TakesNext => {}
                    Effect::TakesScript => found.extend(after.first().cloned().map(Wrapped::Script)),
                    Effect::Script(text) => found.push(Wrapped::Script(text)),
                }
            } else if matches!(self.takes, Takes::Words) && argument.contains('=') {
                rest = after;
            } else if operands > 0 {
                operands -= 1;
                rest = after;
            } else {
                break;
            }
        }
        match self.takes {
            Takes::After(markers) => found.extend(after(arguments, markers)),
            _ if rest.is_empty() => {}
            Takes::WordsUnlessAsked if flags.contains(['v', 'V']) => {}
            Takes::Words | Takes::WordsUnlessAsked => found.push(Wrapped::Words(rest.to_vec())),
            Takes::Script => found.push(Wrapped::Script(rest.join(" "))),
            Takes::ScriptIfTold if !flags.contains('c') => {}
            Takes::ScriptIfTold | Takes::FirstAsScript => found.push(Wrapped::Script(rest[0].clone())),
        }
        found
    }

    /// Reads one option, and adds its letters to `flags`.
    fn option(&self, option: &str, flags: &mut String) -> Effect {
        if let Some(long) = option.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if name.is_empty() {
                return Effect::Nothing;
            }
            return match (listed(self.script, name), value) {
                (true, Some(value)) => Effect::Script(value.to_owned()),
                (true, None) => Effect::TakesScript,
                // `--unset` may be written `--un`.
                (false, None) if self.long.split_ascii_whitespace().any(|long| long.starts_with(name)) => {
                    Effect::TakesNext
                }
                (false, _) => Effect::Nothing,
            };
        }
        // A shell takes the value of `-o` from the next word even where other letters follow.
        let apart = matches!(self.takes, Takes::ScriptIfTold);
        let mut effect = Effect::Nothing;
        let mut letters = option.chars();
        letters.next();
        while let Some(letter) = letters.next() {
            let value = letters.as_str();
            flags.push(letter);
            match (listed(self.script, letter.encode_utf8(&mut [0; 4])), self.valued.contains(letter)) {
                (true, _) if value.is_empty() => return Effect::TakesScript,
                (true, _) => return Effect::Script(value.to_owned()),
                (false, true) if apart => effect = Effect::TakesNext,
                (false, true) => return if value.is_empty() { Effect::TakesNext } else { Effect::Nothing },
                (false, false) => {}
            }
        }
        effect
    }
}

fn after(arguments: &[String], markers: &str) -> Vec<Wrapped> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(marker) = rest.iter().position(|word| listed(markers, word)) {
        let command = rest[marker + 1..].split(|word| word == ";").next().unwrap_or_default();
        rest = &rest[marker + 1 + command.len()..];
        found.extend((!command.is_empty()).then(|| Wrapped::Words(command.to_vec())));
    }
    found
}
