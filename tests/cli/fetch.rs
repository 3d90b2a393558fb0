//! `toolcrib plugin add` and `update` from elsewhere: from the web by digest, from a registry by tag, and from nowhere that nobody named.

use serde_json::{Value, json};
use std::fs;
use toolcrib::tools::fetch::Digest;
use toolcrib_tests::outcome::{code, json_of, stderr, succeeded, with_a_section_more};
use toolcrib_tests::registry::{CONFIG, INDEX, LAYER, MANIFEST, Message, Pages, Registry, manifest};
use toolcrib_tests::{Program, Terminal, guest, skip};

const WASM: [&str; 2] = [CONFIG, LAYER];
const SETTINGS: &str = "config/toolcrib/toolcrib.toml";
const FILE: &str = "data/toolcrib/plugins/word_count.wasm";

fn bytes_of(name: &str) -> Vec<u8> {
    fs::read(guest(name)).unwrap()
}

fn settings(program: &Program) -> String {
    fs::read_to_string(program.path(SETTINGS)).unwrap_or_default()
}

/// Runs a line that has to be refused; returns the exit code and what it says.
fn refused(program: &Program, arguments: &[&str]) -> (i32, String) {
    let output = program.run(arguments);
    assert!(!output.status.success() && !program.path(FILE).exists(), "{arguments:?}");
    (code(&output), stderr(&output))
}

/// Whether the plugin has rights.
fn is_allowed(program: &Program) -> bool {
    program.write("work/a.txt", "two words");
    program.call(&["word_count", "path=a.txt"]).0 == 0
}

macro_rules! registry {
    () => {
        match Registry::start() {
            Some(registry) => registry,
            None => skip!("docker-registry is not installed"),
        }
    };
}

#[test]
fn a_tag_becomes_a_plugin_without_rights_and_a_digest_in_the_settings() {
    let (program, registry) = (Program::new().without_settings(), registry!());
    let digest = registry.push("tools/word_count", "1.4", WASM, &bytes_of("word_count"));
    let artifact = registry.reference("tools/word_count:1.4");
    let told = succeeded(&program.run(&["plugin", "add", &artifact]));
    let pinned = format!("[plugin.word_count] source = \"{artifact}@{digest}\"\n");
    assert!(told.starts_with("added ") && told.contains(&pinned), "{told}");
    assert!(told.contains("  toolcrib plugin allow word_count --read DIR\n"), "{told}");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), bytes_of("word_count"));
    assert_eq!(settings(&program), format!("[plugin.word_count]\nsource = \"{artifact}@{digest}\"\n"));
    assert!(!is_allowed(&program));

    // Its rights come and go; where it is from stays.
    succeeded(&program.run(&["plugin", "allow", "word_count", "--read", "."]));
    assert!(is_allowed(&program) && settings(&program).starts_with("[plugin.word_count]\nsource = \"oci://"));
    succeeded(&program.run(&["plugin", "deny", "word_count"]));
    assert_eq!(settings(&program), format!("[plugin.word_count]\nsource = \"{artifact}@{digest}\"\n"));
    // By digest, whatever the tag means by now.
    registry.push("tools/word_count", "1.4", WASM, &bytes_of("hostile"));
    succeeded(&program.run(&["plugin", "add", &format!("{artifact}@{digest}")]));
    // From a file, it is from nowhere else.
    succeeded(&program.run(&["plugin", "add", &guest("word_count").display().to_string()]));
    assert_eq!(settings(&program), "");
    succeeded(&program.run(&["plugin", "add", &format!("{artifact}@{digest}")]));
    assert!(!succeeded(&program.run(&["plugin", "remove", "word_count"])).contains("rights"));
    assert_eq!(settings(&program), "");
}

