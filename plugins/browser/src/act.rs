//! `browser_click`, `browser_type`, `browser_press_key`, `browser_select`, `browser_upload` and `browser_hover`: acts on elements of a page.

use crate::arguments::{dialogs, element, entry};
use crate::shown::Shown;
use serde::Deserialize;
use serde_json::json;
use toolcrib_sdk::browser::{self, Action, Effect};
use toolcrib_sdk::files::{self, EntryKind};
use toolcrib_sdk::{Captured, Failure, Guidance, JsonSchema, Result, Tool, schemars};

pub(crate) struct BrowserClick;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClickInput {
    /// Element id.
    pub(crate) element: String,
    /// Double-click.
    pub(crate) double: Option<bool>,
    /// Accept dialogs that open; default: dismiss them.
    pub(crate) accept_dialogs: Option<bool>,
    /// Answer to a prompt dialog.
    pub(crate) prompt_text: Option<String>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserClick {
    const NAME: &str = "browser_click";
    const TITLE: Option<&str> = Some("Click an element");
    const SUMMARY: &str = "Click an element of the page and return what changed.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To follow a link, press a button or open a menu.",
        when_not_to_use: "To enter text: use `browser_type`. For a list or box: use `browser_select`.",
        disambiguation: "`busy` means that nothing was clicked: take a new `browser_snapshot`.",
        examples: &[r#"{"element":"e17"}"#],
    };
    type Input = ClickInput;
    type Output = Shown;

    fn call(ClickInput { element: given, double, accept_dialogs, prompt_text, tab }: ClickInput) -> Result<Shown> {
        let element = element("element", &given)?;
        let dialogs = dialogs(accept_dialogs, prompt_text)?;
        let action = if double.unwrap_or(false) { Action::DoubleClick } else { Action::Click };
        browser::act(tab.as_deref(), Some(&element), &action, dialogs.as_ref()).map(Shown::of)
    }
}

pub(crate) struct BrowserType;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypeInput {
    /// Id of the field.
    pub(crate) element: String,
    /// New content; empty to clear the field.
    pub(crate) text: Option<String>,
    /// Name of a secret, instead of `text`.
    pub(crate) secret: Option<String>,
    /// Press Enter afterwards.
    pub(crate) submit: Option<bool>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserType {
    const NAME: &str = "browser_type";
    const TITLE: Option<&str> = Some("Fill in a field");
    const SUMMARY: &str = "Replace the content of a field with a text or a secret.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "To fill in a form or a search.",
        when_not_to_use: "To press single keys: use `browser_press_key`.",
        disambiguation: "For a password use `secret`, never `text`.",
        examples: &[
            r#"{"element":"e4","text":"desk lamp","submit":true}"#,
            r#"{"element":"e6","secret":"SHOP_PASSWORD"}"#,
        ],
    };
    type Input = TypeInput;
    type Output = Shown;

