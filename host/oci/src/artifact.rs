//! What a registry says of an artifact: a manifest, or an index of manifests, and which of its layers is the component.
//!
//! Which layers count is what tools push: `wkg`, `wash` and `cargo component` push `application/wasm` with a config of
//! `application/vnd.wasm.config.v0+json` (the Wasm OCI artifact of CNCF TAG Runtime). The other types are those of `wasm-to-oci` and of older
//! `wash` and `oras`. What is in the layer is checked as any file is, whatever its type says.

use config::source::digest::Digest;
use serde::Deserialize;

/// Types of a manifest, and of an index of manifests.
pub(crate) const MANIFESTS: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
pub(crate) const INDEXES: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
/// The type of the config of a component.
const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Types of configs beside which a layer can be a component. No config is read.
const CONFIGS: [&str; 5] = [
    WASM_CONFIG,
    "application/vnd.wasm.config.v1+json",
    "application/vnd.oci.empty.v1+json",
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.unknown.config.v1+json",
];
/// Types of layers that are a component.
const LAYERS: [&str; 3] = [
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.module.wasm.content.layer.v1+wasm",
];
/// Entries of a list that a message shows.
const SHOWN: usize = 8;

/// What a registry answers with, read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// The manifest of a component.
    Component(Layer),
    /// An index: the manifest in it that is a component's.
    Index(Entry),
}

/// The layer that is the component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub digest: Digest,
    pub size: u64,
    /// The types of the layers beside it, which nobody reads.
    pub unread: Vec<String>,
}

/// A manifest that an index names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub digest: Digest,
    pub size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    schema_version: u64,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    artifact_type: Option<String>,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
}

impl Document {
    /// Reads what a registry answered; `content_type` is what its header says.
    ///
    /// # Errors
    /// A fragment that says why it is not a component's.
    pub(crate) fn read(body: &[u8], content_type: Option<&str>) -> Result<Self, String> {
        let written: Written =
            serde_json::from_slice(body).map_err(|error| format!("it is not a manifest: {error}"))?;
        let content_type = content_type.and_then(|text| text.split(';').next()).map(str::trim);
        let said = match (&written.media_type, content_type) {
            // Two readers could otherwise take the same bytes for two things (CVE-2021-41190).
            (Some(said), Some(header)) if is_known(header) && !said.eq_ignore_ascii_case(header) => {
                return Err(format!("it says that it is `{}`, and its header says `{}`", shown(said), shown(header)));
            }
            (Some(said), _) => said.as_str(),
            (None, Some(header)) if is_known(header) => header,
            (None, _) if written.manifests.is_some() => INDEXES[0],
            (None, _) => MANIFESTS[0],
        };
        if written.schema_version != 2 {
            return Err(format!("its schema version is {}, not 2", written.schema_version));
        }
        match (written.config, written.layers, written.manifests) {
            (Some(config), Some(layers), None) if MANIFESTS.contains(&said) => {
                Layer::among(&config, layers).map(Self::Component)
            }
            (None, None, Some(manifests)) if INDEXES.contains(&said) => Entry::among(&manifests).map(Self::Index),
            _ => Err(format!(
                "it is not a manifest with a config and layers, nor an index: its type is `{}`",
                shown(said)
            )),
        }
    }
}

impl Layer {
    fn among(config: &Descriptor, layers: Vec<Descriptor>) -> Result<Self, String> {
        if !CONFIGS.contains(&&*config.media_type) {
            return Err(format!(
                "it is not a component: its config is `{}`, not `{WASM_CONFIG}`",
                shown(&config.media_type)
            ));
        }
        let (wasm, others): (Vec<_>, Vec<_>) =
            layers.into_iter().partition(|layer| LAYERS.contains(&&*layer.media_type));
        let types = |layers: &[Descriptor]| layers.iter().map(|layer| shown(&layer.media_type)).collect::<Vec<_>>();
        match wasm.as_slice() {
            [layer] => Ok(Self { digest: Digest::parse(&layer.digest)?, size: layer.size, unread: types(&others) }),
            [] => Err(format!(
                "it has no layer of type `{}`: its layers are {}",
                LAYERS[0],
                listed(&types(&others), "none")
            )),
            several => Err(format!("it has {} layers that are components, and a plugin is one", several.len())),
        }
    }
}

impl Entry {
    fn among(manifests: &[Descriptor]) -> Result<Self, String> {
        let is_wasm = |entry: &&Descriptor| {
            let is_platform = entry.platform.as_ref().is_some_and(|platform| platform.architecture == "wasm");
            let is_artifact = [WASM_CONFIG, LAYERS[0]].map(Some).contains(&entry.artifact_type.as_deref());
            MANIFESTS.contains(&&*entry.media_type) && (is_platform || is_artifact)
        };
        let of_wasm: Vec<&Descriptor> = manifests.iter().filter(is_wasm).collect();
        match (of_wasm.as_slice(), manifests) {
            ([entry], _) => Self::of(entry),
            // The only one, of which nothing is said.
            ([], [entry]) if entry.platform.is_none() && MANIFESTS.contains(&&*entry.media_type) => Self::of(entry),
            ([], _) => Err(format!(
                "it is an index without a component: its manifests are {}",
                listed(&manifests.iter().map(Descriptor::told).collect::<Vec<_>>(), "none")
            )),
            (several, _) => Err(format!(
                "it is an index with {} components: name one by its digest: {}",
                several.len(),
                listed(&several.iter().map(|entry| entry.told()).collect::<Vec<_>>(), "none")
            )),
        }
    }

    fn of(descriptor: &Descriptor) -> Result<Self, String> {
        Ok(Self { digest: Digest::parse(&descriptor.digest)?, size: descriptor.size })
    }
}

