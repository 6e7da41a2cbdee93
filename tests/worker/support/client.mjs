// A client for the product's HTTP API. It returns responses unchanged, so that tests can examine them completely.

import assert from "node:assert/strict";
import { mustBeDescribed, mustBeFrame } from "./described.mjs";
import { EventReader } from "./events.mjs";
import { exchange } from "./http.mjs";
import { until } from "./poll.mjs";
import { Socket } from "./socket.mjs";

Socket.looksAt = mustBeFrame;
EventReader.looksAt = mustBeFrame;

/** @typedef {import("./http.mjs").Answer} Answer */
/** @typedef {import("./http.mjs").Exchange} Exchange */

/** @param {Record<string, string | number | boolean | undefined>} query */
function queryText(query) {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return given.length === 0 ? "" : `?${new URLSearchParams(/** @type {[string, string][]} */ (given))}`;
}

export class Client {
  /** @param {string} base @param {{ key?: string }} [options]  `key`: the bearer token */
  constructor(base, { key } = {}) {
    this.base = base;
    /** @type {Record<string, string>} */
    this.credentials = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  /**
   * @param {string} method
   * @param {string} path   relative to `/api`
   * @param {unknown} [body]  sent as JSON; text and bytes go through `options.body`
   * @param {Exchange} [options]
   */
  async send(method, path, body, options = {}) {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const answer = await exchange(this.base, method, `/api${path}`, {
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...options,
      headers: { ...json, ...this.credentials, ...options.headers },
    });
    mustBeDescribed(method, `/api${path}`, answer);
    return answer;
  }

  /**
   * Creates a thread.
   *
   * @param {string} agent
   * @param {object} [more]  further fields of the body
   */
  async thread(agent, more = {}) {
    const answer = await this.send("POST", "/threads", { agent_id: agent, ...more });
    assert.equal(answer.status, 200, answer.text);
    return new Thread(this, answer.json.threadId);
  }

  /** Returns one page of threads. @param {Record<string, string | number | boolean | undefined>} [query] */
  async threads(query = {}) {
    const answer = await this.send("GET", `/threads${queryText(query)}`);
    assert.equal(answer.status, 200, answer.text);
    return /** @type {{ threads: any[], total: number, hasMore: boolean }} */ (answer.json);
  }
}

export class Thread {
  /** @param {Client} client @param {string} id */
  constructor(client, id) {
    this.client = client;
    this.id = id;
    this.path = `/threads/${id}`;
  }

  /**
   * @param {string} method
   * @param {string} [path]  relative to the thread
   * @param {unknown} [body]
   * @param {Exchange} [options]
   */
  send(method, path = "", body, options) {
    return this.client.send(method, `${this.path}${path}`, body, options);
  }

  /**
   * Posts a message without waiting for its run.
   *
   * @param {string} content
   * @param {object} [more]       further fields of the body
   * @param {Exchange} [options]
   */
  post(content, more = {}, options) {
    return this.send("POST", "/messages", { role: "user", content, ...more }, options);
  }

  /** Posts a message, checks that it is accepted, and returns the body of the response. @param {string} content @param {object} [more] */
  async accepted(content, more) {
    const answer = await this.post(content, more);
    assert.equal(answer.status, 202, answer.text);
    return answer.json;
  }

  /**
   * Posts a message, waits for its run, and returns the body of the response.
   *
   * @param {string} content
   * @param {object} [more]
   * @param {Exchange} [options]
   */
  async ask(content, more = {}, options) {
    const answer = await this.send("POST", "/messages?wait=true", { role: "user", content, ...more }, options);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  /** Returns one page of messages. @param {Record<string, string | number | boolean | undefined>} [query] */
  async page(query = {}) {
    const answer = await this.send("GET", `/messages${queryText(query)}`);
    assert.equal(answer.status, 200, answer.text);
    return /** @type {{ messages: any[], total: number, hasMore: boolean }} */ (answer.json);
  }

  /**
   * Returns the whole history, oldest first, page by page.
   *
   * @param {Record<string, string | number | boolean | undefined>} [query]
   * @returns {Promise<any[]>}
   */
  async messages(query = {}) {
    let { messages, hasMore } = await this.page({ limit: 500, ...query });
    while (hasMore) {
      const earlier = await this.page({ limit: 500, ...query, before: messages[0].id });
      messages = [...earlier.messages, ...messages];
      hasMore = earlier.hasMore;
    }
    return messages;
  }

  /** Returns the history as [role, content]. */
  async lines() {
    return (await this.messages()).map(({ role, content }) => [role, content]);
  }

  /** Returns the results of the thread's own calls, oldest first. @returns {Promise<string[]>} */
  async results() {
    return (await this.messages()).filter(({ role }) => role === "tool").map(({ content }) => content);
  }

  /** Returns rows of the log, oldest first. @param {string} type @returns {Promise<any[]>} */
  async logged(type) {
    const answer = await this.send("GET", "/logs?limit=500&order=asc");
    assert.equal(answer.status, 200, answer.text);
    return answer.json.logs.filter((/** @type {any} */ row) => row.type === type);
  }

  /** Returns the thread as GET returns it. @returns {Promise<any>} */
  async facts() {
    const answer = await this.send("GET");
    assert.equal(answer.status, 200, answer.text);
    return answer.json.thread;
  }

  /** @returns {Promise<any>} */
  async diagnostics() {
    const answer = await this.send("GET", "/diagnostics");
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  /** Waits until no run is active and returns the diagnostics. @param {number} [withinMs] @returns {Promise<any>} */
  async idle(withinMs) {
    /** @type {any} */
    let last;
    return until(
      `thread ${this.id} is idle`,
      async () => {
        last = await this.diagnostics();
        return last.state !== "running" && last;
      },
      { withinMs, describe: () => last },
    );
  }

  /** @param {{ lastEventId?: string | undefined, cutAfter?: number, query?: string }} [options] */
  events({ query = "", ...options } = {}) {
    const headers = this.client.credentials;
    return EventReader.open(this.client.base, `/api${this.path}/events${query}`, { headers, ...options });
  }

  /** @param {string} [query] */
  stream(query = "") {
    return Socket.open(this.client.base, `/api${this.path}/stream${query}`, this.client.credentials);
  }
}
