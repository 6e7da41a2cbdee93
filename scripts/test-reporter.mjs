// The reporter of `npm test` for Node's test runner: writes each relevant event as a line of JSON, for scripts/suites.mjs.
// Unlike TAP it names the file of each test, so that a file that ran nothing is detected.

/**
 * @typedef {{ type: "pass" | "skip" | "fail", file: string, name: string, text?: string }} TestLine
 * @typedef {{ type: "output", file: string, text: string }} OutputLine   printed by a test
 * @typedef {{ type: "end", file: string, tests: number, ms: number }} EndLine        a file ended in order
 * @typedef {TestLine | OutputLine | EndLine} Line
 */

/**
 * @param {string} file  the file of the tests
 * @param {AsyncIterable<import("node:test/reporters").TestEvent>} events
 */
export async function* report(file, events) {
  /** Names of the tests around the current one, by the file in which `test` was called. @type {Map<string, string[]>} */
  const paths = new Map();
  for await (const { type, data } of events) {
    if (data === undefined) continue;
    const place = ("file" in data && data.file) || "";
    if (type === "test:start") {
      const path = paths.get(place) ?? [];
      paths.set(place, [...path.slice(0, data.nesting), data.name]);
    } else if (type === "test:stdout" || type === "test:stderr") {
      yield line({ type: "output", file, text: data.message });
    } else if (type === "test:summary" && place !== "") {
      yield line({ type: "end", file, tests: data.counts.tests, ms: data.duration_ms });
    } else if (type === "test:pass" && data.details.type !== "suite") {
      // A file without tests is reported as a test of its own name.
      if (data.name === place) continue;
      yield line({ type: data.skip || data.todo ? "skip" : "pass", file, name: name(data.nesting, data.name, place) });
    } else if (type === "test:fail") {
      const { error } = data.details;
      // The subtests have been reported already.
      if ("failureType" in error && error.failureType === "subtestsFailed") continue;
      const text = String(error.cause instanceof Error ? (error.cause.stack ?? error.cause) : (error.cause ?? error));
      const whole = data.name === place;
      yield line({ type: "fail", file, name: whole ? file : name(data.nesting, data.name, place), text });
    }
  }

  /** @param {number} nesting @param {string} last @param {string} place */
  function name(nesting, last, place) {
    return [...(paths.get(place) ?? []).slice(0, nesting), last].join(" › ");
  }
}

/** @param {Line} content */
const line = (content) => `${JSON.stringify(content)}\n`;
