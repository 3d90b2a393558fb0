//! What no reading reaches: the kernel's trees, keys, Toolcrib's own state; and what a narrowed plugin may still read.

use super::{read, refused};
use std::os::unix::fs::{PermissionsExt, symlink};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

/// A host whose user keeps a secret under this name below the home.
fn keeping(name: &str) -> TestHost {
    let host = TestHost::new();
    let path = host.home().join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    std::fs::write(path, "SECRET").expect("a file");
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trees_of_the_kernel_are_closed() {
    let host = TestHost::new();
    for path in [
        "/dev/zero",
        "/dev/stdin",
        "/dev/fd/0",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/Cargo.toml",
        "/proc/1/status",
        "/proc/../proc/self/environ",
        "/etc/../proc/self/environ",
        "//proc/self/environ",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
        assert!(failure.message.contains("which file tools never access"), "{path}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_into_the_trees_of_the_kernel_is_closed() {
    let host = TestHost::new();
    symlink("/proc/self/environ", host.work().join("environ")).expect("a link");
    symlink("/proc/self", host.work().join("self")).expect("a link");
    symlink("/dev/zero", host.work().join("zero")).expect("a link");
    for path in ["environ", "self/environ", "self/../1/status", "zero"] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
        assert!(failure.message.contains("which file tools never access"), "{path}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_other_services_are_closed() {
    for name in [".ssh/id_ed25519", ".ssh/deep/er/key", ".gnupg/secring.gpg", ".aws/credentials", ".kube/config"] {
        let host = keeping(name);
        let absolute = host.home().join(name).display().to_string();
        for path in [
            format!("~/{name}"),
            format!("~/./{name}"),
            format!("~/../home/{name}"),
            format!("../home/{name}"),
            absolute,
        ] {
            let failure = refused(&host, &path).await;
            assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
            assert!(failure.message.contains("is closed to tools"), "{path}: {}", failure.message);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_setting_opens_the_keys_for_reading() {
    let host = keeping(".ssh/id");
    let home = host.home();
    let host = host
        .set(&format!("tools.files_allowed_paths=[{:?}, {:?}]", home, home.join(".ssh")))
        .set(&format!("plugin.read_file.files.read=[{:?}]", home.join(".ssh")));
    assert_eq!(refused(&host, "~/.ssh/id").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_with_a_similar_name_is_open() {
    let host = keeping(".sshrc");
    assert_eq!(read(&host, "~/.sshrc").await.result, "SECRET");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_secret_is_closed_however_long_the_chain() {
    let host = keeping(".ssh/id");
    let link = |to: &str, name: &str| symlink(to, host.work().join(name)).expect("a link");
    link("../home/.ssh/id", "one");
    link("one", "two");
    link("./two", "three");
    link("../home/.ssh", "directory");
    link("directory", "again");
    for path in ["one", "two", "three", "directory/id", "again/id", "again/../.ssh/id"] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_lie_behind_a_link_are_closed_under_both_names() {
    let host = keeping("dotfiles/ssh/id");
    symlink("dotfiles/ssh", host.home().join(".ssh")).expect("a link");
    for path in ["~/.ssh/id", "~/dotfiles/ssh/id"] {
        assert_eq!(refused(&host, path).await.kind, Kind::Denied, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_directory_that_becomes_a_link_while_the_host_runs_stay_closed() {
    let host = keeping("dotfiles/ssh/id");
    assert_eq!(read(&host, "~/dotfiles/ssh/id").await.result, "SECRET");
    symlink("dotfiles/ssh", host.home().join(".ssh")).expect("a link");
    assert_eq!(refused(&host, "~/.ssh/id").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_reached_through_a_link_is_the_links_own() {
    let host = keeping(".ssh/id");
    std::fs::create_dir(host.home().join(".ssh/deep")).expect("a directory");
    symlink("../home/.ssh/deep", host.work().join("link")).expect("a link");
    std::fs::write(host.work().join("id"), "harmless").expect("a file");
    assert_eq!(refused(&host, "link/../id").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn toolcribs_own_state_is_closed() {
    let host = TestHost::new();
    host.shell("seq 5000").await;
    let state = host.dirs().state;
    let files: Vec<_> =
        std::fs::read_dir(&state).expect("the state").map(|entry| entry.expect("an entry").path()).collect();
    let files: Vec<_> = files.into_iter().filter(|path| path.is_file()).collect();
    assert!(files.len() >= 2, "the audit trail and a key at least: {files:?}");
    for path in files {
        let failure = refused(&host, &path.display().to_string()).await;
        assert_eq!(failure.kind, Kind::Denied, "{}", failure.message);
        assert!(failure.message.contains("which is Toolcrib's own"), "{}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_narrowed_to_a_directory_reads_there_alone() {
    let host = TestHost::new();
    let (work, home) = (host.work(), host.home());
    std::fs::write(work.join("in.txt"), "in").expect("a file");
    std::fs::write(home.join("out.txt"), "out").expect("a file");
    std::fs::create_dir(home.join("dir")).expect("a directory");
    std::fs::create_dir(work.parent().expect("a directory").join("workshop")).expect("a directory");
    std::fs::write(work.parent().expect("a directory").join("workshop/out.txt"), "out").expect("a file");
    symlink(home.join("out.txt"), work.join("file")).expect("a link");
    symlink(home.join("dir"), work.join("dir")).expect("a link");
    std::fs::hard_link(home.join("out.txt"), work.join("hard")).expect("a hard link");
    let host = host.set(&format!("plugin.read_file.files.read=[{work:?}]"));
    assert_eq!(read(&host, "in.txt").await.result, "in");
    for path in ["~/out.txt", "../home/out.txt", "file", "dir/../out.txt", "../workshop/out.txt", "hard", "/etc/passwd"]
    {
        assert_eq!(refused(&host, path).await.kind, Kind::Denied, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hint_of_a_refused_read_opens_it_when_followed() {
    let narrowed = TestHost::new();
    let narrowed = narrowed.set("plugin.read_file.files.read=[]");
    std::fs::write(narrowed.home().join("out.txt"), "out").expect("a file");
    let hint = refused(&narrowed, "~/out.txt").await.hint.expect("a hint");
    assert_eq!(hint, format!("add {:?} to `files.read` under [plugin.read_file]", narrowed.home()));
    let opened = keeping("out.txt");
    let setting = format!("plugin.read_file.files.read=[{:?}]", opened.home());
    assert_eq!(read(&opened.set(&setting), "~/out.txt").await.result, "SECRET");
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_output_is_no_way_to_what_lies_beside_it() {
    let host = TestHost::new();
    host.shell("seq 5000").await;
    let output = host.dirs().output();
    let token = output.parent().expect("a directory").join("serve.token");
    std::fs::write(&token, "SECRET").expect("a file");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    std::fs::create_dir(output.join("below")).expect("a directory");
    for way in ["../serve.token", "./../serve.token", "below/../../serve.token"] {
        let path = output.join(way).display().to_string();
        assert_eq!(refused(&host, &path).await.kind, Kind::Denied, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_narrowed_to_a_directory_reads_no_kept_output() {
    let host = TestHost::new();
    let work = host.work();
    let host = host.set(&format!("plugin.read_file.files.read=[{work:?}]"));
    host.shell("seq 5000").await;
    let mut kept = std::fs::read_dir(host.dirs().output()).expect("a directory");
    let path = kept.next().expect("kept output").expect("a name").path().display().to_string();
    assert_eq!(refused(&host, &path).await.kind, Kind::Denied, "{path}");
}
