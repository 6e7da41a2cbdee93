// POST /api/threads/:id/figures { "name": "visits", "value": 1203 }: records a figure for the next report.

import type { EndpointHandler } from "bobbin";
import { type Figure, KEY, MOST } from "../lib/figures";

const record: EndpointHandler = async (request, state) => {
  const { name, value } = (await request.json()) as Partial<Figure>;
  if (typeof name !== "string" || typeof value !== "number" || !Number.isFinite(value)) {
    return Response.json({ error: "`name` is a text, and `value` a number" }, { status: 400 });
  }
  // If two requests arrive together, the second sees that the list has changed and adds to the new list.
  for (;;) {
    const before = await state.getValue<Figure[]>(KEY);
    const figures = [...(before ?? []), { name, value, at: new Date().toISOString() }].slice(-MOST);
    if (await state.setValue(KEY, figures, { ifValue: before })) return Response.json({ recorded: figures.length });
  }
};

export default record;
