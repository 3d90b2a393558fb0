//! What a server sees and reaches of this machine.

use crate::rig::{accepting, behaving, behaving_with, call, echoed, host, program, section};
use serde_json::{Value, json};
use toolcrib_tests::TestHost;
use toolcrib_tests::processes::{assert_gone, running};

#[tokio::test]
async fn it_has_the_variables_of_its_section_alone() {
    let host = behaving("environment", &["variables={GREETING=\"hello\", LANG=\"C.UTF-8\"}"]).await;
    let said: Value = serde_json::from_str(&echoed(&host, "").await.expect("its variables")).expect("JSON");
    assert_eq!(said["GREETING"], "hello");
    let names: Vec<&String> = said.as_object().expect("variables").keys().collect();
    let known = |name: &str| {
        [
            "GREETING",
            "LANG",
            "HOME",
            "TMPDIR",
            "TZ",
            "PYTHONPYCACHEPREFIX",
            "PATH",
            "PWD",
            "SHLVL",
            "_",
            "OLDPWD",
            "LC_CTYPE",
        ]
        .contains(&name)
            || name.to_ascii_lowercase().ends_with("_proxy")
            || name.starts_with("NODE_")
            // Git leaves cleaning up to the person's, in each cell.
            || name.starts_with("GIT_CONFIG_")
    };
    assert!(names.iter().all(|name| known(name)), "{names:?}");
}

#[tokio::test]
async fn it_writes_in_its_home_and_where_its_section_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = format!("write={}", json!([directory.path()]));
    let host = behaving("touch", &[&write]).await;
    let own = directory.path().join("note").display().to_string();
    assert_eq!(echoed(&host, &own).await.expect("an answer"), "written");
    assert!(directory.path().join("note").exists());
    assert_eq!(echoed(&host, "in-its-home").await.expect("an answer"), "written");
    // Beside its own code, where it must not write.
    let beside = program().with_file_name("written-by-a-server").display().to_string();
    let home = host.home().join(".bashrc").display().to_string();
    for odd in [beside.as_str(), &home, "/etc/note", "/usr/bin/note", "/root/.note"] {
        let said = echoed(&host, odd).await.expect("an answer");
        assert!(
            said.contains("Read-only file system")
                || said.contains("No such file")
                || said.contains("Permission denied"),
            "{odd}: {said}"
        );
    }
    assert!(!host.home().join(".bashrc").exists() && !std::path::Path::new(&beside).exists());
}

/// What runs or decides later stays as it is, also where a server may write.
#[tokio::test]
async fn what_runs_later_is_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(at(".git/hooks")).expect("a directory");
    std::fs::write(at(".envrc"), "").expect("a file");
    let host = behaving("touch", &[&format!("write={}", json!([directory.path()]))]).await;
    let said = echoed(&host, &at(".envrc").display().to_string()).await.expect("an answer");
    assert!(said.contains("Read-only file system"), "{said}");
    // What it writes in a git directory stays before the gate.
    let hook = at(".git/hooks/pre-commit");
    assert_eq!(echoed(&host, &hook.display().to_string()).await.expect("an answer"), "written");
    assert!(!hook.exists());
    assert_eq!(echoed(&host, &at("note").display().to_string()).await.expect("an answer"), "written");
    let (host, own) = (crate::rig::host(), section("touch", &[]));
    for odd in [host.home(), "/usr/local".into(), host.dirs().config.clone()] {
        std::fs::create_dir_all(&odd).expect("a directory");
        let section = toolcrib::config::UpstreamSection { write: vec![odd.clone()], ..own.clone() };
        let failure = crate::rig::look(&host, &section).await.map(drop).expect_err("it would write there");
        assert!(failure.message.contains("cannot be writable"), "{}: {}", odd.display(), failure.message);
    }
}

#[tokio::test]
async fn what_it_writes_may_lie_in_what_it_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let below = directory.path().join("below");
    std::fs::create_dir(&below).expect("a directory");
    let lines = [format!("read={}", json!([program(), directory.path()])), format!("write={}", json!([below]))];
    let host = behaving("touch", &[&lines[0], &lines[1]]).await;
    let at = |path: &std::path::Path| path.join("note").display().to_string();
    assert_eq!(echoed(&host, &at(&below)).await.expect("an answer"), "written");
    assert!(echoed(&host, &at(directory.path())).await.expect("an answer").contains("Read-only"));
}

