//! `requester`: sends one HTTP request as its caller words it, and tells what came back.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::http::Request;
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct Requester;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Method, such as `GET`.
    method: String,
    /// Where to send it.
    url: String,
    /// Names and values of headers.
    #[serde(default)]
    headers: Vec<[String; 2]>,
    /// Body to send.
    body: Option<String>,
    /// How many bytes of the answer's body to take.
    limit: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    status: u16,
    headers: Vec<[String; 2]>,
    url: String,
    body: String,
    truncated: bool,
}

impl Tool for Requester {
    const NAME: &str = "request";
    const SUMMARY: &str = "Send an HTTP request and return the answer as it came.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to see what a server answers, headers and all.",
        when_not_to_use: "To read a page: the body is not made readable.",
        disambiguation: "`fetch_url` returns the text of a page.",
        examples: &[r#"{"method":"GET","url":"https://example.com/"}"#],
    };
    type Input = Input;
    type Output = Answer;

    fn call(input: Input) -> Result<Answer> {
        let mut request = Request::new(&input.method, &input.url);
        for [name, value] in &input.headers {
            request = request.header(name, value);
        }
        if let Some(body) = input.body {
            request = request.body(body);
        }
        if let Some(limit) = input.limit {
            request = request.limit(limit);
        }
        let response = request.send()?;
        let body = String::from_utf8_lossy(&response.body).into_owned();
        let headers = response.headers.into_iter().map(|(name, value)| [name, value]).collect();
        Ok(Answer { status: response.status, headers, url: response.url, body, truncated: response.truncated })
    }
}

toolcrib_sdk::export!(Requester);
