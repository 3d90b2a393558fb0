// Writes goldens.ts: every golden as a literal of the type that types.ts gives it. An import of JSON loses the literals.
//
//   node goldens.mjs DIRECTORY

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const directory = process.argv[2];
const files = readdirSync(directory).filter((file) => file.endsWith(".json")).sort();
const entries = files.map((file) => `"${file.replace(".json", "")}": ${readFileSync(join(directory, file), "utf8")},`);
const head = 'import type { Goldens } from "./types.js";';
writeFileSync("goldens.ts", `${head}\n\nexport const goldens: Goldens = {\n${entries.join("\n")}\n};\n`);
