//! An agent that has the file tools and commands alone makes a change in a project of 500 files. What its model reads is counted.

use crate::rig::Home;
use serde_json::{Value, json};
use toolcrib_tests::mcp::{Client, Era};
use toolcrib_tests::shell::command;

const FILES: usize = 500;
/// The files that call what is to be renamed.
const CALLERS: [usize; 5] = [17, 140, 255, 301, 499];
/// Bytes of results that the model reads for the whole change. The five files alone have 2,200.
const MOST_READ: usize = 8_000;

/// The agent, and the bytes that its model has read.
struct Agent {
    client: Client,
    read: usize,
}

impl Agent {
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.client.call(tool, arguments);
        let text = |block: &Value| block["text"].as_str().unwrap_or_default().to_owned();
        let text: String = result["content"].as_array().expect("blocks").iter().map(text).collect();
        self.read += text.len();
        text
    }
}

fn path(number: usize) -> String {
    format!("src/part_{number:03}.py")
}

/// A project whose check says which file still calls what is to be renamed.
fn project(home: &Home) {
    for number in 0..FILES {
        let body = if CALLERS.contains(&number) { "old_area(width, height)" } else { "width * height" };
        let lines: String = (0..8).map(|line| format!("# part {number}, line {line}\n")).collect();
        let function = format!("def size_{number}(width, height):\n\tname = \"a\\n\"\n\treturn {body}\n");
        home.program.write(&format!("work/{}", path(number)), format!("{lines}{function}"));
    }
    home.program.write("work/check", "! grep -rn 'old_area' src\n");
    home.program.write("work/.ignore", "out/\n");
    home.program.write("work/out/part.py", "old_area(1, 2)\n");
}

#[test]
fn five_files_are_changed_checked_and_one_is_taken_back() {
    let home = Home::new().unasked().flags(&["--offer", "files"]);
    project(&home);
    let mut agent = Agent { client: home.serve(Era::Legacy), read: 0 };
    let list = agent.client.ask("tools/list", json!({}));
    let names = list["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].as_str().expect("a name"));
    for tool in ["file_find", "file_search", "read_file", "file_edit", "file_undo", "run_shell"] {
        assert!(names.clone().any(|name| name == tool), "{tool}");
    }

    let found = agent.call("file_find", json!({ "pattern": "part_30?.py" }));
    assert_eq!(found.lines().filter(|line| line.contains("src/part_30")).count(), 10, "{found}");
    let callers = agent.call("file_search", json!({ "pattern": r"old_area\(" }));
    for number in CALLERS {
        assert!(callers.contains(&path(number)), "{callers}");
    }
    assert!(!callers.contains("out/part.py"), "{callers}");
    for number in CALLERS {
        let text = agent.call("read_file", json!({ "path": path(number) }));
        // As it is: a backslash is one, a tab is a tab.
        assert!(text.contains("\tname = \"a\\n\"\n\treturn old_area(width, height)\n"), "{text}");
        let edit = json!({
            "path": path(number),
            "old_string": "\tname = \"a\\n\"\n\treturn old_area(width, height)",
            "new_string": "\treturn width * height",
        });
        let diff = agent.call("file_edit", edit);
        assert!(diff.contains("-\treturn old_area(width, height)\n+\treturn width * height\n"), "{diff}");
    }
    let passed = agent.call("run_shell", command("sh check"));
    assert!(passed.starts_with("[exit code 0"), "{passed}");
    let undone = agent.call("file_undo", json!({ "path": path(255) }));
    assert!(undone.ends_with("src/part_255.py is as it was before"), "{undone}");
    let failed = agent.call("run_shell", command("sh check"));
    assert!(failed.starts_with("[exit code 1") && failed.contains("part_255.py"), "{failed}");
    println!("a model reads {} bytes of results", agent.read);
    assert!(agent.read <= MOST_READ, "{} bytes", agent.read);
}
