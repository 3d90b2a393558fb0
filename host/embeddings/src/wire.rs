//! OpenAI's form of a question for vectors, and of its answer, as most servers speak it.

use super::{NoVectors, SHOWN};
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use serde::Deserialize;
use serde_json::{Value, json};

/// Numbers of a vector at most.
const MOST_NUMBERS: usize = 8192;

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Vectors { data: Vec<Vector> },
    Refused { error: Value },
}

#[derive(Deserialize)]
struct Vector {
    /// Which text it is of; without it, that of its place.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The question for the vectors of these texts.
pub(super) fn request(model: &str, texts: &[&str]) -> String {
    let mut request = json!({ "input": texts, "encoding_format": "float" });
    if !model.is_empty() {
        request["model"] = model.into();
    }
    request.to_string()
}

/// The vectors of an answer, in the order of their texts, each of length 1.
pub(super) fn vectors(answer: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, NoVectors> {
    // What has another form is no word about the texts.
    let refused = |why: String| {
        NoVectors::Model(Failure::new(Kind::Unavailable, format!("the model's answer cannot be used: {why}")))
    };
    let data = match serde_json::from_slice(answer) {
        Ok(Answer::Vectors { data }) => data,
        Ok(Answer::Refused { error }) => {
            let said = sanitize::beginning(&error.to_string(), SHOWN);
            return Err(NoVectors::Texts(format!("the model does not take the text: {said}")));
        }
        Err(_) => {
            return Err(refused("it is not JSON with `data`, a list of objects with `embedding`, numbers".into()));
        }
    };
    let mut vectors = vec![Vec::new(); texts];
    let found = data.len();
    for (place, Vector { index, embedding }) in data.into_iter().enumerate() {
        if let Some(vector) = vectors.get_mut(index.unwrap_or(place)) {
            *vector = embedding;
        }
    }
    let numbers = vectors.first().map_or(0, Vec::len);
    if found != texts || vectors.iter().any(|vector| vector.len() != numbers || numbers == 0) {
        return Err(refused(format!("it has not one vector for each of {texts} texts, all of one length")));
    }
    if numbers > MOST_NUMBERS {
        return Err(refused(format!("vectors of {numbers} numbers are too long (limit: {MOST_NUMBERS})")));
    }
    match vectors.iter_mut().all(|vector| normalize(vector)) {
        true => Ok(vectors),
        false => Err(NoVectors::Texts("the vector of a text has no direction".into())),
    }
}

/// Gives a vector the length 1; false where it has no direction.
fn normalize(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    length.is_normal() && vector.iter().all(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str, texts: usize) -> Result<Vec<Vec<f32>>, String> {
        vectors(answer.as_bytes(), texts).map_err(|refused| match refused {
            NoVectors::Texts(why) => format!("texts: {why}"),
            NoVectors::Model(failure) => format!("model: {}", failure.message),
        })
    }

    #[test]
    fn vectors_come_in_the_order_of_their_texts_and_have_one_length() {
        let answer = r#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3.0,4e0]}],"usage":{}}"#;
        assert_eq!(read(answer, 2).unwrap(), [[0.6, 0.8], [0.0, 1.0]]);
        assert_eq!(read(r#"{"data":[{"embedding":[5]}]}"#, 1).unwrap(), [[1.0]]);
    }

    #[test]
    fn an_answer_that_cannot_be_used_is_refused() {
        for (answer, texts, why) in [
            ("", 1, "model: the model's answer cannot be used: it is not JSON"),
            ("[]", 1, "model: the model's answer cannot be used: it is not JSON"),
            (r#"{"data":[]}"#, 1, "model: the model's answer cannot be used: it has not one vector for each"),
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
                2,
                "model: the model's answer cannot be used: it has not one vector for each",
            ),
            (
                r#"{"data":[{"index":7,"embedding":[1]}]}"#,
                1,
                "model: the model's answer cannot be used: it has not one vector for each",
            ),
            (r#"{"data":[{"embedding":[1,2]},{"embedding":[1]}]}"#, 2, "all of one length"),
            (r#"{"data":[{"embedding":[0,0]}]}"#, 1, "texts: the vector of a text has no direction"),
            (r#"{"data":[{"embedding":[1e39,0]}]}"#, 1, "texts: the vector of a text has no direction"),
            (r#"{"data":[{"embedding":["1"]}]}"#, 1, "model: the model's answer cannot be used: it is not JSON"),
            (r#"{"error":{"message":"too\nlong"}}"#, 1, "texts: the model does not take the text: {\"message\":\"too"),
        ] {
            let refused = read(answer, texts).unwrap_err();
            assert!(refused.contains(why), "{answer}: {refused}");
        }
        let long = format!(r#"{{"data":[{{"embedding":[{}1]}}]}}"#, "1,".repeat(MOST_NUMBERS));
        assert!(read(&long, 1).unwrap_err().contains("too long"));
    }

    #[test]
    fn a_model_is_named_where_it_is_set() {
        assert_eq!(request("", &["a"]), r#"{"input":["a"],"encoding_format":"float"}"#);
        assert!(request("m", &["a", "b"]).contains(r#""model":"m""#));
    }
}
