//! `toolcrib plugin`: looking at components, and allowing one by its bytes.

use serde_json::{Value, json};
use std::fs;
use toolcrib_tests::outcome::{change, code, install, json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, guest};

const SETTINGS: &str = "config/toolcrib/toolcrib.toml";

fn settings(program: &Program) -> String {
    fs::read_to_string(program.path(SETTINGS)).unwrap()
}

/// Calls `word_count` on a file of two words in the working directory.
fn word_count(program: &Program, more: &[&str]) -> (i32, Value) {
    program.write("work/a.txt", "two words");
    program.call(&[more, &["word_count", "path=a.txt"]].concat())
}

#[test]
fn the_list_has_every_plugin_with_origin_and_state() {
    let program = Program::new().without_settings();
    let file = install(&program, "shell_echo");
    program.write("data/toolcrib/plugins/broken.wasm", b"\0asm\x01\0\0\0");
    let list = succeeded(&program.run(&["plugin", "list"]));
    let row = |name: &str| list.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {list}"));
    assert!(row("time").contains("built in") && row("time").contains("loaded"));
    assert!(["shell_echo", "shell", &file, "loaded"].iter().all(|text| row("shell_echo").contains(text)));
    assert!(row("broken.wasm").contains("refused: it is a core module"), "{list}");
}

