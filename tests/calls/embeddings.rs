//! What is found by its meaning: vectors that a model makes in the background, over HTTP or as a program, and what becomes of it when it fails.
//!
//! The model of these tests knows some words and what they mean; a real one takes part in the figures of the labelled set.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::{TestHost, write_program};

/// What the words of the model mean; a text is the sum of its words.
const MEANINGS: [&[&str]; 4] =
    [&["car", "automobile", "vehicle"], &["red", "scarlet"], &["boat", "ship"], &["tea", "beverage"]];
/// A word that the model does not take, and one over which its server fails.
const TOO_MUCH: &str = "unembeddable";
const HEAVY: &str = "heavy";
const LONG: Duration = Duration::from_secs(60);

/// A server in OpenAI's form.
struct Model {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The heads of the requests, and their texts.
    asked: Vec<(String, Vec<String>)>,
    /// What it answers instead of vectors.
    answer: Option<String>,
}

impl Model {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, state) = (listener.local_addr().expect("an address"), Arc::<Mutex<State>>::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let state = shared.clone();
                std::thread::spawn(move || serve(&connection, &state));
            }
        });
        Self { address, state }
    }

    fn url(&self) -> String {
        format!("http://{}/v1/embeddings", self.address)
    }

    /// A host that asks it.
    fn host(&self) -> TestHost {
        TestHost::new().set(&format!("embeddings.url={:?}", self.url())).set("tools.equal_calls=1000")
    }

    /// Answers so from now on: a status with its reason.
    fn answer(&self, answer: Option<&str>) {
        held(&self.state).answer = answer.map(str::to_owned);
    }

    fn asked(&self) -> Vec<String> {
        held(&self.state).asked.iter().flat_map(|(_, texts)| texts.clone()).collect()
    }
}

fn held(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("nothing panics that holds it")
}

fn serve(connection: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(connection), connection);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let texts: Vec<String> =
            serde_json::from_value(serde_json::from_slice::<Value>(&body).ok()?["input"].take()).ok()?;
        let instead = {
            let mut state = held(state);
            state.asked.push((head, texts.clone()));
            state.answer.clone()
        };
        let (status, answer) = match instead {
            Some(status) => (status, json!({ "error": { "message": "no" } })),
            None if texts.iter().any(|text| text.contains(TOO_MUCH)) => {
                ("400 Bad Request".to_owned(), json!({ "error": { "message": "too much" } }))
            }
            None if texts.iter().any(|text| text.contains(HEAVY)) => {
                ("500 Internal Server Error".to_owned(), json!({ "error": { "message": "too large to process" } }))
            }
            None => ("200 OK".to_owned(), json!({ "data": texts.iter().map(|text| vector(text)).collect::<Vec<_>>() })),
        };
        let answer = answer.to_string();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        writer.write_all((head + &answer).as_bytes()).ok()?;
    }
}

fn vector(text: &str) -> Value {
    let lower = text.to_lowercase();
    let means = |words: &[&str]| words.iter().filter(|word| lower.contains(**word)).count();
    // A text without a meaning that is known has one of its own.
    let numbers: Vec<usize> = MEANINGS.iter().map(|words| means(words)).collect();
    let unknown = usize::from(numbers.iter().all(|number| *number == 0));
    json!({ "embedding": numbers.into_iter().chain([unknown]).collect::<Vec<_>>() })
}

async fn save(host: &TestHost, content: &str) -> String {
    let saved = host.result("memory_save", json!({ "content": content })).await;
    saved["memory_id"].as_str().expect("an id").to_owned()
}

/// The best of what is recalled, and the notices.
async fn recall(host: &TestHost, query: &str) -> (Option<String>, Vec<String>) {
    let envelope = host.call("memory_recall", json!({ "query": query, "max_results": 1 })).await;
    let output = envelope.outcome.expect("a result");
    (output.result["memories"][0]["content"].as_str().map(str::to_owned), output.notices)
}

