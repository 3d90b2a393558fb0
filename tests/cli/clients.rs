//! `toolcrib setup`: the files of clients get what is missing and nothing else, and get back what they had.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded};
use toolcrib_tests::{Program, Terminal, skip};

/// A client: what is typed, and its files as they are before; those without a text are missing.
struct Case {
    arguments: &'static [&'static str],
    files: &'static [(&'static str, Option<&'static str>)],
    /// What the files have after it.
    says: &'static [&'static str],
    /// Lines that get another value.
    changed: &'static [&'static str],
}

const CASES: [Case; 9] = [
    Case {
        arguments: &["claude-code"],
        files: &[
            (
                "home/.claude.json",
                Some(
                    "{\n  \"numStartups\": 7,\n  \"cost\": 1.10,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
                ),
            ),
            (
                "home/.claude/settings.json",
                Some(
                    "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"deny\": [\n      \"Bash\",\n      \"Read(./.env)\"\n    ]\n  }\n}\n",
                ),
            ),
        ],
        says: &["\"toolcrib\": {", "\"args\": [\"serve\"]", "\"WebFetch\"", "\"NotebookEdit\"", "\"mcp__toolcrib\""],
        changed: &[],
    },
    Case {
        arguments: &["claude-code", "--project"],
        files: &[("work/.mcp.json", None), ("work/.claude/settings.json", Some(""))],
        says: &["\"mcpServers\": {", "\"Write\""],
        changed: &[],
    },
    Case {
        arguments: &["codex"],
        files: &[(
            "home/.codex/config.toml",
            Some(
                "# Mine.\r\nmodel = \"x\"  # y\r\nsandbox_mode = \"danger-full-access\" # for now\r\n\r\n[mcp_servers.other]\r\ncommand = \"a\"\r\n\r\n# The end.\r\n",
            ),
        )],
        says: &[
            "[mcp_servers.toolcrib]\r\n",
            "default_tools_approval_mode = \"approve\"\r\n",
            "shell_tool = false\r\n",
            "sandbox_mode = \"read-only\" # for now\r\n",
            "web_search = \"disabled\"\r\n",
        ],
        changed: &["sandbox_mode = \"danger-full-access\" # for now"],
    },
    Case {
        arguments: &["vscode"],
        files: &[(
            "work/.vscode/mcp.json",
            Some(
                "{\r\n  // Mine.\r\n  \"servers\": {\r\n    \"other\": { \"command\": \"x\" }, // asks\r\n  },\r\n}\r\n",
            ),
        )],
        says: &["\"type\": \"stdio\"", "\"--directory\", \"${workspaceFolder}\""],
        changed: &[],
    },
    Case {
        arguments: &["cursor"],
        files: &[
            (
                "work/.cursor/mcp.json",
                Some("{\n\t\"mcpServers\": {\n\t\t\"other\": {\n\t\t\t\"url\": \"https://x.example\"\n\t\t}\n\t}\n}\n"),
            ),
            ("work/.cursor/permissions.json", None),
            (
                "work/.cursor/cli.json",
                Some("{\n  \"permissions\": {\n    \"allow\": [\"Shell(ls)\"],\n    \"deny\": []\n  }\n}\n"),
            ),
        ],
        says: &["\t\t\"toolcrib\": {", "\"toolcrib:*\"", "\"Shell(*)\"", "\"Mcp(toolcrib:*)\""],
        changed: &["\"allow\": [\"Shell(ls)\"]", "\"deny\": []"],
    },
    Case {
        arguments: &["gemini"],
        files: &[(
            "home/.gemini/settings.json",
            Some("{\n  /* Mine. */\n  \"tools\": { \"exclude\": [\"glob\"] },\n  \"ui\": { \"theme\": \"x\" }\n}"),
        )],
        says: &["\"trust\": true", "\"run_shell_command\"", "\"ReadFileTool\""],
        changed: &["\"tools\": { \"exclude\": [\"glob\"] }"],
    },
    Case {
        arguments: &["opencode"],
        files: &[(
            "config/opencode/opencode.jsonc",
            Some(
                "\u{feff}{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"permission\": {\n    \"*\": \"ask\", // all\n    \"bash\": { \"git *\": \"allow\" },\n  },\n}\n",
            ),
        )],
        says: &["\"type\": \"local\"", "\"edit\": \"deny\"", "\"toolcrib_*\": \"allow\"", "\"bash\": \"deny\""],
        changed: &["\"bash\": { \"git *\": \"allow\" }"],
    },
    Case {
        arguments: &["goose"],
        files: &[(
            "config/goose/config.yaml",
            Some(
                "# Mine.\nGOOSE_MODEL: x # the model\nextensions:\n  developer:\n    enabled: true # on\n    type: builtin\n    available_tools:\n    - shell\n\n  # keeps\n  memory:\n    enabled: true\nGOOSE_MODE: auto\n",
            ),
        )],
        says: &[
            "  toolcrib:\n    enabled: true\n    type: stdio\n",
            "    args: [serve]\n",
            "    enabled: false # on\n",
        ],
        changed: &["enabled: true # on"],
    },
    Case {
        arguments: &["zed"],
        files: &[(
            "config/zed/settings.json",
            Some(
                "// Zed settings\n//\n{\n  \"ui_font_size\": 16, // large\n  \"agent\": {\n    \"tool_permissions\": {\n      \"tools\": {\n        \"terminal\": {\n          \"always_allow\": [{ \"pattern\": \"^cargo \" }],\n        },\n      },\n    },\n  },\n}\n",
            ),
        )],
        says: &["\"context_servers\": {", "\"always_deny\": [", "\"mcp:toolcrib:run_shell\": {"],
        changed: &[],
    },
];

