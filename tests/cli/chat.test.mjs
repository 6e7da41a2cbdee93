// `bobbin chat`, in a terminal and through a pipe.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../worker/support/poll.mjs";
import { asDescribed, bobbin, OBEYED } from "./support/bobbin.mjs";
import { CTRL_C, CTRL_D, noTerminal, Pty } from "./support/pty.mjs";
import { servers } from "./support/servers.mjs";

const two = servers({ far: false });
const inTerminal = { skip: noTerminal };

/** Returns the terminal's text without our own styles. @param {string} text */
// eslint-disable-next-line no-control-regex
const plain = (text) => text.replace(/\x1b\[(?:[\d;]*m|\d*[GJK])|\r/g, "");
const chat = (/** @type {string[]} */ ...args) => new Pty(["chat", ...args], { cwd: two.project });

test("a conversation is begun, left, and goes on with its history dimmed", inTerminal, async () => {
  const first = chat("echo");
  await first.sees(/› /);
  first.enters("Hello");
  await first.sees(/You said: Hello\r?\n/);
  await first.sees(/1 step, 100 \+ 10 tokens/);
  await first.sees(/› /);
  first.types(CTRL_D);
  const [, thread = ""] = /--thread (\S+?)`/.exec(await first.sees(/--thread \S+`/)) ?? [];
  assert.equal(await first.ends(), 0);
  const again = chat("--thread", thread);
  const recalled = await again.sees(/You said: Hello.*?› /s);
  assert.match(recalled, /\x1b\[2mYou said: Hello\x1b\[22m/, "dim");
  again.enters("More");
  await again.sees(/You said: More/);
  again.enters("/quit");
  assert.equal(await again.ends(), 0);
});

test("an approval is asked inline: changed, denied, left for later and asked again", inTerminal, async () => {
  const pty = chat("payer");
  await pty.sees(/› /);
  pty.enters("Pay");
  const asked = plain(await pty.sees(/\[y\]es, \[n\]o, \[e\]dit, \[s\]top, \[l\]ater: /));
  assert.match(asked, /\? Pay 5\n.*pay \{\n +"amount": 5/s);
  pty.enters("e");
  await pty.sees(/as JSON, any of amount: /);
  pty.enters('{"amount": 4}');
  await pty.sees(/Done: .*\{"paid":true\}/s);
  await pty.sees(/› /);
  pty.enters("Pay again");
  await pty.sees(/\[l\]ater: /);
  pty.enters("l");
  await pty.sees(/left for later/);
  await pty.sees(/› /);
  pty.enters("/waits");
  await pty.sees(/\[l\]ater: /);
  pty.enters("n");
  await pty.sees(/reason \(Enter/);
  pty.enters("too much");
  await pty.sees(/Denied: too much/);
  pty.types(CTRL_D);
  assert.equal(await pty.ends(), 0);
});

test("a question is answered by its number, or elsewhere while it stands there", inTerminal, async () => {
  const pty = chat("asker");
  await pty.sees(/› /);
  pty.enters("Ask me");
  await pty.sees(/1 red\r?\n.*2 blue.*: /s);
  pty.enters("2");
  await pty.sees(/So: .*blue/);
  pty.enters("And again");
  await pty.sees(/2 blue.*: /s);
  const { waits } = await until("it is listed", async () => {
    const listed = asDescribed("approvals", (await two.here(["approvals", "--kind", "question", "--json"])).out);
    return listed.waits.length > 0 ? listed : undefined;
  });
  const answered = await two.here(["answer", waits[0].id, "green"]);
  assert.equal(answered.code, 0, answered.err);
  await pty.sees(/So: .*green/);
  pty.types(CTRL_D);
  assert.equal(await pty.ends(), 0);
});

test("Ctrl-C stops the reply, and once more leaves; the thread stays", inTerminal, async () => {
  const pty = chat("slow");
  await pty.sees(/› /);
  pty.enters("Go");
  await pty.sees(/naïve 3/);
  pty.types("next");
  pty.types(CTRL_C);
  await pty.sees(/stopping/);
  const ended = plain(await pty.sees(/\(stopped: stopped_by_user.*› /s));
  assert.doesNotMatch(ended, /next\n/, "what was typed waits to be sent");
  pty.types(CTRL_C);
  pty.types(CTRL_C);
  await pty.sees(/again to leave/);
  pty.types(CTRL_C);
  assert.equal(await pty.ends(), 0);
});

test("a reply that is hostile to terminals does nothing to this one", inTerminal, async () => {
  const pty = chat("looker");
  await pty.sees(/› /);
  pty.enters("Look");
  const seen = await pty.sees(/Seen .*end\r?\n/s);
  assert.ok(seen.includes("␛[2J"));
  assert.doesNotMatch(plain(seen).replaceAll("\n", ""), OBEYED);
  pty.types(CTRL_D);
  await pty.ends();
});

test("through a pipe each line is a message, and nothing is asked", async () => {
  const { code, out, err } = await two.here(["chat", "echo"], { input: "one\n\ntwo\n" });
  assert.deepEqual({ code, out, err }, { code: 0, out: "You said: one\nYou said: two\n", err: "" });
  const parked = await two.here(["chat", "payer"], { input: "pay\nmore\n" });
  assert.equal(parked.code, 4);
  assert.match(parked.err, /approval: Pay 5.*bobbin approve/s);
  const json = await two.here(["chat", "echo", "--json"], { input: "one\ntwo\n" });
  const outcomes = json.out.split("\n").slice(0, -1).map((line) => asDescribed("chat", line));
  assert.deepEqual(outcomes.map(({ message }) => message.content), ["You said: one", "You said: two"]);
  const whom = await bobbin(["chat"], { cwd: two.project, input: "x" });
  assert.deepEqual([whom.code, whom.out], [2, ""]);
  assert.match(whom.err, /Which agent\?.*echo/);
});
