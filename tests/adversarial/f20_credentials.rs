//! F-20: a tool reads credentials that no rule of the user names: logins of forges, clouds, agents and browsers, histories, `/etc/shadow`.
//! Outcome: `denied` for each place of the table, by its name, by a link and by a second name, whoever's home it is in.
//! Switched off: the table of credentials (`access/protected.rs`, `secret`): all of them were read and the tests failed.

use crate::exec::run;
use crate::files::{SECRET, root};
use file_access::CREDENTIALS;
use serde_json::{Value, json};
use std::path::Path;
use toolcrib_tests::{Preparation, Siege};

fn read(siege: &mut Siege, path: &str) -> Value {
    siege.call("read_file", json!({ "path": path }))
}

fn assert_closed(siege: &mut Siege, path: &str) {
    let answer = read(siege, path);
    assert!(answer["error"]["kind"] == "denied" && !answer.to_string().contains(SECRET), "{path}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("is closed to tools"), "{path}: {message}");
}

fn plant(file: &Path) {
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    std::fs::write(file, SECRET).expect("a file");
}

/// A row that is missing from the table is missing from the tests below, too.
#[test]
fn what_is_known_to_hold_credentials_is_in_the_table() {
    let mut siege = Preparation::new().begin();
    for path in [
        "~/.ssh/id_ed25519",
        "~/.aws/credentials",
        "~/.netrc",
        "~/.git-credentials",
        "~/.npmrc",
        "~/.pypirc",
        "~/.cargo/credentials.toml",
        "~/.config/gh/hosts.yml",
        "~/.config/gcloud/credentials.db",
        "~/.azure/msal_token_cache.json",
        "~/.kube/config",
        "~/.docker/config.json",
        "~/.vault-token",
        "~/.pgpass",
        "~/.gnupg/private-keys-v1.d/x.key",
        "~/.local/share/keyrings/login.keyring",
        "~/.mozilla/firefox/x.default/logins.json",
        "~/.config/google-chrome/Default/Cookies",
        "~/.claude/.credentials.json",
        "~/.codex/auth.json",
        "~/.bash_history",
        "/etc/shadow",
    ] {
        if let Some(below) = path.strip_prefix("~/") {
            plant(&siege.program.path("home").join(below));
        }
        assert_closed(&mut siege, path);
    }
    siege.lift();
}

#[test]
fn every_place_of_the_table_is_closed_as_a_file_and_as_a_directory() {
    let prepared = Preparation::new();
    let (files, directories) = (root(&prepared).join("home"), root(&prepared).join("config"));
    let paths = || CREDENTIALS.iter().flat_map(|class| class.paths.iter().copied());
    let at_home: Vec<&str> = paths().filter_map(|path| path.strip_prefix("~/")).collect();
    assert!(at_home.len() > 100, "{} places", at_home.len());
    // The canary of the tests is a file where a directory is to be.
    let _ = std::fs::remove_file(files.join(".netrc"));
    // One place may lie below another: first directories with a file, then what can still be a file.
    for place in &at_home {
        plant(&files.join(place).join("planted"));
    }
    let at_config: Vec<&str> = at_home.iter().filter_map(|path| path.strip_prefix(".config/")).collect();
    for place in &at_config {
        plant(&directories.join(place));
    }
    let mut siege = prepared.begin();
    for place in &at_home {
        assert_closed(&mut siege, &format!("~/{place}/planted"));
        assert_closed(&mut siege, &format!("~/{place}"));
    }
    for place in at_config {
        assert_closed(&mut siege, &directories.join(place).display().to_string());
    }
    for path in paths().filter(|path| path.starts_with('/')) {
        assert_closed(&mut siege, path);
        assert_closed(&mut siege, &format!("{path}/no-such-file"));
    }
    for path in ["/root/.netrc", "/home/no-such-user/.ssh/id", "/Users/no-such-user/.aws/credentials"] {
        assert_closed(&mut siege, path);
    }
    siege.lift();
}

#[test]
fn neither_a_link_nor_a_second_name_opens_them() {
    let mut siege = Preparation::new().set("confine.mode=off").begin();
    siege.program.write("home/.netrc", SECRET);
    siege.program.write("home/.config/gh/hosts.yml", SECRET);
    siege.program.write("home/notes", "harmless");
    let made = "ln -s ~/.netrc soft && ln ~/.netrc hard && ln -s ~/.config/gh tools && mv ~/.config/gh ~/moved && ln -s ~/moved ~/.config/gh";
    assert_eq!(run(&mut siege, made)["exit_code"], 0);
    for path in ["soft", "hard", "tools/hosts.yml", "~/moved/hosts.yml", "~/.config/gh/hosts.yml"] {
        let answer = read(&mut siege, path);
        assert!(answer["error"]["kind"] == "denied" && !answer.to_string().contains(SECRET), "{path}: {answer}");
    }
    assert_eq!(read(&mut siege, "~/notes")["result"], "harmless");
    siege.lift();
}

#[test]
fn a_list_of_readable_directories_binds_every_tool_and_opens_nothing() {
    let prepared = Preparation::new().guest("hostile").allowing("hostile");
    // A file may be listed as well: the one that a healthy host reads.
    let readable = ["home", "work/docs", "work/health.txt"].map(|name| root(&prepared).join(name));
    let mut siege = prepared.set(&format!("tools.files_read_paths={readable:?}")).begin();
    siege.program.write("work/docs/page", "page");
    siege.program.write("work/other", "other");
    siege.program.write("home/.netrc", SECRET);
    assert_eq!(read(&mut siege, "docs/page")["result"], "page");
    assert_eq!(crate::files::read(&mut siege, "docs/page"), "Ok(\"page\")");
    let answer = read(&mut siege, "other");
    assert_eq!(
        answer["error"]["message"],
        format!("`{}` is outside `tools.files_read_paths`", siege.program.path("work/other").display())
    );
    assert_eq!(crate::files::read(&mut siege, "other"), crate::files::DENIED);
    assert_closed(&mut siege, "~/.netrc");
    siege.lift();
}
