//! `toolcrib store`: looking at what plugins keep, and copying it.

use std::os::unix::fs::{FileExt, PermissionsExt};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};

#[test]
fn a_store_is_looked_at_and_copied() {
    let program = Program::new();
    let none = program.run(&["store", "check"]);
    assert_eq!((code(&none), stdout(&none).as_str()), (0, "there is no store: no plugin has kept anything\n"));
    let none = program.run(&["store", "backup", "copy"]);
    assert_eq!(code(&none), 2, "{}", stderr(&none));
    let file = program.path("state/toolcrib/store.sqlite");
    assert!(!file.exists(), "looking makes none");

    let (saved, _) = program.call(&["note_save", r#"{"key":"a","content":"kept"}"#]);
    assert_eq!(saved, 0);
    assert_eq!(std::fs::metadata(&file).expect("a store").permissions().mode() & 0o777, 0o600);
    let checked = json_of(&program.run(&["store", "check", "--json"]));
    assert_eq!((&checked["ok"], &checked["items"]), (&true.into(), &2.into()), "the note, and how many there are");
    succeeded(&program.run(&["store", "backup", "copy"]));
    let copy = program.path("work/copy");
    assert_eq!(std::fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777, 0o600);
    for (to, said) in [("copy", "is there already"), ("absent/copy", "cannot be written: No such file")] {
        let refused = program.run(&["store", "backup", to]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }

    let damaged = std::fs::OpenOptions::new().write(true).open(&file).expect("a store");
    damaged.write_all_at(&[0xa5; 3 * 4096], 4096).expect("written");
    let found = program.run(&["store", "check"]);
    assert_ne!(code(&found), 0);
    assert!((stdout(&found) + &stderr(&found)).contains("damaged"));
    let (_, refused) = program.call(&["note_list", "{}"]);
    assert_eq!(refused["error"]["kind"], "unavailable", "{refused}");
    assert!(refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("toolcrib store backup")), "{refused}");

    // The copy takes its place.
    std::fs::copy(&copy, &file).expect("copied");
    let (_, listed) = program.call(&["note_list", "{}"]);
    assert_eq!(listed["result"]["notes"][0]["key"], "a", "{listed}");
}
