import type { ToolHandler } from "bobbin";

/** Not safe: a second run counts again what the first one has counted. */
const tally: ToolHandler<object> = async (state) => {
  for (let times = 0; times < 2; times++) await state.setValue("count", (Number(await state.getValue("count")) || 0) + 1);
  return `Counted ${await state.getValue("count")}.`;
};
export default tally;
