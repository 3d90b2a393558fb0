"""`{{name}}`: greets."""

from toolcrib import plugin, tool


@tool(
    name="{{name}}",
    summary="Greet somebody by name.",
    when_to_use="You want a greeting.",
    when_not_to_use="You want to send the greeting to somebody: this tool sends nothing.",
    disambiguation="No other tool greets.",
    examples=[{"name": "Ada"}],
    input={"properties": {"name": {"type": "string", "description": "Whom to greet; default: the world."}}},
    output={"properties": {"greeting": {"type": "string"}}, "required": ["greeting"]},
)
def greet(name="world"):
    # A failure is `raise Fail("execution_failed", "what happened", hint="what to change")`, with `Fail` imported
    # from `toolcrib`. Any other exception fails the call too, with its message and its line.
    return {"greeting": f"Hello, {name}!"}


# A second tool is a second function: `plugin(greet, other)`.
Tools = plugin(greet)
