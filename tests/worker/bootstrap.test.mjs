// Variables in families of threads: inheritance, waiting for values, and initial values. No secret of any level may be
// found afterwards.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { atRest, finishes, registry, sessionTools, subagent, task, told } from "./support/family.mjs";
import { say, textOf, use } from "./support/model.mjs";
import { until } from "./support/poll.mjs";
import { suite } from "./support/suite.mjs";

const KEYS = "test=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const ADMIN = "key-of-the-admin";
const ALICE = "key-of-alice";
const BOB = "key-of-bob";

/** Secrets that no later test may find. */
const CANARY = {
  root: "canary-root/5f1d\"x",
  shared: "canary-shared+77aa",
  given: "canary-given=c0de",
  patched: "canary-patched~0b0b",
  first: "canary-first 91e2",
  second: "canary-second&a1b2",
};

const bobbin = suite({
  key: ADMIN,
  vars: {
    BOBBIN_TOKEN_SECRET: "secret-of-the-tokens-of-the-tests",
    BOBBIN_API_KEYS: `${ADMIN}=admin,${ALICE}=owner:alice,${BOB}=owner:bob`,
    BOBBIN_ENCRYPTION_KEYS: KEYS,
    BOBBIN_LOG_BODIES: "1",
  },
});
const test = bobbin.test.bind(bobbin);
sessionTools(bobbin);

/** All responses, for the search at the end. @type {string[]} */
const answers = [];

/** @param {{ send: (...args: any[]) => Promise<any> }} to @param {any[]} args */
async function send(to, ...args) {
  const answer = await to.send(...args);
  answers.push(answer.text, JSON.stringify(answer.headers ?? {}));
  return answer;
}

/** Defines a tool that receives TOKEN and SHARED and returns them. @param {string} name @param {object[]} variables */
function till(name, variables) {
  const tool = bobbin.tools.tool(name, ({ headers }) => `${name} has ${headers["x-token"]} and ${headers["x-shared"]}`);
  bobbin.definitions.push(() =>
    bobbin.folder.json(`tools/${name}.json`, {
      description: `The test tool ${name}.`,
      run: { http: { url: `${bobbin.tools.base}/${name}`, headers: { "x-token": "{{env TOKEN}}", "x-shared": "{{env SHARED}}" } } },
      variables,
      args: { type: "object" },
    }),
  );
  return tool;
}
const secret = { type: "secret" };
const tillOfShop = till("till", [{ name: "TOKEN", ...secret, required: true, scoped: true }, { name: "SHARED", ...secret }]);
const tillOfStall = till("drawer", [{ name: "TOKEN", ...secret, required: true }, { name: "SHARED", ...secret }]);

/**
 * Makes these calls one after another, then finishes with all results.
 * @param {string[]} names @returns {import("./support/model.mjs").Script}
 */
const uses = (...names) => (asked) => {
  const found = asked.messages.filter(({ role }) => role === "tool").map(textOf);
  const name = names[found.length];
  return name === undefined ? finishes(() => `${task(asked)}: ${found.join(" | ")}`)(asked) : use({ name, args: {} });
};

subagent(bobbin, "stall", uses("drawer"), { tools: ["drawer"], schema: null });
subagent(bobbin, "shop", uses("till", "stall"), { tools: ["till", { name: "stall" }], schema: null });

/** Calls the shop on the message "open", and repeats messages of children. @type {import("./support/model.mjs").Script} */
const owner = ({ messages, last }) =>
  last === "open" && messages.at(-1)?.role === "user" ? use({ name: "shop", args: {} }) : say(`heard: ${last}`);
bobbin.agent("owner", owner, { tools: [{ name: "shop" }] });

/** Creates a thread of Alice that has called the shop, and returns the result of the call. */
async function opened() {
  const thread = await bobbin.client.thread("owner", { user_id: "alice", env: { TOKEN: CANARY.root, SHARED: CANARY.shared } });
  await thread.ask("open");
  const result = (await thread.messages()).find(({ role }) => role === "tool");
  return { thread, result, data: result.metadata.error_data };
}

