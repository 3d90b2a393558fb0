//! The tools of the family `fleet`: what each hands over, and what the host lets an agent ask of others. The numbers are those of the cases of
//! agents whose tools are programs.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::embedder::End;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;
use toolcrib_tests::embedder::Played;

const SETTINGS: &str =
    "[toolset.otter]\ntools = [\"agent_exec\", \"agent_exec_any\"]\nsession = [\"agent\", \"chain\"]\n";

struct Fleet {
    host: TestHost,
    embedder: Arc<Played>,
}

impl Fleet {
    /// One whose events are answered so.
    fn new(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let embedder = Played::new(&["*"], move |event| Some(End::Answered(answer(&event.payload))));
        Self { host: TestHost::new().user(SETTINGS), embedder: Arc::new(embedder) }
    }

    /// A session of an agent that these led to.
    fn session(&self, agent: &str, chain: &[&str]) -> Arc<Session> {
        let toolset = self.host.parts().0.toolset("otter").expect("a toolset");
        let given = json!({ "agent": agent, "chain": chain });
        Arc::new(Session::on(toolset, given.as_object().expect("an object").clone()).expect("a session"))
    }

    async fn call(&self, session: Option<&Arc<Session>>, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let (host, context) = self.host.parts();
        let context = context.clone().embedder(self.embedder.clone());
        let context = session.map_or(context.clone(), |session| context.session(session.clone()));
        let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
        host.call(request, &context).await.outcome.map(|output| output.result)
    }

    fn last(&self) -> (String, Value) {
        let event = self.embedder.events().pop().expect("an event");
        (event.kind, event.payload)
    }
}

fn echo(answer: Value) -> Fleet {
    Fleet::new(move |_| answer.clone())
}

#[tokio::test]
async fn each_tool_hands_over_one_event_and_returns_its_answer() {
    let agent = json!({ "name": "a", "status": "running" });
    let named = json!([{ "name": "x" }]);
    for (tool, arguments, kind, payload, answer) in [
        ("agent_list", json!({}), "agent.list", json!({ "any": false }), json!({ "agents": [agent] })),
        ("agent_list_all", json!({}), "agent.list", json!({ "any": true }), json!({ "agents": [] })),
        ("agent_info", json!({ "ref": "a" }), "agent.info", json!({ "agent": "a", "any": false }), agent.clone()),
        ("agent_info_any", json!({ "ref": "a" }), "agent.info", json!({ "agent": "a", "any": true }), agent.clone()),
        (
            "agent_create",
            json!({ "image": "example.com/a:1", "name": "a" }),
            "agent.create",
            json!({ "image": "example.com/a:1", "name": "a" }),
            json!({ "agent": "a" }),
        ),
        (
            "agent_create_from_source",
            json!({ "source": "FROM scratch" }),
            "agent.create",
            json!({ "source": "FROM scratch" }),
            json!({ "agent": "a" }),
        ),
        (
            "agent_delete",
            json!({ "ref": "a" }),
            "agent.delete",
            json!({ "agent": "a", "any": false }),
            json!({ "deleted": false }),
        ),
        (
            "agent_delete_any",
            json!({ "ref": "a" }),
            "agent.delete",
            json!({ "agent": "a", "any": true }),
            json!({ "deleted": true }),
        ),
        ("image_list", json!({}), "image.list", json!({ "any": false }), json!({ "images": named })),
        ("model_list", json!({}), "model.list", json!({ "any": false }), json!({ "models": named })),
        ("self_reload", json!({}), "agent.reload", json!({}), json!({ "reloading": true })),
    ] {
        let fleet = echo(answer.clone());
        assert_eq!(fleet.call(None, tool, arguments).await, Ok(answer), "{tool}");
        assert_eq!(fleet.last(), (kind.to_owned(), payload), "{tool}");
    }
    for (tool, arguments) in [
        ("agent_exec", json!({ "ref": " ", "prompt": "x" })),
        ("agent_exec", json!({ "ref": "a", "prompt": "" })),
        ("agent_exec", json!({ "ref": "a", "prompt": "x", "depth": 0 })),
        ("agent_exec", json!({ "ref": "a", "prompt": "x", "agent": "b" })),
        ("agent_info", json!({})),
        ("agent_create", json!({ "image": " " })),
        ("agent_delete", json!({ "ref": "" })),
    ] {
        let fleet = echo(json!({}));
        let refused = fleet.call(None, tool, arguments.clone()).await.expect_err(tool);
        assert_eq!(refused.kind, Kind::InvalidArguments, "{tool} {arguments}");
        assert!(fleet.embedder.events().is_empty(), "{tool} {arguments}");
    }
    let broken = echo(json!({ "response": "x" })).call(None, "agent_exec", json!({ "ref": "a", "prompt": "x" })).await;
    let message = broken.expect_err("a failure").message;
    assert_eq!(message, "the embedder's answer to `agent.exec` cannot be used: missing field `session`");
}

