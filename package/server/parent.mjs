// Makes a program exit with its starter, even if the starter is killed with SIGKILL. Otherwise the runtime would keep
// the port and the database.

import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Whether the operating system can do this. On other systems keeper.mjs does it. */
export const BY_SYSTEM =
  process.platform === "linux" && (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, "setpriv")));

/**
 * Returns a wrapper that kills the program when its parent dies, if the system supports that, otherwise the program.
 *
 * @param {string} program
 * @param {string} folder   the folder for the wrapper
 */
export function thatEndsWithParent(program, folder) {
  if (!BY_SYSTEM) return program;
  const wrapper = join(folder, "workerd");
  writeFileSync(wrapper, `#!/bin/sh\nexec setpriv --pdeathsig KILL '${program.replaceAll("'", "'\\''")}' "$@"\n`);
  chmodSync(wrapper, 0o755);
  return wrapper;
}
