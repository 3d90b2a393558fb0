//! W-08: a page downloads: files whose names lead elsewhere, one that is too large, one without an end, dozens at once, and where none is granted.
//! Outcome: what is kept lies where long outputs do, at most 10 MiB each and 8 between two calls; the rest is broken off and told, and nothing else is written.
//! Switched off: with files of any size (`DOWNLOAD_BYTES` in `browser/downloads.rs`) 12 MiB were kept and the test failed.

use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use toolcrib_tests::browser::{Page, Site, each, file, html};

/// Names that lead elsewhere, are hidden, are none, or do not read as what they are.
const NAMES: [&str; 8] = [
    "../../../home/stolen.txt",
    "/tmp/stolen.txt",
    "..",
    ".bashrc",
    "..\\..\\stolen.txt",
    "%2e%2e%2fstolen.txt",
    "stolen\u{202e}txt.exe",
    "stolen.txt\u{1b}[2J",
];

/// All files below a directory.
fn below(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(below(&entry.path())),
            _ => _ = found.insert(entry.path()),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_leads_elsewhere() {
    each("names", async |rig| {
        let rig = rig.set("plugin.browser.browser.downloads=true");
        let paths: Vec<String> = (0..NAMES.len()).map(|number| format!("/{number}")).collect();
        let links: String = (0..NAMES.len()).map(|number| format!("<a href=/{number}>by header {number}</a>")).collect();
        let start = format!(
            "<title>Start</title>{links}<script>const names = {}; names.forEach((name, number) => {{ const a = document.createElement('a');\
             a.download = name; a.href = URL.createObjectURL(new Blob(['what is in it'])); a.textContent = 'by script ' + number; document.body.append(a); }});</script>",
            json!(NAMES)
        );
        let encoded = |name: &str| name.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let named = |name: &str| {
            let disposition = format!("attachment; filename*=UTF-8''{}", encoded(name));
            Page { headers: vec![("content-disposition", disposition)], ..file("", "what is in it".into()) }
        };
        let pages = paths.iter().zip(NAMES).map(|(path, name)| (path.as_str(), named(name)));
        let site = Site::new(&pages.chain([("/", html(&start))]).collect::<Vec<_>>());
        rig.go(&site.url("/")).await;
        let dirs = rig.host.dirs();
        let (home, work) = (below(&rig.host.home()), below(&rig.host.work()));
        for way in ["header", "script"] {
            for (number, named) in NAMES.iter().enumerate() {
                let link = rig.id(&format!("link \"by {way} {number}\"")).await;
                println!("{way} {named:?}");
                let mut notices = rig.click(&link).await.expect("a click").notices;
                // A script may begin after the click is over.
                let told = rig.told(&mut notices, "was downloaded: 13 bytes at ").await;
                assert!(!told.contains(['\u{202e}', '\u{1b}']), "{told:?}");
                let (_, path) = told.rsplit_once(" at ").expect("a path");
                let kept = Path::new(path).canonicalize().expect("a file");
                assert!(kept.starts_with(dirs.state.canonicalize().expect("a directory")), "{}", kept.display());
                let name = kept.file_name().expect("a name").to_string_lossy().into_owned();
                assert!(name.ends_with(".download") && !name.contains("stolen"), "{name}");
            }
        }
        assert_eq!((below(&rig.host.home()), below(&rig.host.work())), (home, work), "something was written");
        assert!(!Path::new("/tmp/stolen.txt").exists());
        assert_eq!(rig.downloads(), [] as [u64; 0], "something stays with the browser");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_or_has_no_end_is_broken_off() {
    each("large", async |rig| {
        let rig = rig.set("plugin.browser.browser.downloads=true");
        let large = file("large.bin", "x".repeat(12 << 20));
        let endless = Page { is_endless: true, ..file("endless.bin", "x".repeat(1 << 20)) };
        let made = "const a = document.createElement('a'); a.download = 'made.bin'; a.href = self.URL.createObjectURL(new Blob([new Uint8Array(64 << 20)])); document.body.append(a); a.click()";
        let start = format!("<title>Start</title><a href=/large>large</a><a href=/endless>endless</a><button onclick=\"{made}\">made</button>");
        let site = Site::new(&[("/", html(&start)), ("/large", large), ("/endless", endless)]);
        rig.go(&site.url("/")).await;
        for (line, name) in [("link \"large\"", "large.bin"), ("button \"made\"", "made.bin"), ("link \"endless\"", "endless.bin")] {
            let (begin, sent) = (Instant::now(), site.sent());
            let mut notices = rig.click(&rig.id(line).await).await.expect("a click").notices;
            rig.told(&mut notices, &format!("`{name}` was not downloaded: limit")).await;
            println!("{name}: {:?}, {} MiB sent", begin.elapsed(), (site.sent() - sent) >> 20);
        }
        // It is over for its server as well, once that has noticed.
        let begin = Instant::now();
        loop {
            let sent = site.sent();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let more = site.sent() - sent;
            if more < 8 << 20 {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it goes on: {} MiB", more >> 20);
        }
        assert_eq!(rig.downloads(), [] as [u64; 0], "something stays with the browser");
        assert_eq!(rig.go(&site.url("/")).await.result["title"], "Start");
    })
    .await;
}

/// A page that loads one file after the other while no call runs fills no disk.
#[tokio::test(flavor = "multi_thread")]
async fn downloads_are_bounded() {
    each("flood", async |rig| {
        let rig = rig.set("plugin.browser.browser.downloads=true");
        let file = file("f", "x".repeat(2 << 20));
        let page = "<title>Start</title><script>let n = 0; const timer = setInterval(() => { const a = document.createElement('a'); a.download = 'f' + n;\
            a.href = '/file?' + n; document.body.append(a); a.click(); if (++n == 30) clearInterval(timer); }, 100)</script>";
        let site = Site::new(&[("/", html(page)), ("/file", file)]);
        rig.go(&site.url("/")).await;
        let begin = Instant::now();
        while site.asked().len() < 31 && begin.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let bytes: u64 = rig.downloads().iter().sum();
        println!("{} asked, {bytes} bytes", site.asked().len());
        assert!(bytes > 0 && bytes <= 12 * (2 << 20), "{bytes} bytes");
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        let of = |what: &str| looked.notices.iter().filter(|notice| notice.contains(what)).count();
        assert!((1..=8).contains(&of("was downloaded")) && of("was refused") > 0, "{looked:?}");
    })
    .await;
}

/// Where none is granted, none is begun, by whatever a page does.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_grant_nothing_is_written() {
    each("refused", async |rig| {
        let endless = Page { is_endless: true, ..file("endless.bin", "x".repeat(1 << 20)) };
        let start = "<title>Start</title><script>let n = 0; const load = href => { const a = document.createElement('a'); a.download = 'f' + n++; a.href = href;\
            document.body.append(a); a.click(); }; setInterval(() => { load('/file'); load('data:text/plain,x'); load(URL.createObjectURL(new Blob(['x']))); load('/endless'); }, 200)</script>\
            <iframe src=/file></iframe>";
        let site = Site::new(&[("/", html(start)), ("/file", file("f.bin", "x".repeat(2 << 20))), ("/endless", endless)]);
        rig.go(&site.url("/")).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        assert!(looked.notices.iter().any(|notice| notice.contains("was refused")), "{looked:?}");
        assert_eq!(rig.downloads(), [] as [u64; 0], "a file was written");
        let kept = below(&rig.host.dirs().state);
        assert!(kept.iter().all(|path| path.extension().is_none_or(|kind| kind != "download")), "{kept:?}");
    })
    .await;
}
