//! Access tokens by a refresh token: who is asked for them, how long they are used, and that nobody sees them.

use crate::rig::{hits, search, subjects, try_search};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use toolcrib::envelope::{Failure, Kind, Output};
use toolcrib_tests::TestHost;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{
    ACCOUNT, Lying, Posted, SERVER, Say, TOKENS, Tokens, account, answer, bearer, envelope, host_of, listed, token,
};

/// What is stored, and what the provider gave with the client's name.
const REFRESH: &str = "refresh-token-of-ann-1234";
const CLIENT_SECRET: &str = "client-secret-5678-abcd";

/// A mail server that takes the tokens of a token server, and a host that has none but the refresh token.
struct Rig {
    imap: Lying,
    tokens: Tokens,
    host: TestHost,
}

impl Rig {
    /// `is_valid` says which tokens the mail server takes. It ends the first connection at a search, which then takes another login.
    fn new(
        login: &str,
        is_valid: impl Fn(&str) -> bool + Send + Sync + 'static,
        gives: impl Fn(usize, &Posted) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let authority = Authority::new();
        let imap = Lying::new(authority.server(SERVER), move |asked| match asked.command {
            command if command.starts_with("AUTHENTICATE") && !is_valid(&bearer(command)) => {
                let shown = bearer(command);
                Say::This(format!("{} NO the token {shown} is not valid\r\n", asked.tag).into())
            }
            command if command.starts_with("UID SEARCH") && asked.connection == 1 => Say::Last(b"* BYE\r\n".to_vec()),
            _ => Say::Truth,
        });
        let tokens = Tokens::new(authority.server(TOKENS), gives);
        let host = host(&authority, &imap, &tokens, login, "");
        Self { imap, tokens, host }
    }
}

/// A host with an account that has a refresh token; `more` are fields of `refresh`, each with a comma before it.
fn host(authority: &Authority, imap: &Lying, tokens: &Tokens, login: &str, more: &str) -> TestHost {
    let host = host_of(authority);
    let keep = |host: TestHost, name: &str, value: &str| {
        let file = host.home().join(name);
        std::fs::write(&file, value).expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        host.set(&format!("secret.{name}.file={:?}", file.display().to_string()))
            .set(&format!("secret.{name}.hosts=[{TOKENS:?}]"))
    };
    let host = keep(keep(host, "REFRESH", REFRESH), "CLIENT", CLIENT_SECRET);
    let refresh = format!(
        r#"refresh={{ url = "https://{TOKENS}:{}/token", client_id = "a-client", secret = "REFRESH"{more} }}"#,
        tokens.port
    );
    account(host, imap.port, &[&refresh, &format!("login={login:?}"), ACCOUNT])
}

fn failure(outcome: Result<Output, Failure>) -> Failure {
    outcome.map(|output| panic!("it succeeded: {output:?}")).unwrap_or_else(|failure| failure)
}

