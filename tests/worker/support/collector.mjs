// A strict collector of spans. It accepts only OTLP in JSON, validates every field of every request, and checks all
// spans together at the end.

import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { wholeBody } from "./http.mjs";

/** @typedef {{ traceId: string, spanId: string, parentSpanId?: string, name: string, kind: number, startTimeUnixNano: string, endTimeUnixNano: string, attributes: { key: string, value: any }[], events?: any[], links?: { traceId: string, spanId: string, attributes: { key: string, value: any }[] }[], status?: any, flags?: number, traceState?: string }} Span */

const FIELDS = new Set(
  "traceId spanId parentSpanId traceState name kind startTimeUnixNano endTimeUnixNano attributes events status flags links".split(" "),
);
const NANOS = /^[1-9]\d{17,19}$/;

/** @param {any} value @returns {boolean} */
function isValue(value) {
  const [entry, ...more] = Object.entries(value ?? {});
  if (!entry || more.length > 0) return false;
  const [kind, of] = entry;
  if (kind === "stringValue") return typeof of === "string";
  if (kind === "intValue") return typeof of === "string" && /^-?\d+$/.test(of);
  if (kind === "doubleValue") return typeof of === "number";
  if (kind === "boolValue") return typeof of === "boolean";
  return kind === "arrayValue" && Array.isArray(/** @type {any} */ (of).values) && /** @type {any} */ (of).values.every(isValue);
}

/** Returns the mistakes of a span. @param {Span} span @returns {string[]} */
export function complaints(span) {
  const wrong = [];
  const id = (/** @type {unknown} */ text, /** @type {number} */ digits) =>
    typeof text === "string" && new RegExp(`^[0-9a-f]{${digits}}$`).test(text) && !/^0+$/.test(text);
  if (Object.keys(span).some((name) => !FIELDS.has(name))) wrong.push("unknown fields");
  if (!id(span.traceId, 32) || !id(span.spanId, 16)) wrong.push("ids");
  if (span.parentSpanId !== undefined && (!id(span.parentSpanId, 16) || span.parentSpanId === span.spanId)) wrong.push("parent");
  if (typeof span.name !== "string" || span.name.trim() === "") wrong.push("name");
  if (![1, 2, 3, 4, 5].includes(span.kind)) wrong.push("kind");
  const [start, end] = [span.startTimeUnixNano, span.endTimeUnixNano];
  if (!NANOS.test(start) || !NANOS.test(end) || BigInt(end) < BigInt(start)) wrong.push("times");
  for (const { attributes } of [span, ...(span.events ?? []), ...(span.links ?? [])]) {
    if (!Array.isArray(attributes) || new Set(attributes.map(({ key }) => key)).size !== attributes.length) wrong.push("attributes");
    if (!attributes.every((/** @type {any} */ { key, value }) => key !== "" && isValue(value))) wrong.push("values");
  }
  for (const { timeUnixNano: at } of span.events ?? []) {
    if (!NANOS.test(at) || BigInt(at) < BigInt(start) || BigInt(at) > BigInt(end)) wrong.push("events");
  }
  for (const { traceId, spanId } of span.links ?? []) {
    if (!id(traceId, 32) || !id(spanId, 16)) wrong.push("links");
  }
  if (span.status && ![0, 1, 2].includes(span.status.code)) wrong.push("status");
  return wrong.map((what) => `${what}: ${JSON.stringify(span)}`);
}

/** Returns the value of an attribute. @param {Span} span @param {string} name @returns {any} */
export const attribute = (span, name) => Object.values(span.attributes.find(({ key }) => key === name)?.value ?? {})[0];

