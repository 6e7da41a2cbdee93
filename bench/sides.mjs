// The two sides of the comparison: the product and the floor, served by the same wrangler and workerd on this machine, and
// used by the same client.

import { spawn } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { compileCatalog } from "../scripts/catalog.mjs";
import { setUp } from "../scripts/setup.mjs";
import { AgentsFolder } from "../tests/worker/support/agents.mjs";
import { exchange } from "../tests/worker/support/http.mjs";
import { until } from "../tests/worker/support/poll.mjs";
import { killAll, processorMs, running, tree, workerdOf } from "../tests/worker/support/processes.mjs";
import { Server, checkout, freePort, memory, scratch } from "../tests/worker/support/server.mjs";
import { Socket } from "../tests/worker/support/socket.mjs";
import { message } from "./model.mjs";

const KEY = "bench-key";

// wrangler 4.164 records a trace of every request and every SQL statement, in its own object in the same process. With it a
// turn takes two to three times as long, and the recorder would be measured. The servers of both sides inherit this.
process.env.X_LOCAL_OBSERVABILITY = "false";

const JSON_BODY = { "content-type": "application/json" };

/** Definitions, by kind and name. @typedef {Parameters<AgentsFolder["write"]>[0]} Definitions */

/** A server of either side. */
export class Side {
  /** @param {string} name @param {string} base @param {string} persist @param {() => number} pid  of the server process */
  constructor(name, base, persist, pid) {
    this.name = name;
    this.base = base;
    this.persist = persist;
    this.pid = pid;
  }

  /** A new thread's id. @param {"bench" | "family" | "asking" | "together" | "in_turn" | "leading" | "summing" | "recalling" | "limited" | "lending" | "unsummed" | "reading" | "looking" | "reading_long" | "plain" | "tooled"} [agent] */
  async thread(agent = "bench") {
    const body = JSON.stringify({ agent_id: agent });
    const answer = await exchange(this.base, "POST", "/api/threads", { headers: JSON_BODY, body });
    if (answer.status !== 200) throw new Error(`${this.name}: ${answer.text}`);
    return /** @type {string} */ (answer.json.threadId);
  }

