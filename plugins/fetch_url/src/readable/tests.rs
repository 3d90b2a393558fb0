use super::*;
use std::time::{Duration, Instant};

fn text(html: &str) -> String {
    super::text(html, Url::parse("https://example.com/docs/page.html?q=1#top").ok())
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (html, expected) in cases {
        assert_eq!(text(html), *expected, "{html}");
    }
}

#[test]
fn white_space_is_collapsed_and_blocks_stand_on_lines_of_their_own() {
    check(&[
        ("", ""),
        ("plain", "plain"),
        ("  a \n\t b&nbsp;c  ", "a b c"),
        ("a<b>b</b> <i> c</i>d <img alt=''>e", "ab cd e"),
        ("<div>a</div><div>b</div>c", "a\nb\nc"),
        ("<div><div><div>a</div></div></div>b", "a\nb"),
        ("<p>a</p>\n\n\n<p></p><p> </p><section><p>b</p></section>", "a\n\nb"),
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b<br><br><br>c<hr>d", "a\nb\n\nc\n\nd"),
        ("a&lt;b&gt;&amp;amp;&#x263a;&eacute;&nosuch;", "a<b>&amp;☺é&nosuch;"),
        ("a<!-- no --><!doctype html><![CDATA[no]]>b", "ab"),
        ("1 < 2 <3 </>4", "1 < 2 <3 4"),
        ("a\0b", "a\0b"),
    ]);
}

#[test]
fn what_is_not_read_is_left_out() {
    check(&[
        ("a<script>if (1 < 2) document.write('<p>no</p>')</script>b", "ab"),
        ("a<style>p { color: red }</style>b<noscript><p>no</p></noscript>c", "abc"),
        ("a<template>no<template>no</template>no</template>b", "ab"),
        ("a<svg><title>no</title><text>no</text><svg/><svg></svg>no</svg>b<svg/>c", "abc"),
        ("a<iframe><p>no</p></iframe>b</svg></script>c", "abc"),
        ("a<script>no", "a"),
        ("<head><meta name=a content=no><link rel=b><base></head><body>a", "a"),
        ("<input value=no>a<p class='no' data-a=\"no > no\" b='</p>'>b", "a\n\nb"),
    ]);
}

#[test]
fn the_title_is_the_first_line() {
    check(&[
        ("<html><head><title>\n A &amp; <b> </title></head><body><p>a", "A & <b>\n\na"),
        ("a<title>Late</title>b<title>Second</title>", "Late\n\nab"),
        ("<title>Alone</title>", "Alone"),
        ("<title> </title>a", "a"),
    ]);
}

