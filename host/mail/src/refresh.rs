//! Access tokens by a refresh token (RFC 6749, 6): what an account's token server is asked, and what its answer means.
//!
//! Whether that server may be asked is decided in `policy/mail.rs`, the way there is `egress/own.rs`, and values are kept in `secrets.rs`.

use super::Access;
use super::trouble::said;
use base::envelope::{Failure, Kind, duration};
use base::target::Target;
use config::MailRefresh;
use egress::FormAnswer;
use http::StatusCode;
use leaks::Value;
use secrets::{Turn, of_account};
use serde::Deserialize;
use std::time::Duration;
use url::form_urlencoded::Serializer;
use zeroize::Zeroizing;

/// How long a token server may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of its answer.
const ANSWER_BYTES: usize = 64 << 10;
/// How long a token counts where the server does not say so, and at most.
const LIFETIME: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long before its end a token is no longer used: a login takes its time, and clocks differ.
const MARGIN: Duration = Duration::from_secs(60);

/// What a server answers (RFC 6749, 5.1 and 5.2).
#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    token_type: Option<String>,
    /// Some write the number as a text.
    expires_in: Option<serde_json::Value>,
    refresh_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// An access token, how long it is used, and the refresh token for the next one where that is another.
#[derive(Debug)]
struct Tokens {
    access: Value,
    lifetime: Duration,
    refresh: Option<Value>,
}

/// Why a server gave none.
#[derive(Debug, PartialEq)]
enum Refusal {
    /// The refresh token is no longer good.
    Ended(String),
    /// It does not take what settings say.
    Wrong(String),
    Redirect,
    /// It may be otherwise later, or is no token server.
    Unable(String),
}

/// The access token of an account: the one that is known, or a new one.
pub(super) async fn token(access: &Access<'_>, refresh: &MailRefresh) -> Result<Value, Failure> {
    let (secrets, guard) = (&access.scope.secrets, &access.scope.guard);
    let name = of_account(access.account);
    let asking = match secrets.turn(&name).await? {
        Turn::Known(value) => return Ok(value),
        Turn::Ask(asking) => asking,
    };
    let target = Target::parse(&refresh.url, None)?;
    let server = target.server();
    let asked = ask(access, refresh, target).await;
    access.note(&format!("ask {server} for a token of {}", access.account), asked.as_ref().map(drop));
    let Asked { stored, sent, answer } = asked?;
    match tokens(answer.status, &answer.body, &sent) {
        Ok(Tokens { access: value, lifetime, refresh: next }) => {
            if let Some(next) = next {
                keep(access, refresh, &stored, next);
            }
            Ok(asking.holds(value, lifetime))
        }
        // What the server says may have what it was sent: that is taken out before the rest is cut.
        Err(refusal) => {
            let shown = |why: &str| said(guard.redact(why).as_bytes());
            Err(asking.failed(refusal.told(access.account, refresh, &server, shown)))
        }
    }
}

/// What was asked with, and what the server says to it.
struct Asked {
    /// The refresh token as the user stored it, and as it was sent.
    stored: Value,
    sent: Value,
    answer: FormAnswer,
}

async fn ask(access: &Access<'_>, refresh: &MailRefresh, target: Target) -> Result<Asked, Failure> {
    let (grant, secrets) = (access.grant, &access.scope.secrets);
    let server = target.server();
    let admitted = grant.admit_token_server(target, refresh)?;
    let name = refresh.secret.as_deref().unwrap_or_default();
    let stored = secrets.value(name).await?;
    let sent = secrets.successor(name, &stored).unwrap_or_else(|| stored.clone());
    let client_secret = match &refresh.client_secret {
        Some(name) => Some(secrets.value(name).await?),
        None => None,
    };
    let form = form(refresh, &sent, client_secret.as_ref());
    let judge = |target: &Target, address, special, is_own| grant.admit_address(target, address, special, is_own);
    let owner = format!("{} token", of_account(access.account));
    let answer = access.egress.post_form(&form, admitted, judge, &owner, ANSWER_BYTES);
    let late = || Failure::new(Kind::TimedOut, format!("`{server}` gave no token within {}", duration(PATIENCE)));
    let answer = tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(late()))?;
    if answer.is_cut {
        let message = format!("limit: bytes of an answer with a token {ANSWER_BYTES}, `{server}` sends more");
        return Err(Failure::limit(message));
    }
    Ok(Asked { stored, sent, answer })
}

