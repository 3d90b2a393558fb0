//! `keeper`: keeps documents as its caller words them, and looks for them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_sdk::records::{Batch, Item, Page, Query, get};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct Keeper;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Changes to make together, each `{"put": [collection, key, body]}`, `{"expect": [collection, key, revision]}`,
    /// `{"delete": [collection, key]}`, `{"embed": [collection, key, pointer]}`, `{"confirm": [action, details]}` or `{"deep": [collection, key, depth]}`.
    #[serde(default)]
    changes: Vec<Change>,
    /// A document to read.
    get: Option<(String, String)>,
    /// What to look for.
    find: Option<Find>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Change {
    Put(String, String, Value),
    Expect(String, String, u64),
    Delete(String, String),
    Embed(String, String, String),
    /// What a person is asked first.
    Confirm(String, String),
    /// A list in a list, and so on, as many as are asked for.
    Deep(String, String, u32),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Find {
    collection: String,
    #[serde(default)]
    equals: Vec<(String, Value)>,
    between: Option<(String, Value, Value)>,
    words: Option<String>,
    any: Option<String>,
    near: Option<String>,
    order: Option<(String, bool)>,
    limit: Option<u32>,
    after: Option<String>,
    /// Leave the bodies out of the answer.
    #[serde(default)]
    keys: bool,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    item: Option<Value>,
    page: Option<Value>,
}

fn told(item: Item<Value>) -> Value {
    json!({ "key": item.key, "body": item.body, "revision": item.revision, "made": item.made_ms, "changed": item.changed_ms, "rank": item.rank })
}

impl Tool for Keeper {
    const NAME: &str = "keep";
    const SUMMARY: &str = "Keep documents, and look for them.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to see what is kept.",
        when_not_to_use: "For work.",
        disambiguation: "`note_save` is for models.",
        examples: &[r#"{"get":["notes","a"]}"#],
    };
    type Input = Input;
    type Output = Output;

    fn call(Input { changes, get: wanted, find }: Input) -> Result<Output> {
        if !changes.is_empty() {
            let batch = changes.iter().fold(Batch::new(), |batch, change| match change {
                Change::Put(collection, key, body) => batch.put(collection, key, body),
                Change::Expect(collection, key, revision) => batch.expect(collection, key, *revision),
                Change::Delete(collection, key) => batch.delete(collection, key),
                Change::Embed(collection, key, pointer) => batch.embed(collection, key, pointer),
                Change::Confirm(action, details) => batch.confirm(action, details),
                Change::Deep(collection, key, depth) => {
                    batch.put(collection, key, &(0..*depth).fold(Value::Null, |inner, _| json!([inner])))
                }
            });
            batch.commit()?;
        }
        let item = match wanted {
            Some((collection, key)) => get::<Value>(&collection, &key)?.map(told),
            None => None,
        };
        let page = find.map(look).transpose()?;
        Ok(Output { item, page })
    }
}

fn look(find: Find) -> Result<Value> {
    let mut query = Query::new(&find.collection);
    for (pointer, value) in &find.equals {
        query = query.equals(pointer, value);
    }
    if let Some((pointer, low, high)) = &find.between {
        query = query.between(pointer, low, high);
    }
    if let Some(words) = &find.words {
        query = query.words(words);
    }
    if let Some(words) = &find.any {
        query = query.any_word(words);
    }
    if let Some(text) = &find.near {
        query = query.near(text);
    }
    if let Some((pointer, descending)) = &find.order {
        query = query.order(pointer, *descending);
    }
    if let Some(limit) = find.limit {
        query = query.limit(limit);
    }
    if let Some(cursor) = &find.after {
        query = query.after(cursor);
    }
    let Page { items, total, next } = query.run::<Value>()?;
    let items: Vec<Value> = match find.keys {
        true => items.into_iter().map(|item| json!({ "key": item.key })).collect(),
        false => items.into_iter().map(told).collect(),
    };
    Ok(json!({ "items": items, "total": total, "next": next }))
}

toolcrib_sdk::export!(Keeper);
