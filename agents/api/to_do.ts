import type { EndpointHandler } from "bobbin";
import { type Entry, KEY, written } from "../lib/to_do";

/** `GET …/to_do`: the list as JSON; with `?as=text` as models see it. */
const toDo: EndpointHandler = async (request, state) => {
  const list = (await state.getValue<Entry[]>(KEY)) ?? [];
  const open = list.filter(({ done }) => !done).length;
  switch (new URL(request.url).searchParams.get("as") ?? "json") {
    case "json":
      return { list, open };
    case "text":
      return new Response(`${written(list)}\n`, { headers: { "content-type": "text/plain; charset=utf-8" } });
    default:
      return Response.json({ error: "`as` is json or text" }, { status: 400 });
  }
};

export default toDo;
