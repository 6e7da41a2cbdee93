// The project's own page, which its Worker serves. package.json names the program that builds it: `"bobbin": { "page":
// "web/build.mjs" }`.

import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { Complaint } from "./complaint.mjs";
import { readIfThere, shown } from "./files.mjs";

/**
 * Returns the program that builds the page, and the folder of its sources.
 * @param {string} root the project's folder @returns {{ program: string, folder: string } | undefined}
 */
export function pageOf(root) {
  const { bobbin } = JSON.parse(readIfThere(join(root, "package.json")) ?? "{}");
  if (bobbin?.page === undefined) return undefined;
  const program = join(root, String(bobbin.page));
  return { program, folder: dirname(program) };
}

/** Builds the page, if the project has one. @param {string} root */
export function buildPage(root) {
  const page = pageOf(root);
  if (page === undefined) return;
  const { status, error } = spawnSync(process.execPath, [page.program], { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (error || status !== 0) throw new Complaint(`The page could not be built: \`node ${shown(page.program)}\` failed.`);
}
