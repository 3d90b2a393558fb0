//! Prompts of servers of others, and what these have to read, as `toolcrib serve` passes them on.

use crate::rig::Home;
use crate::traces::outcomes;
use serde_json::{Value, json};
use std::path::Path;
use toolcrib_tests::mcp::{Client, ERAS, Era, decides, envelope, failure};
use toolcrib_tests::outcome::succeeded;

/// The address of the first note of the server, here.
const NOTE: &str = "upstream://jotter/note://1";

/// A home that has accepted a server with a library. The options are those of `upstream add`.
fn library(options: &[&str]) -> Home {
    let home = Home::new();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/server.py").display().to_string();
    let begin = ["--yes", "upstream", "add", "jotter", "--read", &server];
    let command = ["--", "/usr/bin/python3", &server, "library"];
    succeeded(&home.program.run(&[&begin[..], options, &command].concat()));
    home
}

/// The addresses that a client is told.
fn addresses(client: &mut Client) -> Vec<String> {
    let list = client.ask("resources/list", json!({}))["resources"].take();
    let all = list.as_array().expect("a list").iter();
    all.map(|resource| resource["uri"].as_str().expect("an address").to_owned()).collect()
}

#[test]
fn prompts_are_listed_and_got() {
    for era in ERAS {
        let home = library(&["--confirm", "none"]);
        let mut client = home.serve(era);
        let list = client.ask("prompts/list", json!({}));
        let names: Vec<&str> =
            list["prompts"].as_array().expect("a list").iter().filter_map(|prompt| prompt["name"].as_str()).collect();
        assert_eq!(names, ["jotter__prompt_greet", "jotter__prompt_hologram", "jotter__prompt_weather"], "{era:?}");
        let weather = &list["prompts"][2];
        assert_eq!(weather["title"], "Weather");
        assert_eq!(
            weather["arguments"],
            json!([
                { "name": "city", "description": "a town", "required": true },
                { "name": "day", "required": false },
            ])
        );
        assert!(!client.tools().iter().any(|tool| tool.contains("prompt")), "models are not offered them");
        let arguments = json!({ "name": "jotter__prompt_weather", "arguments": { "city": "Ulm" } });
        let got = client.ask("prompts/get", arguments);
        assert_eq!(
            got["messages"][0],
            json!({ "role": "user", "content": { "type": "text", "text": "{\"city\": \"Ulm\"}" } })
        );
        assert_eq!(got["description"], "of weather");
        let got = client.ask("prompts/get", json!({ "name": "jotter__prompt_greet" }));
        assert_eq!(got["messages"][1]["content"]["type"], "image");
        assert_eq!(got["messages"][2]["content"]["resource"]["uri"], "upstream://jotter/note://hidden");
        assert_eq!(outcomes(&home.program, "jotter__prompt_greet"), ["ok"]);
        for (name, arguments, why) in [
            ("jotter__prompt_weather", json!({}), "city"),
            ("jotter__echo", json!({}), "no such prompt"),
            ("time", json!({}), "no such prompt"),
            ("nothing", json!({}), "no such prompt"),
        ] {
            let id = client.request("prompts/get", json!({ "name": name, "arguments": arguments }));
            let (code, message) = client.error(id);
            assert!(code == -32602 && message.contains(why), "{name}: {code} {message}");
        }
    }
}

