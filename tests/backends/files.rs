//! Files of a place: which paths a setting opens there, and that a write that fails leaves the old content alone.

use crate::link::Link;
use crate::rig::{Rig, each, start};
use crate::ssh::config_through;
use crate::targets::{Act, Container, Engine, Sshd, need_targets, ssh_flags};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use toolcrib_tests::envelope::said;
use toolcrib_tests::{Program, eventually};

/// Only below two directories of the place may be written, wherever links lead.
fn only_where_allowed(flags: &[String]) {
    let (program, root) = (Program::new(), format!("/tmp/crib-{}", std::process::id()));
    // `~` is the home there, not that of this machine.
    let allowed = format!("tools.files_allowed_paths=[\"{root}/allowed\", \"~/allowed\"]");
    let mut host = start(&program, flags, &[&allowed, "tools.shell_denylist=[]"]);
    let prepare = "rm -rf ROOT ~/allowed ~/closed && mkdir -p ROOT/allowed/sub ROOT/closed ~/allowed ~/closed && \
                   ln -s ROOT/closed ROOT/allowed/out && ln -s ~/closed ~/allowed/out && echo old >ROOT/closed/file && \
                   ln -s ROOT/closed/file ROOT/allowed/link && ln -s ROOT/allowed ROOT/closed/in";
    assert_eq!(host.output(&prepare.replace("ROOT", &root)), "");
    for path in ["ROOT/allowed/a", "ROOT/allowed/sub/../b", "~/allowed/c", "ROOT/closed/in/d", "/tmp/../ROOT/allowed/e"]
    {
        let path = path.replace("ROOT", &root);
        let answer = host.write_file(&path, "new");
        assert!(answer["error"].is_null(), "{path}: {answer}");
        assert_eq!(host.read_file(&path)["result"], "new", "{path}");
    }
    for path in [
        "ROOT/closed/new",
        "ROOT/closed/file",
        "ROOT/allowed/../closed/new",
        "ROOT/allowed/out/new",
        "ROOT/allowed/out/file",
        "ROOT/allowed/link",
        "ROOT/allowed-not/new",
        "ROOT/new",
        "~/closed/new",
        "~/allowed/out/new",
        "~/allowed/../closed/new",
        "new",
        "/etc/new",
    ] {
        let path = path.replace("ROOT", &root);
        let said = said(&host.write_file(&path, "new"));
        assert!(said.starts_with("denied: "), "{path}: {said}");
    }
    let home = program.path("home").display().to_string();
    let said = said(&host.write_file(&format!("{home}/allowed/new"), "new"));
    assert!(said.starts_with("denied: "), "the home of this machine: {said}");
    let left = "cat ROOT/closed/file; ls -A ~/closed; ls ROOT/closed; rm -rf ROOT ~/allowed ~/closed";
    assert_eq!(host.output(&left.replace("ROOT", &root)), "old\nfile\nin\n");
}

#[test]
fn allowed_paths_are_those_of_the_container() {
    need_targets!();
    let containers = [Container::new(Engine::Docker, "busybox"), Container::new(Engine::Docker, "debian")];
    each(&[0, 1], |number: usize| only_where_allowed(&containers[number].flags()));
}

#[test]
fn allowed_paths_are_those_of_the_host_behind_ssh() {
    need_targets!();
    let sshd = Sshd::new();
    only_where_allowed(&sshd.flags("crib"));
}

#[test]
fn nothing_is_written_where_nothing_may_be() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let mut rig = Rig::with(&container.flags(), false, &["tools.files_allowed_paths=\"none\""]);
    let said = said(&rig.write_file("/tmp/new", "new"));
    assert!(said.starts_with("denied: "), "{said}");
    assert_eq!(container.exec("ls -A /tmp"), "");
}

/// The system that a path leads to is the container's, whatever this machine has linked where.
#[test]
fn the_systems_directories_are_those_of_the_place() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    container.exec("mkdir -p /opt/system /opt/keys && rm -rf /sbin && ln -s /opt/system /sbin && ln -s /opt/keys /root/.ssh && echo SECRET >/opt/keys/id");
    let mut rig = Rig::new(&container.flags(), false);
    for path in ["/bin/new", "/sbin/new", "/opt/system/new", "/opt/keys/new"] {
        let said = said(&rig.write_file(path, "new"));
        assert!(said.starts_with("denied: "), "{path}: {said}");
    }
    for path in ["~/.ssh/id", "/opt/keys/id"] {
        let said = said(&rig.read_file(path));
        assert!(said.starts_with("denied: ") && !said.contains("SECRET"), "{path}: {said}");
    }
    assert_eq!(container.exec("find /opt/system /opt/keys -type f"), "/opt/keys/id");
}

