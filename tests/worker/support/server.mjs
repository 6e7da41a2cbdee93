// The built product as a child process: `npm start` on a free port with folders of its own.

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

/** The checkout. */
export const checkout = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

/** A start may have to build first; a start that only serves takes seconds. */
const START_MS = Number(process.env.BOBBIN_START_SECONDS ?? 600) * 1000;

/**
 * @typedef {object} Options
 * @property {string} agents                     folder of definitions
 * @property {Record<string, string>} [vars]     `--var` each
 * @property {string[]} [flags]                  further flags of `npm start`
 * @property {boolean} [wrangler]                needs what only `wrangler dev` has
 * @property {string} [persist]                  where threads are kept; a new folder unless given
 * @property {boolean} [serves]                  false: do not wait until it answers
 * @property {number} [startMs]                  how long it may take until it answers, where it has more to build than usual
 */

/**
 * Storage lies in memory where the machine has a file system for that: it survives the kill of every process just as
 * a disk does, and the slowness of a disk hides nothing and delays nobody.
 */
export const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/**
 * A port that was free a moment ago. It is none of those that the system gives to whoever asks for any: one of these may be
 * another's a moment later, or while its server is down.
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

/** Whether no other test has this port, which is this process's from now on. @param {number} port */
function reserve(port) {
  // A folder for each user: nobody can write to another's.
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

/** Flags of what only wrangler may have: the bindings of a crate. */
const OF_WRANGLER = ["--crate"];

/** `BOBBIN_SERVER=workerd` starts workerd itself wherever that will do: wrangler needs five times its processor time. @param {string[]} flags */
const runtime = (flags) => (process.env.BOBBIN_SERVER === "workerd" && !flags.some((flag) => OF_WRANGLER.includes(flag)) ? ["--workerd"] : []);

/** Whatever still runs when this process ends, goes with it. @type {Set<Server>} */
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
    /** Where requests go. */
    this.base = `http://127.0.0.1:${port}`;
    /** The objects' storage: kept over restarts. */
    this.persist = options.persist ?? scratch("persist", memory);
    /** Everything that was printed, by every start. @type {string[]} */
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
      // Nobody else knows of it, and the file of tests would wait for its end.
      await server.remove();
      throw error;
    }
    return server;
  }

  /**
   * One whose definitions are not served: it has ended, and has said why.
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

  /** Starts the process, and waits until it answers unless `serves` is false. */
  async up() {
    const { agents, vars = {}, flags = [], wrangler = false, serves = true } = this.options;
    // As on a deployment: only tests about bodies keep them.
    const set = Object.entries({ BOBBIN_LOG_BODIES: "0", ...vars }).flatMap(([name, value]) => ["--var", `${name}=${value}`]);
    const args = ["--port", String(this.port), "--agents", agents, "--persist", this.persist, ...set, ...flags, ...(wrangler ? [] : runtime(flags))];
    const child = spawn(process.execPath, [join(checkout, "scripts/start.mjs"), ...args], {
      cwd: checkout,
      stdio: ["ignore", "pipe", "pipe"],
      // A registry of its own: Workers of other tests have the same names.
      env: { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1", WRANGLER_REGISTRY_PATH: join(this.persist, "registry") },
    });
    this.child = child;
    live.add(this);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (/** @type {string} */ text) => this.printed.push(text));
    }
    if (serves) await this.answers();
  }

  /** Waits until it answers. It is asked /healthz only, so that no thread is woken. */
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

  /** What it printed, its newest part. */
  output(bytes = 20_000) {
    return this.printed.join("").slice(-bytes);
  }

  /** SIGKILL to all of it: the command, wrangler, and every workerd. Nothing gets to clean up. */
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

  /** Kill -9 and start again on the same storage and port. */
  async crash() {
    await this.down();
    await this.up();
  }

  /** Ends it and removes its storage. */
  async remove() {
    await this.down();
    rmSync(this.persist, { recursive: true, force: true });
  }
}
