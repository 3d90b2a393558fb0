//! Programs that run other programs or write files, and by which of their words: what a `*` of a rule never stands for.
//!
//! Each row names the public manual that it was taken from. A program that is not here is one whose words run nothing that we know of.

use super::basename;

/// What a program does with its words.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// It acts by itself, but for the words of its row.
    Plain,
    /// It runs a text or a file: its first operand, or its standard input. What follows the operand is for that.
    Code,
    /// Any of its words may be a command, or a text that is run.
    Exact,
}

/// A program, and the words that make it run another one. Lists are separated by blanks.
pub(super) struct Program {
    names: &'static str,
    pub(super) kind: Kind,
    /// Whole words, also where `=` and a value follow.
    words: &'static str,
    /// Long options, also shortened, and also where `=` and a value follow.
    long: &'static str,
    /// Letters of short options, alone or in a cluster.
    short: &'static str,
    /// How a word begins.
    begins: &'static str,
    /// What a word contains.
    parts: &'static str,
    /// The subcommands that a `*` may stand for; any where there is none.
    known: &'static str,
    /// Options before the subcommand whose value is the next word.
    valued: &'static str,
    subcommands: &'static [Subcommand],
}

/// What a subcommand adds.
struct Subcommand {
    name: &'static str,
    long: &'static str,
    short: &'static str,
}

const PLAIN: Program = Program {
    names: "",
    kind: Kind::Plain,
    words: "",
    long: "",
    short: "",
    begins: "",
    parts: "",
    known: "",
    valued: "",
    subcommands: &[],
};
const CODE: Program = Program { kind: Kind::Code, ..PLAIN };
const EXACT: Program = Program { kind: Kind::Exact, ..PLAIN };

const fn sub(name: &'static str, short: &'static str, long: &'static str) -> Subcommand {
    Subcommand { name, long, short }
}