/// A hard link is as good as the key itself. Other files with two names are read as before.
#[test]
fn a_second_name_of_a_key_is_closed_there_too() {
    need_targets!();
    let containers = [Container::new(Engine::Docker, "busybox"), Container::new(Engine::Docker, "debian")];
    each(&[0, 1], |number: usize| {
        let container = &containers[number];
        container.exec(
            "mkdir -p /root/.ssh /work && echo SECRET >/root/.ssh/id && ln /root/.ssh/id /work/notes && \
             echo plain >/work/a && ln /work/a /work/b && echo SECRET >/root/.netrc && ln /root/.netrc /work/c",
        );
        let mut rig = Rig::new(&container.flags(), false);
        for (path, root) in [("/work/notes", "/root/.ssh"), ("/work/c", "/root/.netrc")] {
            let said = said(&rig.read_file(path));
            let expected = format!("denied: `{path}` is closed to tools: it is also a file of `{root}`");
            assert!(said.starts_with(&expected) && !said.contains("SECRET"), "{said}");
        }
        assert_eq!(rig.read_file("/work/b")["result"], "plain\n");
        if number == 0 {
            return;
        }
        // Where nothing can compare, what has several names is not read.
        container.exec("rm -f \"$(command -v find)\"");
        let said = said(&rig.read_file("/work/b"));
        assert!(said.starts_with("denied: `/work/b` has several names"), "{said}");
        assert_eq!(rig.read_file("/etc/hostname")["error"], serde_json::Value::Null);
    });
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("a name in UTF-8")).collect();
    names.sort();
    names
}

/// The user behind ssh is no superuser, so the system refuses.
#[test]
fn what_the_system_refuses_leaves_the_old_content_and_nothing_beside_it() {
    need_targets!();
    let sshd = Sshd::new();
    let mut rig = Rig::new(&sshd.flags("crib"), false);
    rig.output(
        "mkdir locked dir && echo old >locked/file && chmod 555 locked && echo old >dir/readonly && chmod 444 dir/readonly && \
         echo old >dir/unreadable && chmod 000 dir/unreadable && mkdir dir/closed && echo old >dir/closed/file && chmod 000 dir/closed",
    );
    for path in ["locked/file", "locked/new", "dir/readonly", "dir/closed/file", "dir/closed/new"] {
        let said = said(&rig.write_file(path, "new"));
        assert!(said.starts_with("execution_failed: ") && said.contains("permission denied"), "writing {path}: {said}");
    }
    for path in ["dir/unreadable", "dir/closed/file"] {
        let said = said(&rig.read_file(path));
        assert!(said.starts_with("execution_failed: ") && said.contains("permission denied"), "reading {path}: {said}");
    }
    let left = "chmod 700 dir/closed && chmod 600 dir/unreadable; cat locked/file dir/readonly dir/unreadable dir/closed/file; \
                ls -A locked dir/closed; ls -l dir/readonly | grep -c '^-r--r--r--'";
    assert_eq!(rig.output(left), "old\nold\nold\nold\ndir/closed:\nfile\n\nlocked:\nfile\n1\n");
}

#[test]
fn a_disk_that_is_full_leaves_the_old_content_and_nothing_beside_it() {
    need_targets!();
    let container = Container::with(Engine::Docker, "busybox", &["--tmpfs", "/small:size=64k"]);
    let mut rig = Rig::new(&container.flags(), false);
    assert!(rig.write_file("/small/file", "old")["error"].is_null());
    let said = said(&rig.write_file("/small/file", &"new\n".repeat(256 << 10)));
    assert!(said.starts_with("execution_failed: "), "{said}");
    assert_eq!(rig.read_file("/small/file")["result"], "old");
    assert_eq!(container.exec("ls -A /small"), "file");
}

/// The link falls silent when half of the content has passed, and is cut then.
#[test]
fn a_link_that_is_cut_while_a_file_is_written_leaves_the_old_content() {
    need_targets!();
    let sshd = Sshd::new();
    let link = Link::to(sshd.port());
    let config = config_through(&sshd, &link);
    let mut rig = Rig::new(&ssh_flags("crib", &config), false);
    rig.output("mkdir dir");
    assert!(rig.write_file("dir/file", "old")["error"].is_null());
    link.fall_silent_behind(600_000);
    let content = "new\n".repeat(512 << 10);
    let id = rig.send("write_file", json!({ "path": "dir/file", "content": content }));
    eventually("the link has fallen silent", || link.is_silent());
    link.cut();
    let answer = rig.answer();
    let kind = &answer["error"]["kind"];
    assert!(answer["id"] == id && (*kind == "outcome_unknown" || *kind == "unavailable"), "{answer}");
    assert_eq!(rig.read_file("dir/file")["result"], "old");
    let directory = sshd.home("crib").join("dir");
    eventually("nothing is left beside it", || names(&directory) == ["file"]);
    assert!(rig.write_file("dir/file", &content)["error"].is_null());
    assert!(std::fs::read_to_string(directory.join("file")).expect("a file") == content);
}

/// Wherever in a write the container dies, the file is the old or the new one.
#[test]
fn a_container_that_dies_while_a_file_is_written_leaves_it_whole() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let contents = ["old\n", "new\n"].map(|line| line.repeat(512 << 10));
    let mut rig = Rig::new(&container.flags(), false);
    for pause_ms in [0, 20, 60, 120] {
        assert!(rig.write_file("/tmp/file", &contents[0])["error"].is_null());
        rig.send("write_file", json!({ "path": "/tmp/file", "content": contents[1] }));
        // Each time a little later.
        std::thread::sleep(Duration::from_millis(pause_ms));
        container.act(Act::Stop);
        let answer = rig.answer();
        container.act(Act::Start);
        let found = container.exec("wc -c </tmp/file; uniq -c /tmp/file");
        let of = |line: &str| format!("{}{line}", 512 << 10);
        let found: String = found.split_whitespace().skip(1).collect();
        let is_known = answer["error"].is_null();
        assert!(found == of("new") || found == of("old") && !is_known, "behind {pause_ms} ms: {found}: {answer}");
    }
}
