//! ssh-agent for the commands of a cell, by draft-ietf-sshm-ssh-agent: they see which keys there are, and get a signature where a person
//! allows it. What is signed is read first. It is a login or what `ssh-keygen -Y sign` makes; all else is refused, as is any change of the
//! agent.

use super::{Asker, Keyring, PATIENCE, Wanted, What};
use base::envelope::{Failure, Kind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest, Sha256};
use ssh_encoding::{Decode, Encode, Reader};
use std::io;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Numbers of messages (section 6.1 there).
const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
/// A message, as OpenSSH bounds it.
const MOST_BYTES: usize = 256 << 10;
/// The request of a login (RFC 4252, 7), and that with the server's key (OpenSSH's PROTOCOL, 3.1).
const USERAUTH_REQUEST: u8 = 50;
const PUBLIC_KEY: &str = "publickey";
const TO_THIS_SERVER: &str = "publickey-hostbound-v00@openssh.com";
/// How what `ssh-keygen -Y sign` signs begins (OpenSSH's PROTOCOL.sshsig).
const SSHSIG: &[u8] = b"SSHSIG";

pub(super) async fn serve(asker: &dyn Asker, mut program: UnixStream) {
    while let Ok(request) = receive(&mut program).await {
        let answer = answer(asker, &request).await.unwrap_or_else(|refusal| {
            asker.refuse(&refusal);
            vec![FAILURE]
        });
        if send(&mut program, &answer).await.is_err() {
            return;
        }
    }
}

async fn answer(asker: &dyn Asker, request: &[u8]) -> Result<Vec<u8>, Failure> {
    match request {
        [REQUEST_IDENTITIES] => Ok(identities(&asker.keyring()?).await?.0),
        [SIGN_REQUEST, request @ ..] => sign(asker, request).await,
        // ssh goes on without extensions.
        _ => Ok(vec![FAILURE]),
    }
}

async fn sign(asker: &dyn Asker, request: &[u8]) -> Result<Vec<u8>, Failure> {
    let request = Request::read(request).map_err(|_| Failure::invalid("ssh asks for a signature of no known form"))?;
    let keyring = asker.keyring()?;
    let (_, keys) = identities(&keyring).await?;
    let key = keys.into_iter().find(|key| key.blob == request.key);
    let key = key.ok_or_else(|| {
        Failure::denied("the ssh-agent outside has no such key").hint("`ssh-add` outside adds it to the agent")
    })?;
    asker.ask(&request.wanted(&key, &keyring)).await?;
    let mut message = vec![SIGN_REQUEST];
    let written = request.key.encode(&mut message);
    let written = written.and_then(|()| request.data.encode(&mut message));
    written.and_then(|()| request.flags.encode(&mut message)).map_err(|error| lost(&error))?;
    ask_agent(&keyring, &message).await
}

/// A key of the agent.
struct Key {
    blob: Vec<u8>,
    comment: String,
}

impl Key {
    /// As `ssh-add -l` has it.
    fn shown(&self) -> String {
        format!("`{}` ({})", self.comment, fingerprint(&self.blob))
    }
}

fn fingerprint(blob: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(blob)))
}

/// What a program wants to have signed.
struct Request {
    key: Vec<u8>,
    data: Vec<u8>,
    flags: u32,
    purpose: Purpose,
}

/// What a signature is for.
#[derive(Debug, PartialEq)]
enum Purpose {
    /// To log in, to the server of this key if that is said.
    Login { user: String, server: Option<Vec<u8>> },
    /// For programs that ask for this namespace.
    Signature { namespace: String },
}

impl Request {
    fn read(mut from: &[u8]) -> Result<Self, ssh_encoding::Error> {
        let reader = &mut from;
        let (key, data, flags) = (Vec::decode(reader)?, Vec::decode(reader)?, u32::decode(reader)?);
        reader.ensure_finished()?;
        let purpose = Purpose::read(&data, &key)?;
        Ok(Self { key, data, flags, purpose })
    }

