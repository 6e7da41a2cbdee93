// From an empty folder to an agent, with the packages as they are published, on each Node that counts, and no cargo.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { scratch } from "../worker/support/server.mjs";
import { until } from "../worker/support/poll.mjs";
import { Client } from "../worker/support/client.mjs";
import { Dev, NODES, bobbin, nodeOf, npmIn, packed } from "../package/support/installed.mjs";

/** What is packed must not grow past this. */
const PACKED_BYTES = 4_500_000;

const home = scratch("journey");
after(() => rmSync(home, { recursive: true, force: true }));

/** A project that is installed, which each Node gets a copy of. */
const made = join(home, "my-agent");
/** @type {{ bobbin: string, create: string }} */
let tarballs;

before(async () => {
  tarballs = await packed(join(home, "tarballs"));
  const creator = join(home, "creator");
  mkdirSync(creator);
  writeFileSync(join(creator, "package.json"), '{ "private": true }');
  const node = nodeOf("20");
  npmIn(creator, ["install", tarballs.bobbin, tarballs.create], node);
  npmIn(creator, ["exec", "--", "create-bobbin", made, "--package", tarballs.bobbin], node);
}, { timeout: 300_000 });

test("the package is small, and names no place of this machine", () => {
  const { size } = statSync(tarballs.bobbin);
  // A quick build of the Worker is twice as large as the one that is published.
  if (process.env.BOBBIN_BUILD !== "quick") assert.ok(size < PACKED_BYTES, `${size} bytes`);
  const bytes = brotliDecompressSync(readFileSync(join(made, "node_modules/bobbin/dist/compiler.wasm.br")));
  assert.doesNotMatch(bytes.toString("latin1"), /\/(root|home\/[a-z]+)\/\.(rustup|cargo)/);
});

test("the installed package has its documents", () => {
  const installed = join(made, "node_modules/bobbin");
  const listed = [...readFileSync(join(installed, "llms.txt"), "utf8").matchAll(/\]\(([^)]+)\): /g)].map(([, path = ""]) => path);
  assert.ok(listed.length > 30, `${listed.length} pages`);
  assert.deepEqual(listed.filter((path) => !existsSync(join(installed, path))), []);
});

for (const major of NODES) {
  test(`the whole journey on Node ${major}`, { timeout: 120_000 }, async () => {
    const node = nodeOf(major);
    const project = join(home, `on-${major}`);
    cpSync(made, project, { recursive: true, verbatimSymlinks: true });
    mistakes(project, node);
    addPage(project);

    let dev = new Dev(project, node, ["dev", "--port", "0"]);
    await dev.ready;
    assert.match(dev.printed, /Look inside: {2}http:\/\/127\.0\.0\.1:\d+\/inspector/);
    assert.doesNotMatch(dev.printed, /ExperimentalWarning/);
    assert.equal(JSON.parse(readFileSync(join(project, ".bobbin/dev.json"), "utf8")).url, dev.url);
    let client = new Client(dev.url);
    const thread = await client.thread("helper");
    assert.match((await thread.ask('call add {"numbers": [0.1, 0.2]}')).message.content, /0\.3/);

    await edited(project, client);
    await editedPage(project, dev);

    // Killed in the middle of a reply; the next server goes on with it by itself.
    const slow = await client.thread("slow");
    await client.send("POST", `/threads/${slow.id}/messages`, { role: "user", content: "count 30" });
    await until("the reply has begun", async () => JSON.stringify((await client.send("GET", `/threads/${slow.id}`)).json).includes("running"));
    await dev.end("SIGKILL");
    dev = new Dev(project, node, ["dev", "--port", "0"]);
    await dev.ready;
    client = new Client(dev.url);
    await until("the reply ends by itself", async () => {
      const { json } = await client.send("GET", `/threads/${slow.id}/messages`);
      return /29\D{1,4}30/.test(JSON.stringify(json));
    }, { withinMs: 30_000 });
    await dev.end();
    assert.equal(existsSync(join(project, ".bobbin/dev.json")), false);
    deployed(project, node, major);
    await served(project, node);
  });
}

/** What is wrong is told with its place. @param {string} project @param {string} node */
function mistakes(project, node) {
  const prompt = join(project, "agents/prompts/helper.md");
  const text = readFileSync(prompt, "utf8");
  writeFileSync(prompt, text.replace("tools: [add]", "tools: [ad]"));
  const found = bobbin(project, node, ["check", "--json"]);
  assert.equal(found.status, 1, found.stderr);
  const { ok, findings } = JSON.parse(found.stdout);
  assert.equal(ok, false);
  assert.deepEqual(findings.map((/** @type {any} */ { file, line, field }) => [file, line, field]), [["prompts/helper.md", 6, "tools[0]"]]);
  assert.match(bobbin(project, node, ["build"]).stderr, /agents\/prompts\/helper\.md:6:\d+: error in tools\[0\]/);
  assert.equal(existsSync(join(project, ".bobbin/catalog.json")), false, "nothing is written");
  writeFileSync(prompt, text);
  assert.equal(bobbin(project, node, ["check", "--strict"]).status, 0);
  const tested = bobbin(project, node, ["test"]);
  assert.equal(tested.status, 0, tested.stdout + tested.stderr);
  writeFileSync(join(project, "agents/models/demo-slow.json"), '{ "provider": "demo", "model": "demo-slow" }');
  writeFileSync(join(project, "agents/prompts/slow.md"), "---\ntoolDescription: d\nmodel: demo-slow\nincludeChat: true\n---\nYou are slow.\n");
  writeFileSync(join(project, "agents/agents/slow.json"), '{ "sideA": { "prompt": "slow" } }');
}