    fn call(TypeInput { element: given, text, secret, submit, tab }: TypeInput) -> Result<Shown> {
        let (tab, element) = (tab.as_deref(), element("element", &given)?);
        let filled = browser::act(tab, Some(&element), &Action::Fill(entry(text, secret)?), None)?;
        if !submit.unwrap_or(false) {
            return Ok(Shown::of(filled));
        }
        // Where the field is: what filled it may have opened another tab.
        let entered = browser::act(Some(&filled.tab), Some(&element), &Action::Press("Enter".into()), None);
        entered.map(|entered| Shown::of(both(filled, entered))).map_err(|failure| match failure.data {
            None => failure.data(&json!({ "filled": element })),
            Some(_) => failure,
        })
    }
}

/// Returns the effect of two acts in a row. Where the second shows no changes, another page may be there: those of the first are of the past.
fn both(first: Effect, second: Effect) -> Effect {
    let notices = first.notices.into_iter().chain(second.notices).collect();
    let changes = match (first.changes, second.changes) {
        (before, after) if before.text.is_empty() || after.text.is_empty() => after,
        (before, after) => Captured {
            text: format!("{}\n{}", before.text.trim_end_matches('\n'), after.text),
            bytes: before.bytes + after.bytes,
            truncated: before.truncated || after.truncated,
            stored: after.stored.or(before.stored),
        },
    };
    Effect { notices, changes, ..second }
}

pub(crate) struct BrowserPressKey;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PressKeyInput {
    /// Such as `Enter`, `ArrowDown`, `a`, `Control+a`.
    pub(crate) key: String,
    /// Element that gets the key; default: the focused one.
    pub(crate) element: Option<String>,
    /// Accept dialogs that open; default: dismiss them.
    pub(crate) accept_dialogs: Option<bool>,
    /// Answer to a prompt dialog.
    pub(crate) prompt_text: Option<String>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserPressKey {
    const NAME: &str = "browser_press_key";
    const TITLE: Option<&str> = Some("Press a key");
    const SUMMARY: &str = "Press a key in the page.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "For Enter, Escape, Tab, arrow keys and shortcuts.",
        when_not_to_use: "To enter text: use `browser_type`.",
        disambiguation: "",
        examples: &[r#"{"key":"Escape"}"#],
    };
    type Input = PressKeyInput;
    type Output = Shown;

    fn call(PressKeyInput { key, element: given, accept_dialogs, prompt_text, tab }: PressKeyInput) -> Result<Shown> {
        if key.is_empty() {
            return Err(Failure::invalid("`key` is empty").hint("give a key, such as `Enter`"));
        }
        let element = given.as_deref().map(|given| element("element", given)).transpose()?;
        let dialogs = dialogs(accept_dialogs, prompt_text)?;
        browser::act(tab.as_deref(), element.as_deref(), &Action::Press(key), dialogs.as_ref()).map(Shown::of)
    }
}

pub(crate) struct BrowserSelect;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SelectInput {
    /// Id of the list, box or switch.
    pub(crate) element: String,
    /// Texts of the options.
    pub(crate) options: Option<Vec<String>>,
    /// Whether the box or switch should be on.
    pub(crate) checked: Option<bool>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserSelect {
    const NAME: &str = "browser_select";
    const TITLE: Option<&str> = Some("Choose from a list");
    const SUMMARY: &str = "Choose options of a list, or set a box or switch.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A form has a list, check box, radio button or switch.",
        when_not_to_use: "To choose from a menu that opens on a click: use `browser_click`.",
        disambiguation: "Give `options` for a list, or `checked` for a box or switch.",
        examples: &[r#"{"element":"e8","options":["Germany"]}"#, r#"{"element":"e9","checked":true}"#],
    };
    type Input = SelectInput;
    type Output = Shown;

    fn call(SelectInput { element: given, options, checked, tab }: SelectInput) -> Result<Shown> {
        let element = element("element", &given)?;
        let action = match (options, checked) {
            (Some(options), None) => Action::Select(options),
            (None, Some(checked)) => Action::Check(checked),
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("both `options` and `checked` are given").hint("omit one of them"));
            }
            (None, None) => {
                return Err(Failure::invalid("neither `options` nor `checked` is given")
                    .hint("give `options` for a list, `checked` for a box or a switch"));
            }
        };
        browser::act(tab.as_deref(), Some(&element), &action, None).map(Shown::of)
    }
}

pub(crate) struct BrowserUpload;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadInput {
    /// Id of the file field, or of what opens it.
    pub(crate) element: String,
    /// At most 8 paths: absolute, `~/…`, or relative to the working directory.
    pub(crate) files: Vec<String>,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserUpload {
    const NAME: &str = "browser_upload";
    const TITLE: Option<&str> = Some("Upload files");
    const SUMMARY: &str = "Give files to a page, at most 25 MiB at once.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A form takes a file.",
        when_not_to_use: "",
        disambiguation: "The page gets the files before a form is sent. Settings may deny it.",
        examples: &[r#"{"element":"e9","files":["report.pdf"]}"#],
    };
    type Input = UploadInput;
    type Output = Shown;

    fn call(UploadInput { element: given, files, tab }: UploadInput) -> Result<Shown> {
        let element = element("element", &given)?;
        if files.is_empty() {
            return Err(Failure::invalid("`files` is empty").hint("name the files to upload"));
        }
        for path in &files {
            match files::stat(path)?.kind {
                EntryKind::File => {}
                EntryKind::Directory | EntryKind::Link | EntryKind::Other => {
                    return Err(Failure::invalid(format!("`{path}` is not a regular file")).hint("name files alone"));
                }
            }
        }
        browser::act(tab.as_deref(), Some(&element), &Action::Upload(files), None).map(Shown::of)
    }
}

pub(crate) struct BrowserHover;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HoverInput {
    /// Element id.
    pub(crate) element: String,
    /// Default: the active tab.
    pub(crate) tab: Option<String>,
}

impl Tool for BrowserHover {
    const NAME: &str = "browser_hover";
    const TITLE: Option<&str> = Some("Point at an element");
    const SUMMARY: &str = "Move the pointer over an element and return what appears.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A menu or hint appears only under the pointer.",
        when_not_to_use: "Before a click: `browser_click` moves the pointer itself.",
        disambiguation: "",
        examples: &[r#"{"element":"e3"}"#],
    };
    type Input = HoverInput;
    type Output = Shown;