test("a subagent that lacks values begins once it is given them, also after a crash, and only once", async () => {
  const { thread, result, data } = await opened();
  const { request_id: id } = data;
  const path = `/variables/${id}`;
  assert.deepEqual([result.tool_status, result.metadata.error_code], ["error", "subagent_env_required"]);
  assert.deepEqual(data, { request_id: id, endpoint: `/api${thread.path}${path}`, required: ["TOKEN"], missing: ["TOKEN"], agent: "shop" });
  assert.ok(result.content.includes(data.endpoint) && result.content.includes("TOKEN"), result.content);

  const shown = await send(thread, "GET", path);
  assert.equal(shown.status, 200);
  const { created_at, expires_at, ...rest } = shown.json;
  assert.equal(expires_at - created_at, 7 * 24 * 3600);
  assert.deepEqual(rest, {
    request_id: id, parent_thread_id: thread.id, agent_name: "shop", registry_agent_name: "shop", name: null,
    required: ["TOKEN"], missing: ["TOKEN"],
  });
  const at = (/** @type {string} */ key) => bobbin.as(key);
  const body = { env: { TOKEN: CANARY.given } };
  assert.equal((await send(at(BOB), "GET", `${thread.path}${path}`)).status, 404);
  assert.equal((await send(at(BOB), "POST", `${thread.path}${path}`, body)).status, 404);
  const ofThread = (await send(at(ALICE), "POST", "/tokens", { scope: `thread:${thread.id}` })).json.token;
  assert.equal((await send(at(ofThread), "GET", `${thread.path}${path}`)).status, 200);
  assert.equal((await send(at(ofThread), "POST", `${thread.path}${path}`, body)).status, 403);
  assert.equal((await send(thread, "GET", "/variables/nobody")).json.error.code, "not_found");
  assert.equal((await send(thread, "PUT", path, body)).status, 405);

  await bobbin.server.crash();
  for (const [wrong, field, says] of /** @type {const} */ ([
    [[], undefined, /JSON object/],
    [{}, "env", /required/],
    [{ env: "TOKEN" }, "env", /object/],
    [{ env: { TOKEN: { deep: CANARY.given } } }, "env.TOKEN", /text/],
    [{ env: { TOKEN: null } }, "env.TOKEN", /text/],
    [{ env: { OTHER: CANARY.given } }, "env", /TOKEN/],
  ])) {
    const answer = await send(thread, "POST", path, wrong);
    assert.deepEqual([answer.status, answer.json.error.field], [400, field], answer.text);
    assert.match(answer.json.error.message, says);
  }
  assert.deepEqual((await registry(thread)).map(({ status }) => status), ["pending"]);

  const success = { request_id: id, child_thread_id: id, status: "success" };
  const key = { headers: { "idempotency-key": "once" } };
  const given = await send(bobbin.as(ALICE), "POST", `${thread.path}${path}`, body, key);
  assert.deepEqual([given.status, given.json], [200, success], given.text);
  for (const [options, status] of /** @type {const} */ ([[key, 200], [undefined, 404], [{ headers: { "idempotency-key": "two" } }, 404]])) {
    assert.equal((await send(thread, "POST", path, body, options)).status, status);
  }
  assert.equal((await send(thread, "GET", path)).status, 404);

  const family = await atRest(thread);
  assert.deepEqual(family.map(({ entry }) => entry?.agent_name), [undefined, "shop", "stall"]);
  const [said, ...more] = await told(thread);
  assert.deepEqual([more.length, said.metadata.subagent_id, said.silent, said.role], [0, id, true, "user"]);
  assert.match(said.content, /till has \[redacted TOKEN\] and \[redacted SHARED\]/);
  assert.match(said.content, /drawer has \[redacted TOKEN\] and \[redacted SHARED\]/);
  const last = (await thread.messages()).at(-1);
  assert.ok(last.content.startsWith("heard: "), "a blocking call has long ended: its child's result wakes the parent");
  // Variables for the shop are not passed on to the shop's children.
  for (const tool of [tillOfShop, tillOfStall]) {
    const { headers } = /** @type {import("./support/tool.mjs").Received} */ (tool.received.at(-1));
    assert.deepEqual([headers["x-token"], headers["x-shared"]], [CANARY.given, CANARY.shared]);
  }
});

