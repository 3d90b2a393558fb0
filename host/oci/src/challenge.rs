//! What a registry asks for before it answers: `WWW-Authenticate` (RFC 9110, 11.6.1) with the `Bearer` challenge of registries, and the token
//! that its realm gives to anybody.
//!
//! http-auth 0.1 refuses headers that the RFC allows: two spaces after a scheme, and base64 data, as `Negotiate` has it. Of the six headers with a
//! `Bearer` challenge in the first test below, it reads four.

use config::source::is_loopback;
use serde::Deserialize;
use url::Url;

/// Bytes of a challenge, and of a token: both come from the other side.
const MOST_CHALLENGE: usize = 8 << 10;
const MOST_TOKEN: usize = 16 << 10;

/// Where a token can be had, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bearer {
    realm: Url,
    service: Option<String>,
    scope: Option<String>,
}

/// What a challenge is one of.
#[derive(Debug, PartialEq, Eq)]
struct Challenge<'h> {
    scheme: &'h str,
    /// Names in lower case.
    parameters: Vec<(String, String)>,
}

impl Bearer {
    /// Finds the `Bearer` challenge among those of all `WWW-Authenticate` headers; none where the registry asks for something else.
    ///
    /// # Errors
    /// A fragment that says what is wrong with it.
    pub(crate) fn find<'h>(headers: impl Iterator<Item = &'h str>) -> Result<Option<Self>, String> {
        for header in headers {
            let challenges = challenges(header)?;
            if let Some(bearer) = challenges.iter().find(|one| one.scheme.eq_ignore_ascii_case("bearer")) {
                return Self::of(bearer).map(Some);
            }
        }
        Ok(None)
    }

    fn of(challenge: &Challenge<'_>) -> Result<Self, String> {
        let parameter = |name: &str| {
            let mut values = challenge.parameters.iter().filter(|(other, _)| other == name).map(|(_, value)| value);
            match (values.next(), values.next()) {
                (_, Some(_)) => Err(format!("it names `{name}` twice")),
                (value, None) => Ok(value.cloned()),
            }
        };
        let realm = parameter("realm")?.ok_or("it names no `realm`")?;
        let shown = realm.escape_debug().take(200).collect::<String>();
        let realm = Url::parse(&realm).map_err(|error| format!("its realm `{shown}` is not a URL: {error}"))?;
        let is_safe = match realm.scheme() {
            "https" => true,
            // A registry of this machine has its tokens there, too.
            "http" => realm.host().is_some_and(|host| is_loopback(&host)),
            _ => false,
        };
        if !is_safe {
            return Err(format!("its realm `{shown}` is not encrypted"));
        }
        if !realm.username().is_empty() || realm.password().is_some() {
            return Err("its realm has a user or a password".into());
        }
        Ok(Self { realm, service: parameter("service")?, scope: parameter("scope")? })
    }

    /// The URL that gives a token; `repository` is what it is for where the registry does not say.
    pub(crate) fn url(&self, repository: &str) -> Url {
        let mut url = self.realm.clone();
        url.set_fragment(None);
        let scope = self.scope.clone().unwrap_or_else(|| format!("repository:{repository}:pull"));
        let mut query = url.query_pairs_mut();
        if let Some(service) = &self.service {
            query.append_pair("service", service);
        }
        query.append_pair("scope", &scope);
        drop(query);
        url
    }
}

/// The token in the answer of a realm, as the value of `Authorization`.
///
/// # Errors
/// A fragment that says what is wrong with it.
pub(crate) fn authorization(answer: &[u8]) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let answer: Answer =
        serde_json::from_slice(answer).map_err(|_| "it is not a JSON object with a text `token`".to_owned())?;
    let token = answer.token.filter(|token| !token.is_empty()).or(answer.access_token).unwrap_or_default();
    // RFC 6750, 2.1.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() {
        return Err("it has neither `token` nor `access_token`".into());
    }
    if token.len() > MOST_TOKEN {
        return Err(format!("its token is longer than {} KiB", MOST_TOKEN >> 10));
    }
    match token.bytes().all(is_token) {
        true => Ok(format!("Bearer {token}")),
        false => Err("its token has characters that no token has".into()),
    }
}

/// The challenges of a header, which may have several with commas between them, as their parameters have, too.
fn challenges(header: &str) -> Result<Vec<Challenge<'_>>, String> {
    if header.len() > MOST_CHALLENGE {
        return Err(format!("it is longer than {} KiB", MOST_CHALLENGE >> 10));
    }
    let mut rest = Scanner(header);
    let mut found: Vec<Challenge<'_>> = Vec::new();
    loop {
        rest.skip(|char| matches!(char, ' ' | '\t' | ','));
        if rest.0.is_empty() {
            return Ok(found);
        }
        let token = rest.token().ok_or_else(|| format!("`{}` is not a challenge", rest.shown()))?;
        let after = rest.0;
        rest.blanks();
        if !rest.eat('=') {
            // A scheme; a blank parts it from its parameters, or from data in base64, which no `Bearer` has.
            found.push(Challenge { scheme: token, parameters: Vec::new() });
            rest.0 = after;
            rest.blanks();
            rest.token68();
            continue;
        }
        rest.blanks();
        let value = rest.value().ok_or_else(|| format!("`{token}` has no value"))?;
        let challenge = found.last_mut().ok_or_else(|| format!("`{token}` is a parameter of nothing"))?;
        challenge.parameters.push((token.to_ascii_lowercase(), value));
    }
}

/// What is left of a header.
struct Scanner<'h>(&'h str);

