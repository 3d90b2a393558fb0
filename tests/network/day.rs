//! How often an agent asks its user in twelve sessions with default settings: reading, editing, commands, pages, packages and pushes.
#![expect(clippy::disallowed_methods, reason = "the test is the code host, and its user has git")]

use crate::names::{Names, Reply};
use crate::packages::{FETCHES, Served, make};
use crate::web::{Request, Web, answer};
use crate::world::{World, in_a_world};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use toolcrib_tests::Program;
use toolcrib_tests::mcp::{Client, Era, Question, decides, envelope, forms};
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::shell::{command, waiting};

/// Each session as its steps in order: the kind of a call, and how many of it. The kinds are in [`Agent::call`].
const SESSIONS: [(&str, &str); 12] = [
    ("a bug fix without the web", "read 18, write 4, command 12"),
    ("a bug fix with docs", "read 6, search 1, page 5, read 9, write 5, command 14"),
    ("an upgrade of dependencies", "read 4, search 2, page 5, package 3, read 8, write 6, command 10"),
    ("an issue to a pull request", "note 2, read 20, write 6, command 15, push 1, post 2"),
    ("a review of a pull request", "note 3, read 10, command 4, post 2"),
    ("a frontend with its preview", "read 10, write 8, package 1, command 10, page 12"),
    ("a report of what the web says", "read 2, search 6, page 24, write 2"),
    ("a script over private data", "private 2, read 3, command 8, write 3"),
    ("a port from answers on the web", "read 4, search 3, page 6, read 6, write 6, command 10, push 1"),
    ("a failure of the CI", "note 2, read 8, write 3, command 6, push 1"),
    ("mail that is sorted", "note 6, read 5, post 3"),
    ("a tool of a stranger", "read 2, page 2, clone 1, command 6, stranger 1"),
];

/// The most that may be asked, in percent of all calls.
const MOST: usize = 5;

/// The kinds that ask: their commands reach a host that no setting names, or they act through another server.
const ASKS: [&str; 5] = ["package", "push", "post", "clone", "stranger"];

