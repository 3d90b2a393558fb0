//! Memories. The numbers are those of the cases of an agent of several processes.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

async fn save(host: &TestHost, memory: Value) -> String {
    host.result("memory_save", memory).await["memory_id"].as_str().expect("an id").to_owned()
}

async fn recall(host: &TestHost, question: Value) -> Vec<Value> {
    host.result("memory_recall", question).await["memories"].as_array().expect("a list").clone()
}

fn ids(memories: &[Value]) -> Vec<&str> {
    memories.iter().map(|memory| memory["memory_id"].as_str().expect("an id")).collect()
}

/// Case 41: by one of its words, without a model.
#[tokio::test(flavor = "multi_thread")]
async fn a_fact_is_found_by_one_of_its_words() {
    let host = TestHost::new();
    let id = save(&host, json!({ "content": "The Größe of the river is known." })).await;
    save(&host, json!({ "content": "Something else." })).await;
    let found = recall(&host, json!({ "query": "how wide is that RIVER?" })).await;
    assert_eq!(ids(&found), [&*id]);
    assert_eq!(
        (&found[0]["memory_type"], &found[0]["score"], &found[0]["accessed"]),
        (&json!("fact"), &json!(1.0), &json!(0))
    );
    assert!((found[0]["importance"].as_f64().expect("a number") - 0.6).abs() < 0.01);
    assert_eq!(recall(&host, json!({ "query": "große" })).await[0]["accessed"], 1, "accents and case do not count");
    let none = host.call("memory_recall", json!({ "query": "mountains" })).await.outcome.expect("a result");
    assert_eq!((&none.result["memories"], &none.result["total"]), (&json!([]), &json!(2)));
    assert_eq!(none.notices, ["nothing was found: other words may find it, or `mode` `recent`"]);
}

/// The example of `host/docs/records.md`.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_finds_a_fact_by_the_stems_of_its_words() {
    let host = TestHost::new();
    let id = save(&host, json!({ "content": "Deploys go out on Tuesdays.", "memory_type": "decision" })).await;
    assert_eq!(ids(&recall(&host, json!({ "query": "when do we deploy?" })).await), [&*id]);
}

/// Case 43: the type holds in each list, not after.
#[tokio::test(flavor = "multi_thread")]
async fn a_type_is_looked_for_among_many_of_another() {
    let host = TestHost::new();
    let id = save(&host, json!({ "content": "tea is served at four" })).await;
    for number in 0..10 {
        let like = json!({ "content": format!("tea, tea and tea {number}"), "memory_type": "preference" });
        save(&host, like).await;
    }
    let found = recall(&host, json!({ "query": "tea", "memory_type": "fact", "max_results": 1 })).await;
    assert_eq!(ids(&found), [&*id]);
}

/// Case 44, and other bounds: nothing is kept of what is refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_with_what_can() {
    let host = TestHost::new();
    let refused = async |memory: Value| {
        let failure = host.failure("memory_save", memory).await;
        format!("{} {}", failure.message, failure.hint.unwrap_or_default())
    };
    assert_eq!(
        refused(json!({ "content": "x", "importance": 1.5 })).await,
        "`importance` is 1.5 it is a number from 0 to 1"
    );
    let said = refused(json!({ "content": "x", "memory_type": "rumour" })).await;
    assert!(said.contains("observation") && said.contains("todo"), "{said}");
    let said = refused(json!({ "content": "x", "associations": [{ "target_id": "m1", "relation": "likes" }] })).await;
    assert!(said.contains("caused_by") && said.contains("part_of"), "{said}");
    assert!(refused(json!({ "content": " \n" })).await.starts_with("`content` is empty"));
    assert!(refused(json!({ "content": "x".repeat(50_001) })).await.contains("limit: 50000"));
    assert!(refused(json!({ "content": "x", "memory_type": "human" })).await.contains("`human_id`"));
    let weight = json!([{ "target_id": "m1", "relation": "updates", "weight": -1 }]);
    assert!(refused(json!({ "content": "x", "associations": weight })).await.starts_with("`weight` is -1"));
    for (odd, said) in [
        (json!({}), "`mode` `hybrid` needs a `query`"),
        (json!({ "query": "?!" }), "`mode` `hybrid` needs a `query`"),
        (json!({ "mode": "typed" }), "`mode` `typed` needs `memory_type`"),
        (json!({ "query": "a", "max_results": 51 }), "`max_results` is 51"),
    ] {
        let failure = host.failure("memory_recall", odd).await;
        assert!(failure.kind == Kind::InvalidArguments && failure.message.starts_with(said), "{failure:?}");
    }
    assert_eq!(recall(&host, json!({ "mode": "recent" })).await, Vec::<Value>::new());
}

