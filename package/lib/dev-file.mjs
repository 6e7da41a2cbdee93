// `.bobbin/dev.json` holds the address of a project's development server while it runs. Commands read it to find the
// server.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { alive } from "./files.mjs";

/**
 * @typedef {object} DevServer
 * @property {string} url
 * @property {number} pid        the server's process
 * @property {string} version
 */

/** @param {string} project */
const fileOf = (project) => join(project, ".bobbin", "dev.json");

/**
 * Writes the server's address. The file is removed when this process exits or the returned function is called.
 *
 * @param {string} project                            its folder
 * @param {{ url: string, version: string }} server
 * @returns {() => void}
 */
export function noteDevServer(project, { url, version }) {
  const file = fileOf(project);
  mkdirSync(dirname(file), { recursive: true });
  // Rename into place, because a command may be reading the file.
  const writing = `${file}.${process.pid}`;
  writeFileSync(writing, `${JSON.stringify({ url, pid: process.pid, version })}\n`);
  renameSync(writing, file);
  const forget = () => {
    process.off("exit", forget);
    // Another server may have replaced the file. Remove only our own.
    if (read(file)?.pid === process.pid) rmSync(file, { force: true });
  };
  process.once("exit", forget);
  return forget;
}

/**
 * Finds the development server from the nearest `.bobbin/dev.json` at or above a folder. A killed server leaves its
 * file behind. Then `runs` is false, and another process may use its port.
 *
 * @param {string} folder
 * @returns {(DevServer & { project: string, runs: boolean }) | undefined}
 */
export function findDevServer(folder) {
  for (let project = resolve(folder); ; project = dirname(project)) {
    const server = read(fileOf(project));
    if (server !== undefined) return { ...server, project, runs: alive(server.pid) };
    if (dirname(project) === project) return undefined;
  }
}

/** @param {string} file @returns {DevServer | undefined} */
function read(file) {
  try {
    const { url, pid, version } = JSON.parse(readFileSync(file, "utf8"));
    return typeof url === "string" && Number.isInteger(pid) ? { url, pid, version: String(version) } : undefined;
  } catch {
    // The file is missing or invalid.
    return undefined;
  }
}
