//! An agent of several processes over one host: a channel that talks, a branch that thinks, a worker that acts. The model is a script, so that
//! it runs anywhere; all else is as in an agent: three toolsets, sessions with turns, an embedder that takes the events, and what stays: notes,
//! memories, tasks and transcripts, which the next day has after all of it was started anew.
//!
//!     cargo run --release --package toolcrib --example agent

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use tokio_util::sync::CancellationToken;
use toolcrib::Host;
use toolcrib::backend::local::Local;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib::embedder::{Embedder, EmbedderEvent, End, KindPattern};
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib::records::{Feed, Message, StepKind, WorkerStep};
use toolcrib::sandbox::Compiler;
use toolcrib_builtins::BUILTINS;

/// Which process has which tools. A session is opened with the channel or worker that it is for: events carry that name,
/// and no model can give another.
const SETTINGS: &str = r#"
[agent]
name = "barista"

[confine]
ask = "always"

[toolset.channel]
session = ["channel"]
turn = ["reply", "ask", "react", "branch", "spawn_worker", "cancel"]
delegates = ["branch", "worker"]

[toolset.branch]
tools = [
    "file_read", "file_list", "note_save", "memory_save", "memory_recall", "task_create", "task_list", "channel_recall", "worker_inspect",
]
delegates = ["worker"]

[toolset.worker]
session = ["worker", "task"]
tools = ["file_read", "file_edit", "exec", "set_status", "task_update"]
bind.task_update = { task_number = "$session.task", worker_of = "$session.task" }
"#;

/// What the model of one process does: a tool, and its arguments.
type Step = (&'static str, Value);

/// The agent: whoever runs its loops, speaks to its people, and takes its events.
struct Agent {
    host: Arc<Host>,
    context: CallContext,
    running: Mutex<HashMap<String, Process>>,
}

/// A branch or a worker.
#[derive(Clone, Default)]
struct Process {
    cancel: CancellationToken,
    ended: CancellationToken,
}

/// The person at the agent, who is asked what has to be approved. This one says yes.
struct Person;

#[async_trait]
impl Approver for Person {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        println!("asked: may `{}` run? yes", request.action);
        Answer::Yes
    }

    fn name(&self) -> &'static str {
        "the example"
    }
}

/// The embedder. The agent holds the host that calls it, so it does not hold the agent.
struct Events(Weak<Agent>);

#[async_trait]
impl Embedder for Events {
    fn kinds(&self) -> Vec<KindPattern> {
        vec![KindPattern::All]
    }

    async fn ask(&self, event: EmbedderEvent, _: CancellationToken) -> End {
        let Some(agent) = self.0.upgrade() else { return End::Unavailable("the agent has ended".into()) };
        let text = |name: &str| event.payload[name].as_str().unwrap_or_default().to_owned();
        let channel = event.bindings.get("channel").and_then(Value::as_str).unwrap_or("nowhere");
        match event.kind.as_str() {
            "message.send" => {
                agent.say(&format!("#{channel}: {}", text("content")));
                agent.heard("barista", &text("content")).await;
            }
            "message.ask" => agent.say(&format!("#{channel}? {} {}", text("question"), event.payload["options"])),
            "message.react" => agent.say(&format!("#{channel}: {}", text("emoji"))),
            "agent.branch" => return End::Answered(json!({ "branch_id": agent.branch(&text("description")) })),
            "agent.spawn" => return End::Answered(json!({ "worker_id": agent.spawn(&text("task")) })),
            "agent.cancel" => {
                let cancelled = agent.cancel(&text("process_id"));
                return End::Answered(json!({ "cancelled": cancelled }));
            }
            "agent.status" => agent.say(&format!("outcome: {}", text("status"))),
            kind => return End::Unavailable(format!("this agent does nothing about `{kind}`")),
        }
        End::Answered(Value::Null)
    }

    fn tell(&self, event: EmbedderEvent) -> bool {
        let Some(agent) = self.0.upgrade() else { return false };
        let worker = event.bindings.get("worker").and_then(Value::as_str).unwrap_or("somebody");
        agent.say(&format!("({worker} is {})", event.payload["status"].as_str().unwrap_or_default()));
        true
    }
}

impl Agent {
    /// What people see.
    fn say(&self, text: &str) {
        println!("{text}");
    }

    /// Keeps what happened, for later days.
    async fn keep(&self, feed: Feed) {
        if let Err(failure) = self.host.feed(&self.context, feed).await {
            println!("note: {}", failure.message);
        }
    }

    async fn heard(&self, author: &str, content: &str) {
        let (channel, author, content) = ("kitchen".to_owned(), author.to_owned(), content.to_owned());
        self.keep(Feed::Message(Message { channel, author, content, id: None, at_ms: None })).await;
    }