/// Case 45: what belongs to an important memory that has the word is found, over two steps and both ways.
#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_an_important_memory_is_found_with_it() {
    let host = TestHost::new();
    let to = |id: &str, relation: &str| json!([{ "target_id": id, "relation": relation, "weight": 0.9 }]);
    let goal = save(&host, json!({ "content": "All machines become quiet.", "memory_type": "goal" })).await;
    let near = save(&host, json!({ "content": "Fans are ordered.", "associations": to(&goal, "part_of") })).await;
    let far = save(&host, json!({ "content": "The order is late.", "associations": to(&near, "caused_by") })).await;
    let further = save(&host, json!({ "content": "Snow.", "associations": to(&far, "caused_by") })).await;
    let minor = save(&host, json!({ "content": "quiet hours" })).await;
    let beside = save(&host, json!({ "content": "Sunday.", "associations": to(&minor, "related_to") })).await;
    let found = recall(&host, json!({ "query": "quiet" })).await;
    let found = ids(&found);
    assert_eq!(found[0], goal, "it is in both lists");
    assert!([&near, &far, &minor].iter().all(|id| found.contains(&id.as_str())), "{found:?}");
    assert!(!found.contains(&further.as_str()) && !found.contains(&beside.as_str()), "{found:?}");
    let typed = recall(&host, json!({ "query": "quiet", "memory_type": "fact" })).await;
    assert!(!ids(&typed).contains(&goal.as_str()));

    let unknown = json!({ "content": "x", "associations": to("m99", "updates") });
    let saved = host.call("memory_save", unknown).await.outcome.expect("saved all the same");
    assert_eq!(saved.notices, ["it was not linked to `m99`: that is no other memory, or linked already"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_memory_is_made_of_two_together_or_not_at_all() {
    let host = TestHost::new();
    let to = |id: &str| json!([{ "target_id": id, "relation": "updates", "weight": 1 }]);
    let goal = save(&host, json!({ "content": "Be on time.", "memory_type": "goal" })).await;
    let one = save(&host, json!({ "content": "The train leaves at nine." })).await;
    let saved =
        host.result("memory_save", json!({ "content": "the train leaves at nine!", "associations": to(&goal) })).await;
    assert_eq!(saved["near_duplicates"], json!([{ "memory_id": one, "preview": "The train leaves at nine." }]));
    let two = saved["memory_id"].as_str().expect("an id").to_owned();
    let pair = |survivor: &str, absorbed: &str| json!({ "survivor_id": survivor, "absorbed_id": absorbed, "merged_content": "The train leaves at nine sharp." });
    let merge = |pairs: Value| json!({ "partition": "fact", "batch": pairs });

    for (pairs, said) in [
        (json!([pair(&one, &two), pair(&one, &goal)]), format!("`{one}` is in the batch twice")),
        (json!([pair(&one, &two), pair("m98", "m99")]), "there is no memory `m98`".into()),
        (json!([pair(&one, &goal)]), format!("`{goal}` is of another type than the partition")),
        (json!([]), "`batch` has 0 pairs".into()),
    ] {
        assert_eq!(host.failure("memory_consolidate", merge(pairs)).await.message, said);
    }
    assert_eq!(recall(&host, json!({ "mode": "typed", "memory_type": "fact" })).await.len(), 2, "nothing was done");
    assert_eq!(host.result("memory_consolidate", merge(json!([pair(&one, &two)]))).await, json!({ "consolidated": 1 }));
    let left = recall(&host, json!({ "mode": "typed", "memory_type": "fact" })).await;
    assert_eq!((ids(&left), &left[0]["content"]), (vec![&*one], &json!("The train leaves at nine sharp.")));
    // The link of the absorbed one leads to the one that stayed, from either side.
    let by_goal = recall(&host, json!({ "query": "time" })).await;
    assert_eq!(ids(&by_goal), [&*goal, &*one]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_was_forgotten_is_not_recalled() {
    let host = TestHost::new();
    let id = save(&host, json!({ "content": "wrong" })).await;
    assert_eq!(
        host.result("memory_delete", json!({ "memory_id": id, "reason": "it is wrong" })).await,
        json!({ "memory_id": id, "forgotten": true })
    );
    assert_eq!(recall(&host, json!({ "query": "wrong" })).await, Vec::<Value>::new());
    let again = host.call("memory_delete", json!({ "memory_id": id })).await.outcome.expect("a result");
    assert_eq!(
        (&again.result["forgotten"], again.notices),
        (&json!(false), vec![format!("`{id}` was forgotten already")])
    );
    assert_eq!(host.failure("memory_delete", json!({ "memory_id": "m77" })).await.message, "there is no memory `m77`");
    assert_ne!(save(&host, json!({ "content": "right" })).await, id, "an id is given once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_one_memory_that_grows() {
    let host = TestHost::new();
    let about = |text: &str, human: &str| json!({ "content": text, "memory_type": "human", "human_id": human });
    let one = save(&host, about("Ada likes tea.", "ada")).await;
    let other = save(&host, about("Ben likes coffee.", "ben")).await;
    let added = host.result("memory_save", about("She is in Lisbon.", "ada")).await;
    assert_eq!(added, json!({ "memory_id": one, "added": true }));
    assert_ne!(one, other);
    let found = recall(&host, json!({ "query": "Lisbon" })).await;
    assert_eq!(
        (&found[0]["content"], &found[0]["human_id"]),
        (&json!("Ada likes tea.\nShe is in Lisbon."), &json!("ada"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_come_in_the_order_that_is_asked_for() {
    let host = TestHost::new();
    let mut all = Vec::new();
    for (text, importance) in [("tea one", 0.2), ("tea two", 0.9), ("tea three", 0.5)] {
        all.push(save(&host, json!({ "content": text, "importance": importance })).await);
    }
    let order = async |question: Value| {
        ids(&recall(&host, question).await)
            .iter()
            .map(|id| all.iter().position(|known| known == id).expect("known"))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(json!({ "mode": "recent" })).await, [2, 1, 0]);
    assert_eq!(order(json!({ "mode": "important" })).await, [1, 2, 0]);
    assert_eq!(order(json!({ "mode": "recent", "max_results": 1 })).await, [2]);
    for _ in 0..2 {
        assert_eq!(order(json!({ "query": "two" })).await, [1]);
    }
    assert_eq!(order(json!({ "query": "tea", "sort_by": "most_accessed" })).await, [1, 2, 0]);
    assert_eq!(order(json!({ "query": "tea", "sort_by": "importance" })).await, [1, 2, 0]);
    assert_eq!(order(json!({ "query": "tea", "sort_by": "recent" })).await, [2, 1, 0]);
}

/// Case 50: what one agent remembers, no other finds, counts or forgets.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_agent_is_recalled_by_another() {
    let host = TestHost::new().user(
        "[toolset.otter]\ntools = [\"memory_save\", \"memory_recall\", \"memory_delete\", \"memory_consolidate\"]\nsession = [\"agent\"]\n",
    );
    let call_as = async |agent: &str, tool: &str, arguments: Value| host.call_as("otter", agent, tool, arguments).await;
    let one = call_as("one", "memory_save", json!({ "content": "the river", "importance": 1 })).await.expect("saved");
    for question in [json!({ "query": "river" }), json!({ "mode": "recent" }), json!({ "mode": "important" })] {
        assert_eq!(call_as("two", "memory_recall", question).await, Ok(json!({ "memories": [], "total": 0 })));
    }
    let forget = json!({ "memory_id": one["memory_id"] });
    assert!(call_as("two", "memory_delete", forget).await.is_err());
    let linked =
        json!({ "content": "a boat", "associations": [{ "target_id": one["memory_id"], "relation": "part_of" }] });
    let two = call_as("two", "memory_save", linked).await.expect("saved");
    assert_eq!(two["memory_id"], one["memory_id"], "ids are counted for each agent");
    let found = call_as("one", "memory_recall", json!({ "query": "river boat" })).await.expect("found");
    assert_eq!((&found["total"], &found["memories"][0]["content"]), (&json!(1), &json!("the river")));
}

/// The labelled set, kept by a host.
struct Labelled {
    host: TestHost,
    set: Value,
    ids: Vec<String>,
}

/// Vectors of the set's texts by a real model, as a program that makes them.
fn model() -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/memory");
    format!("embeddings.command=[\"python3\", {:?}, {:?}]", place.join("model.py"), place.join("vectors.json"))
}

impl Labelled {
    async fn of(host: TestHost) -> Self {
        let set: Value = serde_json::from_str(include_str!("memory/set.json")).expect("the set is JSON");
        let mut all: Vec<String> = Vec::new();
        for memory in set["memories"].as_array().expect("memories") {
            let to = memory["to"].as_array().into_iter().flatten().map(|to| {
                let place = usize::try_from(to[0].as_u64().expect("a place")).expect("a small number");
                json!({ "target_id": all[place], "relation": to[1], "weight": to[2] })
            });
            let to: Vec<Value> = to.collect();
            let memory = json!({ "content": memory["content"], "memory_type": memory["type"], "associations": to });
            all.push(save(&host, memory).await);
        }
        host.parts().0.settled(Duration::from_secs(60)).await;
        Self { host, set, ids: all }
    }

    /// How many answers to these questions are among the first five, of how many, and which are not.
    async fn recalled(&self, questions: &str) -> (usize, usize, Vec<String>) {
        let mut found = Vec::new();
        for question in self.set[questions].as_array().expect("questions") {
            let memories = recall(&self.host, json!({ "query": question["query"], "max_results": 5 })).await;
            let place = |id: &str| self.ids.iter().position(|known| known == id).expect("a memory of the set");
            found.push(ids(&memories).into_iter().map(place).collect());
        }
        self.judged(questions, &found)
    }

    /// The same of the five whose vectors are nearest.
    fn nearest(&self, questions: &str) -> (usize, usize, Vec<String>) {
        let known: Value = serde_json::from_str(include_str!("memory/vectors.json")).expect("the vectors are JSON");
        let vector = |text: &Value| -> Vec<f32> {
            let packed = known["vectors"][text.as_str().expect("a text")].as_str().expect("its vector");
            let numbers = BASE64_STANDARD.decode(packed).expect("base64");
            let numbers: Vec<f32> = numbers.into_iter().map(|number| f32::from(number.cast_signed())).collect();
            let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
            numbers.iter().map(|number| number / length).collect()
        };
        let texts = |list: &str, name: &str| -> Vec<Vec<f32>> {
            self.set[list].as_array().expect("a list").iter().map(|entry| vector(&entry[name])).collect()
        };
        let memories = texts("memories", "content");
        let found = texts(questions, "query").into_iter().map(|question| {
            let cosine = |place: usize| -> f32 { memories[place].iter().zip(&question).map(|(a, b)| a * b).sum() };
            let mut places: Vec<usize> = (0..memories.len()).collect();
            places.sort_by(|one, other| cosine(*other).total_cmp(&cosine(*one)));
            places.truncate(5);
            places
        });
        self.judged(questions, &found.collect::<Vec<_>>())
    }

    fn judged(&self, questions: &str, found: &[Vec<usize>]) -> (usize, usize, Vec<String>) {
        let (mut hits, mut wanted, mut missed) = (0, 0, Vec::new());
        for (question, found) in self.set[questions].as_array().expect("questions").iter().zip(found) {
            for place in question["is"].as_array().expect("places") {
                let place = usize::try_from(place.as_u64().expect("a place")).expect("a small number");
                wanted += 1;
                match found.contains(&place) {
                    true => hits += 1,
                    false => missed.push(format!("{}: {}", question["query"], self.set["memories"][place]["content"])),
                }
            }
        }
        (hits, wanted, missed)
    }
}

/// How good recall is: of the memories that answer a question of a small labelled set, so many are among the first five. The set is fixed,
/// and so are the vectors, so the numbers are: whoever changes the ranking sees what it does.
#[tokio::test(flavor = "multi_thread")]
async fn the_labelled_set_is_recalled() {
    let by_words = Labelled::of(TestHost::new()).await;
    let fused = Labelled::of(TestHost::new().set(&model())).await;
    for (how, recalled, questions, least) in [
        ("words and links", by_words.recalled("questions").await, "questions", 90),
        ("words and links", by_words.recalled("in_other_words").await, "in_other_words", 0),
        ("meaning", fused.nearest("questions"), "questions", 90),
        ("meaning", fused.nearest("in_other_words"), "in_other_words", 90),
        ("words, meaning and links", fused.recalled("questions").await, "questions", 90),
        ("words, meaning and links", fused.recalled("in_other_words").await, "in_other_words", 90),
    ] {
        let (hits, wanted, missed) = recalled;
        println!("recall@5 of {how}, {questions}: {hits} of {wanted}; missed: {missed:#?}");
        assert!(hits * 100 >= wanted * least, "{how}, {questions}: {hits} of {wanted}; missed: {missed:#?}");
    }
}
