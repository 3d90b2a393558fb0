//! Text that has the shape of a secret, whoever it belongs to: vendors' tokens, private keys, passwords in URLs.
//!
//! The forms are those of the vendors' own documentation. Tokens without a telling beginning are left alone.
//!
//! A search for the beginnings comes first; only around one of them does a rule look closer, at a bounded piece of text
//! or at one that no other candidate looks at again. So the time is linear in the text.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::bytes::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

/// Bytes of the shortest find there can be, a password in a URL: `a://b:c@d`.
pub const SHORTEST: usize = 9;

/// How far a rule looks, but for JSON Web Tokens and private keys: more than the longest token takes.
const WINDOW: usize = 4096;

/// The longest scheme of a URL that is shown with a find.
const SCHEME_MAX: usize = 32;

/// Of so many characters at a token's end, so many are different; all but one in 20,000 runs of random hex digits pass.
const END_CHARS: usize = 16;
const END_MIN_DIFFERENT: usize = 6;

/// Written in place of a password in documentation.
const STAND_INS: [&str; 8] =
    ["passwd", "password", "my-password", "mypassword", "secret", "your-password", "yourpassword", "your_password"];

/// One find.
#[derive(Debug, PartialEq)]
pub struct Shape {
    /// For people, with its article: `a GitHub token`.
    pub name: &'static str,
    /// Where in the text, in bytes; begins and ends between characters.
    pub range: Range<usize>,
    /// A private key, which no result should show.
    pub is_key: bool,
}

struct Rule {
    name: &'static str,
    kind: Kind,
    /// Every find has one of them. No two rules share one, and of two that begin alike the longer counts.
    starts: &'static [&'static str],
    /// From the start on.
    form: &'static str,
    built: OnceLock<Regex>,
}

enum Kind {
    /// A word of its own.
    Token,
    /// A token that is a private key.
    TokenKey,
    /// Three words with dots between; the first is a JSON object that names an algorithm.
    Jwt,
    /// `scheme://user:password@host`; the first group is the password.
    Url,
    /// A request's header; the first group is the credential.
    Header,
    /// A block with a beginning and an end; the first group is the label of both.
    Pem,
}

