// Cases of one's own agents (docs/testing-agents.md), against an application of the tests': what holds passes, and what does not
// says why.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { checkedCase } from "../../package/test/cases.mjs";
import { runCases } from "../../package/test/suite.mjs";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const AGENTS = fileURLToPath(new URL("app", import.meta.url));

const LOOKUP = { calls: [{ tool: "lookup", arguments: { order: "A1" } }] };
const SENT = { tool: "lookup", match: { order: { const: "A1" } }, outcome: { response: { state: "sent" } } };
const ASKED = {
  agent: "clerk",
  model: { script: [LOOKUP, { text: "It is on its way." }] },
  stubs: [SENT],
};

/** @typedef {{ case: object, crash?: boolean, says?: RegExp[] }} Trial   `says`: what a case that fails says; without, it passes */

/** @param {object} expected @param {object} [more] @returns {object} */
const asked = (expected, more = {}) => ({ ...ASKED, ...more, turns: [{ send: "Where is order A1?", expect: [expected] }] });

/** What holds, and the same where it does not. @type {Record<string, [object, object, RegExp]>} */
const PAIRS = {
  called: [{ called: "lookup", with: { order: "A1" }, times: 1 }, { called: "lookup", with: { order: "B2" } }, /“lookup” with \{"order":"B2"\} was called never, not 1 or more times; its calls were: \{"order":"A1"\} \(succeeded\)/],
  times: [{ called: "lookup", times: { min: 1, max: 2 } }, { called: "lookup", times: 2 }, /“lookup” was called once, not 2 times/],
  result: [{ called: "lookup", result: { schema: { required: ["state"] } } }, { called: "lookup", result: "lost" }, /“lookup” with a result matching "lost" was called never/],
  notCalled: [{ notCalled: "refund" }, { notCalled: "lookup" }, /“lookup” was called: \{"order":"A1"\}/],
  toolCalls: [{ toolCalls: 1 }, { toolCalls: { max: 0 } }, /tools were called once, not at most 0 times: lookup/],
  includes: [{ reply: { includes: "on its way" } }, { reply: "tomorrow" }, /the reply does not include “tomorrow”: it is “It is on its way.”/],
  excludes: [{ reply: { excludes: "tomorrow" } }, { reply: { excludes: ["no", "way"] } }, /the reply includes “way”/],
  equals: [{ reply: { equals: "It is on its way." } }, { reply: { equals: "It is" } }, /the reply is “It is on its way.”, not “It is”/],
  matches: [{ reply: { matches: "^It .* way\\.$" } }, { reply: { matches: "^on" } }, /the reply does not match \^on/],
  outcome: [{ outcome: "completed", reason: "stop_on_response" }, { outcome: "failed" }, /the outcome is completed \(stop_on_response\), not failed/],
  reason: [{ outcome: "completed" }, { outcome: "completed", reason: "stop_tool" }, /the reason is stop_on_response, not stop_tool/],
  steps: [{ steps: { max: 2 } }, { steps: { max: 1 } }, /the run took 2 steps, not at most 1/],
  cost: [{ cost: { max: 0.01 } }, { cost: { min: 1 } }, /the case cost 0\.\d+ USD, not 1 or more/],
  parked: [{ parked: false }, { parked: "refund" }, /“refund” should wait, but nothing waits/],
};

/** @param {object[]} calls @param {object} more @returns {object} */
const calling = (calls, more) => ({ agent: "clerk", model: { script: [{ calls }, { text: "Done." }] }, ...more });

const MAIL = [{ tool: "send_mail", arguments: { to: "Ann" } }];
const POST = { url: "https://mail.example.com/*", method: "POST", outcome: { response: "sent" } };

