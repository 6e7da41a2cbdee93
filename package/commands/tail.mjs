// `bobbin tail`: shows a thread's events as they happen.

import { exactly } from "../lib/arguments.mjs";
import { follow } from "../lib/follow.mjs";
import { dim, json, note, print } from "../lib/output.mjs";
import { askedLine } from "../lib/run.mjs";
import { online, TARGET_HELP, TARGET_OPTIONS } from "../lib/target.mjs";
import { Renderer } from "../lib/renderer.mjs";

/** @type {import("./index.mjs").Command} */
export const command = {
  usage: "tail <thread> [--from-start]",
  help: `  <thread>       its id, or key:NAME
  --from-start   begins with the first message
${TARGET_HELP}: one frame of docs/streams.md per line

Ctrl-C ends it. If the connection breaks or the server restarts, it waits and continues: no message is lost or repeated.`,
  options: { ...TARGET_OPTIONS, "from-start": { type: "boolean", default: false } },
  run: online(async ({ client }, values, positionals) => {
    const [thread = ""] = exactly(positionals, ["thread"]);
    const ended = new AbortController();
    process.once("SIGINT", () => ended.abort());
    process.once("SIGTERM", () => ended.abort());
    const renderer = new Renderer();
    const show = values["json"] ? (/** @type {import("bobbin/client").Frame} */ frame) => print(json(frame)) : shown(renderer);
    const options = { from: values["from-start"] ? /** @type {const} */ ("start") : /** @type {const} */ ("now"), signal: ended.signal, onConnection: connection() };
    for await (const { frame } of follow(client, thread, options)) show(frame);
    renderer.end();
  }),
};

/** @param {Renderer} renderer */
const shown = (renderer) => (/** @type {import("bobbin/client").Frame} */ frame) => {
  if (frame.type === "wait_opened") renderer.line(`? ${askedLine(frame.wait)}`);
  else if (frame.type === "wait_closed") renderer.line(dim(`? ${frame.id}: ${frame.decision ?? frame.state}`));
  else if (frame.type === "stopped" && frame.reason) renderer.line(dim(`(${frame.reason})`));
  else renderer.take(frame);
};

/** Reports once that the connection was lost, and once that it is back. */
function connection() {
  let lost = false;
  return (/** @type {boolean} */ open) => {
    if (open === !lost) return;
    lost = !open;
    note(dim(lost ? "(connection lost)" : "(reconnected)"));
  };
}
