// Returns what a strict provider of chat completions would reject, one text per problem.

/** @typedef {Record<string, any>} Json */

/**
 * @param {Json} body  of POST …/chat/completions
 * @returns {string[]}
 */
export function problems(body) {
  const found = [
    ...(Array.isArray(body.messages) && body.messages.length > 0
      ? messageProblems(body.messages)
      : ["messages is not a list with at least one entry"]),
    ...(body.tools === undefined ? [] : toolProblems(body.tools)),
  ];
  if (typeof body.model !== "string" || body.model === "") found.push("model is missing");
  if (body.tools === undefined) {
    for (const name of ["tool_choice", "parallel_tool_calls"]) {
      if (body[name] !== undefined) found.push(`${name} without tools`);
    }
  }
  if (body.stream !== true) found.push("stream is not true");
  if (body.stream_options?.include_usage !== true) found.push("stream_options.include_usage is not true");
  return found;
}

/** @param {Json[]} messages @returns {string[]} */
function messageProblems(messages) {
  /** @type {string[]} */
  const found = [];
  const seen = new Set();
  /** Ids of calls without a result. The results must follow immediately. @type {string[]} */
  let open = [];
  messages.forEach((message, at) => {
    const where = `messages[${at}] (${message.role})`;
    if (message.role === "tool") {
      if (open.includes(message.tool_call_id)) open = open.filter((id) => id !== message.tool_call_id);
      else found.push(`${where}: result of ${message.tool_call_id}, which is no open call of the message before`);
      if (typeof message.content !== "string") found.push(`${where}: content is no text`);
      return;
    }
    if (open.length > 0) found.push(`${where}: the calls ${open.join(", ")} before it have no result`);
    open = [];
    if (message.role === "assistant") {
      const calls = message.tool_calls ?? [];
      if (message.tool_calls !== undefined && calls.length === 0) found.push(`${where}: empty tool_calls`);
      if (calls.length === 0 && !message.content) found.push(`${where}: neither content nor calls`);
      for (const call of calls) {
        if (typeof call.id !== "string" || call.id === "") found.push(`${where}: a call without id`);
        if (seen.has(call.id)) found.push(`${where}: the call id ${call.id} is repeated`);
        seen.add(call.id);
        if (call.type !== "function" || typeof call.function?.name !== "string") found.push(`${where}: no function call`);
        if (typeof call.function?.arguments !== "string") found.push(`${where}: arguments are no text`);
        open.push(call.id);
      }
    } else if (message.role === "user") {
      if (!message.content || message.content.length === 0) found.push(`${where}: no content`);
    } else if (message.role !== "system" && message.role !== "developer") {
      found.push(`${where}: unknown role`);
    }
  });
  if (open.length > 0) found.push(`the calls ${open.join(", ")} at the end have no result`);
  if (messages.at(-1)?.role === "assistant") found.push("the last message is the assistant's");
  if (messages.every(({ role }) => role === "system")) found.push("there are only system messages");
  return found;
}

/** @param {any} tools @returns {string[]} */
function toolProblems(tools) {
  if (!Array.isArray(tools) || tools.length === 0) return ["tools is no list with at least one entry"];
  /** @type {string[]} */
  const found = [];
  const names = new Set();
  for (const tool of tools) {
    const name = tool.function?.name;
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name ?? "")) found.push(`tool name ${name}`);
    if (names.has(name)) found.push(`the tool ${name} is listed twice`);
    names.add(name);
    const schema = tool.function?.parameters;
    if (schema?.type !== "object") found.push(`tool ${name}: parameters are no object schema`);
    // Schemas of MCP servers are passed on unchanged.
    else if (!name?.includes("__") || tool.function.strict === true) found.push(...schemaProblems(schema, `tool ${name}`, tool.function.strict === true));
  }
  return found;
}

/**
 * Every object must be closed. With `strict`, every property must also be required.
 *
 * @param {any} schema
 * @param {string} where
 * @param {boolean} strict
 * @returns {string[]}
 */
function schemaProblems(schema, where, strict) {
  if (typeof schema !== "object" || schema === null) return [];
  /** @type {string[]} */
  const found = [];
  const types = [schema.type].flat();
  if (types.includes("object") || schema.properties !== undefined) {
    if (schema.additionalProperties !== false) found.push(`${where}: additionalProperties is not false`);
    const required = new Set(schema.required ?? []);
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      if (strict && !required.has(name)) found.push(`${where}.${name}: strict, but not required`);
      found.push(...schemaProblems(inner, `${where}.${name}`, strict));
    }
  }
  for (const name of ["items", "not"]) found.push(...schemaProblems(schema[name], `${where}.${name}`, strict));
  for (const name of ["anyOf", "oneOf", "allOf", "prefixItems"]) {
    for (const inner of schema[name] ?? []) found.push(...schemaProblems(inner, `${where}.${name}`, strict));
  }
  return found;
}
