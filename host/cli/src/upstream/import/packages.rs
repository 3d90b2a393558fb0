//! Commands that fetch a package and run it: which package they mean, and where it is if it is installed. A server is started without a network
//! to fetch itself with, and is the same program each time.

use super::super::super::clients::file::text;
use super::super::super::setup::usage;
use super::super::add;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use toolcrib::envelope::Failure;

/// A package that a command fetches.
#[derive(Debug, PartialEq)]
pub(super) struct Package {
    registry: Registry,
    pub(super) name: String,
    /// If the command names one version.
    version: Option<String>,
    /// The program of the package.
    program: String,
    pub(super) arguments: Vec<String>,
}

/// Where a package comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Registry {
    Npm,
    Pypi,
}

/// Why a command cannot be started as a server, whatever is installed.
#[derive(Debug, PartialEq)]
pub(super) enum Unfit {
    /// It runs an image.
    Container,
    /// It fetches what cannot be told.
    Unclear,
}

/// A package that is there.
pub(super) struct Installed {
    pub(super) command: Vec<String>,
    /// What it has to read of its own.
    pub(super) read: PathBuf,
}

/// Options of these runners that are followed by a value.
const NODE_VALUES: [&str; 4] = ["--registry", "--cache", "--node-options", "-w"];
const PYTHON_VALUES: [&str; 11] = [
    "--with",
    "--with-editable",
    "--python",
    "-p",
    "--index",
    "--index-url",
    "--default-index",
    "--extra-index-url",
    "--directory",
    "--project",
    "--cache-dir",
];

/// The package that a command line fetches its server as; none where it starts the server itself.
pub(super) fn package(command: &[String]) -> Result<Option<Package>, Unfit> {
    let Some((program, rest)) = command.split_first() else { return Ok(None) };
    let program = Path::new(program).file_name().and_then(|name| name.to_str());
    let verb = rest.first().map(String::as_str);
    let below = |words: usize| rest.get(words..).unwrap_or_default();
    let package = match (program.unwrap_or_default(), verb) {
        ("npx" | "bunx" | "pnpx", _) => node(rest),
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("bun", Some("x")) => node(below(1)),
        ("uvx", _) => python(rest),
        ("pipx", Some("run")) => python(below(1)),
        ("uv", Some("tool")) if rest.get(1).is_some_and(|word| word == "run") => python(below(2)),
        ("docker" | "podman" | "nerdctl", _) => return Err(Unfit::Container),
        _ => return Ok(None),
    };
    package.map(Some).ok_or(Unfit::Unclear)
}

fn node(arguments: &[String]) -> Option<Package> {
    let (named, mut rest) = options(arguments, &["-p", "--package"], &NODE_VALUES)?;
    let program = rest.first()?.clone();
    let is_own = named.is_none();
    let wanted = named.unwrap_or_else(|| program.clone());
    let (name, version) = match wanted.get(1..).and_then(|behind| behind.find('@')) {
        Some(at) => (&wanted[..=at], Some(wanted[at + 2..].to_owned())),
        None => (wanted.as_str(), None),
    };
    rest.remove(0);
    let bare = name.rsplit('/').next().unwrap_or(name).to_owned();
    let program = if is_own { bare } else { program };
    is_node_name(name).then(|| Package {
        registry: Registry::Npm,
        name: name.to_owned(),
        version: exact(version),
        program,
        arguments: rest,
    })
}

fn python(arguments: &[String]) -> Option<Package> {
    let (named, mut rest) = options(arguments, &["--from", "--spec"], &PYTHON_VALUES)?;
    let program = rest.first()?.clone();
    let wanted = named.unwrap_or_else(|| program.clone());
    let end = wanted.find(|c: char| !is_of_name(c)).unwrap_or(wanted.len());
    let (name, behind) = wanted.split_at(end);
    let version = behind.rsplit_once("==").or_else(|| behind.rsplit_once('@')).map(|(_, version)| version.to_owned());
    rest.remove(0);
    let program: String = program.chars().take_while(|c| is_of_name(*c)).collect();
    let is_plain = behind.is_empty() || behind.starts_with(['@', '[', '=', '<', '>', '~', '!']);
    let is_name =
        is_plain && !name.is_empty() && !program.is_empty() && !name.starts_with('.') && !program.starts_with('.');
    is_name.then(|| Package {
        registry: Registry::Pypi,
        name: name.to_owned(),
        version: exact(version),
        program,
        arguments: rest,
    })
}

