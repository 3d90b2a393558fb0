//! The browser as a program: how it is confined, and how it ends.

use crate::rig::{Login, Page, Rig, Site, client, command_line, each, html, login, processes_of, programs};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::Kind;
use toolcrib_tests::processes::lives;
use toolcrib_tests::{MOUNT, Program};

/// The processes of this test's browsers, each with its seccomp mode.
fn processes(rig: &Rig) -> Vec<(u32, String)> {
    processes_of(&rig.host.dirs().state)
}

async fn until_gone(rig: &Rig) {
    let begin = Instant::now();
    while !processes(rig).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", processes(rig));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A command of the program with these arguments, where something is refused.
type Way<'w> = dyn Fn(&[&str]) -> Command + 'w;

/// Case 2: where the system lets nobody make namespaces, and where it lets nobody mount.
#[test]
#[expect(clippy::disallowed_methods, reason = "the program where the system refuses something")]
fn without_a_cell_no_browser_is_started() {
    for browser in programs("no cell") {
        let program = Program::new();
        let set = format!("tools.browser_program={browser}");
        let call = ["--set", &set, "call", "browser_navigate", r#"{"url":"https://example.com/"}"#];
        let without_namespaces = |arguments: &[&str]| {
            let given = program.command(arguments);
            let mut command = Command::new("unshare");
            let refuses = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
            command.args(["--user", "--map-root-user", "sh", "-c", refuses, "sh"]).arg(given.get_program());
            command.args(given.get_args()).current_dir(program.path("work")).env_clear();
            command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command
        };
        let ways: [(&str, &Way<'_>); 2] =
            [("namespaces", &without_namespaces), ("mounts", &|arguments| program.failing(&[MOUNT], arguments))];
        for (what, command) in ways {
            let said = |arguments: &[&str]| {
                let output = command(arguments).stdin(Stdio::null()).output().expect("it starts");
                String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
            };
            let called = said(&call);
            println!("{what}: {called}");
            let envelope: Value = called.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
            let error = &envelope["error"];
            assert_eq!(error["kind"], "unavailable", "{what}: {called}");
            assert!(
                error["message"].as_str().is_some_and(|why| why.contains("a browser cannot be confined here")),
                "{error}"
            );
            assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("`toolcrib doctor`")), "{error}");
            let doctor = said(&["--set", &set, "doctor"]).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(doctor.contains("a browser cannot be confined here"), "{what}: {doctor}");
            println!("{what}: {doctor}");
            assert_eq!(processes_of(&program.path("state")), [], "{what}");
        }
    }
}

/// Case 23: no process of a browser outlives its host, however that ends.
#[test]
fn a_browser_ends_with_its_host() {
    for browser in programs("host killed") {
        let site =
            Site::new(&[("/", html("<title>Here</title><iframe src=/other></iframe>")), ("/other", html("other"))]);
        for signal in ["KILL", "TERM"] {
            let program = Program::new();
            let mut host = client(&program, browser);
            let there = host.result("browser_navigate", json!({ "url": site.url("/") }));
            assert_eq!(there["title"], "Here", "{there}");
            let state = program.path("state");
            let all = processes_of(&state);
            assert!(all.len() >= 3, "{all:?}");
            let begin = Instant::now();
            host.signal(signal);
            // Also those that are nobody's children now.
            let left = || all.iter().filter(|(pid, _)| lives(&pid.to_string())).count() + processes_of(&state).len();
            while left() > 0 {
                assert!(begin.elapsed() < Duration::from_secs(10), "{signal}: {} are left", left());
                std::thread::sleep(Duration::from_millis(5));
            }
            println!("{signal}: {} processes were gone after {:?}", all.len(), begin.elapsed());
            // What stays of a host that was killed is swept by the next one.
            drop(host);
            let mut next = client(&program, browser);
            next.result("browser_navigate", json!({ "url": site.url("/") }));
            let profiles = std::fs::read_dir(state.join("toolcrib/browser/passing")).expect("profiles").count();
            assert_eq!(profiles, 2, "a profile and its lock");
        }
    }
}

/// Case 3: with its own sandbox, in a cell.
#[tokio::test(flavor = "multi_thread")]
async fn it_runs_in_a_cell_with_its_own_sandbox() {
    each("sandbox", async |rig| {
        let site = Site::new(&[("/", html("<title>Here</title>"))]);
        rig.go(&site.url("/")).await;
        let all = processes(&rig);
        assert!(all.len() >= 3, "{all:?}");
        let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
        let mut renderers = 0;
        for (pid, seccomp) in &all {
            let line = command_line(*pid);
            assert!(!line.contains("--no-sandbox"), "{line}");
            assert_eq!(seccomp, "2", "{line}");
            if line.contains("--type=renderer") {
                renderers += 1;
                let user = std::fs::read_link(format!("/proc/{pid}/ns/user")).expect("a namespace");
                let browser = all.iter().find(|(pid, _)| !command_line(*pid).contains("--type=")).map(|(pid, _)| *pid);
                let browsers = std::fs::read_link(format!("/proc/{}/ns/user", browser.expect("the browser")))
                    .expect("a namespace");
                assert_ne!(user, browsers, "{line}");
            }
            assert_ne!(std::fs::read_link(format!("/proc/{pid}/ns/net")).ok().as_ref(), Some(&own), "{line}");
        }
        assert!(renderers > 0, "{all:?}");
    })
    .await;
}

/// Its cell has nothing of the user's, and of the machine what a program needs.
#[tokio::test(flavor = "multi_thread")]
async fn it_sees_its_profile_and_the_system_alone() {
    each("cell", async |rig| {
        let site = Site::new(&[("/", html("<title>Here</title>"))]);
        rig.go(&site.url("/")).await;
        let all = processes(&rig);
        let (browser, _) = all
            .iter()
            .find(|(pid, _)| command_line(*pid).contains("--user-data-dir") && !command_line(*pid).contains("--type="))
            .expect("a browser");
        let root = Path::new("/proc").join(browser.to_string()).join("root");
        let listed = |path: &str| {
            let entries = std::fs::read_dir(root.join(path))
                .map(|all| all.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect());
            entries.unwrap_or_else(|_| Vec::<String>::new())
        };
        for hidden in ["root", "home", "var", "srv", "mnt", "boot", "run/systemd", "run/dbus"] {
            assert_eq!(listed(hidden), [] as [String; 0], "{hidden}");
        }
        // Root outside may read all of it.
        for hidden in ["etc/shadow", "etc/group-", "etc/ssh", "etc/ssl/private", "etc/machine-id", "etc/hostname"] {
            assert!(!root.join(hidden).exists(), "{hidden}");
        }
        assert!(!listed("usr").is_empty() && !listed("etc/fonts").is_empty() && root.join("etc/passwd").exists());
        let work = rig.host.work();
        assert!(!root.join(work.strip_prefix("/").expect("a path")).exists(), "the working directory is seen");
        // It cannot write what the system brings.
        let mounts = std::fs::read_to_string(format!("/proc/{browser}/mountinfo")).expect("mounts");
        let slash = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).expect("the root");
        assert!(
            slash.split(' ').nth(5).is_some_and(|options| options.split(',').any(|option| option == "ro")),
            "{slash}"
        );
    })
    .await;
}

/// What the full one is told by a policy, which it obeys besides the host.
#[tokio::test(flavor = "multi_thread")]
async fn the_full_one_has_a_policy_of_its_own() {
    each("policy", async |rig| {
        let page = "<title>Start</title><p id=out></p><script>navigator.permissions.query({ name: 'accelerometer' })\
            .then(found => out.textContent = 'sensors are ' + found.state)</script>";
        let site = Site::new(&[("/", html(page))]);
        rig.go(&site.url("/")).await;
        rig.output("browser_wait", json!({ "text": "sensors are" })).await.expect("an answer");
        let (browser, _) = processes(&rig)
            .into_iter()
            .find(|(pid, _)| command_line(*pid).contains("--user-data-dir") && !command_line(*pid).contains("--type="))
            .expect("a browser");
        let place =
            Path::new("/proc").join(browser.to_string()).join("root/etc/chromium/policies/managed/zz-toolcrib.json");
        let is_full = !command_line(browser).contains("headless-shell");
        assert_eq!(place.exists(), is_full && Path::new("/etc/chromium").is_dir(), "{place:?}");
        if place.exists() {
            let page = rig.page().await;
            assert!(page.contains("sensors are denied"), "{page}");
            let ends = std::fs::OpenOptions::new().append(true).open(&place);
            let mounts = std::fs::read_to_string(format!("/proc/{browser}/mountinfo")).expect("mounts");
            let laid = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/etc/chromium")).map(str::to_owned);
            assert!(ends.is_err() && laid.is_some_and(|line| line.contains(" ro,")), "{mounts}");
        }
    })
    .await;
}

/// Case 21.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_runs_for_ever_loses_its_tab_alone() {
    each("loops", async |rig| {
        let site = Site::new(&[
            ("/", html("<title>Good</title><p>here</p>")),
            ("/loop", html("<title>Loop</title><button onclick=\"while (true);\">turn</button>")),
        ]);
        rig.go(&site.url("/")).await;
        rig.output("browser_tab_open", json!({ "url": site.url("/loop") })).await.expect("a tab");
        let stuck = rig.click(&rig.id("button \"turn\"").await).await.expect_err("it does not end");
        assert_eq!(stuck.kind, Kind::TimedOut, "{stuck:?}");
        let other = rig.output("browser_snapshot", json!({ "tab": "t1" })).await.expect("the other tab");
        assert!(other.result["page"].as_str().is_some_and(|page| page.contains("here")), "{other:?}");
        assert_eq!(rig.go(&site.url("/")).await.result["title"], "Good");
    })
    .await;
}

