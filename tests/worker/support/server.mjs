// The built product as a child process: `npm start` on a free port with its own folders.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exchange } from "./http.mjs";
import { killAll, running, tree } from "./processes.mjs";
import { until } from "./poll.mjs";

// A server that a test starts is built for development, like that of `npm start`, unless the environment says otherwise.
process.env.BOBBIN_BUILD ??= "quick";

/** The path of the checkout. */
export const checkout = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

/** A start may have to build first. Without a build it takes seconds. */
const START_MS = Number(process.env.BOBBIN_START_SECONDS ?? 600) * 1000;

/**
 * @typedef {object} Options
 * @property {string} agents                     the folder of definitions
 * @property {Record<string, string>} [vars]     passed as `--var`
 * @property {string[]} [flags]                  further flags of `npm start`
 * @property {boolean} [wrangler]                whether it needs features of `wrangler dev`
 * @property {string} [persist]                  the folder of the threads; by default a new one
 * @property {boolean} [serves]                  false: do not wait until it responds
 * @property {number} [startMs]                  the time limit for the start, if it builds more than usual
 */

/**
 * Storage is in memory if the machine has such a file system. It survives the kill of every process like a disk, and no
 * test depends on the speed of a disk.
 */
export const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/**
 * Returns a port that was free a moment ago. It is outside the range from which the system assigns ports. Such a port
 * could be taken a moment later, or while its server is down.
 *
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    if (!reserve(port)) continue;
    const probe = createServer().listen(port, "127.0.0.1");
    const free = await once(probe, "listening").then(() => true, () => false);
    if (!free) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
}

/** Reserves the port for this process, unless another test has it. @param {number} port */
function reserve(port) {
  // One folder per user, because users cannot write to each other's folders.
  const file = join(tmpdir(), `bobbin-ports-${userInfo().uid}`, `${port}`);
  mkdirSync(dirname(file), { recursive: true });
  try {
    writeFileSync(file, `${process.pid}`, { flag: "wx" });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
    if (existsSync(`/proc/${readFileSync(file, { encoding: "utf8" })}`)) return false;
    writeFileSync(file, `${process.pid}`);
  }
  return true;
}

/** @param {string} purpose @param {string} [where] @returns {string} a new folder for temporary files */
export const scratch = (purpose, where = tmpdir()) => mkdtempSync(join(where, `bobbin-${purpose}-`));

/** Flags that only wrangler supports: the bindings of a crate. */
const OF_WRANGLER = ["--crate"];

/**
 * `BOBBIN_SERVER=workerd` uses plain workerd where possible, because wrangler needs five times the processor time.
 * @param {string[]} flags
 */
const runtime = (flags) => (process.env.BOBBIN_SERVER === "workerd" && !flags.some((flag) => OF_WRANGLER.includes(flag)) ? ["--workerd"] : []);

/** The running servers, which are killed when this process exits. @type {Set<Server>} */
const live = new Set();
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.once(signal, () => process.exit(1));
}
process.on("exit", () => {
  for (const server of live) {
    server.kill();
    rmSync(server.persist, { recursive: true, force: true, maxRetries: 3 });
  }
});

export class Server {
  /** @param {Options} options @param {number} port */
  constructor(options, port) {
    this.options = options;
    this.port = port;
    /** The server's address. */
    this.base = `http://127.0.0.1:${port}`;
    /** The objects' storage, which is kept across restarts. */
    this.persist = options.persist ?? scratch("persist", memory);
    /** The output of all starts. @type {string[]} */
    this.printed = [];
    /** @type {import("node:child_process").ChildProcess | undefined} */
    this.child = undefined;
  }

  /** @param {Options} options @returns {Promise<Server>} */
  static async start(options) {
    const server = new Server(options, await freePort());
    try {
      await server.up();
    } catch (error) {
      // Nothing else refers to it, and the test file would wait for its end.
      await server.remove();
      throw error;
    }
    return server;
  }

  /**
   * Starts a server whose definitions are rejected. It has exited and printed the reason.
   *
   * @param {string} agents
   * @returns {Promise<Server>}
   */
  static async refused(agents) {
    const server = new Server({ agents, serves: false }, await freePort());
    await server.up();
    await until("npm start has ended", () => server.child?.exitCode !== null, {
      withinMs: 60_000,
      describe: () => server.output(),
    });
    assert.notEqual(server.child?.exitCode, 0, server.output());
    return server;
  }

  /** Starts the process and waits until it responds, unless `serves` is false. */
  async up() {
    const { agents, vars = {}, flags = [], wrangler = false, serves = true } = this.options;
    // As in a deployment: only tests about bodies keep them.
    const set = Object.entries({ BOBBIN_LOG_BODIES: "0", ...vars }).flatMap(([name, value]) => ["--var", `${name}=${value}`]);
    const args = ["--port", String(this.port), "--agents", agents, "--persist", this.persist, ...set, ...flags, ...(wrangler ? [] : runtime(flags))];
    const child = spawn(process.execPath, [join(checkout, "scripts/start.mjs"), ...args], {
      cwd: checkout,
      stdio: ["ignore", "pipe", "pipe"],
      // A separate registry, because Workers of other tests have the same names.
      env: { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1", WRANGLER_REGISTRY_PATH: join(this.persist, "registry") },
    });
    this.child = child;
    live.add(this);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (/** @type {string} */ text) => this.printed.push(text));
    }
    if (serves) await this.answers();
  }

  /** Waits until it responds. It only requests /healthz, which wakes no thread. */
  async answers() {
    await until(
      `${this.base} answers`,
      async () => {
        if (this.child?.exitCode !== null) {
          throw new Error(`npm start ended with ${this.child?.exitCode}:\n${this.output()}`);
        }
        const answer = await exchange(this.base, "GET", "/healthz", { withinMs: 2000 }).catch(() => undefined);
        return answer?.status === 200;
      },
      { withinMs: this.options.startMs ?? START_MS, describe: () => this.output() },
    );
  }

  /** Returns the end of its output. */
  output(bytes = 20_000) {
    return this.printed.join("").slice(-bytes);
  }

  /** Sends SIGKILL to all its processes: the command, wrangler, and every workerd. None can clean up. */
  kill() {
    const pid = this.child?.pid;
    live.delete(this);
    if (pid === undefined || !running(pid)) return;
    killAll(tree(pid));
  }

  /** Kills it and waits until the port is free. */
  async down() {
    const child = this.child;
    const pids = child?.pid === undefined ? [] : tree(child.pid);
    this.kill();
    await until("all processes are gone", () => !pids.some(running));
  }

  /** Kills it and restarts it on the same storage and port. */
  async crash() {
    await this.down();
    await this.up();
  }

  /** Stops it and removes its storage. */
  async remove() {
    await this.down();
    rmSync(this.persist, { recursive: true, force: true });
  }
}
