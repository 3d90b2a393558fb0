//! Mail servers on this machine, and hosts that read what they have.

mod dovecot;
mod lying;
mod many;
mod tokens;

pub use dovecot::{Dovecot, Letter};
pub use lying::{Asked, Lying, Say, bearer, envelope, listed};
pub use many::{AGE_STEP, RARE, many};
pub use tokens::{Posted, TOKENS, Tokens, answer, token};

use crate::certificate::Authority;
use crate::{TestHost, names};
use std::os::unix::fs::PermissionsExt;

/// The name of the server, which its secret may go to.
pub const SERVER: &str = "imap.example.com";
/// Who logs in.
pub const USER: &str = "ann";
/// What no result, event or record may have.
pub const PASSWORD: &str = "correct-horse-battery-staple";
/// The lines of the account that tests read.
pub const ACCOUNT: &str = r#"folders=["INBOX"]"#;

/// A host that trusts the authority and knows where the server of a name is.
#[must_use]
pub fn host_of(authority: &Authority) -> TestHost {
    let host = TestHost::new();
    let dns = names(&[(SERVER, [127, 0, 0, 1]), (TOKENS, [127, 0, 0, 1]), ("other.example.com", [127, 0, 0, 1])]);
    let home = host.home();
    std::fs::write(home.join("ca.pem"), authority.pem()).expect("a file");
    host.set(&format!("network.ca_file={:?}", home.join("ca.pem").display().to_string()))
        .set(&format!("network.dns_servers=[\"{dns}\"]"))
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
}

/// The same with an account `work` on a server at this port, and these lines of its section besides.
#[must_use]
pub fn reader(authority: &Authority, port: u16, lines: &[&str]) -> TestHost {
    let host = host_of(authority);
    let secret = host.home().join("secret");
    std::fs::write(&secret, PASSWORD).expect("a file");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let host = host
        .set(&format!("secret.MAIL.file={:?}", secret.display().to_string()))
        .set(&format!("secret.MAIL.hosts=[{SERVER:?}]"))
        .set("mail.work.secret=\"MAIL\"");
    account(host, port, lines)
}

/// Adds the account without what it logs in with.
#[must_use]
pub fn account(host: TestHost, port: u16, lines: &[&str]) -> TestHost {
    let own = [format!("host={SERVER:?}"), format!("port={port}"), format!("user={USER:?}")];
    let all = own.iter().map(String::as_str).chain(lines.iter().copied());
    all.fold(host, |host, line| host.set(&format!("mail.work.{line}")))
}
