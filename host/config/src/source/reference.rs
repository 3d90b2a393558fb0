//! An artifact of a registry, as people write it: `oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST]`.
//!
//! Names, tags and digests are those of the OCI distribution specification 1.1 ("Pulling manifests").
//!
//! oci-spec 0.10 reads references as Docker does: `ghcr.io` becomes `docker.io/library/ghcr.io`, host `0x7f.1` and port 99999 pass, `[::1]:5000`
//! does not. Of 29 mistakes in the tests below it accepts 6, and says "invalid reference format" to the others, without a hint. It would add
//! 7 crates.

use super::digest::Digest;
use super::is_loopback;
use std::fmt;
use url::{Host, Url};

/// What a reference begins with.
pub(super) const SCHEME: &str = "oci://";
/// The tag of a reference that names neither tag nor digest, as every client has it.
const LATEST: &str = "latest";
/// Characters of host, port and repository together: what most registries and clients take.
const MOST_NAME: usize = 255;
/// Characters of a tag.
const MOST_TAG: usize = 128;
/// Names of Docker Hub that people write, and the host that answers for them.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "hub.docker.com"];
const DOCKER_HUB_REGISTRY: &str = "registry-1.docker.io";

/// An artifact of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where the registry is: `https://HOST[:PORT]/`.
    base: Url,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    /// A fragment that says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown = text.escape_debug();
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(format!("`{shown}` is not a reference: write `oci://HOST/REPOSITORY:TAG`"));
        };
        if let Some(odd) = rest.chars().find(|char| !char.is_ascii_graphic() || "?#%\\".contains(*char)) {
            return Err(format!("`{shown}` contains U+{:04X}, which no reference has", u32::from(odd)));
        }
        let Some((authority, name)) = rest.split_once('/') else {
            return Err(format!("`{shown}` names no repository: write `oci://HOST/REPOSITORY:TAG`"));
        };
        if authority.contains('@') {
            return Err(format!("`{shown}` has a user or a password: omit what comes before the `@`"));
        }
        let (name, digest) = match name.split_once('@') {
            Some((name, digest)) => (name, Some(Digest::parse(digest)?)),
            None => (name, None),
        };
        let (repository, tag) = match name.split_once(':') {
            Some((repository, tag)) => (repository, Some(checked_tag(tag)?)),
            None => (name, digest.is_none().then_some(LATEST)),
        };
        check_repository(repository)?;
        if authority.len() + 1 + repository.len() > MOST_NAME {
            return Err(format!("`{shown}` is too long: host and repository have at most {MOST_NAME} characters"));
        }
        let base = registry(authority)?;
        Ok(Self { base, repository: repository.to_owned(), tag: tag.map(str::to_owned), digest })
    }

    /// Where the registry is.
    #[must_use]
    pub fn registry(&self) -> &Url {
        &self.base
    }

    /// The repository within the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if one is named.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest of the manifest, if it is named.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The same artifact by its digest. The tag stays, for who looks for another version later.
    #[must_use]
    pub fn pinned(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// What the tag means now; none where there is no tag.
    #[must_use]
    pub fn anew(&self) -> Option<Self> {
        self.tag.is_some().then(|| Self { digest: None, ..self.clone() })
    }

    /// Where its manifest is: by digest, which cannot change, or else by tag.
    pub fn manifest_url(&self) -> Url {
        let by_tag = || self.tag.clone().unwrap_or_else(|| LATEST.to_owned());
        self.url("manifests", &self.digest.as_ref().map_or_else(by_tag, Digest::to_string))
    }

    /// Where a manifest of the same repository is.
    pub fn manifest_of(&self, digest: &Digest) -> Url {
        self.url("manifests", &digest.to_string())
    }

    /// Where a blob of the same repository is.
    pub fn blob_of(&self, digest: &Digest) -> Url {
        self.url("blobs", &digest.to_string())
    }

    fn url(&self, kind: &str, name: &str) -> Url {
        let mut url = self.base.clone();
        // Every character of these is one that a path may have, so nothing is encoded on the way.
        url.set_path(&format!("/v2/{}/{kind}/{name}", self.repository));
        url
    }

    /// Host and port, as references have them.
    fn authority(&self) -> &str {
        &self.base[url::Position::BeforeHost..url::Position::AfterPort]
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}/{}", self.authority(), self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(formatter, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(formatter, "@{digest}"))
    }
}

