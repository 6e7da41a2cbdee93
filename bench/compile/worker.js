// Only the compile step of the isolate Worker: erases and links the source of the request, `times` over.

import { compile } from "../../isolate/compile.js";

let compiled = 0;
const never = new Promise(() => {});

export default {
  /** @param {Request} request */
  async fetch(request) {
    const { times, wanted } = await request.json();
    for (let k = 0; k < times; k++) {
      // Each source is different, because compiled code is cached.
      const source = `${wanted.source}// ${compiled++}`;
      const answer = await compile({ ...wanted, source }, () => false, never);
      if ("error" in answer) return Response.json(answer.error, { status: 400 });
    }
    return new Response("compiled");
  },
};
