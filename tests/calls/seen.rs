//! What is kept of components between starts: believed only as it was written, and of files that are as they were.

use crate::world::{small_host, started_again};
use serde_json::json;
use std::fs::{self, File};
use std::time::Duration;
use toolcrib_builtins::BUILTINS;
use toolcrib_tests::guest;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_of_components_counts_only_as_it_was_written() {
    let host = small_host();
    host.result("time", json!({})).await;
    let file = host.dirs().state.join("code/components");
    let good = fs::read(&file).expect("what was kept");
    let mut forged = good.clone();
    let name = b"\"tools\":[\"time\"]";
    let at = forged.windows(name.len()).position(|part| part == name).expect("the tool is named");
    forged[at + name.len() - 3] = b'x';
    fs::write(&file, forged).expect("written");
    let (_, context) = started_again(&host, &[]);
    assert!(context.tools.plugin_of("time").is_ok(), "the component is read again");
    assert!(context.tools.plugin_of("timx").is_err(), "what was forged is believed");
    assert!(fs::read(&file).expect("kept again") == good);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_looks_as_before_but_was_changed_is_read_again() {
    let host = small_host();
    let directory = host.home().join("plugins");
    fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("word_count.wasm");
    let mut bytes = fs::read(guest("word_count")).expect("a guest that was built");
    fs::write(&file, &bytes).expect("written");
    // What changed just now is not remembered: file systems count time in steps.
    std::thread::sleep(Duration::from_secs(4));
    let digest = || {
        let tools = host.parts().0.plugin_source(BUILTINS, vec![directory.clone()]).load();
        tools.plugin_of("word_count").map(|plugin| plugin.sha256().to_owned()).map_err(|failure| failure.message)
    };
    let before = digest().expect("it is there");
    assert_eq!(digest().expect("it is there"), before, "as it was");
    let modified = fs::metadata(&file).and_then(|found| found.modified()).expect("a time");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&file, &bytes).expect("written in its place");
    File::options().write(true).open(&file).and_then(|file| file.set_modified(modified)).expect("as old as before");
    assert_ne!(digest().expect("it is there"), before, "it was not read again");
}
