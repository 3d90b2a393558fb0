//! `toolcrib upstream import`: the files of other clients are read and nothing that they name is run, and no secret of theirs is written or shown.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, Terminal, skip};

const SETTINGS: &str = "config/toolcrib/toolcrib.toml";
/// Values that no output and no file of settings may have. None has the shape of a vendor's token, so that nobody's search stops here.
const TOKEN: &str = "q8Zr1mB4xK7tV2wL9sD3";
const PASSWORD: &str = "hUnter-2-Of-Many";
const BEARER: &str = "w5Tn8cJ2vR6yH1pF4kA7";

fn server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/server.py")
}

/// An entry that starts `tests/upstream/server.py`, with more keys.
fn entry(more: Value) -> Value {
    let mut entry = json!({ "command": "/usr/bin/python3", "args": [server(), "plain"] });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

fn servers(key: &str, entries: Value) -> String {
    format!("{:#}", json!({ key: entries }))
}

fn import(program: &Program, arguments: &[&str]) -> Output {
    program.run(&[&["upstream", "import"], arguments].concat())
}

/// The plan for a server, by its name there.
fn of<'j>(json: &'j Value, name: &str) -> &'j Value {
    let servers = json["servers"].as_array().unwrap();
    servers.iter().find(|server| server["name"] == name).unwrap_or_else(|| panic!("no {name} in {json}"))
}

