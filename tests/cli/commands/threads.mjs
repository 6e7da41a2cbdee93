// The commands that send messages and show threads, each at two servers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../worker/support/poll.mjs";
import { asDescribed, bobbin, OBEYED, Running } from "../support/bobbin.mjs";
import { HOSTILE, KEY } from "../support/servers.mjs";
import { two } from "../support/two.mjs";

test("a message is sent to a new thread of the server of this folder, and to one that --url names", async () => {
  for (const at of /** @type {const} */ (["here", "there"])) {
    const sent = await two[at](["send", "--agent", "echo", "Hello", "--wait"]);
    assert.deepEqual(sent, { code: 0, out: "You said: Hello\n", err: "" });
  }
  const [near, far] = await two.both(["send", "--agent", "echo", "--wait", "--tag", "first", "Hello"]);
  for (const { outcome, message, usage } of [near, far]) {
    assert.deepEqual([outcome, message.content, usage.modelCalls], ["completed", "You said: Hello", 1]);
  }
  const again = await two.here(["send", near.threadId, "-", "--wait"], { input: "from a\npipe\n" });
  assert.equal(again.out, "You said: from a\npipe\n");
});

test("the exit code says what came of a run", async () => {
  const [failed, parked, unknown, usage] = await Promise.all([
    two.here(["send", "--agent", "loser", "Go", "--wait"]),
    two.here(["send", "--agent", "payer", "Go", "--wait"]),
    two.here(["send", "--agent", "nobody", "Go"]),
    two.here(["send", "Go"]),
  ]);
  assert.equal(failed.code, 3, failed.err);
  assert.match(failed.err, /failed \(max_steps\)/);
  assert.equal(parked.code, 4, parked.err);
  assert.match(parked.err, /approval: Pay 5.*bobbin approve w_/s);
  assert.equal(unknown.code, 1);
  assert.match(unknown.err, /agent_not_found/);
  assert.equal(usage.code, 2);
});

test("lines of a pipe are sent to the far server", async () => {
  const { code, out } = await two.there(["chat", "echo"], { input: "one\ntwo\n" });
  assert.deepEqual([code, out], [0, "You said: one\nYou said: two\n"]);
});

test("a run that is stopped ends the command that waits for it with 5", async () => {
  const thread = await two.near.client.thread("slow");
  const sent = two.here(["send", thread.id, "Go", "--wait", "--json"]);
  await two.slow.model.request(1);
  await thread.send("POST", "/stop");
  const { code, out } = await sent;
  assert.equal(code, 5);
  assert.equal(asDescribed("send", out).outcome, "stopped");
});

test("a message that is sent again with its key is one message, also where the thread is new", async () => {
  const args = ["send", "--agent", "echo", "Once", "--idempotency-key", "k-1", "--json"];
  const [one, other] = [await two.here(args), await two.here(args)].map(({ out }) => asDescribed("send", out));
  assert.deepEqual([one.threadId, one.messageId], [other.threadId, other.messageId]);
  const named = ["send", "--agent", "echo", "--key", "chat-1", "--json"];
  const [first, second] = [await two.here([...named, "a"]), await two.here([...named, "b"])].map(({ out }) => asDescribed("send", out));
  assert.equal(first.threadId, second.threadId);
  assert.notEqual(first.messageId, second.messageId);
  const byKey = await two.here(["send", "key:chat-1", "c", "--wait", "--json"]);
  assert.equal(asDescribed("send", byKey.out).threadId, first.threadId, byKey.err);
});

test("threads are listed by agent, state, tag and number", async () => {
  const tagged = asDescribed("send", (await two.here(["send", "--agent", "echo", "--tag", "rare", "--tag", "x", "Hi", "--wait", "--json"])).out);
  // The list is eventually consistent.
  await until("it is listed", async () => (await two.near.client.threads({ search: "rare", executing: false })).total === 1);
  const listed = asDescribed("threads", (await two.here(["threads", "--tag", "rare", "--json"])).out).threads;
  assert.deepEqual(listed.map((/** @type {any} */ { id, state }) => [id, state]), [[tagged.threadId, "idle"]]);
  const part = await two.here(["threads", "--tag", "rar", "--json"]);
  assert.deepEqual(asDescribed("threads", part.out).threads, [], "a tag is a whole one");
  const asking = asDescribed("threads", (await two.here(["threads", "--state", "asking", "--json"])).out).threads;
  assert.ok(asking.length > 0 && asking.every((/** @type {any} */ { agent_id }) => agent_id === "payer"), JSON.stringify(asking));
  const one = asDescribed("threads", (await two.here(["threads", "--agent", "echo", "--limit", "1", "--json"])).out);
  assert.deepEqual([one.threads.length, one.more], [1, true]);
  const table = await two.here(["threads"]);
  assert.match(table.out, /^id +agent +state +active +tags +newest\n/);
  assert.doesNotMatch(table.out.replaceAll("\n", ""), OBEYED);
  const [near, far] = await two.both(["threads"]);
  assert.ok(near.threads.length > far.threads.length);
});

