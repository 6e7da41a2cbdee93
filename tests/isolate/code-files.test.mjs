// Files of code in the engine: the harness (src/work/code/) with the modules that stand for the web's globals, and a
// host that is the test's. What the host does for real, tests/interfaces/code.test.mjs shows.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import * as esbuild from "esbuild";
import { bundleCode } from "../../package/compiler/code.mjs";
import { readDefinitions } from "../../package/compiler/folder.mjs";
import { checkout, scratch } from "../worker/support/server.mjs";
import { contract, isolateServer } from "./support/isolate.mjs";

const server = isolateServer();
const home = scratch("code-files");
after(() => rmSync(home, { recursive: true, force: true }));

const part = (/** @type {string} */ name) => readFileSync(join(checkout, "src/work/code", name), "utf8");
const FACTS = {
  threadId: "t1",
  agentId: "helper",
  userId: null,
  createdAt: 1,
  terminated: null,
  children: [],
  arguments: {},
  context: { kept: [1] },
  execution: { flowId: "f", currentSide: "a", stepCount: 1, sideAStepCount: 1, sideBStepCount: 0, stopped: false, promptPath: ["p"] },
  names: { models: ["m"], prompts: ["p"], agents: ["a"] },
};

/**
 * @typedef {object} Given
 * @property {unknown[]} [args]
 * @property {Record<string, (...args: any[]) => unknown>} [host]   in place of what does nothing
 * @property {object} [facts]
 * @property {Record<string, string>} [beside]                      other files
 */

let folders = 0;

