//! The policy of full Chromium, besides its switches: it closes pages of the browser's own, keeps devices from pages, and switches off what the
//! browser does for its vendor. The headless shell reads none, and can do less of that.
//!
//! It looks for policies in a directory of the system. In the cell, this one lies over it; the system's own is not touched, and what an
//! administrator has written there is copied.

use backend::cell::MountPoint;
use base::disk::OwnDir;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where Chromium looks. Something can only be laid over it where it is, as it is with Debian's package.
const PLACE: &str = "/etc/chromium";
/// Where policies that bind lie in there.
const BINDING: &str = "policies/managed";
/// Of several, the last one by name decides.
const FILE: &str = "zz-toolcrib.json";
/// Files of an administrator that are copied, and bytes of each.
const MOST_FILES: usize = 64;
const MOST_BYTES: u64 = 1 << 20;
/// Addresses that are not opened. Every file that has such a list adds to it.
const BLOCKED: &str = "URLBlocklist";

/// Writes the policy, where a browser of this machine can be given it.
pub(super) fn lay(own: &OwnDir) -> io::Result<Option<MountPoint>> {
    if !Path::new(PLACE).is_dir() {
        return Ok(None);
    }
    let top = own.below("managed")?;
    let directory = top.below("policies")?.below("managed")?;
    let system = administrators(&Path::new(PLACE).join(BINDING));
    for (name, _) in directory.files()? {
        if name != FILE && !system.iter().any(|(known, ..)| known.as_bytes() == name.as_bytes()) {
            directory.remove(&name)?;
        }
    }
    let mut policy = policy();
    for (name, text, read) in &system {
        directory.replace(name, text)?;
        if let (Some(Value::Array(theirs)), Some(Value::Array(blocked))) = (read.get(BLOCKED), policy.get_mut(BLOCKED))
        {
            blocked.extend(theirs.iter().cloned());
        }
    }
    directory.replace(FILE, Value::Object(policy).to_string().as_bytes())?;
    Ok(Some(MountPoint { from: top.path().canonicalize()?, at: PLACE.into(), read_only: true }))
}

/// The files that an administrator has written. A browser passes over what cannot be read, too.
fn administrators(directory: &Path) -> Vec<(String, Vec<u8>, Map<String, Value>)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let files = names.filter(|name| name.ends_with(".json") && name != FILE).take(MOST_FILES);
    let read = |name: String| {
        let mut text = Vec::new();
        File::open(directory.join(&name)).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
        let Ok(Value::Object(policies)) = serde_json::from_slice(&text) else { return None };
        Some((name, text, policies))
    };
    files.filter_map(read).collect()
}

fn policy() -> Map<String, Value> {
    let policy = json!({
        BLOCKED: ["file://*", "chrome://*", "chrome-untrusted://*", "chrome-extension://*", "devtools://*", "view-source:*", "filesystem:*"],
        // What a page cannot have, without being asked.
        "DefaultGeolocationSetting": 2, "DefaultNotificationsSetting": 2, "DefaultSensorsSetting": 2, "DefaultSerialGuardSetting": 2,
        "DefaultWebBluetoothGuardSetting": 2, "DefaultWebUsbGuardSetting": 2, "DefaultWebHidGuardSetting": 2, "DefaultClipboardSetting": 2,
        "DefaultFileSystemReadGuardSetting": 2, "DefaultFileSystemWriteGuardSetting": 2, "DefaultLocalFontsSetting": 2,
        "AudioCaptureAllowed": false, "VideoCaptureAllowed": false, "ScreenCaptureAllowed": false, "PrintingEnabled": false,
        // Ways past the host.
        "WebRtcIPHandling": "disable_non_proxied_udp", "QuicAllowed": false, "DnsOverHttpsMode": "off", "BuiltInDnsClientEnabled": false,
        "NetworkPredictionOptions": 2,
        // What it does for its vendor and for its user.
        "BrowserSignin": 0, "SyncDisabled": true, "ComponentUpdatesEnabled": false, "MetricsReportingEnabled": false,
        "SafeBrowsingProtectionLevel": 0, "SearchSuggestEnabled": false, "TranslateEnabled": false, "PasswordManagerEnabled": false,
        "AutofillAddressEnabled": false, "AutofillCreditCardEnabled": false, "BackgroundModeEnabled": false,
        "ExtensionInstallBlocklist": ["*"], "DefaultBrowserSettingEnabled": false,
    });
    let Value::Object(policy) = policy else { unreachable!("it is written as an object") };
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_administrator_has_blocked_stays_blocked() {
        let directory = tempfile::tempdir().expect("a directory");
        let written = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file");
        written("a.json", r#"{ "URLBlocklist": ["a.example"], "HomepageLocation": "https://b.example/" }"#);
        written("b.json", "{");
        written("c.txt", "{}");
        let read = administrators(directory.path());
        assert_eq!(read.len(), 1, "{read:?}");
        assert_eq!((read[0].0.as_str(), &read[0].2[BLOCKED]), ("a.json", &json!(["a.example"])));
        assert!(administrators(&directory.path().join("missing")).is_empty());
    }
}
