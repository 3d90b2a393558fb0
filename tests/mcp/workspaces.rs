//! Several servers of one user, used at once: those of different directories share nothing, those of one directory its shell.

use crate::rig::{Home, has_tmux};
use serde_json::{Value, json};
use toolcrib_tests::mcp::{Client, Era, envelope, failure};
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::{eventually, skip};

fn run(client: &mut Client, text: &str) -> String {
    let result = client.call("run_shell", waiting(text, "20s"));
    envelope(&result)["result"]["stdout"].as_str().expect("text").to_owned()
}

#[test]
fn servers_in_two_directories_have_a_directory_variables_functions_and_busy_of_their_own() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    let home = Home::with_panes().unasked();
    let path = |name: &str| home.program.path(name);
    let servers = || [home.within("one").serve(Era::Legacy), home.within("two").serve(Era::Modern)];
    let [mut one, mut two] = servers();
    let place = |name: &str| format!("{}\n", path(name).display());
    assert_eq!([run(&mut one, "pwd"), run(&mut two, "pwd")], [place("one"), place("two")]);
    // Both at once, each with its own names for things.
    let shape = |name: &str| format!("mkdir sub; cd sub; export WHOSE={name}; whose() {{ echo {name}; }}");
    let begun = [one.begin("run_shell", command(&shape("one"))), two.begin("run_shell", command(&shape("two")))];
    assert_eq!(envelope(&one.result(begun[0]))["result"]["exit_code"], 0);
    assert_eq!(envelope(&two.result(begun[1]))["result"]["exit_code"], 0);
    let told = "pwd; echo $WHOSE; whose";
    assert_eq!(run(&mut one, told), format!("{}one\none\n", place("one/sub")));
    assert_eq!(run(&mut two, told), format!("{}two\ntwo\n", place("two/sub")));
    // One waits in its pane; the other is free.
    let waits = one.begin("run_shell", waiting("touch waits; until [ -e go ]; do sleep 0.05; done; echo gone", "60s"));
    eventually("the command runs", || path("one/sub/waits").exists());
    assert_eq!(run(&mut two, "echo free"), "free\n");
    // A second server of the same directory finds the shell as it is: in use.
    let mut beside = home.within("one").serve(Era::Modern);
    let mut wanted = waiting("echo never", "300ms");
    wanted["pane"] = json!("shared");
    let busy = beside.call("run_shell", wanted);
    assert!(failure(&busy).contains("busy") || failure(&busy).contains("was not free within"), "{busy}");
    std::fs::write(path("one/sub/go"), "").expect("a file");
    assert_eq!(envelope(&one.result(waits))["result"]["stdout"], "gone\n");
    assert_eq!(run(&mut beside, told), format!("{}one\none\n", place("one/sub")));
}

#[test]
fn no_name_and_no_id_leads_from_one_servers_panes_to_those_of_another() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    let home = Home::with_panes().unasked();
    let (mut one, mut two) = (home.within("one").serve(Era::Legacy), home.within("two").serve(Era::Legacy));
    run(&mut one, "echo secret of one");
    run(&mut two, "true");
    let enter = |place: Value| {
        let mut arguments =
            json!({ "enter": true, "risk": "low", "mutation": true, "privesc": false, "why": "a test" });
        arguments.as_object_mut().expect("an object").extend(place.as_object().expect("an object").clone());
        arguments
    };
    let theirs = envelope(&one.call("send-keys", enter(json!({}))))["result"].clone();
    for place in [json!({ "target": theirs["id"] }), json!({ "session": theirs["session"] })] {
        let refused = two.call("send-keys", enter(place.clone()));
        assert!(failure(&refused).contains("there is no "), "{place}: {refused}");
        let shown = two.call("capture-pane", place.clone());
        assert!(!shown.to_string().contains("secret of one"), "{place}: {shown}");
    }
}
