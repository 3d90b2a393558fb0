//! A shell that stays open there and runs short scripts of ours one after the other: what costs an engine a tenth of a second costs it none.
//!
//! Each script runs in a shell of its own below it, with its input at its end, between marks of its own.

use super::{OPENED, Script, Shell, Way, unknown};
use crate::osc133::{Breaks, Scanner, State};
use crate::{Input, Process, ProcessEvent};
use base::envelope::Failure;
use base::text::id::random_id;
use base::text::shell_quote;
use std::ffi::OsString;
use tokio::io::AsyncWriteExt;

/// An open shell.
pub(super) struct Runner {
    process: Box<dyn Process>,
    input: Input,
}

impl Runner {
    pub(super) async fn open<W: Way>(way: &W) -> Result<Self, Failure> {
        let arguments = [random_id().into(), Shell::Plain.flag(), "/bin/sh".into(), "-s".into()];
        let (process, input) = way.open(Script { text: OPENED, arguments: arguments.into() }).await?;
        Ok(Self { process, input })
    }

    /// Runs a script; returns status and standard output. After a failure the shell is of no more use.
    pub(super) async fn run<W: Way>(
        &mut self,
        way: &W,
        text: &str,
        arguments: &[OsString],
    ) -> Result<(i32, Vec<u8>), Failure> {
        let nonce = random_id();
        let begin = format!("printf '\\033]133;C;{nonce}\\007'\n(set -- ");
        let end = format!("\n{text}\n) </dev/null 2>/dev/null\nprintf '\\033]133;D;%s;{nonce}\\007' \"$?\"\n");
        let line = [begin.as_bytes(), &shell_quote::words(arguments), end.as_bytes()].concat();
        let mut scanner = Scanner::new(&nonce, Breaks::Kept);
        let (mut stdout, mut said) = (Vec::new(), Vec::new());
        // If the shell is gone, its end reports that.
        let write = async {
            let _ = self.input.write_all(&line).await;
            let _ = self.input.flush().await;
            std::future::pending::<()>().await;
        };
        let read = async {
            loop {
                match self.process.next().await {
                    Ok(ProcessEvent::Stdout(bytes)) => stdout.extend(scanner.push(&bytes)),
                    Ok(ProcessEvent::Stderr(bytes)) => said.extend(bytes),
                    Ok(ProcessEvent::Exited(status)) => return Err(Some(status)),
                    Err(_) => return Err(None),
                }
                if let State::Ended(status) = scanner.state() {
                    return Ok(status);
                }
            }
        };
        let status = tokio::select! { status = read => status, () = write => Err(None) };
        match status {
            Ok(status) => Ok((status, stdout)),
            Err(status) => {
                let refused = way.refusal(&String::from_utf8_lossy(&said), status);
                Err(refused.unwrap_or_else(|| unknown(way.name())))
            }
        }
    }
}