/// What an option names the package to be, and the words from the first on that is no option.
fn options(arguments: &[String], naming: &[&str], valued: &[&str]) -> Option<(Option<String>, Vec<String>)> {
    let (mut named, mut words) = (None, arguments.iter());
    while let Some(word) = words.next() {
        let (option, value) =
            word.split_once('=').map_or((word.as_str(), None), |(option, value)| (option, Some(value)));
        if naming.contains(&option) {
            named = Some(value.map(str::to_owned).or_else(|| words.next().cloned())?);
        } else if ["-c", "--call"].contains(&option) {
            return None;
        } else if valued.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            return Some((named, [word].into_iter().chain(words).cloned().collect()));
        }
    }
    None
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Whether it is the name of a package, which a person can copy into a shell.
fn is_node_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.chars().all(is_of_name);
    match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        None => is_part(name),
        Some(parts) => parts.is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
    }
}

/// What an environment of Python has of a package, `NAME-VERSION.dist-info`, and its version. Nothing in it is read.
fn distribution(environment: &Path, package: &str) -> Option<(PathBuf, String)> {
    let entries = |directory: PathBuf| std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sites = entries(environment.join("lib")).map(|python| python.path().join("site-packages"));
    sites.flat_map(entries).find_map(|entry| {
        let file = entry.file_name().into_string().ok()?;
        let (name, version) = file.strip_suffix(".dist-info")?.rsplit_once('-')?;
        (python_name(name) == python_name(package)).then(|| (entry.path(), version.to_owned()))
    })
}

/// A name as registries of Python compare it.
fn python_name(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Whether they are one version: `1.2` is `1.2.0`, and a local build is of the version that it was built of.
fn is_python_version(wanted: &str, said: &str) -> bool {
    let public = if wanted.contains('+') { said } else { said.split('+').next().unwrap_or_default() };
    let bare = |version: &str| version.trim_end_matches(".0").to_ascii_lowercase();
    bare(wanted) == bare(public)
}

fn exact(version: Option<String>) -> Option<String> {
    let is_exact = |version: &String| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.contains('.')
            && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'))
    };
    version.filter(is_exact)
}

impl Package {
    fn version(&self) -> &str {
        self.version.as_deref().unwrap_or("VERSION")
    }

    /// The package in one of these directories.
    pub(super) fn installed_in(&self, directories: &[PathBuf]) -> Result<Option<Installed>, Failure> {
        match self.registry {
            Registry::Npm => self.of_node(directories),
            Registry::Pypi => self.of_python(directories),
        }
    }

    /// Below one of these directories.
    fn of_node(&self, directories: &[PathBuf]) -> Result<Option<Installed>, Failure> {
        for directory in directories {
            let is_root = directory.file_name().is_some_and(|name| name == "node_modules");
            let root = if is_root { directory.clone() } else { directory.join("node_modules") };
            let package = root.join(&self.name);
            let Some(json) = text(&package.join("package.json"))? else { continue };
            let unusable = |why: &str| usage(format!("`{}` {why}", package.join("package.json").display()));
            let json: Value = serde_json::from_str(&json).map_err(|_| unusable("is not JSON"))?;
            let said = json["version"].as_str().unwrap_or_default();
            if self.version.as_deref().is_some_and(|wanted| wanted != said) {
                return Err(unusable(&self.of_version(said)));
            }
            let entry = self
                .bin(&json["bin"])
                .ok_or_else(|| unusable(&format!("names no program `{}` under `bin`", self.program)))?;
            let is_below =
                Path::new(entry).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            if !is_below {
                return Err(unusable("names a program outside of its directory"));
            }
            let entry = package.join(entry.trim_start_matches("./")).display().to_string();
            return Ok(Some(self.installed([add::program("node")?, entry], directory)));
        }
        Ok(None)
    }