/// Asks until the best of what is recalled is this: what failed is made up for after some time.
async fn recalls(host: &TestHost, query: &str, content: &str) {
    for _ in 0..400 {
        if recall(host, query).await.0.as_deref() == Some(content) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{query}: {content} is not found");
}

async fn settled(host: &TestHost) {
    host.parts().0.settled(LONG).await;
}

/// Case 42, with a model: without one it is not found, and nothing is said of that.
#[tokio::test(flavor = "multi_thread")]
async fn what_says_the_same_in_other_words_is_found() {
    let (model, without) = (Model::start(), TestHost::new());
    let host = model.host().set("embeddings.model=words-4");
    for host in [&host, &without] {
        save(host, "The car is red.").await;
        save(host, "The boat is old.").await;
        settled(host).await;
    }
    assert_eq!(recall(&host, "scarlet vehicle").await.0.as_deref(), Some("The car is red."));
    assert_eq!(recall(&host, "the ship").await.0.as_deref(), Some("The boat is old."));
    let (found, notices) = recall(&without, "scarlet vehicle").await;
    assert_eq!((found, notices.len()), (None, 1), "{notices:?}");
    assert!(notices[0].starts_with("nothing was found"), "{notices:?}");
    let (head, _) = held(&model.state).asked[0].clone();
    assert!(head.starts_with("post /v1/embeddings http/1.1\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
    // Asked for in a call, it is in the trail; what is made in the background is not.
    let audit = serde_json::to_string(&host.audit()).expect("JSON");
    assert!(audit.contains(&format!("POST {}", model.url())), "{audit}");
}

/// A change makes a text's vector anew, and what is forgotten or consolidated is not near any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_changes_means_something_else() {
    let model = Model::start();
    let host = model.host();
    let (car, boat) = (save(&host, "a car").await, save(&host, "a boat").await);
    settled(&host).await;
    let pair = json!({ "survivor_id": car, "absorbed_id": boat, "merged_content": "a cup of tea" });
    host.result("memory_consolidate", json!({ "partition": "fact", "batch": [pair] })).await;
    settled(&host).await;
    assert_eq!(recall(&host, "some beverage").await.0.as_deref(), Some("a cup of tea"));
    let all = host.result("memory_recall", json!({ "query": "automobile or ship" })).await;
    assert_eq!(all["memories"].as_array().expect("a list").len(), 1, "{all}");
    host.result("memory_delete", json!({ "memory_id": car })).await;
    assert_eq!(recall(&host, "some beverage").await.0, None);
}

/// Nobody waits for a model to keep something; where it fails, recall goes by words and says so, and it is made up for.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_costs_a_notice() {
    let model = Model::start();
    let host = model.host();
    model.answer(Some("503 Service Unavailable"));
    save(&host, "The car is red.").await;
    settled(&host).await;
    let (found, notices) = recall(&host, "the car").await;
    assert_eq!(found.as_deref(), Some("The car is red."));
    assert_eq!(notices.len(), 1, "{notices:?}");
    let said = "it was looked for by words alone, not by meaning: ";
    assert!(notices[0].starts_with(said) && notices[0].contains("answers 503 Service Unavailable"), "{notices:?}");
    model.answer(None);
    recalls(&host, "automobile", "The car is red.").await;
}

/// One text that a model does not take, and one that is no text, keep no other back; it is not asked about again by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_the_model_does_not_take_keeps_no_other_back() {
    let model = Model::start();
    let host = model.host();
    model.answer(Some("503 Service Unavailable"));
    for content in ["a car", TOO_MUCH, "a boat"] {
        save(&host, content).await;
    }
    model.answer(None);
    recalls(&host, "a ship", "a boat").await;
    settled(&host).await;
    assert_eq!(recall(&host, "a vehicle").await.0.as_deref(), Some("a car"));
    let times = |model: &Model| model.asked().iter().filter(|text| *text == TOO_MUCH).count();
    let before = times(&model);
    save(&host, "a cup of tea").await;
    settled(&host).await;
    assert_eq!(times(&model), before, "once it was asked about alone, it is not asked about again");
    // Nor can it be looked for, which costs a notice.
    let (found, notices) = recall(&host, TOO_MUCH).await;
    assert_eq!(found.as_deref(), Some(TOO_MUCH));
    assert!(notices[0].contains("answers 400 Bad Request"), "{notices:?}");
}