static PROGRAMS: &[Program] = &[
    // git(1) "OPTIONS", git-config(1) "alias.*", and the page of each subcommand: https://git-scm.com/docs
    Program {
        names: "git",
        long: "exec-path config-env git-dir work-tree ext-diff upload-pack receive-pack upload-archive output strategy",
        begins: "ext:: fd::",
        known: "add am apply blame branch cat-file check-ignore checkout cherry cherry-pick clean commit describe diff \
                fetch format-patch grep init log ls-files ls-remote ls-tree merge merge-base mv name-rev notes pull push \
                range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show show-ref \
                stash status switch symbolic-ref tag version whatchanged worktree",
        valued: "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
        subcommands: &[
            sub("", "cCpP", ""),
            sub("archive", "", "exec remote"),
            sub("bisect", "", ""),
            sub("clone", "cu", "config template"),
            sub("diff", "", "ext-diff textconv"),
            sub("difftool", "xt", "extcmd tool"),
            sub("fetch", "", "upload-pack"),
            sub("grep", "O", "open-files-in-pager"),
            sub("init", "", "template"),
            sub("ls-remote", "", "exec upload-pack"),
            sub("mergetool", "t", "tool"),
            sub("push", "", "exec receive-pack"),
            sub("rebase", "x", "exec"),
            sub("send-email", "", "sendmail-cmd smtp-server to-cmd cc-cmd header-cmd"),
        ],
        ..PLAIN
    },
    // GNU findutils manual, "Running Commands" and "Print File Information"
    Program { names: "find gfind", words: "-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf", ..PLAIN },
    // fd(1): https://github.com/sharkdp/fd
    Program { names: "fd fdfind", long: "exec exec-batch", short: "xX", ..PLAIN },
    // GNU tar manual, "Running External Commands"; a first word without a dash is a cluster, too
    Program {
        names: "tar gtar bsdtar star",
        long: "to-command use-compress-program checkpoint-action info-script new-volume-script rsh-command rmt-command",
        short: "IF",
        ..PLAIN
    },
    // GNU cpio manual, "Options": --rsh-command
    Program { names: "cpio", long: "rsh-command", ..PLAIN },
    // rsync(1): --rsh, --rsync-path, --remote-option
    Program { names: "rsync", long: "rsh rsync-path remote-option", short: "eM", ..PLAIN },
    // scp(1), sftp(1): -S program, -o option, -F file, -D path
    Program { names: "scp sftp", short: "SoFDJ", ..PLAIN },
    // zip(1): -TT, --unzip-command
    Program { names: "zip", words: "-TT", long: "unzip-command", short: "T", ..PLAIN },
    // GNU coreutils manual: sort --compress-program, split --filter, install --strip-program
    Program { names: "sort gsort", long: "compress-program output", short: "o", ..PLAIN },
    Program { names: "split gsplit", long: "filter", ..PLAIN },
    Program { names: "install ginstall", long: "strip-program", ..PLAIN },
    // POSIX test, and bash(1) "CONDITIONAL EXPRESSIONS": a subscript is evaluated
    Program { names: "test [", words: "-v -R", ..PLAIN },
    // bash(1) "printf": -v sets a variable, whose subscript is evaluated
    Program { names: "printf", begins: "-v", ..PLAIN },
    // bash(1) "wait": -p sets a variable
    Program { names: "wait", short: "p", ..PLAIN },
    // GNU diffutils manual: diff3 --diff-program; sdiff starts an editor
    Program { names: "diff3", long: "diff-program", ..PLAIN },
    Program { names: "sdiff", short: "o", long: "output diff-program", ..PLAIN },
    // GNU patch manual: scripts for ed
    Program { names: "patch", short: "e", long: "ed", ..PLAIN },
    // less(1), more(1): commands after `+`, files of keys, -o
    Program {
        names: "less more most",
        begins: "+",
        short: "koO",
        long: "lesskey-file lesskey-src lesskey-content log-file",
        ..PLAIN
    },
    // man(1): -P, -H, -X, -C
    Program {
        names: "man apropos whatis",
        short: "PHXTCR",
        long: "pager html gxditview config-file preprocessor troff-device",
        ..PLAIN
    },
    // rg(1): --pre, --hostname-bin
    Program { names: "rg", long: "pre hostname-bin search-zip", short: "z", ..PLAIN },
    // ag(1), ack(1)
    Program { names: "ag ack", long: "pager output ackrc env", ..PLAIN },
    // bat(1), delta(1)
    Program { names: "bat batcat delta", long: "pager diff-command", words: "cache", ..PLAIN },
    // The Cargo Book, "Configuration" and the options of `cargo`
    Program {
        names: "cargo",
        long: "config manifest-path artifact-dir lockfile-path",
        short: "CZ",
        begins: "+",
        ..PLAIN
    },
    // The rustc book, "Codegen Options" and @path
    Program {
        names: "rustc rustdoc",
        parts: "linker codegen-backend",
        begins: "@ -Z",
        long: "runtool runtool-arg test-runtool test-builder",
        ..PLAIN
    },
    // The rustup book: run
    Program { names: "rustup", words: "run", begins: "+", ..PLAIN },
    // "go help build", "go help test", "go help vet": -exec, -toolexec, -vettool
    Program {
        names: "go",
        words: "-exec -toolexec -vettool -ldflags -gcflags -asmflags -gccgoflags -compiler -pkgdir -modfile -overlay -C \
                --exec --toolexec --vettool --ldflags --gcflags --asmflags --gccgoflags --compiler --pkgdir --modfile \
                --overlay --C generate run tool env",
        ..PLAIN
    },
    // GCC manual, "Overall Options" and "Developer Options"; Clang "Command Line Argument Reference"
    Program {
        names: "gcc g++ cc c++ clang clang++ cpp gfortran ld gold lld ar as",
        words: "-wrapper -Xclang -Xlinker",
        begins: "@ -B -fplugin -specs -Wl, -Wa, -Wp, --plugin -plugin -load -fuse-ld --config -fpass-plugin",
        ..PLAIN
    },
    // cmake(1): -P, -E, -D, -C, -T; ctest(1): -S, --build-and-test
    Program { names: "cmake", short: "PEDCT", long: "build install open preset toolchain workflow", ..PLAIN },
    Program { names: "ctest", short: "SD", long: "script build-and-test launch-test overwrite", words: "-SP", ..PLAIN },
    // The Ninja build system: -C, -f
    Program { names: "ninja", short: "Cf", ..PLAIN },
    // GNU make manual, "Options Summary" and "Overriding Variables"
    Program {
        names: "make gmake",
        parts: "=",
        short: "fCIE",
        long: "eval file makefile directory include-dir",
        ..PLAIN
    },
    // just(1)
    Program {
        names: "just",
        parts: "=",
        short: "fd",
        long: "justfile working-directory shell shell-arg set command chooser dotenv-path",
        ..PLAIN
    },
    // docs.npmjs.com "config": script-shell, node-options; pnpm.io, yarnpkg.com
    Program {
        names: "npm pnpm yarn",
        words: "exec x dlx explore edit config set create init node",
        long: "script-shell node-options shell prefix userconfig globalconfig call editor viewer git shell-emulator dir cwd",
        short: "cC",
        ..PLAIN
    },
    // pip.pypa.io "pip install"; docs.astral.sh/uv
    Program {
        names: "pip",
        long: "python config-settings global-option build-option editor",
        words: "config",
        ..PLAIN
    },
    Program { names: "uv", words: "run tool", long: "python config-file directory project", short: "p", ..PLAIN },
    // docs.pytest.org "Command-line flags"
    Program {
        names: "pytest py.test",
        short: "cpo",
        long: "config-file rootdir confcutdir override-ini pdbcls basetemp debug",
        ..PLAIN
    },
    // guides.rubygems.org, bundler.io
    Program {
        names: "gem bundle bundler rake",
        words: "exec open console",
        short: "efrRI",
        long: "execute rakefile require libdir config-file",
        ..PLAIN
    },
    // getcomposer.org "Command-line interface"
    Program { names: "composer", words: "exec run run-script config global", short: "d", long: "working-dir", ..PLAIN },
    // mvn(1), gradle(1): build files elsewhere, and goals that run programs
    Program {
        names: "mvn gradle",
        parts: "exec:",
        begins: "-D -P",
        short: "fsIbc",
        long: "file settings init-script build-file project-dir include-build",
        ..PLAIN
    },
    // docs.docker.com "docker", podman(1)
    Program {
        names: "docker podman nerdctl",
        words: "run exec create build buildx compose builder cp plugin service stack swarm container image load import commit context",
        long: "config context host",
        short: "Hc",
        ..PLAIN
    },
    // kubernetes.io "kubectl"; helm.sh: --post-renderer
    Program {
        names: "kubectl oc",
        words: "exec run debug plugin cp attach edit apply create replace config",
        long: "kubeconfig",
        ..PLAIN
    },
    Program { names: "helm", words: "plugin", long: "post-renderer kubeconfig", ..PLAIN },
    // hg(1): --config, --cwd, -R; svn help: --diff-cmd and others
    Program { names: "hg", long: "config cwd repository tool ssh remotecmd", short: "R", words: "extdiff", ..PLAIN },
    Program { names: "svn", long: "diff-cmd diff3-cmd editor-cmd config-option config-dir", ..PLAIN },
    // wget(1): --use-askpass, -e; curl(1): -K
    Program { names: "wget", long: "use-askpass execute config", short: "e", ..PLAIN },
    Program { names: "curl", long: "config", short: "K", ..PLAIN },
    // tcpdump(1): -z; nmap(1): --script, --interactive
    Program { names: "tcpdump", short: "z", ..PLAIN },
    Program { names: "nmap", long: "script interactive datadir servicedb versiondb", words: "-sC -A", ..PLAIN },
    // socat(1): EXEC, SYSTEM, SHELL; ncat(1), nc(1): -e, -c
    Program { names: "socat", parts: "exec system shell EXEC SYSTEM SHELL", ..PLAIN },
    Program { names: "nc ncat netcat", short: "ec", long: "exec sh-exec lua-exec", ..PLAIN },
    // openssl(1): -engine, -provider, -config
    Program { names: "openssl", words: "-engine -provider -provider-path -config engine", ..PLAIN },
    // gpg(1): --agent-program and others
    Program {
        names: "gpg",
        long: "photo-viewer agent-program dirmngr-program keyboxd-program options homedir exec-path pinentry-mode",
        ..PLAIN
    },
    // apt-get(8), dpkg(1), rpm(8), dnf(8)
    Program { names: "apt apt-get apt-cache aptitude", short: "oc", long: "option config-file", ..PLAIN },
    Program { names: "dpkg dpkg-query", long: "pre-invoke post-invoke admindir root instdir", ..PLAIN },
    Program { names: "rpm rpmbuild", long: "eval pipe define load rcfile macros root", short: "ED", ..PLAIN },
    Program { names: "dnf yum", short: "c", long: "config setopt installroot", words: "shell", ..PLAIN },
    // systemctl(1): edit; journalctl has no such word
    Program { names: "systemctl loginctl", words: "edit", long: "host root", short: "H", ..PLAIN },
    // ip(8): netns exec, vrf exec, -batch
    Program { names: "ip tc", words: "exec -batch -b -force", begins: "-b", ..PLAIN },
    // ImageMagick "Command-line Processing": `|` and `@` in names, delegates
    Program {
        names: "convert magick mogrify identify composite montage",
        parts: "| @ msl: ephemeral: https: http:",
        ..PLAIN
    },
    // pandoc.org "Options"
    Program {
        names: "pandoc",
        short: "FLd",
        long: "filter lua-filter pdf-engine pdf-engine-opt defaults data-dir to from",
        parts: ".lua",
        ..PLAIN
    },
    // TeX Live manual: shell escape
    Program {
        names: "tex latex pdftex pdflatex xelatex lualatex luatex",
        parts: "write18 shell-escape",
        long: "lua output-directory",
        ..PLAIN
    },
    // latexmk(1): -e, -r, -pdflatex=
    Program { names: "latexmk", begins: "-e -r -pdflatex -latex -xelatex -lualatex -usepretex", ..PLAIN },
    // jj-vcs.github.io "Config"; gh manual: alias, extension
    Program { names: "jj", long: "config config-file repository tool", short: "R", words: "config", ..PLAIN },
    Program { names: "gh glab", words: "alias extension ext config codespace cs", ..PLAIN },
    // vcs-free tools that start an editor or a viewer: crontab(1), visudo(8), xdg-open(1)
    Program { names: "crontab at batch visudo xdg-open open sensible-pager run-mailcap see", ..EXACT },
    // POSIX awk, GNU awk manual: system(), pipes, -f, -l
    Program { names: "awk gawk mawk nawk", ..CODE },
    // GNU sed manual: the command `e`, and `s///e`
    Program { names: "sed gsed", short: "ef", long: "expression file", ..CODE },
    // perlrun(1), "Using Python on the Command Line", ruby(1), node(1), php(1), lua(1), and others: -e, -c, -r, -m, -i
    Program {
        names: "perl python pypy ipython ruby jruby node nodejs tsx ts-node php lua luajit tclsh wish guile julia Rscript \
                runghc runhaskell osascript java groovy elixir npx pnpx bunx uvx",
        ..CODE
    },
    // The same where options follow the operand, or a subcommand comes before it
    Program {
        names: "deno bun irb racket R ghci jshell scala kotlin erl iex ocaml sbcl clisp emacs emacsclient swift dotnet pwsh \
                powershell pipx",
        ..EXACT
    },
    // bash(1), dash(1), zsh(1), ksh(1), fish(1)
    Program { names: "sh bash dash ash zsh ksh mksh rbash fish tcsh csh yash", ..CODE },
    // vim(1): -c, +command, modelines; ed(1), ex(1), nano(1), pico(1)
    Program { names: "vi vim nvim view vimdiff rvim ex ed red nano pico joe micro hx", ..EXACT },
    // gdb(1), lldb(1), expect(1), dc(1), bc(1), m4(1): commands that run a shell
    Program { names: "gdb lldb rust-gdb rust-lldb expect dc m4 gnuplot octave maxima", ..EXACT },
    // sqlite3(1), psql(1), mysql(1), ftp(1), lftp(1), mail(1), mutt(1): shell escapes
    Program { names: "sqlite psql mysql mariadb ftp lftp mail mailx mutt redis-cli mongosh", ..EXACT },
    // tmux(1), screen(1): run-shell, new-window, send-keys
    Program { names: "tmux screen zellij dtach abduco", ..EXACT },
    // gs(1): PostScript runs programs by %pipe%; latex of others
    Program { names: "gs groff troff", ..EXACT },
    // The pages of each: they run the command that follows
    Program {
        names: "busybox toybox sudo doas su runuser pkexec run0 env genv nice gnice ionice chrt taskset time gtime timeout gtimeout \
                stdbuf gstdbuf nohup setsid flock xargs gxargs parallel watch entr script unbuffer fakeroot proot \
                firejail bwrap chroot unshare nsenter setpriv capsh prlimit choom numactl cpulimit eatmydata \
                systemd-run systemd-inhibit caffeinate strace ltrace perf valgrind rr ssh mosh rsh start-stop-daemon \
                run-parts command builtin exec eval repeat noglob nocorrect dbus-run-session xvfb-run direnv mise asdf \
                nix nix-shell nix-build guix conda mamba poetry pipenv hatch tox nox hyperfine ccache sccache distcc \
                bazel buck meson vagrant ansible terraform",
        ..EXACT
    },
];

