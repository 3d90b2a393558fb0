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
    let is_hook = |hook: &str| hook.strip_suffix('*').map_or(hook == name, |prefix| name.starts_with(prefix));
    !is_variable_name(name)
        || [CALL_MARK, TOKEN_VARIABLE].contains(&name)
        || LOADER_HOOKS.split_whitespace().chain(SHELL_HOOKS.split_whitespace()).any(is_hook)
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
    fn what_is_no_name_is_never_passed() {
        for name in ["", "A=B", "A B", "A\n", "A\0", "1A", "Ä", "LD*"] {
            assert!(is_never_passed(name), "{name:?}");
        }
        for name in ["A", "_", "JAVA_HOME", "ENVIRONMENT", "OLD_PATH", "PS1", "http_proxy", "GITHUB_TOKEN"] {
            assert!(!is_never_passed(name), "{name:?}");
        }
    }
}
