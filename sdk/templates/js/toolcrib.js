// What `tool.js` is written with: definitions, calls, failures. Capabilities are in files of their own beside it.

import * as events from "toolcrib:plugin/events@0.1.0";

const MORE_MEMORY = "ask for less, or raise `memory_mib` under [limits]";
const LEVELS = ["debug", "info", "warn", "error"];
let running = false; // While the component is built there is no host to tell anything.
let notices = [];
let parts = [];

/** Returns the plugin with these tools, for `export const tools`. A mistake in a definition fails the build. */
export function plugin(...tools) {
  const definitions = tools.map(definition);
  const names = definitions.map(({ name }) => name);
  if (new Set(names).size < names.length) throw new Error(`two tools have the same name: ${names.join(", ")}`);
  return { definitions: () => definitions, call: (name, json) => run(tools[names.indexOf(name)], JSON.parse(json)) };
}

/**
 * Returns a failure to throw. `kind` is `invalid_arguments`, `denied`, `limit`, `timed_out`, `cancelled`, `busy`,
 * `unavailable`, `outcome_unknown`, `execution_failed` or `internal`. `message` says what happened, `hint` what to
 * change, and `data` is a JSON value with what is known nevertheless.
 */
export const fail = (kind, message, { hint, data } = {}) =>
  new Failure({ kind, message, hint, data: data === undefined ? null : jsonOf(data, "`data`") });

/** Why a call or a capability failed. Here `data` is JSON text. */
export class Failure extends Error {
  constructor({ kind, message, hint, data }) {
    super(message);
    Object.assign(this, { kind, hint: hint ?? null, data: data ?? null });
  }
}

/** Calls a function of a capability, and throws a `Failure` if it fails: `host(() => command.run())`. */
export function host(call) {
  try {
    return call();
  } catch (error) {
    throw error?.payload?.kind ? new Failure(error.payload) : error;
  }
}

/** Tells the caller something beside the result, in a sentence. */
export const notice = (sentence) => void notices.push(textOf(sentence, "a notice"));

/** Adds to the result: `("text", text)`, `("link", url)`, `("image", bytes, "image/png")`, `("audio", bytes, type)`. */
export function attach(tag, value, mediaType) {
  const typed = tag === "image" || tag === "audio";
  if (!typed && tag !== "text" && tag !== "link") throw new TypeError(`\`attach\` does not know "${tag}"`);
  parts.push({ tag, val: typed ? [textOf(mediaType, "the media type"), bytesOf(value)] : textOf(value, tag) });
}

/** Says something to whoever watches the call, as `console` does: `level` is "debug", "info", "warn" or "error". */
export function log(level, text) {
  if (!LEVELS.includes(level)) throw new TypeError(`\`log\` does not know the level ${level}`);
  if (running) events.log(level, textOf(text, "the text"));
}

/** Says how far the call is; `total` and `message` may be omitted. */
export const progress = (done, total = null, message = null) =>
  events.progress(countOf(done), total && countOf(total), message && textOf(message, "the message"));

// A component ends if it hands the host a value of a wrong type. Checked here, that is an exception with a line.

/** Returns the text, with U+FFFD for each half of a character. */
export function textOf(value, what) {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, not ${value}`);
  return value.toWellFormed();
}

/** Returns a number or a BigInt as a number. */
export function countOf(value) {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError(`${value} is not a whole number from 0 up`);
  return number;
}

/** Returns bytes as they are, and text in UTF-8. */
export function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  const utf8 = unescape(encodeURIComponent(textOf(value, "content other than a Uint8Array")));
  return Uint8Array.from(utf8, (character) => character.charCodeAt(0));
}

function definition({ name, title, summary, usage, input = {}, output, events = [], call, ...rest }) {
  const { whenToUse = "", whenNotToUse = "", disambiguation = "", examples = [], ...unknown } = rest;
  const schema = (object) => JSON.stringify({ type: "object", additionalProperties: false, ...object });
  const refuse = (reason) => { throw new Error(`tool \`${name}\`: ${reason}`); };
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) refuse("`name` must have 1 to 64 of A-Z, a-z, 0-9, _ and -");
  if (!summary) refuse("`summary` is missing");
  const texts = { title, summary, usage, whenToUse, whenNotToUse, disambiguation };
  for (const key in texts) if (!["string", "undefined"].includes(typeof texts[key])) refuse(`\`${key}\` must be a text`);
  if (typeof call !== "function") refuse("`call` must be a function");
  if (call.constructor.name === "AsyncFunction") refuse("`call` must not be async: capabilities return their results");
  for (const key in unknown) refuse(`\`${key}\` is not known`);
  const guidance = { whenToUse, whenNotToUse, disambiguation, examples: examples.map((one) => JSON.stringify(one)) };
  const schemas = { inputSchema: schema(input), outputSchema: output && schema(output) };
  return { name, title, summary, guidance, usage, ...schemas, hints: events.map((kind) => ["embedder", kind]) };
}

function run(tool, input) {
  [running, notices, parts] = [true, [], []];
  seedRandom();
  try {
    return { json: jsonOf(tool.call(input), `the result of \`${tool.name}\``), content: parts, notices };
  } catch (error) {
    const { kind, message, hint, data } = error?.payload ?? error ?? {};
    if (typeof kind === "string") {
      const known = data == null || typeof data === "string" ? data : jsonOf(data, "`data`");
      throw { kind, message: `${message}`.toWellFormed(), hint: hint && `${hint}`.toWellFormed(), data: known };
    }
    if (message === "out of memory") throw { kind: "limit", message, hint: MORE_MEMORY };
    if (error?.stack) log("error", `${error}\n${error.stack}`);
    const lines = error?.stack?.match(/[^/(]+:\d+(?=:\d+\))/g) ?? [];
    const place = lines.find((line) => !line.startsWith("toolcrib"));
    throw { kind: "execution_failed", message: `${error}`.toWellFormed() + (place ? ` (${place})` : "") };
  }
}

function jsonOf(value, what) {
  if (value?.then) throw fail("internal", `${what} is a promise, and nothing waits for it`);
  try {
    return JSON.stringify(value, (_, part) => (typeof part === "string" ? part.toWellFormed() : part)) ?? "null";
  } catch (error) {
    throw fail("internal", `${what} is not JSON: ${error.message}`);
  }
}

// Every call begins with the memory that the build has left, so `Math.random` would return the same numbers each time.
function seedRandom() {
  let state = Math.imul(Date.now() ^ (performance.now() * 1e6), 0x9e3779b1) | 1;
  Math.random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const shown = (value) => (value instanceof Error || Object(value) !== value ? String(value) : JSON.stringify(value));
const at = (level) => (...values) => log(level, values.map(shown).join(" "));
globalThis.console ??= { log: at("info"), ...Object.fromEntries(LEVELS.map((level) => [level, at(level)])) };