/// The host cannot write secrets: what takes the place of one is known until the host ends.
fn keep(access: &Access<'_>, refresh: &MailRefresh, stored: &Value, next: Value) {
    let name = refresh.secret.as_deref().unwrap_or_default();
    if access.scope.secrets.succeed(name, stored, next) {
        access.scope.guard.notice(format!(
            "the token server of `{}` gave a new refresh token in place of the secret `{name}`; it is kept in memory until this host ends",
            access.account
        ));
    }
}

fn form(refresh: &MailRefresh, token: &Value, client_secret: Option<&Value>) -> Zeroizing<String> {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", token.expose());
    form.append_pair("client_id", &refresh.client_id);
    if let Some(client_secret) = client_secret {
        form.append_pair("client_secret", client_secret.expose());
    }
    if !refresh.scope.is_empty() {
        form.append_pair("scope", &refresh.scope);
    }
    Zeroizing::new(form.finish())
}

/// What an answer means to whoever sent this refresh token.
fn tokens(status: StatusCode, body: &[u8], sent: &Value) -> Result<Tokens, Refusal> {
    if status.is_redirection() {
        return Err(Refusal::Redirect);
    }
    let answer = serde_json::from_slice::<Answer>(body);
    if status != StatusCode::OK {
        return Err(refused(status, answer.ok()));
    }
    // Nothing of such an answer is shown: it may have the token.
    let unusable = |why: &str| Refusal::Unable(format!("its answer cannot be used: {why}"));
    let answer = answer.map_err(|_| unusable("it is not a JSON object as RFC 6749 has it"))?;
    let given = answer.access_token.map(Zeroizing::new).ok_or_else(|| unusable("it has no `access_token`"))?;
    if answer.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(unusable("its `token_type` is not `bearer`"));
    }
    let next = answer.refresh_token.map(Zeroizing::new).filter(|next| next.as_str() != sent.expose());
    Ok(Tokens {
        access: value(&given).map_err(|why| unusable(&format!("of its `access_token`, {why}")))?,
        lifetime: lifetime(answer.expires_in.as_ref()),
        refresh: match next {
            Some(next) => Some(value(&next).map_err(|why| unusable(&format!("of its `refresh_token`, {why}")))?),
            None => None,
        },
    })
}

fn value(token: &str) -> Result<Value, String> {
    // In a login, other characters would part the token from what follows.
    match token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Value::read(token.as_bytes()),
        false => Err("it has characters beyond visible ASCII".into()),
    }
}

fn lifetime(expires_in: Option<&serde_json::Value>) -> Duration {
    let seconds = expires_in.and_then(|number| number.as_u64().or_else(|| number.as_str()?.trim().parse().ok()));
    let whole = seconds.map_or(LIFETIME, Duration::from_secs);
    whole.saturating_sub(MARGIN).min(LONGEST)
}

fn refused(status: StatusCode, answer: Option<Answer>) -> Refusal {
    let (error, about) = answer.map(|answer| (answer.error, answer.error_description)).unwrap_or_default();
    let error = error.unwrap_or_default();
    let why = match about.filter(|about| !about.is_empty()) {
        Some(about) => format!("{error} ({about})"),
        None => error.clone(),
    };
    match error.as_str() {
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Refusal::Unable(format!("it answers {status}"))
        }
        "invalid_grant" => Refusal::Ended(why),
        "invalid_request" | "invalid_client" | "unauthorized_client" | "unsupported_grant_type" | "invalid_scope" => {
            Refusal::Wrong(why)
        }
        "" => Refusal::Unable(format!("it answers {status}")),
        _ => Refusal::Unable(format!("it answers {status}: {why}")),
    }
}

