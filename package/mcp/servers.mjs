// Compares a server's pinned list with its current one.

import { Complaint } from "../lib/complaint.mjs";
import { readIfThere, shown } from "../lib/files.mjs";
import { changesOf, isSame } from "./changes.mjs";
import { addressOf, isObject, isWanted, readDefinition } from "./definitions.mjs";
import { HttpClient } from "./http-client.mjs";
import { listed } from "./server.mjs";
import { sifted, written } from "./tools.mjs";

/**
 * @typedef {import("./changes.mjs").Changes} Changes
 * @typedef {import("./tools.mjs").Refused} Refused
 *
 * @typedef {object} Looked
 * @property {string} name
 * @property {string} protocol
 * @property {{ name: string, version: string }} server
 * @property {"pinned" | "live"} list
 * @property {string} file             the path of the list
 * @property {number} tools            the number of allowed tools
 * @property {boolean} pinned          whether a pinned list exists
 * @property {string | null} was       the protocol of the pinned list
 * @property {Changes} changes
 * @property {Refused[]} refused
 * @property {boolean} repeats         whether the server sent a page of the list twice
 * @property {string} text             the new content of the file
 * @property {boolean} same            whether the pinned list is up to date
 */

/**
 * @param {{ agents: string, given: Record<string, string | undefined>, bearer?: string | undefined }} project
 * @param {string} name
 * @returns {Promise<Looked>}
 */
export async function look({ agents, given, bearer }, name) {
  const definition = readDefinition(agents, name);
  const address = addressOf(definition, given, bearer);
  const client = new HttpClient(definition, address);
  const { protocol, server, tools: all, repeats } = await listed(client);
  const found = sifted(all, address.values);
  const wanted = (/** @type {string} */ tool) => isWanted(definition, tool);
  const tools = found.tools.filter((tool) => wanted(tool.name));
  const refused = found.refused.filter(({ tool }) => wanted(tool));
  for (const tool of definition.allow ?? []) {
    if (definition.block.includes(tool) || tools.some((one) => one.name === tool)) continue;
    const reason = refused.find((one) => one.tool === tool)?.reason;
    throw client.complaint(reason === undefined ? `\`tools.allow\` names ${tool}, which the server does not have.` : `${tool} is rejected: ${reason}.`);
  }
  if (tools.length === 0) throw client.complaint(refused.length > 0 ? `all its tools are rejected: ${refused.map(({ tool, reason }) => `${tool}: ${reason}`).join("; ")}.` : "the definition allows none of its tools.");
  const before = pinnedOf(definition.pinned);
  const changes = changesOf(before?.tools ?? [], tools);
  const pinned = { protocol, server, tools };
  return {
    name,
    protocol,
    server,
    list: definition.list,
    file: shown(definition.pinned),
    tools: tools.length,
    pinned: before !== undefined,
    was: before?.protocol ?? null,
    changes,
    refused,
    repeats,
    text: written(pinned, before?.tools ?? []),
    same: before !== undefined && before.protocol === protocol && isSame(changes),
  };
}

/** @param {string} path @returns {import("./tools.mjs").Pinned | undefined} */
function pinnedOf(path) {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  try {
    const json = JSON.parse(text);
    if (isObject(json) && Array.isArray(json["tools"]) && json["tools"].every((tool) => isObject(tool) && typeof tool["name"] === "string")) return /** @type {any} */ (json);
  } catch {
    // Reported below.
  }
  throw new Complaint(`${shown(path)} is not a list of tools. Delete it, and run \`bobbin mcp pull\`.`);
}
