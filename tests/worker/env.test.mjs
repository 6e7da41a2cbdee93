// Variables: their sources and effects, and that no secret can be found afterwards.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { checkout } from "./support/server.mjs";
import { suite } from "./support/suite.mjs";

const KEYS = "test=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";

/** A secret for each level. No later test may find one. */
const CANARY = {
  thread: "canary-thread/5f1d\"x",
  account: "canary-account+77aa",
  instance: "canary-instance=c0de",
  worker: "canary-worker 91e2",
  patched: "canary-patched~0b0b",
};

const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,key-of-t=thread:t`,
    BOBBIN_ENCRYPTION_KEYS: KEYS,
    BOBBIN_LOG_BODIES: "1",
    OF_WORKER: CANARY.worker,
    MODE: "worker",
  },
});
const test = bobbin.test.bind(bobbin);

/** All responses, for the search at the end. @type {string[]} */
const answers = [];

/** @param {import("./support/client.mjs").Client} client @param {string} method @param {string} path @param {unknown} [body] */
async function send(client, method, path, body) {
  const answer = await client.send(method, path, body);
  answers.push(answer.text);
  return answer;
}

const headers = {
  "x-mode": "{{env MODE}}",
  "x-thread": "{{env OF_THREAD}}",
  "x-account": "{{env OF_ACCOUNT}}",
  "x-instance": "{{env OF_INSTANCE}}",
  "x-worker": "{{env OF_WORKER}}",
};
const SECRETS = ["OF_THREAD", "OF_ACCOUNT", "OF_INSTANCE", "OF_WORKER"].map((name) => ({ name, type: "secret" }));

/**
 * Rewrites a definition with headers, once the tool server has an address.
 * @param {string} kind @param {string} name @param {object} [more]
 */
function withHeaders(kind, name, more = {}) {
  bobbin.definitions.push(() =>
    bobbin.folder.json(`${kind}/${name}.json`, {
      description: `The test tool ${name}.`,
      run: { http: { url: `${bobbin.tools.base}/${name}`, headers } },
      variables: SECRETS,
      ...more,
    }),
  );
}

/** Returns the response of a server that reveals all values it received. @param {import("node:http").IncomingHttpHeaders} given */
const tells = (given) => {
  const values = ["thread", "account", "instance", "worker"].map((level) => String(given[`x-${level}`]));
  const basic = Buffer.from(`user:${values.join(":")}`).toString("base64");
  return `${values.join(" ")} ${values.map(encodeURIComponent).join("&")} ${JSON.stringify({ values })} ${basic}`;
};

const echo = bobbin.tools.tool("echo", ({ headers }) => tells(headers));
withHeaders("tools", "echo");
bobbin.tools.tool("broken", ({ headers }) => ({ status: 401, body: `not with ${tells(headers)}` }));
withHeaders("tools", "broken");
const ring = bobbin.tools.tool("ring", ({ headers }) => ({ status: 500, body: tells(headers) }));
withHeaders("effects", "ring", { attempts: 1 });
for (const [name, status] of /** @type {const} */ ([["leak", 200], ["fails", 500]])) {
  const tool = `endpoint-${name}`;
  bobbin.tools.tool(tool, ({ headers }) => ({ status, body: tells(headers) }));
  bobbin.definitions.push(() =>
    bobbin.folder.json(`api/${name}.json`, {
      run: { http: { url: `${bobbin.tools.base}/${tool}`, headers } },
      variables: SECRETS,
    }),
  );
}

/** Calls the tool that the message names, and repeats its result. @type {import("./support/model.mjs").Script} */
const clerk = ({ messages, last }) => {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const result = messages.slice(at).find(({ role }) => role === "tool");
  if (result) return say(`told: ${textOf(result)}`);
  return last.startsWith("use ") ? use({ name: last.slice(4), args: {} }) : say(`re: ${last}`);
};

const settings = {
  tools: ["echo", "broken"],
  prompt: { variables: [{ name: "CITY", type: "text" }], env: { MODE: "prompt" } },
  agent: { env: { MODE: "agent" } },
};
const keeper = bobbin.agent("keeper", clerk, settings);
bobbin.definitions.push(() =>
  // Only JSON can have a prompt in parts.
  bobbin.folder.write({
    agents: { citizen: { type: "ai_human", sideA: { prompt: "city" }, env: { MODE: "agent" } } },
  }),
);
const city = bobbin.models.model("city", clerk);
bobbin.definitions.push(() => {
  bobbin.folder.write({ models: { city_model: bobbin.models.definition("city") } });
  bobbin.folder.json("prompts/city.json", {
    toolDescription: "Knows a city.",
    model: "city_model",
    includeChat: true,
    prompt: [
      { type: "text", content: "You are in " },
      { type: "env", property: "CITY" },
      { type: "text", content: "." },
    ],
    variables: [{ name: "CITY", type: "text", required: true }],
  });
});

/** Returns the system prompt of the last request. @param {import("./support/model.mjs").Model} model */
const system = (model) => model.asked.at(-1)?.messages.find(({ role }) => role === "system")?.content;

/** Sets a secret at every level, and in a thread of Alice. */
async function secrets() {
  const admin = bobbin.client;
  const instance = await send(admin, "PATCH", "/envs/instance", { env_patch: { OF_INSTANCE: CANARY.instance } });
  assert.deepEqual([instance.status, instance.json.env.OF_INSTANCE, instance.json.env_types.OF_INSTANCE], [200, undefined, "secret"]);
  const account = await send(bobbin.as(ALICE), "PATCH", "/envs/account", { env_patch: { OF_ACCOUNT: CANARY.account } });
  assert.deepEqual([account.status, account.json], [200, { env: {}, env_types: { OF_ACCOUNT: "secret" } }]);
  return admin.thread("keeper", { user_id: "alice", env: { OF_THREAD: CANARY.thread } });
}

test("a value is the thread's, the account's, the Worker's, the instance's, the agent's, the prompt's: in this order", async () => {
  const admin = bobbin.client;
  const thread = await admin.thread("keeper", { user_id: "bob", env: { OF_THREAD: "t", OF_ACCOUNT: "a", OF_INSTANCE: "i" } });
  /** @param {string} expected */
  const mode = async (expected) => {
    const before = echo.received.length;
    await thread.ask("use echo");
    assert.equal((await echo.call(before + 1)).headers["x-mode"], expected);
  };
  await mode("worker");
  assert.equal((await send(admin, "PATCH", "/envs/account?user_id=bob", { env_patch: { MODE: "account" } })).status, 200);
  await mode("account");
  assert.equal((await thread.send("PATCH", "", { env_patch: { MODE: "thread" } })).status, 200);
  await mode("thread");
  assert.equal((await thread.send("PATCH", "", { env_patch: { MODE: "" } })).status, 200);
  await mode("");
  assert.equal((await thread.send("PATCH", "", { env_delete: ["MODE"] })).status, 200);
  await mode("account");
  assert.equal((await send(admin, "PATCH", "/envs/account?user_id=bob", { env_delete: ["MODE"] })).status, 200);
  await mode("worker");
  const shadowed = await send(admin, "PATCH", "/envs/instance", { env_patch: { MODE: "instance" } });
  assert.deepEqual([shadowed.status, shadowed.json.error.field], [400, "env_patch.MODE"]);
});

test("a text of the instance is seen by the next run, on threads that are awake too, and after a crash", async () => {
  const admin = bobbin.client;
  const refused = await send(admin, "POST", "/threads", { agent_id: "citizen" });
  assert.deepEqual([refused.status, refused.json.error.code], [400, "missing_variables"]);
  assert.match(refused.json.error.message, /CITY/);
  const rome = { env_patch: { CITY: "Rome" }, env_type_patch: { CITY: "text" } };
  assert.equal((await send(admin, "PATCH", "/envs/instance", rome)).status, 200);
  const thread = await admin.thread("citizen");
  await thread.ask("hello");
  assert.equal(system(city), "You are in Rome.");
  const turin = await send(admin, "PATCH", "/envs/instance", { env_patch: { CITY: "Turin" } });
  assert.deepEqual(turin.json.env, { CITY: "Turin" });
  await thread.ask("hello");
  assert.equal(system(city), "You are in Turin.");
  await thread.send("PATCH", "", { env_patch: { CITY: "Lisbon" }, env_type_patch: { CITY: "text" } });
  await bobbin.server.crash();
  await thread.ask("hello");
  assert.equal(system(city), "You are in Lisbon.");
  const shown = (await thread.send("GET")).json.thread;
  assert.deepEqual([shown.env, shown.env_types], [{ CITY: "Lisbon" }, { CITY: "text" }]);
  await thread.send("PATCH", "", { env_type_patch: { CITY: "secret" } });
  await thread.ask("hello");
  assert.equal(system(city), "You are in .");
  await until("the log says so", () => bobbin.server.output().includes("CITY is a secret"));
});

test("values of an account are its owner's, those of the instance an admin's", async () => {
  const [admin, alice, thread, nobody] = [bobbin.client, bobbin.as(ALICE), bobbin.as("key-of-t"), bobbin.as(undefined)];
  const patch = { env_patch: { X: "1" } };
  for (const [client, path, status] of /** @type {const} */ ([
    [admin, "/envs/instance", 200],
    [alice, "/envs/instance", 403],
    [thread, "/envs/instance", 403],
    [nobody, "/envs/instance", 401],
    [admin, "/envs/account?user_id=alice", 200],
    [admin, "/envs/account", 400],
    [alice, "/envs/account", 200],
    [alice, "/envs/account?user_id=alice", 200],
    [alice, "/envs/account?user_id=bob", 403],
    [thread, "/envs/account?user_id=alice", 403],
    [thread, "/envs/account", 400],
  ])) {
    assert.equal((await send(client, "GET", path)).status, status, `GET ${path}`);
    assert.equal((await send(client, "PATCH", path, patch)).status, status, `PATCH ${path}`);
  }
  assert.equal((await send(admin, "DELETE", "/envs/instance")).status, 405);
  for (const name of ["X"]) {
    await send(admin, "PATCH", "/envs/instance", { env_delete: [name] });
    await send(alice, "PATCH", "/envs/account", { env_delete: [name] });
  }
  const model = { env_patch: { MODEL_KEY: "mine-not-yours" } };
  for (const path of ["/envs/account", `/threads/${(await admin.thread("keeper", { user_id: "alice" })).id}`]) {
    const answer = await send(alice, "PATCH", path, model);
    assert.deepEqual([answer.status, answer.json.error.field], [400, "env_patch.MODEL_KEY"], path);
  }
});

test("a secret of any level is nowhere to be found", async () => {
  const thread = await secrets();
  const socket = await thread.stream();
  const events = await thread.events();
  for (const tool of ["echo", "broken"]) {
    const before = keeper.model.asked.length;
    const { message } = await thread.ask(`use ${tool}`);
    answers.push(JSON.stringify(message));
    assert.match(message.content, /\[redacted OF_THREAD\].*\[redacted OF_ACCOUNT\].*\[redacted OF_INSTANCE\].*\[redacted OF_WORKER\]/s);
    assert.equal(keeper.model.asked.length, before + 2);
  }
  const told = /** @type {import("./support/tool.mjs").Received} */ (echo.received.at(-1)).headers;
  assert.deepEqual(
    [told["x-thread"], told["x-account"], told["x-instance"], told["x-worker"]],
    [CANARY.thread, CANARY.account, CANARY.instance, CANARY.worker],
    "the tool itself is given them",
  );
  answers.push((await thread.send("POST", "/effects", { name: "ring" })).text);
  await ring.call(1);
  await until("the effect has failed", async () => {
    const { text, json } = await thread.send("GET", "/effects");
    answers.push(text);
    return json.effects[0].status === "failed";
  });
  for (const [name, status] of /** @type {const} */ ([["leak", 200], ["fails", 500]])) {
    const answer = await thread.send("GET", `/${name}`);
    assert.equal(answer.status, status);
    answers.push(answer.text, JSON.stringify(answer.headers));
  }
  await thread.send("PATCH", "", { env_patch: { OF_THREAD: CANARY.patched } });
  answers.push(JSON.stringify((await thread.ask("use broken")).message));
  await thread.idle();
  for (const path of ["", "/messages?includeSilent=true", "/logs", "/diagnostics", "/effects", "/kv"]) {
    answers.push((await thread.send("GET", path)).text);
  }
  for (const { id } of (await thread.send("GET", "/logs")).json.logs) answers.push((await thread.send("GET", `/logs/${id}`)).text);
  for (const path of ["/threads?user_id=alice", "/envs/instance", "/envs/account?user_id=alice"]) await send(bobbin.client, "GET", path);
  const frames = [JSON.stringify(socket.frames), JSON.stringify(events.events)];
  socket.close();
  events.close();

  const asked = bobbin.models.models ? [...bobbin.models.models.values()].flatMap(({ asked }) => asked.map(({ body }) => JSON.stringify(body))) : [];
  assert.ok(asked.length > 0 && frames.every((text) => text.length > 2) && answers.length > 20);
  nowhere("an answer", answers);
  nowhere("a request to a model", asked);
  nowhere("a frame", frames);
  nowhere("the log", [bobbin.server.output(10_000_000)]);
  const files = readdirSync(bobbin.server.persist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.ok(files.some(({ name }) => name.endsWith(".sqlite")), "there are databases");
  for (const file of files) {
    const path = join(file.parentPath, file.name);
    nowhere(path, [readFileSync(path, "latin1")]);
  }
});

/** Checks that the texts contain no form of any secret. @param {string} place @param {string[]} texts */
function nowhere(place, texts) {
  for (const [level, secret] of Object.entries(CANARY)) {
    const json = JSON.stringify(secret).slice(1, -1);
    const base64 = Buffer.from(secret).toString("base64").slice(0, 16);
    for (const form of [secret, json, JSON.stringify(json).slice(1, -1), encodeURIComponent(secret), base64]) {
      const found = texts.find((text) => text.includes(form));
      assert.equal(found, undefined, `${form} (${level}) is in ${place}`);
    }
  }
}

const keyless = suite({ vars: { BOBBIN_ENCRYPTION_KEYS: "" } });
keyless.agent("keeper", clerk);

keyless.test("without a key no value is taken, and the answer says what to set", async () => {
  const { client } = keyless;
  const body = { env_patch: { A: "a value" } };
  for (const [method, path, sent] of /** @type {const} */ ([
    ["POST", "/threads", { agent_id: "keeper", env: { A: "a value" } }],
    ["PATCH", `/threads/${(await client.thread("keeper")).id}`, body],
    ["PATCH", "/envs/instance", body],
    ["PATCH", "/envs/account?user_id=ada", body],
  ])) {
    const { status, json } = await client.send(method, path, sent);
    assert.deepEqual([status, json.error.code], [503, "encryption_unavailable"], `${method} ${path}`);
    assert.match(json.error.hint, /BOBBIN_ENCRYPTION_KEYS/);
  }
  assert.equal((await client.threads()).total, 1, "the refused one is not listed");
  const thread = await client.thread("keeper");
  assert.equal((await thread.ask("hello")).message.content, "re: hello");
});

const local = suite({});
local.agent("keeper", clerk);

local.test("npm start makes a key of its own, outside the folder of the threads", async () => {
    const thread = await local.client.thread("keeper", { env: { A: "a value", B: "b" }, env_types: { A: "text" } });
  assert.deepEqual((await thread.send("GET")).json.thread.env_types, { A: "text", B: "secret" });
  const key = readFileSync(join(checkout, ".bobbin/encryption-keys"), "utf8");
  assert.match(key, /^local=[A-Za-z0-9+/]{43}=\n$/);
  await local.server.crash();
    assert.deepEqual((await thread.send("GET")).json.thread.env, { A: "a value" }, "the same key after a restart");
  const shown = await thread.send("PATCH", "", { env_type_patch: { B: "text" } });
  assert.deepEqual([shown.status, shown.json.error.field], [400, "env_type_patch.B"]);
});
