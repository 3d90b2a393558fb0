//! `toolcrib tools`: what there is.

use serde_json::{Value, json};
use toolcrib_tests::Program;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::outcome::{code, install, json_of, stderr, stdout, succeeded};

const BUILT_IN: [&str; 10] = [
    "fetch_url",
    "file_edit",
    "file_find",
    "file_list",
    "file_search",
    "read_file",
    "run_shell",
    "time",
    "web_search",
    "write_file",
];

#[test]
fn the_table_names_every_tool_and_its_state() {
    let output = Program::new().run(&["tools"]);
    let table = succeeded(&output);
    for name in BUILT_IN {
        let row = table.lines().find(|line| line.trim_start().starts_with(name));
        assert!(row.is_some_and(|row| row.contains("built in") && row.contains("ready")), "{name}: {table}");
    }
    assert!(!table.contains('\u{1b}'), "colours without a terminal: {table:?}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn the_json_has_what_a_model_api_takes() {
    let tools = json_of(&Program::new().run(&["tools", "--format", "json"]));
    let names: Vec<&Value> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(BUILT_IN.iter().all(|name| names.contains(&&json!(name))), "{names:?}");
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["description"].as_str().unwrap().contains("When NOT to use: "));
        assert_eq!((&tool["available"], &tool["denial"]), (&json!(true), &Value::Null));
    }
}

#[test]
fn one_tool_is_shown_with_all_it_says_of_itself() {
    let program = Program::new();
    let page = succeeded(&program.run(&["tools", "read_file"]));
    assert!(page.starts_with("read_file, of plugin read_file (built in)\n"), "{page}");
    assert!(page.contains("Arguments {\"path\": string, \"offset\"?: integer, \"encoding\"?: string}\n"), "{page}");
    for line in ["When to use: ", "When NOT to use: ", "Disambiguation: ", "Examples:", "  path: File to read"] {
        assert!(page.contains(line), "{line}: {page}");
    }
    let tool = json_of(&program.run(&["tools", "read_file", "--format", "json"]));
    assert_eq!(tool["name"], "read_file");
}

#[test]
fn an_unknown_tool_is_answered_with_the_nearest() {
    let output = Program::new().run(&["tools", "read-file"]);
    assert_eq!((code(&output), stdout(&output)), (3, String::new()));
    assert_eq!(stderr(&output), "unknown_tool: there is no tool `read-file`\nhint: did you mean `read_file`?\n");
}

#[test]
fn a_plugin_that_was_not_allowed_is_listed_with_the_command_that_allows_it() {
    let program = Program::new();
    let file = install(&program, "word_count");
    let tools = json_of(&program.run(&["tools", "--format", "json"]));
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "word_count").unwrap();
    assert_eq!((&tool["available"], &tool["plugin"]["builtin"]), (&json!(false), &json!(false)));
    let hint = format!("allow it: `toolcrib plugin allow {file} --read DIR`");
    assert_eq!(tool["denial"]["hint"], hint);
    assert!(succeeded(&program.run(&["tools"])).contains(&hint));
    let page = succeeded(&program.run(&["tools", "word_count"]));
    assert!(page.contains("Not available: `word_count` needs `files`") && page.contains(&hint), "{page}");
}

