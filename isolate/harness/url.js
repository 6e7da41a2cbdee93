// The platform's URL parser, for isolate/web/url.js. Only texts cross: the sandbox never has an object of the platform.
// The engine `quickjs` calls this in the isolate, `v8` in the Worker of its run.

import { PIECE_UNITS } from "../wire.js";
import * as i from "./intrinsics.js";

const Urls = URL;

/**
 * Parses a URL, and then sets one of its parts, if one is named.
 *
 * @param {string} asked   JSON: the URL, its base or null, and the name and the value of the part
 * @returns {string} JSON: the parts by name, or null if the URL is invalid
 */
export function urlParts(asked) {
  // Parsing cannot be suspended.
  if (asked.length > PIECE_UNITS) return "null";
  try {
    const request = i.parse(asked);
    const url = new Urls(request[0], request[1] ?? undefined);
    const parts = partsOf(url);
    if (!i.hasOwn(parts, request[2])) return i.stringify(parts);
    /** @type {any} */ (url)[request[2]] = request[3];
    return i.stringify(partsOf(url));
  } catch {
    return "null";
  }
}

/** @param {URL} url @returns {object} without a prototype, whose `toJSON` would be called */
function partsOf({ href, origin, protocol, username, password, host, hostname, port, pathname, search, hash }) {
  return { __proto__: null, href, origin, protocol, username, password, host, hostname, port, pathname, search, hash };
}
