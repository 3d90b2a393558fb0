//! What operations leave that may name programs: lists of what a rebase still does, strategies of merges, words for a shell.

use super::config;
use super::parts::Part;
use bstr::ByteSlice;

/// Strategies that are part of git; any other name is a program `git-merge-NAME`. See git-merge(1).
const STRATEGIES: [&[u8]; 6] = [b"octopus", b"ort", b"ours", b"recursive", b"resolve", b"subtree"];
/// What of a list of a rebase runs a command or hands over to whoever is there; see git-rebase(1).
const COMMANDS: [&[u8]; 4] = [b"b", b"break", b"exec", b"x"];

/// Checks the content of such a file. Returns it without the commands that it names, where it names some.
pub(crate) fn checked(part: Part, content: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    match part {
        Part::Todo => Ok(without_commands(content)),
        Part::Strategy if is_strategy(content.trim()) => Ok(None),
        Part::Options if has_own_strategy(content) => Ok(None),
        Part::Strategy | Part::Options => Err("it names a merge strategy that is not part of git"),
        Part::Words if content.iter().any(|byte| b"$`;|&<>()\\".contains(byte)) => {
            Err("old versions of git hand it to a shell")
        }
        Part::Words | Part::State => Ok(None),
        Part::Object
        | Part::Pack
        | Part::Ref
        | Part::PackedRefs
        | Part::Head
        | Part::Log
        | Part::Index
        | Part::Config => Ok(None),
        Part::Hook | Part::Derived | Part::Refused(_) | Part::Unknown => Err("it is no text of an operation"),
    }
}

fn is_strategy(name: &[u8]) -> bool {
    STRATEGIES.contains(&name)
}

fn has_own_strategy(content: &[u8]) -> bool {
    let Ok(file) = config::parse(content) else { return false };
    file.strings("options.strategy").unwrap_or_default().iter().all(|name| is_strategy(name))
}

fn without_commands(content: &[u8]) -> Option<Vec<u8>> {
    let is_command = |line: &&[u8]| {
        let word = line.trim_start().split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        COMMANDS.contains(&word)
    };
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let kept: Vec<u8> = lines.filter(|line| !is_command(line)).flatten().copied().collect();
    (kept.len() != content.len()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_taken_out_of_a_list() {
        let list = b"pick 1 a\nexec id\n  x id\nbreak\nfixup 2 b\n# exec x\n";
        let kept = checked(Part::Todo, list).expect("a list").expect("less of it");
        assert_eq!(kept, b"pick 1 a\nfixup 2 b\n# exec x\n");
        assert_eq!(checked(Part::Todo, b"pick 1 a\n"), Ok(None));
    }

    #[test]
    fn only_strategies_of_git_pass() {
        assert_eq!(checked(Part::Strategy, b"ort\n"), Ok(None));
        assert!(checked(Part::Strategy, b"evil\n").is_err());
        assert_eq!(checked(Part::Options, b"[options]\n\tsignoff = true\n"), Ok(None));
        assert!(checked(Part::Options, b"[options]\n\tstrategy = evil\n").is_err());
        assert!(checked(Part::Words, b" -- '$(id)'").is_err());
    }
}
