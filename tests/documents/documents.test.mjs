// The documentation: commands work as pasted, links resolve, and every promise names an existing test.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { complaints } from "../../scripts/documents.mjs";
import { AgentsFolder } from "../worker/support/agents.mjs";
import { Client } from "../worker/support/client.mjs";
import { add, search, settled } from "../worker/support/memories.mjs";
import { until } from "../worker/support/poll.mjs";
import { Server, checkout, freePort, scratch } from "../worker/support/server.mjs";

const read = (/** @type {string} */ file) => readFileSync(join(checkout, file), "utf8");

/**
 * Returns the code blocks of a language below a heading, up to the next heading of its level.
 * @param {string} file @param {string} heading @param {string} language
 */
function blocks(file, heading, language) {
  const text = `\n${read(file)}`;
  const start = text.indexOf(`\n${heading}\n`);
  assert.ok(start >= 0, `${file} has no heading “${heading}”`);
  const level = /^#+/.exec(heading)?.[0];
  const end = text.indexOf(`\n${level} `, start + heading.length);
  const section = text.slice(start, end < 0 ? undefined : end);
  return [...section.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "gms"))].map(([, code = ""]) => code);
}

/** A terminal that runs pasted blocks one after another, in one shell. */
class Terminal {
  #shell;
  #output = "";

  /** @param {string} [cwd] */
  constructor(cwd = checkout) {
    this.#shell = spawn("bash", { cwd, stdio: ["pipe", "pipe", "inherit"] });
    this.#shell.stdout.setEncoding("utf8").on("data", (text) => (this.#output += text));
    terminals.push(this);
  }

  get output() {
    return this.#output;
  }

  /** Pastes without waiting. @param {string} code */
  start(code) {
    this.#shell.stdin.write(`${code}\n`);
  }