#[test]
fn plugins_that_say_slowly_what_they_offer_load_all_the_same() {
    let spin = "(local $left i32) (local.set $left (i32.const 100000000))
        (loop $on (br_if $on (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))";
    let program = Program::new();
    let names: Vec<String> = (0..8).map(|index| format!("slow_{index}")).collect();
    for name in &names {
        let component = Forged::new(name).definitions(spin).bytes();
        program.write(&format!("data/toolcrib/plugins/{name}.wasm"), component);
    }
    let table = succeeded(&program.run(&["tools"]));
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
}

#[test]
fn a_plugin_that_uses_all_that_the_limits_give_finds_room_for_it() {
    let memories = "(core module $memory (memory 1))".to_owned() + &"(core instance (instantiate $memory))".repeat(7);
    let tables =
        "(core module $table (table 9 funcref))".to_owned() + &"(core instance (instantiate $table))".repeat(14);
    let others = "(core module $empty)".to_owned() + &"(core instance (instantiate $empty))".repeat(30);
    let program = Program::new();
    let component = Forged::new("large").items(&[memories, tables, others].concat()).bytes();
    program.write("data/toolcrib/plugins/large.wasm", component);
    let (code, envelope) = program.call(&["large"]);
    assert_eq!((code, &envelope["result"]), (0, &json!("ok")), "{envelope}");
}

#[test]
fn a_plugin_that_was_refused_is_told_beside_the_table() {
    let program = Program::new();
    program.write("data/toolcrib/plugins/broken.wasm", "nothing");
    let output = program.run(&["tools", "--format", "json"]);
    assert_eq!(json_of(&output).as_array().unwrap().len(), BUILT_IN.len());
    let file = program.path("data/toolcrib/plugins/broken.wasm").display().to_string();
    assert!(stderr(&output).starts_with(&format!("notice: plugin `{file}` was refused: it is not a component: ")));
}

#[test]
fn a_provider_that_lacks_its_key_or_its_url_says_which_lines_to_write() {
    let program = Program::new();
    let why = |provider: &str| {
        let set = format!("tools.search_provider={provider}");
        succeeded(&program.run(&["--set", &set, "tools", "--why", "web_search"]))
    };
    assert_eq!(why("web_search"), "`web_search` is offered\n");
    let brave = why("web_search_brave");
    assert!(brave.starts_with("`web_search` is not offered: `web_search_brave` needs a key of Brave\n"), "{brave}");
    for line in [
        "`toolcrib secret set BRAVE --host api.search.brave.com`",
        r#"`http.headers = { x-subscription-token = "${secret:BRAVE}" }` under [plugin.web_search_brave]"#,
    ] {
        assert!(brave.contains(line), "{line}: {brave}");
    }
    let searxng = why("web_search_searxng");
    assert!(searxng.contains("needs the URL of a SearXNG server"), "{searxng}");
    assert!(
        searxng.contains(r#"`http.base = "https://searx.example.org/"` under [plugin.web_search_searxng]"#),
        "{searxng}"
    );
    let list = json_of(&program.run(&["plugin", "list", "--json"]));
    let enabled = |name: &str| {
        let row = list["plugins"].as_array().unwrap().iter().find(|row| row["name"] == name);
        row.unwrap()["enabled"].clone()
    };
    let names = ["web_search", "web_search_brave", "web_search_searxng"];
    assert_eq!(names.map(enabled), [json!(true), json!(false), json!(false)]);
    assert!(succeeded(&program.run(&["plugin", "list"])).contains("not the search provider"));
}

/// The lines that it says are enough: with them it is offered.
#[test]
fn a_provider_with_its_key_is_offered() {
    let program = Program::new();
    let key = program.path("key");
    std::fs::write(&key, "zK4vQ9.Lw2x-Ht7Rm+8").unwrap();
    let set = ["secret", "set", "BRAVE", "--host", "api.search.brave.com", "--", "cat", key.to_str().unwrap()];
    succeeded(&program.run(&set));
    let path = program.path("config/toolcrib/toolcrib.toml");
    let earlier = std::fs::read_to_string(&path).unwrap();
    let lines = "[plugin.web_search_brave]\nhttp.headers = { x-subscription-token = \"${secret:BRAVE}\" }\n\
        [tools]\nsearch_provider = \"web_search_brave\"\n";
    std::fs::write(&path, format!("{earlier}\n{lines}")).unwrap();
    assert_eq!(succeeded(&program.run(&["tools", "--why", "web_search"])), "`web_search` is offered\n");
    let explained = succeeded(&program.run(&["policy", "explain", "web_search"]));
    assert!(explained.contains("requests to api.search.brave.com"), "{explained}");
    assert!(explained.contains("`x-subscription-token: ${secret:BRAVE}` to api.search.brave.com"), "{explained}");
}