    /// A session of its own for a process, on the toolset of its kind.
    fn session(&self, toolset: &str, given: Map<String, Value>) -> Result<Arc<Session>, String> {
        let session = self.host.toolset(toolset).and_then(|toolset| Session::on(toolset, given));
        session.map(Arc::new).map_err(|failure| failure.message)
    }

    /// What a loop does with each call that its model makes: the envelope goes back to the model.
    async fn call(&self, session: &Arc<Session>, cancel: &CancellationToken, (tool, arguments): Step) -> Value {
        let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
        let context = self.context.clone().session(session.clone()).cancel(cancel.child_token());
        self.host.call(request, &context).await.to_json()
    }

    /// One turn of the channel: its tools are there as long as it lasts.
    async fn turn(&self, channel: &Arc<Session>, steps: Vec<Step>) -> Result<Vec<Value>, String> {
        channel.turn(true).map_err(|failure| failure.message)?;
        let mut results = Vec::new();
        for step in steps {
            results.push(self.call(channel, &CancellationToken::new(), step).await);
        }
        println!("told in this turn: {}", channel.told().join(", "));
        channel.turn(false).map_err(|failure| failure.message)?;
        Ok(results)
    }

    fn start(&self, kind: &str) -> (String, Process) {
        let mut running = self.running.lock().expect("nobody panics here");
        let (id, process) = (format!("{kind}{}", running.len() + 1), Process::default());
        running.insert(id.clone(), process.clone());
        (id, process)
    }

    fn process(&self, id: &str) -> Option<Process> {
        self.running.lock().expect("nobody panics here").get(id).cloned()
    }

    /// Cancels what has not ended.
    fn cancel(&self, id: &str) -> bool {
        let process = self.process(id).filter(|process| !process.ended.is_cancelled());
        process.map(|process| process.cancel.cancel()).is_some()
    }

    /// A branch that writes down what matters, and thinks until somebody has changed their mind.
    fn branch(self: &Arc<Self>, about: &str) -> String {
        let (agent, about, (id, process)) = (self.clone(), about.to_owned(), self.start("branch"));
        let name = id.clone();
        tokio::spawn(async move {
            let session = agent.session("branch", Map::new()).expect("the toolset is there");
            let likes = json!({ "content": "Ada prefers coffee to tea.", "memory_type": "preference" });
            for step in [
                (
                    "note_save",
                    json!({ "key": "house-rule", "content": "Ask before the kettle is replaced.", "pin": true }),
                ),
                ("memory_save", likes),
            ] {
                agent.call(&session, &process.cancel, step).await;
            }
            process.cancel.cancelled().await;
            agent.say(&format!("({name} no longer thinks about: {about})"));
            process.ended.cancel();
        });
        id
    }

    /// A worker that does the only task its model knows: it edits a file, runs a program, and says what came of it. All that it does is kept.
    fn spawn(self: &Arc<Self>, task: &str) -> String {
        let (agent, task, (id, process)) = (self.clone(), task.to_owned(), self.start("worker"));
        let name = id.clone();
        tokio::spawn(async move {
            let branch = agent.session("branch", Map::new()).expect("the toolset is there");
            let made = ("task_create", json!({ "title": task, "status": "ready" }));
            let number = agent.call(&branch, &process.cancel, made).await["result"]["task_number"].clone();
            let given = Map::from_iter([("worker".to_owned(), json!(name)), ("task".to_owned(), number)]);
            let session = agent.session("worker", given).expect("the toolset is there");
            let steps = [
                ("set_status", json!({ "status": format!("working on: {task}") })),
                ("task_update", json!({ "status": "in_progress" })),
                ("file_read", json!({ "path": "notes.txt" })),
                ("file_edit", json!({ "path": "notes.txt", "old_string": "tea", "new_string": "coffee" })),
                ("exec", json!({ "program": "wc", "args": ["-w", "notes.txt"], "why": "count the words" })),
            ];
            let mut last = Value::Null;
            for (tool, arguments) in steps {
                agent.did(&name, StepKind::Call, format!("{tool} {arguments}")).await;
                last = agent.call(&session, &process.cancel, (tool, arguments)).await;
            }
            let counted = last["result"]["stdout"].as_str().unwrap_or("no answer").trim().to_owned();
            agent.call(&session, &process.cancel, ("task_update", json!({ "status": "done" }))).await;
            let outcome = json!({ "status": format!("done: {counted}"), "kind": "outcome" });
            agent.call(&session, &process.cancel, ("set_status", outcome)).await;
            agent.did(&name, StepKind::Outcome, counted).await;
            process.ended.cancel();
        });
        id
    }

    async fn did(&self, worker: &str, kind: StepKind, content: String) {
        self.keep(Feed::Worker(WorkerStep { worker: worker.to_owned(), kind, content, at_ms: None })).await;
    }
}

