//! Acts: on the element that was shown, or on none.

use crate::rig::{COUNTED, Page, Site, each, file, html};
use serde_json::json;
use std::time::Duration;
use toolcrib::envelope::Kind;
use toolcrib_tests::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_field_in_a_closed_shadow_root_takes_text() {
    each("closed shadow roots", async |rig| {
        let page = "<title>none</title><div id=outer></div><script>\
            const inner = document.createElement('div'); outer.attachShadow({mode: 'closed'}).append(inner);\
            const root = inner.attachShadow({mode: 'closed'}); root.innerHTML = '<input aria-label=Name>';\
            root.firstChild.oninput = event => document.title = event.target.value;</script>";
        let site = Site::new(&[("/", html(page))]);
        rig.go(&site.url("/")).await;
        let name = rig.id("textbox \"Name\"").await;
        let typed = json!({ "element": name, "text": "zoe" });
        rig.output("browser_type", typed).await.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(rig.title().await, "zoe");
    })
    .await;
}

/// Case 4: after it was drawn anew, removed, or its page left, an old id hits nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_id_hits_nothing() {
    each("old ids", async |rig| {
        let page = format!(
            "{COUNTED}<div id=box><button onclick=\"pressed('Pay')\">Pay</button><button onclick=\"pressed('Drop')\">Drop</button></div>\
             <button onclick=\"box.innerHTML=box.innerHTML\">Draw anew</button><button onclick=\"box.lastChild.remove()\">Remove</button>"
        );
        let site = Site::new(&[("/", html(&page)), ("/other", html("<title>Other</title><button>Pay</button>"))]);
        rig.go(&site.url("/")).await;
        let (pay, gone) = (rig.id("button \"Pay\"").await, rig.id("button \"Drop\"").await);
        rig.click(&rig.id("button \"Remove\"").await).await.expect("a click");
        let (anew, refused) = (rig.id("button \"Draw anew\"").await, rig.click(&gone).await.expect_err("it is removed"));
        assert_eq!((refused.kind, refused.hint.as_deref()), (Kind::Busy, Some("look at the page again")), "{refused:?}");
        rig.click(&anew).await.expect("a click");
        let refused = rig.click(&pay).await.expect_err("it is another one");
        assert_eq!(refused.kind, Kind::Busy, "{refused:?}");
        assert_eq!(rig.title().await, "none");
        let pay = rig.id("button \"Pay\"").await;
        rig.go(&site.url("/other")).await;
        let refused = rig.click(&pay).await.expect_err("it is of another page");
        assert_eq!((refused.kind, rig.title().await.as_str()), (Kind::Busy, "Other"), "{refused:?}");
        rig.go(&site.url("/")).await;
        let refused = rig.click(&pay).await.expect_err("it was of the page before");
        assert_eq!((refused.kind, rig.title().await.as_str()), (Kind::Busy, "none"), "{refused:?}");
    })
    .await;
}