    fn bin<'j>(&self, bin: &'j Value) -> Option<&'j str> {
        let all = bin.as_object();
        let only = all.filter(|all| all.len() == 1).and_then(|all| all.values().next());
        bin.as_str().or_else(|| all?.get(&self.program).or(only)?.as_str())
    }

    /// In one of these directories, each a virtual environment or with one in `.venv`.
    fn of_python(&self, directories: &[PathBuf]) -> Result<Option<Installed>, Failure> {
        let environments = directories.iter().flat_map(|directory| [directory.clone(), directory.join(".venv")]);
        let mut found = environments.map(|environment| (environment.join("bin").join(&self.program), environment));
        let Some((script, environment)) = found.find(|(script, _)| script.is_file()) else { return Ok(None) };
        if let (Some(wanted), Some((file, said))) = (&self.version, distribution(&environment, &self.name))
            && !is_python_version(wanted, &said)
        {
            return Err(usage(format!("`{}` {}", file.display(), self.of_version(&said))));
        }
        Ok(Some(self.installed([script.display().to_string()], &environment)))
    }

    fn of_version(&self, said: &str) -> String {
        format!("is of version `{}`, and the command asks for `{}`", said.escape_debug(), self.version())
    }

    fn installed<const N: usize>(&self, begin: [String; N], directory: &Path) -> Installed {
        let command = begin.into_iter().chain(self.arguments.iter().cloned()).collect();
        Installed { command, read: directory.to_owned() }
    }

    /// Why its server is left out, and what to do.
    pub(super) fn not_installed(&self, server: &str) -> Failure {
        let (name, version, program) = (&self.name, self.version(), &self.program);
        let (install, start) = match self.registry {
            Registry::Npm => {
                (format!("npm install --prefix DIR {name}@{version}"), format!("node DIR/node_modules/{name}/…"))
            }
            Registry::Pypi => {
                (format!("python3 -m venv DIR && DIR/bin/pip install {name}=={version}"), format!("DIR/bin/{program}"))
            }
        };
        let why = "and servers are started without a network to fetch themselves with";
        usage(format!("it is started by fetching the package `{name}`, {why}")).hint(format!(
            "`{install}` installs it; then `toolcrib upstream import {server} --installed DIR`, or \
             `toolcrib upstream add {server} --read DIR -- {start}`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Option<Package>, Unfit> {
        package(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    /// Name, version, program and arguments.
    type Said<'s> = (&'s str, Option<&'s str>, &'s str, &'s [&'s str]);

    fn said(registry: Registry, (name, version, program, arguments): Said) -> Package {
        Package {
            registry,
            name: name.into(),
            version: version.map(str::to_owned),
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        }
    }

    #[test]
    fn commands_of_runners_name_their_package() {
        for (line, package) in [
            (
                "npx -y @scope/server-files@1.2.3 /a",
                ("@scope/server-files", Some("1.2.3"), "server-files", &["/a"][..]),
            ),
            ("/usr/bin/npx some-server@latest", ("some-server", None, "some-server", &[])),
            ("npx -p @scope/many --yes -- one -v", ("@scope/many", None, "one", &["-v"])),
            ("pnpm dlx some-server", ("some-server", None, "some-server", &[])),
        ] {
            assert_eq!(of(line), Ok(Some(said(Registry::Npm, package))), "{line}");
        }
        for (line, package) in [
            (
                "uvx mcp-server-git --repository /a",
                ("mcp-server-git", None, "mcp-server-git", &["--repository", "/a"][..]),
            ),
            ("uvx --python 3.12 tool@1.0.2", ("tool", Some("1.0.2"), "tool", &[])),
            ("uv tool run --from pkg[x]==2.1 tool", ("pkg", Some("2.1"), "tool", &[])),
        ] {
            assert_eq!(of(line), Ok(Some(said(Registry::Pypi, package))), "{line}");
        }
        assert_eq!(of("docker run -i image"), Err(Unfit::Container));
        for line in ["npx -c x", "npx git+https://example.com/x;y", "npx ../x", "uvx git+https://example.com/x"] {
            assert_eq!(of(line), Err(Unfit::Unclear), "{line}");
        }
        assert_eq!(of("node server.js"), Ok(None));
    }

    #[test]
    fn versions_of_python_are_one_with_zeros_and_without() {
        for (wanted, said, is_one) in [
            ("1.2", "1.2.0", true),
            ("1.2.0", "1.2", true),
            ("1.2", "1.2+local.1", true),
            ("1.2+local.1", "1.2", false),
            ("1.2", "1.20", false),
            ("1.0RC1", "1.0rc1", true),
            ("1.2.1", "1.2", false),
        ] {
            assert_eq!(is_python_version(wanted, said), is_one, "{wanted} {said}");
        }
        assert_eq!(python_name("Some._Server"), "some-server");
    }
}
