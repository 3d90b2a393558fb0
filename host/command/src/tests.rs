//! What scripts are taken for, and what the list makes of them.

use super::*;
use base::envelope::Kind;
use proptest::prelude::*;

fn denylist(patterns: &[&str]) -> Denylist {
    Denylist::parse(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("no pattern is blank")
}

/// The default of `tools.shell_denylist`.
fn usual() -> Denylist {
    denylist(&["rm -rf /", "mkfs", "shutdown", "reboot", "dd if=", ":(){ :|:& };:"])
}

fn denied(text: &str) -> Option<String> {
    let script = Script::parse(text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
    script.denied_by(&usual()).map(str::to_owned)
}

fn assert_denied(texts: &[&str]) {
    for text in texts {
        assert!(denied(text).is_some(), "passes: {text}");
    }
}

fn assert_passes(texts: &[&str]) {
    for text in texts {
        assert_eq!(denied(text), None, "{text}");
    }
}

/// The parser came to an end by itself.
fn assert_decided(text: &str) {
    let outcome = Script::parse(text).err();
    assert!(!matches!(outcome, Some(Unparsable::Failed | Unparsable::TooSlow)), "{outcome:?}: {text:.60}");
}

fn refusal(text: &str) -> Unparsable {
    Script::parse(text).expect_err("it is refused")
}

#[test]
fn pattern_matches_a_command_by_its_words() {
    assert_denied(&[
        "rm  -rf \t /",
        "rm -rf -- /",
        "rm -rf /tmp/x /",
        "/bin/rm -rf /",
        "RM -RF /",
        "rm -fr /",
        "rm -r -f /",
        "rm -f -v -R /",
        "rm / -rf",
        "rm --recursive --force /",
        "mkfs.ext4 /dev/sda1",
        "mkfs /dev/sda1",
        "/sbin/shutdown -h now",
        "dd of=/dev/sda if=/dev/zero",
        "dd bs=1M if=\"$IMAGE\"",
        ":(){ :|:& };:",
        ": () { : | : & } ; :",
    ]);
}

#[test]
fn words_that_only_look_like_the_pattern_pass() {
    assert_passes(&[
        "grep -c reboot /etc/passwd",
        "echo 'rm -rf /'",
        "echo rm -rf /",
        "rm -r /tmp/x",
        "rm -rf build",
        "rm -rf ./x",
        "rebootstrap --now",
        "git commit -m 'reboot; rm -rf /'",
        "ls # rm -rf /",
        "cat <<EOF\nrm -rf /\nEOF",
        "cat <<'EOF'\n$(rm -rf /)\nEOF",
        "cat <<\\EOF\n`reboot`\nEOF",
        "dd of=x",
        "$X -rf /",
        "command -v reboot",
        "man shutdown",
        "",
    ]);
}

#[test]
fn quoting_hides_nothing() {
    assert_denied(&[
        r#"r"m" -rf /"#,
        r"\rm -rf /",
        "'rm' '-rf' '/'",
        r"$'\x72m' -rf /",
        r"$'\162\u006d' -rf /",
        r#"$"rm" -rf "/""#,
        "r\\\nm -rf /",
        "r''m -r\"f\" /",
    ]);
}

#[test]
fn command_is_found_wherever_it_stands() {
    assert_denied(&[
        "true; reboot",
        "true && reboot || false",
        "true | reboot",
        "true & reboot &",
        "! reboot",
        "time reboot",
        "time -p reboot",
        "time -v reboot",
        "(reboot)",
        "!(reboot)",
        "((reboot) )",
        "( ( reboot ) )",
        "{ reboot; }",
        "if reboot; then :; fi",
        "if :; then :; elif reboot; then :; else :; fi",
        "if :; then :; else reboot; fi",
        "while :; do reboot; done",
        "until reboot; do :; done",
        "for x in a b; do reboot; done",
        "for ((i=0;i<3;i++)); do reboot; done",
        "case x in a) :;; b|c) reboot;; esac",
        "case x in (a) reboot; esac",
        "f() { reboot; }",
        "function f { reboot; }",
        "f() ( reboot ) >x",
        "coproc reboot",
        "coproc X { reboot; }",
        "[[ -n x ]] && reboot",
        "FOO=1 BAR=2 reboot",
        ">log 2>&1 reboot",
        "a=(1 2) reboot",
        "cat <<E\nx\nE\nreboot",
        "cat <<E | reboot\nx\nE",
    ]);
}

#[test]
fn command_is_found_in_words() {
    assert_denied(&[
        "echo $(reboot)",
        "echo `reboot`",
        "echo `echo \\`reboot\\``",
        "echo \"x $(reboot) y\"",
        "echo \"x `reboot` y\"",
        "echo \"$(echo \"$(reboot)\")\"",
        "echo ${x:-$(reboot)}",
        "echo \"${x:-\"$(reboot)\"}\"",
        "echo ${x/$(reboot)/y}",
        "echo $((1 + $(reboot)))",
        "echo $[1 + $(reboot)]",
        "echo $((reboot) | cat)",
        "(( x = $(reboot) ))",
        "for (( x = $(reboot); ; )); do :; done",
        "X=$(reboot)",
        "X=$(reboot) ls",
        "export X=$(reboot)",
        "a=(1 $(reboot))",
        "a[$(reboot)]=1",
        "declare -A m=([x]=$(reboot))",
        "cat <(reboot)",
        "tee >(reboot)",
        "cat < <(reboot)",
        "cat < $(reboot)",
        "cat 2>&$(reboot)",
        "cat &> $(reboot)",
        "cat <<< $(reboot)",
        "cat <<E\n$(reboot)\nE",
        "cat <<-E\n\t`reboot`\n\tE",
        "cat <<E\n${x:-$(reboot)}\nE",
        "[[ $(reboot) == x ]]",
        "[[ ! ( -n $(reboot) && x ) ]]",
        "[[ x =~ $(reboot) ]]",
        "case $(reboot) in x) ;; esac",
        "case x in $(reboot)) ;; esac",
        "for x in $(reboot); do :; done",
        "{ :; } > $(reboot)",
        "$(reboot)",
        "@($(reboot))",
    ]);
}

#[test]
fn wrappers_are_taken_off() {
    assert_denied(&[
        "sudo reboot",
        "sudo -n -u root -- reboot",
        "sudo -uroot A=1 reboot",
        "sudo --user root --group=adm reboot",
        "doas -u root reboot",
        "env reboot",
        "env -i -u X A=1 B=2 reboot",
        "env -S 'reboot now'",
        "env --split-string='reboot now'",
        "nohup reboot &",
        "nice -n 10 reboot",
        "nice -10 reboot",
        "ionice -c2 -n 7 reboot",
        "timeout 5 reboot",
        "timeout -s KILL --kill-after 3 5s reboot",
        "stdbuf -oL -e 0 reboot",
        "setsid -f reboot",
        "command reboot",
        "command -p reboot",
        "builtin exec -a x reboot",
        "exec reboot",
        "xargs -0 -n 1 -I {} reboot {}",
        "busybox reboot",
        "watch -n 1 reboot",
        "watch 'true; reboot'",
        "chroot /mnt reboot",
        "unshare -r -w / reboot",
        "nsenter -t 1 -m reboot",
        "strace -f -o log reboot",
        "script -qc reboot /dev/null",
        "su -c reboot",
        "su root -c reboot",
        "su - root -c 'true; reboot'",
        "flock -w 3 /lock reboot",
        "flock /lock -c 'reboot now'",
        "find . -name x -exec reboot \\;",
        "find . -exec true {} \\; -execdir reboot {} +",
        "find / -type f -ok rm -rf / ';'",
        "sh -c reboot",
        "bash -lc 'true; reboot'",
        "bash -euo pipefail -c reboot",
        "bash --norc -o pipefail -c 'x=$(reboot)'",
        "/usr/bin/env bash -c \"sh -c 'reboot'\"",
        "bash -c \"rm -rf $DIR /\"",
        "eval reboot",
        "eval 'true;' reboot",
        "eval 'x=1 reboot'",
        "eval \"x=1; reboot $X\"",
        "trap 'reboot' EXIT",
        "ssh -p 22 -i key host reboot",
        "ssh host 'cd /; reboot'",
        "parallel -j 4 rm -rf ::: /a /",
        "$SUDO reboot",
        "env --un X reboot",
        "sudo env nohup timeout 3 sh -c 'exec reboot'",
        "/usr/bin/time -f %e reboot",
    ]);
    assert_passes(&[
        "sh -c 'echo reboot'",
        "sh reboot.sh",
        "sudo grep reboot x",
        "xargs grep reboot",
        "find . -name reboot",
        "timeout 5 echo reboot",
        "ssh host echo reboot",
        "env A=reboot true",
        "sudo -u reboot true",
    ]);
}

#[test]
fn a_path_means_that_path_alone_in_any_spelling() {
    for path in [
        "/",
        "//",
        "/.",
        "/./",
        "/*",
        "//*",
        "/tmp/..",
        "/tmp/../*",
        "/.*",
        "\"/\"*",
        "/{bin,}",
        "/{*,.*}",
        "/*/*",
        "/**",
    ] {
        assert_denied(&[&format!("rm -rf {path}")]);
    }
    for path in ["/tmp/x", "/tmp/*", "/x", "./", ".", "*", "x/", "../*", "/tmp/../x", "~", "\"$DIR/\""] {
        assert_passes(&[&format!("rm -rf {path}")]);
    }
    let list = denylist(&["rm -r /srv/data"]);
    let is_denied = |text: &str| Script::parse(text).expect("it parses").denied_by(&list).is_some();
    for path in ["/srv/data", "/srv/data/", "/srv//data/*", "/srv/other/../data"] {
        assert!(is_denied(&format!("rm -rf {path}")), "{path}");
    }
    for path in ["/srv", "/srv/data/x", "/srv/database"] {
        assert!(!is_denied(&format!("rm -rf {path}")), "{path}");
    }
}

#[test]
fn braces_hide_nothing() {
    assert_denied(&[
        "{rm,-rf,/}",
        "sudo {rm,-r,-f,/}",
        "rm -{r,f} /",
        "/sbin/{reboot,true}",
        "{sudo,reboot}",
        "{sh,-c,reboot}",
        "{,rm} -rf /",
    ]);
    assert_denied(&["{a,$(reboot)}", "{{rm,-rf},/}"]);
    assert_passes(&[
        "echo {rm,-rf,/}",
        "'{rm,-rf,/}'",
        "{reboot}",
        "{,}",
        "time {,}",
        "mkdir -p src/{a,b}/{c,d}",
        "cp f{,.bak}",
        "find . -exec echo {} +",
    ]);
}

#[test]
fn what_starts_a_command_does_not_hide_it() {
    for start in [
        "sudo",
        "doas",
        "run0",
        "pkexec",
        "env",
        "nice",
        "ionice -c 3",
        "chrt 1",
        "taskset 1",
        "timeout 5",
        "stdbuf -oL",
        "nohup",
        "setsid",
        "time",
        "xargs",
        "command",
        "exec",
        "builtin command",
        "busybox",
        "toybox",
        "chroot /mnt",
        "unshare -m",
        "nsenter -t 1",
        "setpriv --reuid 0",
        "prlimit",
        "systemctl",
        "systemctl --no-wall",
        "systemctl -i",
        "sudo systemctl",
        "systemd-run",
        "flock /l",
        "find . -exec",
        "find . -execdir",
        "fd -x",
        "strace -f",
        "watch -n1",
        "script -c",
        "su -c",
        "ssh host",
        "sh -c",
        "bash -lc",
        "eval",
    ] {
        assert_denied(&[&format!("{start} reboot"), &format!("true; {start} reboot")]);
    }
    assert_passes(&["systemctl status reboot.target", "systemctl --user restart app", "xargs -n1 echo reboot"]);
}

#[test]
fn short_options_match_in_any_split() {
    let matches =
        |pattern: &str, text: &str| Script::parse(text).expect("it parses").denied_by(&denylist(&[pattern])).is_some();
    assert!(matches("git clean -fdx", "git clean -x -d -f"));
    assert!(matches("git push -f", "git push origin main -uf"));
    assert!(!matches("git push -f", "git push --follow-tags"));
    assert!(matches("git push --force", "git push origin --force"));
    assert!(!matches("git push --force", "git push origin --force-with-lease"), "another option");
    assert!(matches("find -delete", "find . -name x -delete"));
    assert!(!matches("find -delete", "find . -depth -type l -empty"));
    assert!(matches("kill -9", "kill -9 1"));
    assert!(matches("rm -rf $HOME", "rm -rf \"${HOME}\""));
    assert!(matches("sudo", "sudo ls"));
    assert!(matches("python -m http.server", "python -m http.server 80"));
}

#[test]
fn pattern_that_is_no_simple_command_matches_as_text() {
    let list = denylist(&["> /dev/sda", "curl | sh"]);
    let by = |text: &str| Script::parse(text).expect("it parses").denied_by(&list).map(str::to_owned);
    assert_eq!(by("cat x >/dev/sda").as_deref(), Some("> /dev/sda"));
    assert_eq!(by("curl|sh").as_deref(), Some("curl | sh"));
    assert_eq!(by("cat x > /dev/null"), None);
}

#[test]
fn copy_into_a_file_in_tmp_is_no_harm_to_disks() {
    let by = |text: &str| Script::parse(text).expect("it parses").denied_by(&usual()).is_some();
    for text in [
        "dd if=/dev/zero of=/tmp/image bs=1M count=10",
        "cd /tmp && /usr/bin/dd if=in of=/tmp/a/out 2>/dev/null; ls",
        "(dd of='/tmp/image' if=/dev/urandom)",
    ] {
        assert!(!by(text), "{text}");
    }
    for text in [
        "dd if=/dev/zero of=/dev/sda",
        "dd if=/dev/zero",
        "dd if=/dev/zero of=image",
        "dd if=/dev/zero of=/tmp/../dev/sda",
        "dd if=/dev/zero of=/tmpfile",
        "dd if=/dev/zero of=/tmp/a of=/dev/sda",
        "dd if=/dev/zero of=/tmp/$A",
        "dd if=/dev/zero of=/tmp/a $MORE",
        "dd if=/dev/zero of=/tmp/a o*",
        "dd if=/dev/zero of={/tmp/a,/dev/sda}",
        "echo of=/dev/sda | xargs dd if=/dev/zero of=/tmp/a",
        "sudo dd if=/dev/zero of=/tmp/a",
        "DD if=/dev/zero of=/tmp/a",
    ] {
        assert!(by(text), "{text}");
    }
    // What is typed, and not the whole of a script yet.
    let typed = |text: &str| check(text, &usual(), Destination::Program).map_err(|failure| failure.kind);
    assert_eq!(typed("dd if=/dev/zero of=/tmp/a '"), Err(Kind::Denied));
    let list = denylist(&["dd if= of=", "dd"]);
    assert!(Script::parse("dd if=a of=/tmp/b").expect("it parses").denied_by(&list).is_some());
}

#[test]
fn blank_pattern_is_an_error() {
    let failure = Denylist::parse(&["reboot".to_owned(), " \t".to_owned()]).expect_err("the second is blank");
    assert_eq!(failure.message, "entry 2 of `tools.shell_denylist` is not a command");
}

#[test]
fn check_names_the_pattern() {
    let failure = check("rm -rf /", &usual(), Destination::Process).expect_err("it is on the list");
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "command is blocked by `tools.shell_denylist` pattern `rm -rf /`");
}

#[test]
fn check_refuses_what_it_cannot_read() {
    for text in ["echo 'x", "if true", "sh -c 'if true'", "echo \"$(if)\"", "99999999999>x", "a <<E\n${"] {
        let failure = check(text, &usual(), Destination::Process).expect_err("nobody knows what it runs");
        assert_eq!(failure.kind, Kind::Denied, "{text}");
        assert!(failure.message.starts_with("command cannot be checked"), "{text}: {}", failure.message);
    }
}

#[test]
fn empty_denylist_admits_everything_unread() {
    assert_eq!(check("rm -rf / 'unclosed", &Denylist::default(), Destination::Process), Ok(()));
}

#[test]
fn what_is_typed_need_not_be_a_script_but_is_held_against_the_list() {
    let typed = |text| check(text, &usual(), Destination::Program).map_err(|failure| failure.kind);
    assert_eq!(["don't", "it's (almost) done", "echo hi"].map(typed), [Ok(()), Ok(()), Ok(())]);
    for text in ["rm -rf / 'and more", "echo 'x; sudo rm -rf /", "\"rm\" -rf / '"] {
        let _ = typed(text).expect_err(text);
    }
}

#[test]
fn heredoc_within_a_substitution_is_text() {
    assert_passes(&[
        "git commit -m \"$(cat <<'EOF'\nIt's (really) a \"reboot\n:) ; reboot $( {\nEOF\n)\"",
        "x=$(cat <<-E\n\treboot '\n\tE\n)",
        "cat <<A <<-'B' | tr a b\nreboot\nA\n\treboot '\n\tB\ntrue",
        "cat <<EOF\n$(case x in x) echo ')';; esac)\nEOF",
        "x=$(case $y in a) echo 1;; (b|c) (echo 2);; esac; echo 3)",
        "x=$(cat <<'EOF'\nreboot \\\nEOF\n)",
        "cat <<EOF\nno newline after the end\nEOF",
        "echo $( (( x = 1 << 2 ))\necho ')' )",
        "((echo '`') ; (true))",
        &format!("cat <<E\ndata[\"x\"] = {}\nE", "[(\"y\")]".repeat(20)),
        "(( x = 1 << 2 ))\necho $((1 << 2))",
    ]);
    assert_denied(&["git commit -m \"$(cat <<'EOF'\nIt's :)\nEOF\nreboot)\""]);
}

#[test]
fn tmux_lifecycle_is_found_wherever_it_stands() {
    for (text, name) in [
        ("tmux new-session -d -s x", "new-session"),
        ("tmux split-window -d", "split-window"),
        ("tmux create-pane :default", "create-pane"),
        ("FOO=1 tmux new -d", "new-session"),
        ("x; tmux -L s kill-pane", "kill-pane"),
        ("tmux -Ls -2 kill-server", "kill-server"),
        ("/usr/bin/tmux neww", "new-window"),
        ("tmux list-panes \\; kill-window", "kill-window"),
        ("tmux list-panes\\; respawnp", "respawn-pane"),
        ("sudo tmux source x", "source-file"),
        ("sh -c 'tmux kill-ses'", "kill-session"),
        ("tmux", "new-session"),
    ] {
        assert_eq!(Script::parse(text).expect("it parses").tmux_lifecycle(), Some(name), "{text}");
    }
}

#[test]
fn other_uses_of_tmux_pass() {
    for text in [
        "tmux list-panes",
        "echo tmux split-window",
        "tmux -V",
        "tmux display-message -p kill-pane",
        "tmux send-keys -t x 'kill-server' Enter",
        "grep tmux new-session",
    ] {
        assert_eq!(Script::parse(text).expect("it parses").tmux_lifecycle(), None, "{text}");
    }
}

fn hazard_of(text: &str) -> Option<(&'static str, usize)> {
    let script = Script::parse(text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
    script.shared_shell_hazard().map(|hazard| (hazard.what, hazard.line))
}

#[test]
fn what_ends_or_poisons_the_shell_is_found() {
    for (text, what, line) in [
        ("set -e\nprintf 'x'", "set -e", 1),
        ("echo ready\nexit", "exit", 2),
        ("exec sleep 1", "exec", 1),
        ("exec > log 2>&1", "exec", 1),
        ("exec 3< f", "exec", 1),
        ("true; exit", "exit", 1),
        ("set -x; set -e", "set -e", 1),
        ("set -ue", "set -e", 1),
        ("set -uo errexit", "set -e", 1),
        ("set -o pipefail -e", "set -e", 1),
        ("setopt ERR_EXIT", "setopt errexit", 1),
        ("# x\n\ncat <<E\nx\nE\nlogout", "logout", 6),
        ("cd /x && exec sh", "exec", 1),
        ("false || exit 1", "exit", 1),
        ("if x; then\n  exit 1\nfi", "exit", 2),
        ("while read x; do exit; done < f", "exit", 1),
        ("f() {\n exit\n}", "exit", 2),
        ("{ exit; }", "exit", 1),
        ("true\neval 'x; exit'", "exit", 2),
        ("trap 'rm x; exit' INT", "exit", 1),
        ("command exit", "exit", 1),
        ("builtin set -e", "set -e", 1),
        ("! exit", "exit", 1),
        ("time exit", "exit", 1),
        ("! time exit", "exit", 1),
        ("A=1 exit", "exit", 1),
        ("true | exit", "exit", 1),
        ("kill -9 $$", "kill $$", 1),
    ] {
        assert_eq!(hazard_of(text), Some((what, line)), "{text}");
    }
}

#[test]
fn what_stays_in_a_child_is_no_hazard() {
    for text in [
        "bash -lc 'set -e; exit 1'",
        "(set -e; exit 1)",
        "x=$(exit 3)",
        "echo `exit`",
        "exit | true",
        "exit &",
        "cat <(exit)",
        "coproc exit",
        "f() ( exit 1 )",
        "cat > s.sh <<EOF\nset -e\nexit 0\nEOF",
        "(exec > log 2>&1; make)",
        "set +e",
        "set -- -e",
        "set x -e",
        "set -o pipefail",
        "set -x",
        "setopt noerrexit",
        "echo exit",
        "exit_handler",
        "sudo exit",
        "xargs sh -c 'exit 255'",
        "kill -9 123",
    ] {
        assert_eq!(hazard_of(text), None, "{text}");
    }
}

#[test]
fn many_commands_are_read() {
    for count in [51, 5_000] {
        let text = "true; ".repeat(count);
        assert_eq!(Script::parse(&text).expect("it parses").commands.len(), count);
        assert_eq!(denied(&(text + "reboot")).as_deref(), Some("reboot"));
    }
}

#[test]
fn length_is_capped() {
    assert_eq!(refusal(&"a".repeat(1 << 20)), Unparsable::TooLong);
    assert_passes(&[&format!("echo {}", "a".repeat(MAX_BYTES - 5))]);
}

#[test]
fn nesting_is_capped() {
    let nest = |open: &str, close: &str, depth: usize| format!("{}:{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in [
        ("echo $(", ")"),
        ("echo \"$(", ")\""),
        ("( ", " )"),
        ("(", ")"),
        ("{ ", "; }"),
        ("if ", "; then :; fi"),
        ("if :; then ", "; fi"),
        ("while ", "; do :; done"),
        ("for x in y; do ", "; done"),
        ("case x in x) ", "\nesac"),
        ("f() { ", "; }"),
        ("echo ${x:-", "}"),
        ("cat <(", ")"),
        ("sudo ", ""),
        ("eval ", ""),
    ] {
        let deep = refusal(&nest(open, close, 1_000));
        assert!(matches!(deep, Unparsable::TooNested | Unparsable::TooComplex), "{open}: {deep}");
        assert_passes(&[&nest(open, close, 6)]);
    }
    // Unfinished, and of the sort that counts as no level.
    for open in
        ["$(", "(", "{", "if ", "[[ (", "case x in x) ", "`", "${", "$((", "a[$(", "a[\"", "a[", "coproc ", "[[ ! "]
    {
        for depth in [10, 100, 1_000, 30_000] {
            assert_decided(&open.repeat(depth));
        }
    }
}

#[test]
fn backtracking_is_bounded() {
    for (open, close) in [
        ("(", "; )"),
        ("( ( ", "; ) )"),
        ("case x in x) ", "\nesac"),
        ("[[ x =~ (", ""),
        ("a[\"b$(c ", ")\"]=1"),
        ("echo \"a$(echo ", ")\""),
        ("echo $((", ") )"),
        ("cat <<E ; a", "\nE\n"),
        ("[[ ( ", ""),
        ("x $(<<- ))#", ""),
    ] {
        for depth in 1..64 {
            assert_decided(&format!("{}a; b{}", open.repeat(depth), close.repeat(depth)));
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Text from the parts that a shell gives a meaning to.
fn shell_like() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "[a-z0-9 /~]{1,3}",
        4 => prop::sample::select(vec![
            "$(", ")", "(", "((", "))", "{", "}", "${", "$((", "`", "\"", "'", "$'", "\\", "<<", "<<-", "<<<", "E",
            "\nE\n", "\n", " if ", " then ", " fi", " for ", " in ", " do ", " done", " case ", " esac", ";;", ";",
            "&", "|", "&&", "#", "=", "[", "]", "[[ ", " ]]", "!", "time ", "function ", "coproc ", "<(", ">", "@(",
            "2>&1", "rm -rf /", "sh -c ", "eval ", "a[", "é", "\0", "$", ":-", "\t", "99999999999",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

#[test]
fn what_is_flat_is_read_here_and_all_else_is_not() {
    let here = |text: &str| Script::parse_here(text).is_some();
    for text in
        ["true", "cd a && cargo test 2>&1 | tail -20", "sh -c 'rm -rf /'", "echo \"$HOME\" > x; wc -l x", "a 'b"]
    {
        assert!(here(text), "{text}");
    }
    let long = format!("echo {}", "a".repeat(1024));
    for text in ["echo $(rm -rf /)", "( true )", "if true; then x; fi", "! true", "sudo sh -c 'sh -c true'", &long] {
        assert!(!here(text), "{text}");
    }
    assert!(check_here("rm -rf /", &usual(), Destination::Process).expect("it is flat").is_err());
    assert_eq!(check_here("set -e", &denylist(&[]), Destination::Process), Some(Ok(())));
    assert!(check_here("set -e", &denylist(&[]), Destination::Pane).expect("it is flat").is_err());
}

#[test]
fn what_is_read_here_needs_little_stack() {
    let long = |piece: &str| piece.repeat(1024 / piece.len());
    let texts = [
        "a|",
        "a&&",
        "a;",
        "a\n",
        "<a ",
        "<<a\n",
        "a=b ",
        "time ",
        "function ",
        "\"a\" ",
        "sudo ",
        "then ",
        "$a",
        "\\",
    ];
    // A guest leaves more than this of the stack that it is on.
    let read = move || texts.map(|piece| Script::parse_here(&format!("sudo env sh -c '{}'", long(piece))).is_some());
    let read = std::thread::Builder::new().stack_size(1 << 20).spawn(read).expect("a thread").join();
    assert_eq!(read.expect("there is room").len(), texts.len());
}

#[test]
fn a_script_is_named_after_the_program_that_it_comes_to() {
    for (text, expected) in [
        ("npm run dev", Some("npm")),
        ("cd app && PORT=3000 /usr/bin/node server.js", Some("node")),
        ("nohup python3 -m http.server >log 2>&1 & echo $!", Some("python3")),
        ("make all | tee log", Some("tee")),
        ("cd sub", None),
    ] {
        let name = Script::parse(text).expect("a script").program();
        assert_eq!(name.as_deref(), expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_crashes_or_stalls_the_parser(text in prop_oneof![".*", shell_like()]) {
        assert_decided(&text);
    }

    #[test]
    fn what_is_read_here_is_read_as_elsewhere(text in prop_oneof!["[ -'*-Z\\\\^-z|~\n]{0,60}", shell_like()]) {
        let words = |script: Script| script.commands.into_iter().map(|it| (it.words, it.line, it.in_shell)).collect();
        let words = |parsed: Result<Script, Unparsable>| parsed.map(words);
        if let Some(parsed) = Script::parse_here(&text) {
            prop_assert_eq!(words(parsed), words(Script::parse(&text)) as Result<Vec<_>, _>);
        }
    }

    #[test]
    fn quoted_argument_of_echo_never_matches(text in prop_oneof![".*", shell_like(), "(rm -rf /|; reboot|'|\n)*"]) {
        let list = denylist(&["rm -rf /", "mkfs", "shutdown", "reboot", "dd if="]);
        let script = Script::parse(&format!("echo {}", quoted(&text)));
        prop_assert_eq!(script.expect("it is quoted").denied_by(&list), None);
    }

    #[test]
    fn quoting_each_word_changes_nothing(words in prop::collection::vec("[ -~]{1,8}", 1..5)) {
        let text = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join("  ");
        let script = Script::parse(&text);
        // A word may be a wrapper, of something that does not parse.
        if let Ok(script) = script {
            prop_assert_eq!(&script.commands[0].words, &words);
        }
    }
}
