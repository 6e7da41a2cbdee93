// The Worker: a chat page at `/`, and Bobbin's routes for everything else.

import bobbin from "bobbin/worker";
// Built by web/build.mjs.
import page from "../.bobbin/page.html";

export { DirectoryObject, MemoryObject, ThreadObject } from "bobbin/worker";

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-cache",
  "content-security-policy": "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
};

export default {
  fetch(request: Request, env: unknown, ctx: unknown) {
    const { pathname } = new URL(request.url);
    if (pathname === "/" && (request.method === "GET" || request.method === "HEAD")) return new Response(page, { headers: HEADERS });
    return bobbin.fetch(request, env, ctx);
  },
};
