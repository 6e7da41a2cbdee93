// Resources of code end with the code and affect nothing else: nested code, calls and requests, and values that are
// small where they are created and large where they arrive.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before } from "node:test";
import { http } from "../../package/lib/node-http.mjs";
import { say, textOf, use } from "../worker/support/model.mjs";
import { until } from "../worker/support/poll.mjs";
import { suite } from "../worker/support/suite.mjs";

/** Sockets of an external server that never responds. @type {Set<import("node:net").Socket>} */
const waiting = new Set();
let asked = 0;
const outside = http.createServer((request) => {
  asked++;
  waiting.add(request.socket);
  request.socket.once("close", () => waiting.delete(request.socket));
});
/** @type {string} */
let host;
before(async () => {
  outside.listen(0, "127.0.0.1");
  await once(outside, "listening");
  host = `127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (outside.address()).port}`;
});
after(() => {
  outside.closeAllConnections();
  outside.close();
});

const bobbin = suite({ flags: ["--worker-loader"], vars: { BOBBIN_ALLOW_PRIVATE_HOSTS: "127.0.0.1" } });
const test = bobbin.test.bind(bobbin);

/**
 * Defines an endpoint with one file.
 * @param {string} name @param {string} source @param {object | (() => object)} [code] @param {object} [more]
 */
function endpoint(name, source, code = {}, more = {}) {
  bobbin.definitions.push(() => {
    const fields = typeof code === "function" ? code() : code;
    bobbin.folder.file(`api/${name}.get.ts`, source);
    bobbin.folder.json(`api/${name}.get.json`, { run: { code: { file: `${name}.get.ts`, ...fields } }, ...more });
  });
}

const agent = bobbin.agent("plain", () => say("done"));

/** @param {string} path @param {import("../worker/support/client.mjs").Thread} [thread] */
async function get(path, thread) {
  const asked = thread ?? (await bobbin.client.thread(agent.name));
  const { status, text, json } = await asked.send("GET", `/${path}`);
  return status === 200 ? (json ?? text) : `${status}`;
}

for (const engine of ["quickjs", "v8"]) {
  const named = (/** @type {string} */ name) => `${name}-${engine}`;
  endpoint(named("global"), "export default async (_, state) => (await state.runCode('export default await f(20)', { globals: { f: (x) => x + 1 } })).result", { engine: "quickjs" });
  endpoint(
    named("everything"),
    `export default async (_, state) => {
      const results = [];
      const f = (x) => x;
      for (const options of [{ globals: { f } }, { imports: { m: { f } } }, { execute: { args: [f] } }, { report: f }, { globals: { f: (g) => g(1) } }]) {
        for (const source of ["export default () => 1", "export default () => () => 1", "export default () => { throw new Error('no') }", "export default (f) => f", "export default new Promise(() => {})", "for"]) {
          const handle = state.runCode(source, { engine: "${engine}", ...options });
          if (source.includes("Promise")) setTimeout(() => handle.terminate("enough"), 20);
          results.push((await handle).status);
        }
      }
      return results.length;
    }`,
  );
  test(`functions that code gives to code that it runs cost no place for ever (${engine})`, async () => {
    for (let round = 0; round < 8; round++) assert.equal(await get(named("global")), 21);
    for (let round = 0; round < 3; round++) assert.equal(await get(named("everything")), 30);
    assert.equal(await get(named("global")), 21);
  });
}

endpoint("started", "export default async (_, state) => { state.runCode('for (;;);'); return 'left it' }");
endpoint("raced", "export default async (_, state) => Promise.race([state.runCode('for (;;);'), new Promise((done) => setTimeout(() => done('first'), 50))])");
endpoint("thrown", "export default async (_, state) => { state.runCode('for (;;);', { globals: { f: () => 1 } }); throw new Error('and left it') }");
endpoint("late", "export default async (_, state) => (await state.runCode('for (;;);')).status", {}, { timeoutMs: 300 });
bobbin.definitions.push(() => {
  const source = `export default async () => {
    const status = fetch("http://${host}/").then((answer) => answer.status, String);
    return Promise.race([status, new Promise((done) => setTimeout(() => done("left it"), 1000))]);
  };`;
  bobbin.folder.file("api/fetches.get.ts", source);
  bobbin.folder.json("api/fetches.get.json", { run: { code: { file: "fetches.get.ts", allowedHosts: [host] } } });
});
endpoint("quick", "export default () => 'quick'");

test("code that code started ends with it", async () => {
  const thread = await bobbin.client.thread(agent.name);
  // Each round leaves as many executions as there are slots.
  for (let round = 0; round < 6; round++) {
    await Promise.all(["started", "raced", "thrown", "late"].map((path) => get(path, thread)));
  }
  assert.equal(await get("quick"), "quick");
});

test("a request of code that has ended is given up", async () => {
  assert.equal(await get("fetches"), "left it");
  assert.equal(asked, 1);
  await until("the request is gone", () => waiting.size === 0);
});

const coder = bobbin.agent("coder", ({ messages }) => {
  const last = messages.at(-1);
  return last?.role === "tool" ? say("done") : use({ name: "execute_code", args: { code: textOf(last) } });
}, { tools: ["execute_code"] });

test("a value that is used often is refused where it would be large, and nobody else notices", async () => {
  const neighbour = await bobbin.client.thread(agent.name);
  const often = "const o = { a: 'x'.repeat(1e6) }, all = Array(5000).fill(o);";
  for (const code of [`${often} return all`, `${often} console.log(all); return 1`, `${often} await files.write("a", all)`]) {
    const thread = await bobbin.client.thread(coder.name);
    const asked = thread.ask(code);
    assert.equal(await get("quick", neighbour), "quick");
    await asked;
    assert.match((await thread.results()).join(), /8388608 bytes|More was printed than is kept/, code);
  }
  assert.doesNotMatch(bobbin.server.output(50_000), /wasm instance was lost/);
});
