//! What the account's own server found of a sender, in `Authentication-Results` (RFC 8601).

use super::HEADER_BYTES;

/// Tells whether the account's own server found the sender to be who the message says, by its `Authentication-Results`
/// (RFC 8601): DMARC, or else DKIM or SPF for the domain of `from`. `results` is one value, or header lines of that name.
///
/// Only the first result that names `authority` counts: a server adds its own on top, and what is below, a stranger
/// may have written. `None` where there is none. Without a list of public suffixes, a domain is taken for that of
/// `from` when it is the same or a parent of it.
pub(crate) fn verified(results: &[u8], authority: &str, from: &str) -> Option<bool> {
    let domain = domain(from);
    let own = fields(results).into_iter().map(|field| sections(&field));
    let mut own = own.filter(|sections| sections.first().is_some_and(|id| is_server(id, authority)));
    let methods: Vec<Method> = own.next()?.iter().skip(1).filter_map(|section| Method::of(section)).collect();
    let dmarc: Vec<&Method> =
        methods.iter().filter(|method| method.name == "dmarc" && method.result != "none").collect();
    if !dmarc.is_empty() {
        let is_from = |method: &Method| method.value("header.from").is_none_or(|found| self::domain(found) == domain);
        return Some(dmarc.iter().all(|method| method.result == "pass" && is_from(method)));
    }
    let named = |method: &Method, properties: &[&str]| {
        let found = properties.iter().find_map(|property| method.value(property));
        found.is_some_and(|found| is_aligned(&self::domain(found), &domain))
    };
    Some(methods.iter().filter(|method| method.result == "pass").any(|method| match method.name.as_str() {
        "dkim" => named(method, &["header.d", "header.i"]),
        "spf" => named(method, &["smtp.mailfrom", "smtp.mail"]),
        _ => false,
    }))
}

/// One method and its result, of `Authentication-Results`.
struct Method {
    name: String,
    result: String,
    properties: Vec<(String, String)>,
}

/// What a section of that header is made of: words, and `=` between them.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Equals,
}

impl Method {
    fn of(section: &[Token]) -> Option<Self> {
        let mut pairs = Vec::new();
        let mut rest = section;
        while !rest.is_empty() {
            rest = match rest {
                [Token::Word(name), Token::Equals, Token::Word(value), rest @ ..] => {
                    pairs.push((name.to_ascii_lowercase(), value.clone()));
                    rest
                }
                // A section begins with its method; what does not is none.
                _ if pairs.is_empty() => return None,
                [_, rest @ ..] => rest,
                [] => rest,
            };
        }
        let mut pairs = pairs.into_iter();
        let (name, result) = pairs.next()?;
        // A version may follow the name.
        let name = name.split('/').next().unwrap_or_default().trim().to_owned();
        Some(Self { name, result: result.to_ascii_lowercase(), properties: pairs.collect() })
    }

    fn value(&self, property: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == property).map(|(_, value)| value.as_str())
    }
}

/// Splits header lines into the values of `Authentication-Results`; anything else is one value.
fn fields(results: &[u8]) -> Vec<Vec<u8>> {
    const NAME: &[u8] = b"authentication-results:";
    let results = &results[..results.len().min(HEADER_BYTES)];
    let begins = |line: &[u8]| line.len() >= NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME);
    let is_lines = begins(results.trim_ascii_start());
    let mut fields: Vec<Vec<u8>> = Vec::new();
    let mut is_wanted = !is_lines;
    for line in results.trim_ascii_start().split_inclusive(|byte| *byte == b'\n') {
        let is_continued = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        if is_lines && !is_continued {
            is_wanted = begins(line);
            if is_wanted {
                fields.push(line[NAME.len()..].to_vec());
            }
        } else if is_wanted {
            match fields.last_mut() {
                Some(field) => field.extend_from_slice(line),
                None => fields.push(line.to_vec()),
            }
        }
    }
    fields
}

/// Splits a value at its semicolons, without comments; quoted strings are parts of words.
fn sections(field: &[u8]) -> Vec<Vec<Token>> {
    let field = String::from_utf8_lossy(field);
    let mut sections = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = field.chars();
    let (mut comments, mut in_quotes) = (0_usize, false);
    while let Some(c) = chars.next() {
        let section = sections.last_mut().expect("there is always one");
        match c {
            '\\' if comments > 0 => _ = chars.next(),
            '(' if !in_quotes => {
                section.extend(word.take().map(Token::Word));
                comments += 1;
            }
            ')' if comments > 0 => comments -= 1,
            _ if comments > 0 => {}
            '"' => {
                in_quotes = !in_quotes;
                word.get_or_insert_default();
            }
            '\\' if in_quotes => word.get_or_insert_default().extend(chars.next()),
            _ if in_quotes => word.get_or_insert_default().push(c),
            ';' | '=' => {
                section.extend(word.take().map(Token::Word));
                if c == '=' { section.push(Token::Equals) } else { sections.push(Vec::new()) }
            }
            _ if c.is_whitespace() => section.extend(word.take().map(Token::Word)),
            _ => word.get_or_insert_default().push(c),
        }
    }
    // What a comment or a quoted string that never ends holds was not said.
    if comments == 0 && !in_quotes {
        sections.last_mut().expect("there is always one").extend(word.map(Token::Word));
    }
    sections
}

