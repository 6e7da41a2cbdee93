// Loaded into wrangler's process, which does not notice when its parent is gone, and which would restart a lost runtime. If
// one of the three processes ends in any way, the others end too, so that nothing keeps holding the port or the database.

import childProcess from "node:child_process";
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { basename } from "node:path";

// Not only at the end, which may come as SIGKILL.
setTimeout(flushCompileCache, 5000).unref();

const endAll = () => process.kill(-process.pid, "SIGKILL");

process.on("disconnect", endAll);
// The channel must not keep the process alive.
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
