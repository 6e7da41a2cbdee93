// What the compiler answered is answered again, within bounds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Answers } from "../../isolate/answers.js";

/** A request long enough to be kept. @param {string} name */
const request = (name) => name.padEnd(5000, ".");

test("the same request is answered once", async () => {
  const answers = new Answers();
  let made = 0;
  const make = async () => ({ made: ++made });
  assert.deepEqual(await answers.of(request("a"), make), { made: 1 });
  assert.deepEqual(await answers.of(request("a"), make), { made: 1 });
  assert.deepEqual(await answers.of(request("b"), make), { made: 2 });
  assert.deepEqual(await answers.of("short", make), { made: 3 });
  assert.deepEqual(await answers.of("short", make), { made: 4 });
  assert.deepEqual(answers.counts, { answers: 2, size: 2 * '{"made":1}'.length });
});

test("a mistake is not kept, and neither is what failed", async () => {
  const answers = new Answers();
  await answers.of(request("a"), async () => ({ error: { name: "SyntaxError" } }));
  await assert.rejects(() => answers.of(request("a"), () => Promise.reject(new Error("lost"))), /lost/);
  assert.deepEqual(await answers.of(request("a"), async () => ({ code: 1 })), { code: 1 });
  assert.equal(answers.counts.answers, 1);
});

/** Compiled code of 5,000 characters as JSON. @param {number} code */
const compiled = (code) => ({ code, text: "x".repeat(5000 - JSON.stringify({ code, text: "" }).length) });

test("what was not used for longest goes first", async () => {
  const answers = new Answers(12_000);
  /** @param {string} name @param {number} code */
  const ask = async (name, code) => (await answers.of(request(name), async () => compiled(code))).code;
  await ask("a", 1);
  await ask("b", 2);
  await ask("a", 3);
  await ask("c", 4);
  assert.deepEqual(answers.counts, { answers: 2, size: 10_000 });
  assert.deepEqual([await ask("a", 5), await ask("c", 6), await ask("b", 7)], [1, 4, 7]);
});

test("what is asked twice at once is kept once", async () => {
  const answers = new Answers(12_000);
  await Promise.all([answers.of(request("a"), async () => compiled(1)), answers.of(request("a"), async () => compiled(2))]);
  assert.deepEqual(answers.counts, { answers: 1, size: 5000 });
});

test("code that is larger than the cache is not kept, however short its source is", async () => {
  const answers = new Answers(12_000);
  const large = { text: "x".repeat(13_000) };
  assert.equal(await answers.of(request("a"), async () => large), large);
  assert.deepEqual(answers.counts, { answers: 0, size: 0 });
});
