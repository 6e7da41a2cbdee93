// The differences between a server's tools and the pinned list. Every change is shown, because nothing else would
// reveal a change to a description.

import { isObject } from "./definitions.mjs";
import { ordered } from "./tools.mjs";

/**
 * @typedef {import("./tools.mjs").Tool} Tool
 * @typedef {{ path: string, before?: unknown, after?: unknown }} Change      `before` or `after` is absent if it was added or removed
 * @typedef {{ new: Tool[], gone: string[], changed: { tool: string, changes: Change[] }[] }} Changes
 */

/** @param {Tool[]} before @param {Tool[]} after @returns {Changes} */
export function changesOf(before, after) {
  const old = new Map(before.map((tool) => [tool.name, tool]));
  const now = new Set(after.map(({ name }) => name));
  return {
    new: after.filter(({ name }) => !old.has(name)),
    gone: before.flatMap(({ name }) => (now.has(name) ? [] : [name])),
    changed: after.flatMap((tool) => {
      const was = old.get(tool.name);
      const changes = was === undefined ? [] : differences(was, tool, "");
      return changes.length > 0 ? [{ tool: tool.name, changes }] : [];
    }),
  };
}

/** @param {any} before @param {any} after @param {string} path @returns {Change[]} */
function differences(before, after, path) {
  if (ordered(before) === ordered(after)) return [];
  if (!isObject(before) || !isObject(after)) return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differences(before[name], after[name], path === "" ? name : `${path}.${name}`));
}

/** Returns whether there are no changes. @param {Changes} changes */
export const isSame = (changes) => changes.new.length === 0 && changes.gone.length === 0 && changes.changed.length === 0;

/** Formats the changes for people. The text is not sanitized. @param {Changes} changes */
export function lines(changes) {
  const value = (/** @type {unknown} */ one) => (typeof one === "string" ? one : JSON.stringify(one, null, 2)).split("\n");
  const shown = (/** @type {string} */ sign, /** @type {unknown} */ one) => (one === undefined ? [] : value(one).map((line) => `    ${sign} ${line}`));
  return [
    ...changes.new.flatMap(({ name, title, description, inputSchema }) => [
      `+ ${name}${title === undefined ? "" : ` (${title})`}`,
      ...value(description).map((line) => `    ${line}`),
      `    takes: ${Object.keys(inputSchema["properties"] ?? {}).join(", ") || "nothing"}`,
    ]),
    ...changes.gone.map((name) => `- ${name}`),
    ...changes.changed.flatMap(({ tool, changes: all }) => [`~ ${tool}`, ...all.flatMap(({ path, before, after }) => [`  ${path}`, ...shown("-", before), ...shown("+", after)])]),
  ];
}
