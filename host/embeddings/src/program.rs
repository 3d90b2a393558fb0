//! A program that makes vectors: a question a line, an answer a line. It is started when it is first asked, and ended when it was not asked for
//! some time, as a model in memory is large.

use super::{NoVectors, wire};
use backend::own::OwnPrograms;
use backend::{Input, Process, ProcessEvent};
use base::dirs::Dirs;
use base::envelope::{Failure, Kind, duration};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long it may take for an answer: a model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it runs without being asked.
const IDLE: Duration = Duration::from_secs(600);
/// Bytes of an answer.
const MOST_BYTES: usize = 32 << 20;
/// What it says is wrong with it, in bytes of its standard error.
const SAID_BYTES: usize = 2048;

/// A program of the settings.
pub(super) struct Program(Arc<Kept>);

struct Kept {
    argv: Vec<String>,
    programs: OwnPrograms,
    running: Mutex<Option<Running>>,
}

/// One that was started.
struct Running {
    process: Box<dyn Process>,
    input: Input,
    asked: Instant,
    /// The end of what it wrote to standard error.
    said: Vec<u8>,
}

impl Program {
    pub(super) fn new(argv: &[String], dirs: &Dirs) -> Self {
        let mut argv = argv.to_vec();
        if let Some(program) = argv.first_mut() {
            *program = dirs.expand(program).to_string_lossy().into_owned();
        }
        Self(Arc::new(Kept { argv, programs: OwnPrograms::new(dirs), running: Mutex::default() }))
    }

    /// Asks for the vectors of so many texts. Whoever no longer waits for them leaves the program as it is: to load a model takes long.
    pub(super) async fn ask(&self, question: String, texts: usize) -> Result<Vec<Vec<f32>>, NoVectors> {
        let kept = self.0.clone();
        let asked = tokio::spawn(async move { kept.ask(&question, texts).await }).await;
        asked.unwrap_or_else(|error| Err(NoVectors::Model(Failure::new(Kind::Internal, error.to_string()))))
    }
}

impl Kept {
    /// A program that does not answer as it should is ended, and another one started for the next question: what it writes later could be taken
    /// for the answer to that.
    async fn ask(self: &Arc<Self>, question: &str, texts: usize) -> Result<Vec<Vec<f32>>, NoVectors> {
        let mut place = self.running.lock().await;
        let mut running = match place.take() {
            Some(running) => running,
            None => self.start().await.map_err(NoVectors::Model)?,
        };
        let answer = tokio::time::timeout(PATIENCE, running.answer(question)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("it gave no answer within {}", duration(PATIENCE))));
        let why = match answer.map(|answer| wire::vectors(&answer, texts)) {
            Ok(answered @ (Ok(_) | Err(NoVectors::Texts(_)))) => {
                running.asked = Instant::now();
                *place = Some(running);
                self.end_when_idle();
                return answered;
            }
            Ok(Err(NoVectors::Model(failure))) => failure.message,
            Err(why) => why,
        };
        let said = String::from_utf8_lossy(&running.said).trim().to_owned();
        running.process.end().await;
        let said = if said.is_empty() { String::new() } else { format!("; it says: {said}") };
        let message = format!("the program `{}` of [embeddings]: {why}{said}", self.argv[0]);
        Err(NoVectors::Model(Failure::new(Kind::Unavailable, message)))
    }

    async fn start(&self) -> Result<Running, Failure> {
        let (mut process, input) = self.programs.open(&self.argv).await?;
        process.begun().await?;
        Ok(Running { process, input, asked: Instant::now(), said: Vec::new() })
    }

    /// Ends it once it was not asked for some time. A later question has its own look.
    fn end_when_idle(self: &Arc<Self>) {
        let kept = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(IDLE).await;
            let Some(kept) = kept.upgrade() else { return };
            let mut place = kept.running.lock().await;
            if place.as_ref().is_some_and(|running| running.asked.elapsed() >= IDLE)
                && let Some(mut idle) = place.take()
            {
                idle.process.end().await;
            }
        });
    }
}

impl Running {
    async fn answer(&mut self, question: &str) -> Result<Vec<u8>, String> {
        let lost = |error: std::io::Error| format!("it was lost: {error}");
        // Nothing was asked: it would be taken for the answer.
        while let Ok(event) = tokio::time::timeout(Duration::ZERO, self.process.next()).await {
            match event.map_err(lost)? {
                ProcessEvent::Stdout(_) => return Err("it wrote something before it was asked".into()),
                event => self.note(event)?,
            }
        }
        let line = [question.as_bytes(), b"\n"].concat();
        let (mut written, mut answer) = (0, Vec::new());
        loop {
            let rest = &line[written..];
            // Both at once: it may write before it has read all.
            let event = tokio::select! {
                wrote = self.input.write(rest), if !rest.is_empty() => {
                    // One that reads no more is about to say why.
                    written += wrote.unwrap_or(rest.len());
                    continue;
                }
                event = self.process.next() => event.map_err(lost)?,
            };
            match event {
                ProcessEvent::Stdout(bytes) => answer.extend(bytes),
                event => self.note(event)?,
            }
            match answer.strip_suffix(b"\n") {
                Some(line) if line.contains(&b'\n') => return Err("it wrote more than one line".into()),
                Some(line) => return Ok(line.to_vec()),
                None if answer.len() > MOST_BYTES => {
                    return Err(format!("its answer is longer than {} MiB", MOST_BYTES >> 20));
                }
                None => {}
            }
        }
    }

    /// Notes what it does beside its answers.
    fn note(&mut self, event: ProcessEvent) -> Result<(), String> {
        match event {
            ProcessEvent::Stdout(_) => {}
            ProcessEvent::Stderr(bytes) => {
                self.said.extend(bytes);
                let over = self.said.len().saturating_sub(SAID_BYTES);
                self.said.drain(..over);
            }
            ProcessEvent::Exited(status) => return Err(format!("it ended with status {status}")),
        }
        Ok(())
    }
}
