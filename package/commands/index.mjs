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
  init: { summary: "Makes a project.", module: () => import("./init.mjs") },
  dev: { summary: "Serves a project's definitions on this machine, and takes up changes.", module: () => import("./dev.mjs") },
  check: { summary: "Says what is wrong with the definitions.", module: () => import("./check.mjs") },
  build: { summary: "Compiles the definitions for wrangler.", module: () => import("./build.mjs") },
  deploy: { summary: "Deploys a project to Cloudflare.", module: () => import("./deploy.mjs") },
  secret: { summary: "Lists, sets and deletes the secrets of a deployment.", module: () => import("./secret.mjs") },
  serve: { summary: "Serves a project on this machine, for production.", module: () => import("./serve.mjs") },
  chat: { summary: "Talks with an agent, in the terminal.", module: () => import("./chat.mjs") },
  send: { summary: "Sends a message, and waits for the reply if you like.", module: () => import("./send.mjs") },
  threads: { summary: "Lists threads.", module: () => import("./threads.mjs") },
  show: { summary: "Shows a thread: its state, cost, waits, runs and subagents.", module: () => import("./show.mjs") },
  tail: { summary: "Follows what happens in a thread.", module: () => import("./tail.mjs") },
  approvals: { summary: "Lists what people are asked, in all threads.", module: () => import("./approvals.mjs") },
  approve: { summary: "Approves a call.", module: async () => ({ command: (await import("./decide.mjs")).approve }) },
  deny: { summary: "Denies a call.", module: async () => ({ command: (await import("./decide.mjs")).deny }) },
  answer: { summary: "Answers a question, or gives a client tool's result.", module: async () => ({ command: (await import("./decide.mjs")).answer }) },
  decide: { summary: "Makes any other decision.", module: () => import("./decide.mjs") },
  stop: { summary: "Stops the run of a thread.", module: async () => ({ command: (await import("./control.mjs")).stop }) },
  continue: { summary: "Has a thread go on.", module: async () => ({ command: (await import("./control.mjs")).continue }) },
  terminate: { summary: "Ends a thread for good.", module: async () => ({ command: (await import("./control.mjs")).terminate }) },
  delete: { summary: "Deletes a thread.", module: async () => ({ command: (await import("./control.mjs")).delete }) },
  export: { summary: "Writes a thread into a file.", module: () => import("./export.mjs") },
  import: { summary: "Makes a thread of such a file.", module: () => import("./import.mjs") },
  test: { summary: "Plays cases to your agents, without a network, and under crashes.", module: () => import("./test.mjs") },
  mcp: { summary: "Pins the tools of MCP servers, and says what changed.", module: () => import("./mcp.mjs") },
  doctor: { summary: "Says what is wrong here or with a server, and what to do.", module: () => import("./doctor.mjs") },
};
