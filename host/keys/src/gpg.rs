//! Signatures of gpg on what git commits and tags. The bytes have to be such an object, so that a person sees what is signed, and that a
//! signature is of use for nothing else.

use super::git::Reply;
use super::{Asker, Wanted, What};
use base::envelope::Failure;
use gix_hash::Kind;
use gix_object::{CommitRef, TagRef};

/// What git calls where its settings say nothing (git-config(1), gpg.program).
const PROGRAM: &str = "gpg";
/// No repository: only the settings of the user and the machine are read.
const NOWHERE: (&str, &str) = ("GIT_DIR", "/dev/null");

pub(super) async fn sign(asker: &dyn Asker, key: &str, object: &[u8]) -> Result<Reply, Failure> {
    let kind = kind(object)
        .ok_or_else(|| Failure::denied("gpg outside signs commits and tags of git alone, and this is neither"))?;
    if key.starts_with('-') {
        return Err(Failure::denied(format!("`{key}` is not the name of a key")));
    }
    let keyring = asker.keyring()?;
    let wanted = Wanted {
        what: What::Signature,
        action: format!("sign a {kind} of git\nby the gpg key `{key}`"),
        details: Some(String::from_utf8_lossy(object).into_owned()),
        covers: format!("{kind}s by {key}"),
    };
    asker.ask(&wanted).await?;
    let named = keyring.run(&["git", "config", "--get", "gpg.program"], b"", &[NOWHERE]).await?;
    let named = String::from_utf8_lossy(&named.stdout);
    let program = Some(named.trim()).filter(|named| !named.is_empty()).unwrap_or(PROGRAM);
    let signed = keyring.run(&[program, "--status-fd=2", "-bsau", key], object, &[]).await?;
    let status = u32::try_from(signed.status).unwrap_or(1);
    Ok(Reply { stdout: signed.stdout, stderr: signed.stderr, status })
}

/// What the bytes are, if git signs such.
fn kind(object: &[u8]) -> Option<&'static str> {
    if CommitRef::from_bytes(object, Kind::Sha1).is_ok() {
        return Some("commit");
    }
    TagRef::from_bytes(object, Kind::Sha1).is_ok().then_some("tag")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_and_tags_are_signed() {
        let id = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let commit = format!("tree {id}\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nfirst\n");
        let tag = format!("object {id}\ntype commit\ntag v1\ntagger A <a@x> 1 +0000\n\nfirst\n");
        for (object, is) in [
            (commit.as_str(), Some("commit")),
            (&tag, Some("tag")),
            ("", None),
            ("I owe Mallory a million", None),
            (&commit[1..], None),
            ("certificate version 0.1\npusher A <a@x> 1 +0000\n", None),
        ] {
            assert_eq!(kind(object.as_bytes()), is, "{object}");
        }
    }
}
