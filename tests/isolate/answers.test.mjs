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
  assert.deepEqual(answers.counts, { answers: 2, size: 10_000 });
});

test("a mistake is not kept, and neither is what failed", async () => {
  const answers = new Answers();
  await answers.of(request("a"), async () => ({ error: { name: "SyntaxError" } }));
  await assert.rejects(() => answers.of(request("a"), () => Promise.reject(new Error("lost"))), /lost/);
  assert.deepEqual(await answers.of(request("a"), async () => ({ code: 1 })), { code: 1 });
  assert.equal(answers.counts.answers, 1);
});

test("what was not used for longest goes first", async () => {
  const answers = new Answers(12_000);
  /** @param {string} name @param {number} code */
  const ask = (name, code) => answers.of(request(name), async () => ({ code }));
  await ask("a", 1);
  await ask("b", 2);
  await ask("a", 3);
  await ask("c", 4);
  assert.deepEqual(answers.counts, { answers: 2, size: 10_000 });
  assert.deepEqual([await ask("a", 5), await ask("c", 6), await ask("b", 7)], [{ code: 1 }, { code: 4 }, { code: 7 }]);
});

test("what is asked twice at once is kept once, and what is too large not at all", async () => {
  const answers = new Answers(12_000);
  await Promise.all([answers.of(request("a"), async () => ({ code: 1 })), answers.of(request("a"), async () => ({ code: 2 }))]);
  await answers.of("x".repeat(13_000), async () => ({ code: 3 }));
  assert.deepEqual(answers.counts, { answers: 1, size: 5000 });
});
