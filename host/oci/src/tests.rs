//! A registry as a list of pages: what is asked of it, in which order, and what becomes of answers that are not what they should be.

use super::{Answer, Registry, Web};
use base::envelope::{Failure, Kind};
use config::source::digest::Digest;
use config::source::reference::Reference;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use url::Url;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const COMPONENT: &[u8] = b"\0asm a component";

/// Pages by their URLs, and what was asked.
#[derive(Default)]
struct Pages {
    pages: HashMap<String, Answer>,
    /// Who comes without this value of `authorization` gets the challenge.
    token: Option<(&'static str, &'static str)>,
    /// Each URL, and whether a token came with it.
    asked: Mutex<Vec<(String, bool)>>,
}

impl Web for Pages {
    fn get<'a>(
        &'a self,
        url: &'a Url,
        headers: &'a [(&'static str, &'a str)],
        most: u64,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let has_token = headers.iter().any(|(name, _)| *name == "authorization");
            self.asked.lock().unwrap().push((url.to_string(), has_token));
            if let Some((challenge, token)) = self.token
                && url.path().starts_with("/v2/")
                && !headers.contains(&("authorization", token))
            {
                let headers = vec![("www-authenticate".into(), challenge.into())];
                return Ok(Answer { status: 401, headers, body: Vec::new(), is_cut: false });
            }
            let none = Answer { status: 404, headers: Vec::new(), body: Vec::new(), is_cut: false };
            let mut page = self.pages.get(url.as_str()).cloned().unwrap_or(none);
            page.is_cut = page.body.len() as u64 > most;
            page.body.truncate(most as usize);
            Ok(page)
        })
    }
}

impl Pages {
    fn add(&mut self, url: &str, content_type: &str, body: &[u8]) {
        let headers = vec![
            ("content-type".to_owned(), content_type.to_owned()),
            // It says what it likes; nobody looks.
            ("docker-content-digest".to_owned(), Digest::of(b"something else").to_string()),
        ];
        self.pages.insert(url.into(), Answer { status: 200, headers, body: body.to_vec(), is_cut: false });
    }

    /// Adds a manifest by tag and digest; returns its digest.
    fn tagged(&mut self, tag: &str, content_type: &str, document: &Value) -> Digest {
        let bytes = document.to_string();
        let digest = Digest::of(bytes.as_bytes());
        for name in [tag, &digest.to_string()] {
            self.add(&format!("https://r.example/v2/a/manifests/{name}"), content_type, bytes.as_bytes());
        }
        digest
    }

    fn blob(&mut self, digest: &Digest, body: &[u8]) {
        self.add(&format!("https://r.example/v2/a/blobs/{digest}"), "application/octet-stream", body);
    }

    /// With one component, tagged `1`.
    fn with_a_component() -> (Self, Digest) {
        let mut pages = Self::default();
        pages.blob(&Digest::of(COMPONENT), COMPONENT);
        let digest = pages.tagged("1", MANIFEST, &manifest(COMPONENT.len()));
        (pages, digest)
    }

    fn paths(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let path = |url: &String| url.replace("https://r.example/v2/a/", "");
        asked.iter().map(|(url, _)| path(url)).collect()
    }

    fn pull(&self, reference: &str, most: u64) -> Result<(String, Vec<u8>), Failure> {
        let reference = Reference::parse(reference).unwrap();
        let mut registry = Registry::new(self, &reference);
        let pulled = async {
            let resolved = registry.resolve().await?;
            let bytes = registry.layer(&resolved, most).await?;
            Ok((resolved.pinned.to_string(), bytes))
        };
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(pulled)
    }

    fn refused(&self, reference: &str) -> (Kind, String) {
        let failure = self.pull(reference, 1 << 20).unwrap_err();
        (failure.kind, failure.message)
    }
}

fn manifest(size: usize) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": "application/vnd.wasm.config.v0+json", "digest": Digest::of(b"{}").to_string(), "size": 2 },
        "layers": [{ "mediaType": "application/wasm", "digest": Digest::of(COMPONENT).to_string(), "size": size }],
    })
}

#[test]
fn a_tag_is_resolved_once_and_everything_after_it_is_asked_for_by_digest() {
    let (pages, digest) = Pages::with_a_component();
    let pinned = format!("oci://r.example/a:1@{digest}");
    assert_eq!(pages.pull("oci://r.example/a:1", 100).unwrap(), (pinned.clone(), COMPONENT.to_vec()));
    assert_eq!(pages.paths(), ["manifests/1".to_owned(), format!("blobs/{}", Digest::of(COMPONENT))]);
    assert_eq!(pages.pull(&pinned, 100).unwrap().0, pinned);
    assert_eq!(pages.paths()[2], format!("manifests/{digest}"));
}

#[test]
fn bytes_with_another_digest_are_refused_whoever_sends_them() {
    let (mut pages, digest) = Pages::with_a_component();
    let other = manifest(7).to_string();
    pages.add(&format!("https://r.example/v2/a/manifests/{digest}"), MANIFEST, other.as_bytes());
    let (kind, message) = pages.refused(&format!("oci://r.example/a@{digest}"));
    let found = Digest::of(other.as_bytes());
    assert_eq!(
        (kind, message),
        (
            Kind::Denied,
            format!(
                "the manifest of `oci://r.example/a@{digest}` has other bytes than its digest says: {found}, not {digest}"
            )
        )
    );

    let (mut pages, _) = Pages::with_a_component();
    let mut changed = COMPONENT.to_vec();
    changed[0] = 1;
    pages.blob(&Digest::of(COMPONENT), &changed);
    let (kind, message) = pages.refused("oci://r.example/a:1");
    assert!(kind == Kind::Denied && message.contains("the component of `oci://r.example/a:1@sha256:"), "{message}");
}