impl Case {
    fn home(&self) -> Program {
        let program = Program::new().without_settings();
        for (file, text) in self.files {
            if let Some(text) = text {
                program.write(file, text);
            }
        }
        program
    }

    fn run(&self, program: &Program, more: &[&str]) -> Output {
        program.run(&[&["setup"], self.arguments, more].concat())
    }

    fn texts(&self, program: &Program) -> Vec<Option<String>> {
        self.files.iter().map(|(file, _)| fs::read_to_string(program.path(file)).ok()).collect()
    }

    fn before(&self) -> Vec<Option<String>> {
        self.files.iter().map(|(_, text)| text.map(str::to_owned)).collect()
    }
}

/// A line without what the next line may want of it.
fn bare(line: &str) -> String {
    let line = line.trim().trim_start_matches('\u{feff}');
    let (code, comment) = line.split_once(" //").or_else(|| line.split_once(" /*")).unwrap_or((line, ""));
    format!("{}{comment}", code.trim_end().trim_end_matches(','))
}

#[test]
fn each_client_is_set_up_once_and_gets_back_what_it_had() {
    for case in &CASES {
        let program = case.home();
        let output = case.run(&program, &["--yes"]);
        let shown = succeeded(&output);
        let after = case.texts(&program);
        let whole: String = after.iter().flatten().cloned().collect();
        for text in case.says {
            assert!(whole.contains(text), "{:?}: {text} is not in\n{whole}", case.arguments);
        }
        assert!(shown.contains("+++ ") && shown.contains("written: "), "{shown}");
        for ((file, before), after) in case.files.iter().zip(&after) {
            // What was there is there in the same order, comments too.
            let after = after.as_deref().unwrap_or_else(|| panic!("{file} is missing"));
            let mut lines = after.lines().map(bare);
            for line in before.unwrap_or_default().lines().map(bare).filter(|line| !line.is_empty()) {
                if !case.changed.contains(&line.as_str()) {
                    assert!(lines.any(|found| found == line), "{file}: `{line}` is not where it was in\n{after}");
                }
            }
            let kept = program.path(&format!("{file}.before-toolcrib"));
            assert_eq!(fs::read_to_string(kept).ok().as_deref(), *before, "{file}");
        }

        let again = succeeded(&case.run(&program, &["--yes"]));
        assert!(again.contains("nothing to change"), "{again}");
        assert_eq!(case.texts(&program), after, "{:?}", case.arguments);

        succeeded(&case.run(&program, &["--undo", "--yes"]));
        assert_eq!(case.texts(&program), case.before(), "{:?}", case.arguments);
        for (file, _) in case.files {
            assert!(!program.path(&format!("{file}.before-toolcrib")).exists());
        }
        assert!(succeeded(&case.run(&program, &["--undo", "--yes"])).contains("nothing to take back"));
    }
}