/// A text over which the server fails, each time, is asked about three times, after all others; then it counts as not taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_over_which_the_model_fails_keeps_no_other_back() {
    let model = Model::start();
    let host = model.host();
    model.answer(Some("503 Service Unavailable"));
    for content in ["a heavy car", "a boat", "tea"] {
        save(&host, content).await;
    }
    settled(&host).await;
    let alone = || held(&model.state).asked.iter().filter(|(_, texts)| *texts == ["a heavy car"]).count();
    let before = alone();
    model.answer(None);
    // What failed is on its way from here on, or there already.
    recall(&host, "ship").await;
    recalls(&host, "a ship", "a boat").await;
    settled(&host).await;
    assert_eq!(recall(&host, "a beverage").await.0.as_deref(), Some("tea"));
    assert_eq!(alone() - before, 3);
    save(&host, "a red car").await;
    settled(&host).await;
    assert_eq!(alone() - before, 3);
}

/// A server that answers with something else for some time, such as the page of a proxy, has no text count as not taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_talks_nonsense_is_asked_again() {
    let model = Model::start();
    let host = model.host();
    for nonsense in ["200 OK", "400 Bad Request"] {
        model.answer(Some(nonsense));
        for content in ["a car", "a boat"] {
            save(&host, &format!("{content}, {nonsense}")).await;
        }
        settled(&host).await;
        assert!(!recall(&host, "a vehicle").await.1.is_empty());
        model.answer(None);
        let wanted = [format!("a car, {nonsense}"), format!("a boat, {nonsense}")];
        let mut found = String::new();
        for _ in 0..400 {
            let memories = host.result("memory_recall", json!({ "query": "vehicle ship", "max_results": 50 })).await;
            found = memories["memories"].to_string();
            if wanted.iter().all(|content| found.contains(content)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert!(wanted.iter().all(|content| found.contains(content)), "{found}");
    }
}

/// What holds a secret by now, and was kept before it was one, goes to no model, and keeps nothing else back.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_holds_a_secret_by_now_keeps_no_other_back() {
    let model = Model::start();
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("secret");
    let host = TestHost::new();
    save(&host, "the car has hunter2-and-some-more").await;
    save(&host, "a boat").await;
    std::fs::write(&file, "hunter2-and-some-more").expect("a secret");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("its mode");
    let settings = format!("embeddings.url = {:?}\n[secret.KEY]\nfile = {file:?}\n", model.url());
    let host = host.user(&settings).set("tools.equal_calls=100");
    recalls(&host, "a ship", "a boat").await;
    assert!(!model.asked().iter().any(|text| text.contains("hunter2")));
}

/// A program as model: a question a line, an answer a line.
fn program(directory: &Path, body: &str) -> PathBuf {
    let file = directory.join("model");
    write_program(&file, format!("#!/usr/bin/env python3\nimport json, os, sys\n{body}"));
    file
}

const SAME_LENGTH: &str = "
open(os.path.dirname(sys.argv[0]) + '/started', 'a').write('x')
for line in sys.stdin:
    texts = json.loads(line)['input']
    if any('die' in text for text in texts):
        sys.exit('it is all too much')
    print(json.dumps({'data': [{'embedding': [len(text), 10]} for text in texts]}), flush=True)
