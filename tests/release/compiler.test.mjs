// The compiler of definitions is the same code natively and as wasm: for every folder it finds the same, byte for byte.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import * as esbuild from "esbuild";
import { compile } from "../../package/compiler/compile.mjs";
import { wasmCompiler } from "../../package/compiler/wasm.mjs";
import { natively } from "../../scripts/catalog.mjs";
import { buildCompiler } from "../../scripts/package.mjs";
import { setUp } from "../../scripts/setup.mjs";
import { checkout, scratch } from "../worker/support/server.mjs";

const home = scratch("compiler");
after(() => rmSync(home, { recursive: true, force: true }));

const FINE = {
  "models/fast.json": '{ "provider": "demo", "model": "demo" }',
  "prompts/helper.md": "---\ntoolDescription: d\nmodel: fast\nincludeChat: true\n---\nYou help.\n",
  "agents/helper.json": '{ "sideA": { "prompt": "helper" } }',
};

/** Folders with something wrong, or odd. @type {Record<string, Record<string, string | Buffer>>} */
const FOLDERS = {
  "nothing at all": { "README.md": "" },
  "no JSON": { ...FINE, "tools/x.json": '{ "description": }', "tools/y.json": "", "models/z.json": "{ 'a': 1 }", "tools/c.json": "{\n // c\n}" },
  "wrong fields": { ...FINE, "prompts/other.md": "---\ntoolDescription: d\nmodel: fastt\ntools: [lokup, { name: helper, blockin: true }]\nextra: 1\n---\nx {{env NOPE}}\n" },
  "not UTF-8": { ...FINE, "tools/x.json": Buffer.from([0x7b, 0xff, 0x7d]), "skills/a/SKILL.md": "---\ndescription: d\n---\nx", "skills/a/image.png": Buffer.from([0x89, 0x50, 0xff]) },
  "line ends and marks": { ...FINE, "prompts/helper.md": "\u{feff}---\r\ntoolDescription: d\r\nmodel: fast\r\n---\r\nYou help.\r\n" },
  "deep YAML": { ...FINE, "prompts/deep.md": `---\ntoolDescription: ${"[".repeat(300)}${"]".repeat(300)}\n---\nx` },
  "deep JSON": { ...FINE, "tools/deep.json": `{ "description": "d", "args": ${'{"a":'.repeat(200)}1${"}".repeat(200)} }` },
  "numbers": { ...FINE, "models/n.json": '{ "provider": "demo", "model": "demo", "inputPrice": 1e400, "outputPrice": 0.1, "capabilities": { "maxContextTokens": 18446744073709551616 } }' },
  "code with mistakes": { ...FINE, "tools/x.json": '{ "description": "d", "run": { "code": "x.ts" } }', "tools/x.ts": 'import fs from "node:fs"; export default () => fs;', "tools/y.ts": "export const = 1;" },
  "code": { ...FINE, "tools/x.json": '{ "description": "d", "run": { "code": "x.ts" } }', "tools/x.ts": 'export default () => new URL("http://a").href;', "api/a/[id].post.ts": "export default () => new Response()" },
  "strays": { ...FINE, "tools/x.txt": "", "stray.json": "{}", "providers/x.json": "{}", "packages/a/package.json": '{ "name": "A B", "standardagent": {} }', "skills/odd.md": "x" },
  "an effect that runs at times": { ...FINE, "effects/e.json": '{ "description": "d", "run": { "native": "remind" }, "cron": "61 * * * *" }' },
};

/** @type {(request: string) => Promise<string>} */
let wasm = async () => "";
before(async () => {
  wasm = wasmCompiler(await buildCompiler((await setUp()).compiler));
});

/** @param {string} folder */
async function same(folder) {
  const tools = { esbuild, web: join(checkout, "isolate/web") };
  /** @type {string[]} */
  const answers = [];
  const told = (/** @type {(request: string) => Promise<string>} */ compiler) => async (/** @type {string} */ request) => {
    const answer = await compiler(request);
    answers.push(answer);
    return answer;
  };
  const native = await compile(folder, { ...tools, compiler: told((request) => natively(request, join(home, "out"))) });
  const other = await compile(folder, { ...tools, compiler: told(wasm) });
  assert.equal(answers[0], answers[1]);
  assert.deepEqual(native, other);
  return native;
}

test("the sample application, and every recipe", async () => {
  const { catalog, findings } = await same(join(checkout, "agents"));
  assert.deepEqual(findings, []);
  assert.ok(JSON.parse(catalog ?? "").agents.helper);
  const recipes = join(checkout, "docs/recipes");
  for (const name of readdirSync(recipes)) assert.ok((await same(join(recipes, name))).catalog, name);
});

for (const [what, files] of Object.entries(FOLDERS)) {
  test(`a folder with ${what}`, async () => {
    const folder = join(home, what);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const { findings, catalog } = await same(folder);
    assert.ok(findings.length > 0 || catalog !== null);
  });
}

test("links in a circle, and one that leads nowhere", async () => {
  const folder = join(home, "links");
  mkdirSync(join(folder, "skills/a"), { recursive: true });
  writeFileSync(join(folder, "skills/a/SKILL.md"), "---\ndescription: d\n---\nx");
  symlinkSync("..", join(folder, "skills/a/up"), "dir");
  symlinkSync("nowhere", join(folder, "skills/a/lost.md"));
  const { findings } = await same(folder);
  assert.ok(findings.some(({ file }) => file.endsWith("lost.md")), JSON.stringify(findings));
});
