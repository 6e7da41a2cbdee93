// What `bobbin deploy` asks of wrangler, in which order, and what it does with secrets. wrangler is a program of the test's.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { buildPackages } from "../../scripts/package.mjs";
import { readJsonc } from "../../package/lib/jsonc.mjs";
import { scratch } from "../worker/support/server.mjs";

/** Notes how it was called; answers from what the test has written beside it. */
const WRANGLER = `
const { appendFileSync, existsSync, readFileSync, statSync } = require("node:fs");
const { join } = require("node:path");
const args = process.argv.slice(2);
const at = (name) => join(__dirname, name);
const secrets = args.includes("--secrets-file") ? args[args.indexOf("--secrets-file") + 1] : undefined;
const noted = { args, ...(secrets && { secrets: JSON.parse(readFileSync(secrets, "utf8")), mode: statSync(secrets).mode & 0o777, path: secrets }) };
appendFileSync(at("calls.jsonl"), JSON.stringify(noted) + "\\n");
if (args[0] === "r2" && existsSync(at("refused"))) {
  process.stderr.write(readFileSync(at("refused"), "utf8"));
  process.exit(1);
}
if (args[0] === "secret" && args[1] === "list") {
  const { code, out, error } = JSON.parse(readFileSync(at("list.json"), "utf8"));
  process.stdout.write(out ?? "");
  process.stderr.write(error ?? "");
  process.exit(code);
}
if (process.env.WRANGLER_OUTPUT_FILE_PATH) {
  const line = { type: "deploy", targets: ["shop.example.com/*", readFileSync(at("address"), "utf8")] };
  appendFileSync(process.env.WRANGLER_OUTPUT_FILE_PATH, JSON.stringify({ type: "wrangler-session" }) + "\\n" + JSON.stringify(line) + "\\n");
}
`;

const NAMES = ["BOBBIN_API_KEYS", "BOBBIN_TOKEN_SECRET", "BOBBIN_SIGNING_SECRET", "BOBBIN_ENCRYPTION_KEYS"];

const home = scratch("deploy");
const project = join(home, "my-agent");
const wrangler = join(project, "node_modules/wrangler");
let program = "";
/** What a deployment that has come up is asked. @type {{ path: string | undefined, key: string | undefined, body: any }[]} */
const asked = [];
const deployment = http.createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  asked.push({ path: request.url, key: request.headers.authorization, body: JSON.parse(body) });
  // Its secrets are not everywhere yet.
  if (asked.length === 1) return void response.writeHead(401).end("{}");
  response.writeHead(200, { "content-type": "application/json" }).end('{ "token": "token-of-an-owner" }');
});

