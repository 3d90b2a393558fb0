//! W-06: a page opens tabs by the hundred, the tabs open more, and all of them go on while no call runs.
//! Outcome: there are 8 tabs at any time; what is over is closed and told; tabs can be looked at and closed, and the session works on.
//! Switched off: with 40 tabs in place of 8 (`MOST_TABS` in `browser/running.rs`) there were more than the test lets be.

use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib::envelope::Kind;
use toolcrib_tests::browser::{Rig, Site, each, html, id_in};

/// Tabs of a browser.
const MOST: usize = 8;

async fn tabs(rig: &Rig) -> Vec<String> {
    let begin = Instant::now();
    let listed = rig.output("browser_tab_list", json!({})).await.expect("tabs");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let all = listed.result["tabs"].as_array().expect("a list");
    let ids: Vec<String> = all.iter().filter_map(|tab| Some(tab["tab"].as_str()?.to_owned())).collect();
    assert!(!ids.is_empty() && ids.len() <= MOST, "{listed:?}");
    ids
}

/// Case 14, by the hundred.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_tabs_is_bounded() {
    each("flood", async |rig| {
        let flood = "for (let n = 0; n < 100; n++) window.open('/own?' + Math.random());";
        let links = "for (let n = 0; n < 100; n++) { const a = document.createElement('a'); a.href = '/own'; a.target = '_blank'; document.body.append(a); a.click(); }";
        let start = format!("<title>Start</title><button onclick=\"{flood}\">windows</button><button onclick=\"{links}\">links</button>");
        // Where a browser lets it, each tab opens others at once and goes on with it.
        let own = format!("<title>Own</title><p>own</p><script>{flood} setInterval(() => window.open('/own'), 50);</script>");
        let site = Site::new(&[("/", html(&start)), ("/own", html(&own)), ("/good", html("<title>Good</title>"))]);
        rig.go(&site.url("/")).await;
        // Both buttons are found first: each look returns the notices so far, which no later one repeats.
        let page = rig.page().await;
        let button = |name: &str| page.lines().find(|line| line.contains(name)).and_then(id_in).expect("a button");
        let mut told = String::new();
        for element in [button("windows"), button("links")] {
            let clicked = rig.click(&element).await;
            told += &format!("{clicked:?}");
            tabs(&rig).await;
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(3) {
            tabs(&rig).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        // On a busy machine a tab does not answer in time and is closed: another one is the first then.
        let mut tries = 0;
        let (first, looked) = loop {
            let first = tabs(&rig).await.swap_remove(0);
            match rig.output("browser_snapshot", json!({ "tab": first })).await {
                Ok(looked) => break (first, looked),
                Err(failure) => assert!(tries < 5, "{first}: {failure:?}"),
            }
            tries += 1;
        };
        told += &format!("{looked:?}");
        println!("{} asked; {told}", site.asked().len());
        let is_told = |what: &str| told.contains(what);
        assert!(is_told("a page opened the tab t2"), "{told}");
        assert!(is_told("a page wanted to open another tab, which was closed: there are 8") || tabs(&rig).await.len() < MOST, "{told}");
        // The others are closed at once, as each that is left opens new ones, and the first tab goes elsewhere. Where the machine is too slow for
        // that, the answer says that the page did not load, and the browser is closed below.
        for _ in 0..3 {
            let all = tabs(&rig).await;
            let others = all.iter().filter(|tab| **tab != first);
            // One may be closed with what opened it.
            futures_util::future::join_all(others.map(|tab| rig.output("browser_tab_close", json!({ "tab": tab })))).await;
            let went = rig.output("browser_navigate", json!({ "tab": first, "url": site.url("/good") })).await;
            println!("{went:?}");
            match went {
                Ok(went) if went.result["title"] == "Good" => break,
                Ok(went) => assert!(went.notices.iter().any(|notice| notice.contains("did not end loading")), "{went:?}"),
                Err(failure) => assert!(matches!(failure.kind, Kind::TimedOut | Kind::Busy | Kind::ExecutionFailed), "{failure:?}"),
            }
        }
        rig.output("browser_close", json!({})).await.expect("an end");
        assert_eq!(rig.go(&site.url("/good")).await.result["title"], "Good");
        assert_eq!(tabs(&rig).await.len(), 1);
    })
    .await;
}