/// Case 10, and login by a refresh token.
#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_gives_the_token_that_logs_in_and_that_is_kept() {
    for login in ["xoauth2", "oauthbearer"] {
        let Rig { imap, tokens, host } = Rig::new(
            login,
            |token| token == "access-token-1",
            |count, _| token(&format!("access-token-{count}"), 3600, ""),
        );
        let found = search(&host, json!({})).await;
        assert_eq!(subjects(&found), ["Message 3", "Message 2", "Message 1"]);
        // A login for each connection.
        assert_eq!(imap.count(&format!("AUTHENTICATE {}", login.to_uppercase())), 2, "{:?}", imap.asked());
        let asked = tokens.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert_eq!(asked[0].path, "/token");
        for (field, value) in [("grant_type", "refresh_token"), ("refresh_token", REFRESH), ("client_id", "a-client")] {
            assert_eq!(asked[0].field(field), value, "{asked:?}");
        }
        assert!(asked[0].form.len() == 3, "{asked:?}");
        let trail = std::fs::read_to_string(host.dirs().audit()).expect("an audit trail");
        assert!(trail.contains(&format!("ask {TOKENS}:{} for a token of work", tokens.port)), "{trail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_a_secret_and_a_scope_sends_both() {
    let authority = Authority::new();
    let imap = Lying::new(authority.server(SERVER), |_| Say::Truth);
    let tokens = Tokens::new(authority.server(TOKENS), |_, _| token("access-token-1", 3600, ""));
    let more = r#", client_secret = "CLIENT", scope = "https://mail.example.com/ offline""#;
    let host = host(&authority, &imap, &tokens, "xoauth2", more);
    assert_eq!(hits(&search(&host, json!({})).await).len(), 3);
    let asked = tokens.asked();
    assert_eq!(asked[0].field("client_secret"), CLIENT_SECRET, "{asked:?}");
    assert_eq!(asked[0].field("scope"), "https%3A%2F%2Fmail.example.com%2F+offline", "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_has_ended_is_not_used_again() {
    let Rig { imap, tokens, host } =
        Rig::new("xoauth2", |_| true, |count, _| token(&format!("access-token-{count}"), 30, ""));
    search(&host, json!({})).await;
    assert_eq!(tokens.asked().len(), 2);
    let logins: Vec<_> = imap.asked().iter().filter(|line| line.starts_with("AUTH")).map(|line| bearer(line)).collect();
    assert_eq!(logins, ["access-token-1", "access-token-2"]);
}

/// Case 10.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_mail_server_refuses_is_renewed_once_and_then_it_is_denied() {
    for (valid, is_same, tries) in [("access-token-2", false, 2), ("none", false, 2), ("none", true, 1)] {
        let Rig { imap, tokens, host } = Rig::new(
            "xoauth2",
            move |token| token == valid,
            move |count, _| token(&format!("access-token-{}", if is_same { 1 } else { count }), 3600, ""),
        );
        let outcome = try_search(&host, json!({})).await;
        assert_eq!((imap.count("AUTHENTICATE"), tokens.asked().len()), (tries, 2), "{valid} {is_same}: {outcome:?}");
        if valid == "none" {
            let failure = failure(outcome);
            assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
            assert!(!format!("{failure:?}").contains("access-token"), "{failure:?}");
        } else {
            assert_eq!(hits(&outcome.expect("the second is valid")).len(), 3);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_token_server_refuses_says_what_to_do_and_is_not_asked_again_at_once() {
    let error = |code: &str| {
        answer("400 Bad Request", "", &format!(r#"{{"error":"{code}","error_description":"it says why"}}"#))
    };
    let long = "x".repeat(70 << 10);
    for (what, said, kind, hint) in [
        ("invalid_grant", error("invalid_grant"), Kind::Denied, Some("toolcrib secret set REFRESH")),
        ("invalid_client", error("invalid_client"), Kind::Denied, Some("`client_id`")),
        ("500", answer("500 Internal Server Error", "", "{}"), Kind::Unavailable, None),
        ("503, with a token", answer("503 Busy", "", r#"{"access_token":"access-token-1"}"#), Kind::Unavailable, None),
        ("a page", answer("200 OK", "", "<html>access-token-1</html>"), Kind::Unavailable, None),
        ("no token", answer("200 OK", "", "{}"), Kind::Unavailable, None),
        (
            "another type",
            answer("200 OK", "", r#"{"access_token":"access-token-1","token_type":"mac"}"#),
            Kind::Unavailable,
            None,
        ),
        (
            "too long",
            answer("200 OK", "", &format!(r#"{{"access_token":"access-token-1","x":"{long}"}}"#)),
            Kind::Limit,
            None,
        ),
    ] {
        let Rig { imap, tokens, host } = Rig::new("xoauth2", |_| true, move |_, _| said.clone());
        let failure = failure(try_search(&host, json!({})).await);
        assert_eq!(failure.kind, kind, "{what}: {failure:?}");
        assert!(hint.is_none_or(|hint| failure.hint.as_deref().is_some_and(|said| said.contains(hint))), "{failure:?}");
        assert!(!format!("{failure:?}").contains("access-token"), "{what}: {failure:?}");
        if what == "invalid_grant" {
            assert!(failure.message.contains("it says why"), "{failure:?}");
            assert_eq!(self::failure(try_search(&host, json!({})).await).kind, kind);
        }
        assert_eq!((imap.connections(), tokens.asked().len()), (0, 1), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_the_token_server_is_not_followed() {
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let Rig { imap, tokens, host } = Rig::new(
            "xoauth2",
            |_| true,
            move |_, posted| match posted.path.as_str() {
                "/token" => answer(status, "location: /elsewhere\r\n", r#"{"access_token":"access-token-1"}"#),
                _ => token("access-token-1", 3600, ""),
            },
        );
        let failure = failure(try_search(&host, json!({})).await);
        assert_eq!(failure.kind, Kind::Unavailable, "{status}: {failure:?}");
        assert!(failure.message.contains("redirects") && failure.hint.is_some(), "{failure:?}");
        assert_eq!((imap.connections(), tokens.asked().len()), (0, 1), "{status}");
    }
}

/// The same rules as for requests, and the hosts of each secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_server_that_is_not_allowed_is_told_nothing() {
    for (line, said) in [
        (format!("tools.fetch_blocked_domains=[{TOKENS:?}]"), "is blocked"),
        (format!("tools.fetch_allowed_domains=[{SERVER:?}]"), "fetch_allowed_domains"),
        ("tools.fetch_private_ranges=[]".to_owned(), "is not public"),
        (format!("secret.REFRESH.hosts=[{SERVER:?}]"), "the secret `REFRESH` may not go to `oauth2.example.com`"),
    ] {
        let Rig { imap, tokens, host } = Rig::new("xoauth2", |_| true, |_, _| token("access-token-1", 3600, ""));
        let host = host.set(&line);
        let failure = failure(try_search(&host, json!({})).await);
        assert_eq!(failure.kind, Kind::Denied, "{line}: {failure:?}");
        assert!(failure.message.contains(said), "{line}: {failure:?}");
        assert_eq!((imap.connections(), tokens.asked().len()), (0, 0), "{line}");
        let trail = std::fs::read_to_string(host.dirs().audit()).expect("an audit trail");
        assert!(trail.contains("for a token of work") && trail.contains("denied"), "{trail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_server_that_does_not_prove_its_name_is_told_nothing() {
    let authority = Authority::new();
    for (what, certificate) in [
        ("another name", authority.server(SERVER)),
        ("another authority", Authority::new().server(TOKENS)),
        ("expired", authority.server_between(TOKENS, (2019, 2020))),
    ] {
        let imap = Lying::new(authority.server(SERVER), |_| Say::Truth);
        let tokens = Tokens::new(certificate, |_, _| token("access-token-1", 3600, ""));
        let failure = failure(try_search(&host(&authority, &imap, &tokens, "xoauth2", ""), json!({})).await);
        assert_eq!(failure.kind, Kind::Unavailable, "{what}: {failure:?}");
        assert!(tokens.asked().is_empty() && imap.connections() == 0, "{what}");
    }
}

/// What a provider gives in place of the refresh token is used from then on, and said once: it is kept nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_refresh_token_is_used_for_the_next_access_token() {
    let Rig { tokens, host, .. } = Rig::new(
        "xoauth2",
        |_| true,
        |count, _| {
            token(
                &format!("access-token-{count}"),
                0,
                &format!(r#","refresh_token":"refresh-token-of-ann-next-{count}""#),
            )
        },
    );
    let found = search(&host, json!({})).await;
    let sent: Vec<_> = tokens.asked().iter().map(|posted| posted.field("refresh_token").to_owned()).collect();
    assert_eq!(sent, [REFRESH, "refresh-token-of-ann-next-1"]);
    let told = found.notices.iter().filter(|notice| notice.contains("`REFRESH`") && notice.contains("in memory"));
    assert_eq!(told.count(), 1, "{:?}", found.notices);
    assert!(!format!("{found:?}").contains("refresh-token-of-ann-next"), "{found:?}");
}

/// Case 9, of tokens: whoever gets them says them to everybody.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_token_is_in_a_result_an_event_the_record_or_a_failure() {
    const ACCESS: &str = "access-token-of-ann-9876";
    const NEXT: &str = "refresh-token-that-came-next";
    let told = [REFRESH, CLIENT_SECRET, ACCESS, NEXT];
    let authority = Authority::new();
    let subject = Arc::new(Mutex::new(String::new()));
    let says = subject.clone();
    let imap = Lying::new(authority.server(SERVER), move |asked| match asked.command {
        command if command.contains("ENVELOPE") => {
            let says = says.lock().expect("nobody panics").clone();
            let envelope = envelope(3).replace("Message 3", &says);
            let one = listed(3, &envelope, r#"("TEXT" "PLAIN" NIL NIL NIL "7BIT" 12 1)"#);
            Say::This(format!("{one}{} OK done\r\n", asked.tag).into())
        }
        _ => Say::Truth,
    });
    let gives =
        Tokens::new(authority.server(TOKENS), |_, _| token(ACCESS, 3600, &format!(r#","refresh_token":"{NEXT}""#)));
    let more = r#", client_secret = "CLIENT""#;
    let shows = host(&authority, &imap, &gives, "xoauth2", more);
    for value in told {
        *subject.lock().expect("nobody panics") = format!("the value is {value}");
        let found = search(&shows, json!({})).await;
        assert_eq!(hits(&found).len(), 1);
        for value in told {
            assert!(!format!("{found:?}").contains(value), "{value}: {found:?}");
        }
    }
    // One that says what it was sent, behind a text of every length up to that of a message.
    let echo = Arc::new(Mutex::new(0));
    let echoes = echo.clone();
    let refuses = Tokens::new(authority.server(TOKENS), move |_, posted| {
        let before = "x ".repeat(*echoes.lock().expect("nobody panics"));
        let said = format!("{before}{} {}", posted.field("refresh_token"), posted.field("client_secret"));
        answer("400 Bad Request", "", &format!(r#"{{"error":"invalid_grant","error_description":"{said}"}}"#))
    });
    for before in [0, 60, 70, 75, 80, 85, 90, 95, 100] {
        *echo.lock().expect("nobody panics") = before;
        let refused = host(&authority, &imap, &refuses, "xoauth2", more);
        let failure = failure(try_search(&refused, json!({})).await);
        assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
        for part in [&REFRESH[..9], &CLIENT_SECRET[..9]] {
            assert!(!format!("{failure:?}").contains(part), "{before}: {failure:?}");
        }
        assert_untold(&refused, &told);
    }
    assert_untold(&shows, &told);
}

fn assert_untold(host: &TestHost, told: &[&str]) {
    let trail = std::fs::read_to_string(host.dirs().audit()).expect("an audit trail");
    let events = format!("{:?}", host.events());
    for value in told {
        assert!(!trail.contains(value) && !events.contains(value), "{value}: {trail} {events}");
    }
}
