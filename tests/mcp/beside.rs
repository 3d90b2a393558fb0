//! `toolcrib approve` in a terminal beside clients: a rule that is kept there, and the first of several answers.

use crate::rig::Home;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use toolcrib_tests::http::{Request, Server};
use toolcrib_tests::mcp::{Client, ERAS, Era, META, decides, envelope, failure, forms};
use toolcrib_tests::outcome::json_of;
use toolcrib_tests::shell::{command, with};
use toolcrib_tests::{Program, QUESTION, Terminal, eventually, names, serve, skip};

const DENIED: &str = "Tool error: Command execution denied by user.";
const BY_RULE: &str = "Tool error: denied by a rule of yours";
/// What a client is told whose answer comes too late.
const TOO_LATE: &str = "the answer of this client came too late and does not count";
/// The message to a person whose answer in a terminal comes too late.
const LATE: &str = "the question was answered elsewhere, or its call has ended";
/// What they are told whose rule was written for later.
const KEPT: &str = "the rule was written all the same";
const SETTINGS: &str = "config/toolcrib/toolcrib.toml";
/// A host that no setting names.
const FRESH: &str = "fresh.example.com";
const UNSEEN: &str = "unseen.example.com";

/// The call that asks about an action, once it does.
fn asking(program: &Program, action: &str) -> String {
    let mut found = None;
    eventually("the question can be answered elsewhere", || {
        let open = json_of(&program.run(&["approve", "--json"]));
        let mut open = open.as_array().expect("a list").iter();
        found = open.find(|question| question["request"]["action"] == action).map(|question| question["call"].clone());
        found.is_some()
    });
    found.as_ref().and_then(Value::as_str).expect("an id").to_owned()
}

/// A person at a terminal of their own, who reads the question of a call.
struct Person(Terminal);

impl Person {
    fn reading(program: &Program, call: &str) -> Self {
        let person = Self::asks_for(program, call);
        person.0.shows(QUESTION);
        person
    }

    fn asks_for(program: &Program, call: &str) -> Self {
        let terminal = Terminal::idle(Program::new());
        // The terminal has a home of its own; the question is of a program in another one.
        terminal.run(&format!("(\n{}\n$toolcrib approve {call}\n)", program.shell_environment()));
        Self(terminal)
    }

    fn types(&self, word: &str) {
        self.0.press(&[word, "Enter"]);
    }

    /// Makes a rule of the answer, once its lines are on the screen.
    fn keeps(&self, word: &str, line: &str) {
        self.types(word);
        let shown = self.0.shows("Write this into");
        assert!(shown.contains(line), "{shown}");
        self.types("y");
    }