";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_makes_vectors_and_is_started_once() {
    let place = tempfile::tempdir().expect("a directory");
    let file = program(place.path(), SAME_LENGTH);
    let host = TestHost::new().set(&format!("embeddings.command=[{file:?}]"));
    save(&host, "short").await;
    settled(&host).await;
    save(&host, "a text that is quite long").await;
    settled(&host).await;
    assert_eq!(recall(&host, "so long as this one is").await.0.as_deref(), Some("a text that is quite long"));
    let started = || std::fs::read_to_string(place.path().join("started")).expect("it was started").len();
    assert_eq!(started(), 1);
    // Where it ends, the notice has what it said, and it is started again for the next question.
    let (_, notices) = recall(&host, "die").await;
    assert!(notices[0].contains("it ended with status 1; it says: it is all too much"), "{notices:?}");
    assert_eq!(recall(&host, "yes").await.0.as_deref(), Some("short"));
    assert_eq!(started(), 2);
}

/// What a program writes beside its answers is not taken for the next one: it is ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_too_many_gives_no_text_the_vector_of_another() {
    let place = tempfile::tempdir().expect("a directory");
    let body = "
import time
first = not os.path.exists(os.path.dirname(sys.argv[0]) + '/started')
open(os.path.dirname(sys.argv[0]) + '/started', 'a').write('x')
for line in sys.stdin:
    texts = json.loads(line)['input']
    print(json.dumps({'data': [{'embedding': [len(text), 10]} for text in texts]}), flush=True)
    if first:
        time.sleep(0.2)
        print(json.dumps({'data': [{'embedding': [1000, 10]}]}), flush=True)
        open(os.path.dirname(sys.argv[0]) + '/too_many', 'w')
";
    let file = program(place.path(), body);
    let host = TestHost::new().set(&format!("embeddings.command=[{file:?}]"));
    save(&host, "short").await;
    settled(&host).await;
    toolcrib_tests::eventually("a line too many", || place.path().join("too_many").exists());
    let long = "a text that is quite long, and longer than that";
    save(&host, long).await;
    recalls(&host, "so long as this one is, and still longer than it was", long).await;
    assert_eq!(recall(&host, "yes").await.0.as_deref(), Some("short"));
    assert_eq!(std::fs::read_to_string(place.path().join("started")).expect("it was started").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_says_something_else_is_told_of() {
    let place = tempfile::tempdir().expect("a directory");
    for (body, said) in [
        ("for line in sys.stdin: print('hello', flush=True)", "it is not JSON"),
        ("for line in sys.stdin: print('{\"data\":[]}', flush=True)", "one vector for each of 1 texts"),
        (
            "for line in sys.stdin: print('{\"error\":\"no such model\"}', flush=True)",
            "does not take the text: \"no such",
        ),
        ("for line in sys.stdin: print('{}\\n{}', flush=True)", "more than one line"),
        ("sys.exit(3)", "it ended with status 3"),
    ] {
        let file = program(place.path(), body);
        let host = TestHost::new().set(&format!("embeddings.command=[{file:?}]"));
        save(&host, "something").await;
        let (found, notices) = recall(&host, "something").await;
        assert_eq!(found.as_deref(), Some("something"));
        assert!(notices[0].contains(said), "{body}: {notices:?}");
    }
    let missing = TestHost::new().set("embeddings.command=[\"/no/such/program\"]");
    save(&missing, "something").await;
    assert!(recall(&missing, "something").await.1[0].contains("/no/such/program"));
}

/// Of what other agents keep nothing is near.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_agent_keeps_is_not_near() {
    let model = Model::start();
    let host = model.host().user(&format!(
        "embeddings.url = {:?}\n[toolset.t]\ntools = [\"memory_save\", \"memory_recall\"]\nsession = [\"agent\"]\n",
        model.url()
    ));
    let host = host.set("plugin.memory.enabled=true");
    let call = async |agent: &str, tool: &str, arguments: Value| -> Result<Value, Failure> {
        host.call_as("t", agent, tool, arguments).await
    };
    call("a", "memory_save", json!({ "content": "a red car" })).await.expect("it is kept");
    call("b", "memory_save", json!({ "content": "a boat" })).await.expect("it is kept");
    settled(&host).await;
    let found = call("b", "memory_recall", json!({ "query": "scarlet automobile" })).await.expect("a result");
    let contents: Vec<_> =
        found["memories"].as_array().expect("a list").iter().map(|memory| &memory["content"]).collect();
    assert_eq!(contents, ["a boat"], "the nearest of its own, however far");
}

