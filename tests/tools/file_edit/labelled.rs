//! The labelled set of edits as models write them, in `edits.jsonl`: each is right to the byte, or is refused for the reason that it names and
//! leaves the file alone.
//!
//! A line has a `class`, `why` it is there, the `file` (or its bytes in `hex`; `as` names an encoding of it), the `edit`, and what it `gives` or how
//! it is `refused`: the kind, and a part of the message. `stale` is what is written after the file was read, `fresh` says that nothing is.

use super::content_of;
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolcrib_tests::TestHost;

const CASES: &str = include_str!("edits.jsonl");
/// The classes, and how many cases each has at least.
const CLASSES: [(&str, usize); 14] = [
    ("ambiguous", 8),
    ("arguments", 8),
    ("blanks", 20),
    ("crlf", 20),
    ("encoding", 20),
    ("hidden", 30),
    ("mark", 8),
    ("missing", 10),
    ("mixed", 18),
    ("notation", 15),
    ("plain", 20),
    ("several", 20),
    ("stale", 6),
    ("unicode", 15),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    class: String,
    why: String,
    file: Option<String>,
    hex: Option<String>,
    r#as: Option<String>,
    edit: Value,
    gives: Option<String>,
    gives_hex: Option<String>,
    refused: Option<String>,
    stale: Option<String>,
    fresh: Option<bool>,
}

impl Case {
    /// The bytes of a text of this case.
    fn bytes(&self, text: Option<&str>, bytes: Option<&str>) -> Vec<u8> {
        match (text, bytes, self.r#as.as_deref()) {
            (Some(text), None, None) => text.as_bytes().to_vec(),
            (Some(text), None, Some("utf-16le")) => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            (Some(text), None, Some("utf-16be")) => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            (None, Some(bytes), None) => HEXLOWER.decode(bytes.as_bytes()).expect("hexadecimal digits"),
            _ => panic!("{}: {}: how is the file to be read?", self.class, self.why),
        }
    }

    /// What came of it that is not as it says.
    async fn fault(&self, host: &TestHost, name: &str) -> Option<String> {
        let path = host.work().join(name);
        let before = self.bytes(self.file.as_deref(), self.hex.as_deref());
        std::fs::write(&path, &before).expect("a file");
        let mut edit = self.edit.clone();
        edit["path"] = name.into();
        if self.stale.is_some() || self.fresh == Some(true) {
            edit["expected_revision"] = revision(host, name).await.into();
        }
        let before = match &self.stale {
            Some(stale) => stale.as_bytes().to_vec(),
            None => before,
        };
        std::fs::write(&path, &before).expect("a file");
        let outcome = host.call("file_edit", edit).await.outcome;
        let after = content_of(host, name);
        match (&self.refused, outcome) {
            (None, Ok(output)) => {
                let expected = self.bytes(self.gives.as_deref(), self.gives_hex.as_deref());
                let diff = output.result.as_str().unwrap_or_default();
                let is_diff = diff.starts_with(&format!("--- {name}\n+++ {name}\n@@ ")) && output.notices.is_empty();
                let is_right = after == expected && is_diff;
                (!is_right).then(|| {
                    format!("{:?} instead of {:?}; {diff:?}, {:?}", lossy(&after), lossy(&expected), output.notices)
                })
            }
            (Some(refused), Err(failure)) => {
                let (kind, why) = refused.split_once(": ").expect("a kind and a reason");
                let is_right = failure.kind.name() == kind && failure.message.contains(&why.replace("FILE", name));
                (!is_right || after != before).then(|| format!("{}: {}", failure.kind.name(), failure.message))
            }
            (None, Err(failure)) => Some(format!("refused: {}: {}", failure.kind.name(), failure.message)),
            (Some(_), Ok(output)) => Some(format!("made, not refused: {}", output.result)),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn revision(host: &TestHost, name: &str) -> String {
    let output = host.call("file_read", json!({ "path": name, "revision": true })).await.outcome.expect("a text");
    let told = output.notices.iter().find_map(|notice| notice.split_once("the `revision` of ")).expect("a revision").1;
    told.split('`').nth(3).expect("a revision").to_owned()
}

#[tokio::test]
async fn every_labelled_edit_is_right_or_refused_for_its_reason() {
    let host = TestHost::new();
    let cases: Vec<Case> = CASES.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let mut classes = BTreeMap::<&str, usize>::new();
    let mut faults = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        *classes.entry(&case.class).or_default() += 1;
        if let Some(fault) = case.fault(&host, &format!("file-{number}")).await {
            faults.push(format!("{} ({}): {fault}", case.class, case.why));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
    assert!(cases.len() >= 200, "{} cases", cases.len());
    assert_eq!(classes.keys().copied().collect::<Vec<_>>(), CLASSES.map(|(class, _)| class));
    for (class, least) in CLASSES {
        assert!(classes[class] >= least, "{class}: {}", classes[class]);
    }
}
