// What is streamed, read with the parser of one major of the packages, as it is and byte by byte; and again with the server killed while
// it streams.

import assert from "node:assert/strict";
import { direct, finishes, sessionTools, subagent } from "../../worker/support/family.mjs";
import { breakOff, makes, say } from "../../worker/support/model.mjs";
import { chance, sleep, until } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const LONG = Array.from({ length: 20 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

const LOST = "This attempt is lost – 日本 🧵.";

/** @param {number} major @param {any} ai  the package @param {boolean} [killed] */
export function streams(major, ai, killed = false) {
  const bobbin = suite();
  const name = `ai-sdk-${major}${killed ? ", killed" : ""}`;
  bobbin.tool("lookup", () => '{"found":true}');
  bobbin.tool("broken", () => ({ status: 400, body: "it broke" }));
  bobbin.tool("pay", () => "paid", { approval: "always" });
  bobbin.agent("talker", () => say(LONG, { chunks: 12, everyMs: 5 }));
  bobbin.agent("caller", makes({ name: "lookup", args: { of: "it" } }, { name: "broken", args: {} }), {
    tools: ["lookup", "broken"],
  });
  bobbin.agent("payer", makes({ name: "pay", args: { amount: 5 } }), { tools: ["pay"] });
  bobbin.agent("garbler", makes({ name: "lookup", args: "{ of: it" }), { tools: ["lookup"] });
  bobbin.agent("finder", makes({ name: "locate", args: { of: "me" } }), { tools: ["locate"] });
  bobbin.definitions.push(() => {
    bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
  });
  // Each first attempt breaks off in the middle.
  const begun = new Set();
  bobbin.agent("loser", ({ last }) => {
    if (begun.has(last)) return say(LONG, { chunks: 12, everyMs: 5 });
    begun.add(last);
    return breakOff(LOST);
  });
  sessionTools(bobbin);
  subagent(bobbin, "solver", finishes());
  bobbin.agent("leader", makes({ name: "solver", args: { task: "sums" } }), { tools: [direct("solver")] });
  bobbin.agent("failing", () => (out) => void out.response.writeHead(400).end("no"));

  const random = chance(name);
  /** What a page sends, until it is answered whole; in the twin the server dies meanwhile. @param {string} agent @param {string} id @param {string} query */
  const post = async (agent, id, query) => {
    const body = {
      id,
      trigger: "submit-message",
      messages: [{ id: `u-${id}`, role: "user", parts: [{ type: "text", text: `hello ${id}` }] }],
    };
    const sent = () => bobbin.client.send("POST", `/agents/${agent}/chat${query}`, body);
    if (!killed) return sent();
    const dies = sleep(random.between(0, 300)).then(() => bobbin.server.crash());
    const answer = await until("it is answered", () => sent().catch(() => undefined), { withinMs: 60_000 });
    await dies;
    return answer;
  };

  /** The chunks as the package's transport reads them. @param {Uint8Array[]} pieces */
  async function chunks(pieces) {
    const stream = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        controller.close();
      },
    });
    const read = [];
    const parsed = ai.parseJsonEventStream({ stream, schema: ai.uiMessageChunkSchema });
    for await (const result of parsed) {
      assert.ok(result.success, `${result.error}`);
      read.push(result.value);
    }
    return read;
  }

  /** The message that they make. @param {any[]} read */
  async function message(read) {
    const stream = new ReadableStream({
      start(controller) {
        for (const chunk of read) controller.enqueue(chunk);
        controller.close();
      },
    });
    let last;
    for await (const made of ai.readUIMessageStream({ stream, terminateOnError: false, onError: () => {} })) last = made;
    return last;
  }

  for (const agent of ["talker", "caller", "payer", "garbler", "finder", "leader", "loser", "failing"]) {
    for (const query of major === 5 ? ["?approvals=data"] : major === 7 ? ["", "?features=reset-step"] : [""]) {
      bobbin.test(`${name}: what the agent ${agent} streams${query} is understood, byte by byte`, async () => {
        const id = `${agent}-${major}${killed}${query}`;
        const answer = await post(agent, id, query);
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers["x-vercel-ai-ui-message-stream"], "v1");
        const bytes = new TextEncoder().encode(answer.text);
        const read = await chunks([bytes]);
        assert.deepEqual(await chunks(Array.from(bytes, (byte) => Uint8Array.of(byte))), read);
        assert.equal(read.filter(({ type }) => type === "finish").length, 1);
        if (agent === "leader" && !killed) {
          const under = read.filter(({ preliminary }) => preliminary);
          assert.ok(under.length > 0, "the subagent is shown while it works");
          for (const { output } of under) assert.deepEqual([output.status, output.thread.length], ["running", 36]);
        }
        const made = await message(read);
        if (agent === "failing") return void assert.ok(read.some(({ type }) => type === "error"));
        const history = await bobbin.client.send("GET", `/agents/${agent}/chat/${encodeURIComponent(id)}${query}`);
        assert.equal(history.status, 200, history.text);
        const stored = history.json.messages.at(-1);
        const plain = JSON.parse(JSON.stringify(made));
        // Who does not know how to take a lost attempt back is told that it is one.
        if (query.includes("reset-step") || agent !== "loser") {
          assert.ok(!read.some(({ type }) => type === "data-bobbin-reset"));
        } else {
          const at = plain.parts.findIndex((/** @type {any} */ { type }) => type === "data-bobbin-reset");
          if (!killed) assert.ok(at > 0, "the attempt is lost");
          if (at > 0) plain.parts.splice(at - 1, 2);
        }
        for (const part of plain.parts) if (part.type === "text") part.state = "done";
        delete plain.metadata?.usage;
        delete stored.metadata?.usage;
        assert.deepEqual(plain, stored);
      });
    }
  }
}
