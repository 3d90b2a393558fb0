//! Servers of others behind `toolcrib serve`: those of the protocol's own project, called by its own SDKs in both eras (`sdk/servers.mjs`,
//! `sdk/servers.py`).
//!
//! `tests/run` installs servers and SDKs; without them these tests are skipped.
#![expect(clippy::disallowed_methods, reason = "the test makes a repository")]

use crate::sdk::{self, Sdk, counts, installed, listening, started};
use crate::traces::{open_calls, outcomes};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use toolcrib::config::UpstreamSection;
use toolcrib_tests::http::{LEGACY, MODERN, Server};
use toolcrib_tests::mcp::{envelope, failure};
use toolcrib_tests::official::{node, place, python};
use toolcrib_tests::outcome::{json_of, succeeded};
use toolcrib_tests::{Program, eventually, names, serve, skip};

/// The tool that takes as long as it is told, and says how far it is.
const SLOW: &str = "everything__trigger-long-running-operation";
/// What a page is called that the egress finds on this machine.
const PAGES: &str = "pages.test";
const PAGE: &str = "<html><body><p>the words of the page</p></body></html>";

/// A prompt of one of them, and the address of what one has to read.
const PROMPT: &str = "everything__prompt_args-prompt";
const TO_READ: &str = "upstream://everything/demo://resource/static/document/features.md";

/// A client, the package that its SDK is, and the version of the protocol that it then speaks.
type Client = (Sdk, &'static str, &'static str);

const TYPESCRIPT: Sdk = Sdk { script: "servers.mjs", ..sdk::TYPESCRIPT };
const TYPESCRIPT_MODERN: Sdk = Sdk { era: "auto", ..TYPESCRIPT };
const PYTHON: Sdk = Sdk { script: "servers.py", ..sdk::PYTHON };
const PYTHON_MODERN: Sdk = Sdk { era: "auto", ..PYTHON };
const CLIENTS: [Client; 5] = [
    (TYPESCRIPT, "@modelcontextprotocol/sdk", LEGACY),
    (TYPESCRIPT, "@modelcontextprotocol/client", LEGACY),
    (TYPESCRIPT_MODERN, "@modelcontextprotocol/client", MODERN),
    (PYTHON, "mcp", LEGACY),
    (PYTHON_MODERN, "mcp", MODERN),
];

