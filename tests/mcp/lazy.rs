//! `serve --lazy`: a list of two tools, by which all others are found and called, each as if it had been called itself.

use crate::rig::Home;
use crate::traces::outcomes;
use search::{Index, Searched};
use serde_json::{Value, json};
use toolcrib_serve::mcp::lazy::definitions;
use toolcrib_tests::http::{Server, home};
use toolcrib_tests::mcp::{Client, ERAS, Era, decides, envelope, failure};
use toolcrib_tests::shell::command;

/// The two tools.
const OWN: [&str; 2] = ["tool_call", "tool_search"];
/// Tools as servers in use have them, by server; and what people ask, each with the one tool for it. The words that mean nearly the same were
/// chosen with the first questions at hand, and without the second.
const TOOLS: &str = include_str!("lazy/tools.json");
const QUESTIONS: &str = include_str!("lazy/questions.json");

fn lazy(home: Home) -> Home {
    home.options(&["--lazy"])
}

/// The arguments of `tool_call`.
fn to(tool: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

/// What a search finds.
fn search(client: &mut Client, query: &str) -> Value {
    envelope(&client.call("tool_search", json!({ "query": query })))["result"].take()
}

/// The names of tools in an answer: of those with their arguments, or of the others.
fn names<'a>(found: &'a Value, key: &str) -> Vec<&'a str> {
    found[key].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

fn all_names(found: &Value) -> Vec<&str> {
    [names(found, "tools"), names(found, "more")].concat()
}

#[test]
fn the_list_has_two_tools_and_those_that_are_always_listed() {
    for era in ERAS {
        assert_eq!(lazy(Home::new()).serve(era).tools(), OWN, "{era:?}");
    }
    let mut client = lazy(Home::new()).set("tools.always=[\"time\", \"no_such_tool\"]").serve(Era::Modern);
    assert_eq!(client.tools(), ["time", "tool_call", "tool_search"]);
    let list = client.ask("tools/list", json!({}))["tools"].take();
    let hints = |tool: &Value| {
        [&tool["annotations"]["readOnlyHint"], &tool["annotations"]["openWorldHint"]].map(Value::as_bool)
    };
    assert_eq!([hints(&list[1]), hints(&list[2])], [[Some(false), Some(true)], [Some(true), Some(false)]]);
    assert_eq!(list[1]["annotations"]["destructiveHint"], true, "{list}");
    let said = list[2]["description"].as_str().expect("a description");
    assert!(said.contains("run_shell: ") && said.contains("read_file: "), "{said}");
}

#[test]
fn without_it_there_are_no_such_tools() {
    for era in ERAS {
        let mut client = Home::new().serve(era);
        for own in OWN {
            assert!(!client.tools().iter().any(|name| name == own));
            let id = client.begin(own, to("time", json!({})));
            assert_eq!(client.error(id).0, -32602, "{own}");
        }
    }
}

#[test]
fn a_tool_is_found_and_called() {
    for era in ERAS {
        let home = lazy(Home::new());
        let mut client = home.serve(era);
        let found = search(&mut client, "what time is it?");
        assert_eq!(names(&found, "tools")[0], "time", "{found}");
        let schema = &found["tools"][0]["inputSchema"];
        assert!(schema["properties"]["format"].is_object(), "{schema}");
        for arguments in [json!({ "format": "iso" }), json!("{\"format\": \"iso\"}"), Value::Null] {
            let result = client.call("tool_call", to("time", arguments));
            assert_eq!(envelope(&result)["result"], result["structuredContent"], "{era:?}");
        }
        // It is in the list of none, and works all the same.
        envelope(&client.call("time", json!({})));
        assert_eq!(outcomes(&home.program, "time"), ["ok"; 4]);
        assert_eq!(outcomes(&home.program, "tool_call"), [""; 0], "the trail knows the tool that was called");
    }
}

/// Case 47.
#[test]
fn what_cannot_be_called_is_neither_found_nor_run() {
    for era in ERAS {
        let home = lazy(Home::new().guest("word_count")).set("tools.shell_enabled=false");
        home.program.write("work/a.txt", "two words");
        let mut client = home.serve(era);
        for (name, query, arguments, why) in [
            ("run_shell", "run a shell command", command("touch ran"), "shell_enabled"),
            ("word_count", "count the words of a file", json!({ "path": "a.txt" }), "toolcrib plugin allow"),
        ] {
            let found = search(&mut client, query);
            assert!(!all_names(&found).contains(&name), "{found}");
            let found = search(&mut client, &format!("select:{name}"));
            assert_eq!((names(&found, "tools").len(), &found["unknown"]), (0, &json!([name])), "{found}");
            let refused = client.call("tool_call", to(name, arguments));
            assert!(failure(&refused).contains(why), "{era:?}: {refused}");
        }
        assert!(!home.program.path("work/ran").exists());
    }
}

