//! W-05: a page opens dialogs without end: in a loop that never lets go, by a timer, when it is left, and with texts of many MiB.
//! Outcome: each is answered at once and told, each call comes back in its own time, and the next page works.
//! Switched off: with dialogs answered by nobody (`Known::answer` in `browser/running.rs`) a page between dialogs was shown to nobody and the test failed; a loop of them still cost one call, as its tab is given up.

use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib::envelope::Kind;
use toolcrib_tests::browser::{Rig, Site, each, html};

/// What a click may take on a page that holds everything up: two commands that are not answered, and the end of the tab.
const MOST: Duration = Duration::from_secs(30);

/// What is said by a call's notices, or by its failure.
async fn told(rig: &Rig, tool: &str, arguments: serde_json::Value) -> (Result<String, Kind>, String) {
    let begin = Instant::now();
    let outcome = rig.output(tool, arguments.clone()).await;
    let took = begin.elapsed();
    println!("{tool} {arguments}: {took:?}");
    assert!(took < MOST, "{tool} {arguments} took {took:?}");
    match outcome {
        Ok(output) => {
            let notices = format!("{:?}", output.notices);
            (Ok(output.result.to_string()), notices)
        }
        Err(failure) => (Err(failure.kind), failure.message),
    }
}

/// Case 13, without an end.
#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_dialogs_costs_one_call() {
    each("loops", async |rig| {
        let site = Site::new(&[
            ("/", html("<title>Good</title><p>here</p>")),
            ("/confirm", html("<title>Loop</title><button onclick=\"while (!confirm('sure?'));\">turn</button>")),
            ("/prompt", html("<title>Loop</title><button onclick=\"while (true) prompt('who?', 'x');\">turn</button>")),
            ("/alert", html("<title>Loop</title><button onclick=\"while (true) alert('hear!');\">turn</button>")),
            ("/print", html("<title>Loop</title><button onclick=\"while (true) print();\">turn</button>")),
        ]);
        for path in ["/confirm", "/prompt", "/alert", "/print"] {
            rig.go(&site.url(path)).await;
            let turn = rig.id("button \"turn\"").await;
            let (outcome, message) = told(&rig, "browser_click", json!({ "element": turn })).await;
            println!("{path}: {outcome:?} {message}");
            let (looked, notices) = told(&rig, "browser_snapshot", json!({})).await;
            println!("{path}: {looked:?} {notices}");
            let there = rig.go(&site.url("/")).await;
            assert_eq!(there.result["title"], "Good", "{path}: {there:?}");
            if path != "/print" {
                let all = format!("{message} {notices} {:?}", there.notices);
                assert!(all.contains("a dialog ("), "{path}: {all}");
            }
        }
    })
    .await;
}

/// A page that comes to itself between two dialogs, and one that wants to keep whoever leaves it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_between_dialogs_is_read_clicked_and_left() {
    each("timer", async |rig| {
        let timer = "<title>none</title><button onclick=\"document.title = 'pressed'\">Press</button><script>let n = 0;\
            const ask = () => { alert('number ' + ++n); confirm('sure?'); prompt('who?'); setTimeout(ask, 0); }; setTimeout(ask, 0);\
            onbeforeunload = e => { e.preventDefault(); e.returnValue = 'stay'; alert('stay!'); return 'stay'; };</script>";
        let long = "<title>none</title><script>setTimeout(() => { alert('x'.repeat(50 << 20)); prompt('y'.repeat(20 << 20), 'z'.repeat(20 << 20)); \
            document.title = 'over'; })</script><p>here</p>";
        let site = Site::new(&[("/", html("<title>Good</title>")), ("/timer", html(timer)), ("/long", html(long))]);
        rig.go(&site.url("/timer")).await;
        let press = rig.id("button \"Press\"").await;
        // A browser lets go of what is pressed when a dialog comes.
        let begin = Instant::now();
        let notices = loop {
            let (pressed, notices) = told(&rig, "browser_click", json!({ "element": press })).await;
            if pressed.as_ref().is_ok_and(|result| result.contains("pressed")) {
                break notices;
            }
            assert!(begin.elapsed() < Duration::from_secs(90), "{pressed:?}");
        };
        assert!(notices.contains("a dialog (confirm, dismissed) says: sure?"), "{notices}");
        // Many are like the first ones: they are told up to a number.
        assert!(notices.matches("a dialog (").count() <= 12, "{notices}");
        let left = rig.go(&site.url("/")).await;
        assert_eq!(left.result["title"], "Good", "{left:?}");
        rig.go(&site.url("/long")).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        // Its texts may hold it up for longer than a look waits.
        let begin = Instant::now();
        loop {
            let (looked, notices) = told(&rig, "browser_snapshot", json!({})).await;
            assert!(notices.len() < 16_000, "{looked:?} {}", notices.len());
            if looked.is_ok() {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(40), "{looked:?} {notices}");
        }
        assert_eq!(rig.go(&site.url("/")).await.result["title"], "Good");
    })
    .await;
}
