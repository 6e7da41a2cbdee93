import assert from "node:assert/strict";
import { isolateServer, contract } from "./support/isolate.mjs";
const server = isolateServer();
contract("runs", async (engine) => {
  assert.equal(await server.value("export default (a, b) => a + b", { engine, args: [1, 2] }), 3);
  const r = await server.start("for(;;);", { engine });
  await new Promise((r) => setTimeout(r, 100));
  r.terminate("stop");
  const out = await r.result;
  console.log(out);
  assert.equal(await server.value("export default await f(4)", { globals: { f: async (/** @type {number} */ x) => x * 2 } }), 8);
});
