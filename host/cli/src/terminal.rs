//! The person at the terminal: approvals on `/dev/tty`, so that stdin may carry anything else.

use super::policy::rules::{Keeper, lines};
use super::question::{Place, Question, Size};
use super::setup::usage;
use ::config::Verdict;
use async_trait::async_trait;
use base::text::{columns, sanitize};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::unix::pipe;
use toolcrib::envelope::Failure;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver, Nobody};

const TERMINAL: &str = "/dev/tty";
/// How long an answer may be, in bytes; more is not an answer.
const ANSWER_BYTES: usize = 256;
/// What stands before each row of a rule.
const RULE: &str = "  rule │ ";
/// The size of a terminal that does not report one: rows that are shorter than they could be do no harm.
const UNKNOWN: Size = Size { rows: 12, columns: 40 };

/// Asks on the controlling terminal, one question at a time.
#[derive(Default)]
pub(super) struct Terminal {
    asking: tokio::sync::Mutex<()>,
    /// Where answers are kept that count always; none where they cannot be.
    keeper: Option<Keeper>,
    has_kept: AtomicBool,
}

impl Terminal {
    /// The same, where answers can be kept as rules.
    pub(super) fn keeping(keeper: Keeper) -> Self {
        Self { keeper: Some(keeper), ..Self::default() }
    }

