// A browser for the tests of pages: an installed Chromium, or Debian's package where we may install it.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { cache, locked } from "./files.mjs";
import { Complaint, outcome, run, step } from "./run.mjs";

/** Without windows nothing is drawn, which halves the processor time. Not every Debian has this package. */
const SHELL = "chromium-headless-shell";
const NAMES = [SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/**
 * The path of a working browser: BOBBIN_CHROMIUM, or the first one found.
 *
 * @returns {Promise<string>}
 */
export async function browser() {
  const found = await installed();
  if (found !== undefined) return found;
  throw new Complaint(
    process.env.BOBBIN_CHROMIUM === undefined
      ? "Chromium is missing: install it (Debian: `apt-get install chromium-headless-shell`), or set BOBBIN_CHROMIUM to the path of one."
      : `BOBBIN_CHROMIUM is no Chromium that runs: ${process.env.BOBBIN_CHROMIUM}`,
  );
}

/** Installs a browser if there is none, on Debian as root. */
export async function setUpBrowser() {
  if (process.env.BOBBIN_CHROMIUM !== undefined || !existsSync("/usr/bin/apt-get") || process.getuid?.() !== 0) return;
  await locked(join(cache, "browser.lock"), async () => {
    if ((await installed()) !== undefined) return;
    const apt = (/** @type {string[]} */ args) =>
      run("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", ...args], { env: { DEBIAN_FRONTEND: "noninteractive" }, timeoutMs: 600_000 });
    await step("Chromium: Debian's packages", async () => {
      await apt(["update"]);
      const { status } = await outcome("apt-cache", ["show", SHELL], { timeoutMs: 60_000 });
      await apt(["install", "--yes", "--no-install-recommends", status === 0 ? SHELL : "chromium", "fonts-liberation"]);
    });
  });
}

/** @returns {Promise<string | undefined>} */
async function installed() {
  const { BOBBIN_CHROMIUM: named, PATH = "" } = process.env;
  const places = named === undefined ? PATH.split(":").flatMap((folder) => NAMES.map((name) => join(folder, name))) : [named];
  for (const place of places) {
    if (!existsSync(place)) continue;
    // A name may be a stub for a package that is not installed.
    const { status, stdout } = await outcome(place, ["--version"], { timeoutMs: 30_000 });
    if (status === 0 && /Chrom/.test(stdout)) return place;
  }
  return undefined;
}
