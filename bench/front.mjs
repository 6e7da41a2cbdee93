// The development server's front, as a process: `node bench/front.mjs <port> <port behind>`. The floor uses it too.

import { startFront } from "../package/server/front.mjs";

const [port, behind] = process.argv.slice(2).map(Number);
if (!port || !behind) throw new Error("two ports are needed");
await startFront(port, behind);
