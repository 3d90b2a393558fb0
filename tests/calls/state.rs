//! A state directory that cannot be used: no cache, no trail, no kept output, but calls all the same.

use crate::world::{cold_host, made};
use serde_json::json;
use toolcrib::config::{Settings, Sources};
use toolcrib_tests::TestHost;

/// What a host says when it starts in these directories.
fn notices(host: &TestHost) -> Vec<String> {
    let settings = Settings::load(&Sources { home: host.home(), ..Sources::default() }).unwrap();
    made(&settings, host).1
}

async fn works(host: &TestHost) {
    host.result("time", json!({})).await;
    let result = host.shell("yes | head -c 20000").await;
    assert!(result["stdout"].as_str().unwrap().starts_with("y\ny\n"));
    std::fs::write(host.work().join("a.txt"), "hello").unwrap();
    assert_eq!(host.result("read_file", json!({ "path": "a.txt" })).await, "hello");
}

// As root every directory can be written, so each is made impossible by what stands in its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_place_of_the_state_directory_costs_its_comforts_and_says_so() {
    let host = cold_host();
    std::fs::write(host.dirs().state, "in the way").unwrap();
    let told = notices(&host);
    assert_eq!(told.len(), 3);
    for (notice, cost) in told.iter().zip(["compiled code is not kept", "nothing is audited", "cut output is not kept"])
    {
        assert!(notice.starts_with(cost), "{notice}");
    }
    works(&host).await;
    assert_eq!(std::fs::read_to_string(host.dirs().state).unwrap(), "in the way");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_names_the_file_that_could_not_be_used() {
    let host = cold_host();
    std::fs::write(host.dirs().state, "in the way").unwrap();
    let state = host.dirs().state.display().to_string();
    assert!(notices(&host).iter().all(|notice| notice.contains(&state)), "{:?}", notices(&host));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_part_of_the_state_that_cannot_be_used_costs_only_itself() {
    for (name, cost) in
        [("code", "compiled code"), ("code.key", "compiled code"), ("audit.jsonl", "audited"), ("output", "output")]
    {
        let host = cold_host();
        let path = host.dirs().state.join(name);
        std::fs::create_dir_all(host.dirs().state).unwrap();
        // A directory where a file should be, a file where a directory should be.
        if name.contains('.') {
            std::fs::create_dir(path).unwrap()
        } else {
            std::fs::write(path, "").unwrap()
        }
        let told = notices(&host);
        assert!(told.len() == 1 && told[0].contains(cost), "{name}: {told:?}");
        works(&host).await;
        assert_eq!(host.audit().is_empty(), name == "audit.jsonl");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_could_not_be_kept_is_said_to_be_lost() {
    let host = cold_host();
    std::fs::write(host.dirs().state, "in the way").unwrap();
    let notices = host.shell("yes | head -c 20000").await["notices"].clone();
    assert!(notices[0].as_str().unwrap().ends_with("the rest was not kept"), "{notices}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_usable_state_directory_gives_no_notice() {
    assert_eq!(notices(&cold_host()), [""; 0]);
}
