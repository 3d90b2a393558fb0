//! What settings say of what is held.

use super::{above, assert_held, is_there};
use crate::rig::{BOTH, REQUIRED, Rig, Via, program};
use toolcrib_tests::shell::command;

#[test]
fn settings_say_what_is_held() {
    for (settings, held) in [
        (&["confine.held=none"][..], &[][..]),
        (&["confine.held=opens"], &[".envrc"]),
        (&[], &[".envrc", "CLAUDE.md"]),
        (&["confine.held=all"], &[".envrc", ".npmrc", "CLAUDE.md"]),
        (&["confine.keep=[\"CLAUDE.md\"]"], &[".envrc"]),
        (&["confine.keep=[\".envrc\"]", "confine.held=all"], &[".npmrc", "CLAUDE.md"]),
    ] {
        for via in BOTH {
            let mut rig = Rig::with(via, settings);
            let notices = rig.notices("for f in .envrc CLAUDE.md .npmrc; do echo made >$f; done");
            for name in [".envrc", "CLAUDE.md", ".npmrc"] {
                if held.contains(&name) {
                    assert_held(&rig, name, &notices, &format!("{via:?} {settings:?}"));
                } else {
                    assert!(is_there(&rig.work(name)), "{via:?} {settings:?} {name}: {notices}");
                    assert!(notices.contains(&format!("`{name}` was created: ")), "{via:?} {settings:?}: {notices}");
                }
            }
            assert_eq!(rig.held().len(), held.len(), "{via:?} {settings:?}: {notices}");
        }
    }
}

/// A name under `protect` is held, whatever the table says of it.
#[test]
fn what_settings_protect_is_held() {
    for via in BOTH {
        let mut rig = Rig::with(via, &["confine.protect=[\"deploy.sh\", \".npmrc\"]"]);
        for name in ["deploy.sh", "sub/.npmrc"] {
            let notices = rig.notices(&format!("mkdir -p {}; echo made >{name}", above(name)));
            assert_held(&rig, name, &notices, &format!("{via:?}"));
        }
    }
}

/// A project's own settings make it stricter, and nothing else.
#[test]
fn a_projects_settings_hold_more_and_never_less() {
    let call = |settings: &str| {
        let program = program(Via::Process);
        program.write("work/toolcrib.toml", settings);
        let arguments = command("for f in .envrc CLAUDE.md .npmrc; do echo made >$f; done").to_string();
        let (_, envelope) = program.call(&["--yes", "--set", REQUIRED, "run_shell", &arguments]);
        let there: Vec<&str> = [".envrc", "CLAUDE.md", ".npmrc"]
            .into_iter()
            .filter(|name| is_there(&program.path("work").join(name)))
            .collect();
        (there.join(" "), envelope.to_string())
    };
    for (settings, there) in [
        ("", ".npmrc"),
        ("[confine]\nheld = \"none\"\n", ".npmrc"),
        ("[confine]\nheld = \"opens\"\n", ".npmrc"),
        ("[confine]\nkeep = [\".envrc\", \"CLAUDE.md\"]\n", ".npmrc"),
        ("[confine]\nheld = \"all\"\n", ""),
    ] {
        let (found, envelope) = call(settings);
        let is_refused = envelope.contains("can only narrow");
        assert!(is_refused || found == there, "{settings}: {found}: {envelope}");
        assert!(!is_refused || found.is_empty(), "{settings}: {found}: {envelope}");
    }
}