impl Refusal {
    /// The failure of the call; `shown` is what a message shows of a server's text.
    fn told(self, account: &str, refresh: &MailRefresh, server: &str, shown: impl Fn(&str) -> String) -> Failure {
        let name = refresh.secret.as_deref().unwrap_or_default();
        match self {
            Self::Ended(why) => Failure::denied(format!(
                "`{server}` refuses the refresh token of `{account}`: {}",
                shown(&why)
            ))
            .hint(format!(
                "log in again at the provider, and store the new refresh token with `toolcrib secret set {name}`"
            )),
            Self::Wrong(why) => Failure::denied(format!("`{server}` gives no token for `{account}`: {}", shown(&why)))
                .hint(format!("check `client_id`, `client_secret` and `scope` in `refresh` under [mail.{account}]")),
            Self::Redirect => {
                let message = format!("`{server}` redirects, and a refresh token is not sent on");
                Failure::new(Kind::Unavailable, message)
                    .hint(format!("set `url` in `refresh` under [mail.{account}] to the address of the token server"))
            }
            Self::Unable(why) => {
                Failure::new(Kind::Unavailable, format!("`{server}` gives no token for `{account}`: {}", shown(&why)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refresh() -> MailRefresh {
        MailRefresh {
            url: "https://oauth2.example.com/token".into(),
            client_id: "a client".into(),
            secret: Some("TOKEN".into()),
            ..MailRefresh::default()
        }
    }

    fn sent() -> Value {
        Value::read(b"1//refresh-token&of=ann").expect("a value")
    }

    fn read(status: u16, body: serde_json::Value) -> Result<Tokens, Refusal> {
        tokens(StatusCode::from_u16(status).expect("a status"), body.to_string().as_bytes(), &sent())
    }

    #[test]
    fn a_form_says_what_rfc_6749_wants_and_nothing_of_it_ends_a_field() {
        assert_eq!(
            form(&refresh(), &sent(), None).as_str(),
            "grant_type=refresh_token&refresh_token=1%2F%2Frefresh-token%26of%3Dann&client_id=a+client"
        );
        let refresh = MailRefresh { scope: "mail read".into(), ..refresh() };
        let form = form(&refresh, &sent(), Some(&Value::read(b"client&secret").expect("a value")));
        assert!(form.ends_with("&client_secret=client%26secret&scope=mail+read"), "{}", form.as_str());
    }

    #[test]
    fn a_token_is_used_until_shortly_before_it_ends() {
        for (expires_in, seconds) in [
            (json!(3600), 3540),
            (json!("3600"), 3540),
            (json!(null), 540),
            (json!("soon"), 540),
            (json!(30), 0),
            (json!(0), 0),
            (json!(u64::MAX), 24 * 3600),
        ] {
            let answer =
                json!({ "access_token": "ya29.a-long-token", "token_type": "Bearer", "expires_in": expires_in });
            let found = read(200, answer).expect("a token");
            assert_eq!(found.lifetime, Duration::from_secs(seconds), "{expires_in}");
            assert!(found.access.expose() == "ya29.a-long-token" && found.refresh.is_none());
        }
    }

    #[test]
    fn another_refresh_token_is_told_from_the_same() {
        let with = |refresh: &str| read(200, json!({ "access_token": "ya29.a-long-token", "refresh_token": refresh }));
        assert!(with(sent().expose()).expect("a token").refresh.is_none());
        let next = with("1//another-token").expect("a token").refresh.expect("another one");
        assert_eq!(next.expose(), "1//another-token");
    }

    #[test]
    fn what_is_no_token_is_none_and_is_not_shown() {
        for answer in [
            json!({}),
            json!([]),
            json!("ya29.a-long-token"),
            json!({ "access_token": 7 }),
            json!({ "access_token": "short" }),
            json!({ "access_token": "a-token-\u{1}-in-two" }),
            json!({ "access_token": "a token of words" }),
            json!({ "access_token": "ya29.a-long-token", "token_type": "mac" }),
            json!({ "access_token": "ya29.a-long-token", "refresh_token": "x" }),
        ] {
            match read(200, answer.clone()) {
                Err(Refusal::Unable(why)) => assert!(!why.contains("ya29") && !why.contains("-in-two"), "{why}"),
                other => panic!("{answer}: {other:?}"),
            }
        }
        assert!(tokens(StatusCode::OK, b"<html>", &sent()).is_err());
    }

    #[test]
    fn a_refusal_says_whether_it_is_for_good() {
        let error = |error: &str| json!({ "error": error, "error_description": "it is so" });
        assert!(matches!(read(400, error("invalid_grant")), Err(Refusal::Ended(why)) if why.contains("invalid_grant")));
        assert!(matches!(read(401, error("invalid_client")), Err(Refusal::Wrong(_))));
        for (status, answer) in [(500, error("invalid_grant")), (429, json!({})), (404, json!({})), (400, error("x"))] {
            assert!(matches!(read(status, answer.clone()), Err(Refusal::Unable(_))), "{status} {answer}");
        }
        for status in [301, 302, 303, 307, 308] {
            assert_eq!(
                read(status, json!({ "access_token": "ya29.a-long-token" })).expect_err("no token"),
                Refusal::Redirect
            );
        }
        let failure =
            Refusal::Ended("invalid_grant".into()).told("work", &refresh(), "oauth2.example.com:443", str::to_owned);
        assert_eq!(failure.kind, Kind::Denied);
        assert!(failure.hint.is_some_and(|hint| hint.contains("toolcrib secret set TOKEN")));
    }
}
