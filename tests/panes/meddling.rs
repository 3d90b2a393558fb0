//! What a person does to the server with tmux itself: split, move, rename. Ours is found by its marks, and by nothing that they change.

use crate::crib::{Crib, serve};
use serde_json::json;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{PATIENCE, Program};

const SHARED: &str = "=toolcrib-agent:";

fn panes(program: &Program) -> Vec<String> {
    let listed = program.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{@toolcrib_pane}"]);
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_split_window_gets_no_further_pane_however_often_the_host_is_restarted() {
    let program = Program::with_panes();
    for start in 0..4 {
        let mut host = serve(&program, &[]);
        let counted = host.shell("count=$((count + 1)); echo $count");
        assert_eq!(counted["result"]["stdout"], format!("{}\n", start + 1), "start {start}");
        assert!(host.end(PATIENCE).is_some_and(|status| status.success()), "start {start}");
        if start == 0 {
            let _ = program.tmux(&["split-window", "-d", "-t", SHARED]);
        }
        assert_eq!(panes(&program), ["%0 shared", "%1 "], "start {start}");
    }
}

#[test]
fn the_half_that_a_person_split_off_never_becomes_the_shared_pane() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let _ = crib.program.tmux(&["split-window", "-d", "-t", SHARED]);
    let _ = crib.program.tmux(&["kill-pane", "-t", "%0"]);
    let result = crib.result("run_shell", command("echo only-ours"));
    assert_eq!(result["stdout"], "only-ours\n");
    assert!(result["notices"].to_string().contains("made anew"), "{result}");
    assert_eq!(panes(&crib.program), ["%1 ", "%2 shared"]);
    let theirs = crib.program.tmux(&["capture-pane", "-p", "-t", "%1"]);
    assert!(!theirs.contains("only-ours"), "{theirs}");
}

#[test]
fn titles_names_and_places_of_panes_mean_nothing() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here; printf '\\033]2;other\\007\\033kother\\033\\\\'").0, 0);
    for arguments in [
        &["rename-window", "-t", SHARED, "other"][..],
        &["split-window", "-d", "-t", SHARED],
        &["select-pane", "-t", "%1", "-T", "shared"],
        &["swap-pane", "-d", "-s", "%0", "-t", "%1"],
        &["break-pane", "-d", "-s", "%0"],
        &["new-window", "-d", "-t", SHARED, "-n", "shared"],
        &["set-option", "-g", "base-index", "7"],
    ] {
        let _ = crib.program.tmux(arguments);
        assert_eq!(crib.run("echo $kept"), (0, "here\n".into()), "{arguments:?}");
    }
    assert_eq!(panes(&crib.program).iter().filter(|pane| pane.ends_with(" shared")).count(), 1);
}

#[test]
fn a_session_that_was_renamed_holds_nothing_up() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let _ = crib.program.tmux(&["rename-session", "-t", "=toolcrib-agent", "mine"]);
    let answer = crib.within("echo first", "3s");
    let answer = if answer["error"].is_null() { answer } else { crib.within("echo second", "3s") };
    assert_eq!(answer["result"]["exit_code"], 0, "{answer}");
}

#[test]
fn panes_are_wide_however_many_there_are() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("stty size").1, "50 200\n");
    crib.result("tmux-create-pane", declared(json!({ "pane": "beside" })));
    let widths = crib.program.tmux(&["list-panes", "-a", "-F", "#{pane_width}x#{pane_height}"]);
    assert_eq!(widths, "200x50\n200x50\n");
}

#[test]
fn file_tools_work_beside_the_pane_and_from_their_own_directory() {
    let mut crib = Crib::new();
    let content = "$ echo no\n[agent 9: 0]\n\ttab  \r\nlast line without an end";
    assert_eq!(crib.run("mkdir sub; cd sub; PS1='> '").0, 0);
    crib.result("write_file", json!({ "path": "written.txt", "content": content }));
    assert_eq!(std::fs::read_to_string(crib.program.path("work/written.txt")).expect("a file"), content);
    assert!(!crib.program.path("work/sub/written.txt").exists(), "the pane's directory counts");
    let read = crib.result("read_file", json!({ "path": "written.txt" }));
    assert!(read.as_str().is_some_and(|text| text.contains("last line without an end")), "{read}");
    let shown = crib.program.tmux(&["capture-pane", "-p", "-t", SHARED]);
    assert!(!shown.contains("last line") && !shown.contains("written"), "{shown}");
}
