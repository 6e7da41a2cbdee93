// Sends requests of code under development to hosts that are not in BOBBIN_ALLOW_PRIVATE_HOSTS. `npm start` runs on a
// machine that reaches its own services and those of its network, and a host name may resolve to one of them. This
// server checks the resolved address and connects to that same address, so that a later DNS change has no effect.
//
// The Worker (src/work/code/outbound.rs) sends its request to a URL with a secret path, and puts the target's URL into
// `x-bobbin-target`. The response is the target's own, unchanged, or 502 with `x-bobbin-unsent`.

import { randomBytes } from "node:crypto";
import dns from "node:dns";
import https from "node:https";
import { BlockList, isIP, isIPv6 } from "node:net";
import { http } from "../lib/node-http.mjs";
import { OF_CONNECTION, passing } from "./front.mjs";

const HOST = "127.0.0.1";
const TARGET = "x-bobbin-target";
const UNSENT = "x-bobbin-unsent";

/** Headers that are not forwarded. */
const OWN = new Set([...OF_CONNECTION, "host", "transfer-encoding", TARGET, UNSENT]);

/** The same list as in src/host/http.rs. */
const PRIVATE_V4 = ["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"];
/** Unique local, link-local, formerly site-local and multicast addresses. Below: prefixes that embed IPv4 addresses. */
const PRIVATE_V6 = ["::/128", "fc00::/7", "fe80::/9", "ff00::/8"];
const WAYS = [
  { prefix: "::/96", before: 96 },
  { prefix: "64:ff9b::/96", before: 96 },
  { prefix: "2002::/16", before: 16 },
];

const privates = new BlockList();
const subnet = (/** @type {BlockList} */ list, /** @type {string} */ range, /** @type {"ipv4" | "ipv6"} */ family) => {
  const [net = "", bits] = range.split("/");
  list.addSubnet(net, Number(bits), family);
};
for (const range of PRIVATE_V4) subnet(privates, range, "ipv4");
for (const range of PRIVATE_V6) subnet(privates, range, "ipv6");
for (const { prefix, before } of WAYS) {
  const [net = ""] = prefix.split("/");
  for (const range of PRIVATE_V4) {
    const [address = "", bits] = range.split("/");
    subnet(privates, `${behind(net, before, address)}/${before + Number(bits)}`, "ipv6");
  }
}

/**
 * Returns the IPv6 address that embeds an IPv4 address after the given bits of a prefix.
 * @param {string} prefix @param {number} bits @param {string} address
 */
function behind(prefix, bits, address) {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const groups = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16));
  return bits === 16 ? `${prefix.slice(0, -2)}:${groups.join(":")}::` : `${prefix}${groups.join(":")}`;
}

/** @param {string} address */
export function isPrivate(address) {
  // BlockList also finds mapped IPv4 addresses.
  return privates.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** @typedef {{ address: string, family: number }} Address */
/** @typedef {(name: string, options: object, done: (error: Error | null, addresses: Address[]) => void) => void} Lookup */

/**
 * @param {{ lookup?: Lookup, refuses?: (address: string) => boolean }} [options]   for tests
 * @returns {Promise<{ url: string, stop(): void }>}
 */
export async function startOutbound({ lookup = /** @type {any} */ (dns.lookup), refuses = isPrivate } = {}) {
  const path = `/${randomBytes(24).toString("base64url")}`;
  const agents = { "http:": new http.Agent(), "https:": new https.Agent() };
  /** @type {import("node:net").LookupFunction} */
  const looked = (name, options, done) =>
    lookup(name, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      const found = addresses?.find(({ address }) => refuses(address));
      if (error || !first) done(error ?? new Error(`${name} has no address`), "");
      else if (found) done(refused(name, found.address), "");
      else if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });

  const server = http.createServer({ requestTimeout: 0 }, (request, response) => {
    const unsent = (/** @type {Error} */ error) => {
      if (response.headersSent) return void response.destroy();
      response.writeHead(502, { [UNSENT]: error.message.replace(/[^\x20-\x7e]/g, "?") }).end();
    };
    response.sendDate = false;
    if (request.url !== path) return void response.writeHead(404).end();
    try {
      send(request, response, looked, agents, refuses, unsent);
    } catch (error) {
      unsent(/** @type {Error} */ (error));
    }
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, HOST, () => resolve(undefined));
  });
  // Do not keep the process running.
  server.unref();
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://${HOST}:${port}${path}`,
    stop() {
      server.close();
      server.closeAllConnections();
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** @param {string} name @param {string} address */
const refused = (name, address) => new Error(`fetch: the private address ${address} is not allowed here${name === address ? "" : `: ${name} leads to it`}.`);

/**
 * Sends a request to its target and returns the target's response.
 *
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:http").ServerResponse} response
 * @param {import("node:net").LookupFunction} lookup
 * @param {{ "http:": import("node:http").Agent, "https:": https.Agent }} agents
 * @param {(address: string) => boolean} refuses
 * @param {(error: Error) => void} unsent
 */
function send(request, response, lookup, agents, refuses, unsent) {
  const url = new URL(String(request.headers[TARGET]));
  const name = url.hostname.replace(/^\[|\]$/g, "");
  // An IP address is not looked up, so check it here.
  if (isIP(name) && refuses(name)) throw refused(name, name);
  const { protocol } = url;
  if (protocol !== "http:" && protocol !== "https:") throw new Error(`fetch: ${protocol} is not supported here.`);
  const module = protocol === "https:" ? https : http;
  const sent = module.request(url, { method: request.method ?? "GET", headers: passing(request.rawHeaders, OWN), agent: agents[protocol], lookup });
  sent.on("error", (error) => unsent(error.message.startsWith("fetch: ") ? error : new Error(`fetch failed: ${url.host}: ${error.message}`)));
  sent.on("response", (answer) => {
    // If the target aborts, abort here, too.
    answer.on("error", () => response.destroy());
    try {
      response.writeHead(answer.statusCode ?? 502, passing(answer.rawHeaders, OWN));
    } catch (error) {
      // Node may accept a header when it reads and reject it when it writes.
      answer.destroy();
      return unsent(new Error(`fetch failed: ${url.host}: ${/** @type {Error} */ (error).message}`));
    }
    answer.pipe(response);
  });
  sent.on("upgrade", (_, socket) => {
    socket.destroy();
    unsent(new Error(`fetch failed: ${url.host}: it requires another protocol`));
  });
  response.once("close", () => sent.destroy());
  request.pipe(sent);
}