/// The texts go to the endpoint that the user has named, as far as policy lets requests go, and nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_reached_as_far_as_policy_goes() {
    let model = Model::start();
    let why = async |host: TestHost| -> String {
        save(&host, "a car").await;
        recall(&host, "a vehicle").await.1.join("; ")
    };
    for (policy, said) in [
        ("tools.fetch_blocked_domains = [\"127.0.0.0/8\"]", "is blocked by"),
        ("tools.fetch_private_ranges = []", "is not public"),
        ("tools.fetch_allowed_domains = [\"example.com\"]", "is not in `tools.fetch_allowed_domains`"),
        ("tools.fetch_enabled = false", "requests are switched off"),
        ("embeddings.enabled = false", "nothing was found"),
    ] {
        let said_so = why(model.host().policy(policy)).await;
        assert!(said_so.contains(said), "{policy}: {said_so}");
    }
    let at = |url: &str| TestHost::new().set(&format!("embeddings.url={url:?}")).set("tools.fetch_plain_http=false");
    let said = why(at("http://models.example.com/v1/embeddings")).await;
    assert!(said.contains("is not encrypted"), "{said}");
    assert_eq!(model.asked(), [""; 0], "nothing has come here");
    // A name of this network is opened by being named; the answer of a server that sends elsewhere is not followed.
    let port = model.address.port();
    let host = at(&format!("http://localhost:{port}/v1/embeddings"));
    save(&host, "a car").await;
    settled(&host).await;
    assert_eq!(recall(&host, "a vehicle").await.0.as_deref(), Some("a car"));
    model.answer(Some("307 Temporary Redirect\r\nlocation: http://127.0.0.2:1/v1/embeddings"));
    let said = recall(&host, "a vehicle").await.1.join("; ");
    assert!(said.contains("redirects") && said.contains("may not reach `127.0.0.2`"), "{said}");
}

/// A secret is no text for a model; one of the settings goes to the host that it is for, over HTTPS.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_to_no_model() {
    let (model, place) = (Model::start(), tempfile::tempdir().expect("a directory"));
    let file = place.path().join("secret");
    std::fs::write(&file, "hunter2-and-some-more").expect("a secret");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("its mode");
    let port = model.address.port();
    let settings = |url: &str| {
        format!(
            "[embeddings]\nurl = {url:?}\nheaders = {{ Authorization = \"Bearer ${{secret:KEY}}\" }}\n\
             [secret.KEY]\nfile = {file:?}\nhosts = [\"localhost\"]\n"
        )
    };
    let host = TestHost::new().user(&settings(&model.url()));
    save(&host, "a car").await;
    settled(&host).await;
    assert_eq!(
        recall(&host, "a vehicle").await.0.as_deref(),
        Some("a car"),
        "without the header: it is for another host"
    );
    assert!(!held(&model.state).asked[0].0.contains("authorization"));
    let (_, notices) = recall(&host, "hunter2-and-some-more").await;
    assert!(notices.iter().any(|notice| notice.contains("holds the value of the secret `KEY`")), "{notices:?}");
    let refused = host.failure("memory_save", json!({ "content": "it is hunter2-and-some-more" })).await;
    assert_eq!(refused.kind, Kind::Denied);
    assert!(!model.asked().iter().any(|text| text.contains("hunter2")));
    let host = TestHost::new().user(&settings(&format!("http://localhost:{port}/v1/embeddings")));
    save(&host, "a car").await;
    let (_, notices) = recall(&host, "a vehicle").await;
    assert!(notices.iter().any(|notice| notice.contains("whose secret goes over HTTPS alone")), "{notices:?}");
}

#[test]
fn two_models_are_none() {
    let host = TestHost::new().set("embeddings.url=\"https://a.example/\"").set("embeddings.command=[\"x\"]");
    let refused = host.build().map(|_| ()).expect_err("a refusal");
    assert_eq!(refused.message, "[embeddings] has both `url` and `command`");
}
