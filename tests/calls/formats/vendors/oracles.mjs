// Asks the vendors' own code about the goldens: their schema transformers find nothing to change, their parsers nothing
// to refuse.
//
//   node oracles.mjs DIRECTORY

import { deepStrictEqual } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import {
  CallToolRequestSchema,
  CallToolResultSchema,
  JSONRPCResultResponseSchema,
  ListToolsResultSchema,
} from "@modelcontextprotocol/core";
import { toStrictJsonSchema } from "openai/lib/transform";

const golden = (name) => JSON.parse(readFileSync(join(process.argv[2], `${name}.json`), "utf8"));

let asked = 0;
function unchanged(of, what, transform) {
  try {
    deepStrictEqual(transform(what), what);
  } catch (error) {
    console.error(`${of}: ${error.message}`);
    process.exitCode = 1;
  }
  asked += 1;
}

for (const name of ["openai-chat", "openai-responses"]) {
  const functions = golden(name).map((tool) => tool.function ?? tool);
  for (const { name: tool, parameters } of functions.filter((tool) => tool.strict)) {
    unchanged(`${name}, ${tool}`, parameters, toStrictJsonSchema);
  }
}
for (const { name, input_schema } of golden("anthropic-strict-on")) {
  unchanged(`anthropic-strict-on, ${name}`, input_schema, transformJSONSchema);
}
for (const [name, transform] of [["strict-openai", toStrictJsonSchema], ["strict-anthropic", transformJSONSchema]]) {
  for (const [schema, said] of Object.entries(golden(name)).filter(([, said]) => said.schema)) {
    unchanged(`${name}, ${schema}`, said.schema, transform);
  }
}
unchanged("mcp", golden("mcp"), (list) => ListToolsResultSchema.parse(list));
for (const { method, params } of golden("calls-mcp")) {
  unchanged("calls-mcp", { method, params }, (call) => CallToolRequestSchema.parse(call));
}
for (const response of golden("results-mcp")) {
  unchanged("results-mcp", response, (response) => JSONRPCResultResponseSchema.parse(response));
  unchanged("results-mcp", response.result, (result) => CallToolResultSchema.parse(result));
}

console.log(`asked the vendors' code about ${asked} values`);