impl Descriptor {
    /// Which one it is, for a person.
    fn told(&self) -> String {
        let platform = self.platform.as_ref().map(|platform| format!("{}/{}", platform.os, platform.architecture));
        let what = platform.as_deref().or(self.artifact_type.as_deref()).unwrap_or(&self.media_type);
        format!("`@{}` ({})", shown(&self.digest), shown(what))
    }
}

fn is_known(content_type: &str) -> bool {
    MANIFESTS.iter().chain(&INDEXES).any(|known| known.eq_ignore_ascii_case(content_type))
}

fn listed(entries: &[String], none: &str) -> String {
    let more = entries.len().saturating_sub(SHOWN);
    let listed = entries.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match more {
        _ if entries.is_empty() => none.to_owned(),
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// A text of the registry's, as far as a message shows it.
fn shown(text: &str) -> String {
    text.escape_debug().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const OCI: &str = MANIFESTS[0];

    fn descriptor(media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": Digest::of(media_type.as_bytes()).to_string(), "size": 7 })
    }

    fn manifest(config: &str, layers: &[&str]) -> Value {
        let layers: Vec<Value> = layers.iter().map(|layer| descriptor(layer)).collect();
        json!({ "schemaVersion": 2, "mediaType": OCI, "config": descriptor(config), "layers": layers })
    }

    fn read(document: &Value, content_type: Option<&str>) -> Result<Document, String> {
        Document::read(document.to_string().as_bytes(), content_type)
    }

    #[test]
    fn the_one_layer_that_is_a_component_is_found() {
        for config in CONFIGS {
            for layer in LAYERS {
                let Ok(Document::Component(found)) = read(&manifest(config, &[layer]), None) else {
                    panic!("{config} {layer}");
                };
                assert_eq!((found.digest, found.size), (Digest::of(layer.as_bytes()), 7));
            }
        }
        let policy = "application/vnd.wassette.policy+yaml";
        let Ok(Document::Component(found)) = read(&manifest(WASM_CONFIG, &[LAYERS[0], policy]), Some(OCI)) else {
            panic!("a policy beside it is not read");
        };
        assert_eq!(found.unread, [policy]);
    }

    #[test]
    fn what_is_not_one_component_is_refused_with_what_it_is() {
        let both = {
            let mut both = manifest(WASM_CONFIG, &[LAYERS[0]]);
            both["manifests"] = json!([]);
            both
        };
        let mut old = manifest(WASM_CONFIG, &[LAYERS[0]]);
        old["schemaVersion"] = 1.into();
        let mut other = manifest(WASM_CONFIG, &[LAYERS[0]]);
        other["layers"][0]["digest"] = "sha512:00".into();
        for (document, refusal) in [
            (
                manifest("application/vnd.docker.container.image.v1+json", &[LAYERS[0]]),
                "its config is `application/vnd.docker",
            ),
            (manifest(WASM_CONFIG, &[]), "its layers are none"),
            (
                manifest(WASM_CONFIG, &["application/vnd.oci.image.layer.v1.tar+gzip"]),
                "its layers are application/vnd.oci.image.layer",
            ),
            (manifest(WASM_CONFIG, &[LAYERS[0], LAYERS[1]]), "it has 2 layers that are components"),
            (both, "nor an index"),
            (old, "its schema version is 1"),
            (other, "is not a digest of SHA-256"),
            (json!([]), "it is not a manifest"),
            (json!({ "schemaVersion": 2, "mediaType": "x" }), "its type is `x`"),
        ] {
            let refused = read(&document, None).unwrap_err();
            assert!(refused.contains(refusal), "{document}: {refused}");
        }
    }

    #[test]
    fn bytes_that_two_readers_could_take_for_two_things_are_refused() {
        let refused = read(&manifest(WASM_CONFIG, &[LAYERS[0]]), Some(INDEXES[0])).unwrap_err();
        assert!(refused.contains("and its header says"), "{refused}");
        let mut unsaid = manifest(WASM_CONFIG, &[LAYERS[0]]);
        unsaid.as_object_mut().unwrap().remove("mediaType");
        assert!(read(&unsaid, Some(INDEXES[0])).is_err());
        assert!(read(&unsaid, Some(&format!("{OCI}; charset=utf-8"))).is_ok());
        assert!(read(&unsaid, Some("text/plain")).is_ok());
    }

    #[test]
    fn an_index_has_one_component_or_its_list_is_shown() {
        let of = |platform: Value| {
            let mut entry = descriptor(OCI);
            entry["platform"] = platform;
            entry
        };
        let index = |entries: Vec<Value>| json!({ "schemaVersion": 2, "mediaType": INDEXES[0], "manifests": entries });
        let (linux, wasm) =
            (json!({ "os": "linux", "architecture": "amd64" }), json!({ "os": "wasip2", "architecture": "wasm" }));
        let first = Digest::of(OCI.as_bytes());
        for entries in [vec![of(linux.clone()), of(wasm.clone())], vec![descriptor(OCI)]] {
            assert_eq!(read(&index(entries), None), Ok(Document::Index(Entry { digest: first.clone(), size: 7 })));
        }
        for (entries, refusal) in [
            (vec![of(wasm.clone()), of(wasm)], format!("name one by its digest: `@{first}` (wasip2/wasm), `@{first}`")),
            (vec![of(linux)], format!("without a component: its manifests are `@{first}` (linux/amd64)")),
            (vec![], "its manifests are none".into()),
            (vec![descriptor(INDEXES[0])], "without a component".into()),
        ] {
            let refused = read(&index(entries), None).unwrap_err();
            assert!(refused.contains(&refusal), "{refused}");
        }
    }
}
