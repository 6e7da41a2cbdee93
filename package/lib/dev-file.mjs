// Where the development server of a project answers: `.bobbin/dev.json`, written while it runs. Commands find the server by it.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { alive } from "./files.mjs";

/**
 * @typedef {object} DevServer
 * @property {string} url
 * @property {number} pid        the process whose end is the server's
 * @property {string} version
 */

/** @param {string} project */
const fileOf = (project) => join(project, ".bobbin", "dev.json");

/**
 * Says where the server of this project answers, until this process ends or the returned function is called.
 *
 * @param {string} project                            its folder
 * @param {{ url: string, version: string }} server
 * @returns {() => void}
 */
export function noteDevServer(project, { url, version }) {
  const file = fileOf(project);
  mkdirSync(dirname(file), { recursive: true });
  // Renamed into place: a command may be reading it.
  const writing = `${file}.${process.pid}`;
  writeFileSync(writing, `${JSON.stringify({ url, pid: process.pid, version })}\n`);
  renameSync(writing, file);
  const forget = () => {
    process.off("exit", forget);
    // The next server may have written its own.
    if (read(file)?.pid === process.pid) rmSync(file, { force: true });
  };
  process.once("exit", forget);
  return forget;
}

/**
 * The server of the project that a folder is in: that of the nearest `.bobbin/dev.json` on the way up. One that was killed
 * leaves its file behind; then `runs` is false, and somebody else may have its port.
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
    // There is none, or it is nobody's.
    return undefined;
  }
}