/// The host, with directories and settings of its own.
fn host(place: &Path) -> Result<(Arc<Host>, CallContext), Box<dyn Error>> {
    let (dirs, user, work) = (Dirs::below(place), place.join("settings.toml"), place.join("work"));
    std::fs::write(&user, SETTINGS)?;
    let settings = Settings::load(&Sources { home: dirs.home.clone(), user: Some(user), ..Sources::default() })?;
    // A program that loads components of others would compile them in a child, as Toolcrib does.
    let (host, notices) = Host::new(&settings, &dirs, &[], Compiler::Here).map_err(|failure| failure.message)?;
    notices.iter().for_each(|notice| println!("note: {notice}"));
    let tools = host.plugin_source(BUILTINS, Vec::new()).load();
    let backend = Local::new(work, dirs.home.clone(), dirs.state.clone(), std::env::vars_os().collect());
    Ok((Arc::new(host), CallContext::new("agent", Arc::new(tools), Arc::new(backend))))
}

/// The agent over what there is at a place.
fn start(place: &Path) -> Result<Arc<Agent>, Box<dyn Error>> {
    let (host, context) = host(place)?;
    Ok(Arc::new_cyclic(|own| {
        let context = context.approver(Arc::new(Person)).embedder(Arc::new(Events(own.clone())));
        Agent { host, context, running: Mutex::default() }
    }))
}

async fn first_day(agent: &Arc<Agent>) -> Result<(), Box<dyn Error>> {
    let channel = agent.session("channel", Map::from_iter([("channel".to_owned(), json!("kitchen"))]))?;
    agent.heard("ada", "Could you replace the tea in the notes? I would rather have coffee.").await;
    let morning = vec![
        ("reply", json!({ "content": "Good morning! I will see to the notes." })),
        ("spawn_worker", json!({ "task": "replace tea by coffee in notes.txt, and count the words" })),
        ("branch", json!({ "description": "what else could be improved" })),
        ("ask", json!({ "question": "Shall I go on?", "options": ["yes", "no"] })),
    ];
    let results = agent.turn(&channel, morning).await?;
    let id = |result: &Value, name: &str| result["result"][name].as_str().unwrap_or_default().to_owned();
    let (worker, branch) = (id(&results[1], "worker_id"), id(&results[2], "branch_id"));
    // Between turns the channel has no tools: nothing is sent by a call that comes late.
    let late = agent.call(&channel, &CancellationToken::new(), ("reply", json!({ "content": "too late" }))).await;
    println!("late: {}", late["error"]["message"].as_str().unwrap_or_default());

    agent.process(&worker).ok_or("no worker")?.ended.cancelled().await;
    let noon = vec![
        ("cancel", json!({ "process_type": "branch", "process_id": branch, "reason": "the person said no" })),
        ("cancel", json!({ "process_type": "worker", "process_id": worker })),
        ("react", json!({ "emoji": "☕" })),
    ];
    let results = agent.turn(&channel, noon).await?;
    println!("cancelled: {}, {}", results[0]["result"]["cancelled"], results[1]["result"]["cancelled"]);
    agent.process(&branch).ok_or("no branch")?.ended.cancelled().await;
    Ok(())
}

/// What was kept is there, for another program.
async fn next_day(agent: &Arc<Agent>) -> Result<(), Box<dyn Error>> {
    let branch = agent.session("branch", Map::new())?;
    for pinned in agent.host.pinned(&agent.context).await.pinned {
        println!("pinned: {}", pinned.text);
    }
    let ask = async |tool, arguments| {
        agent.call(&branch, &CancellationToken::new(), (tool, arguments)).await["result"].take()
    };
    let memories = ask("memory_recall", json!({ "query": "what does Ada drink, coffee?" })).await;
    println!("remembered: {}", memories["memories"][0]["content"]);
    let tasks = ask("task_list", json!({})).await;
    println!("task 1 is {}", tasks["tasks"][0]["status"]);
    let said = ask("channel_recall", json!({ "channel": "kitchen", "oldest_first": true })).await;
    for message in said["messages"].as_array().into_iter().flatten() {
        println!("said: {}: {}", message["author"], message["content"]);
    }
    let steps = ask("worker_inspect", json!({ "worker_id": "worker1" })).await;
    let last = steps["steps"].as_array().and_then(|steps| steps.last()).ok_or("no steps")?;
    println!("the worker made {} steps, and the last came to {}", steps["total"], last["content"]);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    std::fs::create_dir_all(place.path().join("work"))?;
    std::fs::write(place.path().join("work/notes.txt"), "a cup of tea\n")?;
    let agent = start(place.path())?;
    first_day(&agent).await?;
    drop(agent);
    println!("notes: {}", std::fs::read_to_string(place.path().join("work/notes.txt"))?.trim());
    next_day(&start(place.path())?).await
}
