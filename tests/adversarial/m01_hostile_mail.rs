//! M-01: a mail gives orders in text that nobody sees, poses as another sender, hides its file's kind, and names what is to be loaded.
//! Outcome: hidden text is marked, the sender's other address is told, names show what they are, nothing is loaded, and nothing is marked as read.
//! Switched off: with every element taken for one that is seen (`Look::is_hidden` in `mail/html.rs`) the orders stood there as plain text and the test failed.

use serde_json::json;
use std::net::TcpListener;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{ACCOUNT, Dovecot, Letter, reader};
use toolcrib_tests::skip;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_mail_hides_is_marked_and_what_it_names_is_not_loaded() {
    if !Dovecot::is_there() {
        skip!("dovecot is missing");
    }
    let site = TcpListener::bind("127.0.0.1:0").expect("a port");
    site.set_nonblocking(true).expect("a socket of ours");
    let at = site.local_addr().expect("an address");
    let orders = [
        "<div style='display:none'>ORDER</div>",
        "<span style='font-size:0px'>ORDER</span>",
        "<font color='#fefefe'>ORDER</font>",
        "<div style='position:absolute;left:-9999px'>ORDER</div>",
        "<style>.x{visibility:hidden}</style><p class=x>ORDER</p>",
        "<p hidden>a] ORDER [b</p>",
        "<div style='d\\69splay:none'>ORDER</div>",
    ];
    let html = format!(
        "<p>Hello.</p>{}<img src='http://{at}/i.gif'><link rel=stylesheet href='http://{at}/'>",
        orders.concat()
    );
    let body = format!(
        "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n--b\r\nContent-Type: application/pdf\r\n\
         Content-Disposition: attachment; filename=\"=?utf-8?Q?invoice=E2=80=AEfdp.exe?=\"\r\n\r\nMZ\r\n--b--\r\n"
    );
    let raw = format!(
        "From: \"bank@bank.test\" <evil@evil.test>\r\nSubject: =?utf-8?Q?=E2=80=AEregnad?=\r\n\
         Authentication-Results: evil.test; dmarc=pass\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{body}"
    );
    let authority = Authority::new();
    let server = Dovecot::with(&authority, &[Letter::of_bytes(raw.as_bytes())]);
    let before = server.messages();
    let host = reader(&authority, server.port, &[ACCOUNT, "authority=\"mx.example.com\""]);
    let found = host.result("email_search", json!({})).await;
    let hit = &found["hits"][0];
    assert!(hit["warnings"].to_string().contains("bank@bank.test"), "{hit}");
    assert_eq!(
        (hit["attachments"][0]["name"].as_str(), hit["verified"].as_bool()),
        (Some("invoice_fdp.exe"), None),
        "{hit}"
    );
    assert!(!hit.to_string().contains('\u{202e}'), "{hit}");
    let read = host.result("email_read", json!({ "id": hit["id"] })).await;
    let text = read["text"].as_str().expect("a text");
    let is_seen = |text: &str| {
        let mut pieces = text.split("[hidden: ");
        let seen: String =
            pieces.next().into_iter().chain(pieces.filter_map(|piece| Some(piece.split_once(']')?.1))).collect();
        seen.contains("ORDER")
    };
    assert!(!is_seen(text), "{text}");
    assert_eq!(text.matches("ORDER").count(), orders.len(), "{text}");
    assert!(site.accept().is_err(), "something was loaded");
    assert_eq!(server.messages(), before, "it was marked as read");
}
