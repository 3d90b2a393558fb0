//! `plugin test --record`, and the clock of cases: what a capability has answered once is what it answers from then on.

use crate::cases::{PROJECT, project};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::outcome::{code, stderr, stdout, succeeded};
use toolcrib_tests::{Program, guest, serve};

/// The file of the cases, as it is now.
fn cases(program: &Program) -> String {
    fs::read_to_string(program.path("work/count/cases.toml")).expect("a file")
}

/// A project of a guest that is built already.
fn project_of(guest_name: &str, cases: &str) -> Program {
    let program = project(cases);
    program.write("work/count/toolcrib-plugin.toml", PROJECT.replace("word_count", guest_name));
    program.write(&format!("work/count/{guest_name}.wasm"), fs::read(guest(guest_name)).expect("a guest"));
    program
}

#[test]
fn what_capabilities_answer_is_recorded_where_cases_have_host() {
    let program = project(
        r#"
[grants]
files.read = ["fixtures"]

[[case]]
name = "counts"
tool = "word_count"
arguments = { path = "fixtures/two.txt" }
host = [] # recorded
result = { lines = 1, words = 2, bytes = 9 }

[[case]]
name = "beyond its rights"
tool = "word_count"
arguments = { path = "cases.toml" }
host = [{ call = "files.read", gives = { text = "of before", bytes = 9, truncated = false } }]
error = { kind = "denied", hint_has = "files.read" }

[[case]]
name = "acts"
tool = "word_count"
arguments = { path = "fixtures/two.txt" }
result = { lines = 1, words = 2, bytes = 9 }
"#,
    );
    assert_eq!(code(&program.run(&["plugin", "test", "count"])), 1);
    let told = succeeded(&program.run(&["plugin", "test", "--record", "count"]));
    assert!(told.ends_with("3 of 3 cases passed\n"), "{told}");
    let written = cases(&program);
    let line = r#"{ call = "files.read", with = { path = "fixtures/two.txt", offset = 0, max = 4194304 }, gives = { text = "two words", bytes = 9, truncated = false } },
] # recorded"#;
    assert!(written.contains(line), "{written}");
    assert!(!written.contains("of before") && written.matches("host =").count() == 2, "{written}");
    // What it has answered is enough, from then on.
    fs::remove_file(program.path("work/count/fixtures/two.txt")).expect("a file");
    let told = program.run(&["plugin", "test", "count"]);
    assert!(stdout(&told).contains("2 of 3 cases passed"), "{}", stdout(&told));
    assert_eq!(cases(&program), written);
}