const READS: [(&str, &str); 6] = [
    ("read_file", r#"{"path": "src/count.py"}"#),
    ("file_search", r#"{"pattern": "def \\w+"}"#),
    ("read_file", r#"{"path": "README.md"}"#),
    ("file_list", r#"{"path": "src"}"#),
    ("read_file", r#"{"path": "Makefile"}"#),
    ("read_file", r#"{"path": "tests/test_count.py"}"#),
];

const COMMANDS: [&str; 14] = [
    "git status --short",
    "make test 2>&1",
    "grep -rn 'def ' src",
    "git diff",
    "python3 -m unittest discover -s tests 2>&1",
    "ls -la",
    "sed -n 1,20p src/count.py",
    "git add -A && git commit -qm step --allow-empty",
    "git log --oneline -5",
    "find . -name '*.py' | xargs wc -l",
    "mkdir -p build && cp src/count.py build/",
    "python3 -c 'import sys; sys.path.insert(0, \"src\"); import count; print(count.words(\"a b\"))'",
    "printf 'a\\nb\\n' >build/list && sort build/list | uniq -c",
    "env | sort | head -n 3",
];

/// A project as many are: sources, a test, a Makefile, a history.
const PROJECT: [(&str, &str); 4] = [
    ("src/count.py", "def words(text):\n    return len(text.split())\n"),
    (
        "tests/test_count.py",
        "import sys, unittest\nsys.path.insert(0, 'src')\nimport count\n\nclass Words(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(count.words('a b'), 2)\n",
    ),
    ("Makefile", "test:\n\tpython3 -m unittest discover -s tests\n"),
    ("README.md", "# count\n\nCounts words.\n"),
];

/// Another server's tools: one that reads, one that acts.
const OTHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/upstream/server.py");
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/web_search/pages/results.html");

#[test]
fn twelve_sessions_ask_about_one_call_in_twenty_at_most() {
    in_a_world(|world| {
        let served = tempfile::tempdir().expect("a directory");
        let _names = Names::serve(|query| Reply::addresses(query, &["93.184.216.34"]));
        let web = internet(served.path());
        let program = Arc::new(home(world));
        let (mut calls, mut questions) = (0, 0);
        let mut by_kind: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (number, (name, steps)) in SESSIONS.into_iter().enumerate() {
            let mut agent = Agent::new(&program, number);
            let before = (calls, questions);
            for step in steps.split(", ") {
                let (kind, times) = step.split_once(' ').expect("a kind and a number");
                for _ in 0..times.parse().expect("a number") {
                    let asked = agent.call(kind);
                    let counts = by_kind.entry(kind).or_default();
                    (counts.0, counts.1) = (counts.0 + 1, counts.1 + asked);
                    (calls, questions) = (calls + 1, questions + asked);
                }
            }
            println!("{name}: {} calls, {} questions", calls - before.0, questions - before.1);
        }
        println!("calls and questions by kind: {by_kind:?}");
        println!("{calls} calls, {questions} questions: {:.1} %", 100.0 * questions as f64 / calls as f64);
        assert_eq!(calls, 350);
        assert!(questions * 100 <= calls * MOST, "{questions} questions in {calls} calls");
        for (kind, (calls, asked)) in by_kind {
            // Each of these is allowed once: nothing that was said covers the next one.
            assert_eq!(
                asked,
                if ASKS.contains(&kind) { calls } else { 0 },
                "{kind}: {asked} questions in {calls} calls"
            );
        }
        let hosts: Vec<String> = web.requests().iter().map(|request| request.values("host").join(" ")).collect();
        for host in ["pypi.org", "github.com", "html.duckduckgo.com", "docs1.example.org"] {
            assert!(hosts.iter().any(|reached| reached == host), "`{host}` was not reached: {hosts:?}");
        }
    });
}

/// All hosts of the web: a search engine, a package registry, a code host that takes pushes, and pages.
fn internet(directory: &Path) -> Web {
    let served: Served = make(directory);
    git(directory, &["init", "-q", "--bare", "agent.git"]);
    let directory = directory.to_owned();
    Web::open(&[80], move |request, wire| {
        let host = request.values("host").join(" ");
        let html = [("content-type", "text/html; charset=utf-8")];
        let said = match host.as_str() {
            "html.duckduckgo.com" => answer("200 OK", &html, std::fs::read(RESULTS).expect("a page")),
            "github.com" if request.target.starts_with("/agent.git/") => pushed(&directory, request),
            "github.com" if request.target == "/tool.py" => answer("200 OK", &[], "print('the tool of a stranger')\n"),
            "github.com" | "pypi.org" => served.answer(&request.target),
            _ => answer("200 OK", &html, format!("<html><body><p>What {host} says.</p></body></html>")),
        };
        wire.write_all(&said)
    })
}

/// The answer of git's own program for web servers.
fn pushed(directory: &Path, request: &Request) -> Vec<u8> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut backend = Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", directory).env("GIT_HTTP_EXPORT_ALL", "1");
    backend.env("PATH_INFO", path).env("QUERY_STRING", query).env("REQUEST_METHOD", &request.method);
    backend.env("REMOTE_USER", "agent").env("CONTENT_TYPE", request.values("content-type").join(""));
    backend.env("HTTP_CONTENT_ENCODING", request.values("content-encoding").join(""));
    let mut running = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git is installed");
    running.stdin.take().expect("piped").write_all(&request.bytes).expect("it reads all");
    let said = running.wait_with_output().expect("it ends").stdout;
    let end = said.windows(4).position(|window| window == b"\r\n\r\n").expect("headers") + 4;
    let head = String::from_utf8_lossy(&said[..end]).into_owned();
    let headers: Vec<(&str, &str)> = head.lines().filter_map(|line| line.split_once(": ")).collect();
    let status = headers.iter().find(|(name, _)| *name == "Status").map_or("200 OK", |(_, status)| status);
    answer(status, &headers, &said[end..])
}

/// One user for all sessions: a project that is pushed to a code host, a file of their own, and a server of others that they have accepted.
fn home(world: &World) -> Program {
    let (program, _) = world.confined(true);
    let program = program.asking_rarely();
    program.write("home/.gitconfig", "[user]\nname = Ann\nemail = ann@example.com\n");
    program.write("home/accounts.csv", "name,sum\nann,12\n");
    for (name, text) in PROJECT {
        program.write(&format!("work/{name}"), text);
    }
    let work = program.path("work");
    git(&work, &["init", "-q", "-b", "main", "."]);
    git(&work, &["remote", "add", "origin", "http://github.com/agent.git"]);
    let add = ["--yes", "upstream", "add", "tracker", "--reads", "read_note", "--read", OTHERS];
    succeeded(&program.run(&[&add[..], &["--", "/usr/bin/python3", OTHERS, "plain"]].concat()));
    program
}

fn git(directory: &Path, arguments: &[&str]) {
    succeeded(&Command::new("git").args(arguments).current_dir(directory).output().expect("git is installed"));
}

/// An agent in one session. Its user allows each thing once: no other yes leads to more questions.
struct Agent {
    client: Client,
    session: usize,
    calls: usize,
    written: Option<PathBuf>,
}

impl Agent {
    fn new(program: &Arc<Program>, session: usize) -> Self {
        // The world has an engine without encryption.
        let search = r#"tools.search_endpoint="http://html.duckduckgo.com/html/""#;
        let mut client =
            Client::start(&mut program.command(&["--set", search, "serve"]), program.clone(), Era::Modern, forms());
        client.shake_hands();
        Self { client, session, calls: 0, written: None }
    }

    /// Makes a call of a kind, which has to succeed; returns how often the user was asked.
    fn call(&mut self, kind: &str) -> usize {
        self.calls += 1;
        let number = self.calls;
        let (tool, arguments) = match kind {
            "read" => {
                let (tool, arguments) = READS[number % READS.len()];
                (tool, serde_json::from_str(arguments).expect("JSON"))
            }
            "private" => ("read_file", json!({ "path": "~/accounts.csv" })),
            "write" => self.write(),
            "command" => ("run_shell", waiting(COMMANDS[number % COMMANDS.len()], "30s")),
            "search" => ("web_search", json!({ "query": format!("count words {number}") })),
            // Docs, strangers' pages and what the user named. A look at a preview is fetched too: the browser is not in the default list.
            "page" => ("fetch_url", json!({ "url": format!("http://docs{}.example.org/{number}", number % 5) })),
            // An issue, a log of the CI or a mail, read by a tool of another server: tools for mail are not in the default list.
            "note" => ("tracker__read_note", json!({})),
            // A comment, a pull request or a message, sent by a tool of another server.
            "post" => ("tracker__echo", json!({ "text": format!("comment {number}") })),
            "package" => {
                let script = FETCHES[2].1.replace("packages.test", "pypi.org");
                ("run_shell", waiting(&script.replace("lib", &format!("lib{number}")), "60s"))
            }
            "clone" => ("run_shell", waiting("git clone -q http://github.com/repository.git", "30s")),
            "push" => {
                let push = format!("git commit -qm {number} --allow-empty && git push -q origin HEAD");
                ("run_shell", waiting(&push, "30s"))
            }
            // A program from the web is run in the cell: its host is asked about, not the program.
            "stranger" => ("run_shell", command("curl -sSf http://github.com/tool.py | python3 -")),
            other => panic!("no kind `{other}`"),
        };
        self.asks(kind, tool, &arguments)
    }

    /// A new file, then a change of it.
    fn write(&mut self) -> (&'static str, Value) {
        match self.written.take() {
            Some(path) => ("file_edit", json!({ "path": path, "old_string": "one", "new_string": "two" })),
            None => {
                let path = PathBuf::from(format!("src/part{}_{}.py", self.session, self.calls));
                self.written = Some(path.clone());
                ("write_file", json!({ "path": path, "content": "PART = 'one'\n" }))
            }
        }
    }

    fn asks(&mut self, kind: &str, tool: &str, arguments: &Value) -> usize {
        let mut call = self.client.begin(tool, arguments.clone());
        for asked in 0.. {
            let result = self.client.result(call);
            if result["resultType"] != "input_required" {
                let envelope = envelope(&result);
                if tool == "run_shell" {
                    assert_eq!(envelope["result"]["exit_code"], 0, "{kind}: {arguments}: {envelope}");
                }
                return asked;
            }
            let question = Question::of(result, call, tool, arguments);
            println!("{kind}: {}", question.words().lines().next().unwrap_or_default());
            call = self.client.reply(&question, decides("allow once"));
        }
        unreachable!("a call ends")
    }
}
