//! What clients are told of the server and its tools: the same each time and for everybody, and true.

use crate::rig::Home;
use serde_json::{Value, json};
use toolcrib_tests::forge::liar;
use toolcrib_tests::mcp::{Client, ERAS, Era, META, envelope, failure};
use toolcrib_tests::shell::command;

/// The list of tools, all of its pages.
fn list(client: &mut Client) -> Vec<Value> {
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let mut page = client.ask("tools/list", params);
        let cursor = page["nextCursor"].take();
        tools.append(page["tools"].as_array_mut().expect("a list"));
        if cursor.is_null() {
            return tools;
        }
        params = json!({ "cursor": cursor });
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().expect("a tool has a name")).collect()
}

fn tool<'t>(tools: &'t [Value], name: &str) -> &'t Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {:?}", names(tools)))
}

/// All that a guest of these tests asks for.
fn granted_all(home: Home, name: &str) -> Home {
    let work = home.program.path("work");
    let home = home.reading(name).grant(name, &format!("files.write=[{work:?}]"));
    home.grant(name, "shell=true")
}

#[test]
fn the_server_says_what_it_is_and_what_it_can_do() {
    let home = Home::new();
    let said = home.start(Era::Legacy).shake_hands();
    assert_eq!(said["protocolVersion"], "2025-11-25", "{said}");
    assert_eq!(said["serverInfo"]["name"], "toolcrib", "{said}");
    let modern = home.start(Era::Modern).shake_hands();
    let versions = modern["supportedVersions"].as_array().expect("a list");
    for version in ERAS.map(Era::version) {
        assert!(versions.iter().any(|other| other == version), "{version}: {modern}");
    }
    assert_eq!(modern["_meta"][format!("{META}serverInfo")]["name"], "toolcrib", "{modern}");
    assert!(modern["ttlMs"].is_u64() && modern["cacheScope"].is_string(), "{modern}");
    for said in [said, modern] {
        assert_eq!(said["capabilities"]["tools"]["listChanged"], true, "{said}");
        assert!(said["capabilities"]["resources"].is_object(), "{said}");
        assert!(said["instructions"].as_str().is_some_and(|text| text.contains("sandboxed")), "{said}");
    }
}

#[test]
fn an_older_client_is_answered_in_its_own_version() {
    let home = Home::new();
    for (wanted, given) in [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")] {
        let mut client = home.start(Era::Legacy);
        let hello =
            json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": { "name": "old", "version": "1" } });
        assert_eq!(client.ask("initialize", hello)["protocolVersion"], given);
        client.notify("notifications/initialized", json!({}));
        assert!(client.call("time", json!({}))["structuredContent"].is_object());
    }
}

#[test]
fn a_request_of_the_newer_era_that_does_not_say_who_asks_is_refused() {
    let mut client = Home::new().serve(Era::Modern);
    client.settle();
    let whole: Value = serde_json::from_str(&client.written("tools/list", json!({})).1).expect("a request");
    for (key, value, code) in [
        ("protocolVersion", Value::Null, -32602),
        ("clientCapabilities", Value::Null, -32602),
        ("protocolVersion", json!("2099-01-01"), -32022),
    ] {
        let mut params = whole["params"].clone();
        params["_meta"][format!("{META}{key}")] = value;
        let request = json!({ "jsonrpc": "2.0", "id": code, "method": "tools/list", "params": params });
        client.write(format!("{request}\n"));
        let answer = client.take("refusal", |message| message["id"] == code);
        assert_eq!(answer["error"]["code"], code, "{key}: {answer}");
    }
    client.settle();
}

/// M-09.
#[test]
fn a_thousand_lists_are_the_same_bytes_whatever_was_called_between() {
    let home = Home::new().unasked();
    let mut first: Option<String> = None;
    for era in ERAS {
        let mut client = home.serve(era);
        for round in 0..20 {
            let lists: Vec<u64> = (0..50).map(|_| client.request("tools/list", json!({}))).collect();
            for id in lists {
                // Objects keep the order that they came in.
                let tools = client.result(id)["tools"].to_string();
                assert_eq!(first.get_or_insert_with(|| tools.clone()), &tools, "{era:?}, round {round}");
            }
            client.call("run_shell", command(&format!("echo {round}")));
            client.call("read_file", json!({ "path": "no-such-file" }));
        }
    }
}

