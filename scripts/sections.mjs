// The sections of `npm test`: checks, builds and tests, with the dependencies of each and the files that it does not read.

import { basename, join } from "node:path";
import { build, compileWorkers } from "./build.mjs";
import { compileCatalog } from "./catalog.mjs";
import { buildClient } from "./client.mjs";
import { clippy, floors, formatted, portable, schemas, sizes, types, workerClippy } from "./checks.mjs";
import { compileTool, NATIVE, productOf } from "./compile.mjs";
import { inCheckout } from "./files.mjs";
import { cargoTest, compileTests, nodeTest, testFiles } from "./suites.mjs";

/** @typedef {import("./suites.mjs").Counts} Counts */
/** @typedef {(text: string) => void} Note */

/**
 * @typedef {object} Section
 * @property {string} group                                    its name for --only; `build` if only others need it
 * @property {string} title
 * @property {string[]} [needs]                                titles of the sections that must run before
 * @property {RegExp} [unread]                                 paths of the checkout that it does not read
 * @property {(note: Note) => Promise<Counts | void>} run      throws if it failed; without counts it is one check
 */

export const GROUPS = ["fmt", "clippy", "types", "core", "isolate", "worker", "package"];

const TOOL_BUILD = "compiling the core and the build tool";
const TESTS_BUILD = "compiling the tests of the core";
const WASM_BUILD = "compiling the Workers";
const WORKER_BUILD = "build of the Workers";
const CLIENT_BUILD = "build of the client";

/** Files that no program reads, and files that only JavaScript programs read. */
const PROSE = String.raw`[^/]*\.md$|LICENSE$|docs/decisions/|\.ci/|bench/`;
const OF_RUST = new RegExp(`^(${PROSE}|tests/(worker|isolate|scripts|cli|package|cases)/|scripts/[^/]*$|worker/[^/]*\\.js$|package(?!/compiler/(src/|Cargo))|inspector/)`);
const OF_TYPES = new RegExp(`^(${PROSE}|docs/|.*\\.(rs|toml|sql|txt)$)`);
const OF_ISOLATE = new RegExp(`^(${PROSE}|docs/|agents/|schemas/|worker/|tests/(engine|directory|growth|models|definitions|scripts|cli|package|cases)/|tests/worker/[^/]*$|(src|crates)/.*\\.rs$)`);
const OF_WORKER = new RegExp(`^(${PROSE}|docs/(?!approvals\\.html$)|tests/(engine|directory|growth|models|definitions|isolate|cli|package|cases)/)`);
/** The tests of the command line. They start servers with the code of the Worker's tests, and see the engine only through the API. */
const OF_CLI = new RegExp(`^(${PROSE}|docs/|tests/(engine|directory|growth|models|definitions|isolate|scripts|package|cases)/|tests/worker/[^/]*$|src/(?!api/).*\\.rs$|crates/(?!protocols/).*\\.rs$)`);
/** The tests of cases. They need an engine that stores and that recovers from a crash, which its own tests check. */
const OF_CASES = new RegExp(`^(${PROSE}|docs/|tests/(engine|directory|growth|models|definitions|isolate|scripts|cli|package)/|tests/worker/[^/]*$|src/engine/)`);
/** The tests of projects, and among them those that pack and install the packages: they belong to full runs. */
const OF_PROJECTS = new RegExp(`^(${PROSE}|docs/|agents/|tests/(?!package/)|worker/|isolate/(?!web/)|src/(api|directory|engine|memory|store)/)`);
const LONG = ["compiler.test.mjs", "deploy.test.mjs", "journey.test.mjs", "rust.test.mjs"];
/** The tests that compare the documents with everything else, and those of the documents in the package. */
const DOCUMENTS = ["documents.test.mjs", "docs.test.mjs"];
/**
 * Integration tests: pages, clients of other protocols, formats of models, kinds of tools, buckets, keys, connections, and
 * the scripts. They need only an engine that answers. Its own tests and the other tests of the Worker check how it runs,
 * what it stores and what a kill leaves.
 */
