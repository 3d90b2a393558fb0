//! What it costs to keep something and to find it: `note_save` with both kinds of `sync`, beside `time`; words among 10^5 documents; memories
//! among 10^5 by words, and with vectors of 384 numbers.

use crate::{asking, quantile, quiet, ratio, row, served, time};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use toolcrib::config::Config;
use toolcrib_tests::{Program, Running, TestHost, resident_kib};

const DOCUMENTS: usize = 100_000;
/// Words of a document, and of the vocabulary that they are drawn from: each is in about 200 of the documents.
const WORDS: usize = 20;
const VOCABULARY: usize = 10_000;

pub(crate) fn records() {
    saving();
    finding();
}

fn timed(running: &mut Running, tool: &str, arguments: &Value, fails: bool) -> Vec<Duration> {
    let line = asking(tool, arguments);
    time(3_000, || {
        running.write(&line);
        assert_eq!(running.line()["result"]["isError"], fails);
    })
}

fn saving() {
    let program = Program::new();
    quiet(&mut program.command(&["tools"]));
    let note = json!({ "key": "deploy-day", "content": "Deploys go out on Tuesdays, never on Fridays." });
    let mut running = served(&program, &["--offer", "notes"]);
    let time = timed(&mut running, "time", &json!({}), false);
    // Refused by the plugin itself: it is loaded, and the store is not open.
    timed(&mut running, "note_save", &json!({ "key": "No key", "content": "" }), true);
    let unused = resident_kib(running.pid());
    let normal = timed(&mut running, "note_save", &note, false);
    let used = resident_kib(running.pid());
    running.kill();
    let mut running = served(&program, &["--offer", "notes", "--set", "store.sync=full"]);
    let full = timed(&mut running, "note_save", &note, false);
    let [time, normal, full, late] =
        [(&time, 50), (&normal, 50), (&full, 50), (&normal, 99)].map(|(times, at)| quantile(times, at));
    row(
        "`note_save` over stdio",
        "p50 <= 1 ms",
        &format!("p50 {normal:.0?}, p99 {late:.0?}; with `sync = \"full\"` p50 {full:.0?}"),
        &format!("`time` in the same server {time:.0?}"),
        &ratio(normal, time),
    );
    let more = used.saturating_sub(unused) as f64 / 1024.0;
    row("memory of a server once the store is open", "<= 4 MiB more", &format!("{more:.1} MiB more"), "", "");
}

fn finding() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let host = TestHost::new().plugin("keeper").grant("keeper", "records=true");
    let mut any = numbers();
    let keys: Vec<usize> = (0..DOCUMENTS).collect();
    for some in keys.chunks(100) {
        let changes = some.iter().map(|key| {
            let text: String = (0..WORDS).map(|_| format!("w{} ", any(VOCABULARY))).collect();
            json!({ "put": ["memory", format!("k{key}"), { "text": text, "kind": key % 8 }] })
        });
        let changes: Vec<Value> = changes.collect();
        runtime.block_on(host.result("keep", json!({ "changes": changes })));
    }
    let look = |count: usize, words: &mut dyn FnMut() -> Value| {
        time(count, || {
            let mut find = words();
            find["collection"] = json!("memory");
            find["limit"] = json!(10);
            let page = runtime.block_on(host.result("keep", json!({ "find": find })));
            assert!(page["page"]["total"].as_u64().is_some_and(|total| total > 0), "{page}");
        })
    };
    let words = look(1_000, &mut || json!({ "words": format!("w{}", any(VOCABULARY)) }));
    let values = look(20, &mut || json!({ "equals": [["/kind", 3]] }));
    let [words, late, values] = [(&words, 50), (&words, 99), (&values, 50)].map(|(times, at)| quantile(times, at));
    row(
        "a word among 10^5 documents, in process",
        "p50 <= 5 ms",
        &format!("p50 {words:.1?}, p99 {late:.1?}; by a value, which reads them all, {values:.0?}"),
        "",
        "",
    );
}

/// Numbers below a bound, the same in each run: Knuth's.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 1_u64;
    move |of: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % of
    }
}

/// A model whose vectors are those of random numbers, which a text begins: nothing is near, and looking takes as long as if something were.
const MODEL: &str = "
import json, random, sys
for line in sys.stdin:
    vectors = [[byte - 128 for byte in random.Random(text).randbytes(384)] for text in json.loads(line)['input']]
    print(json.dumps({'data': [{'embedding': vector} for vector in vectors]}), flush=True)
";

pub(crate) fn memories() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let command = ["python3".to_owned(), "-c".to_owned(), MODEL.to_owned()];
    let host = TestHost::new().set("store.items=1000000");
    let mut any = numbers();
    let mut lines = format!("{{\"toolcrib_store\":1,\"items\":{}}}\n", DOCUMENTS + 1);
    let agent = Config::default().agent.name;
    for key in 1..=DOCUMENTS {
        let content: String = (0..WORDS).map(|_| format!("w{} ", any(VOCABULARY))).collect();
        let body = json!({ "content": content, "type": "fact", "importance": if key % 50 == 0 { 0.9 } else { 0.6 } });
        let at = 1_790_000_000_000_u64 + key as u64;
        let _ = writeln!(
            lines,
            r#"{{"agent":"{agent}","plugin":"memory","collection":"memories","key":"m{key}","body":{body},"revision":1,"made_ms":{at},"changed_ms":{at},"embed":"/content"}}"#
        );
    }
    let _ = writeln!(
        lines,
        r#"{{"agent":"{agent}","plugin":"memory","collection":"counts","key":"all","body":{{"last":{DOCUMENTS}}},"revision":1,"made_ms":0,"changed_ms":0}}"#
    );
    let export = host.work().join("memories.jsonl");
    std::fs::write(&export, lines).expect("an export");
    let mut config = Config::default();
    config.store.items = 1_000_000;
    store::import(&host.dirs(), &config.store, &export, false).expect("memories");
    let mut recall = |host: &TestHost, count: usize| {
        let times = time(count, || {
            let query = format!("w{} w{}", any(VOCABULARY), any(VOCABULARY));
            let found = runtime.block_on(host.result("memory_recall", json!({ "query": query })));
            assert!(!found["memories"].as_array().expect("a list").is_empty(), "{found}");
        });
        [quantile(&times, 50), quantile(&times, 99)]
    };
    let [words, late] = recall(&host, 500);
    row(
        "`memory_recall` among 10^5 by words and links, in process",
        "p50 <= 5 ms",
        &format!("p50 {words:.1?}, p99 {late:.1?}"),
        "",
        "",
    );
    let host = host.set(&format!("embeddings.command={}", json!(command)));
    let began = std::time::Instant::now();
    let made = runtime.block_on(host.parts().0.embed(&|_| {})).expect("vectors").expect("a store");
    assert_eq!((made.made, made.missing), (DOCUMENTS as u64, 0));
    let embedding = began.elapsed();
    let [hybrid, late] = recall(&host, 200);
    row(
        "the same with vectors of 384 numbers",
        "p50 <= 40 ms",
        &format!("p50 {hybrid:.1?}, p99 {late:.1?}; all vectors were asked for and kept in {embedding:.0?}"),
        &format!("without them {words:.1?}"),
        &ratio(hybrid, words),
    );
}