  /** Pastes and returns the output. @param {string} code */
  async paste(code) {
    const from = this.#output.length;
    this.start(`${code}\necho "[done $?]"`);
    await until(`the shell has done ${code}`, () => /\[done \d+\]\n$/.test(this.#output.slice(from)), { withinMs: 30_000 });
    const [, printed = "", status] = /^(.*)\[done (\d+)\]\n$/s.exec(this.#output.slice(from)) ?? [];
    assert.equal(status, "0", `${code}\n${printed}`);
    return printed;
  }

  end() {
    this.#shell.kill("SIGKILL");
  }
}

/** @type {Terminal[]} */
const terminals = [];
/** @type {(() => unknown)[]} */
const cleaning = [];
after(async () => {
  for (const terminal of terminals) terminal.end();
  for (const clean of cleaning.reverse()) await clean();
});

/** Starts a server without the machine's keys. @param {string} agents @param {Record<string, string>} [vars] */
async function serve(agents, vars = {}) {
  const server = await Server.start({ agents, vars: { OPENAI_API_KEY: "", OPENAI_BASE_URL: "", ANTHROPIC_API_KEY: "", ANTHROPIC_BASE_URL: "", ...vars } });
  cleaning.push(() => server.remove());
  return server;
}

const session = blocks("README.md", "## A session", "sh");
const readme = read("README.md");
/** @type {Server} */
let server;
const terminal = new Terminal();
const second = new Terminal();

/** Waits until the last message of the history matches, and returns it. @param {string} list @param {RegExp} last */
const answered = (list, last) =>
  until(
    `an answer like ${last}`,
    async () => {
      const { messages } = JSON.parse(await terminal.paste(list));
      return last.test(messages.at(-1).content) ? messages : undefined;
    },
    { withinMs: 40_000 },
  );

test("the session of the README works as pasted", async () => {
  server = await serve(join(checkout, "agents"));
  const page = await fetch(`${server.base}/`, { headers: { accept: "text/html" } });
  assert.match(await page.text(), /<div id="app">/, "the inspector is at the root");
  const [create, ask, call, list] = session;
  const printed = await terminal.paste(create?.replace("http://127.0.0.1:8787", server.base) ?? "");
  assert.match(printed, /^curl -sN http\S+\/events\n$/);
  second.start(printed);
  await until("the stream shows the thread", () => second.output.includes("event: snapshot"));

  assert.equal(JSON.parse(await terminal.paste(ask ?? "")).outcome, "completed");
  const { message } = JSON.parse(await terminal.paste(call ?? ""));
  assert.ok(readme.includes(`\`${message.content}\``), `the README says what comes: ${message.content}`);
  for (const event of ["message_chunk", "tool_started", "tool_completed", "message_data"]) {
    await until(`the stream shows ${event}`, () => second.output.includes(`event: ${event}`));
  }
  const { messages } = JSON.parse(await terminal.paste(list ?? ""));
  assert.deepEqual(
    messages.map((/** @type {{ role: string }} */ { role }) => role),
    ["user", "assistant", "user", "assistant", "tool", "assistant"],
  );
});

test("what the README says of values, files, effects, endpoints and code works as pasted", async () => {
  const [keep = "", later = "", own = "", code = ""] = blocks("README.md", "## More than messages", "sh");
  const aside = new Terminal();
  await aside.paste((session[0] ?? "").replace("http://127.0.0.1:8787", server.base));
  const kept = await aside.paste(keep);
  assert.match(kept, /"value":"red".*"\/notes\/bobbin\.txt".*"text":"A bobbin holds one thread\."/s);
  assert.equal(JSON.parse(await aside.paste(later)).effect.status, "pending");
  const summary = await until("the reminder is answered", async () => {
    const summary = JSON.parse(await aside.paste(own));
    return summary.messages === 2 ? summary : undefined;
  });
  assert.deepEqual([summary.keys, summary.last_message.role], [["colour"], "assistant"]);
  assert.ok((await aside.paste(code)).endsWith('{"list":[{"text":"thread a needle","done":false}],"open":1}'));
});

test("what the documents say of subagents works as pasted", async () => {
  const [ask = "", list = ""] = blocks("docs/subagents.md", "# Subagents", "sh");
  const aside = new Terminal();
  await aside.paste((session[0] ?? "").replace("http://127.0.0.1:8787", server.base));
  await aside.paste(ask);
  await until("the verdict is there", async () => {
    const { messages } = JSON.parse(await aside.paste(list));
    return /^fact_check said: It holds\.\s/.test(messages.at(-1).content ?? "");
  });
});

test("what the documents say of budgets works as pasted, and answers have the fields that they show", async () => {
  const [begin = "", extend = ""] = blocks("docs/budgets.md", "# Budgets", "sh");
  const aside = new Terminal();
  await aside.paste((session[0] ?? "").replace("http://127.0.0.1:8787", server.base));
  const parked = JSON.parse(await aside.paste(begin));
  assert.deepEqual([parked.outcome, parked.reason], ["parked", "waiting_for_budget"], JSON.stringify(parked));
  const fields = (/** @type {object} */ value) => Object.keys(value).sort();
  const [asked = ""] = blocks("docs/budgets.md", "## Asking", "json");
  assert.deepEqual(fields(parked.waits[0].budget), fields(JSON.parse(asked).budget), "docs/budgets.md, Asking");
  const shown = /** @type {[any, any]} */ ((await aside.paste(extend)).replace("}{", "}\n{").split("\n").map((text) => JSON.parse(text)));
  const [looked = ""] = blocks("docs/budgets.md", "## Looking and setting", "json");
  const example = JSON.parse(looked);
  assert.deepEqual(fields(shown[0]), fields(example), "docs/budgets.md, Looking and setting");
  assert.deepEqual(fields(shown[0].spent.run), fields(example.spent.run));
  assert.deepEqual(fields(shown[0].lent), fields(example.lent));
  assert.equal(shown[1].wait.decision, "extend");
  await until("it is answered", async () => {
    const { messages } = JSON.parse(await aside.paste("curl -s $URL/api/threads/$THREAD/messages"));
    return /^calculate said: .*42/.test(messages.at(-1).content ?? "");
  });
});

test("the README's run that is killed in the middle finishes, once", async () => {
  const [, , , , post, list] = session;
  await terminal.paste(post ?? "");
  const thread = await terminal.paste('echo "$URL/api/threads/$THREAD"');
  second.end();
  const stream = new Terminal();
  stream.start(`curl -sN ${thread.trim()}/events`);
  await until("the text has begun", () => stream.output.includes("event: message_chunk"));
  await server.crash();
  const messages = await answered(list ?? "", /^1 2 3 .* 99 100$/);
  assert.equal(messages.length, 2);
});

test("the README's tool that is killed in the middle is not run again, and the model is told", async () => {
  const [, , , , , list, call] = session;
  await terminal.paste(call ?? "");
  await until("the tool was called", async () => {
    const { messages } = JSON.parse(await terminal.paste(list ?? ""));
    return messages.at(-1).tool_calls;
  });
  await server.crash();
  const messages = await answered(list ?? "", /^wait said: /);
  assert.ok(readme.includes(`\`${messages.at(-1).content}\``), messages.at(-1).content);
});

test("the README's own application and the tool server of the documents work as pasted", async () => {
  const folder = scratch("documents");
  cleaning.push(() => rmSync(folder, { recursive: true, force: true }));
  const port = String(await freePort());
  const [make = ""] = blocks("README.md", "## Your own agent", "sh");
  const own = new Terminal(folder);
  assert.match(make, /^npm start -- --agents my-agents$/m);
  await own.paste(make.replace(/^npm start.*$/m, "").replaceAll("9000", port));

  const [code = ""] = blocks("docs/tools.md", "### The signature", "js");
  const tool = join(folder, "lookup.mjs");
  writeFileSync(tool, code.replaceAll("9000", port));
  new Terminal(folder).start(`SECRET=a-secret-of-the-tests exec '${process.execPath}' lookup.mjs`);

  const clerk = await serve(join(folder, "my-agents"), { BOBBIN_SIGNING_SECRET: "a-secret-of-the-tests" });
  const ask = `URL=${clerk.base} JSON='content-type: application/json'
THREAD=$(curl -s $URL/api/threads -H "$JSON" -d '{"agent_id":"clerk"}' | sed 's/.*"threadId":"\\([^"]*\\)".*/\\1/')
curl -s "$URL/api/threads/$THREAD/messages?wait=true" -H "$JSON" -d '{"role":"user","content":"call lookup {\\"word\\": \\"bobbin\\"}"}'`;
  const { message } = JSON.parse(await own.paste(ask));
  assert.equal(message.content, "lookup said: bobbin: a spool that thread is wound on");
  const unsigned = await own.paste(`curl -s -d '{"args":{}}' http://127.0.0.1:${port}/lookup`);
  assert.equal(unsigned, "bad signature");
});

test("what the documents say of memories works as pasted", async () => {
  const page = "docs/memory.md";
  const shown = (/** @type {string} */ heading, /** @type {number} */ at = 0) => JSON.parse(blocks(page, heading, "json")[at] ?? "");
  const sample = (/** @type {string} */ file) => {
    const { $schema, ...definition } = JSON.parse(read(`agents/${file}`));
    assert.match($schema, /schemas/);
    return definition;
  };
  const { description, ...handbook } = shown("## Definition");
  assert.deepEqual({ ...handbook, description: "" }, { ...sample("memories/handbook.json"), description: "" }, description);
  assert.deepEqual(shown("## Vectors"), sample("models/embed.json"));
  const aside = new Terminal();
  await aside.paste((session[0] ?? "").replace("http://127.0.0.1:8787", server.base));
  const [add = ""] = blocks(page, "## Documents", "sh");
  const { document } = JSON.parse(await aside.paste(add));
  const { "…": _more, ...fields } = shown("## Documents").document;
  assert.deepEqual(Object.fromEntries(Object.keys(fields).map((name) => [name, document[name]])), fields);
  const [search = ""] = blocks(page, "## Search", "sh");
  const found = await until("the document is indexed", async () => {
    const found = JSON.parse(await aside.paste(search));
    return found.degraded ? undefined : found;
  });
  assert.deepEqual(found, shown("## Search"));
  const [librarian = ""] = blocks(page, "## In a prompt", "sh");
  const printed = await aside.paste(librarian);
  // Two JSON responses in a row.
  const { message } = JSON.parse(printed.slice(printed.indexOf("}{") + 1));
  assert.match(message.content, /Refunds are granted within thirty days/);
  // The sample's conversation can be long: requests contain older messages as a summary.
  const talk = await new Client(server.base).thread("librarian");
  for (const text of ["What are refunds?", "And without a receipt?", "And on a Sunday?"]) await talk.ask(text);
  const asked = await talk.send("POST", "/context/summarize");
  assert.equal(asked.status, 202, asked.text);
  await until("the summary is there", async () => (await talk.send("GET", "/context")).json.summary !== null);
  assert.equal((await talk.ask("And then?")).outcome, "completed");
});

test("what the documents show of context and of scrubbing is what a server takes, gives and stores", async () => {
  const [context = "", summary = ""] = [blocks("docs/context.md", "## The budget", "json")[0], blocks("docs/context.md", "## Summaries", "json")[0]];
  const folder = new AgentsFolder({
    models: { cheap: { provider: "demo", model: "demo" } },
    prompts: { clerk: { toolDescription: "Answers.", model: "cheap", prompt: "You answer.", ...JSON.parse(context), ...JSON.parse(summary) } },
    agents: { clerk: { type: "ai_human", sideA: { prompt: "clerk" } } },
    memories: { page: { description: "A page." } },
  });
  cleaning.push(() => folder.remove());
  folder.file("bobbin.json", blocks("docs/scrubbing.md", "## Settings", "json")[0] ?? "");
  const client = new Client((await serve(folder.path)).base);
  const thread = await client.thread("clerk");
  await thread.ask("hello");
  const names = (/** @type {object} */ value) => Object.keys(value).sort();
  const shown = JSON.parse(blocks("docs/context.md", "## GET /api/threads/:id/context", "json")[0] ?? "");
  const { json } = await thread.send("GET", "/context");
  assert.deepEqual([names(json), names(json.parts)], [names(shown), names(shown.parts)]);

  const [before = "", after = ""] = blocks("docs/scrubbing.md", "# Scrubbing", "text");
  await add(thread, "page", { text: before });
  await settled(thread, "page");
  const { results } = await search(thread, "page", { query: "password" });
  assert.equal(results[0].text, after.trim());
});

test("every link of the documents leads somewhere, every promise has tests, no line is too long and no page is in dialect", () => {
  assert.deepEqual(complaints(), []);
});

test("the page of errors has every code that is sent, and none that is not", () => {
  const rust = globSync(["src/**/*.rs", "crates/**/*.rs", "worker/src/**/*.rs", "isolate/compiler/src/**/*.rs"], { cwd: checkout }).map(read);
  const sources = [...rust, ...globSync("isolate/*.js", { cwd: checkout }).map(read)].map((text) => text.replace(/^#\[cfg\(test\)\]\nmod \w+ \{.*/ms, ""));
  const all = (/** @type {RegExp} */ pattern) => sources.flatMap((text) => [...text.matchAll(pattern)].map(([, name = ""]) => name));
  /** Returns the variants of the enum of this name, or of the one that has a certain variant. @param {string} name */
  const variants = (name, having = "") => {
    const [body, ...others] = all(new RegExp(`^pub(?:\\(.*\\))? enum ${name} \\{\\n(.*?)^\\}`, "gms")).filter((body) => body.includes(having));
    assert.ok(body !== undefined && others.length === 0, `one enum ${name}`);
    return [...body.matchAll(/^ {4}(\w+),$/gm)].map(([, variant = ""]) => variant);
  };
  const snake = (/** @type {string} */ name) => name.replace(/\B[A-Z]/g, "_$&").toLowerCase();
  const page = read("docs/errors.md");
  /** Returns the first cells of a table's rows. The table is found by its first column's title. @param {string} title */
  const rows = (title) => {
    const table = new RegExp(`^\\| ${title} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, "m").exec(page)?.[1];
    assert.ok(table, `a table of ${title}`);
    return [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = ""]) => cell.replaceAll("`", "").split(", ")).sort();
  };
  const sent = (/** @type {string[]} */ names) => [...new Set(names)].sort();

  const waiting = ["approval", "question", "client_tool", "elicitation", "sign_in", "task", "retry", "children", "subagent"].map((kind) => `waiting_for_${kind}`);
  assert.deepEqual(rows("reason"), sent([...variants("Reason").map(snake), ...waiting]));
  assert.deepEqual(rows("`error_type`"), sent([...variants("ProviderCode").map(snake), ...all(/UnfinishedReason::\w+ => \("(\w+)"/g)]));
  const own = [...all(/error_code: Some\("(\w+)"\.into\(\)\)/g), ...all(/\bcoded\("(\w+)"/g)];
  assert.deepEqual(rows("`error_code`"), sent([...own, ...all(/^(?:pub\(\w+\) )?const (?:ARGUMENTS|DENIED): &str = "(\w+)";/gm), ...all(/const \w+: &str = "(mcp_\w+)";/g), ...all(/LimitKind::\w+(?:\(_\))? => "(\w+)"/g)]));
  assert.deepEqual(rows("`status`"), sent(variants("Status", "LinkError").map(snake)));
  const names = [...all(/CodeError::new\(\s*"(\w+)"/g), ...all(/error: \{ name: "(\w+)"/g), ...variants("ErrorKind")];
  const thrown = ["RangeError", "SerializationError", "anything else"];
  assert.deepEqual(rows("`error.name`"), sent([...names.filter((name) => name !== "Error"), ...thrown]));
  assert.deepEqual(rows("`notShown`"), sent(variants("AttachmentFlaw").map(snake)));
  assert.deepEqual(rows("code \\| when it happens"), sent([...all(/^const (?:EXPIRED|GONE|TOO_SLOW): u16 = (\d+);/gm), "any other"]));
});
