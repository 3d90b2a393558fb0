//! F-06: a second name, in the directory of a guest, for a file that lies elsewhere.
//! Outcome: `denied` for a confined guest, reading and writing, as long as the file has more than one name.
//! Switched off: counting names (`access/lib.rs`, `check_links`): the secret was read by its second name and the test failed.

use crate::exec::run;
use crate::files::{DENIED, SECRET, confined, confined_beside_commands, read, tree, write};

#[test]
fn a_second_name_of_a_file_elsewhere_opens_it_to_no_confined_guest() {
    let mut siege = confined_beside_commands();
    siege.program.write("work/own", "own");
    // Same user, so a command may make it.
    assert_eq!(
        run(&mut siege, "ln ../outside/secret hard && mkdir d && ln hard d/again && ln -s hard soft")["exit_code"],
        0
    );
    let (before, planted) = (tree(&siege.program.path("outside")), tree(&siege.program.path("work")));
    for path in ["hard", "d/again", "soft", "./d/../hard"] {
        assert_eq!(read(&mut siege, path), DENIED, "read {path}");
        assert_eq!(write(&mut siege, path), DENIED, "write {path}");
    }
    assert_eq!((tree(&siege.program.path("outside")), tree(&siege.program.path("work"))), (before, planted));
    // One name again: its own file.
    assert_eq!(run(&mut siege, "rm d/again soft && cp hard copy && rm hard && mv copy hard")["exit_code"], 0);
    assert_eq!(read(&mut siege, "hard"), format!("Ok({SECRET:?})"));
    assert_eq!(write(&mut siege, "own"), "Ok(7)");
    siege.lift();
}

#[test]
fn a_link_count_that_rises_while_a_guest_writes_harms_no_file_elsewhere() {
    let mut siege = confined();
    let linker = "i=0; while [ $i -lt 200 ]; do ln -f ../outside/secret leaf 2>/dev/null; rm -f leaf; echo inside > leaf; \
                  i=$((i+1)); done";
    let racing = siege.send("run_shell", toolcrib_tests::shell::command(linker));
    let mut calls = Vec::new();
    for _ in 0..100 {
        for how in ["read_file", "write_file"] {
            calls.push(siege.send("hostile", serde_json::json!({ "how": how, "text": "leaf" })));
        }
    }
    for _ in 0..=calls.len() {
        let answer = siege.answer();
        assert!(answer["id"] == racing || !answer.to_string().contains(SECRET), "{answer}");
    }
    let outside = tree(&siege.program.path("outside"));
    assert_eq!(outside.values().map(String::as_str).collect::<Vec<_>>(), [SECRET]);
    siege.lift();
}
