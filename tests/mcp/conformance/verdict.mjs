// What the suite saved of one requirement set. Its own exit code leaves out warnings, which are about what the
// specification recommends, and the scenarios that a set runs without scoring them; here all of them have to pass.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [set, results] = process.argv.slice(2);
const wrong = [];
const counts = { SUCCESS: 0, SKIPPED: 0, INFO: 0 };
const scenarios = readdirSync(results).sort();
for (const scenario of scenarios) {
  const name = scenario.replace(/^(?:server-)?(.*)-\d{4}-\d\d-\d\dT.*$/, "$1");
  for (const check of JSON.parse(readFileSync(join(results, scenario, "checks.json")))) {
    if (check.status in counts) counts[check.status] += 1;
    else wrong.push(`${name}: ${check.id}: ${check.status}: ${check.errorMessage ?? check.description}`);
  }
}
console.log(`${set}: ${scenarios.length} scenarios, ${counts.SUCCESS} checks passed,`,
  `${counts.SKIPPED} skipped by the suite, ${wrong.length} found wrong`);
for (const line of wrong) console.log(`  ${line}`);
process.exit(scenarios.length > 0 && counts.SUCCESS > 0 && wrong.length === 0 ? 0 : 1);