#[test]
fn inspecting_shows_what_a_component_offers_and_asks_for_without_allowing_it() {
    let program = Program::new().without_settings();
    let file = guest("word_count").display().to_string();
    let seen = json_of(&program.run(&["plugin", "inspect", "--json", &file]));
    assert_eq!(
        (&seen["name"], &seen["tools"], &seen["capabilities"]),
        (&json!("word_count"), &json!(["word_count"]), &json!(["files"]))
    );
    assert_eq!(seen["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(seen["may"][0]["verdict"], "denied");
    assert!(!program.path(SETTINGS).exists());
}

#[test]
fn inspecting_what_is_no_component_says_why() {
    let program = Program::new().without_settings();
    program.write("work/broken.wasm", b"\0asm\x01\0\0\0");
    for (file, reason) in
        [("broken.wasm", "it is a core module"), ("missing.wasm", "No such file"), (".", "it is not a regular file")]
    {
        let output = program.run(&["plugin", "inspect", file]);
        assert_eq!((code(&output), stdout(&output)), (10, String::new()), "{file}");
        assert!(
            stderr(&output).starts_with(&format!("unavailable: `{file}` cannot be a plugin: {reason}")),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_plugin_that_was_allowed_can_be_called() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    let (denied, envelope) = word_count(&program, &[]);
    assert_eq!(
        (denied, envelope["error"]["hint"].clone()),
        (5, json!(format!("allow it: `toolcrib plugin allow {file} --read DIR`")))
    );
    let output = program.run(&["plugin", "allow", &file, "--read", "."]);
    assert_eq!(word_count(&program, &[]).1["result"], json!({ "lines": 1, "words": 2, "bytes": 9 }));
    let told = succeeded(&output);
    let work = program.path("work").display().to_string();
    assert!(
        told.starts_with(&format!(
            "{} now says:\n\n[plugin.word_count]\nsha256 = \"",
            program.path(SETTINGS).display()
        ))
    );
    assert!(told.ends_with(&format!("files.read = [\"{work}\"]\n")), "{told}");
    assert!(settings(&program).contains(told.split_once("\n\n").unwrap().1));
}

#[test]
fn what_was_not_allowed_stays_denied() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    program.write("elsewhere/b.txt", "x");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    let path = format!("path={}", program.path("elsewhere/b.txt").display());
    let (code, envelope) = program.call(&["word_count", &path]);
    assert_eq!((code, envelope["error"]["kind"].as_str()), (5, Some("denied")), "{envelope}");
    let elsewhere = program.path("elsewhere");
    assert_eq!(envelope["error"]["hint"], format!("add {elsewhere:?} to `files.read` under [plugin.word_count]"));
}

#[test]
fn options_say_what_is_allowed() {
    let program = Program::new().without_settings();
    program.write("elsewhere/b.txt", "x");
    let (words, echo) = (install(&program, "word_count"), install(&program, "shell_echo"));
    succeeded(&program.run(&["plugin", "allow", &words, "--read", "../elsewhere"]));
    assert_eq!(program.call(&["word_count", "path=../elsewhere/b.txt"]).0, 0);
    assert_eq!(word_count(&program, &[]).0, 5);
    succeeded(&program.run(&["plugin", "allow", &echo, "--shell"]));
    assert_eq!(program.call(&["--yes", "shell_echo", "text=hello"]).1["result"], "hello");
}

/// `hostile` imports the shell, and reads and writes files.
#[test]
fn a_right_that_is_named_brings_no_other() {
    let program = Program::new().without_settings();
    let file = install(&program, "hostile");
    let output = program.run(&["plugin", "allow", &file]);
    assert_eq!(code(&output), 2);
    let told = stderr(&output);
    assert!(told.contains("no option names what `hostile` may do; it asks to run commands, read files, write files"));
    assert!(
        told.contains(&format!("`toolcrib plugin allow {file} --shell --read DIR --write DIR`, or fewer")),
        "{told}"
    );
    assert!(!program.path(SETTINGS).exists());

    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    let written = settings(&program);
    assert!(!["shell", "write", "http"].iter().any(|right| written.contains(right)), "{written}");
    let work = program.path("work").display().to_string();
    assert!(written.ends_with(&format!("files.read = [\"{work}\"]\n")), "{written}");
    assert_eq!(program.call(&["hostile", "how=write_file", "text=planted"]).1["result"], "Err(\"denied\")");
    assert_eq!(program.call(&["--yes", "hostile", "how=run_command", "text=true"]).1["result"], "denied");
}

#[test]
fn what_is_not_named_again_stays_for_the_same_bytes() {
    let program = Program::new().without_settings();
    let file = install(&program, "hostile");
    let allow = |rights: &[&str]| succeeded(&program.run(&[&["plugin", "allow", "hostile"], rights].concat()));
    let rights = || {
        let written = settings(&program);
        let mut rights: Vec<String> =
            written.lines().filter(|line| !line.contains("sha256")).map(str::to_owned).collect();
        rights.retain(|line| !line.starts_with(['[', '#']) && !line.starts_with("definitions"));
        rights.sort();
        rights
    };
    allow(&["--read", ".", "--host", "a.com", "--method", "POST", "--path", "/v1"]);
    allow(&["--shell"]);
    let reads = format!("files.read = [{:?}]", program.path("work"));
    let reads = reads.as_str();
    let [methods, paths] = [r#"http.methods = ["POST"]"#, r#"http.paths = ["/v1"]"#];
    assert_eq!(rights(), [reads, r#"http.hosts = ["a.com"]"#, methods, paths, "shell = true"]);
    // Methods and paths were those of the hosts before.
    allow(&["--host", "b.com"]);
    assert_eq!(rights(), [reads, r#"http.hosts = ["b.com"]"#, "shell = true"]);
    assert!(file.ends_with("hostile.wasm"));
}

#[test]
fn hosts_methods_and_paths_are_written_as_they_were_meant() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    let allow = ["plugin", "allow", &file, "--host", "Example.COM", "--host", "*.b.example", "--host", "10.0.0.0/8"];
    let told = succeeded(&program.run(&[&allow[..], &["--method", "POST", "--path", "/v1/"]].concat()));
    let lines = "http.hosts = [\"example.com\", \"*.b.example\", \"10.0.0.0/8\"]\n\
                 http.methods = [\"POST\"]\nhttp.paths = [\"/v1\"]\n";
    assert!(told.ends_with(lines) && settings(&program).ends_with(lines), "{told}");
}

#[test]
fn what_is_no_host_method_or_path_is_refused_before_anything_is_written() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    for (options, refusal) in [
        (&["--host", "https://example.com"][..], "`https://example.com` is a URL: write the host alone"),
        (&["--host", "127.0.0.1/8"][..], "`127.0.0.1/8` is not a valid range: write `127.0.0.0/8`"),
        (&["--host", "a.com", "--method", "get"][..], "`get` is a method in upper case: write `GET`"),
        (&["--host", "a.com", "--path", "v1"][..], "`v1` does not begin with `/`"),
        (&["--method", "GET"][..], "--host <HOST>"),
    ] {
        let output = program.run(&[&["plugin", "allow", &file][..], options].concat());
        assert_eq!(code(&output), 2, "{options:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(refusal), "{}", stderr(&output));
        assert!(!program.path(SETTINGS).exists());
    }
}

#[test]
fn an_allowed_plugin_still_asks_before_it_runs_commands() {
    let program = Program::new().without_settings();
    let file = install(&program, "shell_echo");
    succeeded(&program.run(&["plugin", "allow", &file, "--shell"]));
    let (code, envelope) = program.call(&["shell_echo", "text=hello"]);
    assert_eq!((code, envelope["error"]["kind"].as_str()), (5, Some("denied")));
    assert!(envelope["error"]["message"].as_str().unwrap().contains("needs an approval"));
}

#[test]
fn other_bytes_under_the_same_name_have_nothing() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    change(&file);
    let (code, envelope) = word_count(&program, &[]);
    assert_eq!(code, 5);
    let message = "`word_count` needs `files`, but these are not the bytes that were allowed";
    assert_eq!(envelope["error"]["message"], message);
    let hint = envelope["error"]["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("`toolcrib plugin allow {file} --read DIR`")), "{hint}");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    assert_eq!(word_count(&program, &[]).0, 0);
}

#[test]
fn other_bytes_have_what_the_ones_before_had_only_if_that_is_said() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", ".", "--shell"]));
    change(&file);
    let output = program.run(&["plugin", "allow", &file]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert_eq!(word_count(&program, &[]).0, 5);
    succeeded(&program.run(&["plugin", "allow", &file, "--keep"]));
    assert_eq!(word_count(&program, &[]).0, 0);
    assert!(settings(&program).contains("shell = true"));

    change(&file);
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    assert_eq!(word_count(&program, &[]).0, 0);
    assert!(!settings(&program).contains("shell"), "what is not named is gone: {}", settings(&program));
}

#[test]
fn a_plugin_is_added_without_rights_and_removed_with_them() {
    let program = Program::new().without_settings();
    let file = program.path("data/toolcrib/plugins/word_count.wasm");
    let from = guest("word_count").display().to_string();
    let told = succeeded(&program.run(&["plugin", "add", &from]));
    assert!(told.starts_with(&format!("added {} with word_count.\n", file.display())), "{told}");
    assert!(told.contains("  toolcrib plugin allow word_count --read DIR\n"), "{told}");
    assert_eq!(fs::read(&file).unwrap(), fs::read(&from).unwrap());
    assert!(!program.path(SETTINGS).exists());
    assert_eq!(word_count(&program, &[]).0, 5);

    succeeded(&program.run(&["plugin", "allow", "word_count", "--read", "."]));
    assert_eq!(word_count(&program, &[]).0, 0);
    succeeded(&program.run(&["plugin", "remove", "word_count"]));
    assert!(!file.exists() && !settings(&program).contains("word_count"), "{}", settings(&program));
    assert_eq!(word_count(&program, &[]).0, 3);
    assert_eq!(code(&program.run(&["plugin", "remove", "word_count"])), 2);
}

#[test]
fn a_plugin_that_would_be_refused_is_not_added() {
    let program = Program::new().without_settings();
    let bytes = fs::read(guest("word_count")).unwrap();
    for (name, reason) in [("time", "exists already, built in"), ("tirne", "exists already, built in")] {
        program.write(&format!("work/{name}.wasm"), &bytes);
        let output = program.run(&["plugin", "add", &format!("{name}.wasm")]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
    succeeded(&program.run(&["plugin", "add", &guest("word_count").display().to_string()]));
    program.write("work/another.wasm", &bytes);
    let output = program.run(&["plugin", "add", "another.wasm"]);
    assert!(
        stderr(&output).contains("its tool `word_count` could be confused with `word_count`"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read_dir(program.path("data/toolcrib/plugins")).unwrap().count(), 1);
}

#[test]
fn other_bytes_take_the_place_of_a_plugin_only_if_that_is_said() {
    let program = Program::new().without_settings();
    let from = guest("word_count").display().to_string();
    succeeded(&program.run(&["plugin", "add", &from]));
    succeeded(&program.run(&["plugin", "allow", "word_count", "--read", "."]));
    program.write("work/word_count.wasm", fs::read(&from).unwrap());
    succeeded(&program.run(&["plugin", "add", "word_count.wasm"]));
    change(&program.path("work/word_count.wasm").display().to_string());
    let output = program.run(&["plugin", "add", "word_count.wasm"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("exists already, with other bytes"), "{}", stderr(&output));
    assert_eq!(word_count(&program, &[]).0, 0);
    succeeded(&program.run(&["plugin", "add", "--replace", "word_count.wasm"]));
    assert_eq!(word_count(&program, &[]).0, 5);
}

#[test]
fn what_was_allowed_is_taken_back_and_the_rest_of_the_settings_stays() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    program.write(SETTINGS, "# top\n[limits]\ncall_ms = 5000 # five seconds\n");
    let before = settings(&program);
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    assert_eq!(word_count(&program, &[]).0, 0);
    succeeded(&program.run(&["plugin", "deny", "word_count"]));
    assert_eq!(settings(&program), before);
    assert_eq!(word_count(&program, &[]).0, 5);
    let again = program.run(&["plugin", "deny", "word_count"]);
    assert_eq!((code(&again), stderr(&again).contains("was not allowed anything")), (2, true));

    program.write(SETTINGS, "# counts for me\n[plugin.word_count]\nshell = true\n");
    succeeded(&program.run(&["plugin", "deny", "word_count"]));
    assert_eq!(settings(&program), "# counts for me\n[plugin.word_count]\n");
}

#[test]
fn what_was_switched_off_stays_so_when_its_rights_are_taken_back() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    let text = settings(&program).replace("[plugin.word_count]\n", "[plugin.word_count]\nenabled = false\n");
    program.write(SETTINGS, text);
    succeeded(&program.run(&["plugin", "deny", "word_count"]));
    assert_eq!(settings(&program).trim(), "[plugin.word_count]\nenabled = false");
    assert!(succeeded(&program.run(&["plugin", "list"])).contains("switched off"));
}

#[test]
fn a_file_that_was_put_beside_does_not_take_the_place_of_a_plugin_that_is_named() {
    let program = Program::new().without_settings();
    install(&program, "word_count");
    program.write("work/word_count", fs::read(guest("hostile")).unwrap());
    succeeded(&program.run(&["plugin", "allow", "word_count", "--read", "."]));
    assert_eq!(word_count(&program, &[]).0, 0);
}

#[test]
fn what_a_linked_directory_of_plugins_leads_to_is_not_removed() {
    let program = Program::new().without_settings();
    program.write("elsewhere/word_count.wasm", fs::read(guest("word_count")).unwrap());
    fs::create_dir_all(program.path("data/toolcrib")).unwrap();
    std::os::unix::fs::symlink(program.path("elsewhere"), program.path("data/toolcrib/plugins")).unwrap();
    let output = program.run(&["plugin", "remove", "word_count"]);
    assert_eq!(code(&output), 10, "{}", stderr(&output));
    assert!(program.path("elsewhere/word_count.wasm").exists());
}

#[test]
fn what_came_with_toolcrib_is_neither_removed_nor_denied_but_switched_off() {
    let program = Program::new().without_settings();
    for action in ["remove", "deny"] {
        let output = program.run(&["plugin", action, "time"]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("hint: `enabled = false` under [plugin.time] switches it off\n"));
    }
    program.write(SETTINGS, "[plugin.time]\nenabled = false\n");
    let tools = succeeded(&program.run(&["tools"]));
    assert!(tools.contains("read_file") && !tools.contains("time "), "{tools}");
    assert!(succeeded(&program.run(&["plugin", "list"])).contains("switched off"));
    for call in [&["time"][..], &["time", "timezone=UTC"]] {
        let (code, envelope) = program.call(call);
        assert_eq!((code, &envelope["error"]["kind"]), (5, &json!("denied")));
        assert_eq!(envelope["error"]["message"], "plugin `time` is switched off by `plugin.time.enabled = false`");
        assert_eq!(envelope["error"]["hint"], "set `enabled = true` under [plugin.time], or remove the line");
    }
    let output = program.run(&["tools", "time"]);
    assert_eq!((code(&output), stderr(&output).contains("is switched off by")), (5, true), "{}", stderr(&output));
}

#[test]
fn what_is_said_of_a_key_in_a_section_is_kept_when_it_is_written_again() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    let written = settings(&program);
    let commented = written.replace("files.read = [", "# my notes\nfiles.read = [ # one\n").replace("\n]", "] # mine");
    program.write(SETTINGS, &commented);
    succeeded(&program.run(&["plugin", "allow", &file, "--shell"]));
    for comment in ["# my notes", "# one"] {
        assert!(settings(&program).contains(comment), "`{comment}` is lost:\n{}", settings(&program));
    }
    assert_eq!(word_count(&program, &[]).0, 0);
}

#[test]
fn comments_and_order_of_the_settings_survive() {
    let program = Program::new().without_settings();
    let before = "# top\n\n[limits] # of a call\ncall_ms = 5000   # five seconds\n\n# about tools\n[tools]\nshell_env = [\n  \"EDITOR\", # for git\n]\n# the end\n";
    program.write(SETTINGS, before);
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    assert_eq!(word_count(&program, &[]).0, 0);
    let after = settings(&program);
    for line in before.lines() {
        assert!(after.lines().any(|other| other == line), "`{line}` is lost:\n{after}");
    }
    assert!(
        after.starts_with("# top\n\n[limits] # of a call\ncall_ms = 5000   # five seconds\n\n# about tools\n[tools]\n")
    );
}

#[test]
fn comments_round_a_section_that_is_written_again_survive() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    program.write(
        SETTINGS,
        "# top\n\n# counts words for me\n[plugin.word_count] # mine\nshell = false\n\n# limits\n[limits]\n",
    );
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    let after = settings(&program);
    for comment in ["# top", "# counts words for me", "# limits"] {
        assert!(after.contains(comment), "`{comment}` is lost:\n{after}");
    }
}

#[test]
fn sections_of_other_plugins_stay_as_they_are() {
    let program = Program::new().without_settings();
    let (words, echo) = (install(&program, "word_count"), install(&program, "shell_echo"));
    succeeded(&program.run(&["plugin", "allow", &words, "--read", "."]));
    let before = settings(&program);
    succeeded(&program.run(&["plugin", "allow", &echo, "--shell"]));
    assert!(settings(&program).starts_with(&before), "{}", settings(&program));
    assert_eq!(word_count(&program, &[]).0, 0);
}

#[test]
fn settings_that_are_a_link_stay_a_link() {
    let program = Program::new().without_settings();
    program.write("dotfiles/toolcrib.toml", "# mine\n");
    std::os::unix::fs::symlink(program.path("dotfiles/toolcrib.toml"), program.path(SETTINGS)).unwrap();
    let file = install(&program, "word_count");
    succeeded(&program.run(&["plugin", "allow", &file, "--read", "."]));
    assert!(program.path(SETTINGS).is_symlink());
    assert!(fs::read_to_string(program.path("dotfiles/toolcrib.toml")).unwrap().contains("[plugin.word_count]"));
}

#[test]
fn settings_that_cannot_be_read_are_not_written() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    for broken in ["[tools\n", "[tools]\nno_such_key = 1\n"] {
        program.write(SETTINGS, broken);
        let output = program.run(&["plugin", "allow", &file, "--read", "."]);
        assert!(code(&output) != 0 && stderr(&output).contains("toolcrib.toml"), "{}", stderr(&output));
        assert_eq!(settings(&program), broken);
    }
}

#[test]
fn the_section_goes_to_the_settings_that_were_named() {
    let program = Program::new().without_settings();
    let file = install(&program, "word_count");
    program.write("mine.toml", "# mine\n");
    let mine = program.path("mine.toml").display().to_string();
    succeeded(&program.run(&["--config", &mine, "plugin", "allow", &file, "--read", "."]));
    assert!(!program.path(SETTINGS).exists());
    assert_eq!(word_count(&program, &["--config", &mine]).0, 0);
    assert_eq!(word_count(&program, &[]).0, 5);
}

/// A section about other bytes would take from the built-in plugin what it has.
#[test]
fn allowing_a_file_with_the_name_of_a_built_in_plugin_does_not_break_that_plugin() {
    let program = Program::new().without_settings();
    program.write("work/read_file.wasm", fs::read(guest("word_count")).unwrap());
    let output = program.run(&["plugin", "allow", "read_file.wasm", "--read", "."]);
    program.write("work/a.txt", "hello");
    let (_, envelope) = program.call(&["read_file", "path=a.txt"]);
    assert_eq!(envelope["result"], "hello", "after `plugin allow` (exit {}): {envelope}", code(&output));
}

#[test]
fn a_further_directory_of_plugins_can_be_named() {
    let program = Program::new().without_settings();
    program.write("more/word_count.wasm", fs::read(guest("word_count")).unwrap());
    let more = program.path("more").display().to_string();
    let call = ["word_count", "{\"path\": \"a.txt\"}"];
    assert_eq!(program.call(&call).0, 3);
    let (code, envelope) = program.call(&[&["--plugins", more.as_str()], &call[..]].concat());
    assert_eq!((code, envelope["error"]["kind"].as_str()), (5, Some("denied")));
}

#[test]
fn a_directory_of_plugins_that_is_missing_is_a_fault_of_the_command_line() {
    let output = Program::new().without_settings().run(&["--plugins", "/no/such/directory", "tools"]);
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output)
            .contains("`/no/such/directory` is not a directory\nhint: give `--plugins` a directory of .wasm files")
    );
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

#[test]
fn a_name_that_leads_elsewhere_removes_nothing() {
    let program = Program::new().without_settings();
    program.write("data/toolcrib/plugins/notes.txt", "");
    program.write("data/toolcrib/other.wasm", "");
    for name in ["../other", "./../other"] {
        let output = program.run(&["plugin", "remove", name]);
        assert_eq!(code(&output), 2, "{name}: {}", stderr(&output));
        assert!(program.path("data/toolcrib/other.wasm").exists(), "{name}: it is gone");
    }
}
