//! The policy that takes the place of the machine's: signed by the keys that the installed one names, and by its own.
//!
//! Both, so that nobody puts keys in force that the present ones did not agree to, nor keys of which nobody has the secret half.

use super::marks::Marks;
use super::signatures::{Names, Signatures, read_file, signing};
use base::envelope::{Failure, Kind};
use config::{Lock, Role, Signed};
use std::collections::BTreeSet;
use std::path::Path;

/// The longest policy that is read (`config/read.rs` has the same bound).
const POLICY_BYTES: u64 = 256 << 10;

/// A policy that may be installed.
#[derive(Debug)]
pub struct Successor {
    /// What it says, as it was signed.
    pub text: String,
    /// Its number.
    pub sequence: u64,
    /// Who has signed it: keys of the installed policy, and of its own.
    pub signers: (BTreeSet<String>, BTreeSet<String>),
}

/// Reads a policy that is to be installed, and what is wrong with it as such.
///
/// # Errors
///
/// `usage` where it cannot be read as a policy.
pub fn read_policy(path: &Path) -> Result<String, Failure> {
    let unreadable = |reason: String| Failure::new(Kind::Usage, format!("`{}`: {reason}", path.display()));
    let bytes = read_file(path, POLICY_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".into()))?;
    Lock::of_text(path, &text).map_err(|error| Failure::new(Kind::Usage, error.to_string()))?;
    Ok(text)
}

/// Whether the policy in a file may only be replaced by one that its keys have signed.
///
/// # Errors
///
/// `unavailable` where it cannot be obeyed.
pub fn wants_signatures(installed: &Path) -> Result<bool, Failure> {
    Ok(keys(installed)?.is_some_and(|lock| lock.signed.is_some_and(|signed| signed.policies.is_some())))
}

/// Says whether the policy in `new` may take the place of `installed`.
///
/// # Errors
///
/// `denied`, with what is missing; `usage` where it cannot be read.
pub fn successor(installed: &Path, new: &Path) -> Result<Successor, Failure> {
    let by_hand = |what: &str| {
        Failure::denied(format!("{what}, so that only root's hand replaces it"))
            .hint(format!("look at it with `toolcrib policy lock {}`", new.display()))
    };
    let shown = installed.display();
    let before = keys(installed)?.ok_or_else(|| by_hand(&format!("{shown} has no [lock]")))?;
    let nobody = || by_hand(&format!("{shown} names no `policy` under [lock.threshold]"));
    let (old, old_needs) = before.signed.as_ref().and_then(with_policies).ok_or_else(nobody)?;
    let text = read_policy(new)?;
    let lock = Lock::of_text(new, &text).map_err(|error| Failure::new(Kind::Usage, error.to_string()))?;
    let lock = lock.ok_or_else(|| denied(new, "has no [lock], so that nobody can have signed it as its own"))?;
    let (own, own_needs) = lock.signed.as_ref().and_then(with_policies).ok_or_else(|| {
        denied(new, "names no `policy` under [lock.threshold], so that nobody can have signed it as its own")
    })?;
    if own.sequence <= old.sequence {
        let what = format!("is number {}, and {shown} is number {}", own.sequence, old.sequence);
        return Err(denied(new, &what).hint("give it a higher `sequence` under [lock], and have it signed again"));
    }
    let (signatures, marks) = (Signatures::beside(new, &mut Names::default()), Marks::of_this_program());
    let signers = |signed: &Signed, lock: &Lock, needs: usize, whose: &str| {
        // A policy does not say when it was signed: who has ended by now does not count.
        let now = Some(marks.now());
        let signers = signatures.signers(text.as_bytes(), signed, &lock.revoked, Role::Policy, now, &marks);
        if signers.names.len() >= needs {
            return Ok(signers.names);
        }
        let what = format!("is signed by {} of the {needs} keys that {whose} wants", signers.names.len());
        let failure = denied(new, &what);
        let sign = signing(new);
        let hint = if signers.told.is_empty() { sign } else { format!("{}; {sign}", signers.told.join("; ")) };
        Err(failure.hint(hint))
    };
    let signers = (
        signers(old, &before, old_needs, &format!("the policy in force, {shown},"))?,
        signers(own, &lock, own_needs, "it names itself")?,
    );
    let sequence = own.sequence;
    Ok(Successor { text, sequence, signers })
}

fn keys(installed: &Path) -> Result<Option<Lock>, Failure> {
    Lock::of_root(installed).map_err(|error| Failure::new(Kind::Unavailable, error.to_string()))
}

fn with_policies(signed: &Signed) -> Option<(&Signed, usize)> {
    signed.policies.map(|needed| (signed, needed))
}

fn denied(new: &Path, what: &str) -> Failure {
    Failure::denied(format!("`{}` {what}", new.display()))
}
