// Verifies signatures of access tokens from another issuer (crates/protocols/src/access/oauth.rs checks the claims). The issuer's keys are
// found through its metadata and cached; the platform does the cryptography.

/** How long keys count as new, milliseconds. */
const FRESH_MS = 10 * 60_000;
/** How long keys are used while newer ones are unavailable. */
const STALE_MS = 60 * 60_000;
/** The least time between two requests for keys, whatever tokens name. */
const AGAIN_MS = 60_000;
/** The same after a failed request, while there are no keys at all. */
const FAILED_MS = 5_000;
/** The limits on each response of an issuer: time and size in bytes. */
const ANSWER_MS = 5_000;
const ANSWER_BYTES = 256 << 10;
/** The shortest accepted RSA modulus, bits. */
const RSA_BITS = 2048;

/** @typedef {Record<string, any>} Jwk */
/** @type {Record<string, { kty: string, crv?: string, fields: string[], imported: any, verified: any }>} */
const ALGORITHMS = {
  RS256: { kty: "RSA", fields: ["n", "e"], imported: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, verified: "RSASSA-PKCS1-v1_5" },
  ES256: { kty: "EC", crv: "P-256", fields: ["crv", "x", "y"], imported: { name: "ECDSA", namedCurve: "P-256" }, verified: { name: "ECDSA", hash: "SHA-256" } },
  EdDSA: { kty: "OKP", crv: "Ed25519", fields: ["crv", "x"], imported: { name: "Ed25519" }, verified: "Ed25519" },
};

/** Keys by issuer; a deployment has one issuer. @type {Map<string, { keys?: Jwk[], at: number, triedAt: number }>} */
const known = new Map();

/**
 * Checks the signature of a token: `yes`, `no`, or the reason why it cannot be checked.
 *
 * @param {string} issuer
 * @param {string} algorithm
 * @param {string | undefined} kid
 * @param {string} signed
 * @param {string} signature  base64url
 */
export async function verified(issuer, algorithm, kid, signed, signature) {
  const bytes = fromBase64url(signature);
  if (!bytes) return "no";
  let keys = await keysOf(issuer, false);
  if (typeof keys === "string") return keys;
  let candidates = fitting(keys, algorithm, kid);
  if (candidates.length === 0) {
    keys = await keysOf(issuer, true);
    if (typeof keys === "string") return keys;
    candidates = fitting(keys, algorithm, kid);
  }
  const { imported, verified, fields, kty } = /** @type {NonNullable<typeof ALGORITHMS[string]>} */ (ALGORITHMS[algorithm]);
  for (const jwk of candidates) {
    try {
      const plain = Object.fromEntries(fields.map((name) => [name, jwk[name]]));
      const key = await crypto.subtle.importKey("jwk", { kty, ...plain }, imported, false, ["verify"]);
      if (await crypto.subtle.verify(verified, key, bytes, new TextEncoder().encode(signed))) return "yes";
    } catch {
      // The issuer published an invalid key.
    }
  }
  return "no";
}

/**
 * The keys that may have made a signature. Without a `kid`, all of its kind may.
 *
 * @param {Jwk[]} keys @param {string} algorithm @param {string | undefined} kid
 */
function fitting(keys, algorithm, kid) {
  const of = ALGORITHMS[algorithm];
  if (!of) return [];
  const fits = (/** @type {Jwk} */ key) =>
    key["kty"] === of.kty &&
    (of.crv === undefined || key["crv"] === of.crv) &&
    (kid === undefined || key["kid"] === kid) &&
    (key["use"] === undefined || key["use"] === "sig") &&
    (key["alg"] === undefined || key["alg"] === algorithm || (algorithm === "EdDSA" && key["alg"] === "Ed25519")) &&
    (of.kty !== "RSA" || (fromBase64url(String(key["n"]))?.length ?? 0) * 8 >= RSA_BITS);
  return keys.filter(fits).slice(0, 8);
}

/**
 * The keys of an issuer, or why there are none.
 *
 * @param {string} issuer @param {boolean} newer  whether to look for others than the cached ones
 */
async function keysOf(issuer, newer) {
  const entry = known.get(issuer) ?? { at: -STALE_MS, triedAt: -AGAIN_MS };
  known.set(issuer, entry);
  const now = Date.now();
  if (entry.keys && !newer && now - entry.at < FRESH_MS) return entry.keys;
  // A request must not await a promise of another request (a limit of the platform). Concurrent requests poll instead.
  const pause = entry.keys ? AGAIN_MS : FAILED_MS;
  if (now - entry.triedAt >= pause) {
    entry.triedAt = now;
    try {
      entry.keys = await fetched(issuer);
      entry.at = Date.now();
    } catch (error) {
      console.log(`the keys of ${issuer} cannot be had: ${error instanceof Error ? error.message : error}`);
    }
  } else {
    for (let waited = 0; !entry.keys && waited < FAILED_MS; waited += 100) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  if (entry.keys && Date.now() - entry.at < STALE_MS) return entry.keys;
  return "the keys of the issuer cannot be had";
}

/** @param {string} issuer @returns {Promise<Jwk[]>} */
async function fetched(issuer) {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const documents = [`${origin}/.well-known/oauth-authorization-server${path}`, `${origin}${path}/.well-known/openid-configuration`];
  let why = "";
  for (const address of documents) {
    try {
      const metadata = await read(address);
      if (metadata["issuer"] !== issuer) throw new Error(`${address} is about another issuer`);
      const at = new URL(String(metadata["jwks_uri"]));
      if (at.protocol !== "https:" && at.origin !== origin) throw new Error("jwks_uri must be https");
      const { keys } = await read(at.href);
      if (!Array.isArray(keys)) throw new Error(`${at.host} has no list of keys`);
      return keys.filter((key) => typeof key === "object" && key !== null);
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
  }
  throw new Error(why);
}

/** @param {string} address @returns {Promise<Record<string, any>>} */
async function read(address) {
  const answer = await fetch(address, { redirect: "manual", headers: { accept: "application/json" }, signal: AbortSignal.timeout(ANSWER_MS) });
  if (answer.status !== 200 || !answer.body) throw new Error(`${new URL(address).host} answered ${answer.status}`);
  let text = "";
  let bytes = 0;
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES) throw new Error(`${new URL(address).host} says too much`);
    text += decoder.decode(chunk, { stream: true });
  }
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error(`${new URL(address).host} answered no object`);
  return value;
}

/** @param {string} text @returns {Uint8Array<ArrayBuffer> | undefined} */
function fromBase64url(text) {
  if (!/^[\w-]+$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}
