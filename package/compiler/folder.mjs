// The files of a folder of definitions, as the compiler takes them: all of them but hidden ones, and of what npm has
// installed the packages of agents alone. What is wrong with one of them the compiler says.

import { readFileSync, readdirSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { Complaint } from "../lib/complaint.mjs";
import { shown } from "../lib/files.mjs";

/** Folders deeper than this are not looked into: a link may lead back to a folder above it. */
const DEEPEST = 24;

/** Files longer than this cannot be read: no definition is, nor is a file of a skill. */
const LONGEST_BYTES = 16 << 20;

const MODULES = "node_modules";

/**
 * What is in a folder; paths are from the folder, with `/`.
 *
 * @typedef {object} Read
 * @property {Record<string, string>} files
 * @property {Record<string, string>} unreadable   why, by path
 * @property {string[]} folders
 * @property {string[]} packages                   folders of the definitions of packages of agents
 */

/**
 * @param {string} agents
 * @returns {Read}
 */
export function readDefinitions(agents) {
  if (!statSync(agents, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Complaint(`There is no folder ${shown(agents)} with definitions.`);
  }
  /** @type {Read} */
  const read = { files: {}, unreadable: {}, folders: [], packages: [] };
  readFolder(agents, "", read, 0);
  const here = read.folders.filter((folder) => /^packages\/[^/]+$/.test(folder));
  const installed = dependencies(read.files["package.json"]).map((name) => posix.join(MODULES, name)).filter((folder) => isOfAgents(agents, folder));
  for (const folder of installed) readFolder(agents, folder, read, 0);
  for (const folder of [...here, ...installed]) {
    // Its own dependencies are looked at for packages of agents: the application's own package.json must name those.
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
    else readFile(agents, path, read, "cannot be read: it is gone, or a link that leads nowhere");
  }
}

/** @param {string} agents @param {string} path @param {Read} read @param {string} [gone]  what is said when it is not there */
function readFile(agents, path, read, gone) {
  try {
    const { size } = statSync(join(agents, path));
    if (size > LONGEST_BYTES) read.unreadable[path] = `cannot be read: ${size} bytes are too many`;
    else read.files[path] = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(join(agents, path)));
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    if (error instanceof TypeError) read.unreadable[path] = "is not UTF-8";
    else if (code !== "ENOENT") read.unreadable[path] = `cannot be read: ${message}`;
    else if (gone !== undefined) read.unreadable[path] = gone;
  }
}

/** Whether a folder is a package of agents. @param {string} agents @param {string} folder */
function isOfAgents(agents, folder) {
  try {
    return parsed(readFileSync(join(agents, folder, "package.json"), "utf8"))["standardagent"] !== undefined;
  } catch {
    return false;
  }
}

/** The names that a package.json depends on. @param {string | undefined} text */
const dependencies = (text) => Object.keys(parsed(parsed(text)["dependencies"]));

/** An object, from its JSON too; an empty one for everything else. @param {unknown} value @returns {Record<string, unknown>} */
function parsed(value) {
  try {
    const object = typeof value === "string" ? JSON.parse(value) : value;
    return typeof object === "object" && object !== null ? object : {};
  } catch {
    return {};
  }
}
