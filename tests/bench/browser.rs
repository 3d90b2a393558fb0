//! What a browser costs: its start, a page of 1,732 elements as text, a click, and what the host itself needs beside it.

use crate::{quantile, row};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use toolcrib_tests::{TestHost, resident_kib, serve};

/// Those of Debian.
const PROGRAMS: [&str; 2] = ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium"];
const TIMES: usize = 20;

pub(crate) fn browser() {
    let rows: String = (0..286)
        .map(|row| {
            format!(
                "<tr><td><a href=#r{row}>order {row}</a></td><td><button>pay {row}</button></td><td>{} EUR</td></tr>",
                row * 7
            )
        })
        .collect();
    let large = format!("<!doctype html><title>large</title><h1>Orders</h1><table>{rows}</table>");
    let address =
        serve(
            move |path| {
                if path == "/large" { large.clone() } else { "<title>small</title><button>one</button>".into() }
            },
        );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for program in PROGRAMS {
        if !Path::new(program).exists() {
            println!("browser: {program} is not installed");
            continue;
        }
        let name = program.rsplit('/').next().unwrap_or(program);
        let host = TestHost::new()
            .set(&format!("tools.browser_program={program}"))
            .set("tools.fetch_private_ranges=[\"127.0.0.1\"]");
        let call = |tool: &str, arguments: Value| runtime.block_on(host.result(tool, arguments));
        let timed = |each: &dyn Fn() -> Duration| {
            let mut times: Vec<Duration> = (0..TIMES).map(|_| each()).collect();
            times.sort();
            format!("p50 {:.0?}", quantile(&times, 50))
        };
        // What is compiled and loaded once is no part of it.
        call("browser_tab_list", json!({}));
        let before = resident_kib(std::process::id());
        let started = timed(&|| {
            let begun = Instant::now();
            call("browser_tab_open", json!({}));
            let took = begun.elapsed();
            call("browser_close", json!({}));
            took
        });
        row(&format!("{name}: start to first answer"), "<= 200 ms", &started, "", "");
        let went = timed(&|| {
            let begun = Instant::now();
            call("browser_navigate", json!({ "url": format!("http://{address}/large") }));
            call("browser_snapshot", json!({}));
            begun.elapsed()
        });
        row(&format!("{name}: navigate to 1,732 elements, and a snapshot"), "<= 250 ms", &went, "", "");
        let after = resident_kib(std::process::id());
        let clicked = |url: &str, line: &str| {
            call("browser_navigate", json!({ "url": url }));
            let page = call("browser_snapshot", json!({ "max_chars": 100_000 }))["page"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let found = page.lines().find(|found| found.contains(line)).expect("the button");
            let element = found.rsplit_once('[').and_then(|(_, id)| id.strip_suffix(']')).expect("an id").to_owned();
            timed(&|| {
                let begun = Instant::now();
                call("browser_click", json!({ "element": element }));
                begun.elapsed()
            })
        };
        let there = clicked(&format!("http://{address}/large"), "button \"pay 5\"");
        row(&format!("{name}: a click there"), "<= 60 ms", &there, "", "");
        let small = clicked(&format!("http://{address}/"), "button \"one\"");
        row(&format!("{name}: a click on a small page, with what changed"), "", &small, "", "");
        row(
            &format!("{name}: memory of the host"),
            "<= 10 MiB",
            &format!("{} KiB more", after.saturating_sub(before)),
            "",
            "",
        );
    }
}
