// The common setup of the test files: one product, one model server and one tool server. Each agent has its own model,
// so that the tests of a file do not interfere.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AgentsFolder } from "./agents.mjs";
import { Client } from "./client.mjs";
import { MODEL_KEY, ModelServer } from "./model.mjs";
import { seed, sleep } from "./poll.mjs";
import { Server } from "./server.mjs";
import { SIGNING_SECRET, ToolServer } from "./tool.mjs";

/** @typedef {import("./client.mjs").Thread} Thread */
/** @typedef {import("./model.mjs").Model} Model */
/** @typedef {import("./model.mjs").Script} Script */

/** How long to watch a thread that must stay idle: short here, a minute and more in the soak. */
const QUIET_MS = Number(process.env.BOBBIN_QUIET_SECONDS ?? 2) * 1000;

/**
 * @typedef {object} Settings
 * @property {Record<string, string>} [vars]
 * @property {string[]} [flags]               further flags of `npm start`
 * @property {boolean} [wrangler]             whether it needs features of `wrangler dev`
 * @property {string} [key]                   the bearer token of the suite's client
 * @property {string} [persist]               the folder of the threads
 *
 * @typedef {object} AgentSettings
 * @property {(string | object)[]} [tools]    entries of the prompt's `tools`
 * @property {string} [system]                the system prompt
 * @property {object} [prompt]                further fields of the prompt
 * @property {object} [side]                  further fields of side A
 * @property {object} [model]                 further fields of the model
 * @property {object} [agent]                 further fields of the agent
 *
 * @typedef {object} Agent
 * @property {string} name
 * @property {Model} model   its model, with a record of the requests
 */

export class Suite {
  /** @param {Settings} settings */
  constructor(settings) {
    this.settings = settings;
    this.models = new ModelServer();
    this.tools = new ToolServer();
    this.folder = new AgentsFolder();
    /** Functions that write the definitions once the servers have addresses. @type {(() => void)[]} */
    this.definitions = [];
    /** @type {Server | undefined} */
    this.running = undefined;
  }

  /** The running product. */
  get server() {
    assert.ok(this.running, "the suite is up");
    return this.running;
  }

  get client() {
    return this.as(this.settings.key);
  }

  /** Returns a client with another bearer token, or without one. @param {string | undefined} key */
  as(key) {
    return new Client(this.server.base, key === undefined ? {} : { key });
  }

  /**
   * Defines an agent with its own prompt and model.
   *
   * @param {string} name
   * @param {Script} script  the script of its model
   * @param {AgentSettings} [settings]
   * @returns {Agent}
   */
  agent(name, script, settings = {}) {
    const { tools = [], system = `You are ${name}.` } = settings;
    const model = this.models.model(name, script);
    this.definitions.push(() => {
      this.folder.write({
        models: { [`${name}_model`]: { ...this.models.definition(name), ...settings.model } },
        prompts: {
          [`${name}_prompt`]: {
            toolDescription: `The prompt of ${name}.`,
            model: `${name}_model`,
            includeChat: true,
            includePastTools: true,
            tools,
            ...settings.prompt,
            prompt: system,
          },
        },
        agents: { [name]: { type: "ai_human", sideA: { prompt: `${name}_prompt`, ...settings.side }, ...settings.agent } },
      });
    });
    return { name, model };
  }

  /**
   * Defines a prompt that can be called, with its own model.
   *
   * @param {string} name
   * @param {Script} script
   * @param {object} [fields]  further fields of the prompt
   * @returns {Agent}
   */
  prompt(name, script, fields = {}) {
    const model = this.models.model(name, script);
    this.definitions.push(() =>
      this.folder.write({
        models: { [`${name}_model`]: this.models.definition(name) },
        prompts: { [name]: { toolDescription: `Asks ${name}.`, model: `${name}_model`, ...fields, prompt: `You are ${name}.` } },
      }),
    );
    return { name, model };
  }

  /** Defines an http tool. @param {string} name @param {import("./tool.mjs").Answering} answer @param {object} [more]  further fields */
  tool(name, answer, more = {}) {
    const tool = this.tools.tool(name, answer);
    this.definitions.push(() => this.folder.write({ tools: { [name]: this.tools.definition(name, more) } }));
    return tool;
  }