/// What it prints without a yes.
fn planned(program: &Program, arguments: &[&str]) -> Value {
    let output = import(program, &[arguments, &["--json"]].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// A home with a file of each client.
fn home() -> Program {
    let program = Program::new().without_settings();
    let marker = program.path("work/marker");
    let script = format!("#!/bin/sh\ntouch '{}'\n", marker.display());
    program.write("work/touch.sh", script);
    fs::set_permissions(program.path("work/touch.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let touch = program.path("work/touch.sh");
    let here = program.path("work").canonicalize().unwrap().display().to_string();
    program.write("work/.mcp.json", servers("mcpServers", json!({
        "touches": { "command": touch, "args": [] },
        "remote": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "Authorization": format!("Bearer {BEARER}") } },
    })));
    program.write("home/.claude.json", format!("{:#}", json!({
        "numStartups": 7,
        "mcpServers": { "scribe": entry(json!({ "env": { "NOTES_TOKEN": TOKEN, "LEVEL": "${LEVEL}", "MODE": "${MODE:-quiet}" } })) },
        "projects": { here: { "mcpServers": { "of_project": entry(json!({})) } } },
    })));
    program.write("config/Claude/claude_desktop_config.json", servers("mcpServers", json!({
        "database": { "command": "/usr/bin/python3", "args": [server(), format!("postgres://app:{PASSWORD}@db.example.com/x")] },
        "fetched": { "command": "npx", "args": ["-y", "@scope/server-notes@1.2.3", "/data"] },
    })));
    program.write("home/.codex/config.toml", format!(
        "# Mine.\nmodel = \"x\"\n\n[mcp_servers.jotter]\ncommand = \"/usr/bin/python3\"\nargs = [{:?}, \"plain\"]\nenabled_tools = [\"echo\", \"add\"]\n\
         default_tools_approval_mode = \"approve\"\ntool_timeout_sec = 5\n\n[mcp_servers.off]\ncommand = \"true\"\nenabled = false\n",
        server(),
    ));
    program.write("work/.vscode/mcp.json", format!(
        "{{\n  // Mine.\n  \"inputs\": [{{ \"id\": \"db\", \"type\": \"promptString\", \"password\": true }}],\n  \"servers\": {{\n    \"asks\": {}, // of a person\n  }},\n}}\n",
        entry(json!({ "env": { "DB": "${input:db}" } })),
    ));
    program.write("home/.cursor/mcp.json", servers("mcpServers", json!({
        "in_box": { "command": "docker", "args": ["run", "-i", "-e", format!("API_KEY={TOKEN}"), "image"] },
        "bridge": { "command": "npx", "args": ["mcp-remote@latest", "https://b.example.com/sse", "--header", format!("Authorization: Bearer {BEARER}")] },
        "in_folder": { "command": "/usr/bin/python3", "args": ["${workspaceFolder}/server.py"] },
    })));
    program.write(
        "home/.codeium/windsurf/mcp_config.json",
        servers(
            "mcpServers",
            json!({
                "denies": entry(json!({ "disabledTools": ["echo"], "alwaysAllow": ["add"], "odd_key": 1 })),
                "in_url": { "serverUrl": format!("https://c.example.com/mcp?apiKey={TOKEN}") },
            }),
        ),
    );
    program.write(
        "home/.gemini/settings.json",
        servers(
            "mcpServers",
            json!({
                "trusted": entry(json!({ "trust": true, "env": { "THE_KEY": "$THE_KEY" }, "excludeTools": ["add"] })),
                "twice": { "command": "/usr/bin/python3", "args": [server(), PASSWORD], "env": { "THE_PASSWORD": PASSWORD } },
        "steals": entry(json!({ "env": { "X": "${secret:NOTES_TOKEN}" } })),
            }),
        ),
    );
    program
}

/// What files of these directories have in them, but for the values of secrets.
fn texts(program: &Program, directories: &[&str]) -> String {
    let mut all = String::new();
    let mut directories: Vec<PathBuf> = directories.iter().map(|directory| program.path(directory)).collect();
    while let Some(directory) = directories.pop() {
        let mut entries: Vec<_> = fs::read_dir(&directory).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.file_name() != "secrets" {
                directories.push(entry.path());
            } else if kind.is_file() {
                all += &String::from_utf8_lossy(&fs::read(entry.path()).unwrap());
            }
        }
    }
    all
}

fn has_secret(text: &str) -> bool {
    [TOKEN, PASSWORD, BEARER].iter().any(|secret| text.contains(secret))
}

/// Case 49, before a yes.
#[test]
fn what_seven_clients_have_is_shown_and_nothing_runs() {
    let program = home();
    let output = import(&program, &[]);
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    let shown = stdout(&output);
    for client in
        ["Claude Code, ", "Claude Desktop, ", "Codex, ", "VS Code, ", "Cursor, ", "Windsurf, ", "Gemini CLI, "]
    {
        assert!(shown.contains(client), "{client} is not in:\n{shown}");
    }
    for text in [
        "  scribe: /usr/bin/python3 ",
        "    variables: NOTES_TOKEN, LEVEL, MODE\n",
        "    headers: Authorization\n",
        "    `LEVEL` refers to `LEVEL`, which is not copied",
        "    left out: its argument 2 looks like a secret, and only variables can have one\n",
        "hint: `npm install --prefix DIR @scope/server-notes@1.2.3` installs it",
        "    left out: it is disabled in Codex\n",
        "    left out: it runs in a container",
        "    left out: its argument 1 refers to `${workspaceFolder}`",
        "    left out: its `url` has what looks like a secret in it",
        "    unknown keys: odd_key\n",
        "    `trust` = true is not taken over",
        "    left out: its entry has `${secret:` in it",
        "    left out: the value of `THE_PASSWORD` stands in another place of its entry, too\n",
        "\n[upstream.scribe]\n",
        "variables.NOTES_TOKEN = \"${secret:NOTES_TOKEN}\"\n",
        "`NOTES_TOKEN` would be kept as a secret, with its value of that file, for a host that `--host` names.\n",
        "`tools` would name all tools but echo.\n",
    ] {
        assert!(shown.contains(text), "{text:?} is not in:\n{shown}");
    }
    assert!(!has_secret(&shown) && !has_secret(&stderr(&output)), "{shown}");
    assert!(stderr(&output).contains("repeat the command with `--yes`"), "{}", stderr(&output));
    assert!(!program.path("work/marker").exists() && !program.path("state/toolcrib/upstream").exists());
    assert!(!program.path(SETTINGS).exists() && !program.path("config/toolcrib/secrets").exists());
}

#[test]
fn sections_say_what_entries_say() {
    let program = home();
    let json = planned(&program, &[]);
    assert!(!has_secret(&json.to_string()), "{json}");
    let scribe = of(&json, "scribe");
    assert_eq!(
        scribe["section"]["variables"],
        json!({ "MODE": "quiet", "NOTES_TOKEN": "${secret:NOTES_TOKEN}" }),
        "{scribe}"
    );
    assert_eq!(scribe["section"]["read"], json!([server().parent().unwrap()]));
    assert_eq!((&of(&json, "of_project")["state"], &scribe["written"]), (&"not asked".into(), &false.into()));
    let jotter = &of(&json, "jotter")["section"];
    assert_eq!((&jotter["tools"], &jotter["timeout_ms"]), (&json!(["echo", "add"]), &5000.into()), "{jotter}");
    let remote = of(&json, "remote");
    assert_eq!(remote["section"]["url"], "https://mcp.example.com/mcp");
    assert_eq!(remote["section"]["headers"], json!({ "authorization": "Bearer ${secret:REMOTE_AUTHORIZATION}" }));
    assert_eq!(remote["secrets"], json!([{ "name": "REMOTE_AUTHORIZATION", "hosts": ["mcp.example.com"] }]));
    let bridge = &of(&json, "bridge")["section"];
    assert_eq!(bridge["url"], "https://b.example.com/sse");
    assert_eq!(bridge["headers"]["authorization"], "Bearer ${secret:BRIDGE_AUTHORIZATION}");
    assert_eq!(of(&json, "denies")["denied"], json!(["echo"]));
    // What nobody has a value for.
    for (name, secret) in [("asks", "DB"), ("trusted", "THE_KEY")] {
        let left = of(&json, name);
        assert_eq!(left["state"], "left out", "{left}");
        assert!(
            left["hint"].as_str().unwrap().contains(&format!("toolcrib secret set {secret} --host HOST")),
            "{left}"
        );
    }
}

/// Case 49, after a yes.
#[test]
fn a_yes_takes_servers_over_without_their_secrets_and_only_once() {
    let program = home();
    let names = ["scribe", "jotter", "denies", "of_project"];
    let json = json_of(&import(&program, &[&names[..], &["--host", "api.example.com", "--yes", "--json"]].concat()));
    for name in names {
        assert_eq!(
            (&of(&json, name)["state"], &of(&json, name)["written"]),
            (&"written".into(), &true.into()),
            "{json}"
        );
    }
    let settings = fs::read_to_string(program.path(SETTINGS)).unwrap();
    for text in [
        "[secret.NOTES_TOKEN]\n",
        "hosts = [\"api.example.com\"]\n",
        "variables.NOTES_TOKEN = \"${secret:NOTES_TOKEN}\"\n",
        "tools = [\"add\", \"read_note\"]\n",
        "tools = [\"echo\", \"add\"]\n",
    ] {
        assert!(settings.contains(text), "{text:?} is not in:\n{settings}");
    }
    assert!(!has_secret(&texts(&program, &["config/toolcrib", "state/toolcrib/upstream"])), "{settings}");
    let trail = fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap();
    assert!(trail.contains("set secret NOTES_TOKEN") && trail.contains("accepted upstream scribe "), "{trail}");
    assert!(!has_secret(&trail) && !has_secret(&json.to_string()), "{json}");
    let kept = program.path("config/toolcrib/secrets/NOTES_TOKEN");
    assert_eq!(fs::read_to_string(&kept).unwrap(), TOKEN);
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let (exit, envelope) = program.call(&["--yes", "scribe__echo", "text=hello"]);
    assert_eq!((exit, &envelope["result"]), (0, &"hello".into()), "{envelope}");
    assert_ne!(program.call(&["--yes", "denies__echo", "text=hello"]).0, 0);
    let before = texts(&program, &["config/toolcrib"]);
    let json = json_of(&import(&program, &[&names[..], &["--host", "api.example.com", "--yes", "--json"]].concat()));
    for name in names {
        assert_eq!(of(&json, name)["state"], "there already", "{json}");
    }
    assert_eq!(fs::read_to_string(program.path(SETTINGS)).unwrap(), settings);
    assert_eq!(texts(&program, &["config/toolcrib"]), before);
    // Another server of that name stays as it is.
    program.write(
        "work/other.json",
        servers("mcpServers", json!({ "scribe": { "command": "/usr/bin/python3", "args": ["other"] } })),
    );
    let json = json_of(&import(&program, &["--from", "cursor", "--file", "other.json", "--yes", "--json"]));
    assert!(of(&json, "scribe")["problem"].as_str().unwrap().contains("have another server `scribe`"), "{json}");
    assert_eq!(fs::read_to_string(program.path(SETTINGS)).unwrap(), settings);
}

#[test]
fn what_does_not_start_is_not_written() {
    let program = home();
    let output = import(&program, &["touches", "--yes"]);
    assert_eq!(code(&output), 10, "{}", stderr(&output));
    assert!(stderr(&output).contains("`toolcrib upstream add touches -- "), "{}", stderr(&output));
    assert!(!program.path(SETTINGS).exists() && !program.path("work/marker").exists());
    // Its secrets have to be for somebody.
    let output = import(&program, &["scribe", "--yes"]);
    assert_eq!(code(&output), 10, "{}", stderr(&output));
    assert!(stderr(&output).contains("`toolcrib upstream import scribe --host HOST`"), "{}", stderr(&output));
    assert!(!program.path(SETTINGS).exists() && !program.path("config/toolcrib/secrets").exists());
}

#[test]
fn a_person_at_the_terminal_is_asked_for_each() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for (answer, exit) in [("n", 5), ("y", 0)] {
        let terminal = Terminal::idle(home());
        terminal.run("$toolcrib upstream import scribe");
        terminal.shows("Which host may `NOTES_TOKEN` go to, as `scribe` needs it? >");
        terminal.press(&["api.example.com", "Enter"]);
        terminal.shows("Start `scribe` in a cell, and show what it offers? [y]es, [N]o >");
        assert!(
            !terminal.program.path(SETTINGS).exists() && !terminal.program.path("state/toolcrib/upstream").exists()
        );
        terminal.press(&["y", "Enter"]);
        terminal.shows("Accept the server `scribe`? [y]es, [N]o >");
        terminal.press(&[answer, "Enter"]);
        assert_eq!(terminal.ended(), exit, "{}", terminal.screen());
        let settings = fs::read_to_string(terminal.program.path(SETTINGS)).unwrap_or_default();
        assert_eq!(settings.contains("[upstream.scribe]"), answer == "y", "{settings}");
        assert_eq!(terminal.program.path("config/toolcrib/secrets/NOTES_TOKEN").exists(), answer == "y");
        assert!(!has_secret(&terminal.history()) && !has_secret(&settings));
    }
}

