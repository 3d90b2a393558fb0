//! Headers and texts in all charsets, and what a message of odd bytes costs.

use super::names::NAME_CHARS;
use super::*;
use std::time::{Duration, Instant};

fn plain(head: &str, body: &[u8]) -> String {
    text(head.as_bytes(), body).text
}

#[test]
fn headers_are_read_in_their_charsets() {
    let cases: [(&[u8], &str); 19] = [
        (b"plain", "plain"),
        (b"=?GB2312?B?1tDOxA==?=", "中文"),
        (b"=?gb18030?B?1tDOxIE57zE=?=", "中文㐂"),
        (b"=?koi8-r?B?8NLJ18XU?=", "Привет"),
        (b"=?ISO-2022-JP?B?GyRCRnxLXBsoQg==?=", "日本"),
        (b"=?Shift_JIS?B?k/qWew==?=", "日本"),
        (b"=?utf-8?B?5pel5g==?= =?utf-8?B?nKw=?=", "日本"),
        (b"=?utf-8?B?5pel5g==?=\r\n =?UTF-8*ja?B?nKw=?= end", "日本 end"),
        (b"=?utf-8?q?a_b=C3=A9?= =?iso-8859-1?q?=E9?= c", "a béé c"),
        (b"K\xf6ln", "Köln"),
        ("Köln".as_bytes(), "Köln"),
        (b"=?x-nope?Q?K=F6ln?=", "Köln"),
        (b"=?x-nope?Q?K=C3=B6ln?=", "Köln"),
        (b"=?us-ascii?Q?K=C3=B6ln?=", "Köln"),
        (b"=?utf-8?Q?K=F6ln?=", "Köln"),
        (b"=?utf-7?Q?+ZeVnLIqe?=", "日本語"),
        (b"=?utf-8?X?abc?= =?utf-8?Q?never", "=?utf-8?X?abc?= =?utf-8?Q?never"),
        (b"a\r\n\tb  c\nd", "a b c d"),
        (b"=?utf-8?Q?a=0D=0AX: b?=", "a X: b"),
    ];
    for (raw, expected) in cases {
        assert_eq!(header(raw), expected, "{raw:?}");
    }
}

#[test]
fn a_header_shows_what_hides_in_it() {
    assert_eq!(header("a\u{202e}gpj.exe\u{200b}".as_bytes()), r"a\u{202e}gpj.exe\u{200b}");
    assert_eq!(header(b"\x1b[2Jx =?utf-8?B?G1syMEp5?="), "␛[2Jx ␛[20Jy");
    let long = header(&b"x".repeat(100_000));
    assert_eq!((long.chars().count(), long.ends_with('…')), (HEADER_CHARS + 1, true));
}

#[test]
fn texts_are_read_in_their_charsets() {
    let cases: [(&str, &[u8], &str); 17] = [
        ("", b"Hi \xc3\xa9", "Hi é"),
        ("Content-Type: text/plain; charset=GB18030", b"\xd6\xd0\xce\xc4", "中文"),
        ("Content-Type: text/plain; charset=\"Shift-JIS\"", b"\x93\xfa\x96\x7b", "日本"),
        ("Content-Type: text/plain; charset=cp932", b"\x93\xfa\x96\x7b", "日本"),
        ("Content-Type: text/plain; charset=ISO-2022-JP", b"\x1b$BF|K\\\x1b(B", "日本"),
        ("Content-Type: text/plain; charset=x-nope", b"\x1b$BF|K\\\x1b(B", "日本"),
        ("Content-Type: text/plain; charset=koi8-r", b"\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"),
        ("Content-Type: text/plain; charset=utf-7", b"Hi +ZeVnLIqe-", "Hi 日本語"),
        ("Content-Type: text/plain; charset=utf-7", b"Hi +ZeVnLIqe", "Hi 日本語"),
        ("Content-Type: text/plain; charset=x-nope", b"\x93hi\x94", "“hi”"),
        ("Content-Type: text/plain; charset=us-ascii", b"Gr\xfc\xdfe", "Grüße"),
        ("Content-Type: text/plain; charset=us-ascii", "Grüße".as_bytes(), "Grüße"),
        ("Content-Type: text/plain; charset=utf-8", b"Gr\xfc\xdfe", "Grüße"),
        ("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: Base64", b"R3LD\r\nvMOfZQ==", "Grüße"),
        ("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: Base64", b"R3LDvMOfZ", "Grüß"),
        (
            "Content-Transfer-Encoding: quoted-printable\r\nContent-Type: text/plain;\r\n charset=utf-8",
            b"Gr=C3=BC=C3=\r\n=9Fe = =GG  \r\nend=",
            "Grüße = =GG\nend",
        ),
        ("Content-Type: text/html", b"<meta charset=koi8-r><p>\xf0\xd2\xc9", "При"),
    ];
    for (head, body, expected) in cases {
        assert_eq!(plain(head, body), expected, "{head}");
    }
}

