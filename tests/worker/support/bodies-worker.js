// A Worker with only worker/bodies.js and a clock that is sixty times as fast: half a minute takes half a second.

const FASTER = 60;
const { setTimeout: platformsTimeout } = globalThis;
globalThis.setTimeout = (job, ms, ...rest) => platformsTimeout(job, ms / FASTER, ...rest);

import { BodyReader, Readers, bodyText, leftover } from "./bodies.js";

const LIMIT = 12 << 20;
const readers = new Readers();
/** The number of bodies that are being read in pieces, and its maximum. */
let now = 0;
let most = 0;

/** Reads a body piece by piece, like the core. @param {Request} request */
async function pieces(request) {
  let bytes = 0;
  let got = () => {};
  const body = new BodyReader(
    request,
    (piece, error) => {
      if (bytes === 0) most = Math.max(most, ++now);
      bytes += piece?.byteLength ?? 0;
      got(error ?? (piece ? undefined : "end"));
    },
    readers,
  );
  for (;;) {
    const said = await new Promise((resolve) => {
      got = resolve;
      body.next();
    });
    if (said === undefined) continue;
    now--;
    return { bytes, said, why: body.why };
  }
}

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/most") return Response.json(most);
    if (pathname === "/refused") {
      await leftover(request);
      return new Response("refused", { status: 401 });
    }
    if (pathname === "/pieces") return Response.json(await pieces(request));
    try {
      const text = await bodyText(request, LIMIT, request.headers.has("content-length"));
      return Response.json({ length: text?.length });
    } catch (error) {
      return Response.json({ why: error.message });
    }
  },
};
