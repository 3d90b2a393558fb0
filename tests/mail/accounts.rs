//! Which server is believed, what it is told, and what is not granted.

use crate::rig::{Liar, Mailbox, dovecot, hits, ids, search, text, try_read, try_search};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolcrib::envelope::Kind;
use toolcrib_tests::certificate::{Authority, self_signed};
use toolcrib_tests::mail::{ACCOUNT, Dovecot, Letter, Lying, PASSWORD, SERVER, Say, account, bearer, host_of, reader};
use toolcrib_tests::{Program, TestHost, write_program};

/// Case 8.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_prove_its_name_is_told_nothing() {
    let authority = Authority::new();
    for (what, certificate) in [
        ("another name", authority.server("other.example.com")),
        ("expired", authority.server_between(SERVER, (2019, 2020))),
        ("not yet", authority.server_between(SERVER, (2090, 2091))),
        ("another authority", Authority::new().server(SERVER)),
        ("its own word", self_signed(SERVER)),
    ] {
        let server = Lying::new(certificate, |_| Say::Truth);
        let failure = try_search(&reader(&authority, server.port, &[ACCOUNT]), json!({})).await;
        let failure = failure.expect_err(what);
        assert_eq!(failure.kind, Kind::Unavailable, "{what}: {failure:?}");
        assert!(failure.message.contains("certificate"), "{what}: {failure:?}");
        assert!(server.connections() > 0 && server.asked().is_empty(), "{what}: {:?}", server.asked());
    }
    // One that is believed, so that the others were refused for what they are.
    let server = Lying::new(authority.server(SERVER), |_| Say::Truth);
    assert_eq!(hits(&search(&reader(&authority, server.port, &[ACCOUNT]), json!({})).await).len(), 3);
}

/// Case 8, without TLS.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_told_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let _ = socket.write_all(b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN STARTTLS] plain\r\n");
            let _ = socket.set_read_timeout(Some(Duration::from_secs(1)));
            let mut bytes = Vec::new();
            let _ = socket.read_to_end(&mut bytes);
            hears.lock().expect("nobody panics").extend(bytes);
        }
    });
    let failure = try_search(&reader(&Authority::new(), port, &[ACCOUNT]), json!({})).await.expect_err("it has no TLS");
    assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
    let heard = String::from_utf8_lossy(&heard.lock().expect("nobody panics")).into_owned();
    assert!(!heard.contains("LOGIN") && !heard.contains("AUTHENTICATE"), "{heard}");
}

/// What must not be there, as it is and as it is sent.
fn assert_nothing_of_it(what: &str, said: &str, value: &str) {
    // `AUTHENTICATE PLAIN` sends NUL, user, NUL, password in base64.
    for form in [value, "AGFubgBjb3JyZWN0LWhvcnNl", "Y29ycmVjdC1ob3Jz", "correct-horse"] {
        assert!(!said.contains(form), "{what} holds {form}: {said}");
    }
}

/// Case 9.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_password_is_in_a_result_an_event_the_record_or_a_failure() {
    // Each says to everybody what it was told.
    let echo = format!("[AUTHENTICATIONFAILED] no such password: {PASSWORD}");
    let said = echo.clone();
    let refuses = Liar::new(move |asked| match asked.command.starts_with("AUTHENTICATE") {
        true => Say::This(format!("{} NO {said}\r\n", asked.tag).into()),
        false => Say::Truth,
    });
    let shows = Liar::new(|asked| match asked.command {
        command if command.contains("ENVELOPE") => {
            let envelope = toolcrib_tests::mail::envelope(3).replace("Message 3", PASSWORD);
            let one = toolcrib_tests::mail::listed(3, &envelope, r#"("TEXT" "PLAIN" NIL NIL NIL "7BIT" 12 1)"#);
            Say::This(format!("{one}{} OK done\r\n", asked.tag).into())
        }
        _ => Say::Truth,
    });
    let failure = try_search(&refuses.host, json!({})).await.expect_err("the password is refused");
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    assert_eq!(refuses.server.count("AUTHENTICATE PLAIN"), 1, "a password is not tried twice");
    assert_nothing_of_it("the failure", &format!("{failure:?}"), PASSWORD);
    // Where a long answer is cut, no beginning of the password is left.
    for words in [75, 80, 85, 90, 95] {
        let said = format!("{}{PASSWORD}", "x ".repeat(words));
        let Liar { host, .. } = Liar::new(move |asked| match asked.command.starts_with("AUTHENTICATE") {
            true => Say::This(format!("{} NO {said}\r\n", asked.tag).into()),
            false => Say::Truth,
        });
        let failure = try_search(&host, json!({})).await.expect_err("the password is refused");
        assert!(!failure.message.contains(&PASSWORD[..7]), "{words}: {failure:?}");
    }
    let found = search(&shows.host, json!({})).await;
    assert_eq!(hits(&found).len(), 1);
    assert_nothing_of_it("the result", &format!("{found:?}"), PASSWORD);
    for host in [&refuses.host, &shows.host] {
        assert!(!host.audit().is_empty());
        let trail = std::fs::read_to_string(host.dirs().audit()).expect("an audit trail");
        assert!(trail.contains(SERVER), "where it went is on record: {trail}");
        assert_nothing_of_it("the record", &trail, PASSWORD);
        assert_nothing_of_it("an event", &format!("{:?}", host.events()), PASSWORD);
    }
}