#[test]
fn a_charset_that_lies_is_told() {
    let lied = text(b"Content-Type: text/plain; charset=utf-8", b"Gr\xfc\xdfe");
    assert_eq!(lied.notices, ["the text is not in the charset that it names (`utf-8`); it was read as windows-1252"]);
    let unknown = text(b"Content-Type: text/plain; charset=x-nope", b"\x93hi\x94");
    assert_eq!(unknown.notices, ["the text is in a charset that is not known (`x-nope`); it was read as windows-1252"]);
    assert!(text(b"Content-Type: text/plain; charset=x-nope", b"plain").notices.is_empty());
    assert!(text(b"Content-Type: text/plain; charset=utf-8", "cut é".as_bytes().split_at(5).0).notices.is_empty());
}

#[test]
fn control_and_bidi_characters_of_a_text_are_gone_and_told() {
    let found = text(b"", "\u{1b}[2Ja\u{202e}b\u{200b}c\r\nd".as_bytes());
    assert_eq!(found.text, "abc\nd");
    assert_eq!(found.notices, ["invisible or control characters were removed from the text"]);
    assert!(text(b"", b"a\r\nb").notices.is_empty());
}

#[test]
fn plain_bytes_take_bounded_time() {
    let megabyte = |unit: &[u8]| unit.repeat((1 << 20) / unit.len());
    let begin = Instant::now();
    for encoding in ["base64", "quoted-printable", "7bit"] {
        let head = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}");
        for unit in [&b"="[..], b"=\n", b" \n", b"A", b"\xff", b"\x1b]", b"+", b"\xe2\x80\x8b"] {
            text(head.as_bytes(), &megabyte(unit));
        }
    }
    for unit in [&b"=?a?Q?"[..], b"=?", b"=?a?Q?x?= ", b"=", b"?"] {
        header(&megabyte(unit));
        file_name(&megabyte(unit));
        verified(&megabyte(unit), "a", "b");
    }
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn transfer_encodings_are_undone() {
    assert_eq!(decoded(b"Content-Transfer-Encoding: base64", b"AAEC\r\n/w==\r\n"), [0, 1, 2, 255]);
    assert_eq!(decoded(b"content-transfer-encoding: BASE64 \r\n", b"AAEC/w"), [0, 1, 2, 255]);
    assert_eq!(decoded(b"Content-Transfer-Encoding: quoted-printable", b"=00=ff=\r\n="), [0, 255]);
    assert_eq!(decoded(b"Content-Type: a/b", b"=00"), *b"=00");
}

#[test]
fn a_name_that_shows_another_address_is_told() {
    let told = Some(
        "the sender's name shows the address `bank@bank.test`, but the message is from `evil@evil.test`".to_owned(),
    );
    for name in ["bank@bank.test", "\"Bank\" <bank@bank.test>", "Bank (bank@bank.test)", "bank＠bank.test"] {
        assert_eq!(posing(name, "evil@evil.test"), told, "{name}");
    }
    for name in ["Bank", "", "Evil@EVIL.test", "evil@evil.test (evil@evil.test)", "Meet @ noon", "user@host"] {
        assert_eq!(posing(name, "evil@evil.test"), None, "{name}");
    }
}

#[test]
fn random_bytes_do_no_harm() {
    const BITS: [&[u8]; 40] = [
        b"=?",
        b"?=",
        b"utf-8",
        b"?Q?",
        b"?B?",
        b"\r\n",
        b" ",
        b"Content-Type: text/html; charset=",
        b"koi8-r",
        b"utf-7",
        b"Content-Transfer-Encoding: base64",
        b"multipart/mixed; boundary=b",
        b"--b",
        b"<div style='",
        b"display:none'>",
        b"<style>",
        b".a{",
        b"}",
        b"</div>",
        b"<!--",
        b"\xff",
        b"\xe2\x80\xae",
        b"\x1b[",
        b"+",
        b"-",
        b"'",
        b"\"",
        b"(",
        b")",
        b";",
        b"=",
        b"@",
        b".",
        b"/*",
        b"\\",
        b"dmarc=pass",
        b"mx",
        b"%e6",
        b"<a href='https://",
        b"message/rfc822",
    ];
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..20_000 {
        let mut bytes = |count: usize| {
            let count = random(count);
            (0..count).fold(Vec::new(), |mut bytes, _| {
                if random(4) == 0 {
                    bytes.push(random(256) as u8)
                } else {
                    bytes.extend(BITS[random(40)])
                }
                bytes
            })
        };
        let (head, body) = (bytes(12), bytes(60));
        text(&head, &body);
        text(b"Content-Type: text/html", &body);
        decoded(&head, &body);
        let shown = header(&body);
        assert!(!shown.contains(['\n', '\u{1b}', '\u{202e}']), "{body:?}");
        if let Some(name) = file_name(&body) {
            assert!(!name.contains(['/', '\\', '\n']) && name.chars().count() <= NAME_CHARS, "{body:?}: {name}");
        }
        verified(&body, "mx", "a@b.test");
        posing(&shown, "a@b.test");
    }
}
