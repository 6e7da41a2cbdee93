// The server's API, as used by one run of a case. If an object is dropped during a request, the request is repeated, as
// a client would. Every request that changes something has an idempotency key.

import { setTimeout as sleep } from "node:timers/promises";

const AGAIN_MS = 5;

/** A request was rejected, or received no response in time. */
export class Refused extends Error {
  /** @param {string} message @param {number} status @param {string} code */
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Api {
  #url;
  #headers;

  /** @param {string} url @param {Record<string, string>} headers   sent with every request */
  constructor(url, headers) {
    this.#url = url;
    this.#headers = headers;
  }

  /** @param {string} path @param {{ until?: number }} [options] @returns {Promise<any>} */
  get(path, options = {}) {
    return this.ask("GET", path, undefined, options);
  }

  /** Returns the text of a file, or undefined if it does not exist. @param {string} path @returns {Promise<string | undefined>} */
  async text(path) {
    const answer = await fetch(this.#url + path, { headers: this.#headers });
    const text = await answer.text();
    return answer.ok ? text : undefined;
  }

  /**
   * @param {string} path
   * @param {unknown} body
   * @param {{ key?: string, until?: number }} [options]   key: the idempotency key
   * @returns {Promise<any>}
   */
  post(path, body, options = {}) {
    return this.ask("POST", path, body, options);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} body
   * @param {{ key?: string, until?: number }} options   until: deadline, in milliseconds of the real clock
   */
  async ask(method, path, body, { key, until = Date.now() + 30_000 }) {
    const headers = { ...this.#headers, ...(body !== undefined && { "content-type": "application/json" }), ...(key !== undefined && { "idempotency-key": key }) };
    let last = "";
    for (;;) {
      const left = until - Date.now();
      if (left <= 0) throw new Refused(`no response in time${last}`, 0, "late");
      const answer = await this.#once(method, path, headers, body, left);
      if (answer?.ok) return answer.json;
      // The object was restarted during the request.
      if (answer !== undefined && answer.code !== "overloaded") throw new Refused(answer.message, answer.status, answer.code);
      last = answer === undefined ? "" : `; the last response was: ${answer.message}`;
      await sleep(AGAIN_MS);
    }
  }

  /** @param {string} method @param {string} path @param {Record<string, string>} headers @param {unknown} body @param {number} ms */
  async #once(method, path, headers, body, ms) {
    try {
      const signal = AbortSignal.timeout(ms);
      const init = { method, headers, signal, ...(body !== undefined && { body: JSON.stringify(body) }) };
      const answer = await fetch(this.#url + path, init);
      const text = await answer.text();
      const json = parsed(text);
      return { ok: answer.ok, status: answer.status, json, message: json?.error?.message ?? text.slice(0, 300), code: json?.error?.code ?? "" };
    } catch {
      // The connection broke, or the request timed out.
      return undefined;
    }
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