impl<'h> Scanner<'h> {
    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(is_skipped);
    }

    fn blanks(&mut self) {
        self.skip(|char| matches!(char, ' ' | '\t'));
    }

    fn eat(&mut self, char: char) -> bool {
        let rest = self.0.strip_prefix(char);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A token (RFC 9110, 5.6.2).
    fn token(&mut self) -> Option<&'h str> {
        let is_token = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char);
        let end = self.0.find(|char| !is_token(char)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Skips what is not a parameter: base64 up to a comma or the end, as `Negotiate` has it.
    fn token68(&mut self) {
        let is_data = |char: char| char.is_ascii_alphanumeric() || "-._~+/".contains(char);
        let data = self.0.trim_start_matches(is_data);
        let after = data.trim_start_matches('=').trim_start_matches([' ', '\t']);
        if data.len() < self.0.len() && (after.is_empty() || after.starts_with(',')) {
            self.0 = after;
        }
    }

    /// A token, or a text in quotes with `\` before what stands for itself.
    fn value(&mut self) -> Option<String> {
        if !self.eat('"') {
            return self.token().map(str::to_owned);
        }
        let mut value = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(chars.next()?.1),
                char => value.push(char),
            }
        }
        None
    }

    fn shown(&self) -> String {
        self.0.escape_debug().take(40).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(header: &str) -> Result<Option<String>, String> {
        Bearer::find([header].into_iter()).map(|bearer| bearer.map(|bearer| bearer.url("org/a").to_string()))
    }

    #[test]
    fn a_challenge_names_where_a_token_can_be_had() {
        for (header, url) in [
            (
                r#"Bearer realm="https://ghcr.io/token",service="ghcr.io",scope="repository:org/a:pull""#,
                "https://ghcr.io/token?service=ghcr.io&scope=repository%3Aorg%2Fa%3Apull",
            ),
            (
                r#"bearer  REALM = "https://a.example/t?x=1" ,, service=r"#,
                "https://a.example/t?x=1&service=r&scope=repository%3Aorg%2Fa%3Apull",
            ),
            (
                r#"Bearer realm="https://a.example/t",scope="a,b \"c\\d\"""#,
                "https://a.example/t?scope=a%2Cb+%22c%5Cd%22",
            ),
            (
                r#"Basic realm="x, Bearer realm=y", Bearer realm="https://a.example/""#,
                "https://a.example/?scope=repository%3Aorg%2Fa%3Apull",
            ),
            (
                r#"Negotiate YWJj==, Bearer realm="https://a.example/""#,
                "https://a.example/?scope=repository%3Aorg%2Fa%3Apull",
            ),
            (
                r#"Bearer realm="http://127.0.0.1:5001/token",error="invalid_token""#,
                "http://127.0.0.1:5001/token?scope=repository%3Aorg%2Fa%3Apull",
            ),
        ] {
            assert_eq!(find(header), Ok(Some(url.to_owned())), "{header}");
        }
        for header in ["", "Basic realm=\"x\"", "Negotiate", "Negotiate abc=", "Digest realm=\"bearer\", nonce=\"x\""] {
            assert_eq!(find(header), Ok(None), "{header}");
        }
    }

    #[test]
    fn a_challenge_that_cannot_be_followed_is_refused() {
        for (header, refusal) in [
            ("Bearer", "names no `realm`"),
            ("Bearer service=x", "names no `realm`"),
            (r#"Bearer realm="https://a.example/",realm="https://b.example/""#, "names `realm` twice"),
            (r#"Bearer realm="/token""#, "is not a URL"),
            (r#"Bearer realm="http://a.example/token""#, "is not encrypted"),
            (r#"Bearer realm="file:///etc/passwd""#, "is not encrypted"),
            (r#"Bearer realm="https://u:p@a.example/""#, "has a user or a password"),
            (r#"Bearer realm="https://a.example/"#, "`realm` has no value"),
            (r#"Bearer realm="https://a.example/\"#, "`realm` has no value"),
            (r#"realm="https://a.example/""#, "is a parameter of nothing"),
            // By the grammar that is data in base64.
            ("Bearer realm=", "names no `realm`"),
            ("Bearer realm=,", "names no `realm`"),
            ("Bearer realm=x, scope=,", "`scope` has no value"),
            ("Bearer {", "is not a challenge"),
        ] {
            let refused = find(header).unwrap_err();
            assert!(refused.contains(refusal), "{header}: {refused}");
        }
        assert!(
            find(&format!("Bearer realm=\"{}\"", "x".repeat(MOST_CHALLENGE))).unwrap_err().contains("longer than 8")
        );
    }

    #[test]
    fn a_token_is_one_of_characters_that_a_header_can_have() {
        for (answer, token) in [
            (r#"{"token":"a.b-c_d~e+f/g="}"#, Ok("Bearer a.b-c_d~e+f/g=")),
            (r#"{"access_token":"x","expires_in":300}"#, Ok("Bearer x")),
            (r#"{"token":"","access_token":"x"}"#, Ok("Bearer x")),
            (r#"{"token":"a","access_token":"x"}"#, Ok("Bearer a")),
            (r#"{"expires_in":300}"#, Err("it has neither `token` nor `access_token`")),
            (r#"{"token":"a\r\nHost: b"}"#, Err("its token has characters that no token has")),
            (r#"{"token":7}"#, Err("it is not a JSON object with a text `token`")),
            ("<html>", Err("it is not a JSON object with a text `token`")),
        ] {
            assert_eq!(authorization(answer.as_bytes()).as_deref().map_err(String::as_str), token, "{answer}");
        }
        let long = format!(r#"{{"token":"{}"}}"#, "x".repeat(MOST_TOKEN + 1));
        assert!(authorization(long.as_bytes()).unwrap_err().contains("longer than 16 KiB"));
    }
}
