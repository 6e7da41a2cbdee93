// Runs `wrangler dev`, the development server of `npm start`, as a process.

import { spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { cache, inCheckout } from "./files.mjs";
import { Complaint, signalGroup } from "./run.mjs";

const HOST = "127.0.0.1";

/** @param {import("./server.mjs").RuntimeOptions & { node: string }} options @returns {Promise<import("../package/server/workerd.mjs").Runtime>} */
export async function startWrangler({ spawned, ...options }) {
  const child = spawnWrangler(options);
  if (child.pid !== undefined) spawned(child.pid);
  /** @type {(line: string) => void} */
  let onLine = () => {};
  /** @type {(code: number) => void} */
  let onEnd = () => {};
  let stopping = false;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const port = await new Promise((/** @type {(port: number) => void} */ resolve, reject) => {
    /** @type {string[]} */
    const early = [];
    let ready = false;
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on("line", (line) => {
        if (ready) return isNoise(line) ? undefined : onLine(line);
        early.push(line);
        const [, at] = /Ready on http:\/\/[^\s:]+:(\d+)/.exec(line) ?? [];
        if (at === undefined) return;
        ready = true;
        resolve(Number(at));
      });
    }
    child.once("error", reject);
    child.once("exit", (code) => {
      signalGroup(child.pid, "SIGKILL");
      if (!ready) reject(new Complaint(`${early.join("\n")}\nwrangler dev ended before it was ready (${code}).`));
      else if (!stopping) onEnd(code ?? 1);
    });
  });
  return {
    port,
    onLine: (listener) => void (onLine = listener),
    onEnd: (listener) => void (onEnd = listener),
    // It watches the files itself, so there is no `reload`.
    stop: async () => {
      stopping = true;
      child.kill("SIGTERM");
      const timer = setTimeout(() => signalGroup(child.pid, "SIGKILL"), 5000);
      await exited;
      clearTimeout(timer);
      signalGroup(child.pid, "SIGKILL");
    },
  };
}

/**
 * `wrangler dev` over a prepared folder.
 *
 * @param {Omit<import("./server.mjs").RuntimeOptions, "spawned"> & { node: string }} options
 */
function spawnWrangler({ home, persist, vars, node, workerd, inspectorPort = 0 }) {
  const varsFile = join(home, "vars.json");
  rmSync(varsFile, { force: true });
  writeFileSync(varsFile, JSON.stringify(vars), { mode: 0o600, flag: "wx" });
  return spawn(
    node,
    [
      ...["--no-warnings", "--import", inCheckout("scripts/end-together.mjs")],
      ...["--import", inCheckout("scripts/given-vars.mjs")],
      inCheckout("node_modules/wrangler/wrangler-dist/cli.js"),
      // The first config is that of the Worker that answers requests.
      ...["dev", "--config", join(home, "wrangler.toml"), "--config", join(home, "isolate/wrangler.toml")],
      // Behind our own front, on a port that wrangler chooses.
      ...["--ip", HOST, "--port", "0"],
      // Two servers that start at the same moment would both choose the default port.
      ...["--inspector-port", String(inspectorPort)],
      ...["--persist-to", persist, "--show-interactive-dev-session=false"],
    ],
    {
      cwd: home,
      // A process group of its own: Ctrl-C reaches only this process, which ends the server in order.
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        ...process.env,
        BOBBIN_VARS_FILE: varsFile,
        // No network requests.
        WRANGLER_SEND_METRICS: "false",
        WRANGLER_SEND_ERROR_REPORTS: "false",
        WRANGLER_HIDE_BANNER: "true",
        CLOUDFLARE_CF_FETCH_ENABLED: "false",
        // Records every request and SQL statement in the same process, which would double the time of a turn.
        X_LOCAL_OBSERVABILITY: "false",
        // wrangler is 15 MB of JavaScript; compiling it is half of its start.
        NODE_COMPILE_CACHE: join(cache, "node-compile"),
        MINIFLARE_WORKERD_PATH: workerd,
      },
    },
  );
}

/** Output about wrangler itself and about successful requests. @param {string} line */
function isNoise(line) {
  return /^(\[wrangler:info\] (Ready|[A-Z]+ \S+ [123]\d\d )|Attaching additional modules|[┌├│└⎔])/u.test(line);
}
