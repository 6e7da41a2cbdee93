// Runs the program as people do: as a process, with its output and exit code.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { after } from "node:test";
import Ajv2020 from "ajv/dist/2020.js";
import { checkout } from "../../worker/support/server.mjs";
import { within } from "../../worker/support/poll.mjs";

export const PROGRAM = join(checkout, "package/bin/bobbin.mjs");

/** @typedef {{ code: number | null, out: string, err: string }} Ended */
/** @typedef {{ cwd?: string, env?: Record<string, string>, input?: string, node?: string, withinMs?: number }} Options */

/** Returns an environment without the tester's own settings. @param {Record<string, string>} [more] @returns {NodeJS.ProcessEnv} */
export function environment(more = {}) {
  const { BOBBIN_URL: _, BOBBIN_KEY: __, NO_COLOR: ___, FORCE_COLOR: ____, ...rest } = process.env;
  return { ...rest, ...more };
}

/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
// A process left by a failed test would keep the test file from exiting.
after(() => {
  for (const child of children) child.kill("SIGKILL");
});

/**
 * Kills the process when the file's tests have ended.
 * @template {import("node:child_process").ChildProcess} C @param {C} child @returns {C}
 */
export function endsWithFile(child) {
  children.add(child);
  child.once("close", () => children.delete(child));
  return child;
}

/** A running process of the program. */
export class Running {
  out = "";
  err = "";

  /** @param {string[]} args @param {Options} [options] */
  constructor(args, { cwd, env, node = process.execPath } = {}) {
    this.child = endsWithFile(spawn(node, [PROGRAM, ...args], { cwd, env: environment(env), stdio: ["pipe", "pipe", "pipe"] }));
    this.child.stdout.setEncoding("utf8").on("data", (text) => (this.out += text));
    this.child.stderr.setEncoding("utf8").on("data", (text) => (this.err += text));
    this.child.stdin.on("error", () => {});
    this.closed = once(this.child, "close");
  }

  /** @param {NodeJS.Signals} [signal] @param {number} [withinMs] @returns {Promise<Ended>} */
  async end(signal, withinMs = 30_000) {
    if (signal) this.child.kill(signal);
    const [code] = await within(`bobbin ends: ${this.err}`, withinMs, this.closed).catch((error) => {
      this.child.kill("SIGKILL");
      throw error;
    });
    return { code, out: this.out, err: this.err };
  }
}

/** Runs the program until it exits. @param {string[]} args @param {Options} [options] @returns {Promise<Ended>} */
export function bobbin(args, options = {}) {
  const running = new Running(args, options);
  running.child.stdin.end(options.input ?? "");
  return running.end(undefined, options.withinMs);
}

const ajv = new Ajv2020.default({ strict: false, allErrors: true });
ajv.addSchema(JSON.parse(readFileSync(join(checkout, "package/schemas/cli.json"), "utf8")), "cli");

/**
 * Parses the output of a command with --json and validates it against its schema.
 * @param {string} command @param {string} text @returns {any}
 */
export function asDescribed(command, text) {
  const validate = ajv.getSchema(`cli#/$defs/${command}`);
  assert.ok(validate, `there is a schema of ${command}`);
  const value = JSON.parse(text);
  assert.ok(validate(value), `${command}: ${ajv.errorsText(validate.errors)}\n${text.slice(0, 2000)}`);
  return value;
}

/** Characters that a terminal obeys. */
// eslint-disable-next-line no-control-regex
export const OBEYED = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;
