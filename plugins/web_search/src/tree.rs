//! The tree of a page, made step by step so that a hostile page ends it early. What the tree says, `page` knows.

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::TendrilSink;
use scraper::{Html, HtmlTreeSink};

/// The parser walks through all open elements again and again.
const DEPTH: usize = 2_000;
/// Few bytes can make many nodes: what formats text is opened anew in every block.
const NODES: usize = 100_000;
/// The parser compares each attribute of a tag with all before it.
const TAG_BYTES: usize = 32 << 10;
const STEP_BYTES: usize = 512;

/// Returns the tree, of a page with very many nodes that of its start, or why there is none.
pub(crate) fn parse(html: &str) -> Result<Html, &'static str> {
    let mut parser = parse_document(HtmlTreeSink::new(Html::new_document()), ParseOpts::default());
    let (mut made, mut idle, mut rest) = ((0, 0), 0, html);
    while !rest.is_empty() {
        let (step, behind) = rest.split_at(rest.floor_char_boundary(STEP_BYTES));
        rest = behind;
        parser.process(step.into());
        let page = parser.tokenizer.sink.sink.0.borrow();
        let last = page.tree.nodes().next_back().and_then(|node| node.value().as_text());
        let now = (page.tree.nodes().len(), last.map_or(0, |text| text.len()));
        if page.tree.nodes().rev().take(now.0 - made.0).any(|node| node.ancestors().nth(DEPTH).is_some()) {
            return Err("it nests more than 2,000 elements");
        }
        idle = if now == made { idle + step.len() } else { 0 };
        made = now;
        if idle > TAG_BYTES {
            return Err("a tag or comment has more than 32 KiB");
        }
        if made.0 > NODES {
            break;
        }
    }
    Ok(parser.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn nodes(html: &str) -> usize {
        parse(html).unwrap().tree.nodes().len()
    }

    #[test]
    fn steps_make_the_tree_that_the_whole_makes() {
        let page = include_str!("../../../tests/tools/web_search/pages/results.html");
        assert_eq!(parse(page).unwrap(), Html::parse_document(page));
        let wide = "<p title='é🙂'>é🙂&amp;</p>".repeat(200);
        assert_eq!(parse(&wide).unwrap(), Html::parse_document(&wide));
        assert_eq!(parse("").unwrap(), Html::parse_document(""));
    }

    #[test]
    fn deep_pages_are_refused_however_they_hide_it() {
        let deep = Err("it nests more than 2,000 elements");
        for (element, count) in [
            ("<div>", 3_000),
            ("<div title='</div>'>", 3_000),
            ("<div><!-- </div> -->", 3_000),
            ("<div></body><!---->", 3_000),
            ("<svg><style>", 3_000),
            ("<table><tr><td>", 2_000),
            ("<b>", 100_000),
        ] {
            assert_eq!(parse(&element.repeat(count)).map(drop), deep, "{element}");
        }
        assert!(nodes(&"<div>".repeat(1_900)) > 1_900);
        assert!(nodes(&"<div></div><p><br>".repeat(3_000)) > 9_000);
    }

    #[test]
    fn what_multiplies_is_cut_off() {
        let formats: String = (0..1_000).map(|at| format!("<b id={at}>")).collect();
        let page = format!("<div>{formats}</div>{}", "<div>x</div>".repeat(80_000));
        assert!(nodes(&page) < 2 * NODES);
        assert!(nodes(&"<br>".repeat(200_000)) < NODES + STEP_BYTES);
    }

    #[test]
    fn a_tag_without_end_is_refused_and_a_long_text_is_not() {
        let attributes: String = (0..100_000).map(|at| format!("a{at:05} ")).collect();
        for start in ["<p ", "text<p ", "<!-- "] {
            assert_eq!(
                parse(&format!("{start}{attributes}")).map(drop),
                Err("a tag or comment has more than 32 KiB"),
                "{start}"
            );
        }
        for start in ["<p>", "<script>", "<textarea>", "<title>"] {
            assert!(nodes(&format!("{start}{attributes}")) < 10, "{start}");
        }
    }

    #[test]
    fn a_hostile_page_takes_bounded_time() {
        const BYTES: usize = 1 << 18;
        let attributes: String = (0..4_000).map(|at| format!("a{at:04} ")).collect();
        let tags = format!("<p {attributes}>").repeat(BYTES / attributes.len());
        for page in [
            tags,
            "<div>".repeat(1_900) + &"<p>".repeat(BYTES / 3),
            "<b>".repeat(1_900) + &"</i>".repeat(BYTES / 4),
            "<a><table>".repeat(BYTES / 10),
            "<p><b><i><a>".repeat(BYTES / 12),
            "<select><option>".repeat(BYTES / 16),
            "</p>".repeat(BYTES / 4),
            "<table>x".repeat(BYTES / 8),
        ] {
            let start = Instant::now();
            let _ = parse(&page);
            let took = start.elapsed();
            assert!(took < Duration::from_secs(10), "{}: {took:?}", &page[..40]);
        }
    }
}
