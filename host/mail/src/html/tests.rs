//! Texts of HTML: what is shown, what is marked, and what deep and large documents cost.

use crate::message::{self, Text};
use std::time::{Duration, Instant};

fn html(body: &str) -> Text {
    message::text(b"Content-Type: text/html; charset=utf-8\r\n", body.as_bytes())
}

/// The stack of a thread that serves calls.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(test).expect("a thread").join().expect("no panic");
}

#[test]
fn html_becomes_text() {
    let found = html(
        "<html><head><title>T</title><style>p{color:red}</style></head><body><!-- c --><h1>Head</h1><p>One \
         <b>two</b>&amp;<a href='https://a.test/x'>three</a></p><ul><li>a<li>b</ul><script>alert(1)</script>\
         <img src='https://track.test/p.gif'><img src='https://track.test/q.png' alt='Logo'><pre>x\n  y</pre>\
         <a href='javascript:x()'>no</a> <a href='mailto:a@b.test'>mail</a> <a href='https://c.test/'>https://c.test</a>",
    );
    assert_eq!(
        found.text,
        "# Head\n\nOne two&three (https://a.test/x)\n\n- a\n- b\n\n[image: Logo]\n\nx\n  y\n\nno mail (a@b.test) https://c.test"
    );
    assert_eq!(found.notices, ["2 remote images not fetched (track.test)"]);
}

#[test]
fn hidden_text_is_marked() {
    let ways = [
        "<div style='display:none'>x</div>",
        "<div style='DISPLAY : NONE !important'>x</div>",
        "<div style='d\\69splay:none'>x</div>",
        "<div style='dis/**/play:block;display:/* a */none'>x</div>",
        "<p style='visibility:hidden'>x",
        "<span style='font-size:0'>x</span>",
        "<span style='font-size: 1px'>x</span>",
        "<span style='font:0/0 a'>x</span>",
        "<span style='color:#fff'>x</span>",
        "<font color=white>x</font>",
        "<font color='#FEFEFE'>x</font>",
        "<span style='color:rgb(255, 255, 255)'>x</span>",
        "<span style='color:hsl(0,0%,100%)'>x</span>",
        "<span style='color:transparent'>x</span>",
        "<table bgcolor=black><td><span style='color:#000'>x</table>",
        "<span style='opacity:0'>x</span>",
        "<span hidden>x</span>",
        "<span aria-hidden=true>x</span>",
        "<div style='position:absolute;left:-9999px'>x</div>",
        "<div style='text-indent:-100em'>x</div>",
        "<div style='max-height:0;overflow:hidden'>x</div>",
        "<div style='transform:scale(0)'>x</div>",
        "<div style='clip:rect(0 0 0 0)'>x</div>",
        "<style>.h{display:none}</style><p class='a h'>x</p>",
        "<p class=h>x</p><style>@media screen{ p.h { visibility : hidden } }</style>",
        "<style>@media (max-width:9px){.y{color:red}} #i, .q{opacity:0}</style><p id=i>x</p>",
        "<div hidden><span>x</div></span></div>",
        "<span hidden><div></span>x</div></span>",
        "<div hidden><table><tr><td></div>x</table></div>",
        "<dialog>x</dialog>",
        "<div style='background:url(a.png)'><span style='color:#fff'>x</span></div>",
        "<div style='background:linear-gradient(#fff, #fff)'><span style='color:#fff'>x</span></div>",
        "<div style='background:rgb(0, 0, 0)'><span style='color:#000'>x</span></div>",
        "<table background='a.png'><td><font color=white>x</font></table>",
    ];
    for way in ways {
        let found = html(&format!("<p>before</p>{way}<p>after"));
        assert_eq!(found.text.split_whitespace().collect::<Vec<_>>().join(" "), "before [hidden: x] after", "{way}");
        assert_eq!(found.notices, ["text that a mail program would not show is marked `[hidden: …]`"], "{way}");
    }
}