/// Case 22.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_killed_is_told_once_and_then_works() {
    each("killed", async |rig| {
        let site = Site::new(&[("/", html("<title>Here</title><p>here</p>"))]);
        rig.go(&site.url("/")).await;
        let kill = |wanted: &str| {
            let all = processes(&rig);
            let found = all.iter().filter(|(pid, _)| {
                let line = command_line(*pid);
                if wanted.is_empty() {
                    !line.contains("--type=") && line.contains("--user-data-dir")
                } else {
                    line.contains(wanted)
                }
            });
            found.for_each(|(pid, _)| {
                let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a number");
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            });
        };
        kill("--type=renderer");
        // The browser has to notice, and nothing tells when it has.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let crashed = rig.output("browser_snapshot", json!({})).await.expect_err("it has crashed");
        assert_eq!(crashed.kind, Kind::Unavailable, "{crashed:?}");
        assert_eq!(rig.go(&site.url("/")).await.result["title"], "Here");
        kill("");
        tokio::time::sleep(Duration::from_millis(500)).await;
        let gone = rig.output("browser_snapshot", json!({})).await.expect_err("it is gone");
        assert_eq!(gone.kind, Kind::Unavailable, "{gone:?}");
        until_gone(&rig).await;
        assert_eq!(rig.go(&site.url("/")).await.result["title"], "Here");
        rig.output("browser_close", json!({})).await.expect("an end");
        until_gone(&rig).await;
    })
    .await;
}