  /** Posts a message of 1 KB. @param {string} thread @param {string} wishes @param {boolean} wait for the run's answer */
  async post(thread, wishes, wait) {
    const path = `/api/threads/${thread}/messages${wait ? "?wait=true" : ""}`;
    const body = JSON.stringify({ role: "user", content: message(wishes) });
    const answer = await exchange(this.base, "POST", path, { headers: JSON_BODY, body, withinMs: 120_000 });
    const right = wait ? answer.status === 200 && answer.json.outcome === "completed" : answer.status === 202;
    if (!right) throw new Error(`${this.name}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  /** Stores a message of 1 KB that starts no run. @param {string} thread */
  async note(thread) {
    const body = JSON.stringify({ role: "system", content: message("a note") });
    const answer = await exchange(this.base, "POST", `/api/threads/${thread}/messages`, { headers: JSON_BODY, body });
    if (answer.status !== 202) throw new Error(`${this.name}: ${answer.status} ${answer.text}`);
  }

  /** @param {string} path */
  async get(path) {
    const answer = await exchange(this.base, "GET", path);
    if (answer.status !== 200) throw new Error(`${this.name}: ${answer.status} ${answer.text}`);
    return answer;
  }

  /** Sends a POST that must be accepted (202). @param {string} path @param {object} [body] */
  async ask(path, body = {}) {
    const answer = await exchange(this.base, "POST", path, { headers: JSON_BODY, body: JSON.stringify(body) });
    if (answer.status !== 202) throw new Error(`${this.name}: ${answer.status} ${answer.text}`);
  }

  /** Sends a POST that must succeed at once (200). @param {string} path @param {object} body */
  async answered(path, body) {
    const answer = await exchange(this.base, "POST", path, { headers: JSON_BODY, body: JSON.stringify(body) });
    if (answer.status !== 200 || answer.json.degraded) throw new Error(`${this.name}: ${answer.status} ${answer.text}`);
  }

  /** @param {string} thread @param {string} [query] */
  socket(thread, query = "") {
    return Socket.open(this.base, `/api/threads/${thread}/stream${query}`);
  }

  /** The processor time of the workerd that runs the objects, in milliseconds. */
  processorMs() {
    const pid = workerdOf(this.pid(), this.persist);
    if (pid === undefined) throw new Error(`${this.name}: its workerd is not found`);
    return processorMs(pid);
  }
}

export const PROMPT = {
  toolDescription: "The benchmark's prompt.",
  model: "bench",
  includeChat: true,
  includePastTools: true,
  prompt: "You are a careful assistant. Keep answers short.",
};
const TASK = { type: "object", properties: { task: { type: "string" } }, required: ["task"] };

export const ADDS = {
  description: "Adds two numbers.",
  args: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
  run: { native: "calculate" },
};

/** An agent with two sides that ends after one answer. */
const once = {
  type: "dual_ai",
  exposeAsTool: true,
  toolDescription: "Does one task.",
  sideA: { prompt: "child" },
  sideB: { prompt: "child" },
  maxSessionTurns: 1,
};

/** The agents of the benchmark. @param {string} modelUrl @param {Definitions} [more] */
function agents(modelUrl, more = {}) {
  const entry = (/** @type {string} */ name, /** @type {boolean} */ blocking) => ({ name, blocking, initUserMessageProperty: "task" });
  const folder = new AgentsFolder({
    models: {
      bench: { provider: "openai", model: "bench", baseUrl: modelUrl, apiKeyEnv: "MODEL_KEY" },
      vectors: { kind: "embedding", provider: "openai", model: "vectors", baseUrl: modelUrl, apiKeyEnv: "MODEL_KEY" },
    },
    memories: { record: { description: "What is on record.", embedding: "vectors", chunk: { chars: 100, overlap: 0 } } },
    prompts: {
      bench: { ...PROMPT, tools: ["work"] },
      family: { ...PROMPT, parallelToolCalls: true, tools: [entry("waited", true), entry("sent", false)] },
      asking: { ...PROMPT, tools: ["work", "pay"] },
      together: { ...PROMPT, parallelToolCalls: true, parallelReadOnly: true, tools: ["work"] },
      in_turn: { ...PROMPT, parallelToolCalls: true, tools: ["work"] },
      child: { ...PROMPT, requiredSchema: TASK },
      kept: PROMPT,
      summing: { ...PROMPT, summary: true },
      recalling: { ...PROMPT, tools: ["work"], memory: [{ name: "record", inject: true }] },
      leading: {
        ...PROMPT,
        parallelToolCalls: true,
        tools: [{ name: "kept", resumable: { receives_messages: "side_a" } }],
        subagents: { agents: ["kept"] },
      },
    },
    tools: {
      work: ADDS,
      pay: { ...ADDS, approval: "always" },
    },
    agents: {
      bench: { type: "ai_human", sideA: { prompt: "bench", maxSteps: 250 } },
      family: { type: "ai_human", sideA: { prompt: "family", maxSteps: 250 } },
      asking: { type: "ai_human", sideA: { prompt: "asking", maxSteps: 250 } },
      together: { type: "ai_human", sideA: { prompt: "together", maxSteps: 250 } },
      in_turn: { type: "ai_human", sideA: { prompt: "in_turn", maxSteps: 250 } },
      leading: { type: "ai_human", sideA: { prompt: "leading", maxSteps: 250 } },
      summing: { type: "ai_human", sideA: { prompt: "summing", maxSteps: 250 } },
      unsummed: { type: "ai_human", sideA: { prompt: "kept", maxSteps: 250 } },
      recalling: { type: "ai_human", sideA: { prompt: "recalling", maxSteps: 250 } },
      limited: {
        type: "ai_human",
        sideA: { prompt: "bench", maxSteps: 250 },
        budget: { run: { maxTokens: 1e9, maxModelCalls: 1e6, maxToolCalls: 1e6, maxSeconds: 1e6 } },
      },
      lending: { type: "ai_human", sideA: { prompt: "family", maxSteps: 250 }, budget: { run: { maxTokens: 1e9, maxModelCalls: 1e6 } } },
      kept: { ...once, sideA: { prompt: "kept" }, sideB: { prompt: "kept" } },
      waited: once,
      sent: once,
    },
  });
  folder.write(more);
  return folder;
}

/**
 * @param {string} modelUrl
 * @param {Record<string, string>} [vars]  of the deployment
 * @param {Definitions} [more]  additional definitions
 */
export async function startProduct(modelUrl, vars = {}, more = {}) {
  const folder = agents(modelUrl, more);
  const server = await Server.start({ agents: folder.path, vars: { MODEL_KEY: KEY, ...vars } });
  const end = async () => {
    await server.remove();
    folder.remove();
  };
  const side = new Side("bobbin", server.base, server.persist, () => server.child?.pid ?? 0);
  return { side, end, restart: () => server.crash() };
}

/** @param {string} modelUrl */
export async function startFloor(modelUrl) {
  const { node } = await setUp();
  const [port, behind] = [await freePort(), await freePort()];
  const persist = scratch("floor", memory);
  const printed = /** @type {string[]} */ ([]);
  const child = spawn(
    node,
    [
      "--no-warnings",
      join(checkout, "node_modules/wrangler/wrangler-dist/cli.js"),
      ...["dev", "--config", join(checkout, "bench/floor/wrangler.toml"), "--ip", "127.0.0.1", "--port", String(behind)],
      ...["--persist-to", persist, "--show-interactive-dev-session=false"],
      ...["--var", `MODEL_URL:${modelUrl}`, "--var", `MODEL_KEY:${KEY}`],
    ],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        WRANGLER_SEND_METRICS: "false",
        WRANGLER_SEND_ERROR_REPORTS: "false",
        CLOUDFLARE_CF_FETCH_ENABLED: "false",
      },
    },
  );
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => printed.push(text));
  // The same entry as the product's.
  const front = spawn(node, [join(checkout, "bench/front.mjs"), String(port), String(behind)], { stdio: "inherit" });
  const base = `http://127.0.0.1:${port}`;
  const kill = () => {
    front.kill("SIGKILL");
    killAll(tree(child.pid ?? 0).filter(running));
  };
  process.on("exit", kill);
  await until(
    "the floor answers",
    async () => {
      if (child.exitCode !== null) throw new Error(`the floor ended:\n${printed.join("")}`);
      const answer = await exchange(base, "GET", "/healthz", { withinMs: 2000 }).catch(() => undefined);
      return answer?.status === 200;
    },
    { withinMs: 60_000, describe: () => printed.join("").slice(-2000) },
  );
  const end = async () => {
    kill();
    process.off("exit", kill);
    await until("the floor is gone", () => child.exitCode !== null || child.signalCode !== null);
    rmSync(persist, { recursive: true, force: true });
  };
  return { side: new Side("floor", base, persist, () => child.pid ?? 0), end };
}

/**
 * A Worker under miniflare alone.
 *
 * @param {string} name
 * @param {Omit<import("./miniflare.mjs").BareOptions, "port" | "persist">} options
 */
async function startBare(name, options) {
  const { node } = await setUp();
  const [port, persist] = [await freePort(), scratch(`bare-${name}`, memory)];
  const child = spawn(node, ["--no-warnings", join(checkout, "bench/miniflare.mjs"), JSON.stringify({ ...options, port, persist })], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const base = `http://127.0.0.1:${port}`;
  const kill = () => killAll(tree(child.pid ?? 0).filter(running));
  process.on("exit", kill);
  const answers = async () => {
    if (child.exitCode !== null) throw new Error(`miniflare with the ${name} ended with ${child.exitCode}`);
    const answer = await exchange(base, "GET", "/healthz", { withinMs: 2000 }).catch(() => undefined);
    return answer?.status === 200;
  };
  await until(`the ${name} under miniflare answers`, answers, { withinMs: 60_000 });
  const end = async () => {
    kill();
    process.off("exit", kill);
    await until(`miniflare with the ${name} is gone`, () => child.exitCode !== null || child.signalCode !== null);
    rmSync(persist, { recursive: true, force: true });
  };
  // The only workerd below that process, whatever folder miniflare uses.
  return { side: new Side(name, base, "", () => child.pid ?? 0), end };
}

/** The product and the floor, both under miniflare alone. @param {string} modelUrl */
export async function startBarePair(modelUrl) {
  const folder = agents(modelUrl);
  const root = scratch("bare-dist");
  for (const file of ["index.js", "index_bg.wasm"]) copyFileSync(join(checkout, "dist", file), join(root, file));
  await compileCatalog(folder.path, join(root, "catalog.json"));
  const product = await startBare("product", {
    root,
    modules: [
      { type: "ESModule", path: join(root, "index.js") },
      { type: "CompiledWasm", path: join(root, "index_bg.wasm") },
      { type: "Text", path: join(root, "catalog.json") },
    ],
    objects: { THREADS: "ThreadObject", DIRECTORY: "DirectoryObject", MEMORY: "MemoryObject" },
    vars: { BOBBIN_DEV: "1", MODEL_KEY: KEY },
  });
  const floor = await startBare("floor", {
    root: join(checkout, "bench/floor"),
    modules: [{ type: "ESModule", path: join(checkout, "bench/floor/index.js") }],
    objects: { THREADS: "FloorThread" },
    vars: { MODEL_URL: modelUrl, MODEL_KEY: KEY },
  });
  const end = async () => {
    await product.end();
    await floor.end();
    folder.remove();
    rmSync(root, { recursive: true, force: true });
  };
  return { product: product.side, floor: floor.side, end };
}
