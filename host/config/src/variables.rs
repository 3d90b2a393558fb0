//! Environment variables with a meaning of their own: what marks a call, what holds a token, and what never reaches a command.

/// Names the call that a process belongs to.
pub const CALL_MARK: &str = "TOOLCRIB_CALL";
/// Holds the token of `toolcrib serve`. It is taken out of the environment when the program starts.
pub const TOKEN_VARIABLE: &str = "TOOLCRIB_TOKEN";

/// Variables that the dynamic loader and the C library act on.
const LOADER_HOOKS: &str =
    "LD_* DYLD_* MALLOC_* GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH HOSTALIASES RES_OPTIONS LOCALDOMAIN";

/// Variables that shells act on.
const SHELL_HOOKS: &str = "BASH_ENV ENV BASH_FUNC_* SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND IFS CDPATH GLOBIGNORE \
    ZDOTDIR FPATH KSH_ENV fish_* INPUTRC HISTFILE SHELL";

/// Variables by which interpreters and tools run code or programs that the variable names, each by the manual of what reads it. A person may name
/// one in `shell_env`; a model cannot set one beside a command.
const CODE_HOOKS: &str = "NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONUSERBASE \
    PERL5OPT PERL5LIB PERL5DB PERLLIB RUBYOPT RUBYLIB GEM_PATH GEM_HOME BUNDLE_GEMFILE PHPRC PHP_INI_SCAN_DIR LUA_INIT* LUA_PATH* LUA_CPATH* \
    JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS DOTNET_STARTUP_HOOKS CORECLR_PROFILER* COR_PROFILER* \
    R_PROFILE* R_ENVIRON* JULIA_LOAD_PATH ERL_FLAGS ERL_*_FLAGS ELIXIR_ERL_OPTIONS \
    RUSTC RUSTFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC CARGO_BUILD_RUSTC* CARGO_TARGET_* CARGO_ALIAS_* GOFLAGS GOROOT CC CXX LD AR MAKEFLAGS \
    GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_EXEC_PATH \
    GIT_TEMPLATE_DIR GIT_CONFIG* GIT_DIR SSH_ASKPASS SUDO_ASKPASS EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER";

/// Returns whether an environment variable has the programs that read it run code or another program.
#[must_use]
pub fn loads_code(name: &str) -> bool {
    CODE_HOOKS.split_whitespace().any(|hook| is_hook(hook, name))
}

/// Returns whether a name is that of an entry, in which a `*` stands for any characters.
fn is_hook(hook: &str, name: &str) -> bool {
    match hook.split_once('*') {
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after)),
        None => hook == name,
    }
}

/// Returns whether a text is the name of a variable, as shells have them.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether an environment variable never reaches a command: a hook of the loader or of a shell, or no name
/// at all.
#[must_use]
pub fn is_never_passed(name: &str) -> bool {
    !is_variable_name(name)
        || [CALL_MARK, TOKEN_VARIABLE].contains(&name)
        || LOADER_HOOKS.split_whitespace().chain(SHELL_HOOKS.split_whitespace()).any(|hook| is_hook(hook, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_and_shell_hooks_are_never_passed() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "LOCPATH",
            "NLSPATH",
            "HOSTALIASES",
            "RES_OPTIONS",
            "LOCALDOMAIN",
            "MALLOC_CHECK_",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "BASH_FUNC_x",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "PROMPT_COMMAND",
            "IFS",
            "CDPATH",
            "GLOBIGNORE",
            "ZDOTDIR",
            "FPATH",
            "KSH_ENV",
            "fish_function_path",
            "INPUTRC",
            "HISTFILE",
            "SHELL",
            "TOOLCRIB_CALL",
            "TOOLCRIB_TOKEN",
        ] {
            assert!(is_never_passed(name), "{name}");
        }
    }

    #[test]
    fn what_loads_code_is_known() {
        for name in [
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "GIT_SSH_COMMAND",
            "LUA_INIT_5_4",
            "ERL_ZFLAGS_FLAGS",
            "GIT_CONFIG_COUNT",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "RUSTC_WRAPPER",
            "JAVA_TOOL_OPTIONS",
            "EDITOR",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in
            ["NODE_ENV", "PYTHONUNBUFFERED", "RUST_LOG", "GIT_AUTHOR_NAME", "CI", "DEBUG", "CARGO_TERM_COLOR", "PORT"]
        {
            assert!(!loads_code(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_never_passed() {
        for name in ["", "A=B", "A B", "A\n", "A\0", "1A", "Ä", "LD*"] {
            assert!(is_never_passed(name), "{name:?}");
        }
        for name in ["A", "_", "JAVA_HOME", "ENVIRONMENT", "OLD_PATH", "PS1", "http_proxy", "GITHUB_TOKEN"] {
            assert!(!is_never_passed(name), "{name:?}");
        }
    }
}