#[test]
fn text_that_is_shown_is_not_marked() {
    let ways = [
        "<p hidden></p>x",
        "<div style='font-size:0'><span style='font-size:14px'>x</span></div>",
        "<div style='visibility:hidden'><b style='visibility:visible'>x</b></div>",
        "<div style='display:none;display:block'>x</div>",
        "<td bgcolor='#000000'><font color='#ffffff'>x</font></td>",
        "<div style='background:#333 none'><span style='color:#fff'>x</span></div>",
        "<style>@media only screen and (max-width:600px){.d{display:none}}</style><p class=d>x</p>",
        "<p hidden>",
        "<ul><li hidden><li>x</ul>",
        "<p style='font-weight:1;font-size:1.2em;line-height:1px'>x</p>",
        "<font color=#ccc>x</font>",
        "<div style='background:#333 url(a.png)'><span style='color:#fff'>x</span></div>",
        "<div style='background:linear-gradient(to right, #000, #333)'><span style='color:#fff'>x</span></div>",
        "<div style='background-color:#000;background-image:url(a.png)'><span style='color:#fff'>x</span></div>",
        "<br hidden>x",
    ];
    for way in ways {
        let found = html(way);
        assert!(!found.text.contains("[hidden"), "{way}: {}", found.text);
    }
}

#[test]
fn hidden_text_cannot_end_its_mark_and_is_bounded() {
    assert_eq!(html("<p hidden>a] [b</p>c").text, "[hidden: a) (b]\n\nc");
    let long = html(&format!("<p hidden>{}</p>c", "word ".repeat(100_000))).text;
    assert!(long.len() < 5000 && long.ends_with("…]\n\nc"), "{}", long.len());
    let link = html("<p hidden><a href='https://a.test/]x'>a</a></p>c").text;
    assert_eq!(link, "[hidden: a (https://a.test/%5Dx)]\n\nc");
}

#[test]
fn a_link_that_shows_another_address_is_told() {
    let of = |link: &str| html(link).notices;
    let told = "a link shows `bank.test` but leads to `evil.test`";
    assert_eq!(of("<a href='https://evil.test/x'>https://bank.test/login</a>"), [told]);
    assert_eq!(of("<a href='https://evil.test/x'>bank.test</a>"), [told]);
    assert!(of("<a href='https://click.bank.test/x'>www.bank.test</a>").is_empty());
    assert!(of("<a href='https://evil.test/x'>file.2 read me</a>").is_empty());
}

#[test]
fn deep_and_big_mails_take_bounded_time() {
    on_a_small_stack(|| {
        let megabyte = |unit: &str| unit.repeat((1 << 20) / unit.len());
        let deep = |open: &str, close: &str| open.repeat(20_000) + "x" + &close.repeat(20_000);
        let cases = [
            ("nested div", deep("<div>", "</div>")),
            ("nested hidden", deep("<div style='color:#fff'>", "</div>")),
            ("nested table", deep("<table><tr><td>", "</td></tr></table>")),
            ("open p", megabyte("<p>x")),
            ("open b", megabyte("<b>x")),
            ("spans and wrong ends", "<div><span>".repeat(20_000) + &megabyte("</span>")),
            ("far ends", "<b>".to_owned() + &"<i>".repeat(20_000) + &megabyte("</b>")),
            ("attributes", "<p ".to_owned() + &megabyte("a=1 ")),
            ("many attributes", "<p ".to_owned() + &(0..90_000).map(|i| format!("a{i}=1 ")).collect::<String>()),
            ("names", (0..90_000).map(|i| format!("<n{i}>")).collect()),
            ("style", "<style>".to_owned() + &megabyte(".a{color:red}") + "</style><p class=a>x"),
            ("open style", "<style>".to_owned() + &megabyte("@media{{")),
            ("classes", "<style>.a{color:red}</style>".to_owned() + &megabyte("<p class='a b c d e f'>x")),
            ("css comments", "<p style='".to_owned() + &megabyte("/*") + "'>x"),
            ("links", megabyte("<a href=https://a.test>b</a>")),
            ("text", megabyte("word ")),
            ("less than", megabyte("<")),
            ("comments", megabyte("<!--")),
            ("entities", megabyte("&amp")),
            ("hidden", "<p hidden>".to_owned() + &megabyte("word ")),
            ("pre", "<pre>".to_owned() + &megabyte("\n")),
            ("images", megabyte("<img src=https://a.test/b>")),
        ];
        for (name, body) in cases {
            let begin = Instant::now();
            let found = html(&body);
            let took = begin.elapsed();
            assert!(found.text.len() <= 8 << 20, "{name}");
            assert!(took < Duration::from_secs(20), "{name}: {took:?}");
        }
    });
}
