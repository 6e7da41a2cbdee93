// The events and the outcome of a message, until its run ends or waits.

import { EXIT } from "./complaint.mjs";
import { Distinct } from "./follow.mjs";
import { oneLine } from "./output.mjs";

/**
 * @typedef {import("bobbin/client").Client} Client
 * @typedef {import("bobbin/client").RunOutcome} RunOutcome
 * @typedef {import("bobbin/client").Wait} Wait
 * @typedef {import("bobbin/client").Frame} Frame
 */

/** Returns the exit code for an outcome. @param {RunOutcome["outcome"]} outcome */
export function exitOf(outcome) {
  if (outcome === "failed") return EXIT.runFailed;
  if (outcome === "parked") return EXIT.runParked;
  return outcome === "stopped" ? EXIT.runStopped : 0;
}

/**
 * Yields the frames of a run, without duplicates, until the run ends. Continues after reconnects and while the run
 * waits.
 *
 * @param {Client} client
 * @param {string} threadId
 * @param {{ run: string } | { after: string }} of
 * @param {Pick<import("bobbin/client").FramesOptions, "signal" | "onConnection">} [options]
 */
export async function* framesOf(client, threadId, of, options = {}) {
  const distinct = new Distinct();
  for await (const { frame } of client.thread(threadId).frames({ ...options, of })) {
    const fresh = frame.type === "snapshot" ? undefined : distinct.take(frame);
    if (fresh !== undefined) yield fresh;
  }
}

/**
 * Waits until the run of a message ends or waits for a person.
 *
 * @param {Client} client
 * @param {string} threadId
 * @param {string} message
 * @returns {Promise<RunOutcome>}
 */
export async function outcomeOf(client, threadId, message) {
  for await (const frame of framesOf(client, threadId, { after: message })) {
    if (frame.type === "run_ended") return frame.run === null ? untaken(frame) : summary(client, threadId, frame.run);
    if (frame.type === "run_parked" && (frame.pauseKind !== "system" || (await asked(client, threadId)).length > 0)) {
      return summary(client, threadId, frame.run);
    }
    // A subagent waits for a person. Its parent waits, too.
    if (frame.type === "wait_opened" && frame.reference !== undefined) {
      const run = await parkedRun(client, threadId);
      if (run !== undefined) return summary(client, threadId, run);
    }
  }
  throw new Error("the feed of a run ended without its outcome");
}

/** Returns the open waits of a thread and its subagents that a person can decide. @param {Client} client @param {string} threadId */
export async function asked(client, threadId) {
  const { data } = await client.GET("/api/threads/{threadId}/waits", { params: { path: { threadId }, query: { descendants: true, limit: 500 } } });
  return (data?.waits ?? []).filter(({ allows }) => allows.length > 0).toReversed();
}

/** @param {Client} client @param {string} threadId */
async function parkedRun(client, threadId) {
  const { data } = await client.GET("/api/threads/{threadId}/runs", { params: { path: { threadId }, query: { limit: 1 } } });
  const [newest] = data?.runs ?? [];
  return newest?.status === "paused" ? newest.run : undefined;
}

/** @param {Client} client @param {string} threadId @param {string} run @returns {Promise<RunOutcome>} */
async function summary(client, threadId, run) {
  const { data } = await client.GET("/api/threads/{threadId}/runs/{run}", { params: { path: { threadId, run } } });
  if (data === undefined) throw new Error("a run without an outcome");
  return data;
}

/** Returns the outcome of a message that no run accepted. @param {Extract<Frame, { type: "run_ended" }>} frame @returns {RunOutcome} */
function untaken({ outcome, reason, error, usage }) {
  return {
    run: null, status: "error", outcome, reason, message: null, artefact: { message: null, files: [], result: null },
    token: null, waits: [], error, diagnostics: [], usage,
  };
}

/** Formats a wait in one line, with the commands that decide it. @param {Wait} wait */
export function askedLine({ id, kind, title, reason, allows }) {
  const said = `${oneLine(title)}${reason ? ` (${oneLine(reason)})` : ""}`;
  const ways = [
    allows.includes("approve") && `bobbin approve ${id}`,
    allows.includes("deny") && `bobbin deny ${id}`,
    allows.includes("answer") && `bobbin answer ${id} …`,
    allows.includes("retry") && `bobbin decide ${id} '{"decision":"retry"}'`,
    allows.includes("extend") && `bobbin decide ${id} '{"decision":"extend","add":{…}}'`,
  ].filter((way) => way !== false);
  return `${kind}: ${said}${ways.length > 0 ? `  —  ${ways.join(" · ")}` : ""}`;
}
