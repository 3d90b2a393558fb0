//! Where nothing is written: sensitive places, Toolcrib's own, and what lies outside the lists that settings give.

use super::{content, names, refused, write};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;

/// The directory in which all directories of the host lie.
fn root(host: &TestHost) -> PathBuf {
    host.work().parent().expect("a directory above").to_owned()
}

fn directory(path: PathBuf) -> PathBuf {
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

/// A host that writes in its working directory alone.
fn confined() -> TestHost {
    let host = TestHost::new();
    let work = host.work();
    host.set(&format!("tools.files_allowed_paths=[{work:?}]"))
}

/// What the hint of a refusal says to add to `files_allowed_paths`, as a path below the root of another host.
fn hinted(failure: &Failure, refusing: &TestHost, other: &TestHost) -> PathBuf {
    let hint = failure.hint.as_deref().expect("a hint");
    assert!(hint.contains(" to `files_allowed_paths` under [tools]"), "{hint}");
    let path = Path::new(hint.split('"').nth(1).expect("a quoted path"));
    root(other).join(path.strip_prefix(root(refusing)).expect("a path below the root"))
}

#[tokio::test(flavor = "multi_thread")]
async fn sensitive_places_of_the_system_are_closed() {
    let host = TestHost::new();
    let places = ["/etc", "/bin", "/sbin", "/lib", "/usr", "/usr/local/bin", "/boot", "/run", "/etc/ssl"];
    let places: Vec<&str> = places.into_iter().filter(|place| Path::new(place).is_dir()).collect();
    assert!(places.len() >= 5, "{places:?}");
    for place in places {
        let path = format!("{place}/toolcrib-test-{}", std::process::id());
        let outcome = host.call("write_file", json!({ "path": path, "content": "" })).await.outcome;
        let written = std::fs::remove_file(&path).is_ok();
        assert!(!written, "{path} was written");
        let failure = outcome.expect_err(&path);
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
        assert!(failure.message.contains("is below the sensitive path"), "{path}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trees_of_the_kernel_are_closed_whatever_the_settings() {
    let host = TestHost::new().set("tools.files_allowed_paths=[\"/\", \"/dev\", \"/proc\", \"/sys\"]");
    for path in ["/dev/shm/toolcrib-test", "/proc/self/comm", "/proc/self/cwd/toolcrib-test", "/sys/toolcrib-test"] {
        let outcome = host.call("write_file", json!({ "path": path, "content": "" })).await.outcome;
        let _ = std::fs::remove_file(path);
        let failure = outcome.expect_err(path);
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
        assert!(failure.message.contains("which file tools never access"), "{path}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sensitive_directory_that_is_named_is_open() {
    let closed = refused(&TestHost::new(), "/etc").await;
    assert_eq!(closed.kind, Kind::Denied, "{}", closed.message);
    let open = refused(&TestHost::new().set("tools.files_allowed_paths=[\"/etc\"]"), "/etc").await;
    assert_eq!((open.kind, open.message.as_str()), (Kind::ExecutionFailed, "`/etc` is a directory"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_other_services_are_closed() {
    let host = TestHost::new();
    for name in [".ssh", ".gnupg", ".aws"] {
        directory(host.home().join(name));
        for path in [format!("~/{name}/new"), format!("../home/{name}/new"), format!("~/./{name}/../{name}/new")] {
            let failure = refused(&host, &path).await;
            assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
            assert!(names(&host.home().join(name)).is_empty(), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_run_at_the_next_login_are_closed() {
    let host = TestHost::new().without_canary();
    for name in [".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv"] {
        let failure = refused(&host, &format!("~/{name}")).await;
        assert_eq!(failure.kind, Kind::Denied, "{name}: {}", failure.message);
    }
    assert!(names(&host.home()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hint_of_a_sensitive_place_opens_it_when_followed() {
    for path in ["~/.ssh/config", "~/.aws/cli/alias", "~/.bashrc"] {
        let (closed, open) = (TestHost::new(), TestHost::new());
        for host in [&closed, &open] {
            directory(host.home().join(path.trim_start_matches("~/")).parent().expect("a directory").to_owned());
        }
        let failure = refused(&closed, path).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}");
        let opened = hinted(&failure, &closed, &open);
        let open = open.set(&format!("tools.files_allowed_paths=[{opened:?}]"));
        write(&open, path, "new").await;
        assert_eq!(content(open.home().join(path.trim_start_matches("~/"))), "new");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hint_for_a_login_file_opens_no_keys() {
    let (closed, open) = (TestHost::new(), TestHost::new());
    directory(open.home().join(".ssh"));
    let opened = hinted(&refused(&closed, "~/.bashrc").await, &closed, &open);
    let open = open.set(&format!("tools.files_allowed_paths=[{opened:?}]"));
    let outcome = open.call("write_file", json!({ "path": "~/.ssh/authorized_keys", "content": "key" })).await.outcome;
    assert!(outcome.is_err(), "whoever follows the hint for ~/.bashrc opens ~/.ssh as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_the_allowed_paths_the_setting_is_named_and_the_hint_opens_it() {
    let (closed, open) = (confined(), TestHost::new());
    for host in [&closed, &open] {
        directory(host.home().join("notes"));
    }
    let failure = refused(&closed, "~/notes/a.txt").await;
    assert_eq!(failure.kind, Kind::Denied);
    let path = closed.home().join("notes/a.txt");
    assert_eq!(failure.message, format!("`{}` is outside `tools.files_allowed_paths`", path.display()));
    let (opened, work) = (hinted(&failure, &closed, &open), open.work());
    let open = open.set(&format!("tools.files_allowed_paths=[{work:?}, {opened:?}]"));
    write(&open, "~/notes/a.txt", "new").await;
    assert_eq!(content(open.home().join("notes/a.txt")), "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_an_allowed_path_files_are_written() {
    let host = confined();
    directory(host.work().join("deep/er"));
    write(&host, "deep/er/a.txt", "new").await;
    write(&host, "../work/b.txt", "new").await;
    assert_eq!(
        (content(host.work().join("deep/er/a.txt")), content(host.work().join("b.txt"))),
        ("new".into(), "new".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_way_leads_out_of_the_allowed_paths() {
    let host = confined().without_canary();
    let (work, home) = (host.work(), host.home());
    directory(root(&host).join("workshop"));
    directory(home.join("dir"));
    std::fs::write(home.join("file"), "old").expect("a file");
    symlink(&home, work.join("up")).expect("a link");
    symlink(home.join("dir"), work.join("dir")).expect("a link");
    symlink(home.join("file"), work.join("link")).expect("a link");
    symlink("link", work.join("again")).expect("a link");
    symlink(home.join("new"), work.join("dangling")).expect("a link");
    let before = names(&work);
    for path in [
        "../workshop/new",
        "../work-new",
        "../home/new",
        "up/new",
        "up/file",
        "up/../home/new",
        "dir/new",
        "dir/../new",
        "link",
        "again",
        "dangling",
        "~/new",
    ] {
        let outcome = host.call("write_file", json!({ "path": path, "content": "new" })).await.outcome;
        let failure = outcome.expect_err(path);
        assert!(failure.kind == Kind::Denied || path == "dangling", "{path}: {}", failure.message);
        assert_eq!(names(&work), before, "{path}");
        assert_eq!(names(&home), ["dir", "file"], "{path}");
    }
    assert_eq!(content(home.join("file")), "old");
    assert!(names(&root(&host).join("workshop")).is_empty() && names(&home.join("dir")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_path_that_is_a_link_allows_what_it_leads_to() {
    let host = TestHost::new().without_canary();
    symlink(host.work(), host.home().join("alias")).expect("a link");
    let alias = host.home().join("alias");
    let host = host.set(&format!("tools.files_allowed_paths=[{alias:?}]"));
    write(&host, "a.txt", "new").await;
    write(&host, "~/alias/b.txt", "new").await;
    assert_eq!(names(&host.work()), ["a.txt", "b.txt"]);
    assert_eq!(refused(&host, "~/c.txt").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_path_opens_no_sensitive_place_above_it() {
    let host = TestHost::new();
    directory(host.home().join(".ssh/sub"));
    let sub = host.home().join(".ssh/sub");
    let host = host.set(&format!("tools.files_allowed_paths=[{sub:?}]"));
    write(&host, "~/.ssh/sub/a", "new").await;
    assert_eq!(refused(&host, "~/.ssh/a").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_takes_away_and_opens_nothing() {
    let host = TestHost::new();
    directory(host.home().join(".ssh"));
    let (work, keys) = (host.work(), host.home().join(".ssh"));
    let host = host.policy(&format!("[tools]\nfiles_allowed_paths = [{work:?}, {keys:?}]\n"));
    write(&host, "a.txt", "new").await;
    for path in ["~/a.txt", "~/.ssh/config"] {
        assert_eq!(refused(&host, path).await.kind, Kind::Denied, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn toolcribs_own_directories_are_closed_whatever_the_settings() {
    let host = TestHost::new();
    let above = root(&host);
    let host = host.policy("[tools]\nshell_enabled = true\n").set(&format!("tools.files_allowed_paths=[{above:?}]"));
    let dirs = host.dirs();
    write(&host, "a.txt", "makes the directories").await;
    directory(dirs.plugins());
    for path in [
        dirs.settings(),
        dirs.config.join("new"),
        dirs.audit(),
        dirs.state.join("code.key"),
        dirs.output().join("new"),
        dirs.plugins().join("new.wasm"),
        above.join("policy0.toml"),
    ] {
        let failure = refused(&host, &path.display().to_string()).await;
        assert_eq!(failure.kind, Kind::Denied, "{}: {}", path.display(), failure.message);
        assert!(failure.message.contains("which is Toolcrib's own"), "{}", failure.message);
    }
    assert_eq!(content(above.join("policy0.toml")), "[tools]\nshell_enabled = true\n");
    assert!(names(&dirs.plugins()).is_empty() && !dirs.settings().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_narrowed_to_a_directory_writes_there_alone() {
    let host = TestHost::new().without_canary();
    let (work, home) = (host.work(), host.home());
    std::fs::write(home.join("out"), "old").expect("a file");
    std::fs::hard_link(home.join("out"), work.join("hard")).expect("a hard link");
    symlink(home.join("out"), work.join("link")).expect("a link");
    let host = host.set(&format!("plugin.write_file.files.write=[{work:?}]"));
    write(&host, "in", "new").await;
    for path in ["~/out", "~/new", "link", "hard"] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
    }
    assert_eq!((content(home.join("out")), content(work.join("hard"))), ("old".into(), "old".into()));
    assert_eq!((names(&work), names(&home)), (["hard", "in", "link"].map(String::from).into(), vec!["out".to_owned()]));
    let failure = refused(&host, "~/new").await;
    assert_eq!(failure.hint, Some(format!("add {home:?} to `files.write` under [plugin.write_file]")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_may_only_read_writes_nowhere() {
    let host = TestHost::new().set("plugin.write_file.files.write=[]");
    assert_eq!(refused(&host, "a.txt").await.kind, Kind::Denied);
    assert!(names(&host.work()).is_empty());
}
