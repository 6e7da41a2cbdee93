// What runs a file of the deployment's in the sandbox: it makes `state` of what was handed over, and calls the file's
// default export. Evaluated inside, for every call; `host` and `facts` are names at module scope. It ends with one of the
// files in harness/.
import handler from "FILE";

const { freeze } = Object;
/** Calls that the handler did not wait for; they end before its result counts. */
const open = new Set();

const aside = (promise) => {
  open.add(promise);
  promise.then(() => open.delete(promise), () => {});
};

const asked = (methods, call) =>
  Object.fromEntries(methods.map((name) => [name, (...args) => call(name, ...args)]));

const ASKED = [
  "getMessages", "getMessage", "injectMessage", "queueMessage", "updateMessage", "deleteMessage", "getLogs",
  "loadModel", "loadPrompt", "loadAgent", "env", "envType", "setEnv", "notifyParent", "setStatus", "invokeTool",
  "scheduleEffect", "getScheduledEffects", "removeScheduledEffect", "getValue", "setValue", "terminate",
  "writeFile", "readFile", "statFile", "readdirFile", "unlinkFile", "mkdirFile", "rmdirFile", "moveFile", "renameFile",
  "getFileStats", "grepFiles", "findFiles", "getFileThumbnail",
];
const REMOTE = ["getMessages", "queueMessage", "injectMessage", "getValue", "setValue", "readFile", "terminate"];

const remote = (thread) => thread && freeze({ ...thread.facts, ...asked(REMOTE, thread.call) });

async function* chunks(next) {
  for (let chunk = await next(); chunk !== null; chunk = await next()) yield chunk;
}

/** A result of code that was never run. */
const unrun = (error) => ({ status: "link_error", error: { name: error.name, message: error.message }, logs: [], reports: [], durationMs: 0 });

/** The handle of code that this code runs. Waiting for it never rejects. */
function execution(source, options) {
  const reports = [];
  const told = options?.report;
  const report = (value) => {
    reports.push(value);
    return told(value);
  };
  const heard = typeof told === "function" ? { ...options, report } : options;
  // Rejected where what it is given cannot cross.
  const started = host.runCode(source, heard);
  const result = started.then((begun) => begun.result()).catch(unrun).then((ended) => {
    handle.running = false;
    return ended;
  });
  const handle = {
    running: true,
    reports,
    terminate: (reason) => void aside(started.then((begun) => begun.terminate(reason ?? "")).catch(() => {})),
    then: (...both) => result.then(...both),
    catch: (rejected) => result.catch(rejected),
    finally: (settled) => result.finally(settled),
  };
  return handle;
}

/** Scratch space of the run: what is set here is there for its other tools. */
const context = new Proxy(facts.context, {
  set(kept, key, value) {
    kept[key] = value;
    aside(host.call("setContext", String(key), value));
    return true;
  },
  deleteProperty(kept, key) {
    aside(host.call("setContext", String(key), null));
    return delete kept[key];
  },
});

const state = {
  threadId: facts.threadId,
  agentId: facts.agentId,
  userId: facts.userId,
  createdAt: facts.createdAt,
  terminated: facts.terminated,
  children: facts.children,
  arguments: facts.arguments,
  context,
  execution: facts.execution && {
    ...facts.execution,
    stop: () => aside(host.call("stop")),
    forceTurn: (side) => aside(host.call("forceTurn", side)),
  },
  ...asked(ASKED, host.call),
  queueTool: (name, args) => aside(host.call("queueTool", name, args)),
  emit: (event, data) => aside(host.call("emit", event, data)),
  getModelNames: () => [...facts.names.models],
  getPromptNames: () => [...facts.names.prompts],
  getAgentNames: () => [...facts.names.agents],
  getChildThread: async (reference) => remote(await host.call("getChildThread", reference)),
  getParentThread: async () => remote(await host.call("getParentThread")),
  readFileStream: async (path) => {
    const next = await host.call("readFileChunks", path);
    return next && chunks(next);
  },
  runCode: execution,
};

if (typeof handler !== "function") throw new TypeError(`the default export of ${"FILE"} must be a function`);
