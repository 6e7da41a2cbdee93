// Packages of npm's as people use them, bundled and run in the sandbox: what works is to go on working, and what cannot
// work says so in these words. docs/run-code.md lists the latter, with what to take instead.

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import * as esbuild from "esbuild";
import { bundleCode } from "../../package/compiler/code.mjs";
import { readDefinitions } from "../../package/compiler/folder.mjs";
import { checkout, scratch } from "../worker/support/server.mjs";
import { isolateServer } from "./support/isolate.mjs";

const server = isolateServer();
// In the checkout, whose packages these are.
mkdirSync(join(checkout, ".bobbin"), { recursive: true });
const home = scratch("packages", join(checkout, ".bobbin"));
after(() => rmSync(home, { recursive: true, force: true }));

/** What each comes to: a file's text, and its value. @type {Record<string, [source: string, value: unknown]>} */
const WORK = {
  "@sinclair/typebox": ['import { Type } from "@sinclair/typebox"; import { Value } from "@sinclair/typebox/value"; export default () => [Value.Check(Type.Object({ a: Type.Number() }), { a: 1 }), Value.Check(Type.String(), 1)];', [true, false]],
  axios: ['import axios from "axios"; export default async () => (await axios.get("http://a.test/x", { adapter: "fetch", params: { q: 1 } })).data;', { url: "http://a.test/x?q=1" }],
  cheerio: ['import { load } from "cheerio"; export default () => load("<p class=a>hi <b>you</b></p>")(".a").text();', "hi you"],
  "csv-parse": ['import { parse } from "csv-parse/browser/esm/sync"; export default () => parse("a,b\\n1,2", { columns: true });', [{ a: "1", b: "2" }]],
  "date-fns": ['import { addDays, formatISO } from "date-fns"; export default () => formatISO(addDays(new Date(2024, 1, 28), 2), { representation: "date" });', "2024-03-01"],
  dayjs: ['import dayjs from "dayjs"; export default () => dayjs("2024-02-29").add(1, "year").format("YYYY-MM-DD");', "2025-02-28"],
  "decimal.js": ['import Decimal from "decimal.js"; export default () => new Decimal("0.1").plus("0.2").toString();', "0.3"],
  "fast-xml-parser": ['import { XMLParser } from "fast-xml-parser"; export default () => new XMLParser().parse("<a><b>1</b></a>");', { a: { b: 1 } }],
  immer: ['import { produce } from "immer"; export default () => produce({ a: [1] }, (draft) => { draft.a.push(2); });', { a: [1, 2] }],
  "jsonpath-plus": ['import { JSONPath } from "jsonpath-plus"; export default () => JSONPath({ path: "$..a", json: { a: 1, b: { a: 2 } } });', [1, 2]],
  ky: ['import ky from "ky"; export default () => ky.get("http://a.test/x", { timeout: 5000, retry: 0 }).json();', { url: "http://a.test/x" }],
  lodash: ['import _ from "lodash"; export default () => _.groupBy([1, 2, 3], (n) => (n % 2 ? "odd" : "even"));', { odd: [1, 3], even: [2] }],
  "lodash-es": ['import { chunk, debounce } from "lodash-es"; export default () => new Promise((resolve) => debounce(() => resolve(chunk([1, 2, 3], 2)), 5)());', [[1, 2], [3]]],
  marked: ['import { marked } from "marked"; export default () => marked("# hi *you*");', "<h1>hi <em>you</em></h1>\n"],
  mustache: ['import mustache from "mustache"; export default () => mustache.render("{{#l}}<{{.}}>{{/l}}", { l: [1, 2] });', "<1><2>"],
  nanoid: ['import { nanoid } from "nanoid"; export default () => /^[\\w-]{21}$/.test(nanoid());', true],
  "node-html-parser": ['import { parse } from "node-html-parser"; export default () => parse("<ul><li>a</li><li>b</li></ul>").querySelectorAll("li").map((li) => li.text);', ["a", "b"]],
  openai: ['import OpenAI from "openai"; export default async () => (await new OpenAI({ apiKey: "k", baseURL: "http://a.test/v1", maxRetries: 0, dangerouslyAllowBrowser: true }).chat.completions.create({ model: "m", messages: [] })).url;', "http://a.test/v1/chat/completions"],
  "openai-7": ['import OpenAI from "openai-7"; export default async () => (await new OpenAI({ apiKey: "k", baseURL: "http://a.test/v1", maxRetries: 0, dangerouslyAllowBrowser: true }).chat.completions.create({ model: "m", messages: [] })).url;', "http://a.test/v1/chat/completions"],
  "p-limit": ['import pLimit from "p-limit"; export default async () => { const limit = pLimit(1); return Promise.all([limit(() => 1), limit(async () => 2)]); };', [1, 2]],
  papaparse: ['import Papa from "papaparse"; export default () => Papa.parse("a;b\\n1;2", { header: true }).data;', [{ a: "1", b: "2" }]],
  qs: ['import qs from "qs"; export default () => [qs.parse("a[b][]=1&a[b][]=2"), qs.stringify({ a: { b: "c d" } })];', [{ a: { b: ["1", "2"] } }, "a%5Bb%5D=c%20d"]],
  rxjs: ['import { firstValueFrom, interval, map, take, toArray } from "rxjs"; export default () => firstValueFrom(interval(5).pipe(take(3), map((n) => n * 2), toArray()));', [0, 2, 4]],
  semver: ['import semver from "semver"; export default () => [semver.satisfies("1.2.3", "^1.0.0"), semver.inc("1.2.3", "minor")];', [true, "1.3.0"]],
  slugify: ['import slugify from "slugify"; export default () => slugify("Über uns & mehr", { lower: true });', "uber-uns-and-mehr"],
  superjson: ['import superjson from "superjson"; export default () => superjson.parse(superjson.stringify({ at: new Date(5), set: new Set([1]) }));', { at: new Date(5), set: new Set([1]) }],
  ulid: ['import { ulid } from "ulid"; export default () => /^[0-9A-Z]{26}$/.test(ulid());', true],
  uuid: ['import { v4, v5, validate } from "uuid"; export default () => [validate(v4()), v5("a.test", v5.DNS)];', [true, "7600034a-3201-5b62-8e04-371b8013e2fa"]],
  valibot: ['import * as v from "valibot"; export default () => v.safeParse(v.object({ a: v.pipe(v.string(), v.email()) }), { a: "x" }).success;', false],
  yaml: ['import { parse, stringify } from "yaml"; export default () => [parse("a: [1, x]"), stringify({ b: true })];', [{ a: [1, "x"] }, "b: true\n"]],
  zod: ['import { z } from "zod"; export default () => z.object({ a: z.coerce.number() }).parse({ a: "5" });', { a: 5 }],
  "zod/mini": ['import * as z from "zod/mini"; export default () => z.string().safeParse(1).success;', false],
};