test("a thread is followed on the far server, too", async () => {
  const { threadId } = asDescribed("send", (await two.there(["send", "--agent", "echo", "Hello", "--wait", "--json"])).out);
  const tail = new Running(["tail", threadId, "--from-start", "--json", "--url", two.far?.base ?? ""], { env: { BOBBIN_KEY: KEY } });
  await until("it is told", () => tail.out.includes("You said: Hello"), { describe: () => tail.err });
  const { code, out } = await tail.end("SIGINT");
  assert.equal(code, 0);
  assert.deepEqual(out.split("\n").slice(0, -1).map((line) => asDescribed("tail", line).data.role), ["user", "assistant"]);
});

test("a thread is shown with what it has cost and what it waits for", async () => {
  for (const at of /** @type {const} */ (["here", "there"])) {
    const { out } = await two[at](["send", "--agent", "payer", "--key", "shown", "Go", "--wait", "--json"]);
    const { threadId } = asDescribed("send", out);
    const shown = asDescribed("show", (await two[at](["show", threadId, "--json"])).out);
    assert.deepEqual([shown.thread.state, shown.waits.length, shown.runs.length, shown.cost.total.requests], ["parked", 1, 1, 1]);
    const text = await two[at](["show", "key:shown"]);
    assert.match(text.out, new RegExp(`thread +${threadId}\n.*state +parked\n.*waits for\napproval: Pay 5`, "s"));
  }
});

test("what somebody has written is not obeyed by a terminal", async () => {
  // A program's argument cannot contain NUL.
  const given = HOSTILE.replaceAll("\0", "");
  const sent = await two.here(["send", "--agent", "looker", "--tag", given, "Go", "--wait"]);
  assert.equal(sent.code, 0, sent.err);
  assert.doesNotMatch(sent.out.replaceAll("\n", ""), OBEYED);
  assert.ok(sent.out.includes("␛[2J") && sent.out.includes("gnirts"), sent.out);
  const { out } = await two.here(["send", "--agent", "looker", "--tag", given, given, "--wait", "--json"]);
  assert.doesNotMatch(out.replaceAll("\n", ""), OBEYED);
  const { threadId, message } = asDescribed("send", out);
  assert.equal(message.content, `Seen ${HOSTILE}`, "programs get all of it");
  for (const args of [["show", threadId], ["threads"], ["show", given]]) {
    const { out: shown, err } = await two.here(args);
    assert.doesNotMatch((shown + err).replaceAll("\n", ""), OBEYED, args.join(" "));
  }
});

test("keys are nowhere to be seen", async () => {
  const far = two.far?.base ?? "";
  const refused = await bobbin(["threads", "--url", far]);
  assert.deepEqual([refused.code, refused.out], [1, ""]);
  assert.match(refused.err, /BOBBIN_KEY.*\(unauthenticated\)/);
  const wrong = await bobbin(["threads", "--url", far], { env: { BOBBIN_KEY: "some-wrong-key" } });
  assert.match(wrong.err, /unauthenticated/);
  const odd = await bobbin(["threads", "--url", far], { env: { BOBBIN_KEY: "with\na-line-break" } });
  assert.equal(odd.code, 2);
  const flag = await bobbin(["threads", "--url", far, `--key=${KEY}`]);
  assert.equal(flag.code, 2);
  const inUrl = await bobbin(["threads", "--url", far.replace("//", `//x:${KEY}@`)]);
  assert.equal(inUrl.code, 2);
  for (const { err } of [wrong, odd, flag, inUrl]) assert.doesNotMatch(err, new RegExp(`some-wrong-key|a-line-break|${KEY}`));
  const named = await bobbin(["threads", "--url", far, "--key-env", "MY_KEY"], { env: { MY_KEY: KEY } });
  assert.equal(named.code, 0, named.err);
  const unset = await bobbin(["threads", "--url", far, "--key-env", "MY_KEY"]);
  assert.match(unset.err, /MY_KEY of --key-env is not set/);
});

test("where no server is, the command says what to do", async () => {
  const { code, out, err } = await bobbin(["threads", "--url", "http://127.0.0.1:1"]);
  assert.deepEqual([code, out], [2, ""]);
  assert.match(err, /no Bobbin at http:\/\/127\.0\.0\.1:1/);
  const model = await bobbin(["threads", "--url", two.near.models.base]);
  assert.match(model.err, /no Bobbin at/);
});
