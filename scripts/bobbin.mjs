// `npm run bobbin -- COMMAND …`: the program of the package in the checkout, with the client that it is made of.

import { buildClient } from "./client.mjs";
import { main } from "./run.mjs";

await main(buildClient);
if (!process.exitCode) await import("../package/bin/bobbin.mjs");
