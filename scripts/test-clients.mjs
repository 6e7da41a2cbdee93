// `npm run test:clients [-- name …]`: tests Bobbin with unmodified clients. Each uses the packages of its own folder in
// tests/clients and its own server, and a browser if it is a web client.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { inCheckout } from "./files.mjs";
import { Complaint, main, outcome, print } from "./run.mjs";
import { setUp } from "./setup.mjs";

const INSTALL_MS = 10 * 60_000;
const TESTS_MS = 40 * 60_000;

await main(async () => {
  const { positionals } = parseArgs({ allowPositionals: true });
  const folder = inCheckout("tests/clients");
  const all = readdirSync(folder).filter((name) => existsSync(join(folder, name, "package.json")));
  const unknown = positionals.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new Complaint(`There is no client ${unknown}. There are: ${all.join(", ")}.`);
  const { node } = await setUp();
  for (const name of positionals.length > 0 ? positionals : all) {
    const client = join(folder, name);
    if (!existsSync(join(client, "node_modules"))) {
      const installed = await outcome("npm", ["ci", "--ignore-scripts"], { cwd: client, timeoutMs: INSTALL_MS, onLine: (line) => print(line) });
      if (installed.status !== 0) throw new Complaint(`The packages of ${name} could not be installed.`);
    }
    const files = readdirSync(client).filter((file) => file.endsWith(".test.mjs")).map((file) => join(client, file));
    const args = ["--test", "--test-reporter=spec", "--test-concurrency=1", "--test-timeout=600000", ...files];
    const ended = await outcome(node, args, { timeoutMs: TESTS_MS, onLine: (line) => print(line) });
    if (ended.status !== 0) throw new Complaint(`Bobbin does not do what ${name} expects of it (above).`);
  }
});
