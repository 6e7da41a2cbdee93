// A program that ends with its starter, even when that is killed with SIGKILL: else the runtime would go on holding the
// port and the database.

import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Whether the system itself can see to it; elsewhere a process of ours does (keeper.mjs). */
export const BY_SYSTEM =
  process.platform === "linux" && (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, "setpriv")));

/**
 * Where the system can, a wrapper of the program that dies with its parent; else the program itself.
 *
 * @param {string} program
 * @param {string} folder   where the wrapper is put
 */
export function thatEndsWithParent(program, folder) {
  if (!BY_SYSTEM) return program;
  const wrapper = join(folder, "workerd");
  writeFileSync(wrapper, `#!/bin/sh\nexec setpriv --pdeathsig KILL '${program.replaceAll("'", "'\\''")}' "$@"\n`);
  chmodSync(wrapper, 0o755);
  return wrapper;
}
