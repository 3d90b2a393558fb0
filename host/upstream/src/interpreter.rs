//! The programs that run a script: those that its first line names (execve(2)), and what `env` there looks for (env(1)).

use backend::DEFAULT_PATH;
use config::{Part, UpstreamSection};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What the system reads of a first line (`BINPRM_BUF_SIZE`).
const LINE_BYTES: u64 = 256;
/// Programs behind one file: an interpreter may be a script itself.
const MOST: usize = 8;
/// What looks a program up.
const ENV: &str = "env";

/// Returns what runs a file that is executed by the server of a section: its interpreter, that one's, and so on. None for a file that cannot be
/// executed, or is no script.
pub(super) fn interpreters(file: &Path, section: &UpstreamSection) -> Vec<PathBuf> {
    let path = path_of(section);
    let mut found: Vec<PathBuf> = Vec::new();
    let mut next = named(file, &path);
    while let Some(last) = next.last().cloned().filter(|last| !found.contains(last) && found.len() < MOST) {
        found.extend(next);
        next = named(&last, &path);
    }
    found
}

/// Where the server's programs are looked for.
fn path_of(section: &UpstreamSection) -> String {
    let Some(template) = section.variables.get("PATH") else { return DEFAULT_PATH.to_owned() };
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Secret(_) => String::new(),
    };
    template.parts().iter().map(text).collect()
}

/// What the first line of a script names: its interpreter, and behind `env` the program that it starts.
fn named(script: &Path, path: &str) -> Vec<PathBuf> {
    let Some(line) = first_line(script) else { return Vec::new() };
    let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((&line, ""));
    let interpreter = PathBuf::from(interpreter);
    let mut found = Vec::new();
    if interpreter.file_name().is_some_and(|name| name == ENV) {
        found.extend(of_env(argument, path));
    }
    found.insert(0, interpreter);
    // One that is relative is looked for in the server's own home, which it writes.
    found.retain(|program| program.is_absolute());
    found
}

/// The line without its mark.
fn first_line(script: &Path) -> Option<String> {
    // Opening a FIFO must not wait for its other end.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(script).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LINE_BYTES).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(OsStr::from_bytes(line).to_str()?.trim().to_owned())
}

/// The program that `env` starts with this argument of a first line.
fn of_env(argument: &str, path: &str) -> Option<PathBuf> {
    let (mut path, mut words) = (path.to_owned(), argument.split_ascii_whitespace());
    let program = loop {
        let word = words.next()?;
        // All of it is one argument of `env`, unless that is told to split it.
        let word = ["--split-string=", "-vS", "-S"].iter().find_map(|option| word.strip_prefix(option)).unwrap_or(word);
        match word.split_once('=') {
            _ if word.is_empty() => {}
            _ if ["-u", "-C", "--unset", "--chdir"].contains(&word) => _ = words.next(),
            _ if word.starts_with('-') => {}
            Some(("PATH", own)) => own.clone_into(&mut path),
            Some(_) => {}
            None => break word,
        }
    };
    if program.contains('/') {
        return Some(program.into());
    }
    let is_program = |file: &PathBuf| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(file: &Path, text: &str) {
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text).expect("a file");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    #[test]
    fn a_first_line_names_what_runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        write(&at("bin/run"), "binary");
        write(&at("bin/shim"), &format!("#!{}\n", at("bin/run").display()));
        let bin = at("bin").display().to_string();
        write(&at("bin/looked-up"), &format!("#!/usr/bin/env {bin}/run\n"));
        let section = UpstreamSection::of_command(Vec::new());
        for (line, expected) in [
            (format!("#!{bin}/run -x y\nmore"), vec![at("bin/run")]),
            (format!("#! \t{bin}/run\t-x"), vec![at("bin/run")]),
            (format!("#!{bin}/shim\n"), vec![at("bin/shim"), at("bin/run")]),
            (format!("#!/usr/bin/env {bin}/run\n"), vec!["/usr/bin/env".into(), at("bin/run")]),
            (format!("#!/usr/bin/env -S PATH={bin}:/bin -u X run -m a\n"), vec!["/usr/bin/env".into(), at("bin/run")]),
            (format!("#!/usr/bin/env -SPATH={bin} shim\n"), vec!["/usr/bin/env".into(), at("bin/shim"), at("bin/run")]),
            // Both of them by `env`.
            (
                format!("#!/usr/bin/env {bin}/looked-up\n"),
                vec!["/usr/bin/env".into(), at("bin/looked-up"), "/usr/bin/env".into(), at("bin/run")],
            ),
            ("#!/usr/bin/env no-such-program\n".into(), vec!["/usr/bin/env".into()]),
            ("#!run\n".into(), vec![]),
            ("no script\n".into(), vec![]),
        ] {
            write(&at("script"), &line);
            assert_eq!(interpreters(&at("script"), &section), expected, "{line:?}");
        }
        // One that runs itself has an end.
        write(&at("script"), &format!("#!{}\n", at("script").display()));
        assert_eq!(interpreters(&at("script"), &section), [at("script")]);
        assert!(interpreters(&at("missing"), &section).is_empty());
    }

    #[test]
    fn a_program_is_looked_for_where_the_server_looks() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        write(&at("own/python3"), "binary");
        write(&at("script"), "#!/usr/bin/env python3\n");
        let path = format!("{}:/usr/bin", at("own").display());
        let section: UpstreamSection =
            toml::from_str(&format!("command = [\"/bin/sh\"]\nvariables.PATH = {path:?}")).expect("a section");
        assert_eq!(interpreters(&at("script"), &section), [PathBuf::from("/usr/bin/env"), at("own/python3")]);
    }
}
