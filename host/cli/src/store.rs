//! `toolcrib store`: looks at what plugins keep, and copies it.

use super::setup::{Setup, usage, working_directory};
use super::{Global, print, print_json};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use toolcrib::envelope::Failure;
use toolcrib::store::{self, Checked};

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Look at all of the store, and say what is wrong with it
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a copy of the store as it is now, also while other programs use it
    Backup {
        /// Where to: a file that is not there yet
        file: PathBuf,
    },
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::quiet(global).await?;
    match arguments {
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
        Arguments::Backup { file } => {
            let file = working_directory()?.join(file);
            if std::fs::symlink_metadata(&file).is_ok() {
                return Err(usage(format!("`{}` is there already", file.display())).hint("name a file that is not"));
            }
            match store::backup(&setup.dirs, &file)? {
                true => print(&format!("wrote {}\n", file.display())),
                false => Err(usage("there is no store to copy: no plugin has kept anything")),
            }
        }
    }
}
