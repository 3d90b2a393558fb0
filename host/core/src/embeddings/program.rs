//! A program that makes vectors: a question a line, an answer a line. It is started when it is first asked, and ended when it was not asked for
//! some time, as a model in memory is large.

use crate::backend::own::OwnPrograms;
use crate::backend::{Input, Process, ProcessEvent};
use crate::dirs::Dirs;
use crate::envelope::{Failure, Kind, duration};
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
pub(super) struct Program {
    argv: Vec<String>,
    programs: OwnPrograms,
    running: Arc<Mutex<Option<Running>>>,
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
        Self { argv, programs: OwnPrograms::new(dirs), running: Arc::default() }
    }

    /// Asks one question. A program that does not answer it is ended, and another one started for the next.
    pub(super) async fn ask(&self, question: &str) -> Result<Vec<u8>, Failure> {
        let mut place = self.running.lock().await;
        // Taken out: where this is dropped half-way, nobody gets the answer of another question.
        let mut running = match place.take() {
            Some(running) => running,
            None => self.start().await?,
        };
        let answer = tokio::time::timeout(PATIENCE, running.answer(question)).await;
        match answer.unwrap_or_else(|_| Err(format!("it gave no answer within {}", duration(PATIENCE)))) {
            Ok(answer) => {
                running.asked = Instant::now();
                *place = Some(running);
                self.end_when_idle();
                Ok(answer)
            }
            Err(why) => {
                let said = String::from_utf8_lossy(&running.said).trim().to_owned();
                running.process.end().await;
                let said = if said.is_empty() { String::new() } else { format!("; it says: {said}") };
                Err(Failure::new(
                    Kind::Unavailable,
                    format!("the program `{}` of [embeddings]: {why}{said}", self.argv[0]),
                ))
            }
        }
    }

    async fn start(&self) -> Result<Running, Failure> {
        let (mut process, input) = self.programs.open(&self.argv).await?;
        process.begun().await?;
        Ok(Running { process, input, asked: Instant::now(), said: Vec::new() })
    }

    /// Ends it once it was not asked for some time. A later question has its own look.
    fn end_when_idle(&self) {
        let running = Arc::downgrade(&self.running);
        tokio::spawn(async move {
            tokio::time::sleep(IDLE).await;
            let Some(running) = running.upgrade() else { return };
            let mut place = running.lock().await;
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
                ProcessEvent::Stderr(bytes) => {
                    self.said.extend(bytes);
                    let over = self.said.len().saturating_sub(SAID_BYTES);
                    self.said.drain(..over);
                }
                ProcessEvent::Exited(status) => return Err(format!("it ended with status {status}")),
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
}
