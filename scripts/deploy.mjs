// `npm run deploy`: builds both Workers and hands them to `wrangler deploy`, with the flags given after `--`.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { buildWorker, compileCatalog } from "./build.mjs";
import { inCheckout } from "./files.mjs";
import { buildIsolate } from "./isolate.mjs";
import { main } from "./run.mjs";
import { setUp } from "./setup.mjs";

await main(async () => {
  const tools = await setUp();
  await compileCatalog(inCheckout("agents"), join(await buildWorker(tools), "catalog.json"));
  await buildIsolate(tools);
  const wrangler = inCheckout("node_modules/wrangler/wrangler-dist/cli.js");
  // The isolate first: the Worker is bound to it.
  for (const config of ["isolate/wrangler.toml", "wrangler.toml"]) {
    const args = ["--no-warnings", wrangler, "deploy", "--config", config, ...process.argv.slice(2)];
    const { status } = spawnSync(tools.node, args, { cwd: inCheckout("."), stdio: "inherit" });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
  }
});
