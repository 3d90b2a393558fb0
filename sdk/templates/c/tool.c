// `{{name}}`: greets.

#include "toolcrib.h"

// A failure is `return fail("execution_failed", "what happened", "what to change", NULL);`.
static bool greet(void) {
    const char *name = text_argument("name");
    return answer(JSON({"greeting": %s}), quoted(text("Hello, %s!", name ? name : "world")));
}

const struct tool tools[] = {
    {
        .name = "{{name}}",
        .summary = "Greet somebody by name.",
        .when_to_use = "You want a greeting.",
        .when_not_to_use = "You want to send the greeting to somebody: this tool sends nothing.",
        .disambiguation = "No other tool greets.",
        .examples = JSON({"name": "Ada"}),
        .input = SCHEMA("properties": {"name": {"type": "string", "description": "Whom to greet; default: the world."}}),
        .output = SCHEMA("properties": {"greeting": {"type": "string"}}, "required": ["greeting"]),
        .call = greet,
    },
    {0}, // A second tool comes before this end.
};
