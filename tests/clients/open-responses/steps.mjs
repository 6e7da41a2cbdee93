// A client of Open Responses that is strict: the AI SDK's, which keeps the conversation itself, in two steps.

import assert from "node:assert/strict";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { say, use } from "../../worker/support/model.mjs";
import { chance, sleep } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";

/** @param {boolean} killed */
export function steps(killed) {
  const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin` } });
  bobbin.definitions.push(() => {
    bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
  });
  bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`, { chunks: 3 }) : use({ name: "locate", args: {} })), {
    tools: ["locate"],
  });
  const random = chance(`open-responses ${killed}`);

  bobbin.test(`open-responses${killed ? ", killed" : ""}: two steps, with a tool of the client between them`, async () => {
    const model = createOpenResponses({ name: "bobbin", url: `${bobbin.server.base}/v1/responses`, apiKey: KEY })("finder");
    let called = 0;
    const disturb = async () => {
      if (!killed) return;
      await sleep(random.between(0, 100));
      await bobbin.server.crash();
    };
    const result = streamText({
      model,
      prompt: "Where am I?",
      maxRetries: killed ? 6 : 0,
      tools: {
        locate: tool({
          inputSchema: z.object({}),
          execute: async () => {
            called += 1;
            await disturb();
            return "Lisbon";
          },
        }),
      },
      stopWhen: stepCountIs(3),
      onError: ({ error }) => void console.error(error),
    });
    assert.equal(await result.text, "You are in Lisbon.");
    assert.equal((await result.steps).length, 2);
    assert.equal(called, 1);
  });
}
