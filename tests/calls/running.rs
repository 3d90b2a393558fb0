//! What the host knows of the calls that run, and of the questions that are open: who may be away, and who may answer.

use crate::world::{Silent, begin, context, failure, outcomes, send, small_host};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;
use toolcrib::call::Principal;
use toolcrib::envelope::{Envelope, Kind};
use toolcrib::policy::approval::{Answer, Away, Nobody};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{TestHost, eventually};

fn asking() -> Arc<TestHost> {
    Arc::new(small_host().set("tools.shell_confirm=true"))
}

/// Runs `touch ran` for a caller who is away, up to its question.
fn away(host: &Arc<TestHost>) -> JoinHandle<Envelope> {
    let context = context(host).approver(Arc::new(Away)).principal("somebody");
    let running = begin(host, &context, "run_shell", harmless("touch ran"));
    eventually("a question is open", || host.parts().0.approvals().open().len() == 1);
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_listed_while_it_runs_and_ended_by_its_id() {
    let host = Arc::new(small_host());
    let running = begin(&host, &context(&host).principal("somebody"), "run_shell", harmless("sleep 60"));
    eventually("the call runs, and is on record", || host.parts().0.calls().len() == 1 && !host.audit().is_empty());
    let listed = host.parts().0.calls().remove(0);
    assert_eq!((listed.principal, listed.tool.as_str()), (Principal::from("somebody"), "run_shell"));
    assert_eq!((listed.backend.as_str(), listed.asks), ("local", false));
    assert_eq!(host.audit()[0]["call"], json!(listed.id), "the id is that of the trail");
    assert!(!host.parts().0.cancel("0"), "no call has this id");
    assert!(host.parts().0.cancel(&listed.id));
    assert_eq!(failure(running.await.unwrap()).kind, Kind::Cancelled);
    assert!(host.parts().0.calls().is_empty());
    assert!(!host.parts().0.cancel(&listed.id), "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_is_not_listed_any_more() {
    let host = asking();
    let running = away(&host);
    assert_eq!(host.parts().0.calls().len(), 1);
    running.abort();
    eventually("nothing is listed", || host.parts().0.calls().is_empty());
    assert!(host.parts().0.approvals().open().is_empty(), "its question is withdrawn");
    assert_eq!(outcomes(&host.audit()), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_caller_who_is_away_waits_and_is_answered_elsewhere() {
    for (answer, runs) in [(Answer::Yes, true), (Answer::No, false)] {
        let host = asking();
        let running = away(&host);
        let approvals = host.parts().0.approvals();
        assert!(host.parts().0.calls()[0].asks);
        let question = approvals.open().remove(0);
        assert_eq!((question.principal.as_str(), question.request.action.as_str()), ("somebody", "touch ran"));
        assert_eq!(question.call, host.parts().0.calls()[0].id);
        assert!(!approvals.answer(question.number + 1, Answer::Yes), "no other question is open");
        assert!(approvals.answer(question.number, answer));
        let envelope = running.await.unwrap();
        assert_eq!(envelope.outcome.is_ok(), runs, "{}", envelope.to_json());
        assert_eq!(host.work().join("ran").exists(), runs);
        let decision = host.audit().last().unwrap()["actions"][0]["decision"].clone();
        let by = "an answer to the open question";
        assert_eq!(decision, if runs { format!("allowed by {by}") } else { format!("denied by {by}") });
        assert!(!approvals.answer(question.number, Answer::Yes), "a question is answered once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_answered_elsewhere_is_withdrawn_from_whoever_was_asked() {
    let host = asking();
    let person = Arc::new(Silent::default());
    let running = begin(&host, &context(&host).approver(person.clone()), "run_shell", harmless("touch ran"));
    let asked = || person.asked.load(Ordering::SeqCst);
    eventually("the person is asked", || asked() == 1);
    let approvals = host.parts().0.approvals();
    assert!(approvals.answer(approvals.open()[0].number, Answer::Yes));
    assert!(running.await.unwrap().outcome.is_ok());
    assert_eq!((asked(), person.withdrawn.load(Ordering::SeqCst)), (1, 1));
}

/// What nobody reads is not found out, and is no question that somebody else could answer.
#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_be_asked_no_question_is_open() {
    let host = asking();
    let asked = host.parts().0.approvals().asked();
    let context = context(&host).approver(Arc::new(Nobody));
    assert_eq!(failure(send(&host, &context, "run_shell", harmless("touch ran")).await).kind, Kind::Denied);
    assert_eq!(*asked.borrow(), 0);
}
