// Measures the compile step of the isolate Worker in the runtime, without a run around it (bench/compile/).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { inCheckout } from "../scripts/files.mjs";
import { exchange } from "../tests/worker/support/http.mjs";
import { until } from "../tests/worker/support/poll.mjs";
import { freePort, scratch } from "../tests/worker/support/server.mjs";
import { WORKERD, configure } from "../tests/worker/support/workerd.mjs";
import { timed } from "./measure.mjs";

/** The compilations in a sample, in addition to the one that it is compared with. */
const TIMES = 5;

/** A Worker that only compiles. */
export class Compiler {
  #base = "";
  /** @type {() => Promise<void>} */
  down = async () => {};

  /** Needs dist-isolate/. */
  async up() {
    const { build } = await import("esbuild");
    const folder = scratch("compile");
    await build({
      entryPoints: [inCheckout("bench/compile/worker.js")],
      plugins: [
        {
          name: "wasm beside the bundle",
          setup: (build) => build.onResolve({ filter: /\.wasm$/ }, ({ path }) => ({ path: `./${path.split("/").at(-1)}`, external: true })),
        },
      ],
      bundle: true,
      format: "esm",
      target: "esnext",
      outfile: join(folder, "index.js"),
      logLevel: "silent",
    });
    copyFileSync(inCheckout("dist-isolate/compiler.wasm"), join(folder, "compiler.wasm"));
    const port = await freePort();
    const config = configure(folder, ["index.js", "compiler.wasm"], port);
    const workerd = spawn(WORKERD, ["serve", config], { stdio: ["ignore", "ignore", "inherit"] });
    const kill = () => void workerd.kill("SIGKILL");
    process.once("exit", kill);
    this.#base = `http://127.0.0.1:${port}`;
    this.down = async () => {
      process.off("exit", kill);
      kill();
      if (workerd.exitCode === null && workerd.signalCode === null) await once(workerd, "exit");
      rmSync(folder, { recursive: true });
    };
    await until("the compiler answers", () => this.#compile("export default 1", 1).then(() => true, () => false));
  }

  /** Milliseconds to compile a source: the time that `TIMES` additional compilations add to a request. @param {string} source */
  async ms(source) {
    const one = await timed(() => this.#compile(source, 1));
    const more = await timed(() => this.#compile(source, 1 + TIMES));
    return (more - one) / TIMES;
  }

  /** @param {string} source @param {number} times */
  async #compile(source, times) {
    const wanted = { filename: "<runCode>", source, language: "typescript", fn: "default", modules: [], globals: [], imports: [], report: false };
    const answer = await exchange(this.#base, "POST", "/", { body: JSON.stringify({ times, wanted }) });
    if (answer.status !== 200) throw new Error(`the compiler answers ${answer.status}: ${answer.text}`);
  }
}
