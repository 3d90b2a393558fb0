//! The way to a server: policy, egress, TLS, and saying who this is. Where tokens come from is `refresh.rs`.

use super::Access;
use super::commands::Mechanism;
use super::connection::{Connection, LOGIN, Login};
use super::refresh;
use super::trouble::Trouble;
use base::envelope::{Failure, Kind};
use base::target::Target;
use config::MailLogin;
use leaks::Value;
use std::time::Duration;

/// How long a connection may take, TLS included.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection that is logged in.
pub(super) async fn connect(access: &Access<'_>) -> Result<Connection, Trouble> {
    // Before anything is asked of the server: what is missing here is not its fault.
    let value = credential(access, None).await?;
    let refused = match log_in(access, &value).await? {
        Ok(connection) => return Ok(connection),
        Err(why) => why,
    };
    match access.section.login {
        MailLogin::Password => {}
        MailLogin::Xoauth2 | MailLogin::Oauthbearer => {
            // Tokens end; whoever gives them may have another one by now.
            let renewed = credential(access, Some(&value)).await?;
            if renewed.expose() != value.expose()
                && let Ok(connection) = log_in(access, &renewed).await?
            {
                return Ok(connection);
            }
        }
    }
    // RFC 5530: nothing is wrong with who this is.
    if ["[UNAVAILABLE", "[INUSE", "[LIMIT", "[SERVERBUG"].iter().any(|code| refused.starts_with(code)) {
        return Err(Trouble::Refused(refused));
    }
    let (account, host) = (access.account, &access.section.host);
    Err(Failure::denied(format!("`{host}` refuses the login of the account `{account}`: {refused}"))
        .hint(format!("check `user`, `login` and the secret under [mail.{account}]"))
        .into())
}

/// What the account logs in with: another one than the server has refused, where that was given and not stored.
async fn credential(access: &Access<'_>, refused: Option<&Value>) -> Result<Value, Failure> {
    let secrets = &access.scope.secrets;
    let source = access.grant.login_secret(access.account, access.section)?;
    if let Some(refused) = refused {
        secrets.outdate(&source, refused);
    }
    match &access.section.refresh {
        Some(refresh) => refresh::token(access, refresh).await,
        None => secrets.value(&source).await,
    }
}

async fn log_in(access: &Access<'_>, value: &Value) -> Result<Result<Connection, String>, Trouble> {
    let section = access.section;
    let mut connection = open(access).await?;
    let mechanism = match section.login {
        MailLogin::Password => Mechanism::Plain,
        MailLogin::Xoauth2 => Mechanism::XOauth2,
        MailLogin::Oauthbearer => Mechanism::OauthBearer,
    };
    let exchange = mechanism.message(&section.user, value.expose(), &section.host, section.port);
    match connection.log_in(&section.user, value.expose(), mechanism, &exchange).await? {
        Login::Done => Ok(Ok(connection)),
        Login::Refused(why) => Ok(Err(why)),
    }
}

async fn open(access: &Access<'_>) -> Result<Connection, Trouble> {
    let (section, grant) = (access.section, access.grant);
    let target = Target::of_server(&section.host, section.port)?;
    let server = target.server();
    let way = async {
        let admitted = grant.admit_server(target, access.section.port)?;
        let judge = |target: &Target, address, special, is_own| grant.admit_address(target, address, special, is_own);
        access.egress.open_tls(admitted, judge).await
    };
    let late = || Failure::new(Kind::Unavailable, format!("no connection to `{server}` within {CONNECT:?}"));
    let way = tokio::time::timeout(CONNECT, way).await.unwrap_or_else(|_| Err(late()));
    access.note(&format!("connect to {server}"), way.as_ref().map(drop));
    Connection::greeted(Box::new(way?), LOGIN).await
}