#[test]
fn an_update_says_what_changed_and_starts_without_rights() {
    let (program, registry) = (Program::new().without_settings(), registry!());
    let artifact = registry.reference("word_count:latest");
    registry.push("word_count", "latest", WASM, &bytes_of("word_count"));
    succeeded(&program.run(&["plugin", "add", &registry.reference("word_count")]));
    succeeded(&program.run(&["plugin", "allow", "word_count", "--read", "."]));
    let update = |more: &[&str]| program.run(&[&["plugin", "update", "word_count"], more].concat());
    assert!(succeeded(&update(&[])).contains("is up to date") && is_allowed(&program));

    let next = with_a_section_more(bytes_of("word_count"));
    let digest = registry.push("word_count", "latest", WASM, &next);
    let told = succeeded(&update(&[]));
    assert!(told.starts_with("word_count: ") && !told.contains("widens") && !told.contains(" + "), "{told}");
    assert!(told.contains(&format!("source = \"{artifact}@{digest}\"")), "{told}");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), next);
    assert!(!is_allowed(&program));

    let wider = registry.push("word_count", "latest", WASM, &bytes_of("hostile"));
    let output = update(&[]);
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    for line in
        ["tool + hostile  widens", "tool - word_count\n", "asks to + run commands  widens", "what it says of its tools"]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(stderr(&output).contains("repeat with `--widen`"), "{}", stderr(&output));
    assert_eq!(fs::read(program.path(FILE)).unwrap(), next);
    assert!(settings(&program).contains(&digest.to_string()));
    let told = json_of(&update(&["--widen", "--json"]));
    assert!(
        told["changes"].as_array().unwrap().contains(&json!({ "what": "tool + hostile", "widens": true })),
        "{told}"
    );
    assert_eq!(fs::read(program.path(FILE)).unwrap(), bytes_of("hostile"));
    assert!(settings(&program).contains(&wider.to_string()));
}

#[test]
fn an_update_needs_to_know_where_from() {
    let (program, registry) = (Program::new().without_settings(), registry!());
    let update = |name: &str| {
        let output = program.run(&["plugin", "update", name]);
        (code(&output), stderr(&output))
    };
    assert!(update("none").1.contains("there is no plugin `none`"));
    assert!(update("../word_count").1.contains("there is no plugin"));
    assert!(update("time").1.contains("came with Toolcrib"));
    succeeded(&program.run(&["plugin", "add", &guest("word_count").display().to_string()]));
    assert!(update("word_count").1.contains("your settings do not say where `word_count` is from"));
    // What a project says counts for nothing, trusted or not.
    let artifact = registry.reference("word_count:1");
    program.write("work/toolcrib.toml", format!("[plugin.word_count]\nsource = \"{artifact}\"\n"));
    succeeded(&program.run(&["trust"]));
    assert!(update("word_count").1.contains("your settings do not say where `word_count` is from"));
    fs::remove_file(program.path("work/toolcrib.toml")).unwrap();
    let digest = registry.push("word_count", "1", WASM, &bytes_of("word_count"));
    let by_digest = format!("{}@{digest}", registry.reference("word_count"));
    succeeded(&program.run(&["plugin", "add", &by_digest]));
    let (exit, told) = update("word_count");
    assert!(exit == 2 && told.contains("names no tag, so there is no newer version"), "{told}");
    program.write(SETTINGS, "[plugin.word_count]\nsource = \"ftp://example.com/a.wasm\"\n");
    let (exit, told) = update("word_count");
    assert!(exit == 2 && told.contains("`ftp` is not a scheme that plugins come by"), "{told}");
}

