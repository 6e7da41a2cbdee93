// A server of 2026-07-28 alone, by the official package: plain tools, questions by form and by address, tasks.

import { createMcpHandler, fromJsonSchema, inputRequired, inputResponse, McpServer } from "@modelcontextprotocol/server";
import { isDetailedTaskV2 } from "@modelcontextprotocol/ext-tasks/core/v2";
import { z } from "zod";
import { program, serve } from "./serve.mjs";
import { args, FORM, PLAIN, text } from "./tools.mjs";

const TASKS = "io.modelcontextprotocol/tasks";

/** @typedef {import("./tools.mjs").Books} Books @typedef {import("./tools.mjs").Task} Task */

/** @param {Parameters<typeof serve>[1]} [options] */
export const modern = (options) =>
  serve((books) => {
    const handler = createMcpHandler(() => server(books), { legacy: "reject" });
    return async (request, response, body) => {
      const { method = "GET", headers, url = "/" } = request;
      const stopped = new AbortController();
      response.on("close", () => stopped.abort());
      const asked = new Request(`http://${headers.host}${url}`, {
        method,
        headers: /** @type {Record<string, string>} */ (headers),
        signal: stopped.signal,
        ...(method === "POST" && { body: new Uint8Array(body) }),
      });
      const answered = await handler.fetch(asked);
      response.writeHead(answered.status, Object.fromEntries(answered.headers));
      if (answered.body) for await (const chunk of answered.body) response.write(chunk);
      response.end();
    };
  }, options);

/** @param {Books} books */
function server(books) {
  const made = new McpServer({ name: "modern-peer", version: "1.0.0" }, { capabilities: { tools: {}, extensions: { [TASKS]: {} } } });
  /** @param {string} name @param {any} about @param {(args: any, ctx: any) => any} run */
  const tool = (name, { inputSchema, outputSchema, ...about }, run) =>
    made.registerTool(
      name,
      { ...about, inputSchema: fromJsonSchema(inputSchema), ...(outputSchema && { outputSchema: fromJsonSchema(outputSchema) }) },
      async (/** @type {any} */ given, /** @type {any} */ ctx) => {
        const { _meta: meta, inputResponses: answers } = ctx.mcpReq;
        books.note(name, given, { meta, answers, state: answers && ctx.mcpReq.requestState() });
        return run(given, ctx);
      },
    );
  for (const [name, { run, ...about }] of Object.entries(PLAIN)) tool(name, about, run);
  tool(
    "route",
    { description: "Takes a header of an argument's value.", inputSchema: args({ region: { type: "string", "x-mcp-header": "Region" }, note: { type: "string" } }, ["region"]) },
    ({ region }, ctx) => text(`${region} by ${ctx.http?.req?.headers.get("mcp-param-region")}`),
  );
  tool("progress", { description: "Tells how far it is.", inputSchema: args({}) }, async (_, ctx) => {
    const { progressToken } = ctx.mcpReq._meta ?? {};
    for (let progress = 1; progress <= 3; progress++) {
      if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    }
    return text("It is done.");
  });
  questions(tool);
  tasks(made, tool, books);
  return made;
}

/** @param {(name: string, about: any, run: (args: any, ctx: any) => any) => void} tool */
function questions(tool) {
  tool("ask", { description: "Asks a person by a form.", inputSchema: args({}) }, (_, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "who");
    if (answer.kind === "missing") {
      return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: "Who are you?", requestedSchema: /** @type {any} */ (FORM) }) }, requestState: "the first state" });
    }
    return text(answer.kind === "elicit" ? `${answer.action}: ${JSON.stringify(answer.content ?? null)}` : answer.kind);
  });
  tool("ask_twice", { description: "Asks two things, one after the other.", inputSchema: args({}) }, (_, ctx) => {
    const state = ctx.mcpReq.inputResponses && ctx.mcpReq.requestState();
    const answer = (/** @type {string} */ key) => /** @type {any} */ (ctx.mcpReq.inputResponses?.[key])?.content?.[key];
    const ask = (/** @type {string} */ key, /** @type {string} */ message, /** @type {string} */ next) =>
      inputRequired({ inputRequests: { [key]: inputRequired.elicit({ message, requestedSchema: args({ [key]: { type: "string" } }) }) }, requestState: next });
    if (state === undefined) return ask("first", "The first?", "{}");
    const had = JSON.parse(state);
    if (had.first === undefined) return ask("second", "The second?", JSON.stringify({ first: answer("first") }));
    return text(`${had.first}, then ${answer("second")}`);
  });
  tool("visit", { description: "Asks a person to go to an address.", inputSchema: args({}) }, (_, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, "page");
    if (answer.kind === "missing") return inputRequired({ inputRequests: { page: inputRequired.elicitUrl({ message: "Please confirm it there.", url: "https://example.com/confirm?id=1" }) } });
    return text(answer.kind === "elicit" ? answer.action : answer.kind);
  });
  tool("later", { description: "Wants to be asked once more, and asks nothing.", inputSchema: args({}) }, (_, ctx) => {
    const state = ctx.mcpReq.requestState();
    return state === undefined ? inputRequired({ requestState: "once more" }) : text(`again with: ${state}`);
  });
}

