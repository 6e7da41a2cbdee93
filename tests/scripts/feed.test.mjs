// worker/feed.js by itself: one response over as many sockets as it takes. That an object is restarted while its feed is read
// cannot be had from outside without losing the Worker, too.

import assert from "node:assert/strict";
import { test } from "node:test";

// What Workers have and Node does not; a job of a microtask is what it was.
const { queueMicrotask } = globalThis;
Object.assign(globalThis, { IdentityTransformStream: TransformStream });
const { feed } = /** @type {any} */ (await import(/** @type {string} */ (new URL("../../worker/feed.js", import.meta.url).href)));
Object.assign(globalThis, { queueMicrotask });

/** The client's end of an object's socket, which does what `script` says once it is accepted. */
class FakeSocket extends EventTarget {
  /** @param {(socket: FakeSocket) => void} script */
  constructor(script) {
    super();
    this.script = script;
  }
  accept() {
    setTimeout(() => this.script(this), 1);
  }
  /** @param {string} data */
  say(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
  /** @param {number} code */
  end(code, reason = "") {
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason }));
  }
  /** @param {string} text */
  send(text) {
    if (text === "ping") this.say("pong");
  }
  close() {}
}

/** @param {string} id @param {string} word */
const event = (id, word) => `id: ${id}\nevent: x\ndata: "${word}"\n\n`;

/**
 * Reads a feed whose object opens these sockets one after another; a number is a refusal.
 *
 * @param {(FakeSocket | number)[]} sockets
 * @param {object} [encoder]
 */
async function read([first, ...rest], encoder) {
  /** @type {unknown[]} */
  const asked = [];
  const fetch = async (/** @type {string} */ _, /** @type {{ headers: Record<string, string> }} */ { headers }) => {
    const wanted = headers["x-listen"] ?? "";
    assert.match(wanted, /^[\x20-\x7e]*$/, "headers are ASCII");
    asked.push(JSON.parse(wanted).last_event_id);
    const next = rest.shift();
    return typeof next === "object" ? { webSocket: next, status: 101 } : { webSocket: null, status: next ?? 404 };
  };
  const objects = { getByName: () => ({ fetch }) };
  /** @type {Promise<unknown>[]} */
  const kept = [];
  const ctx = { waitUntil: (/** @type {Promise<unknown>} */ promise) => kept.push(promise) };
  const response = feed(first, objects, "t", "x-listen", '{"caller":"\\u00fc"}', ctx, -1, 20, 1000, undefined, '[["x-more","1"]]', encoder);
  assert.equal(response.headers.get("x-more"), "1");
  const decoder = new TextDecoder();
  let text = "";
  let broken = "";
  try {
    for await (const bytes of response.body) text += decoder.decode(bytes, { stream: true });
  } catch (error) {
    broken = error instanceof Error ? error.message : String(error);
  }
  await Promise.all(kept);
  return { words: [...text.matchAll(/data: (.*)/g)].map(([, data]) => JSON.parse(data ?? "")), broken, asked, beats: text.includes(": \n\n") };
}

const says = (/** @type {[string, string][]} */ events, /** @type {number} */ code, reason = "") =>
  new FakeSocket((socket) => {
    for (const [id, word] of events) socket.say(event(id, word));
    socket.end(code, reason);
  });

test("a feed ends when its run does", async () => {
  assert.deepEqual(await read([says([["0.1", "a"]], 1000)]), { words: ["a"], broken: "", asked: [], beats: false });
});

test("what does not fit into one piece comes in the next ones", async () => {
  const { words, broken, asked } = await read([says([["0.1", "a"]], 3003, "0.9"), says([["0.10", "b"]], 3003, "0.20"), says([["0.21", "c"]], 1000)]);
  assert.deepEqual([words, broken, asked], [["a", "b", "c"], "", ["0.9", "0.20"]]);
});

test("an object that was restarted is asked again, from the last id", async () => {
  const { words, broken, asked } = await read([says([["0.1", "a"]], 1006), 503, says([["0.2", "b"]], 3001), says([["0.3", "c"]], 1000)]);
  assert.deepEqual([words, broken, asked], [["a", "b", "c"], "", ["0.1", "0.1", "0.2"]]);
});

test("what cannot go on breaks, and never ends as if it were whole", async () => {
  for (const [sockets, why] of /** @type {[(FakeSocket | number)[], RegExp][]} */ ([
    [[says([["0.1", "a"]], 3001), 404], /404/],
    [[says([["0.1", "a"]], 3000)], /expired/],
  ])) {
    const { words, broken } = await read(sockets);
    assert.deepEqual(words, ["a"]);
    assert.match(broken, why);
  }
});

test("what an encoder makes of it ends when it says so, and breaks when it cannot go on", async () => {
  const encoder = (/** @type {number} */ most) => ({
    n: 0,
    push(/** @type {string} */ events) {
      const more = Math.min(events.split("\n\n").length - 1, most - this.n);
      return Array.from({ length: more }, () => `data: ${++this.n}\n\n`).join("");
    },
    get over() {
      return this.n >= most;
    },
    free() {},
  });
  const three = () => says([["0.1", "a"], ["0.2", "b"], ["0.3", "c"]], 1000);
  assert.deepEqual((await read([three()], encoder(2))).words, [1, 2]);
  const early = await read([three()], encoder(5));
  assert.deepEqual([early.words[0], early.broken], [1, "the feed ended too early"]);
  const throws = { push: () => assert.fail("a piece is missing"), over: false, free() {} };
  assert.match((await read([three()], throws)).broken, /a piece is missing/);
});

test("what comes while the client takes what was there before goes out together", async () => {
  /** @type {number[]} */
  const together = [];
  const encoder = {
    over: false,
    push(/** @type {string} */ events) {
      together.push(events.split("\n\n").length - 1);
      this.over = events.includes('"last"');
      return events;
    },
    free() {},
  };
  const many = Array.from({ length: 50 }, (_, n) => /** @type {[string, string]} */ ([`0.${n}`, `${n}`]));
  const { words, broken } = await read([says([...many, ["0.99", "last"]], 1000)], encoder);
  assert.deepEqual([words.length, words.at(-1), broken], [51, "last", ""]);
  assert.ok(together.length < 10 && together[0] === 1, `the first goes at once: ${together}`);
});

test("a feed that is quiet is kept alive", async () => {
  const quiet = new FakeSocket((socket) => void setTimeout(() => socket.end(1000), 100));
  assert.equal((await read([quiet])).beats, true);
});