/// Case 9, where whoever calls names it: what goes on record is what was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_password_is_on_record_where_a_call_has_it() {
    let Liar { server, host } = Liar::new(|_| Say::Truth);
    for outcome in [
        try_search(&host, json!({ "folders": [PASSWORD] })).await,
        try_read(&host, &format!("work:7:3:{PASSWORD}")).await,
        try_search(&host, json!({ "account": PASSWORD })).await,
        try_search(&host, json!({ "query": PASSWORD })).await,
    ] {
        assert_nothing_of_it("the failure", &format!("{:?}", outcome.expect_err("it is refused")), PASSWORD);
    }
    assert_eq!(server.connections(), 0);
    assert!(!host.audit().is_empty());
    let trail = std::fs::read_to_string(host.dirs().audit()).expect("an audit trail");
    assert!(trail.contains("search `[secret:MAIL]` of work") && trail.contains("read [secret:MAIL]"), "{trail}");
    assert_nothing_of_it("the record", &trail, PASSWORD);
    assert_nothing_of_it("an event", &format!("{:?}", host.events()), PASSWORD);
}

/// Case 9, of files: the rest of a long text, and what is attached.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_password_is_in_a_file_that_is_kept() {
    dovecot!();
    let long = "Some words of a long text.\r\n".repeat(2000);
    let body = format!(
        "--b\r\nContent-Type: text/plain\r\n\r\n{long}{PASSWORD}\r\n\
         --b\r\nContent-Type: application/x-a; name=a.bin\r\n\r\na {PASSWORD} b\r\n\
         --b\r\nContent-Type: text/csv; name=b.csv\r\n\r\n1,{PASSWORD},2\r\n--b--\r\n"
    );
    let letter = Letter::new("kept", "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n", &body);
    let mailbox = Mailbox::with(&[letter]);
    let id = ids(&search(&mailbox.host, json!({})).await).remove(0);
    let read = mailbox.host.result("email_read", json!({ "id": id, "max_chars": 100 })).await;
    assert!(read["next_offset"].is_number(), "it is not read whole: {read}");
    for part in ["2", "3"] {
        let read = mailbox.host.result("email_read", json!({ "id": id, "part": part })).await;
        let stored = Path::new(text(&read["stored"])).to_owned();
        assert!(std::fs::read_to_string(&stored).is_ok_and(|kept| kept.contains("[secret:MAIL]")), "{read}");
        for kept in std::fs::read_dir(stored.parent().expect("a directory")).expect("a directory") {
            let kept = kept.expect("a file").path();
            assert_nothing_of_it("a kept file", &std::fs::read_to_string(&kept).expect("a text"), PASSWORD);
        }
    }
}

/// A host that logs in with tokens, each of which is another one; `same` prints one and the same.
fn with_tokens(authority: &Authority, port: u16, login: &str, is_same: bool) -> TestHost {
    let host = host_of(authority);
    let script = host.home().join("token");
    let counts = host.home().join("count");
    let next = if is_same {
        "echo access-token-1".to_owned()
    } else {
        format!("echo x >> {0}; echo access-token-$(wc -l < {0})", counts.display())
    };
    write_program(&script, format!("#!/bin/sh\n{next}\n"));
    let command = format!("token_command=[{:?}]", script.display().to_string());
    account(host, port, &[&command, &format!("login={login:?}"), ACCOUNT])
}