/** @param {McpServer} made @param {(name: string, about: any, run: (args: any, ctx: any) => any) => void} tool @param {Books} books */
function tasks(made, tool, books) {
  const begun = (/** @type {Task} */ task) => ({ resultType: "task", ...about(task) });
  const MS = { ms: { type: "integer" } };
  tool("job", { description: "Works for so long, as a task.", inputSchema: args(MS) }, ({ ms }) => {
    const task = books.task();
    setTimeout(() => settle(task, { status: "completed", result: text("The job is done.") }), ms);
    return begun(task);
  });
  tool("bad_job", { description: "A task that fails.", inputSchema: args(MS) }, ({ ms }) => {
    const task = books.task();
    setTimeout(() => settle(task, { status: "failed", error: { code: -32603, message: "The machine is broken." } }), ms);
    return begun(task);
  });
  tool("asking_job", { description: "A task that asks.", inputSchema: args(MS) }, ({ ms }) => {
    const task = books.task();
    const asks = { colour: { method: "elicitation/create", params: { mode: "form", message: "Which colour?", requestedSchema: args({ colour: { type: "string" } }) } } };
    setTimeout(() => settle(task, { status: "input_required", asks }), ms);
    return begun(task);
  });
  tool("endless_job", { description: "A task without an end.", inputSchema: args({}) }, () => begun(books.task()));
  const params = z.looseObject({ taskId: z.string() });
  /** @param {string} method @param {(task: Task, params: any) => any} answer */
  const on = (method, answer) =>
    made.server.setRequestHandler(method, { params }, (/** @type {any} */ given, /** @type {any} */ ctx) => {
      const task = books.tasks.get(given.taskId);
      if (task === undefined) throw Object.assign(new Error("There is no such task."), { code: -32602 });
      // The package takes answers out of the parameters of every method.
      return answer(task, { ...given, inputResponses: given.inputResponses ?? ctx.mcpReq.inputResponses });
    });
  on("tasks/get", (task) => {
    task.polls++;
    const told = about(task);
    if (!isDetailedTaskV2(told)) throw new Error(`no task as it is described: ${JSON.stringify(told)}`);
    return told;
  });
  on("tasks/update", (task, { inputResponses }) => {
    task.answers = inputResponses;
    const { colour } = inputResponses;
    if (colour !== undefined) settle(task, { status: "completed", asks: {}, result: text(`The answer is ${colour.action}: ${JSON.stringify(colour.content ?? null)}`) });
    return {};
  });
  on("tasks/cancel", (task) => {
    if (!["completed", "failed"].includes(task.status)) settle(task, { status: "cancelled" });
    return {};
  });
}

/** @param {Task} task @param {Partial<Task>} to */
function settle(task, to) {
  if (!["completed", "failed", "cancelled"].includes(task.status)) Object.assign(task, to, { updated: new Date().toISOString() });
}

/** @param {Task} task */
function about({ id, status, created, updated, ttlMs, pollMs, asks, result, error }) {
  const more = { working: {}, cancelled: {}, input_required: { inputRequests: asks }, completed: { result }, failed: { error } };
  return { taskId: id, status, createdAt: created, lastUpdatedAt: updated, ttlMs, pollIntervalMs: pollMs, ...more[status] };
}

await program(import.meta.url, modern);
