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
};
