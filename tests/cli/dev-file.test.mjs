// How commands find a project's server.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findDevServer, noteDevServer } from "../../package/lib/dev-file.mjs";

const server = { url: "http://127.0.0.1:4711", version: "0.1.0" };

/** @param {(project: string) => void} body */
function inProject(body) {
  const project = mkdtempSync(join(tmpdir(), "bobbin-dev-file-"));
  try {
    body(project);
  } finally {
    rmSync(project, { recursive: true });
  }
}

test("a server is found from any folder of its project, until it ends", () => {
  inProject((project) => {
    const deep = join(project, "agents", "prompts");
    mkdirSync(deep, { recursive: true });
    assert.equal(findDevServer(deep), undefined);
    const forget = noteDevServer(project, server);
    assert.deepEqual(findDevServer(deep), { ...server, pid: process.pid, project, runs: true });
    forget();
    assert.equal(findDevServer(deep), undefined);
  });
});

test("a server that was killed is told from one that runs", () => {
  inProject((project) => {
    const module = JSON.stringify(new URL("../../package/lib/dev-file.mjs", import.meta.url).href);
    const script = `const { noteDevServer } = await import(${module}); noteDevServer(process.argv[1], ${JSON.stringify(server)}); process.kill(process.pid, "SIGKILL");`;
    const { pid } = spawnSync(process.execPath, ["--input-type=module", "-e", script, project]);
    assert.deepEqual(findDevServer(project), { ...server, pid, project, runs: false });
  });
});

test("the end of a server leaves the file of the next one", () => {
  inProject((project) => {
    const forget = noteDevServer(project, server);
    const file = join(project, ".bobbin", "dev.json");
    writeFileSync(file, JSON.stringify({ ...server, pid: 1 }));
    forget();
    assert.ok(existsSync(file));
  });
});

test("a file that is none of a server is passed over", () => {
  inProject((project) => {
    noteDevServer(project, server);
    const below = join(project, "below");
    mkdirSync(join(below, ".bobbin"), { recursive: true });
    for (const text of ["", "{", "null", "[]", '{"url":1,"pid":2}', '{"url":"http://x"}']) {
      writeFileSync(join(below, ".bobbin", "dev.json"), text);
      assert.equal(findDevServer(below)?.project, project, text);
    }
  });
});
