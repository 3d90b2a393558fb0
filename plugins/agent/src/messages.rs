//! What people read: `reply`, `ask`, `react`, `skip`, `send_message_to_another_channel`.

use crate::{check_most, check_text, hand_over};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// Characters of the name of a thread, cards, rows of elements, buttons of a row, choices of a menu, and blocks.
const THREAD_CHARS: usize = 100;
const CARDS: usize = 10;
const ROWS: usize = 5;
const BUTTONS: usize = 5;
const CHOICES: usize = 25;
const BLOCKS: usize = 50;
/// Answers of a poll, and how long it may run: 32 days.
const POLL_ANSWERS: usize = 10;
const POLL_HOURS: u32 = 768;
/// Options of a question.
const OPTIONS: usize = 10;

pub(crate) struct Reply;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplyInput {
    /// Text, in the format of the channel.
    content: String,
    /// Name of a thread to start with the message: at most 100 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_name: Option<String>,
    /// At most 10 cards below the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cards: Vec<Card>,
    /// At most 5 rows, each with buttons or one menu.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interactive_elements: Vec<Row>,
    /// Blocks in the format of the channel's service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Poll below the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    poll: Option<Poll>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Card {
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Link of the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Named values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
    /// Last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    footer: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Field {
    /// Name.
    name: String,
    /// Value.
    value: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Row {
    /// At most 5 buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    buttons: Vec<Choice>,
    /// At most 25 menu choices, instead of buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    menu: Vec<Choice>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// Visible text.
    label: String,
    /// Returned if chosen; default: the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Poll {
    /// Question.
    question: String,
    /// 2 to 10 answers.
    answers: Vec<String>,
    /// Several answers may be chosen.
    #[serde(default)]
    allow_multiselect: bool,
    /// Hours that it runs: 1 to 768.
    #[serde(default = "a_day")]
    duration_hours: u32,
}

fn a_day() -> u32 {
    24
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Sent {
    /// It was handed to the channel.
    sent: bool,
    /// The conversation that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
}

#[derive(Deserialize)]
struct Delivered {
    conversation_id: Option<String>,
}

impl From<Delivered> for Sent {
    fn from(delivered: Delivered) -> Self {
        Self { sent: true, conversation_id: delivered.conversation_id }
    }
}

impl Tool for Reply {
    const NAME: &str = "reply";
    const TITLE: Option<&str> = Some("Reply to the person");
    const SUMMARY: &str = "Send a message to the person in this conversation.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You have something to say to the person. Nothing else that you write reaches them.",
        when_not_to_use: "You have nothing to add: use `skip`. To offer answers to choose from: use `ask`.",
        disambiguation: "",
        examples: &[r#"{"content":"The build is green again."}"#],
    };
    const EVENTS: &[&str] = &["message.send"];
    type Input = ReplyInput;
    type Output = Sent;

    fn call(input: ReplyInput) -> Result<Sent> {
        input.check()?;
        hand_over::<Delivered>("message.send", &input).map(Sent::from)
    }
}

impl ReplyInput {
    fn check(&self) -> Result<()> {
        check_text("content", &self.content)?;
        if let Some(name) = &self.thread_name {
            check_text("thread_name", name)?;
            check_most("thread_name", name.chars().count(), THREAD_CHARS, "characters")?;
        }
        check_most("cards", self.cards.len(), CARDS, "entries")?;
        check_most("interactive_elements", self.interactive_elements.len(), ROWS, "rows")?;
        check_most("blocks", self.blocks.len(), BLOCKS, "entries")?;
        self.interactive_elements.iter().try_for_each(Row::check)?;
        self.poll.as_ref().map_or(Ok(()), Poll::check)
    }
}

impl Row {
    fn check(&self) -> Result<()> {
        if self.buttons.is_empty() == self.menu.is_empty() {
            return Err(Failure::invalid("a row of `interactive_elements` has either `buttons` or a `menu`"));
        }
        check_most("buttons", self.buttons.len(), BUTTONS, "entries")?;
        check_most("menu", self.menu.len(), CHOICES, "entries")?;
        self.buttons.iter().chain(&self.menu).try_for_each(|choice| check_text("label", &choice.label))
    }
}

impl Poll {
    fn check(&self) -> Result<()> {
        check_text("question", &self.question)?;
        check_choices("answers", &self.answers, POLL_ANSWERS)?;
        if !(1..=POLL_HOURS).contains(&self.duration_hours) {
            return Err(Failure::invalid(format!(
                "`duration_hours` is {}, not 1 to {POLL_HOURS}",
                self.duration_hours
            )));
        }
        Ok(())
    }
}

/// Two choices or more, each another one.
fn check_choices(name: &str, choices: &[String], most: usize) -> Result<()> {
    if choices.len() < 2 {
        return Err(Failure::invalid(format!("`{name}` has {} to choose from: give 2 to {most}", choices.len())));
    }
    check_most(name, choices.len(), most, "entries")?;
    choices.iter().try_for_each(|choice| check_text(name, choice))?;
    let distinct: HashSet<&str> = choices.iter().map(|choice| choice.trim()).collect();
    if distinct.len() < choices.len() {
        return Err(Failure::invalid(format!("`{name}` has the same one twice")));
    }
    Ok(())
}

pub(crate) struct Ask;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskInput {
    /// Question.
    question: String,
    /// 2 to 10 answers to choose from; without them the person answers freely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    /// The person may choose several.
    #[serde(default)]
    multi_select: bool,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Asked {
    /// The person was asked. Their answer is a later message.
    asked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    question_id: Option<String>,
}

impl Tool for Ask {
    const NAME: &str = "ask";
    const TITLE: Option<&str> = Some("Ask the person");
    const SUMMARY: &str = "Ask the person a question, with or without answers to choose from.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need a decision or a fact that only the person has.",
        when_not_to_use: "",
        disambiguation: "It does not wait: the answer is a later message, so end your turn.",
        examples: &[r#"{"question":"Deploy now?","options":["Yes","Tonight","No"]}"#],
    };
    const EVENTS: &[&str] = &["message.ask"];
    type Input = AskInput;
    type Output = Asked;

    fn call(input: AskInput) -> Result<Asked> {
        input.check()?;
        hand_over("message.ask", &input).map(|Question { question_id }| Asked { asked: true, question_id })
    }
}

impl AskInput {
    fn check(&self) -> Result<()> {
        check_text("question", &self.question)?;
        if self.options.is_empty() {
            let why = "`multi_select` is for `options`, and there are none";
            return if self.multi_select { Err(Failure::invalid(why)) } else { Ok(()) };
        }
        check_choices("options", &self.options, OPTIONS)
    }
}

pub(crate) struct React;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReactInput {
    /// One emoji, such as 👍, or its name, such as `:thumbsup:`.
    emoji: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Reacted {
    /// The emoji is on the person's message.
    reacted: bool,
}

#[derive(Deserialize)]
struct Done {}

impl Tool for React {
    const NAME: &str = "react";
    const TITLE: Option<&str> = Some("React to a message");
    const SUMMARY: &str = "Put an emoji on the message that you answer.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A sign is enough: seen, agreed, thanks.",
        when_not_to_use: "The person needs words: use `reply`.",
        disambiguation: "",
        examples: &[r#"{"emoji":"👍"}"#],
    };
    const EVENTS: &[&str] = &["message.react"];
    type Input = ReactInput;
    type Output = Reacted;

    fn call(input: ReactInput) -> Result<Reacted> {
        if !is_emoji(&input.emoji) {
            return Err(Failure::invalid("`emoji` is not an emoji").hint("give one such as 👍, or `:thumbsup:`"));
        }
        hand_over("message.react", &input).map(|Done {}| Reacted { reacted: true })
    }
}

/// An emoji has signs beyond ASCII and no letters; or it is named between colons, as `:name:`, `<:name:1>` or `<a:name:1>`.
fn is_emoji(text: &str) -> bool {
    const CHARS: usize = 16;
    const NAME: usize = 64;
    let is_name = |name: &str| {
        (1..=NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    let between = |first, last| text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    if let Some(name) = between(":", ":") {
        return is_name(name);
    }
    if let Some(own) = between("<:", ">").or_else(|| between("<a:", ">")) {
        let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        return own.split_once(':').is_some_and(|(name, id)| is_name(name) && is_id(id));
    }
    (1..=CHARS).contains(&text.chars().count())
        && !text.is_ascii()
        && !text.chars().any(|char| char.is_alphabetic() || char.is_whitespace() || char.is_control())
}

pub(crate) struct Skip;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkipInput {
    /// Why you say nothing. The person does not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Skipped {
    /// Nothing is said in this turn.
    skipped: bool,
}

impl Tool for Skip {
    const NAME: &str = "skip";
    const TITLE: Option<&str> = Some("Say nothing");
    const SUMMARY: &str = "End this turn without a message to the person.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The message was not for you, or needs no answer.",
        when_not_to_use: "The person waits for an answer: use `reply` or `react`.",
        disambiguation: "",
        examples: &[r#"{"reason":"They are talking to each other."}"#],
    };
    const EVENTS: &[&str] = &["message.skip"];
    type Input = SkipInput;
    type Output = Skipped;

    fn call(input: SkipInput) -> Result<Skipped> {
        hand_over("message.skip", &input).map(|Done {}| Skipped { skipped: true })
    }
}

pub(crate) struct SendMessageToAnotherChannel;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForwardInput {
    /// Channel, as the host application names it.
    target: String,
    /// Text.
    message: String,
}

impl Tool for SendMessageToAnotherChannel {
    const NAME: &str = "send_message_to_another_channel";
    const TITLE: Option<&str> = Some("Message another channel");
    const SUMMARY: &str = "Send a message to a channel other than this conversation's.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Somebody asked you to tell others, or a report belongs elsewhere.",
        when_not_to_use: "To answer in this conversation: use `reply`.",
        disambiguation: "It reaches people; `send_agent_message` reaches an agent.",
        examples: &[r#"{"target":"ops","message":"The deploy is done."}"#],
    };
    const EVENTS: &[&str] = &["message.forward"];
    type Input = ForwardInput;
    type Output = Sent;

    fn call(input: ForwardInput) -> Result<Sent> {
        check_text("target", &input.target)?;
        check_text("message", &input.message)?;
        hand_over::<Delivered>("message.forward", &input).map(Sent::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn reply(more: Value) -> Result<()> {
        let mut input = json!({ "content": "hi" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<ReplyInput>(input).expect("a valid form").check()
    }

    fn message(outcome: Result<()>) -> String {
        outcome.unwrap_err().message
    }

    #[test]
    fn a_reply_has_no_more_than_channels_show() {
        assert_eq!(reply(json!({})), Ok(()));
        assert_eq!(reply(json!({ "content": "[a link](https://example.com) first" })), Ok(()));
        assert_eq!(message(reply(json!({ "content": " " }))), "`content` is blank");
        let long = json!({ "thread_name": "x".repeat(101) });
        assert_eq!(message(reply(long)), "`thread_name` has 101 characters (limit: 100)");
        let cards = json!({ "cards": vec![json!({}); 11] });
        assert_eq!(message(reply(cards)), "`cards` has 11 entries (limit: 10)");
        let row = json!({ "buttons": [{ "label": "Yes" }] });
        assert_eq!(reply(json!({ "interactive_elements": [row] })), Ok(()));
        assert_eq!(
            message(reply(json!({ "interactive_elements": vec![row; 6] }))),
            "`interactive_elements` has 6 rows (limit: 5)"
        );
        for odd in [json!({}), json!({ "buttons": [{ "label": "a" }], "menu": [{ "label": "b" }] })] {
            assert!(message(reply(json!({ "interactive_elements": [odd] }))).contains("either `buttons` or a `menu`"));
        }
    }

    #[test]
    fn a_poll_has_two_answers_or_more() {
        let poll = |answers: Value, hours: u32| {
            reply(json!({ "poll": { "question": "?", "answers": answers, "duration_hours": hours } }))
        };
        assert_eq!(poll(json!(["a", "b"]), 24), Ok(()));
        assert_eq!(message(poll(json!(["a"]), 24)), "`answers` has 1 to choose from: give 2 to 10");
        assert_eq!(message(poll(json!(["a", " a "]), 24)), "`answers` has the same one twice");
        assert_eq!(message(poll(json!(["a", ""]), 24)), "`answers` is blank");
        assert_eq!(message(poll(json!(["a", "b"]), 0)), "`duration_hours` is 0, not 1 to 768");
    }

    #[test]
    fn a_question_has_options_or_none() {
        let ask = |input: Value| serde_json::from_value::<AskInput>(input).unwrap().check();
        assert_eq!(ask(json!({ "question": "?" })), Ok(()));
        assert_eq!(ask(json!({ "question": "?", "options": ["a", "b"], "multi_select": true })), Ok(()));
        assert!(message(ask(json!({ "question": "?", "multi_select": true }))).contains("there are none"));
        assert!(message(ask(json!({ "question": "?", "options": ["a"] }))).contains("give 2 to 10"));
    }

    #[test]
    fn an_emoji_is_a_sign_or_a_name_between_colons() {
        for emoji in ["👍", "🏳️‍🌈", "1️⃣", "🇩🇪", "©️", ":thumbsup:", ":+1:", "<:party:123>", "<a:party:123>"]
        {
            assert!(is_emoji(emoji), "{emoji}");
        }
        for text in
            ["", " ", "ok", "1", "é", "好", "👍 done", "👍x", ":", "::", ":a b:", "<:party>", "<:party:x>", "\n"]
        {
            assert!(!is_emoji(text), "{text}");
        }
    }
}