const fn rule(name: &'static str, kind: Kind, starts: &'static [&'static str], form: &'static str) -> Rule {
    Rule { name, kind, starts, form, built: OnceLock::new() }
}

static RULES: [Rule; 19] = [
    // The second form is of installation tokens since 2026: an app's number, then a JSON Web Token.
    rule(
        "a GitHub token",
        Kind::Token,
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        concat!(
            r"gh[pousr]_[A-Za-z0-9]{36,251}|ghs_[A-Za-z0-9]{1,20}_eyJ[A-Za-z0-9_.-]{100,1000}|",
            r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"
        ),
    ),
    // With dots: the routable tokens that GitLab has made since 2025.
    rule(
        "a GitLab token",
        Kind::Token,
        &[
            "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "gloas-", "glagent-", "glimt-", "glft-",
            "glffct-",
        ],
        r"gl(?:pat|dt|rt|ptt|cbt|soat|oas|agent|imt|ft|ffct)-[A-Za-z0-9_-]{20,200}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    rule(
        "a Slack token",
        Kind::Token,
        &["xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        r"(?:xoxe\.)?xox[abeprs]-[0-9][A-Za-z0-9-]{20,255}|xapp-[0-9]-[A-Z0-9]{8,16}-[0-9]{8,16}-[0-9a-f]{64}",
    ),
    rule("an AWS access key id", Kind::Token, &["AKIA", "ASIA"], r"A[KS]IA[A-Z2-7]{16}"),
    rule("a Google API key", Kind::Token, &["AIza"], r"AIza[A-Za-z0-9_-]{35}"),
    rule(
        "a Google OAuth token",
        Kind::Token,
        &["ya29.", "GOCSPX-"],
        r"ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28}",
    ),
    rule("an Anthropic API key", Kind::Token, &["sk-ant-"], r"sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{80,200}"),
    rule(
        "an OpenAI API key",
        Kind::Token,
        &["sk-", "sk-proj-", "sk-svcacct-", "sk-admin-"],
        r"sk-(?:[A-Za-z0-9]{48}|(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,220})",
    ),
    rule(
        "a Stripe API key",
        Kind::Token,
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{24,250}",
    ),
    rule("an npm token", Kind::Token, &["npm_"], r"npm_[A-Za-z0-9]{36}"),
    // Every one begins with the name of its index, in base64: `pypi.org` or `test.pypi.org`.
    rule(
        "a PyPI token",
        Kind::Token,
        &["pypi-AgE"],
        r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZ)[A-Za-z0-9_-]{50,1000}",
    ),
    rule("a SendGrid API key", Kind::Token, &["SG."], r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    rule("a Hugging Face token", Kind::Token, &["hf_"], r"hf_[A-Za-z0-9]{34,40}"),
    rule("a DigitalOcean token", Kind::Token, &["dop_v1_", "doo_v1_", "dor_v1_"], r"do[opr]_v1_[0-9a-f]{64}"),
    rule(
        "an age secret key",
        Kind::TokenKey,
        &["AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"],
        r"AGE-SECRET-KEY-(?:PQ-)?1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58,80}",
    ),
    rule("a JSON Web Token", Kind::Jwt, &["eyJ"], r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
    rule(
        "a password in a URL",
        Kind::Url,
        &["://"],
        r#"://[^\s/:@?#"'`<>\\]{0,64}:([^\s/@"'`<>\\]{6,256})@[A-Za-z0-9\[]"#,
    ),
    rule(
        "an `Authorization` header",
        Kind::Header,
        &["uthorization", "UTHORIZATION"],
        concat!(
            r#"(?i)uthorization[\\"']{0,3}\s{0,4}[:=]\s{0,4}[\\"']{0,3}(?:bearer|basic|token)\s{1,4}"#,
            r"([A-Za-z0-9._~+/-]{16,}={0,2})"
        ),
    ),
    // Source code often names the beginning alone. So a key must follow it, across line ends, escapes, the marks of
    // comments and diffs, and line numbers.
    rule(
        "a private key",
        Kind::Pem,
        &["-----BEGIN"],
        concat!(
            "-----BEGIN ((?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?)-----",
            r#"(?:\s|\\+[nrt]?|["',+>|#*-]|//[/!]? |[0-9]{1,7}[:|\t -]|[A-Z][A-Za-z-]+: [^\r\n\\]*)*[A-Za-z0-9+/]{16}"#
        ),
    ),
];

/// The beginnings of all rules, and which rule each is of.
static STARTS: LazyLock<(AhoCorasick, Vec<usize>)> = LazyLock::new(|| {
    let starts =
        RULES.iter().enumerate().flat_map(|(index, rule)| rule.starts.iter().map(move |start| (*start, index)));
    let (starts, rules): (Vec<&str>, Vec<usize>) = starts.unzip();
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(starts);
    (automaton.expect("a few short beginnings fit"), rules)
});

/// Returns what in the text has the shape of a secret, in order; no two overlap.
pub fn find(text: &str) -> Vec<Shape> {
    let (automaton, rules) = &*STARTS;
    let mut shapes = Vec::new();
    let mut done = 0;
    for start in automaton.find_iter(text) {
        let rule = &RULES[rules[start.pattern().as_usize()]];
        if start.start() < done {
            continue;
        }
        if let Some(found) = rule.find(text, start.start()) {
            // The scheme of a URL may be the end of a token.
            let range = found.start.max(done)..found.end;
            done = range.end;
            let is_key = matches!(rule.kind, Kind::TokenKey | Kind::Pem);
            shapes.push(Shape { name: rule.name, range, is_key });
        }
    }
    shapes
}

/// Returns the text with `[private key]` in place of every private key; borrowed when there is none.
///
/// A key whose end is missing reaches to the end of the text.
pub fn redact_keys(text: &str) -> Cow<'_, str> {
    let mut output = String::new();
    let mut done = 0;
    for key in find(text).into_iter().filter(|shape| shape.is_key) {
        output += &text[done..key.range.start];
        output += "[private key]";
        done = key.range.end;
    }
    if done == 0 { Cow::Borrowed(text) } else { Cow::Owned(output + &text[done..]) }
}

impl Rule {
    /// The range of the secret whose beginning is at `start`.
    fn find(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let (before, rest) = text.as_bytes().split_at(start);
        let window = &rest[..rest.len().min(WINDOW)];
        match self.kind {
            Kind::Token | Kind::TokenKey => {
                let token =
                    if may_begin(before, is_word) { self.regex().find(window)?.as_bytes() } else { return None };
                let ends = !rest.get(token.len()).copied().is_some_and(is_word);
                (ends && is_random(token)).then(|| start..start + token.len())
            }
            Kind::Jwt => {
                // A run of these characters is looked at once, however long: what is within it begins no token.
                let token =
                    if may_begin(before, is_of_jwt) { self.regex().find(rest)?.as_bytes() } else { return None };
                names_algorithm(token).then(|| start..start + token.len())
            }
            Kind::Url => {
                let scheme = before.iter().rev().take(SCHEME_MAX).take_while(|byte| is_of_scheme(**byte)).count();
                let found = if scheme > 0 { self.regex().captures(window)? } else { return None };
                // The find ends at the host's first character.
                (!is_stand_in(&group(&found))).then(|| start - scheme..start + found[0].len() - 1)
            }
            Kind::Header => {
                let is_whole = matches!(before, [.., b'a' | b'A']);
                let found = if is_whole { self.regex().captures(window)? } else { return None };
                let credential = group(&found);
                let is_real = is_random(credential.as_bytes()) && is_mixed(&credential);
                is_real.then(|| start - 1..start + found[0].len())
            }
            Kind::Pem => {
                let found = self.regex().captures(window)?;
                let last = format!("-----END {}-----", group(&found));
                let end = text[start..].find(&last).map_or(text.len(), |at| start + at + last.len());
                Some(start..end)
            }
        }
    }

    fn regex(&self) -> &Regex {
        self.built.get_or_init(|| {
            let anchored = format!(r"\A(?:{})", self.form);
            RegexBuilder::new(&anchored).unicode(false).build().expect("a test builds every rule")
        })
    }
}

fn group<'f>(found: &'f Captures<'_>) -> Cow<'f, str> {
    String::from_utf8_lossy(&found[1])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_of_jwt(byte: u8) -> bool {
    is_word(byte) || b"-.".contains(&byte)
}

fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+.-".contains(&byte)
}

/// Whether a token may begin after `before`: not within a longer word. An escape such as `\n`, `\u0026` or `%3D` ends in
/// letters and is none of the word.
fn may_begin(before: &[u8], is_word: impl Fn(u8) -> bool) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., b'\\', b'u', _, _, _, _] => true,
        [.., last] => !is_word(*last),
        [] => true,
    }
}

