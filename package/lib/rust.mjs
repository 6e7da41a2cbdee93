// Projects with a Rust crate in rust/. Their Worker is compiled in Bobbin's repository, because the crate depends on
// its crates.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { Complaint, EXIT } from "./complaint.mjs";
import { readIfThere, shown } from "./files.mjs";

/** The folder of the compiled Worker. wrangler.jsonc aliases `bobbin/worker` to it. */
const BUILT = ".bobbin/worker";

/** @param {string} checkout */
const script = (checkout) => join(checkout, "scripts/own-worker.mjs");

/** Returns whether a folder is Bobbin's repository. @param {string} folder */
export const isCheckout = (folder) => existsSync(script(folder)) && existsSync(join(folder, "worker/Cargo.toml"));

/** Returns whether a project has its own crate. @param {string} root */
export const hasCrate = (root) => existsSync(join(root, "rust/Cargo.toml"));

/** Compiles the project's crate, if it has one and it is not up to date. @param {string} root */
export function buildCrate(root) {
  if (!hasCrate(root)) return;
  const { bobbin } = JSON.parse(readIfThere(join(root, "package.json")) ?? "{}");
  const checkout = resolve(root, bobbin?.checkout ?? "");
  if (bobbin?.checkout === undefined || !isCheckout(checkout)) {
    throw new Complaint(
      `${shown(join(root, "rust"))} needs Bobbin's repository, and ${shown(join(root, "package.json"))} does not name its folder. ` +
        'Clone the repository, and name its folder in "bobbin": { "checkout": "…" }.',
      EXIT.usage,
    );
  }
  const { status, error } = spawnSync(process.execPath, [script(checkout), join(root, "rust"), join(root, BUILT)], { stdio: "inherit" });
  if (error || status !== 0) throw new Complaint(`${shown(join(root, "rust"))} could not be compiled.`, EXIT.failed);
}