#[test]
fn what_a_registry_does_not_have_or_should_not_have_is_not_added() {
    let (program, registry) = (Program::new().without_settings(), registry!());
    let component = bytes_of("word_count");
    let digest = registry.push("word_count", "1", WASM, &component);
    registry.push("word_count", "tar", [CONFIG, "application/vnd.oci.image.layer.v1.tar+gzip"], &component);
    registry.push("word_count", "image", ["application/vnd.docker.container.image.v1+json", LAYER], &component);
    registry.push("word_count", "module", WASM, b"\0asm\x01\0\0\0");
    registry.push("word_count", "large", WASM, &vec![0; (1 << 20) + 1]);
    let entry = |platform: Value| {
        let manifest = manifest(WASM, &component).to_string();
        json!({ "mediaType": MANIFEST, "digest": digest.to_string(), "size": manifest.len(), "platform": platform })
    };
    let (linux, wasm) =
        (json!({ "os": "linux", "architecture": "amd64" }), json!({ "os": "wasip2", "architecture": "wasm" }));
    let index = |entries: Vec<Value>| json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries });
    registry.document("word_count", "index", &index(vec![entry(linux.clone()), entry(wasm.clone())]));
    registry.document("word_count", "two", &index(vec![entry(wasm.clone()), entry(wasm)]));
    registry.document("word_count", "none", &index(vec![entry(linux)]));
    let set = ["--set", "limits.component_mib=1"];
    for (artifact, exit, refusal) in [
        ("word_count:2".to_owned(), 10, "MANIFEST_UNKNOWN"),
        ("other:1".to_owned(), 10, "there is no `oci://"),
        (format!("word_count@{}", Digest::of(b"")), 10, "there is no `oci://"),
        ("word_count:tar".to_owned(), 10, "it has no layer of type `application/wasm`"),
        ("word_count:image".to_owned(), 10, "its config is `application/vnd.docker.container.image.v1+json`"),
        ("word_count:module".to_owned(), 10, "it is a core module"),
        ("word_count:large".to_owned(), 6, "has 1048577 bytes (limit: 1048576 bytes)"),
        ("word_count:two".to_owned(), 10, "it is an index with 2 components: name one by its digest"),
        ("word_count:none".to_owned(), 10, "it is an index without a component"),
        ("Word_count:1".to_owned(), 2, "`Word_count` is not the name of a repository"),
    ] {
        let (found, told) = refused(&program, &[&set[..], &["plugin", "add", &registry.reference(&artifact)]].concat());
        assert!(found == exit && told.contains(refusal), "{artifact}: {found} {told}");
    }
    let other = Digest::of(b"").to_string();
    let (exit, told) = refused(&program, &["plugin", "add", "--digest", &other, &registry.reference("word_count:1")]);
    assert!(exit == 5 && told.contains("has other bytes than its digest says"), "{told}");
    succeeded(&program.run(&["plugin", "add", &registry.reference("word_count:index")]));
    assert_eq!(fs::read(program.path(FILE)).unwrap(), component);
}

/// A registry that has its tokens and its files on another host.
fn scattered(component: Vec<u8>) -> Pages {
    Pages::serve(move |asked, [_, other]| {
        let manifest = manifest(WASM, &component).to_string();
        match asked.path.split('?').next().unwrap_or_default() {
            "/token" => Message::answer(200, &[], br#"{"token":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"}"#),
            "/file" => Message::answer(200, &[], &component),
            _ if asked.header("authorization").is_none() => {
                let challenge = format!("Bearer realm=\"http://{other}/token\",service=\"r\",scope=\"s\"");
                Message::answer(401, &[("www-authenticate", &challenge)], b"")
            }
            path if path.contains("/manifests/") => Message::answer(200, &[], manifest.as_bytes()),
            _ => Message::answer(307, &[("location", &format!("http://{other}/file?signature=x"))], b""),
        }
    })
}

#[test]
fn a_host_that_the_registry_names_is_reached_only_if_the_person_names_it_too() {
    let (program, component) = (Program::new().without_settings(), bytes_of("word_count"));
    let pages = scattered(component.clone());
    let artifact = format!("oci://{}/word_count:1", pages.first);
    let (exit, told) = refused(&program, &["plugin", "add", &artifact]);
    assert!(exit == 5 && told.contains("`127.0.0.2` is not the host that you named"), "{told}");
    assert!(told.contains("add `--host 127.0.0.2` if this plugin may come from there, too"), "{told}");
    assert!(pages.asked().iter().all(|asked| asked.to == Some(pages.first)), "nothing was asked of the other one");

    succeeded(&program.run(&["plugin", "add", &artifact, "--host", "127.0.0.2"]));
    assert_eq!(fs::read(program.path(FILE)).unwrap(), component);
    let asked = pages.asked();
    let others: Vec<&Message> = asked.iter().filter(|asked| asked.to == Some(pages.other)).collect();
    assert_eq!(
        others.iter().map(|asked| asked.path.as_str()).collect::<Vec<_>>(),
        ["/token?service=r&scope=s", "/file?signature=x"]
    );
    assert!(others.iter().all(|asked| asked.header("authorization").is_none()), "the token is the registry's alone");
}

/// `localhost` is not the host that was typed, though it is the same machine; and a name that the other side has chosen opens nothing local.
#[test]
fn a_person_at_the_terminal_is_asked_about_a_host_that_the_registry_names() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let pages = Pages::serve(|_, [first, _]| {
        let challenge = format!("Bearer realm=\"http://localhost:{}/token\"", first.port());
        Message::answer(401, &[("www-authenticate", &challenge)], b"")
    });
    for (answer, refusal) in [("n", "is not the host that you named"), ("y", "is a name of the local network")] {
        let terminal = Terminal::idle(Program::new().without_settings());
        terminal.run(&format!("$toolcrib plugin add oci://{}/word_count:1", pages.first));
        terminal.shows("May the plugin come from `localhost`?");
        let screen = terminal.screen();
        assert!(
            screen.contains(&format!("has its tokens at `http://localhost:{}/token`", pages.first.port())),
            "{screen}"
        );
        terminal.press(&[answer, "Enter"]);
        assert_eq!(terminal.ended(), 5);
        assert!(terminal.screen().replace('\n', " ").contains(refusal), "{}", terminal.screen());
    }
    assert!(pages.asked().iter().all(|asked| asked.path == "/v2/word_count/manifests/1"));
}

