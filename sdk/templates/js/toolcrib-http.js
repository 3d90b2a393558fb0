// Requests to the hosts that the user has allowed. Comes with `--needs http`.
// A response of any status is a result. A `Failure` is `denied`, `timed_out`, `limit`, `unavailable` or
// `invalid_arguments`.

import { Request } from "toolcrib:plugin/http@0.1.0";
import { bytesOf, countOf, host, textOf } from "./toolcrib.js";

/** Sends a GET. */
export const get = (url, options) => request("GET", url, options);

/**
 * Sends a request and waits for the response: `{ status, ok, headers, url, body, truncated, text(), json() }`.
 * `headers` is an object; `body` is text or a Uint8Array; `json` is a value to send as JSON instead; `limit` is how
 * many bytes of the response to return (default: 1 MiB, at most 8 MiB).
 */
export function request(method, url, { headers = {}, body, json, limit } = {}) {
  const prepared = new Request(textOf(method, "the method"), textOf(url, "the URL"));
  const all = json === undefined ? headers : { "content-type": "application/json", ...headers };
  for (const name in all) prepared.header(name.toWellFormed(), textOf(all[name], `the header \`${name}\``));
  if (json !== undefined) body = JSON.stringify(json);
  if (body !== undefined) prepared.body(bytesOf(body));
  if (limit !== undefined) prepared.limit(countOf(limit));
  return response(host(() => prepared.send()));
}

/** Names are in lower case; the values of a name that comes twice are joined by a comma. */
function response({ status, headers, url, body, truncated }) {
  const joined = {};
  for (const [name, value] of headers) joined[name] = name in joined ? `${joined[name]}, ${value}` : value;
  const text = () => textOfBytes(body);
  const ok = status >= 200 && status < 300;
  return { status, ok, headers: joined, url, body, truncated, text, json: () => JSON.parse(text()) };
}

/** Reads UTF-8, with U+FFFD for each byte that is not. */
function textOfBytes(bytes) {
  let characters = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    characters += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  const decoded = (part) => decodeURIComponent(escape(part));
  const orReplaced = (part) => { try { return decoded(part); } catch { return "\ufffd"; } };
  try {
    return decoded(characters);
  } catch {
    const one = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/g;
    return characters.replace(one, orReplaced);
  }
}
