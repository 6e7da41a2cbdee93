// Runs a program and stops it when the starter exits: `node keeper.mjs PROGRAM …`. Standard input is a pipe, which
// closes however the starter exits. Otherwise the runtime would keep the port and the database.

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
