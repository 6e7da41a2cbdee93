// `npm run bobbin -- COMMAND …`: runs the package's program in the checkout, after building the client that it needs.

import { buildClient } from "./client.mjs";
import { main } from "./run.mjs";

await main(buildClient);
if (!process.exitCode) await import("../package/bin/bobbin.mjs");
