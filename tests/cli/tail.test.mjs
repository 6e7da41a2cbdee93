// `bobbin tail` shows every event exactly once, even if the server crashes.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { chance, sleep, until } from "../worker/support/poll.mjs";
import { asDescribed, endsWithFile, environment, OBEYED, PROGRAM, Running } from "./support/bobbin.mjs";
import { CTRL_D, noTerminal, Pty } from "./support/pty.mjs";
import { servers } from "./support/servers.mjs";

const two = servers({ far: false });

/** @param {string} out @returns {any[]} */
const lines = (out) => out.split("\n").slice(0, -1).map((line) => JSON.parse(line));

/** Joins the pieces of replies. Each piece must continue the previous one. @param {any[]} frames */
function textOfPieces(frames) {
  /** @type {Map<string, { attempt: number, text: string }>} */
  const texts = new Map();
  for (const { type, message_id, attempt, offset, chunk } of frames) {
    if (type === "message_reset") texts.set(message_id, { attempt, text: "" });
    if (type !== "message_chunk") continue;
    const had = texts.get(message_id) ?? { attempt, text: "" };
    const text = had.attempt === attempt ? had.text : "";
    assert.equal(offset, Buffer.byteLength(text), "a piece joins on to the one before");
    texts.set(message_id, { attempt, text: text + chunk });
  }
  return texts;
}

test("while the server is killed, no message is missed and none comes twice", async () => {
  const thread = await two.near.client.thread("slow");
  const random = chance("tail, killed");
  const tail = new Running(["tail", thread.id, "--json", "--from-start"], { cwd: two.project });
  const shown = new Running(["tail", thread.id], { cwd: two.project });
  const asked = two.slow.model.asked.length;
  for (let turn = 0; turn < 2; turn++) {
    await thread.accepted(`turn ${turn}`);
    await until("the model is asked", () => two.slow.model.asked.length > asked + turn);
    // Both are connected.
    if (turn === 0) await until("both tell", () => tail.out !== "" && shown.out !== "", { describe: () => tail.err + shown.err });
    await sleep(random.between(50, 1000));
    await two.near.server.crash();
    await thread.idle(30_000);
  }
  const messages = await thread.messages();
  assert.equal(messages.filter(({ role }) => role === "assistant").length, 2);
  await until("all is told", () => messages.every(({ id }) => tail.out.includes(`"message_data","message_id":"${id}"`)), { withinMs: 30_000, describe: () => tail.err });
  const { code, out } = await tail.end("SIGINT");
  assert.equal(code, 0);
  const frames = lines(out);
  const told = frames.filter(({ type }) => type === "message_data").map(({ data }) => [data.id, data.content]);
  assert.deepEqual(told, messages.map(({ id, content }) => [id, content]));
  for (const [id, { text }] of textOfPieces(frames)) {
    const whole = messages.find((message) => message.id === id)?.content;
    assert.ok(whole.startsWith(text), `the pieces of ${id} are a beginning of it`);
  }
  await until("the last reply is shown", () => shown.out.includes(messages.at(-1)?.content), { withinMs: 30_000, describe: () => shown.out });
  const text = (await shown.end("SIGINT")).out;
  assert.doesNotMatch(text.replaceAll("\n", ""), OBEYED);
});

test("a message whose server is killed is answered to whoever waits, once, in a terminal as well", async () => {
  const asked = two.slow.model.asked.length;
  const sent = two.here(["send", "--agent", "slow", "--key", "killed", "Go", "--wait", "--json"]);
  const pty = noTerminal ? undefined : new Pty(["chat", "slow"], { cwd: two.project });
  await pty?.sees(/› /);
  pty?.enters("Go");
  await pty?.sees(/naïve 5 /);
  await until("the model is asked", () => two.slow.model.asked.length > asked);
  await sleep(300);
  await two.near.server.crash();
  const { code, out, err } = await sent;
  assert.equal(code, 0, err);
  assert.match(asDescribed("send", out).message.content, /naïve 59/);
  const { messages } = await two.near.client.send("GET", "/threads/key:killed/messages").then(({ json }) => json);
  assert.equal(messages.length, 2);
  await pty?.sees(/naïve 59 🧵\r?\n/);
  await pty?.sees(/› /);
  pty?.types(CTRL_D);
  await pty?.ends();
});

test("what happened before is told from the start on, and otherwise not", async () => {
  const thread = await two.near.client.thread("looker");
  await thread.ask("first");
  const whole = new Running(["tail", thread.id, "--from-start"], { cwd: two.project });
  const rest = new Running(["tail", thread.id, "--json"], { cwd: two.project });
  await until("the whole is told", () => whole.out.includes("end\n"), { describe: () => whole.err });
  // It prints nothing before its first event. Send messages until it has received a whole run.
  const told = () => rest.out.includes("second") && rest.out.includes('"stopped"');
  for (let asked = 0; asked < 20 && !told(); asked++) {
    await thread.ask("second");
    await sleep(200);
  }
  await until("the rest is told", told, { describe: () => rest.out + rest.err });
  const [all, later] = await Promise.all([whole.end("SIGINT"), rest.end("SIGINT")]);
  assert.match(all.out, /^› first\n• look \{\}\n {2}= ␛\[2J.*\nSeen ␛\[2J/);
  assert.doesNotMatch(all.out.replaceAll("\n", ""), OBEYED);
  assert.ok(!later.out.includes("first") && later.out.includes("second"));
  assert.doesNotMatch(later.out.replaceAll("\n", ""), OBEYED);
});

test("whoever reads no further ends the command quietly", async () => {
  const thread = await two.near.client.thread("slow");
  const tail = endsWithFile(spawn(process.execPath, [PROGRAM, "tail", thread.id, "--json"], { cwd: two.project, env: environment(), stdio: ["ignore", "pipe", "pipe"] }));
  let err = "";
  tail.stderr.setEncoding("utf8").on("data", (text) => (err += text));
  tail.stdout.once("data", () => tail.stdout.destroy());
  const code = new Promise((resolve) => tail.once("exit", resolve));
  await sleep(400);
  await thread.accepted("go");
  assert.deepEqual([await code, err], [0, ""]);
  await thread.send("POST", "/stop");
});

test("a thread that is not there is said to be none", async () => {
  const { code, err } = await two.here(["tail", "none"]);
  assert.equal(code, 1);
  assert.match(err, /thread_not_found/);
});
