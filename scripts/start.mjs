// `npm start`: sets up, builds, and serves the Worker with the definitions of a folder.

import { existsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { noteDevServer } from "../package/lib/dev-file.mjs";
import { VERSION } from "../package/lib/version.mjs";
import { buildForStart } from "./build.mjs";
import { builtFolder } from "./compile.mjs";
import { inCheckout, readIfThere, shown } from "./files.mjs";
import { startLocalModel } from "./local-model.mjs";
import { Complaint, main, seconds } from "./run.mjs";
import { startServer } from "./server.mjs";
import { wranglerNode } from "./setup.mjs";
import { watchFolder } from "../package/server/watch.mjs";

const HELP = `npm start -- [flags]

  --port N            where to listen on 127.0.0.1 (default 8787; 0 picks a free port)
  --agents DIR        the folder with the definitions (default agents)
  --persist DIR       where threads are kept (default .bobbin/state)
  --crate DIR         a Rust crate of yours with native tools, and a wrangler.toml for its bindings (docs/native-tools.md)
  --files-bucket      large files live in a bucket on this machine, as in R2
  --worker-loader     code may ask for the engine v8 (docs/run-code.md), which nothing here can end
  --workerd           served by workerd itself, without wrangler: starts sooner, and has no key-value stores
  --inspector-port N  where Chrome's developer tools can look into the Worker (chrome://inspect)
  --local-model       answers come from a small real model on this machine
  --var NAME=VALUE    a variable of the Worker; may be given several times
  --help              this text

Secrets and keys belong in the file .dev.vars, one NAME=VALUE a line.`;

await main(async () => {
  const started = performance.now();
  const flags = readFlags(process.argv.slice(2));
  if (!flags) return console.log(HELP);
  if (!existsSync(flags.agents) || !statSync(flags.agents).isDirectory()) {
    throw new Complaint(`There is no folder ${flags.agents}: name the definitions with \`npm start -- --agents DIR\`.`);
  }
  /** @type {import("./server.mjs").Server | undefined} */
  let server;
  /** @type {import("./local-model.mjs").LocalModel | undefined} */
  let model;
  const stop = async () => {
    await server?.stop();
    await model?.stop();
    process.exit(0);
  };
  endWithNpm(stop);
  const { later, ...built } = await whatIsServed(flags.crate);
  /** Why the sandbox could not be built. Kept from now on, because the server may take longer to start than that. */
  const failed = later?.then(() => undefined, (error) => error);
  if (flags.localModel) model = await startLocalModel((line) => console.error(line));
  server = await startServer({
    ...flags,
    ...(model && { modelName: model.name }),
    vars: { ...flags.vars, ...(model && modelVars(model)) },
    ...built,
    isolate: later === undefined ? built.isolate : undefined,
    log: (line) => console.log(line),
    ended: (code) => {
      console.error(`The server ended (${code}).`);
      process.exit(1);
    },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, stop);
  watchAgents(flags.agents, server);
  const project = projectOf(flags.persist);
  if (project !== undefined) noteDevServer(project, { url: server.url, version: VERSION });
  for (const line of server.lacking()) console.log(`Warning: ${line}`);
  console.log(`Ready on ${server.url} (${seconds(started)} s)`);
  console.log(`Try it:  curl ${server.url}/healthz     Ctrl-C ends it; changes in ${shown(flags.agents)} are taken up.`);
  if (failed === undefined) return;
  console.log("The sandbox is still being compiled, once. Until it is there, code does not run, and the result of its call says so.");
  const error = await failed;
  if (error !== undefined) {
    console.error(`${error instanceof Complaint ? error.message : error.stack}\nThe sandbox could not be built: code does not run. \`npm start\` tries again.`);
    return;
  }
  await server.joinIsolate(built.isolate);
  console.log(`The sandbox is ready (${seconds(started)} s).`);
});

/**
 * A Node for wrangler, and both Workers, built if they are out of date; the sandbox perhaps `later`. With BOBBIN_BUILT=1 they count
 * as built. Tests, which start many servers, set it: checking the tool chains and all sources takes a fifth of a start.
 *
 * @param {string | undefined} crate
 * @returns {Promise<import("./build.mjs").Built & { later?: Promise<void> }>}
 */
async function whatIsServed(crate) {
  // What is served here is compiled for development.
  process.env.BOBBIN_BUILD ??= "quick";
  if (process.env.BOBBIN_BUILT === "1" && crate === undefined) {
    const [dist, isolate] = [builtFolder("dist"), builtFolder("dist-isolate")];
    if (![dist, isolate].every((folder) => existsSync(join(folder, "index.js")))) throw new Complaint("BOBBIN_BUILT is set, and nothing is built: unset it.");
    return { node: wranglerNode(), dist, isolate };
  }
  return buildForStart(crate);
}

/** @param {string[]} args */
function readFlags(args) {
  /** @type {ReturnType<typeof parse>} */
  let values;
  try {
    values = parse(args);
  } catch (error) {
    const [said] = /** @type {Error} */ (error).message.split(". ");
    throw new Complaint(`${said}. \`npm start -- --help\` lists the flags.`);
  }
  if (values.help) return undefined;
  const port = portOf("--port", values.port);
  /** @type {Record<string, string>} */
  const vars = {};
  for (const entry of values.var) {
    const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(entry) ?? [];
    if (name === undefined || value === undefined) throw new Complaint(`--var takes NAME=VALUE, not “${entry}”.`);
    vars[name] = value;
  }
  return {
    port,
    agents: resolve(inCheckout("."), values.agents),
    persist: resolve(inCheckout("."), values.persist),
    vars,
    crate: values.crate === undefined ? undefined : resolve(inCheckout("."), values.crate),
    filesBucket: values["files-bucket"],
    workerLoader: values["worker-loader"],
    bare: values.workerd,
    inspectorPort: values["inspector-port"] === undefined ? undefined : portOf("--inspector-port", values["inspector-port"]),
    localModel: values["local-model"],
  };
}

/** @param {string} flag @param {string} text */
function portOf(flag, text) {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535) throw new Complaint(`${flag} is a number up to 65535, not “${text}”.`);
  return port;
}

/**
 * The project whose threads are in this folder, its `.bobbin/state`. Threads in any other folder belong to no project, and no
 * command finds their server by itself. A project has one server at a time.
 *
 * @param {string} persist
 */
function projectOf(persist) {
  const folder = dirname(persist);
  return basename(folder) === ".bobbin" ? dirname(folder) : undefined;
}

/**
 * Variables that point the provider `openai` to the local model. Another provider's key must not reach it.
 *
 * @param {import("./local-model.mjs").LocalModel} model
 */
function modelVars(model) {
  return { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "local" };
}

/** @param {string[]} args */
function parse(args) {
  return parseArgs({
    args,
    strict: true,
    allowPositionals: false,
    options: {
      port: { type: "string", default: "8787" },
      agents: { type: "string", default: "agents" },
      persist: { type: "string", default: ".bobbin/state" },
      crate: { type: "string" },
      "files-bucket": { type: "boolean", default: false },
      "worker-loader": { type: "boolean", default: false },
      workerd: { type: "boolean", default: false },
      "inspector-port": { type: "string" },
      "local-model": { type: "boolean", default: false },
      var: { type: "string", multiple: true, default: [] },
      help: { type: "boolean", default: false },
    },
  }).values;
}

/**
 * Compiles the catalog again after changes. If it is invalid, the errors are printed and the old catalog stays.
 *
 * @param {string} agents
 * @param {import("./server.mjs").Server} server
 */
function watchAgents(agents, server) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  let running = Promise.resolve();
  const reload = async () => {
    try {
      await server.reloadCatalog();
      console.log("The definitions were compiled again.");
    } catch (error) {
      if (!(error instanceof Complaint)) throw error;
      console.error(`${error.message}\nThe definitions of before go on being served.`);
    }
  };
  watchFolder(agents, () => {
    // Editors save in several steps.
    clearTimeout(timer);
    timer = setTimeout(() => (running = running.then(reload)), 100);
  });
}

/**
 * Ends when npm is gone: a signal to npm reaches only the shell between npm and this process, and SIGKILL not even that.
 *
 * @param {() => void} stop
 */
function endWithNpm(stop) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const line = () => {
    // The shell's parent, if the system provides it.
    const stat = readIfThere(`/proc/${process.ppid}/stat`);
    return `${process.ppid} ${stat?.slice(stat.lastIndexOf(")")).split(" ")[2]}`;
  };
  const before = line();
  setInterval(() => line() !== before && stop(), 500).unref();
}
