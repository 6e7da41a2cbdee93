// What a browser sees at the root of a development server: what this is, and what to try.

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { max-width: 44rem; margin: 4rem auto; padding: 0 1.5rem }
h1 { font-size: 1.6rem; margin: 0 0 .5rem } p { margin: .75rem 0 }
pre { padding: 1rem; border-radius: .5rem; overflow-x: auto; font: 14px/1.5 ui-monospace, monospace;
  background: light-dark(#f3f4f6, #1f2329); border: 1px solid light-dark(#e2e4e8, #333a44) }
a { color: light-dark(#0b57d0, #8ab4f8) }
small { color: light-dark(#5f6570, #9aa1ac) }`;

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

/**
 * The page, with its headers.
 *
 * @param {string} base   where the server is
 * @returns {{ headers: Record<string, string>, html: string }}
 */
export function welcome(base) {
  const at = escaped(base);
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bobbin</title>
<style>${STYLE}</style>
<h1>Bobbin is running</h1>
<p>An agent runtime: every conversation is a thread that keeps its own state. This is a development server; it serves the
definitions of one folder and takes up their changes.</p>
<p>Ask an agent something. The first command makes a thread; put the <code>threadId</code> that it prints into the second.</p>
<pre>curl ${at}/api/threads \\
  -H 'content-type: application/json' -d '{"agent_id": "guide"}'

curl '${at}/api/threads/THREAD/messages?wait=true' \\
  -H 'content-type: application/json' -d '{"role": "user", "content": "Hello!"}'</pre>
<p><a href="/api/agents">Agents</a> · <a href="/api/threads">threads</a> · <a href="/healthz">health</a></p>
<p><small>With BOBBIN_API_KEYS set, add <code>-H 'authorization: Bearer KEY'</code>. Everything else is in docs/http.md.</small></p>
</html>
`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-length": String(Buffer.byteLength(html)),
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  return { headers, html };
}