#[test]
fn what_settings_say_of_requests_binds_a_persons_own_command() {
    let pages = scattered(bytes_of("word_count"));
    let program = Program::new().without_settings();
    let artifact = format!("oci://{}/word_count:1", pages.first);
    for (set, refusal) in [
        ("tools.fetch_enabled=false", "requests are switched off"),
        ("tools.fetch_blocked_domains=[\"127.0.0.0/8\"]", "is blocked by `127.0.0.0/8`"),
        ("tools.fetch_allowed_domains=[\"docs.rs\"]", "is not in `tools.fetch_allowed_domains`"),
    ] {
        let (exit, told) = refused(&program, &["--set", set, "plugin", "add", &artifact, "--host", "127.0.0.2"]);
        assert!(exit == 5 && told.contains(refusal), "{set}: {told}");
    }
    program.write("policy.toml", "[tools]\nfetch_private_ranges = []\n");
    let policy = program.path("policy.toml").display().to_string();
    let (exit, told) = refused(&program, &["--policy", &policy, "plugin", "add", &artifact]);
    assert!(exit == 5 && told.contains("is not public"), "{told}");
    assert_eq!(pages.asked().len(), 0);
}

#[test]
fn a_url_needs_the_digest_of_what_it_answers() {
    let (program, component) = (Program::new().without_settings(), bytes_of("word_count"));
    let served = component.clone();
    let pages = Pages::serve(move |asked, _| match asked.path.as_str() {
        "/word_count.wasm" | "/?key=1" => Message::answer(200, &[], &served),
        "/away.wasm" => Message::answer(302, &[("location", "http://10.0.0.1/x")], b""),
        _ => Message::answer(404, &[], b"no"),
    });
    let url = |path: &str| format!("http://{}{path}", pages.first);
    let (digest, other) = (Digest::of(&component).to_string(), Digest::of(b"").to_string());
    for (arguments, exit, refusal) in [
        (vec!["plugin", "add", &url("/word_count.wasm")], 2, "a URL needs `--digest`"),
        (
            vec!["plugin", "add", &url("/word_count.wasm"), "--digest", &other],
            5,
            "has other bytes than its digest says",
        ),
        (vec!["plugin", "add", &url("/none.wasm"), "--digest", &digest], 10, "answers 404"),
        (
            vec!["plugin", "add", &url("/away.wasm"), "--digest", &digest],
            5,
            "`10.0.0.1` is not the host that you named",
        ),
        (vec!["plugin", "add", &url("/?key=1"), "--digest", &digest], 2, "name the plugin with `--name NAME`"),
        (
            vec!["plugin", "add", "http://example.com/a.wasm", "--digest", &digest],
            2,
            "is not encrypted: write `https://`",
        ),
        (vec!["plugin", "add", &url("/word_count.wasm"), "--digest", &digest[7..]], 2, "does not name its algorithm"),
    ] {
        let (found, told) = refused(&program, &arguments);
        assert!(found == exit && told.contains(refusal), "{arguments:?}: {found} {told}");
    }
    succeeded(&program.run(&["plugin", "add", &url("/word_count.wasm"), "--digest", &digest]));
    assert_eq!(fs::read(program.path(FILE)).unwrap(), component);
    assert_eq!(settings(&program), format!("[plugin.word_count]\nsource = \"{}\"\n", url("/word_count.wasm")));
    assert!(
        succeeded(&program.run(&["plugin", "update", "word_count", "--digest", &digest])).contains("is up to date")
    );
    assert_eq!(code(&program.run(&["plugin", "update", "word_count"])), 2);
    // What its query says may be a secret.
    succeeded(&program.run(&["plugin", "add", &url("/?key=1"), "--name", "word_count", "--digest", &digest]));
    assert_eq!(settings(&program), "");
}
