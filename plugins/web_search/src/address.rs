//! Where the link of a result leads.

use url::{Host, Url};

/// The engine's own domain; its pages carry redirects and advertisements.
const ENGINE: &str = "duckduckgo.com";

/// Returns the address of the page that was found: redirects of the engine are unwrapped. Advertisements, relative links
/// within the engine and what is not on the web have none.
pub(crate) fn target(href: &str, endpoint: Option<&Url>) -> Option<Url> {
    let href = href.trim();
    let whole = match href.strip_prefix("//") {
        Some(rest) => Url::parse(&format!("https://{rest}")).ok(),
        None => Url::parse(href).ok(),
    };
    let url = whole.clone().or_else(|| endpoint?.join(href).ok())?;
    let is_redirect = is_engine(&url, endpoint) && ["/l", "/l/"].contains(&url.path());
    let url = if is_redirect { named(&url)? } else { whole? };
    let is_advertisement = is_engine(&url, None) && url.path() == "/y.js";
    (["http", "https"].contains(&url.scheme()) && !is_advertisement).then_some(url)
}

/// Returns the target of a redirect: `/l/?uddg=…`.
fn named(redirect: &Url) -> Option<Url> {
    let (_, target) = redirect.query_pairs().find(|(name, _)| name == "uddg")?;
    Url::parse(target.trim()).ok()
}

fn is_engine(url: &Url, endpoint: Option<&Url>) -> bool {
    let Some(Host::Domain(domain)) = url.host() else {
        return endpoint.is_some_and(|endpoint| endpoint.host() == url.host());
    };
    let is_own = domain.strip_suffix(ENGINE).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_own || endpoint.is_some_and(|endpoint| endpoint.domain() == Some(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(href: &str) -> Option<String> {
        let endpoint = Url::parse("http://search.example:8080/html/?q=a").unwrap();
        target(href, Some(&endpoint)).map(Url::into)
    }

    #[test]
    fn redirects_of_the_engine_are_unwrapped_once() {
        let page = "https://example.org/a?b=c&d=e%20f+g#h";
        let encoded = "https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d%3De%2520f%2Bg%23h";
        for redirect in [
            "//duckduckgo.com/l/?uddg={}&rut=0a1b",
            "https://duckduckgo.com/l/?kh=-1&uddg={}",
            "http://html.duckduckgo.com/l/?uddg={}",
            "/l/?uddg={}",
            "../l/?uddg={}",
            "  //search.example/l?uddg={}\n",
            "http://search.example:8080/l/?uddg={}",
        ] {
            assert_eq!(address(&redirect.replace("{}", encoded)).as_deref(), Some(page), "{redirect}");
        }
        let twice =
            "//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2Fl%2F%3Fuddg%3Dhttps%253A%252F%252Fexample.net";
        assert_eq!(address(twice).as_deref(), Some("https://example.org/l/?uddg=https%3A%2F%2Fexample.net"));
    }

    #[test]
    fn addresses_of_the_web_are_kept() {
        for (href, expected) in [
            ("https://example.org", "https://example.org/"),
            ("HTTP://Example.ORG/A b", "http://example.org/A%20b"),
            ("//example.org/a", "https://example.org/a"),
            (
                "https://example.org/l/?uddg=https%3A%2F%2Fexample.net",
                "https://example.org/l/?uddg=https%3A%2F%2Fexample.net",
            ),
            ("https://notduckduckgo.com/y.js?a=b", "https://notduckduckgo.com/y.js?a=b"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://duckduckgo.com/about", "https://duckduckgo.com/about"),
        ] {
            assert_eq!(address(href).as_deref(), Some(expected), "{href}");
        }
    }

    #[test]
    fn what_is_no_page_or_an_advertisement_has_no_address() {
        for href in [
            "javascript:alert(1)",
            " java\nscript:alert(1)",
            "data:text/html,a",
            "mailto:a@example.org",
            "file:///etc/passwd",
            "https://",
            "//",
            "https://duckduckgo.com/y.js?ad_domain=example.org",
            "//duckduckgo.com/y.js",
            "//duckduckgo.com/l/?uddg=javascript%3Aalert(1)",
            "//duckduckgo.com/l/?uddg=%2F%2Fexample.org",
            "//duckduckgo.com/l/?uddg=",
            "//duckduckgo.com/l/?rut=0a1b",
            "/l/",
            "/html/?q=a",
            "?q=a",
            "#top",
            "",
            "//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fad_domain%3Dexample.org",
        ] {
            assert_eq!(address(href), None, "{href}");
        }
    }
}
