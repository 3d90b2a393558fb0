//! output without end: gigabytes, no newline, no text, on both streams, faster than anybody reads.
//! Outcome: the command is followed to its end; the host's memory and what it keeps stay bounded.
//! Switched off: the bound of a kept stream (`output/lib.rs`, `Kept::push`): the first test failed.

use toolcrib_tests::shell::command;
use toolcrib_tests::{PATIENCE, Preparation, Program, eventually, is_long, memory_kib};

#[test]
fn endless_output_without_a_newline_takes_bounded_memory_and_bounded_room() {
    let mebibytes: u64 = if is_long() { 10 << 10 } else { 256 };
    let mut siege = Preparation::new().begin();
    siege.call("run_shell", command("head -c 1M /dev/zero; head -c 1M /dev/zero >&2"));
    let before = memory_kib(siege.pid(), "VmHWM");
    let flood = format!("head -c {mebibytes}M /dev/zero & head -c 8M /dev/urandom >&2; wait; exit 7");
    let answer = siege.call("run_shell", command(&flood));
    assert_eq!(answer["result"]["exit_code"], 7, "{}", answer["error"]);
    let more = memory_kib(siege.pid(), "VmHWM") - before;
    assert!(more < 32 << 10, "the flood took {more} KiB");
    let notices = answer["result"]["notices"].to_string();
    assert!(notices.contains(&format!("stdout has {} bytes", mebibytes << 20)), "{notices}");
    for file in siege.program.path("state/toolcrib/output").read_dir().expect("kept output") {
        let length = file.expect("a file").metadata().expect("its length").len();
        assert!(length < (16 << 20) + (128 << 10), "{length} bytes were kept");
    }
    assert!(answer.to_string().len() < 200_000, "the answer has {} bytes", answer.to_string().len());
    siege.lift();
}

#[test]
fn a_flood_of_events_to_a_reader_that_does_not_read_takes_bounded_memory() {
    let program = Program::new();
    let mut host = program.client(&["--yes", "run", "--events"]);
    let id = host.send("run_shell", command("yes | head -c 1G; touch done"));
    eventually("the host starts", || memory_kib(host.pid(), "VmHWM") > 1_000);
    // Nobody reads, and the command comes to its end all the same.
    let begin = std::time::Instant::now();
    while !program.path("work/done").exists() {
        assert!(begin.elapsed().as_secs() < 60, "the command waits for the reader");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let peak = memory_kib(host.pid(), "VmHWM");
    host.close();
    let answer = host.answer_to(id);
    println!("peak {} MiB", peak >> 10);
    assert!(peak < 256 << 10, "events that nobody read took {} MiB", peak >> 10);
    assert_eq!(answer["result"]["exit_code"], 0, "the answer is not lost among the events");
    assert!(host.ended(PATIENCE).expect("it ends").success());
}
