// Loaded into wrangler's process, which does not notice that its starter is gone, and which would start a lost
// runtime anew behind it. Whatever way one of the three ends, the others end too: nothing is left that holds the
// port or the database.

import childProcess from "node:child_process";
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { basename } from "node:path";

// Not left to the end, which may come as SIGKILL.
setTimeout(flushCompileCache, 5000).unref();

const endAll = () => process.kill(-process.pid, "SIGKILL");

process.on("disconnect", endAll);
// The channel alone must not keep the process alive.
process.channel?.unref();

const { spawn } = childProcess;
childProcess.spawn = /** @type {typeof spawn} */ (
  (/** @type {Parameters<typeof spawn>} */ ...args) => {
    const child = spawn(...args);
    if (basename(args[0]) === "workerd") {
      child.once("exit", (code, signal) => {
        // wrangler replaces its runtime when files change, and kills the old one itself.
        if (child.killed) return;
        writeSync(process.stderr.fd, `The runtime (workerd) ended: ${signal ?? code}.\n`);
        endAll();
      });
    }
    return child;
  }
);