#[test]
fn a_request_is_recorded_with_all_that_it_was_told() {
    let address = serve(|path| format!("page of {path}"));
    let program = project_of(
        "requester",
        &format!(
            r#"
[grants]
http.hosts = ["127.0.0.1"]
http.methods = ["GET", "POST"]

[[case]]
name = "a page"
tool = "request"
arguments = {{ method = "GET", url = "http://{address}/a", headers = [["accept", "text/plain"]] }}
host = []
result_has = {{ status = 200, body = "page of /a" }}

[[case]]
name = "not allowed"
tool = "request"
arguments = {{ method = "GET", url = "http://127.0.0.2:1/" }}
host = []
error = {{ kind = "denied" }}
"#
        ),
    );
    let opened = r#"tools.fetch_private_ranges=["127.0.0.1"]"#;
    let told = succeeded(&program.run(&["--set", opened, "plugin", "test", "--record", "count"]));
    assert!(told.ends_with("2 of 2 cases passed\n"), "{told}");
    let written = cases(&program);
    for part in [
        format!(r#"url = "http://{address}/a""#),
        r#"headers = [["accept", "text/plain"]]"#.into(),
        r#"body = "cGFnZSBvZiAvYQ==""#.into(),
        r#"fails = { kind = "denied""#.into(),
    ] {
        assert!(written.contains(&part), "{part}: {written}");
    }
    // Nothing is asked any more, and no right is needed.
    fs::write(program.path("work/count/cases.toml"), written.replace(&address.port().to_string(), "1"))
        .expect("a file");
    let told = succeeded(&program.run(&["plugin", "test", "count"]));
    assert!(told.ends_with("2 of 2 cases passed\n"), "{told}");
}

/// Batches and queries: several functions of a resource make up one call.
#[test]
fn what_is_kept_is_recorded() {
    let program = project_of(
        "keeper",
        r#"
[grants]
records = true

[[case]]
name = "keeps and finds"
tool = "keep"
arguments = { changes = [{ put = ["a", "one", { size = 1 }] }, { put = ["a", "two", { size = 2 }] }], get = ["a", "one"], find = { collection = "a", equals = [["/size", 2]], keys = true } }
host = []
result_has = { item = { key = "one", body = { size = 1 } } }
"#,
    );
    succeeded(&program.run(&["plugin", "test", "--record", "count"]));
    let written = cases(&program);
    for part in
        [r#"call = "records.commit", with = { changes = ["#, r#"{ put = ["#, r#"call = "records.get""#, r#"equals = ["#]
    {
        assert!(written.contains(part), "{part}: {written}");
    }
    let told = succeeded(&program.run(&["plugin", "test", "count"]));
    assert!(told.ends_with("1 of 1 cases passed\n"), "{told}");
}

#[test]
fn time_and_random_numbers_are_fixed_where_the_cases_have_a_clock() {
    let case = "[[case]]\nname = \"x\"\ntool = \"hostile\"\narguments = { how = \"look\" }\nresult = \"\"\n";
    let said = |clock: &str| {
        let program = project_of("hostile", &format!("{clock}{case}"));
        succeeded(&program.run(&["plugin", "test", "--bless", "count"]));
        let written = cases(&program);
        written.rsplit_once("result = \"").and_then(|(_, said)| said.split('"').next()).expect("a result").to_owned()
    };
    let fixed = "[clock]\nat = 2026-01-31T12:00:00Z\n\n";
    let (one, two) = (said(fixed), said(fixed));
    assert!(one == two && one.starts_with("1769860800000 1 "), "{one}, {two}");
    let (one, two) = (said(""), said(""));
    assert!(one.split(' ').next_back() != two.split(' ').next_back(), "{one}, {two}");
    for (at, wanted) in
        [("1969-01-31T12:00:00Z", "not a point in time"), ("2026-01-31", "not a point in time"), ("\"noon\"", "at")]
    {
        let output = project(&format!("[clock]\nat = {at}\n{case}")).run(&["plugin", "test", "count"]);
        assert!(code(&output) != 0 && stderr(&output).contains(wanted), "{at}: {}", stderr(&output));
    }
}

/// What is written as tables of its own is recorded as well, what failed is not, and what was changed meanwhile is left as it is.
#[test]
fn only_what_passed_is_written_and_only_where_it_was_read() {
    let case = |result: &str| {
        format!(
            r#"
[grants]
files.read = ["fixtures"]

[[case]]
name = "counts"
tool = "word_count"
arguments = {{ path = "fixtures/two.txt" }}
result = {result}

[[case.host]]
call = "files.read"
gives = {{ text = "of before", bytes = 9, truncated = false }}
"#
        )
    };
    let failing = project(&case("5"));
    assert_eq!(code(&failing.run(&["plugin", "test", "--record", "count"])), 1);
    assert_eq!(cases(&failing), case("5"));
    succeeded(&failing.run(&["plugin", "test", "--record", "--bless", "count"]));
    let written = cases(&failing);
    assert!(written.contains("two words") && !written.contains("of before"), "{written}");
    succeeded(&failing.run(&["plugin", "test", "count"]));

    // The build comes between.
    let meanwhile = project(&case("{ lines = 1, words = 2, bytes = 9 }"));
    let build = PROJECT.replace(r#"build = ["true"]"#, r#"build = ["sed", "-i", "s/counts/renamed/", "cases.toml"]"#);
    meanwhile.write("work/count/toolcrib-plugin.toml", build);
    let output = meanwhile.run(&["plugin", "test", "--record", "count"]);
    assert!(stderr(&output).contains("was changed meanwhile, and is left as it is"), "{}", stderr(&output));
    assert!(cases(&meanwhile).contains("of before"));
}

/// What is known as a secret is in no file of cases, whatever settings say of results.
#[test]
fn no_secret_is_recorded() {
    let program = project(
        r#"
[grants]
files.read = ["fixtures"]

[[case]]
name = "counts"
tool = "word_count"
arguments = { path = "fixtures/two.txt" }
host = []
result_has = { lines = 1 }
"#,
    );
    program.write("work/count/fixtures/two.txt", "the key is correct-horse-battery");
    program.write("key", "correct-horse-battery");
    fs::set_permissions(program.path("key"), PermissionsExt::from_mode(0o600)).expect("a file");
    let secret = format!("secret.key.file={:?}", program.path("key"));
    succeeded(&program.run(&["--set", &secret, "--set", "leaks.results=warn", "plugin", "test", "--record", "count"]));
    let written = cases(&program);
    assert!(written.contains("the key is") && !written.contains("correct-horse"), "{written}");
}