    /// The exit code, and the screen at the end.
    fn ended(&self) -> (i32, String) {
        let code = self.0.ended();
        (code, self.0.screen().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

fn settings(program: &Program) -> String {
    std::fs::read_to_string(program.path(SETTINGS)).unwrap_or_default()
}

/// Calls a command, whose question a person answers for always in a terminal; returns what comes of that call, and of the same once more. The
/// client is asked once.
fn kept(client: &mut Client, home: &Home, called: &Value, action: &str, word: &str, rule: &str) -> [Value; 2] {
    let question = client.asked("run_shell", called);
    let offered = "\nto answer this always:\n> toolcrib policy rules add allow --";
    assert!(question.words().contains(offered), "{}", question.words());
    let person = Person::reading(&home.program, &asking(&home.program, action));
    let (section, line) = rule.split_once('\n').expect("a section and a line");
    let shown = format!("rule │ {section}\n  rule │ {line}");
    person.keeps(word, &shown);
    let (code, screen) = person.ended();
    let said = if word == "never" { "denied" } else { "allowed" };
    assert!(code == 0 && screen.ends_with(said), "{screen}");
    assert!(settings(&home.program).contains(rule), "{}", settings(&home.program));
    // In the newer era a client has to come back for the result.
    let first = match client.era {
        Era::Legacy => client.result(question.call),
        Era::Modern => client.outcome(&question, json!({ "action": "cancel" })),
    };
    let id = client.begin("run_shell", called.clone());
    [first, client.result(id)]
}

#[test]
fn a_command_that_was_answered_for_always_is_not_asked_about_again() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        let always = command("touch always");
        let rule = "[[allow]]\ncommand = \"touch always\"";
        for result in kept(&mut client, &home, &always, "touch always", "always", rule) {
            envelope(&result);
        }
        let never = command("touch never");
        let rule = "[[deny]]\ncommand = \"touch never\"";
        let [first, second] = kept(&mut client, &home, &never, "touch never", "never", rule);
        assert!(failure(&first).starts_with(DENIED), "{era:?}: {first}");
        assert!(failure(&second).starts_with(BY_RULE), "{era:?}: {second}");
        assert!(failure(&second).contains("`toolcrib policy rules remove 2`"), "{era:?}: {second}");
        assert!(home.program.path("work/always").exists() && !home.program.path("work/never").exists());
        // Another command is another question.
        let other = client.asked("run_shell", &command("touch elsewhere"));
        assert_eq!(failure(&client.outcome(&other, decides("deny"))), DENIED);
    }
}

/// A home whose commands reach a port of this machine by names that nobody named.
fn asking_about_hosts(port: u16, dns: SocketAddr) -> Home {
    let settings = [
        "confine.ask=leaving".to_owned(),
        // The names lead to an address that is not public.
        "confine.hosts=[\"127.0.0.1\"]".into(),
        format!("confine.ports=[{port}]"),
        format!("network.dns_servers=[\"{dns}\"]"),
    ];
    settings.iter().fold(Home::new(), |home, setting| home.set(setting))
}

#[test]
fn a_host_that_was_answered_for_always_is_not_asked_about_again() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let port = serve(|_| "the page".to_owned()).port();
    let dns = names(&[(FRESH, [127, 0, 0, 1])]);
    let called = with(command(&format!("curl -sS http://{FRESH}:{port}/")), "wait", "30s");
    let server = format!("{FRESH}:{port}");
    for era in ERAS {
        for (word, section) in [("always", "allow"), ("never", "deny")] {
            let home = asking_about_hosts(port, dns);
            let mut client = home.serve(era);
            let rule = format!("[[{section}]]\nhost = \"{server}\"");
            for (number, result) in kept(&mut client, &home, &called, &server, word, &rule).iter().enumerate() {
                let result = envelope(result);
                let has_page = result["result"]["stdout"].as_str().is_some_and(|said| said.contains("the page"));
                assert_eq!(has_page, word == "always", "{era:?}: {result}");
                let said = result.to_string();
                if word == "never" {
                    let why = ["Connection denied by user.", "denied by a rule of yours"][number];
                    assert!(said.contains(why), "{era:?}: {said}");
                }
            }
        }
    }
}

/// An answer about one host of a command says nothing of the others, whatever another call was allowed meanwhile.
#[test]
fn a_yes_to_another_call_covers_no_host_that_nobody_saw() {
    let port = serve(|_| "the page".to_owned()).port();
    let dns = names(&[(FRESH, [127, 0, 0, 1]), (UNSEEN, [127, 0, 0, 1])]);
    let home = asking_about_hosts(port, dns);
    let mut client = home.serve(Era::Legacy);
    let waiting = |text: &str| with(command(text), "wait", "60s");
    let one = waiting(&format!("curl -sS http://{FRESH}:{port}/"));
    let both = waiting(&format!("curl -sS http://{FRESH}:{port}/; curl -sS http://{UNSEEN}:{port}/"));
    let first = client.asked("run_shell", &one);
    assert!(!first.words().contains(UNSEEN), "{}", first.words());
    let call = client.begin("run_shell", both.clone());
    // Its question waits behind the first one.
    std::thread::sleep(Duration::from_secs(2));
    client.reply(&first, decides("allow for this session"));
    envelope(&client.result(first.call));
    let second = client.question(call, "run_shell", &both);
    assert!(second.words().contains(UNSEEN), "{}", second.words());
    let said = envelope(&client.outcome(&second, decides("deny")))["result"]["stdout"].to_string();
    assert_eq!(said.matches("the page").count(), 1, "{said}");
}

