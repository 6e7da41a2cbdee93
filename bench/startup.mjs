// Measures the start of the runtime until the Worker is loaded, and until its first response: of the product, and of the
// smallest Worker in Rust (bench/hello/), compiled in the same way. workerd serves both without wrangler. It listens once the
// Worker is loaded: compiled, instantiated, its global scope run. Both configurations are binary, as wrangler writes them.
// Reading the text form, which includes the wasm, would take 19 ms more (6 ms for hello world), and no deployment does that.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { compileCatalog } from "../scripts/catalog.mjs";
import { inCheckout } from "../scripts/files.mjs";
import { cargo, step } from "../scripts/run.mjs";
import { TARGET, wasmEnv } from "../scripts/rust.mjs";
import { setUp } from "../scripts/setup.mjs";
import { pack } from "../scripts/worker.mjs";
import { exchange } from "../tests/worker/support/http.mjs";
import { until } from "../tests/worker/support/poll.mjs";
import { freePort, scratch } from "../tests/worker/support/server.mjs";
import { WORKERD, configure } from "../tests/worker/support/workerd.mjs";

/** The configuration of the product's Worker besides its code. */
const PRODUCT = `
  bindings = [
    (name = "BOBBIN_DEV", text = "1"),
    (name = "THREADS", durableObjectNamespace = "ThreadObject"),
    (name = "DIRECTORY", durableObjectNamespace = "DirectoryObject"),
    (name = "MEMORY", durableObjectNamespace = "MemoryObject"),
  ],
  durableObjectNamespaces = [
    (className = "ThreadObject", uniqueKey = "threads", enableSql = true),
    (className = "DirectoryObject", uniqueKey = "directory", enableSql = true),
    (className = "MemoryObject", uniqueKey = "memory", enableSql = true),
  ],
  durableObjectStorage = (inMemory = void),`;

/** A Worker that can be started repeatedly. */
class Candidate {
  /** @param {string} dist @param {string} name @param {{ catalog: boolean }} has */
  constructor(dist, name, { catalog }) {
    this.folder = scratch(`startup-${name}`);
    const code = ["index.js", "index_bg.wasm"];
    for (const file of code) copyFileSync(join(dist, file), join(this.folder, file));
    this.files = catalog ? [...code, "catalog.json"] : code;
    this.more = catalog ? PRODUCT : "";
    this.config = join(this.folder, "config.bin");
  }

  /** Writes the configuration, once all files exist. Its port does not matter, because each start sets one. */
  configured() {
    const text = configure(this.folder, this.files, 0, this.more);
    writeFileSync(this.config, execFileSync(WORKERD, ["compile", "--config-only", text], { maxBuffer: 2 ** 27 }));
    return this;
  }

  /** Milliseconds from the start of the process until it listens, and until its first answer. */
  async start() {
    const port = await freePort();
    const start = performance.now();
    const args = ["serve", "--binary", this.config, "--socket-addr", `http=127.0.0.1:${port}`];
    const workerd = spawn(WORKERD, args, { stdio: ["ignore", "ignore", "inherit"] });
    try {
      const listens = () => {
        if (workerd.exitCode !== null) throw new Error(`workerd ended with ${workerd.exitCode}`);
        return connects(port);
      };
      await until("workerd listens", listens, { everyMs: 1 });
      const ready = performance.now() - start;
      const answer = await exchange(`http://127.0.0.1:${port}`, "GET", "/healthz");
      if (answer.status !== 200) throw new Error(`the Worker answers ${answer.status}: ${answer.text}`);
      return { ready, answered: performance.now() - start };
    } finally {
      workerd.kill("SIGKILL");
      if (workerd.exitCode === null && workerd.signalCode === null) await once(workerd, "exit");
    }
  }

  remove() {
    rmSync(this.folder, { recursive: true });
  }
}

/** @param {number} port @returns {Promise<boolean>} */
function connects(port) {
  const socket = connect(port, "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}

/** The product and the hello-world Worker, both built. */
export async function candidates() {
  const tools = await setUp();
  const folder = inCheckout("bench/hello");
  const target = inCheckout("target/hello");
  await step("hello-world Worker (Rust)", (note) =>
    cargo(["build", "--release", "--locked", "--target", TARGET, "--target-dir", target], note, { cwd: folder, env: wasmEnv(tools.compiler) }),
  );
  const wasm = join(target, TARGET, "release/bobbin_hello.wasm");
  await pack("hello-world Worker", { wasm, shim: join(folder, "shim.js"), out: join(target, "dist") });
  const product = new Candidate(inCheckout("dist"), "product", { catalog: true });
  await compileCatalog(inCheckout("agents"), join(product.folder, "catalog.json"));
  return { product: product.configured(), hello: new Candidate(join(target, "dist"), "hello", { catalog: false }).configured() };
}