#[test]
fn a_toolset_bounds_what_is_found_and_called() {
    let home = lazy(Home::new()).options(&["--toolset", "small"]);
    home.program.write("config/toolcrib/toolcrib.toml", "[toolset.small]\ntools = [\"time\", \"read_file\"]\n");
    for era in ERAS {
        let mut client = home.serve(era);
        let found = search(&mut client, "time, files, commands, web pages: read, write, run, fetch");
        let mut all = all_names(&found);
        all.sort_unstable();
        assert_eq!(all, ["read_file", "time"], "{found}");
        let refused = client.call("tool_call", to("write_file", json!({ "path": "a", "content": "" })));
        assert!(failure(&refused).contains("small"), "{refused}");
        assert!(!home.program.path("work/a").exists());
    }
}

#[test]
fn a_person_is_asked_about_the_tool_in_the_envelope() {
    for era in ERAS {
        let home = lazy(Home::new());
        let mut client = home.serve(era);
        let call = to("run_shell", command("echo ran >>marks"));
        let question = client.asked("tool_call", &call);
        assert!(
            question.words().contains("echo ran") && !question.words().contains("tool_call"),
            "{}",
            question.words()
        );
        envelope(&client.outcome(&question, decides("allow once")));
        let question = client.asked("tool_call", &call);
        failure(&client.outcome(&question, decides("deny")));
        let marks = std::fs::read_to_string(home.program.path("work/marks")).expect("the command ran");
        assert_eq!(marks.lines().count(), 1, "{era:?}");
        assert_eq!(outcomes(&home.program, "run_shell"), ["ok", "denied"]);
    }
}

/// An answer belongs to the call that was asked about, whatever is in the envelope with which it comes.
#[test]
fn an_answer_to_one_call_is_none_to_another() {
    let home = lazy(Home::new());
    let mut client = home.serve(Era::Modern);
    let question = client.asked("tool_call", &to("run_shell", command("touch one")));
    let other = question.with("tool_call", to("run_shell", command("touch other")));
    let id = client.reply(&other, decides("allow once"));
    assert_eq!(client.error(id).0, -32602);
    assert!(!home.program.path("work/one").exists() && !home.program.path("work/other").exists());
}

#[test]
fn tools_are_selected_by_their_names() {
    let mut client = lazy(Home::new()).serve(Era::Modern);
    let found = search(&mut client, " select: time, read_file ,tmie,");
    assert_eq!((names(&found, "tools"), names(&found, "more")), (vec!["time", "read_file"], vec!["time"]), "{found}");
    assert_eq!(found["unknown"], json!(["tmie"]));
}

#[test]
fn an_unknown_name_gets_one_that_is_near() {
    for era in ERAS {
        let mut client = lazy(Home::new()).serve(era);
        // What a protocol error says many clients keep from their models.
        let refused = client.call("tool_call", to("tmie", json!({})));
        let said = failure(&refused);
        assert!(said.contains("there is no tool `tmie`") && said.contains("`time`"), "{refused}");
    }
}

#[test]
fn an_envelope_holds_one_call_of_another_tool() {
    let mut client = lazy(Home::new()).serve(Era::Legacy);
    for (arguments, said) in [
        (to("tool_call", to("time", json!({}))), "`tool_call` cannot call `tool_call`"),
        (to("tool_search", json!({ "query": "time" })), "call `tool_search` itself"),
        (json!({}), "`name` must be"),
        (json!({ "name": 3 }), "`name` must be"),
        (to("time", json!([1])), "`arguments` must be an object"),
        (to("time", json!("{")), "`arguments` must be an object"),
        (json!({ "name": "time", "format": "iso" }), "unknown argument `format`"),
        // What the tool itself says.
        (to("time", json!({ "more": 1 })), "more"),
    ] {
        let refused = client.call("tool_call", arguments.clone());
        assert!(failure(&refused).contains(said), "{arguments}: {refused}");
    }
}

