//! `toolcrib setup`: has a client use Toolcrib in place of its own tools. A person's command: it changes files of clients and nothing of Toolcrib,
//! so a lock holds as before.

use super::super::plugin::record;
use super::super::screen::{Page, is_terminal};
use super::super::setup::{Setup, no_workspace, usage, working_directory};
use super::super::terminal::confirm;
use super::super::{Global, print, report};
use super::file::Found;
use super::plan::{self, ENTRY, Missing, Scope};
use super::rows::{Purpose, Row, Wish};
use super::undo::{Record, Undo};
use super::{Base, Client, Place, Places, codex};
use base::text::sanitize;
use clap::builder::{PossibleValue, PossibleValuesParser};
use similar::TextDiff;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::backend::local::Local;
use toolcrib::envelope::Failure;

/// Lines around a change that are shown.
const CONTEXT: usize = 2;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  toolcrib setup                        # which clients are here, and what would change
  toolcrib setup claude-code
  toolcrib setup cursor --print
  toolcrib setup claude-code --undo")]
pub(in super::super) struct Arguments {
    /// The client; without one, the clients that are found are listed
    #[arg(value_name = "CLIENT", value_parser = clients())]
    client: Option<String>,
    /// Change the files of the project in this directory
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Change your own files, which hold in all projects
    #[arg(long)]
    user: bool,
    /// The project that the client's tools work in; default: where the client starts them
    #[arg(long, value_name = "DIR", conflicts_with = "undo")]
    directory: Option<PathBuf>,
    /// Leave the client's own shell, edit, read and web tools on
    #[arg(long, conflicts_with = "undo")]
    keep_own_tools: bool,
    /// Do not allow Toolcrib's tools in the client: it then asks before each of them
    #[arg(long, conflicts_with = "undo")]
    no_allow: bool,
    /// Show the changes, and make none
    #[arg(long)]
    print: bool,
    /// Take back what this command wrote
    #[arg(long, requires = "client")]
    undo: bool,
}

fn clients() -> PossibleValuesParser {
    PossibleValuesParser::new(Row::all().map(|row| {
        let aliases = row.words.iter().skip(1).copied();
        PossibleValue::new(row.word()).help(row.client.name()).aliases(aliases)
    }))
}

pub(in super::super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::quiet(global).await?;
    let here = working_directory()?;
    let config = setup.dirs.config.parent().unwrap_or(&setup.dirs.config);
    let codex = codex(&setup.sources.environment, &setup.dirs.home);
    let places = Places { home: &setup.dirs.home, config, codex: &codex, here: &here };
    let Some(name) = &arguments.client else { return list(&setup, &places) };
    let row = Row::named(name).ok_or_else(|| usage(format!("`{name}` is not a client that is known")))?;
    let task = Task { global, setup: &setup, places: &places, row };
    if arguments.undo { task.undo(arguments).await } else { task.write(arguments).await }
}

/// What is done with one client.
struct Task<'t> {
    global: &'t Global,
    setup: &'t Setup,
    places: &'t Places<'t>,
    row: Row,
}

