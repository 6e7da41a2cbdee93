// The inspector (docs/inspector.md): a page at /inspector, and at / of a development server. The page contains no data: it
// requests everything from the API, like any client.

import { html, policy, tag } from "bobbin-inspector";

const PLACES = /^[a-z]+:\/\/[^/?#]*\/(inspector\/?)?(?:[?#]|$)/;

const HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy": policy,
  "content-type": "text/html; charset=utf-8",
  "cross-origin-opener-policy": "same-origin",
  etag: `"${tag}"`,
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/**
 * The page, if the request is for it and the deployment has it.
 *
 * @param {Request} request
 * @param {{ BOBBIN_DEV?: string, BOBBIN_SURFACES?: string }} env
 */
export function inspected(request, env) {
  const place = PLACES.exec(request.url);
  if (place === null || !isOn(env)) return undefined;
  const atRoot = place[1] === undefined;
  // A request for JSON at the root gets the API's response.
  if (atRoot && (env.BOBBIN_DEV !== "1" || !/text\/html|\*\/\*/.test(request.headers.get("accept") ?? ""))) return undefined;
  if (request.method !== "GET" && request.method !== "HEAD") {
    if (atRoot) return undefined;
    const error = { code: "method_not_allowed", message: `${request.method} is not possible here.`, hint: "Allowed: GET." };
    return Response.json({ error }, { status: 405, headers: { allow: "GET" } });
  }
  if (request.headers.get("if-none-match") === HEADERS.etag) return new Response(null, { status: 304, headers: HEADERS });
  return new Response(request.method === "GET" ? html : null, { headers: HEADERS });
}

/**
 * Same rule as crates/protocols/src/request/surfaces.rs: the names in BOBBIN_SURFACES or, if it is unset, a development server.
 *
 * @param {{ BOBBIN_DEV?: string, BOBBIN_SURFACES?: string }} env
 */
function isOn({ BOBBIN_DEV, BOBBIN_SURFACES }) {
  if (BOBBIN_SURFACES === undefined) return BOBBIN_DEV === "1";
  return BOBBIN_SURFACES.split(",").some((name) => name.trim() === "inspector");
}