#[test]
fn resources_are_listed_once_the_server_was_asked_and_read_through_it() {
    for era in ERAS {
        let home = library(&["--confirm", "none"]);
        let mut client = home.serve(era);
        assert_eq!(addresses(&mut client), [""; 0], "no server is started for a list");
        let templates = client.ask("resources/templates/list", json!({}))["resourceTemplates"].take();
        assert_eq!(templates[1]["uriTemplate"], "upstream://jotter/{+uri}", "{templates}");
        let read = client.ask("resources/read", json!({ "uri": NOTE }));
        assert_eq!(read["contents"], json!([{ "uri": NOTE, "text": "the words of note://1" }]), "{era:?}");
        let day =
            client.ask("resources/read", json!({ "uri": "upstream://jotter/note://by-day/monday" }))["contents"].take();
        assert_eq!(day[0]["mimeType"], "text/markdown", "{day}");
        assert_eq!(addresses(&mut client), [NOTE, "upstream://jotter/picture://1"]);
        let picture =
            client.ask("resources/read", json!({ "uri": "upstream://jotter/picture://1" }))["contents"].take();
        assert_eq!(picture[0]["mimeType"], "image/png");
        assert_eq!(picture[0]["blob"], "iVBORw0KGgo=");
        let long = client.ask("resources/read", json!({ "uri": "upstream://jotter/note://by-day/long" }));
        let next =
            long["contents"][0]["_meta"]["next"].as_str().unwrap_or_else(|| panic!("{}", long["_meta"])).to_owned();
        let more = client.ask("resources/read", json!({ "uri": next }));
        assert_eq!(more["contents"][0]["_meta"]["bytes"], 2_200_000, "all of it was kept");
        for (uri, why) in [
            ("upstream://jotter/file:///etc/passwd", "has not named"),
            ("upstream://jotter/", "no such resource"),
            ("upstream://other/note://1", "no such resource"),
            ("note://1", "no such resource"),
        ] {
            let id = client.request("resources/read", json!({ "uri": uri }));
            let (code, message) = client.error(id);
            assert!(message.contains(why), "{uri}: {message}");
            // As each era has it.
            assert_eq!(code, if era == Era::Legacy { -32002 } else { -32602 }, "{uri}");
        }
        assert_eq!(outcomes(&home.program, "jotter__read_resource"), ["ok", "ok", "ok", "ok", "unavailable"]);
    }
}

/// A model has the same by the tool.
#[test]
fn a_link_in_an_answer_is_followed_by_the_tool_or_by_the_client() {
    for era in ERAS {
        let mut client = library(&["--confirm", "none"]).serve(era);
        let id = client.request("resources/read", json!({ "uri": "upstream://jotter/note://of-answer" }));
        assert!(client.error(id).1.contains("has not named"));
        let answer = envelope(&client.call("jotter__read_note", json!({})));
        assert_eq!(answer["result"], "[note://of-answer]");
        let read = envelope(&client.call("jotter__read_resource", json!({ "uri": "note://of-answer" })));
        assert_eq!(read["result"]["contents"][0]["text"], "the words of note://of-answer");
        let read = client.ask("resources/read", json!({ "uri": "upstream://jotter/note://of-answer" }));
        assert_eq!(read["contents"][0]["text"], "the words of note://of-answer");
        let refused = client.call("jotter__read_resource", json!({ "uri": "note://other" }));
        assert!(failure(&refused).contains("has not named"), "{refused}");
    }
}

#[test]
fn a_person_is_asked_about_reading_and_prompts_as_about_tools() {
    for era in ERAS {
        for (method, params, tool) in [
            ("resources/read", json!({ "uri": NOTE }), "jotter__read_resource"),
            ("prompts/get", json!({ "name": "jotter__prompt_greet" }), "jotter__prompt_greet"),
        ] {
            for decision in ["deny", "allow once"] {
                let home = library(&[]);
                let mut client = home.serve(era);
                let call = client.request(method, params.clone());
                let question = client.question(call, tool, &Value::Null);
                assert!(question.words().contains("jotter"), "{}", question.words());
                let answered = match era {
                    Era::Legacy => client.reply(&question, decides(decision)),
                    Era::Modern => {
                        let mut params = params.clone();
                        params["requestState"] = question.state().into();
                        params["inputResponses"] = json!({ "approval": decides(decision) });
                        client.request(method, params)
                    }
                };
                if decision == "deny" {
                    assert_eq!(client.error(answered).0, -32602, "{era:?} {method}");
                } else {
                    let result = client.result(answered);
                    assert!(result["contents"].is_array() || result["messages"].is_array(), "{result}");
                }
                let outcome = if decision == "deny" { "denied" } else { "ok" };
                assert_eq!(outcomes(&home.program, tool), [outcome], "{era:?}");
            }
        }
    }
}

#[test]
fn a_client_without_servers_sees_no_trace_of_prompts() {
    for (home, has_prompts) in [(Home::new(), false), (library(&[]), true)] {
        let mut client = home.serve(Era::Modern);
        let said = client.ask("server/discover", json!({}));
        assert_eq!(said["capabilities"].get("prompts").is_some(), has_prompts, "{said}");
    }
    for era in ERAS {
        let mut client = Home::new().serve(era);
        assert_eq!(client.ask("prompts/list", json!({}))["prompts"], json!([]));
        let templates = client.ask("resources/templates/list", json!({}))["resourceTemplates"].take();
        assert_eq!(templates.as_array().expect("a list").len(), 1);
    }
}
