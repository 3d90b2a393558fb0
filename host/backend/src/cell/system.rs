//! What programs see that are no commands of the user's: what the system brings, and what they are given.

use super::Profile;
use config::CellNetwork;
use std::io;
use std::path::{Path, PathBuf};

/// Of the root directory, what is seen; the rest is not there.
const SEEN: [&str; 12] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "sys", "opt"];
/// What a cell has new, where directories can be made.
const NEW: [&str; 2] = ["tmp", "run"];
/// Of `/etc`, what programs and their libraries need. The rest tells of the machine and its people, and root would read all of it.
const ETC: &str = "/etc";
#[rustfmt::skip]
const SEEN_OF_ETC: [&str; 25] = [
    "alternatives", "ca-certificates", "chromium", "chromium.d", "chromium-browser", "crypto-policies", "fonts", "gai.conf", "group", "host.conf",
    "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki",
    "resolv.conf", "ssl/certs", "ssl/openssl.cnf", "timezone",
];

impl Profile {
    /// What sees of this machine what the system brings, `read`, and `write`, where it can write, and no home. Its network is the host's egress.
    ///
    /// # Errors
    ///
    /// When the root directory cannot be listed.
    pub fn of_system(write: Vec<PathBuf>, read: &[PathBuf]) -> io::Result<Self> {
        let is_seen = |name: &Path| SEEN.iter().chain(&NEW).any(|seen| name == Path::new("/").join(seen));
        let top = |path: &PathBuf| path.components().nth(1).map(|name| Path::new("/").join(name));
        // What is given would go with what hides all else there.
        let mut emptied: Vec<PathBuf> = write.iter().chain(read).filter_map(top).filter(|top| !is_seen(top)).collect();
        emptied.sort();
        emptied.dedup();
        let mut hide = vec![PathBuf::from(ETC)];
        for entry in std::fs::read_dir("/")? {
            let entry = entry?;
            let path = entry.path();
            if !is_seen(&path) && entry.file_type()?.is_dir() && !emptied.contains(&path) {
                hide.push(path);
            }
        }
        hide.sort();
        let show = SEEN_OF_ETC.iter().map(|name| Path::new(ETC).join(name)).chain(read.iter().cloned()).collect();
        Ok(Self { write, emptied, hide, show, network: CellNetwork::Egress, ..Self::closed() })
    }
}