    /// A rule was written.
    pub(super) fn has_kept(&self) -> bool {
        self.has_kept.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Approver for Terminal {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let _one_at_a_time = self.asking.lock().await;
        let Ok((mut writer, reader)) = open() else { return Nobody.ask(request).await };
        let question = Question::new(request).keeping(self.keeper.is_some());
        let mut place = Place::default();
        loop {
            let size = size(&writer);
            let Some(page) = question.page(place, size) else { return too_small(size) };
            if show(&mut writer, &page.text, &page.prompt).is_err() {
                return Nobody.ask(request).await;
            }
            let typed = read_line(&reader).await;
            let Ok(typed) = typed.as_deref().map(str::trim) else { return Answer::No };
            match (typed, page.next) {
                ("n" | "no" | "N", _) => return Answer::No,
                // The window has changed its size: the page is laid out again before an answer counts.
                _ if self::size(&writer) != size => {}
                ("y" | "yes" | "Y", None) => return Answer::Yes,
                ("s" | "session" | "S", None) => return Answer::YesForSession,
                ("u" | "unconfined" | "U", None) if request.out().is_some() => return Answer::Unconfined,
                ("a" | "always" | "A", None) if self.keep(Verdict::Allow, request, &mut writer, &reader).await => {
                    return Answer::Yes;
                }
                ("never", None) if self.keep(Verdict::Deny, request, &mut writer, &reader).await => return Answer::No,
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

impl Terminal {
    /// Shows the lines of the rules, and writes them once the person says so; false where nothing was written.
    async fn keep(
        &self,
        verdict: Verdict,
        request: &ApprovalRequest,
        writer: &mut File,
        reader: &pipe::Receiver,
    ) -> bool {
        let Some(keeper) = self.keeper.as_ref().filter(|_| !request.rules.is_empty()) else { return false };
        let text: String = request.rules.iter().map(|rule| lines(verdict, rule)).collect();
        // What is shown is what is written, to the letter.
        if sanitize::visible(&text) != text {
            let _ = show(writer, "the rule has letters that cannot be shown: it is not written\r\n", "");
            return false;
        }
        let size = size(writer);
        let rows = quoted(&text, size);
        let is_of_command = request.rules.iter().any(|rule| rule.command.is_some());
        let reach = match verdict {
            Verdict::Deny if is_of_command => " It refuses the same with more arguments too.",
            Verdict::Deny | Verdict::Allow => "",
        };
        let file = sanitize::visible_line(&keeper.file().display().to_string());
        let prompt = format!("Write this into {file}?{reach} [y]es, [N]o > ");
        // All of it is seen before it is agreed to. An empty row and the question are on the same page.
        let room = size.rows.saturating_sub(columns::rows(&prompt, size.columns.max(2)).len() + 1).max(1);
        let mut pages: Vec<String> = rows.chunks(room).map(<[String]>::concat).collect();
        let last = pages.pop().unwrap_or_default();
        for page in pages {
            let is_next = show(writer, &format!("\r\n{page}"), "Enter shows more, [n]o > ").is_ok()
                && read_line(reader).await.is_ok_and(|typed| typed.trim().is_empty());
            if !is_next {
                return false;
            }
        }
        if show(writer, &format!("\r\n{last}"), &prompt).is_err() {
            return false;
        }
        let typed = read_line(reader).await;
        if self::size(writer) != size {
            return false;
        }
        if !typed.is_ok_and(|typed| matches!(typed.trim(), "y" | "yes" | "Y")) {
            return false;
        }
        match keeper.keep(verdict, &request.rules) {
            Ok(()) => {
                self.has_kept.store(true, Ordering::Relaxed);
                true
            }
            Err(failure) => {
                let why = sanitize::visible_line(&failure.message);
                let _ = show(writer, &format!("it was not written: {why}\r\n"), "");
                false
            }
        }
    }
}

/// A text in rows that no row of the host's looks like.
fn quoted(text: &str, size: Size) -> Vec<String> {
    let columns = size.columns.saturating_sub(columns::width(RULE)).max(2);
    let rows = text.lines().flat_map(|line| columns::rows(line, columns));
    rows.map(|row| format!("{RULE}{}\r\n", row.text)).collect()
}

/// Opens the terminal twice, for our own file descriptions: making one non-blocking does not change the shell's.
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

/// Asks the person who runs the program; none where nobody is at the terminal. The text was cleaned; anything but a yes is a no.
pub(super) async fn confirm(text: &str, prompt: &str) -> Result<Option<bool>, Failure> {
    let answer = line(text, prompt).await?;
    Ok(answer.map(|answer| matches!(&*answer, "y" | "yes" | "Y")))
}

/// Asks the person who runs the program for a line; none where nobody is at the terminal. The text was cleaned.
pub(super) async fn line(text: &str, prompt: &str) -> Result<Option<String>, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(None);
    }
    let answer = async {
        let (mut writer, reader) = open()?;
        show(&mut writer, text, prompt)?;
        read_line(&reader).await
    };
    let answer = answer.await.map_err(|error| usage(format!("the terminal cannot be used: {error}")))?;
    Ok(Some(answer.trim().to_owned()))
}

/// Asks for a value that the terminal does not show while it is typed.
pub(super) async fn secret(prompt: &str) -> io::Result<String> {
    let (mut writer, reader) = open()?;
    let of_terminal = writer.try_clone()?;
    let _unseen = Unseen::new(&of_terminal)?;
    show(&mut writer, "", prompt)?;
    let mut line = Vec::new();
    // A terminal hands over lines of at most 4 KiB.
    while !line.ends_with(b"\n") {
        reader.readable().await?;
        match reader.try_read_buf(&mut line) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if line.contains(&CTRL_C) => return Err(io::Error::other("interrupted")),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    writer.write_all(b"\n")?;
    String::from_utf8(line).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Ctrl-C as it is read where it is no signal.
const CTRL_C: u8 = 3;

/// A terminal that shows nothing of what is typed, while this lives. Ctrl-C is read, as a signal would leave it so.
struct Unseen<'t>(&'t File, Termios);

impl<'t> Unseen<'t> {
    fn new(terminal: &'t File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &unseen)?;
        Ok(Self(terminal, before))
    }
}

impl Drop for Unseen<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.0, OptionalActions::Now, &self.1);
    }
}

/// Shows a text and asks. What was typed before all of it could be read does not count.
fn show(terminal: &mut File, text: &str, prompt: &str) -> io::Result<()> {
    terminal.write_all(text.as_bytes())?;
    tcflush(&*terminal, QueueSelector::IFlush)?;
    terminal.write_all(prompt.as_bytes())
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
