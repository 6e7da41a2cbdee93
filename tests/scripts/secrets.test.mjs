// Nothing secret stands on a command line, which every program of the machine may read.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tree } from "../worker/support/processes.mjs";
import { Server, checkout } from "../worker/support/server.mjs";

test("variables and keys reach the Worker, and no command line but the one that was typed", { skip: process.platform !== "linux" }, async () => {
  const server = await Server.start({ agents: "agents", vars: { SOME_SECRET: "told-to-nobody" } });
  try {
    const keys = readFileSync(join(checkout, ".bobbin/encryption-keys"), "utf8").trim();
    const typed = server.child?.pid ?? 0;
    const others = tree(typed).filter((pid) => pid !== typed);
    assert.ok(others.length >= 2, "wrangler and workerd run");
    for (const pid of others) {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      for (const secret of ["told-to-nobody", keys, "BOBBIN_ENCRYPTION_KEYS"]) {
        assert.ok(!line.includes(secret), `${pid}: ${line.replaceAll("\0", " ")}`);
      }
    }
    const home = join(checkout, ".bobbin/run", String(server.port));
    assert.ok(!readdirSync(home).includes("vars.json"), "the file is gone once it was read");
  } finally {
    await server.remove();
  }
});
