//! `toolcrib plugin new`: a project for a plugin, in the author's language.

use super::super::print;
use super::super::setup::usage;
use super::authors::{SDK, template};
use super::project::Lang;
use super::toolchain;
use super::wit::{files as contract, write_all};
use base::text::shell_quote;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::capability::Capability;
use toolcrib::envelope::Failure;
use toolcrib_builtins::BUILTINS;

/// Stands for the plugin's name in a template.
const NAME: &str = "{{name}}";
/// The longest name, as that of a tool.
const NAME_CHARS: usize = 64;
/// How the names of files begin that are for one capability, such as `toolcrib-files.js`; in Python with `_`.
const HELPER: &str = "toolcrib";

#[derive(clap::Args)]
pub(in super::super) struct New {
    /// The directory to make; its last part is the name of the plugin and of its tool: `a-z`, `0-9` and `_`
    #[arg(value_name = "NAME")]
    directory: PathBuf,
    /// The language
    #[arg(long, value_enum, default_value = "rust")]
    lang: Lang,
    /// What the plugin will ask for, by name: files, http, shell, records …, and config for the values of its section (ignored in Rust, Go and C:
    /// the imports follow from the code)
    #[arg(long, value_name = "CAPABILITIES", value_delimiter = ',', value_parser = need)]
    needs: Vec<Need>,
}

/// What a plugin may ask for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Of(Capability),
    /// The values of `config` in its section, by the interface that WASI has for it.
    Config,
}

impl Need {
    fn named(name: &str) -> Option<Self> {
        if name == Self::Config.name() { Some(Self::Config) } else { Capability::of_interface(name).map(Self::Of) }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Of(capability) => capability.name(),
            Self::Config => "config",
        }
    }

    fn import(self) -> String {
        match self {
            Self::Of(capability) => format!("toolcrib:plugin/{}@0.1.0", capability.name()),
            Self::Config => "wasi:config/store@0.2.0-rc.1".into(),
        }
    }
}

fn need(name: &str) -> Result<Need, String> {
    Need::named(name).ok_or_else(|| {
        let known = Capability::ALL.map(Capability::name).join(", ");
        format!("there is no such capability: choose from {known}, config")
    })
}

pub(super) async fn new(arguments: &New) -> Result<ExitCode, Failure> {
    let New { directory, lang, needs } = arguments;
    let whole = std::path::absolute(directory).map_err(|error| usage(format!("`{}`: {error}", directory.display())))?;
    let name = name_of(&whole)?;
    let is_empty = |entries: std::fs::ReadDir| entries.count() == 0;
    if directory.exists() && !std::fs::read_dir(directory).is_ok_and(is_empty) {
        return Err(usage(format!("`{}` exists already, and is not an empty directory", directory.display())));
    }
    let needs: BTreeSet<Need> = needs.iter().copied().chain([Need::Of(Capability::Events)]).collect();
    let files = files(*lang, name, &needs);
    write_all(directory, files.iter().map(|(path, text)| (path.as_str(), text)))?;
    let shown: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).filter(|path| !is_given(path)).collect();
    print(&format!("wrote {}/: {}\n", directory.display(), shown.join("  ")))?;
    let report = toolchain::look(*lang, directory).await;
    report.page().print()?;
    let install = if report.is_bad() { format!("{} && ", toolchain::install(*lang)) } else { String::new() };
    let shown = shell_quote::readable(&directory.display().to_string());
    print(&format!("next: cd {shown} && {install}toolcrib plugin dev\n"))
}

/// What the author need not look at: the contract and the SDK.
fn is_given(path: &str) -> bool {
    path.starts_with("wit/deps/") || path.starts_with("toolcrib-sdk/")
}

/// The last part of the directory, if it can be the name of a plugin, of its tool, and of a package in every language.
fn name_of(directory: &Path) -> Result<&str, Failure> {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    // Each word: WIT has it so.
    let begin = name.split('_').all(|word| word.as_bytes().first().is_some_and(u8::is_ascii_lowercase));
    if !begin || name.len() > NAME_CHARS || !name.bytes().all(is_part) {
        return Err(usage(format!("`{}` is not a valid plugin name", name.escape_debug())).hint(format!(
            "use 1 to {NAME_CHARS} characters: words of a-z and 0-9 that begin with a letter, with `_` between, such as `word_count`"
        )));
    }
    if BUILTINS.iter().any(|builtin| builtin.name == name) {
        return Err(
            usage(format!("`{name}` is the name of a plugin that came with Toolcrib")).hint("choose another name")
        );
    }
    Ok(name)
}

/// All files of a project, by their paths.
fn files(lang: Lang, name: &str, needs: &BTreeSet<Need>) -> Vec<(String, String)> {
    let is_wanted = |path: &str| need_of(path).is_none_or(|need| needs.contains(&need));
    let texts = template(lang.name()).filter(|(path, _)| is_wanted(path));
    let mut files: Vec<(String, String)> =
        texts.map(|(path, text)| (path.to_owned(), text.replace(NAME, name))).collect();
    match lang {
        Lang::Rust => files.extend(SDK.iter().map(|(path, text)| (format!("toolcrib-sdk/{path}"), (*text).to_owned()))),
        // Their builds ask this program for the contract.
        Lang::Go | Lang::C => {}
        Lang::Js | Lang::Python => {
            files.push(("wit/world.wit".into(), world(name, needs)));
            files.extend(contract().map(|(path, text)| (format!("wit/deps/toolcrib-plugin/{path}"), text.to_owned())));
            let others = template("wit").filter(|_| needs.contains(&Need::Config));
            files.extend(others.map(|(path, text)| (format!("wit/deps/{path}"), text.to_owned())));
        }
    }
    files
}

/// What a file of a template is for; none if it is for every plugin.
fn need_of(path: &str) -> Option<Need> {
    let (need, _) = path.strip_prefix(HELPER)?.strip_prefix(['-', '_'])?.split_once('.')?;
    Need::named(need)
}

/// A world of what the plugin needs and no more: these languages keep every import of their world, used or not.
fn world(name: &str, needs: &BTreeSet<Need>) -> String {
    let imports: String = needs.iter().map(|need| format!("    import {};\n", need.import())).collect();
    let package = name.replace('_', "-");
    format!(
        "package author:%{package};\n\n/// What this plugin may ask for. Add a line for each further capability (`deps/` has them all).\n\
         world plugin {{\n{imports}    export toolcrib:plugin/tools@0.1.0;\n}}\n"
    )
}