/// The registry of a host, with or without a port. On this machine it speaks plain HTTP, as registries do that people start for themselves.
fn registry(authority: &str) -> Result<Url, String> {
    let shown = authority.escape_debug();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    if authority.is_empty() || !authority.bytes().all(is_plain) {
        return Err(format!("`{shown}` is not the host of a registry: write `HOST` or `HOST:PORT`"));
    }
    let parse = |scheme: &str| {
        Url::parse(&format!("{scheme}://{authority}/"))
            .map_err(|error| format!("`{shown}` is not the host of a registry: {error}"))
    };
    let url = parse("https")?;
    let host = url.host_str().unwrap_or_default();
    let written = authority.strip_suffix(']').map_or_else(
        || authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(authority, |(host, _)| host),
        |_| authority,
    );
    // `0x7f.1` is 127.0.0.1 to the parser: what is asked has to be what people read.
    if !host.eq_ignore_ascii_case(written) {
        return Err(format!("`{shown}` is not written as hosts are: write `{host}`"));
    }
    if authority.ends_with(':') || url.port() == Some(0) {
        return Err(format!("`{shown}` has no valid port: write `{host}` or `{host}:PORT`"));
    }
    if DOCKER_HUB.contains(&host) {
        return Err(format!("`{shown}` is not the registry of Docker Hub: write `{DOCKER_HUB_REGISTRY}`"));
    }
    match url.host() {
        Some(host) if is_loopback(&host) => parse("http"),
        Some(Host::Domain(name)) if !is_name(name) => {
            Err(format!("`{shown}` is not the host of a registry: a name is labels of letters, digits and hyphens"))
        }
        _ => Ok(url),
    }
}

fn is_name(name: &str) -> bool {
    name.split('.').all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-'))
}

/// Path components of small letters and digits, parted within by one `.`, one or two `_`, or any number of `-`.
fn check_repository(repository: &str) -> Result<(), String> {
    if repository.split('/').all(is_component) {
        return Ok(());
    }
    Err(format!(
        "`{}` is not the name of a repository: write small letters, digits and single `.`, `_`, `-` between them, such as `tools/word_count`",
        repository.escape_debug()
    ))
}