test("a change of the parent's values counts for what begins later; a terminated parent takes none", async () => {
  const { thread, data } = await opened();
  await send(thread, "PATCH", "", { env_patch: { SHARED: CANARY.patched } });
  const path = `/variables/${data.request_id}`;
  const given = await send(thread, "POST", path, { env: { TOKEN: CANARY.given } });
  assert.equal(given.status, 200, given.text);
  await atRest(thread);
  assert.equal(tillOfStall.received.at(-1)?.headers["x-shared"], CANARY.patched);

  const other = await opened();
  await other.thread.send("POST", "/terminate");
  const refused = await send(other.thread, "POST", `/variables/${other.data.request_id}`, { env: { TOKEN: CANARY.given } });
  assert.deepEqual([refused.status, refused.json.error.code], [409, "terminated"]);
  assert.equal((await send(other.thread, "GET", `/variables/${other.data.request_id}`)).status, 404);
  assert.deepEqual((await registry(other.thread)).map(({ status }) => status), ["terminated"]);
});

const hints = { nameEnv: "SHOP", descriptionEnv: "TASK", scopedEnv: ["TOKEN"] };
bobbin.agent("founder", ({ last }) => say(`heard: ${last}`), { tools: [{ name: "shop", blocking: false, immediate: hints }] });

test("subagents begin with a prompt, one for each place of a row of variables, which are taken", async () => {
  const env = {
    SHARED: CANARY.shared, SHOP: "Shop of Ada", TASK: "Sell apples", TOKEN: CANARY.first,
    SHOP__2: "Shop of Bob", TASK__2: "Sell pears", TOKEN__2: CANARY.second,
  };
  const thread = await bobbin.client.thread("founder", { user_id: "alice", env });
  const socket = await thread.stream();
  await thread.accepted("hello");
  await until("both have answered", async () => (await told(thread)).length === 2);
  const family = await atRest(thread);
  assert.deepEqual(family.map(({ entry }) => entry?.agent_name).sort(), ["shop", "shop", "stall", "stall", undefined]);
  const results = (await told(thread)).map(({ content }) => content).sort();
  for (const [n, text] of ["apples", "pears"].entries()) {
    assert.ok(results.some((result) => result.includes(`Sell ${text}: till has [redacted TOKEN]`)), `${n} ${results}`);
  }
  const tags = await Promise.all(family.slice(1, 3).map(async ({ thread }) => (await thread.facts()).tags));
  assert.deepEqual(tags.flat().sort(), ["name:Shop of Ada", "name:Shop of Bob"]);
  const facts = (await send(thread, "GET", "")).json.thread;
  assert.deepEqual(facts.env_types, { SHARED: "secret" });
  const tokens = tillOfShop.received.slice(-2).map(({ headers }) => headers["x-token"]);
  assert.deepEqual(tokens.sort(), [CANARY.first, CANARY.second]);
  await thread.ask("again");
  assert.equal((await atRest(thread)).length, 5, "once");
  answers.push(JSON.stringify(socket.frames));
  socket.close();
});

test("a secret of any level is nowhere to be found", async () => {
  for (const { id } of (await send(bobbin.client, "GET", "/threads?user_id=alice&include_children=true")).json.threads) {
    const path = `/threads/${id}`;
    for (const more of ["", "/messages?includeSilent=true", "/logs", "/diagnostics", "/subagents", "/cost"]) {
      await send(bobbin.client, "GET", `${path}${more}`);
    }
    for (const log of (await send(bobbin.client, "GET", `${path}/logs`)).json.logs) await send(bobbin.client, "GET", `${path}/logs/${log.id}`);
  }
  const asked = [...bobbin.models.models.values()].flatMap(({ asked }) => asked.map(({ body }) => JSON.stringify(body)));
  assert.ok(asked.length > 10 && answers.length > 100);
  nowhere("an answer", answers);
  nowhere("a request to a model", asked);
  nowhere("the log", [bobbin.server.output(10_000_000)]);
  const files = readdirSync(bobbin.server.persist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.ok(files.filter(({ name }) => name.endsWith(".sqlite")).length > 8, "there are databases");
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
