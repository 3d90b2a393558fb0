//! W-07: a page grows to more than 2 GiB: of texts, of nodes, of buffers; or one look at it would bring the host tens of MiB.
//! Outcome: calls come back in their time, with what is there or why not; the host grows by less than 64 MiB, a process of the browser to 4 GiB at most, and the next page works.
//! Switched off: without `ulimit` (`ON_PIPE` in `browser/program.rs`) a page came to 6 GiB; without the count of nodes (`size` in `browser/tree.rs`) the test of the host stayed green.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::browser::{Page, Site, client, html, processes_of, programs};
use toolcrib_tests::{Program, memory_kib, resident_kib};

/// How long a page may take to grow, where it has to become large, and a call to come back.
const GROWS: Duration = Duration::from_secs(8);
const BECOMES_LARGE: Duration = Duration::from_secs(60);
const CALL: Duration = Duration::from_secs(40);
/// What the host may have more afterwards, and at any time.
const MORE_KIB: u64 = 64 << 10;
const PEAK_KIB: u64 = 400 << 10;
/// What the texts and the buffers come to, at least.
const LARGE_KIB: u64 = 2 << 20;

/// A page that grows in steps, and then says that it is done.
fn grows(step: &str, steps: u32) -> Page {
    html(&format!(
        "<title>Grows</title><button>Press</button><div id=d hidden></div><div id=s></div><script>const kept = []; let n = 0;\
         const grow = () => {{ if (n++ == {steps}) return fetch('/grown'); {step}; setTimeout(grow, 0); }}; setTimeout(grow, 0);</script>"
    ))
}

/// The memory of a browser's processes that is theirs alone.
fn of_browser(program: &Program) -> u64 {
    let all = processes_of(&program.path("state"));
    let own = |(pid, _): &(u32, String)| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    };
    all.iter().map(own).sum::<u64>()
}

#[test]
fn a_page_that_grows_costs_its_own_memory() {
    let label = "const b = document.createElement('button'); b.ariaLabel = 'x'.repeat(500000) + i; s.append(b)";
    let pages = [
        ("/texts", grows("for (let i = 0; i < 64; i++) d.append('x'.repeat(1 << 20) + n + i)", 40)),
        ("/buffers", grows("kept.push(new Uint8Array(64 << 20).fill(n + 1))", 40)),
        ("/nodes", grows("for (let i = 0; i < 500000; i++) d.append(document.createElement('b'))", 40)),
        ("/labels", grows(&format!("for (let i = 0; i < 50; i++) {{ {label} }}"), 1)),
        ("/good", html("<title>Good</title>")),
        ("/grown", html("")),
    ];
    for browser in programs("memory") {
        let (site, program) = (Site::new(&pages), Program::new());
        let mut host = client(&program, browser);
        host.result("browser_navigate", json!({ "url": site.url("/good") }));
        let before = resident_kib(host.pid());
        for (path, _) in &pages[..4] {
            let mut timed = |tool: &str, arguments: Value| {
                let begin = Instant::now();
                let answer = host.call(tool, arguments);
                println!("{path}: {tool} after {:?}: {:.120}", begin.elapsed(), answer["error"].to_string());
                assert!(begin.elapsed() < CALL, "{path}: {tool} took {:?}", begin.elapsed());
                answer
            };
            let grown = || site.asked().iter().filter(|asked| *asked == "/grown").count();
            let has_to = ["/texts", "/buffers"].contains(path);
            let (begin, done) = (Instant::now(), grown());
            timed("browser_navigate", json!({ "url": site.url(path) }));
            while grown() == done && begin.elapsed() < GROWS {
                std::thread::sleep(Duration::from_millis(50));
            }
            while has_to && of_browser(&program) <= LARGE_KIB && begin.elapsed() < BECOMES_LARGE {
                std::thread::sleep(Duration::from_millis(50));
            }
            let has = of_browser(&program);
            println!("{path}: {} MiB after {:?}, all: {}", has >> 10, begin.elapsed(), grown() > done);
            assert!(!has_to || has > LARGE_KIB, "{path} came to {has} KiB");
            timed("browser_snapshot", json!({}));
            // The tab may have been lost with what was in it.
            let mut good = || timed("browser_navigate", json!({ "url": site.url("/good") }));
            let next = [good(), good()];
            assert_eq!(next[1]["result"]["title"], "Good", "{path}: {next:?}");
        }
        let (after, peak) = (resident_kib(host.pid()), memory_kib(host.pid(), "VmHWM"));
        println!("{before} KiB, then {after} KiB, at most {peak} KiB");
        assert!(after.saturating_sub(before) < MORE_KIB, "{before} KiB, then {after} KiB");
        assert!(peak.saturating_sub(before) < PEAK_KIB, "{before} KiB, at most {peak} KiB");
    }
}

/// A page that goes on for ever comes to an end.
#[test]
fn no_page_has_more_than_4_gib() {
    let pages = [
        ("/endless", grows("kept.push(new Uint8Array(64 << 20).fill(n + 1))", 96)),
        ("/good", html("<title>Good</title>")),
        ("/grown", html("")),
    ];
    for browser in programs("memory") {
        let (site, program) = (Site::new(&pages), Program::new());
        let mut host = client(&program, browser);
        host.call("browser_navigate", json!({ "url": site.url("/endless") }));
        let (begin, mut most) = (Instant::now(), 0);
        while begin.elapsed() < GROWS * 2 || most <= 1 << 20 && begin.elapsed() < BECOMES_LARGE {
            most = of_browser(&program).max(most);
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("at most {} MiB", most >> 10);
        assert!(most > 1 << 20, "it did not grow: {most} KiB");
        // All processes of the browser together.
        assert!(most < 5 << 20 && !site.asked().contains(&"/grown".to_owned()), "it came to {most} KiB");
        let mut good = || host.call("browser_navigate", json!({ "url": site.url("/good") }));
        let next = [good(), good()];
        assert_eq!(next[1]["result"]["title"], "Good", "{next:?}");
    }
}
