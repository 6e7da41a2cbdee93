// The commands that decide waits and control threads, each at two servers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Thread } from "../../worker/support/client.mjs";
import { until } from "../../worker/support/poll.mjs";
import { asDescribed } from "../support/bobbin.mjs";
import { noTerminal, Pty } from "../support/pty.mjs";
import { two } from "../support/two.mjs";

const PLACES = /** @type {const} */ (["here", "there"]);

/** Starts a thread that waits for a decision. Returns the thread and its wait. @param {"here" | "there"} at @param {string} agent */
async function asking(at, agent) {
  const sent = await two[at](["send", "--agent", agent, "Go", "--wait", "--json"]);
  assert.equal(sent.code, 4, sent.err);
  const { threadId, waits } = asDescribed("send", sent.out);
  return { threadId, wait: String(waits[0].id ?? waits[0].wait) };
}

/** Returns the outcome of the run. @param {"here" | "there"} at @param {string} threadId */
async function ended(at, threadId) {
  const thread = new Thread(two.client(at), threadId);
  await until("it comes to rest", async () => (await thread.facts()).state === "idle");
  return (await thread.send("GET", "/runs")).json.runs[0].outcome;
}

test("a call is approved with other arguments, and denied with a reason", async () => {
  for (const at of PLACES) {
    const [first, second] = await Promise.all([asking(at, "payer"), asking(at, "payer")]);
    const one = asDescribed("approvals one", (await two[at](["approvals", first.wait, "--thread", first.threadId, "--json"])).out);
    assert.deepEqual(one.wait.call.args, { amount: 5 });
    const approved = await two[at](["approve", first.wait, "--args", '{"amount":4}', "--actor", "Bea", "--json"]);
    assert.equal(approved.code, 0, approved.err);
    const { wait } = asDescribed("approve", approved.out);
    assert.deepEqual([wait.decision, wait.decidedBy.actor], ["approve", "Bea"]);
    const denied = await two[at](["deny", second.wait, "--reason", "too much"]);
    assert.equal(denied.out, "deny: Pay 5\n", denied.err);
    const twice = await two[at](["approve", second.wait]);
    assert.equal(twice.code, 1);
    assert.match(twice.err, /conflict/);
    assert.equal(await ended(at, first.threadId), "completed");
  }
});

test("a question is answered, in words or by a choice, and any decision can be made", async () => {
  const [words, choice, other] = await Promise.all([asking("here", "asker"), asking("there", "asker"), asking("there", "asker")]);
  const answers = await Promise.all([
    two.here(["answer", words.wait, "green", "--json"]),
    two.there(["answer", choice.wait, "--choice", "1", "--json"]),
    two.there(["decide", other.wait, '{"decision":"deny","stop":true}', "--json"]),
  ]);
  assert.deepEqual(answers.map(({ out, err }) => (err ? err : asDescribed("answer", out).wait.decision)), ["answer", "answer", "deny"]);
  assert.equal((await two.here(["decide", other.wait, "{"])).code, 2);
  assert.equal((await two.here(["answer", words.wait])).code, 2);
});

test("what waits is listed over all threads, and nothing that is not there is found", async () => {
  const { wait, threadId } = await asking("there", "payer");
  await until("it is in the list", async () => (await two.client("there").send("GET", "/waits")).text.includes(wait));
  /** @type {{ waits: any[] }} */
  const listed = asDescribed("approvals", (await two.there(["approvals", "--json"])).out);
  assert.ok(listed.waits.some((entry) => entry.id === wait && entry.threadId === threadId));
  assert.match((await two.there(["approvals"])).out, /^id +kind +asked +ends +thread +asks\n/);
  assert.match((await two.there(["approvals", wait])).out, /arguments +\{\n +"amount": 5/);
  const none = await two.there(["approve", "w_00000000_1"]);
  assert.equal(none.code, 1);
  assert.match(none.err, /There is no open wait/);
});

test("a thread is stopped, goes on, is ended for good and deleted", async () => {
  for (const at of PLACES) {
    const { out } = await two[at](["send", "--agent", "slow", "Go", "--json"]);
    const { threadId } = asDescribed("send", out);
    const ran = [];
    for (const command of ["stop", "continue", "terminate"]) {
      ran.push(asDescribed(command, (await two[at]([command, threadId, "--json"])).out).status);
    }
    assert.deepEqual(ran, ["stopped", "queued", "terminated"]);
    const asked = await two[at](["delete", threadId]);
    assert.equal(asked.code, 2);
    assert.match(asked.err, /--yes/);
    const deleted = asDescribed("delete", (await two[at](["delete", threadId, "--yes", "--json"])).out);
    assert.deepEqual(deleted.deletedThreadIds, [threadId]);
    assert.match((await two[at](["stop", threadId])).err, /thread_not_found/);
  }
});

test("at a terminal deleting asks first", { skip: noTerminal }, async () => {
  const { out } = await two.here(["send", "--agent", "echo", "Go", "--wait", "--json"]);
  const { threadId } = asDescribed("send", out);
  const no = new Pty(["delete", threadId], { cwd: two.project });
  await no.sees(/Delete .* of echo at http:.*with its 2 messages.*\[y\/N\] /);
  no.enters("");
  await no.sees(/Nothing was deleted/);
  assert.equal(await no.ends(), 1);
  const yes = new Pty(["delete", threadId], { cwd: two.project });
  await yes.sees(/\[y\/N\] /);
  yes.enters("y");
  assert.equal(await yes.ends(), 0);
  assert.equal((await two.here(["show", threadId])).code, 1);
});
