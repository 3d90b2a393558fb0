//! Files that are given to pages.

use crate::rig::{Rig, Site, each, html};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use toolcrib::envelope::{Failure, Kind, Output};
use toolcrib_tests::eventually;

const GRANTED: &str = "plugin.browser.browser.uploads=true";
const FORM: &str = "<title>Form</title><form method=post action=/sent enctype=multipart/form-data>\
    <input type=file name=one aria-label=One><input type=file multiple name=many aria-label=Many><button>Send</button></form>";

async fn upload(rig: &Rig, element: &str, files: &[&str]) -> Result<Output, Failure> {
    rig.output("browser_upload", json!({ "element": element, "files": files })).await
}

fn file(rig: &Rig, name: &str, content: &str) {
    std::fs::write(rig.host.work().join(name), content).expect("a file");
}

/// The copies that browsers of this host have, below their profiles.
fn copies(rig: &Rig) -> Vec<std::path::PathBuf> {
    let profiles = std::fs::read_dir(rig.host.dirs().state.join("browser/passing")).into_iter().flatten().flatten();
    let placed = profiles.filter_map(|profile| std::fs::read_dir(profile.path().join("uploads")).ok());
    placed.flatten().flatten().map(|copy| copy.path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_uploaded_unless_settings_allow_it() {
    each("uploads", async |rig| {
        let site = Site::new(&[("/", html(FORM))]);
        file(&rig, "a.txt", "what is in it");
        rig.go(&site.url("/")).await;
        let failure = upload(&rig, &rig.id("button \"One\"").await, &["a.txt"]).await.unwrap_err();
        let hint = "set `browser.uploads = true` under [plugin.browser]";
        assert_eq!((failure.kind, failure.hint.as_deref()), (Kind::Denied, Some(hint)), "{failure:?}");
        assert!(copies(&rig).is_empty());
        let denied = "denied: `browser` may not give files to pages";
        assert!(format!("{:?}", rig.host.audit()).contains(denied), "{:?}", rig.host.audit());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_gets_the_files_that_may_be_read() {
    each("uploads", async |rig| {
        let rig = rig.set(GRANTED);
        let site = Site::new(&[("/", html(FORM)), ("/sent", html("<title>Thanks</title>"))]);
        file(&rig, "a.txt", "the first one");
        file(&rig, "b.txt", "the second one");
        rig.go(&site.url("/")).await;
        let (one, many) = (rig.id("button \"One\"").await, rig.id("button \"Many\"").await);
        let failure = upload(&rig, &one, &["a.txt", "b.txt"]).await.unwrap_err();
        assert_eq!(failure.message, "button \"One\" takes one file", "{failure:?}");
        upload(&rig, &one, &["a.txt"]).await.expect("it is given");
        upload(&rig, &many, &["a.txt", "b.txt"]).await.expect("they are given");
        let sent = rig.click(&rig.id("button \"Send\"").await).await.expect("it is sent");
        assert_eq!(sent.result["title"], "Thanks", "{sent:?}");
        let sent = site.asked().into_iter().find(|asked| asked.starts_with("/sent")).expect("a form");
        assert_eq!(sent.matches("filename=\"a.txt\"").count(), 2, "{sent}");
        assert_eq!((sent.matches("the first one").count(), sent.matches("the second one").count()), (2, 1), "{sent}");
        let audit = format!("{:?}", rig.host.audit());
        assert!(audit.contains("upload `a.txt` (13 bytes), `b.txt` (14 bytes) to button"), "{audit}");
        // They go with the browser.
        assert_eq!(copies(&rig).len(), 3);
        rig.output("browser_close", json!({})).await.expect("it closes");
        eventually("they are gone", || copies(&rig).is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_held_to_what_may_be_read_and_sent() {
    each("uploads", async |rig| {
        let rig = rig.set(GRANTED);
        let site = Site::new(&[("/", html(FORM))]);
        let home = rig.host.home();
        std::fs::create_dir_all(home.join(".ssh")).expect("a directory");
        std::fs::write(home.join(".ssh/id_ed25519"), "a key").expect("a file");
        std::fs::write(rig.host.work().join("large"), vec![b'x'; (25 << 20) + 1]).expect("a file");
        std::os::unix::fs::symlink(home.join(".ssh/id_ed25519"), rig.host.work().join("link.txt")).expect("a link");
        rig.go(&site.url("/")).await;
        let one = rig.id("button \"One\"").await;
        for (path, kind) in [
            ("~/.ssh/id_ed25519", Kind::Denied),
            ("link.txt", Kind::Denied),
            ("large", Kind::Limit),
            (".", Kind::InvalidArguments),
            ("missing", Kind::ExecutionFailed),
        ] {
            let failure = upload(&rig, &one, &[path]).await.unwrap_err();
            assert_eq!(failure.kind, kind, "{path}: {failure:?}");
        }
        assert!(copies(&rig).is_empty());
        // Nine.
        let failure = upload(&rig, &one, &["large"; 9]).await.unwrap_err();
        assert_eq!(failure.kind, Kind::InvalidArguments, "{failure:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_secret_stays_here() {
    each("uploads", async |rig| {
        let (secret, place) = ("tr0ub4dor-and-more", rig.host.home().join("token"));
        std::fs::write(&place, secret).expect("a file");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        let rig = rig.set(GRANTED).set(&format!("secret.TOKEN.file={:?}", place.display().to_string()));
        let rig = rig.set("secret.TOKEN.hosts=[\"shop.example.com\"]");
        let site = Site::new(&[("/", html(FORM))]);
        file(&rig, "a.txt", &format!("export TOKEN={secret}"));
        rig.go(&site.url("/")).await;
        let failure = upload(&rig, &rig.id("button \"One\"").await, &["a.txt"]).await.unwrap_err();
        assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
        assert!(copies(&rig).is_empty());
    })
    .await;
}

/// Most sites hide the field itself.
#[tokio::test(flavor = "multi_thread")]
async fn what_opens_the_choice_of_files_gets_them_too() {
    each("uploads", async |rig| {
        let rig = rig.set(GRANTED);
        let page = "<title>Start</title><input type=file id=picker style='display:none' onchange='document.title = this.files[0].name'>\
            <button onclick='picker.click()'>Choose</button><label for=picker>Labelled</label><button>Nothing</button>\
            <button onclick='frames[0].document.querySelector(\"input\").click()'>Elsewhere</button><iframe src=/frame></iframe>";
        let frame = html("<input type=file onchange='parent.document.title = \"taken\"'>");
        let site = Site::new(&[("/", html(page)), ("/frame", frame)]);
        file(&rig, "a.txt", "content");
        file(&rig, "b.txt", "content");
        rig.go(&site.url("/")).await;
        let given = upload(&rig, &rig.id("button \"Choose\"").await, &["a.txt"]).await.expect("it is given");
        assert_eq!(given.result["title"], "a.txt", "{given:?}");
        // A press without files is told, and chooses none.
        let clicked = rig.click(&rig.id("button \"Choose\"").await).await.expect("a click");
        let told = "the page asked for a file and got none: upload one to what was clicked";
        assert!(clicked.notices.iter().any(|notice| notice == told), "{clicked:?}");
        let failure = upload(&rig, &rig.id("button \"Nothing\"").await, &["b.txt"]).await.unwrap_err();
        assert!(failure.message.ends_with("was clicked, and the page asked for no file"), "{failure:?}");
        let failure = upload(&rig, &rig.id("button \"Elsewhere\"").await, &["b.txt"]).await.unwrap_err();
        assert!(failure.message.ends_with("was clicked, and another frame asked for files"), "{failure:?}");
        let title = rig.output("browser_tab_list", json!({})).await.expect("tabs").result["tabs"][0]["title"].clone();
        assert_eq!(title, "a.txt");
    })
    .await;
}