  /** Defines an effect behind a URL. @param {string} name @param {import("./tool.mjs").Answering} answer @param {object} [more] */
  effect(name, answer, more = {}) {
    const tool = this.tools.tool(name, answer);
    this.definitions.push(() => this.folder.write({ effects: { [name]: this.tools.definition(name, more) } }));
    return tool;
  }

  /**
   * Defines a hook behind a URL.
   *
   * @param {string} id
   * @param {string} hook  one of the twelve hooks
   * @param {import("./tool.mjs").Answering} answer
   * @param {object} [more]  further fields
   */
  hook(id, hook, answer, more = {}) {
    const tool = this.tools.tool(id, answer);
    this.definitions.push(() => {
      this.folder.write({ hooks: { [id]: { hook, run: { http: { url: `${this.tools.base}/${id}` } }, ...more } } });
    });
    return tool;
  }

  /**
   * Defines a native tool under its own name.
   * @param {string} name @param {string} native @param {object} args  its schema @param {object} [more]
   */
  native(name, native, args, more = {}) {
    const definition = { description: `The native tool ${native}.`, args, run: { native }, ...more };
    this.definitions.push(() => this.folder.write({ tools: { [name]: definition } }));
  }

  /**
   * Defines a custom endpoint that the tool server answers.
   *
   * @param {string} file    relative to `agents/api`, without `.json`
   * @param {import("./tool.mjs").Answering} answer
   * @param {object} [more]  further fields
   */
  endpoint(file, answer, more = {}) {
    const name = `endpoint-${this.definitions.length}`;
    const tool = this.tools.tool(name, answer);
    this.definitions.push(() => {
      this.folder.json(`api/${file}.json`, { run: { http: { url: `${this.tools.base}/${name}` } }, ...more });
    });
    return tool;
  }

  /** Defines a native endpoint. @param {string} file @param {string} native */
  nativeEndpoint(file, native) {
    this.definitions.push(() => this.folder.json(`api/${file}.json`, { run: { native } }));
  }

  async up() {
    await this.models.listen();
    await this.tools.listen();
    for (const write of this.definitions) write();
    const vars = { MODEL_KEY, BOBBIN_SIGNING_SECRET: SIGNING_SECRET, ...this.settings.vars };
    const { flags = [], wrangler = false, persist } = this.settings;
    this.running = await Server.start({ agents: this.folder.path, vars, flags, wrangler, ...(persist !== undefined && { persist }) });
  }

  async down() {
    await this.running?.remove();
    await this.models.close();
    await this.tools.close();
    this.folder.remove();
  }

  /**
   * Registers a test of this suite. It also fails if the model or a tool had to reject a request. If it fails, it shows
   * the server's output.
   *
   * @param {string} name
   * @param {() => Promise<void>} body
   * @param {number} [withinMs]
   */
  test(name, body, withinMs = 120_000 + QUIET_MS) {
    test(name, { timeout: withinMs }, async () => {
      try {
        await body();
        assert.deepEqual([...this.models.refused, ...this.tools.refused], [], "every request was in order");
        const printed = this.running?.output(Infinity) ?? "";
        assert.ok(!printed.includes("stub was not disposed"), "what one side has of another's is given back");
      } catch (error) {
        console.error(`--- the server printed (seed ${seed}):\n${this.running?.output(6000)}\n---`);
        throw error;
      } finally {
        this.models.refused.length = 0;
        this.tools.refused.length = 0;
      }
    });
  }

  /**
   * Checks that threads do nothing more: no alarm, nothing due, no further request to their models.
   *
   * @param {{ thread: Thread, model: Model }[]} threads
   */
  async quiet(threads) {
    const asked = threads.map(({ model }) => model.asked.length);
    await Promise.all(threads.map(({ thread }) => thread.idle()));
    await sleep(QUIET_MS);
    for (const [at, { thread, model }] of threads.entries()) {
      assert.equal(model.asked.length, asked[at], `${model.name} was not asked again`);
      const state = await thread.diagnostics();
      assert.deepEqual([state.alarm.at, state.alarm.handlerRunning], [null, false], `no alarm: ${JSON.stringify(state)}`);
      assert.deepEqual(state.due, [], `nothing is due: ${JSON.stringify(state)}`);
    }
  }
}

/** Creates a suite that runs during the tests of this file. @param {Settings} [settings] */
export function suite(settings = {}) {
  const made = new Suite(settings);
  before(() => made.up());
  after(() => made.down());
  return made;
}