/// Credentials stay hidden in what may be read, by whatever name that is there, and so does what is Toolcrib's own.
#[tokio::test]
async fn what_is_hidden_stays_so_in_what_it_reads() {
    let host = host();
    let (home, elsewhere) = (host.home(), tempfile::tempdir().expect("a directory"));
    std::fs::create_dir(home.join(".ssh")).expect("a directory");
    std::fs::write(home.join(".ssh/id_ed25519"), "a key").expect("a key");
    std::fs::write(home.join("note"), "a note of mine").expect("a file");
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(&home, &link).expect("a link");
    let own = section("cat", &[]);
    let read = format!("read={}", json!([program(), link]));
    let host = accepting(host, &own, &["confirm=none", &read]).await;
    let cat = async |path: std::path::PathBuf| echoed(&host, &path.display().to_string()).await.expect("an answer");
    assert_eq!(cat(link.join("note")).await, "a note of mine");
    for place in [&link, &home] {
        let said = cat(place.join(".ssh/id_ed25519")).await;
        assert!(said.contains("No such file"), "{said}");
    }
    let above = home.parent().expect("it lies somewhere").to_owned();
    let section = toolcrib::config::UpstreamSection { read: vec![program(), above], ..own };
    let failure = crate::rig::look(&host, &section).await.map(drop).expect_err("Toolcrib's own is there");
    assert!(failure.message.contains("holds Toolcrib's own"), "{}", failure.message);
}

#[tokio::test]
async fn it_reaches_the_hosts_of_its_section_alone() {
    let host = behaving("fetch", &["ports=[80,443]"]).await;
    let said = echoed(&host, "http://example.com/").await.expect("an answer");
    assert!(said.contains("Error"), "{said}");
    for odd in ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:22/", "http://localhost/"] {
        let said = echoed(&host, odd).await.expect("an answer");
        assert!(said.contains("Error"), "{odd}: {said}");
    }
    let refused = host.call("jotter__echo", json!({ "text": "http://example.org/" })).await.outcome.expect("an answer");
    assert!(
        refused.notices.iter().any(|notice| notice.contains("`hosts` under [upstream.jotter]")),
        "{:?}",
        refused.notices
    );
}

#[tokio::test]
async fn nothing_of_it_is_left_when_its_host_goes() {
    for mode in ["stays", "forks"] {
        let host = behaving_with(mode, &["left"], &[]).await;
        let _ = echoed(&host, "x").await.expect("an answer");
        let line = format!("server.py\0{mode}\0left");
        assert!(!running(&line).is_empty());
        drop(host);
        let gone = tokio::task::spawn_blocking(move || assert_gone(&line));
        gone.await.expect("none is left");
    }
}

#[tokio::test]
async fn a_secret_reaches_the_server_and_nobody_else() {
    let secret = "correct horse battery staple 1234";
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("secret");
    std::fs::write(&file, secret).expect("a secret");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its mode");
    let host = host().set(&format!("secret.NOTES.file={:?}", file.display().to_string()));
    let host: TestHost = host.set("secret.NOTES.hosts=[\"api.example.com\"]");
    let host =
        accepting(host, &section("environment", &[]), &["confirm=none", "variables={TOKEN=\"${secret:NOTES}\"}"]).await;
    let said = call(&host, "echo", json!({ "text": "" })).await.expect("its variables").result.to_string();
    assert!(said.contains("TOKEN") && !said.contains(secret) && said.contains("secret:NOTES"), "{said}");
    assert!(!host.audit().iter().any(|line| line.to_string().contains(secret)));
    // One that would tell it to models in what it offers is not accepted.
    let section = toolcrib::config::UpstreamSection {
        variables: [("TOKEN".to_owned(), config::Template::value("${secret:NOTES}").expect("a value"))].into(),
        ..section("babbles", &[])
    };
    let failure = crate::rig::look(&host, &section).await.map(drop).expect_err("it says its secret");
    assert!(failure.message.contains("has a secret of yours") && !failure.to_json().to_string().contains(secret));
    // Nor does it get there in arguments that a model wrote.
    let failure = call(&host, "echo", json!({ "text": secret })).await.expect_err("a known secret");
    assert!(!failure.to_json().to_string().contains(secret));
}

/// What runs or is obeyed later is no secret between a server and the tools of its user: each call tells what was made.
#[tokio::test]
async fn what_runs_later_that_it_makes_is_told_and_goes_on_record() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("it is there");
    std::fs::create_dir_all(root.join(".git/info")).expect("a repository");
    std::fs::create_dir(root.join(".claude")).expect("a directory");
    std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a repository");
    let host = behaving("touch", &[&format!("write={}", json!([root]))]).await;
    let written = async |name: &str| {
        let path = root.join(name).display().to_string();
        let output = call(&host, "echo", json!({ "text": path })).await.expect("an answer");
        assert_eq!(output.result, "written", "{name}");
        (path, output.notices)
    };
    assert_eq!(written("note").await.1, [""; 0]);
    for name in [".envrc", ".git/commondir", ".claude/settings.json", "CLAUDE.md", ".git/info/attributes"] {
        let (path, notices) = written(name).await;
        let told = notices.iter().find(|notice| notice.contains(&format!("`{path}` was ")));
        let told = told.unwrap_or_else(|| panic!("{name}: {notices:?}"));
        assert!(told.starts_with("in a directory that the server `jotter` writes, "), "{told}");
        let actions = host.audit().last().expect("a line")["actions"].to_string();
        assert!(actions.contains(&format!("`{path}` was ")), "{name}: {actions}");
        // It is told once.
        assert_eq!(written("note").await.1, [""; 0], "{name}");
    }
}
