//! Every example that a tool of the web gives in its guidance is a call that works.

use crate::names::Names;
use crate::web::{Web, answer};
use crate::world::in_a_world;
use serde_json::Value;
use toolcrib_tests::certificate::Authority;

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/web_search/pages/results.html");

fn examples(tools: &Value, name: &str) -> Vec<Value> {
    let tool = tools.as_array().into_iter().flatten().find(|tool| tool["name"] == name);
    let description = tool.and_then(|tool| tool["description"].as_str()).expect("a tool with a description");
    let lines = description.split_once("\nExamples:").expect("examples").1.trim_start().lines();
    lines.map_while(|line| line.strip_prefix("- ")).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_example_of_a_tool_of_the_web_works() {
    in_a_world(|world| {
        let authority = Authority::new();
        let servers = ["www.rust-lang.org", "example.com"].map(|name| authority.server(name));
        let addresses = ["93.184.216.1", "93.184.216.2"];
        let _names = Names::serve(move |query| {
            let number = usize::from(query.name != "www.rust-lang.org");
            crate::names::Reply::addresses(query, &[addresses[number]])
        });
        let _pages = Web::open_encrypted(
            move |to| servers[usize::from(to.to_string() != addresses[0])].clone(),
            |_, wire| wire.write_all(&answer("200 OK", &[("content-type", "text/html")], "a page ".repeat(2_000))),
        );
        let _engine = Web::open(&[8080], |_, wire| {
            let html = std::fs::read(RESULTS).expect("a page of results");
            wire.write_all(&answer("200 OK", &[("content-type", "text/html; charset=utf-8")], html))
        });
        let program = world.program();
        program.program.write("ca.pem", authority.pem());
        let file = program.program.path("ca.pem").display().to_string();
        let listed = program.program.run(&["tools", "--format", "json"]).stdout;
        let tools: Value = serde_json::from_slice(&listed).expect("a list of tools");
        let program = program.set(&format!("network.ca_file={file:?}"));
        let program = program.set(r#"tools.fetch_private_ranges=["127.0.0.1/32"]"#);
        let mut host = program.set(r#"tools.search_endpoint="http://127.0.0.1:8080/html/""#).run();
        for name in ["fetch_url", "web_search"] {
            for example in examples(&tools, name) {
                let answer = host.call(name, example.clone());
                assert!(answer["error"].is_null(), "{name} {example}: {answer}");
            }
        }
    });
}
