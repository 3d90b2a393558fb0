//! What a person sees while a call runs: a spinner beside a command, a bar where a plugin counts. Silent where nobody watches.

use super::terminal::Terminal;
use anstyle::{AnsiColor, Style};
use async_trait::async_trait;
use base::text::sanitize;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use toolcrib::event::{Compiling, Event, EventSink, Level};
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};

const SPINNER: &str = "{spinner} {wide_msg} {prefix} {elapsed}";
const BAR: &str = "{bar:20} {pos}/{len} {wide_msg} {elapsed}";
const COMPILING: &str = "{spinner} compiling plugins, once: {pos} of {len} {elapsed}";

const TICK: Duration = Duration::from_millis(100);

/// Shows events on stderr.
#[derive(Default)]
pub(super) struct Progress {
    call: Mutex<Option<Shown>>,
    compiled: Mutex<Option<ProgressBar>>,
}

struct Shown {
    bar: ProgressBar,
    lines: usize,
}

impl Progress {
    /// Clears what is shown from the screen; the next event brings it back.
    fn clear(&self) {
        if let Some(shown) = self.call.lock().take() {
            shown.bar.finish_and_clear();
        }
    }
}

impl EventSink for Progress {
    fn emit(&self, event: Event) {
        if !io::stderr().is_terminal() {
            return;
        }
        let mut shown = self.call.lock();
        match event {
            Event::Started { detail } => shown.get_or_insert_with(Shown::new).say(&detail),
            Event::Stdout { text } | Event::Stderr { text } => {
                if let Some(shown) = &mut *shown {
                    shown.count_lines(&text);
                }
            }
            Event::Progress { done, total, message } => {
                shown.get_or_insert_with(Shown::new).count(done, total, message.as_deref());
            }
            Event::Log { level, text } => {
                let (style, said) = match level {
                    Level::Debug => return,
                    Level::Info => (Style::new().dimmed(), ""),
                    Level::Warn => (AnsiColor::Yellow.on_default(), "warning: "),
                    Level::Error => (AnsiColor::Red.on_default(), "error: "),
                };
                let say = || _ = writeln!(anstream::stderr(), "{style}{said}{text}{style:#}");
                shown.as_ref().map_or_else(say, |shown| shown.bar.suspend(say));
            }
            Event::Completed { .. } => {
                drop(shown);
                self.clear();
            }
        }
    }

    fn compiles(&self, compiling: Compiling) {
        if !io::stderr().is_terminal() {
            return;
        }
        let mut shown = self.compiled.lock();
        let bar = shown.get_or_insert_with(|| {
            let bar = ProgressBar::new(0).with_style(style(COMPILING));
            bar.enable_steady_tick(TICK);
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
    fn new() -> Self {
        let bar = ProgressBar::new_spinner().with_style(style(SPINNER));
        bar.enable_steady_tick(TICK);
        Self { bar, lines: 0 }
    }

    fn say(&self, message: &str) {
        self.bar.set_message(sanitize::line(message).into_owned());
    }

    fn count_lines(&mut self, text: &str) {
        self.lines += text.matches('\n').count();
        self.bar.set_prefix(format!("{} lines", self.lines));
    }

    /// The plugin's own numbers, whatever they are: also more than all.
    fn count(&self, done: u64, total: Option<u64>, message: Option<&str>) {
        match total {
            Some(total) => {
                self.bar.set_style(style(BAR));
                self.bar.set_length(total);
            }
            None => self.bar.set_prefix(done.to_string()),
        }
        self.bar.set_position(done);
        message.into_iter().for_each(|message| self.say(message));
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
}

/// The person at the terminal, who is asked with nothing moving around the question.
pub(super) struct StillTerminal {
    terminal: Terminal,
    progress: Arc<Progress>,
}

impl StillTerminal {
    pub(super) fn new(terminal: Terminal, progress: Arc<Progress>) -> Self {
        Self { terminal, progress }
    }
}

#[async_trait]
impl Approver for StillTerminal {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        self.progress.clear();
        self.terminal.ask(request).await
    }

    fn name(&self) -> &'static str {
        self.terminal.name()
    }

    fn is_read(&self) -> bool {
        self.terminal.is_read()
    }

    fn asks_one_at_a_time(&self) -> bool {
        self.terminal.asks_one_at_a_time()
    }
}
