//! `shell_echo`: sends text through the shell and back.

use serde::Deserialize;
use toolcrib_sdk::shell::{Command, Outcome, quoted};
use toolcrib_sdk::{Declaration, Failure, Guidance, JsonSchema, Result, Risk, Tool, schemars};

struct ShellEcho;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Text to print.
    text: String,
}

impl Tool for ShellEcho {
    const NAME: &str = "shell_echo";
    const SUMMARY: &str = "Print text through the shell and return what it printed.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to see that the shell of the backend answers.",
        when_not_to_use: "To run a command: the text is printed, never run.",
        disambiguation: "`run_shell` runs commands.",
        examples: &[r#"{"text":"hello"}"#],
    };
    type Input = Input;
    type Output = String;

    fn call(input: Input) -> Result<String> {
        let why = "print the text that the caller gave".into();
        let declaration = Declaration { risk: Risk::Low, mutation: false, privesc: false, why };
        match Command::new(&script(&input.text), &declaration).run()? {
            Outcome::Finished(done) if done.exit_code == 0 => Ok(done.stdout.marked()),
            Outcome::Finished(done) => Err(Failure::failed(format!("`printf` exited with {}", done.exit_code))),
            Outcome::Dispatched(pane) => Err(Failure::internal(format!("the command was left running in `{pane}`"))),
        }
    }
}

fn script(text: &str) -> String {
    format!("printf %s {}", quoted(text))
}

toolcrib_sdk::export!(ShellEcho);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_quotes() {
        assert_eq!(script("it's; rm -rf /"), r"printf %s 'it'\''s; rm -rf /'");
    }
}