#[test]
fn headings_and_lists_are_marked() {
    check(&[
        ("<h1>A</h1><h2><a name=x></a>B <em>C</em></h2>d<h6>E</h6>", "# A\n\n## B C\n\nd\n\n###### E"),
        ("a<ul><li>b<li><p>c</p></li><li></li><li>d<ol><li>e</ol></ul>f", "a\n\n- b\n\n- c\n\n- d\n- e\n\nf"),
        ("<ul>\n<li>a</li>\n<li>b</li>\n</ul>", "- a\n- b"),
        ("<h2></h2><p>a</p><ul><li></li></ul>b", "a\n\nb"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
        ("</ul></ul><ul><li>a</ul>", "- a"),
    ]);
}

#[test]
fn cells_of_a_row_share_a_line() {
    check(&[
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>c", "a | b\n1 | 2\n\nc"),
        ("<table><thead><tr><td><p>a</p></td> <td><div>b</div></td><tbody><tr><td>c", "a | b\nc"),
        ("<table><tr><td></td><td>a</td><td></td><td>b</td><td></td></tr><tr><td>c</table>", "| a | | b\nc"),
        ("<table><tr><td>a<table><tr><td>b<td>c</table></table>", "a\n\nb | c"),
        ("<td>a<td>b", "a | b"),
    ]);
}

#[test]
fn preformatted_text_keeps_its_white_space() {
    check(&[
        ("a<pre>\n  b\n\n\n\tc &amp; <b>d</b>\n</pre>e", "a\n\n  b\n\n\n\tc & d\n\ne"),
        ("<pre>a<br>b</pre>", "a\nb"),
        ("<pre>\n\na</pre>", "\na"),
        ("</pre><p>a  b", "a b"),
        ("<textarea> a\n b </textarea>", "a b"),
    ]);
}

#[test]
fn links_carry_their_absolute_address() {
    check(&[
        ("<a href=other>a</a>.", "a (https://example.com/docs/other)."),
        ("<a href=' /x?a=1&amp;b=2#c '>a <b>b</b></a>", "a b (https://example.com/x?a=1&b=2#c)"),
        ("<a HREF='//example.org'>a</a>", "a (https://example.org/)"),
        ("<a href=http://example.net/%7Ea>a</a>", "a (http://example.net/%7Ea)"),
        ("<a href=/b><div>a</div><p>b</p></a>c", "a\n\nb (https://example.com/b)\n\nc"),
        ("<p><a href=/b>a</p><p>b</a>", "a\n\nb (https://example.com/b)"),
        ("<a href=/1>a<a href=/2>b</a></a>", "a (https://example.com/1)b (https://example.com/2)"),
        ("<a href=/1><img alt='a picture'></a><a href=/2><img></a>", "a picture (https://example.com/1)"),
        ("<a href=/1>a", "a (https://example.com/1)"),
        ("<a href=/1 href=/2>a</a href=/3>", "a (https://example.com/1)"),
        ("<a href='https://example.org/'> https://example.org/ </a>b", "https://example.org/ b"),
    ]);
}

#[test]
fn links_that_lead_to_no_other_page_are_text() {
    let long = format!("<a href='/{}'>a</a>", "x".repeat(URL_BYTES));
    for html in [
        "<a>a</a>",
        "<a href>a</a>",
        "<a href=''>a</a>",
        "<a href='#b'>a</a>",
        "<a href='javascript:alert(1)'>a</a>",
        "<a href=' JavaScript:alert(1)'>a</a>",
        "<a href='java\nscript:alert(1)'>a</a>",
        "<a href='mailto:b@example.com'>a</a>",
        "<a href='data:text/html,b'>a</a>",
        "<a href='https://'>a</a>",
        "<a href='http://[b'>a</a>",
        &long,
    ] {
        assert_eq!(text(html), "a", "{html}");
    }
    assert_eq!(super::text("<a href=/b>a</a>", None), "a");
}

#[test]
fn a_document_may_have_a_base_of_its_own() {
    check(&[
        ("<base href=/v2/><a href=a>a</a>", "a (https://example.com/v2/a)"),
        (
            "<base target=_top><base href=https://example.org/><base href=/no/><a href=a>a</a>",
            "a (https://example.org/a)",
        ),
        ("<base href=javascript:1><a href=a>a</a>", "a (https://example.com/docs/a)"),
    ]);
}

#[test]
fn a_hostile_document_takes_time_by_its_length_alone() {
    const BYTES: usize = 1 << 20;
    let distinct = |count: usize, form: fn(usize) -> String| (0..count).map(form).collect::<String>();
    let documents = [
        "<div>".repeat(BYTES / 5),
        "<b>".repeat(BYTES / 3),
        "<a href=x>".repeat(BYTES / 10),
        "<a href=x>y".repeat(BYTES / 11),
        "<svg>".repeat(BYTES / 5),
        "<template>".repeat(BYTES / 10),
        "<ul><li>".repeat(BYTES / 8),
        "<table><tr><td>".repeat(BYTES / 15),
        "<td>".repeat(BYTES / 4) + "x",
        "<pre>\n ".repeat(BYTES / 7),
        "<".repeat(BYTES),
        "</".repeat(BYTES / 2),
        "<!--".repeat(BYTES / 4),
        "<!--->-".repeat(BYTES / 7),
        "&".repeat(BYTES),
        "&#x1".repeat(BYTES / 4),
        "&CounterClockwiseContourIntegra".repeat(BYTES / 31),
        "<title>".repeat(BYTES / 7),
        format!("<script>{}", "</script".repeat(BYTES / 8)),
        format!("<script><!--{}", "<script".repeat(BYTES / 7)),
        format!("<p {}>", distinct(BYTES / 8, |at| format!("a{at:06x} "))),
        format!("<a href='{}'>x", "y".repeat(BYTES)),
        distinct(BYTES / 9, |at| format!("<e{at:06x}>")),
        "\0".repeat(BYTES),
        " \n".repeat(BYTES / 2),
    ];
    let long = Url::parse(&format!("https://example.com/{}/", "x".repeat(URL_BYTES / 2))).unwrap();
    for html in documents {
        let start = Instant::now();
        let length = super::text(&html, Some(long.clone())).len();
        let (took, head) = (start.elapsed(), &html[..html.len().min(40)]);
        assert!(length <= TEXT_BYTES + BYTES, "{head}: {length}");
        assert!(took < Duration::from_secs(10), "{head}: {took:?}");
    }
}
