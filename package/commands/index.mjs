// The commands, each loaded when it is asked for.

/**
 * @typedef {object} Command
 * @property {string} usage     after `bobbin`: `send <thread> <text> [--wait]`
 * @property {string} help      the flags, a line each, and what else there is to know
 * @property {import("node:util").ParseArgsConfig["options"]} options
 * @property {(values: Record<string, any>, positionals: string[]) => Promise<void>} run   rejects with a Complaint
 */

/** @type {Record<string, { summary: string, module: () => Promise<{ command: Command }> }>} */
export const COMMANDS = {
  send: { summary: "Sends a message, and waits for the reply if you like.", module: () => import("./send.mjs") },
  threads: { summary: "Lists threads.", module: () => import("./threads.mjs") },
  show: { summary: "Shows a thread: its state, cost, waits, runs and subagents.", module: () => import("./show.mjs") },
  tail: { summary: "Follows what happens in a thread.", module: () => import("./tail.mjs") },
};
