// `{{name}}`: greets.

import { plugin } from "./toolcrib.js";

const greet = {
  name: "{{name}}",
  summary: "Greet somebody by name.",
  whenToUse: "You want a greeting.",
  whenNotToUse: "You want to send the greeting to somebody: this tool sends nothing.",
  disambiguation: "No other tool greets.",
  examples: [{ name: "Ada" }],
  input: { properties: { name: { type: "string", description: "Whom to greet; default: the world." } } },
  output: { properties: { greeting: { type: "string" } }, required: ["greeting"] },

  // A failure is `throw fail("execution_failed", "what happened", { hint: "what to change" })`, with `fail` imported
  // from "./toolcrib.js". Any other exception fails the call too, with its message and its line.
  call({ name = "world" }) {
    return { greeting: `Hello, ${name}!` };
  },
};

// A second tool is a second object: `plugin(greet, other)`.
export const tools = plugin(greet);
