// What the tools of the peers do, whichever package serves them, and the books that they keep: who was called how often.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** A picture of one pixel. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/** The same in a resource, with bytes that are no text. */
export const BYTES = Buffer.from([0, 255, 1, 254, 2, 253]).toString("base64");

/**
 * @typedef {{ tool: string, args: any, call: string | undefined, state: string | undefined, answers: any }} Call
 *
 * @typedef {object} Task
 * @property {string} id
 * @property {"working" | "input_required" | "completed" | "failed" | "cancelled"} status
 * @property {string} created
 * @property {string} updated
 * @property {number | null} ttlMs
 * @property {number} pollMs
 * @property {number} polls
 * @property {Record<string, any>} [asks]
 * @property {any} [answers]
 * @property {any} [result]
 * @property {any} [error]
 */

/** Everything that a peer was asked. It outlives every process but the peer's own. */
export class Books {
  /** @type {Call[]} */
  calls = [];
  /** @type {Map<string, Task>} */
  tasks = new Map();
  /** The methods of all requests, in their order. @type {string[]} */
  methods = [];

  /** @param {string} tool */
  count(tool) {
    return this.calls.filter((call) => call.tool === tool).length;
  }

  /** @param {string} tool @param {any} args @param {{ meta?: any, state?: string | undefined, answers?: any }} [of] */
  note(tool, args, { meta, state, answers } = {}) {
    this.calls.push({ tool, args, call: meta?.["dev.bobbin/call"], state, answers });
  }

  /** @param {Partial<Task>} [more] @returns {Task} */
  task(more = {}) {
    const now = new Date().toISOString();
    /** @type {Task} */
    const task = { id: randomUUID(), status: "working", created: now, updated: now, ttlMs: null, pollMs: 200, polls: 0, ...more };
    this.tasks.set(task.id, task);
    return task;
  }

  json() {
    return { calls: this.calls, methods: this.methods, tasks: [...this.tasks.values()] };
  }
}

/** @param {string} text */
export const text = (text) => ({ content: [{ type: /** @type {const} */ ("text"), text }] });

/** Schemas of arguments, as JSON. @param {Record<string, object>} properties @param {string[]} [required] */
export const args = (properties, required = Object.keys(properties)) => ({ type: /** @type {const} */ ("object"), properties, required });

const NOTE = { type: "string", description: "What to say." };
const MS = { type: "integer", minimum: 0, description: "How long it takes, in milliseconds." };

/** What is asked by a form: every kind of field that a form may have. */
export const FORM = {
  type: /** @type {const} */ ("object"),
  properties: {
    name: { type: "string", title: "Name", description: "Who you are.", minLength: 1, maxLength: 40 },
    size: { type: "string", enum: ["small", "large"], default: "small" },
    count: { type: "integer", minimum: 1, maximum: 9 },
    sure: { type: "boolean", default: true },
  },
  required: ["name", "count"],
};

/**
 * The plain tools: no question, no task.
 *
 * @type {Record<string, { title?: string, description: string, inputSchema: any, outputSchema?: any, annotations?: object, run: (args: any) => Promise<any> }>}
 */
export const PLAIN = {
  echo: {
    title: "Echo",
    description: "Says what it is told.",
    inputSchema: args({ text: NOTE }),
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: async ({ text: said }) => text(`You said: ${said}`),
  },
  add: {
    description: "Adds two numbers.",
    inputSchema: args({ a: { type: "number" }, b: { type: "number" } }),
    outputSchema: args({ sum: { type: "number" } }),
    annotations: { idempotentHint: true },
    run: async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  },
  pay: {
    description: "Pays once. It must not be called twice.",
    inputSchema: args({ ms: MS }),
    annotations: { destructiveHint: true, idempotentHint: false },
    run: async ({ ms }) => (await sleep(ms), text("paid")),
  },
  look: {
    description: "Looks, for as long as it is told. It may be called again.",
    inputSchema: args({ ms: MS }),
    annotations: { readOnlyHint: true },
    run: async ({ ms }) => (await sleep(ms), text("seen")),
  },
  large: {
    description: "So many bytes of text.",
    inputSchema: args({ bytes: { type: "integer" } }),
    annotations: { readOnlyHint: true },
    run: async ({ bytes }) => text("0123456789abcdef".repeat(Math.ceil(bytes / 16)).slice(0, bytes)),
  },
  fail: {
    description: "Fails, as tools do.",
    inputSchema: args({}),
    run: async () => ({ ...text("There is no paper left."), isError: true }),
  },
  picture: {
    description: "A picture, a sound and what belongs to them.",
    inputSchema: args({}),
    annotations: { readOnlyHint: true },
    run: async () => ({
      content: [
        { type: "text", text: "A pixel." },
        { type: "image", data: PNG, mimeType: "image/png" },
        { type: "audio", data: BYTES, mimeType: "audio/wav" },
      ],
    }),
  },
  document: {
    description: "Resources: a text, some bytes, a link.",
    inputSchema: args({}),
    annotations: { readOnlyHint: true },
    run: async () => ({
      content: [
        { type: "resource", resource: { uri: "peer://notes/a.txt", mimeType: "text/plain", text: "A note." } },
        { type: "resource", resource: { uri: "peer://notes/b.bin", mimeType: "application/octet-stream", blob: BYTES } },
        { type: "resource_link", uri: "peer://notes/c.txt", name: "c.txt", mimeType: "text/plain" },
      ],
    }),
  },
};