/// Case 10.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_renewed_once_and_then_it_is_denied() {
    for login in ["xoauth2", "oauthbearer"] {
        for (valid, is_same, tries) in [("access-token-2", false, 2), ("none", false, 2), ("none", true, 1)] {
            let authority = Authority::new();
            let server = Lying::new(authority.server(SERVER), move |asked| match asked.command {
                command if command.starts_with("AUTHENTICATE") && bearer(command) != valid => {
                    Say::This(b"+ eyJzdGF0dXMiOiI0MDEifQ==\r\n".to_vec())
                }
                // The answer to the challenge: nothing, or one byte 0x01.
                "" | "AQ==" if !asked.tag.is_empty() => {
                    Say::This(format!("{} NO the token is not valid\r\n", asked.tag).into())
                }
                _ => Say::Truth,
            });
            let host = with_tokens(&authority, server.port, login, is_same);
            let found = try_search(&host, json!({})).await;
            let sent = server.count(&format!("AUTHENTICATE {} ", login.to_uppercase()));
            assert_eq!(sent, tries, "{login} {valid} {is_same}: {:?} {found:?}", server.asked());
            match (valid, found) {
                ("access-token-2", found) => {
                    assert_eq!(found.expect("the second is valid").result["hits"].as_array().map(Vec::len), Some(3))
                }
                (_, found) => {
                    let failure = found.expect_err("no token is valid");
                    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
                    assert!(failure.message.contains("the token is not valid"), "{failure:?}");
                    assert!(!format!("{failure:?}").contains("access-token"), "{failure:?}");
                }
            }
        }
    }
}

/// Case 24.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_or_a_folder_outside_the_grant_is_denied_with_the_line_and_no_server_is_asked() {
    let Liar { server, host } = Liar::new(|_| Say::Truth);
    let failure = try_search(&host, json!({ "folders": ["Archive"] })).await.expect_err("the folder is not granted");
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    assert!(
        failure.hint.as_deref().is_some_and(|hint| hint.contains("Archive") && hint.contains("folders")),
        "{failure:?}"
    );
    let failure = try_read(&host, "work:7:1:Archive").await.expect_err("nor by an id");
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    let host = host.set("plugin.mail.mail=[\"home\"]");
    for found in [try_search(&host, json!({ "account": "work" })).await, try_read(&host, "work:7:1:INBOX").await] {
        let failure = found.expect_err("the account is not granted");
        assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
        assert!(
            failure.hint.as_deref().is_some_and(|hint| hint.contains("work") && hint.contains("mail")),
            "{failure:?}"
        );
    }
    assert_eq!(server.connections(), 0);
}

/// By the program, with settings as a user writes them.
#[test]
fn the_program_finds_and_reads_mail_as_its_settings_say() {
    dovecot!();
    let authority = Authority::new();
    let server = Dovecot::with(&authority, &[Letter::new("second", "", "The text of this.\r\n")]);
    let program = Program::new();
    let dns = toolcrib_tests::names(&[(SERVER, [127, 0, 0, 1])]);
    program.write("home/ca.pem", authority.pem());
    program.write("home/secret", PASSWORD);
    std::fs::set_permissions(program.path("home/secret"), std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let settings = format!(
        "[network]\nca_file = \"~/ca.pem\"\ndns_servers = [\"{dns}\"]\n[tools]\nfetch_private_ranges = [\"127.0.0.1\"]\n\
         [secret.MAIL]\nfile = \"~/secret\"\nhosts = [\"{SERVER}\"]\n\
         [mail.work]\nhost = \"{SERVER}\"\nport = {}\nuser = \"ann\"\nsecret = \"MAIL\"\n",
        server.port
    );
    program.write("config/toolcrib/toolcrib.toml", settings);
    let (code, found) = program.call(&["email_search", "{}"]);
    assert_eq!(code, 0, "{found}");
    assert_eq!(found["result"]["hits"][0]["subject"], "second", "{found}");
    let id = found["result"]["hits"][0]["id"].as_str().expect("an id");
    let (code, read) = program.call(&["email_read", &json!({ "id": id }).to_string()]);
    assert_eq!((code, read["result"]["text"].as_str().map(str::trim)), (0, Some("The text of this.")), "{read}");
    let trail = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).expect("an audit trail");
    assert_nothing_of_it("the record", &trail, PASSWORD);
    assert!(trail.contains(&format!("{SERVER}:{}", server.port)), "{trail}");
}
