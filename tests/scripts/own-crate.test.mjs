// A crate of somebody's own, built in the place of Bobbin's Worker: what docs/tools.md promises.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { join } from "node:path";
import { Client } from "../worker/support/client.mjs";
import { checkout, Server } from "../worker/support/server.mjs";

const CRATE = join(checkout, "tests/fixtures/own-crate");
/** @type {Server | undefined} */
let server;
after(() => server?.remove());

test("a native tool of one's own crate is built and called, and one that is missing is told of", async () => {
  // Whole in itself, and built the faster for it.
  process.env.BOBBIN_BUILD = "quick";
  server = await Server.start({ agents: join(CRATE, "agents"), flags: ["--crate", CRATE] });
  const thread = await new Client(server.base).thread("greeter");
  const answer = await thread.ask('call greet {"name": "Ada"}');
  assert.match(JSON.stringify(answer), /greet said: Hello, Ada!/);
  assert.doesNotMatch(server.output(), /no native "greet"/);
  assert.match(server.output(), /tool shout: native "shout" is not in this Worker/);
});
