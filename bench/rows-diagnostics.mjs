// Rows of diagnostics: the check, before a run begins, of everything that it will need; and the export of its spans. Their
// cost is processor time of the server, minus what the same server uses while idle.

import { exchange } from "../tests/worker/support/http.mjs";
import { until } from "../tests/worker/support/poll.mjs";
import { startCollector } from "./collector.mjs";
import { interleaved, median, progress } from "./measure.mjs";
import { ADDS, PROMPT, startProduct } from "./sides.mjs";

/**
 * @typedef {import("./rows.mjs").Bench} Bench
 * @typedef {import("./measure.mjs").Result} Result
 * @typedef {import("./sides.mjs").Side} Side
 */

const TOOLS = 50;

/** Strict agents whose model has no address: their runs end with the diagnostics, and send nothing. */
function lacking() {
  const names = Array.from({ length: TOOLS }, (_, n) => `tool_${n}`);
  const prompt = (/** @type {string[]} */ tools) => ({ ...PROMPT, model: "lost", tools });
  const agent = (/** @type {string} */ name) => ({ type: "ai_human", diagnostics: "strict", sideA: { prompt: name } });
  return {
    models: { lost: { provider: "openai", model: "lost", baseUrl: "{{env LOST_URL}}", apiKeyEnv: "MODEL_KEY" } },
    tools: Object.fromEntries(names.map((name) => [name, { ...ADDS, variables: [{ name: "CITY", type: "text", required: false, description: "Where." }] }])),
    prompts: { plain: prompt([]), tooled: prompt(names) },
    agents: { plain: agent("plain"), tooled: agent("tooled") },
  };
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function looked({ model, times }) {
  const RUNS = 300;
  const { side, end } = await startProduct(model.url, {}, lacking());
  try {
    const threads = { product: await side.thread("tooled"), floor: await side.thread("plain") };
    const body = JSON.stringify({ role: "user", content: "go" });
    const round = async (/** @type {"product" | "floor"} */ which) => {
      const path = `/api/threads/${threads[which]}/messages?wait=true`;
      const before = side.processorMs();
      for (let n = 0; n < RUNS; n++) {
        const { json, text } = await exchange(side.base, "POST", path, { headers: { "content-type": "application/json" }, body });
        if (json.reason !== "strict_diagnostics") throw new Error(`${side.name}: ${text}`);
      }
      return (side.processorMs() - before) / RUNS;
    };
    const values = await interleaved("runs that are looked through", times(9), { product: () => round("product"), floor: () => round("floor") });
    return [
      { what: `a run that is looked through and refused, with ${TOOLS} tools: processor time`, unit: "ms", value: values.product, budget: undefined },
      { what: `… what the ${TOOLS} tools of it are`, unit: "ms", value: values.product - values.floor, budget: 0.2 },
    ];
  } finally {
    await end();
  }
}

/** @param {Bench} bench @returns {Promise<Result[]>} */
export async function exportedRun({ model, times }) {
  const STEPS = 20;
  const THREADS = 20;
  const SECONDS = 8;
  const collector = await startCollector();
  const { side, end } = await startProduct(model.url, { BOBBIN_OTLP_ENDPOINT: collector.url });
  /** The processor time of some seconds, and the number of exports in them. */
  const watch = async () => {
    const [used, requests] = [side.processorMs(), collector.seen.requests];
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
    return { used: side.processorMs() - used, requests: collector.seen.requests - requests };
  };
  try {
    const spans = /** @type {number[]} */ ([]);
    const each = /** @type {number[]} */ ([]);
    for (let sample = 0; sample < times(5); sample++) {
      progress(`exports of runs of ${STEPS} steps: ${sample}`);
      // A refused export is built and sent again as a whole, repeatedly, while nothing else happens.
      collector.status = 503;
      const threads = await Promise.all(Array.from({ length: THREADS }, () => side.thread()));
      const before = collector.seen.requests;
      await Promise.all(threads.map((thread) => side.post(thread, `steps=${STEPS - 1}`, true)));
      await until("all were sent once", () => collector.seen.requests >= before + THREADS, { withinMs: 60_000 });
      const busy = await watch();
      spans.push(collector.seen.last);
      collector.status = 200;
      const taken = collector.seen.taken;
      await until("all are taken", () => collector.seen.taken >= taken + THREADS, { withinMs: 120_000 });
      const idle = await watch();
      if (busy.requests < THREADS || idle.requests > 0) throw new Error(`${busy.requests} exports, and ${idle.requests} where none was due`);
      each.push((busy.used - idle.used) / busy.requests);
    }
    if (median(spans) < 3 * STEPS - 1) throw new Error(`An export had ${spans} spans.`);
    return [
      { what: `export of a run of ${STEPS} steps: processor time`, unit: "ms", value: median(each), budget: 10 },
      { what: "… spans", unit: "", value: median(spans), budget: undefined },
    ];
  } finally {
    await end();
    await collector.end();
  }
}
