// Runs a file of the deployment in the sandbox: creates `state` from the host's functions and facts, and calls the
// file's default export. Evaluated in the sandbox for every call. `host` and `facts` are names at module scope. One of
// the files in harness/ is appended.
import handler from "FILE";

const { freeze } = Object;
/** Calls that the handler did not await. They finish before its result is returned. */
const open = new Set();

const aside = (promise) => {
  open.add(promise);
  promise.then(() => open.delete(promise), () => {});
};

const asked = (methods, call) =>
  Object.fromEntries(methods.map((name) => [name, (...args) => call(name, ...args)]));

const ASKED = [
  "getMessages", "getMessage", "injectMessage", "queueMessage", "updateMessage", "deleteMessage", "getLogs",
  "loadModel", "loadPrompt", "loadAgent", "envType", "setEnv", "notifyParent", "setStatus",
  "scheduleEffect", "getScheduledEffects", "removeScheduledEffect", "getValue", "setValue", "terminate",
  "writeFile", "readFile", "statFile", "readdirFile", "unlinkFile", "mkdirFile", "rmdirFile", "moveFile", "renameFile",
  "getFileStats", "grepFiles", "findFiles", "getFileThumbnail", "env", "instanceEnv",
];

const names = {
  getModelNames: () => [...facts.names.models],
  getPromptNames: () => [...facts.names.prompts],
  getAgentNames: () => [...facts.names.agents],
};

/** All threads share the deployment's definitions, so these are local calls. */
const HERE = ["loadModel", "loadPrompt", "loadAgent"];

/** A related thread: the members of `state`, executed there. Its run is not visible from here. */
const remote = (thread) => {
  if (!thread) return null;
  const { call } = thread;
  return freeze({
    ...thread.facts,
    context: freeze({}),
    execution: null,
    ...asked([...ASKED, "invokeTool", "readFileStream", "runCode"], call),
    ...asked(HERE, host.call),
    ...names,
    queueTool: (name, args) => aside(call("queueTool", name, args)),
    emit: (event, data) => aside(call("emit", event, data)),
    getChildThread: async (reference) => remote(await call("getChildThread", reference)),
    getParentThread: async () => remote(await call("getParentThread")),
  });
};

async function* chunks(next, signal) {
  for (;;) {
    signal?.throwIfAborted();
    const chunk = await (signal ? unlessAborted(next(), signal) : next());
    if (chunk === null) return;
    yield chunk;
  }
}

/** @param {Promise<any>} promise */
const unlessAborted = (promise, signal) =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });

/** Refuses unknown options: to ignore one would do something else than requested. */
function closed(options, member, known) {
  const odd = Object.keys(options ?? {}).find((name) => !known.includes(name));
  if (odd !== undefined) throw new TypeError(`${member}: \`${odd}\` is no option; there are ${known.join(", ")}`);
  return options ?? {};
}

/** The result of code that never ran. */
const unrun = (error) => ({ status: "link_error", error: { name: error.name, message: error.message }, logs: [], reports: [], durationMs: 0 });

/** The handle of code that this code runs. Awaiting it never rejects. */
function execution(source, options) {
  const reports = [];
  const told = options?.report;
  const report = (value) => {
    reports.push(value);
    return told(value);
  };
  const heard = typeof told === "function" ? { ...options, report } : options;
  // Rejects when an argument cannot be copied.
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

/**
 * Scratch space of the run. The run's other tools see its content as of each call and the end of the handler, and their
 * changes are here after the call.
 */
const context = { ...facts.context };
/** The thread's copy, as text, to detect changes inside a value. */
let kept = written(context);

function written(values) {
  return new Map(Object.entries(values).map(([key, value]) => [key, JSON.stringify(value) ?? "null"]));
}

async function keepContext() {
  const now = written(context);
  const changed = [...now].filter(([key, text]) => kept.get(key) !== text).map(([key]) => host.call("setContext", key, context[key]));
  const gone = [...kept.keys()].filter((key) => !now.has(key)).map((key) => host.call("removeContext", key));
  kept = now;
  await Promise.all([...changed, ...gone]);
}

async function invokeTool(name, args) {
  await keepContext();
  try {
    return await host.call("invokeTool", name, args);
  } finally {
    const found = await host.call("getContext");
    const text = written(found);
    // Keep local changes from meanwhile.
    for (const [key, value] of Object.entries(found)) if (kept.get(key) !== text.get(key)) context[key] = value;
    for (const key of kept.keys()) if (!text.has(key)) delete context[key];
    kept = text;
  }
}

/** The run as of the start of the call. Requests made here are visible at once. */
function running({ messageHistory, stoppedBy, ...seen }) {
  const run = {
    ...seen,
    ...(stoppedBy && { stoppedBy }),
    messageHistory: messageHistory ?? [],
    stop() {
      [run.stopped, run.stoppedBy] = [true, run.currentSide];
      aside(host.call("stop"));
    },
    forceTurn(side) {
      [run.stopped, run.stoppedBy] = [false, undefined];
      aside(host.call("forceTurn", side));
    },
  };
  if (typeof AbortController === "function") run.abortSignal = new AbortController().signal;
  return run;
}

/** Runs the handler, then saves the scratch space. */
async function called(...args) {
  try {
    return await handler(...args);
  } finally {
    await keepContext();
  }
}

const state = {
  threadId: facts.threadId,
  agentId: facts.agentId,
  userId: facts.userId,
  createdAt: facts.createdAt,
  terminated: facts.terminated,
  children: facts.children,
  arguments: facts.arguments,
  context,
  execution: facts.execution && running(facts.execution),
  ...asked(ASKED, host.call),
  invokeTool,
  queueTool: (name, args) => aside(host.call("queueTool", name, args)),
  emit: (event, data) => aside(host.call("emit", event, data)),
  trace: (kind, data) => aside(host.call("trace", kind, data)),
  progress: (text) => aside(host.call("progress", text)),
  ...names,
  getChildThread: async (reference) => remote(await host.call("getChildThread", reference)),
  getParentThread: async () => remote(await host.call("getParentThread")),
  readFileStream: async (path, options) => {
    const { signal } = closed(options, "readFileStream", ["signal"]);
    signal?.throwIfAborted();
    const next = await host.call("readFileChunks", path);
    return next && chunks(next, signal);
  },
  runCode: execution,
};

if (typeof handler !== "function") throw new TypeError(`the default export of ${"FILE"} must be a function`);
