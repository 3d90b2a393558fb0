//! The host that a test plays: which answers it has, and which calls came.

use super::call::{Call, Signature, line};
use super::fits::fault;
use super::values::kebab;
use crate::bindings::toolcrib::plugin::types;
use crate::host::CALLS;
use crate::{Content, Failure, Result, Tool, schema, tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

thread_local! {
    /// The host whose call runs on this thread.
    static RUNNING: RefCell<Option<Rc<RefCell<State>>>> = const { RefCell::new(None) };
}

/// A host that answers capabilities as a test has played them, and no others.
///
/// Each line answers one call: the first line of that name that fits the call's arguments and has not answered yet. A call without a line fails
/// the test, and shows the line. When the host is dropped, a line that answered nothing fails the test, too.
///
/// Events ([`events`](crate::events)) need no line.
#[derive(Debug, Default)]
pub struct Host(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    calls: Vec<Call>,
    notices: Vec<String>,
    content: Vec<Content>,
}

/// One line of `host = [...]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    call: String,
    /// Arguments that the call must have; it may have others.
    #[serde(default)]
    with: Map<String, Value>,
    gives: Option<Value>,
    fails: Option<Fails>,
    #[serde(skip)]
    is_used: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fails {
    kind: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    host: Vec<Line>,
}

impl Host {
    /// Returns a host that answers nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a host with the lines of a case in `cases.toml`: `host = [{ call = "…", with = {…}, gives = … }]`, or `fails = {…}` in the place of
    /// `gives`.
    ///
    /// # Panics
    /// Where a line cannot be used.
    #[must_use]
    pub fn from_toml(text: &str) -> Self {
        let Lines { host } = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        host.into_iter().fold(Self::new(), Self::line)
    }

    /// Answers one call of that name, such as `files.read`, with a result.
    ///
    /// The result is JSON as in `cases.toml`; `null` where the function returns nothing. [`text`](super::text), [`bytes`](super::bytes),
    /// [`response`](super::response) and [`finished`](super::finished) make the frequent ones.
    ///
    /// # Panics
    /// Where there is no such call.
    #[must_use]
    pub fn plays(self, call: &str, gives: Value) -> Self {
        self.line(Line { call: call.into(), with: Map::new(), gives: Some(gives), fails: None, is_used: false })
    }

    /// Answers one call of that name with a failure.
    ///
    /// # Panics
    /// Where there is no such call.
    #[must_use]
    pub fn fails(self, call: &str, failure: Failure) -> Self {
        let Failure { kind, message, hint, data } = failure;
        let fails = Some(Fails { kind: kind.name().into(), message, hint, data });
        self.line(Line { call: call.into(), with: Map::new(), gives: None, fails, is_used: false })
    }

    /// Has the line that was played last answer only a call with these arguments, and perhaps others.
    ///
    /// # Panics
    /// Where the call has no such argument, and where nothing was played yet.
    #[must_use]
    pub fn with(self, arguments: Value) -> Self {
        let mut line = self.0.borrow_mut().lines.pop().expect("`with` follows `plays` or `fails`");
        let Value::Object(with) = arguments else { panic!("`with` takes an object, not {arguments}") };
        line.with = with;
        self.line(line)
    }

    fn line(self, line: Line) -> Self {
        line.check();
        self.0.borrow_mut().lines.push(line);
        self
    }

    /// Calls a tool as a host would: with arguments that fit its input schema, and for a result that fits its output schema.
    ///
    /// # Errors
    /// What the tool returns, and `invalid_arguments` for arguments that do not fit.
    ///
    /// # Panics
    /// Where the tool calls what was not played, and where its result does not fit its own schema.
    pub fn call<T: Tool>(&self, arguments: Value) -> Result<Value> {
        let of = |schema: &str| serde_json::from_str::<Value>(schema).expect("a schema is JSON");
        {
            let mut state = self.0.borrow_mut();
            state.notices.clear();
            state.content.clear();
        }
        if let Some(fault) = fault(&of(&schema::of_arguments::<T::Input>()), &arguments) {
            return Err(Failure::invalid(fault));
        }
        let output = self.run(|| tool::call::<T>(&arguments.to_string()))?;
        {
            let mut state = self.0.borrow_mut();
            state.notices = output.notices;
            state.content = output.content.into_iter().map(Content::from_wit).collect();
        }
        let result = serde_json::from_str(&output.json).expect("the tool wrote JSON");
        if let Some(fault) = schema::of_result::<T::Output>().and_then(|schema| fault(&of(&schema), &result)) {
            panic!("the result of `{}` does not fit its output schema: {fault}\n{result}", T::NAME);
        }
        Ok(result)
    }

    /// Runs any function that calls capabilities.
    ///
    /// # Panics
    /// Where it calls what was not played.
    pub fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let _guard = Guard(RUNNING.replace(Some(Rc::clone(&self.0))));
        function()
    }

    /// Returns the calls of capabilities so far, also events, in their order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.0.borrow().calls.clone()
    }

    /// Returns what the last tool that was called told beside its result, by [`notice`](crate::notice()).
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.0.borrow().notices.clone()
    }

    /// Returns what the last tool that was called added to its result, by [`attach`](crate::attach()).
    #[must_use]
    pub fn content(&self) -> Vec<Content> {
        self.0.borrow().content.clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let state = self.0.borrow();
        let unused: Vec<_> = state.lines.iter().filter(|line| !line.is_used).map(Line::text).collect();
        if !unused.is_empty() && !thread::panicking() {
            panic!("these lines answered no call:\n    {}", unused.join("\n    "));
        }
    }
}