/// Whether a token is more than a stand-in such as `ghp_xxxx…` or `sk-proj-your-key…`. AWS ends the key ids of its
/// documentation in `EXAMPLE`.
fn is_random(token: &[u8]) -> bool {
    let mut end = token[token.len() - END_CHARS.min(token.len())..].to_vec();
    end.sort_unstable();
    end.dedup();
    let is_words = end.iter().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(byte));
    end.len() >= END_MIN_DIFFERENT && !is_words && !token.ends_with(b"EXAMPLE")
}

/// `YOUR_TOKEN_HERE` and `your-token-here` are made of letters of one case.
fn is_mixed(token: &str) -> bool {
    let kinds: [fn(&u8) -> bool; 3] = [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit];
    kinds.iter().filter(|kind| token.as_bytes().iter().any(kind)).count() >= 2
}

/// `${PASSWORD}`, `{password}`, `<password>`, `%(password)s`, `****` and the like.
fn is_stand_in(password: &str) -> bool {
    let is_template = password.starts_with(['$', '{', '[', '(', '*', '.'])
        || password.starts_with("%(")
        || password.starts_with("%{");
    let first = password.chars().next();
    is_template || password.chars().all(|c| Some(c) == first) || STAND_INS.contains(&&*password.to_ascii_lowercase())
}

