// A project with Rust of its own, in rust/: its Worker is compiled by Bobbin's repository, whose crates it is written against.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { Complaint, EXIT } from "./complaint.mjs";
import { readIfThere, shown } from "./files.mjs";

/** Where the Worker is put that is compiled; wrangler.jsonc aliases `bobbin/worker` to it. */
const BUILT = ".bobbin/worker";

/** @param {string} checkout */
const script = (checkout) => join(checkout, "scripts/own-worker.mjs");

/** Whether a folder is Bobbin's repository. @param {string} folder */
export const isCheckout = (folder) => existsSync(script(folder)) && existsSync(join(folder, "worker/Cargo.toml"));

/** Whether a project has a crate of its own. @param {string} root */
export const hasCrate = (root) => existsSync(join(root, "rust/Cargo.toml"));

/** Compiles the crate of a project, if it has one that is not compiled as it stands. @param {string} root */
export function buildCrate(root) {
  if (!hasCrate(root)) return;
  const { bobbin } = JSON.parse(readIfThere(join(root, "package.json")) ?? "{}");
  const checkout = resolve(root, bobbin?.checkout ?? "");
  if (bobbin?.checkout === undefined || !isCheckout(checkout)) {
    throw new Complaint(
      `${shown(join(root, "rust"))} is compiled by Bobbin's repository, and ${shown(join(root, "package.json"))} does not say where that is: ` +
        'clone it, and name its folder in "bobbin": { "checkout": "…" }.',
      EXIT.usage,
    );
  }
  const { status, error } = spawnSync(process.execPath, [script(checkout), join(root, "rust"), join(root, BUILT)], { stdio: "inherit" });
  if (error || status !== 0) throw new Complaint(`${shown(join(root, "rust"))} was not compiled.`, EXIT.failed);
}