#[test]
fn nothing_is_written_without_a_yes() {
    for case in &CASES {
        let program = case.home();
        let output = case.run(&program, &[]);
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert!(stderr(&output).contains("repeat the command with `--yes`"), "{}", stderr(&output));
        assert!(stdout(&output).contains("+++ "), "{}", stdout(&output));
        assert_eq!(case.texts(&program), case.before());
        assert_eq!(code(&case.run(&program, &["--print"])), 0);
        assert_eq!(case.texts(&program), case.before());
    }
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    for (answer, exit) in [("n", 5), ("y", 0)] {
        let terminal = Terminal::idle(CASES[2].home());
        terminal.run("$toolcrib setup codex");
        terminal.shows("Write that? [y]es, [N]o >");
        assert_eq!(CASES[2].texts(&terminal.program), CASES[2].before());
        terminal.press(&[answer, "Enter"]);
        assert_eq!(terminal.ended(), exit, "{}", terminal.screen());
        assert_eq!(CASES[2].texts(&terminal.program) != CASES[2].before(), answer == "y");
    }
}

fn settings(program: &Program) -> Value {
    serde_json::from_str(&fs::read_to_string(program.path("home/.claude/settings.json")).unwrap()).unwrap()
}

#[test]
fn what_was_changed_since_stays_when_it_is_taken_back() {
    let case = &CASES[0];
    let program = case.home();
    succeeded(&case.run(&program, &["--yes"]));
    let mut since = settings(&program);
    since["permissions"]["deny"].as_array_mut().unwrap().push(json!("Agent"));
    since["theme"] = json!("dark");
    program.write("home/.claude/settings.json", since.to_string());
    let shown = succeeded(&case.run(&program, &["--undo", "--yes"]));
    assert!(shown.contains("was changed since"), "{shown}");
    assert_eq!(
        settings(&program),
        json!({ "model": "opus", "permissions": { "deny": ["Bash", "Read(./.env)", "Agent"] }, "theme": "dark" })
    );
    // The file as it was first is kept, and a further set-up does not touch it.
    let kept = program.path("home/.claude/settings.json.before-toolcrib");
    let first = fs::read_to_string(&kept).unwrap();
    assert_eq!(Some(first.as_str()), case.files[1].1);
    succeeded(&case.run(&program, &["--yes"]));
    assert_eq!(fs::read_to_string(&kept).unwrap(), first);
    assert!(program.path("home/.claude/settings.json.before-toolcrib-2").exists());
}

#[test]
fn own_tools_and_questions_stay_if_a_person_wants_that() {
    let case = &CASES[0];
    let program = case.home();
    succeeded(&case.run(&program, &["--yes", "--keep-own-tools", "--no-allow"]));
    assert_eq!(case.texts(&program)[1].as_deref(), case.files[1].1);
    assert!(case.texts(&program)[0].as_ref().unwrap().contains("\"toolcrib\""));
    // A later one adds the rest, and both are taken back at once.
    succeeded(&case.run(&program, &["--yes"]));
    assert!(settings(&program)["permissions"]["allow"] == json!(["mcp__toolcrib"]));
    succeeded(&case.run(&program, &["--undo", "--yes"]));
    assert_eq!(case.texts(&program), case.before());
}

