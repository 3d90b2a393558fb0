//! Three tools in Rust: one that reads a file, one that makes a request, one that fails in every way.

use serde::{Deserialize, Serialize};
use toolcrib_sdk::http::Request;
use toolcrib_sdk::{Content, Failure, Guidance, JsonSchema, Kind, Result, Tool, attach, events, files, notice, schemars};

const GUIDANCE: Guidance = Guidance { when_to_use: "", when_not_to_use: "", disambiguation: "", examples: &[] };

struct Lines;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Path {
    /// File to count.
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Counted {
    lines: usize,
}

impl Tool for Lines {
    const NAME: &str = "rust_lines";
    const SUMMARY: &str = "Count the lines of a text file.";
    const GUIDANCE: Guidance = GUIDANCE;
    type Input = Path;
    type Output = Counted;

    fn call(input: Path) -> Result<Counted> {
        events::info("counting");
        let text = files::read_text(&input.path)?;
        notice(format!("{} characters", text.chars().count()));
        attach(Content::Text(input.path));
        Ok(Counted { lines: text.matches('\n').count() })
    }
}

struct Get;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Url {
    /// Address to ask.
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct Got {
    status: u16,
    bytes: usize,
    #[serde(rename = "type")]
    kind: Option<String>,
    start: String,
}

impl Tool for Get {
    const NAME: &str = "rust_get";
    const SUMMARY: &str = "Make a GET request.";
    const GUIDANCE: Guidance = GUIDANCE;
    type Input = Url;
    type Output = Got;

    fn call(input: Url) -> Result<Got> {
        let response = Request::get(&input.url).header("accept", "text/plain").send()?;
        let start = String::from_utf8_lossy(&response.body).chars().take(8).collect();
        let kind = response.header("content-type").map(str::to_owned);
        Ok(Got { status: response.status, bytes: response.body.len(), kind, start })
    }
}

struct Fail;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Way {
    /// The way.
    how: String,
}

impl Tool for Fail {
    const NAME: &str = "rust_fail";
    const SUMMARY: &str = "Fail in a way of your choice.";
    const GUIDANCE: Guidance = GUIDANCE;
    type Input = Way;
    type Output = String;

    fn call(input: Way) -> Result<String> {
        match input.how.as_str() {
            "kind" => Err(Failure::new(Kind::BUSY, "somebody else has it").hint("try again later")),
            "throw" => panic!("this is the reason"),
            "capability" => files::read_text("none"),
            "spin" => loop {
                std::hint::black_box(0);
            },
            "big" => Ok("x".repeat((1 << 20) + 1)),
            "memory" => Ok(vec![1_u8; 1 << 30].len().to_string()),
            "exit" => std::process::exit(3),
            "log" => {
                println!("said by a tool");
                events::warn("warned by a tool");
                Ok(String::new())
            }
            "config" => Ok(std::env::var("GREETING").unwrap_or_default()),
            other => Err(Failure::invalid(format!("`{other}` is not a way"))),
        }
    }
}

toolcrib_sdk::export!(Lines, Get, Fail);