/// Case 25: a profile that goes with its session leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_ends_with_its_session_and_leaves_nothing() {
    each("ends", async |rig| {
        let site = Site::new(&[("/", html("<title>Here</title>"))]);
        rig.go(&site.url("/")).await;
        let profiles = rig.host.dirs().state.join("browser/passing");
        let count = || std::fs::read_dir(&profiles).expect("profiles").count();
        assert_eq!(count(), 2, "a profile and its lock");
        rig.output("browser_close", json!({})).await.expect("an end");
        until_gone(&rig).await;
        let begin = Instant::now();
        while count() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(10), "the profile is there still");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// Case 24: a login stays in a profile that stays, which one browser at a time has.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_granted_stays() {
    each("profiles", async |rig| {
        let rig = rig.set("plugin.browser.browser.profiles=[\"work\"]");
        let cookie =
            Page { headers: vec![("set-cookie", "login=yes; max-age=86400".into())], ..html("<title>In</title>") };
        let show = html("<p id=out></p><script>out.textContent = 'cookie: ' + document.cookie</script>");
        let site = Site::new(&[("/", cookie), ("/show", show)]);
        let open = json!({ "url": site.url("/"), "profile": "work" });
        rig.output("browser_tab_open", open.clone()).await.expect("a tab");
        let other = rig.output("browser_tab_open", json!({ "url": site.url("/"), "profile": "other" })).await;
        let other = other.expect_err("it is not granted");
        assert!(
            other.kind == Kind::Denied && other.hint.as_deref().is_some_and(|hint| hint.contains("browser.profiles")),
            "{other:?}"
        );
        rig.output("browser_close", json!({})).await.expect("an end");
        until_gone(&rig).await;
        rig.output("browser_tab_open", json!({ "url": site.url("/show"), "profile": "work" })).await.expect("a tab");
        assert!(rig.page().await.contains("cookie: login=yes"), "{}", rig.page().await);
        // Without that profile it is not there.
        rig.output("browser_tab_open", json!({ "url": site.url("/show") })).await.expect("a tab");
        assert!(!rig.page().await.contains("login"), "{}", rig.page().await);
    })
    .await;
}

