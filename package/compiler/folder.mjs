// Reads a folder of definitions for the compiler: all files except hidden ones, and from node_modules only packages of
// agents. The compiler reports their mistakes.

import { readFileSync, readdirSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { Complaint } from "../lib/complaint.mjs";
import { shown } from "../lib/files.mjs";

/** The maximum depth. It stops at links that point to a folder above them. */
const DEEPEST = 24;

/** The maximum size of a file. No definition and no file of a skill is larger. */
const LONGEST_BYTES = 16 << 20;

const MODULES = "node_modules";

/**
 * The contents of a folder. Paths are relative to it, with `/`.
 *
 * @typedef {object} Read
 * @property {Record<string, string>} files
 * @property {Record<string, string>} unreadable   the reasons, by path
 * @property {string[]} folders
 * @property {string[]} packages                   the folders with the definitions of packages of agents
 */

/**
 * @param {string} agents
 * @returns {Read}
 */
export function readDefinitions(agents) {
  if (!statSync(agents, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Complaint(`The folder of definitions ${shown(agents)} does not exist.`);
  }
  /** @type {Read} */
  const read = { files: {}, unreadable: {}, folders: [], packages: [] };
  readFolder(agents, "", read, 0);
  const here = read.folders.filter((folder) => /^packages\/[^/]+$/.test(folder));
  const installed = dependencies(read.files["package.json"]).map((name) => posix.join(MODULES, name)).filter((folder) => isOfAgents(agents, folder));
  for (const folder of installed) readFolder(agents, folder, read, 0);
  for (const folder of [...here, ...installed]) {
    // Look for packages of agents among its dependencies, too. The application's package.json must list those.
    for (const name of dependencies(read.files[posix.join(folder, "package.json")])) {
      for (const modules of [posix.join(folder, MODULES), MODULES]) readFile(agents, posix.join(modules, name, "package.json"), read);
    }
    if (isOfAgents(agents, folder)) read.packages.push(read.folders.includes(`${folder}/agents/agents`) ? `${folder}/agents` : folder);
  }
  return read;
}

/** @param {string} agents @param {string} folder @param {Read} read @param {number} depth */
function readFolder(agents, folder, read, depth) {
  if (folder !== "") read.folders.push(folder);
  if (depth > DEEPEST) return;
  let names;
  try {
    names = readdirSync(join(agents, folder)).sort();
  } catch (error) {
    read.unreadable[folder] = `cannot be read: ${/** @type {Error} */ (error).message}`;
    return;
  }
  for (const name of names) {
    if (name.startsWith(".") || name === MODULES) continue;
    const path = posix.join(folder, name);
    if (statSync(join(agents, path), { throwIfNoEntry: false })?.isDirectory()) readFolder(agents, path, read, depth + 1);
    else readFile(agents, path, read, "cannot be read: it was removed, or it is a broken link");
  }
}

/** @param {string} agents @param {string} path @param {Read} read @param {string} [gone]  the message if the file does not exist */
function readFile(agents, path, read, gone) {
  try {
    const { size } = statSync(join(agents, path));
    if (size > LONGEST_BYTES) read.unreadable[path] = `cannot be read: ${size} bytes exceed the limit`;
    else read.files[path] = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(join(agents, path)));
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    if (error instanceof TypeError) read.unreadable[path] = "is not UTF-8";
    else if (code !== "ENOENT") read.unreadable[path] = `cannot be read: ${message}`;
    else if (gone !== undefined) read.unreadable[path] = gone;
  }
}

/** Returns whether a folder is a package of agents. @param {string} agents @param {string} folder */
function isOfAgents(agents, folder) {
  try {
    return parsed(readFileSync(join(agents, folder, "package.json"), "utf8"))["standardagent"] !== undefined;
  } catch {
    return false;
  }
}

/** Returns the names of a package.json's dependencies. @param {string | undefined} text */
const dependencies = (text) => Object.keys(parsed(parsed(text)["dependencies"]));

/**
 * Returns an object, which may be given as JSON, or an empty one if the value is not an object.
 * @param {unknown} value @returns {Record<string, unknown>}
 */
function parsed(value) {
  try {
    const object = typeof value === "string" ? JSON.parse(value) : value;
    return typeof object === "object" && object !== null ? object : {};
  } catch {
    return {};
  }
}