fn names_algorithm(token: &[u8]) -> bool {
    let header = token.split(|byte| *byte == b'.').next().expect("a split has a first part");
    let decoded = URL_SAFE_NO_PAD.decode(header).ok();
    let object = decoded.and_then(|json| serde_json::from_slice::<Map<String, Value>>(&json).ok());
    object.is_some_and(|header| header.contains_key("alg"))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Random;
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const DIGITS: &str = "123456789";
    const HEX: &str = "0123456789abcdef";
    const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const BECH32: &str = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";

    /// One of each form: what a rule calls it, what it finds, what must follow. Made here, so that nobody else's search
    /// for tokens stops at this file.
    fn samples(random: &mut Random) -> Vec<(&'static str, String, &'static str)> {
        let mut of = |alphabet: &str, chars: usize| random.text(alphabet, chars);
        let encode = |json: &str| URL_SAFE_NO_PAD.encode(json);
        let header = encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let web_token = format!("{header}.{}.{}", encode(r#"{"sub":"1234567890"}"#), of(URL, 43));
        let tokens = [
            ("a GitHub token", format!("gh{}_{}", of("pousr", 1), of(WORD, 36))),
            ("a GitHub token", format!("github_pat_{}_{}", of(WORD, 22), of(WORD, 59))),
            ("a GitHub token", format!("ghs_{}_{web_token}", of(DIGITS, 7))),
            ("a GitLab token", format!("glpat-{}", of(URL, 20))),
            ("a GitLab token", format!("glpat-{}.01.{}", of(URL, 36), of(HEX, 9))),
            ("a GitLab token", format!("glrt-t1_{}", of(URL, 20))),
            ("a Slack token", format!("xoxb-{}-{}-{}", of(DIGITS, 12), of(DIGITS, 13), of(WORD, 24))),
            ("a Slack token", format!("xoxe.xoxp-1-{}", of(WORD, 160))),
            ("a Slack token", format!("xapp-1-A{}-{}-{}", of(BASE32, 10), of(DIGITS, 13), of(HEX, 64))),
            ("an AWS access key id", format!("A{}IA{}", of("KS", 1), of(BASE32, 16))),
            ("a Google API key", format!("AIza{}", of(URL, 35))),
            ("a Google OAuth token", format!("ya29.a0{}", of(URL, 160))),
            ("a Google OAuth token", format!("GOCSPX-{}", of(URL, 28))),
            ("an Anthropic API key", format!("sk-ant-api03-{}AA", of(URL, 93))),
            ("an OpenAI API key", format!("sk-{}T3BlbkFJ{}", of(WORD, 20), of(WORD, 20))),
            ("an OpenAI API key", format!("sk-proj-{}T3BlbkFJ{}", of(URL, 74), of(URL, 74))),
            ("an OpenAI API key", format!("sk-svcacct-{}", of(URL, 120))),
            ("a Stripe API key", format!("{}k_live_{}", of("rs", 1), of(WORD, 99))),
            ("a Stripe API key", format!("sk_test_{}", of(WORD, 24))),
            ("an npm token", format!("npm_{}", of(WORD, 36))),
            ("a PyPI token", format!("pypi-AgEIcHlwaS5vcmc{}", of(URL, 160))),
            ("a SendGrid API key", format!("SG.{}.{}", of(URL, 22), of(URL, 43))),
            ("a Hugging Face token", format!("hf_{}", of(WORD, 34))),
            ("a DigitalOcean token", format!("do{}_v1_{}", of("opr", 1), of(HEX, 64))),
            ("an age secret key", format!("AGE-SECRET-KEY-1{}", of(BECH32, 58))),
            ("a JSON Web Token", web_token),
            ("an `Authorization` header", format!("Authorization: Bearer a1{}", of(URL, 30))),
            ("an `Authorization` header", format!("AUTHORIZATION: token a1{}", of(HEX, 40))),
            ("an `Authorization` header", format!("authorization\": \"Basic {}", STANDARD.encode(of(WORD, 20)))),
            ("a private key", pem("PRIVATE KEY", &of(WORD, 160))),
            ("a private key", pem("RSA PRIVATE KEY", &format!("Proc-Type: 4,ENCRYPTED\n\n{}", of(WORD, 160)))),
            ("a private key", pem("OPENSSH PRIVATE KEY", &of(WORD, 160)).replace('\n', "\\n")),
            ("a private key", pem("PGP PRIVATE KEY BLOCK", &format!("\r\n{}", of(WORD, 160)))),
            ("a private key", pem("EC PRIVATE KEY", &of(WORD, 64)).replace('\n', "\n  2\t")),
            ("a private key", pem("PRIVATE KEY", &of(WORD, 64)).replace('\n', "\n/// ")),
            ("a private key", pem("PRIVATE KEY", &of(WORD, 64)).replace('\n', "\\n\\\n  ")),
            ("a private key", pem("PRIVATE KEY", &of(WORD, 64)).replace('\n', "\n-")),
        ];
        let urls = [
            ("a password in a URL", format!("postgres://app:{}@", of(WORD, 12)), "db.example.com"),
            ("a password in a URL", format!("redis+tls://:{}%40é@", of(WORD, 12)), "[::1]:6379"),
        ];
        tokens.into_iter().map(|(name, token)| (name, token, "")).chain(urls).collect()
    }

    fn pem(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----")
    }

    fn names(text: &str) -> Vec<&'static str> {
        find(text).into_iter().map(|shape| shape.name).collect()
    }

    /// K-03: what each vendor makes is found,
    #[test]
    fn every_rule_finds_its_vendors_tokens() {
        let mut random = Random::new();
        for (name, sample, after) in (0..100).flat_map(|_| samples(&mut random)) {
            for (front, back) in [("", ""), ("é ", " é"), ("(", ")."), ("x\\n", "\\n"), ("%3D", "%26"), ("\"", "\"\n")]
            {
                let text = format!("{front}{sample}{after}{back}");
                let is_key = ["a private key", "an age secret key"].contains(&name);
                let range = front.len()..front.len() + sample.len();
                // Of the escape and the scheme of a URL, nothing says where the one ends and the other begins.
                if front.ends_with(char::is_alphanumeric) && sample.contains("://") {
                    assert_eq!(names(&text), [name], "{text}");
                } else {
                    assert_eq!(find(&text), [Shape { name, range, is_key }], "{text}");
                }
            }
        }
    }

    #[test]
    fn every_rule_has_a_sample() {
        let samples = samples(&mut Random::new());
        for rule in &RULES {
            assert!(samples.iter().any(|(name, ..)| *name == rule.name), "{}", rule.name);
            rule.regex();
        }
    }

    /// K-03: and what nearly looks so is not.
    #[test]
    fn near_misses_are_not_found() {
        let mut random = Random::new();
        let mut of = |alphabet: &str, chars: usize| random.text(alphabet, chars);
        for text in [
            // too short, too long, of other characters
            format!("ghp_{}", of(WORD, 35)),
            format!("github_pat_{}_{}", of(WORD, 22), of(WORD, 58)),
            format!("glpat-{}", of(WORD, 19)),
            format!("AKIA{}", of(BASE32, 15)),
            format!("AKIA{}", of(BASE32, 17)),
            format!("AKIA{}0", of(BASE32, 15)),
            format!("AIza{}", of(WORD, 34)),
            format!("AIza{}", of(WORD, 36)),
            format!("sk-{}", of(WORD, 47)),
            format!("sk-{}", of(WORD, 49)),
            format!("sk_live_{}", of(WORD, 23)),
            format!("sk_other_{}", of(WORD, 24)),
            format!("npm_{}", of(WORD, 35)),
            format!("npm_{}", of(WORD, 37)),
            format!("pypi-AgEx{}", of(WORD, 100)),
            format!("SG.{}.{}", of(WORD, 21), of(WORD, 43)),
            format!("hf_{}", of(WORD, 33)),
            format!("dop_v1_{}", of(HEX, 63)),
            format!("dop_v1_{}g", of(HEX, 63)),
            format!("AGE-SECRET-KEY-1{}", of(BECH32, 57)),
            format!("AGE-SECRET-KEY-1{}B", of(BECH32, 57)),
            format!("xoxb-{}", of(WORD, 10)),
            format!("xoxb-some-{}", of("abcdefgh-", 30)),
            // within a longer word
            format!("xghp_{}", of(WORD, 36)),
            format!("risk-{}", of(WORD, 48)),
            format!("1AKIA{}", of(BASE32, 16)),
            // a stand-in
            format!("ghp_{}", "x".repeat(36)),
            format!("sk-proj-{}", "your-key-".repeat(8)),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE".to_owned(),
            "Authorization: Bearer your-access-token-here".to_owned(),
            "Authorization: Bearer ${GITHUB_TOKEN_OF_THIS_1}".to_owned(),
            "authorization: Digest username=\"abcdefghijklmnop1\"".to_owned(),
            // no JSON, and JSON that names no algorithm
            format!("eyJ{}.eyJ{}.{}", of(WORD, 30), of(WORD, 30), of(WORD, 43)),
            format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT"}"#), of(WORD, 30), of(WORD, 43)),
            // URLs without a password, or with a stand-in
            "https://example.com:8080/a@b".to_owned(),
            "https://user@example.com/path:with@sign".to_owned(),
            "ssh://git@example.com:2222/x".to_owned(),
            "postgres://app:${PASSWORD}@db".to_owned(),
            "postgres://{user}:{password}@{host}".to_owned(),
            "postgres://app:%(password)s@db".to_owned(),
            "postgres://app:<password>@db".to_owned(),
            "postgres://app:password@db, postgres://app:xxxxxxxx@db, postgres://app:********@db".to_owned(),
            "://app:s3cr3t-word@db".to_owned(),
            // a public key, and the names of labels in a program
            pem("PUBLIC KEY", &of(WORD, 160)),
            pem("CERTIFICATE", &of(WORD, 160)),
            "if text.contains(\"-----BEGIN PRIVATE KEY-----\") { refuse(text) }".to_owned(),
            pem("PRIVATE KEY", "..."),
        ] {
            assert_eq!(names(&text), <[&str; 0]>::default(), "{text}");
        }
    }

    #[test]
    fn several_are_found_in_order() {
        let mut random = Random::new();
        let samples = samples(&mut random);
        let text: String = samples.iter().map(|(_, sample, after)| format!("{sample}{after}, ")).collect();
        assert_eq!(names(&text), samples.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn a_scheme_that_ends_a_token_is_not_found_twice() {
        let token = format!("npm_{}", Random::new().text(WORD, 36));
        let text = format!("{token}://app:s3cr3t-word@db");
        let ranges: Vec<_> = find(&text).into_iter().map(|shape| shape.range).collect();
        assert_eq!(ranges, [0..40, 40..text.len() - 2]);
    }

    #[test]
    fn private_keys_are_redacted_whole() {
        let mut random = Random::new();
        let key = pem("RSA PRIVATE KEY", &random.text(WORD, 160));
        let age = format!("AGE-SECRET-KEY-1{}", random.text(BECH32, 58));
        let public = pem("PUBLIC KEY", &random.text(WORD, 160));
        let text = format!("é{key}\n{public}\n{age}\n{key}.");
        assert_eq!(redact_keys(&text), format!("é[private key]\n{public}\n[private key]\n[private key]."));
        assert!(matches!(redact_keys(&public), Cow::Borrowed(_)));
    }

    #[test]
    fn a_key_without_its_end_reaches_to_the_end_of_the_text() {
        let key = pem("PRIVATE KEY", &Random::new().text(WORD, 160));
        assert_eq!(redact_keys(&format!("a\n{} …", &key[..100])), "a\n[private key]");
        let other = pem("EC PRIVATE KEY", &Random::new().text(WORD, 160));
        assert_eq!(redact_keys(&format!("{}\n{other}\nx", &key[..100])), "[private key]");
    }
}
