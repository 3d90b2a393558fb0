//! Programs that do next to nothing, which what is measured is held against: relays between a client and a server, and a server that only
//! answers. This very program is one of them where a variable says which.

use rustix::fs::FlockOperation;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write, stdin, stdout};
use std::process::{Command, Stdio};

/// Which one it is, and behind a space of what: the command line of a server, or a file.
pub(crate) const FLOOR: &str = "TOOLCRIB_BENCH_FLOOR";
/// A relay that does nothing but hand on bytes: what any program between the two costs at least.
pub(crate) const RELAYS: &str = "relays";
/// A relay that takes each line for JSON and writes it anew: what any costs that looks at what it hands on.
pub(crate) const READS: &str = "reads";
/// A server that reads each line as JSON and answers with as many bytes as our `time`; with a file, once it has put two lines there under its
/// lock.
pub(crate) const ANSWERS: &str = "answers";
/// The same with a file, which starts `sh -c true` with two pipes between the two lines, and answers when it has ended: what any server costs
/// that starts commands.
pub(crate) const STARTS: &str = "starts";

/// Characters of the text that a call is answered with.
const TEXT_CHARS: usize = 880;
/// Bytes of what a call leaves in the file.
const TRAIL_BYTES: usize = 800;

/// Is the program that the variable names.
pub(crate) fn run(floor: &str) {
    match floor.split_once(' ') {
        Some((RELAYS, command)) => relay(command, hand_on_bytes),
        Some((READS, command)) => relay(command, hand_on_lines),
        Some((ANSWERS, "")) => answer(|| {}),
        Some((ANSWERS, file)) => {
            let file = opened(file);
            answer(|| put(&file, TRAIL_BYTES));
        }
        Some((STARTS, file)) => {
            let file = opened(file);
            answer(|| {
                put(&file, TRAIL_BYTES / 2);
                start();
                put(&file, TRAIL_BYTES / 2);
            });
        }
        Some(_) | None => panic!("no such program: {floor}"),
    }
}

fn relay(command: &str, hand_on: fn(&mut dyn BufRead, &mut dyn Write)) {
    let mut words = command.split_whitespace();
    let mut server = Command::new(words.next().expect("a command line"));
    let mut server = server
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a server");
    let (mut input, output) = (server.stdin.take().expect("a pipe"), server.stdout.take().expect("a pipe"));
    let forth = std::thread::spawn(move || hand_on(&mut stdin().lock(), &mut input));
    hand_on(&mut BufReader::with_capacity(64 << 10, output), &mut stdout().lock());
    forth.join().expect("it hands on until its end");
    server.wait().expect("it has ended");
}

fn hand_on_bytes(from: &mut dyn BufRead, to: &mut dyn Write) {
    while let Ok(bytes @ [_, ..]) = from.fill_buf() {
        let read = bytes.len();
        if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
            break;
        }
        from.consume(read);
    }
}

fn hand_on_lines(from: &mut dyn BufRead, to: &mut dyn Write) {
    let mut line = Vec::new();
    while let Ok(1..) = from.read_until(b'\n', &mut line) {
        let message: Value = serde_json::from_slice(&line).expect("a message");
        line.clear();
        serde_json::to_writer(&mut line, &message).expect("memory takes all");
        line.push(b'\n');
        if to.write_all(&line).and_then(|()| to.flush()).is_err() {
            break;
        }
        line.clear();
    }
}

fn opened(file: &str) -> File {
    File::options().append(true).open(file).expect("the file")
}

fn start() {
    let done = Command::new("/bin/sh").args(["-c", "true"]).stdin(Stdio::null()).output();
    assert!(done.is_ok_and(|done| done.status.success()), "it succeeds");
}

fn answer(work: impl Fn()) {
    let mut input = BufReader::with_capacity(64 << 10, stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, stdout().lock());
    let (mut line, text) = (Vec::new(), "x".repeat(TEXT_CHARS));
    while let Ok(1..) = input.read_until(b'\n', &mut line) {
        let message: Value = serde_json::from_slice(&line).expect("a message");
        line.clear();
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "floor", "version": "1" } })
            }
            Some(_) | None => {
                work();
                json!({ "content": [{ "type": "text", "text": text }], "isError": false })
            }
        };
        serde_json::to_writer(&mut output, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .expect("the client reads");
        output.write_all(b"\n").expect("the client reads");
        // Answers to what was sent together are written together.
        if input.buffer().is_empty() {
            output.flush().expect("the client reads");
        }
    }
}

fn put(mut trail: &File, bytes: usize) {
    rustix::fs::flock(trail, FlockOperation::LockExclusive).expect("a lock");
    trail.write_all(&[b'x'; TRAIL_BYTES][..bytes]).expect("room");
    rustix::fs::flock(trail, FlockOperation::Unlock).expect("it was ours");
}