/// Case 66: how deep calls go, and by whom they came, is said by the host, whatever a plugin says.
#[tokio::test]
async fn calls_of_agents_go_four_deep_and_never_back() {
    let fleet = Fleet::new(|payload| json!({ "response": payload["prompt"], "session": "s1" }));
    let exec = |to: &str| json!({ "ref": to, "prompt": "x" });
    let first = fleet.session("a", &[]);
    let answer = fleet.call(Some(&first), "agent_exec", exec("b")).await;
    assert_eq!(answer, Ok(json!({ "response": "x", "session_id": "s1" })));
    let expected = json!({ "agent": "b", "prompt": "x", "any": false, "depth": 1, "chain": ["a"] });
    assert_eq!(fleet.last(), ("agent.exec".into(), expected));
    let fourth = fleet.session("d", &["a", "b", "c"]);
    assert!(fleet.call(Some(&fourth), "agent_exec_any", exec("e")).await.is_ok());
    assert_eq!(fleet.last().1["depth"], 4);
    let fifth = fleet.session("e", &["a", "b", "c", "d"]);
    let count = fleet.embedder.events().len();
    let refused = fleet.call(Some(&fifth), "agent_exec", exec("f")).await.expect_err("too deep");
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "this call would be 5 agents deep (limit: 4)"));
    for back in ["a", "c", "d", "A"] {
        let refused = fleet.call(Some(&fourth), "agent_exec", exec(back)).await.expect_err(back);
        assert_eq!(
            (refused.kind, refused.message),
            (Kind::Denied, format!("`{back}` led to this call itself: a → b → c → d"))
        );
    }
    assert_eq!(fleet.embedder.events().len(), count, "nothing was handed over");
    let actions = fleet.host.audit().last().expect("a line")["actions"].to_string();
    assert!(actions.contains("denied: `A` led to this call itself"), "{actions}");
}

/// Case 66: an agent goes on in the sessions that it opened, and in no other's.
#[tokio::test]
async fn a_session_is_for_the_agent_that_opened_it() {
    let fleet =
        Fleet::new(|payload| json!({ "response": "x", "session": payload["session"].as_str().unwrap_or("s1") }));
    let (one, other) = (fleet.session("a", &[]), fleet.session("c", &[]));
    let exec = |session: &str| json!({ "ref": "b", "prompt": "x", "session_id": session });
    let refused = fleet.call(Some(&one), "agent_exec", exec("s1")).await.expect_err("not opened yet");
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "`s1` is no session that this agent opened"));
    assert!(fleet.call(Some(&one), "agent_exec", json!({ "ref": "b", "prompt": "x" })).await.is_ok());
    assert!(fleet.call(Some(&one), "agent_exec", exec("s1")).await.is_ok());
    assert_eq!(fleet.last().1["session"], "s1");
    // In another session of the same agent as well.
    assert!(fleet.call(Some(&fleet.session("a", &["z"])), "agent_exec", exec("s1")).await.is_ok());
    for (session, name) in [(&other, "s1"), (&one, "s2")] {
        let refused = fleet.call(Some(session), "agent_exec", exec(name)).await.expect_err(name);
        assert_eq!(refused.kind, Kind::Denied);
    }
}

/// Case 65: without an embedder there are none, and why is said.
#[tokio::test]
async fn without_an_embedder_agents_cannot_be_called() {
    let test = TestHost::new().set("tools.offer=[\"fleet\"]");
    let (host, context) = test.parts();
    let all = host.all_tools(context).await;
    let of_fleet: Map<String, Value> = all
        .tools
        .iter()
        .filter(|(tool, _)| tool.plugin().name() == "fleet")
        .map(|(tool, missing)| (tool.name().to_owned(), json!(missing.as_ref().map(|failure| failure.message.clone()))))
        .collect();
    assert_eq!(of_fleet.len(), 13);
    for (tool, missing) in &of_fleet {
        assert!(missing.as_str().is_some_and(|why| why.contains("it needs an embedder")), "{tool}: {missing}");
    }
    let offered = host.offered(context).await.tools;
    assert!(offered.iter().all(|tool| tool.plugin().name() != "fleet"));
    let embedder = Arc::new(Played::answering(&["agent.exec"], json!({})));
    let offered = host.offered(&context.clone().embedder(embedder)).await.tools;
    let names: Vec<_> = offered.iter().filter(|tool| tool.plugin().name() == "fleet").map(|tool| tool.name()).collect();
    assert_eq!(names, ["agent_exec", "agent_exec_any"]);
}
