// The compile step of the isolate Worker, and nothing else: erases and links the request that it is sent, `times` over.

import { compile } from "../../isolate/compile.js";

const never = new Promise(() => {});

export default {
  /** @param {Request} request */
  async fetch(request) {
    const { times, wanted } = await request.json();
    for (let k = 0; k < times; k++) {
      const answer = await compile(wanted, () => false, never);
      if ("error" in answer) return Response.json(answer.error, { status: 400 });
    }
    return new Response("compiled");
  },
};
