// Runs files of tests with Node's runner, in the order that is given: `node --test` sorts them by name, and a long one
// that comes last runs alone. Each file has a run of its own, so that every line says which file it is of: the runner
// itself names the file in which `test` was called, which may be a helper.
//
//   node scripts/node-tests.mjs CONCURRENCY FILE…

import { run } from "node:test";
import { report } from "./test-reporter.mjs";

const [concurrency, ...files] = process.argv.slice(2);

/** One file after the other. */
async function lane() {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const events = run({ files: [file] });
    events.on("test:fail", () => (process.exitCode = 1));
    for await (const line of report(file, events)) process.stdout.write(line);
  }
}

await Promise.all(Array.from({ length: Number(concurrency) }, lane));