/** @type {Record<string, Trial>} */
const TRIALS = {
  ...Object.fromEntries(
    Object.entries(PAIRS).flatMap(([name, [holds, not, says]]) => [
      [`${name} holds`, { case: asked(holds) }],
      [`${name} does not hold`, { case: asked(not), says: [says] }],
    ]),
  ),
  "approved": {
    case: calling([{ tool: "refund", arguments: { order: "A1" } }], {
      stubs: [{ tool: "refund", outcome: { response: "paid" } }],
      turns: [{ send: "Refund A1", expect: [{ outcome: "parked" }, { parked: "refund" }, { parked: true }] }, { approve: "refund", expect: [{ reply: "Done." }, { called: "refund", result: "paid" }] }],
    }),
  },
  "tools in their order": {
    case: {
      agent: "clerk",
      model: { script: [LOOKUP, { calls: [{ tool: "refund", arguments: { order: "A1" } }] }, { text: "Done." }] },
      stubs: [SENT, { tool: "refund", outcome: { response: "paid" } }],
      turns: [{ send: "Refund A1" }, { approve: "refund", expect: [{ toolOrder: ["lookup", "refund"] }, { toolOrder: ["refund", "lookup"] }] }],
    },
    says: [/turn 2 \(approve "refund"\): tools were not called in the order refund, lookup: “lookup” is missing; calls were: lookup, refund/],
  },
  "denied": {
    case: calling([{ tool: "refund", arguments: { order: "A1" } }], {
      turns: [{ send: "Refund A1" }, { deny: "refund", reason: "too late", expect: [{ called: "refund", result: "too late" }, { outcome: "completed" }] }],
    }),
  },
  "nothing to approve": { case: { ...ASKED, turns: [{ send: "Where is A1?" }, { approve: "refund" }] }, says: [/turn 2 \(approve "refund"\): no approval of “refund” waits; nothing waits/] },
  "asked back, and a tool of the client": {
    case: {
      agent: "clerk",
      model: { script: [{ calls: [{ tool: "ask_user", arguments: { question: "Which order?" } }] }, { calls: [{ tool: "locate" }] }, { text: "Here." }] },
      turns: [{ send: "Help" }, { answer: "A1", expect: [{ called: "ask_user", result: "A1" }, { parked: "locate" }] }, { result: { city: "Lisbon" }, tool: "locate", expect: [{ called: "locate", result: "Lisbon" }, { reply: "Here." }] }],
    },
  },
  "values and files": {
    case: calling([{ tool: "note", arguments: { text: "milk" } }], {
      values: { before: 1 },
      files: { "/list.txt": "eggs" },
      turns: [
        {
          send: "Note milk",
          expect: [
            { values: { note: "milk", length: { schema: { minimum: 4 } }, before: 1, after: null } },
            { files: { "/note.txt": { equals: "milk" }, "/list.txt": "eggs", "/gone.txt": false } },
            { values: { note: "bread" } },
            { values: { other: 1 } },
            { files: { "/other.txt": true } },
          ],
        },
      ],
    }),
    says: [/the value “note” is "milk", not "bread"/, /there is no value “other”; values are: before, length, note/, /there is no file \/other.txt/],
  },
  "tools of an MCP server": {
    case: {
      agent: "clerk",
      model: { script: [{ calls: [{ tool: "desk__find", arguments: { day: "Friday" } }] }, { calls: [{ tool: "desk__book", arguments: { room: "A" } }] }, { text: "It is booked." }] },
      stubs: [
        { tool: "desk__find", outcome: { response: { rooms: ["A"] } } },
        { tool: "desk__book", match: { room: "A" }, outcome: { throw: "somebody was faster" } },
      ],
      turns: [{ send: "A room, please", expect: [{ called: "desk__find", result: '"A"' }, { called: "desk__book", result: "somebody was faster" }, { reply: "It is booked." }] }],
    },
  },
  "a tool of an MCP server that may be called again, under crashes": {
    crash: true,
    case: calling([{ tool: "desk__find", arguments: {} }], { stubs: [{ tool: "desk__find", outcome: { response: "A" } }], turns: [{ send: "A room, please", expect: [{ called: "desk__find", result: "A" }, { reply: "Done." }] }] }),
  },
  "a tool of an MCP server without a stub": {
    case: calling([{ tool: "desk__book", arguments: { room: "A" } }], { turns: [{ send: "A room, please" }] }),
    says: [/“desk__book” sends POST https:\/\/desk\.example\.com\/mcp with \{"room":"A"\}, and no stub matches/],
  },
  "no answer in the script": {
    case: { ...ASKED, model: { script: [LOOKUP] }, turns: [{ send: "Where is A1?" }] },
    says: [/the script has 1 reply for the prompt “clerk”, and reply 2 is requested, after the result of a call: “\{"state":"sent"\}”/],
  },
  "no stub": {
    case: { ...ASKED, stubs: [{ ...SENT, match: { order: "B2" } }], turns: [{ send: "Where is A1?" }] },
    says: [/“lookup” sends POST https:\/\/shop\.example\.com\/lookup with \{"order":"A1"\}, and no stub matches/],
  },
  "a model that fails first, and a tool that does": {
    case: {
      ...ASKED,
      model: { script: [{ ...LOOKUP, fails: 1, status: 503 }, LOOKUP, { text: "There." }] },
      stubs: [{ ...SENT, outcome: undefined, outcomes: [{ throw: "no such order" }, { response: "sent", delayMs: 5 }] }],
      turns: [{ send: "Where is A1?", expect: [{ reply: "There." }, { called: "lookup", result: "no such order", times: 1 }, { called: "lookup", result: "sent", times: 1 }] }],
    },
  },
  "a stub for the first call alone, and one for a native tool": {
    case: calling([{ tool: "current_time" }, { tool: "current_time" }], {
      stubs: [{ tool: "current_time", times: 1, outcome: { response: "noon" } }],
      turns: [{ send: "What time is it?", expect: [{ called: "current_time", times: 2 }, { called: "current_time", result: { equals: "noon" }, times: 1 }, { called: "current_time", result: { matches: "^20\\d\\d-" }, times: 1 }] }],
    }),
  },
  "what was said before": {
    case: {
      ...ASKED,
      history: [{ role: "user", content: "Hello" }, { role: "assistant", content: "Good day." }],
      turns: [{ send: "Where is A1?", expect: [{ reply: "on its way" }, { called: "lookup", times: 1 }] }],
    },
  },
  "three days": {
    case: {
      agent: "clerk",
      model: { script: [{ calls: [{ tool: "refund", arguments: { order: "A1" } }] }, { calls: [{ tool: "current_time" }] }, { text: "Nobody answered." }] },
      turns: [{ send: "Refund A1" }, { advance: "6d", expect: [{ parked: "refund" }] }, { advance: "1d", expect: [{ parked: false }, { reply: "Nobody answered." }, { notCalled: "lookup" }] }],
    },
  },
  "a turn that does not end": {
    case: calling(MAIL, { within: "1s", stubs: [{ tool: "send_mail", delayMs: 20000, outcome: { response: "" } }], turns: [{ send: "Mail Ann" }] }),
    says: [/the turn did not end within 1 s; the thread is running, its run is in step 1/],
  },
  "dropped in the middle of a call": {
    case: calling([{ tool: "refund", arguments: { order: "A1" } }], {
      stubs: [{ tool: "refund", crash: true, outcome: { response: "paid" } }],
      turns: [{ send: "Refund A1" }, { approve: "refund", expect: [{ reply: "Done." }, { called: "refund", result: "It may or may not have taken effect" }] }],
    }),
  },

  "a safe application under crashes": {
    crash: true,
    case: {
      agent: "clerk",
      model: { script: [LOOKUP, { calls: [{ tool: "note", arguments: { text: "milk" } }, { tool: "refund", arguments: { order: "A1" } }] }, { text: "Done." }] },
      stubs: [SENT, { tool: "refund", outcome: { response: "paid" } }],
      turns: [{ send: "Refund A1", expect: [{ parked: "refund" }] }, { approve: "refund", expect: [{ reply: "Done." }, { called: "refund", times: 1 }, { values: { note: "milk" } }, { outcome: "completed" }] }],
    },
  },
  "a tool that is declared idempotent, and is called twice": {
    crash: true,
    case: calling(MAIL, { stubs: [{ tool: "send_mail", outcome: { response: "sent" } }], turns: [{ send: "Mail Ann", expect: [{ reply: "Done." }] }] }),
    says: [/^“send_mail” ran twice when killed at write \d+ of \d+ \(thread: .*\); it is declared idempotent, so its service must store the idempotency key/],
  },
  "one whose service stores the key": {
    crash: true,
    case: calling(MAIL, { stubs: [{ tool: "send_mail", repeatable: true, outcome: { response: "sent" } }], turns: [{ send: "Mail Ann", expect: [{ reply: "Done." }] }] }),
  },
  "code that writes outside twice": {
    crash: true,
    case: calling([{ tool: "send_twice" }], { stubs: [POST], turns: [{ send: "Mail both", expect: [{ reply: "Done." }] }] }),
    says: [/^“tools\/send_twice.ts” ran twice when killed at write \d+ of \d+ \(thread: .*\); it repeated POST https:\/\/mail\.example\.com\/send: send an idempotency key/],
  },
  "the same with keys": {
    crash: true,
    case: calling([{ tool: "send_twice", arguments: { key: "k1" } }], { stubs: [POST], turns: [{ send: "Mail both", expect: [{ reply: "Done." }, { values: { last: "Bea" } }] }] }),
  },
  "code that counts twice": {
    crash: true,
    case: calling([{ tool: "tally" }], { turns: [{ send: "Count", expect: [{ reply: "Done." }] }] }),
    says: [/^“tally” ran twice when killed at write \d+ of \d+ \(thread: .*\); the value “count” is 3 instead of 2/],
  },
  "an expectation that a crash breaks": {
    crash: true,
    case: calling(MAIL.map(() => ({ tool: "refund", arguments: { order: "A1" } })), {
      stubs: [{ tool: "refund", outcome: { response: "paid" } }],
      turns: [{ send: "Refund A1" }, { approve: "refund", expect: [{ called: "refund", result: "paid" }] }],
    }),
    says: [/killed at write \d+ of \d+ \(thread: .*\): turn 2 \(approve "refund"\): “refund” with a result matching "paid" was called never/],
  },
};