/// Tells whether a section is the name of the server, which a version may follow.
fn is_server(section: &[Token], authority: &str) -> bool {
    let is_named = |name: &str| name.trim_end_matches('.').eq_ignore_ascii_case(authority.trim().trim_end_matches('.'));
    matches!(section, [Token::Word(name)] | [Token::Word(name), Token::Word(_)] if is_named(name))
}

fn domain(address: &str) -> String {
    let domain = address.rsplit('@').next().unwrap_or_default();
    domain.trim().trim_end_matches(['.', '>']).to_ascii_lowercase()
}

fn is_aligned(found: &str, from: &str) -> bool {
    let is_parent = || found.contains('.') && from.strip_suffix(found).is_some_and(|rest| rest.ends_with('.'));
    !found.is_empty() && (found == from || is_parent())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_server_tells_who_sent_it() {
        let cases: [(&str, Option<bool>); 26] = [
            ("mx.own.test; dmarc=pass header.from=bank.test", Some(true)),
            ("MX.own.test 1; DMARC = Pass (p=none) header.from=Bank.test", Some(true)),
            ("mx.other.test; dmarc=pass header.from=bank.test", None),
            ("mx.own.test.evil.test; dmarc=pass", None),
            ("", None),
            ("mx.own.test; none", Some(false)),
            ("mx.own.test; dmarc=fail header.from=bank.test; dkim=pass header.d=bank.test", Some(false)),
            ("mx.own.test; dmarc=pass header.from=evil.test", Some(false)),
            ("mx.own.test; dkim=pass header.d=bank.test", Some(true)),
            ("mx.own.test; dkim=pass header.i=@bank.test header.s=x header.b=abc==", Some(true)),
            ("mx.own.test; dkim=pass header.b=abc= header.d=bank.test", Some(true)),
            ("mx.own.test; dkim=pass header.d=evil.test", Some(false)),
            ("mx.own.test; dkim=pass header.d=test", Some(false)),
            ("mx.own.test; dkim=pass header.d=notbank.test", Some(false)),
            ("mx.own.test; dkim=fail header.d=bank.test; spf=pass smtp.mailfrom=a@bank.test", Some(true)),
            ("mx.own.test; spf=pass smtp.mailfrom=bounce@evil.test", Some(false)),
            ("mx.own.test; spf=fail smtp.mailfrom=a@bank.test", Some(false)),
            (
                "mx.own.test (dmarc=pass); spf=fail (; dmarc=pass header.from=bank.test (nested \\) )) smtp.mailfrom=a@x",
                Some(false),
            ),
            ("mx.own.test; spf=fail reason=\"; dmarc=pass\" smtp.mailfrom=a@x", Some(false)),
            ("mx.own.test; spf=fail reason=\"a\\\"; dmarc=pass\"", Some(false)),
            ("\"mx.own.test\"; dmarc=pass", Some(true)),
            ("mx.own.test; dmarc/1=pass", Some(true)),
            ("mx.own.test; x-dmarc=pass; reason=dmarc=pass", Some(false)),
            ("Authentication-Results: mx.own.test;\r\n dmarc=pass\r\n\theader.from=bank.test\r\n", Some(true)),
            (
                "Authentication-Results: other.test; dmarc=pass\r\nauthentication-results: mx.own.test; dmarc=fail\r\n\
                 Authentication-Results: mx.own.test; dmarc=pass\r\n",
                Some(false),
            ),
            ("Authentication-Results: other.test; dmarc=pass\r\nX: mx.own.test; dmarc=pass\r\n", None),
        ];
        for (results, expected) in cases {
            assert_eq!(verified(results.as_bytes(), "mx.own.test", "a@bank.test"), expected, "{results}");
        }
        assert_eq!(verified(b"mx; dkim=pass header.d=bank.test", "mx", "a@mail.bank.test"), Some(true));
        assert_eq!(verified(b"mx; dkim=pass header.d=mail.bank.test", "mx", "a@bank.test"), Some(false));
    }
}
