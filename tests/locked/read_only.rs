//! A home where nothing can be written: each message names the place that is in the way, and no cure for something else.

use crate::rig::{Machine, machine, word_count};
use std::process::Output;
use toolcrib_tests::outcome::{code, stderr, stdout};

/// A line where the user's settings and state can be read and not written.
fn read_only(machine: &Machine, line: &[&str]) -> Output {
    let freeze = |name: &str| {
        let place = machine.program.path(name);
        format!("mount --bind {place:?} {place:?} && mount -o remount,bind,ro {place:?}")
    };
    let prepare = format!("{} && {}", freeze("config"), freeze("state"));
    machine.command_after(&prepare, line).output().expect("`timeout` is installed")
}

#[test]
fn messages_name_the_place_that_cannot_be_written() {
    let machine = machine!("");
    machine.program.write("config/toolcrib/toolcrib.toml", "");
    machine.program.write("word_count.wasm", word_count());
    let state = machine.program.path("state/toolcrib").display().to_string();
    let doctor = read_only(&machine, &["doctor"]);
    let bad = stdout(&doctor);
    let bad = bad.lines().find(|line| line.starts_with("bad") && line.contains("state")).expect("a bad line");
    assert!(code(&doctor) == 1 && bad.contains(&state) && bad.contains("Read-only file system"), "{bad}");

    let file = machine.program.path("word_count.wasm").display().to_string();
    let allowed = read_only(&machine, &["plugin", "allow", &file, "--read", "."]);
    let settings = machine.program.path("config/toolcrib/toolcrib.toml").display().to_string();
    assert_eq!(code(&allowed), 10, "it is not a mistake of the command line: {}", stderr(&allowed));
    assert!(stderr(&allowed).contains(&settings), "{}", stderr(&allowed));

    let notes = read_only(&machine, &["notes", "list"]);
    assert_eq!(code(&notes), 10, "{}", stdout(&notes));
    assert!(stderr(&notes).contains(&state) && stderr(&notes).contains("XDG_STATE_HOME"), "{}", stderr(&notes));
    assert!(!stderr(&notes).contains("store check"), "{}", stderr(&notes));
}
