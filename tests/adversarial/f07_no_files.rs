//! F-07: a FIFO with somebody at its other end, a socket, a device or a directory stands where a guest reads and writes.
//! Outcome: refused without waiting; nothing is taken out of it or put into it, and it stays what it is.
//! Switched off: the looks at the kind of file (`backend/files.rs`, `open_regular`): without the second the device was read, without the first the writer no longer waited.

use crate::exec::run;
use crate::files::{confined_beside_commands, read, tree, write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use toolcrib_tests::skip;

#[test]
fn what_is_no_regular_file_is_neither_read_nor_written_nor_waited_for() {
    let mut siege = confined_beside_commands();
    let work = siege.program.path("work");
    let _socket = UnixListener::bind(work.join("socket")).expect("a socket");
    // A writer and a reader wait at the FIFOs: opening them would succeed, and end their waiting.
    let made = run(
        &mut siege,
        "mkfifo silent talking hearing; mkdir directory; ln -s talking link; \
                     (echo words > talking) & (cat hearing > heard) & true",
    );
    assert_eq!(made["exit_code"], 0, "{made}");
    let begin = Instant::now();
    for path in ["silent", "talking", "hearing", "link", "socket", "directory", ".", "directory/"] {
        for saw in [read(&mut siege, path), write(&mut siege, path)] {
            assert!(saw.starts_with("Err("), "{path}: {saw}");
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "it was waited for");
    for fifo in ["silent", "talking", "hearing"] {
        assert!(work.join(fifo).symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()), "{fifo}");
    }
    // Writer and reader still wait: nobody has opened their FIFOs.
    let heard = run(
        &mut siege,
        "timeout 5 cat talking; timeout 5 sh -c 'echo more > hearing'; \
                     for i in $(seq 100); do [ -s heard ] && break; sleep 0.1; done; cat heard",
    );
    assert_eq!(heard["stdout"], "words\nmore\n", "{heard}");
    siege.lift();
}

#[test]
fn a_device_in_the_working_directory_is_not_opened_to_a_guest() {
    let mut siege = confined_beside_commands();
    if run(&mut siege, "mknod zero c 1 5 && mknod full c 1 7 && head -c 1 zero >/dev/null")["exit_code"] != 0 {
        skip!("devices cannot be made here");
    }
    let before = tree(&siege.program.path("work"));
    for path in ["zero", "full", "./zero"] {
        for saw in [read(&mut siege, path), write(&mut siege, path)] {
            assert_eq!(saw, "Err(\"execution_failed\")", "{path}");
        }
    }
    assert_eq!(tree(&siege.program.path("work")), before);
    siege.lift();
}
