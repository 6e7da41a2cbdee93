// Runs cargo for the Worker's target with its flags: `node scripts/wasm-cargo.mjs check -p bobbin-worker`.

import { spawnSync } from "node:child_process";
import { wasmEnv, TARGET } from "./rust.mjs";
import { main } from "./run.mjs";
import { setUp } from "./setup.mjs";

await main(async () => {
  const [command = "check", ...args] = process.argv.slice(2);
  const { compiler } = await setUp();
  const ended = spawnSync("cargo", [command, "--target", TARGET, ...args], { env: { ...process.env, ...wasmEnv(compiler) }, stdio: "inherit" });
  process.exitCode = ended.status ?? 1;
});