    fn call(HoverInput { element: given, tab }: HoverInput) -> Result<Shown> {
        browser::act(tab.as_deref(), Some(&element("element", &given)?), &Action::Hover, None).map(Shown::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::{effect, refused};
    use toolcrib_sdk::Kind;
    use toolcrib_sdk::testing::{Host, Value};

    /// Calls a tool, and returns what the host was asked to do.
    fn acted<T: Tool>(arguments: Value) -> Value {
        let host = Host::new().plays("browser.act", effect("https://example.com/", "text \"Done\""));
        let shown = json!({ "tab": "t1", "url": "https://example.com/", "title": "Shop", "changes": "text \"Done\"" });
        assert_eq!(host.call::<T>(arguments), Ok(shown));
        assert_eq!(host.notices(), ["a dialog was dismissed"]);
        host.calls().remove(0).arguments
    }

    #[test]
    fn an_element_is_clicked_and_dialogs_are_answered_as_was_said() {
        assert_eq!(acted::<BrowserClick>(json!({ "element": "[e7]" })), json!({ "element": "e7", "action": "click" }));
        let arguments = json!({ "element": "7", "double": true, "prompt_text": "5", "tab": "t2" });
        let answered = json!({ "accept": true, "text": "5" });
        let called = json!({ "tab": "t2", "element": "e7", "action": "double-click", "dialogs": answered });
        assert_eq!(acted::<BrowserClick>(arguments), called);
        let odd = json!({ "element": "e7", "accept_dialogs": false, "prompt_text": "5" });
        refused::<BrowserClick>(odd, "omit it, or set `accept_dialogs` to true");
        refused::<BrowserClick>(json!({ "element": "" }), "give an id that a snapshot shows, such as `e17`");
    }

    #[test]
    fn an_element_that_is_gone_is_told_as_the_host_tells_it() {
        let gone = Failure::new(Kind::BUSY, "`e7` is gone").hint("take another snapshot");
        for call in [
            |host: &Host| host.call::<BrowserClick>(json!({ "element": "e7" })),
            |host: &Host| host.call::<BrowserType>(json!({ "element": "e7", "text": "a", "submit": true })),
            |host: &Host| host.call::<BrowserPressKey>(json!({ "element": "e7", "key": "a" })),
            |host: &Host| host.call::<BrowserSelect>(json!({ "element": "e7", "checked": true })),
            |host: &Host| host.call::<BrowserHover>(json!({ "element": "e7" })),
        ] {
            let host = Host::new().fails("browser.act", gone.clone());
            assert_eq!(call(&host), Err(gone.clone()));
            assert_eq!(host.calls().len(), 1);
        }
    }

    #[test]
    fn a_field_gets_a_text_or_a_secret_by_its_name() {
        let called = |entry: Value| json!({ "element": "e4", "action": { "fill": entry } });
        let text = acted::<BrowserType>(json!({ "element": "e4", "text": "" }));
        assert_eq!(text, called(json!({ "text": "" })));
        let secret = acted::<BrowserType>(json!({ "element": "e4", "secret": "SHOP" }));
        assert_eq!(secret, called(json!({ "secret": "SHOP" })));
        refused::<BrowserType>(json!({ "element": "e4", "text": "a", "secret": "SHOP" }), "omit one of them");
        let hint = "give what to enter as `text`, or the name of a secret as `secret`";
        refused::<BrowserType>(json!({ "element": "e4", "submit": true }), hint);
    }

    #[test]
    fn enter_is_pressed_where_the_text_was_entered() {
        let typed = |first: &str, second: &str| {
            let host = Host::new()
                .plays("browser.act", effect("https://example.com/", first))
                .with(json!({ "action": { "fill": { "text": "lamp" } } }))
                .plays("browser.act", effect("https://example.com/search", second))
                .with(json!({ "tab": "t1", "element": "e4", "action": { "press": "Enter" } }));
            let shown = host.call::<BrowserType>(json!({ "element": "e4", "text": "lamp", "submit": true })).unwrap();
            assert_eq!((&shown["url"], host.notices().len()), (&json!("https://example.com/search"), 2));
            shown["changes"].clone()
        };
        assert_eq!(
            typed("[e4] searchbox: lamp\n", "text \"Nothing found\""),
            "[e4] searchbox: lamp\ntext \"Nothing found\""
        );
        assert_eq!(typed("[e4] searchbox: lamp", ""), Value::Null);
        assert_eq!(typed("", "text \"Nothing found\""), "text \"Nothing found\"");
    }

    #[test]
    fn a_field_that_was_filled_is_told_where_enter_fails() {
        let fails = |failure: Failure| {
            let host = Host::new().plays("browser.act", effect("", "")).fails("browser.act", failure);
            host.call::<BrowserType>(json!({ "element": "e4", "text": "a", "submit": true })).unwrap_err()
        };
        let covered = Failure::new(Kind::BUSY, "`e4` is covered by `e9`");
        assert_eq!(fails(covered.clone()), covered.clone().data(&json!({ "filled": "e4" })));
        let with_data = covered.data(&json!({ "cover": "e9" }));
        assert_eq!(fails(with_data.clone()), with_data);
    }

    #[test]
    fn changes_of_two_acts_that_were_cut_stay_marked() {
        let effect = |text: &str, truncated| Effect {
            tab: "t1".into(),
            url: String::new(),
            title: String::new(),
            notices: Vec::new(),
            changes: Captured { text: text.into(), bytes: 5, truncated, stored: truncated.then(|| text.into()) },
        };
        let changes = both(effect("a", true), effect("b", false)).changes;
        assert_eq!((changes.text.as_str(), changes.bytes, changes.truncated), ("a\nb", 10, true));
        assert_eq!(changes.stored.as_deref(), Some("a"));
    }

    #[test]
    fn a_key_goes_to_an_element_or_to_the_focus() {
        let called = json!({ "action": { "press": "Control+a" } });
        assert_eq!(acted::<BrowserPressKey>(json!({ "key": "Control+a" })), called);
        let arguments = json!({ "key": " ", "element": "e5", "accept_dialogs": true, "tab": "t2" });
        let called = json!({ "tab": "t2", "element": "e5", "action": { "press": " " }, "dialogs": { "accept": true } });
        assert_eq!(acted::<BrowserPressKey>(arguments), called);
        refused::<BrowserPressKey>(json!({ "key": "" }), "give a key, such as `Enter`");
    }

    #[test]
    fn a_list_gets_options_and_a_box_is_set() {
        let select = acted::<BrowserSelect>(json!({ "element": "e8", "options": ["a", "b"], "tab": "t2" }));
        assert_eq!(select, json!({ "tab": "t2", "element": "e8", "action": { "select": ["a", "b"] } }));
        let check = acted::<BrowserSelect>(json!({ "element": "e9", "checked": false }));
        assert_eq!(check, json!({ "element": "e9", "action": { "check": false } }));
        refused::<BrowserSelect>(json!({ "element": "e8", "options": [], "checked": true }), "omit one of them");
        let hint = "give `options` for a list, `checked` for a box or a switch";
        refused::<BrowserSelect>(json!({ "element": "e8" }), hint);
    }

    #[test]
    fn files_are_given_and_nothing_else() {
        let entry = |kind: &str| json!({ "name": "a.txt", "kind": kind, "size": 5 });
        let host = Host::new()
            .plays("files.stat", entry("file"))
            .plays("browser.act", effect("https://example.com/", "text \"a.txt\""));
        assert!(host.call::<BrowserUpload>(json!({ "element": "e9", "files": ["a.txt"] })).is_ok());
        let called = json!({ "element": "e9", "action": { "upload": ["a.txt"] } });
        assert_eq!(host.calls().pop().map(|call| call.arguments), Some(called));
        let host = Host::new().plays("files.stat", entry("directory"));
        let failure = host.call::<BrowserUpload>(json!({ "element": "e9", "files": ["a.txt"] })).unwrap_err();
        assert_eq!((failure.message.as_str(), host.calls().len()), ("`a.txt` is not a regular file", 1));
        refused::<BrowserUpload>(json!({ "element": "e9", "files": [] }), "name the files to upload");
    }

    #[test]
    fn the_pointer_is_moved() {
        let called = json!({ "element": "e3", "action": "hover", "tab": "t2" });
        assert_eq!(acted::<BrowserHover>(json!({ "element": "e3", "tab": "t2" })), called);
    }
}
