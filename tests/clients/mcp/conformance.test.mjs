// The official conformance suite, with Bobbin as the client: what both revisions require. Results are below `conformance/results`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const folder = fileURLToPath(new URL(".", import.meta.url));
const drive = `${process.execPath} ${fileURLToPath(new URL("conformance/drive.mjs", import.meta.url))}`;

for (const revision of ["2026-07-28", "2025-11-25"]) {
  test(`mcp: what each revision requires of a client is done: ${revision}`, { timeout: 30 * 60_000 }, async () => {
    const args = ["client", "--command", drive, "--requirements", revision, "--expected-failures", "conformance/expected-failures.yml", "--timeout", String(20 * 60_000)];
    const child = spawn(process.execPath, ["node_modules/@modelcontextprotocol/conformance/dist/index.js", ...args], { cwd: folder, env: { ...process.env, BOBBIN_SERVER: "workerd" } });
    let out = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (out += text));
    const [code] = await once(child, "close");
    assert.equal(code, 0, out.slice(-20_000));
  });
}
