//! A program of somebody else's, as it was published, compiled to a component: the same results as on this machine, in the sandbox.
//!
//! It is comrak, which makes HTML of Markdown. `tests/run` installs it.

use super::installed;
use std::fs;
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::{Program, skip};

const MARKDOWN: &str = "# Notes\n\n| a | b |\n|---|---|\n| 1 | ~~2~~ |\n";

#[test]
fn comrak() {
    let Some(file) = installed().map(|builders| builders.join("wasi/bin/comrak.wasm")).filter(|file| file.exists())
    else {
        skip!("comrak is not installed");
    };
    let program = Program::new();
    succeeded(&program.run(&["plugin", "add", &file.display().to_string()]));
    let call = |arguments: &[&str], stdin: &str| {
        let arguments = serde_json::json!({ "args": arguments, "stdin": stdin }).to_string();
        program.call(&["comrak", &arguments]).1
    };
    let html = "<h1>Notes</h1>\n<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n\
                <td><del>2</del></td>\n</tr>\n</tbody>\n</table>\n";
    let made = call(&["--gfm"], MARKDOWN);
    assert_eq!(made["result"]["stdout"], html, "{made}");

    // Files are those of its grant, and no others.
    fs::create_dir(program.path("work/notes")).unwrap();
    program.write("work/notes/a.md", MARKDOWN);
    program.write("work/b.md", MARKDOWN);
    let refused = call(&["--gfm", "notes/a.md"], "");
    assert_eq!(refused["error"]["kind"], "execution_failed", "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("`comrak` needs `files`"), "{refused}");
    succeeded(&program.run(&["plugin", "allow", "comrak", "--read", "notes", "--write", "notes"]));
    assert_eq!(call(&["--gfm", "notes/a.md"], "")["result"]["stdout"], html);
    assert_eq!(call(&["--gfm", "b.md"], "")["error"]["data"]["exit_code"], 1);
    assert_eq!(call(&["--gfm", "notes/a.md", "-o", "notes/a.html"], "")["result"]["exit_code"], 0);
    assert_eq!(fs::read_to_string(program.path("work/notes/a.html")).unwrap(), html);
    assert_eq!(call(&["--gfm", "notes/a.md", "-o", "b.html"], "")["error"]["kind"], "execution_failed");
    assert!(!program.path("work/b.html").exists());
}
