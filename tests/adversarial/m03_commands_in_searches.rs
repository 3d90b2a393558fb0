//! M-03: texts of a search hold commands of IMAP: line breaks, quotes, literals, brackets, and folder names and ids do too.
//! Outcome: each is one search for that text, or refused before the server is asked; no other command is ever sent.
//! Switched off: with quotes and backslashes not escaped (`Line::string` in `mail/commands.rs`) the texts ended their strings and the test failed.

use serde_json::json;
use toolcrib::envelope::Kind;
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::mail::{Lying, SERVER, Say, reader};

const TEXTS: [&str; 9] = [
    "x\r\nZ9 CREATE injected",
    "x\nZ9 DELETE INBOX",
    "x\0y",
    r#"a" DELETED SUBJECT "b"#,
    r#"a\" OR ALL "b"#,
    r"a\",
    "{3}",
    "{99999999+}",
    "a) (b",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_text_becomes_a_command() {
    let authority = Authority::new();
    let server = Lying::new(authority.server(SERVER), |_| Say::Truth);
    let host = reader(&authority, server.port, &["folders=[\"*\"]"]);
    for text in TEXTS {
        for arguments in [
            json!({ "subject": text }),
            json!({ "from": text }),
            json!({ "folders": [text] }),
            json!({ "query": format!("\"{}\"", text.replace('"', "")) }),
        ] {
            if let Err(failure) = host.call("email_search", arguments.clone()).await.outcome {
                let is_refused = matches!(failure.kind, Kind::InvalidArguments | Kind::Unavailable | Kind::Denied);
                assert!(is_refused, "{arguments}: {failure:?}");
            }
        }
        let _ = host.call("email_read", json!({ "id": format!("work:7:1:{text}") })).await;
        let _ = host.call("email_read", json!({ "id": "work:7:1:INBOX", "part": text })).await;
    }
    let begin =
        ["AUTHENTICATE PLAIN ", "CAPABILITY", "LIST \"\" \"*\"", "EXAMINE \"", "UID SEARCH ", "UID FETCH ", "LOGOUT"];
    for command in server.asked() {
        assert!(begin.iter().any(|begin| command.starts_with(begin)), "{command:?}");
        assert!(!command.contains(['\r', '\n', '\0']), "{command:?}");
        // Beyond its quoted strings there is nothing of ours.
        let mut outside = String::new();
        let (mut is_quoted, mut chars) = (false, command.chars());
        while let Some(c) = chars.next() {
            match c {
                '"' => is_quoted = !is_quoted,
                '\\' if is_quoted => _ = chars.next(),
                _ if is_quoted => {}
                c => outside.push(c),
            }
        }
        assert!(!is_quoted, "{command:?}");
        for word in ["CREATE", "DELETE", "OR ", "ALL", "{"] {
            assert!(!outside.contains(word), "{word} in {command:?}");
        }
    }
    assert!(server.count("UID SEARCH") > 10, "{:?}", server.asked());
}
