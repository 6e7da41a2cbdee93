// Projects as `bobbin init` makes them: every template is right as it stands, and nothing of anybody's is replaced.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import * as esbuild from "esbuild";
import { compile } from "../../package/compiler/compile.mjs";
import { withBuckets } from "../../package/lib/files-bucket.mjs";
import { plain, readJsonc } from "../../package/lib/jsonc.mjs";
import { buildPage, pageOf } from "../../package/lib/page.mjs";
import { VERSION } from "../../package/lib/version.mjs";
import { natively } from "../../scripts/catalog.mjs";
import { checkout, scratch } from "../worker/support/server.mjs";

const PROGRAM = join(checkout, "package/bin/bobbin.mjs");
const home = scratch("projects");
after(() => rmSync(home, { recursive: true, force: true }));

/** @param {string[]} args @param {string} [cwd] */
function bobbin(args, cwd = home) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { cwd, encoding: "utf8" });
  return { status, stdout, stderr };
}

const TEMPLATES = readdirSync(join(checkout, "package/templates")).filter((name) => name !== "common" && name !== "rust");

for (const template of TEMPLATES) {
  test(`the template ${template} has nothing wrong with it`, async () => {
    const project = join(home, `My ${template}`);
    const { status, stdout, stderr } = bobbin(["init", `My ${template}`, "--template", template]);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /npm install\n {2}npm run dev/);
    const tools = { esbuild, web: join(checkout, "isolate/web"), compiler: (/** @type {string} */ request) => natively(request, join(project, "out")) };
    const compiled = await compile(join(project, "agents"), tools);
    assert.deepEqual(compiled.findings.map(({ file, severity }) => `${severity}: ${file}`), []);
    const { agents, code } = JSON.parse(compiled.catalog ?? "");
    assert.ok(Object.keys(agents).length > 0);
    const name = `my-${template}`;
    assert.equal(readJsonc(join(project, "wrangler.jsonc")).name, name);
    assert.equal(readJsonc(join(project, "wrangler.isolate.jsonc")).name, `${name}-isolate`);
    assert.deepEqual(readJsonc(join(project, "wrangler.jsonc")).services[0].service, `${name}-isolate`);
    const made = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
    assert.equal(made.dependencies.bobbin, `^${VERSION}`);
    // What the deploy button asks for is what the example of variables names.
    const example = readFileSync(join(project, ".dev.vars.example"), "utf8");
    for (const variable of Object.keys(made.cloudflare.bindings)) assert.match(example, new RegExp(`^${variable}=`, "m"));
    assert.match(readFileSync(join(project, ".gitignore"), "utf8"), /^\.dev\.vars$/m);
    for (const file of files(project)) assert.doesNotMatch(readFileSync(join(project, file), "utf8"), /__[A-Z]+__/, file);
    for (const file of files(join(project, "agents")).filter((path) => path.endsWith(".json") && path !== "tsconfig.json")) {
      const { $schema } = JSON.parse(readFileSync(join(project, "agents", file), "utf8"));
      if ($schema !== undefined) assert.ok(existsSync(join(checkout, "schemas", $schema.split("/").at(-1))), `${file}: ${$schema}`);
    }
    assert.ok(Object.keys(code ?? {}).every((path) => !path.startsWith("/")));
    assert.ok(files(join(project, "tests")).some((path) => /\.test\./.test(path)), "it shows how one tests");
    assert.equal(made.scripts.typecheck, "tsc --project agents");
    assert.ok("typescript" in made.devDependencies, "no program of a stranger's is asked for");
    assert.equal(typeErrors(project), "");
  });
}

/** What TypeScript says of a project's code. @param {string} project */
function typeErrors(project) {
  const installed = join(project, "node_modules/bobbin");
  mkdirSync(installed, { recursive: true });
  cpSync(join(checkout, "package/package.json"), join(installed, "package.json"));
  cpSync(join(checkout, "types"), join(installed, "types"), { recursive: true });
  const tsc = join(checkout, "node_modules/typescript/bin/tsc");
  return spawnSync(process.execPath, [tsc, "--project", "agents", "--pretty", "false"], { cwd: project, encoding: "utf8" }).stdout;
}

test("types come from the package itself, without a line in tsconfig.json", () => {
  const project = join(home, "My blank");
  const config = join(project, "agents/tsconfig.json");
  writeFileSync(config, readFileSync(config, "utf8").replace(', "../node_modules/bobbin/types/bobbin.d.ts"', ""));
  assert.equal(typeErrors(project), "");
  const tool = join(project, "agents/tools/add.ts");
  const right = readFileSync(tool, "utf8");
  writeFileSync(tool, right.replace("ToolHandler", "ToolHandle"));
  assert.match(typeErrors(project), /add\.ts.*has no exported member/);
  writeFileSync(tool, right);
});