/** A page of the project's own, which its Worker serves at `/`. @param {string} project */
function addPage(project) {
  const about = join(project, "package.json");
  writeFileSync(about, JSON.stringify({ ...JSON.parse(readFileSync(about, "utf8")), bobbin: { page: "web/build.mjs" } }));
  mkdirSync(join(project, "web"));
  writeFileSync(join(project, "web/page.html"), "<p>one");
  writeFileSync(join(project, "web/build.mjs"), 'import { cpSync, mkdirSync } from "node:fs";\nmkdirSync(".bobbin", { recursive: true });\ncpSync("web/page.html", ".bobbin/page.html");\n');
  writeFileSync(join(project, "src/index.ts"), `import bobbin from "bobbin/worker";
import page from "../.bobbin/page.html";
export { DirectoryObject, MemoryObject, ThreadObject } from "bobbin/worker";
export default {
  fetch: (request: Request, env: unknown, ctx: unknown) => new URL(request.url).pathname === "/" ? new Response(page) : bobbin.fetch(request, env, ctx),
};
`);
}

/** Its address is printed, and a change of it is served. @param {string} project @param {Dev} dev */
async function editedPage(project, dev) {
  assert.match(dev.printed, new RegExp(`Your page: +${dev.url}/\n`));
  const shown = async () => (await new Client(dev.url).send("GET", "/../")).text;
  assert.equal(await shown(), "<p>one");
  writeFileSync(join(project, "web/page.html"), "<p>two");
  await until("the page is served as it is now", async () => (await shown()) === "<p>two", { withinMs: 15_000 });
}

/** A prompt that is edited is served. @param {string} project @param {Client} client */
async function edited(project, client) {
  const agent = join(project, "agents/agents/helper.json");
  writeFileSync(agent, readFileSync(agent, "utf8").replace('"Helper"', '"Changed"'));
  const saved = Date.now();
  await until("the change is served", async () => (await client.send("GET", "/agents")).text.includes("Changed"), { withinMs: 15_000 });
  console.log(`      served ${Date.now() - saved} ms after it was saved`);
}

/** A deploy without an account, by the project's own wrangler. @param {string} project @param {string} node @param {string} major */
function deployed(project, node, major) {
  const { status, stdout, stderr } = bobbin(project, node, ["deploy", "--dry-run"]);
  if (major === "20") {
    assert.equal(status, 2, "wrangler does not run here");
    assert.match(stderr, /wrangler needs Node 22/);
    return;
  }
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /env\.THREADS \(ThreadObject\)/);
  assert.match(stdout, /Nothing was deployed/);
}

const KEYS = { BOBBIN_API_KEYS: "key-of-the-journey=admin", BOBBIN_TOKEN_SECRET: "s".repeat(40), BOBBIN_ENCRYPTION_KEYS: `k1=${Buffer.alloc(32, 7).toString("base64")}` };

/** For production: keys, logs as JSON, and an end in order. @param {string} project @param {string} node */
async function served(project, node) {
  const refused = bobbin(project, node, ["serve", "--port", "0"]);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /BOBBIN_API_KEYS: .*\n.*BOBBIN_TOKEN_SECRET/);
  const server = new Dev(project, node, ["serve", "--port", "0", "--requests", "--drain", "20"], { ...KEYS, SECRET_OF_THE_MACHINE: "nobody's business" });
  await server.ready;
  const anonymous = await fetch(`${server.url}/api/agents`);
  assert.equal(anonymous.status, 401);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  const client = new Client(server.url, { key: "key-of-the-journey" });
  const thread = await client.thread("slow");
  // A request that is under way is let end; what follows a thread is cut, and its client comes again.
  const events = await fetch(`${server.url}/api/threads/${thread.id}/events`, { headers: { authorization: "Bearer key-of-the-journey" } });
  const asked = client.send("POST", `/threads/${thread.id}/messages?wait=true`, { role: "user", content: "count 15" });
  await until("the run has begun", async () => JSON.stringify((await client.send("GET", `/threads/${thread.id}`)).json).includes("running"));
  const began = Date.now();
  const ended = server.end("SIGTERM");
  assert.match(JSON.stringify((await asked).json), /14\D{1,4}15/);
  await assert.rejects(events.text());
  assert.equal(await ended, 0);
  assert.ok(Date.now() - began < 15_000, "it waits for that request, and for no stream");
  const lines = server.printed.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.filter(({ message }) => ["ready", "ending", "ended"].includes(message)).map(({ message }) => message), ["ready", "ending", "ended"]);
  assert.ok(lines.every(({ time, level }) => typeof time === "string" && ["info", "warn", "error"].includes(level)));
  assert.ok(lines.some(({ message, path, status }) => message === "request" && path === "/healthz" && status === 200));
}
