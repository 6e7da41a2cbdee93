import type { ToolHandler } from "bobbin";

/** Adds scaled whole numbers while that is exact, so that 0.1 + 0.2 is 0.3. */
const add: ToolHandler<{ numbers: number[] }> = async (_state, { numbers }) => {
  const digits = Math.max(...numbers.map((number) => String(number).split(".")[1]?.length ?? 0));
  const scale = 10 ** digits;
  return numbers.reduce((sum, number) => sum + Math.round(number * scale), 0) / scale;
};

export default add;