/// The row of a program, by its name or its path. `python3.12` is `python`, `gcc-13` is `gcc`.
pub(super) fn of(name: &str) -> Option<&'static Program> {
    let name = basename(name);
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.').trim_end_matches('-');
    let row = |name: &str| PROGRAMS.iter().find(|program| listed(program.names, name));
    row(name).or_else(|| row(plain))
}

fn listed(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|listed| listed == name)
}

impl Program {
    /// Whether a word after those of `before` makes it run another program, or may do so.
    pub(super) fn runs_by(&self, before: &[&str], word: &str) -> bool {
        let subcommand = self.subcommand(before);
        let is_subcommand = !self.known.is_empty() && subcommand.is_none() && !word.starts_with('-');
        if is_subcommand && !listed(self.known, word) {
            return true;
        }
        let is_cluster = self.names.starts_with("tar ") && before.len() == 1 && !word.starts_with('-');
        let whole =
            |listed: &str| word.strip_prefix(listed).is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
        self.words.split_ascii_whitespace().any(whole)
            || self.begins.split_ascii_whitespace().any(|begin| word.starts_with(begin))
            || self.parts.split_ascii_whitespace().any(|part| word.contains(part))
            || has_option(self.short, self.long, word)
            || is_cluster && word.contains(|letter| self.short.contains(letter))
            || self.subcommands.iter().any(|sub| {
                // What comes before the subcommand is named by none.
                let is_here = subcommand.map_or(sub.name.is_empty(), |name| name == sub.name);
                is_here && has_option(sub.short, sub.long, word)
            })
    }

