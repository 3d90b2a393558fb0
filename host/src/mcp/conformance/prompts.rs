//! The prompts, and what completes their arguments.

use super::ask;
use super::content::png;
use super::input::one_text;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

/// What arguments of prompts are completed from.
const WORDS: &[&str] = &["paris", "park", "party", "test", "testing"];

pub(super) fn all() -> Vec<Prompt> {
    vec![
        prompt("test_simple_prompt", "One text.", &[]),
        prompt("test_prompt_with_arguments", "A text with two arguments in it.", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", "A resource, and what to do with it.", &["resourceUri"]),
        prompt("test_prompt_with_image", "An image, and what to do with it.", &[]),
        prompt("test_input_required_result_prompt", "Asks for a context before there is a prompt.", &[]),
    ]
}

fn prompt(name: &str, description: &str, arguments: &[&str]) -> Prompt {
    let arguments = arguments.iter().map(|name| PromptArgument::new(*name).with_required(true)).collect();
    Prompt::new(name, Some(description), Some(arguments))
}

pub(super) fn get(
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![says("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument(request, "arg1")?, argument(request, "arg2")?);
            vec![says(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument(request, "resourceUri")?;
            let resource = ContentBlock::embedded_text(uri, "Embedded resource content for testing.");
            vec![PromptMessage::new(Role::User, resource), says("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            vec![PromptMessage::new(Role::User, png()), says("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => match asked(request) {
            Some(context) => vec![says(format!("The context is: {context}"))],
            None => {
                let form = one_text("What context should the prompt use?", "context");
                return ask::input_required(context, [("user_context", form)], None).map(Into::into);
            }
        },
        name => return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

fn says(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

fn argument<'r>(request: &'r GetPromptRequestParams, name: &str) -> Result<&'r str, ErrorData> {
    let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
    value.ok_or_else(|| ErrorData::invalid_params(format!("`{}` needs `{name}`", request.name), None))
}

fn asked(request: &GetPromptRequestParams) -> Option<String> {
    ask::text(request.input_responses.as_ref(), "user_context", "context")
}

pub(super) fn complete(request: &CompleteRequestParams) -> CompleteResult {
    let begun = &request.argument.value;
    let words = WORDS.iter().filter(|word| word.starts_with(begun)).map(|word| (*word).to_owned()).collect();
    CompleteResult::new(CompletionInfo::with_all_values(words).expect("there are few words"))
}