/// Case 24: a profile that stays is one browser's at a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_somebody_uses_is_busy() {
    each("busy", async |rig| {
        let rig = rig.set("plugin.browser.browser.profiles=[\"work\"]");
        let site = Site::new(&[("/", html("<title>Here</title>"))]);
        let open = json!({ "url": site.url("/"), "profile": "work" });
        rig.output("browser_tab_open", open.clone()).await.expect("a tab");
        let other = async || {
            let (host, context) = rig.host.parts();
            let request = Request { tool: "browser_tab_open".into(), arguments: Arguments::Json(open.clone()) };
            host.call(request, &context.clone().session(Arc::new(Session::default()))).await.outcome
        };
        let other_session = other().await;
        let busy = other_session.expect_err("it is in use");
        assert!(busy.kind == Kind::Busy && busy.message.contains("`work` is in use"), "{busy:?}");
        rig.output("browser_close", json!({})).await.expect("an end");
        until_gone(&rig).await;
        other().await.expect("it is free");
    })
    .await;
}

/// Nothing that lies in a profile leads the host to write elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_a_profile_leads_nowhere() {
    each("links", async |rig| {
        let Login { rig, own_url, .. } = login(rig, |_, _| [vec![], vec![]]);
        let rig = rig.set("plugin.browser.browser.profiles=[\"work\"]");
        let open = json!({ "url": own_url, "profile": "work" });
        rig.output("browser_tab_open", open.clone()).await.expect("a tab");
        rig.output("browser_close", json!({})).await.expect("an end");
        until_gone(&rig).await;
        let profile = rig.host.dirs().state.join("browser/profiles/work");
        let outside = rig.host.home().join("outside");
        std::fs::create_dir(&outside).expect("a directory");
        std::fs::remove_dir_all(profile.join(".pki")).expect("a store");
        std::os::unix::fs::symlink(&outside, profile.join(".pki")).expect("a link");
        std::os::unix::fs::symlink(outside.join("file"), profile.join("certificate.der")).expect("a link");
        // It does not know the authority now, and so not the site.
        let there = rig.output("browser_tab_open", open).await;
        assert_eq!(std::fs::read_dir(&outside).expect("a directory").count(), 0, "{there:?}");
        let told = match there {
            Ok(output) => format!("{:?}", output.notices),
            Err(failure) => failure.message,
        };
        assert!(told.contains("CERT") || told.contains("certificates"), "{told}");
    })
    .await;
}

/// What a page connects to while no call runs is on the record of the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_connected_to_between_calls_is_on_record() {
    each("between", async |rig| {
        let rig = rig.set("tools.fetch_private_ranges=[\"127.0.0.1\"]");
        let page = "<title>none</title><script>setTimeout(() => { fetch('http://127.0.0.3:8099/', {mode: 'no-cors'}).catch(() => {}) }, 4000)</script>";
        let site = Site::new(&[("/", html(page))]);
        rig.go(&site.url("/")).await;
        tokio::time::sleep(Duration::from_secs(8)).await;
        rig.output("browser_tab_list", json!({})).await.expect("tabs");
        let audit = format!("{:?}", rig.host.audit());
        assert!(audit.contains("connect to 127.0.0.3:8099, before this call"), "{audit}");
    })
    .await;
}

/// An answer that is too long is that command's failure, and no browser's end.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_ends_nothing() {
    each("long", async |rig| {
        let rig = rig.set("plugin.browser.browser.evaluate=true");
        let site = Site::new(&[("/", html("<title>Here</title><p>here</p>"))]);
        rig.go(&site.url("/")).await;
        let long = rig.output("browser_evaluate", json!({ "script": "'x'.repeat(80 << 20)" })).await;
        let long = long.expect_err("it is too long");
        assert!(long.message.contains("more than 64 MiB"), "{long:?}");
        assert!(rig.page().await.contains("here"));
        let next = rig.output("browser_evaluate", json!({ "script": "1 + 1" })).await.expect("a value");
        assert_eq!(next.result["result"], json!(2));
    })
    .await;
}