#[test]
fn a_search_is_bounded() {
    let mut client = lazy(Home::new()).serve(Era::Legacy);
    for (arguments, said) in [
        (json!({}), "`query` is missing"),
        (json!({ "query": 3 }), "`query` must be a string"),
        (json!({ "query": "ä".repeat(401) }), "401 characters (limit: 400)"),
        (json!({ "query": "time", "limit": 0 }), "from 1 to 20"),
        (json!({ "query": "time", "limit": 21 }), "from 1 to 20"),
        (json!({ "query": "time", "more": true }), "unknown argument `more`"),
    ] {
        let refused = client.call("tool_search", arguments.clone());
        assert!(failure(&refused).contains(said), "{arguments}: {refused}");
    }
    let found = search(&mut client, "read or write a file, run a command, fetch a page, search the web, tell the time");
    assert_eq!(names(&found, "tools").len(), 3, "{found}");
    assert!((1..=5).contains(&names(&found, "more").len()) && found["hint"].is_string(), "{found}");
    let few = envelope(&client.call("tool_search", json!({ "query": "file", "limit": 1 })))["result"].take();
    assert_eq!(all_names(&few).len(), 1, "{few}");
    let none = search(&mut client, "xyzzy");
    assert!(none["tools"].as_array().is_some_and(Vec::is_empty), "{none}");
    assert!(none["families"].as_array().is_some_and(|all| all.len() > 3) && none["hint"].is_string(), "{none}");
}

#[test]
fn it_is_the_same_over_http_for_each_toolset() {
    let program = home();
    program.write("config/toolcrib/toolcrib.toml", "[toolset.small]\ntools = [\"time\"]\n");
    let server = Server::start(&program, &["--http", "127.0.0.1:0", "--lazy"], &[]);
    let session = server.session();
    let small = "/mcp?toolset=small";
    let read = to("read_file", json!({ "path": "a.txt" }));
    program.write("work/a.txt", "some text");
    let of_session = |tool: &str, arguments: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        server.of_session(&session, &call)
    };
    for request in [server.call("tool_call", read.clone()), of_session("tool_call", read.clone())] {
        let result = server.answer(&request).message()["result"].take();
        assert!(envelope(&result)["result"].to_string().contains("some text"), "{result}");
    }
    let query = json!({ "query": "read a file" });
    for (request, finds) in [
        (server.call("tool_search", query.clone()), true),
        (of_session("tool_search", query.clone()), true),
        (server.call("tool_search", query).to(small), false),
    ] {
        let result = server.answer(&request).message()["result"].take();
        let found = envelope(&result)["result"].take();
        assert_eq!(all_names(&found).contains(&"read_file"), finds, "{found}");
    }
    let refused = server.answer(&server.call("tool_call", read).to(small)).message()["result"].take();
    assert!(failure(&refused).contains("small"), "{refused}");
    let list = server.answer(&server.modern("tools/list", json!({}))).message()["result"]["tools"].take();
    assert_eq!(list.as_array().map(Vec::len), Some(OWN.len()), "{list}");
}

/// Case 48: what 200 tools cost in the list, and how many questions find their tool.
#[test]
fn the_list_is_short_and_the_right_tool_is_among_the_first_eight() {
    let servers: Value = serde_json::from_str(TOOLS).expect("JSON");
    let tools: Vec<Searched<'_>> = servers.as_object().expect("an object").iter().flat_map(of_server).collect();
    assert_eq!(tools.len(), 200);
    let tokens = definitions(&tools).to_string().chars().count() / 4;
    println!("the list: {tokens} tokens");
    assert!(tokens <= 500, "{tokens}");
    let index = Index::of(&tools).expect("an index");
    let questions: Value = serde_json::from_str(QUESTIONS).expect("JSON");
    for (set, questions) in questions.as_object().expect("an object") {
        let questions = questions.as_array().expect("a list");
        let places: Vec<Option<usize>> = questions
            .iter()
            .map(|question| {
                let [asked, right] = [0, 1].map(|part| question[part].as_str().expect("text"));
                let right = index.named(right).unwrap_or_else(|| panic!("there is no {right}"));
                index.find(asked, 8).expect("a search").iter().position(|place| *place == right)
            })
            .collect();
        let within =
            |most: usize| places.iter().flatten().filter(|place| **place < most).count() * 100 / questions.len();
        let [first, three, five, eight] = [1, 3, 5, 8].map(within);
        println!("{set}, {} questions: top 1 {first} %, 3 {three} %, 5 {five} %, 8 {eight} %", questions.len());
        assert!(questions.len() >= 50 && eight >= 90, "{set}: {eight} %");
    }
}

fn of_server<'t>((server, tools): (&'t String, &'t Value)) -> Vec<Searched<'t>> {
    let text = |tool: &'t Value, key: &str| tool[key].as_str().expect("text");
    let tools = tools.as_array().expect("a list").iter();
    tools
        .map(|tool| Searched {
            group: server,
            name: text(tool, "name"),
            title: None,
            summary: text(tool, "description"),
            when_to_use: "",
            input_schema: &tool["inputSchema"],
        })
        .collect()
}