/// Cases 6 and 7.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_covered_renamed_or_disabled_is_not_clicked() {
    each("covered", async |rig| {
        let page = format!(
            "{COUNTED}<button id=a onclick=\"pressed('A')\">Cancel</button><button id=b onclick=\"pressed('B')\">Covered</button>\
             <button id=c disabled>Off</button>\
             <script>setTimeout(() => {{ a.textContent = 'Buy'; fetch('/renamed') }}, 10000);</script>\
             <dialog id=d aria-label=Offer><button>Take it</button></dialog><button onclick=\"d.showModal()\">Offer</button>"
        );
        let site = Site::new(&[("/", html(&page))]);
        rig.go(&site.url("/")).await;
        let (cancel, covered) = (rig.id("button \"Cancel\"").await, rig.id("button \"Covered\"").await);
        let off = rig.click(&rig.id("button \"Off\"").await).await.expect_err("it is disabled");
        assert!(off.kind == Kind::Busy && off.message.contains("disabled"), "{off:?}");
        // Nobody has looked since: what an act says of the page counts as a look.
        eventually("the button is renamed", || site.asked().contains(&"/renamed".to_owned()));
        let renamed = rig.click(&cancel).await.expect_err("it has another name");
        assert!(renamed.kind == Kind::Busy && renamed.message.contains("button \"Buy\" now"), "{renamed:?}");
        rig.click(&rig.id("button \"Offer\"").await).await.expect("a click");
        let refused = rig.click(&covered).await.expect_err("it is covered");
        assert_eq!(refused.kind, Kind::Busy, "{refused:?}");
        assert_eq!(rig.title().await, "none");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_covers_is_named() {
    each("cover", async |rig| {
        let page = format!(
            "{COUNTED}<button onclick=\"pressed('A')\">Under</button>\
             <div role=dialog aria-label=Cookies style=\"position:fixed;inset:0;z-index:9;opacity:0.5;background:red\">We use</div>"
        );
        let site = Site::new(&[("/", html(&page))]);
        rig.go(&site.url("/")).await;
        let refused = rig.click(&rig.id("button \"Under\"").await).await.expect_err("it is covered");
        assert!(refused.kind == Kind::Busy && refused.message.contains("covered by dialog \"Cookies\""), "{refused:?}");
        assert_eq!(rig.title().await, "none");
    })
    .await;
}

/// Case 8.
#[tokio::test(flavor = "multi_thread")]
async fn enter_submits_and_text_arrives_whole() {
    each("typing", async |rig| {
        let form = "<title>Form</title><form action=/done><label>Name <input name=n value=old></label><label>Note <textarea name=t></textarea></label></form>";
        let site = Site::new(&[("/", html(form)), ("/done", html("<title>Done</title>"))]);
        rig.go(&site.url("/")).await;
        let (name, note) = (rig.id("textbox \"Name\"").await, rig.id("textbox \"Note\"").await);
        rig.fill(&note, "a\nb").await.expect("a text");
        rig.fill(&name, "Zo\u{eb} \u{6f22} \u{1f469}\u{200d}\u{1f680}").await.expect("a text");
        let there = rig.output("browser_press_key", json!({ "key": "Enter", "element": name })).await.expect("a key");
        assert_eq!(there.result["title"], "Done", "{there:?}");
        let asked = site.asked().pop().expect("a request");
        assert_eq!(asked, "/done?n=Zo%C3%AB+%E6%BC%A2+%F0%9F%91%A9%E2%80%8D%F0%9F%9A%80&t=a%0D%0Ab");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_boxes_are_set() {
    each("lists", async |rig| {
        let form = "<title>Form</title><form action=/done><label>City <select name=c><option>Bonn<option value=k>K\u{f6}ln</select></label>\
            <label><input type=checkbox name=a> Agree</label><button>Go</button></form>";
        let site = Site::new(&[("/", html(form)), ("/done", html("<title>Done</title>"))]);
        rig.go(&site.url("/")).await;
        let (city, agree) = (rig.id("combobox \"City\"").await, rig.id("checkbox \"Agree\"").await);
        let missing = rig.output("browser_select", json!({ "element": city, "options": ["Ulm"] })).await;
        let missing = missing.expect_err("there is no such option");
        assert!(missing.kind == Kind::InvalidArguments && missing.message.contains("\"Bonn\", \"K\u{f6}ln\""), "{missing:?}");
        rig.output("browser_select", json!({ "element": city, "options": ["K\u{f6}ln"] })).await.expect("an option");
        for _ in 0..2 {
            rig.output("browser_select", json!({ "element": agree, "checked": true })).await.expect("a box");
        }
        let there = rig.click(&rig.id("button \"Go\"").await).await.expect("a click");
        assert_eq!(there.result["title"], "Done", "{there:?}");
        assert_eq!(site.asked().pop().as_deref(), Some("/done?c=k&a=on"));
    })
    .await;
}

/// Case 13.
#[tokio::test(flavor = "multi_thread")]
async fn dialogs_are_answered_and_told() {
    each("dialogs", async |rig| {
        let page = "<title>Start</title><button onclick=\"alert('hear!')\">alert</button><button onclick=\"document.title='c'+confirm('sure?')\">confirm</button>\
            <button onclick=\"document.title='p'+prompt('who?')\">prompt</button>\
            <button onclick=\"onbeforeunload=e=>e.preventDefault(); location='/done'\">leave</button>";
        let site = Site::new(&[("/", html(page)), ("/done", html("<title>Done</title>"))]);
        rig.go(&site.url("/")).await;
        for (button, arguments, told, title) in [
            ("alert", json!({}), "a dialog (alert, accepted) says: hear!", "Start"),
            ("confirm", json!({}), "a dialog (confirm, dismissed) says: sure?", "cfalse"),
            ("confirm", json!({ "accept_dialogs": true }), "a dialog (confirm, accepted) says: sure?", "ctrue"),
            ("prompt", json!({}), "a dialog (prompt, dismissed) says: who?", "pnull"),
            ("leave", json!({}), "a dialog (beforeunload, accepted)", "Done"),
        ] {
            let mut arguments = arguments;
            arguments["element"] = json!(rig.id(&format!("button \"{button}\"")).await);
            let clicked = rig.output("browser_click", arguments).await.unwrap_or_else(|failure| panic!("{button}: {failure:?}"));
            assert!(clicked.notices.iter().any(|notice| notice.starts_with(told)), "{button}: {clicked:?}");
            assert_eq!(clicked.result["title"], title, "{clicked:?}");
        }
    })
    .await;
}

/// Case 14.
#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_a_page_opens_is_there() {
    each("tabs", async |rig| {
        let page = "<title>Start</title><button onclick=\"window.open('/own')\">one</button>";
        let site = Site::new(&[("/", html(page)), ("/own", html("<title>Own</title><p>here</p>"))]);
        rig.go(&site.url("/")).await;
        let clicked = rig.click(&rig.id("button \"one\"").await).await.expect("a click");
        assert!(clicked.notices.iter().any(|notice| notice.contains("opened the tab t2")), "{clicked:?}");
        assert_eq!(clicked.result["tab"], "t1", "{clicked:?}");
        // It is there before its page is.
        let shows = json!({ "tab": "t2", "text": "here", "timeout": "30s" });
        rig.output("browser_wait", shows).await.expect("the page that was opened");
        let chosen = rig.output("browser_tab_select", json!({ "tab": "t2" })).await.expect("a tab");
        assert_eq!(chosen.result["title"], "Own", "{chosen:?}");
        assert!(rig.page().await.contains("here"));
        rig.output("browser_tab_close", json!({ "tab": "t2" })).await.expect("a tab that is closed");
        let gone = rig.output("browser_snapshot", json!({ "tab": "t2" })).await.expect_err("it is closed");
        assert_eq!(gone.kind, Kind::Unavailable, "{gone:?}");
    })
    .await;
}

/// Case 15: a prompt for a password is dismissed, and its page is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_for_a_password_is_dismissed() {
    each("prompts", async |rig| {
        let closed = Page {
            status: 401,
            headers: vec![("www-authenticate", "Basic realm=x".into())],
            ..html("<title>Closed</title>")
        };
        let site = Site::new(&[("/", closed), ("/next", html("<title>Next</title>"))]);
        let there = rig.go(&site.url("/")).await;
        assert_eq!(there.result["title"], "Closed", "{there:?}");
        assert_eq!(rig.go(&site.url("/next")).await.result["title"], "Next");
    })
    .await;
}

/// Case 16, as long as nothing grants one.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_refused_and_told() {
    each("downloads", async |rig| {
        let site = Site::new(&[
            ("/", html("<title>Start</title><a href=/a.bin>load</a>")),
            ("/a.bin", file("a.bin", "x".repeat(1000))),
        ]);
        rig.go(&site.url("/")).await;
        // It may begin after the click is over.
        let mut notices = rig.click(&rig.id("link \"load\"").await).await.expect("a click").notices;
        rig.told(&mut notices, "a download of `a.bin`").await;
        let refused = rig.refused(&site.url("/a.bin")).await;
        assert!(refused.hint.is_some_and(|hint| hint.contains("`browser.downloads = true`")), "{}", refused.message);
        let state = rig.host.dirs().state;
        assert!(!toolcrib_tests_find(&state, "a.bin"), "a file was stored");
    })
    .await;
}

/// Case 16: where they are granted they are kept, up to a size, and can be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_is_granted_is_kept() {
    each("downloads", async |rig| {
        let rig = rig.set("plugin.browser.browser.downloads=true");
        let site = Site::new(&[
            ("/", html("<title>Start</title><a href=/a.txt>small</a>")),
            ("/a.txt", file("a.txt", "what is in it".into())),
        ]);
        rig.go(&site.url("/")).await;
        let mut notices = rig.click(&rig.id("link \"small\"").await).await.expect("a click").notices;
        let told = rig.told(&mut notices, "was downloaded: 13 bytes at ").await;
        let (_, path) = told.rsplit_once(" at ").expect("a path");
        let read = rig.output("read_file", json!({ "path": path })).await.expect("it is kept");
        assert!(read.result.to_string().contains("what is in it"), "{read:?}");
        // By its address; the tab stays where it is.
        let went = rig.go(&site.url("/a.txt")).await;
        assert!(went.notices.iter().any(|notice| notice.contains("13 bytes at ")), "{went:?}");
        assert_eq!(went.result["title"], "Start", "{went:?}");
        assert_eq!(rig.downloads(), [] as [u64; 0], "something stays with the browser");
        assert!(format!("{:?}", rig.host.audit()).contains("download `"), "{:?}", rig.host.audit());
    })
    .await;
}

/// Whether a directory holds a file of this name, however deep.
fn toolcrib_tests_find(directory: &std::path::Path, name: &str) -> bool {
    std::fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        entry.file_name().to_string_lossy().contains(name)
            || entry.file_type().is_ok_and(|kind| kind.is_dir()) && toolcrib_tests_find(&entry.path(), name)
    })
}

/// Case 20.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_ends_loading_is_shown_as_far_as_it_came() {
    each("never", async |rig| {
        let slow = Page { delay: Duration::from_secs(60), ..Page::default() };
        let site = Site::new(&[("/", html("<title>Slow</title><p>first</p><img src=/never>")), ("/never", slow)]);
        let there = rig.go(&site.url("/")).await;
        assert!(there.notices.iter().any(|notice| notice.contains("did not end loading within 30 s")), "{there:?}");
        // It is what was asked for: the tab is not taken from it.
        assert_eq!((&there.result["tab"], site.asked().len()), (&json!("t1"), 2), "{there:?} {:?}", site.asked());
        assert!(rig.page().await.contains("first"));
    })
    .await;
}
