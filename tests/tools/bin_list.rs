//! `bin_list`: which programs are declared.

use serde_json::json;
use toolcrib_tests::{TestHost, on_path};

#[tokio::test(flavor = "multi_thread")]
async fn the_declared_programs_are_listed_with_what_they_are_for() {
    let host = TestHost::new();
    let envelope = host.call("bin_list", json!({})).await.outcome.expect("a result");
    assert_eq!(
        (envelope.result, envelope.notices),
        (json!({ "programs": [] }), vec!["no programs are declared".to_owned()])
    );
    let page = host.work().join("page");
    std::fs::write(&page, "How.").expect("a page");
    let section = |name: &str, more: &str| {
        let (path, sha256) = (on_path("cat"), "0".repeat(64));
        format!("[program.{name}]\npath = {path:?}\nsha256 = {sha256:?}\nabout = \"What {name} does.\"\n{more}\n")
    };
    let user = section("two", "") + &section("one", &format!("usage = {page:?}")) + "[program.half]\nabout = \"x\"\n";
    let host = TestHost::new().user(&user);
    let expected = json!({ "programs": [
        { "name": "one", "description": "What one does.", "has_usage": true },
        { "name": "two", "description": "What two does.", "has_usage": false },
    ]});
    assert_eq!(host.result("bin_list", json!({})).await, expected);
    // It only looks.
    let (host, context) = host.parts();
    let definition = host.all_tools(context).await.tools.into_iter().find(|(tool, _)| tool.name() == "bin_list");
    let (tool, _) = definition.expect("the tool");
    let offer = toolcrib::formats::Offer::new(&tool, &host.policy().grants_of(tool.plugin()));
    assert!(!offer.effects.writes && !offer.effects.reaches_out);
}
