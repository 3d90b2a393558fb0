//! `tools.fetch_confirm`: nothing is connected to before somebody said yes.

use crate::names::{Names, Reply};
use crate::web::{Web, page, redirect};
use crate::world::in_a_world;
use serde_json::json;
use toolcrib_tests::envelope::{kind, said};

const URL: &str = "url=http://asked.org/";

#[test]
fn without_a_terminal_a_request_that_needs_a_yes_is_denied_and_says_what_to_set() {
    in_a_world(|world| {
        Names::everywhere(&["1.1.1.1"]);
        let web = Web::open(&[80], |_, wire| wire.write_all(&page("here")));
        let program = world.program().set("tools.fetch_confirm=true");
        let (code, answer) = program.call(&["fetch_url", URL]);
        assert_eq!((code, kind(&answer)), (5, "denied"), "{answer}");
        let told = said(&answer);
        assert!(told.contains("--yes") && told.contains("fetch_confirm"), "{told}");
        assert!(web.connections().is_empty(), "{:?}", web.connections());
        world.assert_record(&[]);
        let (code, answer) = program.call(&["--yes", "fetch_url", URL]);
        assert_eq!((code, &answer["result"]["status"]), (0, &json!(200)), "{answer}");
        let (code, answer) = world.program().call(&["fetch_url", URL]);
        assert_eq!((code, &answer["result"]["status"]), (0, &json!(200)), "{answer}");
        world.assert_record(&["tcp 1.1.1.1:80"]);
    });
}

#[test]
fn a_yes_in_advance_opens_nothing_that_is_closed() {
    in_a_world(|world| {
        Names::everywhere(&["1.1.1.1"]);
        Web::open(&[80], |_, wire| wire.write_all(&redirect(302, "http://127.0.0.1/")));
        let program = world.program().set("tools.fetch_confirm=true");
        for url in ["url=http://127.0.0.1/", "url=http://localhost/", URL] {
            let (code, answer) = program.call(&["--yes", "fetch_url", url]);
            assert_eq!((code, kind(&answer)), (5, "denied"), "{url}: {answer}");
        }
        world.assert_record(&["tcp 1.1.1.1:80"]);
    });
}

/// A name is resolved anew at each redirect: the person has seen the addresses of the first one.
#[test]
fn a_redirect_to_the_same_name_is_asked_about_when_it_leads_elsewhere() {
    in_a_world(|world| {
        Names::serve(|query| Reply::addresses(query, &[if query.before == 0 { "1.1.1.1" } else { "1.1.1.2" }]));
        Web::open(&[80], |request, wire| match request.target.as_str() {
            "/" => wire.write_all(&redirect(302, "/next")),
            _ => wire.write_all(&page("here")),
        });
        let program = world.program().set("tools.fetch_confirm=true");
        let (code, answer) = program.call(&["--yes", "fetch_url", URL]);
        assert_eq!((code, &answer["result"]["status"]), (0, &json!(200)), "{answer}");
        assert_eq!(program.decisions(), ["allowed by --yes", "allowed by --yes"]);
        // From here on the answers are always the same.
        let (code, answer) = program.call(&["--yes", "fetch_url", URL]);
        assert_eq!((code, &answer["result"]["status"]), (0, &json!(200)), "{answer}");
        assert_eq!(program.decisions()[2..], ["allowed by --yes", "allowed by approval for the same server"]);
    });
}

#[test]
fn an_operator_who_forbids_answers_in_advance_is_obeyed() {
    in_a_world(|world| {
        Names::everywhere(&["1.1.1.1"]);
        let program = world.program().set("tools.fetch_confirm=true").set("approval.allow_yes=false");
        let (code, answer) = program.call(&["--yes", "fetch_url", URL]);
        assert_eq!((code, kind(&answer)), (5, "denied"), "{answer}");
        assert!(said(&answer).contains("approval.allow_yes"), "{answer}");
        world.assert_record(&[]);
    });
}

/// Two names of one address are two servers to whoever reads them.
#[test]
fn a_redirect_to_another_name_at_the_same_address_is_asked_about() {
    in_a_world(|world| {
        Names::everywhere(&["1.1.1.1"]);
        Web::open(&[80], |request, wire| match request.target.as_str() {
            "/" => wire.write_all(&redirect(302, "http://other.org/next")),
            _ => wire.write_all(&page("here")),
        });
        let program = world.program().set("tools.fetch_confirm=true");
        let (code, answer) = program.call(&["--yes", "fetch_url", URL]);
        assert_eq!((code, &answer["result"]["status"]), (0, &json!(200)), "{answer}");
        assert_eq!(program.decisions(), ["allowed by --yes", "allowed by --yes"]);
    });
}