impl Task<'_> {
    async fn write(&self, arguments: &Arguments) -> Result<ExitCode, Failure> {
        let wish = self.wish(arguments).await?;
        let missing = plan::missing(&self.row, self.places, &wish)?;
        if missing.is_empty() {
            return print(&format!("{}: nothing to change\n{}", self.row.client.name(), self.notes(&missing, &wish)));
        }
        let texts =
            missing.iter().map(|missing| missing.found.changed(&missing.steps)).collect::<Result<Vec<_>, _>>()?;
        for (missing, text) in missing.iter().zip(&texts) {
            print(&difference(&missing.found, Some(text)))?;
        }
        print(&self.notes(&missing, &wish))?;
        if !self.is_agreed(arguments, "Write that?").await? {
            return Ok(ExitCode::SUCCESS);
        }
        let mut written = Record::open(&self.setup.dirs.state)?;
        for (missing, text) in missing.iter().zip(&texts) {
            let kept = written.write(missing, text)?;
            let file = &missing.found.file;
            record(self.setup, &format!("set up {}: {}", self.row.client.name(), file.display()));
            let kept = kept.map(|kept| format!("; as it was: {}", kept.display())).unwrap_or_default();
            print(&shown(&format!("written: {}{kept}\n", file.display())))?;
        }
        let name = self.row.client.name();
        print(&format!("start {name} again; `toolcrib setup {} --undo` takes this back\n", self.row.word()))
    }

    async fn undo(&self, arguments: &Arguments) -> Result<ExitCode, Failure> {
        let mut written = Record::open(&self.setup.dirs.state)?;
        let undos = self.files(arguments).iter().map(|file| written.undo(file)).collect::<Result<Vec<_>, _>>()?;
        let undos: Vec<Undo> = undos.into_iter().flatten().collect();
        if undos.is_empty() {
            return print(&format!("{}: nothing to take back\n", self.row.client.name()));
        }
        for undo in &undos {
            print(&difference(&undo.found, undo.after.as_deref()))?;
            if !undo.is_exact {
                print(&shown(&format!(
                    "{} was changed since: only what `toolcrib setup` wrote is removed\n",
                    undo.found.file.display()
                )))?;
            }
        }
        if !self.is_agreed(arguments, "Take that back?").await? {
            return Ok(ExitCode::SUCCESS);
        }
        for undo in &undos {
            written.take_back(undo)?;
            let file = undo.found.file.display();
            record(self.setup, &format!("took back the setup of {}: {file}", self.row.client.name()));
            print(&shown(&match (undo.is_exact, &undo.after) {
                (true, None) => format!("removed: {file}\n"),
                (true, Some(_)) => format!("as it was before: {file}\n"),
                (false, _) => format!("taken out: {file}\n"),
            }))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether the changes that were shown are to be made. Nobody is asked where a tool could type the answer.
    async fn is_agreed(&self, arguments: &Arguments, question: &str) -> Result<bool, Failure> {
        if arguments.print {
            return Ok(false);
        }
        let dirs = &self.setup.dirs;
        let local = Local::new(working_directory()?, dirs.home.clone(), dirs.state.clone(), dirs.environment.clone());
        if tmux::we_are_in_a_pane(&local).await? {
            return Err(Failure::denied("nothing was written: this is a managed pane, which tools can type into")
                .hint("repeat the command in a terminal of your own"));
        }
        let answer = match self.global.yes {
            true => Some(true),
            false if !is_terminal() => None,
            false => confirm("", &format!("{question} [y]es, [N]o > ")).await?,
        };
        match answer {
            Some(true) => Ok(true),
            Some(false) => Err(Failure::denied("nothing was written: you said no")),
            None => Err(Failure::denied("nothing was written: nobody could be asked")
                .hint("read what would change, then repeat the command with `--yes`")),
        }
    }

    async fn wish(&self, arguments: &Arguments) -> Result<Wish, Failure> {
        let scope = self.scope(arguments)?;
        let directory = arguments.directory.as_deref().map(|directory| self.directory(directory)).transpose()?;
        if let Some(why) = no_workspace(self.places.here, self.places.home).filter(|_| scope == Scope::Project) {
            return Err(usage(why).hint("repeat the command in the directory of a project, or with `--user`"));
        }
        let mut wish = Wish {
            program: program(),
            is_directory_named: directory.is_some(),
            directory,
            keeps_own: arguments.keep_own_tools,
            allows: !arguments.no_allow,
            is_cursor_in_config: is_cursor_in_config(self.setup),
            ..Wish::looking(scope)
        };
        if self.row.client == Client::Zed {
            let offered = self.setup.host.offered(&self.setup.context).await;
            wish.tools = offered.tools.iter().map(|tool| tool.definition().name.clone()).collect();
        }
        Ok(wish)
    }

    fn scope(&self, arguments: &Arguments) -> Result<Scope, Failure> {
        let wanted = match (arguments.project, arguments.user) {
            (true, _) => Scope::Project,
            (false, true) => Scope::User,
            (false, false) => self.row.scope,
        };
        if self.row.scopes.contains(&wanted) {
            return Ok(wanted);
        }
        Err(usage(format!("no project file of {} is known that has these settings", self.row.client.name()))
            .hint("omit `--project`: your own file is changed then"))
    }

    fn directory(&self, directory: &Path) -> Result<String, Failure> {
        let whole = std::fs::canonicalize(directory).ok().filter(|whole| whole.is_dir());
        let whole = whole.ok_or_else(|| usage(format!("`{}` is not a directory", directory.display())))?;
        if let Some(why) = no_workspace(&whole, self.places.home) {
            return Err(usage(why).hint("name the directory of a project"));
        }
        whole.into_os_string().into_string().map_err(|_| usage("the name of this directory is not UTF-8"))
    }

    /// The files that are taken back: of the scope that is named, or of both.
    fn files(&self, arguments: &Arguments) -> Vec<PathBuf> {
        let scopes = match (arguments.project, arguments.user) {
            (true, _) => &[Scope::Project][..],
            (false, true) => &[Scope::User],
            (false, false) => self.row.scopes,
        };
        let wishes = scopes
            .iter()
            .map(|scope| Wish { is_cursor_in_config: is_cursor_in_config(self.setup), ..Wish::looking(*scope) });
        let places = wishes.flat_map(|wish| (self.row.changes)(&wish).into_iter().map(|(place, _)| place));
        places.map(|place| plan::chosen(self.places, place)).collect()
    }

    /// What a person has to know beside the changes.
    fn notes(&self, missing: &[Missing], wish: &Wish) -> String {
        let name = self.row.client.name();
        let changes = || missing.iter().flat_map(|missing| &missing.changes);
        let own: BTreeSet<&str> = changes().filter_map(|change| change.purpose.own()).collect();
        let mut notes = Vec::new();
        if !own.is_empty() {
            let own: Vec<&str> = own.into_iter().collect();
            notes.push(format!("this switches off {name}'s own tools: {}", own.join(", ")));
        }
        if changes().any(|change| change.purpose == Purpose::Allow) {
            notes.push(format!(
                "this allows Toolcrib's tools in {name}, so that only Toolcrib asks (`--no-allow` omits it)"
            ));
        }
        notes.extend(self.row.asks.filter(|_| wish.allows).map(str::to_owned));
        if let Some(stays) = self.row.stays.filter(|_| !wish.keeps_own) {
            notes.push(format!("nothing of Toolcrib holds for what stays on: {stays}"));
        }
        if self.row.scope == Scope::Project && wish.scope == Scope::User && wish.directory.is_none() {
            notes.push(format!(
                "{name} may start Toolcrib in your home, which is not a workspace: name a project with `--directory`, or \
                 use `--project` in each"
            ));
        }
        notes.into_iter().map(|note| note + "\n").collect()
    }
}

/// The clients that are found, each with what would change.
fn list(setup: &Setup, places: &Places) -> Result<ExitCode, Failure> {
    let mut page = Page::default();
    let mut is_any = false;
    for row in Row::all() {
        let wish =
            Wish { program: program(), is_cursor_in_config: is_cursor_in_config(setup), ..Wish::looking(row.scope) };
        if !is_found(&row, &wish, places) {
            continue;
        }
        is_any = true;
        page.add(&format!("{}: `toolcrib setup {}`", row.client.name(), row.word())).end(2);
        match plan::missing(&row, places, &wish) {
            Ok(missing) if missing.is_empty() => _ = page.add("  nothing to change").end(4),
            Ok(missing) => missing.iter().for_each(|missing| {
                _ = page.add(&format!("  {}: {}", missing.found.file.display(), summary(missing))).end(4);
            }),
            Err(failure) => _ = report(&failure),
        }
        if let Some(stays) = row.stays {
            page.add(&format!("  stays on: {stays}")).end(4);
        }
    }
    if !is_any {
        let words: Vec<&str> = Row::all().map(|row| row.word()).collect();
        page.add(&format!("no client was found; these are known: {}", words.join(", "))).end(0);
    }
    page.print()
}

fn summary(missing: &Missing) -> String {
    let own: BTreeSet<&str> = missing.changes.iter().filter_map(|change| change.purpose.own()).collect();
    let has = |purpose| missing.changes.iter().any(|change| change.purpose == purpose);
    let own = (!own.is_empty()).then(|| format!("own tools off ({})", own.into_iter().collect::<Vec<_>>().join(", ")));
    let parts = [
        has(Purpose::Entry).then(|| format!("the server `{ENTRY}`")),
        own,
        has(Purpose::Allow).then(|| "Toolcrib's tools allowed".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether a client seems to be used here: it has a file or a directory of its own.
fn is_found(row: &Row, wish: &Wish, places: &Places) -> bool {
    let scopes = row.scopes.iter().flat_map(|scope| (row.changes)(&Wish { scope: *scope, ..wish.clone() }));
    scopes.map(|(place, _)| place).any(|Place(base, path)| {
        let file = places.path(Place(base, path));
        let has_own_directory = path.contains('/') || base == Base::Codex;
        file.exists() || (has_own_directory && base != Base::Here && file.parent().is_some_and(Path::is_dir))
    })
}

/// The command of an entry: the bare name if a shell finds this program by it.
fn program() -> String {
    let Some(this) = std::env::current_exe().ok().filter(|program| program.is_file()) else { return ENTRY.to_owned() };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join(ENTRY)).find(|file| file.is_file());
    match found {
        Some(found) if real(&found) == real(&this) => ENTRY.to_owned(),
        Some(_) | None => this.display().to_string(),
    }
}

/// Cursor's command line keeps its settings in the directory that this variable names.
pub(in super::super) fn is_cursor_in_config(setup: &Setup) -> bool {
    setup.sources.environment.iter().any(|(name, value)| name == "XDG_CONFIG_HOME" && !value.is_empty())
}

/// The changes of a file, as `diff -u` shows them.
fn difference(found: &Found, after: Option<&str>) -> String {
    let before = found.bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let name = |is_there: bool| if is_there { found.file.display().to_string() } else { "/dev/null".to_owned() };
    let diff = TextDiff::from_lines(before.as_ref(), after.unwrap_or_default());
    let (old, new) = (name(found.bytes.is_some()), name(after.is_some()));
    shown(&diff.unified_diff().context_radius(CONTEXT).header(&old, &new).to_string()) + "\n"
}

/// A text with what a terminal would act on made visible.
fn shown(text: &str) -> String {
    sanitize::visible(&text.replace("\r\n", "\n")).into_owned()
}
