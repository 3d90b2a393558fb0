//! `toolcrib approve`: the open questions of this user's other Toolcrib programs, and a person's answer to one, from a second terminal.
//!
//! The question is asked here with the words that its own program has for it. A program whose commands could answer tells no question and takes
//! no answer (`calls.rs`).

use super::Global;
use super::calls::{Answer, Asked, Program, SHOWN_ID, ask, ask_all, directory, id};
use super::outside::Outside;
use super::policy::rules::Keeper;
use super::screen::{Table, print_json};
use super::setup::{dirs, sources, usage};
use super::terminal::Terminal;
use base::text::sanitize;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use toolcrib::backend::local::Local;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::OpenQuestion;
use toolcrib::policy::approval::{self, ApprovalRequest, Approver};

#[derive(clap::Args)]
#[command(
    after_help = "Without an id the open questions are listed. A question is answered at this terminal, by y, n or s (or u, a and never, where those are offered), whichever terminal \
answers first. Programs whose commands are not all confined are left out: one of those could answer for you."
)]
pub(super) struct Arguments {
    /// Answer the question of this call, by its id or the beginning of it
    #[arg(value_name = "ID", value_parser = id)]
    call: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "call")]
    json: bool,
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let directory = directory()?;
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for (program, answer) in ask_all(&directory, &Asked::Questions).await? {
        match answer {
            Answer::Questions(questions) => {
                open.extend(questions.into_iter().map(|question| (program.clone(), question)))
            }
            Answer::Closed(why) => closed.push((program.process, sanitize::visible_line(&why))),
            Answer::Calls(_) | Answer::Cancelled(_) | Answer::Answered(_) => {}
        }
    }
    open.sort_by_key(|(_, question)| question.since);
    let Some(call) = &arguments.call else { return list(&open, &closed, arguments.json) };
    // The oldest of a call's comes first.
    let Some((program, question)) = open.into_iter().find(|(_, question)| question.call.starts_with(call)) else {
        let missing = usage(format!("no call `{call}` asks a question that can be answered here"));
        return Err(match closed.first() {
            Some((process, why)) => {
                missing.hint(format!("questions of process {process} are answered at its own terminal: {why}"))
            }
            None => missing.hint("`toolcrib approve` lists the questions"),
        });
    };
    let dirs = dirs()?;
    let local = Local::new(dirs.home.clone(), dirs.home.clone(), dirs.state.clone(), dirs.environment.clone());
    let keeper = Keeper { sources: sources(global, &dirs)?, rules: None };
    let at_terminal = Arc::new(Terminal::keeping(keeper));
    let terminal = Outside { approver: at_terminal.clone(), local: Arc::new(local) };
    if !terminal.is_read() {
        return Err(
            usage("there is no terminal to answer on").hint("answer in a terminal: no command may answer for you")
        );
    }
    let answer = match terminal.ask(&visible(question.request)).await {
        approval::Answer::Nobody { reason, hint } => return Err(Failure::denied(reason).hint(hint)),
        answer => answer,
    };
    match ask(&directory, &program, &Asked::Answer { number: question.number, answer: answer.clone() }).await {
        Some(Answer::Answered(true)) => {
            let said = if matches!(answer, approval::Answer::No) { "denied" } else { "allowed" };
            super::print(&format!("{said}\n"))
        }
        Some(Answer::Closed(why)) => {
            Err(Failure::denied(format!("the answer does not count: {}", sanitize::visible_line(&why))))
        }
        Some(_) | None => {
            let late = Failure::new(Kind::Unavailable, "the question was answered elsewhere, or its call has ended");
            Err(match at_terminal.has_kept() {
                true => late.hint("the rule was written all the same: `toolcrib policy rules list` shows it"),
                false => late,
            })
        }
    }
}

/// What another program says is shown as what any other one says.
fn visible(request: ApprovalRequest) -> ApprovalRequest {
    let text = |text: String| sanitize::visible(&text).into_owned();
    let line = |text: String| sanitize::visible_line(&text);
    ApprovalRequest {
        tool: line(request.tool),
        plugin: line(request.plugin),
        secrets: request.secrets.map(line),
        action: text(request.action),
        details: request.details.map(text),
        refused: request.refused.map(text),
        new: request.new.map(text),
        ..request
    }
}

fn list(open: &[(Program, OpenQuestion)], closed: &[(u32, String)], as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        let questions = open.iter().map(|(program, question)| {
            let mut shown = json!(question);
            shown["process"] = program.process.into();
            shown
        });
        return print_json(&questions.collect());
    }
    for (process, why) in closed {
        super::notice(&format!("questions of process {process} are answered at its own terminal: {why}"));
    }
    let mut table = Table::new(&["call", "question", "action", "process"]);
    for (program, OpenQuestion { call, request, .. }) in open {
        let (headline, process) = (request.headline(|text| text.to_owned()), program.process.to_string());
        let action = sanitize::visible_line(request.action.lines().next().unwrap_or_default());
        table.row([call.get(..SHOWN_ID).unwrap_or(call), &sanitize::visible_line(&headline), &action, &process]);
    }
    table.print()
}