    fn wanted(&self, key: &Key, keyring: &Keyring) -> Wanted {
        let (action, covers) = match &self.purpose {
            Purpose::Login { user, server: Some(server) } => {
                let name = name_of(server, &keyring.known_hosts).unwrap_or_else(|| "a server".into());
                let server = format!("{name} with the host key {}", fingerprint(server));
                (format!("log in as `{user}` at {server}"), format!("{user}@{server}"))
            }
            Purpose::Login { user, server: None } => {
                (format!("log in as `{user}` at a server that does not say its key"), format!("{user}@"))
            }
            Purpose::Signature { namespace } if namespace == "git" => {
                ("sign a commit or tag of git, whose text ssh does not say".into(), "signatures for git".into())
            }
            Purpose::Signature { namespace } => {
                (format!("sign something for `{namespace}`"), format!("signatures for `{namespace}`"))
            }
        };
        let what = What::Signature;
        let action = format!("{action}\nby the ssh key {}", key.shown());
        Wanted { what, action, details: None, covers: format!("{covers} by {}", fingerprint(&self.key)) }
    }
}

impl Purpose {
    fn read(data: &[u8], key: &[u8]) -> Result<Self, ssh_encoding::Error> {
        match data.strip_prefix(SSHSIG) {
            Some(rest) => Self::signature(rest),
            None => Self::login(data, key),
        }
    }

    fn signature(mut from: &[u8]) -> Result<Self, ssh_encoding::Error> {
        let reader = &mut from;
        let namespace = String::decode(reader)?;
        // Reserved, the algorithm, the digest.
        for _ in 0..3 {
            reader.drain_prefixed()?;
        }
        reader.ensure_finished()?;
        Ok(Self::Signature { namespace })
    }

    fn login(mut from: &[u8], key: &[u8]) -> Result<Self, ssh_encoding::Error> {
        let reader = &mut from;
        // The session.
        reader.drain_prefixed()?;
        let is_request = u8::decode(reader)? == USERAUTH_REQUEST;
        let (user, service, method) = (String::decode(reader)?, String::decode(reader)?, String::decode(reader)?);
        let has_signature = bool::decode(reader)?;
        // The algorithm.
        reader.drain_prefixed()?;
        let is_by_key = <Vec<u8>>::decode(reader)? == key;
        let server = if method == TO_THIS_SERVER { Some(Vec::decode(reader)?) } else { None };
        reader.ensure_finished()?;
        let is_known = service == "ssh-connection" && (server.is_some() || method == PUBLIC_KEY);
        if is_request && has_signature && is_by_key && is_known {
            Ok(Self::Login { user, server })
        } else {
            Err(ssh_encoding::Error::CharacterEncoding)
        }
    }
}

/// How the user's `known_hosts` calls the server of a key, where that can be read (sshd(8)).
fn name_of(server: &[u8], known_hosts: &Path) -> Option<String> {
    let (known, key) = (std::fs::read_to_string(known_hosts).ok()?, STANDARD.encode(server));
    let mut names = known.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (names, of) = (fields.next()?, fields.nth(1)?);
        let is_plain = !names.starts_with(['|', '@', '#']);
        (of == key && is_plain).then(|| format!("`{names}`"))
    });
    names.next()
}

/// The keys that the agent has, as it says them and as they are.
async fn identities(keyring: &Keyring) -> Result<(Vec<u8>, Vec<Key>), Failure> {
    let said = ask_agent(keyring, &[REQUEST_IDENTITIES]).await?;
    let keys = read_identities(&said).map_err(|error| lost(&error))?;
    Ok((said, keys))
}

fn read_identities(mut from: &[u8]) -> Result<Vec<Key>, ssh_encoding::Error> {
    let reader = &mut from;
    if u8::decode(reader)? != IDENTITIES_ANSWER {
        return Err(ssh_encoding::Error::CharacterEncoding);
    }
    let count = u32::decode(reader)?;
    (0..count).map(|_| Ok(Key { blob: Vec::decode(reader)?, comment: String::decode(reader)? })).collect()
}

