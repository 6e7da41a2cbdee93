// Request bodies that stop arriving: tests the reader alone, in the real runtime, with a faster clock. In the product
// this takes half a minute.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sleep, until } from "../worker/support/poll.mjs";
import { checkout, freePort, scratch } from "../worker/support/server.mjs";
import { WORKERD, configure } from "../worker/support/workerd.mjs";

const MEGABYTE = 1 << 20;
let port = 0;
/** @type {import("node:child_process").ChildProcess} */
let workerd;
const folder = scratch("bodies");

before(async () => {
  port = await freePort();
  copyFileSync(join(checkout, "worker/bodies.js"), join(folder, "bodies.js"));
  copyFileSync(join(checkout, "tests/worker/support/bodies-worker.js"), join(folder, "worker.js"));
  workerd = spawn(WORKERD, ["serve", configure(folder, ["worker.js", "bodies.js"], port)], { stdio: ["ignore", "inherit", "inherit"] });
  await until("workerd serves", () => most().then(() => true, () => false));
});

after(async () => {
  workerd.kill("SIGKILL");
  await once(workerd, "exit");
  rmSync(folder, { recursive: true });
});

const most = async () => Number(await (await fetch(`http://127.0.0.1:${port}/most`)).text());

/**
 * Sends a request with a partial body.
 *
 * @param {string} path
 * @param {number} declared   bytes; negative for a chunked body
 * @param {number} sent
 */
function half(path, declared, sent) {
  const socket = net.connect(port, "127.0.0.1");
  const said = { text: "", closed: false };
  socket.setEncoding("utf8").on("data", (text) => (said.text += text));
  socket.on("close", () => (said.closed = true)).on("error", () => {});
  const length = declared < 0 ? "transfer-encoding: chunked" : `content-length: ${declared}`;
  socket.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\n${length}\r\n\r\n`);
  if (declared < 0) socket.write(`${sent.toString(16)}\r\n`);
  socket.write(Buffer.alloc(sent, 97));
  const answer = () => until("an answer comes", () => (/\r\n\r\n(.+)/s.test(said.text) ? said.text : undefined), { describe: () => said });
  return { socket, said, answer };
}

for (const [what, path, declared, sent] of /** @type {const} */ ([
  ["a short text", "/text", 100, 10],
  ["a long text", "/text", 2 * MEGABYTE, MEGABYTE],
  ["a text without a length", "/text", -1, 300_000],
  ["a text of which nothing comes", "/text", 3 * MEGABYTE, 0],
  ["a content", "/pieces", 2 * MEGABYTE, MEGABYTE],
  ["a content of which nothing comes", "/pieces", -1, 0],
])) {
  test(`${what} that stops coming is given up`, async () => {
    const { answer, socket } = half(path, declared, sent);
    assert.match(await answer(), /"why":"stalled"/);
    socket.destroy();
  });
}

test("a refusal waits for a silent client no longer than for a moment, and for a quick one to its end", async () => {
  const silent = half("/refused", 3 * MEGABYTE, 1000);
  assert.match(await silent.answer(), /^HTTP\/1\.1 401 /);
  silent.socket.destroy();
  const announced = half("/refused", 100 * MEGABYTE, 0);
  assert.match(await announced.answer(), /^HTTP\/1\.1 401 /);
  announced.socket.destroy();
  const whole = await fetch(`http://127.0.0.1:${port}/refused`, { method: "POST", body: Buffer.alloc(3 * MEGABYTE) });
  assert.equal(whole.status, 401);
});

test("a text that comes whole is read, whatever its length", async () => {
  for (const length of [0, 1, 65_536, 65_537, 300_000, 5 * MEGABYTE]) {
    const answer = await fetch(`http://127.0.0.1:${port}/text`, { method: "POST", body: "a".repeat(length) });
    assert.deepEqual(await answer.json(), { length });
  }
});

test("an object reads eight contents at a time; the next one waits for its turn", async () => {
  const stuck = Array.from({ length: 8 }, () => half("/pieces", MEGABYTE, 200_000));
  const next = half("/pieces", 300_000, 300_000);
  for (const { answer } of stuck) assert.match(await answer(), /"why":"stalled"/);
  assert.match(await next.answer(), /"bytes":300000,"said":"end"/);
  assert.ok((await most()) <= 8);
  for (const { socket } of [...stuck, next]) socket.destroy();
});

test("a pile of contents that have stalled keeps no new one waiting", async () => {
  const stuck = Array.from({ length: 100 }, () => half("/pieces", MEGABYTE, 200_000));
  await sleep(200);
  const next = half("/pieces", 300_000, 300_000);
  assert.match(await next.answer(), /"bytes":300000,"said":"end"/);
  const waits = stuck.filter(({ said }) => said.text === "").length;
  assert.ok(waits > 50, `${waits} still wait`);
  for (const { socket } of [...stuck, next]) socket.destroy();
});

test("unfinished texts hold no more than their bound together: the oldest gives way", async () => {
  // Five bodies of eight megabytes. The limit is 32.
  const texts = Array.from({ length: 5 }, () => half("/text", 10 * MEGABYTE, 8 * MEGABYTE));
  const answers = await Promise.all(texts.map(({ answer }) => answer()));
  assert.ok(answers.some((text) => text.includes('"why":"crowded"')), answers.join("\n"));
  for (const { socket } of texts) socket.destroy();
});
