//! The names that other hosts give to tools like ours. A model that knows those hosts calls our tools by them.
//!
//! From the public documentation of Claude Code, Codex, Cursor, Gemini CLI, VS Code, Cline, and of the MCP servers for files.

use super::names::nearest;

/// In small letters, without `_` and `-`.
const NAMES: [(&str, &[&str]); 8] = [
    (
        "run_shell",
        &[
            "bash",
            "shell",
            "localshell",
            "execcommand",
            "executecommand",
            "runcommand",
            "runshellcommand",
            "runterminalcmd",
            "runinterminal",
            "terminal",
        ],
    ),
    ("read_file", &["read", "view", "viewfile", "readtextfile", "openfile", "cat"]),
    ("write_file", &["write", "writetofile", "createfile", "create", "savefile"]),
    (
        "file_edit",
        &[
            "edit",
            "multiedit",
            "editfile",
            "applypatch",
            "replace",
            "replaceinfile",
            "strreplace",
            "strreplaceeditor",
            "strreplacebasededittool",
            "searchreplace",
        ],
    ),
    ("file_list", &["ls", "list", "listdir", "listdirectory", "listfiles"]),
    ("file_search", &["grep", "grepsearch", "ripgrep", "rg", "searchfilecontent", "searchtext", "searchfiles"]),
    ("file_find", &["glob", "find", "findfiles", "filesearch"]),
    ("fetch_url", &["webfetch", "fetch", "fetchwebpage", "readurl"]),
];

/// Which of these tools was probably meant: the one that another host calls so, else the nearest name.
pub fn meant<'n>(called: &str, tools: impl IntoIterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let plain: String = called.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
    let known = NAMES.iter().find(|(_, names)| names.contains(&&*plain));
    let here = known.and_then(|(tool, _)| tools.clone().into_iter().find(|name| name == tool));
    here.or_else(|| nearest(called, tools))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_hosts_lead_to_ours() {
        let tools = ["run_shell", "read_file", "file_edit", "time"];
        for (called, expected) in [
            ("Bash", Some("run_shell")),
            ("run_terminal_cmd", Some("run_shell")),
            ("str_replace_based_edit_tool", Some("file_edit")),
            ("MultiEdit", Some("file_edit")),
            ("read-file", Some("read_file")),
            ("tmie", Some("time")),
            // There is no `file_search` in the list above.
            ("Grep", None),
            ("nothing of that kind", None),
        ] {
            assert_eq!(meant(called, tools), expected, "{called}");
        }
    }
}