async fn ask_agent(keyring: &Keyring, message: &[u8]) -> Result<Vec<u8>, Failure> {
    let socket = keyring.ssh.as_ref().ok_or_else(|| lost(&"there is none"))?;
    let asked = async {
        let mut agent = UnixStream::connect(socket).await?;
        send(&mut agent, message).await?;
        receive(&mut agent).await
    };
    let asked = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    asked.map_err(|error| lost(&error))
}

fn lost(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Kind::Unavailable, format!("the ssh-agent outside does not answer: {error}"))
        .hint("`ssh-add -l` outside says what is wrong with it")
}

async fn receive(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await? as usize;
    if length == 0 || length > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; length];
    from.read_exact(&mut message).await?;
    Ok(message)
}

async fn send(to: &mut UnixStream, message: &[u8]) -> io::Result<()> {
    let mut framed = (message.len() as u32).to_be_bytes().to_vec();
    framed.extend(message);
    to.write_all(&framed).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(parts: &[&[u8]]) -> Vec<u8> {
        let mut all = Vec::new();
        parts.iter().for_each(|part| part.encode(&mut all).expect("written"));
        all
    }

    fn login(method: &[u8], key: &[u8], server: &[&[u8]]) -> Vec<u8> {
        let before = [strings(&[b"session"]), vec![USERAUTH_REQUEST], strings(&[b"git", b"ssh-connection", method])];
        let after = [vec![1], strings(&[b"ssh-ed25519", key]), strings(server)];
        before.into_iter().chain(after).flatten().collect()
    }

    #[test]
    fn a_login_says_as_whom_and_where_if_the_server_says_its_key() {
        let user = || "git".to_owned();
        let read = |data: &[u8]| Purpose::read(data, b"key").ok();
        let here = Some(Purpose::Login { user: user(), server: Some(b"host".to_vec()) });
        assert_eq!(read(&login(TO_THIS_SERVER.as_bytes(), b"key", &[b"host"])), here);
        assert_eq!(read(&login(b"publickey", b"key", &[])), Some(Purpose::Login { user: user(), server: None }));
    }

    #[test]
    fn what_is_no_login_and_no_signature_is_not_signed() {
        let by_key = login(b"publickey", b"key", &[]);
        let mut without_signature = by_key.clone();
        without_signature[by_key.len() - strings(&[b"ssh-ed25519", b"key"]).len() - 1] = 0;
        for data in [
            &b""[..],
            b"any bytes",
            &login(b"publickey", b"another key", &[]),
            &login(b"publickey", b"key", &[b"more"]),
            &login(b"password", b"key", &[]),
            &login(TO_THIS_SERVER.as_bytes(), b"key", &[]),
            &by_key[..by_key.len() - 1],
            &without_signature,
            b"SSHSIG",
            &[SSHSIG, &strings(&[b"git", b"", b"sha512"])].concat(),
            &[SSHSIG, &strings(&[b"git", b"", b"sha512", b"digest", b"more"])].concat(),
        ] {
            assert_eq!(Purpose::read(data, b"key").ok(), None, "{}", data.escape_ascii());
        }
    }

    #[test]
    fn a_signature_is_for_a_namespace() {
        let data = [SSHSIG, &strings(&[b"file", b"", b"sha512", b"digest"])].concat();
        assert_eq!(Purpose::read(&data, b"key").ok(), Some(Purpose::Signature { namespace: "file".into() }));
    }

    #[test]
    fn a_server_is_called_as_its_user_knows_it() {
        let place = tempfile::tempdir().expect("a directory");
        let (known, key) = (place.path().join("known_hosts"), STANDARD.encode("host"));
        for (line, name) in [
            (format!("a.example,192.0.2.1 ssh-ed25519 {key}"), Some("`a.example,192.0.2.1`")),
            (format!("|1|x|y ssh-ed25519 {key}"), None),
            (format!("@revoked a.example ssh-ed25519 {key}"), None),
            (format!("# a.example ssh-ed25519 {key}"), None),
            ("a.example ssh-ed25519 AAAA".into(), None),
        ] {
            std::fs::write(&known, &line).expect("written");
            assert_eq!(name_of(b"host", &known).as_deref(), name, "{line}");
        }
    }
}