/** What a file comes to, called as the runtime calls it. @param {string} engine @param {string} file @param {string} source @param {Given} [given] */
async function call(engine, file, source, { args = [], host = {}, facts = {}, beside = {} } = {}) {
  const folder = join(home, String(++folders));
  for (const [name, text] of Object.entries({ [file]: source, ...beside })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const { bundles } = await bundleCode(folder, readDefinitions(folder), { esbuild, web: join(checkout, "isolate/web") });
  const endpoint = file.startsWith("api/");
  /** @type {Record<string, string>} */
  const modules = {};
  const take = (/** @type {string} */ name) => {
    if (modules[`./${name}`] !== undefined) return;
    modules[`./${name}`] = bundles[name]?.source ?? "";
    bundles[name]?.uses.forEach(take);
  };
  take(file);
  if (endpoint) take("bobbin/http.js");
  const harness = part("harness.js").replaceAll('"FILE"', JSON.stringify(`./${file}`)) + part(`harness/${endpoint ? "answer" : "call"}.js`);
  return server.run(harness, {
    engine,
    filename: "<bobbin>",
    modules,
    args,
    globals: {
      host: { call: () => null, runCode: () => null, fetch: () => null, abort: async () => {}, sleep: (/** @type {number} */ ms) => sleep(ms), ...host },
      facts: { ...FACTS, entropy: crypto.getRandomValues(new Uint8Array(32)), ...facts },
    },
  });
}

/** The value of a file that succeeds. @param {Parameters<typeof call>} given */
async function value(...given) {
  const result = await call(...given);
  assert.equal(result.status, "success", JSON.stringify(result.error));
  return result.value;
}

contract("a file's default export is called with the thread and its arguments", async (engine) => {
  const source = `import type { ToolHandler } from "bobbin";
    const tool: ToolHandler<{ n: number }> = async (state, { n }) => [n + 1, state.threadId, state.getModelNames(), state.execution?.promptPath];
    export default tool;`;
  assert.deepEqual(await value(engine, "tools/x.ts", source, { args: [{ n: 1 }] }), [2, "t1", ["m"], ["p"]]);
});

contract("members of the thread are asked of the host, by name and with their arguments", async (engine) => {
  /** @type {unknown[][]} */
  const asked = [];
  const host = {
    call: async (/** @type {unknown[]} */ ...args) => {
      asked.push(args);
      return args[0] === "getValue" ? { n: 1 } : args[0] === "getParentThread" ? null : undefined;
    },
  };
  const source = `export default async (state) => {
      state.queueTool("other", { a: 1 });
      state.emit("e", [1]);
      state.context.kept.push(2);
      state.context.seen = true;
      delete state.context.gone;
      state.execution.forceTurn("b");
      const got = await state.getValue("k");
      return [got, await state.getParentThread(), state.context];
    }`;
  assert.deepEqual(await value(engine, "tools/x.js", source, { host, facts: { context: { kept: [1], gone: 1 } } }), [{ n: 1 }, null, { kept: [1, 2], seen: true }]);
  assert.deepEqual(asked, [
    ["queueTool", "other", { a: 1 }],
    ["emit", "e", [1]],
    ["forceTurn", "b"],
    ["getValue", "k"],
    ["getParentThread"],
    // What is in the context at the end, changes within its values too.
    ["setContext", "kept", [1, 2]],
    ["setContext", "seen", true],
    ["removeContext", "gone"],
  ]);
});

contract("a call that the code did not wait for ends before its result counts, and its failure is the code's", async (engine) => {
  let ended = false;
  const slow = async () => {
    await sleep(100);
    ended = true;
  };
  await value(engine, "effects/x.js", "export default (state) => { state.emit('x'); return 1; }", { host: { call: slow } });
  assert.equal(ended, true);
  const failing = async () => {
    throw new Error("there is no tool x");
  };
  const { status, error } = await call(engine, "tools/x.js", "export default (state) => { state.queueTool('x'); }", { host: { call: failing } });
  assert.deepEqual([status, error.message], ["error", "there is no tool x"]);
});

contract("an error names the file's own line", async (engine) => {
  const source = 'import type { ThreadState } from "bobbin";\n\nexport default (state: ThreadState) => {\n  const url: URL = new URL("http://a.test");\n  throw new RangeError(`no ${url.host}`);\n};\n';
  const { status, error } = await call(engine, "tools/x.ts", source);
  assert.deepEqual([status, error.name, error.message, error.filename, error.line], ["error", "RangeError", "no a.test", "tools/x.ts", 5]);
});

contract("a file without a function as its default export says so", async (engine) => {
  const { error } = await call(engine, "tools/x.ts", "export default { execute: () => 1 };");
  assert.equal(error.message, "the default export of ./tools/x.ts must be a function");
  const missing = await call(engine, "tools/x.ts", "export const execute = () => 1;");
  assert.equal(missing.status, "link_error");
  assert.match(missing.error.message, /default/);
});

contract("an endpoint is given a Request and gives a Response, or a value", async (engine) => {
  const request = { url: "http://h.test/x?a=b%20c", method: "POST", headers: { "x-a": "1" }, body: new TextEncoder().encode('{"n":1}') };
  const source = `import type { EndpointHandler } from "bobbin";
    const endpoint: EndpointHandler<{ id: string }> = async (request, state, params) => {
      if (!(request instanceof Request)) throw new Error("what is this?");
      const { n } = await request.json();
      const a = new URL(request.url).searchParams.get("a");
      return n === 1 ? Response.json({ n, a, id: params.id, thread: state.threadId }, { status: 201, headers: { "x-b": request.headers.get("x-a") ?? "" } }) : { n };
    };
    export default endpoint;`;
  const answered = await value(engine, "api/[id].post.ts", source, { args: [request, { id: "7" }] });
  assert.deepEqual(answered, {
    response: { status: 201, headers: [["content-type", "application/json"], ["x-b", "1"]], body: '{"n":1,"a":"b c","id":"7","thread":"t1"}' },
  });
  const plain = await value(engine, "api/[id].post.ts", source, { args: [{ ...request, body: new TextEncoder().encode('{"n":2}') }, { id: "7" }] });
  assert.deepEqual(plain, { value: { n: 2 } });
  assert.deepEqual(await value(engine, "api/none.ts", "export default () => {};", { args: [{ ...request, method: "GET" }, {}] }), { value: undefined });
});

contract("every name of the web's is there, and works in the engine", async (engine) => {
  const source = `import type { ToolHandler } from "bobbin";
    export default (async () => {
      const order: string[] = [];
      const late = setTimeout(() => order.push("never"), 50);
      const done = new Promise<void>((resolve) => setTimeout((x: string) => { order.push(x); resolve(); }, 30, "b"));
      setTimeout(() => { order.push("a"); clearTimeout(late); }, 1);
      queueMicrotask(() => order.push("first"));
      await done;
      const answer = await fetch("http://a.test/x", { method: "POST", body: new URLSearchParams({ q: "é" }) });
      const copy = structuredClone(new Map([["d", new Date(5)]]));
      return {
        order, copy,
        fetched: [answer.status, answer.headers.get("X-A"), await answer.text()],
        text: new TextDecoder().decode(new TextEncoder().encode("é日\\u{1f600}")),
        coded: [btoa("abc"), atob("YWJj")],
        host: new URL("http://MÜNCHEN.de/ä").href,
        uuid: crypto.randomUUID().length,
        random: crypto.getRandomValues(new Uint32Array(2)).length,
        headers: [...new Headers({ B: "2", A: "1" })],
        request: new Request("http://x").method,
        response: new Response("x").status,
      };
    }) satisfies ToolHandler;`;
  const host = {
    fetch: async (/** @type {string} */ url, /** @type {any} */ { method, headers, body }) => ({
      status: 200,
      headers: [["x-a", headers[0][1]]],
      body: new TextEncoder().encode(`${method} ${url} ${body}`),
    }),
  };
  assert.deepEqual(await value(engine, "tools/x.ts", source, { host }), {
    order: ["first", "a", "b"],
    copy: new Map([["d", new Date(5)]]),
    fetched: [200, "application/x-www-form-urlencoded;charset=UTF-8", "POST http://a.test/x q=%C3%A9"],
    text: "é日\u{1f600}",
    coded: ["YWJj", "abc"],
    host: "http://xn--mnchen-3ya.de/%C3%A4",
    uuid: 36,
    random: 2,
    headers: [["a", "1"], ["b", "2"]],
    request: "GET",
    response: 200,
  });
});

contract("code in the sandbox runs code of its own, and may end it", async (engine) => {
  const ended = { status: "success", result: 5, logs: [], reports: [1, 2], durationMs: 1 };
  /** @type {unknown[]} */
  const told = [];
  const host = {
    runCode: async (/** @type {string} */ source, /** @type {any} */ options) => {
      told.push(source, Object.keys(options));
      for (const report of ended.reports) await options.report(report);
      return { result: async () => (await sleep(30), ended), terminate: (/** @type {string} */ reason) => void told.push(reason) };
    },
  };
  const source = `export default async (state) => {
      const heard = [];
      const execution = state.runCode("export default 5", { filename: "y.ts", report: (value) => void heard.push(value) });
      const before = execution.running;
      execution.terminate("enough");
      const result = await execution;
      return [before, execution.running, result.result, execution.reports, heard, (await execution.finally(() => {})).status];
    }`;
  assert.deepEqual(await value(engine, "tools/x.js", source, { host }), [true, false, 5, [1, 2], [1, 2], "success"]);
  assert.deepEqual(told, ["export default 5", ["filename", "report"], "enough"]);
});