before(async () => {
  program = join((await buildPackages()).bobbin, "bin/bobbin.mjs");
  assert.equal((await bobbin(["init", project], home)).code, 0);
  mkdirSync(join(wrangler, "wrangler-dist"), { recursive: true });
  writeFileSync(join(wrangler, "package.json"), '{ "name": "wrangler", "version": "4.164.0", "engines": { "node": ">=20.0.0" } }');
  writeFileSync(join(wrangler, "wrangler-dist/cli.js"), WRANGLER);
  deployment.listen(0, "127.0.0.1");
  await once(deployment, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (deployment.address());
  writeFileSync(join(wrangler, "wrangler-dist/address"), `http://127.0.0.1:${port}`);
}, { timeout: 600_000 });
after(() => {
  deployment.close();
  deployment.closeAllConnections();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => rmSync(join(wrangler, "wrangler-dist/calls.jsonl"), { force: true }));

/** @param {string[]} args @param {string} [cwd] */
async function bobbin(args, cwd = project) {
  const child = spawn(process.execPath, [program, ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (err += text));
  const [code] = await once(child, "close");
  return { code, out, err };
}

/** @param {{ code: number, out?: string, error?: string }} answer */
const listed = (answer) => writeFileSync(join(wrangler, "wrangler-dist/list.json"), JSON.stringify(answer));

/** @returns {{ args: string[], secrets?: Record<string, string>, mode?: number, path?: string }[]} */
const calls = () => readFileSync(join(wrangler, "wrangler-dist/calls.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));

/** @param {string[]} args */
const config = (args) => args[args.indexOf("--config") + 1]?.split("/").at(-1);

test("the first deployment makes the secrets, deploys the isolate Worker first, and tells what to begin with", async () => {
  listed({ code: 1, error: "A request to the Cloudflare API failed. This Worker does not exist on your account. [code: 10007]" });
  const { code, out, err } = await bobbin(["deploy", "--", "--keep-vars"]);
  assert.equal(code, 0, err);
  const [isolate, list, worker, ...more] = calls();
  assert.deepEqual(more, []);
  assert.deepEqual([isolate, list, worker].map((call) => config(call?.args ?? [])), ["wrangler.isolate.jsonc", "wrangler.jsonc", "wrangler.jsonc"]);
  assert.ok(worker);
  assert.equal(isolate?.secrets, undefined, "the sandbox has none");
  assert.ok(worker?.args.includes("--keep-vars"));
  assert.deepEqual(Object.keys(worker.secrets ?? {}), NAMES);
  assert.equal(worker.mode, 0o600);
  assert.equal(existsSync(worker.path ?? ""), false, "the file is gone");
  assert.equal(Buffer.from((worker.secrets?.["BOBBIN_ENCRYPTION_KEYS"] ?? "").replace("k1=", ""), "base64").length, 32);
  const key = worker.secrets?.["BOBBIN_API_KEYS"]?.replace(/=admin$/, "") ?? "";
  assert.ok(key.length >= 32 && out.includes(key));
  for (const name of NAMES.slice(1)) assert.ok(!out.includes(worker.secrets?.[name] ?? ""), `${name} is nobody's to see`);
  assert.match(out, /my-agent is deployed: http:\/\/127\.0\.0\.1:\d+\n/);
  assert.match(out, /token-of-an-owner/);
  assert.deepEqual(asked.at(-1), { path: "/api/tokens", key: `Bearer ${key}`, body: { scope: "owner:me", ttl: 3600 } });
});

test("a later one leaves the secrets that are there, and makes those that are not", async () => {
  listed({ code: 0, out: JSON.stringify(NAMES.slice(0, 3).map((name) => ({ name, type: "secret_text" }))) });
  const { code, out } = await bobbin(["deploy"]);
  assert.equal(code, 0);
  assert.deepEqual(Object.keys(calls().at(-1)?.secrets ?? {}), ["BOBBIN_ENCRYPTION_KEYS"]);
  assert.doesNotMatch(out, /Administrator's key/);
  listed({ code: 0, out: JSON.stringify(NAMES.map((name) => ({ name }))) });
  assert.equal((await bobbin(["deploy"])).code, 0);
  assert.equal(calls().at(-1)?.secrets, undefined);
  assert.equal((await bobbin(["secret"])).out, `${NAMES.join("\n")}\n`);
});

test("where it is not known which secrets there are, none is made anew, and the Worker stays as it is", async () => {
  listed({ code: 1, error: "Authentication error [code: 10000]" });
  const { code, err } = await bobbin(["deploy"]);
  assert.equal(code, 1);
  assert.match(err, /Authentication error.*\nBobbin cannot list the Worker's secrets/);
  assert.deepEqual(calls().map(({ args }) => `${args[0]} ${config(args)}`), ["deploy wrangler.isolate.jsonc", "secret wrangler.jsonc"]);
});

test("definitions that are wrong are not deployed", async () => {
  const prompt = join(project, "agents/prompts/helper.md");
  const text = readFileSync(prompt, "utf8");
  writeFileSync(prompt, text.replace("model: main", "model: mian"));
  const { code, err } = await bobbin(["deploy"]);
  writeFileSync(prompt, text);
  assert.equal(code, 1);
  assert.match(err, /helper\.md:3:1: error in model/);
  assert.equal(existsSync(join(wrangler, "wrangler-dist/calls.jsonl")), false);
});

test("a bucket for large files is made and bound once, and where it cannot be made nothing is deployed", async () => {
  listed({ code: 0, out: JSON.stringify(NAMES.map((name) => ({ name }))) });
  const [path, refused] = [join(project, "wrangler.jsonc"), join(wrangler, "wrangler-dist/refused")];
  const before = readFileSync(path, "utf8");
  writeFileSync(refused, "Please enable R2 through the dashboard. [code: 10042]");
  const failed = await bobbin(["deploy", "--files-bucket"]);
  assert.equal(failed.code, 1);
  assert.match(failed.err, /enable R2.*\nThe bucket my-agent-files was not created/);
  assert.equal(calls().filter(({ args }) => config(args) === "wrangler.jsonc" && args[0] === "deploy").length, 0);
  assert.equal(readFileSync(path, "utf8"), before);
  // One that is there is as good.
  writeFileSync(refused, "The bucket you tried to create already exists, and you own it. [code: 10004]");
  assert.equal((await bobbin(["deploy", "--files-bucket"])).code, 0);
  rmSync(refused);
  const { r2_buckets: buckets, name } = readJsonc(path);
  assert.deepEqual([buckets, name], [[{ binding: "FILES", bucket_name: "my-agent-files" }], "my-agent"]);
  rmSync(join(wrangler, "wrangler-dist/calls.jsonl"));
  assert.equal((await bobbin(["deploy", "--files-bucket"])).code, 0);
  assert.equal(calls().some(({ args }) => args[0] === "r2"), false, "it is bound already");
});