test("a page is built by the program that package.json names, and a mistake in it is an error", () => {
  const project = join(home, "page");
  mkdirSync(join(project, "web"), { recursive: true });
  writeFileSync(join(project, "package.json"), "{}");
  buildPage(project);
  assert.equal(pageOf(project), undefined);
  writeFileSync(join(project, "package.json"), '{ "bobbin": { "page": "web/build.mjs" } }');
  writeFileSync(join(project, "web/build.mjs"), 'import { writeFileSync } from "node:fs";\nwriteFileSync("page.html", "<p>");\n');
  buildPage(project);
  assert.equal(readFileSync(join(project, "page.html"), "utf8"), "<p>");
  assert.equal(pageOf(project)?.folder, join(project, "web"));
  writeFileSync(join(project, "web/build.mjs"), "process.exit(3);\n");
  assert.throws(() => buildPage(project), /The page could not be built/);
});

test("the package depends on the versions of its libraries that the tests use", () => {
  const [packed, root] = ["package/package.json", "package.json"].map((path) => JSON.parse(readFileSync(join(checkout, path), "utf8")));
  assert.deepEqual(packed.dependencies, { ajv: root.devDependencies.ajv, yaml: root.devDependencies.yaml });
});

test("init replaces no file, and says which are in the way", () => {
  const project = join(home, "taken");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), "{}");
  writeFileSync(join(project, "notes.txt"), "mine");
  const refused = bobbin(["init", "."], project);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /already contains package\.json/);
  assert.deepEqual(readdirSync(project).sort(), ["notes.txt", "package.json"]);
  rmSync(join(project, "package.json"));
  assert.equal(bobbin(["init", "."], project).status, 0);
  assert.equal(readFileSync(join(project, "notes.txt"), "utf8"), "mine");
  assert.equal(bobbin(["init", "x", "--template", "nope"]).status, 2);
});

test("commands outside a project say what one is", () => {
  for (const name of ["dev", "check", "build"]) {
    const { status, stderr } = bobbin([name]);
    assert.equal(status, 2);
    assert.match(stderr, /There is no project here\. .*bobbin init/);
  }
});

test("wrangler.jsonc is read with its comments, and texts stay as they are", () => {
  const text = '// a\n{ "a": "// no, /* nor */ , ]", /* b\n */ "b": [1, 2,], "c": "\\"// x",\n}';
  assert.deepEqual(JSON.parse(plain(text)), { a: "// no, /* nor */ , ]", b: [1, 2], c: '"// x' });
  assert.equal(plain(text).split("\n").length, text.split("\n").length);
});

test("the bucket's binding takes the place of the template's comment, and otherwise the first line", () => {
  const buckets = [{ binding: "FILES", bucket_name: "x-files" }];
  const bound = (/** @type {string} */ text) => withBuckets(text, JSON.stringify(buckets)) ?? "";
  const template = readFileSync(join(checkout, "package/templates/common/wrangler.jsonc"), "utf8");
  const edited = bound(template);
  assert.deepEqual(JSON.parse(plain(edited)), { ...JSON.parse(plain(template)), r2_buckets: buckets });
  assert.deepEqual(edited.split("\n").filter((line) => !template.includes(line)).length, 1, "one line is changed");
  // The comment is behind the last property, which has no comma; another word for it; no comment.
  for (const text of ['{\n  "name": "x"\n  // "r2_buckets": []\n}', '\uFEFF// a {\n{ /* "r2_buckets": */ "name": "x" }', '{ "name": "x", }']) {
    assert.deepEqual(JSON.parse(plain(bound(text).replace("\uFEFF", ""))), { name: "x", r2_buckets: buckets }, text);
    assert.match(bound(text), /\{\n {2}\/\/ Large files of threads\.\n {2}"r2_buckets": /);
  }
  for (const text of ["", "[]", '{ "name": "x", "r2_buckets": [] }', '{ "name": ']) assert.equal(withBuckets(text, JSON.stringify(buckets)), undefined, text);
});

/** @param {string} folder */
const files = (folder) => /** @type {string[]} */ (readdirSync(folder, { recursive: true })).filter((path) => /\.[a-z]+$/.test(path));

test("Rust of one's own needs Bobbin's repository, and a project that has it says where that is", () => {
  const refused = bobbin(["init", "no-checkout", "--rust", "--checkout", "nowhere"]);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /nowhere is not Bobbin's repository.*--checkout DIR/);
  assert.equal(existsSync(join(home, "no-checkout")), false);
  const project = join(home, "own-rust");
  assert.equal(bobbin(["init", "own-rust", "--rust", "--checkout", checkout]).status, 0);
  assert.equal(JSON.parse(readFileSync(join(project, "package.json"), "utf8")).bobbin.checkout, relative(project, checkout));
  assert.match(readFileSync(join(project, "rust/Cargo.toml"), "utf8"), new RegExp(`bobbin = { path = "${relative(join(project, "rust"), checkout)}" }`));
  assert.equal(readJsonc(join(project, "wrangler.jsonc")).alias["bobbin/worker"], "./.bobbin/worker/index.js");
});
