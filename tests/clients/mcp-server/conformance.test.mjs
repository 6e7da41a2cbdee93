// The official suite of conformance, with Bobbin as server, for both eras. Its scenarios call tools, prompts and resources of a server that
// has fixtures of these names; Bobbin's tools are agents, so those cannot pass, and are named in a file with the reason. Whatever
// else fails fails here, and so does a line of that file that would pass.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { say } from "../../worker/support/model.mjs";
import { suite } from "../../worker/support/suite.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

// The suite sends no credentials.
const bobbin = suite({ vars: { BOBBIN_SURFACES: "mcp" } });
bobbin.definitions.push(() => cpSync(here("application"), bobbin.folder.path, { recursive: true }));
bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`));
const cli = here("node_modules/@modelcontextprotocol/conformance/dist/index.js");

for (const revision of ["2026-07-28", "2025-11-25"]) {
  bobbin.test(
    `the suite of conformance for ${revision} finds nothing but what is not there`,
    async () => {
      const results = mkdtempSync(join(tmpdir(), "bobbin-conformance-"));
      const expected = here(`expected-failures-${revision}.yaml`);
      const args = [cli, "server", "--url", `${bobbin.server.base}/mcp`, "--requirements", revision, "--expected-failures", expected, "--output-dir", results, "--timeout", "15000"];
      const ran = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
      let printed = "";
      for (const stream of [ran.stdout, ran.stderr]) stream.setEncoding("utf8").on("data", (text) => void (printed += text));
      const [status] = await once(ran, "close");
      const failed = readdirSync(results).flatMap((name) => {
        const checks = JSON.parse(readFileSync(join(results, name, "checks.json"), "utf8"));
        return checks.filter((/** @type {any} */ check) => check.status === "FAILURE").map((/** @type {any} */ { id, errorMessage }) => `${name}:${id}: ${errorMessage}`);
      });
      rmSync(results, { recursive: true });
      assert.equal(status, 0, `${printed.slice(-3_000)}\n${failed.join("\n")}`);
    },
    600_000,
  );
}