    /// Whether a word of which only this beginning is known may be one that runs another program.
    pub(super) fn may_run_by(&self, begin: &str) -> bool {
        let may_be = |listed: &str| listed.starts_with(begin) || begin.starts_with(listed);
        begin.starts_with('-')
            || !self.parts.is_empty()
            || self.words.split_ascii_whitespace().any(may_be)
            || self.begins.split_ascii_whitespace().any(may_be)
    }

    /// Whether the next word names a subcommand that matters.
    pub(super) fn wants_subcommand(&self, before: &[&str]) -> bool {
        !self.known.is_empty() && self.subcommand(before).is_none()
    }

    fn subcommand<'w>(&self, before: &[&'w str]) -> Option<&'w str> {
        let mut words = before.iter().skip(1);
        while let Some(word) = words.next() {
            if listed(self.valued, word) {
                words.next();
            } else if !word.starts_with('-') {
                return Some(word);
            }
        }
        None
    }

    /// Whether any word after those that a rule has written out matters.
    pub(super) fn is_free(&self) -> bool {
        let lists = [self.words, self.long, self.short, self.begins, self.parts, self.known];
        lists.iter().all(|list| list.is_empty()) && self.subcommands.is_empty()
    }
}

/// Whether a word is one of these options. A long one may be shortened, as getopt_long(3) takes it.
fn has_option(short: &str, long: &str, word: &str) -> bool {
    if let Some(name) = word.strip_prefix("--") {
        let name = name.split('=').next().unwrap_or(name);
        return !name.is_empty() && long.split_ascii_whitespace().any(|long| long.starts_with(name));
    }
    word.strip_prefix('-').is_some_and(|letters| letters.contains(|letter| short.contains(letter)))
}
