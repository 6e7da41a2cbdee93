// An MCP server with sign-in and an authorization server, both strict, and as faulty as a test requires. Both use one
// port. Each test has its own name in the paths.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { http } from "../../../package/lib/node-http.mjs";
import { wholeBody } from "./http.mjs";

/**
 * @typedef {object} Realm   the faults
 * @property {object} [metadata]        fields of the authorization server; null removes a field
 * @property {object} [resource]        fields of the MCP server
 * @property {string} [describedAt]     the metadata address that the MCP server sends
 * @property {Record<string, string | null>} [back]       the parameters of the redirect, instead
 * @property {(response: import("node:http").ServerResponse) => void} [token]   responds to a token request
 * @property {string[]} [needs]         scopes that a call needs
 * @property {string} [grants]          the scopes of a token, whatever it claims
 *
 * @typedef {Realm & { codes: Map<string, URLSearchParams | null>, tokens: Map<string, string>, asked: any[], calls: any[] }} Served
 */

export class OAuthServer {
  /** @type {Map<string, Served>} */
  realms = new Map();
  base = "";
  server = http.createServer((request, response) => void this.#answer(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  }));

  async start() {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    const { port } = /** @type {import("node:net").AddressInfo} */ (this.server.address());
    this.base = `http://127.0.0.1:${port}`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** @param {string} name @param {Realm} [realm] @returns {Served} */
  realm(name, realm = {}) {
    /** @type {Served} */
    const made = { ...realm, codes: new Map(), tokens: new Map(), asked: [], calls: [] };
    this.realms.set(name, made);
    return made;
  }

  /** Follows a link like a browser and returns the URL of the redirect. @param {string} link @returns {Promise<string>} */
  async follow(link) {
    const { status, headers } = await fetch(link, { redirect: "manual" });
    const back = headers.get("location");
    if (status !== 302 || back === null) throw new Error(`${link} does not lead back: ${status}`);
    return back;
  }

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async #answer(request, response) {
    const url = new URL(request.url ?? "/", this.base);
    const [, , name = ""] = url.pathname.match(/^(?:\/\.well-known\/(oauth-authorization-server|oauth-protected-resource))?\/([a-z0-9]+)/) ?? [];
    const realm = this.realms.get(name);
    if (realm === undefined) return response.writeHead(404).end();
    const at = `${this.base}/${name}`;
    const json = (/** @type {number} */ status, /** @type {object} */ body, /** @type {import("node:http").OutgoingHttpHeaders} */ headers = {}) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    const body = String(await wholeBody(request));
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource/")) return json(200, { resource: `${at}/mcp`, authorization_servers: [at], scopes_supported: ["read"], ...realm.resource });
    if (url.pathname.startsWith("/.well-known/oauth-authorization-server/")) {
      const said = {
        issuer: at, authorization_endpoint: `${at}/authorize`, token_endpoint: `${at}/token`, registration_endpoint: `${at}/register`,
        code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["client_secret_basic"], authorization_response_iss_parameter_supported: true,
        ...realm.metadata,
      };
      return json(200, Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null)));
    }
    switch (url.pathname.slice(name.length + 1)) {
      case "/register": {
        realm.asked.push({ register: JSON.parse(body) });
        return json(201, { client_id: `client of ${name}`, client_secret: `s3cret/${name}` });
      }
      case "/authorize": {
        const code = `code-${randomBytes(8).toString("hex")}`;
        realm.codes.set(code, url.searchParams);
        const back = new URL(String(url.searchParams.get("redirect_uri")));
        const brings = { code, state: url.searchParams.get("state"), iss: at, ...realm.back };
        for (const [field, value] of Object.entries(brings)) if (value !== null) back.searchParams.set(field, value);
        return response.writeHead(302, { location: back.href }).end();
      }
      case "/token": {
        const fields = new URLSearchParams(body);
        realm.asked.push({ token: Object.fromEntries(fields), authorization: request.headers.authorization });
        if (realm.token !== undefined) return realm.token(response);
        const bound = realm.codes.get(fields.get("code") ?? "");
        realm.codes.set(fields.get("code") ?? "", null);
        const basic = `Basic ${Buffer.from(`${encodeURIComponent(`client of ${name}`)}:${encodeURIComponent(`s3cret/${name}`)}`).toString("base64")}`;
        const challenge = createHash("sha256").update(fields.get("code_verifier") ?? "").digest("base64url");
        const fine = bound && bound.get("code_challenge") === challenge && bound.get("redirect_uri") === fields.get("redirect_uri") && fields.get("resource") === `${at}/mcp` && request.headers.authorization === basic;
        if (!fine) return json(400, { error: "invalid_grant", error_description: `no: ${fields.get("code")} ${fields.get("code_verifier")}` });
        const token = `token-${randomBytes(8).toString("hex")}`;
        realm.tokens.set(token, realm.grants ?? bound.get("scope") ?? "");
        return json(200, { access_token: token, token_type: "Bearer", expires_in: 3600, scope: bound.get("scope") ?? "" });
      }
      case "/mcp": {
        const message = JSON.parse(body);
        const token = request.headers.authorization?.slice("Bearer ".length);
        realm.calls.push({ method: message.method, token });
        const metadata = `resource_metadata="${realm.describedAt ?? `${this.base}/.well-known/oauth-protected-resource/${name}/mcp`}"`;
        const scope = realm.tokens.get(token ?? "");
        if (scope === undefined) return response.writeHead(401, { "www-authenticate": `Bearer ${metadata}` }).end();
        const lacks = realm.needs?.find((needed) => !scope.split(" ").includes(needed));
        if (lacks !== undefined) return response.writeHead(403, { "www-authenticate": `Bearer ${metadata}, error="insufficient_scope", scope="${lacks}"` }).end();
        const tools = [{ name: "whoami", description: "Says who asks.", inputSchema: { type: "object", properties: {} } }];
        const result = message.method === "tools/list" ? { tools } : { content: [{ type: "text", text: `somebody with ${scope}` }] };
        return json(200, { jsonrpc: "2.0", id: message.id, result: { resultType: "complete", ...result } });
      }
      default:
        return response.writeHead(404).end();
    }
  }
}
