// Runs a program that must not outlive whoever started this: `node keeper.mjs PROGRAM …`, with a pipe as standard input,
// which ends however the starter ends. The runtime would go on holding the port and the database.

import { spawn } from "node:child_process";

const [program = "", ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit", 3], windowsHide: true });
child.once("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
child.once("exit", (code) => process.exit(code ?? 1));
for (const signal of /** @type {const} */ (["SIGTERM", "SIGINT", "SIGHUP"])) process.on(signal, () => child.kill("SIGTERM"));
process.stdin.resume().once("close", () => {
  child.kill("SIGKILL");
  process.exit(1);
});
