// Runs files of tests with Node's runner, in the order that is given: `node --test` sorts them by name, and a long one
// that comes last runs alone.
//
//   node scripts/node-tests.mjs CONCURRENCY FILE…

import { run } from "node:test";
import reporter from "./test-reporter.mjs";

const [concurrency, ...files] = process.argv.slice(2);
const events = run({ files, concurrency: Number(concurrency) });
events.on("test:fail", () => (process.exitCode = 1));
events.compose(reporter).pipe(process.stdout);