/** What cannot work, and what is said of it. @type {Record<string, [source: string, error: RegExp]>} */
const FAIL = {
  ajv: ['import { Ajv } from "ajv"; export default () => new Ajv().compile({ type: "string" })("x");', /new Function\(\) is not available here: code cannot be made of text/],
  "lodash.template": ['import template from "lodash/template"; export default () => template("<%= a %>")({ a: 1 });', /new Function\(\) is not available here|Function/],
  handlebars: ['import Handlebars from "handlebars"; export default () => Handlebars.compile("{{a}}")({ a: 1 });', /new Function\(\) is not available here|Function/],
  "typebox compiler": ['import { Type } from "@sinclair/typebox"; import { TypeCompiler } from "@sinclair/typebox/compiler"; export default () => TypeCompiler.Compile(Type.String()).Check("x");', /new Function\(\) is not available here/],
  "csv-parse/sync": ['import { parse } from "csv-parse/sync"; export default () => parse("a,b");', /Buffer is not defined/],
  luxon: ['import { DateTime } from "luxon"; export default () => DateTime.fromISO("2024-02-29").toISODate();', /Intl/],
  "dayjs/timezone": ['import dayjs from "dayjs"; import utc from "dayjs/plugin/utc"; import timezone from "dayjs/plugin/timezone"; dayjs.extend(utc); dayjs.extend(timezone); export default () => dayjs.tz("2024-01-01", "Europe/Rome").format();', /Intl/],
  // QuickJS (quickjs-wasi 3.7.0) applies the rules for a class of `v` to the whole expression. So jsonpath-plus stays at 10: 11 has such ones.
  "a flag v with `-` outside a class": ['export default () => new RegExp("a-b", "v").test("a-b");', /invalid character in class in regular expression/],
  turndown: ['import Turndown from "turndown"; export default () => new Turndown().turndown("<b>x</b>");', /document|DOM|window/],
};

/** @param {string} name */
const fileOf = (name) => `tools/${name.replace(/\W/g, "_")}.js`;

/** @type {Record<string, import("../../package/compiler/code.mjs").Source>} */
let bundles = {};
before(async () => {
  const folder = join(home, "all");
  for (const [name, [source]] of Object.entries({ ...WORK, ...FAIL })) {
    mkdirSync(dirname(join(folder, fileOf(name))), { recursive: true });
    writeFileSync(join(folder, fileOf(name)), source);
  }
  ({ bundles } = await bundleCode(folder, readDefinitions(folder), { esbuild, web: join(checkout, "isolate/web") }));
});

/** @param {string} name */
async function run(name) {
  /** @type {Record<string, string>} */
  const modules = {};
  const take = (/** @type {string} */ file) => {
    if (modules[`./${file}`] !== undefined) return;
    modules[`./${file}`] = bundles[file]?.source ?? "";
    bundles[file]?.uses.forEach(take);
  };
  take(fileOf(name));
  const host = {
    // Some leave a timer of minutes behind, which is not to keep the test from ending.
    sleep: (/** @type {number} */ ms) => sleep(ms, undefined, { ref: false }),
    fetch: async (/** @type {string} */ url) => ({ status: 200, headers: [["content-type", "application/json"]], body: new TextEncoder().encode(JSON.stringify({ url })) }),
    abort: async () => {},
  };
  const harness = `import handler from ${JSON.stringify(`./${fileOf(name)}`)}; export default () => handler();`;
  return server.run(harness, { modules, globals: { host, facts: { entropy: crypto.getRandomValues(new Uint8Array(32)) } } });
}

for (const [name, [, expected]] of Object.entries(WORK)) {
  test(`${name} works`, async () => {
    const { status, error, value } = await run(name);
    assert.equal(status, "success", JSON.stringify(error));
    assert.deepEqual(value, expected);
  });
}

for (const [name, [, expected]] of Object.entries(FAIL)) {
  test(`${name} cannot work, and its error says why`, async () => {
    const { status, error } = await run(name);
    assert.equal(status, "error");
    assert.match(`${error.name}: ${error.message}`, expected);
  });
}
