// Reports of results: for people, as JSON, and as JUnit XML.

/** @typedef {import("./suite.mjs").Result} Result */

/** Formats a case's result in lines for people. @param {Result} result */
export function lines({ case: { name, file }, state, failures, ms, why, crash }) {
  const mark = { passed: "ok  ", failed: "FAIL", skipped: "skip" }[state];
  const head = `${mark}  ${name}  (${file}${state === "skipped" ? "" : `, ${Math.round(ms)} ms`})`;
  const points = crash === undefined ? [] : [`${crash.points} crash points${crash.findings.length === 0 ? ", all passed" : ""}`];
  const rest = [...(why === undefined ? [] : [why]), ...failures.map(said), ...points, ...(crash?.findings ?? []).map(({ what }) => what)];
  return [head, ...rest.map((line) => `      ${line}`)].join("\n");
}

/** @param {import("./play.mjs").Failure} failure */
export function said({ turn, about, what, soft }) {
  return `${soft ? "(not counted) " : ""}turn ${turn}${about === "" ? "" : ` (${about})`}: ${what}`;
}

/** @param {Result[]} results @param {"passed" | "failed" | "skipped"} state */
const count = (results, state) => results.filter((result) => result.state === state).length;

/** Returns the last line of the report. @param {Result[]} results @param {number} ms */
export function summary(results, ms) {
  const skipped = count(results, "skipped");
  return `${count(results, "passed")} passed, ${count(results, "failed")} failed${skipped === 0 ? "" : `, ${skipped} skipped`} in ${(ms / 1000).toFixed(1)} s`;
}

/** @param {Result[]} results @param {number} ms @param {string} version */
export function json(results, ms, version) {
  return {
    version,
    passed: count(results, "passed"),
    failed: count(results, "failed"),
    skipped: count(results, "skipped"),
    ms: Math.round(ms),
    cases: results.map(({ case: { name, file, agent }, state, failures, ms, cost, why, crash }) => ({
      name,
      file,
      agent,
      state,
      ms: Math.round(ms),
      costUsd: cost,
      failures,
      ...(why !== undefined && { why }),
      ...(crash !== undefined && { crash }),
    })),
  };
}

/** Returns JUnit XML. @param {Result[]} results @param {number} ms */
export function junit(results, ms) {
  const cases = results.map(({ case: { name, file }, state, failures, ms, why, crash }) => {
    const head = `    <testcase classname=${attribute(file)} name=${attribute(name)} time="${seconds(ms)}"`;
    if (state === "skipped") return `${head}>\n      <skipped message=${attribute(why ?? "")}/>\n    </testcase>`;
    if (state === "passed") return `${head}/>`;
    const wrong = [...failures.filter(({ soft }) => !soft).map(said), ...(crash?.findings ?? []).map(({ what }) => what)];
    return `${head}>\n      <failure message=${attribute(wrong[0] ?? "")}>${escaped(wrong.join("\n"))}</failure>\n    </testcase>`;
  });
  const totals = `tests="${results.length}" failures="${count(results, "failed")}" errors="0" skipped="${count(results, "skipped")}" time="${seconds(ms)}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${totals}>\n  <testsuite name="bobbin test" ${totals}>\n${cases.join("\n")}\n  </testsuite>\n</testsuites>\n`;
}

/** @param {number} ms */
const seconds = (ms) => (ms / 1000).toFixed(3);

/** @param {string} text */
const escaped = (text) =>
  text
    // Characters that XML cannot represent.
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");

/** @param {string} text */
const attribute = (text) => `"${escaped(text).replaceAll('"', "&quot;").replaceAll("\n", "&#10;")}"`;
