// Removes keys and tokens from texts before they are written to files. The API never returns values of variables. This
// is for secrets that people pasted into a conversation.

const SECRETS = [
  /\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abprs]|bbt|AIza|AKIA|ASIA)[-_]?[A-Za-z0-9][A-Za-z0-9_-]{14,}\b/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  /(?<=\bBearer )[A-Za-z0-9._~+/=-]{16,}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
];

/** Returns a JSON value without secrets. @template T @param {T} value @returns {T} */
export function withoutSecrets(value) {
  const clean = (/** @type {any} */ one) => (typeof one === "string" ? SECRETS.reduce((text, pattern) => text.replaceAll(pattern, "<secret>"), one) : one);
  return JSON.parse(JSON.stringify(value, (_, one) => clean(one)));
}
