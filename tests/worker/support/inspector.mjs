// The runtime's inspector (DevTools protocol): the memory of a Worker's isolate.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { Socket } from "./socket.mjs";

/** A connection to the inspector of an isolate. */
export class Inspector {
  #socket;
  #calls = 0;

  #open;

  /** @param {() => Promise<Socket>} open @param {Socket} socket */
  constructor(open, socket) {
    this.#open = open;
    this.#socket = socket;
  }

  /** @param {number} pid  the workerd that runs the Worker @param {string} worker  the Worker's name, to which wrangler adds a prefix */
  static async open(pid, worker) {
    for (const port of listening(pid)) {
      const base = `http://127.0.0.1:${port}`;
      const targets = await fetch(`${base}/json`, { signal: AbortSignal.timeout(2000) })
        .then((answer) => /** @type {Promise<unknown>} */ (answer.json()))
        .catch(() => undefined);
      const id = Array.isArray(targets) ? targets.map((target) => String(target.id)).find((id) => id.split(":").at(-1) === worker) : undefined;
      if (id === undefined) continue;
      const open = () => Socket.open(base, `/${id}`);
      return new Inspector(open, await open());
    }
    throw new Error(`no port of process ${pid} is an inspector with ${worker}`);
  }

  /** @param {string} method @param {object} [params] @returns {Promise<any>} */
  async call(method, params = {}) {
    // The runtime accepts one connection at a time, and wrangler takes it when it has started.
    if (this.#socket.closed) this.#socket = await this.#open();
    const id = ++this.#calls;
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await this.#socket.next(`the answer to ${method}`, (frame) => frame.id === id, 20_000);
    this.#socket.frames.length = 0;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  /** Collects garbage. Responds only while the Worker has work. */
  async collect() {
    await this.call("HeapProfiler.enable");
    await this.call("HeapProfiler.collectGarbage");
  }

  /** Returns the bytes of the isolate's JavaScript heap and buffers, including garbage. */
  async heapBytes() {
    const { usedSize, backingStorageSize = 0 } = await this.call("Runtime.getHeapUsage");
    return usedSize + backingStorageSize;
  }

  close() {
    this.#socket.close();
  }
}

/** Returns the ports of 127.0.0.1 on which a process listens. @param {number} pid */
function listening(pid) {
  const sockets = new Set();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? [];
      if (inode) sockets.add(inode);
    } catch {
      // It was closed in the meantime.
    }
  }
  const LISTENS = "0A";
  const rows = readFileSync(`/proc/${pid}/net/tcp`, "utf8").trim().split("\n").slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/));
  const ours = fields.filter(([, , , state, , , , , , inode]) => state === LISTENS && sockets.has(inode));
  return ours.map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16));
}
