//! The person at the terminal: approvals on `/dev/tty`, so that stdin may carry anything else, and a spinner on stderr.

use crate::event::{Event, EventSink};
use crate::policy::approval::{Answer, ApprovalRequest, Approver, Nobody};
use anstyle::{AnsiColor, Style};
use async_trait::async_trait;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::unix::pipe;

const TERMINAL: &str = "/dev/tty";
/// What an answer may be long, in bytes; more is no answer.
const ANSWER_BYTES: usize = 256;

/// Asks on the controlling terminal, one question at a time.
#[derive(Default)]
pub(super) struct Terminal(tokio::sync::Mutex<()>);

#[async_trait]
impl Approver for Terminal {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let _one_at_a_time = self.0.lock().await;
        let Ok((mut writer, reader)) = open() else { return Nobody.ask(request).await };
        // What was typed before the question does not answer it.
        let _ = rustix::termios::tcflush(&writer, rustix::termios::QueueSelector::IFlush);
        loop {
            if write!(writer, "{}", question(request)).is_err() {
                return Nobody.ask(request).await;
            }
            match read_line(&reader).await.as_deref().map(str::trim) {
                Ok("y" | "yes" | "Y") => return Answer::Yes,
                Ok("s" | "session" | "S") => return Answer::YesForSession,
                Ok("" | "n" | "no" | "N") | Err(_) => return Answer::No,
                Ok(_) => {}
            }
        }
    }

    fn name(&self) -> &'static str {
        "the person at the terminal"
    }
}

/// Opens the terminal twice, for descriptions of our own: the mode of the one does not change the shell's.
fn open() -> io::Result<(File, pipe::Receiver)> {
    let writer = File::options().write(true).open(TERMINAL)?;
    // Not a pipe, but read like one: without blocking a thread.
    Ok((writer, pipe::OpenOptions::new().unchecked(true).open_receiver(TERMINAL)?))
}

async fn read_line(tty: &pipe::Receiver) -> io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < ANSWER_BYTES {
        tty.readable().await?;
        match tty.try_read_buf(&mut line) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn question(request: &ApprovalRequest) -> String {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let colour = match request.declaration.as_ref().map(|declaration| declaration.risk) {
        Some("low") => AnsiColor::Green,
        Some("medium") => AnsiColor::Yellow,
        Some(_) | None => AnsiColor::Red,
    };
    let risk = Style::new().fg_color(Some(colour.into())).bold();
    let foreign: String = request
        .foreign()
        .iter()
        .map(|part| format!("  {dim}{}{dim:#} {}\n", part.label, part.text.lines().collect::<Vec<_>>().join("\n    ")))
        .collect();
    let (summary, all) = (request.summary(bold), request.all());
    let headline = request.headline(bold, risk);
    format!(
        "\n{headline}\n{foreign}{summary}\n\
         {bold}Allow?{bold:#} [y]es, [N]o, [s]ession: {all} until Toolcrib ends > "
    )
}

/// Shows on stderr that a command runs; silent where nobody watches.
#[derive(Default)]
pub(super) struct Progress(Mutex<Option<Shown>>);

struct Shown {
    bar: ProgressBar,
    lines: usize,
}

impl EventSink for Progress {
    fn emit(&self, event: Event) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started { detail } if io::stderr().is_terminal() => *shown = Some(Shown::start(detail)),
            Event::Stdout { text } | Event::Stderr { text } => {
                if let Some(shown) = &mut *shown {
                    shown.count(&text);
                }
            }
            Event::Completed { .. } => {
                if let Some(shown) = shown.take() {
                    shown.bar.finish_and_clear();
                }
            }
            Event::Info { text } if io::stderr().is_terminal() => {
                let dim = Style::new().dimmed();
                let _ = writeln!(anstream::stderr(), "{dim}{text}{dim:#}");
            }
            _ => {}
        }
    }
}

impl Shown {
    fn start(detail: String) -> Self {
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {prefix} {elapsed}").expect("a valid template");
        let bar = ProgressBar::new_spinner().with_style(style).with_message(detail);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, lines: 0 }
    }

    fn count(&mut self, text: &str) {
        self.lines += text.matches('\n').count();
        self.bar.set_prefix(format!("{} lines", self.lines));
    }
}