#[test]
fn an_entry_that_is_there_keeps_its_options() {
    let program = Program::new().without_settings();
    let entry = json!({ "mcpServers": { "toolcrib": { "command": "/opt/toolcrib", "args": ["--yes", "serve"] } } });
    program.write("home/.claude.json", entry.to_string());
    succeeded(&program.run(&["setup", "claude", "--yes"]));
    assert_eq!(fs::read_to_string(program.path("home/.claude.json")).unwrap(), entry.to_string());
    program.write("home/.claude.json", r#"{"mcpServers":{"toolcrib":{"command":"/opt/other"}}}"#);
    let output = program.run(&["setup", "claude", "--yes"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("its server `toolcrib` is another program"), "{}", stderr(&output));
}

#[test]
fn a_link_stays_one_and_modes_stay() {
    let program = Program::new().without_settings();
    program.write("dotfiles/claude.json", "{}\n");
    fs::set_permissions(program.path("dotfiles/claude.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(program.path("home")).unwrap();
    std::os::unix::fs::symlink("../dotfiles/claude.json", program.path("home/.claude.json")).unwrap();
    succeeded(&program.run(&["setup", "claude-code", "--yes"]));
    assert!(program.path("home/.claude.json").is_symlink());
    let target = program.path("dotfiles/claude.json");
    assert!(fs::read_to_string(&target).unwrap().contains("toolcrib"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(program.path("dotfiles/claude.json.before-toolcrib").exists());
    succeeded(&program.run(&["setup", "claude-code", "--yes", "--undo"]));
    assert_eq!(fs::read_to_string(&target).unwrap(), "{}\n");
    assert!(program.path("home/.claude.json").is_symlink());
}

#[test]
fn a_file_that_cannot_be_changed_is_named_and_no_other_is_written() {
    for (text, why) in [
        ("{\n  \"a\": 1,\n  oops\n}\n", "settings.json`, line 3: "),
        ("{\"permissions\": []}", "`permissions` is not a table"),
        ("{\"permissions\": {\"deny\": \"Bash\"}}", "`permissions.deny` is not a list"),
        ("[]", "it is not a table"),
    ] {
        let program = Program::new().without_settings();
        program.write("home/.claude/settings.json", text);
        let output = program.run(&["setup", "claude-code", "--yes"]);
        assert_eq!(code(&output), 2, "{text}");
        assert!(stderr(&output).contains(why), "{text}: {}", stderr(&output));
        assert!(!program.path("home/.claude.json").exists());
        assert_eq!(fs::read_to_string(program.path("home/.claude/settings.json")).unwrap(), text);
    }
    let program = Program::new().without_settings();
    program.write("home/.claude.json", "{}");
    fs::set_permissions(program.path("home/.claude.json"), fs::Permissions::from_mode(0o444)).unwrap();
    let output = program.run(&["setup", "claude-code", "--yes"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("is read-only") && stderr(&output).contains("chmod u+w"), "{}", stderr(&output));
    let program = Program::new().without_settings();
    program.write("config/goose/config.yaml", "extensions: { a: { enabled: true } }\n");
    let output = program.run(&["setup", "goose", "--yes"]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    assert!(said.contains("`extensions` is not written as a block") && said.contains("write this by hand: "), "{said}");
}

#[test]
fn a_home_is_not_a_workspace() {
    let program = Program::new().without_settings();
    let home = program.path("home").display().to_string();
    fs::create_dir_all(&home).unwrap();
    for directory in [home.as_str(), "/"] {
        let output = program.run(&["setup", "codex", "--directory", directory]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("not a workspace"), "{}", stderr(&output));
        let output = program.run_with(&["serve", "--directory", directory], "");
        assert!(stderr(&output).contains("not a workspace"), "{}", stderr(&output));
    }
    let output = program.run_with(&["serve"], "");
    assert!(!stderr(&output).contains("not a workspace"), "{}", stderr(&output));
    let work = program.path("work").canonicalize().unwrap().display().to_string();
    succeeded(&program.run(&["setup", "codex", "--directory", ".", "--yes"]));
    let text = fs::read_to_string(program.path("home/.codex/config.toml")).unwrap();
    assert!(text.contains(&format!("cwd = \"{work}\"")), "{text}");
}

#[test]
fn clients_are_listed_with_what_would_change() {
    let program = CASES[0].home();
    let text = succeeded(&program.run(&["setup"]));
    assert!(text.contains("Claude Code: `toolcrib setup claude-code`"), "{text}");
    assert!(text.contains("own tools off (edit, read, shell, web)"), "{text}");
    assert!(!text.contains("Codex"), "{text}");
    assert_eq!(CASES[0].texts(&program), CASES[0].before());
    let none = succeeded(&Program::new().run(&["setup"]));
    assert!(none.starts_with("no client was found; these are known: claude-code, codex, "), "{none}");
}

#[test]
fn the_doctor_says_what_goes_past_toolcrib() {
    let case = &CASES[0];
    let program = case.home();
    assert!(!succeeded(&program.run(&["doctor"])).contains("Claude Code"));
    succeeded(&case.run(&program, &["--yes", "--keep-own-tools"]));
    let text = succeeded(&program.run(&["doctor"]));
    let found = "Claude Code: its own tools go past Toolcrib (edit, read, shell, web): `toolcrib setup claude-code` switches them off";
    assert!(text.contains(found), "{text}");
    succeeded(&case.run(&program, &["--yes"]));
    let text = succeeded(&program.run(&["doctor"]));
    assert!(text.contains("Claude Code: its own tools are off"), "{text}");
}

#[test]
fn the_page_has_a_row_for_each_client() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/docs/mcp.md");
    let page = fs::read_to_string(page).unwrap();
    for case in &CASES {
        let client = case.arguments[0];
        assert!(page.contains(&format!("\n| `{client}` |")), "{client}");
        succeeded(&Program::new().run(&["setup", client, "--print"]));
    }
    let output = Program::new().run(&["setup", "emacs"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("claude-code, codex, vscode, cursor, gemini, opencode, goose, zed"));
}
