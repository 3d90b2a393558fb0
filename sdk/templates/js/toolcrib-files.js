// Files of the call's backend, below the directories that the user has allowed. Comes with `--needs files`.
// Each function throws a `Failure`: `denied`, `execution_failed` (missing, not text …), `limit` or `busy`.

import * as files from "toolcrib:plugin/files@0.1.0";
import { bytesOf, countOf, fail, host, textOf } from "./toolcrib.js";

const MAX_BYTES = 4 << 20; // What one read returns at most.
const pathOf = (path) => textOf(path, "a path");

/** Returns a whole text file of at most 4 MiB. */
export function readText(path) {
  const { text, bytes, truncated } = read(path);
  if (truncated) throw fail("limit", `\`${path}\` has ${bytes} bytes, more than the 4 MiB that fit into one read`);
  return text;
}

/** Returns `{ text, bytes, truncated }`: at most `max` characters from `offset` bytes on; `bytes` is the whole size. */
export const read = (path, { offset = 0, max = MAX_BYTES } = {}) =>
  host(() => files.read(pathOf(path), countOf(offset), countOf(max)));

/** Returns at most `max` bytes from `offset` bytes on, as a Uint8Array. */
export const readBytes = (path, { offset = 0, max = MAX_BYTES } = {}) =>
  host(() => files.readBytes(pathOf(path), countOf(offset), countOf(max)));

/** Replaces or creates a file. `content` is text or a Uint8Array. */
export const write = (path, content) => host(() => files.write(pathOf(path), bytesOf(content)));

/** Adds to the end of a file. Returns its new size. */
export const append = (path, content) => host(() => files.append(pathOf(path), bytesOf(content)));

/** Returns `{ content, revision }`, to change a file: `replace` fails with `busy` if somebody else did meanwhile. */
export const readWhole = (path) => host(() => files.readWhole(pathOf(path)));
export const replace = (path, content, revision) =>
  host(() => files.replace(pathOf(path), bytesOf(content), textOf(revision, "a revision")));

/** Returns `{ entries: [{ name, kind, size, modifiedMs }], total }`: the first `max` entries of a directory. */
export const listDirectory = (path, max = 10_000) => host(() => files.listDirectory(pathOf(path), countOf(max)));

/** Returns `{ name, kind, size, modifiedMs }`; `kind` is "file", "directory" or "other". */
export const stat = (path) => host(() => files.stat(pathOf(path)));

/** Makes a directory and those above it. Returns false if it was there. */
export const makeDirectory = (path) => host(() => files.makeDirectory(pathOf(path)));
