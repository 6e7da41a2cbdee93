#!/usr/bin/env node
// Entry point of `bobbin COMMAND …`: finds the command in ../commands, parses its flags and runs it.

import { parseArgs } from "node:util";
import { COMMANDS } from "../commands/index.mjs";
import { Complaint, EXIT } from "../lib/complaint.mjs";
import { VERSION } from "../lib/version.mjs";

/** Options of every command. @satisfies {import("node:util").ParseArgsConfig["options"]} */
const COMMON = { help: { type: "boolean", short: "h", default: false } };

/** @param {string[]} args */
async function bobbin([name, ...args]) {
  if (name === undefined || name === "help" || name === "--help" || name === "-h") return console.log(overview());
  if (name === "--version" || name === "version") return console.log(VERSION);
  const load = COMMANDS[name];
  if (load === undefined) {
    throw new Complaint(`There is no command “${name}”. \`bobbin help\` lists them.`, EXIT.usage);
  }
  const { command } = await load.module();
  const { values, positionals } = read(name, args, command);
  if (values["help"]) return console.log(`bobbin ${command.usage}\n\n${load.summary}\n\n${command.help}`);
  await command.run(values, positionals);
}

/**
 * @param {string} name
 * @param {string[]} args
 * @param {import("../commands/index.mjs").Command} command
 */
function read(name, args, command) {
  try {
    return parseArgs({ args: command.rewrite?.(args) ?? args, strict: true, allowPositionals: true, options: { ...command.options, ...COMMON } });
  } catch (error) {
    const [reason] = /** @type {Error} */ (error).message.split(". ");
    throw new Complaint(`${reason}. \`bobbin ${name} --help\` lists the flags.`, EXIT.usage);
  }
}

function overview() {
  const names = Object.entries(COMMANDS);
  const width = Math.max(...names.map(([name]) => name.length));
  const lines = names.map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `bobbin COMMAND [flags]\n\n${lines.join("\n")}\n\n\`bobbin COMMAND --help\` shows the flags. Bobbin sends no telemetry.`;
}

// The reader closed the pipe (`bobbin threads | head`). That is not an error.
process.stdout.on("error", (error) => {
  if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EPIPE") throw error;
  process.exit();
});

try {
  await bobbin(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Complaint)) throw error;
  console.error(error.message);
  process.exitCode = error.exit;
}