export class Collector {
  constructor() {
    /** Spans by id. @type {Map<string, Span>} */
    this.spans = new Map();
    /** Mistakes in requests. @type {string[]} */
    this.wrong = [];
    /** The unchanged bodies. @type {string[]} */
    this.bodies = [];
    /** @type {import("node:http").IncomingHttpHeaders[]} */
    this.headers = [];
    this.metrics = 0;
    /** The response to each request. @type {(n: number) => { status: number, body?: string } | undefined} */
    this.answer = () => ({ status: 200 });
    this.server = http.createServer((request, response) => {
      this.serve(request, response).catch((error) => {
        this.wrong.push(`the collector failed: ${error.stack}`);
        response.destroy();
      });
    });
  }

  /** Starts the collector and returns its address. */
  async listen() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.server.address()).port}`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async serve(request, response) {
    const text = await wholeBody(request);
    // The sender was killed during the request.
    if (text === undefined) return;
    this.headers.push(request.headers);
    if (request.method !== "POST" || request.headers["content-type"] !== "application/json") {
      this.wrong.push(`${request.method} ${request.headers["content-type"]}`);
    }
    if (request.url === "/v1/metrics") {
      this.metrics += 1;
      if (!Array.isArray(JSON.parse(text).resourceMetrics)) this.wrong.push(`no metrics: ${text}`);
      response.end("{}");
      return;
    }
    if (request.url !== "/v1/traces") this.wrong.push(`there is no ${request.url}`);
    const answer = this.answer(this.bodies.length);
    this.bodies.push(text);
    // Never respond.
    if (!answer) return;
    if (answer.status === 200) this.take(text);
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body ?? "{}");
  }

  /** @param {string} text */
  take(text) {
    for (const { scopeSpans } of /** @type {{ scopeSpans: any[] }[]} */ (JSON.parse(text).resourceSpans)) {
      for (const span of scopeSpans.flatMap((/** @type {any} */ { spans }) => spans)) {
        this.wrong.push(...complaints(span));
        const before = this.spans.get(span.spanId);
        if (before && JSON.stringify(before) !== JSON.stringify(span)) this.wrong.push(`told differently: ${JSON.stringify(span)}`);
        this.spans.set(span.spanId, span);
      }
    }
  }

  /** Returns the spans of a trace. @param {string} traceId */
  of(traceId) {
    return [...this.spans.values()].filter((span) => span.traceId === traceId);
  }

  /** Returns the spans of threads. @param {string[]} threads */
  ofThreads(threads) {
    return [...this.spans.values()].filter((span) => threads.includes(attribute(span, "gen_ai.conversation.id")));
  }

  /**
   * Checks all spans of these threads, which one run has caused. They form one trace with one root, every parent was
   * received, and there are no other spans. Jobs and effects have their own traces, linked to spans of that one.
   *
   * @param {string[]} threads
   * @param {string} [outside]  the span around the root, which someone else reports
   */
  problems(threads, outside) {
    const isBeside = (/** @type {Span} */ span) => ["bobbin.job", "bobbin.effect"].some((name) => attribute(span, name) !== undefined);
    const all = this.ofThreads(threads);
    const spans = all.filter((span) => !isBeside(span));
    const wrong = [...this.wrong];
    const traces = new Set(spans.map(({ traceId }) => traceId));
    if (traces.size !== 1) wrong.push(`${traces.size} traces`);
    const roots = spans.filter(({ parentSpanId }) => parentSpanId === outside);
    if (roots.length !== 1) wrong.push(`${roots.length} roots: ${JSON.stringify(roots)}`);
    for (const span of spans) {
      const { parentSpanId: parent } = span;
      if (parent !== outside && !spans.some(({ spanId }) => spanId === parent)) wrong.push(`nobody told of the parent of ${JSON.stringify(span)}`);
    }
    for (const span of all.filter(isBeside)) {
      const { traceId: own, parentSpanId: parent, links = [] } = span;
      if (traces.has(own) || parent !== undefined) wrong.push(`no trace of its own: ${JSON.stringify(span)}`);
      for (const link of links) {
        const there = all.some(({ traceId, spanId }) => traceId === link.traceId && spanId === link.spanId);
        if (!there) wrong.push(`nobody told of what is linked by ${JSON.stringify(span)}`);
      }
    }
    return wrong;
  }
}
