//! `toolcrib store`: looks at what plugins keep, copies it, and moves it to another store.

use super::screen::Table;
use super::setup::{Setup, usage, working_directory};
use super::{Global, notice, print, print_json};
use ::store::{self, Checked, Embedded, Imported};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::envelope::Failure;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// List how much each plugin of each agent keeps
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Look at all of the store, and say what is wrong with it
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make the vectors that are missing of what is found by its meaning, by the model under [embeddings]
    #[command(
        after_help = "They are made in the background wherever plugins keep something. This makes them now, says how far it is, and asks \
                      again about texts that the model did not take. Of another model than before, all are made anew."
    )]
    Embed {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a copy of the store as it is now, also while other programs use it
    Backup {
        /// Where to: a file that is not there yet
        file: PathBuf,
    },
    /// Write documents to a file as JSON lines, for another store to import
    #[command(after_help = "Only this user can read the file: it has everything that plugins kept.")]
    Export {
        /// Where to: a file that is not there yet
        file: PathBuf,
        /// Only the documents of this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Put the documents of an export into the store: all of them, or nothing is changed
    #[command(
        after_help = "Documents that are there with the same body are skipped. Those with another body are an error, except with --replace. \
                            The limits under [store] hold. Documents are not scanned for secrets: import only files that you trust."
    )]
    Import {
        /// What `toolcrib store export` wrote
        file: PathBuf,
        /// Replace documents that are there with another body
        #[arg(long)]
        replace: bool,
    },
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::quiet(global).await?;
    match arguments {
        Arguments::List { json } => list(&setup, *json),
        Arguments::Check { json } => {
            let Some(Checked { faults, items, bytes }) = store::check(&setup.dirs)? else {
                return if *json {
                    print_json(&json!({ "ok": true, "items": 0, "bytes": 0, "faults": [] }))
                } else {
                    print("there is no store: no plugin has kept anything\n")
                };
            };
            match json {
                true => {
                    print_json(&json!({ "ok": faults.is_empty(), "items": items, "bytes": bytes, "faults": faults }))?
                }
                false if faults.is_empty() => {
                    print(&format!("the store is whole: {items} documents of {bytes} bytes\n"))?
                }
                false => print(&format!("the store is damaged:\n  {}\n", faults.join("\n  ")))?,
            };
            Ok(ExitCode::from(u8::from(!faults.is_empty())))
        }
        Arguments::Embed { json } => embed(&setup, *json).await,
        Arguments::Backup { file } => {
            let file = free(file)?;
            match store::backup(&setup.dirs, &file)? {
                true => print(&format!("wrote {}\n", file.display())),
                false => Err(usage("there is no store to copy: no plugin has kept anything")),
            }
        }
        Arguments::Export { file, agent } => {
            let file = free(file)?;
            match store::export(&setup.dirs, &file, agent.as_deref())? {
                Some(items) => print(&format!("wrote {items} documents to {}\n", file.display())),
                None => Err(usage("there is no store to export: no plugin has kept anything")),
            }
        }
        Arguments::Import { file, replace } => {
            let file = working_directory()?.join(file);
            let Imported { made, replaced, skipped } =
                store::import(&setup.dirs, &setup.settings.config.store, &file, *replace)?;
            print(&format!("imported {made} documents, replaced {replaced}, skipped {skipped} that were there\n"))
        }
    }
}

/// The path of a file that is to be made.
fn free(file: &Path) -> Result<PathBuf, Failure> {
    let file = working_directory()?.join(file);
    match std::fs::symlink_metadata(&file) {
        Ok(_) => Err(usage(format!("`{}` is there already", file.display())).hint("name a file that is not")),
        Err(_) => Ok(file),
    }
}

async fn embed(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let told = |Embedded { made, missing, .. }: &Embedded| {
        if *missing > 0 && !as_json {
            notice(&format!("{made} texts have vectors, {missing} wait"));
        }
    };
    let Some(Embedded { made, missing, refused, why }) = setup.host.embed(&told).await? else {
        return Err(usage("there is no store: no plugin has kept anything"));
    };
    if as_json {
        return print_json(&json!({ "made": made, "missing": missing, "refused": refused, "why": why }));
    }
    let why =
        why.map_or_else(String::new, |why| format!("; the model did not take {refused}, such as one because {why}"));
    print(&format!("{made} texts have vectors{why}\n"))
}

fn list(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let holdings = store::list(&setup.dirs)?;
    if as_json {
        return print_json(&json!(holdings));
    }
    if holdings.is_empty() {
        return print("no plugin keeps anything\n");
    }
    let mut table = Table::new(&["agent", "plugin", "items", "bytes"]);
    for holding in &holdings {
        let (items, bytes) = (holding.items.to_string(), holding.bytes.to_string());
        table.row([holding.agent.as_str(), &holding.plugin, &items, &bytes]);
    }
    table.print()
}