/** @type {Map<string, import("../../package/test/suite.mjs").Result>} */
const results = new Map();

describe("cases", () => {
  before(async () => {
    // Two runs of all there is, each with one workerd.
    for (const crash of [false, true]) {
      const cases = Object.entries(TRIALS).flatMap(([name, trial]) => ((trial.crash ?? false) === crash ? [checkedCase(trial.case, { file: "x.test.json", folder: PROJECT, name })] : []));
      for (const result of await runCases(cases, { agents: AGENTS, project: PROJECT, crash })) results.set(result.case.name, result);
    }
  });

  for (const [name, { says, crash }] of Object.entries(TRIALS)) {
    test(name, () => {
      const { state, failures, crash: swept } = /** @type {import("../../package/test/suite.mjs").Result} */ (results.get(name));
      const said = crash ? (swept?.findings ?? []).map(({ what }) => what) : failures.map(({ turn, about, what }) => `turn ${turn} (${about}): ${what}`);
      assert.equal(state, says === undefined ? "passed" : "failed", said.join("\n") || failures.map(({ what }) => what).join("\n"));
      if (crash) assert.ok((swept?.points ?? 0) >= 5, `${swept?.points} crash points`);
      (says ?? []).forEach((pattern) => assert.ok(said.some((one) => pattern.test(one)), `${pattern} is not in\n${said.join("\n")}`));
      if (says !== undefined) assert.equal(said.length, says.length, said.join("\n"));
    });
  }
});