fn is_component(component: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let is_bounded = bytes.first().is_some_and(is_word) && bytes.last().is_some_and(is_word);
    let mut between = component.split(|char: char| char.is_ascii_lowercase() || char.is_ascii_digit());
    is_bounded && between.all(|text| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-'))
}

fn checked_tag(tag: &str) -> Result<&str, String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_tag = (1..=MOST_TAG).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    let refused = || {
        format!(
            "`{}` is not a tag: write 1 to {MOST_TAG} of A-Z, a-z, 0-9, `_`, `.`, `-`, not beginning with `.` or `-`",
            tag.escape_debug()
        )
    };
    is_tag.then_some(tag).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_reference_is_read_and_written_the_same() {
        for (text, manifest) in [
            ("oci://ghcr.io/org/word_count:1.4", "https://ghcr.io/v2/org/word_count/manifests/1.4"),
            ("oci://ghcr.io:8443/a:v1", "https://ghcr.io:8443/v2/a/manifests/v1"),
            ("oci://localhost:5000/a/b/c:x", "http://localhost:5000/v2/a/b/c/manifests/x"),
            ("oci://127.0.0.2/a:x", "http://127.0.0.2/v2/a/manifests/x"),
            ("oci://[::1]:5000/a:x", "http://[::1]:5000/v2/a/manifests/x"),
            ("oci://10.0.0.7:5000/a:x", "https://10.0.0.7:5000/v2/a/manifests/x"),
            ("oci://r.example/a.b/c__d/e--f:A_b.c-d", "https://r.example/v2/a.b/c__d/e--f/manifests/A_b.c-d"),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!((reference.to_string(), reference.manifest_url().as_str()), (text.to_owned(), manifest));
            assert_eq!(Reference::parse(&reference.to_string()).unwrap(), reference);
        }
    }

    #[test]
    fn a_digest_is_asked_for_before_a_tag_which_is_latest_where_neither_is_named() {
        let read = |text: &str| Reference::parse(text).unwrap();
        assert_eq!(read("oci://r.example/a").to_string(), "oci://r.example/a:latest");
        let pinned = read(&format!("oci://R.example/a:1@{DIGEST}"));
        assert_eq!(pinned.to_string(), format!("oci://r.example/a:1@{DIGEST}"));
        assert_eq!(pinned.manifest_url().path(), format!("/v2/a/manifests/{DIGEST}"));
        assert_eq!(pinned.anew(), Some(read("oci://r.example/a:1")));
        assert_eq!(read("oci://r.example/a:1").pinned(Digest::of(b"")), pinned);
        let untagged = read(&format!("oci://r.example/a@{DIGEST}"));
        assert_eq!((untagged.tag(), untagged.anew()), (None, None));
    }

    #[test]
    fn what_is_not_a_reference_is_refused_with_what_to_write() {
        for (text, refusal) in [
            ("ghcr.io/org/a:1", "write `oci://HOST/REPOSITORY:TAG`"),
            ("OCI://ghcr.io/a:1", "write `oci://HOST/REPOSITORY:TAG`"),
            ("oci://ghcr.io", "names no repository"),
            ("oci://ghcr.io/", "is not the name of a repository"),
            ("oci:///a:1", "is not the host of a registry"),
            ("oci://u:p@ghcr.io/a:1", "has a user or a password"),
            ("oci://ghcr.io/A:1", "`A` is not the name of a repository"),
            ("oci://ghcr.io/a//b:1", "is not the name of a repository"),
            ("oci://ghcr.io/a/../b:1", "is not the name of a repository"),
            ("oci://ghcr.io/a..b:1", "is not the name of a repository"),
            ("oci://ghcr.io/a___b:1", "is not the name of a repository"),
            ("oci://ghcr.io/-a:1", "is not the name of a repository"),
            ("oci://ghcr.io/a-:1", "is not the name of a repository"),
            ("oci://ghcr.io/a:", "`` is not a tag"),
            ("oci://ghcr.io/a:.1", "`.1` is not a tag"),
            ("oci://ghcr.io/a:1:2", "`1:2` is not a tag"),
            ("oci://ghcr.io/a:1/b", "`1/b` is not a tag"),
            ("oci://ghcr.io/a@sha512:00", "is not a digest of SHA-256"),
            ("oci://ghcr.io/a@", "is not a digest"),
            ("oci://ghcr.io/a:1?x=y", "contains U+003F"),
            ("oci://ghcr.io/a%2fb:1", "contains U+0025"),
            ("oci://ghcr.io/a :1", "contains U+0020"),
            ("oci://ghcr.io/ä:1", "contains U+00E4"),
            ("oci://0x7f.1/a:1", "write `127.0.0.1`"),
            ("oci://2130706433:5000/a:1", "write `127.0.0.1`"),
            ("oci://ghcr.io:0/a:1", "has no valid port"),
            ("oci://ghcr.io:/a:1", "has no valid port"),
            ("oci://ghcr.io:99999/a:1", "invalid port number"),
            ("oci://[::1/a:1", "invalid IPv6 address"),
            ("oci://a..b/a:1", "labels of letters, digits and hyphens"),
            ("oci://docker.io/library/a:1", "write `registry-1.docker.io`"),
        ] {
            let refused = Reference::parse(text).unwrap_err();
            assert!(refused.contains(refusal), "{text}: {refused}");
        }
    }

    #[test]
    fn a_reference_of_exactly_the_length_passes() {
        let of = |repository: usize, tag: usize| {
            Reference::parse(&format!("oci://r.example/{}:{}", "a".repeat(repository), "t".repeat(tag)))
        };
        assert!(of(MOST_NAME - "r.example/".len(), MOST_TAG).is_ok());
        assert!(of(MOST_NAME - "r.example/".len() + 1, 1).unwrap_err().contains("is too long"));
        assert!(of(1, MOST_TAG + 1).unwrap_err().contains("is not a tag"));
    }
}