/// Two clients, each with a server of its own in one home, and two terminals: the first answer counts, and whoever comes later is told so.
#[test]
fn of_a_client_and_a_terminal_the_first_answers_and_the_other_is_told() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for era in ERAS {
        let home = Home::new();
        let (mut one, mut other) = (home.serve(era), home.serve(era));
        let has = |name: &str| home.program.path(&format!("work/{name}")).exists();
        let first = one.asked("run_shell", &command("touch one"));
        let second = other.asked("run_shell", &command("touch other"));
        let [call_of_one, call_of_other] = ["touch one", "touch other"].map(|action| asking(&home.program, action));
        let person = Person::reading(&home.program, &call_of_one);
        let late = Person::reading(&home.program, &call_of_other);

        // The terminal answers before the client does.
        person.types("y");
        let (code, screen) = person.ended();
        assert!(code == 0 && screen.ends_with("> y allowed"), "{screen}");
        eventually("it runs", || has("one"));
        match era {
            Era::Legacy => {
                let told = one.notification("notifications/cancelled");
                assert_eq!(told["params"]["reason"], "the question is no longer open", "{told}");
                assert_eq!(told["params"]["requestId"], first.place, "{told}");
                one.reply(&first, decides("deny"));
                envelope(&one.result(first.call));
            }
            Era::Modern => {
                // It gets the outcome of the answer before.
                let outcome = envelope(&one.outcome(&first, decides("deny")));
                assert!(outcome["notices"].to_string().contains(TOO_LATE), "{outcome}");
                let again = one.reply(&first, decides("allow once"));
                let (code, message) = one.error(again);
                assert!(code == -32602 && message.contains("it was used already"), "{message}");
            }
        }

        // The client answers before the terminal does.
        assert!(!has("other"), "an answer is for one question");
        assert_eq!(failure(&other.outcome(&second, decides("deny"))), DENIED);
        // What a person wants always was said all the same.
        late.keeps("a", "touch other");
        let (code, screen) = late.ended();
        assert!(code != 0 && screen.contains(LATE) && screen.contains(KEPT), "{code}: {screen}");
        let (code, screen) = Person::asks_for(&home.program, &call_of_other).ended();
        let gone = format!("no call `{call_of_other}` asks a question that can be answered here");
        assert!(code != 0 && screen.contains(&gone), "{code}: {screen}");
        assert!(!has("other"));
        assert_eq!(json_of(&home.program.run(&["approve", "--json"])), json!([]));
    }
}

/// A call of a client that can show forms; with an answer, where it comes back with one.
fn called(server: &Server, text: &str, client: &str, answer: Option<(&Value, &str)>) -> Request {
    let request = server.call("run_shell", command(text));
    let mut body: Value = serde_json::from_str(&request.body).expect("JSON");
    let params = &mut body["params"];
    params["_meta"][format!("{META}clientCapabilities")] = forms();
    params["_meta"][format!("{META}clientInfo")] = json!({ "name": client, "version": "1" });
    if let Some((state, decision)) = answer {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({ "approval": decides(decision) });
    }
    request.saying(&body.to_string())
}

/// Two clients of one server over HTTP.
#[test]
fn two_clients_of_one_host_and_a_terminal_answer_each_for_its_own() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let server = Server::asking();
    let result = |request: &Request| server.answer(request).message()["result"].clone();
    let has = |name: &str| server.program.path(&format!("work/{name}")).exists();
    let clients = ["one", "other"];
    let asked = clients.map(|name| {
        let question = result(&called(&server, &format!("touch {name}"), name, None));
        assert_eq!(question["resultType"], "input_required", "{question}");
        question["requestState"].clone()
    });
    let [call_of_one, call_of_other] = clients.map(|name| asking(&server.program, &format!("touch {name}")));
    assert_ne!(call_of_one, call_of_other);
    let person = Person::reading(&server.program, &call_of_one);
    let late = Person::reading(&server.program, &call_of_other);

    // The terminal says no to the first; the yes of its client comes too late.
    person.types("n");
    let (code, screen) = person.ended();
    assert!(code == 0 && screen.ends_with("> n denied"), "{screen}");
    assert!(!has("one") && !has("other"), "an answer is for one question");
    let said = result(&called(&server, "touch one", "one", Some((&asked[0], "allow once"))));
    assert_eq!(failure(&said), format!("{DENIED}; {TOO_LATE}"));

    // The client of the second says yes; the no of the terminal comes too late.
    envelope(&result(&called(&server, "touch other", "other", Some((&asked[1], "allow once")))));
    late.types("n");
    let (code, screen) = late.ended();
    assert!(code != 0 && screen.ends_with(LATE), "{code}: {screen}");
    assert!(!has("one") && has("other"));
    // No answer is good for another call, or a second time.
    for (name, state) in clients.into_iter().zip(&asked) {
        let again = server.answer(&called(&server, &format!("touch {name}"), name, Some((state, "allow once"))));
        assert_eq!(again.code(), Some(-32602), "{again:?}");
    }
    assert!(!has("one"));
}
