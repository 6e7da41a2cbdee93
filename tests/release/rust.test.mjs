// A project with native tools of its own: its Worker is compiled by the repository, and then it is a project like any other.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { buildPackages } from "../../scripts/package.mjs";
import { checkout, scratch } from "../worker/support/server.mjs";
import { Dev } from "../package/support/installed.mjs";

const home = scratch("rust");
const project = join(home, "my-agent");
/** @type {Dev | undefined} */
let dev;
after(async () => {
  await dev?.end();
  rmSync(home, { recursive: true, force: true });
});

test("a tool in Rust of one's own is compiled, served and called", { timeout: 25 * 60_000 }, async () => {
  const { bobbin } = await buildPackages();
  const made = spawnSync(process.execPath, [join(bobbin, "bin/bobbin.mjs"), "init", project, "--rust", "--checkout", checkout], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  mkdirSync(join(project, "node_modules"));
  symlinkSync(bobbin, join(project, "node_modules/bobbin"));
  // Whole in itself, and built the faster for it.
  const { PATH, CARGO_HOME, RUSTUP_HOME, BOBBIN_CACHE } = process.env;
  const env = { PATH, CARGO_HOME, RUSTUP_HOME, BOBBIN_CACHE, BOBBIN_BUILD: "quick" };
  symlinkSync(join(checkout, "node_modules/wrangler"), join(project, "node_modules/wrangler"));
  dev = new Dev(project, process.execPath, ["dev", "--port", "0"], env);
  await dev.ready;
  const response = await fetch(`${dev.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "greeter", messages: [{ role: "user", content: 'call greet {"name": "Ada"}' }] }),
  });
  const { choices } = /** @type {{ choices: { message: { content: string } }[] }} */ (await response.json());
  assert.match(choices[0]?.message.content ?? "", /greet said: Hello, Ada!/);
});