const AROUND = [
  ...["access", "ag-ui", "anthropic", "approvals-page", "bodies", "bridge", "chats", "code", "code-lives", "definitions", "execute-code"],
  ...["http-tools", "inspector", "inspector-threads", "mcp", "mcp-oauth", "mcp-server", "mcp-server-inputs", "mcp-server-oauth", "mcp-server-offered"],
  ...["model-keys", "open-webui", "openai", "openai-leaving", "packages", "r2", "refusals", "responses", "runtimes", "slow-readers"],
  ...["support", "workers-ai"],
].map((name) => `${name}.test.mjs`);
const OF_AROUND = new RegExp(`${OF_WORKER.source}|^src/(engine|memory|store)/`);
/** The tests of how processes begin and end. They work with any Worker: another engine makes no difference. */
const PROCESSES = ["endings.test.mjs", "state-folder.test.mjs"];
const OF_PROCESSES = new RegExp(`${OF_WORKER.source}|^(src|crates)/.*\\.rs$`);
/** The tests of an application's own crate. They compile the core again, and need only what such a crate uses. */
const OWN_CRATE = ["own-crate.test.mjs"];
const OF_OWN_CRATE = new RegExp(`${OF_WORKER.source}|^tests/worker/[^/]*$|^src/(api|directory|engine|memory|store)/|^crates/protocols/`);

/**
 * The tests in which a release build or wrangler can make a difference. Optimization can show anywhere, so there is one file
 * for each part of the product, plus those in which connections, buckets and processes end. The last ones pack the npm
 * packages and install them.
 */
const DEPLOYED = {
  "tests/worker": ["approvals", "code", "files", "kill", "mcp", "memories", "openai", "r2", "runtimes", "story", "streams", "subagents"],
  "tests/isolate": ["contract"],
  "tests/scripts": ["endings", "deploy"],
  "tests/package": ["compiler", "deploy", "journey"],
};

/**
 * The sections in their starting order, subject to their needs: first checks that find errors in seconds, then the two
 * compilations side by side, then the tests, with checks of the sources beside those that wait.
 *
 * @param {import("./setup.mjs").Tools} tools
 * @param {string | undefined} sample  the seed for the failures of the engine; undefined: all failures
 * @returns {Section[]}
 */
