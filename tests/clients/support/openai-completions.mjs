// What chat completions must do with OpenAI's own client: calm, and again with the server killed while they go on, with the same
// assertions.

import assert from "node:assert/strict";
import { inTurn, refuse, say, sayAndUse, use } from "../../worker/support/model.mjs";
import { chance, sleep } from "../../worker/support/poll.mjs";
import { suite } from "../../worker/support/suite.mjs";

const KEY = "key-of-the-tests";
const LONG = Array.from({ length: 30 }, (_, at) => `${at} naïve – 日本 🧵; `).join("");

/** @param {number} major @param {typeof import("openai")} openai  the package @param {boolean} [killed] */
export function completions(major, { OpenAI }, killed = false) {
  const name = `openai-js ${major}`;
  const bobbin = suite({ key: KEY, vars: { BOBBIN_API_KEYS: `${KEY}=admin,key-of-alice=owner:alice` } });
  bobbin.tool("lookup", () => "found", { idempotent: true });
  bobbin.tool("pay", () => "paid", { approval: "always" });
  bobbin.definitions.push(() => {
    bobbin.folder.write({ tools: { locate: { description: "Where the person is.", run: { client: {} } } } });
  });
  const echo = bobbin.agent("echo", ({ last }) => say(`You wrote: ${last}`, { chunks: 3 }));
  const talker = bobbin.agent("talker", () => say(LONG, { chunks: 30, everyMs: 20 }));
  bobbin.agent("looker", ({ messages }) => (messages.at(-1)?.role === "tool" ? say("It is found.") : sayAndUse("One moment.", { name: "lookup", args: { of: "it" } })), {
    tools: ["lookup"],
  });
  bobbin.agent("payer", inTurn(use({ name: "pay", args: { amount: 5 } })), { tools: ["pay"] });
  bobbin.agent("finder", ({ messages }) => (messages.at(-1)?.role === "tool" ? say(`You are in ${messages.at(-1)?.content}.`) : use({ name: "locate", args: {} })), {
    tools: ["locate"],
  });
  bobbin.agent("failing", () => refuse(400));
  bobbin.agent("breaking", ({ n }) => async (out) => {
    await out.text(`words of ${n}`);
    await sleep(50);
    out.cut();
  }, { model: { retry: { maxAttempts: 1 } } });
  bobbin.agent("hidden", () => say("never"), { agent: { expose: false } });

  const random = chance(`${name} ${killed}`);
  /** @param {string} [apiKey] */
  const client = (apiKey = KEY) => new OpenAI({ baseURL: `${bobbin.server.base}/v1`, apiKey, maxRetries: killed ? 12 : 2 });
  /** In the twin the server dies somewhere in what follows. */
  const disturb = async () => {
    if (!killed) return;
    await sleep(random.between(0, 700));
    await bobbin.server.crash();
  };
  const test = (/** @type {string} */ text, /** @type {() => Promise<void>} */ body) => bobbin.test(`${name}${killed ? ", killed" : ""}: ${text}`, body);

  /**
   * The chunks of a stream. One that breaks off is asked for again, as a careful caller does, under the same key.
   *
   * @param {any} body @param {any} [options]
   */
  async function streamed(body, options = {}) {
    const idempotencyKey = `k${random.between(0, 2 ** 30)}`;
    for (let tries = 0; ; tries += 1) {
      const chunks = /** @type {any[]} */ ([]);
      try {
        const stream = await client().chat.completions.create({ ...body, stream: true }, { ...options, headers: { "Idempotency-Key": idempotencyKey, ...options.headers } });
        for await (const chunk of /** @type {any} */ (stream)) chunks.push(chunk);
        if (chunks.some(({ choices }) => choices[0]?.finish_reason)) return chunks;
        throw new Error("the stream has no end");
      } catch (error) {
        if (!killed || tries > 20 || error instanceof OpenAI.APIError && error.status !== undefined && error.status < 500) throw error;
        await sleep(300);
      }
    }
  }
  const textOf = (/** @type {any[]} */ chunks) => chunks.map(({ choices }) => choices[0]?.delta?.content ?? "").join("");
  /** @param {string} thread */
  const rows = async (thread) => {
    const { json } = await bobbin.client.send("GET", `/threads/${thread}/messages`);
    return json.messages.map((/** @type {any} */ { role, content }) => [role, content]);
  };

  test("agents are listed as models", async () => {
    const listed = (await client().models.list()).data.map(({ id, object, owned_by }) => ({ id, object, owned_by }));
    assert.ok(listed.some(({ id }) => id === "echo") && !listed.some(({ id }) => id === "hidden"), JSON.stringify(listed));
    assert.deepEqual(await client().models.retrieve("echo").then(({ id, object }) => [id, object]), ["echo", "model"]);
    await assert.rejects(client().models.retrieve("hidden"), OpenAI.NotFoundError);
  });

  test("an answer without a conversation knows what the request says, and nothing stays", async () => {
    const messages = /** @type {any[]} */ ([
      { role: "system", content: "Be brief." },
      { role: "user", content: "one" },
      { role: "assistant", content: "You wrote: one" },
      { role: "user", content: [{ type: "text", text: "two" }] },
    ]);
    const disturbed = disturb();
    const { data, response } = await client().chat.completions.create({ model: "echo", messages, temperature: 0.2 }).withResponse();
    await disturbed;
    assert.equal(data.choices[0]?.message.content, "You wrote: two");
    assert.deepEqual([data.object, data.model, data.choices[0]?.finish_reason], ["chat.completion", "echo", "stop"]);
    assert.ok((data.usage?.total_tokens ?? 0) > 0, JSON.stringify(data.usage));
    assert.equal(response.headers.get("x-bobbin-ignored"), "temperature");
    assert.match(data._request_id ?? "", /^req_/);
    const shown = echo.model.asked.at(-1)?.messages.map(({ role, content }) => `${role}: ${content}`).join("|") ?? "";
    assert.match(shown, /Be brief.*one.*You wrote: one.*two/);
    const thread = response.headers.get("x-bobbin-thread") ?? "";
    const { json } = await bobbin.client.send("GET", `/threads/${thread}`);
    assert.deepEqual(json.thread.tags, ["ephemeral"]);
  });

  test("a text is streamed as it grows, with what was used", async () => {
    const disturbed = disturb();
    const chunks = await streamed({ model: "talker", messages: [{ role: "user", content: "go" }], stream_options: { include_usage: true } });
    await disturbed;
    assert.equal(textOf(chunks), LONG);
    assert.ok(killed || chunks.length > 10, `${chunks.length} chunks`);
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
    const last = chunks.at(-1);
    assert.deepEqual([last.choices, last.usage.total_tokens > 0], [[], true]);
    assert.equal(chunks.at(-2).choices[0].finish_reason, "stop");
  });

  test("two turns of one conversation are four messages, whatever the client sends of the first", async () => {
    for (const [at, header] of ["X-OpenWebUI-Chat-Id", "X-Chat-Id", "X-Bobbin-Thread"].entries()) {
      const headers = { [header]: `chat-${killed}-${at}` };
      const messages = /** @type {any[]} */ ([{ role: "user", content: "one" }]);
      const first = await client().chat.completions.create({ model: "echo", messages }, { headers });
      messages.push(first.choices[0]?.message, { role: "user", content: "two" });
      const disturbed = disturb();
      const { data, response } = await client().chat.completions.create({ model: "echo", messages }, { headers }).withResponse();
      await disturbed;
      assert.equal(data.choices[0]?.message.content, "You wrote: two");
      assert.deepEqual(await rows(response.headers.get("x-bobbin-thread") ?? ""), [
        ["user", "one"],
        ["assistant", "You wrote: one"],
        ["user", "two"],
        ["assistant", "You wrote: two"],
      ]);
    }
  });

  test("another answer and another text come in place of what was there, once", async () => {
    for (const key of [undefined, "a-key"]) {
      const headers = { "X-Bobbin-Thread": `revised-${killed}-${key}` };
      const one = /** @type {any[]} */ ([{ role: "user", content: "one" }, { role: "assistant", content: "You wrote: one" }]);
      for (const [at, said] of ["two", "two", "two, but better", "two, but better"].entries()) {
        const messages = at === 0 ? one.slice(0, 1) : [...one, { role: "user", content: said }];
        const disturbed = disturb();
        const options = { headers, ...(key === undefined ? {} : { idempotencyKey: `${key}-${killed}-${at}` }) };
        const { data, response } = await client().chat.completions.create({ model: "echo", messages }, options).withResponse();
        await disturbed;
        const last = at === 0 ? "one" : said;
        assert.equal(data.choices[0]?.message.content, `You wrote: ${last}`);
        const there = one.map(({ role, content }) => [role, content]);
        const all = at === 0 ? there : [...there, ["user", said], ["assistant", `You wrote: ${said}`]];
        assert.deepEqual(await rows(response.headers.get("x-bobbin-thread") ?? ""), all, `${at}`);
      }
    }
  });

  test("what the server's tools do is no call of the client's, and the texts of all steps come", async () => {
    const body = { model: "looker", messages: [{ role: "user", content: "look" }] };
    const disturbed = disturb();
    const chunks = await streamed(body, { headers: { "X-Bobbin-Tool-Status": "reasoning" } });
    await disturbed;
    assert.equal(textOf(chunks), "One moment.\n\nIt is found.");
    assert.ok(chunks.every(({ choices }) => !choices[0]?.delta?.tool_calls));
    const told = chunks.map(({ choices }) => choices[0]?.delta?.reasoning_content ?? "").join("");
    assert.match(told, /lookup: done/);
    const whole = await client().chat.completions.create(/** @type {any} */ (body));
    assert.equal(whole.choices[0]?.message.content, "One moment.\n\nIt is found.");
  });

  if (!killed) test("the helper for streams has the whole text, and of the reasoning the last piece", async () => {
    const stream = client().chat.completions.stream({ model: "looker", messages: [{ role: "user", content: "look" }] }, { headers: { "X-Bobbin-Tool-Status": "reasoning" } });
    const pieces = /** @type {string[]} */ ([]);
    stream.on("chunk", ({ choices }) => void pieces.push(/** @type {any} */ (choices[0]?.delta)?.reasoning_content ?? ""));
    const [choice] = (await stream.finalChatCompletion()).choices;
    assert.deepEqual([choice?.message.content, choice?.finish_reason], ["One moment.\n\nIt is found.", "stop"]);
    const told = pieces.filter((piece) => piece !== "");
    assert.ok(told.length > 1, JSON.stringify(told));
    // docs/clients.md says so. Python's helper joins them.
    assert.equal(/** @type {any} */ (choice?.message).reasoning_content, told.at(-1));
  });

  test("a call that is left to the client is made by it, and the answer goes on", async () => {
    const tools = /** @type {any[]} */ ([{ type: "function", function: { name: "locate", parameters: { type: "object" } } }]);
    const headers = { "X-Bobbin-Thread": `locate-${killed}` };
    const messages = /** @type {any[]} */ ([{ role: "user", content: "where am I?" }]);
    const first = await client().chat.completions.create({ model: "finder", messages, tools }, { headers });
    const [call] = first.choices[0]?.message.tool_calls ?? [];
    assert.deepEqual([first.choices[0]?.finish_reason, /** @type {any} */ (call).function.name], ["tool_calls", "locate"]);
    messages.push(first.choices[0]?.message, { role: "tool", tool_call_id: call?.id, content: "Lisbon" });
    const disturbed = disturb();
    const then = await client().chat.completions.create({ model: "finder", messages, tools }, { headers });
    await disturbed;
    assert.equal(then.choices[0]?.message.content, "You are in Lisbon.");
    // Without a name of the conversation the id of the call says which it is.
    const alone = await client().chat.completions.create({ model: "finder", messages: messages.slice(0, 1), tools });
    const id = alone.choices[0]?.message.tool_calls?.[0]?.id ?? "";
    const results = [messages[0], alone.choices[0]?.message, { role: "tool", tool_call_id: id, content: "Porto" }];
    const last = await client().chat.completions.create({ model: "finder", messages: results, tools });
    assert.equal(last.choices[0]?.message.content, "You are in Porto.");
  });

  test("what waits for a person says so", async () => {
    const { data, response } = await client().chat.completions.create({ model: "payer", messages: [{ role: "user", content: "pay" }] }).withResponse();
    assert.match(data.choices[0]?.message.content ?? "", /approve of the call of `pay`.*\/waits\/w_/);
    assert.equal(response.headers.get("x-bobbin-state"), "parked");
  });

  test("errors are of the classes that the client knows", async () => {
    const messages = /** @type {any[]} */ ([{ role: "user", content: "x" }]);
    const rejects = async (/** @type {Promise<unknown>} */ asked, /** @type {any} */ kind, /** @type {object} */ fields) => {
      await assert.rejects(asked, (/** @type {any} */ error) => {
        assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
        for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value, `${name}: ${error.message}`);
        assert.match(error.requestID ?? "", /^req_/);
        return true;
      });
    };
    const create = (/** @type {any} */ body, apiKey = KEY) => client(apiKey).chat.completions.create({ model: "echo", messages, ...body });
    await rejects(create({ model: "nobody" }), OpenAI.NotFoundError, { code: "model_not_found", param: "model" });
    await rejects(create({}, "wrong"), OpenAI.AuthenticationError, { code: "unauthenticated" });
    for (const [body, param] of /** @type {[any, string][]} */ ([
      [{ n: 2 }, "n"],
      [{ logprobs: true }, "logprobs"],
      [{ tools: [{ type: "function", function: { name: "other" } }] }, "tools"],
      [{ response_format: { type: "json_object" } }, "response_format"],
      [{ messages: [] }, "messages"],
      [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://a.example/x.png" } }] }] }, "messages[0].content"],
      [{ messages: [...messages, { role: "assistant", content: "y" }] }, "messages"],
    ])) {
      await rejects(create(body), OpenAI.BadRequestError, { param });
    }
    await rejects(create({ model: "failing" }), OpenAI.InternalServerError, { status: 502, code: "model_error" });
    await rejects(create({ model: "failing", stream: true }), OpenAI.InternalServerError, { status: 502, code: "model_error" });
    const large = { messages: [{ role: "user", content: "x".repeat(13 << 20) }] };
    await assert.rejects(create(large), (/** @type {any} */ error) => error.status === 413);
  });

  test("a request that comes again after its message was stored starts nothing", async () => {
    const asked = echo.model.asked.length;
    const body = JSON.stringify({ model: "echo", messages: [{ role: "user", content: `once ${killed}` }] });
    for (const named of [{ "x-chat-id": `again-${killed}` }, {}]) {
      const before = echo.model.asked.length;
      const answers = [];
      for (const count of ["0", "1", "2"]) {
        const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json", "x-stainless-retry-count": count, ...named };
        const answer = await fetch(`${bobbin.server.base}/v1/chat/completions`, { method: "POST", headers, body });
        answers.push([answer.status, (await answer.json()).id]);
      }
      assert.equal(new Set(answers.map(String)).size, 1, JSON.stringify(answers));
      assert.equal(echo.model.asked.length, before + 1);
    }
    assert.equal(echo.model.asked.length, asked + 2);
  });

  test("what fails after something was said is told in the stream", async () => {
    await assert.rejects(async () => {
      const stream = await client().chat.completions.create({ model: "breaking", messages: [{ role: "user", content: "x" }], stream: true });
      const texts = [];
      for await (const { choices } of stream) texts.push(choices[0]?.delta.content ?? "");
      assert.fail(`it ended: ${texts.join("")}`);
    }, OpenAI.APIError);
  });

  test("a conversation is its owner's", async () => {
    const headers = { "X-Bobbin-Thread": "shared-name" };
    const ask = (/** @type {string} */ key, /** @type {string} */ text) =>
      client(key).chat.completions.create({ model: "echo", messages: [{ role: "user", content: text }] }, { headers }).withResponse();
    const [admins, alices] = [await ask(KEY, "of the admin"), await ask("key-of-alice", "of alice")];
    const [one, two] = [admins, alices].map(({ response }) => response.headers.get("x-bobbin-thread"));
    assert.notEqual(one, two);
    const other = client("key-of-alice").chat.completions.create({ model: "echo", messages: [{ role: "user", content: "x" }] }, { headers: { "X-Bobbin-Thread": one ?? "" } });
    const { response } = await other.withResponse();
    assert.notEqual(response.headers.get("x-bobbin-thread"), one, "an id of another's is a name like any other");
    assert.equal(talker.name, "talker");
  });
}
