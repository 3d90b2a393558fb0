// Three tools in JavaScript: one that reads a file, one that makes a request, one that fails in every way.
//
// It replaces `tool.js` of a project that `toolcrib plugin new --lang js --needs config,files,http` made, whose `toolcrib.js`,
// `toolcrib-config.js`, `toolcrib-files.js` and `toolcrib-http.js` it uses.

import * as config from "./toolcrib-config.js";
import * as files from "./toolcrib-files.js";
import * as http from "./toolcrib-http.js";
import { Failure, attach, fail, notice, plugin, progress } from "./toolcrib.js";

const lines = {
  name: "js_lines",
  summary: "Count the lines of a text file.",
  input: { properties: { path: { type: "string", description: "File to count." } }, required: ["path"] },
  output: { properties: { lines: { type: "integer" } }, required: ["lines"] },
  call({ path }) {
    progress(0, 1n, path);
    const text = files.readText(path);
    notice(`${text.length} characters`);
    attach("text", path);
    return { lines: text.split("\n").length - 1 };
  },
};

const get = {
  name: "js_get",
  summary: "Make a GET request.",
  input: { properties: { url: { type: "string", description: "Address to ask." } }, required: ["url"] },
  call({ url }) {
    const { status, body, headers, text } = http.get(url, { headers: { accept: "text/plain" } });
    return { status, bytes: body.length, type: headers["content-type"] ?? null, start: text().slice(0, 8) };
  },
};

const ways = {
  kind: () => { throw fail("busy", "somebody else has it", { hint: "try again later", data: { left: [1, "two"] } }); },
  throw: () => null.length,
  text: () => { throw "a text and not an error"; },
  capability: () => files.readText("none"),
  caught: () => {
    try {
      return files.stat("none");
    } catch (error) {
      return { failure: error instanceof Failure, kind: error.kind, message: error.message, hint: error.hint };
    }
  },
  spin: () => { for (;;); },
  big: () => "x".repeat((1 << 20) + 1),
  memory: () => { for (const all = []; ; ) all.push(new Uint8Array(1 << 20)); },
  recursion: () => ways.recursion() + 1,
  exit: () => process.exit(3),
  type: () => files.readText(5),
  number: () => files.read("none", { offset: -1 }),
  promise: () => Promise.resolve(1),
  bigint: () => ({ number: 1n }),
  half: () => "half of \ud83d",
  log: () => {
    console.log("said", { by: "a tool" });
    console.warn("warned by a tool");
  },
  config: () => config.get("GREETING"),
  random: () => Math.random(),
  image: () => {
    attach("image", Uint8Array.of(137, 80, 78, 71), "image/png");
    attach("link", "https://example.com/");
  },
};

const failing = {
  name: "js_fail",
  summary: "Fail in a way of your choice.",
  input: { properties: { how: { enum: Object.keys(ways), description: "The way." } }, required: ["how"] },
  call: ({ how }) => ways[how](),
};

export const tools = plugin(lines, get, failing);
