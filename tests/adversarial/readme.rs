//! The list of attacks in `README.md` beside this file, made of the modules' first lines; and that no module or guest is forgotten.
//!
//! `TOOLCRIB_UPDATE=1` writes the list anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The page that lists promises and attacks.
const PAGE: &str = "adversarial/README.md";
const BEGIN: &str = "<!-- attacks -->\n";
const END: &str = "<!-- /attacks -->";

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8")).collect();
    names.sort();
    names
}

/// The modules of attacks, such as `p01_infinite_loop`, by letter and number.
fn attacks() -> Vec<String> {
    let names = names_in(&tests().join("adversarial"));
    let modules = names.iter().filter_map(|name| name.strip_suffix(".rs"));
    let is_attack = |name: &&str| {
        let (letter, rest) = name.split_at(1);
        let number = rest.split('_').next().unwrap_or_default();
        letter.bytes().all(|byte| byte.is_ascii_lowercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    modules.filter(is_attack).map(str::to_owned).collect()
}

/// What a module says of itself in its first three lines: number, what the attack is, what comes of it.
fn header(module: &str) -> Result<[String; 3], String> {
    let text = read(&tests().join(format!("adversarial/{module}.rs")));
    let mut lines = text.lines();
    let mut line = |begin: &str| {
        let line = lines.next().unwrap_or_default();
        let rest = line.strip_prefix(begin).filter(|rest| rest.ends_with('.'));
        rest.map(str::to_owned).ok_or_else(|| format!("`{module}.rs`: `{line}` is not of the form `{begin}….`"))
    };
    let first = line("//! ")?;
    let outcome = line("//! Outcome: ")?;
    line("//! Switched off: ")?;
    let (number, what) = first.split_once(": ").ok_or_else(|| format!("`{module}.rs` does not begin with a number"))?;
    if number.replace('-', "").to_lowercase() != module.split('_').next().unwrap_or_default() {
        return Err(format!("`{module}.rs` says that it is {number}"));
    }
    let cell = |text: &str| text.trim_end_matches('.').replace('|', "\\|");
    Ok([number.to_owned(), cell(what), cell(&outcome)])
}

#[test]
fn every_attack_says_what_it_is_what_comes_of_it_and_how_it_was_proved() {
    let faults: Vec<String> = attacks().iter().filter_map(|module| header(module).err()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_page_lists_every_attack() {
    let mut table = String::from("| attack | what | outcome | test |\n|---|---|---|---|\n");
    for module in attacks() {
        let Ok([number, what, outcome]) = header(&module) else { continue };
        let _ = writeln!(table, "| {number} | {what} | {outcome} | [{module}]({module}.rs) |");
    }
    let path = tests().join(PAGE);
    let page = read(&path);
    let begin = page.find(BEGIN).expect("the page has `<!-- attacks -->`") + BEGIN.len();
    let end = begin + page[begin..].find(END).expect("the page has `<!-- /attacks -->`");
    if std::env::var_os("TOOLCRIB_UPDATE").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &page[..begin], &page[end..])).expect("the page is written");
    } else {
        assert!(page[begin..end] == table, "run the tests with TOOLCRIB_UPDATE=1 to write the list of attacks anew");
    }
}

/// Every promise names tests, as `file`: `test`, `test`; files are named from the root of the repository.
#[test]
fn every_promise_is_backed_by_a_test_that_is_there() {
    let page = read(&tests().join(PAGE));
    let table = page.split_once("| promise | test |").expect("the page makes promises").1;
    let rows: Vec<&str> =
        table.lines().skip(2).take_while(|line| line.starts_with('|')).map(|row| row.trim_matches('|')).collect();
    assert!(rows.len() > 5, "{} promises", rows.len());
    for row in rows {
        let (promise, named) = row.split_once(" | ").expect("two columns");
        let mut code = String::new();
        let mut proofs = 0;
        for name in named.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                code = read(&tests().join("..").join(name));
            } else {
                assert!(code.contains(&format!("fn {name}(")), "{promise}: there is no test `{name}`");
                proofs += 1;
            }
        }
        assert!(proofs > 0, "{promise}: no test is named");
    }
}

#[test]
fn every_module_is_listed() {
    let main = read(&tests().join("adversarial/main.rs"));
    for name in names_in(&tests().join("adversarial")) {
        if name == "README.md" {
            continue;
        }
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        assert!(
            module == "main" || main.lines().any(|line| line == format!("mod {module};")),
            "`{module}` is not in main.rs"
        );
    }
}

#[test]
fn every_guest_is_used_by_a_test() {
    let mut code = String::new();
    let mut directories = vec![tests()];
    while let Some(directory) = directories.pop() {
        for name in names_in(&directory) {
            let path = directory.join(&name);
            if path.is_dir() && name != "guests" {
                directories.push(path);
            } else if name.ends_with(".rs") && !path.ends_with("adversarial/readme.rs") {
                code += &read(&path);
            }
        }
    }
    for guest in names_in(&tests().join("guests")) {
        assert!(code.contains(&format!("\"{guest}\"")), "no test uses the guest `{guest}`");
    }
}
