// `npm run deploy`: builds the Worker and hands it to `wrangler deploy`, with the flags given after `--`.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { buildWorker, compileCatalog } from "./build.mjs";
import { inCheckout } from "./files.mjs";
import { main } from "./run.mjs";
import { setUp } from "./setup.mjs";

await main(async () => {
  const tools = await setUp();
  await compileCatalog(inCheckout("agents"), join(await buildWorker(tools), "catalog.json"));
  const wrangler = inCheckout("node_modules/wrangler/wrangler-dist/cli.js");
  const ended = spawnSync(tools.node, ["--no-warnings", wrangler, "deploy", ...process.argv.slice(2)], {
    cwd: inCheckout("."),
    stdio: "inherit",
  });
  process.exitCode = ended.status ?? 1;
});