#[test]
fn the_list_is_sorted_and_each_tool_says_all_that_a_client_needs() {
    let mut client = Home::with_panes().serve(Era::Modern);
    let tools = list(&mut client);
    assert!(names(&tools).is_sorted(), "{:?}", names(&tools));
    for tool in &tools {
        for text in ["title", "description"] {
            assert!(tool[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {tool}");
        }
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        for hint in ["readOnlyHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint}: {tool}");
        }
        for schema in
            ["inputSchema", "outputSchema"].map(|key| &tool[key]).into_iter().filter(|schema| !schema.is_null())
        {
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(jsonschema::draft202012::meta::is_valid(schema), "{schema}");
        }
    }
    for name in ["time", "fetch_url", "web_search"] {
        assert!(tool(&tools, name)["outputSchema"].is_object(), "{name}");
    }
}

#[test]
fn the_newer_era_is_told_how_long_a_list_holds_and_for_whom() {
    let mut client = Home::new().serve(Era::Modern);
    for method in ["tools/list", "resources/list", "resources/templates/list"] {
        let result = client.ask(method, json!({}));
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(result["ttlMs"].is_u64(), "{result}");
        assert_eq!(result["cacheScope"], "private", "{result}");
    }
}

#[test]
fn what_is_structured_fits_the_schema_that_was_told() {
    let home = granted_all(Home::new().unasked().guest("word_count").guest("hostile"), "hostile").reading("word_count");
    home.program.write("work/a.txt", "two words");
    for era in ERAS {
        let mut client = home.serve(era);
        let tools = list(&mut client);
        for (name, arguments) in [
            ("time", json!({})),
            ("time", json!({ "format": "iso" })),
            ("word_count", json!({ "path": "a.txt" })),
            ("hostile", json!({ "how": "say", "text": "hello" })),
            ("run_shell", command("echo out; echo err >&2")),
            ("read_file", json!({ "path": "a.txt" })),
            ("write_file", json!({ "path": "b.txt", "content": "" })),
        ] {
            let result = client.call(name, arguments);
            let (schema, structured) = (&tool(&tools, name)["outputSchema"], result.get("structuredContent"));
            if result["isError"] != true && !schema.is_null() {
                let structured =
                    structured.unwrap_or_else(|| panic!("{name} has a schema and nothing for it: {result}"));
                assert!(jsonschema::draft202012::is_valid(schema, structured), "{name}: {structured}");
            }
            if let Some(structured) = structured {
                assert_eq!(structured, &envelope(&result)["result"], "{name}");
            }
        }
        for name in ["time", "word_count"] {
            assert!(tool(&tools, name)["outputSchema"].is_object(), "{name}");
        }
    }
}

#[test]
fn a_page_begins_behind_its_cursor_whatever_that_is() {
    for era in ERAS {
        let mut client = Home::new().serve(era);
        let all = list(&mut client);
        let third = all[2]["name"].clone();
        let rest = client.ask("tools/list", json!({ "cursor": third }));
        assert_eq!(rest["tools"].as_array().map(Vec::as_slice), Some(&all[3..]), "{era:?}");
        let long = "z".repeat(100_000);
        for (cursor, number) in [("", all.len()), ("\0", all.len()), ("~", 0), ("🙂", 0), (long.as_str(), 0)] {
            let page = client.ask("tools/list", json!({ "cursor": cursor }));
            assert_eq!(page["tools"].as_array().map(Vec::len), Some(number), "{era:?}: {cursor:.10}");
            assert!(page["nextCursor"].is_null(), "{page:.200}");
        }
        for cursor in [json!(3), json!(["time"]), json!({ "name": "time" })] {
            let id = client.request("tools/list", json!({ "cursor": cursor }));
            let answer = client.answer(id);
            let is_first = answer["result"]["tools"].as_array() == Some(&all);
            assert!(is_first || answer["error"]["code"] == -32602, "{era:?}: {cursor}: {answer:.300}");
        }
        assert_eq!(list(&mut client), all, "{era:?}");
    }
}

#[test]
fn more_tools_than_a_page_has_come_in_pages() {
    let home = Home::new();
    let said = |letter: char| (0..60).map(|number| format!("{letter}{number:02}")).collect::<Vec<_>>();
    let mut expected: Vec<String> = Vec::new();
    for letter in ['a', 'z'] {
        let tools = said(letter);
        let script: Vec<Value> = tools.iter().map(|name| json!({ "name": name, "summary": "Answer." })).collect();
        let shown: Vec<&str> = tools.iter().map(String::as_str).collect();
        home.install(&format!("many_{letter}"), &liar(&json!({ "tools": script }), &shown));
        expected.extend(tools);
    }
    let mut client = home.serve(Era::Modern);
    let first = client.ask("tools/list", json!({}));
    assert_eq!(first["tools"].as_array().map(Vec::len), Some(100), "{}", client.said());
    assert!(first["nextCursor"].is_string(), "there are more");
    let all = list(&mut client);
    assert!(names(&all).is_sorted(), "{:?}", names(&all));
    for name in &expected {
        tool(&all, name);
    }
    assert_eq!(envelope(&client.call("z59", json!({})))["result"], "z59");
}

#[test]
fn what_policy_denies_is_not_listed_and_is_refused_with_the_reason() {
    for (setting, denied, kept) in [
        ("tools.shell_enabled=false", "run_shell", "read_file"),
        ("tools.files_enabled=false", "read_file", "run_shell"),
        ("tools.fetch_enabled=false", "fetch_url", "time"),
    ] {
        let mut client = Home::new().set(setting).serve(Era::Legacy);
        let tools = client.tools();
        assert!(tools.iter().all(|name| name != denied), "{setting}: {tools:?}");
        assert!(tools.iter().any(|name| name == kept), "{setting}: {tools:?}");
        let arguments = match denied {
            "run_shell" => command("true"),
            "read_file" => json!({ "path": "a.txt" }),
            _ => json!({ "url": "https://example.com/" }),
        };
        let result = client.call(denied, arguments);
        let (key, _) = setting.split_once("=").expect("a key and a value");
        let key = key.rsplit('.').next().expect("a key");
        assert!(failure(&result).contains(key), "{setting}: {result}");
    }
}

#[test]
fn a_plugin_without_a_grant_is_not_listed() {
    let mut client = Home::new().guest("word_count").serve(Era::Legacy);
    assert!(client.tools().iter().all(|name| name != "word_count"));
    let result = client.call("word_count", json!({ "path": "a.txt" }));
    assert!(failure(&result).contains("toolcrib plugin allow"), "{result}");
}

#[test]
fn an_unknown_tool_is_an_error_of_the_protocol_and_wrong_arguments_are_a_result() {
    for era in ERAS {
        let mut client = Home::new().unasked().serve(era);
        let long = "x".repeat(100_000);
        for name in ["tmie", "", "run_shell ", "RUN_SHELL", "../time", "a\0b", long.as_str()] {
            let id = client.begin(name, json!({}));
            let (code, message) = client.error(id);
            assert_eq!(code, -32602, "{era:?}: {name:.20}: {message:.100}");
            assert!(message.len() < 1000, "{era:?}: {} bytes say so", message.len());
        }
        for (name, arguments, said) in [
            ("read_file", json!({}), "path"),
            ("read_file", json!({ "path": 5 }), "path"),
            ("read_file", json!({ "path": "a", "more": 1 }), "more"),
            ("run_shell", json!({ "command": "touch ran" }), "risk"),
        ] {
            let result = client.call(name, arguments);
            assert!(failure(&result).contains(said), "{era:?}: {result}");
            assert!(result.get("structuredContent").is_none(), "{era:?}: {result}");
        }
        // Without arguments there are none.
        let id = client.request("tools/call", json!({ "name": "time" }));
        assert!(client.result(id)["structuredContent"].is_object());
        for arguments in [json!([1]), json!("{"), json!(3)] {
            let id = client.begin("time", arguments.clone());
            // Which one is the library's affair: the message is no request of this method.
            assert!(client.error(id).0 < 0, "{era:?}: {arguments}");
        }
    }
}

/// M-10: what a plugin says of itself has no part in it.
#[test]
fn annotations_are_what_was_granted() {
    let home = Home::new().guest("word_count").guest("shell_echo").guest("hostile");
    let work = home.program.path("work");
    let home = granted_all(home.reading("word_count").grant("shell_echo", "shell=true"), "hostile");
    home.install("polite", &liar(&json!({ "tools": [{ "name": "polite", "summary": "Change all." }] }), &["polite"]));
    let mut client = home.serve(Era::Modern);
    let tools = list(&mut client);
    for (name, reads_only, reaches_out) in [
        ("time", true, false),
        ("read_file", true, false),
        ("write_file", false, false),
        ("run_shell", false, true),
        ("fetch_url", true, true),
        // Of others: with reading, with commands, with everything, with nothing.
        ("word_count", true, false),
        ("shell_echo", false, true),
        ("hostile", false, true),
        ("polite", true, false),
    ] {
        let annotations = &tool(&tools, name)["annotations"];
        let hints = (&annotations["readOnlyHint"], &annotations["openWorldHint"]);
        assert_eq!(hints, (&json!(reads_only), &json!(reaches_out)), "{name}");
    }
    drop(client);
    let mut client = home.grant("word_count", &format!("files.write=[{work:?}]")).serve(Era::Modern);
    let tools = list(&mut client);
    assert_eq!(tool(&tools, "word_count")["annotations"]["readOnlyHint"], false, "what may write is not read-only");
}