export function sections(tools, sample) {
  const { node } = tools;
  const worker = testFiles("tests/worker");
  const scripts = testFiles("tests/scripts");
  const projects = testFiles("tests/package");
  const documents = [...worker, ...projects].filter((file) => DOCUMENTS.includes(basename(file)));
  const processes = scripts.filter((file) => PROCESSES.includes(basename(file)));
  const ownCrate = scripts.filter((file) => OWN_CRATE.includes(basename(file)));
  const around = [
    ...worker.filter((file) => AROUND.includes(basename(file))),
    ...scripts.filter((file) => !processes.includes(file) && !ownCrate.includes(file)),
  ];
  const engine = sample === undefined ? {} : { BOBBIN_SAMPLE: sample };
  // A test server lives for seconds. V8 recompiles a wasm function only after 150 times the usual work (13 million).
  const product = { ...engine, BOBBIN_BUILT: "1", ...(sample !== undefined && { BOBBIN_V8_FLAGS: "--wasm-tiering-budget=2000000000" }) };
  const deployed = Object.entries(DEPLOYED).flatMap(([folder, names]) => names.map((name) => inCheckout(join(folder, `${name}.test.mjs`))));
  return [
    {
      group: "deployed",
      title: "tests of the Worker as it is deployed",
      needs: [WORKER_BUILD],
      run: (note) => nodeTest(node, deployed, { note, env: engine }),
    },
    { group: "build", title: WASM_BUILD, run: async () => compileWorkers(tools.compiler, await productOf()) },
    { group: "fmt", title: "rustfmt", unread: /(?<!\.rs|\.toml)$/, run: formatted },
    { group: "fmt", title: "no traces of a machine", run: portable },
    { group: "fmt", title: "floors of the core", run: floors },
    { group: "fmt", title: "lengths of files and functions", run: sizes },
    { group: "build", title: TOOL_BUILD, run: compileTool },
    { group: "build", title: TESTS_BUILD, needs: [TOOL_BUILD], run: async (note) => void (await compileTests(NATIVE, note)) },
    {
      group: "core",
      title: "cargo test",
      needs: [TESTS_BUILD],
      unread: OF_RUST,
      run: (note) => cargoTest(NATIVE, { note, env: engine, minutes: sample === undefined ? 70 : 30 }),
    },
    {
      group: "build",
      title: WORKER_BUILD,
      needs: [TOOL_BUILD, WASM_BUILD],
      run: async () => compileCatalog(inCheckout("agents"), join((await build()).dist, "catalog.json")),
    },
    {
      group: "worker",
      title: "tests of the Worker",
      needs: [WORKER_BUILD],
      unread: OF_WORKER,
      run: (note) => nodeTest(node, worker.filter((file) => !documents.includes(file) && !around.includes(file)), { note, env: product }),
    },
    {
      group: "worker",
      title: "tests of what stands around the engine",
      needs: [WORKER_BUILD],
      unread: OF_AROUND,
      run: (note) => nodeTest(node, around, { note, env: product }),
    },
    {
      group: "worker",
      title: "tests of the documents",
      needs: [WORKER_BUILD],
      run: (note) => nodeTest(node, documents, { note }),
    },
    { group: "core", title: "schemas of the definition files and of the API", needs: [TOOL_BUILD], unread: OF_RUST, run: schemas },
    {
      group: "worker",
      title: "tests of the processes of npm start",
      needs: [WORKER_BUILD],
      unread: OF_PROCESSES,
      run: (note) => nodeTest(node, processes, { note, env: product }),
    },
    { group: "clippy", title: "clippy: Worker", needs: [WASM_BUILD], unread: OF_RUST, run: (note) => workerClippy(tools.compiler, note) },
    {
      group: "worker",
      title: "tests of a crate of one's own",
      needs: [WORKER_BUILD],
      unread: OF_OWN_CRATE,
      run: (note) => nodeTest(node, ownCrate, { note, env: engine }),
    },
    { group: "build", title: CLIENT_BUILD, run: buildClient },
    { group: "types", title: "types of the scripts and tests", needs: [CLIENT_BUILD], unread: OF_TYPES, run: () => types("tsconfig.json") },
    {
      group: "package",
      title: "tests of the command line",
      needs: [WORKER_BUILD, CLIENT_BUILD],
      unread: OF_CLI,
      run: (note) => nodeTest(node, testFiles("tests/cli"), { note, env: product }),
    },
    {
      group: "package",
      title: "tests of cases of one's own agents",
      needs: [WORKER_BUILD, CLIENT_BUILD],
      unread: OF_CASES,
      run: (note) => nodeTest(node, [...testFiles("tests/cases"), ...testFiles("tests/agents")], { note, env: product }),
    },
    {
      group: "package",
      title: "tests of projects",
      needs: [TOOL_BUILD],
      unread: OF_PROJECTS,
      run: (note) => nodeTest(node, projects.filter((file) => !documents.includes(file) && (sample === undefined || !LONG.includes(basename(file)))), { note }),
    },
    { group: "types", title: "types of the shim", unread: OF_TYPES, run: () => types("worker/tsconfig.json") },
    { group: "types", title: "types of the inspector", unread: OF_TYPES, run: () => types("inspector/tsconfig.json") },
    { group: "types", title: "types of the isolate Worker", unread: OF_TYPES, run: () => types("isolate/tsconfig.json") },
    { group: "types", title: "types of what runs in its engine", unread: OF_TYPES, run: () => types("isolate/web/tsconfig.json") },
    { group: "clippy", title: "clippy: core, build tool", needs: [TESTS_BUILD], unread: OF_RUST, run: clippy },
    {
      group: "isolate",
      title: "tests of the isolate",
      needs: [WORKER_BUILD],
      unread: OF_ISOLATE,
      run: (note) => nodeTest(node, testFiles("tests/isolate"), { note, env: engine, atOnce: 3 }),
    },
  ];
}