/// What has to come of a call.
enum Expected {
    /// A text with this in it.
    Text(&'static str),
    /// Structured content with this value, by a JSON pointer, which is the result as well.
    Structured(&'static str, Value),
    /// An image, as an image.
    Image,
    /// Numbers of progress, up to this one, before the result.
    Progress(u32),
    /// The client gave it up.
    Cancelled,
    /// A failure of the tool that says this.
    Failure(&'static str),
    /// An error of the protocol that says this.
    Error(&'static str),
}

/// A home that has accepted all seven servers.
struct Home {
    program: Arc<Program>,
    flags: Vec<String>,
    /// Where the page is that `fetch` is asked for.
    page: String,
}

impl Home {
    /// Ours has tools of the names `memory` and `time`: these servers are called something else.
    fn new(servers: &Path) -> Self {
        let program = Program::new();
        let directory = |name: &str| {
            let path = program.path(name);
            std::fs::create_dir(&path).expect("a directory");
            path.canonicalize().expect("a directory")
        };
        let [files, graph, repository] = ["files", "graph", "repository"].map(directory);
        program.write("files/note.txt", "a note of mine");
        commit(&repository);
        let port = serve(|_| PAGE.to_owned()).port();
        let memory = format!("MEMORY_FILE_PATH={}", graph.join("memory.json").display());
        let text = |path: &PathBuf| path.to_str().expect("text").to_owned();
        let everything = node(servers, "server-everything", &["stdio"]);
        accept(&program, "everything", everything, &[]);
        accept(&program, "filesystem", writing(node(servers, "server-filesystem", &[&text(&files)]), &files), &[]);
        accept(&program, "graph", writing(node(servers, "server-memory", &[]), &graph), &["--variable", &memory]);
        accept(&program, "thinking", node(servers, "server-sequential-thinking", &[]), &[]);
        accept(&program, "clock", python(servers, "mcp_server_time", &["--local-timezone=UTC"]), &[]);
        let git = python(servers, "mcp_server_git", &["--repository", &text(&repository)]);
        accept(&program, "git", writing(git, &repository), &[]);
        let fetch = python(servers, "mcp_server_fetch", &["--ignore-robots-txt"]);
        // Where it finds Node, it has npm install what it reads pages with, which its cell refuses.
        let path = format!("PATH={}", servers.join("python/bin").display());
        accept(&program, "fetch", fetch, &["--host", PAGES, "--port", &port.to_string(), "--variable", &path]);
        without_names(&program, "fetch");
        let dns = names(&[(PAGES, [127, 0, 0, 1])]);
        let settings =
            [format!("network.dns_servers=[\"{dns}\"]"), "tools.fetch_private_ranges=[\"127.0.0.1\"]".into()];
        let flags = settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect();
        Self { program: Arc::new(program), flags, page: format!("http://{PAGES}:{port}/page") }
    }

    fn flags(&self) -> Vec<&str> {
        self.flags.iter().map(String::as_str).collect()
    }

    /// The tools that were accepted, with what was accepted of each.
    fn accepted(&self) -> Map<String, Value> {
        let listed = json_of(&self.program.run(&["upstream", "list", "--json"]));
        let servers = listed.as_array().expect("a list");
        assert_eq!(servers.len(), 7, "{listed}");
        let mut tools = Map::new();
        for server in servers {
            assert!(server["problem"].is_null() && server["offered"] == server["accepted"], "{server}");
            let file = format!("config/toolcrib/upstream/{}.json", server["name"].as_str().expect("a name"));
            let file = std::fs::read(self.program.path(&file)).expect("what was accepted");
            let mut accepted: Value = serde_json::from_slice(&file).expect("JSON");
            tools.append(accepted["tools"].as_object_mut().expect("its tools"));
        }
        tools
    }

    /// The calls of each client, and what has to come of them.
    fn calls(&self) -> Vec<(&'static str, Value, Expected)> {
        use Expected::{Cancelled, Error, Failure, Image, Progress, Structured, Text};
        let path = |name: &str| self.program.path(name).canonicalize().expect("a file").display().to_string();
        let ann = json!({ "name": "Ann", "entityType": "person", "observations": ["likes tea"] });
        let thought = json!({ "thought": "one", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2 });
        let noon = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
        let weather = json!({ "temperature": 33, "conditions": "Cloudy", "humidity": 82 });
        let repository = json!({ "repo_path": path("repository") });
        let berlin = json!({ "timezone": "Europe/Berlin" });
        let page = json!({ "url": self.page });
        vec![
            ("everything__echo", json!({ "message": "hello" }), Text("Echo: hello")),
            ("everything__get-sum", json!({ "a": 40, "b": 2 }), Text("is 42")),
            ("everything__get-tiny-image", json!({}), Image),
            ("everything__get-structured-content", json!({ "location": "New York" }), Structured("", weather)),
            ("filesystem__read_file", json!({ "path": path("files/note.txt") }), Text("a note of mine")),
            ("filesystem__list_directory", json!({ "path": path("files") }), Text("[FILE] note.txt")),
            ("graph__create_entities", json!({ "entities": [ann] }), Text("entities")),
            ("graph__read_graph", json!({}), Structured("/entities/0", ann)),
            ("thinking__sequentialthinking", thought, Structured("/totalThoughts", 2.into())),
            ("clock__get_current_time", berlin, Structured("/timezone", "Europe/Berlin".into())),
            ("clock__convert_time", noon, Structured("/time_difference", "+9.0h".into())),
            ("git__git_status", repository.clone(), Text("new.txt")),
            ("git__git_log", repository, Text("the first one")),
            ("fetch__fetch", page, Text("the words of the page")),
            (SLOW, json!({ "duration": 1, "steps": 4 }), Progress(4)),
            (SLOW, json!({ "duration": 60, "steps": 120 }), Cancelled),
            // Those that are wrong for us never reach their server, others are refused there.
            ("everything__get-sum", json!({ "a": "many", "b": 2 }), Failure("`a`: \"many\" is not of type \"number\"")),
            ("filesystem__read_file", json!({ "path": "/etc/passwd" }), Failure("Access denied")),
            ("everything__no-such-tool", json!({}), Error("there is no tool `everything__no-such-tool`")),
            ("everything__echo", json!({ "message": "as before" }), Text("Echo: as before")),
        ]
    }

    /// Has a client list all tools and make the calls, at this server.
    fn check(&self, sdks: &Path, (sdk, package, version): Client, server: &Value) {
        let expected = self.calls();
        let is_cancelled = |expected: &Expected| matches!(expected, Expected::Cancelled);
        let calls = expected.iter().map(|(tool, arguments, expected)| {
            json!({ "tool": tool, "arguments": arguments, "cancel": is_cancelled(expected) })
        });
        let calls: Vec<Value> = calls.collect();
        let before = self.given_up();
        let prompt = json!({ "name": PROMPT, "arguments": { "city": "Ulm" } });
        let scenario =
            json!({ "server": server, "package": package, "calls": calls, "prompt": prompt, "uri": TO_READ });
        let told = sdk.run(sdks, scenario);
        // The older SDK of TypeScript does not tell it.
        assert!(told.get("version").is_none_or(|spoken| spoken == version), "{sdk:?} {package}: {}", told["version"]);
        assert_eq!(told["refused"], json!([]), "{sdk:?} {package}");
        self.check_list(told["tools"].as_array().expect("tools"));
        let outcomes = told["outcomes"].as_array().expect("outcomes");
        assert_eq!(outcomes.len(), expected.len(), "{sdk:?} {package}");
        for ((tool, _, expected), outcome) in expected.iter().zip(outcomes) {
            expected.check(outcome, &format!("{tool} by {package}, {version}: {outcome}"));
        }
        self.check_library(&told);
        eventually("each call has its outcome", || open_calls(&self.program) == 0);
        assert_eq!(self.given_up(), before + 1, "{sdk:?} {package}");
    }

    /// Prompts and what there is to read have come through as well.
    fn check_library(&self, told: &Value) {
        let names = |list: &str, key: &str| -> BTreeSet<String> {
            let all = told[list].as_array().expect("a list").iter();
            all.filter_map(|one| one[key].as_str()).map(str::to_owned).collect()
        };
        let accepted = self.accepted();
        let prompts = accepted.iter().filter(|(_, tool)| tool["kind"] == "prompt");
        assert_eq!(names("prompts", "name"), prompts.map(|(name, _)| name.clone()).collect());
        let words = told["got"]["messages"][0]["content"]["text"].as_str();
        assert!(words.is_some_and(|words| words.contains("Ulm")), "{}", told["got"]);
        assert!(names("resources", "uri").contains(TO_READ), "{}", told["resources"]);
        let read = told["read"]["contents"][0]["text"].as_str();
        assert!(read.is_some_and(|read| read.contains("Everything Server")), "{}", told["read"]);
    }

    /// How many calls were cancelled so far.
    fn given_up(&self) -> usize {
        outcomes(&self.program, SLOW).iter().filter(|outcome| *outcome == "cancelled").count()
    }

    /// All that was accepted for models is there, in its words, and takes the arguments that it took.
    fn check_list(&self, listed: &[Value]) {
        let mut accepted = self.accepted();
        accepted.retain(|_, tool| tool["kind"] != "prompt");
        let is_foreign = |tool: &&Value| tool["name"].as_str().is_some_and(|name| name.contains("__"));
        let foreign: Vec<&Value> = listed.iter().filter(is_foreign).collect();
        let names = foreign.iter().filter_map(|tool| tool["name"].as_str());
        assert_eq!(names.collect::<BTreeSet<_>>(), accepted.keys().map(String::as_str).collect());
        let of_us = |tool: &&Value| accepted[tool["name"].as_str().expect("a name")]["kind"] == "resources";
        for tool in foreign.into_iter().filter(|tool| !of_us(tool)) {
            let definition = &accepted[tool["name"].as_str().expect("a name")]["definition"];
            assert_eq!(tool["description"], definition["description"]);
            assert_eq!(fields(&tool["inputSchema"]), fields(&definition["inputSchema"]), "of {}", tool["name"]);
            // What does not fit it is handed on all the same, and clients would throw that away.
            assert!(tool["outputSchema"].is_null(), "of {}", tool["name"]);
        }
    }
}

impl Expected {
    fn check(&self, outcome: &Value, call: &str) {
        let result = &outcome["result"];
        match self {
            Self::Text(text) => assert!(envelope(result)["result"].to_string().contains(text), "{call}"),
            Self::Structured(pointer, value) => {
                let structured = &result["structuredContent"];
                assert_eq!(structured.pointer(pointer), Some(value), "{call}");
                assert_eq!(envelope(result)["result"], *structured, "{call}");
            }
            Self::Image => {
                let content = result["content"].as_array().expect("content");
                let image = content.iter().find(|block| block["type"] == "image").unwrap_or_else(|| panic!("{call}"));
                assert_eq!(image["mimeType"], "image/png", "{call}");
                // How each PNG begins.
                assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo")), "{call}");
            }
            Self::Progress(steps) => {
                envelope(result);
                let told = outcome["progress"].as_array().expect("a list");
                assert!(told.iter().all(|news| news["total"] == f64::from(*steps)), "{call}");
                let told: Vec<f64> = told.iter().filter_map(|news| news["progress"].as_f64()).collect();
                // The SDK of Python hands it on aside, and the last one can come after the result.
                assert!(counts(&told, 1, *steps), "{call}");
            }
            Self::Cancelled => assert_eq!(outcome["cancelled"], true, "{call}"),
            Self::Failure(text) => assert!(failure(result).contains(text), "{call}"),
            Self::Error(text) => {
                let message = outcome["error"]["message"].as_str();
                assert!(message.is_some_and(|message| message.contains(text)), "{call}");
            }
        }
    }
}

/// The names of the fields that a schema of an object has.
fn fields(schema: &Value) -> Option<BTreeSet<&str>> {
    schema["properties"].as_object().map(|fields| fields.keys().map(String::as_str).collect())
}

/// The same section, where the server can write in a directory.
fn writing(section: UpstreamSection, directory: &Path) -> UpstreamSection {
    UpstreamSection { write: vec![directory.to_owned()], ..section }
}

/// Accepts a server as it is; nobody is asked about its tools.
fn accept(program: &Program, name: &str, section: UpstreamSection, options: &[&str]) {
    let text = |path: &PathBuf| path.to_str().expect("text").to_owned();
    let reads = section.read.iter().flat_map(|path| ["--read".to_owned(), text(path)]);
    let writes = section.write.iter().flat_map(|path| ["--write".to_owned(), text(path)]);
    let more: Vec<String> = reads.chain(writes).chain(["--".to_owned()]).chain(section.command.clone()).collect();
    let begin = ["--yes", "upstream", "add", name, "--confirm", "none"];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    succeeded(&program.run(&[&begin[..], options, &more].concat()));
}

/// Has names no addresses for a server: it refuses the made-up ones, and goes by its proxy without any.
fn without_names(program: &Program, name: &str) {
    let settings = "config/toolcrib/toolcrib.toml";
    let before = std::fs::read_to_string(program.path(settings)).expect("the settings");
    let section = format!("[upstream.{name}]\n");
    assert!(before.contains(&section), "{before}");
    program.write(settings, before.replace(&section, &format!("{section}names = false\n")));
}

/// Makes a directory a repository with a commit, and with a file that is not in it.
fn commit(directory: &Path) {
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"];
        let ran = Command::new("git").args(identity).args(arguments).current_dir(directory).output();
        succeeded(&ran.expect("git is installed"));
    };
    git(&["init", "-q", "."]);
    git(&["commit", "-q", "--allow-empty", "-m", "the first one"]);
    std::fs::write(directory.join("new.txt"), "new").expect("a file");
}

/// Where servers and SDKs are installed; ends a test where either are not.
macro_rules! both {
    () => {
        match (place(), installed()) {
            (Some(servers), Some(sdks)) => (servers, sdks),
            (None, _) => skip!("the protocol's own servers are not installed"),
            (_, None) => skip!("the SDKs of MCP are not installed"),
        }
    };
}

/// Case 50.
#[test]
fn the_sdks_list_and_call_all_official_servers_over_pipes() {
    let (servers, sdks) = both!();
    let home = Home::new(&servers);
    for client in CLIENTS {
        home.check(&sdks, client, &started(&home.program, &home.flags()));
    }
}

/// Case 50, where all clients are one caller, who has one server of each name.
#[test]
fn the_sdks_list_and_call_all_official_servers_over_http() {
    let (servers, sdks) = both!();
    let home = Home::new(&servers);
    let http = Server::start_with(&home.program, &home.flags(), &["--http", "127.0.0.1:0"], &[]);
    for client in CLIENTS {
        home.check(&sdks, client, &listening(&http));
    }
}