/// Puts back the host that ran before.
struct Guard(Option<Rc<RefCell<State>>>);

impl Drop for Guard {
    fn drop(&mut self) {
        RUNNING.set(self.0.take());
    }
}

impl Line {
    /// Refuses a line that could answer nothing.
    fn check(&self) {
        let all = CALLS.iter().copied().flatten().copied().flatten();
        let Some(called) = all.clone().find(|signature| signature.name() == self.call) else {
            let names: Vec<_> = all.map(Signature::name).collect();
            panic!("there is no call `{}`; there are {}", self.call, names.join(", "));
        };
        let known: Vec<_> = called.arguments.iter().map(|argument| kebab(argument)).collect();
        for name in self.with.keys() {
            assert!(known.contains(name), "`{}` has no argument `{name}`; it has {}", self.call, known.join(", "));
        }
        assert!(self.gives.is_none() || self.fails.is_none(), "`{}` has both `gives` and `fails`", self.call);
    }

    fn fits(&self, call: &Call) -> bool {
        let has = |(name, wanted): (&String, &Value)| call.arguments.get(name).is_some_and(|value| has(value, wanted));
        self.call == call.name && self.with.iter().all(has)
    }

    fn text(&self) -> String {
        let fails = json!(self.fails);
        let answer =
            if fails.is_null() { ("gives", self.gives.as_ref().unwrap_or(&Value::Null)) } else { ("fails", &fails) };
        line(&self.call, &self.with.clone().into(), answer)
    }

    /// Returns the line, and why it answers no more or not this call.
    fn why_not(&self) -> String {
        let reason = if self.is_used { "it has answered a call" } else { "the call has other arguments" };
        format!("{} ({reason})", self.text())
    }
}

/// Answers a call by the line that was played for it; `blank` shows what such a call returns.
pub(super) fn answer(call: Call, blank: fn() -> Value) -> Result<Value> {
    let Some(state) = RUNNING.with_borrow(Clone::clone) else {
        panic!(
            "`{}` needs a host: in a test, `toolcrib_sdk::testing::Host` calls a tool, or runs a function of it",
            call.name
        );
    };
    let mut state = state.borrow_mut();
    let State { lines, calls, .. } = &mut *state;
    let Some(line) = lines.iter_mut().find(|line| !line.is_used && line.fits(&call)) else {
        let others = lines.iter().filter(|line| line.call == call.name).map(|line| format!("\n    {}", line.why_not()));
        let others: String = others.collect();
        let others = if others.is_empty() { others } else { format!("\nwhat was played of that name:{others}") };
        let line = self::line(&call.name, &call.arguments, ("gives", &blank()));
        panic!("`{}` was not played; the line for it in `host = [...]` is\n    {line}{others}", call.name);
    };
    line.is_used = true;
    calls.push(call);
    match line.fails.clone() {
        Some(Fails { kind, message, hint, data }) => {
            Err(Failure::from_host(types::Failure { kind, message, hint, data }))
        }
        None => Ok(line.gives.clone().unwrap_or_default()),
    }
}

/// Notes a call that has no answer; nobody sees it outside a host.
pub(super) fn note(call: Call) {
    if let Some(state) = RUNNING.with_borrow(Clone::clone) {
        state.borrow_mut().calls.push(call);
    }
}

