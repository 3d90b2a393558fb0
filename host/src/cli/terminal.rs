//! The person at the terminal: approvals on `/dev/tty`, so that stdin may carry anything else, and a spinner on stderr.

use super::question::{Page, Place, Question, Size};
use crate::event::{Compiling, Event, EventSink};
use crate::policy::approval::{Answer, ApprovalRequest, Approver, Nobody};
use anstyle::Style;
use async_trait::async_trait;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::unix::pipe;

const TERMINAL: &str = "/dev/tty";
/// What an answer may be long, in bytes; more is no answer.
const ANSWER_BYTES: usize = 256;
/// What a terminal counts as that does not tell its size: rows that are shorter than they could be do no harm.
const UNKNOWN: Size = Size { rows: 12, columns: 40 };

/// Asks on the controlling terminal, one question at a time.
#[derive(Default)]
pub(super) struct Terminal(tokio::sync::Mutex<()>);

#[async_trait]
impl Approver for Terminal {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let _one_at_a_time = self.0.lock().await;
        let Ok((mut writer, reader)) = open() else { return Nobody.ask(request).await };
        let question = Question::new(request);
        let mut place = Place::default();
        loop {
            let size = size(&writer);
            let Some(page) = question.page(place, size) else { return too_small(size) };
            if show(&mut writer, &page).is_err() {
                return Nobody.ask(request).await;
            }
            let typed = read_line(&reader).await;
            let Ok(typed) = typed.as_deref().map(str::trim) else { return Answer::No };
            match (typed, page.next) {
                ("n" | "no" | "N", _) => return Answer::No,
                // What stands there was laid out for a window of another size.
                _ if self::size(&writer) != size => {}
                ("y" | "yes" | "Y", None) => return Answer::Yes,
                ("s" | "session" | "S", None) => return Answer::YesForSession,
                ("", None) => return Answer::No,
                ("", Some(next)) => place = next,
                _ => {}
            }
        }
    }

    fn name(&self) -> &'static str {
        "the person at the terminal"
    }

    fn is_read(&self) -> bool {
        File::open(TERMINAL).is_ok()
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

/// Shows a page and asks. What was typed before all of it could be read does not count.
fn show(terminal: &mut File, page: &Page) -> io::Result<()> {
    terminal.write_all(page.text.as_bytes())?;
    tcflush(&*terminal, QueueSelector::IFlush)?;
    terminal.write_all(page.prompt.as_bytes())
}

fn size(terminal: &File) -> Size {
    let size = tcgetwinsize(terminal).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or(UNKNOWN, |size| Size { rows: size.ws_row.into(), columns: size.ws_col.into() })
}

fn too_small(Size { rows, columns }: Size) -> Answer {
    Answer::Nobody {
        reason: format!(
            "the action needs an approval, and the terminal is too small to show it: {columns} columns, {rows} rows"
        ),
        hint: "make the terminal larger, then call again".into(),
    }
}

/// Shows on stderr that a command runs; silent where nobody watches.
#[derive(Default)]
pub(super) struct Progress {
    command: Mutex<Option<Shown>>,
    compiled: Mutex<Option<ProgressBar>>,
}

struct Shown {
    bar: ProgressBar,
    lines: usize,
}

impl EventSink for Progress {
    fn emit(&self, event: Event) {
        let mut shown = self.command.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn compiles(&self, compiling: Compiling) {
        if !io::stderr().is_terminal() {
            return;
        }
        let mut shown = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = shown.get_or_insert_with(|| {
            let template = "{spinner} compiling plugins, once: {pos} of {len} {elapsed}";
            let style = ProgressStyle::with_template(template).expect("a valid template");
            let bar = ProgressBar::new(0).with_style(style);
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        match compiling {
            Compiling::Begins => bar.inc_length(1),
            Compiling::Ended => bar.inc(1),
        }
        if bar.length() == Some(bar.position()) {
            bar.finish_and_clear();
            *shown = None;
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
