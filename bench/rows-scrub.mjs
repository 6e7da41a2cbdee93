// Rows of scrubbing: a step with a long tool result, compared with the same without scrubbing; and the processor time of
// scrubbing in the Worker's wasm. Each has its own server, because the definitions set what to scrub.

import { interleaved, progress, ratio, timed } from "./measure.mjs";
import { startProduct } from "./sides.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Definitions} Definitions
 */

/** Steps with a tool's text per run. */
const STEPS = 5;
/** Just below the limit on a result. */
const LONG_KB = 960;

/** An agent that reads texts of 32 KB, and one that reads one of nearly 1 MB. @param {string} modelUrl @param {"redact" | "off"} action @returns {Definitions} */
function readers(modelUrl, action) {
  const reads = (/** @type {number} */ kb) => ({
    description: "Reads what was logged.",
    args: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
    run: { http: { url: `${modelUrl}/text/${kb}` } },
  });
  const prompt = (/** @type {string} */ tool) => ({
    toolDescription: "Reads.",
    model: "reader",
    includeChat: true,
    prompt: "You read what was logged.",
    tools: [tool],
  });
  const agent = (/** @type {string} */ name) => ({ type: "ai_human", sideA: { prompt: name, maxSteps: 250 } });
  return {
    settings: { scrub: { keywords: action, entropy: action } },
    models: { reader: { provider: "openai", model: "reader", baseUrl: modelUrl, apiKeyEnv: "MODEL_KEY", capabilities: { maxContextTokens: 2_000_000 } } },
    tools: { read: reads(32), read_long: reads(LONG_KB) },
    prompts: { reading: prompt("read"), reading_long: prompt("read_long") },
    agents: { reading: agent("reading"), reading_long: agent("reading_long") },
  };
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function scrubbing({ model, times }) {
  const servers = {
    product: await startProduct(model.url, {}, readers(model.url, "redact")),
    floor: await startProduct(model.url, {}, readers(model.url, "off")),
  };
  try {
    /**
     * Each run has its own thread, because earlier results would be sent again.
     *
     * @param {"product" | "floor"} which @param {"reading" | "reading_long"} agent @param {string} wishes
     */
    const run = async (which, agent, wishes) => {
      const { side } = servers[which];
      const thread = await side.thread(agent);
      return timed(() => side.post(thread, wishes, true));
    };
    const step = (/** @type {"product" | "floor"} */ which) => async () =>
      ((await run(which, "reading", `look=${STEPS}`)) - (await run(which, "reading", ""))) / STEPS;
    const steps = await interleaved("a step with 32 KB", times(40), { product: step("product"), floor: step("floor") });

    /** The processor time of a run. @param {"reading" | "reading_long"} agent @param {string} wishes @param {number} runs */
    const used = async (agent, wishes, runs) => {
      const each = (/** @type {"product" | "floor"} */ which) => async () => {
        const { side } = servers[which];
        const before = side.processorMs();
        for (let n = 0; n < runs; n++) await run(which, agent, wishes);
        return (side.processorMs() - before) / runs;
      };
      progress(`scrubbing: ${agent}`);
      const { product, floor } = await interleaved(`processor time of ${agent}`, times(15), { product: each("product"), floor: each("floor") });
      return product - floor;
    };
    const short = (await used("reading", `look=${STEPS}`, 20)) / STEPS;
    const long = await used("reading_long", "look_long=1", 5);
    return [
      { ...ratio("tool step with a result of 32 KB, scrubbed", "ms", steps, 1.05), against: "not scrubbed" },
      { what: "… processor time of scrubbing 32 KB", unit: "ms", value: short, budget: 0.5 },
      { what: "… processor time of scrubbing 1 MB", unit: "ms", value: (long * 1024) / LONG_KB, budget: 15 },
    ];
  } finally {
    await servers.product.end();
    await servers.floor.end();
  }
}
