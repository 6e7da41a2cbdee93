// Two servers for the commands: a project's, found by its folder, and a remote one with a key.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { Client } from "../../worker/support/client.mjs";
import { MODEL_KEY, say, use } from "../../worker/support/model.mjs";
import { Server, memory, scratch } from "../../worker/support/server.mjs";
import { Suite } from "../../worker/support/suite.mjs";
import { asDescribed, bobbin } from "./bobbin.mjs";

/** @typedef {import("./bobbin.mjs").Options} Options */

export const KEY = "key-of-the-far-server";
/** Sequences that must not reach a terminal: clear, title, colours, a hidden line end, reversed text direction, C1. */
export const HOSTILE = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\u009b31m \rback \u202egnirts\u202c \x7f\0 end";

const said = (/** @type {any[]} */ messages) => messages.findLast(({ role }) => role === "user")?.content ?? "";

export class Two {
  constructor() {
    this.project = scratch("project", memory);
    this.near = new Suite({ persist: join(this.project, ".bobbin", "state") });
    /** @type {Server | undefined} */
    this.far = undefined;
    const answered = (/** @type {any[]} */ messages) => messages.at(-1)?.role === "tool";
    this.near.tool("pay", () => '{"paid":true}', { approval: { mode: "always", edit: ["amount"], title: "Pay {{args.amount}}" }, idempotent: true, args: { type: "object", properties: { amount: { type: "number" } } } });
    this.near.tool("look", () => HOSTILE);
    this.echo = this.near.agent("echo", ({ messages }) => say(`You said: ${said(messages)}`, { chunks: 4 }));
    this.slow = this.near.agent("slow", ({ n }) => say(`${n}: ${Array.from({ length: 60 }, (_, at) => `naïve ${at} 🧵`).join("; ")}`, { chunks: 60, everyMs: 25 }));
    this.near.agent("payer", ({ messages }) => (answered(messages) ? say(`Done: ${messages.at(-1)?.content}`) : use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
    this.near.agent("asker", ({ messages }) => (answered(messages) ? say(`So: ${messages.at(-1)?.content}`) : use({ name: "ask_user", args: { question: "Which colour?", choices: ["red", "blue"] } })), { tools: ["ask_user"] });
    this.near.agent("looker", ({ messages }) => (answered(messages) ? say(`Seen ${HOSTILE}`) : use({ name: "look", args: {} })), { tools: ["look"] });
    this.near.agent("loser", () => use({ name: "look", args: {} }), { tools: ["look"], side: { maxSteps: 2 } });
  }

  /** @param {boolean} both */
  async up(both) {
    await this.near.up();
    if (!both) return;
    this.far = await Server.start({ agents: this.near.folder.path, vars: { MODEL_KEY, BOBBIN_API_KEYS: `${KEY}=admin`, BOBBIN_TOKEN_SECRET: "a-secret-of-the-tests" } });
  }

  /** Returns a client that works without the program. @param {"here" | "there"} at */
  client(at) {
    return at === "here" ? this.near.client : new Client(this.far?.base ?? "", { key: KEY });
  }

  async down() {
    await this.far?.remove();
    await this.near.down();
    rmSync(this.project, { recursive: true, force: true });
  }

  /** Runs the program at the project's server, which it finds by the folder. @param {string[]} args @param {Options} [options] */
  here(args, options = {}) {
    return bobbin(args, { cwd: join(this.project, ".bobbin"), ...options });
  }

  /** Runs the program at the remote server. @param {string[]} args @param {Options} [options] */
  there(args, options = {}) {
    return bobbin([...args, "--url", this.far?.base ?? ""], { ...options, env: { BOBBIN_KEY: KEY, ...options.env } });
  }

  /** Runs the program at both servers and returns their JSON. @param {string[]} args @param {string} [schema] @returns {Promise<any[]>} */
  async both(args, schema = args[0] ?? "") {
    const ended = await Promise.all([this.here([...args, "--json"]), this.there([...args, "--json"])]);
    return ended.map(({ code, out, err }) => {
      if (out === "") throw new Error(`bobbin ${args.join(" ")} ended with ${code}: ${err}`);
      return asDescribed(schema, out);
    });
  }
}

/** Starts two servers for the tests of this file, or only the project's. @param {{ far?: boolean }} [options] */
export function servers({ far = true } = {}) {
  const two = new Two();
  before(() => two.up(far));
  after(() => two.down());
  return two;
}
