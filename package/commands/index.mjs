// The commands. Each module is loaded when its command runs.

/**
 * @typedef {object} Command
 * @property {string} usage     after `bobbin`: `send <thread> <text> [--wait]`
 * @property {string} help      the flags, one per line, and further notes
 * @property {import("node:util").ParseArgsConfig["options"]} options
 * @property {(args: string[]) => string[]} [rewrite]   gives a flag its default value where it has none
 * @property {(values: Record<string, any>, positionals: string[]) => Promise<void>} run   rejects with a Complaint
 */

/** @type {Record<string, { summary: string, module: () => Promise<{ command: Command }> }>} */
export const COMMANDS = {
  init: { summary: "Creates a project.", module: () => import("./init.mjs") },
  dev: { summary: "Serves a project on this machine, with its changes.", module: () => import("./dev.mjs") },
  check: { summary: "Reports errors in the definitions.", module: () => import("./check.mjs") },
  build: { summary: "Compiles the definitions for wrangler.", module: () => import("./build.mjs") },
  deploy: { summary: "Deploys a project to Cloudflare.", module: () => import("./deploy.mjs") },
  secret: { summary: "Lists, sets and deletes the secrets of a deployment.", module: () => import("./secret.mjs") },
  serve: { summary: "Serves a project on this machine in production.", module: () => import("./serve.mjs") },
  chat: { summary: "Chats with an agent in the terminal.", module: () => import("./chat.mjs") },
  send: { summary: "Sends a message, and with --wait prints the reply.", module: () => import("./send.mjs") },
  threads: { summary: "Lists threads.", module: () => import("./threads.mjs") },
  show: { summary: "Shows a thread: its state, cost, waits, runs and subagents.", module: () => import("./show.mjs") },
  tail: { summary: "Follows the events of a thread.", module: () => import("./tail.mjs") },
  approvals: { summary: "Lists the open approvals and questions of all threads.", module: () => import("./approvals.mjs") },
  approve: { summary: "Approves a call.", module: async () => ({ command: (await import("./decide.mjs")).approve }) },
  deny: { summary: "Denies a call.", module: async () => ({ command: (await import("./decide.mjs")).deny }) },
  answer: { summary: "Answers a question, or returns the result of a client's tool.", module: async () => ({ command: (await import("./decide.mjs")).answer }) },
  decide: { summary: "Sends any other decision.", module: () => import("./decide.mjs") },
  stop: { summary: "Stops the run of a thread.", module: async () => ({ command: (await import("./control.mjs")).stop }) },
  continue: { summary: "Continues a thread without a new message.", module: async () => ({ command: (await import("./control.mjs")).continue }) },
  terminate: { summary: "Ends a thread for good.", module: async () => ({ command: (await import("./control.mjs")).terminate }) },
  delete: { summary: "Deletes a thread.", module: async () => ({ command: (await import("./control.mjs")).delete }) },
  export: { summary: "Writes a thread to a file.", module: () => import("./export.mjs") },
  import: { summary: "Creates a thread from an exported file.", module: () => import("./import.mjs") },
  test: { summary: "Runs test cases of your agents, without a network and under crashes.", module: () => import("./test.mjs") },
  mcp: { summary: "Pins the tools of MCP servers, and shows changes.", module: () => import("./mcp.mjs") },
  doctor: { summary: "Finds problems of this machine or a server, with advice.", module: () => import("./doctor.mjs") },
};
