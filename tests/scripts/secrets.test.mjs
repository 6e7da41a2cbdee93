// Nothing secret stands on a command line, which every program of the machine may read.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tree } from "../worker/support/processes.mjs";
import { Server, checkout } from "../worker/support/server.mjs";

for (const [name, flags, processes] of /** @type {const} */ ([["wrangler", [], 2], ["workerd by itself", ["--workerd"], 1]])) {
  test(`variables and keys reach the Worker, and no command line but the one that was typed: ${name}`, { skip: process.platform !== "linux" }, async () => {
    const server = await Server.start({ agents: "agents", vars: { SOME_SECRET: "told-to-nobody" }, flags: [...flags], wrangler: true });
    try {
      const keys = readFileSync(join(checkout, ".bobbin/encryption-keys"), "utf8").trim();
      const typed = server.child?.pid ?? 0;
      const others = tree(typed).filter((pid) => pid !== typed);
      assert.ok(others.length >= processes, `${others.length} processes run`);
      for (const pid of others) {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        for (const secret of ["told-to-nobody", keys, "BOBBIN_ENCRYPTION_KEYS"]) {
          assert.ok(!line.includes(secret), `${pid}: ${line.replaceAll("\0", " ")}`);
        }
      }
      const home = join(checkout, ".bobbin/run", String(server.port));
      for (const file of readdirSync(home, { recursive: true, withFileTypes: true })) {
        if (file.isFile()) assert.ok(!readFileSync(join(file.parentPath, file.name)).includes("told-to-nobody"), file.name);
      }
    } finally {
      await server.remove();
    }
  });
}
