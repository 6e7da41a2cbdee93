// Runs test files with Node's runner in the given order. `node --test` sorts them by name, and a long file at the end would
// run alone. Each file has its own run, so that every output line names its file: the runner names the file in which
// `test` was called, which may be a helper.
//
//   node scripts/node-tests.mjs CONCURRENCY FILE…

import { run } from "node:test";
import { report } from "./test-reporter.mjs";

const [concurrency, ...files] = process.argv.slice(2);

/** Runs one file after the other. */
async function lane() {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const events = run({ files: [file] });
    events.on("test:fail", () => (process.exitCode = 1));
    for await (const line of report(file, events)) process.stdout.write(line);
  }
}

await Promise.all(Array.from({ length: Number(concurrency) }, lane));
