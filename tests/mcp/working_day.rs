//! A day of an agent with default settings: a project is fetched, read, changed, built, served and committed. What its user is asked is listed
//! here, each with the reason why a careful person wants to be asked.

use crate::hour::{at_work, git, questions};
use crate::rig::has_tmux;
use serde_json::{Value, json};
use toolcrib_tests::shell::{command, declared, with};
use toolcrib_tests::skip;

const MODULE: &str = "\"\"\"Prices of a shop.\"\"\"\n\n\ndef total(prices):\n    return sum(prices)\n\n\ndef mean(prices):\n    return sum(prices) / len(prices)\n";
const TESTS: &str = "import unittest\nfrom shop import prices\n\n\nclass Prices(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(prices.total([1, 2]), 3)\n\n    def test_mean(self):\n        self.assertEqual(prices.mean([]), 0)\n";

type Call = (&'static str, Value);

fn run(text: &str) -> Call {
    ("run_shell", command(text))
}

fn edit(path: &str, old: &str, new: &str) -> Call {
    ("file_edit", json!({ "path": path, "old_string": old, "new_string": new }))
}

fn read(path: &str) -> Call {
    ("read_file", json!({ "path": path }))
}

/// The project is fetched and read.
fn morning() -> Vec<Call> {
    vec![
        run("git clone -q upstream.git shop && cd shop && git log --oneline"),
        run("git status --short"),
        ("file_list", json!({ "path": "shop" })),
        ("file_find", json!({ "path": "shop", "pattern": "*.py" })),
        read("shop/shop/prices.py"),
        read("shop/tests/test_prices.py"),
        ("file_search", json!({ "path": "shop", "pattern": "def \\w+" })),
        run("rg -n sum shop || grep -rn sum ."),
        run("python3 --version; git --version"),
        run("wc -l shop/*.py tests/*.py"),
        run("git checkout -q -b mean-of-nothing"),
        run("python3 -m unittest -q 2>&1 | tail -5"),
        run(
            "python3 -m venv .venv --without-pip && . .venv/bin/activate && python3 -c 'import sys; print(sys.prefix)'",
        ),
        run("deactivate"),
        run("printf '.venv/\\n__pycache__/\\n' > .gitignore"),
    ]
}

/// The fault is mended, and more is written.
fn noon() -> Vec<Call> {
    vec![
        edit(
            "shop/shop/prices.py",
            "return sum(prices) / len(prices)",
            "return sum(prices) / len(prices) if prices else 0",
        ),
        run("python3 -m unittest -q 2>&1 | tail -5"),
        run("git diff"),
        run("git add -A"),
        run("git commit -qm 'prices: the mean of nothing is nothing'"),
        (
            "write_file",
            json!({ "path": "shop/shop/report.py", "content": "from shop import prices\n\nprint(prices.mean([1, 2, 3]))\n" }),
        ),
        run("python3 -m shop.report"),
        edit("shop/shop/report.py", "[1, 2, 3]", "[2, 4]"),
        run("python3 -m shop.report"),
        ("file_undo", json!({})),
        run("python3 -m shop.report"),
        run("python3 -m py_compile shop/*.py && find . -name '*.pyc' | wc -l"),
        run("for file in shop/*.py; do sed -n 1,3p \"$file\"; done"),
        run("awk 'length > 100' shop/*.py | wc -l"),
        run("tar czf build.tgz shop && tar tzf build.tgz | sort | head"),
        run("rm build.tgz"),
        run("git add -A && git commit -qm 'report: a mean'"),
        run("git stash list; git log --stat -1"),
        run("git rebase -q main 2>&1 || git rebase --abort"),
        run("git push -q origin mean-of-nothing 2>&1"),
        ("time", json!({})),
    ]
}

/// A server runs while other commands do.
fn afternoon() -> Vec<Call> {
    let server = with(command("python3 -u -m http.server 8000"), "wait", false);
    vec![
        ("write_file", json!({ "path": "shop/index.html", "content": "<title>Shop</title>\n" })),
        ("run_shell", server),
        run("until curl -sf -o /dev/null http://localhost:8000/; do sleep 0.1; done; echo up"),
        ("fetch_url", json!({ "url": "http://cell:8000/" })),
        edit("shop/index.html", "Shop", "The shop"),
        run("curl -s http://localhost:8000/"),
        ("capture-pane", json!({ "pane": "python3" })),
        ("send-keys", declared(json!({ "pane": "python3", "keys": ["C-c"] }))),
        ("tmux-create-pane", declared(json!({ "pane": "watch" }))),
        (
            "send-keys",
            declared(json!({ "pane": "watch", "literal_text": "git -C shop status --short", "enter": true })),
        ),
        ("capture-pane", json!({ "pane": "watch", "delay": "200ms" })),
        ("tmux-kill-pane", declared(json!({ "pane": "watch" }))),
        run("git add -A; git commit -qm 'a page'"),
        run("env | cut -d= -f1 | sort | head -5"),
        run("df -h . | tail -1; uname -s; id -un"),
        run("mkdir -p notes && date > notes/today"),
        run("cat notes/today | tr a-z A-Z | sort -u"),
        run("sleep 0.1 & wait; echo $?"),
        run("test -e missing || echo missing"),
        run("python3 - <<'END'\nprint(sum(range(10)))\nEND"),
        run("mv notes/today notes/yesterday; cp -r notes more; rm -r more"),
        run("sed -i 's/shop/store/' index.html; git diff --stat"),
        run("git checkout -q -- index.html"),
        run("git worktree add -q ../second main 2>&1 | tail -1; git worktree list | wc -l"),
    ]
}

/// What a careful person wants to be asked, and why.
fn asked(outside: &str) -> Vec<(Call, &'static str)> {
    vec![
        (run("curl -sS -m 5 https://api.shop.example/ || true"), "what leaves the cell: a host that nobody named"),
        (("write_file", json!({ "path": outside, "content": "x\n" })), "a write outside of the workspace"),
        (
            ("write_file", json!({ "path": "shop/.envrc", "content": "x\n" })),
            "a file that the user's own shell runs later",
        ),
        (("run_shell", with(command("true"), "privesc", true)), "more rights than the user's"),
    ]
}

#[test]
fn a_day_asks_four_times() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    let (home, mut client) = at_work();
    for (path, text) in [
        ("shop/__init__.py", ""),
        ("shop/prices.py", MODULE),
        ("tests/__init__.py", ""),
        ("tests/test_prices.py", TESTS),
    ] {
        home.program.write(&format!("work/seed/{path}"), text);
    }
    let seed = home.program.path("work/seed");
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a shop"],
        &["clone", "-q", "--bare", ".", "../upstream.git"],
    ] {
        git(&seed, words);
    }
    let day: Vec<Call> = [morning(), noon(), afternoon()].concat();
    assert!(day.len() >= 60, "{} calls", day.len());
    for (tool, arguments) in &day {
        assert_eq!(questions(&mut client, tool, arguments), 0, "{tool} {arguments}");
    }
    let outside = home.program.path("outside").display().to_string();
    for ((tool, arguments), why) in asked(&outside) {
        assert_eq!(questions(&mut client, tool, &arguments), 1, "{why}: {tool} {arguments}");
    }
}
