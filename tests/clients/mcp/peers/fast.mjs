// The servers in Python, as processes.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { install } from "../../support/python.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));

/** One by the package fastmcp. */
export const fast = () => start("fast.py");
/** One by the official package, whose tools have run when their calls are refused. */
export const twice = () => start("twice.py");

/** @param {string} script @returns {Promise<{ url: string, calls: () => Promise<{ tool: string }[]>, close: () => void }>} */
async function start(script) {
  const program = await install(folder);
  const child = spawn(program, [`peers/${script}`], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((done, failed) => {
    child.once("exit", (code) => failed(new Error(`the server in Python ended with ${code}`)));
    child.stdout.setEncoding("utf8").on("data", (text) => done(text.trim()));
  });
  // It says its address before it listens.
  for (let tries = 0; tries < 100 && !(await fetch(new URL("/calls", url)).then(({ ok }) => ok, () => false)); tries++) await new Promise((done) => setTimeout(done, 100));
  const calls = async () => /** @type {any} */ (await (await fetch(new URL("/calls", url))).json()).calls;
  return { url, calls, close: () => void child.kill() };
}