#[test]
fn no_more_is_read_than_the_manifest_says_and_no_more_than_a_component_may_have() {
    let (mut pages, _) = Pages::with_a_component();
    for (size, refusal) in
        [(COMPONENT.len() - 1, "the registry sends more"), (COMPONENT.len() + 1, "the registry sends 16")]
    {
        pages.tagged("1", MANIFEST, &manifest(size));
        let (kind, message) = pages.refused("oci://r.example/a:1");
        assert!(kind == Kind::Unavailable && message.contains(refusal), "{message}");
    }
    let (pages, _) = Pages::with_a_component();
    let failure = pages.pull("oci://r.example/a:1", 15).unwrap_err();
    assert!(failure.kind == Kind::Limit && failure.message.ends_with("has 16 bytes (limit: 15 bytes)"), "{failure:?}");
    assert_eq!(pages.paths(), ["manifests/1"], "the layer was not asked for");

    let mut long = Pages::default();
    long.add("https://r.example/v2/a/manifests/1", MANIFEST, &vec![b' '; (4 << 20) + 1]);
    assert!(long.refused("oci://r.example/a:1").1.contains("it is longer than 4194304 bytes"));
}

#[test]
fn an_index_leads_to_the_manifest_of_its_component() {
    let (mut pages, child) = Pages::with_a_component();
    let entry = |digest: &Digest, size: usize| json!({ "mediaType": MANIFEST, "digest": digest.to_string(), "size": size, "platform": { "os": "wasip2", "architecture": "wasm" } });
    let index = |entry: Value| json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
    let size = manifest(COMPONENT.len()).to_string().len();
    let digest = pages.tagged("2", INDEX, &index(entry(&child, size)));
    let (pinned, bytes) = pages.pull("oci://r.example/a:2", 100).unwrap();
    assert_eq!((pinned, bytes), (format!("oci://r.example/a:2@{digest}"), COMPONENT.to_vec()));
    let asked = pages.asked.lock().unwrap()[1].clone();
    assert_eq!(asked.0, format!("https://r.example/v2/a/manifests/{child}"));

    let length = index(entry(&child, size)).to_string().len();
    pages.tagged("3", INDEX, &index(entry(&digest, length)));
    let failure = pages.refused("oci://r.example/a:3");
    assert!(failure.1.ends_with("cannot be used: it is an index itself"), "{failure:?}");
    pages.tagged("4", INDEX, &index(entry(&child, 5 << 20)));
    assert_eq!(pages.refused("oci://r.example/a:4").0, Kind::Limit);
    pages.add(&format!("https://r.example/v2/a/manifests/{child}"), MANIFEST, manifest(7).to_string().as_bytes());
    let failure = pages.refused("oci://r.example/a:2");
    assert_eq!(failure.0, Kind::Denied, "{failure:?}");
}

#[test]
fn a_token_is_asked_for_once_and_sent_to_the_registry_alone() {
    let (mut pages, _) = Pages::with_a_component();
    pages.token = Some((r#"Bearer realm="https://auth.example/t?x=1",service="r",scope="s""#, "Bearer abc"));
    pages.add("https://auth.example/t?x=1&service=r&scope=s", "application/json", br#"{"access_token":"abc"}"#);
    assert_eq!(pages.pull("oci://r.example/a:1", 100).unwrap().1, COMPONENT);
    let blob = format!("blobs/{}", Digest::of(COMPONENT));
    assert_eq!(
        pages.paths(),
        ["manifests/1", "https://auth.example/t?x=1&service=r&scope=s", "manifests/1", &blob].map(str::to_owned)
    );
    let with_token: Vec<bool> = pages.asked.lock().unwrap().iter().map(|(_, has_token)| *has_token).collect();
    assert_eq!(with_token, [false, false, true, true]);
}

#[test]
fn what_needs_an_account_is_told_so() {
    for (challenge, token) in [
        ("Basic realm=\"x\"", "unused"),
        ("Bearer realm=\"https://auth.example/other\"", "Bearer never"),
        ("Bearer realm=\"https://auth.example/t\"", "Bearer another"),
    ] {
        let (mut pages, _) = Pages::with_a_component();
        pages.token = Some((challenge, token));
        pages.add("https://auth.example/t?scope=repository%3Aa%3Apull", "application/json", br#"{"token":"abc"}"#);
        let refused = Answer { status: 403, headers: Vec::new(), body: Vec::new(), is_cut: false };
        pages.pages.insert("https://auth.example/other?scope=repository%3Aa%3Apull".into(), refused);
        let (kind, message) = pages.refused("oci://r.example/a:1");
        assert!(
            kind == Kind::Unavailable && message.contains("is not given to everybody, or is not there"),
            "{message}"
        );
    }
}

#[test]
fn what_is_not_there_is_told_in_the_registrys_words() {
    let (mut pages, _) = Pages::with_a_component();
    let said =
        br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest \u001b[31munknown","detail":{"Tag":"2"}}]}"#;
    let unknown = Answer { status: 404, headers: Vec::new(), body: said.to_vec(), is_cut: false };
    pages.pages.insert("https://r.example/v2/a/manifests/2".into(), unknown);
    let (_, message) = pages.refused("oci://r.example/a:2");
    assert_eq!(message, "there is no `oci://r.example/a:2`: MANIFEST_UNKNOWN manifest unknown");
    let many = Answer { status: 429, headers: Vec::new(), body: Vec::new(), is_cut: false };
    pages.pages.insert("https://r.example/v2/a/manifests/3".into(), many);
    assert_eq!(pages.refused("oci://r.example/a:3").0, Kind::Busy);
}