/// The value has all that is wanted, and perhaps more.
fn has(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| fields.get(name).is_some_and(|value| has(value, wanted)))
        }
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len() && items.iter().zip(wanted).all(|(item, wanted)| has(item, wanted))
        }
        (value, wanted) => value == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Request;
    use crate::testing::{bytes, finished, response, text};
    use crate::{Declaration, Kind, Risk, events, exec, files, records, schedules, shell};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    /// What a test says that fails.
    fn panic_of(test: impl FnOnce()) -> String {
        let cause = catch_unwind(AssertUnwindSafe(test)).expect_err("the test fails");
        cause
            .downcast::<String>()
            .map_or_else(|cause| (*cause.downcast::<&str>().expect("a text")).to_owned(), |text| *text)
    }

    fn declaration() -> Declaration {
        Declaration { risk: Risk::Low, mutation: false, privesc: false, why: "to see".into() }
    }

    #[test]
    fn a_call_that_was_not_played_shows_the_line_which_then_plays_it() {
        let told = panic_of(|| {
            let _ = Host::new().run(|| files::read("a \"b\".txt", 5, 9));
        });
        let line = told.lines().nth(1).expect("the line").trim();
        assert!(told.starts_with("`files.read` was not played; the line for it in `host = [...]` is\n"), "{told}");
        // In which order keys come is nobody's affair.
        let table = |line: &str| toml::from_str::<toml::Table>(&format!("line = {line}")).expect("a line of TOML");
        assert_eq!(
            table(line),
            table(
                r#"{ call = "files.read", with = { max = 9, offset = 5, path = 'a "b".txt' }, gives = { bytes = 0, text = "", truncated = false } }"#
            )
        );
        let host = Host::from_toml(&format!("host = [{line}]"));
        assert_eq!(host.run(|| files::read("a \"b\".txt", 5, 9)).map(|captured| captured.text), Ok(String::new()));
    }

    #[test]
    fn a_line_answers_one_call_with_its_arguments() {
        let host = Host::new()
            .plays("files.read", text("b"))
            .with(json!({ "path": "b.txt" }))
            .plays("files.read", text("a"))
            .plays("files.read", text("again"));
        let read = |path: &str| host.run(|| files::read_text(path));
        assert_eq!((read("a.txt"), read("b.txt"), read("a.txt")), (Ok("a".into()), Ok("b".into()), Ok("again".into())));
        let told = panic_of(|| drop(read("a.txt")));
        assert!(told.contains("what was played of that name:"), "{told}");
        assert!(told.contains(r#"with = { path = "b.txt" }, gives = {"#), "{told}");
        assert_eq!(told.matches("} (it has answered a call)").count(), 3, "{told}");
        assert_eq!(host.calls().len(), 3);
        assert_eq!(host.calls()[1].arguments, json!({ "path": "b.txt", "offset": 0, "max": 4 << 20 }));
    }

    #[test]
    fn a_line_that_answered_nothing_fails_the_test() {
        let told = panic_of(|| drop(Host::new().fails("http.send", Failure::new(Kind::TIMED_OUT, "no answer"))));
        assert_eq!(
            told,
            "these lines answered no call:\n    { call = \"http.send\", fails = { kind = \"timed_out\", message = \"no answer\" } }"
        );
    }

    #[test]
    fn a_line_that_can_answer_nothing_is_refused() {
        let wrong = |test: &dyn Fn() -> Host| panic_of(|| drop(test()));
        let told = wrong(&|| Host::new().plays("files.raed", Value::Null));
        assert!(told.contains("there is no call `files.raed`; there are shell.run, exec.run, "), "{told}");
        let told = wrong(&|| Host::new().plays("files.stat", Value::Null).with(json!({ "name": "a" })));
        assert_eq!(told, "`files.stat` has no argument `name`; it has path");
        let told = wrong(&|| Host::from_toml(r#"host = [{ call = "files.stat", give = 5 }]"#));
        assert!(told.contains("unknown field `give`"), "{told}");
        let told = panic_of(|| {
            let _ = Host::new()
                .plays("files.read", json!({ "text": 5, "bytes": 1, "truncated": false }))
                .run(|| files::read_text("a"));
        });
        assert_eq!(
            told,
            "what was played for `files.read` does not fit: `text`: invalid type: integer `5`, expected a string"
        );
    }

    struct Wait;

    #[derive(Deserialize, crate::JsonSchema)]
    struct Input {
        seconds: u8,
    }

    impl Tool for Wait {
        const NAME: &str = "wait";
        const SUMMARY: &str = "Wait for a command.";
        const GUIDANCE: crate::Guidance =
            crate::Guidance { when_to_use: "", when_not_to_use: "", disambiguation: "", examples: &[] };
        type Input = Input;
        type Output = String;

        fn call(Input { seconds }: Input) -> Result<String> {
            crate::notice("it waited");
            crate::attach(Content::Link("https://example.com/".into()));
            events::progress(1, None, None);
            let finished = exec::Program::new("sleep", &declaration()).args([seconds.to_string()]).run()?;
            Ok(finished.stdout.text)
        }
    }

    #[test]
    fn a_tool_is_called_with_arguments_that_fit_its_schema() {
        let host = Host::new().plays("exec.run", finished(0, "done")).with(json!({ "arguments": ["5"] }));
        for (arguments, fault) in [
            (json!({}), "`seconds` is missing"),
            (json!({ "seconds": "5" }), "`seconds`: \"5\" is not of type \"integer\""),
            (json!({ "seconds": 256 }), "`seconds`: 256 does not fit `maximum`: 255"),
            (json!({ "seconds": 5, "minutes": 5 }), "unknown argument `minutes`"),
        ] {
            assert_eq!(host.call::<Wait>(arguments), Err(Failure::invalid(fault)));
        }
        assert_eq!(host.call::<Wait>(json!({ "seconds": 5 })), Ok(json!("done")));
        assert_eq!(host.notices(), ["it waited"]);
        assert_eq!(host.content(), [Content::Link("https://example.com/".into())]);
        let names: Vec<_> = host.calls().into_iter().map(|call| call.name).collect();
        assert_eq!(names, ["events.progress", "exec.run"]);
    }

    #[test]
    fn a_capability_without_a_host_says_what_makes_one() {
        assert!(panic_of(|| drop(files::read_text("a"))).starts_with("`files.read` needs a host: in a test, "));
        // Nothing depends on an event.
        events::info("nobody listens");
    }

    #[test]
    fn a_failure_comes_as_it_was_played() {
        let host = Host::from_toml(
            r#"host = [{ call = "http.send", fails = { kind = "timed_out", message = "no answer", hint = "later", data = "5" } }]"#,
        );
        let failure = host.run(|| Request::get("https://example.com/").send()).unwrap_err();
        assert_eq!(failure, Failure::new(Kind::TIMED_OUT, "no answer").hint("later").data(&5));
    }

    #[test]
    fn what_a_resource_is_told_goes_with_the_call_that_ends_it() {
        let host = Host::new()
            .plays("http.send", response(404, "nothing"))
            .plays("exec.run", finished(0, "main\n"))
            .plays("shell.run", json!({ "dispatched": "%3" }))
            .plays("records.commit", json!([]))
            .plays("records.get", Value::Null);
        host.run(|| {
            let request =
                Request::new("POST", "https://example.com/").header("a", "1").header("b", "2").body("hi").limit(9);
            let answer = request.send()?;
            assert_eq!((answer.status, answer.body), (404, b"nothing".to_vec()));
            let program =
                exec::Program::new("git", &declaration()).args(["branch"]).env("A", "1").directory("src").stdin("x");
            assert_eq!(program.at_most(Duration::from_secs(1)).head_and_tail(5, 6).run()?.stdout.text, "main\n");
            let command = shell::Command::new("make", &declaration()).wait(shell::Wait::Dispatch).own_process();
            assert!(matches!(command.run()?, shell::Outcome::Dispatched(pane) if pane == "%3"));
            records::Batch::new().expect("c", "k", 0).put("c", "k", &5).commit()?;
            records::get::<u64>("c", "k").map(|item| assert_eq!(item, None))
        })
        .unwrap();
        let arguments: Vec<Value> = host.calls().into_iter().map(|call| call.arguments).collect();
        let declared = json!({ "risk": "low", "mutation": false, "privesc": false, "why": "to see" });
        let wanted = [
            json!({ "method": "POST", "url": "https://example.com/", "headers": [["a", "1"], ["b", "2"]], "body": bytes("hi"), "limit": 9 }),
            json!({
                "program": "git", "arguments": ["branch"], "declaration": declared, "environment": [["A", "1"]], "directory": "src",
                "stdin": "eA==", "at-most-ms": 1000, "head-and-tail": [5, 6],
            }),
            json!({ "text": "make", "declaration": declared, "wait": "dispatch", "own-process": true }),
            json!({ "changes": [{ "expect": ["c", "k", 0] }, { "put": ["c", "k", "5"] }] }),
            json!({ "collection": "c", "key": "k" }),
        ];
        assert_eq!(arguments, wanted);
    }

    #[test]
    fn numbers_bytes_and_nothing_come_as_they_were_played() {
        let blank = json!({ "id": "a", "state": "active", "when": "", "zone": "", "content": "", "next": ["t"], "failures": "18446744073709551615",
            "last": { "due": "", "came": "missed" } });
        let saved =
            Host::new().plays("schedules.save", blank).run(|| schedules::Plan::new("a").hours(22, 6).save()).unwrap();
        assert_eq!(
            (saved.failures, saved.last.map(|last| last.came), saved.tool),
            (u64::MAX, Some(schedules::Came::Missed), None)
        );
        let host = Host::new().plays("files.read-bytes", bytes([0, 255])).plays("schedules.remove", Value::Null);
        assert_eq!(host.run(|| files::read_bytes("a", 0, 2)), Ok(vec![0, 255]));
        assert_eq!(host.run(|| schedules::remove("a")), Ok(()));
    }
}
