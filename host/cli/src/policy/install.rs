//! `toolcrib policy lock` and `install`: another policy for the machine, by root's hand or by the keys that the present one names.

use super::super::screen::Page;
use super::super::setup::{SYSTEM_POLICY, Setup, cannot};
use super::super::{Global, print, print_json};
use super::checked::Checked;
use ::policy::vetting::documents::Document;
use ::policy::vetting::succession::{Successor, read_policy, successor, wants_signatures};
use base::dirs::publish;
use rustix::fs::OFlags;
use serde_json::json;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use toolcrib::envelope::Failure;

/// How long another program is waited for that writes the policy, and how often it is looked for.
const OTHERS: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

#[derive(clap::Args)]
pub(in super::super) struct Arguments {
    /// The policy
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Says what a policy would refuse; with `--yes` it becomes the machine's.
pub(super) async fn lock(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let installed = Path::new(SYSTEM_POLICY);
    let _alone = if global.yes { alone(installed)? } else { None };
    if wants_signatures(installed)? {
        let message = format!("{SYSTEM_POLICY} names keys that have to sign what takes its place");
        return Err(Failure::denied(message)
            .hint(format!("have it signed, then `toolcrib policy install {}`", arguments.file.display())));
    }
    let text = read_policy(&arguments.file)?;
    let setup = Setup::judged_by(global, &arguments.file).await?;
    let checked = Checked::of(&setup).await;
    if global.yes {
        // What was looked at is what is written.
        let digest = Some(Document::sha256(text.as_bytes()));
        if setup.settings.policies.first().is_none_or(|policy| policy.sha256 != digest) {
            return Err(cannot(&arguments.file, &"it was changed meanwhile: look at it again"));
        }
        put(installed, &text)?;
    }
    if arguments.json {
        let mut all = checked.to_json();
        all["installed"] = global.yes.into();
        return print_json(&all);
    }
    let mut page = Page::default();
    checked.show(&mut page);
    page.add(&checked.total()).end(2);
    match global.yes {
        true => page.add(&format!("wrote {SYSTEM_POLICY}")).end(2),
        false => page.add("nothing was written: with `--yes` this becomes the machine's policy").end(2),
    };
    page.print()
}

/// Installs a policy that both the installed one's keys and its own have signed.
pub(super) fn install(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let installed = Path::new(SYSTEM_POLICY);
    let _alone = alone(installed)?;
    let Successor { text, sequence, signers: (old, own) } = successor(installed, &arguments.file)?;
    put(installed, &text)?;
    if arguments.json {
        return print_json(
            &json!({ "installed": true, "sequence": sequence, "signed_by": { "installed": old, "own": own } }),
        );
    }
    let names = |names: std::collections::BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
    print(&format!(
        "wrote {SYSTEM_POLICY}: number {sequence}, signed by {} of the policy before, and by {} of its own\n",
        names(old),
        names(own)
    ))
}

/// Held while a policy is judged and written: of two at once, each would be judged against the one that both replace. A file that is root's
/// alone: the lock of one that others can open is anybody's to keep.
fn alone(installed: &Path) -> Result<Option<File>, Failure> {
    let path = installed.with_file_name(".policy.lock");
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = match options.open(&path) {
        Ok(file) => file,
        // Who cannot make it cannot write the policy either, and no directory has no policy: both are said better.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => return Ok(None),
        Err(error) => return Err(cannot(&path, &error)),
    };
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if begin.elapsed() < OTHERS => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                let message = "another `toolcrib policy` is at work here, and does not come to its end";
                return Err(cannot(&path, &message));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(&path, &error)),
        }
    }
}

fn put(installed: &Path, text: &str) -> Result<(), Failure> {
    publish(installed, text.as_bytes()).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => cannot(installed, &error).hint("run this as root"),
        _ => cannot(installed, &error),
    })
}
