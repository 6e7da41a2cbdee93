#!/usr/bin/env node
// `npm create bobbin my-agent` runs `bobbin init my-agent --install` with the matching version of `bobbin`.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const args = process.argv.slice(2);
const bobbin = join(dirname(createRequire(import.meta.url).resolve("bobbin/package.json")), "bin/bobbin.mjs");
const wanted = args.some((arg) => arg === "--help" || arg === "-h") || args.includes("--no-install") ? [] : ["--install"];
const { status, error } = spawnSync(process.execPath, [bobbin, "init", ...args.filter((arg) => arg !== "--no-install"), ...wanted], { stdio: "inherit" });
if (error) throw error;
process.exitCode = status ?? 1;
