// The server that a command talks to, and the key that it uses.

import { env } from "node:process";
import { BobbinError, createClient } from "bobbin/client";
import { Complaint, EXIT } from "./complaint.mjs";
import { findDevServer } from "./dev-file.mjs";
import { harmless, note } from "./output.mjs";

/** Flags of every command that talks to a server. @satisfies {import("node:util").ParseArgsConfig["options"]} */
export const TARGET_OPTIONS = {
  url: { type: "string" },
  "key-env": { type: "string" },
  json: { type: "boolean", default: false },
};

/** The default address of a development server. */
const USUAL = "http://127.0.0.1:8787";

export const TARGET_HELP = `  --url URL            the server (default: BOBBIN_URL, then this project's development server, then ${USUAL})
  --key-env NAME       the variable that contains the key (default BOBBIN_KEY)
  --json               prints the result as JSON`;

/** The source of that address, for messages. */
const DEFAULT = "the default address";
/** How long to wait for the server's first response. */
const PATIENCE_MS = 10_000;

/**
 * @typedef {object} Target
 * @property {string} url
 * @property {boolean} keyed                                whether requests have a key
 * @property {string} from                                  the source of the address
 * @property {import("bobbin/client").Client} client
 * @property {{ version: string, agents: number, warnings?: number | null }} health
 */

/**
 * Wraps the body of a command that talks to a server, and turns the server's errors into readable messages.
 *
 * @param {(target: Target, values: Record<string, any>, positionals: string[]) => Promise<void>} body
 * @returns {import("../commands/index.mjs").Command["run"]}
 */
export function online(body) {
  return async (values, positionals) => {
    const target = await reach(values);
    try {
      await body(target, values, positionals);
    } catch (error) {
      throw error instanceof BobbinError ? refused(error, target) : error;
    }
  };
}

/** @param {Record<string, any>} values @returns {Promise<Target>} */
export async function reach(values) {
  const { url, from } = address(values);
  const key = keyOf(values);
  if (key !== undefined && url.startsWith("http:") && !isLocal(url)) {
    note(`The key is sent to ${url} without encryption. Use https://.`);
  }
  const client = createClient({ url, ...(key !== undefined && { token: key }) });
  try {
    const { data } = await client.GET("/healthz", { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (typeof data?.version !== "string") throw new Error("no version");
    return { url, from, client, keyed: key !== undefined, health: data };
  } catch (error) {
    throw new Complaint(silent(url, from, error), EXIT.usage);
  }
}

/** @param {Record<string, any>} values @returns {{ url: string, from: string }} */
function address(values) {
  if (typeof values["url"] === "string") return { url: checked(values["url"], "--url"), from: "--url" };
  if (env["BOBBIN_URL"]) return { url: checked(env["BOBBIN_URL"], "BOBBIN_URL"), from: "BOBBIN_URL" };
  const found = findDevServer(".");
  // Accept only a local address, so that a dev.json from an untrusted folder cannot send the key to another host.
  if (found?.runs && isLocal(found.url)) return { url: checked(found.url, "dev.json"), from: `the server of ${found.project}` };
  return { url: USUAL, from: found === undefined ? DEFAULT : `${DEFAULT}, because the server of ${found.project} has ended` };
}

/** @param {string} text @param {string} source */
function checked(text, source) {
  /** @type {URL | undefined} */
  let url;
  try {
    url = new URL(text);
  } catch {
    // Reported below, together with URLs of other schemes.
  }
  if (url?.username || url?.password) {
    throw new Complaint(`${source} contains a user or password, which others could see. Put the key into BOBBIN_KEY.`, EXIT.usage);
  }
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new Complaint(`${source} must be an address such as https://bobbin.example.com, not “${harmless(text)}”.`, EXIT.usage);
  }
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

/** @param {string} url */
const isLocal = (url) => URL.canParse(url) && ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);

/** @param {Record<string, any>} values */
export function keyOf(values) {
  const name = values["key-env"] ?? "BOBBIN_KEY";
  const key = env[name]?.trim();
  if (!key && values["key-env"] !== undefined) throw new Complaint(`The variable ${harmless(name)} of --key-env is not set.`, EXIT.usage);
  if (!key) return undefined;
  // An HTTP error about an invalid header would show the key.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Complaint(`The value of ${harmless(name)} is not a key. Keys consist of visible ASCII characters.`, EXIT.usage);
  return key;
}

/** @param {string} url @param {string} from @param {unknown} error */
function silent(url, from, error) {
  const what = error instanceof BobbinError && error.status > 0 ? `responds with ${error.status}` : "does not respond";
  const advice =
    from.startsWith(DEFAULT)
      ? "Start one with `bobbin dev` (in Bobbin's checkout `npm start`), or name another with --url or BOBBIN_URL."
      : "Check the address, and whether the server is running.";
  return `There is no Bobbin at ${url} (${from}): it ${what === "does not respond" || error instanceof BobbinError ? what : "is another program"}. ${advice}`;
}

/** @param {BobbinError} error @param {Target} target */
export function refused(error, target) {
  if (error.status === 0) return new Complaint(`${target.url} no longer responds.`);
  const hint = error.code === "unauthenticated" ? keyHint(target) : error.hint;
  return new Complaint(harmless(`${error.message}${hint === undefined ? "" : ` ${hint}`} (${error.code})`));
}

/** @param {Target} target */
const keyHint = ({ keyed }) =>
  keyed ? "The server does not know this key, which comes from BOBBIN_KEY or the variable of --key-env." : "Put a key into BOBBIN_KEY, or name its variable with --key-env.";