#[test]
fn a_broken_file_is_named_and_the_others_are_read() {
    let program = Program::new();
    program.write(
        "home/.cursor/mcp.json",
        format!("{{\n  \"mcpServers\": {{\n    \"a\": {{ \"env\": {{ \"T\": \"{TOKEN}\" }} oops }}\n}}}}"),
    );
    program.write(
        "home/.codex/config.toml",
        format!("[mcp_servers.a]\ncommand = \"x\"\nenv = {{ T = \"{TOKEN}\" oops }}\n"),
    );
    program.write("home/.gemini/settings.json", servers("mcpServers", json!([])));
    program.write("config/Claude/claude_desktop_config.json", vec![b' '; (4 << 20) + 1]);
    program.write(
        "work/.mcp.json",
        servers("mcpServers", json!({ "good": entry(json!({})), "odd": { "command": 7 }, "text": "x" })),
    );
    let json = planned(&program, &[]);
    let unread = json["unread"].to_string();
    for text in ["mcp.json`, line 3: ", "config.toml`, line 3: ", "`mcpServers` is not a table", "is longer than 4 MiB"]
    {
        assert!(unread.contains(text), "{text:?} is not in: {unread}");
    }
    assert!(!has_secret(&json.to_string()), "{json}");
    assert!(of(&json, "good")["section"].is_object(), "{json}");
    assert_eq!(of(&json, "odd")["problem"], "its `command` has a type that is not known");
    assert_eq!(of(&json, "text")["problem"], "its entry is not a table");
    let output = import(&program, &["--from", "cursor"]);
    assert!(code(&output) == 2 && !has_secret(&stderr(&output)), "{}", stderr(&output));
    assert!(stderr(&output).contains("mcp.json`, line 3: "), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_asked_for_says_why() {
    let program = Program::new();
    program.write("work/some.json", servers("mcpServers", json!({})));
    for (arguments, said) in [
        (&["no-such"][..], "no client has a server `no-such`"),
        (&["--from", "emacs"], "possible values: claude-code, claude-desktop, codex, vscode"),
        (&["--file", "some.json"], "--from"),
        (&["--file", "some.json", "--from", "cursor", "--from", "codex"], "give `--from` once"),
        (&["--host", "*.example.com"], "does not name one host"),
    ] {
        let output = import(&program, arguments);
        assert!(code(&output) == 2 && stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
    let output = import(&program, &["--from", "cursor", "--file", "missing.json"]);
    assert!(code(&output) == 10 && stderr(&output).contains("there is no such file"), "{}", stderr(&output));
    let told = succeeded(&import(&program, &["--from", "cursor", "--file", "some.json"]));
    assert_eq!(told, "no servers were found in the settings of other clients\n");
}

#[test]
fn an_installed_package_is_started_by_its_own_program() {
    let program = Program::new();
    program.write(
        "tools/node_modules/@scope/server-notes/package.json",
        r#"{"version":"1.2.3","bin":{"scribe":"./dist/index.js"}}"#,
    );
    program.write("tools/node_modules/@scope/escapes/package.json", r#"{"version":"1.0.0","bin":"../../x.js"}"#);
    for script in ["mcp-server-git", "pinned", "other-version"] {
        program.write(&format!("venv/bin/{script}"), "#!/usr/bin/python3\n");
    }
    let site = "venv/lib/python3.12/site-packages";
    program.write(&format!("{site}/Some_Server-2.1.0+local.dist-info/METADATA"), "");
    program.write(&format!("{site}/other_version-1.20.dist-info/METADATA"), "");
    program.write(
        "work/.mcp.json",
        servers(
            "mcpServers",
            json!({
                "scribe": { "command": "npx", "args": ["-y", "@scope/server-notes", "--all"] },
                "older": { "command": "npx", "args": ["-y", "@scope/server-notes@1.0.0"] },
                "escapes": { "command": "npx", "args": ["-y", "@scope/escapes"] },
                "git": { "command": "uvx", "args": ["mcp-server-git", "--repository", program.path("home")] },
                "absent": { "command": "uvx", "args": ["some-server==2.0"] },
                "pinned": { "command": "uvx", "args": ["--from", "some.server==2.1", "pinned"] },
                "other": { "command": "uvx", "args": ["other-version==1.2"] },
                // Nothing says which version is there.
                "unknown": { "command": "uvx", "args": ["mcp-server-git==1.0"] },
            }),
        ),
    );
    let (tools, venv) = (program.path("tools").display().to_string(), program.path("venv").display().to_string());
    let json = planned(&program, &["--installed", &tools, "--installed", &venv]);
    let git = &of(&json, "git")["section"];
    let script = program.path("venv/bin/mcp-server-git");
    assert_eq!(git["command"], json!([script, "--repository", program.path("home")]), "{json}");
    assert_eq!((&git["read"], &git["write"]), (&json!([venv]), &json!([program.path("home")])));
    let problem = |name: &str| of(&json, name)["problem"].as_str().unwrap_or_default();
    assert!(problem("older").contains("is of version `1.2.3`, and the command asks for `1.0.0`"), "{json}");
    let other = program.path(&format!("{site}/other_version-1.20.dist-info")).display().to_string();
    assert_eq!(problem("other"), format!("`{other}` is of version `1.20`, and the command asks for `1.2`"));
    for name in ["pinned", "unknown"] {
        assert!(of(&json, name)["section"].is_object(), "{json}");
    }
    assert!(problem("escapes").contains("names a program outside of its directory"), "{json}");
    let hint = of(&json, "absent")["hint"].as_str().unwrap();
    assert!(hint.contains("`python3 -m venv DIR && DIR/bin/pip install some-server==2.0`"), "{hint}");
    // Where there is no Node, it is not found.
    let scribe = of(&json, "scribe");
    let entry = program.path("tools/node_modules/@scope/server-notes/dist/index.js").display().to_string();
    match scribe["section"]["command"].as_array() {
        Some(command) => assert_eq!(
            (&command[1], &command[2], &scribe["section"]["read"]),
            (&entry.into(), &"--all".into(), &json!([tools]))
        ),
        None => assert!(problem("scribe").contains("there is no program `node`"), "{scribe}"),
    }
}

#[test]
fn what_is_switched_off_there_is_taken_over_only_by_its_name() {
    let program = Program::new();
    let here = program.path("work").canonicalize().unwrap().display().to_string();
    let names = ["shared", "by_project", "by_person", "by_user", "by_state"];
    let entries: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), entry(json!({ "env": { "MODE": name } })))).collect();
    program.write("work/.mcp.json", servers("mcpServers", entries.into()));
    let refused = |names: Value| json!({ "disabledMcpjsonServers": names });
    program.write("work/.claude/settings.json", refused(json!(["by_project", 7, "no_such"])).to_string());
    program.write("work/.claude/settings.local.json", refused(json!(["by_person"])).to_string());
    program.write("home/.claude/settings.json", refused(json!(["by_user"])).to_string());
    program.write(
        "home/.claude.json",
        json!({
            "mcpServers": { "own": entry(json!({})) },
            // What it says of the file of a project says nothing of this one.
            "projects": { here: refused(json!(["by_state", "own"])), "/elsewhere": refused(json!(["shared"])) },
        })
        .to_string(),
    );
    program.write("home/.cursor/mcp.json", servers("mcpServers", json!({ "off": entry(json!({ "disabled": true })) })));
    let json = planned(&program, &[]);
    for name in &names[1..] {
        let left = of(&json, name);
        assert_eq!((&left["state"], &left["problem"]), (&"left out".into(), &"it is disabled in Claude Code".into()));
        assert!(left["hint"].as_str().unwrap().contains("give its name"), "{left}");
    }
    assert_eq!(of(&json, "off")["problem"], "it is disabled in Cursor");
    for name in ["shared", "own"] {
        assert_eq!(of(&json, name)["state"], "not asked", "{json}");
    }
    let json = planned(&program, &["by_person", "off"]);
    for name in ["by_person", "off"] {
        assert_eq!(of(&json, name)["state"], "not asked", "{json}");
    }
    // The servers of a client that reads the same file.
    let json = planned(&program, &["--from", "vscode"]);
    assert_eq!(of(&json, "by_project")["state"], "not asked", "{json}");
    program.write("home/.claude.json", "{ oops");
    let json = planned(&program, &[]);
    assert_eq!(json["unread"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(of(&json, "by_user")["state"], "left out", "{json}");
}

#[test]
fn codex_is_read_where_its_variable_says() {
    let program = Program::new();
    let text = |name: &str| format!("[mcp_servers.{name}]\ncommand = \"/usr/bin/python3\"\nargs = [{:?}]\n", server());
    program.write("home/.codex/config.toml", text("usual"));
    program.write("elsewhere/config.toml", text("there"));
    let elsewhere = program.path("elsewhere").display().to_string();
    for (set, name) in [(&*elsewhere, "there"), ("../elsewhere", "there"), ("", "usual"), ("/no/such/place", "")] {
        let mut command = program.command(&["upstream", "import", "--from", "codex", "--json"]);
        let output = command.env("CODEX_HOME", set).output().unwrap();
        let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let names: Vec<&str> =
            json["servers"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, Vec::from_iter(Some(name).filter(|name| !name.is_empty())), "{set}: {json}");
    }
}

#[test]
fn a_file_of_a_project_gets_no_secret_by_its_name_whatever_a_variable_calls_it() {
    let program = Program::new();
    succeeded(&program.run_with(&["secret", "set", "API_TOKEN", "--host", "api.example.com"], PASSWORD));
    let text = format!(
        "[mcp_servers.asks]\ncommand = \"/usr/bin/python3\"\nargs = [{:?}]\nenv_vars = [\"API_TOKEN\"]\n",
        server()
    );
    program.write("home/.codex/config.toml", &text);
    program.write("work/.codex/config.toml", &text);
    let [own, of_project] = ["home/.codex", "work/.codex"].map(|path| program.path(path).display().to_string());
    for (set, is_own) in [(own, true), (of_project, false), (".codex".to_owned(), false)] {
        let mut command = program.command(&["upstream", "import", "--from", "codex", "--json"]);
        let output = command.env("CODEX_HOME", &set).output().unwrap();
        let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let servers = json["servers"].as_array().unwrap();
        let states: BTreeSet<&str> = servers.iter().filter_map(|one| one["state"].as_str()).collect();
        let expected: &[&str] = if is_own { &["left out", "not asked"] } else { &["left out"] };
        assert_eq!(states, expected.iter().copied().collect(), "{set}: {json}");
        assert!(json.to_string().contains("a file of a project asks for your secret `API_TOKEN`"), "{json}");
    }
}

#[test]
fn one_entry_is_left_and_the_file_is_kept_as_it_was() {
    let program = home();
    let (toml, json) = (program.path("home/.codex/config.toml"), program.path("home/.claude.json"));
    let before = [&toml, &json].map(|file| fs::read_to_string(file).unwrap());
    fs::set_permissions(&json, fs::Permissions::from_mode(0o640)).unwrap();
    program.write("home/.claude.json.toolcrib-backup", "older");
    let arguments = ["jotter", "scribe", "of_project", "--host", "api.example.com", "--yes", "--rewrite"];
    let told = succeeded(&import(&program, &arguments));
    assert!(told.contains("config.toml has one entry now") && !has_secret(&told), "{told}");
    let after = fs::read_to_string(&toml).unwrap();
    assert!(after.starts_with("# Mine.\nmodel = \"x\"\n") && after.contains("[mcp_servers.off]"), "{after}");
    assert!(after.contains("[mcp_servers.toolcrib]\n") && !after.contains("jotter"), "{after}");
    let after: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(after["numStartups"], 7);
    assert_eq!(after["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["toolcrib"]);
    assert_eq!(after["mcpServers"]["toolcrib"]["args"], json!(["serve"]));
    assert!(Path::new(after["mcpServers"]["toolcrib"]["command"].as_str().unwrap()).is_file());
    let here = program.path("work").canonicalize().unwrap().display().to_string();
    assert_eq!(after["projects"][here.as_str()]["mcpServers"], json!({}));
    assert_eq!(fs::read_to_string(program.path("home/.codex/config.toml.toolcrib-backup")).unwrap(), before[0]);
    assert_eq!(fs::read_to_string(program.path("home/.claude.json.toolcrib-backup")).unwrap(), "older");
    let kept = program.path("home/.claude.json.toolcrib-backup-2");
    assert_eq!(fs::read_to_string(&kept).unwrap(), before[1]);
    for file in [&json, &kept] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
    }
    // Files that nothing was taken over from stay.
    assert!(!program.path("home/.cursor/mcp.json.toolcrib-backup").exists());
}

/// Plugins that come with Toolcrib have names that servers in use have, too.
#[test]
fn a_server_with_the_name_of_a_plugin_gets_another() {
    let program = Program::new();
    program.write("home/.cursor/mcp.json", servers("mcpServers", json!({ "time": entry(json!({})) })));
    let told = succeeded(&import(&program, &["--yes"]));
    assert!(told.contains("a plugin has its name, so it is called `mcp-time` here"), "{told}");
    let (exit, envelope) = program.call(&["--yes", "mcp-time__echo", "text=hello"]);
    assert_eq!((exit, &envelope["result"]), (0, &"hello".into()), "{envelope}");
}

#[test]
fn comments_of_a_file_stay() {
    let program = Program::new();
    let before = format!("{{\n  // Mine.\n  \"servers\": {{ \"jotter\": {} }},\n}}\n", entry(json!({})));
    program.write("work/.vscode/mcp.json", &before);
    succeeded(&import(&program, &["--yes", "--rewrite"]));
    let after = fs::read_to_string(program.path("work/.vscode/mcp.json")).unwrap();
    assert!(after.starts_with("{\n  // Mine.\n  \"servers\": {\n") && after.ends_with("  },\n}\n"), "{after}");
    assert!(after.contains("\"toolcrib\"") && !after.contains("jotter"), "{after}");
    assert_eq!(fs::read_to_string(program.path("work/.vscode/mcp.json.toolcrib-backup")).unwrap(), before);
}

/// A client's default and the text behind it can make such words together.
#[test]
fn pieces_of_a_text_do_not_name_a_secret_of_the_settings_together() {
    let program = Program::new();
    let url = "https://mcp.example.com/mcp";
    let mut entries = serde_json::Map::new();
    let pieces = ["${NOT_SET:-$}{secret:KEPT}", "${NOT_SET:-${}secret:KEPT}", "a ${NOT_SET:-${secret}:KEPT} b"];
    for (number, text) in pieces.iter().enumerate() {
        entries.insert(format!("variable{number}"), entry(json!({ "env": { "X": text } })));
        entries.insert(format!("header{number}"), json!({ "type": "http", "url": url, "headers": { "X-Note": text } }));
    }
    let bridge = ["mcp-remote", url, "--header", "X-Note: ${D}{secret:KEPT}"];
    entries.insert("bridge".into(), json!({ "command": "npx", "args": bridge, "env": { "D": "$" } }));
    succeeded(&program.run_with(&["secret", "set", "KEPT", "--host", "mcp.example.com"], PASSWORD));
    let before = texts(&program, &["config/toolcrib"]);
    // Of a project, and of the user.
    for file in ["work/.mcp.json", "home/.claude.json"] {
        program.write(file, servers("mcpServers", Value::from(entries.clone())));
        let json = planned(&program, &["--host", "mcp.example.com"]);
        for name in entries.keys() {
            let server = of(&json, name);
            assert_eq!(server["problem"], "its entry would get your secret `KEPT` by its name", "{file}: {server}");
            assert_eq!((&server["state"], &server["section"]), (&"left out".into(), &Value::Null), "{file}: {server}");
        }
        succeeded(&import(&program, &["--host", "mcp.example.com", "--yes"]));
        assert_eq!(texts(&program, &["config/toolcrib"]), before, "{file}");
        fs::remove_file(program.path(file)).unwrap();
    }
}
